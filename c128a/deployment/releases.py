"""What each vLLM release does with the C128A index rows. Torch-free; every field was read in the wheel of the release.

>>> release_of("0.27.1").layout, release_of("0.31.2").layout
('packed', 'pitched')
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from c128a.layout import Layout
from c128a.width import Policy

# Where a request counts as decode, by its query tokens, with k speculative tokens: up to 1 + k (0.31 to 0.33 with model
# runner V1: as "parallel"), but
#   parallel   up to 1 + 2k where the draft is parallel (DSpark, DFlash)
#   draft      up to 2 + k for a standalone draft model
Split = Literal["parallel", "plain", "draft"]
METHODS = ("mtp", "deepseek_mtp", "eagle", "eagle3", "dspark", "dflash", "draft_model", "ngram", "ngram_gpu", "suffix")


@dataclass(frozen=True)
class Release:
    """One release: width policy and row layout, the change that made them so and its outcome, and facts of the builder.

    A fixed width is the capacity, so its rows lie at the stride of the buffer under either layout.
    """

    name: str
    policy: Policy
    layout: Layout
    change: str
    outcome: str
    split: Split
    variants: tuple[int, ...]  # of the builder's kernel: all widths, then other decode counts, table strides, pointers
    lens_bound_sm120: bool = False  # its FlashInfer gathers nothing past lens on SM120
    known: bool = True  # False: newer than every release that was read, with the facts of the newest

    def decode_query_len(self, num_speculative_tokens: int, method: str | None = None) -> int:
        """The most query tokens of a request that counts as decode.

        >>> release_of("0.29.0").decode_query_len(7, "dspark"), release_of("0.34.0").decode_query_len(7, "dspark")
        (15, 8)
        """
        k = num_speculative_tokens
        if self.split == "parallel" and method in ("dspark", "dflash"):
            return 1 + 2 * k
        return 1 + k + (k > 0 and self.split == "draft" and method == "draft_model")


_FREE, _HELD = (1, 3, 4, 5), (1, 1, 1, 2)  # integers left to Triton's specialisation; do_not_specialize
_REVERTED = "reverted in 0.28.0 by PR #51318, for issue #52448: garbage in one request of a batch, never the first"
_FIXED = "every step builds the full width"
_STILL = "adaptive at a row stride that does not move"

RELEASES: tuple[Release, ...] = (
    Release("0.26.0", "fixed", "pitched", "before PR #50004", _FIXED, "parallel", _FREE),
    Release("0.27.1", "pow2", "packed", "PR #50004", _REVERTED, "parallel", _FREE),
    Release("0.28.0", "fixed", "pitched", "PR #51318", _FIXED, "parallel", _FREE),
    Release("0.29.0", "pow2", "pitched", "PR #52823", _STILL, "parallel", _FREE),
    Release("0.30.0", "pow2", "pitched", "PR #52823", _STILL, "parallel", _HELD),
    Release("0.31.0", "pow2", "pitched", "PR #52823", _STILL, "plain", _HELD),
    Release("0.32.0", "pow2", "pitched", "PR #52823", _STILL, "plain", _HELD),
    Release("0.33.0", "pow2", "pitched", "PR #52823", _STILL, "plain", _HELD, lens_bound_sm120=True),
    Release("0.34.0", "pow2", "pitched", "PR #52823", _STILL, "draft", _HELD, lens_bound_sm120=True),
)


def release_of(version: str) -> Release:
    """The release whose facts a vLLM version has: the one of its minor number, from 0.26 on.

    A version newer than the newest that was read has its facts, and `known` is False. Raises ValueError for what is no
    version and for one before 0.26.

    >>> release_of("0.30.1rc2").name, release_of("0.35.0").known
    ('0.30.0', False)
    """
    newest = RELEASES[-1]
    found = re.match(r"v?(\d{1,6})\.(\d{1,6})(?!\d)", version.strip()) if isinstance(version, str) else None
    if found is None:
        raise ValueError(f"release is {str(version)[:40]!r}; it must be a vLLM version such as {newest.name}")
    number = int(found[1]), int(found[2])
    if number < (0, 26):
        raise ValueError(f"release is {version[:40]!r}; C128A rows are known from {RELEASES[0].name} on")
    minor = f"{number[0]}.{number[1]}"
    same = [release for release in RELEASES if release.name.startswith(f"{minor}.")]
    return same[0] if same else replace(newest, name=minor, known=False)
