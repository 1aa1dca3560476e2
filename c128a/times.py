"""The kernel times that the step account needs, picked from records. Torch-free.

A group of records answers together: a run of the builder and a run of the combine, say. Warm times count, of batches
whose rows have one length; cold ones and mixed batches are for the page of timings.

>>> from c128a.records import load
>>> times = KernelTimes.of([load("elsewhere")])
>>> times.combine_fixed.at(8192, 32_768, 8192).us, times.combine.at(8192, 32_768, 256).us
(90.6, 13.2)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from c128a.measured import Point, Series
from c128a.records import Record


@dataclass(frozen=True)
class KernelTimes:
    """The builder on prefill and on decode rows, the combine per layer: at fixed, at adaptive width, from positions."""

    title: str
    builder_fixed: Series
    builder: Series
    decode_fixed: Series
    decode: Series
    combine_fixed: Series
    combine: Series
    combine_from_positions: Series

    @classmethod
    def of(cls, records: Sequence[Record]) -> KernelTimes:
        """The series of a group of records; one they do not hold stays empty, and asking it is refused."""
        title = titled(records)

        def series(name: str, along: Literal["width", "max_seq_len"], rows: str, kernel: str, *variants: str) -> Series:
            other = "decode" if rows == "prefill" else "prefill"
            points = (
                Point(row[rows], row["max_seq_len"], row["width"], float(row["us"]))
                for record in records
                for row in record.where(kernel=kernel)
                if row["variant"] in variants and row[rows] and not row[other]
                if row.get("cache") != "cold" and not row.get("short_seq_len")
            )
            return Series(f"{name} ({title})", tuple(points), along)

        return cls(
            title,
            series("builder at fixed width", "max_seq_len", "prefill", "builder", "row_loop_fixed"),
            series("builder", "width", "prefill", "builder", "row_loop_adaptive"),
            series("decode builder at fixed width", "max_seq_len", "decode", "builder", "row_loop_fixed"),
            series("decode builder", "width", "decode", "builder", "row_loop_adaptive"),
            series("combine at fixed width", "max_seq_len", "prefill", "combine", "from_rows_fixed"),
            series("combine", "width", "prefill", "combine", "from_rows_adaptive"),
            series(
                "combine from positions", "width", "prefill", "combine", "from_positions", "from_positions_prototype"
            ),
        )

    @property
    def complete(self) -> bool:
        """Whether the records can answer for a step: both kernels, at both widths."""
        return all(s.points for s in (self.builder_fixed, self.builder, self.combine_fixed, self.combine))


def groups(records: Sequence[Record]) -> dict[str, list[Record]]:
    """The groups that can answer for a step, this repository's own runs first: "recorded", then "elsewhere".

    >>> from c128a.records import load_all
    >>> list(groups(load_all()))[-1]
    'elsewhere'
    """
    sorts = {
        "recorded": [record for record in records if not record.elsewhere],
        "elsewhere": [record for record in records if record.elsewhere],
    }
    return {name: members for name, members in sorts.items() if KernelTimes.of(members).complete}


def titled(records: Sequence[Record]) -> str:
    """A few words for a group of records: whether they were recorded here, and on what.

    >>> titled([])
    'no records'
    """
    if not records:
        return "no records"
    cards = " and ".join(sorted({str(record.provenance["gpu"]) for record in records}))
    return f"{'figures from elsewhere' if records[0].elsewhere else 'recorded here'}, {cards}"
