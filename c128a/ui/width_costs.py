"""What a width costs, as pictures of page 01: trips, bytes, and the table of reachable widths. Needs marimo."""

from __future__ import annotations

from functools import lru_cache

import altair as alt
import marimo as mo

from c128a.layout import ITEMSIZE, human_bytes
from c128a.ui import page, theme
from c128a.ui.picture import Picture, Spec, frame
from c128a.ui.width_data import BLOCK_SIZES, WidthCase, reach, step_bytes, trips
from c128a.ui.width_view import COLOUR, octaves
from c128a.width import loop_trips


def trips_chart(case: WidthCase) -> Picture:
    """Trips of the row loop at full width and at this width, by the columns a trip takes."""
    lines, ends = [], []
    for block, fixed, chosen, ratio in trips(case).itertuples(index=False):
        text = f"{fixed:,} → {chosen:,}, {ratio:,.3g} × fewer" if fixed > chosen else f"{fixed:,}"
        lines.append({"block": f"{block:,}", "trips": fixed, "to": chosen, "text": text})
        ends.append({"block": f"{block:,}", "trips": fixed, "who": "full width"})
        ends.append({"block": f"{block:,}", "trips": chosen, "who": "this width"})
    return Picture(_trips_frame(case.capacity), lines=lines, ends=ends)


@lru_cache(maxsize=32)
def _trips_frame(capacity: int) -> Spec:
    most = max(2, -(-capacity // BLOCK_SIZES[0]))
    y = alt.Y("block:N", sort=None, axis=alt.Axis(title="columns a trip", ticks=False, domain=False))
    x = alt.X(
        "trips:Q",
        # The labels start at the larger number and need room on the right.
        scale=alt.Scale(type="log", base=2, domain=[0.85, most**1.6], nice=False),
        axis=alt.Axis(title="trips a row", values=octaves(1, most), format=",d"),
    )
    who = ["full width", "this width"]
    lines = alt.Chart(alt.NamedData("lines"))
    return frame(
        alt.layer(
            lines.mark_rule(strokeWidth=2, color=theme.GREY).encode(x=x, x2="to:Q", y=y),
            alt.Chart(alt.NamedData("ends"))
            .mark_point(filled=True, size=90, opacity=1)
            .encode(
                x=x,
                y=y,
                color=alt.Color("who:N", scale=alt.Scale(domain=who, range=[theme.GREY, theme.BLUE])),
                shape=alt.Shape("who:N", scale=alt.Scale(domain=who, range=["square", "circle"])),
            ),
            lines.mark_text(align="left", dx=10, color=theme.INK).encode(x=x, y=y, text="text:N"),
        ).properties(width="container", height=240)
    )


def bytes_chart(case: WidthCase) -> Picture:
    """Bytes of index rows written a step, under each policy."""
    bars = [
        {
            "policy": theme.POLICY_NAME[policy],
            "bytes": size,
            "text": f"{human_bytes(size)} ({width:,} columns)",
        }
        for policy, width, size in step_bytes(case).itertuples(index=False)
    ]
    return Picture(_bytes_frame(max(bar["bytes"] for bar in bars)), bars=bars)


@lru_cache(maxsize=32)
def _bytes_frame(most: int) -> Spec:
    x = alt.X(
        "bytes:Q",
        scale=alt.Scale(domain=[0, most * 1.5], nice=False),
        axis=alt.Axis(title=None, labels=False, ticks=False, grid=False, domain=False),
    )
    y = alt.Y("policy:N", sort=None, axis=alt.Axis(title=None, ticks=False, domain=False))
    bars = alt.Chart(alt.NamedData("bars"))
    return frame(
        alt.layer(
            bars.mark_bar(height=26).encode(x=x, y=y, color=COLOUR.legend(None)),
            bars.mark_text(align="left", dx=6, color=theme.INK).encode(x=x, y=y, text="text:N"),
        ).properties(width="container", height=120)
    )


def reach_table(case: WidthCase) -> mo.Html:
    """The widths the policy can choose, with the sequence lengths that reach each; the row of the case is marked."""
    table = reach(case.model_len, case.ratio, case.policy)
    rows = [
        (
            f"{width:,}",
            f"{first:,} – {last:,}",
            f"{share:.1%}",
            f"{loop_trips(width)}",
            human_bytes(case.rows * width * ITEMSIZE),
        )
        for width, first, last, share in table.itertuples(index=False)
    ]
    return page.table(
        ["width", "tokens", "of all lengths", "trips", "bytes a step"],
        rows,
        marked=table["width"].tolist().index(case.width) if case.fits else None,
        label="Reachable widths",
    )
