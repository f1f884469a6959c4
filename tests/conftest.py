"""Options of the test-suite."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--accept` writes what golden tests see as what they expect."""
    parser.addoption("--accept", action="store_true", help="rewrite golden files; read the difference afterwards")


@pytest.fixture
def accept(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be rewritten."""
    return bool(request.config.getoption("--accept"))
