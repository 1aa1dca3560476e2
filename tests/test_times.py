"""Which rows of a record the account takes: warm, of one length, of the kernels it knows."""

import pytest

from c128a.measured import UnmeasuredError
from c128a.records import Record, load_all
from c128a.times import KernelTimes, groups, titled

CARD = {"gpu": "NVIDIA H200"}


def row(kernel="builder", variant="row_loop_adaptive", us=1.0, **fields):
    own = {"decode": 0, "prefill": 8192, "max_seq_len": 32_768, "width": 256, "cache": "warm"}
    return {"kernel": kernel, "variant": variant, "us": us, **own, **fields}


def times(*rows):
    return KernelTimes.of([Record("h200-run", CARD, rows)])


@pytest.mark.parametrize(
    "other",
    [
        {"cache": "cold"},
        {"short_seq_len": 4096},
        {"decode": 64},
        {"variant": "tiled"},
        {"kernel": "empty"},
    ],
    ids=["cold", "one-long", "mixed", "another-form", "another-kernel"],
)
def test_rows_of_another_kind_are_left_out(other):
    series = times(row(us=2.0, **other), row(us=6.5)).builder
    assert [point.us for point in series.points] == [6.5]


def test_decode_and_prefill_rows_are_told_apart():
    held = times(row(us=2.4, decode=64, prefill=0), row(us=6.5))
    assert [point.us for point in held.decode.points] == [2.4]
    assert [point.us for point in held.builder.points] == [6.5]


def test_records_of_a_group_answer_together_and_the_first_counts():
    builder = Record("h200-builder", CARD, (row(us=6.5), row(variant="row_loop_fixed", us=62.0, width=8192)))
    combine = Record(
        "h200-combine",
        CARD,
        (
            row("combine", "from_rows_adaptive", 13.0),
            row("combine", "from_rows_fixed", 90.0, width=8192),
            row("combine", "from_positions", 5.0),
        ),
    )
    again = Record("h200-later", CARD, (row(us=7.0),))
    held = KernelTimes.of([builder, combine, again])
    assert held.complete and held.title == "recorded here, NVIDIA H200"
    assert held.builder.at(8192, 32_768, 256).us == 6.5
    assert held.combine_from_positions.at(8192, 32_768, 256).us == 5.0
    assert list(groups([builder, combine, load_all()[-1]])) == ["recorded", "elsewhere"]


def test_a_group_that_lacks_a_kernel_is_not_offered():
    assert list(groups([Record("h200-builder", CARD, (row(),)), load_all()[-1]])) == ["elsewhere"]


def test_a_series_nobody_recorded_refuses():
    with pytest.raises(UnmeasuredError, match=r"decode builder \(recorded here, NVIDIA H200\): no record holds"):
        times(row()).decode.at(64, 32_768, 256)


def test_the_title_tells_figures_from_elsewhere_apart():
    assert titled([load_all()[-1]]) == "figures from elsewhere, NVIDIA H200"
