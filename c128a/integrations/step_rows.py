"""The combined rows of a step, made by its first C128A layer and handed to the others. Importing this needs no torch.

None of the combine's inputs depends on the layer. Addresses stay from step to step, so two objects tell a step: its
metadata, one for each micro-batch, and the context of its forward pass, since a draft model can get the metadata of
the target. Rows are kept beside the two and die with either. They have memory of their own, up to 273 MB a step of 8192
tokens at a width of 8320, since other layers overwrite the workspace that a layer offers. Where the engine's plan is in
reach, one launch makes the rows of all chunks. What does not fit raises, and is left to the released function.
"""

from __future__ import annotations

import itertools
import logging
import re
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from c128a.layout import Chunk, step_bases

if TYPE_CHECKING:
    import torch

    Lengths = tuple[torch.Tensor, torch.Tensor, torch.Tensor]  # query_start_loc (requests + 1,), seq_lens, gather_lens
    Visible = tuple[torch.Tensor, torch.Tensor] | None  # tokens of an image to the left and right of each token
    Rows = tuple[torch.Tensor, torch.Tensor]  # (tokens, width) and lens (tokens,); all of these are int32

RATIO = 128


class DoesNotFitError(Exception):
    """The released function has to do this call; the message says why."""


class Call(NamedTuple):
    """What rows depend on beside the step: layers that ask for the same get the same tensors."""

    chunk: Chunk
    tokens: int
    topk_width: int
    window: int
    max_image_tokens: int
    visible_from: int | None  # the chunk's first token among those of the step, where tokens of an image see further
    state: tuple[int, ...]  # the stream, and how often torch counted that each input was changed in place


class StepRows:
    """The rows of all steps in flight; context gives that of the running forward pass, plan the chunks of a step."""

    def __init__(self, context: Callable[[], Any], plan: Callable[[Any], Iterable[Iterable[int]]]) -> None:
        self._context, self._plan = context, plan
        self._kept: dict[tuple[int, int], dict[Call, Rows] | None] = {}  # by ids of living objects; None: no memory
        self._said: set[str] = set()

    def say(self, reason: str) -> None:
        """Log a reason the first time that it occurs; its numbers do not make it another one."""
        kind = re.sub(r"\d+", "#", reason)
        if kind not in self._said:
            self._said.add(kind)
            logging.getLogger(__name__).warning("%s", reason)

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

        A row has all n ids that its position sees, where the released one has min(n, topk). Raises DoesNotFitError, or
        whatever making the rows raises; nothing is kept then.
        """
        import torch

        if compress_ratio != RATIO:
            raise DoesNotFitError(f"layers of ratio {compress_ratio} keep it")
        on_gpu = seq_lens.is_cuda
        if on_gpu and seq_lens.get_device() != torch.cuda.current_device():
            raise DoesNotFitError("the lengths are not on the current device")
        if on_gpu and torch.cuda.is_current_stream_capturing():
            raise DoesNotFitError("a CUDA graph is being captured")
        stream = torch.cuda.current_stream().cuda_stream if on_gpu else 0
        context = self._context()
        if not isinstance(context.attn_metadata, Mapping):
            raise DoesNotFitError("the forward context has no metadata by layer")
        lengths = query_start_loc, seq_lens, gather_lens
        step, start = find_step(context.attn_metadata.values(), lengths)
        visible, visible_from = None, None
        if left_visible is not None and right_visible is not None and max_image_tokens > 0:
            visible = left_visible, right_visible
            visible_from = place(left_visible, step.prefill_left_visible)
            if visible_from is None or visible_from != place(right_visible, step.prefill_right_visible):
                raise DoesNotFitError("the visible tokens are not those of the step")
        chunk = Chunk(start, start + seq_lens.shape[0], N, M)
        state = (stream, *[0 if t.is_inference() else t._version for t in (*lengths, *(visible or ()))])
        call = Call(chunk, topk_indices.shape[0], topk, window_size, max_image_tokens, visible_from, state)

        key = id(context), id(step)
        if key not in self._kept:
            for owner in (context, step):  # gone before another object can get the id
                weakref.finalize(owner, self._kept.pop, key, None).atexit = False
            self._kept[key] = {}
        kept = self._kept[key]
        if kept is None:
            raise DoesNotFitError("there is no memory for the rows of this step")
        if call not in kept:
            try:
                kept.update(self._make(step, call, lengths, visible))
            except torch.OutOfMemoryError:
                self._kept[key] = None  # trying again in every layer would empty the allocator's cache each time
                raise
        return kept[call]

    def _make(self, step: Any, call: Call, lengths: Lengths, visible: Visible) -> dict[Call, Rows]:
        """Make the rows of all chunks of the step if its plan has this call, else those of this chunk."""
        try:
            parts = self._parts(step, call)
        except Exception as error:
            self.say(f"each chunk is combined on its own, the plan is not in reach: {error!r}")
            alone = call.chunk._replace(start=0, end=lengths[1].shape[0])
            return {call: make_rows(call, call.tokens, [alone], lengths, visible)}
        first, last = step.num_decodes, step.num_prefills
        lengths = step.query_start_loc[first:], step.prefill_seq_lens[:last], step.prefill_gather_lens[:last]
        tokens = max(end for _, end in parts.values())
        if visible is not None:
            here = slice(step.num_decode_tokens, step.num_decode_tokens + tokens)
            visible = step.prefill_left_visible[here], step.prefill_right_visible[here]
        rows, lens = make_rows(call, tokens, [part.chunk for part in parts], lengths, visible)
        return {part: (rows[begin:end], lens[begin:end]) for part, (begin, end) in parts.items()}

    def _parts(self, step: Any, call: Call) -> dict[Call, tuple[int, int]]:
        """The calls of all chunks of the step, and where the tokens of each begin and end among its prefill tokens."""
        starts = step.query_start_loc_cpu
        if starts.device.type != "cpu":
            raise DoesNotFitError("the offsets of the requests are not on the host")
        offsets = (starts[step.num_decodes :] - starts[step.num_decodes]).tolist()
        parts, covered = {}, 0
        for chunk in itertools.starmap(Chunk, self._plan(step)):
            begin, end = offsets[chunk.start], offsets[chunk.end]
            visible_from = None if call.visible_from is None else step.num_decode_tokens + begin
            parts[call._replace(chunk=chunk, tokens=end - begin, visible_from=visible_from)] = begin, end
            covered = chunk.end if chunk.start == covered else -1
        if call not in parts or covered != step.num_prefills:
            raise DoesNotFitError("the plan of the step does not have this chunk")
        return parts


def find_step(metadata: Iterable[Any], lengths: Lengths) -> tuple[Any, int]:
    """The one metadata object whose memory holds these slices, and the prefill request at which they start."""
    starts, seq_lens, gather_lens = lengths
    found = []
    for step in {id(step): step for step in metadata if getattr(step, "prefill_seq_lens", None) is not None}.values():
        start = place(seq_lens, step.prefill_seq_lens)
        others = place(gather_lens, step.prefill_gather_lens), place(starts, step.query_start_loc)
        if start is not None and others == (start, step.num_decodes + start):
            found.append((step, start))
    if len(found) != 1:
        raise DoesNotFitError(f"{len(found)} metadata objects of the forward context hold the lengths of the call")
    return found[0]


def place(part: torch.Tensor, whole: torch.Tensor) -> int | None:
    """The element of `whole` at which `part`, a slice of it, begins; None where it is no slice of it."""
    begin = int(part.storage_offset() - whole.storage_offset())
    held = part.untyped_storage().data_ptr() == whole.untyped_storage().data_ptr() and part.dtype == whole.dtype
    dense = part.is_contiguous() and whole.is_contiguous()
    return begin if held and dense and 0 <= begin <= whole.numel() - part.numel() else None


def make_rows(call: Call, tokens: int, chunks: list[Chunk], lengths: Lengths, visible: Visible) -> Rows:
    """One launch for the tokens of these chunks, in new memory, without waiting for the device."""
    import torch

    from c128a.combine import combine_step_indices, combined_width

    starts, seq_lens, gather_lens = lengths
    device, requests = seq_lens.device, seq_lens.shape[0]
    host = torch.tensor(step_bases(chunks), dtype=torch.int32, device="cpu", pin_memory=seq_lens.is_cuda)
    compressed_base, window_base = host.to(device, non_blocking=True)
    token = torch.arange(tokens, dtype=torch.int32, device=device)
    ends = starts[1 : requests + 1] - starts[0]  # (requests,)
    request = torch.searchsorted(ends, token, right=True, out_int32=True)  # (tokens,)
    positions = (seq_lens - ends).index_select(0, request.clamp(max=requests - 1)) + token
    left, right = visible or (None, None)
    width = combined_width(call.topk_width, call.window, call.max_image_tokens)
    out, lens = token.new_empty(tokens, width), token.new_empty(tokens)
    inputs = (positions.long(), request, seq_lens, gather_lens, compressed_base, window_base)
    return combine_step_indices(*inputs, out, lens, window=call.window, left_visible=left, right_visible=right)


def warm_up(window: int, device: torch.device) -> None:
    """Compile what `StepRows` launches, by the rows of one token without and with an image."""
    import torch

    starts = torch.arange(2, dtype=torch.int32, device=device)
    zero, one = starts[:1], starts[1:]
    call = Call(Chunk(0, 1, 0, 1), 1, 0, window, 0, None, ())
    for visible in (None, (zero, zero)):
        make_rows(call, 1, [call.chunk], (starts, one, one), visible)
