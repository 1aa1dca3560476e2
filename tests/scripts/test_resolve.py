"""The index alone decides what pip finds: on an index of two small packages, beside a wheel that this machine has."""

import zipfile
from pathlib import Path

import pytest

from scripts import resolve


def wheel(folder: Path, name: str, version: str, *requires: str) -> None:
    """Write an empty wheel, and the page by which an index names it."""
    folder.mkdir(parents=True, exist_ok=True)
    file, about = f"{name}-{version}-py3-none-any.whl", f"{name}-{version}.dist-info"
    with (folder / "index.html").open("a") as page:
        page.write(f'<a href="{file}">{file}</a>')
    metadata = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    metadata += [f"Requires-Dist: {requirement}" for requirement in requires]
    with zipfile.ZipFile(folder / file, "w") as packed:
        packed.writestr(f"{about}/METADATA", "\n".join(metadata) + "\n")
        packed.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        packed.writestr(f"{about}/RECORD", "")


@pytest.fixture
def index(tmp_path, monkeypatch):
    """An index whose torch asks for one triton, on a machine with a torch of its own that asks for none."""
    wheel(tmp_path / "index" / "torch", "torch", "2.13.0", "triton==3.7.1")
    for version in ("3.7.1", "3.9.0"):
        wheel(tmp_path / "index" / "triton", "triton", version)
    wheel(tmp_path / "own", "torch", "2.13.0+cpu")
    monkeypatch.setenv("PIP_INDEX_URL", (tmp_path / "index").as_uri())
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "own"))
    return tmp_path


@pytest.mark.parametrize(("triton", "found"), [("3.7.1", True), ("3.9.0", False)])
def test_a_pin_that_only_a_wheel_of_this_machine_fits_is_found_out(index, triton, found):
    pins = index / "constraints.txt"
    pins.write_text(f"torch==2.13.0\ntriton=={triton}\n")
    assert resolve.resolve("3.12", ["torch>=2.9", "triton>=3.5"], pins)[0] == found


def test_torch_is_pinned_with_the_triton_that_its_wheel_on_the_index_asks_for():
    pins = dict(line.split("==") for line in (resolve.ROOT / "constraints.txt").read_text().split())
    assert (pins["torch"], pins["triton"]) == ("2.13.0", "3.7.1")
