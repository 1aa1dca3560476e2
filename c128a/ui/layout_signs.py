"""Colours, dashes and names of cells and verdicts, shared by the pictures of page 02. Torch-free."""

from __future__ import annotations

from typing import Any

import altair as alt

from c128a.ui import theme
from c128a.ui.cells import KINDS, Verdict
from c128a.ui.layout_text import verdict_name

LEFT = 84  # pixels for the names at the left

SIDE: dict[str, Any] = {  # one left edge for all three pictures
    "ticks": False,
    "domain": False,
    "grid": False,
    "labelPadding": 8,
    "minExtent": LEFT,
    "maxExtent": LEFT,
}

KIND_NAME = {
    "id": "id of this build",
    "pad": "pad (−1)",
    "old id": "old id: the build before",
    "old pad": "old pad",
    "blank": "never written",
}
KIND_COLOUR = {
    "id": theme.ID,
    "pad": theme.PAD,
    "old id": theme.STALE,
    "old pad": theme.STALE_PAD,
    "blank": theme.UNWRITTEN,
}
KIND_TEXT = {"id": theme.ON_ID, "pad": theme.ON_PAD, "old id": "#000000", "old pad": theme.INK, "blank": theme.INK}
FILL = alt.Fill(
    "kind:N",
    scale=alt.Scale(domain=[KIND_NAME[kind] for kind in KINDS], range=[KIND_COLOUR[kind] for kind in KINDS]),
)
VERDICTS: tuple[Verdict, ...] = ("right", "luck", "wrong")
VERDICT_COLOUR = {"right": theme.RIGHT, "luck": theme.LUCK, "wrong": theme.WRONG}
VERDICT_DASH = {"right": [1, 0], "luck": [2, 3], "wrong": [6, 3]}
VERDICT_DOMAIN = [verdict_name(found) for found in VERDICTS]
OUTLINE = alt.Stroke(
    "verdict:N", scale=alt.Scale(domain=VERDICT_DOMAIN, range=[VERDICT_COLOUR[found] for found in VERDICTS])
)
