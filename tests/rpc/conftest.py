"""What tests of sessions start from."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.playbook.conftest import play
from tests.playbook.playing import Player
from tests.rpc.talking import Talker

__all__ = ["play"]


@pytest.fixture
def talk(play: Player, tmp_path: Path) -> Talker:
    """Talks to sessions; their journals are in a temporary folder."""
    return Talker(play, tmp_path)
