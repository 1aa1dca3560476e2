"""Pictures of the claims about buffers: facts to chart, table or numbers, and a sentence. Torch-free."""

from __future__ import annotations

import altair as alt

from c128a.claims import Facts
from c128a.claims.buffers import REPLAYED
from c128a.ui import review_html, theme
from c128a.ui.picture import Picture, frame
from c128a.ui.review_charts import NAMES, Evidence


def shapes(facts: Facts) -> Evidence:
    """The values of the pull request's test, expected and found."""
    got = facts["got"]
    rows = [(name, str(value), str(got.get(name))) for name, value in facts["expected"].items()]
    return review_html.table(("value", "expected", "got here"), rows), f"Run here: {facts['ran']}."


def bounds(facts: Facts) -> Evidence:
    """Cells marked, changed and left unwritten."""
    return review_html.numbers(
        {
            "cells outside the views, all marked": f"{facts['outside']:,}",
            "of them changed": f"{facts['changed_outside']:,}",
            "cells inside left unwritten": f"{facts['unwritten_inside']:,}",
            "widths over the buffer refused": f"{facts['refused']} of {facts['too_wide']}",
        }
    ), f"Run here: {facts['ran']}."


def test_covers(facts: Facts) -> Evidence:
    """Where the rows of that test lie in either layout."""
    rows = []
    for layout, stride in (("packed", 128), ("pitched", 256)):
        for row in (0, 1):
            rows.append(
                {
                    "layout": layout,
                    "from": row * stride,
                    "to": row * stride + 128,
                    "middle": row * stride + 64,
                    "text": f"row {row}" + ("" if row < facts["rows"] else ": not in the test"),
                    "tested": row < facts["rows"],
                }
            )
    base = alt.Chart(alt.Data(values=rows))
    x = alt.X(
        "from:Q",
        scale=alt.Scale(domain=[0, 392], nice=False),
        axis=alt.Axis(title="flat offset", values=[0, 128, 256, 384]),
    )
    y = alt.Y("layout:N", sort=None, axis=NAMES)
    fill = alt.condition("datum.tested", alt.value(theme.BLUE), alt.value(theme.FAINT))
    ink = alt.condition("datum.tested", alt.value("white"), alt.value(theme.INK))
    picture = alt.layer(
        base.mark_bar(height=30, stroke=theme.GREY).encode(x=x, x2="to:Q", y=y, color=fill),
        base.mark_text(fontSize=12).encode(x=alt.X("middle:Q"), y=y, text="text:N", color=ink),
    ).properties(width="container", height=100)
    return Picture(
        frame(picture)
    ), "The only row of the test lies at offset 0 in both layouts; the second row would not."


def addresses(facts: Facts) -> Evidence:
    """Which row a frozen reader finds for each it asks for."""
    rows = []
    for layout, at in facts["found"].items():
        for width, found in at.items():
            length = next(length for length, built in REPLAYED if built == width)
            for row, got in enumerate(found):
                right = got == row
                rows.append(
                    {
                        "build": f"{layout}, {length:,} tokens",
                        "row": f"row {row}",
                        "right": right,
                        "text": f"✔ row {got}" if right else ("✘ old bytes" if got is None else f"✘ row {got}"),
                    }
                )
    base = alt.Chart(alt.Data(values=rows))
    x = alt.X(
        "row:N", axis=alt.Axis(title="the reader asks for", orient="top", labelAngle=0, ticks=False, domain=False)
    )
    y = alt.Y("build:N", sort=None, axis=NAMES)
    picture = alt.layer(
        base.mark_rect(stroke="white", strokeWidth=2).encode(
            x=x, y=y, color=alt.condition("datum.right", alt.value(theme.RIGHT), alt.value(theme.WRONG))
        ),
        base.mark_text(color="white", fontWeight="bold", fontSize=13).encode(x=x, y=y, text="text:N"),
    ).properties(width="container", height=200)
    worst = max((max(errors) for errors in facts["measured"]), default=0.0)
    built = facts["built"]
    here = ""
    if "missing" not in built:
        right = {layout: sum(rows) for layout, rows in built["right"].items()}
        here = f" Here, {built['reader']} got {right['packed']} of 4 packed and {right['pitched']} of 4 pitched rows."
    return Picture(frame(picture)), (
        f"What a reader finds that keeps the stride of its capture, 8,192.{here} With FlashMLA in a CUDA graph the "
        f"attention output of row 1 was off by up to {worst:.0%} (figures from elsewhere)."
    )


def semantics(facts: Facts) -> Evidence:
    """Cells compared and different."""
    return (
        review_html.numbers(
            {
                "builds at narrower widths": f"{facts['builds']}",
                "cells compared with full width": f"{facts['cells']:,}",
                "of them different": f"{facts['different']:,}",
                "of 4 packed rows wrong for a frozen reader": f"{facts['frozen_wrong']}",
            }
        ),
        f"Run here: {facts['ran']}. The last number is address arithmetic: width 4,096, captured stride 8,192.",
    )
