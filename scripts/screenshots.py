"""One picture of the top of each page, for the README: `python scripts/screenshots.py [docs/images]`. Needs Chromium.

Starts the workbook on a free port, opens each page in its default state, 1280 pixels wide and light, and writes
NN_name.png: the sentence, the controls and the first pictures, up to a heading.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import sync_playwright

from c128a.show.page import PAGES

ROOT = Path(__file__).resolve().parents[1]
WIDTH, HEIGHT = 1280, 1150  # pixels
TOP, LEAST = 46, 600  # above TOP lie marimo's own buttons; a picture ends before the last heading below LEAST
QUIET_MS = 1_500  # a page counts as drawn when its number of marks has not changed for this long
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
MARKS = """() => {
    const count = root => [...root.querySelectorAll('*')].reduce(
        (sum, element) => sum + 1 + (element.shadowRoot ? count(element.shadowRoot) : 0), 0);
    return count(document);
}"""
HEADINGS = "[...document.querySelectorAll('h2')].map(heading => heading.getBoundingClientRect().top)"


@contextmanager
def workbook() -> Iterator[str]:
    """The address of a server with all pages; ended on leaving."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        "-m",
        "marimo",
        "run",
        "notebooks",
        "--headless",
        "--no-token",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
    ]
    server = subprocess.Popen(
        [sys.executable, *command], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(300):
            try:
                urllib.request.urlopen(address, timeout=5).close()
                break
            except OSError:
                time.sleep(0.1)
        else:
            raise SystemExit("marimo did not answer within 30 s")
        yield address
    finally:
        server.terminate()
        server.wait(10)


def main() -> int:
    """Take the pictures."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "docs" / "images")
    folder.mkdir(parents=True, exist_ok=True)
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with workbook() as address, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=FLAGS)
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
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
