"""What the compiler makes of every variant that serving launches, read without a GPU."""

import json
import os
import subprocess
import sys

import pytest

from c128a.ptx import warmup_variants


@pytest.fixture(scope="module")
def facts():
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, "-m", "c128a.ptx", "--json"], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    return {fact["variant"]: fact for fact in json.loads(done.stdout)}


@pytest.mark.parametrize("name", warmup_variants())
def test_variant_stores_16_bytes_a_thread_and_spills_nothing(facts, name):
    fact = facts[name]
    assert fact["store_bytes"][0] == 16
    assert set(fact["store_bytes"]) <= {16, 4}  # 4: the lens, one a row
    assert fact["spilled_bytes"] == 0


@pytest.mark.parametrize("name", warmup_variants())
def test_variant_leaves_room_for_full_occupancy_of_64_registers(facts, name):
    assert facts[name]["registers"] <= 64
