"""One picture of the top of each page, for the README: `python scripts/screenshots.py [docs/images]`. Needs Chromium.

Each page is shown as it opens, 1280 pixels wide and light: the sentence, the controls and the first pictures, up to a
heading.
"""

import sys
from pathlib import Path

from workbook import ROOT, chromium, served

from c128a.show.page import PAGES

WIDTH, HEIGHT = 1280, 1150  # pixels
TOP, LEAST = 46, 600  # above TOP lie marimo's own buttons; a picture ends before the last heading below LEAST
QUIET_MS = 1_500  # a page counts as drawn when its number of marks has not changed for this long
MARKS = """() => {
    const count = root => [...root.querySelectorAll('*')].reduce(
        (sum, element) => sum + 1 + (element.shadowRoot ? count(element.shadowRoot) : 0), 0);
    return count(document);
}"""
HEADINGS = "[...document.querySelectorAll('h2')].map(heading => heading.getBoundingClientRect().top)"

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "docs" / "images")
folder.mkdir(parents=True, exist_ok=True)
with served() as (address, _), chromium() as browser:
    for name in PAGES:
        tab = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        tab.goto(f"{address}/?file={name}.py")
        tab.wait_for_selector(".c128a-lead", timeout=60_000)
        drawn = -1
        while drawn != (drawn := tab.evaluate(MARKS)):
            tab.wait_for_timeout(QUIET_MS)
        end = max((top for top in tab.evaluate(HEADINGS) if LEAST < top < HEIGHT), default=HEIGHT)
        path = folder / f"{name}.png"
        tab.screenshot(path=path, clip={"x": 0, "y": TOP, "width": WIDTH, "height": int(end) - 12 - TOP})
        tab.close()
        print(f"{path}: {path.stat().st_size / 1000:.0f} kB")
