"""From checked arguments to a kernel launch: the plan of a build, the compiled variants that are held, the launch.

A plan depends only on shapes, strides, dtypes, devices and host integers: `make_plan` checks them all, and raises
before anything is launched or written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import torch

from c128a import backend
from c128a.compiled import VECTOR_BYTES, can_overlap, hold
from c128a.kernel import TiledVariant, row_loop, tiled
from c128a.layout import ITEMSIZE, LAYOUTS, Layout, RowLayout
from c128a.tiles import Tile, tile_shape
from c128a.width import host_integer

ROW_LOOP_STEP = 1024  # columns a trip of the row loop, as in the report
INT32_MAX = 2**31 - 1  # sizes and strides travel to the kernel as 32-bit integers, offsets are 64-bit

_DTYPES = {
    "positions": torch.int64,
    "token_to_req_indices": torch.int32,
    "block_table": torch.int32,
    "slot_mapping": torch.int64,
    "global_decode_buffer": torch.int32,
    "decode_lens_buffer": torch.int32,
    "prefill_buffer": torch.int32,
}
_DIMS = dict.fromkeys(_DTYPES, 1) | {"block_table": 2, "global_decode_buffer": 2, "prefill_buffer": 2}

Launcher = Callable[..., None]
Facts = tuple[torch.dtype, torch.device, torch.Size, tuple[int, ...]]  # dtype, device, shape, stride of a tensor
Memory = tuple[int, int]  # address of a tensor's first element, bytes of its storage from there on


@dataclass(frozen=True)
class Plan:
    """A build that passed every check: what to write, and how to launch it."""

    num_tokens: int
    num_decode: int
    width: int
    decode: RowLayout
    prefill: RowLayout
    table_stride: int
    table_rows: int
    table_cols: int
    device: torch.device
    compress_ratio: int
    block_size: int
    tile: Tile

    @cached_property
    def grid(self) -> tuple[int, int, int]:
        """Programs of `tiled`: row groups (decode groups first), column tiles."""
        groups = -(-self.decode.rows // self.tile.rows) - (-self.prefill.rows // self.tile.rows)
        return groups, -(-self.width // self.tile.cols), 1

    @cached_property
    def integers(self) -> tuple[int, ...]:
        """The run-time integers of `tiled`, in its order."""
        return (
            self.num_tokens,
            self.num_decode,
            self.width,
            self.decode.row_stride,
            self.prefill.row_stride,
            self.table_stride,
            self.table_rows,
            self.table_cols,
        )

    def variant(self, *, vector: bool) -> TiledVariant:
        """The compiled variant that writes this plan."""
        index = self.device.index or 0
        overlap = not backend.INTERPRET and can_overlap(index)
        return TiledVariant(index, self.tile, self.compress_ratio, self.block_size, vector, overlap)


def facts(tensor: torch.Tensor) -> Facts:
    """What a plan needs to know of a tensor."""
    return tensor.dtype, tensor.device, tensor.shape, tensor.stride()


def memory(tensor: torch.Tensor) -> Memory:
    """Where a tensor lies, and how far its storage reaches: both change when it is resized or set in place."""
    behind = int(tensor.untyped_storage().nbytes() - tensor.storage_offset() * tensor.element_size())
    return tensor.data_ptr(), behind


def host_integers(
    num_decode_tokens: int, compress_ratio: int, block_size: int, width: int
) -> tuple[int, int, int, int]:
    """The four sizes of a build as host integers; raises TypeError and ValueError that name the argument."""
    names = ("num_decode_tokens", "compress_ratio", "block_size", "max_compressed_tokens")
    given = (num_decode_tokens, compress_ratio, block_size, width)
    decode, *sizes = (host_integer(name, value, -INT32_MAX) for name, value in zip(names, given, strict=True))
    for name, value in zip(names[1:], sizes, strict=True):
        if not 1 <= value <= INT32_MAX:
            raise ValueError(f"{name} is {value}; it must be between 1 and {INT32_MAX}")
    ratio, block, columns = sizes
    return decode, ratio, block, columns


def check_memory(plan: Plan, decode: Memory, lens: Memory, prefill: Memory) -> None:
    """Raise ValueError where a buffer ends before its rows do, or where two of the three would be written over."""
    written = {
        "global_decode_buffer": (decode, plan.decode.span),
        "decode_lens_buffer": (lens, plan.num_decode),
        "prefill_buffer": (prefill, plan.prefill.span),
    }
    for name, ((_, held), elements) in written.items():
        if elements * ITEMSIZE > held:
            raise ValueError(f"{name} has a storage of {held:,} bytes; its rows need {elements * ITEMSIZE:,}")
    ranges = [(first, first + n * ITEMSIZE, name) for name, ((first, _), n) in written.items() if n]
    for (_, end, name), (start, _, other) in pairwise(sorted(ranges)):
        if start < end:
            raise ValueError(f"{name} and {other} overlap by {end - start:,} bytes; they must lie apart")


def make_plan(
    layout: Layout,
    num_decode_tokens: int,
    compress_ratio: int,
    block_size: int,
    width: int,
    positions: Facts,
    token_to_req_indices: Facts,
    block_table: Facts,
    slot_mapping: Facts,
    global_decode_buffer: Facts,
    decode_lens_buffer: Facts,
    prefill_buffer: Facts,
) -> Plan:
    """Check the arguments of a build: TypeError for a wrong dtype, ValueError for the rest, else the plan."""
    tensors = {
        "positions": positions,
        "token_to_req_indices": token_to_req_indices,
        "block_table": block_table,
        "slot_mapping": slot_mapping,
        "global_decode_buffer": global_decode_buffer,
        "decode_lens_buffer": decode_lens_buffer,
        "prefill_buffer": prefill_buffer,
    }
    if layout not in LAYOUTS:
        raise ValueError(f"layout is {layout!r}; it must be one of {', '.join(LAYOUTS)}")
    num_decode_tokens, compress_ratio, block_size, width = host_integers(
        num_decode_tokens, compress_ratio, block_size, width
    )
    for name, tensor in tensors.items():
        _check_tensor(name, tensor, positions[1])
    if backend.HAS_GPU and not backend.INTERPRET and positions[1].type != "cuda":
        raise ValueError(f"positions is on {positions[1]}; the kernels of this process are compiled for cuda")

    num_tokens = positions[2][0]
    if not 0 <= num_decode_tokens <= num_tokens:
        raise ValueError(f"num_decode_tokens is {num_decode_tokens}; it must be between 0 and the {num_tokens} tokens")
    for name in ("token_to_req_indices", "slot_mapping", "decode_lens_buffer"):
        held = tensors[name][2][0]
        if held < num_decode_tokens:
            raise ValueError(f"{name} holds {held} elements; num_decode_tokens is {num_decode_tokens}")
    table_rows, table_cols = block_table[2]
    table_stride = block_table[3][0]
    if table_stride > INT32_MAX:
        raise ValueError(f"block_table has a row stride of {table_stride}; it must be at most {INT32_MAX}")

    decode = _rows(layout, "global_decode_buffer", global_decode_buffer, num_decode_tokens, width)
    prefill = _rows(layout, "prefill_buffer", prefill_buffer, num_tokens - num_decode_tokens, width)
    return Plan(
        num_tokens=num_tokens,
        num_decode=num_decode_tokens,
        width=width,
        decode=decode,
        prefill=prefill,
        table_stride=table_stride,
        table_rows=table_rows,
        table_cols=table_cols,
        device=positions[1],
        compress_ratio=compress_ratio,
        block_size=block_size,
        tile=tile_shape(num_tokens, width),
    )


def _check_tensor(name: str, tensor: Facts, device: torch.device) -> None:
    dtype, where, shape, stride = tensor
    if dtype != _DTYPES[name]:
        raise TypeError(f"{name} is {dtype}; it must be {_DTYPES[name]}")
    if where != device:
        raise ValueError(f"{name} is on {where}, positions on {device}; all tensors must be on one device")
    if len(shape) != _DIMS[name]:
        raise ValueError(f"{name} has shape {tuple(shape)}; it must have {_DIMS[name]} dimension(s)")
    if shape[-1] > 1 and stride[-1] != 1:
        raise ValueError(f"{name} has strides {stride}; its last dimension must be contiguous (stride 1)")


def _rows(layout: Layout, name: str, buffer: Facts, rows: int, width: int) -> RowLayout:
    """The layout of `rows` rows in a buffer of (held, capacity) int32."""
    held, capacity = buffer[2]
    stride = buffer[3][0] if held > 1 else max(buffer[3][0], capacity)
    if width > capacity:
        raise ValueError(
            f"max_compressed_tokens is {width}; {name} of shape ({held}, {capacity}) holds {capacity} columns a row"
        )
    if rows > held:
        raise ValueError(
            f"{name} of shape ({held}, {capacity}) is too small for {rows} rows × {width} columns: it holds {held} rows"
        )
    if stride > INT32_MAX:
        raise ValueError(f"{name} has a row stride of {stride}; it must be at most {INT32_MAX}")
    if held > 1 and stride < capacity:
        raise ValueError(f"{name} has a row stride of {stride}; rows of {capacity} columns would overlap")
    if layout == "packed" and held > 1 and stride != capacity:
        raise ValueError(f"{name} has row stride {stride} and {capacity} columns; packed rows need a contiguous buffer")
    return RowLayout.named(layout, rows, width, stride)


def tiled_launcher(
    plan: Plan, decode: torch.Tensor, lens: torch.Tensor, prefill: torch.Tensor, *, overlap: bool = True
) -> Launcher:
    """A function of positions, token_to_req_indices, block_table and slot_mapping that launches `tiled`.

    All that does not change from call to call is done here, once. overlap=False keeps the kernel from starting while
    the one before it ends, for comparison.
    """
    if backend.INTERPRET:
        constants = plan.variant(vector=False).constants

        def interpret(*inputs: torch.Tensor) -> None:
            with backend.kernel_lock:
                tiled[plan.grid](decode, lens, prefill, *inputs, *plan.integers, **constants)

        return interpret

    return compiled_launcher(plan, decode.data_ptr(), lens.data_ptr(), prefill.data_ptr(), overlap=overlap)


def compiled_launcher(plan: Plan, decode: int, lens: int, prefill: int, *, overlap: bool = True) -> Launcher:
    """`tiled_launcher` for compiled kernels, the buffers given by their addresses; it does not keep them alive."""
    strides = plan.width | plan.decode.row_stride | plan.prefill.row_stride
    vector = (decode | prefill | strides * ITEMSIZE) % VECTOR_BYTES == 0
    variant = plan.variant(vector=vector)
    if not overlap:
        variant = replace(variant, overlap=False)
    launch = hold(variant).launcher(plan.grid)
    tail = (*plan.integers, *variant.constants.values())

    def compiled(positions: torch.Tensor, requests: torch.Tensor, table: torch.Tensor, slots: torch.Tensor) -> None:
        launch(
            decode, lens, prefill, positions.data_ptr(), requests.data_ptr(), table.data_ptr(), slots.data_ptr(), *tail
        )

    return compiled


def launch_row_loop(
    plan: Plan, decode: torch.Tensor, lens: torch.Tensor, prefill: torch.Tensor, *inputs: torch.Tensor
) -> None:
    """Launch `row_loop`, the report's algorithm; inputs as in `tiled_launcher`, Triton's ordinary launch."""
    positions, requests, table, slots = inputs
    with backend.kernel_lock:
        row_loop[(plan.num_tokens,)](
            decode, plan.decode.row_stride, lens, prefill, plan.prefill.row_stride, positions, plan.compress_ratio,
            plan.width, plan.num_decode, requests, table, plan.table_stride, plan.table_rows, plan.table_cols,
            plan.block_size, slots, STEP=ROW_LOOP_STEP,
        )  # fmt: skip
