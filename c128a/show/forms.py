"""Six forms of picture: each takes a pandas DataFrame and a few keywords, and returns a Picture. Torch-free.

| form   | shows                                                       | columns (optional ones in brackets)           |
|--------|-------------------------------------------------------------|-----------------------------------------------|
| bands  | memory, rows, programs, lanes: [start, stop) in named lanes | lane start stop, kind or order                |
|        |                                                             | [group lanes label short]                     |
| points | measured values, with whiskers, on linear or log axes       | x and y as named [series low high here label] |
| bars   | amounts side by side or stacked                             | name value [part label low high]              |
| curve  | lines or steps of several series, "you are here"            | x and y as named [series]                     |
| spans  | ranges on one axis, a line each                             | name low high [kind value label]              |
| matrix | verdicts or values, a cell each                             | row and column as named, kind or value [label]|

Every form also takes, by keyword:

    description   required: what a screen reader calls the chart
    title         a line of text above the chart
    styles        {kind or series: theme.Style}: colours, shapes, dashes, and all entries of the legend in their order
    legend        False for none; there is none either where there is one entry
    click         columns whose values the clicked mark reports, see `page.clickable`

A column `tip` holds the text shown when the pointer is on a mark, which a screen reader reads too. Other frames that a
form takes are named like the keyword, and every one may have a `tip`.

A picture is a Vega-Lite dictionary, written here as one: Altair takes tens of milliseconds to build and check a chart
of this size, most of what a key press may take; a test has each form checked by Altair instead.

>>> widths = pd.DataFrame({"name": ["fixed", "adaptive"], "value": [8192, 256], "label": ["8,192", "256"]})
>>> picture = bars(widths, description="Columns a row")
>>> picture.spec["description"], len(picture.spec["datasets"]["bars"])
('Columns a row', 2)
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import altair as alt
import pandas as pd

from c128a.show import theme
from c128a.show.theme import Style

MIME = "application/vnd.vegalite.v6+json"
MAX_MARKS = 20_000  # rows in one chart; more are slow to draw and too small to see
LONG = 100  # rows from which on data travels as CSV
CHARACTER = 7  # pixels; a label is left out where it would not fit its mark

Spec = dict[str, Any]
Styles = Mapping[str, Style]


class Picture:
    """A chart's dictionary with rows for its named data; marimo and Jupyter draw it.

    spec: the Vega-Lite dictionary without data; rows: a frame for each of its named datasets.

    Raises ValueError where the rows are more than MAX_MARKS: aggregate them first.
    """

    def __init__(self, spec: Spec, **rows: pd.DataFrame) -> None:
        marks = sum(len(part) for part in rows.values())
        if marks > MAX_MARKS:
            raise ValueError(f"the chart would hold {marks:,} rows; it must hold at most {MAX_MARKS:,}")
        self._spec, self._rows = spec, rows

    @property
    def spec(self) -> Spec:
        """The whole Vega-Lite dictionary, its data as rows."""
        return {**self._spec, "datasets": {name: _records(part) for name, part in self._rows.items()}}

    def to_json(self) -> str:
        """The chart as short JSON, its long data as CSV: a page reads each character of it anew at each change."""
        long = {name: part for name, part in self._rows.items() if len(part) >= LONG}
        datasets = {name: _csv(part) if name in long else _records(part) for name, part in self._rows.items()}
        spec = _told(self._spec, {name: _csv_format(part) for name, part in long.items()})
        return json.dumps({**spec, "datasets": datasets}, separators=(",", ":"))

    def _mime_(self) -> tuple[str, str]:
        return MIME, self.to_json()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Spec]:
        return {MIME: self.spec}


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows as dictionaries of Python's own numbers and texts; what is missing is None."""
    columns = [[None if pd.isna(value) else value for value in frame[name].tolist()] for name in frame.columns]
    return [dict(zip(frame.columns, row, strict=True)) for row in zip(*columns, strict=True)]


def _csv(frame: pd.DataFrame) -> str:
    return frame.to_csv(index=False, lineterminator="\n", float_format="%.10g")


def _csv_format(frame: pd.DataFrame) -> Spec:
    numbers = [name for name in frame.columns if pd.api.types.is_numeric_dtype(frame[name])]
    return {"type": "csv", "parse": dict.fromkeys(numbers, "number")}


def _told(part: Any, formats: Mapping[str, Spec]) -> Any:
    """The spec in which each use of a dataset that travels as CSV says how to read it."""
    if isinstance(part, list):
        return [_told(each, formats) for each in part]
    if not isinstance(part, dict):
        return part
    if part.get("name") in formats and len(part) == 1:
        return {**part, "format": formats[part["name"]]}
    return {key: _told(value, formats) for key, value in part.items()}


# ----------------------------------------------------------------------------------------------------------- axes


@dataclass(frozen=True)
class Axis:
    """What an axis measures.

    log: base of a log scale, 2 or 10; 0 is linear. unit: how ticks are written. domain: first and last value, else what
    the data needs; ticks: where they stand, else round numbers. An axis without a title and ticks is not drawn.
    """

    title: str = ""
    log: Literal[0, 2, 10] = 0
    unit: Literal["", "bytes", "percent"] = ""
    domain: tuple[float, float] | None = None
    ticks: Sequence[float] | None = None
    grid: bool = True


PLAIN = Axis()
_LABEL = {
    "": "format(datum.value, ',.12~g')",
    "percent": "format(datum.value, '.3~%')",
    "bytes": "datum.value >= 1048576 ? format(datum.value / 1048576, ',.3~r') + ' MiB' : "
    "datum.value >= 1024 ? format(datum.value / 1024, ',.3~r') + ' KiB' : datum.value + ' B'",
}


def ticks(low: float, high: float, *, log: int = 0, most: int = 14) -> list[float]:
    """Round numbers from low to high for an axis: powers of two, 1-2-5 of each power of ten, or even steps.

    >>> ticks(100, 600, log=2), ticks(0.4, 70, log=10), ticks(0, 0.04)
    ([128, 256, 512], [0.5, 1, 2, 5, 10, 20, 50], [0, 0.01, 0.02, 0.03, 0.04])
    """
    if log == 2:
        powers = range(math.ceil(math.log2(low)), math.floor(math.log2(high)) + 1)
        chosen = [2.0**power for power in powers[:: len(powers) // (most + 1) + 1]]
    elif log == 10:
        digits = (1,) if high / low > 10**4 else (1, 2, 5)
        decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        chosen = [float(f"{digit}e{power}") for power in decades for digit in digits]
    else:
        rough = (high - low or 1) / 6
        unit = 10.0 ** math.floor(math.log10(rough))
        step = next(unit * digit for digit in (1, 2, 5, 10) if unit * digit >= rough)
        chosen = [round(at * step, 12) for at in range(math.ceil(low / step), math.floor(high / step) + 1)]
    return [int(tick) if tick == int(tick) else tick for tick in chosen if low <= tick <= high]


class _Scale:
    """An axis of numbers, and where on it a value lies."""

    def __init__(self, axis: Axis, values: Iterable[float], *, room: float = 0.0, side: int = 0) -> None:
        known = [value for value in values if value == value]
        self.axis, self.side = axis, side
        if axis.domain:
            self.low, self.high = axis.domain
        elif axis.log:
            least, most = (min(known), max(known)) if known else (1, 2)
            self.low, self.high = least / 1.6, most * 1.6 * (most / least) ** room
        else:
            self.low, most = min([0, *known]), max([0, *known])
            self.high = most + (most - self.low) * (room or 0.05) or 1
        self.ticks = ticks(self.low, self.high, log=axis.log) if axis.ticks is None else list(axis.ticks)

    def share(self, value: float) -> float:
        """Where a value lies, from 0 to 1."""
        if not self.axis.log:
            return (value - self.low) / (self.high - self.low or 1)
        return math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)

    def at(self, values: Iterable[Any]) -> list[Any]:
        """The positions of values: on this axis the values themselves."""
        return list(values)

    def encoding(self, field: str, channel: str) -> Spec:
        """The Vega-Lite encoding of a field along this axis."""
        scale: Spec = {"domain": [self.low, self.high], "nice": False, "zero": False}
        if self.axis.log:
            scale = {"type": "log", "base": self.axis.log, "domain": [self.low, self.high], "nice": False}
        drawn: Spec | None = None
        if self.axis.title or self.axis.ticks is not None:
            drawn = {"title": self.axis.title or None, "values": self.ticks, "grid": self.axis.grid}
            drawn |= {"labelExpr": _LABEL[self.axis.unit], "labelFlush": False}
            labels = self.side - (16 if self.axis.title else 0)
            drawn |= {"minExtent": labels, "maxExtent": labels} if self.side else {}
        return {"field": field, "type": "quantitative", "scale": scale, "axis": drawn}


class _Names:
    """An axis of names: name number k lies from k to k + 1. A line break in a name begins a second line."""

    def __init__(self, names: Iterable[Any], title: str = "", *, side: int = 0) -> None:
        self.middle = {name: at + 0.5 for at, name in enumerate(dict.fromkeys(map(str, names)))}
        self.names, self.title, self.side, self.size = list(self.middle), title, side, float(len(self.middle) or 1)
        self.centres = list(self.middle.values())

    def at(self, values: Iterable[Any]) -> list[float]:
        """The middle of each name."""
        return [self.middle[str(value)] for value in values]

    def encoding(self, field: str, channel: str) -> Spec:
        """The Vega-Lite encoding of a field along this axis, y from the top down."""
        label = f"split({json.dumps(self.names)}[indexof({self.centres}, datum.value)], '\\n')"
        axis: Spec = {"title": self.title or None, "values": self.centres, "labelExpr": label, "labelOverlap": False}
        axis |= {"grid": False, "domain": False, "ticks": False, "labelPadding": 8, "labelLimit": 400}
        axis["description"] = f"{self.title or channel}: {', '.join(self.names)}"
        axis |= {"minExtent": self.side, "maxExtent": self.side} if self.side else {}
        ends = [self.size, 0] if channel == "y" else [0, self.size]
        return {"field": field, "type": "quantitative", "scale": {"domain": ends, "nice": False}, "axis": axis}


def _axis(axis: Axis, parts: Sequence[pd.DataFrame], column: str, more: Iterable[float], **options: Any) -> Any:
    values = [value for part in parts for value in part[column].tolist()]
    if any(not pd.api.types.is_numeric_dtype(part[column]) for part in parts):
        return _Names(values, axis.title)
    return _Scale(axis, [*values, *more], **options)


# ---------------------------------------------------------------------------------------------------- the drawing


class _Drawing:
    """A picture in the making: layers over one pair of axes, each with its data."""

    def __init__(self, form: str, x: Any, y: Any, *, legend: bool, click: Sequence[str]) -> None:
        self.form, self.x, self.y, self.legend, self.click = form, x, y, legend, list(click)
        self.layers: list[Spec] = []
        self.data: dict[str, pd.DataFrame] = {}

    def place(self, **fields: str) -> Spec:
        """Encodings of positions: x="start" puts the field start on the x axis; x2 and y2 are ends."""
        axes = {"x": self.x, "y": self.y}
        return {
            channel: axes[channel].encoding(field, channel) if channel in axes else {"field": field}
            for channel, field in fields.items()
        }

    def add(self, name: str, frame: pd.DataFrame, mark: Spec, encoding: Spec) -> None:
        """A layer of marks from a dataset of this name; its tips are hovered and read out, or it is left to the eye."""
        self.data[name] = frame
        layer: Spec = {"data": {"name": name}, "mark": mark, "encoding": encoding}
        if mark["type"] == "text":
            layer["encoding"] = {**encoding, "description": {"field": "text"}}
        elif "tip" in frame:
            tip = {"field": "tip", "type": "nominal"}
            layer["encoding"] = {**encoding, "tooltip": tip, "description": tip}
        self.layers.append(layer)

    def clicked(self) -> None:
        """Make the layer that was added last the one whose marks are clicked."""
        if self.click:
            self.layers[-1]["name"] = "clicked"
            self.layers[-1]["mark"]["cursor"] = "pointer"

    def write(self, name: str, frame: pd.DataFrame, encoding: Spec, **mark: Any) -> None:
        """Text of the field `text` in INK with a rim of PAPER, so that it reads across lines and surfaces."""
        text = {**encoding, "text": {"field": "text"}}
        rim = {"stroke": theme.PAPER, "strokeWidth": 4, "strokeJoin": "round", "color": theme.PAPER, "aria": False}
        self.add(name, frame, {"type": "text", **rim, **mark}, text)
        self.add(name, frame, {"type": "text", "color": theme.INK, **mark}, text)

    def sign(self, styles: Styles, field: str, attribute: str) -> Spec:
        """An encoding of a field by one attribute of its styles; encodings of one field share a legend."""
        shown = None
        if self.legend and len(styles) > 1:
            wide = sum(map(len, styles)) > 90 and len(styles) > 3
            shown = {"symbolOpacity": 1, **({"columns": 2} if wide else {})}
        values = [list(v) if isinstance(v := getattr(style, attribute), tuple) else v for style in styles.values()]
        return {
            "field": field, "type": "nominal", "legend": shown, "scale": {"domain": list(styles), "range": values}
        }  # fmt: skip

    def picture(self, height: float, description: str, title: str, *, canvas: bool = False) -> Picture:
        """What was added, as a picture of this height in pixels."""
        if not description:
            raise ValueError(f"{self.form}: description is empty; it must say what the chart shows")
        spec: Spec = {
            **theme.chart(canvas=canvas),
            "$schema": alt.SCHEMA_URL,
            "description": description,
            "width": "container",
            "height": round(height),
            "layer": self.layers,
        }
        if title:
            spec["title"] = title
        if self.click:
            # Cleared when the pointer leaves the mark, or a second click on it would change nothing and go unnoticed.
            select = {"type": "point", "fields": self.click, "on": "click", "clear": "mouseout"}
            spec["params"] = [{"name": "pick", "select": select, "views": ["clicked"]}]
        return Picture(spec, **self.data)


def _need(form: str, argument: str, frame: pd.DataFrame | None, *columns: str) -> None:
    missing = [] if frame is None else [name for name in columns if name not in frame]
    if missing and frame is not None:
        raise ValueError(f"{form}: {argument} has columns {[*map(str, frame.columns)]}; it must also have {missing}")


def _styled(form: str, styles: Styles | None, kinds: Iterable[Any]) -> dict[str, Style]:
    """The styles of all kinds; raises ValueError for a kind without one."""
    used = [*dict.fromkeys(kinds)]
    chosen = theme.styled(used) if styles is None else dict(styles)
    unknown = [kind for kind in used if kind not in chosen]
    if unknown:
        raise ValueError(f"{form}: {unknown} have no style; a kind must be one of {[*chosen]}")
    return chosen


def _column(frame: pd.DataFrame | None, name: str | None, default: Any = "") -> list[Any]:
    """The values of a column, or the default for each row where there is no such column."""
    if frame is None:
        return []
    return [default] * len(frame) if name is None or name not in frame else frame[name].tolist()


def _texts(frame: pd.DataFrame, name: str = "label") -> list[str]:
    return [text if isinstance(text, str) else "" for text in _column(frame, name)]


def _frame(source: pd.DataFrame, keep: Sequence[str], **columns: Any) -> pd.DataFrame:
    """New columns, and those to keep (and tips) of the frame that they were made from."""
    kept = {name: source[name].tolist() for name in dict.fromkeys([*keep, "tip"]) if name in source}
    return pd.DataFrame({**kept, **columns})


def _rules(drawing: _Drawing, rules: pd.DataFrame | None, colour: str = theme.HERE, along: str = "x") -> None:
    """A dashed line across the picture at each rule, its text at the end."""
    if rules is None:
        return
    _need(drawing.form, "rules", rules, "at")
    colours = [one if isinstance(one, str) else colour for one in _column(rules, "colour", colour)]
    frame = _frame(rules, (), at=rules["at"].tolist(), text=_texts(rules), colour=colours)
    place = drawing.place(**{along: "at"})
    mark = {"type": "rule", "strokeDash": [5, 4], "strokeWidth": 2}
    drawing.add("rules", frame, mark, {**place, "stroke": {"field": "colour", "scale": None}})
    if along == "y":
        place["x"] = {"value": "width"}
        drawing.write("rules", frame, place, align="right", dx=-6, dy=-9)
    else:
        place["y"] = {"value": 0}
        drawing.write("rules", frame, place, align="left", dx=6, dy=-8, fontWeight="bold")


# ---------------------------------------------------------------------------------------------------------- bands


def bands(
    marks: pd.DataFrame,
    *,
    description: str,
    title: str = "",
    x_axis: Axis = PLAIN,
    styles: Styles | None = None,
    lanes: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
    groups: Mapping[str, str] | None = None,
    labels: pd.DataFrame | None = None,
    outlines: pd.DataFrame | None = None,
    outline_styles: Styles | None = None,
    signs: pd.DataFrame | None = None,
    sign_styles: Styles | None = None,
    rules: pd.DataFrame | None = None,
    cuts: pd.DataFrame | None = None,
    notes: pd.DataFrame | None = None,
    chosen: pd.DataFrame | None = None,
    click: Sequence[str] = (),
    tip: str = "",
    legend: bool = True,
    lane_height: int = 24,
    side: int = 84,
    room: int = 900,
    canvas: bool = False,
) -> Picture:
    """Rectangles [start, stop) in lanes that are named at the left: memory, rows of a buffer, programs, lanes.

    marks: lane, start, stop, and kind (coloured by styles) or order (a number, coloured by viridis); it may have
        group: lanes of one group stand together, groups under each other on one scale, in order of appearance
        lanes: how many lanes the mark covers, from its own downwards (1)
        label, short: text in the mark, and what stands there where the label does not fit
    lanes: their names in order, or {group: names}; else in order of appearance.
    groups: {group: heading above it}, in order; without it groups stand a little apart.

    Other frames, each with lane (and group, where marks has one):
        labels: start, stop, label [short kind lanes], text instead of that of marks, where marks are cut more finely
        outlines: start, stop, kind [tag], frames over the marks in outline_styles; a tag stands at their right
        signs: at, kind, points above a lane in sign_styles
        rules: at, short dashed lines; cuts: at, white bars across a lane
        notes: at, text, lines of text under a lane's marks
        chosen: start, stop [dashed lanes], frames around what is selected; a bar where start is stop

    tip: a Vega expression over `datum` instead of a column, where a thousand marks would each carry a long text.
    lane_height, side (the room for names), room (the width that labels must fit): pixels.
    canvas: draw by canvas instead of SVG, for a thousand marks and more; a screen reader does not find them then.
    """
    ordered = "order" in marks
    _need("bands", "marks", marks, "lane", "start", "stop", "order" if ordered else "kind")
    low, high = x_axis.domain or (min(marks["start"], default=0), max(marks["stop"], default=1))
    eighths = [low + (high - low) * part / 8 for part in range(9)]
    drawn = x_axis.ticks if x_axis.ticks is not None or not x_axis.title else eighths
    x = _Scale(replace(x_axis, domain=(low, high), ticks=drawn, grid=False), ())
    y = _Lanes(marks, lanes, groups, side)
    drawing = _Drawing("bands", x, y, legend=legend, click=click)
    roof, floor = 0.06 if signs is None else 0.38, 0.06 if notes is None else 0.36
    y.centres = [centre + (roof - floor) / 2 for centre in y.centres]  # names stand beside the marks, not the lane
    box = drawing.place(x="x", x2="x2", y="y", y2="y2")

    looks = {} if ordered else _styled("bands", styles, marks["kind"])
    tops, covers = y.tops(marks), _column(marks, "lanes", 1)
    bottoms = [round(top + cover - floor, 3) for top, cover in zip(tops, covers, strict=True)]
    heights = [1.0 if ordered else looks[kind].height for kind in _column(marks, "kind")]
    upper = [
        round(bottom - height * (bottom - top - roof), 3)
        for top, bottom, height in zip(tops, bottoms, heights, strict=True)
    ]
    stops = marks["stop"] - (high - low) / room if canvas else marks["stop"]
    made = _frame(marks, ("kind", "order", *click), x=marks["start"], x2=stops, y=upper, y2=bottoms)
    most = float(marks["order"].max() or 1) if ordered and len(marks) else 1.0
    fill: Spec = {"field": "order", "type": "quantitative", "legend": None}
    fill["scale"] = {"scheme": "viridis", "domain": [0, most]}
    mark: Spec = {"type": "rect", **({} if canvas else {"stroke": theme.PAPER, "strokeWidth": 0.8})}
    mark |= {"tooltip": {"expr": tip}} if tip else {}
    drawing.add("marks", made, mark, {**box, "fill": fill if ordered else drawing.sign(looks, "kind", "colour")})
    drawing.clicked()

    if rules is not None:
        top = pd.Series(y.tops(rules), dtype=float)
        dash = {"type": "rule", "color": theme.INK, "strokeDash": [2, 2], "aria": False}
        across = drawing.place(x="x", y="y", y2="y2")
        drawing.add("rules", _frame(rules, (), x=rules["at"].tolist(), y=top, y2=top + 1), dash, across)
    if cuts is not None:
        top = pd.Series(y.tops(cuts), dtype=float)
        bar = {"type": "rect", "color": "#FFFFFF", "stroke": "#000000", "strokeWidth": 1}
        at = pd.Series(cuts["at"].tolist(), dtype=float)
        frame = _frame(cuts, (), x=at, x2=at + (high - low) / 120, y=top + 0.08, y2=top + 0.92)
        drawing.add("cuts", frame, bar, box)
    texts = labels if labels is not None else marks if "label" in marks else None
    if texts is not None:
        frame = _band_labels(texts, y.tops(texts), x, looks, room, (roof - floor) / 2, most)
        place = {**drawing.place(x="x", y="y"), "text": {"field": "text"}}
        for number, (ink, part) in enumerate(
            frame.groupby("ink")
        ):  # a layer each: an encoding would take signs' legend
            text = {"type": "text", "fontSize": 11.5, "tooltip": None, "color": ink}
            drawing.add(f"labels_{number}", part[["x", "y", "text"]], text, place)
    if outlines is not None:
        _need("bands", "outlines", outlines, "lane", "start", "stop", "kind")
        over = _styled("bands", outline_styles, outlines["kind"])
        frame = _boxed(outlines, y, 0.02, 0.98).assign(outline=outlines["kind"].tolist())
        rim = {"type": "rect", "fill": None, "fillOpacity": 0, "stroke": theme.PAPER, "strokeWidth": 5, "aria": False}
        drawing.add("outlines", frame, rim, box)
        for number, (kind, style) in enumerate(over.items()):  # a layer each: the dashes of a rectangle are no encoding
            line = {"type": "rect", "fill": None, "fillOpacity": 0, "strokeWidth": 2.5, "strokeDash": list(style.dash)}
            stroke = drawing.sign(over, "outline", "colour")
            drawing.add(f"outlines_{number}", frame[frame["outline"] == kind], line, {**box, "stroke": stroke})
        tags = pd.DataFrame({"x": frame["x2"], "y": frame["y"] + 0.48, "text": _texts(outlines, "tag")})
        tags = tags[tags["text"] != ""]
        inside = tags["x"] > low + 0.86 * (high - low)
        for name, part, align, shift in (("tags", tags[~inside], "left", 6), ("tags_in", tags[inside], "right", -6)):
            place = drawing.place(x="x", y="y")
            drawing.write(name, part, place, align=align, dx=shift, fontWeight="bold", fontSize=11.5)
    if signs is not None:
        _need("bands", "signs", signs, "lane", "at", "kind")
        over = _styled("bands", sign_styles, signs["kind"])
        place = drawing.place(x="x", y="y")
        look = {"color": drawing.sign(over, "sign", "colour"), "shape": drawing.sign(over, "sign", "shape")}
        above = pd.Series(y.tops(signs), dtype=float) + 0.2
        frame = _frame(signs, (), x=signs["at"].tolist(), y=above, sign=signs["kind"].tolist())
        drawing.add("signs", frame, {"type": "point", "filled": True, "size": 90, "opacity": 1}, {**place, **look})
    if notes is not None:
        place = {**drawing.place(x="x", y="y"), "text": {"field": "text"}}
        under = pd.Series(y.tops(notes), dtype=float) + 1 - floor + 0.17
        frame = _frame(notes, ("text",), x=notes["at"].tolist(), y=under)
        drawing.add("notes", frame, {"type": "text", "fontSize": 11, "color": theme.INK}, place)
    if chosen is not None:
        frame = _boxed(chosen, y, roof - 0.04, 1 - floor + 0.04)
        ring = {"type": "rect", "fill": None, "fillOpacity": 0, "stroke": theme.HERE, "strokeWidth": 3, "aria": False}
        dashed = pd.Series(_column(chosen, "dashed", False), dtype=bool)
        drawing.add("chosen", frame[~dashed], ring, box)
        if dashed.any():
            drawing.add("chosen_dashed", frame[dashed], {**ring, "strokeDash": [6, 4]}, box)
    if groups is not None:
        names = pd.DataFrame({"x": low, "y": [top - 0.2 for top in y.first.values()], "text": list(groups.values())})
        heading = {"type": "text", "align": "left", "baseline": "bottom", "fontWeight": "bold", "fontSize": 13}
        place = {**drawing.place(x="x", y="y"), "text": {"field": "text"}}
        drawing.add("headings", names, {**heading, "color": theme.INK}, place)
    return drawing.picture(y.size * lane_height, description, title, canvas=canvas)


class _Lanes(_Names):
    """The lanes of bands from top to bottom, with the room of headings and gaps."""

    def __init__(
        self,
        marks: pd.DataFrame,
        lanes: Sequence[str] | Mapping[str, Sequence[str]] | None,
        groups: Mapping[str, str] | None,
        side: int,
    ) -> None:
        super().__init__((), side=side)
        self.first: dict[str, float] = {}  # group: top of its first lane
        self.top: dict[tuple[str, str], float] = {}
        pairs = [*dict.fromkeys(zip(_column(marks, "group"), map(str, marks["lane"]), strict=True))]
        down = 0.0
        for group in groups or dict.fromkeys([group for group, _ in pairs] or [""]):
            down += 1.25 if groups else 0.5 if self.first else 0.0
            self.first[group] = down
            given = lanes.get(group) if isinstance(lanes, Mapping) else lanes
            for lane in given or [lane for of, lane in pairs if of == group]:
                self.top[group, lane] = down
                down += 1
        self.size = down or 1.0
        self.names, self.centres = [lane for _, lane in self.top], [top + 0.5 for top in self.top.values()]

    def tops(self, frame: pd.DataFrame) -> list[float]:
        """The top of each row's lane, in lanes from the top of the picture."""
        pairs = [*zip(_column(frame, "group"), map(str, frame["lane"]), strict=True)]
        unknown = [pair for pair in dict.fromkeys(pairs) if pair not in self.top]
        if unknown:
            raise ValueError(f"bands: there are no lanes {unknown}; a lane must be one of {[*self.top]}")
        return [self.top[pair] for pair in pairs]


def _boxed(frame: pd.DataFrame, y: _Lanes, roof: float, bottom: float) -> pd.DataFrame:
    tops = pd.Series(y.tops(frame), dtype=float)
    ends = tops + pd.Series(_column(frame, "lanes", 1), dtype=float) - 1 + bottom
    return _frame(frame, (), x=frame["start"].tolist(), x2=frame["stop"].tolist(), y=tops + roof, y2=ends)


def _band_labels(
    texts: pd.DataFrame, tops: Sequence[float], x: _Scale, looks: Styles, room: int, shift: float, most: float
) -> pd.DataFrame:
    """The labels that fit, in the middle of their marks, in an ink that can be read on them."""
    made = []
    for row, top in zip(texts.to_dict("records"), tops, strict=True):
        pixels = (x.share(row["stop"]) - x.share(row["start"])) * room
        words = [text for text in (row["label"], row.get("short")) if isinstance(text, str) and text]
        text = next((text for text in words if len(text) * CHARACTER + 6 <= pixels), None)
        if text is not None:
            ink = looks[row["kind"]].ink if row.get("kind") in looks else theme.INK
            if "order" in row:
                ink = "#FFFFFF" if row["order"] < 0.6 * most else "#000000"
            made.append(((row["start"] + row["stop"]) / 2, top + row.get("lanes", 1) / 2 + shift, text, ink))
    return pd.DataFrame(made, columns=["x", "y", "text", "ink"])


# --------------------------------------------------------------------------------------------------------- points


def points(
    rows: pd.DataFrame,
    *,
    x: str,
    y: str,
    description: str,
    title: str = "",
    series: str | None = None,
    styles: Styles | None = None,
    x_axis: Axis = PLAIN,
    y_axis: Axis = PLAIN,
    join: bool | Sequence[str] = False,
    live: pd.DataFrame | None = None,
    rules: pd.DataFrame | None = None,
    reference: pd.DataFrame | None = None,
    reference_step: bool = False,
    click: Sequence[str] = (),
    legend: bool = True,
    height: int = 0,
) -> Picture:
    """Measured values: colour and shape by series, whiskers, a ring where the page is, live points over recorded ones.

    rows: the columns named by x, y and series, and [low high] the ends of a whisker, [here] true where a ring is drawn,
        [label] text over the point, [tip]. A column of texts gives an axis of names ("\\n" breaks a name).
    join: draw lines through the points of every series, or of the series named.
    live: more rows of the same columns, drawn larger and with a rim.
    rules: at [label colour], dashed lines across the measured axis: y, or x where y holds names.
    reference: x, y [label], a dashed line to compare with, in steps with reference_step.
    height: in pixels; 330, or by the number of names.
    """
    for name, part in (("rows", rows), ("live", live), ("reference", reference)):
        _need("points", name, part, x, y)
    parts = [part for part in (rows, live, reference) if part is not None]
    along = "y" if pd.api.types.is_numeric_dtype(rows[y]) else "x"  # the axis that measures
    more = [value for part in parts for end in ("low", "high") if end in part for value in part[end]]
    more += _column(rules, "at")
    axes = [
        _axis(axis, parts, column, more if name == along else ())
        for name, axis, column in (("x", x_axis, x), ("y", y_axis, y))
    ]
    drawing = _Drawing("points", axes[0], axes[1], legend=legend, click=click)
    place = drawing.place(x="x", y="y")
    looks = _styled("points", styles, [*_column(rows, series), *_column(live, series)])
    colour, shape = drawing.sign(looks, "series", "colour"), drawing.sign(looks, "series", "shape")

    def put(part: pd.DataFrame) -> pd.DataFrame:
        at = {"x": axes[0].at(part[x]), "y": axes[1].at(part[y]), "series": _column(part, series)}
        return _frame(part, ("low", "high", "here", *click), **at, text=_texts(part))

    _rules(drawing, rules, theme.GREY, along)
    if reference is not None:
        line: Spec = {"type": "line", "color": theme.INK, "strokeDash": [4, 4], "strokeWidth": 1.5}
        line |= {"interpolate": "step-after"} if reference_step else {}
        drawing.add("reference", put(reference), line, place)
        drawing.write("reference", put(reference), place, align="left", dx=4, dy=-9)
    made = put(rows)
    if join:
        chosen = made if join is True else made[made["series"].isin(join)]
        mark = {"type": "line", "strokeWidth": 1.5, "aria": False}
        drawing.add("lines", chosen[["x", "y", "series"]], mark, {**place, "color": colour})
    few = len(rows) <= 60
    for name, part, area in (("points", made, 95 if few else 40), ("live", live, 190)):
        if part is None:
            continue
        frame = part if name == "points" else put(part)
        if "low" in frame:
            whisker = {"type": "rule", "strokeWidth": 3, "opacity": 0.6, "clip": True, "aria": False}
            ends = (
                drawing.place(x="low", x2="high", y="y") if along == "x" else drawing.place(x="x", y="low", y2="high")
            )
            drawing.add(name, frame.drop(columns="tip", errors="ignore"), whisker, {**ends, "color": colour})
        dot: Spec = {"type": "point", "filled": True, "size": area, "opacity": 1}
        dot |= {"stroke": theme.HERE, "strokeWidth": 1.5} if name == "live" else {}
        drawing.add(name, frame, dot, {**place, "color": colour, "shape": shape})
        if name == "points":
            drawing.clicked()
        if "label" in (rows if name == "points" else part):
            drawing.write(name, frame, place, dy=-15)
    if "here" in made:
        ring = {"type": "point", "size": 340, "shape": "circle", "color": theme.HERE, "strokeWidth": 2, "opacity": 1}
        drawing.add("here", made[made["here"].astype(bool)][["x", "y"]], ring, place)
    return drawing.picture(height or (330 if along == "y" else 38 * axes[1].size + 20), description, title)


# ----------------------------------------------------------------------------------------------------------- bars


def bars(
    rows: pd.DataFrame,
    *,
    description: str,
    title: str = "",
    styles: Styles | None = None,
    axis: Axis = PLAIN,
    stack: bool = False,
    totals: pd.DataFrame | None = None,
    rules: pd.DataFrame | None = None,
    click: Sequence[str] = (),
    legend: bool = True,
    bar_height: int = 24,
    room: int = 900,
) -> Picture:
    """Amounts as horizontal bars from zero (from 1 on a log axis), a line of the picture for each name.

    rows: name, value, [part] for the colour: the parts of a name have their bars under each other, or end to end with
        stack; [label] text at the end of a bar, or in it with stack; [low high] ends of a whisker; [tip]
    totals: name, label: texts at the ends of stacks.
    rules: at [label colour], dashed lines across.
    axis: drawn where it has a title. room: the width in pixels that labels of a stack must fit.
    """
    _need("bars", "rows", rows, "name", "value")
    _need("bars", "totals", totals, "name", "label")
    looks = _styled("bars", styles, _column(rows, "part"))
    parts = _column(rows, "part")
    order = {part: at for at, part in enumerate(name for name in looks if name in parts)}
    base = 1.0 if axis.log else 0.0
    y = _Names(rows["name"])
    reach = dict.fromkeys(y.names, base)
    starts, stops = [], []
    for name, value in zip(map(str, rows["name"]), rows["value"].tolist(), strict=True):
        starts.append(reach[name] if stack else base)
        stops.append(starts[-1] + value if stack else value)
        reach[name] = max(reach[name], stops[-1])
    x = _Scale(axis, [base, *stops, *_column(rows, "high", base), *_column(rules, "at")], room=0.35)
    drawing = _Drawing("bars", x, y, legend=legend, click=click)
    several = not stack and rows["name"].duplicated().any()
    together = len(order) if several else 1
    thick = bar_height / (bar_height + 12) if together == 1 else 0.86 / together
    tops = [
        middle - together * thick / 2 + (order[part] if several else 0) * thick
        for middle, part in zip(y.at(rows["name"]), parts, strict=True)
    ]
    made = _frame(rows, ("low", "high", *click), x=starts, x2=stops, part=parts, y=tops, text=_texts(rows))
    made["y2"] = made["y"] + thick * (1 if together == 1 else 0.94)
    made["middle"] = (made["y"] + made["y2"]) / 2
    box = drawing.place(x="x", x2="x2", y="y", y2="y2")
    drawing.add("bars", made, {"type": "rect"}, {**box, "fill": drawing.sign(looks, "part", "colour")})
    drawing.clicked()
    if "low" in made:
        whisker = {"type": "rule", "strokeWidth": 3, "color": theme.INK, "opacity": 0.7, "aria": False}
        place = drawing.place(x="low", x2="high", y="middle")
        drawing.add("whiskers", made.drop(columns="tip", errors="ignore"), whisker, place)
    if "label" in rows:
        text = {"type": "text", "fontSize": 12.5, **({} if stack else {"align": "left", "dx": 7})}
        ends = made[[name for name in ("x2", "high") if name in made]].max(axis=1)
        inks = [looks[part].ink for part in parts] if stack else theme.INK
        at = (made["x"] + made["x2"]) / 2 if stack else ends
        labels = pd.DataFrame({"x": at, "y": made["middle"], "text": made["text"], "ink": inks})
        if stack:
            pixels = (made["x2"] - made["x"]) / (x.high - x.low) * (room - 150)
            labels = labels[labels["text"].str.len() * CHARACTER + 6 <= pixels]
        place = {**drawing.place(x="x", y="y"), "text": {"field": "text"}}
        drawing.add("labels", labels, text, {**place, "color": {"field": "ink", "scale": None}})
    if totals is not None:
        names = [str(name) for name in totals["name"]]
        frame = pd.DataFrame({"x": [reach[name] for name in names], "y": y.at(names), "text": _texts(totals)})
        text = {"type": "text", "align": "left", "dx": 8, "color": theme.INK, "fontWeight": "bold", "fontSize": 13}
        drawing.add("totals", frame, text, {**drawing.place(x="x", y="y"), "text": {"field": "text"}})
    _rules(drawing, rules)
    tall = bar_height + 12 if together == 1 else bar_height * 0.72 * together + 12
    return drawing.picture(y.size * tall, description, title)


# ---------------------------------------------------------------------------------------------------------- curve


def curve(
    rows: pd.DataFrame,
    *,
    x: str,
    y: str,
    description: str,
    title: str = "",
    series: str | None = None,
    styles: Styles | None = None,
    x_axis: Axis = PLAIN,
    y_axis: Axis = PLAIN,
    step: bool = False,
    here: pd.DataFrame | None = None,
    held: pd.DataFrame | None = None,
    shade: pd.DataFrame | None = None,
    legend: bool = True,
    height: int = 340,
    side: int = 0,
) -> Picture:
    """Lines of several series over one axis, told apart by colour and dashes; "you are here" as a rule and points.

    rows: the columns named by x, y and series; step: each value lasts until the next.
    here: x, y [label series tip], points on an upright rule, coloured by their series; a label, of several lines with
        "\\n", stands on the side of its point where there is room. Where y is missing the rule alone is drawn.
    held: x, to, y, a thick line over the range in which y stays what it is.
    shade: start, stop [label], ranges of x with a ground of their own.
    height, and side, the room for the y axis, so that pictures under each other line up: pixels.
    """
    _need("curve", "rows", rows, x, y)
    _need("curve", "here", here, x, y)
    _need("curve", "held", held, x, "to", y)
    _need("curve", "shade", shade, "start", "stop")
    xs = [*rows[x].tolist(), *_column(here, x)]
    across = _Scale(x_axis if x_axis.domain or not xs else replace(x_axis, domain=(min(xs), max(xs))), xs)
    drawing = _Drawing(
        "curve", across, _Scale(y_axis, [*rows[y].tolist(), *_column(here, y)], side=side), legend=legend, click=()
    )
    looks = _styled("curve", styles, _column(rows, series))
    place, only = drawing.place(x="x", y="y"), drawing.place(x="x")
    if shade is not None:
        made = pd.DataFrame({"x": shade["start"].tolist(), "x2": shade["stop"].tolist(), "text": _texts(shade)})
        drawing.add(
            "shade", made, {"type": "rect", "color": theme.HERE, "opacity": 0.18}, drawing.place(x="x", x2="x2")
        )
        drawing.add("shade", made, {"type": "rule", "color": theme.HERE, "strokeWidth": 2}, only)
        wide = made["x2"].map(across.share) - made["x"].map(across.share) > 0.5  # then its text fits into it
        for name, part, align, shift in (("in", made[wide], "left", 8), ("beside", made[~wide], "right", -8)):
            low = {**only, "y": {"value": height - 14}}
            drawing.write(f"shade_{name}", part, low, align=align, dx=shift, fontWeight="bold", fontSize=13)
    lines = pd.DataFrame({"x": rows[x].tolist(), "y": rows[y].tolist(), "series": _column(rows, series)})
    look = {"color": drawing.sign(looks, "series", "colour"), "strokeDash": drawing.sign(looks, "series", "dash")}
    line: Spec = {"type": "line", **({"interpolate": "step-after"} if step else {})}
    drawing.add("lines", lines, line, {**place, **look})
    if held is not None:
        made = pd.DataFrame({"x": held[x].tolist(), "x2": held["to"].tolist(), "y": held[y].tolist()})
        thick = {"type": "rule", "strokeWidth": 12, "opacity": 0.35, "color": theme.HERE}
        drawing.add("held", made, thick, drawing.place(x="x", x2="x2", y="y"))
    if here is not None:
        colours = [looks[name].colour if name in looks else theme.HERE for name in _column(here, "series", None)]
        made = _frame(here, (), x=here[x].tolist(), y=here[y].tolist(), text=_texts(here), colour=colours)
        rule = {"type": "rule", "color": theme.HERE, "strokeDash": [3, 3], "aria": False}
        drawing.add("here_rule", made[["x"]].drop_duplicates(), rule, only)
        known = made[made["y"].notna()]
        fill = {"field": "colour", "scale": None}
        drawing.add(
            "here", known, {"type": "point", "size": 120, "filled": True, "opacity": 1}, {**place, "fill": fill}
        )
        right = known["x"].map(across.share) > 0.5
        for name, part, align, shift in (("left", known[right], "right", -12), ("right", known[~right], "left", 12)):
            words: Spec = {"fontWeight": "bold", "fontSize": 13, "lineBreak": "\n", "dy": -33}
            drawing.write(
                f"here_{name}", part.drop(columns="tip", errors="ignore"), place, align=align, dx=shift, **words
            )
    return drawing.picture(height, description, title)


# ---------------------------------------------------------------------------------------------------------- spans


def spans(
    rows: pd.DataFrame,
    *,
    description: str,
    title: str = "",
    styles: Styles | None = None,
    axis: Axis = PLAIN,
    marks: pd.DataFrame | None = None,
    mark_styles: Styles | None = None,
    rules: pd.DataFrame | None = None,
    click: Sequence[str] = (),
    legend: bool = True,
    row_height: int = 36,
) -> Picture:
    """Ranges on one axis, a line of the picture for each name: what an assumption leaves, the lengths of a width.

    rows: name, low, high, [kind] for the colour, [value] a diamond within the range, [label] text at its end, [tip]
    marks: name, at, kind, points on the lines, in mark_styles.
    rules: at [label colour], dashed lines across.
    """
    _need("spans", "rows", rows, "name", "low", "high")
    _need("spans", "marks", marks, "name", "at", "kind")
    values = [value for name in ("low", "high", "value") for value in _column(rows, name, 0) if name in rows]
    values += [*_column(marks, "at"), *_column(rules, "at")]
    drawing = _Drawing(
        "spans",
        _Scale(axis, values, room=0.3 if "label" in rows else 0.05),
        _Names(rows["name"]),
        legend=legend,
        click=click,
    )
    looks = _styled("spans", styles, _column(rows, "kind"))
    colour = drawing.sign(looks, "kind", "colour")
    at = {"y": drawing.y.at(rows["name"]), "kind": _column(rows, "kind"), "text": _texts(rows)}
    made = _frame(rows, ("value", *click), x=rows["low"].tolist(), x2=rows["high"].tolist(), **at)
    line = {"type": "rule", "strokeWidth": 10, "opacity": 0.45 if "value" in rows else 0.9}
    drawing.add("ranges", made, line, {**drawing.place(x="x", x2="x2", y="y"), "color": colour})
    drawing.clicked()
    if "value" in rows:
        diamond = {"type": "point", "filled": True, "size": 130, "opacity": 1, "shape": "diamond"}
        drawing.add("ranges", made, diamond, {**drawing.place(x="value", y="y"), "color": colour})
    if marks is not None:
        signed = _styled("spans", mark_styles, marks["kind"])
        frame = _frame(marks, (), x=marks["at"].tolist(), y=drawing.y.at(marks["name"]), sign=marks["kind"].tolist())
        look = {"fill": drawing.sign(signed, "sign", "colour"), "shape": drawing.sign(signed, "sign", "shape")}
        dot = {"type": "point", "filled": True, "size": 95, "opacity": 1}
        drawing.add("marks", frame, dot, {**drawing.place(x="x", y="y"), **look})
    if "label" in rows:
        text = {"type": "text", "align": "left", "dx": 9, "color": theme.INK}
        drawing.add("ranges", made, text, {**drawing.place(x="x2", y="y"), "text": {"field": "text"}})
    _rules(drawing, rules)
    return drawing.picture(row_height * drawing.y.size, description, title)


# --------------------------------------------------------------------------------------------------------- matrix


def matrix(
    rows: pd.DataFrame,
    *,
    row: str,
    column: str,
    description: str,
    title: str = "",
    styles: Styles | None = None,
    column_title: str = "",
    click: Sequence[str] = (),
    legend: bool = True,
    cell_height: int = 38,
    side: int = 0,
) -> Picture:
    """A grid of verdicts or values: a cell where a row and a column meet, its colour and its text.

    rows: the columns named by row and column, and kind (a verdict, in its colour) or value (a number, in viridis);
        [label] the text of the cell, else the sign and the name of its kind, or the number; [tip]
    """
    numbers = "kind" not in rows
    _need("matrix", "rows", rows, row, column, "value" if numbers else "kind")
    drawing = _Drawing(
        "matrix", _Names(rows[column], column_title), _Names(rows[row], side=side), legend=legend, click=click
    )
    centre = {"x": drawing.x.at(rows[column]), "y": drawing.y.at(rows[row])}
    if numbers:
        most = float(rows["value"].max() or 1) if len(rows) else 1.0
        inks = ["#FFFFFF" if value < 0.6 * most else "#000000" for value in rows["value"]]
        texts = [f"{value:,.4g}" for value in rows["value"]]
        scale = {"scheme": "viridis", "domain": [0, most]}
        fill: Spec = {"field": "value", "type": "quantitative", "scale": scale, "legend": None}
    else:
        looks = _styled("matrix", styles, rows["kind"])
        inks = [looks[kind].ink for kind in rows["kind"]]
        texts = [f"{looks[kind].sign} {kind}".strip() for kind in rows["kind"]]
        fill = drawing.sign(looks, "kind", "colour")
    made = _frame(rows, ("kind", "value", *click), **centre, text=_texts(rows) if "label" in rows else texts, ink=inks)
    for name in ("x", "y"):
        made[f"{name}1"], made[f"{name}2"] = made[name] - 0.5, made[name] + 0.5
    box = drawing.place(x="x1", x2="x2", y="y1", y2="y2")
    box["x"]["axis"] |= {"orient": "top", "labelAngle": 0}
    drawing.add("cells", made, {"type": "rect", "stroke": theme.PAPER, "strokeWidth": 2}, {**box, "fill": fill})
    drawing.clicked()
    text = {"type": "text", "fontWeight": "bold", "fontSize": 12.5, "lineBreak": "\n", "tooltip": None}
    words = {"text": {"field": "text"}, "color": {"field": "ink", "scale": None}}
    drawing.add("cells", made, text, {**drawing.place(x="x", y="y"), **words})
    return drawing.picture(cell_height * drawing.y.size, description, title)
