"""How many variants a sweep makes Triton compile: for a kernel that leaves its arguments to Triton, and for ours.

Triton keys a variant on every argument that it may specialise: an integer by "equals 1", "a multiple of 16" or neither,
and by its size (32 or 64 bits); a pointer by whether its address is a multiple of 16 bytes.

>>> integer_class(1), integer_class(64), integer_class(17), integer_class(2**31)
('1', 'i32 % 16', 'i32', 'i64 % 16')
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from c128a.width import reachable_widths


class Build(NamedTuple):
    """What of a build may choose a variant."""

    width: int = 256
    num_decode: int = 16
    table_stride: int = 64
    aligned_positions: bool = True


class Count(NamedTuple):
    """Variants after each step of the sweep."""

    step: str
    naive: int
    ours: int


# Builds as serving makes them, step by step.
SWEEP = {
    "all widths": [Build(width) for width in reachable_widths(8192)],
    "decode counts 1, 2, 15, 16, 17, 64": [Build(num_decode=count) for count in (1, 2, 15, 16, 17, 64)],
    "an odd block-table stride": [Build(table_stride=65)],
    "an unaligned positions pointer": [Build(aligned_positions=False)],
}


def integer_class(value: int) -> str:
    """The class in which Triton puts an integer argument."""
    if value == 1:
        return "1"
    size = "i32" if -(2**31) <= value < 2**31 else "i64"
    return f"{size} % 16" if value % 16 == 0 else size


def predicted() -> list[Count]:
    """Variants after each step by Triton's rule, needing neither torch nor a GPU.

    A naive variant is keyed on every argument that the sweep varies; ours has one a tile shape that its builds choose.
    """
    from c128a.tiles import tile_shape

    naive, ours = set(), set()

    def launch(build: Build) -> tuple[int, int]:
        naive.add((*map(integer_class, build[:3]), build.aligned_positions))
        ours.add(tile_shape(build.num_decode, build.width))
        return len(naive), len(ours)

    return _counted(launch)


def measured() -> list[Count]:
    """The same counted on a GPU: variants in Triton's cache, and variants loaded by `c128a.kernel`."""
    import torch

    from c128a.kernel import ROW_LOOP_STEP, loaded_variants, row_loop_specialised
    from c128a.metadata import build_c128a_topk_metadata

    decode = torch.empty(64, 8192, dtype=torch.int32, device="cuda")
    prefill = torch.empty(1, 8192, dtype=torch.int32, device="cuda")
    lens, requests = torch.zeros(2, 64, dtype=torch.int32, device="cuda")
    slots = torch.zeros(64, dtype=torch.int64, device="cuda")
    positions = torch.full((65,), 1000, dtype=torch.int64, device="cuda")
    before = set(loaded_variants())

    def launch(build: Build) -> tuple[int, int]:
        width, count, stride, aligned = build
        table = torch.zeros(2, stride, dtype=torch.int32, device="cuda")
        tokens = positions[0 if aligned else 1 :][:count]
        row_loop_specialised[(count,)](
            decode, width, lens, prefill, width, tokens, 128, width, count, requests, table, stride, *table.shape, 2,
            slots, STEP=ROW_LOOP_STEP,
        )  # fmt: skip
        build_c128a_topk_metadata(tokens, 128, count, requests, table, 2, slots, decode, lens, prefill, width)
        naive = row_loop_specialised.device_caches[torch.cuda.current_device()][0]
        return len(naive), len(set(loaded_variants()) - before)

    return _counted(launch)


def _counted(launch: Callable[[Build], tuple[int, int]]) -> list[Count]:
    """The counts after the last build of each step; `launch` tells them after each."""
    return [Count(step, *[launch(build) for build in builds][-1]) for step, builds in SWEEP.items()]
