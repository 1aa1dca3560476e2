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
# description = "A walk through PR #50004: each claim of its report, the evidence, the verdict, and where the 1 % lies."
# ///

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="full", app_title="Do the claims hold?", html_head_file="head.html")

with app.setup:
    import re
    from dataclasses import replace
    from inspect import getsource

    import marimo as mo
    import pandas as pd

    from c128a.account import step
    from c128a.account.claims import CLAIMS, LEVELS, SUBJECTS, find, markdown, tally
    from c128a.account.walk import HUNKS
    from c128a.bench import records
    from c128a.case import CAPACITY, COMPRESS_RATIO
    from c128a.deployment.releases import RELEASES
    from c128a.show import forms, page, theme
    from c128a.show.words import words
    from c128a.teach.ask import ask
    from c128a.width import active_topk_width

    LOOK = dict(zip(LEVELS, theme.LEVELS.values(), strict=True))  # sign and colour of a verdict
    FORM = {"fixed": "fixed width", "adaptive": "adaptive width", "positions": "from positions", "once": "once a step"}
    GREY, BLUE, SKY, RED = (theme.Style(colour) for colour in (theme.GREY, theme.BLUE, theme.SKY, theme.VERMILLION))
    STYLE = {"fixed width": GREY, "adaptive width": BLUE, "from positions": theme.Style(theme.GREEN)}
    STYLE |= {"once a step": theme.Style(theme.PURPLE)}
    REPORTED = pd.DataFrame({"at": [step.REPORTED_GAIN], "label": [f"reported {step.REPORTED_GAIN:.1%}"]})
    MOVED = ("loop_32", *(claim.key for claim in SUBJECTS["What it saves"]))  # the claims that the controls move
    CONTEXTS = (8_192, 32_768, 131_072, 1_048_576)  # tokens; where the combine was measured
    NUMBERS = {
        "tokens": page.Integer(8192, 1, 65_536, "Tokens a step"),
        "step_ms": page.Integer(0, 0, 100_000, "Step as measured, ms (0: estimate it)"),
        "tflops": page.Integer(3200, 100, 100_000, "Throughput, TFLOP/s"),
        "tflops_low": page.Integer(1600, 100, 100_000, "at least"),
        "tflops_high": page.Integer(6300, 100, 100_000, "at most"),
        "prefill": page.Integer(90, 0, 100, "Time in prefill steps, %"),
        "prefill_low": page.Integer(50, 0, 100, "at least"),
        "prefill_high": page.Integer(100, 0, 100, "at most"),
    }
    FIELDS = page.shared_fields() | NUMBERS
    FIELDS["model"] = page.Choice("V4-Pro", tuple(step.MODELS))
    FIELDS["times"] = page.Choice("cold", tuple(step.SOURCES))
    FIELDS["hunk"] = page.Choice(1, tuple(range(1, len(HUNKS) + 1)))
    LINKS = {  # what is named, as it stands in HTML, and where it is on github.com
        r"(?:PR|[Ii]ssue) (?:#|&#35;)(\d+)": r"vllm-project/vllm/issues/\1",
        r"commit (01\w{8})": r"vllm-project/vllm/commit/\1",
        r"([\w&#;]+&#47;vllm)&#44; commit (ad\w{7})": r"\1/commit/\2",
        r"(?:vllm|tests)&#47;[\w&#;]+&#46;py": r"vllm-project/vllm/blob/v0.27.1/\g<0>",
    }


@app.function
def linked(shown):
    """What is shown, with links to the pull requests, issues, commits and files that it names."""
    text = shown.text
    for name, place in LINKS.items():
        text = re.sub(name, rf'<a href="https://github.com/{place}">\g<0></a>', text)
    return mo.Html(text)


@app.function
def verdict(found):
    """The sign and the level of a claim, and a link to its evidence, in Markdown."""
    claim, _, level, _ = found
    return f"- {LOOK[level].sign} [{claim.title}](#claim-{claim.key}): {level}"


@app.function
def block(found, evidence=None, says=""):
    """A claim and its verdict to the left, its evidence and what to see in it to the right."""
    claim, _, level, because = found
    look, text = LOOK[level], page.user_text
    told = mo.md(
        f"### {text(claim.title)}\n\n**The report.** {text(claim.report)}\n\n**Checked.** {text(claim.checked)}\n\n"
        f"**{look.sign} {level.capitalize()}.** {text(because)}\n\n`pytest tests/account -k {claim.key}`"
    )
    edge = f"border-left:5px solid {look.colour};padding-left:1.1rem;scroll-margin-top:1rem"
    card = mo.Html(f'<section id="claim-{claim.key}" style="{edge}">{linked(told).text}</section>')
    nothing = mo.callout("There is nothing to show; the verdict says why.", kind="warn")
    right = nothing if evidence is None else page.stack(evidence, page.sentence(says) if says else None)
    return page.columns(card, right, widths=[10, 11], gap=3)


@app.cell(hide_code=True)
def _():
    settings, get_start, *_ = page.open_page(FIELDS)
    opened = dict(settings.values)
    # These claims do not depend on the run that is accounted for, so no control makes them run again.
    still = {claim.key: find(claim, step.Run(), step.times_of()) for claim in CLAIMS if claim.key not in MOVED}
    return get_start, opened, settings, still


@app.cell(hide_code=True)
def _(run, still, times):
    moved = {claim.key: find(claim, run, times) for claim in CLAIMS if claim.key in MOVED}
    findings = [(still | moved)[claim.key] for claim in CLAIMS]
    return findings, moved


@app.cell(hide_code=True)
def _(findings, moved, settings, still, values):
    _regime = step.SOURCES[values["times"]][1]
    _words = {"holds": ("holds", "hold"), "holds in part": ("holds in part", "hold in part")}
    _words |= {"does not hold": ("does not hold", "do not hold"), LEVELS[-1]: ("could not be checked here",) * 2}
    _counts = [f"**{count} {_words[level][count != 1]}**" for level, count in tally(findings).items()]
    _cost = moved["throughput"].facts
    _saving = "At these settings **nothing is saved**." if _cost else "What is saved here was not measured."
    if _cost and _cost["saved_us"] > 0:
        _saving = (
            f"The saving is real, **{_cost['saved_us']:,.0f} µs** a prefill step with a {_regime} L2, and "
            f"**{_cost['from_combine']:.0%}** of it lies in the prefill combine, which the report does not name."
        )
    _graph, _unseen = still["addresses"].facts, still["test_covers"].facts["moved"] == 0
    _lead = (
        f"Of **{len(findings)} claims** of the report, {', '.join(_counts[:-1])} and {_counts[-1]}. {_saving} "
        f"What broke is the row stride: a reader that keeps the stride of its capture looks for "
        f"**{_graph['packed']} of {_graph['of']}** packed rows at a wrong address, and {_graph['outputs_wrong']} of "
        f"{_graph['outputs']} outputs of FlashMLA came out wrong (elsewhere; its other rows still held older ids of "
        f"the same requests){'. The new test could not see it' * _unseen}."
    )
    _header = page.header("05_review", "Do the claims hold?", _lead, values)
    page.stack(_header, page.notes(settings.problems), page.notes(records.problems(), kind="neutral"))
    return


@app.cell(hide_code=True)
def _(findings):
    _why = mo.md("""
    ## What you need to know

    DeepSeek-V4's C128A layers keep one **compressed entry** for every 128 tokens. Before each step of the engine a
    **builder** writes an **index row** for every token: the entries that the token may attend to, then **pads** (−1)
    up to the **width**. The buffers for these rows are allocated once, for the longest context. Their number of columns
    is the **capacity**, 8,192 at 1,048,576 tokens; the distance from one row to the next is the **row stride**. A
    **decode row** belongs to a token that is being generated, a **prefill row** to a token of a prompt. In each C128A
    layer the **combine** copies the prefill rows and adds a window of the 128 newest tokens.

    Before [PR #50004](https://github.com/vllm-project/vllm/pull/50004) every row was as wide as the capacity. Then its
    width followed the longest sequence of the batch. This page walks through the
    [report](http://prhub.com.cn/vllm-project/vllm/pull/50004) on that pull request as a reviewer would. There are two
    ways: claim by claim, or [hunk by hunk](#walk) through the diff. A verdict follows from numbers that were computed,
    measured, or produced just now by the kernel on this machine. *Holds in part* means that something which the
    statement leaves out matters. Which of these would you doubt?
    """)
    _lines = {found.claim: verdict(found) for found in findings}
    _stats = [mo.stat(count, label=level) for level, count in tally(findings).items()]
    _lists = [mo.md("\n".join([f"**{name}**\n", *map(_lines.get, claims)])) for name, claims in SUBJECTS.items()]
    page.stack(_why, mo.hstack(_stats, justify="start", wrap=True, gap=2), page.columns(*_lists), gap=1)
    return


@app.cell
def _(opened, still):
    _why = mo.md(f"""
    ## Step 1 of the diff: how wide a row is

    The diff replaces a constant by one formula:

    ```python
    min(max(next_power_of_2(max(max_seq_len // 128, 1)), 128), capacity)
    ```

    Of such a formula a reviewer asks three things. Is it right for the example that the report gives? What does it do
    at its ends, for an empty sequence and for one that the capacity cannot hold? And why these constants? To try other
    lengths, open [Width]({page.link("01_width", opened, only=page.shared_fields())}).
    """)
    _f = still["needs_256"].facts
    _rows = pd.DataFrame(_f["rows"]).assign(part=lambda rows: rows["name"], value=lambda rows: rows["columns"])
    _rows["label"] = _rows["value"].map("{:,}".format)
    _styles = {**STYLE, "entries to attend": STYLE["from positions"]}
    _built = forms.bars(_rows, styles=_styles, legend=False, description="Columns built, and entries to attend to")
    _pads = f"{1 - _f['needed'] / _f['capacity']:.0%} of a row of {_f['capacity']:,} columns would be pads."
    page.stack(_why, block(still["needs_256"], _built, _pads), gap=1)
    return


@app.cell
def _(moved):
    mo.stop(not moved["loop_32"].facts, block(moved["loop_32"]))
    _rows = pd.DataFrame(moved["loop_32"].facts["rows"]).rename(columns={"factor": "value"})
    _rows["name"] = _rows["what"].map({"columns": "columns", "trips": "trips of the loop", "us": "measured µs"})
    _rows["label"] = [f"{r.value:.3g} × ({r.before:,.4g} → {r.after:,.4g})" for r in _rows.itertuples()]
    block(
        moved["loop_32"],
        forms.bars(_rows, description="How many times less, by what is counted"),
        "One change, three factors. A **trip** is one turn of the loop, which takes 1,024 columns at once.",
    )
    return


@app.cell
def _(still):
    _rows = pd.DataFrame(still["proportional"].facts["rows"]).assign(label=lambda rows: rows["trips"].map(str))
    _line = _rows[["width"]].assign(trips=_rows["line"])
    _axes = {"x_axis": forms.Axis("width, columns", log=2), "y_axis": forms.Axis("trips", log=2, ticks=(1, 2, 4, 8))}
    _text = "Trips of the loop for each width, beside the proportional line"
    _trips = forms.points(_rows, x="width", y="trips", reference=_line, height=210, description=_text, **_axes)
    _said = "The dashed line is proportional. Narrow rows lie above it: a trip takes 1,024 columns or none."

    _lost = still["empty_and_odd"].facts["rows"].query("lost > 0 and max_seq_len == max_seq_len.max()")
    _lost = _lost.sort_values("capacity", ascending=False).rename(columns={"width": "columns built"})
    _lost["name"] = _lost["capacity"].map("capacity {:,}".format)
    _ends = {"totals": _lost[["name"]].assign(label=_lost["lost"].map("{:,} lost".format)), "bar_height": 18}
    _parts = _lost.rename(columns={"lost": "entries lost"}).melt("name", ["columns built", "entries lost"], "part")
    _look = {"styles": {"columns built": BLUE, "entries lost": RED}, "description": "Entries that have no column"}
    _columns = forms.bars(_parts, stack=True, room=430, **_ends, **_look)
    _length, _needed = _lost[["max_seq_len", "needed"]].iloc[0]
    _all = f"A sequence of {_length:,} tokens has {_needed:,} entries, too many for these."

    _looks = {"taken by the kernel": GREY, "row, at least 128": BLUE._replace(dash=(6, 3))}
    _looks["row, power of two alone"] = RED._replace(dash=(2, 2))
    _rows = pd.DataFrame(still["why_128"].facts["rows"]).set_axis(["entries", *_looks], axis=1)
    _rows = _rows.melt("entries", var_name="row", value_name="columns")
    _axes = {"x_axis": forms.Axis("entries of a row"), "y_axis": forms.Axis("columns"), "height": 210}
    _axes |= {"series": "row", "dots": False, "join": True, "step": True}
    _text = "Columns that a decode kernel takes at a time, beside the columns of a row"
    _curve = forms.points(_rows, x="entries", y="columns", styles=_looks, description=_text, **_axes)
    _past = still["why_128"].facts["reads_past_without"]
    _end = f"Up to {_past} entries a row of a power of two alone would end before the first 128 that the kernel takes."
    _places = linked(page.table(pd.DataFrame(still["constant"].facts["rows"])))
    _copy = "A copy of the formula alone fails at its first step."
    _blocks = [block(still["proportional"], _trips, _said), block(still["empty_and_odd"], _columns, _all)]
    _blocks += [block(still["constant"], _places, _copy), block(still["why_128"], _curve, _end)]
    mo.vstack(_blocks, gap=1.5)
    return


@app.cell
def _(opened, still):
    _why = mo.md(f"""
    ## Steps 2 and 3: where the rows lie

    Rows used to start 8,192 elements apart. The diff makes them **packed**: the row stride becomes the width, so that
    row 1 lies elsewhere whenever the width changes, and row 0 always stays at offset 0. Rows that keep the stride of
    the buffer are **pitched**. What does the kernel write then? For the next three claims it runs here.

    To see every cell of both layouts, open
    [Layout]({page.link("02_layout", {**opened, "layout": "packed"}, only=page.shared_fields())}).
    """)
    _three = [still[key] for key in ("shapes", "bounds", "semantics")]
    _shapes, _bounds, _same = (found.facts for found in _three)
    _evidence, _ran = [None] * 3, ""
    if _shapes and _bounds and _same:
        _outside = {"cells outside the views, all marked": _bounds["outside"], "… changed": _bounds["changed_outside"]}
        _outside |= {"cells inside left unwritten": _bounds["unwritten_inside"]}
        _outside |= {f"of {_bounds['too_wide']} widths over the buffer: refused": _bounds["refused"]}
        _cells = {"builds at narrower widths": _same["builds"], "cells compared with full width": _same["cells"]}
        _cells |= {"… different": _same["different"]}
        _cells |= {f"of {_same['frozen_rows']} packed rows: wrong for a frozen reader": _same["frozen_wrong"]}
        _counts = [pd.DataFrame(counts.items(), columns=["counted", "found"]) for counts in (_outside, _cells)]
        _evidence = [page.table(rows) for rows in (pd.DataFrame(_shapes["rows"]), *_counts)]
        _ran = f"Run here: {page.user_text(_bounds['ran'])}."
    page.stack(_why, *(block(found, shown, _ran) for found, shown in zip(_three, _evidence, strict=True)), gap=1.5)
    return


@app.cell
def _(still):
    _why = mo.md("""
    So the kernel writes what it should, and where it should. But a **frozen reader**, one that goes on with the row
    stride of an earlier step, finds the wrong rows. Before you read on, guess: which reader could do that, and would
    the new test of the pull request notice?
    """)
    _rows = still["test_covers"].facts["rows"].rename(columns={"layout": "lane", "end": "stop"})
    _rows["kind"] = _rows["tested"].map({True: "looked at by the test", False: "not in the test"})
    _rows["label"] = _rows["row"].map("row {}".format)
    _styles = {"looked at by the test": BLUE, "not in the test": theme.CELLS["never written"]}
    _axis = forms.Axis("flat offset in the buffer", ticks=(0, 128, 256, 384))
    _text = "The rows of the test, and a second row, in both layouts"
    _drawn = forms.bands(_rows, x_axis=_axis, styles=_styles, lane_height=40, room=430, description=_text)
    _said = (
        "The only row of the test lies at offset 0 in both layouts. A second row would begin at "
        f"{' or at '.join(map(str, _rows[_rows['row'] == 1]['start']))}, and a wrong stride would show."
    )
    _covers = block(still["test_covers"], _drawn, _said)

    _graph = mo.md("""
    The reader is in the graph. A **CUDA graph** records kernel launches once, with their arguments, and replays
    them. The builder runs before the replay, decode attention inside of it. The graph is captured at the longest
    context, so attention keeps a row stride of 8,192 for good, while packed rows lie closer together.
    """)
    _f = still["addresses"].facts
    _rows = pd.DataFrame(_f["rows"])
    _rows["build"] = [f"{row.layout}, {row.max_seq_len:,} tokens" for row in _rows.itertuples()]
    _rows["asked"] = _rows["row"].map("row {}".format)
    _rows["kind"] = _rows["right"].map({True: "right", False: "wrong"})
    _got = ["old bytes" if pd.isna(row) else f"row {row:.0f}" for row in _rows["found"]]
    _rows["label"] = [f"{theme.VERDICTS[kind].sign} {got}" for kind, got in zip(_rows["kind"], _got, strict=True)]
    _look = {"column_title": "the reader asks for", "styles": theme.VERDICTS, "legend": False, "cell_height": 34}
    _here = " and ".join(f"{sum(right)} of {len(right)} {layout} rows" for layout, right in _f["right"].items())
    _said = f"Just now, {page.user_text(_f['reader'])} got {_here} right. " if _here else ""
    _matrix = forms.matrix(_rows, row="build", column="asked", description="What a frozen reader finds", **_look)
    _said = (
        f"What a reader finds at the stride of its capture, 8,192. {_said}With FlashMLA in a CUDA graph the attention "
        f"output of row 1 was off by up to {_f['attention_error']:.0%} (figures from elsewhere)."
    )
    _words = words("row", "stride", "packed", "pitch", "stale")
    page.stack(_why, _covers, _graph, block(still["addresses"], _matrix, _said), _words, gap=1)
    return


@app.cell
def _(opened):
    _changes = list({release.change: release for release in reversed(RELEASES)}.values())[::-1]  # the first with each
    _rows = pd.DataFrame([vars(release) for release in _changes])
    _rows["width"] = [active_topk_width(32_768, COMPRESS_RATIO, CAPACITY, policy=policy) for policy in _rows["policy"]]
    _rows["row stride"] = _rows["width"].where(_rows["layout"] == "packed", CAPACITY)
    _rows["name"] = "vLLM " + _rows["name"] + "\n" + _rows["change"]
    _rows = _rows.melt("name", ["width", "row stride"], "part")
    _moves = (_rows["part"] == "row stride") & (_rows["value"] < CAPACITY)
    _rows["label"] = _rows["value"].map("{:,}".format) + _moves.map({True: ": ✘ rows move with the batch", False: ""})
    _styles = {"width": BLUE, "row stride": SKY}
    _text = "Width and row stride in each release that changed them"
    _outcomes = " ".join(f"**{release.name}**: {release.outcome}." for release in _changes)
    page.stack(
        mo.md("## What became of the change"),
        forms.bars(_rows, styles=_styles, description=_text),
        linked(
            page.sentence(
                f"A batch of 32,768 tokens at a capacity of 8,192, release by release. {_outcomes} For a deployment of "
                f"yours, open [Deployment]({page.link('06_deployment', opened, only=page.shared_fields())})."
            )
        ),
    )
    return


@app.cell(hide_code=True)
def _(opened):
    mo.md(f"""
    ## The one percent: the account of a step

    The report names neither the card nor the tokens per second, so its 1.0 % cannot be measured again. It can be
    accounted for. In a prefill step the builder runs once, and the combine once for each C128A layer:

    ```text
    saved       = (builder, fixed − adaptive) + C128A layers × (combine, fixed − adaptive)
    step length = active parameters × tokens × 2 flop ÷ sustained throughput          (or what you measured)
    more tokens = 1 ÷ (1 − share of time in prefill steps × saved ÷ step length) − 1
    ```

    The kernel times are [measured]({page.link("04_timing", opened, only=page.shared_fields())}), and between measured
    points they lie on a straight line. They open with a **cold L2** and no overlapping launches, the regime nearest
    to serving: a builder runs once a step and a combine once a layer, after kernels that move far more than the L2
    holds, and with none of their own kind before them. Two numbers are assumed, each with a range. Put your own in.
    """)
    return


@app.cell(hide_code=True)
def _(get_start, settings):
    _start = get_start()
    # Powers of two, the first length that saves nothing, and the one that was asked for.
    _lengths = sorted({*(1 << power for power in range(12, 21)), 524_416, _start["seq"]})
    _sources = {source: step.times_of(source).title for source in FIELDS["times"].options}
    controls = mo.ui.dictionary(
        {
            "model": page.menu("Model", FIELDS["model"].options, _start["model"]),
            "seq": page.menu("Context, tokens", _lengths, _start["seq"]),
            "policy": page.radio("Policy", theme.POLICY_NAME, _start["policy"]),
            "times": page.menu("Kernel times", _sources, _start["times"]),
        }
        | {name: page.number(field, _start[name]) for name, field in NUMBERS.items()},
        on_change=settings.moved,
    )
    return (controls,)


@app.cell(hide_code=True)
def _(controls, settings):
    _, _wrong = settings.take(controls.value)
    values = dict(settings.values)
    page.remember(values)
    _at, (*_, _preset) = controls.elements, settings.controls()
    _panel = page.panel(  # with the note in it: one beside the panel would take the focus from a control
        [_preset, _at["model"], _at["tokens"], _at["seq"]],
        [_at["policy"], _at["times"], _at["step_ms"]],
        [_at["tflops"], _at["tflops_low"], _at["tflops_high"]],
        [_at["prefill"], _at["prefill_low"], _at["prefill_high"]],
        page.told(_wrong, values["preset"]),
    )

    def _span(name, unit):  # a range is widened to hold its value
        value, low, high = (values[f"{name}{end}"] / unit for end in ("", "_low", "_high"))
        return step.Span(min(value, low, high), value, max(value, low, high))

    times, _given = step.times_of(values["times"]), [values[name] for name in ("model", "tokens", "seq", "policy")]
    run = step.Run(*_given, CAPACITY, _span("tflops", 1000), _span("prefill", 100), values["step_ms"] * 1000.0 or None)
    _panel
    return run, times, values


@app.cell
def _(moved, run, times):
    try:
        _account = step.prefill_step(run, times)
        _us, _positions, _once = (step.saved_us(_account, form) for form in ("adaptive", "positions", "once"))
        _gain, _length = step.gain(run, sum(_us.values())), run.step_us(run.pflops.value)
    except step.NoAccountError as _refused:
        _why = f"No account at this setting: {_refused}. A time is read between measured points, never beyond them."
        _output = page.sentence(_why)
    else:
        _rows = _account.assign(name=_account["form"].map(FORM), part=_account["kernel"], value=_account["us"])
        _rows["tip"] = [f"{row.launches} × {row.us_a_launch:,.2f} µs, {row.basis}" for row in _rows.itertuples()]
        _ends = _rows.groupby("name", sort=False)["us"].sum().reset_index()
        _shares = [f"{us / _length:.2%}" if us >= _length / 10_000 else "under 0.01%" for us in _ends["us"]]
        _ends["label"] = [f"{us:,.0f} µs, {share} of the step" for us, share in zip(_ends["us"], _shares, strict=True)]
        _look = {"styles": {"builder": theme.Style(theme.ORANGE), "combine": BLUE}, "axis": forms.Axis("µs a step")}
        _look["description"] = "Microseconds a step, by form and kernel"
        _inside = "inside" if _gain.low <= step.REPORTED_GAIN <= _gain.high else "outside"
        _said = (
            f"A {run.model} step of {run.tokens:,} tokens at {run.max_seq_len:,} saves **{sum(_us.values()):,.0f} µs** "
            f"of {_length / 1000:,.0f} ms ({'as given' if run.measured_step_us else 'estimated'}): "
            f"{_us['combine']:,.0f} µs in the combine, {_us['builder']:,.0f} µs in the builder. That is "
            f"**{_gain.value:.2%} more tokens per second**, {_gain.low:.2%} to {_gain.high:.2%} over the assumptions; "
            f"the reported {step.REPORTED_GAIN:.1%} lies {_inside}. Rows **from positions** need no prefill rows of "
            f"the builder, and would save {sum(_positions.values()):,.0f} µs; made **once a step**, since they depend "
            f"on no layer, {sum(_once.values()):,.0f} µs."
        )
        _output = page.stack(forms.bars(_rows, stack=True, totals=_ends, **_look), page.sentence(_said))
    _verdicts = "\n".join(["These claims follow the settings:\n", *map(verdict, moved.values())])
    page.columns(_output, mo.md(_verdicts), widths=[3, 1])
    return


@app.cell
def _(run, times, values):
    _rows = []
    for _context in sorted({*CONTEXTS, run.max_seq_len}):
        _at = replace(run, max_seq_len=_context)
        try:
            for _form in ("adaptive", "positions", "once"):
                _us = step.saved_us(step.prefill_step(_at, times), _form)
                _gain = step.gain(_at, sum(_us.values()))._asdict()
                _rows.append({"context": _context, "form": FORM[_form], "width": _at.width, **_us, **_gain})
        except step.NoAccountError as _refused:
            _rows.append({"context": _context, "why": f"{_refused}"})
    _columns = ["context", "form", "width", "builder", "combine", "low", "value", "high", "why"]
    _table = pd.DataFrame(_rows, columns=_columns)
    _drawn = _table[_table["why"].isna()].copy()
    _drawn["name"] = [f"{row.context:,}, {row.form}" for row in _drawn.itertuples()]
    _drawn["label"] = [f"{row.value:.2%}, {row.builder + row.combine:,.0f} µs saved" for row in _drawn.itertuples()]
    _look = {"x": "value", "y": "name", "series": "form", "rules": REPORTED}
    _look["x_axis"] = forms.Axis("more tokens per second", unit="percent")
    _styles, _text = {name: STYLE[name] for name in list(FORM.values())[1:]}, "The gain by context"
    _gains = _drawn[_drawn["form"] == "adaptive width"].set_index("context")["value"]
    _adaptive = len(_gains) and (
        f"The adaptive width gains most at {_gains.idxmax():,} tokens, {_gains.max():.2%}, and least at "
        f"{_gains.idxmin():,}, {_gains.min():.2%}."
    )
    _missing = " ".join(f"{row.context:,} tokens: {row.why}." for row in _table[_table["why"].notna()].itertuples())
    page.stack(
        forms.points(_drawn, styles=_styles, description=_text, **_look) if len(_drawn) else None,
        page.sentence(f"The same step at other contexts. {_adaptive or ''} {_missing}"),
        page.downloads(_table, "c128a-account", values),
    )
    return


@app.cell(hide_code=True)
def _():
    ask("05")
    return


@app.cell(hide_code=True)
def _(run):
    _left_out = f"""
    - The step estimate counts the matrix products of the active parameters ({step.MODELS[run.model].source}). Attention
      over the context and communication make a real step longer, and every share smaller.
    - 3,200 TFLOP/s are 20 % of eight times 1,979, the dense FP8 peak of an H200; the range goes from 10 to 40 %. For
      scale: SGLang's prefill of DeepSeek-V3, 37 billion active parameters, on eight H100 comes to 4,100 TFLOP/s
      (lmsys.org, 25 September 2025: 26,156 tokens/s a GPU on GB200, 3.8 times the H100).
    - 90 % of the time in prefill steps: the report gives no prompt lengths; its runs' folder is called prefill-results.
    - Every tensor-parallel rank combines all tokens of the step: combine times are not divided by the number of cards.
    - Kernel times are those of one H200; on another card kernels and step get faster together. The pull request may
      have run on another card: NVIDIA's Dynamo recipe caps V4-Pro on eight H200 at 86,016 tokens.
    - Nothing overlaps: a kernel that runs beside another one saves less than its own time.
    - The combine recorded here is this repository's own writing of the released form. The figures from elsewhere, which
      can be chosen above, are of the released kernel itself.
    """
    page.stack(
        mo.accordion({"Where the numbers come from, and what the account leaves out": mo.md(_left_out)}),
        mo.md("""
        Try: choose the context 524,416, from which every row has the full width, and the saving is gone. Then go back
        to 32,768 and set the throughput to 400 TFLOP/s, from 300 to 500. A slower server takes longer for the same
        step, so the same microseconds are a smaller share of it, and two verdicts turn.

        ## What it saves: the claims

        With the account in hand, look at the five claims about time. The report explains the gain by the loop in
        decode; the first of them asks how much of the time was there.
        """),
    )
    return


@app.cell
def _(moved, run):
    _mine = [moved[key] for key in ("where", "throughput", "first_token")]
    mo.stop(not _mine[0].facts, mo.vstack(list(map(block, _mine))))
    _rows = moved["where"].facts["rows"].rename(columns={"saved_us": "value", "step": "part"})
    _rows["name"] = _rows["part"] + ": " + _rows["kernel"]
    _rows["label"] = [f"{us:,.1f} µs" if us < 100 else f"{us:,.0f} µs" for us in _rows["value"]]
    _look = {"styles": {"decode": theme.Style(theme.ORANGE), "prefill": BLUE}, "legend": False}
    _shown = forms.bars(_rows, description="Microseconds saved a step, by kernel", **_look)
    _layers = step.MODELS[run.model].c128a_layers
    _said = f"Microseconds saved a step at 32,768 tokens; the combine counts {_layers} layers."
    _blocks = [block(moved["where"], _shown, _said)]

    _look = {"styles": STYLE, "legend": False, "x_axis": forms.Axis("gain", unit="percent"), "rules": REPORTED}
    _look |= {"description": "The range of the gain that the assumptions leave, beside the reported one"}
    _look |= {"x": "value", "y": "name", "series": "kind"}
    _said = f"{run.model}, {run.tokens:,} tokens a step. A bar is the range that the assumptions leave, the dot "
    _said += "their chosen values."
    for _found in (moved["throughput"], moved["first_token"]):
        _rows = pd.DataFrame(_found.facts.get("rows", []), columns=["form", "context", "low", "value", "high"])
        _rows["kind"] = _rows["form"].map(FORM).fillna("adaptive width")
        _rows["name"] = _rows["kind"].where(_rows["context"].isna(), _rows["context"].map("{:,.0f} tokens".format))
        _shown = forms.points(_rows, **_look) if _found.facts else None
        _blocks.append(block(_found, _shown, _said))
    mo.vstack(_blocks, gap=1.5)
    return


@app.cell
def _(moved):
    _both = [moved[key] for key in ("long", "regression")]
    mo.stop(not all(found.facts for found in _both), mo.vstack(list(map(block, _both))))
    _long = moved["long"].facts["rows"].rename(columns={"kernel": "name", "us": "value"})
    _long["part"], _long["label"] = _long["form"].map(FORM), _long["value"].map("{:,.1f} µs".format)
    _styles = {name: STYLE[name] for name in ("fixed width", "adaptive width")}
    _launch = forms.bars(_long, styles=_styles, description="One launch at the longest context, by width")
    _same = "One launch at 1,048,576 tokens and 8,192 rows: there is nothing to save."

    _rows = moved["regression"].facts["rows"][["decode", "prefill", "max_seq_len", "ratio"]]
    _rows["batch"] = [f"{row.decode:,} decode, {row.prefill:,} prefill" for row in _rows.itertuples()]
    _rows["batch"] = _rows["batch"].str.replace("^0 decode, |, 0 prefill$", "", regex=True)
    _rows["tip"] = [f"{row.batch} at {row.max_seq_len:,} tokens: {row.ratio:.3f}" for row in _rows.itertuples()]
    _look = {"x_axis": forms.Axis("adaptive over fixed time", log=10), "rules": pd.DataFrame({"at": [1.0]})}
    _ratios = forms.points(_rows, x="ratio", y="batch", description="Adaptive over fixed time, by batch", **_look)
    _said = f"Each point is one of {len(_rows)} measured cells of the builder; right of the dashed line it is slower."
    mo.vstack([block(moved["long"], _launch, _same), block(moved["regression"], _ratios, _said)], gap=1.5)
    return


@app.cell
def _(still):
    _why = mo.md("""
    ## Around the change

    Three statements of the report are about the pull request and not about its code. They were checked in public.
    """)
    _around = [still[claim.key] for claim in SUBJECTS["Around the change"]]
    _blocks = [block(found, linked(page.table(pd.DataFrame(found.facts["rows"])))) for found in _around]
    page.stack(_why, *_blocks, gap=1.5)
    return


@app.cell(hide_code=True)
def _(opened):
    hunk_ui = page.radio("Hunk", {at: f"{at} {hunk.title}" for at, hunk in enumerate(HUNKS, 1)}, opened["hunk"])
    _note = {"placeholder": "What you would write in the review. It goes into the Markdown below.", "full_width": True}
    notes_ui = mo.ui.array([mo.ui.text_area(label=f"Your notes on {hunk.title}", **_note) for hunk in HUNKS])
    page.stack(
        mo.Html('<div id="walk"></div>'),
        mo.md("""
        ## The second way: the diff, hunk by hunk

        Six places, four that the diff changes and two that it leaves as they were. The lines are a small builder of our
        own that says what the change does, and it runs: each check was run just now on the builder before the change,
        after it, and as vLLM has it since 0.29.
        """),
        hunk_ui,
    )
    return hunk_ui, notes_ui


@app.function
def walked(hunk):
    """The lines of a hunk, what to check in them and what the check finds, what broke later."""
    names = {1: ["the same before and after"], 2: ["before, and from 0.29 on", "PR #50004"]}
    names = names.get(len(hunk.parts), ["before", "PR #50004", "from 0.29 on"])
    code = [f"{name}\n\n```python\n{getsource(part)}```" for name, part in zip(names, hunk.parts, strict=True)]
    return page.stack(
        page.columns(*[mo.Html(f'<div class="c128a-command">{mo.md(lines).text}</div>') for lines in code], gap=1),
        mo.md(f"**To check.** {hunk.look}"),
        page.table(hunk.table()),
        linked(mo.md(f"**What broke, and where it could be seen.** {hunk.later}")),
        gap=1,
    )


@app.cell
def _(hunk_ui, notes_ui):
    page.remember({"hunk": hunk_ui.value})
    _at = hunk_ui.value - 1
    page.stack(*map(walked, HUNKS if page.RECORDED else [HUNKS[_at]]), notes_ui[_at], gap=1)
    return


@app.cell(hide_code=True)
def _(findings, notes_ui, run, times):
    _title = f"Review of vLLM PR #50004 ({run}; times {times.title})"
    _noted = [*zip(HUNKS, notes_ui.value, strict=True)]
    _walk = {hunk.title: f"{hunk.look} {hunk.later} {note}".strip() for hunk, note in _noted}
    _text = markdown(findings, _title, _walk)
    _shown = markdown(findings, _title, {hunk.title: page.user_text(note) for hunk, note in _noted if note.strip()})
    page.stack(
        mo.md("""
        ## The review on one page

        Printing this page prints this table and your notes alone. The Markdown holds the walk through the diff too.
        """),
        mo.Html(f'<div class="review-closing">{mo.md(_shown.replace("| ---", "| :---")).text}</div>'),
        mo.hstack([mo.download(_text.encode(), "review-pr50004.md", mimetype="text/markdown", label="Markdown")]),
        mo.accordion({"The same as Markdown, to copy into a review": mo.plain_text(_text)}),
        page.command("pytest tests/account", "The tests that hold each verdict to its facts:"),
    )
    return


if __name__ == "__main__":
    app.run()
