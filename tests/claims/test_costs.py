"""Facts behind the claims about cost, against arithmetic on the figures of the sheets."""

from dataclasses import replace

import pytest

from c128a.account import ASSUMPTIONS, MODELS
from c128a.claims import Setting
from c128a.claims.costs import CLAIMS

CLAIM = {claim.key: claim for claim in CLAIMS}


@pytest.fixture(scope="module")
def setting():
    return Setting.default("elsewhere")


def test_nearly_all_of_the_saving_is_in_the_prefill_combine(setting):
    saved = CLAIM["where"].gather(setting)["saved_us"]
    assert saved["decode step: builder"] == pytest.approx(6.5 - 2.4)
    assert saved["decode step: attention"] == pytest.approx(31 * (57.07 - 57.03))
    assert saved["prefill step: builder"] == pytest.approx(62.3 - 6.5)
    assert saved["prefill step: combine"] == pytest.approx(31 * (90.6 - 13.2))


def test_the_first_token_gains_what_its_prefill_step_saves(setting):
    facts = CLAIM["first_token"].gather(setting)
    assert facts["value"] == pytest.approx(2455.2 / 250_880)
    assert facts["step_for_claim_us"] == pytest.approx(245_520)


def test_a_measured_step_length_replaces_the_estimate(setting):
    facts = CLAIM["first_token"].gather(replace(setting, step_length_us=500_000.0))
    assert facts["low"] == facts["high"] == pytest.approx(2455.2 / 500_000)


def test_a_context_nobody_measured_is_not_judged(setting):
    for key in ("throughput", "first_token"):
        claim = CLAIM[key]
        verdict = claim.judge(claim.gather(replace(setting, max_seq_len=8192)))
        assert verdict.level == "not checked"
        assert "measured: 32,768 to 1,048,576" in verdict.because


def test_at_a_million_tokens_the_one_percent_does_not_hold(setting):
    claim = CLAIM["throughput"]
    assert claim.judge(claim.gather(replace(setting, max_seq_len=1_048_576))).level == "does not hold"


def test_a_slow_server_hides_the_gain(setting):
    slow = {**ASSUMPTIONS, "pflops": replace(ASSUMPTIONS["pflops"], value=0.4, low=0.2, high=0.8)}
    claim = CLAIM["throughput"]
    assert claim.judge(claim.gather(replace(setting, assumptions=slow))).level == "does not hold"


def test_the_flash_model_saves_in_twenty_layers(setting):
    facts = CLAIM["throughput"].gather(replace(setting, model=MODELS["V4-Flash"]))
    assert facts["parts"]["combine"] == pytest.approx(20 * (90.6 - 13.2))


def test_long_contexts_keep_their_times_and_start_at_half_of_the_range(setting):
    facts = CLAIM["long"].gather(setting)
    assert facts["full_from"] == 524_416
    assert facts["us"] == {"builder": (62.1, 61.9), "combine": (210.6, 210.6)}


def test_the_worst_measured_cell_is_1024_decode_rows_at_a_million_tokens(setting):
    ratios = CLAIM["regression"].gather(setting)["ratios"]
    assert max(ratios, key=ratios.__getitem__) == (1024, 0, 1_048_576)
    assert max(ratios.values()) == pytest.approx(19.09 / 19.0)
    assert len(ratios) == 14
