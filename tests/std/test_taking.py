"""Taking snapshots: of trees that change meanwhile, with strange names, without room, and by many at a time."""

from __future__ import annotations

import errno
import json
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from koi_lang.errors import AgentError
from koi_lang.runtime.journal.entries import Header, JournalEntry, line_of
from koi_lang.runtime.journal.line_ends import seal_line
from koi_lang.runtime.journal.store import path_of
from koi_lang.runtime.snapshots.store import SnapshotStore
from koi_lang.runtime.tree import reading, taking, walking
from koi_lang.runtime.tree.project import ProjectTree
from koi_lang.settings import project as settings
from koi_lang.settings import read_settings
from tests.std import random_trees


@pytest.fixture
def project(tmp_path: Path) -> ProjectTree:
    """An empty project."""
    (tmp_path / "project").mkdir()
    return ProjectTree(tmp_path / "project", lambda: None, read_settings(tmp_path / "project"))


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that are read, as they are."""
    found: list[str] = []
    read_file = taking.read_file
    monkeypatch.setattr(
        taking, "read_file", lambda folders, path, **how: found.append(path) or read_file(folders, path, **how)
    )
    return found


def skipped(project: ProjectTree) -> dict[str, str]:
    """What a snapshot leaves out, but for what Koi keeps itself."""
    return {each["path"]: each["why"] for each in project.snapshot("run")["skipped"] if each["path"] != ".koi/"}


def settle() -> None:
    """Wait until what was written is no longer as good as new."""
    time.sleep(0.15)


def test_a_project_without_files(project: ProjectTree) -> None:
    """Nothing is kept, nothing has changed, and what comes later goes again; empty folders stay."""
    (project.folder / "empty" / "deep").mkdir(parents=True)
    kept = project.snapshot("run")
    (project.folder / "empty" / "deep").rmdir()
    (project.folder / "later").mkdir()
    (project.folder / "later" / "a.txt").write_text("a")

    assert (kept["files"], kept["bytes"], kept["skipped"]) == (0, 0, [{"path": ".koi/", "why": "hidden"}])
    found = {"added": ["later/", "later/a.txt"], "changed": [], "removed": ["empty/deep/"], "left": []}
    assert project.changes(kept["id"]) == found
    project.restore(kept["id"], None)
    assert sorted(random_trees.content(project.folder)) == ["empty", "empty/deep"]


def test_what_has_not_changed_is_not_read(project: ProjectTree, read: list[str]) -> None:
    """The second snapshot reads what has changed since, however it was done, and the same tree has the same id."""
    for name in "abc":
        (project.folder / name).write_text(name)
    os.utime(project.folder / "a", (2**31, 2**31))  # a time to come is as good as any
    settle()
    first = project.snapshot("run")
    assert read == ["a", "b", "c"]
    again = project.snapshot("run")
    assert (read, again) == (["a", "b", "c"], first)
    before = (project.folder / "b").stat()
    (project.folder / "b").write_text("x")
    os.utime(project.folder / "b", ns=(before.st_atime_ns, before.st_mtime_ns))  # as if nothing had happened
    (project.folder / "c").chmod(0o600)

    other = project.snapshot("other")

    assert (read[3:], project.changes(first["id"])["changed"]) == (["b", "c"], ["b", "c"])
    assert other["id"].partition("-")[2] != first["id"].partition("-")[2]


def test_a_full_disk_is_told(project: ProjectTree, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is kept by halves, and the next snapshot is whole."""
    (project.folder / "a").write_text("a")

    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", refuse)
        with pytest.raises(AgentError, match=r"snapshots cannot be kept in `.koi/snapshots`: no space left on device"):
            project.snapshot("run")
    store = SnapshotStore.of(project.folder)
    assert (store.used_bytes(), os.listdir(store.folder / "staging")) == (0, [])
    assert project.snapshot("run")["files"] == 1


def test_what_was_written_a_moment_ago_is_read_again(
    project: ProjectTree, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that may change once more without looking different is not believed to be the same."""
    (project.folder / "a").write_text("1")
    monkeypatch.setattr(taking, "FINE_NS", 3_600_000_000_000)
    project.snapshot("run")
    project.snapshot("run")
    monkeypatch.setattr(taking, "FINE_NS", 0)
    project.snapshot("run")
    project.snapshot("run")

    assert read == ["a", "a", "a"]


def while_reading(monkeypatch: pytest.MonkeyPatch, do: Callable[[int], object]) -> None:
    """Have something happen each time that a file has been read, which is told how often that was."""
    count, read = [0], reading._content

    def read_and_do(held: int, size: int) -> bytes:
        data = read(held, size)
        count[0] += 1
        do(count[0])
        return data

    monkeypatch.setattr(reading, "_content", read_and_do)


def test_a_file_that_changes_once_is_read_again(project: ProjectTree, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept is whole: as it was before, or as it is now, and never a mixture."""
    (project.folder / "a").write_text("before")
    while_reading(monkeypatch, lambda count: (project.folder / "a").write_text("behind") if count == 1 else None)

    kept = project.snapshot("run")
    (project.folder / "a").unlink()
    project.restore(kept["id"], None)

    assert (project.folder / "a").read_text() == "behind"


def test_a_file_that_changes_all_the_time_is_told(project: ProjectTree, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read a bounded number of times, left out, and never touched."""
    (project.folder / "a").write_text("a")
    (project.folder / "log").write_text("")
    counts: list[int] = []

    def grow(count: int) -> None:
        counts.append(count)
        with (project.folder / "log").open("a") as file:
            file.write("line\n")

    while_reading(monkeypatch, grow)
    kept = project.snapshot("run")
    monkeypatch.undo()
    (project.folder / "log").write_text("mine")

    assert {each["path"]: each["why"] for each in kept["skipped"]} == {".koi/": "hidden", "log": "changing"}
    assert (kept["files"], len(counts) <= 16) == (1, True)
    assert project.restore(kept["id"], None) == {"written": [], "removed": [], "left": []}
    assert (project.folder / "log").read_text() == "mine"


def test_a_tree_that_changes_is_looked_at_again(project: ProjectTree, monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes and goes while others are read is in the snapshot as it is at its end."""
    for name in ("a", "b", "gone/c", "turns"):
        (project.folder / name).parent.mkdir(exist_ok=True)
        (project.folder / name).write_text(name)

    def happen(count: int) -> None:
        if count == 2:
            (project.folder / "a").write_text("changed after it was read")
            (project.folder / "new").write_text("new")
            random_trees.remove(project.folder / "gone")
            (project.folder / "turns").unlink()
            (project.folder / "turns").symlink_to("/etc")

    while_reading(monkeypatch, happen)
    kept = project.snapshot("run")

    assert (kept["files"], project.changes(kept["id"])) == (3, {"added": [], "changed": [], "removed": [], "left": []})


def test_a_real_writer_is_survived(project: ProjectTree) -> None:
    """While somebody writes without a pause, snapshots end, and hold one line as often as the file says."""
    path, ended = project.folder / "numbers.txt", threading.Event()
    path.write_text("")

    def write() -> None:
        while not ended.is_set():
            number = time.monotonic_ns()
            path.write_text(f"{number}\n" * 200)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        kept = [project.snapshot("run") for _ in range(10)]
    finally:
        ended.set()
        writer.join()
    for each in kept:
        project.restore(each["id"], None)
        if each["files"]:
            assert len(set(path.read_text().splitlines())) <= 1


def test_names_that_are_no_text_and_depth_are_told(project: ProjectTree) -> None:
    """Names that no journal can hold are told in a form that it can; endless depth ends."""
    (project.folder / os.fsdecode(b"bad\xff")).write_text("x")
    (project.folder / os.fsdecode(b"folder\xfe")).mkdir()
    (project.folder / "link").symlink_to(os.fsdecode(b"to\xff"))
    (project.folder / "new\nline é 名").write_text("x")
    deep = project.folder / "/".join(["d"] * (walking.MAX_DEPTH + 1))
    deep.mkdir(parents=True)

    told = skipped(project)

    assert told == {
        "bad\\xff": "name",
        "folder\\xfe/": "name",
        "link": "name",
        "/".join(["d"] * (walking.MAX_DEPTH + 1)) + "/": "deep",
    }
    json.dumps(told)


def test_too_much_is_refused_and_much_is_shortened(project: ProjectTree, monkeypatch: pytest.MonkeyPatch) -> None:
    """A project that is too large says what to do; a long list of what is left out is cut, and counted."""
    for number in range(20):
        (project.folder / f".{number}").touch()
    monkeypatch.setattr("koi_lang.runtime.tree.project.MAX_LISTED", 5)
    kept = project.snapshot("run")
    monkeypatch.setattr(walking, "MAX_FILES", 10)

    assert (len(kept["skipped"]), kept["skippedCount"]) == (5, 21)
    with pytest.raises(AgentError, match="more than 10 files and folders in the project") as told:
        project.snapshot("run")
    assert told.value.help == "Have `.gitignore` name the folders that need not be kept."


def test_rules_that_are_none_are_seen_through(project: ProjectTree) -> None:
    """A `.gitignore` that is a pipe, a folder or a link counts for nothing, as with git; a huge one is refused."""
    (project.folder.parent / "rules").write_text("*\n")
    for name in ("pipe", "folder", "link"):
        (project.folder / name).mkdir()
        (project.folder / name / "a").touch()
    os.mkfifo(project.folder / "pipe" / ".gitignore")
    (project.folder / "folder" / ".gitignore").mkdir()
    (project.folder / "link" / ".gitignore").symlink_to("../../rules")

    assert project.snapshot("run")["files"] == 3
    (project.folder / ".gitignore").write_text("x" * 100_001)
    with pytest.raises(AgentError, match=r"`.gitignore` has more than 100,000 bytes"):
        project.snapshot("run")


def test_no_more_is_kept_than_allowed(project: ProjectTree) -> None:
    """Snapshots of runs that have ended well make room, the oldest first; then the message says what to do."""
    (project.folder / "koi.toml").write_text("[snapshots]\nmegabytes = 2\n")
    project = replace(project, settings=read_settings(project.folder))
    store = SnapshotStore.of(project.folder)
    runs: dict[str, bool | None] = {"first": True, "failed": False, "second": True, "third": True}
    for number, (run, ok) in enumerate(runs.items()):
        write_journal(project.folder, run, ok)
        (project.folder / "data").write_bytes(bytes([number]) * 400_000)
        project.snapshot(run)
        time.sleep(0.01)
    write_journal(project.folder, "mine", None)
    (project.folder / "data").write_bytes(b"x" * 900_000)

    kept = project.snapshot("mine")

    assert sorted(path.name for path in store.lists.iterdir()) == ["failed", "mine", "third"]
    assert store.used_bytes() <= 2_000_000
    (project.folder / "data").write_bytes(b"y" * 1_900_000)
    with pytest.raises(AgentError, match="snapshots of this project would take more than 2 MB") as told:
        project.snapshot("mine")
    assert "give `megabytes` in `[snapshots]`" in str(told.value.help)
    project.restore(kept["id"], None)
    assert (project.folder / "data").read_bytes() == b"x" * 900_000


def write_journal(folder: Path, run: str, ok: bool | None) -> None:
    """The journal of a run that ended so, or has not ended."""
    header = Header(run, 1.0, str(folder / "a.koi"), "f00d", "0.1.0")
    ended = () if ok is None else (JournalEntry(1, 2.0, "run_ended", data={"ok": ok}),)
    path = path_of(folder, run)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(seal_line(line_of(each, str), run) for each in (header, *ended)))


@pytest.mark.parametrize("text", ["megabytes = 0", 'megabytes = "1"', "size = 5"])
def test_a_bound_that_is_none_is_told(project: ProjectTree, text: str) -> None:
    """As all settings: with the section, the name, and what it may be."""
    (project.folder / "koi.toml").write_text(f"[snapshots]\n{text}\n")
    project = replace(project, settings=read_settings(project.folder))

    with pytest.raises(settings.SettingsError, match=r"\[snapshots\]"):
        project.snapshot("run")


@pytest.mark.parametrize("count", [8, pytest.param(40, marks=pytest.mark.thorough)])
def test_many_at_a_time(project: ProjectTree, count: int) -> None:
    """Snapshots and comparisons of one project by many at once all see the same tree."""
    for number in range(200):
        path = project.folder / f"{number % 7}" / f"{number}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(str(number))
    with ThreadPoolExecutor(count) as pool:
        kept = list(pool.map(lambda number: project.snapshot(f"run{number}"), range(count)))
        compared = list(pool.map(lambda each: project.changes(each["id"]), kept))

    assert {each["id"].partition("-")[2] for each in kept} == {kept[0]["id"].partition("-")[2]}
    assert all(each == {"added": [], "changed": [], "removed": [], "left": []} for each in compared)
    assert sum(1 for _ in SnapshotStore.of(project.folder).objects()) == 200


def test_who_does_not_wait_any_more_is_heard(tmp_path: Path) -> None:
    """A snapshot that nobody wants any more ends between two files."""
    asked: list[int] = []

    def stop() -> None:
        asked.append(1)
        if len(asked) > 5:
            raise KeyboardInterrupt

    for number in range(50):
        (tmp_path / str(number)).write_text(str(number))
    with pytest.raises(KeyboardInterrupt):
        ProjectTree(tmp_path, stop, read_settings(tmp_path)).snapshot("run")
    assert len(asked) == 6
