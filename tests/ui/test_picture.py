"""A picture is a frame with rows in it; what cannot be shown is refused."""

import html
import json

import altair as alt
import marimo as mo
import pytest

from c128a.ui import page, picture


def chart():
    return alt.Chart(alt.NamedData("here")).mark_point().encode(x="seq:Q")


def test_a_picture_refuses_more_marks_than_it_can_show():
    with pytest.raises(ValueError, match=r"20,001 rows; it must hold at most 20,000"):
        picture.Picture({}, here=[{}] * 20_001)


def test_a_picture_leaves_its_frame_as_it_was():
    frame = {"datasets": {"fixed": [1]}}
    assert picture.Picture(frame, here=[{"x": 1}]).spec["datasets"] == {"fixed": [1], "here": [{"x": 1}]}
    assert frame == {"datasets": {"fixed": [1]}}


def test_marimo_and_jupyter_get_the_same_chart_with_its_rows():
    made = picture.Picture(picture.frame(chart()), here=[{"seq": 5}])
    kind, text = made._mime_()
    assert kind == "application/vnd.vegalite.v6+json"
    assert json.loads(text) == made._repr_mimebundle_()[kind]
    assert json.loads(text)["datasets"]["here"] == [{"seq": 5}]


def test_a_canvas_is_an_empty_chart_that_listens():
    element = page.canvas()
    assert isinstance(element, mo.ui.altair_chart)
    assert element.selections == {}
    assert page.EMPTY_SPEC in element.text  # what `draw` replaces


def test_a_picture_drawn_on_a_canvas_keeps_the_canvas(monkeypatch):
    monkeypatch.setattr(mo, "running_in_notebook", lambda: True)
    place, made = page.canvas(), picture.Picture(picture.frame(chart()), here=[{"name": "it's <5>"}])
    drawn = page.draw(place, made).text
    before, after = place.text.split(page.EMPTY_SPEC)
    assert drawn.startswith(before) and drawn.endswith(after)
    held = drawn.removeprefix(before).removesuffix(after).removeprefix("data-spec='").removesuffix("'")
    assert "'" not in held and json.loads(html.unescape(held)) == made.spec


def test_as_a_plain_program_a_canvas_shows_the_picture_itself():
    made = picture.Picture(picture.frame(chart()), here=[])
    assert page.draw(page.canvas(), made) is made
