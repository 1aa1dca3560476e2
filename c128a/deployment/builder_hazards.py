"""What goes wrong while the rows are built: room, warm-up, offsets, and promises about the batch. Torch-free.

A rule looks at a `Setup` and yields findings, or nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from c128a.deployment.serving import RATIO, Finding, Setup, width_list
from c128a.width import capacity_width, reachable_widths, required_width

DEFAULT_WIDTH = 8192  # columns that build_c128a_topk_metadata writes when it is not told a width
INT32_CELLS = 2**31  # the first flat offset that 32-bit arithmetic cannot hold


def capacity(setup: Setup) -> Iterator[Finding]:
    """Incident 3: the longest sequence has more compressed entries than a row has columns."""
    needed = required_width(setup.max_model_len, RATIO)
    if needed <= setup.capacity:
        return
    if setup.release is None:
        outcome = "The builder of this package refuses such a step with an error."
    elif setup.release.name == "0.30.0":
        outcome = "vLLM asserts that the width holds the sequence, and stops."
    else:
        outcome = f"The last {needed - setup.capacity:,} entries of such a row are dropped in silence."
    yield Finding(
        "capacity-too-small",
        "danger",
        3,
        "The buffers are narrower than the longest sequence",
        f"A capacity of {setup.capacity:,} columns holds sequences of up to {setup.longest_sequence:,} tokens; "
        f"max_model_len is {setup.max_model_len:,} and needs {needed:,} columns. {outcome}",
        f"max_model_len {setup.capacity * RATIO:,} or less wherever the engine uses it, an auto-fitted length "
        f"included; or a capacity of {capacity_width(setup.max_model_len):,}.",
    )


def large_offsets(setup: Setup) -> Iterator[Finding]:
    """Incident 12: rows past flat offset 2³¹, counted in 32 bits by the row loop of the releases."""
    cells = setup.max_num_batched_tokens * setup.capacity
    if setup.release is None or cells <= INT32_CELLS:
        return
    row = INT32_CELLS // setup.capacity
    yield Finding(
        "large-offsets",
        "danger",
        12,
        "Row offsets pass 2³¹",
        f"{setup.max_num_batched_tokens:,} rows of {setup.capacity:,} columns are {cells:,} cells. The row loop counts "
        f"in 32 bits: from cell {INT32_CELLS:,}, in row {row:,}, it writes outside the buffer.",
        f"max_num_batched_tokens {row:,} or less, or the stand-in of this package, whose offsets have 64 bits.",
    )


def warmup_list(setup: Setup) -> Iterator[Finding]:
    """Incident 15: a width that can be chosen and was not warmed up."""
    widths, given = setup.widths, setup.warmup_widths
    odd = setup.policy == "pow2" and setup.capacity & (setup.capacity - 1) != 0
    missing = [] if given is None else [width for width in widths if width not in given]
    if missing:
        cause = f" {setup.capacity:,} is the capacity: a list of powers of two misses it."
        yield Finding(
            "uncovered-widths",
            "warning",
            15,
            "The warm-up list misses widths",
            f"Reachable but not warmed up: {width_list(missing)}. The first batch that needs one compiles or captures "
            f"while it is served.{cause if odd and setup.capacity in missing else ''}",
            f"Warm up {width_list(widths)}.",
        )
    elif given is None and odd:
        yield Finding(
            "capacity-not-power-of-two",
            "info",
            15,
            "The widest width is not a power of two",
            f"The widths are {width_list(widths)}. The last is the capacity: a list of powers of two misses it.",
            "Take warm-up lists from the reachable widths.",
        )


def batch_invariance(setup: Setup) -> Iterator[Finding]:
    """Results that must not depend on the rest of the batch want the same shapes in every step."""
    if setup.batch_invariant and setup.adaptive:
        yield Finding(
            "depends-on-the-batch",
            "warning",
            None,
            "The width depends on the rest of the batch",
            "The longest sequence of a batch sets the width of every row, and you ask for results that do not depend "
            "on the rest of the batch.",
            f"Policy fixed: {setup.capacity:,} columns in every step.",
        )


def decode_split(setup: Setup) -> Iterator[Finding]:
    """Incident 10: which requests count as decode when they verify speculative tokens."""
    k = setup.num_speculative_tokens
    if k == 0:
        return
    wanted = setup.max_num_seqs * (1 + k)
    bound = f" (of {wanted:,}: max_num_batched_tokens is the bound)" if wanted > setup.decode_rows else ""
    yield Finding(
        "decode-prefill-split",
        "info",
        10,
        f"Up to {1 + k} query tokens count as decode",
        f"With {k} speculative tokens a request is decode when its query has {1 + k} tokens or fewer, the short last "
        f"chunk of a prompt included, and prefill from {2 + k} on. A step has up to {setup.decode_rows:,} decode "
        f"rows{bound}.",
        f"Size decode buffers and graphs for {setup.decode_rows:,} rows.",
    )


def compiling(setup: Setup) -> Iterator[Finding]:
    """Incident 4: Triton compiles a variant for each kind of integer it meets."""
    if setup.release is not None:
        yield Finding(
            "compiles-while-serving",
            "info",
            4,
            "New kinds of batches compile the builder's kernel",
            "The row loop leaves its integers to Triton, which compiles apart what equals 1, what 16 divides, and the "
            "rest. Counted on an H200: one variant for all widths, 3 after other decode counts, 4 after an odd "
            "block-table stride, 5 after an unaligned positions pointer.",
            f"Warm up with {width_list(list(setup.decode_kinds))} decode rows; or use the stand-in of this package, "
            "whose variants warmup() lists.",
        )


def default_width(setup: Setup) -> Iterator[Finding]:
    """Incident 6: the function's default of 8,192 columns on rows of another width."""
    if setup.capacity == DEFAULT_WIDTH:
        return
    if setup.capacity < DEFAULT_WIDTH:
        outcome = f"rows here are {setup.capacity:,} apart, so each row would run over the rows after it"
    else:
        outcome = f"rows here need up to {setup.capacity:,}, so long rows would end early"
    yield Finding(
        "default-width",
        "info",
        6,
        "The default width does not fit these rows",
        f"A call of build_c128a_topk_metadata without a width builds {DEFAULT_WIDTH:,} columns; {outcome}. vLLM's "
        "builder and the one of this package pass their width.",
        "Pass max_compressed_tokens in calls of your own.",
    )


def full_width(setup: Setup) -> Iterator[Finding]:
    """A fixed width where an adaptive one would be as safe: nothing is wrong, every step pays."""
    narrow = reachable_widths(setup.capacity)[0]
    needless = setup.consumer.startswith("flashmla") and not setup.batch_invariant and narrow < setup.capacity
    if setup.policy == "fixed" and needless:
        yield Finding(
            "full-width",
            "info",
            None,
            "Every step pays for the longest sequence",
            f"Rows are {setup.capacity:,} columns wide whatever the batch holds, and the prefill combine fills them "
            f"once in each C128A layer. The power-of-two policy starts at {narrow:,}.",
            "Adaptive width on pitched rows: vLLM 0.30.0 or later.",
        )
