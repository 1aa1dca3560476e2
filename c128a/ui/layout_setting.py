"""The parameters of page 02 and what they mean. Free of marimo and torch.

>>> setting = Setting.of(16_384, {name: FIELDS[name].default for name in Setting.__dataclass_fields__ if name != "seq"})
>>> setting.capacity, setting.then, [scene.now.row_stride for scene in setting.scenes]
(512, 65536, [512, 128, 512])
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_args

from c128a.ui import cells, state
from c128a.ui.cells import SCENE_LAYOUTS, Scene, SceneLayout, make_scene
from c128a.ui.layout_data import GRIDS
from c128a.ui.layout_text import Scenes
from c128a.width import Policy, capacity_width

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
