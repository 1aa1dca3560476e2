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
# description = "Recorded GPU runs: microseconds beside trips, bytes and a fill; then live on this machine."
# ///

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="full", app_title="What does it cost?", html_head_file="head.html")

with app.setup:
    import io
    import math
    from statistics import geometric_mean

    import marimo as mo
    import pandas as pd

    from c128a.bench import live, profile, records
    from c128a.bench.cases import LENGTHS
    from c128a.case import CAPACITY, COMPRESS_RATIO, MAX_MODEL_LEN, Case
    from c128a.layout import human_bytes
    from c128a.show import forms, page, theme
    from c128a.show.words import words
    from c128a.teach.ask import ask
    from c128a.width import active_topk_width, loop_trips

    # By the name in the address: title, decode rows, prefill rows, tokens of all requests but one where they are short.
    BATCHES = {
        "d1": ("1 decode row", 1, 0, 0),
        "d32": ("32 decode rows", 32, 0, 0),
        "d256": ("256 decode rows", 256, 0, 0),
        "d1024": ("1,024 decode rows", 1024, 0, 0),
        "p2048": ("2,048 prefill rows", 0, 2048, 0),
        "p8192": ("8,192 prefill rows", 0, 8192, 0),
        "mixed": ("64 decode + 4,096 prefill rows", 64, 4096, 0),
        "one_long": ("256 decode rows, one long", 256, 0, 4096),
    }
    TITLES = {key: shape[0] for key, shape in BATCHES.items()}
    FIXED, LOOP, TILES, FILL, EMPTY = theme.KERNEL_NAME.values()
    LOOKS = {name: theme.KERNELS[name] for name in (FIXED, LOOP, TILES, FILL)}
    ON_CPU = {
        "torch reference, fixed width": theme.Style(theme.GREY, "cross"),
        "torch reference, adaptive width": theme.Style(theme.SKY, "cross"),
        "torch fill of the same bytes": theme.Style(theme.PURPLE, "cross"),
    }
    NAMES = {"row_loop_fixed": FIXED, "row_loop_adaptive": LOOP, "tiled": TILES, "fill": FILL, "empty": EMPTY}
    NAMES |= {"tiled_serial": "tiles, no overlap", "tiled_fixed": "tiles, fixed width", "loads": "its loads alone"}
    NAMES |= dict(zip(("reference_fixed", "reference_adaptive", "reference_fill"), ON_CPU, strict=True))
    FIELDS = page.shared_fields() | {"batch": page.Choice("p8192", tuple(BATCHES)), "budget": page.Integer(10, 1, 60)}
    FIELDS |= {"cache": page.Choice("warm", ("warm", "cold"))}
    LOG_US = forms.Axis("microseconds", log=10)
    LOG_BYTES = forms.Axis("bytes of the rows", log=2, unit="bytes")

    def figure(value, unit):
        """A number up to the first digit of its uncertainty `unit`: three digits at most, one at least; "" for NaN."""
        if math.isnan(value):
            return ""
        first = -math.floor(math.log10(float(f"{value:.3g}")))
        decimals = min(max(-math.floor(math.log10(unit)), first), first + 2)
        return f"{round(value, decimals):,.{max(0, decimals)}f}"

    def told(rows):
        """Rows of a record, and what is written and drawn of them; a fill is drawn scaled to all bytes of a build."""
        keys = {shape[1:]: key for key, shape in BATCHES.items()}
        clock = rows["cache"].map({"cold": 0.1}).fillna(0.02)  # µs: 0.5 twice, over 10 launches and over 50
        unit = ((rows["p80"] - rows["p20"]) / 2).clip(lower=clock).fillna(rows["us"] * 0.02)
        scale = rows["scale"].where(rows["variant"] == "fill", 1.0)
        rows = rows.assign(unit=unit, expect_low=rows["low"], expect_high=rows["high"], drawn=rows["us"] * scale)
        rows = rows.assign(name=rows["variant"].replace(NAMES), low=rows["p20"] * scale, high=rows["p80"] * scale)

        def words(row):
            time, low, high = (figure(value, row.unit) for value in (row.us, row.p20, row.p80))
            spread = f"{low}–{high}" if low else ""
            tip = f"{row.gpu}, {row.name}: {time} µs ({row.cache} L2, p20–p80: {spread or 'not given'}), "
            tip += f"{row.max_seq_len:,} tokens, {row.width:,} columns, {human_bytes(row.bytes)}"
            batch = keys.get((row.decode, row.prefill, row.short_seq_len), "")
            return {"batch": batch, "time": time, "spread": spread, "tip": tip}

        return rows.assign(**pd.DataFrame(map(words, rows.itertuples()), rows.index))

    def listed(rows, before, after):
        """A table of times, these columns before and after those of every table; a kernel alone has no width."""
        bare = rows["bytes"] == 0
        table = pd.DataFrame({"kernel": rows["name"], **before, "rows lie": rows["layout"]})
        table["width"] = rows["width"].map("{:,}".format).mask(bare, "–")
        table["trips"] = rows["trips"].map(str).replace("0", "–")
        table["bytes"] = rows["bytes"].map(human_bytes).str.replace(" ", "\u00a0").mask(bare, "–")
        table = table.assign(**{"µs": rows["time"], "p20–p80": rows["spread"], **after})
        return page.table(table, right=table.columns[len(before) + 2 :], tall="48rem")

    def times(above, below):
        """How many times longer the first takes than the second, with the digits that both carry."""
        ratio = above.us / below.us
        return figure(ratio, ratio * math.hypot(above.unit / above.us, below.unit / below.us))

    def tight(text):
        """The text with numbers bound to their signs and units, so that no line begins with one."""
        return text.replace(" ×", "\u00a0×").replace(" µs", "\u00a0µs").replace("× ", "×\u00a0")

    def say(text):
        """The sentence under a picture."""
        return page.sentence(tight(text))

    def by_bytes(rows, **more):
        """Microseconds over bytes of the rows for each kernel."""
        words = "Microseconds over bytes of the rows for each kernel, beside a fill"
        axes = {"x": "bytes", "y": "drawn", "series": "name", "x_axis": LOG_BYTES, "y_axis": LOG_US}
        return forms.points(rows, description=words, join=(LOOP, TILES, FILL), **axes, **more)

    def evidence(rows):
        """What makes the rows of one record evidence; ends the cell, with a note, where there are none."""
        mo.stop(rows.empty, page.notes(["No record of this part can be read, so it is left out."], kind="neutral"))
        facts = records.provenance(rows["record"].iloc[0])  # the text of a record may come from anyone
        kept = {"gpu": 80, "driver": 20, "sm_clock_after": 20, "torch": 40, "triton": 40, "date": 10, "commit": 10}
        known = {name: page.user_text(str(facts.get(name, "not kept"))[:most]) for name, most in kept.items()}
        clock = "" if rows["sheet"].iloc[0] == "host" else "SM clock {sm_clock_after} at its end, "  # of kernels alone
        text = f"Evidence: **{{gpu}}**, driver {{driver}}, {clock}torch {{torch}}, triton {{triton}}, {{date}}, "
        text += "commit {commit}" + ", with uncommitted changes" * (facts.get("dirty") is not False)
        return page.sentence(f"{text.format(**known)}, {page.user_text(facts.get('command', 'command not kept'))}.")


@app.cell
def _():
    everything = told(records.rows())
    _own = everything[everything["source"] == "recorded"]
    # Of each sheet the record with the most rows.
    _of = {sheet: rows[rows["record"].isin(rows["record"].mode().head(1))] for sheet, rows in _own.groupby("sheet")}
    builder, combine, a_step, host = (_of.get(name, _own.head(0)) for name in ("builder", "combine", "step", "host"))
    _cell = ["batch", "max_seq_len", "cache", "layout", "bytes"]  # beside each time of the builder: a fill of its bytes
    _fills = builder[builder["variant"] == "fill"][[*_cell, "us", "unit"]]
    builder = builder.merge(_fills, on=_cell, how="left", suffixes=("", "_fill"))
    builder["over"] = (builder["us"] / builder["us_fill"] / builder["scale"]).where(builder["variant"] != "fill")
    packed = builder[builder["layout"] == "packed"]  # what pictures show
    mo.stop(packed.empty, page.notes(["No record of the builder can be read.", *records.problems()]))
    return a_step, builder, combine, everything, host, packed


@app.cell(hide_code=True)
def _():
    def _chosen(preset):
        if preset == "one_long":
            settings.values["batch"] = "one_long"  # that it is about

    settings, get_start, get_seq, get_notes = page.open_page(FIELDS, _chosen)

    if settings.values["preset"] == "one_long" and "batch" not in page.address():
        settings.put({"batch": "one_long"})
    return get_notes, get_seq, get_start, settings


@app.cell(hide_code=True)
def _(get_start):
    batch_ui = page.menu("Rows a step", TITLES, get_start()["batch"])
    cache_ui = page.radio("L2 cache", ("warm", "cold"), get_start()["cache"])
    return batch_ui, cache_ui


@app.cell(hide_code=True)
def _(batch_ui, cache_ui, get_seq, packed):
    # Any length can be asked for; the nearest recorded one answers.
    seq, batch, cache, title = get_seq(), batch_ui.value, cache_ui.value, BATCHES[batch_ui.value][0]
    width = active_topk_width(seq, COMPRESS_RATIO, CAPACITY)
    mine = packed[(packed["batch"] == batch) & (packed["cache"] == cache)].sort_values("max_seq_len", kind="stable")
    at = min(mine["max_seq_len"], key=lambda length: abs(length - seq))
    cell = mine[mine["max_seq_len"] == at].set_index("variant")
    fixed, loop, tiled = (cell.loc[variant] for variant in ("row_loop_fixed", "row_loop_adaptive", "tiled"))
    narrower, fewer = CAPACITY / loop.width, fixed.trips / loop.trips
    return at, batch, cache, cell, fewer, fixed, loop, mine, narrower, seq, tiled, title, width


@app.cell(hide_code=True)
def _(at, batch, cache, fewer, fixed, loop, narrower, request, seq, settings, tiled, title, width):
    values = settings.values | {"seq": seq, "batch": batch, "cache": cache}
    values["budget"] = request.value["budget"] or values["budget"]
    settings.values |= values

    _nearest = "the same width" if loop.width == width else f"{loop.width:,} columns"
    _nearest = f" (the nearest recorded run is at {at:,} tokens, {_nearest})" if at != seq else ""
    _lead = f"At **{seq:,} tokens** a row is {width:,} of {CAPACITY:,} columns wide{_nearest}"
    if narrower > 1:
        _lead += f". For {title} the row loop then takes **{loop.time} µs instead of {fixed.time}**: {narrower:g} × "
        _lead += f"fewer columns, {fewer:g} × fewer trips, **{times(fixed, loop)} × less time**."
    else:
        _lead += f", so nothing is saved: for {title} the row loop takes **{fixed.time} µs** either way, and tiles "
        _lead += f"take {tiled.time} µs."
    _said = records.problems()
    if values["model_len"] != MAX_MODEL_LEN or values["ratio"] != COMPRESS_RATIO or values["policy"] == "aligned":
        _settings = f"Model length {values['model_len']:,}, compress ratio {values['ratio']}, policy {values['policy']}"
        _said.append(f"{_settings}: the runs were made at 1,048,576, 128, and fixed and power-of-two widths.")
    _header = page.header("04_timing", "What does it cost?", tight(_lead), values)
    page.remember(values)
    page.stack(_header, page.notes(settings.problems), page.notes(_said, kind="neutral"))
    return (values,)


@app.cell(hide_code=True)
def _(batch_ui, cache_ui, get_notes, settings):
    _text = mo.md("""
    **What you need to know.** C128A keeps one *compressed entry* for 128 tokens. Before a step, a *builder* kernel
    writes an *index row* for each query: the entries that it may read. The row's cells are its *columns*; their number
    is its *width*. The *fixed* width is the *capacity*, enough for the longest context the model allows; the
    *adaptive* width follows the longest sequence of the step. The builder comes in two forms. The *row loop* gives
    each row to one program, which writes 1,024 columns a *trip*. *Tiles* cut all rows into blocks of rows and columns.
    """)
    _notes = page.told(get_notes(), settings.values["preset"])
    *_longest, _preset = settings.controls()
    _length = mo.hstack(_longest, widths=[4, 1.4], align="end", gap=1.5)
    page.stack(_text, page.panel(_length, [batch_ui, cache_ui, _preset], _notes))
    return


@app.cell(hide_code=True)
def _(at, batch, builder, cache, cell, fewer, fixed, loop, mine, narrower, tiled, title):
    _text = mo.md("""
    ## Guess first: how much faster is a narrow row?

    Suppose that a row becomes 32 × narrower, and its eight trips become one. Does the builder take 32 × less time, or
    8 ×, or something else? Four ratios describe the same change: of columns, of trips, and of the time of each kernel.
    Only those of time are savings. Each of them compares two kernels of one run, measured in turns on the same inputs:
    times from two machines, or from two days, differ by more than many a saving.
    """)
    # The kernels at the fixed and at the adaptive width, and what of them is divided.
    _loops, _tiles = ("row_loop_fixed", "row_loop_adaptive"), ("tiled_fixed", "tiled")
    _ratios = {"columns": (_loops, "width", theme.ORANGE), "trips": (_loops, "trips", theme.SKY)}
    _ratios |= {"time, row loop": (_loops, "us", theme.BLUE), "time, tiles": (_tiles, "us", theme.GREEN)}
    _bars = []
    for _length, _rows in mine.set_index("variant").groupby("max_seq_len"):
        for _part, (_kernels, _what, _) in _ratios.items():
            _wide, _one = (_rows.loc[kernel] for kernel in _kernels)
            _value = _wide[_what] / _one[_what]
            _label = times(_wide, _one) if _what == "us" else f"{_value:g}"
            _name = f"{'▸ ' if _length == at else ''}{_length:,} tokens"
            _bars.append({"name": _name, "part": _part, "value": _value, "label": f"{_label} ×"})
    _picture = forms.bars(
        pd.DataFrame(_bars),
        description="Fixed over adaptive width at each recorded length: columns, trips, and the time of both kernels",
        axis=forms.Axis("fixed over adaptive width, ×", log=2),
        styles={name: theme.Style(colour) for name, (*_, colour) in _ratios.items()},
        bar_height=20,
    )
    _said = f"At {at:,} tokens the adaptive width is the capacity: columns and trips stay as they are."
    if narrower > 1:
        _said = f"At {at:,} tokens the width shrinks {narrower:g} ×, the trips {fewer:g} × and the row loop's time "
        _said += f"**{times(fixed, loop)} ×**."

    _rows = builder[(builder["batch"] == batch) & (builder["max_seq_len"] == at) & (builder["cache"] == cache)]
    _over = _rows["over"].map("{:.2f}".format, na_action="ignore").fillna("–")
    _numbers = listed(_rows, {}, {"×\u00a0fill": _over})
    _told = (
        "Each time is shown to about half of the spread of its samples. Tiles may start while the kernel before them "
        f"ends: {tiled.time} µs, without that {cell.loc['tiled_serial'].time}."
    )
    _heading = mo.md(f"**{title} at {at:,} tokens, {cache} L2**")
    _pair = page.columns(page.stack(_picture, say(_said)), page.stack(_heading, _numbers, say(_told)), widths=[4, 5])
    page.stack(_text, evidence(builder), _pair)
    return


@app.cell(hide_code=True)
def _(at, cell, fixed, loop, mine, tiled):
    _text = mo.md("""
    ## Why: bytes explain the time

    A builder computes little and writes much, so the memory sets its pace. Its yardstick is torch's *fill*, a kernel
    that only writes as many bytes; for decode rows its time is scaled up by the block numbers that a build must read.
    It is no bound: a kernel that writes better than torch's fill comes in under it. A bound lies below: no launch is
    shorter than an *empty kernel*, nor than the few *loads* that every build depends on. Where rows are large, the time
    follows the fill. Where they are small, the bound holds it up, and fewer bytes save nothing more. So a *trip* is no
    unit of time: one over 1,024 columns writes eight times what one over 128 does.

    Try: choose *1 decode row* and look how flat the lines become. Then choose *cold*: the inputs come from memory, as
    they may in a server that has just run a layer of the model.
    """)
    _points = mine[mine["name"].isin(list(LOOKS))]
    _points = _points.assign(here=(_points["max_seq_len"] == at) & (_points["name"] != FILL))
    _rules = cell.loc[["empty", "loads"]]
    _rules = pd.DataFrame({"at": _rules["us"], "label": _rules["name"] + " " + _rules["time"] + " µs"})
    _by_bytes = by_bytes(_points, styles=LOOKS, rules=_rules)
    _points = _points.assign(wide=_points["name"] == FIXED).sort_values(["width", "wide"], kind="stable")
    _trips = _points["width"].map(lambda width: f"{loop_trips(width)} trip{'s' if width > 1024 else ''}\n{width:,}")
    _points["place"] = _trips + _points["wide"].map({True: " fixed", False: ""})
    _place = "trips of the row loop, and columns written"
    _look = {"styles": LOOKS, "x_axis": forms.Axis(_place), "y_axis": LOG_US, "rules": _rules}
    _words = f"Microseconds over {_place}"
    _by_trips = forms.points(_points, x="place", y="drawn", series="name", description=_words, **_look)
    _said = f"Eight trips take {fixed.time} µs."
    if not (_ones := mine[(mine["variant"] == "row_loop_adaptive") & (mine["trips"] == 1)]).empty:
        _first, _last = _ones.iloc[0], _ones.iloc[-1]
        _grows = "what a trip writes counts" if _last.us > 1.1 * _first.us else "here each trip costs the same"
        _said = f"One trip takes {_first.time} µs at {_first.width:,} columns and {_last.time} µs at {_last.width:,}: "
        _said += f"{_grows}. Eight trips take {fixed.time} µs, {times(fixed, _last)} × the wider one."
    _told = f"To fill the {human_bytes(loop.bytes)} of these rows takes {cell.loc['fill'].time} µs. The row loop takes "
    _told += f"{loop.over:.2f} × that fill, the tiles {tiled.over:.2f} ×; an empty kernel, {cell.loc['empty'].time} µs."
    _pair = page.columns(page.stack(_by_bytes, say(_told)), page.stack(_by_trips, say(_said)))
    page.stack(_text, _pair, words("width", "capacity", "trip", "pad"))
    return


@app.cell(hide_code=True)
def _():
    ask("04")
    return


@app.cell(hide_code=True)
def _(at, batch, cache, packed):
    _text = mo.md("""
    ## All recorded cells: tiles against the row loop, and both against the fill

    One batch can flatter a kernel, so here are all of them. On the left, a point is the row loop's time over the time
    of the tiles at the same width; right of 1 the tiles are faster. On the right, the same times are divided by that of
    the scaled fill. The dashed steps are the goal that was set for the tiles: nearer to the fill, the larger the rows.
    """)
    _rows = packed[(packed["cache"] == cache) & packed["max_seq_len"].isin(LENGTHS)]
    _rows = _rows.assign(title=_rows["batch"].map(TITLES), length=_rows["max_seq_len"].map("{:,}".format))
    _rows["here"] = (_rows["batch"] == batch) & (_rows["max_seq_len"] == at)
    _rows["tip"] = _rows["title"] + ", " + _rows["tip"]
    _of = {variant: rows.set_index("cell") for variant, rows in _rows.groupby("variant")}
    _loops, _tiles = _of["row_loop_adaptive"], _of["tiled"]

    _gains = _loops[["title", "length", "here"]].assign(ratio=_loops["us"] / _tiles["us"])
    _gains = _gains.assign(low=_loops["p20"] / _tiles["p80"], high=_loops["p80"] / _tiles["p20"])
    _gains["tip"] = _gains["title"] + ", " + _gains["length"] + _gains["ratio"].map(" tokens: {:.2f} ×".format)
    _every = packed[(packed["cache"] == cache) & (packed["short_seq_len"] == 0)].pivot(
        index="cell", columns="variant", values="us"
    )
    _ratios, _apart = ((_every["row_loop_adaptive"] / _every[form]).dropna() for form in ("tiled", "tiled_serial"))
    _mean = geometric_mean(_ratios)
    _gain_picture = forms.points(
        _gains,
        x="ratio",
        y="title",
        series="length",
        description="Time of the row loop over time of the tiles at the same width, in every recorded cell",
        styles=theme.styled(f"{length:,}" for length in LENGTHS),
        x_axis=forms.Axis("row loop over tiles, ×; colours: tokens", log=2, ticks=(1, 1.5, 2, 3, 4, 5, 6)),
        rules=pd.DataFrame({"at": [1, _mean], "label": ["", f"geometric mean {_mean:.2f} ×"]}),
    )
    # The goal for the tiles: from so many bytes on, so many times the fill.
    _ends = [256, 2**20, 2**20, 2**25, 2**25, 2**29]
    _goals = pd.DataFrame({"bytes": _ends, "over": [1.6, 1.6, 1.25, 1.25, 1.15, 1.15], "label": ""})
    _goals.loc[0, "label"] = "goal for the tiles"
    _fill_picture = forms.points(
        _rows[_rows["variant"].isin(["row_loop_adaptive", "tiled"])].drop(columns=["low", "high"]),
        x="bytes",
        y="over",
        series="name",
        description="Time over the scaled fill against the bytes of the rows, with the goal that was set for the tiles",
        styles={name: LOOKS[name] for name in (LOOP, TILES)},
        x_axis=LOG_BYTES,
        y_axis=forms.Axis("time over the scaled fill, ×", log=2, ticks=(1, 1.25, 1.6, 2, 3, 4, 6, 8)),
        reference=_goals,
        rules=pd.DataFrame({"at": [1], "label": ["scaled fill"]}),
    )
    _goal = pd.cut(_tiles["bytes"], _goals["bytes"].unique(), right=False, labels=_goals["over"].unique()).astype(float)
    _missed = _tiles[_tiles["over"].round(2) > _goal]
    _loads = (_of["loads"]["us"] > _of["fill"]["us"])[_missed.index].sum()
    _said = f"Tiles take {_tiles['over'].min():.2f} to {_tiles['over'].max():.2f} × the scaled fill: with {cache} L2 "
    _said += f"{len(_tiles) - len(_missed)} of {len(_tiles)} cells meet the goal."
    _said += f" In {_loads} of the others the loads alone take longer than the fill." if _loads else ""
    _told = (
        f"Over all {len(_ratios)} recorded cells of one length ({cache} L2, overlapping launches) tiles take "
        f"{_mean:.2f} × less time than the row loop in the geometric mean, least {_ratios.min():#.3g} ×; with launches "
        f"apart {geometric_mean(_apart):.2f} ×, least {_apart.min():#.3g} ×; cold and apart is nearest to serving."
    )
    page.stack(_text, page.columns(page.stack(_gain_picture, say(_told)), page.stack(_fill_picture, say(_said))))
    return


@app.cell(hide_code=True)
def _(builder, everything):
    _other = everything[(everything["sheet"] == "builder") & (everything["record"] != builder["record"].iloc[0])]
    _again = builder.merge(_other, on=["batch", "max_seq_len", "layout", "variant", "cache"], suffixes=("", "_again"))
    _here, _there = (_again[_again["source_again"] == source] for source in ("recorded", "elsewhere"))
    mo.stop(_here.empty or _there.empty)
    _inside = _here["us_again"].between(_here["expect_low"], _here["expect_high"])
    _apart = (_there["us_again"] / _there["us"] - 1).abs()[_there["variant"] == "row_loop_fixed"]
    say(
        f"**How far to trust a figure.** {len(_here)} of these times were measured a second time, in new processes: "
        f"{_inside.mean():.1%} of them lie where the first run expects them (99% should). The same row loop at the "
        f"fixed width, timed elsewhere on the same kind of card, differs by up to {_apart.max():.0%}. So a difference "
        "of that size between two machines says nothing; within one run it does."
    )
    return


@app.cell(hide_code=True)
def _(cache, combine):
    _evidence = evidence(combine)
    _text = mo.md("""
    ## The combine: paid again in every layer

    The builder runs once a step. Its prefill rows then go through the *combine*, which joins each of them with the
    last 128 tokens. It runs in every C128A layer, 20 or 31 times a step, so a microsecond saved here counts as often.
    *From rows* copies the builder's rows, as released engines do; *from positions* works the same ids out again and
    needs no rows to read.
    """)
    _forms = {  # name and style of each
        "from_rows_fixed": ("from rows, fixed width", theme.KERNELS[FIXED]),
        "from_rows_adaptive": ("from rows, adaptive width", theme.KERNELS[LOOP]),
        "from_positions": ("from positions", theme.KERNELS[TILES]),
        "from_positions_live": ("from positions, live prefix only", theme.Style(theme.SKY, "triangle-up")),
        "fill": (FILL, theme.KERNELS[FILL]),
    }
    _rows = combine[(combine["cache"] == cache) & combine["variant"].isin(list(_forms))].sort_values("max_seq_len")
    _rows = _rows.assign(form=[_forms[variant][0] for variant in _rows["variant"]])
    _rows["length"] = _rows["max_seq_len"].map("{:,}".format)
    _reach = (_rows["low"].min() / 1.3, _rows["high"].max() * 1.3)
    _look = {"x": "length", "y": "us", "series": "form", "join": True, "styles": dict(_forms.values())}
    _look["y_axis"] = forms.Axis("microseconds a layer", log=10, domain=_reach)
    _pictures = []
    for _tokens in (2048, 8192):
        _axis = forms.Axis(f"tokens of context, {_tokens:,} tokens a chunk")
        _words = f"Microseconds of each form of the combine, {_tokens:,} tokens a chunk"
        _pictures.append(forms.points(_rows[_rows["prefill"] == _tokens], x_axis=_axis, description=_words, **_look))
    _of = {variant: rows.set_index("cell") for variant, rows in _rows.groupby("variant")}
    _wide, _narrow = (_of[name].loc["0+8192@32768"] for name in ("from_rows_fixed", "from_rows_adaptive"))
    _ratio = _of["from_rows_adaptive"]["us"] / _of["from_positions"]["us"]
    _said = (
        f"For 8,192 tokens at 32,768 the adaptive width brings a layer from {_wide.time} to {_narrow.time} µs, "
        f"{times(_wide, _narrow)} × less: over 31 layers **{31 * (_wide.us - _narrow.us) / 1000:.1f} ms a step**. The "
        f"form from positions takes {geometric_mean(_ratio):.2f} × less time than the form from rows at the same "
        f"width, in the geometric mean of {len(_ratio)} cells ({cache} L2, overlapping launches); least "
        f"{_ratio.min():.2f} ×."
    )
    page.stack(_text, _evidence, page.columns(*_pictures), say(_said))
    return


@app.cell(hide_code=True)
def _(a_step, seq):
    _evidence = evidence(a_step)
    _text = mo.md("""
    ## The combine, once a step

    Nothing that the combine reads depends on the layer: positions, lengths and the place of each request in the
    workspace are the same in all of them. So all its rows can be made **once**, by one launch, and read 31 times.
    Released engines make them again in each layer, and in each *chunk* of requests whose keys and values fit the
    workspace together. **Guess first:** of a step of 32 requests, which shrinks more, the GPU's time or the host's?
    """)
    _layers = a_step[(a_step["layers"] == 31) & (a_step["cache"] != "cold")]
    _context = min(_layers["max_seq_len"].unique(), key=lambda length: abs(length - seq))
    _rows = _layers[_layers["max_seq_len"] == _context]
    _forms = {  # name and colour of each
        "vllm": ("vLLM 0.34, every layer and chunk", theme.ORANGE),
        "every_layer": ("from positions, every layer and chunk", theme.BLUE),
        "once": ("from positions, once", theme.GREEN),
        "once_planned": ("once, and its plan on the host", theme.SKY),
    }
    _bars = _rows[_rows["variant"].isin(list(_forms))].drop(columns="tip")
    _bars = _bars.assign(value=_bars["us"], part=[_forms[variant][0] for variant in _bars["variant"]])
    _bars["name"] = [f"{count} request{'s'[: count - 1]}" for count in _bars["requests"]]
    _bars["label"] = [f"{us:,.0f} µs" if us >= 20 else f"{us:.1f} µs" for us in _bars["us"]]
    _look = {"styles": {name: theme.Style(colour) for name, colour in _forms.values()}, "bar_height": 16}
    _pictures = []
    for _kernel, _whose in (("step", "the GPU"), ("step host", "the host")):
        _words = f"Microseconds of {_whose} for all combines of a step, by requests and form"
        _axis = forms.Axis(f"microseconds of {_whose} a step", log=10)
        _pictures.append(forms.bars(_bars[_bars["kernel"] == _kernel], description=_words, axis=_axis, **_look))
    _at = _rows.set_index(["kernel", "requests", "variant"])[["us", "launches"]].sort_index()
    _gpu, _host = (_at.loc[kernel, 32]["us"] for kernel in ("step", "step host"))
    _launches = _at.loc["step", 32]["launches"]["vllm"]
    _gain = {name: us["vllm"] / us["once"] for name, us in (("gpu", _gpu), ("host", _host))}
    _said = (
        f"A step of 8,192 tokens from 32 requests at {_context:,} tokens, 31 layers: {_launches} launches become "
        f"**one**. The GPU's time falls from {_gpu['vllm']:,.0f} to {_gpu['once']:.1f} µs, **{_gain['gpu']:.0f} × "
        f"less**; the host's from {_host['vllm']:,.0f} to {_host['once']:.0f} µs, {_gain['host']:.0f} × less. With the "
        f"plan of the chunks and its copy to the GPU, which the other forms leave out, the host takes "
        f"{_host['once_planned']:.0f} µs."
    )
    page.stack(_text, _evidence, page.columns(*_pictures), say(_said))
    return


@app.cell(hide_code=True)
def _(at, host, tiled, title):
    _evidence = evidence(host)
    _text = mo.md("""
    ## A launch is not a kernel

    All times above are the kernel's own: 50 launches replayed from one CUDA graph, divided by 50, so that the host does
    not count. In an eager step it does. The host checks the arguments, makes views and hands the kernel to the driver.
    Where that takes longer than the kernel runs, the GPU waits for the host, and a faster kernel alone gains nothing. A
    graph records the launch once and replays it.
    """)
    _part = host["variant"].str.startswith("its ")
    _bars = host.assign(
        value=host["us"],
        label=host["time"] + " µs (" + host["spread"] + ")",
        part=_part.map({True: "a part", False: "whole"}),
    )
    _bars["name"] = host["variant"].mask(_part, "· " + host["variant"])
    _picture = forms.bars(
        _bars.drop(columns="tip"),
        description="Microseconds of host time of one call, a bar for each part",
        styles={"whole": theme.Style(theme.BLUE), "a part": theme.Style(theme.SKY)},
        legend=False,
        axis=forms.Axis("microseconds of host time a call"),
        bar_height=18,
    )
    _call = host.set_index("variant").loc
    _whole, _plain = _call["build_c128a_topk_metadata"], _call["row loop, Triton's ordinary launch alone"]
    _new = _call["build_c128a_topk_metadata, sizes not seen before"]
    _said = (
        f"One build costs the host {_whole.time} µs, its checks and views included, where these sizes were seen "
        f"before, and {_new.time} where they were not. One more process would measure between {_whole.expect_low:.0f} "
        f"and {_whole.expect_high:.0f} µs for the first: the host's time varies more than any kernel's. Triton's "
        f"ordinary launch of the row loop alone takes {_plain.time}, a graph replay "
        f"{_call['graph replay of one build'].time}. The tiles' kernel for {title} at {at:,} tokens runs "
        f"{tiled.time} µs: in eager launches "
        f"{'the GPU waits for the host' if _whole.us > tiled.us else 'the kernel is the longer of the two'}."
    )
    page.stack(_text, _evidence, _picture, say(_said))
    return


@app.cell(hide_code=True)
def _(everything):
    _bars = everything[(everything["sheet"] == "consumers") & (everything["source"] == "elsewhere")]
    mo.stop(_bars.empty, page.notes(["What the width costs others: no record can be read."], kind="neutral"))
    _text = mo.md(f"""
    ## What the width costs the kernels that read the rows

    This repository did not measure the figures of this section; they are **from elsewhere**.
    {records.provenance("elsewhere")["source"]} They carry no spread, and are compared with each other only.
    """)
    _kernels = {"flashmla_decode": "FlashMLA decode", "combine": "released combine", "builder": "row loop builder"}
    _bars = _bars.drop(columns="tip").assign(value=_bars["us"])
    _bars["label"] = _bars["us"].map("{:g} µs".format)
    _bars["part"] = _bars["policy"].map({"fixed": "fixed width"}).fillna("adaptive width")
    _bars["name"] = [
        f"{_kernels[row.kernel]}, {row.decode + row.prefill:,} {'decode' if row.decode else 'prefill'} rows at "
        f"{row.max_seq_len:,}"
        for row in _bars.itertuples()
    ]
    _picture = forms.bars(
        _bars,
        description="Microseconds of kernels that read index rows, at the fixed and at the adaptive width",
        styles={"fixed width": theme.KERNELS[FIXED], "adaptive width": theme.KERNELS[LOOP]},
        axis=forms.Axis("microseconds, figures from elsewhere"),
        bar_height=18,
    )
    _decode = _bars[_bars["kernel"] == "flashmla_decode"].groupby("name")["us"].agg(["min", "max"])
    _said = (
        f"FlashMLA's decode takes the same time at both widths, to {(_decode['max'] / _decode['min'] - 1).max():.1%}: "
        "it stops at the live entries of a row. So for decode rows the width costs the builder alone; for prefill rows "
        "it also costs the combine."
    )
    page.stack(_text, _picture, say(_said))
    return


@app.cell(hide_code=True)
def _(settings):
    _here = f"A live run is the bench's own measurement, warm, on **{live.device_label()}**."
    if not live.on_gpu():
        _here = "This machine has no GPU, so there is no kernel to time: Triton's interpreter gives true values and "
        _here += "meaningless times. A live run times the **torch reference on the CPU** instead, thousands of times "
        _here += "above the recorded kernels."
    _text = mo.md(f"""
    ## Live on this machine

    {_here} Its points are an illustration: nobody wrote down this machine's clocks and neighbours. The recorded runs
    are the evidence. A run takes the values that stand in the fields when you start it, and keeps what it has when you
    cancel it or its seconds are over. One session measures at a time, because two would disturb each other.
    """)
    _opened = dict(settings.values)
    _key = "d32" if _opened["batch"] == "p8192" and not live.on_gpu() else _opened["batch"]
    _lengths = {0: "the four recorded lengths"}
    _lengths |= {length: f"{length:,} tokens" for length in sorted({*LENGTHS, max(1, _opened["seq"])})}
    request = mo.md("{batch} {length} {budget}").batch(
        batch=page.menu("Batch to time", TITLES, _key),
        length=page.menu("at", _lengths, 0),
        budget=mo.ui.number(1, 60, step=1, value=_opened["budget"], label="Seconds at most"),
    )

    # A button whose value is the request at the moment it is pressed: a form says nothing when the same values are
    # submitted again. Each press has a number, which tells it from the one before.
    def _ask(before):
        return {**request.value, "press": before["press"] + 1 if before else 1}

    start = mo.ui.button(value=None, on_click=_ask, label="Time on this machine")
    cancel = mo.ui.button(value=0, on_click=lambda presses: presses + 1, label="Cancel")
    get_live, set_live = mo.state([])
    get_status, set_status = mo.state(("neutral", "Nothing has been timed here yet."))
    running = {"thread": None, "press": 0}
    page.stack(_text, page.panel([request], [start, cancel]))
    return cancel, get_live, get_status, request, running, set_live, set_status, start


@app.cell(hide_code=True)
def _(cancel, running, set_live, set_status, start):
    def _measure(asked, before):
        thread, seconds = mo.current_thread(), float(asked["budget"] or live.BUDGET_S)
        _, decode, prefill, short = BATCHES[asked["batch"]]
        lengths = [asked["length"]] if asked["length"] else LENGTHS
        todo = [Case.mixed(decode, prefill, length, layout="packed") for length in lengths]
        if short:
            todo = [Case.one_long(decode, LENGTHS[-1], short, layout="packed")]
        shown = 0

        def tell(step):
            nonlocal shown
            if step.row is not None:
                same = ("cell", "layout", "variant")
                set_live(lambda rows: [old for old in rows if any(old[x] != step.row[x] for x in same)] + [step.row])
            more = int(step.done * 100) - shown
            shown += more
            bar.update(more, subtitle=f"{step.cell}, about {step.left_s:.0f} s left")

        if before is not None:
            before.join(30)  # for the run before to notice that it was replaced: one measurement at most
        set_status(("neutral", "Measuring …"))
        try:
            # The run estimates what is left itself: it knows its budget, and which cells take longer than others.
            shows = {"title": live.device_label(), "show_rate": False, "show_eta": False}
            with mo.status.progress_bar(total=100, remove_on_exit=True, **shows) as bar:
                outcome = live.sweep(todo, tell, budget_s=seconds, should_stop=lambda: thread.should_exit)
        except live.GpuBusyError as busy:
            set_status(("warn", f"Not started: {busy}."))
        except Exception as error:  # whatever fails in a thread must reach the page: nothing else would show it
            set_status(("danger", f"Failed: {type(error).__name__}: {error}"))
        else:
            ends = {"finished": "Finished", "budget": f"The {seconds:g} s are spent", "stopped": "Cancelled"}
            refused = "".join(f" Refused: {reason}." for reason in outcome.refused)
            set_status(("neutral", f"{ends[outcome.ended]}; rows kept: {len(outcome.rows)}.{refused}"))

    # Pressing Cancel runs this cell again, and with that the thread of the last run is told to end.
    cancel.value
    if start.value and start.value["press"] > running["press"]:
        running["press"] = start.value["press"]
        running["thread"] = mo.Thread(target=_measure, args=(start.value, running["thread"]), daemon=True)
        running["thread"].start()
    return


@app.cell(hide_code=True)
def _(get_status):
    _kind, _text = get_status()
    _line = mo.Html(f'<div role="status">{page.user_text(_text)}</div>')
    _line if _kind == "neutral" else mo.callout(_line, kind=_kind)
    return


@app.cell
def _(get_live, packed):
    _shown = None
    if get_live():
        _every = told(pd.DataFrame(get_live()))
        _last = _every.iloc[-1]
        _mine = _every[(_every["batch"] == _last.batch) & (_every["layout"] == "packed")]
        _points = _mine[_mine["bytes"] > 0].assign(tip="live · " + _mine["tip"], label="")
        _points.loc[_points["drawn"].idxmax(), "label"] = f"live · {_last.gpu}"
        _recorded = packed[(packed["batch"] == _last.batch) & (packed["cache"] == "warm")]
        _looks = LOOKS | {name: ON_CPU[name] for name in ON_CPU if name in set(_points["name"])}
        _drawn = _recorded[_recorded["name"].isin(LOOKS)].sort_values("max_seq_len")
        _points = _points[_points["name"].isin(_looks)].assign(live=True)
        _picture = by_bytes(pd.concat([_drawn.assign(live=False), _points]), styles=_looks)
        # The narrowest rows: where the width matters most.
        _narrowest = _mine[_mine["max_seq_len"] == _mine["max_seq_len"].min()].set_index("variant")
        _said = f"live · {page.user_text(_last.gpu)}, {TITLES[_last.batch]} at {_mine['max_seq_len'].min():,} tokens: "
        if "tiled" in _narrowest.index:
            _both = _mine.merge(_recorded, on=["max_seq_len", "variant"], suffixes=("", "_recorded"))
            _inside = _both["us"].between(_both["expect_low_recorded"], _both["expect_high_recorded"])
            _said += (
                f"the tiles take {_narrowest.loc['tiled'].time} µs. {_inside.sum()} of {len(_both)} live times lie "
            )
            _said += "where the record expects those of a new process."
        elif {"reference_fixed", "reference_adaptive"} <= set(_narrowest.index):
            _wide, _one = (_narrowest.loc[f"reference_{width}"] for width in ("fixed", "adaptive"))
            _said += f"{_wide.us / 1000:,.3g} ms at the fixed width, {_one.us / 1000:,.3g} ms at {_one.width:,} "
            _said += f"columns, {times(_wide, _one)} × less. A CPU pays for columns too; a kernel's time it is not."
        else:
            _said += "not all of its times are there."
        if (_narrowest["p80"] > 1.5 * _narrowest["p20"]).any():
            _said += " The spread is wide: something else kept this machine busy."
        _table = listed(_every, {"rows": _every["batch"].map(TITLES), "tokens": _every["max_seq_len"]}, {})
        _shown = page.stack(_picture, say(_said), mo.md("**Live rows of this session**"), _table)
    _shown
    return


@app.cell(hide_code=True)
def _():
    def _read(content, name):
        try:
            return profile.read(io.BytesIO(content), name)
        except ValueError as error:
            return str(error)

    def _take(files):
        for file in files:
            set_trace((_read(file.contents, file.name), file.name))

    # What was read of a trace, or why it was not; and its name on the page.
    _example = records.folder() / "h200-trace.json.gz"
    _found = _read(_example.read_bytes(), _example.name) if _example.is_file() else None
    get_trace, set_trace = mo.state((_found, ""))
    upload = mo.ui.file([".json", ".gz"], label="A trace (.json or .json.gz)", on_change=_take)
    mo.md(f"""
    ## Your own trace

    The figures above are this repository's. What index rows cost *where you serve* stands in a trace of torch's
    profiler: of vLLM, what it writes between `/start_profile` and `/stop_profile`. Give it here, gzipped or not, at
    most 100 MB. It is read in memory, written nowhere, and forgotten when you clear it or close the page. The command
    `python -m c128a.bench trace FILE` reads up to 1 GiB of JSON and needs no GPU. **Guess first:** how many combines
    does one of your prefill steps launch?

    {upload}
    """)
    return (get_trace,)


@app.cell(hide_code=True)
def _(get_trace):
    _found, _name = get_trace()
    mo.stop(_found is None)
    mo.stop(isinstance(_found, str), page.notes([_found]))
    _names = {"part": "what", "us": "µs", "host_us": "host µs"}
    _names |= {"saved_us": "once a step: µs less", "saved_host_us": "host µs less"}
    _shown = _found[_found["step"] <= 20].rename(columns=_names)
    for _column in _shown.columns[4:]:
        _form = "{:.1%}" if _column == "share" else "{:,.1f}" if "µs" in _column else "{:,.0f}"
        _shown[_column] = _shown[_column].map(_form.format, na_action="ignore").fillna("–")
    _what = "**The example**: 31 layers on an H200, recorded by `scripts/example_trace.py` under the names of vLLM 0.26"
    _what = f"**{page.user_text(_name)}**" if _name else _what
    _told = f"{profile.summary(_found)} Shown: {_shown['step'].nunique()} of {_found['step'].max()} steps."
    _numbers = page.table(_shown, right=_shown.columns[4:])
    page.stack(mo.md(_what), _numbers, say(_told), page.downloads(_found, "c128a-trace", {}, "trace"))
    return


@app.cell(hide_code=True)
def _(at, batch, cache, everything, get_live, mine, values):
    _, _decode, _prefill, _short = BATCHES[batch]
    _command, _what = "python -m c128a.bench builder", "This cell is one of the whole run, on an NVIDIA GPU:"
    if not _short:
        _command += f" --cell {_decode},{_prefill},{at}" + " --no-cold" * (cache == "warm")
        _what = "The recorded cell again, on an NVIDIA GPU:"
    _kept = [name for name in records.COLUMNS if name not in ("low", "high", "samples")]
    _live = pd.DataFrame(get_live(), columns=records.COLUMNS)
    page.stack(
        mo.md("## Take it along"),
        page.downloads(mine[_kept], "c128a-times", values, "this batch"),
        page.downloads(everything[_kept], "c128a-all-times", values, "all recorded"),
        page.downloads(_live[_kept], "c128a-live", values, "live rows"),
        page.command(_command, _what),
    )
    return


if __name__ == "__main__":
    app.run()
