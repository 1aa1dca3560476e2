"""The builder an engine holds: builder = reference on random batches, and every limit refused with its numbers."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from c128a import reference
from c128a.builder import C128AMetadataBuilder
from c128a.case import Case
from c128a.width import active_topk_width
from tests.support.builds import DEVICE, POISON, batch_of, ids, int32, int64

layouts = pytest.mark.parametrize("layout", ["packed", "pitched"])


def builder(layout="pitched", model_len=65_536, tokens=64, **options):
    made = C128AMetadataBuilder(model_len, tokens, layout=layout, device=DEVICE, **options)
    for buffer in (made._rows, made.decode_lens_buffer):
        buffer.fill_(POISON)
    return made


def build(made, batch, max_seq_len=None):
    seq = batch.max_seq_len if max_seq_len is None else max_seq_len
    return made.build(batch.positions, batch.query_start_loc, seq, batch.block_table, batch.slot_mapping)


@st.composite
def random_batches(draw):
    k = draw(st.integers(0, 3))
    decode = draw(st.lists(st.integers(0, 1 + k), max_size=5))
    prefill = draw(st.lists(st.integers(2 + k, 20), max_size=2))
    queries = decode + prefill
    seqs = [query + draw(st.integers(0, 3000)) for query in queries]
    padded = draw(st.integers(0, 4))  # at most 20 + 40 + 4 = 64 tokens
    return k, queries, seqs, len(decode), padded, draw(st.sampled_from(["packed", "pitched"])), draw(st.integers(0, 9))


@settings(max_examples=60, deadline=None)
@given(random_batches())
def test_random_batches_equal_the_reference(case):
    k, queries, seqs, num_decode_requests, padded, layout, seed = case
    batch = batch_of(Case(tuple(queries), tuple(seqs), num_decode_requests, seed=seed))
    # Padding tokens of a graph: position 0, no slot, and no request.
    positions = torch.cat([batch.positions, torch.zeros(padded, dtype=torch.int64, device=DEVICE)])
    slots = torch.cat([batch.slot_mapping, torch.full((padded,), -1, dtype=torch.int64, device=DEVICE)])
    requests = torch.cat([batch.token_to_req_indices, torch.full((padded,), -1, dtype=torch.int32, device=DEVICE)])
    num_decode = batch.num_decode_tokens
    if num_decode == batch.num_tokens:
        num_decode += padded

    made = builder(layout, model_len=4096, tokens=64, num_speculative_tokens=k)
    got = made.build(positions, batch.query_start_loc, batch.max_seq_len, batch.block_table, slots)

    width = active_topk_width(batch.max_seq_len, 128, made.capacity)
    want = reference.topk_metadata(positions, 128, num_decode, requests, batch.block_table, 2, slots, width)
    assert (got.width, got.num_decode_tokens) == (width, num_decode)
    stride = width if layout == "packed" else made.capacity
    if num_decode:
        assert got.global_decode_topk_indices.shape == (num_decode, 1, width)
        assert torch.equal(got.global_decode_topk_indices[:, 0], want[0])
        assert torch.equal(got.decode_topk_lens, want[1])
        assert num_decode == 1 or got.global_decode_topk_indices.stride(0) == stride
    else:
        assert got.global_decode_topk_indices is None and got.decode_topk_lens is None
    if positions.shape[0] > num_decode:
        assert torch.equal(got.prefill_topk_indices, want[2])
    else:
        assert got.prefill_topk_indices is None


def test_buffers_of_the_baseline_deployment_stay_within_272_mib():
    made = C128AMetadataBuilder(1_048_576, 8192, layout="pitched", max_num_seqs=512, device="meta")
    assert made.capacity == 8192
    assert made.reserved_bytes <= 272 * 2**20
    released = 2 * 8192 * 8192 * 4
    assert released == 512 * 2**20


def test_without_prefill_rows_only_decode_rows_are_held():
    made = C128AMetadataBuilder(1_048_576, 8192, layout="pitched", max_num_seqs=512, prefill_rows=False, device="meta")
    assert made.prefill_buffer is None
    assert made.reserved_bytes == 512 * 8192 * 4 + 2 * 512 * 4


def test_without_prefill_rows_a_mixed_batch_builds_its_decode_rows():
    batch = batch_of(Case.mixed(2, 5, 1024))
    made = builder(prefill_rows=False)
    got = build(made, batch)
    want = reference.decode_rows(batch.positions[:2], 128, int32(0, 1), batch.block_table, 2, 128)
    assert torch.equal(got.global_decode_topk_indices[:, 0], want)
    assert got.prefill_topk_indices is None


def test_decode_and_prefill_rows_of_one_batch_never_share_a_cell():
    # The two buffers share one row; a batch that fills the builder with one decode token uses all rows but that one.
    made = builder(tokens=8, max_num_seqs=4, model_len=16_384)
    batch = batch_of(Case.mixed(1, 7, 16_384))
    got = build(made, batch)
    assert torch.equal(got.prefill_topk_indices, reference.prefill_rows(batch.positions[1:], 128, 128))
    want = reference.decode_rows(batch.positions[:1], 128, int32(0), batch.block_table, 2, 128)
    assert torch.equal(got.global_decode_topk_indices[:, 0], want)


def test_buffers_keep_their_address_over_all_widths():
    made = builder(model_len=1_048_576, tokens=4)
    addresses = set()
    for seq in (1_048_576, 300_000, 4_096):
        got = build(made, batch_of(Case.mixed(2, 2, 4_096)), max_seq_len=seq)
        addresses.add((got.global_decode_topk_indices.data_ptr(), got.prefill_topk_indices.data_ptr()))
    assert len(addresses) == 1


def test_requests_of_a_new_batch_replace_those_of_the_batch_before():
    made = builder(num_speculative_tokens=1)
    for queries in ([1, 1, 1], [2, 1], [1, 2], [1, 1], [2, 2, 1]):
        batch = batch_of(Case(tuple(queries), (700,) * len(queries), len(queries)))
        got = build(made, batch)
        want = reference.decode_rows(batch.positions, 128, batch.token_to_req_indices, batch.block_table, 2, 128)
        assert torch.equal(got.global_decode_topk_indices[:, 0], want), queries


def test_query_start_loc_may_be_a_list():
    batch = batch_of(Case.decode(2, 512))
    got = builder().build(batch.positions, [0, 1, 2], 512, batch.block_table, batch.slot_mapping)
    assert got.decode_topk_lens.tolist() == [4, 4]


@layouts
def test_an_empty_batch_has_no_rows(layout):
    got = builder(layout).build(int64(), [0], 0, int32().view(0, 0), int64())
    assert (got.num_decode_tokens, got.global_decode_topk_indices, got.prefill_topk_indices) == (0, None, None)


def test_warmup_lists_one_variant_for_each_tile_shape():
    from c128a.tiles import TILES

    assert [variant.tile for variant in builder().warmup()] == list(TILES)


def two(positions=(600, 601), starts=(0, 1, 2), seq=602, tokens=64, **options):
    made = builder(tokens=tokens, **options)
    return made.build(int64(*positions), list(starts), seq, int32(*range(6)).view(2, 3), int64(*positions))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seq": 70_000}, "max_seq_len is 70,000: its rows need 546 columns, but the capacity is 512"),
        ({"tokens": 1}, "positions has 2 tokens; max_num_batched_tokens is 1"),
        (
            {"max_num_seqs": 1},
            r"the batch has 2 decode tokens; max_num_seqs × \(1 \+ num_speculative_tokens\) allows 1",
        ),
        ({"starts": (1, 2)}, "query_start_loc is .* must start at 0"),
        ({"starts": (0, 3)}, "must start at 0 and end at most at the 2 tokens"),
        ({"starts": (0, 2, 1)}, "it must not decrease"),
        ({"starts": ()}, r"query_start_loc is \[\]"),
        (
            {"positions": (5, 6, 7), "starts": (0, 2, 3)},
            r"request 1 \(query length 1, decode up to 1\) behind prefill request 0; decode requests must come first",
        ),
    ],
    ids=["seq", "tokens", "decode-rows", "start", "end", "decrease", "empty", "order"],
)
def test_a_batch_over_the_limits_is_refused_before_anything_is_written(options, message):
    with pytest.raises(ValueError, match=message):
        two(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layout": "loose"}, "layout is 'loose'; it must be one of packed, pitched"),
        ({"tokens": 0}, "max_num_batched_tokens is 0"),
        ({"max_num_seqs": 0}, "max_num_seqs is 0"),
        ({"num_speculative_tokens": -1}, "num_speculative_tokens is -1"),
        ({"kv_block_size": 64}, "kv_block_size is 64; it must be a multiple of 128"),
        ({"kv_block_size": 200}, "kv_block_size is 200"),
        ({"policy": "widest"}, "policy is 'widest'"),
        ({"model_len": 0}, "max_model_len is 0"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_builder_that_cannot_work_is_not_made(options, message):
    with pytest.raises(ValueError, match=message):
        builder(**options)


def test_layout_has_no_default():
    with pytest.raises(TypeError, match="layout"):
        C128AMetadataBuilder(4096, 8)


def test_decode_rows_hold_the_ids_of_their_own_request():
    batch = batch_of(Case.decode(3, 1001))
    got = build(builder("packed"), batch)
    for row, table in zip(got.global_decode_topk_indices[:, 0], batch.block_table.tolist(), strict=True):
        assert ids(row) == [slot for block in table for slot in (2 * block, 2 * block + 1)][:7]
