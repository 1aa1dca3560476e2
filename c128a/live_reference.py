"""The torch reference, ready to be timed on the CPU: what a live run falls back to where there is no GPU."""

from __future__ import annotations

import c128a.backend  # noqa: F401 - decides TRITON_INTERPRET before Triton is imported

from collections.abc import Callable
from typing import Any

import torch

from c128a import reference, workloads
from c128a.bench_cases import BLOCK, CAPACITY, RATIO, Cell
from c128a.layout import ITEMSIZE
from c128a.width import active_topk_width

MAX_BYTES = 512 * 2**20  # intermediate tensors of the reference; larger ones are refused
DECODE_CELL_BYTES, PREFILL_CELL_BYTES = 40, 14  # bytes of intermediate tensors a cell, at most at one time

Row = dict[str, Any]


class ReferenceCase:
    """The torch reference in one cell, on the CPU: the stand-in for `BuilderCase` where there is no GPU."""

    def __init__(self, cell: Cell) -> None:
        self.cell = cell
        if cell.short:
            self.batch = workloads.one_long(cell.decode, cell.max_seq_len, cell.short)
        else:
            self.batch = workloads.mixed(cell.decode, cell.prefill, cell.max_seq_len)
        self.width = active_topk_width(self.batch.max_seq_len, RATIO, CAPACITY)

    def launches(self) -> dict[str, Callable[[], object]]:
        """What is timed, by variant, without what `refused` names."""
        batch, rows = self.batch, torch.empty(self._rows * self.width, dtype=torch.int32)
        tables = (batch.token_to_req_indices, batch.block_table, BLOCK, batch.slot_mapping)

        def build(width: int) -> Callable[[], object]:
            return lambda: reference.topk_metadata(batch.positions, RATIO, batch.num_decode_tokens, *tables, width)

        builds = {"reference_fixed": build(CAPACITY), "reference_adaptive": build(self.width)}
        kept = {name: call for name, call in builds.items() if self._bytes(self._width(name)) <= MAX_BYTES}
        return {**kept, "reference_fill": lambda: rows.fill_(-1)}

    def refused(self) -> list[str]:
        """The measurements that need more memory than MAX_BYTES, with the number."""
        return [
            f"{name} in {self.cell.name}: {self._bytes(width) / 2**20:,.0f} MiB of intermediate tensors, "
            f"over the limit of {MAX_BYTES / 2**20:,.0f}"
            for name, width in (("reference_fixed", CAPACITY), ("reference_adaptive", self.width))
            if self._bytes(width) > MAX_BYTES
        ]

    def describe(self, variant: str) -> Row:
        """The fields of a row that say what was timed, as `BuilderCase.describe` names them."""
        width = self._width(variant)
        return {
            "sheet": "builder",
            "kernel": "reference",
            "variant": variant,
            "cell": self.cell.name,
            "decode": self.cell.decode,
            "prefill": self.cell.prefill,
            "max_seq_len": self.cell.max_seq_len,
            "short_seq_len": self.cell.short,
            "capacity": CAPACITY,
            "policy": "fixed" if variant.endswith("fixed") else "pow2",
            "width": width,
            "bytes": self._rows * width * ITEMSIZE,
        }

    @property
    def _rows(self) -> int:
        return self.cell.decode + self.cell.prefill

    def _width(self, variant: str) -> int:
        return CAPACITY if variant.endswith("fixed") else self.width

    def _bytes(self, width: int) -> int:
        return width * (self.cell.decode * DECODE_CELL_BYTES + self.cell.prefill * PREFILL_CELL_BYTES)
