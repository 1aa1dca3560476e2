"""Facts behind the claims about width, against hand arithmetic."""

import pytest

from c128a.claims import Setting
from c128a.claims.widths import CLAIMS

FACTS = {claim.key: claim.gather for claim in CLAIMS}


@pytest.fixture(scope="module")
def setting():
    return Setting.default("elsewhere")


def test_columns_trips_and_time_shrink_by_three_different_factors(setting):
    facts = FACTS["loop_32"](setting)
    assert facts == {"columns": (8192, 256), "trips": (8, 1), "us": (62.3, 6.5)}


def test_three_of_seven_widths_take_one_trip_though_they_are_narrower_than_a_trip(setting):
    assert FACTS["proportional"](setting)["trips"] == {128: 1, 256: 1, 512: 1, 1024: 1, 2048: 2, 4096: 4, 8192: 8}


def test_the_cap_is_silent_where_the_capacity_is_too_small(setting):
    facts = FACTS["empty_and_odd"](setting)
    assert facts["narrowest"] == 128
    assert (1_048_576, 7680, 7680) in facts["too_narrow"]  # needs 8,192
    assert not [case for case in facts["too_narrow"] if case[1] == 8192]


def test_powers_of_two_alone_would_be_read_past_their_end(setting):
    facts = FACTS["why_128"](setting)
    # Lengths of 1 to 64 entries get a row of at most 64 columns, and a reader of 128 at a time takes 128.
    assert facts["reads_past_without"] == 64
    assert facts["reads_past"] == facts["not_128"] == 0


def test_the_constant_is_the_one_the_policy_uses(setting):
    assert FACTS["constant"](setting)["defined"] == 128


def test_the_builder_refuses_what_the_formula_cuts_off(setting):
    assert FACTS["empty_and_odd"](setting)["builder"] == {"asked": 4, "refused": 4}
