"""The marked lines are those of the statement, or no line is marked."""

import re

import pytest

from c128a.show import source
from c128a.show.source import STATEMENTS

EVERY = [(*place, statement.key) for place, statements in STATEMENTS.items() for statement in statements]


@pytest.mark.parametrize(("kernel", "kind", "key"), EVERY, ids="-".join)
def test_the_listing_marks_the_lines_of_the_statement_and_nothing_else(kernel, kind, key):
    first, last = source.find(kernel, kind, key)
    marked = re.findall(r'class="marked"[^>]*><i>(\d+)</i>(.*)', source.listing(kernel, kind, key).text)
    assert [int(number) for number, _ in marked] == list(range(first, last + 1))
    (statement,) = (one for one in STATEMENTS[kernel, kind] if one.key == key)
    assert source.source().splitlines()[first - 1].lstrip().startswith(statement.begins)


@pytest.mark.parametrize(("kernel", "kind"), STATEMENTS, ids="-".join)
def test_the_statements_stand_in_the_order_in_which_they_run(kernel, kind):
    lines = [source.find(kernel, kind, statement.key)[0] for statement in STATEMENTS[kernel, kind]]
    assert lines == sorted(lines)


@pytest.mark.parametrize(
    ("new", "count"),
    [("entry = column // block_size\n            entry = entry + 0", 2), ("block_of = column // block_size", 0)],
    ids=["twice", "renamed"],
)
def test_a_changed_kernel_leaves_no_line_marked_and_says_so(monkeypatch, new, count):
    true = source.source()
    assert true.count("entry = column // block_size") == 1
    monkeypatch.setattr(source, "source", lambda: true.replace("entry = column // block_size", new))
    source._highlighted.cache_clear()
    with pytest.raises(LookupError, match=f"^{count} statements of _row_loop"):
        source.find("row_loop", "decode", "entry")
    text = source.listing("row_loop", "decode", "entry").text
    assert 'role="alert"' in text and 'class="marked"' not in text
    source._highlighted.cache_clear()
