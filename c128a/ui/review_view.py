"""Page 05 put together: a claim beside its evidence, and the controls of the account. Needs marimo, not torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import marimo as mo

from c128a.claims import Facts, Finding, Setting
from c128a.claims.account import MODELS
from c128a.records import Record
from c128a.times import groups, titled
from c128a.ui import page, review_html, state
from c128a.ui import review_buffer_pictures as buffers
from c128a.ui import review_cost_pictures as costs
from c128a.ui import review_width_pictures as widths
from c128a.ui.review_charts import Evidence
from c128a.ui.review_data import contexts_offered
from c128a.width import POLICIES


def controls(opened: Mapping[str, Any], fields: Mapping[str, state.Field], records: Sequence[Record]) -> Any:
    """The controls of the account by the name they have in the address, opened with these values."""

    def number(name: str, label: str) -> Any:
        field = fields[name]
        assert isinstance(field, state.Integer)
        return mo.ui.number(field.least, field.most, step=1, value=opened[name], label=label)

    lengths = {f"{context:,}": context for context in contexts_offered(opened["seq"])}
    answering = {titled(members): name for name, members in groups(records).items()}
    return mo.ui.dictionary(
        {
            "model": mo.ui.dropdown(list(MODELS), value=opened["model"], label="Model"),
            "tokens": number("tokens", "Tokens a step"),
            "seq": mo.ui.dropdown(lengths, value=f"{opened['seq']:,}", label="Context, tokens"),
            "policy": mo.ui.radio(POLICIES, value=opened["policy"], label="Policy", inline=True),
            "times": mo.ui.dropdown(
                answering,
                value=next(t for t, name in answering.items() if name == opened["times"]),
                label="Kernel times",
            ),
            "step_ms": number("step_ms", "Step as measured, ms (0: estimate it)"),
            "tflops": number("tflops", "Throughput, TFLOP/s"),
            "tflops_low": number("tflops_low", "at least"),
            "tflops_high": number("tflops_high", "at most"),
            "prefill": number("prefill", "Time in prefill steps, %"),
            "prefill_low": number("prefill_low", "at least"),
            "prefill_high": number("prefill_high", "at most"),
        }
    )


def control_panel(chosen: Any, preset: Any, setting: Setting) -> mo.Html:
    """The controls in one box, each assumption with its range and its reason."""
    at = chosen.elements
    why = {key: mo.md(f"<small>{assumption.why}</small>") for key, assumption in setting.assumptions.items()}
    return page.panel(
        [preset, at["policy"], at["times"]],
        [at["model"], at["tokens"], at["seq"]],
        [at["step_ms"]],
        [at["tflops"], at["tflops_low"], at["tflops_high"]],
        [why["pflops"]],
        [at["prefill"], at["prefill_low"], at["prefill_high"]],
        [why["prefill_share"]],
    )


def block(finding: Finding) -> mo.Html:
    """A claim as the page shows it: its text to the left, its evidence with a sentence to the right."""
    shown, text = evidence(finding)
    picture = mo.Html(shown) if isinstance(shown, str) else shown
    right = mo.vstack([picture, page.sentence(text)], gap=0.4)
    return page.columns([mo.Html(review_html.card(finding)), right], widths=[10, 11], gap=3, align="start")


def evidence(finding: Finding) -> Evidence:
    """The picture of a claim's facts and its sentence; where facts are missing, the reason instead."""
    if "missing" in finding.facts:
        return review_html.numbers(
            {finding.facts["missing"]: "–"}
        ), "Run the page where torch and triton are installed."
    if "no_account" in finding.facts:
        return review_html.numbers({finding.facts["no_account"]: "–"}), "Choose another setting of the account."
    key, facts = finding.claim.key, repr(finding.facts)
    if key not in _DRAWN or _DRAWN[key][0] != facts:
        _DRAWN[key] = (facts, _PICTURES[key](finding.facts))
    return _DRAWN[key][1]


_DRAWN: dict[str, tuple[str, Evidence]] = {}  # by claim, the facts it was last drawn from: most settings leave them

_PICTURES: dict[str, Callable[[Facts], Evidence]] = {
    "needs_256": widths.needs_256,
    "loop_32": widths.loop_32,
    "proportional": widths.proportional,
    "empty_and_odd": widths.empty_and_odd,
    "constant": widths.constant,
    "why_128": widths.why_128,
    "shapes": buffers.shapes,
    "bounds": buffers.bounds,
    "test_covers": buffers.test_covers,
    "addresses": buffers.addresses,
    "semantics": buffers.semantics,
    "where": costs.where,
    "throughput": costs.throughput,
    "long": costs.long,
    "regression": costs.regression,
    "first_token": costs.throughput,
}
