"""The definition, in torch: readable first, on any device. The kernels share no code with this file.

For a query at position p (p < 0 counts as "sees nothing") with compress ratio R and b compressed entries a KV block:

    n            = (p + 1) // R                             entries it may attend
    prefill row  = 0, 1, …, n-1, then -1 to the width
    decode row   = block_table[request, j // b] * b + j % b for j < n, then -1 to the width
    lens         = n, at most the width; 0 where slot_mapping < 0 (a padded token)

A decode cell is -1 as well where its request lies outside the table, the table has no such column, or the block number
is negative. Rows 0 … num_decode_tokens-1 are decode rows, the others prefill rows. Source: the report on PR #50004.
"""

from __future__ import annotations

import torch


def entries_seen(positions: torch.Tensor, compress_ratio: int) -> torch.Tensor:
    """Compressed entries that each query sees.

    positions (tokens,) int64 → (tokens,) int64.

    >>> entries_seen(torch.tensor([-1, 126, 127, 1000]), 128).tolist()
    [0, 0, 1, 7]
    """
    return (positions.clamp(min=-1) + 1) // compress_ratio


def prefill_rows(positions: torch.Tensor, compress_ratio: int, width: int) -> torch.Tensor:
    """Local indices 0 … n-1, padded with -1.

    positions (rows,) int64 → (rows, width) int32.

    >>> prefill_rows(torch.tensor([255]), 128, 4).tolist()
    [[0, 1, -1, -1]]
    """
    column = torch.arange(width, device=positions.device)  # (width,)
    n = entries_seen(positions, compress_ratio)[:, None]  # (rows, 1)
    return torch.where(column < n, column, -1).to(torch.int32)


def decode_rows(
    positions: torch.Tensor,
    compress_ratio: int,
    requests: torch.Tensor,
    block_table: torch.Tensor,
    block_size: int,
    width: int,
) -> torch.Tensor:
    """Global KV slot ids through the block table, padded with -1.

    positions (rows,) int64, requests (rows,) int32, block_table (requests, blocks) int32 → (rows, width) int32;
    block_size in compressed entries.

    >>> table = torch.tensor([[9, 4]], dtype=torch.int32)
    >>> decode_rows(torch.tensor([256]), 128, torch.tensor([0]), table, 2, 4).tolist()
    [[18, 19, -1, -1]]
    """
    table_rows, table_cols = block_table.shape
    column = torch.arange(width, device=positions.device)  # (width,)
    n = entries_seen(positions, compress_ratio)[:, None]  # (rows, 1)
    request = requests.long()[:, None]  # (rows, 1)
    entry = column // block_size  # (width,)
    live = (column < n) & (request >= 0) & (request < table_rows) & (entry < table_cols)  # (rows, width)
    rows = positions.shape[0]
    if table_rows == 0 or table_cols == 0:
        return torch.full((rows, width), -1, dtype=torch.int32, device=positions.device)
    block = block_table[request.clamp(0, table_rows - 1), entry.clamp(max=table_cols - 1)].long()  # (rows, width)
    return torch.where(live & (block >= 0), block * block_size + column % block_size, -1).to(torch.int32)


def rank_rows(rows: torch.Tensor, rank: int, ranks: int, interleave: int) -> torch.Tensor:
    """The cells of whole rows that one rank holds under decode context parallel, moved together.

    rows (rows, width) int32, whose column j is owned by rank j // interleave % ranks → (rows, columns of the rank).

    >>> rank_rows(torch.tensor([[10, 11, 12, 13, 14, -1]]), 1, 2, 2).tolist()
    [[12, 13]]
    """
    column = torch.arange(rows.shape[1], device=rows.device)
    return rows[:, column // interleave % ranks == rank]


def decode_lens(positions: torch.Tensor, compress_ratio: int, slot_mapping: torch.Tensor, width: int) -> torch.Tensor:
    """Leading columns of each decode row that a reader must look at.

    positions (rows,) int64, slot_mapping (rows,) int64 → (rows,) int32.

    >>> decode_lens(torch.tensor([0, 127, 511]), 128, torch.tensor([0, -1, 2]), 8).tolist()
    [0, 0, 4]
    """
    n = entries_seen(positions, compress_ratio).clamp(max=width)
    return torch.where(slot_mapping < 0, 0, n).to(torch.int32)


def topk_metadata(
    positions: torch.Tensor,
    compress_ratio: int,
    num_decode_tokens: int,
    token_to_req_indices: torch.Tensor,
    block_table: torch.Tensor,
    block_size: int,
    slot_mapping: torch.Tensor,
    width: int,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """What `build_c128a_topk_metadata` must produce, as fresh tensors.

    positions (tokens,), the per-token tensors at least num_decode_tokens long → decode rows (num_decode_tokens, width),
    lens (num_decode_tokens,), prefill rows (tokens - num_decode_tokens, width), all int32.
    """
    decode, prefill = positions[:num_decode_tokens], positions[num_decode_tokens:]
    requests = token_to_req_indices[:num_decode_tokens]
    return (
        decode_rows(decode, compress_ratio, requests, block_table, block_size, width),
        decode_lens(decode, compress_ratio, slot_mapping[:num_decode_tokens], width),
        prefill_rows(prefill, compress_ratio, width),
    )


def combined_rows(
    positions: torch.Tensor,
    token_to_req_indices: torch.Tensor,
    seq_lens: torch.Tensor,
    gather_lens: torch.Tensor,
    compressed_base: torch.Tensor,
    window_base: torch.Tensor,
    width: int,
    *,
    compress_ratio: int = 128,
    window: int = 128,
    left_visible: torch.Tensor | None = None,
    right_visible: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Prefill rows joined with the sliding window: what `combine_step_indices` must produce.

    A request's compressed entries start at row compressed_base of the workspace, the last gather_lens tokens of its
    context at row window_base. A token at position p lists its n compressed entries, then the tokens
    max(p - window + 1, 0) … p. Inside an image it sees left_visible tokens before it, where these are more than the
    window has, and right_visible tokens after it. A row is all -1 and has lens 0 where it does not fit into the
    width, and where its position or request lies outside of every sequence or its base is negative.

    positions (tokens,) int64, token_to_req_indices (tokens,) int32, seq_lens, gather_lens and both bases (requests,)
    int32, the visible tokens (tokens,) int32 → (tokens, width) int32 padded with -1 and lens (tokens,) int32. Source:
    vLLM's prefill combine for DeepSeek-V4, with image spans as of 0.34.0.

    >>> int32 = lambda *values: torch.tensor(values, dtype=torch.int32)
    >>> rows, lens = combined_rows(torch.tensor([3]), int32(1), int32(4, 4), int32(4, 3), int32(0, 10), int32(2, 12), 8,
    ...                            compress_ratio=2, window=3)
    >>> rows.tolist(), lens.tolist()
    ([[10, 11, 12, 13, 14, -1, -1, -1]], [5])
    """
    tokens, requests = positions.shape[0], seq_lens.shape[0]
    if requests == 0:
        rows = torch.full((tokens, width), -1, dtype=torch.int32, device=positions.device)
        return rows, torch.zeros(tokens, dtype=torch.int32, device=positions.device)
    column = torch.arange(width, device=positions.device)  # (width,)
    request = token_to_req_indices.long()
    held = request.clamp(0, requests - 1)
    base, behind = compressed_base.long()[held], window_base.long()[held]  # (tokens,)
    known = (request == held) & (positions < 2**31 - 1) & (base >= 0) & (behind >= 0)  # seq_lens are int32
    position = torch.where(known, positions, -1).clamp(min=-1)  # (tokens,)
    left = torch.zeros_like(position) if left_visible is None else left_visible.long()
    right = torch.zeros_like(position) if right_visible is None else right_visible.long().clamp(min=0)
    n = (position + 1) // compress_ratio
    start = (position - torch.maximum(left, torch.full_like(left, window - 1))).clamp(min=0)
    lens = n + position - start + 1 + torch.where(position >= 0, right, 0)
    lens = torch.where(lens <= width, lens, 0)
    gathered_from = (seq_lens - gather_lens)[held].long()  # (tokens,), the first gathered position
    token = behind + start - gathered_from - n  # (tokens,), added to the column past n
    index = column + torch.where(column < n[:, None], base[:, None], token[:, None])
    return torch.where(column < lens[:, None], index, -1).to(torch.int32), lens.to(torch.int32)
