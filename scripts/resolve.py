"""Whether pip finds a set of packages under constraints.txt on each Python: `python scripts/resolve.py`.

Nothing is installed. pip asks the package index alone, without the wheels and settings of this machine.
A condition on the Python in a requirement (`; python_version < "3.12"`) is read for the Python that runs this.

Exit status: 0 where every set was found, and where no index answers, with a word on it; 1 with what pip said otherwise.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ("3.11", "3.12", "3.13")
# Older ones download every wheel of a set, gigabytes of CUDA, to read what it requires; this one reads only that.
PIP = "pip==26.3"
WAY_TO_THE_INDEX = ("PIP_INDEX_URL", "PIP_CERT", "PIP_CLIENT_CERT", "PIP_PROXY", "PIP_TRUSTED_HOST")


def pip(*arguments: str, **environment: str) -> tuple[bool, str]:
    """Whether `pip install` succeeds where there is the index, and no wheels or settings of a machine; what it said."""
    kept = {name: value for name, value in os.environ.items() if name[:4] != "PIP_" or name in WAY_TO_THE_INDEX}
    kept |= {"PIP_CONFIG_FILE": os.devnull, "PIP_DISABLE_PIP_VERSION_CHECK": "1"} | environment
    command = [sys.executable, "-m", "pip", "install", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=kept)
    return done.returncode == 0, done.stdout + done.stderr


def resolve(python: str, requirements: list[str], pins: Path, **environment: str) -> tuple[bool, str]:
    """Whether there is a set for this version of Python, and what pip said; pins: a file of constraints."""
    options = ["--dry-run", "--ignore-installed", "--use-feature=fast-deps", "--only-binary=:all:", "--target=unused"]
    return pip(*options, "--python-version", python, "--constraint", str(pins), *requirements, **environment)


def main() -> int:
    """Resolve the project with all its extras for each Python."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    requirements = sum(project["optional-dependencies"].values(), project["dependencies"])
    requirements.remove("c128a[site]")  # the project itself, which no index has
    with tempfile.TemporaryDirectory() as newer:
        there, said = pip("--quiet", "--retries", "1", "--target", newer, PIP)
        if not there:
            print(f"nothing was resolved: no package index gives {PIP}\n{said}")
            return 0
        pins, index = ROOT / "constraints.txt", {"PYTHONPATH": newer}
        every = {python: resolve(python, requirements, pins, **index) for python in PYTHONS}
    for python, (found, said) in every.items():
        told = ", ".join(re.findall(r"\b(?:torch|triton)-\S+", said)) if found else said
        print(f"Python {python}: {told}")
    return int(not all(found for found, _ in every.values()))


if __name__ == "__main__":
    sys.exit(main())
