"""The pictures of page 03, its boxes of text, its downloads, and the page as a whole, outside of a browser."""

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest

from c128a.ui import kernel_panels, kernel_run, kernel_view
from c128a.ui.kernel_case import KERNELS, KernelCase, View
from c128a.ui.kernel_data import map_frame, trace_frame
from c128a.ui.kernel_text import lanes_sentence, map_sentence

ROOT = Path(__file__).parents[2]

CASES = {
    "default": KernelCase(),
    "two-trips": KernelCase(seq=150_000),
    "fixed": KernelCase(policy="fixed", decode=1, prefill=1),
    "decode-only": KernelCase(seq=70_000, decode=8, prefill=0),
    "prefill-only": KernelCase(seq=5000, decode=0, prefill=5),
    "ratio-4": KernelCase(seq=9000, ratio=4, decode=2, prefill=2),
    "no-tokens": KernelCase(seq=0),
}
cases = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
kernels = pytest.mark.parametrize("kernel", KERNELS)


@cases
@kernels
def test_the_blocks_of_a_map_are_all_cells_each_once(case, kernel):
    found, joined = kernel_view.blocks(case, kernel)
    assert joined == 1
    rows = [(block["kind"], row) for block in found for row in range(block["first_row"], block["last_row"] + 1)]
    area = sum(
        (block["last_row"] + 1 - block["first_row"]) * (block["last_column"] + 1 - block["first_column"])
        for block in found
    )
    assert area == (case.decode + case.prefill) * case.width
    assert len(set(rows)) == case.decode + case.prefill
    assert len({(block["kind"], block["first_row"], block["first_column"]) for block in found}) == len(found)


def test_a_map_with_too_many_blocks_joins_neighbours_and_says_so():
    case = KernelCase(seq=1_048_576, ratio=4, decode=8, prefill=8)  # 262,144 columns: 256 trips for each of 16 rows
    found, joined = kernel_view.blocks(case, "row_loop")
    assert (len(found), joined) == (1024, 4)
    assert "One block stands for 4 neighbours" in map_sentence(case, "row_loop", joined)


@cases
@kernels
def test_the_boxes_on_the_other_map_cover_the_cells_on_view(case, kernel):
    view = View.within(case, kernel, 1, 0)
    (own,) = kernel_view.map_boxes(view, kernel)
    (other,) = (name for name in KERNELS if name != kernel)
    covered = kernel_view.map_boxes(view, other)
    assert own.solid and not any(box.solid for box in covered)
    assert min(box.left for box in covered) <= own.left
    assert max(box.left + box.width for box in covered) >= own.left + own.width
    assert min(box.top for box in covered) <= own.top
    assert max(box.top + box.height for box in covered) >= own.top + own.height


@cases
@kernels
def test_the_picture_of_a_trip_holds_every_lane_in_the_colour_of_its_state(case, kernel):
    view = View.within(case, kernel, 0, 0)
    drawn = kernel_view.lane_picture(view).spec["datasets"]["lanes"]
    assert [(mark["lane"], mark["s"], mark["r"], mark["c"], mark["v"]) for mark in drawn] == [
        (at, lane.state, lane.row, lane.column, lane.value) for at, lane in enumerate(view.store.lanes)
    ]
    heights = {mark["s"]: round(mark["y2"] - mark["y"], 2) for mark in drawn}
    assert len(set(heights.values())) == len(heights)  # a state is told apart without its colour


def test_a_trip_of_more_lanes_than_are_drawn_says_so():
    store = View(KernelCase(), "row_loop", 0, 0).store
    assert "Drawn: 512 of 1,024 lanes." in lanes_sentence(store, 512)
    assert "Drawn" not in lanes_sentence(store, 1024)


@pytest.mark.parametrize(
    ("label", "text"),
    # Row 2 of 256 columns, packed, column 7: flat 519, byte 2,076. A prefill row stores its column.
    [("value", "7"), ("index", "519"), ("cell", "2, 7"), ("byte", "2,076"), ("statement", "192")],
)
def test_the_close_up_is_labelled_as_asked(label, text):
    cells = kernel_panels.close_up(View(KernelCase(), "row_loop", 5, 0, 7, "n"), label)
    assert f'aria-current="true" title="lane 7">{text}</div>' in cells


def test_an_output_that_differs_is_marked():
    view = View(KernelCase(seq=3000), "row_loop", 0, 0, 5)
    output = kernel_run.true_output(view.case, "row_loop")
    assert "wrong" not in kernel_panels.output_table(output, view)
    rows = [list(row) for row in output.kernel["decode"]]
    rows[0][5] += 1
    changed = dataclasses.replace(output, kernel={**output.kernel, "decode": rows})
    assert changed.differing == 1
    assert kernel_panels.output_table(changed, view).count("wrong") == 1


@kernels
def test_the_downloads_hold_every_lane_and_every_program(kernel):
    case = KernelCase(seq=150_000)
    view = View.within(case, kernel, 1, 1)
    frame = trace_frame(case, view.stores)
    assert len(frame) == sum(len(store.lanes) for store in view.stores)
    assert (frame["state"] == "live").sum() == sum(store.count("live") for store in view.stores)
    programs = map_frame(case).query("kernel == @kernel")
    assert len(programs) == case.grid(kernel)[0] * case.grid(kernel)[1]


def test_without_torch_the_trace_stands_in_for_the_output():
    blocked = "import sys; sys.modules['torch'] = sys.modules['triton'] = None;"
    run = blocked + "from c128a.ui.kernel_run import unavailable; print(unavailable())"
    done = subprocess.run([sys.executable, "-c", run], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert "torch cannot be imported here" in done.stdout
    table = kernel_panels.output_table(None, View(KernelCase(), "row_loop", 0, 0))
    assert "trace" in table and "reference" not in table
