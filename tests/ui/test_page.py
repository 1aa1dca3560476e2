"""Header, notes and downloads of a page, outside of a browser."""

import io
import json

import pandas as pd
import pytest

from c128a.ui import page

FRAME = pd.DataFrame({"width": [128, 8192], "policy": ["pow2", "fixed"]})


def test_the_header_links_every_other_page_with_the_shared_state_only():
    html = page.header("01_width", "Width", "Lead.", {"seq": 32_896, "stride": 4096}).text
    for name in page.PAGES:
        assert (f"?file={name}.py&amp;seq=32896" in html) == (name != "01_width")
    assert "stride" not in html
    assert html.count('aria-current="page"') == 1


def test_no_notes_no_callout():
    assert page.notes([]) is None


def test_a_note_cannot_smuggle_markup_into_the_page():
    assert "<script>" not in page.notes(["seq is <script> in the address"]).text


def test_downloads_hold_the_frame():
    assert pd.read_csv(io.BytesIO(page.to_csv(FRAME))).equals(FRAME)
    held = json.loads(page.to_json(FRAME, {"seq": 5}))
    assert held == {
        "settings": {"seq": 5},
        "rows": [{"width": 128, "policy": "pow2"}, {"width": 8192, "policy": "fixed"}],
    }


@pytest.mark.parametrize("name", ["free", "pr_test", "one_long"])
def test_the_menu_opens_at_the_preset_of_the_address(name):
    assert page.preset_menu(name, lambda value: None).value == name


def test_data_may_be_made_only_when_the_button_is_pressed():
    page.downloads(lambda: pytest.fail("made too early"), "name")


def test_a_table_marks_one_row_and_escapes_its_cells():
    html = page.table(["a"], [["<b>"], ["2"]], marked=1, label="numbers").text
    assert html.count("aria-current=true") == 1 and html.index("aria-current=true") > html.index("&lt;b&gt;")
    assert "<b>" not in html


def test_an_alarm_without_a_message_is_nothing_and_nothing_stacks_to_nothing():
    assert page.stack(page.alarm(None), page.notes([])) is None
    assert 'role="alert"' in page.stack(page.alarm("**7,680** is too narrow"), None).text


def test_text_of_a_user_comes_out_of_markdown_as_it_was_typed():
    for typed in ("<img src=x onerror=alert(1)>", "[a](javascript:alert(1))", "$x$ **b** `c` https://example.com"):
        made = page.alarm(page.user_text(typed)).text
        assert not any(sign in made for sign in ("<img", "<a ", "<code", "<marimo-tex", "<strong")), typed
