"""Shared by all tests: what needs a GPU is skipped, with the reason, where there is none."""

import pytest
from hypothesis import Phase, settings

from tests.support.site import site  # noqa: F401 (a fixture)

settings.register_profile("untimed", deadline=None)  # no test depends on how long something takes
settings.register_profile("first failure", deadline=None, phases=[Phase.explicit, Phase.generate])  # not the smallest
settings.load_profile("untimed")


def pytest_collection_modifyitems(items):
    if not any(item.get_closest_marker("gpu") for item in items):
        return
    from c128a import backend

    if backend.HAS_GPU and not backend.INTERPRET:
        return
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason="needs an NVIDIA GPU; its H200 outcome is recorded in data/"))
