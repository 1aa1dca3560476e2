"""The function of the report and the builder: both kernels equal the reference, and bad arguments write nothing."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from c128a import kernel, metadata, reference
from c128a.case import Case
from c128a.layout import prefill_chunks, step_bases
from c128a.metadata import C128AMetadataBuilder, build_c128a_topk_metadata
from c128a.tiles import TILES, tile_shape
from scripts.random_builds import check_build
from tests.support.builds import BUILDS, DEVICE, POISON, assert_equals_reference, batch_of, ids, int32, int64, poisoned

builds = pytest.mark.parametrize("build", BUILDS.values(), ids=BUILDS.keys())
layouts = pytest.mark.parametrize("layout", ["packed", "pitched"])
BUFFERS = ("global_decode_buffer", "decode_lens_buffer", "prefill_buffer")


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


# The function


@builds
@pytest.mark.parametrize("width", [1, 7, 8, 127, 128, 129, 384, 1025])
def test_odd_widths_equal_the_reference(build, width):
    inputs = (int64(128 * width - 1, 5000, 127, 128 * width + 500), int32(0, 0, 0, 0), int32(*range(600)).view(1, -1))
    assert_equals_reference(build, (*inputs, int64(0, 1, 2, 3)), 2, width, capacity=width + 3, layout="pitched")


# The tile of a build depends on rows × width; these reach each of them with few interpreted programs.
@pytest.mark.parametrize(
    ("rows", "width", "block_size"),
    [(3, 128, 2), (3, 256, 2), (2049, 256, 2), (80, 8192, 2), (80, 8192, 3), (2048, 8192, 2)],
    ids=str,
)
def test_every_tile_shape_equals_the_reference(rows, width, block_size, monkeypatch):
    tile = tile_shape(rows, width)
    monkeypatch.setattr(metadata, "tile_shape", lambda *_: tile)
    metadata.check.cache_clear()
    table = torch.randperm(2 * 4096, dtype=torch.int32).view(2, 4096).to(DEVICE)
    table[:, 1::5] = -1
    inputs = (int64(1_048_575, 300_000, 16_383, 1_048_575, 900), int32(1, 0, 1, 0, 0), table, int64(0, 1, -1, 3, 4))
    assert_equals_reference(build_c128a_topk_metadata, inputs, 3, width, block_size=block_size)


def test_random_builds_equal_the_reference_and_touch_nothing_else():
    for seed in range(25):
        check_build(np.random.default_rng(seed))


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (int32(*range(20)).view(4, 5)[:, 1:3], [[12, 13, 14, 15], [32, 33, 34, 35]]),  # five elements a row
        (int32(*range(20)).view(5, 4).t()[:, :1], [[2, 3, -1, -1], [6, 7, -1, -1]]),  # one; four a column, and no other
    ],
    ids=["two columns", "one column"],
)
def test_a_table_slice_with_a_stride_of_its_own_is_read_by_that_stride(table, expected):
    batch = {"positions": int64(511, 511), "num_decode_tokens": 2, "token_to_req_indices": int32(1, 3)}
    decode, _, _ = build_c128a_topk_metadata(**arguments(**batch, block_table=table, block_size=2))
    assert decode[:, :4].tolist() == expected


@builds
def test_pitched_rows_have_the_stride_of_their_own_buffer(build):
    buffers = {"global_decode_buffer": poisoned(2, 512)[:, :256], "prefill_buffer": poisoned(2, 384)}
    batch = {"positions": int64(255, 511, 255, 511), "num_decode_tokens": 2, "token_to_req_indices": int32(0, 0)}
    decode, _, prefill = build(**arguments(**buffers, **batch, layout="pitched"))
    assert (decode.stride(0), prefill.stride(0)) == (512, 384)
    assert [ids(row) for row in decode] == [[768, 769], [768, 769, 770, 771]]
    assert [ids(row) for row in prefill] == [[0, 1], [0, 1, 2, 3]]


@pytest.mark.skipif(DEVICE.type != "cpu", reason="tensors without memory are refused before their strides")
def test_a_row_stride_over_32_bits_is_refused():
    call = {name: value.to("meta") if torch.is_tensor(value) else value for name, value in arguments().items()}
    call["prefill_buffer"] = torch.empty(2**32, dtype=torch.int32, device="meta").as_strided((2, 256), (2**31, 1))
    with pytest.raises(ValueError, match="prefill_buffer has a row stride of 2147483648"):
        build_c128a_topk_metadata(**call, layout="pitched")


@builds
@layouts
def test_incident_13_zero_tokens_give_empty_views_and_launch_nothing(build, layout, monkeypatch):
    def launched(*_):
        raise AssertionError("a kernel was launched")

    monkeypatch.setattr(kernel, "launcher", launched)
    monkeypatch.setattr(kernel.Plan, "launch_row_loop", launched)
    decode, lens, prefill = build(
        **arguments(positions=int64(), num_decode_tokens=0, layout=layout, slot_mapping=int64())
    )
    assert (decode.shape, lens.shape, prefill.shape) == ((0, 128), (0,), (0, 128))


BAD = {
    "width-over-capacity": ({"max_compressed_tokens": 512}, "max_compressed_tokens is 512; global_decode_buffer"),
    "narrow-prefill": ({"prefill_buffer": poisoned(2, 64)}, "max_compressed_tokens is 128; prefill_buffer"),
    "few-decode-rows": (
        {"num_decode_tokens": 2, "global_decode_buffer": poisoned(1, 256)},
        r"global_decode_buffer of shape \(1, 256\) is too small for 2 rows",
    ),
    "few-prefill-rows": (
        {"num_decode_tokens": 0, "prefill_buffer": poisoned(1, 256)},
        r"prefill_buffer of shape \(1, 256\) is too small for 2 rows",
    ),
    "few-lens": ({"num_decode_tokens": 2, "decode_lens_buffer": poisoned(1)}, "decode_lens_buffer holds 1 elements"),
    "few-requests": ({"num_decode_tokens": 2, "token_to_req_indices": int32(0)}, "token_to_req_indices holds 1"),
    "few-slots": ({"slot_mapping": int64()}, "slot_mapping holds 0 elements"),
    "decode-over-tokens": ({"num_decode_tokens": 3}, "num_decode_tokens is 3.* 2 tokens"),
    "decode-negative": ({"num_decode_tokens": -1}, "num_decode_tokens is -1"),
    "width-0": ({"max_compressed_tokens": 0}, "max_compressed_tokens is 0"),
    "ratio-0": ({"compress_ratio": 0}, "compress_ratio is 0"),
    "ratio-over-int32": ({"compress_ratio": 2**31}, "compress_ratio is 2147483648"),
    "block-0": ({"block_size": 0}, "block_size is 0"),
    "block-over-int32": ({"block_size": 2**31}, "block_size is 2147483648"),
    "table-1d": ({"block_table": int32(3)}, r"block_table has shape \(1,\); it must have 2 dimension"),
    "positions-0d": ({"positions": int64(3)[0]}, r"positions has shape \(\); it must have 1 dimension"),
    "decode-transposed": (
        {"global_decode_buffer": poisoned(256, 256).t()},
        r"global_decode_buffer has strides \(1, 256\); its last dimension must be contiguous",
    ),
    "packed-in-a-slice": (
        {"prefill_buffer": poisoned(2, 512)[:, :256]},
        "prefill_buffer has row stride 512 and 256 columns; packed rows need a contiguous buffer",
    ),
    "rows-on-each-other": (
        {"prefill_buffer": poisoned(1, 512).as_strided((2, 256), (255, 1)), "layout": "pitched"},
        "prefill_buffer has a row stride of 255; rows of 256 columns would overlap",
    ),
    "other-device": ({"slot_mapping": torch.empty(2, dtype=torch.int64, device="meta")}, "slot_mapping is on meta"),
    "layout": ({"layout": "loose"}, "layout is 'loose'; it must be one of packed, pitched"),
    "layout-list": ({"layout": []}, r"layout is \[\]"),
}
WRONG_TYPES = {
    "positions": int32(255, 511),
    "token_to_req_indices": int64(0, 0),
    "block_table": int64(3).view(1, 1),
    "slot_mapping": None,
    "global_decode_buffer": poisoned(2, 256).long(),
    "decode_lens_buffer": poisoned(2).float(),
    "prefill_buffer": [[0] * 256] * 2,
}


@builds
@pytest.mark.parametrize(("changes", "message"), BAD.values(), ids=BAD.keys())
def test_bad_argument_is_named_and_nothing_is_written(build, changes, message):
    call = arguments(**changes)
    with pytest.raises(ValueError, match=message):
        build(**call)
    assert all((call[name] == POISON).all() for name in BUFFERS)


@pytest.mark.parametrize(("name", "value"), WRONG_TYPES.items(), ids=WRONG_TYPES.keys())
def test_a_tensor_of_another_type_is_named(name, value):
    with pytest.raises(TypeError, match=f"{name} is"):
        build_c128a_topk_metadata(**arguments(**{name: value}))


@pytest.mark.parametrize("name", ["num_decode_tokens", "max_compressed_tokens", "compress_ratio", "block_size"])
@pytest.mark.parametrize("value", [1.0, float("nan"), True, "2", None, torch.tensor(True)], ids=repr)
def test_what_is_no_integer_is_a_type_error_even_where_an_equal_integer_was_seen(name, value):
    build_c128a_topk_metadata(**arguments(**{name: 1}))
    with pytest.raises(TypeError, match=f"{name} is"):
        build_c128a_topk_metadata(**arguments(**{name: value}))


@builds
def test_integers_of_numpy_and_tensors_on_the_host_are_integers(build):
    sizes = {"max_compressed_tokens": torch.tensor(128), "compress_ratio": np.int32(128), "block_size": np.uint16(256)}
    decode, lens, _ = build(**arguments(num_decode_tokens=np.int64(1), **sizes))
    assert ids(decode[0]) == [768, 769] and lens.tolist() == [2]


SHRINK = {
    "resize_": lambda buffer: buffer.resize_(1, 256),
    "set_": lambda buffer: buffer.set_(buffer.untyped_storage(), 0, (2, 64), (64, 1)),
    "as_strided_": lambda buffer: buffer.as_strided_((2, 64), (256, 1)),
    "data-narrowed": lambda buffer: setattr(buffer, "data", buffer.data[:1]),
    "storage-resized": lambda buffer: buffer.untyped_storage().resize_(512 * 4),
}


@builds
@pytest.mark.parametrize("shrink", SHRINK.values(), ids=SHRINK.keys())
def test_a_buffer_made_smaller_in_place_is_refused_by_the_next_build(build, shrink):
    call = arguments(num_decode_tokens=2, layout="pitched", global_decode_buffer=poisoned(3, 256)[1:])
    build(**call)
    shrink(call["global_decode_buffer"])
    with pytest.raises(ValueError, match="global_decode_buffer"):
        build(**call)


def test_the_views_of_two_builds_are_objects_of_their_own():
    call = arguments()
    for view in build_c128a_topk_metadata(**call):
        view.unsqueeze_(0)
    assert [view.dim() for view in build_c128a_topk_metadata(**call)] == [2, 1, 2]


@builds
@layouts
@pytest.mark.parametrize("overlapping", ["prefill_buffer", "decode_lens_buffer", "global_decode_buffer"])
def test_buffers_that_would_be_written_over_each_other_are_refused_by_name(build, layout, overlapping):
    whole = poisoned(4, 256)
    flat = whole.view(-1)
    changes = {
        "prefill_buffer": {"global_decode_buffer": whole[:2], "prefill_buffer": whole[:2]},
        "decode_lens_buffer": {"global_decode_buffer": whole[:2], "decode_lens_buffer": flat[100:102]},
        "global_decode_buffer": {"global_decode_buffer": whole[1:3], "prefill_buffer": flat[320:832].view(2, 256)},
    }[overlapping]
    with pytest.raises(ValueError, match=f"{overlapping}.* overlap|overlap.*{overlapping}"):
        build(**arguments(**changes, layout=layout))
    assert (whole == POISON).all()


def test_buffers_that_touch_do_not_overlap():
    whole = poisoned(2, 256)
    call = arguments(global_decode_buffer=whole[:1], prefill_buffer=whole[1:], layout="pitched")
    decode, _, prefill = build_c128a_topk_metadata(**call)
    assert ids(decode[0]) == [768, 769] and ids(prefill[0]) == [0, 1, 2, 3]


def plan(layout="packed", **changes):
    """What is launched for a call: see `arguments`."""
    call = arguments(**changes)
    sizes = [call[name] for name in ("num_decode_tokens", "compress_ratio", "block_size", "max_compressed_tokens")]
    tensors = [tuple(call[name] for name in names) for names in (BUFFERS, metadata.INPUTS)]
    return metadata.make_plan(layout, *sizes, *tensors)


def test_the_tile_is_chosen_by_decode_and_prefill_rows_together():
    positions, rows = torch.zeros(2049, dtype=torch.int64), torch.empty(2048, 8192, dtype=torch.int32, device=DEVICE)
    sizes = {"global_decode_buffer": rows[:1].clone(), "prefill_buffer": rows, "max_compressed_tokens": 8192}
    made = plan(positions=positions.to(DEVICE), **sizes)
    assert made.tile == tile_shape(2049, 8192) != tile_shape(1, 8192)


FLAT = poisoned(1032)


@pytest.mark.parametrize(
    ("changes", "aligned"),
    [
        ({}, True),
        ({"global_decode_buffer": FLAT[1:513].view(2, 256)}, False),
        ({"prefill_buffer": FLAT[1:513].view(2, 256)}, False),
        ({"prefill_buffer": FLAT[4:516].view(2, 256)}, True),
        ({"max_compressed_tokens": 130}, False),
        ({"layout": "pitched", "global_decode_buffer": FLAT[:516].view(2, 258)}, False),
        ({"layout": "pitched", "prefill_buffer": FLAT[:516].view(2, 258)}, False),
    ],
    ids=["aligned", "decode", "prefill", "prefill on 16 bytes", "width", "decode stride", "prefill stride"],
)
def test_16_bytes_are_stored_at_once_where_every_row_starts_on_16_bytes(changes, aligned):
    assert plan(**changes).unit == (4 if aligned else 1)


# The builder


def builder(layout="pitched", model_len=65_536, tokens=64, **options):
    made = C128AMetadataBuilder(model_len, tokens, layout=layout, device=DEVICE, **options)
    for buffer in (made._rows, made.decode_lens_buffer):
        buffer.fill_(POISON)
    return made


def build(made, batch, max_seq_len=None, **lens):
    seq = batch.max_seq_len if max_seq_len is None else max_seq_len
    return made.build(batch.positions, batch.query_start_loc, seq, batch.block_table, batch.slot_mapping, **lens)


@st.composite
def random_batches(draw):
    """A case, its speculative tokens, the padding tokens of a graph behind it, and the workspace of a step or None."""
    k = draw(st.integers(0, 3))
    decode = draw(st.lists(st.integers(0, 1 + k), max_size=5))
    queries = decode + draw(st.lists(st.integers(2 + k, 20), max_size=2))
    seqs = [query + draw(st.integers(0, 3000)) for query in queries]
    case = Case(tuple(queries), tuple(seqs), len(decode), seed=draw(st.integers(0, 9)))
    return case, k, draw(st.integers(0, 4)), draw(st.none() | st.integers(1, 400))  # at most 20 + 40 + 4 = 64 tokens


@layouts
@settings(max_examples=50)
@given(random_batches())
def test_random_batches_equal_the_reference(layout, drawn):
    case, k, padded, workspace_rows = drawn
    batch, first = batch_of(case), case.decode_requests

    def with_padding(tensor, value):
        return torch.cat([tensor, torch.full((padded,), value, dtype=tensor.dtype, device=DEVICE)])

    # A padding token has no slot and no request, and any position.
    batch.positions, batch.slot_mapping = with_padding(batch.positions, 300), with_padding(batch.slot_mapping, -1)
    requests = with_padding(batch.token_to_req_indices, -1)
    decode = batch.num_decode_tokens + (padded if batch.num_decode_tokens == batch.num_tokens else 0)
    made = builder(layout, 4096, num_speculative_tokens=k, workspace_rows=workspace_rows)
    got = build(made, batch, seq_lens=case.seq_lens)

    width = 128  # the capacity
    want = reference.topk_metadata(
        batch.positions, 128, decode, requests, batch.block_table, 2, batch.slot_mapping, width
    )
    assert (got.width, got.num_decode_tokens) == (width, decode)
    if decode:
        assert got.global_decode_topk_indices.shape == (decode, 1, width)
        assert torch.equal(got.global_decode_topk_indices[:, 0], want[0])
        assert torch.equal(got.decode_topk_lens, want[1])
    else:
        assert got.global_decode_topk_indices is None and got.decode_topk_lens is None
    has_prefill = batch.positions.shape[0] > decode
    assert (got.prefill_topk_indices is not None) == (has_prefill and workspace_rows is None)
    assert (got.combined_indices is not None) == (has_prefill and workspace_rows is not None)
    if got.prefill_topk_indices is not None:
        assert torch.equal(got.prefill_topk_indices, want[2])
    elif has_prefill:
        chunks = prefill_chunks(case.seq_lens[first:], case.query_lens[first:], workspace_rows=workspace_rows)
        bases = [int32(*[-1] * first, *of_chunks) for of_chunks in step_bases(chunks)]
        tokens = (batch.positions[decode:], requests[decode:], batch.seq_lens, batch.gather_lens)
        rows, lens = reference.combined_rows(*tokens, *bases, width + 128)
        assert torch.equal(got.combined_indices, rows) and torch.equal(got.combined_lens, lens)
        assert got.chunks == chunks


@pytest.mark.parametrize(("layout", "stride"), [("packed", 128), ("pitched", 512)])
def test_the_stride_of_decode_and_prefill_rows_is_the_width_or_the_capacity(layout, stride):
    batch = batch_of(Case.mixed(2, 2, 900))
    got = build(builder(layout), batch)
    assert got.global_decode_topk_indices.stride(0) == got.prefill_topk_indices.stride(0) == stride
    got = build(builder(layout, workspace_rows=1000), batch, seq_lens=[900] * 3)
    assert got.combined_indices.stride(0) == stride + 128  # the window


@pytest.mark.parametrize(
    ("options", "mib"),
    [
        ({"max_num_seqs": 512}, 272),  # the released builder holds 2 × 8192 × 8192 × 4 = 512 MiB
        ({"workspace_rows": 100_000}, 290),  # 8,192 rows of 8,320 columns are 260 MiB
        ({"workspace_rows": 100_000, "max_num_seqs": 512}, 290),
    ],
    ids=["prefill rows", "combined rows, a decode row a token", "combined rows"],
)
def test_buffers_of_the_baseline_deployment_stay_within(options, mib):
    made = C128AMetadataBuilder(1_048_576, 8192, layout="pitched", device="meta", **options)
    assert made.capacity == 8192
    assert made.reserved_bytes <= mib * 2**20


def test_decode_and_combined_rows_lie_apart_at_every_width():
    made = builder(tokens=8, workspace_rows=20_000)
    case = Case.mixed(3, 5, 900)
    batch = batch_of(case)
    for seq in (65_536, 30_000, 900):  # a longer sequence in the batch makes rows wider, not other
        got = build(made, batch, max_seq_len=seq, seq_lens=case.seq_lens)
        assert got.combined_indices.shape == (5, got.width + 128)
        assert [ids(row) for row in got.combined_indices[:, :7]] == [[*range(7)]] * 5  # 900 // 128 = 7 entries
        assert got.decode_topk_lens.tolist() == [7, 7, 7]
        blocks = batch.block_table[:3, :4].repeat_interleave(2, dim=1)[:, :7]
        want = blocks * 2 + int32(0, 1, 0, 1, 0, 1, 0)
        assert torch.equal(got.global_decode_topk_indices[:, 0, :7], want)


@pytest.mark.parametrize(("decode", "prefill"), [(1, 7), (0, 8)])
def test_decode_and_prefill_rows_of_a_full_batch_never_share_a_cell(decode, prefill):
    # The two buffers share one row; a batch that fills the builder with one decode token uses all rows but that one.
    made = builder(tokens=8, max_num_seqs=4, model_len=16_384)
    batch = batch_of(Case.mixed(decode, prefill, 16_384))
    got = build(made, batch)
    assert torch.equal(got.prefill_topk_indices, reference.prefill_rows(batch.positions[decode:], 128, 128))
    if decode:
        want = reference.decode_rows(batch.positions[:1], 128, int32(0), batch.block_table, 2, 128)
        assert torch.equal(got.global_decode_topk_indices[:, 0], want)


def test_buffers_keep_their_address_over_all_widths():
    made = builder(tokens=4)
    addresses = set()
    for seq in (65_536, 20_000, 4_096):
        got = build(made, batch_of(Case.mixed(2, 2, 4_096)), max_seq_len=seq)
        addresses.add((got.global_decode_topk_indices.data_ptr(), got.prefill_topk_indices.data_ptr()))
    assert len(addresses) == 1


def test_requests_of_a_new_batch_replace_those_of_the_batch_before():
    made = builder(num_speculative_tokens=1)
    for queries in ((1, 1, 1), (2, 1), (1, 2), (1, 1), (2, 2, 1)):
        batch = batch_of(Case(queries, (700,) * len(queries), len(queries)))
        got = build(made, batch)
        want = reference.decode_rows(batch.positions, 128, batch.token_to_req_indices, batch.block_table, 2, 128)
        assert torch.equal(got.global_decode_topk_indices[:, 0], want), queries


@layouts
def test_an_empty_batch_has_no_rows(layout):
    got = builder(layout).build(int64(), [0], 0, int32().view(0, 0), int64())
    assert (got.num_decode_tokens, got.global_decode_topk_indices, got.prefill_topk_indices) == (0, None, None)


def test_a_builder_has_rows_for_the_tokens_of_every_sequence_and_widths_of_its_policy():
    made = builder(max_num_seqs=3, num_speculative_tokens=2, policy="aligned")
    assert made.max_decode_tokens == made.global_decode_buffer.shape[0] == 9
    assert made.width_for(40_000) == 384  # 312 entries; the next power of two is 512


def test_an_empty_query_may_stand_behind_a_prefill():
    got = two(positions=range(595, 600), starts=(0, 5, 5))
    assert got.num_decode_tokens == 0 and got.prefill_topk_indices.shape == (5, 128)


def test_warmup_lists_one_variant_for_each_tile_shape():
    assert [(*variant.constants[-2:], variant.warps) for variant in builder().warmup()] == list(TILES)


def two(positions=(600, 601), starts=(0, 1, 2), seq=602, tokens=64, table_rows=2, seq_lens=None, **options):
    """A build of two tokens, of a request each unless the starts say otherwise."""
    made = builder(tokens=tokens, **options)
    table = int32(*range(3 * table_rows)).view(table_rows, 3)
    return made.build(int64(*positions), starts, seq, table, int64(*positions), seq_lens=seq_lens)


STEP = {"positions": (899, 895, 896, 897, 898, 899), "starts": (0, 1, 6), "seq": 900, "workspace_rows": 1000}
BAD_BATCHES = {
    "seq": ({"seq": 70_000}, "max_seq_len is 70,000: its rows need 546 columns, but the capacity is 512"),
    "tokens": ({"tokens": 1}, "positions has 2 tokens; max_num_batched_tokens is 1"),
    "decode-rows": ({"max_num_seqs": 1}, "2 decode tokens; max_num_seqs × decode_threshold allows 1"),
    "start": ({"starts": (1, 2)}, "query_start_loc is .* must start at 0"),
    "end": ({"starts": (0, 3)}, "must start at 0 and end at most at the 2 tokens"),
    "decrease": ({"starts": (0, 2, 1)}, "query_start_loc is .* must not decrease"),
    "empty": ({"starts": ()}, r"query_start_loc is \[\]"),
    "number": ({"starts": 2}, r"query_start_loc is \[2\]"),
    "table": ({"table_rows": 1}, "block_table has 1 rows; the batch has 2 decode requests"),
    "seq_lens-missing": (STEP, "seq_lens is missing"),
    "seq_lens-one-short": (STEP | {"seq_lens": (900,)}, r"seq_lens has shape \(1,\); query_start_loc has 2 requests"),
    "seq_lens-under-its-query": (STEP | {"seq_lens": (900, 4)}, r"seq_lens\[1\] is 4; its query has 5 tokens"),
    "seq_lens-over-the-longest": (STEP | {"seq_lens": (901, 900)}, r"seq_lens\[0\] is 901; max_seq_len is 900"),
    "layout": ({"layout": "loose"}, "layout is 'loose'; it must be one of packed, pitched"),
    "no-tokens": ({"tokens": 0}, "max_num_batched_tokens is 0"),
    "max_num_seqs": ({"max_num_seqs": 0}, "max_num_seqs is 0"),
    "speculative": ({"num_speculative_tokens": -1}, "num_speculative_tokens is -1"),
    "block-under-ratio": ({"kv_block_size": 64}, "kv_block_size is 64; it must be a multiple of 128"),
    "block-no-multiple": ({"kv_block_size": 200}, "kv_block_size is 200"),
    "policy": ({"policy": "widest"}, "policy is 'widest'"),
    "model_len": ({"model_len": 0}, "max_model_len is 0"),
    "workspace_rows": ({"workspace_rows": 0}, "workspace_rows is 0"),
}


@pytest.mark.parametrize(("options", "message"), BAD_BATCHES.values(), ids=BAD_BATCHES.keys())
def test_a_batch_or_a_builder_over_the_limits_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        two(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        *[({"starts": starts}, "query_start_loc") for starts in ([0, 1.7, 2], [0, float("nan"), 2], [False, True])],
        *[({"seq": length}, "max_seq_len") for length in (float("nan"), 512.0, True)],
        *[({option: 256.5}, f"{option} is 256.5") for option in ("model_len", "tokens", "max_num_seqs")],
        *[({option: 256.5}, f"{option} is 256.5") for option in ("num_speculative_tokens", "kv_block_size")],
    ],
    ids=str,
)
def test_what_is_no_integer_is_a_type_error(options, message):
    with pytest.raises(TypeError, match=message):
        two(**options)


@pytest.mark.parametrize("starts", [np.array([0, 1, 2], dtype=np.int32), torch.tensor([0, 1, 2]), [0, 1, 2]], ids=type)
def test_integers_of_numpy_and_torch_are_lengths_and_offsets(starts):
    assert two(starts=starts, seq=np.int64(602)).decode_topk_lens.tolist() == [4, 4]


def test_layout_has_no_default():
    with pytest.raises(TypeError, match="layout"):
        C128AMetadataBuilder(4096, 8)
