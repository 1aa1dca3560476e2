"""What `check` must find, incident by incident, and what it must leave alone."""

import dataclasses
import shlex
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from c128a.deployment import check, command
from c128a.deployment.findings import CATALOGUE, CONSUMERS, GRAPHS, SEVERITIES

MIB = 2**20
RELEASES = ["0.26.0", "0.27.1", "0.28.0", "0.29.0", "0.34.0"]
OURS = {"layout": "pitched", "policy": "pow2"}


def codes(found, *severities):
    return [finding.code for finding in found.findings if not severities or finding.severity in severities]


def finding(found, code):
    (only,) = [finding for finding in found.findings if finding.code == code]
    return only


# Incident 1: the stride


def test_packed_rows_under_full_graphs_are_a_danger():
    found = check(layout="packed", policy="pow2", graph="full")
    assert (found.verdict, finding(found, "moving-rows").incident) == ("danger", 1)
    # capture at 1,048,576 tokens: stride 8192; the narrowest step: 128 columns, so row 1 lies at element 128
    assert "8,192" in finding(found, "moving-rows").why and "element 128" in finding(found, "moving-rows").why


@pytest.mark.parametrize("graph", ["eager", "piecewise"])
def test_packed_rows_outside_graphs_are_right_and_a_warning_in_the_release(graph):
    assert check(layout="packed", policy="pow2", graph=graph).verdict == "safe"
    assert check(release="0.27.1", graph=graph).verdict == "warning"


@pytest.mark.parametrize("graph", GRAPHS)
def test_packed_0_27_1_is_named_as_the_reverted_layout(graph):
    first = check(release="0.27.1", graph=graph).findings[0]
    assert all(name in first.why for name in ("0.27.1", "#50004", "#51318", "#52448", "0.28.0"))


@pytest.mark.parametrize("settings", [{"policy": "fixed"}, {"policy": "pow2", "max_model_len": 16_384}], ids=str)
def test_packed_rows_of_one_width_do_not_move(settings):
    assert check(layout="packed", graph="full", **settings).verdict == "safe"  # 16,384 tokens: capacity 128


def test_the_only_decode_row_of_a_step_lies_at_element_0_at_any_stride():
    assert codes(check(max_num_seqs=1, release="0.27.1"), "danger") == []
    found = check(max_num_seqs=1, num_speculative_tokens=3, release="0.27.1")
    assert (found.setup.decode_rows, codes(found, "danger")) == (4, ["moving-rows"])


@pytest.mark.parametrize("release", ["0.26.0", "0.28.0", "0.29.0", "0.30.0", "0.34.0"])
@pytest.mark.parametrize("consumer", ["flashmla_sm90", "flashmla_sm100"])
@pytest.mark.parametrize("graph", GRAPHS)
def test_nothing_dangerous_in_the_other_releases_with_flashmla(release, consumer, graph):
    found = check(release=release, consumer=consumer, graph=graph)
    assert (found.verdict, codes(found, "danger", "warning")) == ("safe", [])


# Incident 3: the capacity


@pytest.mark.parametrize(
    ("choice", "outcome"),
    [({"release": "0.30.0"}, "asserts"), ({"release": "0.28.0"}, "512 entries"), (OURS, "refuses")],
    ids=["0.30.0", "0.28.0", "this package"],
)
def test_a_capacity_of_7680_is_too_small_for_1048576_tokens(choice, outcome):
    found = check(1_048_576, capacity=7680, **choice)
    assert (found.verdict, finding(found, "capacity-too-small").incident) == ("danger", 3)
    # 7680 entries and an open window of 127 tokens: 7680 × 128 + 127 = 983,167 tokens
    for number in ("7,680", "1,048,576", "983,167", "8,192", outcome):
        assert number in finding(found, "capacity-too-small").why


def test_a_capacity_of_7680_holds_983167_tokens_and_no_more():
    assert check(983_167, capacity=7680, release="0.30.0").verdict == "safe"
    assert codes(check(983_168, capacity=7680, release="0.30.0"), "danger") == ["capacity-too-small"]


# Incident 4: compilation while serving


def test_variants_and_what_to_warm_up_follow_the_release():
    assert finding(check(release="0.29.0"), "compiles-while-serving").incident == 4
    for release, counts in (("0.29.0", "1345"), ("0.30.0", "1112")):
        why = finding(check(release=release), "compiles-while-serving").why
        assert [word for word in why.split() if word in "12345"] == list(counts)
    assert "compiles-while-serving" not in codes(check(**OURS))
    todo = {todo.what: todo.values for todo in check(70_000, max_num_seqs=8, release="0.29.0").warm_up}
    assert todo["decode rows"] == (1, 2)  # a multiple of 16 does not occur
    assert todo["block-table columns"] == (274,)  # 70,000 / 256 = 273.4
    assert {todo.what for todo in check(release="0.30.0").warm_up} == {"widths", "graphs at the capacity"}


# Incident 6: the default width


@pytest.mark.parametrize(("max_model_len", "said"), [(65_536, True), (1_048_576, False), (2_097_152, True)])
def test_the_default_of_8192_is_mentioned_where_the_buffers_are_narrower_or_wider(max_model_len, said):
    assert ("default-width" in codes(check(max_model_len, release="0.30.0"), "info")) is said


# Incident 10: the split


def test_speculative_tokens_name_the_split_and_the_decode_rows():
    found = finding(check(num_speculative_tokens=5, release="0.30.0"), "decode-prefill-split")
    assert (found.severity, found.incident) == ("info", 10)
    assert all(number in found.why for number in ("6 tokens", "from 7 on", "3,072"))  # 512 × 6 rows
    assert "decode-prefill-split" not in codes(check(release="0.30.0"))
    assert check(max_num_batched_tokens=2048, num_speculative_tokens=5, release="0.30.0").setup.decode_rows == 2048


@pytest.mark.parametrize(("release", "rows"), [("0.29.0", 75), ("0.34.0", 40)])
def test_parallel_drafts_count_twice_up_to_0_30(release, rows):
    found = check(max_num_seqs=5, num_speculative_tokens=7, speculative_method="dspark", release=release)
    assert found.setup.decode_rows == rows  # 5 × 15 and 5 × 8


# Incident 11, and what the SM120 kernel asks for


@pytest.mark.parametrize("graph", GRAPHS)
def test_released_rows_on_sm120_are_contiguous_and_their_stale_lanes_are_read_up_to_0_32(graph):
    for release, severity in (("0.29.0", "danger"), ("0.32.0", "danger"), ("0.33.0", "info"), ("0.34.0", "info")):
        found = check(release=release, consumer="flashinfer_sm120", graph=graph)
        assert "rows-not-contiguous" not in codes(found)
        assert (finding(found, "stale-columns").severity, finding(found, "stale-columns").incident) == (severity, 11)


def test_rows_of_this_package_have_gaps_above_64_rows_and_stale_lanes_behind_a_graph_only():
    def dangers(rows, graph):
        return codes(check(max_num_seqs=rows, consumer="flashinfer_sm120", graph=graph, **OURS), "danger")

    assert dangers(65, "eager") == ["rows-not-contiguous"]
    assert dangers(64, "eager") == []
    assert dangers(64, "full") == ["stale-columns"]


def test_rows_without_gaps_suit_sm120():
    packed = {"layout": "packed", "policy": "pow2", "graph": "eager"}
    for settings in ({"release": "0.28.0"}, {"release": "0.29.0", "max_model_len": 16_384}, packed):
        assert check(consumer="flashinfer_sm120", **settings).verdict == "safe"


def test_an_undescribed_kernel_behind_a_graph_is_a_warning():
    found = check(release="0.30.0", consumer="other")
    assert (found.verdict, codes(found, "warning")) == ("warning", ["stale-columns"])


def test_sm100_refuses_a_width_that_64_does_not_divide_and_others_are_warned():
    found = finding(check(980_224, capacity=7658, release="0.30.0", consumer="flashmla_sm100"), "width-not-64")
    assert found.severity == "danger" and "7,658" in found.why and "7,680" in found.setting
    assert check(8128 * 128, capacity=8128, release="0.30.0", consumer="flashmla_sm100").verdict == "safe"
    assert finding(check(980_224, capacity=7658, release="0.30.0"), "width-not-64").severity == "warning"


# Incident 12: offsets


def test_rows_past_2_to_the_31_are_a_danger_for_the_released_kernel():
    # 262,144 rows × 8192 columns = 2^31 cells: the last one is still addressable
    assert check(max_num_batched_tokens=262_144, release="0.30.0").verdict == "safe"
    found = finding(check(max_num_batched_tokens=262_145, release="0.30.0"), "large-offsets")
    assert found.incident == 12 and "row 262,144" in found.why
    assert check(max_num_batched_tokens=262_145, **OURS).verdict == "safe"


# Incident 15: warm-up lists


@pytest.mark.parametrize(
    ("max_model_len", "widths"),
    [
        (33_792, [128, 256, 384]),
        (20_000, [128, 256]),
        (16_512, [128, 256]),
        (4096, [128]),
        (200_000, [128, 256, 512, 1024, 1664]),
    ],
)
def test_reachable_widths(max_model_len, widths):
    assert check(max_model_len, release="0.30.0").widths == widths


def test_a_list_of_powers_of_two_misses_384_at_33792_tokens():
    found = check(33_792, release="0.30.0", warmup_widths=[128, 256, 512])
    missed = finding(found, "uncovered-widths")
    assert (found.verdict, missed.severity, missed.incident) == ("warning", "warning", 15)
    assert "384" in missed.why and "256" not in missed.why and "128, 256, 384" in missed.setting
    assert check(33_792, release="0.30.0", warmup_widths=[384, 256, 128]).verdict == "safe"
    unlisted = finding(check(33_792, release="0.30.0"), "capacity-not-power-of-two")
    assert unlisted.severity == "info" and "384" in unlisted.why
    assert "capacity-not-power-of-two" not in codes(check(release="0.30.0"))


@pytest.mark.parametrize("width", [0, -128, 100, 1024, 10**9, True, 2.5])
def test_a_width_that_cannot_be_warmed_up_is_named(width):
    with pytest.raises(ValueError, match=f"warmup_widths has {width}"):  # capacity 384: at most 512, a power of two
        check(33_792, release="0.30.0", warmup_widths=[128, width])


# The batch, and the model


def test_results_that_must_not_depend_on_the_batch_want_a_fixed_width():
    assert codes(check(release="0.30.0", batch_invariant=True), "warning") == ["depends-on-the-batch"]
    assert codes(check(release="0.28.0", batch_invariant=True), "warning") == []


@pytest.mark.parametrize("model", ["V4.1", "other"])
def test_nothing_applies_to_a_model_without_c128a_layers(model):
    found = check(release="0.27.1", model=model)
    assert (found.verdict, codes(found)) == ("safe", ["no-c128a-layers"])


# Bytes


def test_the_released_builder_holds_512_mib_and_this_one_at_most_272():
    decode, prefill, lens, requests = check(release="0.30.0").buffers
    assert (decode.released_bytes, prefill.released_bytes) == (256 * MIB, 256 * MIB)  # 8192 × 8192 × 4 bytes each
    assert (decode.rows, decode.bytes) == (511, 16 * MIB - 32_768)  # 512 rows, the first on the last prefill row
    assert prefill.bytes == 256 * MIB
    assert (lens.bytes, lens.released_bytes) == (requests.bytes, requests.released_bytes) == (2048, 32_768)


def test_the_recipe_of_v4_pro_on_hopper():
    found = check(200_000, 8192, 16, num_speculative_tokens=1, speculative_method="mtp", release="0.34.0")
    # ⌈200,000 / 128⌉ = 1,563 → 1,664 columns; 16 × 2 rows; 31 × 1,664 × 4 + 8,192 × 1,664 × 4 + 2 × 128 bytes
    assert (found.capacity, found.setup.decode_rows, found.setup.table_blocks) == (1664, 32, 782)
    assert (found.reserved_bytes, found.released_bytes) == (54_732_544, 109_117_440)


@pytest.mark.parametrize(
    ("max_model_len", "tokens", "seqs", "spec"),
    [(33_792, 1024, 512, 0), (70_000, 64, 8, 3), (4096, 16, 100, 5), (1, 1, 1, 0)],
)
def test_bytes_are_those_that_the_builder_of_this_package_reserves(max_model_len, tokens, seqs, spec):
    builder = pytest.importorskip("c128a.metadata").C128AMetadataBuilder(
        max_model_len, tokens, layout="pitched", max_num_seqs=seqs, num_speculative_tokens=spec, device="cpu"
    )
    found = check(max_model_len, tokens, seqs, num_speculative_tokens=spec, **OURS)
    assert found.reserved_bytes == builder.reserved_bytes


# The answer as a whole


def test_dangers_come_first():
    found = check(33_792, capacity=200, release="0.27.1", warmup_widths=[], consumer="flashmla_sm100")
    severities = [finding.severity for finding in found.findings]
    assert severities == sorted(severities, key=SEVERITIES.index) and set(severities) == set(SEVERITIES)


@pytest.mark.parametrize("consumer", CONSUMERS)
@pytest.mark.parametrize("release", RELEASES)
def test_every_finding_is_plain_text_with_a_reason_and_a_setting_and_said_once(consumer, release):
    found = check(release=release, consumer=consumer, num_speculative_tokens=3, capacity=200, warmup_widths=[])
    assert len(set(codes(found))) == len(found.findings) and set(codes(found)) <= set(CATALOGUE)
    for said in found.findings:
        texts = (said.title, said.why, said.setting, said.source)
        assert all(texts) and not {"<", "`"} & set("".join(texts))


def test_what_was_not_read_comes_before_any_verdict():
    for release, first in (("0.27.1", "moving-rows"), ("0.34.0", "compiles-while-serving")):
        found = check(release=release, unread=["--config: a file."])
        assert (found.verdict, found.findings[0].code) == ("unknown", first)
    newer = check(release="0.35.0")
    assert newer.verdict == "unknown" and "0.35" in newer.unread[0] and "0.34.0" in newer.unread[0]


def test_a_command_over_several_lines_is_the_same_command():
    found = check(33_792, release="0.30.0", warmup_widths=[128, 256], batch_invariant=True, speculative_method="mtp")
    lines = command(found, width=80).split(" \\\n")
    assert len(lines) > 1 and max(len(line) for line in lines) <= 78
    assert shlex.split(" ".join(lines)) == shlex.split(command(found))


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
        ({"max_model_len": 0}, "max_model_len is 0"),
        ({"max_model_len": 10 * 2**40}, "max_model_len is 10,995,116,277,760; .* 16,777,216"),
        ({"max_model_len": True}, "max_model_len"),
        ({"max_model_len": 1e6}, "max_model_len is a float"),
        ({"max_num_batched_tokens": -1}, "max_num_batched_tokens is -1"),
        ({"max_num_seqs": 0}, "max_num_seqs is 0"),
        ({"max_num_seqs": 10**400}, "max_num_seqs"),
        ({"num_speculative_tokens": -1}, "num_speculative_tokens is -1"),
        ({"capacity": 0}, "capacity is 0"),
        ({"block_size": 64}, "block_size is 64"),
        ({"block_size": 300}, "block_size is 300"),
        ({"graph": "always"}, "graph is 'always'"),
        ({"consumer": "triton"}, "consumer is 'triton'"),
        ({"model": "V3"}, "model is 'V3'"),
        ({"speculative_method": "; rm"}, "speculative_method is '; rm'"),
        ({"layout": "packed"}, "the one or the other"),
        ({"release": None}, "a release, or both"),
        ({"release": None, "layout": "packed"}, "a release, or both"),
        ({"release": None, "layout": [], "policy": "pow2"}, r"layout is \[\]"),
        ({"release": None, "layout": "packed", "policy": "pow3"}, "policy is 'pow3'"),
    ],
    ids=str,
)
def test_a_bad_argument_is_named_with_its_value_at_once(arguments, message):
    start = time.monotonic()
    with pytest.raises(ValueError, match=message):
        check(**{"release": "0.30.0", **arguments})
    assert time.monotonic() - start < 1


def test_numpy_integers_are_integers():
    numpy = pytest.importorskip("numpy")
    assert check(numpy.int64(33_792), release="0.30.0") == check(33_792, release="0.30.0")
    assert type(dataclasses.asdict(check(numpy.int64(33_792), release="0.30.0"))["setup"]["max_model_len"]) is int
