"""`marimo run notebooks` shows the pages, and each opens without an error."""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.py"))


def card(notebook: Path, key: str) -> str:
    return re.search(rf'^# {key} = "(.+)"$', notebook.read_text(), re.MULTILINE).group(1)


def test_the_gallery_shows_title_and_description_of_every_page_and_a_card_opens_its_page(new_sheet):
    tab = new_sheet()
    tab.page.goto(tab.address)
    tab.page.wait_for_selector("a[href*='file=']")
    for notebook in NOTEBOOKS:
        assert card(notebook, "title") in tab.text
        assert card(notebook, "description") in tab.text
    with tab.page.context.expect_page() as opened:
        tab.page.get_by_text(card(NOTEBOOKS[0], "title")).first.click()
    opened.value.wait_for_selector(".c128a-lead")
    opened.value.close()


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_page_opens_without_an_error_and_no_chart_is_cut_off_light_or_dark_at_either_width(sheet, notebook):
    logged = []
    sheet.page.on("console", note := lambda message: logged.append(message.text))
    for look in sheet.every_look(notebook.stem, first_dark=False):
        assert sheet.cut_off() == [], look
    sheet.page.remove_listener("console", note)
    assert not [text for text in logged if "[Vega view] created" in text]  # see notebooks/head.html
