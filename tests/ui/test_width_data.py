"""The numbers of page 01 (widths of facts.md, section 4, and counts by hand)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from c128a.ui import width_data
from c128a.ui.width_data import WidthCase
from c128a.width import POLICIES

LENGTHS = st.integers(1, 1_048_576)


@pytest.mark.parametrize(
    ("seq", "model_len", "needed", "width", "held"),
    [
        (0, 1_048_576, 0, 128, (0, 16_511)),
        (32_768, 1_048_576, 256, 256, (16_512, 32_895)),
        (32_896, 1_048_576, 257, 512, (32_896, 65_663)),
        (32_896, 33_792, 257, 384, (32_896, 33_792)),
        (524_416, 1_048_576, 4097, 8192, (524_416, 1_048_576)),
    ],
)
def test_a_case_states_its_width_and_the_lengths_that_share_it(seq, model_len, needed, width, held):
    case = WidthCase(seq, model_len)
    assert (case.needed, case.width, case.held, case.fits) == (needed, width, held, True)


def test_half_of_all_lengths_build_the_whole_capacity_at_one_million_tokens():
    case = WidthCase()
    assert case.full_from == 524_416
    # 1,048,576 - 524,416 + 1 of 1,048,577 lengths
    assert case.full_share == 524_161 / 1_048_577


def test_a_capacity_of_7680_does_not_fit_one_million_tokens():
    case = WidthCase(1_048_576, 980_224)
    assert (case.capacity, case.needed, case.fits) == (7680, 8192, False)


@given(LENGTHS, st.sampled_from((4, 128)), st.sampled_from(POLICIES))
def test_the_ranges_tile_the_lengths_up_to_the_model_length(model_len, ratio, policy):
    table = width_data.reach(model_len, ratio, policy)
    assert table["first"].iloc[0] == 0 and table["last"].iloc[-1] == model_len
    assert (table["first"].iloc[1:].values == table["last"].iloc[:-1].values + 1).all()
    assert table["share"].sum() == pytest.approx(1)


@given(LENGTHS, LENGTHS, st.sampled_from(POLICIES))
def test_the_table_and_the_case_agree_on_the_width(seq, model_len, policy):
    case = WidthCase(min(seq, model_len), model_len, policy=policy)
    table = width_data.reach(model_len, 128, policy)
    found = table[(table["first"] <= case.seq) & (case.seq <= table["last"])]
    assert found["width"].tolist() == [case.width]


@pytest.mark.parametrize(("ratio", "least", "most"), [(128, 64, 64), (4, 64, 128)])
def test_a_curve_is_thinned_only_where_its_steps_are_too_many(ratio, least, most):
    curve = width_data.curves(1_048_576, ratio)
    aligned = curve[curve["policy"] == "aligned"]["width"].drop_duplicates()
    assert least <= len(aligned) <= most  # of 64 widths all are drawn, of 2,048 no more than a screen can show
    assert aligned.iloc[-1] == 1_048_576 // ratio  # the last step is kept


def test_pads_are_the_share_of_the_row_past_the_needed_columns():
    curve = width_data.curves(1_048_576, 128)
    at = curve[(curve["policy"] == "pow2") & (curve["seq"] == 32_896)].iloc[0]
    assert (at["width"], at["needed"], at["pads"]) == (512, 257, 1 - 257 / 512)


def test_bytes_are_rows_by_columns_by_four():
    table = width_data.step_bytes(WidthCase(32_896, rows=8192)).set_index("policy")["bytes"]
    assert table.to_dict() == {"fixed": 268_435_456, "pow2": 16_777_216, "aligned": 12_582_912}


def test_trips_shrink_less_than_columns_where_a_trip_is_wider_than_the_row():
    table = width_data.trips(WidthCase(32_768)).set_index("block_size")
    assert table.loc[256].tolist() == [32, 1, 32]
    assert table.loc[1024].tolist() == [8, 1, 8]
    assert table.loc[8192].tolist() == [1, 1, 1]
