"""The sections of page 03, put together. Needs marimo."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import marimo as mo

from c128a.ui import kernel_panels as panels
from c128a.ui import kernel_run, page
from c128a.ui.clickable import clickable, drawn
from c128a.ui.kernel_case import KERNEL_TITLE, Kernel, View
from c128a.ui.kernel_controls import ringed
from c128a.ui.kernel_data import map_frame, trace_frame
from c128a.ui.kernel_style import STYLE
from c128a.ui.kernel_text import command, lanes_sentence, map_sentence
from c128a.ui.kernel_view import (
    GAP,
    LINE,
    LINE_HEIGHT,
    ROW_HEIGHT,
    blocks,
    lane_box,
    lane_picture,
    line_names,
    map_boxes,
    program_map,
    shown_lines,
)


def style() -> mo.Html:
    """The style of the parts that are HTML."""
    return mo.Html(STYLE)


def map_element(kernel: Kernel, on_pick: Callable[[dict[str, Any]], None]) -> mo.ui.altair_chart:
    """The element that shows the map of one kernel; a click gives kernel, program and trip."""
    return clickable(lambda mark: on_pick({"kernel": kernel, **mark}))


def maps(view: View, elements: dict[Kernel, mo.ui.altair_chart]) -> mo.Html | None:
    """Both maps side by side, each with its sentence."""
    if not view.runs:
        return None
    case = view.case
    names: list[tuple[str, float]] = [(f"decode {row}", ROW_HEIGHT) for row in range(case.decode)]
    names += [("", ROW_HEIGHT * GAP)] * bool(case.decode and case.prefill)
    names += [(f"prefill {row}", ROW_HEIGHT) for row in range(case.prefill)]
    ticks = [f"{case.width * part // 4:,}" for part in range(4)]
    parts = []
    for kernel, element in elements.items():
        chart = drawn(element, program_map(case, kernel)).text
        picture = panels.framed(chart, names, map_boxes(view, kernel), ticks)
        sentence = page.sentence(map_sentence(case, kernel, blocks(case, kernel)[1]))
        title = mo.md(f"### {KERNEL_TITLE[kernel].capitalize()}, {case.width:,} columns")
        # Not mo.hstack: a chart in it can keep its column wider than its share.
        parts.append(f'<div style="min-width:0">{mo.vstack([title, mo.Html(picture), sentence]).text}</div>')
    said = (
        "The same cells, written in another order: darker programs start first. The white line in a row is n: right "
        "of it lies padding. Click a block to look at it; the dashed line is the same piece in the other kernel."
    )
    pair = f'<div style="display:grid;grid-template-columns:repeat(2,minmax(0,1fr));gap:2rem">{"".join(parts)}</div>'
    return mo.vstack([mo.md("## Which program writes which cell"), mo.Html(pair), page.sentence(said)])


def lanes(view: View, element: mo.ui.altair_chart) -> mo.Html | None:
    """The lanes of one trip with their counts."""
    if not view.runs:
        return None
    names: list[tuple[str, float]] = [(name, LINE_HEIGHT) for name in line_names(view)]
    ticks = [str(lane) for lane in range(0, LINE, LINE // 8)]
    count = min(shown_lines(view) * LINE, len(view.store.lanes))
    return mo.vstack(
        [
            mo.Html(panels.counts(view)),
            mo.Html(panels.framed(drawn(element, lane_picture(view)).text, names, lane_box(view), ticks)),
            page.sentence(lanes_sentence(view.store, count)),
        ]
    )


def close_up(view: View, label: mo.ui.radio) -> mo.Html | None:
    """The lanes around the chosen one, large enough for a label."""
    return mo.vstack([ringed(label), mo.Html(panels.close_up(view, label.value))]) if view.runs else None


def walk(view: View) -> mo.Html | None:
    """The way of the chosen cell beside the source, the statement marked in both."""
    return mo.Html(panels.walk(view)) if view.runs else None


def output(view: View, button: mo.ui.run_button) -> mo.Html | None:
    """The true output of the kernel beside the reference, where this process can run it."""
    if not view.runs:
        return None
    missing = kernel_run.unavailable()
    programs, trips = view.case.grid(view.kernel)
    found = None
    note: Any = None
    if missing:
        note = mo.callout(mo.md(f"{missing}: below is the trace, which a test holds to the kernel."), kind="info")
    elif kernel_run.interpreted() and programs * trips > kernel_run.MAX_ON_REQUEST:
        note = mo.callout(mo.md(f"{programs * trips:,} programs are too many for the interpreter."), kind="info")
    elif kernel_run.interpreted() and programs * trips > kernel_run.MAX_INTERPRETED and not button.value:
        note = mo.hstack(
            [mo.md(f"{programs * trips:,} interpreted programs are not run unasked."), button], justify="start"
        )
    else:
        found = kernel_run.true_output(view.case, view.kernel)
        cells = f"**All {found.cells:,} cells equal the reference**, lens included"
        if found.differing:
            cells = f"**{found.differing:,} of {found.cells:,} cells differ from the reference**"
        note = mo.md(f"{cells}. Ran: {KERNEL_TITLE[view.kernel]}, {found.where}.")
    return mo.vstack([mo.md("## What the kernel really wrote"), note, mo.Html(panels.output_table(found, view))])


def take_along(view: View, settings: dict[str, Any]) -> mo.Html | None:
    """Downloads and the command that prints the stores on view."""
    if not view.runs:
        return None
    return mo.vstack(
        [
            mo.md("## Take it along"),
            page.downloads(lambda: trace_frame(view.case, view.stores), "c128a-trace", settings, "this trip"),
            page.downloads(lambda: map_frame(view.case), "c128a-programs", settings, "all programs"),
            page.command(command(view), "The stores of this trip, in a shell:"),
        ]
    )
