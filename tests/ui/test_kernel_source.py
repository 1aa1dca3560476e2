"""The marked line is the line of the statement, or no line."""

import pytest

from c128a.ui import kernel_panels, kernel_source
from c128a.ui.kernel_case import KernelCase, View
from c128a.ui.kernel_source import STATEMENTS

STATEMENT_IDS = [(*place, step.key) for place, steps in STATEMENTS.items() for step in steps]


@pytest.mark.parametrize(("kernel", "kind", "key"), STATEMENT_IDS, ids="-".join)
def test_every_statement_is_found_on_one_line_of_the_kernel(kernel, kind, key):
    first, last = kernel_source.find(kernel, kind, key)
    (statement,) = (step for step in STATEMENTS[kernel, kind] if step.key == key)
    lines = kernel_source.source().splitlines()
    assert lines[first - 1].lstrip().startswith(statement.text)
    inside = kernel_source.branch(kernel, kind)
    assert (first in inside) == (last in inside) == (statement.part == "branch")


@pytest.mark.parametrize(("kernel", "kind"), STATEMENTS, ids="-".join)
def test_the_statements_stand_in_the_order_in_which_they_run(kernel, kind):
    lines = [kernel_source.find(kernel, kind, step.key)[0] for step in STATEMENTS[kernel, kind]]
    assert lines == sorted(lines)


@pytest.fixture
def kernel_with(monkeypatch):
    """Replace a piece of the kernel's source."""
    true = kernel_source.source()

    def change(old, new):
        assert true.count(old) == 1
        monkeypatch.setattr(kernel_source, "source", lambda: true.replace(old, new))
        kernel_source._parts.cache_clear()

    yield change
    kernel_source._parts.cache_clear()


@pytest.mark.parametrize(
    ("new", "count"),
    [("entry = column // block_size\n            entry = entry + 0", 2), ("block_of = column // block_size", 0)],
    ids=["twice", "renamed"],
)
def test_a_changed_kernel_leaves_no_line_marked_and_says_so(kernel_with, new, count):
    kernel_with("entry = column // block_size", new)
    with pytest.raises(LookupError, match=f"^{count} statements of _row_loop"):
        kernel_source.find("row_loop", "decode", "entry")
    html = kernel_panels.listing(View(KernelCase(), "row_loop", 0, 0, 0, "entry"))
    assert "No line is marked" in html and "marked" not in html.split("c128a-source")[1]


@pytest.mark.parametrize(("kernel", "kind", "key"), STATEMENT_IDS, ids="-".join)
def test_the_listing_marks_the_statement_and_nothing_else(kernel, kind, key):
    program = 0 if kind == "decode" else KernelCase().grid(kernel)[0] - 1
    html = kernel_panels.listing(View(KernelCase(), kernel, program, 0, 0, key))
    first, last = kernel_source.find(kernel, kind, key)
    assert html.count('class="marked"') == last - first + 1
