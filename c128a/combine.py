"""Prefill rows joined with the sliding window, once per C128A layer: where the width is paid for.

Two forms of one definition (`reference.combined_rows`):

    from_rows         takes the builder's prefill rows: fill the output with -1, copy the n leading ids of each row,
                      append the window. The form of the released engine: WORKERS programs a request.
    from_positions    derives each row from its position and writes each cell once. The n leading ids are always
                      0 … n-1 plus the request's base, so it needs neither prefill rows nor the pass that writes them.
"""

from __future__ import annotations

import c128a.backend as backend  # decides TRITON_INTERPRET before Triton is imported

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_wait

from c128a.kernel import (
    INT32_MAX,
    VECTOR_BYTES,
    Kernel,
    Variant,
    can_overlap,
    check_apart,
    check_tensor,
    facts,
    launcher,
)
from c128a.layout import ITEMSIZE
from c128a.tiles import COMBINE_TILE
from c128a.width import host_integer

WINDOW = 128  # tokens of the uncompressed sliding window (DeepSeek-V4)
LIVE_BLOCK = 128  # columns; live_prefix=True writes whole blocks of this many
WORKERS = 128  # programs a request in from_rows


def combined_width(topk_width: int, window: int = WINDOW) -> int:
    """Columns of a combined row: the top-k width and the window, rounded up to 128.

    >>> combined_width(256), combined_width(8192)
    (384, 8320)
    """
    return -(-(topk_width + window) // LIVE_BLOCK) * LIVE_BLOCK


@triton.jit
def from_positions(
    out_ptr,  # (tokens, width) int32, out_stride elements a row
    lens_ptr,  # (tokens,) int32
    positions_ptr,  # (tokens,) int64
    requests_ptr,  # (tokens,) int32
    seq_lens_ptr,  # (requests,) int32
    gather_lens_ptr,  # (requests,) int32
    tokens,
    requests,
    width,  # columns of a row
    out_stride,
    workspace_rows,  # workspace rows a request
    compressed_rows,  # of them, rows reserved for compressed entries
    RATIO: tl.constexpr,  # tokens per compressed entry
    SPAN: tl.constexpr,  # tokens of the sliding window
    LIVE: tl.constexpr,  # 0: write whole rows; else write the live prefix in blocks of LIVE columns
    ROWS: tl.constexpr,  # rows a program
    COLS: tl.constexpr,  # columns a program
    OVERLAP: tl.constexpr,  # launched while the kernel before may still run: wait for it
):
    """Write ROWS × COLS cells of combined rows, and the lens of the rows from the first column tile."""
    if OVERLAP:
        gdc_wait()
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)  # (ROWS,)
    tile = tl.program_id(1)
    held = row < tokens
    position = tl.load(positions_ptr + row, mask=held, other=-1)
    request = tl.load(requests_ptr + row, mask=held, other=-1)
    known = (request >= 0) & (request < requests)
    context = tl.load(seq_lens_ptr + request, mask=known, other=0)
    gathered = tl.load(gather_lens_ptr + request, mask=known, other=0)

    # seq_lens are int32, so a position of 2^31 - 1 and more lies outside of every sequence, as one below 0 does.
    position = tl.where(known & (position < 2**31 - 1), tl.maximum(position, -1), -1).to(tl.int32)
    n = (position + 1) // RATIO
    start = tl.maximum(position - SPAN + 1, 0)
    length = n + position - start + 1
    length = tl.where(length <= width, length, 0)
    if tile == 0:
        tl.store(lens_ptr + row, length, mask=held)

    base = request * workspace_rows
    token = base + compressed_rows + start - (context - gathered) - n  # added past n
    column = tile * COLS + tl.arange(0, COLS)[None, :]  # (1, COLS)
    index = column + tl.where(column < n[:, None], base[:, None], token[:, None])
    index = tl.where(column < length[:, None], index, -1)
    end = tl.minimum((length + LIVE - 1) // LIVE * LIVE, width)[:, None] if LIVE > 0 else width
    out = out_ptr + row.to(tl.int64)[:, None] * out_stride + column
    tl.store(out, index, mask=held[:, None] & (column < end))


FROM_POSITIONS = Kernel(from_positions, ("positions_ptr",), ("out_ptr", "width", "out_stride"))


def combine_variant(
    device: int, compress_ratio: int = 128, window: int = WINDOW, *, live_prefix: bool = False, vector: bool = True
) -> Variant:
    """The variant of `from_positions` for a GPU and these sizes."""
    tile = COMBINE_TILE
    constants = (compress_ratio, window, LIVE_BLOCK if live_prefix else 0, tile.rows, tile.cols)
    return Variant(FROM_POSITIONS, device, constants, tile.warps, vector, can_overlap(device))


def combine_prefill_indices(
    positions: torch.Tensor,
    token_to_req_indices: torch.Tensor,
    seq_lens: torch.Tensor,
    gather_lens: torch.Tensor,
    workspace_rows: int,
    compressed_rows: int,
    out: torch.Tensor,
    lens: torch.Tensor,
    *,
    compress_ratio: int = 128,
    window: int = WINDOW,
    live_prefix: bool = False,
    max_seq_len: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Write the combined rows of a prefill chunk from the tokens' positions (the form `from_positions`).

    positions (tokens,) int64; token_to_req_indices (tokens,) int32, a request of this chunk each; seq_lens and
    gather_lens (requests,) int32, in tokens; workspace_rows and compressed_rows are the rows a request has in the
    workspace and those of them that hold compressed entries; out (≥ tokens, width) int32 and lens (≥ tokens,) int32.

    Returns out[:tokens] and lens[:tokens], every cell written: n + window ids, then -1. live_prefix=True leaves the
    cells from the next multiple of 128 after lens untouched, for readers that honour lens. A request outside the
    chunk and a position below 0 or over 2^31 - 2 give a row of -1 and lens 0. So does a row whose n + window ids do
    not fit into the width: no row is written in part. max_seq_len, the longest sequence of the chunk on the host,
    makes that an error. Source: vLLM's prefill combine for DeepSeek-V4.

    Raises TypeError for a wrong dtype or a size that is no host integer, and ValueError for shapes that do not fit, a
    width under the window or under what max_seq_len needs, before anything is written.
    """
    tokens = positions.numel()
    tensors = {"positions": positions, "token_to_req_indices": token_to_req_indices, "seq_lens": seq_lens}
    tensors |= {"gather_lens": gather_lens, "out": out, "lens": lens}
    workspace_rows, compressed_rows, compress_ratio, window = _check(
        tokens, workspace_rows, compressed_rows, compress_ratio, window, tensors
    )
    width, stride = out.shape[1], out.stride(0)
    if max_seq_len is not None:
        longest = host_integer("max_seq_len", max_seq_len, 0)
        needed = longest // compress_ratio + min(window, longest)
        if needed > width:
            raise ValueError(f"out has {width} columns; a row of max_seq_len {longest:,} needs {needed:,}")
    if tokens:
        grid = (-(-tokens // COMBINE_TILE.rows), -(-width // COMBINE_TILE.cols), 1)
        integers = (tokens, seq_lens.shape[0], width, stride, workspace_rows, compressed_rows)
        vector = (out.data_ptr() | (width | stride) * ITEMSIZE) % VECTOR_BYTES == 0
        variant = combine_variant(out.device.index or 0, compress_ratio, window, live_prefix=live_prefix, vector=vector)
        launcher(variant, grid, integers)(out, lens, positions, token_to_req_indices, seq_lens, gather_lens)
    return out[:tokens], lens[:tokens]


@triton.jit
def from_rows(
    out_ptr,  # (tokens, width) int32, filled with -1, out_stride elements a row
    out_stride,
    lens_ptr,  # (tokens,) int32
    rows_ptr,  # (tokens, topk_width) int32, rows_stride elements a row
    rows_stride,
    starts_ptr,  # (requests + 1,) int32, first token of each request
    seq_lens_ptr,  # (requests,) int32
    gather_lens_ptr,  # (requests,) int32
    workspace_rows,
    compressed_rows,
    topk_width,
    tokens,  # rows of the chunk: nothing is written outside of them, whatever the offsets say
    RATIO: tl.constexpr,
    SPAN: tl.constexpr,
    PADDED: tl.constexpr,  # the next power of two of topk_width
):
    """Copy the live ids of every n-th row of a request and append the window.

    The first request takes the tokens before its offset as well, the last one those behind: no request has them, and
    their lens is 0.
    """
    request = tl.program_id(0)
    requests = tl.num_programs(0)
    own = tl.load(starts_ptr + request)
    end = tl.load(starts_ptr + request + 1)
    first = tl.where(request == 0, 0, tl.minimum(tl.maximum(own, 0), tokens))
    last = tl.where(request == requests - 1, tokens, tl.minimum(tl.maximum(end, 0), tokens))
    context = tl.load(seq_lens_ptr + request)
    gathered_from = context - tl.load(gather_lens_ptr + request)
    base = request * workspace_rows
    column = tl.arange(0, PADDED)
    behind = tl.arange(0, SPAN)
    for token in range(first + tl.program_id(1), last, tl.num_programs(1)):
        position = tl.where((token >= own) & (token < end), tl.maximum(context - end + token, -1), -1)
        n = tl.minimum((position + 1) // RATIO, topk_width)
        start = tl.maximum(position - SPAN + 1, 0)
        count = position - start + 1
        row = tl.cast(token, tl.int64)
        out = out_ptr + row * out_stride
        ids = tl.load(rows_ptr + row * rows_stride + column, mask=column < n, other=0)
        tl.store(out + column, ids + base, mask=column < n)
        tl.store(out + n + behind, base + compressed_rows + start - gathered_from + behind, mask=behind < count)
        tl.store(lens_ptr + token, n + count)


def combine_from_rows(
    prefill_rows: torch.Tensor,
    query_start_loc: torch.Tensor,
    seq_lens: torch.Tensor,
    gather_lens: torch.Tensor,
    workspace_rows: int,
    compressed_rows: int,
    out: torch.Tensor,
    lens: torch.Tensor,
    *,
    compress_ratio: int = 128,
    window: int = WINDOW,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Write the combined rows of a prefill chunk from the builder's prefill rows (the form `from_rows`).

    prefill_rows (tokens, topk_width) int32; query_start_loc (requests + 1,) int32 on the same device, one row of
    prefill_rows for each of its tokens, the last of a request at position seq_lens - 1; the rest as in
    `combine_prefill_indices`, whose result it equals where prefill_rows are as wide as their positions need. The output
    is filled with -1 first, as the released engine does. Whatever the offsets, each row of the chunk and its lens are
    written, and nothing else: a token that they give to no request has lens 0, one that they give to two (where they
    decrease) has the row of either.

    Raises TypeError and ValueError as `combine_prefill_indices` does.
    """
    tokens = prefill_rows.shape[0]
    tensors = {"prefill_rows": prefill_rows, "query_start_loc": query_start_loc, "seq_lens": seq_lens}
    tensors |= {"gather_lens": gather_lens, "out": out, "lens": lens}
    workspace_rows, compressed_rows, compress_ratio, window = _check(
        tokens, workspace_rows, compressed_rows, compress_ratio, window, tensors
    )
    topk_width, requests = prefill_rows.shape[1], seq_lens.shape[0]
    if topk_width + window > out.shape[1]:
        raise ValueError(f"out has {out.shape[1]} columns; prefill_rows and window need {topk_width} + {window}")
    if query_start_loc.shape[0] != requests + 1:
        raise ValueError(f"query_start_loc holds {query_start_loc.shape[0]} offsets; {requests} requests need one more")
    rows = out[:tokens]
    rows.fill_(-1)
    if tokens and requests:
        with backend.kernel_lock:
            from_rows[(requests, WORKERS)](
                out, out.stride(0), lens, prefill_rows, prefill_rows.stride(0), query_start_loc, seq_lens, gather_lens,
                workspace_rows, compressed_rows, topk_width, tokens, RATIO=compress_ratio, SPAN=window,
                PADDED=1 << (topk_width - 1).bit_length(),
            )  # fmt: skip
    elif tokens:
        lens[:tokens].zero_()
    return rows, lens[:tokens]


def _check(
    tokens: int,
    workspace_rows: int,
    compressed_rows: int,
    compress_ratio: int,
    window: int,
    tensors: dict[str, torch.Tensor],
) -> tuple[int, int, int, int]:
    """Every check that a host can make, before anything is written; the four sizes as host integers."""
    workspace_rows = host_integer("workspace_rows", workspace_rows, 0)
    compressed_rows = host_integer("compressed_rows", compressed_rows, 0)
    compress_ratio = host_integer("compress_ratio", compress_ratio, 1)
    window = host_integer("window", window, 1)
    for name, tensor in tensors.items():
        dtype = torch.int64 if name == "positions" else torch.int32
        check_tensor(name, facts(tensor), dtype, 2 if name in ("out", "prefill_rows") else 1, tensors["out"].device)
    for name in ("out", "lens", "token_to_req_indices"):
        if name in tensors and tensors[name].shape[0] < tokens:
            raise ValueError(f"{name} holds {tensors[name].shape[0]} rows; the chunk has {tokens} tokens")
    out, requests = tensors["out"], tensors["seq_lens"].shape[0]
    if out.shape[0] > 1 and out.stride(0) < out.shape[1]:
        raise ValueError(f"out has a row stride of {out.stride(0)}; rows of {out.shape[1]} columns would overlap")
    if tensors["gather_lens"].shape[0] != requests:
        raise ValueError(f"gather_lens holds {tensors['gather_lens'].shape[0]} requests, seq_lens {requests}")
    if not 0 <= compressed_rows <= workspace_rows:
        raise ValueError(
            f"compressed_rows is {compressed_rows}; it must be between 0 and the {workspace_rows} of a request"
        )
    if workspace_rows * max(requests, 1) > INT32_MAX:
        raise ValueError(f"workspace_rows is {workspace_rows}; the ids of {requests} requests do not fit in int32")
    if window & (window - 1):
        raise ValueError(f"window is {window}; it must be a power of two")
    if out.shape[1] < window:
        raise ValueError(f"out has {out.shape[1]} columns; the window alone needs {window}")
    written = ((tokens - 1) * out.stride(0) + out.shape[1]) * ITEMSIZE if tokens else 0
    lens = tensors["lens"]
    check_apart({"out": (out.data_ptr(), written), "lens": (lens.data_ptr(), tokens * ITEMSIZE)})
    return workspace_rows, compressed_rows, compress_ratio, window
