"""The metadata builder an engine holds: buffers allocated once, one build a step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from c128a import backend
from c128a.build import build_c128a_topk_metadata
from c128a.compiled import can_overlap, hold
from c128a.kernel import TiledVariant
from c128a.layout import LAYOUTS, Layout
from c128a.tiles import TILES
from c128a.width import Policy, active_topk_width, capacity_width, host_integer, required_width


@dataclass(frozen=True)
class C128AMetadata:
    """Index rows of one step: views of the builder's buffers, valid until its next build."""

    width: int
    num_decode_tokens: int
    global_decode_topk_indices: torch.Tensor | None  # (num_decode_tokens, 1, width) int32, KV slot ids
    decode_topk_lens: torch.Tensor | None  # (num_decode_tokens,) int32
    prefill_topk_indices: torch.Tensor | None  # (num_prefill_tokens, width) int32, local indices


class C128AMetadataBuilder:
    """Builds C128A index rows, one step after the other, into buffers that it allocates once.

    Packed rows move whenever the width does, so they are safe only for readers that take the stride anew each step:
    eager kernels, or one captured graph for each width (`c128a.frozen.WidthGraphs`).
    A reader inside a CUDA graph keeps the stride of its capture: after a narrower build it finds row 0 right and rows
    1, 2, … wrong, which is why vLLM reverted packed rows. Pitched rows stay where they are and are safe for both; only
    a reader that needs contiguous rows (FlashInfer SM120 above 64 tokens) cannot take them below the full width.

    max_model_len and max_num_batched_tokens in tokens; kv_block_size in tokens per KV block; max_num_seqs bounds the
    decode rows to max_num_seqs × (1 + num_speculative_tokens), otherwise each token may be one. prefill_rows=False
    builds none and holds no buffer for them: `c128a.combine` derives them from positions.

    Raises ValueError for a size under 1, an unknown layout or policy, and a kv_block_size that is no multiple of the
    compress ratio.
    """

    def __init__(
        self,
        max_model_len: int,
        max_num_batched_tokens: int,
        *,
        layout: Layout,
        compress_ratio: int = 128,
        kv_block_size: int = 256,
        max_num_seqs: int | None = None,
        num_speculative_tokens: int = 0,
        policy: Policy = "pow2",
        prefill_rows: bool = True,
        device: torch.device | str | None = None,
    ) -> None:
        if layout not in LAYOUTS:
            raise ValueError(f"layout is {layout!r}; it must be one of {', '.join(LAYOUTS)}")
        max_num_batched_tokens = host_integer("max_num_batched_tokens", max_num_batched_tokens, 1)
        max_model_len = host_integer("max_model_len", max_model_len, 1)
        compress_ratio = host_integer("compress_ratio", compress_ratio, 1)
        kv_block_size = host_integer("kv_block_size", kv_block_size, 1)
        if max_num_seqs is not None:
            max_num_seqs = host_integer("max_num_seqs", max_num_seqs, 1)
        num_speculative_tokens = host_integer("num_speculative_tokens", num_speculative_tokens, 0)
        self.capacity = capacity_width(max_model_len, compress_ratio)
        if kv_block_size < compress_ratio or kv_block_size % compress_ratio:
            raise ValueError(f"kv_block_size is {kv_block_size}; it must be a multiple of {compress_ratio}")
        active_topk_width(0, compress_ratio, self.capacity, policy=policy)  # raises for an unknown policy
        self.layout: Layout = layout
        self.policy: Policy = policy
        self.max_model_len = max_model_len
        self.max_num_batched_tokens = max_num_batched_tokens
        self.compress_ratio = compress_ratio
        self.block_size = kv_block_size // compress_ratio
        self.decode_threshold = 1 + num_speculative_tokens
        decode_rows = max_num_batched_tokens
        if max_num_seqs is not None:
            decode_rows = min(decode_rows, max_num_seqs * self.decode_threshold)
        self.max_decode_tokens = decode_rows
        self.device = torch.device(device) if device is not None else backend.device()

        # Decode rows start on the last prefill row: a batch with a decode token has no use for that one, and the row
        # saved pays for the two small buffers. Both views keep their first address.
        prefill = max_num_batched_tokens if prefill_rows else 0
        shared = 1 if prefill_rows else 0
        self._rows = self._empty(prefill + decode_rows - shared, self.capacity)
        self.prefill_buffer = self._rows[:prefill] if prefill_rows else None
        self.global_decode_buffer = self._rows[prefill - shared :]
        self.decode_lens_buffer = self._empty(decode_rows)
        self._requests = self._empty(decode_rows)
        self._uploaded = np.empty(0, dtype=np.int32)

    def _empty(self, *shape: int) -> torch.Tensor:
        return torch.empty(shape, dtype=torch.int32, device=self.device)

    @property
    def reserved_bytes(self) -> int:
        """Bytes of device memory that the builder holds, all of it from construction on."""
        return sum(t.numel() * t.element_size() for t in (self._rows, self.decode_lens_buffer, self._requests))

    def warmup(self) -> list[TiledVariant]:
        """Compile every variant a build can launch, and return the list; no later build compiles anything.

        Without a GPU nothing is compiled and the list says what would be.
        """
        index = self.device.index if self.device.index is not None else 0
        overlap = not backend.INTERPRET and can_overlap(index)
        variants = [TiledVariant(index, tile, self.compress_ratio, self.block_size, True, overlap) for tile in TILES]
        if not backend.INTERPRET:
            for variant in variants:
                hold(variant)
        return variants

    def width_for(self, max_seq_len: int) -> int:
        """Columns of the rows of a batch whose longest sequence has max_seq_len tokens.

        Raises ValueError where the capacity cannot hold it.
        """
        needed = required_width(max_seq_len, self.compress_ratio)
        if needed > self.capacity:
            raise ValueError(
                f"max_seq_len is {max_seq_len:,}: its rows need {needed:,} columns, but the capacity is "
                f"{self.capacity:,} (max_model_len {self.max_model_len:,}). Set max_model_len to at least "
                f"{max_seq_len:,}, or admit no sequence over {(self.capacity + 1) * self.compress_ratio - 1:,} tokens"
            )
        return active_topk_width(max_seq_len, self.compress_ratio, self.capacity, policy=self.policy)

    def build(
        self,
        positions: torch.Tensor,
        query_start_loc: torch.Tensor | Sequence[int],
        max_seq_len: int,
        block_table: torch.Tensor,
        slot_mapping: torch.Tensor,
    ) -> C128AMetadata:
        """Write the rows of one step. Waits for nothing on the GPU and allocates nothing there.

        positions (tokens,) int64; query_start_loc (requests + 1,) on the host, decode requests before prefill ones;
        max_seq_len in tokens, at least the longest sequence of the batch; block_table (requests, blocks) int32;
        slot_mapping (tokens,) int64. Tokens past query_start_loc[-1] are a graph's padding: decode rows without a
        request when the batch is all decode, else prefill rows.

        Raises ValueError for a max_seq_len over what the capacity can hold, more tokens or decode tokens than the
        builder was made for, a decode request behind a prefill one, a query_start_loc that decreases, does not start
        at 0 or lies on a GPU; and what `build_c128a_topk_metadata` raises.
        """
        width = self.width_for(max_seq_len)
        num_tokens = positions.shape[0]
        if num_tokens > self.max_num_batched_tokens:
            raise ValueError(
                f"positions has {num_tokens} tokens; max_num_batched_tokens is {self.max_num_batched_tokens}"
            )
        num_decode, requests = self._split(query_start_loc, num_tokens)
        listed = int(requests.max(initial=-1)) + 1
        if block_table.shape[0] < listed:
            raise ValueError(f"block_table has {block_table.shape[0]} rows; the batch has {listed} decode requests")
        if num_decode > self.max_decode_tokens:
            raise ValueError(
                f"the batch has {num_decode} decode tokens; max_num_seqs × (1 + num_speculative_tokens) allows "
                f"{self.max_decode_tokens}"
            )
        self._upload(requests)
        build_prefill = self.prefill_buffer is not None
        decode, lens, prefill = build_c128a_topk_metadata(
            positions if build_prefill else positions[:num_decode],
            self.compress_ratio,
            num_decode,
            self._requests,
            block_table,
            self.block_size,
            slot_mapping,
            self.global_decode_buffer,
            self.decode_lens_buffer,
            self.prefill_buffer if self.prefill_buffer is not None else self.global_decode_buffer,
            width,
            layout=self.layout,
        )
        return C128AMetadata(
            width=width,
            num_decode_tokens=num_decode,
            global_decode_topk_indices=decode.unsqueeze(1) if num_decode else None,
            decode_topk_lens=lens if num_decode else None,
            prefill_topk_indices=prefill if build_prefill and num_tokens > num_decode else None,
        )

    def _split(self, query_start_loc: torch.Tensor | Sequence[int], num_tokens: int) -> tuple[int, np.ndarray]:
        """Decode tokens of the batch, and the request of each."""
        if isinstance(query_start_loc, torch.Tensor) and query_start_loc.device.type != "cpu":
            raise ValueError(
                f"query_start_loc is on {query_start_loc.device}; it must be on the host, since the split into decode "
                "and prefill is made there and reading it back would wait for the GPU"
            )
        given = np.asarray(query_start_loc)
        if given.size and given.dtype.kind not in "iu":
            raise TypeError(f"query_start_loc is {_short(given)}, of {given.dtype}; it must be host integers")
        starts = given.astype(np.int64)
        if starts.ndim != 1 or starts.size == 0 or starts[0] != 0 or starts[-1] > num_tokens:
            raise ValueError(
                f"query_start_loc is {_short(starts)}; it must start at 0 and end at most at the {num_tokens} tokens"
            )
        queries = np.diff(starts)
        if (queries < 0).any():
            raise ValueError(f"query_start_loc is {_short(starts)}; it must not decrease")
        is_prefill = queries > self.decode_threshold
        if not is_prefill.any():
            requests = np.full(num_tokens, -1, dtype=np.int32)  # padding tokens belong to no request
            requests[: starts[-1]] = np.repeat(np.arange(len(queries), dtype=np.int32), queries)
            return num_tokens, requests
        first = int(is_prefill.argmax())
        late = np.flatnonzero(~is_prefill[first:] & (queries[first:] > 0))
        if late.size:
            at = first + int(late[0])
            raise ValueError(
                f"query_start_loc puts request {at} (query length {queries[at]}, decode up to {self.decode_threshold}) "
                f"behind prefill request {first}; decode requests must come first"
            )
        return int(starts[first]), np.repeat(np.arange(first, dtype=np.int32), queries[:first])

    def _upload(self, requests: np.ndarray) -> None:
        """Bring the requests of the decode tokens to the device, unless they are there from the step before."""
        if np.array_equal(requests, self._uploaded[: len(requests)]) and len(requests) <= len(self._uploaded):
            return
        host = torch.from_numpy(requests)
        if self.device.type == "cuda":
            host = host.pin_memory()  # the caching host allocator keeps it alive until the copy has run
        self._requests[: len(requests)].copy_(host, non_blocking=True)
        self._uploaded = requests


def _short(starts: np.ndarray) -> str:
    values = starts.tolist()
    return str(values) if len(values) <= 8 else f"[{values[0]}, {values[1]}, …, {values[-1]}] ({len(values)} values)"
