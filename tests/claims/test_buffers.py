"""Facts behind the claims about buffers: what a frozen reader finds, what a build may touch."""

import pytest

from c128a.claims import Setting, live
from c128a.claims.buffers import CLAIMS, rows_found

FACTS = {claim.key: claim.gather for claim in CLAIMS}


@pytest.mark.parametrize(
    ("layout", "width", "found"),
    [
        ("packed", 8192, [0, 1, 2, 3]),  # nothing moved: the width of the capture
        ("packed", 4096, [0, 2, None, None]),  # offset 8,192 is row 2 of rows 4,096 apart
        ("packed", 2048, [0, None, None, None]),  # row 4 would lie there, and there is none
        ("packed", 256, [0, None, None, None]),
        ("pitched", 256, [0, 1, 2, 3]),
    ],
)
def test_what_a_reader_with_the_stride_of_its_capture_finds(layout, width, found):
    assert rows_found(layout, width) == found


def test_no_cell_of_the_pull_requests_test_depends_on_the_stride():
    facts = FACTS["test_covers"](Setting.default())
    assert facts == {"rows": 1, "cells": 128, "moved": 0}


def test_a_build_writes_all_of_its_view_and_nothing_else():
    facts = live.bounds()
    # 2 layouts × (3 widths): 8 × 512 cells twice and 8 lens, less 3 + 5 rows of the width and 3 lens.
    assert facts["outside"] == 2 * sum(2 * 8 * 512 + 8 - 8 * width - 3 for width in (128, 256, 512))
    assert facts["changed_outside"] == facts["unwritten_inside"] == 0
    assert facts["refused"] == facts["too_wide"] == 2


def test_rows_are_the_same_at_every_width_that_is_wide_enough():
    facts = live.semantics()
    assert facts["different"] == 0
    assert facts["builds"] == 2 + 3 + 5 + 5  # of widths 128, 256, 512, 1024, 2048 those that hold the sequence


def test_a_packed_view_starts_where_its_buffer_starts_and_its_stride_follows_the_width():
    facts = live.addresses()
    assert facts["addresses"] == 1
    assert facts["strides"] == {width: width for width in (128, 256, 512, 1024, 2048, 4096, 8192)}


def test_real_buffers_read_at_the_captured_stride_give_one_packed_row_and_all_pitched_ones():
    facts = live.frozen()
    assert facts["right"] == {"packed": [True, False, False, False], "pitched": [True, True, True, True]}
