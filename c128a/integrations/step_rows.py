"""The combined rows of a step, made by its first C128A layer and handed to the others. Importing this needs no torch.

None of the combine's inputs depends on the layer. A step is told by the metadata object that the engine builds for it,
one for each micro-batch: buffers keep their addresses from step to step, so an address tells nothing. Rows are kept
beside the object, under a weak reference, and die with it. They lie in memory of their own, since other layers
overwrite the workspace that a layer offers: up to 273 MB a step of 8192 tokens at a width of 8320.

    the plan of the step is known      one launch makes the rows of all chunks
    it is not                          one launch for each chunk

What does not fit raises, and the engine's own function has to do it.
"""

from __future__ import annotations

import logging
import re
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from c128a.layout import Chunk, step_bases

if TYPE_CHECKING:
    import torch

    Rows = tuple[torch.Tensor, torch.Tensor]  # (tokens, width) and lens (tokens,), both int32

RATIO = 128

_log = logging.getLogger(__name__)


class DoesNotFitError(Exception):
    """The released function has to do this call; the message says why."""


class Call(NamedTuple):
    """What rows depend on beside the step: layers that ask for the same get the same tensors."""

    chunk: Chunk
    tokens: int
    topk_width: int
    window: int
    max_image_tokens: int
    spans: bool  # tokens of an image see further than the window
    state: tuple[int, ...]  # the stream, and how often each input was changed in place


class StepRows:
    """The rows of all steps in flight.

    metadata gives the metadata objects of the running forward pass by layer; plan gives the chunks of such an object,
    each as (start, end, compressed rows, workspace rows).
    """

    def __init__(self, metadata: Callable[[], object], plan: Callable[[Any], Iterable[Iterable[int]]]) -> None:
        self._metadata, self._plan = metadata, plan
        self._kept: dict[int, tuple[weakref.ref[Any], dict[Call, Rows | None]]] = {}
        self._said: set[str] = set()

    def __len__(self) -> int:
        return len(self._kept)

    def say(self, reason: str) -> None:
        """Log a reason the first time that it occurs; its numbers do not make it another one."""
        kind = re.sub(r"\d+", "#", reason)
        if kind not in self._said:
            self._said.add(kind)
            _log.warning("%s", reason)

    def combine(
        self,
        topk_indices: torch.Tensor,
        query_start_loc: torch.Tensor,
        seq_lens: torch.Tensor,
        gather_lens: torch.Tensor,
        window_size: int,
        compress_ratio: int,
        topk: int,
        M: int,  # noqa: N803 (the released name)
        N: int,  # noqa: N803 (the same)
        out: Rows | None = None,
        left_visible: torch.Tensor | None = None,
        right_visible: torch.Tensor | None = None,
        max_image_tokens: int = 0,
    ) -> Rows:
        """Give the rows and lens of one chunk, as vLLM's `combine_topk_swa_indices` does, but not in `out`.

        A row has the n ids that its position sees, where the released one has min(n, topk); the builder's width holds
        all of them. Raises DoesNotFitError, or whatever making the rows raises; nothing is kept then.
        """
        import torch

        if compress_ratio != RATIO:
            raise DoesNotFitError(f"layers of ratio {compress_ratio} keep the released combine")
        stream = 0
        if seq_lens.is_cuda:
            if torch.cuda.is_current_stream_capturing():
                raise DoesNotFitError("a CUDA graph is being captured")
            stream = torch.cuda.current_stream(seq_lens.device).cuda_stream
        metadata = self._metadata()
        if not isinstance(metadata, Mapping):
            raise DoesNotFitError("the forward context has no metadata by layer")
        step, start = find_step(metadata.values(), query_start_loc, seq_lens, gather_lens)

        inputs = [query_start_loc, seq_lens, gather_lens]
        visible: tuple[torch.Tensor, torch.Tensor] | None = None
        if left_visible is not None and max_image_tokens > 0:
            assert right_visible is not None
            visible = left_visible, right_visible
            inputs += visible
        state = (stream, *[0 if tensor.is_inference() else tensor._version for tensor in inputs])
        chunk = Chunk(start, start + seq_lens.shape[0], N, M)
        call = Call(chunk, topk_indices.shape[0], topk, window_size, max_image_tokens, visible is not None, state)

        entries = self._entries(step)
        if call not in entries:
            try:
                entries.update(self._make(step, call, query_start_loc, seq_lens, gather_lens, visible))
            except torch.OutOfMemoryError:
                entries[call] = None  # trying again in every layer would empty the allocator's cache each time
        rows = entries[call]
        if rows is None:
            raise DoesNotFitError("there is no memory for the rows of a step")
        return rows

    def _entries(self, step: Any) -> dict[Call, Rows | None]:
        """What is kept for a metadata object; it dies with the object, before another can get its id."""
        kept = self._kept.get(id(step))
        if kept is not None and kept[0]() is step:
            return kept[1]
        key, all_kept = id(step), self._kept

        def drop(dead: weakref.ref[Any]) -> None:
            if key in all_kept and all_kept[key][0] is dead:
                del all_kept[key]

        entries: dict[Call, Rows | None] = {}
        self._kept[key] = weakref.ref(step, drop), entries
        return entries

    def _make(
        self,
        step: Any,
        call: Call,
        query_start_loc: torch.Tensor,
        seq_lens: torch.Tensor,
        gather_lens: torch.Tensor,
        visible: tuple[torch.Tensor, torch.Tensor] | None,
    ) -> dict[Call, Rows]:
        """Make the rows of all chunks of the step if its plan has this call, else those of this chunk."""
        try:
            parts = self._parts(step, call, visible)
        except Exception as error:
            self.say(f"each chunk is combined on its own, the plan is not in reach: {type(error).__name__}: {error}")
            alone = call.chunk._replace(start=0, end=seq_lens.shape[0])
            return {call: make_rows(query_start_loc, seq_lens, gather_lens, [alone], call, call.tokens, visible)}
        first, requests, tokens = step.num_decodes, step.num_prefills, step.num_prefill_tokens
        if visible is not None:
            begin = step.num_decode_tokens
            whole = step.prefill_left_visible, step.prefill_right_visible
            visible = whole[0][begin : begin + tokens], whole[1][begin : begin + tokens]
        rows, lens = make_rows(
            step.query_start_loc[first : first + requests + 1],
            step.prefill_seq_lens[:requests],
            step.prefill_gather_lens[:requests],
            [part.chunk for part in parts],
            call,
            tokens,
            visible,
        )
        return {part: (rows[begin:end], lens[begin:end]) for part, (begin, end) in parts.items()}

    def _parts(
        self, step: Any, call: Call, visible: tuple[torch.Tensor, torch.Tensor] | None
    ) -> dict[Call, tuple[int, int]]:
        """The calls of all chunks of the step, and where the tokens of each begin and end among its prefill tokens."""
        starts = step.query_start_loc_cpu
        if starts.device.type != "cpu":
            raise DoesNotFitError("the offsets of the requests are not on the host")
        first = step.num_decodes
        offsets = [int(offset) for offset in starts[first : first + step.num_prefills + 1].tolist()]
        parts = {}
        for chunk in [Chunk(*part) for part in self._plan(step)]:
            begin, end = offsets[chunk.start] - offsets[0], offsets[chunk.end] - offsets[0]
            parts[call._replace(chunk=chunk, tokens=end - begin)] = begin, end
        bounds = [bound for part in parts for bound in part.chunk[:2]]
        if call not in parts or bounds[1:-1:2] != bounds[2::2] or (bounds[0], bounds[-1]) != (0, step.num_prefills):
            raise DoesNotFitError("the plan of the step does not have this chunk")
        if visible is not None and call.tokens:
            token = step.num_decode_tokens + parts[call][0]
            whole = step.prefill_left_visible, step.prefill_right_visible
            if [place(*pair) for pair in zip(visible, whole, strict=True)] != [token, token]:
                raise DoesNotFitError("the visible tokens are not those of the step")
        return parts


def find_step(
    metadata: Iterable[Any], query_start_loc: torch.Tensor, seq_lens: torch.Tensor, gather_lens: torch.Tensor
) -> tuple[Any, int]:
    """The one metadata object whose memory holds these slices, and the prefill request at which they start.

    Raises DoesNotFitError where no object or several do.
    """
    found = []
    for step in {id(step): step for step in metadata}.values():
        if getattr(step, "prefill_seq_lens", None) is None:
            continue
        start = place(seq_lens, step.prefill_seq_lens)
        if (
            start is not None
            and start + seq_lens.shape[0] <= step.num_prefills
            and place(gather_lens, step.prefill_gather_lens) == start
            and place(query_start_loc, step.query_start_loc) == step.num_decodes + start
        ):
            found.append((step, start))
    if len(found) != 1:
        raise DoesNotFitError(f"{len(found)} metadata objects of the forward context hold the lengths of the call")
    return found[0]


def place(part: torch.Tensor, whole: torch.Tensor) -> int | None:
    """The element of `whole` at which `part`, a slice of it, begins; None where it is no slice of it."""
    begin, rest = divmod(part.data_ptr() - whole.data_ptr(), whole.element_size())
    held = part.numel() > 0 and rest == 0 and 0 <= begin <= whole.numel() - part.numel()
    return begin if held and part.dtype == whole.dtype else None


def make_rows(
    query_start_loc: torch.Tensor,
    seq_lens: torch.Tensor,
    gather_lens: torch.Tensor,
    chunks: list[Chunk],
    call: Call,
    tokens: int,
    visible: tuple[torch.Tensor, torch.Tensor] | None,
) -> Rows:
    """One launch for these chunks, in new memory, without waiting for the device.

    query_start_loc (requests + 1,), seq_lens and gather_lens (requests,) int32; visible (tokens,) int32 each.
    """
    import torch

    from c128a.combine import combine_step_indices, combined_width

    device = seq_lens.device
    host = torch.tensor(step_bases(chunks), dtype=torch.int32, pin_memory=seq_lens.is_cuda)
    bases = host.to(device, non_blocking=True)  # (2, requests)
    token = torch.arange(tokens, dtype=torch.int32, device=device)
    ends = query_start_loc[1:] - query_start_loc[0]  # (requests,)
    request = torch.searchsorted(ends, token, right=True, out_int32=True)  # (tokens,)
    positions = (seq_lens - ends).index_select(0, request.clamp(max=len(ends) - 1)) + token
    left, right = visible or (None, None)
    return combine_step_indices(
        positions.long(),
        request,
        seq_lens,
        gather_lens,
        bases[0],
        bases[1],
        torch.empty(
            (tokens, combined_width(call.topk_width, call.window, call.max_image_tokens)),
            dtype=torch.int32,
            device=device,
        ),
        torch.empty(tokens, dtype=torch.int32, device=device),
        window=call.window,
        left_visible=left,
        right_visible=right,
    )
