"""Where a cell lies: rows of a preallocated index buffer. Torch-free.

A layout is three numbers: rows, width (columns built) and row stride (elements from one row to the next).

    packed    row stride = width       rows follow each other; the stride moves with the batch (vLLM 0.27.1)
    pitched   row stride = capacity    rows stay where they are; cells past the width keep old bytes (vLLM 0.30)

    flat offset of (row, column) = row × row_stride + column

>>> RowLayout.packed(4, 256).offset(3, 7)
775
>>> RowLayout.pitched(4, 256, 1024).offset(3, 7)
3079
>>> RowLayout.packed(4, 256).locate(775)
(3, 7)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from c128a.width import host_integer

if TYPE_CHECKING:
    import torch

Layout = Literal["packed", "pitched"]
LAYOUTS: tuple[Layout, ...] = get_args(Layout)

ITEMSIZE = 4  # bytes; index rows are int32


@dataclass(frozen=True)
class RowLayout:
    """`rows` rows of `width` int32 columns, `row_stride` elements apart.

    Raises TypeError for what is no host integer, and ValueError for negative numbers and for a row stride under the
    width, which would let rows overlap.
    """

    rows: int
    width: int
    row_stride: int

    def __post_init__(self) -> None:
        for name in ("rows", "width", "row_stride"):
            object.__setattr__(self, name, host_integer(name, getattr(self, name), 0))
        if self.row_stride < self.width:
            raise ValueError(f"row_stride is {self.row_stride}; rows overlap under the width of {self.width}")

    @classmethod
    def packed(cls, rows: int, width: int) -> RowLayout:
        """Rows that follow each other without a gap: the stride is the width."""
        return cls(rows, width, width)

    @classmethod
    def pitched(cls, rows: int, width: int, capacity: int) -> RowLayout:
        """Rows at the stride of the whole buffer: the width moves, the rows do not."""
        return cls(rows, width, capacity)

    @classmethod
    def named(cls, layout: Layout, rows: int, width: int, capacity: int) -> RowLayout:
        """The layout of that name; raises ValueError for another name.

        >>> RowLayout.named("pitched", 2, 128, 512)
        RowLayout(rows=2, width=128, row_stride=512)
        """
        if layout == "packed":
            return cls.packed(rows, width)
        if layout == "pitched":
            return cls.pitched(rows, width, capacity)
        raise ValueError(f"layout is {layout!r}; it must be one of {', '.join(LAYOUTS)}")

    @property
    def span(self) -> int:
        """Elements from the first cell to one past the last: what a buffer must hold at least."""
        return (self.rows - 1) * self.row_stride + self.width if self.rows else 0

    def offset(self, row: int, col: int) -> int:
        """Flat element index of a cell; raises IndexError for a cell outside the layout."""
        if not (0 <= row < self.rows and 0 <= col < self.width):
            raise IndexError(f"cell ({row}, {col}) is outside {self.rows} rows × {self.width} columns")
        return row * self.row_stride + col

    def locate(self, offset: int) -> tuple[int, int] | None:
        """The (row, column) that lies at a flat offset, or None where the layout has no cell.

        >>> RowLayout.pitched(2, 128, 512).locate(512), RowLayout.pitched(2, 128, 512).locate(200)
        ((1, 0), None)
        """
        if offset < 0 or self.row_stride == 0:
            return None
        row, col = divmod(offset, self.row_stride)
        return (row, col) if row < self.rows and col < self.width else None

    def address(self, row: int, col: int) -> str:
        """The address written out, as the pages show it.

        >>> RowLayout.pitched(4, 256, 1024).address(3, 7)
        'row 3 × stride 1,024 + column 7 = 3,079 → byte 12,316'
        """
        at = self.offset(row, col)
        return f"row {row:,} × stride {self.row_stride:,} + column {col:,} = {at:,} → byte {at * ITEMSIZE:,}"

    def view(self, buffer: torch.Tensor) -> torch.Tensor:
        """The (rows, width) view of a torch buffer, without a copy, starting at the buffer's first element.

        Raises ValueError where the buffer, read flat from its first element, is too small.
        """
        last = sum((size - 1) * stride for size, stride in zip(buffer.shape, buffer.stride(), strict=True))
        held = last + 1 if buffer.numel() else 0
        if self.span > held:
            raise ValueError(
                f"buffer of shape {tuple(buffer.shape)} holds {held:,} elements; {self.rows} rows × width "
                f"{self.width} at row stride {self.row_stride} need {self.span:,}"
            )
        return buffer.as_strided((self.rows, self.width), (self.row_stride, 1))


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
