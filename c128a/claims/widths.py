"""Claims about the width of a row. Torch-free, but for what the builder refuses.

The report: the width follows the longest sequence of the batch, rounded up, at least 128, at most the capacity.
"""

from __future__ import annotations

from c128a import width as policy
from c128a.claims import live
from c128a.claims.core import Claim, Facts, Setting, Verdict
from c128a.width import active_topk_width, capacity_width, loop_trips, reachable_widths, required_width

MODEL_LEN = 1_048_576  # tokens, as the pull request served V4-Pro
RATIO = 128
READ_BLOCKS = (64, 128)  # indices a decode kernel takes at a time: with 64 query heads (V4-Flash), with 128 (V4-Pro)

# Lengths at which the formula could break: none, odd, one under and over a step, the longest.
LENGTHS = (0, 1, 127, 128, 129, 16_511, 16_512, 32_767, 32_895, 32_896, 99_999, 524_415, 524_416, 1_048_575, MODEL_LEN)
# Capacities of model lengths 1,048,576; 1,000,000; 70,000; 33,792; and of a context auto-fitted to 980,224 tokens.
CAPACITIES = (8192, 7936, 640, 384, 7680)

# Public code read for this review. The fork copied the width formula and not the constant, and was patched for it.
CONSTANT_IN_VLLM = "at module level of vllm/models/deepseek_v4/sparse_mla.py, seen at commit 01a3d5aca1"
FORKS_WITHOUT_CONSTANT = (
    "local-inference-lab/vllm, commit ad848fc41; noted in thebroadercollective/spark-vllm-docker",
)


def _needs_256(_: Setting) -> Facts:
    capacity = capacity_width(MODEL_LEN)
    return {
        "needed": required_width(32_768, RATIO),
        "built": active_topk_width(32_768, RATIO, capacity),
        "capacity": capacity,
    }


def _judge_needs_256(facts: Facts) -> Verdict:
    needed, built, capacity = facts["needed"], facts["built"], facts["capacity"]
    if needed == built == 256:
        return Verdict("holds", f"32,768 // 128 = {needed} entries; {built} of {capacity:,} columns are built.")
    return Verdict("does not hold", f"32,768 tokens have {needed} entries, and {built} columns are built.")


def _loop_32(setting: Setting) -> Facts:
    fixed, adaptive = capacity_width(MODEL_LEN), active_topk_width(32_768, RATIO, 8192)
    times = setting.times
    return {
        "columns": (fixed, adaptive),
        "trips": (loop_trips(fixed), loop_trips(adaptive)),
        "us": (times.builder_fixed.at(8192, 32_768, fixed).us, times.builder.at(8192, 32_768, adaptive).us),
    }


def _judge_loop_32(facts: Facts) -> Verdict:
    columns, trips, us = (facts[name][0] / facts[name][1] for name in ("columns", "trips", "us"))
    if trips == 32:
        return Verdict("holds", f"{facts['trips'][0]} trips become {facts['trips'][1]}.")
    if columns == 32:
        return Verdict(
            "holds if",
            f"the loop is counted in columns. Its trips, 1,024 columns each, become {trips:.0f} × fewer, and 8,192 "
            f"prefill rows at 32k are built {us:.1f} × faster.",
        )
    return Verdict("does not hold", f"Columns become {columns:.1f} × fewer, trips {trips:.1f} ×.")


def _proportional(_: Setting) -> Facts:
    return {"trips": {width: loop_trips(width) for width in reachable_widths(capacity_width(MODEL_LEN))}}


def _judge_proportional(facts: Facts) -> Verdict:
    trips = facts["trips"]
    widest = max(trips)
    off = [width for width in trips if trips[width] * widest != trips[widest] * width]
    if not off:
        return Verdict("holds", f"Trips over width is the same for all {len(trips)} widths.")
    on = [width for width in trips if width not in off]
    if len(on) > 1 and max(off) < min(on):
        return Verdict(
            "holds if",
            f"the width is at least {min(on):,}: below, every row takes one trip, whatever its width "
            f"({len(off)} of {len(trips)} widths).",
        )
    return Verdict("does not hold", f"{len(off)} of {len(trips)} widths are off the line.")


def _empty_and_odd(_: Setting) -> Facts:
    built = [(length, c, active_topk_width(length, RATIO, c)) for c in CAPACITIES for length in LENGTHS]
    return {
        "checked": len(built),
        "narrowest": min(width for _, _, width in built),
        "too_narrow": [
            (length, capacity, width) for length, capacity, width in built if width < required_width(length, RATIO)
        ],
        "builder": live.refusals(),
    }


def _judge_empty_and_odd(facts: Facts) -> Verdict:
    if facts["narrowest"] < 1:
        return Verdict("does not hold", f"A width of {facts['narrowest']} is chosen.")
    if facts["too_narrow"]:
        length, capacity, width = max(facts["too_narrow"])
        return Verdict(
            "holds if",
            f"the capacity holds the sequence. No width is under {facts['narrowest']}, but the cap is silent: "
            f"{length:,} tokens at capacity {capacity:,} get {width:,} columns for {length // RATIO:,} entries.",
        )
    return Verdict("holds", f"No width is under {facts['narrowest']}, none too narrow, over {facts['checked']} cases.")


def _constant(_: Setting) -> Facts:
    return {
        "defined": getattr(policy, "TOPK_ALIGNMENT", None),
        "in_vllm": CONSTANT_IN_VLLM,
        "forks_without": FORKS_WITHOUT_CONSTANT,
    }


def _judge_constant(facts: Facts) -> Verdict:
    if facts["defined"] is None or not facts["in_vllm"]:
        return Verdict("holds", "The constant is defined nowhere the formula is.")
    if facts["forks_without"]:
        return Verdict(
            "holds if",
            f"the formula is copied alone. vLLM defines the constant {facts['in_vllm']}; "
            f"{len(facts['forks_without'])} fork took the formula without it and needed a patch.",
        )
    return Verdict("does not hold", f"The constant is defined where it is used, {facts['in_vllm']}.")


def _why_128(_: Setting) -> Facts:
    widths = {width for c in CAPACITIES for width in reachable_widths(c)}
    loose = [(n, active_topk_width(n * RATIO, RATIO, 8192, alignment=1)) for n in range(1, 8193)]
    return {
        "widths": len(widths),
        "not_128": sum(width % policy.TOPK_ALIGNMENT != 0 for width in widths),
        "reads_past": sum(
            -(-n // block) * block > active_topk_width(n * RATIO, RATIO, c)
            for block in READ_BLOCKS
            for c in CAPACITIES
            for n in range(1, c + 1)
        ),
        "reads_past_without": sum(-(-n // block) * block > width for block in READ_BLOCKS[1:] for n, width in loose),
    }


def _judge_why_128(facts: Facts) -> Verdict:
    if facts["not_128"] or facts["reads_past"]:
        return Verdict(
            "does not hold",
            f"{facts['not_128']} of {facts['widths']} widths are no multiple of 128; {facts['reads_past']} rows are "
            "read past their end.",
        )
    return Verdict(
        "holds",
        f"All {facts['widths']} widths are multiples of 128: a decode kernel that takes 64 or 128 indices at a time "
        f"stays in its row. With powers of two alone it would leave the row at {facts['reads_past_without']} lengths.",
    )


CLAIMS = (
    Claim(
        "needs_256",
        "widths",
        "32k tokens need 256 columns",
        "At 32k tokens a width of 256 does; the 8,192 of before are wasted work.",
        "The formula at 32,768 tokens, against the entries such a sequence has.",
        _needs_256,
        _judge_needs_256,
        "tests/test_width.py",
        "test_width_of_a_sequence_length",
    ),
    Claim(
        "loop_32",
        "widths",
        "The loop is 32 × shorter",
        "Going from 8,192 to 256 makes the kernel's loop 32 × shorter.",
        "Columns, trips of the report's loop (BLOCK_SIZE = 1024), and measured time, each before over after.",
        _loop_32,
        _judge_loop_32,
        "tests/claims/test_widths.py",
        "test_columns_trips_and_time_shrink_by_three_different_factors",
    ),
    Claim(
        "proportional",
        "widths",
        "The loop count follows the width",
        "The number of loop iterations is proportional to max_compressed_tokens.",
        "Trips for each of the widths that can be chosen at a capacity of 8,192.",
        _proportional,
        _judge_proportional,
        "tests/claims/test_widths.py",
        "test_three_of_seven_widths_take_one_trip_though_they_are_narrower_than_a_trip",
    ),
    Claim(
        "empty_and_odd",
        "widths",
        "Empty and odd lengths are safe",
        "A max_seq_len of 0 or an abnormal one is rounded up to the alignment and never gives an empty tensor.",
        f"The formula at {len(LENGTHS)} lengths (0, 1, odd, one over) and {len(CAPACITIES)} capacities.",
        _empty_and_odd,
        _judge_empty_and_odd,
        "tests/test_incidents.py",
        "test_incident_3_a_capacity_smaller_than_the_sequence_is_an_error_with_both_numbers",
    ),
    Claim(
        "constant",
        "widths",
        "The alignment constant may be missing",
        "If _C128A_TOPK_ALIGNMENT is not defined in the file, a NameError may follow; visibility should be confirmed.",
        "Where the constant is defined here, in vLLM, and in public copies of the formula.",
        _constant,
        _judge_constant,
        "tests/claims/test_widths.py",
        "test_the_constant_is_the_one_the_policy_uses",
    ),
    Claim(
        "why_128",
        "widths",
        "Widths are aligned to 128",
        "The width is rounded up to the alignment. The report does not say why 128.",
        "Every reachable width at five capacities; every row length, read in blocks of 64 and of 128 indices.",
        _why_128,
        _judge_why_128,
        "tests/claims/test_widths.py",
        "test_powers_of_two_alone_would_be_read_past_their_end",
    ),
)
