"""A place for one picture after another, whose marks can be clicked. Needs marimo.

`mo.ui.altair_chart` takes an Altair chart and builds its dictionary at each change, which takes longer than the rest of
a key press; a picture has its dictionary already. So one element with an empty chart is made for the life of a page,
and each change shows it with another picture in it: the browser changes the drawing in place.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape
from typing import Any

import altair as alt
import marimo as mo

from c128a.ui.picture import Picture

SPEC = re.compile(r"data-spec='[^']*'")  # as marimo writes the dictionary of a chart


def clickable(on_pick: Callable[[dict[str, Any]], object]) -> mo.ui.altair_chart:
    """An element for `drawn`; on_pick is called for each click on a mark that the picture's selection covers.

    The pictures must hold one `alt.selection_point(fields=[…])`; on_pick gets the clicked mark's value of each field.
    Make it in a cell that depends on no setting, on a page with html_head_file="head.html", which says why.
    """

    def picked(_: Any) -> None:
        mark = picked_mark(chart.selections)
        if mark:
            on_pick(mark)

    chart = mo.ui.altair_chart(
        alt.LayerChart(layer=[]), chart_selection=False, legend_selection=False, on_change=picked
    )
    return chart


def drawn(element: mo.ui.altair_chart, picture: Picture) -> mo.Html:
    """The element with this picture in it; it keeps its last click when the picture changes.

    Raises ValueError where marimo writes its element in a way that leaves no place for the picture.
    """
    # In single quotes: a thousand lanes hold ten thousand double quotes, each six characters long when it is escaped.
    spec = escape(picture.to_json(), quote=False).replace("'", "&#x27;")
    text, places = SPEC.subn(lambda _: f"data-spec='{spec}'", element.text)
    if places != 1:
        raise ValueError(f"the element has {places} places for a picture; it must have one")
    return mo.Html(text)


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
