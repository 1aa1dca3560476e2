"""A batch that a reader types, in a box or in an address, for batches too small or too odd for sliders. Torch-free.

The parts stand in any order, apart by `;`, and only the positions are needed:

| part      | numbers                                                                                   |
|-----------|-------------------------------------------------------------------------------------------|
| positions | of the decode tokens, then `\\|` and those of the prefill tokens; token r is of request r  |
| table     | block numbers of each decode request, requests apart by `/`; a short row ends with -1     |
| entries   | compressed entries in a KV block, else 2                                                  |
| width     | columns of a row, else those of the policy                                                |
| capacity  | columns of the buffer, else those of the model length                                     |
| stride    | of the reader, in columns, on the page that draws one                                     |

>>> case = case_of("positions 255 | 511; table 3; entries 256", max_model_len=32_768, layout="packed")
>>> case.width, case.capacity, case.entries.tolist(), case.block_table.tolist(), case.block_size
(128, 256, [2, 4], [[3]], 256)
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from c128a.case import COMPRESS_RATIO, ENTRIES_PER_BLOCK, MAX_MODEL_LEN, Case

EXAMPLE = "positions 255 | 511; table 3; entries 256"  # the test of PR #50004
MAX_ROWS = 8  # decode rows, and prefill rows: few enough to tell apart
# Part: marks that set its lists apart, most lists, most numbers in a list, the least and the greatest number.
PARTS = {
    "positions": ("|", 2, MAX_ROWS, -2, MAX_MODEL_LEN - 1),
    "table": ("/", MAX_ROWS, 4096, -1, 10**6),
    "entries": ("", 1, 1, 1, 8192),
    "width": ("", 1, 1, 1, 8192),
    "capacity": ("", 1, 1, 1, 8192),
    "stride": ("", 1, 1, 1, 8192),
}


def parts_of(text: str) -> dict[str, list[list[int]]]:
    """The lists of numbers of each part; raises ValueError for what is no part, and for numbers out of bounds."""
    found: dict[str, list[list[int]]] = {}
    for part in filter(None, map(str.strip, re.split(r"[;\n]", text))):
        name, _, rest = part.partition(" ")
        if name not in PARTS:
            raise ValueError(f"each part must begin with one of {', '.join(PARTS)}")
        mark, lists, most, low, high = PARTS[name]
        if not re.fullmatch(rf"[-0-9 ,{mark}]*", rest):
            raise ValueError(f"{name} must hold whole numbers" + f", its lists apart by {mark}" * bool(mark))
        numbers = [[int(number) for number in re.findall(r"-?\d{1,9}", one)] for one in rest.split(mark or None)]
        if not 1 <= len(numbers) <= lists or not all(len(one) <= most for one in numbers) or not any(numbers):
            raise ValueError(f"{name} must hold 1 to {lists} lists of at most {most:,} numbers")
        if not all(low <= number <= high for one in numbers for number in one):
            raise ValueError(f"the numbers of {name} must be from {low:,} to {high:,}")
        found[name] = numbers
    if found and "positions" not in found:
        raise ValueError("it must hold positions")
    return found


@dataclass(frozen=True)
class Own:
    """A field of a page that holds such a text, or nothing."""

    default: str = ""
    title: str = "Your own batch"

    def parse(self, text: str) -> str:
        """The text in one line; raises ValueError where it is no batch."""
        parts_of(text)
        return "; ".join(filter(None, map(str.strip, re.split(r"[;\n]", text))))


def case_of(text: str, **fields: Any) -> Case:
    """The batch that the text gives, with these fields of a Case. Raises ValueError where it is no batch."""
    parts = parts_of(text)
    decode, prefill = (*parts["positions"], [])[:2]
    positions = tuple(decode + prefill)
    if "table" in parts:
        longest = max(map(len, parts["table"]))
        fields["given_table"] = tuple((*row, *(-1,) * (longest - len(row))) for row in parts["table"])
    fields |= {f"given_{name}": parts[name][0][0] for name in ("width", "capacity") if name in parts}
    ratio = fields.setdefault("compress_ratio", COMPRESS_RATIO)
    fields["kv_block_size"] = ratio * parts.get("entries", [[ENTRIES_PER_BLOCK]])[0][0]
    lengths = tuple(max(position + 1, 1) for position in positions)
    return Case((1,) * len(positions), lengths, len(decode), given_positions=positions, **fields)
