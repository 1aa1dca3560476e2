"""How many variants a sweep makes Triton compile: for a kernel that leaves its arguments to Triton, and for ours.

    python -m c128a.census c128a.kernel:row_loop_specialised         any kernel, over the builds of SWEEP
    python -m c128a.census module:kernel --points FILE               over operating points of your own

Triton keys a variant on every argument that it may specialise: an integer by "equals 1", "a multiple of 16" or neither,
and by its size (32 or 64 bits); a pointer by whether its address is a multiple of 16 bytes. A constexpr is keyed on
its value. The file is JSON: a list of steps, {"step": words, "points": [{argument: value, …}, …]}, where the value of a
pointer is its address (0 is aligned, 4 is not). An argument that no point names is taken to stay as it is.

>>> integer_class(1), integer_class(64), integer_class(17), integer_class(2**31)
('1', 'i32 % 16', 'i32', 'i64 % 16')
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from c128a.width import host_integer, reachable_widths

Point = Mapping[str, Any]  # the value of each argument that varies


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


# What a build of SWEEP is to a kernel, by the names that the row loops of this package and of the releases have.
ARGUMENTS = {
    "width": ("width", "max_compressed_tokens", "decode_stride", "prefill_stride"),
    "num_decode": ("num_decode", "num_decode_tokens"),
    "table_stride": ("table_stride", "block_table_stride"),
    "aligned_positions": ("positions_ptr",),
}


def points_of(builds: Iterable[Build]) -> list[Point]:
    """The builds as operating points: each argument that SWEEP varies, under all of its names."""
    return [
        {
            name: (0 if value else 4) if field == "aligned_positions" else value
            for field, value in build._asdict().items()
            for name in ARGUMENTS[field]
        }
        for build in builds
    ]


def keys(kernel: Any, points: Iterable[Point]) -> set[tuple[Any, ...]]:
    """The specialisation keys that a JIT function (`triton.jit`, not interpreted) gets over operating points.

    Raises TypeError for what is no JIT function and for a value that is no integer.
    """
    if not hasattr(kernel, "params"):
        raise TypeError(f"the kernel is of {type(kernel).__name__}; it must be a function decorated by triton.jit")
    return {tuple(_key(parameter, point) for parameter in kernel.params) for point in points}


def _key(parameter: Any, point: Point) -> Any:
    """The part of one argument in a key."""
    if parameter.name not in point:
        return None
    value = point[parameter.name]
    if parameter.is_constexpr:
        return value
    number = host_integer(parameter.name, value, -(2**63))
    if parameter.name.endswith("_ptr"):
        return None if parameter.do_not_specialize_on_alignment or parameter.do_not_specialize else number % 16 == 0
    if parameter.do_not_specialize:
        return "i32" if -(2**31) <= number < 2**31 else "i64"
    return integer_class(number)


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


def main(argv: list[str] | None = None) -> int:
    """Count the variants of one kernel, step by step."""
    parser = argparse.ArgumentParser(prog="python -m c128a.census", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("kernel", help="module:name of a function decorated by triton.jit")
    parser.add_argument("--points", type=Path, help="operating points as JSON; default: the builds of SWEEP")
    asked = parser.parse_args(argv)
    module, _, name = asked.kernel.partition(":")
    try:
        kernel = getattr(import_module(module), name)
        if asked.points:
            steps = {each["step"]: each["points"] for each in json.loads(asked.points.read_text(encoding="utf-8"))}
        else:
            steps = {step: points_of(builds) for step, builds in SWEEP.items()}
        seen: set[tuple[Any, ...]] = set()
        for step, points in steps.items():
            seen |= keys(kernel, points)
            print(f"{len(seen):4} variants after {step}")
    except (ImportError, AttributeError, OSError, ValueError, TypeError, KeyError) as error:
        print(f"python -m c128a.census: {type(error).__name__}: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    os.environ["TRITON_INTERPRET"] = "0"  # an interpreted kernel has no keys
    sys.exit(main())
