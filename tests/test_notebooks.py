"""Each page runs whole as a plain program, pressing nothing; some of them where there is neither torch nor triton."""

import json
from functools import cache

import pytest

from tests.support.pages import ROOT, run_each

pytest.importorskip("marimo", reason="marimo is not installed")

PAGES = sorted(path.stem for path in (ROOT / "notebooks").glob("*.py"))
WITHOUT_TORCH = ["01_width", "02_layout", "03_kernel", "05_review", "06_deployment"]

RUN = """
import json, runpy, sys
app = runpy.run_path(f"notebooks/{sys.argv[1]}.py")["app"]
outputs, defs = app.run()
text = "\\n".join(str(output.text if hasattr(output, "text") else output) for output in outputs)
print(json.dumps({"text": text, "verdict": getattr(defs.get("found"), "verdict", None)}))
"""


@cache
def ran(*missing: str):
    pages = WITHOUT_TORCH if missing else PAGES
    return dict(zip(pages, run_each(RUN, [[page] for page in pages], missing), strict=True))


def run(page: str, *missing: str) -> dict:
    return json.loads(ran(*missing)[page].text())


@pytest.mark.parametrize("page", PAGES)
def test_a_page_runs_whole_with_nothing_pressed(page):
    assert "c128a-lead" in run(page)["text"]


@pytest.mark.parametrize("page", WITHOUT_TORCH)
def test_a_page_runs_where_torch_and_triton_cannot_be_imported(page):
    assert "c128a-lead" in run(page, "torch", "triton")["text"]


def test_the_layout_page_says_that_its_kernel_did_not_run():
    assert "the kernel cannot run here (torch is missing)" in run("02_layout", "torch", "triton")["text"]


def test_the_layout_page_shows_the_kernels_own_output_where_it_can_run():
    pytest.importorskip("c128a.metadata")
    assert "Every cell is as drawn above." in run("02_layout")["text"]


def test_the_review_page_says_what_it_could_not_check_without_torch():
    whole, without = run("05_review")["text"], run("05_review", "torch", "triton")["text"]
    assert "could not be checked" not in whole and "could not be checked" in without


def test_the_deployment_page_finds_its_default_safe_without_torch():
    assert run("06_deployment", "torch", "triton")["verdict"] == "safe"
