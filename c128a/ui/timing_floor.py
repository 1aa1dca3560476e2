"""How far every recorded build is from writing its bytes and nothing else, on page 04. Torch-free."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import altair as alt

from c128a.layout import human_bytes
from c128a.ui import theme
from c128a.ui import timing_axes as axes
from c128a.ui.picture import Picture, Spec, frame
from c128a.ui.timing_data import TimingCase, floor_us
from c128a.ui.timing_overview import cells
from c128a.ui.timing_runs import BATCHES
from c128a.ui.timing_text import tiles_name, times
from c128a.ui.timing_view import SERIES

# The goal set for the tiles: times the floor, from so many bytes of rows on.
GOALS = ((0, 1.6), (2**20, 1.25), (2**25, 1.15))


def floors(case: TimingCase) -> list[dict[str, Any]]:
    """Row loop and tiles over the floor of their bytes, in every recorded cell that has a fill."""
    made = []
    for batch, seq, cell in cells(case.runs.builder, case.shown_cache):
        for variant in ("row_loop_adaptive", "tiled"):
            row = cell[variant]
            floor = floor_us(cell, row)
            if floor is not None:
                name = tiles_name(case.runs.builder) if variant == "tiled" else "row loop"
                where = f"{name}, {BATCHES[batch].title}, {seq:,} tokens, {human_bytes(row['bytes'])}"
                made.append(
                    {
                        "kernel": name,
                        "bytes": row["bytes"],
                        "ratio": row["us"] / floor,
                        "tip": f"{where}: {times(row, cell['fill'], row['floor_scale'])} × the floor",
                        "here": batch == case.batch and seq == case.at,
                        "held_by_loads": "loads" in cell and cell["loads"]["us"] > cell["fill"]["us"],
                    }
                )
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
    missed = [row for row, goal in goals if round(row["ratio"], 2) > goal]
    worst, best = (pick(tiled, key=lambda row: row["ratio"]) for pick in (max, min))
    under = "" if best["ratio"] >= 1 else " Below 1 the reads cost less than the floor allows for them."
    said = "All of them meet the goal."
    if missed:
        said = f"{len(missed)} of {len(tiled)} cells {'misses' if len(missed) == 1 else 'miss'} the goal"
        held = sum(row["held_by_loads"] for row in missed)
        where = "there" if len(missed) == 1 else f"in {held} of these"
        said += f"; {where} the loads alone take longer than the fill." if held else "."
    return (
        f"The floor is a fill of the same bytes, scaled up by what must also be read. {tiles_name(case.runs.builder)} "
        f"take {best['ratio']:.2f} to {worst['ratio']:.2f} × of it, most where the rows are "
        f"{human_bytes(worst['bytes'])}. {said}{under}"
    )
