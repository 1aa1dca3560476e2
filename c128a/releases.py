"""What the vLLM releases do with the C128A index rows. Torch-free.

    0.26.0   fixed width, rows at the stride of the buffer
    0.27.1   adaptive width, packed rows            PR #50004
    0.28.0   fixed width again                      PR #51318, because of issue #52448
    0.30.0   adaptive width, pitched rows           PR #52823, and every release since

>>> release_of("0.27.1").layout, release_of("0.31.2").layout
('packed', 'pitched')
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from c128a.layout import Layout
from c128a.width import Policy


@dataclass(frozen=True)
class Release:
    """One documented release: the width policy and the layout of its rows, the change that made it so, and the outcome.

    A fixed width is the capacity, so its rows lie at the stride of the buffer under either layout.
    """

    name: str
    policy: Policy
    layout: Layout
    change: str
    outcome: str


RELEASES: tuple[Release, ...] = (
    Release("0.26.0", "fixed", "pitched", "before PR #50004", "every step builds the full width"),
    Release(
        "0.27.1",
        "pow2",
        "packed",
        "PR #50004",
        "reverted in 0.28.0 by PR #51318, for issue #52448: garbage in one request of a batch, never the first",
    ),
    Release("0.28.0", "fixed", "pitched", "PR #51318", "the full width again, after the revert"),
    Release("0.30.0", "pow2", "pitched", "PR #52823", "adaptive again, at a row stride that does not move"),
)

_BY_MINOR = {(0, 26): RELEASES[0], (0, 27): RELEASES[1], (0, 28): RELEASES[2]}


def release_of(version: str) -> Release:
    """The documented release whose rows a vLLM version has: 0.26, 0.27, 0.28, and 0.30 or later.

    Raises ValueError for a version that cannot be read and for one that is not documented (0.29, or before 0.26).

    >>> release_of("0.30.1rc2").name
    '0.30.0'
    """
    found = re.match(r"v?(\d+)\.(\d+)(?![\d])", version.strip())
    known = ", ".join(release.name for release in RELEASES)
    if found is None:
        raise ValueError(f"release is {version!r}; it must be a vLLM version such as {known}")
    major, minor = int(found[1]), int(found[2])
    if (major, minor) >= (0, 30):
        return RELEASES[-1]
    if (major, minor) in _BY_MINOR:
        return _BY_MINOR[major, minor]
    raise ValueError(f"release is {version!r}; documented are {known} and later ones")
