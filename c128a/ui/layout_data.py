"""The marks of page 02: cells gathered so that a chart can hold them. Torch-free.

A buffer row is drawn as MARKS_A_ROW marks of equal width; where a run of cells begins or ends inside a mark, the mark
is split there, so that every boundary stands where it is.

>>> scene = make_scene(2, 512, seq=16_384, seq_before=65_536, layout="packed")
>>> columns_a_mark(512), pieces(scene)[0]
(16, Piece(layout='packed', buffer_row=0, start=0, stop=16, kind='id', row=0, col=0))
"""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd

from c128a.layout import ITEMSIZE
from c128a.ui.cells import Cell, Kind, Read, Scene, SceneLayout, Verdict, cell_at, make_scene, reads, runs

__all__ = ["Piece", "columns_a_mark", "frame", "make_scene", "pieces", "stretches", "window"]

MARKS_A_ROW = 32
WINDOW = 16  # cells of the close-up
GRIDS = {"none": 0, "cache lines": 128 // ITEMSIZE, "pages": 4096 // ITEMSIZE}  # elements


class Piece(NamedTuple):
    """Cells start … stop-1 (flat) of one buffer row, one kind and one row; col is the column of the first."""

    layout: SceneLayout
    buffer_row: int
    start: int
    stop: int
    kind: Kind
    row: int | None
    col: int | None


class Stretch(NamedTuple):
    """Cells start … stop-1 (flat) of one buffer row that the reader takes for one row, all with one verdict."""

    layout: SceneLayout
    buffer_row: int
    start: int
    stop: int
    row: int
    verdict: Verdict
    first: bool  # the stretch holds the row's first cell


def columns_a_mark(capacity: int) -> int:
    """Columns that one mark stands for."""
    return max(1, -(-capacity // MARKS_A_ROW))


def pieces(scene: Scene) -> list[Piece]:
    """The whole buffer, cut at runs, at marks and at the ends of buffer rows."""
    step = columns_a_mark(scene.capacity)
    found = []
    for run in runs(scene):
        start = run.start
        while start < run.stop:
            buffer_row, column = divmod(start, scene.capacity)
            mark_end = buffer_row * scene.capacity + min((column // step + 1) * step, scene.capacity)
            stop = min(run.stop, mark_end)
            col = None if run.col is None else run.col + start - run.start
            found.append(Piece(scene.layout, buffer_row, start, stop, run.kind, run.row, col))
            start = stop
    return found


def stretches(scene: Scene) -> list[Stretch]:
    """What the reader looks at, cut at the ends of buffer rows; neighbours with one verdict are one."""
    joined: list[Read] = []
    for read in reads(scene):
        last = joined[-1] if joined else None
        if last and (last.row, last.stop, last.verdict) == (read.row, read.start, read.verdict):
            joined[-1] = last._replace(stop=read.stop)
        else:
            joined.append(read)
    found = []
    for read in joined:
        start = read.start
        while start < read.stop:
            buffer_row = start // scene.capacity
            stop = min(read.stop, (buffer_row + 1) * scene.capacity)
            first = start == read.row * scene.reader_stride
            found.append(Stretch(scene.layout, buffer_row, start, stop, read.row, read.verdict, first))
            start = stop
    return found


def window(scene: Scene, at: int) -> list[tuple[int, Cell]]:
    """The WINDOW cells around a flat offset, aligned to WINDOW, with their offsets."""
    first = min(at, scene.cells - 1) // WINDOW * WINDOW
    return [(offset, cell_at(scene, offset)) for offset in range(first, min(first + WINDOW, scene.cells))]


def frame(scenes: tuple[Scene, ...]) -> pd.DataFrame:
    """What the picture of the rows draws: one line for each piece, with its first and last flat index and byte."""
    rows = [
        (
            piece.layout,
            piece.buffer_row,
            piece.start,
            piece.stop - 1,
            piece.start * ITEMSIZE,
            piece.kind,
            piece.row,
            piece.col,
            cell_at(scene, piece.start).value,
        )
        for scene in scenes
        for piece in pieces(scene)
    ]
    columns = ["layout", "buffer_row", "first", "last", "first_byte", "kind", "row", "column", "first_value"]
    return pd.DataFrame(rows, columns=columns).astype({"row": "Int64", "column": "Int64"})
