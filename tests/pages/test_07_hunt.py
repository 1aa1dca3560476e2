"""Page 07: cells, a guess and its answer; the seed deals the hunts."""

import io

import pandas as pd
import pytest

from c128a.teach.mistakes import cells, deal
from tests.support.pages import run_each

pytestmark = pytest.mark.browser

PAGE = "07_hunt"
NUMBER, HUNT = next((at + 1, hunt) for at, hunt in enumerate(deal(7)) if hunt.mistake == "hole")
OPENED = {"seed": 7, "hunt": NUMBER}


def test_the_page_opens_with_the_hunt_of_the_address_and_its_download_holds_every_cell(opened):
    assert f"Hunt {NUMBER} of 13" in opened.lead and "1 of 774 cells" in opened.lead  # 6 rows of 128 cells and lens
    assert "-2" in opened.text and "What catches it" not in opened.text
    frame = pd.read_csv(io.BytesIO(opened.download("the cells CSV")))
    assert (frame == cells(HUNT)).all(axis=None)


def test_a_guess_is_answered_with_the_line_and_the_first_one_counts(sheet):
    sheet.open(PAGE, **OPENED)
    places = {key: 3 + at for at, key in enumerate(HUNT.choices)}  # three radio buttons choose the cells
    answer = places.pop("hole")
    radios = sheet.page.get_by_role("radio")
    radios.nth(next(iter(places.values()))).click()
    assert sheet.says("is not it") and sheet.says("first guess: 0 of 1")
    radios.nth(answer).focus()
    sheet.press("Space")
    assert sheet.says("index = tl.where(live, slot_id, -1)") and sheet.says("first guess: 0 of 1")
    sheet.focus("where they differ", role="radio")
    sheet.press("Space")
    assert sheet.holds("view=differs") and sheet.says("as it should be")
    sheet.focus("Hunt", role="slider")
    sheet.press("ArrowRight" if NUMBER < 13 else "ArrowLeft")
    assert sheet.soon(lambda: f"Hunt {NUMBER + (1 if NUMBER < 13 else -1)} of 13" in sheet.lead)
    assert "What catches it" not in sheet.text
    deals = sheet.lead
    sheet.focus("Seed", role="textbox")
    sheet.press("ArrowUp")
    assert sheet.holds("seed=8") and sheet.soon(lambda: sheet.lead != deals)


def test_a_projector_hides_the_answers_and_a_bad_address_says_so(sheet):
    sheet.open(PAGE, answers="hidden", hunt=14)
    assert sheet.says("hunt is 14 in the address") and "Hunt 1 of 13" in sheet.lead
    sheet.page.get_by_role("radio").nth(3).click()
    assert sheet.says("Answers are hidden") and "first guess" not in sheet.text


def test_without_torch_the_page_says_what_is_missing():
    program = "import runpy; print(runpy.run_path('notebooks/07_hunt.py')['app'].run()[0][-1].text)"
    (ran,) = run_each(program, [[]], missing=("torch", "triton"))
    assert "torch or triton is missing here" in ran.text()
