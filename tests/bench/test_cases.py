"""What the bench times: its cells, the fields that name them, and that a wrong output ends a run. Interpreted here."""

import pytest
import torch

from c128a.bench import cases
from c128a.case import Case
from c128a.reference import topk_metadata

SMALL = Case.mixed(2, 3, 32_768)


def test_the_cells_are_the_28_of_the_baseline_those_of_the_other_widths_and_one_long_among_short():
    assert len(cases.CELLS) == 28 + 6 + 1
    assert {case.width for case in cases.CELLS} == {128, 256, 512, 1024, 2048, 4096, 8192}
    assert min(cases.CELLS[-1].seq_lens) == 4_096 < cases.CELLS[-1].max_seq_len
    names = [cases.cell_name(case) for case in cases.CELLS]
    assert len(set(names)) == len(names)


def test_the_builder_is_timed_in_both_layouts_between_its_floors():
    timed = cases.builder(SMALL)
    variants = {(each.facts["variant"], each.facts["layout"]): each for each in timed}
    both = {"row_loop_adaptive", "tiled", "tiled_serial", "fill"}
    assert set(variants) == {(name, layout) for name in both for layout in ("packed", "pitched")} | {
        (name, "packed") for name in ("row_loop_fixed", "tiled_fixed", "loads", "empty")
    }
    assert {key for key, each in variants.items() if not each.cold} == {("tiled_serial", "pitched")}
    fixed, loop = variants["row_loop_fixed", "packed"].facts, variants["row_loop_adaptive", "pitched"].facts
    assert (fixed["width"], fixed["trips"], fixed["bytes"], fixed["policy"]) == (8192, 8, 5 * 8192 * 4, "fixed")
    assert (loop["width"], loop["trips"], loop["bytes"], loop["policy"]) == (256, 1, 5 * 256 * 4, "pow2")
    assert loop["scale"] == 1.2  # 2 × 256 live cells need 256 block numbers beside 5 × 256 cells written
    assert (loop["cell"], loop["requests"], loop["short_seq_len"]) == ("2+3@32768", 3, 0)
    assert variants["empty", "packed"].facts["bytes"] == 0


def test_every_call_can_be_launched():
    small = cases.builder(Case.mixed(1, 1, 300))
    for each in [*small, *cases.tiles(Case.decode(1, 300))[:2], *cases.ranks(Case.decode(1, 512))]:
        each.call()
        assert "variant" in each.facts and "cell" in each.facts


def wrong(*arguments):
    """A build that forgets the pads of its prefill rows."""
    positions, ratio, decode, requests, table, block_size, slots, *_, width = arguments
    got = topk_metadata(positions, ratio, decode, requests, table, block_size, slots, width)
    return got[0], got[1], torch.where(got[2] < 0, 0, got[2])


def test_a_function_that_is_wrong_is_not_timed():
    with pytest.raises(AssertionError, match=r"compare: prefill rows differ in 0\+2@500"):
        cases.builder(Case.prefill(2, 500), wrong)
    (*_, last) = cases.builder(Case.decode(2, 16_384), wrong)  # no prefill row is wrong here
    assert last.facts["variant"] == "compare"
