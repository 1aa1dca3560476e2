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
app = marimo.App(
    width="full",
    app_title="How wide must a row be?",
    html_head_file="head.html",
)

with app.setup(hide_code=True):
    import marimo as mo
    import numpy as np
    import pandas as pd

    from c128a.case import PRESETS
    from c128a.layout import ITEMSIZE, human_bytes
    from c128a.show import forms, page, theme
    from c128a.width import POLICIES, active_topk_width, capacity_width, loop_trips, reachable_widths, sequence_range

    FIELDS = {name: page.shared_fields()[name] for name in ("preset", "seq", "model_len", "ratio", "policy")}
    FIELDS["rows"] = page.Choice(8192, (1, 32, 256, 1024, 2048, 8192))


@app.cell(hide_code=True)
def _():
    opened, problems = page.read(page.address(), FIELDS)
    return opened, problems


@app.cell(hide_code=True)
def _(opened):
    # What the controls open with: the address, then each preset. The slider and the exact number are one value in three
    # states, so that neither is built again under the user's fingers.
    get_start, set_start = mo.state(opened)
    get_seq, set_seq = mo.state(opened["seq"])
    get_slid, set_slid = mo.state(opened["seq"])
    get_typed, set_typed = mo.state(opened["seq"])

    def choose(preset):
        chosen, _ = page.read({"preset": preset}, FIELDS)
        set_start(chosen)
        for set_tokens in (set_seq, set_slid, set_typed):
            set_tokens(chosen["seq"])

    preset_ui = page.preset_menu(opened["preset"], choose)
    return (
        get_seq,
        get_slid,
        get_start,
        get_typed,
        preset_ui,
        set_seq,
        set_slid,
        set_typed,
    )


@app.cell(hide_code=True)
def _(get_typed, set_seq, set_slid):
    slider = page.token_slider(get_typed(), lambda tokens: (set_slid(tokens), set_seq(tokens)))
    return (slider,)


@app.cell(hide_code=True)
def _(get_slid, set_seq, set_typed):
    number = page.token_input(get_slid(), lambda tokens: (set_typed(tokens), set_seq(tokens)))
    return (number,)


@app.cell(hide_code=True)
def _(get_start):
    _start = get_start()
    _policies = {theme.POLICY_NAME[policy]: policy for policy in POLICIES}
    _ratios = {"128 (C128A)": 128, "4 (C4A)": 4}
    _rows = {f"{count:,}": count for count in FIELDS["rows"].options}

    def _label(options, name):
        return next(label for label, value in options.items() if value == _start[name])

    policy_ui = mo.ui.radio(_policies, value=_label(_policies, "policy"), label="Policy", inline=True)
    ratio_ui = mo.ui.radio(_ratios, value=_label(_ratios, "ratio"), label="Compress ratio", inline=True)
    rows_ui = mo.ui.dropdown(_rows, value=_label(_rows, "rows"), label="Rows a step")
    model_len_ui = mo.ui.number(1, page.MAX_TOKENS, value=_start["model_len"], step=1, label="Model length, tokens")
    return model_len_ui, policy_ui, ratio_ui, rows_ui


@app.cell(hide_code=True)
def _(model_len_ui, policy_ui, ratio_ui, rows_ui):
    policy, ratio, rows, model_len = policy_ui.value, ratio_ui.value, rows_ui.value, model_len_ui.value or 1
    capacity = capacity_width(model_len, ratio)

    # Every width that a policy can choose, and the lengths that reach it: a row for each step of its curve.
    _steps = []
    for _policy in POLICIES:
        _first = 0
        for _width in reachable_widths(capacity, policy=_policy):
            _last = min((_width + 1) * ratio - 1, model_len)
            if _first <= _last:
                _steps.append((_policy, _width, _first, _last, (_last - _first + 1) / (model_len + 1)))
            _first = _last + 1
    steps = pd.DataFrame(_steps, columns=["policy", "width", "first", "last", "share"])
    reach = steps[steps["policy"] == policy].drop(columns="policy").reset_index(drop=True)
    full_share = reach.loc[reach["width"] == capacity, "share"].sum()  # of all lengths 0 … model_len
    return capacity, full_share, model_len, policy, ratio, reach, rows, steps


@app.cell(hide_code=True)
def _(capacity, get_seq, model_len, policy, ratio):
    seq = get_seq()
    needed = seq // ratio
    fits = needed <= capacity
    widths = {name: active_topk_width(seq, ratio, capacity, policy=name) for name in POLICIES}
    width = widths[policy]
    first, last = sequence_range(width, ratio, capacity, policy=policy)
    last = min(last, max(model_len, first))
    return first, fits, last, needed, seq, width, widths


@app.cell(hide_code=True)
def _(
    capacity,
    fits,
    model_len,
    needed,
    policy,
    preset_ui,
    problems,
    ratio,
    rows,
    seq,
    width,
):
    lead = f"At **{seq:,} tokens** a row needs {needed:,} of {capacity:,} columns"
    _before, _after = loop_trips(capacity), loop_trips(width)
    too_narrow = None
    if not fits:
        lead = f"At **{seq:,} tokens** a row needs {needed:,} columns, and the buffer has {capacity:,}."
        too_narrow = (
            f"**The capacity of {capacity:,} columns is too narrow for {seq:,} tokens**, which need {needed:,}. "
            f"{needed - capacity:,} entries of such a row would be lost: a builder must refuse the batch. This buffer "
            f"holds at most {(capacity + 1) * ratio - 1:,} tokens; a model length of {seq:,} would hold this batch."
        )
    elif width == capacity:
        _pads = f"{1 - needed / width:.0%} of the row is padding"
        lead += f", and **all {capacity:,} are built**: nothing is saved, {_pads}."
    else:
        lead += "" if width == needed else f" and {width:,} are built"
        lead += f": {capacity / width:,.3g} × fewer to write, and "
        lead += f"{_before} trips become {_after}." if _before > _after else f"still {_after} trip{'s'[: _after - 1]}."

    values = {"seq": seq, "model_len": model_len, "ratio": ratio, "policy": policy, "rows": rows}
    values["preset"] = preset_ui.value
    page.stack(
        page.header("01_width", "How wide must a row be?", lead, values), page.notes(problems), page.alarm(too_narrow)
    )
    return (values,)


@app.cell(hide_code=True)
def _(model_len_ui, number, policy_ui, preset_ui, ratio_ui, slider):
    _why = PRESETS[preset_ui.value].why if preset_ui.value in PRESETS else ""
    page.panel(
        mo.hstack([slider, number], widths=[4, 1], align="end", gap=1.5),
        [policy_ui, ratio_ui],
        [model_len_ui, preset_ui, mo.md(_why)],
    )
    return


@app.cell(hide_code=True)
def _():
    mo.md(r"""
    ## What you need to know

    In C128A, the heavily compressed attention of DeepSeek-V4, every 128 consecutive tokens become one **compressed
    entry** (in C4A, its other compressed attention, every 4). A query attends to all complete entries up to its own
    position and finds them through an **index row**: a list of int32 numbers, one **column** for each entry. All rows
    of a step have the same **width**, so the longest sequence sets it for every row. Cells that a row does not need
    are **pads** and hold −1. The buffer for the rows is allocated once, for the longest sequence that the model allows;
    that many columns are its **capacity**.

    Most sequences are far shorter than the model allows. Must their rows be as wide as the buffer?

    ## One row under three policies

    A **policy** turns the columns that a batch needs into the columns that are built:

    - **fixed** always builds the capacity;
    - **power of two** rounds up to a power of two, at least 128 and at most the capacity: the rule of vLLM PR #50004;
    - **multiple of 128** rounds up to a multiple of 128, within the same bounds.

    Below is the row of the longest sequence under each of them. The frame is around the policy that you chose.
    """)
    return


@app.cell
def _(capacity, fits, needed, policy, width, widths):
    _styles = {
        "entries": theme.CELLS["id of this build"],
        "pads (−1)": theme.CELLS["pad (−1)"],
        "not built": theme.CELLS["never written"],
        **({} if fits else {"entries that are lost": theme.VERDICTS["wrong"]}),
    }
    _parts = []
    for _policy, _built in widths.items():
        _stops = [min(needed, _built), _built, capacity, max(needed, capacity)]
        for _kind, _start, _stop in zip(_styles, [0, *_stops], _stops, strict=False):
            if _start < _stop:
                _tip = f"columns {_start:,} to {_stop - 1:,}: {_stop - _start:,} {_kind}"
                _parts.append((theme.POLICY_NAME[_policy], _start, _stop, _kind, f"{_stop - _start:,} {_kind}", _tip))
    forms.bands(
        pd.DataFrame(_parts, columns=["lane", "start", "stop", "kind", "label", "tip"]),
        description="The columns of the longest row under each policy: entries, pads, and columns that are not built",
        styles=_styles,
        chosen=pd.DataFrame({"lane": [theme.POLICY_NAME[policy]], "start": [0], "stop": [width]}),
        x_axis=forms.Axis("columns of the buffer"),
        lane_height=38,
        side=112,
    )
    return


@app.cell(hide_code=True)
def _(capacity, needed, width, widths):
    _more = widths["pow2"] - widths["aligned"]
    _other = f"builds {_more:,} more than" if _more else "builds as many as"
    mo.md(f"""
    Of {capacity:,} columns in the buffer {width:,} are built, and {min(needed, width):,} of them hold an entry. The
    power of two {_other} the multiple of 128.

    **Try:** set the sequence to 32,768 tokens, then press → once on the slider. That is one entry more, so the row
    needs one column more. How many more does each policy build?

    ## Every length

    Over all lengths a policy is a staircase. The axes are logarithmic, so that powers of two are even steps. The thick
    part of the line marks the lengths that share your width. In the shaded part the width is the capacity.
    """)
    return


@app.cell
def _(capacity, model_len, ratio, steps):
    # Lengths close enough for a smooth curve, and both ends of each step where there are few enough to be seen.
    _ends = steps if len(steps) <= 200 else steps[steps["policy"] == "pow2"]
    _lengths = {*np.geomspace(128, max(model_len, 128), 160).astype(int).tolist(), *_ends["first"], *_ends["last"]}
    curves = pd.DataFrame(
        [
            (policy, seq, active_topk_width(seq, ratio, capacity, policy=policy), seq // ratio)
            for policy in POLICIES
            for seq in sorted(_lengths)
            if seq >= 128  # a logarithmic axis has no zero
        ],
        columns=["policy", "seq", "width", "needed"],
    )
    curves["pads"] = 1 - curves["needed"] / curves["width"]
    return (curves,)


@app.cell
def _(
    capacity,
    curves,
    first,
    fits,
    last,
    model_len,
    needed,
    policy,
    ratio,
    seq,
    width,
):
    here, top = max(seq, 128), max(seq, model_len, 256)
    tokens_axis = forms.Axis("longest sequence of the batch, tokens", log=2, domain=(128, top))
    named = curves.assign(policy=curves["policy"].map(theme.POLICY_NAME))
    full_from, _ = sequence_range(capacity, ratio, capacity, policy=policy)

    _label = f"{seq:,} tokens → {width:,} columns\nthe same from {first:,} to {last:,} tokens"
    if not fits:
        _label = f"{seq:,} tokens need {needed:,} columns:\na capacity of {capacity:,} is too narrow"
    _held = pd.DataFrame({"seq": [max(first, 128)], "to": [max(last, 128)], "width": [width]})
    _shade = pd.DataFrame({"start": [max(full_from, 128)], "stop": [top]})
    _shade["label"] = f"from {full_from:,} tokens: full width, nothing saved"
    _least = int(curves["width"].min())
    _ticks = [tick for tick in forms.ticks(_least, capacity, log=2) if tick * 1.4 < capacity]
    forms.curve(
        named,
        x="seq",
        y="width",
        series="policy",
        step=True,
        description="Columns of a row over the longest sequence, under each policy",
        styles=theme.POLICIES,
        here=pd.DataFrame({"seq": [here], "width": [width], "label": [_label]}),
        held=_held if fits else None,
        shade=_shade if full_from < top else None,
        x_axis=tokens_axis,
        y_axis=forms.Axis("columns of a row", log=2, domain=(_least / 2, capacity * 2.8), ticks=[*_ticks, capacity]),
        side=64,
    )
    return full_from, here, named, tokens_axis


@app.cell(hide_code=True)
def _(first, full_from, full_share, last, model_len, width):
    mo.md(f"""
    {width:,} columns serve every batch from {first:,} to {last:,} tokens. From **{full_from:,} tokens** on the width is
    the capacity: **{full_share:.0%} of all lengths** up to {model_len:,} gain nothing.

    A logarithmic axis hides how many lengths lie where. **Guess first:** how much of a strip that counts each length
    once is the shaded part?
    """)
    return


@app.cell
def _(capacity, model_len, reach, seq):
    # More than a hundred widths cannot be told apart in a strip: then all that save are one segment.
    _strip = reach.groupby(reach["width"] if len(reach) <= 100 else reach["width"] == capacity).agg(
        least=("width", "min"),
        most=("width", "max"),
        start=("first", "min"),
        stop=("last", "max"),
        share=("share", "sum"),
    )
    _strip["short"] = [
        f"{a:,}" if a == b else f"{a:,} to {b:,}" for a, b in zip(_strip["least"], _strip["most"], strict=True)
    ]
    _strip["tip"] = [
        f"{part.short} columns from {part.start:,} to {part.stop:,} tokens: {part.share:.1%} of all lengths"
        for part in _strip.itertuples()
    ]
    _full = _strip["most"] == capacity
    _styles = {"fewer columns": theme.Style(theme.BLUE), "nothing saved": theme.Style(theme.HERE, ink="#000000")}
    forms.bands(
        _strip.assign(
            lane="columns",
            stop=_strip["stop"] + 1,
            kind=_full.map({False: "fewer columns", True: "nothing saved"}),
            label=_strip["short"] + _full.map({False: " columns", True: " columns: nothing saved"}),
        ),
        description="All lengths up to the model length on a linear scale, by the columns that they build",
        styles=_styles,
        signs=pd.DataFrame({"lane": ["columns"], "at": [seq], "kind": ["you are here"]}),
        sign_styles={"you are here": theme.Style(theme.HERE, "triangle-down")},
        x_axis=forms.Axis("the same tokens on a linear scale", domain=(0, max(model_len, seq))),
        lane_height=60,
        side=64,
    )
    return


@app.cell(hide_code=True)
def _(capacity, full_share):
    mo.md(f"""
    {1 - full_share:.1%} of the lengths build fewer than {capacity:,} columns, {full_share:.1%} build them all.

    **Try:** change the policy to a multiple of 128, or the model length to 600,000 tokens, and look at the strip again.

    ## Padding

    Along a step the entries grow and the width stays, so the padding melts until the next step brings new. Just past
    a power of two, half of the row is padding.
    """)
    return


@app.cell
def _(here, named, needed, tokens_axis, widths):
    _here = pd.DataFrame(
        {"seq": here, "width": widths.values(), "series": [theme.POLICY_NAME[name] for name in widths]}
    )
    _here["pads"] = (1 - needed / _here["width"]).clip(0)
    _here["tip"] = _here["series"] + _here["pads"].map(": {:.1%} pads".format)
    forms.curve(
        named,
        x="seq",
        y="pads",
        series="policy",
        description="The share of the longest row that is padding, over the longest sequence, under each policy",
        styles=theme.POLICIES,
        here=_here,
        x_axis=tokens_axis,
        y_axis=forms.Axis("pads in the longest row", unit="percent", domain=(0, 1)),
        height=220,
        side=64,
    )
    return


@app.cell(hide_code=True)
def _(model_len, needed, steps, width):
    _means = (steps["width"] * steps["share"]).groupby(steps["policy"]).sum()  # columns, over all lengths
    mo.md(f"""
    {max(0, 1 - needed / width):.1%} of your row is padding. Over all lengths up to {model_len:,}, each counted once,
    the power of two builds {_means["pow2"] / _means["aligned"] - 1:.0%} more columns than the multiple of 128.

    ## Trips and bytes

    The kernel of PR #50004 fills a row in a loop. A **trip** of the loop takes 1,024 columns and cannot be split, so
    trips shrink less than columns do. Bytes shrink as columns do: 4 for each column of each row, and a step has one row
    for each of its tokens.
    """)
    return


@app.cell
def _(capacity, width):
    _trips = pd.DataFrame({"block": [128 << power for power in range(7)]})  # columns a trip
    _trips["high"] = [loop_trips(capacity, block) for block in _trips["block"]]
    _trips["low"] = [loop_trips(width, block) for block in _trips["block"]]
    _trips["name"] = _trips["block"].map("{:,}".format).replace("1,024", "1,024 (PR)")
    _trips["label"] = [
        f"{trip.high:,} → {trip.low:,}, {trip.high / trip.low:.3g} × fewer"
        if trip.low < trip.high
        else f"{trip.high:,}"
        for trip in _trips.itertuples()
    ]
    _marks = _trips.melt("name", ["high", "low"], "kind", "at").replace({"high": "full width", "low": "this width"})
    trips_picture = forms.spans(
        _trips.assign(tip=_trips["label"]),
        title="Trips a row, by the columns of a trip",
        description="Trips of the row loop at full width and at this width, by the columns of a trip",
        styles={"": theme.Style(theme.FAINT)},
        marks=_marks,
        mark_styles={"full width": theme.Style(theme.GREY, "square"), "this width": theme.Style(theme.BLUE)},
        axis=forms.Axis("trips", log=2),
        row_height=30,
    )
    _before, _after = loop_trips(capacity), loop_trips(width)
    trips_sentence = f"With 1,024 columns a trip, {capacity / width:,.3g} × fewer columns are "
    trips_sentence += f"{_before / _after:,.3g} × fewer trips: {_before:,} become {_after:,}."
    return trips_picture, trips_sentence


@app.cell
def _(capacity, rows, rows_ui, trips_picture, trips_sentence, width, widths):
    _bytes = pd.DataFrame({"name": [theme.POLICY_NAME[name] for name in widths], "width": widths.values()})
    _bytes["value"] = rows * ITEMSIZE * _bytes["width"]
    _bytes["label"] = _bytes["value"].map(human_bytes) + _bytes["width"].map(" ({:,} columns)".format)
    bytes_picture = forms.bars(
        _bytes.assign(part=_bytes["name"], tip=_bytes["label"]),
        title="Bytes a step, by policy",
        description="Bytes of index rows that a step writes, under each policy",
        styles=theme.POLICIES,
        legend=False,
        bar_height=40,
    )
    _size, _full_size = (human_bytes(rows * ITEMSIZE * columns) for columns in (width, capacity))
    bytes_sentence = f"{rows:,} rows of {width:,} int32 columns are {_size} a step, against {_full_size} at full width."
    page.columns(
        page.stack(trips_picture, page.sentence(trips_sentence)),
        page.stack(rows_ui, bytes_picture, page.sentence(bytes_sentence)),
    )
    return


@app.cell(hide_code=True)
def _(values):
    mo.md(f"""
    Fewer trips and bytes are not yet fewer microseconds. What they save on a GPU is measured on the page
    [Timing]({page.link("04_timing", values, only=page.shared_fields())}).

    ## Which widths are there?

    Each width is another shape of the rows, and a warm-up or a graph capture has to cover all that a batch can reach.
    Powers of two are few. The capacity is always among them, even where it is no power of two.
    """)
    return


@app.cell
def _(fits, reach, rows, width):
    _mine = reach.index[(reach["width"] == width) & fits].tolist()
    _from = max(0, min(max(_mine, default=0) - 32, len(reach) - 64))
    _near = reach[_from : _from + 64]
    _table = pd.DataFrame(
        {
            "width": _near["width"].map("{:,}".format),
            "tokens": _near["first"].map("{:,} – ".format) + _near["last"].map("{:,}".format),
            "of all lengths": _near["share"].map("{:.1%}".format),
            "trips": _near["width"].map(loop_trips),
            "bytes a step": (rows * ITEMSIZE * _near["width"]).map(human_bytes),
        }
    )
    page.table(_table, marked=_mine[0] - _from if _mine else None, right=[*_table.columns])
    return


@app.cell(hide_code=True)
def _(reach, values):
    _part = "" if len(reach) <= 64 else ", of which the table shows 64 and the download all"
    mo.md(f"""
    This policy can build {len(reach):,} width{"s"[: len(reach) - 1]} at this capacity{_part}.

    **Try:** the preset *Model length 33,792*. A list of powers of two would forget the width of 384.

    The width is chosen anew in each step, and the buffer stays. Where does the second row begin, then? That is the
    question of the page [Layout]({page.link("02_layout", values, only=page.shared_fields())}).

    ## Take it along
    """)
    return


@app.cell(hide_code=True)
def _(curves, model_len, policy, ratio, reach, seq, values):
    page.remember(values)
    _program = (
        f"from c128a.width import *; C = capacity_width({model_len}, {ratio}); "
        f"print(C, active_topk_width({seq}, {ratio}, C, policy='{policy}'), reachable_widths(C, policy='{policy}'))"
    )
    page.stack(
        page.downloads(reach, "c128a-widths", values, "reachable widths"),
        page.downloads(curves, "c128a-curves", values, "the curves"),
        page.command(f'python -c "{_program}"', "The capacity, the width and all reachable widths:"),
    )
    return


if __name__ == "__main__":
    app.run()
