"""The workbook in a real browser: one `marimo run` server and one Chromium for all tests of a process.

Opening a page takes seconds. So all tabs share one profile, which keeps what marimo's front end has loaded; tests that
only read share one opened page, or run the notebook without a browser; a test presses one control after another.

A page has settled when the server has answered, no cell runs and nothing in the page has changed for a moment. Every
test that opens a page fails on an error in the page, in the console or in a cell.
"""

from __future__ import annotations

import html
import json
import re
import runpy
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from c128a.show import page
from scripts.workbook import CHROMIUM, ROOT, chromium, served

# Counts in the page the requests that the server has not answered: to be told of all would keep this process busy.
COUNT = """(() => {
    const ask = window.fetch;
    window.unanswered = 0;
    window.fetch = (what, ...how) => {
        const one = String(what.url || what).includes('/api/kernel/') ? 1 : 0;
        window.unanswered += one;
        return ask(what, ...how).finally(() => { window.unanswered -= one; });
    };
})()"""

QUIET = """quiet => new Promise(done => {
    const stop = () => {
        if (window.unanswered || document.querySelector('[data-testid=loading-indicator]')) {
            timer = setTimeout(stop, quiet);
            return;
        }
        observer.disconnect();
        done();
    };
    let timer = setTimeout(stop, quiet);
    const observer = new MutationObserver(() => { clearTimeout(timer); timer = setTimeout(stop, quiet); });
    const watch = root => {
        observer.observe(root, {subtree: true, childList: true, attributes: true, characterData: true});
        root.querySelectorAll('*').forEach(element => element.shadowRoot && watch(element.shadowRoot));
    };
    watch(document);
})"""

# Every element of a page, those of web components (marimo's controls, charts and callouts) included.
ALL = """
    const all = root => [...root.querySelectorAll('*')].flatMap(e => e.shadowRoot ? [e, ...all(e.shadowRoot)] : [e]);
    const every = all(document);
"""
TEXT = """
    const texts = e => e.shadowRoot ? [...e.shadowRoot.children].map(child => child.innerText || '')
        : e instanceof SVGTextElement ? [e.textContent] : [];
    return [document.body.innerText, ...every.flatMap(texts)].join('\\n');
"""
# Charts wider than a box they stand in, their column and the window included: pairs of right edges in pixels.
OVERFLOWS = """
    const around = element => element.parentElement || element.getRootNode().host;
    return every.filter(e => e.matches('svg.marks')).map(svg => {
        let edge = window.innerWidth;
        for (let box = around(svg); box; box = around(box)) {
            const outer = box.getBoundingClientRect();
            if (outer.width > 0) edge = Math.min(edge, outer.right);
        }
        return [svg.getBoundingClientRect().right, edge].map(Math.round);
    }).filter(([inner, outer]) => inner > outer + 1);
"""


class Sheet:
    """A tab with a page of the workbook: `page` is Playwright's, `errors` what went wrong in it so far."""

    def __init__(self, context, address: str, *, dark: bool = False, width: int = 1280) -> None:
        self.address = address
        self.page = context.new_page()
        self.page.set_default_timeout(30_000)
        self.page.add_init_script(COUNT)
        self.look(dark=dark, width=width)
        self.errors: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(f"page: {error}"))
        self.page.on("console", self._console)

    def _console(self, message) -> None:
        # Cells that fail are told to the console as an ordinary log line.
        if message.type == "error" or "internal error" in message.text or "Traceback" in message.text:
            self.errors.append(f"console: {message.text[:500]}")

    def open(self, name: str, **params: object) -> Sheet:
        """Open a notebook (without its suffix) with these parameters and wait until it is drawn."""
        self.page.goto(f"{self.address}/?{urlencode({'file': f'{name}.py', **params})}")
        self.page.wait_for_selector(".c128a-lead")
        return self.settle(quiet=500)

    def settle(self, quiet: int = 250) -> Sheet:
        """Wait until the server has answered, no cell runs and nothing has changed for `quiet` milliseconds."""
        self.page.evaluate(QUIET, quiet)
        return self

    def choose(self, label: str) -> Sheet:
        """Choose the radio button with this label by keyboard."""
        self.focus(label, role="radio")
        return self.press("Space")

    def enter(self, label: str, text: object) -> Sheet:
        """Type into the box with this label and press Enter."""
        self.focus(label, role="textbox").fill(str(text))
        return self.press("Enter")

    def look(self, *, dark: bool, width: int) -> None:
        """Show the tab as a reader with this colour scheme and a window this wide sees it; an open page follows."""
        self.page.emulate_media(color_scheme="dark" if dark else "light")
        self.page.set_viewport_size({"width": width, "height": 900})

    def every_look(self, name: str, *, first_dark: bool, **params: object) -> Iterator[str]:
        """Open a page light and narrow, or dark and wide, and show it in all looks: each in words."""
        looks = [(False, 1280), (False, 1680), (True, 1680), (True, 1280)]
        for at, (dark, width) in enumerate(looks[2:] + looks[:2] if first_dark else looks):
            self.look(dark=dark, width=width)
            if at == 0:
                self.open(name, **params)
            self.page.wait_for_selector("body.dark-theme" if dark else "body:not(.dark-theme)")
            self.settle()
            assert self.page.evaluate("innerWidth") == width
            yield f"{'dark' if dark else 'light'} at {width}"

    @property
    def lead(self) -> str:
        """The opening sentence."""
        return self.page.locator(".c128a-lead").inner_text()

    @property
    def text(self) -> str:
        """All that a reader can see, charts included."""
        return self.ask(TEXT)

    def ask(self, script: str, words: str = ""):
        """What a script returns that may use `every` element of the page, and `words`."""
        return self.page.evaluate("words => {" + ALL + script + "}", words)

    def says(self, text: str, within: float = 15) -> bool:
        """Whether the page shows this text, now or within so many seconds."""
        return self.soon(lambda: text in self.text, within)

    def holds(self, parameter: str, within: float = 15) -> bool:
        """Whether the address holds this parameter, now or within so many seconds."""
        return self.soon(lambda: parameter in self.page.url, within) and bool(self.settle(100))

    def soon(self, true: Callable[[], bool], within: float = 15) -> bool:
        """Whether something is true, now or within so many seconds."""
        end = time.monotonic() + within
        while not true():
            if time.monotonic() > end:
                return False
            self.page.wait_for_timeout(50)  # not time.sleep: the address is told while Playwright waits
        return True

    def cut_off(self) -> list[list[int]]:
        """Charts that reach beyond a box around them: right edge and the narrowest box's, in pixels."""
        return self.ask(OVERFLOWS)

    def focus(self, label: str, role: str | None = None):
        """The control with this label, focused as the Tab key would; fails where a keyboard cannot reach it."""
        control = (self.page.get_by_role(role, name=label) if role else self.page.get_by_label(label)).first
        control.focus()
        assert control.evaluate("element => element.matches(':focus') && element.tabIndex >= 0"), f"{label}: no focus"
        return control

    def press(self, key: str, times: int = 1) -> Sheet:
        """Press a key on what has the focus, and wait until the page has settled after the last one."""
        for _ in range(times):
            self.page.keyboard.press(key)
        return self.settle()

    def download(self, label: str) -> bytes:
        """The bytes behind a download button."""
        with self.page.expect_download() as caught:
            self.page.get_by_text(label, exact=True).first.click()
        return Path(caught.value.path()).read_bytes()


@cache
def notebook(name: str) -> dict[str, Any]:
    """The names of a notebook (without its suffix), none of whose cells has run."""
    return runpy.run_path(f"{ROOT}/notebooks/{name}.py")


@pytest.fixture
def ran(monkeypatch):
    """Run a notebook without a browser, as an address opens it: ran(name, **params) gives its text and its names."""

    def run(name: str, **params: object) -> tuple[str, dict[str, Any]]:
        monkeypatch.setattr(page, "address", lambda: {key: str(value) for key, value in params.items()})
        outputs, names = notebook(name)["app"].run()
        written = " ".join(output.text for output in outputs if hasattr(output, "text"))
        written = re.sub("data-html='([^']*)'", lambda inner: f">{json.loads(html.unescape(inner[1]))}<", written)
        return " ".join(html.unescape(re.sub("<[^<>]*>", "", written)).split()), notebook(name) | dict(names.items())

    return run


@pytest.fixture(scope="session")
def workbook(tmp_path_factory):
    """The address of a server that runs all notebooks."""
    # The lock of live timings lies in the temporary folder: the servers of two test processes must not share one.
    with served(TMPDIR=str(tmp_path_factory.mktemp("server"))) as (address, _):
        yield address


@pytest.fixture(scope="session")
def browser():
    """Chromium, headless."""
    pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="session")
def profile(browser):
    """What all tabs share: the cache, so that only the first page loads marimo's front end from the server."""
    return browser.new_context(accept_downloads=True)


@pytest.fixture
def new_sheet(profile, workbook):
    """Make a tab of its own: new_sheet(dark=False, width=1280). Closed after the test, which an error in it fails."""
    tabs = []

    def make(*, dark: bool = False, width: int = 1280) -> Sheet:
        tabs.append(Sheet(profile, workbook, dark=dark, width=width))
        return tabs[-1]

    yield make
    for tab in tabs:
        tab.page.close()
    assert [error for tab in tabs for error in tab.errors] == []


def lent(tab: Sheet) -> Iterator[Sheet]:
    """A tab for the length of a test, which an error in it fails."""
    tab.page.bring_to_front()  # one behind another is not drawn
    yield tab
    errors, tab.errors = tab.errors, []
    assert errors == []


@pytest.fixture(scope="session")
def one_tab(profile, workbook):
    """A tab for all tests that open a page: one that has shown a page opens the next in two thirds of the time."""
    return Sheet(profile, workbook)


@pytest.fixture
def sheet(one_tab):
    """The tab that the tests share, light and 1280 pixels wide at first; open a page in it."""
    one_tab.look(dark=False, width=1280)
    yield from lent(one_tab)


@pytest.fixture(scope="module")
def page_as_opened(request, profile, workbook):
    """A tab with the page that the module names in PAGE and OPENED; use it through `opened`."""
    tab = Sheet(profile, workbook).open(request.module.PAGE, **getattr(request.module, "OPENED", {}))
    yield tab
    tab.page.close()


@pytest.fixture
def opened(page_as_opened):
    """The page as it opens, for tests that only read: they move nothing in it, so they share it in any order."""
    yield from lent(page_as_opened)
