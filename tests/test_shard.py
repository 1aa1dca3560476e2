"""Decode context parallel: the rows of all ranks, put together, are the whole rows."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from c128a import reference
from c128a.case import Case
from c128a.metadata import C128AMetadataBuilder, build_c128a_topk_metadata, make_plan
from c128a.tiles import WIDE
from c128a.width import Shard, shard_width
from tests.support.builds import DEVICE, batch_of, ids, int32, int64, poisoned

ENTRIES = 320  # columns of a whole row


def test_entries_are_owned_in_turns():
    owned = [[shard.entry(column) for column in range(shard.entries(11))] for shard in (Shard(r, 2, 3) for r in (0, 1))]
    assert owned == [[0, 1, 2, 6, 7, 8], [3, 4, 5, 9, 10]]
    assert [Shard(rank, 8).entries(4097) for rank in (0, 1, 7)] == [513, 512, 512]


def rows_of_ranks(positions, ranks, interleave, table, block_size, tile=None):
    """What each rank builds on poisoned buffers: its shard, its rows and their lens."""
    count, inputs = len(positions), (int64(*positions), int32(*[0] * len(positions)), table, int64(*range(1000)))
    for rank in range(ranks):
        shard = Shard(rank, ranks, interleave)
        width = 128 * -(-shard.entries(ENTRIES) // 128) or 128
        buffers = poisoned(count, width), poisoned(count), poisoned(1, width)
        plan = make_plan("packed", count, 128, block_size, width, buffers, inputs, shard)
        plan = replace(plan, tile=tile or plan.tile)
        plan.launch(*buffers, *inputs)
        yield shard, *buffers[:2]


def assert_stitched(positions, ranks, interleave, table, block_size, tile=None):
    asked = (int64(*positions), 128, int32(*[0] * len(positions)), table, block_size)
    whole = reference.decode_rows(*asked, ENTRIES)
    stitched, seen = torch.full_like(whole, -2), torch.zeros_like(whole[:, 0])
    for shard, rows, lens in rows_of_ranks(positions, ranks, interleave, table, block_size, tile):
        own = [entry for entry in range(ENTRIES) if entry // interleave % ranks == shard.rank]
        stitched[:, own] = rows[:, : len(own)]
        seen += lens
        assert torch.equal(rows[:, : len(own)], reference.rank_rows(whole, *shard[:3]))
        assert (rows[:, len(own) :] == -1).all()
    assert torch.equal(stitched, whole)
    assert seen.tolist() == [max(position + 1, 0) // 128 for position in positions]


@settings(deadline=None, max_examples=15)
@given(
    positions=st.lists(st.integers(-2, 128 * ENTRIES - 1), min_size=1, max_size=3),
    ranks=st.sampled_from([1, 2, 4, 8]),
    interleave=st.sampled_from([1, 2, 64]),
    seed=st.integers(0, 99),
)
def test_the_rows_of_all_ranks_are_the_whole_rows(positions, ranks, interleave, seed):
    blocks = np.random.default_rng(seed).permutation(1000)[: ENTRIES // 2 - seed % 3]
    assert_stitched(positions, ranks, interleave, int32(*blocks.tolist()).view(1, -1), 2)


@pytest.mark.parametrize("interleave", [1, 2, 64])
@pytest.mark.parametrize("block_size", [2, 64])
def test_so_are_those_of_tiles_that_read_a_block_number_once(interleave, block_size):
    table = int32(*range(7, 7 + ENTRIES // block_size)).view(1, -1)
    assert_stitched([128 * 301 - 1, 5000], 2, interleave, table, block_size, WIDE)


def test_a_padded_token_has_no_entries_on_any_rank():
    table = int32(5, 7, 11, 13).view(1, 4)
    for rank in (0, 1):
        buffers = poisoned(2, 128), poisoned(2), poisoned(1, 128)
        asked = (int64(511, 511), 128, 2, int32(0, 0), table, 2, int64(-1, 3))
        rows, lens, _ = build_c128a_topk_metadata(*asked, *buffers, 128, shard=Shard(rank, 2))
        assert lens.tolist() == [0, 2]
        assert rows[1, :3].tolist() == [[10, 14, -1], [11, 15, -1]][rank]


def test_a_row_narrower_than_the_share_ends_at_its_width():
    buffers, table = (poisoned(2, 8), poisoned(1), poisoned(1, 8)), int32(*range(50)).view(1, 50)
    asked = (int64(128 * 100 - 1), 128, 1, int32(0), table, 2, int64(0))
    rows, lens, _ = build_c128a_topk_metadata(*asked, *buffers, 8, shard=Shard(0, 2))
    assert (rows.tolist(), lens.tolist()) == ([[0, 2, 4, 6, 8, 10, 12, 14]], [8])
    assert (buffers[0][1] == 12_345).all()


def test_a_table_of_the_ranks_own_blocks_is_read_from_its_first_entry_on():
    table = int32(5, 7).view(1, 2)
    for rank, want in ((0, [10, 11, 14, 15]), (1, [10, 11, 14])):  # 7 entries, in turns of 2: 4 and 3
        for tile in (None, WIDE):
            buffers, inputs = (
                (poisoned(1, 128), poisoned(1), poisoned(1, 128)),
                (int64(1000), int32(0), table, int64(0)),
            )
            plan = make_plan("packed", 1, 128, 2, 128, buffers, inputs, Shard(rank, 2, 2, own_table=True))
            replace(plan, tile=tile or plan.tile).launch(*buffers, *inputs)
            assert (ids(buffers[0][0]), buffers[1].tolist()) == (want, [len(want)])


def sharded(**options):
    return C128AMetadataBuilder(1_048_576, 64, layout="pitched", shard=Shard(1, 8), device=DEVICE, **options)


def test_a_rank_builds_the_columns_of_its_share_and_whole_rows_beside_prefill():
    # 524,416 tokens are 4,097 entries: 513 on the first of 8 ranks, so 1,024 columns in place of 8,192.
    widths = [
        shard_width(524_416, 128, 1_048_576, Shard(1, 8), policy=policy) for policy in ("pow2", "aligned", "fixed")
    ]
    assert widths == [1024, 640, 1024]  # fixed: ⌈8,192 / 8⌉
    batch = batch_of(Case.decode(1, 2048))
    got = sharded().build(batch.positions, batch.query_start_loc, 2048, batch.block_table, batch.slot_mapping)
    want = reference.decode_rows(batch.positions, 128, batch.token_to_req_indices, batch.block_table, 2, 16)
    assert got.decode_topk_lens.tolist() == [2]
    assert got.global_decode_topk_indices[0, 0, :3].tolist() == [int(want[0, 1]), int(want[0, 9]), -1]
    got = sharded().build(batch.positions, batch.query_start_loc, 524_416, batch.block_table, batch.slot_mapping)
    assert got.global_decode_topk_indices.shape == (1, 1, 1024)
    mixed = batch_of(Case.mixed(1, 2, 524_416))
    got = sharded().build(mixed.positions, mixed.query_start_loc, 524_416, mixed.block_table, mixed.slot_mapping)
    assert got.global_decode_topk_indices.shape == (1, 1, 8192)
    assert torch.equal(got.prefill_topk_indices, reference.prefill_rows(mixed.positions[1:], 128, 8192))


def test_the_decode_split_is_one_token_under_context_parallel_unless_it_is_given():
    # The sliding-window builder keeps 1 + k: rows of 3 tokens are prefill here and decode there.
    assert sharded(num_speculative_tokens=2).decode_threshold == 1
    assert sharded(num_speculative_tokens=2, decode_threshold=3).decode_threshold == 3
    assert C128AMetadataBuilder(4096, 8, layout="packed", num_speculative_tokens=2).decode_threshold == 3


@pytest.mark.parametrize(
    ("shard", "message"),
    [
        (Shard(2, 2), "rank is 2; it must be between 0 and 1"),
        (Shard(0, 0), "size is 0"),
        (Shard(0, 2, 0), "interleave is 0"),
        (Shard(0, 2**20, 2**11), "do not fit in int32"),
    ],
    ids=["rank", "size", "interleave", "range"],
)
def test_a_share_that_cannot_be_is_refused(shard, message):
    buffers = poisoned(1, 128), poisoned(1), poisoned(1, 128)
    with pytest.raises(ValueError, match=message):
        build_c128a_topk_metadata(
            int64(0), 128, 1, int32(0), int32(0).view(1, 1), 2, int64(0), *buffers, 128, shard=shard
        )
    assert all((buffer == 12_345).all() for buffer in buffers)
