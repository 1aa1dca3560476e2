"""Write the results of README.md from the records in data/: `python scripts/readme_results.py` (--check compares)."""

import re
import sys
from pathlib import Path
from statistics import geometric_mean
from string import Template
from typing import Any

from c128a.account.step import times_faster
from c128a.bench import records

RESULTS = Path(__file__).with_name("results.md")
README = RESULTS.parents[1] / "README.md"
START, END = "<!-- results, by scripts/readme_results.py -->", "<!-- end of results -->"
BUILDER_CELLS = ["1+0@32768", "256+0@1048576", "0+8192@32768", "0+8192@1048576", "64+4096@32768"]
COMBINE_CELLS = ["0+2048@32768", "0+8192@8192", "0+8192@32768", "0+8192@131072", "0+8192@1048576"]
BUILDER = {"row_loop_fixed": "row loop, fixed", "row_loop_adaptive": "row loop, adaptive", "tiled_serial": "tiled"}
BUILDER |= {"fill": "fill of the same bytes"}
COMBINE = {"from_rows_fixed": "from rows, fixed", "from_rows_adaptive": "from rows, adaptive", "vllm": "vLLM 0.34"}
COMBINE |= {"from_positions_serial": "from positions", "fill": "fill"}
REGIMES = {  # of the L2, and whether a launch may begin before the one before it has ended
    f"{cache}, {how}": {"cache": cache, "overlap": how == "overlapping"}
    for cache in ("cold", "warm")
    for how in ("apart", "overlapping")
}
STEP_CELLS = [(1, 32_768), (8, 131_072), (32, 32_768), (128, 131_072), (1, 1_048_576)]  # requests, context


def markdown(head: list[str], lines: list[list[str]]) -> str:
    """A table in which all columns but the first are numbers."""
    drawn = [f"| {' | '.join(line)} |" for line in (head, *lines)]
    return "\n".join([drawn[0], f"|---|{'---:|' * (len(head) - 1)}", *drawn[1:]])


def times(title: str, record: str, cells: list[str], columns: dict[str, str]) -> str:
    """Some cells of some variants, in microseconds with a cold L2."""
    rows = records.rows(record=record, cache="cold", layout=["packed", ""], short_seq_len=0)
    of = rows.pivot(index="cell", columns="variant", values="us")
    lines = []
    for cell in cells:
        counts, length = cell.split("@")
        kinds = zip(counts.split("+"), ("decode", "prefill"), strict=True)
        batch = " + ".join(f"{int(count):,} {kind}" for count, kind in kinds if int(count))
        lines.append([f"{batch} at {int(length):,}", *map("{:.2f}".format, of.loc[cell, list(columns)])])
    return markdown([f"{title}, µs", *columns.values()], lines)


def faster(*forms: str, **regime: Any) -> str:
    """How much faster, as `times_faster` counts it: the geometric mean over all cells, and the least."""
    ratios = times_faster(*forms, **regime)
    return f"{geometric_mean(ratios):.2f} × (least {ratios.min():#.3g} ×)"


def regimes() -> str:
    """How much faster, in each regime."""
    compared = {"`tiled` over the adaptive row loop": ("h200-builder", "tiled", "row_loop_adaptive")}
    others = {"our writing of the released combine": "from_rows_adaptive"}
    others |= {f"the combine of {name} {of}": name for name, of in records.provenance("h200-combine")["peers"].items()}
    for words, form in others.items():
        compared[f"`from_positions` over {words}"] = ("h200-combine", "from_positions", form)
    lines = [
        [words, str(len(times_faster(*forms))), *(faster(*forms, **regime) for regime in REGIMES.values())]
        for words, forms in compared.items()
    ]
    return markdown(["times faster: geometric mean (least)", "cells", *REGIMES], lines)


def steps() -> str:
    """A prefill step of 8,192 tokens in a model of 31 C128A layers."""
    rows = records.rows(record="h200-step", layers=31, cache=["cold", ""])
    of = rows.set_index(["kernel", "requests", "max_seq_len", "variant"])[["launches", "us"]].sort_index()
    head = ["all combines of a step", "launches: vLLM 0.34", "once", "GPU µs: vLLM", "ours, every layer", "once"]
    lines = []
    for requests, context in STEP_CELLS:
        gpu, host = (of.loc[kernel, requests, context] for kernel in ("step", "step host"))
        figures = [f"{gpu['launches'][name]:,}" for name in ("vllm", "once")]
        figures += [f"{gpu['us'][name]:,.1f}" for name in ("vllm", "every_layer", "once")]
        figures += [f"{host['us'][name]:,.0f}" for name in ("vllm", "once", "once_planned")]
        lines.append([f"requests: {requests}, context {context:,}", *figures])
    return markdown([*head, "host µs: vLLM", "once", "and its plan"], lines)


def ranks() -> dict[str, str]:
    """How much longer decode rows of one rank take than whole rows of as many columns, by the form of the table."""
    us = records.rows(record="h200-ranks").pivot_table("us", "cell", "variant")
    found = {"rank_cells": str(len(us))}
    for name, form in (("own", "own table"), ("runs", "turns of 64"), ("pairs", "turns of 2")):
        ratios = us[f"rank 1 of 8, {form}"] / us["tiled"]
        found[name] = f"{geometric_mean(ratios):.2f} × (most {ratios.max():.2f} ×)"
    return found


def host() -> dict[str, str]:
    """What one call costs the host."""
    costs = records.rows(record="h200-host").set_index("variant").itertuples()
    of = {row.Index: f"{row.us:.0f} µs ({row.low:.0f}–{row.high:.0f})" for row in costs}
    build, combine, new = "build_c128a_topk_metadata", "combine_step_indices", ", sizes not seen before"
    found = {"build": of[build], "new_build": of[build + new], "joined": of[combine], "new_joined": of[combine + new]}
    return found | {"empty": of["empty kernel, Triton's ordinary launch"]}


def results() -> str:
    """The tables and what they come to, in the words of results.md."""
    builder, combine = ("h200-builder", "tiled", "row_loop_adaptive"), ("h200-combine", "from_positions", "vllm")
    return Template(RESULTS.read_text(encoding="utf-8").rstrip()).substitute(
        ranks() | host(),
        builder=times("builder, once a step", "h200-builder", BUILDER_CELLS, BUILDER),
        builder_cells=len(times_faster(*builder)),
        builder_faster=faster(*builder),
        combine=times("prefill combine, once a C128A layer", "h200-combine", COMBINE_CELLS, COMBINE),
        combine_cells=len(times_faster(*combine)),
        combine_faster=faster(*combine),
        regimes=regimes(),
        steps=steps(),
    )


def main() -> int:
    """Write the results into the README, or with --check say whether they are there already."""
    text = README.read_text(encoding="utf-8")
    made = re.sub(f"(?<={START}\n\n).*(?=\n\n{END})", lambda _: results(), text, flags=re.S)
    if "--check" in sys.argv:
        return int(made != text)
    README.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
