"""The sentences of page 01, computed from its settings. Torch-free; every text is Markdown."""

from __future__ import annotations

from c128a.layout import human_bytes
from c128a.ui.width_data import WidthCase, mean_width, reach, step_bytes
from c128a.width import loop_trips


def lead(case: WidthCase) -> str:
    """The opening sentence: what the settings make true.

    >>> lead(WidthCase())
    'At **32,768 tokens** a row needs 256 of 8,192 columns: 32 × fewer to write, and 8 trips become 1.'
    """
    opening = f"At **{case.seq:,} tokens** a row needs {case.needed:,} of {case.capacity:,} columns"
    if not case.fits:
        return f"At **{case.seq:,} tokens** a row needs {case.needed:,} columns, and the buffer has {case.capacity:,}."
    if case.width == case.capacity:
        pads = 1 - case.needed / case.width
        return (
            f"{opening}, and **all {case.capacity:,} are built**: nothing is saved, {pads:.0%} of the row is padding."
        )
    built = "" if case.width == max(case.needed, 1) else f" and {case.width:,} are built"
    before, after = loop_trips(case.capacity), loop_trips(case.width)
    return f"{opening}{built}: {case.capacity / case.width:,.3g} × fewer to write, and {_trips(before, after)}."


def _trips(before: int, after: int) -> str:
    if before == after:
        return f"still {after} trip{'s' if after > 1 else ''} of the row loop"
    return f"{before} trips become {after}"


def too_narrow(case: WidthCase) -> str | None:
    """What is wrong where the capacity cannot hold the sequence, with both numbers; None where it can.

    >>> too_narrow(WidthCase(seq=1_048_576, model_len=980_224)).split(". ")[0]
    '**The capacity of 7,680 columns is too narrow for 1,048,576 tokens**, which need 8,192'
    """
    if case.fits:
        return None
    return (
        f"**The capacity of {case.capacity:,} columns is too narrow for {case.seq:,} tokens**, which need "
        f"{case.needed:,}. {case.needed - case.capacity:,} entries of such a row would be lost: a builder must refuse "
        f"the batch. This buffer holds at most {(case.capacity + 1) * case.ratio - 1:,} tokens; a model length of "
        f"{case.seq:,} would hold this batch."
    )


def curve_sentence(case: WidthCase) -> str:
    """What the curve shows: the range of this width, and the share of all lengths that gains nothing."""
    first, last = case.held
    held = f"{case.width:,} columns serve every batch from {first:,} to {last:,} tokens."
    if case.policy == "fixed":
        return f"{held} A fixed width never changes, whatever the batch holds."
    return (
        f"{held} From **{case.full_from:,} tokens** on the width is the capacity: "
        f"**{case.full_share:.0%} of all lengths** up to {case.model_len:,} gain nothing."
    )


def strip_sentence(case: WidthCase) -> str:
    """What the strip shows: how the lengths divide between saving and not."""
    if case.full_share >= 0.995:
        return f"Every length builds {case.capacity:,} columns: this policy saves nothing at this capacity."
    return (
        f"The same lengths, each token counted once: {1 - case.full_share:.1%} of them build fewer than "
        f"{case.capacity:,} columns (blue), {case.full_share:.1%} build them all (red)."
    )


def pads_sentence(case: WidthCase) -> str:
    """The power of two against the multiple of 128: here, and on average over all lengths."""
    pow2, aligned = case.width_of("pow2"), case.width_of("aligned")
    here = (
        f"At {case.seq:,} tokens both adaptive policies build {pow2:,} columns."
        if pow2 == aligned
        else f"At {case.seq:,} tokens the power of two builds {pow2:,} columns where the multiple of 128 builds "
        f"{aligned:,}: {pow2 - aligned:,} more."
    )
    means = {policy: mean_width(case.model_len, case.ratio, policy) for policy in ("pow2", "aligned")}
    more = means["pow2"] / means["aligned"] - 1
    return (
        f"{here} Over all lengths up to {case.model_len:,}, each counted once, the power of two builds {more:.0%} more."
    )


def trips_sentence(case: WidthCase) -> str:
    """Why fewer columns are not as many times fewer trips.

    >>> trips_sentence(WidthCase())
    'With 1,024 columns a trip, 32 × fewer columns are 8 × fewer trips: a trip cannot be split.'
    """
    columns = case.capacity / case.width
    fewer = loop_trips(case.capacity) / loop_trips(case.width)
    if columns == 1:
        return "At full width every block size takes as many trips as before."
    end = "a trip cannot be split." if fewer < columns else "here the two are the same."
    return f"With 1,024 columns a trip, {columns:,.3g} × fewer columns are {fewer:,.3g} × fewer trips: {end}"


def bytes_sentence(case: WidthCase) -> str:
    """The bytes of one step under the chosen policy against the fixed width."""
    table = step_bytes(case).set_index("policy")["bytes"]
    chosen, fixed = int(table[case.policy]), int(table["fixed"])
    return (
        f"{case.rows:,} rows of {case.width:,} int32 columns are {human_bytes(chosen)} a step, "
        f"against {human_bytes(fixed)} at full width."
    )


def reach_sentence(case: WidthCase) -> str:
    """Where the width stands among those that the policy can choose.

    >>> reach_sentence(WidthCase())
    '256 columns is the 2nd of 7 widths that this policy can choose: what a warm-up or a graph capture has to cover.'
    """
    widths = reach(case.model_len, case.ratio, case.policy)["width"].tolist()
    if len(widths) == 1:
        return f"{case.width:,} columns is the only width that this policy can choose at this capacity."
    at = widths.index(case.width) + 1
    ending = {1: "st", 2: "nd", 3: "rd"}.get(at % 10 if at % 100 not in (11, 12, 13) else 0, "th")
    return (
        f"{case.width:,} columns is the {at}{ending} of {len(widths)} widths that this policy can choose: "
        "what a warm-up or a graph capture has to cover."
    )


def command(case: WidthCase) -> str:
    """A shell line that gives the same widths."""
    return (
        'python -c "from c128a.width import *; '
        f"C = capacity_width({case.model_len}, {case.ratio}); "
        f"print(C, active_topk_width({case.seq}, {case.ratio}, C, policy='{case.policy}'), "
        f"reachable_widths(C, policy='{case.policy}'))\""
    )
