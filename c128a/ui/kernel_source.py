"""The kernels' source, and the line of each statement that page 03 steps through. Imports neither torch nor triton.

A statement is looked up by its text, in the part of the kernel that it belongs to, each time the page opens: a kernel
that is changed moves the marker along or is refused, and never leaves it on another line.

>>> find("row_loop", "decode", "store")[0] < find("row_loop", "decode", "lens")[0]
True
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from c128a.ui.kernel_case import Kernel
from c128a.ui.old_trace import Kind

_FUNCTION: dict[Kernel, str] = {"row_loop": "_row_loop", "tiled": "tiled"}


@dataclass(frozen=True)
class Statement:
    """One step of a program: its name on the page, the text its source line begins with, and where to look for it.

    part is "head" for what runs before the kernel branches, else "branch".
    """

    key: str
    title: str
    text: str
    part: str = "branch"


_N = Statement("n", "n, the entries this row sees", "n = tl.minimum(")
_COLUMN = Statement("column", "the column of each lane", "column = ")
_ENTRY = Statement("entry", "the table entry of each column", "entry = ")
_LIVE = Statement("live", "which lanes may read the table", "live = ")
_BLOCK = Statement("block", "block numbers, read from the table", "block = tl.load(")
_SLOT = Statement("slot", "slot ids", "slot_id = tl.where(block >= 0")
_CUT = Statement("cut", "pads past n", "slot_id = tl.where(column < n")
_INDEX = Statement("index", "local indices, pads past n", "index = tl.where(")
_LENS = Statement("lens", "the lens", "tl.store(lens_ptr")
_HEAD_N = Statement(_N.key, _N.title, _N.text, "head")
_HEAD_COLUMN = Statement(_COLUMN.key, _COLUMN.title, _COLUMN.text, "head")

# In the order in which a program runs them.
STATEMENTS: dict[tuple[Kernel, Kind], tuple[Statement, ...]] = {
    ("row_loop", "decode"): (
        _HEAD_N,
        _COLUMN,
        _ENTRY,
        _LIVE,
        _BLOCK,
        _SLOT,
        Statement("store", "the store", "tl.store(decode_ptr"),
        _LENS,
    ),
    ("row_loop", "prefill"): (_HEAD_N, _COLUMN, _INDEX, Statement("store", "the store", "tl.store(prefill_ptr")),
    ("tiled", "decode"): (
        _HEAD_COLUMN,
        _N,
        _LENS,
        _ENTRY,
        _LIVE,
        _BLOCK,
        _SLOT,
        _CUT,
        Statement("store", "the store", "tl.store(out"),
    ),
    ("tiled", "prefill"): (_HEAD_COLUMN, _N, Statement("store", "ids, pads and their store", "tl.store(out")),
}


def statements(kernel: Kernel, kind: Kind, *, lens: bool) -> list[Statement]:
    """The statements of one trip; lens says whether the trip stores one.

    >>> [statement.key for statement in statements("row_loop", "prefill", lens=False)]
    ['n', 'column', 'index', 'store']
    """
    return [statement for statement in STATEMENTS[kernel, kind] if lens or statement.key != "lens"]


@lru_cache(maxsize=1)
def source() -> str:
    """The text of c128a/kernel.py."""
    return files("c128a").joinpath("kernel.py").read_text(encoding="utf-8")


@lru_cache(maxsize=2)
def _parts(kernel: Kernel) -> dict[str, list[ast.stmt]]:
    """The body of a kernel: the statements before its branch, those of decode rows, those of prefill rows."""
    functions = {node.name: node for node in ast.parse(source()).body if isinstance(node, ast.FunctionDef)}
    if _FUNCTION[kernel] not in functions:
        raise LookupError(f"c128a/kernel.py has no function {_FUNCTION[kernel]}")
    head: list[ast.stmt] = []
    for node in functions[_FUNCTION[kernel]].body[1:]:  # after the docstring
        if isinstance(node, ast.If) and node.orelse:
            return {"head": head, "decode": node.body, "prefill": node.orelse}
        head.append(node)
    raise LookupError(f"{_FUNCTION[kernel]} has no branch between decode and prefill rows")


def body(kernel: Kernel) -> tuple[int, list[str]]:
    """The lines of a kernel after its docstring, and the number of the first of them in c128a/kernel.py."""
    parts = _parts(kernel)
    first, last = parts["head"][0].lineno, parts["prefill"][-1].end_lineno
    return first, source().splitlines()[first - 1 : last]


def branch(kernel: Kernel, kind: Kind) -> range:
    """The numbers of the lines that run for rows of one kind only."""
    nodes = _parts(kernel)[kind]
    return range(nodes[0].lineno, (nodes[-1].end_lineno or nodes[-1].lineno) + 1)


def find(kernel: Kernel, kind: Kind, key: str) -> tuple[int, int]:
    """The first and the last line of a statement in c128a/kernel.py.

    Raises LookupError unless exactly one statement of its part of the kernel begins with its text.
    """
    (statement,) = (statement for statement in STATEMENTS[kernel, kind] if statement.key == key)
    lines = source().splitlines()
    part = "head" if statement.part == "head" else kind
    found = [
        (node.lineno, node.end_lineno or node.lineno)
        for top in _parts(kernel)[part]
        for node in ast.walk(top)
        if isinstance(node, ast.stmt) and lines[node.lineno - 1].lstrip().startswith(statement.text)
    ]
    if len(found) != 1:
        raise LookupError(f"{len(found)} statements of {_FUNCTION[kernel]} ({part}) begin with {statement.text!r}")
    return found[0]
