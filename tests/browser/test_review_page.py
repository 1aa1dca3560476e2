"""Page 05: verdicts at a glance, the account moved by keyboard, state in the address, one printed page."""

import io
import json
import re

import pandas as pd
import pytest

pytestmark = pytest.mark.browser

PAGE = "05_review"
ELSEWHERE = {"times": "elsewhere"}  # figures that do not change when this repository records a run of its own
OPENED = ELSEWHERE


def test_the_lead_counts_the_verdicts(opened):
    assert "Of 16 claims of the report, 5 hold, 10 hold under a condition and 1 does not hold." in opened.lead
    assert "9 of 12 packed rows" in opened.lead


def test_downloads_hold_the_account_and_the_markdown(opened):
    table = pd.read_csv(io.BytesIO(opened.download("CSV")))
    assert table["context"].tolist() == [8_192, 32_768, 131_072, 1_048_576]
    held = json.loads(opened.download("JSON"))
    assert held["settings"]["model"] == "V4-Pro" and len(held["rows"]) == 4
    text = opened.download("Markdown").decode()
    assert text.startswith("### Review of vLLM PR #50004") and text.count("\n| ") == 18


def test_printing_gives_the_closing_table_on_one_page(opened):
    pdf = opened.page.pdf(prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) == 1


def test_every_claim_stands_at_a_glance_and_leads_to_its_evidence(sheet):
    sheet.open(PAGE, **ELSEWHERE)
    links = sheet.page.locator(".review-glance a")
    assert links.count() == 16
    target = links.nth(9)
    assert "CUDA graphs are not affected" in target.inner_text() and "holds if" in target.inner_text()
    target.click()
    sheet.settle()
    top = sheet.page.locator("#claim-addresses").evaluate("element => element.getBoundingClientRect().top")
    assert 0 <= top < 900
    assert "✘ old bytes" in sheet.text


def test_the_account_follows_the_context_by_keyboard(sheet):
    sheet.open(PAGE, **ELSEWHERE)
    assert "2,455 µs" in sheet.text
    sheet.focus("Context, tokens")
    sheet.press("ArrowDown")
    assert sheet.holds("seq=65536")
    assert sheet.says("step of 8,192 tokens at 65,536")


def test_every_control_is_reached_and_moved_by_keyboard_and_changes_the_page(sheet):
    sheet.open(PAGE, **ELSEWHERE, seq=100_000)
    for label, role, key, parameter in [
        ("Model", "combobox", "ArrowUp", "model=V4-Flash"),
        ("aligned", "radio", "Space", "policy=aligned"),
        ("Tokens a step", "textbox", "ArrowDown", "tokens=8191"),
        ("Throughput, TFLOP/s", "textbox", "ArrowUp", "tflops=3201"),
        ("Time in prefill steps, %", "textbox", "ArrowDown", "prefill=89"),
        ("Step as measured", "textbox", "ArrowUp", "step_ms=401"),
    ]:
        control = sheet.focus(label, role=role)
        if "step_ms" in parameter:  # 0 is none measured, and 1 ms is too short for what is saved
            control.fill("400")
            sheet.press("Tab")
            sheet.focus(label, role=role)
        before = sheet.text
        sheet.press(key).press("Tab")
        assert sheet.holds(parameter), label
        assert sheet.text != before, label


def test_a_slow_server_turns_the_verdict_on_the_one_percent(sheet):
    sheet.open(PAGE, **ELSEWHERE, tflops=400, tflops_low=300, tflops_high=500)
    badge = sheet.page.locator("#claim-throughput .review-badge")
    assert "does not hold" in badge.inner_text()
    assert "3 do not hold" in sheet.lead


def test_an_unmeasured_context_is_refused_with_the_measured_range(sheet):
    sheet.open(PAGE, **ELSEWHERE, seq=8192)
    assert "No account at this setting" in sheet.text
    assert "measured: 32,768 to 1,048,576" in sheet.text


def test_a_step_shorter_than_what_it_saves_is_refused(sheet):
    sheet.open(PAGE, **ELSEWHERE, step_ms=1)
    assert "a step of 1,000 µs cannot save that much" in sheet.text


def test_nonsense_in_the_address_opens_the_default_with_a_note(sheet):
    sheet.open(PAGE, **ELSEWHERE, tflops="fast", model="V5")
    assert "tflops is fast in the address; it must be a whole number" in sheet.text
    assert "model is V5 in the address; it must be one of V4-Flash, V4-Pro" in sheet.text
    assert "2,455 µs" in sheet.text


def test_no_chart_is_cut_off_when_opened_dark_and_then_in_any_look(sheet):
    for look in sheet.every_look(PAGE, first_dark=True, **ELSEWHERE):
        assert sheet.cut_off() == [], look
