"""The pages as Jupyter notebooks: their cells run from top to bottom outside of marimo, and show pictures and text."""

import json
from functools import cache

import pytest

from tests.support.pages import ROOT, run_each

pytest.importorskip("marimo", reason="marimo is not installed")

PAGES = sorted(path.stem for path in (ROOT / "notebooks").glob("*.py"))

# Runs each code cell as Jupyter does: the last expression is shown, as a bundle of MIME types or as HTML.
JUPYTER = """
import ast, json, sys
sys.path.insert(0, "scripts")
from sitebuild import jupyter
shown = []
def display(value):
    if value is None:
        return
    if hasattr(value, "shown"):
        return [display(part) for part in value.shown()]
    bundle = getattr(value, "_repr_mimebundle_", dict)()
    shown.append(bundle if bundle else getattr(value, "_repr_html_", lambda: repr(value))())
names = {"__name__": "__main__"}
for cell in json.loads(jupyter.page(sys.argv[1]))["cells"]:
    if cell["cell_type"] != "code":
        continue
    text = "".join(cell["source"]).replace("jupyter.begin({})", f"jupyter.begin({sys.argv[2]})")
    body = ast.parse(text).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), cell["id"], "exec"), names)
    if last:
        display(eval(compile(ast.Expression(last.value), cell["id"], "eval"), names))
print(json.dumps(shown))
"""
VEGA = "application/vnd.vegalite.v6+json"


SETTINGS = '{"seq": 100_000, "policy": "fan"}'


@cache
def ran():
    cases = [*((page, "{}") for page in PAGES), ("01_width", SETTINGS)]
    return dict(zip(cases, run_each(JUPYTER, cases), strict=True))


def shown(page: str, settings: str = "{}") -> list:
    return json.loads(ran()[page, settings].text().splitlines()[-1])


@pytest.mark.parametrize("page", PAGES)
def test_a_page_runs_outside_of_marimo_and_shows_its_sentence_and_its_pictures(page):
    outputs = shown(page)
    text = "".join(part for part in outputs if isinstance(part, str))
    assert "c128a-lead" in text
    assert "<marimo-" not in text
    assert any(VEGA in part for part in outputs if isinstance(part, dict)) or "<svg" in text


def test_settings_stand_in_for_the_address():
    text = "".join(part for part in shown("01_width", SETTINGS) if isinstance(part, str))
    assert "At <strong>100,000 tokens</strong> a row needs 781 of 8,192 columns" in text
    assert "policy is fan in the address; it must be one of fixed, pow2, aligned" in text
