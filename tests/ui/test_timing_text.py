"""The sentences of page 04 say what the figures say, with no more digits than they carry."""

import dataclasses

import pytest

from c128a.records import load
from c128a.ui import timing_cell, timing_floor, timing_overview, timing_parts, timing_text
from c128a.ui.timing_data import TimingCase
from c128a.ui.timing_runs import Run, gather
from tests.support import timings

ELSEWHERE = gather([load("elsewhere")])
OWN = gather([timings.builder_run(), timings.combine_run(), timings.host_run()])


def sample(us, p20, p80, cache="warm"):
    return {"us": us, "p20": p20, "p80": p80, "cache": cache}


@pytest.mark.parametrize(
    ("row", "shown"),
    [
        (sample(64.08, 63.9, 64.1), "64.1"),  # a spread of 0.2: the tenth carries
        (sample(6.123, 6.10, 6.12), "6.12"),
        (sample(6.123, 6.0, 7.0), "6.1"),
        (sample(16.43, 14.07, 21.21), "16"),
        (sample(0.494, 0.49, 0.50), "0.49"),  # the clock gives no thousandths
        (sample(0.494, 0.49, 0.50, "cold"), "0.5"),  # and, over ten launches, no hundredths
        (sample(209.83, 209.82, 209.84), "210"),  # three digits are enough
        (sample(38.0, 10.0, 900.0), "40"),
    ],
)
def test_a_time_is_shown_to_the_first_digit_of_half_its_spread(row, shown):
    assert timing_text.us(row) == shown


def test_a_ratio_is_no_finer_than_the_worse_of_its_times():
    exact, rough = sample(10.0, 9.999, 10.001), sample(3.0, 2.7, 3.3)
    assert timing_text.times(exact, sample(4.0, 3.999, 4.001)) == "2.50"
    assert timing_text.times(exact, rough) == "3.3"


def test_the_lead_tells_columns_trips_and_time_apart():
    assert timing_text.lead(TimingCase(OWN, 32_768)) == (
        "At **32,768 tokens** a row is 256 of 8,192 columns wide. For 8,192 prefill rows the row loop then takes "
        "**8.00 µs instead of 64.0**: 32 × fewer columns, 8 × fewer trips, **8.0 × less time**."
    )


def test_the_lead_names_the_recorded_length_it_speaks_of():
    assert "the nearest recorded run is at 131,072 tokens, 1,024 columns" in timing_text.lead(TimingCase(OWN, 40_000))
    assert "the nearest recorded run is at 32,768 tokens, the same width" in timing_text.lead(TimingCase(OWN, 20_000))


def test_the_lead_says_when_nothing_is_saved():
    lead = timing_text.lead(TimingCase(ELSEWHERE, 1_048_576))
    assert "nothing is saved" in lead and "61.9 µs" in lead and "2-D tiles (prototype) 64 µs" in lead


def test_evidence_names_card_versions_commit_and_command():
    text = timing_text.evidence(OWN.builder)
    for part in (
        "NVIDIA H200",
        "580.1",
        "2.11.0",
        "3.6.0",
        "aaaaaaaaaa",
        "python -m c128a.bench builder",
        "2026-11-29",
    ):
        assert part in text
    assert "SM clock" not in text
    clocked = dataclasses.replace(
        OWN.builder.record, provenance={**OWN.builder.record.provenance, "sm_clock_after": "1980 MHz"}
    )
    assert "driver 580.1, SM clock 1980 MHz at its end, torch" in timing_text.evidence(Run(clocked, OWN.builder.rows))
    assert "SM clock" not in timing_text.evidence(Run(clocked, OWN.host.rows)), "the host's time has another clock"
    assert text.startswith("Evidence") and not timing_text.evidence(ELSEWHERE.builder).startswith("Evidence")


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"model_len": 70_000}, "Model length 70,000"),
        ({"ratio": 4}, "Compress ratio 4"),
        ({"policy": "aligned"}, "Policy aligned"),
    ],
)
def test_what_the_runs_do_not_cover_is_noted(change, part):
    values = {"model_len": 1_048_576, "ratio": 128, "policy": "pow2"}
    assert timing_text.notes(TimingCase(OWN), values) == []
    (note,) = timing_text.notes(TimingCase(OWN), values | change)
    assert note.startswith(part)


def test_figures_from_elsewhere_and_missing_cold_runs_are_noted():
    values = {"model_len": 1_048_576, "ratio": 128, "policy": "pow2"}
    notes = timing_text.notes(TimingCase(ELSEWHERE, cache="cold"), values)
    assert "from elsewhere" in notes[0] and "No cold measurements" in notes[1]


def test_one_trip_is_no_unit_of_time():
    text = timing_text.trips_sentence(TimingCase(ELSEWHERE))
    assert "One trip takes 6.3 µs at 128 columns and 9.07 µs at 1,024" in text and "what a trip writes counts" in text
    assert "a trip costs the same, wide or not" in timing_text.trips_sentence(TimingCase(OWN))
    assert "at no width of one trip" in timing_text.trips_sentence(TimingCase(OWN, batch="one_long"))


def test_the_floors_of_the_chosen_cell_are_named():
    text = timing_text.bytes_sentence(TimingCase(OWN))
    assert "To fill the 8 MiB of these rows takes 2.00 µs" in text
    assert "the row loop takes 4.00 × that floor, 2-D tiles 2.00 ×" in text
    assert "An empty kernel takes 0.50 µs, one that only loads what a build must 1.00." in text


def test_three_ratios_are_three_numbers():
    said = timing_text.ratios_sentence(TimingCase(ELSEWHERE))
    assert "the width shrinks 32 ×, the trips 8 × and the row loop's time **9.9 ×**" in said
    assert "all ratios are 1" in timing_text.ratios_sentence(TimingCase(ELSEWHERE, 1_048_576))


def test_the_cell_s_sentence_needs_the_variants_it_speaks_of():
    assert "take 4.00 µs, without that 5.00; at the fixed width 60.0." in timing_cell.cell_sentence(TimingCase(OWN))
    assert "without a spread" in timing_cell.cell_sentence(TimingCase(ELSEWHERE))


def test_the_gain_of_the_tiles_is_the_geometric_mean_of_every_cell():
    assert "Over 13 recorded cells (warm L2) 2-D tiles take 2.00 × less time" in timing_overview.speedup_sentence(
        TimingCase(OWN)
    )
    # Baseline sheet: the only cell in which the prototype loses, 61.9 against 64.0.
    assert "In 1 of them they are slower: least 0.97 ×, for 8,192 prefill rows at 1,048,576 tokens" in (
        timing_overview.speedup_sentence(TimingCase(ELSEWHERE))
    )


def test_cells_that_miss_the_goal_are_counted():
    text = timing_floor.floor_sentence(TimingCase(OWN))
    assert "take 2.00 to 2.00 × of it" in text and "13 of 13 cells miss the goal" in text
    assert "All of them meet the goal" in timing_floor.floor_sentence(TimingCase(ELSEWHERE))


def test_the_combine_says_what_the_width_saves_and_what_the_form_saves():
    text = timing_parts.combine_sentence(TimingCase(OWN))
    assert "from 80.0 to 20.0 µs, 4.00 × less" in text
    assert "takes 2.50 × less time" in text and "8 cells; least 2.50 ×" in text
    assert "from 90.6 to 13.2 µs, 6.9 × less" in timing_parts.combine_sentence(TimingCase(ELSEWHERE))


def test_the_host_s_parts_and_what_is_left_of_them():
    text = timing_parts.host_sentence(TimingCase(OWN))
    assert "about 2 µs are the rest" in text  # 12 - 2 - 8
    assert "No host time of this package's build is recorded yet" in timing_parts.host_sentence(TimingCase(ELSEWHERE))


def test_the_command_times_the_chosen_cell():
    assert timing_text.command(TimingCase(OWN, 40_000, "p2048"))[0] == (
        "python -m c128a.bench builder --cell 0,2048,131072 --no-cold"
    )
    cold = gather([timings.builder_run(cold=True)])
    assert timing_text.command(TimingCase(cold, 32_768, "d1", "cold"))[0].endswith("--cell 1,0,32768")
    assert timing_text.command(TimingCase(OWN, batch="one_long"))[0] == "python -m c128a.bench builder"
