"""What becomes of a replay's time, the arithmetic of a measurement, and the lock that lets one session time at a time.

A clock that is counted by hand stands for the GPU's and for the host's.
"""

import math
import multiprocessing
import os
import stat
import tempfile
import time
from types import SimpleNamespace

import numpy as np
import pytest

from c128a.bench import timing
from c128a.bench.timing import GpuBusyError, device_lock, lock_file, prediction, summary

GRAPH_US, COLD_US, FLUSH_US = 7.0, 100.0, 40.0  # of a replay; of each launch after another graph; of each read of L2


@pytest.fixture
def clock(monkeypatch):
    """Calls advance `us`; graphs take what their calls take, and the time of a replay depends on the one before."""
    now = SimpleNamespace(us=0.0, last=None)

    def spend(us):
        now.us += us

    class Graph:
        def __init__(self, launch, launches):
            before = now.us
            for _ in range(launches):
                launch()
            self.us, self.launches = now.us - before, launches

        def replay(self):
            now.last = self

    def elapsed(graph):
        cold = COLD_US * graph.launches * (now.last is not graph)
        graph.replay()
        return graph.us + GRAPH_US + cold

    torch = SimpleNamespace(sum=lambda *_, **__: spend(FLUSH_US), int32=0, int64=0)
    torch.zeros = torch.empty = lambda *_, **__: None
    torch.cuda = SimpleNamespace(is_available=lambda: False)
    monkeypatch.setattr(timing, "torch", torch)
    monkeypatch.setattr(timing, "capture", Graph)
    monkeypatch.setattr(timing, "_elapsed_us", elapsed)
    monkeypatch.setattr(timing, "time", SimpleNamespace(perf_counter=lambda: now.us / 1e6))
    return spend


def test_a_warm_time_is_that_of_one_launch_without_the_graph_and_without_what_lay_in_l2_before(clock):
    calls = [lambda: clock(3.0), lambda: clock(5.0)]
    assert timing.warm_times(calls, repeats=2, in_graph=[5, 50]) == [[3.0, 3.0], [5.0, 5.0]]
    assert timing.warm_times(calls, repeats=1) == [[3.0], [5.0]]


def test_a_cold_time_is_that_of_one_launch_without_the_read_before_it_and_a_host_time_that_of_one_call(clock):
    calls, expected = [lambda: clock(3.0), lambda: clock(5.0)], [[3.0, 3.0], [5.0, 5.0]]
    assert timing.cold_times(calls, repeats=2) == expected
    assert timing.host_times(calls, repeats=2, batch=10) == [pytest.approx(each) for each in expected]


def test_a_step_of_the_clock_is_that_of_two_events_shared_by_the_launches_between_them():
    # Half a microsecond each, over 50 warm and 10 cold launches.
    assert pytest.approx({"warm": 0.02, "cold": 0.1, "host": 0.01}) == timing.RESOLUTION_US


@pytest.mark.parametrize("freedom", timing.T_99)
def test_99_of_100_values_of_student_lie_within_t(freedom):
    x = np.linspace(-timing.T_99[freedom], timing.T_99[freedom], 20_001)
    scale = math.gamma((freedom + 1) / 2) / math.gamma(freedom / 2) / math.sqrt(freedom * math.pi)
    density = scale * (1 + x**2 / freedom) ** (-(freedom + 1) / 2)
    assert (density[1:] + density[:-1]).sum() / 2 * (x[1] - x[0]) == pytest.approx(0.99, abs=1e-4)


def test_quantiles_are_interpolated_over_the_samples_of_all_processes_which_are_kept_apart_to_a_thousandth():
    row = summary([[1.0, 3.0, 2.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0014]])
    assert row == {"us": 5.0, "p20": 2.6, "p80": 7.4, "samples": [[1, 3, 2], [4, 5, 6], [7, 8, 9.001]]}


def test_what_one_more_process_measures_is_predicted_from_the_medians_of_the_others():
    # Medians 20, 40, 60, 80: mean 50, standard deviation 25.82; t of 3 degrees of freedom 5.841; √(1 + 1/4) = 1.118.
    processes = [[median - 1, median, median + 90] for median in (20.0, 40.0, 60.0, 80.0)]  # a late one moves nothing
    reach = 5.841 * 25.82 * 1.118 + 0.01
    assert prediction(processes, 0.01) == {"low": 0.0, "high": pytest.approx(50 + reach, abs=0.02)}, "no time < 0"
    later = [[sample + 1000 for sample in process] for process in processes]
    assert prediction(later, 0.01)["low"] == pytest.approx(1050 - reach, abs=0.02)
    assert prediction([[2.0]] * 3, 0.01) == {"low": 1.99, "high": 2.01}, "a step of the clock stays uncertain"


@pytest.fixture
def shared(tmp_path, monkeypatch):
    """A folder that all users may write, as the only one for locks."""
    tmp_path.chmod(0o1777)
    monkeypatch.setattr(timing, "LOCK_FOLDERS", (tmp_path / "missing", tmp_path))
    return tmp_path


def test_one_session_at_a_time_holds_a_device(shared):
    with pytest.raises(RuntimeError, match="while timing"), device_lock(None):
        with pytest.raises(GpuBusyError, match="this CPU"), device_lock(None):
            pass
        with device_lock(0):  # another device
            pass
        raise RuntimeError("while timing")
    with device_lock(None):  # free again
        pass


def test_the_end_of_a_process_frees_the_lock(shared):
    def hold():
        with device_lock(None):
            locked.set()
            time.sleep(60)

    fork = multiprocessing.get_context("fork")
    locked, holder = fork.Event(), fork.Process(target=hold)
    holder.start()
    try:
        assert locked.wait(30)
        with pytest.raises(GpuBusyError), device_lock(None):
            pass
    finally:
        holder.kill()
        holder.join()
    with device_lock(None):
        pass


def test_the_place_of_the_lock_does_not_depend_on_the_environment(tmp_path, monkeypatch):
    before = lock_file(None)
    for name in ("TMPDIR", "TMP", "TEMP", "HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)  # or it would remember
    assert lock_file(None) == before and before.parent in timing.LOCK_FOLDERS


def test_a_lock_lies_where_every_user_may_write_and_every_user_may_open_it_whatever_the_umask(shared, monkeypatch):
    mine = shared / "mine"
    mine.mkdir(mode=0o755)
    monkeypatch.setattr(timing, "LOCK_FOLDERS", (mine, shared))
    before = os.umask(0o077)
    try:
        with device_lock(None):
            assert lock_file(None).parent == shared and stat.S_IMODE(lock_file(None).stat().st_mode) == 0o666
    finally:
        os.umask(before)


@pytest.mark.parametrize("mode", [0o444, 0o644])
def test_a_file_that_another_user_made_is_locked_as_it_is(shared, mode):
    path = lock_file(None)
    path.touch()
    path.chmod(mode)
    before = path.stat()
    with device_lock(None), pytest.raises(GpuBusyError), device_lock(None):
        pass
    after = path.stat()
    assert (after.st_ino, stat.S_IMODE(after.st_mode)) == (before.st_ino, mode)
