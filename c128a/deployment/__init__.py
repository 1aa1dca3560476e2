"""Is a deployment in a dangerous corner? Torch-free; `python -m c128a.deployment` is the same for a terminal or for CI.

`check` takes what an operator sets and the vLLM release, or a layout and a policy, and answers with the capacity, the
bytes of the buffers, the widths that can occur, what to warm up or capture, and the incidents that apply.

>>> check(release="0.27.1").verdict, check(release="0.30.0").verdict
('danger', 'safe')
>>> check(release="0.27.1").findings[0].title
'Rows move under the captured graph'
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from c128a.deployment import builder_hazards, reader_hazards
from c128a.deployment.provision import Buffer, WarmUp, buffers, warm_up
from c128a.deployment.serving import CONSUMERS, GRAPHS, RATIO, SEVERITIES, Consumer, Finding, Graph, Setup
from c128a.layout import LAYOUTS, Layout
from c128a.releases import release_of
from c128a.width import POLICIES, Policy, capacity_width

Verdict = Literal["danger", "warning", "safe"]

RULES = (
    reader_hazards.moving_rows,
    builder_hazards.capacity,
    reader_hazards.contiguous_rows,
    reader_hazards.stale_columns,
    reader_hazards.block_of_columns,
    builder_hazards.large_offsets,
    builder_hazards.warmup_list,
    builder_hazards.batch_invariance,
    reader_hazards.unknown_reader,
    builder_hazards.decode_split,
    builder_hazards.compiling,
    builder_hazards.default_width,
    builder_hazards.full_width,
)


@dataclass(frozen=True)
class Deployment:
    """The answer of `check`."""

    setup: Setup
    buffers: tuple[Buffer, ...]
    warm_up: tuple[WarmUp, ...]
    findings: tuple[Finding, ...]  # the gravest first

    @property
    def capacity(self) -> int:
        """Columns of the buffers."""
        return self.setup.capacity

    @property
    def widths(self) -> list[int]:
        """Widths that can occur, ascending, in columns."""
        return self.setup.widths

    @property
    def reserved_bytes(self) -> int:
        """Bytes that this package's builder would hold."""
        return sum(buffer.bytes for buffer in self.buffers)

    @property
    def released_bytes(self) -> int:
        """Bytes that the released builder holds: full buffers for decode and for prefill."""
        return sum(buffer.released_bytes for buffer in self.buffers)

    @property
    def verdict(self) -> Verdict:
        """The gravest severity found; "safe" where there is nothing but information."""
        worst = self.findings[0].severity if self.findings else "info"
        return "safe" if worst == "info" else worst

    @property
    def sentence(self) -> str:
        """What these settings make true, in one sentence.

        >>> print(check(33_792, release="0.30.0").sentence)
        vLLM 0.30.0 (pitched rows of power-of-two width) with full graphs and FlashMLA on sm90: nothing dangerous found.
        """
        count = {severity: sum(f.severity == severity for f in self.findings) for severity in SEVERITIES}
        if count["danger"]:
            first = self.findings[0].title
            more = f", and {_counted(count['danger'] - 1, 'more danger')}" if count["danger"] > 1 else ""
            return f"{self.setup}: {first[0].lower()}{first[1:]}{more}."
        if count["warning"]:
            return f"{self.setup}: right as it is, with {_counted(count['warning'], 'warning')}."
        return f"{self.setup}: nothing dangerous found."

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain values, for JSON."""
        return {
            "verdict": self.verdict,
            "sentence": self.sentence,
            **dataclasses.asdict(self),
            "capacity": self.capacity,
            "widths": self.widths,
            "decode_rows": self.setup.decode_rows,
            "reserved_bytes": self.reserved_bytes,
            "released_bytes": self.released_bytes,
        }


def check(
    max_model_len: int = 1_048_576,
    max_num_batched_tokens: int = 8192,
    max_num_seqs: int = 512,
    *,
    num_speculative_tokens: int = 0,
    block_size: int = 256,
    graph: Graph = "full",
    consumer: Consumer = "flashmla_sm90",
    layout: Layout | None = None,
    policy: Policy | None = None,
    release: str | None = None,
    capacity: int | None = None,
    warmup_widths: Iterable[int] | None = None,
    batch_invariant: bool = False,
) -> Deployment:
    """What the index rows of a deployment need, and what can go wrong with them.

    max_model_len and block_size in tokens, capacity and warmup_widths in columns. The default sizes are those of the
    run that PR #50004 was measured with, full graphs are vLLM's own default. Give `release`, or `layout` and `policy`
    for a builder of your own. `capacity` is for buffers that were not sized from max_model_len, as with a context
    length fitted to the memory at start-up.

    Raises ValueError for numbers out of range, unknown names, and a release given together with a layout or a policy.

    >>> found = check(capacity=7680, release="0.30.0").findings[0]
    >>> found.incident, found.severity
    (3, 'danger')
    """
    for name, value, least in (
        ("max_model_len", max_model_len, 1),
        ("max_num_batched_tokens", max_num_batched_tokens, 1),
        ("max_num_seqs", max_num_seqs, 1),
        ("num_speculative_tokens", num_speculative_tokens, 0),
        ("capacity", 1 if capacity is None else capacity, 1),
    ):
        if value < least:
            raise ValueError(f"{name} is {value}; it must be at least {least}")
    if block_size < RATIO or block_size % RATIO:
        raise ValueError(
            f"block_size is {block_size}; it must be a multiple of {RATIO} tokens, so that a KV block holds whole "
            "compressed entries"
        )
    _one_of("graph", graph, GRAPHS)
    _one_of("consumer", consumer, CONSUMERS)
    if release is None and (layout is None or policy is None):
        raise ValueError("give a release, or both a layout and a policy")
    if release is not None and not (layout is None and policy is None):
        raise ValueError(f"release {release} sets the layout and the policy; give the one or the other")
    known = None if release is None else release_of(release)
    layout = known.layout if known else layout
    policy = known.policy if known else policy
    _one_of("layout", layout, LAYOUTS)
    _one_of("policy", policy, POLICIES)
    assert layout is not None and policy is not None  # for the type checker: both were just looked up
    setup = Setup(
        max_model_len=max_model_len,
        max_num_batched_tokens=max_num_batched_tokens,
        max_num_seqs=max_num_seqs,
        num_speculative_tokens=num_speculative_tokens,
        block_size=block_size,
        graph=graph,
        consumer=consumer,
        layout=layout,
        policy=policy,
        release=known,
        capacity=capacity_width(max_model_len) if capacity is None else capacity,
        warmup_widths=None if warmup_widths is None else tuple(sorted(set(warmup_widths))),
        batch_invariant=batch_invariant,
    )
    found = [finding for rule in RULES for finding in rule(setup)]
    found.sort(key=lambda finding: SEVERITIES.index(finding.severity))
    return Deployment(setup, buffers(setup), warm_up(setup), tuple(found))


def _one_of(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} is {value!r}; it must be one of {', '.join(choices)}")


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
