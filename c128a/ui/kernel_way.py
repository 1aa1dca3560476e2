"""The way of one cell from its position to its value, statement by statement, with its numbers. Torch-free.

>>> view = View(KernelCase(), "row_loop", program=1, trip=0, lane=5)
>>> [step.text for step in way(view, 5)]  # doctest: +NORMALIZE_WHITESPACE
['(21,844 + 1) // 128 = 170', 'trip 0 × 1,024 + lane 5 = 5', '5 // 2 = 2',
 '5 < 170, request 1 of 3, entry 2 of 128: yes', 'table[1][2] = 494', '494 × 2 + 5 % 2 = 989',
 'row 1 × stride 256 + column 5 = 261 → byte 1,044', 'slot 5 ≥ 0: 170']
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from c128a.ui.kernel_case import STEP, Kernel, KernelCase, View
from c128a.ui.kernel_source import Statement, statements
from c128a.ui.old_trace import Kind, Path, path

NOTHING = "–"  # where the kernel has no value


class Step(NamedTuple):
    """One statement for one lane: its key in `kernel_source`, its title, the arithmetic, the bare result."""

    key: str
    title: str
    text: str
    value: str


def steps_of(view: View) -> list[Statement]:
    """The statements of the trip on view; only the last trip of a decode row, or the first tile, stores a lens."""
    return statements(view.kernel, view.store.kind, lens=len(view.stores) > 1)


def step_at(view: View, index: int) -> View:
    """The view with its statement set to the index-th of the trip's.

    >>> step_at(View(KernelCase(), "row_loop", 0, 0, 0), 0).statement
    'n'
    """
    return replace(view, statement=steps_of(view)[index].key) if view.runs else view


def way(view: View, at: int) -> list[Step]:
    """What each statement of the trip on view works out for its lane `at`."""
    case, kernel, trip, store = view.case, view.kernel, view.trip, view.store
    lane = store.lanes[at]
    launch = case.launch
    held = lane.row < case.rows(store.kind).rows
    token = lane.row + (case.decode if store.kind == "prefill" else 0)
    position = launch.positions[token] if held else -1
    n = min(max(position + 1, 0) // case.ratio, case.width)
    walked = path(launch, store.kind, lane.row, lane.column) if lane.state != "masked" else None

    found = []
    for statement in steps_of(view):
        text, value = NOTHING, NOTHING
        if statement.key == "n":
            text, value = _n(position, n, case, held), f"{n:,}"
        elif statement.key == "column":
            text, value = _column(kernel, case, trip, lane.column), f"{lane.column:,}"
        elif statement.key == "entry":
            entry = lane.column // launch.block_size
            text, value = f"{lane.column:,} // {launch.block_size} = {entry:,}", f"{entry:,}"
        elif statement.key == "store" and lane.state == "masked":
            text, value = _masked(case, store.kind, lane.row, lane.column), "masked"
        elif statement.key == "store":
            text, value = case.rows(store.kind).address(lane.row, lane.column), f"{lane.value:,}"
            if kernel == "tiled" and store.kind == "prefill":
                text = f"{_below(lane.column, n)}: {lane.value:,}, at {text}"
        elif statement.key in ("cut", "index"):
            value = f"{lane.value:,}" if walked else "-1"
            text = f"{_below(lane.column, n)}: {value}"
        elif statement.key == "lens":
            text, value = _lens(case, lane.row, n, held)
        elif walked is None or walked.reason == "past n":
            text = f"{_below(lane.column, n)}: " + ("no" if statement.key == "live" else "-1")
            value = "no" if statement.key == "live" else NOTHING if statement.key == "block" else "-1"
        else:
            text, value = _table(case, statement.key, walked)
        found.append(Step(statement.key, statement.title, text, value))
    return found


def _n(position: int, n: int, case: KernelCase, held: bool) -> str:
    if not held:
        return "no such row: n = 0"
    if position < 0:
        return f"position {position} sees nothing: 0"
    seen = (position + 1) // case.ratio
    cut = f", at most the width: {n:,}" if seen > n else ""
    return f"({position:,} + 1) // {case.ratio} = {seen:,}{cut}"


def _column(kernel: Kernel, case: KernelCase, trip: int, column: int) -> str:
    if kernel == "row_loop":
        return f"trip {trip} × {STEP:,} + lane {column - trip * STEP:,} = {column:,}"
    cols = case.tile.cols
    return f"tile {trip} × {cols:,} + {column - trip * cols:,} = {column:,}"


def _below(column: int, n: int) -> str:
    return f"{column:,} < {n:,}" if column < n else f"{column:,} ≥ n = {n:,}"


def _masked(case: KernelCase, kind: Kind, row: int, column: int) -> str:
    rows = case.rows(kind).rows
    if row >= rows:
        return f"masked: there are {rows} {kind} rows, this would be row {row}"
    return f"masked: column {column:,} ≥ width {case.width:,}"


def _lens(case: KernelCase, row: int, n: int, held: bool) -> tuple[str, str]:
    if not held:
        return f"masked: there are {case.decode} decode rows", "masked"
    slot = case.launch.slots[row]
    return (f"slot {slot} < 0, a padded token: 0", "0") if slot < 0 else (f"slot {slot} ≥ 0: {n:,}", f"{n:,}")


def _table(case: KernelCase, key: str, walked: Path) -> tuple[str, str]:
    """The statements between the column and the slot id, for a column before n."""
    size, rows = case.launch.block_size, len(case.launch.table)
    columns = len(case.launch.table[0])
    known = walked.reason != "request outside the table"
    reads = known and walked.reason != "table too short"
    if key == "live":
        if not known:
            return f"request {walked.request} is outside the table of {rows} rows: no", "no"
        if not reads:
            return f"entry {walked.entry:,} is outside the table of {columns:,} columns: no", "no"
        text = f"{walked.column:,} < {walked.n:,}, request {walked.request} of {rows}, "
        return f"{text}entry {walked.entry:,} of {columns:,}: yes", "yes"
    if key == "block":
        if not reads:
            return "not read: -1", NOTHING
        return f"table[{walked.request}][{walked.entry:,}] = {walked.block:,}", f"{walked.block:,}"
    if walked.reason != "live":
        return "no block: -1", "-1"
    text = f"{walked.block:,} × {size} + {walked.column:,} % {size} = {walked.value:,}"
    return text, f"{walked.value:,}"
