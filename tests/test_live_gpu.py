"""A live run on a GPU is the bench's own measurement: every variant, checked against the reference, under one lock."""

import tempfile

import pytest
import torch

from c128a import live
from c128a.bench_cases import BuilderCase, Cell

pytestmark = pytest.mark.gpu

CELL = Cell(0, 256, 32_768)


@pytest.fixture(autouse=True)
def own_lock(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_every_variant_of_the_bench_is_timed_and_bears_the_card_s_name():
    outcome = live.sweep([CELL], budget_s=120)
    assert outcome.ended == "finished" and outcome.refused == ()
    assert [row["variant"] for row in outcome.rows] == list(BuilderCase(CELL).launches())
    assert {row["device"] for row in outcome.rows} == {torch.cuda.get_device_name()}
    assert all(len(row["samples"]) == live.GPU_ROUNDS * live.GPU_REPEATS for row in outcome.rows)


def test_a_run_that_is_stopped_after_one_round_keeps_three_samples_a_variant():
    asked = iter(range(10_000))
    outcome = live.sweep([CELL], budget_s=120, should_stop=lambda: next(asked) >= 2)  # a look a cell, then one a round
    assert outcome.ended == "stopped"
    assert outcome.rows and all(len(row["samples"]) == live.GPU_REPEATS for row in outcome.rows)


def test_a_second_run_on_the_same_card_is_told():
    with live.measuring(), pytest.raises(live.GpuBusyError, match="another session is timing on GPU 0"):
        live.sweep([CELL])
