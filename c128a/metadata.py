"""C128A top-k metadata: the function of the report, and the builder an engine holds.

A build goes from top to bottom of this file: check the arguments (`make_plan`), which chooses the layout of the rows;
launch; return views. The width is the caller's, or the builder's own (`C128AMetadataBuilder.width_for`).
"""

from __future__ import annotations

import c128a.backend as backend

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch

from c128a.combine import combine_step_indices, combine_variant, combined_width
from c128a.kernel import (
    INT32_MAX,
    Facts,
    Plan,
    Variant,
    check_apart,
    check_tensor,
    facts,
    load,
    row_unit,
    tiled_variant,
)
from c128a.layout import ITEMSIZE, LAYOUTS, WINDOW, Chunk, Layout, RowLayout, prefill_chunks, step_bases
from c128a.tiles import TILES, tile_shape
from c128a.width import (
    WHOLE,
    Policy,
    Shard,
    active_topk_width,
    capacity_width,
    host_integer,
    required_width,
    shard_width,
)

Rows = tuple[torch.Tensor, torch.Tensor, torch.Tensor]  # decode rows, lens, prefill rows
Memory = tuple[int, int, int]  # address of a tensor's first element, bytes of its storage, elements before the first

BUFFERS = ("global_decode_buffer", "decode_lens_buffer", "prefill_buffer")
INPUTS = ("positions", "token_to_req_indices", "block_table", "slot_mapping")
DTYPES = (*[torch.int32] * 3, torch.int64, torch.int32, torch.int32, torch.int64)
DIMENSIONS = (2, 1, 2, 1, 1, 2, 1)


def build_c128a_topk_metadata(
    positions: torch.Tensor,
    compress_ratio: int,
    num_decode_tokens: int,
    token_to_req_indices: torch.Tensor,
    block_table: torch.Tensor,
    block_size: int,
    slot_mapping: torch.Tensor,
    global_decode_buffer: torch.Tensor,
    decode_lens_buffer: torch.Tensor,
    prefill_buffer: torch.Tensor,
    max_compressed_tokens: int = 8192,
    *,
    layout: Layout = "packed",
    shard: Shard = WHOLE,
) -> Rows:
    """Write one index row a token into the buffers and return the rows as views, every cell of them written.

    positions (tokens,) int64; token_to_req_indices int32 and slot_mapping int64, at least num_decode_tokens long;
    block_table (requests, blocks) int32; block_size in compressed entries; the buffers (rows, capacity) int32 and
    (rows,) int32; max_compressed_tokens is the width of the rows, in columns. With a shard the decode rows list, and
    lens count, the entries of one rank alone (decode context parallel); prefill rows are whole.

    Returns global_decode (num_decode_tokens, width), decode_lens (num_decode_tokens,), prefill_local
    (tokens - num_decode_tokens, width), int32, views of the buffers: row stride = width when packed, the buffer's own
    when pitched. Nothing outside the views is written. lens is the prefix a reader must look at, at most the width;
    cells of it that no block backs hold -1.

    The call neither waits for the GPU nor reads from it, so it cannot see a position that needs more columns than it
    is given: choose the width with `active_topk_width` from the same batch's max_seq_len.

    Raises TypeError for a wrong dtype and for a size that is no host integer; ValueError for a width over a buffer's
    capacity, too few rows, tensors on different devices, num_decode_tokens outside 0 … tokens, a last dimension that is
    not contiguous, and buffers of which one build would write the same bytes. Signature and packed layout: vLLM PR
    #50004; pitched: vLLM PR #52823.

    >>> int32, int64 = torch.int32, torch.int64
    >>> buffers = torch.empty(2, 256, dtype=int32), torch.empty(2, dtype=int32), torch.empty(2, 256, dtype=int32)
    >>> decode, lens, prefill = build_c128a_topk_metadata(
    ...     torch.tensor([255, 511]), 128, 1, torch.tensor([0, 0], dtype=int32), torch.tensor([[3]], dtype=int32),
    ...     256, torch.tensor([0, 1]), *buffers, max_compressed_tokens=128)
    >>> decode[0, :3].tolist(), lens.tolist(), prefill[0, :5].tolist(), decode.stride()
    ([768, 769, -1], [2], [0, 1, 2, 3, -1], (128, 1))
    """
    buffers = (global_decode_buffer, decode_lens_buffer, prefill_buffer)
    inputs = (positions, token_to_req_indices, block_table, slot_mapping)
    sizes = (num_decode_tokens, compress_ratio, block_size, max_compressed_tokens)
    plan = make_plan(layout, *sizes, buffers, inputs, shard)
    if plan.num_tokens:
        plan.launch(*buffers, *inputs)
    return views(plan, *buffers)


def build_with_row_loop(
    positions: torch.Tensor,
    compress_ratio: int,
    num_decode_tokens: int,
    token_to_req_indices: torch.Tensor,
    block_table: torch.Tensor,
    block_size: int,
    slot_mapping: torch.Tensor,
    global_decode_buffer: torch.Tensor,
    decode_lens_buffer: torch.Tensor,
    prefill_buffer: torch.Tensor,
    max_compressed_tokens: int = 8192,
    *,
    layout: Layout = "packed",
) -> Rows:
    """`build_c128a_topk_metadata` by the report's algorithm: one program a row, a loop over the width."""
    buffers = (global_decode_buffer, decode_lens_buffer, prefill_buffer)
    inputs = (positions, token_to_req_indices, block_table, slot_mapping)
    plan = make_plan(layout, num_decode_tokens, compress_ratio, block_size, max_compressed_tokens, buffers, inputs)
    if plan.num_tokens:
        plan.launch_row_loop(*buffers, *inputs)
    return views(plan, *buffers)


def make_plan(
    layout: Layout,
    num_decode_tokens: int,
    compress_ratio: int,
    block_size: int,
    width: int,
    buffers: tuple[torch.Tensor, ...],
    inputs: tuple[torch.Tensor, ...],
    shard: Shard = WHOLE,
) -> Plan:
    """Check the arguments of a build, and say what it writes and how; buffers and inputs in the order of their names.

    A plan is kept for the next call, by all that the checks look at: a buffer that changed in place is checked anew.
    """
    if layout not in LAYOUTS:
        raise ValueError(f"layout is {layout!r}; it must be one of {', '.join(LAYOUTS)}")
    num_decode_tokens = host_integer("num_decode_tokens", num_decode_tokens, 0)
    compress_ratio = host_integer("compress_ratio", compress_ratio, 1)
    block_size = host_integer("block_size", block_size, 1)
    width = host_integer("max_compressed_tokens", width, 1)
    try:
        tensors = tuple([(t.dtype, t.device, t.shape, t.stride()) for t in buffers + inputs])
        places = tuple([(b.data_ptr(), b.untyped_storage().nbytes(), b.storage_offset()) for b in buffers])
    except AttributeError:
        given = zip(BUFFERS + INPUTS, buffers + inputs, strict=True)
        name, value = next((name, value) for name, value in given if not isinstance(value, torch.Tensor))
        raise TypeError(f"{name} is of {type(value).__name__}; it must be a tensor") from None
    return check(layout, num_decode_tokens, compress_ratio, block_size, width, tensors, places, shard)


@lru_cache(maxsize=4096)
def check(
    layout: Layout,
    num_decode: int,
    compress_ratio: int,
    block_size: int,
    width: int,
    tensors: tuple[Facts, ...],
    places: tuple[Memory, ...],
    shard: Shard = WHOLE,
) -> Plan:
    """`make_plan` by facts alone: of the buffers and the inputs, and where the buffers lie in memory."""
    of = dict(zip(BUFFERS + INPUTS, tensors, strict=True))
    device = of["positions"][1]
    backend.check_device(device)
    for name, tensor, dtype, dimensions in zip(of, tensors, DTYPES, DIMENSIONS, strict=True):
        check_tensor(name, tensor, dtype, dimensions, device)
    for name, size in (("compress_ratio", compress_ratio), ("block_size", block_size)):
        if size > INT32_MAX:
            raise ValueError(f"{name} is {size}; it must be at most {INT32_MAX}")
    shard = _checked(shard)
    if (width + shard.interleave) * shard.size > INT32_MAX:
        raise ValueError(f"shard is {shard}; the entries of {width} columns a rank do not fit in int32")
    num_tokens = of["positions"][2][0]
    if num_decode > num_tokens:
        raise ValueError(f"num_decode_tokens is {num_decode}; it must be between 0 and the {num_tokens} tokens")
    for name in ("token_to_req_indices", "slot_mapping", "decode_lens_buffer"):
        if (held := of[name][2][0]) < num_decode:
            raise ValueError(f"{name} holds {held} elements; num_decode_tokens is {num_decode}")

    decode = _rows_in("global_decode_buffer", of["global_decode_buffer"], layout, num_decode, width)
    prefill = _rows_in("prefill_buffer", of["prefill_buffer"], layout, num_tokens - num_decode, width)
    sizes = (decode.span * ITEMSIZE, num_decode * ITEMSIZE, prefill.span * ITEMSIZE)
    for name, size, (_, storage, before) in zip(BUFFERS, sizes, places, strict=True):
        if before * ITEMSIZE + size > storage:
            raise ValueError(f"{name} has {storage - before * ITEMSIZE:,} bytes of its storage; its rows need {size:,}")
    addresses = [first for first, _, _ in places]
    check_apart(dict(zip(BUFFERS, zip(addresses, sizes, strict=True), strict=True)))
    strides = [columns * ITEMSIZE for columns in (width, decode.row_stride, prefill.row_stride)]
    return Plan(
        decode=decode,
        prefill=prefill,
        table=(of["block_table"][3][0], *of["block_table"][2]),
        compress_ratio=compress_ratio,
        block_size=block_size,
        device=device.index or 0,
        tile=tile_shape(num_tokens, width),
        unit=row_unit(addresses[0], addresses[2], *strides),
        shard=shard,
    )


def _checked(shard: Shard) -> Shard:
    if not isinstance(shard, Shard):
        raise TypeError(f"shard is {shard!r}; it must be a Shard")
    return shard.checked()


def _rows_in(name: str, buffer: Facts, layout: Layout, rows: int, width: int) -> RowLayout:
    """The layout of `rows` rows in a buffer of (held, capacity) int32."""
    held, capacity = shape = tuple(buffer[2])
    stride = buffer[3][0] if held > 1 else max(buffer[3][0], capacity)
    if width > capacity:
        raise ValueError(f"max_compressed_tokens is {width}; {name} of shape {shape} holds {capacity} columns a row")
    if rows > held:
        raise ValueError(
            f"{name} of shape {shape} is too small for {rows} rows × {width} columns: it holds {held} rows"
        )
    if stride < capacity:
        raise ValueError(f"{name} has a row stride of {stride}; rows of {capacity} columns would overlap")
    if layout == "packed" and held > 1 and stride != capacity:
        raise ValueError(f"{name} has row stride {stride} and {capacity} columns; packed rows need a contiguous buffer")
    return RowLayout.named(layout, rows, width, stride)


def views(plan: Plan, decode: torch.Tensor, lens: torch.Tensor, prefill: torch.Tensor) -> Rows:
    """The rows of a build as views of its buffers, new objects each time."""
    of_decode, of_lens, of_prefill = plan.views
    return decode.as_strided(*of_decode), lens.as_strided(*of_lens), prefill.as_strided(*of_prefill)


@dataclass(frozen=True)
class C128AMetadata:
    """Index rows of one step: views of the builder's buffers, valid until its next build."""

    width: int
    num_decode_tokens: int
    global_decode_topk_indices: torch.Tensor | None  # (num_decode_tokens, 1, width) int32, KV slot ids
    decode_topk_lens: torch.Tensor | None  # (num_decode_tokens,) int32
    prefill_topk_indices: torch.Tensor | None  # (num_prefill_tokens, width) int32, local indices
    combined_indices: torch.Tensor | None = None  # (num_prefill_tokens, combined_width(width)) int32, workspace rows
    combined_lens: torch.Tensor | None = None  # (num_prefill_tokens,) int32
    chunks: Sequence[Chunk] = ()  # of the prefill requests that combined_indices serve, counted from the first of them


class C128AMetadataBuilder:
    """Builds C128A index rows, one step after the other, into buffers that it allocates once.

    Packed rows move whenever the width does, so they are safe only for readers that take the stride anew each step:
    eager kernels, or one captured graph for each width (`c128a.frozen.WidthGraphs`).
    A reader inside a CUDA graph keeps the stride of its capture: after a narrower build it finds row 0 right and rows
    1, 2, … wrong, which is why vLLM reverted packed rows. Pitched rows stay where they are and are safe for both; only
    a reader that needs contiguous rows (FlashInfer SM120 above 64 tokens) cannot take them below the full width.

    max_model_len and max_num_batched_tokens in tokens; kv_block_size in tokens per KV block. decode_threshold is the
    longest query of a decode request: by default 1 + num_speculative_tokens, and 1 with a shard, as engines split
    (vLLM 0.26 to 0.29 has 1 + 2 × num_speculative_tokens where it drafts in parallel). max_num_seqs bounds the decode
    rows to max_num_seqs × decode_threshold, otherwise each token may be one.

    With a shard the decode rows list the entries of one rank (decode context parallel). In a step without prefill rows
    they are as narrow as the largest share allows.

    With workspace_rows, the rows that the KV of one chunk of prefill requests may fill, a build writes the combined
    rows of the whole step in place of its prefill rows: one launch for all chunks, and all layers read the same rows.

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
        decode_threshold: int | None = None,
        policy: Policy = "pow2",
        shard: Shard = WHOLE,
        workspace_rows: int | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        if layout not in LAYOUTS:
            raise ValueError(f"layout is {layout!r}; it must be one of {', '.join(LAYOUTS)}")
        self.layout: Layout = layout
        self.policy: Policy = policy
        self.max_model_len = host_integer("max_model_len", max_model_len, 1)
        self.max_num_batched_tokens = host_integer("max_num_batched_tokens", max_num_batched_tokens, 1)
        self.compress_ratio = host_integer("compress_ratio", compress_ratio, 1)
        self.capacity = capacity_width(self.max_model_len, self.compress_ratio)
        active_topk_width(0, self.compress_ratio, self.capacity, policy=policy)  # raises for an unknown policy
        self.block_size, rest = divmod(host_integer("kv_block_size", kv_block_size, 1), self.compress_ratio)
        if rest or not self.block_size:
            raise ValueError(f"kv_block_size is {kv_block_size}; it must be a multiple of {self.compress_ratio}")
        self.shard = _checked(shard)
        threshold = 1 + host_integer("num_speculative_tokens", num_speculative_tokens, 0)
        if decode_threshold is None:
            self.decode_threshold = threshold if self.shard.size == 1 else 1
        else:
            self.decode_threshold = host_integer("decode_threshold", decode_threshold, 1)
        decode_rows = self.max_num_batched_tokens
        if max_num_seqs is not None:
            decode_rows = min(decode_rows, host_integer("max_num_seqs", max_num_seqs, 1) * self.decode_threshold)
        self.max_decode_tokens = decode_rows
        self.workspace_rows = None if workspace_rows is None else host_integer("workspace_rows", workspace_rows, 1)
        self.device = torch.device(device) if device is not None else backend.device()

        tokens = self.max_num_batched_tokens
        if self.workspace_rows is None:
            # Decode rows start on the last prefill row: a batch with a decode token has no use for that one, so no
            # build writes it twice, and the row saved pays for the small buffers. Both views keep their first address.
            self._rows = self._empty((tokens + decode_rows - 1) * self.capacity)
            self.prefill_buffer = self._rows[: tokens * self.capacity].view(tokens, self.capacity)
            before = (tokens - 1) * self.capacity
        else:
            # Combined rows follow the decode rows of the step, wherever these end. They are wider, so that a step of
            # combined rows alone takes the most.
            self._rows = self._empty(tokens * combined_width(self.capacity))
            self.prefill_buffer = self._rows[:0].view(0, self.capacity)
            before = 0
        decode_cells = self._rows[before : before + decode_rows * self.capacity]
        self.global_decode_buffer = decode_cells.view(decode_rows, self.capacity)
        self.decode_lens_buffer = self._empty(decode_rows)
        self._combined_lens = self._empty(0 if self.workspace_rows is None else tokens)
        # The request of each token; and with combined rows four numbers of each request, which has at least one token.
        self._integers = self._empty(decode_rows if self.workspace_rows is None else 5 * tokens)
        self._uploaded = np.empty(0, dtype=np.int32)  # what _integers hold

    def _empty(self, size: int) -> torch.Tensor:
        return torch.empty(size, dtype=torch.int32, device=self.device)

    @property
    def reserved_bytes(self) -> int:
        """Bytes of device memory that the builder holds, all of it from construction on."""
        held = (self._rows, self.decode_lens_buffer, self._combined_lens, self._integers)
        return sum(tensor.numel() * tensor.element_size() for tensor in held)

    def warmup(self) -> list[Variant]:
        """Compile every variant a build can launch, and return the list; no later build compiles anything.

        Without a GPU nothing is compiled and the list says what would be.
        """
        index = self._rows.device.index or 0
        sizes = (self.compress_ratio, self.block_size)
        variants = [tiled_variant(index, tile, *sizes, shard=self.shard) for tile in TILES]
        if self.workspace_rows is not None:
            variants.append(combine_variant(index, self.compress_ratio, bases=True))
        if not backend.INTERPRET:
            for variant in variants:
                load(variant)
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
        seq_lens: torch.Tensor | Sequence[int] | None = None,
        *,
        num_decode_tokens: int | None = None,
    ) -> C128AMetadata:
        """Write the rows of one step. Waits for nothing on the GPU and allocates nothing there.

        positions (tokens,) int64; query_start_loc (requests + 1,) on the host; max_seq_len in tokens, at least the
        longest sequence of the batch; block_table (requests, blocks) int32; slot_mapping (tokens,) int64; seq_lens
        (requests,) in tokens, on the host, which only combined rows need. The requests before the first one whose query
        is over decode_threshold are decode requests, all others prefill requests, short ones too. Tokens past
        query_start_loc[-1] are a graph's padding: decode rows without a request when the batch is all decode, else
        prefill rows.

        Where the boundaries of the requests are decided on the GPU (adaptive verification), num_decode_tokens says how
        many tokens are decode tokens, and query_start_loc (requests + 1,) int32 lies on the builder's device, where the
        request of each token is looked up. The host reads nothing of it.

        Raises ValueError for a max_seq_len over what the capacity can hold, more tokens or decode tokens than the
        builder was made for, a query_start_loc that decreases, does not start at 0 or lies on the wrong device,
        seq_lens that are missing or do not fit to it; and what `build_c128a_topk_metadata` raises.
        """
        width = self.width_for(max_seq_len)
        num_tokens = positions.numel()
        if num_tokens > self.max_num_batched_tokens:
            raise ValueError(
                f"positions has {num_tokens} tokens; max_num_batched_tokens is {self.max_num_batched_tokens}"
            )
        queries, decode_requests, num_decode = np.empty(0, dtype=np.int64), 0, num_decode_tokens
        if num_decode is None:
            queries = self._query_lens(query_start_loc, num_tokens)
            decode_requests, num_decode = self._split(queries, num_tokens)
        else:
            num_decode = self._decode_tokens(num_decode, num_tokens)
        if num_decode > self.max_decode_tokens:
            raise ValueError(
                f"the batch has {num_decode} decode tokens; max_num_seqs × decode_threshold allows "
                f"{self.max_decode_tokens}"
            )
        has_prefill = num_tokens > num_decode
        combine = has_prefill and self.workspace_rows is not None
        build_prefill = has_prefill and not combine
        chunks: list[Chunk] = []
        batch: Sequence[torch.Tensor] = ()
        if num_decode_tokens is not None:
            token_to_req, block_table = self._look_up(query_start_loc, num_decode, block_table)
        else:
            requests = np.full(num_tokens, -1, dtype=np.int32)  # padding tokens belong to no request
            requests[: queries.sum()] = np.repeat(np.arange(len(queries), dtype=np.int32), queries)
            listed = int(requests[:num_decode].max(initial=-1)) + 1
            if block_table.shape[0] < listed:
                raise ValueError(f"block_table has {block_table.shape[0]} rows; the batch has {listed} decode requests")
            of_requests: list[np.ndarray] = []
            if combine:
                chunks, of_requests = self._plan(queries, decode_requests, seq_lens, max_seq_len)
            token_to_req, *batch = self._upload(requests if combine else requests[:num_decode], *of_requests)
        built_width = width
        if not build_prefill:
            sizes = (max_seq_len, self.compress_ratio, self.max_model_len, self.shard)
            built_width = shard_width(*sizes, policy=self.policy)
        decode, lens, prefill = build_c128a_topk_metadata(
            positions if build_prefill else positions[:num_decode],
            self.compress_ratio,
            num_decode,
            token_to_req,
            block_table,
            self.block_size,
            slot_mapping,
            self.global_decode_buffer,
            self.decode_lens_buffer,
            self.prefill_buffer,
            built_width,
            layout=self.layout,
            shard=self.shard,
        )
        combined = combined_lens = None
        if combine:
            columns = combined_width(width)
            stride = columns if self.layout == "packed" else combined_width(self.capacity)
            seqs, gathered, compressed_base, window_base = batch
            combined, combined_lens = combine_step_indices(
                positions[num_decode:],
                token_to_req[num_decode:],
                seqs,
                gathered,
                compressed_base,
                window_base,
                self._rows.as_strided((num_tokens - num_decode, columns), (stride, 1), num_decode * self.capacity),
                self._combined_lens,
                compress_ratio=self.compress_ratio,
            )
        return C128AMetadata(
            width=built_width,
            num_decode_tokens=num_decode,
            global_decode_topk_indices=decode.unsqueeze(1) if num_decode else None,
            decode_topk_lens=lens if num_decode else None,
            prefill_topk_indices=prefill if build_prefill else None,
            combined_indices=combined,
            combined_lens=combined_lens,
            chunks=chunks,
        )

    def _decode_tokens(self, num_decode_tokens: int, num_tokens: int) -> int:
        """The decode tokens of a step whose requests the host does not know."""
        num_decode = host_integer("num_decode_tokens", num_decode_tokens, 0)
        if num_decode > num_tokens:
            raise ValueError(f"num_decode_tokens is {num_decode}; the step has {num_tokens} tokens")
        if self.workspace_rows is not None and num_tokens > num_decode:
            raise ValueError(
                f"num_decode_tokens is {num_decode} of {num_tokens} tokens; combined rows of the others are planned "
                "from boundaries on the host: leave num_decode_tokens out"
            )
        return num_decode

    def _look_up(
        self, query_start_loc: torch.Tensor | Sequence[int], num_decode: int, block_table: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The request of each decode token, found on the device, and the rows of the table that the requests have.

        A token behind the last boundary gets the number of requests, which is outside of that table.
        """
        device, dtype = self._rows.device, torch.int32
        if not isinstance(query_start_loc, torch.Tensor):
            given = type(query_start_loc).__name__
            raise TypeError(f"query_start_loc is of {given}; with num_decode_tokens it must be a tensor")
        check_tensor("query_start_loc", facts(query_start_loc), dtype, 1, device)
        if not len(query_start_loc):
            raise ValueError("query_start_loc is empty; it must have one boundary more than there are requests")
        starts = query_start_loc[1:]
        if block_table.shape[0] < len(starts):
            raise ValueError(f"block_table has {block_table.shape[0]} rows; query_start_loc has {len(starts)} requests")
        # The lens are written by the build that follows, so their buffer may hold the tokens' numbers until then.
        tokens = torch.arange(num_decode, dtype=dtype, device=device, out=self.decode_lens_buffer[:num_decode])
        requests = self._integers[:num_decode]
        torch.searchsorted(starts, tokens, right=True, out_int32=True, out=requests)
        self._uploaded = self._uploaded[:0]
        return requests, block_table[: len(starts)]

    def _query_lens(self, query_start_loc: torch.Tensor | Sequence[int], num_tokens: int) -> np.ndarray:
        """Tokens of each request of the step."""
        starts = _host_integers("query_start_loc", query_start_loc)
        if starts.ndim != 1 or starts.size == 0 or starts[0] != 0 or starts[-1] > num_tokens:
            raise ValueError(
                f"query_start_loc is {_short(starts)}; it must start at 0 and end at most at the {num_tokens} tokens"
            )
        queries = np.diff(starts)
        if (queries < 0).any():
            raise ValueError(f"query_start_loc is {_short(starts)}; it must not decrease")
        return queries

    def _split(self, queries: np.ndarray, num_tokens: int) -> tuple[int, int]:
        """Decode requests and decode tokens of the batch: all before the first query over the threshold."""
        is_prefill = queries > self.decode_threshold
        if not is_prefill.any():
            return len(queries), num_tokens
        first = int(is_prefill.argmax())
        return first, int(queries[:first].sum())

    def _plan(
        self,
        queries: np.ndarray,
        decode_requests: int,
        seq_lens: torch.Tensor | Sequence[int] | None,
        max_seq_len: int,
    ) -> tuple[list[Chunk], list[np.ndarray]]:
        """The chunks of a step, and of each request its length, gathered tokens and both bases."""
        if seq_lens is None:
            raise ValueError("seq_lens is missing; a builder with workspace_rows plans the chunks of a step by it")
        seqs = _host_integers("seq_lens", seq_lens)
        if seqs.shape != queries.shape:
            raise ValueError(f"seq_lens has shape {seqs.shape}; query_start_loc has {len(queries)} requests")
        for wrong, least in ((seqs < queries, "its query has {0} tokens"), (seqs > max_seq_len, "max_seq_len is {1}")):
            if wrong.any():
                at = int(wrong.argmax())
                raise ValueError(f"seq_lens[{at}] is {seqs[at]}; {least.format(queries[at], max_seq_len)}")
        if (most := len(self._integers) // 5) < len(queries):
            raise ValueError(f"query_start_loc has {len(queries)} requests; this builder has room for {most}")
        prefill = slice(decode_requests, None)
        chunks = prefill_chunks(
            seqs[prefill].tolist(),
            queries[prefill].tolist(),
            workspace_rows=self.workspace_rows or 1,
            compress_ratio=self.compress_ratio,
        )
        bases = np.full((2, len(queries)), -1)  # decode requests have no combined rows
        bases[:, prefill] = step_bases(chunks)
        return chunks, [seqs, queries + np.minimum(seqs - queries, WINDOW - 1), *bases]

    def _upload(self, *arrays: np.ndarray) -> tuple[torch.Tensor, ...]:
        """The arrays on the device, by one copy, unless they are there from the step before."""
        values = np.concatenate(arrays).astype(np.int32)
        held = self._integers[: len(values)]
        if not np.array_equal(values, self._uploaded[: len(values)]):
            host = torch.from_numpy(values)
            if self.device.type == "cuda":
                host = host.pin_memory()  # the caching host allocator keeps it alive until the copy has run
            held.copy_(host, non_blocking=True)
            self._uploaded = values
        return held.split([len(array) for array in arrays])


def _host_integers(name: str, given: torch.Tensor | Sequence[int]) -> np.ndarray:
    """Integers that lie on the host, as int64."""
    if isinstance(given, torch.Tensor) and given.device.type != "cpu":
        raise ValueError(
            f"{name} is on {given.device}; it must be on the host, where the step is planned: reading it back would "
            "wait for the GPU"
        )
    values = np.asarray(given)
    if values.size and values.dtype.kind not in "iu":
        raise TypeError(f"{name} is {_short(values)}, of {values.dtype}; it must be host integers")
    return values.astype(np.int64)


def _short(starts: np.ndarray) -> str:
    values = np.atleast_1d(starts).tolist()
    return str(values) if len(values) <= 8 else f"[{values[0]}, {values[1]}, …, {values[-1]}] ({len(values)} values)"
