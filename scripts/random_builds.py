"""Random builds and combines, each cell compared with c128a.reference: `python -m scripts.random_builds --builds 300`.

A batch holds any fault that a batch can have: padded tokens, requests outside the table, block numbers of -1, tables
that end early, rows that do not fit. Cells outside of a result must stay as they were. The kernels are compiled where
there is a GPU, and interpreted elsewhere. It ends with the seed of the first result that differs.
"""

from __future__ import annotations

import argparse

import numpy as np

from c128a import backend, reference
from c128a.combine import combine_step_indices, combined_width, prefill_chunks, step_bases
from c128a.layout import LAYOUTS
from tests.support.builds import BUILDS, POISON, assert_equals_reference, int32, int64, poisoned


def check_build(random: np.random.Generator) -> None:
    """Build one batch by both kernels; raises AssertionError where it differs from the reference."""

    def numbers(most: int, count: int, least: int = -1) -> list[int]:
        bad = random.random(count) < 0.3  # or small
        return np.where(bad, random.integers(least, 2, count), random.integers(most, size=count)).tolist()

    tokens, requests, blocks, width = random.integers((0, 1, 1, 1), (12, 5, 30, 300)).tolist()
    ratio, block_size = int(random.choice([1, 4, 100, 128])), int(random.choice([1, 2, 3, 64]))
    inputs = (
        int64(*numbers(ratio * width + 200, tokens, least=-2)),
        int32(*numbers(requests + 1, tokens)),
        int32(*numbers(1000, requests * blocks)).view(requests, blocks),
        int64(*numbers(9, tokens)),
    )
    shape = {"ratio": ratio, "block_size": block_size, "layout": LAYOUTS[random.integers(2)]}
    decode, capacity = int(random.integers(tokens + 1)), width + int(random.integers(9))
    for build in BUILDS.values():
        assert_equals_reference(build, inputs, decode, width, capacity=capacity, **shape)


def check_combine(random: np.random.Generator) -> None:
    """Combine the prefill requests of one step; raises AssertionError where it differs from the reference."""
    ratio, window, requests = int(random.choice([1, 4, 128])), int(random.choice([2, 16, 128])), random.integers(1, 7)
    queries = random.integers(0, 6, requests)
    seqs = queries + random.integers(0, 40 * ratio, requests)
    sizes = {"workspace_rows": int(random.integers(1, 2000)), "compress_ratio": ratio, "window": window}
    bases = step_bases(prefill_chunks(seqs.tolist(), queries.tolist(), **sizes))
    positions = np.concatenate([np.arange(seq - query, seq) for seq, query in zip(seqs, queries, strict=True)])
    of_token, fault = np.repeat(np.arange(requests), queries), random.random(len(positions))
    positions, of_token = np.where(fault < 0.05, -1, positions), np.where(fault > 0.95, requests, of_token)
    of_requests = (of_token, seqs, np.minimum(seqs, queries + window - 1), *bases)
    inputs = (int64(*positions), *(int32(*values) for values in of_requests))
    tokens, width = len(positions), max(combined_width(int(seqs.max()) // ratio) - int(random.choice([0, 50])), window)
    out, lens, options = (
        poisoned(tokens + 1, width + 5),
        poisoned(tokens + 1),
        {"compress_ratio": ratio, "window": window},
    )
    got = combine_step_indices(*inputs, out[:, :width], lens, **options)
    for view, expected in zip(got, reference.combined_rows(*inputs, width, **options), strict=True):
        assert view.equal(expected), f"{view.tolist()} is not {expected.tolist()}"
    for outside in (out[tokens:], out[:, width:], lens[tokens:]):
        assert (outside == POISON).all(), "a cell outside of the result was written"


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Compare random builds and combines with the reference.")
    parser.add_argument("--builds", type=int, default=300)
    parser.add_argument("--combines", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0, help="of the first build and of the first combine")
    options = parser.parse_args()
    for check, count in ((check_build, options.builds), (check_combine, options.combines)):
        for seed in range(options.seed, options.seed + count):
            try:
                check(np.random.default_rng(seed))
            except AssertionError as differs:
                differs.add_note(f"{check.__name__}, seed {seed}")
                raise
    print(f"{options.builds} builds and {options.combines} combines equal the reference ({backend.describe()})")


if __name__ == "__main__":
    main()
