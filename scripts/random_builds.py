"""Random builds, steps and combines compared with the reference: `python -m scripts.random_builds --builds 300`.

Runs the random tests of the kernels on more batches than the tests do. A batch holds any fault that a batch can have;
cells outside of a result must stay as they were. The kernels are compiled where there is a GPU, and interpreted
elsewhere. It ends with the smallest batch that differs.
"""

from __future__ import annotations

import argparse

from hypothesis import seed, settings

from c128a import backend
from tests import test_combine, test_metadata

TESTS = {
    "builds": test_metadata.test_random_builds_equal_the_reference_and_touch_nothing_else,
    "steps": test_metadata.test_the_steps_of_a_builder_equal_the_reference,
    "combines": test_combine.test_one_launch_of_a_step_equals_the_released_rows_of_all_its_chunks,
}


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Compare random builds, steps and combines with the reference.")
    for name in TESTS:
        parser.add_argument(f"--{name}", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0, help="of the random batches")
    options = parser.parse_args()
    for name, test in TESTS.items():
        if count := getattr(options, name):
            settings(max_examples=count, deadline=None, database=None)(seed(options.seed)(test))()
            print(f"{count} {name} equal the reference ({backend.describe()})", flush=True)


if __name__ == "__main__":
    main()
