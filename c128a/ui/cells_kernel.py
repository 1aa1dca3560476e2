"""The true contents of a scene's buffer: both builds run by the kernel. Needs torch and triton; import it lazily."""

from __future__ import annotations

from c128a.backend import describe, device, kernel_lock

from dataclasses import replace
from functools import lru_cache
from typing import Any

import torch

from c128a.metadata import build_c128a_topk_metadata
from c128a.ui.cells import BLANK, ENTRIES_PER_BLOCK, RATIO, Scene

__all__ = ["describe", "kernel_buffer"]


@lru_cache(maxsize=32)
def kernel_buffer(scene: Scene) -> tuple[int, ...]:
    """Every cell of the buffer after the earlier build and this one, flat; BLANK where neither wrote."""
    buffer = _earlier(scene).clone()
    _build(scene, buffer, old=False)
    return tuple(buffer.flatten().tolist())


def _earlier(scene: Scene) -> torch.Tensor:
    # What the earlier build left does not depend on this one: a key press pays for one build only.
    alone = replace(scene, width=scene.width_before, lens=scene.lens_before, same_requests=False, frozen=True)
    return _earlier_of(alone)


@lru_cache(maxsize=16)
def _earlier_of(scene: Scene) -> torch.Tensor:
    buffer = torch.full((scene.rows, scene.capacity), BLANK, dtype=torch.int32, device=device())
    _build(scene, buffer, old=True)
    return buffer


def _build(scene: Scene, buffer: torch.Tensor, *, old: bool) -> None:
    rows, width = scene.rows, scene.width_before if old else scene.width
    lens = scene.lens_before if old else scene.lens
    int32: dict[str, Any] = {"dtype": torch.int32, "device": buffer.device}
    blocks = max(-(-width // ENTRIES_PER_BLOCK), 1)
    table = scene.first_block(old=old) + torch.arange(rows * blocks, **int32).view(blocks, rows).t().contiguous()
    unused = torch.empty_like(buffer)
    decode_buffer, prefill_buffer = (buffer, unused) if scene.decode else (unused, buffer)
    with kernel_lock:
        build_c128a_topk_metadata(
            torch.tensor([entries * RATIO - 1 for entries in lens], device=buffer.device),
            RATIO,
            rows if scene.decode else 0,
            torch.arange(rows, **int32),
            table,
            ENTRIES_PER_BLOCK,
            torch.arange(rows, device=buffer.device),
            decode_buffer,
            torch.empty(rows, **int32),
            prefill_buffer,
            max_compressed_tokens=width,
            layout="packed" if scene.layout == "packed" else "pitched",
        )
