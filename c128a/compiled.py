"""Compiled kernels, held: which variants exist is decided here and nowhere else.

Triton's ordinary launch looks at every argument to find the variant it needs, and compiles a new one when it has not
seen the combination. Here a variant is named by its constants alone, compiled once, kept, and launched directly.
"""

from __future__ import annotations

import c128a.backend as backend

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

VECTOR_BYTES = 16  # the widest store of one thread


class Variant(Protocol):
    """What tells one compiled kernel from another: hashable, and able to compile itself."""

    @property
    def device(self) -> int:
        """Index of the GPU the variant is loaded on."""

    def compile(self, target: GPUTarget | None = None) -> Any:
        """The compiled kernel for a target; None is the current GPU."""


@dataclass(frozen=True)
class Signature:
    """Run-time arguments of a kernel: its int64 pointers, and what integers and addresses are multiples of."""

    int64_pointers: tuple[str, ...]
    multiples: Mapping[str, int]


def compile_kernel(
    kernel: Any,
    signature: Signature,
    constants: Mapping[str, int],
    warps: int,
    *,
    overlap: bool,
    target: GPUTarget | None = None,
) -> Any:
    """Compile a `triton.jit` function for a target; needs no GPU where one is given.

    Arguments named …_ptr are int32 pointers unless the signature says int64; the others are 32-bit integers. overlap
    compiles for programmatic dependent launch: the kernel may start while the one before it ends, and must wait.

    Raises RuntimeError when the kernels were decorated for the interpreter (TRITON_INTERPRET=1).
    """
    if not isinstance(kernel, triton.JITFunction):
        raise RuntimeError("the kernels are interpreted in this process; set TRITON_INTERPRET=0 before importing them")
    names = kernel.arg_names
    types = dict.fromkeys(names, "i32") | {name: "*i32" for name in names if name.endswith("_ptr")}
    types |= dict.fromkeys(signature.int64_pointers, "*i64") | dict.fromkeys(constants, "constexpr")
    hints = {(names.index(name),): [["tt.divisibility", by]] for name, by in signature.multiples.items()}
    source = ASTSource(kernel, types, constexprs=dict(constants), attrs=hints)
    options = {"num_warps": warps} | ({"launch_pdl": True} if overlap else {})
    return triton.compile(source, target=target, options=options)


@cache
def can_overlap(device: int) -> bool:
    """Whether a GPU knows programmatic dependent launch (compute capability 9.0, Hopper, and later)."""
    return torch.cuda.get_device_capability(device) >= (9, 0)


class Held:
    """A compiled kernel, loaded on one device."""

    def __init__(self, kernel: Any, device: int) -> None:
        self.kernel = kernel
        self.device = device

    def launcher(self, grid: tuple[int, int, int]) -> Callable[..., None]:
        """A function that launches the kernel over a grid on the device's current stream.

        Its arguments are the kernel's, pointers as integers, constants last.
        """
        run, function, metadata = self.kernel.run, self.kernel.function, self.kernel.packed_metadata
        current_device = triton.runtime.driver.active.get_current_device
        current_stream = triton.runtime.driver.active.get_current_stream
        device = self.device

        def launch(*arguments: int) -> None:
            if current_device() == device:
                run(*grid, current_stream(device), function, metadata, None, None, None, *arguments)
            else:
                with torch.cuda.device(device):
                    run(*grid, current_stream(device), function, metadata, None, None, None, *arguments)

        return launch


_held: dict[Variant, Held] = {}


def held_variants() -> list[Variant]:
    """The variants compiled and loaded in this process so far."""
    return list(_held)


def hold(variant: Variant) -> Held:
    """The compiled kernel of a variant, compiled and loaded on its device on first use."""
    held = _held.get(variant)
    if held is None:
        with backend.kernel_lock, torch.cuda.device(variant.device):
            held = _held.get(variant) or Held(variant.compile(), variant.device)
            _held[variant] = held
    return held
