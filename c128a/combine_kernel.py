"""The Triton kernels of the prefill combine: `from_positions` and `from_rows` (see combine.py)."""

from __future__ import annotations

import c128a.backend  # noqa: F401 - decides TRITON_INTERPRET before Triton is imported

from dataclasses import dataclass
from typing import Any

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.language.extra.cuda import gdc_wait

from c128a.compiled import VECTOR_BYTES, Signature, compile_kernel
from c128a.tiles import Tile


@triton.jit
def from_positions(
    out_ptr,  # (tokens, width) int32, out_stride elements a row
    lens_ptr,  # (tokens,) int32
    positions_ptr,  # (tokens,) int64
    requests_ptr,  # (tokens,) int32
    seq_lens_ptr,  # (requests,) int32
    gather_lens_ptr,  # (requests,) int32
    tokens,
    requests,
    width,  # columns of a row
    out_stride,
    workspace_rows,  # workspace rows a request
    compressed_rows,  # of them, rows reserved for compressed entries
    RATIO: tl.constexpr,  # tokens per compressed entry
    SPAN: tl.constexpr,  # tokens of the sliding window
    LIVE: tl.constexpr,  # 0: write whole rows; else write the live prefix in blocks of LIVE columns
    ROWS: tl.constexpr,  # rows a program
    COLS: tl.constexpr,  # columns a program
    OVERLAP: tl.constexpr,  # launched while the kernel before may still run: wait for it
):
    """Write ROWS × COLS cells of combined rows, and the lens of the rows from the first column tile."""
    if OVERLAP:
        gdc_wait()
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)  # (ROWS,)
    tile = tl.program_id(1)
    held = row < tokens
    position = tl.load(positions_ptr + row, mask=held, other=-1)
    request = tl.load(requests_ptr + row, mask=held, other=-1)
    known = (request >= 0) & (request < requests)
    context = tl.load(seq_lens_ptr + request, mask=known, other=0)
    gathered = tl.load(gather_lens_ptr + request, mask=known, other=0)

    # seq_lens are int32, so a position of 2^31 - 1 and more lies outside of every sequence, as one below 0 does.
    position = tl.where(known & (position < 2**31 - 1), tl.maximum(position, -1), -1).to(tl.int32)
    n = (position + 1) // RATIO
    start = tl.maximum(position - SPAN + 1, 0)
    length = n + position - start + 1
    length = tl.where(length <= width, length, 0)
    if tile == 0:
        tl.store(lens_ptr + row, length, mask=held)

    base = request * workspace_rows
    token = base + compressed_rows + start - (context - gathered) - n  # added past n
    column = tile * COLS + tl.arange(0, COLS)[None, :]  # (1, COLS)
    index = column + tl.where(column < n[:, None], base[:, None], token[:, None])
    index = tl.where(column < length[:, None], index, -1)
    end = tl.minimum((length + LIVE - 1) // LIVE * LIVE, width)[:, None] if LIVE > 0 else width
    out = out_ptr + row.to(tl.int64)[:, None] * out_stride + column
    tl.store(out, index, mask=held[:, None] & (column < end))


_INT64_POINTERS = ("positions_ptr",)
_VECTOR = Signature(
    _INT64_POINTERS, {"out_ptr": VECTOR_BYTES} | dict.fromkeys(("width", "out_stride"), VECTOR_BYTES // 4)
)
_SCALAR = Signature(_INT64_POINTERS, {})


@dataclass(frozen=True, slots=True)
class CombineVariant:
    """What tells one compiled `from_positions` from another."""

    device: int
    tile: Tile
    compress_ratio: int
    window: int
    live: int
    vector: bool
    overlap: bool

    @property
    def constants(self) -> dict[str, int]:
        """The constexpr arguments, in the kernel's order."""
        return {
            "RATIO": self.compress_ratio,
            "SPAN": self.window,
            "LIVE": self.live,
            "ROWS": self.tile.rows,
            "COLS": self.tile.cols,
            "OVERLAP": int(self.overlap),
        }

    def compile(self, target: GPUTarget | None = None) -> Any:
        """The compiled kernel for a target; None is the current GPU."""
        signature = _VECTOR if self.vector else _SCALAR
        return compile_kernel(
            from_positions, signature, self.constants, self.tile.warps, overlap=self.overlap, target=target
        )


@triton.jit
def from_rows(
    out_ptr,  # (tokens, width) int32, filled with -1, out_stride elements a row
    out_stride,
    lens_ptr,  # (tokens,) int32
    rows_ptr,  # (tokens, topk_width) int32, rows_stride elements a row
    rows_stride,
    starts_ptr,  # (requests + 1,) int32, first token of each request
    seq_lens_ptr,  # (requests,) int32
    gather_lens_ptr,  # (requests,) int32
    workspace_rows,
    compressed_rows,
    topk_width,
    tokens,  # rows of the chunk: nothing is written outside of them, whatever the offsets say
    RATIO: tl.constexpr,
    SPAN: tl.constexpr,
    PADDED: tl.constexpr,  # the next power of two of topk_width
):
    """Copy the live ids of every n-th row of a request and append the window.

    The first request takes the tokens before its offset as well, the last one those behind: no request has them, and
    their lens is 0.
    """
    request = tl.program_id(0)
    requests = tl.num_programs(0)
    own = tl.load(starts_ptr + request)
    end = tl.load(starts_ptr + request + 1)
    first = tl.where(request == 0, 0, tl.minimum(tl.maximum(own, 0), tokens))
    last = tl.where(request == requests - 1, tokens, tl.minimum(tl.maximum(end, 0), tokens))
    context = tl.load(seq_lens_ptr + request)
    gathered_from = context - tl.load(gather_lens_ptr + request)
    base = request * workspace_rows
    column = tl.arange(0, PADDED)
    behind = tl.arange(0, SPAN)
    for token in range(first + tl.program_id(1), last, tl.num_programs(1)):
        position = tl.where((token >= own) & (token < end), tl.maximum(context - end + token, -1), -1)
        n = tl.minimum((position + 1) // RATIO, topk_width)
        start = tl.maximum(position - SPAN + 1, 0)
        count = position - start + 1
        row = tl.cast(token, tl.int64)
        out = out_ptr + row * out_stride
        ids = tl.load(rows_ptr + row * rows_stride + column, mask=column < n, other=0)
        tl.store(out + column, ids + base, mask=column < n)
        tl.store(out + n + behind, base + compressed_rows + start - gathered_from + behind, mask=behind < count)
        tl.store(lens_ptr + token, n + count)
