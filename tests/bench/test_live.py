"""A live run: one at a time on a machine, ended by its budget or by a person, keeping what it has measured."""

import math
import threading
import time
from types import SimpleNamespace

import pandas as pd
import pytest

from c128a.bench import cases, live, records, timing
from c128a.case import Case

pytestmark = pytest.mark.skipif(live.on_gpu(), reason="the CPU's way is tested here; the GPU's is the bench's own")

SMALL = [Case.decode(1, 4_096), Case.decode(1, 32_768)]
VARIANTS = ["reference_fixed", "reference_adaptive", "reference_fill"]


@pytest.fixture(autouse=True)
def own_lock(tmp_path, monkeypatch):
    """A lock that no other test process on this machine waits for."""
    monkeypatch.setattr(timing, "LOCK_FOLDERS", (tmp_path,))


def free() -> bool:
    try:
        with live.measuring():
            return True
    except live.GpuBusyError:
        return False


def test_a_finished_run_has_a_row_for_each_variant_of_each_cell():
    outcome = live.sweep(SMALL, budget_s=60)
    assert outcome.ended == "finished" and outcome.refused == ()
    assert [(row["cell"], row["variant"]) for row in outcome.rows] == [
        (cases.cell_name(cell), variant) for cell in SMALL for variant in VARIANTS
    ]


def test_without_a_gpu_no_row_bears_the_name_of_a_kernel():
    rows = live.sweep(SMALL[:1], budget_s=60).rows
    assert {row["kernel"] for row in rows} == {"reference"}
    assert all(row["variant"].startswith("reference") for row in rows)
    assert {(row["record"], row["source"], row["gpu"]) for row in rows} == {("live", "live", live.device_label())}


def test_a_row_states_width_bytes_and_spread():
    fixed, adaptive, fill = live.sweep([Case.mixed(2, 3, 32_768)], budget_s=60).rows
    assert (fixed["width"], fixed["bytes"], fixed["policy"]) == (8192, 5 * 8192 * 4, "fixed")
    assert (adaptive["width"], adaptive["bytes"], adaptive["policy"]) == (256, 5 * 256 * 4, "pow2")
    assert fill["bytes"] == 5 * 256 * 4
    for row in (fixed, adaptive, fill):
        assert row["p20"] <= row["us"] <= row["p80"] and len(row["samples"][0]) == live.CPU_ROUNDS
        assert math.isnan(row["low"]), "one process predicts nothing"


def test_its_rows_have_the_columns_of_the_records():
    rows = pd.DataFrame(live.sweep(SMALL[:1], budget_s=60).rows)
    assert set(rows.columns) == set(records.COLUMNS)
    both = pd.concat([records.frame(), rows], ignore_index=True)
    assert (both.dtypes == records.frame().dtypes).all()


def test_every_row_is_told_once_and_the_share_done_never_falls():
    steps = []
    outcome = live.sweep(SMALL, steps.append, budget_s=60)
    assert [step.row for step in steps if step.row] == list(outcome.rows)
    done = [step.done for step in steps]
    assert done == sorted(done) and done[0] == 0 and done[-1] == 1
    assert all(0 <= step.left_s <= 60 for step in steps)


def test_of_two_runs_at_the_same_moment_one_runs_and_the_other_is_told():
    started, ends, told = threading.Event(), threading.Event(), []

    def first() -> None:
        def wait(step: live.Step) -> None:
            started.set()
            ends.wait(30)

        told.append(live.sweep(SMALL[:1], wait, budget_s=60).ended)

    def second() -> None:
        try:
            live.sweep(SMALL[:1])
        except live.GpuBusyError as busy:
            told.append(str(busy))

    runs = [threading.Thread(target=first), threading.Thread(target=second)]
    runs[0].start()
    assert started.wait(30)
    runs[1].start()
    runs[1].join(30)
    ends.set()
    runs[0].join(30)
    assert told == ["another session is timing on this CPU; try again when it has finished", "finished"]
    assert free()


def test_a_cancelled_run_keeps_the_rows_it_told():
    told = []
    outcome = live.sweep(
        SMALL * 50,
        lambda step: told.append(step.row) if step.row else None,
        budget_s=60,
        should_stop=lambda: len(told) >= 3,
    )
    assert outcome.ended == "stopped"
    assert list(outcome.rows) == told and [row["variant"] for row in told] == VARIANTS
    assert free()


def test_the_budget_ends_a_run(monkeypatch):
    clock = iter(range(10_000))  # a second passes at each look
    monkeypatch.setattr(live, "time", SimpleNamespace(monotonic=lambda: next(clock), perf_counter=time.perf_counter))
    outcome = live.sweep(SMALL * 50, budget_s=100)
    assert outcome.ended == "budget"
    assert 0 < len(outcome.rows) < 300
    assert free()


def test_a_run_without_time_keeps_nothing_and_says_why():
    outcome = live.sweep(SMALL, budget_s=0)
    assert (outcome.rows, outcome.ended) == ((), "budget")


def test_a_measurement_cut_short_below_three_samples_is_dropped():
    asked = iter(range(10_000))
    outcome = live.sweep(SMALL[:1], should_stop=lambda: next(asked) >= 8)  # one look a cell, then one a call
    assert (outcome.rows, outcome.ended) == ((), "stopped")


def test_an_error_in_the_listener_frees_the_lock():
    def fail(step: live.Step) -> None:
        raise RuntimeError("the tab is gone")

    with pytest.raises(RuntimeError, match="the tab is gone"):
        live.sweep(SMALL, fail)
    assert free()


def test_what_needs_too_much_memory_is_refused_with_the_number():
    asked = []
    outcome = live.sweep([Case.prefill(8192, 32_768)], should_stop=lambda: bool(asked.append(1)) or len(asked) > 1)
    (refused,) = outcome.refused
    assert all(word in refused for word in ("reference_fixed", "0+8192@32768", "896 MiB", "512"))  # 8192² × 14 bytes
    timed = live.reference_calls(Case.prefill(8192, 32_768))
    assert [each.facts["variant"] for each in timed] == ["reference_adaptive", "reference_fill"]


def test_a_step_names_its_cell():
    steps = []
    live.sweep(SMALL, steps.append, budget_s=60)
    assert list(dict.fromkeys(step.cell for step in steps)) == ["1+0@4096", "1+0@32768"]
