"""What a deployment must hold and do before its first request: buffers, and what to warm up or capture. Torch-free."""

from __future__ import annotations

from dataclasses import dataclass

from c128a.deployment.serving import POLICY_NAMES, Setup
from c128a.layout import ITEMSIZE


@dataclass(frozen=True)
class Buffer:
    """One int32 buffer: its shape with this package's builder, and its bytes there and with the released builder."""

    name: str
    rows: int
    columns: int
    bytes: int
    released_bytes: int


@dataclass(frozen=True)
class WarmUp:
    """Something to do before the first request: what, with which values, and why."""

    what: str
    values: tuple[int, ...]
    why: str


def buffers(setup: Setup) -> tuple[Buffer, ...]:
    """The buffers of a builder, those that grow with the batch.

    The released one holds max_num_batched_tokens rows for decode as well as for prefill. This package's holds as many
    decode rows as a step can have, the first of them on the last prefill row: no step needs both.
    """
    tokens, columns, rows = setup.max_num_batched_tokens, setup.capacity, setup.decode_rows
    full = tokens * columns * ITEMSIZE
    return (
        Buffer("decode rows", rows - 1, columns, (rows - 1) * columns * ITEMSIZE, full),
        Buffer("prefill rows", tokens, columns, full, full),
        Buffer("decode lens", rows, 1, rows * ITEMSIZE, tokens * ITEMSIZE),
        Buffer("request ids", rows, 1, rows * ITEMSIZE, tokens * ITEMSIZE),
    )


def warm_up(setup: Setup) -> tuple[WarmUp, ...]:
    """What to warm up or capture, so that no request waits for a compilation and no graph meets a foreign stride."""
    widths = tuple(setup.widths)
    todo = [WarmUp("widths", widths, f"all that a {POLICY_NAMES[setup.policy]} can be")]
    if setup.graph == "full" and setup.layout == "packed" and setup.adaptive:
        todo.append(WarmUp("a graph for each width", widths, "packed rows are right only in the graph of their width"))
    elif setup.graph == "full":
        todo.append(WarmUp("graphs at the capacity", (setup.capacity,), "the row stride is the same in every step"))
    if setup.release:
        why = "Triton compiles apart a count of 1, a multiple of 16, and the rest"
        todo.append(WarmUp("decode rows", setup.decode_kinds, why))
        table = -(-setup.max_model_len // setup.block_size)
        todo.append(WarmUp("block-table columns", (table,), "a row stride that 16 does not divide is another variant"))
    return tuple(todo)
