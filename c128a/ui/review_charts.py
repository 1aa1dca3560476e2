"""Chart forms of page 05: bars, ranges against a claimed value, a step by kernel. Torch-free."""

from __future__ import annotations

from functools import lru_cache
from math import ceil, floor, log10
from typing import Any

import altair as alt

from c128a.ui import theme
from c128a.ui.picture import Picture, Rows, Spec, frame

Evidence = tuple[Any, str]  # a Picture or HTML text, and the sentence under it

BARE = alt.Axis(title=None, labels=False, ticks=False, grid=False, domain=False)
NAMES = alt.Axis(title=None, ticks=False, domain=False, labelLimit=260, labelPadding=6)


def bars(rows: Rows, *, unit: str, height: int = 26) -> Picture:
    """Horizontal bars with their numbers at the end. rows: name, value, text, colour."""
    return Picture(_bars_frame(len(rows), unit, height, _room(max(row["value"] for row in rows))), rows=rows)


@lru_cache(maxsize=64)
def _bars_frame(count: int, unit: str, height: int, most: float) -> Spec:
    base = alt.Chart(alt.NamedData("rows"))
    x = alt.X("value:Q", scale=alt.Scale(domain=[0, most * 1.35 or 1], nice=False), axis=BARE)
    y = alt.Y("name:N", sort=None, axis=NAMES)
    tip = ["name:N", alt.Tooltip("value:Q", title=unit, format=",.4~g")]
    return frame(
        alt.layer(
            base.mark_bar(height=height).encode(x=x, y=y, color=alt.Color("colour:N", scale=None), tooltip=tip),
            base.mark_text(align="left", dx=6, color=theme.INK, fontSize=13).encode(x=x, y=y, text="text:N"),
        ).properties(width="container", height=count * (height + 14))
    )


def spans(rows: Rows, claimed: float) -> Picture:
    """Ranges with their chosen value, and the reported gain as a line across. rows: name, low, value, high, colour."""
    most = _room(max([claimed * 1.3, *(row["high"] for row in rows)]))
    return Picture(_spans_frame(len(rows), claimed, most), rows=rows)


@lru_cache(maxsize=64)
def _spans_frame(count: int, claimed: float, most: float) -> Spec:
    base = alt.Chart(alt.NamedData("rows"))
    axis = alt.Axis(title=None, format=".1%", tickCount=6)
    x = alt.X("low:Q", scale=alt.Scale(domain=[0, most * 1.05], nice=False), axis=axis)
    y, colour = alt.Y("name:N", sort=None, axis=NAMES), alt.Color("colour:N", scale=None)
    tip = [alt.Tooltip(f"{at}:Q", format=".2%") for at in ("low", "value", "high")]
    line = alt.Chart(alt.Data(values=[{"low": claimed, "text": f"reported {claimed:.1%}"}]))
    return frame(
        alt.layer(
            line.mark_rule(color=theme.HERE, strokeDash=[4, 3], strokeWidth=2).encode(x=x),
            line.mark_text(color=theme.INK, align="left", dx=6, y=-9, fontWeight="bold").encode(x=x, text="text:N"),
            base.mark_rule(strokeWidth=10, opacity=0.45).encode(x=x, x2="high:Q", y=y, color=colour, tooltip=tip),
            base.mark_point(filled=True, size=130, opacity=1, shape="diamond").encode(
                x=alt.X("value:Q"), y=y, color=colour, tooltip=tip
            ),
        ).properties(width="container", height=40 * count, padding={"top": 22, "left": 4, "right": 4, "bottom": 4})
    )


def parts(rows: Rows, whole_us: float) -> Picture:
    """Microseconds a step by form and kernel, stacked. rows: form, kernel, us_a_step (`review_data.parts_table`)."""
    totals: dict[str, float] = {}
    for row in rows:
        totals[row["form"]] = totals.get(row["form"], 0.0) + row["us_a_step"]
    ends = [
        {"form": form, "us_a_step": us, "text": f"{us:,.0f} µs, {us / whole_us:.2%} of the step"}
        for form, us in totals.items()
    ]
    return Picture(_parts_frame(_room(max(totals.values()))), rows=rows, ends=ends)


@lru_cache(maxsize=64)
def _parts_frame(most: float) -> Spec:
    base = alt.Chart(alt.NamedData("rows"))
    x = alt.X(
        "us_a_step:Q",
        stack="zero",
        scale=alt.Scale(domain=[0, most * 1.4], nice=False),
        axis=alt.Axis(title="microseconds a step", format=",d", tickCount=8),
    )
    y = alt.Y("form:N", sort=None, axis=NAMES)
    colour = alt.Scale(domain=["combine", "builder"], range=[theme.BLUE, theme.ORANGE])
    return frame(
        alt.layer(
            base.mark_bar(height=26).encode(
                x=x,
                y=y,
                color=alt.Color("kernel:N", scale=colour),
                order=alt.Order("kernel:N", sort="descending"),
                tooltip=["form:N", "kernel:N", "launches:Q", alt.Tooltip("us_a_step:Q", format=",.1f"), "basis:N"],
            ),
            alt.Chart(alt.NamedData("ends"))
            .mark_text(align="left", dx=6, color=theme.INK, fontSize=13)
            .encode(x=alt.X("us_a_step:Q"), y=y, text="text:N"),
        ).properties(width="container", height=130)
    )


def _room(most: float) -> float:
    """The next number of two digits: so coarse a scale lets one frame serve many settings.

    >>> _room(2871.0), _room(0.0196), _room(0)
    (2900.0, 0.02, 0.0)
    """
    if most <= 0:
        return 0.0
    step = 10.0 ** (floor(log10(most)) - 1)
    return float(f"{ceil(most / step) * step:.2g}")
