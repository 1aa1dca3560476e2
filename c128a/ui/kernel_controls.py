"""The controls of page 03 and its parameters in the address. Needs marimo."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import marimo as mo

from c128a.layout import LAYOUTS
from c128a.ui import page, state
from c128a.ui.kernel_case import FAULTS, KERNEL_TITLE, KERNELS, Kernel, KernelCase, View
from c128a.ui.kernel_panels import LABELS
from c128a.ui.kernel_source import STATEMENTS
from c128a.ui.kernel_way import steps_of
from c128a.width import POLICIES

MAX_ROWS = 8  # decode rows, and prefill rows: enough for the tallest tile, few enough to tell apart
CASE = ("seq", "model_len", "ratio", "policy", "layout", "decode", "prefill", "fault")
TITLE: dict[Kernel, dict[str, str]] = {"row_loop": {}, "tiled": {"program": "Row group", "trip": "Column tile"}}
STEPPERS = ("kernel", "program", "trip", "lane", "statement")


def fields() -> dict[str, state.Field]:
    """The parameters of the page."""
    shared = state.shared_fields()
    return {
        **{name: shared[name] for name in ("preset", "seq", "model_len", "ratio", "policy", "layout")},
        "decode": state.Integer(3, 0, MAX_ROWS),
        "prefill": state.Integer(3, 0, MAX_ROWS),
        "fault": state.Choice("none", tuple(FAULTS)),
        "kernel": state.Choice("row_loop", KERNELS),
        "program": state.Integer(1, 0, 2 * MAX_ROWS - 1),
        "trip": state.Integer(0, 0, 2**20),
        "lane": state.Integer(5, 0, 2**20),
        "statement": state.Choice(
            "store", tuple(dict.fromkeys(step.key for steps in STATEMENTS.values() for step in steps))
        ),
        "label": state.Choice("statement", tuple(LABELS)),
    }


def opened(params: Mapping[str, object]) -> tuple[dict[str, Any], list[str]]:
    """The value of each parameter at the opening of the page, and a note on each that could not be used."""
    found, notes = state.read(params, fields())
    case = KernelCase(**{name: found[name] for name in CASE})
    view = View.within(case, found["kernel"], found["program"], found["trip"], found["lane"])
    for name, count in counts(case, found["kernel"]).items():
        if found[name] >= count > 0:
            notes.append(
                f"{name} is {found[name]} in the address; this build has 0 to {count - 1:,}. "
                f"Shown: {getattr(view, name):,}."
            )
            found[name] = getattr(view, name)
    return found, notes


def counts(case: KernelCase, kernel: Kernel) -> dict[str, int]:
    """How many programs, trips of one and lanes of one trip there are; all 0 where there is no row."""
    (programs, trips), (rows, columns) = case.grid(kernel), case.shape(kernel)
    return {"program": programs, "trip": trips if programs else 0, "lane": rows * columns if programs else 0}


def case(seq: int, settings: Mapping[str, Any]) -> KernelCase:
    """The build that the settings describe; a number field that was emptied counts as its default."""
    given = {name: value for name, value in settings.items() if value is not None}
    return KernelCase(seq=seq, **given)


def shared(case: KernelCase) -> dict[str, state.Value]:
    """The build as parameters of the address."""
    return {name: getattr(case, name) for name in CASE}


def stepped(view: View) -> dict[str, state.Value]:
    """What of the build is on view, as parameters of the address."""
    return {name: getattr(view, name) for name in STEPPERS}


def settings(start: Mapping[str, Any]) -> mo.ui.dictionary:
    """The controls of the build, but for the sequence length."""
    most = state.MAX_TOKENS
    ratios = {"128 (C128A)": 128, "4 (C4A)": 4}
    faults = {title: name for name, title in FAULTS.items()}
    rows = {
        name: mo.ui.slider(0, MAX_ROWS, value=start[name], show_value=True, label=f"{name.capitalize()} rows")
        for name in ("decode", "prefill")
    }
    return mo.ui.dictionary(
        {
            "model_len": page.token_input(start["model_len"], label="Model length, tokens", least=1, most=most),
            "policy": mo.ui.radio(POLICIES, start["policy"], inline=True, label="Policy"),
            "layout": mo.ui.radio(LAYOUTS, start["layout"], inline=True, label="Layout"),
            "ratio": mo.ui.radio(ratios, _title(ratios, start["ratio"]), inline=True, label="Compress ratio"),
            "fault": mo.ui.dropdown(faults, FAULTS[start["fault"]], label="Wrong with the batch"),
            **rows,
        }
    )


def _title(options: Mapping[str, Any], value: Any) -> str:
    return next(title for title, option in options.items() if option == value)


def settings_panel(slider: Any, number: Any, settings: mo.ui.dictionary, preset: Any) -> mo.Html:
    """The controls of the build in one box."""
    return page.panel(
        mo.hstack([ringed(slider), ringed(number)], widths=[3, 1], gap=1.75, align="center"),
        [ringed(settings[name]) for name in ("decode", "prefill", "fault")],
        [ringed(settings[name]) for name in ("policy", "layout", "ratio")],
        [ringed(settings["model_len"]), ringed(preset)],
    )


def steppers_panel(kernel: Any, program: Any, trip: Any, statement: Any, lane: Any) -> mo.Html:
    """The controls that step, in one box, with the keys that move them."""
    keys = mo.md("Tab to a slider, then ← and → step it. A click on a block or on a lane goes there.")
    upper = [ringed(control) for control in (kernel, program, trip)]
    lower = mo.hstack([ringed(statement), ringed(lane)], widths=[1, 2.6], gap=1.75, align="center")
    return mo.vstack([mo.md("## One trip, step by step"), page.panel(upper, lower, keys)])


def ringed(control: Any) -> mo.Html:
    """The control in a box that the style of `kernel_panels` rings while the control has the focus."""
    return mo.Html(f'<div class="c128a-control">{control.text}</div>')


def kernel(focus: dict[str, Any]) -> mo.ui.radio:
    """The kernel on view."""
    options = {title: name for name, title in KERNEL_TITLE.items()}
    return mo.ui.radio(
        options, KERNEL_TITLE[focus["kernel"]], inline=True, label="Kernel", on_change=_into(focus, "kernel")
    )


def label(start: Mapping[str, Any]) -> mo.ui.radio:
    """What the cells of the close-up are labelled with."""
    options = {title: name for name, title in LABELS.items()}
    return mo.ui.radio(options, LABELS[start["label"]], inline=True, label="Labels")


def stepper(name: str, case: KernelCase, kernel: Kernel, focus: dict[str, Any]) -> mo.ui.slider:
    """The slider of program, trip or lane, opened at what `focus` holds; it writes each step into it."""
    last = max(counts(case, kernel)[name] - 1, 0)
    # The knob at 0 reaches left over the end of a label.
    title = f"{TITLE[kernel].get(name, name.capitalize())}, " + (f"0 to {last:,}" if last else "only 0") + "&ensp;"
    return mo.ui.slider(
        0,
        last,
        value=min(focus[name], last),
        show_value=True,
        full_width=name == "lane",
        disabled=last == 0,
        label=title,
        on_change=_into(focus, name),
    )


def statement(view: View, focus: dict[str, Any]) -> mo.ui.slider:
    """The statement that is marked in the source, by its index among those of the trip."""
    keys = [step.key for step in steps_of(view)] if view.runs else ["store"]
    at = keys.index(focus["statement"] if focus["statement"] in keys else "store")
    return mo.ui.slider(
        0,
        len(keys) - 1,
        value=at,
        show_value=True,
        label="Statement&ensp;",
        on_change=lambda value: focus.update(statement=keys[int(value or 0)]),
    )


def _into(focus: dict[str, Any], name: str) -> Any:
    return lambda value: focus.update({name: value})
