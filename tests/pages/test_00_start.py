"""Page 00: the numbers of its steps, its keys, its buttons, its address, and the lesson that it opens."""

import re
import runpy
from itertools import groupby
from urllib.parse import parse_qsl

import pytest

from c128a.show import page
from tests.support.pages import ROOT

PAGE = "00_start"


@pytest.fixture(scope="module")
def start():
    """The page's functions, and the names of its cells after a run with nothing pressed."""
    names = runpy.run_path(f"{ROOT}/notebooks/{PAGE}.py")
    return names | dict(names["app"].run()[1].items())


def said(picture):
    return " · ".join(row["label"] for row in picture.spec["datasets"]["notes_texts"])


def test_the_way_of_token_700_is_as_worked_out_by_hand(start):
    # 700 / 128 = 5.47; entry 5 is the second of block 5 / 2; the table's third block is 10; its slots are 20 and 21.
    way = said(start["way"](start["lanes"], 5))
    assert "= entry 5 ·" in way and "= block 2 ·" in way and "10 × 2 + 1 = slot 21 · column 5 holds 21" in way
    assert start["ids"] == [16, 17, 6, 7, 20, 21, 10, 11]  # blocks 8, 3, 10, 5


def test_rows_lie_where_the_strides_put_them_and_a_captured_reader_misses_the_packed_ones(start):
    small, grown = start["small"], start["grown"]
    assert said(start["buffer"](small)) == "2 × 128 + 5 = 261 · 2 × 256 + 5 = 517"
    picture = start["buffer"](grown, reader=True)  # 33,000 / 128 = 257.8, so 512 columns of 8,192
    packed = "row 2: 2 × 512 = 1,024 · the reader looks here: 2 × 8,192 = 16,384"
    assert said(picture) == f"{packed} · row 2: 2 × 8,192 = 16,384"
    signs = picture.spec["datasets"]["signs"]
    assert [row["sign"] for row in signs] == ["right", "wrong", "wrong", "right", "right", "right"]


@pytest.mark.browser
def test_keys_buttons_and_the_list_move_the_steps_and_stop_at_both_ends(sheet):
    sheet.open(PAGE)
    sheet.press("ArrowLeft").press("ArrowRight")
    assert sheet.says("2 of 10") and sheet.holds("step=2")
    sheet.page.get_by_role("button", name="Next").click()
    assert sheet.says("3 of 10")
    sheet.settle().press("ArrowRight")  # the button that was clicked has the focus
    assert sheet.says("4 of 10") and sheet.holds("step=4")
    sheet.focus("Back", role="button")
    assert sheet.press("Enter").press("Enter").says("2 of 10")
    sheet.focus("Reader", role="radio")
    assert sheet.press("Space").says("9 of 10") and sheet.holds("step=9")
    sheet.press("ArrowRight")  # the list has the focus
    assert sheet.says("10 of 10") and sheet.holds("step=10")
    sheet.focus("Next", role="button")
    assert sheet.press("Enter").says("10 of 10") and sheet.says("A lesson of 45 minutes")


@pytest.mark.browser
def test_an_address_opens_its_step_alone_and_large_for_a_projector_and_words_open(sheet):
    sheet.open(PAGE, step=6, present="yes")
    assert sheet.says("present is yes in the address") and sheet.says("6 of 10")
    sheet.page.get_by_text("Words: stride, packed").click()
    assert sheet.says("Column j of row r lies at r × stride + j")
    small = sheet.page.locator("h2").bounding_box()["height"]
    sheet.page.goto(f"{sheet.address}/?file={PAGE}.py&step=6&present=1")
    assert sheet.says("6 of 10") and sheet.settle(500)
    assert sheet.page.locator("h2").bounding_box()["height"] > 1.2 * small
    assert sheet.page.locator("h1, nav").count() == 0
    assert sheet.press("ArrowRight").says("7 of 10") and sheet.holds("present=1")


def test_every_link_of_the_lesson_names_a_page_and_settings_that_it_takes():
    links = re.findall(r"\(\?([^)]+)\)", (ROOT / "docs" / "lesson.md").read_text(encoding="utf-8"))
    assert len(links) > 12
    for file, of in groupby(sorted(map(parse_qsl, links)), lambda link: link[0][1]):
        notebook = ROOT / "notebooks" / file
        fields = runpy.run_path(str(notebook)).get("FIELDS")
        for _, *given in of:
            assert all(f'"{name}"' in notebook.read_text() for name, _ in given), (file, given)
            assert fields is None or page.read(dict(given), fields)[1] == [], (file, given)


def test_the_card_of_every_page_in_the_gallery_shows_a_small_picture():
    cards = ROOT / "notebooks" / "__marimo__" / "assets"
    sizes = {name: (cards / name / "opengraph.png").stat().st_size for name in page.PAGES}  # make screenshots
    assert max(sizes.values()) <= 60_000
