"""What commands change is found by comparing the project, and undone like what actions change."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path
from random import Random

import pytest

from koi_lang.runtime.file_changes import tree_watch
from koi_lang.runtime.run import Run
from koi_lang.std import files
from tests.file_changes.recorded_changes import Files, entries_of, record, tree, undo

NAMES = ("a.txt", ".hidden", "sub/b.txt", "sub/deep/c.txt", "d", "e")
SEEDS = 60


def change(folder: Path, chance: Random) -> None:
    """Do something that a command may do."""
    path = folder / chance.choice(NAMES)
    what = chance.randrange(6)
    if what == 0 and path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif what in (0, 1):
        path.unlink() if path.is_symlink() or path.is_file() else None
    elif not path.is_dir():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        if what == 2:
            path.symlink_to(chance.choice(("a.txt", "nowhere", "sub")))
        elif what == 3:
            path.mkdir()
        else:
            path.write_bytes(chance.randbytes(chance.choice((0, 7, 3000))))
            path.chmod(chance.choice((0o600, 0o644, 0o755)))
    elif path.is_dir() and not path.is_symlink():
        path.chmod(chance.choice((0o700, 0o755)))


@pytest.mark.sampled(7)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_commands_are_undone_to_any_entry(tmp_path: Path, seed: int) -> None:
    """Whatever they make of files, links and folders, also beside actions that change the same files."""
    chance = Random(seed)
    for _ in range(4):
        change(tmp_path, chance)
    before, moments = tree(tmp_path), list[tuple[int, Files]]()

    async def work(run: Run) -> None:
        for _ in range(chance.randrange(1, 5)):
            async with run.changes.watch(10.0):
                for _ in range(chance.randrange(4)):
                    change(tmp_path, chance)
                    if chance.random() < 0.3 and not (tmp_path / "own").is_dir():
                        await files.write("own", str(chance.random()))
                    if chance.random() < 0.3:
                        (tmp_path / "own").write_text("of the command")
            moments.append((entries_of(tmp_path), tree(tmp_path)))

    asyncio.run(record(tmp_path, work))

    for entry, expected in [*reversed(moments), (0, before)]:
        done, refused = undo(tmp_path, entry)
        assert ([], []) == (refused, [each.refusal for each in done if each.refusal])
        assert expected == tree(tmp_path)


def test_what_is_ignored_or_secret_is_not_kept(tmp_path: Path) -> None:
    """Such files are neither read nor put back."""
    (tmp_path / ".gitignore").write_text("build/\n")
    (tmp_path / "build").mkdir()
    for name in ("build/out", ".env", "kept"):
        (tmp_path / name).write_text("before, and secret")

    async def work(run: Run) -> None:
        async with run.changes.watch(10.0):
            for name in ("build/out", ".env", "kept"):
                (tmp_path / name).write_text("after")

    asyncio.run(record(tmp_path, work))
    done, refused = undo(tmp_path)

    assert (["kept"], []) == ([each.undo.file for each in done], refused)
    assert ["after", "after"] == [(tmp_path / name).read_text() for name in ("build/out", ".env")]


def test_a_project_that_is_too_large_is_said_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands are carried out all the same, and what actions change is kept."""
    monkeypatch.setattr(tree_watch, "MAX_FILES", 3)
    for number in range(5):
        (tmp_path / f"{number}.txt").write_text("before")
    said: list[str] = []

    async def work(run: Run) -> None:
        monkeypatch.setattr(run.host, "log", said.append)
        for _ in range(3):
            async with run.changes.watch(10.0):
                (tmp_path / "1.txt").write_text("after")
        await files.write("2.txt", "after")

    asyncio.run(record(tmp_path, work))
    done, _ = undo(tmp_path)

    assert ["2.txt"] == [each.undo.file for each in done]
    why = "there are more than 3 files and folders in the project, so that what commands change is not kept"
    assert [f"warning: what is changed cannot be undone: {why}"] == said


def test_lists_of_ended_commands_go(tmp_path: Path) -> None:
    """A run of many commands holds the list of the last one, and what it needs to be undone."""
    (tmp_path / "a.txt").write_text("before")

    async def work(run: Run) -> None:
        for number in range(10):
            async with run.changes.watch(10.0):
                (tmp_path / "a.txt").write_text(str(number))

    asyncio.run(record(tmp_path, work))

    assert 2 == len(os.listdir(tmp_path / ".koi/snapshots/runs/run"))
    assert ([], "before") == (undo(tmp_path)[1], (tmp_path / "a.txt").read_text())
