"""The workbook's server and a Chromium, for scripts and tests that look at its pages."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
FLAGS += ["--disable-component-update", "--disable-sync"]
SESSION_TTL = 10  # seconds from the end of a page's connection to the end of its session, as in the Makefile

# Notes the moment of the last change anywhere in the page, shadow roots included, of the last change of a chart, and of
# the last key or click.
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
    const acted = () => { window.acted = performance.now(); };
    for (const act of ['keydown', 'click']) document.addEventListener(act, acted, true);
}"""


@contextmanager
def served(**environment: str) -> Iterator[tuple[str, int]]:
    """The address and the process id of a server with all pages; `environment` is added to that of this process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "marimo", "--log-level", "ERROR", "run", "notebooks", "--headless", "--no-token"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--session-ttl", str(SESSION_TTL)]
    environment = {**os.environ, "MALLOC_ARENA_MAX": "1", **environment}
    server = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 30
        while True:
            try:
                urllib.request.urlopen(address, timeout=5).close()
                break
            except OSError as error:
                if server.poll() is not None or time.monotonic() > end:
                    raise RuntimeError(f"marimo did not answer; its status is {server.returncode}") from error
                time.sleep(0.1)
        yield address, server.pid
    finally:
        server.terminate()
        server.wait(10)


def used(server: int) -> tuple[int, int]:
    """Resident memory in MB and threads of a process; needs Linux."""
    status = Path(f"/proc/{server}/status").read_text()
    resident_kib, threads = (int(re.findall(rf"^{name}:\s*(\d+)", status, re.M)[0]) for name in ("VmRSS", "Threads"))
    return resident_kib * 1024 // 10**6, threads


@contextmanager
def chromium(*flags: str) -> Iterator[Any]:
    """A headless Chromium, as Playwright's Browser, with these flags besides FLAGS."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS, *flags])
        yield browser
        browser.close()


def watch(page: Any) -> None:
    """Wait until an opened page is drawn, and note from then on when it changes: window.last, drawn and acted."""
    for _ in range(2):  # the second time the shadow roots are there
        page.evaluate(WATCH)
        settle(page, 1500)


def settle(page: Any, quiet_ms: int = 300) -> None:
    """Wait until nothing has changed for a while on a page that is watched."""
    while page.evaluate("performance.now() - window.last") < quiet_ms:
        page.wait_for_timeout(40)
