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
# title = "3 · What does one program do?"
# description = "Step through both kernels: lanes, block table, slot ids, and the line of source that does it."
# ///

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="full", app_title="What does one program do?", html_head_file="head.html")

with app.setup:
    from dataclasses import fields, replace
    from functools import lru_cache

    import marimo as mo
    import numpy as np
    import pandas as pd

    from c128a.case import Case
    from c128a.layout import ITEMSIZE, LAYOUTS
    from c128a.show import forms, page, source, theme
    from c128a.trace import KERNELS, grid, pieces, program_shape, trace
    from c128a.width import POLICIES

    TITLE = {"row_loop": "row loop", "tiled": "tiles"}
    BATCH = ("seq", "model_len", "ratio", "policy", "layout", "decode", "prefill", "fault")
    FAULTS = {
        "none": "nothing",
        "padded": "a padded token (slot -1)",
        "position": "a graph's padding row (position -1)",
        "request": "a request outside the table",
        "hole": "a block number of -1",
        "short": "a table that ends early",
    }
    LABELS = {"statement": "this statement", "value": "value stored", "index": "flat index", "cell": "(row, column)"}
    LABELS["byte"] = "byte"
    MAX_ROWS = 8  # decode rows, and prefill rows: enough for the tallest tile, few enough to tell apart
    LINE, CLOSE = 128, 16  # lanes in one line of the picture of a trip, and in the close-up


@app.cell
def _():
    _statements = dict.fromkeys(one.key for parts in source.STATEMENTS.values() for one in parts)
    settable = {name: page.shared_fields()[name] for name in ("preset", *BATCH[:5])} | {
        "decode": page.Integer(3, 0, MAX_ROWS),
        "prefill": page.Integer(3, 0, MAX_ROWS),
        "fault": page.Choice("none", tuple(FAULTS)),
        "kernel": page.Choice("row_loop", KERNELS),
        "program": page.Integer(1, 0, 2 * MAX_ROWS - 1),
        "trip": page.Integer(0, 0, 2**20),
        "lane": page.Integer(5, 0, 2**20),
        "statement": page.Choice("store", tuple(_statements)),
        "label": page.Choice("statement", tuple(LABELS)),
    }
    opened, problems = page.read(page.address(), settable)
    for _name, _count in counts(batch(*(opened[_one] for _one in BATCH)), opened["kernel"]).items():
        if opened[_name] >= _count > 0:
            _has = f"this build has 0 to {_count - 1:,}. Shown: {_count - 1:,}."
            problems.append(f"{_name} is {opened[_name]} in the address; {_has}")
            opened[_name] = _count - 1
    # What the steppers stand at: a plain dict, so that a step does not rebuild the control that made it.
    focus = {_name: opened[_name] for _name in ("kernel", "program", "trip", "lane", "statement")}
    return focus, opened, problems, settable


@app.function
def batch(seq, model_len, ratio, policy, layout, decode, prefill, fault):
    """Decode requests whose lengths fall evenly from seq tokens, and tokens of one prompt among which n grows by one.

    The fault sits in the second decode row, or in the only one.
    """
    lengths = [seq * (decode - row) // decode for row in range(decode)]
    grows = seq * 3 // 4 // ratio * ratio - 1  # n grows with the last token of each `ratio` tokens
    end = min(seq, grows + (prefill + 1) // 2) if decode else seq
    positions = [max(at, -1) for at in (*(length - 1 for length in lengths), *range(end - prefill, end))]
    queries = (1,) * decode + (prefill,) * (prefill > 0)
    contexts = (*(max(length, 1) for length in lengths), *(max(end, prefill),) * (prefill > 0))
    sizes = {"max_model_len": model_len, "compress_ratio": ratio, "policy": policy, "layout": layout}
    case = Case(queries, contexts, decode, **sizes)

    at, given, table = min(1, decode - 1), {}, case.block_table.copy()
    if decode and fault == "padded":
        given["given_slots"] = tuple(-1 if row == at else row for row in range(decode))
    elif decode and fault == "position":
        positions[at] = -1
    elif decode and fault == "request":
        given["given_requests"] = tuple(len(queries) if row == at else row for row in range(decode))
    elif decode and fault == "hole":
        table[at, min(1, table.shape[1] - 1)] = -1
    elif decode and fault == "short":
        table = table[:, : max(table.shape[1] // 4, 1)]
    if not np.array_equal(table, case.block_table):
        given["given_table"] = tuple(map(tuple, table.tolist()))
    if positions != case.positions.tolist():
        given["given_positions"] = tuple(positions)
    return replace(case, **given)


@app.function
def counts(case, kernel):
    """How many programs, trips of one and lanes of one trip there are; all 0 where there is no row."""
    (programs, trips), (rows, columns) = grid(case, kernel), program_shape(case, kernel)
    return {"program": programs, "trip": trips * (programs > 0), "lane": rows * columns * (programs > 0)}


@app.function
def many(count, noun):
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s" if count else f"no {noun}s"


@app.cell
def _(opened):
    # `start` is what the controls open with: the address, then each preset; `jump` counts clicks on a picture.
    get_start, set_start = mo.state(opened)
    get_seq, set_seq = mo.state(opened["seq"])
    get_slid, set_slid = mo.state(opened["seq"])
    get_typed, set_typed = mo.state(opened["seq"])
    get_jump, set_jump = mo.state(0)
    return get_jump, get_seq, get_slid, get_start, get_typed, set_jump, set_seq, set_slid, set_start, set_typed


@app.cell
def _(opened, set_seq, set_slid, set_start, set_typed, settable):
    def _choose(name):
        values, _ = page.read({"preset": name}, settable)
        set_start(values)
        for change in (set_seq, set_slid, set_typed):
            change(values["seq"])

    preset = page.preset_menu(opened["preset"], _choose)
    return (preset,)


@app.cell
def _(get_typed, set_seq, set_slid):
    slider = page.token_slider(get_typed(), lambda value: (set_slid(value), set_seq(value)))
    return (slider,)


@app.cell
def _(get_slid, set_seq, set_typed):
    number = page.token_input(get_slid(), lambda value: (set_typed(value), set_seq(value)))
    return (number,)


@app.cell
def _(get_start):
    def _rows(name):
        return mo.ui.slider(0, MAX_ROWS, value=_start[name], show_value=True, label=f"{name.capitalize()} rows")

    _start = get_start()
    _ratios = {128: "128 (C128A)", 4: "4 (C4A)"}
    _ratio_of = {title: ratio for ratio, title in _ratios.items()}
    _fault_of = {title: name for name, title in FAULTS.items()}
    settings = mo.ui.dictionary(
        {
            "model_len": mo.ui.number(1, page.MAX_TOKENS, 1, _start["model_len"], label="Model length, tokens"),
            "ratio": mo.ui.radio(_ratio_of, _ratios[_start["ratio"]], inline=True, label="Compress ratio"),
            "policy": mo.ui.radio(POLICIES, _start["policy"], inline=True, label="Policy"),
            "layout": mo.ui.radio(LAYOUTS, _start["layout"], inline=True, label="Layout"),
            "decode": _rows("decode"),
            "prefill": _rows("prefill"),
            "fault": mo.ui.dropdown(_fault_of, FAULTS[_start["fault"]], label="Wrong with the batch"),
        }
    )
    return (settings,)


@app.cell
def _(get_seq, preset, settable, settings):
    # A number field that was emptied counts as its default.
    _given = {name: settable[name].default if value is None else value for name, value in settings.value.items()}
    shared = {"preset": preset.value, "seq": get_seq()} | _given
    case = batch(*(shared[name] for name in BATCH))
    runs = case.fits and case.num_tokens > 0  # a builder refuses what does not fit, and no row needs no program
    return case, runs, shared


@app.cell
def _(focus, get_jump):
    get_jump()
    _of = {title: name for name, title in TITLE.items()}
    _into = lambda value: focus.update(kernel=value)  # noqa: E731
    kernel_ui = mo.ui.radio(_of, TITLE[focus["kernel"]], inline=True, label="Kernel", on_change=_into)
    return (kernel_ui,)


@app.cell
def _(case, focus, get_jump, kernel_ui):
    def _stepper(name, count):
        last = max(count - 1, 0)
        title = _titles.get(name, name.capitalize()) + (f", 0 to {last:,}&ensp;" if last else ", only 0&ensp;")
        look = {"show_value": True, "full_width": name == "lane", "disabled": last == 0, "label": title}
        return mo.ui.slider(
            0, last, value=min(focus[name], last), on_change=lambda value: focus.update({name: value}), **look
        )

    get_jump()
    _titles = {"program": "Row group", "trip": "Column tile"} if kernel_ui.value == "tiled" else {}
    program_ui, trip_ui, lane_ui = (_stepper(*_one) for _one in counts(case, kernel_ui.value).items())
    return lane_ui, program_ui, trip_ui


@app.cell
def _(case, kernel_ui, program_ui, runs, trip_ui):
    # One line for each lane of each store of this trip; `lanes` are those that write a row, not its lens.
    kernel, program, trip = kernel_ui.value, program_ui.value, trip_ui.value
    stores = trace(case, kernel, program=program, trip=trip) if runs else pd.DataFrame({"kind": []})
    lanes = stores[stores["kind"] != "lens"].reset_index(drop=True)
    states = {state: int((lanes["state"] == state).sum()) for state in theme.LANES} if runs else {}
    return kernel, lanes, program, states, stores, trip


@app.cell(hide_code=True)
def _(case, kernel, lanes, problems, program, runs, shared, states, trip):
    _alarm = None
    if runs:
        _cells = lanes[lanes["state"] != "masked"]
        _first, _last = _cells["row"].min(), _cells["row"].max()
        _rows = f"row {_first}" if _first == _last else f"rows {_first} to {_last}"
        _where = f"columns {_cells['column'].min():,} to {_cells['column'].max():,} of {lanes['kind'][0]} {_rows}"
        _who = f"{'Row loop' if kernel == 'row_loop' else 'Tiles'}, program {program}, "
        _who += f"trip {trip}" if kernel == "row_loop" else f"column tile {trip}"
        _does = f"{many(states['live'], 'id')}, {many(states['pad'], 'pad')}, {many(states['masked'], 'lane')} idle"
        _lead = f"{_who}: **{len(lanes):,} lanes write {_where}**: {_does}."
    elif case.fits:
        _lead = "**No program runs**: there is no row to write."
    else:
        _lead = f"**No program runs**: this batch needs {case.needed:,} columns, and a row has {case.capacity:,}."
        _alarm = f"{case.max_seq_len:,} tokens need {case.needed:,} columns, and a model length of "
        _alarm += (
            f"{case.max_model_len:,} tokens gives {case.capacity:,}. A builder refuses this batch: raise the model "
        )
        _alarm += "length, or shorten the sequence."
    _header = page.header("03_kernel", "What does one program do?", _lead, shared)
    page.stack(_header, page.notes(problems), page.alarm(_alarm))
    return


@app.cell(hide_code=True)
def _():
    mo.md("""
    ## What you need to know

    C128A folds every 128 tokens of a sequence into one *compressed entry*. A token at position *p* may read the
    *n* = (*p* + 1) // 128 entries that are complete by then. An *index row* lists them for the attention kernel: *n*
    ids, then *pads* of -1 up to the *width*, which is the same for all rows of a batch.

    A decode row holds *slot ids*, places in the paged KV cache, and looks them up in the *block table*. A prefill row
    holds plain numbers from 0 to *n* - 1.

    A kernel runs as many *programs*. Each has *lanes*, which do the same statement on different columns at once. A
    program that takes its row in several pieces makes several *trips*.

    ## A small batch

    Six tokens show everything. Three are decode tokens, of requests whose lengths fall from the longest. Three are
    neighbours in one prompt, chosen so that *n* grows by one among them. You may also break the batch, as padding and
    unfinished tables do in an engine, and see what is stored then.
    """)
    return


@app.cell(hide_code=True)
def _(number, preset, settings, slider):
    _length = mo.hstack([slider, number], widths=[4, 1], align="end", gap=1.5)
    _rows, _shape = ([settings[name] for name in names] for names in (BATCH[5:], ("policy", "layout", "ratio")))
    page.panel(_length, _rows, _shape, [settings["model_len"], preset])
    return


@app.cell(hide_code=True)
def _(case):
    _options = {"one": (1, 1), "two to four": (2, 4), "five to eight": (5, 8), "more": (9, 2**20)}
    guess = mo.ui.radio(_options, inline=True, label="Trips of one program")
    _question = mo.md(f"""
    ## Guess first: how many trips?

    The *row loop* gives each row to one program, which walks over it 1,024 columns at a time. The longest sequence has
    {case.max_seq_len:,} tokens, and the buffer has {case.capacity:,} columns a row. How many trips does one program
    make?
    """)
    page.stack(_question, page.panel([guess]))
    return (guess,)


@app.cell(hide_code=True)
def _(case, guess, runs):
    _trips, _answer = grid(case, "row_loop")[1], "Choose one: the answer appears here. The left picture below shows it."
    if guess.value and runs:
        _answer = f"**{'Right' if guess.value[0] <= _trips <= guess.value[1] else 'No'}: {many(_trips, 'trip')}.** "
        _answer += f"The sequence needs {case.needed:,} columns, the policy makes rows of {case.width:,}, and "
        _answer += f"{case.width:,} / 1,024, rounded up, is {_trips:,}."
    page.sentence(_answer)
    return


@app.cell
def _(focus, set_jump):
    # The places of the pictures that are clicked; a click moves the steppers to what was clicked.
    def _pick(mark):
        mark = {"lane": mark["at"]} if "at" in mark else mark
        focus.update({name: mark[name] for name in focus if name in mark})
        set_jump(lambda count: count + 1)

    places = {name: page.clickable(_pick) for name in (*KERNELS, "lanes")}
    return (places,)


@app.cell(hide_code=True)
def _(case, kernel, places, program, runs, trip):
    def _placed(frame):
        lane = frame["kind"] + " " + frame["row"].astype(str)
        return frame.assign(group=frame["kind"], lane=lane, lanes=frame["rows"])

    def _map(of):
        (programs, trips), (rows, columns) = grid(case, of), program_shape(case, of)
        every, step = pieces(case, of), "trip" if of == "row_loop" else "tile"
        joined = min(-(-len(every) // 1024), trips)  # more pieces than that are too small to see
        marks = _placed(every[every["trip"] % joined == 0]).assign(kernel=of)
        marks["stop"] = np.minimum(marks["start"] + joined * columns, case.width)
        marks["order"] = marks["program"] * trips + marks["trip"]
        marks["label"] = [f"{one.program}" + f", {one.trip}" * (trips > 1) for one in marks.itertuples()]
        marks["tip"] = [
            f"program {one.program}, {step} {one.trip}: {one.kind} rows {one.row} to {one.row + one.rows - 1}, columns "
            f"{one.start:,} to {one.stop - 1:,}" + (f", up to {joined} {step}s" if joined > 1 else "")
            for one in marks.itertuples()
        ]
        kinds = {"decode": case.decode_rows.rows, "prefill": case.prefill_rows.rows}
        names = {kind: [f"{kind} {row}" for row in range(count)] for kind, count in kinds.items() if count}
        ends = pd.DataFrame({"lane": [name for of_kind in names.values() for name in of_kind], "at": case.entries})
        ends["group"] = ends["lane"].str.split().str[0]
        # The piece on view, and in the other kernel the pieces that hold its cells.
        own = pieces(case, kernel).query("program == @program and trip == @trip").iloc[0]
        row, start = own["row"] // rows * rows, own["start"] // columns * columns
        end, stop = -(-(own["row"] + own["rows"]) // rows) * rows, -(-own["stop"] // columns) * columns
        chosen = {"kind": [own["kind"]], "row": row, "rows": min(end, kinds[own["kind"]]) - row, "start": start}
        chosen = pd.DataFrame(chosen | {"stop": min(stop, case.width), "dashed": of != kernel})
        picture = forms.bands(
            marks,
            description=f"Which program of the {TITLE[of]} writes which cell",
            title=f"{TITLE[of].capitalize()}, {case.width:,} columns",
            lanes=names,
            cuts=ends[ends["at"] < case.width],
            chosen=_placed(chosen),
            click=("kernel", "program", "trip"),
            x_axis=forms.Axis(ticks=[case.width * part // 4 for part in range(5)]),
            room=410,
        )
        cells, work = case.num_tokens * case.width, len(every) * rows * columns
        who = f"{many(programs, 'program')} of {many(trips, 'trip')}"
        who = who if of == "row_loop" else f"{many(len(every), 'program')} of {rows} × {columns:,} cells"
        said = f"**{who}** write {cells:,} cells with {work:,} lanes: {100 * cells / work:.0f} % of the lanes store."
        said += f" One block stands for {joined} neighbours." if joined > 1 else ""
        return mo.vstack([page.shown(places[of], picture), page.sentence(said)])

    _before = mo.md("""
    ## Which program writes which cell

    Both kernels write the same cells. The row loop starts one program a row, which makes its trips one after the other.
    *Tiles* cut rows and columns alike: each piece is a program of its own, and all of them may run at once. Darker
    pieces start first. The white bar in a row is *n*: all that lies right of it is padding, and is written too.
    """)
    _after = mo.md("""
    Click a piece to look at it below. The dashed frame shows who writes the same cells in the other kernel.

    **Try:** type 131,072 as the longest sequence, then 131,200. One more entry makes the rows twice as wide, and the
    row loop needs a second trip, in which one lane of the whole batch carries an id.
    """)
    page.stack(_before, page.columns(*map(_map, KERNELS)), _after) if runs else None
    return


@app.cell(hide_code=True)
def _(kernel_ui, program_ui, runs, trip_ui):
    _text = mo.md("""
    ## One trip, lane by lane

    Choose a kernel, a program and a trip, with the mouse or with Tab and the arrow keys. A lane is *live* where it
    stores an id, and a *pad* where it stores -1. A *masked* lane stores nothing: it lies past the width, or in a row
    that does not exist. This is where width costs time: a pad is a store like any other.
    """)
    page.stack(_text, page.panel([kernel_ui, program_ui, trip_ui])) if runs else None
    return


@app.cell(hide_code=True)
def _(case, kernel, lane_ui, lanes, places, runs, states, stores):
    def _picture(drawn, at):
        names = [
            f"row {part['row'].iloc[0]} · {part['column'].iloc[0]:,}–{part['column'].iloc[-1]:,}"
            for _, part in drawn.groupby(drawn.index // LINE)
        ]
        marks = pd.DataFrame({"lane": np.take(names, drawn.index // LINE), "start": drawn.index % LINE})
        marks["stop"] = marks["start"] + 0.86
        marks = marks.assign(kind=drawn["state"], value=drawn["value"].fillna(0)).rename_axis("at").reset_index()
        # Worked out by the browser: a text for each of a thousand lanes would be most of what a key press sends.
        columns = program_shape(case, kernel)[1]
        stride = (case.decode_rows if drawn["kind"][0] == "decode" else case.prefill_rows).row_stride
        row = f"({drawn['row'][0]} + floor(datum.at / {columns}))"
        column = f"({drawn['column'][0]} + datum.at % {columns})"
        offset = f"({row} * {stride} + {column})"
        tip = f"'lane ' + datum.at + (datum.kind == 'masked' ? ' is masked: row ' + {row} + ', column ' + {column}"
        tip += f" : ' stores ' + format(datum.value, ',') + ': row ' + {row} + ' × stride {stride:,} + column ' + "
        tip += f"format({column}, ',') + ' = ' + format({offset}, ',')"
        tip += f" + ' → byte ' + format({ITEMSIZE} * {offset}, ','))"
        return forms.bands(
            marks,
            description="The lanes of this trip: live, pad or masked",
            styles=theme.LANES,
            chosen=marks.loc[[at], ["lane", "start", "stop"]] if at < len(marks) else None,
            click=("at", "value"),
            tip=tip,
            x_axis=forms.Axis(domain=(0, LINE), ticks=range(0, LINE + 1, 16)),
            lane_height=20,
            side=150,
            canvas=True,
        )

    _said = ", ".join(f"{count:,} {state}" for state, count in states.items())
    if runs:
        _drawn = lanes.head(64 * LINE)
        _said = f"**{_said}**: {100 * states['live'] / len(lanes):.0f} % of the lanes carry an id. "
        _lens = stores[(stores["kind"] == "lens") & (stores["state"] != "masked")]
        _counted = ", ".join(f"{one.value:,} for row {one.row}" for one in _lens.itertuples())
        _said += f"The *lens*, how many cells a reader looks at, is stored too: {_counted}. " if _counted else ""
        _said += f"Drawn: {len(_drawn):,} of {len(lanes):,} lanes. " if len(_drawn) < len(lanes) else ""
        _view = page.shown(places["lanes"], _picture(_drawn, lane_ui.value))
    page.stack(
        _view, page.sentence(_said + "Point at a lane for its address, click it to follow it.")
    ) if runs else None
    return


@app.cell
def _(focus, kernel, lanes, runs, stores):
    # Only the last trip of a decode row, or its first tile, stores a lens.
    _all = source.STATEMENTS[kernel, lanes["kind"][0]] if runs else source.STATEMENTS["row_loop", "prefill"]
    statements = [one for one in _all if one.key != "lens" or len(stores) > len(lanes)]
    _keys = [one.key for one in statements]
    statement_ui = mo.ui.slider(
        0,
        len(_keys) - 1,
        value=_keys.index(focus["statement"] if focus["statement"] in _keys else "store"),
        show_value=True,
        label="Statement&ensp;",
        on_change=lambda value: focus.update(statement=_keys[int(value or 0)]),
    )
    return statement_ui, statements


@app.cell
def _(opened):
    _of = {title: name for name, title in LABELS.items()}
    label_ui = mo.ui.radio(_of, LABELS[opened["label"]], inline=True, label="Labels")
    return (label_ui,)


@app.cell(hide_code=True)
def _(label_ui, lane_ui, runs, statement_ui):
    _text = mo.md("""
    ## One lane, from its position to its slot id

    Follow one lane through the program. The chain below holds its numbers, from the token's position to the cell that
    it writes. Step the statement: the table and the source mark where the program stands, and the small picture shows
    what that statement gives in the lanes beside it.
    """)
    _steps = mo.hstack([lane_ui, statement_ui], widths=[2.2, 1], gap=1.75, align="center")
    page.stack(_text, page.panel(_steps, [label_ui])) if runs else None
    return


@app.function
def cells(lines, chosen, description):
    """A picture of a few cells, large enough for their texts. lines: {name: (texts, kinds, tips)}."""
    parts = []
    for name, (texts, kinds, tips) in lines.items():
        part = {"lane": name, "start": range(len(texts)), "label": texts, "kind": kinds, "tip": tips}
        parts.append(pd.DataFrame(part))
    marks = pd.concat(parts)
    marks["stop"], marks["short"] = marks["start"] + 1, marks["label"].str.replace(",", "")
    ring = pd.DataFrame({"lane": [*lines], "start": chosen, "stop": chosen + 1}) if chosen < len(texts) else None
    looks = {"live": theme.CELLS["id of this build"], "pad": theme.CELLS["pad (−1)"]}
    looks |= {"masked": theme.Style(theme.FAINT, ink=theme.INK), "differs": theme.VERDICTS["wrong"]}
    axis = forms.Axis(domain=(0, CLOSE))
    return forms.bands(
        marks, description=description, styles=looks, legend=False, chosen=ring, x_axis=axis, lane_height=32, side=150
    )


@app.cell(hide_code=True)
def _(case, kernel, label_ui, lane_ui, lanes, runs, statement_ui, statements):
    statement, lane = statements[statement_ui.value].key, None

    def _chain(lane):
        parts = {"position": lane.position, "n": lane.n, "column": lane.column}
        decode = {"table entry": lane.entry, "block number": lane.block, "slot id": lane.value}
        parts |= decode if lane.kind == "decode" else {"local index": lane.value}
        parts["cell of the buffer"] = pd.NA if lane.state == "masked" else lane.offset
        texts = {name: "–" if pd.isna(value) else f"{value:,}" for name, value in parts.items()}
        cards = [part for name, text in texts.items() for part in (mo.md("→"), mo.stat(text, name, bordered=True))]
        return mo.hstack(cards[1:], justify="start", align="center", wrap=True, gap=0.6)

    def _close_up():
        first = lane_ui.value // CLOSE * CLOSE
        part = [*lanes.iloc[first : first + CLOSE].itertuples()]
        rows = case.decode_rows if lane.kind == "decode" else case.prefill_rows
        of = {
            "statement": lambda one: source.worked_out(case, kernel, one)[statement][1],
            "value": lambda one: f"{one.value:,}",
            "index": lambda one: f"{one.offset:,}",
            "cell": lambda one: f"{one.row}, {one.column:,}",
            "byte": lambda one: f"{one.offset * ITEMSIZE:,}",
        }[label_ui.value]
        told = [one.state != "masked" or label_ui.value in ("statement", "cell") for one in part]
        texts = [of(one) if said else "" for one, said in zip(part, told, strict=True)]
        tips = [one.reason if one.state == "masked" else rows.address(one.row, one.column) for one in part]
        line = {f"lanes {first:,}–{first + len(part) - 1:,}": (texts, [one.state for one in part], tips)}
        return cells(line, lane_ui.value - first, "The lanes around the chosen one, with their labels")

    def _sentence(found):
        if lane.state == "masked":
            return f"**Lane {lane.lane:,} stores nothing**, {found['store'][0]}."
        if lane.state == "pad":
            return f"**Lane {lane.lane:,} stores -1**: {lane.reason}."
        if lane.kind == "prefill":
            return f"**Lane {lane.lane:,} stores its own column, {lane.value:,}**: a prefill row needs no block table."
        place = f"entry {lane.column:,} of request {lane.request} is number {lane.column % case.block_size} of block"
        return f"**Lane {lane.lane:,} stores slot id {lane.value:,}**: {place} {lane.block:,}."

    if runs:
        lane = next(lanes.iloc[[lane_ui.value]].itertuples())
        _found = source.worked_out(case, kernel, lane)
        _steps = pd.DataFrame({"statement": [one.title for one in statements]})
        _steps["for this lane"] = [_found[one.key][0] for one in statements]
        _where = mo.md(f"### Lane {lane.lane:,}: {lane.kind} row {lane.row}, column {lane.column:,}")
        _file = mo.md(f"### {TITLE[kernel].capitalize()}, in c128a/kernel.py")
        _left = mo.vstack([_where, page.table(_steps, marked=statement_ui.value, tall="none")])
        _right = mo.vstack([_file, source.listing(kernel, lane.kind, statement)])
        _both = page.columns(_left, _right, widths=[1, 1.3])
        _view = mo.vstack([_chain(lane), page.sentence(_sentence(_found)), _close_up(), _both])
    _view if runs else None
    return (statement,)


@app.cell
def _():
    @lru_cache(maxsize=32)
    def true_output(case, kernel):
        """Rows of the kernel and of the reference by kind, run on this machine, and what ran them."""
        import torch

        from c128a import backend, metadata, reference

        build = metadata.build_c128a_topk_metadata if kernel == "tiled" else metadata.build_with_row_loop
        of = case.tensors(backend.device())
        inputs = (of.positions, case.compress_ratio, case.num_decode_tokens, of.token_to_req_indices)
        inputs += (of.block_table, case.block_size, of.slot_mapping)
        # Poisoned, so that a cell which the kernel leaves out shows. One row too many spares the case of none.
        decode, prefill = case.decode_rows.rows + 1, case.prefill_rows.rows + 1
        sizes = [(decode, case.capacity), (decode,), (prefill, case.capacity)]
        buffers = [torch.full(size, -99, dtype=torch.int32, device=backend.device()) for size in sizes]
        with backend.kernel_lock:
            got = build(*inputs, *buffers, case.width, layout=case.layout)
        want = reference.topk_metadata(*inputs, case.width)
        names = ("decode", "lens", "prefill")
        rows = ({name: part.cpu().numpy() for name, part in zip(names, parts, strict=True)} for parts in (got, want))
        return *rows, backend.describe()

    asked = set()  # builds of many programs that the reader wants to see interpreted
    run_button = mo.ui.run_button(label="Run them")
    return asked, run_button, true_output


@app.cell(hide_code=True)
def _(asked, case, kernel, lane_ui, lanes, run_button, runs, true_output):
    def _run():
        """The rows of the kernel and of the reference, where this process can make them, and a line on that."""
        try:
            from c128a import backend, metadata  # noqa: F401
        except ImportError as missing:
            said = f"{missing.name or 'triton'} cannot be imported here: below is the trace, which a test holds to "
            return {}, mo.callout(mo.md(said + "the kernel."), kind="info")
        programs = int(np.prod(grid(case, kernel)))
        asked.update([(case, kernel)] if run_button.value else [])
        if backend.INTERPRET and programs > 2048:
            return {}, mo.callout(mo.md(f"{programs:,} programs are too many for the interpreter."), kind="info")
        if backend.INTERPRET and programs > 64 and (case, kernel) not in asked:
            said = mo.md(f"{programs:,} interpreted programs are not run unasked.")
            return {}, mo.hstack([said, run_button], justify="start")
        got, want, where = true_output(case, kernel)
        count = sum(rows.size for rows in want.values())
        wrong = sum(int((got[kind] != want[kind]).sum()) for kind in want)
        said = f"**All {count:,} cells equal the reference**, lens included"
        said = f"**{wrong:,} of {count:,} cells differ from the reference**" if wrong else said
        return {"kernel": got, "reference": want}, mo.md(f"{said}. Ran: {TITLE[kernel]}, {where}.")

    def _beside(output):
        first = lane_ui.value // CLOSE * CLOSE
        part = lanes.iloc[first : first + CLOSE].query("state != 'masked'")
        if part.empty:
            return page.sentence("The lanes of the close-up store nothing: there is nothing to compare.")
        kind, row, columns, trace_of = part["kind"].iloc[0], part["row"].iloc[0], [*part["column"]], [*part["value"]]
        values = {name: rows[kind][row, columns].tolist() for name, rows in output.items()} | {"trace": trace_of}
        lines = {}
        for name, line in values.items():
            states = ["differs" if a != b else s for a, b, s in zip(line, trace_of, part["state"], strict=True)]
            tips = [f"{name}: {kind} row {row}, column {column:,}" for column in columns]
            lines[name] = ([f"{value:,}" for value in line], states, tips)
        return cells(lines, lane_ui.value - first, "What the kernel wrote, beside the reference and the trace")

    _text = mo.md("""
    ## What the kernel really wrote

    All of the above comes from a walk over the kernel's statements in plain Python. Here the kernel itself has run on
    the same batch, into a buffer full of -99, and every cell is compared with a reference that shares no code with it.
    Without a GPU it runs in Triton's interpreter, whose values are true.

    **Try:** set what is wrong with the batch to “a block number of -1” and follow lane 2 of decode row 1. The table is
    read and says -1, so a pad is stored. With “a request outside the table” the mask keeps the load from happening.
    """)
    _output, _note = _run() if runs else ({}, None)
    page.stack(_text, _note, _beside(_output)) if runs else None
    return


@app.cell(hide_code=True)
def _(case, kernel, label_ui, lane_ui, program, runs, shared, statement, stores, trip):
    def _command():
        plain = replace(case, given_table=None)
        values = {one.name: getattr(plain, one.name) for one in fields(Case) if getattr(plain, one.name) != one.default}
        made = f"case = Case({', '.join(f'{name}={value!r}' for name, value in values.items())}); "
        if case.given_table is not None:  # too long to write out: told by what was done to it
            holes = [f"table[{row}, {column}] = -1; " for row, column in np.argwhere(case.block_table < 0)]
            made += f"table = case.block_table[:, :{len(case.given_table[0])}].copy(); {''.join(holes)}"
            made += "case = replace(case, given_table=table.tolist()); "
        imports = "from dataclasses import replace; from c128a.case import Case; from c128a.trace import trace; "
        return f'python -c "{imports}{made}print(trace(case, {kernel!r}, program={program}, trip={trip}).to_string())"'

    _values = shared | {"kernel": kernel, "program": program, "trip": trip, "lane": lane_ui.value}
    _values |= {"statement": statement, "label": label_ui.value}
    page.remember(_values)

    def _trip():
        return stores.assign(byte=(stores["offset"] * ITEMSIZE).where(stores["offset"] >= 0, -1))

    def _programs():
        return pd.concat([pieces(case, each).assign(kernel=each) for each in KERNELS])

    page.stack(
        mo.md(
            "## Take it along\n\nThe lanes of this trip with every number on their way, and the pieces of both kernels."
        ),
        page.downloads(_trip, "c128a-trace", _values, "this trip"),
        page.downloads(_programs, "c128a-programs", _values, "all programs"),
        page.command(_command(), "The lanes of this trip, in a shell:"),
    ) if runs else None
    return


if __name__ == "__main__":
    app.run()
