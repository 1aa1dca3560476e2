"""Bad arguments as one table for each function: the error, the words of its message, and what is wrong."""

import pytest


def refused(table):
    """Parametrise a test by {error: {words: call}}; the words are a pattern, and name the case."""
    rows = [(error, words, call) for error, calls in table.items() for words, call in calls.items()]
    return pytest.mark.parametrize(("error", "words", "call"), rows, ids=[words for _, words, _ in rows])
