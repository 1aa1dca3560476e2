"""What the site holds: every page, each in its default state and in every preset, and the name of the file of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from marimo._environments import script_metadata

from c128a.case import PRESETS
from c128a.ui.page import PAGES

ROOT = Path(__file__).resolve().parents[2]
IN_BROWSER = ("01_width", "02_layout", "03_kernel", "06_deployment")  # these compute without torch
LIVE = "live"  # the folder of the pages that compute in the browser
JUPYTER = "notebooks"  # the folder of the .ipynb files

# The default of page 06 is a safe release; the one that had to be reverted is worth a file of its own.
REVERTED = ("release_0271", "vLLM 0.27.1, which was reverted", {"release": "0.27.1"})


@dataclass(frozen=True)
class Case:
    """One file of the site: a page with these values in its address. `name` is empty for the default state."""

    page: str
    name: str
    title: str
    settings: Mapping[str, str]

    @property
    def file(self) -> str:
        """The name of the file, beside the index."""
        return f"{self.page}-{self.name}.html" if self.name else f"{self.page}.html"


@dataclass(frozen=True)
class Card:
    """What a page says about itself: number and question, and one sentence."""

    title: str
    description: str


def cases(presets: tuple[str, ...] = tuple(PRESETS)) -> list[Case]:
    """Every file to export, page by page, the default state first."""
    found = []
    for page in PAGES:
        found.append(Case(page, "", "Default", {}))
        found += [Case(page, name, PRESETS[name].title, {"preset": name}) for name in presets]
        if page == "06_deployment":
            found.append(Case(page, *REVERTED))
    return found


def notebook(page: str) -> Path:
    """The source of a page."""
    return ROOT / "notebooks" / f"{page}.py"


def card(page: str) -> Card:
    """Title and description, as the gallery shows them, from the notebook's header."""
    header = script_metadata.loads(notebook(page).read_text(encoding="utf-8")) or {}
    shown = header["tool"]["marimo"]["opengraph"]
    return Card(shown["title"], shown["description"])
