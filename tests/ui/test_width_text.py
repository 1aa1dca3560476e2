"""The sentences of page 01 say what the numbers say."""

import pytest

from c128a.ui import width_text
from c128a.ui.width_data import WidthCase


@pytest.mark.parametrize(
    ("case", "part"),
    [
        (WidthCase(32_896), "needs 257 of 8,192 columns and 512 are built: 16 × fewer to write, and 8 trips become 1."),
        (WidthCase(524_416), "**all 8,192 are built**: nothing is saved, 50% of the row is padding."),
        (WidthCase(32_768, policy="fixed"), "**all 8,192 are built**: nothing is saved, 97% of the row is padding."),
        (WidthCase(0, 33_792), "needs 0 of 384 columns and 128 are built: 3 × fewer to write, and still 1 trip"),
        (WidthCase(1_048_576, 980_224), "needs 8,192 columns, and the buffer has 7,680."),
    ],
    ids=["one block over", "first that saves nothing", "fixed", "empty batch", "too narrow"],
)
def test_the_lead_says_what_the_settings_make_true(case, part):
    assert part in width_text.lead(case)


def test_only_a_case_that_does_not_fit_raises_the_alarm_and_it_says_what_would_hold_it():
    assert width_text.too_narrow(WidthCase(983_167, 980_224)) is None
    message = width_text.too_narrow(WidthCase(983_168, 980_224))
    assert "7,680 columns is too narrow for 983,168 tokens" in message and "at most 983,167 tokens" in message


def test_the_curve_sentence_names_the_range_and_the_share_that_gains_nothing():
    text = width_text.curve_sentence(WidthCase(32_896))
    assert "512 columns serve every batch from 32,896 to 65,663 tokens." in text
    assert "From **524,416 tokens** on" in text and "**50% of all lengths**" in text


def test_the_pads_sentence_tells_the_two_adaptive_policies_apart():
    assert "builds 512 columns where the multiple of 128 builds 384: 128 more" in width_text.pads_sentence(
        WidthCase(32_896)
    )
    assert "both adaptive policies build 256 columns" in width_text.pads_sentence(WidthCase(32_768))


def test_the_command_gives_the_same_widths():
    case = WidthCase(32_896, 33_792)
    program = width_text.command(case).removeprefix('python -c "').removesuffix('"')
    printed = []
    exec(program, {"print": lambda *values: printed.extend(values)})
    assert printed == [384, 384, [128, 256, 384]]  # facts.md, section 4 and incident 15
