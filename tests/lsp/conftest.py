"""One server for the tests of a module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lsp.editor import Editor


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    """An editor whose server is up; documents of one test stay open in the next one."""
    started = Editor(Path(tmp_path_factory.mktemp("workspace")))
    started.start()
    yield started
    assert [] == started.logged
    assert 0 == started.stop()
