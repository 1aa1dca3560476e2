"""Page 04: recorded runs move with every control; live runs take turns, keep their rows and let go of the lock."""

import io
import json
import re

import pandas as pd
import pytest

pytestmark = pytest.mark.browser

PAGE = "04_timing"
# Long enough to be seen running and to be cancelled, on any machine: it ends when it is told to, or by its budget.
SLOW = {"batch": "d256", "budget": 40}
QUICK = {"batch": "d1", "budget": 30}


def plain(text):
    """The text with ordinary spaces: numbers are bound to their units on the page."""
    return text.replace("\u00a0", " ")


def live_status(tab):
    return tab.page.locator(".c128a-live").first.inner_text()


def wait_for_status(tab, pattern, seconds=45):
    """Wait until the status line matches, and return it."""
    tab.page.bring_to_front()
    tab.page.get_by_role("status").filter(has_text=re.compile(pattern)).first.wait_for(timeout=seconds * 1000)
    return live_status(tab)


def press_start(tab):
    tab.page.bring_to_front()
    tab.page.get_by_role("button", name="Time on this machine").click()


def test_the_opening_sentence_names_columns_trips_and_time(opened):
    lead = plain(opened.lead)
    assert "At 32,768 tokens a row is 256 of 8,192 columns wide" in lead
    assert "32 × fewer columns, 8 × fewer trips" in lead and "× less time" in lead


def test_the_live_controls_are_reached_by_keyboard(opened):
    for label in ("Batch to time", "Seconds at most"):
        opened.focus(label)
    for label in ("Time on this machine", "Cancel"):
        opened.focus(label, role="button")


def test_every_control_is_reached_and_moved_by_keyboard_and_changes_the_page(sheet):
    sheet.open(PAGE)
    for label, key, parameter in [("Rows a step", "ArrowUp", "batch=p2048"), ("cold", "Space", "cache=cold")]:
        before = sheet.text
        sheet.focus(label)
        sheet.press(key)
        assert sheet.holds(parameter), label
        assert sheet.text != before, label
    sheet.focus("Longest sequence", role="slider")
    sheet.press("ArrowRight")  # to the next width
    assert sheet.holds("seq=32896")
    assert "At 32,896 tokens a row is 512 of 8,192 columns wide" in plain(sheet.lead)
    sheet.focus("exactly").fill("1048576")
    sheet.press("Enter")
    assert sheet.holds("seq=1048576")
    assert "nothing is saved" in plain(sheet.lead)
    # A preset sets the batch that it is about.
    sheet.page.get_by_label("Preset").select_option(label="One long among short")
    assert sheet.holds("preset=one_long") and sheet.holds("batch=one_long")


def test_an_address_opens_its_state_and_downloads_hold_what_is_drawn(sheet):
    sheet.open(PAGE, seq=131_072, batch="p8192")
    assert "At 131,072 tokens a row is 1,024 of 8,192 columns wide" in plain(sheet.lead)
    assert "8,192 prefill rows at 131,072 tokens" in sheet.text
    assert "python -m c128a.bench builder --cell 0,8192,131072" in sheet.text
    table = pd.read_csv(io.BytesIO(sheet.download("this batch CSV")))
    assert set(table["batch"]) == {"p8192"}
    assert {"row_loop_fixed", "row_loop_adaptive", "tiled", "fill"} <= set(table["variant"])
    held = json.loads(sheet.download("all recorded JSON"))
    assert held["settings"]["batch"] == "p8192"
    assert {"builder", "combine", "host"} <= {row["kernel"] for row in held["rows"]}


def test_nonsense_in_the_address_opens_the_default_with_a_note(sheet):
    sheet.open(PAGE, seq="many", batch="p9", cache="hot")
    assert "At 32,768 tokens" in plain(sheet.lead)
    assert "seq is many in the address; it must be a whole number from 0 to 1,048,576" in sheet.text
    assert "batch is p9 in the address" in sheet.text and "cache is hot in the address" in sheet.text


def test_a_link_carries_the_state_to_the_next_page(sheet):
    sheet.open(PAGE, seq=100_000, model_len=524_288, policy="aligned")
    assert "Model length 524,288: the runs were made at 1,048,576" in sheet.text
    link = sheet.page.get_by_role("link", name="Width").get_attribute("href")
    assert "seq=100000" in link and "model_len=524288" in link and "policy=aligned" in link


def test_neither_a_chart_nor_the_table_is_cut_off_when_opened_dark_and_then_in_any_look(sheet):
    for look in sheet.every_look(PAGE, first_dark=True):
        assert sheet.cut_off() == [], look
        assert sheet.page.locator("svg.marks").count() >= 8
        table = sheet.page.get_by_label("The recorded cell in numbers")
        assert table.evaluate("element => element.scrollWidth <= element.clientWidth"), look


def test_one_live_run_at_a_time_and_neither_a_cancelled_run_nor_a_closed_tab_keeps_the_lock(new_sheet):
    tabs = [new_sheet().open(PAGE, **SLOW) for _ in range(2)]
    for tab in tabs:  # at the same moment: one runs, the other is told
        press_start(tab)
    said = [wait_for_status(tab, "left|starting|Not started") for tab in tabs]
    for _ in range(20):  # "starting" is said before the lock is asked for
        if any("Not started" in text for text in said):
            break
        tabs[0].page.wait_for_timeout(250)
        said = [live_status(tab) for tab in tabs]
    told = [text for text in said if "another session is timing" in text]
    assert len(told) == 1, said
    other, running = sorted(tabs, key=lambda tab: said[tabs.index(tab)] not in told)
    assert running.page.get_by_role("progressbar", name="Live run").count() == 1

    running.page.bring_to_front()
    rows = running.page.get_by_role("region", name="Live rows of this session")
    rows.wait_for(timeout=45_000)
    running.page.get_by_role("button", name="Cancel").click()
    kept = int(re.search(r"(\d+) rows? (is|are) kept", wait_for_status(running, "Cancelled")).group(1))
    running.settle(400)
    assert kept >= 1
    assert rows.locator("tbody tr").count() == kept

    press_start(running)  # the same values once more, after a cancelled run: SLOW lasts until it is cancelled
    wait_for_status(running, "left|starting")
    running.page.get_by_role("button", name="Cancel").click()
    wait_for_status(running, "Cancelled")

    running.focus("Seconds at most").fill("3")
    running.press("Tab")
    press_start(running)
    wait_for_status(running, "left")  # the cancelled run let go of the lock
    running.page.close()

    other.open(PAGE, **QUICK)
    for _ in range(20):  # nobody watches the run any more; its budget ends it
        press_start(other)
        other.page.wait_for_timeout(1_000)  # until then, what the press before was told may still stand there
        if "Finished; " in wait_for_status(other, "Finished|Not started"):
            break
    assert "Finished; " in live_status(other)
    other.settle(400)
    assert "live · " in other.text and "Live rows of this session" in other.page.content()
    live = pd.read_csv(io.BytesIO(other.download("live rows CSV")))
    assert set(live["batch"]) == {"d1"} and live["seq"].nunique() == 4
    assert live["device"].notna().all()
