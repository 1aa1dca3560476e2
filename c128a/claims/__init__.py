"""The claims of the report on PR #50004, each with its evidence and a verdict that is computed from it.

    setting = Setting.default()
    for finding in review(setting):
        print(finding.claim.title, finding.verdict.level, finding.verdict.because)

Importing this needs neither torch nor triton; claims that need the kernel then say that they were not checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from c128a.claims import buffers, costs, widths
from c128a.claims.core import LEVELS, Claim, Facts, Finding, Level, Setting, Subject, Verdict, find

__all__ = [
    "CLAIMS",
    "LEVELS",
    "SUBJECTS",
    "Claim",
    "Facts",
    "Finding",
    "Level",
    "Setting",
    "Subject",
    "Verdict",
    "bold",
    "find",
    "markdown",
    "review",
    "tally",
]

CLAIMS: tuple[Claim, ...] = widths.CLAIMS + buffers.CLAIMS + costs.CLAIMS
SUBJECTS: dict[Subject, str] = {"widths": "How wide a row is", "buffers": "Where rows lie", "costs": "What it saves"}


def review(setting: Setting, claims: Iterable[Claim] = CLAIMS) -> list[Finding]:
    """Gather and judge every claim, in order."""
    return [find(claim, setting) for claim in claims]


def tally(findings: Iterable[Finding]) -> dict[Level, int]:
    """How many claims got each verdict, in the order of LEVELS, verdicts that nobody got left out."""
    levels = [finding.verdict.level for finding in findings]
    return {level: levels.count(level) for level in LEVELS if level in levels}


def markdown(findings: Sequence[Finding], title: str = "Review of vLLM PR #50004") -> str:
    """The findings as a Markdown table to paste into a review: claim, verdict, reason, the test that keeps it."""
    counts = ", ".join(f"{count} {_reads(level, count)}" for level, count in tally(findings).items())
    lines = [f"### {title}", "", f"{len(findings)} claims checked: {counts}.", ""]
    lines += ["| the report says | verdict | kept by |", "| --- | --- | --- |"]
    lines += [f"| {_cell(f.claim.title)} | {_cell(bold(f.verdict))} | `{f.claim.test_file}` |" for f in findings]
    return "\n".join(lines) + "\n"


def bold(verdict: Verdict) -> str:
    """A verdict as Markdown, its level in bold."""
    head, rest = verdict.text[: len(verdict.level)], verdict.text[len(verdict.level) :]
    return f"**{head}**{rest}"


def _reads(level: Level, count: int) -> str:
    words = {
        "holds": ("holds", "hold"),
        "holds if": ("holds under a condition", "hold under a condition"),
        "does not hold": ("does not hold", "do not hold"),
        "not checked": ("was not checked here", "were not checked here"),
    }
    return words[level][count != 1]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
