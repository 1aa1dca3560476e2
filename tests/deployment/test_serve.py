"""A pasted serve command: what is read, what is listed, what keeps the verdict open, what is refused."""

import contextlib
import json
import random
import re
import shlex

import pytest

from c128a.deployment import check, read_serve_line
from c128a.deployment.__main__ import report
from c128a.deployment.serve import human_int

NAME = "deepseek-ai/DeepSeek-V4-Pro"
MODEL = f"vllm serve {NAME}"


@pytest.mark.parametrize("text", ["1.5M", "1.5", "M", "1Mi", "1e6", "", "$LEN", "9" * 5000, "1" * 400 + ".5k", "٣"])
def test_what_vllm_would_not_take_for_a_number_is_refused(text):
    with pytest.raises(ValueError):
        human_int(text)


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("--max-model-len $X --max-model-len 4096", {"max_model_len": 4096}),
        ("""--speculative_config='{"num_speculative_tokens": 3}'""", {"num_speculative_tokens": 3}),
        ("-sc.num_speculative_tokens=2", {"num_speculative_tokens": 2}),
        ("--enforce-eager --no-enforce-eager", {}),
        ("""--compilation-config '{"cudagraph_mode": "FULL_DECODE_ONLY"}'""", {"graph": "full"}),
        ("""-cc '{"cudagraph_mode": "NONE"}' -cc.cudagraph_mode=FULL""", {"graph": "full"}),  # the keys replace it
        ("-O=3", {"graph": "full"}),
        ("--optimization-level 1", {"graph": "piecewise"}),
        ("-O1 -cc.cudagraph_mode=FULL", {"graph": "full"}),  # the level only sets what was not said
        ("--enforce-eager -cc.cudagraph_mode=FULL -O3", {"graph": "eager"}),
        # a hash inside a word starts no comment; the tag of an image is the release
        ("vllm serve m#1 -tp ${#GPUS[@]} --max-model-len 4096 # --max-model-len 1M", {"max_model_len": 4096}),
        ("docker pull vllm-openai:v0.28.0\ndocker run vllm-openai:v0.28.0 -dp 2", {"release": "0.28.0"}),
        ("pip install vllm==0.29.0\nsource env/bin/activate\nvllm serve m#2", {"release": "0.29.0"}),
        # two names of a model: the one that could be in danger, wherever it stands in the path
        ("vllm serve /mnt/deepseek-v4.1/DeepSeek-V4-Pro --served-model-name a DeepSeek-V4.1", {"model": "V4"}),
        ("vllm serve x/DeepSeek-V4-1M", {"model": "V4"}),
        ("docker run --name $NAME -v $PWD:/x i vllm serve x/DeepSeek-V4", {"model": "V4"}),
        ("vllm serve deepseek-ai/DeepSeek-V4.1-Flash", {"model": "V4.1"}),
        ('["vllm", "serve", "deepseek-ai/DeepSeek-V4.1"]', {"model": "V4.1"}),
        ("vllm serve m --served-model-name a deepseek-v4.1", {}),
        ('["vllm", "serve", "m", "--served-model-name", "a", "deepseek-v4.1"]', {}),
        ("vllm serve meta-llama/Llama-3-8B", {"model": "other"}),
        ("vllm serve /mnt/qwen-team/prod", {}),  # the name says nothing, wherever the folder is
        ("vllm serve ${MODEL:-DeepSeek-V4.1}", {}),
        # a configuration file, with objects, lists and flags
        ("model: DeepSeek-V4-Pro\nmaxNumSeqs: 5\nenforce-eager: false\ncudagraph-capture-sizes: [1, 2]",
         {"model": "V4", "max_num_seqs": 5}),
        ("model: m\nspeculative_config:\n  num_speculative_tokens: 7\n  method: dspark",
         {"num_speculative_tokens": 7, "speculative_method": "dspark"}),
    ],
)  # fmt: skip
def test_settings_that_are_read(line, values):
    options = line.startswith("-")
    found = read_serve_line(f"{MODEL} {line}" if options else line)
    assert (found.values, found.unread) == ({"model": "V4", **values} if options else values, {})


# The ways in which people write a command and its variables.
FORMS = {
    "shell": "$ %(env)s%(serve)s %(words)s   # don't",
    "lines": "%(export)s%(serve)s \\\n  %(lines)s",
    "script": "set -e\n%(export)scd /x && exec %(serve)s %(words)s > log 2>&1 &",
    "again": "export VLLM_BATCH_INVARIANT=7; VLLM_BATCH_INVARIANT=0 %(env)s%(serve)s %(words)s",
    "bash": "docker exec %(e)sc bash -lc %(double)s",
    "sh": "sudo sh -c %(single)s",
    "module": "%(env)spython3 -m vllm.entrypoints.openai.api_server --model %(name)s %(words)s",
    "image": "docker run %(long)s-p 80:80 vllm/vllm-openai:latest --model %(name)s %(words)s",
    "docker": "docker run --gpus all %(e)simage %(serve)s %(words)s",
    "podman": "podman run %(glued)simage %(serve)s %(words)s",
    "options": "--model %(name)s %(e)s\n%(words)s",
    "json": '{"command": ["vllm", "serve"], "args": %(list)s, "env": %(entries)s}',
    "yaml": "# args\n- vllm\n- serve\n%(items)s",
    "manifest": "- command: [vllm, serve]\n  args: %(list)s\n  env: %(entries)s\n  livenessProbe: [-x]\n",
    "literal": "command: [sh, -c]\nenv: %(entries)s\nargs:\n- |\n  set -e\n  %(serve)s \\\n    %(words)s\n",
    "compose": "services: {v: {environment: %(mapping)s, healthcheck: [curl, -f], command: %(string)s}}",
    "folded": "v:\n  environment: %(pairs)s\n  command: >\n    --model\n    %(name)s\n    %(words)s\n",
    "merged": "a: &a %(mapping)s\nv:\n  environment: {A_B: c, <<: *a}\n  command: %(string)s\n",
}


def written(form, words, variables):
    """The command with these options, and these variables, in one form."""
    options = [word if word.startswith("$") else shlex.quote(word) for word in words]
    pairs = [f"{name}={value if value.startswith('$') else shlex.quote(value)}" for name, value in variables.items()]
    env, text = "".join(f"{pair} " for pair in pairs), " ".join(options)
    plain = [f"{name}={value}" for name, value in variables.items()]
    return FORMS[form] % {
        **{"serve": MODEL, "name": NAME, "words": text, "lines": " \\  \n  ".join(options), "env": env},
        "export": "".join(f"export {pair}\n" for pair in pairs),
        "e": "".join(f"-e {pair} " for pair in pairs),
        "long": "".join(f"--env={pair} " for pair in pairs),
        "glued": "".join(f"-e{pair} " for pair in pairs),
        "double": json.dumps(f"{env}{MODEL} {text}"),
        "single": shlex.quote(f"{env}{MODEL} {text}"),
        "list": json.dumps([NAME, *words]),
        "string": json.dumps(f"--model {NAME} {text}"),
        "items": "".join(f"- {json.dumps(word)}\n" for word in [NAME, *words, *plain]),
        "pairs": json.dumps(plain),
        "mapping": json.dumps(variables),
        "entries": json.dumps([{"name": name, "value": value} for name, value in variables.items()]),
    }


def test_what_the_line_does_not_say_is_assumed_as_vllm_does_and_noted():
    line = read_serve_line(MODEL)
    assert line.assumed == {"max_num_seqs": 1024} and any("256" in note for note in line.notes)
    assert read_serve_line(f"{MODEL} --max-num-seqs 8").assumed == {}


def test_harmless_words_are_shown_whole_the_last_of_repeated_ones_alone_and_other_options_by_name():
    options = "--spec-tokens 3 --tokenizer-mode deepseek_v4 -tp 4 -tp 8 --enable-expert-parallel -dcp 1 -cc.cache_dir=x"
    line = read_serve_line(f"{MODEL} {options}")
    shown = {"DeepSeek-V4-Pro", "--spec-tokens 3", "--tokenizer-mode deepseek_v4", "-tp 8"}
    assert set(line.sources.values()) == shown
    assert line.not_read == ("--compilation-config.cache_dir", "--enable-expert-parallel", "-dcp")


# What keeps the verdict open, and options or whole texts, with % for the command, that do it.
OPEN = {
    "max_model_len": ["--max-model-len auto", "--max-model-len -1", "--max-model-len 8192 --max-model-len auto",
                      "\\\n  # longer \\\n  --max-model-len auto"],
    "max_model_len, words": ["\u200b--max-model-len auto"],
    "max_num_seqs": ["--max-num-seqs $N", "--max-num-seqs=$(nproc)", "--max-num-seqs {{.n}}",
                     "MORE='--max-num-seqs 4' %", "command: %\nargs: {--max-num-seqs: $N}"],
    "max_num_seqs, words": ["max-num-seqs 4"],
    "max_num_seqs, source": ["source env.sh && %; --max-num-seqs 4"],
    "max_num_batched_tokens": ["--no-enable-chunked-prefill"],
    "graph": ["-O $L", "-cc.cudagraph_mode=$MODE"],
    "num_speculative_tokens": ["--spec-method mtp", """-sc '{"method": "mtp"}'""", "-sc.num_speculative_tokens $K"],
    "speculative_method": ["--spec-tokens 2 --spec-method telepathy"],
    "consumer": ["--attention-backend FLASHINFER_MLA_SPARSE_DSV4", "-ac.backend=NEW", "--attention-backend $B"],
    "batch_invariant": ["export VLLM_BATCH_INVARIANT=$X; %", "docker run -e VLLM_BATCH_INVARIANT i %",
                        "unset VLLM_BATCH_INVARIANT; %", "singularity exec --env A=1,VLLM_BATCH_INVARIANT=1 i %",
                        "export VLLM_BATCH_INVARIANT=1; VLLM_BATCH_INVARIANT=0 ls; %",
                        "%; export VLLM_BATCH_INVARIANT=1", "Environment=VLLM_BATCH_INVARIANT=1\nExecStart=/bin/%",
                        "command: %\nenvironment: [VLLM_BATCH_INVARIANT]"],
    "release": ["pip install vllm==0.28.0; docker run vllm/vllm-openai:v0.27.1 %"],
    "--enforce-eager": ["--enforce-eager=False", "# eager\necho --enforce-eager"],
    "--enforce-eager, words": ["--enforce-eager False"],
    "words": ["--model meta-llama/Llama-3"],
    "xargs": ["xargs % < args"],
    "EnvironmentFile": ["EnvironmentFile=a\nExecStart=/bin/%"],
    "--config": ["--config serve.yaml", "--config=x"],
    "--env-file": ["docker run --env-file .env i %", "command: %\nenv_file: [.env]"],
    "--env-from": ["command: %\nenvFrom:\n- configMapRef: {name: x}"],
    "--extends": ["command: %\nextends: {file: base.yaml}"],
    "--hf-overrides": ["""--hf-overrides '{"a": 1}'"""],
    "--hf-over": ["--hf-over '{}'"],  # vLLM takes abbreviations
    "--max-model": ["--max-model 4096"],
    "--frobnicate": ["--frobnicate 3"],
    "an option": ["\u2013\u2013max-model-len 4096", "--max-model-len\u00a04096"],
    "--decode-context-parallel-size": ["-dcp 4", "--decode_context_parallel_size=2"],
    "--prefill-context-parallel-size": ["-pcp 2"],
    "--speculative-config": ["-sc $SPEC"],
    "--speculative-config.parallel_drafting": ["-sc.parallel_drafting=true -sc.num_speculative_tokens=2"],
    "--compilation-config.splitting_ops": ["""-cc '{"splitting_ops": []}'"""],
    "variable": ["$EXTRA", "-tp 8 ${ARGS[@]}", "docker run $ARGS i %", "docker run -e $X i %"],
    "VLLM_USE_V2_MODEL_RUNNER": ["export VLLM_USE_V2_MODEL_RUNNER=0; %"],
    "--max-num-seqs again": ["a: {command: --max-num-seqs 2}\nb: {command: --max-num-seqs 3}  # %"],
    "commands": ["a: {command: % --enforce-eager}\nb: {command: --max-num-seqs 3}"],
    "--model again": ["a: {command: --model x --enforce-eager}\nb: {command: --model x}  # %"],
}  # fmt: skip


@pytest.mark.parametrize(("names", "text"), [(names, text) for names, texts in OPEN.items() for text in texts], ids=str)
def test_what_matters_and_was_not_read_keeps_the_verdict_open(names, text):
    line = read_serve_line(text.replace("%", MODEL) if "%" in text else f"{MODEL} {text}")
    assert set(line.unread) == set(names.split(", "))
    assert check(**{"release": "0.34.0"} | line.values, unread=line.unread.values()).verdict == "unknown"


@pytest.mark.parametrize(
    ("words", "listed"),
    [
        ("--api-key a czNjcjN0s3cr3t==", "--api-key"),
        ("--api-keys3cr3t", "an option"),
        ("--hf-token --s3cr3t", "--hf-token"),
        ("--header 'Authorization: Bearer s3cr3t'", "--header"),
        ("""-sc '{"num_speculative_tokens": 1, "model": "https://u:s3cr3t@h/x"}'""", "num_speculative_tokens 1"),
        ("-eHF_TOKEN=s3cr3t", "HF_TOKEN"),
        ("--seed s3cr3t", "--seed"),
    ],
)
def test_secrets_never_come_back_and_names_do(words, listed):
    for text in (f"{MODEL} {words}", f"export {words} ; {MODEL}", f"docker run {words} i {MODEL}"):
        assert "s3cr3t" not in repr(read_serve_line(text))
    line = read_serve_line(f"{MODEL} {words}")
    assert listed in {*line.not_read, *line.unread, *line.sources.values()}


def bomb():
    levels = [f"a{at}: &a{at} [{', '.join([f'*a{at - 1}'] * 9) if at else 'x'}]" for at in range(9)]
    return "\n".join([*levels, "args: *a8"])


# What an error says, and options, or whole texts, that raise it: values that vLLM would refuse, and hostile pastes.
REFUSED = {
    "--max-model-len is 1.5M": ["--max-model-len 1.5M"],
    "--max-num-seqs is 1k": ["--max-num-seqs 1k"],
    "--max-num-seqs is -5": ["--max-num-seqs -5"],
    "--max-num-seqs is no number": ["--max-num-seqs hunter2secret"],
    "--max-model-len has no value": ["--max-model-len --enforce-eager"],
    "-O has another value": ["-O fast"],
    "cudagraph_mode has another value than NONE, PIECEWISE, FULL": ["-cc.cudagraph_mode=SOME"],
    "-cc has no value that is a JSON object": ["-cc 3"],
    "-sc has no value": ["-sc '{num: 3}'"],
    "num_speculative_tokens is no number": ["-sc.num_speculative_tokens many", "-sc.num_speculative_tokens true"],
    "cannot be split into words": ["--served-model-name 'x"],
    "2 serve commands": ["; vllm serve other"],
    "nested too deeply|JSON object": ["-sc '" + "[" * 20_000 + "'", "[" * 60_000, "{a: " * 15_000, "- " * 30_000],
    "1,000,000 bytes; .* 65,536": ["x" * 10**6],
    "bytes; .* 65,536": ["--api-key " + "\u00e9" * 33_000],
    "20,000 parts": [bomb()],
    "no vllm serve command": ["", " \n", "rm -rf /", "ls --color", "vllm", "vllm bench serve --model m", "-n 3",
                              "echo $HOME", "# vllm serve m", "python -m sglang.launch_server --model-path m", "[]",
                              "{}", "- a\n- b", "a: b"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("message", "text"), [(said, text) for said, texts in REFUSED.items() for text in texts], ids=lambda text: text[:30]
)
def test_what_vllm_would_refuse_or_is_no_serve_command_is_an_error_in_a_sentence(message, text):
    options = message != "no vllm serve command" and re.match("-[-a-z]|;", text, re.I)
    with pytest.raises(ValueError, match=message) as told:
        read_serve_line(f"{MODEL} {text}" if options else text)
    assert "secret" not in str(told.value) and len(str(told.value)) < 200


@pytest.mark.parametrize("part", ["token", "$(", "`", "'\"", "\\", "#", "a=", "-", "--a.", "$", "\n", "\\\n"])
def test_64_kb_of_anything_are_read_or_refused(part):
    with contextlib.suppress(ValueError):
        read_serve_line(f"{MODEL} " + part * (65_000 // len(part)))


SECRET = "q7q7Zq7q7"
SAID = [  # options, and what they set
    ("--max-model-len 128k", {"max_model_len": 128_000}),
    ("--max_model_len=4096", {"max_model_len": 4096}),
    ("--max-num-seqs 1", {"max_num_seqs": 1}),
    ("--max-num-seqs=64", {"max_num_seqs": 64}),
    ("--max-num-batched-tokens 2K", {"max_num_batched_tokens": 2048}),
    ("--block-size 256", {"block_size": 256}),
    ("--enforce-eager", {"graph": "eager"}),
    ("--spec-method mtp --spec-tokens 2", {"num_speculative_tokens": 2, "speculative_method": "mtp"}),
    ("--attention-backend FLASHMLA_SPARSE_DSV4", {"consumer": "flashmla_sm90"}),
]
SILENT = f"""-tp 8|--port 80|-dcp 1|--api-key {SECRET}|--api_key={SECRET}|--api-key {SECRET} {SECRET}==|--dtype auto|
    --hf-token={SECRET}|--served-model-name {SECRET}|--tokenizer https://u:{SECRET}@h|--tokenizer-mode deepseek_v4|
    --ssl-keyfile {SECRET}|--kv-transfer-config {{"token":"{SECRET}"}}|--enable-expert-parallel|--trust-remote-code"""
MATTERING = """--max-model-len auto|--max-num-seqs $N|--config x.yaml|--hf-overrides {"a":1}|--max-model 4096|-pcp 2|
    -dcp 4|--frobnicate 3|-cc {"splitting_ops":[]}|-sc {"parallel_drafting":true}|$EXTRA|--worker-cls x.Y|
    --max-num-seq 3|--attention-backend FLASHINFER_MLA_SPARSE_DSV4|--no-trust-remote-code=1"""
ENVIRONMENTS = [
    ({}, {}),
    ({"HF_TOKEN": SECRET}, {}),
    ({"HUGGING_FACE_HUB_TOKEN": SECRET, "VLLM_BATCH_INVARIANT": "1"}, {"batch_invariant": True}),
    ({"VLLM_BATCH_INVARIANT": "0", "api_key": SECRET}, {"batch_invariant": False}),
    ({"VLLM_BATCH_INVARIANT": "$X"}, None),
    ({"VLLM_USE_V2_MODEL_RUNNER": "0"}, None),
    ({"EXTRA_ARGS": "--max-num-seqs 3"}, None),
]


def spoiled(draw, text):
    """The text with a few of its characters left out, put in, or moved."""
    for _ in range(draw.randint(1, 4)):
        low, high = sorted(draw.choices(range(len(text) + 1), k=2))
        more = draw.choice([*"'\"\\;|{}[]-=#&()\n\x00é$ \u200b\ud800", "- ", ": ", "--", " # ", text[low:high]])
        text = text[:low] + more + text[draw.choice([low, low + 1, low + 2]) :]
    return text


def wrong_with(seed):
    """What is wrong with the answer to a random command: nothing at best."""
    draw = random.Random(seed)
    said = [*SAID, *((words.strip(), {}) for words in SILENT.split("|"))]
    said += [(words.strip(), None) for words in MATTERING.split("|")]
    chosen, (variables, set_by_them) = draw.choices(said, k=draw.randint(0, 5)), draw.choice(ENVIRONMENTS)
    form = draw.choice(list(FORMS))
    last = {re.split("[ =]", words)[0].replace("_", "-"): effect for words, effect in chosen}  # the last one wins
    effects = [set_by_them, *last.values()]
    text = written(form, [word for words, _ in chosen for word in words.split()], variables)
    noisy = draw.random() < 0.4
    text = spoiled(draw, text) if noisy else text
    try:
        line = read_serve_line(text)
        values = {**line.assumed, **line.values, "release": draw.choice(["0.27.1", "0.29.0", "0.34.0"])}
        found = check(**values, unread=[f"{name}: {why}" for name, why in line.unread.items()])
        shown = repr(line) + json.dumps(found.as_dict()) + report(found, line)
    except ValueError as refused:
        return "a secret in an error" if "q7" in str(refused) else "" if noisy else f"{refused}"
    if "q7" in shown:
        return "a secret"
    if noisy or None in effects:
        return "" if noisy or found.verdict == "unknown" else f"{found.verdict}, and not all was read"
    wanted = {"model": "V4"} | {name: value for effect in effects for name, value in effect.items()}
    wanted |= {"batch_invariant": False} if form == "again" and "batch_invariant" not in wanted else {}
    return "" if (line.values, line.unread) == (wanted, {}) else f"{line.values}, {line.unread}"


def test_random_commands_in_every_form_are_read_or_open_and_never_give_a_secret_away():
    assert {seed: wrong for seed in range(2000) if (wrong := wrong_with(seed))} == {}
