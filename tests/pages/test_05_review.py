"""Page 05: verdicts at a glance, each with its evidence; the account moved by keyboard; one printed page."""

import io
import json
import re

import pandas as pd
import pytest

from c128a.account.claims import CLAIMS, find
from c128a.account.step import Run, times_of
from tests.support.pages import run_each

pytestmark = pytest.mark.browser

PAGE = "05_review"
OPENED = {"times": "elsewhere"}  # figures that do not change when this repository records a run of its own

RUN = """
import json, runpy
outputs, defs = runpy.run_path("notebooks/05_review.py")["app"].run()
text = "\\n".join(str(getattr(output, "text", output)) for output in outputs)
cards = [text.count(part) for part in ('<section id="claim-', "nothing to show; the verdict")]
levels = {found.claim.key: found.level for found in defs["findings"]}
print(json.dumps([levels, cards, defs["run"] == type(defs["run"])()]))
"""


def test_without_torch_the_page_shows_every_claim_and_judges_all_that_need_no_kernel():
    (ran,) = run_each(RUN, [[]], ["torch", "triton"])
    levels, (cards, empty), opens_with_the_run_of_the_pull_request = json.loads(ran.text())
    assert (cards, empty, opens_with_the_run_of_the_pull_request) == (len(CLAIMS), 3, True)
    times = times_of("cold")  # the regime nearest to serving
    missed = {claim.key for claim in CLAIMS if find(claim, Run(), times).level != levels[claim.key]}
    assert missed == {"shapes", "bounds", "semantics"}


def test_the_lead_counts_the_verdicts_and_the_evidence_is_drawn_with_its_numbers(opened):
    # 2,399.4 of 2,455.2 µs
    lead = ("19 claims", "8 hold", "9 hold in part", "2 do not hold", "2,455 µs", "98%", "9 of 12", "3 of 12")
    assert [part for part in lead if part not in opened.lead] == []
    drawn = ("8 × (8 → 1)", "512 lost", "✘ row 2", "✘ old bytes", "rows move with the batch", "55.8 µs", "2,399 µs")
    assert [part for part in drawn if part not in opened.text] == []


def test_downloads_hold_the_account_and_the_markdown(opened):
    table = pd.read_csv(io.BytesIO(opened.download("CSV")))
    assert sorted(set(table["context"])) == [8_192, 32_768, 131_072, 1_048_576]
    assert "measured: 32,768 to 1,048,576" in table.set_index("context").loc[8_192, "why"]
    at = table.set_index(["context", "form"])
    assert at.loc[(32_768, "adaptive width"), "combine"] == pytest.approx(31 * (90.6 - 13.2))
    assert at.loc[(1_048_576, "from positions"), ["builder", "combine"]].sum() == pytest.approx(62.1 + 31 * 131.0)
    assert at.loc[(32_768, "once a step"), ["builder", "combine"]].sum() == pytest.approx(62.3 + 31 * 90.6 - 5.3)
    held = json.loads(opened.download("JSON"))
    assert held["settings"]["model"] == "V4-Pro" and len(held["rows"]) == len(table) == 10
    text = opened.download("Markdown").decode()
    assert text.startswith("### Review of vLLM PR #50004") and text.count("\n| ") == 21


def test_printing_gives_the_closing_table_on_one_page(opened):
    pdf = opened.page.pdf(prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) == 1


def test_what_is_named_is_linked(opened):
    links = opened.page.locator("a").evaluate_all("all => all.map(one => one.href)")
    named = ("issues/52448", "issues/51318", "issues/52823", "commit/01a3d5aca1", "sparse_mla.py", "ad848fc41")
    for place in (*named, *(f"#claim-{claim.key}" for claim in CLAIMS)):
        assert any(link.endswith(place) for link in links), place
    opened.page.locator("a[href='#claim-addresses']").first.click()
    top = opened.settle().page.locator("#claim-addresses").evaluate("element => element.getBoundingClientRect().top")
    assert 0 <= top < 900


CONTROLS = [  # label, role, key, what the address holds then
    ("Model", "combobox", "ArrowUp", "model=V4-Flash"),
    ("multiple of 128", "radio", "Space", "policy=aligned"),
    ("Tokens a step", "textbox", "ArrowDown", "tokens=8191"),
    ("Throughput, TFLOP/s", "textbox", "ArrowUp", "tflops=3201"),
    ("Step as measured", "textbox", "ArrowUp", "step_ms=401"),
    ("Kernel times", "combobox", "ArrowUp", "times=recorded"),
    ("1 the signature", "radio", "ArrowRight", "hunk=2"),
]


def test_every_control_is_reached_and_moved_by_keyboard_and_changes_the_page_which_says_why_it_has_no_account(sheet):
    sheet.open(PAGE, **OPENED, seq=100_000, tokens="many")  # where a multiple of 128 is less than the power of two
    assert "tokens is many in the address" in sheet.text
    for label in ("at least", "at most", "Time in prefill steps, %"):
        sheet.focus(label, role="textbox")

    def step(milliseconds):
        sheet.focus("Step as measured").fill(milliseconds)
        sheet.press("Tab")

    step("1")  # too short for what is saved
    assert sheet.says("No account at this setting") and sheet.says("a step of 1,000 µs cannot save")
    step("0")  # estimated
    for label, role, key, parameter in CONTROLS:
        if label == "Step as measured":
            step("400")
        sheet.focus(label, role=role)
        before = sheet.text
        sheet.press(key).press("Tab")
        assert sheet.holds(parameter), label
        assert sheet.text != before, label
    preset = sheet.focus("Preset", role="combobox")  # it sets the context, and leaves the assumptions
    preset.select_option(label="V4-Flash at 1M tokens")
    assert preset.evaluate("element => element.matches(':focus')")
    assert sheet.holds("seq=1048576") and sheet.holds("preset=flash_1m") and sheet.holds("model_len=1048576")
    assert "tflops=3201" in sheet.page.url and sheet.says("saves 0 µs") and sheet.says("nothing is saved")


def test_notes_on_a_hunk_stay_with_it_and_stand_in_the_markdown(sheet):
    sheet.open(PAGE, **OPENED, hunk=2)
    assert "4,096" in sheet.text
    sheet.page.get_by_label("Your notes on the views").fill("Who <b>keeps</b> a stride?")
    sheet.press("Tab")
    sheet.focus("2 the views", role="radio")
    sheet.press("ArrowRight")
    assert sheet.holds("hunk=3") and sheet.says("new views, old strides")
    sheet.press("ArrowLeft")
    assert sheet.holds("hunk=2")
    assert sheet.page.get_by_label("Your notes on the views").input_value() == "Who <b>keeps</b> a stride?"
    assert "Who <b>keeps</b> a stride?" in sheet.page.locator(".review-closing").inner_text()
    written = sheet.download("Markdown").decode()
    assert "what else a graph keeps. Who <b>keeps</b> a stride?\n" in written and written.count("\n**The ") == 6
