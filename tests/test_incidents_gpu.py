"""Incidents that only a GPU shows: real CUDA graphs, synchronisation, compilation while serving, large offsets."""

from itertools import product

import pytest
import torch

from c128a import census, reference
from c128a.case import Case
from c128a.frozen import FrozenReader, WidthGraphs
from c128a.kernel import loaded_variants
from c128a.metadata import C128AMetadataBuilder, build_c128a_topk_metadata
from c128a.width import reachable_widths
from tests.support.builds import POISON, assert_equals_reference, batch_of, ids, int32, int64, layouts, poisoned

pytestmark = pytest.mark.gpu

ROWS = 4
LENGTHS = (300_000, 32_768, 8_192)


def step(builder, seed, max_seq_len):
    """Build rows of random requests; their lengths reach up to max_seq_len, so that rows differ in n as well."""
    lengths = torch.randint(128, max_seq_len + 1, (ROWS,), generator=torch.Generator().manual_seed(seed)).tolist()
    case = Case((1,) * ROWS, tuple(lengths), ROWS, seed=seed)
    of = batch_of(case)
    got = builder.build(of.positions, of.query_start_loc, max_seq_len, of.block_table, of.slot_mapping)
    return got, reference.decode_rows(of.positions, 128, of.token_to_req_indices, of.block_table, 2, got.width)


def made(layout="pitched", **options):
    return C128AMetadataBuilder(1_048_576, 64, layout=layout, **options)


@pytest.mark.parametrize("max_seq_len", LENGTHS)
def test_incident_1_a_captured_graph_reads_packed_rows_wrong_from_row_1_on(max_seq_len):
    builder = made("packed", max_num_seqs=ROWS)
    reader = FrozenReader(step(builder, 1, 1_048_576)[0])
    got, want = step(builder, 2, max_seq_len)
    wrong = reader.wrong_rows(want, got.decode_topk_lens).tolist()
    assert wrong == [False, True, True, True]


@layouts
def test_incident_1_rows_are_right_over_1000_random_replays_if_pitched_or_with_a_graph_for_each_width(layout):
    builder = made(layout, max_num_seqs=ROWS)
    if layout == "packed":
        graphs = WidthGraphs(builder, ROWS)
        assert list(graphs.readers) == reachable_widths(8192)
    else:
        reader = FrozenReader(step(builder, 1000, 1_048_576)[0])
    wrong = int64(0)
    for seed in range(1000):
        got, want = step(builder, seed, (*LENGTHS, 1_048_576, 100_000)[seed % 5])
        used = graphs.reader(got) if layout == "packed" else reader
        wrong += used.wrong_rows(want, got.decode_topk_lens).sum()
    assert int(wrong) == 0


def test_incident_4_no_variant_is_compiled_after_warm_up():
    builder = made()
    listed = set(builder.warmup())
    before = set(loaded_variants())
    assert listed <= before
    stored = int64(*range(900, 965))
    # An offset slice of positions, from 1 on, is not aligned to 16 bytes.
    for width, tokens, stride, start in product(reachable_widths(8192), (16, 0, 1, 2, 15, 17), (64, 65), (0, 1)):
        positions = stored[start : start + tokens]
        table = torch.randint(0, 1000, (17, stride), dtype=torch.int32, device="cuda")
        inputs = (positions, int32(*range(tokens)), table, int64(*[0] * tokens))
        assert_equals_reference(build_c128a_topk_metadata, inputs, tokens, width)
    assert set(loaded_variants()) == before


def test_the_census_counts_what_tritons_rule_predicts_and_ours_are_those_of_warm_up():
    predicted = census.predicted()
    measured = census.measured()
    assert [count.naive for count in measured] == [count.naive for count in predicted] == [1, 3, 4, 5]
    warmed = len(made().warmup())
    assert all(count.ours <= warmed for count in measured)


CASES = [Case.mixed(count, 8, 2_000, seed=count) for count in (3, 5, 2)]


@layouts
def test_incident_5_a_build_neither_waits_nor_reads_back(layout):
    builder = made(layout, num_speculative_tokens=1)
    builder.warmup()
    batches = [batch_of(case) for case in CASES]
    boundaries = [int32(*case.query_start_loc.tolist()) for case in CASES]
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        for case, of, starts in zip(CASES, batches, boundaries, strict=True):
            rest = of.max_seq_len, of.block_table, of.slot_mapping
            builder.build(of.positions, of.query_start_loc, *rest)
            builder.build(of.positions, starts, *rest, num_decode_tokens=case.num_decode_tokens)
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_the_builder_allocates_nothing_after_construction():
    builder = made()
    builder.warmup()
    batches = [batch_of(case) for case in CASES]
    torch.cuda.synchronize()
    before = torch.cuda.memory_stats()
    for turn in range(1000):
        of = batches[turn % 3]
        builder.build(of.positions, of.query_start_loc, of.max_seq_len, of.block_table, of.slot_mapping)
    after = torch.cuda.memory_stats()
    for key in ("allocation.all.allocated", "allocated_bytes.all.current", "reserved_bytes.all.current"):
        assert after[key] == before[key], key


def test_incident_12_row_262144_at_stride_8192_lies_at_flat_offset_2_to_the_31():
    rows = 262_145
    if torch.cuda.mem_get_info()[0] < 12 * 2**30:
        pytest.skip("needs 12 GiB of free GPU memory")
    decode, requests = poisoned(rows, 8192), poisoned(rows).zero_()
    positions = torch.full_like(requests, 127, dtype=torch.int64)
    positions[-1] = 511
    inputs = positions, 128, rows, requests, int32(5, 7).view(1, 2), 2, torch.zeros_like(positions)
    got, _, _ = build_c128a_topk_metadata(*inputs, decode, poisoned(rows), poisoned(1, 8192), 128, layout="pitched")
    assert (rows - 1) * got.stride(0) == 2**31
    assert ids(got[-1]) == [10, 11, 14, 15]
    assert ids(got[0]) == [10]
    assert (decode[:, 128:] == POISON).all()


def test_incident_14_guards_hold_next_to_unmapped_memory():
    # compute-sanitizer watches this test: any read past the table's two blocks would be reported.
    table = int32(3, 4).view(1, 2)
    inputs = (int64(1_048_575, 1_048_575), int32(0, 7), table, int64(0, 1))
    assert_equals_reference(build_c128a_topk_metadata, inputs, 2, 8192)


@pytest.mark.parametrize("start", [1, 2, 3])
def test_rows_that_start_off_16_bytes_are_stored_by_the_narrow_variant(start):
    memory = poisoned(4 * 256 + 4)
    buffers = memory[start : start + 512].view(2, 256), poisoned(2), poisoned(2, 256)
    inputs = int64(511, 255), 128, 2, int32(0, 0), int32(5, 7).view(1, 2), 2, int64(0, 1)
    got, _, _ = build_c128a_topk_metadata(*inputs, *buffers, 128)
    assert [ids(row) for row in got] == [[10, 11, 14, 15], [10, 11]]
    assert (memory[:start] == POISON).all() and (memory[start + 256 :] == POISON).all()


def test_a_build_inside_a_captured_graph_equals_the_reference_at_each_replay():
    builder = C128AMetadataBuilder(65_536, 8, layout="pitched")
    builder.warmup()
    positions, requests = int64(500, 500, 500), int32(0, 1, 2)
    table = torch.randperm(3 * 8, dtype=torch.int32).view(3, 8).cuda()
    inputs = positions, 128, 3, requests, table, 2, int64(0, 0, 0)
    buffers = builder.global_decode_buffer, builder.decode_lens_buffer, builder.prefill_buffer
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        decode, _, _ = build_c128a_topk_metadata(*inputs, *buffers, 128, layout="pitched")
    for position in (127, 1_500, 2_047):
        positions.fill_(position)
        graph.replay()
        assert torch.equal(decode, reference.decode_rows(positions, 128, requests, table, 2, 128))


def test_a_build_on_a_side_stream_sees_what_that_stream_wrote():
    # Overlapped launches wait for the kernel before them: its writes must be visible, at full speed, many times over.
    stream = torch.cuda.Stream()
    table = torch.randperm(64 * 64, dtype=torch.int32).view(64, 64).cuda()
    positions, slots, wrong = int64(*[0] * 64), int64(*[0] * 64), int64(0)
    inputs = positions, 128, 64, int32(*range(64)), table, 2, slots
    buffers = poisoned(64, 128), poisoned(64), poisoned(1, 128)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        for turn in range(300):
            positions.fill_(128 * (turn % 64))
            decode, lens, _ = build_c128a_topk_metadata(*inputs, *buffers, 128)
            wrong += (lens != turn % 64).sum() + ((decode >= 0).sum(1) != turn % 64).sum()
    torch.cuda.synchronize()
    assert int(wrong) == 0
