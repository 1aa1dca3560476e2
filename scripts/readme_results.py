"""Write the results of README.md from the records in data/: `python scripts/readme_results.py` (--check compares)."""

import sys
from pathlib import Path
from statistics import geometric_mean

import pandas as pd

from c128a.bench import records

README = Path(__file__).resolve().parents[1] / "README.md"
START, END = "<!-- results, by scripts/readme_results.py -->", "<!-- end of results -->"
BUILDER_CELLS = ["1+0@32768", "256+0@1048576", "0+8192@32768", "0+8192@1048576", "64+4096@32768"]
COMBINE_CELLS = ["0+2048@32768", "0+8192@8192", "0+8192@32768", "0+8192@131072", "0+8192@1048576"]
BUILDER = {"row_loop_fixed": "row loop, fixed", "row_loop_adaptive": "row loop, adaptive", "tiled": "tiled"}
BUILDER |= {"fill": "fill of the same bytes"}
COMBINE = {"from_rows_fixed": "from rows, fixed", "from_rows_adaptive": "from rows, adaptive"}
COMBINE |= {"from_positions": "from positions", "fill": "fill"}
STEP_CELLS = [(1, 32_768), (8, 131_072), (32, 32_768), (128, 131_072), (1, 1_048_576)]  # requests, context


def times(sheet: str) -> pd.DataFrame:
    """Warm microseconds, a row a cell and a column a variant; packed, and without batches of several lengths."""
    rows = records.rows(record=f"h200-{sheet}", cache="warm", layout=["packed", ""], short_seq_len=0)
    return rows.pivot(index="cell", columns="variant", values="us")


def table(title: str, of: pd.DataFrame, cells: list[str], columns: dict[str, str]) -> str:
    """Some cells of some variants as Markdown."""
    lines = [f"| {title}, µs | {' | '.join(columns.values())} |", f"|---|{'---:|' * len(columns)}"]
    for cell in cells:
        rows, length = cell.split("@")
        kinds = zip(rows.split("+"), ("decode", "prefill"), strict=True)
        words = " + ".join(f"{int(count):,} {kind}" for count, kind in kinds if int(count))
        times_us = " | ".join(f"{us:.2f}" for us in of.loc[cell, list(columns)])
        lines.append(f"| {words} at {int(length):,} | {times_us} |")
    return "\n".join(lines)


def step_table() -> str:
    """A prefill step of 8,192 tokens in a model of 31 C128A layers, as Markdown."""
    rows = records.rows(record="h200-step", layers=31, cache=["warm", ""])
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


def results() -> str:
    """The tables and what they come to."""
    builder, combine = times("builder"), times("combine")
    host = records.rows(record="h200-host").set_index("variant")
    costs = {name: f"{row.us:.0f} µs ({row.low:.0f}–{row.high:.0f})" for name, row in host.iterrows()}
    gains, serial = (builder["row_loop_adaptive"] / builder[variant] for variant in ("tiled", "tiled_serial"))
    released = combine["from_rows_adaptive"]
    saved, alone = (released / combine[name] for name in ("from_positions", "from_positions_serial"))
    versions = records.provenance("h200-combine")["peers"]
    peers = {name: combine[name] / combine["from_positions"] for name in versions}
    others = [
        f"{name} {versions[name]} {geometric_mean(of):.2f} × (least {of.min():.2f} ×)" for name, of in peers.items()
    ]
    return f"""{table("builder, once a step", builder, BUILDER_CELLS, BUILDER)}

{table("prefill combine, once a C128A layer", combine, COMBINE_CELLS, COMBINE)}

Over {len(gains)} cells `tiled` is {geometric_mean(gains):.2f} × the adaptive row loop (geometric mean; \
least {gains.min():.2f} ×), and {geometric_mean(serial):.2f} × without the overlap of launches (least \
{serial.min():.2f} ×); its tile shapes were tuned on these cells. The combine from positions is \
{geometric_mean(saved):.2f} × our writing of the released form (least {saved.min():.2f} ×), and \
{geometric_mean(alone):.2f} × without the overlap of launches (least {alone.min():.2f} ×). The combines of other \
engines take, in the same run on the same inputs: {", ".join(others)}.

{step_table()}

That is a prefill step of 8,192 tokens in a model of 31 C128A layers, as eager launches.

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
