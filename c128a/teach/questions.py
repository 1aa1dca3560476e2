"""Questions to guess before one sees, drawn from a seed; the package computes every answer. Torch-free.

>>> grown, _ = draw(7, "01_width")
>>> grown.answer in grown.choices, draw(7, "01_width")[0] == grown, draw(8, "01_width")[0] == grown
(True, True, False)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

from c128a.account.step import MODELS
from c128a.bench import records
from c128a.case import CAPACITY, COMPRESS_RATIO, MAX_MODEL_LEN, Case
from c128a.deployment import check
from c128a.deployment.releases import RELEASES
from c128a.layout import ITEMSIZE, LAYOUTS, RowLayout, human_bytes, prefill_chunks
from c128a.trace import STEP, trace
from c128a.width import active_topk_width, capacity_width, reachable_widths, required_width

RATIO = COMPRESS_RATIO
Value = int | str


@dataclass(frozen=True)
class Question:
    """A question with its choices; text and why are Markdown, settings are those of the page that shows the answer."""

    page: str
    text: str
    choices: tuple[str, ...]
    answer: str
    why: str
    settings: dict[str, Any]


# What a question is made of: text, answer, what people say instead, why, settings of the page.
Parts = tuple[str, Value, tuple[Value, ...], str, dict[str, Any]]


def _grown(rng: Random) -> Parts:
    columns = 1 << rng.randint(7, 11)
    before = columns * RATIO
    now = before + rng.randrange(RATIO, before // 2)
    width, needed = active_topk_width(now, RATIO, CAPACITY), required_width(now, RATIO)
    text = f"The longest sequence grows from {before:,} to {now:,} tokens, under the power of two. How wide is a row?"
    why = f"{now:,} // {RATIO} = {needed:,} entries, and {width:,} is the next power of two."
    return text, width, (columns, needed, CAPACITY), why, {"seq": now, "policy": "pow2"}


def _capacity(rng: Random) -> Parts:
    length = rng.randrange(20_000, MAX_MODEL_LEN)
    columns, entries = capacity_width(length), -(-length // RATIO)
    text = f"A model allows {length:,} tokens. How many columns has its buffer?"
    why = f"{length:,} tokens make {entries:,} entries, a begun one counted; the next multiple of 128 is {columns:,}."
    wrong = (1 << (entries - 1).bit_length(), columns - 128, columns + 128)
    return text, columns, wrong, why, {"model_len": length, "seq": min(length, 32_768)}


def _packed_row(rng: Random) -> Parts:
    seq, row = rng.randrange(16_512, 524_416), rng.randint(2, 3)
    width, needed = active_topk_width(seq, RATIO, CAPACITY), required_width(seq, RATIO)
    at = RowLayout.packed(4, width).offset(row, 0)
    text = f"The longest sequence has {seq:,} tokens, and rows are packed. At which element does row {row} start?"
    why = f"{needed:,} entries make rows {width:,} wide. Packed, that is the row stride: {row} × {width:,} = {at:,}."
    settings = {"seq": seq, "model_len": MAX_MODEL_LEN, "layout": "packed", "at": at}
    return text, at, (row * CAPACITY, row * needed, (row + 1) * width), why, settings


def _captured(rng: Random) -> Parts:
    now, then = sorted(rng.choices(reachable_widths(CAPACITY), k=2))
    layout = rng.choice(LAYOUTS)
    rows, kept = (RowLayout.named(layout, 4, width, CAPACITY) for width in (now, then))
    found = [row for row in range(4) if rows.locate(row * kept.row_stride) == (row, 0)]
    text = f"A graph captured its reader over 4 {layout} rows of {then:,} columns, in a buffer of {CAPACITY:,}. "
    text += f"The rows are {now:,} wide now. Which of them does it find?"
    why = f"It looks for row 1 at element {kept.row_stride:,}. Row 1 starts at {rows.row_stride:,}."
    names = {4: "all of them", 1: "only row 0"}
    settings = {"seq": now * RATIO, "then": then * RATIO, "model_len": MAX_MODEL_LEN, "layout": layout}
    return text, names[len(found)], (*names.values(), "all but row 0", "none"), why, settings


def _entries(rng: Random) -> Parts:
    position = RATIO * rng.randint(2, 400) + rng.choice((-1, 0, rng.randrange(RATIO)))
    n = required_width(position + 1, RATIO)
    text = f"How many compressed entries does the token at position {position:,} see?"
    why = f"({position:,} + 1) // {RATIO} = {n:,}: an entry counts once its last token is there."
    return text, n, (n - 1, n + 1, position - RATIO + 1), why, {"own": f"positions {position}", "program": 0}


def _slot(rng: Random) -> Parts:
    blocks, column = rng.sample(range(10, 100), 4), rng.randrange(8)
    case = Case.of_tokens([8 * RATIO - 1], [0], [blocks], [0], 1, width=8)
    slot = int(trace(case, "row_loop", step=8)["value"][column])
    entry, part = divmod(column, case.block_size)
    text = f"A request has the blocks {', '.join(map(str, blocks))}, 2 entries each. Which id is in column {column}?"
    why = f"{column} // 2 = {entry}, and number {entry} of the blocks, from 0, is {blocks[entry]}: "
    why += f"{blocks[entry]} × 2 + {part} = {slot}."
    wrong = (blocks[entry], slot + 1 - 2 * part, 2 * blocks[column % 4] + part)
    own = f"positions {8 * RATIO - 1}; table {' '.join(map(str, blocks))}"
    return text, slot, wrong, why, {"own": own, "lane": column, "program": 0}


def _written(rng: Random) -> Parts:
    rows, seq = rng.choice((2048, 8192)), rng.randrange(8_000, 260_000)
    width = active_topk_width(seq, RATIO, CAPACITY)
    answer, *wrong = (human_bytes(rows * of) for of in (width * ITEMSIZE, CAPACITY * ITEMSIZE, width, width * 8))
    text = f"How much does a step of {rows:,} prefill rows write, where the longest sequence has {seq:,} tokens?"
    why = f"{rows:,} rows × {width:,} columns × {ITEMSIZE} bytes = {answer}."
    return text, answer, tuple(wrong), why, {"seq": seq, "batch": f"p{rows}"}


@cache
def _timed() -> list[Any]:
    """Recorded row loops whose narrow rows take one trip, beside the same rows at full width."""
    timed = records.rows(record="h200-builder", cache="warm", layout="packed", short_seq_len=0)
    narrow, wide = (timed[timed["variant"] == f"row_loop_{form}"] for form in ("adaptive", "fixed"))
    both = narrow[narrow["width"] <= STEP].merge(wide, on="cell", suffixes=("", "_wide"))
    return [*both.itertuples()]


def _faster(rng: Random) -> Parts:
    of = rng.choice(_timed())
    ratio, fewer = of.us_wide / of.us, CAPACITY / of.width
    text = f"A row loop writes {of.decode + of.prefill:,} rows at {of.max_seq_len:,} tokens, {of.width:,} "
    text += f"columns in place of {CAPACITY:,}: {fewer:.0f} × fewer. How many times faster is that on an H200?"
    why = f"{of.us_wide:.2f} µs became {of.us:.2f} µs: the launch and the way to the first store do not shrink."
    wrong = [other for other in (fewer, 1, (ratio * fewer) ** 0.5, fewer * 2) if abs(other / ratio - 1) > 0.3]
    return text, f"{ratio:.1f} ×", tuple(f"{other:.1f} ×" for other in wrong[:3]), why, {"seq": of.max_seq_len}


def _chunks(rng: Random) -> Parts:
    requests, query, seq = rng.randint(4, 40), rng.choice((16, 64, 256)), rng.randrange(1_000, 40_000)
    each = required_width(seq, RATIO) + min(seq, query + 127)
    room = each * rng.randint(1, requests // 2) + rng.randrange(each)
    chunks = len(prefill_chunks([seq] * requests, [query] * requests, workspace_rows=room))
    text = f"{requests} prompts have {query} new tokens each, at the end of {seq:,}. The workspace has {room:,} rows. "
    text += "How many chunks does the prefill take?"
    fit = room // each
    why = f"A prompt needs {each:,} rows: its entries, its tokens and the 127 before them. {fit} fit at a time."
    return text, chunks, (requests, chunks - 1, chunks + 1), why, {}


def _launches(rng: Random) -> Parts:
    model, chunks = rng.choice([*MODELS]), rng.randint(2, 32)
    layers = MODELS[model].c128a_layers
    text = f"{model} has {layers} C128A layers, and the prompts of a step make {chunks} chunks. "
    text += "How often is the combine launched where each layer makes its rows anew?"
    why = f"{layers} layers × {chunks} chunks = {layers * chunks}. The rows are the same in all layers: once is enough."
    return text, layers * chunks, (1, layers, layers + chunks), why, {"model": model}


def _decode_rows(rng: Random) -> Parts:
    seqs, k, release = rng.choice((8, 16, 64, 256, 512)), rng.randint(2, 5), RELEASES[-1].name
    rows = check(MAX_MODEL_LEN, 8192, seqs, num_speculative_tokens=k, release=release).setup.decode_rows
    text = f"{seqs} sequences at most, {k} speculative tokens each: how many decode rows can a step have?"
    why = f"Each sequence has its own token and {k} to verify: {seqs} × (1 + {k}) = {rows:,}."
    return text, rows, (seqs, seqs * k, seqs + k), why, {"release": release, "seqs": seqs, "spec": k}


def _warm_up(rng: Random) -> Parts:
    length = rng.randrange(20_000, MAX_MODEL_LEN)
    widths = reachable_widths(capacity_width(length))
    text = f"A model allows {length:,} tokens. How many widths can occur under the power of two, and must be warmed up?"
    why = f"{', '.join(f'{width:,}' for width in widths)}: powers of two from 128 on, and the capacity."
    return text, len(widths), (len(widths) - 1, len(widths) + 1, widths[-1] // 128), why, {"model_len": length}


def _release(rng: Random) -> Parts:
    moves = [one for one in RELEASES if one.policy != "fixed" and one.layout == "packed"]
    others = rng.sample([one.name for one in RELEASES if one not in moves], 3)
    answer = rng.choice(moves)
    text = "Which of these vLLM releases moves decode rows under a captured reader?"
    why = f"{answer.name} builds adaptive rows and packs them ({answer.change}): {answer.outcome}."
    return text, answer.name, tuple(others), why, {"release": answer.name}


QUESTIONS: dict[str, tuple[Callable[[Random], Parts], ...]] = {
    "01_width": (_grown, _capacity),
    "02_layout": (_packed_row, _captured),
    "03_kernel": (_entries, _slot),
    "04_timing": (_written, _faster),
    "05_review": (_chunks, _launches),
    "06_deployment": (_decode_rows, _warm_up, _release),
}


def draw(seed: int, page: str) -> list[Question]:
    """The questions of a page, a key of QUESTIONS; the same for a seed wherever they are asked."""
    questions = []
    for make in QUESTIONS[page]:
        text, answer, wrong, why, settings = make(Random(f"{seed} {make.__name__}"))
        values: list[Any] = sorted({answer, *wrong})
        choices = [f"{value:,}" if isinstance(value, int) else value for value in values]
        questions.append(Question(page, text, tuple(choices), choices[values.index(answer)], why, settings))
    return questions
