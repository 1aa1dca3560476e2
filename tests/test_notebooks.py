"""Each page runs whole as a plain program, pressing nothing; some of them where there is neither torch nor triton."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WITHOUT_TORCH = ["01_width", "02_layout", "03_kernel", "06_deployment"]

RUN = """
import runpy, sys
for missing in sys.argv[2:]:
    sys.modules[missing] = None
app = runpy.run_path(sys.argv[1])["app"]
outputs, defs = app.run()
print("\\n".join(str(output.text if hasattr(output, "text") else output) for output in outputs))
"""


def run(page: str, *missing: str) -> str:
    path = ROOT / "notebooks" / f"{page}.py"
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(path), *missing], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("page", sorted(path.stem for path in (ROOT / "notebooks").glob("*.py")))
def test_a_page_runs_whole_with_nothing_pressed(page):
    assert "c128a-lead" in run(page)


@pytest.mark.parametrize("page", WITHOUT_TORCH)
def test_a_page_runs_where_torch_and_triton_cannot_be_imported(page):
    text = run(page, "torch", "triton")
    assert "c128a-lead" in text


def test_the_layout_page_says_that_its_kernel_did_not_run():
    assert "the kernel cannot run here (torch is missing)" in run("02_layout", "torch", "triton")


def test_the_layout_page_shows_the_kernels_own_output_where_it_can_run():
    pytest.importorskip("c128a.metadata")
    assert "Every cell is as drawn above." in run("02_layout")
