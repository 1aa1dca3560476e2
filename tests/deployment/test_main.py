"""The command: exit status, text, JSON, and outputs that take nothing."""

import io
import json
import shlex
import subprocess
import sys

import pytest

from c128a.deployment import __main__ as cli
from c128a.deployment import check, command, read_serve_line

PR_50004 = "vllm serve deepseek-ai/DeepSeek-V4-Pro --max-model-len 1M --max-num-batched-tokens 8192 --max-num-seqs 512"
COMMAND = [sys.executable, "-m", "c128a.deployment"]


IMAGE = "docker run vllm/vllm-openai:v0.27.1 --model DeepSeek-V4-Pro"
STATUS = {
    0: ["--release 0.30.0", "--release 0.27.1 --graph eager", f"--release 0.27.1 --serve '{PR_50004} --enforce-eager'",
        "--release 0.34.0 --serve 'vllm serve m --max-model-len auto' --max-model-len 980224",
        "--release 0.27.1 --serve 'vllm serve deepseek-ai/DeepSeek-V4.1'", "--help"],
    1: ["--release 0.27.1", "--layout packed --policy pow2", f"--serve '{IMAGE}'"],
    3: [f"--release 0.34.0 --serve '{PR_50004} --config x'", "--release 0.35.0", f"--release 0.34.0 --serve '{IMAGE}'",
        "--release 0.34.0 --serve 'vllm serve m --max-model-len auto'"],
    2: ["", "--release 0.25.0", "--release 0.30.0 --max-model-len 1.5M", "--release 0.30.0 --graph sometimes",
        "--release 0.30.0 --typical-len 10T", "--release 0.30.0 --serve 'vllm serve m --max-model-len 10T'",
        "--release 0.30.0 --serve vllm serve m --api-key -s3cr3t", "--release 0.30.0 --serve ''",
        "--release 0.30.0 --serve -"],
}  # fmt: skip


@pytest.mark.parametrize(("status", "line"), [(status, line) for status, lines in STATUS.items() for line in lines])
def test_exit_status_says_what_is_dangerous_or_unknown_or_wrong_usage(status, line, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    for more in ([], ["--json"]):
        assert cli.main([*more, *shlex.split(line)]) == status  # a warning is no failure
        out, err = capsys.readouterr()
        assert bool(err) is (status == 2) is not bool(out)
        assert err.count("\n") <= 2 and ("error: " in err or not err) and "s3cr3t" not in err


def test_an_internal_error_is_status_3_without_the_text_and_a_broken_record_changes_no_verdict(capsys, monkeypatch):
    def broken(*_, **__):
        raise ValueError("h200.json, row 3: us is -1")

    monkeypatch.setattr(cli, "step_costs", broken)
    assert cli.main(["--release", "0.27.1"]) == 1
    assert "row 3" in capsys.readouterr().err
    monkeypatch.setattr(cli, "read_serve_line", lambda text: {}[text])
    assert cli.main(["--release", "0.34.0", "--serve", "s3cr3t"]) == 3
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1) and "KeyError" in err and "s3cr3t" not in err


def test_an_option_of_its_own_overrides_the_pasted_text(capsys):
    line = """vllm serve m --max-model-len 1M -sc '{"num_speculative_tokens": 3}'"""
    options = ["--max-model-len", "33792", "--num-speculative-tokens", "0"]
    cli.main(["--release", "0.30.0", "--serve", line, *options, "--json"])
    setup = json.loads(capsys.readouterr().out)["setup"]
    assert (setup["max_model_len"], setup["num_speculative_tokens"], setup["max_num_seqs"]) == (33_792, 0, 1024)


def test_the_text_can_come_from_standard_input(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("vllm serve m --max-model-len 33792 -tp 8 --api-key s3cr3t"))
    assert cli.main(["--release", "0.30.0", "--serve", "-", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["capacity"], answer["command_line"]["not_read"]) == (384, ["--api-key"])


def test_the_text_names_verdict_numbers_reason_and_setting():
    text = cli.report(check(release="0.27.1"), read_serve_line(PR_50004))
    assert text.startswith("DANGER")
    for said in ("272 MiB", "512 MiB", "128, 256, 512, 1,024, 2,048, 4,096, 8,192", "incident 1", "#52448"):
        assert said in text
    assert max(len(line) for line in text.splitlines()) <= 100


def test_what_was_not_read_stands_above_the_verdict_and_controls_of_a_terminal_are_escaped():
    text = cli.report(check(release="0.27.1", unread=["--config: \x1b[31mred."]))
    assert text.index("--config") < text.index("NOT ENOUGH READ") < text.index("moving-rows")
    assert "\x1b" not in text and "\\x1b" in text


def test_the_command_repeats_the_check(capsys):
    for found in (
        check(33_792, release="0.29.0", warmup_widths=[128, 256], batch_invariant=True, speculative_method="dspark"),
        check(capacity=7680, layout="packed", policy="aligned", consumer="other", graph="eager", model="V4.1"),
        check(1000, 64, 2, num_speculative_tokens=1, block_size=512, release="0.28.0"),
    ):
        lines = command(found, width=80).split(" \\\n")
        assert len(lines) > 1 and max(len(line) for line in lines) <= 78
        words = shlex.split(command(found))
        assert shlex.split(" ".join(lines)) == words
        cli.main([*words[3:], "--json"])
        answer = json.loads(capsys.readouterr().out)
        assert len(answer.pop("step_costs")) in (2, 4)
        assert answer == json.loads(json.dumps(found.as_dict()))


def test_the_text_names_the_cost_of_a_step_with_its_record_or_why_there_is_none(capsys):
    for tokens, said in (("8192", ("8,192 rows at 32,768", "NVIDIA H200", "V4-Pro")), ("1000000", ("not measured",))):
        cli.main(["--release", "0.30.0", "--max-num-batched-tokens", tokens])
        prefill = " ".join(capsys.readouterr().out.split()).partition("prefill, typical:")[2]
        assert all(word in prefill for word in said)


@pytest.mark.parametrize(
    ("arguments", "output", "status"),
    [
        ("--release 0.27.1 | head -1", "DANGER", 1),
        ("--release 0.27.1 > /dev/full", "", 2),
        ("--release 0.27.1 >&-", "", 1),
        ("--release 0.34.0 --serve - < /dev/zero", "", 2),
        ("--release nothing 2> /dev/full", "", 2),
    ],
)
def test_closed_pipes_and_full_disks_end_in_no_traceback(arguments, output, status):
    line = f"set -o pipefail; exec 3>&1; {' '.join(COMMAND)} {arguments}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout[: len(output)]) == (status, output)
    assert done.stderr.count("\n") <= 1 and "Exception" not in done.stderr


def test_a_terminal_that_knows_ascii_alone_gets_the_whole_answer(monkeypatch):
    for name, value in {"PYTHONCOERCECLOCALE": "0", "LC_ALL": "C", "PYTHONUTF8": "0"}.items():
        monkeypatch.setenv(name, value)
    done = subprocess.run([*COMMAND, "--release", "0.27.1", "--serve", "vllm serve é"], capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (1, b"")
    assert b"x DANGER" in done.stdout and b"512 MiB" in done.stdout and done.stdout.isascii()
