"""The pictures of page 01 hold the numbers they claim to show."""

import pytest

from c128a.ui import width_costs, width_view
from c128a.ui.width_data import WidthCase

CASES = [
    WidthCase(32_768),
    WidthCase(0, 1),
    WidthCase(100_000, policy="aligned"),
    WidthCase(1_048_576, 980_224),
    WidthCase(1_048_576, ratio=4),
    WidthCase(100, policy="fixed"),
]
CHARTS = [
    width_view.width_curve,
    width_view.length_strip,
    width_view.pads_chart,
    width_costs.trips_chart,
    width_costs.bytes_chart,
]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.__name__)
def test_every_layer_finds_its_rows(chart, case):
    spec = chart(case).spec
    names = {layer["data"]["name"] for layer in spec["layer"] if "name" in layer.get("data", {})}
    assert names <= set(spec["datasets"])


@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.__name__)
def test_a_chart_fills_its_container_and_is_no_taller_than_it_says(chart):
    spec = chart(WidthCase()).spec
    assert spec["width"] == "container" and isinstance(spec["height"], int)


def test_you_are_here_lies_on_the_curve_and_the_range_around_it():
    rows = width_view.width_curve(WidthCase(33_000)).spec["datasets"]
    assert (rows["here"][0]["seq"], rows["here"][0]["width"]) == (33_000, 512)
    assert (rows["held"][0]["seq"], rows["held"][0]["to"], rows["held"][0]["width"]) == (32_896, 65_663, 512)


def test_a_case_that_does_not_fit_is_a_cross_without_a_range():
    rows = width_view.width_curve(WidthCase(1_048_576, 980_224)).spec["datasets"]
    assert rows["here"][0]["shape"] == "cross" and rows["held"] == []
    assert "7,680 is too narrow" in rows["here"][0]["text"]


@pytest.mark.parametrize("seq", [0, 300, 1_048_576])
def test_the_label_is_drawn_once_and_on_the_side_with_room(seq):
    rows = width_view.width_curve(WidthCase(seq)).spec["datasets"]
    assert len(rows["here_left"]) + len(rows["here_right"]) == 1
    assert len(rows["here_left"]) == (seq > 11_585)  # the middle of a log axis from 128 to 1,048,576
