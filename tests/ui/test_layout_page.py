"""Page 02 outside of a browser: marks, sentences, settings and the kernel's part (cases worked by hand)."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from c128a.ui import cells_output, layout_close, layout_data, layout_text, layout_view
from c128a.ui.cells import SCENE_LAYOUTS, Scene, make_scene
from c128a.ui.layout_setting import FIELDS, Setting

DEFAULTS = {name: FIELDS[name].default for name in Setting.__dataclass_fields__ if name != "seq"}


def scenes(seq=16_384, seq_before=65_536, *, rows=4, capacity=512, **options):
    return tuple(make_scene(rows, capacity, seq, seq_before, layout=layout, **options) for layout in SCENE_LAYOUTS)


@pytest.mark.parametrize(("capacity", "columns"), [(128, 4), (384, 12), (512, 16), (8192, 256)])
def test_a_mark_gathers_a_thirty_second_of_a_row(capacity, columns):
    assert layout_data.columns_a_mark(capacity) == columns


@given(st.integers(0, 65_535), st.integers(0, 65_535), st.sampled_from(SCENE_LAYOUTS))
def test_the_pieces_cover_the_buffer_and_stay_within_a_mark(seq, seq_before, layout):
    scene = make_scene(3, 512, seq, seq_before, layout=layout)
    found = layout_data.pieces(scene)
    assert [piece.start for piece in found] == [0, *(piece.stop for piece in found[:-1])]
    assert found[-1].stop == 3 * 512
    for piece in found:
        assert piece.start // 16 == (piece.stop - 1) // 16
        assert piece.buffer_row == piece.start // 512


@given(st.integers(0, 65_535), st.integers(0, 65_535), st.booleans())
def test_the_outlines_hold_every_cell_the_reader_looks_at_once_a_row(seq, seq_before, same_requests):
    scene = make_scene(3, 512, seq, seq_before, layout="packed", same_requests=same_requests)
    for row in range(3):
        mine = [stretch for stretch in layout_data.stretches(scene) if stretch.row == row]
        assert sum(stretch.stop - stretch.start for stretch in mine) == scene.lens[row]
        assert sum(stretch.first for stretch in mine) == (scene.lens[row] > 0)
        assert all(stretch.start // 512 == (stretch.stop - 1) // 512 == stretch.buffer_row for stretch in mine)


@pytest.mark.parametrize(("at", "first", "count"), [(0, 0, 16), (17, 16, 16), (2047, 2032, 16), (99_999, 2032, 16)])
def test_the_close_up_shows_sixteen_cells_and_never_leaves_the_buffer(at, first, count):
    found = layout_data.window(scenes()[1], at)
    assert (found[0][0], len(found)) == (first, count)


def test_the_largest_picture_stays_within_the_marks_a_chart_may_hold():
    setting = Setting.of(300_000, {**DEFAULTS, "model_len": 1_048_576, "rows": 8})
    spec = layout_view.buffer_rows(setting.scenes, "pages").spec
    assert sum(len(rows) for rows in spec["datasets"].values()) < 2_000


def test_cache_lines_are_drawn_where_they_can_be_told_apart_and_named_where_not():
    wide = scenes(300_000, 1_048_576, capacity=8192)
    assert len(layout_view.buffer_rows(scenes(), "cache lines").spec["datasets"]["grid"]) == 3 * 4 * 512 // 32
    assert layout_view.buffer_rows(wide, "cache lines").spec["datasets"]["grid"] == []
    assert "cache lines of 128 bytes lie too close" in layout_text.grid_note(8192, "cache lines")
    assert "every 4,096 bytes" in layout_text.grid_note(8192, "pages")


def test_the_close_up_marks_cache_lines_at_their_flat_index():
    spec = layout_close.close_up(scenes(), "packed", 40, "value", "cache lines", None).spec
    assert spec["datasets"]["grid"] == [{"x": 0}]  # 32 = 1 × 32 is the first of the sixteen cells 32 … 47


@pytest.mark.parametrize(
    ("mode", "text"),
    [("value", "16,384"), ("flat index", "8,192"), ("byte", "32,768"), ("(row, column)", "(2, 0)")],
)
def test_a_label_says_what_it_is_asked_for(mode, text):
    # Flat 8192 is row 2, column 0: block 0 × 4 + 2 past the 4 × 4096 blocks of the earlier batch, slot 2 × 16,386.
    packed = scenes(300_000, 1_048_576, capacity=8192)[1]
    expected = f"{2 * (4 * 4096 + 2):,}" if mode == "value" else text
    assert layout_text.label(packed, 8192, mode) == expected


def test_the_lead_counts_the_rows_a_frozen_reader_gets_wrong():
    text = layout_text.lead(scenes(), 16_384, 65_536)
    assert "row 3 starts at 384 when packed and at 1,536 when pitched" in text
    assert "captured at 65,536 tokens gets **3 of 4 packed rows wrong**" in text


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"frozen": False}, "takes the stride of this build finds every row"),
        ({"seq": 65_536}, "A reader captured at 65,536 tokens finds every row"),
    ],
    ids=["stride of now", "full width"],
)
def test_the_lead_says_so_where_no_row_is_wrong(options, part):
    assert part in layout_text.lead(scenes(**options), 0, 65_536)


def test_the_table_says_what_a_reader_finds_where_it_expects_a_row():
    table = layout_text.found_table(scenes(300_000, 1_048_576, capacity=8192, same_requests=True))
    # Row 1 is looked for at 8192, where row 2 lies now: 1,523 of its ids, then pads up to the 2,109 expected.
    assert table[1] == ["row 1", "✓ 2,109 its own ids", "✗ 1,523 ids of row 2, 586 pads", "✓ 2,109 its own ids"]
    assert table[2][2] == "≈ 1,523 old ids of row 2"


def test_a_cell_tells_its_value_its_writer_its_address_and_its_reader():
    lines = "\n".join(layout_text.cell_lines(scenes()[1], 512))
    # Flat 512 of the packed buffer: the earlier build's row 1, column 0, block 1, slot 2.
    assert "`row 1 × stride 512 + column 0 = 512 → byte 2,048`" in lines
    assert "Holds **2**: entry 0 of request 1, slot `block_table[1, 0] × 2 + 0 = 1 × 2 + 0`" in lines
    assert "**earlier** build" in lines and "✗ The reader takes it for row 1, column 0" in lines


def test_a_cell_that_nobody_wrote_says_so():
    scene = Scene(2, 512, "packed", 128, 128, (1, 1), (1, 1))
    assert "Neither build wrote here" in "\n".join(layout_text.cell_lines(scene, 1023))


def test_a_capture_is_never_longer_than_the_model():
    setting = Setting.of(16_384, {**DEFAULTS, "model_len": 33_792, "then": 1_048_576})
    assert (setting.then, setting.scenes[1].width_before) == (33_792, 384)


def test_what_the_buffer_cannot_hold_is_named_and_not_drawn():
    setting = Setting.of(1_048_576, {**DEFAULTS, "model_len": 980_224})
    assert "7,680 columns is too narrow for 1,048,576 tokens**, which need 8,192" in setting.too_narrow
    assert setting.drawn_seq == 983_167
    assert max(setting.scenes[1].lens) == 7680


def test_an_emptied_number_counts_as_its_default():
    assert Setting.of(0, {**DEFAULTS, "model_len": None}).model_len == 65_536


def test_the_kernel_agrees_with_the_picture_and_the_page_says_so():
    pytest.importorskip("c128a.ui.cells_kernel")
    output = cells_output.kernel_output(scenes()[1])
    assert output.alarm is None and "Every cell is as drawn above." in output.sentence
    assert output.at(512) == 2


def test_a_kernel_that_differs_raises_the_alarm(monkeypatch):
    kernel = pytest.importorskip("c128a.ui.cells_kernel")
    monkeypatch.setattr(kernel, "kernel_buffer", lambda scene: (7,) * scene.cells)
    assert "the kernel differs" in cells_output.kernel_output(scenes()[1]).alarm


def test_without_torch_and_triton_the_page_falls_back_to_the_definitions_and_says_so():
    program = """
import sys
sys.modules["torch"] = sys.modules["triton"] = None
from c128a.ui import cells_output, layout_close, layout_page, layout_view
from c128a.ui.cells import make_scene
output = cells_output.kernel_output(make_scene(2, 256, 1000, 20000, layout="packed"))
assert output.values is None and "computed from the definitions" in output.sentence, output
"""
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
