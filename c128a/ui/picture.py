"""A chart whose shape is built once and whose data changes with every key press. Torch-free.

Altair takes tens of milliseconds to build and check a layered chart; its result is one dictionary. So a page builds
each chart with `alt.NamedData`, keeps the dictionary, and puts the rows of the moment into it under those names.

>>> import altair as alt
>>> chart = alt.Chart(alt.NamedData("here")).mark_point().encode(x="seq:Q")
>>> Picture(frame(chart), here=[{"seq": 5}]).spec["datasets"]
{'here': [{'seq': 5}]}
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from c128a.ui import theme

MIME = "application/vnd.vegalite.v6+json"
MAX_MARKS = 20_000  # rows in one chart; more are slow to draw and too small to see

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

    def _mime_(self) -> tuple[str, str]:
        return MIME, json.dumps(self.spec)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Spec]:
        return {MIME: self.spec}
