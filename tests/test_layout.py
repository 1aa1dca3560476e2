from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from c128a.layout import RowLayout
from tests.support.refused import refused

sizes = st.integers(1, 12)


def test_stride_and_span_of_packed_and_pitched_rows():
    packed, pitched = RowLayout.packed(4, 256), RowLayout.pitched(4, 256, 8192)
    assert (packed.row_stride, packed.span) == (256, 1024)
    assert (pitched.row_stride, pitched.span) == (8192, 3 * 8192 + 256)  # the last row ends with its width
    assert RowLayout.pitched(0, 256, 8192).span == 0


@given(sizes, sizes, st.integers(0, 5))
def test_locate_inverts_offset_and_finds_nothing_in_the_gaps_which_packed_rows_do_not_have(rows, width, gap):
    layout = RowLayout.pitched(rows, width, width + gap)
    cells = {layout.offset(r, c): (r, c) for r in range(rows) for c in range(width)}
    assert len(cells) == rows * width == RowLayout.packed(rows, width).span
    for at in range(-1, layout.span + gap + 1):
        assert layout.locate(at) == cells.get(at)


@given(sizes, sizes, st.integers(0, 5))
def test_view_addresses_the_same_elements_without_a_copy(rows, width, gap):
    buffer = torch.arange(rows * (width + gap)).view(rows, width + gap)
    for layout in (RowLayout.packed(rows, width), RowLayout.pitched(rows, width, width + gap)):
        view = layout.view(buffer)
        assert view.data_ptr() == buffer.data_ptr()
        assert all(int(view[r, c]) == layout.offset(r, c) for r in range(rows) for c in range(width))


def test_a_layout_counts_in_integers_of_any_size():
    # An int32 of numpy would overflow at 2^31.
    assert RowLayout(np.int32(300_000), np.int32(128), np.int32(8192)).offset(262_144, 0) == 2**31


FOUR = RowLayout.packed(4, 256)
BAD = {
    ValueError: {
        r"holds 512 elements; 4 rows × width 256 at row stride 256 need 1,024": lambda: FOUR.view(torch.empty(2, 256)),
        # Two rows of a slice end with its own columns, not with those behind it.
        r"holds 12 elements; 2 rows × width 5 at row stride 8 need 13": lambda: RowLayout(2, 5, 8).view(
            torch.empty(2, 8)[:, :4]
        ),
        "rows is -1": lambda: RowLayout(-1, 1, 1),
        "width is -1": lambda: RowLayout(1, -1, 1),
        "row_stride is 4; rows overlap": lambda: RowLayout(2, 8, 4),
    },
    TypeError: {"width is 1.5": lambda: RowLayout(1, 1.5, 2)},
    IndexError: {
        rf"cell \({row}, {column}\) is outside 4 rows × 256 columns": partial(FOUR.offset, row, column)
        for row, column in ((4, 0), (-1, 0), (0, 256), (0, -1))
    },
}


@refused(BAD)
def test_what_has_no_address_is_refused_with_the_numbers(error, words, call):
    with pytest.raises(error, match=words):
        call()
