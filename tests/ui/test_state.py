"""The URL is the state of a page: what it holds is used or noted, and a link gives it back."""

import urllib.parse

import pytest

from c128a.case import PRESETS
from c128a.ui import state

FIELDS = state.shared_fields()


def test_an_empty_address_gives_the_defaults_without_a_note():
    values, notes = state.read({}, FIELDS)
    assert (values["seq"], values["model_len"], values["ratio"], values["policy"]) == (32_768, 1_048_576, 128, "pow2")
    assert notes == []


@pytest.mark.parametrize(
    ("name", "text", "bound"),
    [
        ("seq", "-1", "0 to 1,048,576"),
        ("seq", "1048577", "0 to 1,048,576"),
        ("seq", "many", "0 to 1,048,576"),
        ("seq", "1e5", "0 to 1,048,576"),
        ("seq", "", "0 to 1,048,576"),
        ("seq", "--5", "0 to 1,048,576"),
        ("seq", "9" * 40, "0 to 1,048,576"),
        ("seq", "5-5", "0 to 1,048,576"),
        ("model_len", "0", "1 to 1,048,576"),
        ("ratio", "64", "4, 128"),
        ("policy", "<script>", "fixed, pow2, aligned"),
        ("layout", "column", "packed, pitched"),
        ("preset", "none", "free, pr_test"),
    ],
)
def test_nonsense_falls_back_and_the_note_names_parameter_value_and_bounds(name, text, bound):
    values, notes = state.read({name: text}, FIELDS)
    assert values == state.read({}, FIELDS)[0]
    assert len(notes) == 1
    assert notes[0].startswith(f"{name} is {text} in the address") and bound in notes[0]


def test_a_parameter_of_another_page_is_left_alone():
    assert state.read({"file": "01_width.py", "access_token": "x"}, FIELDS)[1] == []


def test_the_last_of_several_values_counts():
    assert state.read({"seq": ["1", "2"]}, FIELDS)[0]["seq"] == 2


def test_a_preset_moves_the_defaults_and_a_value_beside_it_wins():
    values, notes = state.read({"preset": "len_33792", "seq": "5"}, FIELDS)
    assert (values["model_len"], values["seq"], notes) == (33_792, 5, [])


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_holds_only_values_that_the_fields_accept(name):
    for key, value in PRESETS[name].values.items():
        assert FIELDS[key].parse(str(value)) == value


def test_a_link_read_back_is_the_state_it_carried():
    values = {
        "seq": 524_416,
        "model_len": 983_040,
        "ratio": 4,
        "policy": "aligned",
        "layout": "pitched",
        "preset": "free",
    }
    query = urllib.parse.parse_qs(state.link("02_layout", values).lstrip("?"))
    assert query.pop("file") == ["02_layout.py"]
    assert state.read(query, FIELDS) == (values, [])


def test_a_page_exported_to_wasm_is_linked_by_its_file(monkeypatch):
    monkeypatch.setattr("sys.platform", "emscripten")
    assert state.link("02_layout", {"seq": 5}) == "02_layout.html?seq=5"
    assert state.link("02_layout", {}) == "02_layout.html"


def test_the_ladder_steps_over_every_point_where_the_width_doubles():
    ladder = state.token_ladder(1_048_576)
    assert {16_384, 16_512, 32_768, 32_896, 524_288, 524_416, 1_048_576} <= set(ladder)
    assert ladder == sorted(set(ladder)) and ladder[0] == 0 and ladder[-1] == 1_048_576


def test_the_ladder_of_a_short_model_ends_at_its_length():
    assert state.token_ladder(100, 1000) == [0, 100]
