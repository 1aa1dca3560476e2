"""What each program of `row_loop` and of `tiled` stores, in its order, as plain data. Free of torch and triton.

A build is a `Launch` of host numbers. A program makes stores, a store has lanes, a lane is one cell:

    live     holds an id (of a lens store: the count)
    pad      holds -1: past n, or no block backs it
    masked   stores nothing: past the width, or past the last row of its kind

The order is the interpreter's, which runs one program after the other; on a GPU programs run side by side, and only the
order inside one program means anything. tests/test_trace.py holds every store to the interpreted kernel.

>>> launch = Launch((1000, 255), (0,), ((40, 10, 30, 20),), (5,), num_decode=1, width=128)
>>> stores = list(row_loop(launch, step=1024))
>>> [(s.program, s.kind, s.count("live"), s.count("pad"), s.count("masked")) for s in stores]
[((0, 0), 'decode', 7, 121, 896), ((0, 0), 'lens', 1, 0, 0), ((1, 0), 'prefill', 2, 126, 896)]
>>> path(launch, "decode", 0, 3)
Path(token=0, position=1000, n=7, column=3, request=0, entry=1, block=10, value=21, reason='live')
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from c128a.tiles import Tile

Kind = Literal["decode", "prefill", "lens"]
State = Literal["live", "pad", "masked"]
Reason = Literal["live", "past n", "request outside the table", "table too short", "no block"]


@dataclass(frozen=True)
class Launch:
    """The arguments of one build: rows 0 … num_decode-1 are decode rows, the other positions prefill rows.

    requests and slots cover at least the decode rows; table is a tuple of rows of one length. width in columns,
    ratio in tokens per compressed entry, block_size in compressed entries per KV block.
    """

    positions: tuple[int, ...]
    requests: tuple[int, ...]
    table: tuple[tuple[int, ...], ...]
    slots: tuple[int, ...]
    num_decode: int
    width: int
    ratio: int = 128
    block_size: int = 2

    @property
    def num_prefill(self) -> int:
        """Rows that are prefill rows."""
        return len(self.positions) - self.num_decode


class Path(NamedTuple):
    """How one cell gets its value; request, entry and block are None where the kernel does not look at them."""

    token: int
    position: int
    n: int
    column: int
    request: int | None
    entry: int | None
    block: int | None
    value: int
    reason: Reason


class Lane(NamedTuple):
    """One cell of a store: row counted within its kind, column (0 in a lens store), what is stored or None."""

    row: int
    column: int
    state: State
    value: int | None


class Store(NamedTuple):
    """One `tl.store`: the program's indices on the grid, the trip of the row loop, the lanes in row-major order."""

    program: tuple[int, int]
    kind: Kind
    trip: int
    lanes: list[Lane]

    def count(self, state: State) -> int:
        """Lanes in that state."""
        return sum(lane.state == state for lane in self.lanes)


def entries_seen(launch: Launch, token: int) -> int:
    """n: the compressed entries that a token's query sees, at most the width."""
    return min(max(launch.positions[token] + 1, 0) // launch.ratio, launch.width)


def path(launch: Launch, kind: Kind, row: int, column: int) -> Path:
    """The way from the position to the value of one cell.

    Raises IndexError for a row or a column that the kind does not have, ValueError for kind "lens".

    >>> launch = Launch((511,), (0,), ((7, -1),), (0,), num_decode=1, width=128)
    >>> [path(launch, "decode", 0, column).value for column in range(5)], path(launch, "decode", 0, 2).reason
    ([14, 15, -1, -1, -1], 'no block')
    """
    if kind == "lens":
        raise ValueError("kind is 'lens'; a path leads to a cell of a decode or of a prefill row")
    rows = launch.num_decode if kind == "decode" else launch.num_prefill
    if not (0 <= row < rows and 0 <= column < launch.width):
        raise IndexError(f"{kind} cell ({row}, {column}) is outside {rows} rows × {launch.width} columns")
    token = row if kind == "decode" else launch.num_decode + row
    return _path(launch, kind, token, entries_seen(launch, token), column)


def _path(launch: Launch, kind: Kind, token: int, n: int, column: int) -> Path:
    position = launch.positions[token]
    if column >= n:
        return Path(token, position, n, column, None, None, None, -1, "past n")
    if kind == "prefill":
        return Path(token, position, n, column, None, None, None, column, "live")
    request = launch.requests[token]
    if not 0 <= request < len(launch.table):
        return Path(token, position, n, column, request, None, None, -1, "request outside the table")
    entry = column // launch.block_size
    if entry >= len(launch.table[request]):
        return Path(token, position, n, column, request, entry, None, -1, "table too short")
    block = launch.table[request][entry]
    if block < 0:
        return Path(token, position, n, column, request, entry, block, -1, "no block")
    slot_id = block * launch.block_size + column % launch.block_size
    return Path(token, position, n, column, request, entry, block, slot_id, "live")


def _lanes(launch: Launch, kind: Kind, row: int, columns: range) -> Iterator[Lane]:
    """The lanes of one row in one store of decode or prefill cells."""
    if row >= (launch.num_decode if kind == "decode" else launch.num_prefill):
        yield from (Lane(row, column, "masked", None) for column in columns)
        return
    token = row if kind == "decode" else launch.num_decode + row
    n = entries_seen(launch, token)
    for column in columns:
        if column >= launch.width:
            yield Lane(row, column, "masked", None)
        else:
            value = _path(launch, kind, token, n, column).value
            yield Lane(row, column, "pad" if value == -1 else "live", value)


def _lens(launch: Launch, row: int) -> Lane:
    if row >= launch.num_decode:
        return Lane(row, 0, "masked", None)
    return Lane(row, 0, "live", 0 if launch.slots[row] < 0 else entries_seen(launch, row))


def row_loop_trip(launch: Launch, token: int, trip: int, *, step: int) -> Iterator[Store]:
    """The stores of one trip of the program of one token; the last trip of a decode row is followed by its lens."""
    kind: Kind = "decode" if token < launch.num_decode else "prefill"
    row = token if kind == "decode" else token - launch.num_decode
    columns = range(trip * step, (trip + 1) * step)
    yield Store((token, 0), kind, trip, list(_lanes(launch, kind, row, columns)))
    if kind == "decode" and columns.stop >= launch.width:
        yield Store((token, 0), "lens", trip, [_lens(launch, row)])


def row_loop(launch: Launch, *, step: int) -> Iterator[Store]:
    """Every store of `row_loop`: one program a token, `step` columns a trip."""
    for token in range(len(launch.positions)):
        for trip in range(-(-launch.width // step)):
            yield from row_loop_trip(launch, token, trip, step=step)


def tiled_grid(launch: Launch, tile: Tile) -> tuple[int, int]:
    """Programs of `tiled`: row groups (those of decode rows first), column tiles.

    >>> tiled_grid(Launch((9,) * 5, (0,) * 3, ((1,),), (0,) * 3, num_decode=3, width=384), Tile(2, 256, 4))
    (3, 2)
    """
    groups = -(-launch.num_decode // tile.rows) - (-launch.num_prefill // tile.rows)
    return groups, -(-launch.width // tile.cols)


def tiled_program(launch: Launch, group: int, at: int, tile: Tile) -> Iterator[Store]:
    """The stores of the program of row group `group` and column tile `at`; the first tile begins with the lens."""
    decode_groups = -(-launch.num_decode // tile.rows)
    kind: Kind = "decode" if group < decode_groups else "prefill"
    first = (group if kind == "decode" else group - decode_groups) * tile.rows
    rows = range(first, first + tile.rows)
    if kind == "decode" and at == 0:
        yield Store((group, at), "lens", 0, [_lens(launch, row) for row in rows])
    columns = range(at * tile.cols, (at + 1) * tile.cols)
    yield Store((group, at), kind, 0, [lane for row in rows for lane in _lanes(launch, kind, row, columns)])


def tiled(launch: Launch, tile: Tile) -> Iterator[Store]:
    """Every store of `tiled`: one program for tile.rows × tile.cols cells of one kind."""
    groups, tiles = tiled_grid(launch, tile)
    for group in range(groups):
        for at in range(tiles):
            yield from tiled_program(launch, group, at, tile)
