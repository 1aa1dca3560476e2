"""Pages for Jupyter: the cells of a page, in the order in which they depend on each other."""

from __future__ import annotations

import json
from typing import Any

from marimo._ast.app import InternalApp
from marimo._ast.load import load_app
from marimo._runtime.dataflow import topological_sort

from sitebuild.cases import card, notebook

KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
HOW = """Jupyter runs the cells from top to bottom and once: controls are shown by marimo only. To see another case, \
change the settings below and run all cells. The names are those of the page's address."""
BEGIN = """from c128a.ui import jupyter

jupyter.begin({})  # for example {"preset": "len_70000"} or {"seq": 100_000}"""


def cell(kind: str, name: str, text: str) -> dict[str, Any]:
    """One cell of notebook format 4.5."""
    made: dict[str, Any] = {"cell_type": kind, "id": name, "metadata": {}, "source": text.splitlines(keepends=True)}
    return made | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def page(name: str) -> str:
    """The whole file."""
    app = load_app(str(notebook(name)))
    if app is None:
        raise RuntimeError(f"page {name} holds no marimo app")
    graph = InternalApp(app).graph
    about = card(name)
    cells = [
        cell("markdown", "about", f"# {about.title}\n\n{about.description}\n\n{HOW}"),
        cell("code", "settings", BEGIN),
    ]
    ordered = topological_sort(graph, list(graph.cells))
    cells += [cell("code", f"cell-{at}", graph.cells[found].code.strip()) for at, found in enumerate(ordered, 1)]
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": KERNEL, "cells": cells}, indent=1)
