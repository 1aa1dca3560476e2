"""A deployment of the model, as far as the C128A index rows care, and what there can be to say about it. Torch-free."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from c128a.layout import Layout
from c128a.releases import Release
from c128a.width import Policy, reachable_widths

RATIO = 128  # tokens per compressed entry: what makes it C128A

Graph = Literal["eager", "piecewise", "full"]
Consumer = Literal["flashmla_sm90", "flashmla_sm100", "flashinfer_sm120", "other"]
Severity = Literal["danger", "warning", "info"]
GRAPHS: tuple[Graph, ...] = get_args(Graph)
CONSUMERS: tuple[Consumer, ...] = get_args(Consumer)
SEVERITIES: tuple[Severity, ...] = get_args(Severity)

CONSUMER_NAMES: dict[Consumer, str] = {
    "flashmla_sm90": "FlashMLA on sm90",
    "flashmla_sm100": "FlashMLA on sm100",
    "flashinfer_sm120": "FlashInfer on SM120",
    "other": "another kernel",
}
POLICY_NAMES: dict[Policy, str] = {"fixed": "fixed width", "pow2": "power-of-two width", "aligned": "128-aligned width"}
GRAPH_NAMES: dict[Graph, str] = {"eager": "no graphs", "piecewise": "piecewise graphs", "full": "full graphs"}


@dataclass(frozen=True)
class Setup:
    """A deployment, complete and checked: what `c128a.deployment.check` was given, with the release resolved."""

    max_model_len: int  # tokens
    max_num_batched_tokens: int
    max_num_seqs: int
    num_speculative_tokens: int
    block_size: int  # tokens per KV block
    graph: Graph
    consumer: Consumer
    layout: Layout
    policy: Policy
    release: Release | None  # None: the builder of this package
    capacity: int  # columns
    warmup_widths: tuple[int, ...] | None
    batch_invariant: bool

    @property
    def widths(self) -> list[int]:
        """Widths the policy can choose, ascending, in columns."""
        return reachable_widths(self.capacity, policy=self.policy)

    @property
    def adaptive(self) -> bool:
        """Whether some step is narrower than the buffer: only then do packed and pitched rows differ."""
        return len(self.widths) > 1

    @property
    def decode_rows(self) -> int:
        """Most decode rows of one step: a row for each sequence and each of its speculative tokens."""
        return min(self.max_num_batched_tokens, self.max_num_seqs * (1 + self.num_speculative_tokens))

    @property
    def decode_kinds(self) -> tuple[int, ...]:
        """Decode counts, one of each kind that Triton compiles apart: 1, neither, a multiple of 16."""
        return tuple(count for count in (1, 2, 16) if count <= self.decode_rows)

    @property
    def longest_sequence(self) -> int:
        """Tokens of the longest sequence whose compressed entries fit the capacity."""
        return (self.capacity + 1) * RATIO - 1

    def __str__(self) -> str:
        """The setup in one line."""
        rows = f"{self.layout} rows of {POLICY_NAMES[self.policy]}"
        builder = f"vLLM {self.release.name} ({rows})" if self.release else rows.capitalize()
        return f"{builder} with {GRAPH_NAMES[self.graph]} and {CONSUMER_NAMES[self.consumer]}"


@dataclass(frozen=True)
class Finding:
    """One thing to know about a deployment: what it is, why it applies here, and the setting that avoids it.

    danger    wrong results, a refused start or a write out of bounds
    warning   right today, but it stalls, breaks a promise, or one more setting makes it a danger
    info      worth knowing
    """

    code: str  # stable name, for scripts
    severity: Severity
    incident: int | None  # number of the incident test; None where a kernel's own demand is the reason
    title: str
    why: str
    setting: str


def width_list(widths: list[int]) -> str:
    """Widths in words, short whatever their number.

    >>> width_list([128, 256, 384]), width_list([128 * i for i in range(1, 65)])
    ('128, 256, 384', '128, 256, … 8,192 (64 widths)')
    """
    if len(widths) <= 8:
        return ", ".join(f"{width:,}" for width in widths)
    return f"{widths[0]:,}, {widths[1]:,}, … {widths[-1]:,} ({len(widths)} widths)"
