"""Log axes in microseconds and in bytes, with ticks at round numbers. Torch-free."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

BYTES_LABEL = (
    "datum.value >= 1048576 ? format(datum.value / 1048576, ',.3~r') + ' MiB' : "
    "datum.value >= 1024 ? format(datum.value / 1024, ',.3~r') + ' KiB' : datum.value + ' B'"
)


def span(rows: Sequence[Mapping[str, Any]], field: str = "us") -> tuple[float, float]:
    """The ends of a log axis that holds the rows with room around them."""
    values = [row[field] for row in rows]
    return min(values) / 1.6, max(values) * 1.6


def octaves(least: float, most: float) -> list[int]:
    """Powers of two for the ticks of an axis in bytes, eight at most.

    >>> octaves(3e6, 3e8)
    [4194304, 8388608, 16777216, 33554432, 67108864, 134217728, 268435456]
    """
    powers = range(math.ceil(math.log2(least)), math.floor(math.log2(most)) + 1)
    return [2**power for power in powers if power % (len(powers) // 8 + 1) == 0]


def decades(least: float, most: float) -> list[float]:
    """1, 2 and 5 of each power of ten for the ticks of an axis in microseconds; over a long axis the 1 alone.

    >>> decades(0.4, 70), decades(0.4, 5e5)
    ([0.5, 1, 2, 5, 10, 20, 50], [1, 10, 100, 1000, 10000, 100000])
    """
    digits = (1,) if most / least > 10**4 else (1, 2, 5)
    ticks = [digit * 10.0**power for power in range(-2, 8) for digit in digits]
    return [int(tick) if tick >= 1 else round(tick, 2) for tick in ticks if least <= tick <= most]
