"""What `check` must find, incident by incident, and what it must leave alone."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from c128a.deployment import check
from c128a.deployment.serving import CONSUMERS, GRAPHS

MIB = 2**20


def codes(found, *severities):
    return [finding.code for finding in found.findings if not severities or finding.severity in severities]


def finding(found, code):
    (only,) = [finding for finding in found.findings if finding.code == code]
    return only


# Incident 1: the stride


def test_packed_rows_under_full_graphs_are_a_danger():
    found = check(layout="packed", policy="pow2", graph="full")
    assert found.verdict == "danger"
    assert finding(found, "moving-rows").incident == 1
    # capture at 1,048,576 tokens: stride 8192; the narrowest step: 128 columns, so row 1 lies at element 128
    assert "8,192" in finding(found, "moving-rows").why and "element 128" in finding(found, "moving-rows").why


@pytest.mark.parametrize("graph", ["eager", "piecewise"])
def test_packed_rows_outside_graphs_are_no_danger(graph):
    assert check(layout="packed", policy="pow2", graph=graph).verdict == "safe"


def test_the_packed_release_outside_graphs_is_a_warning():
    assert check(release="0.27.1", graph="eager").verdict == "warning"


@pytest.mark.parametrize("graph", GRAPHS)
def test_packed_0_27_1_is_named_as_the_reverted_layout(graph):
    first = check(release="0.27.1", graph=graph).findings[0]
    for name in ("0.27.1", "PR #50004", "PR #51318", "#52448", "reverted in 0.28.0"):
        assert name in first.why


@pytest.mark.parametrize(
    "settings",
    [
        {"policy": "fixed"},  # one width: the stride never changes
        {"policy": "pow2", "max_model_len": 16_384},  # capacity 128: one width again
    ],
    ids=["fixed", "capacity 128"],
)
def test_packed_rows_of_one_width_do_not_move(settings):
    assert check(layout="packed", graph="full", **settings).verdict == "safe"


def test_the_only_decode_row_of_a_step_lies_at_element_0_at_any_stride():
    assert codes(check(max_num_seqs=1, layout="packed", policy="pow2"), "danger") == []
    assert codes(check(max_num_seqs=1, num_speculative_tokens=1, layout="packed", policy="pow2"), "danger") == [
        "moving-rows"
    ]


@pytest.mark.parametrize("release", ["0.26.0", "0.28.0", "0.30.0"])
@pytest.mark.parametrize("consumer", ["flashmla_sm90", "flashmla_sm100"])
@pytest.mark.parametrize("graph", GRAPHS)
def test_nothing_dangerous_in_the_other_releases_with_flashmla(release, consumer, graph):
    found = check(release=release, consumer=consumer, graph=graph)
    assert found.verdict == "safe"
    assert codes(found, "danger", "warning") == []


# Incident 3: the capacity


@pytest.mark.parametrize(
    ("choice", "outcome"),
    [
        ({"release": "0.30.0"}, "asserts"),
        ({"release": "0.28.0"}, "512 entries of such a row are dropped in silence"),
        ({"layout": "pitched", "policy": "pow2"}, "refuses such a step with an error"),
    ],
    ids=["0.30.0", "0.28.0", "this package"],
)
def test_a_capacity_of_7680_is_too_small_for_1048576_tokens(choice, outcome):
    found = check(1_048_576, capacity=7680, **choice)
    assert found.verdict == "danger"
    why = finding(found, "capacity-too-small").why
    # 7680 entries and an open window of 127 tokens: 7680 × 128 + 127 = 983,167 tokens
    for number in ("7,680", "1,048,576", "983,167", "8,192", outcome):
        assert number in why
    assert finding(found, "capacity-too-small").incident == 3


@pytest.mark.parametrize("max_model_len", [983_040, 983_167])
def test_a_capacity_of_7680_holds_the_sequences_it_was_fitted_to(max_model_len):
    assert check(max_model_len, capacity=7680, release="0.30.0").verdict == "safe"


def test_one_token_more_is_too_long():
    assert codes(check(983_168, capacity=7680, release="0.30.0"), "danger") == ["capacity-too-small"]


# Incident 4: compilation while serving


def test_the_released_kernel_is_said_to_compile_and_ours_is_not():
    assert finding(check(release="0.30.0"), "compiles-while-serving").incident == 4
    assert "compiles-while-serving" not in codes(check(layout="pitched", policy="pow2"))


def test_decode_counts_to_warm_up_cover_the_kinds_that_triton_tells_apart():
    todo = {todo.what: todo.values for todo in check(release="0.30.0").warm_up}
    assert todo["decode rows"] == (1, 2, 16)
    assert todo["block-table columns"] == (4096,)  # 1,048,576 / 256
    few = {todo.what: todo.values for todo in check(70_000, max_num_seqs=8, release="0.30.0").warm_up}
    assert few["decode rows"] == (1, 2)
    assert few["block-table columns"] == (274,)  # 70,000 / 256 = 273.4


# Incident 6: the default width


@pytest.mark.parametrize(("max_model_len", "said"), [(65_536, True), (1_048_576, False), (2_097_152, True)])
def test_the_default_of_8192_is_mentioned_where_the_buffers_are_narrower_or_wider(max_model_len, said):
    assert ("default-width" in codes(check(max_model_len, release="0.30.0"), "info")) is said


# Incident 10: the split


def test_speculative_tokens_name_the_split_and_the_decode_rows():
    found = finding(check(num_speculative_tokens=5, release="0.30.0"), "decode-prefill-split")
    assert (found.severity, found.incident) == ("info", 10)
    # k = 5: 6 is decode, 7 is prefill; 512 × 6 = 3,072 rows
    assert "6 tokens or fewer" in found.why and "prefill from 7 on" in found.why and "3,072" in found.why
    assert "decode-prefill-split" not in codes(check(release="0.30.0"))


def test_decode_rows_are_bounded_by_the_batch_tokens():
    assert check(max_num_batched_tokens=2048, num_speculative_tokens=5, release="0.30.0").setup.decode_rows == 2048


# Incident 11: pads over the whole view


def test_sm120_reads_stale_columns_behind_a_graph_even_with_few_rows():
    found = check(max_num_seqs=64, release="0.30.0", consumer="flashinfer_sm120", graph="full")
    assert codes(found, "danger") == ["stale-columns"]
    assert finding(found, "stale-columns").incident == 11


@pytest.mark.parametrize("graph", ["eager", "piecewise"])
def test_outside_a_graph_sm120_sees_the_width_of_the_step_and_its_pads(graph):
    found = check(max_num_seqs=64, release="0.30.0", consumer="flashinfer_sm120", graph=graph)
    assert codes(found, "danger", "warning") == []


def test_an_undescribed_kernel_behind_a_graph_is_a_warning():
    found = check(release="0.30.0", consumer="other")
    assert found.verdict == "warning"
    assert codes(found, "warning") == ["stale-columns"]


# What kernels ask for


@pytest.mark.parametrize("graph", GRAPHS)
def test_sm120_with_non_contiguous_rows_above_64_tokens_is_a_danger(graph):
    found = check(max_num_seqs=65, release="0.30.0", consumer="flashinfer_sm120", graph=graph)
    assert "rows-not-contiguous" in codes(found, "danger")
    assert "rows-not-contiguous" not in codes(
        check(max_num_seqs=64, release="0.30.0", consumer="flashinfer_sm120", graph=graph)
    )


@pytest.mark.parametrize(
    "settings",
    [
        {"release": "0.28.0"},  # fixed width: rows fill the stride
        {"release": "0.30.0", "max_model_len": 16_384},  # one width, the capacity of 128
        {"layout": "packed", "policy": "pow2", "graph": "eager"},  # packed rows have no gaps
    ],
    ids=["fixed", "capacity 128", "packed, eager"],
)
def test_contiguous_rows_suit_sm120(settings):
    assert check(consumer="flashinfer_sm120", **settings).verdict == "safe"


def test_sm100_refuses_a_width_that_64_does_not_divide():
    found = check(980_224, capacity=7658, release="0.30.0", consumer="flashmla_sm100")
    assert finding(found, "width-not-64").severity == "danger"
    assert "7,658" in finding(found, "width-not-64").why and "7,680" in finding(found, "width-not-64").setting


def test_sm100_takes_a_width_that_64_divides():
    assert check(8128 * 128, capacity=8128, release="0.30.0", consumer="flashmla_sm100").verdict == "safe"


def test_an_odd_width_is_a_warning_elsewhere():
    assert finding(check(980_224, capacity=7658, release="0.30.0"), "width-not-64").severity == "warning"


# Incident 12: offsets


def test_rows_past_2_to_the_31_are_a_danger_for_the_released_kernel():
    # 262,144 rows × 8192 columns = 2^31 cells: the last one is still addressable
    assert check(max_num_batched_tokens=262_144, release="0.30.0").verdict == "safe"
    found = check(max_num_batched_tokens=262_145, release="0.30.0")
    assert finding(found, "large-offsets").incident == 12
    assert "row 262,144" in finding(found, "large-offsets").why
    assert check(max_num_batched_tokens=262_145, layout="pitched", policy="pow2").verdict == "safe"


# Incident 15: warm-up lists


@pytest.mark.parametrize(
    ("max_model_len", "widths"),
    [(33_792, [128, 256, 384]), (20_000, [128, 256]), (16_512, [128, 256]), (4096, [128])],
)
def test_reachable_widths(max_model_len, widths):
    assert check(max_model_len, release="0.30.0").widths == widths


def test_a_list_of_powers_of_two_misses_384_at_33792_tokens():
    found = check(33_792, release="0.30.0", warmup_widths=[128, 256, 512])
    missed = finding(found, "uncovered-widths")
    assert (found.verdict, missed.severity, missed.incident) == ("warning", "warning", 15)
    assert "not warmed up: 384." in missed.why and "powers of two misses it" in missed.why
    assert missed.setting == "Warm up 128, 256, 384."


def test_a_complete_warm_up_list_is_not_mentioned():
    assert check(33_792, release="0.30.0", warmup_widths=[384, 256, 128]).verdict == "safe"
    assert "uncovered-widths" not in codes(check(33_792, release="0.30.0", warmup_widths=[128, 256, 384]))


def test_without_a_list_384_is_pointed_out():
    found = finding(check(33_792, release="0.30.0"), "capacity-not-power-of-two")
    assert found.severity == "info" and "384" in found.why
    assert "capacity-not-power-of-two" not in codes(check(release="0.30.0"))


# The batch


def test_results_that_must_not_depend_on_the_batch_want_a_fixed_width():
    assert codes(check(release="0.30.0", batch_invariant=True), "warning") == ["depends-on-the-batch"]
    assert codes(check(release="0.28.0", batch_invariant=True)) == ["compiles-while-serving"]


# Bytes


def test_the_released_builder_holds_512_mib_and_this_one_at_most_272():
    decode, prefill, lens, requests = check(release="0.30.0").buffers
    assert (decode.released_bytes, prefill.released_bytes) == (256 * MIB, 256 * MIB)  # 8192 × 8192 × 4 bytes each
    assert (decode.rows, decode.bytes) == (511, 16 * MIB - 32_768)  # 512 rows, the first on the last prefill row
    assert prefill.bytes == 256 * MIB
    assert (lens.bytes, lens.released_bytes) == (requests.bytes, requests.released_bytes) == (2048, 32_768)
    assert check(release="0.30.0").reserved_bytes <= 272 * MIB
    assert check(release="0.30.0").released_bytes == 512 * MIB + 65_536


@pytest.mark.parametrize(
    ("max_model_len", "tokens", "seqs", "spec"),
    [(33_792, 1024, 512, 0), (70_000, 64, 8, 3), (4096, 16, 100, 5), (1, 1, 1, 0)],
)
def test_bytes_are_those_that_the_builder_of_this_package_reserves(max_model_len, tokens, seqs, spec):
    builder = pytest.importorskip("c128a.metadata").C128AMetadataBuilder(
        max_model_len, tokens, layout="pitched", max_num_seqs=seqs, num_speculative_tokens=spec, device="cpu"
    )
    settings = {"num_speculative_tokens": spec, "layout": "pitched", "policy": "pow2"}
    assert check(max_model_len, tokens, seqs, **settings).reserved_bytes == builder.reserved_bytes


# The answer as a whole


def test_dangers_come_first():
    found = check(33_792, capacity=200, release="0.27.1", warmup_widths=[], consumer="flashmla_sm100")
    severities = [finding.severity for finding in found.findings]
    assert severities == sorted(severities, key=["danger", "warning", "info"].index)
    assert set(severities) == {"danger", "warning", "info"}


@pytest.mark.parametrize("consumer", CONSUMERS)
@pytest.mark.parametrize("release", ["0.26.0", "0.27.1", "0.28.0", "0.30.0"])
def test_every_finding_names_a_reason_and_a_setting_once(consumer, release):
    found = check(release=release, consumer=consumer, num_speculative_tokens=3)
    assert len(set(codes(found))) == len(found.findings)
    assert all(
        finding.title and finding.why.endswith(".") and finding.setting.endswith(".") for finding in found.findings
    )


def test_the_answer_is_plain_json():
    found = check(release="0.27.1")
    answer = json.loads(json.dumps(found.as_dict()))
    assert answer["verdict"] == "danger"
    assert answer["setup"]["release"]["name"] == "0.27.1"
    assert answer["findings"][0]["code"] == "moving-rows"
    assert answer["widths"] == [128, 256, 512, 1024, 2048, 4096, 8192]


# Laws


@st.composite
def settings_of_a_deployment(draw):
    return {
        "max_model_len": draw(st.integers(1, 2_000_000)),
        "max_num_batched_tokens": draw(st.integers(1, 100_000)),
        "max_num_seqs": draw(st.integers(1, 2000)),
        "num_speculative_tokens": draw(st.integers(0, 8)),
        "graph": draw(st.sampled_from(GRAPHS)),
        "policy": draw(st.sampled_from(["fixed", "pow2", "aligned"])),
    }


@given(settings_of_a_deployment(), st.sampled_from(["flashmla_sm90", "flashmla_sm100"]))
def test_pitched_rows_sized_from_the_length_are_never_a_danger_to_flashmla(settings, consumer):
    assert check(layout="pitched", consumer=consumer, **settings).verdict == "safe"


@given(settings_of_a_deployment(), st.sampled_from(CONSUMERS))
def test_packed_rows_are_a_danger_exactly_where_a_graph_meets_a_second_row_and_a_second_width(settings, consumer):
    found = check(layout="packed", consumer=consumer, **settings)
    rows = min(settings["max_num_batched_tokens"], settings["max_num_seqs"] * (1 + settings["num_speculative_tokens"]))
    widths = settings["policy"] != "fixed" and settings["max_model_len"] > 128 * 128
    assert (found.verdict == "danger") is (settings["graph"] == "full" and rows > 1 and widths)


# Bad arguments


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"release": "0.30.0", "max_model_len": 0}, "max_model_len is 0"),
        ({"release": "0.30.0", "max_num_batched_tokens": -1}, "max_num_batched_tokens is -1"),
        ({"release": "0.30.0", "max_num_seqs": 0}, "max_num_seqs is 0"),
        ({"release": "0.30.0", "num_speculative_tokens": -1}, "num_speculative_tokens is -1"),
        ({"release": "0.30.0", "capacity": 0}, "capacity is 0"),
        ({"release": "0.30.0", "block_size": 64}, "block_size is 64"),
        ({"release": "0.30.0", "block_size": 300}, "block_size is 300"),
        ({"release": "0.30.0", "graph": "always"}, "graph is 'always'"),
        ({"release": "0.30.0", "consumer": "triton"}, "consumer is 'triton'"),
        ({"release": "0.29.0"}, "release is '0.29.0'"),
        ({}, "a release, or both a layout and a policy"),
        ({"layout": "packed"}, "a release, or both"),
        ({"release": "0.30.0", "layout": "packed"}, "the one or the other"),
        ({"layout": "rows", "policy": "pow2"}, "layout is 'rows'"),
        ({"layout": "packed", "policy": "pow3"}, "policy is 'pow3'"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_bad_argument_is_named_with_its_value(arguments, message):
    with pytest.raises(ValueError, match=message):
        check(**arguments)
