import re
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from c128a.width import (
    POLICIES,
    active_topk_width,
    capacity_width,
    loop_trips,
    reachable_widths,
    required_width,
    sequence_range,
)
from tests.support.refused import refused

# (max_seq_len, capacity, columns needed, pow2, aligned)
TABLE = [
    (0, 8192, 0, 128, 128),
    (1, 8192, 0, 128, 128),
    (127, 8192, 0, 128, 128),
    (16_384, 8192, 128, 128, 128),
    (16_511, 8192, 128, 128, 128),
    (16_512, 8192, 129, 256, 256),
    (32_768, 8192, 256, 256, 256),
    (32_895, 8192, 256, 256, 256),
    (32_896, 8192, 257, 512, 384),
    (32_896, 384, 257, 384, 384),
    (100_000, 8192, 781, 1024, 896),
    (524_415, 8192, 4096, 4096, 4096),
    (524_416, 8192, 4097, 8192, 4224),
    (1_048_576, 8192, 8192, 8192, 8192),
    (1_048_576, 7680, 8192, 7680, 7680),
]


@pytest.mark.parametrize(("seq", "capacity", "needed", "pow2", "aligned"), TABLE, ids=lambda value: str(value))
def test_width_of_a_sequence_length(seq, capacity, needed, pow2, aligned):
    assert required_width(seq, 128) == needed
    assert active_topk_width(seq, 128, capacity) == pow2
    assert active_topk_width(seq, 128, capacity, policy="aligned") == aligned
    assert active_topk_width(seq, 128, capacity, policy="fixed") == capacity


def test_capacity_of_a_model_length():
    capacities = {1: 128, 16_384: 128, 16_385: 256, 33_792: 384, 70_000: 640, 1_000_000: 7936, 1_048_576: 8192}
    assert {length: capacity_width(length) for length in capacities} == capacities


WARMED_UP = {
    (1_048_576, "pow2"): [128, 256, 512, 1024, 2048, 4096, 8192],
    (1_048_576, "aligned"): [*range(128, 8193, 128)],
    (1_048_576, "fixed"): [8192],
    (33_792, "pow2"): [128, 256, 384],
    (20_000, "pow2"): [128, 256],
    (16_512, "pow2"): [128, 256],
    (4_096, "pow2"): [128],
}


def test_incident_15_warm_up_lists_end_at_the_capacity():
    for (model_len, policy), widths in WARMED_UP.items():
        assert reachable_widths(capacity_width(model_len), policy=policy) == widths, (model_len, policy)


def test_trips_of_the_row_loop():
    assert [loop_trips(width, 1024) for width in (0, 1, 1024, 1025, 8192)] == [0, 1, 1, 2, 8]


BAD = {
    ValueError: {
        "max_model_len is 0; it must be at least 1": lambda: capacity_width(0),
        "compress_ratio is 0": lambda: capacity_width(128, 0),
        "alignment is 0": lambda: capacity_width(128, alignment=0),
        "max_seq_len is -1; it must be at least 0": lambda: active_topk_width(-1, 128, 8192),
        "capacity is 0": lambda: active_topk_width(1, 128, 0),
        "policy is 'widest'; it must be one of fixed, pow2": lambda: active_topk_width(1, 128, 128, policy="widest"),
        "width is 300; the pow2 policy at capacity 8192 chooses one of": lambda: sequence_range(300, 128, 8192),
        "block_size is 0": lambda: loop_trips(8, 0),
    },
    TypeError: {
        **{
            re.escape(f"max_seq_len is {wrong!r}"): partial(required_width, wrong, 128)
            for wrong in (1.7, float("nan"), True, np.True_, torch.tensor(True), "1", None)
        },
        # A number on a GPU would have to be waited for.
        "max_seq_len is on meta": lambda: required_width(torch.empty((), dtype=torch.int64, device="meta"), 128),
    },
}


@refused(BAD)
def test_bad_argument_is_named_with_its_value(error, words, call):
    with pytest.raises(error, match=words):
        call()


@given(
    st.tuples(st.integers(0, 2**21), st.integers(0, 2**21)).map(sorted),
    st.integers(1, 512),
    st.integers(1, 100).map(lambda blocks: blocks * 128),
    st.sampled_from(POLICIES),
)
def test_a_width_is_monotone_aligned_reachable_and_chosen_for_the_lengths_of_its_range(seqs, ratio, capacity, policy):
    short, long = (active_topk_width(seq, ratio, capacity, policy=policy) for seq in seqs)
    assert short <= long <= capacity
    assert short % 128 == long % 128 == 0
    assert long >= min(seqs[1] // ratio, capacity)
    first, last = sequence_range(long, ratio, capacity, policy=policy)  # raises for a width that is not reachable
    assert first <= seqs[1]
    assert seqs[1] <= last or required_width(seqs[1], ratio) > capacity
    for seq in (first, last):
        assert active_topk_width(seq, ratio, capacity, policy=policy) == long


def test_integers_of_numpy_and_of_tensors_on_the_host_are_lengths():
    assert capacity_width(np.int64(1), np.int32(1)) == 128
    assert active_topk_width(torch.tensor(32_896), 128, np.int64(8192)) == 512
