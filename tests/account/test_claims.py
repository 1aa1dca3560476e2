"""Every verdict follows from its facts: the facts as they are, by hand, and with other facts another verdict."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from c128a.account.claims import CLAIMS, LEVELS, SUBJECTS, find, frozen_rows, markdown, tally
from c128a.account.step import Run, Span, times_of

ROOT = Path(__file__).resolve().parents[2]

LEVEL = {
    "holds": "needs_256 why_128 shapes bounds long",
    "holds in part": "loop_32 proportional empty_and_odd constant test_covers addresses semantics throughput "
    "first_token regression",
    "does not hold": "where",
}
EXPECTED = {key: level for level, keys in LEVEL.items() for key in keys.split()}

OTHER_FACTS = [
    ("needs_256", {"needed": 257}, "does not hold"),
    ("needs_256", {"built": 512}, "does not hold"),
    ("loop_32", {"trips": 32}, "holds"),
    ("loop_32", {"columns": 16}, "does not hold"),
    ("proportional", {"off": 0}, "holds"),
    ("proportional", {"off": 6}, "does not hold"),
    ("empty_and_odd", {"too_narrow": 0}, "holds"),
    ("empty_and_odd", {"narrowest": 0}, "does not hold"),
    ("constant", {"forks_without": 0}, "does not hold"),
    ("constant", {"defined": None}, "holds"),
    ("why_128", {"multiples": 10}, "does not hold"),
    ("why_128", {"reads_past": 3}, "does not hold"),
    ("shapes", {"right": 8}, "does not hold"),
    ("bounds", {"changed_outside": 1}, "does not hold"),
    ("bounds", {"unwritten_inside": 1}, "does not hold"),
    ("bounds", {"refused": 1}, "holds in part"),
    ("test_covers", {"moved": 128}, "holds"),
    ("addresses", {"addresses": 2}, "does not hold"),
    ("addresses", {"packed": 0}, "holds"),
    ("addresses", {"pitched": 1}, "does not hold"),
    ("semantics", {"different": 1}, "does not hold"),
    ("semantics", {"frozen_wrong": 0}, "holds"),
    ("where", {"decode_us": 3000.0}, "holds"),
    ("throughput", {"low": 0.011}, "does not hold"),
    ("throughput", {"high": 0.009}, "does not hold"),
    ("throughput", {"low": 0.0095, "high": 0.0105}, "holds"),
    ("throughput", {"saved_us": 0.0}, "does not hold"),
    ("first_token", {"high": 0.004}, "does not hold"),
    ("first_token", {"low": 0.0095, "high": 0.0105}, "holds"),
    ("long", {"change": 0.15}, "does not hold"),
    ("regression", {"worst": 1.3}, "does not hold"),
    ("regression", {"variants": 1}, "holds"),
]

CLAIM = {claim.key: claim for claim in CLAIMS}


def gathered(key, source="elsewhere", **changed):
    return find(CLAIM[key], replace(Run(), **changed), times_of(source))


@pytest.mark.parametrize(("key", "level"), EXPECTED.items(), ids=EXPECTED.keys())
def test_the_verdict_on_the_facts_as_they_are(key, level):
    found = gathered(key)
    assert found.level == level, found.because
    assert any(letter.isdigit() for letter in found.because)
    assert len(pd.DataFrame(found.facts.get("rows", [found.facts]))) > 0


@pytest.mark.parametrize(
    ("key", "changed", "level"), OTHER_FACTS, ids=[f"{key}-{'-'.join(changed)}" for key, changed, _ in OTHER_FACTS]
)
def test_other_facts_lead_to_another_verdict(key, changed, level):
    found = gathered(key)
    assert set(changed) <= set(found.facts), "the fact is not one that was gathered"
    facts = {**found.facts, **changed}
    assert found.claim.level(facts) == level
    assert (level, found.claim.sentence.format(**facts)) != (found.level, found.because)


def test_every_claim_has_a_verdict_that_can_turn():
    assert len(CLAIMS) == len(CLAIM) == 16 and set(CLAIM) == set(EXPECTED) == {key for key, _, _ in OTHER_FACTS}
    assert [claim for claims in SUBJECTS.values() for claim in claims] == list(CLAIMS)


@pytest.mark.parametrize("key", CLAIM)
def test_every_claim_names_tests_that_exist(key):
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    assert f"def test_{key.removeprefix('test_')}_" in tests and CLAIM[key].kept_by.endswith(key)


@pytest.mark.parametrize("source", ["recorded", "elsewhere"])
def test_both_sources_answer_every_claim_about_cost(source):
    assert all(gathered(claim.key, source).facts for claim in SUBJECTS["What it saves"])


def test_the_markdown_has_a_row_a_claim_with_its_verdict():
    findings = [gathered(key) for key in EXPECTED]
    rows = [line for line in markdown(findings).splitlines() if line.startswith("| ")][2:]
    assert len(rows) == len(CLAIMS) and all(row.count(" | ") == 3 for row in rows)
    assert tally(findings) == {"holds": 5, "holds in part": 10, "does not hold": 1}
    assert set(tally(findings)) < set(LEVELS)


def test_without_torch_claims_that_need_the_kernel_say_so_and_the_rest_are_judged():
    code = (
        "import sys; sys.modules['torch'] = sys.modules['triton'] = None\n"
        "from c128a.account.claims import CLAIMS, find\n"
        "from c128a.account.step import Run, times_of\n"
        "for claim in CLAIMS: print(claim.key, find(claim, Run(), times_of('elsewhere')).level, sep=': ')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    levels = dict(line.split(": ") for line in done.stdout.splitlines())
    assert {key for key, level in levels.items() if level == LEVELS[-1]} == {"shapes", "bounds", "semantics"}
    assert all(levels[key] in (level, LEVELS[-1]) for key, level in EXPECTED.items())


def test_needs_256_there_are_as_many_entries_as_columns():
    assert gathered("needs_256").facts["rows"]["columns"] == [8192, 256, 256]


def test_loop_32_columns_trips_and_time_shrink_by_three_different_factors():
    rows = pd.DataFrame(gathered("loop_32").facts["rows"])
    assert rows[["before", "after"]].values.tolist() == [[8192, 256], [8, 1], [62.3, 6.5]]


def test_proportional_three_of_seven_widths_take_one_trip_though_they_are_narrower_than_a_trip():
    trips = {row["width"]: row["trips"] for row in gathered("proportional").facts["rows"]}
    assert trips == {128: 1, 256: 1, 512: 1, 1024: 1, 2048: 2, 4096: 4, 8192: 8}


def test_empty_and_odd_the_cap_is_silent_where_the_capacity_is_too_small():
    rows = gathered("empty_and_odd").facts["rows"]
    lost = rows[rows["lost"] > 0]
    assert lost[(lost["capacity"] == 7680) & (lost["max_seq_len"] == 1_048_576)]["lost"].tolist() == [512]
    assert 8192 not in set(lost["capacity"])


def test_why_128_powers_of_two_alone_would_be_read_past_their_end():
    # Lengths of 1 to 64 entries get a row of at most 64 columns, and a reader of 128 at a time takes 128.
    assert gathered("why_128").facts["reads_past_without"] == 64


def test_constant_it_is_the_one_the_policy_uses():
    assert gathered("constant").facts["defined"] == 128


def test_covers_no_cell_of_the_pull_requests_test_depends_on_the_stride():
    facts = gathered("test_covers").facts
    assert (facts["cells"], facts["moved"]) == (128, 0)
    untested = facts["rows"][~facts["rows"]["tested"]]
    assert untested["start"].tolist() == [128, 256]  # row 1, packed and pitched: it would have moved


@pytest.mark.parametrize(
    ("layout", "length", "found"),
    [
        ("packed", 1_048_576, [0, 1, 2, 3]),  # nothing moved: the width of the capture
        ("packed", 300_000, [0, 2, None, None]),  # offset 8,192 is row 2 of rows 4,096 apart
        ("packed", 200_000, [0, None, None, None]),  # row 4 would lie there, and there is none
        ("packed", 32_768, [0, None, None, None]),
        ("pitched", 32_768, [0, 1, 2, 3]),
    ],
)
def test_addresses_what_a_reader_with_the_stride_of_its_capture_finds(layout, length, found):
    assert frozen_rows(length, layout) == found


def test_where_nearly_all_of_the_saving_is_in_the_prefill_combine():
    saved = [(row.step, row.kernel, row.saved_us) for row in gathered("where").facts["rows"].itertuples()]
    assert saved == [
        ("decode", "builder", pytest.approx(6.5 - 2.4)),
        ("decode", "attention", pytest.approx(31 * (57.07 - 57.03))),
        ("prefill", "builder", pytest.approx(62.3 - 6.5)),
        ("prefill", "combine", pytest.approx(31 * (90.6 - 13.2))),
    ]


def test_throughput_a_step_of_223_ms_gains_one_percent():
    facts = gathered("throughput").facts
    assert facts["step_ms"] == pytest.approx(0.9 * 245.52 * 1.01)  # ÷ 0.01 of 2,455.2 µs in 90 % of the time
    assert facts["from_combine"] == pytest.approx(2399.4 / 2455.2)


def test_first_token_gains_what_its_prefill_step_saves():
    facts = gathered("first_token").facts
    assert (facts["value"], facts["step_ms"]) == pytest.approx((2455.2 / 250_880, 245.52))
    measured = gathered("first_token", measured_step_us=500_000.0).facts
    assert measured["low"] == measured["high"] == pytest.approx(2455.2 / 500_000)


@pytest.mark.parametrize(
    ("changed", "level"),
    [
        ({"max_seq_len": 8192}, "cannot be judged here"),  # measured from 32,768 on
        ({"max_seq_len": 1_048_576}, "does not hold"),
        ({"pflops": Span(0.2, 0.4, 0.8)}, "does not hold"),
        ({"measured_step_us": 1000.0}, "cannot be judged here"),  # shorter than what it saves
    ],
    ids=["unmeasured", "full width", "slow server", "short step"],
)
def test_throughput_follows_the_run(changed, level):
    assert gathered("throughput", **changed).level == level


def test_long_contexts_keep_their_times_and_start_at_half_of_the_range():
    facts = gathered("long").facts
    assert facts["full_from"] == 524_416
    assert facts["rows"]["us"].tolist() == [62.1, 61.9, 210.6, 210.6]


def test_regression_the_worst_measured_cell_is_1024_decode_rows_at_a_million_tokens():
    rows = gathered("regression").facts["rows"]
    worst = rows.loc[rows["ratio"].idxmax()]
    assert (len(rows), worst["decode"], worst["max_seq_len"]) == (14, 1024, 1_048_576)
    assert worst["ratio"] == pytest.approx(19.09 / 19.0)
