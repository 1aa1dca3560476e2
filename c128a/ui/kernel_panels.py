"""The parts of page 03 that are text in boxes: counts, the chosen lane and its way, the source, the output.

All are HTML as a string, so that a key press costs no chart.
"""

from __future__ import annotations

import io
import keyword
import tokenize
from collections.abc import Sequence
from functools import lru_cache
from html import escape

from c128a.ui.kernel_case import KERNEL_TITLE, Kernel, View
from c128a.ui.kernel_run import Output
from c128a.ui.kernel_source import body, branch, find
from c128a.ui.kernel_style import CLOSE_UP
from c128a.ui.kernel_view import COLOUR, Box
from c128a.ui.kernel_way import way
from c128a.ui.old_trace import Lane, State

LABELS = {
    "statement": "this statement",
    "value": "value stored",
    "index": "flat index",
    "cell": "(row, column)",
    "byte": "byte",
}


def counts(view: View) -> str:
    """How many lanes are live, pad and masked, each with its shape in the picture, and the lens that is stored."""
    heights: dict[State, str] = {"live": ".8rem", "pad": ".4rem", "masked": "2px"}
    words = {"live": "live: an id", "pad": "pad: -1", "masked": "masked: nothing stored"}
    spans = [
        f'<span><i style="background:{COLOUR[state]};height:{heights[state]}"></i>'
        f"<b>{view.store.count(state):,}</b> {words[state]}</span>"
        for state in heights
    ]
    stored = [f"row {lane.row}: <b>{lane.value:,}</b>" for lane in lens_lanes(view) if lane.value is not None]
    lens = f"<span>lens of {', '.join(stored)}</span>" if stored else ""
    return f'<div class="c128a-box c128a-counts">{"".join(spans)}{lens}</div>'


def framed(chart: str, names: Sequence[tuple[str, float]], boxes: Sequence[Box], ticks: Sequence[str]) -> str:
    """A picture between the names of its lines and of its columns, with boxes laid over it.

    names: text and height in pixels of each line; ticks: the columns at equal steps from the left edge.
    """
    labels = "".join(
        f'<div style="height:{height}px;line-height:{height}px">{escape(name)}</div>' for name, height in names
    )
    marks = "".join(f"<span>{tick}</span>" for tick in ticks)
    over = "".join(
        f'<div class="{"solid" if box.solid else "dashed"}" style="left:{box.left:.3%};width:{box.width:.3%};'
        f'top:{box.top:.0f}px;height:{box.height:.0f}px"></div>'
        for box in boxes
    )
    height = sum(height for _, height in names)
    return (
        f'<div class="c128a-box c128a-framed"><div class="names">{labels}</div>'
        f'<div class="picture" style="min-height:{height:.0f}px">{chart}{over}</div>'
        f'<div></div><div class="ticks" style="grid-template-columns:repeat({len(ticks)},1fr)">{marks}</div></div>'
    )


def lens_lanes(view: View) -> list[Lane]:
    """The lanes of the lens store of the trip on view, none where it makes none."""
    return [lane for store in view.stores if store.kind == "lens" for lane in store.lanes]


def close_up(view: View, label: str) -> str:
    """The CLOSE_UP lanes around the chosen one; label is a key of LABELS."""
    first = view.lane // CLOSE_UP * CLOSE_UP
    lanes = range(first, min(first + CLOSE_UP, len(view.store.lanes)))
    head = "".join(f'<div class="head">{lane:,}</div>' for lane in lanes)
    cells = []
    for lane in lanes:
        text = _label(view, lane, label)
        chosen = ' chosen" aria-current="true' if lane == view.lane else ""
        cells.append(f'<div class="{view.store.lanes[lane].state}{chosen}" title="lane {lane:,}">{escape(text)}</div>')
    return f'<div class="c128a-box"><div class="c128a-lanes">{head}{"".join(cells)}</div></div>'


def _label(view: View, at: int, label: str) -> str:
    lane = view.store.lanes[at]
    if label == "statement":
        return next(step.value for step in way(view, at) if step.key == view.statement)
    if label == "cell":
        return f"{lane.row}, {lane.column:,}"
    if lane.state == "masked":
        return ""
    if label == "value":
        return f"{lane.value:,}"
    offset = view.case.rows(view.store.kind).offset(lane.row, lane.column)
    return f"{offset:,}" if label == "index" else f"{offset * 4:,}"


def way_table(view: View) -> str:
    """The statements of the trip, each with its arithmetic for the chosen lane; the one on view is marked."""
    rows = []
    for step in way(view, view.lane):
        marked = ' class="marked" aria-current="step"' if step.key == view.statement else ""
        rows.append(f"<tr{marked}><th scope='row'>{escape(step.title)}</th><td>{escape(step.text)}</td></tr>")
    return f'<div class="c128a-box"><table class="c128a-way">{"".join(rows)}</table></div>'


def walk(view: View) -> str:
    """The way of the chosen lane and the source, side by side."""
    lane = view.store.lanes[view.lane]
    left = f"<h3>Lane {view.lane:,}: {view.store.kind} row {lane.row}, column {lane.column:,}</h3>{way_table(view)}"
    right = f"<h3>{KERNEL_TITLE[view.kernel].capitalize()}, in c128a/kernel.py</h3>{listing(view)}"
    return f'<div class="c128a-walk"><div>{left}</div><div>{right}</div></div>'


def listing(view: View) -> str:
    """The kernel's source with the statement marked; the branch that this program does not take recedes.

    Where the statement is not found exactly once no line is marked, and a line above the source says so.
    """
    try:
        first, last = find(view.kernel, view.store.kind, view.statement)
        unmarked = ""
    except LookupError as changed:
        first, last = 0, 0
        unmarked = f"<p role='alert'>No line is marked: {escape(str(changed))}.</p>"
    other = branch(view.kernel, "prefill" if view.store.kind == "decode" else "decode")
    start, lines = _coloured(view.kernel)
    rows = []
    for number, line in enumerate(lines, start):
        kind = ' class="other"' if number in other else ""
        if first <= number <= last:
            kind = ' class="marked" aria-current="step"'
        rows.append(f'<div{kind}><span class="line">{number}</span>{line}</div>')
    region = 'class="c128a-source" role="region" tabindex="0" aria-label="source of the kernel"'
    return f'<div class="c128a-box">{unmarked}<div {region}>{"".join(rows)}</div></div>'


@lru_cache(maxsize=2)
def _coloured(kernel: Kernel) -> tuple[int, list[str]]:
    """The kernel's lines as HTML, without their common indentation."""
    first, lines = body(kernel)
    lines = [line[4:] for line in lines]
    spans: list[list[tuple[int, int, str]]] = [[] for _ in lines]
    for token in tokenize.generate_tokens(io.StringIO("\n".join(lines) + "\n").readline):
        name = {tokenize.COMMENT: "c", tokenize.NUMBER: "n"}.get(token.type)
        if token.type == tokenize.NAME and keyword.iskeyword(token.string):
            name = "w"
        if name:
            spans[token.start[0] - 1].append((token.start[1], token.end[1], name))
    coloured = []
    for line, marks in zip(lines, spans, strict=True):
        at, parts = 0, []
        for start, end, name in marks:
            parts.append(f'{escape(line[at:start])}<span class="{name}">{escape(line[start:end])}</span>')
            at = end
        text = "".join(parts) + escape(line[at:])
        # A line that wraps continues four columns to the right of where it begins.
        indent = len(line) - len(line.lstrip())
        coloured.append(f'<code style="--in:{indent}">{text.lstrip()}</code>')
    return first, coloured


def output_table(output: Output | None, view: View) -> str:
    """Kernel, reference and trace for the cells around the chosen one; without an output the trace alone."""
    store, chosen = view.store, view.store.lanes[view.lane]
    first = view.lane // CLOSE_UP * CLOSE_UP
    lanes = [lane for lane in store.lanes[first : first + CLOSE_UP] if lane.state != "masked"]
    if not lanes:
        return ""
    row = lanes[0].row
    lines: list[tuple[str, list[int | None]]] = []
    if output is not None:
        lines.append(("kernel", [output.kernel[store.kind][row][lane.column] for lane in lanes]))
        lines.append(("reference", [output.reference[store.kind][row][lane.column] for lane in lanes]))
    lines.append(("trace", [lane.value for lane in lanes]))
    head = "".join(f"<td>{lane.column:,}</td>" for lane in lanes)
    rows = [f"<tr><th scope='row'>{store.kind} row {row}, column</th>{head}</tr>"]
    for name, values in lines:
        cells = ""
        for lane, value, want in zip(lanes, values, lines[-1][1], strict=True):
            kinds = " ".join(["chosen"] * (lane == chosen) + ["wrong"] * (value != want))
            cells += f'<td class="{kinds}">{value:,}</td>'
        rows.append(f"<tr><th scope='row'>{name}</th>{cells}</tr>")
    return f'<div class="c128a-box"><table class="c128a-out">{"".join(rows)}</table></div>'
