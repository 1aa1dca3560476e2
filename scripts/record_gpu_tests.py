"""Run the tests on this machine's GPU and record the outcome of each: `python scripts/record_gpu_tests.py OUT.json`.

CI has no GPU; what only a GPU can show is kept as a record in data/, made by this script and committed unedited.
"""

import json
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from c128a.provenance import provenance

PATHS = ["tests", "--ignore=tests/browser", "--ignore=tests/ui"]


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
