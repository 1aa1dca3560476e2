"""The one runner for every timing: `python -m c128a.bench`. Prints a table and writes one JSON record.

    python -m c128a.bench builder --out data/h200-builder.json      the 28 cells of the baseline and "one long"
    python -m c128a.bench combine --out data/h200-combine.json      the prefill combine, both forms
    python -m c128a.bench host --out data/h200-host.json            host time of one build, part by part
    python -m c128a.bench builder --cell 0,8192,32768               one cell: decode rows, prefill tokens, length
    python -m c128a.bench builder --compare package.module:function another function with the report's signature

Each cell is checked against the reference on the very inputs that are timed. A record is a dict of provenance and one
row a measurement; the names of its fields are those of c128a.records.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from c128a import backend, timing
from c128a.bench_cases import CELLS, COMBINE_CELLS, BuilderCase, Cell, CombineCase, host_calls
from c128a.provenance import clocks, command_line, provenance

Row = dict[str, Any]


def builder_rows(cells: Iterable[Cell], *, cold: bool, repeats: int, compare: Callable[..., Any] | None) -> list[Row]:
    """Time the builder's kernels in each cell."""
    rows: list[Row] = []
    for cell in cells:
        case = BuilderCase(cell, compare)
        case.check()
        rows += _measure(case.describe, case.launches(), cold=cold, repeats=repeats)
        _report(rows[-len(case.launches()) * (2 if cold else 1) :])
    return rows


def combine_rows(cells: Iterable[tuple[int, int]], *, cold: bool, repeats: int) -> list[Row]:
    """Time both forms of the combine in each cell of (tokens, max_seq_len)."""
    rows: list[Row] = []
    for tokens, length in cells:
        case = CombineCase(tokens, length)
        case.check()
        rows += _measure(case.describe, case.launches(), cold=cold, repeats=repeats)
        _report(rows[-len(case.launches()) * (2 if cold else 1) :])
    return rows


def host_rows() -> list[Row]:
    """Time what the host pays for one build, as a whole and part by part."""
    rows = []
    for name, sample in timing.host_times(host_calls()).items():
        rows.append({"sheet": "host", "kernel": "host", "variant": name, **sample.summary()})
        print(f"{name:60} {rows[-1]['us']:8.2f} µs  [{rows[-1]['p20']:.2f}, {rows[-1]['p80']:.2f}]", flush=True)
    return rows


def _measure(
    describe: Callable[[str], Row], launches: dict[str, Callable[[], object]], *, cold: bool, repeats: int
) -> list[Row]:
    rows = []
    runs = {"warm": timing.kernel_times} | ({"cold": timing.cold_times} if cold else {})
    for cache, measure in runs.items():
        for variant, sample in measure(launches, repeats=repeats).items():
            rows.append({**describe(variant), "cache": cache, **sample.summary()})
    return rows


def _report(rows: list[Row]) -> None:
    first = rows[0]
    times = "  ".join(f"{row['variant']} {row['us']:.2f}" for row in rows if row["cache"] == "warm")
    print(f"{first['decode']:5} {first['prefill']:5} {first['max_seq_len']:8,}  {times}", flush=True)


PAIRS = {"builder": ("row_loop_adaptive", "tiled"), "combine": ("from_rows_adaptive", "from_positions")}


def summary(rows: list[Row]) -> str:
    """The table printed last: in every cell the new form against the released one and against the floor."""
    base, new = PAIRS[rows[0]["sheet"]]
    warm = [row for row in rows if row["cache"] == "warm"]
    titles = ("decode", "prefill", "length", "width", base, new, "floor", "ratio", "to floor")
    lines = ["  ".join(f"{title:>9}" for title in titles)]
    ratios = []
    for cell in dict.fromkeys(row["cell"] for row in warm):
        by = {row["variant"]: row for row in warm if row["cell"] == cell}
        row, before, floor = by[new], by[base]["us"], by["fill"]["us"] * by[new]["floor_scale"]
        ratios.append(before / row["us"])
        numbers = [f"{row[name]:,}" for name in ("decode", "prefill", "max_seq_len", "width")]
        numbers += [f"{value:.2f}" for value in (before, row["us"], floor, ratios[-1], row["us"] / floor)]
        lines.append(
            "  ".join(f"{number:>{max(9, len(title))}}" for number, title in zip(numbers, titles, strict=True))
        )
    mean, least = timing.geometric_mean(ratios), min(ratios)
    lines.append(f"{base} / {new}: geometric mean {mean:.2f}, least {least:.2f}, {len(ratios)} cells")
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    """Run the command line; the exit status is 1 where there is no GPU and 2 for bad arguments."""
    parser = argparse.ArgumentParser(prog="python -m c128a.bench", description=__doc__.split("\n")[0])
    parser.add_argument("sheet", choices=["builder", "combine", "host"])
    parser.add_argument("--cell", action="append", metavar="DECODE,PREFILL,LENGTH", help="only this cell (repeatable)")
    parser.add_argument("--repeats", type=int, default=21, help="samples a measurement (default 21)")
    parser.add_argument("--no-cold", action="store_true", help="leave out the cold-L2 measurements")
    parser.add_argument(
        "--compare", metavar="MODULE:FUNCTION", help="time another function with the report's signature"
    )
    parser.add_argument("--out", type=Path, help="write the record here")
    options = parser.parse_args(argv)
    if options.repeats < 3:
        parser.error(f"--repeats is {options.repeats}; it must be at least 3")
    cells = [_cell(parser, text) for text in options.cell or []]
    if backend.INTERPRET or not backend.HAS_GPU:
        print(
            "python -m c128a.bench needs an NVIDIA GPU: interpreted kernels have no meaningful times", file=sys.stderr
        )
        return 1
    compare = None
    if options.compare:
        module, _, function = options.compare.partition(":")
        compare = getattr(import_module(module), function)

    facts = provenance(command_line("c128a.bench"))
    with timing.gpu_lock(timeout_s=60):
        if options.sheet == "builder":
            rows = builder_rows(cells or CELLS, cold=not options.no_cold, repeats=options.repeats, compare=compare)
        elif options.sheet == "combine":
            wanted = [(cell.prefill, cell.max_seq_len) for cell in cells]
            rows = combine_rows(wanted or COMBINE_CELLS, cold=not options.no_cold, repeats=options.repeats)
        else:
            rows = host_rows()
    facts |= {f"{name}_after": value for name, value in clocks().items() if name != "driver"}
    if options.sheet != "host":
        print(summary(rows))
    if options.out:
        options.out.write_text(json.dumps({"provenance": facts, "rows": rows}, indent=1, ensure_ascii=False) + "\n")
        print(f"wrote {options.out}: {len(rows)} rows")
    torch.cuda.synchronize()
    return 0


def _cell(parser: argparse.ArgumentParser, text: str) -> Cell:
    try:
        decode, prefill, length = (int(part) for part in text.split(","))
    except ValueError:
        parser.error(f"--cell is {text!r}; it must be three integers, DECODE,PREFILL,LENGTH")
    if decode < 0 or prefill < 0 or decode + prefill == 0 or length < 1:
        parser.error(f"--cell is {text!r}; it needs a row and a length of at least 1")
    return Cell(decode, prefill, length)


if __name__ == "__main__":
    sys.exit(main())
