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
# title = "1 · How wide must a row be?"
# description = "Sequence length, capacity and policy: the width of a C128A index row, and what it costs."
# ///

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="full", app_title="How wide must a row be?", html_head_file="head.html")


@app.cell
def _():
    import marimo as mo

    from c128a.case import PRESETS
    from c128a.ui import page, state, width_costs, width_data, width_text, width_view
    from c128a.width import POLICIES

    return POLICIES, PRESETS, mo, page, state, width_costs, width_data, width_text, width_view


@app.cell
def _(page, state):
    _shared = state.shared_fields()
    fields = {name: _shared[name] for name in ("preset", "seq", "model_len", "ratio", "policy")}
    fields["rows"] = state.Choice(8192, (1, 32, 256, 1024, 2048, 8192))
    opened, notes = state.read(page.address(), fields)
    return fields, notes, opened


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
def _(PRESETS, fields, opened, page, set_seq, set_slid, set_start, set_typed, state):
    def _choose(name):
        values, _ = state.read({"preset": name}, fields)
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
def _(get_start, page, state):
    model_len_ui = page.token_input(
        get_start()["model_len"], None, label="Model length, tokens", least=1, most=state.MAX_TOKENS
    )
    return (model_len_ui,)


@app.cell
def _(POLICIES, get_start, mo):
    policy_ui = mo.ui.radio(POLICIES, value=get_start()["policy"], label="Policy", inline=True)
    return (policy_ui,)


@app.cell
def _(get_start, mo):
    ratio_ui = mo.ui.radio(
        {"128 (C128A)": 128, "4 (C4A)": 4},
        value="128 (C128A)" if get_start()["ratio"] == 128 else "4 (C4A)",
        label="Compress ratio",
        inline=True,
    )
    return (ratio_ui,)


@app.cell
def _(fields, get_start, mo):
    rows_ui = mo.ui.dropdown(
        {f"{count:,}": count for count in fields["rows"].options},
        value=f"{get_start()['rows']:,}",
        label="Rows a step",
    )
    return (rows_ui,)


@app.cell
def _(get_seq):
    max_seq_len = get_seq()
    return (max_seq_len,)


@app.cell
def _(model_len_ui, opened):
    max_model_len = model_len_ui.value or opened["model_len"]
    return (max_model_len,)


@app.cell
def _(max_model_len, max_seq_len, policy_ui, ratio_ui, rows_ui, width_data):
    case = width_data.WidthCase(max_seq_len, max_model_len, ratio_ui.value, policy_ui.value, rows_ui.value)
    return (case,)


@app.cell
def _(case, notes, page, preset, width_text):
    values = {
        "preset": preset.value,
        "seq": case.seq,
        "model_len": case.model_len,
        "ratio": case.ratio,
        "policy": case.policy,
        "rows": case.rows,
    }
    page.stack(
        page.header("01_width", "How wide must a row be?", width_text.lead(case), values),
        page.notes(notes),
        page.alarm(width_text.too_narrow(case)),
    )
    return (values,)


@app.cell
def _(mo, model_len_ui, number, page, policy_ui, preset, preset_whys, ratio_ui, rows_ui, slider):
    page.panel(
        mo.hstack([slider, number], widths=[4, 1], align="end", gap=1.5),
        [policy_ui, ratio_ui, model_len_ui],
        [rows_ui, preset, mo.md(preset_whys.get(preset.value, ""))],
    )
    return


@app.cell
def _(case, mo, page, width_text, width_view):
    mo.vstack(
        [
            mo.md("## Width over sequence length"),
            width_view.width_curve(case),
            page.sentence(width_text.curve_sentence(case)),
            width_view.length_strip(case),
            page.sentence(width_text.strip_sentence(case)),
        ]
    )
    return


@app.cell
def _(case, mo, page, width_costs, width_text, width_view):
    page.columns(
        [
            mo.vstack(
                [mo.md("## Padding"), width_view.pads_chart(case), page.sentence(width_text.pads_sentence(case))]
            ),
            mo.vstack(
                [mo.md("## Trips"), width_costs.trips_chart(case), page.sentence(width_text.trips_sentence(case))]
            ),
        ],
        widths="equal",
        gap=2,
    )
    return


@app.cell
def _(case, mo, page, width_costs, width_text):
    page.columns(
        [
            mo.vstack(
                [
                    mo.md("## Bytes a step"),
                    width_costs.bytes_chart(case),
                    page.sentence(width_text.bytes_sentence(case)),
                ]
            ),
            mo.vstack(
                [
                    mo.md("## Reachable widths"),
                    width_costs.reach_table(case),
                    page.sentence(width_text.reach_sentence(case)),
                ]
            ),
        ],
        widths="equal",
        gap=2,
    )
    return


@app.cell
def _(case, mo, page, values, width_data, width_text):
    page.remember(values)
    mo.vstack(
        [
            mo.md("## Take it along"),
            page.downloads(
                lambda: width_data.reach(case.model_len, case.ratio, case.policy),
                "c128a-widths",
                values,
                "reachable widths",
            ),
            page.downloads(lambda: width_data.curves(case.model_len, case.ratio), "c128a-curves", values, "the curves"),
            page.command(width_text.command(case)),
        ]
    )
    return


if __name__ == "__main__":
    app.run()
