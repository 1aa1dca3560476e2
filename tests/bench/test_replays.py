"""What becomes of a replay's time: a clock that is counted by hand stands for the GPU's and for the host's."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from c128a.bench import timing

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


def test_a_cold_time_is_that_of_one_launch_without_the_read_before_it(clock):
    calls = [lambda: clock(3.0), lambda: clock(5.0)]
    assert timing.cold_times(calls, repeats=2) == [[3.0, 3.0], [5.0, 5.0]]


def test_a_host_time_is_that_of_one_call(clock):
    calls = [lambda: clock(3.0), lambda: clock(5.0)]
    assert timing.host_times(calls, repeats=2, batch=10) == [pytest.approx([us, us]) for us in (3.0, 5.0)]


def test_a_step_of_the_clock_is_that_of_two_events_shared_by_the_launches_between_them():
    # Half a microsecond each, over 50 warm and 10 cold launches.
    assert pytest.approx({"warm": 0.02, "cold": 0.1, "host": 0.01}) == timing.RESOLUTION_US


@pytest.mark.parametrize("freedom", timing.T_99)
def test_99_of_100_values_of_student_lie_within_t(freedom):
    x = np.linspace(-timing.T_99[freedom], timing.T_99[freedom], 20_001)
    scale = math.gamma((freedom + 1) / 2) / math.gamma(freedom / 2) / math.sqrt(freedom * math.pi)
    density = scale * (1 + x**2 / freedom) ** (-(freedom + 1) / 2)
    assert (density[1:] + density[:-1]).sum() / 2 * (x[1] - x[0]) == pytest.approx(0.99, abs=1e-4)


def test_samples_are_kept_to_a_thousandth_and_a_late_one_moves_no_prediction():
    assert timing.summary([[1.2344, 1.2346]])["samples"] == [[1.234, 1.235]]
    assert timing.prediction([[2.0, 1.0, 90.0]] * 3, 0.01) == {"low": 1.99, "high": 2.01}
