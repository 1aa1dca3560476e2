"""Every verdict follows from its facts: with other facts it is another verdict."""

import subprocess
import sys
from pathlib import Path

import pytest

from c128a.claims import CLAIMS, LEVELS, SUBJECTS, Setting, markdown, review, tally
from c128a.records import load_all
from c128a.times import groups

ROOT = Path(__file__).resolve().parents[2]

EXPECTED = {
    "needs_256": "holds",
    "loop_32": "holds if",
    "proportional": "holds if",
    "empty_and_odd": "holds if",
    "constant": "holds if",
    "why_128": "holds",
    "shapes": "holds",
    "bounds": "holds",
    "test_covers": "holds if",
    "addresses": "holds if",
    "semantics": "holds if",
    "where": "does not hold",
    "throughput": "holds if",
    "first_token": "holds if",
    "long": "holds",
    "regression": "holds if",
}

OTHER_FACTS = [
    ("needs_256", {"needed": 257}, "does not hold"),
    ("needs_256", {"built": 512}, "does not hold"),
    ("loop_32", {"trips": (32, 1)}, "holds"),
    ("loop_32", {"columns": (8192, 512)}, "does not hold"),
    ("proportional", {"trips": {128: 1, 256: 2, 512: 4}}, "holds"),
    ("proportional", {"trips": {128: 1, 256: 1, 8192: 1}}, "does not hold"),
    ("empty_and_odd", {"too_narrow": []}, "holds"),
    ("empty_and_odd", {"narrowest": 0}, "does not hold"),
    ("constant", {"forks_without": ()}, "does not hold"),
    ("constant", {"defined": None}, "holds"),
    ("why_128", {"not_128": 1}, "does not hold"),
    ("why_128", {"reads_past": 3}, "does not hold"),
    ("shapes", {"got": {"decode stride": (256, 1)}}, "does not hold"),
    ("bounds", {"changed_outside": 1}, "does not hold"),
    ("bounds", {"refused": 1}, "holds if"),
    ("test_covers", {"moved": 128, "cells": 256, "rows": 2}, "holds"),
    ("addresses", {"addresses": 2}, "does not hold"),
    ("addresses", {"right": {"packed": {128: [True] * 4}, "pitched": {128: [True] * 4}}}, "holds"),
    ("addresses", {"right": {"packed": {128: [False] * 4}, "pitched": {128: [False] * 4}}}, "does not hold"),
    ("semantics", {"different": 1}, "does not hold"),
    ("semantics", {"frozen_wrong": 0}, "holds"),
    ("where", {"saved_us": {"decode step: builder": 9.0, "prefill step: combine": 1.0}}, "holds"),
    ("throughput", {"low": 0.011}, "does not hold"),
    ("throughput", {"high": 0.009}, "does not hold"),
    ("throughput", {"low": 0.0095, "high": 0.0105}, "holds"),
    ("throughput", {"saved_us": 0.0}, "does not hold"),
    ("first_token", {"high": 0.004}, "does not hold"),
    ("first_token", {"low": 0.0095, "high": 0.0105}, "holds"),
    ("long", {"us": {"combine": (210.6, 180.0)}}, "does not hold"),
    ("regression", {"ratios": {(0, 1, 2): 1.3}}, "does not hold"),
    ("regression", {"variants": 1}, "holds"),
]


@pytest.fixture(scope="module")
def findings():
    return {finding.claim.key: finding for finding in review(Setting.default("elsewhere"))}


@pytest.mark.parametrize(("key", "level"), EXPECTED.items(), ids=EXPECTED.keys())
def test_the_verdict_on_the_facts_as_they_are(findings, key, level):
    assert findings[key].verdict.level == level, findings[key].verdict.text


@pytest.mark.parametrize(
    ("key", "changed", "level"), OTHER_FACTS, ids=[f"{key}-{'-'.join(changed)}" for key, changed, _ in OTHER_FACTS]
)
def test_other_facts_lead_to_another_verdict(findings, key, changed, level):
    finding = findings[key]
    assert set(changed) <= set(finding.facts), "the fact is not one that was gathered"
    verdict = finding.claim.judge({**finding.facts, **changed})
    assert verdict.level == level, verdict.text
    assert verdict != finding.verdict


def test_every_claim_has_a_verdict_that_can_turn():
    assert {claim.key for claim in CLAIMS} == set(EXPECTED) == {key for key, _, _ in OTHER_FACTS}


def test_every_reason_carries_a_number(findings):
    assert all(any(c.isdigit() for c in finding.verdict.because) for finding in findings.values())


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.key)
def test_every_claim_names_a_test_that_exists(claim):
    assert f"\ndef {claim.test_name}(" in (ROOT / claim.test_file).read_text()


def test_every_claim_has_a_subject_and_keys_are_unique():
    assert len({claim.key for claim in CLAIMS}) == len(CLAIMS)
    assert {claim.subject for claim in CLAIMS} == set(SUBJECTS)


def test_the_markdown_has_a_row_a_claim_and_counts_the_verdicts(findings):
    text = markdown(list(findings.values()))
    assert "16 claims checked: 5 hold, 10 hold under a condition, 1 does not hold." in text
    rows = [line for line in text.splitlines() if line.startswith("| ")][2:]
    assert len(rows) == len(CLAIMS)
    assert all(row.count(" | ") == 2 for row in rows)
    assert sum(tally(findings.values()).values()) == len(CLAIMS)


def test_without_torch_claims_that_need_the_kernel_say_so_and_the_rest_are_judged():
    code = (
        "import sys; sys.modules['torch'] = sys.modules['triton'] = None\n"
        "from c128a.claims import Setting, review\n"
        "for finding in review(Setting.default('elsewhere')):\n"
        "    print(finding.claim.key, finding.verdict.level, sep=': ')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    levels = dict(line.split(": ") for line in done.stdout.splitlines())
    unchecked = {key for key, level in levels.items() if level == "not checked"}
    assert unchecked == {"shapes", "bounds", "semantics"}
    assert all(levels[key] == level for key, level in EXPECTED.items() if key not in unchecked)


def test_the_levels_are_told_apart_in_words():
    assert LEVELS == ("holds", "holds if", "does not hold", "not checked")


@pytest.mark.parametrize("group", groups(load_all()))
def test_every_group_of_records_answers_every_claim_about_cost(group):
    findings = review(Setting.default(group), [claim for claim in CLAIMS if claim.subject == "costs"])
    assert [finding.claim.key for finding in findings if finding.verdict.level == "not checked"] == []
    throughput = next(finding for finding in findings if finding.claim.key == "throughput")
    assert throughput.facts["low"] <= 0.010 <= throughput.facts["high"]  # the reported gain, within the stated range
    assert throughput.facts["parts"]["combine"] > 10 * throughput.facts["parts"]["builder"]
