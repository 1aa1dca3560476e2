"""What every page has: header, notes, sentences, downloads, the command that reproduces a point. Needs marimo.

A page begins with

    values, notes = state.read(page.address(), FIELDS)

and ends with `remember(...)`, which writes the settings back into the address without running any cell again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

import marimo as mo
import pandas as pd

from c128a.case import PRESETS
from c128a.show.page import RECORDED, address  # noqa: F401 (pages take it from here)
from c128a.ui import state, theme

# File name, name in the header.
PAGES = {
    "01_width": "Width",
    "02_layout": "Layout",
    "03_kernel": "Kernel",
    "04_timing": "Timing",
    "05_review": "Review",
    "06_deployment": "Deployment",
}
SHARED = tuple(state.shared_fields())

LINK = "padding:.15rem .7rem;border-radius:1rem;border:1px solid {};text-decoration:none;white-space:nowrap;{}"


def header(page: str, title: str, lead: str, values: Mapping[str, state.Value]) -> mo.Html:
    """Links to the other pages that carry the shared values, the title, and the opening sentence (Markdown).

    page: a key of PAGES; the entry of the page itself is marked and is no link.
    """
    links = []
    for name, label in PAGES.items():
        if name == page:
            links.append(
                f'<span aria-current="page" style="{LINK.format("currentColor", "font-weight:600")}">{label}</span>'
            )
        else:
            href = escape(state.link(name, values, only=SHARED), quote=True)
            links.append(f'<a href="{href}" target="_self" style="{LINK.format(theme.FAINT, "")}">{label}</a>')
    nav = (
        f'<nav aria-label="Pages" style="display:flex;flex-wrap:wrap;gap:.4rem;font-size:.9rem">{"".join(links)}</nav>'
    )
    opening = mo.Html(f'<div class="c128a-lead" style="font-size:1.15rem;max-width:60rem">{mo.md(lead).text}</div>')
    return mo.vstack([mo.Html(nav), mo.md(f"# {title}"), opening], gap=0.75)


def notes(messages: Sequence[str], *, kind: str = "warn") -> mo.Html | None:
    """A callout that lists what could not be used, or nothing where there is nothing to say."""
    if not messages:
        return None
    body = "".join(f"<li>{escape(message)}</li>" for message in messages)
    return mo.callout(mo.Html(f'<ul style="margin:0;padding-left:1.2rem">{body}</ul>'), kind=kind)  # type: ignore[arg-type]


def alarm(message: str | None) -> mo.Html | None:
    """An error state that cannot be overlooked: white on dark red, with role=alert; nothing where there is no message.

    The message is Markdown.
    """
    if message is None:
        return None
    style = f"background:{theme.ALARM};color:#FFFFFF;padding:.8rem 1.2rem;border-radius:.4rem;font-size:1.05rem"
    text = mo.md("⚠ " + message).text
    return mo.Html(f'<div role="alert" class="c128a-alarm" style="{style}">{text}</div>')


def user_text(text: str) -> str:
    """Text of a user for Markdown: shown as it was typed, without a mark-up, a link or a formula coming of it.

    This is the one place where it is escaped: every sign but letters, digits and blanks becomes a character reference.

    >>> user_text("$X <b>")
    '&#36;X &#60;b&#62;'
    """
    return "".join(sign if sign.isalnum() else " " if sign.isspace() else f"&#{ord(sign)};" for sign in text)


def stack(*parts: Any) -> mo.Html | None:
    """The parts under each other, without those that are None; nothing at all where all are."""
    shown = [part for part in parts if part is not None]
    return mo.vstack(shown) if shown else None


def columns(parts: Sequence[Any], **options: Any) -> mo.Html:
    """`mo.hstack` for parts with charts: a column may be narrower than the chart that was drawn in it before."""
    return mo.hstack(parts, **options).style({"--c128a-columns": "1"})


def sentence(text: str) -> mo.Html:
    """The line under a picture that says what to see. The text is Markdown, computed from what is drawn."""
    return mo.Html(f'<div class="c128a-sentence" style="max-width:60rem">{mo.md(text).text}</div>')


def downloads(
    frame: pd.DataFrame | Callable[[], pd.DataFrame], name: str, meta: Mapping[str, Any] | None = None, what: str = ""
) -> mo.Html:
    """Buttons for a chart's data as CSV, and as JSON with the settings under "settings" and the data under "rows".

    frame: the data, or a function that makes them on demand; name: the file name without its suffix; what: the data in
    words, for the buttons.

    The bytes are made when the button is pressed, so that a page does not pay for them at each change.
    """
    settings = dict(meta or {})

    def made() -> pd.DataFrame:
        return frame() if callable(frame) else frame

    kinds = {
        "CSV": (lambda: to_csv(made()), "text/csv"),
        "JSON": (lambda: to_json(made(), settings), "application/json"),
    }
    buttons = [
        mo.download(
            make() if RECORDED else make,
            filename=f"{name}.{kind.lower()}",
            mimetype=mimetype,
            label=f"{what} {kind}".strip(),
        )
        for kind, (make, mimetype) in kinds.items()
    ]
    return mo.hstack(buttons, justify="start", gap=0.5)


def to_csv(frame: pd.DataFrame) -> bytes:
    """The frame as CSV in UTF-8, without an index.

    >>> to_csv(pd.DataFrame({"width": [128, 256]}))
    b'width\\n128\\n256\\n'
    """
    return frame.to_csv(index=False).encode()


def to_json(frame: pd.DataFrame, settings: Mapping[str, Any]) -> bytes:
    """The settings and the rows of the frame as one JSON object in UTF-8.

    >>> to_json(pd.DataFrame({"width": [128]}), {"seq": 5})
    b'{"settings": {"seq": 5}, "rows": [{"width": 128}]}'
    """
    rows = json.loads(frame.to_json(orient="records"))
    return json.dumps({"settings": dict(settings), "rows": rows}).encode()


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, marked: int | None = None, label: str) -> mo.Html:
    """A plain table: numbers right-aligned, one row marked by weight, a bar and aria-current; a long one scrolls.

    columns: headings; rows: cells as text, escaped here; label: what a screen reader announces.
    """
    cell = "padding:.2rem .4rem;text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap;"
    head = "".join(f'<th scope="col" style="{cell}font-weight:600">{escape(name)}</th>' for name in columns)
    body = []
    for at, row in enumerate(rows):
        here = at == marked
        style = f"font-weight:700;box-shadow:inset 4px 0 {theme.HERE};background:{theme.HERE}1F" if here else ""
        cells = "".join(f'<td style="{cell}">{escape(text)}</td>' for text in row)
        body.append(f'<tr style="{style}"{" aria-current=true" if here else ""}>{cells}</tr>')
    region = f'tabindex="0" role="region" aria-label="{escape(label, quote=True)}"'
    return mo.Html(
        f'<div {region} style="max-height:20rem;overflow:auto">'
        f'<table style="border-collapse:collapse;font-size:.9rem">'
        f'<thead style="border-bottom:1px solid {theme.GREY}"><tr>{head}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def command(text: str, what: str = "The same from a shell:") -> mo.Html:
    """A command in a block that can be copied and wraps where it is long, with a line above that says what it gives."""
    block = mo.md(f"{what}\n\n```bash\n{text}\n```").text
    return mo.Html(f'<div class="c128a-command">{block}</div>')


def panel(*rows: Sequence[Any] | mo.Html) -> mo.Html:
    """The controls of a page in one box, one row under another; a list of controls wraps where the window is narrow."""
    lines = [
        row if isinstance(row, mo.Html) else mo.hstack(row, justify="start", align="center", wrap=True, gap=1.75)
        for row in rows
    ]
    box = {"border": f"1px solid {theme.FAINT}", "border-radius": ".5rem", "padding": ".9rem 1.1rem"}
    return mo.vstack(lines, gap=0.9).style(box)


def preset_menu(value: str, on_change: Callable[[Any], None]) -> mo.ui.dropdown:
    """The menu of presets; its value is the preset's name in the URL, "free" for none."""
    options = {"free values": "free", **{preset.title: name for name, preset in PRESETS.items()}}
    chosen = next(title for title, name in options.items() if name == value)
    return mo.ui.dropdown(options, value=chosen, label="Preset", on_change=on_change)


def token_slider(value: int, on_change: Callable[[Any], None], *, label: str, most: int) -> mo.ui.slider:
    """A slider over `state.token_ladder`; put a `token_input` beside it, which shows the value."""
    steps = state.token_ladder(most, value)
    return mo.ui.slider(steps=steps, value=value, label=label, full_width=True, on_change=on_change)


def token_input(
    value: int, on_change: Callable[[Any], None] | None = None, *, label: str, least: int, most: int
) -> mo.ui.number:
    """Any token count between the bounds; an arrow key moves it by one."""
    return mo.ui.number(least, most, step=1, value=value, label=label, on_change=on_change)


class Still(mo.Html):
    """A control to show, and nothing to read: the cells that show it do not run again when its value changes.

    For a control whose `on_change` says all. Keeps the control alive, which marimo itself does for named ones only.
    """

    def __init__(self, control: Any) -> None:
        super().__init__(control.text)
        self.control = control


def remember(values: Mapping[str, state.Value]) -> None:
    """Write the settings into the address: only those that changed. Call it in a cell of its own."""
    if mo.app_meta().mode is None:
        return
    params = mo.query_params()
    for name, value in values.items():
        if params.get(name) != str(value):
            params.set(name, str(value))
