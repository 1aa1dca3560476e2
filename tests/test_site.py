"""The workbook as files: complete, linked within itself, and computing without torch from what it carries along."""

import json
import re
import subprocess
import sys
import zipfile
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.support.site import LIVE, PAGES, PRESET, ROOT


class Addresses(HTMLParser):
    """What a file's tags point at, scripts and styles included."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.found += [given[name] for name in ("href", "src") if given.get(name)]
        self.links += [given["href"]] if tag == "a" and given.get("href") else []


def recorded(site: Path) -> list[Path]:
    return sorted(path for path in site.glob("0*.html"))


def test_the_index_links_every_page_in_every_form(site):
    links = Addresses((site / "index.html").read_text()).links
    for page in PAGES:
        assert f"{page}.html" in links
        assert f"{page}-{PRESET}.html" in links
        assert f"notebooks/{page}.ipynb" in links
    assert [page for page in PAGES if f"live/{page}.html" in links] == LIVE


def test_every_address_is_relative_and_leads_to_a_file(site):
    for path in [site / "index.html", *recorded(site), *(site / "live").glob("*.html")]:
        for address in Addresses(path.read_text()).found:
            assert not re.match(r"[a-z]+:|/", address), f"{path.name} points at {address}"
            assert (path.parent / address).is_file(), f"{path.name} points at {address}"


def test_a_folder_that_is_no_site_is_left_alone(tmp_path):
    pytest.importorskip("marimo", reason="marimo is not installed")
    kept = tmp_path / "kept.txt"
    kept.write_text("mine")
    done = subprocess.run(
        [sys.executable, "scripts/build_site.py", str(tmp_path)], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode != 0 and "it is left alone" in done.stderr
    assert kept.read_text() == "mine"


def test_a_page_links_to_the_same_case_of_the_next_page(site):
    assert f"02_layout-{PRESET}.html" in (site / f"01_width-{PRESET}.html").read_text()
    assert f"02_layout-{PRESET}.html" not in (site / "03_kernel.html").read_text()


@pytest.mark.parametrize("page", PAGES)
def test_a_case_is_recorded_with_its_settings(site, page):
    default, case = (site / f"{page}.html").read_text(), (site / f"{page}-{PRESET}.html").read_text()
    assert "c128a-lead" in case
    assert len(re.findall("70,?000", case)) > len(re.findall("70,?000", default))


def test_no_file_names_a_place_on_this_machine(site):
    for path in [*site.glob("*.html"), *site.glob("live/*"), *site.glob("notebooks/*")]:
        assert str(ROOT) not in path.read_text(), path.name


def test_the_records_lie_where_a_browser_looks_for_them(site):
    for path in (ROOT / "data").glob("*.json"):
        assert json.loads((site / "public" / "data" / path.name).read_text()) == json.loads(path.read_text())


def test_the_wheel_holds_the_package_and_asks_for_no_torch(site):
    (wheel,) = (site / "public" / "wheels").glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
        metadata = next(packed.read(name).decode() for name in names if name.endswith("METADATA"))
    assert {f"c128a/{path.name}" for path in (ROOT / "c128a").glob("*.py")} <= set(names)
    assert "Requires-Dist" not in metadata
    for page in LIVE:
        code = json.loads(re.search(r'notebookCode: (".*")', (site / "live" / f"{page}.html").read_text()).group(1))
        assert f"c128a @ ../public/wheels/{wheel.name.replace('+', '%2B')}" in code
        assert "torch" not in code.split("# ///")[1]


# A process like the browser's: its package is the wheel, its records come through pyodide's open_url, and there is
# neither torch nor triton nor filelock. sys.platform tells the package where it is, once marimo has been imported.
IN_BROWSER = """
import io, runpy, sys, types
import marimo, altair, pandas
site, page, wheel = sys.argv[1:]
for missing in ("torch", "triton", "filelock"):
    sys.modules[missing] = None
asked = []
def open_url(address):
    assert address.startswith("https://host/a/path/public/"), address
    asked.append(address.removeprefix("https://host/a/path/public/"))
    try:
        return io.StringIO(open(f"{site}/public/{asked[-1]}").read())
    except FileNotFoundError:
        return io.StringIO("<!doctype html><h1>404</h1>")
sys.modules["pyodide.http"] = types.SimpleNamespace(open_url=open_url)
sys.modules["js"] = types.SimpleNamespace(location="https://host/a/path/assets/worker-1.js")
sys.path.insert(0, wheel)
sys.platform = "emscripten"
app = runpy.run_path(page)["app"]
import c128a
assert c128a.__file__.startswith(wheel), c128a.__file__
outputs, _ = app.run()
print("\\n".join(str(output.text if hasattr(output, "text") else output) for output in outputs))
print("asked", sorted(asked))
"""


@pytest.mark.parametrize("page", LIVE)
def test_a_page_computes_from_the_wheel_without_torch(site, page):
    (wheel,) = (site / "public" / "wheels").glob("*.whl")
    source = site.parent / f"{page}.py"
    source.write_text((ROOT / "notebooks" / f"{page}.py").read_text())
    (site.parent / "head.html").write_text("")
    done = subprocess.run(
        [sys.executable, "-c", IN_BROWSER, str(site), str(source), str(wheel)],
        cwd=site.parent,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "c128a-lead" in done.stdout
    assert 'href="04_timing.html?' in done.stdout  # links lead to files, not to the gallery
    if page == "06_deployment":
        assert all(f"data/{path.name}" in done.stdout for path in (ROOT / "data").glob("h200-*.json"))
