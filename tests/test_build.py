"""Kernel = reference, on both layouts, and bad arguments refused before anything is written."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from c128a.build import build_c128a_topk_metadata
from c128a.case import Case
from tests.support.builds import BUILDS, DEVICE, POISON, assert_equals_reference, batch_of, ids, int32, int64, poisoned

builds = pytest.mark.parametrize("build", BUILDS.values(), ids=BUILDS.keys())
layouts = pytest.mark.parametrize("layout", ["packed", "pitched"])


@builds
def test_the_pull_requests_own_values(build):
    decode, lens, prefill = build(
        positions=int64(255, 511),
        compress_ratio=128,
        num_decode_tokens=1,
        token_to_req_indices=int32(0, 0),
        block_table=int32(3).view(1, 1),
        block_size=256,
        slot_mapping=int64(0, 1),
        global_decode_buffer=poisoned(2, 256),
        decode_lens_buffer=poisoned(2),
        prefill_buffer=poisoned(2, 256),
        max_compressed_tokens=128,
    )
    assert decode.shape == prefill.shape == (1, 128)
    assert decode.stride() == prefill.stride() == (128, 1)
    assert ids(decode[0]) == [768, 769]
    assert lens.tolist() == [2]
    assert ids(prefill[0]) == [0, 1, 2, 3]


@builds
def test_the_worked_example_position_1000_sees_7_entries(build):
    table = int32(40, 10, 30, 20).view(1, 4)
    decode, lens, _ = build(
        int64(1000), 128, 1, int32(0), table, 2, int64(5), poisoned(1, 128), poisoned(1), poisoned(1, 128), 128
    )
    assert ids(decode[0]) == [80, 81, 20, 21, 60, 61, 40]
    assert lens.tolist() == [7]


@builds
@layouts
@pytest.mark.parametrize(
    "batch",
    [
        batch_of(Case.decode(3, 1024)),
        batch_of(Case.prefill(5, 700)),
        batch_of(Case.mixed(2, 3, 2048)),
        batch_of(Case.one_long(3, 40_000, 256)),
        batch_of(Case.speculative(2, 3, 520)),
    ],
    ids=["decode", "prefill", "mixed", "one-long", "speculative"],
)
def test_workload_equals_reference(build, layout, batch):
    inputs = (batch.positions, batch.token_to_req_indices, batch.block_table, batch.slot_mapping)
    assert_equals_reference(build, inputs, batch.num_decode_tokens, 384, layout=layout, capacity=512)


@builds
@pytest.mark.parametrize("width", [1, 7, 8, 127, 128, 129, 384, 1025])
def test_odd_widths_equal_reference(build, width):
    inputs = (int64(128 * width - 1, 5000, 127, 128 * width + 500), int32(0, 0, 0, 0), int32(*range(600)).view(1, -1))
    assert_equals_reference(build, (*inputs, int64(0, 1, 2, 3)), 2, width, capacity=width + 3, layout="pitched")


# The tile of a build depends on rows × width; these reach each of them with few interpreted programs.
@pytest.mark.parametrize(
    ("rows", "width"), [(3, 128), (3, 256), (2049, 256), (80, 8192), (2048, 8192)], ids=lambda value: str(value)
)
def test_every_tile_shape_equals_reference(rows, width, monkeypatch):
    from c128a import launch, tiles

    tile = tiles.tile_shape(rows, width)
    monkeypatch.setattr(launch, "tile_shape", lambda *_: tile)
    table = torch.randperm(2 * 4096, dtype=torch.int32).view(2, 4096).to(DEVICE)
    inputs = (int64(1_048_575, 300_000, 16_383, 1_048_575, 900), int32(1, 0, 1, 0, 0), table, int64(0, 1, -1, 3, 4))
    assert_equals_reference(build_c128a_topk_metadata, inputs, 3, width)


position = st.integers(-2, 5000)


@st.composite
def random_builds(draw):
    tokens = draw(st.integers(0, 12))
    num_decode = draw(st.integers(0, tokens))
    table_rows, table_cols = draw(st.integers(1, 3)), draw(st.integers(1, 6))
    cells = draw(st.lists(st.integers(-1, 90), min_size=table_rows * table_cols, max_size=table_rows * table_cols))
    inputs = (
        int64(*draw(st.lists(position, min_size=tokens, max_size=tokens))),
        int32(*draw(st.lists(st.integers(-1, table_rows), min_size=tokens, max_size=tokens))),
        int32(*cells).view(table_rows, table_cols),
        int64(*draw(st.lists(st.integers(-1, 9), min_size=tokens, max_size=tokens))),
    )
    width = draw(st.integers(1, 5).map(lambda k: 8 * k) | st.integers(1, 40))
    return {
        "inputs": inputs,
        "num_decode": num_decode,
        "width": width,
        "ratio": draw(st.sampled_from([4, 100, 128])),
        "block_size": draw(st.sampled_from([1, 2, 3, 64, 256])),
        "layout": draw(st.sampled_from(["packed", "pitched"])),
        "capacity": width + draw(st.integers(0, 9)),
    }


@builds
@settings(max_examples=60, deadline=None)
@given(random_builds())
def test_random_builds_equal_reference_and_touch_nothing_else(build, case):
    assert_equals_reference(build, **case)


def arguments(**changes):
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


BAD = {
    "width-over-capacity": (
        {"max_compressed_tokens": 512},
        r"max_compressed_tokens is 512; global_decode_buffer of shape \(2, 256\)",
    ),
    "narrow-prefill": ({"prefill_buffer": poisoned(2, 64)}, r"max_compressed_tokens is 128; prefill_buffer"),
    "few-decode-rows": (
        {"num_decode_tokens": 2, "global_decode_buffer": poisoned(1, 256)},
        r"global_decode_buffer of shape \(1, 256\) is too small for 2 rows",
    ),
    "few-prefill-rows": (
        {"num_decode_tokens": 0, "prefill_buffer": poisoned(1, 256)},
        r"prefill_buffer of shape \(1, 256\) is too small for 2 rows",
    ),
    "few-lens": (
        {"num_decode_tokens": 2, "decode_lens_buffer": poisoned(1)},
        r"decode_lens_buffer holds 1 elements; num_decode_tokens is 2",
    ),
    "few-requests": (
        {"num_decode_tokens": 2, "token_to_req_indices": int32(0)},
        r"token_to_req_indices holds 1 elements",
    ),
    "few-slots": ({"slot_mapping": int64()}, r"slot_mapping holds 0 elements"),
    "decode-over-tokens": ({"num_decode_tokens": 3}, r"num_decode_tokens is 3; it must be between 0 and the 2 tokens"),
    "decode-negative": ({"num_decode_tokens": -1}, r"num_decode_tokens is -1"),
    "width-0": ({"max_compressed_tokens": 0}, r"max_compressed_tokens is 0; it must be between 1"),
    "ratio-0": ({"compress_ratio": 0}, r"compress_ratio is 0"),
    "block-0": ({"block_size": 0}, r"block_size is 0"),
    "table-1d": ({"block_table": int32(3)}, r"block_table has shape \(1,\); it must have 2 dimension"),
    "decode-transposed": (
        {"global_decode_buffer": poisoned(256, 256).t()},
        r"global_decode_buffer has strides \(1, 256\); its last dimension must be contiguous",
    ),
    "packed-in-a-slice": (
        {"prefill_buffer": poisoned(2, 512)[:, :256]},
        r"prefill_buffer has row stride 512 and 256 columns; packed rows need a contiguous buffer",
    ),
    "layout": ({"layout": "loose"}, r"layout is 'loose'; it must be one of packed, pitched"),
    "other-device": ({"slot_mapping": torch.empty(2, dtype=torch.int64, device="meta")}, r"slot_mapping is on meta"),
}


@builds
@pytest.mark.parametrize(("changes", "message"), BAD.values(), ids=BAD.keys())
def test_bad_argument_is_named_and_nothing_is_written(build, changes, message):
    call = arguments(**changes)
    with pytest.raises(ValueError, match=message):
        build(**call)
    for name in ("global_decode_buffer", "decode_lens_buffer", "prefill_buffer"):
        assert (call[name] == POISON).all(), name


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("positions", int32(255, 511), "positions is torch.int32; it must be torch.int64"),
        ("token_to_req_indices", int64(0, 0), "token_to_req_indices is torch.int64; it must be torch.int32"),
        ("block_table", int64(3).view(1, 1), "block_table is torch.int64"),
        ("slot_mapping", int32(0, 1), "slot_mapping is torch.int32; it must be torch.int64"),
        ("global_decode_buffer", poisoned(2, 256).long(), "global_decode_buffer is torch.int64"),
        ("decode_lens_buffer", poisoned(2).float(), "decode_lens_buffer is torch.float32"),
        ("prefill_buffer", poisoned(2, 256).short(), "prefill_buffer is torch.int16"),
        ("num_decode_tokens", 1.5, "num_decode_tokens is 1.5; it must be a host integer, not float"),
    ],
    ids=lambda value: value if isinstance(value, str) and " " not in value else "",
)
def test_wrong_type_is_named(name, value, message):
    with pytest.raises(TypeError, match=message):
        build_c128a_topk_metadata(**arguments(**{name: value}))


@builds
@layouts
def test_incident_13_zero_tokens_give_empty_views_and_launch_nothing(build, layout, monkeypatch):
    from c128a import build as module

    def launched(*_):
        raise AssertionError("a kernel was launched")

    monkeypatch.setattr(module, "tiled_launcher", launched)
    monkeypatch.setattr(module, "launch_row_loop", launched)
    decode, lens, prefill = build(
        **arguments(positions=int64(), num_decode_tokens=0, layout=layout, slot_mapping=int64())
    )
    assert (decode.shape, lens.shape, prefill.shape) == ((0, 128), (0,), (0, 128))


def test_a_table_slice_with_a_stride_of_its_own_is_read_by_that_stride():
    table = int32(*range(20)).view(4, 5)[:, 1:3]  # two columns, five elements a row
    decode, _, _ = build_c128a_topk_metadata(
        **arguments(
            positions=int64(511, 511),
            num_decode_tokens=2,
            token_to_req_indices=int32(1, 3),
            block_table=table,
            block_size=2,
        )
    )
    assert [ids(row) for row in decode] == [[12, 13, 14, 15], [32, 33, 34, 35]]
