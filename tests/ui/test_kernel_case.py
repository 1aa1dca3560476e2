"""The batch of page 03 is what it says, and both kernels write for it what the trace and the reference hold."""

import pytest

from c128a.ui import kernel_controls, kernel_run
from c128a.ui.kernel_case import FAULTS, KERNELS, STEP, KernelCase
from c128a.ui.old_trace import path

kernels = pytest.mark.parametrize("kernel", KERNELS)


def test_the_step_is_the_one_that_is_launched():
    from c128a.kernel import ROW_LOOP_STEP

    assert STEP == ROW_LOOP_STEP


@kernels
@pytest.mark.parametrize("fault", FAULTS)
def test_the_true_output_equals_the_reference_and_the_trace(kernel, fault):
    case = KernelCase(seq=3000, fault=fault, layout="pitched")
    output = kernel_run.true_output(case, kernel)
    assert (output.differing, output.cells) == (0, 6 * 128 + 3)
    programs, trips = case.grid(kernel)
    stored = [s for program in range(programs) for trip in range(trips) for s in case.stores(kernel, program, trip)]
    for store in stored:
        for lane in store.lanes:
            if lane.state != "masked":
                assert output.kernel[store.kind][lane.row][lane.column] == lane.value


@pytest.mark.parametrize(
    ("fault", "column", "reason"),
    # Decode row 1 has 2000 of 3000 tokens: n = 15, and the table 12 columns of two entries, cut to 3 where it is short.
    [("request", 0, "request outside the table"), ("hole", 2, "no block"), ("short", 6, "table too short")],
)
def test_a_fault_breaks_the_second_row_where_it_says(fault, column, reason):
    launch = KernelCase(seq=3000, fault=fault).launch
    assert path(launch, "decode", 1, column).reason == reason
    if column:
        assert path(launch, "decode", 1, column - 1).reason == "live"


@pytest.mark.parametrize("fault", ["padded", "position"])
def test_a_padded_token_has_lens_0(fault):
    (store,) = (s for s in KernelCase(fault=fault).stores("row_loop", 1, 0) if s.kind == "lens")
    assert [lane.value for lane in store.lanes] == [0]


def test_no_two_table_cells_name_one_block():
    table = KernelCase(seq=1_048_576, decode=8).launch.table
    blocks = [block for row in table for block in row]
    assert len(blocks) == 8 * 4096 == len(set(blocks))


@pytest.mark.parametrize(
    ("params", "note"),
    [
        ({"program": "6"}, "program is 6 in the address; this build has 0 to 5. Shown: 5."),
        ({"trip": "1"}, "trip is 1 in the address; this build has 0 to 0. Shown: 0."),
        ({"lane": "1024"}, "lane is 1024 in the address; this build has 0 to 1,023. Shown: 1,023."),
        ({"kernel": "cuda"}, "kernel is cuda in the address; it must be one of row_loop, tiled. Shown: row_loop."),
        ({"decode": "9"}, "decode is 9 in the address; it must be a whole number from 0 to 8. Shown: 3."),
    ],
    ids=lambda value: "".join(value) if isinstance(value, dict) else "",
)
def test_an_address_out_of_reach_is_noted_and_brought_within(params, note):
    values, notes = kernel_controls.opened(params)
    assert notes == [note]
    assert kernel_controls.opened({name: str(value) for name, value in values.items()}) == (values, [])
