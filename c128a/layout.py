"""Where a cell lies: rows of a preallocated index buffer. Torch-free.

A layout is three numbers: rows, width (columns built) and row stride (elements from one row to the next).

    packed    row stride = width       rows follow each other; the stride moves with the batch (vLLM 0.27.1)
    pitched   row stride = capacity    rows stay where they are; cells past the width keep old bytes (vLLM 0.29)

    flat offset of (row, column) = row × row_stride + column

>>> RowLayout.packed(4, 256).offset(3, 7)
775
>>> RowLayout.pitched(4, 256, 1024).offset(3, 7)
3079
>>> RowLayout.packed(4, 256).locate(775)
(3, 7)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from c128a.width import host_integer

if TYPE_CHECKING:
    import torch

Layout = Literal["packed", "pitched"]
LAYOUTS: tuple[Layout, ...] = get_args(Layout)

ITEMSIZE = 4  # bytes; index rows are int32
WINDOW = 128  # tokens of the uncompressed sliding window (DeepSeek-V4)


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


class Chunk(NamedTuple):
    """Prefill requests start … end - 1, whose KV is gathered into the workspace together.

    Each of them has workspace_rows rows there: compressed_rows for its compressed entries, then its gathered tokens.
    """

    start: int
    end: int
    compressed_rows: int
    workspace_rows: int


def prefill_chunks(
    seq_lens: Sequence[int],
    query_lens: Sequence[int],
    *,
    workspace_rows: int,
    compress_ratio: int = 128,
    window: int = WINDOW,
) -> list[Chunk]:
    """Cut the prefill requests of a step into chunks that fit the workspace, in order, each as long as it can be.

    seq_lens and query_lens in tokens, on the host; workspace_rows is the area that one chunk may fill. A request
    gathers its query and up to window - 1 tokens before it, and all requests of a chunk have as many rows as the
    longest of them needs. A request that does not fit alone is a chunk of its own, as in the released plan.

    Raises TypeError for what is no host integer, ValueError where the lists differ in length, a query is longer than
    its sequence, or workspace_rows is under 1. Source: the chunk plan of the sparse prefill in vLLM 0.34.0.

    >>> prefill_chunks([1000, 1000, 300], [10, 20, 300], workspace_rows=320)
    ... # doctest: +NORMALIZE_WHITESPACE
    [Chunk(start=0, end=2, compressed_rows=7, workspace_rows=154),
     Chunk(start=2, end=3, compressed_rows=2, workspace_rows=302)]
    """
    workspace_rows = host_integer("workspace_rows", workspace_rows, 1)
    compress_ratio = host_integer("compress_ratio", compress_ratio, 1)
    window = host_integer("window", window, 1)
    if len(seq_lens) != len(query_lens):
        raise ValueError(f"seq_lens holds {len(seq_lens)} requests, query_lens {len(query_lens)}")
    compressed, gathered = [], []
    seqs, queries = _host_integers("seq_lens", seq_lens), _host_integers("query_lens", query_lens)
    for request, (seq, query) in enumerate(zip(seqs, queries, strict=True)):
        if query > seq:
            raise ValueError(f"query_lens[{request}] is {query}; its sequence has {seq} tokens")
        compressed.append(seq // compress_ratio)
        gathered.append(query + min(seq - query, window - 1))
    chunks: list[Chunk] = []
    start = most = longest = 0
    for request in range(len(compressed)):
        wider, longer = max(most, compressed[request]), max(longest, gathered[request])
        if request > start and (request + 1 - start) * (wider + longer) > workspace_rows:
            chunks.append(Chunk(start, request, most, most + longest))
            start, wider, longer = request, compressed[request], gathered[request]
        most, longest = wider, longer
    if compressed:
        chunks.append(Chunk(start, len(compressed), most, most + longest))
    return chunks


def _host_integers(name: str, values: Sequence[int]) -> list[int]:
    return [
        value if type(value) is int and value >= 0 else host_integer(f"{name}[{at}]", value, 0)
        for at, value in enumerate(values)
    ]


def step_bases(chunks: Sequence[Chunk]) -> tuple[list[int], list[int]]:
    """The workspace row of each request's first compressed entry, and of its first gathered token.

    Raises ValueError where the rows of a chunk do not fit in int32.

    >>> step_bases([Chunk(0, 2, 7, 154), Chunk(2, 3, 2, 302)])
    ([0, 154, 0], [7, 161, 2])
    """
    compressed, window = [], []
    for chunk in chunks:
        rows = (chunk.end - chunk.start) * chunk.workspace_rows
        if rows > 2**31 - 1:
            raise ValueError(
                f"requests {chunk.start} … {chunk.end - 1} take {rows:,} workspace rows, more than int32 holds"
            )
        bases = [number * chunk.workspace_rows for number in range(chunk.end - chunk.start)]
        compressed += bases
        window += [base + chunk.compressed_rows for base in bases]
    return compressed, window
