"""All recorded cells at once on page 04: the row loop against the tiles. Torch-free."""

from __future__ import annotations

from functools import lru_cache
from statistics import geometric_mean
from typing import Any

import altair as alt

from c128a.ui import theme
from c128a.ui.picture import Picture, Spec, frame
from c128a.ui.timing_data import Row, TimingCase, ratio
from c128a.ui.timing_runs import BATCHES, LENGTHS, Run
from c128a.ui.timing_text import tiles_name, times

LENGTH_STYLE = {  # colour and shape of a length, short to long
    4_096: (theme.SKY, "circle"),
    32_768: (theme.BLUE, "square"),
    131_072: (theme.ORANGE, "triangle-up"),
    1_048_576: (theme.PURPLE, "diamond"),
}


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
    end = f"{f'In {slower} of them they are slower: least' if slower else 'Least'} {least['ratio']:.2f} ×"
    return (
        f"Over {len(rows)} recorded cells ({case.shown_cache} L2) {tiles_name(case.runs.builder)} take "
        f"{mean:.2f} × less time than the row loop at the same width, in the geometric mean. {end}, for {where}."
    )
