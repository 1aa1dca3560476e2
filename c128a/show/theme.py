"""One look for every chart: colours by meaning, on marimo's light and dark pages. Torch-free.

Colours are those of Okabe and Ito (2008), which stay apart for readers with any common colour vision. Colour is never
the only sign: a `Style` holds a point shape, a dash pattern, a height and a written sign as well.

Charts are drawn as SVG, so that INK ("currentColor") is black on a light page and white on a dark one, and so that a
screen reader finds the marks. Axes, legends and titles follow the page by themselves.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

BLUE = "#0072B2"
ORANGE = "#E69F00"
GREEN = "#009E73"
VERMILLION = "#D55E00"
PURPLE = "#CC79A7"
SKY = "#56B4E9"
GREY = "#8C8C8C"  # contrast of at least 3 on white and on marimo's dark page: a boundary, not a text

INK = "currentColor"  # text and rules on the page itself
PAPER = "var(--background)"  # the page; outside of marimo the name means nothing and nothing is drawn
FAINT = "#8C8C8C3D"  # a surface that recedes on both backgrounds
HERE = VERMILLION  # where the page's settings lie in a chart
ALARM = "#A63A00"  # ground under white text, in an error that must not be overlooked


class Style(NamedTuple):
    """How one kind of mark is drawn.

    colour: a colour name or code; shape: of a point, in Vega's names; dash: of a line, in pixels drawn and left out;
    ink: colour of text on the mark; height: share of its lane that a band fills, from below; sign: a written mark.
    """

    colour: str
    shape: str = "circle"
    dash: tuple[int, ...] = (1, 0)
    ink: str = "#FFFFFF"
    height: float = 1.0
    sign: str = ""


# A Style for each …
CELLS = {  # content of a buffer's cell
    "id of this build": Style(BLUE),
    "pad (−1)": Style(SKY, ink="#00334D"),
    "old id: the build before": Style(GREY, ink="#000000"),
    "old pad": Style("#8C8C8C80", ink=INK),
    "never written": Style(FAINT, ink=INK),
}
VERDICTS = {  # what a reader gets
    "right": Style(GREEN, "triangle-down", (1, 0), ink="#000000", sign="✔"),
    "right by chance": Style(PURPLE, "diamond", (2, 3), ink="#000000", sign="≈"),
    "wrong": Style(VERMILLION, "cross", (6, 3), ink="#000000", sign="✘"),
}
LANES = {  # state of a lane
    "live": Style(BLUE),
    "pad": Style(SKY, ink="#00334D", height=0.5),
    "masked": Style(GREY, ink=INK, height=0.14),
}

# Name of a width policy and its style; the same for a builder or a yardstick.
_POLICY = {
    "fixed": ("fixed", Style(GREY, "square", (6, 4), ink="#000000")),
    "pow2": ("power of two", Style(BLUE)),
    "aligned": ("multiple of 128", Style(ORANGE, "diamond", (2, 3), ink="#000000")),
}
_KERNEL = {
    "row_loop_fixed": ("row loop, fixed width", Style(GREY, "square", ink="#000000")),
    "row_loop": ("row loop, adaptive width", Style(BLUE)),
    "tiled": ("tiles, adaptive width", Style(GREEN, "diamond", ink="#000000")),
    "fill": ("fill of the same bytes", Style(PURPLE, "triangle-down", ink="#000000")),
    "empty": ("empty kernel", Style(ORANGE, "stroke", (5, 4), ink="#000000")),
}
POLICY_NAME, POLICIES = {key: name for key, (name, _) in _POLICY.items()}, dict(_POLICY.values())
KERNEL_NAME, KERNELS = {key: name for key, (name, _) in _KERNEL.items()}, dict(_KERNEL.values())

LEVELS = {  # verdict on a claim
    "holds": Style(GREEN, "circle", ink="#000000", sign="✔"),
    "holds if": Style(ORANGE, "diamond", ink="#000000", sign="◐"),
    "does not hold": Style(VERMILLION, "cross", ink="#000000", sign="✘"),
    "not checked": Style(GREY, "square", ink="#000000", sign="○"),
}
SEVERITIES = {  # grade of a finding
    "danger": Style(VERMILLION, "cross", ink="#000000", sign="✖"),
    "warning": Style(ORANGE, "triangle-up", ink="#000000", sign="▲"),
    "info": Style(BLUE, "circle", sign="●"),
    "safe": Style(GREEN, "diamond", ink="#000000", sign="✔"),
}

# For kinds that have no style of their own, in this order.
SERIES = (
    Style(BLUE, "circle"),
    Style(ORANGE, "square", (6, 3), ink="#000000"),
    Style(GREEN, "diamond", (2, 2), ink="#000000"),
    Style(VERMILLION, "cross", (8, 3, 2, 3), ink="#000000"),
    Style(PURPLE, "triangle-up", (4, 2), ink="#000000"),
    Style(SKY, "triangle-down", (1, 3), ink="#00334D"),
)


def styled(names: Iterable[Any]) -> dict[str, Style]:
    """A style for each name in order of appearance; after the last of SERIES they begin again.

    >>> [style.shape for style in styled(["a", "b", "a"]).values()]
    ['circle', 'square']
    """
    return {name: SERIES[at % len(SERIES)] for at, name in enumerate(dict.fromkeys(map(str, names)))}


CONFIG: dict[str, Any] = {
    "background": "transparent",
    "font": "PT Sans, Noto Sans, Helvetica, Arial, sans-serif",
    "padding": 4,
    "view": {"stroke": None},
    "axis": {
        "domainColor": GREY,
        "tickColor": GREY,
        "gridColor": FAINT,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "labelOverlap": True,
    },
    "legend": {
        "orient": "top",
        "direction": "horizontal",
        "title": None,
        "labelFontSize": 12,
        "labelLimit": 320,
        "symbolSize": 120,
        "symbolStrokeWidth": 2,
    },
    "title": {"anchor": "start", "fontSize": 14, "fontWeight": 600, "offset": 8},
    "text": {"fontSize": 12},
    "line": {"strokeWidth": 2.5},
}
