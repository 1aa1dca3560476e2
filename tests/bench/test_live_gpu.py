"""A live run on a GPU is the bench's own measurement: every variant, checked against the reference, under one lock."""

import pytest
import torch

from c128a.bench import cases, live, timing
from c128a.case import Case

pytestmark = pytest.mark.gpu

CELL = Case.prefill(256, 32_768)


@pytest.fixture(autouse=True)
def own_lock(tmp_path, monkeypatch):
    monkeypatch.setattr(timing, "LOCK_FOLDERS", (tmp_path,))


def test_every_variant_of_the_bench_is_timed_and_bears_the_card_s_name():
    outcome = live.sweep([CELL], budget_s=120)
    assert outcome.ended == "finished" and outcome.refused == ()
    assert [(row["variant"], row["layout"]) for row in outcome.rows] == [
        (each.facts["variant"], each.facts["layout"]) for each in cases.builder(CELL)
    ]
    assert {row["gpu"] for row in outcome.rows} == {torch.cuda.get_device_name()}
    assert all(len(row["samples"][0]) == live.GPU_ROUNDS * live.GPU_REPEATS for row in outcome.rows)


def test_a_run_that_is_stopped_after_one_round_keeps_three_samples_a_variant():
    asked = iter(range(10_000))
    outcome = live.sweep([CELL], budget_s=120, should_stop=lambda: next(asked) >= 2)  # a look a cell, then one a round
    assert outcome.ended == "stopped"
    assert outcome.rows and all(len(row["samples"][0]) == live.GPU_REPEATS for row in outcome.rows)


def test_a_second_run_on_the_same_card_is_told():
    with live.measuring(), pytest.raises(live.GpuBusyError, match="another session is timing on GPU 0"):
        live.sweep([CELL])
