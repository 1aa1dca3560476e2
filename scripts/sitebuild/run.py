"""Run a page as marimo's exporter does, with the settings of a case in its address.

marimo's own exporter opens a page with an empty address, in a process of its own. Here the page finds the settings of a
case, and runs in a thread of this process, so that torch is imported once for all pages and not forty times.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import marimo as mo
from marimo._ast.app import InternalApp
from marimo._config.manager import get_default_config_manager
from marimo._export import file as exporter
from marimo._export.requests import NotebookExecutionOptions, RunNotebookRequest
from marimo._export.serialization import serialize_notebook_snapshot
from marimo._runtime.commands import AppMetadata
from marimo._schemas.export_options import NotebookExportSnapshot
from marimo._session.model import SessionMode
from marimo._session.notebook import load_notebook

from c128a.ui import state
from sitebuild.cases import Case, notebook

Link = Callable[[str, Mapping[str, Any]], str]


@dataclass(frozen=True)
class Ran:
    """A page that has run: its source and what its cells showed."""

    app: InternalApp
    filename: str
    display: Any
    snapshot: NotebookExportSnapshot


@contextmanager
def as_a_file(settings: Mapping[str, str], link: Link) -> Iterator[None]:
    """Pages that run within find `settings` in their address, link to files, and carry their downloads with them.

    A download is otherwise made when its button is pressed, which asks a running Python.
    """
    button = mo.download

    def metadata(**known: Any) -> AppMetadata:
        return AppMetadata(**{**known, "query_params": dict(settings)})

    def download(data: Any, *args: Any, **kwargs: Any) -> Any:
        return button(data() if callable(data) else data, *args, **kwargs)

    with ExitStack() as patches:
        patches.enter_context(patch.object(exporter, "SessionMode", SimpleNamespace(EDIT=SessionMode.RUN)))
        patches.enter_context(patch.object(exporter, "AppMetadata", metadata))
        patches.enter_context(patch.object(mo, "download", download))
        patches.enter_context(patch.object(state, "link", lambda page, values, **_: link(page, values)))
        yield


def run(case: Case, link: Link) -> Ran:
    """Run the page of a case. Raises RuntimeError where a cell fails.

    link: the address of another page, from its name and the values that are carried along.
    """
    path = notebook(case.page)
    manager = load_notebook(str(path))
    options = NotebookExecutionOptions(cli_args={}, argv=None, persist_session=False)
    with as_a_file(case.settings, link):
        view, failed = asyncio.run(exporter.run_notebook(RunNotebookRequest(file_manager=manager, options=options)))
    if failed:
        raise RuntimeError(f"page {case.page} with {dict(case.settings)}: a cell failed; see above")
    snapshot = serialize_notebook_snapshot(manager.app, view, drop_virtual_file_outputs=False)
    display = get_default_config_manager(current_path=str(path)).get_config()["display"]
    return Ran(manager.app, str(path), display, snapshot)
