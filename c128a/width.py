"""How wide a C128A index row must be. Torch-free.

A query at position p sees n = (p + 1) // compress_ratio compressed entries, so a batch whose longest sequence has
max_seq_len tokens needs max_seq_len // compress_ratio columns. Buffers are allocated once, for the longest sequence
the model allows: that is the capacity. Each step then builds rows of some width between the two, chosen by a policy:

    fixed     the capacity, whatever the batch holds
    pow2      the next power of two, at least the alignment, at most the capacity (vLLM PR #50004)
    aligned   the next multiple of the alignment, at most the capacity

>>> capacity_width(1_048_576)
8192
>>> active_topk_width(32_768, 128, 8192)
256
>>> active_topk_width(32_896, 128, 8192), active_topk_width(32_896, 128, 8192, policy="aligned")
(512, 384)
"""

from __future__ import annotations

import operator
from typing import Any, Literal, NamedTuple, get_args

TOPK_ALIGNMENT = 128  # columns; sparse decode kernels walk a row in blocks of 64 or 128 indices

Policy = Literal["fixed", "pow2", "aligned"]
POLICIES: tuple[Policy, ...] = get_args(Policy)


def capacity_width(max_model_len: int, compress_ratio: int = 128, *, alignment: int = TOPK_ALIGNMENT) -> int:
    """Columns that hold every compressed entry of the longest sequence, rounded up to the alignment.

    max_model_len in tokens, compress_ratio in tokens per entry, the result in columns (entries).

    Raises ValueError unless all three are at least 1.

    >>> capacity_width(33_792), capacity_width(70_000), capacity_width(1_000_000)
    (384, 640, 7936)
    """
    max_model_len = host_integer("max_model_len", max_model_len, 1)
    compress_ratio = host_integer("compress_ratio", compress_ratio, 1)
    alignment = host_integer("alignment", alignment, 1)
    return _round_up(-(-max_model_len // compress_ratio), alignment)


def active_topk_width(
    max_seq_len: int,
    compress_ratio: int,
    capacity: int,
    *,
    policy: Policy = "pow2",
    alignment: int = TOPK_ALIGNMENT,
) -> int:
    """Columns to build for a batch whose longest sequence has max_seq_len tokens.

    Never over the capacity, and a multiple of the alignment when the capacity is one. Where the capacity cannot hold
    the sequence the result is the capacity: `required_width` tells the two apart, and the builder refuses.
    Source of "pow2": vLLM PR #50004, min(max(next_pow2(max(L // R, 1)), alignment), capacity).

    Raises ValueError for max_seq_len < 0, compress_ratio, capacity or alignment < 1, and an unknown policy.

    >>> [active_topk_width(100_000, 128, 8192, policy=p) for p in POLICIES]
    [8192, 1024, 896]
    """
    needed = required_width(max_seq_len, compress_ratio)
    capacity = host_integer("capacity", capacity, 1)
    alignment = host_integer("alignment", alignment, 1)
    if policy == "fixed":
        return capacity
    if policy == "pow2":
        return min(max(_next_power_of_2(max(needed, 1)), alignment), capacity)
    if policy == "aligned":
        return min(max(_round_up(needed, alignment), alignment), capacity)
    raise ValueError(f"policy is {policy!r}; it must be one of {', '.join(POLICIES)}")


def required_width(max_seq_len: int, compress_ratio: int) -> int:
    """Compressed entries of a sequence of max_seq_len tokens: the columns its rows cannot do without.

    Raises ValueError for max_seq_len < 0 or compress_ratio < 1.

    >>> required_width(32_895, 128), required_width(32_896, 128)
    (256, 257)
    """
    max_seq_len = host_integer("max_seq_len", max_seq_len, 0)
    compress_ratio = host_integer("compress_ratio", compress_ratio, 1)
    return max_seq_len // compress_ratio


def reachable_widths(capacity: int, *, policy: Policy = "pow2", alignment: int = TOPK_ALIGNMENT) -> list[int]:
    """Every width the policy can choose at this capacity, ascending: what to warm up or to capture.

    Raises ValueError as `active_topk_width` does.

    >>> reachable_widths(capacity_width(33_792))
    [128, 256, 384]
    >>> len(reachable_widths(8192)), len(reachable_widths(8192, policy="aligned"))
    (7, 64)
    """
    widths = [active_topk_width(0, 1, capacity, policy=policy, alignment=alignment)]
    while widths[-1] < capacity:
        widths.append(active_topk_width(widths[-1] + 1, 1, capacity, policy=policy, alignment=alignment))
    return widths


def sequence_range(width: int, compress_ratio: int, capacity: int, *, policy: Policy = "pow2") -> tuple[int, int]:
    """The first and the last max_seq_len, in tokens, for which the policy chooses this width and the row is complete.

    Raises ValueError for a width the policy never chooses at this capacity.

    >>> sequence_range(512, 128, 8192), sequence_range(8192, 128, 8192)
    ((32896, 65663), (524416, 1048703))
    """
    widths = reachable_widths(capacity, policy=policy)
    if width not in widths:
        raise ValueError(f"width is {width}; the {policy} policy at capacity {capacity} chooses one of {widths}")
    at = widths.index(width)
    first = (widths[at - 1] + 1) * compress_ratio if at else 0
    return first, (width + 1) * compress_ratio - 1


def loop_trips(width: int, block_size: int = 1024) -> int:
    """Trips of a row loop that walks `width` columns in steps of block_size.

    >>> loop_trips(8192), loop_trips(1024), loop_trips(128)
    (8, 1, 1)
    """
    width = host_integer("width", width, 0)
    block_size = host_integer("block_size", block_size, 1)
    return -(-width // block_size)


class Shard(NamedTuple):
    """The entries of a request that one rank holds, where `size` ranks own them in turns of `interleave` entries.

    Entry j lies on rank j // interleave % size; a rank lists its own entries in their order, one a column. This is how
    decode context parallel splits the KV cache. The default is the whole cache on one rank. own_table: the block table
    lists the blocks of this rank, which hold its own entries side by side (vLLM), and not blocks of all entries.

    >>> shards = [Shard(rank, 2, 2) for rank in (0, 1)]
    >>> [[shard.entry(column) for column in range(shard.entries(7))] for shard in shards]
    [[0, 1, 4, 5], [2, 3, 6]]
    """

    rank: int = 0
    size: int = 1
    interleave: int = 1
    own_table: bool = False

    def checked(self) -> Shard:
        """The same as plain integers.

        Raises ValueError for a size or an interleave under 1, and for a rank outside of the size.
        """
        size, interleave = host_integer("size", self.size, 1), host_integer("interleave", self.interleave, 1)
        rank = host_integer("rank", self.rank, 0)
        if rank >= size:
            raise ValueError(f"rank is {rank}; it must be between 0 and {size - 1}, for a size of {size}")
        return Shard(rank, size, interleave, bool(self.own_table))

    def entries(self, entries: int) -> int:
        """How many of a request's first `entries` entries the rank holds: the columns its row needs."""
        turns, rest = divmod(entries, self.size * self.interleave)
        return turns * self.interleave + min(max(rest - self.rank * self.interleave, 0), self.interleave)

    def entry(self, column: int) -> int:
        """The entry that stands in a column of the rank's row."""
        turn, place = divmod(column, self.interleave)
        return (turn * self.size + self.rank) * self.interleave + place


WHOLE = Shard()


def shard_width(
    max_seq_len: int, compress_ratio: int, max_model_len: int, shard: Shard, *, policy: Policy = "pow2"
) -> int:
    """Columns of decode rows that list one rank's entries: what the largest share needs, so all ranks are as wide.

    max_seq_len and max_model_len in tokens. Raises ValueError as `active_topk_width` and `capacity_width` do.

    >>> shard_width(524_416, 128, 1_048_576, Shard(3, 8)), shard_width(524_416, 128, 1_048_576, WHOLE)
    (1024, 8192)
    """
    first = shard.checked()._replace(rank=0)
    most = -(-host_integer("max_model_len", max_model_len, 1) // host_integer("compress_ratio", compress_ratio, 1))
    capacity = capacity_width(first.entries(most), 1)
    return active_topk_width(first.entries(required_width(max_seq_len, compress_ratio)), 1, capacity, policy=policy)


def host_integer(name: str, value: Any, least: int) -> int:
    """A host integer of at least `least`, as an int: numpy's integers and tensors of one element on the CPU count.

    Raises TypeError for anything else (a bool is no count, and a tensor on a GPU would have to be waited for) and
    ValueError for a smaller number; both name the argument.

    >>> host_integer("rows", 3, 0)
    3
    """
    if type(value) is int and value >= least:
        return value
    device = getattr(value, "device", "cpu")
    if str(device) != "cpu":
        raise TypeError(f"{name} is on {device}; it must be a host integer")
    try:
        if isinstance(value, bool) or str(getattr(value, "dtype", "")).endswith("bool"):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}; it must be a host integer, not {type(value).__name__}") from None
    if number < least:
        raise ValueError(f"{name} is {number}; it must be at least {least}")
    return number


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def _next_power_of_2(value: int) -> int:
    return 1 << (value - 1).bit_length()
