"""Where one verdict becomes another: the ends of each band, and which builds count as slower."""

from types import SimpleNamespace

import pandas as pd
import pytest

from c128a.account import claims
from c128a.account.step import Run


@pytest.mark.parametrize(
    ("low", "high", "level"),
    [
        (0.0076, 0.0124, "holds"),  # within a quarter of 1 %
        (0.0074, 0.0124, "holds in part"),
        (0.0076, 0.0126, "holds in part"),
        (0.0101, 0.0120, "does not hold"),
        (0.0080, 0.0099, "does not hold"),
        (-0.001, 0.0120, "does not hold"),
    ],
)
def test_a_gain_holds_near_one_percent_and_in_part_where_its_range_is_wider(low, high, level):
    assert claims.throughput.level({"low": low, "high": high}) == level


@pytest.mark.parametrize(("change", "level"), [(0.0199, "holds"), (0.0201, "does not hold")])
def test_two_percent_are_no_change(change, level):
    assert claims.long.level({"change": change}) == level


def test_a_build_is_slower_by_more_than_two_percent_and_more_than_its_spread():
    cells = [  # of both forms the time, and its range where a record states one
        ((10.0, 9.0, 11.0), (10.3, 10.2, 10.4)),  # within the spread of the other
        ((10.0, 9.9, 10.1), (10.3, 10.2, 10.4)),  # slower
        ((10.0, 9.9, 10.1), (10.15, 10.11, 10.2)),  # by 1.5 %
        ((10.0, None, None), (10.5, None, None)),  # slower
    ]
    rows = [
        dict(zip(("us", "low", "high"), time, strict=True))
        | {"sheet": "builder", "variant": f"row_loop_{form}", "decode": at, "prefill": 0, "max_seq_len": 8192}
        for at, pair in enumerate(cells)
        for form, time in zip(("fixed", "adaptive"), pair, strict=True)
    ]
    found = claims.regression.gather(Run(), SimpleNamespace(rows=pd.DataFrame(rows), title="by hand"))
    assert (found["cells"], found["slower"], found["worst"]) == (4, 2, 1.05)
