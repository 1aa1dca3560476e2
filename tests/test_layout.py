import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from c128a.layout import RowLayout

sizes = st.integers(1, 12)


def test_stride_and_span_of_packed_and_pitched_rows():
    packed, pitched = RowLayout.packed(4, 256), RowLayout.pitched(4, 256, 8192)
    assert (packed.row_stride, packed.span) == (256, 1024)
    assert (pitched.row_stride, pitched.span) == (8192, 3 * 8192 + 256)  # the last row ends with its width
    assert RowLayout.pitched(0, 256, 8192).span == 0


@given(sizes, sizes)
def test_packed_offsets_are_a_bijection_onto_the_span(rows, width):
    layout = RowLayout.packed(rows, width)
    assert sorted(layout.offset(r, c) for r in range(rows) for c in range(width)) == list(range(layout.span))


@given(sizes, sizes, st.integers(0, 5))
def test_locate_inverts_offset_and_finds_nothing_in_the_gaps(rows, width, gap):
    layout = RowLayout.pitched(rows, width, width + gap)
    cells = {layout.offset(r, c): (r, c) for r in range(rows) for c in range(width)}
    for at in range(-1, layout.span + gap + 1):
        assert layout.locate(at) == cells.get(at)


@given(sizes, sizes, st.integers(0, 5))
def test_view_addresses_the_same_elements_without_a_copy(rows, width, gap):
    buffer = torch.arange(rows * (width + gap)).view(rows, width + gap)
    for layout in (RowLayout.packed(rows, width), RowLayout.pitched(rows, width, width + gap)):
        view = layout.view(buffer)
        assert view.data_ptr() == buffer.data_ptr()
        assert all(int(view[r, c]) == layout.offset(r, c) for r in range(rows) for c in range(width))


def test_a_buffer_too_small_for_the_view_is_refused_with_the_numbers():
    with pytest.raises(ValueError, match=r"holds 1,024 elements; 4 rows × width 512 at row stride 512 need 2,048"):
        RowLayout.packed(4, 512).view(torch.empty(2, 512))
    # Two rows of a slice end with its own columns, not with those behind it.
    with pytest.raises(ValueError, match=r"holds 12 elements; 2 rows × width 5 at row stride 8 need 13"):
        RowLayout.pitched(2, 5, 8).view(torch.empty(2, 8)[:, :4])


@pytest.mark.parametrize(
    ("numbers", "message"),
    [((-1, 1, 1), "rows is -1"), ((1, -1, 1), "width is -1"), ((2, 8, 4), "row_stride is 4; rows overlap")],
)
def test_impossible_layout_is_refused(numbers, message):
    with pytest.raises(ValueError, match=message):
        RowLayout(*numbers)


def test_a_layout_counts_in_integers_of_any_size():
    # An int32 of numpy would overflow at 2^31.
    assert RowLayout(np.int32(300_000), np.int32(128), np.int32(8192)).offset(262_144, 0) == 2**31
    with pytest.raises(TypeError, match=r"width is 1.5"):
        RowLayout(1, 1.5, 2)


@pytest.mark.parametrize("cell", [(4, 0), (-1, 0), (0, 256), (0, -1)], ids=str)
def test_cell_outside_the_layout_has_no_offset(cell):
    with pytest.raises(IndexError, match=rf"cell \({cell[0]}, {cell[1]}\) is outside 4 rows × 256 columns"):
        RowLayout.packed(4, 256).offset(*cell)
