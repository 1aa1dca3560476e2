"""Write the workbook as a folder of files for any web server: `python scripts/build_site.py [site]`.

    index.html                  links everything
    01_width.html …             each page as it opens; page 1 also in each preset, as 01_width-len_70000.html
    live/01_width.html …        pages that compute in the browser, for readers who are online
    notebooks/01_width.ipynb …  each page for Jupyter
    assets/, public/            marimo's front end; this package and the records for the pages in live/

All addresses are relative, and nothing but live/ asks for the network. The site is built beside the folder and takes
its place when it is whole. Exit status: 0; 1 where a page fails; 2 where the folder holds something else than a site;
130 after Ctrl-C. All but 0 leave the folder as it was.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from html import escape
from pathlib import Path
from string import Template

from uv import find_uv_bin  # marimo asks uv which modules of this package a page in live/ needs

from c128a.case import PRESETS

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(path.stem for path in (ROOT / "notebooks").glob("*.py"))
IN_BROWSER = ("01_width", "02_layout", "03_kernel", "06_deployment")  # these compute without torch
IN_PRESETS = "01_width"
EXPORTS = {**os.environ, "C128A_SITE": "1", "UV": find_uv_bin()}
MARKER = ".c128a-site"  # the mark of a folder that may be replaced
BAR, STILL, CARD, INDEX = (
    (ROOT / "scripts" / "site" / f"{name}.html").read_text(encoding="utf-8")
    for name in ("bar", "still", "card", "index")
)

FRONT_END = re.compile(r"https://[^\"'\s]+/@marimo-team/frontend@[^/]+/dist")
BESIDE = re.compile(r'((?:href|src)=")\./')
NEEDED = re.compile(r"^# dependencies = .*$", re.M)
IN_A_BROWSER = '# dependencies = ["altair", "marimo", "pandas", "pyyaml"]'  # what this package imports there
PINNED = re.compile(r'(\\"(?:altair|pandas|pyyaml))==[^\\]+')  # at versions of this machine, which a browser may lack


def sources(folder: Path) -> Path:
    """A new folder for `marimo export`: pages, this package, and the records where a browser asks for them."""
    shutil.copytree(ROOT / "notebooks", folder, ignore=shutil.ignore_patterns("public", "__*__"))
    shutil.copytree(ROOT / "c128a", folder / "c128a", ignore=shutil.ignore_patterns("__pycache__"))
    data = shutil.copytree(ROOT / "data", folder / "public" / "data")
    names = sorted(path.stem for path in data.glob("*.json"))
    (data / "names.json").write_text(json.dumps(names), encoding="utf-8")  # a browser cannot list a folder
    for page in folder.glob("*.py"):
        page.write_text(NEEDED.sub(IN_A_BROWSER, page.read_text(encoding="utf-8"), count=1), encoding="utf-8")
    return folder


def export(pages: Path, kind: str, page: str, to: Path, *options: str) -> None:
    """Write a file by `marimo export`; raises SystemExit where it or a cell of the page fails."""
    command = [sys.executable, "-m", "marimo", "--log-level", "ERROR", "export", kind, f"{page}.py"]
    command += ["--output", str(to), "--no-sandbox", *options]
    done = subprocess.run(command, cwd=pages, env=EXPORTS, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"page {page} was not exported as {kind}:\n{done.stdout[-1000:]}{done.stderr[-3000:]}")


def write(path: Path, html: str, links: str, still: str = "") -> None:
    """Write a page under a bar of links; `still` puts its controls out of reach."""
    bar = f'<body><nav id="site-bar" aria-label="Site">{links}</nav>'
    html = html.replace("</head>", f"{BAR}{still}</head>", 1).replace("<body>", bar, 1)
    path.parent.mkdir(exist_ok=True)
    path.write_text(html, encoding="utf-8")


def live(folder: Path, page: str, site: Path) -> None:
    """Write a page that computes in the browser, from the folder that it was exported to."""
    shutil.copytree(folder, site, dirs_exist_ok=True)  # the same front end each time, and a wheel of its own
    html = PINNED.sub(r"\1", BESIDE.sub(r"\1../", (site / "index.html").read_text(encoding="utf-8")))
    links = f'<a href="../index.html">All pages</a> <a href="../{page}.html">Recorded page</a>'
    write(site / "live" / f"{page}.html", html, f"{links} Python comes from the network; until then see the recording.")


def recorded(source: Path, site: Path, cases: dict[str, str]) -> str:
    """Put its bar on a page in each of its cases, by file what it is called there; its card in the index."""
    page = source.stem
    forms = [f'<a href="live/{page}.html">live in the browser</a>'] if page in IN_BROWSER else []
    forms += [f'<a href="notebooks/{page}.ipynb" download>for Jupyter</a>']
    links = [f'<a href="{file}">{title}</a>' for file, title in cases.items()]
    every = f'<a href="index.html">All pages</a> Recorded: {" ".join(links)} Also: {" ".join(forms)}'
    for file in cases:
        html = FRONT_END.sub(".", (site / file).read_text(encoding="utf-8"))
        write(site / file, html, every.replace(f'"{file}"', f'"{file}" aria-current=page'), STILL)
    text = source.read_text(encoding="utf-8")
    told = {field: escape(said) for field, said in re.findall(r'^# (title|description) = "(.+)"$', text, re.M)}
    items = "".join(f"<li>{link}</li>" for link in links)
    return Template(CARD).substitute(told, file=f"{page}.html", cases=items, forms=" · ".join(forms))


def build(work: Path, presets: list[str]) -> Path:
    """Write the site into a folder below `work`, which takes what is needed on the way too."""
    pages, site = sources(work / "sources"), work / "site"
    (site / "notebooks").mkdir(parents=True)
    jobs = [("html-wasm", page, work / page / "index.html", "--execute") for page in IN_BROWSER]
    jobs += [("html", page, site / f"{page}.html", "--no-include-code") for page in PAGES]
    jobs += [("ipynb", page, site / "notebooks" / f"{page}.ipynb") for page in PAGES]
    cases = {page: {f"{page}.html": "As it opens"} for page in PAGES}
    for name in presets:
        file = f"{IN_PRESETS}-{name}.html"
        cases[IN_PRESETS][file] = escape(PRESETS[name].title)
        jobs.append(("html", IN_PRESETS, site / file, "--no-include-code", "--", "--preset", name))
    with ThreadPoolExecutor(min(os.cpu_count() or 1, 4)) as pool:
        list(pool.map(lambda job: export(pages, *job), jobs))  # a failure, or Ctrl-C, cancels what has not begun
    for page in IN_BROWSER:
        live(work / page, page, site)
    (site / "CLAUDE.md").unlink(missing_ok=True)  # for those who work on marimo's front end
    cards = [recorded(pages / f"{page}.py", site, cases[page]) for page in PAGES]
    fonts = {"lora": "Lora-*", "regular": "PTSans-Regular-*", "bold": "PTSans-Bold-*"}
    files = {name: next((site / "assets").glob(f"{pattern}.woff2")).name for name, pattern in fonts.items()}
    index = Template(INDEX).substitute(files, cards="".join(cards))
    (site / "index.html").write_text(index, encoding="utf-8")
    (site / MARKER).write_text("scripts/build_site.py wrote this folder and may replace it.\n", encoding="utf-8")
    return site


def refuse_a_foreign(folder: Path) -> None:
    """End with status 2 where there is something that this script did not write."""
    empty = folder.is_dir() and not any(folder.iterdir())
    if folder.exists() and not empty and not (folder / MARKER).is_file():
        print(f"{folder} is left alone: it is there, and is no site of this workbook (no {MARKER})", file=sys.stderr)
        sys.exit(2)


def main() -> int:
    """Build, and put the site in its place."""
    parser = argparse.ArgumentParser(description="Write the workbook as static files.")
    parser.add_argument("site", type=Path, nargs="?", default=Path("site"), help="the folder to write; default: site")
    parser.add_argument("--presets", nargs="*", choices=list(PRESETS), default=list(PRESETS), help="cases of page 1")
    options = parser.parse_args()
    site = options.site.resolve()
    refuse_a_foreign(site)
    site.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f".{site.name}-", dir=site.parent))
    try:
        new = build(work, options.presets)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # two folders get new names from here on: both or neither
        refuse_a_foreign(site)
        if site.exists():
            site.rename(work / "old")
        new.rename(site)
    except KeyboardInterrupt:
        return 130
    finally:
        shutil.rmtree(work, ignore_errors=True)
    size = sum(path.stat().st_size for path in site.rglob("*") if path.is_file())
    print(f"{options.site}: {size / 1e6:.0f} MB; serve it with python -m http.server --directory {options.site}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
