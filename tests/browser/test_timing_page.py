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
    tab.page.get_by_role("status").filter(has_text=re.compile(pattern)).first.wait_for(timeout=seconds * 1000)
    return live_status(tab)


def start(tab, **params):
    """Open the page and press the button that starts a live run."""
    tab.open(PAGE, **params)
    tab.page.get_by_role("button", name="Time on this machine").click()
    return tab


def test_the_opening_sentence_names_columns_trips_and_time(sheet):
    sheet.open(PAGE)
    lead = plain(sheet.lead)
    assert "At 32,768 tokens a row is 256 of 8,192 columns wide" in lead
    assert "32 × fewer columns, 8 × fewer trips" in lead and "× less time" in lead


def test_an_arrow_key_on_the_slider_moves_to_the_next_width(sheet):
    sheet.open(PAGE)
    sheet.focus("Longest sequence", role="slider")
    sheet.press("ArrowRight")
    assert "At 32,896 tokens a row is 512 of 8,192 columns wide" in plain(sheet.lead)
    assert "seq=32896" in sheet.page.url


@pytest.mark.thorough
def test_an_exact_number_moves_the_page_too(sheet):
    sheet.open(PAGE)
    sheet.focus("exactly").fill("1048576")
    sheet.press("Enter")
    assert "nothing is saved" in plain(sheet.lead)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("label", "keys", "parameter"),
    [("Rows a step", ["ArrowUp"], "batch=p2048"), ("cold", ["Space"], "cache=cold")],
)
def test_a_control_is_reached_and_moved_by_keyboard_and_changes_the_page(sheet, label, keys, parameter):
    sheet.open(PAGE)
    before = sheet.text
    sheet.focus(label)
    for key in keys:
        sheet.press(key)
    assert parameter in sheet.page.url
    assert sheet.text != before


def test_the_live_controls_are_reached_by_keyboard(sheet):
    sheet.open(PAGE)
    for label in ("Batch to time", "Seconds at most"):
        sheet.focus(label)
    for label in ("Time on this machine", "Cancel"):
        sheet.focus(label, role="button")


@pytest.mark.thorough
def test_a_preset_sets_the_batch_it_is_about(sheet):
    sheet.open(PAGE)
    sheet.page.get_by_label("Preset").select_option(label="One long among short")
    sheet.settle()
    assert "preset=one_long" in sheet.page.url and "batch=one_long" in sheet.page.url


def test_an_address_opens_its_state(sheet):
    sheet.open(PAGE, seq=131_072, batch="p8192")
    assert "At 131,072 tokens a row is 1,024 of 8,192 columns wide" in plain(sheet.lead)
    assert "8,192 prefill rows at 131,072 tokens" in sheet.text
    assert "python -m c128a.bench builder --cell 0,8192,131072" in sheet.text


def test_nonsense_in_the_address_opens_the_default_with_a_note(sheet):
    sheet.open(PAGE, seq="many", batch="p9", cache="hot")
    assert "At 32,768 tokens" in plain(sheet.lead)
    assert "seq is many in the address; it must be a whole number from 0 to 1,048,576" in sheet.text
    assert "batch is p9 in the address" in sheet.text and "cache is hot in the address" in sheet.text


def test_downloads_hold_what_is_drawn(sheet):
    sheet.open(PAGE, batch="p8192")
    table = pd.read_csv(io.BytesIO(sheet.download("this batch CSV")))
    assert set(table["batch"]) == {"p8192"}
    assert {"row_loop_fixed", "row_loop_adaptive", "tiled", "fill"} <= set(table["variant"])
    held = json.loads(sheet.download("all recorded JSON"))
    assert held["settings"]["batch"] == "p8192"
    assert {"builder", "combine", "host"} <= {row["kernel"] for row in held["rows"]}


def test_a_link_carries_the_state_to_the_next_page(sheet):
    sheet.open(PAGE, seq=100_000, model_len=524_288, policy="aligned")
    assert "Model length 524,288: the runs were made at 1,048,576" in sheet.text
    link = sheet.page.get_by_role("link", name="Width").get_attribute("href")
    assert "seq=100000" in link and "model_len=524288" in link and "policy=aligned" in link


@pytest.mark.thorough
@pytest.mark.parametrize(("dark", "width"), [(False, 1280), (True, 1680)], ids=["light-1280", "dark-1680"])
def test_neither_a_chart_nor_the_table_is_cut_off(new_sheet, dark, width):
    tab = new_sheet(dark=dark, width=width).open(PAGE)
    assert tab.cut_off() == []
    assert tab.page.locator("svg.marks").count() >= 8
    table = tab.page.get_by_label("The recorded cell in numbers")
    assert table.evaluate("element => element.scrollWidth <= element.clientWidth")
    assert tab.errors == []
    tab.page.close()


@pytest.mark.thorough
def test_a_live_run_adds_rows_that_bear_its_device_and_finishes(new_sheet):
    tab = start(new_sheet(), **QUICK)
    assert "Finished; " in wait_for_status(tab, "Finished")
    tab.settle(400)
    assert "live · " in tab.text and "Live rows of this session" in tab.page.content()
    live = pd.read_csv(io.BytesIO(tab.download("live rows CSV")))
    assert set(live["batch"]) == {"d1"} and live["seq"].nunique() == 4
    assert live["device"].notna().all()
    assert tab.errors == []
    tab.page.close()


@pytest.mark.thorough
def test_of_two_tabs_that_start_at_the_same_moment_one_runs_and_the_other_is_told(new_sheet):
    tabs = [new_sheet().open(PAGE, **SLOW) for _ in range(2)]
    for tab in tabs:
        tab.page.get_by_role("button", name="Time on this machine").click()
    said = [wait_for_status(tab, "left|starting|Not started") for tab in tabs]
    for _ in range(20):  # "starting" is said before the lock is asked for
        if any("Not started" in text for text in said):
            break
        tabs[0].page.wait_for_timeout(250)
        said = [live_status(tab) for tab in tabs]
    told = [text for text in said if "another session is timing" in text]
    assert len(told) == 1, said
    running = tabs[said.index(next(text for text in said if text not in told))]
    assert running.page.get_by_role("progressbar", name="Live run").count() == 1
    running.page.get_by_role("button", name="Cancel").click()
    assert "Cancelled" in wait_for_status(running, "Cancelled")
    for tab in tabs:
        assert tab.errors == []
        tab.page.close()


@pytest.mark.thorough
def test_a_cancelled_run_keeps_its_rows_and_lets_go_of_the_lock(new_sheet):
    tab = start(new_sheet(), **SLOW)
    tab.page.get_by_role("region", name="Live rows of this session").wait_for(timeout=45_000)
    tab.page.get_by_role("button", name="Cancel").click()
    said = wait_for_status(tab, "Cancelled")
    kept = int(re.search(r"(\d+) rows? (is|are) kept", said).group(1))
    tab.settle(400)
    assert kept >= 1
    assert tab.page.get_by_role("region", name="Live rows of this session").locator("tbody tr").count() == kept
    other = start(new_sheet(), **QUICK)
    assert "Finished" in wait_for_status(other, "Finished|Not started")
    for each in (tab, other):
        assert each.errors == []
        each.page.close()


@pytest.mark.thorough
def test_closing_the_tab_does_not_leave_the_lock_held(new_sheet):
    tab = start(new_sheet(), batch="d256", budget=4)
    wait_for_status(tab, "left")
    tab.page.close()
    other = new_sheet().open(PAGE, **QUICK)
    other.page.wait_for_timeout(5_000)  # the budget of the run that nobody watches any more
    other.page.get_by_role("button", name="Time on this machine").click()
    assert "Finished" in wait_for_status(other, "Finished|Not started")
    assert other.errors == []
    other.page.close()
