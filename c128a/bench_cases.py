"""A cell as page 04 names it before it speaks of a `Case`; c128a.bench.cases is what the bench uses."""

from __future__ import annotations

from typing import NamedTuple

from c128a.case import Case


class Cell(NamedTuple):
    """One row of the benchmark: decode rows, prefill tokens, sequence length, and the length of all but one of them."""

    decode: int
    prefill: int
    max_seq_len: int
    short: int | None = None

    @property
    def name(self) -> str:
        """A label that tells the cell from the others."""
        long = f" ({self.short} but for one)" if self.short else ""
        return f"{self.decode}+{self.prefill}@{self.max_seq_len}{long}"

    @property
    def case(self) -> Case:
        """The cell as a case."""
        if self.short:
            return Case.one_long(self.decode, self.max_seq_len, self.short, layout="packed")
        return Case.mixed(self.decode, self.prefill, self.max_seq_len, layout="packed")
