"""Run the tests on this machine's GPU and record the outcome of each: `python scripts/record_gpu_tests.py OUT.json`.

CI has no GPU; what only a GPU can show is kept as a record in data/, made by this script and committed unedited.
"""

import json
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from c128a.bench.provenance import provenance

# Pages, site and README show nothing more on a GPU; tests of the records wait for those that are being made.
NO_GPU = (
    "browser",
    "ui",
    "scripts",
    "test_notebooks.py",
    "test_site.py",
    "test_jupyter.py",
    "test_readme.py",
    "test_results.py",
    "test_records.py",
    "test_records_h200.py",
)
PATHS = ["tests", *(f"--ignore=tests/{name}" for name in NO_GPU)]


def main() -> int:
    """Run pytest over the torch tests, write the record, return pytest's status."""
    out = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        options = ["-q", "-p", "no:cacheprovider", "-o", "addopts=", "--import-mode=importlib", f"--junitxml={report}"]
        status = int(pytest.main([*PATHS, *options, *sys.argv[2:]]))
        cases = list(ElementTree.parse(report).getroot().iter("testcase"))
    rows = []
    for case in cases:
        kinds = {child.tag for child in case}
        outcome = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
        rows.append({"test": f"{case.get('classname')}::{case.get('name')}", "outcome": outcome})
    counts = {outcome: sum(row["outcome"] == outcome for row in rows) for outcome in ("passed", "failed", "skipped")}
    facts = provenance(" ".join(["python", "scripts/record_gpu_tests.py", "OUT.json", *sys.argv[2:]]))
    record = {"provenance": {**facts, "kind": "tests", **counts}, "rows": rows}
    out.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(counts)
    return status


if __name__ == "__main__":
    sys.exit(main())
