"""The list of breaks names texts as they stand: a break that cannot be made shows nothing."""

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LISTED = tomllib.loads((ROOT / "scripts" / "mutations.toml").read_text(encoding="utf-8"))["mutation"]


@pytest.mark.parametrize("mutation", LISTED, ids=lambda mutation: mutation["name"])
def test_the_text_of_a_break_stands_once_in_its_file(mutation):
    assert (ROOT / mutation["file"]).read_text(encoding="utf-8").count(mutation["old"]) == 1
