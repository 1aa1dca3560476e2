"""Where the kernels run, decided once: compiled on an NVIDIA GPU, interpreted where there is none.

Triton reads TRITON_INTERPRET while it is imported and when a kernel is decorated, so this module is imported before
either. A value that the user set is kept.
"""

from __future__ import annotations

import os
import sys
import threading

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
