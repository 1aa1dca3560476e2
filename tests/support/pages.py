"""Programs that run one page each: what all of them import is imported once, then each is a process of its own."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

FORKS = """
import json, os, sys
folder, program, cases, missing = json.loads(sys.argv[1])
sys.modules.update(dict.fromkeys(missing))
import altair, marimo, pandas
if "torch" not in missing:
    import torch
for at, arguments in enumerate(cases):
    if os.fork() == 0:
        for stream, name in ((1, "stdout"), (2, "stderr")):
            os.dup2(os.open(f"{folder}/{at}.{name}", os.O_CREAT | os.O_WRONLY), stream)
        sys.argv[1:] = arguments
        exec(compile(program, "<program>", "exec"), {"__name__": "__main__"})
        sys.stdout.flush()
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
"""


@dataclass(frozen=True)
class Ran:
    """How a program ended, and what it wrote."""

    returncode: int
    stdout: str
    stderr: str

    def text(self) -> str:
        """What it wrote; fails, with the end of its errors, where it ended badly."""
        assert self.returncode == 0, self.stderr[-3000:]
        return self.stdout


def run_each(program: str, cases: Sequence[Sequence[str]], missing: Sequence[str] = ()) -> list[Ran]:
    """The program, run in the root of the checkout with each of these arguments; `missing` cannot be imported."""
    with tempfile.TemporaryDirectory() as folder:
        asked = json.dumps([folder, program, list(map(list, cases)), list(missing)])
        command = [sys.executable, "-c", FORKS, asked]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
        codes = [int(line) for line in done.stdout.split()]
        assert len(codes) == len(cases), done.stderr[-3000:]
        wrote = [Path(folder, str(at)) for at in range(len(codes))]
        texts = [[path.with_suffix(suffix).read_text() for suffix in (".stdout", ".stderr")] for path in wrote]
        return [Ran(code, *both) for code, both in zip(codes, texts, strict=True)]
