"""Both forms of the prefill combine equal the reference, on poisoned outputs."""

import os
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from c128a import reference
from c128a.combine import (
    Chunk,
    combine_from_rows,
    combine_prefill_indices,
    combine_step_indices,
    combined_width,
    prefill_chunks,
    step_bases,
)
from tests.support.builds import DEVICE, POISON, far_apart, ids, int32, int64, poisoned


def chunk(query_lens, seq_lens, gather_lens, ratio=128):
    """Tensors of a chunk whose request q ends at seq_lens[q]."""
    starts = [0]
    positions, requests = [], []
    for q, (query, seq) in enumerate(zip(query_lens, seq_lens, strict=True)):
        positions += range(seq - query, seq)
        requests += [q] * query
        starts.append(starts[-1] + query)
    return int64(*positions), int32(*requests), int32(*starts), int32(*seq_lens), int32(*gather_lens)


def wanted(positions, requests, seq_lens, gather_lens, workspace_rows, compressed_rows, width, **options):
    """The reference where all requests have as many rows of the workspace."""
    first = torch.arange(seq_lens.shape[0], dtype=torch.int32, device=seq_lens.device) * workspace_rows
    bases = first, first + compressed_rows
    return reference.combined_rows(positions, requests, seq_lens, gather_lens, *bases, width, **options)


def test_one_row_worked_by_hand():
    # Position 300 of request 1 sees n = 301 // 128 = 2 entries; its window is 173 … 300. The context of 301 tokens is
    # gathered from 301 - 200 = 101 on, so token 173 lies at row 1000 + 40 + (173 - 101) = 1112 of the workspace.
    positions, requests, _, *lengths = chunk([0, 1], [5, 301], [5, 200])
    out, lens = combine_prefill_indices(positions, requests, *lengths, 1000, 40, poisoned(1, 256), poisoned(1))
    assert ids(out[0]) == [1000, 1001, *range(1112, 1112 + 128)]
    assert lens.tolist() == [130]


def test_a_position_below_the_window_lists_all_tokens_from_0():
    positions, requests, _, *lengths = chunk([3], [3], [3])
    out, lens = combine_prefill_indices(positions, requests, *lengths, 10, 2, poisoned(3, 128), poisoned(3))
    assert [ids(row) for row in out] == [[2], [2, 3], [2, 3, 4]]
    assert lens.tolist() == [1, 2, 3]


@pytest.mark.skipif(DEVICE.type != "cpu", reason="the rows lie in a file")
def test_rows_are_found_by_64_bit_offsets(tmp_path):
    positions, requests, starts, *lengths = chunk([3], [3], [3])
    rows = far_apart(tmp_path / "rows", 3, 1)
    rows.fill_(0)
    batch = (*lengths, 10, 2)
    options = {"window": 4, "compress_ratio": 2}
    for form in (
        partial(combine_prefill_indices, positions, requests, *batch, **options),
        partial(combine_from_rows, rows, starts, *batch, **options, workers=1),
    ):
        out = far_apart(tmp_path / form.func.__name__, 3, 8)
        form(out=out, lens=poisoned(3))
        assert [ids(row) for row in out] == [[2], [0, 2, 3], [0, 2, 3, 4]]


@st.composite
def chunks(draw):
    requests = draw(st.integers(1, 3))
    queries = [draw(st.integers(0, 5)) for _ in range(requests)]
    window = draw(st.sampled_from([1, 8, 128]))
    seqs = [query + draw(st.integers(0, 700)) for query in queries]
    gathers = [draw(st.integers(min(query + window - 1, seq), seq)) for query, seq in zip(queries, seqs, strict=True)]
    return queries, seqs, gathers, draw(st.sampled_from([4, 128])), window, draw(st.integers(0, 3))


@settings(max_examples=30)
@given(chunks(), st.integers(1, 3))
def test_both_forms_equal_the_reference_on_random_chunks(case, workers):
    queries, seqs, gathers, ratio, window, spare = case
    positions, requests, starts, *lengths = chunk(queries, seqs, gathers)
    topk, tokens = max(seqs) // ratio + 1, positions.shape[0]
    width = topk + window + spare
    sizes = (topk + max(gathers) + 1, topk)
    options = {"compress_ratio": ratio, "window": window}
    want = wanted(positions, requests, *lengths, *sizes, width, **options)
    rows = reference.prefill_rows(positions, ratio, topk)
    forms = {
        "from_positions": partial(combine_prefill_indices, positions, requests, *lengths, *sizes, **options),
        "from_rows": partial(combine_from_rows, rows, starts, *lengths, *sizes, **options, workers=workers),
    }
    for form, combine in forms.items():
        out, lens = poisoned(tokens + 1, width), poisoned(tokens + 1)
        for name, view, expected in zip(("rows", "lens"), combine(out=out, lens=lens), want, strict=True):
            assert torch.equal(view, expected), f"{form}: {name}"
        assert (out[tokens:] == POISON).all() and (lens[tokens:] == POISON).all(), f"{form} wrote past its rows"


def released(seqs, queries, gathers, chunks, ratio, window, width, left=None, right=None):
    """The rows of a step chunk by chunk, by the released rule, in lists."""
    rows, lens = [], []
    for part in chunks:
        for q in range(part.start, part.end):
            first = part.workspace_rows * (q - part.start)
            for p in range(seqs[q] - queries[q], seqs[q]):
                token = len(rows)
                before = max(left[token] - (window - 1), 0) if left else 0
                start = max(p - (window - 1) - before, 0)
                end = p + (right[token] if right else 0)
                row = [first + entry for entry in range((p + 1) // ratio)]
                row += [first + part.compressed_rows + x - (seqs[q] - gathers[q]) for x in range(start, end + 1)]
                lens.append(len(row))
                rows.append(row + [-1] * (width - len(row)))
    return rows, lens


@st.composite
def steps(draw):
    requests = draw(st.integers(1, 5))
    ratio, window = draw(st.sampled_from([1, 2, 4, 8])), draw(st.sampled_from([2, 4, 8]))
    queries = [draw(st.integers(0, 4)) for _ in range(requests)]
    seqs = [query + draw(st.integers(0, 40)) for query in queries]
    image = draw(st.sampled_from([0, 0, 5]))
    left = right = None
    if image:
        left = [draw(st.integers(0, image + window)) for query in queries for _ in range(query)]
        right = [draw(st.integers(0, min(image, query - 1 - i))) for query in queries for i in range(query)]
    return seqs, queries, ratio, window, image, left, right, draw(st.integers(10, 120))


@settings(max_examples=int(os.environ.get("C128A_STEPS", "60")))
@given(steps())
def test_one_launch_of_a_step_equals_the_released_rows_of_all_its_chunks(step):
    seqs, queries, ratio, window, image, left, right, area = step
    gathers = [min(s, q + min(s - q, window - 1) + image) for s, q in zip(seqs, queries, strict=True)]
    chunks = prefill_chunks(seqs, queries, workspace_rows=area, compress_ratio=ratio, window=window)
    width = combined_width(max(seqs) // ratio, window, image + 2)
    want, want_lens = released(seqs, queries, gathers, chunks, ratio, window, width, left, right)
    positions, requests, _, *lengths = chunk(queries, seqs, gathers)
    spans = {"left_visible": int32(*left), "right_visible": int32(*right)} if image else {}
    inputs = (positions, requests, *lengths, *[int32(*base) for base in step_bases(chunks)])
    tokens = len(want)
    out, lens = poisoned(tokens + 1, width + 3), poisoned(tokens + 1)
    options = {"compress_ratio": ratio, "window": window, **spans}
    for got in (
        combine_step_indices(*inputs, out[:, :width], lens, **options),
        reference.combined_rows(*inputs, width, **options),
    ):
        assert [got[0].tolist(), got[1].tolist()] == [want, want_lens]
    for outside in (out[tokens:], out[:, width:], lens[tokens:]):
        assert (outside == POISON).all()


@pytest.mark.parametrize(
    ("compressed", "window_base", "lens"), [(-1, 4, 0), (4, -1, 0), (2**31 - 9, 2**31 - 5, 5), (0, 0, 5)]
)
def test_a_request_with_a_negative_base_has_no_rows(compressed, window_base, lens):
    arguments = int64(3), int32(0), int32(4), int32(4), int32(compressed), int32(window_base)
    options = {"compress_ratio": 2, "window": 4}
    out, got = combine_step_indices(*arguments, poisoned(1, 8), poisoned(1), **options)
    assert got.tolist() == [lens + 1 if lens else 0]
    assert torch.equal(out, reference.combined_rows(*arguments, 8, **options)[0])


@pytest.mark.parametrize(
    ("position", "left", "right", "length"),
    [
        *[(100, left, right, 0) for left, right in ((2**31 - 1, 0), (0, 2**31 - 1), (2**31 - 1, 2**31 - 1))],
        (100, -7, -(2**31), 25 + 4),  # position 100 sees 101 // 4 = 25 entries
        (-1, 0, 3, 0),
    ],
)
def test_an_image_adds_nothing_where_it_does_not_fit_is_negative_or_has_no_token(position, left, right, length):
    arguments = int64(position), int32(0), int32(101), int32(101), int32(0), int32(50)
    spans = {"left_visible": int32(left), "right_visible": int32(right)}
    options = {"compress_ratio": 4, "window": 4, **spans}
    got = combine_step_indices(*arguments, poisoned(1, 40), poisoned(1), **options)
    assert got[1].tolist() == [length]
    for view, expected in zip(got, reference.combined_rows(*arguments, 40, **options), strict=True):
        assert torch.equal(view, expected)


# 300 rows, ratio 128, window 128: a request of 1,000 tokens has 7 entries; it gathers its query and 127 more.
@pytest.mark.parametrize(
    ("seqs", "queries", "chunks"),
    [
        ([1000, 1000], [10, 10], [(0, 2, 7, 144)]),  # 2 × 144 = 288
        ([1000, 1000], [10, 17], [(0, 1, 7, 144), (1, 2, 7, 151)]),  # 2 × (7 + 144) = 302
        ([1000, 1000], [10, 16], [(0, 2, 7, 150)]),  # 2 × (7 + 143) = 300
        ([64_000], [10], [(0, 1, 500, 637)]),  # too large for the area, alone
        ([1000, 64_000, 1000], [10, 10, 10], [(0, 1, 7, 144), (1, 2, 500, 637), (2, 3, 7, 144)]),
        ([5, 0, 3], [5, 0, 3], [(0, 3, 0, 5)]),  # nothing before the query, so nothing more is gathered
        ([], [], []),
    ],
)
def test_chunks_are_the_longest_runs_whose_requests_fit(seqs, queries, chunks):
    assert prefill_chunks(seqs, queries, workspace_rows=300) == [Chunk(*each) for each in chunks]


ONE = (int64(3), int32(0), int32(4), int32(4), int32(0), int32(2))  # a token of a request that has both bases
ROW = (poisoned(1, 8), int32(0, 1), int32(4), int32(4), 4, 1)  # the same from a builder's row of 8 columns


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: prefill_chunks([5], [6], workspace_rows=300), ValueError, r"query_lens\[0\] is 6; its sequence has 5"),
        (
            lambda: prefill_chunks([5], [5, 1], workspace_rows=300),
            ValueError,
            "seq_lens holds 1 requests, query_lens 2",
        ),
        (lambda: prefill_chunks([5], [5], workspace_rows=0), ValueError, "workspace_rows is 0"),
        (lambda: prefill_chunks([5.0], [5], workspace_rows=300), TypeError, r"seq_lens\[0\] is 5.0"),
        (lambda: step_bases([Chunk(0, 2, 10, 2**30)]), ValueError, "2,147,483,648 workspace rows"),
        (
            lambda: combine_step_indices(*ONE, poisoned(1, 8), poisoned(1), window=4, left_visible=int32(1)),
            ValueError,
            "left_visible and right_visible",
        ),
        (
            lambda: combine_step_indices(*ONE[:4], int32(0, 0), ONE[5], poisoned(1, 8), poisoned(1), window=4),
            ValueError,
            "compressed_base holds 2 requests, seq_lens 1",
        ),
        (
            lambda: combine_from_rows(*ROW, poisoned(1, 11), poisoned(1), window=4),
            ValueError,
            r"out has 11 columns; prefill_rows and window need 8 \+ 4",
        ),
        (
            lambda: combine_from_rows(ROW[0], int32(0), *ROW[2:], poisoned(1, 12), poisoned(1), window=4),
            ValueError,
            "query_start_loc holds 1 offsets; 1 requests",
        ),
    ],
    ids=["query", "requests", "area", "float", "int32", "one span", "bases", "narrow", "offsets"],
)
def test_what_makes_no_plan_and_no_rows_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_live_prefix_writes_whole_blocks_of_128_and_leaves_the_rest():
    positions, requests, _, *lengths = chunk([2], [601], [129])
    batch = (positions, requests, *lengths, 200, 50)
    out, lens = combine_prefill_indices(*batch, poisoned(2, 384), poisoned(2), live_prefix=True)
    assert lens.tolist() == [4 + 128, 4 + 128]
    whole, _ = wanted(*batch, 384)
    assert torch.equal(out[:, :256], whole[:, :256])
    assert (out[:, 256:] == POISON).all()


def test_an_empty_chunk_gives_empty_views():
    out, lens = combine_prefill_indices(int64(), int32(), int32(), int32(), 0, 0, poisoned(2, 128), poisoned(2))
    assert out.shape == (0, 128) and lens.shape == (0,)


LONGEST = {"compress_ratio": 2**27, "window": 4}  # of a sequence of 2^31 - 1 tokens, which has 15 entries
SHORT = {"compress_ratio": 4, "window": 4}
OUTSIDE = [(500, -1), (500, 1), (-1, 0), (-(2**40), 0), (2**31 - 1, 0), (2**31, 0), (2**40, 0)]  # position, request


@pytest.mark.parametrize(
    ("tokens", "seq_len", "width", "options", "rows"),
    [
        *[([token], 2**31 - 1, 32, LONGEST, [[]]) for token in OUTSIDE],
        ([(2**31 - 2, 0)], 2**31 - 1, 32, LONGEST, [[*range(15), 24, 25, 26, 27]]),
        # Position 39: n = 10 and 4 tokens of the window do not fit into 13 columns; position 35: 9 + 4 do.
        ([(39, 0), (35, 0)], 40, 13, SHORT, [[], [*range(9), 20, 21, 22, 23]]),
    ],
    ids=[*map(str, OUTSIDE), "the last position of the longest sequence", "a row that does not fit"],
)
def test_a_row_is_whole_or_empty(tokens, seq_len, width, options, rows):
    positions, requests = zip(*tokens, strict=True)
    batch = (int64(*positions), int32(*requests), int32(seq_len), int32(8), 64, 20)
    got = combine_prefill_indices(*batch, poisoned(len(tokens), width), poisoned(len(tokens)), **options)
    assert [ids(row) for row in got[0]] == rows and got[1].tolist() == [len(row) for row in rows]
    for view, expected in zip(got, wanted(*batch, width, **options), strict=True):
        assert torch.equal(view, expected)


# Two requests of 3 tokens of context, ratio 4, window 4: a request's last token is at position 2.
@pytest.mark.parametrize(
    ("starts", "lens"),
    [
        ([0, 2, 20], [2, 3, 0, 0]),  # the last request would end at token 20, so its tokens here lie before 0
        ([-3, 2, 4], [2, 3, 2, 3]),
        ([1, 2, 3], [0, 3, 3, 0]),
        ([0, 4, 2], [0, 1, 2, 3]),
        ([3, 1, -7], [0, 0, 0, 0]),
    ],
    ids=["beyond", "negative", "late-and-short", "decreasing", "backwards"],
)
def test_offsets_outside_the_chunk_write_nothing_outside_and_every_cell_inside(starts, lens):
    whole, whole_lens = poisoned(12, 8), poisoned(12)
    batch = (poisoned(4, 2).fill_(-1), int32(*starts), int32(3, 3), int32(3, 3), 10, 2)
    out, got = combine_from_rows(*batch, whole[4:8], whole_lens[4:8], compress_ratio=4, window=4, workers=2)
    assert got.tolist() == lens
    assert [len(ids(row)) for row in out] == lens
    for buffer in (whole, whole_lens):
        assert (buffer[:4] == POISON).all() and (buffer[8:] == POISON).all()


@pytest.mark.parametrize(("starts", "seq_lens", "lens"), [((0,), (), [0, 0]), ((0, 2), (3,), [2, 3])])
def test_rows_without_columns_and_chunks_without_requests_have_their_lens(starts, seq_lens, lens):
    batch = (poisoned(2, 0), int32(*starts), int32(*seq_lens), int32(*seq_lens), 4, 1)
    options = {"compress_ratio": 1, "window": 4, "workers": 2}  # tokens with entries that the rows have no column for
    out, got = combine_from_rows(*batch, poisoned(2, 8), poisoned(2), **options)
    assert got.tolist() == lens == [len(ids(row)) for row in out]


WHOLE = poisoned(2, 256)
BAD = {
    "few-rows": ({"out": poisoned(1, 256)}, ValueError, "out holds 1 rows; the chunk has 2 tokens"),
    "dtype": ({"positions": int32(5, 6)}, TypeError, "positions is torch.int32; it must be torch.int64"),
    "shape": ({"gather_lens": int32(5, 6)}, ValueError, "gather_lens holds 2 requests, seq_lens 1"),
    "rows": ({"compressed_rows": 300}, ValueError, "compressed_rows is 300; it must be between 0 and the 200"),
    "overflow": ({"workspace_rows": 2**31}, ValueError, "workspace_rows is 2147483648; the ids of 1 requests"),
    "window": ({"window": 100}, ValueError, "window is 100; it must be a power of two"),
    "ratio": ({"compress_ratio": 0}, ValueError, "compress_ratio is 0"),
    "requests": ({"token_to_req_indices": int32(0)}, ValueError, "token_to_req_indices holds 1 rows"),
    "device": ({"seq_lens": torch.empty(1, dtype=torch.int32, device="meta")}, ValueError, "seq_lens is on meta"),
    "no-columns": ({"out": poisoned(2, 0)}, ValueError, "out has 0 columns; the window alone needs 128"),
    "narrow": ({"out": poisoned(2, 127)}, ValueError, "out has 127 columns"),
    "too-long": ({"max_seq_len": 16_512}, ValueError, "out has 256 columns; a row of max_seq_len 16,512 needs 257"),
    "rows-on-each-other": (
        {"out": poisoned(511).as_strided((2, 256), (255, 1))},
        ValueError,
        "out has a row stride of 255",
    ),
    "lens-in-out": ({"out": WHOLE, "lens": WHOLE.view(-1)[7:9]}, ValueError, "out and lens overlap"),
    "fraction": ({"compressed_rows": 1.5}, TypeError, "compressed_rows is 1.5"),
    "bool": ({"workspace_rows": True}, TypeError, "workspace_rows is True"),
    "nan": ({"compress_ratio": float("nan")}, TypeError, "compress_ratio is nan"),
}


@pytest.mark.parametrize(("changes", "error", "message"), BAD.values(), ids=BAD.keys())
def test_bad_argument_is_named_and_nothing_is_written(changes, error, message):
    call = {
        "positions": int64(5, 6),
        "token_to_req_indices": int32(0, 0),
        "seq_lens": int32(7),
        "gather_lens": int32(7),
        "workspace_rows": 200,
        "compressed_rows": 50,
        "out": poisoned(2, 256),
        "lens": poisoned(2),
    } | changes
    with pytest.raises(error, match=message):
        combine_prefill_indices(**call)
    assert (call["out"] == POISON).all() and (call["lens"] == POISON).all()
