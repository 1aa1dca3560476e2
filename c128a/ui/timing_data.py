"""The numbers of page 04: the settings, the recorded cell that answers for them, ratios and floors. Torch-free.

A recorded cell is a batch (how many decode rows and prefill tokens) at a sequence length. The page takes any length;
`TimingCase.at` is the recorded one that answers for it.

>>> from c128a.records import load
>>> from c128a.ui.timing_runs import gather
>>> case = TimingCase(gather([load("elsewhere")]), seq=32_768, batch="p8192")
>>> case.at, case.cell["row_loop_fixed"]["us"], case.cell["row_loop_adaptive"]["us"]
(32768, 62.3, 6.3)
>>> case.cell["row_loop_fixed"]["bytes"], case.cell["row_loop_adaptive"]["trips"]
(268435456, 1)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from c128a.ui import state
from c128a.ui.timing_runs import BATCHES, CAPACITY, RATIO, Row, Runs
from c128a.width import active_topk_width


@dataclass(frozen=True)
class TimingCase:
    """The settings of the page: a length in tokens, a batch, and the state of L2."""

    runs: Runs
    seq: int = 32_768
    batch: str = "p8192"
    cache: str = "warm"

    @property
    def width(self) -> int:
        """Columns that the adaptive policy builds at this length."""
        return active_topk_width(self.seq, RATIO, CAPACITY)

    @cached_property
    def at(self) -> int:
        """The recorded length that answers: this one, else the nearest of the same width, else the next wider one."""
        seqs = sorted({row["seq"] for row in self.runs.builder.of(self.batch, self.shown_cache)})
        widths = {seq: active_topk_width(seq, RATIO, CAPACITY) for seq in seqs}
        wanted = max(self.width, min(widths.values())) if self.width <= max(widths.values()) else max(widths.values())
        width = min(w for w in widths.values() if w >= wanted)
        return min((seq for seq in seqs if widths[seq] == width), key=lambda seq: abs(seq - self.seq))

    @property
    def shown_cache(self) -> str:
        """The state of L2 that is drawn: the chosen one where the record has it, else warm."""
        return self.cache if self.cache in self.runs.builder.caches() else "warm"

    @cached_property
    def cell(self) -> dict[str, Row]:
        """The rows of the recorded cell by variant."""
        return self.runs.builder.cell(self.batch, self.at, self.shown_cache)

    @property
    def rows(self) -> list[Row]:
        """The rows of the batch at every recorded length."""
        return self.runs.builder.of(self.batch, self.shown_cache)

    @property
    def every_row(self) -> list[Row]:
        """Everything the page draws from records."""
        return [row for run in (self.runs.builder, self.runs.combine, self.runs.host) for row in run.rows]

    def combine_cache(self) -> str:
        """As `shown_cache`, for the combine's record."""
        return self.cache if self.cache in self.runs.combine.caches() else "warm"


def fields() -> dict[str, state.Field]:
    """The parameters in the address: this page's own, and those that it carries along for the others."""
    shared = state.shared_fields()
    return {
        **{name: shared[name] for name in ("preset", "seq")},
        "batch": state.Choice("p8192", tuple(BATCHES)),
        "cache": state.Choice("warm", ("warm", "cold")),
        "budget": state.Integer(10, 1, 60),
        **{name: shared[name] for name in ("model_len", "ratio", "policy", "layout")},
    }


def read(params: Mapping[str, object]) -> tuple[dict[str, Any], list[str]]:
    """The settings in the address, with notes; the preset of one long request among short ones chooses that batch.

    >>> read({"preset": "one_long"})[0]["batch"], read({"preset": "one_long", "batch": "d1"})[0]["batch"]
    ('one_long', 'd1')
    """
    values, notes = state.read(params, fields())
    if values["preset"] == "one_long" and "batch" not in params:
        values["batch"] = "one_long"
    return values, notes


def ratio(above: Row, below: Row) -> float:
    """How many times longer the first takes than the second.

    >>> ratio({"us": 6.0}, {"us": 2.0})
    3.0
    """
    return above["us"] / below["us"]


def floor_us(cell: Mapping[str, Row], row: Row) -> float | None:
    """The least time for a row's bytes: the fill of as many bytes, scaled by what must also be read; None without one.

    >>> floor_us({"fill": {"us": 2.0, "bytes": 512}}, {"bytes": 512, "floor_scale": 1.5})
    3.0
    """
    fill = cell.get("fill")
    return fill["us"] * row["floor_scale"] if fill and fill["bytes"] == row.get("bytes") else None


def table(rows: Sequence[Row]) -> pd.DataFrame:
    """The rows as they are drawn, one a line, for a download."""
    names = ["kernel", "variant", "batch", "seq", "width", "trips", "bytes", "cache", "us", "p20", "p80", "device"]
    return pd.DataFrame([{name: row.get(name) for name in names} for row in rows], columns=names)
