"""A deployment as far as the C128A index rows care, and what there is to say about it. Torch-free.

Each rule looks at a `Setup` and yields findings, or nothing. Two rules are about the kernel that reads the rows: it may
keep the row stride and the width of a captured graph, ask for contiguous rows, or read past lens. The others are about
the build: room, offsets, warm-up, and promises about the batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

from c128a.case import CAPACITY, COMPRESS_RATIO
from c128a.deployment.releases import Release
from c128a.layout import Layout
from c128a.width import Policy, capacity_width, reachable_widths, required_width

Graph = Literal["eager", "piecewise", "full"]
Consumer = Literal["flashmla_sm90", "flashmla_sm100", "flashinfer_sm120", "other"]
Model = Literal["V4", "V4.1", "other"]
Severity = Literal["danger", "warning", "info"]
GRAPHS: tuple[Graph, ...] = get_args(Graph)
CONSUMERS: tuple[Consumer, ...] = get_args(Consumer)
MODELS: tuple[Model, ...] = get_args(Model)
SEVERITIES: tuple[Severity, ...] = get_args(Severity)  # the gravest first

CONSUMER_NAMES: dict[Consumer, str] = {
    "flashmla_sm90": "FlashMLA on sm90",
    "flashmla_sm100": "FlashMLA on sm100",
    "flashinfer_sm120": "FlashInfer on SM120",
    "other": "another kernel",
}
POLICY_NAMES: dict[Policy, str] = {"fixed": "fixed width", "pow2": "power-of-two width", "aligned": "128-aligned width"}
GRAPH_NAMES: dict[Graph, str] = {"eager": "no graphs", "piecewise": "piecewise graphs", "full": "full graphs"}

SM120_LOOSE_ROWS = 64  # tokens; above them FlashInfer's SM120 kernel asks for contiguous rows
ROW_BLOCK = 64  # columns; sparse decode kernels walk a row in blocks of 64, FlashMLA's sm100 head64 kernel asserts it
INT32_CELLS = 2**31  # the first flat offset that 32-bit arithmetic cannot hold


@dataclass(frozen=True)
class Setup:
    """A deployment, complete and checked: what `c128a.deployment.check` was given, with the release resolved."""

    max_model_len: int  # tokens
    max_num_batched_tokens: int
    max_num_seqs: int
    num_speculative_tokens: int
    speculative_method: str | None  # as vLLM names it: mtp, dspark, draft_model, …
    block_size: int  # tokens per KV block
    graph: Graph
    consumer: Consumer
    layout: Layout
    policy: Policy
    release: Release | None  # None: the builder of this package
    capacity: int  # columns
    warmup_widths: tuple[int, ...] | None
    batch_invariant: bool
    model: Model

    @cached_property
    def widths(self) -> list[int]:
        """Widths the policy can choose, ascending, in columns."""
        return reachable_widths(self.capacity, policy=self.policy)

    @property
    def adaptive(self) -> bool:
        """Whether some step is narrower than the buffer: only then do packed and pitched rows differ."""
        return len(self.widths) > 1

    @property
    def decode_query_len(self) -> int:
        """The most query tokens of a request that counts as decode."""
        if self.release is None:
            return 1 + self.num_speculative_tokens
        return self.release.decode_query_len(self.num_speculative_tokens, self.speculative_method)

    @property
    def decode_rows(self) -> int:
        """Most decode rows of one step: a row for each query token of each sequence."""
        return min(self.max_num_batched_tokens, self.max_num_seqs * self.decode_query_len)

    @property
    def table_blocks(self) -> int:
        """Columns of the block table: KV blocks of the longest sequence."""
        return -(-self.max_model_len // self.block_size)

    @property
    def longest_sequence(self) -> int:
        """Tokens of the longest sequence whose compressed entries fit the capacity."""
        return (self.capacity + 1) * COMPRESS_RATIO - 1

    def __str__(self) -> str:
        rows = f"{self.layout} rows of {POLICY_NAMES[self.policy]}"
        builder = f"vLLM {self.release.name} ({rows})" if self.release else rows.capitalize()
        return f"{builder} with {GRAPH_NAMES[self.graph]} and {CONSUMER_NAMES[self.consumer]}"


@dataclass(frozen=True)
class Finding:
    """One thing to know about a deployment, as plain text: what it is, why it applies here, and what avoids it.

    danger    wrong results, a refused start or a write out of bounds
    warning   right today, but it stalls, breaks a promise, or one more setting makes it a danger
    info      worth knowing
    """

    code: str  # stable name, for scripts
    severity: Severity
    incident: int | None  # number in docs/incidents.md; None where a kernel's own demand is the reason
    title: str
    why: str
    setting: str
    source: str  # where the fact can be read; "arithmetic" where it follows from the numbers


# code: incident, title, source
CATALOGUE: dict[str, tuple[int | None, str, str]] = {
    "moving-rows": (1, "Rows move under the captured graph", "issue #52448"),
    "one-row": (1, "Right only while a step has one decode row", "issue #52448"),
    "packed-outside-graphs": (1, "Right only while attention stays outside the graphs", "issue #52448"),
    "capacity-too-small": (3, "The buffers are narrower than the longest sequence", "arithmetic"),
    "rows-not-contiguous": (None, "The kernel needs contiguous rows", "FlashInfer, sparse MLA for SM120"),
    "stale-columns": (11, "Lanes past lens may hold ids of an earlier step", "FlashInfer, sparse MLA for SM120"),
    "width-not-64": (None, "A block of columns runs over the end of a row", "FlashMLA, sm100 head64"),
    "large-offsets": (12, "Row offsets pass 2³¹", "arithmetic"),
    "uncovered-widths": (15, "The warm-up list misses widths", "arithmetic"),
    "capacity-not-power-of-two": (15, "The widest width is not a power of two", "arithmetic"),
    "depends-on-the-batch": (None, "The width depends on the rest of the batch", "PR #50004"),
    "unknown-reader": (None, "Three questions to ask of the kernel", "FlashMLA"),
    "decode-prefill-split": (10, "Short queries count as decode", "vLLM, v1/attention/backend.py"),
    "compiles-while-serving": (4, "New kinds of batches compile the builder's kernel", "counted on an H200"),
    "default-width": (6, "The default width does not fit these rows", "PR #50004"),
    "full-width": (None, "Every step pays for the longest sequence", "PR #52823"),
    "no-c128a-layers": (None, "Nothing of this applies to the model", "the model's compress ratios"),
}
# What a rule yields: the code, the severity, why it applies, and the setting that avoids it.
Said = tuple[str, Severity, str, str]


def findings_of(setup: Setup) -> tuple[Finding, ...]:
    """All that applies to a deployment, the gravest first; a model without C128A layers has only that to say."""
    rules = (_stride, _room, _view, _warming, _batches) if setup.model == "V4" else (_no_layers,)
    found = []
    for code, severity, why, setting in (said for rule in rules for said in rule(setup)):
        incident, title, source = CATALOGUE[code]
        found.append(Finding(code, severity, incident, title, why, setting, source))
    return tuple(sorted(found, key=lambda finding: SEVERITIES.index(finding.severity)))


def width_list(widths: Sequence[int]) -> str:
    """Widths in words, short whatever their number.

    >>> width_list([128, 256, 384]), width_list([128 * i for i in range(1, 65)])
    ('128, 256, 384', '128, 256, … 8,192 (64 widths)')
    """
    if len(widths) <= 8:
        return ", ".join(f"{width:,}" for width in widths)
    return f"{widths[0]:,}, {widths[1]:,}, … {widths[-1]:,} ({len(widths)} widths)"


def _no_layers(setup: Setup) -> Iterator[Said]:
    """The one finding of a model that compresses otherwise."""
    name = "DeepSeek-V4.1" if setup.model == "V4.1" else "This model"
    why = f"{name} has no layers that compress 128 tokens to one entry, so no index rows of this kind are built."
    yield "no-c128a-layers", "info", why, "None; the sizes are those that a DeepSeek-V4 would have."


def _stride(setup: Setup) -> Iterator[Said]:
    """Packed rows change their stride, a captured graph does not."""
    if setup.layout != "packed" or not setup.adaptive:
        return
    history = "Packed rows are the layout of vLLM 0.27.1 (PR #50004), reverted in 0.28.0 (PR #51318, issue #52448)."
    narrow, wide = f"{setup.widths[0]:,}", f"{setup.capacity:,}"
    if setup.graph != "full":
        mode = "no graph holds" if setup.graph == "eager" else "piecewise graphs leave out"
        why = f"Here {mode} the attention kernel, so each launch takes the stride of its step. {history}"
        setting = "Keep the graph mode, or move to pitched rows and be free to choose it."
        yield "packed-outside-graphs", "warning" if setup.release else "info", why, setting
    elif setup.decode_rows == 1:
        why = f"Row 0 lies at element 0 at any stride, and a step has no second decode row. {history}"
        yield "one-row", "warning", why, "Pitched rows, before max_num_seqs or the speculative tokens grow."
    else:
        moved = (
            f"In a step of {narrow} columns packed row 1 starts at element {narrow}, and the kernel reads it at {wide}"
        )
        stale = "every decode row after the first gets stale or foreign ids"
        why = f"A full graph replays the row stride of its capture, {wide}. {moved}: {stale}. {history}"
        graphs = f"cudagraph_mode PIECEWISE or NONE, or a captured graph for each of the {len(setup.widths)} widths"
        yield "moving-rows", "danger", why, f"Pitched rows (vLLM 0.29.0 or later), a fixed width (0.28.0), {graphs}."


def _view(setup: Setup) -> Iterator[Said]:
    """Kernels walk a row in blocks of 64 columns; pitched rows have gaps, and more of them than the step wrote is seen.

    On SM120 released builders hand over decode rows at full width: no gaps, but old columns in every step.
    """
    if odd := ", ".join(f"{width:,}" for width in setup.widths if width % ROW_BLOCK):
        setting = f"A capacity that is a multiple of 128: {-(-setup.capacity // 128) * 128:,}."
        if setup.consumer == "flashmla_sm100":
            why = f"FlashMLA's sm100 head64 kernel asserts that {ROW_BLOCK} divides the width. Reachable here: {odd}."
            yield "width-not-64", "danger", why, setting
        else:
            why = f"At {odd} columns the last block of {ROW_BLOCK} ends in the next row, or past the view."
            yield "width-not-64", "warning", why, setting
    if setup.layout != "pitched" or not setup.adaptive:
        return
    sm120, release = setup.consumer == "flashinfer_sm120", setup.release
    if sm120 and not release and setup.decode_rows > SM120_LOOSE_ROWS:
        gaps = f"Pitched rows of {setup.capacity:,} columns have gaps; a step can have {setup.decode_rows:,} of them."
        why = f"FlashInfer's SM120 kernel before 0.7.4 asks for contiguous rows above {SM120_LOOSE_ROWS} tokens. {gaps}"
        setting = f"Policy fixed, decode rows at full width as vLLM builds them, or at most {SM120_LOOSE_ROWS} rows."
        yield "rows-not-contiguous", "danger", why, setting
    cause = f"A full graph replays the width of its capture too, {setup.capacity:,} columns."
    if sm120 and release:
        cause = f"On SM120 the released builder returns decode rows of {setup.capacity:,} columns in every step."
    cause += " A narrower step writes -1 up to its own width; columns after it keep the bytes of old steps."
    seen = setup.graph == "full" or release
    if seen and sm120 and release and release.lens_bound_sm120:
        why = f"{cause} The FlashInfer of this release gathers nothing past lens, so nobody reads them."
        yield "stale-columns", "info", why, "Keep FlashInfer at 0.7.2 or later."
    elif seen and sm120:
        why = f"{cause} FlashInfer's SM120 kernel before 0.7.2 may read lanes past lens and take those bytes for ids."
        setting = "A fixed width (vLLM 0.28.0), or FlashInfer 0.7.2 or later (vLLM 0.33.0), which stops at lens."
        yield "stale-columns", "danger", why, setting
    elif setup.graph == "full" and setup.consumer == "other":
        why = f"{cause} A kernel that reads past lens takes those bytes for ids."
        setting = "Policy fixed, cudagraph_mode PIECEWISE or NONE, or a kernel that stops at lens, as FlashMLA does."
        yield "stale-columns", "warning", why, setting
    if setup.consumer == "other":
        why = "Does it take any row stride, stop at lens, and ask for no more than a multiple of 64, as FlashMLA does?"
        yield "unknown-reader", "info", why, "Policy fixed, whatever the answers."


def _room(setup: Setup) -> Iterator[Said]:
    """Sequences that a row cannot hold, rows that 32 bits cannot count, and a default that is not the capacity."""
    capacity, needed = setup.capacity, required_width(setup.max_model_len, COMPRESS_RATIO)
    if needed > capacity:
        outcome = f"The last {needed - capacity:,} entries of such a row are dropped in silence."
        if setup.release is None:
            outcome = "The builder of this package refuses such a step with an error."
        elif setup.layout == "pitched" and setup.policy != "fixed":
            outcome = "vLLM asserts that the width holds the sequence, and stops."
        room = f"A capacity of {capacity:,} columns holds sequences of up to {setup.longest_sequence:,} tokens"
        why = f"{room}; max_model_len is {setup.max_model_len:,} and needs {needed:,} columns. {outcome}"
        fits = f"max_model_len {capacity * COMPRESS_RATIO:,} or less wherever the engine uses it, auto-fitted or not"
        yield "capacity-too-small", "danger", why, f"{fits}; or a capacity of {capacity_width(setup.max_model_len):,}."
    cells, last = setup.max_num_batched_tokens * capacity, INT32_CELLS // capacity
    if setup.release and cells > INT32_CELLS:
        size = f"{setup.max_num_batched_tokens:,} rows of {capacity:,} columns are {cells:,} cells"
        why = f"{size}. The row loop counts in 32 bits: from row {last:,} on it writes outside the buffer."
        setting = f"max_num_batched_tokens {last:,} or less, or the stand-in of this package: its offsets have 64 bits."
        yield "large-offsets", "danger", why, setting
    if capacity != CAPACITY:
        outcome = "run over the rows after it" if capacity < CAPACITY else "end early"
        called = f"A call of build_c128a_topk_metadata without a width builds {CAPACITY:,} columns"
        setting = "Pass max_compressed_tokens in calls of your own, as both builders do."
        yield "default-width", "info", f"{called}; a long row of {capacity:,} would {outcome}.", setting


def _warming(setup: Setup) -> Iterator[Said]:
    """A width that can be chosen and was not warmed up, and variants that Triton compiles when it meets them."""
    widths, given = setup.widths, setup.warmup_widths
    missing = [] if given is None else sorted(set(widths) - set(given))
    odd = setup.policy == "pow2" and setup.capacity & (setup.capacity - 1) != 0
    last = f" The last, {setup.capacity:,}, is the capacity: a list of powers of two misses it."
    if missing:
        why = f"Reachable but not warmed up: {width_list(missing)}. The first batch compiles or captures while served."
        why += last if odd and widths[-1] in missing else ""
        yield "uncovered-widths", "warning", why, f"Warm up {width_list(widths)}."
    elif given is None and odd:
        why = f"The widths are {width_list(widths)}.{last}"
        yield "capacity-not-power-of-two", "info", why, "Take warm-up lists from the reachable widths."
    if setup.release:
        all_widths, counts, strides, pointers = setup.release.variants
        more = f"{counts} after other decode counts, {strides} after odd table strides, {pointers} after"
        why = f"The row loop compiles {all_widths} variant for all widths, {more} unaligned positions."
        setting = "Positions at an address that 16 divides; or this package's stand-in: warmup() lists its variants."
        yield "compiles-while-serving", "info", why, setting


def _batches(setup: Setup) -> Iterator[Said]:
    """What the rest of a batch decides: the width of its rows, and which requests are decode."""
    if setup.batch_invariant and setup.adaptive:
        why = "The longest sequence of a batch sets the width of all its rows, and results are not to depend on it."
        yield "depends-on-the-batch", "warning", why, f"Policy fixed: {setup.capacity:,} columns every step."
    if setup.num_speculative_tokens:
        most, wanted = setup.decode_query_len, setup.max_num_seqs * setup.decode_query_len
        bound = f" (of {wanted:,}: max_num_batched_tokens is the bound)" if wanted > setup.decode_rows else ""
        decode = f"when its query has {most} tokens or fewer, the short last chunk of a prompt included"
        why = f"With {setup.num_speculative_tokens} speculative tokens a request is decode {decode}, and prefill from "
        why += f"{most + 1} on. A step has up to {setup.decode_rows:,} decode rows{bound}."
        yield "decode-prefill-split", "info", why, f"Size decode buffers and graphs for {setup.decode_rows:,} rows."
    narrow = reachable_widths(setup.capacity)[0]
    needless = setup.consumer.startswith("flashmla") and not setup.batch_invariant and narrow < setup.capacity
    if setup.policy == "fixed" and needless:
        fills = "whatever the batch holds, and the prefill combine fills them once in each C128A layer"
        why = f"Rows are {setup.capacity:,} columns wide {fills}. The power-of-two policy starts at {narrow:,}."
        yield "full-width", "info", why, "Adaptive width on pitched rows: vLLM 0.29.0 or later."
