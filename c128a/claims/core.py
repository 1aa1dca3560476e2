"""A claim, its evidence, its verdict. Torch-free.

The evidence of a claim is a dict of facts that were computed or measured; the verdict is a function of that dict and of
nothing else. Whoever doubts a verdict changes a fact and judges again.

>>> def judge(facts):
...     return Verdict("holds" if facts["n"] % 2 else "does not hold", f"n is {facts['n']}")
>>> claim = Claim("odd", "widths", "Odd", "is odd", "took it modulo two", lambda _: {"n": 3}, judge, "file", "test")
>>> claim.judge({"n": 3}).level, claim.judge({"n": 4}).level
('holds', 'does not hold')
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, get_args

from c128a.claims.account import ASSUMPTIONS, MODELS, PR_RUN, Assumption, Model
from c128a.records import Record, load_all
from c128a.times import KernelTimes, groups
from c128a.width import Policy

Facts = Mapping[str, Any]
Level = Literal["holds", "holds if", "does not hold", "not checked"]
LEVELS: tuple[Level, ...] = get_args(Level)
Subject = Literal["widths", "buffers", "costs"]


@dataclass(frozen=True)
class Verdict:
    """A level, and the reason with its numbers; after "holds if" it begins with the condition.

    >>> Verdict("holds if", "rows keep their stride.").text, Verdict("holds", "All 9 values agree.").text
    ('Holds if rows keep their stride.', 'Holds: All 9 values agree.')
    """

    level: Level
    because: str

    @property
    def text(self) -> str:
        """Level and reason as one sentence."""
        return f"{self.level.capitalize()}{' ' if self.level == 'holds if' else ': '}{self.because}"


@dataclass(frozen=True)
class Setting:
    """What the claims about cost are judged with: a group of records, the run, and what is assumed about it.

    The decode kernel of FlashMLA was measured elsewhere only, so that record is always at hand.
    """

    records: Sequence[Record]
    elsewhere: Record
    model: Model = MODELS[PR_RUN.model]
    tokens: int = PR_RUN.tokens
    max_seq_len: int = PR_RUN.max_seq_len
    policy: Policy = "pow2"
    assumptions: Mapping[str, Assumption] = field(default_factory=lambda: ASSUMPTIONS)
    step_length_us: float | None = None

    @cached_property
    def times(self) -> KernelTimes:
        """The kernel times of the records."""
        return KernelTimes.of(self.records)

    @classmethod
    def default(cls, group: str | None = None) -> Setting:
        """V4-Pro as the pull request ran it, with a group of `c128a.times.groups`: the first where none is named."""
        every = load_all()
        known = groups(every)
        return cls(known[group or next(iter(known))], every[-1])


@dataclass(frozen=True)
class Claim:
    """One statement of the report: what it says, what was checked, how facts are gathered and judged, what keeps it."""

    key: str
    subject: Subject
    title: str
    report: str
    checked: str
    gather: Callable[[Setting], Facts]
    judge: Callable[[Facts], Verdict]
    test_file: str
    test_name: str


@dataclass(frozen=True)
class Finding:
    """A claim with the facts that were gathered for it and the verdict they lead to."""

    claim: Claim
    facts: Facts
    verdict: Verdict


def find(claim: Claim, setting: Setting) -> Finding:
    """Gather the facts of one claim and judge them."""
    facts = claim.gather(setting)
    return Finding(claim, facts, claim.judge(facts))


def missing(facts: Facts) -> Verdict | None:
    """ "not checked" where the facts say why they could not be gathered, else nothing."""
    return Verdict("not checked", facts["missing"]) if "missing" in facts else None
