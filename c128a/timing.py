"""How kernels are timed: three numbers that are not the same.

    kernel     time on the GPU for one launch: a graph of 2N launches minus a graph of N, over N
    replay     time from the start to the end of a graph of one launch, on the GPU's clock
    host       time the host spends on one call, GPU idle or not

A and B are interleaved, so that a drift of the clock meets both. Two processes differ by more than the samples within
one, so a record pools several: `Pooled` says what one more process would measure.

Warm: each graph is replayed once untimed right before it is timed, so that what it reads, its own nodes included, lies
in L2 and nothing dirty of another kernel has to leave it first. Cold: a read of 128 MiB before each launch leaves L2
(60 MB on an H200) full of other, clean lines; the time of the reads alone is taken off.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock, Timeout

FLUSH_BYTES = 128 * 2**20
COLD_LAUNCHES = 10
IN_GRAPH = 50
EVENT_US = 0.5  # resolution of a CUDA event: a single launch carries no finer digit
# The finest step of one sample: of a kernel a difference of two times, of the host far less than its calls vary by.
RESOLUTION_US = {"warm": 2 * EVENT_US / IN_GRAPH, "cold": 2 * EVENT_US / COLD_LAUNCHES, "host": 0.01}
# Student's t, two-sided 99 %, by degrees of freedom.
T_99 = {2: 9.925, 3: 5.841, 4: 4.604, 5: 4.032, 6: 3.707, 7: 3.499, 8: 3.355, 9: 3.25, 10: 3.169, 11: 3.106}


@dataclass(frozen=True)
class Sample:
    """Repeated measurements of one thing, in microseconds."""

    values: tuple[float, ...]

    def quantile(self, share: float) -> float:
        """The value below which `share` of the measurements lie.

        >>> Sample((1.0, 2.0, 3.0, 4.0, 5.0)).quantile(0.2), Sample((3.0, 1.0, 2.0)).quantile(0.5)
        (1.8, 2.0)
        """
        ordered = sorted(self.values)
        at = share * (len(ordered) - 1)
        low = int(at)
        high = min(low + 1, len(ordered) - 1)
        return ordered[low] + (at - low) * (ordered[high] - ordered[low])

    def summary(self) -> dict[str, Any]:
        """Median, 20th and 80th percentile and the samples, to a hundredth of a microsecond."""
        return {
            "us": round(self.quantile(0.5), 2),
            "p20": round(self.quantile(0.2), 2),
            "p80": round(self.quantile(0.8), 2),
            "samples": [round(value, 3) for value in self.values],
        }


@dataclass(frozen=True)
class Pooled:
    """The samples of one measurement from several fresh processes; resolution is the finest step they show, in µs."""

    processes: tuple[Sample, ...]
    resolution: float

    def prediction(self) -> tuple[float, float]:
        """Between which times the median of one more process lies, with 99 % certainty.

        Student's prediction interval over the medians of the processes, and a step of the clock more to either side:
        all processes round in the same way.

        >>> low, high = Pooled((Sample((9.0,)), Sample((10.0,)), Sample((11.0,))), 0.02).prediction()
        >>> round(10 - low, 2), round(high - 10, 2)  # 9.925 × 1 × √(1 + 1/3) + 0.02
        (11.48, 11.48)
        """
        medians = [sample.quantile(0.5) for sample in self.processes]
        count, centre = len(medians), statistics.mean(medians)
        reach = T_99[count - 1] * statistics.stdev(medians) * (1 + 1 / count) ** 0.5 + self.resolution
        return centre - reach, centre + reach

    def summary(self) -> dict[str, Any]:
        """Median, 20th and 80th percentile of all samples, the prediction for one more process, samples by process."""
        every = Sample(tuple(value for sample in self.processes for value in sample.values))
        low, high = self.prediction()
        return every.summary() | {
            "prediction": [round(max(low, 0.0), 2), round(high, 2)],
            "samples": [sample.summary()["samples"] for sample in self.processes],
        }


class GpuBusyError(RuntimeError):
    """Another session is timing on this GPU; two at once would falsify both."""


@contextmanager
def gpu_lock(index: int = 0, timeout_s: float = 0.0) -> Iterator[None]:
    """Hold the one lock that all timings on a GPU of this machine share; the system frees it when a process ends.

    Raises GpuBusyError when another holder does not let go within timeout_s seconds.
    """
    lock = FileLock(Path(tempfile.gettempdir()) / f"c128a-gpu-{index}.lock", timeout=timeout_s)
    try:
        lock.acquire()
    except Timeout:
        raise GpuBusyError(f"another session is timing on GPU {index}; try again when it has finished") from None
    try:
        yield
    finally:
        lock.release()


def capture(launch: Callable[[], object], launches: int) -> torch.cuda.CUDAGraph:
    """A CUDA graph of `launches` launches, after one that compiles and loads; other threads may allocate meanwhile."""
    launch()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        for _ in range(launches):
            launch()
    return graph


def elapsed_us(graph: torch.cuda.CUDAGraph) -> float:
    """GPU time of one replay, in microseconds."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    graph.replay()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) * 1000


def _warm_us(graph: torch.cuda.CUDAGraph) -> float:
    graph.replay()
    return elapsed_us(graph)


def kernel_times(
    launches: Mapping[str, Callable[[], object]], *, repeats: int = 15, in_graph: int = IN_GRAPH, passes: int = 3
) -> dict[str, Sample]:
    """Warm kernel time of each launch, in microseconds, interleaved.

    The graphs are captured anew in each of `passes`: the time of a graph depends a little on where its memory lies, and
    the spread of the samples must say so. A caller that measures in fresh processes needs one pass.
    """
    values: dict[str, list[float]] = {name: [] for name in launches}
    for turn in range(passes):
        graphs = {name: (capture(launch, in_graph), capture(launch, 2 * in_graph)) for name, launch in launches.items()}
        for _ in range(repeats // passes + (turn < repeats % passes)):
            for name, pair in graphs.items():
                short, long = (_warm_us(graph) for graph in pair)
                values[name].append((long - short) / in_graph)
    return {name: Sample(tuple(each)) for name, each in values.items()}


def cold_times(
    launches: Mapping[str, Callable[[], object]], *, repeats: int = 15, in_graph: int = COLD_LAUNCHES
) -> dict[str, Sample]:
    """Kernel time of each launch after a read that empties L2, in microseconds, interleaved."""
    scratch = torch.zeros(FLUSH_BYTES // 4, dtype=torch.int32, device="cuda")
    total = torch.empty((), dtype=torch.int64, device="cuda")

    def flush() -> None:
        torch.sum(scratch, dim=0, out=total)

    def flushed(launch: Callable[[], object]) -> Callable[[], None]:
        def both() -> None:
            flush()
            launch()

        return both

    bare = capture(flush, in_graph)
    graphs = {name: capture(flushed(launch), in_graph) for name, launch in launches.items()}
    values: dict[str, list[float]] = {name: [] for name in graphs}
    for _ in range(repeats):
        for name, graph in graphs.items():
            values[name].append((elapsed_us(graph) - elapsed_us(bare)) / in_graph)
    return {name: Sample(tuple(each)) for name, each in values.items()}


def replay_times(launches: Mapping[str, Callable[[], object]], *, repeats: int = 50) -> dict[str, Sample]:
    """GPU time from event to event around a graph of one launch, in microseconds: no finer than EVENT_US."""
    graphs = {name: capture(launch, 1) for name, launch in launches.items()}
    values: dict[str, list[float]] = {name: [] for name in graphs}
    for _ in range(repeats):
        for name, graph in graphs.items():
            values[name].append(elapsed_us(graph))
    return {name: Sample(tuple(each)) for name, each in values.items()}


def host_times(calls: Mapping[str, Callable[[], object]], *, repeats: int = 20, batch: int = 200) -> dict[str, Sample]:
    """Host time of one call, in microseconds, interleaved in batches; the GPU catches up between batches."""
    values: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        for _ in range(batch):
            call()
    for _ in range(repeats):
        for name, call in calls.items():
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(batch):
                call()
            values[name].append((time.perf_counter() - start) / batch * 1e6)
    return {name: Sample(tuple(each)) for name, each in values.items()}


def geometric_mean(values: list[float]) -> float:
    """The geometric mean, the mean of ratios.

    >>> geometric_mean([1.0, 4.0])
    2.0
    """
    return statistics.geometric_mean(values)
