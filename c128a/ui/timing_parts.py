"""The combine and the host on page 04: what is paid once a layer, and what is paid before a launch. Torch-free."""

from __future__ import annotations

from functools import lru_cache
from statistics import geometric_mean
from typing import Any

import altair as alt

from c128a.layout import human_bytes
from c128a.ui import theme
from c128a.ui import timing_axes as axes
from c128a.ui.picture import Picture, Spec, frame
from c128a.ui.timing_data import Row, TimingCase, ratio
from c128a.ui.timing_runs import BATCHES, Run
from c128a.ui.timing_text import spread, times, us

TOKENS = ("p2048", "p8192")  # batches that the combine was timed with
FORMS = {  # variant: (name, colour, shape)
    "from_rows_fixed": ("from rows, fixed width", theme.KERNEL["row_loop_fixed"], "square"),
    "from_rows_adaptive": ("from rows, adaptive width", theme.KERNEL["row_loop"], "circle"),
    "from_positions": ("from positions", theme.KERNEL["tiled"], "diamond"),
    "from_positions_live": ("from positions, live prefix only", theme.SKY, "triangle-up"),
    "fill": ("floor: fill of the same bytes", theme.KERNEL["fill"], "triangle-down"),
}


def combine_points(case: TimingCase, batch: str) -> list[dict[str, Any]]:
    """The forms of the combine at every recorded length, one point each."""
    made = []
    for row in case.runs.combine.of(batch, case.combine_cache()):
        if row["variant"] in FORMS:
            name = FORMS[row["variant"]][0]
            bar = {"low": row["p20"], "high": row["p80"]} if row["p20"] is not None else {}
            tip = (
                f"{name}{' (prototype)' if row['forerunner'] else ''}: {us(row)} µs ({row['cache']} L2; p20 – p80: "
                f"{spread(row)}), {row['seq']:,} tokens, {human_bytes(row['bytes'])}"
            )
            made.append({"form": name, "length": f"{row['seq']:,}", "us": row["us"], "tip": tip, **bar})
    return made


def combine_chart(case: TimingCase, batch: str) -> Picture:
    """Microseconds of each form over the length, for 2,048 or 8,192 tokens, on the same scale for both."""
    every = [point for tokens in TOKENS for point in combine_points(case, tokens)]
    times_shown = [point["us"] for point in every]
    shown = combine_points(case, batch)
    lengths = tuple(dict.fromkeys(point["length"] for point in shown))
    forms = tuple(name for name, _, _ in FORMS.values() if any(point["form"] == name for point in every))
    return Picture(
        _combine_frame(f"{BATCHES[batch].prefill:,} tokens", lengths, forms, (min(times_shown), max(times_shown))),
        points=shown,
    )


@lru_cache(maxsize=16)
def _combine_frame(title: str, lengths: tuple[str, ...], forms: tuple[str, ...], span: tuple[float, float]) -> Spec:
    styles = {name: (colour, shape) for name, colour, shape in FORMS.values()}
    legend = alt.Legend(columns=2, symbolOpacity=1)
    colour = alt.Color(
        "form:N", scale=alt.Scale(domain=list(forms), range=[styles[f][0] for f in forms]), legend=legend
    )
    shape = alt.Shape("form:N", scale=alt.Scale(domain=list(forms), range=[styles[f][1] for f in forms]), legend=legend)
    x = alt.X("length:N", sort=list(lengths), axis=alt.Axis(title=f"tokens of context, {title} a chunk", labelAngle=0))
    y = alt.Y(
        "us:Q",
        scale=alt.Scale(type="log", nice=False, domain=[span[0] / 1.3, span[1] * 1.3]),
        axis=alt.Axis(title="microseconds a layer", format=",.3~r", values=axes.decades(span[0] / 1.3, span[1] * 1.3)),
    )
    points = alt.Chart(alt.NamedData("points"))
    return frame(
        alt.layer(
            points.mark_line(strokeWidth=1.5).encode(x=x, y=y, color=colour),
            points.mark_rule(strokeWidth=3, opacity=0.6).encode(x=x, y=alt.Y("low:Q"), y2="high:Q", color=colour),
            points.mark_point(filled=True, size=95, opacity=1).encode(
                x=x, y=y, color=colour, shape=shape, tooltip=alt.Tooltip("tip:N", title="combine")
            ),
        ).properties(width="container", height=300)
    )


def combine_sentence(case: TimingCase) -> str:
    """What the two forms cost against each other, and what the width saves the released one."""
    run, cache = case.runs.combine, case.combine_cache()
    pairs = []
    for batch in TOKENS:
        for seq in sorted({row["seq"] for row in run.of(batch, cache)}):
            cell = run.cell(batch, seq, cache)
            if "from_rows_adaptive" in cell and "from_positions" in cell:
                pairs.append(ratio(cell["from_rows_adaptive"], cell["from_positions"]))
    if not pairs:
        return "No run of the combine is recorded."
    name = "The form from positions (a prototype)" if run.forerunner else "The form from positions"
    said = (
        f"{name} takes {geometric_mean(pairs):.2f} × less time than the form from rows at the same width, in the "
        f"geometric mean of {len(pairs)} cells; least {min(pairs):.2f} ×."
    )
    at = _widest_gain(run, cache)
    if at:
        fixed, adaptive = at["from_rows_fixed"], at["from_rows_adaptive"]
        said = (
            f"The combine runs once in each C128A layer, 20 or 31 times a step: at {fixed['seq']:,} tokens the "
            f"adaptive width brings it from {us(fixed)} to {us(adaptive)} µs, {times(fixed, adaptive)} × less. {said}"
        )
    return said


def _widest_gain(run: Run, cache: str) -> dict[str, Row] | None:
    """The cell of 8,192 tokens at 32,768, where both widths of the form from rows are recorded."""
    cell = run.cell("p8192", 32_768, cache)
    return cell if "from_rows_fixed" in cell and "from_rows_adaptive" in cell else None


def host_chart(case: TimingCase) -> Picture:
    """Host time of one call, a bar for each part; a record without samples gives a range instead."""
    rows = []
    for row in case.runs.host.rows:
        low, high = row["p20"], row["p80"]
        text = f"{us(row)} µs"
        if row["ranged"]:
            text = f"{low:g} µs" if low == high else f"{low:g} – {high:g} µs"
        part = row["variant"].startswith("its ")
        bar = {"low": low, "high": high}
        name = f"{'· ' if part else ''}{row['variant']}"
        rows.append({"name": name, "us": row["us"], "kind": "part" if part else "whole", "text": text, **bar})
    return Picture(_host_frame(tuple(row["name"] for row in rows)), bars=rows)


@lru_cache(maxsize=4)
def _host_frame(names: tuple[str, ...]) -> Spec:
    y = alt.Y("name:N", sort=list(names), axis=alt.Axis(title=None, ticks=False, domain=False, labelLimit=400))
    x = alt.X("us:Q", axis=alt.Axis(title="microseconds of host time a call", tickCount=8))
    fill = alt.Color(
        "kind:N", scale=alt.Scale(domain=["whole", "part"], range=[theme.BLUE, theme.SKY]), legend=None
    )  # parts are indented as well
    bars = alt.Chart(alt.NamedData("bars"))
    return frame(
        alt.layer(
            bars.mark_bar(height=16).encode(x=x, y=y, color=fill),
            bars.mark_rule(strokeWidth=3, color=theme.INK, opacity=0.7).encode(x="low:Q", x2="high:Q", y=y),
            bars.mark_text(align="left", dx=8, color=theme.INK).encode(x="high:Q", y=y, text="text:N"),
        ).properties(width="container", height=28 * len(names) + 10)
    )


def host_sentence(case: TimingCase) -> str:
    """What a whole build costs the host, against an ordinary launch alone and a graph replay."""
    rows = {row["variant"]: row for row in case.runs.host.rows}
    whole = rows.get("build_c128a_topk_metadata")
    if not rows:
        return "No host times are recorded."
    if whole is None:
        longest = max(rows.values(), key=lambda row: row["us"])
        return (
            f"No host time of this package's build is recorded yet. Elsewhere, “{longest['variant']}” took the longest "
            "of the launches: longer than most kernels on this page run."
        )
    ordinary = rows.get("row loop, Triton's ordinary launch alone")
    parts = [row for name, row in rows.items() if name.startswith("its part")]
    left = whole["us"] - sum(row["us"] for row in parts)
    said = f"One build costs the host {us(whole)} µs, its checks and views included"
    if ordinary:
        said += f"; Triton's ordinary launch alone takes {us(ordinary)}"
    named = " and ".join(f"{name.split(': ')[1]} ({us(row)} µs)" for name, row in rows.items() if row in parts)
    return f"{said}. Of it, {named} are parts timed alone; about {max(0, left):.0f} µs are the rest." if parts else said
