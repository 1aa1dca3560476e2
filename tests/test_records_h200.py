"""Every recorded timing still belongs to this code: width, trips, bytes and tile of each row, worked out again.

While data/ holds no run of the bench, the figures from elsewhere stand in for one, so that no test is empty.
"""

import re
import statistics

import pytest

from c128a import records
from c128a.bench_cases import CELLS, COMBINE_CELLS
from c128a.tiles import tile_shape
from c128a.width import active_topk_width, loop_trips

SHEETS = ("builder", "combine")
OWN = [
    record
    for record in records.load_all()
    if not record.elsewhere and any(row.get("sheet") in (*SHEETS, "host") for row in record.rows)
]
TIMED = [record for record in OWN if any(row.get("sheet") in SHEETS for row in record.rows)]
RUNS = TIMED or [records.load("elsewhere")]
ENTRIES_PER_BLOCK = 2  # 256 tokens a KV block at 128 tokens an entry


def timed(record):
    """The rows that have a width. The empty kernel from elsewhere was timed once, in no cell."""
    rows = [row for row in record.rows if row.get("sheet") in SHEETS and not (record.elsewhere and "width" not in row)]
    assert len(rows) >= 3
    return rows


def live_cells(row):
    """Decode cells that hold an id: the reader's table entries that a build has to read."""
    lengths = [row["max_seq_len"]] * row["decode"]
    if row.get("short_seq_len"):
        lengths[1:] = [row["short_seq_len"]] * (row["decode"] - 1)
    return sum(min(length // 128, row["width"]) for length in lengths)


each_run = pytest.mark.parametrize("record", RUNS, ids=lambda record: record.name)
each_own = pytest.mark.parametrize("record", OWN, ids=lambda record: record.name)


@each_run
def test_the_width_of_every_row_follows_from_its_length(record):
    for row in timed(record):
        assert row["width"] == active_topk_width(row["max_seq_len"], 128, row["capacity"], policy=row["policy"]), row


@each_run
def test_the_row_loop_and_nothing_else_has_the_trips_of_its_width(record):
    for row in timed(record):
        want = loop_trips(row["width"]) if row["variant"].startswith("row_loop") else None
        assert row.get("trips") == want, row


@each_run
def test_the_bytes_of_every_row_are_those_of_its_rows(record):
    for row in timed(record):
        rows = row["decode"] + row["prefill"]
        if record.elsewhere:
            assert "bytes" not in row, "the figures from elsewhere came without bytes"
        elif row["sheet"] == "combine":
            columns = -(-(row["width"] + 128) // 128) * 128  # the row and the window of 128 tokens, rounded up
            assert (row["out_width"], row["bytes"]) == (columns, rows * columns * 4), row
        else:
            assert row["bytes"] == (rows * row["width"] * 4 if row["kernel"] == "builder" else 0), row


@each_run
def test_what_must_be_read_beside_the_bytes_written_is_half_a_table_entry_a_live_decode_cell(record):
    for row in timed(record):
        if record.elsewhere:
            assert "floor_scale" not in row
        elif row["sheet"] == "combine":
            assert row["floor_scale"] == 1
        else:
            cells = (row["decode"] + row["prefill"]) * row["width"]
            assert row["floor_scale"] == round(1 + live_cells(row) / ENTRIES_PER_BLOCK / cells, 4), row


@each_run
def test_a_tiled_row_was_built_with_the_tile_of_today(record):
    for row in timed(record):
        tiled = row["sheet"] == "builder" and row["variant"].startswith("tiled") and not record.elsewhere
        want = list(tile_shape(row["decode"] + row["prefill"], row["width"])) if tiled else None
        assert row.get("tile") == want, row


@each_run
def test_every_time_is_the_median_of_its_samples_between_its_quantiles(record):
    for row in timed(record):
        assert row["us"] > 0
        if record.elsewhere:
            assert "samples" not in row, "no samples came with the figures from elsewhere"
        else:
            assert row["p20"] <= row["us"] <= row["p80"], row
            every = [value for process in row["samples"] for value in process]
            assert abs(statistics.median(every) - row["us"]) <= 0.006, row  # rounded to a hundredth
            assert row["cache"] in ("warm", "cold")


@each_own
def test_what_one_more_process_would_measure_holds_the_medians_of_those_that_did(record):
    for row in record.rows:
        low, high = row["prediction"]
        medians = [statistics.median(process) for process in row["samples"]]
        assert len(medians) == record.provenance["processes"]
        assert low < min(medians) and max(medians) < high, row


@each_run
def test_a_whole_run_covers_every_cell(record):
    if record.elsewhere or "--cell" in record.provenance["command"]:
        assert {row["sheet"] for row in timed(record)} <= set(SHEETS)
        return
    sheet = record.rows[0]["sheet"]
    want = (
        [cell.name for cell in CELLS]
        if sheet == "builder"
        else [f"{tokens}@{length}" for tokens, length in COMBINE_CELLS]
    )
    for cache in {row["cache"] for row in record.rows}:
        rows = [row for row in timed(record) if row["cache"] == cache]
        variants = {row["variant"] for row in rows}
        assert sorted((row["cell"], row["variant"]) for row in rows) == sorted(
            (cell, variant) for cell in want for variant in variants
        )


@each_run
def test_a_record_names_its_card_driver_and_versions(record):
    for field in ("gpu", "driver", "torch", "triton"):
        assert record.provenance.get(field), field


@each_own
def test_a_run_of_the_bench_names_commit_command_and_date(record):
    assert re.fullmatch(r"[0-9a-f]{40}", record.provenance["commit"])
    assert record.provenance["command"].startswith("python -m c128a.bench ")
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", record.provenance["date"])
    assert isinstance(record.provenance["dirty"], bool)


@each_own
def test_a_host_time_lies_between_its_quantiles(record):
    for row in record.where(sheet="host"):
        assert 0 < row["p20"] <= row["us"] <= row["p80"], row
