"""Words with a meaning of their own, explained once, for a page to open under a picture. Torch-free.

>>> "row stride" in WORDS["pitch"]
True
"""

from __future__ import annotations

from functools import lru_cache

import marimo as mo

from c128a.case import COMPRESS_RATIO, ENTRIES_PER_BLOCK, KV_BLOCK_SIZE
from c128a.trace import STEP
from c128a.width import TOPK_ALIGNMENT

WORDS = {
    "entry": f"The key and the value that stand for {COMPRESS_RATIO} consecutive tokens. They are numbered from 0 in "
    + "each sequence, and a query sees those that are complete at its position.",
    "block": f"The unit in which requests get memory of the KV cache: {KV_BLOCK_SIZE} tokens, which are "
    + f"{ENTRIES_PER_BLOCK} entries.",
    "block table": "For each request the numbers of its blocks in the KV cache, in the order of its tokens.",
    "slot": "The place of one entry in the KV cache: number of the block × entries of a block + place in the block.",
    "row": "The index row of one query: the ids of the entries that it may read, then pads. Row 0 comes first.",
    "column": "A cell of a row, an int32 of 4 bytes. Column j holds the id of entry j.",
    "width": f"The columns that are built in this step, as many for all rows: from {TOPK_ALIGNMENT} to the capacity. "
    + "The longest sequence of the batch decides.",
    "capacity": "The columns that a row of the buffer has: enough for the longest sequence that the model allows.",
    "pad": "A cell of a row behind its last id. It holds −1.",
    "lens": "How many ids each row holds; one number a row.",
    "stride": "The cells from the start of a row to the start of the next. Column j of row r lies at r × stride + j.",
    "packed": "Rows without a gap between them. Their stride is the width, so they move when the width changes.",
    "pitch": "A stride that does not follow the width. The row stride of pitched rows is the capacity; they stay put.",
    "stale": "A cell that this step did not write. It holds what an earlier step left.",
    "trip": f"One turn of the loop in which a program writes its row, {STEP:,} columns at most.",
    "lane": "The part of a program that deals with one column of a trip.",
}


@lru_cache
def words(*chosen: str) -> mo.Html:
    """A closed box that explains the chosen words, keys of WORDS, in this order; raises KeyError for another word.

    >>> "Rows without a gap" in words("packed", "stride").text
    True
    """
    told = "\n".join(f"- **{word}**: {WORDS[word]}" for word in chosen)
    return mo.accordion({f"Words: {', '.join(chosen)}": mo.md(told)})
