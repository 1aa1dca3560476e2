"""Build C128A index rows into preallocated buffers: the function of the report."""

from __future__ import annotations

from functools import lru_cache

import torch

from c128a import backend
from c128a.launch import (
    Facts,
    Launcher,
    Memory,
    Plan,
    check_memory,
    compiled_launcher,
    facts,
    host_integers,
    launch_row_loop,
    make_plan,
    memory,
    tiled_launcher,
)
from c128a.layout import LAYOUTS, Layout

Rows = tuple[torch.Tensor, torch.Tensor, torch.Tensor]  # decode rows, lens, prefill rows


def build_c128a_topk_metadata(
    positions: torch.Tensor,
    compress_ratio: int,
    num_decode_tokens: int,
    token_to_req_indices: torch.Tensor,
    block_table: torch.Tensor,
    block_size: int,
    slot_mapping: torch.Tensor,
    global_decode_buffer: torch.Tensor,
    decode_lens_buffer: torch.Tensor,
    prefill_buffer: torch.Tensor,
    max_compressed_tokens: int = 8192,
    *,
    layout: Layout = "packed",
) -> Rows:
    """Write one index row a token into the buffers and return the rows as views, every cell of them written.

    positions (tokens,) int64; token_to_req_indices int32 and slot_mapping int64, at least num_decode_tokens long;
    block_table (requests, blocks) int32; block_size in compressed entries; the buffers (rows, capacity) int32 and
    (rows,) int32; max_compressed_tokens is the width of the rows, in columns.

    Returns global_decode (num_decode_tokens, width), decode_lens (num_decode_tokens,), prefill_local
    (tokens - num_decode_tokens, width), int32, views of the buffers: row stride = width when packed, the buffer's own
    when pitched. Nothing outside the views is written. lens is the prefix a reader must look at, at most the width;
    cells of it that no block backs hold -1.

    The call neither waits for the GPU nor reads from it, so it cannot see a position that needs more columns than it
    is given: choose the width with `active_topk_width` from the same batch's max_seq_len.

    Raises TypeError for a wrong dtype; ValueError for a width over a buffer's capacity, too few rows, tensors on
    different devices, num_decode_tokens outside 0 … tokens, a last dimension that is not contiguous. Signature and
    packed layout: vLLM PR #50004; pitched: vLLM PR #52823.

    >>> int32, int64 = torch.int32, torch.int64
    >>> buffers = torch.empty(2, 256, dtype=int32), torch.empty(2, dtype=int32), torch.empty(2, 256, dtype=int32)
    >>> decode, lens, prefill = build_c128a_topk_metadata(
    ...     torch.tensor([255, 511]), 128, 1, torch.tensor([0, 0], dtype=int32), torch.tensor([[3]], dtype=int32),
    ...     256, torch.tensor([0, 1]), *buffers, max_compressed_tokens=128)
    >>> decode[0, :3].tolist(), lens.tolist(), prefill[0, :5].tolist(), decode.stride()
    ([768, 769, -1], [2], [0, 1, 2, 3, -1], (128, 1))
    """
    inputs = (positions, token_to_req_indices, block_table, slot_mapping)
    buffers = (global_decode_buffer, decode_lens_buffer, prefill_buffer)
    plan, launch = _prepared(
        layout, num_decode_tokens, compress_ratio, block_size, max_compressed_tokens, inputs, buffers
    )
    if plan.num_tokens:
        (launch or tiled_launcher(plan, *buffers))(*inputs)
    return _views(plan, buffers)


def build_with_row_loop(
    positions: torch.Tensor,
    compress_ratio: int,
    num_decode_tokens: int,
    token_to_req_indices: torch.Tensor,
    block_table: torch.Tensor,
    block_size: int,
    slot_mapping: torch.Tensor,
    global_decode_buffer: torch.Tensor,
    decode_lens_buffer: torch.Tensor,
    prefill_buffer: torch.Tensor,
    max_compressed_tokens: int = 8192,
    *,
    layout: Layout = "packed",
) -> Rows:
    """`build_c128a_topk_metadata` by the report's algorithm: one program a row, a loop over the width."""
    inputs = (positions, token_to_req_indices, block_table, slot_mapping)
    buffers = (global_decode_buffer, decode_lens_buffer, prefill_buffer)
    plan, _ = _prepared(layout, num_decode_tokens, compress_ratio, block_size, max_compressed_tokens, inputs, buffers)
    if plan.num_tokens:
        launch_row_loop(plan, *buffers, *inputs)
    return _views(plan, buffers)


def _prepared(
    layout: Layout,
    num_decode_tokens: int,
    compress_ratio: int,
    block_size: int,
    width: int,
    inputs: tuple[torch.Tensor, ...],
    buffers: Rows,
) -> tuple[Plan, Launcher | None]:
    """The checked plan of a build, and its launcher where kernels are compiled; kept for the next call of this kind."""
    if layout not in LAYOUTS:
        raise ValueError(f"layout is {layout!r}; it must be one of {', '.join(LAYOUTS)}")
    sizes = host_integers(num_decode_tokens, compress_ratio, block_size, width)
    tensors = tuple(map(facts, (*inputs, *buffers)))
    return _prepare(layout, sizes, tensors, tuple(map(memory, buffers)))


@lru_cache(maxsize=4096)
def _prepare(
    layout: Layout, sizes: tuple[int, int, int, int], tensors: tuple[Facts, ...], places: tuple[Memory, Memory, Memory]
) -> tuple[Plan, Launcher | None]:
    """Keyed on all that the checks and the launch depend on, so that a buffer resized in place is checked anew."""
    plan = make_plan(layout, *sizes, *tensors)
    check_memory(plan, *places)
    (decode, _), (lens, _), (prefill, _) = places
    return plan, None if backend.INTERPRET or not plan.num_tokens else compiled_launcher(plan, decode, lens, prefill)


def _views(plan: Plan, buffers: Rows) -> Rows:
    decode, lens, prefill = buffers
    return plan.decode.view(decode), lens[: plan.num_decode], plan.prefill.view(prefill)
