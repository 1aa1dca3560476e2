# /// script
# requires-python = ">=3.11"
# dependencies = ["c128a", "marimo>=0.25"]
#
# [tool.marimo.runtime]
# pythonpath = ["."]
#
# [tool.marimo.display]
# theme = "system"
#
# [tool.marimo.opengraph]
# title = "3 · What does one program do?"
# description = "Step through both kernels: lanes, block table, slot ids, and the line of source that does it."
# ///

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="full", app_title="What does one program do?", html_head_file="head.html")


@app.cell
def _():
    from dataclasses import replace

    import marimo as mo

    from c128a.ui import kernel_controls as controls
    from c128a.ui import kernel_page, kernel_text, page, state
    from c128a.ui.clickable import clickable
    from c128a.ui.kernel_case import View
    from c128a.ui.kernel_way import step_at

    return View, clickable, controls, kernel_page, kernel_text, mo, page, replace, state, step_at


@app.cell
def _(controls, page):
    opened, notes = controls.opened(page.address())
    # What the steppers stand at; a plain dict, so that a step does not rebuild the control that made it.
    focus = {name: opened[name] for name in controls.STEPPERS}
    return focus, notes, opened


@app.cell
def _(mo, opened):
    # `start` is what the controls open with: the address, then each preset; `jump` counts clicks on a picture.
    get_start, set_start = mo.state(opened)
    get_seq, set_seq = mo.state(opened["seq"])
    get_slid, set_slid = mo.state(opened["seq"])
    get_typed, set_typed = mo.state(opened["seq"])
    get_jump, set_jump = mo.state(0)
    return get_jump, get_seq, get_slid, get_start, get_typed, set_jump, set_seq, set_slid, set_start, set_typed


@app.cell
def _(controls, opened, page, set_seq, set_slid, set_start, set_typed):
    def _choose(name):
        values, _ = controls.opened({"preset": name})
        set_start(values)
        for _set in (set_seq, set_slid, set_typed):
            _set(values["seq"])

    preset = page.preset_menu(opened["preset"], _choose)
    return (preset,)


@app.cell
def _(get_typed, page, set_seq, set_slid, state):
    def _slide(value):
        set_slid(value)
        set_seq(value)

    slider = page.Still(page.token_slider(get_typed(), _slide, label="Longest sequence", most=state.MAX_TOKENS))
    return (slider,)


@app.cell
def _(get_slid, page, set_seq, set_typed, state):
    def _type(value):
        if value is not None:
            set_typed(value)
            set_seq(value)

    number = page.Still(page.token_input(get_slid(), _type, label="exactly", least=0, most=state.MAX_TOKENS))
    return (number,)


@app.cell
def _(controls, get_start):
    settings = controls.settings(get_start())
    return (settings,)


@app.cell
def _(controls, focus, get_jump):
    get_jump()
    kernel_ui = controls.kernel(focus)
    return (kernel_ui,)


@app.cell
def _(get_seq):
    max_seq_len = get_seq()
    return (max_seq_len,)


@app.cell
def _(controls, max_seq_len, preset, settings):
    case = controls.case(max_seq_len, settings.value)
    shared = {"preset": preset.value, **controls.shared(case)}
    return case, shared


@app.cell
def _(case, controls, focus, get_jump, kernel_ui):
    get_jump()
    program_ui, trip_ui, lane_ui = (
        controls.stepper(name, case, kernel_ui.value, focus) for name in ("program", "trip", "lane")
    )
    return lane_ui, program_ui, trip_ui


@app.cell
def _(controls, focus, place):
    statement_ui = controls.statement(place, focus)
    return (statement_ui,)


@app.cell
def _(controls, opened):
    label_ui = controls.label(opened)
    return (label_ui,)


@app.cell
def _(View, case, kernel_ui, program_ui, trip_ui):
    # Three views of one build, each with one thing more, so that a step redraws only what it changes.
    place = View.within(case, kernel_ui.value, program_ui.value, trip_ui.value)
    return (place,)


@app.cell
def _(lane_ui, place, replace):
    lane_view = replace(place, lane=lane_ui.value)
    return (lane_view,)


@app.cell
def _(case, kernel_text, notes, page, place, shared):
    page.stack(
        page.header("03_kernel", "What does one program do?", kernel_text.lead(place), shared),
        page.notes(notes),
        None if case.fits else page.alarm(kernel_text.too_narrow(case)),
    )
    return


@app.cell
def _(controls, number, preset, settings, slider):
    controls.settings_panel(slider, number, settings, preset)
    return


@app.cell
def _(clickable, focus, kernel_page, set_jump):
    def pick(mark):
        focus.update(mark)
        set_jump(lambda count: count + 1)

    row_loop_map = kernel_page.map_element("row_loop", pick)
    tiled_map = kernel_page.map_element("tiled", pick)
    lane_map = clickable(pick)
    return lane_map, row_loop_map, tiled_map


@app.cell
def _(kernel_page, place, row_loop_map, tiled_map):
    kernel_page.maps(place, {"row_loop": row_loop_map, "tiled": tiled_map})
    return


@app.cell
def _(controls, kernel_ui, lane_ui, place, program_ui, statement_ui, trip_ui):
    controls.steppers_panel(kernel_ui, program_ui, trip_ui, statement_ui, lane_ui) if place.runs else None
    return


@app.cell
def _(kernel_page, lane_map, lane_view):
    kernel_page.lanes(lane_view, lane_map)
    return


@app.cell
def _(kernel_page, label_ui, lane_view, page, statement_ui, step_at):
    view = step_at(lane_view, statement_ui.value)
    page.stack(kernel_page.close_up(view, label_ui), kernel_page.walk(view))
    return (view,)


@app.cell
def _(kernel_page, mo):
    run_button = mo.ui.run_button(label="Run them")
    kernel_page.style()
    return (run_button,)


@app.cell
def _(kernel_page, lane_view, run_button):
    kernel_page.output(lane_view, run_button)
    return


@app.cell
def _(controls, kernel_page, label_ui, page, place, shared, view):
    _values = shared | controls.stepped(view) | {"label": label_ui.value}
    page.remember(_values)
    kernel_page.take_along(place, _values)
    return


if __name__ == "__main__":
    app.run()
