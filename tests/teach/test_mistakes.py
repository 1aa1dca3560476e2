"""Each wrong builder of the hunt: right without its mistake, and told by a check, by its batch and by the picture."""

import pytest

from c128a.teach.mistakes import COLUMNS, MISTAKES, Hunt, cells, deal, lines, window
from c128a.width import capacity_width, required_width


def hunts(mistake: str) -> list[Hunt]:
    return [hunt for seed in range(3) for hunt in deal(seed) if hunt.mistake == mistake]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_reference_tells_a_wrong_builder_from_the_right_one_and_the_picture_shows_it(mistake):
    for hunt in hunts(mistake):
        right, drawn = cells(hunt, ""), window(cells(hunt))
        assert (right["written"] == right["right"]).all()
        assert (drawn["written"] != drawn["right"]).any()
        assert drawn.groupby("row").size().eq(COLUMNS + 1).all()  # with lens


def test_the_line_of_each_mistake_is_found_in_the_source_and_an_unknown_one_is_named():
    for _, wrong, right in map(lines, MISTAKES):
        assert wrong != right and wrong.split(" = ")[0] == right.split(" = ")[0]
    with pytest.raises(LookupError, match="'none'"):
        lines("none")


@pytest.mark.parametrize("mistake", ["floor", "late"])
def test_the_width_law_tells_a_narrow_row_and_only_the_facts_of_the_batch_tell_why(mistake):
    for hunt in hunts(mistake):
        case, lens = hunt.case, cells(hunt)["written"].groupby(cells(hunt)["row"]).last()
        assert lens.max() == 128 < required_width(case.max_seq_len, 128) <= capacity_width(case.max_model_len)
        assert (hunt.before.max_seq_len // 128 > 128) == (case.max_model_len % (128 * 128) > 0) == (mistake == "floor")


def test_a_seed_deals_the_same_hunts_again_and_another_seed_others():
    first, second = deal(3), deal(4)
    assert {hunt.mistake for hunt in first} == {hunt.mistake for hunt in second} == {*MISTAKES}
    deal.cache_clear()
    assert deal(3) == first and [hunt.mistake for hunt in first] != [hunt.mistake for hunt in second]
    assert all(hunt.mistake in hunt.choices and len({*hunt.choices}) == 6 for hunt in first)
