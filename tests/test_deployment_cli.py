"""The command line of the check: exit status, text, JSON."""

import io
import json
import subprocess
import sys

import pytest

from c128a.deployment import check
from c128a.deployment.cli import command, main, report
from c128a.deployment.serve_args import read_serve_line

PR_50004 = "vllm serve deepseek-ai/DeepSeek-V4-Pro --max-model-len 1M --max-num-batched-tokens 8192 --max-num-seqs 512"


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["--release", "0.30.0"], 0),
        (["--release", "0.27.1"], 1),
        (["--release", "0.27.1", "--graph", "eager"], 0),  # a warning is no failure
        (["--layout", "packed", "--policy", "pow2"], 1),
        (["--release", "0.30.0", "--capacity", "7680"], 1),
        (["--release", "0.27.1", "--serve", f"{PR_50004} --enforce-eager"], 0),
        (["--release", "0.27.1", "--serve", PR_50004], 1),
    ],
)
@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
def test_exit_status_says_whether_something_is_dangerous(arguments, status, as_json, capsys):
    assert main([*arguments, *(["--json"] if as_json else [])]) == status
    assert capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--release", "0.29.0"],
        ["--release", "0.30.0", "--max-model-len", "1.5M"],
        ["--release", "0.30.0", "--graph", "sometimes"],
        ["--release", "0.30.0", "--max-num-seqs", "0"],
        ["--release", "0.30.0", "--layout", "packed"],
        ["--release", "0.30.0", "--serve", "vllm serve m --max-model-len x"],
    ],
    ids=" ".join,
)
def test_bad_arguments_exit_with_2_and_a_message(arguments, capsys):
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert exit_.value.code == 2
    assert "error: " in capsys.readouterr().err


def test_an_option_of_its_own_overrides_the_pasted_line(capsys):
    line = """vllm serve m --max-model-len 1M -sc '{"num_speculative_tokens": 3}'"""
    options = ["--max-model-len", "33792", "--num-speculative-tokens", "0"]
    main(["--release", "0.30.0", "--serve", line, *options, "--json"])
    setup = json.loads(capsys.readouterr().out)["setup"]
    assert (setup["max_model_len"], setup["num_speculative_tokens"]) == (33_792, 0)


def test_the_line_can_come_from_standard_input(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("vllm serve m --max-model-len 33792 -tp 8"))
    assert main(["--release", "0.30.0", "--serve", "-", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["capacity"] == 384
    assert answer["command_line"]["not_read"] == ["m", "-tp 8"]


def test_the_text_names_verdict_numbers_reason_and_setting():
    text = report(check(release="0.27.1"), read_serve_line(PR_50004))
    assert text.startswith("DANGER  vLLM 0.27.1")
    for said in ("272 MiB", "512 MiB", "128, 256, 512, 1,024, 2,048, 4,096, 8,192", "incident 1", "→ Pitched rows"):
        assert said in text
    assert "not read: deepseek-ai/DeepSeek-V4-Pro" in text
    assert max(len(line) for line in text.splitlines()) <= 100


@pytest.mark.parametrize(
    "found",
    [
        check(33_792, release="0.30.0", warmup_widths=[128, 256], batch_invariant=True),
        check(capacity=7680, layout="packed", policy="aligned", consumer="other", graph="eager"),
        check(1000, 64, 2, num_speculative_tokens=1, block_size=512, release="0.28.0"),
    ],
    ids=["release", "layout and policy", "small"],
)
def test_the_command_repeats_the_check(found, capsys):
    main([*command(found).split()[3:], "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert len(answer.pop("step_costs")) in (2, 4)
    assert answer == json.loads(json.dumps(found.as_dict()))


def test_a_command_over_several_lines_is_the_same_command():
    found = check(33_792, release="0.30.0", warmup_widths=[128, 256], batch_invariant=True)
    lines = command(found, width=80).split(" \\\n")
    assert len(lines) > 1 and max(len(line) for line in lines) <= 80
    assert " ".join(line.strip() for line in lines) == command(found)


def test_the_text_names_the_cost_of_a_step_and_where_it_comes_from(capsys):
    main(["--release", "0.30.0"])
    said = " ".join(capsys.readouterr().out.split())
    assert "prefill, typical: 8,192 rows at 32,768 tokens, 256 columns: builder " in said
    assert "NVIDIA H200" in said and "V4-Pro" in said


def test_a_cost_that_was_not_measured_says_why(capsys):
    main(["--release", "0.30.0", "--max-num-batched-tokens", "1000000", "--json"])
    costs = json.loads(capsys.readouterr().out)["step_costs"]
    assert all(cost["builder_us"] is None and "not measured" in cost["basis"] for cost in costs[2:])


def test_it_runs_without_torch_and_triton():
    blocked = "import sys; sys.modules.update(torch=None, triton=None); import runpy; sys.argv = ['x', *sys.argv[1:]];"
    code = f"{blocked} runpy.run_module('c128a.deployment', run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code, "--release", "0.27.1"], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stdout.startswith("DANGER")
    assert done.stderr == ""
