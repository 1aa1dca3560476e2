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
# title = "0 · From a token to a cell"
# description = "Start here: one token, followed in ten steps to the cell of memory through which a kernel finds it."
# ///

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="full", app_title="From a token to a cell", html_head_file="head.html")

with app.setup:
    from pathlib import Path

    import marimo as mo
    import numpy as np
    import pandas as pd

    from c128a.case import COMPRESS_RATIO, ENTRIES_PER_BLOCK, KV_BLOCK_SIZE, MAX_MODEL_LEN, Case
    from c128a.layout import LAYOUTS
    from c128a.show import forms, page, theme
    from c128a.show.words import words
    from c128a.trace import STEP, memory, reads, row_verdicts, trace
    from c128a.width import TOPK_ALIGNMENT, loop_trips

    # The example: three requests with one query each. The third is followed, and one token of it.
    LENGTHS, MODEL, ROW, TOKEN = (900, 800, 1024), 32_768, 2, 700
    TABLE = ((7, 2, 11, 0), (4, 9, 1, 6), (8, 3, 10, 5))
    GROWN = (20_000, 30_000, 33_000)  # the same requests later, in a model of full length
    ENTRY = TOKEN // COMPRESS_RATIO
    TITLES = ("Tokens", "Entries", "Blocks", "Slots", "Row", "Packed", "Pitched", "Kernel", "Reader", "Real sizes")
    WORDS = ("", "entry", "block", "block table, slot", "row, column, width, pad, lens", "stride, packed")
    WORDS += ("capacity, pitch, stale", "lane, trip", "row, lens, stride", "width, capacity, packed, pitch")
    FIELDS = {"step": page.Integer(1, 1, len(TITLES)), "present": page.Choice(0, (0, 1))}
    LESSON = Path(page.__file__).parents[2] / "docs" / "lesson.md"
    KINDS = {"id": "slot ids", "pad": "pads (−1)", "old id": "stale", "old pad": "stale", "blank": "not written"}
    KINDS |= {"live": "slot ids", "luck": "right by chance"}
    ID, PAD, OLD, _, BLANK = theme.CELLS.values()
    LOOKS = {"new here": ID, "seen before": theme.Style("#0072B24D", ink=theme.INK), "slot ids": ID, "pads (−1)": PAD}
    LOOKS |= {"of other requests": BLANK._replace(height=0.75), "stale": OLD, "not written": BLANK, "masked": BLANK}


@app.cell(hide_code=True)
def _():
    opened, problems = page.read(page.address(), FIELDS)
    present = bool(opened["present"])
    get_step, set_step = mo.state(opened["step"])
    get_turned, set_turned = mo.state(opened["step"])  # by a button: the list of steps follows that, but not itself

    def turn(by):
        _step = min(max(get_step() + by, 1), len(TITLES))
        for _set in (set_step, set_turned):
            _set(_step)

    back = mo.ui.button(label="◀ Back", keyboard_shortcut="ArrowLeft", on_change=lambda _: turn(-1))
    forward = mo.ui.button(label="Next ▶", kind="success", keyboard_shortcut="ArrowRight", on_change=lambda _: turn(1))
    return back, forward, get_step, get_turned, present, problems, set_step


@app.cell(hide_code=True)
def _(back, forward, get_turned, present, problems, set_step):
    _lead = f"One of {LENGTHS[ROW]:,} tokens is followed to the cell that leads a kernel to it. Press **→** and **←**."
    jump = page.Still(page.radio("Step", dict(enumerate(TITLES, 1)), get_turned(), on_change=set_step))
    _header = page.header("00_start", "From a token to a cell", _lead, {})
    _large, _panel = mo.hstack([back, forward]).style({"--c128a-present": "1"}), page.panel([back, forward, jump])
    _large if present else page.stack(_header, page.notes(problems), _panel)
    return (jump,)


@app.cell(hide_code=True)
def _():
    def _steps(layout, lengths, longest, **more):
        """A step of other requests, as long as the model allows, and the step of now."""
        before = Case.decode(len(lengths), longest, max_model_len=longest, layout=layout, seed=1)
        return before, Case((1,) * len(lengths), lengths, len(lengths), max_model_len=longest, layout=layout, **more)

    small = {layout: _steps(layout, LENGTHS, MODEL, given_table=TABLE) for layout in LAYOUTS}
    grown = {layout: _steps(layout, GROWN, MAX_MODEL_LEN) for layout in LAYOUTS}
    # The kernel's own walk along the row that is followed.
    _walk = trace(small["packed"][1], "row_loop", program=ROW).query("kind == 'decode'").set_index("column")
    ids = _walk.query("state == 'live'")["value"].tolist()
    block, slot = (int(_walk.loc[ENTRY, name]) for name in ("block", "value"))
    nth, place = divmod(ENTRY, ENTRIES_PER_BLOCK)

    _last, _cached = LENGTHS[ROW] - 1, range(sum(map(len, TABLE)))
    _parts, _sizes = (f"tokens 0 – {TOKEN - 1}", "", f"{TOKEN + 1} – {_last:,}"), (TOKEN, 1, _last - TOKEN)
    _spans = [f"{first:,} – {first + COMPRESS_RATIO - 1:,}" for first in range(0, LENGTHS[ROW], COMPRESS_RATIO)]
    _of = ["ours" if number in TABLE[ROW] else "of other requests" for number in _cached]
    _of_slots, _slots = np.repeat(_of, ENTRIES_PER_BLOCK), range(len(_of) * ENTRIES_PER_BLOCK)
    _row = [*ids, f"{small['packed'][1].width - len(ids)} pads, −1 each"]
    _of_row, _wide = ["ours"] * len(ids) + ["pads (−1)"], [1] * len(ids) + [4]
    # Lanes of the way: name, first and last step, pieces, whose they are, their sizes, the framed one, a note under it.
    lanes = [
        ("tokens", 1, 1, _parts, "ours", _sizes, 1, f"token {TOKEN}"),
        ("tokens", 2, 5, _spans, "ours", 1, ENTRY, f"token {TOKEN}"),
        ("entries", 2, 5, range(len(ids)), "ours", 1, ENTRY, f"{TOKEN} // {COMPRESS_RATIO} = entry {ENTRY}"),
        ("own blocks", 3, 5, range(len(TABLE[ROW])), "ours", 1, nth, f"{ENTRY} // {ENTRIES_PER_BLOCK} = block {nth}"),
        ("block table", 4, 5, TABLE[ROW], "ours", 1, nth, f"block {nth} → block {block} of the cache"),
        ("cache, blocks", 3, 3, _cached, _of, 1, block, f"block {block} of the cache"),
        ("cache, slots", 4, 5, _slots, _of_slots, 1, slot, f"{block} × {ENTRIES_PER_BLOCK} + {place} = slot {slot}"),
        ("index row", 5, 5, _row, _of_row, _wide, ENTRY, f"column {ENTRY} holds {slot}"),
    ]
    return block, grown, ids, lanes, nth, place, slot, small


@app.function
def picture(marks, chosen, notes, x_axis, description, signs=(), lane_height=56):
    """Bands of these kinds. chosen: lane, start, stop, dashed; notes: lane, at, text; signs: lane, at, kind."""
    marks = marks.replace({"kind": KINDS})
    signs = pd.DataFrame(signs, columns=["lane", "at", "kind"]).replace({"kind": KINDS})
    used = {*marks["kind"], *signs["kind"]}
    return forms.bands(
        marks,
        description=description,
        styles={kind: look for kind, look in LOOKS.items() if kind in used},
        chosen=pd.DataFrame(chosen, columns=["lane", "start", "stop", "dashed"]),
        notes=pd.DataFrame(notes, columns=["lane", "at", "text"]),
        signs=signs if len(signs) else None,
        sign_styles={kind: look for kind, look in theme.VERDICTS.items() if kind in used},
        x_axis=x_axis,
        lane_height=lane_height,
        side=100,
    )


@app.function
def way(lanes, step):
    """The way from a token to a column, as far as this step. Each lane is as wide as the picture, whatever it holds."""
    shown, before = ([lane for lane in lanes if lane[1] <= at <= lane[2]] for at in (step, step - 1))
    known = {name for name, *_ in before}
    marks, chosen, notes = [], [], []
    for name, _, _, labels, of, sizes, framed, note in shown:
        kind, lane = ("seen before", name) if name in known else ("new here", f"▸ {name}")
        piece = pd.DataFrame({"lane": lane, "kind": of, "size": sizes, "label": list(map(str, labels))})
        piece["stop"] = piece["size"].cumsum() / piece["size"].sum()
        piece["start"] = piece["stop"].shift(fill_value=0)
        marks.append(piece.replace({"kind": {"ours": kind}}).assign(tip=f"{name}: " + piece["label"]))
        start, stop = piece.loc[framed, ["start", "stop"]]
        chosen.append((lane, start, stop, False))
        notes.append((lane, (start + stop) / 2, note))
    said = f"The way of token {TOKEN}: {', '.join(name for name, *_ in shown)}"
    return picture(pd.concat(marks), chosen, notes, forms.Axis(domain=(0, 1)), said)


@app.function
def buffer(steps, *, reader=False):
    """The buffer to scale; steps: {layout: (the step before, this step)}. A layout alone has its rows above it."""
    marks, chosen, notes, signs = [], [], [], []
    for layout, (before, now) in steps.items():
        rows, lane, look = now.decode_rows, layout if reader else f"▸ {layout}", ROW * now.capacity
        start, at = rows.offset(ROW, 0), rows.offset(ROW, ENTRY)
        runs = memory(before, now, "decode")
        of, first = "row " + runs["row"].astype(str), runs["row"] * rows.row_stride
        if len(steps) == 1:
            alone = runs.assign(lane=of, start=runs["start"] - first, stop=runs["stop"] - first, label="")
            marks.append(alone[runs["kind"].isin(("id", "pad"))])
        label = (of + first.map(" from {:,}".format)).where(runs["kind"] == "pad", "")
        marks.append(runs.assign(lane=lane, label=label))
        if reader:  # it keeps the capacity as its stride
            verdicts = row_verdicts(reads(before, now, "decode", now.capacity), rows.rows)
            signs += [(lane, row * now.capacity, verdict) for row, verdict in enumerate(verdicts)]
            chosen += [(lane, start, start + rows.width, False), (lane, look, look + now.entries[ROW], True)]
            notes.append((lane, start, f"row {ROW}: {ROW} × {rows.row_stride:,} = {start:,}"))
            if look != start:
                notes.append((lane, look, f"the reader looks here: {ROW} × {now.capacity:,} = {look:,}"))
        else:
            chosen.append((lane, at, at, False))
            notes.append((lane, at, f"{ROW} × {rows.row_stride:,} + {ENTRY} = {at:,}"))
    marks, end = pd.concat(marks), rows.rows * now.capacity
    marks["tip"] = [f"{KINDS[mark.kind]}: {mark.start:,} to {mark.stop - 1:,}" for mark in marks.itertuples()]
    axis = forms.Axis("flat index", domain=(0, end), ticks=range(0, end + 1, now.capacity // 2))
    said = f"The buffer with {' and '.join(steps)} rows, to scale"
    return picture(marks, chosen, notes, axis, said, signs, lane_height=80 if reader else 56)


@app.function
def programs(case):
    """What each lane of the builder's programs does in its one trip."""
    walk = trace(case, "row_loop").query("kind != 'lens'")
    runs = walk.groupby(["program", "state"], sort=False)["lane"].agg(start="min", stop="max").reset_index()
    runs = runs.rename(columns={"state": "kind"}).assign(stop=runs["stop"] + 1)
    runs["lane"] = "program " + runs["program"].astype(str)
    runs["label"] = runs["tip"] = (runs["stop"] - runs["start"]).map("{:,} ".format) + runs["kind"].replace(KINDS)
    chosen, notes = [(f"program {ROW}", ENTRY, ENTRY, False)], [(f"program {ROW}", ENTRY, f"lane {ENTRY}")]
    axis = forms.Axis("lane of the trip, which is the column of the row", domain=(0, STEP))
    return picture(runs, chosen, notes, axis, "What each lane of the programs writes")


@app.cell(hide_code=True)
def _(block, grown, ids, nth, place, slot, small):
    _length, _own, _now, _n, _rows = LENGTHS[ROW], TABLE[ROW], small["packed"][1], len(ids), len(LENGTHS)
    _table = f"{', '.join(map(str, _own[:-1]))} and {_own[-1]}"
    _width, _capacity, _start, _far = _now.width, _now.capacity, ROW * _now.width, ROW * _now.capacity
    _wide, _full, _needed = grown["packed"][1].width, grown["packed"][1].capacity, grown["packed"][1].needed
    _wrong = row_verdicts(reads(*small["packed"], "decode", _capacity), _rows).count("wrong")
    # For each step a paragraph above the picture, and one below it that says what to see.
    told = f"""
    A language model has read a sequence of **{_length:,} tokens**, numbered from 0. To produce the next one, the last
    token sends out a query, and attention compares it with the keys of all tokens so far. Keys and values were computed
    once and stay in memory, in the **KV cache**. Long contexts are costly: at a million tokens every query, in every
    layer, has a million keys to read. This page follows token {TOKEN} to its place in the cache, and shows how a
    *kernel*, a function that runs on the GPU, finds the way there.

    The frame is around token {TOKEN}. It moves on with the lesson.
    ---
    DeepSeek-V4 shortens the list. In its layers called C128A, every {COMPRESS_RATIO} consecutive tokens are compressed
    into one key and value, a compressed **entry**. The {_length:,} tokens become {_n} entries, numbered from 0. Token
    {TOKEN} goes into entry {TOKEN} // {COMPRESS_RATIO} = **{ENTRY}**, where // divides and drops the remainder. A query
    sees every entry that is complete at its position; our last token sees all {_n}. (It also sees the latest tokens
    uncompressed. What follows does not need that.)

    Instead of {_length:,} keys a query has {_n} to read.
    ---
    Many *requests*, prompts of many users, share the KV cache, and nobody knows how long each will grow. So the cache
    is cut into **blocks** of {KV_BLOCK_SIZE} tokens, which is {ENTRIES_PER_BLOCK} entries. When its last block is full,
    a request gets one more: any that is free, wherever it lies. So there are two ways to count. To our request its
    blocks are 0 to {len(_own) - 1}, in the order of its tokens. In the cache they are blocks {_table}. Entry {ENTRY} is
    in the request's block {ENTRY} // {ENTRIES_PER_BLOCK} = **{nth}**, at place {place}; places, too, count from 0.

    The request's block {nth} is block {block} of the cache. The low grey blocks hold other requests.
    ---
    The *engine*, the software that serves the requests, notes where each block went. Its **block table** lists the
    blocks of the cache that each request got, for ours {_table}. So block {nth} of the request is block {block} of the
    cache. The place of one entry in the cache is a **slot**. Each block has {ENTRIES_PER_BLOCK}, and all slots are
    numbered through: place {place} of block {block} is slot {block} × {ENTRIES_PER_BLOCK} + {place} = **{slot}**. This
    number, the *slot id*, is all that a kernel needs to load entry {ENTRY}.

    Read the frames from top to bottom: token {TOKEN}, entry {ENTRY}, block {nth}, block {block}, slot {slot}.
    ---
    Attention should not have to look up tables. So in each *step*, one pass of the model over its requests, a kernel
    called the *builder* first writes the slot ids for each query: its **index row**. The cells of a row are
    **columns**; column {ENTRY} holds the id of entry {ENTRY}. All rows of a step have the same **width**: the entries
    of the longest sequence, rounded up to a power of two, at least {TOPK_ALIGNMENT}. So behind our {_n} ids stand
    {_width - _n} **pads**, cells that hold −1. The **lens**, a number beside the row, says that {_n} ids are real.

    The row has {_width} columns; the pads are drawn narrower than the ids.
    ---
    Our step has {_rows} requests with one query each, and so {_rows} rows, counted from 0. Ours is **row {ROW}**. All
    lie in one **buffer**, memory that is allocated once and written again in every step. Memory itself has no rows. It
    is one line of cells, numbered by a **flat index**. The cells from the start of one row to the start of the next are
    the **row stride**. **Packed** rows follow without a gap, so the stride is the width, {_width}. Row {ROW} starts at
    {ROW} × {_width} = **{_start}**, and its column {ENTRY} is cell {_start} + {ENTRY} = {_start + ENTRY}.

    Above, each row by itself; below, all of them in the buffer, where the line marks our cell.
    ---
    The buffer has room for the longest sequence that the model allows. Here that is {MODEL:,} tokens, so a row can have
    up to {_capacity} columns, the **capacity**. Rows may also start as far apart as if each were that wide. Such rows
    are **pitched**: their stride is the capacity, {_capacity}, however narrow they are. Row {ROW} starts at {ROW} ×
    {_capacity} = **{_far}**, in this step and in every other. Nobody clears the buffer. Cells that this step does not
    write are **stale**: they keep what an earlier step left, here one whose rows were {_capacity} columns wide.

    Both lines hold the same rows. Packed, row {ROW} moved to {_start} when rows became narrow; pitched, it stayed.
    ---
    How are the rows written? A kernel runs as many *programs* side by side, and the builder has one for each row. A
    program handles {STEP:,} columns at once, each in a **lane** of its own. Lanes 0 to {_n - 1} of ours look up the
    block table and write slot ids. The next ones, up to the width, write −1. The others are *masked*: they write
    nothing. A wider row takes several **trips** round a loop. {_full:,} columns, enough for a million tokens, take
    {loop_trips(_full)}; for our {_n} ids nearly all would be in vain. That is why the width follows the batch.

    At {_width} columns {loop_trips(_width)} trip is enough. The line marks lane {ENTRY}, which writes {slot}.
    ---
    Last comes the *reader*, the attention kernel. For row {ROW} it goes to {ROW} × row stride, takes as many ids as the
    lens says, and loads those slots. To start kernels quickly, engines record them once, as a **CUDA graph**, and
    replay it in every step. The replay reads memory anew, but repeats the arguments of the recording, and the row
    stride is one. This graph was recorded at full width, to serve any length, so its stride stays {_capacity}. Pitched
    rows are where it looks. Packed row {ROW} starts at {_start}; the reader looks at {_far} and takes stale ids.

    Signs: where it looks for each row; packed, {_wrong} of {_rows} are wrong. Frames: row {ROW}, and dashed what is
    taken for it. **Guess** before you go on: the model allows {MAX_MODEL_LEN:,} tokens, and the longest sequence has
    {GROWN[ROW]:,}. Where does packed row {ROW} start, and where does the reader look?
    ---
    At {MAX_MODEL_LEN:,} tokens the capacity is {MAX_MODEL_LEN:,} // {COMPRESS_RATIO} = {_full:,} columns. Our sequence
    has grown to **{GROWN[ROW]:,} tokens**: {_needed} entries, and the next power of two makes the width **{_wide}**.
    Packed, row {ROW} starts at {ROW} × {_wide} = **{ROW * _wide:,}**. The reader, recorded at full width, looks at
    {ROW} × {_full:,} = **{ROW * _full:,}**. There is no error message: it finds slots of another step, and the answer
    turns to garbage. Only row 0 is safe, since 0 times any stride is 0. So vLLM, the engine that had packed the rows,
    went back to full width, and later brought narrow rows again: pitched.

    The picture is to scale. Packed rows lie close together at the left; the reader looks far behind them.
    """.split("---")
    return (told,)


@app.cell(hide_code=True)
def _(get_step, grown, lanes, present, small, told):
    def _screen(step):
        above, below = told[step - 1].strip().split("\n\n")
        if step <= 5:
            drawn = way(lanes, step)
        elif step == 8:
            drawn = programs(small["packed"][1])
        else:
            alone = {"packed": small["packed"][1:] * 2}  # no step came before
            drawn = buffer({6: alone, 10: grown}.get(step, small), reader=step > 8)
        heading = mo.md(f"## {step} of {len(TITLES)} · {TITLES[step - 1]}")
        new = words(*WORDS[step - 1].split(", ")) if WORDS[step - 1] else None
        return page.stack(heading, page.sentence(above), drawn, page.sentence(below), new)

    # Where no button can be pressed, in a recording or in a plain run, all steps stand under each other.
    _whole = page.RECORDED or mo.app_meta().mode not in ("run", "edit")
    _step, _all = get_step(), range(1, len(TITLES) + 1)
    _shown = page.stack(*map(_screen, _all), gap=2) if _whole else _screen(_step)

    _width, _layout = (page.link(name, {"seq": GROWN[ROW]}) for name in ("01_width", "02_layout"))
    _kernel, _review, _serve = (page.link(name, {}) for name in ("03_kernel", "05_review", "06_deployment"))
    _go_on = f"""
    ## Go on

    - **Explore:** [how wide is a row?]({_width}) [Where does a cell lie?]({_layout}) Both at {GROWN[ROW]:,} tokens.
    - **Teach:** [this page, large]({page.link("00_start", {"present": 1})}), [rows in memory]({_layout}), [the kernel's
      programs]({_kernel}), and `docs/lesson.md`, which plans 45 minutes with them.
    - **Review:** [do the claims of the change hold?]({_review})
    - **Serve:** [is my deployment safe?]({_serve})
    """
    _title, _, _plan = LESSON.read_text(encoding="utf-8").partition("\n") if LESSON.is_file() else ("", "", "")
    _box = mo.accordion({_title.strip("# "): mo.md(_plan)}) if _title and not page.RECORDED else None
    page.remember({"step": _step, "present": int(present)})
    page.stack(_shown, mo.md(_go_on), _box, gap=1) if _whole or _step == len(TITLES) else _shown
    return


if __name__ == "__main__":
    app.run()
