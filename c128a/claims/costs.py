"""Claims about time: throughput, first token, long contexts, regressions. Torch-free: measured times and the account.

The report: 1.0 % more throughput end to end, about as much off the first token, no change for long contexts, low risk.
"""

from __future__ import annotations

from c128a import census
from c128a.claims.account import REPORTED_GAIN, decode_step, gain_span, prefill_step, step_for_gain, step_us
from c128a.claims.core import Claim, Facts, Setting, Verdict
from c128a.tiles import TILES
from c128a.width import capacity_width, sequence_range

CAPACITY = capacity_width(1_048_576)
DECODE_ROWS = 64
UNCHANGED = 0.02  # relative; the figures from elsewhere state no spread, and repeat within 2 %


def _throughput(setting: Setting) -> Facts:
    try:
        account = prefill_step(
            setting.model,
            setting.tokens,
            setting.max_seq_len,
            setting.times,
            policy=setting.policy,
            capacity=CAPACITY,
        )
        span, instead = (
            gain_span(account, setting.assumptions, step_length_us=setting.step_length_us, saved_us=saved)
            for saved in (account.saved_us, account.saved_from_positions_us)
        )
    except ValueError as refused:  # not measured, or a step shorter than what it saves
        return {"no_account": str(refused)}
    share = setting.assumptions["prefill_share"].value
    length = setting.step_length_us or step_us(setting.model, setting.tokens, setting.assumptions["pflops"].value)
    return {
        "claimed": REPORTED_GAIN,
        "low": span.low,
        "value": span.value,
        "high": span.high,
        "from_positions": {"low": instead.low, "value": instead.value, "high": instead.high},
        "saved_us": account.saved_us,
        "parts": {part.name: part.saved_us for part in account.parts},
        "step_us": length,
        "step_for_claim_us": step_for_gain(account.saved_us, REPORTED_GAIN, share),
        "tokens": setting.tokens,
        "run": f"{setting.model.name}, {setting.tokens:,} tokens a step at {setting.max_seq_len:,}",
    }


def _judge_throughput(facts: Facts) -> Verdict:
    if "no_account" in facts:
        return Verdict("not checked", facts["no_account"] + ".")
    low, value, high, claimed = (facts[name] for name in ("low", "value", "high", "claimed"))
    spread = f"{low:.2%} to {high:.2%}, {value:.2%} at the values chosen"
    if not facts["saved_us"] > 0:
        return Verdict("does not hold", f"Nothing is saved by {facts['run']}.")
    if not low <= claimed <= high:
        return Verdict("does not hold", f"The account gives {spread}: {claimed:.1%} lies outside ({facts['run']}).")
    if high <= claimed * 1.25 and low >= claimed * 0.75:
        return Verdict("holds", f"The account gives {spread} ({facts['run']}).")
    return Verdict(
        "holds if",
        f"a prefill step takes about {facts['step_for_claim_us'] / 1000:,.0f} ms "
        f"({facts['tokens'] / facts['step_for_claim_us'] * 1000:,.1f} thousand tokens/s). The account gives {spread}; "
        f"{facts['parts']['combine'] / facts['saved_us']:.0%} of it comes from the combine, the rest from the builder.",
    )


def _first_token(setting: Setting) -> Facts:
    facts = dict(_throughput(setting))
    if "no_account" in facts:
        return facts
    del facts["from_positions"]
    pflops = setting.assumptions["pflops"]
    lengths = [step_us(setting.model, setting.tokens, value) for value in (pflops.low, pflops.value, pflops.high)]
    if setting.step_length_us is not None:
        lengths = [setting.step_length_us] * 3
    facts.update(zip(("low", "value", "high"), (facts["saved_us"] / length for length in lengths), strict=True))
    facts["step_for_claim_us"] = facts["saved_us"] / facts["claimed"]
    return facts


def _where(setting: Setting) -> Facts:
    decode = decode_step(setting.model, DECODE_ROWS, 32_768, setting.times, capacity=CAPACITY)
    prefill = prefill_step(setting.model, 8192, 32_768, setting.times, capacity=CAPACITY)
    attention = {
        row["policy"]: row["us"]
        for row in setting.elsewhere.where(kernel="flashmla_decode", variant="released", lens=256)
    }
    return {
        "layers": setting.model.c128a_layers,
        "decode_attention_us": (attention["fixed"], attention["pow2"]),
        "saved_us": {
            "decode step: builder": decode.saved_us,
            "decode step: attention": setting.model.c128a_layers * (attention["fixed"] - attention["pow2"]),
            **{f"prefill step: {part.name}": part.saved_us for part in prefill.parts},
        },
    }


def _judge_where(facts: Facts) -> Verdict:
    saved = facts["saved_us"]
    decode = sum(us for name, us in saved.items() if name.startswith("decode"))
    prefill = sum(us for name, us in saved.items() if name.startswith("prefill"))
    before, after = facts["decode_attention_us"]
    if decode > prefill:
        return Verdict("holds", f"A decode step saves {decode:,.1f} µs, a prefill step {prefill:,.1f} µs.")
    return Verdict(
        "does not hold",
        f"A decode step of {DECODE_ROWS} rows saves {saved['decode step: builder']:.1f} µs in the builder; decode "
        f"attention reads lens, not width: {before:.2f} → {after:.2f} µs a layer. "
        f"A prefill step saves {prefill:,.0f} µs.",
    )


def _long(setting: Setting) -> Facts:
    times, ask = setting.times, (8192, 1_048_576, CAPACITY)
    return {
        "full_from": sequence_range(CAPACITY, 128, CAPACITY)[0],
        "us": {
            "builder": (times.builder_fixed.at(*ask).us, times.builder.at(*ask).us),
            "combine": (times.combine_fixed.at(*ask).us, times.combine.at(*ask).us),
        },
    }


def _judge_long(facts: Facts) -> Verdict:
    change = {name: after / before - 1 for name, (before, after) in facts["us"].items()}
    most = max(change, key=lambda name: abs(change[name]))
    if abs(change[most]) > UNCHANGED:
        return Verdict("does not hold", f"At 1,048,576 tokens the {most} changes by {change[most]:+.1%}.")
    return Verdict(
        "holds",
        f"At 1,048,576 tokens builder and combine stay within {abs(change[most]):.1%}. It starts early: from "
        f"{facts['full_from']:,} tokens on, half of the range, every row has the full width.",
    )


def _regression(setting: Setting) -> Facts:
    cells: dict[tuple[int, int, int], dict[str, float]] = {}
    for record in setting.records:
        for row in record.where(sheet="builder", kernel="builder"):
            if row.get("cache") != "cold" and not row.get("short_seq_len"):
                cells.setdefault((row["decode"], row["prefill"], row["max_seq_len"]), {})[row["variant"]] = row["us"]
    return {
        "ratios": {
            cell: us["row_loop_adaptive"] / us["row_loop_fixed"]
            for cell, us in cells.items()
            if {"row_loop_adaptive", "row_loop_fixed"} <= us.keys()
        },
        "variants": census.predicted()[-1].naive,
        "variants_here": len(TILES),
    }


def _judge_regression(facts: Facts) -> Verdict:
    worst = max(facts["ratios"].values())
    if worst > 1 + UNCHANGED:
        return Verdict("does not hold", f"In the worst of {len(facts['ratios'])} cells it takes {worst:.3f} × as long.")
    slowest = f"in the worst of {len(facts['ratios'])} measured cells the adaptive builder takes {worst:.3f} × as long"
    if facts["variants"] > 1:
        return Verdict(
            "holds if",
            f"all variants are compiled before serving: {slowest}, but left to Triton the kernel has "
            f"{facts['variants']} variants, and a missing one is compiled during a request. The kernel here has "
            f"{facts['variants_here']}, all compiled by warmup().",
        )
    return Verdict("holds", f"{slowest[0].upper()}{slowest[1:]}, and there is one compiled variant.")


CLAIMS = (
    Claim(
        "where",
        "costs",
        "The decode loop is where the time goes",
        "In decode the kernel's loop over the fixed 8,192 is the unnecessary work.",
        "Microseconds saved a step: builder and attention in decode, builder and combine in prefill, at 32k.",
        _where,
        _judge_where,
        "tests/claims/test_costs.py",
        "test_nearly_all_of_the_saving_is_in_the_prefill_combine",
    ),
    Claim(
        "throughput",
        "costs",
        "1.0 % more throughput",
        "1.0 % more throughput end to end, on V4-Pro.",
        "The step account: measured kernel times over a step whose length is assumed, with the range that leaves.",
        _throughput,
        _judge_throughput,
        "tests/test_account.py",
        "test_the_reported_one_percent_lies_in_the_range_for_v4_pro_as_it_was_run",
    ),
    Claim(
        "first_token",
        "costs",
        "The first token comes about 1 % sooner",
        "In short and medium contexts the time to the first token falls by about 1 %.",
        "The same account for a step that only prefills.",
        _first_token,
        _judge_throughput,
        "tests/claims/test_costs.py",
        "test_the_first_token_gains_what_its_prefill_step_saves",
    ),
    Claim(
        "long",
        "costs",
        "Long contexts are unchanged",
        "For long contexts, near 8,192 compressed tokens, nothing changes.",
        "Builder and combine at 1,048,576 tokens, and the length from which the width is the capacity.",
        _long,
        _judge_long,
        "tests/claims/test_costs.py",
        "test_long_contexts_keep_their_times_and_start_at_half_of_the_range",
    ),
    Claim(
        "regression",
        "costs",
        "The risk of a slowdown is low",
        "Only less is computed, so the risk of a performance regression is low.",
        "Adaptive over fixed in every measured cell of the builder; compiled variants of the kernel.",
        _regression,
        _judge_regression,
        "tests/claims/test_costs.py",
        "test_the_worst_measured_cell_is_1024_decode_rows_at_a_million_tokens",
    ),
)
