"""Each incident of docs/incidents.md as a test, by its number; values worked out by hand.

What only a GPU shows is in test_incidents_gpu.py; 13 is in test_metadata.py, 15 in test_width.py.
"""

import pytest

from c128a.case import Case
from c128a.frozen import FrozenReader, WidthGraphs
from c128a.metadata import C128AMetadataBuilder
from tests.support.builds import DEVICE, POISON, builds, far_apart, ids, int32, int64, layouts, poisoned, step


def built(build, case, buffers, layout="packed"):
    """The views of a case built into (decode, lens, prefill) buffers; what lies around its table gives other ids."""
    positions, requests, blocks, slots, *_ = case.tensors(DEVICE)
    table = poisoned(blocks.shape[0] + 2, blocks.shape[1] + 2)[1:-1, 1:-1].copy_(blocks)
    inputs = positions, 128, case.num_decode_tokens, requests, table, case.block_size, slots
    return build(*inputs, *buffers, case.width, layout=layout)


@layouts
def test_incident_1_packed_rows_after_the_first_are_wrong_under_a_frozen_reader_and_pitched_rows_hold(layout):
    builder = C128AMetadataBuilder(1_048_576, 4, layout=layout, max_num_seqs=2, device=DEVICE)
    reader = FrozenReader(step(builder, Case.decode(2, 2_000, seed=1), 1_048_576))
    got = step(builder, Case.decode(2, 2_000, seed=2), 300_000)
    wrong = reader.wrong_rows(got.global_decode_topk_indices[:, 0], got.decode_topk_lens)
    assert wrong.tolist() == [False, layout == "packed"]


def test_incident_1_packed_rows_hold_with_one_graph_for_each_width_that_the_policy_reaches():
    builder = C128AMetadataBuilder(50_000, 8, layout="packed", max_num_seqs=3, policy="aligned", device=DEVICE)
    graphs = WidthGraphs(builder, rows=3)
    assert list(graphs.readers) == [128, 256, 384, 512]
    for seed, seq in enumerate((50_000, 20_000, 1_500, 40_000)):
        got = step(builder, Case.decode(3, 1_400, seed=seed), seq)
        expected = got.global_decode_topk_indices[:, 0].clone()
        assert not graphs.reader(got).wrong_rows(expected, got.decode_topk_lens).any()
    with pytest.raises(ValueError, match="metadata has 2 decode rows; the graphs hold 3"):
        graphs.reader(step(builder, Case.decode(2, 500), 500))
    for rows in (0, 4):
        with pytest.raises(ValueError, match=rf"rows is {rows}; the builder holds 1 … 3 decode rows"):
            WidthGraphs(builder, rows)


@builds
@layouts
def test_incident_2_capture_stable_stride(build, layout):
    buffers = poisoned(2, 512), poisoned(2), poisoned(2, 512)
    decode_buffer, lens, prefill_buffer = buffers

    def at(width):
        positions, block = [255, 511, 383, 639], 512 * 128
        case = Case.of_tokens(positions, [0, 1], [[3], [5]], [0, 1], 2, width=width, kv_block_size=block)
        return built(build, case, buffers, layout)

    first_decode, _, first_prefill = at(256)
    decode_buffer.fill_(-99)
    prefill_buffer.fill_(-99)
    at(128)
    seen = first_decode[:, :4].tolist(), first_prefill[:, :4].tolist()
    if layout == "packed":  # row 1 of the first views is now past both rows of the narrower build
        assert seen == ([[1536, 1537, -1, -1], [-99] * 4], [[0, 1, 2, -1], [-99] * 4])
        return
    assert seen == ([[1536, 1537, -1, -1], [2560, 2561, 2562, 2563]], [[0, 1, 2, -1], [0, 1, 2, 3]])
    assert lens.tolist() == [2, 4]
    assert (decode_buffer[:, 128:] == -99).all() and (prefill_buffer[:, 128:] == -99).all()


def test_incident_3_a_capacity_smaller_than_the_sequence_is_an_error_with_both_numbers():
    builder = C128AMetadataBuilder(980_224, 4, layout="pitched", device="meta")
    assert builder.capacity == 7_680
    message = r"max_seq_len is 1,048,576: its rows need 8,192 columns.* 7,680 .*max_model_len"
    with pytest.raises(ValueError, match=message):
        builder.width_for(1_048_576)


@builds
def test_incident_6_the_default_of_8192_on_narrow_buffers_is_an_error(build):
    buffers = poisoned(4, 512), poisoned(4), poisoned(4, 512)
    with pytest.raises(ValueError, match=r"max_compressed_tokens is 8192; global_decode_buffer of shape \(4, 512\)"):
        build(int64(255), 128, 1, int32(0), int32(3).view(1, 1), 2, int64(0), *buffers)
    assert all((buffer == POISON).all() for buffer in buffers)


ROWS = {  # a case, and the ids before the pads of its decode rows, their lens, the ids of its prefill rows
    "the worked example": (
        Case.of_tokens([1000], [0], [[40, 10, 30, 20]], [5], 1, width=128),
        ([[80, 81, 20, 21, 60, 61, 40]], [7], []),
    ),
    "incident_7_padded_tokens": (
        Case.of_tokens([0, 127, 511, 255], [0] * 4, [[5, 7, 11, 13]], [0, -1, 2, 3], 3, width=8),
        ([[], [10], [10, 11, 14, 15]], [0, 0, 4], [[0, 1]]),
    ),
    "incident_8_padding_rows_of_a_graph": (
        Case.of_tokens([-1, -2, -1, -2], [0] * 4, [[5, 7]], [0, 1, 2, 3], 2, width=128),
        ([[], []], [0, 0], [[], []]),
    ),
    "incident_9_speculative_verify": (
        Case.of_tokens([254, 255, 256, 257], [0] * 4, [[9, 4]], [0, 1, 2, 3], 4, width=128),
        ([[18], [18, 19], [18, 19], [18, 19]], [1, 2, 2, 2], []),
    ),
    "incident_11_pads_are_part_of_the_result": (
        Case.of_tokens([255, 511], [0, 0], [[3]], [0, 1], 1, width=128, kv_block_size=256 * 128),
        ([[768, 769]], [2], [[0, 1, 2, 3]]),
    ),
    # A request outside the table on either side, a block number of -1, and a table that ends after 2 of 4 blocks. lens
    # is the prefix that a reader must look at: holes in it hold -1, which readers skip.
    "incident_14_bad_tables": (
        Case.of_tokens([511, 511, 511, 1023], [2, -1, 0, 1], [[5, -1], [7, 9]], [0, 1, 2, 3], 4, width=8),
        ([[], [], [10, 11], [14, 15, 18, 19]], [4, 4, 4, 8], []),
    ),
}


@builds
@layouts
@pytest.mark.parametrize(("case", "rows"), ROWS.values(), ids=ROWS)
def test_every_row_holds_its_ids_and_then_pads(build, layout, case, rows):
    buffers = poisoned(4, 256), poisoned(4), poisoned(4, 256)
    decode, lens, prefill = built(build, case, buffers, layout)
    assert decode.shape[1] == prefill.shape[1] == case.width
    assert ([ids(row) for row in decode], lens.tolist(), [ids(row) for row in prefill]) == rows


def test_incident_10_decode_prefill_split_with_5_speculative_tokens():
    builder = C128AMetadataBuilder(4_096, 16, layout="pitched", num_speculative_tokens=5, device=DEVICE)
    for query_len, decode_tokens in ((6, 6), (7, 0), (11, 0), (12, 0)):
        got = step(builder, Case((query_len,), (1_000,), 0))
        assert got.num_decode_tokens == decode_tokens
        assert (got.prefill_topk_indices is None) == (decode_tokens == query_len)


@pytest.mark.skipif(DEVICE.type != "cpu", reason="test_incidents_gpu.py has it on a GPU")
@builds
@pytest.mark.parametrize("kind", ["decode", "prefill"])
def test_incident_12_rows_and_table_rows_are_found_by_64_bit_offsets(build, kind, tmp_path):
    rows, table = far_apart(tmp_path / "rows", 3, 128), far_apart(tmp_path / "table", 3, 2)
    table.copy_(int32(3, 4, 5, 6, 7, 8).view(3, 2))
    decode, buffers = 3 * (kind == "decode"), {"decode": poisoned(3, 128), "prefill": poisoned(3, 128)} | {kind: rows}
    inputs = int64(511, 255, 511), 128, decode, int32(0, 1, 2), table, 2, int64(0, 1, 2)
    build(*inputs, buffers["decode"], poisoned(3), buffers["prefill"], 128, layout="pitched")
    expected = [[6, 7, 8, 9], [10, 11], [14, 15, 16, 17]] if decode else [[0, 1, 2, 3], [0, 1], [0, 1, 2, 3]]
    assert [ids(row) for row in rows] == expected
