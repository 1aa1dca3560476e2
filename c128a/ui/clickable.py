"""A picture whose marks can be clicked. Needs marimo.

`mo.ui.altair_chart` takes an Altair chart and builds its dictionary at each change, which costs more than everything
else on a page; a picture has its dictionary already. So the chart handed over here is only a carrier of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import altair as alt
import marimo as mo

from c128a.ui.picture import Picture, Spec


class _Ready(alt.TopLevelMixin):
    """Looks like an Altair chart without data, and gives the dictionary that it was made with."""

    data = alt.Undefined

    def __init__(self, spec: Spec) -> None:
        self._ready = spec

    def copy(self, *args: Any, **kwargs: Any) -> _Ready:
        return self

    def to_dict(self, *args: Any, **kwargs: Any) -> Spec:
        return self._ready


def clickable(picture: Picture, on_pick: Callable[[dict[str, Any]], None]) -> mo.ui.altair_chart:
    """The picture, with on_pick called for each click on a mark that its selection parameter covers.

    The chart must hold one `alt.selection_point(fields=[…])`; on_pick gets the clicked mark's value of each field.
    """

    def picked(_: Any) -> None:
        mark = picked_mark(chart.selections)
        if mark:
            on_pick(mark)

    chart = mo.ui.altair_chart(
        _Ready(picture.spec),  # type: ignore[arg-type]
        chart_selection=False,
        legend_selection=False,
        on_change=picked,
    )
    return chart


def picked_mark(selections: dict[str, Any]) -> dict[str, Any]:
    """The fields of the last mark clicked, from what Vega sends; empty where nothing is selected.

    >>> picked_mark({"pick": {"vlPoint": {"or": []}, "program": [2], "trip": [0]}})
    {'program': 2, 'trip': 0}
    >>> picked_mark({})
    {}
    """
    for fields in selections.values():
        return {name: values[-1] for name, values in fields.items() if name != "vlPoint" and values}
    return {}
