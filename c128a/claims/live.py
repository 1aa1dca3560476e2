"""Evidence that runs the kernel: compiled where there is a GPU, interpreted elsewhere, absent without torch.

Each function returns facts, or {"missing": reason} where torch or triton cannot be imported. Results are kept for the
life of the process: they depend on nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

Facts = dict[str, Any]

POISON = -7  # neither an id nor the pad


def _needs_torch(gather: Callable[[], Facts]) -> Callable[[], Facts]:
    @cache
    def guarded() -> Facts:
        try:
            return gather()
        except ImportError as error:
            return {"missing": f"This needs the kernel, and here {error.name or error} cannot be imported."}

    return guarded


@_needs_torch
def pr_test() -> Facts:
    """The pull request's own test, its inputs and values, run on this machine."""
    import torch

    from c128a import backend
    from c128a.metadata import build_c128a_topk_metadata

    device = backend.device()

    def buffer(*shape: int) -> torch.Tensor:
        return torch.full(shape, POISON, dtype=torch.int32, device=device)

    with backend.kernel_lock:
        decode, lens, prefill = build_c128a_topk_metadata(
            torch.tensor([255, 511], device=device),
            128,
            1,
            torch.tensor([0, 0], dtype=torch.int32, device=device),
            torch.tensor([[3]], dtype=torch.int32, device=device),
            256,
            torch.tensor([0, 1], device=device),
            buffer(2, 256),
            buffer(2),
            buffer(2, 256),
            max_compressed_tokens=128,
        )
    return {
        "ran": backend.describe(),
        "got": {
            "decode shape": tuple(decode.shape),
            "prefill shape": tuple(prefill.shape),
            "decode stride": decode.stride(),
            "prefill stride": prefill.stride(),
            "decode ids": decode[0, :2].tolist(),
            "decode pads": int((decode[0, 2:] == -1).sum()),
            "lens": lens.tolist(),
            "prefill ids": prefill[0, :4].tolist(),
            "prefill pads": int((prefill[0, 4:] == -1).sum()),
        },
        "expected": {
            "decode shape": (1, 128),
            "prefill shape": (1, 128),
            "decode stride": (128, 1),
            "prefill stride": (128, 1),
            "decode ids": [768, 769],
            "decode pads": 126,
            "lens": [2],
            "prefill ids": [0, 1, 2, 3],
            "prefill pads": 124,
        },
    }


@_needs_torch
def bounds() -> Facts:
    """Builds on poisoned buffers: cells changed outside the view, cells left unwritten inside, widths refused."""
    import torch

    from c128a import backend, workloads
    from c128a.layout import LAYOUTS
    from c128a.metadata import build_c128a_topk_metadata

    device = backend.device()
    batch = workloads.mixed(3, 5, 16_384, device=device)
    capacity = 512
    facts: Facts = {"ran": backend.describe(), "outside": 0, "changed_outside": 0, "unwritten_inside": 0}

    def build(width: int, layout: Any, decode: torch.Tensor, lens: torch.Tensor, prefill: torch.Tensor) -> Any:
        with backend.kernel_lock:
            return build_c128a_topk_metadata(
                batch.positions,
                128,
                batch.num_decode_tokens,
                batch.token_to_req_indices,
                batch.block_table,
                workloads.ENTRIES_PER_BLOCK,
                batch.slot_mapping,
                decode,
                lens,
                prefill,
                max_compressed_tokens=width,
                layout=layout,
            )

    def buffers(columns: int) -> list[torch.Tensor]:
        return [
            torch.full(shape, POISON, dtype=torch.int32, device=device) for shape in ((8, columns), (8,), (8, columns))
        ]

    for layout in LAYOUTS:
        for width in (128, 256, 512):
            held = buffers(capacity)
            views = build(width, layout, *held)
            for buffer, view in zip(held, views, strict=True):
                facts["unwritten_inside"] += int((view == POISON).sum())
                view.fill_(POISON)  # what is left now was written outside the view
                facts["outside"] += buffer.numel() - view.numel()
                facts["changed_outside"] += int((buffer != POISON).sum())
    facts["refused"] = 0
    facts["too_wide"] = 2
    for width, columns in ((1024, 512), (8192, 512)):  # over the capacity; the report's default on narrow buffers
        held = buffers(columns)
        try:
            build(width, "packed", *held)
        except ValueError:
            facts["refused"] += int(all(bool((buffer == POISON).all()) for buffer in held))
    return facts


@_needs_torch
def semantics() -> Facts:
    """Rows at every width that is wide enough, compared cell by cell with the rows at full width."""
    import torch

    from c128a import backend, workloads
    from c128a.metadata import build_c128a_topk_metadata
    from c128a.width import reachable_widths, required_width

    device = backend.device()
    capacity = 2048
    facts: Facts = {"ran": backend.describe(), "builds": 0, "cells": 0, "different": 0}
    batches = (
        workloads.mixed(2, 3, 100_000, device=device),
        workloads.one_long(4, 32_896, 300, device=device),
        workloads.speculative(2, 3, 16_511, device=device),
        workloads.prefill(4, 129, device=device),
    )
    for batch in batches:
        rows = max(batch.num_tokens, 1)

        def build(width: int, rows: int = rows, batch: workloads.Batch = batch) -> Any:
            def buffer(*shape: int) -> torch.Tensor:
                return torch.full(shape, POISON, dtype=torch.int32, device=device)

            with backend.kernel_lock:
                return build_c128a_topk_metadata(
                    batch.positions,
                    128,
                    batch.num_decode_tokens,
                    batch.token_to_req_indices,
                    batch.block_table,
                    workloads.ENTRIES_PER_BLOCK,
                    batch.slot_mapping,
                    buffer(rows, capacity),
                    buffer(rows),
                    buffer(rows, capacity),
                    max_compressed_tokens=width,
                )

        full = build(capacity)
        for width in reachable_widths(capacity):
            if width < required_width(batch.max_seq_len, 128):
                continue
            narrow = build(width)
            facts["builds"] += 1
            for mine, whole in zip(narrow, full, strict=True):
                left = whole[:, :width] if whole.dim() == 2 else whole
                facts["cells"] += left.numel()
                facts["different"] += int((mine != left).sum())
                if whole.dim() == 2:
                    facts["different"] += int((whole[:, width:] != -1).sum())
    return facts


@_needs_torch
def addresses() -> Facts:
    """First element of the decode view at every width, and its row stride: packed rows in one buffer."""
    import torch

    from c128a.layout import RowLayout
    from c128a.width import reachable_widths

    buffer = torch.empty((4, 8192), dtype=torch.int32)
    views = {width: RowLayout.packed(4, width).view(buffer) for width in reachable_widths(8192)}
    return {
        "addresses": len({view.data_ptr() for view in views.values()}),
        "strides": {width: view.stride(0) for width, view in views.items()},
    }
