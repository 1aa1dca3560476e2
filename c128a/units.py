"""Numbers with units, as people read them. Torch-free."""

from __future__ import annotations


def human_bytes(count: int) -> str:
    """A byte count in binary units, three digits.

    >>> human_bytes(536_870_912), human_bytes(285_184_000), human_bytes(32_768), human_bytes(12)
    ('512 MiB', '272 MiB', '32 KiB', '12 B')
    >>> human_bytes(1_048_000), human_bytes(1_023_700), human_bytes(1023)
    ('1,023 KiB', '1,000 KiB', '1,023 B')
    """
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= factor:
            value = count / factor
            return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"
    return f"{count:,} B"
