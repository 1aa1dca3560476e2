"""Page 05 without a browser: tables and pictures from the facts."""

import json
from dataclasses import replace

import pytest

from c128a.claims import CLAIMS, Finding, Setting, Verdict, review, tally
from c128a.claims.account import ASSUMPTIONS
from c128a.records import load_all
from c128a.times import groups
from c128a.ui import review_charts, review_data, review_html, review_view
from c128a.ui.picture import Picture


@pytest.fixture(scope="module")
def findings():
    return review(Setting.default("elsewhere"))


@pytest.fixture(scope="module")
def setting():
    return Setting.default("elsewhere")


def drawn(shown):
    """All texts and numbers of a picture or a piece of HTML."""
    return json.dumps(shown.spec, ensure_ascii=False) if isinstance(shown, Picture) else shown


@pytest.mark.parametrize("at", range(len(CLAIMS)), ids=[claim.key for claim in CLAIMS])
def test_every_claim_has_a_picture_and_a_sentence(findings, at):
    shown, sentence = review_view.evidence(findings[at])
    assert len(drawn(shown)) > 100
    assert sentence.endswith(".")


@pytest.mark.parametrize(
    ("key", "holds"),
    [
        ("loop_32", ["8,192 → 256", "8 → 1", "62.3 → 6.5 µs"]),
        ("empty_and_odd", ["capacity 7,680", "512 lost"]),
        ("addresses", ["✔ row 0", "✘ row 2", "✘ old bytes"]),
        ("test_covers", ["row 1: not in the test"]),
        ("where", ["2,399 µs", "55.8 µs", "4.1 µs"]),
        ("throughput", ["reported 1.0%", "adaptive width", "from positions"]),
    ],
)
def test_pictures_show_the_facts_they_are_drawn_from(findings, key, holds):
    shown, _ = review_view.evidence(next(f for f in findings if f.claim.key == key))
    assert [text for text in holds if text not in drawn(shown)] == []


def test_missing_facts_show_their_reason_instead_of_a_picture(findings):
    shapes = next(f for f in findings if f.claim.key == "shapes")
    facts = {"missing": "This needs the kernel, and here torch cannot be imported."}
    shown, sentence = review_view.evidence(Finding(shapes.claim, facts, shapes.claim.judge(facts)))
    assert "torch cannot be imported" in shown
    assert "torch and triton are installed" in sentence


def test_a_context_that_was_not_measured_has_no_figures_but_a_reason(setting):
    table = review_data.contexts_table(setting).set_index("context")
    assert list(table.index) == [8_192, 32_768, 131_072, 1_048_576]
    assert "measured: 32,768 to 1,048,576" in table.loc[8_192, "why"]
    assert table.loc[32_768, "combine_saved_us"] == pytest.approx(31 * (90.6 - 13.2))
    assert table.loc[1_048_576, "adaptive_gain"] == 0
    assert table.loc[1_048_576, "positions_saved_us"] == pytest.approx(62.1 + 31 * (210.6 - 79.6))


def test_the_table_of_contexts_marks_the_chosen_one_and_says_why_one_is_empty(setting):
    text = review_html.contexts(review_data.contexts_table(setting).to_dict("records"), 32_768)
    assert text.count("◂ chosen") == 1 and "32,768 ◂ chosen" in text
    assert "was not measured at 8,192 tokens" in text
    assert "0.89% (0.25% – 1.96%)" in text


def test_the_parts_of_a_step_add_up_to_the_account(setting):
    parts = review_data.parts_table(setting)
    steps = parts.groupby("form", sort=False)["us_a_step"].sum()
    assert steps["fixed width"] == pytest.approx(62.3 + 31 * 90.6)
    assert steps["adaptive width"] == pytest.approx(6.5 + 31 * 13.2)
    assert steps["from positions"] == pytest.approx(31 * 5.3)
    assert parts["launches"].tolist() == [1, 31, 1, 31, 0, 31]


def test_the_account_says_which_part_is_builder_and_which_combine(setting):
    text = review_data.account_sentence(setting)
    assert "2,455 µs" in text and "2,399 µs in 31 launches of the combine" in text and "56 µs in one" in text
    assert "0.89% more tokens per second" in text and "1.0% lies inside" in text


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"max_seq_len": 8192}, "No account at this setting"),
        ({"max_seq_len": 1_048_576}, "saves nothing with the pow2 width"),
        ({"step_length_us": 500_000.0}, "of 500 ms (as given)"),
        (
            {"assumptions": {**ASSUMPTIONS, "pflops": replace(ASSUMPTIONS["pflops"], value=0.3, low=0.2, high=0.4)}},
            "lies outside",
        ),
    ],
    ids=["unmeasured", "full-width", "given-step", "slow-server"],
)
def test_the_sentence_of_the_account_follows_the_setting(setting, changed, says):
    assert says in review_data.account_sentence(replace(setting, **changed))


def test_times_of_a_form_of_our_own_are_set_against_the_released_kernel(setting):
    assert review_data.times_note(setting) == ""  # the figures from elsewhere are the released kernel's
    if "recorded" in groups(load_all()):
        assert "the released kernel took 90.6 and 13.2" in review_data.times_note(Setting.default("recorded"))


def test_the_address_describes_the_setting():
    records = load_all()
    fields = review_data.fields(records)
    values = {name: field.default for name, field in fields.items()}
    default = review_data.setting_of(values, records)
    assert (default.model.name, default.tokens, default.max_seq_len, default.policy) == ("V4-Pro", 8192, 32_768, "pow2")
    assert default.assumptions == ASSUMPTIONS
    assert default.step_length_us is None
    other = review_data.setting_of({**values, "model": "V4-Flash", "step_ms": 80, "tflops": 9000}, records)
    assert other.model.c128a_layers == 20 and other.step_length_us == 80_000
    assert other.assumptions["pflops"].value == other.assumptions["pflops"].high == 9.0  # the range holds its value


def test_the_glance_and_the_closing_table_name_every_claim_with_its_verdict(findings):
    for text in (review_html.glance(findings), review_html.closing(findings, "Review")):
        for finding in findings:
            assert finding.claim.title in text
        assert text.count("holds if") == tally(findings)["holds if"]


def test_a_verdict_has_its_own_sign_and_colour():
    assert len(set(review_html.ICON.values())) == len(set(review_html.COLOUR.values())) == 4


def test_text_of_a_claim_is_escaped(findings):
    odd = Finding(findings[0].claim, {}, Verdict("holds", "1 < 2 & 3"))
    assert "1 &lt; 2 &amp; 3" in review_html.card(odd)


def test_the_history_marks_the_one_release_whose_rows_move():
    text = review_html.releases()
    assert text.count("✘ rows move") == 1 and text.count("✔ rows stay") == 1
    assert text.index("0.26.0") < text.index("0.27.1") < text.index("✘ rows move") < text.index("0.28.0")


def test_charts_take_the_width_of_their_box(findings):
    for finding in findings:
        shown, _ = review_view.evidence(finding)
        if isinstance(shown, Picture):
            assert shown.spec["width"] == "container", finding.claim.key


def test_bars_name_their_unit():
    rows = [{"name": "a", "value": 3.0, "text": "3 µs", "colour": "#000000"}]
    assert "µs a launch" in drawn(review_charts.bars(rows, unit="µs a launch"))
