"""Page 02: clicks, keys and the address choose a cell; the sentences count the rows a frozen reader gets wrong."""

import io
import json

import pandas as pd
import pytest

pytestmark = pytest.mark.browser

PAGE = "02_layout"
INCIDENT_1 = {"seq": 300_000, "model_len": 1_048_576, "then": 1_048_576}
KERNEL = "The values are the kernel's own output"


def rows_chart(sheet):
    return sheet.page.locator("marimo-vega").first


def close_chart(sheet):
    return sheet.page.locator("marimo-vega").nth(1)


def wait_for_the_kernel(sheet):
    """Wait for the last part of the page, the kernel's output."""
    sheet.page.get_by_text(KERNEL).wait_for()
    sheet.settle()


def open_whole(sheet, **params):
    sheet.open(PAGE, **params)
    wait_for_the_kernel(sheet)


def test_the_page_opens_with_the_addresses_and_the_verdict(opened):
    assert opened.says("row 3 starts at 384 when packed and at 1,536 when pitched")
    assert opened.says("gets 3 of 4 packed rows wrong, and no pitched one")


def test_the_kernel_ran_and_agrees_with_the_picture_which_says_that_it_gathers_cells(opened):
    wait_for_the_kernel(opened)
    assert opened.says("Every cell is as drawn above.")
    assert opened.says("1 mark = 16 columns")


def test_downloads_hold_the_marks(opened):
    wait_for_the_kernel(opened)
    table = pd.read_csv(io.BytesIO(opened.download("the marks CSV")))
    packed = table[table["layout"] == "packed"]
    assert packed["first"].iloc[0] == 0 and packed["last"].iloc[-1] == 2047
    first = packed[packed["first"] == 128].iloc[0]
    assert (first["kind"], first["row"], first["column"], first["first_byte"]) == ("id", 1, 0, 512)
    held = json.loads(opened.download("the marks JSON"))
    assert held["settings"]["rows"] == 4 and len(held["rows"]) == len(table)


def test_a_click_on_a_mark_shows_its_first_cell_and_a_click_close_up_the_cell_itself(sheet):
    open_whole(sheet)
    # The 9th mark of the packed buffer's first row starts at flat 128: row 1, column 0.
    marks = rows_chart(sheet).get_by_label("layout: packed").all()
    target = next(mark for mark in marks if "cells: flat 128 " in mark.get_attribute("aria-label"))
    target.click(position={"x": 20, "y": 10})
    sheet.settle()
    assert sheet.holds("layout=packed") and sheet.holds("at=128")
    assert sheet.says("row 1 × stride 128 + column 0 = 128 → byte 512")
    close_chart(sheet).locator("g.mark-rect.role-mark path").nth(16 + 3).click()
    sheet.settle()
    assert sheet.holds("at=131")
    assert sheet.says("row 1 × stride 128 + column 3 = 131 → byte 524")


def test_arrow_keys_walk_along_the_memory_and_an_old_cell_names_who_wrote_it_and_who_takes_it(sheet):
    open_whole(sheet, at=131)
    sheet.focus("at flat index", role="textbox")
    sheet.press("ArrowUp")
    assert sheet.holds("at=132")
    sheet.press("ArrowDown", times=2)
    assert sheet.says("row 1 × stride 128 + column 2 = 130")
    assert "The earlier build wrote it" not in sheet.text
    sheet.focus("at flat index", role="textbox").fill("513")
    sheet.press("Enter")
    assert sheet.says("The earlier build wrote it")
    assert sheet.says("The reader takes it for row 1, column 1")


def test_the_labels_of_the_close_up_toggle_and_every_choice_changes_the_page_by_keyboard(sheet):
    open_whole(sheet, at=513)
    # Request 1 of the earlier batch has block 1: slots 2 and 3.
    for label, on_cell in [("flat index", "513"), ("(row, column)", "(1′, 1)"), ("byte", "2,052"), ("value", "3")]:
        sheet.focus(label, role="radio")
        sheet.press("Space")
        cells = close_chart(sheet).locator("g.mark-text.role-mark text").all_text_contents()
        assert cells[16 + 1] == on_cell, label
    for label, parameter in [
        ("the same", "requests=same"),
        ("stride of this build", "reader=now"),
        ("cache lines", "grid=cache+lines"),
        ("pitched", "layout=pitched"),
        ("prefill", "kind=prefill"),
        ("fixed", "policy=fixed"),
    ]:
        before = sheet.text
        sheet.focus(label, role="radio")
        sheet.press("Space")
        assert sheet.holds(parameter), label
        assert sheet.text != before, label


def test_numbers_are_reached_by_keyboard_and_change_the_page(sheet):
    sheet.open(PAGE)
    sheet.focus("Model length", role="textbox").fill("131072")
    sheet.press("Enter")
    assert sheet.says("128 of 1,024 columns")
    sheet.focus("Longest sequence at capture", role="textbox").fill("20000")
    sheet.press("Enter")
    assert sheet.says("A reader captured at 20,000 tokens")
    sheet.focus("Longest sequence now", role="slider")
    sheet.press("ArrowRight")
    assert sheet.says("At 16,512 tokens rows are 256 of 1,024 columns wide")
    sheet.focus("Rows", role="combobox").select_option("2")
    sheet.settle()
    assert sheet.says("row 1 starts at 256 when packed")


def test_incident_1_and_the_rows_that_came_out_right_by_chance(sheet):
    sheet.open(PAGE, **INCIDENT_1)
    assert sheet.says("gets 3 of 4 packed rows wrong")
    assert sheet.says("fixed (stride 8,192): 4 of 4 rows right")
    sheet.focus("the same", role="radio")
    sheet.press("Space")
    assert sheet.says("packed (stride 8,192): 1 of 4 rows right, 2 right by chance (rows 2, 3), 1 wrong (row 1)")
    assert sheet.says("✗ 1,523 ids of row 2, 586 pads")


def test_nonsense_in_the_address_opens_the_default_with_a_note(sheet):
    sheet.open(PAGE, rows="99", at="-3", grid="squares")
    assert sheet.says("At 16,384 tokens")
    for note in ("rows is 99 in the address", "at is -3 in the address", "grid is squares in the address"):
        assert sheet.says(note)


def test_a_capacity_too_narrow_for_the_sequence_is_an_alarm_with_both_numbers(sheet):
    sheet.open(PAGE, seq=1_048_576, model_len=33_792)
    alarm = sheet.page.get_by_role("alert").first.inner_text()
    assert "The capacity of 384 columns is too narrow for 1,048,576 tokens, which need 8,192" in alarm


def test_the_browser_keeps_no_old_drawing(sheet):
    open_whole(sheet)
    memory = sheet.page.context.new_cdp_session(sheet.page)
    sheet.focus("Longest sequence now", role="slider")

    def nodes_after(changes: int) -> int:
        sheet.press("ArrowRight", times=changes)
        memory.send("HeapProfiler.collectGarbage")
        return memory.send("Memory.getDOMCounters")["nodes"]

    before = nodes_after(2)
    # One drawing of the rows is some 700 nodes; eight of them kept would be thousands.
    assert nodes_after(8) - before < 1_000


def test_no_chart_is_cut_off_when_opened_dark_and_then_in_any_look(sheet):
    for look in sheet.every_look(PAGE, first_dark=True):
        assert sheet.cut_off() == [], look
