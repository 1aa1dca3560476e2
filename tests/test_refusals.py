"""What must never be written, and what is no argument: each of these once wrote past a buffer or gave wrong rows."""

import numpy as np
import pytest
import torch

from c128a import reference
from c128a.build import build_c128a_topk_metadata
from c128a.builder import C128AMetadataBuilder
from c128a.combine import combine_from_rows, combine_prefill_indices
from c128a.width import active_topk_width, capacity_width
from tests.support.builds import BUILDS, DEVICE, POISON, int32, int64, poisoned

builds = pytest.mark.parametrize("build", BUILDS.values(), ids=BUILDS.keys())


def call(build, decode, lens, prefill, *, width=128, num_decode=2, layout="packed", **sizes):
    inputs = int64(255, 511, 383, 639), int32(0, 1, 0, 1), int32(3, 5).view(2, 1), int64(0, 1, 2, 3)
    positions, requests, table, slots = inputs
    ratio, block = sizes.get("ratio", 128), sizes.get("block", 512)
    return build(
        positions, ratio, num_decode, requests, table, block, slots, decode, lens, prefill, width, layout=layout
    )


class TestBuffersThatChange:
    @builds
    @pytest.mark.parametrize(
        "shrink",
        [
            lambda buffer: buffer.resize_(1, 512),
            lambda buffer: buffer.set_(buffer.untyped_storage(), 0, (2, 64), (64, 1)),
            lambda buffer: buffer.as_strided_((2, 64), (512, 1)),
            lambda buffer: setattr(buffer, "data", buffer.data[:1]),
            lambda buffer: buffer.untyped_storage().resize_(512 * 4),
        ],
        ids=["resize_", "set_", "as_strided_", "data narrowed", "storage resized"],
    )
    def test_a_buffer_made_smaller_in_place_is_refused_by_the_next_build(self, build, shrink):
        decode = poisoned(2, 512)
        call(build, decode, poisoned(2), poisoned(2, 512), layout="pitched")
        shrink(decode)
        with pytest.raises(ValueError, match="global_decode_buffer"):
            call(build, decode, poisoned(2), poisoned(2, 512), layout="pitched")

    def test_the_views_of_two_builds_are_objects_of_their_own(self):
        buffers = poisoned(2, 512), poisoned(2), poisoned(2, 512)
        first = call(build_c128a_topk_metadata, *buffers)
        for view in first:
            view.unsqueeze_(0)
        assert [view.dim() for view in call(build_c128a_topk_metadata, *buffers)] == [2, 1, 2]

    @builds
    @pytest.mark.parametrize("layout", ["packed", "pitched"])
    def test_buffers_that_overlap_are_refused_by_name_and_nothing_is_written(self, build, layout):
        whole = poisoned(8, 512)
        flat = whole.view(-1)
        cases = {
            "prefill_buffer": (whole[:2], poisoned(2), whole[:2]),
            "decode_lens_buffer": (whole[:2], flat[100:102], poisoned(2, 512)),
            "global_decode_buffer": (whole[1:3], poisoned(2), flat[512 + 64 :][: 2 * 512].view(2, 512)),
        }
        for name, buffers in cases.items():
            with pytest.raises(ValueError, match=f"{name}.* overlap|overlap.*{name}"):
                call(build, *buffers, layout=layout)
        assert (whole == POISON).all()

    def test_buffers_that_touch_are_no_overlap(self):
        whole = poisoned(4, 512)
        decode, _, prefill = call(build_c128a_topk_metadata, whole[:2], poisoned(2), whole[2:], layout="pitched")
        assert decode[0, :2].tolist() == [1536, 1537] and prefill[0, :4].tolist() == [0, 1, 2, -1]


class TestHostIntegers:
    @builds
    @pytest.mark.parametrize("value", [1.5, float("nan"), True, "2", None, torch.tensor(1.0)], ids=repr)
    @pytest.mark.parametrize(
        ("name", "argument"),
        [
            ("num_decode_tokens", "num_decode"),
            ("max_compressed_tokens", "width"),
            ("compress_ratio", "ratio"),
            ("block_size", "block"),
        ],
    )
    def test_what_is_no_integer_is_a_type_error_that_names_the_argument(self, build, name, argument, value):
        buffers = poisoned(2, 512), poisoned(2), poisoned(2, 512)
        with pytest.raises(TypeError, match=name):
            call(build, *buffers, **{argument: value})
        assert all((buffer == POISON).all() for buffer in buffers)

    @builds
    def test_integers_of_numpy_and_tensors_on_the_host_are_integers(self, build):
        sizes = {"num_decode": np.int64(2), "width": torch.tensor(128), "ratio": np.int32(128), "block": np.uint16(512)}
        decode, lens, _ = call(build, poisoned(2, 512), poisoned(2), poisoned(2, 512), **sizes)
        assert decode.shape == (2, 128) and lens.tolist() == [2, 4]

    @pytest.mark.parametrize("layout", [[], {}, None, "pitch"], ids=repr)
    def test_an_unknown_layout_of_any_type_is_a_value_error(self, layout):
        with pytest.raises(ValueError, match="layout is"):
            call(build_c128a_topk_metadata, poisoned(2, 512), poisoned(2), poisoned(2, 512), layout=layout)

    def test_widths_are_counted_in_integers(self):
        assert capacity_width(np.int64(33_792)) == 384
        for wrong in (1.7, float("nan"), True):
            with pytest.raises(TypeError, match="max_seq_len"):
                active_topk_width(wrong, 128, 8192)


class TestBuilder:
    @pytest.fixture
    def build(self):
        builder = C128AMetadataBuilder(1024, 8, layout="pitched", device=DEVICE)

        def build(starts, *, max_seq_len=512, table_rows=2):
            table = torch.zeros(table_rows, 2, dtype=torch.int32, device=DEVICE)
            return builder.build(int64(255, 511), starts, max_seq_len, table, int64(0, 1))

        return build

    @pytest.mark.parametrize(
        "starts", [[0, 1.7, 2], [0, float("nan"), 2], [False, True], np.array([0.0, 2.0])], ids=repr
    )
    def test_offsets_that_are_no_integers_are_a_type_error(self, build, starts):
        with pytest.raises(TypeError, match="query_start_loc"):
            build(starts)

    @pytest.mark.parametrize("length", [float("nan"), 512.0, True], ids=repr)
    def test_a_length_that_is_no_integer_is_a_type_error(self, build, length):
        with pytest.raises(TypeError, match="max_seq_len"):
            build([0, 1, 2], max_seq_len=length)

    def test_integers_of_numpy_are_lengths_and_offsets(self, build):
        assert build(np.array([0, 1, 2], dtype=np.int32), max_seq_len=np.int64(512)).decode_topk_lens.tolist() == [2, 4]

    def test_a_table_with_fewer_rows_than_decode_requests_is_an_error_with_both_numbers(self, build):
        with pytest.raises(ValueError, match="block_table has 1 rows; the batch has 2"):
            build([0, 1, 2], table_rows=1)


class TestCombine:
    @pytest.mark.parametrize(
        ("starts", "lens"),
        [
            ([0, 2, 20], [2, 3, 0, 0]),  # the last request would end at token 20, so its tokens here lie before 0
            ([-3, 2, 4], [2, 3, 2, 3]),
            ([1, 2, 3], [0, 3, 3, 0]),
            ([0, 4, 2], [0, 1, 2, 3]),
        ],
        ids=["beyond", "negative", "late and short", "decreasing"],
    )
    def test_offsets_outside_the_chunk_write_nothing_outside_and_every_lens_inside(self, starts, lens):
        # Two requests of 3 tokens of context, ratio 4, window 4; a request's last token is at position 2.
        whole, whole_lens = poisoned(12, 8), poisoned(12)
        rows = poisoned(4, 2).fill_(-1)
        out, got = combine_from_rows(
            rows,
            int32(*starts),
            int32(3, 3),
            int32(3, 3),
            10,
            2,
            whole[4:8],
            whole_lens[4:8],
            compress_ratio=4,
            window=4,
        )
        assert got.tolist() == lens
        assert (out != POISON).all()
        for buffer in (whole, whole_lens):
            assert (buffer[:4] == POISON).all() and (buffer[8:] == POISON).all()

    def test_a_chunk_without_requests_has_lens_of_zero(self):
        lens = poisoned(2)
        combine_from_rows(poisoned(2, 1), int32(0), int32(), int32(), 4, 1, poisoned(2, 8), lens, window=4)
        assert lens.tolist() == [0, 0]

    @pytest.mark.parametrize("position", [2**31 - 1, 2**31, 2**40, -(2**40)])
    def test_a_position_outside_of_every_sequence_has_no_row_and_no_negative_lens(self, position):
        arguments = int64(position), int32(0), int32(2**31 - 1), int32(8), 64, 20
        out, lens = combine_prefill_indices(*arguments, poisoned(1, 32), poisoned(1), compress_ratio=2**27, window=4)
        assert lens.tolist() == [0] and (out == -1).all()
        want = reference.combined_rows(*arguments, 32, compress_ratio=2**27, window=4)
        assert torch.equal(out, want[0]) and torch.equal(lens, want[1])

    def test_the_last_position_of_the_longest_sequence_has_its_row(self):
        # n = (2^31 - 1) // 2^27 = 15 entries and 4 tokens of the window.
        arguments = int64(2**31 - 2), int32(0), int32(2**31 - 1), int32(8), 64, 20
        out, lens = combine_prefill_indices(*arguments, poisoned(1, 32), poisoned(1), compress_ratio=2**27, window=4)
        assert lens.tolist() == [19] and out[0, :19].tolist() == [*range(15), 24, 25, 26, 27]

    def test_a_row_that_does_not_fit_is_not_written_in_part(self):
        # Position 39: n = 10 and 4 tokens of the window do not fit into 13 columns; position 35: 9 + 4 do.
        arguments = int64(39, 35), int32(0, 0), int32(40), int32(8), 64, 20
        out, lens = combine_prefill_indices(*arguments, poisoned(2, 13), poisoned(2), compress_ratio=4, window=4)
        assert lens.tolist() == [0, 13] and (out[0] == -1).all() and (out[1] >= 0).all()
        want = reference.combined_rows(*arguments, 13, compress_ratio=4, window=4)
        assert torch.equal(out, want[0]) and torch.equal(lens, want[1])
        with pytest.raises(ValueError, match="out has 13 columns; a row of max_seq_len 40 needs 14"):
            combine_prefill_indices(
                *arguments, poisoned(2, 13), poisoned(2), compress_ratio=4, window=4, max_seq_len=40
            )

    @pytest.mark.parametrize("columns", [0, 3])
    def test_an_output_narrower_than_the_window_is_an_error(self, columns):
        with pytest.raises(ValueError, match=f"out has {columns} columns; the window alone needs 4"):
            combine_prefill_indices(
                int64(1), int32(0), int32(2), int32(2), 8, 4, poisoned(1, columns), poisoned(1), window=4
            )

    @pytest.mark.parametrize("name", ["workspace_rows", "compressed_rows"])
    @pytest.mark.parametrize("value", [1.5, True, float("nan")], ids=repr)
    def test_sizes_are_integers(self, name, value):
        sizes = {"workspace_rows": 8, "compressed_rows": 4} | {name: value}
        with pytest.raises(TypeError, match=name):
            combine_prefill_indices(
                int64(1), int32(0), int32(2), int32(2), *sizes.values(), poisoned(1, 128), poisoned(1)
            )

    def test_lens_inside_of_out_is_an_error(self):
        whole = poisoned(2, 128)
        with pytest.raises(ValueError, match="overlap"):
            combine_prefill_indices(int64(1), int32(0), int32(2), int32(2), 8, 4, whole, whole.view(-1)[7:9])
        assert (whole == POISON).all()
