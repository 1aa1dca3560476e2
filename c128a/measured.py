"""Kernel times between measured points, and never outside them. Torch-free.

A series holds the measured times of one kernel form. A time is asked for by tokens, sequence length and width:

    tokens    straight line between the two nearest measured token counts
    along     straight line between the two nearest measured widths, or sequence lengths for a form of fixed width

Both lines join neighbouring measured points, and the answer names them. Outside the points the question is refused.

>>> line = Series("demo", (Point(8192, 32_768, 256, 10.0), Point(8192, 131_072, 1024, 40.0)))
>>> line.at(8192, 65_536, 512).us
20.0
>>> line.at(8192, 1_048_576, 8192)
Traceback (most recent call last):
    ...
c128a.measured.UnmeasuredError: demo: width 8,192 was not measured at 8,192 tokens; measured: 256 to 1,024
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal


class UnmeasuredError(ValueError):
    """A time was asked for where nothing was measured; the message names the measured range."""


@dataclass(frozen=True)
class Point:
    """One measured time: tokens (rows), max_seq_len in tokens, width in columns, us in microseconds."""

    tokens: int
    max_seq_len: int
    width: int
    us: float


@dataclass(frozen=True)
class Estimate:
    """A time in microseconds and the measured points it lies on or between."""

    us: float
    points: tuple[Point, ...]

    @property
    def interpolated(self) -> bool:
        """Whether the time was read between points and not measured itself."""
        return len(self.points) > 1

    @property
    def basis(self) -> str:
        """What the time rests on, in words: measured, or between which points."""
        if not self.points:
            return "not launched"
        if not self.interpolated:
            return "measured"
        return "between " + " and ".join(
            f"{p.us:g} µs ({p.tokens:,} tokens, {p.max_seq_len:,} long, width {p.width:,})" for p in self.points
        )


NOT_LAUNCHED = Estimate(0.0, ())


@dataclass(frozen=True)
class Series:
    """The measured points of one kernel form. Where a cell was measured twice, the first one counts."""

    name: str
    points: tuple[Point, ...]
    along: Literal["width", "max_seq_len"] = "width"

    def at(self, tokens: int, max_seq_len: int, width: int) -> Estimate:
        """The time for these tokens at this length and width, in microseconds.

        Raises UnmeasuredError where it lies outside the measured points.
        """
        counts = sorted({p.tokens for p in self.points})
        if not counts:
            raise UnmeasuredError(f"{self.name}: no record holds a time of it")
        if not counts[0] <= tokens <= counts[-1]:
            raise UnmeasuredError(
                f"{self.name}: {tokens:,} tokens were not measured; measured: {_range(counts)} tokens"
            )
        wanted = width if self.along == "width" else max_seq_len
        below = max(count for count in counts if count <= tokens)
        above = min(count for count in counts if count >= tokens)
        first = self._along(below, wanted)
        return first if below == above else between(first, below, self._along(above, wanted), above, tokens)

    def _along(self, tokens: int, wanted: int) -> Estimate:
        """The time at one measured token count."""
        known: dict[int, Point] = {}
        for point in self.points:
            if point.tokens == tokens:
                known.setdefault(getattr(point, self.along), point)
        places = sorted(known)
        if not places[0] <= wanted <= places[-1]:
            what = "width" if self.along == "width" else "a length of"
            raise UnmeasuredError(
                f"{self.name}: {what} {wanted:,} was not measured at {tokens:,} tokens; measured: {_range(places)}"
            )
        below = max(place for place in places if place <= wanted)
        above = min(place for place in places if place >= wanted)
        low, high = (Estimate(known[place].us, (known[place],)) for place in (below, above))
        return low if below == above else between(low, below, high, above, wanted)


def between(low: Estimate, at_low: int, high: Estimate, at_high: int, at: int) -> Estimate:
    """The time at `at` on the straight line from (at_low, low) to (at_high, high), with the points of both.

    >>> between(Estimate(10.0, ()), 0, Estimate(30.0, ()), 100, 50).us
    20.0
    """
    share = (at - at_low) / (at_high - at_low)
    return Estimate(low.us + share * (high.us - low.us), low.points + high.points)


def _range(values: Iterable[int]) -> str:
    ordered = sorted(values)
    return f"{ordered[0]:,} to {ordered[-1]:,}" if len(ordered) > 1 else f"only {ordered[0]:,}"
