"""Page 04 picks the right run and the right cell, from records of this repository and from those of elsewhere."""

from dataclasses import replace

import pytest

from c128a.records import Record, load
from c128a.ui import timing_data
from c128a.ui.timing_data import TimingCase, floor_us
from c128a.ui.timing_runs import BATCHES, Run, floor_scale, gather
from tests.support import timings

ELSEWHERE = load("elsewhere")
OWN = [timings.builder_run(), timings.combine_run(), timings.host_run()]


def test_this_repository_s_own_run_goes_before_the_figures_from_elsewhere():
    runs = gather([*OWN, ELSEWHERE])
    assert [run.record.name for run in (runs.builder, runs.combine, runs.host)] == [
        "h200-builder",
        "h200-combine",
        "h200-host",
    ]


def test_a_sheet_that_was_not_recorded_here_comes_from_elsewhere():
    runs = gather([OWN[0], ELSEWHERE])
    assert runs.builder.record.name == "h200-builder" and runs.combine.record.elsewhere and runs.host.record.elsewhere


def test_of_own_runs_the_fullest_counts_and_of_equals_the_first():
    short = Record("a-short-one", timings.facts("builder"), OWN[0].rows[:8])
    again = replace(OWN[0], name="h200-builder-second")
    assert gather([short, OWN[0], again, ELSEWHERE]).builder.record.name == "h200-builder"


def test_records_without_builder_rows_are_refused_by_name():
    with pytest.raises(ValueError, match=r"h200-host.*none of them holds builder rows"):
        gather([OWN[2]])


def test_figures_from_elsewhere_get_the_bytes_and_trips_of_their_width():
    cell = gather([ELSEWHERE]).builder.cell("d1024", 1_048_576, "warm")
    assert cell["row_loop_adaptive"]["bytes"] == 1024 * 8192 * 4 and cell["row_loop_adaptive"]["trips"] == 8
    assert cell["tiled"]["forerunner"] and cell["tiled"]["trips"] is None
    assert cell["tiled"]["floor_scale"] == 1.5  # full decode rows: half a table entry for each cell (baseline sheet)
    assert cell["empty"]["us"] == 0.82  # timed once, for all cells


def test_a_cell_that_stands_on_two_sheets_shows_the_figure_of_its_own_sheet():
    cell = gather([ELSEWHERE]).builder.cell("p8192", 32_768, "warm")
    assert cell["row_loop_adaptive"]["us"] == 6.3  # 6.5 on the sheet of consumers
    combine = gather([ELSEWHERE]).combine.cell("p8192", 131_072, "warm")
    assert (combine["from_rows_adaptive"]["us"], combine["from_rows_fixed"]["us"]) == (40.5, 97.9)


@pytest.mark.parametrize(
    ("seq", "at"),
    [
        (32_768, 32_768),
        (20_000, 32_768),  # the same 256 columns
        (0, 4_096),
        (16_511, 4_096),  # 128 columns
        (40_000, 131_072),  # 512 columns were not recorded: the next wider ones were
        (200_000, 1_048_576),
        (1_048_576, 1_048_576),
    ],
)
def test_the_recorded_length_that_answers_has_the_same_width_or_the_next_wider_one(seq, at):
    assert TimingCase(gather(OWN), seq).at == at


def test_a_batch_recorded_at_long_lengths_only_answers_with_those():
    assert TimingCase(gather([ELSEWHERE]), 4_096, "d1").at == 32_768
    assert TimingCase(gather(OWN), 4_096, "one_long").at == 1_048_576


def test_cold_is_shown_only_where_it_was_measured():
    warm, both = gather(OWN), gather([timings.builder_run(cold=True)])
    assert TimingCase(warm, cache="cold").shown_cache == "warm"
    case = TimingCase(both, cache="cold")
    assert case.shown_cache == "cold" and case.cell["tiled"]["us"] == 8.0


def test_the_floor_of_a_row_needs_a_fill_of_as_many_bytes():
    cell = TimingCase(gather(OWN)).cell
    assert floor_us(cell, cell["tiled"]) == 2.0
    assert floor_us(cell, cell["tiled"] | {"floor_scale": 1.5}) == 3.0
    assert floor_us(cell, cell["row_loop_fixed"]) is None  # 32 times the bytes of the fill


def test_one_long_request_needs_table_entries_for_itself_and_few_for_the_others():
    live = 8192 + 255 * 32  # 4,096 tokens are 32 entries
    assert floor_scale(BATCHES["one_long"], 1_048_576, 8192) == 1 + live / 2 / (256 * 8192)


def test_an_empty_run_has_no_cells():
    assert Run(None, ()).cell("d1", 4_096, "warm") == {} and Run(None, ()).caches() == []


def test_a_preset_of_one_long_request_chooses_its_batch_and_nonsense_is_noted():
    assert timing_data.read({"preset": "one_long"})[0]["batch"] == "one_long"
    values, notes = timing_data.read({"batch": "d3", "cache": "hot", "budget": "900"})
    assert (values["batch"], values["cache"], values["budget"]) == ("p8192", "warm", 10)
    assert len(notes) == 3 and all("in the address" in note for note in notes)


def test_a_download_has_a_line_for_each_row_that_is_drawn():
    case = TimingCase(gather(OWN), batch="p2048")
    table = timing_data.table(case.rows)
    assert len(table) == 4 * 8 and set(table["batch"]) == {"p2048"}
    assert len(timing_data.table(case.every_row)) == len(OWN[0].rows) + len(OWN[1].rows) + len(OWN[2].rows)
