"""Break the code on purpose and see whether a test notices: `python scripts/mutations.py [NAME …]`.

scripts/mutations.toml lists the breaks by file: a text that stands in it once, what takes its place, and the tests that
must fail then. Each is tried in a copy of the repository. Exit status 1 where a break survives without a reason.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import sys
import tempfile
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PYTEST = ["-x", "-q", "-p", "no:cacheprovider", "--hypothesis-profile=first failure"]
LIMIT_S = 300
# A process for each mutation, from one that has imported what does not change.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["altair", "hypothesis", "marimo", "pandas", "pytest", "torch"])


def mutations() -> list[dict[str, str]]:
    """The list, each with name, file, old and new text, tests (or its file's), and a reason where it may survive."""
    files = tomllib.loads((ROOT / "scripts" / "mutations.toml").read_text(encoding="utf-8"))
    return [{"file": file, "tests": of["tests"], **each} for file, of in files.items() for each in of["breaks"]]


def run_tests(copy: Path, tests: str) -> None:
    """Run tests in the copy and end this process with pytest's status; what it says goes to a file beside the copy."""
    for stream in (1, 2):
        os.dup2(os.open(copy.with_suffix(".log"), os.O_CREAT | os.O_WRONLY | os.O_TRUNC), stream)
    os.chdir(copy)
    sys.dont_write_bytecode = True  # two breaks of one length within a second would share what is compiled
    os.environ["PYTHONPATH"] = str(copy)  # for the programs that tests start
    sys.exit(int(pytest.main([*PYTEST, *tests.split()])))


def survives(copy: Path, mutation: dict[str, str]) -> bool:
    """Whether its tests pass with a mutation; raises SystemExit where its text does not stand once in the file."""
    path = copy / mutation["file"]
    text = path.read_text(encoding="utf-8")
    if text.count(mutation["old"]) != 1:
        raise SystemExit(f"{mutation['name']}: {text.count(mutation['old'])} times in {mutation['file']}")
    path.write_text(text.replace(mutation["old"], mutation["new"]), encoding="utf-8")
    tests = FORKS.Process(target=run_tests, args=(copy, mutation["tests"]))
    tests.start()
    tests.join(LIMIT_S)
    tests.kill()
    tests.join()
    path.write_text(text, encoding="utf-8")
    if tests.exitcode in (4, 5):
        raise SystemExit(f"{mutation['name']}: pytest ran no test\n{copy.with_suffix('.log').read_text()[-2000:]}")
    return tests.exitcode == 0


def main() -> int:
    """Try the mutations whose name or file begins so, or all of them."""
    parser = argparse.ArgumentParser(description="Break the code on purpose and see whether a test notices.")
    parser.add_argument("names", nargs="*", default=[""], help="how the file of a mutation begins; all without")
    names = tuple(parser.parse_args().names)
    chosen = [each for each in mutations() if f"{each['file']}: {each['name']}".startswith(names)]
    survivors = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        ignored = shutil.ignore_patterns(".git", ".venv", "__pycache__")
        shutil.copytree(ROOT, copy, symlinks=True, ignore=ignored)
        for at, each in enumerate(chosen, 1):
            left = survives(copy, each)
            survivors += [each] if left else []
            told = "SURVIVES" if left else "noticed"
            print(f"{at}/{len(chosen)} {each['file']}: {each['name']}: {told}", flush=True)
    for each in survivors:
        print(f"survivor {each['name']}: {each.get('reason', 'no reason given')}")
    return int(any("reason" not in each for each in survivors))


if __name__ == "__main__":
    sys.exit(main())
