"""Cells, runs and readers against cases worked by hand (facts.md, incidents 1 and 2) and against the kernel."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c128a.ui import cells
from c128a.ui.cells import Scene, cell_at, make_scene, reads, runs, verdict

# Incident 1: C = 8192, captured at 1,048,576 tokens, replayed at 300,000 (width 4096).
INCIDENT_1 = {"rows": 2, "capacity": 8192, "seq": 300_000, "seq_before": 1_048_576}
# Incident 2: C = 512, width 256 and then 128, lens [2, 4] (positions 255 and 511).
INCIDENT_2 = {"rows": 2, "capacity": 512, "width": 128, "width_before": 256, "lens": (2, 4), "lens_before": (2, 4)}


def scenes():
    tokens = st.integers(0, 512 * 128 + 127)
    return st.builds(
        make_scene,
        st.integers(1, 6),
        st.just(512),
        tokens,
        tokens,
        layout=st.sampled_from(cells.SCENE_LAYOUTS),
        policy=st.sampled_from(("fixed", "pow2", "aligned")),
        decode=st.booleans(),
        same_requests=st.booleans(),
        frozen=st.booleans(),
    )


def test_incident_1_packed_row_1_is_read_from_where_no_row_of_this_build_lies():
    scene = make_scene(**INCIDENT_1, layout="packed")
    assert (scene.now.row_stride, scene.reader_stride) == (4096, 8192)
    # Flat offset 8192 would be row 2 of the new layout; with two rows it holds what the capture left.
    assert cell_at(scene, 8192).kind == "old id"
    assert [verdict(scene, row) for row in (0, 1)] == ["right", "wrong"]


def test_incident_1_with_a_third_row_row_1_is_taken_from_row_2():
    scene = make_scene(**{**INCIDENT_1, "rows": 3}, layout="packed")
    assert (cell_at(scene, 8192).kind, cell_at(scene, 8192).row, cell_at(scene, 8192).col) == ("id", 2, 0)


@pytest.mark.parametrize("layout", ["pitched", "fixed"])
def test_incident_1_rows_that_stay_where_they_are_hold(layout):
    scene = make_scene(**INCIDENT_1, layout=layout)
    assert [verdict(scene, row) for row in (0, 1)] == ["right", "right"]


def test_incident_2_pitched_rows_keep_their_place_and_old_columns():
    scene = Scene(layout="pitched", **INCIDENT_2)
    assert [cell_at(scene, 512 + col).value == scene.value(1, col) for col in range(4)] == [True] * 4
    assert cell_at(scene, 512 + 4).kind == "pad"
    assert cell_at(scene, 128).kind == "old pad" and cell_at(scene, 256).kind == "blank"
    assert [verdict(scene, row) for row in (0, 1)] == ["right", "right"]


def test_incident_2_packed_row_1_moves_from_256_to_128():
    scene = Scene(layout="packed", **INCIDENT_2)
    assert (cell_at(scene, 128).kind, cell_at(scene, 128).row, cell_at(scene, 128).col) == ("id", 1, 0)
    assert (cell_at(scene, 256).kind, cell_at(scene, 256).row) == ("old id", 1)
    assert verdict(scene, 1) == "wrong"


def test_old_ids_of_the_same_requests_can_make_a_wrong_row_come_out_right():
    # Found on an H200 (facts.md, section 2): of four rows only row 1 was wrong, rows 2 and 3 were right by chance.
    scene = make_scene(4, 8192, 300_000, 1_048_576, layout="packed", same_requests=True)
    assert [verdict(scene, row) for row in range(4)] == ["right", "wrong", "luck", "luck"]


def test_prefill_rows_hold_the_identity_so_another_row_serves_as_far_as_its_ids_reach():
    scene = Scene(3, 512, "packed", 256, 512, (10, 20, 15), (512, 512, 512), decode=False)
    # The reader takes row 1 from flat 512, which is row 2 now: its 15 ids are right, the next 5 cells are pads.
    assert [(read.start, read.stop, read.verdict) for read in reads(scene) if read.row == 1] == [
        (512, 527, "luck"),
        (527, 532, "wrong"),
    ]


@pytest.mark.parametrize(
    ("row", "col", "value"),
    [(0, 0, 16_384), (0, 1, 16_385), (1, 0, 16_386), (0, 2, 16_392), (3, 5, 16_384 + 2 * (2 * 4 + 3) + 1)],
)
def test_requests_get_their_blocks_in_turn(row, col, value):
    # 4 rows × 2048 blocks of the earlier batch come first: slot 2 × 8192 = 16,384.
    scene = make_scene(4, 4096, 100_000, 100_000, layout="packed")
    assert scene.value(row, col) == value


def test_a_sequence_over_the_capacity_is_refused_with_both_numbers():
    with pytest.raises(ValueError, match=r"seq is 66048; its 516 entries do not fit into 512 columns"):
        make_scene(2, 512, 66_048, 0, layout="packed")


def test_an_empty_batch_has_only_right_rows():
    scene = make_scene(2, 512, 0, 65_536, layout="packed")
    assert scene.lens == (0, 0) and [verdict(scene, row) for row in (0, 1)] == ["right", "right"]


@given(scenes())
def test_runs_cover_the_buffer_and_say_what_each_cell_is(scene):
    found = runs(scene)
    assert [run.start for run in found] == [0, *(run.stop for run in found[:-1])]
    assert found[-1].stop == scene.cells
    for run in found:
        for offset in {run.start, run.stop - 1}:
            cell = cell_at(scene, offset)
            assert (cell.kind, cell.row) == (run.kind, run.row)
            assert cell.col is None or cell.col == run.col + offset - run.start


@given(scenes())
def test_a_reader_looks_at_lens_cells_of_each_row_and_its_verdicts_are_those_of_the_cells(scene):
    for row in range(scene.rows):
        mine = [read for read in reads(scene) if read.row == row]
        assert sum(read.stop - read.start for read in mine) == scene.lens[row]
        for read in mine:
            for offset in range(read.start, read.stop):
                wanted = scene.value(row, offset - row * scene.reader_stride)
                assert (cell_at(scene, offset).value == wanted) == (read.verdict != "wrong")


@given(scenes())
def test_the_stride_of_this_build_finds_every_row(scene):
    if scene.reader_stride == scene.now.row_stride:
        assert {verdict(scene, row) for row in range(scene.rows)} == {"right"}


@settings(max_examples=15, deadline=None)
@given(scenes())
def test_every_cell_is_what_the_kernel_leaves_there(scene):
    kernel_buffer = pytest.importorskip("c128a.ui.cells_kernel").kernel_buffer
    assert list(kernel_buffer(scene)) == [cell_at(scene, offset).value for offset in range(scene.cells)]
