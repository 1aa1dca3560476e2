"""What a browser's Python can import: it has neither torch nor triton."""

import torch

from tests.support.pages import run_each

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
    "c128a.teach.questions",
]
CUDA = torch.cuda.is_available()


def run(*programs, missing=()):
    return run_each("import sys; exec(sys.argv[1])", [[program] for program in programs], missing)


def test_modules_import_where_torch_and_triton_cannot_and_only_what_needs_them_is_missing():
    names, torch_itself, kernel, unknown, modules = run(
        "import c128a; print(c128a.active_topk_width(32_768, 128, 8192), c128a.RowLayout.packed(2, 128).span)",
        "import torch",
        "from c128a import build_c128a_topk_metadata",
        "import c128a; c128a.nothing",
        "\n".join(f"import {module}" for module in TORCH_FREE),
        missing=("torch", "triton"),
    )
    assert names.text().split() == ["256", "256"]
    assert "ModuleNotFoundError" in torch_itself.stderr and "ModuleNotFoundError" in kernel.stderr
    assert "has no attribute 'nothing'" in unknown.stderr
    assert modules.text() == ""


def test_the_kernels_are_interpreted_without_a_gpu_or_say_what_to_import_first():
    triton_first, kernel_first = run(
        "import os; os.environ.pop('TRITON_INTERPRET', None); import triton; import c128a.backend",
        "import os; os.environ.pop('TRITON_INTERPRET', None); import c128a.combine; print(c128a.backend.INTERPRET)",
    )
    assert kernel_first.text().strip() == str(not CUDA)
    assert (triton_first.returncode == 0) == CUDA, triton_first.stderr
    assert ("import c128a.backend first, or set TRITON_INTERPRET=1" in triton_first.stderr) != CUDA
