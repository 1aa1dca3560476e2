"""`marimo run notebooks` shows the pages, and each opens without an error."""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.py"))


def card(notebook: Path, key: str) -> str:
    return re.search(rf'^# {key} = "(.+)"$', notebook.read_text(), re.MULTILINE).group(1)


def test_the_gallery_shows_title_and_description_of_every_page(new_sheet):
    tab = new_sheet()
    tab.page.goto(tab.address)
    tab.page.wait_for_selector("a[href*='file=']")
    for notebook in NOTEBOOKS:
        assert card(notebook, "title") in tab.text
        assert card(notebook, "description") in tab.text
    tab.page.close()


def test_a_card_opens_its_page(new_sheet):
    tab = new_sheet()
    tab.page.goto(tab.address)
    with tab.page.context.expect_page() as opened:
        tab.page.get_by_text(card(NOTEBOOKS[0], "title")).first.click()
    opened.value.wait_for_selector(".c128a-lead")
    tab.page.close()


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.parametrize("look", ["light-1280", "dark-1680"])
def test_a_page_opens_without_an_error_or_a_cut_off_chart(new_sheet, notebook, look):
    theme, width = look.split("-")
    tab = new_sheet(dark=theme == "dark", width=int(width))
    logged = []
    tab.page.on("console", lambda message: logged.append(message.text))
    tab.open(notebook.stem)
    assert not [text for text in logged if "[Vega view] created" in text]  # see notebooks/head.html
    assert tab.page.locator("body.dark-theme").count() == (theme == "dark")
    assert tab.cut_off() == []
    assert tab.errors == []
    tab.page.close()


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_charts_follow_a_window_that_gets_narrower(new_sheet, notebook):
    tab = new_sheet(width=1680)
    tab.open(notebook.stem)
    tab.page.set_viewport_size({"width": 1280, "height": 900})
    tab.settle()
    assert tab.cut_off() == []
    tab.page.close()
