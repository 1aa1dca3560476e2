"""What every page has: its state in the address, header, controls, sentences, downloads, pictures to click. Torch-free.

A page declares its parameters once, as fields, and opens with what the address holds.

>>> fields = {"seq": shared_fields()["seq"], "policy": shared_fields()["policy"]}
>>> read({"seq": "32896", "policy": "pow2"}, fields)
({'seq': 32896, 'policy': 'pow2'}, [])
>>> read({"seq": "-5"}, fields)[1]
['seq is -5 in the address; it must be a whole number from 0 to 1,048,576. Shown: 32,768.']
>>> link("02_layout", {"seq": 32896, "layout": "packed"})
'?file=02_layout.py&seq=32896&layout=packed'
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from html import escape, unescape
from pathlib import Path
from textwrap import dedent
from typing import Any
from urllib.parse import urlencode

import altair as alt
import marimo as mo
import pandas as pd

from c128a.case import MAX_MODEL_LEN, PRESETS
from c128a.layout import LAYOUTS
from c128a.show import theme
from c128a.show.forms import Picture
from c128a.show.own import EXAMPLE, Own
from c128a.width import POLICIES

Value = int | str

MAX_TOKENS = MAX_MODEL_LEN  # the longest sequence that a control offers
RECORDED = bool(os.environ.get("C128A_SITE"))  # the page runs once, to become a file: scripts/build_site.py sets it

# File name without its suffix, name in the header.
PAGES = {
    "00_start": "Start",
    "01_width": "Width",
    "02_layout": "Layout",
    "03_kernel": "Kernel",
    "04_timing": "Timing",
    "05_review": "Review",
    "06_deployment": "Deployment",
    "07_hunt": "Hunt",
    "08_questions": "Questions",
}

LESSON = ("seed", "answers")  # of the questions that a class is asked: all links carry them along


@dataclass(frozen=True)
class Integer:
    """A whole number from `least` to `most`; title: what a control and a note call it."""

    default: int
    least: int
    most: int
    title: str = ""

    def parse(self, text: str) -> int:
        """The number in the text; raises ValueError for anything else than a number within the bounds."""
        if not re.fullmatch(r"-?[0-9]{1,18}", text) or not self.least <= int(text) <= self.most:
            raise ValueError(f"it must be a whole number from {self.least:,} to {self.most:,}")
        return int(text)


@dataclass(frozen=True)
class Choice:
    """One of a few values, all strings or all whole numbers."""

    default: Value
    options: tuple[Value, ...]

    def parse(self, text: str) -> Value:
        """The option that the text spells; raises ValueError where it spells none."""
        named = {str(option): option for option in self.options}
        if text not in named:
            raise ValueError(f"it must be one of {', '.join(named)}")
        return named[text]


@dataclass(frozen=True)
class Kept:
    """Settings that a reader kept to compare with: the values of other fields, apart by commas, or nothing.

    >>> kept = Kept({"seq": shared_fields()["seq"], "policy": shared_fields()["policy"]})
    >>> kept.of({"seq": 5, "policy": "pow2", "rows": 8}), kept.values("5,pow2"), kept.values("")
    ('5,pow2', {'seq': 5, 'policy': 'pow2'}, {})
    """

    fields: Mapping[str, Integer | Choice]
    default: str = ""

    def of(self, values: Mapping[str, Any]) -> str:
        """The text that keeps these values."""
        return ",".join(str(values[name]) for name in self.fields)

    def values(self, text: str) -> dict[str, Value]:
        """The values by their names; raises ValueError for a text that is none of `of`."""
        given = text.split(",") if text else []
        if given and len(given) != len(self.fields):
            raise ValueError(f"it must hold {', '.join(self.fields)}, apart by commas")
        return {name: field.parse(part) for (name, field), part in zip(self.fields.items(), given, strict=False)}

    def parse(self, text: str) -> str:
        """The text; raises ValueError as `values` does."""
        self.values(text)
        return text


Field = Integer | Choice | Own | Kept


def shared_fields() -> dict[str, Field]:
    """The parameters that mean the same on every page: a fresh dict, for a page to pick from and to add to."""
    return {
        "seq": Integer(32_768, 0, MAX_TOKENS, "Longest sequence"),  # tokens
        "model_len": Integer(MAX_TOKENS, 1, MAX_TOKENS, "Model length, tokens"),  # max_model_len: sets the capacity
        "ratio": Choice(128, (4, 128)),  # tokens per compressed entry: C4A and C128A
        "policy": Choice("pow2", POLICIES),
        "layout": Choice("packed", LAYOUTS),
        "preset": Choice("free", ("free", *PRESETS)),
        "own": Own(),  # a batch that the reader typed
    }


def address() -> dict[str, object]:
    """What the page was opened with, by `?seq=5` or by `-- --seq 5`, as text; empty in Jupyter and in a test."""
    if mo.app_meta().mode in (None, "test"):
        return {}
    return {**mo.cli_args().to_dict(), **mo.query_params().to_dict()}


def read(params: Mapping[str, object], fields: Mapping[str, Field]) -> tuple[dict[str, Any], list[str]]:
    """The value of each field, and a note for each value that could not be used. It never fails.

    params: for each name a string or a list of strings, of which the last counts; names without a field are left alone.
    A preset sets the fields that it names. A value beside it wins, and where that is not the preset's the preset is
    "free". The notes quote the address: show them with `notes`, or through `user_text`.
    """
    given = {name: str(raw[-1] if isinstance(raw, list | tuple) else raw) for name, raw in params.items() if raw != []}
    values, problems = dict[str, Any](), []
    for name in sorted(fields, key=lambda name: name != "preset"):  # the preset first: it moves the other defaults
        preset = PRESETS.get(str(values.get("preset")))
        values[name] = (preset.values if preset else {}).get(name, fields[name].default)
        try:
            values[name] = fields[name].parse(given[name]) if name in given else values[name]
        except ValueError as wrong:
            problems.append(f"{name} is {given[name]} in the address; {wrong}. Shown: {_told(values[name])}.")
    if moved_off(values):
        values["preset"] = "free"
    return {name: values[name] for name in fields}, problems


def _told(value: Value) -> str:
    return f"{value:,}" if isinstance(value, int) else value or "none"


def moved_off(values: Mapping[str, Any]) -> bool:
    """Whether one of the values is not what the preset among them says."""
    named = PRESETS[values["preset"]].values if values.get("preset") in PRESETS else {}
    return any(named.get(name, value) != value for name, value in values.items())


def link(page: str, values: Mapping[str, Value], *, only: Iterable[str] | None = None) -> str:
    """The address of a page (a key of PAGES), relative to this one, with the values, or those that `only` names.

    `marimo run notebooks` finds a page by the `file` parameter; one exported to WASM lies in a file of its own, and so
    does a recorded one, which shows one case only.

    >>> link("01_width", {"seq": 5, "stride": 9}, only=("seq",))
    '?file=01_width.py&seq=5'
    """
    if RECORDED:
        return f"{page}.html"
    keep = {name: value for name, value in values.items() if only is None or name in only}
    if sys.platform == "emscripten":
        return f"{page}.html" + (f"?{urlencode(keep)}" if keep else "")
    return "?" + urlencode({"file": f"{page}.py", **keep})


def remember(values: Mapping[str, Value]) -> None:
    """Write the settings that changed into the address. Call it in a cell of its own; no cell runs again."""
    if mo.app_meta().mode is None:
        return
    params = mo.query_params()
    for name, value in values.items():
        if params.get(name, "") != str(value):
            params.set(name, str(value)) if value != "" else params.remove(name)


class Settings:
    """The values on view, and the controls that pages share: `open_page` makes it.

    problems: notes on the address. chosen: called with each preset that a reader chooses, once its values were taken.
    """

    def __init__(self, fields: Mapping[str, Field], chosen: Callable[[str], object] | None) -> None:
        self.fields, self.chosen = fields, chosen
        self.values, self.problems = read(address(), fields)
        self.start, self._set_start = mo.state(dict(self.values))
        self.seq, self._set_seq = mo.state(self.values.get("seq", 0))
        self.notes, self._set_notes = mo.state(list[str](), allow_self_loops=True)  # shown beside what sets them
        self._shown: dict[Any, Value] = {}  # by the function that makes a control: the value that a reader sees in it
        self._drawn: dict[Any, tuple[Value, Still]] = {}  # the value that it was drawn with, and the drawing

    def controls(self) -> list[mo.Html]:
        """Slider and number of the longest sequence, and the menu of presets: call it in the cell that shows them.

        Each run makes all of them in the same order, so that they keep their ids, but draws anew only what does not
        show its value yet, and so nothing that is under the reader's fingers.
        """
        seq, preset = self.values["seq"], self.values["preset"]
        for make, value in ((self._slider, seq), (self._number, seq), (self._preset, preset)):
            if self._shown.get(make) == value:
                at, drawing = self._drawn[make]
                drawing.control = make(at)
            else:
                self._shown[make], self._drawn[make] = value, (value, Still(make(value)))
        return [drawing for _, drawing in self._drawn.values()]

    def _slider(self, value: Any) -> mo.ui.slider:
        steps: Any = token_ladder(MAX_TOKENS, value)
        look: dict[str, Any] = {"full_width": True, "label": getattr(self.fields["seq"], "title", "")}
        return mo.ui.slider(steps=steps, value=value, on_change=partial(self._longest, self._slider), **look)

    def _number(self, value: Any) -> mo.ui.number:
        return mo.ui.number(value=value, step=1, label="exactly", on_change=partial(self._longest, self._number))

    def _preset(self, value: Any) -> mo.ui.dropdown:
        names = {"free": "free values"} | {name: preset.title for name, preset in PRESETS.items()}
        return menu("Preset", names, value, on_change=self.choose)

    def _longest(self, by: Any, tokens: Any) -> None:
        """Take the longest sequence from one of its two controls, which shows it. This ends a typed batch."""
        if self.typed("seq", tokens):
            self._shown[by] = self.values["seq"]
            self._set_seq(self.values["seq"])
            self.moved({"seq": self.values["seq"]})
            self._set_notes([])
            if self.values.get("own"):
                self.put({"own": ""})

    def typed(self, name: str, value: Any) -> bool:
        """Take one value that was typed, or note what is wrong with it: whether it was taken."""
        _, wrong = self.take({name: value})
        if wrong or self.notes():  # or each key would draw the panel again
            self._set_notes(wrong)
        return not wrong

    def moved(self, values: Mapping[str, Any]) -> None:
        """The reader moved controls to these values: where the preset says otherwise, they are free values now."""
        free = moved_off({**values, "preset": self.values["preset"]})
        if free:
            self.values["preset"] = "free"
        if free or self.notes():
            self._set_notes([])

    def choose(self, preset: str) -> None:
        """Move what the preset names, and nothing else."""
        named = PRESETS[preset].values if preset in PRESETS else {}
        self.values |= {name: value for name, value in named.items() if name in self.fields} | {"preset": preset}
        if self.chosen:
            self.chosen(preset)
        self._shown = {self._preset: preset}
        self._set_seq(self.values["seq"])
        self._set_notes([])
        self.put({})

    def put(self, values: Mapping[str, Any]) -> None:
        """Move controls to these values."""
        self.values |= values
        self._set_start(dict(self.values))

    def take(self, typed: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
        """The values of controls, and a note on each that its field does not take: the last good one stands for it."""
        wrong = []
        for name, value in typed.items():
            text = "" if value is None else f"{value:.15g}" if isinstance(value, float) else str(value)
            try:
                self.values[name] = self.fields[name].parse(text)
            except ValueError as error:
                title = getattr(self.fields[name], "title", "") or name
                wrong.append(f"{title} is {text or 'empty'}; {error}. Shown: {_told(self.values[name])}.")
        return {name: self.values[name] for name in typed}, wrong


def open_page(fields: Mapping[str, Field], chosen: Callable[[str], object] | None = None) -> tuple[Any, ...]:
    """The settings of a page, and three states, which must be names of a cell: start, seq, notes.

    start: what the controls open with, from the address and after each preset; seq: the longest sequence; notes: what
    is wrong with what was typed. The cell that shows `Settings.controls` must depend on notes.
    """
    made = Settings(fields, chosen)
    return made, made.start, made.seq, made.notes


def user_text(text: str) -> str:
    """Text of a user or of an address as it was typed, for Markdown and HTML, but not within backticks.

    This is the one place where such text is escaped: what is no letter, digit or single space is written as a number.

    >>> user_text("<b>$X$")
    '&#60;b&#62;&#36;X&#36;'
    """
    printable = "".join(one if one.isprintable() else " " for one in text)
    return re.sub(r"[^\w ]|_|(?<= ) |^ ", lambda found: f"&#{ord(found[0])};", printable)


def header(page: str, title: str, lead: str, values: Mapping[str, Value]) -> mo.Html:
    """Links to the other pages with the shared values, the title, and the opening sentence (Markdown).

    page: a key of PAGES; its own entry is marked and is no link.
    """
    pill = "padding:.15rem .7rem;border-radius:1rem;border:1px solid {};text-decoration:none;white-space:nowrap;{}"
    here, other = pill.format("currentColor", "font-weight:600"), pill.format(theme.FAINT, "")
    carried = {name: str(value) for name, value in address().items() if name in LESSON} | dict(values)
    links = {name: escape(link(name, carried, only=(*shared_fields(), *LESSON))) for name in PAGES}
    entries = {name: f'<a href="{to}" target="_self" style="{other}">{PAGES[name]}</a>' for name, to in links.items()}
    entries[page] = f'<span aria-current="page" style="{here}">{PAGES[page]}</span>'
    row = "display:flex;flex-wrap:wrap;gap:.4rem;font-size:.9rem"
    nav = mo.Html(f'<nav aria-label="Pages" style="{row}">{"".join(entries.values())}</nav>')
    _say(f"{title}\n\n{lead}")
    opening = _div("lead", prose(lead), "font-size:1.15rem;max-width:60rem")
    return mo.vstack([nav, mo.md(f"# {title}"), opening], gap=0.75)


def _div(name: str, content: mo.Html, style: str = "", more: str = "") -> mo.Html:
    """The content in an element of a class of notebooks/head.html."""
    return mo.Html(f'<div class="c128a-{name}" style="{style}"{more}>{content.text}</div>')


def notes(messages: Sequence[str], *, kind: str = "warn") -> mo.Html | None:
    """A callout that lists what could not be used, or nothing where there is nothing to say. The texts are a user's."""
    listed = mo.md("\n".join(f"- {user_text(message)}" for message in messages))
    return mo.callout(listed, kind=kind) if messages else None  # type: ignore[arg-type]


def told(wrong: Sequence[str], preset: str) -> mo.Html | None:
    """What stands under the controls: what could not be used, else why the preset is worth a look."""
    return notes(wrong) or (mo.md(f"Preset: {PRESETS[preset].why}.") if preset in PRESETS else None)


def alarm(message: str | None) -> mo.Html | None:
    """An error state that cannot be overlooked, white on dark red; nothing for no message. The message is Markdown."""
    style = f"background:{theme.ALARM};color:#FFFFFF;padding:.8rem 1.2rem;border-radius:.4rem;font-size:1.05rem"
    return None if message is None else _div("alarm", mo.md("⚠ " + message), style, ' role="alert"')


def _say(text: str) -> None:
    """Print what a page says where it runs as a program, as `python notebooks/01_width.py`."""
    if Path(sys.argv[0]).stem in PAGES:
        print(unescape(dedent(text).strip().replace("**", "")), end="\n\n")


def stack(*parts: Any, gap: float = 0.5) -> mo.Html | None:
    """The parts under each other, without those that are None; nothing at all where all are."""
    kept = [part for part in parts if part is not None]
    return mo.vstack(kept, gap=gap) if kept else None


def columns(*parts: Any, widths: Any = "equal", gap: float = 2) -> mo.Html:
    """`mo.hstack` for parts with charts: a column may be narrower than the chart that was drawn in it before."""
    return mo.hstack(parts, widths=widths, gap=gap, align="start").style({"--c128a-columns": "1"})


def panel(*rows: Sequence[Any] | mo.Html | None, stay: bool = False) -> mo.Html:
    """The controls of a page in one box, one row under another; a list of controls wraps where the window is narrow.

    None is no row. stay: the cell stays in sight where the window has room for it; see notebooks/head.html.
    """
    line: dict[str, Any] = {"justify": "start", "align": "center", "wrap": True, "gap": 1.5}
    lines = [row if isinstance(row, mo.Html) else mo.hstack(row, **line) for row in rows if row is not None]
    box = {"border": f"1px solid {theme.FAINT}", "border-radius": ".5rem", "padding": ".6rem 1.1rem"}
    return mo.vstack(lines, gap=0.6).style(box | ({"--c128a-stay": "1"} if stay else {}))


def stay(settings: Settings, controls: Sequence[Any], wrong: Sequence[str]) -> mo.Html:
    """The panel that stays in sight: slider and number of the longest sequence, presets, more controls, and notes."""
    row = mo.hstack(settings.controls(), widths=[4, 1.4, 2.2], align="end", gap=1.5)
    return panel(row, controls, told(wrong, settings.values["preset"]), stay=True)


@lru_cache(maxsize=1024)
def prose(text: str) -> mo.Html:
    """Markdown, rendered once: most of a page's text is the same after a change."""
    return mo.Html(mo.md(text).text)


def sentence(text: str) -> mo.Html:
    """The line under a picture that says what to see. The text is Markdown, computed from what is drawn."""
    if not text.lstrip().startswith("#"):
        _say(text)
    return _div("sentence", prose(text), "max-width:60rem")


def table(frame: pd.DataFrame, *, marked: int | None = None, right: Sequence[str] = (), tall: str = "24rem") -> mo.Html:
    """A table to read, its cells escaped here: numbers and the columns in `right` to the right, one row marked, from 0.

    tall: the most height. For a table to sort or to search take `mo.ui.table`, which costs more at each change.
    """
    numbers = {name for name in frame.columns if pd.api.types.is_numeric_dtype(frame[name])} | set(right)
    lines = [[user_text(str(name)) for name in frame.columns]]
    lines.append(["---:" if name in numbers else ":---" for name in frame.columns])
    for at, row in enumerate(frame.itertuples(index=False)):
        cells = [user_text(f"{cell:,}" if isinstance(cell, int) else str(cell)) for cell in row]
        lines.append([f"**{cell}**" if at == marked and cell else cell for cell in cells])
        if at == marked:
            lines[-1][0] = f"▸ {lines[-1][0]}"
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return _div("table", mo.md(text), f"max-height:{tall};overflow:auto", ' role="group" aria-label="Table"')


class Still(mo.Html):
    """A control whose `on_change` says all: cells that show it do not run again when its value changes.

    Keeps the control alive, which marimo itself does for named ones only.
    """

    def __init__(self, control: Any) -> None:
        super().__init__(control.text)
        self.control = control


Names = Mapping[Any, str] | Sequence[Value]


def radio(label: str, names: Names, value: Value, **more: Any) -> mo.ui.radio:
    """Radio buttons in a line, one for each value, under its name in `names`; more: what `mo.ui.radio` takes.

    >>> radio("Policy", {"fixed": "fixed", "pow2": "power of two"}, "pow2").value
    'pow2'
    """
    return mo.ui.radio(**_choice(names, value), label=label, inline=True, **more)


def menu(label: str, names: Names, value: Value, **more: Any) -> mo.ui.dropdown:
    """A menu like `radio`, for more values than a line holds."""
    return mo.ui.dropdown(**_choice(names, value), label=label, allow_select_none=False, **more)


def _choice(names: Names, value: Value) -> dict[str, Any]:
    """The options of a control by their names, and the name of its value; values without names are their own."""
    if not isinstance(names, Mapping):
        names = {one: f"{one:,}" if isinstance(one, int) else one for one in names}
    return {"options": {name: one for one, name in names.items()}, "value": names[value]}


def token_ladder(most: int, *also: int) -> list[int]:
    """Token counts for a slider: 0, four to an octave from 128 up, and one block past each power of two.

    One block past is where the power-of-two width doubles. `also` adds values; none goes over `most`.

    >>> token_ladder(600, 77)
    [0, 77, 128, 160, 192, 224, 256, 320, 384, 448, 512, 600]
    """
    steps = {0, most, *also}
    for octave in range(7, most.bit_length()):
        steps.update((1 << octave) * quarter // 4 for quarter in range(4, 8))
        steps.add((1 << octave) + 128)
    return sorted(step for step in steps if step <= most)


def number(field: Integer, value: int, **more: Any) -> mo.ui.number:
    """A box for a whole number, whatever is typed: `Settings.take` says what is wrong with it."""
    return mo.ui.number(value=value, step=1, **{"label": field.title, **more})


def own_box(value: str) -> mo.ui.text:
    """A box for a batch as `c128a.show.own` reads it."""
    return mo.ui.text(value, EXAMPLE, label="Your own batch", full_width=True)


SPEC = re.compile(r"data-spec='[^']*'")  # as marimo writes the dictionary of a chart


def clickable(on_pick: Callable[[dict[str, Any]], object]) -> mo.ui.altair_chart:
    """An element for `shown`; on_pick gets {column: value} of the clicked mark, for the columns of the form's `click`.

    Make it once, in a cell that depends on no setting: each change shows it with another picture in it, which the
    browser draws in place. A `mo.ui.altair_chart` for each change would build the chart's dictionary, which a picture
    has already, for longer than the rest of a key press takes.
    """

    def picked(_: Any) -> None:
        for fields in chart.selections.values():
            mark = {name: values[-1] for name, values in fields.items() if name != "vlPoint" and values}
            if mark:
                on_pick(mark)

    empty = alt.LayerChart(layer=[])
    chart = mo.ui.altair_chart(empty, chart_selection=False, legend_selection=False, on_change=picked)
    return chart


def shown(element: mo.ui.altair_chart, picture: Picture) -> mo.Html:
    """The element with this picture in it; raises ValueError where marimo's element has no place for one."""
    # In single quotes: a thousand lanes hold ten thousand double quotes, each six characters long when it is escaped.
    spec = escape(picture.to_json(), quote=False).replace("'", "&#x27;")
    text, places = SPEC.subn(lambda _: f"data-spec='{spec}'", element.text)
    if places != 1:
        raise ValueError(f"the element has {places} places for a picture; it must have one")
    return mo.Html(text)


def downloads(
    frame: pd.DataFrame | Callable[[], pd.DataFrame], name: str, settings: Mapping[str, Any], what: str = ""
) -> mo.Html:
    """Buttons for a chart's data as CSV, and as JSON with the settings under "settings" and the data under "rows".

    frame: the data, or a function that makes them; name: the file name without its suffix; what: the data in words. The
    bytes are made when a button is pressed, so that a page does not pay for them; a recorded page carries them along.
    """

    def made(kind: str) -> bytes:
        rows = frame() if callable(frame) else frame
        if kind == "csv":
            return rows.to_csv(index=False).encode()
        return json.dumps({"settings": dict(settings), "rows": json.loads(rows.to_json(orient="records"))}).encode()

    buttons = []
    for kind, mime in (("csv", "text/csv"), ("json", "application/json")):
        data = made(kind) if RECORDED else partial(made, kind)
        buttons.append(mo.download(data, f"{name}.{kind}", mimetype=mime, label=f"{what} {kind.upper()}".strip()))
    return mo.hstack(buttons, justify="start", gap=0.5)


def command(text: str, what: str = "The same from a shell:") -> mo.Html:
    """A command in a block that can be copied and wraps where it is long, with a line above that says what it gives."""
    return _div("command", mo.md(f"{what}\n\n```bash\n{text}\n```"))
