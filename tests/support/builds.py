"""Calls of the function of the report on poisoned buffers, and what they must give."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from hypothesis import strategies as st

from c128a import backend, reference
from c128a.case import Case
from c128a.layout import LAYOUTS, RowLayout
from c128a.metadata import build_c128a_topk_metadata, build_with_row_loop

POISON = 12_345
BUILDS = {"tiled": build_c128a_topk_metadata, "row_loop": build_with_row_loop}
DEVICE = backend.device()
META = torch.empty(1, dtype=torch.int32, device="meta")  # a tensor on another device
builds = pytest.mark.parametrize("build", BUILDS.values(), ids=BUILDS)
layouts = pytest.mark.parametrize("layout", LAYOUTS)


def int32(*values):
    return torch.tensor(values, dtype=torch.int32, device=DEVICE)


def int64(*values):
    return torch.tensor(values, dtype=torch.int64, device=DEVICE)


def poisoned(*shape):
    return torch.full(shape, POISON, dtype=torch.int32, device=DEVICE)


def far_apart(path, rows, columns):
    """Rows 2^31 - 1 elements apart, in a file that takes room only for the cells that are written."""
    stride, start = 2**31 - 1, 1024
    memory = torch.from_file(str(path), shared=True, size=start + rows * stride, dtype=torch.int32)
    return memory.as_strided((rows, columns), (stride, 1), start)


@st.composite
def batches(draw):
    """Small batches with any fault that a batch can have: its requests, blocks, slots and positions."""
    ratio, block_size = draw(st.sampled_from([1, 4, 100, 128])), draw(st.sampled_from([1, 2, 3, 64]))
    width = draw(st.integers(1, 40) | st.integers(127, 129))
    positions = draw(st.lists(st.integers(-2, ratio * (width + 9)), min_size=1, max_size=7))
    blocks = st.integers(1, 12).flatmap(
        lambda n: st.lists(st.tuples(*[st.integers(-1, 90)] * n), min_size=1, max_size=4)
    )
    table, count = draw(blocks), len(positions)
    requests = draw(st.lists(st.integers(-1, len(table)), min_size=count, max_size=count))
    slots = draw(st.lists(st.integers(-1, 2), min_size=count, max_size=count))
    shape = {"width": width, "capacity": width + draw(st.integers(0, 5)), "layout": draw(st.sampled_from(LAYOUTS))}
    shape |= {"compress_ratio": ratio, "kv_block_size": ratio * block_size}
    return Case.of_tokens(positions, requests, table, slots, draw(st.integers(0, count)), **shape)


def batch_of(case):
    """The tensors of a case on the device and its host numbers, by the names of the builder's arguments."""
    names = ("query_start_loc", "num_decode_tokens", "num_tokens", "max_seq_len")
    return SimpleNamespace(**case.tensors(DEVICE)._asdict(), **{name: getattr(case, name) for name in names})


def step(builder, case, max_seq_len=None):
    """What a builder makes of a case, at the width of max_seq_len."""
    positions, _, table, slots, *_ = case.tensors(DEVICE)
    return builder.build(positions, case.query_start_loc, max_seq_len or case.max_seq_len, table, slots)


def ids(row):
    """The cells of a row before its pads, after checking that only pads follow."""
    values = row.tolist()
    live = [value for value in values if value != -1]
    assert values == live + [-1] * (len(values) - len(live))
    return live


def assert_equals_reference(
    build, inputs, num_decode, width, *, ratio=128, block_size=2, layout="packed", capacity=None
):
    """Build on poisoned buffers; compare every cell of the views, and every cell outside them."""
    positions, requests, table, slots = inputs
    capacity = capacity or width
    num_prefill = positions.shape[0] - num_decode
    decode, prefill = poisoned(num_decode + 1, capacity), poisoned(num_prefill + 1, capacity)
    lens = poisoned(num_decode + 1)
    asked = (positions, ratio, num_decode, requests, table, block_size, slots)
    got = build(*asked, decode, lens, prefill, width, layout=layout)
    want = reference.topk_metadata(*asked, width)
    for name, view, expected in zip(("global_decode", "decode_lens", "prefill_local"), got, want, strict=True):
        assert view.shape == expected.shape, name
        assert torch.equal(view, expected), f"{name}: {view.tolist()} is not {expected.tolist()}"
    for name, buffer, rows in (("decode", decode, num_decode), ("prefill", prefill, num_prefill)):
        untouched = buffer.flatten().clone()
        RowLayout.named(layout, rows, width, capacity).view(untouched).fill_(POISON)
        assert (untouched == POISON).all(), f"{name}: a cell outside the view was written"
    assert (lens[num_decode:] == POISON).all(), "a lens outside the view was written"
