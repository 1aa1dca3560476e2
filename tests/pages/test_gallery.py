"""`marimo run notebooks` shows the pages, and each opens without an error."""

import os
import re
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.py"))
# What a screen reader or a narrow window would miss: pictures, marks, menus and radio buttons without a name, columns
# without a heading, sliders that tell the step, tables that no key scrolls, headings that leave out a level, and what
# reaches over the side.
MISSED = """
    const of = selector => every.filter(e => e.matches(selector)), app = document.getElementById('App');
    const unnamed = name => e => [null, '', name].includes(e.getAttribute('aria-label'));
    const stepped = e => JSON.parse(e.getRootNode().host?.dataset.steps ?? '[]').length;
    const own = e => e.getRootNode() === document;  // marimo's elements have headings of theirs
    const levels = of('h1, h2, h3, h4').filter(own).map(e => Number(e.tagName[1]));
    return [
        ...of('[role=graphics-document]').filter(unnamed('Vega visualization')),
        ...of('[role=radiogroup]').filter(unnamed('Radio Group')),
        ...of('[role=slider]').filter(e => stepped(e) && !e.getAttribute('aria-valuetext')),
        ...of('[role=graphics-symbol], [aria-haspopup=menu]').filter(unnamed('')),
        ...of('th').filter(e => !e.textContent.trim()),
        ...of('.c128a-table').filter(e => e.scrollHeight > e.clientHeight && e.tabIndex < 0),
        ...of("[aria-label*='<']"),
    ].map(e => e.outerHTML.slice(0, 200)).concat(
        levels.filter((level, at) => level > (levels[at - 1] ?? 0) + 1).map(level => `h${level}`),
        of('main, [role=main]').length === 1 ? [] : ['main'],
        app.scrollWidth > app.clientWidth ? [`${app.scrollWidth} pixels`] : [],
    );
"""
AXE = os.environ.get("C128A_AXE")
# What axe finds, with all parts of the page opened: the rule, what is wrong, and where.
VIOLATIONS = """
    every.filter(e => e.matches('details')).forEach(e => { e.open = true; });
    every.filter(e => e.matches('h3 > [aria-expanded=false]')).forEach(e => e.click());
    return axe.run().then(({violations}) => violations.flatMap(({id, help, nodes}) =>
        nodes.map(({html}) => [id, help, html.slice(0, 200)].join(': '))));
"""
CONNECT = """address => new Promise(done => {
    const socket = new WebSocket(address);
    socket.onopen = () => { socket.close(); done("open"); };
    socket.onerror = () => done("refused");
})"""


def card(notebook: Path, key: str) -> str:
    return re.search(rf'^# {key} = "(.+)"$', notebook.read_text(), re.MULTILINE).group(1)


def test_the_gallery_shows_title_and_description_of_every_page_and_a_card_opens_its_page(sheet):
    sheet.page.goto(sheet.address)
    sheet.page.wait_for_selector("a[href*='file=']")
    for notebook in NOTEBOOKS:
        assert card(notebook, "title") in sheet.text and card(notebook, "description") in sheet.text
    with sheet.page.context.expect_page() as opened:
        sheet.page.get_by_text(card(NOTEBOOKS[0], "title")).first.click()
    opened.value.wait_for_selector(".c128a-lead")
    opened.value.close()


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda of: of.stem)
def test_a_page_opens_without_an_error_and_shows_and_names_everything_in_every_look(sheet, notebook):
    logged = []
    sheet.page.on("console", note := lambda message: logged.append(message.text))
    for look in sheet.every_look(notebook.stem, first_dark=NOTEBOOKS.index(notebook) % 2 == 1):
        assert sheet.cut_off() == [], look
    sheet.look(dark=False, width=390)
    assert sheet.settle().soon(lambda: sheet.ask(MISSED) == [], 3), sheet.ask(MISSED)
    sheet.page.remove_listener("console", note)
    assert not [text for text in logged if "[Vega view] created" in text]  # see notebooks/head.html


@pytest.mark.skipif(not AXE, reason="C128A_AXE does not name an axe.min.js")
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda of: of.stem)
def test_axe_finds_no_violation_light_or_dark(sheet, notebook):
    sheet.open(notebook.stem).page.add_script_tag(path=AXE)
    for dark in (False, True):
        sheet.look(dark=dark, width=1280)
        sheet.page.wait_for_selector("body.dark-theme" if dark else "body:not(.dark-theme)")
        assert sheet.settle(quiet=600).ask(VIOLATIONS) == []


def test_a_page_from_elsewhere_cannot_connect_to_the_workbook_that_make_opens(browser, workbook):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    recipe = ["make", "--no-print-directory", "--dry-run", "workbook", "HEADLESS=1", f"PORT={port}"]
    _, *options = shlex.split(subprocess.check_output(recipe, cwd=ROOT, text=True).splitlines()[-1])
    server = subprocess.Popen([sys.executable, "-m", "marimo", *options], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    context = browser.new_context()
    try:
        printed = next(line.split()[-1] for line in server.stdout if "URL:" in line)
        own, other = context.new_page(), context.new_page()
        own.goto(printed)
        own.wait_for_selector("a[href*='file=']")
        other.goto(workbook)  # a server without a token, at another host: 127.0.0.1 where this one is localhost
        places = [address.split("?")[0].rstrip("/").replace("http", "ws", 1) for address in (printed, workbook)]
        with_token, without = (f"{place}/ws?file=01_width.py&session_id=s_any" for place in places)
        assert own.evaluate(CONNECT, with_token) == "open"
        assert other.evaluate(CONNECT, with_token) == "refused"
        assert own.evaluate(CONNECT, without) == "open"  # anyone's page can: this is what the token is for
    finally:
        context.close()
        server.terminate()
        server.wait(10)
