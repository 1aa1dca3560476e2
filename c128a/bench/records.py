"""Recorded runs as one table: every row of every JSON file in data/, checked, under one set of columns. Torch-free.

A file is an object of `provenance` (where, when and how it was made), `rows` (the times, with the fields below) and
`findings` (what has no time: outcomes of tests, say). Records are evidence. Figures that this repository did not
measure itself are those of elsewhere.json.

>>> rows(record="elsewhere", kernel="empty")["us"].tolist(), provenance("elsewhere")["gpu"]
([0.82], 'NVIDIA H200')

A row of the table has the name of its file (record), "recorded" by this repository or "elsewhere" (source), the card
(gpu), and FIELDS. Rows at the fixed width lie alike in both layouts: they were measured once, and stand as "packed".
"""

from __future__ import annotations

import json
import math
import os
import reprlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import resources
from pathlib import Path
from typing import IO, Any, NamedTuple

import pandas as pd

from c128a.layout import LAYOUTS
from c128a.width import POLICIES

ELSEWHERE = "elsewhere"
IN_A_CELL = ("cell", "max_seq_len", "capacity", "policy", "width", "cache")  # never missing but for WITHOUT_CELL
WITHOUT_CELL = ("host", "step host", "empty")  # kernels that need not be timed in a cell, or not with a cache
MOST = 2**63  # a number is smaller: the table holds 64 bits


class Record(NamedTuple):
    """One file, checked: provenance, the table of its rows, and its findings."""

    provenance: Mapping[str, Any]
    rows: pd.DataFrame
    findings: tuple[Mapping[str, Any], ...]


class Field(NamedTuple):
    """What a field of a row must be, in words and as a check, and what stands where it is missing."""

    must_be: str
    check: Callable[[Any], bool]
    missing: Any = None  # None: it may not be missing


def _number(value: Any, least: float = -MOST, kind: Any = (int, float)) -> bool:
    # Neither NaN nor an infinity, which JSON as Python reads it can hold, lies between the two.
    return isinstance(value, kind) and not isinstance(value, bool) and least <= value < MOST


def _list(value: Any, holds: Callable[[Any], bool]) -> bool:
    return isinstance(value, list) and all(map(holds, value))


def _one_of(*words: str, missing: str | None = None) -> Field:
    return Field(f"one of {', '.join(words)}", lambda value: isinstance(value, str) and value in words, missing)


_OBJECT = Field("an object", lambda value: isinstance(value, dict))
_OBJECTS = Field("a list of objects", lambda value: _list(value, _OBJECT.check))
_NAME = Field("a text that is not empty", lambda value: isinstance(value, str) and value != "")
_COUNT = Field("a whole number of at least 0", lambda value: _number(value, 0, int), 0)
_TIME = Field("a number of at least 0", lambda value: _number(value, 0), math.nan)

FIELDS: dict[str, Field] = {
    "sheet": _one_of("builder", "combine", "step", "host", "ranks", "tiles", "consumers"),  # consumers read index rows
    "kernel": _NAME,
    "variant": _NAME,  # its form
    "cell": _NAME._replace(missing=""),  # decode rows + prefill rows @ max_seq_len
    **dict.fromkeys(("decode", "prefill", "requests"), _COUNT),  # rows of either kind; requests
    **dict.fromkeys(("max_seq_len", "short_seq_len"), _COUNT),  # tokens of the longest; of all others, where shorter
    "capacity": _COUNT,  # columns of the buffers
    "policy": _one_of(*POLICIES, missing=""),
    "layout": _one_of(*LAYOUTS, missing=""),
    **dict.fromkeys(("width", "out_width", "trips"), _COUNT),  # columns built; of a combined row; trips of a row loop
    **dict.fromkeys(("layers", "launches"), _COUNT),  # of a whole step: layers that combine; kernels launched
    "tile": Field("a list of rows, columns and warps", lambda own: _list(own, _COUNT.check) and len(own) == 3, ()),
    "bytes": _COUNT,  # that the kernel writes
    "scale": Field("a number of at least 1", lambda value: _number(value, 1), math.nan),  # all it moves, over that
    "cache": _one_of("warm", "cold", missing=""),  # L2
    "us": Field("a number over 0", lambda value: _number(value, 0) and value != 0),  # the median, in microseconds
    **dict.fromkeys(("p20", "p80"), _TIME),  # percentiles
    **dict.fromkeys(("low", "high"), _TIME),  # where the median of one more process lies with 99 % certainty
    "samples": Field("a list of lists of numbers", lambda every: _list(every, lambda own: _list(own, _number)), ()),
}
COLUMNS = ("record", "source", "gpu", *FIELDS)
HEAD = {  # of the provenance; the records of this repository have them all, another must name its card
    **dict.fromkeys(("gpu", "driver", "torch", "triton", "commit", "source_hash", "date", "command"), _NAME),
    "dirty": Field("true or false", lambda value: isinstance(value, bool)),
    **dict.fromkeys(("processes", "repeats"), _COUNT),
}


def rows(**wanted: Any) -> pd.DataFrame:
    """The rows of all records that can be read in which each column named has the value wanted, or one of a list.

    Raises ValueError for a column that does not exist.

    >>> rows(record="elsewhere", sheet="consumers", kernel="combine", width=[256, 1024])["us"].tolist()
    [13.2, 40.2]
    """
    kept = _all(folder())[1].copy()
    for column, value in wanted.items():
        if column not in COLUMNS:
            raise ValueError(f"{column!r} is no column; the columns are {', '.join(COLUMNS)}")
        kept = kept[kept[column].isin(value if isinstance(value, list) else [value])]
    return kept.reset_index(drop=True)


def provenance(name: str) -> dict[str, Any]:
    """Where, when and how a record was made; raises what is wrong with it, FileNotFoundError where there is none."""
    found = _all(folder())[0]
    record = found.get(name) or FileNotFoundError(f"name is {name!r}; the records are {', '.join(found)}")
    if isinstance(record, Exception):
        raise record
    return dict(record.provenance)


def findings(name: str) -> list[dict[str, Any]]:
    """What a record holds beside times, in the file's order; nothing where it cannot be read.

    >>> [row["compiled_variants"] for row in findings("elsewhere") if row["sheet"] == "variants"]
    [1, 3, 4, 5]
    """
    record = _all(folder())[0].get(name)
    return [dict(row) for row in record.findings] if isinstance(record, Record) else []


def problems() -> list[str]:
    """Of each record that cannot be read, what is wrong with it, in a sentence; `rows` goes on without it."""
    return [str(found) for found in _all(folder())[0].values() if isinstance(found, Exception)]


def names() -> list[str]:
    """Names of all records, readable or not: this repository's own first, by name, then those from elsewhere."""
    return list(_all(folder())[0])


def folder() -> Path:
    """The folder of the records: within the package where it was installed, beside it in a checkout.

    Raises FileNotFoundError that names the places looked at.
    """
    if sys.platform == "emscripten":
        return Path("public", "data")  # beside the page, behind the web server: see `_text`
    places = (Path(str(resources.files("c128a")), "data"), Path(__file__).resolve().parents[2] / "data")
    for place in places:
        if (place / f"{ELSEWHERE}.json").is_file():
            return place
    raise FileNotFoundError(f"no {ELSEWHERE}.json in {' or '.join(map(str, places))}")


@cache
def _all(place: Path) -> tuple[dict[str, Record | Exception], pd.DataFrame]:
    """Every record by its name, or what is wrong with it, and the table of those that can be read."""
    if sys.platform == "emscripten":
        try:  # a browser cannot list a folder: `make site` writes the names beside the records
            every = json.loads(_text(place, "names"))
        except (OSError, ValueError):  # no such file, or the page that a server sends in its stead
            every = [ELSEWHERE]
    else:
        every = [file.stem for file in place.glob("*.json")]
    found: dict[str, Record | Exception] = {}
    for name in sorted(every, key=lambda name: (name == ELSEWHERE, name)):
        try:
            found[name] = parse(name, _text(place, name))
        except ValueError as error:
            found[name] = error
        except OSError as error:  # a link to nothing, a file that may not be read
            found[name] = OSError(f"record {name}: {error}")
    tables = [each.rows for each in found.values() if isinstance(each, Record) and len(each.rows)]
    return found, pd.concat(tables or [pd.DataFrame(columns=list(COLUMNS))], ignore_index=True)


def _text(place: Path, name: str) -> bytes | str:
    if sys.platform != "emscripten":
        return (place / f"{name}.json").read_bytes()
    import marimo
    from pyodide.http import open_url  # type: ignore[import-not-found]

    return str(open_url(f"{marimo.notebook_location()}/{place}/{name}.json").read())


def parse(name: str, text: bytes | str) -> Record:
    """A record from the content of its file.

    Raises ValueError that names the record, the row (counted from 1) and the field, what it was and what it must be.

    >>> parse("mine", '{"provenance": {"gpu": "H200"}, "rows": [{"sheet": "host", "kernel": "host", "variant": "x"}]}')
    Traceback (most recent call last):
        ...
    ValueError: record mine, row 1: us is missing; it must be a number over 0
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"record {name}: not JSON: {str(error) or 'nested too deeply'}") from None
    where = f"record {name}"
    content = _checked(where, {"it": data}, "it", _OBJECT)
    head = _checked(where, content, "provenance", _OBJECT)
    for fact, field in HEAD.items():
        if fact in {"gpu", *head}:
            _checked(f"{where}, provenance", head, fact, field)
    rows, findings = (_checked(where, {part: []} | content, part, _OBJECTS) for part in ("rows", "findings"))
    if not rows and not findings:
        raise ValueError(f"{where}: rows and findings are empty; one of them must hold an object")
    first = {"record": name, "source": ELSEWHERE if name == ELSEWHERE else "recorded", "gpu": head["gpu"]}
    table = [first | _row(f"{where}, row {at}", row) for at, row in enumerate(rows, 1)]
    return Record(head, pd.DataFrame(table, columns=list(COLUMNS)), tuple(findings))


def _row(where: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a row, each checked, and what stands for those that are missing."""
    for name in row:
        if name not in FIELDS:
            raise ValueError(f"{where}: {reprlib.repr(name)} is not a field; the fields are {', '.join(FIELDS)}")
    full: dict[str, Any] = {}
    for name, field in FIELDS.items():
        needed = field.missing is None or (name in IN_A_CELL and row.get("kernel") not in WITHOUT_CELL)
        full[name] = _checked(where, row, name, field) if needed or name in row else field.missing
    return full | {"tile": tuple(full["tile"]), "samples": tuple(map(tuple, full["samples"]))}


def _checked(where: str, fields: Mapping[str, Any], name: str, field: Field) -> Any:
    if name not in fields:
        raise ValueError(f"{where}: {name} is missing; it must be {field.must_be}")
    value = fields[name]
    if not field.check(value):
        raise ValueError(f"{where}: {name} is {reprlib.repr(value)}; it must be {field.must_be}")  # it may be long
    return value


def as_text(
    provenance: Mapping[str, Any], rows: Iterable[Mapping[str, Any]] = (), findings: Iterable[Mapping[str, Any]] = ()
) -> str:
    """A record as the content of its file, one line a row; a field that does not apply is left out.

    >>> print(as_text({"gpu": "H200"}, [{"sheet": "host", "kernel": "host", "variant": "x", "trips": 0, "us": 2.5}]))
    {"provenance": {
     "gpu": "H200"
    },
    "rows": [
    {"sheet": "host", "kernel": "host", "variant": "x", "us": 2.5}
    ]}
    <BLANKLINE>
    """
    parts = [f'"provenance": {json.dumps(provenance, indent=1, ensure_ascii=False)}']
    missing = {name: field.missing for name, field in FIELDS.items()}
    short = [{name: value for name, value in row.items() if value != missing.get(name)} for row in rows]
    for name, lines in (("rows", short), ("findings", findings)):
        if text := ",\n".join(json.dumps(line, ensure_ascii=False) for line in lines):
            parts.append(f'"{name}": [\n{text}\n]')
    return "{" + ",\n".join(parts) + "}\n"


@contextmanager
def whole_file(path: Path, *, reserve: int = 0) -> Iterator[IO[str]]:
    """A text file to write that takes the place of `path` when the block ends, and is gone when the block fails.

    It is opened, with `reserve` bytes set aside, before the block begins: a place that may not be written and a full
    disk raise OSError at once. A path that is no ordinary file, such as /dev/stdout, is written as it is.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():
        with path.open("w", encoding="utf-8") as file:
            yield file
        return
    if path.exists():
        path.open("a").close()  # raises where it may not be written
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with beside.open("w", encoding="utf-8") as file:
            if reserve and hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, reserve)
            yield file
            file.truncate()
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
