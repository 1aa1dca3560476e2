"""The workbook as files: complete, linked within itself, computing from what it carries along, and never in the way."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.support.pages import run_each
from tests.support.site import LIVE, PAGES, PRESET, ROOT

pytest.importorskip("uv", reason="uv is not installed")

from scripts import build_site


class Addresses(HTMLParser):
    """What a file's tags point at, scripts and styles included."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found += [value for name, value in attrs if name in ("href", "src") and value]


def build(site: Path, **how) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "scripts/build_site.py", str(site)], cwd=ROOT, text=True, **how)


# ------------------------------------------------------------------------------------------------- the folder


@pytest.fixture
def old(tmp_path):
    """A site of an earlier build, alone in its folder."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / build_site.MARKER).touch()
    return folder


def test_a_folder_of_another_is_refused_even_where_it_holds_assets(old):
    (old / build_site.MARKER).unlink()
    (old / "assets").mkdir()
    refused = build(old, stderr=subprocess.PIPE)
    assert "left alone" in refused.communicate(timeout=60)[1]
    assert refused.returncode == 2
    assert list(old.parent.rglob("*")) == [old, old / "assets"]


def test_one_ctrl_c_ends_a_build_and_leaves_the_old_site_whole(old):
    building = build(old, start_new_session=True)
    while not list(old.parent.glob(".site-*/sources/public/data/names.json")):
        assert building.poll() is None
        time.sleep(0.05)
    os.killpg(building.pid, signal.SIGINT)  # as a terminal does
    assert building.wait(60) == 130
    assert list(old.parent.rglob("*")) == [old, old / build_site.MARKER]


def test_a_site_of_ours_is_replaced_as_a_whole(old, monkeypatch):
    def new(work, presets):
        assert [path.name for path in old.iterdir()] == [build_site.MARKER]
        (work / "site" / "new").mkdir(parents=True)
        return work / "site"

    monkeypatch.setattr(build_site, "build", new)
    monkeypatch.setattr(build_site.signal, "signal", lambda *_: None)
    monkeypatch.setattr(sys, "argv", ["build_site.py", str(old)])
    assert build_site.main() == 0
    assert list(old.parent.rglob("*")) == [old, old / "new"]


# ---------------------------------------------------------------------------------------------- what is in it


def test_the_index_links_every_page_in_every_form(site):
    links = Addresses((site / "index.html").read_text()).found
    assert f"01_width-{PRESET}.html" in links
    for page in PAGES:
        assert f"{page}.html" in links
        assert f"notebooks/{page}.ipynb" in links
    assert [page for page in PAGES if f"live/{page}.html" in links] == LIVE


def test_every_address_is_relative_and_leads_to_a_file_and_no_file_names_a_place_on_this_machine(site):
    for path in [*site.glob("*.html"), *site.glob("live/*.html")]:
        text = path.read_text()
        for address in Addresses(text).found:
            assert not re.match(r"[a-z]+:|/", address), f"{path.name} points at {address}"
            assert (path.parent / address).is_file(), f"{path.name} points at {address}"
        assert str(ROOT) not in text and str(site) not in text, path.name


def test_recorded_pages_ran_the_kernel_and_all_evidence(site):
    assert "Every cell is as drawn above." in (site / "02_layout.html").read_text()
    assert "could not be checked" not in (site / "05_review.html").read_text()


# A process like the browser's: its package is the wheel, its records come through pyodide's open_url, and there is
# neither torch nor triton nor filelock. sys.platform tells the package where it is, once marimo has been imported.
IN_A_BROWSER = """
import io, runpy, sys, types
site, page, wheel = sys.argv[1:]
asked = []
def open_url(address):
    assert address.startswith("https://host/a/path/public/"), address
    asked.append(address.removeprefix("https://host/a/path/public/"))
    return io.StringIO(open(f"{site}/public/{asked[-1]}").read())
sys.modules["pyodide.http"] = types.SimpleNamespace(open_url=open_url)
sys.modules["js"] = types.SimpleNamespace(location="https://host/a/path/assets/worker-1.js")
sys.path.insert(0, wheel)
sys.platform = "emscripten"
app = runpy.run_path(page)["app"]
import c128a
assert c128a.__file__.startswith(wheel), c128a.__file__
outputs, names = app.run()
print(*(getattr(output, "text", output) for output in outputs))
print("asked", sorted(asked), "and found", getattr(names.get("found"), "verdict", None))
"""


def test_a_page_computes_from_its_wheel_without_torch(site):
    (site.parent / "head.html").touch()
    cases = []
    for page in LIVE:
        source = site.parent / f"{page}.py"
        html = (site / "live" / f"{page}.html").read_text()
        source.write_text(json.loads(re.search(r'notebookCode: (".*")', html).group(1)))
        needs = json.loads(re.search(r"^# dependencies = (\[.*\])$", source.read_text(), re.M).group(1))
        wheel = site / needs.pop().removeprefix("c128a @ ../").replace("%2B", "+")
        assert sorted(needs) == ["altair", "marimo", "pandas", "pyyaml"]  # of any version
        with zipfile.ZipFile(wheel) as packed:
            (metadata,) = [packed.read(name) for name in packed.namelist() if name.endswith("METADATA")]
        assert b"Requires-Dist" not in metadata
        cases.append([str(site), str(source), str(wheel)])
    for page, ran in zip(LIVE, run_each(IN_A_BROWSER, cases, missing=("torch", "triton", "filelock")), strict=True):
        assert "c128a-lead" in ran.text(), page
        assert 'href="04_timing.html?' in ran.stdout  # links lead to files, not to the gallery
        if page == "02_layout":
            assert "the kernel cannot run here (torch is missing)" in ran.stdout
        if page == "06_deployment":
            assert "and found safe" in ran.stdout
            assert all(f"data/{path.name}" in ran.stdout for path in (ROOT / "data").glob("*.json"))


# Runs each code cell as Jupyter does, and shows the value of its last expression.
JUPYTER = """
import ast, json, os, sys
os.environ.pop("PYTEST_CURRENT_TEST", None)  # by it marimo takes this process for a test of its own
names = {"__name__": "__main__"}
for cell in json.load(open(sys.argv[1]))["cells"]:
    if cell["cell_type"] == "code":
        body = ast.parse("".join(cell["source"])).body
        last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
        exec(compile(ast.Module(body, []), cell["id"], "exec"), names)
        if last:
            value = eval(compile(ast.Expression(last.value), cell["id"], "eval"), names)
            print(getattr(value, "text", value))
"""


def test_a_page_for_jupyter_runs_from_top_to_bottom_outside_of_marimo(site):
    for page, ran in zip(PAGES, run_each(JUPYTER, [[f"{site}/notebooks/{page}.ipynb"] for page in PAGES]), strict=True):
        assert "c128a-lead" in ran.text(), page
