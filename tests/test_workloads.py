import pytest
import torch

from c128a import workloads


def test_a_seed_gives_the_same_batch_twice_and_another_seed_another_table():
    one, same, other = (workloads.decode(4, 5_000, seed=seed) for seed in (3, 3, 4))
    assert torch.equal(one.block_table, same.block_table)
    assert not torch.equal(one.block_table, other.block_table)


def test_no_block_belongs_to_two_requests():
    table = workloads.mixed(5, 300, 2_000).block_table
    assert table.unique().numel() == table.numel()


def test_prefill_queries_end_at_the_context():
    batch = workloads.prefill(5, 3)  # a request of 3 tokens and one of 2
    assert batch.positions.tolist() == [0, 1, 2, 1, 2]
    assert batch.token_to_req_indices.tolist() == [0, 0, 0, 1, 1]
    assert (batch.num_decode_tokens, batch.max_seq_len) == (0, 3)


def test_one_long_among_short_sets_max_seq_len():
    batch = workloads.one_long(3, 900, 10)
    assert batch.positions.tolist() == [899, 9, 9]
    assert batch.max_seq_len == 900


def test_speculative_rows_are_the_last_positions_of_each_request():
    batch = workloads.speculative(2, 2, 100)
    assert batch.positions.tolist() == [97, 98, 99, 97, 98, 99]
    assert batch.num_decode_tokens == 6


@pytest.mark.parametrize(
    ("queries", "seqs", "message"),
    [
        ([1], [1, 2], "query_lens has 1 requests, seq_lens 2"),
        ([3], [2], "request 0: query_lens is 3"),
        ([-1], [2], "-1"),
    ],
    ids=["lengths", "long-query", "negative"],
)
def test_an_impossible_batch_is_refused(queries, seqs, message):
    with pytest.raises(ValueError, match=message):
        workloads.from_lengths(queries, seqs, num_decode_requests=0)
