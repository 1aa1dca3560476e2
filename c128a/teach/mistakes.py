"""Builders that are wrong in one line each: for the hunt of page 7, and for tests which show that a check catches them.

Where one can go wrong a value is chosen: `most = 1 if mistake == "split" else 1 + hunt.speculative`. So each wrong
builder really runs, without a mistake the same code is right, and `lines` can show both values.

>>> hunts = deal(seed=7)
>>> len(hunts) == len(MISTAKES), hunts == deal(seed=7), all(hunt.mistake in hunt.choices for hunt in hunts)
(True, True, True)
"""

from __future__ import annotations

import c128a.backend as backend

import ast
import inspect
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import pandas as pd
import torch
import triton
import triton.language as tl

from c128a import reference
from c128a.case import WINDOW, Case
from c128a.combine import combine_step_indices, combined_width
from c128a.frozen import FrozenReader
from c128a.layout import prefill_chunks, step_bases
from c128a.metadata import C128AMetadata, C128AMetadataBuilder, build_c128a_topk_metadata
from c128a.trace import BLANK
from c128a.width import TOPK_ALIGNMENT, active_topk_width, capacity_width

COLUMNS = 12  # columns that a picture shows
CHOICES = 6  # answers that a reader chooses from
WORKSPACE = 4096  # rows of the prefill workspace: one chunk for all requests of a hunt
CAPTURED = 65_536  # tokens at which a reader is captured
DEVICE = backend.device()

Rows = tuple[torch.Tensor, torch.Tensor]  # index rows (rows, width) and lens (rows,), int32


@dataclass(frozen=True)
class Hunt:
    """One wrong builder and its batch; choices are the mistakes that the reader is offered."""

    mistake: str
    choices: tuple[str, ...]
    case: Case
    before: Case | None = None  # the step before, where it matters
    speculative: int = 0  # tokens a request


# ------------------------------------------------------------------------------------------ builders, right or wrong


@triton.jit
def _decode_rows(
    out_ptr,  # (rows, width) int32, row_stride elements a row
    lens_ptr,  # (rows,) int32
    positions_ptr,  # (rows,) int64
    requests_ptr,  # (rows,) int32, row of the block table
    slots_ptr,  # (rows,) int64, < 0 for a padded token
    table_ptr,  # (table_rows, table_cols) int32, table_stride elements a row
    row_stride,
    width,  # columns to write
    table_stride,
    table_rows,
    table_cols,
    RATIO: tl.constexpr,  # tokens per compressed entry
    BLOCK: tl.constexpr,  # compressed entries per KV block
    COLS: tl.constexpr,  # columns a program, at least the width
    MISTAKE: tl.constexpr,
):
    """Write one decode row and its lens."""
    row = tl.program_id(0)
    column = tl.arange(0, COLS)
    entry = column // BLOCK
    position = tl.load(positions_ptr + row)
    request = tl.load(requests_ptr + row)
    slot = tl.load(slots_ptr + row)
    n = position // RATIO if MISTAKE == "position" else (position + 1) // RATIO
    known = (column < n) & (request >= 0) & (request < table_rows)
    live = known if MISTAKE == "table" else known & (entry < table_cols)
    block = tl.load(table_ptr + request * table_stride + entry, mask=live, other=-1)
    slot_id = block * BLOCK + column % BLOCK
    index = tl.where(live, slot_id, -1) if MISTAKE == "hole" else tl.where(live & (block >= 0), slot_id, -1)
    stored = column < n if MISTAKE == "pads" else column < width
    start = (row * row_stride).to(tl.int16) if MISTAKE == "offset" else row.to(tl.int64) * row_stride
    tl.store(out_ptr + start + column, index, mask=stored)
    lens = n if MISTAKE == "lens" else tl.where(slot < 0, 0, n)
    tl.store(lens_ptr + row, lens)


def rows_by_kernel(hunt: Hunt, mistake: str) -> Rows:
    """Decode rows by `_decode_rows`, in a buffer that holds old ids; there is memory before it and behind the table."""
    case, rows = hunt.case, hunt.case.decode_rows
    of = case.tensors(DEVICE)
    size = rows.rows * rows.row_stride
    out, lens = _old_ids(2 * size)[size:], _old_ids(rows.rows)
    table = torch.cat([of.block_table, of.block_table.flip(0)], dim=1)[:, : of.block_table.shape[1]]
    tensors = (out, lens, of.positions, of.token_to_req_indices, of.slot_mapping, table)
    sizes = (rows.row_stride, rows.width, table.stride(0), *table.shape)
    with backend.kernel_lock:
        _decode_rows[(rows.rows,)](*tensors, *sizes, case.compress_ratio, case.block_size, rows.width, mistake)
    return rows.view(out), lens


def rows_of_a_step(hunt: Hunt, mistake: str) -> Rows:
    """Rows by the function of the report, from what a host decides in a step."""
    case, before, of = hunt.case, hunt.before or hunt.case, hunt.case.tensors(DEVICE)
    capacity = (
        case.max_model_len // case.compress_ratio // TOPK_ALIGNMENT * TOPK_ALIGNMENT
        if mistake == "floor"
        else capacity_width(case.max_model_len, case.compress_ratio)
    )
    longest = before.max_seq_len if mistake == "late" else case.max_seq_len
    most = 1 if mistake == "split" else 1 + hunt.speculative
    requests = of.token_to_req_indices.clamp(min=0) if mistake == "request" else of.token_to_req_indices
    prefill = [at for at, query in enumerate(case.query_lens) if query > most]
    tokens, decoded = case.num_tokens, int(case.query_start_loc[prefill[0]]) if prefill else case.num_tokens
    width = active_topk_width(longest, case.compress_ratio, capacity)
    inputs = (of.positions, case.compress_ratio, decoded, requests, of.block_table, case.block_size, of.slot_mapping)
    buffers = (_old_ids(tokens, capacity), _old_ids(tokens), _old_ids(tokens, capacity))
    decode, lens, local = build_c128a_topk_metadata(*inputs, *buffers, width, layout="pitched")
    return torch.cat([decode, local]), torch.cat([lens, lens.new_full((tokens - decoded,), BLANK)])


def rows_read_later(hunt: Hunt, mistake: str) -> Rows:
    """What a reader gets that was captured over the rows of the step before, at full width, and is replayed now."""
    layout = "packed" if mistake == "stride" else "pitched"
    tokens = hunt.case.num_tokens
    builder = C128AMetadataBuilder(CAPTURED, tokens, layout=layout, device=DEVICE)  # type: ignore[arg-type]

    def built(case: Case, longest: int) -> C128AMetadata:
        of = case.tensors(DEVICE)
        return builder.build(of.positions, case.query_start_loc.tolist(), longest, of.block_table, of.slot_mapping)

    reader = FrozenReader(built(hunt.before or hunt.case, CAPTURED))
    now = built(hunt.case, hunt.case.max_seq_len)
    reader.replay()
    return reader.out[:, : now.width], builder.decode_lens_buffer


def rows_combined(hunt: Hunt, mistake: str) -> Rows:
    """Combined prefill rows of one chunk."""
    case, of = hunt.case, hunt.case.tensors(DEVICE)
    own, window = bases(case)
    base = own + own if mistake == "base" else own
    queries = torch.tensor(case.query_lens, dtype=torch.int32, device=DEVICE)
    earlier = WINDOW if mistake == "window" else WINDOW - 1
    gathered = queries + (of.seq_lens - queries).clamp(max=earlier)
    out, lens = _old_ids(case.num_tokens, combined_width(case.width)), _old_ids(case.num_tokens)
    return combine_step_indices(of.positions, of.token_to_req_indices, of.seq_lens, gathered, base, window, out, lens)


def bases(case: Case) -> list[torch.Tensor]:
    """Where each request has its compressed entries in the workspace, and its gathered tokens: (requests,) int32."""
    chunks = prefill_chunks(case.seq_lens, case.query_lens, workspace_rows=WORKSPACE)
    return [torch.tensor(base, dtype=torch.int32, device=DEVICE) for base in step_bases(chunks)]


def _old_ids(*shape: int) -> torch.Tensor:
    """A buffer as earlier steps left it."""
    return (torch.arange(int(np.prod(shape)), dtype=torch.int32, device=DEVICE) * 7 % 89 + 700).view(shape)


# ------------------------------------------------------------------------------------------------- batches, by a seed

Fields = dict[str, Case | int]  # of a Hunt


def _decode_batch(rng: random.Random, mistake: str) -> Fields:
    """Six rows with a trap for each line of the kernel: a hole, a table that ends, a padded token, a full entry."""
    table = np.array(rng.sample(range(10, 99), 16)).reshape(4, 4)  # 4 blocks of 2 entries a request
    table[1, rng.randrange(2)] = -1
    # Entries, tokens past the last full one, request, slot.
    tokens = [(5, 9, 0, 0), (6, 40, 1, 1), (4, 77, 2, -1), (10, 20, 3, 3), (3, 0, 2, 4), (7, 0, 0, 5)]
    rng.shuffle(tokens)
    positions = [128 * (entries - rng.randint(0, 1)) + past - 1 for entries, past, _, _ in tokens]
    _, _, requests, slots = zip(*tokens, strict=True)
    return {"case": Case.of_tokens(positions, requests, table.tolist(), slots, 6, width=128, capacity=8192)}


def _step_batch(rng: random.Random, mistake: str) -> Fields:
    """A verification of speculative tokens whose longest sequence needs more than 128 columns, and padding tokens.

    The step before was short where its width shall show, and the model length no multiple where rounding shall.
    """
    k, padding = rng.randint(1, 3), rng.randint(1, 2)
    longest = rng.randrange(16_768, 20_000)
    lengths = [rng.randrange(300, 1400), longest, rng.randrange(300, 1400)]
    rng.shuffle(lengths)
    whole, odd = 32_768 * rng.choice((1, 4, 32)), rng.randrange(longest, 32_000)
    short, long = rng.randrange(9_000, 16_512), rng.randrange(16_600, longest)
    model_len = {"floor": odd, "late": whole}.get(mistake, rng.choice((odd, whole)))
    before = {"floor": long, "late": short}.get(mistake, rng.choice((short, long)))
    case = Case((1, 1 + k, 1 + k, padding), (*lengths, 1000), 4, max_model_len=model_len, seed=rng.randrange(1000))
    owned, none = case.num_tokens - padding, (-1,) * padding
    requests = (*case.token_to_req_indices[:owned].tolist(), *none)
    case = replace(case, given_requests=requests, given_slots=(*range(owned), *none))
    return {"case": case, "before": Case.decode(1, before, max_model_len=model_len), "speculative": k}


def _captured_batch(rng: random.Random, mistake: str) -> Fields:
    """Four decode rows, and four of other requests at the capture."""
    seqs = [tuple(rng.randrange(least, most) for _ in range(4)) for least, most in ((300, 1400), (1500, CAPTURED))]
    now, then = (Case((1,) * 4, of, 4, max_model_len=CAPTURED, seed=rng.randrange(1000)) for of in seqs)
    return {"case": now, "before": then}


def _prefill_batch(rng: random.Random, mistake: str) -> Fields:
    """Two tokens of each of three prompts."""
    return {"case": Case((2,) * 3, tuple(rng.randrange(300, 900) for _ in range(3)), 0)}


Builder = Callable[[Hunt, str], Rows]
Batch = Callable[[random.Random, str], Fields]
MISTAKES: dict[str, tuple[Builder, Batch]] = {
    **dict.fromkeys(("position", "table", "hole", "pads", "offset", "lens"), (rows_by_kernel, _decode_batch)),
    **dict.fromkeys(("floor", "late", "split", "request"), (rows_of_a_step, _step_batch)),
    "stride": (rows_read_later, _captured_batch),
    **dict.fromkeys(("base", "window"), (rows_combined, _prefill_batch)),
}


@lru_cache(maxsize=8)
def deal(seed: int) -> tuple[Hunt, ...]:
    """All hunts; their order, batches and choices are drawn from the seed."""
    rng = random.Random(seed)
    hunts = []
    for mistake in rng.sample([*MISTAKES], len(MISTAKES)):
        choices = [mistake, *rng.sample([key for key in MISTAKES if key != mistake], CHOICES - 1)]
        rng.shuffle(choices)
        hunts.append(Hunt(mistake, tuple(choices), **MISTAKES[mistake][1](rng, mistake)))  # type: ignore[arg-type]
    return tuple(hunts)


# --------------------------------------------------------------------------------------------- what a reader is shown


def expected(hunt: Hunt) -> Rows:
    """The rows and lens that the reference gives."""
    case, of = hunt.case, hunt.case.tensors(DEVICE)
    if MISTAKES[hunt.mistake][0] is rows_combined:
        base, window = bases(case)
        lengths = (of.seq_lens, of.gather_lens, base, window)
        return reference.combined_rows(of.positions, of.token_to_req_indices, *lengths, combined_width(case.width))
    batch = (of.positions, case.compress_ratio, case.num_tokens, of.token_to_req_indices, of.block_table)
    return reference.topk_metadata(*batch, case.block_size, of.slot_mapping, case.width)[:2]


@lru_cache(maxsize=32)
def cells(hunt: Hunt, mistake: str | None = None) -> pd.DataFrame:
    """Each cell, with lens as the last column: row, column, written, right. Shared: do not write to it.

    written is what the builder gives with the mistake of the hunt, or with the one named, "" for none; BLANK where it
    has no such cell.
    """
    builder = MISTAKES[hunt.mistake][0]
    rows, lens = (part.cpu().numpy() for part in builder(hunt, hunt.mistake if mistake is None else mistake))
    right, right_lens = (part.cpu().numpy() for part in expected(hunt))
    written = np.full_like(right, BLANK)
    written[:, : rows.shape[1]] = rows
    row, column = (axis.ravel() for axis in np.indices((right.shape[0], right.shape[1] + 1)))
    both = {"written": np.c_[written, lens].ravel(), "right": np.c_[right, right_lens].ravel()}
    return pd.DataFrame({"row": row, "column": column} | both)


def window(frame: pd.DataFrame) -> pd.DataFrame:
    """The cells that a picture shows: COLUMNS columns with the first difference among them, and lens."""
    last = frame["column"].max()
    first = frame.loc[(frame["written"] != frame["right"]) & (frame["column"] < last), "column"].min()
    start = first - COLUMNS // 2 if first >= COLUMNS else 0
    return frame[frame["column"].between(start, start + COLUMNS - 1) | (frame["column"] == last)]


def lines(mistake: str) -> tuple[int, str, str]:
    """The line in this file where it can be made, as its number, as it is with the mistake and as it is without.

    >>> lines("split")[1:]
    ('most = 1', 'most = 1 + hunt.speculative')
    """
    for node in ast.walk(ast.parse(inspect.getsource(sys.modules[__name__]))):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.IfExp):
            chosen = node.value
            name, test, wrong, right = map(ast.unparse, (node.targets[0], chosen.test, chosen.body, chosen.orelse))
            if test.lower() == f"mistake == {mistake!r}":
                return node.lineno, f"{name} = {wrong}", f"{name} = {right}"
    raise LookupError(f"mistake is {mistake!r}; it must be one of {', '.join(MISTAKES)}")
