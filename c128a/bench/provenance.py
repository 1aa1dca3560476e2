"""Where a record comes from: the machine, the versions, the commit, the command, the source that was timed."""

from __future__ import annotations

import datetime
import hashlib
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

PACKAGE = Path(__file__).resolve().parents[1]
TIMED = ("kernel.py", "tiles.py", "combine.py", "bench/timing.py", "bench/cases.py")  # what decides about a time


def provenance(command: str) -> dict[str, Any]:
    """Facts of this machine and this tree, for the head of a record.

    GPU name, driver, clocks as found (nothing is changed), torch, triton, python, commit, whether the tree without
    data/ differs from it, a hash of the source that was timed, the time (UTC) and the command that repeats the run.
    """
    facts: dict[str, Any] = {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": command,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "triton": metadata.version("triton"),
        "commit": _git("rev-parse", "HEAD"),
        "dirty": bool(_git("status", "--porcelain", "--untracked-files=no", "--", ":/", ":(top,exclude)data")),
        "source_hash": source_hash(),
    }
    if torch.cuda.is_available():
        properties = torch.cuda.get_device_properties(0)
        facts |= {
            "gpu": properties.name,
            "multiprocessors": properties.multi_processor_count,
            "l2_bytes": properties.L2_cache_size,
            "memory_bytes": properties.total_memory,
            "cuda": torch.version.cuda,
            **clocks(),
        }
    else:
        facts["gpu"] = f"none ({platform.processor() or platform.machine()})"
    return facts


def source_hash() -> str:
    """A hash of the text of the kernels, their tiles and what times them: another one makes a record stale."""
    return hashlib.sha256(b"".join((PACKAGE / name).read_bytes() for name in TIMED)).hexdigest()[:16]


def command_line(module: str) -> str:
    """The command of this process, as a person would type it."""
    return " ".join(["python", "-m", module, *sys.argv[1:]])


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=PACKAGE, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):  # no git, or no checkout
        return ""
    return done.stdout.strip()


def clocks() -> dict[str, str]:
    """The GPU's driver and its clocks as they are at this moment; empty where nvidia-smi does not answer."""
    fields = {"driver": "driver_version", "sm_clock": "clocks.sm", "memory_clock": "clocks.mem"}
    query = f"--query-gpu={','.join(fields.values())}"
    try:
        done = subprocess.run(
            ["nvidia-smi", "--id=0", query, "--format=csv,noheader"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return {}
    return dict(zip(fields, (value.strip() for value in done.stdout.split(",")), strict=False))
