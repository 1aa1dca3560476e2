"""The sentences of page 02, computed from its scenes. Torch-free; every text is Markdown."""

from __future__ import annotations

from collections import Counter

from c128a.layout import ITEMSIZE
from c128a.ui.cells import ENTRIES_PER_BLOCK, Cell, Scene, Verdict, cell_at, reads, verdict
from c128a.ui.layout_data import GRIDS

MARK = {"right": "✓", "luck": "≈", "wrong": "✗"}  # the sign of a verdict, beside its colour
MANY = {"id": "ids", "pad": "pads", "old id": "old ids", "old pad": "old pads", "blank": "cells never written"}

CLOSE_SENTENCE = (
    "The same sixteen flat indices in the three layouts. Under a cell stands the row and column that the reader takes "
    "it for: ✓ its own, ≈ right by chance, ✗ wrong; nothing where it does not look."
)

Scenes = tuple[Scene, Scene, Scene]  # fixed, packed, pitched


def lead(scenes: Scenes, seq: int, seq_before: int) -> str:
    """The opening sentence: where the last row starts, and how a frozen reader fares."""
    _, packed, pitched = scenes
    last = packed.rows - 1
    where = (
        f"At **{seq:,} tokens** rows are {packed.width:,} of {packed.capacity:,} columns wide: row {last} starts at "
        f"{last * packed.now.row_stride:,} when packed and at {last * pitched.now.row_stride:,} when pitched."
    )
    wrong = [sum(verdict(scene, row) == "wrong" for row in range(scene.rows)) for scene in scenes]
    if not packed.frozen:
        return f"{where} A reader that takes the stride of this build finds every row."
    reader = f"A reader captured at {seq_before:,} tokens"
    if wrong == [0, 0, 0]:
        return f"{where} {reader} finds every row."
    return f"{where} {reader} gets **{wrong[1]} of {packed.rows} packed rows wrong**, and no pitched one."


def strip_sentence(scenes: Scenes) -> str:
    """How much of the buffer each layout writes, and where its rows start."""
    fixed, packed, pitched = scenes
    starts = ", ".join(f"{row * packed.now.row_stride:,}" for row in range(packed.rows))
    kept = ", ".join(f"{row * pitched.now.row_stride:,}" for row in range(pitched.rows))
    if packed.width == packed.capacity:
        return f"At full width the three are the same: rows start at {kept}, and every cell is written."
    return (
        f"Of {fixed.cells:,} cells this build writes {packed.rows * packed.width:,} packed or pitched, and all fixed. "
        f"Packed rows start at {starts}; pitched and fixed rows at {kept}. "
        "The signs above a line stand where the reader believes rows to start: ▼ right, ◆ right by chance, ✚ wrong."
    )


def reader_sentence(scenes: Scenes) -> str:
    """How many rows the reader gets right in each layout, and which not."""
    parts = []
    for scene in scenes:
        verdicts = [verdict(scene, row) for row in range(scene.rows)]
        text = f"{scene.layout} (stride {scene.reader_stride:,}): {verdicts.count('right')} of {scene.rows} rows right"
        for name, word in (("luck", "right by chance"), ("wrong", "wrong")):
            rows = [row for row, found in enumerate(verdicts) if found == name]
            if rows:
                text += f", **{len(rows)} {word}** ({_rows(rows)})"
        parts.append(text)
    who = "that keeps the stride of its capture" if scenes[1].frozen else "with the stride of this build"
    return f"A reader {who}: {'; '.join(parts)}."


def mark_sentence(columns: int) -> str:
    """What one mark stands for; pictures that gather cells say so."""
    if columns == 1:
        return "1 mark = 1 column."
    return (
        f"**1 mark = {columns:,} columns**, split where ids, pads and old bytes meet. Click one to see its cells below."
    )


def grid_note(capacity: int, grid: str) -> str:
    """What the dashed rules are, or why the picture of the rows has none."""
    if not GRIDS[grid]:
        return ""
    size = GRIDS[grid] * ITEMSIZE
    if capacity / GRIDS[grid] > 64:
        return f" The {grid} of {size:,} bytes lie too close for this picture; the close-up shows them."
    return f" A dashed rule stands at every {size:,} bytes."


def found_table(scenes: Scenes) -> list[list[str]]:
    """For each row, what the reader finds in each layout: one line a row, fixed, packed, pitched."""
    return [[f"row {row}", *(_found(scene, row) for scene in scenes)] for row in range(scenes[0].rows)]


def _found(scene: Scene, row: int) -> str:
    counts: Counter[str] = Counter()
    for read in reads(scene):
        if read.row == row:
            # The run names the row that wrote it; a pad has one too, but nobody asks for it.
            owner = f" of row {read.found.row}" if read.found.kind in ("id", "old id") else ""
            own = read.verdict == "right"
            counts["its own ids" if own else MANY[read.found.kind] + owner] += read.stop - read.start
    if not counts:
        return f"{MARK['right']} nothing to read"
    listed = ", ".join(f"{count:,} {what}" for what, count in counts.items())
    return f"{MARK[verdict(scene, row)]} {listed}"


def cell_lines(scene: Scene, at: int, value: int | None = None) -> list[str]:
    """What a cell is, who wrote it, its arithmetic and its reader, a line each. value: the kernel's, where it ran."""
    cell = cell_at(scene, at)
    held = cell.value if value is None else value
    lines = [f"**{scene.layout}, flat index {at:,}** · {address(scene, at)}"]
    if cell.kind == "blank":
        lines.append("Neither build wrote here: the cell holds whatever the allocation left.")
    elif cell.kind in ("pad", "old pad"):
        lines.append(f"Holds −1: column {cell.col:,} lies past the {_lens(scene, cell):,} entries of row {cell.row}.")
    else:
        lines.append(f"Holds **{held:,}**: {origin(scene, cell)}.")
    if cell.kind in ("old id", "old pad"):
        lines.append("The **earlier** build wrote it, and this one did not reach it: the bytes are stale.")
    elif cell.kind != "blank":
        lines.append("This build wrote it.")
    readers = [read for read in reads(scene) if read.start <= at < read.stop]
    for read in readers:
        col = read.col + at - read.start
        words = {"right": "and is right", "luck": "and is right by chance", "wrong": "and is wrong"}[read.verdict]
        lines.append(
            f"{MARK[read.verdict]} The reader takes it for row {read.row}, column {col:,} "
            f"(`{read.row} × {scene.reader_stride:,} + {col:,} = {at:,}`), {words}."
        )
    if not readers:
        lines.append("The reader does not look here.")
    return lines


def address(scene: Scene, at: int) -> str:
    """The address of a flat offset as the build that wrote it reckoned, or as a plain offset.

    >>> from c128a.ui.cells import make_scene
    >>> address(make_scene(4, 512, 32_768, 65_536, layout="packed"), 775)
    '`row 3 × stride 256 + column 7 = 775 → byte 3,100`'
    """
    cell = cell_at(scene, at)
    if cell.row is None or cell.col is None:
        return f"`{at:,} → byte {at * ITEMSIZE:,}`"
    layout = scene.before if cell.kind.startswith("old") else scene.now
    return f"`{layout.address(cell.row, cell.col)}`"


def origin(scene: Scene, cell: Cell) -> str:
    """Where an id comes from: the block table for a decode row, the column itself for a prefill row."""
    assert cell.row is not None and cell.col is not None
    if not scene.decode:
        return f"entry {cell.col:,} of prefill row {cell.row}, a local index"
    number, within = divmod(cell.col, ENTRIES_PER_BLOCK)
    block = cell.value // ENTRIES_PER_BLOCK
    return (
        f"entry {cell.col:,} of request {cell.row}, slot `block_table[{cell.row}, {number:,}] × {ENTRIES_PER_BLOCK} + "
        f"{within} = {block:,} × {ENTRIES_PER_BLOCK} + {within}`"
    )


def label(scene: Scene, at: int, mode: str) -> str:
    """What is written on a cell of the close-up: its value, flat index, (row, column) or byte."""
    cell = cell_at(scene, at)
    if mode == "flat index":
        return f"{at:,}"
    if mode == "byte":
        return f"{at * ITEMSIZE:,}"
    if mode == "(row, column)":
        old = "′" if cell.kind.startswith("old") else ""
        return "–" if cell.row is None else f"({cell.row}{old}, {cell.col:,})"
    return "?" if cell.kind == "blank" else f"{cell.value:,}".replace("-", "−")


def _lens(scene: Scene, cell: Cell) -> int:
    assert cell.row is not None
    return (scene.lens_before if cell.kind == "old pad" else scene.lens)[cell.row]


def _rows(rows: list[int]) -> str:
    return ("row " if len(rows) == 1 else "rows ") + ", ".join(map(str, rows))


def verdict_name(found: Verdict) -> str:
    """The legend's words for a verdict."""
    return {"right": "✓ its own row", "luck": "≈ right by chance", "wrong": "✗ another row or old bytes"}[found]
