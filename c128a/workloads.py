"""Batches that an engine would hand to the builder, made from a seed.

Decode requests come first, as engines order them. Block tables are a random permutation, so that no two live entries
share a KV slot and a wrong row cannot pass for the right one.

>>> batch = mixed(decode_requests=2, prefill_tokens=3, seq_len=1024)
>>> batch.positions.tolist(), batch.num_decode_tokens, batch.query_start_loc.tolist()
([1023, 1023, 1021, 1022, 1023], 2, [0, 1, 2, 5])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

COMPRESS_RATIO = 128  # tokens per compressed entry
KV_BLOCK_SIZE = 256  # tokens per KV block
ENTRIES_PER_BLOCK = KV_BLOCK_SIZE // COMPRESS_RATIO


@dataclass(frozen=True)
class Batch:
    """One step's input. Tensors lie on the device asked for, query_start_loc always on the host."""

    positions: torch.Tensor  # (tokens,) int64
    query_start_loc: torch.Tensor  # (requests + 1,) int32, host
    num_decode_tokens: int
    token_to_req_indices: torch.Tensor  # (tokens,) int32
    block_table: torch.Tensor  # (requests, blocks) int32
    slot_mapping: torch.Tensor  # (tokens,) int64
    max_seq_len: int

    @property
    def num_tokens(self) -> int:
        """Tokens of the batch, decode and prefill."""
        return self.positions.shape[0]


def from_lengths(
    query_lens: Sequence[int],
    seq_lens: Sequence[int],
    *,
    num_decode_requests: int,
    seed: int = 0,
    device: torch.device | str = "cpu",
) -> Batch:
    """A batch whose request r has seq_lens[r] tokens of context, the last query_lens[r] of them in this step.

    Raises ValueError where the two lists differ in length or a query is longer than its sequence.
    """
    if len(query_lens) != len(seq_lens):
        raise ValueError(f"query_lens has {len(query_lens)} requests, seq_lens {len(seq_lens)}")
    for r, (query, seq) in enumerate(zip(query_lens, seq_lens, strict=True)):
        if not 0 <= query <= seq:
            raise ValueError(f"request {r}: query_lens is {query}; it must be between 0 and seq_lens, {seq}")
    queries = torch.tensor(list(query_lens), dtype=torch.int64)
    lengths = torch.tensor(list(seq_lens), dtype=torch.int64)
    starts = torch.cat([torch.zeros(1, dtype=torch.int64), queries.cumsum(0)])
    request = torch.repeat_interleave(torch.arange(len(queries)), queries)  # (tokens,)
    positions = torch.arange(int(starts[-1])) - starts[request] + (lengths - queries)[request]  # (tokens,)

    longest = int(lengths.max()) if len(lengths) else 0
    blocks = max(-(-longest // KV_BLOCK_SIZE), 1)
    generator = torch.Generator().manual_seed(seed)
    table = torch.randperm(max(len(queries), 1) * blocks, generator=generator).to(torch.int32).view(-1, blocks)
    table = table[: len(queries)]
    # The sliding-window cache is another pool than the compressed one; only the sign of its slot ids matters here.
    slots = table[request, positions // KV_BLOCK_SIZE].long() * KV_BLOCK_SIZE + positions % KV_BLOCK_SIZE
    return Batch(
        positions=positions.to(device),
        query_start_loc=starts.to(torch.int32),
        num_decode_tokens=int(starts[num_decode_requests]),
        token_to_req_indices=request.to(torch.int32).to(device),
        block_table=table.to(device),
        slot_mapping=slots.to(device),
        max_seq_len=longest,
    )


def decode(requests: int, seq_len: int, *, seed: int = 0, device: torch.device | str = "cpu") -> Batch:
    """One new token for each of `requests` sequences of seq_len tokens."""
    return from_lengths([1] * requests, [seq_len] * requests, num_decode_requests=requests, seed=seed, device=device)


def prefill(tokens: int, seq_len: int, *, seed: int = 0, device: torch.device | str = "cpu") -> Batch:
    """`tokens` queries at the end of contexts of seq_len tokens, as few requests as that takes."""
    queries = [min(seq_len, tokens - start) for start in range(0, tokens, seq_len)]
    return from_lengths(queries, [seq_len] * len(queries), num_decode_requests=0, seed=seed, device=device)


def mixed(
    decode_requests: int, prefill_tokens: int, seq_len: int, *, seed: int = 0, device: torch.device | str = "cpu"
) -> Batch:
    """Decode requests and a prefill chunk in one step, all sequences of seq_len tokens."""
    chunks = [min(seq_len, prefill_tokens - start) for start in range(0, prefill_tokens, seq_len)]
    queries = [1] * decode_requests + chunks
    return from_lengths(
        queries, [seq_len] * len(queries), num_decode_requests=decode_requests, seed=seed, device=device
    )


def one_long(
    requests: int, long_len: int, short_len: int, *, seed: int = 0, device: torch.device | str = "cpu"
) -> Batch:
    """Decode rows of which one is long: it alone sets the width of all."""
    lengths = [long_len] + [short_len] * (requests - 1)
    return from_lengths([1] * requests, lengths, num_decode_requests=requests, seed=seed, device=device)


def speculative(
    requests: int, num_speculative_tokens: int, seq_len: int, *, seed: int = 0, device: torch.device | str = "cpu"
) -> Batch:
    """Verification of speculative tokens: 1 + num_speculative_tokens decode rows a request."""
    queries = [1 + num_speculative_tokens] * requests
    return from_lengths(queries, [seq_len] * requests, num_decode_requests=requests, seed=seed, device=device)
