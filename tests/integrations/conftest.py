"""Shared by the tests of the stand-in."""

from tests.integrations.fake import fake  # noqa: F401 (a fixture)
