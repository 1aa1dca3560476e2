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
app = marimo.App(width="full", app_title="Do the claims hold?")


@app.cell
def _():
    import marimo as mo

    from c128a import claims, records
    from c128a.account import MODELS, NOT_IN_THE_ACCOUNT
    from c128a.measured import UnmeasuredError
    from c128a.ui import page, review_charts, review_data, review_html, review_view, state
    from c128a.width import POLICIES

    return (
        MODELS,
        NOT_IN_THE_ACCOUNT,
        POLICIES,
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
def _(mo, records, review_data, state):
    every_record = records.load_all()
    fields = review_data.fields(every_record)
    opened, notes = state.read(mo.query_params().to_dict(), fields)
    return every_record, fields, notes, opened


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
    page.header("05_review", "Do the claims hold?", review_data.lead(claims.tally(findings)), values)
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
def _(mo, page, review_charts):
    mo.vstack(
        [
            mo.md("## What became of the change"),
            review_charts.releases(),
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
def _(MODELS, POLICIES, every_record, fields, mo, opened, page, state):
    model_control = mo.ui.dropdown(list(MODELS), value=opened["model"], label="Model")
    tokens_control = mo.ui.number(1, 65_536, step=1, value=opened["tokens"], label="Tokens a step")
    seq_control = page.token_slider(opened["seq"], None, label="Context", most=state.MAX_TOKENS)
    policy_control = mo.ui.radio(POLICIES, value=opened["policy"], label="Policy", inline=True)
    record_control = mo.ui.dropdown(
        {record.title: record.name for record in every_record if record.name in fields["record"].options},
        value=next(record.title for record in every_record if record.name == opened["record"]),
        label="Kernel times",
    )
    step_control = mo.ui.number(0, 100_000, step=1, value=opened["step_ms"], label="Step, ms (0: estimated)")
    return model_control, policy_control, record_control, seq_control, step_control, tokens_control


@app.cell
def _(fields, mo, opened):
    # Each assumption has a value and the range it may lie in.
    def _number(name, label):
        return mo.ui.number(fields[name].least, fields[name].most, step=1, value=opened[name], label=label)

    assumed_controls = mo.ui.dictionary(
        {
            "tflops": _number("tflops", "Throughput, TFLOP/s"),
            "tflops_low": _number("tflops_low", "from"),
            "tflops_high": _number("tflops_high", "to"),
            "prefill": _number("prefill", "Prefill share, %"),
            "prefill_low": _number("prefill_low", "from"),
            "prefill_high": _number("prefill_high", "to"),
        }
    )
    return (assumed_controls,)


@app.cell
def _(
    assumed_controls,
    model_control,
    opened,
    policy_control,
    record_control,
    seq_control,
    step_control,
    tokens_control,
):
    _chosen = {
        "model": model_control.value,
        "tokens": tokens_control.value,
        "seq": seq_control.value,
        "policy": policy_control.value,
        "record": record_control.value,
        "step_ms": step_control.value,
        **assumed_controls.value,
    }
    # An emptied number field has no value: what the page opened with stands in.
    values = {**opened, **{name: value for name, value in _chosen.items() if value is not None}}
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
def _(
    assumed_controls, mo, model_control, page, policy_control, record_control, seq_control, step_control, tokens_control
):
    _assumed = assumed_controls.elements
    mo.vstack(
        [
            mo.md("## What it saves: the account of a step"),
            page.panel(
                [model_control, tokens_control, policy_control, record_control],
                [seq_control],
                [step_control, *_assumed.values()],
            ),
        ]
    )
    return


@app.cell
def _(UnmeasuredError, mo, page, review_charts, review_data, setting):
    try:
        _parts = review_data.parts_table(setting)
        _drawn = [review_charts.parts(_parts.to_dict("records"), review_data.step_length_us(setting))]
    except UnmeasuredError:
        _drawn = []
    mo.vstack([*_drawn, page.sentence(review_data.account_sentence(setting))])
    return


@app.cell
def _(NOT_IN_THE_ACCOUNT, mo, page, review_data, review_html, setting, values):
    contexts = review_data.contexts_table(setting)
    mo.vstack(
        [
            mo.Html(review_html.contexts(contexts.to_dict("records"), setting.max_seq_len)),
            page.downloads(contexts, "c128a-account", values),
            mo.accordion(
                {
                    "What is assumed, and what is left out": mo.Html(
                        review_html.assumptions(setting.assumptions, NOT_IN_THE_ACCOUNT)
                    )
                }
            ),
        ]
    )
    return


@app.cell
def _(findings, mo, review_view):
    mo.vstack([review_view.block(f) for f in findings if f.claim.subject == "costs"], gap=2.5)
    return


@app.cell
def _(claims, findings, mo, review_html, setting):
    _text = claims.markdown(findings)
    _run = f"{setting.model.name}, {setting.tokens:,} tokens a step at {setting.max_seq_len:,}, {setting.times.title}"
    mo.vstack(
        [
            mo.md("## The review on one page\n\nPrinting this page prints this table alone."),
            mo.Html(review_html.closing(findings, f"Review of vLLM PR #50004 ({_run})")),
            mo.download(_text.encode(), filename="review-pr50004.md", mimetype="text/markdown", label="Markdown"),
            mo.accordion({"The same as Markdown, to copy into a review": mo.md(f"````markdown\n{_text}````")}),
        ]
    )
    return


if __name__ == "__main__":
    app.run()
