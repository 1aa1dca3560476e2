"""A picture takes the place of the empty chart that marimo wrote, and a click on it arrives."""

import html
import json

import altair as alt
import marimo as mo
import pytest

from c128a.ui import clickable, kernel_view, picture
from c128a.ui.kernel_case import KernelCase

PICTURES = {
    "a-map": kernel_view.program_map(KernelCase(), "tiled"),
    "signs": picture.Picture(
        picture.frame(alt.Chart(alt.NamedData("here")).mark_point().encode(x="seq:Q")),
        here=[{"name": r"it's <5> & \"6\" \\1"}],
    ),
}


def clicked(*marks):
    """What on_pick gets of these selections, sent as a browser sends them."""
    found = []
    element = clickable.clickable(found.append)
    for mark in marks:
        element._update(mark)
    return found


@pytest.mark.parametrize("made", PICTURES.values(), ids=PICTURES)
def test_a_drawn_element_is_the_element_with_the_picture_in_it(made):
    element = clickable.clickable(lambda mark: None)
    start, mark, rest = clickable.drawn(element, made).text.partition("data-spec='")
    held, end, rest = rest.partition("'")
    assert element.text.startswith(start + mark) and element.text.endswith(end + rest)
    assert json.loads(html.unescape(held)) == made.spec


def test_what_holds_no_chart_is_refused():
    with pytest.raises(ValueError, match="0 places for a picture; it must have one"):
        clickable.drawn(mo.ui.slider(0, 1), PICTURES["signs"])


def test_a_click_hands_on_the_fields_of_its_mark_and_one_beside_all_marks_nothing():
    assert clicked({"pick": {"vlPoint": {"or": []}, "layout": ["packed"], "start": [128]}}, {}) == [
        {"layout": "packed", "start": 128}
    ]
