"""Page 04: recorded runs move with every control; live runs take turns, keep their rows and let go of the lock."""

import html
import io
import json
import re
import runpy

import pandas as pd
import pytest

from c128a.account.step import times_of
from c128a.bench import records
from tests.bench.test_profile import trace
from tests.support.pages import ROOT

PAGE = "04_timing"
# Long enough to be seen running and to be cancelled, on any machine: it ends when it is told to, or by its budget.
SLOW = {"batch": "d256", "budget": 40}
QUICK = {"batch": "d1", "budget": 30}
browser = pytest.mark.browser


def plain(text):
    """The text with ordinary spaces: numbers are bound to their units on the page."""
    return text.replace("\u00a0", " ")


@pytest.fixture(scope="module")
def notebook():
    return runpy.run_path(str(ROOT / "notebooks" / f"{PAGE}.py"))


def test_a_figure_is_shown_to_the_first_digit_of_its_uncertainty_with_three_digits_at_most_and_one_at_least(notebook):
    times = [(64.08, 0.1), (6.123, 0.5), (16.43, 3.6), (209.83, 0.02), (1234.5, 3.0), (0.9999, 0.001), (38.0, 445.0)]
    shown = [notebook["figure"](value, unit) for value, unit in times]
    assert shown == ["64.1", "6.1", "16", "210", "1,230", "1.00", "40"]


def test_each_press_of_the_start_button_is_a_request_of_its_own_though_its_values_are_the_same(notebook):
    _, cells = notebook["app"].run()
    assert cells["start"].value is None  # nothing runs before it is pressed
    asked = []
    for presses in (1, 2):  # the browser sends how often the button was pressed
        cells["start"]._update(presses)
        asked.append(cells["start"].value)
    assert [request.pop("press") for request in asked] == [1, 2] and asked[0] == asked[1]
    assert asked[0]["length"] == 0 and asked[0]["budget"] == 10  # all recorded lengths; ten seconds


def test_a_cards_live_times_stand_beside_the_record_and_are_counted(notebook):
    rows = records.rows(record="h200-builder", decode=0, prefill=8192, cache="warm").assign(gpu="<i>A Card")
    rows.loc[rows["variant"] == "tiled", "us"] *= 2  # one of eight times at each of seven lengths
    _, cells = notebook["app"].run()
    own = ("cancel", "get_status", "request", "running", "set_live", "set_status", "start")
    own = {name: cells[name] for name in own}
    outputs, _ = notebook["app"].run(defs={**own, "get_live": lambda: rows.to_dict("records")})
    text = plain("".join(str(getattr(output, "text", output)) for output in outputs))
    assert "live · &#60;i&#62;A Card" in text and "<i>A" not in text  # text of a record is no markup
    assert "49 of 56 live times lie where the record expects" in text


@pytest.fixture
def afresh():
    """What was made of the records is forgotten before the test and after it."""
    times_of.cache_clear()
    yield
    times_of.cache_clear()


@pytest.mark.usefixtures("afresh")
@pytest.mark.parametrize("page", ["04_timing", "05_review", "06_deployment"])
def test_records_that_cannot_be_read_are_named_and_each_page_goes_on_with_the_others(page, monkeypatch, tmp_path):
    broken = ("h200-combine", "h200-host", "h200-step", "elsewhere")
    for name in records.names():
        (tmp_path / f"{name}.json").write_bytes(b"" if name in broken else (ROOT / f"data/{name}.json").read_bytes())
    monkeypatch.setattr(records, "folder", lambda: tmp_path)
    outputs, _ = runpy.run_path(str(ROOT / f"notebooks/{page}.py"))["app"].run()
    text = html.unescape(html.unescape("".join(str(getattr(output, "text", output)) for output in outputs)))
    assert all(f"record {name}: not JSON" in text for name in broken)
    assert text.count("can be read") == (4 if page == "04_timing" else 0)


@browser
def test_the_opening_sentence_names_columns_trips_and_time(opened):
    lead = plain(opened.lead)
    assert "At 32,768 tokens a row is 256 of 8,192 columns wide" in lead
    assert "32 × fewer columns, 8 × fewer trips" in lead
    wanted = {"record": "h200-builder", "cell": "0+8192@32768", "cache": "warm", "layout": "packed"}
    times = records.rows(**wanted).set_index("variant")["us"]
    fixed, loop = times["row_loop_fixed"], times["row_loop_adaptive"]
    shown = re.search(r"takes ([\d.]+) µs instead of ([\d.]+):.*, ([\d.]+) × less time", lead)
    assert [float(figure) for figure in shown.groups()] == pytest.approx([loop, fixed, fixed / loop], rel=0.02)
    assert "from elsewhere" in opened.text and "Evidence: NVIDIA H200" in opened.text


@browser
def test_every_control_is_moved_by_keyboard_and_changes_the_page(sheet):
    sheet.open(PAGE, seq="many", cache="hot")
    assert "At 32,768 tokens" in plain(sheet.lead)
    assert all(note in sheet.text for note in ("seq is many", "cache is hot", "0 to 1,048,576"))
    for label in ("Batch to time", "Time on this machine", "Cancel"):
        sheet.focus(label, role=None if label == "Batch to time" else "button")
    for label, key, parameter in [("Rows a step", "ArrowUp", "batch=p2048"), ("cold", "Space", "cache=cold")]:
        before = sheet.text
        sheet.focus(label)
        sheet.press(key)
        assert sheet.holds(parameter) and sheet.text != before, label
    sheet.focus("Longest sequence", role="slider")
    sheet.press("ArrowRight")  # to the next width
    assert sheet.holds("seq=32896")
    assert "At 32,896 tokens a row is 512 of 8,192 columns wide" in plain(sheet.lead)
    sheet.focus("exactly").fill("1048576")
    sheet.press("Enter")
    assert sheet.holds("seq=1048576") and "nothing is saved" in plain(sheet.lead)
    sheet.page.get_by_label("Preset").select_option(label="One long among short")  # sets the batch that it is about
    assert sheet.holds("preset=one_long") and sheet.holds("batch=one_long")


@browser
def test_an_address_opens_its_state_and_downloads_hold_what_is_drawn(sheet):
    sheet.open(PAGE, seq=131_072, batch="p8192", model_len=524_288, policy="aligned")
    assert "8,192 prefill rows at 131,072 tokens" in sheet.text and "Model length 524,288" in sheet.text
    assert "python -m c128a.bench builder --cell 0,8192,131072" in sheet.text
    table = pd.read_csv(io.BytesIO(sheet.download("this batch CSV")))
    assert set(table["prefill"]) == {8192}
    assert {"row_loop_fixed", "row_loop_adaptive", "tiled", "fill"} <= set(table["variant"])
    held = json.loads(sheet.download("all recorded JSON"))
    assert held["settings"]["batch"] == "p8192"
    assert {"builder", "combine", "host"} <= {row["sheet"] for row in held["rows"]}
    link = sheet.page.get_by_role("link", name="Width").get_attribute("href")
    assert "seq=131072" in link and "model_len=524288" in link and "policy=aligned" in link

    for content, said in ((b"{", "<b>.json: no whole JSON"), (trace(), "31 launches of the")):
        upload = sheet.page.locator("marimo-file input[type=file]")
        upload.set_input_files({"name": "<b>.json", "mimeType": "application/json", "buffer": content})
        assert sheet.says(said, within=45)
    assert plain(sheet.text).count("390.0 µs less of the GPU") == 1  # 30 of 31 combines of 10 µs, and fills of 3


def start(tab):
    tab.page.bring_to_front()
    tab.page.get_by_role("button", name="Time on this machine").click()


def status(tab, pattern, seconds=45):
    """Wait until the status line matches, and return it."""
    tab.page.bring_to_front()
    line = tab.page.get_by_role("status").filter(has_text=re.compile(pattern)).first
    line.wait_for(timeout=seconds * 1000)
    return line.inner_text()


@browser
def test_one_live_run_at_a_time_and_neither_a_cancelled_run_nor_a_closed_tab_keeps_the_lock(new_sheet):
    running, other = (new_sheet().open(PAGE, **SLOW) for _ in range(2))
    start(running)
    running.page.get_by_role("progressbar").wait_for()
    assert running.says("256 decode rows at 4,096 tokens, about")
    start(other)
    assert "another session is timing" in status(other, "Not started")

    running.page.bring_to_front()
    running.page.get_by_text("Live rows of this session").wait_for(timeout=45_000)
    running.page.get_by_role("button", name="Cancel").click()
    kept = int(re.search(r"rows kept: (\d+)", status(running, "Cancelled"))[1])
    running.settle(400)
    rows = running.page.locator("table", has_text="rows lie").last.locator("tbody tr")
    assert kept >= 1 and rows.count() == kept
    assert running.page.get_by_role("progressbar").count() == 0

    start(running)  # the same values once more, after a cancelled run
    status(running, "Measuring")
    running.page.get_by_role("button", name="Cancel").click()
    status(running, "Cancelled")
    running.focus("Seconds at most").fill("3")
    running.press("Tab")
    start(running)
    status(running, "Measuring")
    running.page.close()

    other.open(PAGE, **QUICK)
    for _ in range(20):  # nobody watches the run any more; its budget ends it
        start(other)
        other.page.wait_for_timeout(1_000)  # until then, what the press before was told may still stand there
        if "Finished" in status(other, "Finished|Not started"):
            break
    other.settle(400)
    assert "live · " in other.text and "Finished" in other.text
    live = pd.read_csv(io.BytesIO(other.download("live rows CSV")))
    assert set(live["decode"]) == {1} and live["max_seq_len"].nunique() == 4 and set(live["source"]) == {"live"}
