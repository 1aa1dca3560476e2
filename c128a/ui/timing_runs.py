"""Recorded runs for page 04, brought to one shape whether they were made here or taken over. Torch-free.

>>> from c128a.records import load
>>> runs = gather([load("elsewhere")])
>>> runs.builder.cell("p8192", 32_768, "warm")["row_loop_fixed"]["us"], runs.builder.caches(), runs.builder.forerunner
(62.3, ['warm'], True)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from c128a.layout import ITEMSIZE
from c128a.records import Record
from c128a.width import loop_trips

RATIO = 128  # tokens per entry in every recorded run
CAPACITY = 8192  # columns, that of a model length of 1,048,576 tokens
ENTRIES_PER_BLOCK = 2  # 256 tokens a KV block; a live decode cell needs half a table entry of 4 bytes
LENGTHS = (4_096, 32_768, 131_072, 1_048_576)  # tokens, those of the bench

Row = dict[str, Any]


@dataclass(frozen=True)
class Batch:
    """Decode rows and prefill tokens of a step; `short` is the length of all requests but one, where they differ."""

    title: str
    decode: int
    prefill: int
    short: int | None = None

    @property
    def rows(self) -> int:
        """Rows of a build."""
        return self.decode + self.prefill


BATCHES = {
    "d1": Batch("1 decode row", 1, 0),
    "d32": Batch("32 decode rows", 32, 0),
    "d256": Batch("256 decode rows", 256, 0),
    "d1024": Batch("1,024 decode rows", 1024, 0),
    "p2048": Batch("2,048 prefill rows", 0, 2048),
    "p8192": Batch("8,192 prefill rows", 0, 8192),
    "mixed": Batch("64 decode + 4,096 prefill rows", 64, 4096),
    "one_long": Batch("256 decode rows, one long", 256, 0, 4_096),
}
# Names in the figures from elsewhere, which were measured with forerunners of the kernels here.
_FORERUNNERS = {
    "tiled_prototype": "tiled",
    "from_positions_prototype": "from_positions",
    "from_positions_prototype_live_prefix": "from_positions_live",
}


@dataclass(frozen=True)
class Run:
    """The rows of one sheet and the record they come from; empty where no record has the sheet."""

    record: Record | None
    rows: tuple[Row, ...]

    @property
    def forerunner(self) -> bool:
        """Whether the new kernels of this run are prototypes of those of this package."""
        return any(row["forerunner"] for row in self.rows)

    def caches(self) -> list[str]:
        """States of L2 in which this run measured: warm, and cold where it did."""
        return [cache for cache in ("warm", "cold") if any(row["cache"] == cache for row in self.rows)]

    def of(self, batch: str, cache: str) -> list[Row]:
        """The rows of a batch, by length."""
        kept = [row for row in self.rows if row["batch"] == batch and row["cache"] == cache]
        return sorted(kept, key=lambda row: row["seq"])

    def cell(self, batch: str, seq: int, cache: str) -> dict[str, Row]:
        """The rows of one cell by variant; the empty kernel of another cell where this one has none of its own."""
        empty = {row["variant"]: row for row in self.rows if row["kernel"] == "empty" and row["batch"] is None}
        return empty | {row["variant"]: row for row in self.of(batch, cache) if row["seq"] == seq}


@dataclass(frozen=True)
class Runs:
    """What the page draws: one run for each sheet."""

    builder: Run
    combine: Run
    host: Run


def gather(records: Sequence[Record]) -> Runs:
    """The run of each sheet: of this repository's own the one with the most rows, the first of equals; else elsewhere.

    Raises ValueError where no record holds builder rows.
    """
    runs = Runs(*(_run(records, sheet) for sheet in ("builder", "combine", "host")))
    if not runs.builder.rows:
        raise ValueError(f"records are {[record.name for record in records]}; none of them holds builder rows")
    return runs


def _run(records: Sequence[Record], sheet: str) -> Run:
    kernels = {"builder": ("builder", "empty", "loads")}.get(sheet, (sheet,))
    held = [
        (record, [row for row in record.rows if row.get("kernel") in kernels and _known(row)]) for record in records
    ]
    held = [(record, rows) for record, rows in held if rows]
    if not held:
        return Run(None, ())
    record, rows = max(held, key=lambda one: (not one[0].elsewhere, len(one[1])))
    rows.sort(key=lambda row: row["sheet"] != sheet)  # a cell that stands on two sheets: the sheet's own figure counts
    found: dict[tuple[Any, ...], Row] = {}
    for row in map(normal, rows):
        found.setdefault((row["batch"], row["seq"], row["cache"], row["variant"]), row)
    return Run(record, tuple(found.values()))


def _known(row: Mapping[str, Any]) -> bool:
    if row["kernel"] in ("empty", "host"):
        return True
    return _key(row) is not None


def _key(row: Mapping[str, Any]) -> str | None:
    batch = (row.get("decode"), row.get("prefill"), row.get("short_seq_len"))
    return next((key for key, b in BATCHES.items() if (b.decode, b.prefill, b.short) == batch), None)


def normal(row: Mapping[str, Any]) -> Row:
    """A recorded row under the names of this page, with what follows from its width filled in where it is missing."""
    variant = str(row["variant"])
    if row["kernel"] == "empty":
        variant = "empty"
    new: Row = {
        "kernel": row["kernel"],
        "variant": _FORERUNNERS.get(variant, variant),
        "forerunner": variant in _FORERUNNERS,
        "batch": _key(row),
        "seq": row.get("max_seq_len"),
        "cache": row.get("cache", "warm"),
        "us": row.get("us", row.get("us_low")),
        "p20": row.get("p20", row.get("us_low")),
        "p80": row.get("p80", row.get("us_high")),
        "prediction": row.get("prediction"),  # where one more process's median is expected: low, high
        "width": row.get("width"),
        "ranged": "us_low" in row,  # a range without samples: us is its lower end
        "device": row.get("device"),
    }
    if new["batch"] is not None:
        batch, width = BATCHES[new["batch"]], row["width"]
        empty = row["kernel"] in ("empty", "loads")
        columns = width if row["kernel"] != "combine" else row.get("out_width", -(-(width + 128) // 128) * 128)
        new["bytes"] = row.get("bytes", 0 if empty else batch.rows * columns * ITEMSIZE)
        new["trips"] = loop_trips(width) if variant.startswith("row_loop") else None
        scale = 1.0 if row["kernel"] == "combine" else floor_scale(batch, row["max_seq_len"], width)
        new["floor_scale"] = row.get("floor_scale", scale)
    return new


def floor_scale(batch: Batch, seq: int, width: int) -> float:
    """Bytes that must be moved over bytes written: live decode cells need table entries, prefill cells nothing.

    >>> floor_scale(BATCHES["d1"], 4_096, 128), floor_scale(BATCHES["p8192"], 4_096, 128)
    (1.125, 1.0)
    """
    long = min(1, batch.decode) if batch.short else batch.decode
    live = long * min(seq // RATIO, width) + (batch.decode - long) * min((batch.short or 0) // RATIO, width)
    return 1 + live / ENTRIES_PER_BLOCK / (batch.rows * width)
