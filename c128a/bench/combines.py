"""The combine as the bench times it: one chunk in both forms and beside other engines, and all of a prefill step.

    combine     one chunk: from the builder's rows, as released engines do it, and from positions
    step        all layers and chunks of a step: in every layer, as released engines do it, and once

Each raises AssertionError where an output differs from the reference, on the very inputs to be timed.
"""

from __future__ import annotations

import c128a.backend as backend  # decides TRITON_INTERPRET before Triton is imported

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import torch

from c128a import reference
from c128a.bench import peers
from c128a.bench.cases import BETWEEN, LENGTHS, Timed, cell_facts, cell_name
from c128a.bench.peers import Peer
from c128a.case import MAX_MODEL_LEN, WINDOW, Case
from c128a.combine import (
    WORKERS,
    combine_from_rows,
    combine_prefill_indices,
    combine_step_indices,
    combine_variant,
    combined_width,
    prefill_chunks,
    step_bases,
)
from c128a.kernel import launcher
from c128a.layout import ITEMSIZE, Chunk
from c128a.tiles import COMBINE_TILE

TOKENS = 8192  # of a prefill step
# A combine chunk of 8,192 tokens holds two requests. How many the released kernel's figures (elsewhere.json) were taken
# with is not known: with one request from_rows is up to 1.4 × slower than they are, with two within 10 %.
REQUEST_TOKENS = 4096
LAYERS = (20, 31)  # C128A layers of V4-Flash and of V4-Pro
# The area of vLLM's workspace: four requests of the longest context and of the most tokens.
WORKSPACE_ROWS = 4 * (MAX_MODEL_LEN // 128 + WINDOW + TOKENS)

Rows = tuple[torch.Tensor, torch.Tensor]


def chunk(tokens: int, seq_len: int) -> Case:
    """A prefill chunk for the combine: requests of REQUEST_TOKENS that end at contexts of seq_len tokens.

    >>> chunk(8192, 32_768).query_lens, chunk(2048, 32_768).query_lens
    ((4096, 4096), (2048,))
    """
    step = min(REQUEST_TOKENS, seq_len)
    queries = tuple(min(step, tokens - start) for start in range(0, tokens, step))
    return Case(queries, (seq_len,) * len(queries), 0)


COMBINE_CELLS = [chunk(tokens, length) for tokens in (2048, TOKENS) for length in (8_192, *LENGTHS[1:])]
COMBINE_CELLS += [chunk(TOKENS, length) for length in BETWEEN]
STEP_CELLS = [
    Case((TOKENS // requests,) * requests, (length,) * requests, 0)
    for requests in (1, 8, 32, 128)
    for length in (8_192, *LENGTHS[1:])
]


class Inputs(NamedTuple):
    """What the combines of a step take, on the GPU."""

    case: Case
    chunks: list[Chunk]
    positions: torch.Tensor
    token_to_req_indices: torch.Tensor
    starts: torch.Tensor
    seq_lens: torch.Tensor
    gather_lens: torch.Tensor
    bases: tuple[torch.Tensor, torch.Tensor]
    out: torch.Tensor
    lens: torch.Tensor

    @property
    def lengths(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """The first four inputs of `combine_step_indices`, in its order; both bases follow."""
        return self.positions, self.token_to_req_indices, self.seq_lens, self.gather_lens

    def of_chunk(self, each: Chunk) -> peers.Chunk:
        """The inputs of one chunk; its rows lie at the start of `out`, as in an engine's workspace."""
        first, last = (int(self.case.query_start_loc[at]) for at in (each.start, each.end))
        tokens, requests = slice(first, last), slice(each.start, each.end)
        positions = self.positions[tokens]
        return peers.Chunk(
            positions=positions,
            token_to_req_indices=self.token_to_req_indices[tokens] - each.start,
            query_start_loc=self.starts[each.start : each.end + 1] - first,
            seq_lens=self.seq_lens[requests],
            gather_lens=self.gather_lens[requests],
            bases=(self.bases[0][requests], self.bases[1][requests]),
            rows=reference.prefill_rows(positions, self.case.compress_ratio, self.case.width),
            workspace_rows=each.workspace_rows,
            compressed_rows=each.compressed_rows,
            compress_ratio=self.case.compress_ratio,
            out=self.out[: last - first],
            lens=self.lens[: last - first],
        )

    def check(self, name: str, inputs: peers.Chunk | None, call: Callable[[], object]) -> None:
        """Raise AssertionError unless a call returns the rows of a chunk, or of all of them (None)."""
        self.out.fill_(-99)
        self.lens.fill_(-99)
        of = inputs or self
        tensors = (of.positions, of.token_to_req_indices, of.seq_lens, of.gather_lens, *of.bases)
        want = reference.combined_rows(*tensors, self.out.shape[1])
        got = call()
        if not (isinstance(got, tuple) and all(map(torch.equal, got, want))):
            raise AssertionError(f"{name} differs in cell {cell_name(self.case)}, {self.out.shape[1]} wide")


def inputs_of(case: Case, chunks: list[Chunk]) -> Inputs:
    """The inputs of the requests of a case, which the chunks cut."""
    device = backend.device()
    positions, requests, _, _, seq_lens, gather_lens = case.tensors(device)
    bases = torch.tensor(step_bases(chunks), dtype=torch.int32, device=device)
    out = torch.empty(case.num_tokens, combined_width(case.width), dtype=torch.int32, device=device)
    lens = torch.empty(case.num_tokens, dtype=torch.int32, device=device)
    starts = torch.tensor(case.query_start_loc, device=device)
    return Inputs(case, chunks, positions, requests, starts, seq_lens, gather_lens, (bases[0], bases[1]), out, lens)


def from_rows(inputs: peers.Chunk, workers: int = WORKERS) -> Callable[[], Rows]:
    """The combine of one chunk from the builder's rows."""
    lens = (inputs.query_start_loc, inputs.seq_lens, inputs.gather_lens)
    sizes = (inputs.workspace_rows, inputs.compressed_rows)
    return partial(combine_from_rows, inputs.rows, *lens, *sizes, inputs.out, inputs.lens, workers=workers)


def _from_positions(inputs: peers.Chunk) -> Callable[..., Rows]:
    tensors = (inputs.positions, inputs.token_to_req_indices, inputs.seq_lens, inputs.gather_lens)
    sizes = (inputs.workspace_rows, inputs.compressed_rows)
    return partial(combine_prefill_indices, *tensors, *sizes, inputs.out, inputs.lens)


def _serial(inputs: peers.Chunk) -> Callable[[], object]:
    """From positions, by a launch that waits for the kernel before it to end."""
    variant = replace(combine_variant(inputs.out.device.index or 0), overlap=False)
    (tokens, width), requests = inputs.out.shape, len(inputs.seq_lens)
    grid = (-(-tokens // COMBINE_TILE.rows), -(-width // COMBINE_TILE.cols), 1)
    unit = variant.unit
    sizes = (tokens, requests, width // unit, width // unit, inputs.workspace_rows, inputs.compressed_rows)
    tensors = (inputs.positions, inputs.token_to_req_indices, inputs.seq_lens, inputs.gather_lens)
    unread = [inputs.seq_lens] * 4  # bases and the visible tokens of images
    return partial(launcher(variant, grid, sizes), inputs.out, inputs.lens, *tensors, *unread)


def combine(case: Case, others: Mapping[str, Peer]) -> list[Timed]:
    """The combine of one chunk: from prefill rows as the releases do it, from positions, and by other engines."""
    timed = []
    for each, suffix in ((case, "adaptive"), (replace(case, policy="fixed"), "fixed")):
        gathered = WINDOW + max(case.query_lens)
        whole = Chunk(0, case.num_requests, each.width, each.width + gathered)
        inputs = inputs_of(each, [whole])
        of_chunk = inputs.of_chunk(whole)
        from_positions = _from_positions(of_chunk)
        forms: dict[str, Callable[[], object]]
        forms = {f"from_rows_{suffix}": from_rows(of_chunk)}
        forms |= {"from_positions" if suffix == "adaptive" else "from_positions_fixed": from_positions}
        if suffix == "adaptive":
            forms |= {name: other.prepare(of_chunk) for name, other in others.items()}
        for name, call in forms.items():
            inputs.check(name, of_chunk, call)
        if suffix == "adaptive":
            forms |= {"from_positions_live": partial(from_positions, live_prefix=True)}
            forms |= {"from_positions_serial": _serial(of_chunk)}
            forms |= {"fill": partial(torch.Tensor.fill_, inputs.out, -1)}
        facts = {"sheet": "combine", "kernel": "combine", **cell_facts(each), "layout": ""}
        facts |= {"out_width": inputs.out.shape[1], "bytes": inputs.out.numel() * ITEMSIZE, "scale": 1.0}
        timed += [Timed(facts | {"variant": name}, call) for name, call in forms.items()]
    return timed


def step(case: Case, others: Mapping[str, Peer]) -> list[Timed]:
    """All combines of a prefill step: in every layer and chunk, and once.

    Variants: released_256 and released_128 by programs a request, vllm where it is among the others, every_layer (from
    positions) and once. Its plan, of lengths on the host, is a part of what once costs there: once_planned.
    """
    chunks = prefill_chunks(case.seq_lens, case.query_lens, workspace_rows=WORKSPACE_ROWS)
    inputs = inputs_of(case, chunks)
    of_chunks = [inputs.of_chunk(each) for each in chunks]
    once = partial(combine_step_indices, *inputs.lengths, *inputs.bases, inputs.out, inputs.lens)
    uploaded = torch.empty(2, case.num_requests, dtype=torch.int32, device=inputs.out.device)

    def once_planned() -> Rows:
        planned = prefill_chunks(case.seq_lens, case.query_lens, workspace_rows=WORKSPACE_ROWS)
        bases = torch.tensor(step_bases(planned), dtype=torch.int32, pin_memory=not backend.INTERPRET)
        uploaded.copy_(bases, non_blocking=True)
        return combine_step_indices(*inputs.lengths, uploaded[0], uploaded[1], inputs.out, inputs.lens)

    inputs.check("once", None, once)
    inputs.check("once_planned", None, once_planned)
    forms: dict[str, list[Callable[[], object]]]
    forms = {f"released_{workers}": [from_rows(each, workers) for each in of_chunks] for workers in (256, 128)}
    if "vllm" in others:
        forms["vllm"] = [others["vllm"].prepare(each) for each in of_chunks]
    forms["every_layer"] = [_from_positions(each) for each in of_chunks]
    facts = {"sheet": "step", "kernel": "step", **cell_facts(case), "layout": "", "out_width": inputs.out.shape[1]}
    facts |= {"cell": step_name(case), "scale": 1.0}
    size = inputs.out.numel() * ITEMSIZE
    for name, calls in forms.items():
        for of_chunk, call in zip(of_chunks, calls, strict=True):
            inputs.check(name, of_chunk, call)
    timed = []
    for layers in LAYERS:
        of_layers = facts | {"layers": layers}
        for name, calls in forms.items():
            launches = layers * len(chunks) * (1 if name == "every_layer" else 2)  # those from rows fill them first
            more = {"variant": name, "launches": launches, "bytes": layers * size}
            timed.append(Timed(of_layers | more, partial(repeat, calls, layers), in_graph=1))
        once_facts = of_layers | {"variant": "once", "launches": 1, "bytes": size}
        timed.append(Timed(once_facts, once))
        timed.append(Timed(once_facts | {"variant": "once_planned"}, once_planned, in_graph=0))
    return timed


def step_name(case: Case) -> str:
    """A label that tells the cell of a step from the others.

    >>> step_name(STEP_CELLS[-1])
    '0+8192@1048576 of 128'
    """
    return f"{cell_name(case)} of {case.num_requests}"


def repeat(calls: list[Callable[[], object]], layers: int) -> None:
    """Make all calls, once in each layer."""
    for _ in range(layers):
        for call in calls:
            call()
