"""A case is the batch that its lengths describe, whatever it is asked for."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from c128a.case import CAPACITY, MAX_MODEL_LEN, PRESETS, Case
from c128a.width import capacity_width
from tests.support.refused import refused

DESCRIBED = {
    "prefill queries end at the context": (  # a request of 3 tokens and one of 2
        Case.prefill(5, 3),
        {"positions": [0, 1, 2, 1, 2], "token_to_req_indices": [0, 0, 0, 1, 1], "num_decode_tokens": 0},
    ),
    "one long among short sets the width of all": (  # 32,896 tokens need 257 columns
        Case.one_long(3, 32_896, 300),
        {"positions": [32_895, 299, 299], "width": 512, "entries": [257, 2, 2]},
    ),
    "speculative rows are the last positions of each request": (
        Case.decode(2, 100, 2),
        {"positions": [97, 98, 99, 97, 98, 99], "num_decode_tokens": 6, "query_start_loc": [0, 3, 6]},
    ),
    "what is given replaces what the lengths say": (
        Case.of_tokens([0, 127, -1], [2, -1], [[4, -1], [9, 8]], [0, -1], 2, width=8, capacity=13),
        {"positions": [0, 127, -1], "token_to_req_indices": [2, -1], "width": 8, "entries": [0, 1, 0], "capacity": 13},
    ),
    "a given position under 0 is a padded token": (
        replace(Case.decode(2, 300), given_positions=(-1, 299)),
        {"slot_mapping": [-1, 1]},
    ),
    "a sequence over the capacity is told, not refused": (
        Case.decode(1, 66_048, max_model_len=65_536),
        {"needed": 516, "capacity": 512, "width": 512, "fits": False, "entries": [512]},
    ),
}


@pytest.mark.parametrize(("case", "expected"), DESCRIBED.values(), ids=DESCRIBED)
def test_the_batch_follows_from_its_lengths(case, expected):
    assert {name: np.array(getattr(case, name)).tolist() for name in expected} == expected


def test_no_two_requests_share_a_block_and_another_batch_can_stand_apart():
    table = Case.mixed(5, 300, 2_000).block_table
    assert table.shape == (6, 8) and len(np.unique(table)) == table.size
    apart = Case.mixed(5, 300, 2_000, first_block=6 * MAX_MODEL_LEN // 256).block_table
    assert not np.isin(apart, table).any()


def test_a_request_keeps_its_blocks_when_the_batch_grows_and_another_seed_gives_others():
    short, long = Case.decode(4, 5_000), Case.decode(4, 50_000)
    assert (long.block_table[:, :20] == short.block_table).all()
    assert (Case.decode(4, 5_000, seed=1).block_table != short.block_table).any()


def test_a_case_is_a_key_and_its_arrays_cannot_be_written():
    case = Case.decode(2, 1_000)
    assert {case: 1}[Case.decode(2, 1_000)] == 1 and replace(case, seed=1) != case
    with pytest.raises(ValueError, match="read-only"):
        case.positions[0] = 5


def test_tensors_have_the_dtypes_of_the_builder_and_gather_the_window_before_the_queries():
    tensors = Case.mixed(1, 3, 1_000, first_block=7).tensors()
    int32, int64 = torch.int32, torch.int64
    assert [tensor.dtype for tensor in tensors] == [int64, int32, int32, int64, int32, int32]
    # 127 tokens before the first query of a request lie in its window, itself being the 128th.
    assert (tensors.seq_lens.tolist(), tensors.gather_lens.tolist()) == ([1_000, 1_000], [128, 130])


BAD = {
    "query_lens has 1 requests, seq_lens 2": {"query_lens": (1,), "seq_lens": (1, 2)},
    r"query_lens\[1\] is 3": {"query_lens": (1, 3)},
    r"query_lens\[0\] is -1": {"query_lens": (-1, 1)},
    "decode_requests is 3; it must be between 0 and 2": {"decode_requests": 3},
    "kv_block_size is 200": {"kv_block_size": 200},
    "compress_ratio, 0": {"compress_ratio": 0},
    "policy is 'wide'": {"policy": "wide"},
    "layout is 'loose'": {"layout": "loose"},
    "max_model_len is 0": {"max_model_len": 0},
    "given_width is 9000; it must be between 1 and capacity, 8192": {"given_width": 9_000},
    "given_capacity is 0": {"given_capacity": 0},
    "given_positions has 1 tokens": {"given_positions": (1,)},
    "given_requests has 0 tokens; it must have 1 to 2": {"given_requests": ()},
    r"given_table has rows of \[1, 2\] blocks": {"given_table": ((1,), (1, 2))},
}


@refused({ValueError: BAD})
def test_what_contradicts_itself_is_refused_by_name(error, words, call):
    with pytest.raises(error, match=words):
        Case(**{"query_lens": (1, 1), "seq_lens": (2, 2), "decode_requests": 1} | call)


SIZES = {"pr_test": (256, 128), "pro_pr": (8192, 256), "flash_1m": (CAPACITY, CAPACITY), "one_long": (8192, 8192)}
SIZES |= {"len_70000": (640, 640), "len_33792": (384, 384), "small": (128, 128)}  # 640 and 384 are no powers of two


def test_a_preset_gives_the_capacity_and_width_it_stands_for():
    cases = {name: Case.decode(1, preset.seq, max_model_len=preset.model_len) for name, preset in PRESETS.items()}
    assert {name: (case.capacity, case.width) for name, case in cases.items()} == SIZES
    assert capacity_width(MAX_MODEL_LEN) == CAPACITY
