"""What a run tells of the files that its actions change, and what it keeps of them."""

from __future__ import annotations

import asyncio
import os
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from koi_lang.errors import AgentError
from koi_lang.events import FileChanged, FileKept
from koi_lang.runtime.file_changes import path_states
from koi_lang.runtime.journal.reader import read
from koi_lang.runtime.journal.store import path_of
from koi_lang.runtime.run import Run
from koi_lang.runtime.services import Services
from koi_lang.std import files
from tests.file_changes.recorded_changes import record


def told(folder: Path) -> list[tuple[str, str, Any, Any]]:
    """What the journal says of changes: kind, file, content before and after."""
    entries = read(path_of(folder, "run")).entries
    data = [(entry.kind, entry.data) for entry in entries if entry.kind in (FileKept.type, FileChanged.type)]
    return [(kind, each["file"], _content(each["before"]), _content(each.get("after"))) for kind, each in data]


def _content(state: Any) -> Any:
    return None if state is None else state["content"]


def digest(text: str) -> str:
    """What names a content."""
    return sha256(text.encode()).hexdigest()


def test_a_change_is_told_before_and_after(tmp_path: Path) -> None:
    """Also an action that fails has an end, at which all is as it was; one that only reads tells nothing."""
    (tmp_path / "a.txt").write_text("one")

    async def work(run: Run) -> None:
        await files.read("a.txt")
        await files.write("a.txt", "two")
        with pytest.raises(AgentError):
            await files.move("a.txt", "a.txt")

    asyncio.run(record(tmp_path, work))

    one, two = digest("one"), digest("two")
    assert [
        ("file_kept", "a.txt", one, None),
        ("file_changed", "a.txt", one, two),
        ("file_kept", "a.txt", two, None),
        ("file_changed", "a.txt", two, two),
    ] == told(tmp_path)
    kept = {path.parent.name + path.name for path in tmp_path.glob(".koi/snapshots/objects/*/*")}
    assert {one, two} == kept


def test_a_run_without_a_journal_keeps_nothing(tmp_path: Path) -> None:
    """Nobody could find it again."""

    async def work() -> None:
        async with Run(Services(lambda settings: None, folder=tmp_path)):  # type: ignore[arg-type, return-value]
            await files.write("a.txt", "text")

    asyncio.run(work())

    assert ["a.txt"] == os.listdir(tmp_path)


@pytest.mark.parametrize("fault", ["full", "large", "read-only"])
def test_what_cannot_be_kept_is_said_once(tmp_path: Path, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The action is carried out all the same."""
    (tmp_path / "a.txt").write_bytes(os.urandom(1_100_000))
    said: list[str] = []
    if fault == "full":
        (tmp_path / "koi.toml").write_text("[snapshots]\nmegabytes = 1\n")
    elif fault == "large":
        monkeypatch.setattr(path_states, "MAX_BYTES", 1_000_000)

    async def work(run: Run) -> None:
        monkeypatch.setattr(run.host, "log", said.append)
        if fault == "read-only":
            (tmp_path / ".koi/snapshots").write_text("no folder")
        await files.move("a.txt", "b.txt")
        await files.move("b.txt", "a.txt")

    asyncio.run(record(tmp_path, work))

    assert 1_100_000 == (tmp_path / "a.txt").stat().st_size
    assert len(said) == len(set(said)) in (1, 2)
    assert all(line.startswith("warning: what is changed cannot be undone: ") for line in said)
