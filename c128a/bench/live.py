"""Timing on the machine at hand, for a page: the bench's own measurement on a GPU, the torch reference on a CPU.

A live run is an illustration, not a record: nobody vouches for the clocks and neighbours of an unknown machine. It can
be stopped between two measurements. Each cell gets its share of the budget, and on a slow machine fewer samples, so
that a run comes to its last cell. Its rows have the columns of the records, with the record "live".
"""

from __future__ import annotations

import c128a.backend as backend  # decides TRITON_INTERPRET before Triton is imported

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Literal, NamedTuple

import torch

from c128a import reference
from c128a.bench import cases, timing
from c128a.bench.cases import Row, Timed
from c128a.bench.records import FIELDS
from c128a.bench.timing import GpuBusyError as GpuBusyError  # the page catches it by this name
from c128a.case import Case

BUDGET_S = 10.0
GPU_ROUNDS, GPU_REPEATS = 7, 3  # 21 samples a measurement; each round captures its graphs anew
CPU_ROUNDS = 9
LEAST_SAMPLES = 3  # fewer have no spread: a measurement cut short below this is dropped
MAX_MIB = 512  # intermediate tensors of the reference; larger ones are refused
DECODE_CELL_BYTES, PREFILL_CELL_BYTES = 40, 14  # bytes of intermediate tensors a cell, at most at one time


class Step(NamedTuple):
    """Where a run stands: the cell in words, the share done, the seconds left at most, and a row when one is ready."""

    cell: str
    done: float
    left_s: float
    row: Row | None = None


class Outcome(NamedTuple):
    """What a run kept, why it ended, and which measurements it refused to start, with the reason."""

    rows: tuple[Row, ...]
    ended: Literal["finished", "budget", "stopped"]
    refused: tuple[str, ...]


def in_words(case: Case) -> str:
    """A cell as a reader names it.

    >>> in_words(Case.mixed(64, 4096, 32_768)), in_words(Case.one_long(2, 9_000, 400))
    ('64 decode and 4,096 prefill rows at 32,768 tokens', '2 decode rows at 9,000 tokens, the others at 400')
    """
    decode, prefill = case.num_decode_tokens, case.num_tokens - case.num_decode_tokens
    rows = " and ".join(f"{count:,} {kind}" for count, kind in ((decode, "decode"), (prefill, "prefill")) if count)
    short = min(case.seq_lens)
    others = f", the others at {short:,}" if short < case.max_seq_len else ""
    return f"{rows} row{'s' if case.num_tokens > 1 else ''} at {case.max_seq_len:,} tokens{others}"


def on_gpu() -> bool:
    """Whether a live run times the compiled kernels."""
    return backend.HAS_GPU and not backend.INTERPRET


def device_label() -> str:
    """What a live point was measured on."""
    return torch.cuda.get_device_name() if on_gpu() else "CPU, torch reference"


def measuring() -> AbstractContextManager[None]:
    """Hold the lock of the device; raises GpuBusyError where another session has it."""
    return timing.device_lock(torch.cuda.current_device() if on_gpu() else None)


def sweep(
    todo: Sequence[Case],
    tell: Callable[[Step], object] = lambda step: None,
    *,
    budget_s: float = BUDGET_S,
    should_stop: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Time the cells one after another and tell each row as soon as it stands.

    tell gets a Step after every round of samples and one for each row; should_stop is asked between measurements.
    Raises GpuBusyError, before anything is measured, where another session is timing.
    """
    start = time.monotonic()
    blank = {name: field.missing for name, field in FIELDS.items()}
    blank |= {"record": "live", "source": "live", "gpu": device_label(), "cache": "warm"}
    rows: list[Row] = []
    refused: list[str] = []
    ended: Literal["finished", "budget", "stopped"] = "finished"
    # How long a cell takes against the others: the cells that it writes, and 2^20 for what every launch costs.
    work = [2**20 + case.num_tokens * (case.capacity + case.width) for case in todo]

    def over() -> bool:
        nonlocal ended
        if ended == "finished":
            ended = "stopped" if should_stop() else "budget" if time.monotonic() - start >= budget_s else "finished"
        return ended != "finished"

    def report(at: int, share: float, row: Row | None = None) -> None:
        done = (sum(work[:at]) + work[at] * share) / sum(work)
        spent = time.monotonic() - start
        left = spent * (1 - done) / done if done else budget_s - spent
        tell(Step(in_words(todo[at]), done, max(0.0, min(left, budget_s - spent)), row))

    with measuring():
        for at, case in enumerate(todo):
            if over():
                break
            report(at, 0.0)
            begun = time.monotonic()
            until = begun + (start + budget_s - begun) * work[at] / sum(work[at:])
            with backend.kernel_lock:
                timed, left_out = (cases.builder(case), []) if on_gpu() else reference_calls(case)
            refused += left_out
            samples: timing.Samples = [[] for _ in timed]
            for share, new in _rounds(timed):
                for each, more in zip(samples, new, strict=True):
                    each.extend(more)
                report(at, share)
                enough = min(map(len, samples)) >= LEAST_SAMPLES
                if (enough and time.monotonic() >= until) or over():
                    break
            for one, own in zip(timed, samples, strict=True):
                if len(own) >= LEAST_SAMPLES:
                    rows.append(blank | one.facts | timing.summary([own]))
                    report(at, 1.0, rows[-1])
    return Outcome(tuple(rows), ended, tuple(refused))


def _rounds(timed: Sequence[Timed]) -> Iterator[tuple[float, timing.Samples]]:
    """The share that is done and the new samples of each, in rounds, so that a drift of the clock meets all of them."""
    calls = [each.call for each in timed]
    if on_gpu():
        for turn in range(1, GPU_ROUNDS + 1):
            # Other tabs launch kernels of their own: they wait for a round, and the round is not disturbed by them.
            with backend.kernel_lock:
                samples = timing.warm_times(calls, repeats=GPU_REPEATS)
            yield turn / GPU_ROUNDS, samples
        return
    for turn in range(CPU_ROUNDS + 1):  # the first round warms the allocator and is not counted
        for at, call in enumerate(calls):
            before = time.perf_counter()
            call()
            us = (time.perf_counter() - before) * 1e6
            share = (turn * len(calls) + at + 1) / (len(calls) * (CPU_ROUNDS + 1))
            yield share, [[us] if turn and other == at else [] for other in range(len(calls))]


def reference_calls(case: Case) -> tuple[list[Timed], list[str]]:
    """The torch reference in one cell on the CPU, at the fixed and at the adaptive width, and a fill.

    What would need more than MAX_MIB of intermediate tensors is left out; the second list tells what, and how much.
    """
    positions, requests, table, slots = case.tensors()[:4]
    decode, prefill = case.num_decode_tokens, case.num_tokens - case.num_decode_tokens
    timed, refused = [], []
    for name, own in (("fixed", replace(case, policy="fixed")), ("adaptive", case), ("fill", case)):
        mib = own.width * (decode * DECODE_CELL_BYTES + prefill * PREFILL_CELL_BYTES) / 2**20
        asked = (positions, own.compress_ratio, decode, requests, table, own.block_size, slots, own.width)
        call: Callable[[], object] = partial(reference.topk_metadata, *asked)
        if name == "fill":
            call = partial(torch.empty(case.num_tokens * case.width, dtype=torch.int32).fill_, -1)
        elif mib > MAX_MIB:
            over = f"{mib:,.0f} MiB of intermediate tensors, over the limit of {MAX_MIB}"
            refused.append(f"{in_words(case)}, {own.width:,} columns: {over}")
            continue
        facts = {"sheet": "builder", "kernel": "reference", "variant": f"reference_{name}"}
        timed.append(Timed(cases.cell_facts(own) | cases.row_facts(own) | facts, call))
    return timed, refused
