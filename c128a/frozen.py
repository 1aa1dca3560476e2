"""Readers that keep the row stride of their capture, and the two cures.

A CUDA graph stores launch parameters, and a row stride is one. The metadata builder runs before the replay, so a graph
captured at one width may meet rows built at another. Packed rows have moved by then; pitched rows have not. The other
cure is one graph for each width a policy can reach (`WidthGraphs`), which makes packed rows safe.

Without a GPU nothing is captured: the same reader runs over the same buffers with its stride kept, and says so.
"""

from __future__ import annotations

import c128a.backend as backend

from collections.abc import Callable

import torch
import triton
import triton.language as tl

from c128a.layout import RowLayout
from c128a.metadata import C128AMetadata, C128AMetadataBuilder
from c128a.width import reachable_widths

READ_STEP = 1024  # columns a program of the reader


@triton.jit
def _read_rows(
    rows_ptr,  # (rows, width) int32, row_stride elements a row
    lens_ptr,  # (rows,) int32
    out_ptr,  # (rows, width) int32, contiguous
    row_stride,  # a launch parameter: what a graph freezes
    width,
    STEP: tl.constexpr,  # columns a program
):
    """Copy the ids that a decode kernel would look at, columns 0 … lens-1 of each row; the rest is -1."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * STEP + tl.arange(0, STEP)
    lens = tl.load(lens_ptr + row)
    ids = tl.load(rows_ptr + row * row_stride + column, mask=column < tl.minimum(lens, width), other=-1)
    tl.store(out_ptr + row * width + column, ids, mask=column < width)


class FrozenReader:
    """A reader of decode rows, captured over one step's rows: base address, row stride and row count stay as they were.

    It reads lens anew at each replay, as decode kernels do. `kind` says in words what it is.
    """

    kind = "a reader with a kept stride, interpreted on the CPU" if backend.INTERPRET else "a captured CUDA graph"

    def __init__(self, metadata: C128AMetadata) -> None:
        if metadata.global_decode_topk_indices is None or metadata.decode_topk_lens is None:
            raise ValueError("metadata has no decode rows; a reader needs at least one")
        rows, lens = metadata.global_decode_topk_indices[:, 0], metadata.decode_topk_lens
        self.width, row_stride = rows.shape[1], rows.stride(0)
        self.out = torch.empty(rows.shape, dtype=torch.int32, device=rows.device)  # (rows, width)
        grid = (rows.shape[0], -(-self.width // READ_STEP))

        def read() -> None:
            with backend.kernel_lock:
                _read_rows[grid](rows, lens, self.out, row_stride, self.width, STEP=READ_STEP)

        self.replay: Callable[[], None] = read
        if not backend.INTERPRET:
            read()  # compiles
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                read()
            self.replay = graph.replay

    def wrong_rows(self, expected: torch.Tensor, lens: torch.Tensor) -> torch.Tensor:
        """Replay, and tell which rows were read wrong.

        expected (rows, any width) int32 and lens (rows,) int32 are what the rows hold → (rows,) bool on the device.
        """
        self.replay()
        columns = min(self.width, expected.shape[1])
        live = torch.arange(columns, device=lens.device) < lens[:, None]  # (rows, columns)
        return ((self.out[:, :columns] != expected[:, :columns]) & live).any(1) | (lens > columns)


class WidthGraphs:
    """One frozen reader for each width a builder can reach: with the right one replayed, packed rows are safe.

    Captures over the builder's decode buffer for `rows` decode rows; costs one graph a width (7 at 1,048,576 tokens
    with the power-of-two policy).
    """

    def __init__(self, builder: C128AMetadataBuilder, rows: int) -> None:
        if not 1 <= rows <= builder.max_decode_tokens:
            raise ValueError(f"rows is {rows}; the builder holds 1 … {builder.max_decode_tokens} decode rows")
        self.rows = rows
        self.readers: dict[int, FrozenReader] = {}
        for width in reachable_widths(builder.capacity, policy=builder.policy):
            stride = RowLayout.named(builder.layout, rows, width, builder.capacity)
            view = stride.view(builder.global_decode_buffer).unsqueeze(1)
            captured = C128AMetadata(width, rows, view, builder.decode_lens_buffer[:rows], None)
            builder.decode_lens_buffer[:rows].zero_()  # the capture itself must not look at old lens
            self.readers[width] = FrozenReader(captured)

    def reader(self, metadata: C128AMetadata) -> FrozenReader:
        """The reader captured for this step's width; raises ValueError where the step has other rows."""
        if metadata.num_decode_tokens != self.rows:
            raise ValueError(f"metadata has {metadata.num_decode_tokens} decode rows; the graphs hold {self.rows}")
        return self.readers[metadata.width]
