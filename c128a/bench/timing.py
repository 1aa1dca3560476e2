"""How kernels are timed: two numbers that are not the same.

    kernel     time on the GPU for one launch: a graph of 2N launches minus a graph of N, over N
    host       time that the host spends on one call, whether the GPU is idle or not

What is compared is interleaved, so that a drift of the clock meets all of it. Two processes differ by more than the
samples within one, so a record pools several, and `summary` says what one more process would measure.

Warm: each graph is replayed once untimed right before it is timed, so that what it reads, its own nodes included, lies
in L2 and nothing dirty of another kernel has to leave it first. Cold: a read of 128 MiB before each launch leaves L2
(60 MB on an H200) full of other, clean lines; the time of the reads alone is taken off.
"""

from __future__ import annotations

import fcntl
import os
import stat
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

FLUSH_BYTES = 128 * 2**20
COLD_LAUNCHES = 10
IN_GRAPH = 50
EVENT_US = 0.5  # resolution of a CUDA event
# The finest step of one sample: of a kernel a difference of two times, of the host far less than its calls vary by.
RESOLUTION_US = {"warm": 2 * EVENT_US / IN_GRAPH, "cold": 2 * EVENT_US / COLD_LAUNCHES, "host": 0.01}
# Student's t, two-sided 99 %, by degrees of freedom.
T_99 = {2: 9.925, 3: 5.841, 4: 4.604, 5: 4.032, 6: 3.707, 7: 3.499, 8: 3.355, 9: 3.25, 10: 3.169, 11: 3.106}
PROCESSES = (min(T_99) + 1, max(T_99) + 1)  # fewer show no spread

Calls = Sequence[Callable[[], object]]
Samples = list[list[float]]  # microseconds, of each call


def summary(processes: Sequence[Sequence[float]]) -> dict[str, Any]:
    """The fields of a record's row for the samples of each process: median, 20th and 80th percentile, the samples.

    All in microseconds, times to a hundredth.

    >>> summary([[1.0, 2.0, 3.0], [4.0, 5.0]])
    {'us': 3.0, 'p20': 1.8, 'p80': 4.2, 'samples': [[1.0, 2.0, 3.0], [4.0, 5.0]]}
    """
    every = [sample for process in processes for sample in process]
    p20, us, p80 = (round(float(value), 2) for value in np.quantile(every, (0.2, 0.5, 0.8)))
    samples = [[round(sample, 3) for sample in process] for process in processes]
    return {"us": us, "p20": p20, "p80": p80, "samples": samples}


def prediction(processes: Sequence[Sequence[float]], resolution: float) -> dict[str, float]:
    """Between which times, low and high, the median of one more process lies with 99 % certainty, in microseconds.

    Student's prediction interval over the medians of the processes, and a step of the clock, the resolution, more to
    either side: all processes round in the same way. The number of processes is within PROCESSES.

    >>> prediction([[19.0], [20.0], [21.0]], 0.02)  # 9.925 × 1 × √(1 + 1/3) + 0.02 = 11.48
    {'low': 8.52, 'high': 31.48}
    """
    medians = [statistics.median(process) for process in processes]
    count, centre = len(medians), statistics.mean(medians)
    reach = T_99[count - 1] * statistics.stdev(medians) * (1 + 1 / count) ** 0.5 + resolution
    return {"low": round(max(centre - reach, 0.0), 2), "high": round(centre + reach, 2)}


class GpuBusyError(RuntimeError):
    """Another session is timing on this device; two at once would falsify both."""


# Where the lock files lie: the first folder in which every user of the machine may create one. No variable of the
# environment has a say, or two sessions could look in two places.
LOCK_FOLDERS = (Path("/run/lock"), Path("/var/lock"), Path("/dev/shm"), Path("/tmp"))
FOR_EVERY_USER = stat.S_ISVTX | stat.S_IWOTH  # a sticky folder that all may write


def lock_file(index: int | None) -> Path:
    """The lock file of a GPU, named by its UUID where there is one, or of the CPU (None)."""
    name = "cpu" if index is None else f"gpu-{index}"
    if index is not None and torch.cuda.is_available():
        name = f"gpu-{torch.cuda.get_device_properties(index).uuid}"
    shared = (each for each in LOCK_FOLDERS if each.is_dir() and each.stat().st_mode & FOR_EVERY_USER == FOR_EVERY_USER)
    return next(shared, LOCK_FOLDERS[-1]) / f"c128a-{name}.lock"


@contextmanager
def device_lock(index: int | None = 0, timeout_s: float = 0.0) -> Iterator[None]:
    """Hold the one lock that all timings on a GPU of this machine share, or those on its CPU (None).

    It is the same for all users, and the system frees it when a process ends, however it ends.
    Raises GpuBusyError when another holder does not let go within timeout_s seconds.
    """
    descriptor = _open_lock(lock_file(index))
    end = time.monotonic() + timeout_s
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= end:
                    where = "this CPU" if index is None else f"GPU {index}"
                    raise GpuBusyError(
                        f"another session is timing on {where}; try again when it has finished"
                    ) from None
                time.sleep(0.1)
        yield
    finally:
        os.close(descriptor)


def _open_lock(path: Path) -> int:
    """A descriptor of the lock file, whoever made it.

    A file that is there is opened for reading alone, which is all that a lock needs: Linux can forbid to open the file
    of another user in a sticky folder as one to be created, and its mode can forbid to write it.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW
    try:
        return os.open(path, flags)
    except FileNotFoundError:
        try:
            made = os.open(path, flags | os.O_CREAT | os.O_EXCL)
        except FileExistsError:  # another session was faster
            return os.open(path, flags)
        os.fchmod(made, 0o666)  # whatever the umask says
        return made


def capture(launch: Callable[[], object], launches: int) -> torch.cuda.CUDAGraph:
    """A CUDA graph of `launches` launches, after one that compiles and loads; other threads may allocate meanwhile."""
    launch()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        for _ in range(launches):
            launch()
    return graph


def _elapsed_us(graph: torch.cuda.CUDAGraph) -> float:
    """GPU time of one replay, in microseconds."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    graph.replay()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) * 1000


def warm_times(calls: Calls, *, repeats: int, in_graph: Sequence[int] | None = None) -> Samples:
    """Kernel time of each call with its data in L2, in microseconds, interleaved.

    in_graph: calls in the smaller graph of each, IN_GRAPH where it is None. The time of a graph depends a little on
    where its memory lies. Whoever does not measure in several processes calls this several times: each call captures
    anew.
    """
    counts = in_graph or [IN_GRAPH] * len(calls)
    graphs = [(capture(call, n), capture(call, 2 * n)) for call, n in zip(calls, counts, strict=True)]
    samples: Samples = [[] for _ in calls]
    for _ in range(repeats):
        for pair, each, n in zip(graphs, samples, counts, strict=True):
            taken = []
            for graph in pair:
                graph.replay()
                taken.append(_elapsed_us(graph))
            each.append((taken[1] - taken[0]) / n)
    return samples


def cold_times(calls: Calls, *, repeats: int, in_graph: int = COLD_LAUNCHES) -> Samples:
    """Kernel time of each launch after a read that empties L2, in microseconds, interleaved."""
    scratch = torch.zeros(FLUSH_BYTES // 4, dtype=torch.int32, device="cuda")
    total = torch.empty((), dtype=torch.int64, device="cuda")

    def flush() -> None:
        torch.sum(scratch, dim=0, out=total)

    def flushed(call: Callable[[], object]) -> Callable[[], None]:
        def both() -> None:
            flush()
            call()

        return both

    bare = capture(flush, in_graph)
    graphs = [capture(flushed(call), in_graph) for call in calls]
    samples: Samples = [[] for _ in calls]
    for _ in range(repeats):
        for graph, each in zip(graphs, samples, strict=True):
            each.append((_elapsed_us(graph) - _elapsed_us(bare)) / in_graph)
    return samples


def host_times(calls: Calls, *, repeats: int, batch: int = 200) -> Samples:
    """Host time of one call, in microseconds, interleaved in batches; the GPU catches up between batches."""
    for call in calls:
        for _ in range(batch):
            call()
    samples: Samples = [[] for _ in calls]
    for _ in range(repeats):
        for call, each in zip(calls, samples, strict=True):
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(batch):
                call()
            each.append((time.perf_counter() - start) / batch * 1e6)
    return samples
