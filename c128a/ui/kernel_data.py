"""The data behind the pictures of page 03, as tables for a download. Torch-free."""

from __future__ import annotations

from typing import Any

import pandas as pd

from c128a.layout import ITEMSIZE
from c128a.ui.kernel_case import Kernel, KernelCase
from c128a.ui.old_trace import Store, path


def trace_frame(case: KernelCase, stores: list[Store]) -> pd.DataFrame:
    """One row a lane, in the order of the stores; empty where a lane has no such number.

    >>> case = KernelCase(decode=1, prefill=0)
    >>> frame = trace_frame(case, case.stores("row_loop", 0, 0))
    >>> len(frame), ", ".join(frame.loc[3, ["kind", "column", "state", "entry", "flat"]].astype(str))
    (1025, 'decode, 3, live, 1, 3')
    """
    rows = []
    for order, store in enumerate(stores):
        layout = case.rows(store.kind)
        for at, lane in enumerate(store.lanes):
            row = {"store": order, "kind": store.kind, "lane": at, **lane._asdict()}
            if lane.state != "masked":
                row["flat"] = layout.offset(lane.row, lane.column)
                row["byte"] = row["flat"] * ITEMSIZE
                if store.kind != "lens":
                    way = path(case.launch, store.kind, lane.row, lane.column)
                    row |= {
                        name: getattr(way, name) for name in ("position", "n", "request", "entry", "block", "reason")
                    }
            rows.append(row)
    frame = pd.DataFrame(rows)
    return frame.astype({name: "Int64" for name in frame if name not in ("kind", "state", "reason")})


def map_frame(case: KernelCase) -> pd.DataFrame:
    """One row for each trip of the row loop and for each program of `tiled`: the cells that it writes."""
    rows = []
    for kernel in ("row_loop", "tiled"):
        programs, trips = case.grid(kernel)
        for program in range(programs):
            for trip in range(trips):
                rows.append({"kernel": kernel, "program": program, "trip": trip, **block(case, kernel, program, trip)})
    return pd.DataFrame(rows)


def block(case: KernelCase, kernel: Kernel, program: int, trip: int) -> dict[str, Any]:
    """Kind, first and last row (within the kind), first and last column that one trip or program writes.

    >>> block(KernelCase(decode=3), "tiled", 1, 0)
    {'kind': 'decode', 'first_row': 2, 'last_row': 2, 'first_column': 0, 'last_column': 255}
    """
    rows, columns = case.shape(kernel)
    groups = -(-case.decode // rows)
    decode = program < groups
    first = (program if decode else program - groups) * rows
    return {
        "kind": "decode" if decode else "prefill",
        "first_row": first,
        "last_row": min(first + rows, case.decode if decode else case.prefill) - 1,
        "first_column": trip * columns,
        "last_column": min((trip + 1) * columns, case.width) - 1,
    }
