# /// script
# requires-python = ">=3.11"
# dependencies = ["altair>=5.5", "marimo>=0.25", "numpy>=1.26", "pandas>=2.2"]
#
# [tool.marimo.runtime]
# pythonpath = ["."]
#
# [tool.marimo.display]
# theme = "system"
#
# [tool.marimo.opengraph]
# title = "2 · Where does a cell lie?"
# description = "Packed, pitched and fixed rows in one buffer, stale cells, and a reader with a frozen stride."
# ///

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="full", app_title="Where does a cell lie?", html_head_file="head.html")

with app.setup:
    from collections.abc import Sequence
    from dataclasses import replace
    from itertools import pairwise
    from types import SimpleNamespace

    import marimo as mo
    import numpy as np
    import pandas as pd

    from c128a.case import COMPRESS_RATIO, KV_BLOCK_SIZE, Case
    from c128a.layout import ITEMSIZE
    from c128a.show import forms, page, theme
    from c128a.show.built import built
    from c128a.show.own import case_of, parts_of
    from c128a.show.words import words
    from c128a.teach.ask import ask
    from c128a.trace import CELL_KINDS, cells, memory, reads, row_verdicts
    from c128a.width import Shard, capacity_width, shard_width

    LAYOUTS = ("fixed", "packed", "pitched")
    LABELS = ("value", "flat index", "(row, column)", "byte")
    GRIDS = {"none": 0, "cache lines": 128 // ITEMSIZE, "pages": 4096 // ITEMSIZE}  # elements
    ZOOMS = {"whole": "the whole buffer", "packed": "where packed rows lie"}
    MARKS, WINDOW = 32, 16  # marks in a buffer row; cells in the close view
    SHARED = page.shared_fields()
    FIELDS = {
        "preset": SHARED["preset"],
        "seq": page.Integer(16_384, 0, page.MAX_TOKENS, "Longest sequence now"),
        "model_len": page.Integer(65_536, 1, page.MAX_TOKENS, "Model length, tokens"),
        "then": page.Integer(page.MAX_TOKENS, 0, page.MAX_TOKENS, "Longest sequence at capture"),
        "policy": SHARED["policy"],
        "own": SHARED["own"],
        "rows": page.Choice(4, (2, 3, 4, 6, 8)),
        "kind": page.Choice("decode", ("decode", "prefill")),
        "requests": page.Choice("others", ("others", "same")),
        "reader": page.Choice("capture", ("capture", "now", "none")),
        "label": page.Choice("value", LABELS),
        "grid": page.Choice("none", tuple(GRIDS)),
        "zoom": page.Choice("whole", tuple(ZOOMS)),
        "layout": page.Choice("packed", LAYOUTS),
        "at": page.Integer(512, 0, 8 * 8192 - 1, "Flat index"),
        "ranks": page.Choice(4, (2, 4, 8)),
        "turn": page.Choice(1, (1, 2, 64)),
    }
    KIND_NAME = dict(zip(CELL_KINDS, theme.CELLS, strict=True))
    MANY = {"id": "ids", "pad": "pads", "old id": "old ids", "old pad": "old pads", "blank": "cells never written"}
    VERDICT_NAME = {"right": "right", "luck": "right by chance", "wrong": "wrong"}
    SIGN = {verdict: theme.VERDICTS[name].sign for verdict, name in VERDICT_NAME.items()}


@app.cell(hide_code=True)
def _():
    settings, get_start, get_seq, get_notes = page.open_page(FIELDS)
    # The chosen cell: its layout and flat index. The pictures and the fields share it.
    get_cell, set_cell = mo.state((settings.values["layout"], settings.values["at"]))
    get_clicked, set_clicked = mo.state(get_cell())

    def _pick(mark):
        for change in (set_cell, set_clicked):
            change((mark["layout"], int(mark["first"])))

    places = {name: page.clickable(_pick) for name in ("line", "rows", "cells")}
    label = page.radio("Labels", LABELS, settings.values["label"])
    return get_cell, get_clicked, get_notes, get_seq, get_start, label, places, set_cell, settings


@app.cell(hide_code=True)
def _(get_clicked, set_cell, settings):
    def _typed(flat):
        if settings.typed("at", flat):
            set_cell(lambda cell: (cell[0], settings.values["at"]))

    _layout, _at = get_clicked()
    pick_layout = page.radio("Cell of", LAYOUTS, _layout, on_change=lambda of: set_cell(lambda cell: (of, cell[1])))
    pick_at = page.number(FIELDS["at"], _at, label="at flat index", on_change=_typed)
    pick_layout, pick_at = page.Still(pick_layout), page.Still(pick_at)
    return pick_at, pick_layout


@app.cell(hide_code=True)
def _(get_start, settings):
    _start = get_start()

    def _radio(name, label, names=None):
        return page.radio(label, names or FIELDS[name].options, _start[name])

    _requests = {"others": "others than at capture", "same": "the same"}
    _readers = {"capture": "stride of the capture", "now": "stride of this build", "none": "no reader"}
    controls = mo.ui.dictionary(
        {
            "model_len": page.number(FIELDS["model_len"], _start["model_len"]),
            "then": page.number(FIELDS["then"], min(_start["then"], _start["model_len"])),
            "rows": page.menu("Rows", FIELDS["rows"].options, _start["rows"]),
            "policy": _radio("policy", "Width policy", theme.POLICY_NAME),
            "kind": _radio("kind", "Buffer"),
            "requests": _radio("requests", "Requests", _requests),
            "reader": _radio("reader", "Reader", _readers),
            "grid": _radio("grid", "Grid"),
            "zoom": _radio("zoom", "Zoom", ZOOMS),
            "own": page.own_box(_start["own"]),
        },
        on_change=settings.moved,
    )
    return (controls,)


@app.function
def scene_of(layout: str, setting: SimpleNamespace) -> SimpleNamespace:
    """One buffer after the earlier build and this one, and what the reader takes for its rows."""
    rows, decode = setting.rows, setting.kind == "decode"
    fields = {"max_model_len": setting.longest, "given_capacity": setting.capacity}
    fields |= {"policy": "fixed" if layout == "fixed" else setting.policy}
    fields |= {"layout": "packed" if layout == "packed" else "pitched"}
    blocks = 0 if setting.requests == "same" else rows * -(-setting.longest // KV_BLOCK_SIZE)
    # In percent of the longest sequence: the earlier batch's first row is its longest, the last row of this one.
    shares = ((setting.then, (100, 55, 80, 70) * 2, 0), (setting.seq, ((40, 90, 65, 100) * 2)[-rows:], blocks))
    builds = []
    for longest, percent, first in shares:
        lengths = tuple(max(min(longest, setting.longest) * share // 100, 1) for share in percent[:rows])
        builds.append(Case((1,) * rows, lengths, rows * decode, first_block=first, **fields))
    if setting.own:
        typed = case_of(setting.own, first_block=blocks, **fields)
        builds[1] = replace(typed, given_width=None) if layout == "fixed" else typed
    before, now = (case.decode_rows if decode else case.prefill_rows for case in builds)
    stride = setting.stride or (now if setting.reader == "now" else before).row_stride
    taken = reads(*builds, setting.kind, stride)
    return SimpleNamespace(
        builds=builds,
        before=before,  # where the rows of the earlier build lay
        now=now,
        stride=stride,  # the reader's
        cells=cells(*builds, setting.kind),
        runs=memory(*builds, setting.kind),
        values=cells(*builds, setting.kind)["value"].to_numpy(),
        lens=[np.split(case.entries, [case.num_decode_tokens])[not decode] for case in builds],
        taken=taken,
        verdicts=row_verdicts(taken, rows),
    )


@app.function
def setting_of(**values) -> tuple[SimpleNamespace, list[str]]:
    """The values with what follows from them, for `scene_of`, and notes on a typed batch that contradicts itself."""
    made = SimpleNamespace(**values, stride=0, capacity=capacity_width(values["model_len"]))
    try:
        if made.own:
            case = case_of(made.own, max_model_len=made.model_len)
            made.stride = parts_of(made.own).get("stride", [[0]])[0][0]
            made.capacity, made.seq = case.capacity, case.max_seq_len
            made.rows = (case.decode_rows if made.kind == "decode" else case.prefill_rows).rows
        if not made.rows or made.stride > made.capacity:
            raise ValueError(f"it must have {made.kind} rows, and at most the capacity, {made.capacity}, as stride")
    except ValueError as error:
        return setting_of(**values | {"own": ""})[0], [f"Your own batch is {made.own}; {error}. Shown: none."]
    made.longest = (made.capacity + 1) * COMPRESS_RATIO - 1  # tokens; no builder builds more, so no more is drawn
    made.then, made.cells = min(made.then, made.model_len), made.rows * made.capacity
    made.who = "that takes the stride of this build" if made.reader == "now" else f"captured at {made.then:,} tokens"
    made.who = f"with a stride of {made.stride:,}" if made.stride else made.who
    return made, []


@app.cell
def _(controls, get_seq, settings):
    _given, wrong = settings.take(controls.value)
    setting, _wrong = setting_of(seq=get_seq(), **_given)
    wrong += _wrong
    scenes = {layout: scene_of(layout, setting) for layout in LAYOUTS}
    runs, taken = (
        pd.concat(vars(scene)[part].assign(layout=layout) for layout, scene in scenes.items())
        for part in ("runs", "taken")
    )
    # How far the pictures reach, in cells of the line: to its end, or to that of the packed rows.
    reach = setting.rows * scenes["packed"].now.width if setting.zoom == "packed" else setting.cells
    return reach, runs, scenes, setting, taken, wrong


@app.cell(hide_code=True)
def _(get_cell, label, scenes, setting, settings):
    layout, _at = get_cell()
    at = _at if _at < setting.cells else 0  # a small buffer is looked at from its beginning
    values = {"preset": settings.values["preset"]}
    values |= {name: value for name, value in vars(setting).items() if name in FIELDS}
    values |= {"rows": settings.values["rows"], "label": label.value, "layout": layout, "at": at}
    settings.values |= values
    _packed, _pitched, _last = scenes["packed"].now, scenes["pitched"].now, setting.rows - 1
    _lead = (
        f"At **{min(setting.seq, setting.longest):,} tokens** {setting.kind} rows are {_packed.width:,} of "
        f"{setting.capacity:,} columns wide: row {_last} starts at {_last * _packed.row_stride:,} when packed and at "
        f"{_last * _pitched.row_stride:,} when pitched."
    )
    if setting.reader != "none":
        _wrong, _luck = (scenes["packed"].verdicts.count(verdict) for verdict in ("wrong", "luck"))
        _fares = f"**{_wrong} of {setting.rows} packed rows wrong**" + (f", {_luck} right by chance" if _luck else "")
        _right = scenes["pitched"].verdicts.count("right")
        _fares += f", and {'all' if _right == setting.rows else _right} pitched ones right"
        _lead += f" A reader {setting.who} gets {_fares}."
    _alarm = (
        f"**The capacity of {setting.capacity:,} columns is too narrow for {setting.seq:,} tokens**, which need "
        f"{setting.seq // COMPRESS_RATIO:,}. A builder refuses such a batch; drawn is the longest that fits, "
        f"{setting.longest:,} tokens."
    )
    _shared = {**values, "layout": "packed" if layout == "packed" else "pitched"}
    page.stack(
        page.header("02_layout", "Where does a cell lie?", _lead, _shared),
        page.notes(settings.problems),
        page.alarm(_alarm if setting.seq > setting.longest else None),
    )
    return at, layout, values


@app.cell(hide_code=True)
def _(controls, get_notes, settings, wrong):
    page.stay(settings, [controls["reader"], controls["then"]], get_notes() + wrong)
    return


@app.cell(hide_code=True)
def _(scenes, setting):
    _packed, _pitched = scenes["packed"].now, scenes["pitched"].now
    _row, _column = setting.rows - 1, min(7, _packed.width - 1)
    _answer = f"Packed: `{_packed.address(_row, _column)}`.  \nPitched: `{_pitched.address(_row, _column)}`."
    _prose = page.prose("""
    ## What you need to know

    C128A compresses every 128 tokens of a sequence into one **entry**. For each query a kernel, the *builder*, writes
    an **index row**: the ids of the entries that the query may see, then −1, the **pad**, up to the **width**. One cell
    of a row is a **column**, an int32 of 4 bytes. All rows of a batch lie in one **buffer**, allocated once for the
    longest sequence that the model allows; its columns are the **capacity**. The width is chosen anew for each batch,
    the buffer stays.

    Memory has no rows. It is one line of cells, and each cell has a **flat index** on it. The **row stride** says how
    far one row begins after the one before:

    > flat index = row × row stride + column,  byte = 4 × flat index
    """)
    page.stack(_prose, mo.accordion({f"Guess first: where does column {_column} of row {_row} lie?": mo.md(_answer)}))
    return


@app.cell(hide_code=True)
def _(controls):
    _prose = page.prose("""
    ## One line of memory

    There are three ways to place rows in a buffer. **Fixed** rows are always as wide as the capacity. **Packed** rows
    follow each other without a gap, so the row stride is the width (vLLM 0.27.1). **Pitched** rows are written just as
    narrow, but each begins where a full row would: the row stride is the capacity (vLLM 0.29).

    The pictures show one buffer after two builds: an earlier batch, whose longest sequence you set under *at capture*,
    and the batch of now, built over it. Nobody clears a buffer. Where this build wrote nothing, the cells of the
    earlier one stay. They are **stale**, and grey here.
    """)
    _rows = [controls[name] for name in ("kind", "rows", "policy", "zoom")]
    _own = mo.hstack([controls["model_len"], controls["own"]], widths=[1, 2], align="end")
    page.stack(_prose, page.panel(_rows, _own))
    return


@app.function
def told(pieces: pd.DataFrame, scenes: dict[str, SimpleNamespace]) -> pd.DataFrame:
    """Pieces of a buffer, start and stop flat, with what tips, clicks, downloads and the address line tell of them."""
    parts = []
    for piece in pieces.to_dict("records"):
        layout, kind, first, last = piece["layout"], piece["kind"], piece["start"], piece["stop"] - 1
        scene = scenes[layout]
        address = f"flat index {first:,} → byte {first * ITEMSIZE:,}"
        if kind != "blank":
            rows = scene.before if kind.startswith("old") else scene.now
            address = rows.address(piece["row"], piece["column"])
        span = f"{first:,}" if first == last else f"{first:,} – {last:,}"
        name = {"id": f"row {piece['row']}", "old id": f"old row {piece['row']}"}.get(kind, "")
        piece |= {"buffer_row": first // scene.builds[1].capacity, "first": first, "last": last, "address": address}
        piece |= {"first_byte": first * ITEMSIZE, "first_value": scene.values[first], "code": kind}
        piece |= {"kind": KIND_NAME[kind], "label": name, "short": name.split(" ")[-1]}
        parts.append(piece | {"tip": f"{layout}: {KIND_NAME[kind]} · flat {span} · {address}"})
    return pd.DataFrame(parts)


@app.cell
def _(at, layout, places, reach, runs, scenes, setting):
    _marks = told(cut(runs, [reach]), scenes)
    _starts = pd.DataFrame(
        {
            "lane": name,
            "at": row * scene.stride,
            "kind": VERDICT_NAME[verdict],
            "tip": f"the reader looks for row {row} at {row} × {scene.stride:,} = {row * scene.stride:,}",
        }
        for name, scene in scenes.items()
        for row, verdict in enumerate(scene.verdicts)
    )
    _line = forms.bands(
        _marks[_marks["start"] < reach].assign(lane=_marks["layout"]),
        description="The buffer as one line of memory, for fixed, packed and pitched rows",
        styles=theme.CELLS,
        signs=None if setting.reader == "none" else _starts[_starts["at"] < reach],
        sign_styles=theme.VERDICTS,
        chosen=pd.DataFrame({"lane": [layout], "start": [at], "stop": [at]}).query("start < @reach"),
        x_axis=forms.Axis("flat index", domain=(0, reach)),
        click=("layout", "first"),
        lane_height=40,
    )
    _packed, _pitched = (
        ", ".join(f"{row * scenes[name].now.row_stride:,}" for row in range(setting.rows)) for name in LAYOUTS[1:]
    )
    _width = scenes["packed"].now.width
    _say = (
        f"Of {setting.cells:,} cells this build writes **{setting.rows * _width:,}** packed or pitched, and all of "
        f"them fixed. Packed rows start at {_packed}; pitched and fixed rows at {_pitched}."
    )
    if _width == setting.capacity:
        _say = f"At full width the three are the same: rows start at {_pitched}, and every cell is written."
    if setting.reader != "none":
        _say += " The signs above a line stand where a reader looks for each row; the next section says why there."
    if reach < setting.cells:
        _say += f" **Drawn are the first {reach:,} cells.**"
    page.stack(page.shown(places["line"], _line), page.sentence(_say), words("stride", "packed", "pitch", "stale"))
    return


@app.cell(hide_code=True)
def _(controls):
    _prose = page.prose("""
    **Try:** move the slider to the right. Each time the width doubles, all packed rows but row 0 move, and no pitched
    row does. At the model length the rows are full, and the three layouts are one.

    ## A reader with a stride of its own

    Who reads the rows? The attention kernel. It is told where the buffer begins, the row stride, and for each row its
    **lens**: how many entries to read. The lens are read from memory, anew for each batch. The row stride is an
    argument of the launch, and a CUDA graph keeps the arguments that it was **captured** with. So a replayed graph
    reads with the stride of its capture, whatever the batch of now has.

    The frames below show what the reader takes for its rows. Green: the row's own cells. Orange, dashed: other cells.
    Purple, dotted: other cells that happen to hold the same ids. That is the hardest fault to see in a test.
    """)
    page.stack(_prose, page.panel([controls["requests"], controls["grid"]]))
    return


@app.function
def cut(pieces: pd.DataFrame, edges: Sequence[int]) -> pd.DataFrame:
    """Pieces, start and stop flat, split at the ascending edges that they cross; their column goes along."""
    parts = []
    for piece in pieces.to_dict("records"):
        low, high = np.searchsorted(edges, piece["start"], "right"), np.searchsorted(edges, piece["stop"])
        for start, stop in pairwise([piece["start"], *edges[low:high], piece["stop"]]):
            parts.append({**piece, "start": start, "stop": stop, "column": piece["column"] + start - piece["start"]})
    return pd.DataFrame(parts, columns=pieces.columns)


@app.function
def texts(cells: pd.DataFrame, of: str) -> pd.Series:
    """What a label of this kind says on each cell; a prime marks a row of the earlier build."""
    written, old = cells["code"] != "blank", cells["code"].str.startswith("old")
    row = cells["row"].astype(str) + np.where(old, "′", "")
    every = {
        "value": cells["first_value"].map("{:,}".format).str.replace("-", "−").where(written, "?"),
        "flat index": cells["first"].map("{:,}".format),
        "(row, column)": ("(" + row + ", " + cells["column"].map("{:,}".format) + ")").where(written, "–"),
        "byte": cells["first_byte"].map("{:,}".format),
    }
    return every[of]


@app.cell
def _(reach, runs, scenes, setting, taken):
    # Row by row: the marks, the names of the rows, and the frames of the reader. A click does not change them.
    high = min(setting.capacity, reach)  # columns drawn
    columns = -(-high // MARKS)  # of a mark
    _ends = range(0, setting.cells, setting.capacity)
    lanes = {end: f"buffer row {row}" for row, end in enumerate(_ends)}

    def _drawn(pieces):
        """Pieces of single buffer rows, start and stop no longer flat but columns of the buffer, in their lanes."""
        end = pieces["start"] // setting.capacity * setting.capacity
        start, stop = pieces["start"] - end, (pieces["stop"] - end).clip(upper=high)
        return pieces.assign(start=start, stop=stop, lane=end.map(lanes), group=pieces["layout"])[start < high]

    _edges = [end + column for end in _ends for column in (*range(0, high, columns), high)]
    marks, names = (_drawn(told(cut(runs, at), scenes)) for at in (_edges, _ends))
    # The name of an old row stands at its end, where no frame of the reader is.
    _end = names["stop"] - (names["stop"] - names["start"]) // 5
    names["start"] = names["start"].where(names["code"] != "old id", _end)
    frames = _drawn(cut(taken, _ends))
    _signs = [SIGN[scenes[piece.layout].verdicts[piece.row]] for piece in frames.itertuples()]
    _rows = [f" reader row {row}" if columns > 1 else "" for row in frames["row"]]
    _more = frames.duplicated(["layout", "row"], keep="last")
    frames["tag"] = np.where(_more, "", [sign + row for sign, row in zip(_signs, _rows, strict=True)])
    frames["kind"] = frames["verdict"].map(VERDICT_NAME)
    heads = {of: f"{of} · width {one.now.width:,}, row stride {one.now.row_stride:,}" for of, one in scenes.items()}
    return columns, frames, heads, high, lanes, marks, names


@app.cell
def _(at, columns, frames, heads, high, label, lanes, layout, marks, names, places, setting):
    _spacing, _every = GRIDS[setting.grid], columns == 1  # each cell has a mark, and room for its text
    _dense = _spacing and high > 64 * _spacing
    _rules = [
        {"group": name, "lane": lane, "at": column}
        for name in LAYOUTS
        for end, lane in lanes.items()
        for column in (range(-end % _spacing, high, _spacing) if _spacing and not _dense else ())
    ]
    _chosen = (marks["layout"] == layout) & (marks["first"] <= at) & (at <= marks["last"])
    _picture = forms.bands(
        marks,
        description="The same buffer row by row, and what the reader takes for its rows",
        styles=theme.CELLS,
        lanes={name: lanes.values() for name in LAYOUTS},
        groups=heads,
        labels=marks.assign(label=texts(marks, label.value)) if _every else names,
        outlines=None if setting.reader == "none" else frames,
        outline_styles=theme.VERDICTS,
        rules=pd.DataFrame(_rules) if _rules else None,
        chosen=marks.loc[_chosen, ["group", "lane", "start", "stop"]],
        x_axis=forms.Axis("column of the buffer", domain=(0, high)),
        click=("layout", "first"),
    )
    _say = f"**1 mark = {columns:,} columns**, split where ids, pads and old cells meet. Click one to see its cells."
    _say = "**1 mark = 1 cell.** Click one, and its address is written out." if _every else _say
    _say += f" Drawn are {high:,} of {setting.capacity:,} columns." if high < setting.capacity else ""
    if _dense:
        _say += f" The {setting.grid} of {_spacing * ITEMSIZE:,} bytes lie too close here; the close view has them."
    elif _spacing:
        _say += f" A dashed rule stands at every {_spacing * ITEMSIZE:,} bytes."
    _words = words("row", "column", "pad", "lens", "stride")
    page.stack(page.shown(places["rows"], _picture), page.sentence(_say), _words)
    return


@app.cell
def _(at, label, layout, pick_at, pick_layout, places, scenes, setting, taken):
    _scene = scenes[layout]
    _cell = next(told(_scene.cells.iloc[[at]].assign(layout=layout, start=at, stop=at + 1), scenes).itertuples())
    _old = _cell.code.startswith("old")
    _case = _scene.builds[not _old]
    _at = divmod(_cell.column, _case.block_size)
    _holds = f"It holds **{_cell.value:,}**: entry {_cell.column:,} of prefill row {_cell.row}."
    if _cell.code.endswith("pad"):
        _lens = _scene.lens[not _old][_cell.row]
        _holds = f"It holds −1: row {_cell.row} has {_lens:,} entries, and this is column {_cell.column:,}."
        if _cell.column < _lens:
            _holds = f"It holds −1: the block table has no block for entry {_cell.column:,} of row {_cell.row}."
    elif setting.kind == "decode" and _cell.code != "blank":
        _holds = (
            f"It holds **{_cell.value:,}**: entry {_cell.column:,} of request {_cell.row}, slot "
            f"`block_table[{_cell.row}, {_at[0]:,}] × {_case.block_size} + {_at[1]} = "
            f"{_case.block_table[_cell.row, _at[0]]:,} × {_case.block_size} + {_at[1]}`."
        )
    _stale = "The **earlier** build wrote it and this one did not reach it: it is stale."
    _by = _stale if _old else "This build wrote it."
    if _cell.code == "blank":
        _holds, _by = "Neither build wrote here.", "The cell holds whatever the allocation left."
    _said = [f"**{layout}, flat index {at:,}:** `{_cell.address}`", _holds, _by]
    _reads = _scene.taken[(_scene.taken["start"] <= at) & (at < _scene.taken["stop"])]
    for _read in _reads.itertuples() if setting.reader != "none" else ():
        _column = _read.column + at - _read.start
        _said.append(
            f"{SIGN[_read.verdict]} The reader takes it for row {_read.row}, column {_column:,} "
            f"(`{_read.row} × {_scene.stride:,} + {_column:,} = {at:,}`): {VERDICT_NAME[_read.verdict]}."
        )
    _rows = _scene.before if _old else _scene.now
    _print = f"RowLayout({_rows.rows}, {_rows.width}, {_rows.row_stride}).address({_cell.row}, {_cell.column})"
    command = f'python -c "from c128a.layout import RowLayout; print({_print})"'
    if _cell.code == "blank":
        command = f"python -c \"print('no build wrote flat index {at}')\""

    _start, _spacing, _reader = at // WINDOW * WINDOW, GRIDS[setting.grid], setting.reader != "none"
    _flats = range(_start, min(_start + WINDOW, setting.cells))
    _cells = [
        one.cells.iloc[_start : _flats.stop].reset_index(names="start").assign(layout=of) for of, one in scenes.items()
    ]
    _cells = pd.concat(_cells).assign(stop=lambda cells: cells["start"] + 1)
    _cells = told(_cells, scenes).assign(lane=lambda cells: cells["layout"])
    _head = pd.DataFrame({"lane": "flat index", "start": _flats, "label": [f"{flat:,}" for flat in _flats]})
    _reads = cut(taken, range(_start, _flats.stop + 1))
    _reads = _reads[_reads["start"].isin(_flats) & _reader]
    _notes = [f"{SIGN[read.verdict]} {read.row}, {read.column:,}" for read in _reads.itertuples()]
    _rules = [{"lane": name, "at": flat} for name in LAYOUTS for flat in _flats if _spacing and flat % _spacing == 0]
    _picture = forms.bands(
        _cells,
        description="Sixteen cells of the buffer, for fixed, packed and pitched rows",
        styles=theme.CELLS,
        lanes=("flat index", *LAYOUTS),
        labels=pd.concat([_cells.assign(label=texts(_cells, label.value)), _head.assign(stop=_head["start"] + 1)]),
        notes=pd.DataFrame({"lane": _reads["layout"], "at": _reads["start"] + 0.5, "text": _notes}),
        rules=pd.DataFrame(_rules) if _rules else None,
        chosen=pd.DataFrame({"lane": [layout], "start": [at], "stop": [at + 1]}),
        x_axis=forms.Axis(domain=(_start, _flats.stop)),
        click=("layout", "first"),
        lane_height=44,
    )
    _under = "Under a cell stands the row and column that the reader takes it for; nothing where it does not look."
    page.stack(
        mo.callout(mo.md("  \n".join(_said))),
        page.panel([pick_layout, pick_at, label]),
        page.shown(places["cells"], _picture),
        page.sentence(_under) if _reader else None,
        page.prose("""
    The sixteen cells are neighbours on the line of memory, in each layout; click one, or a mark in a picture above, and
    its address is written out. A decode cell holds a **slot**, the place of the entry in the KV cache: entry *j* of a
    request lies in its block *j* ÷ 2, and the **block table** says which block of the cache that is. A prefill cell
    holds the number of the entry itself.

    **Try:** label the cells by *(row, column)* and walk along the line with the arrow keys in *at flat index*. A prime
    marks a row of the earlier build.
    """),
    )
    return (command,)


@app.cell
def _(scenes, setting):
    _said, _table = [], pd.DataFrame({"row": range(setting.rows), "lens": scenes["packed"].lens[1]})
    for _name, _scene in scenes.items():
        _counts = [(name, _scene.verdicts.count(verdict)) for verdict, name in VERDICT_NAME.items()]
        _said.append(f"{_name} {', '.join(f'**{count} {name}**' for name, count in _counts if count)}")
        _found = [[] for _ in range(setting.rows)]
        for _read in _scene.taken.itertuples():
            _of = f" of row {_read.found_row}" if _read.kind in ("id", "old id") else ""
            _what = "ids of its own" if _read.verdict == "right" else MANY[_read.kind] + _of
            _found[_read.row].append(f"{_read.stop - _read.start:,} {_what}")
        _table[f"{_name}, read with stride {_scene.stride:,}"] = [
            f"{SIGN[verdict]} {', '.join(parts) or 'nothing to read'}"
            for verdict, parts in zip(_scene.verdicts, _found, strict=True)
        ]
    _say = f"A reader {setting.who} gets of {setting.rows} rows: {'; '.join(_said)}. Row by row it finds:"
    _incident = page.link("02_layout", {"seq": 300_000, "model_len": 1_048_576, "requests": "same"})
    page.stack(
        mo.md("## What the reader gets"),
        page.sentence(_say if setting.reader != "none" else "No reader is chosen."),
        page.table(_table) if setting.reader != "none" else None,
        page.prose(f"""
    Row 0 is always right, because it begins at 0 with every stride. That is how the fault was reported: garbage in one
    request of a batch, never in the first ([vLLM #52448](https://github.com/vllm-project/vllm/issues/52448)). Packed
    rows are safe only for a reader that gets the stride with each batch, or with one graph for each width.

    **Try:** give the reader the *stride of this build*: every frame turns green. Then open
    [the incident]({_incident}), a graph captured at 1,048,576 tokens and replayed at 300,000. One row is wrong, and two
    are right by chance. Set *Requests* to *others than at capture*: no address changes, and all three are wrong.
    """),
    )
    return


@app.cell(hide_code=True)
def _():
    ask("02")
    return


@app.cell
def _(layout, scenes, setting):
    _prose = page.prose("""
    ## Does the kernel agree?

    The pictures are computed from the definitions. So both builds are also run by the kernel itself, one after the
    other in one buffer, and every cell is compared.
    """)
    try:
        _buffers, _, _ran = built("tiled", *scenes[layout].builds)
    except ModuleNotFoundError as _missing:
        _differ, _say = 0, f"All is drawn all the same, but the kernel cannot run here ({_missing.name} is missing)."
    else:
        _differ = int((_buffers[setting.kind].ravel() != scenes[layout].values).sum())
        _say = f"The kernel ran for {layout} rows, {setting.cells:,} cells ({_ran}). "
        _say += f"{_differ:,} cells differ." if _differ else "Every cell is as drawn above."
    _alarm = f"In {_differ:,} cells of {layout} rows the kernel differs from the pictures." if _differ else None
    page.stack(_prose, page.sentence(_say), page.alarm(_alarm))
    return


@app.cell(hide_code=True)
def _(settings):
    ranks = page.menu("Ranks", FIELDS["ranks"].options, settings.values["ranks"])
    turn = page.menu("Entries a turn", FIELDS["turn"].options, settings.values["turn"])
    page.stack(
        page.prose("""
    ## Over several GPUs

    Under **decode context parallel** the KV cache of a request is dealt to several GPUs, called ranks, in turns of one
    or more entries. Each rank's decode row lists only the entries that it holds, one beside the other, so its row can
    be narrower than the whole one. Put together, the rows of all ranks list each entry exactly once.
    """),
        mo.hstack([ranks, turn], justify="start"),
    )
    return ranks, turn


@app.cell
def _(ranks, setting, turn):
    _shards = [Shard(_rank, ranks.value, turn.value) for _rank in range(ranks.value)]
    _shown = min(24 * turn.value, setting.seq // COMPRESS_RATIO)
    _marks = []
    for _shard, _start in ((one, start) for one in _shards for start in range(0, one.entries(_shown), turn.value)):
        _stop = min(_start + turn.value, _shard.entries(_shown))
        _rank, _first, _last = f"rank {_shard.rank}", _shard.entry(_start), _shard.entry(_stop - 1)
        _label = f"{_first}" if _first == _last else f"{_first} – {_last}"
        _tip = f"entries {_label} · columns {_start} – {_stop - 1} of {_rank}"
        for _lane, _from, _to in (("whole row", _first, _last + 1), (_rank, _start, _stop)):
            _marks.append((_lane, _from, _to, _tip, _rank, _label, f"{_first}"))
    _picture = forms.bands(
        pd.DataFrame(_marks, columns=["lane", "start", "stop", "tip", "kind", "label", "short"]),
        lanes=["whole row", *(f"rank {_shard.rank}" for _shard in _shards)],
        styles=theme.styled(f"rank {_shard.rank}" for _shard in _shards),
        x_axis=forms.Axis("column of the row", domain=(0, max(_shown, 1))),
        description=f"Which of {ranks.value} ranks lists which entry, in turns of {turn.value}",
    )
    _entries = min(setting.seq, setting.longest) // COMPRESS_RATIO
    _sizes = (min(setting.seq, setting.longest), COMPRESS_RATIO, setting.model_len)
    _whole, _narrow = (shard_width(*_sizes, _of, policy=setting.policy) for _of in (Shard(), _shards[0]))
    _counts = [_shard.entries(_entries) for _shard in _shards]
    _say = (
        f"Drawn are the first {_shown:,} of {_entries:,} entries. The ranks list {', '.join(map(str, _counts))} of "
        f"them, {sum(_counts):,} together; a rank's row is {_narrow:,} columns wide, the whole row {_whole:,}."
    )
    page.stack(_picture if _marks else mo.md("A sequence under 128 tokens has no entries."), page.sentence(_say))
    return


@app.cell(hide_code=True)
def _(command, marks, ranks, turn, values):
    page.remember(values | {"ranks": ranks.value, "turn": turn.value})
    _columns = ["layout", "buffer_row", "first", "last", "first_byte", "code", "row", "column", "first_value"]
    page.stack(
        mo.md("## Take it along"),
        page.downloads(marks[_columns].rename(columns={"code": "kind"}), "c128a-layout", values, "the marks"),
        page.command(command, "The address of the chosen cell from a shell:"),
    )
    return


if __name__ == "__main__":
    app.run()
