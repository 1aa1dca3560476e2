"""A live run as page 04 reads it before it uses c128a.bench.live: rows with the names of c128a.records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from c128a.bench import live
from c128a.bench.live import BUDGET_S, GpuBusyError, Outcome, Row, Step, device_label, measuring, on_gpu
from c128a.bench_cases import Cell

__all__ = ["BUDGET_S", "GpuBusyError", "Outcome", "Step", "device_label", "measuring", "on_gpu", "sweep"]


def sweep(cells: Sequence[Cell], tell: Callable[[Step], object] = lambda step: None, **options: Any) -> Outcome:
    """As c128a.bench.live.sweep, without rows at a row stride other than the width."""

    def told(step: Step) -> object:
        if step.row is None:
            return tell(step)
        return tell(replace(step, row=_old(step.row))) if step.row["layout"] == "packed" else None

    outcome = live.sweep([cell.case for cell in cells], told, **options)
    return replace(outcome, rows=tuple(_old(row) for row in outcome.rows if row["layout"] == "packed"))


def _old(row: Row) -> Row:
    return {**row, "floor_scale": row["scale"], "device": row["gpu"], "short_seq_len": row["short_seq_len"] or None}
