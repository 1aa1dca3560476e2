"""How fast a page answers, and whether many changes wear it out: `python scripts/page_check.py [PAGE …]`.

For each page: 30 key presses on its first slider and 30 clicks on marks of its pictures, each timed to the last change
of a chart; then 200 random changes of random controls, which must leave no error, with the memory of the browser (its
garbage collected) and of the server. Needs Chromium; other work on the machine shows.
"""

import argparse
import random
import statistics
import sys

from playwright.sync_api import Page
from workbook import chromium, served, settle, used, watch

from c128a.show.page import PAGES

TIMES = 30
HEAP_MIB = "() => { gc(); gc(); return performance.memory.usedJSHeapSize / 1048576; }"
CONTROLS = "[role=slider], [role=radio], [role=checkbox], input[type=number], input[role=spinbutton], select"


def answers(page: Page, rng: random.Random) -> str:
    """In words, how long keys on the first slider and clicks on marks of pictures take to change a chart."""
    slider, marks = page.get_by_role("slider"), page.locator("marimo-vega svg g.mark-rect path")

    def key(turn: int) -> None:
        slider.first.focus()
        page.keyboard.press("ArrowRight" if turn % 10 < 5 else "ArrowLeft")

    def click(_: int) -> None:
        marks.nth(rng.randrange(marks.count())).click(force=True)

    said = ""
    for what, target, act in (("keys", slider, key), ("clicks", marks, click)):
        times = []
        for turn in range(TIMES if target.count() else 0):
            act(turn)
            page.wait_for_timeout(60)
            settle(page)
            times.append(page.evaluate("window.drawn - window.acted"))
        if times := [passed for passed in times if passed > 0]:
            said += f"median {statistics.median(times):.0f} ms, slowest {max(times):.0f} ms of {len(times)} {what}; "
    return said


def change(page: Page, rng: random.Random) -> None:
    """One random change of one random control."""
    controls = [control for control in page.locator(CONTROLS).all() if control.is_visible() and control.is_enabled()]
    control = rng.choice(controls)
    if control.evaluate("e => e.tagName") == "SELECT":
        control.select_option(index=rng.randrange(control.locator("option").count()))
    elif control.get_attribute("role") in ("radio", "checkbox"):
        control.click()
    else:
        control.focus()
        page.keyboard.press(rng.choice(["ArrowUp", "ArrowDown", "ArrowRight", "ArrowLeft"]))
    page.wait_for_timeout(30)
    settle(page, 120)


def main() -> int:
    """Check the pages named on the command line, or all; 1 where one had an error."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("pages", nargs="*", metavar="PAGE", help="file names without .py; all where none is named")
    parser.add_argument("--changes", type=int, default=200, help="random changes a page (default 200)")
    options = parser.parse_args()
    failed = False
    with served() as (address, server), chromium("--enable-precise-memory-info", "--js-flags=--expose-gc") as browser:
        for name in options.pages or PAGES:
            page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
            errors: list[str] = []
            page.on("pageerror", lambda error, errors=errors: errors.append(str(error)))
            page.on("console", lambda m, errors=errors: m.type == "error" and errors.append(m.text[:200]))
            page.goto(f"{address}/?file={name}.py")
            page.wait_for_selector(".c128a-lead")
            watch(page)
            rng, heap, resident = random.Random(0), [], []
            said = answers(page, rng)
            for turn in range(options.changes + 1):
                if turn % max(options.changes // 4, 1) == 0:
                    heap.append(f"{page.evaluate(HEAP_MIB):.0f}")
                    resident.append(str(used(server)[0]))
                if turn < options.changes:
                    change(page, rng)
            alarms = len(errors) + page.locator("[data-testid=cell-error], .marimo-error").count()
            failed |= alarms > 0
            sizes = f"browser {' → '.join(heap)} MiB, server {' → '.join(resident)} MB"
            print(f"{name}: {said}{options.changes} changes, {alarms} errors; {sizes}", *errors[:3], flush=True)
            page.context.close()
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
