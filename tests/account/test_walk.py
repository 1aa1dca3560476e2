"""The walk through the change: each hunk's check against what its lines do, worked out by hand."""

import pytest

from c128a.account.walk import HUNKS

FOUND = {  # a row for each version: before, PR #50004, from 0.29 on, and half of the change where it is checked
    # Row 3 of 512 columns is written to 3 × 512 + 8,192, and 4 rows end at 4 × 512.
    "the signature": [[7680], ["refused"], ["refused"]],
    "the views": [[8192] * 4, [8192, 4096, 256, 128], [8192] * 4],
    # Row 0 of each of three steps is right at any stride.
    "the strides passed": [[12, 0, 0], [12, 0, 9], [12, 0, 0], [12, 9, 0]],
    "the loop bound": [[8, 4 * 8192, 0], [1, 4 * 256, 4 * 7936], [1, 4 * 256, 4 * 7936]],
    # Too long for the capacity: the two longest at four of them, 99,999 and 4,095 or 4,097 entries at 640 and 384.
    "the builder's width": [[77, 0, 14, 0], [77, 0, 14, 0], [77, 0, 0, 14]],
    "the test": [
        ["fails", "fails", "passes"],
        ["passes", "passes", "fails"],
        ["fails", "fails", "passes"],
        ["passes", "fails", "passes"],
    ],
}


@pytest.mark.parametrize("hunk", HUNKS, ids=lambda hunk: hunk.title)
def test_a_check_finds_what_the_lines_do(hunk):
    assert [list(row)[1:] for row in hunk.table().itertuples(index=False)] == FOUND[hunk.title]
