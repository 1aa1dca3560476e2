"""Each incident of the field as a test; values worked out by hand. What only a GPU shows is in test_incidents_gpu.py.

Incidents 12 (large offsets) and 5 (no device sync) are there; 13 is in test_metadata.py, 15 in test_width.py.
"""

import pytest
import torch

from c128a.case import Case
from c128a.frozen import FrozenReader, WidthGraphs
from c128a.metadata import C128AMetadataBuilder
from tests.support.builds import BUILDS, DEVICE, POISON, batch_of, ids, int32, int64, poisoned

builds = pytest.mark.parametrize("build", BUILDS.values(), ids=BUILDS.keys())


def captured_then_rebuilt(layout, max_seq_len, rows=2):
    """A reader captured at 1,048,576 tokens, then other requests built at max_seq_len into the same buffers."""
    builder = C128AMetadataBuilder(1_048_576, 2 * rows, layout=layout, max_num_seqs=rows, device=DEVICE)

    def build(seed, seq):
        batch = batch_of(Case.decode(rows, 2_000, seed=seed))
        got = builder.build(batch.positions, batch.query_start_loc, seq, batch.block_table, batch.slot_mapping)
        return got.global_decode_topk_indices[:, 0], got.decode_topk_lens, got

    reader = FrozenReader(build(seed=1, seq=1_048_576)[2])
    expected, lens, _ = build(seed=2, seq=max_seq_len)
    return reader, expected.clone(), lens.clone()


@pytest.mark.parametrize("max_seq_len", [300_000, 8_192])
def test_incident_1_packed_rows_after_the_first_are_wrong_under_a_frozen_reader(max_seq_len):
    reader, expected, lens = captured_then_rebuilt("packed", max_seq_len)
    assert [read.right for read in reader.report(expected, lens)] == [True, False]


@pytest.mark.parametrize("max_seq_len", [300_000, 8_192])
def test_incident_1_pitched_rows_hold_under_a_frozen_reader(max_seq_len):
    reader, expected, lens = captured_then_rebuilt("pitched", max_seq_len)
    assert [read.right for read in reader.report(expected, lens)] == [True, True]


def test_incident_1_packed_rows_hold_with_one_graph_a_width():
    builder = C128AMetadataBuilder(65_536, 8, layout="packed", max_num_seqs=3, device=DEVICE)
    graphs = WidthGraphs(builder, rows=3)
    assert list(graphs.readers) == [128, 256, 512]
    for seed, seq in enumerate((65_536, 20_000, 1_500, 40_000)):
        batch = batch_of(Case.decode(3, min(seq, 1_400), seed=seed))
        got = builder.build(batch.positions, batch.query_start_loc, seq, batch.block_table, batch.slot_mapping)
        expected = got.global_decode_topk_indices[:, 0].clone()
        assert all(read.right for read in graphs.reader(got).report(expected, got.decode_topk_lens))


def test_width_graphs_refuse_a_step_with_other_rows():
    builder = C128AMetadataBuilder(16_384, 8, layout="packed", max_num_seqs=3, device=DEVICE)
    batch = batch_of(Case.decode(2, 500))
    got = builder.build(batch.positions, batch.query_start_loc, 500, batch.block_table, batch.slot_mapping)
    with pytest.raises(ValueError, match="metadata has 2 decode rows; the graphs hold 3"):
        WidthGraphs(builder, rows=3).reader(got)


@builds
@pytest.mark.parametrize("layout", ["pitched", "packed"])
def test_incident_2_capture_stable_stride(build, layout):
    decode_buffer, prefill_buffer, lens = poisoned(2, 512), poisoned(2, 512), poisoned(2)

    def at(width):
        return build(
            int64(255, 511, 383, 639), 128, 2, int32(0, 1, 0, 1), int32(3, 5).view(2, 1), 512, int64(0, 1, 2, 3),
            decode_buffer, lens, prefill_buffer, width, layout=layout,
        )  # fmt: skip

    first_decode, _, first_prefill = at(256)
    decode_buffer.fill_(-99)
    prefill_buffer.fill_(-99)
    at(128)
    seen = [first_decode[row, :4].tolist() for row in (0, 1)], [first_prefill[row, :4].tolist() for row in (0, 1)]
    if layout == "packed":  # row 1 of the first views is now past both rows of the narrower build
        assert seen == ([[1536, 1537, -1, -1], [-99] * 4], [[0, 1, 2, -1], [-99] * 4])
        return
    assert seen == ([[1536, 1537, -1, -1], [2560, 2561, 2562, 2563]], [[0, 1, 2, -1], [0, 1, 2, 3]])
    assert lens.tolist() == [2, 4]
    assert (decode_buffer[:, 128:] == -99).all() and (prefill_buffer[:, 128:] == -99).all()


def test_incident_3_a_capacity_smaller_than_the_sequence_is_an_error_with_both_numbers():
    builder = C128AMetadataBuilder(980_224, 4, layout="pitched", device="meta")
    assert builder.capacity == 7_680
    with pytest.raises(
        ValueError, match=r"max_seq_len is 1,048,576: its rows need 8,192 columns.* 7,680 .*max_model_len"
    ):
        builder.width_for(1_048_576)


@builds
def test_incident_6_the_default_of_8192_on_narrow_buffers_is_an_error(build):
    buffers = poisoned(4, 512), poisoned(4), poisoned(4, 512)
    with pytest.raises(ValueError, match=r"max_compressed_tokens is 8192; global_decode_buffer of shape \(4, 512\)"):
        build(int64(255), 128, 1, int32(0), int32(3).view(1, 1), 2, int64(0), *buffers)
    assert all((buffer == POISON).all() for buffer in buffers)


@builds
def test_incident_7_padded_tokens(build):
    decode, lens, prefill = build(
        int64(0, 127, 511, 255), 128, 3, int32(0, 0, 0, 0), int32(5, 7, 11, 13).view(1, 4), 2, int64(0, -1, 2, 3),
        poisoned(4, 8), poisoned(4), poisoned(4, 8), 8,
    )  # fmt: skip
    assert lens.tolist() == [0, 0, 4]
    assert [ids(row) for row in decode] == [[], [10], [10, 11, 14, 15]]
    assert [ids(row) for row in prefill] == [[0, 1]]


@builds
@pytest.mark.parametrize("position", [-1, -2])
def test_incident_8_a_graphs_padding_rows(build, position):
    decode, lens, prefill = build(
        int64(position, position), 128, 1, int32(0, 0), int32(5, 7).view(1, 2), 2, int64(0, 1),
        poisoned(2, 128), poisoned(2), poisoned(2, 128), 128,
    )  # fmt: skip
    assert (decode == -1).all() and (prefill == -1).all()
    assert lens.tolist() == [0]


@builds
def test_incident_9_speculative_verify(build):
    decode, lens, _ = build(
        int64(254, 255, 256, 257), 128, 4, int32(0, 0, 0, 0), int32(9, 4).view(1, 2), 2, int64(0, 1, 2, 3),
        poisoned(4, 128), poisoned(4), poisoned(4, 128), 128,
    )  # fmt: skip
    assert [ids(row) for row in decode] == [[18], [18, 19], [18, 19], [18, 19]]
    assert lens.tolist() == [1, 2, 2, 2]


@pytest.mark.parametrize(("query_len", "decode_tokens"), [(6, 6), (7, 0), (11, 0), (12, 0)])
def test_incident_10_decode_prefill_split_with_5_speculative_tokens(query_len, decode_tokens):
    batch = batch_of(Case((query_len,), (1_000,), 0))
    builder = C128AMetadataBuilder(4_096, 16, layout="pitched", num_speculative_tokens=5, device=DEVICE)
    got = builder.build(batch.positions, batch.query_start_loc, 1_000, batch.block_table, batch.slot_mapping)
    assert got.num_decode_tokens == decode_tokens
    assert (got.prefill_topk_indices is None) == (decode_tokens == query_len)


@builds
@pytest.mark.parametrize("layout", ["pitched", "packed"])
def test_incident_11_pads_are_part_of_the_result(build, layout):
    decode, _, prefill = build(
        int64(255, 511), 128, 1, int32(0, 0), int32(3).view(1, 1), 256, int64(0, 1),
        poisoned(2, 256), poisoned(2), poisoned(2, 256), 128, layout=layout,
    )  # fmt: skip
    assert decode.shape == prefill.shape == (1, 128)
    assert (decode[0, 2:] == -1).all() and decode[0, :2].tolist() == [768, 769]
    assert (prefill[0, 4:] == -1).all() and prefill[0, :4].tolist() == [0, 1, 2, 3]


@builds
def test_incident_14_bad_tables_give_pads_and_read_nothing(build):
    # A request outside the table on either side, a block number of -1, and a table that ends after 2 of 4 blocks. The
    # table is a window into a larger tensor whose other cells would give ids of 2,000 and more.
    memory = torch.full((4, 4), 1_000, dtype=torch.int32, device=DEVICE)
    memory[1:3, :2] = int32(5, -1, 7, 9).view(2, 2)
    decode, lens, _ = build(
        int64(511, 511, 511, 1023), 128, 4, int32(2, -1, 0, 1), memory[1:3, :2], 2, int64(0, 1, 2, 3),
        poisoned(4, 8), poisoned(4), poisoned(4, 8), 8,
    )  # fmt: skip
    assert decode.tolist() == [
        [-1] * 8,
        [-1] * 8,
        [10, 11, -1, -1, -1, -1, -1, -1],
        [14, 15, 18, 19, -1, -1, -1, -1],
    ]
    assert lens.tolist() == [4, 4, 4, 8]  # the prefix a reader must look at: holes in it hold -1, which readers skip
