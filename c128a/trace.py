"""What the kernels store, cell by cell, and what then lies in a buffer: the one walk that every picture draws from.

`trace` is the walk of `row_loop` or of `tiled` as a table, one line for each lane of each store, in the interpreter's
order, which runs one program after the other. On a GPU programs run side by side, and only the order inside one program
means anything. A lane is

    live     holds an id (of a lens store: the count)
    pad      holds -1: past n, or no block backs it
    masked   stores nothing: past the width, or past the last row of its kind

`cells`, `memory` and `reads` say what lies in one buffer after an earlier build and this one, and what a reader with a
stride of its own takes for the rows. tests/test_trace.py holds both to the interpreted kernels.

>>> case = Case.of_tokens([1000, 255], [0], [[40, 10, 30, 20]], [5], 1, width=128)
>>> lanes = trace(case, "row_loop")
>>> lanes.groupby(["program", "kind", "state"], sort=False).size().to_dict()  # doctest: +NORMALIZE_WHITESPACE
{(0, 'decode', 'live'): 7, (0, 'decode', 'pad'): 121, (0, 'decode', 'masked'): 896, (0, 'lens', 'live'): 1,
 (1, 'prefill', 'live'): 2, (1, 'prefill', 'pad'): 126, (1, 'prefill', 'masked'): 896}
>>> lanes.loc[[3], ["position", "n", "column", "request", "entry", "block", "value", "reason"]].values.tolist()
[[1000, 7, 3, 0, 1, 10, 21, 'live']]

Torch-free.
"""

from __future__ import annotations

from functools import lru_cache
from types import SimpleNamespace
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from c128a.case import Case
from c128a.tiles import Tile, tile_shape

Kernel = Literal["row_loop", "tiled"]
RowKind = Literal["decode", "prefill"]

KERNELS: tuple[Kernel, ...] = get_args(Kernel)
REASONS = (
    "live",
    "past n",
    "request outside the table",
    "table too short",
    "no block",
    "past the width",
    "past the last row",
)
CELL_KINDS = ("id", "pad", "old id", "old pad", "blank")
VERDICTS = ("right", "luck", "wrong")

STEP = 1024  # columns a trip of the row loop: what PR #50004 launches
BLANK = -99  # stands for what neither build wrote
LIVE, PAST_N, NO_REQUEST, SHORT_TABLE, NO_BLOCK, PAST_WIDTH, PAST_ROWS = range(len(REASONS))

Integers = NDArray[np.int64]


def grid(case: Case, kernel: Kernel, *, step: int = STEP, tile: Tile | None = None) -> tuple[int, int]:
    """Programs and trips of `row_loop`; row groups (those of decode rows first) and column tiles of `tiled`.

    Raises ValueError for an unknown kernel.

    >>> grid(Case.mixed(3, 2, 49_000), "tiled", tile=Tile(2, 256, 4)), grid(Case.mixed(3, 2, 49_000), "row_loop")
    ((3, 2), (5, 1))
    """
    rows, columns = program_shape(case, kernel, step=step, tile=tile)
    return -(-case.decode_rows.rows // rows) - (-case.prefill_rows.rows // rows), -(-case.width // columns)


def program_shape(case: Case, kernel: Kernel, *, step: int = STEP, tile: Tile | None = None) -> tuple[int, int]:
    """Rows and columns of one trip of the row loop, or of one program of `tiled`."""
    if kernel not in KERNELS:
        raise ValueError(f"kernel is {kernel!r}; it must be one of {', '.join(KERNELS)}")
    if kernel == "row_loop":
        return 1, step
    tile = tile or tile_shape(case.num_tokens, case.width)
    return tile.rows, tile.cols


def pieces(case: Case, kernel: Kernel) -> pd.DataFrame:
    """What each trip of the row loop, or each program of `tiled`, writes: one line for each.

    Columns: program; trip (column tile of `tiled`); kind; row and rows, the first row within its kind and their number;
    start and stop, the first column and one past the last.

    >>> pieces(Case.mixed(3, 0, 49_000, layout="packed"), "tiled").values.tolist()[-1]
    [1, 1, 'decode', 2, 1, 256, 512]
    """
    (programs, trips), (rows, columns) = grid(case, kernel), program_shape(case, kernel)
    groups = -(-case.decode_rows.rows // rows)
    program, trip = (axis.ravel() for axis in np.indices((programs, trips)))
    decode = program < groups
    row = (program - groups * ~decode) * rows
    last = np.minimum(row + rows, np.where(decode, case.decode_rows.rows, case.prefill_rows.rows))
    frame = {"program": program, "trip": trip, "kind": np.where(decode, "decode", "prefill"), "row": row}
    frame |= {"rows": last - row, "start": trip * columns, "stop": np.minimum((trip + 1) * columns, case.width)}
    return pd.DataFrame(frame)


def trace(
    case: Case,
    kernel: Kernel,
    *,
    step: int = STEP,
    tile: Tile | None = None,
    program: int | None = None,
    trip: int | None = None,
) -> pd.DataFrame:
    """Every lane of every store, or those of one program and trip (row group and column tile of `tiled`).

    step in columns; tile is the one that a build of the case is launched with unless one is given. Columns: program;
    trip; kind ("decode", "prefill" or "lens"); lane within its store; row within its kind; column (0 in a lens store);
    token; position; n; request, entry and block, <NA> where the kernel does not look at them; value, <NA> where masked;
    state; reason; offset, the flat element in its buffer, -1 where masked.

    Raises ValueError for an unknown kernel, and for a program or a trip that the grid does not have.

    >>> case = Case.of_tokens([511], [0], [[7, -1]], [0], 1, width=128)
    >>> trace(case, "row_loop")["value"].head(5).tolist(), trace(case, "row_loop").loc[2, "reason"]
    ([14, 15, -1, -1, -1], 'no block')
    """
    rows, columns = program_shape(case, kernel, step=step, tile=tile)
    programs, trips = grid(case, kernel, step=step, tile=tile)
    decode_groups = -(-case.num_decode_tokens // rows)
    # The row loop counts its entries on the way and stores the lens last; of `tiled` the first column tile begins so.
    cells, lens = np.arange(rows * columns), np.arange(rows)
    loop = kernel == "row_loop"
    lane = np.concatenate((cells, lens) if loop else (lens, cells))
    axes = _one_or_all("program", program, programs), _one_or_all("trip", trip, trips), np.arange(lane.size)
    group, step_at, at = (axis.ravel() for axis in np.meshgrid(*axes, indexing="ij"))
    is_lens = at >= cells.size if loop else at < lens.size
    stored = ~is_lens | ((group < decode_groups) & (step_at == (trips - 1 if loop else 0)))
    group, step_at, at, is_lens = (array[stored] for array in (group, step_at, at, is_lens))

    lane, prefill = lane[at], group >= decode_groups
    row = (group - prefill * decode_groups) * rows + np.where(is_lens, lane, lane // columns)
    column = np.where(is_lens, 0, step_at * columns + lane % columns)
    walk = _walk(case, prefill, row, column)
    reason = np.where(is_lens & (walk.reason < PAST_ROWS), LIVE, walk.reason)
    backed = ~prefill & ~is_lens & np.isin(reason, (LIVE, NO_REQUEST, SHORT_TABLE, NO_BLOCK))
    masked = reason >= PAST_WIDTH
    stride = np.where(is_lens, 1, np.where(prefill, case.prefill_rows.row_stride, case.decode_rows.row_stride))
    frame = {
        "program": group,
        "trip": step_at,
        "kind": np.where(is_lens, "lens", np.where(prefill, "prefill", "decode")),
        "lane": lane,
        "row": row,
        "column": column,
        **{name: _nullable(getattr(walk, name), reason != PAST_ROWS) for name in ("token", "position", "n")},
        "request": _nullable(walk.request, backed),
        "entry": _nullable(walk.entry, backed & (reason != NO_REQUEST)),
        "block": _nullable(walk.block, backed & (reason != NO_REQUEST) & (reason != SHORT_TABLE)),
        "value": _nullable(np.where(is_lens, _lens(case, walk.token), walk.value), ~masked),
        "state": np.where(masked, "masked", np.where(reason == LIVE, "live", "pad")),
        "reason": np.array(REASONS)[reason],
        "offset": np.where(masked, -1, row * stride + column),
    }
    return pd.DataFrame(frame)


def _one_or_all(name: str, chosen: int | None, count: int) -> Integers:
    if chosen is None:
        return np.arange(count)
    if not 0 <= chosen < count:
        raise ValueError(f"{name} is {chosen}; it must be at least 0 and under {count}")
    return np.array([chosen])


def _nullable(values: Integers, known: NDArray[Any]) -> Any:
    return pd.arrays.IntegerArray(values.astype(np.int64), ~known)


def _walk(case: Case, prefill: NDArray[np.bool_], row: Integers, column: Integers) -> SimpleNamespace:
    """The way to the cells (row, column) of the decode rows, or of the prefill rows where prefill says so.

    Flat arrays: token, position, n, request, entry, block, value, reason; any number where the kernel does not look.
    """
    held = row < np.where(prefill, case.prefill_rows.rows, case.decode_rows.rows)
    token = np.where(held, row + prefill * case.num_decode_tokens, 0)
    n, decode = case.entries[token], held & ~prefill
    request, block = np.full_like(token, -1), np.full_like(token, -1)
    request[decode] = case.token_to_req_indices[token[decode]]
    table, entry = case.block_table, column // case.block_size
    known = decode & (request >= 0) & (request < table.shape[0])
    looked_up = known & (column < n) & (entry < table.shape[1])
    block[looked_up] = table[request[looked_up], entry[looked_up]]
    reason = np.select(
        [~held, column >= case.width, column >= n, prefill, ~known, ~looked_up, block < 0],
        [PAST_ROWS, PAST_WIDTH, PAST_N, LIVE, NO_REQUEST, SHORT_TABLE, NO_BLOCK],
        LIVE,
    )
    own = np.where(prefill, column, block * case.block_size + column % case.block_size)
    found = {"token": token, "position": case.positions[token], "n": n, "request": request, "entry": entry}
    return SimpleNamespace(**found, block=block, value=np.where(reason == LIVE, own, -1), reason=reason)


def _lens(case: Case, token: Integers) -> Integers:
    """What the lens of tokens is: n, 0 for a padded one."""
    slots = np.full(case.num_tokens, -1)  # slots may be given for the decode tokens only
    slots[: len(case.slot_mapping)] = case.slot_mapping
    return np.where(slots[token] < 0, 0, case.entries[token])


@lru_cache(maxsize=32)
def cells(before: Case, now: Case, kind: RowKind) -> pd.DataFrame:
    """What lies in each cell of a buffer of one kind after the earlier build and this one. Shared: do not write to it.

    The index is the flat offset; the buffer has the rows of the larger build and the capacity's columns. Columns: kind,
    one of

        id         an entry of a row of this build          old id     an entry that the earlier build left
        pad        -1 of this build                         old pad    -1 of the earlier build
        blank      what neither build wrote

    row and column of the build that wrote it, -1 where blank; value, BLANK where blank.

    Raises ValueError where the two cases have buffers of different capacity.

    >>> before, now = (Case.decode(2, seq, max_model_len=32_768, layout="packed") for seq in (32_768, 16_384))
    >>> cells(before, now, "prefill").size, cells(before, now, "decode")["kind"].value_counts().to_dict()
    (0, {'id': 256, 'old id': 256})
    """
    if before.capacity != now.capacity:
        raise ValueError(f"capacity is {before.capacity} before and {now.capacity} now; one buffer has one")
    builds = [(case, case.decode_rows if kind == "decode" else case.prefill_rows) for case in (before, now)]
    size = max(rows.rows for _, rows in builds) * now.capacity
    found = {"kind": np.full(size, CELL_KINDS.index("blank")), "row": np.full(size, -1), "column": np.full(size, -1)}
    found["value"] = np.full(size, BLANK)
    for (case, rows), old in zip(builds, (2, 0), strict=True):
        row, column = (axis.ravel() for axis in np.indices((rows.rows, rows.width)))
        walk = _walk(case, np.full(row.size, kind == "prefill"), row, column)
        at = row * rows.row_stride + column
        for name, values in zip(found, (old + (walk.reason != LIVE), row, column, walk.value), strict=True):
            found[name][at] = values
    return pd.DataFrame(found | {"kind": np.array(CELL_KINDS)[found["kind"]]})


def memory(before: Case, now: Case, kind: RowKind) -> pd.DataFrame:
    """The buffer of `cells` as runs of one kind and one row, in order and without a gap.

    Columns: start and stop (flat, stop is past the run), kind, row, and column and value of the first cell.

    >>> before, now = (Case.decode(2, seq, max_model_len=32_768, layout="packed") for seq in (32_768, 8_192))
    >>> memory(before, now, "decode")[["start", "stop", "kind", "row"]].values.tolist()
    [[0, 64, 'id', 0], [64, 128, 'pad', 0], [128, 192, 'id', 1], [192, 256, 'pad', 1], [256, 512, 'old id', 1]]
    """
    return _runs(cells(before, now, kind).reset_index(names="start"), ["kind", "row"])


def reads(before: Case, now: Case, kind: RowKind, row_stride: int) -> pd.DataFrame:
    """What a reader that believes in row_stride takes for the entries of each row of this build: its first lens cells.

    One line for each run of cells of one row: row and column (of the first) that the reader wants, wanted (its value),
    start and stop (flat), verdict, and what lies at start: kind, found_row, found_column, value. The verdict is

        right    the cells of that row          luck    other cells that hold the same values          wrong    others

    Rows without entries have no line. Cells past the buffer are left out.

    Raises ValueError for a negative row_stride.

    >>> before, now = (Case.decode(2, seq, max_model_len=32_768, layout="packed") for seq in (32_768, 8_192))
    >>> reads(before, now, "decode", 256)[["row", "start", "stop", "verdict", "kind", "found_row"]].values.tolist()
    [[0, 0, 64, 'right', 'id', 0], [1, 256, 320, 'luck', 'old id', 1]]
    """
    if row_stride < 0:
        raise ValueError(f"row_stride is {row_stride}; it must be at least 0")
    held = cells(before, now, kind)
    prefill = kind == "prefill"
    rows = now.prefill_rows.rows if prefill else now.decode_rows.rows
    token = np.arange(rows) + prefill * now.num_decode_tokens
    lens = now.entries[token] if prefill else _lens(now, token)
    row = np.repeat(np.arange(rows), lens)
    column = np.arange(row.size) - np.repeat(np.cumsum(lens) - lens, lens)
    start = row * row_stride + column
    row, column, start = (array[start < len(held)] for array in (row, column, start))
    wanted = _walk(now, np.full(row.size, prefill), row, column).value
    found = held.iloc[start].reset_index(drop=True).rename(columns={"row": "found_row", "column": "found_column"})
    own = found["kind"].isin(("id", "pad")) & (found["found_row"] == row) & (found["found_column"] == column)
    verdict = np.where(own, "right", np.where(found["value"] == wanted, "luck", "wrong"))
    frame = pd.DataFrame({"row": row, "column": column, "wanted": wanted, "start": start, "verdict": verdict})
    return _runs(pd.concat([frame, found], axis=1), ["row", "verdict", "kind", "found_row"])


def row_verdicts(taken: pd.DataFrame, rows: int) -> list[str]:
    """The worst verdict of `reads` on each row; a row without entries is right.

    >>> row_verdicts(pd.DataFrame({"row": [1, 1], "verdict": ["luck", "wrong"]}), 2)
    ['right', 'wrong']
    """
    worst = taken["verdict"].map(VERDICTS.index).groupby(taken["row"]).max().to_dict()
    return [VERDICTS[worst.get(row, 0)] for row in range(rows)]


def _runs(frame: pd.DataFrame, same: list[str]) -> pd.DataFrame:
    """Lines of one cell, in order, gathered where the columns of `same` do not change; `stop` follows `start`."""
    if frame.empty:
        return frame.assign(stop=frame["start"])
    changes = [frame[name].to_numpy()[1:] != frame[name].to_numpy()[:-1] for name in same]
    first = np.append(0, np.flatnonzero(np.any(changes, axis=0)) + 1)
    last = np.append(first[1:], len(frame)) - 1
    return frame.iloc[first].reset_index(drop=True).assign(stop=frame["start"].to_numpy()[last] + 1)
