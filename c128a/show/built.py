"""What the kernel itself leaves in its buffers, run on this machine. Needs torch and triton once it is called."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from c128a.case import Case
from c128a.trace import BLANK

Arrays = dict[str, Any]  # of numpy, int32: decode (rows, columns), lens (decode rows,), prefill (rows, columns)


@lru_cache(maxsize=32)
def built(kernel: str, *cases: Case) -> tuple[Arrays, Arrays, str]:
    """The whole buffers after builds of these cases one over the other, the rows of the last, and what ran them.

    kernel: "row_loop" or "tiled". All cells held BLANK at first. Shared: do not write to them. Raises ImportError where
    torch or triton is missing.
    """
    import torch

    from c128a import backend, metadata

    *earlier, case = cases
    build: Any = metadata.build_c128a_topk_metadata if kernel == "tiled" else metadata.build_with_row_loop
    given = case.tensors(backend.device())
    decode = max(1, *(one.decode_rows.rows for one in cases))
    prefill = max(1, *(one.prefill_rows.rows for one in cases))
    sizes = {"decode": (decode, case.capacity), "lens": (decode,), "prefill": (prefill, case.capacity)}
    buffers = [torch.full(size, BLANK, dtype=torch.int32, device=given.positions.device) for size in sizes.values()]
    # What the earlier builds left does not depend on this one: a key press pays for one build only.
    for buffer, left in zip(buffers, built(kernel, *earlier)[0].values() if earlier else (), strict=False):
        buffer[: len(left)] = torch.from_numpy(left)
    sized = case.compress_ratio, case.num_decode_tokens, given.token_to_req_indices, given.block_table, case.block_size
    with backend.kernel_lock:
        views = build(given.positions, *sized, given.slot_mapping, *buffers, case.width, layout=case.layout)
    whole, rows = (dict(zip(sizes, (one.cpu().numpy() for one in of), strict=True)) for of in (buffers, views))
    return whole, rows, backend.describe()
