"""The optional FlashMLA script: it says why it does not run."""

import json
import re
import runpy
import subprocess
import sys
import types
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "flashmla_widths.py"


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        (None, r"no FlashMLA can be imported \(flash_mla: .*vllm"),
        (types.ModuleType("flash_mla"), "needs an NVIDIA GPU"),
    ],
    ids=["no FlashMLA", "no GPU"],
)
def test_where_it_cannot_run_it_exits_with_the_reason(monkeypatch, capsys, module, reason):
    monkeypatch.setitem(sys.modules, "flash_mla", module)
    monkeypatch.setitem(sys.modules, "vllm", None)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert runpy.run_path(str(SCRIPT))["main"]([]) == 77
    said, told = capsys.readouterr()
    assert re.match(f"not run: .*{reason}", told) and said == ""


@pytest.mark.gpu
def test_where_it_runs_every_width_gives_the_same_output(tmp_path):
    pytest.importorskip("flash_mla", reason="FlashMLA is not installed: its figures stand in data/elsewhere.json")
    out = tmp_path / "flashmla.json"
    done = subprocess.run([sys.executable, str(SCRIPT), "--out", str(out)], capture_output=True, text=True, cwd=ROOT)
    if done.returncode == 77:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr  # the script compares the outputs before it times them
    rows = [row for row in json.loads(out.read_text())["rows"] if row["kernel"] == "flashmla_decode"]
    widths = [(row["max_seq_len"] // 128, row["width"]) for row in rows]
    every = (256, 512, 1024, 2048, 4096, 8192)
    assert widths == [(entries, width) for entries in (256, 1024) for width in every if width >= entries]
