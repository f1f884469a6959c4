"""What commands change is found by comparing the project, and undone like what actions change."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import time
from pathlib import Path
from random import Random

import pytest

from koi_lang.cli.ui.undo_report import changes_text, plan_lines
from koi_lang.events import LinePrinted
from koi_lang.runtime.file_changes import tree_watch
from koi_lang.runtime.file_changes.run_changes import changes_beside
from koi_lang.runtime.file_changes.run_undo import RunUndo
from koi_lang.runtime.journal import reader
from koi_lang.runtime.journal.entries import JournalEntry, entry_in
from koi_lang.runtime.journal.reader import read
from koi_lang.runtime.journal.store import path_of
from koi_lang.runtime.run import Run
from koi_lang.settings import read_settings
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


def test_files_of_several_names_come_back(tmp_path: Path) -> None:
    """A hard link is changed or removed by a command like any file, and is a file of its own behind the undo."""
    outside, project = tmp_path / "outside", tmp_path / "project"
    project.mkdir()
    outside.write_text("outside")
    (project / "a").write_text("one")
    os.link(project / "a", project / "b")
    os.link(outside, project / "c")
    before = tree(project)

    async def work(run: Run) -> None:
        async with run.changes.watch(10.0):
            (project / "a").write_text("two")
            (project / "c").unlink()
            os.link(outside, project / "d")

    asyncio.run(record(project, work))
    done, refused = undo(project)

    assert (["a", "b", "c", "d"], []) == (sorted(each.undo.file for each in done), refused)
    assert (before, "outside") == (tree(project), outside.read_text())


@pytest.mark.skipif(sys.platform == "darwin", reason="names are UTF-8 there")
def test_names_that_are_no_utf8_come_back(tmp_path: Path) -> None:
    """Files, links and folders of old archives, with names in Latin-1 or with a backslash, are undone like others."""
    folder, file = tmp_path / os.fsdecode(b"caf\xe9"), os.fsdecode(b"\xe9t\xe9.txt")
    folder.mkdir()
    (folder / file).write_text("before")
    (tmp_path / "link").symlink_to(folder.name)
    (tmp_path / "a\\b").write_text("before")
    before = tree(tmp_path)

    async def work(run: Run) -> None:
        async with run.changes.watch(10.0):
            shutil.rmtree(folder)
            (tmp_path / "link").unlink()
            (tmp_path / "a\\b").write_text("after")
            (tmp_path / file).write_text("new")

    asyncio.run(record(tmp_path, work))
    done, refused = undo(tmp_path)

    assert (5, []) == (len(done), refused)
    assert before == tree(tmp_path)


def test_a_removed_file_that_could_not_be_kept_is_named(tmp_path: Path) -> None:
    """A large file is not stored before a command; where the command removes it, the undo says that it is gone."""
    (tmp_path / "large").write_bytes(bytes(5_000_001))
    (tmp_path / "still").write_bytes(bytes(5_000_001))

    async def work(run: Run) -> None:
        async with run.changes.watch(10.0):
            (tmp_path / "large").unlink()

    asyncio.run(record(tmp_path, work))

    assert ([], ["large: what was there could not be kept"]) == undo(tmp_path)


def test_rules_that_a_command_makes_are_undone(tmp_path: Path) -> None:
    """A new `.gitignore` is removed, though it names itself; that of a new folder, such as a cache, hides it."""
    (tmp_path / "a").write_text("before")
    (tmp_path / "sub").mkdir()
    before = tree(tmp_path)

    async def work(run: Run) -> None:
        async with run.changes.watch(10.0):
            (tmp_path / "cache").mkdir()
            for folder in ("", "sub/", "cache/"):
                (tmp_path / f"{folder}.gitignore").write_text("*")
            (tmp_path / "a").write_text("after")

    asyncio.run(record(tmp_path, work))
    done, refused = undo(tmp_path)

    assert ([".gitignore", "a", "sub/.gitignore"], []) == (sorted(each.undo.file for each in done), refused)
    assert {*before, "cache", "cache/.gitignore"} == {*tree(tmp_path)}


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


@pytest.mark.parametrize("other_ends", ["first", "last"])
def test_what_either_of_two_runs_may_have_made_stays(tmp_path: Path, other_ends: str) -> None:
    """While commands of two runs overlap, nobody knows whose a new file is; what is made behind that is known."""
    has_begun, may_end = asyncio.Event(), asyncio.Event()

    async def work_of_other(run: Run) -> None:
        async with run.changes.watch(10.0):
            has_begun.set()
            (tmp_path / "theirs").write_text("theirs")
            if other_ends == "last":
                await may_end.wait()

    async def work(run: Run) -> None:
        async with run.changes.watch(10.0):
            beside = asyncio.create_task(record(tmp_path, work_of_other, "other"))
            await has_begun.wait()
            if other_ends == "first":
                await beside
            (tmp_path / "mine").write_text("mine")
        may_end.set()
        await beside

    asyncio.run(record(tmp_path, work))
    done, refused = undo(tmp_path)

    why = "a command of the run `other` was under way, too, and may have made the change"
    unclear = ["theirs"] if other_ends == "first" else ["mine", "theirs"]
    assert [f"{each}: {why}" for each in unclear] == sorted(refused)
    assert unclear == [*tree(tmp_path)]
    assert unclear != ["theirs"] or ["mine"] == [each.undo.file for each in done]


def test_an_action_of_another_run_is_not_undone(tmp_path: Path) -> None:
    """What another run writes while a command goes on is its own, also where the command changes it behind that."""
    (tmp_path / "a.txt").write_text("before")

    async def work(run: Run) -> None:
        async with run.changes.watch(10.0):
            (tmp_path / "b.txt").write_text("of the command")
            await record(tmp_path, lambda other: files.write("a.txt", "of the other"), "other")
            await record(tmp_path, lambda other: files.write("c.txt", "of the other"), "third")
            (tmp_path / "c.txt").write_text("of the command")

    asyncio.run(record(tmp_path, work))
    undo(tmp_path)

    kept = {name: (tmp_path / name).read_text() for name in tree(tmp_path)}
    assert {"a.txt": "of the other", "c.txt": "of the other"} == kept


@pytest.mark.parametrize("is_killed", [False, True])
def test_what_another_run_builds_on_is_undone_behind_it(tmp_path: Path, is_killed: bool) -> None:
    """What an action of another run has found changed is the command's; it is named until that action is undone."""
    (tmp_path / "a.txt").write_text("before")

    async def work(run: Run) -> None:
        async with run.changes.watch(10.0):
            (tmp_path / "a.txt").write_text("of the command")
            await record(tmp_path, lambda other: files.write("a.txt", "of the other"), "other")

    asyncio.run(record(tmp_path, work))
    if is_killed:
        cut_journal(tmp_path)
    first, refused = undo(tmp_path)
    undo(tmp_path, run="other")

    assert ([], ["a.txt: somebody else has changed it since"]) == (first, refused)
    assert ["a.txt"] == [each.undo.file for each in undo(tmp_path)[0]]
    assert "before" == (tmp_path / "a.txt").read_text()


def test_long_journals_of_other_runs_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of another run only the entries about files are looked into, however much else it has told."""
    read_entries: list[str] = []

    def count(text: bytes) -> JournalEntry | None:
        entry = entry_in(text)
        read_entries.append("" if entry is None else entry.kind)
        return entry

    async def talk(run: Run) -> None:
        for number in range(500):
            run.events.emit(LinePrinted(str(number)))
        await files.write("a.txt", "of the other")

    asyncio.run(record(tmp_path, talk, "other"))
    monkeypatch.setattr(reader, "entry_in", count)
    beside = changes_beside(tmp_path, "run", 0.0)

    assert ["a.txt"] == [change.file for _, change in beside.changes]
    assert ["file_changed"] == read_entries


def cut_journal(folder: Path) -> None:
    """Leave the journal as a process does that is killed before its command has ended."""
    journal = path_of(folder, "run")
    journal.write_bytes(journal.read_bytes().partition(b'"file_changed"')[0].rpartition(b"\n")[0] + b"\n")


def test_the_undo_of_an_interrupted_command_leaves_what_later_runs_made(tmp_path: Path) -> None:
    """Where its end was never told, what a run behind it has recorded is not taken for its own."""

    async def work(run: Run) -> None:
        async with run.changes.watch(10.0):
            (tmp_path / "mine").write_text("mine")

    asyncio.run(record(tmp_path, work))
    cut_journal(tmp_path)
    asyncio.run(record(tmp_path, lambda run: files.write("theirs", "theirs"), "other"))
    done, refused = undo(tmp_path)

    assert (["mine"], []) == ([each.undo.file for each in done], refused)
    assert ["theirs"] == [*tree(tmp_path)]


def test_an_interrupted_command_is_undone_once(tmp_path: Path) -> None:
    """What is made or changed behind the undo of it is not from it, though its end was never told."""
    (tmp_path / "a.txt").write_text("before")

    async def work(run: Run) -> None:
        async with run.changes.watch(600.0):
            (tmp_path / "a.txt").write_text("after")

    asyncio.run(record(tmp_path, work))
    cut_journal(tmp_path)
    first, _ = undo(tmp_path)
    (tmp_path / "thesis.txt").write_text("of the person")
    second, _ = undo(tmp_path)

    assert (["a.txt"], []) == ([each.undo.file for each in first], [each.undo.file for each in second])
    assert {"a.txt": "before", "thesis.txt": "of the person"} == {
        name: (tmp_path / name).read_text() for name in tree(tmp_path)
    }


def test_nothing_is_told_of_what_an_interrupted_command_left(tmp_path: Path) -> None:
    """A file that was changed behind its time stays, and nobody says that the command had removed it."""
    (tmp_path / "a.txt").write_text("before")

    async def work(run: Run) -> None:
        async with run.changes.watch(1.0):
            (tmp_path / "a.txt").write_text("after")

    asyncio.run(record(tmp_path, work))
    cut_journal(tmp_path)
    os.utime(tmp_path / "a.txt", (time.time() + 60, time.time() + 60))
    undoing = RunUndo(tmp_path, "run", read(path_of(tmp_path, "run")).entries, read_settings(tmp_path))

    lines = list(plan_lines(undoing, undoing.plan(), str))
    assert ["  leave       a.txt: somebody else has changed it since"] == lines


@pytest.mark.skipif(sys.platform == "darwin", reason="names are UTF-8 there")
def test_names_of_files_forge_no_lines(tmp_path: Path) -> None:
    """A person sees one line for each path, and what moves the cursor is spelt out, as are bytes that are not UTF-8."""
    reports: list[str] = []

    async def work(run: Run) -> None:
        async with run.changes.watch(10.0):
            for name in ("q\n  leave       main.koi: changed", "e\x1b[2K\rx", os.fsdecode(b"caf\xe9")):
                (tmp_path / name).write_text("new")
        reports.append(changes_text(run))

    asyncio.run(record(tmp_path, work))
    undoing = RunUndo(tmp_path, "run", read(path_of(tmp_path, "run")).entries, read_settings(tmp_path))

    names = ["caf\\xe9", "e\\x1b[2K\\rx", "q⏎  leave       main.koi: changed"]
    assert [f"  remove      {name}" for name in names] == sorted(plan_lines(undoing, undoing.plan(), str))
    assert [f"3 files changed, +3 −0: {', '.join(names)}; `koi undo run` puts them back"] == reports


def test_stand_ins_of_the_sandbox_are_no_files_of_the_project(tmp_path: Path) -> None:
    """The empty folders that keep commands from making settings are neither recorded nor brought back."""

    async def work(run: Run) -> None:
        (tmp_path / "koi.toml").mkdir()
        async with run.changes.watch(10.0):
            (tmp_path / "koi.toml").rmdir()
            (tmp_path / ".mcp.json").mkdir()
            (tmp_path / "made").mkdir()

    asyncio.run(record(tmp_path, work))
    done, _ = undo(tmp_path)

    assert (["made"], []) == ([each.undo.file for each in done], [*tree(tmp_path)])
