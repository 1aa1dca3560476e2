"""The pictures of page 03: which program writes which cell, and the lanes of one trip. Torch-free.

A picture holds what a step leaves alone; what a step moves is a `Box`, laid over it, so that a key press draws no chart
anew that shows the same cells. Names of rows and columns stand beside a picture, not in it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import altair as alt

from c128a.ui import theme
from c128a.ui.kernel_case import Kernel, KernelCase, View
from c128a.ui.kernel_data import block
from c128a.ui.picture import Picture, Spec, frame

LINE = 128  # lanes in one line of the picture of a trip
MAX_LINES = 64  # lines drawn at most: the largest tile, 8192 lanes
LINE_HEIGHT, ROW_HEIGHT = 20, 24  # pixels of a line of lanes, of a row in a map
MAX_BLOCKS = 1024  # blocks of the map of programs; more are merged along the row
LABEL_SHARE = 0.055  # a block of the map has its label where it takes at least this part of the width
GAP = 0.5  # rows between decode and prefill rows in the map
_SPACE = 0.14  # of a lane's width, between two lanes

# A cell's height says its state as well as its colour does.
_HEIGHT = {"live": (0.0, 0.84), "pad": (0.42, 0.84), "masked": (0.74, 0.84)}
COLOUR = {"live": theme.ID, "pad": theme.PAD, "masked": theme.GREY}


class Box(NamedTuple):
    """A mark laid over a picture: left edge and width as shares of its width, top and height in pixels."""

    left: float
    width: float
    top: float
    height: float
    solid: bool


def blocks(case: KernelCase, kernel: Kernel) -> tuple[list[dict[str, Any]], int]:
    """The cells of each trip (row loop) or program (tiles), and how many neighbours in a row one block joins.

    A block has program, trip, order and what `kernel_data.block` gives.
    """
    programs, trips = case.grid(kernel)
    joined = min(-(-programs * trips // MAX_BLOCKS), trips)
    found = []
    for program in range(programs):
        for trip in range(0, trips, joined):
            cells = block(case, kernel, program, trip)
            cells["last_column"] = block(case, kernel, program, min(trip + joined, trips) - 1)["last_column"]
            found.append({"program": program, "trip": trip, "order": program * trips + trip, **cells})
    return found, joined


def program_map(case: KernelCase, kernel: Kernel) -> Picture:
    """Every cell of the build, coloured and labelled by the program of this kernel that writes it; n in each row."""
    found, joined = blocks(case, kernel)
    programs, trips = case.grid(kernel)
    marks = []
    for item in found:
        top, bottom = _place(case, item)
        left, right = item["first_column"], item["last_column"] + 1
        label = f"{item['program']}" if trips == 1 else f"{item['program']},{item['trip']}"
        marks.append(
            {
                "program": item["program"],
                "trip": item["trip"],
                "order": item["order"],
                "x": left,
                "x2": right,
                "y": top,
                "y2": bottom,
                "middle": (top + bottom) / 2,
                "label": label if (right - left) / case.width >= LABEL_SHARE else "",
                "ink": "#FFFFFF" if item["order"] < 0.6 * (programs * trips - 1) else "#000000",
                "tip": _block_tip(kernel, item, joined),
            }
        )
    return Picture(_map_frame(case.decode, case.prefill, case.width, programs * trips), blocks=marks, ends=_ends(case))


def _place(case: KernelCase, item: dict[str, Any]) -> tuple[float, float]:
    """Top and bottom of a block in the map, in rows."""
    shift = 0.0 if item["kind"] == "decode" else case.decode + (GAP if case.decode else 0.0)
    return item["first_row"] + shift, item["last_row"] + 1 + shift


def map_boxes(view: View, kernel: Kernel) -> list[Box]:
    """The cells on view, as marks on the map of a kernel.

    On the map of the kernel on view one solid box; on the other's a dashed one around each block with such cells.
    """
    case, own = view.case, view.kernel == kernel
    chosen = block(case, view.kernel, view.program, view.trip)
    boxes = []
    for item in [chosen] if own else blocks(case, kernel)[0]:
        if _same_cells(item, chosen):
            top, bottom = _place(case, item)
            left, right = item["first_column"], item["last_column"] + 1
            share, height = (right - left) / case.width, (bottom - top) * ROW_HEIGHT
            boxes.append(Box(left / case.width, share, top * ROW_HEIGHT, height, own))
    return boxes


def _same_cells(item: dict[str, Any], chosen: dict[str, Any]) -> bool:
    return item["kind"] == chosen["kind"] and all(
        item[f"first_{side}"] <= chosen[f"last_{side}"] and chosen[f"first_{side}"] <= item[f"last_{side}"]
        for side in ("row", "column")
    )


def _block_tip(kernel: Kernel, item: dict[str, Any], joined: int) -> str:
    top, bottom = item["first_row"], item["last_row"]
    rows = f"row {top}" if top == bottom else f"rows {top} to {bottom}"
    if kernel == "tiled":
        who = f"program ({item['program']}, {item['trip']})"
    else:
        who = f"program {item['program']}, trip {item['trip']}"
    more = "" if joined == 1 else f" and up to {joined - 1} more"
    return f"{who}{more}: {item['kind']} {rows}, columns {item['first_column']:,} to {item['last_column']:,}"


def _ends(case: KernelCase) -> list[dict[str, Any]]:
    """n of each row that has pads, at its place in the map."""
    ends = []
    for token, position in enumerate(case.launch.positions):
        n = min(max(position + 1, 0) // case.ratio, case.width)
        y = token if token < case.decode else token + (GAP if case.decode else 0.0)
        if n < case.width:
            ends.append({"n": n, "n2": n + case.width / 120, "y": y, "y2": y + 1})
    return ends


@lru_cache(maxsize=64)
def _map_frame(decode: int, prefill: int, width: int, count: int) -> Spec:
    rows = decode + prefill + (GAP if decode and prefill else 0.0)
    x = alt.X("x:Q", scale=alt.Scale(domain=[0, width], nice=False), axis=None)
    y = alt.Y("y:Q", scale=alt.Scale(domain=[rows, 0], nice=False), axis=None)
    order = alt.Scale(scheme="viridis", domain=[0, max(count - 1, 1)])
    marks = alt.Chart(alt.NamedData("blocks"))
    return frame(
        alt.layer(
            marks.mark_rect(stroke=theme.PAPER, strokeWidth=1, cursor="pointer")
            .encode(
                x=x,
                x2="x2:Q",
                y=y,
                y2="y2:Q",
                color=alt.Color("order:Q", scale=order, legend=None),
                tooltip=alt.Tooltip("tip:N", title="writes"),
            )
            .add_params(_pick("program", "trip")),
            alt.Chart(alt.NamedData("ends"))
            .mark_rect(color="#FFFFFF", stroke="#000000", strokeWidth=1)
            .encode(x="n:Q", x2="n2:Q", y="y:Q", y2="y2:Q"),
            marks.mark_text(align="left", dx=5, dy=1, fontWeight="bold", tooltip=None).encode(
                x="x:Q", y="middle:Q", text="label:N", color=alt.Color("ink:N", scale=None)
            ),
        ).properties(width="container", height=int(rows * ROW_HEIGHT), padding=0)
    )


def _pick(*fields: str) -> Any:
    # Cleared when the pointer leaves the mark, or a second click on it would change nothing and go unnoticed.
    return alt.selection_point(name="pick", fields=list(fields), on="click", clear="mouseout", empty=False)


def shown_lines(view: View) -> int:
    """How many lines of LINE lanes are drawn of the store on view."""
    return min(-(-len(view.store.lanes) // LINE), MAX_LINES)


def lane_picture(view: View) -> Picture:
    """The lanes of the store on view, in lines of LINE."""
    lines = shown_lines(view)
    marks = []
    for at, lane in enumerate(view.store.lanes[: lines * LINE]):
        top, bottom = _HEIGHT[lane.state]
        place = {"lane": at, "x": at % LINE, "y": round(at // LINE + top, 2), "y2": round(at // LINE + bottom, 2)}
        marks.append({**place, "s": lane.state, "r": lane.row, "c": lane.column, "v": lane.value})
    return Picture(_lane_frame(lines, view.case.rows(view.store.kind).row_stride), lanes=marks)


def lane_box(view: View) -> list[Box]:
    """The chosen lane, as a mark on the picture of the trip; none where its line is not drawn."""
    line, at = divmod(view.lane, LINE)
    if line >= shown_lines(view):
        return []
    all_lanes = LINE - _SPACE
    return [Box(at / all_lanes, (1 - _SPACE) / all_lanes, line * LINE_HEIGHT - 1, LINE_HEIGHT * 0.84 + 2, True)]


def line_names(view: View) -> list[str]:
    """The row and the columns of each line of the picture."""
    names = []
    for line in range(shown_lines(view)):
        lanes = view.store.lanes[line * LINE : (line + 1) * LINE]
        name = f"row {lanes[0].row} · {lanes[0].column:,}–{lanes[-1].column:,}"
        names.append(name if lanes[0].row == lanes[-1].row else f"rows {lanes[0].row}–{lanes[-1].row}")
    return names


# The address written out, worked out by the browser for the lane under the pointer: a text for each of a thousand lanes
# would be most of what a key press sends.
_LANE_TIP = (
    "datum.s == 'masked' ? 'lane ' + datum.lane + ' is masked: row ' + datum.r + ', column ' + format(datum.c, ',')"
    " : 'lane ' + datum.lane + ' stores ' + format(datum.v, ',') + ': row ' + datum.r"
    " + ' × stride {stride:,} + column ' + format(datum.c, ',') + ' = ' + format(datum.r * {stride} + datum.c, ',')"
    " + ' → byte ' + format(4 * (datum.r * {stride} + datum.c), ',')"
)


@lru_cache(maxsize=64)
def _lane_frame(lines: int, stride: int) -> Spec:
    x = alt.X("x:O", scale=alt.Scale(domain=list(range(LINE)), paddingInner=_SPACE, paddingOuter=0), axis=None)
    y = alt.Y("y:Q", scale=alt.Scale(domain=[lines, 0], nice=False), axis=None)
    colour = alt.Color("s:N", scale=alt.Scale(domain=list(COLOUR), range=list(COLOUR.values())), legend=None)
    spec = frame(
        alt.Chart(alt.NamedData("lanes"))
        .mark_rect(cursor="pointer", tooltip=alt.ExprRef(_LANE_TIP.format(stride=stride)))
        .encode(x=x, y=y, y2="y2:Q", color=colour)
        .add_params(_pick("lane"))
        .properties(width="container", height=lines * LINE_HEIGHT, padding=0)
    )
    # A thousand marks are slow as SVG; there is no text in this chart, so that nothing needs the colour of the page.
    spec["usermeta"] = {"embedOptions": {**theme.EMBED, "renderer": "canvas"}}
    return spec
