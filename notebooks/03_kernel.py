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

    from c128a.bench import records
    from c128a.case import Case
    from c128a.layout import ITEMSIZE, LAYOUTS
    from c128a.show import forms, page, source, theme
    from c128a.show.built import built
    from c128a.show.own import MAX_ROWS, case_of
    from c128a.show.words import words
    from c128a.teach.ask import ask
    from c128a.trace import KERNELS, grid, pieces, program_shape, trace

    TITLE = {"row_loop": "row loop", "tiled": "tiles"}
    RATIOS = {128: "128 (C128A)", 4: "4 (C4A)"}
    # What can be wrong with a decode row, and the statement that meets it.
    FAULTS = {
        "none": ("nothing", ""),
        "padded": ("a padded token (slot -1)", "lens"),
        "position": ("a graph's padding row (position -1)", "n"),
        "request": ("a request outside the table", "live"),
        "hole": ("a block number of -1", "block"),
        "short": ("a table that ends early", "live"),
    }
    LABELS = {"statement": "this statement", "value": "value stored", "index": "flat index", "cell": "(row, column)"}
    LABELS["byte"] = "byte"
    GUESSES = {"one": (1, 1), "two to four": (2, 4), "five to eight": (5, 8), "more": (9, 2**20)}  # from, to
    LINE, CLOSE = 128, 16  # lanes in one line of the picture of a trip, and in the close-up
    FIELDS = page.shared_fields() | {
        "decode": page.Integer(3, 0, MAX_ROWS),
        "prefill": page.Integer(3, 0, MAX_ROWS),
        "fault": page.Choice("none", tuple(FAULTS)),
        "kernel": page.Choice("row_loop", KERNELS),
        "program": page.Integer(1, 0, 2 * MAX_ROWS - 1),
        "trip": page.Integer(0, 0, 2**20),
        "lane": page.Integer(5, 0, 2**20),
        "statement": page.Choice(
            "store", tuple(dict.fromkeys(one.key for of in source.STATEMENTS.values() for one in of))
        ),
        "label": page.Choice("statement", tuple(LABELS)),
    }


@app.function
def batch(*, seq, model_len, ratio, policy, layout, own, decode, prefill, fault, **_):
    """The typed batch, or one of the lengths where there is none or it contradicts itself, and notes on that.

    The lengths of decode requests fall evenly from seq tokens, and n grows by one among the tokens of one prompt. The
    fault sits in the second decode row, or in the only one.
    """
    case, wrong = None, []
    sizes = {"max_model_len": model_len, "compress_ratio": ratio, "policy": policy, "layout": layout}
    try:
        case = case_of(own, **sizes) if own else None
    except ValueError as error:  # its parts contradict each other
        wrong = [f"Your own batch is {own}; {error}. Shown: none."]
    if case is None:
        lengths = [seq * (decode - row) // decode for row in range(decode)]
        grows = seq * 3 // 4 // ratio * ratio - 1  # n grows with the last token of each `ratio` tokens
        end = min(seq, grows + (prefill + 1) // 2) if decode else seq
        positions = tuple(max(at, -1) for at in (*(length - 1 for length in lengths), *range(end - prefill, end)))
        contexts = (*(max(length, 1) for length in lengths), *(max(end, prefill),) * (prefill > 0))
        queries = (1,) * decode + (prefill,) * (prefill > 0)
        case = Case(queries, contexts, decode, given_positions=positions, **sizes)
    if fault == "none" or case.num_decode_tokens == 0:
        return case, wrong

    def put(line, at, value):
        return (*line[:at], value, *line[at + 1 :])

    spoilt, table = faulty_row(case), tuple(map(tuple, case.block_table.tolist()))
    given = {
        "padded": {"given_slots": put(range(case.num_decode_tokens), spoilt, -1)},
        "position": {"given_positions": put(case.given_positions, spoilt, -1)},
        "request": {"given_requests": put(range(case.num_decode_tokens), spoilt, len(table))},
        "hole": {"given_table": put(table, spoilt, put(table[spoilt], min(1, len(table[spoilt]) - 1), -1))},
        "short": {"given_table": tuple(row[: max(len(row) // 4, 1)] for row in table)},
    }
    return replace(case, **given[fault]), wrong


@app.function
def faulty_row(case):
    """The decode row in which a fault sits."""
    return min(1, case.num_decode_tokens - 1)


@app.function
def counts(case, kernel):
    """How many programs, trips of one and lanes of one trip there are; all 0 where there is no row."""
    (programs, trips), (rows, columns) = grid(case, kernel), program_shape(case, kernel)
    return {"program": programs, "trip": trips * (programs > 0), "lane": rows * columns * (programs > 0)}


@app.function
def many(count, noun):
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s" if count else f"no {noun}s"


@app.function
def close_up(cells, chosen, description):
    """A picture of a few cells, large enough for their texts. cells: lane (their line), start, label, kind, tip."""
    marks = cells.assign(stop=cells["start"] + 1, short=cells["label"].str.replace(",", ""))
    ring = marks[marks["start"] == chosen].drop_duplicates("lane")[["lane", "start", "stop"]]
    looks = {"live": theme.CELLS["id of this build"], "pad": theme.CELLS["pad (−1)"]}
    looks |= {"masked": theme.Style(theme.FAINT, ink=theme.INK), "differs": theme.VERDICTS["wrong"]}
    size = {"x_axis": forms.Axis(domain=(0, CLOSE)), "lane_height": 32, "side": 150}
    return forms.bands(marks, description=description, styles=looks, legend=False, chosen=ring, **size)


@app.function
@lru_cache(maxsize=32)
def reference_rows(case):
    """The rows and lens of `built` by the reference, which shares no code with the kernels."""
    from c128a import reference

    of = case.tensors()
    inputs = (of.positions, case.compress_ratio, case.num_decode_tokens, of.token_to_req_indices, of.block_table)
    rows = reference.topk_metadata(*inputs, case.block_size, of.slot_mapping, case.width)
    return dict(zip(("decode", "lens", "prefill"), (part.numpy() for part in rows), strict=True))


@app.cell
def _():
    def jump(**to):
        focus.update({name: int(at) if name in ("program", "trip", "lane") else at for name, at in to.items()})
        set_jump(lambda count: count + 1)

    def _chosen(_):
        if settings.values["own"]:  # its first id is what such a preset is about
            jump(program=0, trip=0, lane=0)

    settings, get_start, get_seq, get_notes = page.open_page(FIELDS, _chosen)
    _opened = settings.values
    if _opened["own"] and not page.address().keys() & {"program", "lane"}:
        _opened |= {"program": 0, "lane": 0}  # the first id of a typed batch
    _case, _wrong = batch(**_opened)
    settings.problems += _wrong
    for _name, _count in counts(_case, _opened["kernel"]).items():
        if _opened[_name] >= _count > 0:
            _has = f"this build has 0 to {_count - 1:,}. Shown: {_count - 1:,}."
            settings.problems.append(f"{_name} is {_opened[_name]} in the address; {_has}")
            _opened[_name] = _count - 1
    # What the steppers stand at: a plain dict, so that a step does not rebuild the control that made it.
    focus = {_name: _opened[_name] for _name in ("kernel", "program", "trip", "lane", "statement")}
    get_jump, set_jump = mo.state(0)  # counts the jumps that a click on a picture and a fault make

    def _pick(mark):
        jump(**({"lane": mark["at"]} if "at" in mark else mark))

    guess = mo.ui.radio(GUESSES, inline=True, label="Trips of one program")
    label_ui = page.radio("Labels", LABELS, settings.values["label"])
    places = {name: page.clickable(_pick) for name in (*KERNELS, "lanes")}
    run_button = mo.ui.run_button(label="Run them")
    asked = set()  # builds of many programs that the reader wants to see interpreted
    return asked, focus, get_jump, get_notes, get_seq, get_start, guess, jump, label_ui, places, run_button, settings


@app.cell
def _(focus, get_start, jump, settings):
    def _moved(values):
        """A fault that was chosen is gone to: its row, the first lane that meets it, and the statement that does."""
        fault, before = values["fault"], settings.values["fault"]
        settings.moved(values)
        taken, _ = settings.take(values)
        case, _ = batch(**settings.values | taken)
        if fault in ("none", before) or case.num_decode_tokens == 0:
            return
        row, (rows, columns) = faulty_row(case), program_shape(case, focus["kernel"])
        column = {"hole": min(1, case.block_table.shape[1] - 1), "short": case.block_table.shape[1]}.get(fault, 0)
        trip, column = divmod(column * case.block_size, columns)
        trip = grid(case, "row_loop")[1] - 1 if (fault, rows) == ("padded", 1) else trip  # which stores the lens
        jump(program=row // rows, trip=trip, lane=row % rows * columns + column, statement=FAULTS[fault][1])

    _start = get_start()
    _counts = {"show_value": True, "start": 0, "stop": MAX_ROWS}
    _faults = {name: said for name, (said, _) in FAULTS.items()}
    controls = mo.ui.dictionary(
        {
            "model_len": page.number(FIELDS["model_len"], _start["model_len"]),
            "ratio": page.radio("Compress ratio", RATIOS, _start["ratio"]),
            "policy": page.radio("Policy", theme.POLICY_NAME, _start["policy"]),
            "layout": page.radio("Layout", LAYOUTS, _start["layout"]),
            "decode": mo.ui.slider(value=_start["decode"], label="Decode rows", **_counts),
            "prefill": mo.ui.slider(value=_start["prefill"], label="Prefill rows", **_counts),
            "fault": page.menu("Wrong with the batch", _faults, _start["fault"]),
            "own": page.own_box(_start["own"]),
        },
        on_change=_moved,
    )
    return (controls,)


@app.cell
def _(controls, get_seq, settings):
    _given, wrong = settings.take(controls.value)
    shared = {"preset": settings.values["preset"], "seq": get_seq()} | _given
    case, _wrong = batch(**shared)
    wrong += _wrong
    shared["seq"] = case.max_seq_len if shared["own"] and not _wrong else shared["seq"]
    settings.values |= shared
    runs = case.fits and case.num_tokens > 0  # a builder refuses what does not fit, and no row needs no program
    return case, runs, shared, wrong


@app.cell
def _(focus, get_jump):
    get_jump()
    kernel_ui = page.radio("Kernel", TITLE, focus["kernel"], on_change=lambda value: focus.update(kernel=value))
    return (kernel_ui,)


@app.cell
def _(case, focus, get_jump, kernel_ui):
    def _stepper(name, count):
        last = max(count - 1, 0)
        title = _titles.get(name, name.capitalize()) + (f", 0 to {last:,}&ensp;" if last else ", only 0&ensp;")
        look = {"show_value": True, "full_width": name == "lane", "disabled": last == 0, "label": title}
        at = min(focus[name], last)
        return mo.ui.slider(0, last, value=at, on_change=lambda value: focus.update({name: value}), **look)

    get_jump()
    _titles = {"program": "Row group", "trip": "Column tile"} if kernel_ui.value == "tiled" else {}
    program_ui, trip_ui, lane_ui = (_stepper(*_one) for _one in counts(case, kernel_ui.value).items())
    return lane_ui, program_ui, trip_ui


@app.cell
def _(case, focus, kernel_ui, program_ui, runs, trip_ui):
    # One line for each lane of each store of this trip; `lanes` are those that write a row, not its lens.
    kernel, program, trip = kernel_ui.value, program_ui.value, trip_ui.value
    stores = trace(case, kernel, program=program, trip=trip) if runs else pd.DataFrame({"kind": []})
    lanes = stores[stores["kind"] != "lens"].reset_index(drop=True)
    states = {state: int((lanes["state"] == state).sum()) for state in theme.LANES} if runs else {}

    # Only the last trip of a decode row, or its first tile, stores a lens.
    _all = source.STATEMENTS[kernel, lanes["kind"][0] if runs else "prefill"]
    statements = [one for one in _all if one.key != "lens" or len(stores) > len(lanes)]
    _keys = [one.key for one in statements]
    _at = _keys.index(focus["statement"] if focus["statement"] in _keys else "store")
    _stepped = {"on_change": lambda at: focus.update(statement=_keys[int(at or 0)])}
    statement_ui = mo.ui.slider(0, len(_keys) - 1, value=_at, label="Statement&ensp;", **_stepped)
    return kernel, lanes, program, statement_ui, statements, states, stores, trip


@app.cell(hide_code=True)
def _(case, kernel, lanes, program, runs, settings, shared, states, trip):
    _alarm, _lead = None, "**No program runs**: there is no row to write."
    if runs:
        _cells = lanes[lanes["state"] != "masked"]
        _first, _last = _cells["row"].min(), _cells["row"].max()
        _rows = f"row {_first}" if _first == _last else f"rows {_first} to {_last}"
        _where = f"columns {_cells['column'].min():,} to {_cells['column'].max():,} of {lanes['kind'][0]} {_rows}"
        _does = f"{many(states['live'], 'id')}, {many(states['pad'], 'pad')}, {many(states['masked'], 'lane')} idle"
        _lead = f"{TITLE[kernel].capitalize()}, program {program}, {'trip' if kernel == 'row_loop' else 'column tile'} "
        _lead += f"{trip}: **{len(lanes):,} lanes write {_where}**: {_does}."
    elif not case.fits:
        _lead = f"**No program runs**: this batch needs {case.needed:,} columns, and a row has {case.capacity:,}."
        _alarm = (
            f"{case.max_seq_len:,} tokens need {case.needed:,} columns, and a model length of {case.max_model_len:,} "
            f"tokens gives {case.capacity:,}. A builder refuses this batch: raise the model length, or shorten the "
            "sequence."
        )
    _header = page.header("03_kernel", "What does one program do?", _lead, shared)
    page.stack(_header, page.notes(settings.problems), page.alarm(_alarm))
    return


@app.cell(hide_code=True)
def _(get_notes, kernel_ui, program_ui, settings, trip_ui, wrong):
    page.stay(settings, [kernel_ui, program_ui, trip_ui], get_notes() + wrong)
    return


@app.cell(hide_code=True)
def _(controls):
    _text = page.prose("""
    ## What you need to know

    C128A folds every 128 tokens of a sequence into one *compressed entry*. A token at position *p* may read the
    *n* = (*p* + 1) // 128 entries that are complete by then. An *index row* lists them for the attention kernel: *n*
    ids, then *pads* of -1 up to the *width*, which is the same for all rows of a batch.

    A decode row holds *slot ids*, places in the paged KV cache, and looks them up in the *block table*. A prefill row
    holds plain numbers from 0 to *n* - 1.

    A kernel runs as many *programs*. Each has *lanes*, which do the same statement on different columns at once. A
    program that takes its row in several pieces makes several *trips*.

    ## A small batch

    Six tokens show everything. At first three are decode tokens, of requests whose lengths fall from the longest, and
    three are neighbours in one prompt, chosen so that *n* grows by one among them. You may break the batch, as padding
    and unfinished tables do in an engine, and see what is stored then. Or type a batch of your own.
    """)
    _rows = (
        [controls[name] for name in ("decode", "prefill", "fault")],
        [controls[name] for name in ("policy", "layout", "ratio")],
        mo.hstack([controls["model_len"], controls["own"]], widths=[1, 2], align="end"),
    )
    page.stack(_text, page.panel(*_rows))
    return


@app.cell(hide_code=True)
def _(case, guess, runs):
    _trips, _answer = grid(case, "row_loop")[1], "Choose one: the answer appears here. The left picture below shows it."
    if guess.value and runs:
        _answer = f"**{'Right' if guess.value[0] <= _trips <= guess.value[1] else 'No'}: {many(_trips, 'trip')}.** "
        _answer += f"The sequence needs {case.needed:,} columns, the policy makes rows of {case.width:,}, and "
        _answer += f"{case.width:,} / 1,024, rounded up, is {_trips:,}."
    _question = page.prose(f"""
    ## Guess first: how many trips?

    The *row loop* gives each row to one program, which walks over it 1,024 columns at a time. The longest sequence has
    {case.max_seq_len:,} tokens, and the buffer has {case.capacity:,} columns a row. How many trips does one program
    make?
    """)
    page.stack(_question, page.panel([guess]), page.sentence(_answer))
    return


@app.function
@lru_cache(maxsize=16)
def blocks(case, of):
    """The pieces of a kernel with their lanes, those to draw, and how many neighbours one of these stands for."""
    trips, columns, step = grid(case, of)[1], program_shape(case, of)[1], "trip" if of == "row_loop" else "tile"
    every = pieces(case, of)
    every = every.assign(group=every["kind"], lane=every["kind"] + " " + every["row"].astype(str), lanes=every["rows"])
    joined = min(-(-len(every) // 1024), trips)  # more pieces than that are too small to see
    marks = every[every["trip"] % joined == 0].assign(kernel=of)
    marks["stop"] = np.minimum(marks["start"] + joined * columns, case.width)
    marks["order"] = marks["program"] * trips + marks["trip"]
    marks["label"] = [f"{one.program}" + f", {one.trip}" * (trips > 1) for one in marks.itertuples()]
    marks["tip"] = [
        f"program {one.program}, {step} {one.trip}: {one.kind} rows {one.row} to {one.row + one.rows - 1}, columns "
        f"{one.start:,} to {one.stop - 1:,}" + (f", up to {joined} {step}s" if joined > 1 else "")
        for one in marks.itertuples()
    ]
    return every, marks, joined


@app.cell(hide_code=True)
def _(case, kernel, places, program, runs, trip):
    def _map(of):
        (programs, trips), (rows, columns) = grid(case, of), program_shape(case, of)
        every, marks, joined = blocks(case, of)
        kinds = {"decode": range(case.decode_rows.rows), "prefill": range(case.prefill_rows.rows)}
        names = {kind: [f"{kind} {row}" for row in rows] for kind, rows in kinds.items() if rows}
        ends = pd.DataFrame([(kind, name) for kind in names for name in names[kind]], columns=["group", "lane"])
        ends["at"] = case.entries
        # The piece on view, and in the other kernel the pieces that hold its cells.
        own = blocks(case, kernel)[0].set_index(["program", "trip"]).loc[(program, trip)]
        chosen = every[(every["kind"] == own["kind"]) & (every["start"] < own["stop"]) & (own["start"] < every["stop"])]
        chosen = chosen[(chosen["row"] < own["row"] + own["rows"]) & (own["row"] < chosen["row"] + chosen["rows"])]
        picture = forms.bands(
            marks,
            description=f"Which program of the {TITLE[of]} writes which cell",
            title=f"{TITLE[of].capitalize()}, {case.width:,} columns",
            lanes=names,
            cuts=ends[ends["at"] < case.width],
            chosen=chosen.assign(dashed=of != kernel),
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

    _before = page.prose("""
    ## Which program writes which cell

    Both kernels write the same cells. The row loop starts one program a row, which makes its trips one after the other.
    *Tiles* cut rows and columns alike: each piece is a program of its own, and all of them may run at once. Darker
    pieces start first. The white bar in a row is *n*: all that lies right of it is padding, and is written too.
    """)
    _after = page.prose("""
    Click a piece to look at it below. The dashed frame shows who writes the same cells in the other kernel.

    **Try:** type 131,072 as the longest sequence, then 131,200. One more entry makes the rows twice as wide, and the
    row loop needs a second trip, in which one lane of the whole batch carries an id.
    """)
    page.stack(_before, page.columns(*map(_map, KERNELS)), _after, words("row", "trip", "pad")) if runs else None
    return


@app.cell(hide_code=True)
def _(case, kernel, lane_ui, lanes, places, runs, states, stores):
    def _picture():
        drawn = lanes.head(64 * LINE)
        ends = zip(drawn["row"][::LINE], drawn["column"][::LINE], drawn["column"][LINE - 1 :: LINE], strict=True)
        names = [f"row {row} · {first:,}–{last:,}" for row, first, last in ends]
        marks = pd.DataFrame({"lane": np.take(names, drawn.index // LINE), "start": drawn.index % LINE})
        marks = marks.assign(at=drawn.index, stop=marks["start"] + 0.86, kind=drawn["state"], value=drawn["value"])
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
            marks.fillna({"value": 0}),
            description="The lanes of this trip: live, pad or masked",
            styles=theme.LANES,
            chosen=marks.loc[marks["at"] == lane_ui.value, ["lane", "start", "stop"]],
            click=("at", "value"),
            tip=tip,
            x_axis=forms.Axis(domain=(0, LINE), ticks=range(0, LINE + 1, 16)),
            lane_height=20,
            side=150,
            canvas=True,
        )

    def _said():
        lens = stores[(stores["kind"] == "lens") & (stores["state"] != "masked")]
        counted = ", ".join(f"{one.value:,} for row {one.row}" for one in lens.itertuples())
        said = f"**{', '.join(f'{count:,} {state}' for state, count in states.items())}**: "
        said += f"{100 * states['live'] / len(lanes):.0f} % of the lanes carry an id. "
        said += f"The *lens*, how many cells a reader looks at, is stored too: {counted}. " if counted else ""
        said += f"Drawn: {64 * LINE:,} of {len(lanes):,} lanes. " if len(lanes) > 64 * LINE else ""
        return said + "Point at a lane for its address, click it to follow it."

    _text = page.prose("""
    ## One trip, lane by lane

    At the top, choose a kernel, a program and a trip, by mouse or with Tab and the arrow keys. A lane is *live* where
    it stores an id, and a *pad* where it stores -1. A *masked* lane stores nothing: it lies past the width, or in a row
    that does not exist. This is where width costs time: a pad is a store like any other.
    """)
    _words = words("lane", "trip", "entry", "block table", "slot", "lens")
    page.stack(_text, page.shown(places["lanes"], _picture()), page.sentence(_said()), _words) if runs else None
    return


@app.cell(hide_code=True)
def _(case, kernel, label_ui, lane_ui, lanes, runs, statement_ui, statements):
    statement = statements[statement_ui.value].key
    _first = lane_ui.value // CLOSE * CLOSE

    def _chain(lane):
        parts = {"position": lane.position, "n": lane.n, "column": lane.column}
        decode = {"table entry": lane.entry, "block number": lane.block, "slot id": lane.value}
        parts |= decode if lane.kind == "decode" else {"local index": lane.value}
        parts["cell of the buffer"] = pd.NA if lane.state == "masked" else lane.offset
        texts = {name: "–" if pd.isna(value) else f"{value:,}" for name, value in parts.items()}
        cards = [part for name, text in texts.items() for part in (mo.md("→"), mo.stat(text, name, bordered=True))]
        return mo.hstack(cards[1:], justify="start", align="center", wrap=True, gap=0.6)

    def _cell(at, lane):
        rows = case.decode_rows if lane.kind == "decode" else case.prefill_rows
        masked = lane.state == "masked"
        labels = {
            "statement": source.worked_out(case, kernel, lane)[statement][1],
            "value": "" if masked else f"{lane.value:,}",
            "index": "" if masked else f"{lane.offset:,}",
            "cell": f"{lane.row}, {lane.column:,}",
            "byte": "" if masked else f"{lane.offset * ITEMSIZE:,}",
        }
        tip = lane.reason if masked else rows.address(lane.row, lane.column)
        return {"start": at, "label": labels[label_ui.value], "kind": lane.state, "tip": tip}

    def _lane():
        near = [*lanes.iloc[_first : _first + CLOSE].itertuples()]
        lane = near[lane_ui.value - _first]
        found = source.worked_out(case, kernel, lane)
        cells = pd.DataFrame([_cell(*one) for one in enumerate(near)])
        cells["lane"] = f"lanes {_first:,}–{_first + len(near) - 1:,}"
        steps = pd.DataFrame({one.title: found[one.key][0] for one in statements}.items())
        steps.columns = ["statement", "for this lane"]
        left = mo.md(f"### Lane {lane.lane:,}: {lane.kind} row {lane.row}, column {lane.column:,}")
        step = mo.hstack([statement_ui, mo.md(f"**{statements[statement_ui.value].title}**")], justify="start", gap=1)
        left = mo.vstack([left, step, page.table(steps, marked=statement_ui.value, tall="none")])
        right = mo.md(f"### {TITLE[kernel].capitalize()}, in c128a/kernel.py")
        right = mo.vstack([right, source.listing(kernel, lane.kind, statement)])
        picture = close_up(cells, lane_ui.value - _first, "The lanes around the chosen one, with their labels")
        stores = {"masked": "nothing", "pad": f"-1, a pad ({lane.reason})"}.get(lane.state, f"id {lane.value:,}")
        said = page.sentence(f"**Lane {lane.lane:,} stores {stores}**: {found['store'][0]}.")
        return mo.vstack([_chain(lane), said, picture, page.columns(left, right, widths=[1, 1.3])])

    _text = page.prose("""
    ## One lane, from its position to its slot id

    Follow one lane through the program. The chain below holds its numbers, from the token's position to the cell that
    it writes. Step the statement: the table and the source mark where the program stands, and the small picture shows
    what that statement gives in the lanes beside it.
    """)
    page.stack(_text, page.panel(lane_ui, [label_ui]), _lane()) if runs else None
    return (statement,)


@app.cell(hide_code=True)
def _():
    ask("03")
    return


@app.cell(hide_code=True)
def _(asked, case, kernel, lane_ui, lanes, run_button, runs):
    def _run():
        """The rows of the kernel and of the reference, where this process can make them, and what to say of that."""
        try:
            from c128a import backend, metadata  # noqa: F401
        except ImportError as missing:
            what = f"{missing.name or 'triton'} cannot be imported here: below is the trace, which a test holds to the"
            return {}, mo.md(f"{what} kernel.")
        programs = int(np.prod(grid(case, kernel)))
        asked.update([(case, kernel)] if run_button.value else [])
        if backend.INTERPRET and programs > 2048:
            return {}, mo.md(f"{programs:,} programs are too many for the interpreter.")
        if backend.INTERPRET and programs > 64 and (case, kernel) not in asked:
            return {}, mo.md(f"{programs:,} interpreted programs are not run unasked."), run_button
        (_, got, where), want = built(kernel, case), reference_rows(case)
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
        kind, row = part["kind"].iloc[0], part["row"].iloc[0]
        part = part.assign(start=range(len(part)), trace=part["value"])
        part = part.assign(**{name: rows[kind][row, part["column"]] for name, rows in output.items()})
        lines = part.melt(["start", "column", "state", "value"], [*output, "trace"], "lane", "label")
        lines["kind"] = lines["state"].where(lines["label"] == lines["value"], "differs")
        lines["tip"] = lines["lane"] + f": {kind} row {row}, column " + lines["column"].map("{:,}".format)
        lines["label"] = lines["label"].map("{:,}".format)
        return close_up(lines, lane_ui.value - first, "What the kernel wrote, beside the reference and the trace")

    _text = page.prose("""
    ## What the kernel really wrote

    All of the above comes from a walk over the kernel's statements in plain Python. Here the kernel itself has run on
    the same batch, into a buffer full of -99, and every cell is compared with a reference that shares no code with it.
    Without a GPU it runs in Triton's interpreter, whose values are true.

    **Try:** set what is wrong with the batch to “a block number of -1”: the page goes to the lane that meets it. The
    table is read and says -1, so a pad is stored. With “a request outside the table” the mask keeps the load away.
    """)
    _output, *_note = _run() if runs else ({},)
    page.stack(_text, mo.hstack(_note, justify="start"), _beside(_output)) if runs else None
    return


@app.cell
def _():
    _prose = page.prose("""
    ## On which GPUs would it run?

    A compiler needs no GPU. Each variant that serving launches was compiled for Hopper (sm_90), two kinds of Blackwell
    (sm_100, sm_120), MI300 (gfx942) and MI350 (gfx950). A program that needs more registers than a thread has spills
    them to memory, and a thread that stores 4 cells at once needs a quarter of the stores. That a kernel compiles says
    nothing about its time there: times were measured on an H200 alone.
    """)
    _found = pd.DataFrame(records.findings("compiled"))
    if _found.empty:
        _table, _say = mo.md("The record cannot be read."), "Nothing to show."
    else:
        _found["store"] = [f"{widths[0]} B" for widths in _found["store_bytes"]]
        _found["is"] = _found["registers"].astype(str) + " registers, " + _found["store"]
        _wide = _found.pivot(index="variant", columns="arch", values="is")[_found["arch"].unique()]
        _table = page.table(_wide.reindex(_found["variant"].unique()).reset_index())
        _most, _spilled = _found["registers"].max(), int((_found["spilled_bytes"] > 0).sum())
        _say = (
            f"{len(_found)} compilations, {_spilled or 'none'} with spills, at most {_most} registers a thread; the "
            f"widest store of one thread stands beside them. Made by `python -m c128a.ptx --arch all`."
        )
    page.stack(_prose, _table, page.sentence(_say))
    return


@app.cell(hide_code=True)
def _(case, kernel, label_ui, lane_ui, program, runs, shared, statement, stores, trip):
    def _command():
        long = case.given_table is not None and case.block_table.size > 64  # told by what was done to it
        plain = replace(case, given_table=None) if long else case
        values = {one.name: getattr(plain, one.name) for one in fields(Case) if getattr(plain, one.name) != one.default}
        made = f"case = Case({', '.join(f'{name}={value!r}' for name, value in values.items())}); "
        if long:
            holes = [f"table[{row}, {column}] = -1; " for row, column in np.argwhere(case.block_table < 0)]
            made += f"table = case.block_table[:, :{len(case.given_table[0])}].copy(); {''.join(holes)}"
            made += "case = replace(case, given_table=table.tolist()); "
        imports = "from dataclasses import replace; from c128a.case import Case; from c128a.trace import trace; "
        return f'python -c "{imports}{made}print(trace(case, {kernel!r}, program={program}, trip={trip}).to_string())"'

    def _trip():
        return stores.assign(byte=(stores["offset"] * ITEMSIZE).where(stores["offset"] >= 0, -1))

    def _programs():
        return pd.concat([pieces(case, each).assign(kernel=each) for each in KERNELS])

    _values = shared | {"kernel": kernel, "program": program, "trip": trip, "lane": lane_ui.value}
    _values |= {"statement": statement, "label": label_ui.value}
    page.remember(_values)
    page.stack(
        mo.md("## Take it along\n\nThe lanes of this trip with all their numbers, and the pieces of both kernels."),
        page.downloads(_trip, "c128a-trace", _values, "this trip"),
        page.downloads(_programs, "c128a-programs", _values, "all programs"),
        page.command(_command(), "The lanes of this trip, in a shell:"),
    ) if runs else None
    return


if __name__ == "__main__":
    app.run()
