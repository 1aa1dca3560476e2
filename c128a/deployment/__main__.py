"""`python -m c128a.deployment`: is a DeepSeek-V4 deployment in a dangerous corner of the C128A index rows? Torch-free.

Exit status: 0 nothing dangerous, 1 something dangerous, 2 wrong usage or no serve command, 3 not enough read to say, or
an internal error.

What is not given: the sizes of the run of PR #50004 (1,048,576 tokens, 8,192 batch tokens, 512 sequences), no
speculative tokens, KV blocks of 256 tokens, full graphs as vLLM's default is, FlashMLA on sm90. Lengths and blocks are
in tokens, capacity and widths in columns; numbers may be written as in vLLM: 1M = 1,048,576, 128k = 128,000.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import textwrap
from collections.abc import Sequence
from typing import Any

import pandas as pd

from c128a.account.step import MODELS, TYPICAL_LEN, step_costs
from c128a.bench import records
from c128a.deployment import BOUNDS, CHOICES, Deployment, Setup, check
from c128a.deployment.findings import width_list
from c128a.deployment.releases import RELEASES, release_of
from c128a.deployment.serve import LIMIT, ServeLine, human_int, read_serve_line, shown
from c128a.layout import human_bytes

HELP = {
    "layout": "row layout, for a builder of your own",
    "policy": "width policy, for a builder of your own",
    "graph": "CUDA graphs; full: a graph holds the decode attention",
    "consumer": "the sparse decode kernel that reads the rows",
    "model": "V4.1 and other models have no C128A layers",
    "speculative_method": "how speculative tokens are drafted",
}
SIGNS = {"danger": "✖", "warning": "▲", "info": "●"}  # shape as well as word: a terminal may have no colour
PLAIN = str.maketrans({"✖": "x", "▲": "!", "●": "-", "×": "x", "µ": "u", "→": "=>", "…": "...", "³": "3", "¹": "1"})


def main(argv: list[str] | None = None) -> int:
    """Run the check from the command line; the exit status says whether something is dangerous."""
    try:
        return _run(argv)
    except Exception as error:  # no traceback for an operator, and no word of the text that was pasted
        return _complain(3, f"internal error, {type(error).__name__}: nothing was decided")


def _run(argv: list[str] | None) -> int:
    parser = _parser()
    try:
        arguments, unknown = parser.parse_known_args(argv)
    except SystemExit:
        return 2
    given = {name: value for name, value in vars(arguments).items() if value is not None}
    as_json, typical = given.pop("json"), given.pop("typical_len")
    if given.pop("help"):
        return _write(parser.format_help())
    try:
        if unknown:
            names = ", ".join(shown(word) for word in unknown if word.startswith("-"))
            raise ValueError(f"unknown arguments {names}; quote the text that follows --serve")
        if not 1 <= typical <= BOUNDS["max_model_len"][1]:
            raise ValueError(f"typical-len is {typical:,}; it must be from 1 to {BOUNDS['max_model_len'][1]:,}")
        found, line = _checked(given)
    except ValueError as error:
        return _complain(2, str(error))
    costs: list[Any] = []
    try:
        costs = costs_of(found.setup, typical).to_dict("records")
        for problem in records.problems():
            _complain(0, f"{problem}; the costs are those of the other records")
    except (OSError, ValueError) as error:  # a record that cannot be read changes no verdict
        _complain(0, f"no cost of a step: {error}")
    answer = {**found.as_dict(), "step_costs": costs}
    if line:
        answer["command_line"] = {"read": line.sources, "not_read": line.not_read, "notes": line.notes}
    text = json.dumps(answer, indent=2) if as_json else report(found, line, costs)
    return _write(f"{text}\n") or {"danger": 1, "unknown": 3}.get(found.verdict, 0)


def _checked(given: dict[str, Any]) -> tuple[Deployment, ServeLine | None]:
    """The check of what was given on the command line, over what a pasted text sets."""
    pasted = given.pop("serve", None)
    if pasted is None:
        return check(**given), None
    if pasted == "-":
        pasted = sys.stdin.read(LIMIT + 1) if sys.stdin else ""
    line = read_serve_line(pasted)
    unread = [f"{name}: {why}." for name, why in line.unread.items() if name not in given]
    image = line.values.pop("release", None)
    if image and not {"release", "layout", "policy"} & given.keys():
        given["release"] = image
    elif image and release_of(image) != release_of(given.get("release", "")):
        unread.append(f"release: the text names vLLM {image}, and you gave another builder.")
    return check(**{**line.assumed, **line.values, **given}, unread=unread), line


def costs_of(setup: Setup, typical_len: int) -> pd.DataFrame:
    """The table of `c128a.account.step.step_costs` for a deployment."""
    return step_costs(
        max_model_len=setup.max_model_len,
        decode_rows=setup.decode_rows,
        prefill_tokens=setup.max_num_batched_tokens,
        policy=setup.policy,
        capacity=setup.capacity,
        released=setup.release is not None,
        typical_len=typical_len,
    )


def _complain(status: int, sentence: str) -> int:
    """One sentence on standard error, where there is one; the status comes back."""
    with contextlib.suppress(OSError, ValueError):
        print(f"python -m c128a.deployment: error: {_printable(sentence)}", file=sys.stderr, flush=True)
    return status


def _write(text: str) -> int:
    """Write what standard output can show; 2 where it takes nothing, 0 where its reader has read enough."""
    if sys.stdout is None:
        return 0
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
        return 0
    except UnicodeEncodeError:
        return _write(text.translate(PLAIN).encode("ascii", "backslashreplace").decode())
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes once more at its end
        broken = isinstance(error, BrokenPipeError)
        return 0 if broken else _complain(2, f"the answer cannot be written: {error.strerror}")


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() or char == "\n" else repr(char)[1:-1] for char in text)


def report(found: Deployment, line: ServeLine | None = None, costs: Sequence[dict[str, Any]] = ()) -> str:
    """The answer as text, at most 100 columns wide; what was not read and could change it comes first."""
    parts = ["not read, and it could change the verdict"] if found.unread else []
    parts += [f"  ? {why}" for why in found.unread]
    verdict = "NOT ENOUGH READ TO SAY" if found.unread else found.verdict.upper()
    room = f"sequences of up to {found.setup.longest_sequence:,} tokens, block tables of {found.setup.table_blocks:,}"
    parts += [f"{verdict}  {found.sentence}", "", f"capacity   {found.capacity:,} columns, {room}", ""]
    parts += [f"buffers    {'rows × columns':>18}   {'this package':>12}   {'released':>12}"]
    sizes = [(one.name, f"{one.rows:,} × {one.columns:,}", one.bytes, one.released_bytes) for one in found.buffers]
    for name, shape, ours, released in [*sizes, ("together", "", found.reserved_bytes, found.released_bytes)]:
        parts.append(f"  {name:<12} {shape:>14}   {human_bytes(ours):>12}   {human_bytes(released):>12}")
    parts += ["", "warm up", *(f"  {one.what}: {width_list(one.values)} ({one.why})" for one in found.warm_up)]
    parts += ["", "findings" if found.findings else "findings   none"]
    for finding in found.findings:
        incident = f", incident {finding.incident}" if finding.incident else ""
        kind = f"{SIGNS[finding.severity]} {finding.severity.upper()}"
        parts += [f"  {kind}  {finding.title}  [{finding.code}{incident}]"]
        parts += [f"      {finding.why}", f"      → {finding.setting}"]
    parts += ["", "cost of a full step, with the kernels of this package"] if costs else []
    for cost in costs:
        said = cost["basis"]  # where there is no time, why
        if cost["builder_us"] is not None:
            said = f"builder {cost['builder_us']:.3g} µs ({said}; {cost['records']})"
        if cost["combine_us"] is not None:
            steps = ", ".join(f"{name} {cost[name]:,.0f} µs" for name in MODELS)
            once = f"; made once a step {cost['once_us']:,.0f} µs" if cost["once_us"] is not None else ""
            said = f"combine {cost['combine_us']:.3g} µs a C128A layer, together {steps}{once}; {said}"
        step = "  {step}, {case}: {rows:,} rows at {max_seq_len:,} tokens, {width:,} columns: "
        parts.append(step.format(**cost) + said)
    if line:
        parts += ["", "command line", f"  read: {', '.join(line.sources.values()) or 'nothing'}"]
        parts += [f"  not read: {', '.join(line.not_read) or 'nothing'}", *(f"  note: {note}" for note in line.notes)]
    wrap = textwrap.TextWrapper(100, break_long_words=False, break_on_hyphens=False)
    for at, part in enumerate(parts):
        wrap.subsequent_indent = " " * (len(part) - len(part.lstrip()) + 2)
        parts[at] = wrap.fill(part)
    return _printable("\n".join(parts))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m c128a.deployment",
        usage="%(prog)s --release VERSION [--serve TEXT] [--json] [options]",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        add_help=False,  # argparse would write it itself, and end badly on a full disk
    )
    add = parser.add_argument
    add("--release", help=f"vLLM version, {RELEASES[0].name} to {RELEASES[-1].name}")
    for name, choices in CHOICES.items():
        add(f"--{name.replace('_', '-')}", choices=choices, help=HELP[name])
    for name, (least, most) in BOUNDS.items():
        add(f"--{name.replace('_', '-')}", type=human_int, metavar="N", help=f"{least:,} to {most:,}")
    add("--warmup-widths", type=int, nargs="*", metavar="COLUMNS", help="widths that are warmed up")
    add("--batch-invariant", action="store_true", default=None, help="results independent of the batch")
    add("--typical-len", type=human_int, default=TYPICAL_LEN, metavar="N", help="typical length of the step costs")
    add("--serve", metavar="TEXT", help="a serve command, compose file or manifest, or - for standard input")
    add("--json", action="store_true", help="print JSON instead of text")
    add("-h", "--help", action="store_true", help="print this text")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
