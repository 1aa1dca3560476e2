"""The live part of page 04: the form, the thread that measures, and what it reports. Needs marimo and torch.

A run belongs to the cell that started it: when that cell runs again, `should_exit` of the thread turns true and the run
ends with what it has. Setters of `mo.state` carry its rows and its status to the page.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Literal

import marimo as mo

from c128a import live
from c128a.bench_cases import Cell
from c128a.layout import human_bytes
from c128a.ui import page, theme
from c128a.ui.timing_data import Row, TimingCase
from c128a.ui.timing_runs import BATCHES, LENGTHS, normal
from c128a.ui.timing_text import VARIANTS, figure, spread, times, us
from c128a.ui.timing_view import LIVE

ALL = "the four recorded lengths"
TELL_EVERY_S = 0.2  # a status more often than this only keeps the page busy
CPU_BATCH = "d256"  # what the form opens with without a GPU: the fixed width of larger batches needs seconds there
NOISY = 1.5  # 80th over 20th percentile, from which on a spread is called wide
WAIT_S = 30.0  # for the run before to notice that it was replaced; one measurement at most


@dataclass(frozen=True)
class Status:
    """Where the live run stands, in words and as a share."""

    state: Literal["idle", "running", "finished", "budget", "stopped", "busy", "failed"] = "idle"
    text: str = ""
    done: float = 0.0


def request_fields(opened: dict[str, Any]) -> mo.ui.batch:
    """Batch, lengths and seconds of a live run."""
    batch = opened["batch"] if live.on_gpu() or opened["batch"] != "p8192" else CPU_BATCH
    titles = {item.title: key for key, item in BATCHES.items()}
    lengths = {ALL: 0, **{f"{length:,} tokens": length for length in sorted({*LENGTHS, max(1, opened["seq"])})}}
    return mo.md("{batch} {length} {budget}").batch(
        batch=mo.ui.dropdown(titles, value=BATCHES[batch].title, label="Batch to time", allow_select_none=False),
        length=mo.ui.dropdown(lengths, value=ALL, label="at", allow_select_none=False),
        budget=mo.ui.number(1, 60, step=1, value=opened["budget"], label="Seconds at most"),
    )


def start_button(fields: mo.ui.batch) -> mo.ui.button:
    """The button that asks for a run: its value is the request of the moment it was pressed, with the press's number.

    Make it in the cell of the fields. A form would not do: it says nothing when the same values are submitted again.
    """

    def ask(before: dict[str, Any] | None) -> dict[str, Any]:
        return {**fields.value, "press": before["press"] + 1 if before else 1}

    return mo.ui.button(value=None, on_click=ask, label="Time on this machine")


def cells(batch: str, length: int) -> list[Cell]:
    """The cells of a request; length 0 stands for all recorded lengths.

    >>> [cell.name for cell in cells("d1", 32_768)], [cell.name for cell in cells("one_long", 0)]
    (['1+0@32768'], ['256+0@1048576 (4096 but for one)'])
    """
    shape = BATCHES[batch]
    if shape.short:
        return [Cell(shape.decode, shape.prefill, LENGTHS[-1], shape.short)]
    return [Cell(shape.decode, shape.prefill, each) for each in ([length] if length else LENGTHS)]


def start(
    request: dict[str, Any],
    before: mo.Thread | None,
    add_row: Callable[[Row], object],
    set_status: Callable[[Status], object],
) -> mo.Thread:
    """Measure what the form asked for in a thread of the cell that calls this, after the run before has ended."""
    todo, budget = cells(request["batch"], request["length"]), float(request["budget"] or live.BUDGET_S)
    told = 0.0

    def tell(step: live.Step) -> None:
        nonlocal told
        if step.row is not None:
            add_row(normal(step.row))
        elif time.monotonic() - told >= TELL_EVERY_S:
            told = time.monotonic()
            set_status(Status("running", f"{step.cell}, about {step.left_s:.0f} s left", step.done))

    def measure() -> None:
        thread = mo.current_thread()
        if before is not None:
            before.join(WAIT_S)
        set_status(Status("running", "starting"))
        try:
            outcome = live.sweep(todo, tell, budget_s=budget, should_stop=lambda: thread.should_exit)
        except live.GpuBusyError as busy:
            set_status(Status("busy", str(busy)))
        except Exception as error:  # whatever fails in a thread must reach the page: nothing else would show it
            set_status(Status("failed", f"{type(error).__name__}: {error}"))
        else:
            set_status(Status(outcome.ended, summary(outcome, budget), 1.0))

    thread = mo.Thread(target=measure, daemon=True)
    thread.start()
    return thread


def summary(outcome: live.Outcome, budget_s: float) -> str:
    """How a run ended, what it kept and what it refused.

    >>> summary(live.Outcome((), "stopped", ()), 10.0)
    'Cancelled; 0 rows are kept.'
    """
    ends = {
        "finished": "Finished",
        "budget": f"The {budget_s:g} s are spent",
        "stopped": "Cancelled",
    }
    kept = len(outcome.rows)
    refused = "".join(f" Refused: {reason}." for reason in outcome.refused)
    return f"{ends[outcome.ended]}; {kept} row{'' if kept == 1 else 's'} {'is' if kept == 1 else 'are'} kept.{refused}"


def intro() -> str:
    """What a live run is here, and what it is not (Markdown)."""
    if live.on_gpu():
        return (
            f"The bench's own measurement, warm, on this machine's **{live.device_label()}**. On a card whose clocks "
            "and neighbours nobody wrote down, its points are an illustration; the recorded runs are the evidence."
        )
    return (
        "This machine has no GPU, so there is no kernel to time: Triton's interpreter gives true values and no "
        "meaningful times. A live run times the **torch reference on the CPU** instead. Its points are an "
        "illustration, thousands of times above the recorded kernels; the recorded runs are the evidence."
    )


def view(status: Status) -> mo.Html:
    """The status line with a progress bar, announced to a screen reader."""
    words = {"idle": "Nothing has been timed here yet.", "busy": "Not started: ", "failed": "Failed: "}
    text = escape(words.get(status.state, "") + status.text)
    bar = ""
    if status.state == "running":
        inner = f'<div style="width:{status.done:.0%};height:100%;background:{theme.BLUE}"></div>'
        bar = (
            f'<div role="progressbar" aria-label="Live run" aria-valuemin="0" aria-valuemax="100" '
            f'aria-valuenow="{status.done * 100:.0f}" style="height:.6rem;border-radius:.3rem;overflow:hidden;'
            f'background:{theme.FAINT};max-width:60rem">{inner}</div>'
        )
    shown = f'<div role="status" class="c128a-live">{text}</div>{bar}'
    return mo.callout(mo.Html(shown), kind="warn") if status.state in ("busy", "failed") else mo.Html(shown)


def merged(rows: Sequence[Row], row: Row) -> list[Row]:
    """The rows with a new one, which takes the place of an older one of the same cell and variant."""
    names = ("batch", "seq", "variant")
    return [old for old in rows if any(old[name] != row[name] for name in names)] + [row]


def sentence(case: TimingCase, rows: Sequence[Row]) -> str:
    """What the live points say: against the recorded run on a GPU, fixed against adaptive on a CPU."""
    of_batch = [row for row in rows if row["batch"] == rows[-1]["batch"]]
    seq = min(row["seq"] for row in of_batch)  # the narrowest rows: where the width matters most
    at = {row["variant"]: row for row in of_batch if row["seq"] == seq}
    last = rows[-1]
    where = f"live · {last['device']}, {BATCHES[last['batch']].title} at {seq:,} tokens"
    noisy = any(row["p80"] > NOISY * row["p20"] for row in at.values())
    end = " The spread is wide: something else kept this machine busy." if noisy else ""
    if "tiled" in at:
        recorded = case.runs.builder.cell(last["batch"], seq, "warm").get("tiled")
        against = f" The record says {us(recorded)}." if recorded else ""
        return f"{where}: the tiles take {us(at['tiled'])} µs.{against}{_agreement(case, of_batch)}{end}"
    fixed, adaptive = at.get("reference_fixed"), at.get("reference_adaptive")
    if fixed and adaptive and fixed["width"] > adaptive["width"]:
        return (
            f"{where}: {_ms(fixed)} ms at the fixed width, {_ms(adaptive)} ms at {adaptive['width']:,} columns, "
            f"{times(fixed, adaptive)} × less. A CPU pays for columns too; a kernel's time it is not.{end}"
        )
    return f"{where}: {', '.join(f'{LIVE[name][0]} {us(row)} µs' for name, row in at.items() if name in LIVE)}.{end}"


def _agreement(case: TimingCase, rows: Sequence[Row]) -> str:
    """How many live times lie where the record expects those of one more process."""
    names = ("batch", "seq", "variant")
    recorded = {
        tuple(row[name] for name in names): row["prediction"]
        for row in case.runs.builder.rows
        if row["cache"] == "warm" and row["prediction"]
    }
    found = [(row["us"], recorded.get(tuple(row[name] for name in names))) for row in rows]
    inside = [expected[0] <= us <= expected[1] for us, expected in found if expected]
    if not inside:
        return ""
    return (
        f" Of the live times of this batch {sum(inside)} of {len(inside)} lie where the record expects those of one "
        "more process (99 % should)."
    )


def _ms(row: Row) -> str:
    return figure(row["us"] / 1000, max((row["p80"] - row["p20"]) / 2000, 0.001))


def table(rows: Sequence[Row]) -> Any:
    """All live rows of this session."""
    lines = [
        [
            BATCHES[row["batch"]].title,
            f"{row['seq']:,}",
            VARIANTS[row["variant"]],
            f"{row['width']:,}",
            human_bytes(row["bytes"]),
            us(row),
            spread(row),
        ]
        for row in rows
    ]
    heads = ["batch", "tokens", "live", "width", "bytes", "µs", "p20 – p80"]
    return page.table(heads, lines, label="Live rows of this session")
