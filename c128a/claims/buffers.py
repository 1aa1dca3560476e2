"""Claims about the buffers: shapes, bounds, graph safety, meaning. Live where torch is, arithmetic everywhere.

The report: the packed view has the active width as its stride; nothing is written outside; the buffers stay where they
are, so CUDA graphs are not affected; the meaning of the rows is unchanged.
"""

from __future__ import annotations

from c128a.claims import live
from c128a.claims.core import Claim, Facts, Setting, Verdict, missing
from c128a.layout import LAYOUTS, Layout, RowLayout

CAPTURED_STRIDE = 8192  # a graph is captured at max_model_len, so its reader keeps the stride of the capacity
REPLAYED = ((300_000, 4096), (32_768, 256), (8_192, 128))  # max_seq_len, width
ROWS = 4


def rows_found(layout: Layout, width: int, *, rows: int = ROWS, stride: int = CAPTURED_STRIDE) -> list[int | None]:
    """For each row a frozen reader asks for: the row whose first cell lies where it looks, or None for old bytes.

    >>> rows_found("packed", 4096), rows_found("pitched", 4096)
    ([0, 2, None, None], [0, 1, 2, 3])
    """
    now = RowLayout.named(layout, rows, width, stride)
    found = [now.locate(row * stride) for row in range(rows)]
    return [None if cell is None else cell[0] for cell in found]


def _shapes(_: Setting) -> Facts:
    return live.pr_test()


def _judge_shapes(facts: Facts) -> Verdict:
    if unavailable := missing(facts):
        return unavailable
    wrong = [name for name, value in facts["expected"].items() if facts["got"].get(name) != value]
    if wrong:
        name = wrong[0]
        return Verdict("does not hold", f"{name}: {facts['got'].get(name)} instead of {facts['expected'][name]}.")
    return Verdict("holds", f"All {len(facts['expected'])} values of the pull request's own test come out as it says.")


def _bounds(_: Setting) -> Facts:
    return live.bounds()


def _judge_bounds(facts: Facts) -> Verdict:
    if unavailable := missing(facts):
        return unavailable
    if facts["changed_outside"]:
        return Verdict("does not hold", f"{facts['changed_outside']:,} cells outside the views changed.")
    if facts["refused"] < facts["too_wide"]:
        return Verdict(
            "holds if",
            f"no caller passes a width over the buffer: {facts['too_wide'] - facts['refused']} of "
            f"{facts['too_wide']} such calls were not refused.",
        )
    return Verdict(
        "holds",
        f"0 of {facts['outside']:,} cells outside the views changed; a width over the buffer is refused unwritten.",
    )


def _test_covers(_: Setting) -> Facts:
    rows, width, capacity = 1, 128, 256  # the pull request's test: one decode row, one prefill row
    packed, pitched = RowLayout.packed(rows, width), RowLayout.pitched(rows, width, capacity)
    cells = [(row, col) for row in range(rows) for col in range(width)]
    return {"rows": rows, "cells": len(cells), "moved": sum(packed.offset(*c) != pitched.offset(*c) for c in cells)}


def _judge_test_covers(facts: Facts) -> Verdict:
    if facts["moved"]:
        return Verdict("holds", f"{facts['moved']:,} of {facts['cells']:,} cells lie elsewhere under another stride.")
    return Verdict(
        "holds if",
        f"{facts['rows']} row a buffer is enough. Row 0 lies at offset 0 under every stride: none of the "
        f"{facts['cells']:,} cells moves, so the test passes whatever stride a reader has.",
    )


def _addresses(setting: Setting) -> Facts:
    found = {layout: {width: rows_found(layout, width) for _, width in REPLAYED} for layout in LAYOUTS}
    return {
        "right": {
            layout: {w: [r == i for i, r in enumerate(rows)] for w, rows in at.items()} for layout, at in found.items()
        },
        "found": found,
        "addresses": live.addresses().get("addresses", 1),  # a packed view starts where its buffer starts
        "built": live.frozen(),
        "measured": [row["relative_error_high"] for row in setting.elsewhere.where(sheet="frozen", layout="packed")],
    }


def _judge_addresses(facts: Facts) -> Verdict:
    if facts["addresses"] != 1:
        return Verdict("does not hold", f"The views start at {facts['addresses']} different addresses.")
    wrong = {layout: sum(not ok for rows in at.values() for ok in rows) for layout, at in facts["right"].items()}
    total = sum(len(rows) for rows in facts["right"]["packed"].values())
    if not wrong["packed"]:
        return Verdict("holds", "One address, and a reader with a frozen stride finds every packed row.")
    if wrong["pitched"]:
        return Verdict("does not hold", f"A frozen reader misses {wrong['pitched']} of {total} pitched rows too.")
    return Verdict(
        "holds if",
        f"rows keep the stride of the capture. Addresses are stable, the stride is not: a frozen reader misses "
        f"{wrong['packed']} of {total} packed rows and none of the pitched ones.",
    )


def _semantics(_: Setting) -> Facts:
    return {**live.semantics(), "frozen_wrong": sum(r != i for i, r in enumerate(rows_found("packed", 4096)))}


def _judge_semantics(facts: Facts) -> Verdict:
    if unavailable := missing(facts):
        return unavailable
    if facts["different"]:
        return Verdict("does not hold", f"{facts['different']:,} of {facts['cells']:,} cells differ.")
    same = f"{facts['cells']:,} cells in {facts['builds']} builds equal those at full width"
    if facts["frozen_wrong"]:
        return Verdict(
            "holds if",
            f"every reader takes the stride of this step: {same}, yet a reader with the stride of its capture gets "
            f"{facts['frozen_wrong']} of {ROWS} packed rows wrong.",
        )
    return Verdict("holds", f"{same}.")


CLAIMS = (
    Claim(
        "shapes",
        "buffers",
        "Shapes and strides follow the width",
        "The packed view's second dimension is exactly the active width, and so is its row stride; ids and pads fit.",
        "The pull request's own test with its values (2 tokens, capacity 256, width 128), run on this machine.",
        _shapes,
        _judge_shapes,
        "tests/test_metadata.py",
        "test_the_pull_requests_own_values",
    ),
    Claim(
        "bounds",
        "buffers",
        "Nothing is written out of bounds",
        "With a width under the capacity only a partial view is taken, and the kernel writes nothing beyond it.",
        "Both layouts, three widths, buffers filled with a mark; then two widths that are over the buffer.",
        _bounds,
        _judge_bounds,
        "tests/test_metadata.py",
        "test_random_builds_equal_reference_and_touch_nothing_else",
    ),
    Claim(
        "test_covers",
        "buffers",
        "The new test covers the boundary",
        "The added test covers the case of an active width under the capacity.",
        "How many cells of that test lie somewhere else under the other layout: what its assertions could notice.",
        _test_covers,
        _judge_test_covers,
        "tests/claims/test_buffers.py",
        "test_no_cell_of_the_pull_requests_test_depends_on_the_stride",
    ),
    Claim(
        "addresses",
        "buffers",
        "CUDA graphs are not affected",
        "The buffers are preallocated and their addresses do not change, so CUDA graph stability is unaffected.",
        "Addresses at all widths; then the rows that a reader finds at the stride of its capture, in real buffers too.",
        _addresses,
        _judge_addresses,
        "tests/test_incidents.py",
        "test_incident_1_packed_rows_after_the_first_are_wrong_under_a_frozen_reader",
    ),
    Claim(
        "semantics",
        "buffers",
        "The meaning is unchanged",
        "The algorithm only does less work; its semantics do not change.",
        "Four batches at every width that is wide enough, cell by cell against full width; then a frozen reader.",
        _semantics,
        _judge_semantics,
        "tests/claims/test_buffers.py",
        "test_rows_are_the_same_at_every_width_that_is_wide_enough",
    ),
)
