"""Recorded runs: the JSON files of data/, found wherever the package lies, and checked. Torch-free.

A record is one run: where it comes from and what it measured.

    {"provenance": {"gpu": …, "driver": …, …}, "rows": [{…}, {…}, …]}

Records are evidence. `elsewhere.json` holds figures that this repository did not measure itself, and says so.

>>> record = load("elsewhere")
>>> record.elsewhere, record.provenance["gpu"]
(True, 'NVIDIA H200')
"""

from __future__ import annotations

import json
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ELSEWHERE = "elsewhere"


@dataclass(frozen=True)
class Record:
    """One run: a name (the file's, without .json), its provenance, and one dict a measured row."""

    name: str
    provenance: Mapping[str, Any]
    rows: tuple[Mapping[str, Any], ...]

    @property
    def elsewhere(self) -> bool:
        """Whether these figures were taken over from another place."""
        return self.provenance.get("kind") == ELSEWHERE

    @property
    def title(self) -> str:
        """A few words for a caption: what ran, or that it is from elsewhere."""
        gpu = self.provenance.get("gpu", "unknown device")
        return f"figures from elsewhere, {gpu}" if self.elsewhere else f"{self.name}, {gpu}"

    def where(self, **wanted: Any) -> list[Mapping[str, Any]]:
        """The rows whose fields equal all of `wanted`, in the file's order.

        >>> [row["us"] for row in load("elsewhere").where(kernel="empty")]
        [0.82]
        """
        return [row for row in self.rows if all(row.get(field) == value for field, value in wanted.items())]


def folder() -> Path:
    """The folder of the records: beside the package in a checkout, under share/c128a in an installation.

    Raises FileNotFoundError that names the places looked at.
    """
    checkout = Path(__file__).resolve().parents[1] / "data"
    places = [checkout, Path(sysconfig.get_path("data")) / "share" / "c128a" / "data"]
    for place in places:
        if (place / f"{ELSEWHERE}.json").is_file():
            return place
    raise FileNotFoundError(f"no {ELSEWHERE}.json in {' or '.join(str(place) for place in places)}")


def names() -> list[str]:
    """Names of all records, sorted.

    A browser cannot list a folder: `make site` writes the names beside the records. Without, only ELSEWHERE is known.
    """
    if sys.platform == "emscripten":
        try:
            return list(json.loads(_served("names")))
        except (OSError, ValueError):  # no such file, or the page that a server sends in its stead
            return [ELSEWHERE]
    return sorted(path.stem for path in folder().glob("*.json"))


def load(name: str) -> Record:
    """One record, checked.

    Raises FileNotFoundError for a name that does not exist and ValueError for a file of another shape.
    """
    if sys.platform == "emscripten":
        text = _served(name)
    else:
        path = folder() / f"{name}.json"
        if not path.is_file():
            raise FileNotFoundError(f"name is {name!r}; the records are {', '.join(names())}")
        text = path.read_text(encoding="utf-8")
    return parse(name, text)


def _served(name: str) -> str:
    """A file of data/ as an exported page finds it: beside the page, behind the web server."""
    import marimo
    from pyodide.http import open_url  # type: ignore[import-not-found]

    return str(open_url(f"{marimo.notebook_location()}/public/data/{name}.json").read())


def load_all() -> list[Record]:
    """Every record: this repository's own first, the figures from elsewhere last, each group by name."""
    return sorted((load(name) for name in names()), key=lambda record: (record.elsewhere, record.name))


def parse(name: str, text: str) -> Record:
    """A record from the text of its file.

    Raises ValueError that names the record and what is wrong with it.

    >>> parse("mine", '{"provenance": {"gpu": "H200"}, "rows": []}')
    Traceback (most recent call last):
        ...
    ValueError: record mine: rows must be a list of at least one object
    """
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"record {name}: not JSON: {error}") from error
    provenance = data.get("provenance") if isinstance(data, dict) else None
    if not isinstance(provenance, dict) or not provenance.get("gpu"):
        raise ValueError(f"record {name}: provenance must be an object that names at least the gpu")
    rows = data.get("rows")
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise ValueError(f"record {name}: rows must be a list of at least one object")
    return Record(name, provenance, tuple(rows))
