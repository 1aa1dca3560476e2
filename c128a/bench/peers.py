"""The combines of other engines, to be timed beside ours: `python -m c128a.bench combine --peers FOLDER`.

FOLDER holds unpacked wheels: vllm/, sglang/ or tokenspeed_kernel/, with their *.dist-info, which names the version,
beside them. A function is taken from its file by name, with what it uses there, so that nothing else of an engine is
imported; nothing of it is kept.
"""

from __future__ import annotations

import ast
import re
import runpy
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch

from c128a.combine import WINDOW

Call = Callable[[], object]


class Chunk(NamedTuple):
    """What a combine of one chunk takes; the tensors are those of `c128a.combine`."""

    positions: torch.Tensor  # (tokens,) int64
    token_to_req_indices: torch.Tensor  # (tokens,) int32
    query_start_loc: torch.Tensor  # (requests + 1,) int32
    seq_lens: torch.Tensor  # (requests,) int32
    gather_lens: torch.Tensor  # (requests,) int32
    bases: tuple[torch.Tensor, torch.Tensor]  # (requests,) int32 each
    rows: torch.Tensor  # (tokens, width) int32, the builder's prefill rows
    workspace_rows: int
    compressed_rows: int
    compress_ratio: int
    out: torch.Tensor  # (tokens, combined width) int32
    lens: torch.Tensor  # (tokens,) int32


class Peer(NamedTuple):
    """An engine's combine: from the inputs of a chunk to a call that launches it and returns its rows and lens."""

    version: str
    prepare: Callable[[Chunk], Call]


def find(folder: Path) -> dict[str, Peer]:
    """The engines in the folder, by the name of their package.

    Raises ValueError, with the reason, where there is none, or one without its version or its function.
    """
    found = {}
    for name, (path, function, prepare) in PEERS.items():
        if (folder / name).is_dir():
            about = [file.read_text(encoding="utf-8") for file in folder.glob(f"{name}-*.dist-info/METADATA")]
            if not about:
                raise ValueError(f"{folder} holds no {name}-*.dist-info, which names the version")
            (version, *_) = re.findall(r"^Version: (\S+)$", about[0], re.M)
            found[name] = Peer(version, partial(prepare, _lift(folder / path, function)))
    if not found:
        raise ValueError(f"{folder} holds none of {', '.join(PEERS)}")
    return found


def _lift(path: Path, name: str) -> Any:
    """A function of a file, or a method as CLASS.METHOD, in a module of its own with all that it uses in its file."""
    try:
        body = ast.parse(path.read_text(encoding="utf-8")).body
    except OSError as error:
        raise ValueError(f"there is no {path}: {error.strerror}") from None
    owner, _, name = name.rpartition(".")
    body += [part for node in body if isinstance(node, ast.ClassDef) and node.name == owner for part in node.body]
    defined: dict[str, ast.stmt] = {}
    for node in body:
        if isinstance(node, ast.FunctionDef):
            node.decorator_list = [each for each in node.decorator_list if "jit" in ast.unparse(each)]
            defined[node.name] = node
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            defined[node.targets[0].id] = node
    if name not in defined:
        raise ValueError(f"{path} has no {name}")
    wanted, queue = set(), [name]
    while queue:
        each = queue.pop()
        if each in defined and each not in wanted:
            wanted.add(each)
            queue += [part.id for part in ast.walk(defined[each]) if isinstance(part, ast.Name)]
    lines = ["from __future__ import annotations", "from typing import Optional", "import torch"]
    lines += ["import triton", "import triton.language as tl"]
    lines += [ast.unparse(node) for each, node in defined.items() if each in wanted]
    with tempfile.TemporaryDirectory() as folder:  # Triton reads a kernel's source when it is decorated
        file = Path(folder, f"{name}.py")
        file.write_text("\n\n".join(lines), encoding="utf-8")
        return runpy.run_path(str(file), run_name=f"lifted_{name}")[name]


def _vllm(kernel: Any, chunk: Chunk) -> Call:
    """vLLM from 0.28 on: 256 programs a request, after a fill with -1."""
    width, unread = chunk.rows.shape[1], chunk.rows  # unread: in place of the visible tokens of images
    out, rows = (chunk.out, chunk.out.stride(0), chunk.lens), (chunk.rows, chunk.rows.stride(0))
    lens = (chunk.query_start_loc, chunk.seq_lens, chunk.gather_lens, unread, unread)
    sizes = (chunk.workspace_rows, chunk.compressed_rows)
    constants = {"TOP_K": width, "COMPRESS_RATIO": chunk.compress_ratio, "WINDOW_SIZE": WINDOW, "IMAGE_WIDTH": 0}
    constants |= {"PADDED_TOP_K": 1 << (width - 1).bit_length()}

    def call() -> tuple[torch.Tensor, torch.Tensor]:
        chunk.out.fill_(-1)
        kernel[(len(chunk.seq_lens), 256)](*out, *rows, *lens, *sizes, **constants)
        return chunk.out, chunk.lens

    return call


def _sglang(function: Any, chunk: Chunk) -> Call:
    """SGLang 0.5.23: a base for each request, rows written whole."""
    function.__globals__["ceil_align"] = lambda value, multiple: -(-value // multiple) * multiple
    lens = (chunk.query_start_loc, chunk.positions.int(), chunk.seq_lens, chunk.gather_lens, *chunk.bases)
    sizes = (WINDOW, chunk.compress_ratio, chunk.rows.shape[1])
    return partial(function, chunk.rows, *lens, *sizes, chunk.out, chunk.lens)


def _tokenspeed(function: Any, chunk: Chunk) -> Call:
    """TokenSpeed 0.1.4: one program for 128 columns, after a fill with -1, into tensors of its own."""
    return partial(
        function,
        positions=chunk.positions,
        token_to_req_indices=chunk.token_to_req_indices,
        seq_lens=chunk.seq_lens,
        gather_lens=chunk.gather_lens,
        compressed_lens=chunk.seq_lens // chunk.compress_ratio,
        window_size=WINDOW,
        compress_ratio=chunk.compress_ratio,
        workspace_width=chunk.workspace_rows,
        compressed_base=chunk.compressed_rows,
    )


PEERS = {  # by package: a file of it, the function there, and how a chunk becomes a call of it
    "vllm": ("vllm/models/deepseek_v4/common/ops/cache_utils.py", "CombineTopkSwaIndicesKernel.kernel", _vllm),
    "sglang": ("sglang/kernels/ops/attention/dsv4/sparse_prefill_kernels.py", "combine_topk_swa_indices", _sglang),
    "tokenspeed_kernel": (
        "tokenspeed_kernel/ops/attention/dsv4/triton.py",
        "dsv4_combine_dense_swa_indices",
        _tokenspeed,
    ),
}
