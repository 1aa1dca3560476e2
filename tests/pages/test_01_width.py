"""Page 01: every control moves it, the address is its state, and its downloads hold what it draws."""

import io
import json

import pandas as pd
import pytest

pytestmark = pytest.mark.browser

PAGE = "01_width"


def test_the_page_opens_with_the_widths_of_the_pull_request_and_names_where_nothing_is_gained(opened):
    assert opened.says("At 32,768 tokens a row needs 256 of 8,192 columns: 32 × fewer to write, and 8 trips become 1.")
    assert opened.says("from 524,416 tokens: full width, nothing saved")
    assert opened.says("50% of all lengths up to 1,048,576 gain nothing")
    block = opened.page.locator(".c128a-command pre")  # a long command wraps
    assert block.evaluate("element => element.scrollWidth <= element.clientWidth")


def test_slider_and_exact_number_move_the_page_and_each_other_and_a_preset_sets_every_control(sheet):
    sheet.open(PAGE)
    # An arrow key goes one block further and doubles the width.
    sheet.focus("Longest sequence", role="slider")
    sheet.press("ArrowRight")
    assert sheet.says("At 32,896 tokens a row needs 257 of 8,192 columns and 512 are built")
    assert sheet.holds("seq=32896")
    # The slider keeps the focus, so that the next key moves it on; the number beside it follows.
    sheet.press("ArrowLeft")
    assert sheet.says("At 32,768 tokens")
    assert sheet.soon(lambda: sheet.page.get_by_role("textbox", name="exactly").input_value() == "32,768")
    sheet.focus("exactly", role="textbox").fill("524415")
    sheet.press("Enter")
    assert sheet.says("needs 4,096 of 8,192 columns: 2 × fewer")
    sheet.focus("Longest sequence", role="slider")
    sheet.press("ArrowRight")  # one block past the power of two is the slider's next step
    assert sheet.says("At 524,416 tokens")
    sheet.page.get_by_label("Preset").select_option(label="Model length 33,792")
    sheet.settle()
    assert sheet.says("At 33,792 tokens a row needs 264 of 384 columns")
    assert sheet.holds("preset=len_33792") and sheet.holds("model_len=33792")
    assert sheet.soon(lambda: sheet.page.get_by_role("textbox", name="exactly").input_value() == "33,792")


def test_back_opens_what_was_shown_before_and_opening_a_page_makes_no_entry(new_sheet):
    sheet = new_sheet().open(PAGE)  # a tab holds at most 50 entries, and the shared one may be full
    opened = sheet.page.evaluate("history.length")
    sheet.focus("Longest sequence", role="slider")
    for tokens in (32_896, 40_960):
        sheet.press("ArrowRight")
        assert sheet.holds(f"seq={tokens}")
    assert sheet.page.evaluate("history.length") == opened + 2
    with sheet.page.expect_event("domcontentloaded"):
        sheet.page.go_back()
    sheet.page.wait_for_selector(".c128a-lead")
    assert sheet.holds("seq=32896") and sheet.says("At 32,896 tokens")
    assert sheet.page.get_by_role("textbox", name="exactly").input_value() == "32,896"


def test_a_preset_moves_what_it_names_and_ends_where_a_control_is_moved(sheet):
    sheet.open(PAGE, policy="aligned", rows=32)
    sheet.page.get_by_label("Preset").select_option(label="Model length 33,792")
    assert sheet.holds("preset=len_33792") and sheet.holds("policy=pow2") and sheet.holds("rows=32")
    number = sheet.focus("exactly", role="textbox")
    for typed, named in (("-5", "-5"), ("9999999", "9999999"), ("", "empty")):
        number.fill(typed)
        sheet.press("Enter")
        assert sheet.says(f"Longest sequence is {named}; it must be a whole number from 0 to 1,048,576. Shown: 33,792")
    assert sheet.holds("preset=len_33792")
    number.fill("500")
    sheet.press("Enter")
    assert sheet.holds("preset=free") and sheet.says("At 500 tokens") and "it must be" not in sheet.text


def test_every_control_is_reached_and_moved_by_keyboard_and_changes_the_page(sheet):
    sheet.open(PAGE, seq=100_000, model_len=1_000_000)
    for label, role, key, parameter in [
        ("multiple of 128", "radio", "Space", "policy=aligned"),
        ("Model length", "textbox", "ArrowUp", "model_len=1000001"),
        ("Rows a step", "combobox", "ArrowUp", "rows=2048"),
        ("4 (C4A)", "radio", "Space", "ratio=4"),
    ]:
        before = sheet.text
        sheet.focus(label, role=role)
        sheet.press(key)
        assert sheet.holds(parameter), label
        assert sheet.text != before, label
    sheet.focus("Preset", role="combobox")
    sheet.press("Tab")  # to the policy that is chosen, neither the first nor the last one's place
    assert sheet.press("ArrowLeft").holds("policy=pow2")


def test_an_address_opens_its_state_and_a_link_carries_it_to_the_next_page(sheet):
    sheet.open(PAGE, seq=100_000, policy="aligned", rows=32)
    assert sheet.says("At 100,000 tokens a row needs 781 of 8,192 columns and 896 are built")
    assert sheet.says("32 rows of 896 int32 columns are 112 KiB a step")
    link = sheet.page.get_by_role("link", name="Layout").first.get_attribute("href")
    assert link.startswith("?file=02_layout.py") and "seq=100000" in link and "policy=aligned" in link


def test_nonsense_in_the_address_is_noted_and_a_capacity_too_narrow_is_an_alarm_with_both_numbers(sheet):
    sheet.open(PAGE, seq=1_048_576, model_len=980_224, policy="wide")
    assert sheet.says("policy is wide in the address; it must be one of fixed, pow2, aligned")
    alarm = sheet.page.get_by_role("alert").first
    assert "capacity of 7,680 columns is too narrow for 1,048,576 tokens, which need 8,192" in alarm.inner_text()
    colour = "element => getComputedStyle(element).color"
    assert alarm.locator("strong").first.evaluate(colour) == "rgb(255, 255, 255)"


def test_downloads_hold_the_table_that_is_shown(sheet):
    sheet.open(PAGE, seq=100, model_len=33_792)
    table = pd.read_csv(io.BytesIO(sheet.download("reachable widths CSV")))
    assert table["width"].tolist() == [128, 256, 384]  # 33,792 tokens are 264 entries
    assert table["last"].tolist() == [16_511, 32_895, 33_792]
    held = json.loads(sheet.download("reachable widths JSON"))
    assert held["settings"]["seq"] == 100 and [row["width"] for row in held["rows"]] == [128, 256, 384]
