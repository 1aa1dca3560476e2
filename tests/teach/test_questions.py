"""Every answer, worked out a second time from the numbers that the question shows."""

import json
import re
from functools import cache
from pathlib import Path

import pytest

from c128a.teach.questions import QUESTIONS, draw


def power_of_two(least):
    return next(width for width in (128, 256, 512, 1024, 2048, 4096, 8192) if width >= least)


def capacity(tokens):
    return next(columns for columns in range(128, 8193, 128) if columns * 128 >= tokens)


def found(four, then, buffer, now, *, layout):
    """Walks the memory: where each row of four starts, and where a reader with the kept stride looks for it."""
    stride, kept = (now, then) if layout == "packed" else (buffer, buffer)
    starts, looked = ([row * step for row in range(four)] for step in (stride, kept))
    right = [start == look for start, look in zip(starts, looked, strict=True)]
    return {(True,) * 4: "all of them", (True, False, False, False): "only row 0"}[tuple(right)]


@cache
def recorded():
    rows = json.loads((Path(__file__).parents[2] / "data" / "h200-builder.json").read_text())["rows"]
    warm = [row for row in rows if row["cache"] == "warm" and row["layout"] == "packed" and "short_seq_len" not in row]
    return {(row.get("decode", 0) + row.get("prefill", 0), row["max_seq_len"], row["variant"]): row for row in warm}


def faster(rows, tokens, columns, wide, fewer):
    of_wide, of_narrow = (recorded()[rows, tokens, f"row_loop_{form}"] for form in ("fixed", "adaptive"))
    assert (of_narrow["width"], of_wide["width"], columns * fewer) == (columns, wide, wide)
    return f"{of_wide['us'] / of_narrow['us']:.1f} ×"


def chunks(prompts, new, tokens, workspace):
    at_a_time = max(workspace // (tokens // 128 + min(tokens, new + 127)), 1)
    return len(range(0, prompts, at_a_time))


AGAIN = {  # for each question of a page: the answer from the numbers of its text, in their order
    "01_width": [lambda before, now: power_of_two(now // 128), capacity],
    "02_layout": [lambda tokens, row: row * power_of_two(tokens // 128), found],
    "03_kernel": [
        lambda position: len(range(127, position + 1, 128)),
        lambda *of: [slot for block in of[:4] for slot in (2 * block, 2 * block + 1)][of[-1]],
    ],
    "04_timing": [lambda rows, tokens: f"{rows * power_of_two(tokens // 128) * 4 // 2**20} MiB", faster],
    "05_review": [chunks, lambda layers, count: sum([layers] * count)],
    "06_deployment": [
        lambda sequences, speculative: sum(1 + speculative for _ in range(sequences)),
        lambda tokens: len({min(128 << power, capacity(tokens)) for power in range(7)}),
        lambda: "0.27.1",  # PR #50004; every other release is fixed or pitched
    ],
}


@pytest.mark.parametrize("page", QUESTIONS)
def test_answers_are_right_for_a_thousand_seeds_and_stand_among_their_choices_once(page):
    answers = [set() for _ in AGAIN[page]]
    for seed in range(1000):
        for question, again, given in zip(draw(seed, page), AGAIN[page], answers, strict=True):
            shown = [int(text.replace(",", "")) for text in re.findall(r"(?<![\w.-])[\d,]*\d(?!\w)", question.text)]
            more = {"layout": "packed" if "packed" in question.text else "pitched"} if again is found else {}
            value = again(*shown, **more)
            assert question.answer == (f"{value:,}" if isinstance(value, int) else value), question
            assert 3 <= len(question.choices) <= 4 and question.choices.count(question.answer) == 1, question
            given.add(question.answer)
    assert all(len(given) > 1 or given == {"0.27.1"} for given in answers)
