"""What index rows cost in an engine step, and what share of the step that is. Torch-free.

The builder runs once a step and, in a prefill step, the combine once per C128A layer. With measured times:

    saved        = (builder fixed - adaptive) + C128A layers × (combine fixed - adaptive)
    step length  = active parameters × tokens × 2 flop / sustained flop per second     (or whatever the user measured)
    more tokens  = 1 / (1 - prefill share × saved / step length) - 1

Times come from the record frame, between measured points and never outside them. What nobody measured is a `Span`.

They are those of one regime. A builder runs once a step and a combine once a layer, after kernels that move far more
than the L2 holds and with none of their own kind before them. So a cold L2 without overlapping launches is nearest to
serving; a graph of one kernel again and again has a warm L2, and its launches overlap.

>>> run = Run()  # V4-Pro as PR #50004 ran it
>>> saved = saved_us(prefill_step(run, times_of("elsewhere")))
>>> {kernel: round(us, 1) for kernel, us in saved.items()}
{'builder': 55.8, 'combine': 2399.4}
>>> round(gain(run, sum(saved.values())).value, 4)
0.0089
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import pandas as pd

from c128a.bench import records
from c128a.case import CAPACITY, COMPRESS_RATIO
from c128a.width import TOPK_ALIGNMENT, Policy, active_topk_width, required_width


class NoAccountError(ValueError):
    """No account can be given: nothing was measured around the question, or more is saved than the step is long."""


class Model(NamedTuple):
    """What the account needs of a model; active_parameters are those that one token passes through."""

    c128a_layers: int
    active_parameters: float
    source: str


MODELS = {
    "V4-Flash": Model(20, 13e9, "arXiv 2606.19348: 284 billion parameters, 13 billion active"),
    "V4-Pro": Model(31, 49e9, "arXiv 2606.19348: 1.6 trillion parameters, 49 billion active"),
}


class Span(NamedTuple):
    """A value, and the range in which it may lie."""

    low: float
    value: float
    high: float


# Sustained throughput of the server, in PFLOP/s: 10, 20 and 40 % of eight times 1,979 TFLOP/s, the dense FP8 peak of an
# H200. The report names neither card nor tokens per second. For scale: SGLang's prefill of DeepSeek-V3, 37 billion
# active parameters, on eight H100 comes to 4.1 PFLOP/s (lmsys.org, 25 September 2025).
PFLOPS = Span(1.6, 3.2, 6.3)
# Share of the run's time spent in prefill steps. The report gives no prompt lengths; the pull request's own log folder
# is called prefill-results.
PREFILL_SHARE = Span(0.5, 0.9, 1.0)
REPORTED_GAIN = 0.010  # tokens per second, end to end
TYPICAL_LEN = 32_768  # tokens; the example that PR #50004 gives for itself


@dataclass(frozen=True)
class Run:
    """A deployment's full prefill step, and what is assumed about the deployment; by default the run of PR #50004."""

    model: str = "V4-Pro"
    tokens: int = 8192  # a step
    max_seq_len: int = TYPICAL_LEN  # tokens
    policy: Policy = "pow2"
    capacity: int = CAPACITY  # columns
    pflops: Span = PFLOPS
    prefill_share: Span = PREFILL_SHARE
    measured_step_us: float | None = None  # replaces the estimate

    def __post_init__(self) -> None:
        if self.tokens < 1 or min(self.pflops) <= 0:
            raise ValueError(f"tokens is {self.tokens} and pflops {tuple(self.pflops)}; they must be positive")
        if not 0 <= min(self.prefill_share) <= max(self.prefill_share) <= 1:
            raise ValueError(f"prefill_share is {tuple(self.prefill_share)}; it must lie between 0 and 1")

    @property
    def width(self) -> int:
        """Columns of a row."""
        return active_topk_width(self.max_seq_len, COMPRESS_RATIO, self.capacity, policy=self.policy)

    def step_us(self, pflops: float) -> float:
        """Length of the step in microseconds: as measured, or estimated for a throughput in PFLOP/s.

        >>> round(Run().step_us(3.2))
        250880
        """
        return self.measured_step_us or MODELS[self.model].active_parameters * self.tokens * 2 / (pflops * 1e9)

    def __str__(self) -> str:
        """The run in a few words."""
        return f"{self.model}, {self.tokens:,} tokens a step at {self.max_seq_len:,}"


class Time(NamedTuple):
    """A time in microseconds, the measured times that it is or lies between, and their records."""

    us: float
    measured: tuple[float, ...] = ()
    records: tuple[str, ...] = ()

    @property
    def basis(self) -> str:
        """What the time rests on."""
        if len(self.measured) > 1:
            return f"between {min(self.measured):.3g} and {max(self.measured):.3g} µs, as measured around it"
        return "measured" if self.measured else "not launched"


class Times:
    """The kernel times of one regime, "cold" or "warm", among rows of the record frame.

    Batches in which all rows have one length count, and of a cell that was measured twice its first row. In the cold
    regime a form that was measured without overlapping launches too ("…_serial") has that time.
    """

    def __init__(self, rows: pd.DataFrame, regime: str = "warm") -> None:
        kept = rows["kernel"].isin(["builder", "combine"]) & (rows["short_seq_len"] == 0) & (rows["cache"] == regime)
        self.rows = rows[kept]
        kind = "figures from elsewhere" if "elsewhere" in set(rows["source"]) else "recorded here"
        self.title = f"{kind}, {regime} L2, {' and '.join(sorted(set(rows['gpu'])))}"
        if regime == "cold":
            alone = self.rows[self.rows["variant"].str.endswith("_serial")]
            self.rows = pd.concat([alone.assign(variant=alone["variant"].str.removesuffix("_serial")), self.rows])
        # By kernel, variant, step and fixed width, then by tokens, then by what else the time depends on: rows of a
        # fixed width differ by what they hold (tokens of context), rows of an adaptive one by their columns.
        self._at: dict[tuple[str, str, str, int], dict[int, dict[int, Time]]] = {}
        for row in self.rows[(self.rows["decode"] == 0) | (self.rows["prefill"] == 0)].to_dict("records"):
            fixed = row["variant"].endswith("_fixed")
            step, of_width = "decode" if row["decode"] else "prefill", row["width"] if fixed else 0
            of_form = self._at.setdefault((row["kernel"], row["variant"], step, of_width), {})
            time = Time(row["us"], (row["us"],), (f"{row['record']}, {row['gpu']}",))
            of_tokens = of_form.setdefault(row["decode"] + row["prefill"], {})
            of_tokens.setdefault(row["max_seq_len" if fixed else "width"], time)

    def at(self, kernel: str, variant: str, step: str, tokens: int, max_seq_len: int, width: int) -> Time:
        """The time of one kernel form in a "decode" or "prefill" step, with rows filled to their width.

        It lies on straight lines between the nearest measured token counts and the nearest widths; for a form of fixed
        width, the nearest lengths. Outside of them it raises NoAccountError, which names the measured range.

        >>> times_of("elsewhere").at("combine", "from_rows_fixed", "prefill", 8192, 131_072, 8192).us
        97.9
        """
        fixed = variant.endswith("_fixed")
        unit, wanted = ("tokens of context", max_seq_len) if fixed else ("columns", width)
        name = f"{kernel} ({variant}, {step} rows{f' of {width:,} columns' if fixed else ''}; {self.title})"
        measured = self._at.get((kernel, variant, step, width if fixed else 0))
        if measured is None:
            raise NoAccountError(f"no record holds times of the {name}")

        def at_tokens(count: int) -> Time:
            return _between(name, unit, wanted, measured[count], measured[count].__getitem__)

        return _between(name, "tokens a step", tokens, measured, at_tokens)


SOURCES = {"cold": ("recorded", "cold"), "recorded": ("recorded", "warm"), "elsewhere": ("elsewhere", "warm")}


@cache
def times_of(source: str = "recorded") -> Times:
    """The times of one of SOURCES: recorded by this repository, cold or warm, or taken over from elsewhere, warm."""
    recorded, regime = SOURCES[source]
    return Times(records.rows(source=recorded), regime)


def times_faster(record: str, form: str, over: str, *, cache: str = "cold", overlap: bool = False) -> pd.Series:
    """How many times less a form of this package takes than another form of the same record, by cell of one length.

    cache: of the L2, "cold" or "warm"; overlap: whether a launch may begin before the one before it has ended. The
    defaults are the regime nearest to serving. Rows are packed where the record has both layouts.
    """
    rows = records.rows(record=record, cache=cache, layout=["packed", ""], short_seq_len=0)
    times = rows.pivot(index="cell", columns="variant", values="us")
    return (times[over] / times[form if overlap else f"{form}_serial"]).dropna()


def fixed_and_adaptive(times: Times, kernel: str, variant: str, step: str, tokens: int, run: Run) -> tuple[Time, Time]:
    """The times at the capacity and at the run's width, which is on the line from the tight width to the capacity.

    Both the width and the live entries of a row cost time. A power of two leaves slack above the entries, so a time
    between tightly filled rows alone would be that of a longer sequence.
    """
    fixed = times.at(kernel, f"{variant}_fixed", step, tokens, run.max_seq_len, run.capacity)
    if run.width >= run.capacity:
        return fixed, fixed
    tight = max(required_width(run.max_seq_len, COMPRESS_RATIO), TOPK_ALIGNMENT)
    snug = times.at(kernel, f"{variant}_adaptive", step, tokens, run.max_seq_len, tight)
    return fixed, _line(snug, tight, fixed, run.capacity, run.width)


def prefill_step(run: Run, times: Times) -> pd.DataFrame:
    """What index rows cost in the run's step: a row for each kernel and form, "fixed", "adaptive", "positions", "once".

    Columns: form, kernel, launches a step, us_a_launch, us (a step), share (of the step), basis.
    Raises NoAccountError where no measured points lie around the question.
    """
    layers = MODELS[run.model].c128a_layers
    built = fixed_and_adaptive(times, "builder", "row_loop", "prefill", run.tokens, run)
    combined = fixed_and_adaptive(times, "combine", "from_rows", "prefill", run.tokens, run)
    # Rows derived from positions need no prefill rows, so the builder has nothing left to do in this step; each of
    # their cells is written once, whatever it holds, so their time follows the width alone. They depend on no layer:
    # one launch a step is enough.
    positions = times.at("combine", "from_positions", "prefill", run.tokens, run.max_seq_len, run.width)
    launched = [
        ("fixed", "builder", 1, built[0]),
        ("fixed", "combine", layers, combined[0]),
        ("adaptive", "builder", 1, built[1]),
        ("adaptive", "combine", layers, combined[1]),
        ("positions", "builder", 0, Time(0.0)),
        ("positions", "combine", layers, positions),
        ("once", "builder", 0, Time(0.0)),
        ("once", "combine", 1, positions),
    ]
    length = run.step_us(run.pflops.value)
    table = [
        (form, kernel, launches, one.us, launches * one.us, launches * one.us / length, one.basis)
        for form, kernel, launches, one in launched
    ]
    return pd.DataFrame(table, columns=["form", "kernel", "launches", "us_a_launch", "us", "share", "basis"])


def saved_us(account: pd.DataFrame, form: str = "adaptive") -> dict[str, float]:
    """Microseconds a step that a form saves against the fixed width, by kernel."""
    us = account.set_index(["form", "kernel"])["us"].to_dict()
    return {kernel: us["fixed", kernel] - us[form, kernel] for kernel in account["kernel"].unique()}


def gain(run: Run, saved: float) -> Span:
    """The gain in tokens per second when a step saves that many microseconds, over the ranges of the assumptions.

    Raises NoAccountError where more is saved than the step is long.
    """

    def at(pflops: float, share: float) -> float:
        length = run.step_us(pflops)
        if saved >= length:
            raise NoAccountError(f"a step of {length:,.0f} µs cannot save {saved:,.0f} µs")
        return 1 / (1 - share * saved / length) - 1

    return Span(*map(at, run.pflops, run.prefill_share))


def step_costs(
    *,
    max_model_len: int,
    decode_rows: int,
    prefill_tokens: int,
    policy: Policy,
    capacity: int,
    released: bool = True,
    typical_len: int = TYPICAL_LEN,
    sources: Sequence[Times] = (),
) -> pd.DataFrame:
    """What the index rows of a deployment cost a full decode and a full prefill step, typically and at worst.

    Lengths in tokens, capacity in columns; rows are filled to their width. released: the row loop of the releases, else
    the tiles of this package. Each time is the first source's that has it: by default recorded ones (warm L2), then
    those from elsewhere. A typical_len of max_model_len or more leaves the worst case alone.

    Columns: step, case, rows, max_seq_len, width, builder_us (once a step), combine_us (a C128A layer; none in a decode
    step), V4-Flash and V4-Pro (microseconds a step), once_us (of a prefill step with its combined rows made once from
    positions), basis, records. Where nothing was measured the times are None, and basis says what was.

    >>> costs = step_costs(max_model_len=32_768, decode_rows=64, prefill_tokens=8192, policy="pow2", capacity=8192,
    ...     sources=[times_of("elsewhere")])
    >>> costs[["step", "case", "builder_us", "combine_us"]].values.tolist()
    [['decode', 'worst', 2.4, None], ['prefill', 'worst', 6.5, 13.2]]
    """
    form = "fixed" if policy == "fixed" else "adaptive"
    builder = f"row_loop_{form}" if released else "tiled_fixed" if policy == "fixed" else "tiled"
    steps = {
        "decode": (decode_rows, {"builder": builder}),
        "prefill": (prefill_tokens, {"builder": builder, "combine": f"from_rows_{form}"}),
    }
    lengths = {"typical": typical_len} if typical_len < max_model_len else {}
    lengths["worst"] = max_model_len
    table = []
    for (step, (rows, variants)), (case, length) in product(steps.items(), lengths.items()):
        width = active_topk_width(length, COMPRESS_RATIO, capacity, policy=policy)
        row: dict[str, Any] = {"step": step, "case": case, "rows": rows, "max_seq_len": length, "width": width}
        row |= dict.fromkeys(("builder_us", "combine_us", *MODELS, "once_us"))
        try:
            if required_width(length, COMPRESS_RATIO) > capacity:
                raise NoAccountError(f"rows of {capacity:,} columns cannot hold {length:,} tokens")
            found = {kernel: _first(sources, kernel, of, step, rows, length, width) for kernel, of in variants.items()}
        except NoAccountError as refused:
            table.append(row | {"basis": f"not measured: {refused}", "records": ""})
            continue
        row |= {f"{kernel}_us": time.us for kernel, time in found.items()}
        once, each = row["builder_us"], row["combine_us"] or 0.0
        row |= {name: once + model.c128a_layers * each for name, model in MODELS.items()}
        if step == "prefill":
            with suppress(NoAccountError):  # the records from elsewhere lack it at some sizes
                row["once_us"] = _first(sources, "combine", "from_positions", step, rows, length, width).us
        read = [f"{kernel} {time.basis}" for kernel, time in found.items() if len(time.measured) > 1]
        names = dict.fromkeys(name for time in found.values() for name in time.records)
        table.append(row | {"basis": "; ".join(read) or "measured", "records": "; ".join(names)})
    return pd.DataFrame(table, dtype=object)


def _first(sources: Sequence[Times], *asked: Any) -> Time:
    """What the first source that can says to Times.at; raises the refusal of the first one where none can."""
    refusals = []
    for times in sources or (times_of("recorded"), times_of("elsewhere")):
        try:
            return times.at(*asked)
        except NoAccountError as refused:
            refusals.append(refused)
    raise refusals[0]


def _between(name: str, unit: str, wanted: int, places: Iterable[int], time_at: Callable[[int], Time]) -> Time:
    """The time on the straight line between the nearest measured places below and above, which may be the same."""
    places = sorted(places)
    if not places[0] <= wanted <= places[-1]:
        ends = " to ".join(f"{place:,}" for place in dict.fromkeys((places[0], places[-1])))
        raise NoAccountError(f"{name} was not measured at {wanted:,} {unit}; measured: {ends}")
    below, above = places[bisect_right(places, wanted) - 1], places[bisect_left(places, wanted)]
    return _line(time_at(below), below, time_at(above), above, wanted)


def _line(low: Time, at_low: int, high: Time, at_high: int, at: int) -> Time:
    """The time at `at` on the straight line through both."""
    if at == at_low:
        return low
    us = low.us + (at - at_low) / (at_high - at_low) * (high.us - low.us)
    return Time(us, low.measured + high.measured, low.records + high.records)
