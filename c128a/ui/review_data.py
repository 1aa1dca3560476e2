"""The account of page 05 as tables: parts of a step, and the gain over context lengths. Torch-free."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from c128a.claims import Finding, Level, Setting
from c128a.claims.account import (
    ASSUMPTIONS,
    MODELS,
    PR_RUN,
    REPORTED_GAIN,
    Assumption,
    StepAccount,
    gain_span,
    prefill_step,
    step_us,
)
from c128a.records import Record
from c128a.times import KernelTimes, groups
from c128a.ui import state
from c128a.width import active_topk_width

CONTEXTS = (8_192, 32_768, 131_072, 1_048_576)  # tokens; where the combine was measured
FORMS = {"before": "fixed width", "after": "adaptive width", "from_positions": "from positions"}


def fields(records: Sequence[Record]) -> dict[str, state.Field]:
    """The URL parameters of the page: the shared ones, the run, the assumptions in whole units, the kernel times."""
    known = tuple(groups(records))
    pflops, share = ASSUMPTIONS["pflops"], ASSUMPTIONS["prefill_share"]
    tera, percent = (100, 100_000), (0, 100)
    return {
        **state.shared_fields(),
        "model": state.Choice(PR_RUN.model, tuple(MODELS)),
        "tokens": state.Integer(PR_RUN.tokens, 1, 65_536),
        "step_ms": state.Integer(0, 0, 100_000),  # 0: estimated
        "tflops": state.Integer(round(pflops.value * 1000), *tera),
        "tflops_low": state.Integer(round(pflops.low * 1000), *tera),
        "tflops_high": state.Integer(round(pflops.high * 1000), *tera),
        "prefill": state.Integer(round(share.value * 100), *percent),
        "prefill_low": state.Integer(round(share.low * 100), *percent),
        "prefill_high": state.Integer(round(share.high * 100), *percent),
        "times": state.Choice(known[0], known),
    }


def setting_of(values: Mapping[str, Any], records: Sequence[Record]) -> Setting:
    """The setting that these values of `fields` describe; a range is widened to hold its value."""

    def assumed(key: str, name: str, unit: float) -> Assumption:
        value, low, high = (values[f"{name}{end}"] / unit for end in ("", "_low", "_high"))
        return replace(ASSUMPTIONS[key], value=value, low=min(value, low, high), high=max(value, low, high))

    return Setting(
        groups(records)[values["times"]],
        next(record for record in records if record.elsewhere),
        MODELS[values["model"]],
        values["tokens"],
        values["seq"],
        values["policy"],
        {"pflops": assumed("pflops", "tflops", 1000), "prefill_share": assumed("prefill_share", "prefill", 100)},
        values["step_ms"] * 1000.0 or None,
    )


def account_of(setting: Setting, max_seq_len: int) -> StepAccount:
    """The account of the setting's step at a context; raises UnmeasuredError where nothing was measured around it."""
    return prefill_step(setting.model, setting.tokens, max_seq_len, setting.times, policy=setting.policy)


def contexts_offered(chosen: int) -> list[int]:
    """Context lengths for the menu: powers of two from 4,096, the first length that saves nothing, and the chosen one.

    >>> contexts_offered(100_000)[4:8]
    [65536, 100000, 131072, 262144]
    """
    return sorted({*(1 << power for power in range(12, 21)), 524_416, chosen})


def step_length_us(setting: Setting) -> float:
    """The step's length in microseconds: as the user gave it, or estimated from the assumed throughput."""
    if setting.step_length_us is not None:
        return setting.step_length_us
    return step_us(setting.model, setting.tokens, setting.assumptions["pflops"].value)


def parts_table(setting: Setting) -> pd.DataFrame:
    """One row a form and kernel: launches a step, microseconds a launch and a step, share of the step, and their basis.

    Raises UnmeasuredError where the context was not measured.
    """
    account, length = account_of(setting, setting.max_seq_len), step_length_us(setting)
    rows: list[dict[str, Any]] = []
    for form, name in FORMS.items():
        for part in account.parts:
            estimate = getattr(part, form)
            us = part.count * estimate.us
            rows.append(
                {
                    "form": name,
                    "kernel": part.name,
                    "launches": part.count if estimate.points else 0,
                    "us_a_launch": estimate.us,
                    "us_a_step": us,
                    "share_of_step": us / length,
                    "basis": estimate.basis,
                }
            )
    return pd.DataFrame(rows)


def contexts_table(setting: Setting, contexts: Sequence[int] = CONTEXTS) -> pd.DataFrame:
    """One row a context: width, microseconds saved in builder and combine, the gain and its range, for both forms.

    Where a context was not measured, the figures are absent and `why` says what was measured instead.
    """
    rows: list[dict[str, Any]] = []
    for context in sorted({*contexts, setting.max_seq_len}):
        row: dict[str, Any] = {"context": context, "why": ""}
        try:
            account = account_of(setting, context)
            row["width"] = account.width
            row.update({f"{part.name}_saved_us": part.saved_us for part in account.parts})
            for form, saved in (("adaptive", account.saved_us), ("positions", account.saved_from_positions_us)):
                span = gain_span(account, setting.assumptions, step_length_us=setting.step_length_us, saved_us=saved)
                ends = {"low": span.low, "gain": span.value, "high": span.high}
                row.update({f"{form}_saved_us": saved, **{f"{form}_{name}": gain for name, gain in ends.items()}})
        except ValueError as refused:  # not measured, or a step shorter than what it saves
            row = {"context": context, "why": str(refused)}
        rows.append(row)
    return pd.DataFrame(rows)


def lead(counts: Mapping[Level, int]) -> str:
    """The opening sentence of the page: how the claims fare.

    >>> lead({"holds": 5, "holds if": 10, "does not hold": 1})
    'Of **16 claims** of the report, **5 hold**, **10 hold under a condition** and **1 does not hold**.'
    """
    words = {
        "holds": ("holds", "hold"),
        "holds if": ("holds under a condition", "hold under a condition"),
        "does not hold": ("does not hold", "do not hold"),
        "not checked": ("could not be checked here", "could not be checked here"),
    }
    parts = [f"**{count} {words[level][count != 1]}**" for level, count in counts.items()]
    joined = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    return f"Of **{sum(counts.values())} claims** of the report, {joined}."


def takeaway(findings: Sequence[Finding]) -> str:
    """What a reviewer takes home, from the facts: where the saving is, and what the change broke."""
    facts = {finding.claim.key: finding.facts for finding in findings}
    saved = facts["where"]["saved_us"]
    combine, whole = saved["prefill step: combine"], sum(saved.values())
    wrong = sum(not ok for rows in facts["addresses"]["right"]["packed"].values() for ok in rows)
    total = sum(len(rows) for rows in facts["addresses"]["right"]["packed"].values())
    unseen = facts["test_covers"]["moved"] == 0
    return (
        f"The saving is real, and **{combine / whole:.0%}** of it lies in the prefill combine, which the report does "
        f"not name. What broke is the row stride: a reader that keeps the stride of its capture misses "
        f"**{wrong} of {total}** packed rows{', and the new test could not see it' if unseen else ''}."
    )


def times_note(setting: Setting) -> str:
    """How far this repository's form of the combine is from the released kernel, as Markdown; "" for the latter's own.

    The released kernel was measured elsewhere only; both at the pull request's step, fixed and adaptive width.
    """
    if all(record.elsewhere for record in setting.records):
        return ""
    released = KernelTimes.of([setting.elsewhere])
    ask = (PR_RUN.tokens, PR_RUN.max_seq_len)
    width = active_topk_width(PR_RUN.max_seq_len, 128, PR_RUN.capacity)
    here = (setting.times.combine_fixed.at(*ask, PR_RUN.capacity).us, setting.times.combine.at(*ask, width).us)
    there = (released.combine_fixed.at(*ask, PR_RUN.capacity).us, released.combine.at(*ask, width).us)
    return (
        f"The combine timed here is this repository's own form of the released one. At {ask[1]:,} tokens it takes "
        f"{here[0]:.1f} and {here[1]:.1f} µs at fixed and adaptive width; the released kernel took {there[0]:.1f} and "
        f"{there[1]:.1f} (figures from elsewhere, which can be chosen above)."
    )


def account_sentence(setting: Setting) -> str:
    """What the account says at the chosen context, as Markdown; where it can say nothing, what was measured."""
    try:
        account = account_of(setting, setting.max_seq_len)
        span = gain_span(account, setting.assumptions, step_length_us=setting.step_length_us)
    except ValueError as refused:  # not measured, or a step shorter than what it saves
        return f"No account at this setting: {refused}. A time is read between measured points, never beyond them."
    length = step_length_us(setting)
    positions = f"{account.saved_from_positions_us:,.0f} µs"
    where = f"A {setting.model.name} step of {setting.tokens:,} tokens at {setting.max_seq_len:,}"
    if account.saved_us <= 0:
        return f"{where} saves nothing with the {setting.policy} width, and {positions} with rows from positions."
    builder, combine = (part.saved_us for part in account.parts)
    return (
        f"{where} saves **{account.saved_us:,.0f} µs** of {length / 1000:,.0f} ms "
        f"({'estimated' if setting.step_length_us is None else 'as given'}): {combine:,.0f} µs in "
        f"{account.parts[1].count} launches of the combine, {builder:,.0f} µs in one of the builder. That is "
        f"**{span.value:.2%} more tokens per second**, {span.low:.2%} to {span.high:.2%} over the assumptions; the "
        f"reported {REPORTED_GAIN:.1%} {'lies inside' if span.holds(REPORTED_GAIN) else 'lies outside'}. "
        f"Rows from positions would save {positions}."
    )
