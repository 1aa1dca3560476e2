"""Evidence that runs the kernel: compiled where there is a GPU, interpreted elsewhere, absent without torch.

Each function returns facts, or {"missing": reason} where torch or triton cannot be imported. Results are kept for the
life of the process: they depend on nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

Facts = dict[str, Any]

MARK = -7  # neither an id nor the pad


def _needs_torch(gather: Callable[[], Facts]) -> Callable[[], Facts]:
    @cache
    def guarded() -> Facts:
        try:
            return gather()
        except ImportError as error:
            return {"missing": f"This needs the kernel, and here {error.name or error} cannot be imported."}

    return guarded


def _marked(*shape: int) -> Any:
    """An int32 tensor on the kernels' device, every cell holding the mark."""
    import torch

    from c128a import backend

    return torch.full(shape, MARK, dtype=torch.int32, device=backend.device())


def _build(batch: Any, width: int, held: Sequence[Any], layout: Any = "packed") -> Any:
    """One build of a workload into the buffers held: decode rows, lens, prefill rows."""
    from c128a import backend, workloads
    from c128a.metadata import build_c128a_topk_metadata

    decode, lens, prefill = held
    with backend.kernel_lock:
        return build_c128a_topk_metadata(
            batch.positions,
            workloads.COMPRESS_RATIO,
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


def _step(builder: Any, batch: Any) -> Any:
    """One build of a workload by a builder."""
    from c128a import backend

    with backend.kernel_lock:
        return builder.build(
            batch.positions, batch.query_start_loc, batch.max_seq_len, batch.block_table, batch.slot_mapping
        )


@_needs_torch
def pr_test() -> Facts:
    """The pull request's own test, its inputs and values, run on this machine."""
    import torch

    from c128a import backend
    from c128a.metadata import build_c128a_topk_metadata

    device = backend.device()
    with backend.kernel_lock:
        decode, lens, prefill = build_c128a_topk_metadata(
            torch.tensor([255, 511], device=device),
            128,
            1,
            torch.tensor([0, 0], dtype=torch.int32, device=device),
            torch.tensor([[3]], dtype=torch.int32, device=device),
            256,
            torch.tensor([0, 1], device=device),
            _marked(2, 256),
            _marked(2),
            _marked(2, 256),
            max_compressed_tokens=128,
        )
    got = {
        "decode shape": tuple(decode.shape),
        "prefill shape": tuple(prefill.shape),
        "decode stride": decode.stride(),
        "prefill stride": prefill.stride(),
        "decode ids": decode[0, :2].tolist(),
        "decode pads": int((decode[0, 2:] == -1).sum()),
        "lens": lens.tolist(),
        "prefill ids": prefill[0, :4].tolist(),
        "prefill pads": int((prefill[0, 4:] == -1).sum()),
    }
    expected = {
        "decode shape": (1, 128),
        "prefill shape": (1, 128),
        "decode stride": (128, 1),
        "prefill stride": (128, 1),
        "decode ids": [768, 769],
        "decode pads": 126,
        "lens": [2],
        "prefill ids": [0, 1, 2, 3],
        "prefill pads": 124,
    }
    return {"ran": backend.describe(), "got": got, "expected": expected}


@_needs_torch
def bounds() -> Facts:
    """Builds on marked buffers: cells changed outside the view, cells left unwritten inside, widths refused."""
    from c128a import backend, workloads
    from c128a.layout import LAYOUTS

    batch = workloads.mixed(3, 5, 16_384, device=backend.device())
    facts: Facts = {"ran": backend.describe(), "outside": 0, "changed_outside": 0, "unwritten_inside": 0}
    for layout in LAYOUTS:
        for width in (128, 256, 512):
            held = (_marked(8, 512), _marked(8), _marked(8, 512))
            for buffer, view in zip(held, _build(batch, width, held, layout), strict=True):
                facts["unwritten_inside"] += int((view == MARK).sum())
                view.fill_(MARK)  # what is not the mark now was written outside the view
                facts["outside"] += buffer.numel() - view.numel()
                facts["changed_outside"] += int((buffer != MARK).sum())
    too_wide = (1024, 8192)  # over the capacity of 512; the second is the report's default
    facts |= {"too_wide": len(too_wide), "refused": 0}
    for width in too_wide:
        held = (_marked(8, 512), _marked(8), _marked(8, 512))
        try:
            _build(batch, width, held)
        except ValueError:
            facts["refused"] += all(bool((buffer == MARK).all()) for buffer in held)
    return facts


@_needs_torch
def semantics() -> Facts:
    """Rows at every width that is wide enough, compared cell by cell with the rows at full width."""
    from c128a import backend, workloads
    from c128a.width import reachable_widths, required_width

    device, capacity = backend.device(), 2048
    facts: Facts = {"ran": backend.describe(), "builds": 0, "cells": 0, "different": 0}
    for batch in (
        workloads.mixed(2, 3, 100_000, device=device),
        workloads.one_long(4, 32_896, 300, device=device),
        workloads.speculative(2, 3, 16_511, device=device),
        workloads.prefill(4, 129, device=device),
    ):
        rows = batch.num_tokens
        full = _build(batch, capacity, (_marked(rows, capacity), _marked(rows), _marked(rows, capacity)))
        needed = required_width(batch.max_seq_len, workloads.COMPRESS_RATIO)
        for width in (width for width in reachable_widths(capacity) if width >= needed):
            narrow = _build(batch, width, (_marked(rows, capacity), _marked(rows), _marked(rows, capacity)))
            facts["builds"] += 1
            for mine, whole in zip(narrow, full, strict=True):
                left, right = (whole[:, :width], whole[:, width:]) if whole.dim() == 2 else (whole, whole[:0] - 1)
                facts["cells"] += left.numel()
                facts["different"] += int((mine != left).sum()) + int((right != -1).sum())
    return facts


@_needs_torch
def frozen() -> Facts:
    """Other requests built, narrower, into the buffer of a capture and read by its reader: rows right, by layout.

    A row is right where the reader finds the ids that the reference gives for that row of the second build.
    """
    from c128a import backend, reference, workloads
    from c128a.frozen import FrozenReader
    from c128a.layout import LAYOUTS
    from c128a.metadata import C128AMetadataBuilder

    model_len, rows = 65_536, 4
    device = backend.device()
    captured = workloads.decode(rows, model_len, seed=1, device=device)
    now = workloads.decode(rows, 15_000, seed=2, device=device)
    n = int(reference.entries_seen(now.positions, workloads.COMPRESS_RATIO).max())
    wanted = reference.decode_rows(
        now.positions,
        workloads.COMPRESS_RATIO,
        now.token_to_req_indices,
        now.block_table,
        workloads.ENTRIES_PER_BLOCK,
        n,
    )
    right = {}
    for layout in LAYOUTS:
        builder = C128AMetadataBuilder(model_len, rows, layout=layout, prefill_rows=False, device=device)
        reader = FrozenReader(_step(builder, captured))
        lens = _step(builder, now).decode_topk_lens
        right[layout] = [read.right for read in reader.report(wanted, lens)]
    return {"reader": FrozenReader.kind, "right": right}


@_needs_torch
def refusals() -> Facts:
    """What the builder here does with sequences that the capacity cannot hold: asked, and refused with both numbers."""
    from c128a.metadata import C128AMetadataBuilder

    cases = ((980_224, 1_048_576), (1_000_000, 1_048_576), (70_000, 99_999), (33_792, 524_416))
    refused = 0
    for model_len, longest in cases:
        builder = C128AMetadataBuilder(model_len, 1, layout="pitched")
        try:
            builder.width_for(longest)
        except ValueError as error:
            refused += f"{longest:,}" in str(error) and f"{builder.capacity:,}" in str(error)
    return {"asked": len(cases), "refused": refused}


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
