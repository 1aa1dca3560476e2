"""The walk equals the interpreted kernels, store for store and lane for lane; so does what it says lies in a buffer."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from c128a import backend, kernel
from c128a.case import Case
from c128a.metadata import make_plan
from c128a.tiles import TILES, Tile
from c128a.trace import BLANK, STEP, cells, grid, memory, reads, row_verdicts, trace
from tests.support.builds import POISON, batches
from tests.support.refused import refused

interpreted = pytest.mark.skipif(not backend.INTERPRET, reason="stores are recorded in Triton's interpreter")


def buffers_of(case, fill):
    """The decode, lens and prefill buffers of a case, one spare row in each."""
    decode, prefill = case.num_decode_tokens + 1, case.num_tokens - case.num_decode_tokens + 1
    shapes = {"decode": (decode, case.capacity), "lens": (decode,), "prefill": (prefill, case.capacity)}
    return {name: torch.full(shape, fill, dtype=torch.int32) for name, shape in shapes.items()}


def launch(case, name, buffers, *, step=STEP, tile=None):
    """One build of a case by the kernel of that name."""
    inputs, outputs = case.tensors()[:4], tuple(buffers.values())
    sizes = case.num_decode_tokens, case.compress_ratio, case.block_size, case.width
    plan = make_plan(case.layout, *sizes, outputs, inputs)
    plan = replace(plan, tile=tile or plan.tile)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "ROW_LOOP_STEP", step)
        (plan.launch_row_loop if name == "row_loop" else plan.launch)(*outputs, *inputs)


LANE = ["program", "trip", "kind", "offset", "value"]


def true_stores(case, name, **shape):
    """The lanes of the stores that the interpreter makes, in its order: LANE, offset -1 and value <NA> where masked."""
    from triton.runtime import interpreter

    builder, buffers, found = interpreter.interpreter_builder, buffers_of(case, POISON), []
    store = builder.create_masked_store

    # The first three arguments are pointers, values and mask from triton 3.5 to 3.9; what follows differs.
    def record(pointers, values, mask, *rest):
        address, value, on = (lane.ravel() for lane in np.broadcast_arrays(pointers.data, values.data, mask.data))
        first = int(address[on][0])
        (kind,) = (key for key, b in buffers.items() if b.data_ptr() <= first < b.data_ptr() + 4 * b.numel())
        offset = np.where(on, (address.astype(np.int64) - buffers[kind].data_ptr()) // 4, -1)
        whole = [np.full(on.size, same) for same in (*builder.grid_idx[:2], kind)]
        found.append([*whole, offset, np.where(on, value, 0), on])
        return store(pointers, values, mask, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(builder, "create_masked_store", record)
        launch(case, name, buffers, **shape)
    *lanes, value, on = map(np.concatenate, zip(*found, strict=True))
    return pd.DataFrame(dict(zip(LANE, (*lanes, pd.arrays.IntegerArray(value.astype(np.int64), ~on)), strict=True)))


def assert_stores_are_those_of_the_walk(case, name, **shape):
    said = trace(case, name, **shape)[LANE]
    if name == "row_loop":
        said["trip"] = 0  # the interpreter knows programs, and the trips are one program's
    pd.testing.assert_frame_equal(true_stores(case, name, **shape), said, check_dtype=False)


BAD_TABLES = Case.of_tokens(  # a request outside the table on either side, a hole, a table that ends early
    [2047, 2047, 2047, 1023], [2, -1, 1, 0], [[0, -1, 6], [9, 8, -1]], [0, 1, 2, 3], 4, width=20, capacity=25
)
TILE = Tile(2, 16, 4)


@interpreted
@settings(max_examples=20)
@given(batches(), st.sampled_from([16, STEP]), st.sampled_from([TILE, *TILES[::2], None]))
def test_the_kernels_store_what_the_walk_says(case, step, tile):
    assert_stores_are_those_of_the_walk(case, "row_loop", step=step)
    assert_stores_are_those_of_the_walk(case, "tiled", tile=tile)


@given(batches(), st.sampled_from(["row_loop", "tiled"]))
def test_one_program_is_a_part_of_the_whole_and_each_cell_is_stored_once(case, name):
    shape = {"step": 16, "tile": TILE}
    whole = trace(case, name, **shape)
    programs, trips = grid(case, name, **shape)
    part = trace(case, name, program=programs - 1, trip=trips - 1, **shape)
    assert whole.tail(len(part)).reset_index(drop=True).equals(part)
    stored = whole[whole["state"] != "masked"]
    assert len(stored) == case.num_tokens * case.width + case.num_decode_tokens
    assert not stored.duplicated(["kind", "row", "column"]).any()


def test_a_pad_says_why_it_is_one():
    # b = 2: columns 0-1 lie in entry 0, 2-3 in entry 1, 4-5 in entry 2; position 2047 sees 16 entries, 1023 sees 8.
    lanes = trace(BAD_TABLES, "row_loop", step=16).query("kind == 'decode' and state != 'masked'")
    assert [reasons.value_counts().to_dict() for _, reasons in lanes.groupby("row")["reason"]] == [
        {"request outside the table": 16, "past n": 4},  # request 2 of 2
        {"request outside the table": 16, "past n": 4},  # request -1
        {"live": 4, "no block": 2, "table too short": 10, "past n": 4},
        {"live": 4, "no block": 2, "table too short": 2, "past n": 12},
    ]


def rows_of(entries, width, layout="packed", *, model_len=1_048_576, decode=True, first_block=0):
    """One row for each number of entries, of a width."""
    seqs, count = tuple(max(128 * n, 1) for n in entries), len(entries)
    fields = {"max_model_len": model_len, "given_width": width, "layout": layout, "first_block": first_block}
    return Case((1,) * count, seqs, count if decode else 0, **fields)


BAD = {
    "kernel is 'loop'": lambda: trace(BAD_TABLES, "loop"),
    "program is 4": lambda: trace(BAD_TABLES, "row_loop", program=4),
    "trip is -1": lambda: trace(BAD_TABLES, "row_loop", trip=-1),
    "512 before and 8192 now": lambda: cells(rows_of((1,), 128, model_len=65_536), rows_of((1,), 128), "decode"),
    "row_stride is -1": lambda: reads(BAD_TABLES, BAD_TABLES, "decode", -1),
}


@refused({ValueError: BAD})
def test_what_cannot_be_walked_is_refused_by_name(error, words, call):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize(
    ("layout", "rows", "first_block", "stride", "verdicts"),
    [
        ("packed", 2, 100_000, 8192, ["right", "wrong"]),  # of flat offset 8192 the capture's ids are left
        ("packed", 2, 100_000, 4096, ["right", "right"]),
        ("packed", 2, 100_000, 4098, ["right", "wrong"]),  # its own row, two columns late
        ("pitched", 2, 100_000, 8192, ["right", "right"]),
        # Row 1 is taken from where row 2 lies now; rows 2 and 3 from what the capture left: ids of the same requests.
        ("packed", 4, 0, 8192, ["right", "wrong", "luck", "luck"]),
    ],
    ids=["packed", "packed-its-own-stride", "packed-late", "pitched", "packed-same-requests"],
)
def test_incident_1_a_reader_of_the_captured_stride_finds_only_row_0_of_packed_rows(
    layout, rows, first_block, stride, verdicts
):
    """Captured at 1,048,576 tokens (width 8192), replayed at 300,000 (width 4096)."""
    before = rows_of((8192, 4505, 6553, 5734)[:rows], 8192, layout)
    now = rows_of((937, 2109, 1523, 2343)[:rows], 4096, layout, first_block=first_block)
    assert row_verdicts(reads(before, now, "decode", stride), rows) == verdicts


def test_pitched_rows_keep_their_place_and_old_columns():
    before, now = (rows_of((2, 4), width, "pitched", model_len=65_536) for width in (256, 128))
    found = memory(before, now, "decode")
    assert list(zip(found["start"], found["stop"], found["kind"], strict=True)) == [
        (0, 2, "id"), (2, 128, "pad"), (128, 256, "old pad"), (256, 512, "blank"),
        (512, 516, "id"), (516, 640, "pad"), (640, 768, "old pad"), (768, 1024, "blank"),
    ]  # fmt: skip


def test_prefill_rows_hold_the_identity_so_another_row_serves_as_far_as_its_ids_reach():
    before = rows_of((512, 512, 512), 512, model_len=65_536, decode=False)
    now = rows_of((10, 20, 15), 256, model_len=65_536, decode=False)
    # The reader takes row 1 from flat 512, which is row 2 now: its 15 ids are right, the next 5 cells are pads.
    taken = reads(before, now, "prefill", 512).query("row == 1")
    assert taken[["start", "stop", "verdict"]].values.tolist() == [[512, 527, "luck"], [527, 532, "wrong"]]


def test_a_reader_takes_nothing_of_a_padded_token_and_all_up_to_the_end_of_the_buffer():
    now = replace(rows_of((2, 128), 128, model_len=16_384), given_slots=(-1, 0))
    assert reads(now, now, "decode", 128)[["row", "start", "stop"]].values.tolist() == [[1, 128, 256]]


@st.composite
def two_builds(draw):
    count, layout, decode = draw(st.integers(1, 5)), draw(st.sampled_from(["packed", "pitched"])), draw(st.booleans())
    entries = st.tuples(*[st.integers(0, 128)] * count)
    shape = {"layout": layout, "model_len": 32_768, "decode": decode}
    before, now = (rows_of(draw(entries), draw(st.sampled_from([128, 256])), **shape) for _ in range(2))
    return before, now, "decode" if decode else "prefill"


@interpreted
@settings(max_examples=15)
@given(two_builds(), st.sampled_from([128, 256]))
def test_every_cell_is_what_the_kernel_leaves_there_and_a_reader_sees_the_entries_of_each_row(builds, stride):
    before, now, kind = builds
    buffers = buffers_of(before, BLANK)
    for case in (before, now):
        launch(case, "row_loop", buffers)
    left, runs, taken = cells(*builds), memory(*builds), reads(*builds, stride)
    assert left["value"].tolist() == buffers[kind].flatten()[: len(left)].tolist()
    assert runs["start"].tolist() == [0, *runs["stop"][:-1]] and runs["stop"].iloc[-1] == len(left)
    seen = (taken["stop"] - taken["start"]).groupby(taken["row"]).sum()
    assert [seen.get(row, 0) for row in range(now.num_tokens)] == now.entries.tolist()
    if stride == now.decode_rows.row_stride:
        assert set(taken["verdict"]) <= {"right"}
