"""The Triton kernels that write C128A index rows: `row_loop` and `tiled`.

    row_loop    the report's shape: one program a row, which walks the width in steps of STEP columns
    tiled       a 2-D grid: one program writes ROWS rows × COLS columns, decode groups first, prefill groups after them

Both write the same cells (see reference.py for the definition) and guard the same reads: a request outside the table,
a column the table lacks and a negative block number give -1 and read nothing.

Only dtypes and constexprs may choose a compiled variant. Triton would also key a variant on each integer (equal to 1,
a multiple of 16, other) and on each pointer's alignment; both are switched off, since token counts and table strides
change while serving. What 16-byte stores need to know is stated once, at compilation (`TiledVariant`).
"""

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


def _row_loop(
    decode_ptr,  # (num_decode, width) int32, decode_stride elements a row
    decode_stride,
    lens_ptr,  # (num_decode,) int32
    prefill_ptr,  # (tokens - num_decode, width) int32, prefill_stride elements a row
    prefill_stride,
    positions_ptr,  # (tokens,) int64
    compress_ratio,  # tokens per compressed entry
    width,  # columns to write
    num_decode,  # rows that are decode rows
    requests_ptr,  # (tokens,) int32, row of the block table
    table_ptr,  # (table_rows, table_cols) int32, table_stride elements a row
    table_stride,
    table_rows,
    table_cols,
    block_size,  # compressed entries per KV block
    slots_ptr,  # (tokens,) int64, < 0 for a padded token
    STEP: tl.constexpr,  # columns a trip
):
    """Write one row, STEP columns a trip; a decode row counts its entries on the way."""
    token = tl.program_id(0)
    n = tl.minimum(tl.maximum(tl.load(positions_ptr + token) + 1, 0) // compress_ratio, width)

    if token < num_decode:
        slot = tl.load(slots_ptr + token)
        request = tl.load(requests_ptr + token)
        backed = tl.where((request >= 0) & (request < table_rows), n, 0)
        count = tl.zeros((), dtype=tl.int32)
        for start in range(0, width, STEP):
            column = start + tl.arange(0, STEP)
            entry = column // block_size
            live = (column < backed) & (entry < table_cols)
            block = tl.load(table_ptr + request.to(tl.int64) * table_stride + entry, mask=live, other=-1)
            slot_id = tl.where(block >= 0, block * block_size + column % block_size, -1)
            tl.store(decode_ptr + token.to(tl.int64) * decode_stride + column, slot_id, mask=column < width)
            count += tl.sum((column < n).to(tl.int32))
        tl.store(lens_ptr + token, tl.where(slot < 0, 0, count))
    else:
        row = (token - num_decode).to(tl.int64)
        for start in range(0, width, STEP):
            column = start + tl.arange(0, STEP)
            index = tl.where(column < n, column, -1)
            tl.store(prefill_ptr + row * prefill_stride + column, index, mask=column < width)


_ROW_LOOP_INTEGERS = [
    "decode_stride",
    "prefill_stride",
    "compress_ratio",
    "width",
    "num_decode",
    "table_stride",
    "table_rows",
    "table_cols",
    "block_size",
]
_POINTERS = ["decode_ptr", "lens_ptr", "prefill_ptr", "positions_ptr", "requests_ptr", "table_ptr", "slots_ptr"]

row_loop = triton.jit(_row_loop, do_not_specialize=_ROW_LOOP_INTEGERS, do_not_specialize_on_alignment=_POINTERS)
row_loop_specialised = triton.jit(_row_loop)  # as the released engines decorate it: for the census of variants


@triton.jit
def tiled(
    decode_ptr,  # (num_decode, width) int32, decode_stride elements a row
    lens_ptr,  # (num_decode,) int32
    prefill_ptr,  # (num_tokens - num_decode, width) int32, prefill_stride elements a row
    positions_ptr,  # (num_tokens,) int64
    requests_ptr,  # (num_decode,) int32, row of the block table
    table_ptr,  # (table_rows, table_cols) int32, table_stride elements a row
    slots_ptr,  # (num_decode,) int64, < 0 for a padded token
    num_tokens,
    num_decode,  # rows that are decode rows
    width,  # columns to write
    decode_stride,
    prefill_stride,
    table_stride,
    table_rows,
    table_cols,
    RATIO: tl.constexpr,  # tokens per compressed entry
    BLOCK: tl.constexpr,  # compressed entries per KV block
    ROWS: tl.constexpr,  # rows a program
    COLS: tl.constexpr,  # columns a program
    OVERLAP: tl.constexpr,  # launched while the kernel before may still run: wait for it
):
    """Write ROWS × COLS cells of decode or of prefill rows, and the lens of the rows from the first column tile."""
    if OVERLAP:
        gdc_wait()
    group = tl.program_id(0)
    tile = tl.program_id(1)
    decode_groups = (num_decode + ROWS - 1) // ROWS
    column = tile * COLS + tl.arange(0, COLS)[None, :]  # (1, COLS)

    if group < decode_groups:
        row = group * ROWS + tl.arange(0, ROWS)  # (ROWS,)
        held = row < num_decode
        position = tl.load(positions_ptr + row, mask=held, other=-1)
        request = tl.load(requests_ptr + row, mask=held, other=-1)
        n = tl.minimum(tl.maximum(position + 1, 0) // RATIO, width).to(tl.int32)  # (ROWS,)
        known = (request >= 0) & (request < table_rows)
        if tile == 0:
            slot = tl.load(slots_ptr + row, mask=held, other=-1)
            tl.store(lens_ptr + row, tl.where(slot < 0, 0, n), mask=held)
        # Wide tiles load each block number once and spread it over its cells: fewer loads, more steps from one to its
        # stores. In a narrow tile, whose time is the way to the first store, each cell loads its own.
        CELLS: tl.constexpr = BLOCK if COLS >= 1024 and BLOCK <= 128 and (BLOCK & (BLOCK - 1)) == 0 else 1
        first = tile * COLS + tl.arange(0, COLS // CELLS) * CELLS  # (COLS / CELLS,), the first column of each load
        entry = first // BLOCK
        live = (first[None, :] < n[:, None]) & known[:, None] & (entry < table_cols)[None, :]
        block = tl.load(
            table_ptr + request.to(tl.int64)[:, None] * table_stride + entry[None, :], mask=live, other=-1
        )  # (ROWS, COLS / CELLS)
        slot_id = tl.where(block >= 0, block * BLOCK + (first % BLOCK)[None, :], -CELLS)
        if CELLS > 1:
            slot_id = tl.reshape(slot_id[:, :, None] + tl.arange(0, CELLS)[None, None, :], (ROWS, COLS))
        slot_id = tl.where(column < n[:, None], tl.maximum(slot_id, -1), -1)  # (ROWS, COLS)
        out = decode_ptr + row.to(tl.int64)[:, None] * decode_stride + column
        tl.store(out, slot_id, mask=held[:, None] & (column < width))
    else:
        row = (group - decode_groups) * ROWS + tl.arange(0, ROWS)  # (ROWS,), counted from the first prefill row
        held = row < num_tokens - num_decode
        position = tl.load(positions_ptr + num_decode + row, mask=held, other=-1)
        n = tl.minimum(tl.maximum(position + 1, 0) // RATIO, width).to(tl.int32)  # (ROWS,)
        out = prefill_ptr + row.to(tl.int64)[:, None] * prefill_stride + column
        tl.store(out, tl.where(column < n[:, None], column, -1), mask=held[:, None] & (column < width))


_INT64_POINTERS = ("positions_ptr", "slots_ptr")
_VECTOR = Signature(
    _INT64_POINTERS,
    dict.fromkeys(("decode_ptr", "prefill_ptr"), VECTOR_BYTES)
    | dict.fromkeys(("width", "decode_stride", "prefill_stride"), VECTOR_BYTES // 4),
)
_SCALAR = Signature(_INT64_POINTERS, {})


@dataclass(frozen=True, slots=True)
class TiledVariant:
    """What tells one compiled `tiled` from another.

    vector states that both output pointers lie on 16 bytes and that the width and both row strides are multiples of 4
    elements: with it the rows are stored 16 bytes at a time. overlap lets the launch start while the kernel before it
    ends (programmatic dependent launch): the first thing a program then does is to wait for that kernel and its writes.
    """

    device: int
    tile: Tile
    compress_ratio: int
    block_size: int
    vector: bool
    overlap: bool

    @property
    def constants(self) -> dict[str, int]:
        """The constexpr arguments of `tiled`, in its order."""
        return {
            "RATIO": self.compress_ratio,
            "BLOCK": self.block_size,
            "ROWS": self.tile.rows,
            "COLS": self.tile.cols,
            "OVERLAP": int(self.overlap),
        }

    def compile(self, target: GPUTarget | None = None) -> Any:
        """The compiled kernel for a target; None is the current GPU."""
        signature = _VECTOR if self.vector else _SCALAR
        return compile_kernel(tiled, signature, self.constants, self.tile.warps, overlap=self.overlap, target=target)
