"""A plugin of pytest: each `test` block of a `*.test.koi` file is an item.

Every run of pytest loads it where Koi is installed, so nothing else of Koi is imported before there is such a file.
"""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of `pytest.ini` for tests in Koi."""
    parser.addini("koi_timeout", "Most seconds of a test in Koi.", default="60")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """A file with tests in Koi; None for any other one."""
    if not file_path.name.endswith(".test.koi"):
        return None
    # Not at the top, nor as a lazy module there: pytest looks at all attributes of a plugin.
    from koi_lang.testing.pytest_items import KoiFile

    return KoiFile.from_parent(parent, path=file_path)
