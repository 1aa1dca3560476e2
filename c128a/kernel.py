"""The Triton kernels that write C128A index rows, and how a kernel is compiled and launched.

    row_loop    the report's shape: one program a row, which walks the width in steps of ROW_LOOP_STEP columns
    tiled       a 2-D grid: one program writes ROWS rows × COLS columns, decode groups first, prefill groups after them

Both write the same cells (see reference.py for the definition) and guard the same reads: a request outside the table,
a column the table lacks and a negative block number give -1 and read nothing.

Only dtypes and constexprs may choose a compiled variant. Triton would also key a variant on each integer (equal to 1,
a multiple of 16, other) and on each pointer's alignment; both are switched off, since token counts and table strides
change while serving. For 16-byte stores the widths and strides of rows are passed in units of UNIT elements.
"""

from __future__ import annotations

import c128a.backend as backend  # decides TRITON_INTERPRET before Triton is imported

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import pairwise
from typing import Any

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_wait

from c128a.layout import ITEMSIZE, RowLayout
from c128a.tiles import Tile
from c128a.width import WHOLE, Shard

ROW_LOOP_STEP = 1024  # columns a trip of the row loop, as in the report
UNIT = 4  # elements of the widest store of one thread, 16 bytes
INT32_MAX = 2**31 - 1  # sizes and strides travel to the kernels as 32-bit integers; offsets are 64-bit

Launcher = Callable[..., None]  # of a kernel's tensors
Facts = tuple[torch.dtype, torch.device, torch.Size, tuple[int, ...]]  # dtype, device, shape, stride of a tensor


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


_POINTERS = ["decode_ptr", "lens_ptr", "prefill_ptr", "positions_ptr", "requests_ptr", "table_ptr", "slots_ptr"]
_INTEGERS = ["decode_stride", "prefill_stride", "compress_ratio", "width", "num_decode", "block_size"]
_INTEGERS += ["table_stride", "table_rows", "table_cols"]

row_loop = triton.jit(_row_loop, do_not_specialize=_INTEGERS, do_not_specialize_on_alignment=_POINTERS)
row_loop_specialised = triton.jit(_row_loop)  # as the released engines decorate it: for the census of variants


@triton.jit
def share_of_rank(
    position, width, RATIO: tl.constexpr, RANK: tl.constexpr, RANKS: tl.constexpr, INTERLEAVE: tl.constexpr
):
    """How many of the entries that a position sees one rank holds, at most the width; 32 bits hold more than fit."""
    seen = tl.minimum(tl.maximum(position + 1, 0) // RATIO, (width + INTERLEAVE) * RANKS).to(tl.int32)
    behind = tl.maximum(seen - RANK * INTERLEAVE, 0)  # entries from the rank's first turn on
    turns = behind // (INTERLEAVE * RANKS)
    return tl.minimum(turns * INTERLEAVE + tl.minimum(behind % (INTERLEAVE * RANKS), INTERLEAVE), width)


@triton.jit(
    do_not_specialize=[
        "num_tokens", "num_decode", "width", "decode_stride", "prefill_stride", "table_stride", "table_rows",
        "table_cols",
    ],
    do_not_specialize_on_alignment=["lens_ptr", "positions_ptr", "requests_ptr", "table_ptr", "slots_ptr"],
)  # fmt: skip
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
    width,  # columns to write, in units of UNIT
    decode_stride,  # in units of UNIT
    prefill_stride,  # in units of UNIT
    table_stride,
    table_rows,
    table_cols,
    RATIO: tl.constexpr,  # tokens per compressed entry
    BLOCK: tl.constexpr,  # compressed entries per KV block
    RANK: tl.constexpr,  # decode rows list the entries of this rank …
    RANKS: tl.constexpr,  # … of so many, which own the entries in turns
    INTERLEAVE: tl.constexpr,  # entries a turn
    OWN_TABLE: tl.constexpr,  # the table lists this rank's entries, not all
    ROWS: tl.constexpr,  # rows a program
    COLS: tl.constexpr,  # columns a program
    UNIT: tl.constexpr,  # elements: 4 where all rows start on 16 bytes, else 1
    OVERLAP: tl.constexpr,  # launched while the kernel before may still run: wait for it
):
    """Write ROWS × COLS cells of decode or of prefill rows, and the lens of the rows from the first column tile."""
    if OVERLAP:
        gdc_wait()
    width *= UNIT
    group = tl.program_id(0)
    tile = tl.program_id(1)
    decode_groups = (num_decode + ROWS - 1) // ROWS
    column = tile * COLS + tl.arange(0, COLS)[None, :]  # (1, COLS)

    if group < decode_groups:
        row = group * ROWS + tl.arange(0, ROWS)  # (ROWS,)
        held = row < num_decode
        position = tl.load(positions_ptr + row, mask=held, other=-1)
        request = tl.load(requests_ptr + row, mask=held, other=-1)
        if RANKS > 1:
            n = share_of_rank(position, width, RATIO, RANK, RANKS, INTERLEAVE)  # (ROWS,)
        else:
            n = tl.minimum(tl.maximum(position + 1, 0) // RATIO, width).to(tl.int32)  # (ROWS,)
        known = (request >= 0) & (request < table_rows)
        if tile == 0:
            slot = tl.load(slots_ptr + row, mask=held, other=-1)
            tl.store(lens_ptr + row, tl.where(slot < 0, 0, n), mask=held)
        # Wide tiles load each block number once and spread it over its cells: fewer loads, more steps from one to its
        # stores. In a narrow tile, whose time is the way to the first store, each cell loads its own.
        SPREAD: tl.constexpr = COLS >= 1024 and BLOCK <= 128 and (BLOCK & (BLOCK - 1)) == 0
        SCATTERED: tl.constexpr = RANKS > 1 and not OWN_TABLE
        CELLS: tl.constexpr = BLOCK if SPREAD and (not SCATTERED or INTERLEAVE % BLOCK == 0) else 1
        first = tile * COLS + tl.arange(0, COLS // CELLS) * CELLS  # (COLS / CELLS,), the first column of each load
        own = first
        if SCATTERED:
            own = (first // INTERLEAVE * RANKS + RANK) * INTERLEAVE + first % INTERLEAVE
        entry = own // BLOCK
        live = (first[None, :] < n[:, None]) & known[:, None] & (entry < table_cols)[None, :]
        block = tl.load(
            table_ptr + request.to(tl.int64)[:, None] * table_stride + entry[None, :], mask=live, other=-1
        )  # (ROWS, COLS / CELLS)
        slot_id = tl.where(block >= 0, block * BLOCK + (own % BLOCK)[None, :], -CELLS)
        if CELLS > 1:
            slot_id = tl.reshape(slot_id[:, :, None] + tl.arange(0, CELLS)[None, None, :], (ROWS, COLS))
        slot_id = tl.where(column < n[:, None], tl.maximum(slot_id, -1), -1)  # (ROWS, COLS)
        out = decode_ptr + row.to(tl.int64)[:, None] * (decode_stride * UNIT) + column
        tl.store(out, slot_id, mask=held[:, None] & (column < width))
    else:
        row = (group - decode_groups) * ROWS + tl.arange(0, ROWS)  # (ROWS,), counted from the first prefill row
        held = row < num_tokens - num_decode
        position = tl.load(positions_ptr + num_decode + row, mask=held, other=-1)
        n = tl.minimum(tl.maximum(position + 1, 0) // RATIO, width).to(tl.int32)  # (ROWS,)
        out = prefill_ptr + row.to(tl.int64)[:, None] * (prefill_stride * UNIT) + column
        tl.store(out, tl.where(column < n[:, None], column, -1), mask=held[:, None] & (column < width))


@dataclass(frozen=True, eq=False, repr=False)
class Kernel:
    """A kernel that is compiled before its first launch: its arguments are tensors, then integers, then constants.

    Arguments named …_ptr are int32 tensors but for those in `int64`; the others are 32-bit integers. `rows` names the
    tensors of rows: no other argument's alignment chooses a variant.
    """

    function: Any
    int64: tuple[str, ...]
    rows: tuple[str, ...]

    @property
    def tensors(self) -> list[str]:
        """The names of its tensors, in order."""
        return [name for name in self.function.arg_names if name.endswith("_ptr")]

    @property
    def integers(self) -> list[str]:
        """The names of its integers, in order."""
        return [name for name in self.function.arg_names if name.islower() and not name.endswith("_ptr")]

    def __repr__(self) -> str:
        return self.function.__name__


TILED = Kernel(tiled, int64=("positions_ptr", "slots_ptr"), rows=("decode_ptr", "prefill_ptr"))


@dataclass(frozen=True)
class Variant:
    """What tells one compiled kernel from another: which variants exist is decided by this and nothing else.

    constants are the kernel's constexpr arguments, in its order, without the last two: `unit`, which is 4 where all
    rows start on 16 bytes, and `overlap`, whether the launch may start while the kernel before it ends.
    """

    kernel: Kernel
    device: int  # index of the GPU
    constants: tuple[int, ...]
    warps: int
    unit: int
    overlap: bool

    @property
    def all_constants(self) -> tuple[int, ...]:
        """Every constexpr argument, in the kernel's order."""
        return (*self.constants, self.unit, int(self.overlap))

    @property
    def options(self) -> dict[str, Any]:
        """What Triton's compiler is told beside the arguments."""
        return {"num_warps": self.warps} | ({"launch_pdl": True} if self.overlap else {})

    def compile(self) -> Any:
        """The compiled kernel, by Triton's own JIT, for the variant's GPU.

        Raises RuntimeError where the kernels were decorated for the interpreter (TRITON_INTERPRET=1).
        """
        if backend.INTERPRET:
            raise RuntimeError("the kernels are interpreted in this process; set TRITON_INTERPRET=0 before it starts")
        kernel = self.kernel
        with torch.cuda.device(self.device):
            tensors = []
            for name in kernel.tensors:
                dtype = torch.int64 if name in kernel.int64 else torch.int32
                unaligned = self.unit == 1 and name in kernel.rows
                tensors.append(torch.empty(2, dtype=dtype, device="cuda")[int(unaligned) :])
            arguments = (*tensors, *[2] * len(kernel.integers), *self.all_constants)
            return kernel.function.warmup(*arguments, grid=(1, 1, 1), **self.options)


def tiled_variant(
    device: int, tile: Tile, compress_ratio: int, block_size: int, *, shard: Shard = WHOLE, unit: int = UNIT
) -> Variant:
    """The variant of `tiled` for a tile, a compress ratio in tokens per entry and a block size in entries."""
    constants = (compress_ratio, block_size, *shard, tile.rows, tile.cols)
    return Variant(TILED, device, constants, tile.warps, unit, can_overlap(device))


def row_unit(*byte_counts: int) -> int:
    """The unit in which widths and strides of rows are passed: 4 elements where all of them start on 16 bytes, else 1.

    byte_counts are the addresses, widths and strides of the rows, in bytes.

    >>> row_unit(4096, 512), row_unit(4096, 516)
    (4, 1)
    """
    return UNIT if all(count % (UNIT * ITEMSIZE) == 0 for count in byte_counts) else 1


@cache
def can_overlap(device: int) -> bool:
    """Whether a launch may start while the kernel before it ends: on Hopper (compute capability 9.0) and later."""
    return backend.HAS_GPU and not backend.INTERPRET and torch.cuda.get_device_capability(device) >= (9, 0)


_loaded: dict[Variant, Any] = {}


def loaded_variants() -> list[Variant]:
    """The variants compiled and loaded in this process so far."""
    return list(_loaded)


def load(variant: Variant) -> Any:
    """The compiled kernel of a variant, compiled and loaded on its device on first use, then kept."""
    if variant not in _loaded:
        with backend.kernel_lock, torch.cuda.device(variant.device):
            if variant not in _loaded:
                _loaded[variant] = variant.compile()
    return _loaded[variant]


def launcher(variant: Variant, grid: tuple[int, int, int], integers: tuple[int, ...]) -> Launcher:
    """A function of the kernel's tensors that launches it over a grid, on the current stream of the variant's device.

    Triton's ordinary launch looks at every argument to find the variant it needs, and compiles a new one when it has
    not seen the combination; this one knows its variant. It holds no tensor.
    """
    tail = (*integers, *variant.all_constants)
    if backend.INTERPRET:
        function = variant.kernel.function

        def interpret(*tensors: torch.Tensor) -> None:
            with backend.kernel_lock:
                function[grid](*tensors, *tail)

        return interpret

    run, device = load(variant)[grid], variant.device

    def launch(*tensors: torch.Tensor) -> None:
        if torch.cuda.current_device() == device:
            run(*tensors, *tail)
        else:
            with torch.cuda.device(device):
                run(*tensors, *tail)

    return launch


@dataclass(frozen=True)
class Plan:
    """A build that passed every check of `c128a.metadata`: what it writes and how it is launched.

    Its launches take the tensors in the order of `tiled`: decode rows, lens, prefill rows, positions,
    token_to_req_indices, block_table, slot_mapping.
    """

    decode: RowLayout
    prefill: RowLayout
    table: tuple[int, int, int]  # row stride, rows and columns of the block table
    compress_ratio: int  # tokens per compressed entry
    block_size: int  # compressed entries per KV block
    device: int  # index of the GPU
    tile: Tile
    unit: int  # 4 where all rows start on 16 bytes, else 1
    shard: Shard = WHOLE  # decode rows list the entries of one rank
    overlap: bool = True  # whether a launch may start while the kernel before it ends, where the GPU can

    @cached_property
    def num_tokens(self) -> int:
        """Rows that are written, decode and prefill."""
        return self.decode.rows + self.prefill.rows

    @cached_property
    def views(self) -> tuple[tuple[Any, Any], ...]:
        """Shape and strides of the decode rows, of lens and of the prefill rows, each in its buffer."""
        rows = [((each.rows, each.width), (each.row_stride, 1)) for each in (self.decode, self.prefill)]
        return rows[0], ((self.decode.rows,), (1,)), rows[1]

    @cached_property
    def launch(self) -> Launcher:
        """Launch `tiled`."""
        decode, prefill, tile, unit = self.decode, self.prefill, self.tile, self.unit
        sizes = (self.device, tile, self.compress_ratio, self.block_size)
        variant = tiled_variant(*sizes, shard=self.shard, unit=unit)
        if not self.overlap:
            variant = replace(variant, overlap=False)
        groups = -(-decode.rows // tile.rows) - (-prefill.rows // tile.rows)
        widths = (decode.width // unit, decode.row_stride // unit, prefill.row_stride // unit)
        grid = (groups, -(-decode.width // tile.cols), 1)
        return launcher(variant, grid, (self.num_tokens, decode.rows, *widths, *self.table))

    def launch_row_loop(
        self, decode: torch.Tensor, lens: torch.Tensor, prefill: torch.Tensor, *inputs: torch.Tensor
    ) -> None:
        """Launch `row_loop` by Triton's ordinary launch."""
        positions, requests, table, slots = inputs
        with backend.kernel_lock:
            row_loop[(self.num_tokens,)](
                decode, self.decode.row_stride, lens, prefill, self.prefill.row_stride, positions, self.compress_ratio,
                self.decode.width, self.decode.rows, requests, table, *self.table, self.block_size, slots,
                STEP=ROW_LOOP_STEP,
            )  # fmt: skip


def facts(tensor: torch.Tensor) -> Facts:
    """What is checked of a tensor before a launch; raises AttributeError for what is no tensor."""
    return tensor.dtype, tensor.device, tensor.shape, tensor.stride()


def check_tensor(name: str, tensor: Facts, dtype: torch.dtype, dimensions: int, device: torch.device) -> None:
    """Raise TypeError for another dtype and ValueError for another device, other dimensions or a strided last one."""
    given, where, shape, stride = tensor
    if given != dtype:
        raise TypeError(f"{name} is {given}; it must be {dtype}")
    if where != device:
        raise ValueError(f"{name} is on {where}, another tensor on {device}; all tensors must be on one device")
    if len(shape) != dimensions:
        raise ValueError(f"{name} has shape {tuple(shape)}; it must have {dimensions} dimension(s)")
    if shape[-1] > 1 and stride[-1] != 1:
        raise ValueError(f"{name} has strides {stride}; its last dimension must be contiguous (stride 1)")
    if stride[0] > INT32_MAX:
        raise ValueError(f"{name} has a row stride of {stride[0]}; it must be at most {INT32_MAX}")


def check_apart(written: dict[str, tuple[int, int]]) -> None:
    """Raise ValueError where two tensors, by name the address and the number of their bytes to write, overlap."""
    ranges = sorted((first, first + size, name) for name, (first, size) in written.items() if size)
    for (_, end, name), (start, _, other) in pairwise(ranges):
        if start < end:
            raise ValueError(f"{name} and {other} overlap by {end - start:,} bytes; they must lie apart")
