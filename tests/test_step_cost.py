"""The cost of a step, from a record written here by hand and from the figures from elsewhere."""

import pytest

from c128a.deployment import check
from c128a.deployment.step_cost import step_costs
from c128a.records import Record, load


def row(kernel, variant, us, *, decode=0, prefill=0, seq=32_768, width=256):
    return {"kernel": kernel, "variant": variant, "decode": decode, "prefill": prefill, "max_seq_len": seq,
            "width": width, "us": us}  # fmt: skip


HAND = Record(
    "hand",
    {"gpu": "a card"},
    (
        row("builder", "row_loop_adaptive", 2.0, decode=100),
        row("builder", "row_loop_adaptive", 4.0, decode=300),
        row("builder", "row_loop_adaptive", 5.0, prefill=1000),
        row("builder", "row_loop_adaptive", 25.0, prefill=1000, seq=98_304, width=768),
        row("combine", "from_rows_adaptive", 10.0, prefill=1000),
        row("combine", "from_rows_adaptive", 30.0, prefill=1000, seq=98_304, width=768),
        row("builder", "row_loop_fixed", 60.0, prefill=1000, width=640),
        row("combine", "from_rows_fixed", 90.0, prefill=1000, width=640),
    ),
)


def costs(records=(HAND,), **settings):
    found = step_costs(check(**{"max_num_batched_tokens": 1000, "release": "0.30.0", **settings}).setup, records)
    return {(cost.step, cost.case): cost for cost in found}


def test_a_measured_cell_is_given_as_it_was_measured():
    cost = costs(max_model_len=70_000)["prefill", "typical"]
    assert (cost.rows, cost.max_seq_len, cost.width) == (1000, 32_768, 256)
    assert (cost.builder_us, cost.combine_us, cost.basis) == (5.0, 10.0, "measured")


def test_between_cells_the_time_lies_on_the_line_and_says_so():
    cost = costs(max_num_seqs=200)["decode", "typical"]
    assert cost.builder_us == pytest.approx(3.0)  # half way from 2 µs at 100 rows to 4 µs at 300
    assert cost.basis == "builder between 2 and 4 µs, as measured around it"


def test_the_worst_case_is_the_model_length():
    cost = costs(max_model_len=70_000)["prefill", "worst"]
    assert (cost.max_seq_len, cost.width) == (70_000, 640)  # ceil(546.9 / 128) × 128 = 640
    assert cost.combine_us == pytest.approx(10 + 20 * (640 - 256) / (768 - 256))


def test_the_combine_is_paid_in_each_c128a_layer_and_the_builder_once():
    cost = costs()["prefill", "typical"]
    assert cost.total_us("V4-Flash") == 5.0 + 20 * 10.0
    assert cost.total_us("V4-Pro") == 5.0 + 31 * 10.0


def test_a_decode_step_has_no_combine():
    cost = costs(max_num_seqs=100)["decode", "typical"]
    assert cost.combine_us is None and cost.total_us("V4-Pro") == 2.0


def test_a_fixed_width_takes_the_times_of_that_capacity_and_no_other():
    assert costs(release="0.28.0", max_model_len=70_000)["prefill", "typical"].combine_us == 90.0
    other = costs(release="0.28.0", max_model_len=1_048_576)["prefill", "typical"]
    assert other.combine_us is None and "was measured at 640 columns only" in other.basis


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"max_num_batched_tokens": 2000}, ("prefill", "typical")),
        ({"max_num_seqs": 400}, ("decode", "typical")),
        ({}, ("prefill", "worst")),
    ],
    ids=["more tokens", "more rows", "wider"],
)
def test_outside_the_measured_points_there_is_no_time_but_a_reason(settings, key):
    cost = costs(**settings)[key]
    assert cost.builder_us is None and cost.total_us("V4-Pro") is None
    assert cost.basis.startswith("not measured: ") and cost.records == ()


def test_a_short_model_length_has_one_case():
    assert set(costs(max_model_len=32_768)) == {("decode", "worst"), ("prefill", "worst")}


def test_a_row_that_cannot_hold_the_sequence_has_no_time():
    assert "cannot hold 1,048,576 tokens" in costs(capacity=7680)["prefill", "worst"].basis


def test_without_records_there_is_a_reason():
    assert (
        costs(records=())["prefill", "typical"].basis
        == "not measured: no record holds times of the builder (row_loop_adaptive)"
    )


def test_the_first_record_that_answers_is_used():
    narrow = Record("narrow", {"gpu": "another card"}, (row("builder", "row_loop_adaptive", 1.0, decode=512),))
    found = costs(records=(narrow, HAND), max_num_seqs=512)
    assert found["decode", "typical"].records == ("narrow, another card",)
    assert found["prefill", "typical"].records == ("hand, a card",)


def test_builder_and_combine_may_come_from_two_records():
    builder = Record("builder", {"gpu": "a card"}, tuple(row for row in HAND.rows if row["kernel"] == "builder"))
    combine = Record("combine", {"gpu": "a card"}, tuple(row for row in HAND.rows if row["kernel"] == "combine"))
    cost = costs(records=(builder, combine))["prefill", "typical"]
    assert (cost.builder_us, cost.combine_us) == (5.0, 10.0)
    assert cost.records == ("builder, a card", "combine, a card")


def test_a_builder_of_ones_own_takes_the_times_of_this_package():
    mine = Record("mine", {"gpu": "a card"}, (*HAND.rows, row("builder", "tiled", 1.5, prefill=1000)))
    own = {"release": None, "layout": "pitched", "policy": "pow2"}
    assert costs(records=(mine,), **own)["prefill", "typical"].builder_us == 1.5
    assert "no record holds times of the builder (tiled)" in costs(**own)["prefill", "typical"].basis


def test_cold_times_and_batches_of_mixed_lengths_are_left_out():
    rows = (
        {**row("builder", "row_loop_adaptive", 9.0, decode=512), "cache": "cold"},
        {**row("builder", "row_loop_adaptive", 8.0, decode=512), "cache": "warm", "short_seq_len": 4096},
        {**row("builder", "row_loop_adaptive", 7.0, decode=512), "cache": "warm", "short_seq_len": None},
    )
    assert costs(records=(Record("mine", {"gpu": "a card"}, rows),))["decode", "typical"].builder_us == 7.0


def test_the_run_of_the_pull_request():
    """31 × 13.2 + 6.5 µs at 32k and 31 × 90.6 + 62.3 at fixed width: the sheet's own figures."""
    sheet = [load("elsewhere")]
    now = costs(sheet, max_num_batched_tokens=8192)["prefill", "typical"]
    before = costs(sheet, max_num_batched_tokens=8192, release="0.26.0")["prefill", "typical"]
    assert now.total_us("V4-Pro") == pytest.approx(31 * 13.2 + 6.5)
    assert before.total_us("V4-Pro") == pytest.approx(31 * 90.6 + 62.3)
