"""A typed batch is the case that its numbers say, and what cannot be a batch is named."""

import pytest

from c128a.show.own import MAX_ROWS, Own, case_of


def test_every_part_is_taken_and_rows_of_the_table_that_end_early_end_with_minus_one():
    text = "width 8; positions 1023, 511 | 255\n table 3 4 / 5; entries 4; capacity 16; stride 16"
    case = case_of(text, layout="pitched")
    assert (case.num_decode_tokens, case.positions.tolist(), case.entries.tolist()) == (2, [1023, 511, 255], [8, 4, 2])
    assert (case.width, case.capacity, case.block_size) == (8, 16, 4)
    assert case.block_table.tolist() == [[3, 4], [5, -1]]
    assert case_of(Own().parse(text), layout="pitched") == case and Own().parse("") == ""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rows 3", "begin with one of positions, table"),
        ("table 3", "must hold positions"),
        ("positions 3 x", "positions must hold whole numbers, its lists apart by |"),
        ("positions |", "positions must hold 1 to 2 lists"),
        ("positions 1 | 2 | 3", "positions must hold 1 to 2 lists"),
        ("positions" + " 1" * (MAX_ROWS + 1), f"of at most {MAX_ROWS} numbers"),
        ("positions 1048576", "from -2 to 1,048,575"),
        ("positions 1; width 0", "width must be from 1 to 8,192"),
    ],
)
def test_what_is_no_batch_is_named(text, words):
    with pytest.raises(ValueError, match=words.replace("|", r"\|")):
        Own().parse(text)
    with pytest.raises(ValueError, match="given_width is 9; it must be between 1 and capacity, 8"):
        case_of("positions 1; width 9; capacity 8")
