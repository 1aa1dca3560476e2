"""Run the GPU tests under compute-sanitizer and record what it reports: `python scripts/record_sanitizer.py OUT.json`.

memcheck looks for accesses outside any allocation, racecheck for shared memory that two threads use without a barrier.
The two tests of 1,000 replays are left out: they repeat launches that the others make.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

from c128a.bench.provenance import provenance

TOOLS = ("memcheck", "racecheck")
TESTS = [
    "tests/test_incidents_gpu.py",
    "tests/test_incidents.py",
    "tests/test_build.py",
    "tests/test_builder.py",
    "tests/test_combine.py",
]
REPLAYS = [
    "tests/test_incidents_gpu.py::test_incident_1_pitched_rows_are_right_over_1000_random_replays",
    "tests/test_incidents_gpu.py::test_incident_1_packed_rows_are_right_over_1000_random_replays_of_a_graph_for_each_width",
]
PYTEST = ["-q", "-p", "no:cacheprovider", "-o", "addopts=", *(f"--deselect={test}" for test in REPLAYS)]


def main() -> int:
    """Run both tools, write the record; 1 where a tool reported something or a test failed."""
    rows = []
    for tool in TOOLS:
        command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", sys.executable, "-m", "pytest"]
        done = subprocess.run([*command, *PYTEST, *TESTS], capture_output=True, text=True, check=False)
        print(done.stdout[-600:], done.stderr[-600:])
        summary = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: (.*)", done.stdout + done.stderr)
        passed = re.findall(r"(\d+) passed", done.stdout)
        rows.append(
            {
                "tool": tool,
                "summary": summary[-1] if summary else "no summary",
                "reports": int(re.match(r"\d+", summary[-1])[0]) if summary else None,
                "tests_passed": int(passed[-1]) if passed else 0,
                "status": done.returncode,
            }
        )
    facts = provenance("python scripts/record_sanitizer.py OUT.json")
    record = {"provenance": {**facts, "kind": "sanitizer", "tests": TESTS}, "rows": rows}
    Path(sys.argv[1]).write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return int(any(row["status"] or row["reports"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
