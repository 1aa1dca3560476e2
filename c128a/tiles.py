"""The tile of the 2-D kernel: how many rows and columns one program writes. Torch-free."""

from __future__ import annotations

from typing import NamedTuple


class Tile(NamedTuple):
    """rows × cols cells a program, written by `warps` warps of 32 threads."""

    rows: int
    cols: int
    warps: int


NARROW = Tile(8, 128, 8)
NARROW_MANY = Tile(8, 128, 4)
SMALL = Tile(2, 256, 4)
MEDIUM = Tile(4, 256, 4)
WIDE = Tile(1, 1024, 2)
WHOLE_ROWS = (Tile(1, 2048, 8), Tile(1, 4096, 8), Tile(1, 8192, 8))
TILES = (NARROW, NARROW_MANY, SMALL, MEDIUM, WIDE, *WHOLE_ROWS)

SMALL_CELLS = 2**17  # cells a build; up to here latency decides, and small tiles start the most loads at once
SMALL_CELLS_NARROW = 2**18  # the same for rows of at most 1,024 columns
MANY_ROWS = 6144  # between 4,160 rows, where 8 warps are as fast or faster, and 8,192, where 4 are


def tile_shape(rows: int, width: int) -> Tile:
    """The tile for a build of `rows` rows of `width` columns.

    Chosen on an H200 among the shapes of `candidates` by `python -m c128a.bench tiles`, over the cells that the
    benchmark reports. In data/h200-tiles.json no shape is more than a tenth faster than the chosen one in any of them.

    >>> tile_shape(8192, 128), tile_shape(1, 8192), tile_shape(8192, 3000)
    (Tile(rows=8, cols=128, warps=4), Tile(rows=2, cols=256, warps=4), Tile(rows=1, cols=4096, warps=8))
    """
    if width <= 128:
        return NARROW if rows <= MANY_ROWS else NARROW_MANY
    if rows * width <= (SMALL_CELLS_NARROW if width <= 1024 else SMALL_CELLS):
        return SMALL
    if width <= 512:
        return MEDIUM
    if rows < 2048 or width <= 1024:
        return WIDE
    return next((tile for tile in WHOLE_ROWS if tile.cols >= width), WHOLE_ROWS[-1])


def candidates(width: int) -> list[Tile]:
    """The shapes that `python -m c128a.bench tiles` times for rows of a width, those of TILES included.

    128 to 8,192 cells a program, no wider than a row, and 4 to 16 cells a thread beside TILES.

    >>> len(candidates(128)), len(candidates(8192))
    (12, 43)
    """
    shapes = {
        Tile(rows, cols, warps)
        for rows in (1, 2, 4, 8, 16, 32)
        for cols in (128, 256, 512, 1024, 2048, 4096, 8192)
        for warps in (1, 2, 4, 8)
        if cols <= max(width, 128) and rows * cols <= 8192 and 4 <= rows * cols / (32 * warps) <= 16
    }
    return sorted(shapes | {tile for tile in TILES if tile.cols <= max(width, 128)})


# One shape serves the combine; tests/bench/test_h200.py holds its record to the targets.
COMBINE_TILE = Tile(8, 128, 2)
