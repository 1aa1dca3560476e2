"""Stand in for vLLM's `build_c128a_topk_metadata`. Importing this needs neither vLLM nor torch.

vLLM loads `register` by itself, as a general plugin, and it does nothing unless it is asked:

    C128A_VLLM=1 vllm serve deepseek-ai/DeepSeek-V4-Pro …

By hand it is `install()` and `uninstall()`. Rows are pitched for vLLM 0.30 and later, packed for 0.27, as the reader of
each release expects them; 0.26 and 0.28 build full rows, for which the two are the same. `install(layout="pitched")`
keeps the rows of 0.27 in place under a captured graph, for readers that take the row stride from the tensor, as
FlashMLA does.

The function is replaced in its module and in every module that has imported it by name. What holds it elsewhere (a
default argument, a closure, an attribute of an object) keeps the released one. This package's own kernel is imported on
the first call, in the worker process, so that a plugin loaded before a fork touches no GPU.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import logging
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from c128a.deployment.releases import release_of
from c128a.layout import LAYOUTS, Layout

MODULE = "vllm.models.deepseek_v4.sparse_mla"
FUNCTION = "build_c128a_topk_metadata"
SWITCH = "C128A_VLLM"  # environment variable; "1" turns the plugin on
PARAMETERS = (
    "positions",
    "compress_ratio",
    "num_decode_tokens",
    "token_to_req_indices",
    "block_table",
    "block_size",
    "slot_mapping",
    "global_decode_buffer",
    "decode_lens_buffer",
    "prefill_buffer",
    "max_compressed_tokens",
)
DEFAULTS = {"max_compressed_tokens": 8192}

_log = logging.getLogger(__name__)
_released: Callable[..., Any] | None = None  # what was replaced; None while nothing is
_places: list[tuple[dict[str, Any], str]] = []  # namespaces and names in which it was replaced


class RefusedError(RuntimeError):
    """The stand-in was not installed; the message says why, and nothing was changed."""


def register() -> None:
    """The entry point that vLLM calls in each of its processes: install where C128A_VLLM=1 asks for it.

    Raises RefusedError where it asks and the stand-in does not fit: an engine must not run on something else than it
    was told to.
    """
    if os.environ.get(SWITCH) == "1":
        _log.info("%s", install())


def install(*, layout: Layout | None = None) -> str:
    """Replace vLLM's function by this package's and say in one line what was done. A second call changes nothing.

    layout: None takes the one of the installed release.

    Raises RefusedError, with the reason, where vLLM cannot be imported, its release is not documented, or the function
    is not there or has another signature.
    """
    global _released
    if layout is not None and layout not in LAYOUTS:
        raise ValueError(f"layout is {layout!r}; it must be one of {', '.join(LAYOUTS)}")
    if _released is not None:
        return f"{MODULE}.{FUNCTION} is replaced already"
    try:
        version = str(importlib.import_module("vllm").__version__)
        module = importlib.import_module(MODULE)
    except ImportError as error:
        raise RefusedError(f"{MODULE} cannot be imported: {error}") from error
    released = vars(module).get(FUNCTION)
    if not callable(released):
        raise RefusedError(f"{MODULE} has no function {FUNCTION}")
    _check_signature(released, version)
    if layout is None:
        try:
            layout = release_of(version).layout
        except ValueError as error:
            raise RefusedError(f"{error}; name the layout to install it all the same") from error
    stand_in = _stand_in(released, layout)
    for namespace in [vars(known) for known in list(sys.modules.values()) if isinstance(known, ModuleType)]:
        _places.extend((namespace, name) for name, value in list(namespace.items()) if value is released)
    for namespace, name in _places:
        namespace[name] = stand_in
    _released = released
    return f"vLLM {version}: {MODULE}.{FUNCTION} replaced, {layout} rows, places: {len(_places)}"


def uninstall() -> None:
    """Put vLLM's function back wherever the stand-in still stands; without an installation nothing happens."""
    global _released
    for namespace, name in _places:
        if getattr(namespace.get(name), "__wrapped__", None) is _released:
            namespace[name] = _released
    _places.clear()
    _released = None


def _stand_in(released: Callable[..., Any], layout: Layout) -> Callable[..., Any]:
    @functools.wraps(released)
    def stand_in(*args: Any, **kwargs: Any) -> Any:
        from c128a.metadata import build_c128a_topk_metadata

        return build_c128a_topk_metadata(*args, layout=layout, **kwargs)

    return stand_in


def _check_signature(released: Callable[..., Any], version: str) -> None:
    found = list(inspect.signature(released).parameters.values())
    fits = (
        tuple(parameter.name for parameter in found) == PARAMETERS
        and all(parameter.kind is parameter.POSITIONAL_OR_KEYWORD for parameter in found)
        and {p.name: p.default for p in found if p.default is not p.empty} == DEFAULTS
    )
    if not fits:
        bare = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in found]
        ours = ", ".join(f"{name}={DEFAULTS[name]}" if name in DEFAULTS else name for name in PARAMETERS)
        raise RefusedError(
            f"{FUNCTION} of vLLM {version} has another signature.\n"
            f"vLLM has   {inspect.Signature(bare)}\n"
            f"this fits  ({ours})"
        )
