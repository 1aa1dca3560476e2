"""The change of PR #50004 hunk by hunk, in a small builder whose parts have three versions that run. Torch-free.

Before the change, after it, and as vLLM has it from 0.29 on. A hunk says what to look at, and its check runs the
versions. An id is made of the step that wrote it, its row and its column: what another build left never looks right.

>>> buffer = np.zeros((2, 512), dtype=np.int32)
>>> build(buffer, [2, 3], 128, VERSIONS["PR #50004"]).shape
(2, 128)
>>> buffer[0, [0, 1, 2, 128, 131]].tolist()  # row 1 begins at column 128 of the buffer's row 0
[1000000, 1000001, -1, 1010000, -1]
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from c128a.case import CAPACITY
from c128a.width import loop_trips

Array = np.ndarray
ROWS = 4  # of a reader that keeps its row stride
CAPTURED, REPLAYED = 1_048_576, (300_000, 32_768, 8_192)  # tokens: of a graph's capture, of the steps after it
# Lengths at which the formula could break: none, odd, one under and over a step, the longest.
LENGTHS = (0, 1, 127, 128, 129, 16_511, 16_512, 32_767, 32_895, 32_896, 99_999, 524_415, 524_416, 1_048_575, 1_048_576)
# Capacities of model lengths 1,048,576; 1,000,000; 70,000; 33,792; and of a context auto-fitted to 980,224 tokens.
CAPACITIES = (CAPACITY, 7936, 640, 384, 7680)


def width_before(max_seq_len: int, capacity: int) -> int:
    """Columns of a row."""
    return capacity


def width_after(max_seq_len: int, capacity: int) -> int:
    """Columns of a row."""
    power_of_two = 1 << (max(max_seq_len // 128, 1) - 1).bit_length()
    return min(max(power_of_two, 128), capacity)


def width_since(max_seq_len: int, capacity: int) -> int:
    """Columns of a row."""
    width = width_after(max_seq_len, capacity)
    assert width >= max_seq_len // 128
    return width


def view_before(buffer: Array, rows: int, width: int) -> Array:
    """The rows that the builder returns."""
    return buffer[:rows]


def view_after(buffer: Array, rows: int, width: int) -> Array:
    """The rows that the builder returns."""
    return buffer.reshape(-1)[: rows * width].reshape(rows, width)


def view_since(buffer: Array, rows: int, width: int) -> Array:
    """The rows that the builder returns."""
    assert 0 < width <= buffer.shape[1]
    return buffer[:rows, :width]


def stride_before(buffer: Array, width: int) -> int:
    """Elements between two rows, as the kernel is told."""
    return buffer.shape[1]


def stride_after(buffer: Array, width: int) -> int:
    """Elements between two rows, as the kernel is told."""
    return width


class Version(NamedTuple):
    """One version of each part that the change touches."""

    width: Callable[[int, int], int]
    view: Callable[[Array, int, int], Array]
    stride: Callable[[Array, int], int]


BEFORE = Version(width_before, view_before, stride_before)
AFTER = Version(width_after, view_after, stride_after)
VERSIONS = {"before": BEFORE, "PR #50004": AFTER, "from 0.29 on": Version(width_since, view_since, stride_before)}
HALF = "new views, old strides"  # the change without one of its hunks


def build(buffer: Array, lens: list[int], width: int = 8192, version: Version = BEFORE, step: int = 1) -> Array:
    """Write a row for each of lens, ids and then -1, and return the rows."""
    view = version.view(buffer, len(lens), width)
    for row, n in enumerate(lens):  # the kernel: one program a row
        start = row * version.stride(buffer, width)
        for first in range(0, width, 1024):
            column = np.arange(first, min(first + 1024, width))
            buffer.reshape(-1)[start + column] = np.where(column < n, ids(step, row, column), -1)
    return view


def ids(step: int, row: int, column: Any) -> Any:
    """What a step writes into the cells of a row that hold an entry."""
    return step * 1_000_000 + row * 10_000 + column


def stride_of(view: Array) -> int:
    """Elements from one row of a view to the next."""
    return view.strides[0] // view.itemsize


def wrong_rows(buffer: Array, stride: int, lens: list[int], step: int) -> int:
    """Rows in which a reader with this row stride finds anything but the ids of this step."""
    rows = [(buffer.reshape(-1)[row * stride :][:n], ids(step, row, np.arange(n))) for row, n in enumerate(lens)]
    return sum(not np.array_equal(found, own) for found, own in rows)


def replayed(version: Version) -> tuple[int, int]:
    """Rows read wrong in the steps after a capture: at the stride of each step's view, and at that of the capture."""
    buffer = np.zeros((ROWS, CAPACITY), dtype=np.int32)
    captured = stride_of(build(buffer, [CAPACITY] * ROWS, version.width(CAPTURED, CAPACITY), version))
    each = kept = 0
    for step, tokens in enumerate(REPLAYED, 2):
        lens = [tokens // 128] * ROWS
        view = build(buffer, lens, version.width(tokens, CAPACITY), version, step)
        each += wrong_rows(buffer, stride_of(view), lens, step)
        kept += wrong_rows(buffer, captured, lens, step)
    return each, kept


def _signature(version: Version) -> dict[str, Any]:
    buffer = np.zeros((32, 512), dtype=np.int32)
    written: int | str = "refused"
    with suppress(AssertionError, ValueError):
        build(buffer, [2, 4, 1, 3], version=version)
        written = int((buffer[ROWS:] != 0).sum())
    return {"a call without a width, 4 rows of 512 columns: cells written after them": written}


def _views(version: Version) -> dict[str, Any]:
    buffer = np.zeros((ROWS, CAPACITY), dtype=np.int32)
    views = {n: version.view(buffer, ROWS, version.width(n, CAPACITY)) for n in (CAPTURED, *REPLAYED)}
    return {f"row 1 starts, at {n:,} tokens": stride_of(view) for n, view in views.items()}


def _strides(version: Version) -> dict[str, Any]:
    each, kept = replayed(version)
    return {"rows read": ROWS * len(REPLAYED), "wrong at the step's stride": each, "wrong at the capture's": kept}


def _loop(version: Version) -> dict[str, Any]:
    buffer, width = np.zeros((ROWS, CAPACITY), dtype=np.int32), version.width(32_768, CAPACITY)
    build(buffer, [CAPACITY] * ROWS)
    build(buffer, [256] * ROWS, width, version, step=2)
    old = int(((buffer > 0) & (buffer < ids(2, 0, 0))).sum())
    return {"trips a row": loop_trips(width), "cells written": ROWS * width, "cells that keep older ids": old}


def _width(version: Version) -> dict[str, Any]:
    cases = [*product(LENGTHS, CAPACITIES), (-1, CAPACITY), (-(2**31), CAPACITY)]
    none = narrow = refused = 0
    for length, capacity in cases:
        try:
            width = version.width(length, capacity)
        except AssertionError:
            refused += 1
        else:
            none += width == 0
            narrow += width < length // 128
    return {"cases": len(cases), "without a column": none, "too narrow for the sequence": narrow, "refused": refused}


def _test(version: Version) -> dict[str, Any]:
    def passes(rows: int) -> str:
        buffer, lens = np.zeros((2, 256), dtype=np.int32), [2, 4][:rows]
        view = build(buffer, lens, 128, version)
        right = view.shape == (rows, 128) and stride_of(view) == 128 and not wrong_rows(buffer, 128, lens, 1)
        return "passes" if right else "fails"

    reader = "fails" if replayed(version)[1] else "passes"
    return {"its test, one row a buffer": passes(1), "with two rows": passes(2), "a reader of the capture": reader}


class Hunk(NamedTuple):
    """A part of the change: its versions as functions (one where the diff leaves it), a check, texts in Markdown."""

    title: str
    parts: tuple[Callable[..., Any], ...]
    look: str  # what to check
    check: Callable[[Version], dict[str, Any]]
    later: str  # what broke, and where a reviewer could have seen it
    half: bool = False  # whether the change without its strides is checked too

    def table(self) -> pd.DataFrame:
        """What the check finds, a row for each version."""
        versions = VERSIONS | ({HALF: AFTER._replace(stride=stride_before)} if self.half else {})
        return pd.DataFrame([{"version": name, **self.check(version)} for name, version in versions.items()])


HUNKS = (
    Hunk(
        "the signature",
        (build,),
        "The diff leaves it as it was: the width comes last, 8,192 where none is given. What does a call without one "
        "do to buffers of fewer columns?",
        _signature,
        "Nothing, because the engine always gives a width; but the danger stood right beside the change. From 0.29 on "
        "(PR #52823) an assertion compares the width with the buffers.",
    ),
    Hunk(
        "the views",
        (view_before, view_after, view_since),
        "Where does row 1 start from step to step? Rows may move only if every reader asks for their stride each time.",
        _views,
        "Issue #52448: wrong output under concurrent requests with CUDA graphs, none with `--enforce-eager`. The "
        "docstring beside these lines changed from “CUDA graph address stability” to “CUDA graph stability”: here a "
        "reviewer could ask what else a graph keeps.",
    ),
    Hunk(
        "the strides passed",
        (stride_before, stride_after),
        "The kernel must write where the views lie, so this hunk and the one before go together. Then list everyone "
        "who holds a row stride of these buffers, and since when.",
        _strides,
        "Decode attention holds one, as an argument of a launch in a graph that was captured at the longest context. "
        "The old line reads the stride from the buffer, which never changes; the new one from the batch. PR #51318 "
        "put the old one back.",
        half=True,
    ),
    Hunk(
        "the loop bound",
        (build,),
        "The kernel is not in the diff. It writes every cell up to the width; those past it keep what an older step "
        "left. Who reads past the width, or past lens?",
        _loop,
        "FlashInfer's kernel for SM120 does, and it takes no row stride: from 0.29 on decode rows keep the full width "
        "there. A list of all readers of the buffers would have had it.",
    ),
    Hunk(
        "the builder's width",
        (width_before, width_after, width_since),
        "Try the ends of the formula: no tokens, a negative length, one over a step, more than the capacity holds.",
        _width,
        "`min` cuts a row in silence where the capacity is too small, as the full width did before. From 0.29 on an "
        "assertion refuses it, in [one server](https://github.com/eugr/spark-vllm-docker/issues/400) while graphs were "
        "captured.",
    ),
    Hunk(
        "the test",
        (_test,),
        "Run it on versions that are wrong: a test that passes on all of them says nothing.",
        _test,
        "Its only row lies at offset 0 under every stride, and it asserts the packed stride, the one that broke "
        "(PR #51318 removed it). A second row notices a forgotten stride. That packed rows move under a graph shows "
        "only where a reader is captured first.",
        half=True,
    ),
)
