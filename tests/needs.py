"""Programs of others that tests need beside Python: `@pytest.mark.needs("node", "npm")`.

Such a test is a `counterpart`, unless it is `thorough`: the usual suite leaves it out, so that it comes to the same on
every machine, and `-m counterpart` runs it where the programs are, and says which are missing where they are not.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator

import pytest

# Where servers stand, which is not on the PATH of ordinary users.
SYSTEM_FOLDERS = "/usr/sbin:/sbin"
# Fixtures that make their tests counterparts, too, and the programs that they start.
FIXTURES = {"installed": (), "node": ("node",)}


def find_program(name: str) -> str | None:
    """The path of a program of this machine."""
    return shutil.which(name) or shutil.which(name, path=SYSTEM_FOLDERS)


def mark_counterparts(items: Iterable[pytest.Item]) -> None:
    """Mark the tests that need something of others, and are not thorough; skip those that miss something here."""
    for item in items:
        needs = list(_needs_of(item))
        if needs and item.get_closest_marker("thorough") is None:
            item.add_marker(pytest.mark.counterpart)
        missing = [name for programs in needs for name in programs if find_program(name) is None]
        if missing:
            item.add_marker(pytest.mark.skip(reason=f"MISSING ON THIS MACHINE: {', '.join(missing)}"))


def _needs_of(item: pytest.Item) -> Iterator[tuple[str, ...]]:
    for mark in item.iter_markers("needs"):
        yield mark.args
    for name in FIXTURES.keys() & set(getattr(item, "fixturenames", ())):
        yield FIXTURES[name]
