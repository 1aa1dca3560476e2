"""A reader with a kept stride finds rows wrong by their live cells alone, whatever lens and width they have now."""

import pytest
import torch

from c128a.frozen import FrozenReader
from c128a.metadata import C128AMetadata
from tests.support.builds import int32


@pytest.fixture
def captured():
    """Rows 0 … 3, 8 … 11 and 16 … 19, eight elements apart, of which 2, 4 and 3 cells are live; their reader."""
    rows, lens = int32(*range(24)).view(3, 8)[:, :4], int32(2, 4, 3)
    return rows, lens, FrozenReader(C128AMetadata(4, 3, rows.unsqueeze(1), lens, None))


def test_a_row_is_wrong_where_a_live_cell_is(captured):
    rows, lens, reader = captured
    expected = rows.clone()
    assert reader.wrong_rows(expected, lens).tolist() == [False, False, False]
    expected += int32(0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 1).view(3, 4)  # past lens, the last entry, past lens
    assert reader.wrong_rows(expected, lens).tolist() == [False, True, False]
    lens.copy_(int32(3, 3, 4))
    assert reader.wrong_rows(expected, lens).tolist() == [True, False, True]


def test_a_row_with_more_entries_than_columns_is_wrong_on_either_side(captured):
    rows, lens, reader = captured
    assert reader.wrong_rows(rows[:, :3], lens).tolist() == [False, True, False]
    wide = torch.cat([rows, int32(-1, -1, -1).view(3, 1)], dim=1)
    assert reader.wrong_rows(wide, int32(2, 4, 5)).tolist() == [False, False, True]


def test_a_reader_needs_rows():
    with pytest.raises(ValueError, match="metadata has no decode rows"):
        FrozenReader(C128AMetadata(128, 0, None, None, None))
