"""How fast a page answers a key, and whether many changes wear it out: `python scripts/page_check.py [PAGE …]`.

For each page: 30 key presses on the sequence length, each timed from the key to the last change of a chart (median,
and the slowest); then 200 random changes of random controls, which must leave no error, and whose memory is reported,
the browser's after its garbage was collected and the server's. Needs Chromium; other work on the machine shows.
"""

import argparse
import random
import shutil
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("01_width", "02_layout", "03_kernel", "04_timing", "05_review", "06_deployment")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
FLAGS += ["--disable-sync", "--enable-precise-memory-info", "--js-flags=--expose-gc"]
PRESSES = 30

# Notes the moment of the last change anywhere in the page, shadow roots included, of the last change of a chart, and of
# the last key.
WATCH = """() => {
    window.last = window.drawn = performance.now();
    if (window.note) window.note.disconnect();
    const chart = node => node instanceof SVGElement || (node.querySelector && node.querySelector('svg.marks'));
    const note = window.note = new MutationObserver(records => {
        window.last = performance.now();
        if (records.some(r => r.target instanceof SVGElement || [...r.addedNodes].some(chart)))
            window.drawn = window.last;
    });
    const all = {subtree: true, childList: true, attributes: true, characterData: true};
    const watch = root => { note.observe(root, all);
        root.querySelectorAll('*').forEach(e => e.shadowRoot && watch(e.shadowRoot)); };
    watch(document);
    document.addEventListener('keydown', () => { window.key = performance.now(); }, true);
}"""
CONTROLS = "[role=slider], [role=radio], [role=checkbox], input[type=number], input[role=spinbutton], select"


def settle(page: Page, quiet_ms: int = 300) -> None:
    """Wait until nothing has changed for a while."""
    while page.evaluate("performance.now() - window.last") < quiet_ms:
        page.wait_for_timeout(40)


def latency(page: Page) -> list[float]:
    """Milliseconds from each key press to the last change of a chart after it; a key without one is left out."""
    slider = page.get_by_role("slider").first
    slider.focus()
    times = []
    for turn in range(PRESSES):
        page.keyboard.press("ArrowRight" if turn % 10 < 5 else "ArrowLeft")
        page.wait_for_timeout(60)
        settle(page)
        passed = page.evaluate("window.drawn - window.key")
        if passed > 0:
            times.append(passed)
    return times


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


def resident_mib(pid: int) -> float:
    """Resident memory of a process, in MiB."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / 2**20


def heap_mib(page: Page) -> float:
    """The browser's heap for the page after a collection, in MiB."""
    return page.evaluate("() => { gc(); gc(); return performance.memory.usedJSHeapSize / 1048576; }")


def main() -> int:
    """Check the pages named on the command line, or all; 1 where one had an error."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("pages", nargs="*", metavar="PAGE", help="file names without .py; all where none is named")
    parser.add_argument("--changes", type=int, default=200, help="random changes a page (default 200)")
    options = parser.parse_args()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    arguments = ["run", "notebooks", "--headless", "--host", "127.0.0.1", "--port", str(port), "--no-token"]
    server = subprocess.Popen([sys.executable, "-m", "marimo", *arguments], cwd=ROOT, stdout=subprocess.DEVNULL)
    failed = False
    try:
        for _ in range(300):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}", timeout=5).close()
                break
            except OSError:
                time.sleep(0.1)
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
            for name in options.pages or PAGES:
                page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
                errors: list[str] = []
                page.on("pageerror", lambda error, errors=errors: errors.append(str(error)))
                page.on("console", lambda m, errors=errors: m.type == "error" and errors.append(m.text[:200]))
                page.goto(f"http://127.0.0.1:{port}/?file={name}.py")
                page.wait_for_selector(".c128a-lead")
                page.evaluate(WATCH)
                settle(page, 1500)
                page.evaluate(WATCH)
                text = f"{name}: "
                if page.get_by_role("slider").count():
                    times = latency(page)
                    text += (
                        f"median {statistics.median(times):.0f} ms, slowest {max(times):.0f} ms of {len(times)} keys; "
                    )
                rng, sizes = random.Random(0), []
                for turn in range(options.changes):
                    if turn % max(options.changes // 4, 1) == 0:
                        sizes.append((heap_mib(page), resident_mib(server.pid)))
                    change(page, rng)
                sizes.append((heap_mib(page), resident_mib(server.pid)))
                alarms = page.locator("[data-testid=cell-error], .marimo-error").count()
                failed |= bool(errors or alarms)
                text += f"{options.changes} changes, {len(errors) + alarms} errors; browser "
                text += " → ".join(f"{heap:.0f}" for heap, _ in sizes) + " MiB, server "
                print(text + " → ".join(f"{size:.0f}" for _, size in sizes) + " MiB", *errors[:3], flush=True)
                page.context.close()
            browser.close()
    finally:
        server.terminate()
        server.wait(10)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
