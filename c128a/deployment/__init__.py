"""Is a deployment in a dangerous corner? Torch-free; `python -m c128a.deployment` is the same for a terminal or for CI.

`check` takes what an operator sets and the vLLM release, or a layout and a policy, and answers with the capacity, the
bytes of the buffers, the widths that can occur, what to warm up or capture, and the incidents that apply.
`read_serve_line` takes the arguments of `check` from a pasted command line, compose file or manifest.

>>> check(release="0.27.1").verdict, check(release="0.34.0").verdict
('danger', 'safe')
>>> check(release="0.27.1").findings[0].title
'Rows move under the captured graph'
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal, SupportsIndex

from c128a.case import COMPRESS_RATIO, KV_BLOCK_SIZE, MAX_MODEL_LEN
from c128a.deployment import findings as rules
from c128a.deployment.findings import Consumer, Finding, Graph, Model, Setup
from c128a.deployment.releases import METHODS, RELEASES, release_of
from c128a.deployment.serve import read_serve_line as read_serve_line
from c128a.layout import ITEMSIZE, LAYOUTS, Layout
from c128a.width import POLICIES, TOPK_ALIGNMENT, Policy, capacity_width

Verdict = Literal["danger", "warning", "safe", "unknown"]

# The least and the most of each size, in the order of check's arguments: sixteen times the longest context of the model
# and more is a slip of the pen.
BOUNDS: dict[str, tuple[int, int]] = {
    "max_model_len": (1, 2**24),
    "max_num_batched_tokens": (1, 2**24),
    "max_num_seqs": (1, 2**20),
    "num_speculative_tokens": (0, 1024),
    "block_size": (COMPRESS_RATIO, 2**20),
    "capacity": (1, 2**17),
}
CHOICES: dict[str, tuple[str, ...]] = {
    "layout": LAYOUTS,
    "policy": POLICIES,
    "graph": rules.GRAPHS,
    "consumer": rules.CONSUMERS,
    "model": rules.MODELS,
    "speculative_method": METHODS,
}


@dataclass(frozen=True)
class Buffer:
    """One int32 buffer: its shape with this package's builder, and its bytes there and with the released builder."""

    name: str
    rows: int
    columns: int
    bytes: int
    released_bytes: int


@dataclass(frozen=True)
class WarmUp:
    """Something to do before the first request: what, with which values, and why."""

    what: str
    values: tuple[int, ...]
    why: str


@dataclass(frozen=True)
class Deployment:
    """The answer of `check`."""

    setup: Setup
    buffers: tuple[Buffer, ...]
    warm_up: tuple[WarmUp, ...]
    findings: tuple[Finding, ...]  # the gravest first
    unread: tuple[str, ...]  # what is not known of the deployment and could change the verdict

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
        """ "unknown" while something is unread that could change it, else the gravest severity; "safe" is none."""
        severities: list[Verdict] = [finding.severity for finding in self.findings if finding.severity != "info"]
        return "unknown" if self.unread else [*severities, "safe"][0]

    @property
    def sentence(self) -> str:
        """What these settings make true, in one sentence.

        >>> print(check(33_792, release="0.30.0").sentence)
        vLLM 0.30.0 (pitched rows of power-of-two width) with full graphs and FlashMLA on sm90: nothing dangerous found.
        """
        grave = [finding for finding in self.findings if finding.severity == "danger"]
        warnings = sum(finding.severity == "warning" for finding in self.findings)
        said = f"right as it is, with warnings: {warnings}" if warnings else "nothing dangerous found"
        if grave:
            said = grave[0].title[0].lower() + grave[0].title[1:]
            said += f", and more dangers: {len(grave) - 1}" if len(grave) > 1 else ""
        return f"{self.setup}: {'not enough was read to say; in what was read, ' if self.unread else ''}{said}."

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain values, for JSON."""
        said = ("verdict", "sentence", "capacity", "widths", "reserved_bytes", "released_bytes")
        rows = {"decode_rows": self.setup.decode_rows, "table_blocks": self.setup.table_blocks}
        return {**{name: getattr(self, name) for name in said}, **rows, **asdict(self)}


def check(
    max_model_len: int = MAX_MODEL_LEN,
    max_num_batched_tokens: int = 8192,
    max_num_seqs: int = 512,
    *,
    num_speculative_tokens: int = 0,
    speculative_method: str | None = None,
    block_size: int = KV_BLOCK_SIZE,
    graph: Graph = "full",
    consumer: Consumer = "flashmla_sm90",
    layout: Layout | None = None,
    policy: Policy | None = None,
    release: str | None = None,
    capacity: int | None = None,
    warmup_widths: Iterable[int] | None = None,
    batch_invariant: bool = False,
    model: Model = "V4",
    unread: Iterable[str] = (),
) -> Deployment:
    """What the index rows of a deployment need, and what can go wrong with them.

    max_model_len and block_size in tokens, capacity and warmup_widths in columns. The default sizes are those of the
    run that PR #50004 was measured with, full graphs are vLLM's own default. Give `release`, or `layout` and `policy`
    for a builder of your own. `capacity` is for buffers that were not sized from max_model_len, as with a context
    length fitted to the memory at start-up. `unread` says in sentences what else the deployment sets and nobody read:
    while there is any, the verdict is "unknown".

    Raises ValueError for numbers out of range, unknown names, and a release given together with a layout or a policy.

    >>> found = check(capacity=7680, release="0.30.0").findings[0]
    >>> found.incident, found.severity
    (3, 'danger')
    """
    given = (max_model_len, max_num_batched_tokens, max_num_seqs, num_speculative_tokens, block_size)
    sizes: dict[str, Any] = {name: _whole(name, value) for name, value in zip(BOUNDS, given, strict=False)}
    sizes["capacity"] = _whole("capacity", capacity_width(sizes["max_model_len"]) if capacity is None else capacity)
    if block_size % COMPRESS_RATIO:
        raise ValueError(f"block_size is {block_size}; it must be a multiple of {COMPRESS_RATIO}: whole entries")
    if release is None and (layout is None or policy is None):
        raise ValueError("give a release, or both a layout and a policy")
    if release is not None and not (layout is None and policy is None):
        raise ValueError(f"release is {release!r} and sets the layout and the policy; give the one or the other")
    known = None if release is None else release_of(release)
    layout, policy = (known.layout, known.policy) if known else (layout, policy)
    names = (layout, policy, graph, consumer, model, speculative_method)
    chosen: dict[str, Any] = dict(zip(CHOICES, names, strict=True))
    for name, value in chosen.items():
        if value not in CHOICES[name] and not (name == "speculative_method" and value is None):
            raise ValueError(f"{name} is {value!r}; it must be one of {', '.join(CHOICES[name])}")
    listed = None if warmup_widths is None else _widths(warmup_widths, sizes["capacity"])
    setup = Setup(**sizes, **chosen, release=known, warmup_widths=listed, batch_invariant=batch_invariant)
    unread = list(unread)
    if known and not known.known:
        unread.append(f"vLLM {known.name} is newer than {RELEASES[-1].name}, the newest whose builder was read.")
    return Deployment(setup, _buffers(setup), _warm_up(setup), rules.findings_of(setup), tuple(unread))


def _whole(name: str, value: Any) -> int:
    """A size within its bounds."""
    least, most = BOUNDS[name]
    whole = isinstance(value, SupportsIndex) and not isinstance(value, bool)
    number = operator.index(value) if whole else None
    if number is None or not least <= number <= most:
        shown = f"{number:,}" if number is not None and abs(number) < 2**80 else f"a {type(value).__name__}"
        raise ValueError(f"{name} is {shown}; it must be a whole number from {least:,} to {most:,}")
    return number


def _widths(given: Iterable[int], capacity: int) -> tuple[int, ...]:
    """Warm-up widths, ascending. A list of powers of two may end at the first that is no less than the capacity."""
    most = max(TOPK_ALIGNMENT, 1 << (capacity - 1).bit_length())
    fits = [*range(TOPK_ALIGNMENT, most + 1, TOPK_ALIGNMENT), capacity]
    widths = list(given)
    if odd := [width for width in widths if type(width) in (bool, float) or width not in fits]:
        named = ", ".join(str(width)[:20] for width in odd[:5])
        raise ValueError(f"warmup_widths has {named}; each must be a multiple of {TOPK_ALIGNMENT} from 128 to {most:,}")
    return tuple(sorted({operator.index(width) for width in widths}))


def _buffers(setup: Setup) -> tuple[Buffer, ...]:
    """The buffers of a builder, those that grow with the batch.

    The released one holds max_num_batched_tokens rows for decode as well as for prefill. This package's holds as many
    decode rows as a step can have, the first of them on the last prefill row: no step needs both.
    """
    tokens, columns, rows = setup.max_num_batched_tokens, setup.capacity, setup.decode_rows
    shapes = [("decode rows", rows - 1, columns), ("prefill rows", tokens, columns)]
    shapes += [("decode lens", rows, 1), ("request ids", rows, 1)]
    return tuple(Buffer(name, own, n, own * n * ITEMSIZE, tokens * n * ITEMSIZE) for name, own, n in shapes)


def _warm_up(setup: Setup) -> tuple[WarmUp, ...]:
    """What to warm up or capture, so that no request waits for a compilation and no graph meets a foreign stride."""
    widths = tuple(setup.widths)
    todo = [WarmUp("widths", widths, f"all that a {rules.POLICY_NAMES[setup.policy]} can be")]
    if setup.graph == "full" and setup.layout == "packed" and setup.adaptive:
        todo.append(WarmUp("a graph for each width", widths, "packed rows are right only in the graph of their width"))
    elif setup.graph == "full":
        todo.append(WarmUp("graphs at the capacity", (setup.capacity,), "the row stride is the same in every step"))
    if setup.release and setup.release.variants[1] > 1:  # its kernel leaves counts and strides to Triton
        counts = tuple(count for count in (1, 2, 16) if count <= setup.decode_rows)
        todo.append(WarmUp("decode rows", counts, "Triton compiles apart a count of 1, a multiple of 16, and the rest"))
        why = "a row stride that 16 does not divide is another variant"
        todo.append(WarmUp("block-table columns", (setup.table_blocks,), why))
    return tuple(todo)


def command(found: Deployment, *, width: int = 10_000) -> str:
    """The command that repeats a check, every value written out; over several lines where it is longer than the width.

    >>> print(command(check(33_792, release="0.30.0"))[:72])
    python -m c128a.deployment --release 0.30.0 --max-model-len 33792 --max-
    """
    setup = found.setup
    options = {name: getattr(setup, name) for name in (*BOUNDS, *CHOICES)}
    if setup.release:  # it sets the layout and the policy
        options = {"release": setup.release.name, **options, "layout": None, "policy": None}
    if setup.capacity == capacity_width(setup.max_model_len):
        options["capacity"] = None
    if setup.warmup_widths is not None:
        options["warmup_widths"] = " ".join(map(str, setup.warmup_widths))
    options["batch_invariant"] = "" if setup.batch_invariant else None
    lines = ["python -m c128a.deployment"]
    for name, value in options.items():
        text = "" if value is None else f" --{name.replace('_', '-')} {value}".rstrip()
        if len(lines[-1]) + len(text) + 2 > width:  # " \\" ends a line that goes on
            lines.append("   ")
        lines[-1] += text
    return " \\\n".join(lines)
