"""C128A index rows of DeepSeek-V4: the width policy, the layout, the kernels, and the pages that show them.

Every name below is loaded on first use, so that `import c128a` needs neither torch nor triton: a browser's WASM
Python has neither.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "TOPK_ALIGNMENT": "width",
    "capacity_width": "width",
    "active_topk_width": "width",
    "required_width": "width",
    "reachable_widths": "width",
    "sequence_range": "width",
    "loop_trips": "width",
    "Shard": "width",
    "shard_width": "width",
    "RowLayout": "layout",
    "build_c128a_topk_metadata": "metadata",
    "C128AMetadataBuilder": "metadata",
    "C128AMetadata": "metadata",
    "combine_prefill_indices": "combine",
    "combine_step_indices": "combine",
    "prefill_chunks": "layout",
    "step_bases": "layout",
}

__all__ = [*_HOME]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
