"""Page 06 without a browser: settings, tables, texts, and the notebook itself."""

from pathlib import Path

import pytest

from c128a.deployment import check
from c128a.deployment.serve import read_serve_line
from c128a.deployment.step_cost import StepCost
from c128a.ui import deployment_data as data
from c128a.ui import deployment_view as view
from c128a.ui import state

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "06_deployment.py"


def values(**params):
    return state.read({name: str(value) for name, value in params.items()}, data.fields())[0]


def test_the_default_settings_are_those_of_the_check():
    assert data.answer(values()) == check(release="0.30.0")


def test_every_setting_reaches_the_check():
    found = data.answer(
        values(
            release="own",
            layout="packed",
            policy="aligned",
            model_len=70_000,
            batch=4096,
            seqs=64,
            spec=3,
            block=512,
            graph="piecewise",
            consumer="other",
            capacity=1024,
            warm="128,256",
            invariant="yes",
        )
    )
    assert found == check(
        70_000,
        4096,
        64,
        num_speculative_tokens=3,
        block_size=512,
        graph="piecewise",
        consumer="other",
        layout="packed",
        policy="aligned",
        capacity=1024,
        warmup_widths=[128, 256],
        batch_invariant=True,
    )


def test_a_release_sets_layout_and_policy_whatever_the_address_says():
    assert data.answer(values(release="0.28.0", layout="packed", policy="aligned")) == check(release="0.28.0")


@pytest.mark.parametrize("text", ["128;256", "a", "128,,256", "1234567", "-1"])
def test_a_width_list_that_is_none_is_refused(text):
    with pytest.raises(ValueError, match="widths in columns"):
        data.Widths().parse(text)


def test_a_command_line_is_laid_over_the_settings():
    line = read_serve_line("VLLM_BATCH_INVARIANT=1 vllm serve m --max-model-len 33792 -O1 -sc.num_speculative_tokens 3")
    merged, notes = data.apply_line(values(release="0.27.1", seqs=64), line)
    assert notes == []
    assert merged == values(release="0.27.1", seqs=64, model_len=33_792, graph="piecewise", spec=3, invariant="yes")


def test_what_the_page_cannot_hold_is_kept_and_said():
    line = read_serve_line("vllm serve m --block-size 64 --max-num-seqs 100000")
    merged, notes = data.apply_line(values(), line)
    assert merged == values()
    assert "Kept: 512." in notes[0]
    assert notes[1].startswith("--block-size 64: it must be one of 128, 256") and notes[1].endswith("Kept: 256.")


def test_bars_hold_the_bytes_of_the_buffers():
    (spec,) = [view.bytes_chart(check(release="0.30.0")).spec]
    ends = {(row["holder"], row["buffer"]): row["to"] for row in spec["datasets"]["rows"]}
    mib = 2**20
    row = 8192 * 4
    assert ends["this package", "decode rows"] == 16 * mib - row
    assert ends["this package", "prefill rows"] == 272 * mib - row
    assert ends["released", "decode rows"] == 256 * mib and ends["released", "prefill rows"] == 512 * mib


def test_widths_are_told_apart_by_the_list():
    rows = data.width_rows(check(33_792, release="0.30.0", warmup_widths=[128, 256, 512]))
    assert [(row["width"], row["status"]) for row in rows] == [
        (128, "in your list"),
        (256, "in your list"),
        (384, "missing from your list"),
        (512, "never chosen"),
    ]
    assert (rows[2]["first"], rows[2]["last"]) == (32_896, 49_279)  # 257 × 128; 385 × 128 - 1
    assert rows[3]["first"] is None


def test_many_widths_are_drawn_but_only_the_ends_are_labelled():
    rows = view.widths_chart(check(layout="pitched", policy="aligned")).spec["datasets"]["rows"]
    assert len(rows) == 64 and [row["text"] for row in rows if row["text"]] == ["128", "8,192"]


@pytest.mark.parametrize(
    ("found", "word", "counts"),
    [
        (check(release="0.27.1"), "Danger", "1 danger, 1 thing to know"),
        (check(release="0.30.0", batch_invariant=True), "Warning", "1 warning, 1 thing to know"),
        (check(33_792, release="0.30.0"), "Nothing dangerous", "3 things to know"),
        (check(16_384, layout="pitched", policy="fixed", capacity=8192), "Nothing dangerous", "1 thing to know"),
        (check(layout="pitched", policy="pow2", consumer="flashinfer_sm120"), "Danger", "2 dangers"),
    ],
    ids=["danger", "warning", "safe", "fixed", "two dangers"],
)
def test_the_verdict_is_a_word_a_shape_and_counts(found, word, counts):
    html = view.verdict(found)
    assert f"</span> {word}</strong>" in html and counts in html
    assert any(shape in html for _, _, shape, name in view.SIGNS.values() if name == word)


def test_cards_say_reason_and_setting_and_escape_what_they_are_given():
    found = check(release="0.27.1")
    html = view.finding_cards(found, values(release="0.27.1", model_len=70_000))
    assert "Rows move under the captured graph" in html and "Setting:" in html
    assert "?file=02_layout.py" in html and "layout=packed" in html and "model_len=70000" in html
    hostile = view.command_line(read_serve_line("vllm serve '<script>'"), ["<b>"])
    assert "script" not in hostile and "<b>" not in hostile and "&lt;b&gt;" in hostile


def test_the_sentence_under_the_bytes_names_both_holders():
    assert view.bytes_sentence(check(release="0.30.0")).endswith("so **272 MiB** are enough.")
    assert view.bytes_sentence(check(max_num_seqs=8192, release="0.30.0")).endswith("so there is nothing to save.")


def test_the_sentence_under_the_widths_names_what_the_list_misses():
    assert "misses **384**" in view.widths_sentence(check(33_792, release="0.30.0", warmup_widths=[128, 256, 512]))
    assert "no power of two" in view.widths_sentence(check(33_792, release="0.30.0"))
    assert "from 524,416 tokens on" in view.widths_sentence(check(release="0.30.0"))
    assert view.widths_sentence(check(4096, release="0.30.0")).startswith("One width, 128 columns")


def test_costs_are_rounded_and_their_basis_is_told_once():
    costs = [
        StepCost("decode", "worst", 512, 1_048_576, 8192, None, None, "not measured: why", ()),
        StepCost("prefill", "worst", 8192, 1_048_576, 8192, None, None, "not measured: why", ()),
        StepCost("prefill", "typical", 8192, 32_768, 256, 6.54, 13.2, "measured", ("a card",)),
    ]
    rows = data.cost_rows(costs)
    assert rows[2] == ("typical prefill", "8,192", "32,768", "256", "6.5 µs", "13.2 µs", "271 µs", "416 µs")
    assert rows[0][4:] == ("not measured", "none", "not measured", "not measured")
    text = view.cost_sentence(check(release="0.30.0"), costs)
    assert "Source: a card." in text and "- worst decode, worst prefill: not measured: why" in text
