"""Write the results of README.md from the records in data/: `python scripts/readme_results.py` (--check compares)."""

import sys
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from c128a.account.step import times_faster
from c128a.bench import records

README = Path(__file__).resolve().parents[1] / "README.md"
START, END = "<!-- results, by scripts/readme_results.py -->", "<!-- end of results -->"
BUILDER_CELLS = ["1+0@32768", "256+0@1048576", "0+8192@32768", "0+8192@1048576", "64+4096@32768"]
COMBINE_CELLS = ["0+2048@32768", "0+8192@8192", "0+8192@32768", "0+8192@131072", "0+8192@1048576"]
BUILDER = {"row_loop_fixed": "row loop, fixed", "row_loop_adaptive": "row loop, adaptive", "tiled_serial": "tiled"}
BUILDER |= {"fill": "fill of the same bytes"}
COMBINE = {"from_rows_fixed": "from rows, fixed", "from_rows_adaptive": "from rows, adaptive", "vllm": "vLLM 0.34"}
COMBINE |= {"from_positions_serial": "from positions", "fill": "fill"}
REGIMES = {  # of the L2, and whether a launch may begin before the one before it has ended
    "cold, apart": {"cache": "cold", "overlap": False},
    "cold, overlapping": {"cache": "cold", "overlap": True},
    "warm, apart": {"cache": "warm", "overlap": False},
    "warm, overlapping": {"cache": "warm", "overlap": True},
}
STEP_CELLS = [(1, 32_768), (8, 131_072), (32, 32_768), (128, 131_072), (1, 1_048_576)]  # requests, context


def table(title: str, record: str, cells: list[str], columns: dict[str, str]) -> str:
    """Some cells of some variants as Markdown, in microseconds with a cold L2."""
    rows = records.rows(record=record, cache="cold", layout=["packed", ""], short_seq_len=0)
    of = rows.pivot(index="cell", columns="variant", values="us")
    lines = [f"| {title}, µs | {' | '.join(columns.values())} |", f"|---|{'---:|' * len(columns)}"]
    for cell in cells:
        counts, length = cell.split("@")
        kinds = zip(counts.split("+"), ("decode", "prefill"), strict=True)
        words = " + ".join(f"{int(count):,} {kind}" for count, kind in kinds if int(count))
        times_us = " | ".join(f"{us:.2f}" for us in of.loc[cell, list(columns)])
        lines.append(f"| {words} at {int(length):,} | {times_us} |")
    return "\n".join(lines)


def faster(*forms: str, **regime: Any) -> str:
    """How much faster, as `times_faster` counts it: the geometric mean over all cells, and the least."""
    ratios = times_faster(*forms, **regime)
    return f"{geometric_mean(ratios):.2f} × (least {ratios.min():#.3g} ×)"


def regimes() -> str:
    """How much faster, in each regime, as Markdown."""
    peers = records.provenance("h200-combine")["peers"]
    own = "`from_positions` over "
    compared = {"`tiled` over the adaptive row loop": ("h200-builder", "tiled", "row_loop_adaptive")}
    compared[f"{own}our writing of the released combine"] = ("h200-combine", "from_positions", "from_rows_adaptive")
    for name, version in peers.items():
        compared[f"{own}the combine of {name} {version}"] = ("h200-combine", "from_positions", name)
    lines = [f"| times faster: geometric mean (least) | cells | {' | '.join(REGIMES)} |", f"|---|{'---:|' * 5}"]
    for words, forms in compared.items():
        found = [faster(*forms, **regime) for regime in REGIMES.values()]
        lines.append(f"| {words} | {len(times_faster(*forms))} | {' | '.join(found)} |")
    return "\n".join(lines)


def step_table() -> str:
    """A prefill step of 8,192 tokens in a model of 31 C128A layers, as Markdown."""
    rows = records.rows(record="h200-step", layers=31, cache=["cold", ""])
    of = rows.set_index(["kernel", "requests", "max_seq_len", "variant"])[["launches", "us"]].sort_index()
    columns = ["launches: vLLM 0.34", "once", "GPU µs: vLLM", "ours, every layer", "once"]
    columns += ["host µs: vLLM", "once", "and its plan"]
    lines = [f"| all combines of a step | {' | '.join(columns)} |", f"|---|{'---:|' * len(columns)}"]
    for requests, context in STEP_CELLS:
        gpu, host = (of.loc[kernel, requests, context] for kernel in ("step", "step host"))
        figures = [f"{gpu['launches'][name]:,}" for name in ("vllm", "once")]
        figures += [f"{gpu['us'][name]:,.1f}" for name in ("vllm", "every_layer", "once")]
        figures += [f"{host['us'][name]:,.0f}" for name in ("vllm", "once", "once_planned")]
        lines.append(f"| requests: {requests}, context {context:,} | {' | '.join(figures)} |")
    return "\n".join(lines)


def ranks() -> str:
    """What decode rows of one rank cost beside whole rows of as many columns, as a sentence."""
    times = records.rows(record="h200-ranks").pivot_table("us", "cell", "variant")
    ratios = times.div(times["tiled"], axis=0)
    mean = {name: f"{geometric_mean(of):.2f} × (most {of.max():.2f} ×)" for name, of in ratios.items()}
    own, runs, pairs = (mean[f"rank 1 of 8, {form}"] for form in ("own table", "turns of 64", "turns of 2"))
    return (
        f"Decode rows of a rank of eight cost {own} the time of whole rows of as many columns, in {len(times)} cells, "
        f"where the block table lists the rank's own blocks. With a table of all blocks, {runs} in turns of 64 "
        f"entries and {pairs} in turns of 2, whose block numbers lie eight apart in the table (warm, overlapping)."
    )


def results() -> str:
    """The tables and what they come to."""
    host = records.rows(record="h200-host").set_index("variant")
    costs = {name: f"{row.us:.0f} µs ({row.low:.0f}–{row.high:.0f})" for name, row in host.iterrows()}
    builder, combine = ("h200-builder", "tiled", "row_loop_adaptive"), ("h200-combine", "from_positions", "vllm")
    return f"""With a cold L2 and launches apart, the builder's kernel `tiled` is faster than the adaptive row loop by \
{faster(*builder)}, the geometric mean of {len(times_faster(*builder))} cells; the combine from positions is faster \
than that of vLLM 0.34 by {faster(*combine)}, in {len(times_faster(*combine))} cells. This regime is the nearest to \
serving: an engine runs the builder once a step and a combine once a layer, after kernels that move far more than the \
60 MB of the L2, and with none of their own kind before them. The tables are of this regime.

{table("builder, once a step", "h200-builder", BUILDER_CELLS, BUILDER)}

{table("prefill combine, once a C128A layer", "h200-combine", COMBINE_CELLS, COMBINE)}

A benchmark that launches one kernel again and again has a warm L2, and launches that overlap. All four regimes:

{regimes()}

The tile shapes were tuned on these cells, warm and overlapping. Other engines' combines ran in the same run on the \
same inputs.

{step_table()}

That is a prefill step of 8,192 tokens in a model of 31 C128A layers, as eager launches, after the L2 was emptied once.

{ranks()}

One call costs the host, checks and views included (in brackets: between which times the median of one more process \
lies): a build of sizes seen before {costs["build_c128a_topk_metadata"]}, of new sizes \
{costs["build_c128a_topk_metadata, sizes not seen before"]}; a combine {costs["combine_step_indices"]}, of new sizes \
{costs["combine_step_indices, sizes not seen before"]}. Beside them Triton's ordinary launch of an empty kernel takes \
{costs["empty kernel, Triton's ordinary launch"]}. Host times of one run compare, those of two machines do not."""


def main() -> int:
    """Write the results into the README, or with --check say whether they are there already."""
    text = README.read_text(encoding="utf-8")
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    made = f"{before}{START}\n\n{results()}\n\n{END}{after}"
    if "--check" in sys.argv:
        return int(made != text)
    README.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
