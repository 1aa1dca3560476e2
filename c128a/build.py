"""Build C128A index rows into preallocated buffers: the function of the report."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple

import torch

from c128a.launch import Facts, Launcher, Plan, facts, launch_row_loop, make_plan, tiled_launcher
from c128a.layout import Layout

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
    ready = _target(global_decode_buffer, decode_lens_buffer, prefill_buffer).ready(
        layout,
        num_decode_tokens,
        compress_ratio,
        block_size,
        max_compressed_tokens,
        facts(positions),
        facts(token_to_req_indices),
        facts(block_table),
        facts(slot_mapping),
    )
    if ready.launch is not None:
        ready.launch(positions, token_to_req_indices, block_table, slot_mapping)
    return ready.views


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
    ready = _target(global_decode_buffer, decode_lens_buffer, prefill_buffer).ready(
        layout,
        num_decode_tokens,
        compress_ratio,
        block_size,
        max_compressed_tokens,
        *map(facts, (positions, token_to_req_indices, block_table, slot_mapping)),
    )
    if ready.plan.num_tokens:
        buffers = (global_decode_buffer, decode_lens_buffer, prefill_buffer)
        launch_row_loop(ready.plan, *buffers, positions, token_to_req_indices, block_table, slot_mapping)
    return ready.views


class _Ready(NamedTuple):
    """A build whose arguments passed every check: all of it that does not change from step to step."""

    plan: Plan
    views: Rows
    launch: Launcher | None  # None where there are no tokens


class _Target(NamedTuple):
    """The three buffers of a caller, seen before: their addresses, and the builds that were made ready for them."""

    pointers: tuple[int, int, int]
    ready: Callable[..., _Ready]
    alive: tuple[weakref.ref, ...]


_targets: dict[tuple[int, int, int], _Target] = {}


def _target(decode: torch.Tensor, lens: torch.Tensor, prefill: torch.Tensor) -> _Target:
    """What is known of these buffers. An engine passes the same three each step; they are forgotten when one dies."""
    key = (id(decode), id(lens), id(prefill))
    pointers = (decode.data_ptr(), lens.data_ptr(), prefill.data_ptr())
    target = _targets.get(key)
    if target is None or target.pointers != pointers:
        buffers = (decode.detach(), lens.detach(), prefill.detach())  # views of these do not keep the caller's alive

        def forget(_: object) -> None:
            _targets.pop(key, None)

        alive = tuple(weakref.ref(buffer, forget) for buffer in (decode, lens, prefill))
        ready = lru_cache(maxsize=1024)(partial(_prepare, buffers))
        target = _targets[key] = _Target(pointers, ready, alive)
    return target


def _prepare(
    buffers: Rows,
    layout: Layout,
    num_decode_tokens: int,
    compress_ratio: int,
    block_size: int,
    width: int,
    *inputs: Facts,
) -> _Ready:
    decode, lens, prefill = buffers
    tensors = (*inputs, *map(facts, buffers))
    plan = make_plan(layout, num_decode_tokens, compress_ratio, block_size, width, *tensors)
    views = (plan.decode.view(decode), lens[: plan.num_decode], plan.prefill.view(prefill))
    return _Ready(plan, views, tiled_launcher(plan, *buffers) if plan.num_tokens else None)
