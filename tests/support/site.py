"""The workbook as files, built once for all tests: what `make site` writes, with one preset instead of six."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(path.stem for path in (ROOT / "notebooks").glob("*.py"))
PRESET = "len_70000"
LIVE = ["01_width", "02_layout", "03_kernel", "06_deployment"]


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder; processes that share the tests share it too."""
    pytest.importorskip("marimo", reason="marimo is not installed")
    from filelock import FileLock

    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "popen" in base.name else base  # pytest-xdist gives each process a folder below one
    folder = shared / "under" / "a" / "path" / "site"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(shared / "site.lock"):
        if not (folder / "index.html").is_file():  # written last
            command = [sys.executable, "scripts/build_site.py", str(folder), "--presets", PRESET]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
            assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return folder
