"""The claims of the report on PR #50004, each with its evidence and a verdict that follows from it. Torch-free.

A claim gathers facts: numbers, and under "rows" a table to draw. Its level and its sentence follow from these alone:
whoever doubts a verdict changes a fact and judges again.

>>> from c128a.account.step import times_of
>>> found = find(needs_256, Run(), times_of("elsewhere"))
>>> found.level, found.because
('holds', '32,768 tokens have 256 entries, and 256 of 8,192 columns are built.')
>>> needs_256.level({**found.facts, "needed": 257})
'does not hold'
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import product
from typing import Any, Literal, NamedTuple, get_args

import pandas as pd

from c128a import census, width
from c128a.account import walk
from c128a.account.step import (
    REPORTED_GAIN,
    TYPICAL_LEN,
    NoAccountError,
    Run,
    Span,
    Times,
    fixed_and_adaptive,
    gain,
    prefill_step,
    saved_us,
)
from c128a.account.walk import CAPACITIES, LENGTHS, REPLAYED, ROWS
from c128a.bench import records
from c128a.case import CAPACITY, COMPRESS_RATIO, MAX_MODEL_LEN
from c128a.layout import LAYOUTS, Layout, RowLayout
from c128a.width import active_topk_width, loop_trips, reachable_widths, required_width

Facts = dict[str, Any]
Level = Literal["holds", "holds in part", "does not hold", "cannot be judged here"]
LEVELS: tuple[Level, ...] = get_args(Level)

NEGATIVE = (-1, -128, -(2**31))  # tokens; lengths that no batch has
SHORT_AND_MEDIUM = (8_192, 32_768, 131_072)  # tokens; where the kernels were measured
DECODE_ROWS = 64
UNCHANGED = 0.02  # relative; the figures from elsewhere state no spread, and repeat within 2 %

# What was read in public for this review: the files of vLLM 0.26.0 and 0.27.1, and the threads on GitHub.
CONSTANT_IN_VLLM = "at module level of sparse_mla.py, before the change and after it (commit 01a3d5aca1)"
COPIES_WITHOUT = ("local-inference-lab/vllm, commit ad848fc41",)
CHANGED = {  # lines added and removed
    "vllm/models/deepseek_v4/sparse_mla.py": (19, 7),
    "tests/kernels/attention/test_flashmla_sparse.py": (37, 0),
}
IMPORTS = (12, 12)  # statements in the first of these, before and after
LATER = {
    "issue #52448": "wrong output under concurrent requests with CUDA graphs, none without",
    "PR #51318": "the revert: the captured reader keeps the row stride of its capture",
    "PR #52823": "the adaptive width again, with rows that stay where they are",
}


class Claim(NamedTuple):
    """One statement of the report on the pull request, at prhub.com.cn/vllm-project/vllm/pull/50004."""

    key: str
    title: str
    report: str  # where the report says it, and what, in translation
    checked: str
    gather: Callable[[Run, Times], Facts]
    level: Callable[[Facts], Level]
    sentence: str  # with the names of facts in braces


class Finding(NamedTuple):
    """A claim, the facts gathered for it, and the verdict that follows: its level, and a sentence with the numbers."""

    claim: Claim
    facts: Facts
    level: Level
    because: str


def find(claim: Claim, run: Run, times: Times) -> Finding:
    """Gather the facts of one claim and judge them; without the kernel, or a time that was measured, it cannot be."""
    try:
        facts = claim.gather(run, times)
    except ImportError as error:
        missing = f"This needs the kernel, and {error.name or error} cannot be imported here."
    except NoAccountError as error:
        missing = f"{error}."
    else:
        return Finding(claim, facts, claim.level(facts), claim.sentence.format(**facts))
    return Finding(claim, {}, "cannot be judged here", missing)


def tally(findings: Iterable[Finding]) -> dict[Level, int]:
    """How many claims got each verdict, in the order of LEVELS, verdicts that nobody got left out."""
    levels = [finding.level for finding in findings]
    return {level: levels.count(level) for level in LEVELS if level in levels}


def markdown(
    findings: Iterable[Finding], title: str = "Review of vLLM PR #50004", notes: Mapping[str, str] | None = None
) -> str:
    """The findings as Markdown to paste into a review: a table of claims, verdicts and reasons, then the notes.

    notes: what the reviewer wrote, by what it is about.
    """
    heads = ("the report says", "verdict", "why", "`pytest tests/account`")
    lines = [f"### {title}", "", f"| {' | '.join(heads)} |", "| --- | --- | --- | --- |"]
    for claim, _, level, because in findings:
        cells = (claim.title, f"**{level}**", because, f"`-k {claim.key}`")
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    for about, note in (notes or {}).items():
        lines += ["", f"**{about[0].upper()}{about[1:]}.** {note}"]
    return "\n".join(lines) + "\n"


def _claim(
    title: str, report: str, level: Callable[[Facts], Level], sentence: str
) -> Callable[[Callable[[Run, Times], Facts]], Claim]:
    """The claim whose facts the decorated function gathers: its name is the key, its docstring what is checked."""
    return lambda gather: Claim(gather.__name__, title, report, str(gather.__doc__), gather, level, sentence)


def _level(fails: bool, in_part: bool = False) -> Level:
    return "does not hold" if fails else "holds in part" if in_part else "holds"


def _live(name: str) -> Facts:
    """Evidence for which the kernel runs; raises ImportError without torch or triton."""
    from c128a.account import evidence

    return dict(getattr(evidence, name)())


# How wide a row is


@_claim(
    "32k tokens need 256 columns",
    "Motivation: 32k tokens really need a width of 256 only; the fixed 8,192 is unnecessary computation.",
    lambda f: _level(not f["needed"] == f["built"] == 256),
    "32,768 tokens have {needed} entries, and {built} of {capacity:,} columns are built.",
)
def needs_256(run: Run, times: Times) -> Facts:
    """The formula at 32,768 tokens, against the entries that such a sequence has."""
    needed = required_width(TYPICAL_LEN, COMPRESS_RATIO)
    built = walk.width_after(TYPICAL_LEN, CAPACITY)
    rows = {"name": ["fixed width", "adaptive width", "entries to attend"], "columns": [CAPACITY, built, needed]}
    return {"needed": needed, "built": built, "capacity": CAPACITY, "rows": rows}


@_claim(
    "The loop is 32 × shorter",
    "Motivation: at 32k tokens the kernel loops 32 × less.",
    lambda f: _level(f["columns"] != 32, f["trips"] != 32),
    "Columns become {columns:.0f} × fewer, trips of the loop {trips:.0f} × fewer; 8,192 prefill rows at 32k are built "
    "{us:.1f} × faster.",
)
def loop_32(run: Run, times: Times) -> Facts:
    """Columns, trips of the report's loop (BLOCK_SIZE = 1024), and measured time, each before over after."""
    narrow, ask = walk.width_after(TYPICAL_LEN, CAPACITY), ("prefill", 8192, TYPICAL_LEN)
    us = [times.at("builder", "row_loop_fixed", *ask, CAPACITY).us]
    us += [times.at("builder", "row_loop_adaptive", *ask, narrow).us]
    pairs = {"columns": (CAPACITY, narrow), "trips": (loop_trips(CAPACITY), loop_trips(narrow)), "us": us}
    rows = [{"what": what, "before": a, "after": b, "factor": a / b} for what, (a, b) in pairs.items()]
    return {what: a / b for what, (a, b) in pairs.items()} | {"rows": rows}


@_claim(
    "The loop count follows the width",
    "Motivation: the number of loop iterations is proportional to max_compressed_tokens.",
    lambda f: _level(f["off"] >= f["widths"] - 1, f["off"] > 0),
    "From {on_from:,} columns on it is. A row takes at least one trip, so {off} of {widths} widths lie off the line.",
)
def proportional(run: Run, times: Times) -> Facts:
    """Trips for each of the widths that can be chosen at a capacity of 8,192."""
    rows = [{"width": w, "trips": loop_trips(w), "line": w / 1024} for w in reachable_widths(CAPACITY)]
    on = [row["width"] for row in rows if row["trips"] == row["line"]]
    return {"widths": len(rows), "off": len(rows) - len(on), "on_from": min(on), "rows": rows}


@_claim(
    "No length gives an empty row",
    "Risk 3: with a max_seq_len of 0 or an abnormal one, the alignment keeps tensors from being empty.",
    lambda f: _level(f["narrowest"] < 1),
    "No width is under {narrowest} in {checked} cases, {negative} negative lengths among them. Another question: the "
    "cap is silent, and in {too_narrow} cases the row is too narrow for its sequence (refused by the builder here: "
    "{refused}).",
)
def empty_and_odd(run: Run, times: Times) -> Facts:
    """The report's formula at 15 lengths (0, 1, odd, one over) and negative ones, at five capacities; our builder."""
    rows = pd.DataFrame(product(LENGTHS + NEGATIVE, CAPACITIES), columns=["max_seq_len", "capacity"])
    rows["needed"] = rows["max_seq_len"] // COMPRESS_RATIO
    rows["width"] = [walk.width_after(*case) for case in rows[["max_seq_len", "capacity"]].itertuples(index=False)]
    rows["lost"] = (rows["needed"] - rows["width"]).clip(lower=0)
    refused = "not run"
    with suppress(ImportError):
        refused = "{refused} of {asked}".format(**_live("refusals"))
    too_narrow, narrowest = int((rows["lost"] > 0).sum()), int(rows["width"].min())
    counts = {"checked": len(rows), "narrowest": narrowest, "too_narrow": too_narrow, "negative": len(NEGATIVE)}
    return counts | {"refused": refused, "rows": rows}


@_claim(
    "The file does not define the alignment constant",
    "Risk 3: _C128A_TOPK_ALIGNMENT is not explicitly defined in the file; confirm it, or a NameError may follow.",
    lambda f: _level(f["in_vllm"] is not None),
    "vLLM defines it {in_vllm}; here it is {defined}. The advice to look was sound: {copies_without} copy took the "
    "formula without it and was patched.",
)
def constant(run: Run, times: Times) -> Facts:
    """Where the constant is defined here, in vLLM, and in public copies of the formula."""
    defined = width.TOPK_ALIGNMENT
    places = {"this repository": str(defined), "vLLM": CONSTANT_IN_VLLM}
    places |= dict.fromkeys(COPIES_WITHOUT, "missing, patched downstream")
    rows = [{"where the formula is": place, "the constant": found} for place, found in places.items()]
    return {"defined": defined, "in_vllm": CONSTANT_IN_VLLM, "copies_without": len(COPIES_WITHOUT), "rows": rows}


@_claim(
    "Widths are rounded up to a multiple of 128",
    "Step 1: the width is aligned up to _C128A_TOPK_ALIGNMENT. The report does not say why.",
    lambda f: _level(f["multiples"] < f["widths"] or f["reads_past"] > 0, f["built"] != f["rounded_up"]),
    "{multiples} of {widths} widths are multiples of 128, so a decode kernel that takes 128 indices at a time leaves "
    "its row at {reads_past} lengths (with powers of two alone at {reads_past_without}). But the formula rounds up to "
    "a power of two: {entries} entries get {built} columns, not {rounded_up}.",
)
def why_128(run: Run, times: Times) -> Facts:
    """Every reachable width at five capacities; every row length, read in blocks of 128 indices."""

    def read(n: int) -> int:  # a kernel with 128 query heads (V4-Pro); with 64 (V4-Flash) it takes 64, and reads less
        return -(-n // 128) * 128

    def alone(n: int) -> int:
        return active_topk_width(n, 1, CAPACITY, alignment=1)

    widths = {columns for capacity in CAPACITIES for columns in reachable_widths(capacity)}
    every = [(n, active_topk_width(n, 1, capacity)) for capacity in CAPACITIES for n in range(1, capacity + 1)]
    built = dict(every[:CAPACITY])  # at the first of the capacities
    return {
        "widths": len(widths),
        "multiples": sum(columns % 128 == 0 for columns in widths),
        "reads_past": sum(read(n) > columns for n, columns in every),
        "reads_past_without": sum(read(n) > alone(n) for n in built),
        **{"entries": 257, "built": built[257], "rounded_up": read(257)},  # 32,896 tokens
        "rows": [{"entries": n, "read": read(n), "aligned": built[n], "pow2": alone(n)} for n in range(1, 301)],
    }


# Where rows lie


@_claim(
    "Shapes and strides follow the width",
    "Step 2: the packed view's second dimension is the active width exactly, and the kernel's stride changes with it.",
    lambda f: _level(f["right"] < f["values"]),
    "{right} of {values} values of the pull request's own test come out as it says.",
)
def shapes(run: Run, times: Times) -> Facts:
    """The pull request's own test with its values (2 tokens, capacity 256, width 128), run on this machine."""
    return _live("pr_test")


@_claim(
    "Nothing is written out of bounds",
    "Risk 2: under the capacity only a partial view is taken, and the kernel writes nothing beyond it.",
    lambda f: _level(f["changed_outside"] > 0 or f["unwritten_inside"] > 0, f["refused"] < f["too_wide"]),
    "{changed_outside:,} of {outside:,} cells outside the views changed, {unwritten_inside:,} inside stayed unwritten. "
    "A guard that we added: of {too_wide} widths over the buffer {refused} were refused with nothing written.",
)
def bounds(run: Run, times: Times) -> Facts:
    """Both layouts, three widths, buffers filled with a mark; then two widths that are over the buffer."""
    return _live("bounds")


@_claim(
    "The new test covers the boundary",
    "Risk 2: the test covers the boundary, an active width under the capacity.",
    lambda f: _level(False, f["moved"] == 0),
    "{moved} of the {cells} cells that it looks at in a buffer lie elsewhere under another row stride: its only row is "
    "row 0, which starts at offset 0 under every stride.",
)
def test_covers(run: Run, times: Times) -> Facts:
    """How many cells of that test lie somewhere else under the other layout: what its assertions could notice."""
    built, capacity = 128, 256  # one decode row and one prefill row, each row 0 of its buffer
    layouts = {layout: RowLayout.named(layout, 2, built, capacity) for layout in LAYOUTS}
    starts = [(layout, row, at.offset(row, 0)) for layout, at in layouts.items() for row in range(2)]
    rows = pd.DataFrame(starts, columns=["layout", "row", "start"])
    rows["end"], rows["tested"] = rows["start"] + built, rows["row"] == 0
    moved = sum(len({at.offset(0, column) for at in layouts.values()}) > 1 for column in range(built))
    return {"cells": built, "moved": moved, "rows": rows}


@_claim(
    "It is compatible with CUDA graphs",
    "Risk 1, compatibility with CUDA graphs: buffers stay preallocated and views move no address, so the stability of "
    "addresses is not affected.",
    lambda f: _level(f["addresses"] != 1 or f["packed"] > 0 or not all(f["right"].get("packed", ()))),
    "Addresses are stable: views start at {addresses} address of their buffer. But a graph keeps the row stride too: "
    "a reader with that of its capture misses {packed} of {of} packed rows, as this change has them. Of pitched rows "
    "it misses {pitched}.",
)
def addresses(run: Run, times: Times) -> Facts:
    """Addresses at all widths; then the rows that a reader finds at the stride of its capture, in real buffers too."""
    rows = [
        {"layout": layout, "max_seq_len": length, "row": row, "found": found, "right": found == row}
        for layout, length in product(LAYOUTS, REPLAYED)
        for row, found in enumerate(frozen_rows(length, layout))
    ]
    wrong: Facts = {layout: sum(row["layout"] == layout and not row["right"] for row in rows) for layout in LAYOUTS}
    built: Facts = {"addresses": 1, "right": {}}  # a view starts where its buffer starts
    with suppress(ImportError):
        built = _live("frozen")
    sheet = [found for found in records.findings("elsewhere") if found["sheet"] == "frozen"]
    errors = [error for found in sheet if found["layout"] == "packed" for error in found["relative_error_high"]]
    outputs: Facts = {"outputs": len(errors), "outputs_wrong": sum(map(bool, errors))}
    outputs["attention_error"] = max(errors, default=0.0)
    return {**built, **wrong, **outputs, "of": len(rows) // 2, "rows": rows}


def frozen_rows(max_seq_len: int, layout: Layout) -> list[int | None]:
    """For each of four rows that a reader at the stride of its capture asks for: the row that starts there, if any.

    >>> frozen_rows(300_000, "packed"), frozen_rows(300_000, "pitched")
    ([0, 2, None, None], [0, 1, 2, 3])
    """
    at = RowLayout.named(layout, ROWS, walk.width_after(max_seq_len, CAPACITY), CAPACITY)
    cells = [at.locate(row * CAPACITY) for row in range(ROWS)]
    return [None if cell is None else cell[0] for cell in cells]


@_claim(
    "The meaning is unchanged",
    "Risk 4: the algorithm only computes less; its semantics do not change.",
    lambda f: _level(f["different"] > 0, f["frozen_wrong"] > 0),
    "{different:,} of {cells:,} cells in {builds} builds differ from those at full width. A reader with the stride of "
    "its capture gets {frozen_wrong} of {frozen_rows} packed rows wrong all the same.",
)
def semantics(run: Run, times: Times) -> Facts:
    """Four batches at every width that is wide enough, cell by cell against full width; then a frozen reader."""
    wrong = sum(found != row for row, found in enumerate(frozen_rows(REPLAYED[0], "packed")))
    return _live("semantics") | {"frozen_wrong": wrong, "frozen_rows": ROWS}


# What it saves


@_claim(
    "The fixed width makes decoding do unnecessary work",
    "Motivation: in C128A decoding the loop over the fixed 8,192 is unnecessary computation at usual context lengths.",
    lambda f: _level(f["decode_us"] <= 0),
    "The builder of {decode_rows} decode rows takes {decode_us:.1f} µs less. Most is saved elsewhere: a prefill step "
    "saves {prefill_us:,.0f} µs. Decode attention saves nothing, for it reads lens, not width: {before_us:.2f} µs a "
    "layer, and {after_us:.2f} with the adaptive width.",
)
def where(run: Run, times: Times) -> Facts:
    """Microseconds saved a step at 32k: by the builder in decode, by builder and combine in prefill; attention."""
    at = Run(run.model)
    attention = records.rows(kernel="flashmla_decode", variant="released", decode=DECODE_ROWS).set_index("policy")["us"]
    if attention.empty:
        raise NoAccountError("no record holds times of FlashMLA's decode")
    before, after = fixed_and_adaptive(times, "builder", "row_loop", "decode", DECODE_ROWS, at)
    decode, prefill = before.us - after.us, saved_us(prefill_step(at, times))
    rows = [("decode", "builder", decode), *(("prefill", *saved) for saved in prefill.items())]
    return {
        "decode_us": decode,
        "prefill_us": sum(prefill.values()),
        "decode_rows": DECODE_ROWS,
        "before_us": attention["fixed"],
        "after_us": attention["pow2"],
        "rows": pd.DataFrame(rows, columns=["step", "kernel", "saved_us"]),
    }


def _near(low: float, high: float) -> bool:
    """Whether a range lies near the gain that was reported."""
    return low >= REPORTED_GAIN * 0.75 and high <= REPORTED_GAIN * 1.25


@_claim(
    "1.0 % more throughput",
    "Summary: adaptive top-k width for C128A, 1.0 % more throughput end to end.",
    lambda f: _level(not 0 < f["low"] <= REPORTED_GAIN <= f["high"], not _near(f["low"], f["high"])),
    "The account gives {low:.2%} to {high:.2%}, {value:.2%} at the values chosen ({run}); {from_combine:.0%} of it is "
    "the combine's. The reported 1.0 % needs a prefill step of {step_ms:,.0f} ms.",
)
def throughput(run: Run, times: Times) -> Facts:
    """The step account: measured kernel times over a step whose length is assumed, with the range that leaves."""
    account = prefill_step(run, times)
    spans = {form: gain(run, sum(saved_us(account, form).values())) for form in ("adaptive", "positions")}
    saved = saved_us(account)
    total = sum(saved.values())
    return {
        **spans["adaptive"]._asdict(),
        "saved_us": total,
        "from_combine": saved["combine"] / total if total else 0.0,
        "step_ms": run.prefill_share.value * total * (1 + REPORTED_GAIN) / REPORTED_GAIN / 1000,
        "run": str(run),
        "rows": [{"form": form, **span._asdict()} for form, span in spans.items()],
    }


@_claim(
    "The first token comes about 1 % sooner",
    "Impact: in short and medium contexts the time to the first token falls by about 1 %.",
    lambda f: _level(f["reached"] == 0, f["near"] < f["contexts"]),
    "In {reached} of {contexts} contexts from {shortest:,} to {longest:,} tokens the reported 1 % lies in the range "
    "that the account leaves; in {near} the whole range is near it. At the values chosen the step gets {least:.2%} to "
    "{most:.2%} shorter.",
)
def first_token(run: Run, times: Times) -> Facts:
    """The same account for a step that only prefills, at the short and medium contexts that were measured."""
    spans = {}
    for length in SHORT_AND_MEDIUM:
        with suppress(NoAccountError):
            at = replace(run, max_seq_len=length)
            saved = sum(saved_us(prefill_step(at, times)).values())
            spans[length] = Span(*(saved / at.step_us(pflops) for pflops in at.pflops))
    if not spans:
        raise NoAccountError(f"no short or medium context was measured at {run.tokens:,} tokens a step ({times.title})")
    values = [span.value for span in spans.values()]
    return {
        "contexts": len(spans),
        "reached": sum(span.low <= REPORTED_GAIN <= span.high for span in spans.values()),
        "near": sum(_near(span.low, span.high) for span in spans.values()),
        **{"shortest": min(spans), "longest": max(spans), "least": min(values), "most": max(values)},
        "rows": [{"context": length, **span._asdict()} for length, span in spans.items()],
    }


@_claim(
    "Long contexts are unchanged",
    "Impact: for long contexts, near 8,192 compressed tokens, nothing changes.",
    lambda f: _level(f["change"] > UNCHANGED),
    "At 1,048,576 tokens builder and combine stay within {change:.1%}. From {full_from:,} tokens on, half of the "
    "range, every row has the full width.",
)
def long(run: Run, times: Times) -> Facts:
    """Builder and combine at 1,048,576 tokens, and the length from which the width is the capacity."""
    rows = [
        (kernel, form, times.at(kernel, f"{variant}_{form}", "prefill", 8192, MAX_MODEL_LEN, CAPACITY).us)
        for kernel, variant in (("builder", "row_loop"), ("combine", "from_rows"))
        for form in ("fixed", "adaptive")
    ]
    return {
        "change": max(abs(after[-1] / before[-1] - 1) for before, after in (rows[:2], rows[2:])),
        "full_from": width.sequence_range(CAPACITY, COMPRESS_RATIO, CAPACITY)[0],
        "rows": pd.DataFrame(rows, columns=["kernel", "form", "us"]),
    }


@_claim(
    "The risk of a slowdown is low",
    "Risk 4: the risk of a performance regression is low, as the algorithm only computes less.",
    lambda f: _level(f["slower"] > 0, f["variants"] > 1),
    "{slower} of {cells} measured cells of the builder are slower by more than 2 % and by more than their spread; the "
    "worst takes {worst:.3f} × as long. All widths together have {variants} compiled variant of its kernel, as the "
    "fixed one has.",
)
def regression(run: Run, times: Times) -> Facts:
    """Adaptive over fixed in every measured cell of the builder; compiled variants of the kernel."""
    cell = ["decode", "prefill", "max_seq_len"]
    built = times.rows[times.rows["sheet"] == "builder"].drop_duplicates(["variant", *cell])
    fixed, adaptive = (built[built["variant"] == f"row_loop_{form}"] for form in ("fixed", "adaptive"))
    rows = fixed.merge(adaptive, on=cell, suffixes=("", "_adaptive"))
    if rows.empty:
        raise NoAccountError(f"no record holds times of the builder at both widths ({times.title})")
    rows["ratio"] = rows["us_adaptive"] / rows["us"]
    within = rows["low_adaptive"] <= rows["high"]  # false where a record states no spread
    slower = int(((rows["ratio"] > 1 + UNCHANGED) & ~within).sum())
    counts = {"cells": len(rows), "slower": slower, "variants": census.predicted()[0].naive}
    return counts | {"worst": float(rows["ratio"].max()), "rows": rows}


# Around the change


@_claim(
    "One file changes, and no dependency is new",
    "Impact: no new dependency, and the change lies in one file; +56/-7 lines, easy to read and to maintain.",
    lambda f: _level(f["sources"] != 1 or f["imports"] > 0),
    "{sources} source file changes, by +{added} −{removed} lines; the other {tested} of {lines} are the test. It "
    "imports {imports} modules more than before.",
)
def one_file(run: Run, times: Times) -> Facts:
    """Lines changed in each file, and import statements before and after, read in vLLM 0.26.0 and 0.27.1."""
    rows = [{"file": file, "lines added": plus, "lines removed": minus} for file, (plus, minus) in CHANGED.items()]
    sources = {file: lines for file, lines in CHANGED.items() if not file.startswith("tests/")}
    added, removed = (sum(lines[at] for lines in sources.values()) for at in (0, 1))
    lines = sum(plus for plus, _ in CHANGED.values())
    counts = {"sources": len(sources), "added": added, "removed": removed, "tested": lines - added, "lines": lines}
    return counts | {"imports": IMPORTS[1] - IMPORTS[0], "rows": rows}


@_claim(
    "Nobody disputed it in review",
    "Comments: no review comment and no dispute; approved by one person, and a bot left a notice.",
    lambda f: _level(False, f["later"] > 0),
    "No objection in its thread is known. {later} later threads are about what it did, and ask what nobody asked then: "
    "who keeps a row stride?",
)
def undisputed(run: Run, times: Times) -> Facts:
    """The threads on GitHub that came after the pull request and name it, or its effect."""
    rows = [{"thread": thread, "about": about} for thread, about in LATER.items()]
    return {"later": len(rows), "rows": rows}


@_claim(
    "A related change saves compilations",
    "Context: PR #48739 is a speed-up of DeepSeek-V4 too, by fewer compilations of Triton kernels.",
    lambda f: _level(f["runtime"] >= f["constexpr"], not f["for_v4"]),
    "It does, for a kernel that merges attention states; its title and summary name no model. Here too the width is an "
    "argument at run time: {constexpr} widths make {runtime} variant, where a constexpr would make {constexpr}.",
)
def related(run: Run, times: Times) -> Facts:
    """What that thread says it changes; variants of this builder with its width as an argument and as a constexpr."""
    counts = {"constexpr": len(reachable_widths(CAPACITY)), "runtime": census.predicted()[0].naive, "for_v4": False}
    forms = {"argument at run time, as it is": counts["runtime"], "constexpr": counts["constexpr"]}
    return counts | {"rows": [{"the width is": form, "compiled variants": count} for form, count in forms.items()]}


SUBJECTS: dict[str, tuple[Claim, ...]] = {
    "How wide a row is": (needs_256, loop_32, proportional, empty_and_odd, constant, why_128),
    "Where rows lie": (shapes, bounds, test_covers, addresses, semantics),
    "What it saves": (where, throughput, first_token, long, regression),
    "Around the change": (one_file, undisputed, related),
}
CLAIMS = tuple(claim for claims in SUBJECTS.values() for claim in claims)
