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


def results() -> str:
    """The tables and what they come to."""
    builder, combine = times("builder"), times("combine")
    host = records.rows(record="h200-host").set_index("variant")["us"]
    gains, serial = (builder["row_loop_adaptive"] / builder[variant] for variant in ("tiled", "tiled_serial"))
    build, launch = (host[name] for name in ("build_c128a_topk_metadata", "row loop, Triton's ordinary launch alone"))
    saved = combine["from_rows_adaptive"] / combine["from_positions"]
    return f"""{table("builder, once a step", builder, BUILDER_CELLS, BUILDER)}

{table("prefill combine, once a C128A layer", combine, COMBINE_CELLS, COMBINE)}

Over {len(gains)} cells `tiled` is {geometric_mean(gains):.2f} × the adaptive row loop (geometric mean; \
least {gains.min():.2f} ×), and {geometric_mean(serial):.2f} × without the overlap of launches (least \
{serial.min():.2f} ×); its tile shapes were tuned on these cells. The combine from positions is \
{geometric_mean(saved):.2f} × our writing of the released form (least {saved.min():.2f} ×).
One build costs the host {build:.0f} µs, checks and views included; the row loop's launch alone {launch:.0f} µs."""


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
