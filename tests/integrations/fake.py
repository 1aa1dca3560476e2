"""A vLLM of text files with the modules that the stand-in looks at: a made-up builder, or that of a wheel.

C128A_PEERS=<folder> names a folder in which a wheel of vLLM is unpacked, with its dist-info.
"""

import ast
import importlib
import os
import sys
from pathlib import Path

import pytest

from c128a.integrations import vllm as stand_in

VIEWS = {  # what a release returns for no tokens, as text; nobody looks at lens
    "fixed": "global_decode_buffer[:0], None, prefill_buffer[:0]",
    "packed": "global_decode_buffer[0, :0].view(0, width), None, prefill_buffer[0, :0].view(0, width)",
    "pitched": "global_decode_buffer[:0, :width], None, prefill_buffer[:0, :width]",
    "SM120": "global_decode_buffer[:0], None, prefill_buffer[:0, :width]",
    "transposed": "global_decode_buffer.T, None, prefill_buffer.T",
}
BUILDER = """
from types import SimpleNamespace


class Builder:
    def __init__(self, device):
        self.compress_ratio, self.device, self.kv_cache_spec = 128, device, SimpleNamespace(block_size=256)
        self.model_config = SimpleNamespace(hf_config=SimpleNamespace(sliding_window=16))

    def _build_c128a_metadata(self, batch, decode_buffer, lens_buffer, prefill_buffer, width):
        return build_c128a_topk_metadata(
            batch.positions, 128, batch.num_decode_tokens, batch.token_to_req_indices, batch.block_table, 2,
            batch.slot_mapping, decode_buffer, lens_buffer, prefill_buffer, max_compressed_tokens=width,
        )


def build_c128a_topk_metadata(
    positions, compress_ratio, num_decode_tokens, token_to_req_indices, block_table, block_size, slot_mapping,
    global_decode_buffer, decode_lens_buffer, prefill_buffer, max_compressed_tokens: int = 8192,
) -> tuple:
    width = max_compressed_tokens
    return VIEWS


def kernel(global_decode_ptr):
    return "rows"
"""
PLATFORM = """
class current_platform:
    device_name = "{platform}"
    is_cuda = lambda: "{platform}" == "cuda"
    get_device_capability = lambda: current_platform
    major = {major}
"""
STUBS = {  # what the builder of a wheel takes from other modules and calls
    "cdiv": "def cdiv(a, b): return -(-a // b)",
    "get_compressed_slot_mapping": "def get_compressed_slot_mapping(*args, out): return out",
    "split_decodes_and_prefills": "def split_decodes_and_prefills(cm, decode_threshold): return cm.split",
    "tl": "import triton.language as tl",
    "triton": "import triton",
}
ANYTHING = """
class {}:
    ALWAYS = UNIFORM_BATCH = reorder_batch_threshold = None
    __class_getitem__ = classmethod(lambda cls, item: cls)
    _init_reorder_batch_threshold = lambda *args, **kwargs: None

    def __init__(self, kv_cache_spec=None, layer_names=None, vllm_config=None, device=None):
        self.kv_cache_spec, self.device = kv_cache_spec, device
"""


def wheel():
    """The folder of the wheel at hand, its version, the text of its builder, and texts for what that imports."""
    folder = Path(os.environ.get("C128A_PEERS", "nowhere"))
    path = folder / "vllm/models/deepseek_v4/sparse_mla.py"
    if not path.is_file():
        pytest.skip("C128A_PEERS names no folder with the builder of a vLLM wheel")
    text, others = path.read_text(), {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.ImportFrom) and node.module.startswith("vllm."):
            others[node.module] = "\n".join(STUBS.get(of.name, ANYTHING.format(of.name)) for of in node.names)
    (info,) = folder.glob("vllm-*.dist-info")
    return folder, info.name.removeprefix("vllm-").removesuffix(".dist-info"), text, others


@pytest.fixture
def fake(monkeypatch, tmp_path):
    """Make a vLLM of a version, and return a function that imports a module of it; `others` are further modules."""

    def forget():
        for name in [name for name in sys.modules if name.split(".")[0] == "vllm"]:
            del sys.modules[name]

    def make(version="0.30.0", views="pitched", builder=BUILDER, platform="cuda", major=9, others=()):
        forget()
        modules = {"vllm": f"__version__ = {version!r}", stand_in.MODULE: builder.replace("VIEWS", VIEWS[views])}
        modules |= dict(others) | {"vllm.platforms": PLATFORM.format(platform=platform, major=major)}
        for name, text in modules.items():
            path = tmp_path / name.replace(".", "/")
            package = name == "vllm" or any(other.startswith(f"{name}.") for other in modules)
            path = path / "__init__.py" if package else path.with_suffix(".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        importlib.invalidate_caches()
        return lambda name=stand_in.MODULE: importlib.import_module(name)

    monkeypatch.setattr(stand_in, "KERNEL", stand_in.kernel_digest(BUILDER))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # another text of the same second and size is read anew
    monkeypatch.syspath_prepend(tmp_path)
    yield make
    stand_in.uninstall()
    forget()
