"""The step account: arithmetic by hand, refusals outside the measured points, ranges that follow the assumptions."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from c128a.account import (
    ASSUMPTIONS,
    MODELS,
    PR_RUN,
    REPORTED_GAIN,
    decode_step,
    gain_span,
    prefill_step,
    step_for_gain,
    step_us,
    throughput_gain,
)
from c128a.measured import Point, Series, UnmeasuredError
from c128a.records import load
from c128a.times import KernelTimes
from c128a.width import POLICIES

TIMES = KernelTimes.of([load("elsewhere")])
PRO, FLASH = MODELS["V4-Pro"], MODELS["V4-Flash"]


def test_models_have_the_layers_and_heads_of_the_paper():
    assert (FLASH.layers, FLASH.heads, FLASH.c128a_layers, FLASH.active_parameters) == (43, 64, 20, 13e9)
    assert (PRO.layers, PRO.heads, PRO.c128a_layers, PRO.active_parameters) == (61, 128, 31, 49e9)
    assert all("arXiv 2606.19348" in model.source for model in MODELS.values())


@pytest.mark.parametrize(
    ("model", "length", "builder", "combine"),
    [
        (PRO, 32_768, 62.3 - 6.5, 31 * (90.6 - 13.2)),
        (PRO, 131_072, 62.1 - 9.07, 31 * (97.9 - 40.2)),
        (PRO, 1_048_576, 0, 0),
        (FLASH, 32_768, 62.3 - 6.5, 20 * (90.6 - 13.2)),
    ],
    ids=["pro-32k", "pro-131k", "pro-1M", "flash-32k"],
)
def test_a_step_saves_once_in_the_builder_and_once_a_layer_in_the_combine(model, length, builder, combine):
    account = prefill_step(model, 8192, length, TIMES)
    assert {part.name: part.saved_us for part in account.parts} == pytest.approx(
        {"builder": builder, "combine": combine}
    )
    assert account.saved_us == pytest.approx(builder + combine)


@pytest.mark.parametrize(
    ("length", "before", "positions"),
    [(32_768, 62.3 + 31 * 90.6, 31 * 5.3), (131_072, 62.1 + 31 * 97.9, 31 * 12.9)],
    ids=["32k", "131k"],
)
def test_rows_from_positions_leave_the_builder_nothing_to_do(length, before, positions):
    account = prefill_step(PRO, 8192, length, TIMES)
    assert account.total_us("from_positions") == pytest.approx(positions)
    assert account.saved_from_positions_us == pytest.approx(before - positions)
    assert account.parts[0].from_positions.basis == "not launched"


def test_a_decode_step_saves_in_the_builder_alone():
    account = decode_step(PRO, 64, 32_768, TIMES)
    assert [part.name for part in account.parts] == ["builder"]
    assert account.saved_us == pytest.approx(6.5 - 2.4)


def test_the_fixed_policy_saves_nothing():
    assert prefill_step(PRO, 8192, 32_768, TIMES, policy="fixed").saved_us == 0


def test_from_half_the_model_length_on_the_change_saves_nothing():
    assert prefill_step(PRO, 8192, 524_415, TIMES).saved_us > 0
    assert prefill_step(PRO, 8192, 524_416, TIMES).saved_us == 0


@given(length=st.integers(32_768, 1_048_576), policy=st.sampled_from(POLICIES))
def test_a_narrower_row_never_costs_more_than_the_fixed_one(length, policy):
    account = prefill_step(PRO, 8192, length, TIMES, policy=policy)
    assert all(part.saved_us >= -1e-9 for part in account.parts)


@given(length=st.integers(32_768, 1_048_576))
def test_the_finer_policy_never_saves_less(length):
    aligned, pow2 = (prefill_step(PRO, 8192, length, TIMES, policy=p) for p in ("aligned", "pow2"))
    assert aligned.saved_us >= pow2.saved_us - 1e-6


@pytest.mark.parametrize(
    ("tokens", "length", "capacity", "message"),
    [
        (8192, 8_192, 8192, "length of 8,192 was not measured at 8,192 tokens; measured: 32,768 to 1,048,576"),
        (2048, 32_768, 8192, "2,048 tokens were not measured; measured: only 8,192 tokens"),
        (16_384, 32_768, 8192, r"combine from positions .*16,384 tokens were not measured; measured: 2,048 to 8,192"),
        (8192, 32_768, 4096, "capacity is 4,096; .* was measured at .*8192.* only"),
    ],
    ids=["shorter", "fewer-tokens", "more-tokens", "another-capacity"],
)
def test_outside_the_measured_points_the_account_refuses_and_names_the_range(tokens, length, capacity, message):
    with pytest.raises(UnmeasuredError, match=message):
        prefill_step(PRO, tokens, length, TIMES, capacity=capacity)


def test_a_time_between_points_says_which_points():
    account = prefill_step(PRO, 8192, 65_536, TIMES)
    before = account.parts[1].before
    assert before.us == pytest.approx(90.6 + (97.9 - 90.6) / 3)  # a third of the way from 32k to 131k
    assert before.interpolated and "90.6 µs" in before.basis and "97.9 µs" in before.basis


def test_slack_above_the_entries_costs_time_between_the_tight_and_the_full_width():
    account = prefill_step(PRO, 8192, 32_896, TIMES)  # 257 entries in 512 columns
    tight = prefill_step(PRO, 8192, 32_768, TIMES)
    assert tight.parts[1].after.us < account.parts[1].after.us < account.parts[1].before.us


def test_a_series_draws_straight_lines_in_tokens_too():
    series = Series("demo", (Point(2048, 8192, 128, 4.0), Point(8192, 8192, 128, 10.0)))
    assert series.at(5120, 8192, 128).us == pytest.approx(7.0)
    assert len(series.at(5120, 8192, 128).points) == 2
    assert series.at(2048, 8192, 128).basis == "measured"


def test_a_series_without_points_says_that_no_record_holds_it():
    with pytest.raises(UnmeasuredError, match="demo: no record holds a time of it"):
        Series("demo", ()).at(1, 1, 1)


def test_a_step_is_active_parameters_times_tokens_times_two_over_the_throughput():
    assert step_us(PRO, 8192, 3.2) == pytest.approx(49e9 * 8192 * 2 / 3.2e15 * 1e6)
    assert step_us(FLASH, 8192, 3.2) == pytest.approx(13e9 * 8192 * 2 / 3.2e15 * 1e6)


def test_the_reported_one_percent_lies_in_the_range_for_v4_pro_as_it_was_run():
    account = prefill_step(MODELS[PR_RUN.model], PR_RUN.tokens, PR_RUN.max_seq_len, TIMES)
    span = gain_span(account, ASSUMPTIONS)
    assert span.holds(REPORTED_GAIN)
    assert 0.008 < span.value < 0.010
    assert account.parts[1].saved_us / account.saved_us > 0.97  # nearly all of it in the combine


def test_step_for_gain_inverts_throughput_gain():
    assert throughput_gain(2455.2, step_for_gain(2455.2, 0.01, 0.9), 0.9) == pytest.approx(0.01)


def test_a_step_length_of_the_users_own_replaces_the_estimate():
    account = prefill_step(PRO, 8192, 32_768, TIMES)
    span = gain_span(account, ASSUMPTIONS, step_length_us=500_000)
    assert span.high == pytest.approx(1 / (1 - 2455.2 / 500_000) - 1)
    assert span.low == pytest.approx(1 / (1 - 0.5 * 2455.2 / 500_000) - 1)


def test_editing_an_assumption_moves_the_range():
    account = prefill_step(PRO, 8192, 32_768, TIMES)
    slower = {**ASSUMPTIONS, "pflops": replace(ASSUMPTIONS["pflops"], value=0.5, low=0.4)}
    assert gain_span(account, slower).value < gain_span(account, ASSUMPTIONS).value
    assert gain_span(account, slower).low < gain_span(account, ASSUMPTIONS).low
    assert gain_span(account, slower).high == gain_span(account, ASSUMPTIONS).high


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: throughput_gain(10, 10), "cannot save that much"),
        (lambda: throughput_gain(1, 10, 1.5), "prefill_share is 1.5"),
        (lambda: step_us(PRO, 8192, 0), "both must be positive"),
    ],
    ids=["all-of-the-step", "share-over-one", "no-throughput"],
)
def test_impossible_numbers_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
