"""The presets are the cases they say they are (values of facts.md, sections 1 and 4)."""

import pytest

from c128a.ui.presets import PRESETS
from c128a.width import active_topk_width, capacity_width


@pytest.mark.parametrize(
    ("name", "capacity", "width"),
    [
        ("pr_test", 256, 128),
        ("flash_1m", 8192, 8192),
        ("pro_pr", 8192, 256),
        ("len_70000", 640, 640),
        ("len_33792", 384, 384),
        ("one_long", 8192, 8192),
    ],
)
def test_a_preset_gives_the_capacity_and_width_it_stands_for(name, capacity, width):
    values = PRESETS[name].values
    assert capacity_width(values["model_len"]) == capacity
    assert active_topk_width(values["seq"], 128, capacity) == width
