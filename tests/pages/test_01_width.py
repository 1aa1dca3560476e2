"""Page 01: every control moves it, the address is its state, and its downloads hold what it draws."""

import pytest

PAGE = "01_width"


@pytest.mark.browser
def test_the_page_opens_with_the_widths_of_the_pull_request_and_names_where_nothing_is_gained(opened):
    assert opened.says("At 32,768 tokens a row needs 256 of 8,192 columns: 32 × fewer to write, and 8 trips become 1.")
    assert opened.says("from 524,416 tokens: full width, nothing saved")
    assert opened.says("50% of all lengths up to 1,048,576 gain nothing")
    block = opened.page.locator(".c128a-command pre")  # a long command wraps
    assert block.evaluate("element => element.scrollWidth <= element.clientWidth")


@pytest.mark.browser
def test_slider_number_and_preset_move_the_page_and_each_other_and_a_preset_ends_where_a_control_is_moved(sheet):
    sheet.open(PAGE, policy="aligned", rows=32)

    def exactly(shown):
        return sheet.soon(lambda: sheet.page.get_by_role("textbox", name="exactly").input_value() == shown)

    # An arrow key goes one block further, where the width grows; the slider keeps the focus, so the next key goes on.
    sheet.focus("Longest sequence", role="slider")
    assert sheet.press("ArrowRight").says("At 32,896 tokens a row needs 257 of 8,192 columns and 384 are built")
    assert sheet.holds("seq=32896") and exactly("32,896")
    assert sheet.press("ArrowLeft").says("At 32,768 tokens") and exactly("32,768")
    assert sheet.enter("exactly", 524_415).says("needs 4,096 of 8,192 columns: 2 × fewer")
    sheet.focus("Longest sequence", role="slider")  # whose next step is one block past the power of two
    assert sheet.press("ArrowRight").says("At 524,416 tokens")
    sheet.page.get_by_label("Preset").select_option(label="Model length 33,792")
    assert sheet.says("At 33,792 tokens a row needs 264 of 384 columns") and exactly("33,792")
    for moved in ("preset=len_33792", "model_len=33792", "policy=pow2", "rows=32"):
        assert sheet.holds(moved)
    for typed, named in (("-5", "-5"), ("9999999", "9999999"), ("", "empty")):
        note = f"Longest sequence is {named}; it must be a whole number from 0 to 1,048,576. Shown: 33,792"
        assert sheet.enter("exactly", typed).says(note)
    assert sheet.holds("preset=len_33792")
    sheet.enter("exactly", 500)
    assert sheet.holds("preset=free") and sheet.says("At 500 tokens") and "it must be" not in sheet.text


@pytest.mark.browser
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


@pytest.mark.browser
def test_a_kept_setting_stays_beside_the_one_of_now_and_in_the_address(sheet):
    sheet.open(PAGE, seq=131_072)  # 131,072 / 128 = 1,024 columns
    sheet.focus("Keep this setting", role="button")
    assert sheet.press("Enter").says("Rows of this setting have 1,024 columns, 1 × those of the kept one.")
    assert sheet.enter("exactly", 32_768).says("Rows of this setting have 256 columns, 0.25 × those of the kept one.")
    assert sheet.holds("kept=131072%2C1048576%2C128%2Cpow2") and sheet.holds("seq=32768")
    sheet.open(PAGE, seq=131_200, kept="32768,1048576,128,aligned")  # one entry more: 2,048 columns
    assert sheet.says("Rows of this setting have 2,048 columns, 8 × those of the kept one.")
    assert sheet.open(PAGE, kept="5,x,128,pow2").says("kept is 5,x,128,pow2 in the address; it must be a whole number")


@pytest.mark.browser
def test_every_control_is_reached_and_moved_by_keyboard_and_changes_the_page(sheet):
    text = sheet.open(PAGE, seq=100_000, model_len=1_000_000).text
    for label, role, key, parameter in [
        ("multiple of 128", "radio", "Space", "policy=aligned"),
        ("Model length", "textbox", "ArrowUp", "model_len=1000001"),
        ("Rows a step", "combobox", "ArrowUp", "rows=2048"),
        ("4 (C4A)", "radio", "Space", "ratio=4"),
    ]:
        sheet.focus(label, role=role)
        assert sheet.press(key).holds(parameter), label
        before, text = text, sheet.text
        assert text != before, label
    sheet.focus("Preset", role="combobox")
    sheet.press("Tab")  # to the policy that is chosen, neither the first nor the last one's place
    assert sheet.press("ArrowLeft").holds("policy=pow2")
    assert sheet.enter("Model length", 33_792).says("capacity of 8,448 columns is too narrow for 100,000 tokens")
    colour = "element => getComputedStyle(element).color"
    assert sheet.page.get_by_role("alert").first.locator("strong").first.evaluate(colour) == "rgb(255, 255, 255)"


def test_an_address_opens_its_state_and_a_link_carries_it_on_and_the_table_has_every_width(ran):
    text, names = ran(PAGE, seq=100_000, policy="aligned", rows=32)
    assert "At 100,000 tokens a row needs 781 of 8,192 columns and 896 are built" in text
    assert "32 rows of 896 int32 columns are 112 KiB a step" in text
    assert {"seq": 100_000, "policy": "aligned", "rows": 32}.items() <= names["values"].items()
    _, names = ran(PAGE, seq=100, model_len=33_792)
    assert names["reach"]["width"].tolist() == [128, 256, 384]  # 33,792 tokens are 264 entries
    assert names["reach"]["last"].tolist() == [16_511, 32_895, 33_792]


def test_nonsense_in_the_address_is_noted_and_a_capacity_too_narrow_is_an_alarm_with_both_numbers(ran):
    text, _ = ran(PAGE, seq=1_048_576, model_len=980_224, policy="wide")
    assert "policy is wide in the address; it must be one of fixed, pow2, aligned" in text
    assert "⚠ The capacity of 7,680 columns is too narrow for 1,048,576 tokens, which need 8,192" in text
