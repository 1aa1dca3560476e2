"""A case is the batch that its lengths describe, whatever it is asked for."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from c128a.case import CAPACITY, MAX_MODEL_LEN, PRESETS, Case
from c128a.width import capacity_width


def test_prefill_queries_end_at_the_context():
    case = Case.prefill(5, 3)  # a request of 3 tokens and one of 2
    assert case.positions.tolist() == [0, 1, 2, 1, 2]
    assert case.token_to_req_indices.tolist() == [0, 0, 0, 1, 1]
    assert (case.num_decode_tokens, case.max_seq_len, case.prefill_rows.rows) == (0, 3, 5)


def test_one_long_among_short_sets_the_width_of_all():
    case = Case.one_long(3, 32_896, 300)  # 32,896 tokens need 257 columns
    assert case.positions.tolist() == [32_895, 299, 299]
    assert (case.width, case.entries.tolist()) == (512, [257, 2, 2])


def test_speculative_rows_are_the_last_positions_of_each_request():
    case = Case.speculative(2, 2, 100)
    assert case.positions.tolist() == [97, 98, 99, 97, 98, 99]
    assert (case.num_decode_tokens, case.query_start_loc.tolist()) == (6, [0, 3, 6])


def test_no_two_requests_share_a_block_and_another_batch_can_stand_apart():
    table = Case.mixed(5, 300, 2_000).block_table
    assert table.shape == (6, 8) and len(np.unique(table)) == table.size
    apart = Case.mixed(5, 300, 2_000, first_block=6 * MAX_MODEL_LEN // 256).block_table
    assert not np.isin(apart, table).any()


def test_a_request_keeps_its_blocks_when_the_batch_grows_and_another_seed_gives_others():
    short, long = Case.decode(4, 5_000), Case.decode(4, 50_000)
    assert (long.block_table[:, :20] == short.block_table).all()
    assert (Case.decode(4, 5_000, seed=1).block_table != short.block_table).any()


def test_a_case_is_a_key_and_its_arrays_cannot_be_written():
    case = Case.decode(2, 1_000)
    assert {case: 1}[Case.decode(2, 1_000)] == 1 and replace(case, seed=1) != case
    with pytest.raises(ValueError, match="read-only"):
        case.positions[0] = 5


def test_tensors_have_the_dtypes_of_the_builder_and_gather_the_window_before_the_queries():
    tensors = Case.mixed(1, 3, 1_000, first_block=7).tensors()
    int32, int64 = torch.int32, torch.int64
    assert [tensor.dtype for tensor in tensors] == [int64, int32, int32, int64, int32, int32]
    # 127 tokens before the first query of a request lie in its window, itself being the 128th.
    assert (tensors.seq_lens.tolist(), tensors.gather_lens.tolist()) == ([1_000, 1_000], [128, 130])


def test_what_is_given_replaces_what_the_lengths_say():
    case = Case.of_tokens([0, 127, -1], [2, -1], [[4, -1], [9, 8]], [0, -1], 2, width=8, capacity=13)
    assert case.positions.tolist() == [0, 127, -1] and case.token_to_req_indices.tolist() == [2, -1]
    assert (case.decode_rows.row_stride, case.decode_rows.width, case.entries.tolist()) == (13, 8, [0, 1, 0])
    padded = replace(Case.decode(2, 300), given_positions=(-1, 299))
    assert padded.slot_mapping.tolist() == [-1, 1]


def test_a_sequence_over_the_capacity_is_told_not_refused():
    case = Case.decode(1, 66_048, max_model_len=65_536)
    assert (case.needed, case.capacity, case.width, case.fits) == (516, 512, 512, False)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"query_lens": (1,), "seq_lens": (1, 2)}, "query_lens has 1 requests, seq_lens 2"),
        ({"query_lens": (1, 3)}, r"query_lens\[1\] is 3"),
        ({"query_lens": (-1, 1)}, r"query_lens\[0\] is -1"),
        ({"decode_requests": 3}, "decode_requests is 3; it must be between 0 and 2"),
        ({"kv_block_size": 200}, "kv_block_size is 200"),
        ({"compress_ratio": 0}, "compress_ratio"),
        ({"policy": "wide"}, "policy is 'wide'"),
        ({"layout": "loose"}, "layout is 'loose'"),
        ({"max_model_len": 0}, "max_model_len is 0"),
        ({"given_width": 9_000}, "given_width is 9000; it must be between 1 and capacity, 8192"),
        ({"given_capacity": 0}, "given_capacity is 0"),
        ({"given_positions": (1,)}, "given_positions has 1 tokens"),
        ({"given_requests": ()}, "given_requests has 0 tokens; it must have 1 to 2"),
        ({"given_table": ((1,), (1, 2))}, r"given_table has rows of \[1, 2\] blocks"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_contradicts_itself_is_refused_by_name(fields, message):
    with pytest.raises(ValueError, match=message):
        Case(**{"query_lens": (1, 1), "seq_lens": (2, 2), "decode_requests": 1} | fields)


@pytest.mark.parametrize(
    ("name", "capacity", "width"),
    [
        ("pr_test", 256, 128),
        ("flash_1m", 8192, 8192),
        ("pro_pr", 8192, 256),
        ("len_70000", 640, 640),
        ("len_33792", 384, 384),
        ("one_long", 8192, 8192),
    ],
)
def test_a_preset_gives_the_capacity_and_width_it_stands_for(name, capacity, width):
    preset = PRESETS[name]
    case = Case.decode(1, preset.seq, max_model_len=preset.model_len)
    assert (case.capacity, case.width) == (capacity, width)


def test_the_capacity_is_that_of_the_longest_context():
    assert capacity_width(MAX_MODEL_LEN) == CAPACITY
