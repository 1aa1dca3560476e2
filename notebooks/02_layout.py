# /// script
# requires-python = ">=3.11"
# dependencies = ["altair>=5.5", "marimo>=0.25", "pandas>=2.2"]
#
# [tool.marimo.runtime]
# pythonpath = ["."]
#
# [tool.marimo.display]
# theme = "system"
#
# [tool.marimo.opengraph]
# title = "2 · Where does a cell lie?"
# description = "Packed, pitched and fixed rows in one buffer, stale cells, and a reader with a frozen stride."
# ///

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="full", app_title="Where does a cell lie?", html_head_file="head.html")


@app.cell
def _():
    import marimo as mo

    from c128a.ui import cells_output, layout_close, layout_data, layout_page, layout_text, layout_view, page, state
    from c128a.ui.clickable import drawn
    from c128a.ui.layout_setting import FIELDS, LABELS, Setting

    return (
        FIELDS,
        LABELS,
        Setting,
        cells_output,
        drawn,
        layout_close,
        layout_data,
        layout_page,
        layout_text,
        layout_view,
        mo,
        page,
        state,
    )


@app.cell
def _(FIELDS, page, state):
    opened, notes = state.read(page.address(), FIELDS)
    return notes, opened


@app.cell
def _(mo, opened):
    # `start`: what the controls open with, the address first and then each preset. A slider and a number show one
    # sequence length, two pictures and a number one cell; each pair shares a value and neither rebuilds itself.
    get_start, set_start = mo.state(opened)
    get_seq, set_seq = mo.state(opened["seq"])
    get_slid, set_slid = mo.state(opened["seq"])
    get_typed, set_typed = mo.state(opened["seq"])
    return get_seq, get_slid, get_start, get_typed, set_seq, set_slid, set_start, set_typed


@app.cell
def _(mo, opened):
    get_cell, set_cell = mo.state((opened["layout"], opened["at"]))
    get_clicked, set_clicked = mo.state((opened["layout"], opened["at"]))
    return get_cell, get_clicked, set_cell, set_clicked


@app.cell
def _(FIELDS, opened, page, set_seq, set_slid, set_start, set_typed, state):
    def _choose(name):
        _values, _ = state.read({"preset": name}, FIELDS)
        set_start(_values)
        for _set in (set_seq, set_slid, set_typed):
            _set(_values["seq"])

    preset = page.preset_menu(opened["preset"], _choose)
    return (preset,)


@app.cell
def _(get_typed, page, set_seq, set_slid, state):
    slider = page.Still(
        page.token_slider(
            get_typed(),
            lambda value: (set_slid(value), set_seq(value)),
            label="Longest sequence now",
            most=state.MAX_TOKENS,
        )
    )
    return (slider,)


@app.cell
def _(get_slid, page, set_seq, set_typed, state):
    number = page.Still(
        page.token_input(
            get_slid(),
            lambda value: value is not None and (set_typed(value), set_seq(value)),
            label="exactly",
            least=0,
            most=state.MAX_TOKENS,
        )
    )
    return (number,)


@app.cell
def _(get_start, layout_page):
    controls = layout_page.controls(get_start())
    return (controls,)


@app.cell
def _(LABELS, get_start, mo):
    label = mo.ui.radio(LABELS, value=get_start()["label"], label="Labels", inline=True)
    return (label,)


@app.cell
def _(get_seq):
    max_seq_len = get_seq()
    return (max_seq_len,)


@app.cell
def _(Setting, controls, max_seq_len):
    setting = Setting.of(max_seq_len, controls.value)
    return (setting,)


@app.cell
def _(get_cell, label, layout_text, notes, page, preset, setting):
    chosen_layout, chosen_at = get_cell()
    chosen_at = min(chosen_at, setting.cells - 1)
    values = {"preset": preset.value, **setting.values, "label": label.value, "layout": chosen_layout, "at": chosen_at}
    page.stack(
        page.header(
            "02_layout",
            "Where does a cell lie?",
            layout_text.lead(setting.scenes, setting.drawn_seq, setting.drawn_then),
            {**values, "layout": "packed" if chosen_layout == "packed" else "pitched"},
        ),
        page.notes(notes),
        page.alarm(setting.too_narrow),
    )
    return chosen_at, chosen_layout, values


@app.cell
def _(controls, mo, number, page, preset, slider):
    page.panel(mo.hstack([slider, number], widths=[4, 1], align="end", gap=1.5), controls, [preset])
    return


@app.cell
def _(chosen_at, chosen_layout, layout_text, layout_view, mo, page, setting):
    page.stack(
        mo.md("## One line of memory"),
        layout_view.strip(setting.scenes, chosen_layout, chosen_at, show_reader=setting.show_reader),
        page.sentence(layout_text.strip_sentence(setting.scenes)),
    )
    return


@app.cell
def _(layout_page, set_cell, set_clicked):
    rows_place = layout_page.place(set_cell, set_clicked)
    close_place = layout_page.place(set_cell, set_clicked)
    return close_place, rows_place


@app.cell
def _(drawn, layout_page, layout_text, layout_view, mo, page, rows_place, setting):
    page.stack(
        mo.md("## The same buffer, row by row"),
        drawn(rows_place, layout_view.buffer_rows(setting.scenes, setting.grid, show_reader=setting.show_reader)),
        page.sentence(layout_page.marks_sentence(setting)),
        page.sentence(layout_text.reader_sentence(setting.scenes)) if setting.show_reader else None,
        layout_page.reader_table(setting.scenes) if setting.show_reader else None,
    )
    return


@app.cell
def _(get_clicked, layout_page, set_cell, setting):
    cell_pick = layout_page.cell_controls(get_clicked(), setting.cells, set_cell)
    return (cell_pick,)


@app.cell
def _(
    cell_pick,
    cells_output,
    chosen_at,
    chosen_layout,
    close_place,
    drawn,
    label,
    layout_close,
    layout_text,
    mo,
    page,
    setting,
):
    _kernel = cells_output.kernel_output(setting.scene(chosen_layout))
    _close_up = layout_close.close_up(
        setting.scenes, chosen_layout, chosen_at, label.value, setting.grid, _kernel.values
    )
    page.stack(
        mo.md("## Sixteen cells close up"),
        mo.hstack([*cell_pick, label], justify="start", wrap=True, gap=1.75),
        drawn(close_place, _close_up),
        page.sentence(layout_text.CLOSE_SENTENCE),
        page.sentence(
            "  \n".join(layout_text.cell_lines(setting.scene(chosen_layout), chosen_at, _kernel.at(chosen_at)))
        ),
        page.sentence(_kernel.sentence),
        page.alarm(_kernel.alarm),
    )
    return


@app.cell
def _(chosen_at, chosen_layout, layout_data, layout_page, mo, page, setting, values):
    page.remember(values)
    page.stack(
        mo.md("## Take it along"),
        page.downloads(lambda: layout_data.frame(setting.scenes), "c128a-layout", values, "the marks"),
        page.command(layout_page.command(setting.scene(chosen_layout), chosen_at)),
    )
    return


if __name__ == "__main__":
    app.run()
