"""Evidence that runs the kernel: compiled where there is a GPU, interpreted elsewhere. Needs torch and triton.

Each function examines a build, that of the report's algorithm where none is given, and returns plain numbers. A test
hands each of them a build that is wrong: evidence that cannot turn out badly is none. Results are kept for the life of
the process.
"""

from __future__ import annotations

import c128a.backend as backend

from collections.abc import Callable
from functools import cache
from typing import Any

import torch

from c128a import reference
from c128a.case import COMPRESS_RATIO, Case
from c128a.frozen import FrozenReader
from c128a.layout import LAYOUTS, Layout
from c128a.metadata import C128AMetadata, C128AMetadataBuilder, build_with_row_loop
from c128a.width import reachable_widths

Build = Callable[..., tuple[torch.Tensor, torch.Tensor, torch.Tensor]]  # called as build_c128a_topk_metadata is
Facts = dict[str, Any]
Buffers = tuple[torch.Tensor, torch.Tensor, torch.Tensor]  # decode rows, lens, prefill rows

MARK = -7  # neither an id nor the pad


@cache
def pr_test(build: Build = build_with_row_loop) -> Facts:
    """The pull request's own test with its values: what it expects, and what comes out."""
    case = Case.of_tokens([255, 511], [0, 0], [[3]], [0, 1], 1, kv_block_size=256 * COMPRESS_RATIO)
    decode, lens, prefill = _run(build, case, 128, _marked(2, 256))
    pairs = {
        "decode shape": ((1, 128), tuple(decode.shape)),
        "prefill shape": ((1, 128), tuple(prefill.shape)),
        "decode stride": ((128, 1), decode.stride()),
        "prefill stride": ((128, 1), prefill.stride()),
        "decode ids": ([768, 769], decode[0, :2].tolist()),
        "decode pads": (126, int((decode[0, 2:] == -1).sum())),
        "lens": ([2], lens.tolist()),
        "prefill ids": ([0, 1, 2, 3], prefill[0, :4].tolist()),
        "prefill pads": (124, int((prefill[0, 4:] == -1).sum())),
    }
    rows = [{"value": name, "expected": str(wanted), "got": str(got)} for name, (wanted, got) in pairs.items()]
    right = sum(wanted == got for wanted, got in pairs.values())
    return {"values": len(pairs), "right": right, "rows": rows}


@cache
def bounds(build: Build = build_with_row_loop) -> Facts:
    """Builds on marked buffers: cells changed outside the views, cells left unwritten inside, wide calls refused."""
    case = Case.mixed(3, 5, 16_384)
    facts: Facts = {"ran": backend.describe(), "outside": 0, "changed_outside": 0, "unwritten_inside": 0}
    for layout in LAYOUTS:
        for width in (128, 256, 512):
            buffers = _marked(8, 512)
            for buffer, view in zip(buffers, _run(build, case, width, buffers, layout), strict=True):
                facts["unwritten_inside"] += int((view == MARK).sum())
                view.fill_(MARK)  # what is not the mark now was written outside the view
                facts["outside"] += buffer.numel() - view.numel()
                facts["changed_outside"] += int((buffer != MARK).sum())
    facts |= {"too_wide": 2, "refused": 0}
    for width in (1024, 8192):  # over the capacity of 512; the second is the report's default
        buffers = _marked(8, 512)
        try:
            _run(build, case, width, buffers)
        except ValueError:
            facts["refused"] += all(bool((buffer == MARK).all()) for buffer in buffers)
    return facts


@cache
def semantics(build: Build = build_with_row_loop) -> Facts:
    """Rows at every width that is wide enough, compared cell by cell with the rows at full width."""
    capacity = 2048
    facts: Facts = {"builds": 0, "cells": 0, "different": 0}
    small = (
        Case.mixed(1, 2, 100_000),
        Case.one_long(2, 32_896, 300),
        Case.decode(1, 16_511, 3),
        Case.prefill(2, 129),
    )
    for case in small:
        full = _run(build, case, capacity, _marked(case.num_tokens, capacity))
        for width in (width for width in reachable_widths(capacity) if width >= case.needed):
            # Another mark than before: a cell that neither build writes would be equal by chance.
            narrow = _run(build, case, width, _marked(case.num_tokens, capacity, MARK - 1))
            facts["builds"] += 1
            for mine, whole in zip(narrow, full, strict=True):
                left, right = (whole[:, :width], whole[:, width:]) if whole.dim() == 2 else (whole, whole[:0])
                facts["cells"] += left.numel()
                facts["different"] += int((mine != left).sum()) + int((right != -1).sum())
    return facts


@cache
def frozen(build: Build = build_with_row_loop) -> Facts:
    """Other requests built, narrower, into the buffer of a capture and read by its reader: rows right, by layout.

    A row is right where the reader finds the ids that the reference gives for the second build. `addresses` counts the
    different offsets from its buffer at which a view starts, over all widths.
    """
    rows, model_len = 4, 65_536
    captured = Case.decode(rows, model_len, max_model_len=model_len, seed=1)
    now = Case.decode(rows, 15_000, max_model_len=model_len, seed=2)
    asked = [*_inputs(now), now.width]
    wanted = reference.topk_metadata(*asked)[0]
    right, starts = {}, set()
    for layout in LAYOUTS:
        buffers = _marked(rows, captured.capacity)
        for width in reversed(reachable_widths(captured.capacity)):
            case = captured if width == captured.capacity else now
            decode, lens, _ = _run(build, case, width, buffers, layout)
            starts.add(decode.data_ptr() - buffers[0].data_ptr())
            if case is captured:
                reader = FrozenReader(C128AMetadata(width, rows, decode.unsqueeze(1), lens, None))
        right[layout] = (~reader.wrong_rows(wanted, lens)).tolist()
    return {"reader": FrozenReader.kind, "right": right, "addresses": len(starts)}


@cache
def refusals(builder_type: Callable[..., Any] = C128AMetadataBuilder) -> Facts:
    """What a builder does with sequences that its capacity cannot hold: asked, and refused with both numbers."""
    cases = ((980_224, 1_048_576), (1_000_000, 1_048_576), (70_000, 99_999), (33_792, 524_416))
    refused = 0
    for model_len, longest in cases:
        builder, case = builder_type(model_len, 1, layout="pitched"), Case.decode(1, longest)
        t = case.tensors(backend.device())
        try:
            builder.build(t.positions, case.query_start_loc, longest, t.block_table, t.slot_mapping)
        except ValueError as error:
            refused += f"{longest:,}" in str(error) and f"{builder.capacity:,}" in str(error)
    return {"asked": len(cases), "refused": refused}


def _marked(rows: int, columns: int, mark: int = MARK) -> Buffers:
    """Buffers on the kernels' device, every cell holding the mark."""
    decode = torch.full((rows, columns), mark, dtype=torch.int32, device=backend.device())
    return decode, decode[:, 0].clone(), decode.clone()


def _inputs(case: Case) -> list[Any]:
    """What a build of the case is called with, before the buffers."""
    t = case.tensors(backend.device())
    counts = [COMPRESS_RATIO, case.num_decode_tokens]
    return [t.positions, *counts, t.token_to_req_indices, t.block_table, case.block_size, t.slot_mapping]


def _run(build: Build, case: Case, width: int, buffers: Buffers, layout: Layout = "packed") -> Buffers:
    """One build of a case at a width into these buffers."""
    with backend.kernel_lock:
        return build(*_inputs(case), *buffers, max_compressed_tokens=width, layout=layout)
