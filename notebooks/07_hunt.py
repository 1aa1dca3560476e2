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
# title = "7 · Which mistake is it?"
# description = "What a wrong builder wrote, beside what it should have written: find the line that is wrong."
# ///

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="full", app_title="Which mistake is it?", html_head_file="head.html")

with app.setup:
    import marimo as mo
    import pandas as pd

    from c128a.show import forms, page, theme
    from c128a.show.words import words

    try:
        from c128a.teach import mistakes
    except ImportError:  # torch or triton is missing
        mistakes = None

    TITLES = {  # the mistakes, as a reader chooses them
        "position": "The position is taken where position + 1 belongs",
        "table": "The end of the block table is not checked",
        "hole": "A block number of -1 is used as a block",
        "pads": "Cells past the last entry are not written",
        "offset": "The offset of a row overflows",
        "lens": "lens is not 0 for a padded token",
        "floor": "The capacity is rounded down",
        "late": "The width is that of the step before",
        "split": "Only requests of one token are decoded",
        "request": "Padding tokens belong to request 0",
        "stride": "The rows are packed, and their reader keeps its row stride",
        "base": "A request's place in the workspace is added twice",
        "window": "One gathered token too many is counted",
    }
    INCIDENTS = {"stride": 1, "floor": 3, "late": 3, "lens": 7, "request": 7, "position": 9, "split": 10, "pads": 11}
    INCIDENTS |= {"offset": 12, "table": 14, "hole": 14}  # their numbers in docs/incidents.md
    EFFECTS = {
        "position": "The last of every 128 tokens does not see the entry that it completes.",
        "table": "What lies behind a row of the table counts as its blocks: those of others, or forbidden memory.",
        "hole": "A slot id below -1 is no pad to a reader: it is an address before the cache.",
        "pads": "A reader that looks past lens finds ids of an earlier step, and attends to another request.",
        "offset": "Rows 2^31 elements and more behind the first are written elsewhere; here 16 bits stand for 32.",
        "lens": "The reader attends for a token that does not exist, and the longest lens decides how long it takes.",
        "floor": "The newest entries are lost without an error, and only near the end of the longest context.",
        "late": "In the one step in which a sequence outgrows the width, its newest entries are lost.",
        "split": "Requests with speculative tokens get the local indices of a prefill where slot ids are expected.",
        "request": "Rows that must be empty hold the ids of the first request.",
        "stride": "Garbage from one request of a batch, never the first: out in vLLM 0.27.1, taken back in 0.28.0.",
        "base": "All requests of a chunk but the first read the compressed entries of others.",
        "window": "Each id of the window points at the token after the right one.",
    }
    CATCHES = {  # what a test must hold for the reference, or a law, to catch it
        "position": "a position one under a multiple of 128",
        "table": "a table with fewer columns than the positions need",
        "hole": "a block number of -1 in the table",
        "pads": "a buffer full of old ids, compared cell by cell after the build",
        "offset": "row 262,144 of 8,192 columns, on a GPU with room for it",
        "lens": "a decode row with a negative slot",
        "floor": "the width law: a row has at least max_seq_len // 128 columns, or the builder refuses",
        "late": "the width law: a row has at least max_seq_len // 128 columns",
        "split": "requests of 1 + k tokens, and the number of decode rows",
        "request": "a token that belongs to no request",
        "stride": "`FrozenReader.wrong_rows` after a narrower build",
        "base": "more than one request in a chunk",
        "window": "a sequence longer than the window",
    }
    VIEWS = {"written": "what was written", "right": "what is right", "differs": "where they differ"}
    FIELDS = {
        "hunt": page.Integer(1, 1, len(TITLES)),
        "seed": page.Integer(1, 0, 9999),
        "view": page.Choice("written", tuple(VIEWS)),
        "answers": page.Choice("shown", ("shown", "hidden")),
    }
    KINDS = {"id, or lens": theme.CELLS["id of this build"], "pad (−1)": theme.CELLS["pad (−1)"]}
    KINDS |= {"no such cell": theme.CELLS["never written"]}
    SAME = {"as it should be": theme.CELLS["never written"], "differs": theme.VERDICTS["wrong"]}


@app.cell(hide_code=True)
def _():
    settings, *_ = page.open_page(FIELDS)
    opened = settings.values
    hunt_ui = mo.ui.slider(1, len(TITLES), value=opened["hunt"], label="Hunt", show_value=True)
    seed_ui = page.number(FIELDS["seed"], opened["seed"], label="Seed, which deals the hunts")
    view_ui = page.radio("Cells", VIEWS, opened["view"])
    tried = {}  # by seed and hunt: whether the first guess was right
    return hunt_ui, seed_ui, settings, tried, view_ui


@app.cell(hide_code=True)
def _(hunt_ui, seed_ui, settings):
    def _top(lead, **values):
        _notes = page.notes([*settings.problems, *_wrong])
        return page.stack(page.header("07_hunt", "Which mistake is it?", lead, values), _notes)

    _, _wrong = settings.take({"seed": seed_ui.value})
    _without = "The hunt runs kernels, and torch or triton is missing here: open the workbook where both are installed."
    if mistakes is None:
        mo.stop(True, _top(_without))

    seed = settings.values["seed"]
    values = {"hunt": hunt_ui.value, "seed": seed, "answers": settings.values["answers"]}
    hunt = mistakes.deal(seed)[hunt_ui.value - 1]
    frame = mistakes.cells(hunt)
    wrong = frame[frame["written"] != frame["right"]]
    *_more, _row = wrong["row"].unique().astype(str)
    _rows = f"rows {', '.join(_more)} and {_row}" if _more else f"row {_row}"
    _rows = "all rows" if len(_more) + 1 == hunt.case.num_tokens else _rows
    _top(
        f"Hunt {hunt_ui.value} of {len(TITLES)}: one line of a builder is wrong, and with it **{len(wrong):,} of "
        f"{len(frame):,} cells**, in {_rows}. Which line is it?",
        **values,
    )
    return frame, hunt, seed, values, wrong


@app.cell(hide_code=True)
def _(hunt, hunt_ui, seed, tried):
    def _first(key):
        tried.setdefault((seed, hunt_ui.value), key == hunt.mistake)

    guess_ui = mo.ui.radio(
        {TITLES[key]: key for key in hunt.choices}, label="**Which mistake is it?**", on_change=_first
    )
    return (guess_ui,)


@app.cell(hide_code=True)
def _(hunt, hunt_ui, seed_ui, view_ui):
    def _told(case, before):
        if hunt.speculative:
            return f"""A step verifies **{hunt.speculative} speculative tokens** a request. The model length is
            **{case.max_model_len:,} tokens**. The longest sequence has **{case.max_seq_len:,}** tokens in this step and
            had {before.max_seq_len:,} in the step before."""
        if before is not None:
            return f"""A CUDA graph captured its reader at {case.max_model_len:,} tokens, over rows of other requests.
            Then the rows of this batch were built, {case.width} columns wide, and the graph was replayed. The cells are
            what it read."""
        if case.decode_requests:
            return f"""A kernel wrote decode rows into a buffer full of old ids, which lie between 700 and 788. The rows
            are {case.capacity:,} elements apart."""
        return """Prefill rows were joined with the window of the last 128 tokens. In the workspace each request has a
        place for its compressed entries and one for its gathered tokens; the cells are rows of the workspace."""

    page.stack(
        page.sentence("""
        A builder wrote index rows, and one of its lines is wrong. Compare the cells with what they should hold, choose
        the mistake, and see the line. In an engine nobody shows you the right cells, so try first with *what was
        written* and the batch below the picture.

        A token at position *p* sees *n* = (*p* + 1) // 128 compressed entries. Cell *j* of its decode row holds the
        slot id block × 2 + *j* mod 2, where block is the number at *j* // 2 among its request's blocks. Past *n*, and
        where there is no block, it holds -1. *lens* is *n*, and 0 where the slot is negative. A combined row holds *n*
        entries, then up to 128 tokens of the window.
        """),
        page.panel([hunt_ui, seed_ui, view_ui]),
        page.sentence(_told(hunt.case, hunt.before)),
    )
    return


@app.cell(hide_code=True)
def _(frame, guess_ui, hunt, view_ui, wrong):
    _view, _last = view_ui.value, frame["column"].max()
    _drawn = mistakes.window(frame)
    _cells = _drawn.assign(name=_drawn["row"].map("row {}".format))
    _cells["place"] = _cells["column"].map("{:,}".format).where(_cells["column"] < _last, "lens")
    _text = _cells[["written", "right"]].map(lambda value: "–" if value == mistakes.BLANK else f"{value:,}")
    _differ = _cells["written"] != _cells["right"]
    _side = "right" if _view == "right" else "written"
    _cells["kind"] = _cells[_side].map({-1: "pad (−1)", mistakes.BLANK: "no such cell"}).fillna("id, or lens")
    _cells["label"] = _text[_side]
    _cells["tip"] = _cells["name"] + ", " + _cells["place"] + ": " + _cells["label"]
    if _view == "differs":
        _cells["kind"] = _differ.map({False: "as it should be", True: "differs"})
        _cells["tip"] += _differ.map({False: "", True: ", not "}) + _text["right"].where(_differ, "")
    _columns = _cells["column"].unique()
    _said = f"Drawn: columns {_columns[0]:,} to {_columns[-2]:,} of {_last:,}, and lens. **{_differ.sum()} of "
    _said += f"{len(_cells)} cells here differ** from the right ones, {len(wrong):,} in all columns."
    _picture = forms.matrix(
        _cells,
        row="name",
        column="place",
        description=f"Cells of the index rows: {VIEWS[_view]}",
        styles=SAME if _view == "differs" else KINDS,
        column_title="column",
    )
    page.columns(
        page.stack(_picture, page.sentence(_said), words("row", "slot", "pad", "lens")), guess_ui, widths=[2.4, 1]
    )
    return


@app.cell(hide_code=True)
def _(guess_ui, hunt, tried, values, wrong):
    def _reply(guess):
        if guess is None:
            return None
        if values["answers"] == "hidden":
            return mo.md(f"Your guess: *{TITLES[guess]}*. Answers are hidden: `answers=hidden` is in the address.")
        if guess != hunt.mistake:
            return mo.callout(mo.md(f"**No: “{TITLES[guess]}” is not it.** {_instead(guess)}"), kind="warn")
        number, *lines = mistakes.lines(guess)
        known = f"Incident {INCIDENTS[guess]} of docs/incidents.md" if guess in INCIDENTS else "No incident so far"
        said = f"""**Yes: “{TITLES[guess]}”.** {EFFECTS[guess]} {known}.

        **What catches it:** {CATCHES[guess]}. Here {len(wrong):,} cells differ from the reference."""
        names = (f"Wrong, in line {number} of c128a/teach/mistakes.py", "Right")
        code = [mo.md(f"{name}:\n\n```python\n{line}\n```") for name, line in zip(names, lines, strict=True)]
        return mo.vstack([mo.callout(mo.md(said), kind="success"), page.columns(*code)])

    def _instead(guess):
        if mistakes.MISTAKES[guess] != mistakes.MISTAKES[hunt.mistake]:
            return "What wrote these cells has no such line."
        others = (mistakes.cells(hunt, guess)["written"] != mistakes.cells(hunt)["written"]).sum()
        return f"With it alone, {others:,} cells would hold other values than those that were written."

    _tally = mo.md(f"Right at the first guess: {sum(tried.values())} of {len(tried)}.") if tried else None
    page.stack(_reply(guess_ui.value), _tally if values["answers"] == "shown" else None)
    return


@app.cell(hide_code=True)
def _(hunt):
    def _batch(case):
        rows = {"row": range(case.num_tokens), "request": case.token_to_req_indices, "position": case.positions}
        if case.decode_requests:
            more = " …" if case.block_table.shape[1] > 8 else ""
            blocks = [" ".join(map(str, blocks[:8])) + more for blocks in case.block_table]
            rows["slot"] = case.slot_mapping
            rows["blocks of the request"] = [blocks[at] if at >= 0 else "none" for at in rows["request"]]
        else:
            entries, tokens = mistakes.bases(case)
            of = {"sequence": case.tensors().seq_lens, "gathered tokens": case.tensors().gather_lens}
            of |= {"entries at": entries, "tokens at": tokens}
            rows |= {name: numbers.cpu().numpy()[rows["request"]] for name, numbers in of.items()}
        return pd.DataFrame(rows)

    page.stack(mo.md("## The batch"), page.table(_batch(hunt.case)))
    return


@app.cell(hide_code=True)
def _(frame, hunt_ui, seed, values, view_ui):
    _values = values | {"view": view_ui.value}
    page.remember(_values)
    _cells = f"cells(deal({seed})[{hunt_ui.value - 1}])"
    page.stack(
        mo.md("## Take it along\n\nEvery cell, as it was written and as it is right."),
        page.downloads(frame, "c128a-hunt", _values, "the cells"),
        page.command(f'python -c "from c128a.teach.mistakes import cells, deal; print({_cells}.to_csv())"'),
    )
    return


if __name__ == "__main__":
    app.run()
