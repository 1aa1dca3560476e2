"""A form puts every mark where its row says, names what it cannot draw, and gives a chart that Altair accepts."""

import csv
import io
import json

import altair as alt
import numpy as np
import pandas as pd
import pytest

from c128a.show import forms, theme
from c128a.show.forms import Axis

MEASURED = {"x": [1, 2], "y": [3.0, 4.0], "series": ["a", "b"], "low": [2.5, 3.5], "high": [3.5, 5.0]}
BANDS = pd.DataFrame(
    {"group": ["one", "two"], "lane": "row 0", "start": [0, 128], "stop": [128, 512], "tip": ["a", "b"]}
)
BANDS = BANDS.assign(kind=["id of this build", "old pad"], label=["row 0", "a label too long for any mark"])
WHERE = {"group": ["one"], "lane": ["row 0"]}
VERDICT = pd.DataFrame({**WHERE, "start": [0], "stop": [64], "kind": ["wrong"], "tag": ["row 0"]})
PICTURES = {
    "bands": lambda **more: forms.bands(
        BANDS,
        styles=theme.CELLS,
        groups={"one": "First", "two": "Second"},
        x_axis=Axis("column"),
        outlines=VERDICT,
        outline_styles=theme.VERDICTS,
        signs=pd.DataFrame({**WHERE, "at": [0], "kind": ["right"], "tip": ["x"]}),
        sign_styles=theme.VERDICTS,
        rules=pd.DataFrame({**WHERE, "at": [64]}),
        cuts=pd.DataFrame({**WHERE, "at": [64]}),
        notes=pd.DataFrame({**WHERE, "at": [64], "text": ["note"]}),
        chosen=pd.DataFrame({**WHERE, "start": [0], "stop": [1], "dashed": [True]}),
        **more,
    ),
    "points": lambda **more: forms.points(
        pd.DataFrame({**MEASURED, "here": [True, False], "live": [False, True], "label": ["p", "q"]}),
        x="x",
        y="y",
        series="series",
        x_axis=Axis("bytes", log=2, unit="bytes"),
        y_axis=Axis("µs", log=10),
        join=["a"],
        rules=pd.DataFrame({"at": [2.0], "label": ["floor"]}),
        reference=pd.DataFrame({"x": [1, 2], "y": [1, 2], "label": ["goal", ""]}),
        **more,
    ),
    "bars": lambda **more: forms.bars(
        pd.DataFrame({"name": ["a", "b"], "value": [5, 7], "part": ["p", "q"], "label": ["5", "7"]}),
        rules=pd.DataFrame({"at": [6]}),
        **more,
    ),
    "lines": lambda **more: forms.points(
        pd.DataFrame(MEASURED),
        x="x",
        y="y",
        series="series",
        dots=False,
        join=True,
        step=True,
        here=pd.DataFrame({"x": [2], "y": [4], "label": ["here"], "tip": ["t"]}),
        held=pd.DataFrame({"x": [1], "to": [2], "y": [3]}),
        shade=pd.DataFrame({"start": [1], "stop": [2], "label": ["all"]}),
        **more,
    ),
    "matrix": lambda **more: forms.matrix(
        pd.DataFrame({"r": ["a", "b"], "c": ["x", "x"], "kind": ["holds", "not checked"]}),
        row="r",
        column="c",
        styles=theme.LEVELS,
        **more,
    ),
}
CLICK = {"bands": ["lane", "start"], "matrix": ["r", "c"]}


def layers(picture, kind):
    return [layer for layer in picture.spec["layer"] if layer["mark"]["type"] == kind]


@pytest.mark.parametrize("name", PICTURES)
def test_every_form_is_a_chart_that_altair_accepts_and_has_a_name(name):
    picture = PICTURES[name](description="what it shows", title="a line above")
    alt.LayerChart.from_dict(json.loads(picture.to_json()))
    assert picture.spec["title"] == "a line above"
    assert picture.spec["usermeta"]["embedOptions"]["renderer"] == "svg"  # what a screen reader finds and INK follows
    assert picture.spec["config"]["background"] == "transparent"
    for layer in layers(picture, "text"):  # a text without a colour of its own is black in the dark
        assert "color" in layer["mark"]
    with pytest.raises(ValueError, match="description is empty"):
        PICTURES[name](description="")


def test_a_chart_has_a_name_and_is_described_by_axes_and_kinds_and_each_mark_that_is_read_out_by_its_columns():
    spec = PICTURES["points"](description="Times").spec
    assert spec["description"] == "Times. Across: bytes. Up: µs. Kinds: a, b"
    assert [row["tip"] for row in spec["datasets"]["rows"] + spec["datasets"]["live"]] == ["a, 1, 3", "b, 2, 4"]
    told = {"bands": "128, 512, old pad, row 0", "bars": "b, q, 7", "matrix": "b, x, ○ not checked"}
    for name, tip in told.items():
        data = PICTURES[name](description="x").spec["datasets"]
        marks = next(rows for rows in data.values() if "tip" in rows[-1])
        assert marks[-1]["tip"] == (BANDS["tip"][1] if name == "bands" else tip)
    for name, picture in PICTURES.items():
        for layer in picture(description="x").spec["layer"]:
            assert layer["mark"].get("aria") is False or "description" in layer["encoding"], (name, layer["mark"])


@pytest.mark.parametrize("name", CLICK)
def test_a_click_reports_columns_that_the_clicked_marks_have(name):
    spec = PICTURES[name](description="x", click=CLICK[name]).spec
    (pick,) = spec["params"]
    (clicked,) = (layer for layer in spec["layer"] if layer.get("name") in pick["views"])
    assert set(pick["select"]["fields"]) == set(CLICK[name]) <= set(spec["datasets"][clicked["data"]["name"]][0])


def test_groups_stand_under_each_other_with_room_for_their_headings():
    data = PICTURES["bands"](description="x").spec["datasets"]
    # Headings take 1.25 lanes, so the lanes begin at 1.25 and 3.5; signs take 0.38 of a lane, notes 0.36.
    marks = [tuple(round(mark[end], 3) for end in ("x", "x2", "y", "y2")) for mark in data["marks"]]
    assert marks == [(0, 128, 1.63, 1.89), (128, 512, 3.88, 4.14)]
    assert [heading["label"] for heading in data["headings_texts"]] == ["First", "Second"]


def test_a_label_stands_where_it_fits_and_the_short_one_where_only_that_fits():
    def drawn(stop):
        row = {"lane": ["a"], "start": [0], "stop": [stop], "kind": ["live"], "label": ["row 12345"], "short": ["12"]}
        axis = Axis(domain=(0, 100))
        picture = forms.bands(pd.DataFrame(row), description="x", styles=theme.LANES, room=100, x_axis=axis)
        return [text["label"] for text in picture.spec["datasets"].get("labels_texts", [])]

    # Seven pixels a character and six around them: 69 for the label, 20 for the short one.
    assert [drawn(stop) for stop in (69, 68, 20, 19)] == [["row 12345"], ["12"], ["12"], []]


def test_a_mark_without_a_label_has_no_text():
    rows = pd.DataFrame({"name": ["a", "b"], "value": [1, 2], "label": ["one", ""]})
    data = forms.bars(rows, description="x").spec["datasets"]
    assert len(data["bars"]) == 2 and [text["label"] for text in data["labels_texts"]] == ["one"]


def test_the_height_of_a_band_says_its_state_as_well():
    rows = pd.DataFrame({"lane": ["a"] * 2, "start": [0, 1], "stop": [1, 2], "kind": ["live", "pad"]})
    marks = forms.bands(rows, description="x", styles=theme.LANES).spec["datasets"]["marks"]
    assert [round(mark["y2"] - mark["y"], 2) for mark in marks] == [0.88, 0.44]


def test_stacked_bars_stand_end_to_end_and_grouped_ones_under_each_other():
    rows = pd.DataFrame({"name": ["a", "a", "b"], "part": ["p", "q", "p"], "value": [5, 7, 1]})
    stacked = forms.bars(rows, description="x", stack=True).spec["datasets"]["bars"]
    assert [(bar["x"], bar["x2"]) for bar in stacked] == [(0, 5), (5, 12), (0, 1)]
    grouped = forms.bars(rows, description="x").spec["datasets"]["bars"]
    assert [bar["x"] for bar in grouped] == [0, 0, 0] and grouped[0]["y2"] <= grouped[1]["y"]


def test_whiskers_and_rules_follow_the_axis_that_measures():
    rows = pd.DataFrame({"batch": ["a", "b"], "ratio": [2.0, 3.0], "low": [1.5, 2.5], "high": [2.5, 3.5]})
    rules = pd.DataFrame({"at": [1.0]})
    for x, y, measured, axis in (("ratio", "batch", "x", Axis(log=2)), ("batch", "ratio", "y", Axis())):
        axes = {"x_axis": axis} if x == "ratio" else {"y_axis": axis}
        rule, whisker = layers(forms.points(rows, x=x, y=y, rules=rules, description="x", **axes), "rule")
        assert rule["encoding"][measured]["field"] == "at" and whisker["encoding"][f"{measured}2"] == {"field": "high"}


def test_the_text_of_here_stands_on_the_side_with_room():
    def side(x):
        here = pd.DataFrame({"x": [x], "y": [1], "label": ["here"]})
        lines, axis = pd.DataFrame({"x": [1, 1024], "y": [1, 2]}), Axis(log=2, domain=(1, 1024))
        data = forms.points(lines, x="x", y="y", here=here, x_axis=axis, description="x").spec["datasets"]
        return [name for name in data if name.endswith(("left_texts", "right_texts"))]

    assert (side(31), side(33)) == (
        ["here_right_texts"],
        ["here_left_texts"],
    )  # the middle of a log axis from 1 to 1024 is 32


@pytest.mark.parametrize(
    ("marks", "more", "words"),
    [
        (BANDS.drop(columns="stop"), {}, "bands: marks has columns .* must also have .'stop'."),
        (BANDS.assign(kind=["id of this build", "new"]), {}, "bands: .'new'. have no style"),
        (BANDS, {"rules": pd.DataFrame({**WHERE, "lane": "row 9", "at": [0]})}, "no lanes .*'row 9'"),
    ],
    ids=["column", "kind", "lane"],
)
def test_what_cannot_be_drawn_is_named(marks, more, words):
    with pytest.raises(ValueError, match=words):
        forms.bands(marks, description="x", styles=theme.CELLS, **more)


def test_without_rows_a_picture_is_empty():
    for ordered in ("kind", "order"):
        assert forms.bands(BANDS[:0].assign(**{ordered: 0}), description="x").spec["datasets"]["marks"] == []
    nothing = pd.DataFrame(columns=["name", "value", "label"])
    assert forms.points(nothing, x="name", y="value", description="x").spec["datasets"] == {"rows": []}
    for stack in (False, True):
        assert forms.bars(nothing, description="x", stack=stack).spec["datasets"]["bars"] == []


def test_a_picture_refuses_more_marks_than_it_can_show():
    with pytest.raises(ValueError, match=r"20,001 rows; it must hold at most 20,000"):
        forms.Picture({}, here={"x": np.arange(20_001)})
    forms.Picture({}, here={"x": np.arange(20_000)})


def test_long_data_travels_as_csv_with_the_format_to_read_it():
    spec = {"layer": [{"data": {"name": "here"}}]}
    rows = {"seq": np.array([np.nan, *range(1, forms.LONG)]), "name": np.array(["a, b"] * forms.LONG)}
    kind, text = forms.Picture(spec, here=rows)._mime_()
    sent = json.loads(text)
    assert kind == "application/vnd.vegalite.v6+json"
    assert sent["layer"][0]["data"] == {"name": "here", "format": {"type": "csv", "parse": {"seq": "number"}}}
    read = list(csv.DictReader(io.StringIO(sent["datasets"]["here"])))
    assert [row["seq"] for row in read[:3]] == ["", "1", "2"] and {row["name"] for row in read} == {"a, b"}
    short = forms.Picture(spec, here={name: values[:-1] for name, values in rows.items()}).spec
    assert short["layer"] == spec["layer"] and short["datasets"]["here"][0] == {"seq": None, "name": "a, b"}
