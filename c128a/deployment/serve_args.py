"""Read a pasted `vllm serve` command line for the options that matter here. Torch-free.

Options are read as vLLM reads them: `_` and `-` are the same in a name, `--name value` and `--name=value` are the same,
`--json-option.key value` is the same as a JSON object, the last one wins. What is not known is listed, never guessed.

>>> line = read_serve_line("vllm serve deepseek-ai/DeepSeek-V4-Pro --max-model-len 1M -tp 8 --enforce-eager")
>>> line.values
{'max_model_len': 1048576, 'graph': 'eager'}
>>> line.not_read
('deepseek-ai/DeepSeek-V4-Pro', '-tp 8')
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from c128a.deployment.serving import Graph

_DECIMAL = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}

# A graph matters here when it holds the decode attention: vLLM's modes, by what they do to a decode step.
GRAPH_OF_MODE: dict[str, Graph] = {
    "NONE": "eager",
    "PIECEWISE": "piecewise",
    "FULL": "full",
    "FULL_DECODE_ONLY": "full",
    "FULL_AND_PIECEWISE": "full",
}
GRAPH_OF_LEVEL: dict[str, Graph] = {"0": "eager", "1": "piecewise", "2": "full", "3": "full"}


@dataclass(frozen=True)
class ServeLine:
    """A command line as far as it was understood: arguments for `check`, where each came from, and the rest."""

    values: dict[str, Any]  # argument of c128a.deployment.check -> value
    sources: dict[str, str]  # argument -> the words it was read from
    not_read: tuple[str, ...]  # words without a meaning here
    notes: tuple[str, ...]  # what the line leaves open


def human_int(text: str) -> int:
    """An integer as vLLM writes it for people: small letters are decimal, capital letters binary.

    Raises ValueError for anything else, decimals with a binary suffix included.

    >>> [human_int(text) for text in ("8192", "1k", "1K", "25.6k", "1M")]
    [8192, 1000, 1024, 25600, 1048576]
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([kKmMgGtT])", text.strip())
    if found is None:
        return int(text)
    number, suffix = found.groups()
    if suffix in _DECIMAL:
        return int(float(number) * _DECIMAL[suffix])
    if "." in number:
        raise ValueError(f"{text}: no decimals with a binary suffix; {number}{suffix.lower()} is the decimal one")
    return int(number) * _BINARY[suffix]


def read_serve_line(text: str) -> ServeLine:
    """The arguments of `check` that a command line sets.

    Raises ValueError for a line that a shell could not split and for a known option whose value cannot be read.

    >>> read_serve_line("vllm serve m -O1 --speculative-config.num_speculative_tokens 5").values
    {'num_speculative_tokens': 5, 'graph': 'piecewise'}
    """
    try:
        words = shlex.split(text.replace("\\\r\n", " ").replace("\\\n", " "), comments=True)
    except ValueError as error:
        raise ValueError(f"the command line cannot be split into words: {error}") from None
    return _Reader().read(words)


class _Reader:
    """The state of one reading: what was found so far."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.sources: dict[str, str] = {}
        self.not_read: list[str] = []
        self.notes: list[str] = []
        self.json: dict[str, dict[str, Any]] = {}  # option -> object given whole
        self.dotted: dict[str, dict[str, Any]] = {}  # option -> object given key by key; vLLM lets it replace the other
        self.graphs: dict[str, tuple[Graph, str]] = {}  # who says -> (graph, words)

    def read(self, words: list[str]) -> ServeLine:
        """Walk the words once, then settle what several options decide together."""
        at = 0
        while at < len(words):
            at += self._word(words[at], words[at + 1] if at + 1 < len(words) else None)
        self._speculative()
        self._graph()
        return ServeLine(self.values, self.sources, tuple(self.not_read), tuple(self.notes))

    def _word(self, word: str, following: str | None) -> int:
        """Take one option, with its value where it has one; return how many words that was."""
        if re.fullmatch(r"VLLM_BATCH_INVARIANT=\S*", word):
            if word.endswith("=1"):
                self._set("batch_invariant", True, word)
            return 1
        if word in ("vllm", "serve") or word in ("$", "export"):
            return 1
        if level := re.fullmatch(r"-O=?([0-3])", word):
            self.graphs["level"] = GRAPH_OF_LEVEL[level[1]], word
            return 1
        if not word.startswith("-") or word == "-":
            self._unread(word)
            return 1
        name, given, value = word.partition("=")
        name, dot, key = name.partition(".")
        name = _ALIASES.get(name, name.replace("_", "-") if name.startswith("--") else name)
        if name in ("--enforce-eager", "--no-enforce-eager") and not given and not dot:
            self.graphs.pop("eager", None)
            if name == "--enforce-eager":
                self.graphs["eager"] = "eager", word
            return 1
        known = name in _JSON_OPTIONS or ((name in _NUMBERS or name == "--optimization-level") and not dot)
        if not known:
            takes = not given and following is not None and not following.startswith("-")
            self._unread(f"{word} {following}" if takes else word)
            return 2 if takes else 1
        if not given:
            if following is None or (following.startswith("-") and not re.fullmatch(r"-\d+", following)):
                raise ValueError(f"{word} has no value")
            value = following
        self._option(name, key, value, word if given else f"{word} {value}")
        return 1 if given else 2

    def _unread(self, words: str) -> None:
        """List words, without the value of what looks like a secret: lists end up in logs and on screens."""
        secret = re.match(r"([\w-]*(?:key|token(?!iz)|secret|password)\w*[= ])(?!\s*$)", words, re.IGNORECASE)
        self.not_read.append(f"{secret[1]}…" if secret else words)

    def _option(self, name: str, key: str, value: str, words: str) -> None:
        try:
            if name in _NUMBERS:
                argument, parse = _NUMBERS[name]
                if name == "--max-model-len" and value.strip().lower() in ("auto", "-1"):
                    self.values.pop("max_model_len", None)
                    self.notes.append(
                        f"{words}: vLLM fits the length to the memory at start-up, and it is not known here. Give the "
                        "fitted max_model_len, which its log names."
                    )
                    return
                self._set(argument, parse(value), words)
            elif name == "--optimization-level":
                self.graphs["level"] = GRAPH_OF_LEVEL[value], words
            elif key:
                self._dotted(name, key, value)
            else:
                parsed = json.loads(value)
                if not isinstance(parsed, dict):
                    raise ValueError("not a JSON object")
                self.json[name] = parsed
        except (ValueError, KeyError) as error:
            raise ValueError(f"{words}: cannot be read ({error})") from None

    def _dotted(self, name: str, key: str, value: str) -> None:
        try:
            parsed = json.loads(value)
        except ValueError:
            parsed = value
        self.dotted.setdefault(name, {})[key] = parsed

    def _config(self, name: str, keys: tuple[str, ...]) -> dict[str, Any]:
        """The object of a JSON option; keys other than these are listed as not read."""
        config = self.dotted.get(name) or self.json.get(name) or {}
        self.not_read += [f"{name} {key}" for key in config if key not in keys]
        return config

    def _speculative(self) -> None:
        config = self._config("--speculative-config", ("num_speculative_tokens",))
        count = config.get("num_speculative_tokens")
        words = f"--speculative-config num_speculative_tokens = {count}"
        if isinstance(count, int) and not isinstance(count, bool):
            self._set("num_speculative_tokens", count, words)
        elif count is not None:
            raise ValueError(f"{words}: must be an integer")
        elif config:
            self.notes.append(
                "--speculative-config names no num_speculative_tokens: vLLM takes it from the draft model, and it is "
                "not known here."
            )

    def _graph(self) -> None:
        mode = self._config("--compilation-config", ("cudagraph_mode",)).get("cudagraph_mode")
        if mode is not None:
            words = f"--compilation-config cudagraph_mode = {mode}"
            if not isinstance(mode, str) or mode.upper() not in GRAPH_OF_MODE:
                raise ValueError(f"{words}: must be one of {', '.join(GRAPH_OF_MODE)}")
            self.graphs["mode"] = GRAPH_OF_MODE[mode.upper()], words
        for who in ("eager", "mode", "level"):  # the first that speaks decides, as in vLLM
            if who in self.graphs:
                self._set("graph", *self.graphs[who])
                return

    def _set(self, argument: str, value: Any, words: str) -> None:
        self.values[argument], self.sources[argument] = value, words


_NUMBERS: dict[str, tuple[str, Callable[[str], int]]] = {
    "--max-model-len": ("max_model_len", human_int),
    "--max-num-batched-tokens": ("max_num_batched_tokens", human_int),
    "--max-num-seqs": ("max_num_seqs", int),
    "--block-size": ("block_size", int),
}
_JSON_OPTIONS = ("--speculative-config", "--compilation-config")
_ALIASES = {"-sc": "--speculative-config", "-cc": "--compilation-config", "-O": "--optimization-level"}
