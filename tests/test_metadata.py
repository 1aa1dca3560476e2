"""The function of the report and the builder: both kernels equal the reference, and bad arguments write nothing."""

import re
from functools import partial
from itertools import accumulate, product, takewhile

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from c128a import backend, combine, kernel, metadata, reference
from c128a.case import Case
from c128a.layout import LAYOUTS, prefill_chunks, step_bases
from c128a.metadata import C128AMetadataBuilder, build_c128a_topk_metadata
from c128a.tiles import TILES, tile_shape
from c128a.width import Shard, active_topk_width
from tests.support.builds import (
    BUILDS,
    DEVICE,
    META,
    POISON,
    assert_equals_reference,
    batches,
    builds,
    ids,
    int32,
    int64,
    layouts,
    poisoned,
)
from tests.support.refused import refused

# The function


@given(batches())
@example(Case.of_tokens([-2, 900, 900], [0, 0, 1], [[3], [4]], [0, 0, 0], 3, width=8))  # 7 entries, a table of 2
def test_random_builds_equal_the_reference_and_touch_nothing_else(case):
    shape = {"ratio": case.compress_ratio, "block_size": case.block_size, "layout": case.layout}
    for build in BUILDS.values():
        inputs, decode = case.tensors(DEVICE)[:4], case.num_decode_tokens
        assert_equals_reference(build, inputs, decode, case.width, capacity=case.capacity, **shape)


# The tile of a build depends on rows × width; these reach each of them with few interpreted programs.
@builds
@pytest.mark.parametrize(
    ("rows", "width", "block_size"),
    [(3, 128, 2), (3, 256, 2), (2049, 256, 2), (80, 1025, 2), (80, 8192, 3), (2048, 8192, 2)],
    ids=str,
)
def test_every_tile_shape_equals_the_reference(build, rows, width, block_size, monkeypatch):
    tile = tile_shape(rows, width)
    monkeypatch.setattr(metadata, "tile_shape", lambda *_: tile)
    metadata.check.cache_clear()
    table = torch.randperm(2 * 4096, dtype=torch.int32).view(2, 4096).to(DEVICE)
    table[:, 1::5] = -1
    inputs = (int64(1_048_575, 300_000, 16_383, 1_048_575, 900), int32(1, 0, 1, 0, 0), table, int64(0, 1, -1, 3, 4))
    assert_equals_reference(build, inputs, 3, width, block_size=block_size)


def arguments(**changes):
    """The batch of the pull request's own test, of one decode and one prefill token."""
    return {
        "positions": int64(255, 511),
        "compress_ratio": 128,
        "num_decode_tokens": 1,
        "token_to_req_indices": int32(0, 0),
        "block_table": int32(3).view(1, 1),
        "block_size": 256,
        "slot_mapping": int64(0, 1),
        "global_decode_buffer": poisoned(2, 256),
        "decode_lens_buffer": poisoned(2),
        "prefill_buffer": poisoned(2, 256),
        "max_compressed_tokens": 128,
    } | changes


WHOLE = poisoned(8, 256)
FLAT = WHOLE.view(-1)
TAKEN = {
    "a table of one column with a stride of its own": {"block_table": int32(3, 9, 4).view(1, 3)[:, :1]},
    "buffers with strides of their own": {
        "global_decode_buffer": poisoned(2, 512)[:, :256],
        "prefill_buffer": poisoned(2, 384),
        "layout": "pitched",
    },
    "buffers that touch": {"layout": "pitched", "global_decode_buffer": WHOLE[4:6], "prefill_buffer": WHOLE[6:]},
    "integers of numpy and of tensors on the host": {
        "num_decode_tokens": np.int64(2),
        "max_compressed_tokens": torch.tensor(128),
        "compress_ratio": np.int32(128),
        "block_size": np.uint16(256),
    },
}


@builds
@pytest.mark.parametrize("changes", TAKEN.values(), ids=TAKEN)
def test_unusual_arguments_are_taken(build, changes):
    batch = {"positions": int64(255, 511, 255, 511), "num_decode_tokens": 2}
    call = arguments(**batch | changes)
    decode, lens, prefill = build(**call)
    assert [ids(row) for row in decode] == [[768, 769], [768, 769, 770, 771]] and lens.tolist() == [2, 4]
    assert [ids(row) for row in prefill] == [[0, 1], [0, 1, 2, 3]]
    strides = [call[name].stride(0) for name in ("global_decode_buffer", "prefill_buffer")]
    assert [decode.stride(0), prefill.stride(0)] == (strides if "layout" in changes else [128, 128])


@builds
@layouts
def test_incident_13_zero_tokens_give_empty_views_and_launch_nothing(build, layout, monkeypatch):
    def launched(*_):
        raise AssertionError("a kernel was launched")

    monkeypatch.setattr(kernel, "launcher", launched)
    monkeypatch.setattr(kernel.Plan, "launch_row_loop", launched)
    empty = {"positions": int64(), "num_decode_tokens": 0, "slot_mapping": int64()}
    assert [view.shape for view in build(**arguments(**empty, layout=layout))] == [(0, 128), (0,), (0, 128)]


BAD = {
    ValueError: {
        "max_compressed_tokens is 512; global_decode_buffer": {"max_compressed_tokens": 512},
        "max_compressed_tokens is 128; prefill_buffer": {"prefill_buffer": poisoned(2, 64)},
        r"prefill_buffer of shape \(1, 256\) is .* 2 rows": {"num_decode_tokens": 0, "prefill_buffer": WHOLE[:1]},
        "decode_lens_buffer holds 1 elements": {"num_decode_tokens": 2, "decode_lens_buffer": poisoned(1)},
        "token_to_req_indices holds 1": {"num_decode_tokens": 2, "token_to_req_indices": int32(0)},
        "slot_mapping holds 0 elements": {"slot_mapping": int64()},
        "num_decode_tokens is 3.* 2 tokens": {"num_decode_tokens": 3},
        "num_decode_tokens is -1": {"num_decode_tokens": -1},
        "max_compressed_tokens is 0": {"max_compressed_tokens": 0},
        "compress_ratio is 0": {"compress_ratio": 0},
        "compress_ratio is 2147483648": {"compress_ratio": 2**31},
        "block_size is 0": {"block_size": 0},
        r"block_table has shape \(1,\); .* 2 dimension": {"block_table": int32(3)},
        r"positions has shape \(\); it must have 1 dimension": {"positions": int64(3)[0]},
        r"global_decode_buffer has strides \(1, 256\)": {"global_decode_buffer": poisoned(256, 256).t()},
        "prefill_buffer has row stride 512 and 256 columns": {"prefill_buffer": poisoned(2, 512)[:, :256]},
        "row stride of 255; rows of 256 columns": {"prefill_buffer": FLAT.as_strided((2, 256), (255, 1))},
        "row stride of 2147483648": {"prefill_buffer": FLAT.as_strided((1, 256), (2**31, 1))},
        "slot_mapping is on meta": {"slot_mapping": META.long()},
        "layout is 'loose'; it must be one of packed, pitched": {"layout": "loose"},
        r"layout is \[\]": {"layout": []},
        "prefill_buffer and global_decode_buffer overlap": {
            "global_decode_buffer": WHOLE[1:3],
            "prefill_buffer": FLAT[200:712].view(2, 256),
        },
        "global_decode_buffer and decode_lens_buffer overlap": {
            "global_decode_buffer": WHOLE[:2],
            "decode_lens_buffer": FLAT[100:102],
        },
        "rank is 2; it must be between 0 and 1": {"shard": Shard(2, 2)},
        "size is 0": {"shard": Shard(0, 0)},
        "interleave is 0": {"shard": Shard(0, 2, 0)},
        "do not fit in int32": {"shard": Shard(0, 2**20, 2**11)},
    },
    TypeError: {
        "positions is torch.int32": {"positions": int32(255, 511)},
        "block_table is torch.int64": {"block_table": int64(3).view(1, 1)},
        "slot_mapping is of NoneType": {"slot_mapping": None},
        "decode_lens_buffer is torch.float32": {"decode_lens_buffer": poisoned(2).float()},
        "compress_ratio is nan": {"compress_ratio": float("nan")},
        "block_size is '2'": {"block_size": "2"},
        r"shard is \(1, 2\); it must be a Shard": {"shard": (1, 2)},
    },
}


@refused(BAD)
def test_bad_argument_is_named_and_nothing_is_written(error, words, call):
    given = arguments(**call)
    with pytest.raises(error, match=words):
        build_c128a_topk_metadata(**given)
    assert all((given[name] == POISON).all() for name in metadata.BUFFERS)


def test_what_equals_an_integer_is_none_even_where_a_plan_of_that_integer_is_kept():
    call = arguments(max_compressed_tokens=1)
    build_c128a_topk_metadata(**call)
    for name, wrong in product(("num_decode_tokens", "max_compressed_tokens"), (True, 1.0, torch.tensor(True))):
        with pytest.raises(TypeError, match=f"{name} is {re.escape(repr(wrong))}"):
            build_c128a_topk_metadata(**call | {name: wrong})


SHRINK = {
    "resize_": lambda buffer: buffer.resize_(1, 256),
    "set_": lambda buffer: buffer.set_(buffer.untyped_storage(), 0, (2, 64), (64, 1)),
    "as_strided_": lambda buffer: buffer.as_strided_((2, 64), (256, 1)),
    "data-narrowed": lambda buffer: setattr(buffer, "data", buffer.data[:1]),
    "storage-resized": lambda buffer: buffer.untyped_storage().resize_(512 * 4),
}


@pytest.mark.parametrize("shrink", SHRINK.values(), ids=SHRINK)
def test_a_buffer_made_smaller_in_place_is_refused_by_the_next_build(shrink):
    call = arguments(num_decode_tokens=2, layout="pitched", global_decode_buffer=poisoned(3, 256)[1:])
    build_c128a_topk_metadata(**call)
    shrink(call["global_decode_buffer"])
    with pytest.raises(ValueError, match="global_decode_buffer"):
        build_c128a_topk_metadata(**call)


def test_the_views_of_two_builds_are_objects_of_their_own():
    call = arguments()
    for view in build_c128a_topk_metadata(**call):
        view.unsqueeze_(0)
    assert [view.dim() for view in build_c128a_topk_metadata(**call)] == [2, 1, 2]


def plan(layout="packed", **changes):
    """What is launched for a call: see `arguments`."""
    call = arguments(**changes)
    sizes = [call[name] for name in ("num_decode_tokens", "compress_ratio", "block_size", "max_compressed_tokens")]
    tensors = [tuple(call[name] for name in names) for names in (metadata.BUFFERS, metadata.INPUTS)]
    return metadata.make_plan(layout, *sizes, *tensors)


def test_the_tile_is_chosen_by_decode_and_prefill_rows_together():
    rows = torch.empty(2049, 8192, dtype=torch.int32, device=DEVICE)
    buffers = {"global_decode_buffer": rows[:1], "prefill_buffer": rows[1:]}
    made = plan(positions=torch.zeros_like(rows[:, 0], dtype=torch.int64), max_compressed_tokens=8192, **buffers)
    assert made.tile == tile_shape(2049, 8192) != tile_shape(1, 8192)


UNITS = {  # elements that are stored at once: 4 where every row starts on 16 bytes
    "aligned": (4, {}),
    "prefill rows that start later": (4, {"prefill_buffer": FLAT[4:516].view(2, 256)}),
    "prefill rows off 16 bytes": (1, {"prefill_buffer": FLAT[1:513].view(2, 256)}),
    "decode rows off 16 bytes": (1, {"global_decode_buffer": FLAT[1:513].view(2, 256)}),
    "width": (1, {"max_compressed_tokens": 130}),
    "decode stride": (1, {"layout": "pitched", "global_decode_buffer": FLAT[:516].view(2, 258)}),
    "prefill stride": (1, {"layout": "pitched", "prefill_buffer": FLAT[:516].view(2, 258)}),
}


@pytest.mark.parametrize(("unit", "changes"), UNITS.values(), ids=UNITS)
def test_16_bytes_are_stored_at_once_where_every_row_starts_on_16_bytes(unit, changes):
    assert plan(**changes).unit == unit


def test_without_a_gpu_and_without_the_interpreter_a_call_says_what_is_missing(monkeypatch):
    monkeypatch.setattr(backend, "INTERPRET", False)
    monkeypatch.setattr(backend, "HAS_GPU", False)
    metadata.check.cache_clear()
    combine.plan.cache_clear()
    rows, lens, lengths = poisoned(1, 256), poisoned(1), (int32(301), int32(128), 512, 2)
    for call in (
        *(partial(build, **arguments()) for build in BUILDS.values()),
        partial(combine.combine_prefill_indices, int64(300), int32(0), *lengths, rows, lens),
        partial(combine.combine_from_rows, poisoned(1, 128), int32(0, 1), *lengths, rows, lens),
    ):
        with pytest.raises(RuntimeError, match=r"TRITON_INTERPRET=0 .* no NVIDIA GPU"):
            call()
    assert (rows == POISON).all() and (lens == POISON).all()


# The builder

REQUESTS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 32_000)), max_size=3)  # tokens of a query and before it
STEPS = st.lists(st.tuples(REQUESTS, st.integers(0, 3), st.booleans()), min_size=1, max_size=2)
THREE, TWO = [(1, 700)] * 3, [(2, 700), (1, 700)]


@given(st.sampled_from(LAYOUTS), st.integers(0, 3), st.none() | st.integers(1, 400), STEPS)
@example("pitched", 0, None, [([(1, 16_000), (7, 16_000)], 0, False)])  # the one decode row is all that is left
@example("pitched", 1, None, [(THREE, 0, False), (TWO, 0, True), (THREE, 0, False)])
@example("packed", 1, 400, [([(2, 700), (5, 900), (1, 700)], 2, False), ([(1, 20_000), (6, 800)], 0, False)])
def test_the_steps_of_a_builder_equal_the_reference(layout, k, workspace_rows, steps):
    """A step is its requests, the padding tokens of a graph behind them, and whether the GPU alone knows boundaries."""
    tokens = max(max(len(requests), sum(query for query, _ in requests) + padded, 1) for requests, padded, _ in steps)
    options = {"num_speculative_tokens": k, "workspace_rows": workspace_rows, "device": DEVICE}
    made = C128AMetadataBuilder(32_768, tokens, layout=layout, **options)
    for buffer in (made._rows, made.decode_lens_buffer, made._combined_lens):
        buffer.fill_(POISON)
    for requests, padded, on_device in steps:
        queries, seqs = [query for query, _ in requests], [query + before for query, before in requests]
        first = len(list(takewhile(lambda query: query <= 1 + k, queries)))  # decode requests come before
        case, starts = Case(tuple(queries), tuple(seqs), first, max_model_len=32_768), [0, *accumulate(queries)]
        decode = case.num_decode_tokens + (padded if first == len(queries) else 0)
        batch, pad = case.tensors(DEVICE), partial(torch.nn.functional.pad, pad=(0, padded))
        positions, slots = pad(batch.positions, value=300), pad(batch.slot_mapping, value=-1)
        of_token = pad(batch.token_to_req_indices, value=-1)
        table = torch.cat([batch.block_table, batch.block_table])  # engines have rows for more requests than a step
        has_prefill = len(positions) > decode
        more = {"seq_lens": seqs} if workspace_rows else {}
        if on_device and not (workspace_rows and has_prefill):
            starts, more["num_decode_tokens"] = int32(*starts), decode
        got = made.build(positions, starts, case.max_seq_len, table, slots, **more)

        width, part = active_topk_width(case.max_seq_len, 128, 256), slice(decode, None)
        stride = width if layout == "packed" else 256
        rows, lens, prefill = reference.topk_metadata(positions, 128, decode, of_token, table, 2, slots, width)
        assert (got.width, got.num_decode_tokens) == (width, decode)
        found = [(got.global_decode_topk_indices, rows[:, None], stride)] if decode else []
        if has_prefill and workspace_rows:
            chunks = prefill_chunks(seqs[first:], queries[first:], workspace_rows=workspace_rows)
            bases = [int32(*[-1] * first, *of_chunks) for of_chunks in step_bases(chunks)]
            inputs = (positions[part], of_token[part], batch.seq_lens, batch.gather_lens, *bases)
            combined, combined_lens = reference.combined_rows(*inputs, width + 128)
            found += [(got.combined_indices, combined, stride + 128), (got.combined_lens, combined_lens, 1)]
            assert got.chunks == chunks and got.prefill_topk_indices is None
        elif has_prefill:
            found += [(got.prefill_topk_indices, prefill, stride)]
            assert got.combined_indices is None
        assert torch.equal(got.decode_topk_lens, lens) if decode else got.decode_topk_lens is None
        assert (got.global_decode_topk_indices is None) == (decode == 0)
        for view, expected, row_stride in found:
            assert torch.equal(view, expected) and view.stride(0) == row_stride
        if decode:  # no build moves it
            assert got.global_decode_topk_indices.data_ptr() == made.global_decode_buffer.data_ptr()


# The released builder holds 2 × 8192 × 8192 × 4 = 512 MiB; 8,192 rows of 8,320 columns are 260 MiB.
@pytest.mark.parametrize(("mib", "options"), [(272, {"max_num_seqs": 512}), (290, {"workspace_rows": 100_000})])
def test_buffers_of_the_baseline_deployment_stay_within(mib, options):
    made = C128AMetadataBuilder(1_048_576, 8192, layout="pitched", device="meta", **options)
    assert made.capacity == 8192 and made.reserved_bytes <= mib * 2**20


def builder(model_len=65_536, tokens=64, layout="pitched", **options):
    return C128AMetadataBuilder(model_len, tokens, layout=layout, device=DEVICE, **options)


def test_a_builder_has_rows_for_the_tokens_of_every_sequence_and_widths_of_its_policy():
    made = builder(max_num_seqs=3, num_speculative_tokens=2, policy="aligned")
    assert made.max_decode_tokens == made.global_decode_buffer.shape[0] == 9
    assert made.width_for(40_000) == 384  # 312 entries; the next power of two is 512


def test_warmup_lists_one_variant_for_each_tile_shape():
    assert [(*variant.constants[-2:], variant.warps) for variant in builder().warmup()] == list(TILES)


def two(
    positions=(600, 601), starts=(0, 1, 2), seq=602, table_rows=2, seq_lens=None, num_decode_tokens=None, **options
):
    """A build of two tokens, of a request each unless the starts say otherwise."""
    table, slots = int32(*range(3 * table_rows)).view(table_rows, 3), int64(*positions)
    lens = {"seq_lens": seq_lens, "num_decode_tokens": num_decode_tokens}
    return builder(**options).build(int64(*positions), starts, seq, table, slots, **lens)


STEP = {"positions": (899, 895, 896, 897, 898, 899), "starts": (0, 1, 6), "seq": 900, "workspace_rows": 1000}
ON_DEVICE = {"starts": int32(0, 1, 2), "num_decode_tokens": 2}
BAD_BATCHES = {
    ValueError: {
        "max_seq_len is 70,000: its rows need 546 columns, but the capacity is 512": {"seq": 70_000},
        "positions has 2 tokens; max_num_batched_tokens is 1": {"tokens": 1},
        "2 decode tokens; max_num_seqs × decode_threshold allows 1": {"max_num_seqs": 1},
        "query_start_loc is .* must start at 0": {"starts": (1, 2)},
        "must start at 0 and end at most at the 2 tokens": {"starts": (0, 3)},
        "query_start_loc is .* must not decrease": {"starts": (0, 2, 1)},
        r"query_start_loc is \[\]": {"starts": ()},
        r"query_start_loc is \[2\]": {"starts": 2},
        "block_table has 1 rows; the batch has 2 decode requests": {"table_rows": 1},
        "query_start_loc is empty": ON_DEVICE | {"starts": int32()},
        "num_decode_tokens is 3; the step has 2 tokens": ON_DEVICE | {"num_decode_tokens": 3},
        "block_table has 1 rows; query_start_loc has 2 requests": ON_DEVICE | {"table_rows": 1},
        "num_decode_tokens is 1 of 2 tokens": ON_DEVICE | {"num_decode_tokens": 1, "workspace_rows": 4096},
        "seq_lens is missing": STEP,
        r"seq_lens has shape \(1,\); query_start_loc has 2 requests": STEP | {"seq_lens": (900,)},
        r"seq_lens\[1\] is 4; its query has 5 tokens": STEP | {"seq_lens": (900, 4)},
        r"seq_lens\[0\] is 901; max_seq_len is 900": STEP | {"seq_lens": (901, 900)},
        "layout is 'loose'; it must be one of packed, pitched": {"layout": "loose"},
        "max_num_batched_tokens is 0": {"tokens": 0},
        "max_num_seqs is 0": {"max_num_seqs": 0},
        "num_speculative_tokens is -1": {"num_speculative_tokens": -1},
        "decode_threshold is 0": {"decode_threshold": 0},
        "kv_block_size is 64; it must be a multiple of 128": {"kv_block_size": 64},
        "kv_block_size is 200": {"kv_block_size": 200},
        "policy is 'widest'": {"policy": "widest"},
        "max_model_len is 0": {"model_len": 0},
        "workspace_rows is 0": {"workspace_rows": 0},
    },
    TypeError: {
        r"query_start_loc is \[0.0, 1.7": {"starts": [0, 1.7, 2]},
        r"query_start_loc is \[False, True\]": {"starts": [False, True]},
        "query_start_loc is of list": ON_DEVICE | {"starts": [0, 1, 2]},
        "query_start_loc is torch.int64": ON_DEVICE | {"starts": int64(0, 1, 2)},
        "num_decode_tokens is True": ON_DEVICE | {"num_decode_tokens": True},
        "max_seq_len is 512.0": {"seq": 512.0},
        **{f"{name} is 256.5": {name: 256.5} for name in ("max_num_seqs", "num_speculative_tokens", "kv_block_size")},
        "max_model_len is 256.5": {"model_len": 256.5},
        "max_num_batched_tokens is 256.5": {"tokens": 256.5},
    },
}


@refused(BAD_BATCHES)
def test_a_batch_or_a_builder_over_the_limits_is_refused(error, words, call):
    with pytest.raises(error, match=words):
        two(**call)


def test_integers_of_numpy_and_torch_are_lengths_and_offsets():
    for starts in (np.array([0, 1, 2], dtype=np.int32), torch.tensor([0, 1, 2]), [0, 1, 2]):
        assert two(starts=starts, seq=np.int64(602)).decode_topk_lens.tolist() == [4, 4]


def test_layout_has_no_default():
    with pytest.raises(TypeError, match="layout"):
        C128AMetadataBuilder(4096, 8)


def test_the_longest_decode_query_follows_from_the_drafts_unless_it_is_given():
    # Under context parallel it is one token, while the sliding-window builder keeps 1 + k.
    drafts, ranks = {"num_speculative_tokens": 2}, {"shard": Shard(1, 8)}
    for options, threshold in ((drafts, 3), (drafts | ranks, 1), (drafts | ranks | {"decode_threshold": 5}, 5)):
        assert builder(**options).decode_threshold == threshold
