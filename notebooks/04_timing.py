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
# title = "4 · What does it cost?"
# description = "Recorded GPU runs: microseconds beside trips, bytes and floors; then live on this machine."
# ///

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="full", app_title="What does it cost?", html_head_file="head.html")


@app.cell
def _():
    import marimo as mo

    from c128a import records
    from c128a.case import PRESETS
    from c128a.ui import page, state, timing_data, timing_live, timing_page, timing_runs, timing_text

    return PRESETS, mo, page, records, state, timing_data, timing_live, timing_page, timing_runs, timing_text


@app.cell
def _(page, records, timing_data, timing_runs):
    runs = timing_runs.gather(records.load_all())
    opened, notes = timing_data.read(page.address())
    return notes, opened, runs


@app.cell
def _(mo, opened):
    # `start` is what the controls open with: the address, then each preset. The other three keep a slider and a number
    # in step without either rebuilding itself under the user's fingers.
    get_start, set_start = mo.state(opened)
    get_seq, set_seq = mo.state(opened["seq"])
    get_slid, set_slid = mo.state(opened["seq"])
    get_typed, set_typed = mo.state(opened["seq"])
    return get_seq, get_slid, get_start, get_typed, set_seq, set_slid, set_start, set_typed


@app.cell
def _(PRESETS, opened, page, set_seq, set_slid, set_start, set_typed, timing_data):
    def _choose(name):
        values, _ = timing_data.read({"preset": name})
        set_start(values)
        for _set in (set_seq, set_slid, set_typed):
            _set(values["seq"])

    preset = page.preset_menu(opened["preset"], _choose)
    preset_whys = {name: item.why for name, item in PRESETS.items()}
    return preset, preset_whys


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
def _(get_start, mo, timing_runs):
    batch_ui = mo.ui.dropdown(
        {item.title: key for key, item in timing_runs.BATCHES.items()},
        value=timing_runs.BATCHES[get_start()["batch"]].title,
        label="Rows a step",
        allow_select_none=False,
    )
    return (batch_ui,)


@app.cell
def _(get_start, mo):
    cache_ui = mo.ui.radio(["warm", "cold"], value=get_start()["cache"], label="L2 cache", inline=True)
    return (cache_ui,)


@app.cell
def _(batch_ui, cache_ui, get_seq, runs, timing_data):
    case = timing_data.TimingCase(runs, get_seq(), batch_ui.value, cache_ui.value)
    return (case,)


@app.cell
def _(case, fields, get_start, preset):
    _carried = {name: get_start()[name] for name in ("model_len", "ratio", "policy", "layout")}
    _budget = fields.value["budget"] or get_start()["budget"]
    values = {"preset": preset.value, "seq": case.seq, "batch": case.batch, "cache": case.cache, "budget": _budget}
    values |= _carried
    return (values,)


@app.cell
def _(case, page, timing_text, values):
    page.remember(values)
    page.header("04_timing", "What does it cost?", timing_text.tight(timing_text.lead(case)), values)
    return


@app.cell
def _(batch_ui, cache_ui, mo, number, page, preset, preset_whys, slider):
    page.panel(
        mo.hstack([slider, number], widths=[4, 1], align="end", gap=1.5),
        [batch_ui, cache_ui, preset, mo.md(preset_whys.get(preset.value, ""))],
    )
    return


@app.cell
def _(case, notes, page, timing_text, values):
    page.stack(page.notes(notes), page.notes(timing_text.notes(case, values), kind="neutral"))
    return


@app.cell
def _(case, timing_page):
    timing_page.recorded(case)
    return


@app.cell
def _(case, timing_page):
    timing_page.one_cell(case)
    return


@app.cell
def _(case, timing_page):
    timing_page.all_cells(case)
    return


@app.cell
def _(case, timing_page):
    timing_page.combine(case)
    return


@app.cell
def _(case, timing_page):
    timing_page.host(case)
    return


@app.cell
def _(mo, opened, timing_live):
    fields = timing_live.request_fields(opened)
    start = timing_live.start_button(fields)
    cancel = mo.ui.button(value=0, on_click=lambda presses: presses + 1, label="Cancel")
    get_rows, set_rows = mo.state([])
    get_status, set_status = mo.state(timing_live.Status())
    running = {"thread": None, "press": 0}
    return cancel, fields, get_rows, get_status, running, set_rows, set_status, start


@app.cell
def _(cancel, running, set_rows, set_status, start, timing_live):
    # Pressing Cancel runs this cell again, and with that the thread of the last run is told to end. Each press of the
    # start button is served once.
    cancel.value
    if start.value and start.value["press"] > running["press"]:
        running["press"] = start.value["press"]
        running["thread"] = timing_live.start(
            start.value,
            running["thread"],
            lambda row: set_rows(lambda rows: timing_live.merged(rows, row)),
            set_status,
        )
    return


@app.cell
def _(cancel, fields, start, timing_page):
    timing_page.live(fields, start, cancel)
    return


@app.cell
def _(get_status, timing_live):
    timing_live.view(get_status())
    return


@app.cell
def _(case, get_rows, timing_page):
    timing_page.live_rows(case, get_rows())
    return


@app.cell
def _(case, get_rows, timing_page, values):
    timing_page.take_along(case, get_rows(), values)
    return


if __name__ == "__main__":
    app.run()
