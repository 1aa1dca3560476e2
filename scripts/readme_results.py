"""Write the results of README.md from the records in data/: `python scripts/readme_results.py` (--check compares)."""

import sys
from pathlib import Path
from statistics import geometric_mean

from c128a import records

README = Path(__file__).resolve().parents[1] / "README.md"
START, END = "<!-- results, by scripts/readme_results.py -->", "<!-- end of results -->"
BUILDER_CELLS = ["1+0@32768", "256+0@1048576", "0+8192@32768", "0+8192@1048576", "64+4096@32768"]
COMBINE_CELLS = ["2048@32768", "8192@8192", "8192@32768", "8192@131072", "8192@1048576"]


def table() -> str:
    """The results as Markdown."""
    builder, combine = _warm("h200-builder"), _warm("h200-combine")
    host = {row["variant"]: row["us"] for row in records.load("h200-host").rows}
    cells = [cell for cell in dict.fromkeys(cell for cell, _ in builder) if "but for one" not in cell]
    gains = [builder[cell, "row_loop_adaptive"]["us"] / builder[cell, "tiled"]["us"] for cell in cells]
    serial = [builder[cell, "row_loop_adaptive"]["us"] / builder[cell, "tiled_serial"]["us"] for cell in cells]
    combine_cells = list(dict.fromkeys(cell for cell, _ in combine))
    saved = [
        combine[cell, "from_rows_adaptive"]["us"] / combine[cell, "from_positions"]["us"] for cell in combine_cells
    ]
    lines = ["| builder, once a step, µs | row loop, fixed | row loop, adaptive | tiled | fill of the same bytes |"]
    lines.append("|---|---:|---:|---:|---:|")
    for cell in BUILDER_CELLS:
        row = builder[cell, "tiled"]
        rows = " + ".join(f"{row[kind]:,} {kind}" for kind in ("decode", "prefill") if row[kind])
        times = [builder[cell, name]["us"] for name in ("row_loop_fixed", "row_loop_adaptive", "tiled", "fill")]
        lines.append(f"| {rows} at {row['max_seq_len']:,} | " + " | ".join(f"{us:.2f}" for us in times) + " |")
    lines += [
        "",
        "| prefill combine, once a C128A layer, µs | from rows, fixed | from rows, adaptive | from positions | fill |",
    ]
    lines.append("|---|---:|---:|---:|---:|")
    for cell in COMBINE_CELLS:
        row = combine[cell, "from_positions"]
        times = [
            combine[cell, name]["us"] for name in ("from_rows_fixed", "from_rows_adaptive", "from_positions", "fill")
        ]
        lines.append(
            f"| {row['prefill']:,} tokens at {row['max_seq_len']:,} | " + " | ".join(f"{us:.2f}" for us in times) + " |"
        )
    cost, ordinary = host["build_c128a_topk_metadata"], host["row loop, Triton's ordinary launch alone"]
    lines += [
        "",
        f"Over {len(gains)} cells `tiled` is {geometric_mean(gains):.2f} × the adaptive row loop (geometric mean; "
        f"least {min(gains):.2f} ×), and {geometric_mean(serial):.2f} × without the overlap of launches (least "
        f"{min(serial):.2f} ×); its tile shapes were tuned on these cells. "
        f"The combine from positions is {geometric_mean(saved):.2f} × our writing of the "
        f"released form (least {min(saved):.2f} ×).",
        f"One build costs the host {cost:.0f} µs, checks and views included; the row loop's launch alone "
        f"{ordinary:.0f} µs.",
    ]
    return "\n".join(lines)


def _warm(name: str) -> dict:
    return {(row["cell"], row["variant"]): row for row in records.load(name).rows if row.get("cache") == "warm"}


def main() -> int:
    """Write the table into the README, or with --check say whether it is there already."""
    text = README.read_text(encoding="utf-8")
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    made = f"{before}{START}\n\n{table()}\n\n{END}{after}"
    if "--check" in sys.argv:
        return int(made != text)
    README.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
