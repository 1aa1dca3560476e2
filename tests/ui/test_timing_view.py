"""The pictures of page 04 hold the numbers they claim to show."""

import pytest

from c128a.records import load
from c128a.ui import timing_cell, timing_floor, timing_overview, timing_parts, timing_view
from c128a.ui.timing_data import TimingCase
from c128a.ui.timing_runs import BATCHES, gather, normal
from tests.support import timings

RUNS = {
    "elsewhere": gather([load("elsewhere")]),
    "own": gather([timings.builder_run(cold=True), timings.combine_run(), timings.host_run(), load("elsewhere")]),
}
CHARTS = {
    "bytes": timing_view.bytes_chart,
    "trips": timing_view.trips_chart,
    "ratios": timing_cell.ratios_chart,
    "speedup": timing_overview.speedup_chart,
    "floor": timing_floor.floor_chart,
    "combine 2,048": lambda case: timing_parts.combine_chart(case, "p2048"),
    "combine 8,192": lambda case: timing_parts.combine_chart(case, "p8192"),
    "host": timing_parts.host_chart,
}
each_chart = pytest.mark.parametrize("chart", CHARTS.values(), ids=CHARTS)
each_run = pytest.mark.parametrize("runs", RUNS.values(), ids=RUNS)
OWN = TimingCase(RUNS["own"])


@each_run
@each_chart
@pytest.mark.parametrize("cache", ["warm", "cold"])
def test_every_layer_of_every_chart_finds_its_rows_in_every_recorded_batch(chart, runs, cache):
    batches = [batch for batch in BATCHES if runs.builder.of(batch, "warm")]
    assert len(batches) >= 4
    for batch in batches:
        spec = chart(TimingCase(runs, batch=batch, cache=cache)).spec
        names = {layer["data"]["name"] for layer in spec["layer"] if "name" in layer.get("data", {})}
        assert names <= set(spec["datasets"])


@each_chart
def test_a_chart_fills_its_container_at_a_fixed_height(chart):
    spec = chart(OWN).spec
    assert spec["width"] == "container" and isinstance(spec["height"], int)


@each_run
@each_chart
def test_no_mark_lies_outside_the_axis_it_is_drawn_on(chart, runs):
    spec = chart(TimingCase(runs)).spec
    for axis in ("x", "y"):
        for layer in spec["layer"]:
            encoding = layer["encoding"].get(axis, {})
            ends = encoding.get("scale", {}).get("domain")
            rows = spec["datasets"].get(layer.get("data", {}).get("name"), [])
            if ends and isinstance(ends[0], int | float):
                assert all(ends[0] <= row[encoding["field"]] <= ends[1] for row in rows)


def test_the_bytes_chart_has_a_point_for_each_variant_and_length_with_its_spread():
    points = timing_view.bytes_chart(OWN).spec["datasets"]["points"]
    assert len(points) == 4 * 4
    tiled = [point for point in points if point["series"] == "2-D tiles, adaptive width" and point["seq"] == 32_768]
    assert [(p["us"], p["bytes"], p["low"], p["high"]) for p in tiled] == [
        (4.0, 8192 * 256 * 4, 4.0 * 0.99, 4.0 * 1.01)
    ]


def test_figures_without_a_spread_have_no_bar():
    points = timing_view.bytes_chart(TimingCase(RUNS["elsewhere"])).spec["datasets"]["points"]
    assert points and not any("low" in point for point in points)


def test_the_floor_is_the_fill_times_what_must_also_be_read():
    case = TimingCase(RUNS["elsewhere"], 1_048_576, "d1024")
    points = timing_view.bytes_chart(case).spec["datasets"]["points"]
    floor = [point for point in points if point["series"].startswith("floor") and point["seq"] == 1_048_576]
    assert [point["us"] for point in floor] == [8.53 * 1.5]  # baseline sheet, and half a table entry a decode cell


def test_the_rules_are_what_a_launch_costs_before_it_writes():
    rules = timing_view.trips_chart(OWN).spec["datasets"]["rules"]
    assert [(rule["us"], rule["text"]) for rule in rules] == [
        (0.5, "empty kernel 0.50 µs"),
        (1.0, "its loads alone 1.00 µs"),
    ]
    elsewhere = timing_view.trips_chart(TimingCase(RUNS["elsewhere"])).spec["datasets"]["rules"]
    assert [rule["us"] for rule in elsewhere] == [0.82]


def test_widths_of_one_trip_stand_side_by_side_and_the_fixed_width_last():
    spec = timing_view.trips_chart(OWN).spec
    places = spec["layer"][-1]["encoding"]["x"]["scale"]["domain"]
    assert places == ["1 trip|128", "1 trip|256", "1 trip|1,024", "8 trips|8,192", "8 trips|8,192 (fixed)"]


def test_the_chosen_cell_is_ringed_in_every_chart_that_shows_it():
    case = TimingCase(RUNS["own"], 131_072, "p2048")
    assert {p["seq"] for p in timing_view.bytes_chart(case).spec["datasets"]["here"]} == {131_072}
    assert len(timing_overview.speedup_chart(case).spec["datasets"]["here"]) == 1
    assert len(timing_floor.floor_chart(case).spec["datasets"]["here"]) == 2


def test_three_ratios_at_every_length_and_the_tiles_as_a_fourth():
    bars = timing_cell.ratios_chart(OWN).spec["datasets"]["bars"]
    at = {bar["measure"]: bar["ratio"] for bar in bars if bar["length"] == "▸ 32,768 tokens"}
    assert at == {"columns": 32.0, "trips": 8.0, "µs, row loop": 8.0, "µs, tiles": 15.0}
    assert len(bars) == 4 * 4


def test_figures_from_elsewhere_have_no_tiles_at_fixed_width_and_no_bar_for_them():
    bars = timing_cell.ratios_chart(TimingCase(RUNS["elsewhere"])).spec["datasets"]["bars"]
    assert {bar["measure"] for bar in bars} == {"columns", "trips", "µs, row loop"}


def live_row(variant, us, width, device):
    kernel = "reference" if variant.startswith("reference") else "builder"
    return normal(timings.row(variant, us, width=width) | {"kernel": kernel, "device": device})


def test_live_points_lie_over_the_recorded_ones_and_bear_the_device():
    rows = [live_row("row_loop_adaptive", 9.0, 256, "Some Card"), live_row("tiled", 5.0, 256, "Some Card")]
    spec = timing_view.bytes_chart(OWN, rows).spec
    held = spec["datasets"]
    assert [point["us"] for point in held["live"]] == [9.0, 5.0] and len(held["points"]) == 16
    assert all(point["tip"].startswith("live · Some Card, ") for point in held["live"])
    assert [label["text"] for label in held["live_label"]] == ["live · Some Card"]
    names = [layer["data"]["name"] for layer in spec["layer"]]
    assert names.index("live") > names.index("points")


def test_the_torch_reference_is_never_drawn_as_a_kernel():
    rows = [live_row("reference_fixed", 4e5, 8192, "CPU"), live_row("reference_fill", 900.0, 256, "CPU")]
    spec = timing_view.bytes_chart(OWN, rows).spec
    kernels = {name for name, _, _ in timing_view.SERIES.values()}
    assert {point["series"] for point in spec["datasets"]["live"]}.isdisjoint(kernels)
    legend = spec["layer"][-3]["encoding"]["fill"]["scale"]["domain"]
    assert legend[-2:] == ["torch reference, fixed width", "torch fill of the same bytes"]


def test_without_live_rows_nothing_live_is_drawn():
    held = timing_view.bytes_chart(OWN).spec["datasets"]
    assert held["live"] == [] and held["live_label"] == []


def test_the_combine_s_two_charts_share_one_scale():
    scales = [
        timing_parts.combine_chart(OWN, batch).spec["layer"][0]["encoding"]["y"]["scale"]["domain"]
        for batch in timing_parts.TOKENS
    ]
    assert scales[0] == scales[1]


def test_a_host_range_without_samples_is_written_as_one():
    bars = timing_parts.host_chart(TimingCase(RUNS["elsewhere"])).spec["datasets"]["bars"]
    assert [bar["text"] for bar in bars] == ["27 – 37 µs", "11 µs", "5 µs", "19 µs"]  # baseline sheet


def test_the_table_has_a_line_for_each_variant_of_the_cell():
    table = timing_cell.cell_table(OWN).text
    assert table.count("<tr") == 1 + 8
    for part in ("tiles, no overlap", "its loads alone", "256 MiB", "8 MiB"):
        assert part in table
