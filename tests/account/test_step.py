"""The account of a step: arithmetic by hand, refusals outside the measured points, ranges from the assumptions."""

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from c128a.account.step import (
    PFLOPS,
    REPORTED_GAIN,
    NoAccountError,
    Run,
    Span,
    Times,
    decode_step,
    gain,
    prefill_step,
    saved_us,
    times_of,
)

TIMES = times_of("elsewhere")


def total(run, form="adaptive"):
    return sum(saved_us(prefill_step(run, TIMES), form).values())


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
    assert account["launches"].tolist() == [1, 31, 1, 31, 0, 31]  # from positions the builder has nothing left to do
    assert account["us"].tolist() == pytest.approx([62.3, 31 * 90.6, 6.5, 31 * 13.2, 0, 31 * 5.3])
    assert account["share"].iloc[1] == pytest.approx(31 * 90.6 / 250_880)
    assert account["basis"].tolist() == ["measured"] * 4 + ["not launched", "measured"]


def test_a_decode_step_saves_in_the_builder_alone():
    assert saved_us(decode_step(64, Run(), TIMES)) == pytest.approx({"builder": 6.5 - 2.4})


def test_the_fixed_policy_and_contexts_over_half_the_model_length_save_nothing():
    assert total(Run(policy="fixed")) == total(Run(max_seq_len=524_416)) == 0 < total(Run(max_seq_len=524_415))


@given(length=st.integers(32_768, 1_048_576))
def test_a_narrower_row_never_costs_more(length):
    aligned, pow2, fixed = (total(Run(max_seq_len=length, policy=policy)) for policy in ("aligned", "pow2", "fixed"))
    assert aligned >= pow2 - 1e-6 and pow2 >= fixed - 1e-6 == -1e-6


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


def test_a_time_between_points_says_which_points():
    time = TIMES.at("combine", "from_rows_fixed", "prefill", 8192, 65_536, 8192)
    assert time.us == pytest.approx(90.6 + (97.9 - 90.6) / 3)  # a third of the way from 32k to 131k
    assert time.measured == (90.6, 97.9) and "90.6" in time.basis


def test_slack_above_the_entries_costs_time_between_the_tight_and_the_full_width():
    tight, slack = (total(Run(max_seq_len=length)) for length in (32_768, 32_896))  # 256 in 256, 257 in 512 columns
    assert 0 < slack < tight


def test_a_step_is_active_parameters_times_tokens_times_two_over_the_throughput():
    assert Run("V4-Pro").step_us(3.2) == pytest.approx(49e9 * 8192 * 2 / 3.2e15 * 1e6)
    assert Run("V4-Flash", tokens=100).step_us(2) == pytest.approx(13e9 * 100 * 2 / 2e15 * 1e6)


def test_a_gain_is_what_a_step_gets_shorter_in_the_share_of_prefill_steps():
    assert gain(Run(measured_step_us=100.0, prefill_share=Span(0.5, 0.5, 1)), 20) == pytest.approx(
        (1 / 9, 1 / 9, 1 / 4)
    )


@pytest.mark.parametrize("source", ["recorded", "elsewhere"])
def test_the_reported_one_percent_lies_in_the_range_for_v4_pro_as_it_was_run(source):
    saved = saved_us(prefill_step(Run(), times_of(source)))
    span = gain(Run(), sum(saved.values()))
    assert span.low < REPORTED_GAIN < span.high and 0.008 < span.value < 0.010
    assert saved["combine"] > 10 * saved["builder"]


def test_an_assumption_moves_its_end_of_the_range():
    usual, slower = gain(Run(), 2455.2), gain(Run(pflops=Span(0.4, 0.5, PFLOPS.high)), 2455.2)
    assert slower.low < usual.low and slower.value < usual.value and slower.high == usual.high


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
    """A row of the record frame: the adaptive builder on 8,192 prefill rows of 256 columns, but for these fields."""
    own = {"record": "h200-run", "source": "recorded", "gpu": "NVIDIA H200", "kernel": "builder", "cache": "warm",
           "variant": "row_loop_adaptive", "decode": 0, "prefill": 8192, "max_seq_len": 32_768, "short_seq_len": 0,
           "width": 256, "us": us}  # fmt: skip
    return own | fields


@pytest.mark.parametrize(
    "other",
    [{"cache": "cold"}, {"short_seq_len": 4096}, {"decode": 64}, {"variant": "tiled"}, {"kernel": "empty"}, {}],
    ids=["cold", "one-long", "mixed", "another-form", "another-kernel", "measured-again"],
)
def test_rows_of_another_kind_are_left_out_and_the_first_of_two_counts(other):
    rows = [row(2.0, **other), row(6.5)] if other else [row(6.5), row(2.0)]
    assert Times(pd.DataFrame(rows)).at("builder", "row_loop_adaptive", "prefill", 8192, 32_768, 256).us == 6.5


def test_times_lie_on_a_line_in_tokens_too_and_decode_rows_are_told_apart():
    frame = pd.DataFrame([row(10.0), row(4.0, prefill=2048), row(1.0, decode=4096, prefill=0)])
    times = Times(frame)
    assert times.at("builder", "row_loop_adaptive", "prefill", 5120, 32_768, 256).us == pytest.approx(7.0)
    assert times.at("builder", "row_loop_adaptive", "decode", 4096, 32_768, 256).us == 1.0
    with pytest.raises(NoAccountError, match="no record holds"):
        times.at("combine", "from_rows_adaptive", "prefill", 8192, 32_768, 256)
