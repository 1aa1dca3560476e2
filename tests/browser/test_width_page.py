"""Page 01: every control moves it, the address is its state, and its downloads hold what it draws."""

import io
import json

import pandas as pd
import pytest

pytestmark = pytest.mark.browser

PAGE = "01_width"


def test_the_lead_states_the_widths_of_the_pull_request(sheet):
    sheet.open(PAGE)
    assert "At 32,768 tokens a row needs 256 of 8,192 columns: 32 × fewer to write, and 8 trips become 1." in sheet.lead


def test_an_arrow_key_on_the_slider_goes_one_block_further_and_doubles_the_width(sheet):
    sheet.focus("Longest sequence", role="slider")
    sheet.press("ArrowRight")
    assert "At 32,896 tokens a row needs 257 of 8,192 columns and 512 are built" in sheet.lead
    assert "seq=32896" in sheet.page.url
    # The slider keeps the focus, so that the next key moves it on; the number beside it follows.
    sheet.press("ArrowLeft")
    assert "At 32,768 tokens" in sheet.lead
    assert sheet.page.get_by_role("textbox", name="exactly").input_value() == "32,768"


def test_an_exact_number_moves_the_slider_too(sheet):
    sheet.focus("exactly").fill("524415")
    sheet.press("Enter")
    assert "needs 4,096 of 8,192 columns: 2 × fewer" in sheet.lead
    sheet.focus("Longest sequence", role="slider")
    sheet.press("ArrowRight")  # the next step of the slider is the power of two, still within the width
    assert "At 524,416 tokens" in sheet.lead or "At 524,288 tokens" in sheet.lead


def test_the_region_that_gains_nothing_is_named(sheet):
    assert "from 524,416 tokens: full width, nothing saved" in sheet.text
    assert "50% of all lengths up to 1,048,576 gain nothing" in sheet.text
    assert "8,192 columns: nothing saved" in sheet.text


@pytest.mark.parametrize(
    ("label", "keys", "parameter"),
    [
        ("aligned", ["Space"], "policy=aligned"),
        ("4 (C4A)", ["Space"], "ratio=4"),
        ("Model length", ["ArrowUp"], "model_len="),
        ("Rows a step", ["ArrowUp"], "rows=2048"),
    ],
)
def test_a_control_is_reached_and_moved_by_keyboard_and_changes_the_page(sheet, label, keys, parameter):
    sheet.open(PAGE, seq=100_000, model_len=1_000_000)
    before = sheet.text
    sheet.focus(label)
    for key in keys:
        sheet.press(key)
    assert parameter in sheet.page.url
    assert sheet.text != before


def test_a_preset_sets_every_control(sheet):
    sheet.open(PAGE, seq=5)
    sheet.page.get_by_label("Preset").select_option(label="Model length 33,792")
    sheet.settle()
    assert "At 33,792 tokens a row needs 264 of 384 columns" in sheet.lead
    assert "preset=len_33792" in sheet.page.url and "model_len=33792" in sheet.page.url
    assert sheet.page.get_by_role("textbox", name="exactly").input_value() == "33,792"


def test_an_address_opens_its_state(sheet):
    sheet.open(PAGE, seq=100_000, policy="aligned", rows=32)
    assert "At 100,000 tokens a row needs 781 of 8,192 columns and 896 are built" in sheet.lead
    assert "32 rows of 896 int32 columns are 112 KiB a step" in sheet.text


def test_nonsense_in_the_address_opens_the_default_with_a_note(sheet):
    sheet.open(PAGE, seq="many", policy="wide")
    assert "At 32,768 tokens" in sheet.lead
    assert "seq is many in the address; it must be a whole number from 0 to 1,048,576" in sheet.text
    assert "policy is wide in the address; it must be one of fixed, pow2, aligned" in sheet.text


def test_a_capacity_too_narrow_for_the_sequence_is_an_alarm_with_both_numbers(sheet):
    sheet.open(PAGE, seq=1_048_576, model_len=980_224)
    alarm = sheet.page.get_by_role("alert").first.inner_text()
    assert "The capacity of 7,680 columns is too narrow for 1,048,576 tokens, which need 8,192" in alarm


def test_downloads_hold_the_table_that_is_shown(sheet):
    sheet.open(PAGE, seq=100, model_len=33_792)
    table = pd.read_csv(io.BytesIO(sheet.download("reachable widths CSV")))
    assert table["width"].tolist() == [128, 256, 384]  # facts.md, incident 15
    assert table["last"].tolist() == [16_511, 32_895, 33_792]
    held = json.loads(sheet.download("reachable widths JSON"))
    assert held["settings"]["seq"] == 100 and [row["width"] for row in held["rows"]] == [128, 256, 384]


def test_a_link_carries_the_state_to_the_next_page(sheet):
    sheet.open(PAGE, seq=100_000, policy="aligned")
    link = sheet.page.get_by_role("link", name="Layout").get_attribute("href")
    assert link.startswith("?file=02_layout.py") and "seq=100000" in link and "policy=aligned" in link
