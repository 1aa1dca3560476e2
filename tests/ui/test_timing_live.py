"""The live part of page 04, without a browser: what it asks for, what it keeps, and what it says about it."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from c128a import live
from c128a.bench import timing
from c128a.records import load
from c128a.ui import timing_cell, timing_live
from c128a.ui.timing_data import TimingCase
from c128a.ui.timing_runs import gather, normal
from tests.support import timings

OWN = TimingCase(gather([timings.builder_run(), load("elsewhere")]))


def reference(variant, us, width):
    row = timings.row(variant, us, decode=32, prefill=0, width=width) | {"kernel": "reference"}
    return normal(row | {"device": "CPU, torch reference"})


def test_a_request_without_a_length_asks_for_all_recorded_ones():
    assert [cell.max_seq_len for cell in timing_live.cells("p2048", 0)] == [4_096, 32_768, 131_072, 1_048_576]
    (cell,) = timing_live.cells("mixed", 50_000)
    assert (cell.decode, cell.prefill, cell.max_seq_len) == (64, 4096, 50_000)


def test_one_long_request_is_timed_as_it_was_recorded_whatever_length_is_asked():
    (cell,) = timing_live.cells("one_long", 32_768)
    assert (cell.decode, cell.max_seq_len, cell.short) == (256, 1_048_576, 4_096)


@pytest.mark.skipif(live.on_gpu(), reason="on a GPU every batch is quick")
def test_without_a_gpu_the_form_opens_with_a_batch_that_a_cpu_can_do():
    opened = {"batch": "p8192", "seq": 32_768, "budget": 7}
    fields = timing_live.request_fields(opened)
    assert fields.value == {"batch": timing_live.CPU_BATCH, "length": 0, "budget": 7}
    assert timing_live.start_button(fields).value is None  # nothing runs before it is pressed
    assert timing_live.request_fields(opened | {"batch": "d32"}).value["batch"] == "d32"


def test_each_press_of_the_start_button_is_a_request_of_its_own():
    fields = timing_live.request_fields({"batch": "d1", "seq": 32_768, "budget": 7})
    start = timing_live.start_button(fields)
    requests = []
    for presses in (1, 2, 3):  # the browser sends how often the button was pressed
        start._update(presses)
        requests.append(start.value)
    assert [request["press"] for request in requests] == [1, 2, 3]
    assert all({**request, "press": 0} == {"batch": "d1", "length": 0, "budget": 7, "press": 0} for request in requests)


@pytest.mark.skipif(live.on_gpu(), reason="says what a machine without a GPU does")
def test_the_introduction_says_that_no_kernel_is_timed_here():
    text = timing_live.intro()
    assert "no kernel to time" in text and "torch reference on the CPU" in text and "illustration" in text


def test_a_new_row_takes_the_place_of_the_older_one_of_its_cell():
    first, other = reference("reference_fixed", 100.0, 8192), reference("reference_adaptive", 50.0, 256)
    again = reference("reference_fixed", 90.0, 8192)
    assert timing_live.merged([first, other], again) == [other, again]


@pytest.mark.parametrize(
    ("ended", "text"),
    [
        ("finished", "Finished; 1 row is kept."),
        ("budget", "The 10 s are spent; 1 row is kept."),
        ("stopped", "Cancelled; 1 row is kept."),
    ],
)
def test_the_end_of_a_run_is_told_with_what_it_kept(ended, text):
    assert timing_live.summary(live.Outcome(({},), ended, ()), 10.0) == text


def test_a_refused_measurement_is_told_with_its_reason():
    assert timing_live.summary(live.Outcome((), "finished", ("too large",)), 10.0).endswith("Refused: too large.")


def test_a_running_status_has_a_progress_bar_and_a_busy_one_is_a_warning():
    running = timing_live.view(timing_live.Status("running", "1+0@4096, about 3 s left", 0.25)).text
    assert 'role="progressbar"' in running and 'aria-valuenow="25"' in running and "about 3 s left" in running
    busy = timing_live.view(timing_live.Status("busy", "another session is timing")).text
    assert "Not started: another session is timing" in busy and "progressbar" not in busy


def test_the_cpu_s_sentence_is_about_milliseconds_and_about_no_kernel():
    rows = [reference("reference_fixed", 80_000.0, 8192), reference("reference_adaptive", 4_000.0, 256)]
    text = timing_live.sentence(OWN, rows)
    assert text.startswith("live · CPU, torch reference, 32 decode rows at 32,768 tokens: 80.0 ms at the fixed width")
    assert "4.00 ms at 256 columns, 20.0 × less" in text and "a kernel's time it is not" in text


def test_the_sentence_is_about_the_narrowest_rows_and_names_a_wide_spread():
    wide = [row | {"seq": 1_048_576} for row in (reference("reference_fixed", 90.0, 8192),)]
    narrow = [reference("reference_fixed", 80_000.0, 8192), reference("reference_adaptive", 4_000.0, 256)]
    assert "at 32,768 tokens" in timing_live.sentence(OWN, narrow + wide)
    assert "something else" not in timing_live.sentence(OWN, narrow)
    noisy = [narrow[0] | {"p80": 160_000.0}, narrow[1]]
    assert "The spread is wide: something else kept this machine busy." in timing_live.sentence(OWN, noisy)


def test_a_card_s_sentence_stands_beside_the_record():
    row = normal(timings.row("tiled", 5.0) | {"device": "Some Card"})
    text = timing_live.sentence(OWN, [row])
    assert "live · Some Card" in text and "the tiles take 5.0" in text and "The record says 4.0" in text


def test_a_card_s_sentence_counts_the_times_that_lie_where_the_record_expects_them():
    record = timings.builder_run()
    expecting = replace(record, rows=tuple(row | {"prediction": [row["us"] - 1, row["us"] + 1]} for row in record.rows))
    case = TimingCase(gather([expecting]))
    rows = [normal(timings.row(name, us) | {"device": "Some Card"}) for name, us in (("tiled", 4.9), ("fill", 3.1))]
    assert "1 of 2 lie where the record expects those of one more process" in timing_live.sentence(case, rows)


def test_the_tables_give_a_variant_one_name_whether_it_is_live_or_recorded():
    variants = ("row_loop_fixed", "row_loop_adaptive", "tiled", "tiled_serial", "tiled_fixed", "loads", "empty")
    live_table = timing_live.table([normal(timings.row(variant, 5.0)) for variant in variants]).text
    recorded = timing_cell.cell_table(OWN).text
    for name in ("tiles, no overlap", "tiles, fixed width", "its loads alone", "row loop, fixed width", "empty kernel"):
        assert f">{name}</td>" in live_table and f">{name}</td>" in recorded


@pytest.fixture
def own_lock(tmp_path, monkeypatch):
    monkeypatch.setattr(timing, "LOCK_FOLDERS", (tmp_path,))


def run(request, before=None):
    rows, told = [], []
    thread = timing_live.start(request, before, rows.append, told.append)
    thread.join(120)
    return rows, told


def test_a_request_runs_in_a_thread_and_brings_its_rows_in_the_page_s_shape(own_lock):
    rows, told = run({"batch": "d1", "length": 4_096, "budget": 100})
    assert {row["batch"] for row in rows} == {"d1"} and {row["seq"] for row in rows} == {4_096}
    assert len(rows) == (8 if live.on_gpu() else 3)
    assert (told[0].state, told[-1].state) == ("running", "finished")
    assert f"{len(rows)} rows are kept" in told[-1].text


def test_a_session_that_comes_second_is_told_so(own_lock):
    with live.measuring():
        rows, told = run({"batch": "d1", "length": 4_096, "budget": 5})
    assert rows == [] and told[-1].state == "busy" and "another session is timing" in told[-1].text


def test_a_failure_in_the_thread_reaches_the_page(own_lock, monkeypatch):
    def fail(*args, **kwargs):
        raise MemoryError("no room")

    monkeypatch.setattr(live, "sweep", fail)
    _, told = run({"batch": "d1", "length": 4_096, "budget": 5})
    assert (told[-1].state, told[-1].text) == ("failed", "MemoryError: no room")


def test_a_new_request_waits_for_the_run_before_it(own_lock):
    first_rows, told = [], []
    first = timing_live.start({"batch": "d1", "length": 0, "budget": 60}, None, first_rows.append, told.append)
    rows, second_told = run({"batch": "d1", "length": 4_096, "budget": 60}, before=first)
    assert not first.is_alive() and told[-1].state == "finished"
    assert rows and second_told[-1].state == "finished"


def test_the_page_is_whole_without_a_browser_and_without_a_press():
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "notebooks/04_timing.py"], capture_output=True, text=True, cwd=root, timeout=120
    )
    assert done.returncode == 0, done.stderr
