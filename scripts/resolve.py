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


def stranger() -> dict[str, str]:
    """The environment of a machine that has the index, and no wheels or settings of its own."""
    kept = {name: value for name, value in os.environ.items() if name[:4] != "PIP_" or name in WAY_TO_THE_INDEX}
    return {**kept, "PIP_CONFIG_FILE": os.devnull, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def resolve(python: str, requirements: list[str], constraints: Path, environment: dict[str, str]) -> tuple[bool, str]:
    """Whether there is a set for this version of Python, and what pip said."""
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--use-feature=fast-deps"]
    command += ["--python-version", python, "--only-binary=:all:", "--target", "unused"]
    command += ["--constraint", str(constraints), *requirements]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    return done.returncode == 0, done.stdout + done.stderr


def main() -> int:
    """Resolve the project with all its extras for each Python."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    requirements = [*project["dependencies"], *extras["site"], *extras["test"]]
    requirements.remove("c128a[site]")  # the project itself, which no index has
    failed = False
    with tempfile.TemporaryDirectory() as pip:
        environment = {**stranger(), "PYTHONPATH": pip}
        newer = [sys.executable, "-m", "pip", "install", "--quiet", "--retries", "1", "--target", pip, PIP]
        if subprocess.run(newer, env=environment).returncode:
            print(f"nothing was resolved: no package index gives {PIP}")
            return 0
        for python in PYTHONS:
            found, said = resolve(python, requirements, ROOT / "constraints.txt", environment)
            failed |= not found
            told = ", ".join(re.findall(r"\b(?:torch|triton)-\S+", said)) if found else said
            print(f"Python {python}: {told}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
