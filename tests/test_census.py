from c128a import census


def test_predicted_variants_are_those_counted_on_an_h200():
    naive = [count.naive for count in census.predicted()]
    assert naive == [1, 3, 4, 5]


def test_our_variants_do_not_grow_after_the_widths():
    ours = [count.ours for count in census.predicted()]
    assert ours == [ours[0]] * 4 and ours[0] <= 5
