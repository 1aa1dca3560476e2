"""The sentences of page 03, computed from what it shows. Torch-free; every text is Markdown."""

from __future__ import annotations

from dataclasses import fields

from c128a.ui.kernel_case import STEP, Kernel, KernelCase, View
from c128a.ui.old_trace import Store


def lead(view: View) -> str:
    """The opening sentence: what the trip on view does.

    >>> lead(View(KernelCase(), "row_loop", program=1, trip=0, lane=0)).split("**")[1]
    '1,024 lanes write columns 0 to 255 of decode row 1'
    """
    if not view.runs:
        if view.case.fits:
            return "**No program runs**: there is no row to write."
        return (
            f"**No program runs**: this batch needs {view.case.needed:,} columns, and the buffer has "
            f"{view.case.capacity:,}."
        )
    store = view.store
    written = [lane for lane in store.lanes if lane.state != "masked"]
    rows, columns = {lane.row for lane in written}, [lane.column for lane in written]
    which = f"row {min(rows)}" if len(rows) == 1 else f"rows {min(rows)} to {max(rows)}"
    if view.kernel == "row_loop":
        who = f"Row loop, program {view.program}, trip {view.trip}"
    else:
        who = f"Tiles, program ({view.program}, {view.trip})"
    ids, pads, idle = (store.count(state) for state in ("live", "pad", "masked"))
    return (
        f"{who}: **{len(store.lanes):,} lanes write columns {min(columns):,} to {max(columns):,} of {store.kind} "
        f"{which}**: {_many(ids, 'id')}, {_many(pads, 'pad')}, {_many(idle, 'lane')} idle."
    )


def map_sentence(case: KernelCase, kernel: Kernel, joined: int) -> str:
    """What one of the two maps shows.

    >>> map_sentence(KernelCase(), "tiled", 1)
    '**4 programs of 2 × 256 cells** write 1,536 cells with 2,048 lanes: 75 % of the lanes store something.'
    """
    programs, trips = case.grid(kernel)
    cells = (case.decode + case.prefill) * case.width
    lanes = programs * trips * (STEP if kernel == "row_loop" else case.tile.rows * case.tile.cols)
    if kernel == "row_loop":
        what = f"**{_many(programs, 'program')} of {_many(trips, 'trip')}**"
    else:
        what = f"**{_many(programs * trips, 'program')} of {case.tile.rows} × {case.tile.cols:,} cells**"
    share = f"{cells / lanes:.0%}".replace("%", " %")
    merged = f" One block stands for {joined} neighbours." if joined > 1 else ""
    return f"{what} write {cells:,} cells with {lanes:,} lanes: {share} of the lanes store something.{merged}"


def lanes_sentence(store: Store, shown: int) -> str:
    """What the picture of a trip shows, and whether it leaves lanes out."""
    ids, pads, idle = (store.count(state) for state in ("live", "pad", "masked"))
    if idle == len(store.lanes):
        said = "No lane stores anything."
    elif not ids:
        said = f"No row has an id here: {_many(pads, 'cell')} must still be written, as -1."
    elif not pads and not idle:
        said = "Every lane stores an id."
    else:
        said = f"Of {len(store.lanes):,} lanes {ids / len(store.lanes):.0%} carry an id".replace("%", " %")
        said += f"; {_many(idle, 'lane')} store nothing." if idle else "; the rest store -1."
    left_out = f" Drawn: {shown:,} of {len(store.lanes):,} lanes." if shown < len(store.lanes) else ""
    return said + left_out


def too_narrow(case: KernelCase) -> str:
    """Why nothing is launched where the capacity cannot hold the sequence."""
    return (
        f"{case.seq:,} tokens need {case.needed:,} columns, and a model length of {case.model_len:,} tokens gives "
        f"{case.capacity:,}. A builder refuses this batch, and no program runs: raise the model length, or shorten "
        "the sequence."
    )


def command(view: View) -> str:
    """A shell command that prints the stores on view.

    >>> print(command(View(KernelCase(seq=512), "tiled", 0, 0, 0)))
    python -c "from c128a.ui.kernel_case import *; print(*KernelCase(seq=512).stores('tiled', 0, 0), sep=chr(10))"
    """
    default = KernelCase()
    changed = [
        f"{f.name}={value!r}"
        for f in fields(KernelCase)
        if (value := getattr(view.case, f.name)) != getattr(default, f.name)
    ]
    call = f"KernelCase({', '.join(changed)}).stores({view.kernel!r}, {view.program}, {view.trip})"
    return f'python -c "from c128a.ui.kernel_case import *; print(*{call}, sep=chr(10))"'


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s" if count else f"no {noun}s"
