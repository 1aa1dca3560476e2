"""The command line of `python -m c128a.deployment`: arguments, text report, JSON, exit status. Torch-free.

Exit status 0 where nothing dangerous was found, 1 where something is, 2 for bad arguments.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import shlex
import sys
import textwrap
from collections.abc import Sequence
from typing import Any

from c128a.account import MODELS
from c128a.deployment import Deployment, check
from c128a.deployment.serve_args import ServeLine, human_int, read_serve_line
from c128a.deployment.serving import CONSUMERS, GRAPHS
from c128a.deployment.step_cost import TYPICAL_LEN, StepCost, step_costs
from c128a.layout import LAYOUTS
from c128a.records import load_all
from c128a.releases import RELEASES
from c128a.units import human_bytes
from c128a.width import POLICIES, capacity_width

ICONS = {"danger": "✖", "warning": "▲", "info": "●"}  # shape as well as word: a terminal may have no colour

_OPTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("--release", {"help": f"vLLM version: {', '.join(release.name for release in RELEASES)} or later"}),
    ("--layout", {"choices": LAYOUTS, "help": "row layout, for a builder of your own"}),
    ("--policy", {"choices": POLICIES, "help": "width policy, for a builder of your own"}),
    ("--max-model-len", {"type": human_int, "metavar": "TOKENS", "help": "as in vLLM: 1M = 1,048,576, 128k = 128,000"}),
    ("--max-num-batched-tokens", {"type": human_int, "metavar": "TOKENS"}),
    ("--max-num-seqs", {"type": int, "metavar": "N"}),
    ("--num-speculative-tokens", {"type": int, "metavar": "K"}),
    ("--block-size", {"type": int, "metavar": "TOKENS", "help": "tokens per KV block"}),
    ("--graph", {"choices": GRAPHS, "help": "CUDA graphs; full: a graph holds the decode attention"}),
    ("--consumer", {"choices": CONSUMERS, "help": "the sparse decode kernel that reads the rows"}),
    ("--capacity", {"type": int, "metavar": "COLUMNS", "help": "columns, where not sized from max-model-len"}),
    ("--warmup-widths", {"type": int, "nargs": "*", "metavar": "COLUMNS", "help": "widths that are warmed up"}),
)


def main(argv: list[str] | None = None) -> int:
    """Run the check from the command line; the exit status says whether something is dangerous."""
    parser = _parser()
    arguments = vars(parser.parse_args(argv))
    as_json, pasted, typical = arguments.pop("json"), arguments.pop("serve"), arguments.pop("typical_len")
    given = {name: value for name, value in arguments.items() if value is not None}
    try:
        line = None if pasted is None else read_serve_line(sys.stdin.read() if pasted == "-" else pasted)
        values = {**(line.values if line else {}), **given}
        if not {"release", "layout", "policy"} & set(values):
            raise ValueError("give --release, or --layout and --policy")
        found = check(**values)
    except ValueError as error:
        parser.error(str(error))
    costs = step_costs(found.setup, load_all(), typical_len=typical)
    if as_json:
        answer = {**found.as_dict(), "step_costs": [dataclasses.asdict(cost) for cost in costs]}
        if line:
            answer["command_line"] = {"read": line.sources, "not_read": line.not_read, "notes": line.notes}
        print(json.dumps(answer, ensure_ascii=False, indent=2))
    else:
        print(report(found, line, costs))
    return 1 if found.verdict == "danger" else 0


def report(found: Deployment, line: ServeLine | None = None, costs: Sequence[StepCost] = ()) -> str:
    """The answer as text, at most 100 columns wide."""
    setup = found.setup
    parts = [textwrap.fill(f"{found.verdict.upper()}  {found.sentence}", 100, subsequent_indent="    "), ""]
    parts += [
        f"capacity   {found.capacity:,} columns, sequences of up to {setup.longest_sequence:,} tokens",
        "",
        f"buffers    {'rows × columns':>18}   {'this package':>12}   {'released':>12}",
    ]
    for buffer in found.buffers:
        shape = f"{buffer.rows:,} × {buffer.columns:,}"
        ours, released = human_bytes(buffer.bytes), human_bytes(buffer.released_bytes)
        parts.append(f"  {buffer.name:<12} {shape:>14}   {ours:>12}   {released:>12}")
    parts += [
        f"  {'together':<27}   {human_bytes(found.reserved_bytes):>12}   {human_bytes(found.released_bytes):>12}",
        "",
        "warm up",
    ]
    for todo in found.warm_up:
        values = (
            ", ".join(f"{value:,}" for value in todo.values) if len(todo.values) <= 8 else f"{len(todo.values)} of them"
        )
        parts.append(_wrapped(f"  {todo.what}: {values} ({todo.why})"))
    parts += ["", "findings" if found.findings else "findings   none"]
    for finding in found.findings:
        incident = f", incident {finding.incident}" if finding.incident else ""
        parts += [
            f"  {ICONS[finding.severity]} {finding.severity.upper()}  {finding.title}  [{finding.code}{incident}]",
            _wrapped(f"      {finding.why}"),
            _wrapped(f"      → {finding.setting}"),
        ]
    if costs:
        parts += ["", "cost of a full step", *_cost_lines(costs)]
    if line is not None:
        parts += ["", "command line", _wrapped(f"  read: {', '.join(line.sources.values()) or 'nothing'}")]
        parts.append(_wrapped(f"  not read: {', '.join(line.not_read) or 'nothing'}"))
        parts += [_wrapped(f"  note: {note}") for note in line.notes]
    return "\n".join(parts)


def _cost_lines(costs: Sequence[StepCost]) -> list[str]:
    lines = []
    for cost in costs:
        case = f"{cost.step}, {cost.case}: {cost.rows:,} rows at {cost.max_seq_len:,} tokens, {cost.width:,} columns"
        if cost.builder_us is None:
            lines.append(_wrapped(f"  {case}: {cost.basis}"))
            continue
        times = f"builder {cost.builder_us:.3g} µs"
        if cost.combine_us is not None:
            steps = ", ".join(f"{name} {cost.total_us(name):,.0f} µs" for name in MODELS)
            times += f", combine {cost.combine_us:.3g} µs a C128A layer; together {steps}"
        lines.append(_wrapped(f"  {case}: {times} ({cost.basis}; {'; '.join(cost.records)})"))
    return lines


def command(found: Deployment, *, width: int | None = None) -> str:
    """The command that repeats a check, every value written out; over several lines where a width is given.

    >>> print(command(check(33_792, release="0.30.0"))[:72])
    python -m c128a.deployment --release 0.30.0 --max-model-len 33792 --max-
    """
    setup = found.setup
    words = ["python", "-m", "c128a.deployment"]
    words += (
        ["--release", setup.release.name] if setup.release else ["--layout", setup.layout, "--policy", setup.policy]
    )
    for name in ("max_model_len", "max_num_batched_tokens", "max_num_seqs", "num_speculative_tokens", "block_size"):
        words += [f"--{name.replace('_', '-')}", str(getattr(setup, name))]
    words += ["--graph", setup.graph, "--consumer", setup.consumer]
    if setup.capacity != capacity_width(setup.max_model_len):
        words += ["--capacity", str(setup.capacity)]
    if setup.warmup_widths is not None:
        words += ["--warmup-widths", *(str(width) for width in setup.warmup_widths)]
    if setup.batch_invariant:
        words.append("--batch-invariant")
    if width is None:
        return shlex.join(words)
    lines = [""]
    for option in shlex.join(words).split(" --"):
        option = option if lines == [""] else f" --{option}"
        if len(lines[-1] + option) > width:
            lines.append("   ")
        lines[-1] += option
    return " \\\n".join(lines)


def _wrapped(text: str) -> str:
    indent = " " * (len(text) - len(text.lstrip()))
    return textwrap.fill(text, 100, subsequent_indent=indent + "  ", break_long_words=False, break_on_hyphens=False)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m c128a.deployment",
        description="Is a DeepSeek-V4 deployment in a dangerous corner of the C128A index rows?",
        epilog="Exit status: 0 nothing dangerous, 1 something dangerous, 2 bad arguments. What is not given: the "
        "sizes of the run of PR #50004 (1,048,576 tokens, 8,192 batch tokens, 512 sequences), no speculative tokens, "
        "KV blocks of 256 tokens, full graphs as vLLM's default is, FlashMLA on sm90.",
        allow_abbrev=False,
    )
    for name, options in _OPTIONS:
        parser.add_argument(name, **options)
    parser.add_argument(
        "--batch-invariant", action="store_true", default=None, help="results must not depend on the rest of a batch"
    )
    typical = f"length of the typical case of the step costs, {TYPICAL_LEN:,} by default"
    parser.add_argument("--typical-len", type=human_int, default=TYPICAL_LEN, metavar="TOKENS", help=typical)
    parser.add_argument("--serve", metavar="LINE", help="a vllm serve command line to read, or - for standard input")
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    return parser
