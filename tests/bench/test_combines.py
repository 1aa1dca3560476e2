"""The combine as it is timed: one chunk, a whole step, and functions taken from an engine's files. Interpreted here."""

import pytest

from c128a.bench import combines, peers
from c128a.case import Case

STEP = Case((2, 1), (3_000, 9_000), 0)
# A function under the name and with the arguments of SGLang's, which uses another function and a constant of its file.
SOURCE = """
import of_the_engine
UNUSED = of_the_engine.value
OFF = {OFF}

def moved(ids):
    return torch.where(ids < 0, ids, ids + OFF)

def combine_topk_swa_indices(rows, starts, positions, seqs, gathers, bases, behind, size, ratio, topk, out, lens):
    from c128a.reference import combined_rows
    requests = torch.bucketize(torch.arange(len(rows), device=out.device), starts[1:], right=True).int()
    made = combined_rows(positions.long(), requests, seqs, gathers, bases, behind, out.shape[1])
    return out.copy_(moved(made[0])), lens.copy_(made[1])
"""


def engine(folder, off=0):
    """A folder as unpacked wheels leave it, with one engine in it."""
    path = folder / "sglang/kernels/ops/attention/dsv4/sparse_prefill_kernels.py"
    path.parent.mkdir(parents=True)
    path.write_text(SOURCE.replace("{OFF}", str(off)))
    about = folder / "sglang-0.5.23.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Name: sglang\nVersion: 0.5.23\n")
    return folder


def test_a_chunk_is_timed_in_both_forms_beside_an_engine(tmp_path):
    found = peers.find(engine(tmp_path))
    assert {name: peer.version for name, peer in found.items()} == {"sglang": "0.5.23"}
    timed = combines.combine(Case((2,), (3_000,), 0, given_capacity=384), found)
    for each in timed:
        each.call()
    widths = {each.facts["variant"]: each.facts["out_width"] for each in timed}
    assert (widths["from_rows_adaptive"], widths["from_rows_fixed"]) == (256, 512)  # the width and 128 of the window
    assert widths["sglang"] == widths["from_positions"] == widths["fill"] == 256


def test_a_step_is_timed_in_every_layer_and_once(monkeypatch):
    monkeypatch.setattr(combines, "LAYERS", (1, 3))
    monkeypatch.setattr(combines, "WORKSPACE_ROWS", 300)  # two chunks: together they take 2 × (70 + 129) rows
    timed = combines.step(STEP, {})
    facts = {(each.facts["layers"], each.facts["variant"]): each.facts for each in timed}
    assert {name: facts[3, name]["launches"] for name in ("released_256", "every_layer", "once")} == {
        "released_256": 3 * 2 * 2,  # a fill and a launch for each of two chunks
        "every_layer": 3 * 2,
        "once": 1,
    }
    size = 3 * (128 + 128) * 4  # 9,000 tokens are 70 entries: 128 columns, and the window
    assert (facts[3, "once"]["bytes"], facts[3, "every_layer"]["bytes"]) == (size, 3 * size)
    assert [each.facts["variant"] for each in timed if not each.in_graph] == ["once_planned"] * 2
    for each in timed:
        if each.facts["layers"] == 1 and "released" not in each.facts["variant"]:
            each.call()


def test_an_engine_whose_rows_are_wrong_is_not_timed(tmp_path):
    with pytest.raises(AssertionError, match=r"sglang differs in cell 0\+2@3000, 256 wide"):
        combines.combine(combines.chunk(2, 3_000), peers.find(engine(tmp_path, off=1)))


def test_a_folder_without_engines_version_or_function_is_refused_with_the_reason(tmp_path):
    with pytest.raises(ValueError, match="holds none of vllm, sglang, tokenspeed_kernel"):
        peers.find(tmp_path)
    path = engine(tmp_path) / "sglang/kernels/ops/attention/dsv4/sparse_prefill_kernels.py"
    path.write_text("")
    with pytest.raises(ValueError, match="has no combine_topk_swa_indices"):
        peers.find(tmp_path)
    (tmp_path / "sglang-0.5.23.dist-info/METADATA").unlink()
    with pytest.raises(ValueError, match=r"no sglang-\*\.dist-info"):
        peers.find(tmp_path)


def test_the_cells_of_the_combine_and_of_the_step():
    assert len(combines.COMBINE_CELLS) == 11 and len(combines.STEP_CELLS) == 16
    assert {sum(case.query_lens) for case in combines.STEP_CELLS} == {8192}
    # vLLM's workspace at 1,048,576 tokens and 8,192 a batch: 4 × (8,192 entries + 128 of the window + 8,192 tokens)
    assert combines.WORKSPACE_ROWS == 66_048
