"""The workbook as files, in Chromium with the network cut off: every page whole, hover, links, downloads, keyboard."""

import csv
import functools
import http.server
import io
import threading
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import marimo
import pytest

from tests.pages.conftest import Sheet
from tests.support.site import LIVE, PAGES, PRESET

pytestmark = pytest.mark.browser

FRONT_END = Path(marimo.__file__).parent / "_static"
CHARTS = "return every.filter(e => e.matches('svg') && e.getBoundingClientRect().width > 200).length"
# Controls that take the focus: none of a recorded page may, for nothing would answer them.
FOCUSABLE = """
    const controls = every.filter(e => e.matches('input, select, textarea'));
    return controls.filter(e => { e.focus(); return e.matches(':focus'); }).length;
"""


@cache
def front_end() -> str:
    """What marimo's own front end says: a page that computes may ask the hosts that are named there."""
    return "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in FRONT_END.rglob("*.js"))


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


class Visit(Sheet):
    """A tab that reaches the site's server and nothing else: what it asked outside, and what went wrong in it."""

    def __init__(self, context, address: str) -> None:
        super().__init__(context, address)
        self.outside: set[str] = set()
        self.page.on("request", self._asked)
        self.page.on("requestfailed", self._failed)
        self.page.on("response", lambda answer: self.errors.append(answer.url) if answer.status >= 400 else None)

    def _failed(self, request):
        if request.failure != "net::ERR_ABORTED":  # what a page still asked for when a click led on to the next
            self.errors.append(f"failed: {request.url}")

    def _asked(self, request):
        if not request.url.startswith((self.address, "data:", "blob:")):
            self.outside.add(urlsplit(request.url).hostname)

    def open(self, file: str, ready: str = ".c128a-lead"):
        self.page.goto(f"{self.address}/{file}")
        self.page.wait_for_selector(ready)
        return self


@pytest.fixture(scope="session")
def address(site):
    """A plain web server; the site lies under a path of it."""
    root = site.parents[2]
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(root)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/{site.relative_to(root)}"
    server.shutdown()


@pytest.fixture(scope="module")
def tab(browser, address):
    """A tab whose proxy is a closed port: nothing but this machine's own address is reached."""
    context = browser.new_context(proxy={"server": "http://127.0.0.1:9", "bypass": "127.0.0.1"})
    yield Visit(context, address)
    context.close()


@pytest.fixture
def visit(tab):
    """The tab, light, with nothing asked and nothing wrong so far."""
    tab.page.goto("about:blank")
    tab.look(dark=False, width=1280)
    tab.page.bring_to_front()
    tab.outside.clear()
    tab.errors.clear()
    return tab


@pytest.mark.parametrize("file", [*(f"{page}.html" for page in PAGES), f"01_width-{PRESET}.html"])
def test_a_recorded_page_is_whole_without_a_network_and_its_controls_stand_still(visit, file):
    assert visit.open(file).soon(lambda: visit.ask(CHARTS) > 0)
    assert visit.page.get_by_role("navigation", name="Site").get_by_role("link", name="All pages").is_visible()
    assert visit.soon(lambda: visit.ask(FOCUSABLE) == 0)
    assert (visit.outside, visit.errors) == (set(), [])


@pytest.mark.parametrize(("file", "ready"), [("index.html", "ul.cards"), ("01_width.html", ".c128a-lead")])
def test_the_site_is_dark_where_the_reader_asks_for_it(visit, file, ready):
    visit.look(dark=True, width=1280)
    visit.open(file, ready)
    bar = "document.querySelector('#site-bar') || document.body"
    behind = visit.page.evaluate(f"getComputedStyle({bar}).backgroundColor")
    assert max(map(int, behind.removeprefix("rgb(").removesuffix(")").split(","))) < 64
    assert visit.page.locator("body.dark-theme").count() == (file != "index.html")


def test_hover_and_downloads_of_a_recorded_page_hold_its_values(visit):
    visit.open(f"01_width-{PRESET}.html")
    strip = visit.page.locator("svg.marks").nth(5)  # which lengths get which width
    strip.scroll_into_view_if_needed()
    box = strip.bounding_box()
    tip = visit.page.locator("#vg-tooltip-element")
    for down in (0.35, 0.5, 0.65):
        visit.page.mouse.move(box["x"] + box["width"] * 0.75, box["y"] + box["height"] * down)
        if tip.count():
            break
    assert "32,896" in tip.inner_text()  # three quarters of 70,000 tokens lie where the width is 512
    rows = list(csv.DictReader(io.StringIO(visit.download("reachable widths CSV").decode())))
    assert [int(row["width"]) for row in rows] == [128, 256, 512, 640]  # capacity 640: 70,000 / 128 up to 128 columns


def test_links_and_keys_lead_through_the_pages_without_a_network(visit):
    visit.open("index.html", "ul.cards")
    visit.page.get_by_role("list", name="1 · How wide must a row be?").get_by_text("Model length 70,000").click()
    visit.page.wait_for_selector(".c128a-lead")
    assert "70,000 tokens" in visit.page.locator(".c128a-lead").inner_text()
    for link, file in (("As it opens", "01_width"), ("Layout", "02_layout")):
        visit.page.get_by_role("link", name=link, exact=True).first.click()
        visit.page.wait_for_url(f"**/{file}.html")
        visit.page.wait_for_selector(".c128a-lead")
    visit.page.get_by_role("link", name="All pages").click()
    visit.page.wait_for_url("**/index.html")
    visit.page.keyboard.press("Tab")
    assert visit.page.evaluate("document.activeElement.textContent") == "0 · From a token to a cell"
    visit.page.keyboard.press("Enter")
    visit.page.wait_for_url("**/00_start.html")
    assert (visit.outside, visit.errors) == (set(), [])


@pytest.mark.parametrize("page", LIVE)
def test_a_page_that_computes_shows_its_recording_until_the_runtime_has_come(visit, page):
    visit.open(f"live/{page}.html")
    assert visit.soon(lambda: visit.ask(CHARTS) > 0)
    visit.page.get_by_text("Failed to start the notebook runtime").first.wait_for()
    assert visit.page.get_by_role("link", name="Recorded page").get_attribute("href") == f"../{page}.html"
    assert visit.outside and [host for host in visit.outside if host not in front_end()] == []
    assert [text for text in visit.errors if text.startswith(f"failed: {visit.address}")] == []
