"""Pages as static HTML: what they showed, on marimo's front end, under a bar that leads to the other cases."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from marimo._export.exporter import Exporter
from marimo._export.requests import HTMLExportRequest
from marimo._schemas.export_options import HTMLExportOptions

from sitebuild.cases import IN_BROWSER, JUPYTER, LIVE, Case
from sitebuild.run import Ran

# The bar takes its height from the window, the page scrolls below it as before. Controls ask a running Python, so they
# are shown, and out of reach; charts and downloads work.
STYLE = """
<style>
  body { display: flex; flex-direction: column; height: 100vh; margin: 0 }
  #root { flex: 1; min-height: 0; position: relative; overflow: auto }
  #site-bar { font: 14px "PT Sans", sans-serif; padding: .45rem 1rem; border-bottom: 1px solid #8C8C8C; color: #1c2024;
    background: #F1F5F4; display: flex; flex-wrap: wrap; gap: .3rem .75rem; align-items: center }
  #site-bar a { color: #005A8C; text-underline-offset: 3px }
  #site-bar a:focus-visible { outline: 3px solid #E69F00; outline-offset: 2px }
  #site-bar [aria-current] { font-weight: 700; color: inherit; text-decoration: none }
  #site-bar .away { margin-left: auto }
  @media (prefers-color-scheme: dark) {
    #site-bar { color: #ECEEED; background: #232926 } #site-bar a { color: #7CC7F2 } }
  @media print { #site-bar { display: none } body { display: block; height: auto } }
</style>
"""
CONTROLS = ("slider", "number", "radio", "dropdown", "text", "text-area", "checkbox", "button", "form", "dict")
SCRIPT = """
<script>
  const controls = "CONTROLS";
  const still = () => document.querySelectorAll(controls).forEach(control => {
    const inside = control.shadowRoot;
    if (!inside || inside.querySelector(".pale")) return;
    control.inert = true;
    const pale = document.createElement("style");
    pale.className = "pale";
    pale.textContent = ".marimo > .contents > * { opacity: .6 }";
    inside.append(pale);
  });
  new MutationObserver(still).observe(document.documentElement, {childList: true, subtree: true});
</script>
""".replace("CONTROLS", ", ".join(f"marimo-{name}" for name in CONTROLS))


STILL = (
    '<span title="The controls of a recorded page stand still; its charts and downloads work.">Recorded cases:</span>'
)


def bar(case: Case, siblings: Sequence[Case]) -> str:
    """Links to the index, to the other cases of this page, and to the page's other forms."""
    links = ['<a href="index.html">All pages</a>', STILL]
    for other in siblings:
        current = ' aria-current="page"' if other == case else ""
        links.append(f'<a href="{escape(other.file)}"{current}>{escape(other.title)}</a>')
    if case.page in IN_BROWSER:
        links.append(f'<a class="away" href="{LIVE}/{case.page}.html">Live in the browser</a>')
    else:
        links.append(f'<a class="away" href="{JUPYTER}/{case.page}.ipynb">For Jupyter</a>')
    return f'<nav id="site-bar" aria-label="Cases">{"".join(links)}</nav>'


def page(ran: Ran, case: Case, siblings: Sequence[Case]) -> str:
    """The whole file."""
    html, _ = Exporter().export_as_html(
        HTMLExportRequest(
            filename=ran.filename,
            app_code=ran.app.to_py(),
            app_config=ran.app.config,
            snapshot=ran.snapshot,
            display_config=ran.display,
            options=HTMLExportOptions(files=(), include_code=False, asset_url="."),
        )
    )
    html = html.replace("</head>", f"{STYLE}{SCRIPT}</head>", 1)
    return html.replace("<body>", f"<body>{bar(case, siblings)}", 1)
