"""What the compiler makes of every variant that serving launches, read without a GPU."""

import json
import os
import subprocess
import sys
from importlib import metadata

import pytest

from c128a.bench import records
from c128a.ptx import TARGETS, warmup_variants


@pytest.fixture(scope="module")
def facts():
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    command = [sys.executable, "-m", "c128a.ptx", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return {fact["variant"]: fact for fact in json.loads(done.stdout)}


@pytest.mark.parametrize("name", warmup_variants())
def test_variant_stores_16_bytes_a_thread_spills_nothing_leaves_room_and_waits_for_the_kernel_before(facts, name):
    fact = facts[name]
    assert fact["store_bytes"] in ([16, 4], [16])  # 4: the lens, one a row
    assert fact["spilled_bytes"] == 0
    assert fact["registers"] <= 64  # full occupancy
    assert fact["waits"] == 1


def test_the_record_of_all_targets_is_of_every_variant_and_has_for_hopper_what_the_compiler_says_here(facts):
    found = records.findings("compiled")
    assert {(row["variant"], row["arch"]) for row in found} == {(name, arch) for name in facts for arch in TARGETS}
    assert all(row["spilled_bytes"] == 0 and row["store_bytes"][0] >= 8 for row in found)
    if records.provenance("compiled")["triton"] == metadata.version("triton"):
        assert [row for row in found if row["arch"] == "sm_90"] == [*facts.values()]
