"""The true output of a kernel beside the reference's, for the batch of page 03. Torch-free until called."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from c128a.ui.kernel_case import Kernel, KernelCase

if TYPE_CHECKING:
    import torch

MAX_INTERPRETED = 64  # programs (row loop: trips) run without being asked; the interpreter takes some 4 ms for one
MAX_ON_REQUEST = 2048  # and at most on request
POISON = -99

Rows = list[list[int]]


@dataclass(frozen=True)
class Output:
    """Decode rows, lens and prefill rows of the kernel and of the reference; where says what ran the kernel."""

    kernel: dict[str, Rows]
    reference: dict[str, Rows]
    where: str

    @property
    def differing(self) -> int:
        """Cells, lens included, in which the two differ."""
        return sum(
            one != other
            for name, rows in self.kernel.items()
            for row, want in zip(rows, self.reference[name], strict=True)
            for one, other in zip(row, want, strict=True)
        )

    @property
    def cells(self) -> int:
        """Cells compared, lens included."""
        return sum(len(row) for rows in self.kernel.values() for row in rows)


def unavailable() -> str | None:
    """Why the kernels cannot run in this process; None where they can."""
    try:
        # Not triton by itself: it must be imported after c128a.backend has chosen the interpreter.
        importlib.import_module("c128a.metadata")
    except ImportError as missing:
        return f"{missing.name or 'triton'} cannot be imported here"
    return None


def interpreted() -> bool:
    """Whether the kernels of this process run in Triton's interpreter."""
    from c128a import backend

    return backend.INTERPRET


@lru_cache(maxsize=32)
def true_output(case: KernelCase, kernel: Kernel) -> Output:
    """Run the kernel on the batch and compare it with the reference."""
    import torch

    from c128a import backend, reference
    from c128a.metadata import build_c128a_topk_metadata, build_with_row_loop

    device = backend.device()
    launch = case.launch
    int64, int32 = torch.int64, torch.int32
    positions = torch.tensor(launch.positions, dtype=int64, device=device)
    requests = torch.tensor(launch.requests, dtype=int32, device=device)
    table = torch.tensor(launch.table, dtype=int32, device=device)
    slots = torch.tensor(launch.slots, dtype=int64, device=device)
    inputs = (positions, launch.ratio, launch.num_decode, requests, table, launch.block_size, slots)
    # Poisoned, so that a cell the kernel leaves out shows. One row too many spares the case of none.
    decode = torch.full((case.decode + 1, case.capacity), POISON, dtype=int32, device=device)
    prefill = torch.full((case.prefill + 1, case.capacity), POISON, dtype=int32, device=device)
    lens = torch.full((case.decode + 1,), POISON, dtype=int32, device=device)
    build = build_c128a_topk_metadata if kernel == "tiled" else build_with_row_loop
    got = build(*inputs, decode, lens, prefill, case.width, layout=case.layout)
    want = reference.topk_metadata(*inputs, case.width)
    return Output(kernel=_rows(*got), reference=_rows(*want), where=backend.describe())


def _rows(decode: torch.Tensor, lens: torch.Tensor, prefill: torch.Tensor) -> dict[str, Rows]:
    return {"decode": decode.tolist(), "lens": [[value] for value in lens.tolist()], "prefill": prefill.tolist()}
