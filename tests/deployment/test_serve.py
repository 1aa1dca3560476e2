"""A pasted serve command: what is read, what is listed, what keeps the verdict open, what is refused."""

import contextlib
import random
import time

import pytest

from c128a.deployment import check, read_serve_line
from c128a.deployment.serve import human_int

MODEL = "vllm serve deepseek-ai/DeepSeek-V4-Pro"


def test_human_readable_numbers_are_decimal_in_small_letters_and_binary_in_capitals():
    assert [human_int(text) for text in (" 8192 ", "1M", "128K", "2G")] == [2**13, 2**20, 2**17, 2**31]
    assert [human_int(text) for text in ("1m", "128k", "25.6k")] == [1_000_000, 128_000, 25_600]


@pytest.mark.parametrize("text", ["1.5M", "1.5", "M", "1Mi", "1e6", "", "$LEN", "9" * 5000, "1" * 400 + ".5k", "٣"])
def test_what_vllm_would_not_take_for_a_number_is_refused(text):
    with pytest.raises(ValueError):
        human_int(text)


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("--max-model-len 1M", {"max_model_len": 1_048_576}),
        ("--max_model_len=128k", {"max_model_len": 128_000}),
        ("--max-num-batched-tokens 8K", {"max_num_batched_tokens": 8192}),
        ("--max-num-seqs 512 --max-num-seqs 64", {"max_num_seqs": 64}),
        ("--max-model-len $X --max-model-len 4096", {"max_model_len": 4096}),
        ("--block-size 256", {"block_size": 256}),
        ("""--speculative-config '{"num_speculative_tokens": 3}'""", {"num_speculative_tokens": 3}),
        ("""--speculative_config='{"num_speculative_tokens": 3}'""", {"num_speculative_tokens": 3}),
        ("--speculative-config.num_speculative_tokens 5", {"num_speculative_tokens": 5}),
        ("-sc.num_speculative_tokens=2", {"num_speculative_tokens": 2}),
        ("--spec-method mtp --spec-tokens 3", {"num_speculative_tokens": 3, "speculative_method": "mtp"}),
        ("--enforce-eager", {"graph": "eager"}),
        ("--enforce-eager --no-enforce-eager", {}),
        ("""--compilation-config '{"cudagraph_mode": "FULL_DECODE_ONLY"}'""", {"graph": "full"}),
        ("--compilation-config.cudagraph_mode PIECEWISE", {"graph": "piecewise"}),
        ("-cc.cudagraph_mode=none", {"graph": "eager"}),
        ("""-cc '{"cudagraph_mode": "NONE"}' -cc.cudagraph_mode=FULL""", {"graph": "full"}),  # the keys replace it
        ("-O0", {"graph": "eager"}),
        ("-O 2", {"graph": "full"}),
        ("-O=3", {"graph": "full"}),
        ("--optimization-level 1", {"graph": "piecewise"}),
        ("-O1 -cc.cudagraph_mode=FULL", {"graph": "full"}),  # the level only sets what was not said
        ("--enforce-eager -cc.cudagraph_mode=FULL -O3", {"graph": "eager"}),
        ("--attention-backend FLASHMLA_SPARSE_DSV4", {"consumer": "flashmla_sm90"}),
        ("--decode-context-parallel-size 1 -pcp 1", {}),
        ("", {}),
        # a hash inside a word starts no comment; the tag of an image is the release
        ("vllm serve m#1 -tp ${#GPUS[@]} --max-model-len 4096 # --max-model-len 1M", {"max_model_len": 4096}),
        ("docker run vllm/vllm-openai:v0.27.1 --max-num-seqs 2", {"release": "0.27.1", "max_num_seqs": 2}),
        ("vllm serve /models/deepseek_v4", {"model": "V4"}),
        ("vllm serve x/DeepSeek-V4-1M", {"model": "V4"}),
        ("vllm serve deepseek-ai/DeepSeek-V4.1-Flash", {"model": "V4.1"}),
        ("vllm serve meta-llama/Llama-3-8B", {"model": "other"}),
        ("vllm serve /mnt/qwen-team/prod", {}),  # the name says nothing, wherever the folder is
        ("vllm serve $MODEL", {}),
    ],
)
def test_settings_that_are_read(line, values):
    options = line[:1] in ("", "-")
    found = read_serve_line(f"{MODEL} {line}" if options else line)
    assert (found.values, found.unread) == ({"model": "V4", **values} if options else values, {})


FORMS = {
    "shell": "$ VLLM_BATCH_INVARIANT=1 {serve} \\\n   --max-model-len 1M \\  \n --max-num-seqs=64   # don't\n",
    "export": "export VLLM_BATCH_INVARIANT=1; cd /x && {serve} --max-model-len 1M --max-num-seqs 64 > log 2>&1 &",
    "later": "export VLLM_BATCH_INVARIANT=0\nVLLM_BATCH_INVARIANT=1 {serve} --max-model-len 1M --max-num-seqs 64",
    "bash": 'docker exec c bash -lc "VLLM_BATCH_INVARIANT=1 exec {serve} --max-model-len 1M --max-num-seqs 64"',
    "module": "VLLM_BATCH_INVARIANT=1 python3 -m vllm.entrypoints.openai.api_server --model {model} --max-model-len 1M "
    "--max-num-seqs 64",
    "docker": "docker run --gpus all -e VLLM_BATCH_INVARIANT=1 -p 80:80 vllm/vllm-openai:latest --model {model} "
    "--max-model-len 1M --max-num-seqs 64",
    "docker env": "docker run --env=VLLM_BATCH_INVARIANT=1 image {serve} --max-model-len 1M --max-num-seqs 64",
    "json": '["env", "VLLM_BATCH_INVARIANT=1", "vllm", "serve", "{model}", "--max-model-len=1M", "--max-num-seqs",\n'
    '"64"]',
    "yaml list": '- "--model={model}"\n- --max-model-len\n- 1M\n- --max-num-seqs=64\n- VLLM_BATCH_INVARIANT=1\n',
    "manifest": "spec:\n  containers:\n  - name: vllm\n    command: [vllm, serve]\n    args: [{model},\n"
    "      --max-model-len, 1M, --max-num-seqs, '64']\n    env:\n    - name: VLLM_BATCH_INVARIANT\n      value: '1'\n",
    "script": "spec:\n  args:\n  - |\n    {serve} \\\n      --max-model-len 1M --max-num-seqs 64\n  command: [sh, -c]\n"
    "  env: [{{name: VLLM_BATCH_INVARIANT, value: '1'}}]\n",
    "compose": "services:\n  vllm:\n    environment:\n      VLLM_BATCH_INVARIANT: 1\n    command: >\n      --model\n"
    "      {model} --max-model-len 1M --max-num-seqs 64\n",
    "config": "model: {model}\nmax-model-len: 1M\nmaxNumSeqs: 64\nenv: {{VLLM_BATCH_INVARIANT: '1'}}\n",
}


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS.keys())
def test_a_command_is_read_in_every_form_people_write_it(text):
    line = read_serve_line(text.format(serve="vllm serve deepseek-ai/DeepSeek-V4-Flash", model="DeepSeek-V4-Flash"))
    assert line.values == {"model": "V4", "max_model_len": 1_048_576, "max_num_seqs": 64, "batch_invariant": True}
    assert line.unread == {}


def test_what_the_line_does_not_say_is_assumed_as_vllm_does_and_noted():
    line = read_serve_line(MODEL)
    assert line.assumed == {"max_num_seqs": 1024} and any("256" in note for note in line.notes)
    assert read_serve_line(f"{MODEL} --max-num-seqs 8").assumed == {}


def test_harmless_words_are_shown_whole_the_last_of_repeated_ones_alone_and_other_options_by_name():
    options = (
        "--spec-tokens 3 --tokenizer-mode deepseek_v4 -tp 4 -tp 8 --enable-expert-parallel -dcp 1 -cc.cache_dir=x y"
    )
    line = read_serve_line(f"{MODEL} {options}")
    shown = {"DeepSeek-V4-Pro", "--spec-tokens 3", "--tokenizer-mode deepseek_v4", "-tp 8"}
    assert set(line.sources.values()) == shown
    assert line.not_read[:-1] == ("--compilation-config.cache_dir", "--enable-expert-parallel", "-dcp")
    assert line.not_read[-1].endswith("no option: 1")


OPEN = {
    "max_model_len": ["--max-model-len auto", "--max-model-len -1", "--max-model-len 8192 --max-model-len auto"],
    "max_num_seqs": ["--max-num-seqs $N", "--max-num-seqs=$(nproc)", "--max-num-seqs {{.Values.n}}"],
    "graph": ["-O $L", "-cc.cudagraph_mode=$MODE"],
    "num_speculative_tokens": ["--spec-method mtp", """-sc '{"method": "mtp"}'""", "-sc.num_speculative_tokens $K"],
    "speculative_method": ["--spec-tokens 2 --spec-method telepathy"],
    "consumer": ["--attention-backend FLASHINFER_MLA_SPARSE_DSV4", "-ac.backend=NEW", "--attention-backend $B"],
    "batch_invariant": ["; export VLLM_BATCH_INVARIANT=$X"],
    "--config": ["--config serve.yaml", "--config=x"],
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
    "variable": ["$EXTRA", "-tp 8 ${ARGS[@]}"],
    "VLLM_USE_V2_MODEL_RUNNER": ["; export VLLM_USE_V2_MODEL_RUNNER=0"],
}


@pytest.mark.parametrize(
    ("name", "options"), [(name, options) for name, forms in OPEN.items() for options in forms], ids=str
)
def test_what_matters_and_was_not_read_keeps_the_verdict_open(name, options):
    before, separator, after = options.partition("; ")
    line = read_serve_line(f"{after}{separator}{MODEL} {before}")
    assert set(line.unread) == {name} and name not in line.values
    assert check(release="0.34.0", **line.values, unread=line.unread.values()).verdict == "unknown"


def test_what_stands_outside_of_the_command_or_in_two_commands_of_a_document_is_open():
    assert set(read_serve_line(f"docker run --env-file .env i {MODEL}").unread) == {"--env-file"}
    assert set(read_serve_line(f"source env.sh && {MODEL}; --max-num-seqs 4").unread) == {"source", "--max-num-seqs"}
    twice = "services:\n  a:\n    command: --max-num-seqs 2\n  b:\n    command: --max-num-seqs 3\n"
    assert set(read_serve_line(twice).unread) == {"--max-num-seqs again"}


@pytest.mark.parametrize(
    ("words", "listed"),
    [
        ("--api-key s3cr3t", "--api-key"),
        ("--api-key=s3cr3t", "--api-key"),
        ("--api-key a s3cr3t", "--api-key"),
        ("--hf-token s3cr3t", "--hf-token"),
        ("--header 'Authorization: Bearer s3cr3t'", "--header"),
        ("""--kv-transfer-config '{"token": "s3cr3t"}'""", "--kv-transfer-config"),
        ("""-sc '{"num_speculative_tokens": 1, "model": "https://u:s3cr3t@h/x"}'""", "num_speculative_tokens = 1"),
        ("--otlp-traces-endpoint https://user:s3cr3t@host", "--otlp-traces-endpoint"),
        ("--env=HF_TOKEN=s3cr3t", "HF_TOKEN"),
        ("--env HF_TOKEN=s3cr3t", "HF_TOKEN"),
        ("-e HUGGING_FACE_HUB_TOKEN=s3cr3t", "HUGGING_FACE_HUB_TOKEN"),
        ("-eHF_TOKEN=s3cr3t", "HF_TOKEN"),
        ("--tokenizer https://u:s3cr3t@h", "--tokenizer"),
        ("--served-model-name s3cr3t", "--served-model-name"),
    ],
)
@pytest.mark.parametrize("place", ["{serve} {words}", "export {words} ; {serve}", "docker run {words} i {serve}"])
def test_secrets_never_come_back_and_names_do(words, listed, place):
    line = read_serve_line(place.format(words=words, serve=MODEL))
    assert "s3cr3t" not in repr(line)
    if place.startswith("{serve}"):
        assert listed in {*line.not_read, *line.unread, *line.sources.values()}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--max-model-len 1.5M", "--max-model-len is 1.5M"),
        ("--max-num-seqs 1k", "--max-num-seqs is 1k"),
        ("--max-num-seqs hunter2secret", "--max-num-seqs is no number"),
        ("--max-model-len", "--max-model-len has no value"),
        ("--max-model-len --enforce-eager", "--max-model-len has no value"),
        ("-O fast", "-O has another value"),
        ("-cc.cudagraph_mode=SOME", "cudagraph_mode has another value than NONE, PIECEWISE, FULL"),
        ("-cc 3", "-cc has no value that is a JSON object"),
        ("-sc '{num: 3}'", "-sc has no value"),
        ("-sc.num_speculative_tokens many", "num_speculative_tokens is no number"),
        ("-sc.num_speculative_tokens true", "num_speculative_tokens is no number"),
        ("--served-model-name 'x", "cannot be split into words"),
        ("; vllm serve other", "2 serve commands"),
        ("-sc '" + "[" * 20_000 + "'", "nested too deeply|JSON object"),
    ],
    ids=lambda text: text[:30],
)
def test_a_value_that_vllm_would_refuse_is_an_error_that_names_the_option(options, message):
    with pytest.raises(ValueError, match=message) as told:
        read_serve_line(f"{MODEL} {options}")
    assert "secret" not in str(told.value) and len(str(told.value)) < 200


@pytest.mark.parametrize(
    "text",
    ["", " \n", "rm -rf /", "ls --color", "vllm", "vllm bench serve --model m", "-n 3", "echo $HOME", "# vllm serve m",
     "python -m sglang.launch_server --model-path m", "[]", "{}", "- a\n- b", "a: b"],
)  # fmt: skip
def test_what_is_no_serve_command_is_refused(text):
    with pytest.raises(ValueError, match="no vllm serve command"):
        read_serve_line(text)


def bomb():
    levels = [f"a{at}: &a{at} [{', '.join([f'*a{at - 1}'] * 9) if at else 'x'}]" for at in range(9)]
    return "\n".join([*levels, "args: *a8"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x" * 10**6, "1,000,000 bytes; .* 65,536"),
        (f"{MODEL} --api-key " + "\u00e9" * 33_000, "bytes; .* 65,536"),
        ("[" * 60_000, "nested"),
        ("{a: " * 15_000, "nested"),
        ("- " * 30_000, "nested"),
        (bomb(), "parts"),
    ],
    ids=["word", "key", "list", "mapping", "dashes", "aliases"],
)
def test_a_hostile_paste_is_refused_at_once(text, message):
    start = time.monotonic()
    with pytest.raises(ValueError, match=message) as told:
        read_serve_line(text)
    assert time.monotonic() - start < 5 and len(str(told.value)) < 200


@pytest.mark.parametrize("part", ["token", "$(", "`", "'\"", "\\", "#", "a=", "-", "--a.", "$"])
def test_64_kb_of_anything_take_no_longer_than_a_second_or_two(part):
    start = time.monotonic()
    with contextlib.suppress(ValueError):
        read_serve_line(f"{MODEL} " + part * (65_000 // len(part)))
    assert time.monotonic() - start < 5


SAFE_WORDS = ["-tp 8", "--port 80", "--api-key s3cr3t-1", "--hf-token=s3cr3t-2", "-e HF_TOKEN=s3cr3t-3", "A=s3cr3t",
              "--served-model-name 'a s3cr3t'", "--max-num-seqs 64", "--max-model-len 128k", "--enable-expert-parallel",
              "--trust-remote-code", "--spec-method mtp --spec-tokens 2", "-O3", "--api-key a s3cr3t-4", "# x\n",
              "--env=A=s3cr3t", "--tokenizer https://u:s3cr3t@h", "--tokenizer-mode deepseek_v4"]  # fmt: skip
NOISE = [*"'\"\\;|{}[]-=#&()\n\x00é", "- ", ": ", "--", "\ud800"]
SHELLS = ["{}", 'bash -c "{}"', "nohup {} &", "docker run -e HF_TOKEN=s3cr3t i {}", "args:\n- |\n  {}\n", "$ {}"]


@pytest.mark.parametrize("seed", range(300))
def test_random_lines_give_no_traceback_no_secret_and_no_safety_for_what_was_not_read(seed):
    draw = random.Random(seed)
    words = draw.choices(SAFE_WORDS, k=draw.randint(0, 6))
    open_word = draw.choice([options for forms in OPEN.values() for options in forms if ";" not in options])
    matters, noisy = draw.random() < 0.5, draw.random() < 0.3
    if matters:  # at the end, and not settled by another option
        words = [word for word in words if "spec" not in word]
    words += draw.choices(NOISE, k=3) * noisy + [open_word] * matters
    text = draw.choice(SHELLS).replace("{}", f"{MODEL} {' '.join(words)}")
    try:
        line = read_serve_line(text)
        found = check(release="0.34.0", **line.values, unread=line.unread.values())
    except ValueError as error:
        assert "s3cr3t" not in str(error)
        return
    assert "s3cr3t" not in repr(line) + repr(found.as_dict())
    if matters and not noisy and "# x\n" not in words:
        assert found.verdict == "unknown", text
