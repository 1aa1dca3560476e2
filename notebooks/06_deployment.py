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

with app.setup(hide_code=True):
    import re
    from itertools import product

    import marimo as mo
    import pandas as pd

    from c128a.account.step import MODELS
    from c128a.bench import records
    from c128a.case import COMPRESS_RATIO
    from c128a.deployment import check, command
    from c128a.deployment.__main__ import costs_of
    from c128a.deployment.findings import CONSUMER_NAMES, GRAPH_NAMES, POLICY_NAMES, Finding, width_list
    from c128a.deployment.releases import RELEASES, release_of
    from c128a.deployment.serve import read_serve_line
    from c128a.layout import LAYOUTS, human_bytes
    from c128a.show import forms, page, theme
    from c128a.show.words import words
    from c128a.teach.ask import ask
    from c128a.width import sequence_range

    OWN = "own"  # in place of a release: a builder with a layout and a policy of its own
    BUILDERS = {**{release.name: f"vLLM {release.name}" for release in RELEASES}, OWN: "a builder of your own"}
    # Arguments of check, which a command line gives too, and their names in the address.
    NAMES = {"release": "release", "max_model_len": "model_len", "max_num_batched_tokens": "batch"}
    NAMES |= {"max_num_seqs": "seqs", "num_speculative_tokens": "spec", "block_size": "block"}
    NAMES |= {"graph": "graph", "consumer": "consumer", "batch_invariant": "invariant"}
    LINE = [name for name in NAMES if name not in ("release", "consumer")]  # a line sets them, also by its silence
    # Sign, word, and kind of callout.
    LEVELS = {
        "danger": ("✖", "Danger", "danger"),
        "warning": ("▲", "Warning", "warn"),
        "info": ("●", "Good to know", "info"),
        "safe": ("✔", "Nothing dangerous", "success"),
        "unknown": ("?", "Not enough read to say", "warn"),
    }

    class Widths:
        """A field of the address: widths in columns with commas between them; empty where no list is given."""

        default, title = "", "Warmed widths"

        def parse(self, text):
            """The list in one form; raises ValueError for anything but a few multiples of 128."""
            short = re.fullmatch(r"\s*([0-9]{1,6}(\s*,\s*[0-9]{1,6}){0,127}\s*)?", text)
            widths = {int(width) for width in text.split(",") if width.strip()} if short else {0}
            if any(not width or width % 128 for width in widths):
                raise ValueError("it must be widths in columns, multiples of 128 with commas between them")
            return ",".join(map(str, sorted(widths)))

    FIELDS = {name: page.shared_fields()[name] for name in ("preset", "model_len", "seq", "ratio", "layout", "policy")}
    FIELDS["seq"] = page.Integer(32_768, 0, page.MAX_TOKENS, "Context, typically (tokens)")
    FIELDS |= {
        "release": page.Choice("0.30.0", tuple(BUILDERS)),
        "batch": page.Integer(8192, 1, 1_048_576, "Batch tokens"),
        "seqs": page.Integer(512, 1, 65_536, "Sequences"),
        "spec": page.Integer(0, 0, 64, "Speculative tokens"),
        "block": page.Choice(256, (128, 256, 512, 1024)),
        "graph": page.Choice("full", tuple(GRAPH_NAMES)),
        "consumer": page.Choice("flashmla_sm90", tuple(CONSUMER_NAMES)),
        "capacity": page.Integer(0, 0, 65_536, "Capacity (columns; 0: as needed)"),
        "warm": Widths(),
        "invariant": page.Choice("no", ("no", "yes")),
    }

    def grid(parts, least):
        """Parts side by side, each at least so wide, in as many columns as the window has room for."""
        columns = f"repeat(auto-fit, minmax(min({least}, 100%), 1fr))"
        style = f"display: grid; grid-template-columns: {columns}; gap: 1rem 1.5rem; align-items: end"
        return mo.Html(f'<div style="{style}">{"".join(mo.as_html(part).text for part in parts)}</div>')


@app.cell(hide_code=True)
def _():
    settings, get_start, *_ = page.open_page(FIELDS)
    get_pasted, set_pasted = mo.state(None)  # why a command was not read, or what it says
    place = page.clickable(lambda mark: settings.put({name: mark[name] for name in ("release", "graph")}))
    return get_pasted, get_start, place, set_pasted, settings


@app.cell(hide_code=True)
def _(found, values):
    _lead = "{} **{}.** ".format(*LEVELS[found.verdict]) + found.sentence
    _header = page.header("06_deployment", "Is my deployment safe?", _lead, values)
    page.stack(_header, page.notes(records.problems(), kind="neutral"))
    return


@app.cell(hide_code=True)
def _():
    mo.md("""
    ## What you need to know

    A C128A layer stores one **compressed entry** for every 128 tokens. Before each step a **builder** writes an
    **index row** for every token of the batch: where in the KV cache the entries lie that this token attends to. The
    **width** is how many columns of a row a step uses. The **capacity** is how many the buffer has, enough for the
    longest sequence of the model. The **row stride** is the distance from one row to the next: **packed** rows lie one
    width apart, **pitched** rows one capacity apart. A **CUDA graph** replays a recorded step with the numbers of the
    recording, the row stride among them.

    A deployment is dangerous where two of these do not fit together. Often no error tells you: some requests simply
    read the entries of others.

    ## What do you serve with?

    Set it here, or paste your `vllm serve` line, compose file or Kubernetes manifest into the box under the controls.
    """)
    return


@app.cell(hide_code=True)
def _(get_start, settings):
    _start = get_start()
    _menus = {
        "release": ("Release", BUILDERS),
        "graph": ("CUDA graphs", GRAPH_NAMES),
        "consumer": ("Decode kernel", CONSUMER_NAMES),
        "layout": ("Row layout", LAYOUTS),
        "policy": ("Width policy", POLICY_NAMES),
        "block": ("KV block", {size: f"{size:,} tokens" for size in FIELDS["block"].options}),
    }
    _made = {name: page.menu(label, names, _start[name], full_width=True) for name, (label, names) in _menus.items()}
    for _name in ("model_len", "batch", "seqs", "spec", "seq", "capacity"):
        _made[_name] = page.number(FIELDS[_name], _start[_name], full_width=True)
    _made["warm"] = mo.ui.text(_start["warm"], label="Warmed widths", placeholder="128, 256, 512", full_width=True)
    _made["invariant"] = mo.ui.checkbox(_start["invariant"] == "yes", label="Batch-invariant results")
    controls = mo.ui.dictionary(_made, on_change=settings.moved)
    return (controls,)


@app.cell(hide_code=True)
def _(set_pasted, settings):
    _before, _laid = {}, {}  # by name, the controls under the last paste, and what it laid over them

    def _paste(text):
        values = settings.values
        back = {name: _before[name] for name, value in _laid.items() if values[name] == value}  # not moved since
        _laid.clear()
        answer = None
        try:
            line = read_serve_line(text) if text.strip() else None
        except ValueError as wrong:
            line, answer = None, str(wrong)
        if line:
            unread = dict(line.unread)
            silent = {name: FIELDS[NAMES[name]].default for name in LINE if name not in unread}  # as vLLM takes them
            for argument, value in {**silent, **line.assumed, **line.values}.items():
                if argument in NAMES:  # the others, of the model and its draft, go to check as they are
                    text = {"True": "yes", "False": "no"}.get(str(value), str(value))
                    try:
                        text = release_of(text).name if argument == "release" else text
                        _laid[NAMES[argument]] = FIELDS[NAMES[argument]].parse(text)
                    except ValueError as wrong:
                        unread[argument] = f"{line.sources.pop(argument, argument)}: {wrong} on this page"
            _before.update({name: back.get(name, values[name]) for name in _laid})
            settings.moved(_laid)
            answer = line, unread, values | back | _laid
        settings.put(back | _laid)
        set_pasted(answer)

    line_area = mo.ui.text_area(
        placeholder="vllm serve deepseek-ai/DeepSeek-V4-Pro --max-model-len 1M --max-num-batched-tokens 8192 …",
        label="A vllm serve command line. It is read here and kept out of the address.",
        rows=3,
        full_width=True,
        on_change=_paste,
    )
    return (line_area,)


@app.cell(hide_code=True)
def _(controls, line_area, settings):
    _names = ["release", *(["layout", "policy"] if controls["release"].value == OWN else []), "graph", "consumer"]
    _names += ["model_len", "batch", "seqs", "spec", "block", "seq", "capacity", "warm", "invariant"]
    mo.vstack(
        [page.panel(grid([controls[name] for name in _names], "12rem"), [settings.controls()[-1]]), line_area], gap=1
    )
    return


@app.cell(hide_code=True)
def _(controls, get_pasted, settings):
    _, _wrong = settings.take({**controls.value, "invariant": "yes" if controls.value["invariant"] else "no"})
    values = dict(settings.values)
    arguments = {argument: values[name] for argument, name in NAMES.items()}
    arguments |= {"capacity": values["capacity"] or None, "batch_invariant": values["invariant"] == "yes"}
    arguments["warmup_widths"] = [int(width) for width in values["warm"].split(",")] if values["warm"] else None
    if values["release"] == OWN:
        arguments |= {"release": None, "layout": values["layout"], "policy": values["policy"]}

    # What was not read of a pasted command could change the verdict, until a control is moved that says it; so could a
    # command that was not read at all.
    _pasted, _unread, _told = get_pasted(), [], None
    if isinstance(_pasted, str):
        _unread = ["the pasted command was not read"]
        _told = page.alarm(f"**The command line was not read.** {page.user_text(_pasted)}")
    elif _pasted:
        _line, _open, _held = _pasted
        arguments |= {name: value for name, value in _line.values.items() if name not in NAMES}
        _named = {name: NAMES.get(name) for name in _open}
        _unread = [f"{name}: {_open[name]}" for name, at in _named.items() if values.get(at) == _held.get(at)]
        _lists = {"Read": _line.sources.values(), "Not read, without a meaning here": _line.not_read}
        _lists = {title: [f"\n- {page.user_text(text)}" for text in texts] for title, texts in _lists.items()}
        _lists["To settle by hand"] = [f"\n- {note}" for note in _line.notes]
        _told = grid(
            [mo.md(f"**{title}**\n{''.join(texts or ['nothing'])}") for title, texts in _lists.items()], "18rem"
        )
    try:
        found = check(**arguments, unread=_unread)
    except ValueError as _refused:  # a list with widths beyond these buffers
        _wrong.append(f"{_refused}. Shown: no list.")
        arguments["warmup_widths"] = None
        found = check(**arguments, unread=_unread)
    page.stack(page.notes([*settings.problems, *_wrong]), _told, gap=1)
    return arguments, found, values


@app.cell(hide_code=True)
def _(found):
    _sign, _word, _kind = LEVELS[found.verdict]
    _text = f"**{_word}.**"
    if found.verdict in ("danger", "warning"):
        _text = f"**{_word}: {found.findings[0].title}.** What avoids it: {found.findings[0].setting}"
    _levels = pd.Series([LEVELS[finding.severity][1].lower() for finding in found.findings]).value_counts(sort=False)
    _text += f" Findings: {', '.join(f'{level}: {count}' for level, count in _levels.items()) or 'none'}."
    if found.unread:
        _unread = "\n".join(f"- {page.user_text(why)}" for why in found.unread)
        _text += f" Not read, and it could change the verdict:\n\n{_unread}"
    if found.verdict == "danger":
        _verdict = page.alarm(_text)
    else:  # with a role, so that a screen reader says it
        _verdict = mo.Html(f'<div role="status">{mo.callout(mo.md(f"{_sign} {_text}"), kind=_kind).text}</div>')
    _setup, _widths = found.setup, found.widths
    _reach = width_list(_widths) if len(_widths) <= 8 else f"{_widths[0]:,} to {_widths[-1]:,}"
    _ours, _released = human_bytes(found.reserved_bytes), human_bytes(found.released_bytes)
    _batch = f"{_setup.max_num_batched_tokens:,}"
    _stats = [
        mo.stat(f"{found.capacity:,} columns", "Capacity", f"sequences of up to {_setup.longest_sequence:,} tokens"),
        mo.stat(f"{len(_widths):,}", "Widths", f"{_reach} columns"),
        mo.stat(f"{_setup.decode_rows:,} at most", "Decode rows", f"{_batch} tokens in a batch"),
        mo.stat(_ours, "Buffers", f"the released builder: {_released}"),
    ]
    mo.vstack([_verdict, grid(_stats, "11rem")], gap=1)
    return


@app.cell(hide_code=True)
def _(found, values):
    _why = mo.md("""
    ## What applies to it?

    A **danger** means wrong results, a refused start or a write outside the buffer. A **warning** is right today, but
    makes requests wait, breaks a promise, or becomes a danger when one more setting changes. Each finding names the
    setting that avoids it. The incident numbers are those of `docs/incidents.md`, which names a test for each.
    """)
    # Where another page shows what a finding is about: page, link text, layout to show.
    _moving = ("02_layout", "See the rows move", "packed")
    _lengths = ("01_width", "See the widths and their lengths", values["layout"])
    _pages = {
        **dict.fromkeys(("moving-rows", "packed-outside-graphs", "one-row"), _moving),
        **dict.fromkeys(("uncovered-widths", "capacity-not-power-of-two"), _lengths),
        "stale-columns": ("02_layout", "See the old bytes", "pitched"),
        "rows-not-contiguous": ("02_layout", "See the gaps", "pitched"),
        "capacity-too-small": ("01_width", "See the width and the capacity", values["layout"]),
        "full-width": ("04_timing", "See what it costs", values["layout"]),
    }

    def _card(finding):
        sign, word, kind = LEVELS[finding.severity]
        incident = f" · incident {finding.incident}" if finding.incident else ""
        text = f"{sign} **{word}: {finding.title}**{incident}\n\n{finding.why}"
        if finding.code in _pages:
            name, label, layout = _pages[finding.code]
            text += f" [{label}]({page.link(name, {**values, 'layout': layout}, only=page.shared_fields())})"
        return mo.callout(mo.md(f"{text}\n\n**Setting:** {finding.setting}"), kind=kind)

    _grave = [_card(finding) for finding in found.findings if finding.severity != "info"]
    _light = [_card(finding) for finding in found.findings if finding.severity == "info"]
    page.stack(_why, *_grave, grid(_light, "26rem"), gap=1)
    return


@app.cell
def _(arguments, found, place, values):
    _why = mo.md("""
    ## Which releases would be safe?

    The same sizes and the same decode kernel in each release, with each kind of CUDA graphs. **Full** graphs record the
    decode attention too; **piecewise** graphs leave it out, so that each launch takes the row stride of its step. Guess
    before you look: a graph replays the row stride of its recording. Which release must go wrong, and with which
    graphs? A click on a cell sets both.
    """)
    _cells, _builders = [], [name for name in BUILDERS if name != OWN or values["release"] == OWN]
    for _release, _graph in product(_builders, GRAPH_NAMES):
        _builder = {} if _release == OWN else {"release": _release, "layout": None, "policy": None}
        _answer = check(**{**arguments, **_builder, "graph": _graph})
        _kind = "unknown" if found.unread and _answer.verdict != "danger" else _answer.verdict
        _titles = [finding.title for finding in _answer.findings if finding.severity != "info"]
        _here = "▸ " if (_release, _graph) == (values["release"], values["graph"]) else ""
        _tip = f"{BUILDERS[_release]}, {GRAPH_NAMES[_graph]}: {'; '.join(_titles) or 'nothing dangerous'}"
        _cells.append((_release, _graph, _kind, f"{_here}{LEVELS[_kind][0]} {_kind}", _tip))
    _cells = pd.DataFrame(_cells, columns=["release", "graph", "kind", "label", "tip"])
    _cells = _cells.assign(builder=_cells["release"].map(BUILDERS), mode=_cells["graph"].map(GRAPH_NAMES))
    _styles = {level: theme.SEVERITIES[level] for level in ("danger", "warning", "safe")}
    _picture = forms.matrix(
        _cells,
        row="builder",
        column="mode",
        styles=_styles | ({"unknown": theme.Style(theme.GREY)} if found.unread else {}),
        click=("release", "graph"),
        cell_height=30,
        description="Verdict for each release and each kind of CUDA graphs",
    )
    _column = _cells[(_cells["graph"] == values["graph"]) & (_cells["release"] != OWN)]
    _bad = ", ".join(_column[_column["kind"] == "danger"]["release"])
    _release = found.setup.release
    _history = f" vLLM {_release.name}: {_release.change}, {_release.outcome}." if _release else ""
    _setting = f"{GRAPH_NAMES[values['graph']]} and {CONSUMER_NAMES[values['consumer']]}"
    _sentence = page.sentence(
        f"▸ marks your settings. With {_setting}, dangerous among {len(_column)} releases: **{_bad or 'none'}**."
        f"{_history} *Try: FlashInfer on SM120 as the decode kernel. Before vLLM 0.33.0 it may read beyond the end of "
        "a row; see which graphs help.*"
    )
    page.stack(_why, page.shown(place, _picture), _sentence, words("width", "capacity", "stride", "packed", "pitch"))
    return


@app.cell
def _(found):
    _why = mo.md("""
    ## How much memory do the rows take?

    The released builder reserves a full row for every token of a batch twice: once as decode, once as prefill. But a
    step has few decode rows: one for each sequence, and one more for each speculative token. The builder of this
    package reserves only those, and the first of them shares the last prefill row, because no step needs both.
    """)
    _setup = found.setup
    # Without lens and request ids, which are thousands of times smaller.
    _bytes = pd.DataFrame(found.buffers).query("name in ['decode rows', 'prefill rows']")
    _bytes.columns = ["part", "rows", "columns", "this package", "released"]
    _bytes = _bytes.melt("part", ["this package", "released"], "name")
    _bytes["label"] = _bytes["value"].map(human_bytes)
    _totals = _bytes.groupby("name", sort=False)["value"].sum().map(human_bytes).rename("label").reset_index()
    _ours, _released = _totals["label"]
    _inks = {"decode rows": theme.Style(theme.ORANGE, ink="#000000"), "prefill rows": theme.CELLS["pad (−1)"]}
    _picture = forms.bars(
        _bytes, stack=True, totals=_totals, styles=_inks, description="Bytes of the index rows, by builder and buffer"
    )
    _sentence = page.sentence(
        f"The released builder holds **{_released}**: {_setup.max_num_batched_tokens:,} rows of {found.capacity:,} "
        f"columns for decode, and as many for prefill. A step has at most {_setup.decode_rows:,} decode rows, so "
        f"{'there is nothing to save' if _ours == _released else f'**{_ours}** are enough'}. *Try: 3 speculative "
        "tokens. The decode rows of this package grow fourfold, until there are as many as tokens in a batch.*"
    )
    page.stack(_why, _picture, _sentence)
    return


@app.cell
def _(found, values):
    _why = mo.md("""
    ## Which widths can occur?

    The longest sequence of a batch decides the width of all its rows. Warm up every width that can occur before the
    first request, and where your layout needs it capture a graph for each: the first batch that meets a missing one has
    to wait.
    """)
    _listed = found.setup.warmup_widths
    _rows = []
    for _width in sorted({*found.widths, *(_listed or ())}):
        _ends, _kind = (None, None), "never chosen"
        if _width in found.widths:
            _ends = sequence_range(_width, COMPRESS_RATIO, found.capacity, policy=found.setup.policy)
            _kind = "can occur" if _listed is None else "listed" if _width in _listed else "missing from your list"
        _rows.append((_width, *_ends, _kind))
    widths = pd.DataFrame(_rows, columns=["width", "first", "last", "status"]).astype(
        {"first": "Int64", "last": "Int64"}
    )

    _shown = widths if len(widths) <= 12 else pd.concat([widths[:6], widths[-6:]])
    _start = 64  # tokens: a log axis has no 0
    _reach = ["never" if pd.isna(row.first) else f"{row.first:,} to {row.last:,}" for row in _shown.itertuples()]
    _spans = pd.DataFrame({"part": _shown["status"], "name": _shown["width"].map("{:,} columns: ".format) + _reach})
    _spans["start"], _spans["value"] = _shown["first"].fillna(_start).clip(lower=_start), _shown["last"].fillna(_start)
    _spans["tip"] = _spans["name"] + " tokens, " + _spans["part"]
    _colours = {"can occur": theme.BLUE, "listed": theme.GREEN, "missing from your list": theme.VERMILLION}
    _picture = forms.bars(
        _spans,
        styles={kind: theme.Style(_colours.get(kind, theme.GREY)) for kind in dict.fromkeys(_spans["part"])},
        axis=forms.Axis("tokens of the longest sequence, log scale", log=2),
        rules=pd.DataFrame({"at": [max(values["seq"], _start)], "label": ["typical context"]}),
        bar_height=14,
        description="For each width the lengths of the longest sequence that lead to it",
    )
    _full = widths.set_index("width")["first"][found.capacity]
    _text = f"{len(found.widths)} widths can occur. From {_full:,} tokens on it is the capacity, {found.capacity:,}."
    if len(found.widths) == 1:
        _text = f"One width, **{found.capacity:,} columns**, in every step: there is one thing to warm up."
    if found.setup.policy == "pow2" and found.capacity & (found.capacity - 1):
        _text += " That is no power of two, and easily forgotten."
    if _missing := widths[widths["status"] == "missing from your list"]["width"].tolist():
        _text += f" Your list misses **{width_list(_missing)}**."
    if len(_shown) < len(widths):
        _text += f" {len(_shown)} of {len(widths)} are drawn."
    _try = "*Try: the preset Model length 33,792, then 128, 256, 512 as warmed widths, all powers of two.*"
    _todo = [(todo.what, width_list(list(todo.values)), todo.why) for todo in found.warm_up]
    _todo = pd.DataFrame(_todo, columns=["before the first request", "for", "because"])
    page.stack(_why, _picture, page.sentence(f"{_text} {_try}"), page.table(_todo), gap=1)
    return (widths,)


@app.cell(hide_code=True)
def _():
    ask("06")
    return


@app.cell
def _(found, values, widths):
    _why = mo.md("""
    ## What does a full step cost?

    The builder runs once a step. In a prefill step the **combine** kernel then fills the rows once in each C128A layer,
    20 in V4-Flash and 31 in V4-Pro; a decode step has no combine. Its rows depend on no layer: **made once** a step,
    from positions, they cost both models what the last column says, and need no rows of the builder. Here is a full
    batch at your typical context, and at worst, when one of its sequences is as long as the model allows. The times
    were recorded, or lie between recorded ones; where nothing was measured the table says so. They are times of this
    package's kernels. For a release those are its row loop and its combine, written anew in the released form: the row
    loop guards each read, which a released one does not, and its rows lie packed.
    """)
    _costs = costs_of(found.setup, values["seq"])

    def _us(value):
        return "not measured" if pd.isna(value) else f"{value:,.0f} µs" if value >= 100 else f"{value:.1f} µs"

    _decode = _costs["step"] == "decode"
    _times = _costs[["builder_us", "combine_us", *MODELS, "once_us"]].map(_us)
    _times.loc[_decode, ["combine_us", "once_us"]] = "none"
    _times.columns = ["builder, once", "combine, each layer", *(f"{model}, together" for model in MODELS), "made once"]
    _table = _costs[["rows", "max_seq_len", "width"]].rename(columns={"max_seq_len": "longest sequence"}).join(_times)
    _table.insert(0, "full step", _costs["case"] + " " + _costs["step"])
    _records = "; ".join(dict.fromkeys(name for text in _costs["records"] for name in text.split("; ") if name))
    _text = f"Source: {_records}." if _records else "Nothing was measured around these sizes."
    _pair = _costs[~_decode & _costs["V4-Pro"].notna()]["V4-Pro"].tolist()
    if len(_pair) == 2:
        _text = f"In V4-Pro the worst prefill step costs **{_pair[1] / _pair[0]:.1f} ×** the typical one. {_text}"
    _notes = [f"- {row.case} {row.step}: {row.basis}" for row in _costs.itertuples() if row.basis != "measured"]
    page.remember(values)
    _columns = ["severity", "incident", "code", "title", "why", "setting"]
    _findings = pd.DataFrame(found.findings, columns=[*Finding.__dataclass_fields__])[_columns]
    _downloads = [
        page.downloads(_findings.astype({"incident": "Int64"}), "c128a-findings", values, "findings"),
        page.downloads(widths, "c128a-deployment-widths", values, "widths"),
        page.downloads(_costs, "c128a-step-costs", values, "costs"),
    ]
    _what = "The same in a terminal or in CI; the exit status is 1 where something is dangerous:"
    page.stack(
        _why,
        page.table(_table, right=list(_table.columns[1:])),
        page.sentence(f"{_text} *Try: release 0.28.0, whose fixed width makes every step a wide one.*"),
        mo.md("\n".join(_notes)),
        mo.md("## Take it along"),
        mo.hstack(_downloads, justify="start", wrap=True),
        page.command(command(found, width=88), _what),
        gap=1,
    )
    return


if __name__ == "__main__":
    app.run()
