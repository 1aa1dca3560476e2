"""Read a pasted serve command for the settings that matter here. Torch-free.

A command line, a script, `bash -c "…"`, a docker command, a compose file, a Kubernetes manifest, or a list of arguments
in YAML or JSON. Options are read as vLLM reads them: `_` and `-` are the same in a name, `--name value` and
`--name=value` are the same, `--json-option.key value` is the same as a JSON object, the last one wins.

What was read, what has no meaning here, and what has one and was not read are kept apart: for the last the verdict has
to wait. A value comes back only where it was understood, for any other may be a secret.

>>> line = read_serve_line("vllm serve deepseek-ai/DeepSeek-V4-Pro --max-model-len 1M --api-key abc --enforce-eager")
>>> line.values
{'model': 'V4', 'max_model_len': 1048576, 'graph': 'eager'}
>>> line.not_read, read_serve_line("vllm serve m --config serve.yaml").unread
(('--api-key',), {'--config': 'a file of options that is not here'})
"""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from typing import Any, NamedTuple

from c128a.deployment.findings import Graph, Model
from c128a.deployment.releases import METHODS

LIMIT = 65_536  # bytes of a paste: more than any command, and read at once
NODES = 20_000  # parts of a document; an alias in YAML can stand for many

SUFFIXES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
# A graph matters here when it holds the decode attention: vLLM's modes and levels, by what they do to a decode step.
FULL = ("FULL", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE")
MODES: dict[str, dict[str, Graph]] = {
    "cudagraph_mode =": {"NONE": "eager", "PIECEWISE": "piecewise", **dict.fromkeys(FULL, "full")},
    "-O": {"0": "eager", "1": "piecewise", "2": "full", "3": "full"},
}

NUMBERS = {
    "--max-model-len": "max_model_len",
    "--max-num-batched-tokens": "max_num_batched_tokens",
    "--max-num-seqs": "max_num_seqs",
    "--block-size": "block_size",
}
# Options that take a JSON object, and the keys that turn no safe deployment into a dangerous one.
OBJECTS = {
    "--speculative-config": "revision code_revision draft_tensor_parallel_size quantization moe_backend kv_cache_dtype "
    "attention_backend max_model_len rejection_sample_method",
    "--compilation-config": "mode cudagraph_capture_sizes max_cudagraph_capture_size cudagraph_num_of_warmups "
    "custom_ops compile_sizes inductor_compile_config cache_dir debug_dump_path",
    "--attention-config": "flash_attn_version flash_attn_max_num_splits_for_cuda_graph indexer_kv_dtype",
}
SHARDED = ("--decode-context-parallel-size", "--prefill-context-parallel-size")
# Options that can change the verdict and are not followed; of the last two only a value of 1 changes nothing.
FOREIGN = {
    **dict.fromkeys(("--config", "--env-file"), "a file of options that is not here"),
    **dict.fromkeys(("--hf-overrides", "--hf-config-path"), "it changes the model's configuration"),
    **dict.fromkeys(("--worker-cls", "--worker-extension-cls", "--scheduler-cls"), "it names other code than vLLM's"),
    **dict.fromkeys(("--model-class-overrides", "--additional-config"), "it is for other code than vLLM's"),
    "--disable-sliding-window": "it bounds the model length",
    **dict.fromkeys(SHARDED, "the rows of a rank of a sharded context are not described here"),
}
SPECULATION = {"--spec-tokens": "num_speculative_tokens", "--spec-method": "method", "--spec-model": "model"}
READ = {*NUMBERS, *OBJECTS, *FOREIGN, *SPECULATION, "--model", "--enforce-eager", "--no-enforce-eager",
        "--optimization-level", "--attention-backend"}  # fmt: skip
ALIASES = {"-sc": "--speculative-config", "-cc": "--compilation-config", "-ac": "--attention-config",
           "-O": "--optimization-level", "-dcp": SHARDED[0], "-pcp": SHARDED[1], "-tp": "--tensor-parallel-size",
           "-pp": "--pipeline-parallel-size", "-dp": "--data-parallel-size"}  # fmt: skip
# All other options of vLLM 0.26 to 0.34, without a value and with one: a name that is in no table may be misspelt.
FLAG = re.compile(
    r"--(enable|disable|no|use|trust|skip|return|interleave|specialize|fully|exclude|shuffle)-[a-z0-9-]+|-dp[hem]|-ep|"
    r"--(allow-(credentials|deprecated-quantization)|headless|grpc|async-scheduling|numa-bind|dcp-q-replicate|"
    r"sleep-mode-offload-cudagraph|checkpoint-prepare-on-startup|data-parallel-[a-z-]*lb|ray-workers-use-nsight|"
    r"kv-sharing-fast-prefill|swa-bounded-replay|language-model-only|mm-encoder-only|mm-device-do-normalize|monokernel|"
    r"kv-cache-metrics|cudagraph-metrics|jit-monitor-verbose|long-prefill-token-threshold-adaptive|tokens-only|"
    r"scheduler-reserve-full-isl|aggregate-engine-logging|fail-on-environ-validation|log-error-stack|enforce-eager)"
)
VALUED = re.compile(
    r"-(dp[nrlapb]|q|n|r|asc)|--disable-access-log-for-endpoints|--(code-|tokenizer-)?revision|--max-(num-)?(active|"
    r"inflight|queued|scheduled|partial|long|logprobs|log|lora|cpu|parallel|cudagraph)[a-z-]*|--(all2all|allowed|api|"
    r"aux|cache|chat|collect|cp|cpu|custom|data|dbo|dcp|default|device|distributed|dp|ec|elastic|eplb|expert|fault|"
    r"fingerprint|gdn|generation|gpu-memory|h11|headless|ignore|io|ir|jit|kda|kernel|kv|limit|linear|load|logging|log|"
    r"logits|logprobs|long|lora|mamba|master|media|mm|model-loader|moe|node|num-gpu|numa|offload|otlp|override|"
    r"per-request|performance|pipeline|pooler|prefill-schedule|prefix|profiler|pt-load|quantization|reasoning|renderer|"
    r"replayssm|response|root|safetensors|scheduling|served|show|shutdown|sleep|sparse|sse|ssl|stream|structured|"
    r"tensor|tokenizer|tool|ubatch|uvicorn|video|watchdog|watermark|weight)-[a-z0-9-]+|--(config-format|convert|"
    r"cudagraph-capture-sizes|download-dir|dtype|engram-config|grpc-port|host|middleware|nnodes|hf-token|port|"
    r"quantization|runner|seed|tokenizer|uds)"
)
# Of them those whose value is a number or one of vLLM's own words, which is shown.
SHOWN = re.compile(
    r"--((tensor|pipeline|data)-parallel-size|gpu-memory-utilization|(moe|all2all)-backend|load-format|kv-cache-dtype|"
    r"tokenizer-mode|(reasoning|tool-call)-parser|scheduling-policy|dtype|port|seed|quantization)"
)
# The first that fits names the model; of another one only the last part of the path speaks.
MODEL_NAMES: dict[Model, str] = {
    "V4.1": r"deepseek[-_]?v4[._]?1(?![0-9kmb])",
    "V4": r"deepseek[-_]?v4([-_](pro|flash|base|dspark|fp8|nvfp4))*",
    "other": r"(llama|qwen|mistral|mixtral|gemma|gpt-oss|glm|kimi|minimax|deepseek[-_]?(v[123]|r1))(?=[^/]*/*$)",
}
PROGRAM = re.compile(r"(^|[/=])vllm$")
MODULE = re.compile(r"\bvllm[./]entrypoints[./](openai[./]api_server|cli[./]main)(\.py)?$")


@dataclass(frozen=True)
class ServeLine:
    """A serve command as far as it was understood: arguments for `check`, where each came from, and the rest."""

    values: dict[str, Any]  # argument of c128a.deployment.check -> value
    sources: dict[str, str]  # argument -> the words it was read from
    assumed: dict[str, Any]  # argument that is not on the line -> vLLM's default, where that of check is another
    not_read: tuple[str, ...]  # names of options and variables without a meaning here; never a value
    unread: dict[str, str]  # argument or option that could change the verdict -> why it was not read
    notes: tuple[str, ...]  # what else the line leaves open


def human_int(text: str) -> int:
    """An integer as vLLM writes it for people: small letters are decimal, capital letters binary.

    Raises ValueError for anything else, decimals with a binary suffix included.

    >>> [human_int(text) for text in ("8192", "1k", "1K", "25.6k", "1M")]
    [8192, 1000, 1024, 25600, 1048576]
    """
    found = re.fullmatch(r"([0-9]{1,15})(\.[0-9]{1,15})?([kKmMgGtT]?)", text.strip())
    if found is None or (found[2] and not found[3].islower()):
        raise ValueError("it must be a whole number such as 8192, 25.6k or 1M; decimals go with a small letter")
    return int(float(found[1] + found[2]) * SUFFIXES[found[3]]) if found[2] else int(found[1]) * SUFFIXES[found[3]]


def read_serve_line(text: str) -> ServeLine:
    """The arguments of `check` that a serve command sets; the text holds one command, in at most 64 kB.

    Raises ValueError for what is no serve command, is too long, cannot be split into words, or gives an option that is
    read here a value that vLLM would refuse.

    >>> read_serve_line("export VLLM_BATCH_INVARIANT=1; vllm serve m -O1 --spec-tokens 5").values
    {'num_speculative_tokens': 5, 'graph': 'piecewise', 'batch_invariant': True}
    """
    size = len(text.encode(errors="surrogatepass"))
    if size > LIMIT:
        raise ValueError(f"the text has {size:,} bytes; a serve command has at most {LIMIT:,}")
    try:
        words = _document_words(text)
        reader = _Reader(document=words is not None)
        reader.find(_shell_words(text) if words is None else words)
        return reader.settle()
    except (RecursionError, OverflowError):
        raise ValueError("the text is nested too deeply, or holds a number too large, to be read") from None


def _shell_words(text: str, depth: int = 0) -> list[str]:
    """The words of a shell command, separators among them, with a command in quotes opened in its place.

    A comment starts only where a word does: shlex alone would take any # for one.
    """
    text = re.sub(r"\\[ \t]*\r?\n", " ", text)
    parts = r"""'[^']*'|"(?:\\.|[^"\\])*"|\\.|(?P<comment>(?<!\S)#[^\n]*)|."""
    text = re.sub(parts, lambda part: "" if part["comment"] else part[0], text, flags=re.DOTALL)
    text = re.sub(r"\$\([^()]*\)|`[^`]*`", "$_", text)
    lexer = shlex.shlex(text, posix=True, punctuation_chars=";&|()<>")
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        words = list(lexer)
    except ValueError as error:
        raise ValueError(f"the command line cannot be split into words: {str(error).lower()}") from None
    return [inner for word in words for inner in (_opened(word, depth + 1) if depth < 3 else None) or [word]]


def _opened(word: str, depth: int = 0) -> list[str] | None:
    """The words of a serve command that is one word, as after `bash -c`; None for any other word."""
    if re.search(r"\bvllm\s+serve\s|\bvllm\.entrypoints\.\S+\s", word):
        return [";", *_shell_words(word, depth), ";"]
    return None


def _document_words(text: str) -> list[str] | None:
    """The words of a JSON or YAML document, its variables as NAME=value; None for anything else."""
    lines = [line.strip() for line in text.splitlines()]
    first = next((line for line in lines if line and not line.startswith(("#", "---"))), "")
    if not re.match(r"[\[{]|- |[\w.-]+:(\s|$)", first):
        return None
    try:
        documents = [json.loads(text, parse_int=str, parse_float=str)]
    except ValueError:
        import yaml  # type: ignore[import-untyped]  # here, for a browser's Python may have to do without it

        try:
            documents = list(yaml.load_all(text, Loader=yaml.BaseLoader))  # every scalar stays a string
        except yaml.YAMLError:
            return None
    words: list[str] = []
    pending = [(document, "", False) for document in reversed(documents)]
    for _ in range(NODES):
        if not pending:
            return words if any(isinstance(document, (dict, list)) for document in documents) else None
        node, key, listed = pending.pop()
        if isinstance(node, list):
            words.append(";")  # a command of its own, as far as repeated options go
            pending += [(item, key, True) for item in reversed(node)]
        elif not isinstance(node, dict):
            words += _scalar_words(str(node), key, listed)
        elif isinstance(node.get("name"), str) and ("value" in node or "valueFrom" in node):
            words.append(f"{node['name']}={node.get('value', '$FROM')}")
        elif key in ("env", "environment"):
            words += [f"{name}={value}" for name, value in node.items()]
        else:
            pending += [(value, str(name), False) for name, value in reversed(node.items())]
    raise ValueError(f"the document has more than {NODES:,} parts")


def _scalar_words(value: str, key: str, listed: bool) -> list[str]:
    """The words of a string in a document: an item of a list is one word, a command is many, the rest is none."""
    if opened := _opened(value):
        return opened
    if listed and not re.match(r"-\S+\s", value):
        return [value]
    option = "--" + re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", key).lower().replace("_", "-")
    if option in READ or option == "--env-from":  # a file for --config, or the values of a chart
        off = "--no-" if value.lower() == "false" else "--"
        return [off + option[2:]] if value.lower() in ("true", "false") else [f"{option}={value}"]
    if key in ("command", "args", "entrypoint") or re.search(r"(^|\s)-[-a-z]", value):
        return [";", *_shell_words(value)]
    return [value] if "vllm-openai" in value else []


def _number(name: str, value: Any, *, human: bool = False) -> int:
    """The whole number of an option; raises ValueError, and repeats only what looks like a number."""
    text = str(value)
    try:
        if isinstance(value, bool) or not (human or re.fullmatch(r"\s*[0-9]{1,15}\s*", text)):
            raise ValueError("it must be a whole number")
        return human_int(text)
    except ValueError as error:
        shown = text if re.fullmatch(r"[0-9][0-9._]{0,19}[A-Za-z]{0,2}", text) else "no number"
        raise ValueError(f"{name} is {shown}: {error}") from None


def _variable(text: str) -> bool:
    """Whether a shell or a template fills this in."""
    return "$" in text or "{{" in text


def _parsed(text: str) -> Any:
    """A JSON value, or the text itself where it is none."""
    try:
        return json.loads(text)
    except ValueError:
        return text


class Option(NamedTuple):
    """One option as it was given; of a document `part` is the list of words, or the command, that it stands in."""

    value: str | None
    typed: str
    part: int


class _Reader:
    """The state of one reading: options are collected first and understood afterwards, for the last one wins."""

    def __init__(self, document: bool) -> None:
        self.document = document
        self.part = 0
        self.options: dict[str, Option] = {}  # by name, by "name.key" where one key of an object is given
        self.variables: dict[str, str] = {}
        self.model = ""
        self.nameless = 0  # words that are no option and no value of one
        self.values: dict[str, Any] = {}
        self.sources: dict[str, str] = {}
        self.not_read: list[str] = []
        self.unread: dict[str, str] = {}
        self.notes: list[str] = []

    def find(self, words: list[str]) -> None:
        """Find the serve command among the words and collect its options."""
        commands = [at for at, word in enumerate(words) if MODULE.search(word)]
        commands += [at for at, two in enumerate(pairwise(words)) if two[1] == "serve" and PROGRAM.search(two[0])]
        images = [at for at, word in enumerate(words) if re.match(r"[\w./:-]*\bvllm-openai(:|@|$)", word)]
        if images and (tag := re.search(r":v?(\d+\.\d+\.\d+)", words[images[0]])):
            self.put("release", tag[1], f"vllm-openai:v{tag[1]}")
        bare = not commands and (self.document or (words[:1] and words[0].startswith("-")))
        commands = commands or ([] if bare else images)
        if len(commands) > 1:
            raise ValueError(f"the text holds {len(commands)} serve commands; give one of them")
        first = commands[0] if commands else 0
        start = first + len(commands) + (words[first + 1 : first + 2] == ["serve"])
        ends = (at for at in range(start, len(words)) if words[at] and not words[at].strip(";&|()"))
        end = next(ends, len(words))
        inside, outside = words[start:end], words[:first] + words[end:]
        if self.document:  # a list of arguments may stand before the command
            inside, outside = words[:first] + words[start:], []
        if commands or bare:
            self.collect(inside)
        if not commands and not any(name.partition(".")[0] in READ for name in self.options):
            raise ValueError("this is no vllm serve command")
        for word in outside:
            name = word.partition("=")[0].replace("_", "-")
            if name in READ:
                self.unread[name] = FOREIGN.get(name, "it stands outside of the serve command")
            elif word in ("source", "."):
                self.unread["source"] = "a file of commands that is not here"
            else:
                self.assign(word)

    def collect(self, words: list[str]) -> None:
        """Take the options of a command, each with its value; the first other word is the model."""
        rest = iter(zip_longest(words, words[1:], fillvalue=""))
        for word, following in rest:
            if self.document and not word.strip(";&|()"):
                self.part += 1
            elif word in ("-e", "--env") or (word and not word.strip("<>&|")):  # a redirection goes to a file
                self.assign(following)
                next(rest, None)
            elif self.assign(word):
                continue
            elif re.match(r"[-\u2010-\u2015\u2212]+\D", word):  # a pasted dash may be a longer one
                if self.option(word, following):
                    next(rest, None)
            elif re.search(r"deepseek[-_]?v4", word, re.I) or not (
                self.model or self.document or (_variable(word) and "model" not in word.lower())
            ):
                self.model = word
            elif _variable(word):
                self.unread["variable"] = "a variable of the shell may hold options"
            else:
                self.nameless += 1

    def assign(self, word: str) -> bool:
        """Take NAME=value, with --env= or -e before it; False for any other word."""
        found = re.fullmatch(r"(?:--env=|-e(?=[A-Z_]))?([A-Za-z_]\w{0,99})=(.*)", word, re.DOTALL)
        if found:
            self.variables[found[1]] = found[2]
        return found is not None

    def option(self, word: str, following: str) -> bool:
        """Take one option; return whether the word after it is its value."""
        typed, given, value = re.sub(r"^-O(?=\d$)", "-O=", word).partition("=")
        typed, _, key = typed.partition(".")
        name = ALIASES.get(typed, typed.replace("_", "-"))
        flag = FLAG.fullmatch(name)
        if name not in READ:
            short = any(option.startswith(name) for option in READ)  # vLLM takes abbreviations
            if short or not (flag or VALUED.fullmatch(name)):
                if not (self.document and re.fullmatch(r"-[a-z]*c", name)):  # bash -c
                    shown = typed if re.fullmatch(r"--?[A-Za-z][\w-]{0,60}", typed) else "an option"
                    self.unread[shown] = "no option of vLLM 0.26 to 0.34 has this name"
                return False
        takes = not flag and not given and re.match(r"[^-;]|-\d+$", following) is not None
        found = Option(value if given else following if takes else None, typed, self.part)
        if key and name in READ and name not in OBJECTS:
            self.unread[name] = "it takes no keys"
            return takes
        name = f"{name}.{key}" if key else name.replace("--no-enforce", "--enforce")
        before = self.options.get(name, found)
        if before.value != found.value and before.part != found.part:
            self.unread[f"{name} again"] = "two commands of the document give it another value"
        self.options[name] = found
        return takes

    def settle(self) -> ServeLine:
        """Understand what was collected."""
        self.settle_model()
        self.settle_numbers()
        self.settle_speculation()
        self.settle_graph()
        self.settle_backend()
        for name, option in self.options.items():
            if SHOWN.fullmatch(name) and re.fullmatch(r"[a-z0-9_.]{1,32}", option.value or ""):
                self.sources[name] = f"{option.typed} {option.value}"
            elif name.partition(".")[0] not in READ or (name in SHARDED and option.value == "1"):
                self.not_read.append(option.typed)
            elif name in FOREIGN:
                self.unread[name] = FOREIGN[name]
        self.settle_variables()
        if self.nameless:
            self.not_read.append(f"words that belong to no option: {self.nameless}")
        said, assumed = {*self.values, *self.unread}, {}
        if "max_num_seqs" not in said:
            assumed["max_num_seqs"] = 1024
            defaults = "1,024 on cards of 70 GiB or more, A100 left out, 256 on others"
            self.notes.append(f"No --max-num-seqs: vLLM takes {defaults}.")
        if "consumer" not in said:
            self.notes.append("The line names no card: FlashMLA is taken to read the rows; on SM120 FlashInfer does.")
        return ServeLine(self.values, self.sources, assumed, tuple(self.not_read), self.unread, tuple(self.notes))

    def put(self, argument: str, value: Any, words: str) -> None:
        self.values[argument], self.sources[argument] = value, words

    def settle_model(self) -> None:
        given = self.options.get("--model")
        word = (given.value if given else None) or self.model
        for model, pattern in MODEL_NAMES.items():
            if found := re.search(pattern, word, re.I):
                self.put("model", model, found[0])
                return
        self.notes.append("The name of the model says nothing here: it is taken for a DeepSeek-V4.")

    def settle_numbers(self) -> None:
        for name, argument in NUMBERS.items():
            if name not in self.options:
                continue
            value, typed, _ = self.options[name]
            if value is None:
                raise ValueError(f"{typed} has no value")
            if _variable(value):
                self.unread[argument] = f"{typed} is a variable"
            elif name == "--max-model-len" and value.strip().lower() in ("auto", "-1"):
                fitted = "fitted to the memory at start-up; vLLM's log names it"
                self.unread[argument] = f"{typed} {value.strip()}: {fitted}"
            else:
                human = name in ("--max-model-len", "--max-num-batched-tokens")
                self.put(argument, _number(typed, value, human=human), f"{typed} {value.strip()}")

    def object(self, name: str, *read: str) -> dict[str, Any]:
        """The object of a JSON option. The other keys of it are listed, without their values."""
        prefix = f"{name}."
        keys = {full.removeprefix(prefix): one.value for full, one in self.options.items() if full.startswith(prefix)}
        config: Any = {key: _parsed(text or "") for key, text in keys.items()}
        if not keys and name in self.options:  # vLLM lets the keys replace the object
            config = _parsed(self.options[name].value or "")
        if isinstance(config, str) and _variable(config):
            self.unread[name] = "it is a variable, or holds one"
            return {}
        if not isinstance(config, dict):
            raise ValueError(f"{self.options[name].typed} has no value that is a JSON object")
        config = {key.replace("-", "_"): value for key, value in config.items()}
        for key in config:
            top = key.partition(".")[0].rstrip("+")
            shown = f"{name}.{top if re.fullmatch('[a-z_]{1,48}', top) else '…'}"
            if top in OBJECTS[name].split():
                self.not_read.append(shown)
            elif key not in read:
                self.unread[shown] = "what it changes is not described here"
        return config

    def settle_speculation(self) -> None:
        config = self.object("--speculative-config", *SPECULATION.values(), "enable_adaptive_verification")
        given = {key: self.options[name].value for name, key in SPECULATION.items() if name in self.options}
        config |= given
        if not config:
            return
        count, method = config.get("num_speculative_tokens"), config.get("method")
        if count is None or _variable(str(count)):
            self.unread["num_speculative_tokens"] = "their number is left to the draft model, or is a variable"
        else:
            words = "--spec-tokens" if "num_speculative_tokens" in given else "num_speculative_tokens ="
            self.put("num_speculative_tokens", _number("num_speculative_tokens", count), f"{words} {count}")
        if method in METHODS:
            self.put("speculative_method", method, f"method = {method}")
        elif method is None:
            self.notes.append("The line names no speculative method: a request counts as decode up to 1 + k tokens.")
        else:
            self.unread["speculative_method"] = "no method of vLLM has this name"
        if config.get("enable_adaptive_verification"):
            self.notes.append("Adaptive verification: the host's request boundaries are right in their total only.")

    def settle_graph(self) -> None:
        words, value = "cudagraph_mode =", self.object("--compilation-config", "cudagraph_mode").get("cudagraph_mode")
        if value is None and "--optimization-level" in self.options:  # the level only sets what was not said
            words, value = "-O", self.options["--optimization-level"].value or ""
        eager, known = self.options.get("--enforce-eager"), MODES[words]
        if eager and "no" not in eager.typed:
            self.put("graph", "eager", eager.typed)
        elif value is not None and _variable(str(value)):
            self.unread["graph"] = "the mode of the graphs is a variable"
        elif value is not None and str(value).upper() not in known:
            raise ValueError(f"{words.split()[0]} has another value than {', '.join(known)}")
        elif value is not None:
            self.put("graph", known[str(value).upper()], f"{words} {value}")

    def settle_backend(self) -> None:
        config = self.object("--attention-config", "backend")
        given = self.options.get("--attention-backend")
        backend = str(given.value if given else config.get("backend", "auto")).upper()
        if backend == "FLASHMLA_SPARSE_DSV4":
            self.put("consumer", "flashmla_sm90", f"--attention-backend {backend}")
        elif backend == "FLASHINFER_MLA_SPARSE_DSV4":
            self.unread["consumer"] = f"{backend} is one kernel on SM100 and another on SM120; name the one"
        elif backend != "AUTO":
            self.unread["consumer"] = "no attention backend of vLLM that is described here has this name"

    def settle_variables(self) -> None:
        for name, value in self.variables.items():
            value = value.strip()
            if name == "VLLM_BATCH_INVARIANT" and value in ("0", "1"):
                self.put("batch_invariant", value == "1", f"{name}={value}")
            elif name == "VLLM_BATCH_INVARIANT":
                self.unread["batch_invariant"] = f"{name} is neither 0 nor 1"
            elif name == "VLLM_USE_V2_MODEL_RUNNER" and value != "1":
                self.unread[name] = "the older model runner splits decode from prefill in another way"
            elif name == "C128A_VLLM" and value != "0":
                self.unread[name] = "the stand-in takes the builder's place; check it by its layout and policy"
            else:
                self.not_read.append(name)
