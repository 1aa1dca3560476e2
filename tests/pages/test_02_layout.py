"""Page 02: clicks, keys and the address choose a cell; rows a frozen reader gets wrong are counted (worked by hand)."""

import io
import json

import pandas as pd
import pytest

from tests.pages.conftest import notebook

PAGE = "02_layout"
INCIDENT_1 = {"seq": 300_000, "model_len": 1_048_576, "then": 1_048_576}
browser = pytest.mark.browser


def chart(sheet, number):
    """The line of memory, the rows, the close view: 0, 1, 2."""
    return sheet.page.locator("marimo-vega").nth(number)


@pytest.mark.parametrize("kind", ["decode", "prefill"])
@pytest.mark.parametrize("layout", ["fixed", "packed", "pitched"])
def test_the_kernel_leaves_in_the_buffer_what_the_page_draws(kind, layout):
    pytest.importorskip("c128a.metadata")
    page = notebook(PAGE)
    given = {"seq": 20_000, "then": 40_000, "rows": 3, "model_len": 45_000, "policy": "pow2", "requests": "others"}
    for own in ("", "positions 383 255 | 511; table 3 / 4; width 8; capacity 16"):
        setting, wrong = page["setting_of"](**given, kind=kind, reader="capture", own=own)
        scene = page["scene_of"](layout, setting)
        values = page["built"]("tiled", *scene.builds)[0][kind]
        assert values.ravel().tolist() == scene.cells["value"].tolist() and wrong == []


@browser
def test_the_page_opens_with_the_addresses_and_the_verdict(opened):
    # 128 entries: width 128, of 65,536 / 128 = 512 columns; 3 × 128 and 3 × 512.
    for part in ("128 of 512 columns", "starts at 384 when packed and at 1,536 when pitched", "3 of 4 packed rows"):
        assert part in opened.lead
    assert opened.says("row 1 × stride 512 + column 0 = 512 → byte 2,048")
    assert opened.says("1 mark = 16 columns") and opened.says("Every cell is as drawn above.")


@browser
def test_downloads_hold_the_marks(opened):
    table = pd.read_csv(io.BytesIO(opened.download("the marks CSV")))
    packed = table[table["layout"] == "packed"]
    assert packed["first"].iloc[0] == 0 and packed["last"].iloc[-1] == 2047
    first = packed[packed["first"] == 128].iloc[0]
    assert (first["kind"], first["row"], first["column"], first["first_byte"]) == ("id", 1, 0, 512)
    whole = json.loads(opened.download("the marks JSON"))
    assert whole["settings"]["rows"] == 4 and len(whole["rows"]) == len(table)


@browser
def test_a_click_on_a_mark_shows_its_first_cell_and_a_click_close_up_the_cell_itself(sheet):
    sheet.open(PAGE, at=0)
    mark = chart(sheet, 1).locator("[aria-label^='packed: id of this build · flat 128 ']").first
    mark.click(position={"x": 20, "y": 10})
    assert sheet.holds("at=128") and sheet.holds("layout=packed")
    assert sheet.says("row 1 × stride 128 + column 0 = 128 → byte 512")
    chart(sheet, 2).locator("g.mark-rect.role-mark path").nth(16 + 3).click()
    assert sheet.holds("at=131")
    assert sheet.says("row 1 × stride 128 + column 3 = 131 → byte 524")
    chart(sheet, 0).locator("[aria-label^='pitched: id of this build · flat 1,024 ']").first.click()
    assert sheet.holds("layout=pitched")
    assert sheet.says("row 2 × stride 512 + column 0 = 1,024 → byte 4,096")
    assert sheet.says("RowLayout(4, 128, 512).address(2, 0)")


@browser
def test_arrow_keys_walk_along_the_memory_and_an_old_cell_names_its_writer_and_its_reader(sheet):
    sheet.open(PAGE, at=131)
    sheet.focus("at flat index", role="textbox")
    sheet.press("ArrowUp")
    assert sheet.holds("at=132")
    sheet.press("ArrowDown", times=2)
    assert sheet.says("row 1 × stride 128 + column 2 = 130 → byte 520")
    assert "stale." not in sheet.text.split("flat index 130:")[1]
    sheet.enter("at flat index", 513)
    assert sheet.says("it is stale") and sheet.says("takes it for row 1, column 1 (1 × 512 + 1 = 513): wrong")


@browser
def test_labels_toggle_and_every_choice_changes_the_page_by_keyboard(sheet):
    sheet.open(PAGE, at=513, kind="prefill")
    for label, on_cell in [("flat index", "513"), ("(row, column)", "(1′, 1)"), ("byte", "2,052"), ("value", "1")]:
        sheet.choose(label)
        texts = chart(sheet, 2).locator("g.mark-text.role-mark text")
        assert sheet.soon(lambda texts=texts, on_cell=on_cell: on_cell in texts.all_text_contents()), label
    choices = [("decode", "kind=decode"), ("the same", "requests=same"), ("stride of this build", "reader=now")]
    choices += [("cache lines", "grid=cache+lines"), ("pitched", "layout=pitched"), ("fixed", "policy=fixed")]
    choices += [("multiple of 128", "policy=aligned"), ("where packed rows lie", "zoom=packed")]
    text = sheet.text
    for label, parameter in choices:
        assert sheet.choose(label).holds(parameter), label
        before, text = text, sheet.text
        assert text != before, label


@browser
def test_numbers_and_presets_are_reached_by_keyboard_and_change_the_page(sheet):
    sheet.open(PAGE)
    assert sheet.enter("Model length", 131_072).says("128 of 1,024 columns")
    assert sheet.enter("Longest sequence at capture", 20_000).says("A reader captured at 20,000 tokens")
    sheet.focus("Longest sequence now", role="slider")
    sheet.press("ArrowRight")
    assert sheet.says("At 16,512 tokens decode rows are 256 of 1,024 columns wide")  # 129 entries
    sheet.focus("Rows", role="combobox").select_option("2")
    assert sheet.says("row 1 starts at 256 when packed")
    sheet.focus("Preset", role="combobox").select_option("Model length 33,792")
    assert sheet.says("At 33,792 tokens decode rows are 384 of 384 columns wide")
    assert sheet.says("the three are the same")


def test_incident_1_and_the_rows_that_come_out_right_by_chance(ran):
    assert "3 of 4 packed rows wrong" in ran(PAGE, **INCIDENT_1)[0]
    text, _ = ran(PAGE, **INCIDENT_1, requests="same")
    assert "1 of 4 packed rows wrong, 2 right by chance" in text
    # Row 1 has 270,000 / 128 = 2,109 entries; at 1 × 8,192 lies row 2, with 195,000 / 128 = 1,523 of them.
    assert "✘ 1,523 ids of row 2, 586 pads" in text and "≈ 1,523 old ids of row 2" in text


@browser
def test_the_test_of_the_pull_request_and_a_typed_batch_are_drawn_cell_by_cell(sheet):
    sheet.open(PAGE, preset="pr_test")
    assert "At 512 tokens decode rows are 128 of 256 columns wide" in sheet.lead
    assert sheet.says("It holds 768: entry 0 of request 0, slot block_table[0, 0] × 256 + 0 = 3 × 256 + 0")
    box = sheet.focus("Your own batch", role="textbox")
    box.fill("positions 383 255; table 700 800 / 900; width 4; capacity 8; stride 6")
    sheet.press("Enter")
    assert sheet.holds("preset=free") and sheet.says("A reader with a stride of 6 gets 1 of 2 packed rows wrong")
    texts = chart(sheet, 1).locator("g.mark-text.role-mark text").all_text_contents()
    slots = ("1,400", "1,401", "1,600", "1,800", "1,801")  # in each of the three layouts
    assert [texts.count(slot) for slot in slots] == [3, 3, 3, 3, 3]
    box.fill("positions 383; capacity 8; stride 9")
    sheet.press("Enter")
    assert sheet.says("must have decode rows, and at most the capacity, 8, as stride")
    sheet.focus("Longest sequence now", role="slider")
    sheet.press("ArrowRight")  # which ends the typed batch
    assert sheet.soon(lambda: "own=" not in sheet.page.url) and sheet.says("of 256 columns wide")


def test_a_bad_address_is_noted_and_a_short_model_is_an_alarm(ran):
    text, _ = ran(PAGE, rows="99", at="-3", grid="squares", seq=1_048_576, model_len=33_792)
    assert all(note in text for note in ("rows is 99", "at is -3", "grid is squares"))
    assert "⚠ The capacity of 384 columns is too narrow for 1,048,576 tokens, which need 8,192" in text
