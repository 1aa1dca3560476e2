"""What the bench times: the cells, their inputs, the launches, and the check against the reference."""

from __future__ import annotations

import c128a.backend  # noqa: F401 - decides TRITON_INTERPRET before Triton is imported

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl

from c128a import launch, reference, timing, workloads
from c128a.build import build_c128a_topk_metadata, build_with_row_loop
from c128a.combine import WINDOW, combine_from_rows, combine_prefill_indices, combined_width
from c128a.layout import ITEMSIZE
from c128a.tiles import Tile, candidates
from c128a.width import active_topk_width, capacity_width, loop_trips

CAPACITY = capacity_width(1_048_576)
RATIO = workloads.COMPRESS_RATIO
BLOCK = workloads.ENTRIES_PER_BLOCK


class Cell(NamedTuple):
    """One row of the benchmark: decode rows, prefill tokens, sequence length, and the length of all but one of them."""

    decode: int
    prefill: int
    max_seq_len: int
    short: int | None = None

    @property
    def name(self) -> str:
        """A label that tells the cell from the others."""
        long = f" ({self.short} but for one)" if self.short else ""
        return f"{self.decode}+{self.prefill}@{self.max_seq_len}{long}"


LENGTHS = (4_096, 32_768, 131_072, 1_048_576)
SHAPES = ((1, 0), (32, 0), (256, 0), (1024, 0), (0, 2048), (0, 8192), (64, 4096))
CELLS = [Cell(decode, prefill, length) for decode, prefill in SHAPES for length in LENGTHS]
CELLS.append(Cell(256, 0, 1_048_576, short=4_096))
COMBINE_CELLS = [(tokens, length) for tokens in (2048, 8192) for length in (8_192, 32_768, 131_072, 1_048_576)]
# A combine chunk of 8,192 tokens holds two requests. How many the released kernel's figures (elsewhere.json) were taken
# with is not known: with one request from_rows is up to 1.4 × slower than they are, with two within 10 %.
REQUEST_TOKENS = 4096


class BuilderCase:
    """The builder in one cell: packed rows, inputs from a seed."""

    def __init__(self, cell: Cell, compare: Callable[..., Any] | None = None) -> None:
        self.cell = cell
        self.compare = compare
        if cell.short:
            batch = workloads.one_long(cell.decode, cell.max_seq_len, cell.short, device="cuda")
        else:
            batch = workloads.mixed(cell.decode, cell.prefill, cell.max_seq_len, device="cuda")
        self.batch = batch
        self.width = active_topk_width(batch.max_seq_len, RATIO, CAPACITY)
        rows = cell.decode + cell.prefill
        self.decode = torch.empty(max(cell.decode, 1), CAPACITY, dtype=torch.int32, device="cuda")
        self.prefill = torch.empty(max(cell.prefill, 1), CAPACITY, dtype=torch.int32, device="cuda")
        self.lens = torch.empty(rows, dtype=torch.int32, device="cuda")
        self.inputs = (batch.positions, batch.token_to_req_indices, batch.block_table, batch.slot_mapping)

    def arguments(self, width: int) -> tuple[Any, ...]:
        """The arguments of the report's function at a width."""
        positions, requests, table, slots = self.inputs
        decode = self.batch.num_decode_tokens
        return positions, RATIO, decode, requests, table, BLOCK, slots, self.decode, self.lens, self.prefill, width

    def plan(self, width: int) -> launch.Plan:
        """The checked plan of a build at a width."""
        buffers = (self.decode, self.lens, self.prefill)
        tensors = map(launch.facts, (*self.inputs, *buffers))
        return launch.make_plan("packed", self.batch.num_decode_tokens, RATIO, BLOCK, width, *tensors)

    def check(self) -> None:
        """Raise AssertionError unless every function timed equals the reference on these inputs, pads included."""
        positions, requests, table, slots = self.inputs
        functions = [build_c128a_topk_metadata, build_with_row_loop, *([self.compare] if self.compare else [])]
        for function in functions:
            for width in {self.width, CAPACITY}:
                want = reference.topk_metadata(
                    positions, RATIO, self.batch.num_decode_tokens, requests, table, BLOCK, slots, width
                )
                for buffer in (self.decode, self.lens, self.prefill):
                    buffer.fill_(-99)
                got = function(*self.arguments(width))
                for name, view, expected in zip(("decode", "lens", "prefill"), got, want, strict=True):
                    if not torch.equal(view, expected):
                        raise AssertionError(f"{function.__name__}: {name} differs in cell {self.cell.name} at {width}")

    def launches(self) -> dict[str, Callable[[], object]]:
        """What is timed, by variant."""
        adaptive, fixed = self.plan(self.width), self.plan(CAPACITY)
        buffers = (self.decode, self.lens, self.prefill)
        written = [
            buffer.view(-1)[: rows * self.width]
            for buffer, rows in ((self.decode, self.cell.decode), (self.prefill, self.cell.prefill))
            if rows
        ]
        # A fill of a mixed batch's rows as one tensor: two launches would pay twice for starting.
        fill = written[0] if len(written) == 1 else torch.cat(written)
        timed: dict[str, Callable[[], object]] = {
            "row_loop_fixed": lambda: launch.launch_row_loop(fixed, *buffers, *self.inputs),
            "row_loop_adaptive": lambda: launch.launch_row_loop(adaptive, *buffers, *self.inputs),
            "tiled": partial(launch.tiled_launcher(adaptive, *buffers), *self.inputs),
            "tiled_serial": partial(launch.tiled_launcher(adaptive, *buffers, overlap=False), *self.inputs),
            "tiled_fixed": partial(launch.tiled_launcher(fixed, *buffers), *self.inputs),
            "fill": lambda: fill.fill_(-1),
            "loads": self._loads(adaptive),
            "empty": lambda: empty[(1,)](),
        }
        if self.compare:
            other, arguments = self.compare, self.arguments(self.width)
            timed["compare"] = lambda: other(*arguments)
        return timed

    def _loads(self, plan: launch.Plan) -> Callable[[], object]:
        """The loads that a build cannot avoid, in the order in which they depend on each other, and no rows."""
        positions, requests, table, _ = self.inputs
        grid = (-(-plan.num_tokens // LOADS_ROWS),)
        return lambda: dependent_loads[grid](
            self.lens, positions, requests, table, plan.num_tokens, plan.num_decode, plan.table_stride, ROWS=LOADS_ROWS
        )

    def describe(self, variant: str) -> dict[str, Any]:
        """The fields of a row that say what was timed."""
        fixed = variant.endswith("fixed")
        width = CAPACITY if fixed else self.width
        rows = self.cell.decode + self.cell.prefill
        tile = self.plan(width).tile
        shape: dict[str, Any] = {}
        if variant.startswith("row_loop"):
            shape = {"trips": loop_trips(width, launch.ROW_LOOP_STEP)}
        elif variant.startswith("tiled"):
            shape = {"tile": list(tile)}
        return {
            "sheet": "builder",
            "kernel": variant if variant in ("empty", "loads") else "builder",
            "variant": variant,
            "cell": self.cell.name,
            "decode": self.cell.decode,
            "prefill": self.cell.prefill,
            "max_seq_len": self.cell.max_seq_len,
            "short_seq_len": self.cell.short,
            "capacity": CAPACITY,
            "policy": "fixed" if fixed else "pow2",
            "width": width,
            **shape,
            "bytes": 0 if variant in ("empty", "loads") else rows * width * ITEMSIZE,
            "floor_scale": round(self.floor_scale(width), 4),
        }

    def floor_scale(self, width: int) -> float:
        """Bytes that must be moved over bytes written: a live decode cell needs half a table entry of 4 bytes."""
        n = reference.entries_seen(self.batch.positions, RATIO)[: self.batch.num_decode_tokens]
        live = int(n.clamp(max=width).sum())
        return 1 + live / BLOCK / ((self.cell.decode + self.cell.prefill) * width)


class TileCase:
    """The builder in one cell by tiles of many shapes, among them the one that `tile_shape` chooses."""

    def __init__(self, cell: Cell) -> None:
        self.case = BuilderCase(cell)
        self.plan = self.case.plan(self.case.width)
        self.shapes = {f"{t.rows} × {t.cols}, {t.warps} warps": t for t in candidates(self.case.width)}

    def _launcher(self, tile: Tile) -> Callable[[], object]:
        buffers = (self.case.decode, self.case.lens, self.case.prefill)
        return partial(launch.tiled_launcher(replace(self.plan, tile=tile), *buffers), *self.case.inputs)

    def check(self) -> None:
        """Raise AssertionError unless the tiles of every shape write what the reference says."""
        case, decode = self.case, self.case.batch.num_decode_tokens
        positions, requests, table, slots = case.inputs
        want = reference.topk_metadata(positions, RATIO, decode, requests, table, BLOCK, slots, case.width)
        views = (self.plan.decode.view(case.decode), case.lens[:decode], self.plan.prefill.view(case.prefill))
        for name, tile in self.shapes.items():
            for view in views:
                view.fill_(-99)
            self._launcher(tile)()
            if not all(map(torch.equal, views, want)):
                raise AssertionError(f"tiles of {name} differ in cell {case.cell.name}")

    def launches(self) -> dict[str, Callable[[], object]]:
        """What is timed, by variant."""
        fill = self.case.launches()["fill"]
        return {name: self._launcher(tile) for name, tile in self.shapes.items()} | {"fill": fill}

    def describe(self, variant: str) -> dict[str, Any]:
        """The fields of a row that say what was timed."""
        facts = self.case.describe("fill") | {"sheet": "tiles", "kernel": "tiles", "variant": variant}
        tile = self.shapes.get(variant)
        return facts | ({"tile": list(tile)} if tile else {}) | {"chosen": tile == self.plan.tile}


class CombineCase:
    """The prefill combine in one cell: one chunk of requests that end at contexts of max_seq_len tokens."""

    def __init__(self, tokens: int, max_seq_len: int) -> None:
        self.tokens, self.max_seq_len = tokens, max_seq_len
        step = min(REQUEST_TOKENS, max_seq_len)
        queries = [min(step, tokens - start) for start in range(0, tokens, step)]
        requests = len(queries)
        batch = workloads.from_lengths(queries, [max_seq_len] * requests, num_decode_requests=0, device="cuda")
        self.positions, self.requests = batch.positions, batch.token_to_req_indices
        self.starts = batch.query_start_loc.to("cuda")
        self.seq_lens = torch.full((requests,), max_seq_len, dtype=torch.int32, device="cuda")
        self.gather_lens = torch.minimum(self.seq_lens, self.starts.diff() + WINDOW - 1).to(torch.int32)
        self.width = active_topk_width(max_seq_len, RATIO, CAPACITY)
        self.compressed_rows = CAPACITY
        self.workspace_rows = CAPACITY + int(self.gather_lens.max())
        self.rows = {w: reference.prefill_rows(self.positions, RATIO, w) for w in {self.width, CAPACITY}}
        self.out = torch.empty(tokens, combined_width(CAPACITY), dtype=torch.int32, device="cuda")
        self.lens = torch.empty(tokens, dtype=torch.int32, device="cuda")

    def _out(self, width: int) -> torch.Tensor:
        columns = combined_width(width)
        return self.out.view(-1)[: self.tokens * columns].view(self.tokens, columns)

    def from_rows(self, width: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The released form, from prefill rows of a width."""
        return combine_from_rows(
            self.rows[width],
            self.starts,
            self.seq_lens,
            self.gather_lens,
            self.workspace_rows,
            self.compressed_rows,
            self._out(width),
            self.lens,
        )

    def from_positions(self, width: int, *, live_prefix: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
        """The derived form, into an output of the same width."""
        return combine_prefill_indices(
            self.positions,
            self.requests,
            self.seq_lens,
            self.gather_lens,
            self.workspace_rows,
            self.compressed_rows,
            self._out(width),
            self.lens,
            live_prefix=live_prefix,
        )

    def check(self) -> None:
        """Raise AssertionError unless both forms equal the reference on these inputs."""
        for width in {self.width, CAPACITY}:
            want = reference.combined_rows(
                self.positions,
                self.requests,
                self.seq_lens,
                self.gather_lens,
                self.workspace_rows,
                self.compressed_rows,
                combined_width(width),
            )
            for form in (self.from_rows, self.from_positions):
                self.out.fill_(-99)
                self.lens.fill_(-99)
                if not all(map(torch.equal, form(width), want)):
                    raise AssertionError(f"{form.__name__} differs at {self.tokens} tokens, {self.max_seq_len} long")

    def launches(self) -> dict[str, Callable[[], object]]:
        """What is timed, by variant."""
        out = self._out(self.width)
        return {
            "from_rows_fixed": lambda: self.from_rows(CAPACITY),
            "from_rows_adaptive": lambda: self.from_rows(self.width),
            "from_positions": lambda: self.from_positions(self.width),
            "from_positions_live": lambda: self.from_positions(self.width, live_prefix=True),
            "from_positions_fixed": lambda: self.from_positions(CAPACITY),
            "fill": lambda: out.fill_(-1),
        }

    def describe(self, variant: str) -> dict[str, Any]:
        """The fields of a row that say what was timed."""
        fixed = variant.endswith("fixed")
        width = CAPACITY if fixed else self.width
        return {
            "sheet": "combine",
            "kernel": "combine",
            "variant": variant,
            "cell": f"{self.tokens}@{self.max_seq_len}",
            "decode": 0,
            "prefill": self.tokens,
            "requests": len(self.seq_lens),
            "max_seq_len": self.max_seq_len,
            "capacity": CAPACITY,
            "policy": "fixed" if fixed else "pow2",
            "width": width,
            "out_width": combined_width(width),
            "bytes": self.tokens * combined_width(width) * ITEMSIZE,
            "floor_scale": 1.0,
        }


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


def host_calls() -> dict[str, Callable[[], object]]:
    """One build of 64 decode and 64 prefill rows at 32,768 tokens, whole and in parts, for `timing.host_times`."""
    case = BuilderCase(Cell(64, 64, 32_768))
    arguments, plan = case.arguments(case.width), case.plan(case.width)
    buffers = (case.decode, case.lens, case.prefill)
    tiled = launch.tiled_launcher(plan, *buffers)
    graph = timing.capture(lambda: tiled(*case.inputs), 1)
    return {
        "build_c128a_topk_metadata": lambda: build_c128a_topk_metadata(*arguments),
        "its part: facts of the four inputs": lambda: [launch.facts(tensor) for tensor in case.inputs],
        "its part: launch": lambda: tiled(*case.inputs),
        "its first call: checks and plan": lambda: case.plan(case.width),
        "its first call: views": lambda: (plan.decode.view(case.decode), plan.prefill.view(case.prefill)),
        "row loop, same checks": lambda: build_with_row_loop(*arguments),
        "row loop, Triton's ordinary launch alone": lambda: launch.launch_row_loop(plan, *buffers, *case.inputs),
        "graph replay of one build": graph.replay,
        "empty kernel, Triton's ordinary launch": lambda: empty[(1,)](),
        "fill_ of the prefill rows": lambda: case.prefill.fill_(-1),
    }
