"""The optional FlashMLA script: it says why it does not run."""

import json
import runpy
import subprocess
import sys
import types
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "flashmla_widths.py"


def test_without_flashmla_it_exits_with_the_reason():
    code = (
        "import runpy, sys\n"
        "sys.modules['flash_mla'] = sys.modules['vllm'] = None\n"
        f"sys.argv = ['flashmla_widths.py']\nrunpy.run_path({str(SCRIPT)!r}, run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 77
    assert done.stderr.startswith("not run: no FlashMLA can be imported (flash_mla: ")
    assert "vllm" in done.stderr and done.stdout == ""


def test_without_a_gpu_it_exits_with_the_reason(monkeypatch, capsys):
    import torch

    monkeypatch.setitem(sys.modules, "flash_mla", types.ModuleType("flash_mla"))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    main = runpy.run_path(str(SCRIPT))["main"]
    assert main([]) == 77
    assert "not run: FlashMLA needs an NVIDIA GPU" in capsys.readouterr().err


@pytest.mark.gpu
def test_where_it_runs_every_width_gives_the_same_output(tmp_path):
    pytest.importorskip("flash_mla", reason="FlashMLA is not installed: its figures stand in data/elsewhere.json")
    out = tmp_path / "flashmla.json"
    done = subprocess.run([sys.executable, str(SCRIPT), "--out", str(out)], capture_output=True, text=True, cwd=ROOT)
    if done.returncode == 77:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr  # the script compares the outputs before it times them
    widths = [(row["max_seq_len"] // 128, row["width"]) for row in json.loads(out.read_text())["rows"]]
    assert widths == [(256, w) for w in (256, 512, 1024, 2048, 4096, 8192)] + [
        (1024, w) for w in (1024, 2048, 4096, 8192)
    ]
