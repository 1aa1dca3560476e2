"""A picture is a frame with rows in it; what cannot be shown is refused."""

import csv
import io
import json

import altair as alt
import pytest

from c128a.ui import picture


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


def test_long_data_travels_as_csv_with_the_format_to_read_it():
    rows = [{"seq": at, "name": f"row {at}, of many"} for at in range(picture.LONG)]
    sent = json.loads(picture.Picture(picture.frame(chart()), here=rows).to_json())
    assert list(csv.DictReader(io.StringIO(sent["datasets"]["here"]))) == [
        {"seq": str(row["seq"]), "name": row["name"]} for row in rows
    ]
    assert sent["data"] == {"name": "here", "format": {"type": "csv", "parse": {"seq": "number"}}}
    holes = [row | {"seq": row["seq"] or None} for row in rows]  # the first is missing: the column still holds numbers
    again = json.loads(picture.Picture(picture.frame(chart()), here=holes).to_json())
    assert again["data"] == sent["data"] and again["datasets"]["here"].splitlines()[1] == ',"row 0, of many"'
    short = json.loads(picture.Picture(picture.frame(chart()), here=rows[1:]).to_json())
    assert short["datasets"]["here"] == rows[1:] and short["data"] == {"name": "here"}
