"""The kernel times that the step account needs, picked from a record. Torch-free.

A record may hold many kernels; each form the account asks for is one series of measured points.

>>> from c128a.records import load
>>> times = KernelTimes.from_record(load("elsewhere"))
>>> times.combine_fixed.at(8192, 32_768, 8192).us, times.combine.at(8192, 32_768, 256).us
(90.6, 13.2)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

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
    def from_record(cls, record: Record) -> KernelTimes:
        """The series of a record; one it does not hold stays empty, and asking it is refused."""

        def series(
            name: str, along: Literal["width", "max_seq_len"], tokens: str, takes: Callable[[Mapping[str, Any]], bool]
        ) -> Series:
            points = (
                Point(row[tokens], row["max_seq_len"], row["width"], float(row["us"]))
                for row in record.rows
                if "us" in row and "width" in row and takes(row)
            )
            return Series(f"{name} ({record.title})", tuple(points), along)

        def builder(variant: str, rows: str) -> Callable[[Mapping[str, Any]], bool]:
            other = "decode" if rows == "prefill" else "prefill"
            return lambda row: (
                row.get("kernel") == "builder" and row["variant"] == variant and row[rows] > 0 and row[other] == 0
            )

        def combine(variant: str) -> Callable[[Mapping[str, Any]], bool]:
            return lambda row: row.get("kernel") == "combine" and row["variant"] == variant

        return cls(
            record.title,
            series("builder at fixed width", "max_seq_len", "prefill", builder("row_loop_fixed", "prefill")),
            series("builder", "width", "prefill", builder("row_loop_adaptive", "prefill")),
            series("decode builder at fixed width", "max_seq_len", "decode", builder("row_loop_fixed", "decode")),
            series("decode builder", "width", "decode", builder("row_loop_adaptive", "decode")),
            series("combine at fixed width", "max_seq_len", "prefill", combine("from_rows_fixed")),
            series("combine", "width", "prefill", combine("from_rows_adaptive")),
            series("combine from positions", "width", "prefill", combine("from_positions_prototype")),
        )
