"""The account of a step and the costs of a deployment: worked out by hand, refused outside the measured points."""

import json

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c128a.account.step import (
    PFLOPS,
    REPORTED_GAIN,
    SOURCES,
    NoAccountError,
    Run,
    Span,
    Times,
    fixed_and_adaptive,
    gain,
    prefill_step,
    saved_us,
    step_costs,
    times_faster,
    times_of,
)
from c128a.bench import records

TIMES = times_of("elsewhere")


def total(run, source="elsewhere"):
    return sum(saved_us(prefill_step(run, times_of(source))).values())


@pytest.mark.parametrize(
    ("model", "length", "builder", "combine"),
    [
        ("V4-Pro", 32_768, 62.3 - 6.5, 31 * (90.6 - 13.2)),
        ("V4-Pro", 131_072, 62.1 - 9.07, 31 * (97.9 - 40.2)),
        ("V4-Pro", 1_048_576, 0, 0),
        ("V4-Flash", 32_768, 62.3 - 6.5, 20 * (90.6 - 13.2)),
    ],
    ids=["pro-32k", "pro-131k", "pro-1M", "flash-32k"],
)
def test_a_step_saves_once_in_the_builder_and_once_a_layer_in_the_combine(model, length, builder, combine):
    account = prefill_step(Run(model, max_seq_len=length), TIMES)
    assert saved_us(account) == pytest.approx({"builder": builder, "combine": combine})


def test_the_parts_of_a_step_name_launches_share_and_basis():
    account = prefill_step(Run(), TIMES)
    # From positions the builder has nothing left to do, and the rows of all layers can be made once.
    assert account["launches"].tolist() == [1, 31, 1, 31, 0, 31, 0, 1]
    assert account["us"].tolist() == pytest.approx([62.3, 31 * 90.6, 6.5, 31 * 13.2, 0, 31 * 5.3, 0, 5.3])
    assert account["share"].iloc[1] == pytest.approx(31 * 90.6 / 250_880)
    assert account["basis"].tolist() == ["measured"] * 4 + ["not launched", "measured"] * 2


def test_the_builder_of_a_decode_step_at_the_fixed_and_at_the_adaptive_width():
    times = fixed_and_adaptive(TIMES, "builder", "row_loop", "decode", 64, Run())
    assert [time.us for time in times] == [6.5, 2.4]


def test_the_fixed_policy_and_contexts_over_half_the_model_length_save_nothing():
    assert total(Run(policy="fixed")) == total(Run(max_seq_len=524_416)) == 0 < total(Run(max_seq_len=524_415))


@settings(max_examples=30)
@given(length=st.integers(32_768, 1_048_576))
def test_a_narrower_row_never_costs_more(length):
    aligned, pow2, fixed = (total(Run(max_seq_len=length, policy=policy)) for policy in ("aligned", "pow2", "fixed"))
    assert aligned >= pow2 - 1e-6 and pow2 >= fixed - 1e-6 == -1e-6


def test_slack_above_the_entries_costs_time_between_the_tight_and_the_full_width():
    tight, slack = (total(Run(max_seq_len=length)) for length in (32_768, 32_896))  # 256 in 256, 257 in 512 columns
    assert 0 < slack < tight


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"max_seq_len": 8_192}, "at 8,192 tokens of context; measured: 32,768 to 1,048,576"),
        ({"tokens": 2048}, "at 2,048 tokens a step; measured: 8,192$"),
        ({"tokens": 16_384}, "at 16,384 tokens a step; measured"),
        ({"capacity": 4096}, "no record holds times of .* 4,096 columns"),
    ],
    ids=["shorter", "fewer-tokens", "more-tokens", "another-capacity"],
)
def test_outside_the_measured_points_there_is_no_account_but_the_measured_range(changed, message):
    with pytest.raises(NoAccountError, match=message):
        prefill_step(Run(**changed), TIMES)


def test_a_gain_is_what_a_step_gets_shorter_in_the_share_of_prefill_steps():
    # A step is active parameters × tokens × 2 flop long, over the throughput, unless it was measured.
    assert Run("V4-Flash", tokens=100).step_us(2) == pytest.approx(13e9 * 100 * 2 / 2e15 * 1e6)
    measured = Run(measured_step_us=100.0, prefill_share=Span(0.5, 0.5, 1))
    assert gain(measured, 20) == pytest.approx((1 / 9, 1 / 9, 1 / 4))
    usual, slower = gain(Run(), 2455.2), gain(Run(pflops=Span(0.4, 0.5, PFLOPS.high)), 2455.2)
    assert slower.low < usual.low and slower.value < usual.value and slower.high == usual.high


@pytest.mark.parametrize("source", SOURCES)
def test_the_reported_one_percent_lies_in_the_range_for_v4_pro_as_it_was_run(source):
    span = gain(Run(), total(Run(), source))
    assert span.low < REPORTED_GAIN < span.high and 0.008 < span.value < 0.010


def test_the_cold_regime_takes_its_own_rows_and_those_without_overlap():
    overlapping, alone = row(2.0, cache="cold", variant="tiled"), row(3.0, cache="cold", variant="tiled_serial")
    times = Times(pd.DataFrame([row(1.0, variant="tiled"), overlapping, alone, row(4.0, cache="cold")]), "cold")
    assert times.at("builder", "tiled", "prefill", 1000, 32_768, 256).us == 3.0
    assert times.at("builder", "row_loop_adaptive", "prefill", 1000, 32_768, 256).us == 4.0
    assert set(times_of("cold").rows["cache"]) == {"cold"}


@pytest.mark.parametrize(("cache", "overlap"), [("cold", False), ("warm", True)])
def test_times_faster_divides_the_times_of_one_regime(cache, overlap):
    ratios = times_faster("h200-builder", "tiled", "row_loop_adaptive", cache=cache, overlap=overlap)
    rows = records.rows(record="h200-builder", cache=cache, layout="packed", cell="1+0@32768")
    us = dict(zip(rows["variant"], rows["us"], strict=True))
    assert ratios["1+0@32768"] == us["row_loop_adaptive"] / us["tiled" if overlap else "tiled_serial"]
    assert len(ratios) == 34


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gain(Run(measured_step_us=10.0), 10), "cannot save"),
        (lambda: Run(prefill_share=Span(0, 1, 1.5)), "prefill_share is .*1.5"),
        (lambda: Run(pflops=Span(0, 1, 2)), "pflops .* must be positive"),
        (lambda: Run(tokens=0), "tokens is 0"),
    ],
    ids=["all-of-the-step", "share-over-one", "no-throughput", "no-tokens"],
)
def test_impossible_numbers_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def row(us, **fields):
    """A row of the record frame: the adaptive builder on 1,000 prefill rows of 256 columns, but for these fields."""
    own = {"record": "hand", "source": "recorded", "gpu": "a card", "kernel": "builder", "variant": "row_loop_adaptive"}
    own |= {"cache": "warm", "decode": 0, "prefill": 1000, "max_seq_len": 32_768, "short_seq_len": 0, "width": 256}
    return own | fields | {"us": us}


COMBINE = {"kernel": "combine", "record": "other"}
NOT_MEASURED = {"builder_us": None, "V4-Pro": None, "records": ""}
HAND = [
    row(5.0),
    row(25.0, max_seq_len=98_304, width=768),
    row(2.0, decode=100, prefill=0),
    row(4.0, decode=300, prefill=0),
    row(60.0, variant="row_loop_fixed", width=640),
    row(1.5, variant="tiled"),
    row(10.0, variant="from_rows_adaptive", **COMBINE),
    row(30.0, variant="from_rows_adaptive", max_seq_len=98_304, width=768, **COMBINE),
    row(90.0, variant="from_rows_fixed", width=640, **COMBINE),
]


@pytest.mark.parametrize(
    "other",
    [{"cache": "cold"}, {"short_seq_len": 4096}, {"decode": 64}, {"variant": "tiled"}, {"kernel": "empty"}],
    ids=["cold", "one-long", "mixed", "another-form", "another-kernel"],
)
def test_rows_of_another_kind_are_left_out(other):
    times = Times(pd.DataFrame([row(2.0, **other), row(6.5)]))
    assert times.at("builder", "row_loop_adaptive", "prefill", 1000, 32_768, 256).us == 6.5


def test_of_a_cell_that_was_measured_twice_the_first_row_counts_and_times_lie_on_a_line_in_tokens_too():
    times = Times(pd.DataFrame([row(10.0), row(4.0, prefill=400), row(7.5)]))
    assert times.at("builder", "row_loop_adaptive", "prefill", 700, 32_768, 256).us == pytest.approx(7.0)
    between = TIMES.at("combine", "from_rows_fixed", "prefill", 8192, 65_536, 8192)
    assert between.us == pytest.approx(90.6 + (97.9 - 90.6) / 3)  # a third of the way from 32k to 131k
    assert between.measured == (90.6, 97.9) and "90.6" in between.basis


def costs(*sources, **settings):
    usual = {"max_model_len": 70_000, "decode_rows": 100, "prefill_tokens": 1000, "policy": "pow2", "capacity": 640}
    frames = [Times(pd.DataFrame(rows)) for rows in (*sources, HAND)]
    table = step_costs(**(usual | settings), sources=frames)
    return {(cost["step"], cost["case"]): cost for cost in table.to_dict("records")}


@pytest.mark.parametrize(
    ("settings", "key", "expected"),
    [
        (
            {},
            ("prefill", "typical"),
            {"rows": 1000, "max_seq_len": 32_768, "width": 256, "builder_us": 5.0, "combine_us": 10.0}
            | {"V4-Flash": 5.0 + 20 * 10.0, "V4-Pro": 5.0 + 31 * 10.0, "basis": "measured"}
            | {"records": "hand, a card; other, a card"},
        ),
        # Half way from 2 µs at 100 rows to 4 µs at 300.
        ({"decode_rows": 200}, ("decode", "typical"), {"combine_us": None, "builder_us": 3.0, "V4-Pro": 3.0}),
        # ceil(546.9 / 128) × 128 = 640 columns.
        ({}, ("prefill", "worst"), {"max_seq_len": 70_000, "width": 640, "combine_us": 10 + 20 * (640 - 256) / 512}),
        ({"policy": "fixed"}, ("prefill", "typical"), {"combine_us": 90.0}),
        ({"policy": "fixed", "capacity": 8192}, ("prefill", "typical"), {"combine_us": None}),
        ({"released": False}, ("prefill", "typical"), {"builder_us": 1.5}),
        ({"prefill_tokens": 2000}, ("prefill", "typical"), NOT_MEASURED),
        ({"decode_rows": 400}, ("decode", "typical"), NOT_MEASURED),
        ({"max_model_len": 200_000, "capacity": 1664}, ("prefill", "worst"), NOT_MEASURED),
        ({"capacity": 512}, ("prefill", "worst"), NOT_MEASURED),
        ({"released": False}, ("decode", "typical"), NOT_MEASURED),
    ],
    ids=lambda part: " ".join(part)[:40],
)
def test_a_step_costs_what_was_measured_and_where_nothing_was_it_has_no_cost(settings, key, expected):
    cost = costs(**settings)[key]
    assert {name: cost[name] for name in expected} == pytest.approx(expected)
    assert cost["basis"].startswith("not measured: ") == (cost["builder_us"] is None)
    json.dumps(cost)


def test_the_first_source_that_answers_is_used_kernel_by_kernel_and_the_basis_says_what_was_measured():
    assert "8,192 columns" in costs(policy="fixed", capacity=8192)["prefill", "typical"]["basis"]
    found = costs([row(1.0, record="narrow")], decode_rows=200)
    assert "between 2 and 4 µs" in found["decode", "typical"]["basis"]
    assert found["decode", "typical"]["records"] == "hand, a card"
    assert (found["prefill", "typical"]["builder_us"], found["prefill", "typical"]["combine_us"]) == (1.0, 10.0)


def test_made_once_a_prefill_step_costs_one_combine_whatever_the_model():
    usual = {"max_model_len": 32_768, "decode_rows": 64, "prefill_tokens": 8192, "policy": "pow2", "capacity": 8192}
    found = step_costs(**usual, sources=[TIMES]).set_index("step")["once_us"].to_dict()
    assert found == {"decode": None, "prefill": 5.3}
