"""Read a pasted serve command for the settings that matter here. Torch-free.

A command line, a script, `bash -c "…"`, a docker command, a compose file, a Kubernetes manifest, or a list of arguments
in YAML or JSON. Options are read as vLLM reads them: `_` and `-` are the same in a name, `--name value` and
`--name=value` are the same, `--json-option.key value` is the same as a JSON object, the last one wins.

What was read, what has no meaning here, and what has one and was not read are kept apart: for the last the verdict has
to wait. A name that matters and stands where nobody reads it is of the last kind, wherever it stands. A value comes
back only where it was understood, for any other may be a secret.

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
from itertools import zip_longest
from typing import Any, NamedTuple

from c128a.deployment.findings import Graph, Model
from c128a.deployment.releases import METHODS

LIMIT = 65_536  # bytes of a paste: more than any command, and read at once
NODES = 20_000  # parts of a document; an alias in YAML can stand for many

SUFFIXES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
# vLLM's modes and levels, by what graphs they make of a decode step.
MODES: dict[str, Graph] = {"NONE": "eager", "PIECEWISE": "piecewise", "FULL": "full"}
MODES |= {"FULL_DECODE_ONLY": "full", "FULL_AND_PIECEWISE": "full"}
LEVELS: dict[str, Graph] = {"0": "eager", "1": "piecewise", "2": "full", "3": "full"}

SIZES = ("max_model_len", "max_num_batched_tokens", "max_num_seqs", "block_size")
NUMBERS = {f"--{name.replace('_', '-')}": name for name in SIZES}
# Options that take a JSON object, and the keys that turn no safe deployment into a dangerous one.
OBJECTS = {
    "--speculative-config": "revision code_revision draft_tensor_parallel_size quantization moe_backend kv_cache_dtype "
    "attention_backend max_model_len rejection_sample_method",
    "--compilation-config": "mode pass_config cudagraph_capture_sizes max_cudagraph_capture_size custom_ops "
    "cudagraph_num_of_warmups compile_sizes inductor_compile_config cache_dir debug_dump_path",
    "--attention-config": "flash_attn_version flash_attn_max_num_splits_for_cuda_graph indexer_kv_dtype",
}
SHARDED = ("--decode-context-parallel-size", "--prefill-context-parallel-size")
FILES = ("--config", "--env-file", "--env-from", "--extends", "--include")
CODE = ("--worker-cls", "--worker-extension-cls", "--scheduler-cls", "--model-class-overrides", "--additional-config")
# Options, and keys of documents, that can change the verdict and are not followed; of SHARDED a value of 1 cannot.
FOREIGN = {
    **dict.fromkeys(FILES, "a file of options that is not here"),
    **dict.fromkeys(("--hf-overrides", "--hf-config-path"), "it changes the model's configuration"),
    **dict.fromkeys(CODE, "it is for other code than vLLM's"),
    "--disable-sliding-window": "it bounds the model length",
    **dict.fromkeys(SHARDED, "the rows of a rank of a sharded context are not described here"),
}
SPECULATION = {"--spec-tokens": "num_speculative_tokens", "--spec-method": "method", "--spec-model": "model"}
FLAGS_READ = ("--enforce-eager", "--no-enforce-eager", "--enable-chunked-prefill", "--no-enable-chunked-prefill")
WORDS_READ = ("--model", "--optimization-level", "--attention-backend")
READ = {*NUMBERS, *OBJECTS, *FOREIGN, *SPECULATION, *FLAGS_READ, *WORDS_READ}
ALIASES = {"-sc": "--speculative-config", "-cc": "--compilation-config", "-ac": "--attention-config",
           "-O": "--optimization-level", "-dcp": SHARDED[0], "-pcp": SHARDED[1], "-tp": "--tensor-parallel-size",
           "-pp": "--pipeline-parallel-size", "-dp": "--data-parallel-size"}  # fmt: skip
# The first words of all other options of vLLM 0.26 to 0.34, without a value and with one: another may be misspelt.
FLAGS = (
    "aggregate allow async checkpoint disable dpe dph dpm enable enforce ep exclude fail fully grpc headless "
    "interleave language monokernel no return scheduler shuffle skip specialize swa tokens trust use"
)
VALUED = (
    "all2all allowed anthropic api asc aux cache calculate chat code cohere collect config convert cp cpu cudagraph "
    "custom data dbo dc dcp default device diffusion distributed download dp dpa dpb dpl dpn dpp dpr dtype ec elastic "
    "engram eplb expert fault fingerprint gdn generation gpu h11 hf host ignore io ir jit kda kernel kv limit linear "
    "load log logging logits logprobs long lora mamba master media middleware mm moe n nnodes node num numa offload "
    "otlp override per performance pipeline pooler port prefill prefix profiler pt q quantization r ray reasoning "
    "renderer replayssm response revision root runner safetensors scheduling seed served show shutdown sleep sparse "
    "sse ssl stream structured tensor tokenizer tool ubatch uds video watchdog watermark weight"
)
MOST = re.compile(r"--max-(num-(active|inflight|partial|queued|scheduled)|cpu|cudagraph|log|long|lora|parallel)[a-z-]*")
NAME = re.compile(r"--([a-z]+|all2all|h11|fp8|fp64|bf16x3)([-_]([a-z]+|fp8|fp64|bf16x3))*")
# Options whose value is a number or one of vLLM's own words, which is shown.
SHOWN = re.compile(
    r"--((tensor|pipeline|data)-parallel-size|gpu-memory-utilization|(moe|all2all)-backend|load-format|kv-cache-dtype|"
    r"tokenizer-mode|(reasoning|tool-call)-parser|scheduling-policy|dtype|port|seed|quantization)"
)
PLAIN = re.compile(r"[0-9.]{1,9}|[a-z]+[0-9]{0,2}(_[a-z]+[0-9]{0,2}){0,3}")
# What names a model; of one that is no DeepSeek-V4 only the last part of the path speaks.
MODEL_NAMES: dict[Model, str] = {
    "V4": r"deepseek[-_]?v4(?![._]?1(?![0-9kmbtg]))([-_](pro|flash|base|dspark|fp8|nvfp4))*",
    "V4.1": r"deepseek[-_]?v4[._]?1(?![0-9kmbtg])",
    "other": r"(?<![a-z])(llama|qwen|mi[sx]tral|gemma|gpt-oss|glm|kimi|minimax|deepseek[-_]?(v[123]|r1))(?=[^/]*/*$)",
}
# Variables that can change the verdict, with another value than vLLM's default.
VARIABLES = {
    "VLLM_BATCH_INVARIANT": "it is neither 0 nor 1",
    "VLLM_USE_V2_MODEL_RUNNER": "the older model runner splits decode from prefill in another way",
    "VLLM_USE_BREAKABLE_CUDAGRAPH": "what its graphs hold is not described here",
    "VLLM_ATTENTION_BACKEND": "it may choose another kernel",
    "VLLM_PLUGINS": "it is for other code than vLLM's",
    "C128A_VLLM": "the stand-in takes the builder's place; check it by its layout and policy",
}
# These names wherever they stand in a word; common words only as options.
MATTERS = re.compile(
    "|".join([*VARIABLES, *(name[2:].replace("-", "[-_]") for name in READ if "-" in name[2:])])
    + r"|--(model|config|extends|include)(?![\w-])"
)
ARGUMENTS = {**NUMBERS, "VLLM_BATCH_INVARIANT": "batch_invariant"}  # names that an argument of check settles
ASSIGNED = re.compile(r"(?:--env=|-e=?(?=[A-Z_]))?([A-Za-z_]\w{0,99})=(.*)", re.DOTALL)
NAMED_VARIABLE = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+")
PROGRAM = re.compile(r"(^|[/=])vllm$")
MODULE = re.compile(r"\bvllm[./]entrypoints[./](openai[./]api_server|cli[./]main)(\.py)?$")
COMMAND = re.compile(r"\bvllm\s+serve\s|\bvllm\.entrypoints\.\S+\s")  # a whole serve command in one word
VERSION = re.compile(r"\bvllm(?:-openai:v?|==|@)(\d+\.\d+\.\d+)")
# Keys of a document under which nothing is served.
ASIDE = ("healthcheck", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle", "labels", "annotations",
         "matchLabels", "selector")  # fmt: skip


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
        parts = _document_parts(text)
        reader = _Reader(document=parts is not None)
        reader.find(_shell_parts(text) if parts is None else parts)
        return reader.settle()
    except (RecursionError, OverflowError):
        raise ValueError("the text is nested too deeply, or holds a number too large, to be read") from None


Parts = list[list[str]]  # the words of each simple command, or of each list of a document


def _shell_parts(text: str, *, document: bool = False, depth: int = 0) -> Parts:
    """The simple commands of a shell text; one that is quoted in another, as after `bash -c`, stands after its words.

    A comment starts only where a word does: shlex alone would take any # for one. A line of a shell ends a command, but
    in a document an option may begin the next one.
    """
    marks = r"""'[^']*'|"(?:\\.|[^"\\])*"|\\.|(?P<comment>(?<![^\s;&|()])#[^\n]*)|."""
    text = re.sub(marks, lambda part: "" if part["comment"] else part[0], text, flags=re.DOTALL)
    text = re.sub(r"\\[ \t]*\r?\n" + (r"|\n[ \t]*(?=-)" if document else ""), " ", text)
    text = re.sub(r"\$\([^()]*\)|`[^`]*`", "$_", text)
    lexer = shlex.shlex(text, posix=True, punctuation_chars=";&|()<>\n")
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    parts: Parts = [[]]
    try:
        for word in lexer:
            if word and not word.strip(";&|()\n"):
                parts.append([])
            elif depth < 3 and COMMAND.search(word):
                parts += [*_shell_parts(word, document=document, depth=depth + 1), []]
            else:
                parts[-1].append(word)
    except ValueError as error:
        raise ValueError(f"the command line cannot be split into words: {str(error).lower()}") from None
    return parts


def _document_parts(text: str) -> Parts | None:
    """The words of a JSON or YAML document, list by list, its variables as NAME=value; None for anything else."""
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
    parts: Parts = [[]]
    pending = [(document, "", False) for document in reversed(documents)]
    for _ in range(NODES):
        if not pending:
            return parts if any(isinstance(document, (dict, list)) for document in documents) else None
        node, key, listed = pending.pop()
        option = _option_of(key)
        if isinstance(node, list) and option:
            parts[-1].append(f"{option}=a list")
        elif isinstance(node, list):
            parts.append([])
            pending += [(item, key, True) for item in reversed(node)]
        elif not isinstance(node, dict):
            words, *commands = _scalar_parts("" if node is None else str(node), key, listed)
            parts[-1] += words
            parts += commands
        elif isinstance(node.get("name"), str) and ("value" in node or "valueFrom" in node):
            parts[-1].append(f"{node['name']}={node.get('value', '$FROM')}")
        else:
            inside = f"{key}." if option else ""
            items = [(value, f"{inside}{name}", False) for name, value in [*node.items()][::-1] if name not in ASIDE]
            pending += sorted(items, key=lambda item: item[1] == "<<")  # what is merged in comes first
    raise ValueError(f"the document has more than {NODES:,} parts")


def _option_of(key: str) -> str:
    """The option that a key of a document sets, its own keys after a dot; empty where that is none that is read."""
    name, dot, inner = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key.lstrip("-")).lower().partition(".")
    option = f"--{name.replace('_', '-')}"
    return f"{option}{dot}{inner}" if option in READ else ""


def _scalar_parts(value: str, key: str, listed: bool) -> Parts:
    """The words of a string in a document, and the commands in it: an item of a list is one word, the rest is none."""
    option = _option_of(key)
    if not COMMAND.search(value):
        if listed and not re.match(r"-\S+\s", value):
            return [[value]]
        if option and value.lower() in ("true", "false") and "." not in option:
            return [[option if value.lower() == "true" else f"--no-{option[2:]}"]]
        if option or NAMED_VARIABLE.fullmatch(key):
            return [[f"{option or key}={value}"]]
        if key not in ("command", "args", "entrypoint") and not re.search(r"(^|\s)-[-a-z]", value):
            return [[text for text in (key, value) if VERSION.search(text) or MATTERS.search(text)]]
    return [[], *_shell_parts(value, document=True)]


def _variable(text: str) -> bool:
    """Whether a shell or a template fills this in."""
    return "$" in text or "{{" in text


def _parsed(text: str) -> Any:
    """A JSON value, or the text itself where it is none."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def shown(word: str) -> str:
    """The name of an option as it was typed, unless more stands in it than a name: that could be a secret.

    >>> shown("--max_model-len=1"), shown("--api-keyhunter"), shown("-x7")
    ('--max_model-len', 'an option', 'an option')
    """
    typed = re.split("[=.]", word)[0]
    glued = re.search("(key|pass|secret|token)(?!$|file$|s$|s-|izer|-thr)", typed)
    return typed if typed in ALIASES or (NAME.fullmatch(typed) and not glued) else "an option"


class Option(NamedTuple):
    """One option as it was given, and which command, or list of words, of the text it stands in."""

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
        self.names: list[str] = []  # words that may name the model
        self.nameless = 0  # words that are no option and no value of one
        self.values: dict[str, Any] = {}
        self.sources: dict[str, str] = {}
        self.not_read: list[str] = []
        self.unread: dict[str, str] = {}
        self.notes: list[str] = []

    def find(self, parts: Parts) -> None:
        """Find the serve command and collect its options; what else matters in the text is not read."""
        parts = [part for part in parts if part] or [[]]
        commands, images = [], []
        for number, part in enumerate(parts):
            for at, (word, following) in enumerate(zip_longest(part, part[1:], fillvalue="")):
                if MODULE.search(word) or (PROGRAM.search(word) and following == "serve"):
                    commands.append((number, at, at + 1 + (following == "serve")))
                elif re.match(r"[\w./:-]*\bvllm-openai(:|@|$)", word) and (following or self.document):
                    images.append((number, at, at + 1))
                if tag := VERSION.search(word):
                    if self.values.get("release", tag[1]) != tag[1]:
                        self.unread["release"] = "the text names two versions of vLLM"
                    self.put("release", tag[1], tag[0])
        commands = commands or images
        if len(commands) > 1:
            raise ValueError(f"the text holds {len(commands)} serve commands; give one of them")
        if not (commands or self.document or "".join(parts[0][:1]).startswith("-")):
            raise ValueError("this is no vllm serve command")
        chosen, first, start = commands[0] if commands else (0, 0, 0)
        for self.part, part in enumerate(parts):
            if self.document or not commands:
                self.collect(part[:first] + part[start:] if self.part == chosen else part)
            elif self.part == chosen:
                self.outside(part[:first], own=True)
                self.collect(part[start:])
            else:
                exported = all(word == "export" or ASSIGNED.fullmatch(word) for word in part)
                self.outside(part, own=exported, before=self.part < chosen)
        places = {option.part for name, option in self.options.items() if name.partition(".")[0] in READ}
        if not commands and not places:
            raise ValueError("this is no vllm serve command")
        if self.document and commands != images and chosen in places and len(places) > 1:
            self.unread["commands"] = "the document has options in a whole command and elsewhere"

    def outside(self, words: list[str], *, own: bool, before: bool = True) -> None:
        """Words before or after the serve command: variables, and what matters and was not meant for it."""
        for last, word, following in zip(["", *words], words, [*words[1:], ""], strict=False):
            if word in ("source", ".", "xargs") and not following.endswith("bin/activate"):
                self.unread[word] = "options or variables may come from a file that is not here"
            elif own and re.fullmatch(r"\$\W?\w+\W*", word) and not re.match("-(?!e$|-env$)", last):
                self.unread["variable"] = "a variable of the shell may hold options"
            elif not (before and self.assign(word, own=own)):
                self.guard(word)

    def guard(self, word: str) -> None:
        """What matters in a word that is not read."""
        for found in MATTERS.finditer(word):
            name = found[0] if found[0] in VARIABLES else "--" + found[0].strip("-").replace("_", "-")
            self.unread.setdefault(ARGUMENTS.get(name, name), FOREIGN.get(name, "it stands where it is not read"))

    def assign(self, word: str, *, own: bool) -> bool:
        """Take NAME=value; False for any other word. Another value is only taken where it is surely the later one."""
        found = ASSIGNED.fullmatch(word)
        if found is None:
            return False
        name, value = found.groups()
        if name in VARIABLES and not own and self.variables.get(name, value) != value:
            self.unread[ARGUMENTS.get(name, name)] = "it is given two values"
        elif name == "EnvironmentFile":
            self.unread[name] = "a file of variables that is not here"
        elif name not in VARIABLES:
            self.guard(value)
        self.variables[name] = value
        return True

    def collect(self, words: list[str]) -> None:
        """Take the options of a command, each with its value; the first other word is the model."""
        open_end = False  # the last option may take more words
        rest = iter(zip_longest(words, words[1:], fillvalue=""))
        for word, following in rest:
            redirected = following and not following.strip("<>&|")
            if word in ("-e", "--env") or (word and not word.strip("<>&|")):  # a redirection goes to a file
                if not self.assign(following, own=not self.document):
                    self.guard(following)
                next(rest, None)
            elif self.assign(word, own=not self.document) or (redirected and word.isdigit()):
                continue
            elif re.match(r"[-\u2010-\u2015\u2212]+\D", word):  # a pasted dash may be a longer one
                taken, open_end = self.option(word, following)
                if taken:
                    next(rest, None)
            elif not open_end and self.may_name_model(word):
                self.names.append(word)
            elif _variable(word):
                self.unread["variable"] = "a variable of the shell may hold options"
            else:
                self.guard(word)
                self.nameless += not open_end

    def may_name_model(self, word: str) -> bool:
        if self.document:  # its words are of other things too
            return re.search(r"deepseek[-_]?v4", word, re.I) is not None
        return not self.names and (not _variable(word) or "model" in word.lower())

    def option(self, word: str, following: str) -> tuple[bool, bool]:
        """Take one option; return whether the next word is its value, and whether more words may be."""
        typed, given, value = re.sub(r"^-O(?=\d$)", "-O=", word).partition("=")
        typed, _, key = typed.partition(".")
        name = ALIASES.get(typed, typed.replace("_", "-"))
        first, read = name.lstrip("-").partition("-")[0], name in READ
        flag = first in FLAGS.split()
        valued = first in VALUED.split() or MOST.fullmatch(name) is not None
        short = not read and any(option.startswith(name) for option in READ)  # vLLM takes abbreviations
        if short or not (read or flag or valued):
            if not (self.document and re.fullmatch(r"-[a-z]{1,5}", name)):  # of another command, as bash -c
                self.unread[shown(typed)] = "no option of vLLM 0.26 to 0.34 has this name"
            return False, True
        if flag and (given or key or following.lower() in ("true", "false", "yes", "no", "on", "off", "0", "1")):
            self.unread[shown(typed)] = "it takes no value"
        elif key and read and name not in OBJECTS:
            self.unread[name] = "it takes no keys"
        takes = not flag and not given and re.match(r"[^-]|-\d+$", following) is not None
        found = Option(value if given else following if takes else None, typed, self.part)
        name = f"{name}.{key}" if key else f"--{name[5:]}" if name in FLAGS_READ and name[:5] == "--no-" else name
        before = self.options.get(name, found)
        if before.part != found.part and (before.value != found.value or name == "--model"):
            self.unread[f"{name} again"] = "two commands of the document give it another value"
        self.options[name] = found
        return takes, valued and not read

    def settle(self) -> ServeLine:
        """Understand what was collected."""
        self.settle_model()
        self.settle_numbers()
        self.settle_speculation()
        self.settle_graph()
        self.settle_backend()
        self.settle_variables()
        for name, option in self.options.items():
            if SHOWN.fullmatch(name) and PLAIN.fullmatch(option.value or ""):
                self.sources[name] = f"{option.typed} {option.value}"
            elif name.partition(".")[0] not in READ or (name in SHARDED and option.value == "1"):
                self.not_read.append(shown(option.typed))
            elif name in FOREIGN:
                self.unread[name] = FOREIGN[name]
        if self.nameless and self.document:
            self.not_read.append(f"words that belong to no option: {self.nameless}")
        elif self.nameless or (self.names and "--model" in self.options):
            self.unread["words"] = "some belong to no option"
        said, assumed = {*self.values, *self.unread}, {}
        if "max_num_seqs" not in said:
            assumed["max_num_seqs"] = 1024
            defaults = "1,024 on cards of 70 GiB or more, A100 left out, 256 on others"
            self.notes.append(f"No --max-num-seqs: vLLM takes {defaults}.")
        if "consumer" not in said:
            self.notes.append("The line names no card: FlashMLA is taken to read the rows; on SM120 FlashInfer does.")
        not_read = tuple(dict.fromkeys(self.not_read))
        return ServeLine(self.values, self.sources, assumed, not_read, self.unread, tuple(self.notes))

    def put(self, argument: str, value: Any, words: str) -> None:
        self.values[argument], self.sources[argument] = value, words

    def value(self, name: str) -> str:
        return (name in self.options and self.options[name].value) or ""

    def settle_model(self) -> None:
        for model, pattern in MODEL_NAMES.items():  # where two names disagree, the one that could be in danger
            for name in (*self.names, self.value("--model")):
                found = re.search(pattern, name, re.I)
                if found and (model == "V4" or not _variable(name)):  # ${MODEL:-DeepSeek-V4.1} may be another one
                    return self.put("model", model, found[0])
        self.notes.append("The name of the model says nothing here: it is taken for a DeepSeek-V4.")

    def settle_numbers(self) -> None:
        for name, argument in NUMBERS.items():
            if name not in self.options:
                continue
            typed, value = self.options[name].typed, self.value(name).strip()
            if not value:
                raise ValueError(f"{typed} has no value")
            if name == "--max-model-len" and value.lower() in ("auto", "-1"):
                self.unread[argument] = f"{typed} {value}: fitted to the memory at start-up; vLLM's log names it"
            else:
                self.number(argument, typed, value, human=name in ("--max-model-len", "--max-num-batched-tokens"))
        chunked, batch = self.options.get("--enable-chunked-prefill"), "max_num_batched_tokens"
        if chunked and "no" in chunked.typed and batch not in self.values:
            self.unread.setdefault(batch, f"with {chunked.typed} it is the model length, or more")

    def number(self, argument: str, typed: str, value: Any, *, human: bool = False) -> None:
        """Take a whole number; a ValueError repeats only what looks like a number."""
        text = str(value).strip()
        try:
            if _variable(text):
                self.unread[argument] = f"{typed} is a variable"
            elif isinstance(value, bool) or not (human or re.fullmatch("[0-9]{1,15}", text)):
                raise ValueError("it must be a whole number")
            else:
                self.put(argument, human_int(text), f"{typed} {text}")
        except ValueError as error:
            said = text if re.fullmatch(r"-?[0-9][0-9._]{0,19}[A-Za-z]{0,2}", text) else "no number"
            raise ValueError(f"{typed} is {said}: {error}") from None

    def object(self, name: str, *read: str) -> dict[str, Any]:
        """The object of a JSON option. The other keys of it are listed, without their values."""
        prefix = f"{name}."
        config: Any = {full.removeprefix(prefix): self.value(full) for full in self.options if full.startswith(prefix)}
        config = {key: _parsed(text) for key, text in config.items()}
        if not config and name in self.options:  # vLLM lets the keys replace the object
            config = _parsed(self.value(name))
        if isinstance(config, str) and _variable(config):
            self.unread[name] = "it is a variable, or holds one"
            return {}
        if not isinstance(config, dict):
            raise ValueError(f"{self.options[name].typed} has no value that is a JSON object")
        config = {key.replace("-", "_"): value for key, value in config.items()}
        for key in (key for key in config if key not in read):
            top = key.partition(".")[0].rstrip("+")
            if top in OBJECTS[name].split():
                self.not_read.append(f"{name}.{top}")
            else:
                top = top if re.fullmatch("[a-z_]{1,48}", top) else "…"
                self.unread[f"{name}.{top}"] = "what it changes is not described here"
        return config

    def settle_speculation(self) -> None:
        config = self.object("--speculative-config", *SPECULATION.values(), "enable_adaptive_verification")
        config |= {key: self.value(name) for name, key in SPECULATION.items() if name in self.options}
        if not config:
            return
        method = config.get("method")
        if config.get("num_speculative_tokens") is None:
            self.unread["num_speculative_tokens"] = "their number is left to the draft model"
        else:
            typed = "--spec-tokens" if "--spec-tokens" in self.options else "num_speculative_tokens"
            self.number("num_speculative_tokens", typed, config["num_speculative_tokens"])
        if method in METHODS:
            self.put("speculative_method", method, f"method {method}")
        elif method is None:
            self.notes.append("The line names no speculative method: a request counts as decode up to 1 + k tokens.")
        else:
            self.unread["speculative_method"] = "no method of vLLM has this name"
        if config.get("enable_adaptive_verification"):
            self.notes.append("Adaptive verification: the host's request boundaries are right in their total only.")

    def settle_graph(self) -> None:
        words, known = "cudagraph_mode", MODES
        value = self.object("--compilation-config", words).get(words)
        if value is None and "--optimization-level" in self.options:  # the level only sets what was not said
            words, known, value = "-O", LEVELS, self.value("--optimization-level")
        mode, eager = str(value).upper(), self.options.get("--enforce-eager")
        if eager and "no" not in eager.typed:
            self.put("graph", "eager", eager.typed)
        elif _variable(mode):
            self.unread["graph"] = "the mode of the graphs is a variable"
        elif value is not None and mode not in known:
            raise ValueError(f"{words} has another value than {', '.join(known)}")
        elif value is not None:
            self.put("graph", known[mode], f"{words} {value}")

    def settle_backend(self) -> None:
        config = self.object("--attention-config", "backend")
        backend = (self.value("--attention-backend") or str(config.get("backend", "auto"))).upper()
        if backend == "FLASHMLA_SPARSE_DSV4":
            self.put("consumer", "flashmla_sm90", f"--attention-backend {backend}")
        elif backend == "FLASHINFER_MLA_SPARSE_DSV4":
            self.unread["consumer"] = f"{backend} is one kernel on SM100 and another on SM120; name the one"
        elif backend != "AUTO":
            self.unread["consumer"] = "no attention backend of vLLM that is described here has this name"

    def settle_variables(self) -> None:
        for name, value in self.variables.items():
            if name not in VARIABLES:
                self.not_read.append(name if NAMED_VARIABLE.fullmatch(name) else "a variable")
            elif name == "VLLM_BATCH_INVARIANT" and value.strip() in ("0", "1"):
                self.put("batch_invariant", value.strip() == "1", f"{name}={value.strip()}")
            elif value.strip() != ("1" if name == "VLLM_USE_V2_MODEL_RUNNER" else "0"):
                self.unread[ARGUMENTS.get(name, name)] = VARIABLES[name]
