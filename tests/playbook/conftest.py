"""What tests of playbooks start from."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from koi_lang.program import loader
from tests.playbook.playing import Player


@pytest.fixture(scope="session")
def play(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Player]:
    """Plays programs; compiled ones are kept away from those of the person who runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KOI_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "cache"))
        yield Player(tmp_path_factory.mktemp("programs"))
    loader.unload()
