"""Stand in for two functions of vLLM: the builder of the index rows, and the combine of its FlashMLA layers.

vLLM loads `register` by itself, as a general plugin, in each of its processes, and it does nothing unless it is asked:

    C128A_VLLM=1 vllm serve deepseek-ai/DeepSeek-V4-Pro …

Then it waits until the engine imports the module of the builder. By hand it is `install()` and `uninstall()`.

Rows lie as the installed release lays them: packed in 0.27, pitched from 0.29 on, at full width in 0.26 and 0.28 and
for decode on SM120. `install(layout="pitched")` keeps the rows of 0.27 in place under a captured graph, for readers
that take the row stride from the tensor, as FlashMLA does. The stand-in of the combine makes the rows of a step once
(`step_rows`), and leaves calls that do not fit to the released one, with a line in the log. All that is launched is
compiled when the engine makes its builder, before it serves.

A function is replaced in every module that names it, not where a default argument, a closure or an object holds it.
Importing this needs neither vLLM nor torch, and a plugin loaded before a fork touches no GPU.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.abc
import importlib.util
import inspect
import logging
import os
import sys
from collections.abc import Callable
from importlib import import_module
from inspect import Parameter, Signature
from types import ModuleType
from typing import Any

from c128a.integrations.step_rows import RATIO, StepRows, warm_up
from c128a.layout import LAYOUTS, Layout

MODULE = "vllm.models.deepseek_v4.sparse_mla"
FUNCTION = "build_c128a_topk_metadata"
COMBINE_MODULE = "vllm.models.deepseek_v4.common.ops.cache_utils"
COMBINE = "combine_topk_swa_indices"

# Every release from 0.26.0 to 0.34.0 has these parameters, and this `kernel_digest`.
NAMES = (
    "positions", "compress_ratio", "num_decode_tokens", "token_to_req_indices", "block_table", "block_size",
    "slot_mapping", "global_decode_buffer", "decode_lens_buffer", "prefill_buffer", "max_compressed_tokens",
)  # fmt: skip
KERNEL = "07a5809d17c145bc"

_log = logging.getLogger(__name__)
_places: list[tuple[Any, str, Callable[..., Any]]] = []  # module or class, name, what was replaced there


class RefusedError(RuntimeError):
    """The stand-in was not installed; the message says why, and nothing was changed."""


class _OnImport(importlib.abc.MetaPathFinder):
    """Install as soon as the module of the builder has run, before anyone can take a function from it."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != MODULE:
            return None
        sys.meta_path.remove(self)  # for the others to find it
        try:
            spec = importlib.util.find_spec(name)
        finally:
            sys.meta_path.insert(0, self)
        if spec and spec.loader:
            run = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                run(module)
                if self in sys.meta_path:
                    install()
                    sys.meta_path.remove(self)  # not where it was refused: a second import is refused as well

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def register() -> None:
    """Install where C128A_VLLM=1 asks for it, once the builder is imported; vLLM calls this in each of its processes.

    Where it does not fit, that import raises RefusedError: no engine runs on something else than it was told to.
    """
    asked = os.environ.get("C128A_VLLM") == "1"
    if asked and MODULE in sys.modules:
        install()
    elif asked and not any(isinstance(finder, _OnImport) for finder in sys.meta_path):
        sys.meta_path.insert(0, _OnImport())


def install(*, layout: Layout | None = None) -> str:
    """Replace vLLM's functions by this package's and say in one line what was done. A second call changes nothing.

    layout: None takes the one of the installed release. An unknown release is taken where all fits, and the line says
    so. Raises RefusedError, with the reason, where vLLM cannot be imported or does not run on CUDA, and where the
    builder's function is not there, or has another signature, kernel or views than in the releases that were read.
    """
    if layout is not None and layout not in LAYOUTS:
        raise ValueError(f"layout is {layout!r}; it must be one of {', '.join(LAYOUTS)}")
    if _places:
        return f"{MODULE}.{FUNCTION} is replaced already"
    try:
        version = str(import_module("vllm").__version__)
        platform = import_module("vllm.platforms").current_platform
        if not platform.is_cuda():
            raise RefusedError(f"vLLM runs on {platform.device_name}; the kernels of this package are for CUDA")
        module = import_module(MODULE)
        digest = kernel_digest(inspect.getsource(module))
    except (ImportError, OSError) as error:
        raise RefusedError(f"{MODULE} cannot be imported and read: {error}") from error
    released = vars(module).get(FUNCTION)
    if not callable(released):
        raise RefusedError(f"{MODULE} has no function {FUNCTION}")
    found, whole = _check(released, digest, version)
    layout = layout or found
    done = f"{MODULE}.{FUNCTION} replaced, {layout} rows{', decode at full width' if whole else ''}"
    done += f", places: {_replace(released, _stand_in(released, layout, whole))}; {_install_combine()}"
    for builder in list(vars(module).values()):
        if isinstance(builder, type) and "_build_c128a_metadata" in vars(builder):
            _warm_at_construction(builder, layout)

    from c128a.deployment.releases import RELEASES

    read = version.split(".")[:2] in [release.name.split(".")[:2] for release in RELEASES]
    line = f"vLLM {version}{'' if read else ' (unknown, but it fits)'}: {done}"
    _log.log(logging.INFO if read else logging.WARNING, "%s", line)
    return line


def uninstall() -> None:
    """Put vLLM's functions back wherever a stand-in still stands; without an installation nothing happens."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _OnImport)]
    for owner, name, released in _places:
        if getattr(vars(owner).get(name), "__wrapped__", None) is released:
            setattr(owner, name, released)
    _places.clear()


def kernel_digest(source: str) -> str:
    """A digest of the statements of the kernel that writes the rows, which is told by its first parameter."""
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    kernels = [each for each in functions if ast.unparse(each.args).startswith("global_decode_ptr")]
    text = "\n".join(ast.unparse(statement) for kernel in kernels for statement in kernel.body)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _check(released: Callable[..., Any], digest: str, version: str) -> tuple[Layout, bool]:
    """Raise RefusedError unless the function of the builder is one that is known.

    Returns the layout of its rows, and whether decode rows have all columns whatever the width: both are seen in the
    views that it gives for no tokens, for which it launches nothing.
    """
    found, fits = str(Signature(_parameters(released))), f"({', '.join(NAMES)}=8192)"
    if found != fits:
        shown = f"vLLM has   {found}\nthis fits  {fits}"
        raise RefusedError(f"{FUNCTION} of vLLM {version} has another signature.\n{shown}")
    if digest != KERNEL:
        raise RefusedError(f"the kernel of {FUNCTION} of vLLM {version} is another: digest {digest}, known {KERNEL}")

    import torch

    index = functools.partial(torch.empty, dtype=torch.int32, device="cpu")
    none, buffers = index(0).long(), (index(1, 256), index(1), index(1, 256))
    decode, _, prefill = released(none, RATIO, 0, index(0), index(0, 1), 2, none, *buffers, 128)
    views = tuple((rows.shape[1], rows.stride(0)) for rows in (decode, prefill))
    full, packed, pitched = (256, 256), (128, 128), (128, 256)
    if views not in ((full, full), (packed, packed), (pitched, pitched), (full, pitched)):
        raise RefusedError(f"the rows of {FUNCTION} of vLLM {version} have unknown widths and row strides: {views}")
    return "packed" if packed in views else "pitched", views == (full, pitched)


def _stand_in(released: Callable[..., Any], layout: Layout, whole: bool) -> Callable[..., Any]:
    @functools.wraps(released)
    def stand_in(*args: Any, **kwargs: Any) -> Any:
        from c128a.metadata import build_c128a_topk_metadata

        build = functools.partial(build_c128a_topk_metadata, layout=layout)
        if not whole:
            return build(*args, **kwargs)
        given = dict(zip(NAMES, args, strict=False)) | kwargs
        tokens, n, columns = given["positions"], given["num_decode_tokens"], given["global_decode_buffer"].shape[1]
        decode, lens, _ = build(**given | {"positions": tokens[:n], "max_compressed_tokens": columns})
        return decode, lens, build(**given | {"positions": tokens[n:], "num_decode_tokens": 0})[2]

    return stand_in


def _warm_at_construction(builder: Any, layout: Layout) -> None:
    """Compile all that the stand-ins launch whenever the engine has made a builder for C128A layers."""
    released = builder.__init__

    @functools.wraps(released)
    def construct(self: Any, *args: Any, **kwargs: Any) -> None:
        released(self, *args, **kwargs)
        if self.compress_ratio == RATIO:
            from c128a.metadata import C128AMetadataBuilder

            block = self.kv_cache_spec.block_size
            C128AMetadataBuilder(1, 1, layout=layout, kv_block_size=block, device=self.device).warmup()
            warm_up(self.model_config.hf_config.sliding_window, self.device)

    _places.append((builder, "__init__", released))
    builder.__init__ = construct


def _install_combine() -> str:
    """Replace the combine where it fits; says in a few words what was done."""
    try:
        released = vars(import_module(COMBINE_MODULE))[COMBINE]
        ours, found = _parameters(StepRows.combine)[1:], _parameters(released)
    except (ImportError, KeyError, TypeError) as error:
        return f"{COMBINE} stays, {COMBINE_MODULE} does not have it: {error!r}"
    needed = [parameter for parameter in ours if parameter.default is parameter.empty]
    if found != ours[: len(found)] or len(found) < len(needed):  # 0.26 ends before `out`, 0.27 to 0.29 behind it
        return f"{COMBINE} stays, its signature is another: {Signature(found)}"

    def plan(step: Any) -> Any:
        layer = import_module("vllm.models.deepseek_v4.attention").DeepseekV4Attention
        return step.get_prefill_chunk_plan(compress_ratio=RATIO, prefill_chunk_size=layer.PREFILL_CHUNK_SIZE)

    rows = StepRows(lambda: import_module("vllm.forward_context").get_forward_context(), plan)

    @functools.wraps(released)
    def stand_in(*args: Any, **kwargs: Any) -> Any:
        try:
            return rows.combine(*args, **kwargs)
        except Exception as error:
            rows.say(f"{COMBINE} of the release is used: {error!r}")
        return released(*args, **kwargs)

    return f"{COMBINE} replaced, places: {_replace(released, stand_in)}"


def _replace(released: Callable[..., Any], stand_in: Callable[..., Any]) -> int:
    """Put the stand-in wherever a module names the released function; returns at how many places."""
    modules = [known for known in list(sys.modules.values()) if isinstance(known, ModuleType)]
    places = [(module, name) for module in modules for name, value in list(vars(module).items()) if value is released]
    for module, name in places:
        setattr(module, name, stand_in)
        _places.append((module, name, released))
    return len(places)


def _parameters(function: Callable[..., Any]) -> list[Parameter]:
    return [p.replace(annotation=p.empty) for p in inspect.signature(function).parameters.values()]
