"""One theme, readable on both backgrounds, with a second sign beside each colour."""

import pytest

from c128a.show import theme

WHITE, DARK = "#FFFFFF", "#181C1A"  # marimo's pages
STYLES = {
    f"{name}-{kind}": style
    for name in ("CELLS", "VERDICTS", "LANES", "POLICIES", "KERNELS", "LEVELS", "SEVERITIES")
    for kind, style in getattr(theme, name).items()
}


def contrast(one, other):
    """Contrast ratio as WCAG 2 defines it."""

    def luminance(colour):
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("colour", ["BLUE", "GREEN", "VERMILLION", "GREY", "HERE"])
def test_signs_stand_out_from_both_pages(colour):
    assert min(contrast(getattr(theme, colour), page) for page in (WHITE, DARK)) >= 3  # WCAG 2, graphical objects


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
def test_labels_on_a_mark_can_be_read(style):
    if style.ink != theme.INK:  # which is the page's own, for marks that recede
        assert contrast(style.ink, style.colour) >= 4.5  # WCAG 2, text
    assert contrast("#FFFFFF", theme.ALARM) >= 4.5


def test_no_two_kinds_differ_by_colour_alone():
    for name, second in (("POLICIES", "dash"), ("KERNELS", "shape"), ("VERDICTS", "dash"), ("LANES", "height")):
        signs = [getattr(style, second) for style in getattr(theme, name).values()]
        assert len(set(signs)) == len(signs)
