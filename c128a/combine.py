"""Prefill rows joined with the sliding window, once per C128A layer: where the width is paid for.

Two forms of one definition (`reference.combined_rows`):

    from_rows         takes the builder's prefill rows: fill the output with -1, copy the n leading ids of each row,
                      append the window. The form of the released engine: WORKERS programs a request.
    from_positions    derives each row from its position and writes each cell once. The n leading ids are always
                      0 … n-1 plus the request's base, so it needs neither prefill rows nor the pass that writes them.
"""

from __future__ import annotations

import torch

from c128a import backend
from c128a.combine_kernel import CombineVariant, from_positions, from_rows
from c128a.compiled import VECTOR_BYTES, can_overlap, hold
from c128a.tiles import COMBINE_TILE
from c128a.width import host_integer

WINDOW = 128  # tokens of the uncompressed sliding window (DeepSeek-V4)
LIVE_BLOCK = 128  # columns; live_prefix=True writes whole blocks of this many
WORKERS = 128  # programs a request in from_rows
INT32_MAX = 2**31 - 1


def combined_width(topk_width: int, window: int = WINDOW) -> int:
    """Columns of a combined row: the top-k width and the window, rounded up to 128.

    >>> combined_width(256), combined_width(8192)
    (384, 8320)
    """
    return -(-(topk_width + window) // LIVE_BLOCK) * LIVE_BLOCK


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
    tokens = positions.shape[0]
    workspace_rows, compressed_rows, compress_ratio, window = _check(
        tokens,
        workspace_rows,
        compressed_rows,
        compress_ratio,
        window,
        positions=positions,
        token_to_req_indices=token_to_req_indices,
        seq_lens=seq_lens,
        gather_lens=gather_lens,
        out=out,
        lens=lens,
    )
    width, stride = out.shape[1], out.stride(0)
    if max_seq_len is not None:
        longest = host_integer("max_seq_len", max_seq_len, 0)
        needed = longest // compress_ratio + min(window, longest)
        if needed > width:
            raise ValueError(f"out has {width} columns; a row of max_seq_len {longest:,} needs {needed:,}")
    if tokens:
        tile = COMBINE_TILE
        grid = (-(-tokens // tile.rows), -(-width // tile.cols), 1)
        live = LIVE_BLOCK if live_prefix else 0
        tensors = (out, lens, positions, token_to_req_indices, seq_lens, gather_lens)
        integers = (tokens, seq_lens.shape[0], width, stride, workspace_rows, compressed_rows)
        pointer = out.data_ptr()
        vector = (pointer | (width | stride) * out.element_size()) % VECTOR_BYTES == 0
        device = out.device.index or 0
        overlap = not backend.INTERPRET and can_overlap(device)
        variant = CombineVariant(device, tile, compress_ratio, window, live, vector, overlap)
        if backend.INTERPRET:
            with backend.kernel_lock:
                from_positions[grid](*tensors, *integers, **variant.constants)
        else:
            pointers = [tensor.data_ptr() for tensor in tensors]
            hold(variant).launcher(grid)(*pointers, *integers, *variant.constants.values())
    return out[:tokens], lens[:tokens]


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
    `combine_prefill_indices`, whose result it equals. The output is filled with -1 first, as the released engine does.
    """
    tokens = prefill_rows.shape[0]
    workspace_rows, compressed_rows, compress_ratio, window = _check(
        tokens,
        workspace_rows,
        compressed_rows,
        compress_ratio,
        window,
        prefill_rows=prefill_rows,
        query_start_loc=query_start_loc,
        seq_lens=seq_lens,
        gather_lens=gather_lens,
        out=out,
        lens=lens,
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
    tokens: int, workspace_rows: int, compressed_rows: int, compress_ratio: int, window: int, **tensors: torch.Tensor
) -> tuple[int, int, int, int]:
    """Every check that a host can make, before anything is written; the four sizes as host integers."""
    workspace_rows = host_integer("workspace_rows", workspace_rows, 0)
    compressed_rows = host_integer("compressed_rows", compressed_rows, 0)
    compress_ratio = host_integer("compress_ratio", compress_ratio, 1)
    window = host_integer("window", window, 1)
    device = tensors["out"].device
    for name, tensor in tensors.items():
        wanted = torch.int64 if name == "positions" else torch.int32
        dimensions = 2 if name in ("out", "prefill_rows") else 1
        if tensor.dtype != wanted:
            raise TypeError(f"{name} is {tensor.dtype}; it must be {wanted}")
        if tensor.device != device:
            raise ValueError(f"{name} is on {tensor.device}, out on {device}; all tensors must be on one device")
        if tensor.ndim != dimensions:
            raise ValueError(f"{name} has shape {tuple(tensor.shape)}; it must have {dimensions} dimension(s)")
        if tensor.shape[-1] > 1 and tensor.stride(-1) != 1:
            raise ValueError(f"{name} has strides {tensor.stride()}; its last dimension must be contiguous (stride 1)")
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
    lens = tensors["lens"]
    written = (tokens - 1) * out.stride(0) + out.shape[1] if tokens else 0
    apart = (
        lens.data_ptr() + tokens * lens.element_size() <= out.data_ptr()
        or out.data_ptr() + written * out.element_size() <= lens.data_ptr()
    )
    if tokens and not apart:
        raise ValueError("lens and out overlap; they must lie apart")
    return workspace_rows, compressed_rows, compress_ratio, window
