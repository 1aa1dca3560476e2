"""The one runner for every timing: `python -m c128a.bench`. Prints a table and writes one JSON record.

    python -m c128a.bench builder --out data/h200-builder.json      the 28 cells of the baseline and "one long"
    python -m c128a.bench combine --out data/h200-combine.json      the prefill combine, both forms
    python -m c128a.bench host --out data/h200-host.json            host time of one build, part by part
    python -m c128a.bench tiles --out data/h200-tiles.json          the builder's tile shapes against each other
    python -m c128a.bench builder --cell 0,8192,32768               one cell: decode rows, prefill tokens, length
    python -m c128a.bench builder --compare package.module:function another function with the report's signature

Each cell is checked against the reference on the very inputs that are timed. The whole is measured anew in several
fresh processes, since a time differs more from process to process than within one; `prediction` in a row is where the
median of one more process lies with 99 % certainty. A record is a dict of provenance and one row a measurement; the
names of its fields are those of c128a.records.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from c128a import backend, timing
from c128a.bench_cases import CELLS, COMBINE_CELLS, BuilderCase, Cell, CombineCase, TileCase, host_calls
from c128a.provenance import clocks, command_line, provenance
from c128a.timing import Pooled, Sample

Row = dict[str, Any]
Measured = tuple[Row, Sample]  # what was timed, and its samples in one process


@dataclass(frozen=True)
class Work:
    """What one process measures; `cells` is empty for all of the sheet."""

    sheet: str
    cells: tuple[Cell, ...]
    repeats: int
    cold: bool
    compare: str | None = None


def measure(work: Work) -> tuple[list[Measured], dict[str, str]]:
    """Measure everything once, in this process, on the current GPU; and its clocks right after."""
    return list(_host(work) if work.sheet == "host" else _kernels(work)), clocks()


def _kernels(work: Work) -> Iterator[Measured]:
    runs: dict[str, Callable[..., dict[str, Sample]]] = {"warm": partial(timing.kernel_times, passes=1)}
    if work.cold:
        runs["cold"] = timing.cold_times
    for case in _cases(work):
        case.check()
        launches = case.launches()
        for cache, timed in runs.items():
            for variant, sample in timed(launches, repeats=work.repeats).items():
                yield {**case.describe(variant), "cache": cache}, sample


def _cases(work: Work) -> Iterator[BuilderCase | CombineCase | TileCase]:
    if work.sheet == "combine":
        wanted = [(cell.prefill, cell.max_seq_len) for cell in work.cells]
        yield from (CombineCase(tokens, length) for tokens, length in wanted or COMBINE_CELLS)
    elif work.sheet == "tiles":
        yield from (TileCase(cell) for cell in work.cells or CELLS)
    else:
        module, _, function = (work.compare or "").partition(":")
        compare = getattr(import_module(module), function) if module else None
        yield from (BuilderCase(cell, compare) for cell in work.cells or CELLS)


def _host(work: Work) -> Iterator[Measured]:
    for name, sample in timing.host_times(host_calls(), repeats=work.repeats).items():
        yield {"sheet": "host", "kernel": "host", "variant": name}, sample


def in_fresh_processes(work: Work, processes: int) -> tuple[list[Row], dict[str, str]]:
    """Measure in so many processes, one after another, and pool what they found; and the clocks after the last."""
    runs: list[list[Measured]] = []
    pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1)
    with pool:
        for at in range(processes):
            start = time.monotonic()
            measured, clock = pool.submit(measure, work).result()
            runs.append(measured)
            print(f"process {at + 1} of {processes}: {time.monotonic() - start:.0f} s", flush=True)
    return pooled(runs), clock


def pooled(runs: Sequence[Sequence[Measured]]) -> list[Row]:
    """One row a measurement from the runs of several processes, which measured the same in the same order."""
    rows = []
    for measured in zip(*runs, strict=True):
        facts = measured[0][0]
        if any(other != facts for other, _ in measured):
            raise ValueError(f"the processes measured different things: {[other for other, _ in measured]}")
        resolution = timing.RESOLUTION_US[facts.get("cache", "host")]
        rows.append(facts | Pooled(tuple(sample for _, sample in measured), resolution).summary())
    return rows


PAIRS = {"builder": ("row_loop_adaptive", "tiled"), "combine": ("from_rows_adaptive", "from_positions")}


def summary(rows: Sequence[Row]) -> str:
    """The table printed last: in every cell the new form against the released one and against the floor."""
    sheet = rows[0]["sheet"]
    if sheet == "host":
        return "\n".join(f"{row['variant']:60} {row['us']:8.2f} µs, one more process: {_between(row)}" for row in rows)
    warm = [row for row in rows if row["cache"] == "warm"]
    cells = {cell: [row for row in warm if row["cell"] == cell] for cell in dict.fromkeys(row["cell"] for row in warm)}
    if sheet == "tiles":
        return "\n".join(f"{cell:34} {_fastest(of_cell)}" for cell, of_cell in cells.items())
    base, new = PAIRS[sheet]
    titles = ("decode", "prefill", "length", "width", base, new, "floor", "ratio", "to floor", "one more process")
    lines = ["  ".join(f"{title:>9}" for title in titles)]
    ratios = []
    for of_cell in cells.values():
        by = {row["variant"]: row for row in of_cell}
        row, before, floor = by[new], by[base]["us"], by["fill"]["us"] * by[new]["floor_scale"]
        ratios.append(before / row["us"])
        numbers = [f"{row[name]:,}" for name in ("decode", "prefill", "max_seq_len", "width")]
        numbers += [f"{value:.2f}" for value in (before, row["us"], floor, ratios[-1], row["us"] / floor)]
        lines.append(
            "  ".join(
                f"{number:>{max(9, len(title))}}"
                for number, title in zip([*numbers, _between(row)], titles, strict=True)
            )
        )
    mean, least = timing.geometric_mean(ratios), min(ratios)
    lines.append(f"{base} / {new}: geometric mean {mean:.2f}, least {least:.2f}, {len(ratios)} cells")
    return "\n".join(lines)


def _between(row: Row) -> str:
    low, high = row["prediction"]
    return f"{low:.2f}-{high:.2f}"


def _fastest(rows: Sequence[Row]) -> str:
    chosen = next(row["us"] for row in rows if row["chosen"])
    best = sorted(rows, key=lambda row: row["us"])[:3]
    shapes = ", ".join(f"{row['variant']} {row['us']:.2f} ({_between(row)})" for row in best)
    return f"{chosen:6.2f}, {chosen / best[0]['us']:.2f} × the fastest: {shapes}"


def main(argv: list[str] | None = None) -> int:
    """Run the command line; the exit status is 1 where there is no GPU and 2 for bad arguments."""
    parser = argparse.ArgumentParser(prog="python -m c128a.bench", description=__doc__.split("\n")[0])
    parser.add_argument("sheet", choices=["builder", "combine", "host", "tiles"])
    parser.add_argument("--cell", action="append", metavar="DECODE,PREFILL,LENGTH", help="only this cell (repeatable)")
    parser.add_argument("--processes", type=int, default=8, help="fresh processes that measure it all (default 8)")
    parser.add_argument("--repeats", type=int, default=9, help="samples a measurement and process (default 9)")
    parser.add_argument("--no-cold", action="store_true", help="leave out the cold-L2 measurements")
    parser.add_argument(
        "--compare", metavar="MODULE:FUNCTION", help="time another function with the report's signature"
    )
    parser.add_argument("--out", type=Path, help="write the record here")
    options = parser.parse_args(argv)
    most = max(timing.T_99) + 1
    if not 3 <= options.processes <= most:
        parser.error(f"--processes is {options.processes}; it must be between 3 and {most}: fewer show no spread")
    if options.repeats < 3:
        parser.error(f"--repeats is {options.repeats}; it must be at least 3")
    if options.compare and options.sheet != "builder":
        parser.error(f"--compare is {options.compare!r}; only the sheet builder compares")
    cells = tuple(_cell(parser, text) for text in options.cell or [])
    if cells and options.sheet == "host":
        parser.error("--cell is given; the sheet host has one case of its own")
    if options.sheet == "combine" and any(cell.decode or not cell.prefill for cell in cells):
        parser.error(f"--cell is {options.cell}; the combine has prefill tokens alone: 0,PREFILL,LENGTH")
    if backend.INTERPRET or not backend.HAS_GPU:
        print(
            "python -m c128a.bench needs an NVIDIA GPU: interpreted kernels have no meaningful times", file=sys.stderr
        )
        return 1

    cold = not options.no_cold and options.sheet != "tiles"
    work = Work(options.sheet, cells, options.repeats, cold, options.compare)
    facts = provenance(command_line("c128a.bench"))
    facts |= {"processes": options.processes, "repeats": options.repeats}
    with timing.gpu_lock(timeout_s=60):
        rows, clock = in_fresh_processes(work, options.processes)
    facts |= {f"{name}_after": value for name, value in clock.items() if name != "driver"}
    print(summary(rows))
    if options.out:
        options.out.write_text(record_text(facts, rows), encoding="utf-8")
        print(f"wrote {options.out}: {len(rows)} rows")
    return 0


def record_text(facts: Row, rows: Sequence[Row]) -> str:
    """A record as JSON, one line a row."""
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    return f'{{"provenance": {json.dumps(facts, indent=1, ensure_ascii=False)},\n"rows": [\n{lines}\n]}}\n'


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
