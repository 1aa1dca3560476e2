"""The sections of page 04, each a heading, its pictures and the sentence under each. Needs marimo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import marimo as mo

from c128a.ui import (
    page,
    state,
    timing_cell,
    timing_data,
    timing_floor,
    timing_live,
    timing_overview,
    timing_parts,
    timing_text,
    timing_view,
)
from c128a.ui.timing_data import Row, TimingCase


def recorded(case: TimingCase) -> mo.Html:
    """Microseconds against bytes and against trips."""
    left = [timing_view.bytes_chart(case), _say(timing_text.bytes_sentence(case))]
    right = [timing_view.trips_chart(case), _say(timing_text.trips_sentence(case))]
    source = _say(timing_text.evidence(case.runs.builder))
    return mo.vstack([mo.md("## Recorded: microseconds, bytes and trips"), source, _beside(left, right)])


def one_cell(case: TimingCase) -> mo.Html:
    """The three ratios, and the chosen cell in numbers."""
    left = [mo.md("## Three ratios, not one"), timing_cell.ratios_chart(case)]
    left.append(_say(timing_text.ratios_sentence(case)))
    right = [mo.md(f"## {timing_cell.title(case)}"), timing_cell.cell_table(case)]
    right.append(_say(timing_cell.cell_sentence(case)))
    return _beside(left, right)


def all_cells(case: TimingCase) -> mo.Html:
    """The row loop against the tiles, and both against the floor."""
    left = [mo.md("## Row loop against tiles"), timing_overview.speedup_chart(case)]
    left.append(_say(timing_overview.speedup_sentence(case)))
    right = [mo.md("## How far from the floor"), timing_floor.floor_chart(case)]
    right.append(_say(timing_floor.floor_sentence(case)))
    return _beside(left, right)


def combine(case: TimingCase) -> mo.Html:
    """Both forms of the combine."""
    charts = [timing_parts.combine_chart(case, batch) for batch in timing_parts.TOKENS]
    text = _say(timing_parts.combine_sentence(case))
    source = _say(timing_text.evidence(case.runs.combine))
    side = page.columns(charts, widths="equal", gap=2)
    return mo.vstack([mo.md("## The combine, once in each C128A layer"), source, side, text])


def host(case: TimingCase) -> mo.Html:
    """The host's time, part by part."""
    text = _say(timing_parts.host_sentence(case))
    source = _say(timing_text.evidence(case.runs.host))
    return mo.vstack([mo.md("## The host, once a step"), source, timing_parts.host_chart(case), text])


def live(fields: mo.ui.batch, start: mo.ui.button, cancel: mo.ui.button) -> mo.Html:
    """What a live run is here, its fields, the button that starts it and the one that ends it."""
    controls = page.panel(mo.hstack([fields, start, cancel], justify="start", align="end", wrap=True, gap=1))
    return mo.vstack([mo.md("## Live on this machine"), _say(timing_live.intro()), controls])


def live_rows(case: TimingCase, rows: Sequence[Row]) -> mo.Html | None:
    """The live points of the batch that was timed last, over the recorded ones, and a table of all live rows."""
    if not rows:
        return None
    of_last = TimingCase(case.runs, rows[-1]["seq"], rows[-1]["batch"])
    drawn = [row for row in rows if row["batch"] == of_last.batch]
    return mo.vstack(
        [
            timing_view.bytes_chart(of_last, drawn),
            _say(timing_live.sentence(of_last, rows)),
            timing_live.table(rows),
        ]
    )


def take_along(case: TimingCase, rows: Sequence[Row], values: Mapping[str, state.Value]) -> mo.Html:
    """Downloads, the command that measures the chosen cell again, and where the records come from."""
    table = timing_data.table
    return mo.vstack(
        [
            mo.md("## Take it along"),
            page.downloads(lambda: table(case.rows), "c128a-times", values, "this batch"),
            page.downloads(lambda: table(case.every_row), "c128a-all-times", values, "all recorded"),
            page.downloads(lambda: table(rows), "c128a-live", values, "live rows"),
            page.command(*timing_text.command(case)),
        ]
    )


def _say(text: str) -> mo.Html:
    """A sentence whose numbers stay on one line with their signs and units."""
    return page.sentence(timing_text.tight(text))


def _beside(left: list[Any], right: list[Any]) -> mo.Html:
    return page.columns([mo.vstack(left), mo.vstack(right)], widths="equal", gap=2)
