"""What `check` must find, incident by incident, and what it must leave alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from c128a.deployment import BOUNDS, check
from c128a.deployment.findings import CATALOGUE, CONSUMERS, GRAPHS, SEVERITIES

OURS = {"layout": "pitched", "policy": "pow2"}
PACKED = {"layout": "packed", "policy": "pow2"}
SHORT = {"max_model_len": 33_792}  # a capacity of 384, which is no power of two
SM120, SM100 = {"consumer": "flashinfer_sm120"}, {"consumer": "flashmla_sm100"}


def of(release, **settings):
    return {"release": release, **settings}


# A severity of None: the finding is absent. The numbers and names after it stand in its reason or its setting.
FINDINGS = [
    # captured at 1,048,576 tokens: stride 8192; the narrowest step: 128 columns, so row 1 lies at element 128
    ({**PACKED, "graph": "full"}, "moving-rows", "danger", "8,192", "element 128"),
    (of("0.27.1"), "moving-rows", "danger", "0.27.1", "#50004", "#51318", "#52448", "0.28.0"),
    (of("0.27.1", max_num_seqs=1), "one-row", "warning", "element 0", "0.28.0"),
    (of("0.27.1", max_num_seqs=1, num_speculative_tokens=3), "moving-rows", "danger"),
    (of("0.27.1", graph="eager"), "packed-outside-graphs", "warning", "0.27.1", "#50004", "#51318", "#52448"),
    (of("0.27.1", graph="piecewise"), "packed-outside-graphs", "warning", "0.28.0"),
    ({**PACKED, "graph": "eager"}, "packed-outside-graphs", "info"),
    # 7680 entries and an open window of 127 tokens: 7680 × 128 + 127 = 983,167 tokens
    (of("0.30.0", capacity=7680), "capacity-too-small", "danger", "7,680", "1,048,576", "983,167", "8,192", "asserts"),
    (of("0.28.0", capacity=7680), "capacity-too-small", "danger", "512 entries"),
    ({**OURS, "capacity": 7680}, "capacity-too-small", "danger", "refuses"),
    (of("0.30.0", capacity=7680, max_model_len=983_167), "capacity-too-small", None),
    (of("0.30.0", capacity=7680, max_model_len=983_168), "capacity-too-small", "danger"),
    (of("0.29.0"), "compiles-while-serving", "info", "compiles 1 ", "3 after", "4 after", "5 after"),
    (of("0.30.0"), "compiles-while-serving", "info", "compiles 1 ", "1 after other", "1 after odd", "2 after"),
    (OURS, "compiles-while-serving", None),
    (of("0.30.0", max_model_len=65_536), "default-width", "info"),
    (of("0.30.0", max_model_len=2_097_152), "default-width", "info"),
    # 512 × 6 rows
    (of("0.30.0", num_speculative_tokens=5), "decode-prefill-split", "info", "6 tokens", "from 7 on", "3,072"),
    (of("0.30.0"), "decode-prefill-split", None),
    ({**OURS, **SM120, "max_num_seqs": 65, "graph": "eager"}, "rows-not-contiguous", "danger", "65"),
    ({**OURS, **SM120, "max_num_seqs": 64, "graph": "eager"}, "stale-columns", None),
    ({**OURS, **SM120, "max_num_seqs": 64, "graph": "full"}, "stale-columns", "danger"),
    (of("0.30.0", consumer="other"), "stale-columns", "warning"),
    (of("0.30.0", capacity=7658, max_model_len=980_224, **SM100), "width-not-64", "danger", "7,658", "7,680"),
    (of("0.30.0", capacity=7658, max_model_len=980_224), "width-not-64", "warning"),
    (of("0.30.0", capacity=8128, max_model_len=8128 * 128, **SM100), "width-not-64", None),
    # 262,144 rows × 8192 columns = 2^31 cells: the last one is still addressable
    (of("0.30.0", max_num_batched_tokens=262_144), "large-offsets", None),
    (of("0.30.0", max_num_batched_tokens=262_145), "large-offsets", "danger", "row 262,144"),
    (of("0.30.0", **SHORT, warmup_widths=[128, 256, 512]), "uncovered-widths", "warning", "up: 384.", "128, 256, 384"),
    (of("0.30.0", **SHORT, warmup_widths=[384, 256, 128]), "uncovered-widths", None),
    (of("0.30.0", batch_invariant=True), "depends-on-the-batch", "warning"),
    (of("0.28.0", batch_invariant=True), "depends-on-the-batch", None),
    (of("0.29.0", max_model_len=16_384, **SM120), "stale-columns", None),
    (of("0.27.1", model="V4.1"), "no-c128a-layers", "info", "DeepSeek-V4.1"),
    (of("0.27.1", model="other"), "no-c128a-layers", "info", "This model"),
]
INCIDENTS = {"moving-rows": 1, "capacity-too-small": 3, "compiles-while-serving": 4, "default-width": 6,
             "decode-prefill-split": 10, "stale-columns": 11, "large-offsets": 12, "uncovered-widths": 15}  # fmt: skip


def graver(found):
    return [finding.code for finding in found.findings if finding.severity != "info"]


@pytest.mark.parametrize(("settings", "code", "severity", "said"), [(*row[:3], row[3:]) for row in FINDINGS], ids=str)
def test_what_is_found_and_what_is_left_alone(settings, code, severity, said):
    answer, grave = check(**settings), severity in ("danger", "warning")
    assert (answer.verdict, graver(answer)) == ((severity, [code]) if grave else ("safe", []))  # and nothing else
    found = [finding for finding in answer.findings if finding.code == code]
    assert [finding.severity for finding in found] == [severity] * (severity is not None)
    assert code != "no-c128a-layers" or len(answer.findings) == 1  # nothing else applies to such a model
    for finding in found:
        assert finding.incident == INCIDENTS.get(code, finding.incident)
        assert all(words in finding.why + finding.setting for words in said)


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("release", ["0.26.0", "0.28.0", "0.29.0", "0.32.0", "0.33.0", "0.34.0"])
def test_the_other_releases_are_safe_with_flashmla_and_read_stale_lanes_on_sm120_up_to_0_32(release, graph):
    for consumer in ("flashmla_sm90", "flashmla_sm100"):
        found = check(release=release, consumer=consumer, graph=graph)
        assert (found.verdict, graver(found)) == ("safe", [])
    # On SM120 rows are contiguous in every release, and from 0.33 on FlashInfer gathers nothing past lens.
    severities = {finding.code: finding.severity for finding in check(release=release, graph=graph, **SM120).findings}
    expected = {"0.26.0": None, "0.28.0": None, "0.29.0": "danger", "0.32.0": "danger"}.get(release, "info")
    assert severities.get("stale-columns") == expected and "rows-not-contiguous" not in severities


def test_what_to_warm_up_follows_the_release():
    todo = {todo.what: todo.values for todo in check(70_000, max_num_seqs=8, release="0.29.0").warm_up}
    assert todo["decode rows"] == (1, 2)  # a multiple of 16 does not occur
    assert todo["block-table columns"] == (274,)  # 70,000 / 256 = 273.4
    assert {todo.what for todo in check(release="0.30.0").warm_up} == {"widths", "graphs at the capacity"}
    assert "a graph for each width" in {todo.what for todo in check(release="0.27.1").warm_up}


# Rows and bytes


def test_decode_rows_follow_the_sequences_the_speculative_tokens_and_the_batch():
    draft = {"max_num_seqs": 5, "num_speculative_tokens": 7, "speculative_method": "dspark"}
    assert check(release="0.27.1", max_num_seqs=1, num_speculative_tokens=3).setup.decode_rows == 4
    assert check(release="0.30.0", max_num_batched_tokens=2048, num_speculative_tokens=5).setup.decode_rows == 2048
    # a parallel draft counts twice up to 0.30: 5 × 15, then 5 × 8
    assert [check(release=release, **draft).setup.decode_rows for release in ("0.29.0", "0.34.0")] == [75, 40]


def test_the_recipe_of_v4_pro_on_hopper():
    found = check(200_000, 8192, 16, num_speculative_tokens=1, speculative_method="mtp", release="0.34.0")
    # ⌈200,000 / 128⌉ = 1,563 → 1,664 columns; 16 × 2 rows; 31 × 1,664 × 4 + 8,192 × 1,664 × 4 + 2 × 128 bytes
    assert (found.capacity, found.setup.decode_rows, found.setup.table_blocks) == (1664, 32, 782)
    assert found.widths == [128, 256, 512, 1024, 1664]
    assert (found.reserved_bytes, found.released_bytes) == (54_732_544, 109_117_440)


@pytest.mark.parametrize("sizes", [(33_792, 1024, 512, 0), (70_000, 64, 8, 3), (4096, 16, 100, 5), (1, 1, 1, 0)])
def test_bytes_are_those_that_the_builder_of_this_package_reserves(sizes):
    given = dict(zip(("max_num_seqs", "num_speculative_tokens"), sizes[2:], strict=True))
    builder = pytest.importorskip("c128a.metadata").C128AMetadataBuilder
    reserved = builder(*sizes[:2], layout="pitched", device="cpu", **given).reserved_bytes
    assert check(*sizes[:2], **given, **OURS).reserved_bytes == reserved


# The answer as a whole


@pytest.mark.parametrize("consumer", CONSUMERS)
@pytest.mark.parametrize("release", ["0.27.1", "0.28.0", "0.34.0"])
def test_findings_are_plain_text_said_once_the_gravest_first(consumer, release):
    found = check(release=release, consumer=consumer, num_speculative_tokens=3, capacity=200, warmup_widths=[])
    codes, severities = zip(*((said.code, said.severity) for said in found.findings), strict=True)
    assert len(set(codes)) == len(codes) and set(codes) <= set(CATALOGUE)
    assert list(severities) == sorted(severities, key=SEVERITIES.index) and set(severities) == set(SEVERITIES)
    for said in found.findings:
        texts = (said.title, said.why, said.setting, said.source)
        assert all(texts) and not {"<", "`"} & set("".join(texts))


def test_what_was_not_read_comes_before_any_verdict():
    for release, first in (("0.27.1", "moving-rows"), ("0.34.0", "compiles-while-serving")):
        found = check(release=release, unread=["--config: a file."])
        assert (found.verdict, found.findings[0].code) == ("unknown", first)
    newer = check(release="0.35.0")
    assert newer.verdict == "unknown" and "0.35" in newer.unread[0] and "0.34.0" in newer.unread[0]


SETTINGS = st.fixed_dictionaries(
    {
        "max_model_len": st.integers(1, 2_000_000),
        "max_num_batched_tokens": st.integers(1, 100_000),
        "max_num_seqs": st.integers(1, 2000),
        "num_speculative_tokens": st.integers(0, 8),
        "graph": st.sampled_from(GRAPHS),
        "policy": st.sampled_from(["fixed", "pow2", "aligned"]),
    }
)


@given(SETTINGS, st.sampled_from(["flashmla_sm90", "flashmla_sm100"]))
def test_pitched_rows_sized_from_the_length_are_never_a_danger_to_flashmla(settings, consumer):
    assert check(layout="pitched", consumer=consumer, **settings).verdict == "safe"


@given(SETTINGS, st.sampled_from(CONSUMERS))
def test_packed_rows_are_a_danger_exactly_where_a_graph_meets_a_second_row_and_a_second_width(settings, consumer):
    found = check(layout="packed", consumer=consumer, **settings)
    rows = min(settings["max_num_batched_tokens"], settings["max_num_seqs"] * (1 + settings["num_speculative_tokens"]))
    widths = settings["policy"] != "fixed" and settings["max_model_len"] > 128 * 128
    assert (found.verdict == "danger") is (settings["graph"] == "full" and rows > 1 and widths)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        *(({name: least - 1}, f"{name} is {least - 1}; .* from {least:,} to") for name, (least, _) in BOUNDS.items()),
        *(({name: "; rm"}, f"{name} is '; rm'") for name in ("graph", "consumer", "model", "speculative_method")),
        ({"max_model_len": 10 * 2**40}, "max_model_len is 10,995,116,277,760; .* 16,777,216"),
        ({"max_model_len": True}, "max_model_len"),
        ({"max_model_len": 1e6}, "max_model_len is a float"),
        ({"max_num_seqs": 10**400}, "max_num_seqs"),
        ({"block_size": 300}, "block_size is 300"),
        ({"layout": "packed"}, "the one or the other"),
        ({"release": None}, "a release, or both"),
        ({"release": None, "layout": "packed"}, "a release, or both"),
        ({"release": None, "layout": [], "policy": "pow2"}, r"layout is \[\]"),
        ({"release": None, "layout": "packed", "policy": "pow3"}, "policy is 'pow3'"),
        # capacity 384: a list may go up to 512, a power of two
        *(
            ({"max_model_len": 33_792, "warmup_widths": [128, width]}, f"warmup_widths has {width}")
            for width in (0, -128, 100, 1024, 10**9, True, 2.5)
        ),
    ],
    ids=str,
)
def test_a_bad_argument_is_named_with_its_value(arguments, message):
    with pytest.raises(ValueError, match=message):
        check(**{"release": "0.30.0", **arguments})


def test_numpy_integers_are_integers():
    found = check(pytest.importorskip("numpy").int64(33_792), release="0.30.0")
    assert found == check(33_792, release="0.30.0") and type(found.setup.max_model_len) is int
