"""The settings and the numbers of page 06: from the address to `check`, and from its answer to tables. Torch-free.

>>> values, _ = state.read({"release": "0.27.1"}, fields())
>>> answer(values).verdict
'danger'
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from c128a.case import COMPRESS_RATIO as RATIO
from c128a.case import PRESETS
from c128a.deployment import Deployment, check
from c128a.deployment.findings import CONSUMERS, GRAPHS
from c128a.deployment.releases import RELEASES
from c128a.deployment.serve import ServeLine
from c128a.deployment.step_cost import StepCost
from c128a.ui import state
from c128a.width import sequence_range

OWN = "own"  # in place of a release: a builder with a layout and a policy of its own
RELEASE_NAMES = {
    **{release.name: f"vLLM {release.name}" for release in RELEASES},
    "0.34.0": "vLLM 0.34.0 or later",
    OWN: "a builder of your own",
}
# Arguments of check -> names in the address.
NAMES = {
    "max_model_len": "model_len",
    "max_num_batched_tokens": "batch",
    "max_num_seqs": "seqs",
    "num_speculative_tokens": "spec",
    "block_size": "block",
    "graph": "graph",
    "consumer": "consumer",
    "batch_invariant": "invariant",
}


@dataclass(frozen=True)
class Widths:
    """A list of widths, as text: numbers with commas between them; empty where no list is given."""

    default: str = ""

    def parse(self, text: str) -> str:
        """The list in one form; raises ValueError for anything but a few whole numbers.

        >>> Widths().parse("256, 128")
        '128,256'
        """
        if not text.strip():
            return ""
        if not re.fullmatch(r"\s*[0-9]{1,6}(\s*,\s*[0-9]{1,6}){0,127}\s*", text):
            raise ValueError("it must be widths in columns with commas between them, at most 128 of them")
        if any(not int(part) or int(part) % 128 for part in text.split(",")):
            raise ValueError("it must be widths in columns, each a multiple of 128")
        return ",".join(str(width) for width in sorted({int(part) for part in text.split(",")}))


def fields() -> dict[str, Any]:
    """The parameters of the page. seq and ratio are carried along for the other pages; seq is the typical length."""
    shared = state.shared_fields()
    return {
        **{name: shared[name] for name in ("preset", "model_len", "seq", "ratio", "layout", "policy")},
        "release": state.Choice("0.30.0", tuple(RELEASE_NAMES)),
        "batch": state.Integer(8192, 1, 1_048_576),
        "seqs": state.Integer(512, 1, 65_536),
        "spec": state.Integer(0, 0, 64),
        "block": state.Choice(256, (128, 256, 512, 1024)),
        "graph": state.Choice("full", GRAPHS),
        "consumer": state.Choice("flashmla_sm90", CONSUMERS),
        "capacity": state.Integer(0, 0, 65_536),  # columns; 0: sized from the model length
        "warm": Widths(),
        "invariant": state.Choice("no", ("no", "yes")),
    }


def settle(typed: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """What the controls hold, as settings, and a note for each value that cannot be used.

    >>> settle({"warm": "128, x"})[1]
    ['warm is 128, x; it must be widths in columns with commas between them, at most 128 of them. Shown: no list.']
    """
    words = {True: "yes", False: "no"}
    texts = {
        name: words[value] if isinstance(value, bool) else str(value)
        for name, value in typed.items()
        if value is not None
    }
    values, notes = state.read(texts, fields())
    return values, [note.replace(" in the address", "").replace("Shown: .", "Shown: no list.") for note in notes]


def answer(values: Mapping[str, Any], unread: Sequence[str] = ()) -> Deployment:
    """What `check` says to the settings of the page; unread: what a pasted command holds that the page did not read."""
    builder: dict[str, Any] = {"release": values["release"]}
    if values["release"] == OWN:
        builder = {"layout": values["layout"], "policy": values["policy"]}
    warm = [int(width) for width in values["warm"].split(",")] if values["warm"] else None
    arguments = {argument: values[name] for argument, name in NAMES.items()}
    arguments |= {**builder, "capacity": values["capacity"] or None, "batch_invariant": values["invariant"] == "yes"}
    try:
        return check(**arguments, warmup_widths=warm, unread=unread)
    except ValueError:  # a list with widths beyond these buffers
        return check(**arguments, unread=unread)


def apply_preset(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The settings with those that a preset names over them; the release and the rest stay as they are.

    >>> apply_preset({"release": "0.27.1", "model_len": 1, "preset": "free"}, "len_33792")
    {'release': '0.27.1', 'model_len': 33792, 'preset': 'len_33792'}
    """
    named = PRESETS[name].values if name in PRESETS else {}
    return {**values, **{key: value for key, value in named.items() if key in values}, "preset": name}


def apply_line(values: Mapping[str, Any], line: ServeLine) -> tuple[dict[str, Any], list[str]]:
    """The settings with those of a command line over them, and a note for each that the page cannot hold.

    >>> from c128a.deployment import read_serve_line
    >>> start, _ = state.read({}, fields())
    >>> apply_line(start, read_serve_line("vllm serve m --max-num-seqs 64 --max-model-len 2M"))[1]
    ['--max-model-len 2M: it must be a whole number from 1 to 1,048,576 on this page. Kept: 1,048,576.']
    """
    known, merged, notes = fields(), {**values, "preset": "free"}, []
    for argument, value in line.values.items():
        if argument not in NAMES:
            notes.append(f"{line.sources[argument]}: this page has no control for it; the command has.")
            continue
        name = NAMES[argument]
        text = {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
        try:
            merged[name] = known[name].parse(text)
        except ValueError as error:
            kept = f"{values[name]:,}" if isinstance(values[name], int) else values[name]
            notes.append(f"{line.sources[argument]}: {error} on this page. Kept: {kept}.")
    return merged, notes


def buffer_rows(found: Deployment) -> list[dict[str, Any]]:
    """One row a buffer of index rows and holder; lens and request ids are thousands of times smaller and left out."""
    holders = (("this package", "bytes"), ("released", "released_bytes"))
    return [
        {"holder": holder, "buffer": buffer.name, "bytes": getattr(buffer, field)}
        for holder, field in holders
        for buffer in found.buffers
        if buffer.columns > 1
    ]


def rows_bytes(found: Deployment) -> tuple[int, int]:
    """Bytes of the index rows with this package's builder and with the released one, without lens and request ids.

    >>> rows_bytes(check(release="0.30.0"))
    (285179904, 536870912)
    """
    rows = buffer_rows(found)
    ours = sum(row["bytes"] for row in rows if row["holder"] == "this package")
    return ours, sum(row["bytes"] for row in rows) - ours


def width_rows(found: Deployment) -> list[dict[str, Any]]:
    """One row a width: reachable ones with the lengths that reach them, and listed ones that nothing reaches."""
    setup, given = found.setup, found.setup.warmup_widths
    rows = []
    for width in found.widths:
        first, last = sequence_range(width, RATIO, setup.capacity, policy=setup.policy)
        status = "reachable" if given is None else "in your list" if width in given else "missing from your list"
        rows.append({"width": width, "first": first, "last": last, "status": status})
    for width in sorted(set(given or ()) - set(found.widths)):
        rows.append({"width": width, "first": None, "last": None, "status": "never chosen"})
    return rows


def widths_frame(found: Deployment) -> pd.DataFrame:
    """One row a width, for the download."""
    return pd.DataFrame(width_rows(found)).astype({"first": "Int64", "last": "Int64"})


def findings_frame(found: Deployment) -> pd.DataFrame:
    """One row a finding, for the download."""
    columns = ["severity", "incident", "code", "title", "why", "setting"]
    frame = pd.DataFrame(
        [[getattr(finding, column) for column in columns] for finding in found.findings], columns=columns
    )
    return frame.astype({"incident": "Int64"})


COST_COLUMNS = (
    "full step",
    "rows",
    "longest sequence",
    "width",
    "builder, once",
    "combine, each layer",
    "V4-Flash, together",
    "V4-Pro, together",
)


def cost_rows(costs: Sequence[StepCost]) -> list[tuple[str, ...]]:
    """The step costs as text, one row a step and case, in the order of COST_COLUMNS."""
    rows = []
    for cost in costs:
        totals = [cost.total_us("V4-Flash"), cost.total_us("V4-Pro")]
        rows.append(
            (
                f"{cost.case} {cost.step}",
                f"{cost.rows:,}",
                f"{cost.max_seq_len:,}",
                f"{cost.width:,}",
                _microseconds(cost.builder_us),
                "none" if cost.step == "decode" else _microseconds(cost.combine_us),
                *(_microseconds(total) for total in totals),
            )
        )
    return rows


def _microseconds(value: float | None) -> str:
    if value is None:
        return "not measured"
    return f"{value:,.0f} µs" if value >= 100 else f"{value:.1f} µs"
