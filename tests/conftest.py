"""Shared by all tests: what needs a GPU is skipped, with the reason, where there is none."""

import pytest
from hypothesis import Phase, settings

from tests.support.site import site  # noqa: F401 (a fixture)

# No test depends on how long something takes; interpreted kernels are slow, so scripts/random_builds.py tries more.
settings.register_profile("few", deadline=None, max_examples=40)
settings.register_profile("first failure", settings.get_profile("few"), phases=[Phase.explicit, Phase.generate])
settings.load_profile("few")


def pytest_collection_modifyitems(items):
    if not any(item.get_closest_marker("gpu") for item in items):
        return
    from c128a import backend

    if backend.HAS_GPU and not backend.INTERPRET:
        return
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason="needs an NVIDIA GPU; its H200 outcome is recorded in data/"))
