"""Two pictures of each page: `python scripts/screenshots.py [docs/images]`. Needs Chromium.

The README's shows a page as it opens, 1280 pixels wide and light: the sentence, the controls and the first pictures, up
to a heading. The card's, in the gallery of `marimo run notebooks`, shows the first picture, in a narrow window.
"""

import sys
from pathlib import Path

from workbook import ROOT, chromium, served, settle, watch

from c128a.show.page import PAGES

WIDTH, HEIGHT = 1280, 1150  # pixels
TOP, LEAST = 46, 600  # above TOP lie marimo's own buttons; a picture ends before the last heading below LEAST
CARD, RATIO, SMALL = 790, 1200 / 630, 200  # of a card: window and shape; pictures lower than SMALL are passed over
STATE = {"00_start": "&step=5"}  # where a page opens with less to see
HEADINGS = "[...document.querySelectorAll('h2')].map(heading => heading.getBoundingClientRect().top)"

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "docs" / "images")
with served() as (address, _), chromium() as browser:
    for name in PAGES:
        tab = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        tab.goto(f"{address}/?file={name}.py{STATE.get(name, '')}")
        tab.wait_for_selector(".c128a-lead", timeout=60_000)
        watch(tab)
        end = max((top for top in tab.evaluate(HEADINGS) if LEAST < top < HEIGHT), default=HEIGHT)
        clip = {"x": 0, "y": TOP, "width": WIDTH, "height": int(end) - 12 - TOP}
        tab.screenshot(path=folder / f"{name}.png", clip=clip)

        tab.set_viewport_size({"width": CARD, "height": 4 * HEIGHT})
        settle(tab, 1500)
        boxes = [chart.bounding_box() for chart in tab.locator("svg.marks").all()]
        top = next(box["y"] for box in boxes if box["height"] >= SMALL) - 12
        clip = {"x": 55, "y": top, "width": CARD - 110, "height": (CARD - 110) / RATIO}
        tab.screenshot(path=ROOT / "notebooks" / "__marimo__" / "assets" / name / "opengraph.png", clip=clip)
        tab.close()
