"""A chart whose shape is built once and whose data changes with every key press. Torch-free.

Altair takes tens of milliseconds to build and check a layered chart; its result is one dictionary. So a page builds
each chart with `alt.NamedData`, keeps the dictionary, and puts the rows of the moment into it under those names.

>>> import altair as alt
>>> chart = alt.Chart(alt.NamedData("here")).mark_point().encode(x="seq:Q")
>>> Picture(frame(chart), here=[{"seq": 5}]).spec["datasets"]
{'here': [{'seq': 5}]}
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

from c128a.ui import theme

MIME = "application/vnd.vegalite.v6+json"
MAX_MARKS = 20_000  # rows in one chart; more are slow to draw and too small to see

LONG = 100  # rows from which on data travels as CSV

Spec = dict[str, Any]
Rows = Sequence[Mapping[str, Any]]


def frame(chart: Any) -> Spec:
    """The Vega-Lite dictionary of an Altair chart under this workbook's theme: build it once and keep it."""
    theme.use()
    return chart.to_dict()


class Picture:
    """A chart's dictionary with rows for its named data; marimo and Jupyter draw it.

    Raises ValueError where the rows are more than MAX_MARKS: aggregate them first.
    """

    def __init__(self, spec: Spec, **rows: Rows) -> None:
        held = sum(len(part) for part in rows.values())
        if held > MAX_MARKS:
            raise ValueError(f"the chart would hold {held:,} rows; it must hold at most {MAX_MARKS:,}")
        self.spec = {
            **spec,
            "datasets": {**spec.get("datasets", {}), **{name: list(part) for name, part in rows.items()}},
        }

    def to_json(self) -> str:
        """The chart as short JSON, its long data as CSV: a page reads each character of it anew at each change."""
        return json.dumps(_with_csv(self.spec), separators=(",", ":"))

    def _mime_(self) -> tuple[str, str]:
        return MIME, self.to_json()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Spec]:
        return {MIME: self.spec}


def _with_csv(spec: Spec) -> Spec:
    """The spec with every long dataset as CSV, and each use of one with the format to read it."""
    datasets = spec.get("datasets", {})
    formats = {name: _csv_format(rows) for name, rows in datasets.items() if len(rows) >= LONG}
    if not formats:
        return spec

    def told(part: Any) -> Any:
        if isinstance(part, list):
            return [told(each) for each in part]
        if not isinstance(part, dict):
            return part
        if part.get("name") in formats and len(part) == 1:
            return {**part, "format": formats[part["name"]]}
        return {key: told(value) for key, value in part.items()}

    rest = {key: told(value) for key, value in spec.items() if key != "datasets"}
    return {**rest, "datasets": {name: _csv(rows) if name in formats else rows for name, rows in datasets.items()}}


def _csv_format(rows: Rows) -> Spec:
    numbers = [name for name in rows[0] if all(isinstance(row[name], int | float | None) for row in rows)]
    return {"type": "csv", "parse": dict.fromkeys(numbers, "number")}


def _csv(rows: Rows) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0].keys(), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
