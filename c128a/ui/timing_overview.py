"""All recorded cells at once on page 04: the row loop against the tiles, and both against the floor. Torch-free."""

from __future__ import annotations

from functools import lru_cache
from statistics import geometric_mean
from typing import Any

import altair as alt

from c128a.ui import theme
from c128a.ui import timing_axes as axes
from c128a.ui.picture import Picture, Spec, frame
from c128a.ui.timing_data import Row, TimingCase, floor_us, ratio
from c128a.ui.timing_runs import BATCHES, LENGTHS, Run
from c128a.ui.timing_text import tiles_name, times
from c128a.ui.timing_view import SERIES
from c128a.ui.width_text import human_bytes

LENGTH_STYLE = {  # colour and shape of a length, short to long
    4_096: (theme.SKY, "circle"),
    32_768: (theme.BLUE, "square"),
    131_072: (theme.ORANGE, "triangle-up"),
    1_048_576: (theme.PURPLE, "diamond"),
}
# The goal set for the tiles: times the floor, from so many bytes of rows on.
GOALS = ((0, 1.6), (2**20, 1.25), (2**25, 1.15))


def cells(run: Run, cache: str) -> list[tuple[str, int, dict[str, Row]]]:
    """Batch, length and rows by variant of every recorded cell that has the row loop and the tiles."""
    found = []
    for batch in BATCHES:
        for seq in LENGTHS:
            cell = run.cell(batch, seq, cache)
            if "row_loop_adaptive" in cell and "tiled" in cell:
                found.append((batch, seq, cell))
    return found


def speedups(case: TimingCase) -> list[dict[str, Any]]:
    """How many times longer the row loop takes than the tiles at the same width, in every recorded cell."""
    made = []
    for batch, seq, cell in cells(case.runs.builder, case.shown_cache):
        loop, tiled = cell["row_loop_adaptive"], cell["tiled"]
        bar = {}
        if loop["p20"] is not None and tiled["p20"] is not None:
            bar = {"low": loop["p20"] / tiled["p80"], "high": loop["p80"] / tiled["p20"]}
        tip = f"{BATCHES[batch].title}, {seq:,} tokens: {times(loop, tiled)} ×"
        made.append(
            {"batch": BATCHES[batch].title, "length": f"{seq:,}", "ratio": ratio(loop, tiled), "tip": tip, **bar}
        )
    return made


def speedup_chart(case: TimingCase) -> Picture:
    """Row loop over tiles in every cell, a line for each batch."""
    rows = speedups(case)
    mean = geometric_mean([row["ratio"] for row in rows])
    here = [row for row in rows if row["batch"] == BATCHES[case.batch].title and row["length"] == f"{case.at:,}"]
    return Picture(
        _speedup_frame(tuple(dict.fromkeys(row["batch"] for row in rows))),
        points=rows,
        here=here,
        mean=[{"ratio": mean, "text": f"geometric mean {mean:.2f} ×"}],
        same=[{"ratio": 1}],
    )


@lru_cache(maxsize=16)
def _speedup_frame(batches: tuple[str, ...]) -> Spec:
    names = [f"{length:,}" for length in LENGTHS]
    colours, shapes = zip(*LENGTH_STYLE.values(), strict=True)
    legend = alt.Legend(title="tokens", titleOrient="left", symbolOpacity=1)
    colour = alt.Color("length:N", scale=alt.Scale(domain=names, range=list(colours)), legend=legend)
    shape = alt.Shape("length:N", scale=alt.Scale(domain=names, range=list(shapes)), legend=legend)
    x = alt.X(
        "ratio:Q",
        scale=alt.Scale(type="log", base=2, nice=False, padding=20),
        axis=alt.Axis(title="time of the row loop over time of the tiles, same width", values=[1, 1.5, 2, 3, 4, 5, 6]),
    )
    y = alt.Y("batch:N", sort=list(batches), axis=alt.Axis(title=None, ticks=False, domain=False, labelLimit=300))
    points, mean = (alt.Chart(alt.NamedData(name)) for name in ("points", "mean"))
    return frame(
        alt.layer(
            alt.Chart(alt.NamedData("same")).mark_rule(color=theme.GREY, strokeWidth=2).encode(x=x),
            mean.mark_rule(color=theme.INK, strokeDash=[4, 4]).encode(x=x),
            *theme.halo_text(mean.encode(x=x), y=0, align="left", dx=6, dy=4),
            points.mark_rule(strokeWidth=3, opacity=0.5).encode(x=alt.X("low:Q"), x2="high:Q", y=y, color=colour),
            points.mark_point(filled=True, size=95, opacity=1).encode(
                x=x, y=y, color=colour, shape=shape, tooltip=alt.Tooltip("tip:N", title="row loop / tiles")
            ),
            alt.Chart(alt.NamedData("here"))
            .mark_point(size=340, shape="circle", color=theme.HERE, strokeWidth=2, opacity=1)
            .encode(x=x, y=y),
        ).properties(width="container", height=38 * len(batches) + 20)
    )


def speedup_sentence(case: TimingCase) -> str:
    """The mean and the least gain of the tiles, and where it is least."""
    rows = speedups(case)
    least = min(rows, key=lambda row: row["ratio"])
    mean = geometric_mean([row["ratio"] for row in rows])
    slower = sum(row["ratio"] < 1 for row in rows)
    where = f"{least['batch']} at {least['length']} tokens"
    end = (
        f"In {slower} of them they are slower: least {least['ratio']:.2f} ×"
        if slower
        else f"Least {least['ratio']:.2f} ×"
    )
    return (
        f"Over {len(rows)} recorded cells ({case.shown_cache} L2) {tiles_name(case.runs.builder)} take "
        f"{mean:.2f} × less time than the row loop at the same width, in the geometric mean. {end}, for {where}."
    )


def floors(case: TimingCase) -> list[dict[str, Any]]:
    """Row loop and tiles over the floor of their bytes, in every recorded cell that has a fill."""
    made = []
    for batch, seq, cell in cells(case.runs.builder, case.shown_cache):
        for variant in ("row_loop_adaptive", "tiled"):
            row = cell[variant]
            floor = floor_us(cell, row)
            if floor is not None:
                name = tiles_name(case.runs.builder) if variant == "tiled" else "row loop"
                shown = times(row, cell["fill"], row["floor_scale"])
                tip = (
                    f"{name}, {BATCHES[batch].title}, {seq:,} tokens, {human_bytes(row['bytes'])}: {shown} × the floor"
                )
                made.append({"kernel": name, "bytes": row["bytes"], "ratio": row["us"] / floor, "tip": tip})
                made[-1]["here"] = batch == case.batch and seq == case.at
    return made


def floor_chart(case: TimingCase) -> Picture:
    """Time over the floor against the bytes of the rows, with the goal that was set for the tiles."""
    rows = floors(case)
    steps = [{"bytes": max(least, 256), "ratio": goal} for least, goal in GOALS]
    steps.append({"bytes": 2**29, "ratio": GOALS[-1][1]})
    return Picture(
        _floor_frame(tiles_name(case.runs.builder)),
        points=rows,
        here=[row for row in rows if row["here"]],
        goal=steps,
        goal_label=[{**steps[0], "text": "goal for the tiles"}],
        floor=[{"ratio": 1, "text": "floor: 1"}],
    )


@lru_cache(maxsize=4)
def _floor_frame(tiles: str) -> Spec:
    domain = ["row loop", tiles]
    styles = [SERIES["row_loop_adaptive"], SERIES["tiled"]]
    colour = alt.Color("kernel:N", scale=alt.Scale(domain=domain, range=[style[1] for style in styles]))
    shape = alt.Shape("kernel:N", scale=alt.Scale(domain=domain, range=[style[2] for style in styles]))
    ticks = axes.octaves(256, 2**29)
    x = alt.X(
        "bytes:Q",
        scale=alt.Scale(type="log", base=2, nice=False, domain=[256, 2**29]),
        axis=alt.Axis(title="bytes of the rows", labelExpr=axes.BYTES_LABEL, values=ticks, grid=False),
    )
    y = alt.Y(
        "ratio:Q",
        scale=alt.Scale(type="log", base=2, nice=False, padding=14),
        axis=alt.Axis(title="time over the floor", values=[1, 1.25, 1.6, 2, 3, 4, 6, 8]),
    )
    points, goal, floor = (alt.Chart(alt.NamedData(name)) for name in ("points", "goal", "floor"))
    label = alt.Chart(alt.NamedData("goal_label"))
    return frame(
        alt.layer(
            floor.mark_rule(color=theme.KERNEL["fill"], strokeWidth=2).encode(y=y),
            goal.mark_line(interpolate="step-after", color=theme.INK, strokeDash=[4, 4], strokeWidth=1.5).encode(
                x=x, y=y
            ),
            *theme.halo_text(label.encode(x=x, y=y), align="left", dx=4, dy=-9),
            points.mark_point(filled=True, size=85, opacity=1).encode(
                x=x, y=y, color=colour, shape=shape, tooltip=alt.Tooltip("tip:N", title="over the floor")
            ),
            alt.Chart(alt.NamedData("here"))
            .mark_point(size=320, shape="circle", color=theme.HERE, strokeWidth=2, opacity=1)
            .encode(x=x, y=y),
        ).properties(width="container", height=304)
    )


def floor_sentence(case: TimingCase) -> str:
    """How near the tiles come to the floor, by size, and how many cells miss the goal."""
    tiled = [row for row in floors(case) if row["kernel"] != "row loop"]
    goals = [(row, max((least, goal) for least, goal in GOALS if row["bytes"] >= least)[1]) for row in tiled]
    missed = [row for row, goal in goals if row["ratio"] > goal]
    worst, best = (pick(tiled, key=lambda row: row["ratio"]) for pick in (max, min))
    under = "" if best["ratio"] >= 1 else " Below 1 the reads cost less than the floor allows for them."
    verb = "misses" if len(missed) == 1 else "miss"
    said = f"{len(missed)} of {len(tiled)} cells {verb} the goal." if missed else "All of them meet the goal."
    return (
        f"The floor is a fill of the same bytes, scaled up by what must also be read. {tiles_name(case.runs.builder)} "
        f"take {best['ratio']:.2f} to {worst['ratio']:.2f} × of it, most where the rows are "
        f"{human_bytes(worst['bytes'])}. {said}{under}"
    )
