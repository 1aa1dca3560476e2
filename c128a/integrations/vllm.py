"""Stand in for two functions of vLLM: the builder of the index rows, and the combine of its FlashMLA layers.

Importing this needs neither vLLM nor torch.

vLLM loads `register` by itself, as a general plugin, and it does nothing unless it is asked:

    C128A_VLLM=1 vllm serve deepseek-ai/DeepSeek-V4-Pro …

By hand it is `install()` and `uninstall()`. Rows are pitched for vLLM 0.30 and later, packed for 0.27, as the reader of
each release expects them; 0.26 and 0.28 build full rows, for which the two are the same. `install(layout="pitched")`
keeps the rows of 0.27 in place under a captured graph, for readers that take the row stride from the tensor, as
FlashMLA does.

`combine_topk_swa_indices` runs in every layer and chunk; its stand-in makes the rows of a step once for all C128A
layers (`step_rows`). Where a call does not fit (another ratio, a captured graph, …), the released one does it, and a
log line says why once. Where its signature is another, it stays.

A function is replaced in its module and in every module that has imported it by name. What holds it elsewhere (a
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
from c128a.integrations.step_rows import DoesNotFitError, StepRows
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

COMBINE_MODULE = "vllm.models.deepseek_v4.common.ops.cache_utils"
COMBINE = "combine_topk_swa_indices"
COMBINE_PARAMETERS = (
    "topk_indices",
    "query_start_loc",
    "seq_lens",
    "gather_lens",
    "window_size",
    "compress_ratio",
    "topk",
    "M",
    "N",
)
COMBINE_DEFAULTS = {"out": None, "left_visible": None, "right_visible": None, "max_image_tokens": 0}  # 0.34, not 0.26

_log = logging.getLogger(__name__)
_places: list[tuple[dict[str, Any], str, Callable[..., Any]]] = []  # namespace, name, what was replaced there


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
    """Replace vLLM's functions by this package's and say in one line what was done. A second call changes nothing.

    layout: None takes the one of the installed release.

    Raises RefusedError, with the reason, where vLLM cannot be imported, its release is not documented, or the builder's
    function is not there or has another signature. The combine stays where it does not fit, and the line says so.
    """
    if layout is not None and layout not in LAYOUTS:
        raise ValueError(f"layout is {layout!r}; it must be one of {', '.join(LAYOUTS)}")
    if _places:
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
    places = _replace(released, _stand_in(released, layout))
    return f"vLLM {version}: {MODULE}.{FUNCTION} replaced, {layout} rows, places: {places}; {_install_combine()}"


def uninstall() -> None:
    """Put vLLM's functions back wherever a stand-in still stands; without an installation nothing happens."""
    for namespace, name, released in _places:
        if getattr(namespace.get(name), "__wrapped__", None) is released:
            namespace[name] = released
    _places.clear()


def _replace(released: Callable[..., Any], stand_in: Callable[..., Any]) -> int:
    """Put the stand-in wherever a module names the released function; returns at how many places."""
    before = len(_places)
    for namespace in [vars(known) for known in list(sys.modules.values()) if isinstance(known, ModuleType)]:
        _places.extend((namespace, name, released) for name, value in list(namespace.items()) if value is released)
    for namespace, name, _ in _places[before:]:
        namespace[name] = stand_in
    return len(_places) - before


def _install_combine() -> str:
    """Replace the combine where it fits; says in a few words what was done."""
    try:
        released = vars(importlib.import_module(COMBINE_MODULE)).get(COMBINE)
    except ImportError as error:
        return f"{COMBINE} stays, its module cannot be imported: {error}"
    if not callable(released):
        return f"{COMBINE} stays, {COMBINE_MODULE} does not have it"
    older = _has(released, COMBINE_PARAMETERS, {})
    if not (older or _has(released, (*COMBINE_PARAMETERS, *COMBINE_DEFAULTS), COMBINE_DEFAULTS)):
        return f"{COMBINE} stays, its signature is another: {inspect.signature(released)}"
    return f"{COMBINE} replaced, places: {_replace(released, _combine_stand_in(released))}"


def _combine_stand_in(released: Callable[..., Any]) -> Callable[..., Any]:
    def metadata() -> object:
        return importlib.import_module("vllm.forward_context").get_forward_context().attn_metadata

    def plan(step: Any) -> Any:
        layer = importlib.import_module("vllm.models.deepseek_v4.attention").DeepseekV4Attention
        return step.get_prefill_chunk_plan(compress_ratio=128, prefill_chunk_size=layer.PREFILL_CHUNK_SIZE)

    rows = StepRows(metadata, plan)

    @functools.wraps(released)
    def stand_in(*args: Any, **kwargs: Any) -> Any:
        try:
            return rows.combine(*args, **kwargs)
        except DoesNotFitError as error:
            rows.say(f"{COMBINE} of the release is used: {error}")
        except Exception as error:
            rows.say(f"{COMBINE} of the release is used: {type(error).__name__}: {error}")
        return released(*args, **kwargs)

    return stand_in


def _stand_in(released: Callable[..., Any], layout: Layout) -> Callable[..., Any]:
    @functools.wraps(released)
    def stand_in(*args: Any, **kwargs: Any) -> Any:
        from c128a.metadata import build_c128a_topk_metadata

        return build_c128a_topk_metadata(*args, layout=layout, **kwargs)

    return stand_in


def _has(function: Callable[..., Any], names: tuple[str, ...], defaults: dict[str, Any]) -> bool:
    """Whether a function has exactly these parameters, each to be given by position or by name."""
    found = list(inspect.signature(function).parameters.values())
    return (
        tuple(parameter.name for parameter in found) == names
        and all(parameter.kind is parameter.POSITIONAL_OR_KEYWORD for parameter in found)
        and {p.name: p.default for p in found if p.default is not p.empty} == defaults
    )


def _check_signature(released: Callable[..., Any], version: str) -> None:
    if not _has(released, PARAMETERS, DEFAULTS):
        found = inspect.signature(released).parameters.values()
        bare = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in found]
        ours = ", ".join(f"{name}={DEFAULTS[name]}" if name in DEFAULTS else name for name in PARAMETERS)
        raise RefusedError(
            f"{FUNCTION} of vLLM {version} has another signature.\n"
            f"vLLM has   {inspect.Signature(bare)}\n"
            f"this fits  ({ours})"
        )
