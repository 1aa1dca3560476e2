"""The first page of the site: six cards that link every file. Plain HTML and CSS, no script."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from c128a.ui.page import PAGES
from sitebuild.cases import IN_BROWSER, JUPYTER, LIVE, Case, card

TITLE = "How wide, where, and at what cost"
LEAD = (
    "DeepSeek-V4's heavily compressed attention (C128A) keeps one entry for every 128 tokens, and each step a builder "
    "writes, row by row, which entries every query may read. vLLM PR #50004 made these rows as narrow as the batch "
    "allows. These pages show what that changes, and what broke."
)

STYLE = """
%s
:root { color-scheme: light dark; --ink: #1c2024; --paper: #fff; --line: #8C8C8C; --faint: #8C8C8C3D; --link: #005A8C }
@media (prefers-color-scheme: dark) { :root { --ink: #ECEEED; --paper: #181C1A; --link: #7CC7F2 } }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.55 "PT Sans", "Noto Sans", sans-serif }
main { max-width: 68rem; margin: 0 auto; padding: 2.5rem 1.5rem 4rem }
h1, h2 { font-family: Lora, Georgia, serif; font-weight: 500; line-height: 1.25 }
h1 { font-size: 2.2rem; margin: 0 0 .8rem } h2 { font-size: 1.35rem; margin: 0 }
.lead { font-size: 1.15rem; max-width: 50rem }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(26rem, 1fr)); gap: 1.2rem; padding: 0;
  margin: 2rem 0 }
.cards > li { list-style: none; border: 1px solid var(--faint); border-radius: .5rem; padding: 1.1rem 1.3rem }
.cards p { margin: .4rem 0 .9rem }
a { color: var(--link); text-underline-offset: 3px }
a:focus-visible { outline: 3px solid #E69F00; outline-offset: 2px; border-radius: .2rem }
.cases { display: flex; flex-wrap: wrap; gap: .45rem; padding: 0; margin: 0 }
.cases li { list-style: none }
.cases a { display: block; border: 1px solid var(--line); border-radius: 1rem; padding: .1rem .7rem; font-size: .9rem;
  text-decoration: none; white-space: nowrap }
.cards .forms { font-size: .9rem; margin: .9rem 0 0 }
@media (max-width: 34rem) { .cards { grid-template-columns: 1fr } .cases a { white-space: normal } }
"""
FACE = "@font-face {{ font-family: {family}; font-weight: {weight}; src: url(assets/{file}) format('woff2') }}"
FONTS = (
    ("Lora", "400 700", "Lora-Variable*"),
    ("'PT Sans'", "400", "PTSans-Regular*"),
    ("'PT Sans'", "700", "PTSans-Bold*"),
)


def fonts(assets: Path) -> str:
    """The front end's own fonts, where it has them."""
    found = ((family, weight, sorted(assets.glob(f"{pattern}.woff2"))) for family, weight, pattern in FONTS)
    return "\n".join(FACE.format(family=a, weight=b, file=files[0].name) for a, b, files in found if files)


def page(cases: Sequence[Case], assets: Path) -> str:
    """The whole file. assets: the folder of the front end's files."""
    cards = []
    for name in PAGES:
        about = card(name)
        here = [case for case in cases if case.page == name]
        pills = "".join(f'<li><a href="{escape(case.file)}">{escape(case.title)}</a></li>' for case in here)
        forms = [f'<a href="{JUPYTER}/{name}.ipynb" download>for Jupyter</a>']
        if name in IN_BROWSER:
            forms.insert(0, f'<a href="{LIVE}/{name}.html">live in the browser</a>')
        cards.append(
            f'<li><h2><a href="{name}.html">{escape(about.title)}</a></h2><p>{escape(about.description)}</p>'
            f'<ul class="cases" aria-label="Cases of {escape(about.title)}">{pills}</ul>'
            f'<p class="forms">Also: {" · ".join(forms)}</p></li>'
        )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>C128A: {TITLE.lower()}</title>
<link rel="icon" href="favicon.ico">
<style>{STYLE % fonts(assets)}</style>
</head>
<body><main>
<h1>{TITLE}</h1>
<p class="lead">{escape(LEAD)}</p>
<ul class="cards">{"".join(cards)}</ul>
<p>These files are recordings: every picture can be hovered, and the data behind it downloaded, but the controls stand
still. The cases are the presets of the workbook. A page that is live in the browser fetches Python from the network
first, some tens of megabytes; a page for Jupyter needs this package installed. With a checkout,
<code>make workbook</code> opens all of it, live timings included.</p>
</main></body>
</html>
"""
