import json
import sys
from types import SimpleNamespace

import pytest

from c128a import census, kernel

JITFunction = kernel.triton.JITFunction
LEFT_ALONE_IN_0_34 = ["decode_stride", "prefill_stride", "num_decode", "table_stride"]


def test_predicted_variants_are_those_counted_on_an_h200_and_ours_do_not_grow_after_the_widths():
    _, naive, ours = zip(*census.predicted(), strict=True)
    assert naive == (1, 3, 4, 5)
    assert set(ours) == {ours[0]} and ours[0] <= 5


@pytest.fixture
def counted(monkeypatch, capsys):
    """The command on row loops by how they are decorated: its status, its counts and what it said on stderr."""
    loop = kernel.row_loop.fn
    others = {"do_not_specialize": kernel._INTEGERS, "do_not_specialize_on_alignment": kernel._POINTERS}
    forms = {"as_first_released": JITFunction(loop), "ours": JITFunction(loop, **others)}
    forms["as_in_0_34"] = JITFunction(loop, do_not_specialize=LEFT_ALONE_IN_0_34)
    monkeypatch.setitem(sys.modules, "forms", SimpleNamespace(**forms, text="no kernel"))

    def run(*arguments):
        status = census.main([*map(str, arguments)])
        told = capsys.readouterr()
        return status, [int(line.split()[0]) for line in told.out.splitlines()], told.err

    return run


@pytest.mark.parametrize(
    ("name", "want"), [("as_first_released", [1, 3, 4, 5]), ("as_in_0_34", [1, 1, 1, 2]), ("ours", [1, 1, 1, 1])]
)
def test_the_command_counts_the_variants_of_a_row_loop_by_how_it_is_decorated(counted, name, want):
    assert counted(f"forms:{name}") == (0, want, "")


def test_the_command_counts_operating_points_of_a_file_and_refuses_what_it_cannot_count(counted, tmp_path):
    given, wrong = tmp_path / "points.json", tmp_path / "wrong.json"
    points = [{"width": 1}, {"width": 16}, {"width": 3}, {"width": 32}, {"width": 2**31}, {"STEP": 64}]
    given.write_text(json.dumps([{"step": "one", "points": points}]))
    wrong.write_text(json.dumps([{"step": "one", "points": [{"width": "wide"}]}]))
    assert counted("forms:as_first_released", "--points", given)[:2] == (0, [5])
    for arguments, told in (
        (["forms:text"], "it must be a function decorated by triton.jit"),
        (["forms:absent"], "absent"),
        (["nowhere:absent"], "nowhere"),
        (["forms:ours", "--points", tmp_path / "none.json"], "none.json"),
        (["forms:ours", "--points", wrong], "width is 'wide'"),
    ):
        status, found, said = counted(*arguments)
        assert (status, found) == (2, []) and told in said
