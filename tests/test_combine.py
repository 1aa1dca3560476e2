"""Every form of the prefill combine equals the released rule, on poisoned outputs."""

from functools import partial
from itertools import accumulate

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from c128a import reference
from c128a.combine import (
    Chunk,
    combine_from_rows,
    combine_prefill_indices,
    combine_step_indices,
    prefill_chunks,
    step_bases,
)
from tests.support.builds import DEVICE, META, POISON, far_apart, ids, int32, int64, poisoned
from tests.support.refused import refused

OUTSIDE = [(20, -1), (20, 9), (-1, 0), (-(2**40), 0), (2**31 - 1, 0), (2**31, 0), (2**40, 0)]  # position, request
SPAN = st.integers(-7, 13) | st.sampled_from([2**31 - 1, -(2**31)])  # tokens of an image
ODD = {  # what a step may have, and what it has otherwise
    "bad": (st.dictionaries(st.integers(0, 9), st.sampled_from(OUTSIDE), min_size=1, max_size=3), {}),  # tokens
    "lost": (st.sets(st.integers(0, 4), min_size=1, max_size=2), set()),  # requests with a base of -1
    "visible": (st.lists(st.tuples(SPAN, SPAN), min_size=20, max_size=20), None),
    "offset": (st.sampled_from([0, 2**31 - 400]), 0),  # of all bases
    "wider": (st.integers(-3, 9), 0),  # columns more than the longest row of text needs
}
USUAL = {name: usual for name, (_, usual) in ODD.items()}
EVERYTHING = {"bad": dict(enumerate(OUTSIDE)), "lost": {1, 2}, "visible": [(3, 2)] * 20, "offset": 7, "wider": 9}


def released_row(position, seq, gather, compressed_base, window_base, left, right, *, compress_ratio, window):
    """The released rule in lists: the entries, then the tokens of the window and of an image."""
    start, end = max(position - max(left, window - 1), 0), position + min(max(right, 0), 999)
    entries = [compressed_base + entry for entry in range((position + 1) // compress_ratio)]
    return entries + [window_base + token - (seq - gather) for token in range(start, end + 1)]


def assert_rows(got, want, *buffers):
    """The rows are these and then pads, and no cell of the buffers behind or beside them was written."""
    width = got[0].shape[1]
    assert got[0].tolist() == [row + [-1] * (width - len(row)) for row in want]
    assert got[1].tolist() == [len(row) for row in want]
    for buffer in buffers:
        assert (buffer == POISON).all()


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 40), st.integers(0, 9)), max_size=5),
    st.sampled_from([1, 2, 8]),
    st.sampled_from([1, 2, 8]),
    st.integers(10, 120),
    st.just(USUAL) | st.fixed_dictionaries({name: odd for name, (odd, _) in ODD.items()}),
)
@example([(4, 30, 0)] * 4, 8, 2, 60, EVERYTHING)
def test_one_launch_of_a_step_equals_the_released_rows_of_all_its_chunks(requests, ratio, window, area, odd):
    """Of each request: the tokens of its query, those before it, and how many more than needed are gathered."""
    queries, seqs = [query for query, _, _ in requests], [query + before for query, before, _ in requests]
    gathers = [min(query + window - 1 + more, query + before) for query, before, more in requests]
    options = {"compress_ratio": ratio, "window": window}
    chunks = prefill_chunks(seqs, queries, workspace_rows=area, **options)
    bases = [[odd["offset"] + base for base in of_requests] for of_requests in step_bases(chunks)]
    for q in odd["lost"] & {*range(len(requests))}:
        bases[q % 2][q] = -1
    tokens = [(p, q) for q, query in enumerate(queries) for p in range(seqs[q] - query, seqs[q])]
    tokens = [odd["bad"].get(at, token) for at, token in enumerate(tokens)]
    visible = (odd["visible"] or [(0, 0)] * 20)[: len(tokens)]
    topk = max(seqs, default=0) // ratio
    width = max(topk + window + odd["wider"], window)
    rows = []
    for (p, q), spans in zip(tokens, visible, strict=True):
        of_request = () if (p, q) in OUTSIDE else (seqs[q], gathers[q], bases[0][q], bases[1][q])
        row = released_row(p, *of_request, *spans, **options) if of_request and -1 not in of_request else []
        rows.append(row if len(row) <= width else [])

    positions, of_tokens = int64(*[p for p, _ in tokens]), int32(*[q for _, q in tokens])
    lengths, count = (int32(*seqs), int32(*gathers)), len(tokens)
    inputs = (positions, of_tokens, *lengths, *[int32(*base) for base in bases])
    if odd["visible"]:
        left, right = zip(*visible, strict=True) if visible else ((), ())
        options |= {"left_visible": int32(*left), "right_visible": int32(*right)}
    out, lens = poisoned(count + 1, width + 3), poisoned(count + 1)
    got = combine_step_indices(*inputs, out[:, :width], lens, **options)
    assert_rows(got, rows, out[count:], out[:, width:], lens[count:])
    assert_rows(reference.combined_rows(*inputs, width, **options), rows)
    if odd != USUAL:
        return
    starts = [0, *accumulate(queries)]
    for part in chunks:
        here, within = slice(starts[part.start], starts[part.end]), slice(part.start, part.end)
        sizes = (*[tensor[within] for tensor in lengths], part.workspace_rows, part.compressed_rows)
        offsets = int32(*[start - here.start for start in starts[part.start : part.end + 1]])
        prefill_rows = reference.prefill_rows(positions[here], ratio, topk)
        for form in (
            partial(combine_prefill_indices, positions[here], of_tokens[here] - part.start, *sizes),
            partial(combine_from_rows, prefill_rows, offsets, *sizes, workers=2),
        ):
            out, lens = poisoned(count + 1, width), poisoned(count + 1)
            size = here.stop - here.start
            assert_rows(form(out, lens, **options), rows[here], out[size:], lens[size:])


def test_one_row_worked_by_hand():
    # Position 300 of request 1 sees n = 301 // 128 = 2 entries; its window is 173 … 300. The context of 301 tokens is
    # gathered from 301 - 200 = 101 on, so token 173 lies at row 1000 + 40 + (173 - 101) = 1112 of the workspace.
    lengths = int32(5, 301), int32(5, 200)
    got = combine_prefill_indices(int64(300), int32(1), *lengths, 1000, 40, poisoned(1, 256), poisoned(1))
    assert_rows(got, [[1000, 1001, *range(1112, 1112 + 128)]])


def test_rows_of_several_tiles_worked_by_hand():
    # At ratio 2, position 252 sees 126 entries, so that its window of 4 lies in columns 126 … 129 of two tiles of 128;
    # position 299 sees 150, with the window in the second tile alone. All 300 tokens are gathered, from row 500 on.
    out, lens = poisoned(3, 384), poisoned(3)
    inputs = int64(252, 299), int32(0, 0), int32(300), int32(300), 900, 500
    got = combine_prefill_indices(*inputs, out, lens, compress_ratio=2, window=4)
    windows = [749, 750, 751, 752], [796, 797, 798, 799]
    assert_rows(got, [[*range(126), *windows[0]], [*range(150), *windows[1]]], out[2:], lens[2:])


def test_the_last_position_of_the_longest_sequence():
    # 2^31 - 1 tokens of ratio 2^27 have 15 entries; 8 tokens are gathered, of which the window holds the last 4.
    inputs = int64(2**31 - 2), int32(0), int32(2**31 - 1), int32(8)
    options = {"compress_ratio": 2**27, "window": 4}
    got = combine_prefill_indices(*inputs, 64, 20, poisoned(1, 32), poisoned(1), **options)
    for rows in (got, reference.combined_rows(*inputs, int32(0), int32(20), 32, **options)):
        assert_rows(rows, [[*range(15), 24, 25, 26, 27]])


@pytest.mark.skipif(DEVICE.type != "cpu", reason="the rows lie in a file")
def test_rows_are_found_by_64_bit_offsets(tmp_path):
    rows = far_apart(tmp_path / "rows", 3, 1)
    rows.fill_(0)
    sizes = (int32(3), int32(3), 10, 2)
    for form in (
        partial(combine_prefill_indices, int64(0, 1, 2), int32(0, 0, 0), *sizes),
        partial(combine_from_rows, rows, int32(0, 3), *sizes, workers=1),
    ):
        out = far_apart(tmp_path / form.func.__name__, 3, 8)
        assert_rows(form(out, poisoned(3), window=4, compress_ratio=2), [[2], [0, 2, 3], [0, 2, 3, 4]])


def test_live_prefix_writes_whole_blocks_of_128_and_leaves_the_rest():
    inputs, out = (int64(599, 600), int32(0, 0), int32(601), int32(129), 200, 50), poisoned(2, 384)
    whole, _ = combine_prefill_indices(*inputs, poisoned(2, 384), poisoned(2))
    got, lens = combine_prefill_indices(*inputs, out, poisoned(2), live_prefix=True)
    assert lens.tolist() == [4 + 128, 4 + 128]
    assert got[:, :256].equal(whole[:, :256])
    assert (got[:, 256:] == POISON).all()


# 300 rows, ratio 128, window 128: a request of 1,000 tokens has 7 entries; it gathers its query and 127 more.
@pytest.mark.parametrize(
    ("seqs", "queries", "chunks"),
    [
        ([1000, 1000], [10, 17], [(0, 1, 7, 144), (1, 2, 7, 151)]),  # 2 × (7 + 144) = 302
        ([1000, 1000], [10, 16], [(0, 2, 7, 150)]),  # 2 × (7 + 143) = 300
        ([1000, 64_000, 1000], [10, 10, 10], [(0, 1, 7, 144), (1, 2, 500, 637), (2, 3, 7, 144)]),  # too large alone
        ([64_000], [10], [(0, 1, 500, 637)]),
        ([5, 0, 3], [5, 0, 3], [(0, 3, 0, 5)]),  # nothing before the query, so nothing more is gathered
        ([], [], []),
    ],
)
def test_chunks_are_the_longest_runs_whose_requests_fit(seqs, queries, chunks):
    assert prefill_chunks(seqs, queries, workspace_rows=300) == [Chunk(*each) for each in chunks]


# Requests of 3 tokens of context, window 4: a request's last token is at position 2.
@pytest.mark.parametrize(
    ("starts", "lens", "requests", "columns"),
    [
        ([0, 2, 20], [2, 3, 0, 0], 2, 2),  # the last request would end at token 20, so its tokens here lie before 0
        ([-3, 2, 4], [2, 3, 2, 3], 2, 2),
        ([1, 2, 3], [0, 3, 3, 0], 2, 2),
        ([0, 4, 2], [0, 1, 2, 3], 2, 2),
        ([3, 1, -7], [0, 0, 0, 0], 2, 2),
        ([0], [0, 0, 0, 0], 0, 2),
        ([0, 4], [0, 1, 2, 3], 1, 0),  # tokens with entries that the rows have no column for
    ],
    ids=["beyond", "negative", "late-and-short", "decreasing", "backwards", "no requests", "no columns"],
)
def test_offsets_outside_the_chunk_write_nothing_outside_and_every_cell_inside(starts, lens, requests, columns):
    whole, whole_lens = poisoned(12, 8), poisoned(12)
    rows, seqs = poisoned(4, columns).fill_(-1), int32(*[3] * requests)
    options = {"compress_ratio": 4 if columns else 1, "window": 4, "workers": 2}
    out, got = combine_from_rows(rows, int32(*starts), seqs, seqs, 10, 2, whole[4:8], whole_lens[4:8], **options)
    assert got.tolist() == lens == [len(ids(row)) for row in out]
    for buffer in (whole, whole_lens):
        assert (buffer[:4] == POISON).all() and (buffer[8:] == POISON).all()


WHOLE = poisoned(2, 256)
TOKENS = {"positions": int64(5, 6), "token_to_req_indices": int32(0, 0), "out": poisoned(2, 256)}
ROWS = {"prefill_rows": poisoned(1, 8), "query_start_loc": int32(0, 1), "out": poisoned(1, 136)}
LENGTHS = {"seq_lens": int32(7), "gather_lens": int32(7), "lens": poisoned(2)}
SIZES = {"workspace_rows": 200, "compressed_rows": 50}
ARGUMENTS = {
    combine_prefill_indices: TOKENS | LENGTHS | SIZES,
    combine_step_indices: TOKENS | LENGTHS | {"compressed_base": int32(0), "window_base": int32(2)},
    combine_from_rows: ROWS | LENGTHS | SIZES,
    prefill_chunks: {"seq_lens": [5], "query_lens": [5], "workspace_rows": 300},
    step_bases: {},
}
BAD = {
    ValueError: {
        "out holds 1 rows; the chunk has 2 tokens": {"out": poisoned(1, 256)},
        "gather_lens holds 2 requests, seq_lens 1": {"gather_lens": int32(5, 6)},
        "compressed_rows is 300; it must be between 0 and the 200": {"compressed_rows": 300},
        "workspace_rows is 2147483648; the ids of 1 requests": {"workspace_rows": 2**31},
        "window is 100; it must be a power of two": {"window": 100},
        "compress_ratio is 0": {"compress_ratio": 0},
        "token_to_req_indices holds 1 rows": {"token_to_req_indices": int32(0)},
        "seq_lens is on meta": {"seq_lens": META},
        "out has 127 columns; the window alone needs 128": {"out": poisoned(2, 127)},
        "out has 256 columns; a row of max_seq_len 16,512 needs 257": {"max_seq_len": 16_512},
        "out has a row stride of 255": {"out": poisoned(511).as_strided((2, 256), (255, 1))},
        "out and lens overlap": {"out": WHOLE, "lens": WHOLE.view(-1)[7:9]},
        "left_visible and right_visible": (combine_step_indices, {"left_visible": int32(1)}),
        "compressed_base holds 2 requests, seq_lens 1": (combine_step_indices, {"compressed_base": int32(0, 0)}),
        r"out has 135 columns; .* need 8 \+ 128": (combine_from_rows, {"out": poisoned(1, 135)}),
        "query_start_loc holds 1 offsets; 1 requests": (combine_from_rows, {"query_start_loc": int32(0)}),
        r"query_lens\[0\] is 6; its sequence has 5": (prefill_chunks, {"query_lens": [6]}),
        "seq_lens holds 1 requests, query_lens 2": (prefill_chunks, {"query_lens": [5, 1]}),
        "workspace_rows is 0": (prefill_chunks, {"workspace_rows": 0}),
        "2,147,483,648 workspace rows": (step_bases, {"chunks": [Chunk(0, 2, 10, 2**30)]}),
    },
    TypeError: {
        "positions is torch.int32; it must be torch.int64": {"positions": int32(5, 6)},
        "compressed_rows is 1.5": {"compressed_rows": 1.5},
        "workspace_rows is True": {"workspace_rows": True},
        "compress_ratio is nan": {"compress_ratio": float("nan")},
        r"seq_lens\[0\] is 5.0": (prefill_chunks, {"seq_lens": [5.0]}),
    },
}


@refused(BAD)
def test_bad_argument_is_named_and_nothing_is_written(error, words, call):
    function, changes = call if isinstance(call, tuple) else (combine_prefill_indices, call)
    given = ARGUMENTS[function] | changes
    with pytest.raises(error, match=words):
        function(**given)
    assert all((given[name] == POISON).all() for name in ("out", "lens") if name in given)
