"""A live run: one at a time on a machine, ended by its budget or by a person, keeping what it has measured."""

import itertools
import time
from types import SimpleNamespace

import pandas as pd
import pytest
import torch

from c128a.bench import cases, live, records, timing
from c128a.case import Case

SMALL, LARGE = [Case.decode(1, 4_096), Case.decode(1, 32_768)], Case.prefill(8192, 32_768)
VARIANTS = ["reference_fixed", "reference_adaptive", "reference_fill"]


@pytest.fixture(autouse=True)
def device(request, tmp_path, monkeypatch):
    """The CPU but for tests marked gpu, and a lock that no other process waits for and that every test leaves free."""
    monkeypatch.setattr(timing, "LOCK_FOLDERS", (tmp_path,))
    if "gpu" not in request.keywords:
        monkeypatch.setattr(live, "on_gpu", lambda: False)
    yield
    with live.measuring():
        pass


def test_a_finished_run_tells_a_row_for_each_variant_of_each_cell_once_and_how_far_it_is():
    steps = []
    outcome = live.sweep(SMALL, steps.append, budget_s=60)
    assert outcome.ended == "finished" and outcome.refused == ()
    cells = [cases.cell_name(case) for case in SMALL]
    assert [(row["cell"], row["variant"]) for row in outcome.rows] == [(c, v) for c in cells for v in VARIANTS]
    assert [step.row for step in steps if step.row] == list(outcome.rows)
    assert [*dict.fromkeys(step.cell for step in steps)] == [f"1 decode row at {n:,} tokens" for n in (4_096, 32_768)]
    done = [step.done for step in steps]
    assert done == sorted(done) and done[0] == 0 and done[-1] == 1
    assert all(0 <= step.left_s <= 60 for step in steps)


def test_its_rows_have_the_columns_of_the_records_and_none_bears_the_name_of_a_kernel():
    rows = pd.DataFrame(live.sweep([Case.mixed(2, 3, 32_768)], budget_s=60).rows)
    assert set(rows["kernel"]) == {"reference"} and rows["variant"].tolist() == VARIANTS
    assert rows["width"].tolist() == [8192, 256, 256]
    assert rows["bytes"].tolist() == [5 * 8192 * 4, 5 * 256 * 4, 5 * 256 * 4]
    assert ((rows["p20"] <= rows["us"]) & (rows["us"] <= rows["p80"])).all()
    assert [len(process) for (process,) in rows["samples"]] == [live.CPU_ROUNDS] * 3
    assert rows[["low", "high"]].isna().all(axis=None), "one process predicts nothing"
    assert set(rows.columns) == set(records.COLUMNS) and set(rows["record"]) == {"live"}
    both = pd.concat([records.rows(), rows], ignore_index=True)
    assert (both.dtypes == records.rows().dtypes).all()


def test_while_one_run_measures_another_is_told():
    def tell(step):
        with pytest.raises(live.GpuBusyError, match="this CPU"):
            live.sweep(SMALL[:1])

    assert live.sweep(SMALL[:1], tell, budget_s=60).ended == "finished"


def test_a_run_that_is_stopped_keeps_the_rows_it_told():
    told = []
    tell, stop = (lambda step: told.append(step.row) if step.row else None), (lambda: len(told) >= 3)
    outcome = live.sweep(SMALL * 50, tell, budget_s=60, should_stop=stop)
    assert outcome.ended == "stopped"
    assert list(outcome.rows) == told and [row["variant"] for row in told] == VARIANTS


@pytest.fixture
def clock(monkeypatch):
    """A second passes at each look at the clock of a run."""
    clock = SimpleNamespace(monotonic=itertools.count().__next__, perf_counter=time.perf_counter)
    monkeypatch.setattr(live, "time", clock)


def test_the_budget_ends_a_run(clock):
    assert live.sweep(SMALL, budget_s=0) == live.Outcome((), "budget", ())
    outcome = live.sweep(SMALL * 50, budget_s=100)
    assert outcome.ended == "budget" and 0 < len(outcome.rows) < 300


def test_a_slow_machine_comes_to_the_last_cell_with_fewer_samples_of_each(clock):
    outcome = live.sweep(SMALL, budget_s=110)  # seconds; all samples would take some 150
    counts = [len(row["samples"][0]) for row in outcome.rows]
    assert outcome.ended == "finished" and len(counts) == 6
    assert min(counts) >= live.LEAST_SAMPLES and max(counts) < live.CPU_ROUNDS


def test_a_measurement_cut_short_below_three_samples_is_dropped():
    asked = iter(range(10_000))
    outcome = live.sweep(SMALL[:1], should_stop=lambda: next(asked) >= 8)  # one look a cell, then one a call
    assert (outcome.rows, outcome.ended) == ((), "stopped")


def test_what_needs_too_much_memory_is_refused_with_the_number():
    asked = iter(range(10))
    outcome = live.sweep([LARGE], should_stop=lambda: next(asked) >= 1)
    timed, (refused,) = live.reference_calls(LARGE)
    assert outcome.refused == (refused,)
    assert all(word in refused for word in ("8,192 prefill rows at 32,768", "896 MiB", "512"))  # 8192² × 14 bytes
    assert [each.facts["variant"] for each in timed] == ["reference_adaptive", "reference_fill"]


def test_an_error_in_the_listener_ends_the_run():
    with pytest.raises(ZeroDivisionError):
        live.sweep(SMALL, lambda step: 1 / 0)


@pytest.mark.gpu
class TestOnAGpu:
    CELL = Case.prefill(256, 32_768)

    def test_every_variant_of_the_bench_is_timed_and_bears_the_card_s_name(self):
        outcome = live.sweep([self.CELL], budget_s=120)
        assert outcome.ended == "finished" and outcome.refused == ()
        timed = cases.builder(self.CELL)
        assert [row["variant"] for row in outcome.rows] == [each.facts["variant"] for each in timed]
        assert {row["gpu"] for row in outcome.rows} == {torch.cuda.get_device_name()}
        assert all(len(row["samples"][0]) == live.GPU_ROUNDS * live.GPU_REPEATS for row in outcome.rows)

    def test_a_run_that_is_stopped_after_one_round_keeps_three_samples_a_variant(self):
        asked = iter(range(10))
        outcome = live.sweep([self.CELL], budget_s=120, should_stop=lambda: next(asked) >= 1)
        assert outcome.ended == "stopped"
        assert outcome.rows and all(len(row["samples"][0]) == live.GPU_REPEATS for row in outcome.rows)

    def test_a_second_run_on_the_same_card_is_told(self, tmp_path):
        with live.measuring(), pytest.raises(live.GpuBusyError, match="GPU 0"):
            live.sweep([self.CELL])
