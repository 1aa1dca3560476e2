"""The numbers of page 01: what a width costs, which lengths reach it, how much of it is padding. Torch-free.

>>> case = WidthCase(seq=32_896)
>>> case.needed, case.width, case.held
(257, 512, (32896, 65663))
>>> WidthCase(seq=1_048_576, model_len=980_224).fits
False
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import pandas as pd

from c128a.layout import ITEMSIZE
from c128a.width import (
    POLICIES,
    Policy,
    active_topk_width,
    capacity_width,
    loop_trips,
    reachable_widths,
    required_width,
    sequence_range,
)

BLOCK_SIZES = (128, 256, 512, 1024, 2048, 4096, 8192)  # columns a trip; 1024 is what PR #50004 launches
MAX_STEPS = 128  # steps of one curve: closer ones lie within a pixel of each other on the log axis
AXIS_FIRST = 128  # tokens; a log axis has no zero


@dataclass(frozen=True)
class WidthCase:
    """The settings of the page. seq and model_len in tokens, ratio in tokens per entry, rows in rows a step."""

    seq: int = 32_768
    model_len: int = 1_048_576
    ratio: int = 128
    policy: Policy = "pow2"
    rows: int = 8192

    @property
    def capacity(self) -> int:
        """Columns of the preallocated buffer."""
        return capacity_width(self.model_len, self.ratio)

    @property
    def needed(self) -> int:
        """Columns the longest sequence cannot do without."""
        return required_width(self.seq, self.ratio)

    @property
    def width(self) -> int:
        """Columns built."""
        return self.width_of(self.policy)

    def width_of(self, policy: Policy) -> int:
        """Columns built under another policy."""
        return active_topk_width(self.seq, self.ratio, self.capacity, policy=policy)

    @property
    def fits(self) -> bool:
        """Whether the capacity holds the longest sequence."""
        return self.needed <= self.capacity

    @property
    def held(self) -> tuple[int, int]:
        """First and last sequence length, in tokens, up to the model length, for which this width is built."""
        first, last = sequence_range(self.width, self.ratio, self.capacity, policy=self.policy)
        return first, min(last, max(self.model_len, first))

    @property
    def full_from(self) -> int:
        """The sequence length, in tokens, from which the width is the capacity: nothing is saved from there on."""
        return sequence_range(self.capacity, self.ratio, self.capacity, policy=self.policy)[0]

    @property
    def full_share(self) -> float:
        """The share of the lengths 0 … model_len at which the width is the capacity.

        >>> round(WidthCase().full_share, 3)
        0.5
        """
        return max(0, self.model_len - self.full_from + 1) / (self.model_len + 1)


@lru_cache(maxsize=64)
def reach(model_len: int, ratio: int, policy: Policy) -> pd.DataFrame:
    """One row for each width the policy can choose: columns width, first, last (tokens), share (of 0 … model_len).

    `last` ends at the model length. Widths that no allowed length reaches are left out. The frame is shared: copy it
    before changing it.

    >>> reach(33_792, 128, "pow2")[["width", "first", "last"]].values.tolist()
    [[128, 0, 16511], [256, 16512, 32895], [384, 32896, 33792]]
    """
    capacity = capacity_width(model_len, ratio)
    rows = []
    widths = reachable_widths(capacity, policy=policy)
    for before, width in zip([-1, *widths], widths, strict=False):
        first = (before + 1) * ratio
        last = min((width + 1) * ratio - 1, model_len)
        if first <= last:
            rows.append((width, first, last, (last - first + 1) / (model_len + 1)))
    return pd.DataFrame(rows, columns=["width", "first", "last", "share"])


@lru_cache(maxsize=64)
def curves(model_len: int, ratio: int) -> pd.DataFrame:
    """Both ends of every step of every policy: columns policy, seq (tokens), width, needed, pads (share of the width).

    A policy with more than MAX_STEPS steps is thinned evenly in the logarithm of its width.
    """
    rows = []
    for policy in POLICIES:
        table = reach(model_len, ratio, policy)
        for at in _thinned(len(table)):
            width, first, last, _ = table.iloc[at]
            # A step also needs points inside: its share of pads falls along a curve, not a line, on a log axis.
            inner = [int(first + (last - first) * part) for part in (0.02, 0.06, 0.15, 0.3, 0.5, 0.75)]
            for seq in sorted({int(first), *inner, int(last)}) if at < 16 else (int(first), int(last)):
                needed = seq // ratio
                rows.append((policy, max(seq, AXIS_FIRST), int(width), needed, 1 - needed / width))
    return pd.DataFrame(rows, columns=["policy", "seq", "width", "needed", "pads"])


def trips(case: WidthCase) -> pd.DataFrame:
    """Trips of the row loop by block size: columns block_size, fixed, chosen, ratio (fixed over chosen).

    >>> trips(WidthCase()).query("block_size == 1024").values.tolist()
    [[1024.0, 8.0, 1.0, 8.0]]
    """
    rows = []
    for block in BLOCK_SIZES:
        fixed, chosen = loop_trips(case.capacity, block), loop_trips(case.width, block)
        rows.append((block, fixed, chosen, fixed / chosen))
    return pd.DataFrame(rows, columns=["block_size", "fixed", "chosen", "ratio"])


def step_bytes(case: WidthCase) -> pd.DataFrame:
    """Bytes of index rows written a step under each policy: columns policy, width, bytes.

    >>> step_bytes(WidthCase(rows=1)).values.tolist()
    [['fixed', 8192, 32768], ['pow2', 256, 1024], ['aligned', 256, 1024]]
    """
    rows = [(policy, case.width_of(policy), case.rows * case.width_of(policy) * ITEMSIZE) for policy in POLICIES]
    return pd.DataFrame(rows, columns=["policy", "width", "bytes"])


def mean_width(model_len: int, ratio: int, policy: Policy) -> float:
    """The width averaged over every length 0 … model_len, each counted once.

    >>> mean_width(255, 1, "pow2"), mean_width(255, 1, "fixed")
    (191.5, 256.0)
    """
    table = reach(model_len, ratio, policy)
    return float((table["width"] * table["share"]).sum())


def _thinned(steps: int) -> list[int]:
    if steps <= MAX_STEPS:
        return list(range(steps))
    return sorted({round(steps ** (at / (MAX_STEPS - 1))) - 1 for at in range(MAX_STEPS)})
