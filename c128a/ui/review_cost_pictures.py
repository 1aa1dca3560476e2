"""Pictures of the claims about time: facts to chart and sentence. Torch-free."""

from __future__ import annotations

import altair as alt

from c128a.claims import Facts
from c128a.ui import theme
from c128a.ui.picture import Picture, frame
from c128a.ui.review_charts import NAMES, Evidence, bars, spans


def where(facts: Facts) -> Evidence:
    """Microseconds saved a step, by step and kernel."""
    rows = [
        {
            "name": name,
            "value": us,
            "text": f"{us:,.1f} µs" if us < 100 else f"{us:,.0f} µs",
            "colour": theme.ORANGE if name.startswith("decode") else theme.BLUE,
        }
        for name, us in facts["saved_us"].items()
    ]
    return bars(rows, unit="µs saved a step", height=22), (
        f"Microseconds saved a step at 32,768 tokens; attention and combine count {facts['layers']} layers. What "
        "attention saves, 0.04 µs a layer, is noise."
    )


def throughput(facts: Facts) -> Evidence:
    """The account's range beside the reported gain, and what rows from positions would make of it."""
    ends = ("low", "value", "high")
    rows = [{"name": "adaptive width", **{at: facts[at] for at in ends}, "colour": theme.BLUE}]
    if "from_positions" in facts:
        rows.append({"name": "from positions", **facts["from_positions"], "colour": theme.GREEN})
    return spans(rows, facts["claimed"]), (
        f"{facts['run']}, a step of {facts['step_us'] / 1000:,.0f} ms. A bar is the range that the assumptions leave, "
        "the diamond their chosen values."
    )


def long(facts: Facts) -> Evidence:
    """One launch at the longest context, before and after."""
    rows = []
    for name, (before, after) in facts["us"].items():
        rows += [
            {"name": f"{name}, fixed", "value": before, "text": f"{before:,.1f} µs", "colour": theme.GREY},
            {"name": f"{name}, adaptive", "value": after, "text": f"{after:,.1f} µs", "colour": theme.BLUE},
        ]
    return bars(
        rows, unit="µs a launch", height=18
    ), "One launch at 1,048,576 tokens and 8,192 rows: nothing to save there."


def regression(facts: Facts) -> Evidence:
    """Adaptive over fixed time in every measured cell of the builder."""
    rows = [
        {
            "ratio": ratio,
            "rows": f"{decode:,} decode" if not prefill else f"{prefill:,} prefill" if not decode else "64 + 4,096",
            "length": f"{length:,}",
        }
        for (decode, prefill, length), ratio in facts["ratios"].items()
    ]
    base = alt.Chart(alt.Data(values=rows))
    x = alt.X(
        "ratio:Q",
        scale=alt.Scale(type="log", domain=[0.09, 1.25], nice=False),
        axis=alt.Axis(title="adaptive over fixed time", values=[0.1, 0.2, 0.5, 1], format="~g"),
    )
    y = alt.Y("rows:N", sort=None, axis=NAMES)
    picture = alt.layer(
        alt.Chart(alt.Data(values=[{"ratio": 1}]))
        .mark_rule(color=theme.HERE, strokeDash=[4, 3], strokeWidth=2)
        .encode(x=x),
        base.mark_point(filled=True, size=90, opacity=1, color=theme.BLUE).encode(
            x=x, y=y, tooltip=["rows:N", "length:N", alt.Tooltip("ratio:Q", format=".3f")]
        ),
    ).properties(width="container", height=200)
    return Picture(frame(picture)), (
        f"Each point is one of {len(rows)} measured cells of the builder; right of the dashed line it would be slower."
    )
