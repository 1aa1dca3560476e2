"""Let the cells of a page run in Jupyter, where marimo's own server is not there to answer them. Needs marimo.

A page asks marimo for its address, for states that controls share, and for stacks of outputs. In Jupyter the address is
a dict of settings, a state keeps the value it began with, and a stack shows its parts one under another, so that charts
reach Jupyter as Vega-Lite and text as HTML. Controls have no server to talk to and are left out.

    from c128a.ui import jupyter
    jupyter.begin({"seq": 100_000, "policy": "aligned"})
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from html import unescape
from typing import Any

import marimo as mo

from c128a.ui.picture import Picture


class Address:
    """The settings, in place of the parameters of a page's address. What a page writes back is dropped.

    >>> Address({"seq": 5}).to_dict()
    {'seq': '5'}
    """

    def __init__(self, settings: Mapping[str, object]) -> None:
        self._settings = {name: str(value) for name, value in settings.items()}

    def to_dict(self) -> dict[str, str]:
        """Names and values, as text."""
        return dict(self._settings)

    def get(self, name: str, default: str | None = None) -> str | None:
        """One value."""
        return self._settings.get(name, default)

    def set(self, name: str, value: str) -> None:
        """Nothing: there is no address to write to."""


class Stack:
    """Outputs that Jupyter shows one under another."""

    def __init__(self, parts: Iterable[Any]) -> None:
        self.parts = list(parts)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.parts)

    def style(self, *_: Any, **__: Any) -> Stack:
        """Itself: a box around the parts is marimo's."""
        return self

    @property
    def text(self) -> str:
        """The HTML of the parts, for a page that puts them into HTML of its own."""
        return "".join(getattr(part, "text", "") for part in self.parts)

    def shown(self) -> Iterator[Any]:
        """What Jupyter can show: of HTML that holds elements of marimo, the charts in it."""
        for part in self.parts:
            html = "" if part is None else str(getattr(part, "text", ""))
            if isinstance(part, Stack):
                yield from part.shown()
            elif "<marimo-" in html:
                yield from (Picture(json.loads(unescape(spec))) for spec in re.findall(r"data-spec='([^']+)'", html))
            elif part is not None:
                yield part

    def _ipython_display_(self) -> None:
        from IPython.display import display  # type: ignore[import-not-found]

        for part in self.shown():
            display(part)


def stack(parts: Any, *_: Any, **__: Any) -> Stack:
    """In place of marimo's vstack, hstack, accordion and callout: the parts, of a dict its values."""
    if isinstance(parts, Stack):
        return parts
    return Stack(parts.values() if isinstance(parts, dict) else parts if isinstance(parts, list | tuple) else [parts])


def begin(settings: Mapping[str, object] | None = None) -> None:
    """Make marimo's functions do without its server, for the rest of this process.

    settings: what the page's address would hold. Names and bounds are those of the page; it says what it cannot use.
    """
    address = Address(settings or {})
    instead: dict[str, Any] = {
        "query_params": lambda: address,
        "state": lambda value, **_: (lambda: value, lambda _: None),
        "vstack": stack,
        "hstack": stack,
        "accordion": stack,
        "callout": stack,
    }
    for name, function in instead.items():
        setattr(mo, name, function)
