"""What a deployment's steps cost, from rows written here by hand and from the figures from elsewhere."""

import json

import pandas as pd
import pytest

from c128a.account.step import Times, step_costs, times_of


def row(kernel, variant, us, *, decode=0, prefill=0, seq=32_768, width=256, record="hand"):
    rest = {"record": record, "source": "recorded", "gpu": "a card", "cache": "", "short_seq_len": 0}
    return {"kernel": kernel, "variant": variant, "decode": decode, "prefill": prefill, "max_seq_len": seq,
            "width": width, "us": us, **rest}  # fmt: skip


BUILDER = [
    row("builder", "row_loop_adaptive", 2.0, decode=100),
    row("builder", "row_loop_adaptive", 4.0, decode=300),
    row("builder", "row_loop_adaptive", 5.0, prefill=1000),
    row("builder", "row_loop_adaptive", 25.0, prefill=1000, seq=98_304, width=768),
    row("builder", "row_loop_fixed", 60.0, prefill=1000, width=640),
    row("builder", "tiled", 1.5, prefill=1000),
]
COMBINE = [
    row("combine", "from_rows_adaptive", 10.0, prefill=1000, record="other"),
    row("combine", "from_rows_adaptive", 30.0, prefill=1000, seq=98_304, width=768, record="other"),
    row("combine", "from_rows_fixed", 90.0, prefill=1000, width=640, record="other"),
]
HAND = Times(pd.DataFrame(BUILDER + COMBINE))


def costs(sources=(HAND,), **settings):
    usual = {"max_model_len": 70_000, "decode_rows": 100, "prefill_tokens": 1000, "policy": "pow2", "capacity": 640}
    table = step_costs(**(usual | settings), sources=sources)
    return {(cost["step"], cost["case"]): cost for cost in table.to_dict("records")}


def test_a_measured_cell_is_given_as_measured_the_builder_once_and_the_combine_in_each_layer():
    cost = costs()["prefill", "typical"]
    assert (cost["rows"], cost["max_seq_len"], cost["width"]) == (1000, 32_768, 256)
    assert (cost["builder_us"], cost["combine_us"], cost["basis"]) == (5.0, 10.0, "measured")
    assert (cost["V4-Flash"], cost["V4-Pro"]) == (5.0 + 20 * 10.0, 5.0 + 31 * 10.0)
    assert cost["records"] == "hand, a card; other, a card"


def test_between_cells_the_time_lies_on_the_line_and_says_so():
    cost = costs(decode_rows=200)["decode", "typical"]
    assert cost["builder_us"] == pytest.approx(3.0)  # half way from 2 µs at 100 rows to 4 µs at 300
    assert "between 2 and 4 µs" in cost["basis"]


def test_the_worst_case_is_the_model_length():
    cost = costs()["prefill", "worst"]
    assert (cost["max_seq_len"], cost["width"]) == (70_000, 640)  # ceil(546.9 / 128) × 128 = 640
    assert cost["combine_us"] == pytest.approx(10 + 20 * (640 - 256) / (768 - 256))


def test_a_decode_step_has_no_combine():
    cost = costs()["decode", "typical"]
    assert cost["combine_us"] is None and cost["V4-Pro"] == 2.0


def test_a_fixed_width_takes_the_times_of_that_capacity_and_no_other():
    assert costs(policy="fixed")["prefill", "typical"]["combine_us"] == 90.0
    other = costs(policy="fixed", capacity=8192)["prefill", "typical"]
    assert other["combine_us"] is None and "8,192 columns" in other["basis"]


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"prefill_tokens": 2000}, ("prefill", "typical")),
        ({"decode_rows": 400}, ("decode", "typical")),
        ({"max_model_len": 200_000, "capacity": 1664}, ("prefill", "worst")),
        ({"capacity": 512}, ("prefill", "worst")),
    ],
    ids=["more tokens", "more rows", "wider", "too narrow for the sequence"],
)
def test_outside_the_measured_points_there_is_no_time_but_a_reason(settings, key):
    cost = costs(**settings)[key]
    assert cost["builder_us"] is cost["V4-Pro"] is None
    assert cost["basis"].startswith("not measured: ") and cost["records"] == ""
    json.dumps(cost)


def test_a_short_model_length_has_one_case():
    assert set(costs(max_model_len=32_768)) == {("decode", "worst"), ("prefill", "worst")}


def test_the_first_source_that_answers_is_used_kernel_by_kernel():
    narrow = Times(pd.DataFrame([row("builder", "row_loop_adaptive", 1.0, prefill=1000, record="narrow")]))
    found = costs((narrow, HAND))
    assert found["decode", "typical"]["records"] == "hand, a card"
    assert (found["prefill", "typical"]["builder_us"], found["prefill", "typical"]["combine_us"]) == (1.0, 10.0)


def test_a_builder_of_ones_own_takes_the_times_of_this_package():
    assert costs(released=False)["prefill", "typical"]["builder_us"] == 1.5
    assert "no record holds" in costs(released=False)["decode", "typical"]["basis"]


def test_the_run_of_the_pull_request():
    """31 × 13.2 + 6.5 µs at 32k and 31 × 90.6 + 62.3 at fixed width, as measured elsewhere."""
    run = {"prefill_tokens": 8192, "max_model_len": 1_048_576, "capacity": 8192}
    now, before = (costs([times_of("elsewhere")], policy=policy, **run) for policy in ("pow2", "fixed"))
    assert now["prefill", "typical"]["V4-Pro"] == pytest.approx(31 * 13.2 + 6.5)
    assert before["prefill", "typical"]["V4-Pro"] == pytest.approx(31 * 90.6 + 62.3)
