"""Where a record comes from: the machine, the versions, the commit, the command, the source that was timed."""

from __future__ import annotations

import datetime
import hashlib
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

PACKAGE = Path(__file__).resolve().parents[1]
# What decides about a time.
TIMED = ("kernel.py", "tiles.py", "combine.py", "bench/timing.py", "bench/cases.py", "bench/combines.py")
ROWS_ALONE = ("builder", "ranks", "tiles")  # sheets without combined rows


def provenance(command: str) -> dict[str, Any]:
    """Facts of this machine and this tree, for a record; dirty: files outside of data/ are not as in the commit."""
    facts: dict[str, Any] = {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": command,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "triton": metadata.version("triton"),
        "commit": _said("git", "rev-parse", "HEAD"),
        "dirty": _said("git", "status", "--porcelain", "--untracked-files=no", "--", ":/", ":(top,exclude)data") != "",
        "source_hash": source_hash(),
    }
    if not torch.cuda.is_available():
        return facts | {"gpu": f"none ({platform.processor() or platform.machine()})"}
    card = torch.cuda.get_device_properties(0)
    facts |= {"gpu": card.name, "multiprocessors": card.multi_processor_count, "l2_bytes": card.L2_cache_size}
    return facts | {"memory_bytes": card.total_memory, "cuda": torch.version.cuda} | clocks()


def source_hash() -> str:
    """A hash of the text of the kernels, their tiles and what times them."""
    return hashlib.sha256(b"".join((PACKAGE / name).read_bytes() for name in TIMED)).hexdigest()[:16]


def changed_since(commit: str, sheet: str) -> list[str]:
    """The files that decide about the times of a sheet and are not as they were at a commit: its record is stale.

    Raises CalledProcessError where git does not know the commit, and OSError without git.
    """
    files = [str(PACKAGE / name) for name in TIMED if sheet not in ROWS_ALONE or "combine" not in name]
    command = ["git", "diff", "--name-only", commit, "--", *files]
    return subprocess.run(command, cwd=PACKAGE, capture_output=True, text=True, check=True).stdout.split()


def clocks() -> dict[str, str]:
    """The GPU's driver and its clocks as they are at this moment; empty where nvidia-smi does not answer."""
    fields = {"driver": "driver_version", "sm_clock": "clocks.sm", "memory_clock": "clocks.mem"}
    said = _said("nvidia-smi", "--id=0", f"--query-gpu={','.join(fields.values())}", "--format=csv,noheader")
    return dict(zip(fields, said.split(", "), strict=False)) if said else {}


def _said(*command: str) -> str:
    """What a command prints; nothing where it fails: no git, no checkout, no GPU."""
    try:
        return subprocess.run(command, cwd=PACKAGE, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
