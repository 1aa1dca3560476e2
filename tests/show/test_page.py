"""The address is the state of a page; what a user typed is shown as typed; a click arrives with the mark's columns."""

import html
import json
import re
import urllib.parse

import marimo as mo
import pandas as pd
import pytest

from c128a.case import PRESETS
from c128a.show import forms, page

FIELDS = page.shared_fields()
HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "[a](javascript:alert(1))",
    "$x$ and \\(y\\) and $$z$$",
    "**b** _i_ `c` ~~d~~ # h :smile: ::lucide:bot::",
    "https://example.com www.example.com a@b.c",
    "</div><script>alert(1)</script><marimo-table data-x='1'>",
    "a  b | c &lt; 1. d\\",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_what_a_user_typed_is_shown_as_typed(text):
    shown = [mo.md(f"Given: {page.user_text(text)}.").text, mo.Html(f"<p>Given: {page.user_text(text)}.</p>").text]
    shown.append(page.notes([f"Given: {text}."]).text)
    shown.append(page.table(pd.DataFrame({"a": [f"Given: {text}."]})).text)
    for found in shown:
        inner = re.sub(r"data-html='([^']*)'", lambda quoted: json.loads(html.unescape(quoted[1])), found)
        assert f"Given: {text}." in html.unescape(re.sub(r"<[^<>]*>", "", inner))
        assert not re.search(r"<(img|a|script|marimo-tex|marimo-table|strong|em|code|del|h\d|iconify-icon)\b", inner)


BOUNDS = {"seq": "0 to 1,048,576", "ratio": "4, 128", "policy": "fixed, pow2, aligned", "preset": "free, pr_test"}
WRONG = [("seq", text) for text in ("-1", "1048577", "1e5", "", "9" * 40)]


@pytest.mark.parametrize(("name", "text"), [*WRONG, ("ratio", "64"), ("policy", "<script>"), ("preset", "none")])
def test_a_value_out_of_bounds_opens_the_default_and_is_noted(name, text):
    values, notes = page.read({name: text, "file": "01_width.py"}, FIELDS)
    assert values == page.read({}, FIELDS)[0]
    assert len(notes) == 1 and notes[0].startswith(f"{name} is {text} ") and BOUNDS[name] in notes[0]


def test_a_link_read_back_is_the_state_it_carried(monkeypatch):
    values = {
        "seq": 524_416,
        "model_len": 983_040,
        "ratio": 4,
        "policy": "aligned",
        "layout": "pitched",
        "preset": "free",
        "own": "positions 255 | 511",
    }
    query = urllib.parse.parse_qs(page.link("02_layout", values).lstrip("?"))
    assert query.pop("file") == ["02_layout.py"]
    assert page.read(query, FIELDS) == (values, [])
    monkeypatch.setattr("sys.platform", "emscripten")
    assert page.link("02_layout", {"seq": 5}) == "02_layout.html?seq=5"


def test_a_preset_moves_the_defaults_and_the_last_value_beside_it_wins():
    values, notes = page.read({"preset": "len_33792", "seq": ["1", "5"]}, FIELDS)
    assert (values["model_len"], values["seq"], notes) == (33_792, 5, [])
    for name, preset in PRESETS.items():
        opened = {**page.read({}, FIELDS)[0], **preset.values, "preset": name}
        assert page.read({"preset": name}, FIELDS) == (opened, [])


def test_the_ladder_steps_over_every_point_where_the_width_doubles():
    ladder = page.token_ladder(1_048_576)
    assert {16_384, 16_512, 32_768, 32_896, 524_288, 524_416} <= set(ladder)
    assert ladder == sorted(set(ladder)) and (ladder[0], ladder[-1]) == (0, 1_048_576)
    assert page.token_ladder(100, 1000) == [0, 100]


def test_the_header_links_every_other_page_with_the_shared_state_only():
    text = page.header("01_width", "Width", "Lead.", {"seq": 32_896, "stride": 4096}).text
    for name in page.PAGES:
        assert (f"?file={name}.py&amp;seq=32896" in text) == (name != "01_width")
    assert "stride" not in text and text.count('aria-current="page"') == 1


def test_a_page_that_runs_as_a_program_prints_text_as_it_was_typed(monkeypatch, capsys):
    page.sentence(page.user_text("triton 3.6.0"))
    monkeypatch.setattr("sys.argv", ["notebooks/01_width.py"])
    page.sentence(f"**{page.user_text('<b> 9.5')}** | {page.user_text('a_b')}")
    assert capsys.readouterr().out == "<b> 9.5 | a_b\n\n"


def test_nothing_to_say_takes_no_place():
    assert page.stack(page.alarm(None), page.notes([])) is None
    assert 'role="alert"' in page.stack(page.alarm("**7,680** is too narrow"), None).text


def test_downloads_hold_the_frame_and_are_made_when_pressed(monkeypatch):
    page.downloads(lambda: pytest.fail("made too early"), "name", {})
    frame = pd.DataFrame({"width": [128, 8192], "policy": ["pow2", "fixed"]})
    made = {}
    monkeypatch.setattr(mo, "download", lambda make, name, **_: made.update({name: make()}))
    page.downloads(frame, "name", {"seq": 5})
    assert made["name.csv"] == b"width,policy\n128,pow2\n8192,fixed\n"
    assert json.loads(made["name.json"]) == {"settings": {"seq": 5}, "rows": frame.to_dict("records")}


def test_a_picture_takes_the_place_of_the_empty_chart_and_a_click_reports_its_mark():
    rows = pd.DataFrame({"row": [r"it's <5> & \"6\" \\1"], "column": ["a"], "kind": ["b"]})
    picture, picked = forms.matrix(rows, row="row", column="column", description="x", click=["row"]), []
    element = page.clickable(picked.append)
    _, _, rest = page.shown(element, picture).text.partition("data-spec='")
    assert json.loads(html.unescape(rest.partition("'")[0])) == picture.spec
    element._update({"pick": {"vlPoint": {"or": []}, "layout": ["packed"], "start": [128]}})
    element._update({})
    assert picked == [{"layout": "packed", "start": 128}]
    with pytest.raises(ValueError, match="0 places for a picture"):
        page.shown(mo.ui.slider(0, 1), picture)
