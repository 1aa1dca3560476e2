"""What the index rows of a deployment cost a step, from the records of data/. Torch-free.

Two steps, a full decode step and a full prefill step, at two lengths: a typical one, and max_model_len, the worst. The
times are those of the card of the record, with rows filled to their width: the released row loop for a release, the
tiles of this package for a builder of one's own, and the released prefill combine. Between measured points they lie on
a straight line; outside them there is no time, only the reason.

>>> from c128a.deployment import check
>>> from c128a.records import load
>>> costs = step_costs(check(release="0.30.0").setup, [load("elsewhere")])
>>> [(cost.max_seq_len, cost.width, cost.combine_us) for cost in costs if cost.step == "prefill"]
[(32768, 256, 13.2), (1048576, 8192, 210.6)]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from c128a.account.step import MODELS
from c128a.case import COMPRESS_RATIO as RATIO
from c128a.deployment.findings import Setup
from c128a.measured import Estimate, Point, Series, UnmeasuredError
from c128a.records import Record
from c128a.width import active_topk_width, required_width

TYPICAL_LEN = 32_768  # tokens; the example that PR #50004 gives for itself

Step = Literal["decode", "prefill"]
Case = Literal["typical", "worst"]


@dataclass(frozen=True)
class StepCost:
    """The cost of one full step: times in microseconds, None where nothing was measured around it, and then why."""

    step: Step
    case: Case
    rows: int
    max_seq_len: int  # tokens
    width: int  # columns
    builder_us: float | None  # once a step
    combine_us: float | None  # once a C128A layer; a decode step has none
    basis: str  # "measured", between which times, or why there is none
    records: tuple[str, ...]  # titles of the records that the times are from

    def total_us(self, model: str) -> float | None:
        """Microseconds a step of a model of `c128a.account.MODELS`: builder once, combine in each C128A layer."""
        if self.builder_us is None:
            return None
        return self.builder_us + MODELS[model].c128a_layers * (self.combine_us or 0.0)


def step_costs(setup: Setup, records: Sequence[Record], *, typical_len: int = TYPICAL_LEN) -> tuple[StepCost, ...]:
    """Typical and worst cost of a decode and of a prefill step; each time is the first record's that has one.

    typical_len in tokens; at max_model_len or over it the worst case is the only one.
    """
    cases: list[tuple[Case, int]] = [("worst", setup.max_model_len)]
    if typical_len < setup.max_model_len:
        cases.insert(0, ("typical", typical_len))
    steps: tuple[tuple[Step, int], ...] = (
        ("decode", setup.decode_rows),
        ("prefill", setup.max_num_batched_tokens),
    )
    return tuple(_cost(setup, step, case, rows, length, records) for step, rows in steps for case, length in cases)


def _cost(setup: Setup, step: Step, case: Case, rows: int, length: int, records: Sequence[Record]) -> StepCost:
    width = active_topk_width(length, RATIO, setup.capacity, policy=setup.policy)
    # Released kernels for a release; the tiles of this package for a builder of one's own.
    form = "tiled" if setup.release is None else "row_loop"
    if setup.policy == "fixed":
        forms = [("builder", f"{form}_fixed"), ("combine", "from_rows_fixed")]
    else:
        forms = [("builder", "tiled" if form == "tiled" else "row_loop_adaptive"), ("combine", "from_rows_adaptive")]
    if step == "decode":
        del forms[1]
    try:
        if required_width(length, RATIO) > setup.capacity:
            raise UnmeasuredError(f"rows of {setup.capacity:,} columns cannot hold {length:,} tokens")
        found = [_time(records, kernel, variant, step, rows, length, width) for kernel, variant in forms]
    except UnmeasuredError as error:
        return StepCost(step, case, rows, length, width, None, None, f"not measured: {error}", ())
    times = [estimate for estimate, _ in found]
    titles = tuple(dict.fromkeys(title for _, title in found))
    combine_us = times[1].us if step == "prefill" else None
    return StepCost(step, case, rows, length, width, times[0].us, combine_us, _basis(times), titles)


def _time(
    records: Sequence[Record], kernel: str, variant: str, step: Step, rows: int, length: int, width: int
) -> tuple[Estimate, str]:
    """The first answer of the records, with the record's title; raises UnmeasuredError with the first refusal."""
    refusals = []
    for record in records:
        series = _series(record, kernel, variant, step)
        if not series.points:
            continue
        try:
            estimate = series.at(rows, length, width)
            if any(point.width != width for point in estimate.points) and series.along == "max_seq_len":
                raise UnmeasuredError(f"{series.name} was measured at {estimate.points[0].width:,} columns only")
            return estimate, record.title
        except UnmeasuredError as error:
            refusals.append(error)
    raise refusals[0] if refusals else UnmeasuredError(f"no record holds times of the {kernel} ({variant})")


def _series(record: Record, kernel: str, variant: str, step: Step) -> Series:
    """The warm times of one kernel form over pure decode or pure prefill batches in which all rows have one length."""
    other = "decode" if step == "prefill" else "prefill"
    points = tuple(
        Point(row[step], row["max_seq_len"], row["width"], float(row["us"]))
        for row in record.where(kernel=kernel, variant=variant)
        if row.get(step) and not row.get(other) and row.get("cache") != "cold" and not row.get("short_seq_len")
    )
    # Rows of a fixed width differ by what they hold, rows of an adaptive one by how wide they are.
    fixed = variant.endswith("fixed")
    return Series(f"{kernel} ({variant}; {record.title})", points, "max_seq_len" if fixed else "width")


def _basis(estimates: Sequence[Estimate]) -> str:
    """How the times came about, the builder's first."""
    said = []
    for name, estimate in zip(("builder", "combine"), estimates, strict=False):
        if estimate.interpolated:
            ends = sorted(point.us for point in estimate.points)
            said.append(f"{name} between {ends[0]:.3g} and {ends[-1]:.3g} µs, as measured around it")
    return "; ".join(said) or "measured"
