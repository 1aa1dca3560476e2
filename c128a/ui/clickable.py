"""A picture whose marks can be clicked, and which is drawn anew without being built anew. Needs marimo.

`mo.ui.altair_chart` takes an Altair chart and builds its dictionary at each change, which takes longer than the rest of
a key press; a picture has its dictionary already. So one element without a picture is made for the life of a page, and
each change shows that element with another picture in it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from html import escape
from typing import Any

import altair as alt
import marimo as mo

from c128a.ui.picture import Picture, Spec


class _Empty(alt.TopLevelMixin):
    """Looks like an Altair chart without data, and has an empty dictionary."""

    data = alt.Undefined

    def copy(self, *args: Any, **kwargs: Any) -> _Empty:
        return self

    def to_dict(self, *args: Any, **kwargs: Any) -> Spec:
        return {}


NO_SPEC = "data-spec='{}'"


def clickable(on_pick: Callable[[dict[str, Any]], None]) -> mo.ui.altair_chart:
    """An element for `drawn`; on_pick is called for each click on a mark that the picture's selection covers.

    The pictures must hold one `alt.selection_point(fields=[…])`; on_pick gets the clicked mark's value of each field.
    """

    def picked(_: Any) -> None:
        mark = picked_mark(chart.selections)
        if mark:
            on_pick(mark)

    chart = mo.ui.altair_chart(
        _Empty(),  # type: ignore[arg-type]
        chart_selection=False,
        legend_selection=False,
        on_change=picked,
    )
    return chart


def drawn(element: mo.ui.altair_chart, picture: Picture) -> str:
    """The element as HTML, with this picture in it.

    Raises ValueError where marimo writes its element in a way that leaves no place for the picture.
    """
    if element.text.count(NO_SPEC) != 1:
        raise ValueError(f"the element has {element.text.count(NO_SPEC)} empty pictures; it must have one to replace")
    # In single quotes: a thousand lanes hold ten thousand double quotes, each six characters long when it is escaped.
    spec = escape(json.dumps(picture.spec, separators=(",", ":")), quote=False).replace("'", "&#x27;")
    return element.text.replace(NO_SPEC, f"data-spec='{spec}'")


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
