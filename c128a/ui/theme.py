"""One look for every chart: colours by meaning, and one Altair theme for marimo's light and dark pages. Torch-free.

Colours are those of Okabe and Ito (2008), which stay apart for readers with any common colour vision. Colour is never
the only sign: policies and kernels carry a dash pattern or a point shape as well, cells a label.

Charts are drawn as SVG, so that INK ("currentColor") is black on a light page and white on a dark one, and so that a
screen reader finds the marks. Axes, legends and titles follow the page by themselves; a text mark needs `color=INK`.
"""

from __future__ import annotations

from typing import Any

import altair as alt

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

# Cells of a buffer.
ID = BLUE
PAD = SKY
STALE = GREY
STALE_PAD = "#8C8C8C80"
UNWRITTEN = FAINT
ON_ID = "#FFFFFF"  # text on ID
ON_PAD = "#00334D"  # text on PAD

# A reader's verdict.
RIGHT = GREEN
LUCK = PURPLE
WRONG = VERMILLION

ALARM = "#A63A00"  # ground under white text, in an error that must not be overlooked

# Where the page's settings lie in a chart.
HERE = VERMILLION

POLICY = {"fixed": GREY, "pow2": BLUE, "aligned": ORANGE}
POLICY_DASH = {"fixed": [6, 4], "pow2": [1, 0], "aligned": [2, 3]}
POLICY_NAME = {"fixed": "fixed", "pow2": "power of two", "aligned": "multiple of 128"}

LAYOUT = {"fixed": GREY, "packed": VERMILLION, "pitched": GREEN}

KERNEL = {
    "row_loop_fixed": GREY,
    "row_loop": BLUE,
    "tiled": GREEN,
    "fill": PURPLE,
    "empty": ORANGE,
}
KERNEL_NAME = {
    "row_loop_fixed": "row loop, fixed",
    "row_loop": "row loop, adaptive",
    "tiled": "tiles, adaptive",
    "fill": "fill (floor)",
    "empty": "empty kernel (floor)",
}
KERNEL_SHAPE = {
    "row_loop_fixed": "square",
    "row_loop": "circle",
    "tiled": "diamond",
    "fill": "triangle-down",
    "empty": "stroke",
}

FONT = "PT Sans, Noto Sans, Helvetica, Arial, sans-serif"
EMBED = {"renderer": "svg", "actions": False}


@alt.theme.register("c128a", enable=False)
def _theme() -> alt.theme.ThemeConfig:
    return {
        # The option reaches vega-embed through the chart itself: mo.ui.altair_chart ignores a renderer set elsewhere.
        "usermeta": {"embedOptions": EMBED},
        "config": {
            "background": "transparent",
            "font": FONT,
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
            "header": {"labelFontSize": 12, "titleFontSize": 12},
            "text": {"fontSize": 12, "font": FONT},
            "line": {"strokeWidth": 2.5},
            "range": {"category": [BLUE, ORANGE, GREEN, VERMILLION, PURPLE, SKY]},
        },
    }


def use() -> None:
    """Make this theme the one of every chart built from here on in the process.

    >>> use()
    >>> alt.theme.active
    'c128a'
    """
    alt.theme.enable("c128a")


def halo_text(chart: alt.Chart, **mark: Any) -> tuple[alt.Chart, alt.Chart]:
    """Two layers that write the field `text` in INK with a rim of PAPER, so that it reads across lines and surfaces.

    chart: positions encoded, no mark; mark: properties of the text mark.
    """
    rim = chart.mark_text(stroke=PAPER, strokeWidth=4, strokeJoin="round", color=PAPER, aria=False, **mark)
    return rim.encode(text="text:N"), chart.mark_text(color=INK, **mark).encode(text="text:N")
