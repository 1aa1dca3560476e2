"""The one runner for every timing: `python -m c128a.bench`. Prints a table and writes one JSON record.

    python -m c128a.bench builder --out data/h200-builder.json      a sheet of cases.py: builder, host, ranks or tiles
    python -m c128a.bench combine --out data/h200-combine.json      a sheet of combines.py: combine or step
    python -m c128a.bench combine --peers FOLDER                    the same beside other engines, from unpacked wheels
    python -m c128a.bench builder --cell 0,8192,32768               one cell: decode rows, prefill tokens, length
    python -m c128a.bench builder --compare package.module:function another function with the report's signature
    python -m c128a.bench trace FILE                                what index rows cost in a run of yours: profile.py

Each cell is checked against the reference on the very inputs that are timed. The whole is measured anew in several
fresh processes, since a time differs more from process to process than within one. Exit status: 1 where there is no
GPU, 2 for arguments, a file or a module that cannot be used, and for a run that was interrupted.
"""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from functools import partial
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import pandas as pd

from c128a import backend
from c128a.bench import cases, combines, peers, records, timing
from c128a.bench.cases import Row, Timed
from c128a.bench.provenance import clocks, provenance
from c128a.case import MAX_MODEL_LEN, Case
from c128a.tiles import tile_shape

Measured = tuple[Row, list[float]]  # what was timed, and its samples in one process, in microseconds
RESERVED = 4 * 2**20  # bytes; the longest record so far has less than half of that


def measure(asked: Namespace) -> tuple[list[Measured], dict[str, str]]:
    """Measure once what the options ask for, in this process, on the current GPU; and its clocks right after."""
    found: list[Measured] = []

    def take(timed: list[Timed], times: Callable[..., timing.Samples], how: Mapping[str, Any], **more: str) -> None:
        samples = times([each.call for each in timed], repeats=asked.repeats, **how)
        found.extend(({**each.facts, **more}, own) for each, own in zip(timed, samples, strict=True))

    if asked.sheet == "host":
        take(cases.host(), timing.host_times, {})
        return found, clocks()
    others = peers.find(asked.peers) if asked.peers else {}
    compared = _function(asked.compare) if asked.compare else None
    sheets: dict[str, tuple[list[Case], Callable[[Case], list[Timed]]]] = {
        "builder": (cases.CELLS, partial(cases.builder, compare=compared)),
        "tiles": (cases.CELLS, cases.tiles),
        "ranks": (cases.RANK_CELLS, cases.ranks),
        "combine": (combines.COMBINE_CELLS, partial(combines.combine, others=others)),
        "step": (combines.STEP_CELLS, partial(combines.step, others=others)),
    }
    cells, make = sheets[asked.sheet]
    for case in asked.cell or cells:
        timed = make(case)
        if asked.sheet == "step":
            take(timed, timing.host_times, {"batch": 1}, kernel="step host")
            timed = [each for each in timed if each.in_graph]
        take(timed, timing.warm_times, {"in_graph": [each.in_graph for each in timed]}, cache="warm")
        if cold := [each for each in timed if each.cold and not asked.no_cold]:
            take(cold, timing.cold_times, {}, cache="cold")
    return found, clocks()


def in_fresh_processes(asked: Namespace) -> tuple[list[Row], dict[str, str]]:
    """Measure in several processes, one after another, and pool what they found; and the clocks after the last."""
    runs: list[list[Measured]] = []
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        for at in range(asked.processes):
            start = time.monotonic()
            measured, clock = pool.submit(measure, asked).result()
            runs.append(measured)
            print(f"process {at + 1} of {asked.processes}: {time.monotonic() - start:.0f} s", flush=True)
    return pooled(runs), clock


def pooled(runs: Sequence[Sequence[Measured]]) -> list[Row]:
    """One row a measurement from the runs of several processes, which measured the same in the same order."""
    rows = []
    for measured in zip(*runs, strict=True):
        every, samples = zip(*measured, strict=True)
        facts = every[0]
        if any(other != facts for other in every):
            raise ValueError(f"the processes measured different things: {every}")
        resolution = timing.RESOLUTION_US[facts.get("cache", "host")]
        rows.append(facts | timing.summary(samples) | timing.prediction(samples, resolution))
    return rows


PAIRS = {"builder": ("row_loop_adaptive", "tiled"), "combine": ("from_rows_adaptive", "from_positions")}
OPTIONS = {"cell": ("builder", "tiles", "combine"), "compare": ("builder",), "peers": ("combine", "step")}  # of sheets


def summary(rows: Sequence[Row]) -> str:
    """The table printed last: in every cell the new form against the released one and against the floor."""
    found = pd.DataFrame(rows)
    found["one more process"] = [f"{row['low']:.2f}-{row['high']:.2f}" for row in rows]
    sheet = found["sheet"].iloc[0]
    if sheet == "host":
        return found[["variant", "us", "one more process"]].to_string(index=False)
    if sheet in ("step", "ranks"):
        cell = ["cell", "layers", "kernel"] if sheet == "step" else "cell"
        return found.pivot_table("us", cell, "variant", sort=False).to_string(float_format="{:.2f}".format)
    warm = found[found["cache"] == "warm"].drop_duplicates(["cell", "layout", "variant"])
    if sheet == "tiles":
        return "\n".join(f"{cell:34} {_fastest(shapes)}" for cell, shapes in warm.groupby("cell", sort=False))
    of = {variant: times.set_index(["cell", "layout"]) for variant, times in warm.groupby("variant")}
    base, new = PAIRS[sheet]
    table = of[new][["width"]].assign(**{base: of[base]["us"], new: of[new]["us"]})
    table["floor"] = of["fill"]["us"] * of[new]["scale"]
    table["ratio"], table["to floor"] = table[base] / table[new], table[new] / table["floor"]
    table["one more process"] = of[new]["one more process"]
    lines = [table.reset_index().to_string(index=False, float_format="{:.2f}".format)]
    for layout, ratios in table.groupby("layout", sort=False)["ratio"]:
        said = f"geometric mean {geometric_mean(ratios):.2f}, least {ratios.min():.2f}, {len(ratios)} cells"
        lines.append(f"{layout} {base} / {new}: {said}".strip())
    return "\n".join(lines)


def _fastest(shapes: pd.DataFrame) -> str:
    shapes = shapes[shapes["variant"] != "fill"].sort_values("us")
    first = shapes.iloc[0]
    shape = tile_shape(int(first["decode"] + first["prefill"]), int(first["width"]))
    chosen = shapes["us"][shapes["tile"].map(tuple) == shape].iloc[0]
    best = [f"{row['variant']} {row['us']:.2f} ({row['one more process']})" for _, row in shapes.head(3).iterrows()]
    return f"{chosen:6.2f}, {chosen / first['us']:.2f} × the fastest: {', '.join(best)}"


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    parser = ArgumentParser(prog="python -m c128a.bench", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("sheet", choices=["builder", "combine", "step", "host", "ranks", "tiles"])
    cell = "only this cell (repeatable)"
    parser.add_argument("--cell", action="append", type=_cell, metavar="DECODE,PREFILL,LENGTH", help=cell)
    parser.add_argument("--processes", type=int, default=8, help="fresh processes that measure it all (default 8)")
    parser.add_argument("--repeats", type=int, default=9, help="samples a measurement and process (default 9)")
    parser.add_argument("--no-cold", action="store_true", help="leave out the measurements with a cold L2")
    parser.add_argument("--compare", metavar="MODULE:FUNCTION", help="time a function with the report's signature too")
    parser.add_argument("--peers", type=Path, metavar="FOLDER", help="time the combines of unpacked wheels too")
    parser.add_argument("--out", type=Path, help="write the record here")
    asked = parser.parse_args(argv)
    least, most = timing.PROCESSES
    if not least <= asked.processes <= most:
        parser.error(f"--processes is {asked.processes}; it must be between {least} and {most}: fewer show no spread")
    if asked.repeats < 3:
        parser.error(f"--repeats is {asked.repeats}; it must be at least 3")
    for option, sheets in OPTIONS.items():
        if getattr(asked, option) and asked.sheet not in sheets:
            parser.error(f"--{option} is given, and the sheet is {asked.sheet}; it is for {' and '.join(sheets)}")
    if asked.cell and asked.sheet == "combine":
        if any(case.num_decode_tokens for case in asked.cell):
            parser.error("--cell has decode rows; the combine has prefill tokens alone: 0,PREFILL,LENGTH")
        asked.cell = [combines.chunk(case.num_tokens, case.max_seq_len) for case in asked.cell]
    for option, use in (("compare", _function), ("peers", peers.find)):
        given = getattr(asked, option)
        try:
            if given:
                use(given)
        except ValueError as error:
            parser.error(f"--{option} is '{given}': {error}")
    if backend.INTERPRET or not backend.HAS_GPU:
        print(f"{parser.prog} needs an NVIDIA GPU: interpreted kernels have no meaningful times", file=sys.stderr)
        return 1
    try:
        run(asked)
    except (KeyboardInterrupt, OSError, timing.GpuBusyError) as error:
        print(f"{parser.prog}: {str(error) or 'interrupted'}; nothing was written", file=sys.stderr)
        return 2
    return 0


def _cell(text: str) -> Case:
    """The cell DECODE,PREFILL,LENGTH; raises ArgumentTypeError where it is none."""
    try:
        decode, prefill, length = (int(part) for part in text.split(","))
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not three integers, DECODE,PREFILL,LENGTH") from None
    if decode < 0 or prefill < 0 or decode + prefill == 0 or not 1 <= length <= MAX_MODEL_LEN:
        raise ArgumentTypeError(f"{text!r} needs a row, and a length of 1 to {MAX_MODEL_LEN}")
    return Case.mixed(decode, prefill, length)


def _function(name: str) -> cases.Build:
    """The function MODULE:FUNCTION; raises ValueError where there is none."""
    module, _, function = name.partition(":")
    try:
        found = getattr(import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"it must be MODULE:FUNCTION: {error}") from None
    if not callable(found):
        raise ValueError(f"it must be MODULE:FUNCTION, and is {type(found).__name__}")
    return found


def run(asked: Namespace) -> None:
    """Measure, print the table, write the record, whose file is opened first of all."""
    with records.whole_file(asked.out, reserve=RESERVED) if asked.out else nullcontext() as file:
        facts = provenance(" ".join(["python -m c128a.bench", *sys.argv[1:]]))
        facts |= {"processes": asked.processes, "repeats": asked.repeats}
        if asked.peers:
            facts["peers"] = {name: peer.version for name, peer in peers.find(asked.peers).items()}
        with timing.device_lock(timeout_s=60):
            rows, clock = in_fresh_processes(asked)
        facts |= {f"{name}_after": value for name, value in clock.items() if name != "driver"}
        print(summary(rows))
        if file:
            file.write(records.as_text(facts, rows))
    if asked.out:
        print(f"wrote {asked.out}: {len(rows)} rows")
