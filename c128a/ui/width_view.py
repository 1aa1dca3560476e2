"""The pictures of page 01 over sequence length. Torch-free; the numbers come from `width_data`.

Each picture has a frame, built once for what seldom changes (the model length, the policy), and the rows of the moment.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import altair as alt

from c128a.ui import theme
from c128a.ui.picture import Picture, Spec, frame
from c128a.ui.width_data import AXIS_FIRST, WidthCase, curves, reach
from c128a.width import POLICIES, Policy

AXIS_ROOM = 48  # pixels left of the curve, and of the strip under it, so that their tokens line up
CURVE_HEIGHT = 340  # pixels
LABEL_SHARE = 0.035  # a segment of the strip gets its label where it takes at least this part of the width

_DOMAIN: list[str] = [theme.POLICY_NAME[policy] for policy in POLICIES]
COLOUR = alt.Color("policy:N", scale=alt.Scale(domain=_DOMAIN, range=[theme.POLICY[policy] for policy in POLICIES]))
_DASH = alt.StrokeDash(
    "policy:N", scale=alt.Scale(domain=_DOMAIN, range=[theme.POLICY_DASH[policy] for policy in POLICIES])
)


def width_curve(case: WidthCase) -> Picture:
    """Width over sequence length under every policy, on log axes, with the case and the range of its width marked."""
    top = _axis_last(case)
    here: dict[str, Any] = {"seq": max(case.seq, AXIS_FIRST), "width": case.width}
    held = []
    if case.fits:
        first, last = case.held
        held = [{"seq": max(first, AXIS_FIRST), "to": max(min(last, top), AXIS_FIRST), "width": case.width}]
        here["text"] = f"{case.seq:,} tokens → {case.width:,} columns\nthe same from {first:,} to {last:,} tokens"
    else:
        here["text"] = (
            f"{case.seq:,} tokens need {case.needed:,} columns:\na capacity of {case.capacity:,} is too narrow"
        )
    here["shape"] = "circle" if case.fits else "cross"
    right_half = here["seq"] ** 2 > AXIS_FIRST * top
    return Picture(
        _curve_frame(case.model_len, case.ratio, case.policy, top),
        held=held,
        here=[here],
        here_left=[here] if right_half else [],
        here_right=[] if right_half else [here],
    )


@lru_cache(maxsize=32)
def _curve_frame(model_len: int, ratio: int, policy: Policy, top: int) -> Spec:
    case = WidthCase(0, model_len, ratio, policy)
    table = curves(model_len, ratio)
    lines = [
        {"policy": theme.POLICY_NAME[name], "seq": seq, "width": width}
        for name, seq, width in zip(table["policy"], table["seq"], table["width"], strict=True)
    ]
    low = int(table["width"].min())
    ticks = [*(width for width in octaves(low, case.capacity) if width * 1.4 < case.capacity), case.capacity]
    x = _log_tokens(top)
    y = alt.Y(
        "width:Q",
        scale=alt.Scale(type="log", base=2, domain=[low / 2, case.capacity * 2.8], nice=False),
        axis=alt.Axis(
            title="columns of a row",
            format=",d",
            minExtent=AXIS_ROOM,
            maxExtent=AXIS_ROOM,
            values=ticks,
        ),
    )
    here = alt.Chart(alt.NamedData("here"))
    label: dict[str, Any] = {"fontWeight": "bold", "fontSize": 13, "lineBreak": "\n", "dy": -33}
    return frame(
        alt.layer(
            *_nothing_saved(case, x, top),
            alt.Chart(alt.Data(values=lines)).mark_line().encode(x=x, y=y, color=COLOUR, strokeDash=_DASH),
            alt.Chart(alt.NamedData("held"))
            .mark_rule(strokeWidth=12, opacity=0.35, color=theme.HERE)
            .encode(x=x, x2="to:Q", y=y),
            here.mark_rule(color=theme.HERE, strokeDash=[3, 3]).encode(x=x),
            here.mark_point(size=140, filled=True, color=theme.HERE, opacity=1).encode(
                x=x,
                y=y,
                shape=alt.Shape("shape:N", scale=None),
                tooltip=alt.Tooltip("text:N", title="you are here"),
            ),
            *theme.halo_text(alt.Chart(alt.NamedData("here_left")).encode(x=x, y=y), align="right", dx=-12, **label),
            *theme.halo_text(alt.Chart(alt.NamedData("here_right")).encode(x=x, y=y), align="left", dx=12, **label),
        ).properties(width="container", height=CURVE_HEIGHT)
    )


def _nothing_saved(case: WidthCase, x: alt.X, top: int) -> list[alt.Chart]:
    """The part of the axis on which the width is the capacity, shaded and named."""
    first = max(case.full_from, AXIS_FIRST)
    if first >= top:
        return []
    text = f"from {case.full_from:,} tokens: full width, nothing saved"
    region = alt.Chart(alt.Data(values=[{"seq": first, "to": top, "text": text}]))
    inside = first * first < AXIS_FIRST * top  # the region takes most of the axis, and the text fits into it
    side: dict[str, Any] = {"align": "left", "dx": 8} if inside else {"align": "right", "dx": -8}
    return [
        region.mark_rect(color=theme.WRONG, opacity=0.18).encode(x=x, x2="to:Q"),
        region.mark_rule(color=theme.WRONG, strokeWidth=2).encode(x=x),
        *theme.halo_text(region.encode(x=x), y=CURVE_HEIGHT - 14, fontWeight="bold", fontSize=13, **side),
    ]


def length_strip(case: WidthCase) -> Picture:
    """Every length 0 … model_len on a linear scale, a segment for each width, the full-width part in its own colour."""
    top = max(case.model_len, case.seq)
    return Picture(_strip_frame(case.model_len, case.ratio, case.policy, top), here=[{"first": case.seq}])


@lru_cache(maxsize=32)
def _strip_frame(model_len: int, ratio: int, policy: Policy, top: int) -> Spec:
    case = WidthCase(0, model_len, ratio, policy)
    table = reach(model_len, ratio, policy)
    rows = []
    for width, first, last, share in table.itertuples(index=False):
        full = width == case.capacity
        text = f"{width:,}" if share >= LABEL_SHARE else ""
        if full and share >= 0.3:
            text = f"{width:,} columns: nothing saved"
        tip = f"{width:,} columns from {first:,} to {last:,} tokens: {share:.1%} of all lengths"
        rows.append({"first": first, "to": last + 1, "full": full, "text": text, "tip": tip})
    x = alt.X(
        "first:Q",
        scale=alt.Scale(domain=[0, top], nice=False),
        axis=alt.Axis(format=",d", title="the same tokens on a linear scale", tickCount=10),
    )
    segments = alt.Chart(alt.Data(values=rows))
    colour = alt.condition("datum.full", alt.value(theme.WRONG), alt.value(theme.ID))
    border: dict[str, Any] = {"stroke": "#FFFFFF", "strokeWidth": 0.75} if len(rows) < 100 else {}
    return frame(
        alt.layer(
            segments.mark_rect(y=14, y2=48, **border).encode(
                x=x, x2="to:Q", color=colour, tooltip=alt.Tooltip("tip:N", title="width")
            ),
            alt.Chart(alt.Data(values=[{**row, "middle": (row["first"] + row["to"]) / 2} for row in rows]))
            .mark_text(y=31, color="#FFFFFF", fontWeight="bold", fontSize=13)
            .encode(x="middle:Q", text="text:N"),
            alt.Chart(alt.NamedData("here"))
            .mark_point(shape="triangle-down", filled=True, size=110, color=theme.HERE, opacity=1, y=6)
            .encode(x=x),
        ).properties(width="container", height=50, padding={"left": AXIS_ROOM + 16, "right": 4, "top": 4, "bottom": 4})
    )


def pads_chart(case: WidthCase) -> Picture:
    """The share of the longest row that is padding, over sequence length, under every policy."""
    at = max(case.seq, AXIS_FIRST)
    here = [
        {
            "policy": theme.POLICY_NAME[name],
            "seq": at,
            "pads": max(0.0, 1 - case.needed / case.width_of(name)),
            "colour": theme.POLICY[name],
        }
        for name in POLICIES
    ]
    return Picture(_pads_frame(case.model_len, case.ratio, _axis_last(case)), here=here, rule=here[:1])


@lru_cache(maxsize=32)
def _pads_frame(model_len: int, ratio: int, top: int) -> Spec:
    table = curves(model_len, ratio)
    rows = [
        {"policy": theme.POLICY_NAME[name], "seq": seq, "pads": round(pads, 4)}
        for name, seq, pads in zip(table["policy"], table["seq"], table["pads"], strict=True)
    ]
    x = _log_tokens(top, every=2)
    y = alt.Y("pads:Q", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(title="pads in the longest row", format="%"))
    return frame(
        alt.layer(
            alt.Chart(alt.Data(values=rows)).mark_line(strokeWidth=2).encode(x=x, y=y, color=COLOUR, strokeDash=_DASH),
            alt.Chart(alt.NamedData("rule")).mark_rule(color=theme.HERE, strokeDash=[3, 3]).encode(x=x),
            alt.Chart(alt.NamedData("here"))
            .mark_point(filled=True, size=80, opacity=1)
            .encode(
                x=x,
                y=y,
                fill=alt.Fill("colour:N", scale=None),
                tooltip=["policy:N", alt.Tooltip("pads:Q", format=".1%")],
            ),
        ).properties(width="container", height=240)
    )


def _log_tokens(last: int, *, every: int = 1) -> alt.X:
    return alt.X(
        "seq:Q",
        scale=alt.Scale(type="log", base=2, domain=[AXIS_FIRST, last], nice=False),
        axis=alt.Axis(
            title="longest sequence of the batch, tokens", format=",d", values=octaves(AXIS_FIRST, last)[::every]
        ),
    )


def _axis_last(case: WidthCase) -> int:
    return max(case.seq, case.model_len, 2 * AXIS_FIRST)


def octaves(first: int, last: int) -> list[int]:
    """The powers of two from first to last, for an axis.

    >>> octaves(100, 600)
    [128, 256, 512]
    """
    return [1 << power for power in range(max(first, 1).bit_length() - 1, last.bit_length()) if 1 << power >= first]
