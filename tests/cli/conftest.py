"""What tests of commands at terminals start from."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cli.screens import Shown


@pytest.fixture
def terminals() -> Iterator[list[Shown]]:
    """Terminals that are closed afterwards."""
    shown: list[Shown] = []
    yield shown
    for each in shown:
        each.child.close(force=True)
