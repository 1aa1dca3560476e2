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
# title = "6 · Is my deployment safe?"
# description = "What you serve with, or a pasted vllm serve line: buffers, widths, incidents, and what avoids each."
# ///

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="full", app_title="Is my deployment safe?", html_head_file="head.html")


@app.cell
def _():
    import marimo as mo

    import c128a.deployment as cli
    from c128a import records
    from c128a.deployment import findings as serving
    from c128a.deployment import serve as serve_args
    from c128a.deployment import step_cost
    from c128a.ui import deployment_data, deployment_view, page, state

    return cli, deployment_data, deployment_view, mo, page, records, serve_args, serving, state, step_cost


@app.cell
def _(deployment_data, mo, page, state):
    fields = deployment_data.fields()
    opened, notes = state.read(page.address(), fields)
    # `start` is what the controls open with: the address, then each preset, then each pasted line. `latest` is what
    # they hold now, in a plain dict: a pasted line is laid over it, and reading it must not rebuild the text area.
    get_start, set_start = mo.state(opened)
    get_pasted, set_pasted = mo.state(None)
    latest = dict(opened)
    return fields, get_pasted, get_start, latest, notes, opened, set_pasted, set_start


@app.cell
def _(deployment_data, latest, opened, page, set_start):
    preset = page.preset_menu(opened["preset"], lambda name: set_start(deployment_data.apply_preset(latest, name)))
    return (preset,)


@app.cell
def _(deployment_data, latest, mo, serve_args, set_pasted, set_start):
    def _paste(text):
        if not text.strip():
            set_pasted(None)
            return
        try:
            _line = serve_args.read_serve_line(text)
        except ValueError as error:
            set_pasted(str(error))
            return
        _values, _told = deployment_data.apply_line(latest, _line)
        set_start(_values)
        set_pasted((_line, _told))

    line_area = mo.ui.text_area(
        placeholder="vllm serve deepseek-ai/DeepSeek-V4-Pro --max-model-len 1M --max-num-batched-tokens 8192 …",
        label="A vllm serve command line. It is read here and kept out of the address.",
        rows=3,
        full_width=True,
        on_change=_paste,
    )
    return (line_area,)


@app.cell
def _(deployment_data, fields, get_start, mo, page, serving):
    _start = get_start()

    def _menu(label, names, name):
        return mo.ui.dropdown({text: key for key, text in names.items()}, value=names[_start[name]], label=label)

    def _number(label, name):
        return page.token_input(_start[name], label=label, least=fields[name].least, most=fields[name].most)

    controls = mo.ui.dictionary(
        {
            "release": _menu("Release", deployment_data.RELEASE_NAMES, "release"),
            "layout": _menu("Row layout", {name: name for name in fields["layout"].options}, "layout"),
            "policy": _menu("Width policy", serving.POLICY_NAMES, "policy"),
            "graph": _menu("CUDA graphs", serving.GRAPH_NAMES, "graph"),
            "consumer": _menu("Decode kernel", serving.CONSUMER_NAMES, "consumer"),
            "model_len": _number("Model length", "model_len"),
            "batch": _number("Batch tokens", "batch"),
            "seqs": _number("Sequences", "seqs"),
            "spec": _number("Speculative", "spec"),
            "block": _menu("KV block", {size: f"{size:,} tokens" for size in fields["block"].options}, "block"),
            "seq": _number("Context", "seq"),
            "capacity": _number("Capacity", "capacity"),
            "warm": mo.ui.text(_start["warm"], label="Warmed widths", placeholder="128, 256, 512"),
            "invariant": mo.ui.checkbox(_start["invariant"] == "yes", label="Batch-invariant results"),
        }
    )
    return (controls,)


@app.cell
def _(controls, deployment_data, get_start, latest, preset):
    values, typed_notes = deployment_data.settle(
        {**controls.value, "preset": preset.value, "ratio": get_start()["ratio"]}
    )
    latest.update(values)
    return typed_notes, values


@app.cell
def _(page, values):
    page.remember(values)
    return


@app.cell
def _(records):
    measured = records.load_all()
    return (measured,)


@app.cell
def _(cli, deployment_data, get_pasted, measured, step_cost, values):
    # What was not read of a pasted command could change the verdict; so could a command that was not read at all.
    pasted = get_pasted()
    if isinstance(pasted, str):
        unread = ["the pasted command was not read"]
    else:
        unread = [f"{_name}: {_why}" for _name, _why in pasted[0].unread.items()] if pasted else []
    found = deployment_data.answer(values, unread)
    costs = step_cost.step_costs(found.setup, measured, typical_len=values["seq"])
    reproduce = cli.command(found, width=88)
    return costs, found, pasted, reproduce


@app.cell
def _(found, page, values):
    page.header("06_deployment", "Is my deployment safe?", page.user_text(found.sentence), values)
    return


@app.cell
def _(notes, page, typed_notes):
    page.notes([*notes, *typed_notes])
    return


@app.cell
def _(controls, deployment_data, deployment_view, line_area, mo, page, preset):
    def _row(*shown):
        return mo.hstack(shown, widths="equal", align="center", gap=1.5)

    _own = controls["release"].value == deployment_data.OWN
    _panel = page.panel(
        [_row(controls["release"], controls["graph"], controls["consumer"])],
        [_row(controls["layout"], controls["policy"], mo.md(""))] if _own else [],
        [_row(controls["model_len"], controls["batch"], controls["seqs"])],
        [_row(controls["spec"], controls["block"], controls["seq"])],
        [_row(controls["capacity"], controls["warm"], controls["invariant"])],
        [mo.hstack([preset, mo.md(deployment_view.help_line(controls["release"].value))], widths=[1, 2], gap=1.5)],
    )
    mo.vstack([_panel, line_area], gap=1)
    return


@app.cell
def _(deployment_view, found, mo, page, pasted):
    if isinstance(pasted, str):
        _told = page.alarm(f"The command line was not read. {page.user_text(pasted)}")
    else:
        _told = mo.Html(deployment_view.command_line(*pasted)) if pasted else None
    page.stack(_told, page.notes([f"Not read, and it could change the verdict: {_why}." for _why in found.unread]))
    return


@app.cell
def _(deployment_view, found, mo, values):
    _parts = (
        deployment_view.verdict(found),
        deployment_view.glance(found),
        deployment_view.finding_cards(found, values),
    )
    mo.vstack([mo.Html(part) for part in _parts], gap=1)
    return


@app.cell
def _(deployment_view, found, mo, page):
    page.columns(
        [
            mo.vstack(
                [
                    mo.md("## Buffers"),
                    deployment_view.bytes_chart(found),
                    page.sentence(deployment_view.bytes_sentence(found)),
                ]
            ),
            mo.vstack(
                [
                    mo.md("## Reachable widths"),
                    deployment_view.widths_chart(found),
                    page.sentence(deployment_view.widths_sentence(found)),
                ]
            ),
        ],
        widths="equal",
        gap=2,
    )
    return


@app.cell
def _(deployment_view, found, mo):
    mo.vstack([mo.md("## Before the first request"), mo.md(deployment_view.warm_up_list(found))])
    return


@app.cell
def _(costs, deployment_data, deployment_view, found, mo, page):
    mo.vstack(
        [
            mo.md("## Cost of a full step"),
            page.table(deployment_data.COST_COLUMNS, deployment_data.cost_rows(costs), label="Cost of a full step"),
            page.sentence(deployment_view.cost_sentence(found, costs)),
        ]
    )
    return


@app.cell
def _(deployment_data, found, mo, page, reproduce, values):
    mo.vstack(
        [
            mo.md("## Take it along"),
            page.downloads(deployment_data.findings_frame(found), "c128a-findings", values, "findings"),
            page.downloads(deployment_data.widths_frame(found), "c128a-deployment-widths", values, "widths"),
            page.command(
                reproduce, "The same in a terminal or in CI; the exit status is 1 where something is dangerous:"
            ),
        ]
    )
    return


if __name__ == "__main__":
    app.run()
