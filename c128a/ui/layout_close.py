"""Sixteen cells of each buffer close up. Torch-free."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import altair as alt

from c128a.ui import theme
from c128a.ui.cells import SCENE_LAYOUTS, Cell, Scene, reads
from c128a.ui.layout_data import GRIDS, WINDOW, window
from c128a.ui.layout_signs import FILL, KIND_NAME, KIND_TEXT, SIDE
from c128a.ui.layout_text import MARK, Scenes, address, label, verdict_name
from c128a.ui.picture import Picture, Spec, frame


def close_up(scenes: Scenes, layout: str, at: int, mode: str, grid: str, values: tuple[int, ...] | None) -> Picture:
    """Sixteen cells around a flat index in each layout, labelled; a click picks `layout` and `start`.

    values: the kernel's output for the picked layout, flat; the other layouts show what the definitions give.
    """
    first = min(at, scenes[0].cells - 1) // WINDOW * WINDOW
    data: dict[str, list[dict[str, Any]]] = {"cells": [], "readers": [], "grid": []}
    data["ticks"] = [{"x": tick, "text": f"{first + tick:,}"} for tick in range(WINDOW)]
    for scene in scenes:
        for offset, cell in window(scene, at):
            text = label(scene, offset, mode)
            if values is not None and mode == "value" and scene.layout == layout and cell.kind != "blank":
                text = f"{values[offset]:,}".replace("-", "−")
            data["cells"].append(_close_cell(scene, offset, offset - first, cell, text))
        for read in reads(scene):
            for offset in range(max(read.start, first), min(read.stop, first + WINDOW)):
                col = read.col + offset - read.start
                text = f"{MARK[read.verdict]} {read.row}, {col:,}"
                data["readers"].append(
                    {"layout": scene.layout, "x": offset - first, "text": text, "verdict": verdict_name(read.verdict)}
                )
    data["here"] = [cell for cell in data["cells"] if (cell["layout"], cell["start"]) == (layout, at)]
    if GRIDS[grid]:
        data["grid"] = [{"x": flat - first} for flat in range(first, first + WINDOW + 1) if flat % GRIDS[grid] == 0]
    return Picture(_close_frame(), **data)


def _close_cell(scene: Scene, offset: int, x: int, cell: Cell, text: str) -> dict[str, Any]:
    return {
        "layout": scene.layout,
        "start": offset,
        "x": x,
        "x2": x + 1,
        "kind": KIND_NAME[cell.kind],
        "ink": KIND_TEXT[cell.kind],
        "text": text,
        "sum": address(scene, offset).strip("`"),
    }


@lru_cache(maxsize=1)
def _close_frame() -> Spec:
    x = alt.X("x:Q", scale=alt.Scale(domain=[0, WINDOW], nice=False), axis=None)
    y = alt.Y(
        "layout:N",
        sort=list(SCENE_LAYOUTS),
        axis=alt.Axis(title=None, **SIDE),
    )
    pick = alt.selection_point(name="pick", fields=["layout", "start"], on="click", empty=False, clear=False)
    cells = alt.Chart(alt.NamedData("cells"))
    step = f"(width / {WINDOW} / 2)"
    return frame(
        alt.layer(
            cells.mark_bar(height=36, stroke=theme.PAPER, strokeWidth=2, cursor="pointer")
            .encode(
                x=x,
                x2="x2:Q",
                y=y,
                fill=FILL.legend(None),
                tooltip=[
                    alt.Tooltip("kind:N", title="holds"),
                    alt.Tooltip("text:N", title="label"),
                    alt.Tooltip("sum:N", title="address"),
                ],
            )
            .add_params(pick),
            cells.mark_text(dx=alt.expr(step), fontSize=12).encode(
                x=x, y=y, text="text:N", color=alt.Color("ink:N", scale=None)
            ),
            alt.Chart(alt.NamedData("readers"))
            .mark_text(dx=alt.expr(step), yOffset=27, fontSize=11, color=theme.INK)
            .encode(x=x, y=y, text="text:N"),
            alt.Chart(alt.NamedData("ticks"))
            .mark_text(dx=alt.expr(step), y=5, fontSize=11, color=theme.INK)
            .encode(x=x, text="text:N"),
            alt.Chart(alt.NamedData("grid")).mark_rule(color=theme.INK, strokeWidth=1.5, strokeDash=[4, 3]).encode(x=x),
            alt.Chart(alt.NamedData("here"))
            .mark_bar(height=40, fillOpacity=0, stroke=theme.HERE, strokeWidth=3)
            .encode(x=x, x2="x2:Q", y=y),
        ).properties(width="container", height=66 * len(SCENE_LAYOUTS))
    )
