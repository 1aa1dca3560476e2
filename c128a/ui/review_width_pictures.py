"""Pictures of the claims about width: facts to chart and sentence. Torch-free."""

from __future__ import annotations

import altair as alt

from c128a.claims import Facts
from c128a.claims.widths import READ_BLOCKS
from c128a.ui import review_html, theme
from c128a.ui.picture import Picture, frame
from c128a.ui.review_charts import BARE, NAMES, Evidence, bars
from c128a.width import active_topk_width, required_width


def needs_256(facts: Facts) -> Evidence:
    """Columns built before and after, beside the entries there are."""
    built, capacity = facts["built"], facts["capacity"]
    rows = [
        {"name": "fixed", "value": capacity, "text": f"{capacity:,} columns", "colour": theme.GREY},
        {"name": "adaptive", "value": built, "text": f"{built:,} columns", "colour": theme.BLUE},
        {"name": "entries", "value": facts["needed"], "text": f"{facts['needed']:,} to attend", "colour": theme.GREEN},
    ]
    return bars(
        rows, unit="columns"
    ), f"{1 - facts['needed'] / capacity:.0%} of a row of {capacity:,} would be padding."


def loop_32(facts: Facts) -> Evidence:
    """How much less of columns, trips and time."""
    names = {"columns": "columns", "trips": "trips of 1,024", "us": "measured time"}
    rows = []
    for key, name in names.items():
        before, after = facts[key]
        change = f"{before:.1f} → {after:.1f} µs" if key == "us" else f"{before:,} → {after:,}"
        text = f"{before / after:.2g} × ({change})"
        rows.append({"name": name, "value": before / after, "text": text, "colour": theme.BLUE})
    return bars(
        rows, unit="times less"
    ), "Three factors for one change: columns, trips and time shrink by different numbers."


def proportional(facts: Facts) -> Evidence:
    """Trips over width, beside the proportional line."""
    rows = [{"width": w, "count": t, "text": str(t), "line": w / 1024} for w, t in facts["trips"].items()]
    base = alt.Chart(alt.Data(values=rows))
    x = alt.X(
        "width:Q",
        scale=alt.Scale(type="log", base=2, domain=[100, 10_500], nice=False),
        axis=alt.Axis(title="width, columns", values=list(facts["trips"]), format=",d"),
    )
    scale = alt.Scale(type="log", base=2, domain=[0.09, 16], nice=False)
    y = alt.Y(
        "count:Q",
        scale=scale,
        axis=alt.Axis(title="trips", values=[1, 2, 4, 8], format="d"),
    )
    picture = alt.layer(
        base.mark_line(strokeDash=[5, 4], color=theme.GREY).encode(x=x, y=alt.Y("line:Q", scale=scale)),
        base.mark_point(filled=True, size=110, color=theme.BLUE, opacity=1).encode(
            x=x, y=y, tooltip=["width:Q", "count:Q"]
        ),
        base.mark_text(dy=-14, color=theme.INK).encode(x=x, y=y, text="text:N"),
    ).properties(width="container", height=190)
    one = sum(count == 1 for count in facts["trips"].values())
    return Picture(frame(picture)), f"The dashed line is proportional; {one} of {len(rows)} widths take one trip."


def empty_and_odd(facts: Facts) -> Evidence:
    """Entries without a column at the longest sequence, by capacity."""
    longest = max(length for length, _, _ in facts["too_narrow"]) if facts["too_narrow"] else 0
    cases = [case for case in facts["too_narrow"] if case[0] == longest]
    if not cases:
        return review_html.numbers({"columns is the narrowest width": f"{facts['narrowest']:,}"}), "None is too narrow."
    needed = required_width(longest, 128)
    rows = []
    for _, capacity, width in sorted(cases, key=lambda case: -case[1]):
        name = f"capacity {capacity:,}"
        rows += [
            {"name": name, "part": "columns built", "from": 0, "to": width, "text": ""},
            {"name": name, "part": "entries lost", "from": width, "to": needed, "text": f"{needed - width:,} lost"},
        ]
    base = alt.Chart(alt.Data(values=rows))
    x = alt.X("from:Q", scale=alt.Scale(domain=[0, needed * 1.2], nice=False), axis=BARE)
    y = alt.Y("name:N", sort=None, axis=NAMES)
    colour = alt.Color(
        "part:N", scale=alt.Scale(domain=["columns built", "entries lost"], range=[theme.BLUE, theme.WRONG])
    )
    picture = alt.layer(
        base.mark_bar(height=20).encode(x=x, x2="to:Q", y=y, color=colour),
        base.mark_text(align="left", dx=6, color=theme.INK).encode(x=alt.X("to:Q"), y=y, text="text:N"),
    ).properties(width="container", height=34 * len(cases))
    builder = facts["builder"]
    here = "" if "missing" in builder else f" The builder here refused {builder['refused']} of {builder['asked']} such."
    return Picture(frame(picture)), f"A sequence of {longest:,} tokens has {needed:,} entries.{here}"


def constant(facts: Facts) -> Evidence:
    """Where the formula stands, and whether the constant stands with it."""
    forks = facts["forks_without"]
    rows = [("this repository", str(facts["defined"])), ("vLLM", facts["in_vllm"])]
    rows += [(fork, "missing, patched downstream") for fork in forks]
    return review_html.table(("where the formula is", "the constant"), rows, right=False), (
        f"{len(rows) - len(forks)} of {len(rows)} places define it; a copy without it fails at the first step."
    )


def why_128(facts: Facts) -> Evidence:
    """Columns a kernel takes against columns a row has, with and without the alignment."""
    block = READ_BLOCKS[-1]
    rows = []
    for n in range(1, 301, 2):
        rows += [
            {"n": n, "what": "read by the kernel", "columns": -(-n // block) * block},
            {"n": n, "what": "row, aligned to 128", "columns": active_topk_width(n * 128, 128, 8192)},
            {"n": n, "what": "row, power of two alone", "columns": active_topk_width(n * 128, 128, 8192, alignment=1)},
        ]
    names = ["read by the kernel", "row, aligned to 128", "row, power of two alone"]
    picture = (
        alt.Chart(alt.Data(values=rows))
        .mark_line(interpolate="step-after", strokeWidth=2.5)
        .encode(
            x=alt.X("n:Q", axis=alt.Axis(title="entries of a row")),
            y=alt.Y("columns:Q", axis=alt.Axis(title="columns")),
            color=alt.Color("what:N", scale=alt.Scale(domain=names, range=[theme.GREY, theme.BLUE, theme.WRONG])),
            strokeDash=alt.StrokeDash("what:N", scale=alt.Scale(domain=names, range=[[1, 0], [6, 3], [2, 2]])),
        )
        .properties(width="container", height=190)
    )
    return Picture(frame(picture)), (
        f"Up to {facts['reads_past_without']} entries the row of a power of two alone ends before the first {block} "
        "indices that a kernel takes; the aligned row never does."
    )
