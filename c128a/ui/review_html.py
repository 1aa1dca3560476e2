"""The parts of page 05 that are text: verdicts at a glance, a claim's card, evidence as numbers, the closing table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from c128a.claims import SUBJECTS, Finding, Level, Verdict
from c128a.deployment.releases import RELEASES
from c128a.ui import theme
from c128a.width import active_topk_width

# Shape and word besides the colour: a tick, a half-filled disc, a cross, an empty disc.
ICON: dict[Level, str] = {"holds": "✔", "holds if": "◐", "does not hold": "✘", "not checked": "○"}
COLOUR: dict[Level, str] = {
    "holds": theme.GREEN,
    "holds if": theme.ORANGE,
    "does not hold": theme.VERMILLION,
    "not checked": theme.GREY,
}

# Once a page. Printing the page prints the closing table alone, on one sheet.
STYLE = f"""<style>
.review-glance {{ display: flex; flex-wrap: wrap; gap: 1rem 2.5rem; }}
.review-glance > div {{ flex: 1 1 18rem; }}
.review-glance h4 {{ margin: 0; padding-bottom: .25rem; border-bottom: 2px solid {theme.FAINT}; font-weight: 600; }}
.review-glance ul {{ list-style: none; padding: 0; margin: .3rem 0; }}
.review-glance li {{ margin: .3rem 0; padding: 0; }}
.review-glance a {{ color: inherit; text-decoration: none; display: flex; gap: .55rem; align-items: baseline; }}
.review-glance a:hover {{ text-decoration: underline; }}
.review-glance small {{ margin-left: auto; opacity: .75; white-space: nowrap; }}
.review-icon {{ font-weight: 700; width: 1.1em; text-align: center; flex: none; }}
.review-badge {{ border: 1.5px solid; border-radius: 1rem; padding: .1rem .65rem; white-space: nowrap;
  font-size: .85rem; font-weight: 600; }}
.review-card {{ border-left: 5px solid; padding: .1rem 0 .1rem 1.1rem; scroll-margin-top: 1rem; }}
.review-card h3 {{ margin: 0 0 .6rem; font-size: 1.15rem; font-weight: 600; display: flex; gap: .5rem .8rem;
  align-items: center; flex-wrap: wrap; }}
.review-card dl {{ display: grid; grid-template-columns: 5.5rem 1fr; gap: .35rem .8rem; margin: 0; max-width: 44rem; }}
.review-card dt {{ opacity: .75; }}
.review-card dd {{ margin: 0; }}
.review-numbers {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(6.5rem, 1fr)); gap: 1rem; }}
.review-numbers div {{ font-size: .9rem; line-height: 1.3; }}
.review-numbers b {{ display: block; font-size: 1.7rem; font-weight: 600; font-variant-numeric: tabular-nums; }}
.review-releases {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(15rem, 1fr)); gap: 1rem 0; }}
.review-releases > div {{ border-top: 3px solid {theme.FAINT}; padding: 1rem 1.5rem 0 0; position: relative; }}
.review-releases > div::before {{ content: ""; position: absolute; top: -9px; width: 15px; height: 15px;
  border-radius: 50%; background: var(--dot); }}
.review-releases b {{ font-size: 1.05rem; }}
.review-releases dl {{ display: grid; grid-template-columns: 4.5rem 1fr 3.2rem; gap: .25rem .6rem; margin: .5rem 0;
  align-items: center; font-size: .9rem; font-variant-numeric: tabular-nums; }}
.review-releases dt, .review-releases dd {{ margin: 0; }}
.review-releases i {{ display: block; height: .8rem; min-width: 3px; }}
.review-releases p {{ margin: 0; font-size: .9rem; line-height: 1.35; }}
.review-table {{ border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }}
.review-table td, .review-table th {{ padding: .2rem 1.1rem .2rem 0; text-align: left; vertical-align: top; }}
.review-table.right td + td, .review-table.right th + th {{ text-align: right; }}
.review-table tbody tr, .review-table thead {{ border-bottom: 1px solid {theme.FAINT}; }}
.review-table th {{ font-weight: 600; }}
@media print {{
  @page {{ size: A4 landscape; margin: 10mm; }}
  body *:not(:has(.review-closing)):not(.review-closing):not(.review-closing *) {{ display: none !important; }}
  *:has(.review-closing) {{ display: block !important; position: static !important; overflow: visible !important;
    height: auto !important; max-width: none !important; margin: 0 !important; padding: 0 !important;
    background: white !important; }}
  .review-closing, .review-closing * {{ color: black !important; font-size: 8.5pt; line-height: 1.25; }}
  .review-closing td, .review-closing th {{ padding: .15rem .6rem .15rem 0; }}
}}
</style>"""


def icon(level: Level) -> str:
    """The verdict's sign in its colour; the word stands beside it."""
    return f'<span class="review-icon" aria-hidden="true" style="color:{COLOUR[level]}">{ICON[level]}</span>'


def glance(findings: Sequence[Finding]) -> str:
    """All claims by subject, each with its verdict and a link to its card: the page before reading it."""
    columns = []
    for subject, title in SUBJECTS.items():
        items = "".join(
            f'<li><a href="#claim-{f.claim.key}">{icon(f.verdict.level)}<span>{escape(f.claim.title)}</span>'
            f"<small>{f.verdict.level}</small></a></li>"
            for f in findings
            if f.claim.subject == subject
        )
        columns.append(f"<div><h4>{title}</h4><ul>{items}</ul></div>")
    return f'<div class="review-glance">{"".join(columns)}</div>'


def card(finding: Finding) -> str:
    """One claim as text: what the report says, what was checked, the verdict, the test that keeps it."""
    claim, verdict = finding.claim, finding.verdict
    rows = {
        "The report": escape(claim.report),
        "Checked": escape(claim.checked),
        "Verdict": f"<strong>{escape(verdict.text)}</strong>",
        "Kept by": f"<code>{escape(claim.test_file)}</code><br><small>{escape(_prose(claim.test_name))}</small>",
    }
    colour = COLOUR[verdict.level]
    badge = f'<span class="review-badge" style="border-color:{colour}">{icon(verdict.level)} {verdict.level}</span>'
    return (
        f'<section class="review-card" id="claim-{claim.key}" style="border-left-color:{colour}">'
        f"<h3>{escape(claim.title)} {badge}</h3>"
        f"<dl>{''.join(f'<dt>{name}</dt><dd>{text}</dd>' for name, text in rows.items())}</dl></section>"
    )


def releases(max_seq_len: int = 32_768, capacity: int = 8192) -> str:
    """The history: for each release the width it builds for such a batch, its row stride, and what became of it."""
    boxes = []
    changes = {release.change: release for release in reversed(RELEASES)}  # the first release with each change
    for release in reversed(changes.values()):
        width = active_topk_width(max_seq_len, 128, capacity, policy=release.policy)
        stride = width if release.layout == "packed" else capacity
        moves, saves = stride != capacity, width != capacity
        dot = theme.WRONG if moves else theme.RIGHT if saves else theme.GREY
        lines = "".join(
            f'<dt>{name}</dt><dd><i style="width:{100 * value / capacity:.1f}%;background:{colour}"></i></dd>'
            f"<dd>{value:,}</dd>"
            for name, value, colour in (
                ("width", width, theme.BLUE),
                ("row stride", stride, theme.WRONG if moves else theme.SKY),
            )
        )
        verdict = "✘ rows move with the batch; " if moves else "✔ rows stay, and are short; " if saves else ""
        boxes.append(
            f'<div style="--dot:{dot}"><b>vLLM {escape(release.name)}</b> · {escape(release.change)}<dl>{lines}</dl>'
            f"<p>{verdict}{escape(release.outcome)}</p></div>"
        )
    return f'<div class="review-releases">{"".join(boxes)}</div>'


def numbers(pairs: Mapping[str, str]) -> str:
    """Evidence as a few large numbers, each with what it counts."""
    cells = "".join(f"<div><b>{escape(value)}</b>{escape(name)}</div>" for name, value in pairs.items())
    return f'<div class="review-numbers">{cells}</div>'


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, right: bool = True) -> str:
    """A plain table of texts: the first column to the left, the others to the right where they are numbers.

    A row shorter than the head ends in a text over all columns left.
    """
    heads = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
    body = []
    for row in rows:
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in row[:-1])
        last = len(head) - len(row) + 1
        wide = f' colspan="{last}" style="text-align:left"' if last > 1 else ""
        body.append(f"<tr>{cells}<td{wide}>{escape(row[-1])}</td></tr>")
    kind = "review-table right" if right else "review-table"
    return f'<table class="{kind}"><thead><tr>{heads}</tr></thead><tbody>{"".join(body)}</tbody></table>'


def contexts(rows: Sequence[Mapping[str, Any]], chosen: int) -> str:
    """The account over contexts (`review_data.contexts_table` as records); what was not measured says why."""
    head = ("context", "width", "builder saves", "combine saves", "more tokens/s", "from positions saves")
    body: list[tuple[str, ...]] = []
    for row in rows:
        name = f"{row['context']:,}" + (" ◂ chosen" if row["context"] == chosen else "")
        if row["why"]:
            body.append((name, row["why"]))
            continue
        gains = [f"{row[f'{form}_gain']:.2%} ({row[f'{form}_low']:.2%} – {row[f'{form}_high']:.2%})" for form in FORMS]
        body.append(
            (
                name,
                f"{row['width']:,.0f}",
                f"{row['builder_saved_us']:,.1f} µs",
                f"{row['combine_saved_us']:,.0f} µs",
                gains[0],
                f"{row['positions_saved_us']:,.0f} µs",
                gains[1],
            )
        )
    return table((*head, "more tokens/s"), body)


FORMS = ("adaptive", "positions")


def closing(findings: Sequence[Finding], heading: str) -> str:
    """The closing table: every claim, its verdict and reason. Printing the page prints this and nothing else."""
    rows = "".join(
        f"<tr><td>{escape(f.claim.title)}</td>"
        f'<td style="white-space:nowrap">{icon(f.verdict.level)} {f.verdict.level}</td>'
        f"<td>{escape(_reason(f.verdict))}</td><td><code>{escape(f.claim.test_file)}</code></td></tr>"
        for f in findings
    )
    heads = "".join(f'<th scope="col">{name}</th>' for name in ("The report says", "Verdict", "Why", "Kept by"))
    return (
        f'<div class="review-closing"><p><strong>{escape(heading)}</strong></p><table class="review-table">'
        f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _prose(test_name: str) -> str:
    """A test's name as the sentence it is."""
    return test_name.removeprefix("test_").replace("_", " ")


def _reason(verdict: Verdict) -> str:
    return f"… {verdict.because}" if verdict.level == "holds if" else verdict.because
