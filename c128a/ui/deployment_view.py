"""The pictures and texts of page 06. Free of torch and marimo; the numbers come from `deployment_data`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from html import escape

import altair as alt

from c128a.deployment import Deployment, Verdict
from c128a.deployment.findings import Finding, Severity, width_list
from c128a.deployment.releases import RELEASES
from c128a.deployment.serve import ServeLine
from c128a.deployment.step_cost import StepCost
from c128a.layout import human_bytes
from c128a.ui import state, theme
from c128a.ui.deployment_data import buffer_rows, rows_bytes, width_rows
from c128a.ui.picture import Picture, Spec, frame

# Severity or verdict: colour, colour of text on it, shape, word.
SIGNS: dict[Severity | Verdict, tuple[str, str, str, str]] = {
    "danger": (theme.VERMILLION, "#000000", "✖", "Danger"),
    "warning": (theme.ORANGE, "#000000", "▲", "Warning"),
    "info": (theme.BLUE, "#FFFFFF", "●", "Good to know"),
    "safe": (theme.GREEN, "#000000", "✔", "Nothing dangerous"),
    "unknown": (theme.PURPLE, "#000000", "?", "Not enough read to say"),
}
# Where another page shows what a finding is about: page, link text, settings beside the shared ones.
SHOWN: dict[str, tuple[str, str, dict[str, state.Value]]] = {
    "moving-rows": ("02_layout", "See the rows move", {"layout": "packed"}),
    "packed-outside-graphs": ("02_layout", "See the rows move", {"layout": "packed"}),
    "one-row": ("02_layout", "See the rows move", {"layout": "packed"}),
    "stale-columns": ("02_layout", "See the old bytes", {"layout": "pitched"}),
    "rows-not-contiguous": ("02_layout", "See the gaps", {"layout": "pitched"}),
    "capacity-too-small": ("01_width", "See the width and the capacity", {}),
    "uncovered-widths": ("01_width", "See the widths and their lengths", {}),
    "capacity-not-power-of-two": ("01_width", "See the widths and their lengths", {}),
    "full-width": ("04_timing", "See what it costs", {}),
}
LABELLED = 12  # widths in the chart; where there are more only the ends are labelled
STATUS = {
    "reachable": (theme.BLUE, "circle"),
    "in your list": (theme.GREEN, "circle"),
    "missing from your list": (theme.VERMILLION, "cross"),
    "never chosen": (theme.GREY, "square"),
}


def verdict(found: Deployment) -> str:
    """The verdict as HTML: colour, shape and word, and how much of what was found."""
    colour, ink, shape, word = SIGNS[found.verdict]
    counts = {level: sum(f.severity == level for f in found.findings) for level in ("danger", "warning", "info")}
    nouns = {"danger": "danger", "warning": "warning", "info": "thing to know"}
    said = [
        f"{count} {nouns[level].replace('thing', 'things') if count > 1 and level == 'info' else nouns[level]}"
        + ("s" if count > 1 and level != "info" else "")
        for level, count in counts.items()
        if count
    ]
    return (
        f'<div role="status" style="display:flex;flex-wrap:wrap;align-items:center;gap:.8rem;padding:.7rem 1.1rem;'
        f'border-radius:.5rem;background:{colour};color:{ink};font-size:1.15rem">'
        f'<strong><span aria-hidden="true">{shape}</span> {word}</strong>'
        f"<span>{escape(', '.join(said) or 'no findings')}</span></div>"
    )


def finding_cards(found: Deployment, values: Mapping[str, state.Value]) -> str:
    """Every finding as HTML, the gravest first, what is only good to know side by side; links carry the values."""
    grave = [_card(finding, values) for finding in found.findings if finding.severity != "info"]
    light = [_card(finding, values) for finding in found.findings if finding.severity == "info"]
    columns = "grid-template-columns:repeat(auto-fit,minmax(min(30rem,100%),1fr))"
    return (
        f'<div style="display:grid;gap:.8rem">{"".join(grave)}'
        f'<div style="display:grid;gap:.8rem;{columns}">{"".join(light)}</div></div>'
    )


def glance(found: Deployment) -> str:
    """Four numbers of the setup as HTML."""
    setup, widths = found.setup, found.widths
    ours, released = rows_bytes(found)
    reach = width_list(widths) if len(widths) <= 8 else f"{widths[0]:,} to {widths[-1]:,}"
    numbers = (
        ("Capacity", f"{found.capacity:,} columns", f"sequences of up to {setup.longest_sequence:,} tokens"),
        ("Widths", f"{len(widths):,}", f"{reach} columns"),
        ("Decode rows", f"{setup.decode_rows:,} at most", f"{setup.max_num_batched_tokens:,} tokens in a batch"),
        ("Buffers", human_bytes(ours), f"the released builder: {human_bytes(released)}"),
    )
    cells = "".join(
        f'<div><div style="font-size:.85rem;opacity:.75">{title}</div><div style="font-size:1.3rem;font-weight:600">'
        f'{escape(number)}</div><div style="font-size:.85rem;opacity:.75">{escape(note)}</div></div>'
        for title, number, note in numbers
    )
    columns = "grid-template-columns:repeat(auto-fit,minmax(13rem,1fr))"
    return f'<div style="display:grid;gap:.8rem 2rem;{columns};padding:.2rem .2rem">{cells}</div>'


def _card(finding: Finding, values: Mapping[str, state.Value]) -> str:
    colour, ink, shape, word = SIGNS[finding.severity]
    incident = f"incident {finding.incident}" if finding.incident else ""
    shown = ""
    if finding.code in SHOWN:
        page, text, settings = SHOWN[finding.code]
        carried = {**{name: values[name] for name in state.shared_fields() if name in values}, **settings}
        href = escape(state.link(page, carried, only=state.shared_fields()), quote=True)
        shown = f' <a href="{href}" target="_self" style="text-decoration:underline">{text}</a>'
    return (
        f'<section data-code="{finding.code}" data-severity="{finding.severity}" style="border:1px solid '
        f'{theme.FAINT};border-left:.4rem solid {colour};border-radius:.4rem;padding:.7rem 1rem">'
        f'<div style="display:flex;flex-wrap:wrap;gap:.3rem .8rem;align-items:baseline">'
        f'<span style="background:{colour};color:{ink};border-radius:.3rem;padding:.05rem .5rem;font-size:.85rem;'
        f'font-weight:600;white-space:nowrap"><span aria-hidden="true">{shape}</span> {word}</span>'
        f'<strong style="font-size:1.05rem">{escape(finding.title)}</strong>'
        f'<span style="font-size:.85rem;opacity:.75">{incident}</span></div>'
        f'<p style="margin:.5rem 0 0;max-width:62rem">{escape(finding.why)}{shown}</p>'
        f'<p style="margin:.35rem 0 0;max-width:62rem"><strong>Setting:</strong> {escape(finding.setting)}</p>'
        "</section>"
    )


def command_line(line: ServeLine, notes: Sequence[str]) -> str:
    """What was read from a command line and what was not, as HTML."""
    read = "".join(f"<li><code>{escape(words)}</code></li>" for words in line.sources.values())
    rest = "".join(f"<li><code>{escape(words)}</code></li>" for words in line.not_read)
    told = "".join(f"<li>{escape(note)}</li>" for note in (*line.notes, *notes))
    parts = [("Read", read or "<li>nothing</li>"), ("Not read, without a meaning here", rest or "<li>nothing</li>")]
    if told:
        parts.append(("To settle by hand", told))
    columns = "".join(
        f'<div><strong>{title}</strong><ul style="margin:.2rem 0 0;padding-left:1.2rem">{items}</ul></div>'
        for title, items in parts
    )
    return f'<div style="display:flex;flex-wrap:wrap;gap:1rem 3rem">{columns}</div>'


def help_line(name: str) -> str:
    """What a release does with the rows, and the units of the controls, as small Markdown.

    >>> help_line("0.28.0").splitlines()[0]
    '<small>0.28.0: fixed width, row stride of the buffer. PR #51318: every step builds the full width.<br>'
    """
    said = ""
    for release in RELEASES:
        if release.name == name:
            width = "fixed width" if release.policy == "fixed" else "power-of-two width"
            packed = release.layout == "packed"
            stride = "the row stride is the width (packed)" if packed else "row stride of the buffer"
            said = f"{release.name}: {width}, {stride}. {release.change}: {release.outcome}.<br>\n"
    return (
        f"<small>{said}Lengths in tokens; speculative tokens of a request; the context is a typical longest sequence "
        "and sets the cost below; capacity in columns, 0 for what the model length needs.</small>"
    )


def bytes_chart(found: Deployment) -> Picture:
    """Bytes of the index rows: this package's builder above the released one, on one scale."""
    rows, start = [], {"this package": 0, "released": 0}
    most = max(sum(row["bytes"] for row in buffer_rows(found) if row["holder"] == holder) for holder in start)
    for row in buffer_rows(found):
        begin = start[row["holder"]]
        start[row["holder"]] = begin + row["bytes"]
        text = human_bytes(row["bytes"]) if row["bytes"] >= most * 0.09 else ""
        tip = f"{row['holder']}, {row['buffer']}: {human_bytes(row['bytes'])}"
        rows.append({**row, "from": begin, "to": start[row["holder"]], "text": text, "tip": tip,
                     "middle": begin + row["bytes"] / 2})  # fmt: skip
    totals = [{"holder": holder, "to": total, "text": human_bytes(total)} for holder, total in start.items()]
    return Picture(_bytes_frame(most), rows=rows, totals=totals)


@lru_cache(maxsize=32)
def _bytes_frame(most: int) -> Spec:
    buffers = ["decode rows", "prefill rows"]
    x = alt.X(
        "from:Q",
        scale=alt.Scale(domain=[0, most * 1.2], nice=False),
        axis=alt.Axis(title=None, labels=False, ticks=False, grid=False, domain=False),
    )
    y = alt.Y(
        "holder:N",
        sort=["this package", "released"],
        axis=alt.Axis(title=None, ticks=False, domain=False, labelPadding=8),
    )
    bars = alt.Chart(alt.NamedData("rows"))
    colour = alt.Color("buffer:N", scale=alt.Scale(domain=buffers, range=[theme.ORANGE, theme.SKY]))
    return frame(
        alt.layer(
            bars.mark_bar(height=30).encode(
                x=x, x2="to:Q", y=y, color=colour, tooltip=alt.Tooltip("tip:N", title="buffer")
            ),
            bars.mark_text(color="#000000").encode(x="middle:Q", y=y, text="text:N"),
            alt.Chart(alt.NamedData("totals"))
            .mark_text(align="left", dx=8, color=theme.INK, fontWeight="bold", fontSize=13)
            .encode(x="to:Q", y=y, text="text:N"),
        ).properties(width="container", height=110)
    )


def bytes_sentence(found: Deployment) -> str:
    """What the bytes show, in Markdown."""
    ours, released = rows_bytes(found)
    text = (
        f"The released builder holds **{human_bytes(released)}**: {found.setup.max_num_batched_tokens:,} rows of "
        f"{found.capacity:,} columns for decode, and as many for prefill. A step has at most "
        f"{found.setup.decode_rows:,} decode rows"
    )
    if found.setup.decode_rows == found.setup.max_num_batched_tokens:
        return f"{text}, so there is nothing to save."
    return f"{text}, so **{human_bytes(ours)}** are enough."


def widths_chart(found: Deployment) -> Picture:
    """Reachable widths on a log axis; against a warm-up list each has its status as colour, shape and legend."""
    rows = []
    table = width_rows(found)
    for at, row in enumerate(table):
        crowded = len(table) > LABELLED and at not in (0, len(table) - 1)
        reach = "no length reaches it" if row["first"] is None else f"{row['first']:,} to {row['last']:,} tokens"
        width = f"{row['width']:,}"
        rows.append({**row, "text": "" if crowded else width, "tip": f"{width} columns: {reach}"})
    ends = rows[0]["width"], max(row["width"] for row in rows)
    listed = found.setup.warmup_widths is not None
    return Picture(_widths_frame(min(ends), max(ends), listed, 150 if len(rows) <= LABELLED else 25), rows=rows)


@lru_cache(maxsize=32)
def _widths_frame(least: int, most: int, listed: bool, mark_size: int) -> Spec:
    x = alt.X(
        "width:Q",
        scale=alt.Scale(type="log", base=2, domain=[least / 1.25, most * 1.25], nice=False),
        axis=alt.Axis(title="columns of a row, log scale", labels=False, ticks=False, grid=False),
    )
    names = list(STATUS)[1:] if listed else list(STATUS)[:1]
    key = alt.Legend() if listed else None
    colour = alt.Color("status:N", legend=key, scale=alt.Scale(domain=names, range=[STATUS[name][0] for name in names]))
    shape = alt.Shape("status:N", legend=key, scale=alt.Scale(domain=names, range=[STATUS[name][1] for name in names]))
    rows = alt.Chart(alt.NamedData("rows"))
    return frame(
        alt.layer(
            rows.mark_point(filled=True, size=mark_size, opacity=1, y=50).encode(
                x=x, color=colour, shape=shape, tooltip=alt.Tooltip("tip:N", title="width")
            ),
            rows.mark_text(y=28, color=theme.INK, fontSize=13).encode(x=x, text="text:N"),
        ).properties(width="container", height=75)
    )


def widths_sentence(found: Deployment) -> str:
    """What the widths show, in Markdown."""
    rows, policy = width_rows(found), found.setup.policy
    if len(found.widths) == 1:
        return f"One width, {found.widths[0]:,} columns, in every step: there is one thing to warm up."
    last = rows[len(found.widths) - 1]
    name = theme.POLICY_NAME[policy]
    text = (
        f"The {name} policy can choose {len(found.widths)} widths; from {last['first']:,} tokens on it is the "
        f"capacity, {found.capacity:,}."
    )
    missing = [row["width"] for row in rows if row["status"] == "missing from your list"]
    if missing:
        return f"{text} Your list misses **{width_list(missing)}**."
    if found.capacity & (found.capacity - 1) and policy == "pow2":
        return f"{text} That is no power of two, and easily forgotten."
    return text


def warm_up_list(found: Deployment) -> str:
    """What to warm up or capture, as a Markdown list."""
    return "\n".join(f"- **{todo.what}**: {width_list(list(todo.values))}; {todo.why}." for todo in found.warm_up)


def cost_sentence(found: Deployment, costs: Sequence[StepCost]) -> str:
    """Where the times come from, and what is missing, in Markdown."""
    measured = [cost for cost in costs if cost.builder_us is not None]
    records = dict.fromkeys(title for cost in measured for title in cost.records)
    builder = "released row loop" if found.setup.release else "builder of this package"
    parts = []
    if measured:
        parts.append(
            f"Source: {'; '.join(records)}. The {builder} runs once a step, the prefill combine once in each C128A "
            "layer (20 in V4-Flash, 31 in V4-Pro), over rows filled to their width. A decode step has no combine"
            + (", and FlashMLA's decode reads lens, not width." if found.setup.consumer.startswith("flashmla") else ".")
        )
    told: dict[str, list[str]] = {}
    for cost in costs:
        if cost.basis != "measured":
            told.setdefault(cost.basis, []).append(f"{cost.case} {cost.step}")
    parts.append("\n".join(f"- {', '.join(which)}: {basis}" for basis, which in told.items()))
    return "\n\n".join(parts)
