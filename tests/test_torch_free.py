"""What a browser's Python can import: it has neither torch nor triton."""

import subprocess
import sys

import pytest
import torch

TORCH_FREE = [
    "c128a",
    "c128a.width",
    "c128a.layout",
    "c128a.tiles",
    "c128a.case",
    "c128a.trace",
    "c128a.bench.records",
    "c128a.bench.profile",
    "c128a.account.claims",
    "c128a.census",
    "c128a.deployment.__main__",
    "c128a.integrations.step_rows",
    "c128a.integrations.vllm",
]

BLOCK = "import sys; sys.modules.update(torch=None, triton=None)\n"
CUDA = torch.cuda.is_available()


def run(code, before=BLOCK):
    return subprocess.run([sys.executable, "-c", before + code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("module", TORCH_FREE)
def test_module_imports_where_torch_and_triton_cannot(module):
    done = run(f"import {module}")
    assert done.returncode == 0, done.stderr


def test_the_block_itself_works():
    assert "ModuleNotFoundError" in run("import torch").stderr
    assert "ModuleNotFoundError" in run("from c128a import build_c128a_topk_metadata").stderr


def test_torch_free_names_come_from_the_package_itself():
    done = run("import c128a; print(c128a.active_topk_width(32_768, 128, 8192), c128a.RowLayout.packed(2, 128).span)")
    assert done.stdout.split() == ["256", "256"], done.stderr


def test_an_unknown_name_is_an_attribute_error():
    assert "has no attribute 'nothing'" in run("import c128a; c128a.nothing").stderr


def test_importing_triton_first_without_a_gpu_says_what_to_do():
    done = run("import os; os.environ.pop('TRITON_INTERPRET', None); import triton; import c128a.backend", before="")
    assert (done.returncode == 0) == CUDA, done.stderr
    assert ("import c128a.backend first, or set TRITON_INTERPRET=1" in done.stderr) != CUDA


def test_the_kernels_run_interpreted_whatever_module_comes_first():
    code = "import c128a.kernel, c128a.frozen, c128a.combine; import c128a.backend as b; print(b.INTERPRET)"
    done = run(code, before="")
    assert done.stdout.strip() == str(not CUDA), done.stderr
