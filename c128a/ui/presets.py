"""Settings worth a look, by the name they have in a URL. Torch-free.

Each preset moves only the parameters it names; a page ignores those it does not have.

>>> PRESETS["pr_test"].values["model_len"]
32768
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Preset:
    """A name for the menu, the reason to look, and the values it sets (URL names, tokens)."""

    title: str
    why: str
    values: dict[str, int | str]


PRESETS: dict[str, Preset] = {
    # Capacity 256 is 32,768 tokens; positions [255, 511] are a batch of 512 tokens, and the width is the least, 128.
    "pr_test": Preset(
        "The test of PR #50004",
        "capacity 256, width 128: two tokens, one decode row and one prefill row",
        {"seq": 512, "model_len": 32_768, "ratio": 128, "policy": "pow2"},
    ),
    "flash_1m": Preset(
        "V4-Flash at 1M tokens",
        "the longest context: the width is the capacity and nothing is saved",
        {"seq": 1_048_576, "model_len": 1_048_576, "ratio": 128, "policy": "pow2"},
    ),
    "pro_pr": Preset(
        "V4-Pro as in PR #50004",
        "a model length of 1,048,576 tokens and a batch of 32,768: 256 of 8,192 columns",
        {"seq": 32_768, "model_len": 1_048_576, "ratio": 128, "policy": "pow2"},
    ),
    "len_70000": Preset(
        "Model length 70,000",
        "a capacity of 640 columns, which is no power of two",
        {"seq": 70_000, "model_len": 70_000, "ratio": 128, "policy": "pow2"},
    ),
    "len_33792": Preset(
        "Model length 33,792",
        "a capacity of 384 columns: the widest row is one that a list of powers of two forgets",
        {"seq": 33_792, "model_len": 33_792, "ratio": 128, "policy": "pow2"},
    ),
    "one_long": Preset(
        "One long among short",
        "one request at 524,416 tokens makes the rows of all others 8,192 columns wide",
        {"seq": 524_416, "model_len": 1_048_576, "ratio": 128, "policy": "pow2"},
    ),
}
