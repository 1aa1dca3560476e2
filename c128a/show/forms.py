"""Four forms of picture: each takes a pandas DataFrame and a few keywords, and returns a Picture. Torch-free.

| form   | shows                                                       | columns (optional ones in brackets)           |
|--------|-------------------------------------------------------------|-----------------------------------------------|
| bands  | memory, rows, programs, lanes: [start, stop) in named lanes | lane start stop, kind or order                |
|        |                                                             | [group lanes label short]                     |
| points | values over linear or log axes: dots with whiskers, lines   | x and y as named                              |
|        | or steps, "you are here"                                    | [series low high here live label]             |
| bars   | amounts or ranges, side by side or stacked                  | name value [start part label]                 |
| matrix | verdicts, a cell each                                       | row and column as named, kind [label]         |

A column `tip` holds the text shown when the pointer is on a mark, which a screen reader reads too; without it the mark
is told by its columns. Other frames that a form takes are named like the keyword. Every form takes these keywords too:

    description   the name of the chart for a screen reader; the form adds axes and kinds. It must not be empty.
    title         a line of text above the chart
    styles        {kind or series: theme.Style}, all entries of the legend in their order; else `theme.styled`
    legend        False for none; there is none either where there is one entry
    click         columns whose values the clicked mark of bands or of a matrix reports, see `page.clickable`

A picture is a Vega-Lite dictionary, written here as one: Altair takes tens of milliseconds to build and check a chart
of this size, most of what a key press may take; a test has each form checked by Altair instead.

>>> widths = pd.DataFrame({"name": ["fixed", "adaptive"], "value": [8192, 256], "label": ["8,192", "256"]})
>>> picture = bars(widths, description="Columns a row", axis=Axis("columns"))
>>> picture.spec["description"], picture.spec["datasets"]["bars"][0]["tip"]
('Columns a row. Across: columns', 'fixed, 8,192')
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import altair as alt
import numpy as np
import pandas as pd

from c128a.show import theme
from c128a.show.theme import Style

MIME = "application/vnd.vegalite.v6+json"
MAX_MARKS = 20_000  # rows in one chart; more are slow to draw and too small to see
LONG = 100  # rows from which on data travels as CSV
CHARACTER = 7  # pixels; a label is left out where it would not fit its mark

Spec = dict[str, Any]
Styles = Mapping[str, Style]
Columns = dict[str, np.ndarray]  # as data travels through a form: what a frame would hold, in a tenth of the time
Lanes = Sequence[str] | Mapping[str, Sequence[str]] | None

_BOLD = {"fontWeight": "bold", "fontSize": 13}
_INK_OF_ROW = {"expr": "datum.ink"}  # an expression: an encoding would take the legend of another colour
_DOT = {"filled": True, "opacity": 1}
_HOLLOW = {"fill": None, "fillOpacity": 0}


class Picture:
    """A chart's dictionary and its data; marimo and Jupyter draw it.

    spec: the Vega-Lite dictionary without data; data: the columns of each of its named datasets.

    Raises ValueError where the rows are more than MAX_MARKS: aggregate them first.
    """

    def __init__(self, spec: Spec, **data: Columns) -> None:
        marks = sum(map(_length, data.values()))
        if marks > MAX_MARKS:
            raise ValueError(f"the chart would hold {marks:,} rows; it must hold at most {MAX_MARKS:,}")
        self._spec, self._data = spec, data

    @property
    def spec(self) -> Spec:
        """The whole Vega-Lite dictionary; long data is CSV, because a page reads each character anew at each change."""
        datasets: Spec = {}
        formats: dict[str, Spec] = {}
        for name, part in self._data.items():
            if _length(part) < LONG:
                columns = [[None if pd.isna(value) else value for value in one.tolist()] for one in part.values()]
                datasets[name] = [dict(zip(part, row, strict=True)) for row in zip(*columns, strict=True)]
            else:
                frame = pd.DataFrame(part)
                datasets[name] = frame.to_csv(index=False, lineterminator="\n", float_format="%.10g")
                numbers = dict.fromkeys(frame.select_dtypes("number"), "number")
                formats[name] = {"format": {"type": "csv", "parse": numbers}}
        layers = [
            {**layer, "data": layer["data"] | formats.get(layer["data"]["name"], {})} for layer in self._spec["layer"]
        ]
        return {**self._spec, "layer": layers, "datasets": datasets}

    def to_json(self) -> str:
        """The dictionary as short JSON."""
        return json.dumps(self.spec, separators=(",", ":"))

    def _mime_(self) -> tuple[str, str]:
        return MIME, self.to_json()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Spec]:
        return {MIME: self.spec}


def _length(part: Columns) -> int:
    return len(next(iter(part.values()), ()))


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


PLAIN = Axis()
_DECADES = [float(f"{digit}e{power}") for power in range(-4, 10) for digit in (1, 2, 5)]
_LABEL = {
    "": "format(datum.value, ',.12~g')",
    "percent": "format(datum.value, '.3~%')",
    "bytes": "datum.value >= 1048576 ? format(datum.value / 1048576, ',.3~r') + ' MiB' : "
    "datum.value >= 1024 ? format(datum.value / 1024, ',.3~r') + ' KiB' : datum.value + ' B'",
}


class _Scale:
    """An axis of numbers, and where on it a value lies. room: the part of it that stays free for labels."""

    def __init__(self, axis: Axis, values: Iterable[float], *, room: float = 0.0, side: int = 0) -> None:
        known = [value for value in values if value == value]
        self.axis, self.title, self.side = axis, axis.title, side
        if axis.domain:
            self.low, self.high = axis.domain
        elif axis.log:
            least, most = (min(known), max(known)) if known else (1, 2)
            self.low, self.high = least / 1.6, most * 1.6 * (most / least) ** room
        else:
            self.low, most = min([0, *known]), max([0, *known])
            self.high = most + (most - self.low) * (room or 0.05) or 1

    def share(self, values: Any) -> np.ndarray:
        """Where values lie, from 0 to 1."""
        if not self.axis.log:
            return (values - self.low) / (self.high - self.low or 1)
        return np.log(np.maximum(values, self.low) / self.low) / math.log(self.high / self.low)

    def at(self, values: Iterable[Any]) -> np.ndarray:
        """The positions of values: on this axis the values themselves."""
        return np.asarray(values)

    def encoding(self, field: str, channel: str) -> Spec:
        """The Vega-Lite encoding of a field along this axis."""
        scale: Spec = {"type": "log", "base": self.axis.log} if self.axis.log else {"zero": False}
        scale |= {"domain": [self.low, self.high], "nice": False}
        axis: Spec | None = None
        if self.title or self.axis.ticks is not None:
            axis = {"title": self.title or None, "labelExpr": _LABEL[self.axis.unit], "labelFlush": False}
            given = self.axis.ticks if self.axis.log != 10 or self.axis.ticks is not None else _DECADES
            axis |= (
                {"tickCount": 7} if given is None else {"values": [at for at in given if self.low <= at <= self.high]}
            )
            labels = self.side - (16 if self.title else 0)
            axis |= {"minExtent": labels, "maxExtent": labels} if self.side else {}
        return {"field": field, "type": "quantitative", "scale": scale, "axis": axis}


class _Names:
    """An axis of names: name number k lies from k to k + 1. A line break in a name begins a second line."""

    def __init__(self, names: Iterable[Any], title: str = "", *, side: int = 0) -> None:
        self.names, self.title, self.side = [*dict.fromkeys(map(str, names))], title, side
        self.centres = [at + 0.5 for at in range(len(self.names))]
        self.size = len(self.names) or 1.0

    def at(self, values: Iterable[Any]) -> np.ndarray:
        """The middle of each name."""
        middle = dict(zip(self.names, self.centres, strict=True))
        return np.array([middle[str(value)] for value in values])

    def encoding(self, field: str, channel: str) -> Spec:
        """The Vega-Lite encoding of a field along this axis, y from the top down."""
        label = f"split({json.dumps(self.names)}[indexof({self.centres}, datum.value)], '\\n')"
        axis: Spec = {"title": self.title or None, "values": self.centres, "labelExpr": label, "labelOverlap": False}
        axis |= {"grid": False, "domain": False, "ticks": False, "labelPadding": 8, "labelLimit": 400}
        axis["description"] = f"{self.title or channel}: {', '.join(self.names)}"
        axis |= {"minExtent": self.side, "maxExtent": self.side} if self.side else {}
        ends = [self.size, 0] if channel == "y" else [0, self.size]
        return {"field": field, "type": "quantitative", "scale": {"domain": ends, "nice": False}, "axis": axis}


# ---------------------------------------------------------------------------------------------------- the drawing


@dataclass
class _Drawing:
    """A picture in the making: layers over one pair of axes, each with its data, and the keywords of all forms."""

    form: str
    x: Any
    y: Any
    description: str
    title: str = ""
    styles: Styles | None = None
    legend: bool = True
    click: Sequence[str] = ()
    kinds: list[str] = field(default_factory=list)
    layers: list[Spec] = field(default_factory=list)
    data: dict[str, Columns] = field(default_factory=dict)

    def place(self, **fields: str) -> Spec:
        """Encodings of positions: x="start" puts the field start on the x axis; x2 and y2 are ends."""
        axes = {"x": self.x, "y": self.y}
        return {
            channel: axes[channel].encoding(name, channel) if channel in axes else {"field": name}
            for channel, name in fields.items()
        }

    def take(self, what: str, frame: pd.DataFrame | None, *columns: str, at: Mapping[str, str], **optional: Any) -> Any:
        """The rows of a frame as `_need` gives them, with places: at={"x": "low"} puts them at the values of low."""
        rows = _need(f"{self.form}: {what}", frame, *columns, *at.values(), **optional)
        axes = {"x": self.x, "x2": self.x, "y": self.y}
        return rows and rows | {channel: axes[channel].at(rows[column]) for channel, column in at.items()}

    def styled(self, kinds: Iterable[Any], styles: Styles | None) -> dict[str, Style]:
        """The styles of all kinds; raises ValueError for a kind without one."""
        used = [*dict.fromkeys(kinds)]
        chosen = theme.styled(used) if styles is None else dict(styles)
        unknown = [kind for kind in used if kind not in chosen]
        if unknown:
            raise ValueError(f"{self.form}: {unknown} have no style; a kind must be one of {[*chosen]}")
        return chosen

    def signs(self, styles: Styles, field: str, **channels: str) -> Spec:
        """Encodings of a field by attributes of its styles, as color="colour"; those of one field share a legend."""
        self.kinds += [kind for kind in styles if kind and kind not in self.kinds]
        shown = None
        if self.legend and len(styles) > 1:
            wide = sum(map(len, styles)) > 80 and len(styles) > 3
            shown = {"symbolOpacity": 1, **({"columns": 2} if wide else {})}
        entry = {"field": field, "type": "nominal", "legend": shown}
        return {
            channel: {**entry, "scale": {"domain": [*styles], "range": [getattr(one, name) for one in styles.values()]}}
            for channel, name in channels.items()
        }

    def add(self, name: str, rows: Columns | None, mark: str, encoding: Spec | None = None, /, **look: Any) -> None:
        """A layer of marks, at the columns x, x2, y and y2 of the rows unless the encoding has other places.

        Texts are those of the column label, and are read out; tips of other marks are hovered and read out, unless aria
        is False. The dataset gets the columns that encodings, expressions and clicks name. No rows or text, no layer.
        """
        if mark == "text" and rows is not None:  # a screen reader would tell an empty text as a picture without a name
            name, rows = f"{name}_texts", _where(rows["label"] != "", rows)
            rows = rows if len(rows["label"]) else None
        if rows is None:
            return
        encoding = encoding or {}
        if not encoding.keys() & {"x", "y"}:
            channels = ("x", "x2", "y", "y2") if mark in ("rect", "rule") else ("x", "y")
            encoding = self.place(**{channel: channel for channel in channels if channel in rows}) | encoding
        if mark == "text":
            encoding = encoding | {"text": {"field": "label"}, "description": {"field": "label"}}
        elif "tip" in rows and "tooltip" not in look and look.get("aria", True):
            tip = {"field": "tip", "type": "nominal"}
            encoding = encoding | {"tooltip": tip, "description": tip}
        self.layers.append({"data": {"name": name}, "mark": {"type": mark, **look}, "encoding": encoding})
        named = {part.get("field") for part in encoding.values()} | set(re.findall(r"datum\.(\w+)", str(look)))
        named |= {*self.click, *self.data.get(name, ())}
        self.data[name] = {column: rows[column] for column in rows if column in named}

    def clicked(self) -> None:
        """Make the layer that was added last the one whose marks are clicked."""
        if self.click:
            self.layers[-1]["name"] = "clicked"
            self.layers[-1]["mark"]["cursor"] = "pointer"

    def write(self, name: str, rows: Columns, encoding: Spec | None = None, /, **look: Any) -> None:
        """Labels in INK with a rim of PAPER, so that they read across lines and surfaces."""
        rim = {"stroke": theme.PAPER, "strokeWidth": 4, "strokeJoin": "round", "color": theme.PAPER, "aria": False}
        self.add(name, rows, "text", encoding, **rim, **look)
        self.add(name, rows, "text", encoding, color=theme.INK, **look)

    def write_beside(self, name: str, rows: Columns, left: np.ndarray, gap: int, /, **look: Any) -> None:
        """Bold labels so many pixels right of their places, or left of them where `left` is true."""
        for side, here, align, shift in (("left", left, "right", -gap), ("right", ~left, "left", gap)):
            self.write(f"{name}_{side}", _where(here, rows), **{**_BOLD, "align": align, "dx": shift, **look})

    def rule(self, rules: pd.DataFrame | None, colour: str = theme.HERE, along: str = "x") -> None:
        """A dashed line across the picture at each rule, its label at the end."""
        if rules is None:
            return
        rows = _told(_need(f"{self.form}: rules", rules, "at"), "label", "at")
        place = self.place(**{along: "at"})
        self.add("rules", rows, "rule", place, strokeDash=[5, 4], strokeWidth=2, stroke=colour)
        if along == "y":
            self.write("rules", rows, place | {"x": {"value": "width"}}, align="right", dx=-6, dy=-9)
        else:
            self.write("rules", rows, place | {"y": {"value": 0}}, align="left", dx=6, dy=-8, fontWeight="bold")

    def picture(self, height: float, *, canvas: bool = False) -> Picture:
        """What was added, as a picture of this height in pixels; the one place where a chart is named and described."""
        if not self.description:
            raise ValueError(f"{self.form}: description is empty; it must say what the chart shows")
        parts = {"Across": self.x.title, "Up": self.y.title, "Kinds": ", ".join(self.kinds)}
        told = [self.description, *(f"{what}: {text}" for what, text in parts.items() if text)]
        # By the chart itself: mo.ui.altair_chart ignores a renderer that is set elsewhere.
        drawn = {"embedOptions": {"renderer": "canvas" if canvas else "svg", "actions": False}}
        spec: Spec = {
            "$schema": alt.SCHEMA_URL,
            "config": theme.CONFIG,
            "usermeta": drawn,
            "description": ". ".join(told),
        }
        spec |= {"width": "container", "height": round(height), "layer": self.layers}
        if self.title:
            spec["title"] = self.title
        if self.click:
            # Cleared when the pointer leaves the mark, or a second click on it would change nothing and go unnoticed.
            select = {"type": "point", "fields": [*self.click], "on": "click", "clear": "mouseout"}
            spec["params"] = [{"name": "pick", "select": select, "views": ["clicked"]}]
        return Picture(spec, **self.data)


def _need(what: str, frame: pd.DataFrame | None, *columns: str, **optional: Any) -> Any:
    """The columns of a frame, with a default where an optional one has no value; it must have the other ones."""
    if frame is None:
        return None
    missing = [name for name in columns if name not in frame]
    if missing:
        raise ValueError(f"{what} has columns {[*map(str, frame.columns)]}; it must also have {missing}")
    rows = {name: frame[name].to_numpy() for name in frame}
    for name, default in {"label": "", **optional}.items():
        rows[name] = np.asarray(frame[name].fillna(default)) if name in frame else np.full(len(frame), default)
    return rows


def _told(rows: Columns, *columns: str) -> Columns:
    """The rows with tips: where they have none, these columns of theirs, each text once and empty ones left out."""

    def written(value: Any) -> str:
        if isinstance(value, str):
            return value
        return f"{int(value):,}" if value % 1 == 0 else f"{value:,.3g}"

    each = zip(*(map(written, rows[name].tolist()) for name in columns), strict=True)
    return {"tip": np.array([", ".join(filter(None, dict.fromkeys(texts))) for texts in each], dtype=object), **rows}


def _where(chosen: np.ndarray, rows: Columns) -> Columns:
    """The rows for which `chosen` is true."""
    return {name: values[chosen] for name, values in rows.items()}


def _values(frame: pd.DataFrame | None, *names: str) -> list[float]:
    """All values of those columns that there are."""
    return [] if frame is None else [value for name in names if name in frame for value in frame[name].tolist()]


def _fitting(pixels: np.ndarray, *texts: np.ndarray) -> np.ndarray:
    """For each place so many pixels wide the first of its texts that fits, or none."""
    rows = zip(pixels, *texts, strict=True)
    fit = [next((text for text in of if text and len(text) * CHARACTER + 6 <= wide), "") for wide, *of in rows]
    return np.array(fit, dtype=object)


# ---------------------------------------------------------------------------------------------------------- bands


def bands(
    marks: pd.DataFrame,
    *,
    x_axis: Axis = PLAIN,
    lanes: Lanes = None,
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
    tip: str = "",
    lane_height: int = 24,
    side: int = 84,
    room: int = 900,
    canvas: bool = False,
    **look: Any,
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
    order = "order" if "order" in marks else "kind"
    given = _need("bands: marks", marks, "lane", "start", "stop", order, group="")
    low, high = x_axis.domain or (min(marks["start"], default=0), max(marks["stop"], default=1))
    eighths = [low + (high - low) * part / 8 for part in range(9)] if x_axis.title else None
    x = _Scale(replace(x_axis, domain=(low, high), ticks=eighths if x_axis.ticks is None else x_axis.ticks), ())
    y = _Lanes(given, lanes, groups, side)
    drawing = _Drawing("bands", x, y, **look)
    roof, floor = 0.06 if signs is None else 0.38, 0.94 if notes is None else 0.64  # of the marks, in their lane
    y.centres = [top + (roof + floor) / 2 for top in y.top.values()]  # names stand beside the marks, not the lane

    def put(what: str, frame: pd.DataFrame | None, need: str, top: float, bottom: float, **optional: Any) -> Any:
        """The rows with places: from `top` below that of their lane to `bottom` in the last lane that they cover."""
        rows = _need(f"bands: {what}", frame, "lane", *need.split(), group="", lanes=1, **optional)
        if rows is None:
            return None
        first, last = ("start", "stop") if "start" in need else ("at", "at")
        wide = (high - low) / 120 if first == last else 0  # of a cut
        tops = y.tops(rows)
        rows |= {"x": rows[first].astype(float), "x2": rows[last].astype(float) + wide}
        return _told(rows | {"y": tops + top, "y2": tops + rows["lanes"] - 1 + bottom}, *need.split(), "lane")

    rows = put("marks", marks, f"start stop {order}", roof, floor)
    if order == "order":
        most = max([1.0, *_values(marks, "order")])
        viridis = {"scheme": "viridis", "domain": [0, most]}
        fill: Spec = {"fill": {"field": "order", "type": "quantitative", "legend": None, "scale": viridis}}
    else:
        look_of = drawing.styled(rows["kind"], drawing.styles)
        fill = drawing.signs(look_of, "kind", fill="colour")
        rows["y"] = rows["y2"] - [look_of[kind].height for kind in rows["kind"]] * (rows["y2"] - rows["y"])
    if canvas:
        rows["x2"] -= (high - low) / room
    rim = {} if canvas else {"stroke": theme.PAPER, "strokeWidth": 0.8}
    drawing.add("marks", rows, "rect", fill, **rim, **({"tooltip": {"expr": tip}} if tip else {}))
    drawing.clicked()
    rows, upright = put("rules", rules, "at", 0, 1), drawing.place(x="x", y="y", y2="y2")
    drawing.add("rules", rows, "rule", upright, color=theme.INK, strokeDash=[2, 2], aria=False)
    rows = put("cuts", cuts, "at", 0.08, 0.92)
    drawing.add("cuts", rows, "rect", color="#FFFFFF", stroke="#000000", strokeWidth=1, aria=False)
    if labels is not None or "label" in marks:
        rows = put("labels", marks if labels is None else labels, "start stop label", roof, floor, short="", kind="")
        pixels = (x.share(rows["x2"]) - x.share(rows["x"])) * room
        rows["label"] = _fitting(pixels, rows["label"], rows["short"])
        rows["x"], rows["y"] = (rows["x"] + rows["x2"]) / 2, (rows["y"] + rows["y2"]) / 2
        if order == "order":
            rows["ink"] = np.where(rows["order"] < 0.6 * most, "#FFFFFF", "#000000")
        else:
            rows["ink"] = np.array([look_of[kind].ink if kind in look_of else theme.INK for kind in rows["kind"]])
        drawing.add("labels", rows, "text", fontSize=11.5, tooltip=None, color=_INK_OF_ROW)
    if outlines is not None:
        rows = put("outlines", outlines, "start stop kind", 0.02, 0.98, tag="")
        rows["outline"] = rows["kind"]
        over = drawing.styled(rows["outline"], outline_styles)
        drawing.add("outlines", rows, "rect", **_HOLLOW, stroke=theme.PAPER, strokeWidth=5, aria=False)
        # An expression, because the dashes of a rectangle are no encoding.
        dash = {"expr": f"{json.dumps({kind: style.dash for kind, style in over.items()})}[datum.outline]"}
        stroke = drawing.signs(over, "outline", stroke="colour")
        drawing.add("outlines", rows, "rect", stroke, **_HOLLOW, strokeWidth=2.5, strokeDash=dash)
        tags = {"x": rows["x2"], "y": rows["y"] + 0.48, "label": rows["tag"]}
        drawing.write_beside("tags", tags, rows["x2"] > low + 0.86 * (high - low), 6, fontSize=11.5)
    if signs is not None:
        rows = put("signs", signs, "at kind", 0.2, 0.2)
        rows["sign"] = rows["kind"]
        sign = drawing.signs(drawing.styled(rows["sign"], sign_styles), "sign", color="colour", shape="shape")
        drawing.add("signs", rows, "point", sign, **_DOT, size=90)
    if notes is not None:
        rows = put("notes", notes, "at text", floor + 0.17, 1)
        drawing.add("notes", {**rows, "label": rows["text"]}, "text", fontSize=11, color=theme.INK)
    rows = put("chosen", chosen, "start stop", roof - 0.04, floor + 0.04, dashed=False)
    ring = {**_HOLLOW, "stroke": theme.HERE, "strokeWidth": 3, "aria": False}
    drawing.add("chosen", rows, "rect", **ring, strokeDash={"expr": "datum.dashed ? [6, 4] : [1, 0]"})
    if groups is not None:
        tops = np.array([*y.first.values()])
        rows = {"x": np.full(len(tops), low), "y": tops - 0.2, "label": np.array([*groups.values()])}
        drawing.add("headings", rows, "text", **_BOLD, align="left", baseline="bottom", color=theme.INK)
    return drawing.picture(y.size * lane_height, canvas=canvas)


class _Lanes(_Names):
    """The lanes of bands from top to bottom, with the room of headings and gaps."""

    def __init__(self, marks: Columns, lanes: Lanes, groups: Mapping[str, str] | None, side: int) -> None:
        super().__init__((), side=side)
        self.first: dict[str, float] = {}  # group: top of its first lane
        self.top: dict[tuple[str, str], float] = {}
        pairs = self._pairs(marks)
        down = 0.0
        for group in groups or dict.fromkeys(group for group, _ in pairs or [("", "")]):
            down += 1.25 if groups else 0.5 if self.first else 0.0
            self.first[group] = down
            given = lanes.get(group) if isinstance(lanes, Mapping) else lanes
            for lane in given or dict.fromkeys(lane for of, lane in pairs if of == group):
                self.top[group, lane] = down
                down += 1
        self.size = down or 1.0
        self.names = [lane for _, lane in self.top]

    @staticmethod
    def _pairs(rows: Columns) -> list[tuple[str, str]]:
        return [*zip(rows["group"], map(str, rows["lane"]), strict=True)]

    def tops(self, rows: Columns) -> np.ndarray:
        """The top of each row's lane, in lanes from the top of the picture."""
        pairs = self._pairs(rows)
        unknown = [pair for pair in dict.fromkeys(pairs) if pair not in self.top]
        if unknown:
            raise ValueError(f"bands: there are no lanes {unknown}; a lane must be one of {[*self.top]}")
        return np.array([self.top[pair] for pair in pairs], dtype=float)


# --------------------------------------------------------------------------------------------------------- points


def points(
    rows: pd.DataFrame,
    *,
    x: str,
    y: str,
    series: str | None = None,
    x_axis: Axis = PLAIN,
    y_axis: Axis = PLAIN,
    dots: bool = True,
    join: bool | Sequence[str] = False,
    step: bool = False,
    rules: pd.DataFrame | None = None,
    reference: pd.DataFrame | None = None,
    here: pd.DataFrame | None = None,
    held: pd.DataFrame | None = None,
    shade: pd.DataFrame | None = None,
    height: int = 0,
    side: int = 0,
    **look: Any,
) -> Picture:
    """Values over an axis: dots with whiskers, told apart by colour and shape, or lines, by colour and dashes.

    rows: the columns named by x, y and series, and [low high] the ends of a whisker, [here] true where a ring is drawn,
        [live] true for a dot of this session, drawn larger and with a rim, [label] text over the dot, or right of it
        where y holds names, [tip]. A column of texts gives an axis of names ("\\n" breaks a name).
    dots: False draws none. join: lines through the dots of every series, or of the series named; live ones stand alone.
        step: each value lasts until the next.

    Other frames:
        rules: at [label], dashed lines across the measured axis: y, or x where y holds names
        reference: x, y [label], a dashed line to compare with
        here: x, y [label series tip], "you are here": dots on an upright rule; a label, of several lines with "\\n",
            stands on the side of its dot where there is room. Where y is missing the rule alone is drawn.
        held: x, to, y, a thick line over the range in which y stays what it is
        shade: start, stop [label], ranges of x with a ground of their own

    height: 330, or by the number of names; side: the room for the y axis, so that pictures line up. Both are pixels.
    """

    def named(column: str) -> bool:
        return not pd.api.types.is_numeric_dtype(rows[column])

    along = "x" if named(y) else "y"  # the axis that measures
    ends = [*_values(rules, "at"), *_values(rows, "low", "high")]

    def scale(name: str, axis: Axis, column: str) -> Any:
        values = [value for frame in (rows, reference, here) for value in _values(frame, column)]
        if named(column):
            return _Names(values, axis.title)
        room = 0.3 if name == along == "x" and "label" in rows else 0.0
        return _Scale(axis, values + (ends if name == along else []), room=room, side=side if name == "y" else 0)

    drawing = _Drawing("points", scale("x", x_axis, x), scale("y", y_axis, y), **look)
    across, height = drawing.x, height or round(330 if along == "y" else 38 * drawing.y.size + 20)
    at = {"x": x, "y": y}
    every = drawing.take("rows", rows, at=at, here=False, live=False)
    every["series"] = every[series] if series else np.full(len(rows), "")
    live = every["live"].astype(bool)
    look_of = drawing.styled(every["series"], drawing.styles)
    colour = drawing.signs(look_of, "series", color="colour")
    if shade is not None:
        ground = drawing.take("shade", shade, at={"x": "start", "x2": "stop"})
        drawing.add("shade", ground, "rect", color=theme.HERE, opacity=0.18, aria=False)
        drawing.add("shade", ground, "rule", drawing.place(x="x"), color=theme.HERE, strokeWidth=2, aria=False)
        narrow = across.share(ground["x2"]) - across.share(ground["x"]) <= 0.5  # then its text stands beside it
        drawing.write_beside("shade", ground, narrow, 8, y=height - 14)
    drawing.rule(rules, theme.GREY, along)
    if reference is not None:
        line = drawing.take("reference", reference, at=at)
        drawing.add("reference", line, "line", strokeDash=[4, 4], strokeWidth=1.5, color=theme.INK, aria=False)
        drawing.write("reference", line, align="left", dx=4, dy=-9)
    if join:
        joined = ~live if join is True else ~live & np.isin(every["series"], join)
        dashed = colour | drawing.signs(look_of, "series", strokeDash="dash") | {"description": {"field": "series"}}
        line = {"strokeWidth": 1.5 if dots else 2.5, "interpolate": "step-after" if step else "linear"}
        drawing.add("lines", _where(joined, every), "line", dashed, aria=not dots, **line)
    if dots:
        every = _told(every, "series", x, y)
        sign = colour | drawing.signs(look_of, "series", shape="shape")
        small = {"size": 95 if len(rows) <= 60 else 40}
        large = {"size": 190, "stroke": theme.HERE, "strokeWidth": 1.5}
        for name, chosen, size in (("rows", ~live, small), ("live", live, large))[: 1 + any(live)]:
            part = _where(chosen, every)
            if "low" in rows:
                place = {"x": "low", "x2": "high", "y": "y"} if along == "x" else {"x": "x", "y": "low", "y2": "high"}
                whisker = {"strokeWidth": 3, "opacity": 0.6, "clip": True, "aria": False}
                drawing.add(name, part, "rule", drawing.place(**place) | colour, **whisker)
            drawing.add(name, part, "point", sign, **_DOT, **size)
            if along == "y":
                drawing.write(name, part, dy=-15)
            else:
                drawing.write(name, part | {"x": np.fmax(part["x"], part.get("high", part["x"]))}, align="left", dx=12)
    if any(every["here"]):
        ring = {"size": 340, "shape": "circle", "color": theme.HERE, "strokeWidth": 2, "opacity": 1, "aria": False}
        drawing.add("ring", _where(every["here"].astype(bool), every), "point", **ring)
    thick = drawing.take("held", held, at={**at, "x2": "to"})
    drawing.add("held", thick, "rule", strokeWidth=12, opacity=0.35, color=theme.HERE, aria=False)
    if here is not None:
        marks = _told(drawing.take("here", here, at=at, series=""), "series", "label")
        inks = [look_of[name].colour if name in look_of else theme.HERE for name in marks["series"]]
        known = _where(~np.isnan(marks["y"].astype(float)), {**marks, "ink": np.array(inks)})
        upright = {"x": np.unique(marks["x"])}
        drawing.add("here_rule", upright, "rule", color=theme.HERE, strokeDash=[3, 3], aria=False)
        drawing.add("here", known, "point", **_DOT, size=120, fill=_INK_OF_ROW)
        drawing.write_beside("here", known, across.share(known["x"]) > 0.5, 12, lineBreak="\n", dy=-33)
    return drawing.picture(height)


# ----------------------------------------------------------------------------------------------------------- bars


def bars(
    rows: pd.DataFrame,
    *,
    axis: Axis = PLAIN,
    stack: bool = False,
    totals: pd.DataFrame | None = None,
    rules: pd.DataFrame | None = None,
    bar_height: int = 24,
    room: int = 900,
    **look: Any,
) -> Picture:
    """Amounts or ranges as horizontal bars, a line of the picture for each name.

    rows: name, value, [start] where the bar begins, else at zero, or at 1 on a log axis; [part] for the colour: the
        parts of a name have their bars under each other, or end to end with stack; [label] text at the end of a bar, or
        in it with stack; [tip]
    totals: name, label: texts at the ends of stacks. rules: at [label], dashed lines across.
    axis: drawn where it has a title. room: the width in pixels that labels of a stack must fit.
    """
    base = 1.0 if axis.log else 0.0
    given = _need("bars: rows", rows, "name", "value", part="", start=base)
    told = ["label"] if "label" in rows else ["start", "value"] if "start" in rows else ["value"]
    given = _told(given, "name", "part", *told)
    parts, names = given["part"], [str(name) for name in given["name"]]
    starts, ends = given["start"].astype(float), given["value"].astype(float)
    if stack:
        ends = pd.Series(ends).groupby(names).cumsum().to_numpy()
        starts = pd.Series(ends).groupby(names).shift(fill_value=0).to_numpy()
    x, y = (
        _Scale(axis, [*starts, *ends, *_values(rules, "at")], room=0.35 if "label" in rows or stack else 0.0),
        _Names(names),
    )
    drawing = _Drawing("bars", x, y, **look)
    look_of = drawing.styled(parts, drawing.styles)
    # How many bars a name has under each other, which of them each is, and the share of the line that it takes.
    order = [part for part in look_of if part in parts]
    together = 1 if stack or len(y.names) == len(rows) else len(order)
    nth = np.array([order.index(part) if together > 1 else 0 for part in parts])
    share = bar_height / (bar_height + 12) if together == 1 else 0.86 / together
    tops = y.at(names) + (nth - together / 2) * share
    bottoms = tops + share * (1 if together == 1 else 0.94)
    made = {**given, "x": starts, "x2": ends, "y": tops, "y2": bottoms}
    drawing.add("bars", made, "rect", drawing.signs(look_of, "part", fill="colour"))
    middle = {**made, "y": (tops + bottoms) / 2, "ink": np.array([look_of[part].ink for part in parts])}
    if stack:
        texts = _fitting((ends - starts) / (x.high - x.low) * (room - 150), given["label"])
        labels = {**middle, "x": (starts + ends) / 2, "label": texts}
        drawing.add("labels", labels, "text", fontSize=12.5, color=_INK_OF_ROW)
    else:
        drawing.add("labels", middle | {"x": ends}, "text", fontSize=12.5, align="left", dx=7, color=theme.INK)
    if totals is not None:
        made = drawing.take("totals", totals, "label", at={"y": "name"})
        made["x"] = pd.Series(ends).groupby(names).max()[[*map(str, made["name"])]].to_numpy()
        drawing.add("totals", made, "text", **_BOLD, align="left", dx=8, color=theme.INK)
    drawing.rule(rules)
    return drawing.picture(y.size * (12 + bar_height * (1 if together == 1 else 0.72 * together)))


# --------------------------------------------------------------------------------------------------------- matrix


def matrix(
    rows: pd.DataFrame, *, row: str, column: str, column_title: str = "", cell_height: int = 38, **look: Any
) -> Picture:
    """A grid of verdicts: a cell where a row and a column meet, in the colour of its kind.

    rows: the columns named by row and column, and kind; [label] the text of the cell, else the sign and the name of its
        kind; [tip]
    """
    drawing = _Drawing("matrix", _Names(_values(rows, column), column_title), _Names(_values(rows, row)), **look)
    cells = drawing.take("rows", rows, "kind", at={"x": column, "y": row})
    look_of = drawing.styled(cells["kind"], drawing.styles)
    x, y = cells["x"], cells["y"]
    cells |= {"x1": x - 0.5, "x2": x + 0.5, "y1": y - 0.5, "y2": y + 0.5}
    cells["ink"] = np.array([look_of[kind].ink for kind in cells["kind"]])
    if "label" not in rows:
        cells["label"] = np.array([f"{look_of[kind].sign} {kind}".strip() for kind in cells["kind"]])
    cells = _told(cells, row, column, "label")
    box = drawing.place(x="x1", x2="x2", y="y1", y2="y2") | drawing.signs(look_of, "kind", fill="colour")
    box["x"]["axis"] |= {"orient": "top", "labelAngle": 0}
    drawing.add("cells", cells, "rect", box, stroke=theme.PAPER, strokeWidth=2)
    drawing.clicked()
    text = {"fontWeight": "bold", "fontSize": 12.5, "lineBreak": "\n", "tooltip": None}
    drawing.add("cells", cells, "text", **text, color=_INK_OF_ROW)
    return drawing.picture(cell_height * drawing.y.size)
