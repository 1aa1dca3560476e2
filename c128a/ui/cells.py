"""What lies in every cell of an index buffer after two builds, and what a reader takes it for. Torch-free.

A scene is one buffer of `rows` × `capacity` cells. An earlier build wrote rows of one width into it, this build writes
rows of another. A cell holds

    id         an entry of a row of this build          old id     an entry that the earlier build left
    pad        -1, past the entries of its row          old pad    -1 of the earlier build
    blank      what neither build wrote

Entry j of decode row r is the slot `block × 2 + j % 2`, the block being number j // 2 of that request; requests get
their blocks in turn, so block number k of request r is `first + k × rows + r`. Entry j of a prefill row is j.

A reader looks at the first `lens[r]` cells from `r × stride`. With the stride of this build it finds its rows. With the
stride of a capture it may find others:

>>> scene = make_scene(4, 8192, seq=300_000, seq_before=1_048_576, layout="packed")
>>> scene.now.row_stride, scene.reader_stride, scene.lens
(4096, 8192, (937, 2109, 1523, 2343))
>>> [verdict(scene, row) for row in range(4)]
['right', 'wrong', 'wrong', 'wrong']
>>> [verdict(make_scene(4, 8192, 300_000, 1_048_576, layout="pitched"), row) for row in range(4)]
['right', 'right', 'right', 'right']
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Literal, NamedTuple

from c128a.layout import RowLayout
from c128a.width import Policy, active_topk_width

Kind = Literal["id", "pad", "old id", "old pad", "blank"]
KINDS: tuple[Kind, ...] = ("id", "pad", "old id", "old pad", "blank")
SceneLayout = Literal["fixed", "packed", "pitched"]
SCENE_LAYOUTS: tuple[SceneLayout, ...] = ("fixed", "packed", "pitched")
Verdict = Literal["right", "luck", "wrong"]

RATIO = 128  # tokens per compressed entry
ENTRIES_PER_BLOCK = 2
PAD = -1
BLANK = -99  # what the buffer is filled with before the first build

# How long the sequences of a batch are, in percent of its longest, over and over. Read from the last row up in this
# build and from the first row down in the earlier one, so that either batch has its longest whatever the row count.
SHARES_NOW = (40, 90, 65, 100)
SHARES_BEFORE = (100, 55, 80, 70)


@dataclass(frozen=True)
class Scene:
    """One buffer, two builds, one reader. lens: entries of each row; frozen: the reader keeps the earlier stride."""

    rows: int
    capacity: int
    layout: SceneLayout
    width: int
    width_before: int
    lens: tuple[int, ...]
    lens_before: tuple[int, ...]
    decode: bool = True
    same_requests: bool = False
    frozen: bool = True

    @property
    def now(self) -> RowLayout:
        """Where this build's rows lie."""
        return self._rows(self.width)

    @property
    def before(self) -> RowLayout:
        """Where the earlier build's rows lay."""
        return self._rows(self.width_before)

    @property
    def reader_stride(self) -> int:
        """Elements from one row to the next, as the reader believes."""
        return (self.before if self.frozen else self.now).row_stride

    @property
    def cells(self) -> int:
        """Cells of the whole buffer."""
        return self.rows * self.capacity

    def first_block(self, *, old: bool) -> int:
        """The block that entry 0 of request 0 lies in: past the earlier batch's, unless the requests are the same."""
        return 0 if old or self.same_requests else self.rows * -(-self.capacity // ENTRIES_PER_BLOCK)

    def value(self, row: int, col: int, *, old: bool = False) -> int:
        """Entry `col` of a row of this build, or of the earlier one."""
        if not self.decode:
            return col
        number, within = divmod(col, ENTRIES_PER_BLOCK)
        block = self.first_block(old=old) + number * self.rows + row
        return block * ENTRIES_PER_BLOCK + within

    def _rows(self, width: int) -> RowLayout:
        if self.layout == "packed":
            return RowLayout.packed(self.rows, width)
        return RowLayout.pitched(self.rows, width, self.capacity)


class Cell(NamedTuple):
    """What a flat offset holds: the row and column of the build that wrote it, None where none did."""

    kind: Kind
    row: int | None
    col: int | None
    value: int


class Run(NamedTuple):
    """Cells start … stop-1 of one kind and one row; col is the column of the first."""

    start: int
    stop: int
    kind: Kind
    row: int | None
    col: int | None


class Read(NamedTuple):
    """Cells start … stop-1 that the reader takes for entries of `row` from `col` on; `found` is what lies there."""

    row: int
    col: int
    start: int
    stop: int
    verdict: Verdict
    found: Run


def make_scene(
    rows: int,
    capacity: int,
    seq: int,
    seq_before: int,
    *,
    layout: SceneLayout,
    policy: Policy = "pow2",
    decode: bool = True,
    same_requests: bool = False,
    frozen: bool = True,
) -> Scene:
    """The scene of a batch with longest sequence seq after one with seq_before (tokens).

    Fixed rows have the capacity's width. Raises ValueError where the capacity cannot hold a sequence.
    """
    for name, tokens in (("seq", seq), ("seq_before", seq_before)):
        if tokens // RATIO > capacity:
            raise ValueError(f"{name} is {tokens}; its {tokens // RATIO} entries do not fit into {capacity} columns")
    chosen: Policy = "fixed" if layout == "fixed" else policy
    return Scene(
        rows,
        capacity,
        layout,
        active_topk_width(seq, RATIO, capacity, policy=chosen),
        active_topk_width(seq_before, RATIO, capacity, policy=chosen),
        tuple(tokens // RATIO for tokens in lengths_now(rows, seq)),
        tuple(tokens // RATIO for tokens in lengths_before(rows, seq_before)),
        decode,
        same_requests,
        frozen,
    )


def lengths_now(rows: int, longest: int) -> list[int]:
    """Tokens of each sequence of this build; the last is the longest.

    >>> lengths_now(2, 1000), lengths_now(5, 1000)
    ([650, 1000], [1000, 400, 900, 650, 1000])
    """
    return [longest * SHARES_NOW[(row - rows) % len(SHARES_NOW)] // 100 for row in range(rows)]


def lengths_before(rows: int, longest: int) -> list[int]:
    """Tokens of each sequence of the earlier build; the first is the longest.

    >>> lengths_before(2, 1000)
    [1000, 550]
    """
    return [longest * SHARES_BEFORE[row % len(SHARES_BEFORE)] // 100 for row in range(rows)]


def cell_at(scene: Scene, offset: int) -> Cell:
    """What lies at a flat offset after both builds.

    >>> scene = make_scene(2, 256, seq=16_384, seq_before=32_768, layout="packed")
    >>> cell_at(scene, 82), cell_at(scene, 83), cell_at(scene, 128).row, cell_at(scene, 300).kind
    (Cell(kind='id', row=0, col=82, value=676), Cell(kind='pad', row=0, col=83, value=-1), 1, 'old id')
    """
    if (at := scene.now.locate(offset)) is not None:
        row, col = at
        entry = col < scene.lens[row]
        return Cell("id" if entry else "pad", row, col, scene.value(row, col) if entry else PAD)
    if (at := scene.before.locate(offset)) is not None:
        row, col = at
        entry = col < scene.lens_before[row]
        return Cell("old id" if entry else "old pad", row, col, scene.value(row, col, old=True) if entry else PAD)
    return Cell("blank", None, None, BLANK)


@lru_cache(maxsize=256)
def runs(scene: Scene) -> tuple[Run, ...]:
    """The whole buffer as runs, in order and without a gap."""
    edges = {0, scene.cells}
    for layout, lens in ((scene.before, scene.lens_before), (scene.now, scene.lens)):
        for row in range(scene.rows):
            start = row * layout.row_stride
            edges.update((start, start + lens[row], start + layout.width))
    ordered = sorted(edge for edge in edges if edge <= scene.cells)
    found: list[Run] = []
    for start, stop in pairwise(ordered):
        cell = cell_at(scene, start)
        last = found[-1] if found else None
        if last and (last.kind, last.row) == (cell.kind, cell.row):  # an edge of the earlier build, overwritten here
            found[-1] = last._replace(stop=stop)
        else:
            found.append(Run(start, stop, cell.kind, cell.row, cell.col))
    return tuple(found)


@lru_cache(maxsize=256)
def reads(scene: Scene) -> tuple[Read, ...]:
    """What the reader takes for the entries of each row, row by row."""
    found = []
    for row in range(scene.rows):
        first = row * scene.reader_stride
        last = first + scene.lens[row]
        for run in runs(scene):
            start, stop = max(run.start, first), min(run.stop, last)
            if start < stop:
                found.append(Read(row, start - first, start, stop, _verdict(scene, row, start, start - first), run))
    return tuple(found)


def verdict(scene: Scene, row: int) -> Verdict:
    """Whether the reader gets the entries of a row: its own, the same values from elsewhere ("luck"), or others."""
    seen = {read.verdict for read in reads(scene) if read.row == row}
    return "wrong" if "wrong" in seen else "luck" if "luck" in seen else "right"


def _verdict(scene: Scene, row: int, offset: int, col: int) -> Verdict:
    # Along a run the column found and the column wanted advance together, so its first cell speaks for all of it.
    cell = cell_at(scene, offset)
    if (cell.kind, cell.row, cell.col) == ("id", row, col):
        return "right"
    return "luck" if cell.value == scene.value(row, col) else "wrong"
