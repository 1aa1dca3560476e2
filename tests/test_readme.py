import re
import subprocess
import sys
from pathlib import Path

from scripts.workbook import SESSION_TTL

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_results_of_the_readme_are_those_of_the_records():
    script = ROOT / "scripts" / "readme_results.py"
    assert subprocess.run([sys.executable, str(script), "--check"], cwd=ROOT, check=False).returncode == 0


def test_every_file_that_the_readme_links_exists():
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in link]
    assert len(links) > 10
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_every_test_that_the_incident_list_names_exists():
    named = set(re.findall(r"test_\w+\.py", (ROOT / "docs" / "incidents.md").read_text(encoding="utf-8")))
    assert len(named) >= 4
    assert [name for name in sorted(named) if not (ROOT / "tests" / name).exists()] == []


def test_both_commands_of_the_readme_are_targets_of_the_makefile():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^    make (\w+)", README, re.M):
        assert re.search(rf"^{target}:", makefile, re.M), target


def test_the_server_that_the_scripts_measure_ends_sessions_as_that_of_the_makefile_does():
    assert f" --session-ttl {SESSION_TTL} " in (ROOT / "Makefile").read_text(encoding="utf-8")
