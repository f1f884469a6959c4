"""Restoring among those who mean ill, and on machines that break: killed, raced, without rights, with damage."""

from __future__ import annotations

import errno
import os
import random
import signal
import socket
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from koi_lang.errors import AgentError, PermissionDeniedError
from koi_lang.runtime.agents.declarations import Role
from koi_lang.runtime.snapshots.store import snapshots_folder
from koi_lang.runtime.tree.project import ProjectTree
from koi_lang.settings import read_settings
from tests.std import random_trees

CODER, WORKER = Role("Coder", ("write_code",)), Role("Worker", ("execute",))
# What changes a disk, as far as it is used here.
CHANGING = ("rename", "replace", "unlink", "rmdir", "mkdir", "symlink", "fchmod", "write", "open")
NOBODY = 65534
# A case takes every eighth moment.
STEP = 8
SWAPPED = 2
UNREADABLE = {"path": "open/c.txt", "why": "unreadable"}


@pytest.fixture
def project(tmp_path: Path) -> ProjectTree:
    """An empty project, with a secret beside it."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.txt").write_text("secret")
    (tmp_path / "project").mkdir()
    return ProjectTree(tmp_path / "project", lambda: None, read_settings(tmp_path / "project"))


def write(folder: Path, **texts: str) -> None:
    """Write files; `__` stands for `/`."""
    for name, text in texts.items():
        path = folder / (name.replace("__", "/") + ".txt")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def clear(folder: Path) -> None:
    """Remove all but what Koi keeps."""
    for path in folder.iterdir():
        if path.name != ".koi":
            random_trees.remove(path)


def outside(project: ProjectTree) -> list[tuple[str, str]]:
    """What lies beside the project."""
    return [(path.name, path.read_text()) for path in sorted((project.folder.parent / "outside").iterdir())]


def in_child(work: Callable[[], object], user: int | None = None) -> int:
    """How a process ends that does some work; 0 where it does all of it, 1 where that fails."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    try:
        if user is not None and os.geteuid() == 0:
            os.setgid(user)
            os.setuid(user)
        work()
        os._exit(0)
    except BaseException as error:  # the child must not go on with the tests
        os.write(2, repr(error).encode())
        os._exit(1)


def call_before(number: int, do: Callable[[], object]) -> None:
    """Have something done before the n-th call that changes the disk."""
    left = [number]

    def wrap(call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*given: Any, **named: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                do()
            return call(*given, **named)

        os.supports_dir_fd.add(wrapped)
        return wrapped

    for name in CHANGING:
        setattr(os, name, wrap(getattr(os, name)))


def restore_and_be_killed(project: ProjectTree, id: str, number: int) -> None:
    """Restore until the n-th change."""
    call_before(number, kill)
    project.restore(id, CODER)


def snapshot_and_be_killed(project: ProjectTree, number: int) -> None:
    """Take a snapshot until the n-th change."""
    call_before(number, kill)
    project.snapshot("run")


def kill() -> None:
    """End this process at once."""
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("first", range(STEP))
def test_a_killed_restore_is_finished_by_the_next(project: ProjectTree, first: int) -> None:
    """Wherever it is killed, doing it again gives the same tree, and nothing else is left."""
    chance, number, status = random.Random(3), first - STEP + 1, 1
    random_trees.make(chance, project.folder)
    before, kept = random_trees.content(project.folder), project.snapshot("run")
    while status != 0:
        number += STEP
        random_trees.change(chance, project.folder)
        write(project.folder, new__a="new", new__b__c="new", b="other")
        for name in sorted(random_trees.content(project.folder, ignored=True).keys() - {".gitignore"}, reverse=True):
            random_trees.remove(project.folder / name)  # it may keep folders from going
        status = in_child(partial(restore_and_be_killed, project, kept["id"], number))
        assert status in (0, signal.SIGKILL), (number, status)

        done = project.restore(kept["id"], CODER)

        assert (done["left"], random_trees.content(project.folder)) == ([], before), number
        assert os.listdir(snapshots_folder(project.folder) / "staging") == []
    assert number > 20


@pytest.mark.sampled(1)
@pytest.mark.parametrize("first", range(STEP))
def test_a_killed_snapshot_leaves_what_the_next_can_use(project: ProjectTree, first: int) -> None:
    """Wherever it is killed, the next one is whole, and what was on its way goes with the next restore."""
    number, status = first - STEP + 1, 1
    while status != 0:
        number += STEP
        random_trees.remove(project.folder)
        project.folder.mkdir()
        write(project.folder, a="a", src__b="b", src__c="c")
        before = random_trees.content(project.folder)
        status = in_child(partial(snapshot_and_be_killed, project, number))
        assert status in (0, signal.SIGKILL), (number, status)

        kept = project.snapshot("run")
        write(project.folder, a="b", src__b="", d="d")
        project.restore(kept["id"], CODER)

        assert random_trees.content(project.folder) == before, number
        assert os.listdir(snapshots_folder(project.folder) / "staging") == []
    assert number > 20


@pytest.mark.sampled(1)
@pytest.mark.parametrize("first", range(STEP))
def test_no_link_that_comes_in_between_is_written_through(project: ProjectTree, first: int) -> None:
    """Somebody puts a link in place of a folder that is restored, at every moment: nothing outside changes."""
    status, number = 1, first - STEP + 1
    while status != 0:
        number += STEP
        clear(project.folder)
        write(project.folder, src__a="1", src__deep__a="2", src__deep__b="3")
        (project.folder / "src").chmod(0o700)
        kept = project.snapshot("run")
        write(project.folder, src__a="x", src__deep__a="y", src__new="z")
        (project.folder / "src" / "deep" / "b.txt").unlink()
        (project.folder / "src").chmod(0o755)
        before = outside(project)

        status = in_child(partial(restore_with_a_swap, project, kept["id"], number))

        assert os.waitstatus_to_exitcode(status) in (0, SWAPPED)
        assert outside(project) == before, number
        random_trees.remove(project.folder.parent / "moved")
    assert number > 20


def restore_with_a_swap(project: ProjectTree, id: str, number: int) -> None:
    """Restore, while a folder is moved away and replaced by a link before the n-th change; ends with SWAPPED then."""
    rename, symlink = os.rename, os.symlink
    swapped: list[bool] = []

    def swap() -> None:
        swapped.append(True)
        rename(project.folder / "src", project.folder.parent / "moved")
        symlink(project.folder.parent / "outside", project.folder / "src")

    call_before(number, swap)
    with suppress(AgentError):
        project.restore(id, CODER)
    if swapped:
        os._exit(SWAPPED)


def test_what_takes_the_place_of_a_folder_goes(project: ProjectTree) -> None:
    """A link, a file or a pipe in place of a folder is replaced by that folder, and not followed."""
    write(project.folder, link__a="1", file__a="2", pipe__a="3")
    before, kept = random_trees.content(project.folder), project.snapshot("run")
    clear(project.folder)
    (project.folder / "link").symlink_to("../outside")
    (project.folder / "file").write_text("file")
    os.mkfifo(project.folder / "pipe")

    project.restore(kept["id"], WORKER)

    assert (random_trees.content(project.folder), outside(project)) == (before, [("a.txt", "secret")])


def test_links_are_kept_as_links(project: ProjectTree) -> None:
    """Wherever a link leads, to a file outside, into a circle or nowhere, it is what is kept; a new one goes."""
    targets = {"out": "../outside", "file": "/etc/hostname", "round": "round", "nowhere": "no/such", "up": ".."}
    for name, target in targets.items():
        (project.folder / name).symlink_to(target)
    kept = project.snapshot("run")
    for name in ("out", "round"):
        (project.folder / name).unlink()
    (project.folder / "new").symlink_to("../outside")
    (project.folder / "file").unlink()
    (project.folder / "file").write_text("other")

    assert (kept["files"], kept["bytes"]) == (0, 0)
    assert project.changes(kept["id"])["added"] == ["new"]
    assert project.restore(kept["id"], WORKER) == {"written": ["file", "out", "round"], "removed": ["new"], "left": []}
    assert {path.name: os.readlink(path) for path in project.folder.iterdir() if path.is_symlink()} == targets
    assert outside(project) == [("a.txt", "secret")]


def test_what_is_no_plain_file_is_told_and_left(project: ProjectTree) -> None:
    """Pipes, sockets, hard links and large files are not kept and not touched, and nobody waits for them."""
    write(project.folder, a="a", twice="twice")
    os.mkfifo(project.folder / "pipe")
    os.link(project.folder / "twice.txt", project.folder / "again.txt")
    (project.folder / "large.bin").write_bytes(bytes(5_000_001))
    (project.folder / "largest.bin").write_bytes(bytes(5_000_000))
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(project.folder / "socket"))
        kept = project.snapshot("run")
    told = {each["path"]: each["why"] for each in kept["skipped"]}
    (project.folder / "large.bin").write_bytes(b"small now")
    (project.folder / "again.txt").unlink()
    os.mkfifo(project.folder / "later")

    done = project.restore(kept["id"], CODER)

    hard, special = {"again.txt": "hard link", "twice.txt": "hard link"}, {"pipe": "special", "socket": "special"}
    assert told == {".koi/": "hidden", "large.bin": "large", **hard, **special}
    assert (kept["files"], kept["bytes"], kept["skippedCount"]) == (2, 5_000_001, 6)
    assert done == {"written": [], "removed": [], "left": [{"path": "later", "why": "special"}]}
    assert (project.folder / "large.bin").read_bytes() == b"small now"
    assert (project.folder / "pipe").is_fifo()


def test_what_was_kept_comes_back_whatever_took_its_place(project: ProjectTree) -> None:
    """A file that has grown too large, become a pipe or got a second name is put back."""
    write(project.folder, grown="1", pipe="2", twice="3")
    before, kept = random_trees.content(project.folder), project.snapshot("run")
    (project.folder / "grown.txt").write_bytes(bytes(6_000_000))
    (project.folder / "pipe.txt").unlink()
    os.mkfifo(project.folder / "pipe.txt")
    os.link(project.folder / "twice.txt", project.folder.parent / "outside" / "twice.txt")
    (project.folder / "twice.txt").write_text("changed by its other name")

    assert project.changes(kept["id"])["changed"] == ["grown.txt", "pipe.txt", "twice.txt"]
    project.restore(kept["id"], WORKER)
    assert random_trees.content(project.folder) == before
    assert outside(project)[-1] == ("twice.txt", "changed by its other name")


def test_what_was_ignored_then_or_is_now_stays(project: ProjectTree) -> None:
    """Rules that come or go between do not expose files that only one of both ignores."""
    write(project.folder, src__a="a", out__old="old", notes="kept")
    (project.folder / ".gitignore").write_text("out/\n")
    (project.folder / "src" / ".gitignore").write_text("*.tmp\n")
    kept = project.snapshot("run")
    (project.folder / ".gitignore").write_text("notes.txt\n")
    (project.folder / "src" / ".gitignore").unlink()
    write(project.folder, out__new="new", notes="changed", src__b="b")
    (project.folder / "src" / "x.tmp").write_text("x")

    changes, done = project.changes(kept["id"]), project.restore(kept["id"], WORKER)

    left = [{"path": "notes.txt", "why": "ignored"}]
    assert changes == {"added": ["src/b.txt"], "changed": [], "removed": [], "left": left}
    assert done == {"written": [], "removed": ["src/b.txt"], "left": left}
    assert sorted(path.name for path in project.folder.rglob("*.*") if path.is_file() and ".koi" not in path.parts) == [
        *(".gitignore", "a.txt", "new.txt", "notes.txt", "old.txt", "x.tmp"),
    ]


def test_the_rules_of_the_repository_around_count(project: ProjectTree) -> None:
    """A program that is run in a folder of a repository leaves out what the repository ignores."""
    (project.folder.parent / ".git").mkdir()
    (project.folder.parent / ".gitignore").write_text("*.log\n/project/out/\n/project/\n")
    write(project.folder, a="a", out__b="b")
    (project.folder / "x.log").write_text("x")

    kept = project.snapshot("run")
    (project.folder.parent / ".gitignore").unlink()
    write(project.folder, out__c="c", d="d")

    assert [(each["path"], each["why"]) for each in kept["skipped"][1:]] == [("out/", "ignored"), ("x.log", "ignored")]
    assert project.restore(kept["id"], WORKER)["removed"] == ["d.txt"]


def test_settings_and_the_program_are_not_touched(project: ProjectTree, monkeypatch: pytest.MonkeyPatch) -> None:
    """What only the person may change is neither kept nor put back, also where it is missing or a link."""
    write(project.folder, program="p", a="a")
    (project.folder / "koi.toml").write_text("[limits]\n")
    (project.folder / "sub").mkdir()
    (project.folder / "sub" / "Koi.toml").symlink_to("../koi.toml")
    kept = project.snapshot("run")
    running = {str(project.folder / "program.txt").casefold()}
    monkeypatch.setattr("koi_lang.runtime.tree.project.running_files", lambda: running)
    (project.folder / "program.txt").unlink()
    (project.folder / "koi.toml").unlink()
    again = project.snapshot("run")

    assert {each["path"]: each["why"] for each in kept["skipped"]} == {
        ".koi/": "hidden",
        "koi.toml": "settings",
        "sub/Koi.toml": "settings",
    }
    assert project.restore(kept["id"], CODER)["left"] == [{"path": "program.txt", "why": "program"}]
    (project.folder / "program.txt").write_text("mine")
    assert project.restore(again["id"], CODER) == {"written": [], "removed": [], "left": []}
    assert not (project.folder / "koi.toml").exists()


@pytest.mark.parametrize("name", ["tool.py", "run", "sub/x.koi"])
@pytest.mark.parametrize("what", ["changed", "removed", "added"])
def test_code_needs_a_permission(project: ProjectTree, name: str, what: str) -> None:
    """As with `FileChanges`: without `write_code` nothing at all is changed, with it the code comes back."""
    path = project.folder / name
    write(project.folder, a="a")
    path.parent.mkdir(exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    if what == "added":
        kept = project.snapshot("run")
        path.with_name("x.py").write_text("new")
    else:
        kept = project.snapshot("run")
        path.write_text("#!/bin/sh\nother") if what == "changed" else path.unlink()
    write(project.folder, a="changed")
    before = random_trees.content(project.folder)

    for role in (WORKER, None):
        with pytest.raises(PermissionDeniedError, match="only an agent with `write_code` may change it"):
            project.restore(kept["id"], role)
    assert random_trees.content(project.folder) == before
    project.restore(kept["id"], CODER)
    assert (project.folder / "a.txt").read_text() == "a"
    assert project.changes(kept["id"]) == {"added": [], "changed": [], "removed": [], "left": []}


def test_damage_changes_nothing(project: ProjectTree) -> None:
    """A kept content that is not what it was is found before anything is changed, and named."""
    write(project.folder, a="a", b="b")
    kept = project.snapshot("run")
    for path in (snapshots_folder(project.folder) / "objects").rglob("*"):
        if path.is_file() and path.read_text() == "b":
            path.write_text("c")
    write(project.folder, a="changed", b="changed", new="new")
    before = random_trees.content(project.folder)

    with pytest.raises(AgentError, match=r"what was kept of `b.txt` is damaged") as told:
        project.restore(kept["id"], WORKER)

    assert told.value.help == "Nothing was changed; another snapshot may hold it."
    assert random_trees.content(project.folder) == before


def test_a_full_disk_changes_nothing(project: ProjectTree, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no room to make contents whole, the tree stays as it is."""
    write(project.folder, a="a", b="b")
    kept = project.snapshot("run")
    write(project.folder, a="changed", b="changed", new="new")
    before = random_trees.content(project.folder)

    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", refuse)
        with pytest.raises(AgentError, match=r"`a.txt` cannot be put back: no space left"):
            project.restore(kept["id"], WORKER)
    assert random_trees.content(project.folder) == before
    assert os.listdir(snapshots_folder(project.folder) / "staging") == []


def test_a_folder_may_be_on_another_disk(project: ProjectTree, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be moved from the store into a folder is copied, modes and links included."""
    write(project.folder, src__a="a")
    (project.folder / "src" / "a.txt").chmod(0o640)
    (project.folder / "src" / "link").symlink_to("a.txt")
    before, kept = random_trees.content(project.folder), project.snapshot("run")
    for path in (project.folder / "src").iterdir():
        path.unlink()
    rename = os.rename

    def refuse(source: str, target: str, **folders: int) -> None:
        if "src_dir_fd" not in folders:
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        rename(source, target, **folders)

    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", refuse)
        project.restore(kept["id"], WORKER)
    assert random_trees.content(project.folder) == before


def test_who_is_not_root_can_change_closed_folders() -> None:
    """A folder that its owner may not write to is opened for as long as it takes, and has its mode again."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o777)
        assert in_child(lambda: restore_closed_folders(Path(name) / "project"), NOBODY) == 0


def restore_closed_folders(folder: Path) -> None:
    """As somebody without rights of its own."""
    folder.mkdir()
    write(folder, closed__a="a", closed__deep__b="b", open__c="c")
    project = ProjectTree(folder, lambda: None, read_settings(folder))
    for name in ("closed/deep", "closed"):
        (folder / name).chmod(0o555)
    before, kept = random_trees.content(folder), project.snapshot("run")
    for name in ("closed", "closed/deep"):
        (folder / name).chmod(0o755)
    write(folder, closed__a="x", closed__new="n", closed__deep__new="n")
    (folder / "closed" / "deep" / "b.txt").unlink()
    for name in ("closed/deep", "closed"):
        (folder / name).chmod(0o555)
    (folder / "open" / "c.txt").chmod(0)

    project.restore(kept["id"], CODER)
    assert random_trees.content(folder) == before
    (folder / "open").chmod(0)
    assert project.restore(kept["id"], CODER)["left"] == [{"path": "open/", "why": "unreadable"}, UNREADABLE]
    assert {"path": "open/", "why": "unreadable"} in project.snapshot("run")["skipped"]
    (folder / "open").chmod(0o755)
    (folder / ".koi" / "snapshots").chmod(0o500)
    with pytest.raises(AgentError, match=r"snapshots cannot be kept in `.koi/snapshots`: permission denied"):
        ProjectTree(folder, lambda: None, read_settings(folder)).snapshot("other")
    (folder / ".koi" / "snapshots").chmod(0o700)
    (folder / ".gitignore").write_text("x")
    (folder / ".gitignore").chmod(0)
    with pytest.raises(AgentError, match=r"`.gitignore` cannot be read: permission denied"):
        project.snapshot("run")


def test_two_who_restore_do_not_mix(project: ProjectTree) -> None:
    """While some processes restore one tree and others another, the tree is always one of both at the end."""
    write(project.folder, a="1", b="1", src__c="1", old="1")
    first, one = random_trees.content(project.folder), project.snapshot("one")
    write(project.folder, a="2", b="2", src__c="2", new__d="2")
    (project.folder / "old.txt").unlink()
    second, two = random_trees.content(project.folder), project.snapshot("two")

    def work(id: str) -> None:
        for _ in range(5):
            project.restore(id, CODER)
            ProjectTree(project.folder, lambda: None, read_settings(project.folder)).snapshot(f"run{os.getpid()}")

    threads = [threading.Thread(target=in_child, args=(lambda id=id: work(id),)) for id in (one["id"], two["id"]) * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert random_trees.content(project.folder) in (first, second)
    project.restore(one["id"], CODER)
    assert random_trees.content(project.folder) == first
