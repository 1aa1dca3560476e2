"""What index rows cost in a step, before and after the change, and what share of the step that is. Torch-free.

Per engine step the builder runs once and, in a prefill step, the combine once per C128A layer. With measured times:

    saved        = (builder before - after) + C128A layers × (combine before - after)
    step length  = active parameters × tokens × 2 flop / sustained flop per second     (or whatever the user measured)
    more tokens  = 1 / (1 - prefill share × saved / step length) - 1

What is measured and what is assumed are kept apart: times come from a record, everything else from ASSUMPTIONS.

>>> round(throughput_gain(2455.2, 250_880.0, 0.9), 4)
0.0089
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from c128a.measured import NOT_LAUNCHED, Estimate, Series, UnmeasuredError, between
from c128a.times import KernelTimes
from c128a.width import TOPK_ALIGNMENT, Policy, active_topk_width, required_width

COMPRESS_RATIO = 128  # tokens per compressed entry in C128A layers
PAPER = "DeepSeek-V4 paper, arXiv 2606.19348"


@dataclass(frozen=True)
class Model:
    """What the account needs of a model; active_parameters are those one token passes through."""

    name: str
    layers: int
    heads: int
    c128a_layers: int
    active_parameters: float
    source: str


MODELS: dict[str, Model] = {
    "V4-Flash": Model("V4-Flash", 43, 64, 20, 13e9, f"{PAPER}: 284 billion parameters, 13 billion active"),
    "V4-Pro": Model("V4-Pro", 61, 128, 31, 49e9, f"{PAPER}: 1.6 trillion parameters, 49 billion active"),
}


@dataclass(frozen=True)
class Assumption:
    """A number nobody measured here: the value used, the range it may lie in, and why."""

    label: str
    value: float
    low: float
    high: float
    unit: str
    why: str


ASSUMPTIONS: dict[str, Assumption] = {
    "pflops": Assumption(
        "Sustained throughput of the server",
        3.2,
        1.6,
        6.3,
        "PFLOP/s",
        "10, 20 and 40 % of eight times 1,979 TFLOP/s, the dense FP8 peak of an H200; the report names neither card "
        "nor tokens per second. For scale: SGLang's prefill of DeepSeek-V3, 37 billion active, on eight H100 comes to "
        "4.1 PFLOP/s (lmsys.org, 25 September 2025: 26,156 tokens/s a GPU on GB200, 3.8 times the H100).",
    ),
    "prefill_share": Assumption(
        "Share of the run spent in prefill steps",
        0.9,
        0.5,
        1.0,
        "of the time",
        "The report gives no prompt lengths; the pull request's own log folder is called prefill-results.",
    ),
}

NOT_IN_THE_ACCOUNT = (
    "Every tensor-parallel rank combines all tokens of the step: combine times are not divided by the number of cards.",
    "Kernel times are those of one H200 with a warm L2; on another card kernels and step get faster together. The pull "
    "request may have run on another card: NVIDIA's Dynamo recipe caps V4-Pro on eight H200 at 86,016 tokens.",
    "The step estimate counts the matrix products of the active parameters. Attention over the context and "
    "communication make a real step longer, and every share smaller.",
    "Nothing overlaps: a kernel that runs beside another one saves less than its own time.",
)


@dataclass(frozen=True)
class Run:
    """A deployment and one of its prefill steps: model name, tokens a step, longest context, capacity in columns."""

    model: str
    tokens: int
    max_seq_len: int
    capacity: int


# PR #50004: 8 cards, 8,192 batched tokens, 1,048,576 model length. 32,768 tokens is the example it gives.
PR_RUN = Run("V4-Pro", 8192, 32_768, 8192)
REPORTED_GAIN = 0.010  # tokens per second, end to end


@dataclass(frozen=True)
class Part:
    """One kernel of the step, launched `count` times; the time of one before, after, and from positions."""

    name: str
    count: int
    before: Estimate
    after: Estimate
    from_positions: Estimate

    @property
    def saved_us(self) -> float:
        """Microseconds a step that the adaptive width saves here."""
        return self.count * (self.before.us - self.after.us)


@dataclass(frozen=True)
class StepAccount:
    """Microseconds that index rows cost in one step, part by part."""

    model: Model
    tokens: int
    max_seq_len: int
    policy: Policy
    width: int
    parts: tuple[Part, ...]

    def total_us(self, form: str) -> float:
        """Microseconds a step of all parts; form is "before", "after" or "from_positions"."""
        return sum(part.count * getattr(part, form).us for part in self.parts)

    @property
    def saved_us(self) -> float:
        """Microseconds a step that the adaptive width saves."""
        return self.total_us("before") - self.total_us("after")

    @property
    def saved_from_positions_us(self) -> float:
        """Microseconds a step that rows derived from positions save against the fixed width."""
        return self.total_us("before") - self.total_us("from_positions")


def prefill_step(
    model: Model, tokens: int, max_seq_len: int, times: KernelTimes, *, policy: Policy = "pow2", capacity: int = 8192
) -> StepAccount:
    """The account of a step that prefills `tokens` tokens of contexts up to max_seq_len tokens.

    Raises UnmeasuredError where the record has no measured points around the question.
    """
    width = active_topk_width(max_seq_len, COMPRESS_RATIO, capacity, policy=policy)
    # Rows derived from positions need no prefill rows, so the builder has nothing left to do in this step; each of
    # their cells is written once, whatever it holds, so their time follows the width alone.
    positions = times.combine_from_positions.at(tokens, max_seq_len, width)
    parts = tuple(
        Part(
            name,
            count,
            _at_capacity(fixed, tokens, max_seq_len, capacity),
            _at_width(adaptive, fixed, tokens, max_seq_len, width, capacity),
            instead,
        )
        for name, count, fixed, adaptive, instead in (
            ("builder", 1, times.builder_fixed, times.builder, NOT_LAUNCHED),
            ("combine", model.c128a_layers, times.combine_fixed, times.combine, positions),
        )
    )
    return StepAccount(model, tokens, max_seq_len, policy, width, parts)


def decode_step(
    model: Model, rows: int, max_seq_len: int, times: KernelTimes, *, policy: Policy = "pow2", capacity: int = 8192
) -> StepAccount:
    """The account of a step of `rows` decode rows: the builder alone, because decode attention reads lens, not width.

    Raises UnmeasuredError as `prefill_step` does.
    """
    width = active_topk_width(max_seq_len, COMPRESS_RATIO, capacity, policy=policy)
    before = _at_capacity(times.decode_fixed, rows, max_seq_len, capacity)
    after = _at_width(times.decode, times.decode_fixed, rows, max_seq_len, width, capacity)
    return StepAccount(model, rows, max_seq_len, policy, width, (Part("builder", 1, before, after, after),))


def step_us(model: Model, tokens: int, pflops: float) -> float:
    """Estimated length of a step in microseconds: active parameters × tokens × 2 flop over the throughput in PFLOP/s.

    >>> round(step_us(MODELS["V4-Pro"], 8192, 3.2))
    250880
    """
    if pflops <= 0 or tokens < 1:
        raise ValueError(f"pflops is {pflops} and tokens {tokens}; both must be positive")
    return model.active_parameters * tokens * 2 / (pflops * 1e15) * 1e6


def throughput_gain(saved_us: float, step_length_us: float, prefill_share: float = 1.0) -> float:
    """Relative gain in tokens per second when prefill steps of that length get shorter by saved_us.

    Raises ValueError where more is saved than the step is long, or the share is outside 0 to 1.
    """
    if not 0 <= prefill_share <= 1:
        raise ValueError(f"prefill_share is {prefill_share}; it must be between 0 and 1")
    if saved_us >= step_length_us:
        raise ValueError(f"saved_us is {saved_us:,.0f}; a step of {step_length_us:,.0f} µs cannot save that much")
    return 1 / (1 - prefill_share * saved_us / step_length_us) - 1


def step_for_gain(saved_us: float, gain: float, prefill_share: float = 1.0) -> float:
    """How long a prefill step must be, in microseconds, for exactly this gain.

    >>> round(step_for_gain(2000.0, 0.01))
    202000
    """
    return prefill_share * saved_us * (1 + gain) / gain


@dataclass(frozen=True)
class Span:
    """A value with the range that the assumptions leave it."""

    low: float
    value: float
    high: float

    def holds(self, claimed: float) -> bool:
        """Whether a claimed value lies within the range."""
        return self.low <= claimed <= self.high


def gain_span(
    account: StepAccount,
    assumptions: Mapping[str, Assumption],
    *,
    step_length_us: float | None = None,
    saved_us: float | None = None,
) -> Span:
    """The gain in tokens per second over the assumptions' ranges; a given step length replaces the estimated one.

    saved_us defaults to what the adaptive width saves; pass account.saved_from_positions_us for the other form.
    """
    saved = account.saved_us if saved_us is None else saved_us
    pflops, share = assumptions["pflops"], assumptions["prefill_share"]

    def gain(throughput: float, prefill_share: float) -> float:
        length = step_us(account.model, account.tokens, throughput) if step_length_us is None else step_length_us
        return throughput_gain(saved, length, prefill_share)

    return Span(gain(pflops.low, share.low), gain(pflops.value, share.value), gain(pflops.high, share.high))


def _at_capacity(fixed: Series, tokens: int, max_seq_len: int, capacity: int) -> Estimate:
    """The time at the fixed width; refused for another capacity than the one measured."""
    estimate = fixed.at(tokens, max_seq_len, capacity)
    widths = sorted({point.width for point in estimate.points})
    if widths != [capacity]:
        raise UnmeasuredError(f"capacity is {capacity:,}; {fixed.name} was measured at {widths} only")
    return estimate


def _at_width(adaptive: Series, fixed: Series, tokens: int, max_seq_len: int, width: int, capacity: int) -> Estimate:
    """The time at `width`: on the line from the tight width, as measured, to the capacity at the same length.

    Both the width and the live entries of a row cost time. A power of two leaves slack above the entries, so a time
    between tightly filled rows alone would be that of a longer sequence.
    """
    tight = max(required_width(max_seq_len, COMPRESS_RATIO), TOPK_ALIGNMENT)
    if width >= capacity:
        return _at_capacity(fixed, tokens, max_seq_len, capacity)
    snug = adaptive.at(tokens, max_seq_len, tight)
    if width == tight:
        return snug
    return between(snug, tight, _at_capacity(fixed, tokens, max_seq_len, capacity), capacity, width)
