"""The controls of page 02, its clicks and its table. Needs marimo; torch-free."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import marimo as mo

from c128a.ui import layout_data, layout_text, page, state
from c128a.ui.cells import SCENE_LAYOUTS, Scene, SceneLayout, cell_at
from c128a.ui.clickable import clickable
from c128a.ui.layout_data import GRIDS
from c128a.ui.layout_setting import READERS, ROWS, Setting
from c128a.ui.layout_text import Scenes
from c128a.width import POLICIES


def controls(start: Mapping[str, Any]) -> mo.ui.batch:
    """The controls of the buffer, its two builds and its reader; the sequence length has two of its own."""
    elements: dict[str, Any] = {
        "model_len": mo.ui.number(1, state.MAX_TOKENS, value=start["model_len"], label="Model length, tokens"),
        "then": mo.ui.number(
            0, state.MAX_TOKENS, value=min(start["then"], start["model_len"]), label="Longest sequence at capture"
        ),
        "rows": mo.ui.dropdown({str(rows): rows for rows in ROWS}, value=str(start["rows"]), label="Rows"),
        "policy": mo.ui.radio(POLICIES, value=start["policy"], label="Policy", inline=True),
        "kind": mo.ui.radio(["decode", "prefill"], value=start["kind"], label="Buffer", inline=True),
        "requests": mo.ui.radio(
            {"others than at capture": "others", "the same": "same"},
            value="the same" if start["requests"] == "same" else "others than at capture",
            label="Requests",
            inline=True,
        ),
        "reader": mo.ui.radio(
            {text: name for name, text in READERS.items()}, value=READERS[start["reader"]], label="Reader", inline=True
        ),
        "grid": mo.ui.radio(list(GRIDS), value=start["grid"], label="Grid", inline=True),
    }
    lines = (("model_len", "then", "rows"), ("policy", "kind", "requests"), ("reader", "grid"))
    style = "display:flex;flex-wrap:wrap;align-items:center;gap:.4rem 1.75rem"
    text = "".join(f'<div style="{style}">{"".join("{" + name + "}" for name in line)}</div>' for line in lines)
    return mo.Html(f'<div style="display:grid;gap:.9rem">{text}</div>').batch(**elements)


def cell_controls(picked: tuple[SceneLayout, int], count: int, on_change: Callable[[Any], None]) -> list[Any]:
    """The chosen cell by keyboard: a control for the layout and one for a flat index below count."""
    layout, at = picked
    chosen: dict[str, Any] = {"layout": layout, "at": min(at, count - 1)}

    def change(name: str, value: Any) -> None:
        if value is not None:
            chosen[name] = value
            on_change((chosen["layout"], chosen["at"]))

    return [
        mo.ui.radio(
            SCENE_LAYOUTS, value=layout, label="Cell of", inline=True, on_change=lambda value: change("layout", value)
        ),
        mo.ui.number(
            0, count - 1, value=chosen["at"], label="at flat index", on_change=lambda value: change("at", value)
        ),
    ]


def marks_sentence(setting: Setting) -> str:
    """What one mark of the rows stands for, and what the dashed rules are."""
    columns = layout_data.columns_a_mark(setting.capacity)
    return layout_text.mark_sentence(columns) + layout_text.grid_note(setting.capacity, setting.grid)


def reader_table(scenes: Scenes) -> mo.Html:
    """What the reader finds for each of its rows, in each layout."""
    columns = ["the reader's", *(f"in {layout} rows" for layout in SCENE_LAYOUTS)]
    return page.table(columns, layout_text.found_table(scenes), label="What the reader finds")


def place(*receivers: Callable[[Any], None]) -> mo.ui.altair_chart:
    """A place for a picture of cells; a click hands its cell, (layout, flat index), to the receivers."""

    def on_pick(mark: Mapping[str, Any]) -> None:
        for receive in receivers:
            receive((mark["layout"], int(mark["start"])))

    return clickable(on_pick)


def command(scene: Scene, at: int) -> str:
    """A shell line that prints the address of the chosen cell."""
    cell = cell_at(scene, at)
    if cell.row is None:
        return f"python -c \"print('no build wrote flat index {at}')\""
    layout = scene.before if cell.kind.startswith("old") else scene.now
    made = f"RowLayout({layout.rows}, {layout.width}, {layout.row_stride})"
    return f'python -c "from c128a.layout import RowLayout; print({made}.address({cell.row}, {cell.col}))"'
