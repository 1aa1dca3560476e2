"""Batches as engines send them: short prompts behind long ones, and boundaries that are decided on the GPU."""

import numpy as np
import pytest
import torch

from c128a import backend, combine, metadata, reference
from c128a.case import Case
from c128a.metadata import C128AMetadataBuilder
from tests.support.builds import BUILDS, DEVICE, POISON, batch_of, int32, int64, poisoned


def builder(**options):
    return C128AMetadataBuilder(65_536, 64, layout="pitched", device=DEVICE, **options)


def step(made, case, starts, **more):
    batch = batch_of(case)
    return made.build(batch.positions, starts, case.max_seq_len, batch.block_table, batch.slot_mapping, **more)


@pytest.mark.parametrize(
    ("queries", "k", "decode_tokens"),
    [((2, 5, 1), 1, 2), ((1, 1, 3, 1, 2), 0, 2), ((6, 7, 1), 5, 6), ((2, 2), 1, 4), ((3, 1), 1, 0), ((0, 2, 3), 1, 2)],
    ids=str,
)
def test_what_follows_the_first_query_over_the_threshold_is_prefill(queries, k, decode_tokens):
    case = Case(queries, (700,) * len(queries), 0)
    got = step(builder(num_speculative_tokens=k), case, case.query_start_loc)
    assert got.num_decode_tokens == decode_tokens
    rows = 0 if got.prefill_topk_indices is None else len(got.prefill_topk_indices)
    assert rows == sum(queries) - decode_tokens


def test_the_threshold_may_be_given():
    case = Case((5, 6), (700, 700), 0)
    assert (
        step(builder(num_speculative_tokens=2, decode_threshold=5), case, case.query_start_loc).num_decode_tokens == 5
    )
    with pytest.raises(ValueError, match="decode_threshold is 0"):
        builder(decode_threshold=0)


@pytest.mark.parametrize("queries", [(1, 1, 1), (3, 0, 2), (1, 4, 1, 2), (2, 2, 7)], ids=str)
def test_boundaries_on_the_device_give_the_rows_of_boundaries_on_the_host(queries):
    case = Case(queries, tuple(300 * (1 + r) for r in range(len(queries))), len(queries))
    made = builder(num_speculative_tokens=3)
    want = step(made, case, case.query_start_loc)
    decode = want.num_decode_tokens
    rows, lens = want.global_decode_topk_indices.clone(), want.decode_topk_lens.clone()
    got = step(made, case, int32(*case.query_start_loc), num_decode_tokens=decode)
    assert torch.equal(got.global_decode_topk_indices, rows)
    assert torch.equal(got.decode_topk_lens, lens)
    again = step(made, case, case.query_start_loc)  # what the host sent before is not taken for what lies there now
    assert torch.equal(again.global_decode_topk_indices, rows)


def test_tokens_behind_the_last_boundary_have_no_rows_though_the_table_is_longer():
    positions, table = int64(300, 600, 600, 600), int32(*range(40)).view(4, 10)
    got = builder().build(positions, int32(0, 1, 2), 601, table, int64(0, 1, -1, -1), num_decode_tokens=4)
    want = reference.decode_rows(positions[:2], 128, int32(0, 1), table, 2, got.width)
    assert torch.equal(got.global_decode_topk_indices[:2, 0], want)
    assert (got.global_decode_topk_indices[2:] == -1).all()
    assert got.decode_topk_lens.tolist() == [2, 4, 0, 0]


@pytest.mark.parametrize(
    ("starts", "count", "options", "error", "message"),
    [
        ([0, 1, 2], 2, {}, TypeError, "query_start_loc is of list"),
        (np.array([0, 1, 2]), 2, {}, TypeError, "query_start_loc is of ndarray"),
        (int64(0, 1, 2), 2, {}, TypeError, "query_start_loc is torch.int64"),
        (int32(), 0, {}, ValueError, "query_start_loc is empty"),
        (int32(0, 1, 2), 3, {}, ValueError, "num_decode_tokens is 3; the step has 2 tokens"),
        (int32(0, 1, 2), True, {}, TypeError, "num_decode_tokens is True"),
        (int32(0, 1, 2, 2), 2, {}, ValueError, "block_table has 2 rows; query_start_loc has 3 requests"),
        (int32(0, 1, 2), 1, {"workspace_rows": 4096}, ValueError, "num_decode_tokens is 1 of 2 tokens"),
    ],
    ids=["list", "numpy", "int64", "empty", "over", "bool", "table", "combined"],
)
def test_boundaries_on_the_device_that_do_not_fit_are_refused(starts, count, options, error, message):
    case = Case((1, 1), (300, 600), 2)
    with pytest.raises(error, match=message):
        step(builder(**options), case, starts, num_decode_tokens=count)


def test_without_a_gpu_and_without_the_interpreter_a_call_says_what_is_missing(monkeypatch):
    monkeypatch.setattr(backend, "INTERPRET", False)
    monkeypatch.setattr(backend, "HAS_GPU", False)
    metadata.check.cache_clear()
    combine.plan.cache_clear()
    buffers = poisoned(1, 128), poisoned(1), poisoned(1, 128)
    tokens, table, out = (int64(300), int32(0)), int32(0).view(1, 1), (poisoned(1, 256), poisoned(1))
    for build in BUILDS.values():
        with pytest.raises(RuntimeError, match=r"TRITON_INTERPRET=0 .* no NVIDIA GPU"):
            build(tokens[0], 128, 1, tokens[1], table, 2, int64(0), *buffers, 128)
    with pytest.raises(RuntimeError, match=r"TRITON_INTERPRET=0 .* no NVIDIA GPU"):
        combine.combine_prefill_indices(*tokens, int32(301), int32(128), 512, 2, *out)
    with pytest.raises(RuntimeError, match=r"TRITON_INTERPRET=0 .* no NVIDIA GPU"):
        combine.combine_from_rows(buffers[2], int32(0, 1), int32(301), int32(128), 512, 2, *out)
    assert all((each == POISON).all() for each in (*buffers, *out))


def test_a_batch_of_the_host_is_sent_again_after_one_whose_boundaries_lay_on_the_device():
    made = builder(num_speculative_tokens=1)
    for queries, on_device in (((1, 1, 1), False), ((2, 1), True), ((1, 1, 1), False)):
        case = Case(queries, (700,) * len(queries), len(queries))
        more = {"num_decode_tokens": 3} if on_device else {}
        got = step(made, case, int32(*case.query_start_loc) if on_device else case.query_start_loc, **more)
        batch = batch_of(case)
        want = reference.decode_rows(batch.positions, 128, batch.token_to_req_indices, batch.block_table, 2, got.width)
        assert torch.equal(got.global_decode_topk_indices[:, 0], want), queries
