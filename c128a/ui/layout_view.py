"""The pictures of page 02: the buffer as one strip and as rows. Torch-free.

Each picture has a frame, built once for a shape of buffer, and the rows of the moment. Fixed, packed and pitched stand
under each other on one scale.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import altair as alt

from c128a.ui import theme
from c128a.ui.cells import SCENE_LAYOUTS, Scene, runs, verdict
from c128a.ui.layout_data import GRIDS, columns_a_mark, pieces, stretches
from c128a.ui.layout_signs import (
    FILL,
    KIND_NAME,
    KIND_TEXT,
    OUTLINE,
    SIDE,
    VERDICT_COLOUR,
    VERDICT_DASH,
    VERDICT_DOMAIN,
    VERDICTS,
)
from c128a.ui.layout_text import MARK, Scenes, address, verdict_name
from c128a.ui.picture import Picture, Spec, frame

ROW_HEIGHT = 24  # pixels
HEADING = 1.25  # rows of room above each buffer


def buffer_rows(scenes: Scenes, grid: str, *, show_reader: bool = True) -> Picture:
    """The three buffers row by row, what the reader looks at outlined; a click picks `layout` and `start` of a mark."""
    rows, capacity = scenes[0].rows, scenes[0].capacity
    data: dict[str, list[dict[str, Any]]] = {
        "cells": [],
        "names": [],
        "titles": [],
        "outlines": [],
        "tags": [],
        "tags_inside": [],
    }
    data |= {found: [] for found in VERDICTS}
    for at, scene in enumerate(scenes):
        top = at * (rows + HEADING) + HEADING
        title = f"{scene.layout} · width {scene.width:,}, row stride {scene.now.row_stride:,}"
        data["titles"].append({"x": 0, "y": top - 0.25, "text": title})
        for piece in pieces(scene):
            first, last = piece.start % capacity, (piece.stop - 1) % capacity
            data["cells"].append(
                {
                    "x": first,
                    "x2": last + 1,
                    "y": top + piece.buffer_row + 0.08,
                    "y2": top + piece.buffer_row + 0.92,
                    "kind": KIND_NAME[piece.kind],
                    "layout": scene.layout,
                    "start": piece.start,
                    "tip": f"flat {piece.start:,} – {piece.stop - 1:,}",
                    "sum": address(scene, piece.start).strip("`"),
                }
            )
        for run in runs(scene):
            # The name stands in the longest part of the run, where it wraps into the next buffer row.
            if run.kind in ("id", "old id") and run.row is not None:
                end = min(run.stop, (run.start // capacity + 1) * capacity)
                start = run.start if 2 * (end - run.start) >= run.stop - run.start else end
                end = end if start == run.start else min(run.stop, start + capacity)
                share = (end - start) / capacity
                if share > 0.012:
                    text = f"{'old ' if run.kind == 'old id' else ''}row {run.row}" if share > 0.07 else f"{run.row}"
                    x = (start % capacity) + (end - start) * (0.5 if run.kind == "id" else 0.9)
                    y = top + start // capacity + 0.5
                    data["names"].append({"x": x, "y": y, "text": text, "ink": KIND_TEXT[run.kind]})
        if show_reader:
            _outline(scene, top, data)
    lines = _grid_lines(rows, capacity, GRIDS[grid])
    edges = [{"x": column} for column in range(0, capacity + 1, columns_a_mark(capacity))]
    return Picture(_rows_frame(rows, capacity), **data, grid=lines, edges=edges)


def _outline(scene: Scene, top: float, data: dict[str, list[dict[str, Any]]]) -> None:
    capacity = scene.capacity
    for stretch in stretches(scene):
        y = top + stretch.buffer_row
        first, last = stretch.start % capacity, (stretch.stop - 1) % capacity + 1
        name = verdict_name(stretch.verdict)
        outline = {"x": first, "x2": last, "y": y + 0.02, "y2": y + 0.98, "verdict": name}
        data["outlines"].append(outline)
        data[stretch.verdict].append(outline)
        if stretch.first:
            text = f"{MARK[verdict(scene, stretch.row)]} reader row {stretch.row}"
            data["tags_inside" if last > 0.88 * capacity else "tags"].append({"x": last, "y": y + 0.5, "text": text})


def _grid_lines(rows: int, capacity: int, spacing: int) -> list[dict[str, float]]:
    """Short rules at every multiple of the spacing, for the three buffers; none where they would lie too close."""
    if not spacing or capacity / spacing > 64:
        return []
    lines = []
    for at in range(len(SCENE_LAYOUTS)):
        for flat in range(0, rows * capacity, spacing):
            y = at * (rows + HEADING) + HEADING + flat // capacity
            lines.append({"x": flat % capacity, "y": y, "y2": y + 1})
    return lines


@lru_cache(maxsize=16)
def _rows_frame(rows: int, capacity: int) -> Spec:
    height = len(SCENE_LAYOUTS) * (rows + HEADING)
    ticks = [capacity * part // 8 for part in range(9)]
    x = alt.X(
        "x:Q",
        scale=alt.Scale(domain=[0, capacity], nice=False),
        axis=alt.Axis(title="column of the buffer", values=ticks, format=",d", grid=False),
    )
    block = rows + HEADING
    y = alt.Y(
        "y:Q",
        scale=alt.Scale(domain=[0, height], reverse=True, nice=False),
        axis=alt.Axis(
            title=None,
            values=[at * block + HEADING + row + 0.5 for at in range(len(SCENE_LAYOUTS)) for row in range(rows)],
            labelExpr=f"'buffer row ' + floor(datum.value % {block} - {HEADING})",
            labelOverlap=False,
            **SIDE,
        ),
    )
    cells = alt.Chart(alt.NamedData("cells"))
    pick = alt.selection_point(name="pick", fields=["layout", "start"], on="click", empty=False, clear=False)
    tags, inside = (alt.Chart(alt.NamedData(name)).encode(x=x, y=y) for name in ("tags", "tags_inside"))
    mark = {"fontWeight": "bold", "fontSize": 11.5}
    return frame(
        alt.layer(
            cells.mark_rect(cursor="pointer")
            .encode(
                x=x,
                x2="x2:Q",
                y=y,
                y2="y2:Q",
                fill=FILL,
                tooltip=[
                    alt.Tooltip("layout:N"),
                    alt.Tooltip("kind:N", title="holds"),
                    alt.Tooltip("tip:N", title="cells"),
                    alt.Tooltip("sum:N", title="first cell"),
                ],
            )
            .add_params(pick),
            alt.Chart(alt.NamedData("edges")).mark_rule(color=theme.PAPER, strokeWidth=0.8, opacity=0.55).encode(x=x),
            alt.Chart(alt.NamedData("grid"))
            .mark_rule(color=theme.INK, strokeWidth=1, strokeDash=[2, 2])
            .encode(x=x, y=y, y2="y2:Q"),
            alt.Chart(alt.NamedData("names"))
            .mark_text(fontSize=11.5)
            .encode(x=x, y=y, text="text:N", color=alt.Color("ink:N", scale=None)),
            alt.Chart(alt.NamedData("outlines"))
            .mark_rect(fill=None, fillOpacity=0, stroke=theme.PAPER, strokeWidth=5, aria=False)
            .encode(x=x, x2="x2:Q", y=y, y2="y2:Q"),
            *(
                alt.Chart(alt.NamedData(found))
                .mark_rect(fill=None, fillOpacity=0, strokeWidth=2.5, strokeDash=VERDICT_DASH[found])
                .encode(x=x, x2="x2:Q", y=y, y2="y2:Q", stroke=OUTLINE)
                for found in VERDICTS
            ),
            *theme.halo_text(tags, align="left", dx=6, **mark),
            *theme.halo_text(inside, align="right", dx=-6, **mark),
            alt.Chart(alt.NamedData("titles"))
            .mark_text(align="left", baseline="bottom", fontWeight="bold", fontSize=13, color=theme.INK)
            .encode(x=x, y=y, text="text:N"),
        ).properties(
            width="container",
            height=round(height * ROW_HEIGHT),
        )
    )


def strip(scenes: Scenes, layout: str, at: int, *, show_reader: bool = True) -> Picture:
    """The whole buffer as one line, three times; triangles stand where the reader believes its rows to start."""
    data: dict[str, list[dict[str, Any]]] = {"cells": [], "names": [], "starts": [], "here": []}
    for scene in scenes:
        for run in runs(scene):
            share = (run.stop - run.start) / scene.cells
            data["cells"].append(
                {
                    "layout": scene.layout,
                    "x": run.start,
                    "x2": run.stop,
                    "kind": KIND_NAME[run.kind],
                    "tip": f"flat {run.start:,} – {run.stop - 1:,}",
                }
            )
            if run.kind in ("id", "old id") and share > 0.015:
                old = "old " if run.kind == "old id" and share > 0.05 else ""
                text = f"{old}{'row ' if share > 0.045 else ''}{run.row}"
                middle = (run.start + run.stop) / 2
                ink = KIND_TEXT[run.kind]
                data["names"].append({"layout": scene.layout, "x": middle, "text": text, "ink": ink})
        if show_reader:
            for row in range(scene.rows):
                found = verdict(scene, row)
                start = row * scene.reader_stride
                tip = f"the reader looks for row {row} at {row} × {scene.reader_stride:,} = {start:,}"
                name, colour = verdict_name(found), VERDICT_COLOUR[found]
                data["starts"].append(
                    {"layout": scene.layout, "x": start, "verdict": name, "colour": colour, "tip": tip}
                )
    data["here"] = [{"layout": layout, "x": at}]
    return Picture(_strip_frame(scenes[0].cells), **data)


@lru_cache(maxsize=16)
def _strip_frame(cells: int) -> Spec:
    x = alt.X(
        "x:Q",
        scale=alt.Scale(domain=[0, cells], nice=False),
        axis=alt.Axis(title="flat index", format=",d", values=[cells * part // 8 for part in range(9)], grid=False),
    )
    y = alt.Y(
        "layout:N",
        sort=list(SCENE_LAYOUTS),
        axis=alt.Axis(title=None, **SIDE),
    )
    tip = alt.Tooltip("tip:N", title="cells")
    shape = alt.Scale(domain=VERDICT_DOMAIN, range=["triangle-down", "diamond", "cross"])
    return frame(
        alt.layer(
            alt.Chart(alt.NamedData("cells"))
            .mark_bar(height=22)
            .encode(x=x, x2="x2:Q", y=y, fill=FILL, tooltip=["layout:N", "kind:N", tip]),
            alt.Chart(alt.NamedData("names"))
            .mark_text(fontSize=11.5)
            .encode(x=x, y=y, text="text:N", color=alt.Color("ink:N", scale=None)),
            alt.Chart(alt.NamedData("starts"))
            .mark_point(filled=True, size=90, opacity=1, yOffset=-17)
            .encode(
                x=x,
                y=y,
                color=alt.Color("colour:N", scale=None),
                shape=alt.Shape("verdict:N", scale=shape, legend=None),
                tooltip=alt.Tooltip("tip:N", title="reader"),
            ),
            alt.Chart(alt.NamedData("here")).mark_tick(color=theme.HERE, thickness=3, height=32).encode(x=x, y=y),
        ).properties(width="container", height=46 * len(SCENE_LAYOUTS))
    )
