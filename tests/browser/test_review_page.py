"""Page 05: verdicts at a glance, the account moved by keyboard, state in the address, one printed page."""

import io
import json
import re

import pandas as pd
import pytest

pytestmark = pytest.mark.browser

PAGE = "05_review"
ELSEWHERE = {"times": "elsewhere"}  # figures that do not change when this repository records a run of its own


def test_the_lead_counts_the_verdicts(sheet):
    sheet.open(PAGE, **ELSEWHERE)
    assert "Of 16 claims of the report, 5 hold, 10 hold under a condition and 1 does not hold." in sheet.lead
    assert "9 of 12 packed rows" in sheet.lead


def test_every_claim_stands_at_a_glance_and_leads_to_its_evidence(sheet):
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
    assert "seq=65536" in sheet.page.url
    assert "step of 8,192 tokens at 65,536" in sheet.text


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("label", "role", "key", "parameter"),
    [
        ("Model", "combobox", "ArrowUp", "model=V4-Flash"),
        ("aligned", "radio", "Space", "policy=aligned"),
        ("Tokens a step", "textbox", "ArrowDown", "tokens=8191"),
        ("Throughput, TFLOP/s", "textbox", "ArrowUp", "tflops=3201"),
        ("Time in prefill steps, %", "textbox", "ArrowDown", "prefill=89"),
        ("Step as measured", "textbox", "ArrowUp", "step_ms=401"),
    ],
    ids=lambda value: value if "=" in value else None,
)
def test_a_control_is_reached_and_moved_by_keyboard(sheet, label, role, key, parameter):
    sheet.open(PAGE, **ELSEWHERE, seq=100_000, step_ms=400 if "step_ms" in parameter else 0)
    before = sheet.text
    sheet.focus(label, role=role)
    sheet.press(key).press("Tab")
    assert parameter in sheet.page.url
    assert sheet.text != before


@pytest.mark.thorough
def test_a_slow_server_turns_the_verdict_on_the_one_percent(sheet):
    sheet.open(PAGE, **ELSEWHERE, tflops=400, tflops_low=300, tflops_high=500)
    badge = sheet.page.locator("#claim-throughput .review-badge")
    assert "does not hold" in badge.inner_text()
    assert "3 do not hold" in sheet.lead


@pytest.mark.thorough
def test_an_unmeasured_context_is_refused_with_the_measured_range(sheet):
    sheet.open(PAGE, **ELSEWHERE, seq=8192)
    assert "No account at this setting" in sheet.text
    assert "measured: 32,768 to 1,048,576" in sheet.text


@pytest.mark.thorough
def test_a_step_shorter_than_what_it_saves_is_refused(sheet):
    sheet.open(PAGE, **ELSEWHERE, step_ms=1)
    assert "a step of 1,000 µs cannot save that much" in sheet.text


def test_nonsense_in_the_address_opens_the_default_with_a_note(sheet):
    sheet.open(PAGE, **ELSEWHERE, tflops="fast", model="V5")
    assert "tflops is fast in the address; it must be a whole number" in sheet.text
    assert "model is V5 in the address; it must be one of V4-Flash, V4-Pro" in sheet.text
    assert "2,455 µs" in sheet.text


def test_downloads_hold_the_account_and_the_markdown(sheet):
    sheet.open(PAGE, **ELSEWHERE)
    table = pd.read_csv(io.BytesIO(sheet.download("CSV")))
    assert table["context"].tolist() == [8_192, 32_768, 131_072, 1_048_576]
    held = json.loads(sheet.download("JSON"))
    assert held["settings"]["model"] == "V4-Pro" and len(held["rows"]) == 4
    text = sheet.download("Markdown").decode()
    assert text.startswith("### Review of vLLM PR #50004") and text.count("\n| ") == 18


def test_printing_gives_the_closing_table_on_one_page(sheet):
    sheet.open(PAGE, **ELSEWHERE)
    pdf = sheet.page.pdf(prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) == 1


@pytest.mark.thorough
@pytest.mark.parametrize("width", [1280, 1680])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_no_chart_is_cut_off(new_sheet, width, dark):
    tab = new_sheet(dark=dark, width=width).open(PAGE, **ELSEWHERE)
    assert tab.cut_off() == []
    assert tab.errors == []
    tab.page.close()
