"""The kernels' source, highlighted, and the lines of each statement that a program runs through. Torch-free.

A statement is looked up by the text that it begins with, in the part of the kernel that it belongs to, so that a kernel
that is changed moves the marker along or is refused, and never leaves it on another line. The file is read as text:
neither torch nor triton is imported.

>>> [statement.key for statement in STATEMENTS["row_loop", "prefill"]]
['n', 'column', 'index', 'store']
>>> find("row_loop", "decode", "store")[0] < find("row_loop", "decode", "lens")[0]
True
"""

from __future__ import annotations

import ast
from functools import lru_cache
from html import escape
from importlib.resources import files
from typing import Any, NamedTuple

import marimo as mo
import pandas as pd
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from c128a.case import Case
from c128a.trace import Kernel, RowKind, program_shape

_FUNCTION: dict[Kernel, str] = {"row_loop": "_row_loop", "tiled": "tiled"}


class Statement(NamedTuple):
    """One step of a program: its key, its name, and the text its source begins with."""

    key: str
    title: str
    begins: str


_N = Statement("n", "n, the entries this row sees", "n = tl.minimum(")
_COLUMN = Statement("column", "the column of each lane", "column = ")
_INDEX = Statement("index", "local indices, pads past n", "index = tl.where(")
_CUT = Statement("cut", "pads past n", "slot_id = tl.where(column < n")
_LENS = Statement("lens", "the lens", "tl.store(lens_ptr")
_STORE = Statement("store", "the store", "tl.store(out")
_TABLE = (
    Statement("entry", "the table entry of each column", "entry = "),
    Statement("live", "which lanes may read the table", "live = "),
    Statement("block", "block numbers, read from the table", "block = tl.load("),
    Statement("slot", "slot ids", "slot_id = tl.where(block >= 0"),
)
# The statements of a kernel for one kind of row, in the order they run.
STATEMENTS: dict[tuple[Kernel, RowKind], tuple[Statement, ...]] = {
    ("row_loop", "decode"): (_N, _COLUMN, *_TABLE, _STORE._replace(begins="tl.store(decode_ptr"), _LENS),
    ("row_loop", "prefill"): (_N, _COLUMN, _INDEX, _STORE._replace(begins="tl.store(prefill_ptr")),
    ("tiled", "decode"): (_COLUMN, _N, _LENS, *_TABLE, _CUT, _STORE),
    ("tiled", "prefill"): (_COLUMN, _N, _STORE._replace(title="ids, pads and their store")),
}


@lru_cache(maxsize=1)
def source() -> str:
    """The text of c128a/kernel.py."""
    return files("c128a").joinpath("kernel.py").read_text(encoding="utf-8")


@lru_cache(maxsize=4)
def _parts(kernel: Kernel, text: str) -> dict[str, list[ast.stmt]]:
    """The body of a kernel in a source: the statements before its branch, those of decode rows, of prefill rows."""
    functions = {node.name: node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
    body = functions[_FUNCTION[kernel]].body[1:] if _FUNCTION[kernel] in functions else []  # after the docstring
    for at, node in enumerate(body):
        if isinstance(node, ast.If) and node.orelse:
            return {"head": body[:at], "decode": node.body, "prefill": node.orelse}
    raise LookupError(f"c128a/kernel.py has no {_FUNCTION[kernel]} with a branch between decode and prefill rows")


def find(kernel: Kernel, kind: RowKind, key: str) -> tuple[int, int]:
    """The first and the last line of a statement in c128a/kernel.py.

    Raises LookupError unless exactly one statement of its part of the kernel begins with its text.
    """
    (statement,) = (statement for statement in STATEMENTS[kernel, kind] if statement.key == key)
    lines, parts = source().splitlines(), _parts(kernel, source())
    places = [
        (node.lineno, node.end_lineno or node.lineno)
        for top in parts["head"] + parts[kind]
        for node in ast.walk(top)
        if isinstance(node, ast.stmt) and lines[node.lineno - 1].lstrip().startswith(statement.begins)
    ]
    if len(places) != 1:
        raise LookupError(f"{len(places)} statements of {_FUNCTION[kernel]} begin with {statement.begins!r}, not one")
    return places[0]


def listing(kernel: Kernel, kind: RowKind, key: str) -> mo.Html:
    """The kernel's lines for one kind of row, the statement marked and the branch of the other kind faint.

    Where the statement is not found exactly once no line is marked, and an alert above the source says so.
    """
    try:
        first, last = find(kernel, kind, key)
        trouble = ""
    except LookupError as changed:
        first, last = 0, -1
        trouble = f'<p role="alert">No line is marked: {escape(str(changed))}.</p>'
    start, lines, branches = _highlighted(kernel)
    other = branches["prefill" if kind == "decode" else "decode"]
    rows = []
    for number, line in enumerate(lines, start):
        kinds = "marked" if first <= number <= last else "other" if number in other else ""
        current = ' aria-current="step"' if kinds == "marked" else ""
        rows.append(f'<span class="{kinds}"{current}><i>{number}</i>{line}\n</span>')
    region = 'role="region" tabindex="0" aria-label="source of the kernel"'
    return mo.Html(f'{trouble}<div class="codehilite c128a-source" {region}><pre>{"".join(rows)}</pre></div>')


@lru_cache(maxsize=2)
def _highlighted(kernel: Kernel) -> tuple[int, list[str], dict[str, range]]:
    """The number of the first line, the lines as HTML without their common indentation, the lines of each branch."""
    parts = _parts(kernel, source())
    spans = {name: range(nodes[0].lineno, (nodes[-1].end_lineno or 0) + 1) for name, nodes in parts.items()}
    first, last = spans["head"].start, spans["prefill"].stop - 1
    text = "\n".join(line[4:] for line in source().splitlines()[first - 1 : last])
    return first, highlight(text, PythonLexer(), HtmlFormatter(nowrap=True)).splitlines(), spans


def worked_out(case: Case, kernel: Kernel, lane: Any) -> dict[str, tuple[str, str]]:
    """What the statements work out for one lane, by their keys: the arithmetic, and the bare result.

    lane: a line of `c128a.trace.trace` for a decode or a prefill row, as `DataFrame.itertuples` gives it.

    >>> from c128a.trace import trace
    >>> case = Case.of_tokens([1000], [0], [[40, 10, 30, 20]], [5], 1, width=128, layout="packed")
    >>> lane = next(trace(case, "row_loop").iloc[3:].itertuples())
    >>> worked_out(case, "row_loop", lane)["slot"], worked_out(case, "row_loop", lane)["n"]
    (('10 × 2 + 3 % 2 = 21', '21'), ('(1,000 + 1) // 128 = 7', '7'))
    """
    size, columns, column = case.block_size, program_shape(case, kernel)[1], lane.column
    entry, (table_rows, table_columns) = column // size, case.block_table.shape
    layout = case.decode_rows if lane.kind == "decode" else case.prefill_rows
    exists, masked = lane.row < layout.rows, lane.state == "masked"
    n = lane.n if exists else 0
    stored = "-1" if masked else f"{lane.value:,}"
    compared = f"{column:,} < {n:,}" if column < n else f"{column:,} ≥ n = {n:,}"
    cut = (f"{compared}: {stored}", stored)

    if not exists:
        seen, lens = "no such row: n = 0", ("masked: no such row", "masked")
        store = f"masked: there are {layout.rows} {lane.kind} rows, this would be row {lane.row}"
    else:
        entries = max(lane.position + 1, 0) // case.compress_ratio
        seen = f"({lane.position:,} + 1) // {case.compress_ratio} = {entries:,}"
        seen += f", at most the width: {n:,}" if entries > n else ""
        seen = seen if lane.position >= 0 else f"position {lane.position} sees nothing: 0"
        slot = case.slot_mapping[lane.token] if lane.kind == "decode" else -1
        lens = (f"slot {slot} ≥ 0: {n:,}", f"{n:,}") if slot >= 0 else (f"slot {slot} < 0, a padded token: 0", "0")
        store = f"masked: column {column:,} ≥ width {case.width:,}" if masked else layout.address(lane.row, column)
    if kernel == "tiled" and lane.kind == "prefill" and not masked:
        store = f"{cut[0]}, at {store}"

    if lane.reason == "request outside the table":
        live = (f"request {lane.request} is outside the table of {table_rows} rows: no", "no")
    elif lane.reason == "table too short":
        live = (f"entry {entry:,} is outside the table of {table_columns:,} columns: no", "no")
    elif column >= n:
        live = (f"{compared}: no", "no")
    else:
        inside = f"request {lane.request} of {table_rows}, entry {entry:,} of {table_columns:,}"
        live = (f"{compared}, {inside}: yes", "yes")
    block, slot_id = ("not read: -1", "–"), ("no block: -1", "-1")
    if not pd.isna(lane.block):
        block = (f"table[{lane.request}][{entry:,}] = {lane.block:,}", f"{lane.block:,}")
        if lane.block >= 0:
            slot_id = (f"{lane.block:,} × {size} + {column:,} % {size} = {stored}", stored)

    piece = f"{'trip' if kernel == 'row_loop' else 'tile'} {lane.trip} × {columns:,} + {column - lane.trip * columns:,}"
    return {
        "n": (seen, f"{n:,}"),
        "column": (f"{piece} = {column:,}", f"{column:,}"),
        "entry": (f"{column:,} // {size} = {entry:,}", f"{entry:,}"),
        "live": live,
        "block": block,
        "slot": slot_id,
        "cut": cut,
        "index": cut,
        "store": (store, "masked" if masked else stored),
        "lens": lens,
    }
