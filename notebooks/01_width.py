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

with app.setup(hide_code=True):
    import math
    from functools import partial
    from itertools import product

    import marimo as mo
    import numpy as np
    import pandas as pd

    from c128a.layout import ITEMSIZE, human_bytes
    from c128a.show import forms, page, theme
    from c128a.show.words import words
    from c128a.teach.ask import ask
    from c128a.width import POLICIES, active_topk_width, capacity_width, loop_trips, reachable_widths, sequence_range

    FIELDS = {name: page.shared_fields()[name] for name in ("preset", "seq", "model_len", "ratio", "policy")}
    FIELDS["rows"] = page.Choice(8192, (1, 32, 256, 1024, 2048, 8192))
    FIELDS["kept"] = page.Kept({name: FIELDS[name] for name in ("seq", "model_len", "ratio", "policy")})


@app.cell(hide_code=True)
def _():
    settings, get_start, get_seq, get_notes = page.open_page(FIELDS)
    return get_notes, get_seq, get_start, settings


@app.cell(hide_code=True)
def _(get_start, settings):
    _start = get_start()
    controls = mo.ui.dictionary(
        {
            "policy": page.radio("Policy", theme.POLICY_NAME, _start["policy"]),
            "ratio": page.radio("Compress ratio", {128: "128 (C128A)", 4: "4 (C4A)"}, _start["ratio"]),
            "model_len": page.number(FIELDS["model_len"], _start["model_len"]),
        },
        on_change=settings.moved,
    )
    rows_ui = page.menu("Rows a step", FIELDS["rows"].options, _start["rows"])
    return controls, rows_ui


@app.cell(hide_code=True)
def _(controls, settings):
    given, wrong = settings.take(controls.value)
    policy, ratio, model_len = given["policy"], given["ratio"], given["model_len"]
    capacity = capacity_width(model_len, ratio)

    # Every width that a policy can choose, and the lengths that reach it: a row for each step of its curve.
    steps = pd.concat(
        pd.DataFrame({"policy": name, "width": reachable_widths(capacity, policy=name)}) for name in POLICIES
    )
    _last = ((steps["width"] + 1) * ratio - 1).clip(upper=model_len)
    steps["first"] = _last.groupby(steps["policy"]).shift(fill_value=-1) + 1
    steps["last"] = _last
    steps = steps[steps["first"] <= steps["last"]]
    steps = steps.assign(share=(steps["last"] - steps["first"] + 1) / (model_len + 1))  # of all lengths 0 … model_len
    reach = steps[steps["policy"] == policy].drop(columns="policy").reset_index(drop=True)

    # Lengths close enough for a smooth curve, and both ends of each step where there are few enough to be seen.
    _ends = steps if len(steps) <= 200 else steps[steps["policy"] == "pow2"]
    _lengths = {*np.geomspace(128, max(model_len, 128), 160).astype(int).tolist(), *_ends["first"], *_ends["last"]}
    _lengths = sorted(length for length in _lengths if length >= 128)  # a logarithmic axis has no zero
    curves = pd.DataFrame(product(POLICIES, _lengths), columns=["policy", "seq"])
    curves["width"] = [active_topk_width(at.seq, ratio, capacity, policy=at.policy) for at in curves.itertuples()]
    curves["needed"] = curves["seq"] // ratio
    curves["pads"] = (1 - curves["needed"] / curves["width"]).round(4)
    return capacity, curves, model_len, policy, ratio, reach, steps, wrong


@app.cell(hide_code=True)
def _(capacity, get_seq, policy, ratio, rows_ui, settings):
    seq, rows = get_seq(), rows_ui.value
    needed = seq // ratio
    fits = needed <= capacity
    built = pd.DataFrame({"policy": POLICIES, "name": [theme.POLICY_NAME[name] for name in POLICIES]})
    built["width"] = [active_topk_width(seq, ratio, capacity, policy=name) for name in POLICIES]
    width = active_topk_width(seq, ratio, capacity, policy=policy)
    trips, full_trips = loop_trips(width), loop_trips(capacity)

    _needs = f"At **{seq:,} tokens** a row needs {needed:,}"
    _built = "" if width == needed else f" and {width:,} are built"
    _trips = f"{full_trips} trips become {trips}" if trips < full_trips else f"still {trips} trip{'s'[: trips - 1]}"
    _lead = f"{_needs} of {capacity:,} columns{_built}: {capacity / width:,.3g} × fewer to write, and {_trips}."
    if width == capacity:
        _lead = f"{_needs} of {capacity:,} columns, and **all are built**: nothing is saved, "
        _lead += f"{1 - needed / width:.0%} of the row is padding."
    _alarm = None
    if not fits:
        _lead = f"{_needs} columns, and the buffer has {capacity:,}."
        _alarm = (
            f"**The capacity of {capacity:,} columns is too narrow for {seq:,} tokens**, which need {needed:,}. "
            f"{needed - capacity:,} entries of such a row would be lost: a builder must refuse the batch. This buffer "
            f"holds at most {(capacity + 1) * ratio - 1:,} tokens; a model length of {seq:,} would hold this batch."
        )
    settings.values["rows"] = rows
    values = dict(settings.values)
    _header = page.header("01_width", "How wide must a row be?", _lead, values)
    page.stack(_header, page.notes(settings.problems), page.alarm(_alarm))
    return built, fits, full_trips, needed, rows, seq, trips, values, width


@app.cell(hide_code=True)
def _(controls, get_notes, settings, wrong):
    page.stay(settings, [*controls.elements.values()], get_notes() + wrong)
    return


@app.function
def picture_of(rows: pd.DataFrame, description: str, **more) -> forms.Picture:
    """Rows with columns lane, needed, width and capacity: their entries, pads, columns not built, and entries lost."""
    entries = rows["width"].clip(upper=rows["needed"])
    pieces = pd.concat(
        [
            rows.assign(kind="entries", start=0, stop=entries),
            rows.assign(kind="pads (−1)", start=entries, stop=rows["width"]),
            rows.assign(kind="not built", start=rows["width"], stop=rows["capacity"]),
            rows.assign(kind="entries that are lost", start=rows["capacity"], stop=rows["needed"]),
        ]
    ).query("start < stop")
    count = (pieces["stop"] - pieces["start"]).map("{:,}".format)
    label = count + " " + pieces["kind"]
    ends = pieces["start"].map("columns {:,} to ".format) + (pieces["stop"] - 1).map("{:,}: ".format)
    styles = {
        "entries": theme.CELLS["id of this build"],
        "pads (−1)": theme.CELLS["pad (−1)"],
        "not built": theme.CELLS["never written"],
    }
    if (pieces["kind"] == "entries that are lost").any():
        styles["entries that are lost"] = theme.VERDICTS["wrong"]
    return forms.bands(
        pieces.assign(label=label, short=count, tip=ends + label),
        description=description,
        styles=styles,
        x_axis=forms.Axis("columns of the buffer"),
        lane_height=38,
        side=112,
        **more,
    )


@app.cell
def _(built, capacity, fits, needed, policy, width):
    _prose = page.sentence("""
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
    _pow2, _aligned = built.set_index("policy")["width"][["pow2", "aligned"]]
    _other = f"{_pow2 - _aligned:,} more than" if _pow2 > _aligned else "as many as"
    page.stack(
        _prose,
        picture_of(
            built.assign(lane=built["name"], needed=needed, capacity=capacity),
            "The columns of the longest row under each policy: entries, pads, and columns not built",
            chosen=pd.DataFrame({"lane": [theme.POLICY_NAME[policy]], "start": [0], "stop": [width]}),
        ),
        page.sentence(f"""
        Of {capacity:,} columns in the buffer {width:,} are built, and {min(needed, width):,} of them hold an entry. The
        power of two builds {_other} the multiple of 128.

        **Try:** set the sequence to 32,768 tokens, then press → once on the slider. That is one entry more, so the row
        needs one column more. How many more does each policy build?
        """),
        words("entry", "row", "column", "width", "capacity", "pad"),
    )
    return


@app.cell
def _(built, capacity, curves, fits, model_len, needed, policy, ratio, seq, steps, width):
    _here, _top = max(seq, 128), max(seq, model_len, 256)
    _first, _last = sequence_range(width, ratio, capacity, policy=policy)
    _last = min(_last, max(model_len, _first))
    _full_from, _ = sequence_range(capacity, ratio, capacity, policy=policy)
    _same = pd.DataFrame({"seq": [max(_first, 128)], "to": [max(_last, 128)], "width": [width]})
    _shade = pd.DataFrame({"start": [max(_full_from, 128)], "stop": [_top]})
    _shade["label"] = f"from {_full_from:,} tokens: full width, nothing saved"
    _label = f"{seq:,} tokens → {width:,} columns\nthe same from {_first:,} to {_last:,} tokens"
    if not fits:
        _label = f"{seq:,} tokens need {needed:,} columns:\na capacity of {capacity:,} is too narrow"
    _ticks = [*(tick for tick in reachable_widths(capacity) if tick * 1.4 < capacity), capacity]

    _pads = built.assign(seq=_here, pads=(1 - needed / built["width"]).clip(0))
    _pads["tip"] = _pads["name"] + _pads["pads"].map(": {:.1%} pads".format)
    _means = (steps["width"] * steps["share"]).groupby(steps["policy"]).sum()  # columns, over all lengths
    _more = _means["pow2"] / _means["aligned"] - 1
    _curve = partial(
        forms.points,
        curves.assign(name=curves["policy"].map(theme.POLICY_NAME)),
        x="seq",
        series="name",
        styles=theme.POLICIES,
        dots=False,
        join=True,
        x_axis=forms.Axis("longest sequence of the batch, tokens", log=2, domain=(128, _top)),
        side=64,
    )
    page.stack(
        page.sentence("""
        ## Every length

        Over all lengths a policy is a staircase. The axes are logarithmic, so that powers of two are even steps. The
        thick part of the line marks the lengths that share your width. In the shaded part the width is the capacity.
        """),
        _curve(
            y="width",
            step=True,
            description="Columns of a row over the longest sequence, under each policy",
            here=pd.DataFrame({"seq": [_here], "width": [width], "label": [_label]}),
            held=_same if fits else None,
            shade=_shade if _full_from < _top else None,
            y_axis=forms.Axis("columns of a row", log=2, domain=(64, capacity * 2.8), ticks=_ticks),
        ),
        page.sentence(f"""
        {width:,} columns serve every batch from {_first:,} to {_last:,} tokens. From **{_full_from:,} tokens** on the
        width is the capacity, and nothing is saved.

        Along a step the entries grow and the width stays, so the **padding** melts until the next step brings new. Just
        past a power of two, half of the row is padding.
        """),
        _curve(
            y="pads",
            description="The share of the longest row that is padding, over the longest sequence, under each policy",
            here=_pads.assign(series=_pads["name"]),
            y_axis=forms.Axis("pads in the longest row", unit="percent", domain=(0, 1)),
            height=220,
        ),
        page.sentence(f"""
        {max(0, 1 - needed / width):.1%} of your row is padding. Over all lengths up to {model_len:,}, each counted
        once, the power of two builds {_more:.0%} more columns than the multiple of 128.
        """),
    )
    return


@app.cell(hide_code=True)
def _():
    ask("01")
    return


@app.cell
def _(built, capacity, full_trips, rows, rows_ui, trips, values, width):
    _blocks = [128 << power for power in range(7)]  # columns a trip
    _trips = pd.DataFrame({"name": [f"{block:,}".replace("1,024", "1,024 (PR)") for block in _blocks]})
    _trips["high"], _trips["low"] = ([loop_trips(columns, block) for block in _blocks] for columns in (capacity, width))
    _trips["tip"] = [f"{trip.high:,} → {trip.low:,}, ÷ {trip.high / trip.low:.3g}" for trip in _trips.itertuples()]
    _full, _this = "full width", "this width"
    _ends = [_trips.assign(trips=_trips["high"], of=_full, label=_trips["tip"])]
    _ends += [_trips.assign(trips=_trips["low"], of=_this, low=math.nan, high=math.nan)]
    _trips_picture = forms.points(
        pd.concat(_ends, ignore_index=True),
        x="trips",
        y="name",
        series="of",
        title="Trips a row, by the columns of a trip",
        description="Trips of the row loop at full width and at this width, by the columns of a trip",
        styles={_full: theme.Style(theme.GREY, "square"), _this: theme.Style(theme.BLUE)},
        x_axis=forms.Axis("trips", log=2),
    )
    _bytes = built.assign(value=rows * ITEMSIZE * built["width"], part=built["name"])
    _bytes["label"] = _bytes["value"].map(human_bytes) + _bytes["width"].map(" ({:,} columns)".format)
    _bytes_picture = forms.bars(
        _bytes.assign(tip=_bytes["label"]),
        title="Bytes a step, by policy",
        description="Bytes of index rows that a step writes, under each policy",
        styles=theme.POLICIES,
        legend=False,
        axis=forms.Axis(domain=(0, 1.9 * _bytes["value"].max())),  # with room for the labels
        bar_height=44,
    )
    _size, _full_size = (human_bytes(rows * ITEMSIZE * columns) for columns in (width, capacity))
    page.stack(
        page.sentence("""
        ## Trips and bytes

        The kernel of PR #50004 fills a row in a loop. A **trip** of the loop takes 1,024 columns and cannot be split,
        so trips shrink less than columns do. Bytes shrink as columns do: 4 for each column of each row, and a step has
        one row for each of its tokens.
        """),
        page.columns(_trips_picture, page.stack(rows_ui, _bytes_picture)),
        page.sentence(f"""
        With 1,024 columns a trip, {full_trips:,} trips a row become {trips:,}. {rows:,} rows of {width:,} int32 columns
        are {_size} a step, against {_full_size} at full width.

        Fewer trips and bytes are not yet fewer microseconds. What they save on a GPU is measured on the page
        [Timing]({page.link("04_timing", values, only=page.shared_fields())}).
        """),
        words("trip", "width"),
    )
    return


@app.cell(hide_code=True)
def _(settings):
    get_kept, _set_kept = mo.state(settings.values["kept"])

    def _keep(_):
        settings.values["kept"] = FIELDS["kept"].of(settings.values)
        _set_kept(settings.values["kept"])

    keep_ui = page.Still(mo.ui.button(label="Keep this setting", on_click=_keep))
    return get_kept, keep_ui


@app.cell
def _(get_kept, keep_ui, rows, values):
    _kept, _now = (FIELDS["kept"].values(text) for text in (get_kept(), FIELDS["kept"].of(values)))
    _both = pd.DataFrame([_kept, _now], index=["kept", "now"]) if _kept else pd.DataFrame([_now], index=["now"])
    _both["capacity"] = [capacity_width(at.model_len, at.ratio) for at in _both.itertuples()]
    _both["needed"] = _both["seq"] // _both["ratio"]
    _both["width"] = [active_topk_width(at.seq, at.ratio, at.capacity, policy=at.policy) for at in _both.itertuples()]
    _table = pd.DataFrame(
        {
            "setting": _both.index,
            "tokens": _both["seq"].map("{:,}".format),
            "model length": _both["model_len"].map("{:,}".format),
            "ratio": _both["ratio"],
            "policy": _both["policy"].map(theme.POLICY_NAME),
            "columns": _both["width"].map("{:,}".format),
            "of them pads": (1 - _both["needed"] / _both["width"]).clip(0).map("{:.1%}".format),
            "trips": _both["width"].map(loop_trips),
            "bytes a step": (rows * ITEMSIZE * _both["width"]).map(human_bytes),
        }
    )
    page.remember({"kept": get_kept()})
    _first, _last = _both["width"].iloc[[0, -1]]
    _beside = []
    if _kept:
        _said = f"Rows of this setting have {_last:,} columns, {_last / _first:.3g} × those of the kept one."
        _picture = picture_of(_both.assign(lane=_both.index), "The longest row of each setting: entries and pads")
        _beside = [_picture, page.sentence(_said)]
    page.stack(
        page.sentence("""
        ## Two settings side by side

        Keep a setting, then move the controls: another length, policy or model. The kept row stays, and the address
        holds both.
        """),
        keep_ui,
        page.table(_table, right=["tokens", "model length", "columns", "bytes a step"]),
        *_beside,
        words("width", "trip"),
    )
    return


@app.cell
def _(capacity, fits, model_len, reach, rows, seq, values, width):
    # More than a hundred widths cannot be told apart in a strip: then all that save are one segment.
    _merged = {"width": "max", "first": "min", "last": "max", "share": "sum"}
    _strip = reach if len(reach) <= 100 else reach.groupby(reach["width"] == capacity, as_index=False).agg(_merged)
    _full, _fewer = _strip["width"] == capacity, " columns" if len(reach) <= 100 else " columns or fewer"
    _strip = _strip.assign(
        kind=np.where(_full, "nothing saved", "fewer columns"), short=_strip["width"].map("{:,}".format)
    )
    _strip["label"] = _strip["short"] + np.where(_full, " columns: nothing saved", _fewer)
    _strip["tip"] = [
        f"{part.label}, from {part.first:,} to {part.last:,} tokens, {part.share:.1%} of all lengths"
        for part in _strip.itertuples()
    ]
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
    _part = "" if len(reach) <= 64 else ", of which the table shows 64 and the download all"
    page.stack(
        page.sentence("""
        ## Which widths are there?

        A logarithmic axis hides how many lengths lie where. **Guess first:** for what part of all lengths is nothing
        saved? This strip counts each length once.
        """),
        forms.bands(
            _strip.assign(lane="columns", start=_strip["first"], stop=_strip["last"] + 1),
            description="All lengths up to the model length on a linear scale, by the columns that they build",
            styles={"fewer columns": theme.Style(theme.BLUE), "nothing saved": theme.Style(theme.HERE, ink="#000000")},
            signs=pd.DataFrame({"lane": ["columns"], "at": [seq], "kind": ["you are here"]}),
            sign_styles={"you are here": theme.Style(theme.HERE, "triangle-down")},
            x_axis=forms.Axis("the same tokens on a linear scale", domain=(0, max(model_len, seq))),
            lane_height=60,
            side=64,
        ),
        page.sentence(f"""
        **{_strip.loc[_full, "share"].sum():.0%} of all lengths** up to {model_len:,} gain nothing. **Try:** change the
        policy to a multiple of 128, or the model length to 600,000 tokens, and look at the strip again.

        Each width is another shape of the rows, and a warm-up or a graph capture has to cover all that a batch can
        reach. This policy can build {len(reach):,} width{"s"[: len(reach) - 1]} at this capacity{_part}.
        """),
        page.table(_table, marked=_mine[0] - _from if _mine else None, right=[*_table.columns]),
        page.sentence(f"""
        Powers of two are few. The capacity is always among them, even where it is no power of two. **Try:** the preset
        *Model length 33,792*. A list of powers of two would forget the width of 384.

        The width is chosen anew in each step, and the buffer stays. Where does the second row begin, then? That is the
        question of the page [Layout]({page.link("02_layout", values, only=page.shared_fields())}).
        """),
    )
    return


@app.cell(hide_code=True)
def _(curves, model_len, policy, ratio, reach, seq, values):
    _widths = f"active_topk_width({seq}, {ratio}, C, policy='{policy}'), reachable_widths(C, policy='{policy}')"
    _program = f"from c128a.width import *; C = capacity_width({model_len}, {ratio}); print(C, {_widths})"
    page.remember(values)
    page.stack(
        mo.md("## Take it along"),
        page.downloads(reach, "c128a-widths", values, "reachable widths"),
        page.downloads(curves, "c128a-curves", values, "the curves"),
        page.command(f'python -c "{_program}"', "The capacity, the width and all reachable widths:"),
    )
    return


if __name__ == "__main__":
    app.run()
