"""Programs of many kinds end well when they are cut anywhere and resumed, and do nothing twice."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.journal.cutting import CODE, check_everywhere, recorders
from tests.playbook.playing import Player


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", [*CODE, "playbook"])
def test_a_run_is_cut_anywhere(play: Player, tmp_path: Path, name: str) -> None:
    """Behind every entry, and somewhere in what was resumed: effects took place once, and output stays as it was."""
    log = tmp_path / "log"

    assert check_everywhere(recorders(play, log)[name], log) > 10


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["races", "timers", "playbook"])
def test_a_run_is_cut_anywhere_under_uvloop(
    play: Player, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The same in the event loop of servers, where that is installed."""
    uvloop = pytest.importorskip("uvloop")
    monkeypatch.setattr(asyncio.events, "new_event_loop", uvloop.new_event_loop)
    log = tmp_path / "log"

    assert check_everywhere(recorders(play, log)[name], log) > 10
