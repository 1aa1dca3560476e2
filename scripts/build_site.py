"""Write the workbook as a folder of files that any web server can hold: `python scripts/build_site.py [site]`.

    index.html                  links everything
    01_width.html …             each page as recorded, and each of its cases, 01_width-len_70000.html …
    live/01_width.html …        pages that compute in the browser, for readers who are online
    notebooks/01_width.ipynb …  each page for Jupyter
    assets/, public/            marimo's front end; this package and the records for the pages in live/

All addresses are relative, so the folder works under any path. Nothing but live/ asks for the network.
"""

from __future__ import annotations

import argparse
import logging
import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from marimo._export.exporter import Exporter
from sitebuild import browser, index, jupyter, static
from sitebuild.cases import IN_BROWSER, JUPYTER, LIVE, Case, cases
from sitebuild.run import run

from c128a.case import PRESETS
from c128a.ui.page import PAGES


def build(site: Path, presets: tuple[str, ...]) -> list[Case]:
    """Write the site with these presets as cases; a site that is there already is replaced."""
    if site.exists():
        if not (site / "assets").is_dir():
            raise SystemExit(f"{site} is there and is no site (it holds no assets/); it is left alone")
        shutil.rmtree(site)
    Exporter().export_assets(site)
    (site / "CLAUDE.md").unlink(missing_ok=True)  # a note for those who work on the front end
    for folder in (LIVE, JUPYTER):
        (site / folder).mkdir()
    all_cases = cases(presets)
    files = {(case.page, case.name): case.file for case in all_cases}

    def link(page: str, values: Mapping[str, Any]) -> str:
        return files.get((page, str(values.get("preset"))), f"{page}.html")

    wheel = browser.write_wheel(site)
    browser.write_records(site)
    for case in all_cases:
        ran = run(case, link)
        siblings = [other for other in all_cases if other.page == case.page]
        (site / case.file).write_text(static.page(ran, case, siblings), encoding="utf-8")
        if not case.name and case.page in IN_BROWSER:
            (site / LIVE / case.file).write_text(browser.page(ran, case, wheel), encoding="utf-8")
    for page, stub in browser.stubs(set(PAGES) - set(IN_BROWSER)).items():
        (site / LIVE / f"{page}.html").write_text(stub, encoding="utf-8")
    for page in PAGES:
        (site / JUPYTER / f"{page}.ipynb").write_text(jupyter.page(page), encoding="utf-8")
    (site / "index.html").write_text(index.page(all_cases, site / "assets"), encoding="utf-8")
    return all_cases


def main() -> int:
    """Build, and say how much it is."""
    parser = argparse.ArgumentParser(description="Write the workbook as static files.")
    parser.add_argument("site", type=Path, nargs="?", default=Path("site"), help="the folder to write; default: site")
    parser.add_argument("--presets", nargs="*", choices=list(PRESETS), default=list(PRESETS), help="cases a page")
    options = parser.parse_args()
    # marimo warns, several times a page, that it makes no use of the title in the page's header.
    logging.getLogger("marimo").addFilter(lambda record: "script metadata is ignored" not in record.getMessage())
    began = time.monotonic()
    made = build(options.site, tuple(options.presets))
    size = sum(path.stat().st_size for path in options.site.rglob("*") if path.is_file())
    print(f"{options.site}: {len(made)} recorded pages, {size / 1e6:.0f} MB, {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
