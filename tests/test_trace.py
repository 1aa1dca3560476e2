"""The trace equals the interpreted kernels, store for store and lane for lane."""

import numpy as np
import pytest
import torch

from c128a import backend, launch, trace, workloads
from c128a.build import build_c128a_topk_metadata, build_with_row_loop
from c128a.launch import ROW_LOOP_STEP
from c128a.tiles import TILES, Tile, tile_shape
from tests.support.builds import DEVICE, poisoned

interpreted = pytest.mark.skipif(not backend.INTERPRET, reason="stores are recorded in Triton's interpreter")


class Recorder:
    """Every store that the interpreter makes: (program, buffer, [(offset, value) or (None, None), …])."""

    def __init__(self, monkeypatch, buffers):
        from triton.runtime import interpreter

        builder = interpreter.interpreter_builder
        true_store = builder.create_masked_store
        self.stores = []

        # The first three arguments are pointers, values and mask from triton 3.5 to 3.9; what follows differs.
        def record(pointers, values, mask, *rest):
            shape = np.shape(pointers.data)
            addresses, written, held = (
                np.broadcast_to(part.data, shape).ravel().tolist() for part in (pointers, values, mask)
            )
            (name,) = {self.holder(buffers, at) for at, on in zip(addresses, held, strict=True) if on}
            base = buffers[name].data_ptr()
            lanes = [
                ((address - base) // 4, value) if on else (None, None)
                for address, value, on in zip(addresses, written, held, strict=True)
            ]
            self.stores.append((builder.grid_idx[:2], name, lanes))
            return true_store(pointers, values, mask, *rest)

        monkeypatch.setattr(builder, "create_masked_store", record)

    @staticmethod
    def holder(buffers, address):
        """The name of the buffer that an address lies in."""
        for name, buffer in buffers.items():
            if buffer.data_ptr() <= address < buffer.data_ptr() + 4 * buffer.numel():
                return name
        raise AssertionError(f"a store outside the buffers, at {address}")


def as_recorded(store, strides):
    """A store of the trace as the recorder writes it."""
    lanes = [
        (None, None) if lane.state == "masked" else (lane.row * strides[store.kind] + lane.column, lane.value)
        for lane in store.lanes
    ]
    return store.program, store.kind, lanes


def int32(*values):
    return torch.tensor(values, dtype=torch.int32, device=DEVICE)


def from_batch(batch, width, **changes):
    count = batch.num_decode_tokens
    return trace.Launch(
        positions=tuple(batch.positions.tolist()),
        requests=tuple(batch.token_to_req_indices.tolist()),
        table=tuple(map(tuple, batch.block_table.tolist())),
        slots=tuple(batch.slot_mapping.tolist()),
        num_decode=count,
        width=width,
        **changes,
    )


PADDED = trace.Launch(  # incident 7 and 8: padded tokens, and the positions of a graph's padding rows
    positions=(0, 127, 511, -1, -2, 255), requests=(0,) * 6, table=((5, 7, 11, 13),), slots=(0, -1, 2, -1, 4, 3),
    num_decode=5, width=8,
)  # fmt: skip
BAD_TABLES = trace.Launch(  # incident 14: a request outside the table on either side, a hole, a table that ends early
    positions=(2047, 2047, 2047, 1023), requests=(2, -1, 1, 0), table=((4, -1, 6), (9, 8, -1)), slots=(0, 1, 2, 3),
    num_decode=4, width=20,
)  # fmt: skip
WORKLOADS = {
    "decode": from_batch(workloads.decode(3, 20_000), 256),
    "prefill": from_batch(workloads.prefill(5, 700), 128),
    "mixed": from_batch(workloads.mixed(3, 6, 2048), 128),
    "one-long": from_batch(workloads.one_long(3, 300_000, 256), 2400),
    "speculative": from_batch(workloads.speculative(2, 3, 520), 130),
    "padded": PADDED,
    "bad-tables": BAD_TABLES,
    "width-1": from_batch(workloads.mixed(2, 1, 2048), 1),
    "width-1025": from_batch(workloads.mixed(1, 2, 1025 * 128), 1025),
    "ratio-4": from_batch(workloads.mixed(2, 2, 900), 256, ratio=4, block_size=64),
    "block-3": from_batch(workloads.mixed(2, 2, 4096), 40, block_size=3),
}
workload = pytest.mark.parametrize("inputs", WORKLOADS.values(), ids=WORKLOADS.keys())
layouts = pytest.mark.parametrize("layout", ["packed", "pitched"])


def run_recorded(monkeypatch, build, inputs, layout):
    """Build in the interpreter and give its stores, with the row stride of each kind."""
    capacity = inputs.width + 5
    buffers = {
        "decode": poisoned(max(inputs.num_decode, 1), capacity),
        "lens": poisoned(max(inputs.num_decode, 1)),
        "prefill": poisoned(max(inputs.num_prefill, 1), capacity),
    }
    recorder = Recorder(monkeypatch, buffers)
    build(
        torch.tensor(inputs.positions, dtype=torch.int64, device=DEVICE),
        inputs.ratio,
        inputs.num_decode,
        int32(*inputs.requests),
        int32(*(block for row in inputs.table for block in row)).view(len(inputs.table), -1),
        inputs.block_size,
        torch.tensor(inputs.slots, dtype=torch.int64, device=DEVICE),
        buffers["decode"],
        buffers["lens"],
        buffers["prefill"],
        inputs.width,
        layout=layout,
    )
    stride = inputs.width if layout == "packed" else capacity
    return recorder.stores, {"decode": stride, "prefill": stride, "lens": 1}


@interpreted
@workload
@layouts
def test_row_loop_stores_what_the_trace_says(monkeypatch, inputs, layout):
    stores, strides = run_recorded(monkeypatch, build_with_row_loop, inputs, layout)
    want = [as_recorded(store, strides) for store in trace.row_loop(inputs, step=ROW_LOOP_STEP)]
    assert stores == want


@interpreted
@workload
@layouts
def test_tiled_stores_what_the_trace_says(monkeypatch, inputs, layout):
    stores, strides = run_recorded(monkeypatch, build_c128a_topk_metadata, inputs, layout)
    tile = tile_shape(len(inputs.positions), inputs.width)
    assert stores == [as_recorded(store, strides) for store in trace.tiled(inputs, tile)]


@interpreted
@pytest.mark.parametrize("tile", [*TILES, Tile(16, 64, 4), Tile(1, 128, 1)], ids=lambda t: f"{t.rows}x{t.cols}")
@pytest.mark.parametrize("name", ["mixed", "one-long", "bad-tables"])
def test_every_tile_shape_stores_what_the_trace_says(monkeypatch, tile, name):
    monkeypatch.setattr(launch, "tile_shape", lambda *_: tile)
    inputs = WORKLOADS[name]
    stores, strides = run_recorded(monkeypatch, build_c128a_topk_metadata, inputs, "packed")
    assert stores == [as_recorded(store, strides) for store in trace.tiled(inputs, tile)]


@workload
def test_both_kernels_write_the_same_cells_each_once(inputs):
    def cells(stores):
        written = [
            (store.kind, lane.row, lane.column, lane.value)
            for store in stores
            for lane in store.lanes
            if lane.state != "masked"
        ]
        assert len(set(written)) == len(written)
        return set(written)

    loop, tiles = cells(trace.row_loop(inputs, step=ROW_LOOP_STEP)), cells(trace.tiled(inputs, Tile(2, 256, 4)))
    assert loop == tiles
    assert len(loop) == len(inputs.positions) * inputs.width + inputs.num_decode


@pytest.mark.parametrize(
    ("row", "reasons"),
    [
        (0, {"request outside the table": 16, "past n": 4}),
        (1, {"request outside the table": 16, "past n": 4}),
        (2, {"live": 4, "no block": 2, "table too short": 10, "past n": 4}),
        (3, {"live": 4, "no block": 2, "table too short": 2, "past n": 12}),
    ],
    ids=["request-2-of-2", "request--1", "hole-and-short", "short"],
)
def test_a_pad_says_why_it_is_one(row, reasons):
    # b = 2: columns 0-1 lie in entry 0, 2-3 in entry 1, 4-5 in entry 2; position 2047 sees 16 entries, 1023 sees 8.
    found = [trace.path(BAD_TABLES, "decode", row, column).reason for column in range(20)]
    assert {reason: found.count(reason) for reason in set(found)} == reasons


def test_the_worked_example_of_position_1000():
    inputs = trace.Launch((1000,), (0,), ((40, 10, 30, 20),), (5,), num_decode=1, width=128)
    (cells, lens) = trace.row_loop(inputs, step=1024)
    assert [lane.value for lane in cells.lanes[:8]] == [80, 81, 20, 21, 60, 61, 40, -1]
    assert lens.lanes == [trace.Lane(0, 0, "live", 7)]


@pytest.mark.parametrize(("kind", "row", "column"), [("decode", 5, 0), ("decode", 0, 8), ("prefill", 1, 0)])
def test_a_path_to_a_cell_that_is_not_there_is_refused(kind, row, column):
    with pytest.raises(IndexError, match="is outside"):
        trace.path(PADDED, kind, row, column)
