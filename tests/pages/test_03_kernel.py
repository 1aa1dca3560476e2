"""Page 03: each control moves by key and click, the address is its state, its numbers can be worked out by hand."""

import io
import json
import re
import shlex

import pandas as pd
import pytest

from c128a import backend

PAGE = "03_kernel"
browser = pytest.mark.browser

# The default batch: n = 256, 170, 85 for the decode rows, 191, 192, 192 for the prefill rows, all 256 columns wide.
FIRST = "1,024 lanes write columns 0 to 255 of decode row 1: 170 ids, 86 pads, 768 lanes idle"
TILE = "512 lanes write columns 0 to 255 of decode row 2: 85 ids, 171 pads, 256 lanes idle"


@browser
def test_the_page_opens_with_what_one_program_does_and_its_true_output(opened):
    assert opened.soon(lambda: FIRST in opened.lead)
    assert opened.says("All 1,539 cells equal the reference")  # 6 × 256 and 3 lens
    assert opened.says("(21,844 + 1) // 128 = 170") and opened.says("row 1 × stride 256 + column 5 = 261")
    assert opened.says("6 programs of 1 trip") and opened.says("4 programs of 2 × 256 cells")


@browser
def test_downloads_and_the_command_hold_the_lanes_on_view(opened):
    frame = pd.read_csv(io.BytesIO(opened.download("this trip CSV")))
    states = frame[frame["kind"] == "decode"]["state"]
    assert states.value_counts().to_dict() == {"masked": 768, "live": 170, "pad": 86}
    assert frame[frame["kind"] == "lens"]["value"].tolist() == [170]
    held = json.loads(opened.download("all programs JSON"))
    assert held["settings"]["program"] == 1
    assert [row["kernel"] for row in held["rows"]].count("row_loop") == 6


@pytest.mark.parametrize("fault", ["none", "hole", "short"])
def test_the_command_prints_the_lanes_on_view(ran, capsys, fault):
    text, _ = ran(PAGE, lane=2, fault=fault)
    capsys.readouterr()
    exec(shlex.split(text.split("in a shell:")[1])[2], {})
    printed = capsys.readouterr().out
    third = printed.splitlines()[3]  # after the head: lane 2
    assert ("no block" in third) == (fault == "hole")
    assert printed.count("table too short") == (170 - 32 * 2 if fault == "short" else 0)  # 32 of 128 blocks are left
    assert len(printed.splitlines()) == 1 + 1024 + 1  # a head, the lanes, the lens


def moves(sheet, label, role, key, parameter, said):
    """A key on a control changes the address and the page, which then says something that it did not say before."""
    assert said not in sheet.text, f"{label}: said before"
    sheet.focus(label, role=role)
    assert sheet.press(key).holds(parameter) and sheet.says(said), label


@browser
def test_every_slider_is_moved_by_an_arrow_key(sheet):
    sheet.open(PAGE, seq=150_000)
    for label, key, parameter, said in [
        ("Statement", "ArrowLeft", "statement=slot", "▸ slot ids"),
        ("Lane, 0 to 1,023", "ArrowRight", "lane=6", "trip 0 × 1,024 + 6 = 6"),
        ("Program, 0 to 5", "ArrowRight", "program=2", "of decode row 2"),
        ("Trip, 0 to 1", "ArrowRight", "trip=1", "columns 1,024 to 2,047"),
        ("Decode rows", "ArrowRight", "decode=4", "decode 3"),
        ("Prefill rows", "ArrowLeft", "prefill=2", "24 programs of 2 × 256 cells"),  # 3 pairs of rows × 2,048 columns
        ("Longest sequence", "ArrowLeft", "seq=131200", "131,200 tokens"),
    ]:
        moves(sheet, label, "slider", key, parameter, said)


@browser
def test_every_choice_is_reached_by_keyboard_and_changes_the_page(sheet):
    sheet.open(PAGE)
    sheet.focus("two to four")
    sheet.press("Space")
    assert sheet.says("No: 1 trip.")
    for label, parameter, said in [
        ("flat index", "label=index", "\n263\n"),  # of lane 7
        ("4 (C4A)", "ratio=4", "6 programs of 8 trips"),
        ("128 (C128A)", "ratio=128", "6 programs of 1 trip"),
        ("pitched", "layout=pitched", "row 1 × stride 8,192 + column 5 = 8,197 → byte 32,788"),
        ("fixed", "policy=fixed", "6 programs of 8 trips"),
        ("tiles", "kernel=tiled", "Tiles, program 1"),
    ]:
        moves(sheet, label, "radio", "Space", parameter, said)


@browser
def test_a_fault_is_gone_to_and_a_preset_draws_the_batch_that_it_names(sheet):
    sheet.open(PAGE, program=4, statement="n")
    fault = sheet.page.get_by_label("Wrong with the batch")
    for label, at, said in [
        ("a block number of -1", "program=1&trip=0&lane=2&statement=block", "table[1][1] = -1"),
        ("a padded token (slot -1)", "program=1&trip=0&lane=0&statement=lens", "slot -1 < 0, a padded token: 0"),
        ("a table that ends early", "lane=64&statement=live", "entry 32 is outside the table of 32 columns"),
    ]:
        fault.select_option(label=label)
        assert all(map(sheet.holds, at.split("&"))) and sheet.says(said), label
    fault.select_option(label="nothing")
    sheet.page.get_by_label("Preset").select_option(label="The test of PR #50004")
    assert sheet.holds("own=positions+255") and sheet.says("columns 0 to 127 of decode row 0: 2 ids")
    assert sheet.says("\n768\n") and sheet.says("\n769\n") and sheet.says("All 257 cells equal the reference")
    sheet.enter("Your own batch", "positions 255; width 9; capacity 8")
    assert sheet.says("given_width is 9; it must be between 1 and capacity, 8. Shown: none.")


@browser
def test_a_click_goes_to_a_piece_of_either_map_and_to_a_lane_and_back_again(sheet):
    sheet.open(PAGE)

    def piece(words):
        sheet.page.locator(f"marimo-vega [aria-label^='{words}']").click()
        return sheet.settle()

    assert piece("program 1, tile 0: decode").soon(lambda: TILE in sheet.lead)
    assert piece("program 1, trip 0: decode").soon(lambda: FIRST in sheet.lead)
    lanes = sheet.page.locator("marimo-vega canvas.marks")  # without marks that have a name
    size = lanes.bounding_box()
    place = {"x": 0.302 * size["width"], "y": 0.3 * size["height"]}
    lanes.click(position=place)
    assert sheet.settle().soon(lambda: "lane=5&" not in sheet.page.url)
    lane = int(re.search(r"lane=(\d+)", sheet.page.url)[1])
    assert 128 <= lane < 256 and sheet.says(f"Lane {lane}: decode row 1, column {lane}")
    sheet.page.mouse.move(2, 2)
    lanes.hover(position=place)
    tip = sheet.page.locator("#vg-tooltip-element")
    tip.wait_for()
    assert f"row 1 × stride 256 + column {lane} = {256 + lane} → byte {4 * (256 + lane):,}" in tip.inner_text()
    for _ in range(2):  # the same piece twice, left by a key
        assert piece("program 0, trip 0: decode").soon(lambda: "decode row 0" in sheet.lead)
        sheet.focus("Program, 0 to 5", role="slider")
        assert sheet.press("ArrowRight").soon(lambda: "decode row 1" in sheet.lead)


@browser
def test_many_interpreted_programs_run_only_when_asked(sheet):
    if not backend.INTERPRET:
        pytest.skip("compiled kernels always run")
    sheet.open(PAGE, seq=1_048_576, kernel="tiled", decode=2, prefill=3)
    assert sheet.says("not run unasked")
    sheet.page.get_by_role("button", name="Run them").click()
    assert sheet.says("All 40,962 cells equal the reference")  # 5 × 8,192 cells and 2 lens


def test_an_address_opens_its_state_and_what_is_wrong_in_it_is_noted(ran):
    text, names = ran(PAGE, kernel="tiled", program=0, statement="block")
    assert names["statement"] == "block" and "▸ block numbers" in text
    text, _ = ran(PAGE, seq=150_000, kernel="tiled", program=3, trip=4, lane=17)
    assert "columns 1,024 to 1,279 of prefill row 2: no ids, 256 pads" in text
    text, _ = ran(PAGE, seq="many", kernel="cuda", program=99, lane=5000)
    for note in ("seq is many", "row_loop, tiled", "program is 99", "0 to 1,023. Shown: 1,023.", FIRST):
        assert note in text


def test_no_program_runs_without_room_or_rows(ran):
    text, names = ran(PAGE, seq=1_048_576, model_len=980_224)
    assert "⚠ 1,048,576 tokens need 8,192 columns" in text and not names["runs"]
    assert "No program runs" in ran(PAGE, decode=0, prefill=0)[0]
