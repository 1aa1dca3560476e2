"""One recorded cell on page 04: the ratios that are not the same, and the cell in numbers. Torch-free."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import altair as alt

from c128a.layout import human_bytes
from c128a.ui import page, theme
from c128a.ui.picture import Picture, Spec, frame
from c128a.ui.timing_data import TimingCase, floor_us
from c128a.ui.timing_runs import BATCHES, CAPACITY, LENGTHS
from c128a.ui.timing_text import VARIANTS, spread, times, us

MEASURES = {  # three numbers that are not the same, and the third one for both kernels
    "columns": ("columns", theme.ORANGE),
    "trips": ("trips", theme.SKY),
    "row loop": ("µs, row loop", theme.KERNEL["row_loop"]),
    "tiles": ("µs, tiles", theme.KERNEL["tiled"]),
}


def ratios_chart(case: TimingCase) -> Picture:
    """Fixed over adaptive at every recorded length: columns, trips, and the time of both kernels."""
    bars = []
    for seq in LENGTHS:
        cell = case.runs.builder.cell(case.batch, seq, case.shown_cache)
        fixed, adaptive = cell.get("row_loop_fixed"), cell.get("row_loop_adaptive")
        if fixed is None or adaptive is None:
            continue
        values = {"columns": CAPACITY / adaptive["width"], "trips": fixed["trips"] / adaptive["trips"]}
        texts = {name: f"{value:,.3g} ×" for name, value in values.items()}
        pairs = {"row loop": (fixed, adaptive), "tiles": (cell.get("tiled_fixed"), cell.get("tiled"))}
        for name, (above, below) in pairs.items():
            if above and below:
                values[name] = above["us"] / below["us"]
                texts[name] = f"{times(above, below)} ×"
        length = f"{'▸ ' if seq == case.at else ''}{seq:,} tokens"
        bars += [
            {"length": length, "measure": MEASURES[name][0], "ratio": value, "one": 1, "text": texts[name]}
            for name, value in values.items()
        ]
    measures = tuple(name for name, _ in MEASURES.values() if any(bar["measure"] == name for bar in bars))
    return Picture(_ratios_frame(tuple(dict.fromkeys(bar["length"] for bar in bars)), measures), bars=bars)


@lru_cache(maxsize=16)
def _ratios_frame(lengths: tuple[str, ...], measures: tuple[str, ...]) -> Spec:
    domain, colours = list(measures), dict(MEASURES.values())
    colour = alt.Color("measure:N", scale=alt.Scale(domain=domain, range=[colours[name] for name in domain]))
    y = alt.Y("length:N", sort=list(lengths), axis=alt.Axis(title=None, ticks=False, domain=False))
    offset = alt.YOffset("measure:N", sort=domain)
    bars = alt.Chart(alt.NamedData("bars"))
    x = alt.X(
        "ratio:Q",
        scale=alt.Scale(type="log", base=2, domain=[0.8, 128], nice=False),
        axis=alt.Axis(title="fixed over adaptive, ×", values=[1, 2, 4, 8, 16, 32, 64], format=",d"),
    )
    return frame(
        alt.layer(
            bars.mark_bar().encode(x=x, x2="one:Q", y=y, yOffset=offset, color=colour, tooltip=["measure:N", "text:N"]),
            bars.mark_text(align="left", dx=5, color=theme.INK, fontSize=11).encode(
                x=x, y=y, yOffset=offset, text="text:N"
            ),
        ).properties(width="container", height=80 * max(1, len(lengths)))
    )


def title(case: TimingCase) -> str:
    """The recorded cell by name.

    >>> from c128a.records import load
    >>> from c128a.ui.timing_runs import gather
    >>> title(TimingCase(gather([load("elsewhere")])))
    '8,192 prefill rows at 32,768 tokens, warm'
    """
    return f"{BATCHES[case.batch].title} at {case.at:,} tokens, {case.shown_cache}"


def cell_table(case: TimingCase) -> Any:
    """The recorded cell in numbers, one variant a line."""
    rows = []
    for variant, row in case.cell.items():
        floor = floor_us(case.cell, row)
        to_floor = "" if floor is None or variant == "fill" else f"{times(row, case.cell['fill'], row['floor_scale'])}"
        width = "" if not row.get("bytes") else f"{row['width']:,}"
        size = human_bytes(row["bytes"]) if row.get("bytes") else ""
        trips = str(row.get("trips") or "")
        name = VARIANTS.get(variant, variant)
        if case.runs.builder.forerunner:
            name = name.replace("tiles", "tiles (prototype)")
        rows.append([name, width, trips, size, us(row), spread(row), to_floor])
    return page.table(
        ["", "width", "trips", "bytes", "µs", "p20 – p80", "× floor"], rows, label="The recorded cell in numbers"
    )


def cell_sentence(case: TimingCase) -> str:
    """What the table shows besides: the tiles at the fixed width, and what overlapping launches save."""
    cell = case.cell
    tiled, serial, fixed = (cell.get(variant) for variant in ("tiled", "tiled_serial", "tiled_fixed"))
    if tiled is None or serial is None or fixed is None:
        return "These figures came without a spread: their last printed digit is all that is known of their accuracy."
    return (
        f"Tiles that may start while the kernel before them ends take {us(tiled)} µs, without that {us(serial)}; at "
        f"the fixed width {us(fixed)}. Each time is shown to about half of the spread of its samples."
    )
