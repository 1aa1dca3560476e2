"""Run the tests on this machine's GPU, plain and under compute-sanitizer, and record what they find.

    python scripts/record_checks.py tests data/NAME-tests.json
    python scripts/record_checks.py sanitizer data/NAME-sanitizer.json

CI has no GPU; what only a GPU can show is kept as a record in data/, made by this script and committed unedited.
memcheck looks for accesses outside any allocation, racecheck for shared memory that two threads use without a barrier.
Torch's cache of freed memory is off for both, or an access past the end of one tensor would fall into another. That
memcheck would see one is shown first, by a build that reads past its block table.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import product
from pathlib import Path

import torch

from c128a.bench import records
from c128a.bench.provenance import provenance
from c128a.case import Case
from c128a.metadata import make_plan

ROOT = Path(__file__).resolve().parents[1]
PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts=", "--import-mode=importlib"]
# Pages, site and serve lines show nothing more on a GPU; tests of the records wait for those that are being made.
NO_GPU = ("deployment", "pages", "show", "test_readme.py", "test_site.py", "test_torch_free.py")
NO_GPU += ("bench/test_h200.py", "bench/test_profile.py", "scripts/test_mutations.py", "scripts/test_resolve.py")
KERNELS = ("metadata", "combine", "frozen", "incidents", "incidents_gpu", "shard")
AT_ONCE = 6  # files of tests that are watched at the same time, each by a process of its own
REPLAYS = "random_replays"  # two tests of 1,000 replays, which the sanitizer leaves out: they repeat the other launches


def run_tests() -> tuple[dict, list[dict]]:
    """The outcome of every test, and how many there are of each."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        ignored = [f"--ignore=tests/{name}" for name in NO_GPU]
        subprocess.run([*PYTEST, "tests", *ignored, f"--junitxml={report}"], cwd=ROOT)
        cases = ElementTree.parse(report).getroot()
    found = []
    for case in cases.iter("testcase"):
        kinds = {child.tag for child in case}
        outcome = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
        found.append({"test": f"{case.get('classname')}::{case.get('name')}", "outcome": outcome})
    return {name: sum(row["outcome"] == name for row in found) for name in ("passed", "failed", "skipped")}, found


def read_past_a_table() -> None:
    """Build one row from a table of two blocks that the kernel takes for one of 64; needs a GPU."""
    inputs = Case.decode(1, 16_384).tensors("cuda")
    table = inputs.block_table[:, :2].clone()
    tensors = (inputs.positions, inputs.token_to_req_indices, table, inputs.slot_mapping)
    rows = torch.empty(2, 1, 128, dtype=torch.int32, device="cuda")
    buffers = (rows[0], torch.empty(1, dtype=torch.int32, device="cuda"), rows[1])
    plan = make_plan("packed", 1, 128, 2, 128, buffers, tensors)
    replace(plan, table=(64, 1, 64)).launch(*buffers, *tensors)
    torch.cuda.synchronize()


def sanitized(tool: str, *command: str) -> tuple[dict, subprocess.CompletedProcess[str]]:
    """What a tool of compute-sanitizer reports over a command, and how the command ended."""
    watched = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", sys.executable, *command]
    environment = os.environ | {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
    done = subprocess.run(watched, cwd=ROOT, env=environment, capture_output=True, text=True)
    print(tool, done.stdout[-1500:], done.stderr[-600:], flush=True)
    summary = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: ((\d+).*)", done.stdout + done.stderr)
    said, reports = summary[-1] if summary else ("no summary", None)
    return {"tool": tool, "summary": said, "reports": reports and int(reports)}, done


def run_sanitizer() -> tuple[dict, list[dict]]:
    """What each tool reports over each file of tests of the kernels, and what it says to a bad read."""
    bad_read, _ = sanitized("memcheck", "-c", "from scripts import record_checks; record_checks.read_past_a_table()")
    if not bad_read["reports"]:
        raise SystemExit(f"memcheck does not see a read past a table, so its silence means nothing: {bad_read}")
    tests = [f"tests/test_{name}.py" for name in KERNELS]

    def watch(tool: str, test: str) -> dict:
        row, done = sanitized(tool, *PYTEST[1:], "-rf", "-k", f"not {REPLAYS}", test)
        passed = re.findall(r"(\d+) passed", done.stdout)
        row |= {"test": test, "tests_passed": int(passed[-1]) if passed else 0}
        return row | {"tests_failed": re.findall(r"^FAILED (\S+)", done.stdout, re.M), "status": done.returncode}

    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = list(pool.map(watch, *zip(*product(("memcheck", "racecheck"), tests), strict=True)))
    return {"read_past_a_table": bad_read["summary"]}, found


def main() -> int:
    """Run one of the two and write its record; 1 where a test failed or a tool reported something."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("kind", choices=["tests", "sanitizer"])
    parser.add_argument("out", type=Path, help="write the record here")
    options = parser.parse_args()
    with records.whole_file(options.out, reserve=2**20) as file:
        counts, found = run_tests() if options.kind == "tests" else run_sanitizer()
        facts = provenance(f"python scripts/record_checks.py {options.kind} {options.out}")
        file.write(records.as_text({**facts, "kind": options.kind, **counts}, findings=found))
    print(counts)
    return int(any(row["outcome"] == "failed" if options.kind == "tests" else row["status"] for row in found))


if __name__ == "__main__":
    sys.exit(main())
