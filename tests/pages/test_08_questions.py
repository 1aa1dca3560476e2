"""Page 08: all questions, a reply to each guess, the score; and the questions under the pictures of the other pages."""

import io

import pandas as pd
import pytest

from c128a.teach.questions import QUESTIONS, draw

pytestmark = pytest.mark.browser

FIRST, SECOND = draw(7, "01_width")


def test_guesses_are_told_and_counted_and_the_score_is_taken_along(sheet):
    sheet.open("08_questions", seed=7)
    count = sum(map(len, QUESTIONS.values()))
    assert f"{count} questions of seed 7: 0 answered" in sheet.lead
    wrong = next(at for at, choice in enumerate(SECOND.choices) if choice != SECOND.answer)
    radios = sheet.page.get_by_role("radio")
    radios.nth(FIRST.choices.index(FIRST.answer)).focus()
    sheet.press("Space")
    assert sheet.says("1 answered, 1 of them right") and FIRST.why in sheet.text
    radios.nth(len(FIRST.choices) + wrong).click()
    assert sheet.says("2 answered, 1 of them right") and sheet.says(f"No, {SECOND.answer}.")
    score = pd.read_csv(io.BytesIO(sheet.download("the score CSV")), dtype=str)
    assert score["outcome"].tolist() == ["right", "wrong"] + ["not answered"] * (count - 2)
    assert score["answer"][1] == SECOND.answer and score["guess"][1] == SECOND.choices[wrong]
    assert "seed=7" in sheet.page.get_by_role("link", name="Layout", exact=True).get_attribute("href")


def test_a_projector_shows_no_answer(sheet):
    sheet.open("08_questions", seed=7, answers="hidden")
    sheet.page.get_by_role("radio").first.click()
    assert sheet.says("1 answered; the answers are hidden") and FIRST.why not in sheet.text
    sheet.focus("Seed", role="textbox").fill("10000")  # beyond the last one
    sheet.press("Tab")
    assert sheet.says("seed is 10000; it must be a whole number from 0 to 9,999. Shown: 7") and "seed 7" in sheet.lead


def test_a_page_asks_its_questions_and_a_choice_opens_the_reply_with_a_link_that_shows_it(sheet):
    sheet.open("01_width", seed=7)
    box = sheet.page.get_by_role("region", name="Questions")
    box.locator("summary").nth(FIRST.choices.index(FIRST.answer)).focus()
    sheet.press("Enter")
    assert "Right." in box.inner_text() and FIRST.why in box.inner_text()
    box.get_by_role("link", name="See it").first.click()
    assert sheet.soon(lambda: f"{FIRST.settings['seq']:,} tokens" in sheet.lead) and "seed=7" in sheet.page.url
