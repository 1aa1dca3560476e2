"""The state of a page is its URL: fields, reading with notes, and links that carry it along. Free of marimo and torch.

A page declares its parameters once, as a dict from the name in the URL to a field. `read` never fails: what it cannot
use it replaces by the default, and says so in a note that a person can act on.

>>> fields = {"seq": shared_fields()["seq"], "policy": shared_fields()["policy"]}
>>> read({"seq": "32896", "policy": "pow2"}, fields)
({'seq': 32896, 'policy': 'pow2'}, [])
>>> read({"seq": "-5"}, fields)[1]
['seq is -5 in the address; it must be a whole number from 0 to 1,048,576. Shown: 32,768.']
>>> link("02_layout", {"seq": 32896, "layout": "packed"})
'?file=02_layout.py&seq=32896&layout=packed'
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from c128a.case import PRESETS
from c128a.layout import LAYOUTS
from c128a.width import POLICIES

Value = int | str

MAX_TOKENS = 1_048_576  # the longest context DeepSeek-V4 is served with


@dataclass(frozen=True)
class Integer:
    """A whole number from `least` to `most`."""

    default: int
    least: int
    most: int

    def parse(self, text: str) -> int:
        """The number in the text; raises ValueError for anything else than a number within the bounds.

        >>> Integer(1, 0, 9).parse("7")
        7
        """
        if not re.fullmatch(r"-?[0-9]{1,18}", text) or not self.least <= int(text) <= self.most:
            raise ValueError(f"it must be a whole number from {self.least:,} to {self.most:,}")
        return int(text)


@dataclass(frozen=True)
class Choice:
    """One of a few values, all strings or all whole numbers."""

    default: Value
    options: tuple[Value, ...]

    def parse(self, text: str) -> Value:
        """The option that the text spells; raises ValueError where it spells none.

        >>> Choice(128, (4, 128)).parse("4")
        4
        """
        for option in self.options:
            if str(option) == text:
                return option
        raise ValueError(f"it must be one of {', '.join(map(str, self.options))}")


Field = Integer | Choice


def shared_fields() -> dict[str, Field]:
    """The parameters that mean the same on every page: a fresh dict, for a page to pick from and to add to."""
    return {
        "seq": Integer(32_768, 0, MAX_TOKENS),  # max_seq_len of the batch, tokens
        "model_len": Integer(MAX_TOKENS, 1, MAX_TOKENS),  # max_model_len, tokens: sets the capacity
        "ratio": Choice(128, (4, 128)),  # compress ratio, tokens per entry: C4A and C128A
        "policy": Choice("pow2", POLICIES),
        "layout": Choice("packed", LAYOUTS),
        "preset": Choice("free", ("free", *PRESETS)),
    }


def token_ladder(most: int, *also: int) -> list[int]:
    """Token counts for a slider, ascending: 0, four to an octave from 128 up, and one block past each power of two.

    One block past is where the power-of-two width doubles. `also` adds values of its own; none goes over `most`.

    >>> token_ladder(600, 77)
    [0, 77, 128, 160, 192, 224, 256, 320, 384, 448, 512, 600]
    """
    steps = {0, most, *also}
    for octave in range(7, most.bit_length()):
        steps.update((1 << octave) * quarter // 4 for quarter in range(4, 8))
        steps.add((1 << octave) + 128)
    return sorted(step for step in steps if step <= most)


def read(params: Mapping[str, object], fields: Mapping[str, Field]) -> tuple[dict[str, Any], list[str]]:
    """The value of each field, and a note for each value that could not be used.

    params: what the URL held, a string or a list of strings (the last one counts) a name; names without a field are
    left alone. A preset in the URL sets the fields it names, and a value written beside it wins over the preset.
    """
    found = {name: str(raw[-1] if isinstance(raw, list | tuple) else raw) for name, raw in params.items() if raw != []}
    values: dict[str, Any] = {}
    notes = []
    for name in sorted(fields, key=lambda name: name != "preset"):  # the preset first: it moves the other defaults
        field = fields[name]
        preset = PRESETS.get(str(values.get("preset")))
        default = preset.values.get(name, field.default) if preset else field.default
        values[name] = default
        if name in found:
            try:
                values[name] = field.parse(found[name])
            except ValueError as wrong:
                shown = f"{default:,}" if isinstance(default, int) else default
                notes.append(f"{name} is {found[name]} in the address; {wrong}. Shown: {shown}.")
    return {name: values[name] for name in fields}, notes


def link(page: str, values: Mapping[str, Value], *, only: Iterable[str] | None = None) -> str:
    """The address of another page of the workbook, relative to this one, carrying the values along.

    page: the notebook's file name without its suffix. `only` keeps the named values. `marimo run notebooks` finds a
    page by the `file` parameter; a page exported to WASM lies in a file of its own.

    >>> link("01_width", {"seq": 5, "stride": 9}, only=("seq",))
    '?file=01_width.py&seq=5'
    """
    if os.environ.get("C128A_SITE"):
        return f"{page}.html"
    keep = {name: value for name, value in values.items() if only is None or name in only}
    if sys.platform == "emscripten":
        return f"{page}.html" + (f"?{urlencode(keep)}" if keep else "")
    return "?" + urlencode({"file": f"{page}.py", **keep})
