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
