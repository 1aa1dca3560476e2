"""Page 03: every stepper moves by key and by click, the address is its state, its downloads hold what it shows."""

import io
import json

import pandas as pd
import pytest

from c128a import backend

pytestmark = pytest.mark.browser

PAGE = "03_kernel"

# The default batch: n = 256, 170, 85 for the decode rows, 191, 192, 192 for the prefill rows, all 256 columns wide.
FIRST = (
    "Row loop, program 1, trip 0: 1,024 lanes write columns 0 to 255 of decode row 1: 170 ids, 86 pads, 768 lanes idle."
)

# Where a chart stands, in pixels of the window; charts of mo.ui.altair_chart lie in a shadow root.
CHARTS = """() => [...document.querySelectorAll('marimo-vega')].map(chart => {
    const drawn = chart.shadowRoot.querySelector('svg.marks, canvas.marks');
    const {left, top, width, height} = drawn.getBoundingClientRect();
    return {left, top, width, height};
})"""


def chart(sheet, index):
    """Scroll a chart into view and give its place: 0 and 1 are the maps, 2 the lanes."""
    sheet.page.locator(".c128a-framed").nth(index).scroll_into_view_if_needed()
    return sheet.page.evaluate(CHARTS)[index]


def click(sheet, index, x, y):
    """Click a chart at a share of its width and a pixel of its height."""
    place = chart(sheet, index)
    sheet.page.mouse.click(place["left"] + x * place["width"], place["top"] + y)
    sheet.settle()
    sheet.page.mouse.move(2, 2)
    sheet.settle()


def test_the_lead_says_what_the_trip_does(opened):
    assert opened.soon(lambda: opened.lead == FIRST)


def test_the_true_output_equals_the_reference(opened):
    assert opened.says("All 1,539 cells equal the reference, lens included")


def test_downloads_hold_the_lanes_on_view(opened):
    frame = pd.read_csv(io.BytesIO(opened.download("this trip CSV")))
    lanes = frame[frame["kind"] == "decode"]
    assert lanes["state"].value_counts().to_dict() == {"masked": 768, "live": 170, "pad": 86}
    assert frame[frame["kind"] == "lens"]["value"].tolist() == [170]
    held = json.loads(opened.download("all programs JSON"))
    assert held["settings"]["program"] == 1
    assert [row["kernel"] for row in held["rows"]].count("row_loop") == 6


def test_arrow_keys_move_the_sequence_length_and_step_through_the_programs_and_the_focus_stays(sheet):
    sheet.open(PAGE)
    sheet.focus("Longest sequence", role="slider")
    sheet.press("ArrowRight")
    assert sheet.holds("seq=32896")
    assert sheet.soon(lambda: "columns 0 to 511 of decode row 1" in sheet.lead)
    sheet.press("ArrowLeft")
    assert sheet.soon(lambda: sheet.lead == FIRST)
    sheet.focus("Program, 0 to 5", role="slider")
    sheet.press("ArrowRight", times=2)
    assert sheet.soon(
        lambda: "program 3, trip 0: 1,024 lanes write columns 0 to 255 of prefill row 0: 191 ids, 65 pads" in sheet.lead
    )
    sheet.press("ArrowLeft", times=3)
    assert sheet.soon(
        lambda: "program 0, trip 0: 1,024 lanes write columns 0 to 255 of decode row 0: 256 ids, no pads" in sheet.lead
    )
    assert sheet.holds("program=0")


def moves(sheet, label, role, key, parameter, said):
    """A key on a control changes the address and the page, which then says something that it did not say before."""
    assert said not in sheet.text, f"{label}: said before"
    sheet.focus(label, role=role)
    sheet.press(key)
    assert sheet.holds(parameter), label
    assert sheet.says(said), label


def test_every_slider_is_moved_by_an_arrow_key(sheet):
    sheet.open(PAGE, seq=150_000)
    marked = sheet.page.locator(".c128a-way .marked")
    assert "× 2 + 5 % 2" not in marked.inner_text()
    sheet.focus("Statement", role="slider")
    sheet.press("ArrowLeft")
    assert sheet.soon(lambda: "statement=slot" in sheet.page.url and "× 2 + 5 % 2" in marked.inner_text())
    for label, key, parameter, said in [
        ("Lane, 0 to 1,023", "ArrowRight", "lane=6", "trip 0 × 1,024 + lane 6 = 6"),
        ("Trip, 0 to 1", "ArrowRight", "trip=1", "columns 1,024 to 2,047"),
        ("Decode rows", "ArrowRight", "decode=4", "decode 3"),
        ("Prefill rows", "ArrowLeft", "prefill=2", "24 programs of 2 × 256 cells"),  # 3 pairs of rows × 2,048 columns
    ]:
        moves(sheet, label, "slider", key, parameter, said)


def test_every_choice_is_reached_by_keyboard_and_changes_the_page(sheet):
    sheet.open(PAGE)
    for label, parameter, said in [
        ("flat index", "label=index", "\n261\n"),  # on a cell of its own
        ("4 (C4A)", "ratio=4", "8,192 columns"),
        ("128 (C128A)", "ratio=128", "256 columns"),
        ("pitched", "layout=pitched", "row 1 × stride 8,192 + column 5 = 8,197 → byte 32,788"),
        ("fixed", "policy=fixed", "8,192 columns"),
        ("tiles", "kernel=tiled", "Tiles, program (1, 0)"),
    ]:
        moves(sheet, label, None, "Space", parameter, said)


def test_a_fault_is_chosen_and_its_way_written_out_and_a_preset_sets_the_batch(sheet):
    sheet.open(PAGE, lane=3)
    sheet.page.get_by_label("Wrong with the batch").select_option(label="a block number of -1")
    sheet.settle()
    assert sheet.holds("fault=hole")
    assert sheet.says("table[1][1] = -1") and sheet.says("no block: -1")
    sheet.page.get_by_label("Preset").select_option(label="The test of PR #50004")
    sheet.settle()
    assert sheet.soon(lambda: "model_len=32768" in sheet.page.url and "columns 0 to 127" in sheet.lead)


def test_a_click_on_a_lane_chooses_it_and_on_a_block_of_either_map_goes_there_and_back_to_it_again(sheet):
    sheet.open(PAGE)
    click(sheet, 1, 0.5, 60)  # the second block of the tiles: decode row 2 alone, the row under it masked
    assert (
        "Tiles, program (1, 0): 512 lanes write columns 0 to 255 of decode row 2: 85 ids, 171 pads, 256" in sheet.lead
    )
    click(sheet, 0, 0.5, 36)
    assert sheet.soon(lambda: sheet.lead == FIRST)
    click(sheet, 2, 40.4 / 128, 27)  # the second line: lane 128 + 40
    assert sheet.holds("lane=168")
    assert sheet.says("Lane 168: decode row 1, column 168")
    place = chart(sheet, 2)
    sheet.page.mouse.move(place["left"] + 7.4 / 128 * place["width"], place["top"] + 8)
    tip = sheet.page.locator("#vg-tooltip-element")
    tip.wait_for()
    assert "row 1 × stride 256 + column 7 = 263 → byte 1,052" in tip.inner_text()
    click(sheet, 0, 0.5, 12)
    assert sheet.soon(lambda: "program 0" in sheet.lead)
    sheet.focus("Program, 0 to 5", role="slider")
    sheet.press("ArrowRight")
    assert sheet.soon(lambda: "program 1" in sheet.lead)
    click(sheet, 0, 0.5, 12)  # the same block
    assert sheet.soon(lambda: "program 0" in sheet.lead)


def test_the_marked_line_is_the_statement_of_the_address(sheet):
    sheet.open(PAGE, kernel="tiled", program=0, statement="block")
    marked = sheet.page.locator(".c128a-source .marked")
    assert marked.first.inner_text().strip().endswith("block = tl.load(")
    assert "table[" in sheet.page.locator(".c128a-way .marked").inner_text()


def test_many_interpreted_programs_run_only_when_asked(sheet):
    if not backend.INTERPRET:
        pytest.skip("compiled kernels always run")
    sheet.open(PAGE, seq=1_048_576, kernel="tiled", decode=2, prefill=3)
    assert sheet.says("interpreted programs are not run unasked")
    sheet.page.get_by_role("button", name="Run them").click()
    assert sheet.says("All 40,962 cells equal the reference, lens included")  # 5 × 8,192 cells and 2 lens


def test_an_address_opens_its_state(sheet):
    sheet.open(PAGE, seq=150_000, kernel="tiled", program=3, trip=4, lane=17, decode=3, prefill=3)
    assert (
        "Tiles, program (3, 4): 512 lanes write columns 1,024 to 1,279 of prefill row 2: no ids, 256 pads" in sheet.lead
    )


def test_nonsense_in_the_address_opens_the_default_with_a_note(sheet):
    sheet.open(PAGE, seq="many", kernel="cuda", program=99, lane=5000)
    assert sheet.says("seq is many in the address")
    assert sheet.says("kernel is cuda in the address; it must be one of row_loop, tiled")
    assert sheet.says("program is 99 in the address")
    assert sheet.says("lane is 5000 in the address; this build has 0 to 1,023. Shown: 1,023.")
    assert sheet.soon(lambda: sheet.lead == FIRST)


def test_a_capacity_too_narrow_is_an_alarm_and_no_program_runs(sheet):
    sheet.open(PAGE, seq=1_048_576, model_len=980_224)
    assert "need 8,192 columns" in sheet.page.get_by_role("alert").first.inner_text()
    assert sheet.page.locator("marimo-vega").count() == 0


def test_no_rows_is_said(sheet):
    sheet.open(PAGE, decode=0, prefill=0)
    assert sheet.soon(lambda: "No program runs: there is no row to write." in sheet.lead)


def test_nothing_is_cut_off_when_opened_dark_and_then_in_any_look(sheet):
    for look in sheet.every_look(PAGE, first_dark=True, seq=150_000):
        assert sheet.cut_off() == [], look
        for place, box in zip(
            sheet.page.evaluate(CHARTS),
            [box.bounding_box() for box in sheet.page.locator(".c128a-framed .picture").all()],
            strict=True,
        ):
            assert abs(place["width"] - box["width"]) <= 2 and abs(place["top"] - box["y"]) <= 2, look
        assert sheet.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), look
