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
# title = "5 · Do the claims hold?"
# description = "Every claim of the report on PR #50004: evidence, verdict, and where the one percent comes from."
# ///

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="full", app_title="Do the claims hold?", html_head_file="head.html")


@app.cell
def _():
    import marimo as mo

    from c128a import claims, records
    from c128a.claims.account import NOT_IN_THE_ACCOUNT
    from c128a.measured import UnmeasuredError
    from c128a.ui import page, review_charts, review_data, review_html, review_view, state

    return (
        NOT_IN_THE_ACCOUNT,
        UnmeasuredError,
        claims,
        mo,
        page,
        records,
        review_charts,
        review_data,
        review_html,
        review_view,
        state,
    )


@app.cell
def _(mo, page, records, review_data, state):
    every_record = records.load_all()
    fields = review_data.fields(every_record)
    opened, notes = state.read(page.address(), fields)
    get_start, set_start = mo.state(opened)  # what the controls open with: the address, then each preset
    return every_record, fields, get_start, notes, opened, set_start


@app.cell
def _(claims, review_data, every_record, opened):
    # These do not depend on the run that is accounted for, so no control makes them run again.
    still = claims.review(
        review_data.setting_of(opened, every_record),
        [claim for claim in claims.CLAIMS if claim.subject != "costs"],
    )
    return (still,)


@app.cell
def _(claims, setting, still):
    findings = still + claims.review(setting, [claim for claim in claims.CLAIMS if claim.subject == "costs"])
    return (findings,)


@app.cell
def _(claims, findings, page, review_data, values):
    _lead = f"{review_data.lead(claims.tally(findings))} {review_data.takeaway(findings)}"
    page.header("05_review", "Do the claims hold?", _lead, values)
    return


@app.cell
def _(notes, page):
    page.notes(notes)
    return


@app.cell
def _(findings, mo, review_html):
    mo.Html(review_html.STYLE + review_html.glance(findings))
    return


@app.cell
def _(mo, page, review_html):
    mo.vstack(
        [
            mo.md("## What became of the change"),
            mo.Html(review_html.releases()),
            page.sentence(
                "For a batch of 32,768 tokens and a capacity of 8,192. PR #50004 let the row stride follow the width, "
                "and was reverted: a graph keeps the stride of its capture. Since 0.30.0 only the width moves."
            ),
        ]
    )
    return


@app.cell
def _(mo, review_view, still):
    mo.vstack(
        [mo.md("## How wide a row is"), *(review_view.block(f) for f in still if f.claim.subject == "widths")], gap=2.5
    )
    return


@app.cell
def _(mo, review_view, still):
    mo.vstack(
        [mo.md("## Where rows lie"), *(review_view.block(f) for f in still if f.claim.subject == "buffers")], gap=2.5
    )
    return


@app.cell
def _(fields, opened, page, set_start, state):
    preset = page.preset_menu(opened["preset"], lambda name: set_start(state.read({"preset": name}, fields)[0]))
    return (preset,)


@app.cell
def _(every_record, fields, get_start, review_view):
    controls = review_view.controls(get_start(), fields, every_record)
    return (controls,)


@app.cell
def _(controls, opened, preset):
    # An emptied number field has no value: what the page opened with stands in.
    _chosen = {name: value for name, value in controls.value.items() if value is not None}
    values = {**opened, **_chosen, "preset": preset.value}
    return (values,)


@app.cell
def _(page, values):
    page.remember(values)
    return


@app.cell
def _(every_record, review_data, values):
    setting = review_data.setting_of(values, every_record)
    return (setting,)


@app.cell
def _(controls, mo, preset, review_view, setting):
    mo.vstack([mo.md("## What it saves: the account of a step"), review_view.control_panel(controls, preset, setting)])
    return


@app.cell
def _(UnmeasuredError, mo, page, review_charts, review_data, setting):
    try:
        _parts = review_data.parts_table(setting)
        _drawn = [review_charts.parts(_parts.to_dict("records"), review_data.step_length_us(setting))]
    except UnmeasuredError:
        _drawn = []
    _said = [review_data.account_sentence(setting), review_data.times_note(setting)]
    mo.vstack([*_drawn, *(page.sentence(text) for text in _said if text)])
    return


@app.cell
def _(NOT_IN_THE_ACCOUNT, mo, page, review_data, review_html, setting, values):
    contexts = review_data.contexts_table(setting)
    mo.vstack(
        [
            mo.Html(review_html.contexts(contexts.to_dict("records"), setting.max_seq_len)),
            page.downloads(contexts, "c128a-account", values),
            mo.accordion({"What the account leaves out": mo.md("\n".join(f"- {note}" for note in NOT_IN_THE_ACCOUNT))}),
        ]
    )
    return


@app.cell
def _(findings, mo, review_view):
    mo.vstack([review_view.block(f) for f in findings if f.claim.subject == "costs"], gap=2.5)
    return


@app.cell
def _(claims, findings, mo, review_html, setting):
    _run = f"{setting.model.name}, {setting.tokens:,} tokens a step at {setting.max_seq_len:,}"
    _heading = f"Review of vLLM PR #50004 ({_run}; times {setting.times.title})"
    _text = claims.markdown(findings, _heading)
    mo.vstack(
        [
            mo.md("## The review on one page\n\nPrinting this page prints this table alone."),
            mo.Html(review_html.closing(findings, _heading)),
            mo.hstack(
                [mo.download(_text.encode(), "review-pr50004.md", mimetype="text/markdown", label="Markdown")],
                justify="start",
            ),
            mo.accordion({"The same as Markdown, to copy into a review": mo.md(f"````markdown\n{_text}````")}),
        ]
    )
    return


if __name__ == "__main__":
    app.run()
