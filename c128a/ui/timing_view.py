"""The pictures of one batch on page 04: time against trips, against bytes, and three ratios. Torch-free.

Every series has a colour and a shape; bars from the 20th to the 80th percentile are drawn where a record has samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import altair as alt

from c128a.layout import human_bytes
from c128a.ui import theme
from c128a.ui import timing_axes as axes
from c128a.ui.picture import Picture, Spec, frame
from c128a.ui.timing_data import Row, TimingCase
from c128a.ui.timing_text import VARIANTS, spread, tiles_name, us
from c128a.width import loop_trips

HEIGHT = 330  # pixels
SERIES = {  # variant: (name, colour, shape)
    "row_loop_fixed": (VARIANTS["row_loop_fixed"], theme.KERNEL["row_loop_fixed"], "square"),
    "row_loop_adaptive": (VARIANTS["row_loop_adaptive"], theme.KERNEL["row_loop"], "circle"),
    "tiled": ("2-D tiles, adaptive width", theme.KERNEL["tiled"], "diamond"),
    "fill": ("floor: the same bytes, moved", theme.KERNEL["fill"], "triangle-down"),
}
LIVE = {  # drawn over the recorded ones
    **{variant: (name, colour, shape) for variant, (name, colour, shape) in SERIES.items()},
    "reference_fixed": (VARIANTS["reference_fixed"], theme.KERNEL["row_loop_fixed"], "cross"),
    "reference_adaptive": (VARIANTS["reference_adaptive"], theme.SKY, "cross"),
    "reference_fill": (VARIANTS["reference_fill"], theme.KERNEL["fill"], "cross"),
}


def mark(row: Row, us_shown: float, name: str) -> dict[str, Any]:
    """A point of a chart: its time, its bar, and the sentence of its tooltip."""
    scale = us_shown / row["us"]
    bar = {"low": row["p20"] * scale, "high": row["p80"] * scale} if row["p20"] is not None else {}
    trips = f", {row['trips']} trip{'s' if row['trips'] > 1 else ''}" if row["trips"] else ""
    times_shown = f" × {scale:.3g} for what is read" if scale != 1 else ""
    tip = (
        f"{name}: {us(row)} µs{times_shown} ({row['cache']} L2; p20 – p80: {spread(row)}), {row['seq']:,} tokens, "
        f"{row['width']:,} columns{trips}, {human_bytes(row['bytes'])}"
    )
    return {"series": name, "us": us_shown, "bytes": row["bytes"], "tip": tip, **bar}


def points(case: TimingCase) -> list[dict[str, Any]]:
    """One point a variant and length of the batch; a fill counts as what its rows' bytes would take to move."""
    made = []
    names = names_of(case)
    for row in case.rows:
        if row["variant"] in SERIES:
            point = mark(row, row["us"] * scale_of(row), names[row["variant"]])
            made.append({**point, "seq": row["seq"], "width": row["width"], "trips": row["trips"]})
    return made


def scale_of(row: Row) -> float:
    """What a fill's time is multiplied by to be the floor of its rows; 1 for all that is no floor of a GPU."""
    return row["floor_scale"] if row["variant"] == "fill" else 1.0


def names_of(case: TimingCase) -> dict[str, str]:
    """The name of each series: the tiles of the figures from elsewhere are a prototype, and say so."""
    tiles = f"{tiles_name(case.runs.builder)}, adaptive width"
    return {variant: tiles if variant == "tiled" else name for variant, (name, _, _) in SERIES.items()}


def _rules(case: TimingCase) -> list[dict[str, Any]]:
    """What a launch costs before it writes anything: an empty kernel, and the loads that a build cannot avoid."""
    kinds = {"empty": theme.KERNEL["empty"], "loads": theme.GREY}
    return [
        {"us": row["us"], "text": f"{VARIANTS[variant]} {us(row)} µs", "colour": colour}
        for variant, colour in kinds.items()
        if (row := case.cell.get(variant))
    ]


def trips_chart(case: TimingCase) -> Picture:
    """Microseconds over trips of the row loop, the widths of one trip count side by side."""
    every, rows = points(case), []
    for point in every:
        fixed = point["series"] == SERIES["row_loop_fixed"][0]
        trips = loop_trips(point["width"])
        label = f"{point['width']:,}" + (" (fixed)" if fixed else "")
        rows.append({**point, "group": "1 trip" if trips == 1 else f"{trips} trips", "column": label})
    rows = [{**row, "at": f"{row['group']}|{row['column']}"} for row in rows]
    places = tuple(dict.fromkeys(row["at"] for row in sorted(rows, key=lambda row: (row["width"], row["column"]))))
    rules = _rules(case)
    return Picture(
        _trips_frame(tuple(names_of(case).items()), places, axes.span([*every, *rules])),
        points=rows,
        here=[row for row in rows if row["seq"] == case.at and row["series"] != SERIES["fill"][0]],
        rules=rules,
        lines=[],
    )


@lru_cache(maxsize=16)
def _trips_frame(names: tuple[tuple[str, str], ...], places: tuple[str, ...], span: tuple[float, float]) -> Spec:
    x = alt.X(
        "at:N",
        scale=alt.Scale(domain=list(places), paddingInner=0.2),
        axis=alt.Axis(
            title="trips of the row loop, and columns written",
            labelAngle=0,
            labelExpr="split(datum.value, '|')",
            ticks=False,
            labelOverlap=False,
        ),
    )
    return frame(_layers(x, span, dict(names)))


def bytes_chart(case: TimingCase, live: Sequence[Row] = ()) -> Picture:
    """Microseconds over bytes written, both on log axes, with the floors; live rows drawn over the recorded ones."""
    every = points(case)
    rules = _rules(case)[: 1 if live else None]  # over the decades of a live chart their labels would collide
    device = next((row["device"] for row in live), "")
    drawn = [
        {
            **mark(row, row["us"] * scale_of(row), f"live · {device}, {LIVE[row['variant']][0]}"),
            "series": LIVE[row["variant"]][0],
        }
        for row in live
        if row["variant"] in LIVE
    ]
    top = max(drawn, key=lambda row: row["us"], default=None)
    names = tuple(names_of(case).items())
    extra = tuple(dict.fromkeys(row["series"] for row in drawn if row["series"].startswith("torch")))
    return Picture(
        _bytes_frame(names, extra, axes.span([*every, *drawn, *rules]), axes.span([*every, *drawn], "bytes")),
        points=every,
        here=[
            point for point in every if point["seq"] == case.at and point["series"] != SERIES["fill"][0] and not live
        ],
        lines=[point for point in every if point["series"] != SERIES["row_loop_fixed"][0]],
        rules=rules,
        live=drawn,
        live_label=[{**top, "text": f"live · {device}"}] if top else [],
    )


@lru_cache(maxsize=16)
def _bytes_frame(
    names: tuple[tuple[str, str], ...], extra: tuple[str, ...], span: tuple[float, float], sizes: tuple[float, float]
) -> Spec:
    x = alt.X(
        "bytes:Q",
        scale=alt.Scale(type="log", base=2, nice=False, domain=list(sizes)),
        axis=alt.Axis(title="bytes of the rows", labelExpr=axes.BYTES_LABEL, values=axes.octaves(*sizes), grid=False),
    )
    return frame(_layers(x, span, dict(names), live=True, extra=extra))


def _layers(
    x: alt.X, span: tuple[float, float], names: dict[str, str], *, live: bool = False, extra: Sequence[str] = ()
) -> Any:
    style = {names[variant]: (colour, shape) for variant, (_, colour, shape) in SERIES.items()}
    style |= {name: (colour, shape) for name, colour, shape in LIVE.values() if name in extra}
    domain = [*names.values(), *extra]
    legend = alt.Legend(columns=2, symbolOpacity=1)
    scale = alt.Scale(domain=domain, range=[style[n][0] for n in domain])
    colour = alt.Color("series:N", scale=scale, legend=legend)
    shape = alt.Shape("series:N", scale=alt.Scale(domain=domain, range=[style[n][1] for n in domain]), legend=legend)
    y = alt.Y(
        "us:Q",
        scale=alt.Scale(type="log", nice=False, domain=list(span)),
        axis=alt.Axis(title="microseconds", format=",.3~r", values=axes.decades(*span)),
    )
    data = {name: alt.Chart(alt.NamedData(name)) for name in ("points", "here", "rules", "lines", "live", "live_label")}
    rules = data["rules"]
    layers = [
        rules.mark_rule(strokeDash=[5, 4], strokeWidth=2).encode(y=y, stroke=alt.Stroke("colour:N", scale=None)),
        *theme.halo_text(rules.encode(y=y), x="width", align="right", dx=-6, dy=-9),
        data["points"]
        .mark_rule(strokeWidth=3, opacity=0.6, clip=True)
        .encode(x=x, y=alt.Y("low:Q"), y2="high:Q", color=colour),
        data["points"]
        .mark_point(filled=True, size=95, opacity=1)
        .encode(x=x, y=y, color=colour, shape=shape, tooltip=alt.Tooltip("tip:N", title="recorded")),
        data["here"].mark_point(size=340, shape="circle", color=theme.HERE, strokeWidth=2, opacity=1).encode(x=x, y=y),
    ]
    # Without lines the layer stays, empty: it is what makes the legends of both charts equally tall.
    layers.insert(2, data["lines"].mark_line(strokeWidth=1.5).encode(x=x, y=y, color=colour))
    if live:
        layers += [
            data["live"]
            .mark_rule(strokeWidth=3, opacity=0.6, clip=True)
            .encode(x=x, y=alt.Y("low:Q"), y2="high:Q", color=colour),
            data["live"]
            .mark_point(filled=True, size=190, opacity=1, stroke=theme.HERE, strokeWidth=1.5)
            .encode(x=x, y=y, fill=colour, shape=shape, tooltip=alt.Tooltip("tip:N", title="live")),
            *theme.halo_text(data["live_label"].encode(x=x, y=y), align="right", dx=-14, dy=-4, fontWeight="bold"),
        ]
    return alt.layer(*layers).properties(width="container", height=HEIGHT)
