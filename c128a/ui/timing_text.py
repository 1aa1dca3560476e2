"""The sentences of page 04, and figures with no more digits than their measurement carries. Torch-free; Markdown.

A time is shown to the first digit of half of its p20-p80 spread, and no finer than the clock; a ratio to what the
spreads of both times leave of it. Three digits at most. Figures from elsewhere came without a spread and stand as they
were printed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from c128a.layout import human_bytes
from c128a.ui.timing_data import Row, TimingCase, floor_us, ratio
from c128a.ui.timing_runs import BATCHES, CAPACITY, Run
from c128a.width import loop_trips

RESOLUTION = {"warm": 0.02, "cold": 0.1}  # µs: 0.5 of a CUDA event, twice, over 50 launches and over 10
SAME = 1.1  # two times that differ by less are called the same in a sentence
VARIANTS = {  # names in the tables, which have a line for each
    "row_loop_fixed": "row loop, fixed width",
    "row_loop_adaptive": "row loop, adaptive width",
    "tiled": "tiles, adaptive width",
    "tiled_serial": "tiles, no overlap",
    "tiled_fixed": "tiles, fixed width",
    "fill": "fill of the same bytes",
    "loads": "its loads alone",
    "empty": "empty kernel",
    "compare": "function compared with",
    "reference_fixed": "torch reference, fixed width",
    "reference_adaptive": "torch reference, adaptive width",
    "reference_fill": "torch fill of the same bytes",
}
UNKNOWN_SPREAD = 0.02  # of a ratio of figures that came without one


def us(row: Row) -> str:
    """A time in microseconds, without its unit.

    >>> us({"us": 64.08, "p20": 63.93, "p80": 64.06, "cache": "warm"}), us({"us": 62.3, "p20": None})
    ('64.1', '62.3')
    >>> us({"us": 446302.3, "p20": 440000.0, "p80": 452000.0, "cache": "warm"})
    '446,000'
    """
    return f"{row['us']:g}" if row["p20"] is None else figure(row["us"], _unit(row))


def figure(value: float, unit: float) -> str:
    """A number up to the first digit of its uncertainty `unit`, of three digits at most and one at least.

    >>> figure(10.4712, 0.12), figure(10.4712, 2.0), figure(1.049, 0.02), figure(1234.5, 3.0), figure(38.0, 900.0)
    ('10.5', '10', '1.05', '1,230', '40')
    """
    first = -math.floor(math.log10(value))
    decimals = min(max(-math.floor(math.log10(unit)), first), first + 2)
    return f"{round(value, decimals):,.{max(0, decimals)}f}"


def times(above: Row, below: Row, scale: float = 1.0) -> str:
    """How many times longer the first takes than `scale` times the second.

    >>> times({"us": 62.3, "p20": None}, {"us": 6.3, "p20": None})
    '9.9'
    """
    value = ratio(above, below) / scale
    return figure(value, value * math.hypot(_relative(above), _relative(below)))


def _unit(row: Row) -> float:
    return max((row["p80"] - row["p20"]) / 2, RESOLUTION[row["cache"]])


def _relative(row: Row) -> float:
    return UNKNOWN_SPREAD if row["p20"] is None else _unit(row) / row["us"]


def spread(row: Row) -> str:
    """The interval from the 20th to the 80th percentile, or that there is none.

    >>> spread({"us": 1.02, "p20": 0.99, "p80": 1.02, "cache": "warm"})
    '0.99 – 1.02'
    """
    if row["p20"] is None:
        return "not given"
    return f"{figure(row['p20'], _unit(row))} – {figure(row['p80'], _unit(row))}"


def tiles_name(run: Run) -> str:
    """What the tiled kernel of a run is: this package's, or the prototype the figures from elsewhere were made with."""
    return "2-D tiles (prototype)" if run.forerunner else "2-D tiles"


def lead(case: TimingCase) -> str:
    """The opening sentence: what the settings make true."""
    cell, batch = case.cell, BATCHES[case.batch]
    fixed, adaptive = cell["row_loop_fixed"], cell["row_loop_adaptive"]
    opening = f"At **{case.seq:,} tokens** a row is {case.width:,} of {CAPACITY:,} columns wide"
    if case.at != case.seq:
        same = adaptive["width"] == case.width
        near = "the same width" if same else f"{adaptive['width']:,} columns"
        opening += f"; the nearest recorded run is at {case.at:,} tokens, {near}"
    if adaptive["width"] == CAPACITY:
        return (
            f"{opening}: nothing is saved. The row loop takes {us(adaptive)} µs for {batch.title}, "
            f"{tiles_name(case.runs.builder)} {us(cell['tiled'])} µs."
        )
    return (
        f"{opening}. For {batch.title} the row loop then takes **{us(adaptive)} µs instead of {us(fixed)}**: "
        f"{CAPACITY / adaptive['width']:,.3g} × fewer columns, "
        f"{loop_trips(CAPACITY) / adaptive['trips']:,.3g} × fewer trips, **{times(fixed, adaptive)} × less time**."
    )


def evidence(run: Run) -> str:
    """Where the figures of a run come from: what makes them evidence, or what they lack."""
    record = run.record
    if record is None:
        return "Nothing is recorded."
    facts = record.provenance
    if record.elsewhere:
        return f"Figures from elsewhere ({facts['gpu']}), taken over without samples and so without a spread."
    on_gpu = any(row["kernel"] != "host" for row in run.rows)  # the GPU's clock says nothing of the host's time
    clock = f", SM clock {facts['sm_clock_after']} at its end" if on_gpu and facts.get("sm_clock_after") else ""
    changed = ", with uncommitted changes" if facts.get("dirty") else ""
    return (
        f"Evidence: **{facts['gpu']}**, driver {facts.get('driver', 'unknown')}{clock}, torch {facts['torch']}, "
        f"triton {facts['triton']}, {str(facts['date'])[:10]}, commit `{str(facts['commit'])[:10]}`{changed}, "
        f"`{facts['command']}`."
    )


def notes(case: TimingCase, opened: Mapping[str, Any]) -> list[str]:
    """What the recorded runs do not cover of the settings, and where they were not made here."""
    said = []
    if case.runs.builder.record is not None and case.runs.builder.record.elsewhere:
        said.append("No run of this repository's bench is recorded yet: all figures below are from elsewhere.")
    if case.cache != case.shown_cache:
        said.append("No cold measurements are recorded: the warm ones are shown.")
    if opened["model_len"] != CAPACITY * 128:
        said.append(f"Model length {opened['model_len']:,}: the runs were made at {CAPACITY * 128:,}, 8,192 columns.")
    if opened["ratio"] != 128:
        said.append(f"Compress ratio {opened['ratio']}: the runs were made at 128.")
    if opened["policy"] == "aligned":
        said.append("Policy aligned: the runs were made with fixed and power-of-two widths.")
    return said


def trips_sentence(case: TimingCase) -> str:
    """Why a trip is no unit of time: the same number of trips at different widths."""
    adaptive = [row for row in case.rows if row["variant"] == "row_loop_adaptive"]
    ones = [row for row in adaptive if row["trips"] == 1]
    fixed = case.cell["row_loop_fixed"]
    most = f"The eight trips of the fixed width take {us(fixed)} µs"
    if not ones:
        return f"{most}; this batch was recorded at no width of one trip."
    first, last = ones[0], ones[-1]
    if first is last:
        return f"{most}, one trip {us(first)} µs: {times(fixed, first)} × less, not 8 × less."
    grows = ratio(last, first) > SAME
    why = (
        "what a trip writes counts, not only how many there are" if grows else "here a trip costs the same, wide or not"
    )
    return (
        f"One trip takes {us(first)} µs at {first['width']:,} columns and {us(last)} µs at {last['width']:,}: {why}. "
        f"{most}, {times(fixed, last)} × the wider one."
    )


def bytes_sentence(case: TimingCase) -> str:
    """How far the chosen cell is from writing its bytes and nothing else."""
    cell = case.cell
    adaptive, tiled, empty = cell["row_loop_adaptive"], cell["tiled"], cell["empty"]
    floor = floor_us(cell, adaptive)
    start = f"An empty kernel takes {us(empty)} µs and no launch takes less."
    if "loads" in cell:
        start = f"An empty kernel takes {us(empty)} µs, one that only loads what a build must {us(cell['loads'])}."
    if floor is None:
        return start
    return (
        f"To fill the {human_bytes(adaptive['bytes'])} of these rows takes {us(cell['fill'])} µs: the row loop takes "
        f"{times(adaptive, cell['fill'], adaptive['floor_scale'])} × that floor, {tiles_name(case.runs.builder)} "
        f"{times(tiled, cell['fill'], tiled['floor_scale'])} ×. {start}"
    )


def ratios_sentence(case: TimingCase) -> str:
    """The three ratios of the chosen cell, told apart."""
    fixed, adaptive = case.cell["row_loop_fixed"], case.cell["row_loop_adaptive"]
    columns, trips = CAPACITY / adaptive["width"], fixed["trips"] / adaptive["trips"]
    if columns == 1:
        return f"At {case.at:,} tokens all ratios are 1: the adaptive width is the capacity."
    return (
        f"At {case.at:,} tokens the width shrinks {columns:,.3g} ×, the trips {trips:,.3g} × and the row loop's time "
        f"**{times(fixed, adaptive)} ×**. Only the last one is a saving."
    )


def command(case: TimingCase) -> tuple[str, str]:
    """The bench's command for the chosen cell, and what it gives."""
    batch = BATCHES[case.batch]
    if batch.short:
        return "python -m c128a.bench builder", "This cell is the last of the whole run, on an NVIDIA GPU:"
    options = "" if case.shown_cache == "cold" else " --no-cold"
    return (
        f"python -m c128a.bench builder --cell {batch.decode},{batch.prefill},{case.at}{options}",
        "The recorded cell again, on an NVIDIA GPU:",
    )


def tight(text: str) -> str:
    """The text with numbers and what follows them bound together, so that no line begins with a sign or a unit."""
    return text.replace(" ×", "\u00a0×").replace(" µs", "\u00a0µs").replace("× ", "×\u00a0")
