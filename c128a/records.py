"""The records as pages read them before there was one table; c128a.bench.records is what to use. Torch-free."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from c128a.bench import records

ELSEWHERE = records.ELSEWHERE
_OLD = {
    "tiled": "tiled_prototype",
    "from_positions": "from_positions_prototype",
    "from_positions_live": "from_positions_prototype_live_prefix",
}


@dataclass(frozen=True)
class Record:
    """One run: a name (the file's, without .json), its provenance, and one dict a measured row."""

    name: str
    provenance: Mapping[str, Any]
    rows: tuple[Mapping[str, Any], ...]

    @property
    def elsewhere(self) -> bool:
        """Whether these figures were taken over from another place."""
        return self.provenance.get("kind") == ELSEWHERE

    @property
    def title(self) -> str:
        """A few words for a caption: what ran, or that it is from elsewhere."""
        gpu = self.provenance.get("gpu", "unknown device")
        return f"figures from elsewhere, {gpu}" if self.elsewhere else f"{self.name}, {gpu}"

    def where(self, **wanted: Any) -> list[Mapping[str, Any]]:
        """The rows whose fields equal all of `wanted`, in the file's order."""
        return [row for row in self.rows if all(row.get(field) == value for field, value in wanted.items())]


def load(name: str) -> Record:
    """One record, checked; raises as c128a.bench.records does."""
    head = records.provenance(name)
    data = json.loads(records._text(records.folder(), name))
    rows = [_old(row, name == ELSEWHERE) for row in data.get("rows", [])]
    return Record(name, head, tuple(rows + data.get("findings", [])))


def load_all() -> list[Record]:
    """Every record: this repository's own first, the figures from elsewhere last, each group by name."""
    return [load(name) for name in records.names()]


def _old(row: dict[str, Any], elsewhere: bool) -> dict[str, Any]:
    if "low" in row:
        row["prediction"] = [row.pop("low"), row.pop("high")]
    if "scale" in row:
        row["floor_scale"] = row.pop("scale")
    if elsewhere:
        row["variant"] = _OLD.get(row["variant"], row["variant"])
        row.pop("bytes", None), row.pop("floor_scale", None), row.pop("out_width", None)
        if row["kernel"] == "host":
            row["us_low"], row["us_high"] = row["us"], row.get("p80", row["us"])
        if row["kernel"] == "empty":
            row["variant"] = "kernel"
        if row["kernel"] == "flashmla_decode":
            row["lens"] = row["max_seq_len"] // 128
    elif row["kernel"] == "combine":
        row["cell"] = row["cell"].removeprefix("0+")
    return row
