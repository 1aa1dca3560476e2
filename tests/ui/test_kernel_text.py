"""The way of a cell from its position to its value, with numbers worked out by hand."""

import pytest

from c128a.ui.kernel_case import FAULTS, KERNELS, KernelCase, View
from c128a.ui.kernel_text import lead
from c128a.ui.kernel_way import way

kernels = pytest.mark.parametrize("kernel", KERNELS)


def at(program, trip, lane, **settings):
    """A lane of the row loop."""
    return View(KernelCase(**settings), "row_loop", program, trip, lane)


# Settings of the ways below: decode rows of 32,768, 21,845 and 10,922 tokens, hence n = 256, 170, 85; b = 2; the table
# has 128 columns; the width is 256.
@pytest.mark.parametrize(
    ("view", "key", "text", "value"),
    [
        (at(1, 0, 200), "n", "(21,844 + 1) // 128 = 170", "170"),
        (at(1, 0, 200), "entry", "200 // 2 = 100", "100"),
        (at(1, 0, 200), "live", "200 ≥ n = 170: no", "no"),
        (at(1, 0, 200), "slot", "200 ≥ n = 170: -1", "-1"),
        (at(1, 0, 256), "store", "masked: column 256 ≥ width 256", "masked"),
        (at(5, 0, 7), "index", "7 < 192: 7", "7"),
        (at(5, 0, 7), "store", "row 2 × stride 256 + column 7 = 519 → byte 2,076", "7"),
        (at(1, 0, 0, fault="padded"), "lens", "slot -1 < 0, a padded token: 0", "0"),
        (at(1, 0, 0, fault="position"), "n", "position -1 sees nothing: 0", "0"),
        (at(1, 0, 0, fault="request"), "live", "request 3 is outside the table of 3 rows: no", "no"),
        (at(1, 0, 3, fault="hole"), "block", "table[1][1] = -1", "-1"),
        (at(1, 0, 3, fault="hole"), "slot", "no block: -1", "-1"),
        (at(1, 0, 64, fault="short"), "live", "entry 32 is outside the table of 32 columns: no", "no"),
        (at(1, 0, 3, layout="pitched"), "store", "row 1 × stride 8,192 + column 3 = 8,195 → byte 32,780", None),
        (at(0, 1, 4, seq=150_000), "column", "trip 1 × 1,024 + lane 4 = 1,028", "1,028"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.isalpha() else "",
)  # fmt: skip
def test_the_way_of_a_cell_is_written_out_with_its_numbers(view, key, text, value):
    (step,) = (step for step in way(view, view.lane) if step.key == key)
    assert step.text == text
    if value is not None:
        assert step.value == value


@kernels
@pytest.mark.parametrize("fault", FAULTS)
def test_the_way_ends_in_the_value_that_the_lane_stores(kernel, fault):
    case = KernelCase(seq=3000, fault=fault)
    programs, trips = case.grid(kernel)
    for program in range(programs):
        view = View(case, kernel, program, trips - 1)
        for at in range(0, len(view.store.lanes), 7):
            lane = view.store.lanes[at]
            (step,) = (step for step in way(view, at) if step.key == "store")
            assert step.value == ("masked" if lane.state == "masked" else f"{lane.value:,}")


def test_the_way_of_a_row_that_is_not_there_says_so():
    view = View(KernelCase(decode=1, prefill=0, seq=3000), "tiled", 0, 0)
    missing = next(at for at, lane in enumerate(view.store.lanes) if lane.row == 1)
    steps = {step.key: step.text for step in way(view, missing)}
    assert steps["n"] == "no such row: n = 0"
    assert steps["store"] == "masked: there are 1 decode rows, this would be row 1"


def test_a_capacity_too_narrow_runs_no_program():
    view = View.within(KernelCase(seq=1_048_576, model_len=980_224), "row_loop", 0, 0)
    assert not view.runs
    assert "8,192 columns" in lead(view) and "7,680" in lead(view)
