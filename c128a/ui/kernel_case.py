"""The batch of page 03, and which part of it is on view. Torch-free.

Decode requests have lengths that fall evenly from the longest to a fraction of it, so that their rows differ in ids and
pads. The prefill rows are the last tokens of one more request, chosen so that n grows by one in the middle of them.

>>> case = KernelCase(decode=3, prefill=2)
>>> case.width, case.launch.positions, case.launch.slots
(256, (32767, 21844, 10921, 24574, 24575), (8, 5, 2))
>>> case.grid("row_loop"), case.grid("tiled")
((5, 1), (3, 1))
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal, get_args

from c128a.layout import Layout, RowLayout
from c128a.tiles import Tile, tile_shape
from c128a.ui.old_trace import Kind, Launch, Store, row_loop_trip, tiled_grid, tiled_program
from c128a.width import Policy, active_topk_width, capacity_width, loop_trips, required_width

KV_BLOCK = 256  # tokens per KV block, as vLLM pages them
STEP = 1024  # columns a trip of the row loop: what PR #50004 launches

Kernel = Literal["row_loop", "tiled"]
KERNELS: tuple[Kernel, ...] = get_args(Kernel)
KERNEL_TITLE: dict[Kernel, str] = {"row_loop": "row loop", "tiled": "tiles"}

FAULTS = {
    "none": "nothing",
    "padded": "a padded token (slot -1)",
    "position": "a graph's padding row (position -1)",
    "request": "a request outside the table",
    "hole": "a block number of -1",
    "short": "a table that ends early",
}


@dataclass(frozen=True)
class KernelCase:
    """The settings of the page: seq and model_len in tokens, decode and prefill in rows, fault a key of FAULTS.

    The fault sits in the second decode row, or in the only one; "short" cuts the table of every row.
    """

    seq: int = 32_768
    model_len: int = 1_048_576
    ratio: int = 128
    policy: Policy = "pow2"
    layout: Layout = "packed"
    decode: int = 3
    prefill: int = 3
    fault: str = "none"

    @property
    def capacity(self) -> int:
        """Columns of the preallocated buffers."""
        return capacity_width(self.model_len, self.ratio)

    @property
    def needed(self) -> int:
        """Columns the longest sequence cannot do without."""
        return required_width(self.seq, self.ratio)

    @property
    def fits(self) -> bool:
        """Whether the capacity holds the longest sequence."""
        return self.needed <= self.capacity

    @property
    def width(self) -> int:
        """Columns built."""
        return active_topk_width(self.seq, self.ratio, self.capacity, policy=self.policy)

    @property
    def tile(self) -> Tile:
        """The tile that `tiled` is launched with."""
        return tile_shape(self.decode + self.prefill, self.width)

    def rows(self, kind: Kind) -> RowLayout:
        """Where the rows of a kind lie in their buffer; the lens buffer has one column a row."""
        if kind == "lens":
            return RowLayout.packed(self.decode, 1)
        return RowLayout.named(self.layout, getattr(self, kind), self.width, self.capacity)

    @cached_property
    def launch(self) -> Launch:
        """The host numbers of the build."""
        block_size = KV_BLOCK // self.ratio
        lengths = [self.seq * (self.decode - r) // self.decode for r in range(self.decode)]
        # n grows with the last token of each `ratio` tokens: half of the prefill rows lie before such a token.
        grows = self.seq * 3 // 4 // self.ratio * self.ratio - 1
        chunk_end = min(self.seq, grows + (self.prefill + 1) // 2)
        prefill = range(chunk_end - self.prefill, chunk_end)
        positions = [*(length - 1 for length in lengths), *(max(position, -1) for position in prefill)]
        requests, slots = list(range(self.decode)), [3 * (self.decode - r) - 1 for r in range(self.decode)]
        columns = max(-(-self.seq // KV_BLOCK), 1)
        table = [_block_numbers(r, columns, self.decode) for r in range(max(self.decode, 1))]
        self._break(positions, requests, slots, table)
        return Launch(
            positions=tuple(positions),
            requests=tuple(requests),
            table=tuple(map(tuple, table)),
            slots=tuple(slots),
            num_decode=self.decode,
            width=self.width,
            ratio=self.ratio,
            block_size=block_size,
        )

    def _break(self, positions: list[int], requests: list[int], slots: list[int], table: list[list[int]]) -> None:
        """Put the fault into the batch."""
        at = min(1, self.decode - 1)
        if at < 0:
            return
        if self.fault == "padded":
            slots[at] = -1
        elif self.fault == "position":
            positions[at], slots[at] = -1, -1
        elif self.fault == "request":
            requests[at] = self.decode
        elif self.fault == "hole":
            table[at][min(1, len(table[at]) - 1)] = -1
        elif self.fault == "short":
            table[:] = [row[: max(len(row) // 4, 1)] for row in table]

    def grid(self, kernel: Kernel) -> tuple[int, int]:
        """Programs and trips of the row loop; row groups and column tiles of `tiled`."""
        if kernel == "tiled":
            return tiled_grid(self.launch, self.tile)
        return self.decode + self.prefill, loop_trips(self.width, STEP)

    def shape(self, kernel: Kernel) -> tuple[int, int]:
        """Rows and columns of one trip of the row loop, of one program of `tiled`."""
        return (self.tile.rows, self.tile.cols) if kernel == "tiled" else (1, STEP)

    def stores(self, kernel: Kernel, program: int, trip: int) -> list[Store]:
        """The stores of one trip of one program of the row loop, or of one program (group, tile) of `tiled`."""
        return _stores(self, kernel, program, trip)


@lru_cache(maxsize=32)
def _stores(case: KernelCase, kernel: Kernel, program: int, trip: int) -> list[Store]:
    if kernel == "tiled":
        return list(tiled_program(case.launch, program, trip, case.tile))
    return list(row_loop_trip(case.launch, program, trip, step=STEP))


def _block_numbers(request: int, columns: int, requests: int) -> list[int]:
    """A table row without order in it: an odd multiplier modulo a power of two gives no block number twice."""
    size = 1 << (columns * requests).bit_length()
    return [(request * columns + entry) * 40_503 % size for entry in range(columns)]


@dataclass(frozen=True)
class View:
    """What of a build is looked at: a trip of a program, a lane of it, a statement (its key in `kernel_source`).

    Of `tiled`, program is the row group and trip the column tile.
    """

    case: KernelCase
    kernel: Kernel
    program: int
    trip: int
    lane: int = 0
    statement: str = "store"

    @classmethod
    def within(cls, case: KernelCase, kernel: Kernel, program: int, trip: int, lane: int = 0) -> View:
        """The view with program, trip and lane brought within what the case has."""
        programs, trips = case.grid(kernel)
        rows, columns = case.shape(kernel)
        return cls(case, kernel, min(program, programs - 1), min(trip, trips - 1), min(lane, rows * columns - 1))

    @property
    def runs(self) -> bool:
        """Whether any program is launched: the capacity holds the sequence and there is a row."""
        return self.case.fits and self.case.decode + self.case.prefill > 0

    @cached_property
    def stores(self) -> list[Store]:
        """The stores of the trip, in program order."""
        return self.case.stores(self.kernel, self.program, self.trip)

    @cached_property
    def store(self) -> Store:
        """The store of the trip's cells."""
        (store,) = (store for store in self.stores if store.kind != "lens")
        return store
