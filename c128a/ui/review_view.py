"""The evidence of a claim on page 05: its picture, and the sentence that says what to see in it. Torch-free."""

from __future__ import annotations

from collections.abc import Callable

import marimo as mo

from c128a.claims import Facts, Finding
from c128a.ui import page, review_html
from c128a.ui import review_buffer_pictures as buffers
from c128a.ui import review_cost_pictures as costs
from c128a.ui import review_width_pictures as widths
from c128a.ui.review_charts import Evidence


def block(finding: Finding) -> mo.Html:
    """A claim as the page shows it: its text to the left, its evidence with a sentence to the right."""
    shown, text = evidence(finding)
    picture = mo.Html(shown) if isinstance(shown, str) else shown
    right = mo.vstack([picture, page.sentence(text)], gap=0.4)
    return mo.hstack([mo.Html(review_html.card(finding)), right], widths=[10, 11], gap=3, align="start")


def evidence(finding: Finding) -> Evidence:
    """The picture of a claim's facts and its sentence; where facts are missing, the reason instead."""
    if "missing" in finding.facts:
        return review_html.numbers(
            {finding.facts["missing"]: "–"}
        ), "Run the page where torch and triton are installed."
    if "unmeasured" in finding.facts:
        return review_html.numbers({finding.facts["unmeasured"]: "–"}), "Choose a setting between measured points."
    return _PICTURES[finding.claim.key](finding.facts)


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
