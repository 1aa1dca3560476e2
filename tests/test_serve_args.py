"""A pasted `vllm serve` line: what is read, what is listed, what is refused."""

import pytest

from c128a.deployment.serve_args import human_int, read_serve_line


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1048576", 1_048_576),
        ("1M", 1_048_576),
        ("1m", 1_000_000),
        ("128k", 128_000),
        ("128K", 131_072),
        ("25.6k", 25_600),
        ("2G", 2_147_483_648),
        (" 8192 ", 8192),
    ],
)
def test_human_readable_numbers_are_decimal_in_small_letters_and_binary_in_capitals(text, value):
    assert human_int(text) == value


@pytest.mark.parametrize("text", ["1.5M", "1.5", "M", "1Mi", "1e6", "", "$LEN"])
def test_what_vllm_would_not_take_for_a_number_is_refused(text):
    with pytest.raises(ValueError):
        human_int(text)


@pytest.mark.parametrize(
    ("options", "values"),
    [
        ("--max-model-len 1M", {"max_model_len": 1_048_576}),
        ("--max_model_len=128k", {"max_model_len": 128_000}),
        ("--max-num-batched-tokens 8K", {"max_num_batched_tokens": 8192}),
        ("--max-num-seqs 512", {"max_num_seqs": 512}),
        ("--max-num-seqs 512 --max-num-seqs 64", {"max_num_seqs": 64}),
        ("--block-size 256", {"block_size": 256}),
        ("""--speculative-config '{"num_speculative_tokens": 3}'""", {"num_speculative_tokens": 3}),
        ("""--speculative_config='{"num_speculative_tokens": 3}'""", {"num_speculative_tokens": 3}),
        ("--speculative-config.num_speculative_tokens 5", {"num_speculative_tokens": 5}),
        ("-sc.num_speculative_tokens=2", {"num_speculative_tokens": 2}),
        ("--enforce-eager", {"graph": "eager"}),
        ("--enforce-eager --no-enforce-eager", {}),
        ("""--compilation-config '{"cudagraph_mode": "FULL_DECODE_ONLY"}'""", {"graph": "full"}),
        ("--compilation-config.cudagraph_mode PIECEWISE", {"graph": "piecewise"}),
        ("-cc.cudagraph_mode=none", {"graph": "eager"}),
        ("-cc.cudagraph_mode=FULL_AND_PIECEWISE", {"graph": "full"}),
        ("-O0", {"graph": "eager"}),
        ("-O1", {"graph": "piecewise"}),
        ("-O 2", {"graph": "full"}),
        ("-O=3", {"graph": "full"}),
        ("--optimization-level 1", {"graph": "piecewise"}),
        ("-O1 -cc.cudagraph_mode=FULL", {"graph": "full"}),  # the level only sets what was not said
        ("--enforce-eager -cc.cudagraph_mode=FULL -O3", {"graph": "eager"}),
        ("", {}),
    ],
)
def test_options_that_are_read(options, values):
    assert read_serve_line(f"vllm serve deepseek-ai/DeepSeek-V4-Pro {options}").values == values


def test_key_by_key_options_replace_the_object_as_in_vllm():
    line = """vllm serve m -cc '{"cudagraph_mode": "NONE"}' -cc.cudagraph_mode=FULL"""
    assert read_serve_line(line).values == {"graph": "full"}


def test_a_line_over_several_lines_with_an_environment_and_a_comment():
    line = read_serve_line(
        """$ VLLM_BATCH_INVARIANT=1 CUDA_VISIBLE_DEVICES=0,1 vllm serve deepseek-ai/DeepSeek-V4-Flash \\
             --max-model-len 1M \\
             --max-num-seqs=64   # small batches
        """
    )
    assert line.values == {"batch_invariant": True, "max_model_len": 1_048_576, "max_num_seqs": 64}
    assert line.sources["max_num_seqs"] == "--max-num-seqs=64"
    assert line.not_read == ("CUDA_VISIBLE_DEVICES=0,1", "deepseek-ai/DeepSeek-V4-Flash")


def test_what_is_not_known_is_listed_with_its_value():
    line = read_serve_line(
        "vllm serve m --tensor-parallel-size 8 --enable-expert-parallel --kv-cache-dtype=fp8 --max-model 4096 "
        """-cc '{"cudagraph_mode": "FULL", "cudagraph_capture_sizes": [1, 2]}' --config serve.yaml"""
    )
    assert line.values == {"graph": "full"}  # --max-model is an abbreviation: not guessed
    assert line.not_read == (
        "m",
        "--tensor-parallel-size 8",
        "--enable-expert-parallel",
        "--kv-cache-dtype=fp8",
        "--max-model 4096",
        "--config serve.yaml",
        "--compilation-config cudagraph_capture_sizes",
    )


@pytest.mark.parametrize(
    ("words", "listed"),
    [
        ("--api-key sk-123", "--api-key …"),
        ("--api-key=sk-123", "--api-key=…"),
        ("--hf-token hf_123", "--hf-token …"),
        ("HF_TOKEN=hf_123", "HF_TOKEN=…"),
        ("--tokenizer-mode deepseek", "--tokenizer-mode deepseek"),
        ("--tokenizer path", "--tokenizer path"),
    ],
)
def test_secrets_are_not_repeated(words, listed):
    assert read_serve_line(f"vllm serve m {words}").not_read == ("m", listed)


@pytest.mark.parametrize("value", ["auto", "-1", "AUTO"])
def test_a_length_fitted_at_start_up_is_left_open_and_said_so(value):
    line = read_serve_line(f"vllm serve m --max-model-len {value}")
    assert "max_model_len" not in line.values
    assert "fits the length to the memory at start-up" in line.notes[0]


def test_a_draft_model_that_sets_the_speculative_tokens_is_said_so():
    line = read_serve_line("""vllm serve m -sc '{"method": "mtp"}'""")
    assert "num_speculative_tokens" not in line.values
    assert line.not_read == ("m", "--speculative-config method")
    assert "draft model" in line.notes[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--max-model-len 1.5M", "--max-model-len 1.5M: cannot be read .*no decimals"),
        ("--max-model-len $LEN", r"--max-model-len \$LEN: cannot be read"),
        ("--max-num-seqs 1k", "--max-num-seqs 1k: cannot be read"),
        ("--max-model-len", "--max-model-len has no value"),
        ("--max-model-len --enforce-eager", "--max-model-len has no value"),
        ("-O fast", "-O fast: cannot be read"),
        ("-cc.cudagraph_mode=SOME", "cudagraph_mode = SOME: must be one of NONE, PIECEWISE, FULL"),
        ("-cc 3", "-cc 3: cannot be read"),
        ("-sc '{num: 3}'", "cannot be read"),
        ("-sc.num_speculative_tokens many", "must be an integer"),
        ("--served-model-name 'x", "cannot be split into words"),
    ],
    ids=lambda value: value if value.startswith("-") else "",
)
def test_a_known_option_with_an_unreadable_value_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        read_serve_line(f"vllm serve m {options}")
