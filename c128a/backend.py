"""Where the kernels run, decided once: compiled on an NVIDIA GPU, interpreted where there is none.

Triton reads TRITON_INTERPRET while it is imported and when a kernel is decorated, so this module is imported before
either. A value that the user set is kept.
"""

from __future__ import annotations

import os
import sys
import threading
import warnings
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version

import torch

HAS_GPU = torch.cuda.is_available()
if not HAS_GPU and "TRITON_INTERPRET" not in os.environ:
    if "triton" in sys.modules:
        raise ImportError(
            "triton was imported before c128a on a machine without a GPU, and its own functions are now bound to a "
            "compiler that has no device; import c128a.backend first, or set TRITON_INTERPRET=1"
        )
    os.environ["TRITON_INTERPRET"] = "1"

INTERPRET = os.environ.get("TRITON_INTERPRET", "0").lower() in ("1", "true", "on", "yes", "y")


def not_interpreted(triton: str, numpy: str) -> str:
    """What Triton's interpreter cannot do in these versions; nothing where it can do all.

    >>> not_interpreted("3.6.0", "2.3.5"), not_interpreted("3.7.1", "2.4.6"), not_interpreted("3.6.0", "2.4.6")
    ('', '', 'triton 3.6.0 cannot interpret the loop of row_loop with numpy 2.4.6: take numpy<2.4 or triton>=3.7')
    """
    of_triton, of_numpy = (tuple(map(int, of.split(".")[:2])) for of in (triton, numpy))
    said = f"triton {triton} cannot interpret the loop of row_loop with numpy {numpy}: take numpy<2.4 or triton>=3.7"
    return said if of_triton < (3, 7) and of_numpy >= (2, 4) else ""


if INTERPRET:
    with suppress(PackageNotFoundError):
        if said := not_interpreted(version("triton"), version("numpy")):
            warnings.warn(said, stacklevel=2)

# The interpreter patches triton.language while a kernel runs, and marimo gives each browser tab a thread.
kernel_lock = threading.RLock()


def device() -> torch.device:
    """The device the kernels run on here: the current GPU when they are compiled, else the CPU."""
    return torch.device("cuda", torch.cuda.current_device()) if HAS_GPU and not INTERPRET else torch.device("cpu")


def check_device(where: torch.device) -> None:
    """Raise where no kernel can run on tensors of this device.

    RuntimeError without a GPU and with the interpreter switched off, ValueError for tensors of the CPU beside a GPU.
    """
    if INTERPRET:
        return
    if not HAS_GPU:
        raise RuntimeError(
            "TRITON_INTERPRET=0 switches the interpreter off, and torch finds no NVIDIA GPU here; "
            "unset TRITON_INTERPRET to have the kernels interpreted on the CPU"
        )
    if where.type != "cuda":
        raise ValueError(f"the tensors are on {where}; the kernels of this process are compiled for cuda")


def describe() -> str:
    """One line for a person: what runs the kernels."""
    if INTERPRET:
        return "Triton's interpreter on the CPU: true values, no meaningful times"
    return f"compiled for {torch.cuda.get_device_name()}" if HAS_GPU else "no GPU, and the interpreter is switched off"
