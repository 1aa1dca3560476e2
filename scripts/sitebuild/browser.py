"""Pages that compute in the browser (WebAssembly): online, Python and its packages come from marimo's content network.

This package travels along as a wheel that asks for neither torch nor triton. Until Python has started, or where the
network is cut off, the reader sees what the page showed when it was exported.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from shutil import copyfile

from marimo._environments import script_metadata
from marimo._export.exporter import Exporter
from marimo._export.local_modules import LocalModule
from marimo._export.local_wheels import auto_wheel_dependencies, with_wheel_dependencies, write_pure_python_wheel
from marimo._export.requests import WASMExportRequest
from marimo._schemas.export_options import WASMExportOptions

from c128a.bench import records
from sitebuild.cases import ROOT, Case
from sitebuild.run import Ran
from sitebuild.static import STYLE

PACKAGE = ROOT / "c128a"
NEEDS = ("altair", "pandas")  # of what the package imports there; both come with the runtime

MOVED = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Recorded page</title>
<meta http-equiv="refresh" content="0; url=../{page}.html"></head>
<body><a href="../{page}.html">This page does not compute in a browser; here is the recorded one.</a></body></html>
"""


def write_wheel(site: Path) -> Path:
    """Pack this package where the pages look for it: public/wheels beside the front end's assets."""
    wheels = site / "public" / "wheels"
    wheels.mkdir(parents=True, exist_ok=True)
    files = tuple(sorted(PACKAGE.rglob("*.py")))
    return write_pure_python_wheel(LocalModule("c128a", PACKAGE, "package", ROOT, files), wheels)


def write_records(site: Path) -> None:
    """Copy data/ to where c128a.records looks for it in a browser, which cannot list a folder: so with the names."""
    data = site / "public" / "data"
    data.mkdir(parents=True, exist_ok=True)
    for name in records.names():
        copyfile(records.folder() / f"{name}.json", data / f"{name}.json")
    (data / "names.json").write_text(json.dumps(records.names()), encoding="utf-8")


def source(code: str, wheel: Path) -> str:
    """The page's code with a header that installs the wheel and what it needs there."""
    header = script_metadata.loads(code) or {}
    header["dependencies"] = [*header["dependencies"], *NEEDS]
    code = script_metadata.replace_block(code, script_metadata.dumps(header))
    return with_wheel_dependencies(code, auto_wheel_dependencies([wheel]))


def bar(case: Case) -> str:
    """Links back to the index and to the recorded page, and what to expect."""
    said = "Live: Python comes from the network and starts in this browser. Until then you see the recording."
    links = f'<a href="../index.html">All pages</a><a href="../{case.file}">Recorded page</a>'
    return f'<nav id="site-bar" aria-label="Site">{links}<span>{said}</span></nav>'


def page(ran: Ran, case: Case, wheel: Path) -> str:
    """The whole file, for a folder below the one with the assets."""
    html, _ = Exporter().export_as_wasm(
        WASMExportRequest(
            filename=ran.filename,
            app_config=ran.app.config,
            display_config=ran.display,
            code=source(ran.app.to_py(), wheel),
            options=WASMExportOptions(mode="run", show_code=False, asset_url=".."),
            session_snapshot=ran.snapshot.session,
            notebook_snapshot=ran.snapshot.notebook,
        )
    )
    return html.replace("</head>", f"{STYLE}</head>", 1).replace("<body>", f"<body>{bar(case)}", 1)


def stubs(pages: Iterable[str]) -> dict[str, str]:
    """Pages that need torch or a GPU: a file of that name that leads on to the recorded page."""
    return {page: MOVED.format(page=page) for page in pages}
