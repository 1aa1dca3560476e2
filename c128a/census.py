"""How many variants a sweep makes Triton compile: for a kernel that leaves its arguments to Triton, and for ours.

Triton keys a variant on every argument that it may specialise: an integer by "equals 1", "a multiple of 16" or neither,
and by its size (32 or 64 bits); a pointer by whether its address is a multiple of 16 bytes.

>>> integer_class(1), integer_class(64), integer_class(17), integer_class(2**31)
('1', 'i32 % 16', 'i32', 'i64 % 16')
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from c128a.width import reachable_widths

WIDTHS = tuple(reachable_widths(8192))
DECODE_COUNTS = (1, 2, 15, 16, 17, 64)


class Case(NamedTuple):
    """One build of the sweep: what of it may choose a variant."""

    step: str
    width: int
    num_decode: int
    table_stride: int
    aligned_positions: bool


class Count(NamedTuple):
    """Variants after each step of the sweep."""

    step: str
    naive: int
    ours: int


def sweep() -> Iterator[Case]:
    """Builds as serving makes them: every width, then token counts, an odd table stride, a slice of positions."""
    for width in WIDTHS:
        yield Case("all widths", width, 16, 64, True)
    for count in DECODE_COUNTS:
        yield Case("decode counts 1, 2, 15, 16, 17, 64", 256, count, 64, True)
    yield Case("an odd block-table stride", 256, 16, 65, True)
    yield Case("an unaligned positions pointer", 256, 16, 64, False)


def integer_class(value: int) -> str:
    """The class in which Triton puts an integer argument."""
    if value == 1:
        return "1"
    size = "i32" if -(2**31) <= value < 2**31 else "i64"
    return f"{size} % 16" if value % 16 == 0 else size


def naive_key(case: Case) -> tuple[object, ...]:
    """What Triton keys a variant of the unannotated row loop on, as far as the sweep varies it."""
    integers = (case.width, case.num_decode, case.table_stride)
    return *(integer_class(value) for value in integers), case.aligned_positions


def predicted() -> list[Count]:
    """Variants after each step by Triton's rule, needing neither torch nor a GPU.

    Ours has one variant a tile shape that the sweep's builds choose, and no other argument counts.
    """
    from c128a.tiles import tile_shape

    naive: set[object] = set()
    ours: set[object] = set()
    counts: dict[str, Count] = {}
    for case in sweep():
        naive.add(naive_key(case))
        ours.add(tile_shape(case.num_decode, case.width))
        counts[case.step] = Count(case.step, len(naive), len(ours))
    return list(counts.values())


def measured() -> list[Count]:
    """The same counted on a GPU: variants in Triton's cache, and variants loaded by `c128a.kernel`."""
    import torch

    from c128a.kernel import ROW_LOOP_STEP, loaded_variants, row_loop_specialised
    from c128a.metadata import build_c128a_topk_metadata

    device = torch.cuda.current_device()
    decode = torch.empty(64, 8192, dtype=torch.int32, device="cuda")
    lens = torch.empty(64, dtype=torch.int32, device="cuda")
    prefill = torch.empty(1, 8192, dtype=torch.int32, device="cuda")
    requests = torch.zeros(64, dtype=torch.int32, device="cuda")
    slots = torch.zeros(64, dtype=torch.int64, device="cuda")
    positions = torch.full((65,), 1000, dtype=torch.int64, device="cuda")
    before = set(loaded_variants())
    counts: dict[str, Count] = {}
    for case in sweep():
        table = torch.zeros(2, case.table_stride, dtype=torch.int32, device="cuda")
        start = 0 if case.aligned_positions else 1
        tokens = positions[start : start + case.num_decode]
        shared = (requests, table, slots)
        row_loop_specialised[(case.num_decode,)](
            decode, case.width, lens, prefill, case.width, tokens, 128, case.width, case.num_decode, shared[0], table,
            table.stride(0), *table.shape, 2, slots, STEP=ROW_LOOP_STEP,
        )  # fmt: skip
        build_c128a_topk_metadata(
            tokens, 128, case.num_decode, requests, table, 2, slots, decode, lens, prefill, case.width
        )
        naive = len(row_loop_specialised.device_caches[device][0])
        ours = len(set(loaded_variants()) - before)
        counts[case.step] = Count(case.step, naive, ours)
    return list(counts.values())
