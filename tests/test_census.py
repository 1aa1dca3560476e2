from c128a import census


def test_predicted_variants_are_those_counted_on_an_h200_and_ours_do_not_grow_after_the_widths():
    _, naive, ours = zip(*census.predicted(), strict=True)
    assert naive == (1, 3, 4, 5)
    assert set(ours) == {ours[0]} and ours[0] <= 5
