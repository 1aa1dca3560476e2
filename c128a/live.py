"""A short run of the timings on this machine, while a person watches.

On a GPU it is the bench's own measurement, one cell after another: warm kernel time, interleaved, checked against the
reference first. Without one there is no kernel time: Triton's interpreter takes seconds for what a GPU does in
microseconds, so what is timed instead is the torch reference on the CPU, under names of its own (`reference_fixed`,
`reference_adaptive`, `reference_fill`).

A run ends when it is finished, when its time is spent or when it is told to stop, and keeps what it has. One run at a
time on a machine: a second one gets GpuBusyError. The lock is the operating system's, so the end of the thread or of
the process frees it.
"""

from __future__ import annotations

import c128a.backend  # noqa: F401 - decides TRITON_INTERPRET before Triton is imported

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from filelock import FileLock, Timeout

from c128a import backend, timing
from c128a.bench_cases import CAPACITY, RATIO, BuilderCase, Cell
from c128a.live_reference import ReferenceCase
from c128a.timing import GpuBusyError, Sample
from c128a.width import active_topk_width

BUDGET_S = 10.0
GPU_ROUNDS, GPU_REPEATS = 7, 3  # 21 samples a measurement, each of a graph of its own
CPU_ROUNDS = 9
LEAST_SAMPLES = 3  # fewer have no spread: a measurement cut short below this is dropped

Row = dict[str, Any]


@dataclass(frozen=True)
class Step:
    """Where a run stands: the cell, the share that is done, the seconds that are left, and a row when one is ready."""

    cell: str
    done: float
    left_s: float
    row: Row | None = None


@dataclass(frozen=True)
class Outcome:
    """What a run kept, why it ended, and which measurements it refused to start, with the reason."""

    rows: tuple[Row, ...]
    ended: Literal["finished", "budget", "stopped"]
    refused: tuple[str, ...]


def on_gpu() -> bool:
    """Whether a live run times the compiled kernels."""
    return backend.HAS_GPU and not backend.INTERPRET


def device_label() -> str:
    """What a live point was measured on, for its label."""
    return torch.cuda.get_device_name() if on_gpu() else "CPU, torch reference"


def measuring() -> AbstractContextManager[None]:
    """Hold the lock that all timings of this machine share; raises GpuBusyError where another session has it."""
    return timing.gpu_lock(torch.cuda.current_device()) if on_gpu() else _cpu_lock()


@contextmanager
def _cpu_lock() -> Iterator[None]:
    lock = FileLock(Path(tempfile.gettempdir()) / "c128a-cpu.lock", timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise GpuBusyError("another session is timing on this CPU; try again when it has finished") from None
    try:
        yield
    finally:
        lock.release()


def sweep(
    cells: Sequence[Cell],
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
    rows: list[Row] = []
    refused: list[str] = []
    ended: Literal["finished", "budget", "stopped"] = "finished"

    def over() -> bool:
        nonlocal ended
        if ended == "finished":
            ended = "stopped" if should_stop() else "budget" if time.monotonic() - start >= budget_s else "finished"
        return ended != "finished"

    work = [_work(cell) for cell in cells]
    with measuring():
        for at, cell in enumerate(cells):
            if over():
                break
            before = sum(work[:at])

            def report(share: float, row: Row | None = None, at=at, before=before, name=cell.name) -> None:
                done = (before + work[at] * share) / sum(work)
                spent = time.monotonic() - start
                left = spent * (1 - done) / done if done else budget_s - spent
                tell(Step(name, done, max(0.0, min(left, budget_s - spent)), row))

            report(0.0)
            case, values = _measured(cell, refused, over, report)
            for variant, samples in values.items():
                if len(samples) >= LEAST_SAMPLES:
                    found = Sample(tuple(samples)).summary()
                    rows.append({**case.describe(variant), "cache": "warm", **found, "device": device_label()})
                    report(1.0, rows[-1])
    return Outcome(tuple(rows), ended, tuple(refused))


def _measured(
    cell: Cell, refused: list[str], over: Callable[[], bool], report: Callable[[float], None]
) -> tuple[BuilderCase | ReferenceCase, dict[str, list[float]]]:
    """The samples of one cell by variant, in microseconds, taken in rounds so that a drift meets all variants."""
    values: dict[str, list[float]] = {}
    if on_gpu():
        case = BuilderCase(cell)
        # Other tabs launch kernels of their own: they wait for a round, and the round is not disturbed by them.
        with backend.kernel_lock:
            case.check()
        launches = case.launches()
        for turn in range(GPU_ROUNDS):
            if over():
                break
            with backend.kernel_lock:
                for name, sample in timing.kernel_times(launches, repeats=GPU_REPEATS).items():
                    values.setdefault(name, []).extend(sample.values)
            report((turn + 1) / GPU_ROUNDS)
        return case, values
    stand_in = ReferenceCase(cell)
    refused += stand_in.refused()
    calls = stand_in.launches()
    for turn in range(CPU_ROUNDS + 1):  # the first round warms the allocator and is not counted
        for name, call in calls.items():
            if over():
                return stand_in, values
            before = time.perf_counter()
            call()
            if turn:
                values.setdefault(name, []).append((time.perf_counter() - before) * 1e6)
        report((turn + 1) / (CPU_ROUNDS + 1))
    return stand_in, values


def _work(cell: Cell) -> int:
    """How long a cell takes against the others: the cells that it writes, and 2^20 for what every launch costs."""
    width = active_topk_width(cell.max_seq_len, RATIO, CAPACITY)
    return 2**20 + (cell.decode + cell.prefill) * (CAPACITY + width)
