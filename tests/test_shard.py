"""Decode context parallel: the rows of all ranks, put together, are the whole rows."""

from dataclasses import replace

import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from c128a import reference
from c128a.case import Case
from c128a.metadata import C128AMetadataBuilder, make_plan
from c128a.tiles import WIDE
from c128a.width import Shard, shard_width
from tests.support.builds import DEVICE, POISON, int32, int64, poisoned, step

ENTRIES = 320  # columns of a whole row


@settings(max_examples=15)
@given(
    positions=st.lists(st.integers(-2, 128 * ENTRIES - 1), min_size=1, max_size=3),
    ranks=st.sampled_from([1, 2, 4, 8]),
    interleave=st.sampled_from([1, 2, 64]),
    block_size=st.sampled_from([2, 64]),
    tile=st.sampled_from([None, WIDE]),  # of a wide tile, a program reads each block number once
    columns=st.sampled_from([ENTRIES, 8]),
    missing=st.integers(0, 2),
    own_table=st.booleans(),
)
@example([128 * 301 - 1, 5000], 2, 64, 64, WIDE, ENTRIES, 0, False)
@example([128 * 301 - 1, 5000], 2, 2, 64, WIDE, ENTRIES, 0, False)
@example([128 * 301 - 1, 5000], 2, 64, 2, None, 8, 0, True)
def test_the_rows_of_all_ranks_are_the_whole_rows(
    positions, ranks, interleave, block_size, tile, columns, missing, own_table
):
    """The last token is a padded one. A table of a rank's own lists its blocks alone; `missing` blocks are in none."""
    count, tokens = len(positions), int64(*positions)
    table = 7 + torch.randperm(ENTRIES // block_size, dtype=torch.int32, device=DEVICE)[missing:].view(1, -1)
    inputs = tokens, int32(*[0] * count), table, int64(*range(1, count), -1)
    whole = reference.decode_rows(tokens, 128, *inputs[1:3], block_size, ENTRIES)
    for rank in range(ranks):
        shard = Shard(rank, ranks, interleave, own_table)
        width = min(-(-ENTRIES // ranks // 64) * 64, columns)
        buffers = poisoned(count + 1, width), poisoned(count + 1), poisoned(1, width)
        made = make_plan("packed", count, 128, block_size, width, buffers, inputs, shard)
        replace(made, tile=tile or made.tile).launch(*buffers, *inputs)
        own = [entry for entry in range(ENTRIES) if entry // interleave % ranks == rank][:width]
        seen = [sum(128 * (entry + 1) <= position + 1 for entry in own) for position in positions]
        want = torch.full_like(buffers[0], -1)
        want[count] = POISON
        if own_table:
            of_rank = int64(*[128 * entries - 1 for entries in seen])
            want[:count] = reference.decode_rows(of_rank, 128, *inputs[1:3], block_size, width)
        else:
            want[:count, : len(own)] = whole[:, own]
        assert torch.equal(buffers[0], want)
        assert buffers[1].tolist() == [*seen[:-1], 0, POISON]


def test_a_rank_builds_the_columns_of_its_share_and_whole_rows_beside_prefill():
    # 524,416 tokens are 4,097 entries: 513 on the first of 8 ranks, so 1,024 columns in place of 8,192.
    long = 524_416, 128, 1_048_576, Shard(1, 8)
    assert [shard_width(*long, policy=policy) for policy in ("pow2", "aligned", "fixed")] == [1024, 640, 1024]
    # 65,664 tokens are 513 entries, 257 on the first of 2 ranks.
    made = C128AMetadataBuilder(131_072, 3, layout="pitched", shard=Shard(1, 2), device=DEVICE)
    case = Case.decode(1, 700)
    got, blocks = step(made, case, 65_664), case.block_table[0]  # of 5 entries, two a block, the rank has 1 and 3
    assert got.global_decode_topk_indices.shape == (1, 1, 512) and got.decode_topk_lens.tolist() == [2]
    assert got.global_decode_topk_indices[0, 0, :3].tolist() == [2 * blocks[0] + 1, 2 * blocks[1] + 1, -1]
    got = step(made, Case.mixed(1, 2, 700), 65_664)
    assert got.global_decode_topk_indices.shape == (1, 1, 1024)
    assert got.prefill_topk_indices[:, :6].tolist() == [[0, 1, 2, 3, 4, -1]] * 2
