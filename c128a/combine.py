"""Prefill rows joined with the sliding window, from the tokens' positions or from the builder's rows.

    combine_step_indices       one launch for a whole step: each request has its place in the workspace of its chunk
    combine_prefill_indices    one chunk, in which every request has as many rows of the workspace
    combine_from_rows          one chunk, from the builder's prefill rows: the form of the released engine

The first two run `from_positions`: the n leading ids of a row are always 0 … n-1 plus a base, so it needs neither
prefill rows nor the pass that writes them. None of its inputs depends on the layer, so a step needs it once.
The definition is `reference.combined_rows`; `prefill_chunks` and `step_bases` give the places of a step's requests.
"""

from __future__ import annotations

import c128a.backend as backend  # decides TRITON_INTERPRET before Triton is imported

from functools import lru_cache
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_wait

from c128a.kernel import (
    INT32_MAX,
    UNIT,
    Facts,
    Kernel,
    Launcher,
    Variant,
    can_overlap,
    check_apart,
    check_tensor,
    facts,
    launcher,
    row_unit,
)
from c128a.layout import ITEMSIZE, WINDOW, Chunk, prefill_chunks, step_bases
from c128a.tiles import COMBINE_TILE
from c128a.width import host_integer

__all__ = [
    "Chunk",
    "combine_from_rows",
    "combine_prefill_indices",
    "combine_step_indices",
    "combined_width",
    "prefill_chunks",
    "step_bases",
]

LIVE_BLOCK = 128  # columns; live_prefix=True writes whole blocks of this many
WORKERS = 256  # programs a request in from_rows; vLLM had 128 of them up to 0.28


def combined_width(topk_width: int, window: int = WINDOW, max_image_tokens: int = 0) -> int:
    """Columns of a combined row: the top-k width, the window and the longest image, rounded up to 128.

    >>> combined_width(256), combined_width(8192), combined_width(8192, max_image_tokens=1)
    (384, 8320, 8448)
    """
    return -(-(topk_width + window + max_image_tokens) // LIVE_BLOCK) * LIVE_BLOCK


@triton.jit(
    do_not_specialize=["tokens", "requests", "width", "out_stride", "workspace_rows", "compressed_rows"],
    do_not_specialize_on_alignment=[
        "lens_ptr", "positions_ptr", "requests_ptr", "seq_lens_ptr", "gather_lens_ptr", "compressed_base_ptr",
        "window_base_ptr", "left_ptr", "right_ptr",
    ],
)  # fmt: skip
def from_positions(
    out_ptr,  # (tokens, width) int32, out_stride elements a row
    lens_ptr,  # (tokens,) int32
    positions_ptr,  # (tokens,) int64
    requests_ptr,  # (tokens,) int32
    seq_lens_ptr,  # (requests,) int32
    gather_lens_ptr,  # (requests,) int32
    compressed_base_ptr,  # (requests,) int32, workspace row of each one's first entry; not read unless BASES
    window_base_ptr,  # (requests,) int32, that of its first gathered token; not read unless BASES
    left_ptr,  # (tokens,) int32, tokens of an image before each token; not read unless SPANS
    right_ptr,  # (tokens,) int32, tokens of an image after each token; not read unless SPANS
    tokens,
    requests,
    width,  # columns of a row, in units of UNIT
    out_stride,  # in units of UNIT
    workspace_rows,  # workspace rows a request, unless BASES
    compressed_rows,  # of them, rows reserved for compressed entries, unless BASES
    RATIO: tl.constexpr,  # tokens per compressed entry
    WINDOW: tl.constexpr,  # tokens of the sliding window
    BASES: tl.constexpr,  # each request has a place of its own in the workspace
    SPANS: tl.constexpr,  # tokens of an image see further than the window
    LIVE: tl.constexpr,  # 0: write whole rows; else write the live prefix in blocks of LIVE columns
    ROWS: tl.constexpr,  # rows a program
    COLS: tl.constexpr,  # columns a program
    UNIT: tl.constexpr,  # elements: 4 where all rows start on 16 bytes, else 1
    OVERLAP: tl.constexpr,  # launched while the kernel before may still run: wait for it
):
    """Write ROWS × COLS cells of combined rows, and the lens of the rows from the first column tile."""
    if OVERLAP:
        gdc_wait()
    width *= UNIT
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)  # (ROWS,)
    tile = tl.program_id(1)
    held = row < tokens
    position = tl.load(positions_ptr + row, mask=held, other=-1)
    request = tl.load(requests_ptr + row, mask=held, other=-1)
    known = (request >= 0) & (request < requests)
    if BASES:
        base = tl.load(compressed_base_ptr + request, mask=known, other=-1)
        behind = tl.load(window_base_ptr + request, mask=known, other=-1)
    else:
        base = request * workspace_rows
        behind = base + compressed_rows

    # seq_lens are int32, so a position of 2^31 - 1 and more lies outside of every sequence, as one below 0 does.
    position = tl.where(known & (position < 2**31 - 1), tl.maximum(position, -1), -1).to(tl.int32)
    n = (position + 1) // RATIO
    start = position - WINDOW + 1
    if SPANS:  # a span over the width does not fit whatever its length: clipped, its sums stay in 32 bits
        left = tl.minimum(tl.maximum(tl.load(left_ptr + row, mask=held, other=0), 0), width)
        right = tl.minimum(tl.maximum(tl.load(right_ptr + row, mask=held, other=0), 0), width)
        start -= tl.maximum(left - WINDOW + 1, 0)
        n_after = tl.where(position >= 0, right, 0)
    else:
        n_after = 0
    start = tl.maximum(start, 0)
    length = n + (position - start + 1) + n_after
    length = tl.where(length <= width, length, 0)

    # Only a row with window tokens in this tile loads the two lengths that say where they lie, beside its bases.
    ends = known & (n < (tile + 1) * COLS) & (length > tile * COLS)
    context = tl.load(seq_lens_ptr + request, mask=ends, other=0)
    gathered = tl.load(gather_lens_ptr + request, mask=ends, other=0)
    if BASES:
        length = tl.where((base >= 0) & (behind >= 0), length, 0)
    if tile == 0:
        tl.store(lens_ptr + row, length, mask=held)

    token = behind + start - (context - gathered) - n  # added past n
    column = tile * COLS + tl.arange(0, COLS)[None, :]  # (1, COLS)
    index = column + tl.where(column < n[:, None], base[:, None], token[:, None])
    index = tl.where(column < length[:, None], index, -1)
    end = tl.minimum((length + LIVE - 1) // LIVE * LIVE, width)[:, None] if LIVE > 0 else width
    out = out_ptr + row.to(tl.int64)[:, None] * (out_stride * UNIT) + column
    tl.store(out, index, mask=held[:, None] & (column < end))


NAMES = (
    *("out", "lens", "positions", "token_to_req_indices", "seq_lens", "gather_lens"),
    *("compressed_base", "window_base", "left_visible", "right_visible"),
)
FROM_POSITIONS = Kernel(from_positions, int64=("positions_ptr",), rows=("out_ptr",))


def combine_variant(
    device: int,
    compress_ratio: int = 128,
    window: int = WINDOW,
    *,
    bases: bool = False,
    spans: bool = False,
    live_prefix: bool = False,
    unit: int = UNIT,
) -> Variant:
    """The variant of `from_positions` for a GPU and these sizes."""
    tile = COMBINE_TILE
    live = LIVE_BLOCK if live_prefix else 0
    constants = (compress_ratio, window, int(bases), int(spans), live, tile.rows, tile.cols)
    return Variant(FROM_POSITIONS, device, constants, tile.warps, unit, can_overlap(device))


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
    """Write the combined rows of one prefill chunk from the tokens' positions.

    workspace_rows and compressed_rows are the rows that each request has in the workspace, and those of them that hold
    compressed entries; everything else is as in `combine_step_indices`, whose bases are then request × workspace_rows
    and the same + compressed_rows. max_seq_len, the longest sequence of the chunk on the host, makes an error of a row
    that does not fit.

    Raises what `combine_step_indices` raises, and ValueError for a width under what max_seq_len needs, before anything
    is written.
    """
    workspace_rows = host_integer("workspace_rows", workspace_rows, 0)
    compressed_rows = host_integer("compressed_rows", compressed_rows, 0)
    longest = None if max_seq_len is None else host_integer("max_seq_len", max_seq_len, 0)
    tensors = (out, lens, positions, token_to_req_indices, seq_lens, gather_lens)
    return _combine(tensors, compress_ratio, window, live_prefix, (workspace_rows, compressed_rows), longest)


def combine_step_indices(
    positions: torch.Tensor,
    token_to_req_indices: torch.Tensor,
    seq_lens: torch.Tensor,
    gather_lens: torch.Tensor,
    compressed_base: torch.Tensor,
    window_base: torch.Tensor,
    out: torch.Tensor,
    lens: torch.Tensor,
    *,
    compress_ratio: int = 128,
    window: int = WINDOW,
    left_visible: torch.Tensor | None = None,
    right_visible: torch.Tensor | None = None,
    live_prefix: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Write the combined rows of all prefill chunks of a step from the tokens' positions, in one launch.

    positions (tokens,) int64; token_to_req_indices (tokens,) int32, a prefill request each; seq_lens and gather_lens
    (requests,) int32, in tokens; compressed_base and window_base (requests,) int32, the workspace row of a request's
    first compressed entry and of its first gathered token (`step_bases`); left_visible and right_visible (tokens,)
    int32, both or none: how many tokens of an image each token sees before and after itself, 0 outside of images; out
    (≥ tokens, width) int32 and lens (≥ tokens,) int32.

    Returns out[:tokens] and lens[:tokens], every cell written: n + window ids, then -1. live_prefix=True leaves the
    cells from the next multiple of 128 after lens untouched, for readers that honour lens. A request outside of
    seq_lens or with a negative base, and a position below 0 or over 2^31 - 2, give a row of -1 and lens 0. So does a
    row whose ids do not fit into the width: no row is written in part. Source: vLLM's prefill combine for DeepSeek-V4.

    Raises TypeError for a wrong dtype or a size that is no host integer, and ValueError for shapes that do not fit, a
    width under the window, and tensors that overlap or lie on different devices, before anything is written.
    """
    tensors: tuple[torch.Tensor, ...]
    tensors = (out, lens, positions, token_to_req_indices, seq_lens, gather_lens, compressed_base, window_base)
    if left_visible is not None and right_visible is not None:
        tensors += (left_visible, right_visible)
    elif left_visible is not None or right_visible is not None:
        raise ValueError("left_visible and right_visible are given together or not at all; one of them is missing")
    return _combine(tensors, compress_ratio, window, live_prefix, None, None)


class Combine(NamedTuple):
    """A combine that passed every check: how it is launched, and shape and strides of what it returns."""

    launch: Launcher | None
    rows: tuple[tuple[int, int], tuple[int, int]]
    lens: tuple[tuple[int], tuple[int]]


def _combine(
    tensors: tuple[torch.Tensor, ...],
    compress_ratio: int,
    window: int,
    live_prefix: bool,
    chunk: tuple[int, int] | None,
    max_seq_len: int | None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Run `from_positions` on the tensors of NAMES, as many as it takes.

    chunk: workspace_rows and compressed_rows of a request, where it has no bases.
    """
    compress_ratio = host_integer("compress_ratio", compress_ratio, 1)
    window = host_integer("window", window, 1)
    out, lens = tensors[:2]
    given = tuple([(t.dtype, t.device, t.shape, t.stride()) for t in tensors])
    places = tuple([(t.data_ptr(), t.untyped_storage().nbytes(), t.storage_offset()) for t in (out, lens)])
    made = plan(given, places, compress_ratio, window, bool(live_prefix), chunk, max_seq_len)
    if made.launch is not None:
        made.launch(*tensors, *[lens] * (len(NAMES) - len(tensors)))
    return out.as_strided(*made.rows), lens.as_strided(*made.lens)


@lru_cache(maxsize=4096)
def plan(
    given: tuple[Facts, ...],
    places: tuple[tuple[int, int, int], ...],
    compress_ratio: int,
    window: int,
    live_prefix: bool,
    chunk: tuple[int, int] | None,
    max_seq_len: int | None,
) -> Combine:
    """Check a combine by the facts of its tensors; kept for the next call, by all that the checks look at."""
    of = dict(zip(NAMES, given, strict=False))
    tokens = _check(of, places, compress_ratio, window, chunk)
    (_, device, (_, width), (stride, _)), requests = of["out"], of["seq_lens"][2][0]
    if max_seq_len is not None:
        needed = max_seq_len // compress_ratio + min(window, max_seq_len)
        if needed > width:
            raise ValueError(f"out has {width} columns; a row of max_seq_len {max_seq_len:,} needs {needed:,}")
    launch = None
    if tokens:
        unit = row_unit(places[0][0], width * ITEMSIZE, stride * ITEMSIZE)
        variant = combine_variant(
            device.index or 0,
            compress_ratio,
            window,
            bases=chunk is None,
            spans="left_visible" in of,
            live_prefix=live_prefix,
            unit=unit,
        )
        grid = (-(-tokens // COMBINE_TILE.rows), -(-width // COMBINE_TILE.cols), 1)
        launch = launcher(variant, grid, (tokens, requests, width // unit, stride // unit, *(chunk or (0, 0))))
    return Combine(launch, ((tokens, width), (stride, 1)), ((tokens,), (1,)))


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
    workers: int = WORKERS,
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
    workspace_rows = host_integer("workspace_rows", workspace_rows, 0)
    compressed_rows = host_integer("compressed_rows", compressed_rows, 0)
    compress_ratio = host_integer("compress_ratio", compress_ratio, 1)
    window, workers = host_integer("window", window, 1), host_integer("workers", workers, 1)
    tensors = {"out": out, "lens": lens, "prefill_rows": prefill_rows, "query_start_loc": query_start_loc}
    tensors |= {"seq_lens": seq_lens, "gather_lens": gather_lens}
    places = tuple([(t.data_ptr(), t.untyped_storage().nbytes(), int(t.storage_offset())) for t in (out, lens)])
    of = {name: facts(tensor) for name, tensor in tensors.items()}
    tokens = _check(of, places, compress_ratio, window, (workspace_rows, compressed_rows))
    topk_width, requests = prefill_rows.shape[1], seq_lens.shape[0]
    if topk_width + window > out.shape[1]:
        raise ValueError(f"out has {out.shape[1]} columns; prefill_rows and window need {topk_width} + {window}")
    if query_start_loc.shape[0] != requests + 1:
        raise ValueError(f"query_start_loc holds {query_start_loc.shape[0]} offsets; {requests} requests need one more")
    rows = out[:tokens]
    rows.fill_(-1)
    if tokens and requests:
        with backend.kernel_lock:
            from_rows[(requests, workers)](
                out, out.stride(0), lens, prefill_rows, prefill_rows.stride(0), query_start_loc, seq_lens, gather_lens,
                workspace_rows, compressed_rows, topk_width, tokens, RATIO=compress_ratio, SPAN=window,
                PADDED=1 << (topk_width - 1).bit_length(),
            )  # fmt: skip
    elif tokens:
        lens[:tokens].zero_()
    return rows, lens[:tokens]


def _check(
    of: dict[str, Facts],
    places: tuple[tuple[int, int, int], ...],
    compress_ratio: int,
    window: int,
    chunk: tuple[int, int] | None,
) -> int:
    """Every check that a host can make, before anything is written; returns the number of tokens."""
    backend.check_device(of["out"][1])
    for name, tensor in of.items():
        dtype = torch.int64 if name == "positions" else torch.int32
        check_tensor(name, tensor, dtype, 2 if name in ("out", "prefill_rows") else 1, of["out"][1])
    tokens = of["positions" if "positions" in of else "prefill_rows"][2][0]
    for name in ("out", "lens", "token_to_req_indices", "left_visible", "right_visible"):
        if name in of and of[name][2][0] < tokens:
            raise ValueError(f"{name} holds {of[name][2][0]} rows; the chunk has {tokens} tokens")
    (held, width), stride = of["out"][2], of["out"][3][0]
    requests = of["seq_lens"][2][0]
    if held > 1 and stride < width:
        raise ValueError(f"out has a row stride of {stride}; rows of {width} columns would overlap")
    for name in ("gather_lens", "compressed_base", "window_base"):
        if name in of and of[name][2][0] != requests:
            raise ValueError(f"{name} holds {of[name][2][0]} requests, seq_lens {requests}")
    if chunk is not None:
        workspace_rows, compressed_rows = chunk
        if compressed_rows > workspace_rows:
            raise ValueError(
                f"compressed_rows is {compressed_rows}; it must be between 0 and the {workspace_rows} of a request"
            )
        if workspace_rows * max(requests, 1) > INT32_MAX:
            raise ValueError(f"workspace_rows is {workspace_rows}; the ids of {requests} requests do not fit in int32")
    if compress_ratio > INT32_MAX:
        raise ValueError(f"compress_ratio is {compress_ratio}; it must be at most {INT32_MAX}")
    if window & (window - 1):
        raise ValueError(f"window is {window}; it must be a power of two")
    if width < window:
        raise ValueError(f"out has {width} columns; the window alone needs {window}")
    sizes = (((tokens - 1) * stride + width) * ITEMSIZE if tokens else 0, tokens * ITEMSIZE)
    for name, size, (_, storage, before) in zip(("out", "lens"), sizes, places, strict=True):
        if before * ITEMSIZE + size > storage:
            raise ValueError(f"{name} has {storage - before * ITEMSIZE:,} bytes of its storage; its rows need {size:,}")
    check_apart({name: (places[at][0], sizes[at]) for at, name in enumerate(("out", "lens"))})
    return tokens
