"""The parameters, the controls and the kernel's output of page 02. Needs marimo; torch only where the kernel runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_args

import marimo as mo

from c128a.ui import cells, state
from c128a.ui.cells import SCENE_LAYOUTS, Scene, SceneLayout, cell_at, make_scene
from c128a.ui.layout_data import GRIDS
from c128a.ui.layout_text import Scenes
from c128a.width import POLICIES, Policy, capacity_width

MAX_CELLS = 8 * 8192  # of one buffer: what the interpreter builds within a second
LABELS = ("value", "flat index", "(row, column)", "byte")
READERS = {"capture": "stride of the capture", "now": "stride of this build", "none": "no reader"}
ROWS = (2, 3, 4, 6, 8)

_shared = state.shared_fields()
FIELDS: dict[str, state.Field] = {
    "preset": _shared["preset"],
    "seq": state.Integer(16_384, 0, state.MAX_TOKENS),
    "model_len": state.Integer(65_536, 1, state.MAX_TOKENS),
    "then": state.Integer(state.MAX_TOKENS, 0, state.MAX_TOKENS),  # longest sequence at capture; at most model_len
    "policy": _shared["policy"],
    "rows": state.Choice(4, ROWS),
    "kind": state.Choice("decode", ("decode", "prefill")),
    "requests": state.Choice("others", ("others", "same")),
    "reader": state.Choice("capture", tuple(READERS)),
    "label": state.Choice("value", LABELS),
    "grid": state.Choice("none", tuple(GRIDS)),
    "layout": state.Choice("packed", get_args(SceneLayout)),
    "at": state.Integer(0, 0, MAX_CELLS - 1),
}


@dataclass(frozen=True)
class Setting:
    """The settings of the page but for the chosen cell; seq, then and model_len in tokens."""

    seq: int
    model_len: int
    then: int
    policy: Policy
    rows: int
    kind: str
    requests: str
    reader: str
    label: str
    grid: str

    @classmethod
    def of(cls, seq: int, controls: Mapping[str, Any]) -> Setting:
        """The setting of the page's controls; an emptied number counts as its default."""
        held: dict[str, Any] = {
            name: FIELDS[name].default if value is None else value for name, value in controls.items()
        }
        held["then"] = min(held["then"], held["model_len"])
        return cls(seq, **held)

    @property
    def values(self) -> dict[str, state.Value]:
        """The settings by their names in the address."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @property
    def capacity(self) -> int:
        """Columns of the buffer."""
        return capacity_width(self.model_len, cells.RATIO)

    @property
    def cells(self) -> int:
        """Cells of the buffer."""
        return self.rows * self.capacity

    @property
    def longest(self) -> int:
        """The longest sequence that the buffer holds, in tokens."""
        return (self.capacity + 1) * cells.RATIO - 1

    @property
    def drawn_seq(self) -> int:
        """The sequence that is drawn: what a buffer cannot hold is never built."""
        return min(self.seq, self.longest)

    @property
    def drawn_then(self) -> int:
        """The sequence of the capture that is drawn."""
        return min(self.then, self.longest)

    @property
    def too_narrow(self) -> str | None:
        """What is wrong where the buffer cannot hold the sequence, with both numbers."""
        if self.seq <= self.longest:
            return None
        return (
            f"**The capacity of {self.capacity:,} columns is too narrow for {self.seq:,} tokens**, which need "
            f"{self.seq // cells.RATIO:,}. A builder refuses such a batch; drawn is the longest that fits, "
            f"{self.longest:,} tokens."
        )

    @property
    def show_reader(self) -> bool:
        """Whether a reader is drawn at all."""
        return self.reader != "none"

    @cached_property
    def scenes(self) -> Scenes:
        """The same two batches in fixed, packed and pitched rows."""
        fixed, packed, pitched = (
            make_scene(
                self.rows,
                self.capacity,
                self.drawn_seq,
                self.drawn_then,
                layout=layout,
                policy=self.policy,
                decode=self.kind == "decode",
                same_requests=self.requests == "same",
                frozen=self.reader != "now",
            )
            for layout in SCENE_LAYOUTS
        )
        return fixed, packed, pitched

    def scene(self, layout: SceneLayout) -> Scene:
        """The scene of one layout."""
        return self.scenes[SCENE_LAYOUTS.index(layout)]


def controls(start: Mapping[str, Any]) -> mo.ui.batch:
    """Every control of the page but the sequence length and the chosen cell."""
    elements: dict[str, Any] = {
        "model_len": mo.ui.number(1, state.MAX_TOKENS, value=start["model_len"], label="Model length, tokens"),
        "then": mo.ui.number(
            0, state.MAX_TOKENS, value=min(start["then"], start["model_len"]), label="Longest sequence at capture"
        ),
        "rows": mo.ui.dropdown({str(rows): rows for rows in ROWS}, value=str(start["rows"]), label="Rows"),
        "policy": mo.ui.radio(POLICIES, value=start["policy"], label="Policy", inline=True),
        "kind": mo.ui.radio(["decode", "prefill"], value=start["kind"], label="Buffer", inline=True),
        "requests": mo.ui.radio(
            {"others than at capture": "others", "the same": "same"},
            value="the same" if start["requests"] == "same" else "others than at capture",
            label="Requests",
            inline=True,
        ),
        "reader": mo.ui.radio(
            {text: name for name, text in READERS.items()}, value=READERS[start["reader"]], label="Reader", inline=True
        ),
        "label": mo.ui.radio(LABELS, value=start["label"], label="Labels", inline=True),
        "grid": mo.ui.radio(list(GRIDS), value=start["grid"], label="Grid", inline=True),
    }
    lines = (("model_len", "then", "rows"), ("policy", "kind", "requests"), ("reader", "grid"), ("label",))
    style = "display:flex;flex-wrap:wrap;align-items:center;gap:.4rem 1.75rem"
    text = "".join(f'<div style="{style}">{"".join("{" + name + "}" for name in line)}</div>' for line in lines)
    return mo.Html(f'<div style="display:grid;gap:.9rem">{text}</div>').batch(**elements)


def cell_control(picked: tuple[SceneLayout, int], count: int, on_change: Callable[[Any], None]) -> mo.Html:
    """The chosen cell by keyboard: a layout and a flat index below count."""
    layout, at = picked
    chosen: dict[str, Any] = {"layout": layout, "at": min(at, count - 1)}

    def change(name: str, value: Any) -> None:
        if value is not None:
            chosen[name] = value
            on_change((chosen["layout"], chosen["at"]))

    return mo.hstack(
        [
            mo.ui.radio(
                SCENE_LAYOUTS,
                value=layout,
                label="Cell in the rows",
                inline=True,
                on_change=lambda value: change("layout", value),
            ),
            mo.ui.number(
                0, count - 1, value=chosen["at"], label="at flat index", on_change=lambda value: change("at", value)
            ),
        ],
        justify="start",
        gap=1.5,
    )


def on_pick(selections: Mapping[str, Any], *receivers: Callable[[Any], None]) -> None:
    """Hand the clicked cell, (layout, flat index), to the receivers; nothing where nothing was clicked."""
    pick = selections.get("pick") or {}
    if pick.get("layout") and pick.get("start"):
        for receive in receivers:
            receive((pick["layout"][0], int(pick["start"][0])))


@dataclass(frozen=True)
class KernelOutput:
    """What the kernel left in the buffer (values, flat; None where it cannot run), and what is to be said about it."""

    values: tuple[int, ...] | None
    sentence: str
    alarm: str | None = None

    def at(self, offset: int) -> int | None:
        """The kernel's value at a flat offset, None where it did not run."""
        return self.values[offset] if self.values is not None else None


def kernel_output(scene: Scene) -> KernelOutput:
    """Run both builds by the kernel and compare every cell with what the page draws."""
    try:
        from c128a.ui.cells_kernel import describe, kernel_buffer
    except ImportError as missing:
        return KernelOutput(
            None,
            f"The values are computed from the definitions: the kernel cannot run here ({missing.name} is missing).",
        )
    values = kernel_buffer(scene)
    wrong = [at for at in range(scene.cells) if values[at] != cell_at(scene, at).value]
    where = f"{scene.layout} rows, {scene.cells:,} cells"
    if wrong:
        return KernelOutput(
            values, f"The kernel ran ({describe()}).", f"In {len(wrong):,} cells of {where} the kernel differs."
        )
    return KernelOutput(
        values, f"The values are the kernel's own output ({where}; {describe()}). Every cell is as drawn above."
    )


def command(scene: Scene, at: int) -> str:
    """A shell line that prints the address of the chosen cell."""
    cell = cell_at(scene, at)
    if cell.row is None:
        return f"python -c \"print('no build wrote flat index {at}')\""
    layout = scene.before if cell.kind.startswith("old") else scene.now
    made = f"RowLayout({layout.rows}, {layout.width}, {layout.row_stride})"
    return f'python -c "from c128a.layout import RowLayout; print({made}.address({cell.row}, {cell.col}))"'
