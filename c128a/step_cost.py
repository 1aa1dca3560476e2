"""What the index rows of a deployment cost a step, from the records of data/. Torch-free.

Two steps, a full decode step and a full prefill step, at two lengths: a typical one, and max_model_len, the worst. The
times are those of the released row loop and prefill combine on the card of the record, with rows filled to their width.
Between measured points they lie on a straight line; outside them there is no time, only the reason.

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

from c128a.account import MODELS
from c128a.measured import Estimate, Series, UnmeasuredError
from c128a.records import Record
from c128a.serving import RATIO, Setup
from c128a.times import KernelTimes
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
    record: str  # title of the record; "" where none answers

    def total_us(self, model: str) -> float | None:
        """Microseconds a step of a model of `c128a.account.MODELS`: builder once, combine in each C128A layer."""
        if self.builder_us is None:
            return None
        return self.builder_us + MODELS[model].c128a_layers * (self.combine_us or 0.0)


def step_costs(setup: Setup, records: Sequence[Record], *, typical_len: int = TYPICAL_LEN) -> tuple[StepCost, ...]:
    """Typical and worst cost of a decode and of a prefill step; the first record that answers is the one used.

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
    reason = "no record holds kernel times"
    if required_width(length, RATIO) > setup.capacity:
        reason, records = f"rows of {setup.capacity:,} columns cannot hold {length:,} tokens", ()
    for record in records:
        times = KernelTimes.from_record(record)
        try:
            if step == "decode":
                builder = _time(times.decode, times.decode_fixed, setup, rows, length, width)
                combine = None
            else:
                builder = _time(times.builder, times.builder_fixed, setup, rows, length, width)
                combine = _time(times.combine, times.combine_fixed, setup, rows, length, width)
        except UnmeasuredError as error:
            reason = str(error)
            continue
        combine_us = combine.us if combine else None
        basis = _basis(builder, combine)
        return StepCost(step, case, rows, length, width, builder.us, combine_us, basis, record.title)
    return StepCost(step, case, rows, length, width, None, None, f"not measured: {reason}", "")


def _time(adaptive: Series, fixed: Series, setup: Setup, rows: int, length: int, width: int) -> Estimate:
    """A time of the form that the policy launches; rows of fixed width were measured at one capacity only."""
    if setup.policy != "fixed":
        return adaptive.at(rows, length, width)
    estimate = fixed.at(rows, length, width)
    measured = sorted({point.width for point in estimate.points})
    if measured != [width]:
        raise UnmeasuredError(f"{fixed.name}: {width:,} columns were not measured; measured: {measured}")
    return estimate


def _basis(*estimates: Estimate | None) -> str:
    """How the times came about, the builder's first."""
    said = []
    for name, estimate in zip(("builder", "combine"), estimates, strict=True):
        if estimate is not None and estimate.interpolated:
            ends = sorted(point.us for point in estimate.points)
            said.append(f"{name} between {ends[0]:g} and {ends[-1]:g} µs, as measured around it")
    return "; ".join(said) or "measured"
