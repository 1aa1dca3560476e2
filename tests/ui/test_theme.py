"""One theme, readable on both backgrounds, with a second sign beside each colour."""

import altair as alt
import pytest

from c128a.layout import LAYOUTS
from c128a.ui import theme
from c128a.width import POLICIES

WHITE = (1.0, 1.0, 1.0)
DARK = (0x18 / 255, 0x1C / 255, 0x1A / 255)  # marimo's dark page


def rgb(colour: str) -> tuple[float, ...]:
    return tuple(int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))


def contrast(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    """Contrast ratio as WCAG 2 defines it."""

    def luminance(colour):
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("name", ["ID", "STALE", "RIGHT", "WRONG", "HERE"])
@pytest.mark.parametrize("page", [WHITE, DARK], ids=["light", "dark"])
def test_signs_stand_out_from_both_pages(name, page):
    assert contrast(rgb(getattr(theme, name)), page) >= 3  # WCAG 2, graphical objects


@pytest.mark.parametrize(
    ("text", "ground"),
    [(theme.ON_ID, theme.ID), (theme.ON_PAD, theme.PAD), ("#FFFFFF", theme.ALARM)],
    ids=["id", "pad", "alarm"],
)
def test_labels_on_a_ground_can_be_read(text, ground):
    assert contrast(rgb(text), rgb(ground)) >= 4.5  # WCAG 2, text


def test_every_policy_layout_and_kernel_has_its_signs():
    assert set(theme.POLICY) == set(theme.POLICY_DASH) == set(theme.POLICY_NAME) == set(POLICIES)
    assert set(theme.LAYOUT) == {"fixed", *LAYOUTS}
    assert set(theme.KERNEL) == set(theme.KERNEL_NAME) == set(theme.KERNEL_SHAPE)
    for signs in (theme.POLICY, theme.LAYOUT, theme.KERNEL, theme.KERNEL_SHAPE):
        assert len(set(signs.values())) == len(signs)


def test_a_chart_takes_the_theme_and_is_drawn_as_svg():
    theme.use()
    spec = alt.Chart(alt.Data(values=[{"x": 1}])).mark_point().encode(x="x:Q").to_dict()
    assert spec["usermeta"]["embedOptions"]["renderer"] == "svg"
    assert spec["config"]["background"] == "transparent"
