"""The case: one batch, its sizes and the policies it is built with. Everything that needs a batch speaks of this type.

A case holds host numbers only, so it can be hashed and kept as a key. Request r has seq_lens[r] tokens of context, the
last query_lens[r] of them in this step; requests 0 … decode_requests-1 are decode requests, as engines order them. All
else follows: the tokens' positions, the block table, the capacity, the width, where each row lies.

>>> case = Case.mixed(2, 3, 1024)
>>> case.positions.tolist(), case.num_decode_tokens, case.query_start_loc.tolist()
([1023, 1023, 1021, 1022, 1023], 2, [0, 1, 2, 5])
>>> case.capacity, case.width, case.entries.tolist()
(8192, 128, [8, 8, 7, 7, 8])
>>> case.decode_rows, case.prefill_rows
(RowLayout(rows=2, width=128, row_stride=8192), RowLayout(rows=3, width=128, row_stride=8192))

Torch-free: only `tensors` imports torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from c128a.layout import WINDOW, Layout, RowLayout
from c128a.width import Policy, active_topk_width, capacity_width, required_width

if TYPE_CHECKING:
    import torch

COMPRESS_RATIO = 128  # tokens per compressed entry
KV_BLOCK_SIZE = 256  # tokens per KV block
ENTRIES_PER_BLOCK = KV_BLOCK_SIZE // COMPRESS_RATIO
MAX_MODEL_LEN = 1_048_576  # tokens; the longest context of the released models
CAPACITY = 8192  # columns: capacity_width(MAX_MODEL_LEN)


class Tensors(NamedTuple):
    """The inputs of a build and of a combine, on one device; positions and slot_mapping are int64, the others int32."""

    positions: torch.Tensor  # (tokens,)
    token_to_req_indices: torch.Tensor  # (tokens,)
    block_table: torch.Tensor  # (requests, blocks)
    slot_mapping: torch.Tensor  # (tokens,), < 0 for a padded token
    seq_lens: torch.Tensor  # (requests,)
    gather_lens: torch.Tensor  # (requests,), tokens whose window entries a prefill gathers


@dataclass(frozen=True)
class Case:
    """One batch and how it is built; lengths in tokens, compress_ratio in tokens per entry, widths in columns.

    The given_… fields replace what the lengths would give: a padded token, a request outside the table or a block
    number of -1 is written there. given_requests and given_slots cover at least the decode tokens.

    Block numbers are a permutation drawn from the seed: no two requests share one, and block k of a request is the same
    in two cases of one seed, max_model_len and number of requests, whatever their lengths. They start at first_block.

    Raises ValueError for lengths or rows that contradict each other, an unknown policy or layout, a kv_block_size that
    is no multiple of the ratio. A sequence that the capacity cannot hold is no error here: `fits` says so.
    """

    query_lens: tuple[int, ...]
    seq_lens: tuple[int, ...]
    decode_requests: int
    max_model_len: int = MAX_MODEL_LEN
    compress_ratio: int = COMPRESS_RATIO
    kv_block_size: int = KV_BLOCK_SIZE  # tokens
    policy: Policy = "pow2"
    layout: Layout = "pitched"
    seed: int = 0
    first_block: int = 0
    given_positions: tuple[int, ...] | None = None
    given_requests: tuple[int, ...] | None = None
    given_table: tuple[tuple[int, ...], ...] | None = None
    given_slots: tuple[int, ...] | None = None
    given_capacity: int | None = None
    given_width: int | None = None

    def __post_init__(self) -> None:
        queries, seqs = self.query_lens, self.seq_lens
        if len(queries) != len(seqs):
            raise ValueError(f"query_lens has {len(queries)} requests, seq_lens {len(seqs)}; they must be as many")
        for r, (query, seq) in enumerate(zip(queries, seqs, strict=True)):
            if not 0 <= query <= seq:
                raise ValueError(f"query_lens[{r}] is {query}; it must be between 0 and seq_lens[{r}], {seq}")
        if not 0 <= self.decode_requests <= len(queries):
            raise ValueError(f"decode_requests is {self.decode_requests}; it must be between 0 and {len(queries)}")
        if self.compress_ratio < 1 or self.kv_block_size < 1 or self.kv_block_size % self.compress_ratio:
            raise ValueError(
                f"kv_block_size is {self.kv_block_size}; it must be a multiple of compress_ratio, {self.compress_ratio}"
            )
        if self.given_capacity is not None and self.given_capacity < 1:
            raise ValueError(f"given_capacity is {self.given_capacity}; it must be at least 1")
        if self.given_width is not None and not 1 <= self.given_width <= self.capacity:
            raise ValueError(f"given_width is {self.given_width}; it must be between 1 and capacity, {self.capacity}")
        RowLayout.named(self.layout, 0, self.width, self.capacity)  # raises for an unknown layout, policy or capacity
        counts = {"positions": self.num_tokens, "requests": self.num_decode_tokens, "slots": self.num_decode_tokens}
        for name, least in counts.items():
            given = getattr(self, f"given_{name}")
            if given is not None and not least <= len(given) <= self.num_tokens:
                raise ValueError(f"given_{name} has {len(given)} tokens; it must have {least} to {self.num_tokens}")
        if self.given_table and len({len(row) for row in self.given_table}) != 1:
            raise ValueError(f"given_table has rows of {[*map(len, self.given_table)]} blocks; they must be as long")

    @classmethod
    def decode(cls, requests: int, seq_len: int, num_speculative_tokens: int = 0, **fields: Any) -> Case:
        """1 + num_speculative_tokens decode rows for each of `requests` sequences of seq_len tokens."""
        return cls((1 + num_speculative_tokens,) * requests, (seq_len,) * requests, requests, **fields)

    @classmethod
    def prefill(cls, tokens: int, seq_len: int, **fields: Any) -> Case:
        """`tokens` queries at the end of contexts of seq_len tokens, as few requests as that takes."""
        return cls.mixed(0, tokens, seq_len, **fields)

    @classmethod
    def mixed(cls, decode_requests: int, prefill_tokens: int, seq_len: int, **fields: Any) -> Case:
        """Decode requests and prefill queries in one step, all sequences of seq_len tokens.

        >>> Case.mixed(1, 5, 3).query_lens
        (1, 3, 2)
        """
        if seq_len < 1:
            raise ValueError(f"seq_len is {seq_len}; it must be at least 1")
        chunks = (min(seq_len, prefill_tokens - start) for start in range(0, prefill_tokens, seq_len))
        queries = (*(1,) * decode_requests, *chunks)
        return cls(queries, (seq_len,) * len(queries), decode_requests, **fields)

    @classmethod
    def one_long(cls, requests: int, long_len: int, short_len: int, **fields: Any) -> Case:
        """Decode requests of which the first is long: it alone sets the width of all."""
        return cls((1,) * requests, (long_len, *(short_len,) * (requests - 1)), requests, **fields)

    @classmethod
    def of_tokens(
        cls,
        positions: Sequence[int],
        requests: Sequence[int],
        table: Sequence[Sequence[int]],
        slots: Sequence[int],
        num_decode: int,
        *,
        width: int | None = None,
        capacity: int | None = None,
        **fields: Any,
    ) -> Case:
        """A case given token by token, bad ones among them; its lengths count each token as a request of its own.

        >>> case = Case.of_tokens([1000, -1], [0], [[40, 10, 30, 20]], [5], 1, width=8)
        >>> case.entries.tolist(), case.block_table.tolist(), case.width
        ([7, 0], [[40, 10, 30, 20]], 8)
        """
        return cls(
            (1,) * len(positions),
            tuple(max(position + 1, 1) for position in positions),
            num_decode,
            given_positions=tuple(positions),
            given_requests=tuple(requests),
            given_table=tuple(tuple(row) for row in table),
            given_slots=tuple(slots),
            given_width=width,
            given_capacity=capacity,
            **fields,
        )

    @property
    def num_requests(self) -> int:
        """Requests of the batch, decode and prefill."""
        return len(self.query_lens)

    @cached_property
    def num_tokens(self) -> int:
        """Tokens of the batch, decode and prefill."""
        return sum(self.query_lens)

    @cached_property
    def num_decode_tokens(self) -> int:
        """Tokens of the decode requests; they come first."""
        return sum(self.query_lens[: self.decode_requests])

    @cached_property
    def max_seq_len(self) -> int:
        """Tokens of the longest sequence."""
        return max(self.seq_lens, default=0)

    @property
    def block_size(self) -> int:
        """Compressed entries per KV block."""
        return self.kv_block_size // self.compress_ratio

    @cached_property
    def capacity(self) -> int:
        """Columns of the preallocated buffers."""
        return self.given_capacity or capacity_width(self.max_model_len, self.compress_ratio)

    @cached_property
    def width(self) -> int:
        """Columns built."""
        chosen = active_topk_width(self.max_seq_len, self.compress_ratio, self.capacity, policy=self.policy)
        return self.given_width or chosen

    @property
    def needed(self) -> int:
        """Columns that the longest sequence cannot do without."""
        return required_width(self.max_seq_len, self.compress_ratio)

    @property
    def fits(self) -> bool:
        """Whether the capacity holds the longest sequence: a builder refuses where it does not."""
        return self.needed <= self.capacity

    @property
    def decode_rows(self) -> RowLayout:
        """Where the decode rows lie in their buffer."""
        return RowLayout.named(self.layout, self.num_decode_tokens, self.width, self.capacity)

    @property
    def prefill_rows(self) -> RowLayout:
        """Where the prefill rows lie in their buffer."""
        return RowLayout.named(self.layout, self.num_tokens - self.num_decode_tokens, self.width, self.capacity)

    @cached_property
    def query_start_loc(self) -> NDArray[np.int32]:
        """The first token of each request, and the number of tokens: (requests + 1,)."""
        return _frozen(np.cumsum((0, *self.query_lens)), np.int32)

    @cached_property
    def token_to_req_indices(self) -> NDArray[np.int32]:
        """The request, a row of the block table, of each token: (tokens,)."""
        own = np.repeat(np.arange(self.num_requests), self.query_lens)
        return _frozen(own if self.given_requests is None else self.given_requests, np.int32)

    @cached_property
    def positions(self) -> NDArray[np.int64]:
        """The position of each token in its sequence: (tokens,)."""
        past = np.repeat(np.array(self.seq_lens, dtype=np.int64) - self.query_start_loc[1:], self.query_lens)
        own = np.arange(self.num_tokens) + past
        return _frozen(own if self.given_positions is None else self.given_positions, np.int64)

    @cached_property
    def entries(self) -> NDArray[np.int64]:
        """n, the compressed entries that each token sees, at most the width: (tokens,)."""
        return _frozen(np.minimum(np.maximum(self.positions + 1, 0) // self.compress_ratio, self.width), np.int64)

    @cached_property
    def block_table(self) -> NDArray[np.int32]:
        """The KV blocks of each request, as many as the longest sequence has: (requests, blocks)."""
        if self.given_table is not None:
            columns = len(self.given_table[0]) if self.given_table else 0
            return _frozen(np.reshape(self.given_table, (len(self.given_table), columns)), np.int32)
        blocks = max(-(-self.max_seq_len // self.kv_block_size), 1)
        most = max(-(-self.max_model_len // self.kv_block_size), blocks)
        order = np.random.default_rng(self.seed).permutation(np.arange(self.num_requests * most, dtype=np.int32))
        return _frozen(order.reshape(self.num_requests, most)[:, :blocks] + self.first_block, np.int32)

    @cached_property
    def slot_mapping(self) -> NDArray[np.int64]:
        """The sliding-window KV slot of each token, -1 for a padded one; a build looks only at its sign: (tokens,)."""
        own = np.where(self.positions < 0, -1, np.arange(self.num_tokens))
        return _frozen(own if self.given_slots is None else self.given_slots, np.int64)

    def tensors(self, device: torch.device | str = "cpu") -> Tensors:
        """The inputs as torch tensors on a device, each call its own."""
        import torch

        seqs = np.array(self.seq_lens, dtype=np.int32)
        gathered = np.minimum(seqs, np.array(self.query_lens, dtype=np.int32) + WINDOW - 1)
        arrays = (self.positions, self.token_to_req_indices, self.block_table, self.slot_mapping, seqs, gathered)
        return Tensors(*(torch.tensor(array, device=device) for array in arrays))


def _frozen(values: Any, dtype: type) -> NDArray[Any]:
    array: NDArray[Any] = np.array(values, dtype=dtype)
    array.flags.writeable = False
    return array


@dataclass(frozen=True)
class Preset:
    """A name for the menu, the reason to look, and the lengths it sets, in tokens."""

    title: str
    why: str
    seq: int
    model_len: int
    own: str = ""  # a batch, as c128a.show.own reads it

    @property
    def values(self) -> dict[str, int | str]:
        """What it sets, by the names in a page's address."""
        lengths = {"seq": self.seq, "model_len": self.model_len}
        return {**lengths, "ratio": COMPRESS_RATIO, "policy": "pow2", "own": self.own}


# Settings worth a look, by the name they have in an address; a page ignores the values it does not have.
PRESETS: dict[str, Preset] = {
    # Capacity 256 is 32,768 tokens; positions [255, 511] are a batch of 512 tokens, and the width is the least, 128.
    "pr_test": Preset(
        "The test of PR #50004",
        "capacity 256, width 128: two tokens, one decode row and one prefill row",
        512,
        32_768,
        "positions 255 | 511; table 3; entries 256",
    ),
    "flash_1m": Preset(
        "V4-Flash at 1M tokens", "the longest context: the width is the capacity", MAX_MODEL_LEN, MAX_MODEL_LEN
    ),
    "pro_pr": Preset(
        "V4-Pro as in PR #50004", "a model of 1M tokens, a batch of 32,768: 256 of 8,192 columns", 32_768, MAX_MODEL_LEN
    ),
    "len_70000": Preset("Model length 70,000", "a capacity of 640 columns, which is no power of two", 70_000, 70_000),
    "len_33792": Preset(
        "Model length 33,792", "a capacity of 384 columns, which a list of powers of two forgets", 33_792, 33_792
    ),
    "one_long": Preset(
        "One long among short", "one request at 524,416 tokens makes all rows 8,192 wide", 524_416, MAX_MODEL_LEN
    ),
    "small": Preset(
        "Small: every cell in sight",
        "on pages 2 and 3 rows of 8 columns in a buffer of 16, each cell with its value",
        1024,
        2048,
        "positions 1023 511 255 | 1022 1023; width 8; capacity 16",
    ),
}
