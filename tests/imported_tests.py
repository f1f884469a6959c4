"""Imports all tests as pytest does, so that processes which are forked afterwards only have to make their cases."""

from __future__ import annotations

import io
from contextlib import redirect_stdout

import pytest
from hypothesis import is_hypothesis_test


class ImportsOnly:
    """A plugin that has pytest import files without making cases of what they define.

    Where there are tests of Hypothesis, that reads the constants of all modules.
    """

    @pytest.hookimpl(tryfirst=True)
    def pytest_pycollect_makeitem(self, obj: object) -> list[pytest.Item] | None:
        """No case, except of a test of Hypothesis."""
        return None if is_hypothesis_test(obj) else []


with redirect_stdout(io.StringIO()):
    pytest.main(["--collect-only", "-n", "0", "-p", "no:cacheprovider"], plugins=[ImportsOnly()])
