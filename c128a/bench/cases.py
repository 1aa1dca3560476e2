"""What the bench times: the cells, and for each of them what is launched, after a check against the reference.

A cell is a `Case`. Four functions, one a sheet, make its inputs on the current GPU and give a list of `Timed`:

    builder     both kernels, packed and pitched, between their floors: a fill, the loads alone, an empty kernel
    tiles       the builder by tiles of every shape
    ranks       decode rows of one rank beside whole ones (decode context parallel)
    host        one build on the host, whole and in parts, and one combine

Each raises AssertionError where an output differs from the reference, pads included, on the very inputs to be timed.
"""

from __future__ import annotations

import c128a.backend as backend  # decides TRITON_INTERPRET before Triton is imported

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl

from c128a import reference
from c128a.bench import timing
from c128a.case import CAPACITY, Case
from c128a.combine import combine_step_indices, combined_width
from c128a.combine import plan as combine_plan
from c128a.kernel import ROW_LOOP_STEP, Plan
from c128a.layout import ITEMSIZE, RowLayout
from c128a.metadata import build_c128a_topk_metadata, build_with_row_loop, check, make_plan, views
from c128a.tiles import Tile, candidates
from c128a.width import WHOLE, Shard, loop_trips

LENGTHS = (4_096, 32_768, 131_072, 1_048_576)
BETWEEN = (65_536, 262_144, 524_288)  # lengths of the remaining widths: 512, 2,048 and 4,096 columns
SHAPES = ((1, 0), (32, 0), (256, 0), (1024, 0), (0, 2048), (0, 8192), (64, 4096))  # decode rows, prefill tokens
CELLS = [Case.mixed(*shape, length) for shape in SHAPES for length in LENGTHS]
CELLS += [Case.mixed(*shape, length) for shape in ((256, 0), (0, 8192)) for length in BETWEEN]
CELLS.append(Case.one_long(256, 1_048_576, 4_096))
Row = dict[str, Any]
Build = Callable[..., tuple[torch.Tensor, torch.Tensor, torch.Tensor]]  # with the signature of the report


class Timed(NamedTuple):
    """One thing to be timed: the fields of a record's row that say what it is, and the call that launches it."""

    facts: Row
    call: Callable[[], object]
    cold: bool = True  # whether it is timed with a cold L2 too
    in_graph: int = timing.IN_GRAPH  # calls in a graph, when it is timed with a warm L2


def cell_name(case: Case) -> str:
    """A label that tells a cell from the others.

    >>> cell_name(CELLS[0]), cell_name(CELLS[-1])
    ('1+0@4096', '256+0@1048576 (4096 but for one)')
    """
    prefill = case.num_tokens - case.num_decode_tokens
    others = f" ({min(case.seq_lens)} but for one)" if min(case.seq_lens) < case.max_seq_len else ""
    return f"{case.num_decode_tokens}+{prefill}@{case.max_seq_len}{others}"


def cell_facts(case: Case) -> Row:
    """The fields of a record's row that follow from the case."""
    short = min(case.seq_lens)
    return {
        "cell": cell_name(case),
        "decode": case.num_decode_tokens,
        "prefill": case.num_tokens - case.num_decode_tokens,
        "requests": case.num_requests,
        "max_seq_len": case.max_seq_len,
        "short_seq_len": short if short < case.max_seq_len else 0,
        "capacity": case.capacity,
        "policy": case.policy,
        "layout": case.layout,
        "width": case.width,
    }


def row_facts(case: Case) -> Row:
    """What its index rows take: the bytes written, and how much more a build must move, which also reads block numbers.

    >>> row_facts(Case.decode(1, 32_768))["scale"], row_facts(Case.prefill(8192, 32_768))["scale"]
    (1.5, 1.0)
    """
    live = int(case.entries[: case.num_decode_tokens].sum())
    cells = case.num_tokens * case.width
    return {"bytes": cells * ITEMSIZE, "scale": round(1 + live / case.block_size / cells, 4)}


class _Rows:
    """The inputs of a case and its buffers on the GPU, shared by all that is timed in its cell."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.inputs = case.tensors(backend.device())[:4]
        prefill = case.num_tokens - case.num_decode_tokens
        self.decode = torch.empty(max(case.num_decode_tokens, 1), CAPACITY, dtype=torch.int32, device=backend.device())
        self.prefill = torch.empty(max(prefill, 1), CAPACITY, dtype=torch.int32, device=backend.device())
        self.lens = torch.empty(case.num_tokens, dtype=torch.int32, device=backend.device())
        # A fill of all rows as one tensor: two launches for a mixed batch would pay twice for starting.
        self.filled = torch.empty(case.num_tokens, CAPACITY, dtype=torch.int32, device=backend.device())

    @property
    def buffers(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Decode rows, lens, prefill rows."""
        return self.decode, self.lens, self.prefill

    def arguments(self, width: int) -> tuple[Any, ...]:
        """The arguments of the report's function at a width."""
        positions, requests, table, slots = self.inputs
        case = self.case
        sizes = (case.compress_ratio, case.num_decode_tokens)
        return (positions, *sizes, requests, table, case.block_size, slots, *self.buffers, width)

    def plan(self, case: Case) -> Plan:
        """The checked plan of a build in the layout and at the width of a case with these rows."""
        sizes = (case.num_decode_tokens, case.compress_ratio, case.block_size, case.width)
        return make_plan(case.layout, *sizes, self.buffers, self.inputs)

    def check(self, name: str, case: Case, build: Callable[[], Any]) -> None:
        """Raise AssertionError unless a build writes, into the views it returns if it does, what the reference says."""
        positions, requests, table, slots = self.inputs
        decode = case.num_decode_tokens
        sizes = (case.compress_ratio, decode)
        want = reference.topk_metadata(positions, *sizes, requests, table, case.block_size, slots, case.width)
        views = (case.decode_rows.view(self.decode), self.lens[:decode], case.prefill_rows.view(self.prefill))
        for buffer in self.buffers:
            buffer.fill_(-99)
        returned = build()
        for which, view, wanted in zip(("decode rows", "lens", "prefill rows"), returned or views, want, strict=True):
            if not torch.equal(view, wanted):
                raise AssertionError(f"{name}: {which} differ in {cell_name(case)}, {case.layout}, {case.width} wide")

    def shares(self, shard: Shard) -> torch.Tensor:
        """The decode rows of one rank, which its entries fill, by the reference."""
        positions, requests, table, _ = self.inputs
        case = self.case
        if shard.own_table:
            positions = positions // shard.size
        sizes = (requests, table, case.block_size, case.width * (1 if shard.own_table else shard.size))
        whole = reference.decode_rows(positions, case.compress_ratio, *sizes)
        return whole if shard.own_table else reference.rank_rows(whole, *shard[:3])

    def fill(self, case: Case) -> Callable[[], object]:
        """A fill of as many cells, at the same row stride."""
        view = RowLayout.named(case.layout, case.num_tokens, case.width, CAPACITY).view(self.filled)
        return lambda: view.fill_(-1)


def builder(case: Case, compare: Build | None = None) -> list[Timed]:
    """The builder in one cell; `compare` is another function with the report's signature, timed beside it."""
    rows = _Rows(case)
    packed, pitched = replace(case, layout="packed"), replace(case, layout="pitched")
    fixed = replace(packed, policy="fixed")  # lies alike in both layouts
    timed = []

    def add(case: Case, variant: str, call: Callable[[], object], kernel: str = "builder", **more: Any) -> None:
        facts = {"sheet": "builder", "kernel": kernel, "variant": variant, **cell_facts(case), **row_facts(case)}
        if kernel == "builder" and variant != "fill":
            rows.check(variant, case, call)
        cold = case.layout == "packed" or variant in ("row_loop_adaptive", "tiled", "fill")
        timed.append(Timed(facts | more, call, cold))

    for each in (packed, pitched, fixed):
        plan, adaptive = rows.plan(each), each is not fixed
        row_loop = partial(plan.launch_row_loop, *rows.buffers, *rows.inputs)
        trips = loop_trips(each.width, ROW_LOOP_STEP)
        add(each, "row_loop_adaptive" if adaptive else "row_loop_fixed", row_loop, trips=trips)
        tile = list(plan.tile)
        tiled = partial(plan.launch, *rows.buffers, *rows.inputs)
        add(each, "tiled" if adaptive else "tiled_fixed", tiled, tile=tile)
        if adaptive:
            serial = partial(replace(plan, overlap=False).launch, *rows.buffers, *rows.inputs)
            add(each, "tiled_serial", serial, tile=tile)
            add(each, "fill", rows.fill(each))
    add(packed, "loads", _loads(rows), kernel="loads", bytes=0)
    add(packed, "empty", lambda: empty[(1,)](), kernel="empty", bytes=0)
    if compare is not None:
        rows.check("compare", fixed, partial(compare, *rows.arguments(fixed.width)))
        add(packed, "compare", partial(compare, *rows.arguments(packed.width)))
    return timed


def tiles(case: Case) -> list[Timed]:
    """The builder in one cell by tiles of many shapes, packed; among them is the shape that `tile_shape` chooses."""
    case = replace(case, layout="packed")
    rows = _Rows(case)
    facts = {"sheet": "tiles", "kernel": "tiles", **cell_facts(case), **row_facts(case)}
    timed = [Timed(facts | {"variant": "fill"}, rows.fill(case), cold=False)]
    for tile in candidates(case.width):
        name = f"{tile.rows} × {tile.cols}, {tile.warps} warps"
        call = _tiled(rows, case, tile)
        rows.check(name, case, call)
        timed.append(Timed(facts | {"variant": name, "tile": list(tile)}, call, cold=False))
    return timed


def _tiled(rows: _Rows, case: Case, tile: Tile) -> Callable[[], object]:
    plan = replace(rows.plan(case), tile=tile)
    return partial(plan.launch, *rows.buffers, *rows.inputs)


RANK_CELLS = [Case.decode(rows, length) for rows in (1, 64, 256) for length in (32_768, 131_072, 1_048_576)]
SHARDS = {
    "tiled": WHOLE,
    "rank 1 of 8, own table": Shard(1, 8, 2, own_table=True),
    "rank 1 of 8, turns of 2": Shard(1, 8, 2),
    "rank 1 of 8, turns of 64": Shard(1, 8, 64),
}


def ranks(case: Case) -> list[Timed]:
    """Whole decode rows beside those of one rank, whose context is so long that its share fills as many columns."""
    facts = {"sheet": "ranks", "kernel": "ranks", **cell_facts(case), **row_facts(case)}
    timed = []
    for name, shard in SHARDS.items():
        tokens = case.max_seq_len * (1 if shard.own_table else shard.size)
        sizes = {"given_capacity": case.capacity, "given_width": case.width, "max_model_len": tokens}
        rows = _Rows(Case.decode(case.num_decode_tokens, tokens, layout="pitched", **sizes))
        if shard.own_table:
            rows.inputs = (rows.inputs[0] * shard.size + shard.size - 1, *rows.inputs[1:])
        plan = replace(rows.plan(rows.case), shard=shard)
        call = partial(plan.launch, *rows.buffers, *rows.inputs)
        call()
        if not torch.equal(plan.decode.view(rows.decode), rows.shares(shard)):
            raise AssertionError(f"{name}: decode rows differ in {cell_name(case)}")
        timed.append(Timed(facts | {"variant": name, "tile": list(plan.tile)}, call, cold=False))
    return timed


def host() -> list[Timed]:
    """One build of 64 decode and 64 prefill rows at 32,768 tokens on the host, whole and in parts, and one combine.

    What a call checks and prepares is kept for the next call with the same sizes, at the same addresses: "not seen
    before" forgets it each time, which is what a step with token counts of its own pays.
    """
    case = Case.mixed(64, 64, 32_768, layout="packed")
    rows = _Rows(case)
    arguments, plan = rows.arguments(case.width), rows.plan(case)
    for build in (build_c128a_topk_metadata, build_with_row_loop):
        rows.check(build.__name__, case, partial(build, *arguments))
    tiled = partial(plan.launch, *rows.buffers, *rows.inputs)
    graph = timing.capture(tiled, 1)

    positions, requests, _, _, seq_lens, gather_lens = case.tensors(backend.device())
    lens = torch.empty(case.num_tokens, dtype=torch.int32, device=positions.device)
    out = torch.empty(case.num_tokens, combined_width(case.width), dtype=torch.int32, device=positions.device)
    base = torch.zeros_like(seq_lens)  # the workspace row of every request: the ids are not looked at
    combine = partial(combine_step_indices, positions, requests, seq_lens, gather_lens, base, base, out, lens)

    def new_build() -> None:
        check.cache_clear()
        build_c128a_topk_metadata(*arguments)

    def new_combine() -> None:
        combine_plan.cache_clear()
        combine()

    calls: dict[str, Callable[[], object]] = {
        "build_c128a_topk_metadata": lambda: build_c128a_topk_metadata(*arguments),
        "its part: checks, kept from its first call": lambda: rows.plan(case),
        "its part: launch": tiled,
        "its part: views": lambda: views(plan, *rows.buffers),
        "build_c128a_topk_metadata, sizes not seen before": new_build,
        "combine_step_indices": combine,
        "combine_step_indices, sizes not seen before": new_combine,
        "row loop, same checks": lambda: build_with_row_loop(*arguments),
        "row loop, Triton's ordinary launch alone": partial(plan.launch_row_loop, *rows.buffers, *rows.inputs),
        "graph replay of one build": graph.replay,
        "empty kernel, Triton's ordinary launch": lambda: empty[(1,)](),
        "fill_ of the prefill rows": lambda: rows.prefill.fill_(-1),
    }
    return [Timed({"sheet": "host", "kernel": "host", "variant": name}, call) for name, call in calls.items()]


@triton.jit
def empty() -> None:
    """A kernel that does nothing: what any launch costs."""


LOADS_ROWS = 8


@triton.jit
def dependent_loads(
    out_ptr, positions_ptr, requests_ptr, table_ptr, num_tokens, num_decode, table_stride, ROWS: tl.constexpr
) -> None:
    """Load what a build must load: positions, and for decode rows the request and then its first block number."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    position = tl.load(positions_ptr + row, mask=row < num_tokens, other=0)
    request = tl.load(requests_ptr + row, mask=row < num_decode, other=0)
    block = tl.load(table_ptr + request.to(tl.int64) * table_stride, mask=row < num_decode, other=0)
    tl.store(out_ptr + row, position.to(tl.int32) + block, mask=row < num_tokens)


def _loads(rows: _Rows) -> Callable[[], object]:
    """The loads that a build cannot avoid, in the order in which they depend on each other, and no rows."""
    positions, requests, table, _ = rows.inputs
    grid = (-(-rows.case.num_tokens // LOADS_ROWS),)
    sizes = (rows.case.num_tokens, rows.case.num_decode_tokens, table.stride(0))
    return lambda: dependent_loads[grid](rows.lens, positions, requests, table, *sizes, ROWS=LOADS_ROWS)
