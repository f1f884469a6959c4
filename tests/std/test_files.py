"""What `std/files` must not do: leave the folder, follow links out of it, leave half of a file."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from koi_lang.errors import AgentError, KoiError, PermissionDeniedError
from koi_lang.program import loader
from koi_lang.std import files
from koi_lang.std.code import project_files
from koi_lang.system.open_folders import replace_inside
from tests.projects import Project


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a project, with a secret beside it."""
    (tmp_path / "secret.txt").write_text("secret")
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    return project


def do(work: Awaitable[Any]) -> Any:
    """What some work gives."""

    async def main() -> Any:
        return await work

    return asyncio.run(main())


EVERY: dict[str, Callable[[str], Awaitable[Any]]] = {
    "read": files.read,
    "exists": files.exists,
    "about": files.about,
    "write": lambda path: files.write(path, "x"),
    "append": lambda path: files.append(path, "x"),
    "remove": files.remove,
    "move": lambda path: files.move(path, "moved.txt"),
    "move to": lambda path: files.move("here.txt", path),
}
OUTSIDE = (
    "../secret.txt",
    "a/../../secret.txt",
    "/etc/hostname",
    "out/secret.txt",
    "link.txt",
    "~/x",
    "..\\secret.txt",
)


@pytest.mark.parametrize("path", OUTSIDE)
@pytest.mark.parametrize("work", EVERY)
def test_nothing_outside_is_touched(folder: Path, work: str, path: str) -> None:
    """No function reaches what lies outside, by whatever way, not even to say whether it exists."""
    (folder / "here.txt").write_text("here")
    (folder / "out").symlink_to("..")
    (folder / "link.txt").symlink_to("../secret.txt")

    with pytest.raises(PermissionDeniedError, match="lies outside of the project"):
        do(EVERY[work](path))

    assert (folder.parent / "secret.txt").read_text() == "secret"
    assert sorted(path.name for path in folder.parent.iterdir()) == ["project", "secret.txt"]


@pytest.mark.parametrize("path", [".env", "a/.git/config", ".koi/runs/x", "keys"])
@pytest.mark.parametrize("work", EVERY)
def test_hidden_files_stay_hidden(folder: Path, work: str, path: str) -> None:
    """Names that begin with a dot are refused, also behind a link with another name."""
    (folder / ".env").write_text("KEY=1")
    (folder / "keys").symlink_to(".env")
    (folder / "here.txt").write_text("here")

    with pytest.raises(PermissionDeniedError, match="is hidden from programs"):
        do(EVERY[work](path))

    assert (folder / ".env").read_text() == "KEY=1"


@pytest.mark.parametrize("path", ["program.koi", "./Program.koi", "alias.koi"])
def test_the_running_program_cannot_be_changed(folder: Path, path: str) -> None:
    """A model that may write files does not give its own role more from the next run on."""
    (folder / "program.koi").write_text("role Reader { can execute }\n")
    (folder / "alias.koi").symlink_to("program.koi")
    loader.load(str(folder / "program.koi"))
    try:
        for work in (files.write(path, "x"), files.append(path, "x"), files.remove(path), files.move(path, "y.koi")):
            with pytest.raises(PermissionDeniedError, match="is part of the running program"):
                do(work)
    finally:
        loader.unload()


@pytest.mark.parametrize("path", ["koi.toml", "./KOI.toml", "settings"])
@pytest.mark.parametrize("work", ["write", "append", "remove", "move", "move to"])
def test_programs_cannot_allow_themselves_anything(folder: Path, work: str, path: str) -> None:
    """`koi.toml` can be read, and not be changed."""
    (folder / "koi.toml").write_text("[shell]\n")
    (folder / "settings").symlink_to("koi.toml")
    (folder / "here.txt").write_text("here")

    with pytest.raises(PermissionDeniedError, match="can only be changed by the person"):
        do(EVERY[work](path))

    assert do(files.read("koi.toml")) == "[shell]\n"


def test_links_inside_are_followed_and_lists_stay_inside(folder: Path) -> None:
    """A link to a file of the project is that file; those that lead out, or in circles, are not listed."""
    (folder / "a.txt").write_text("a")
    (folder / "same.txt").symlink_to("a.txt")
    (folder / "link.txt").symlink_to("../secret.txt")
    (folder / "out").symlink_to("..")
    (folder / "round").symlink_to("round")

    assert (do(files.read("same.txt")), do(files.list_files("**"))) == ("a", ["a.txt", "same.txt"])


def test_what_is_no_text_is_refused(folder: Path) -> None:
    """Files that are too large, no text, or no files at all give an error and never wait."""
    (folder / "large").write_bytes(b"x" * (files.MAX_READ + 1))
    (folder / "bytes").write_bytes(b"\xff\xfe")
    os.mkfifo(folder / "pipe")

    for path, message in [
        ("large", "at most 1,000,000 are read"),
        ("bytes", "not in UTF-8 but, it seems, in UTF-16"),
        ("pipe", "a pipe"),
    ]:
        with pytest.raises(AgentError, match=message):
            do(files.read(path))
    with pytest.raises(AgentError, match="at most 1,000,000 are written"):
        do(files.write("new", "é" * 500_001))
    assert not (folder / "new").exists()


def test_a_failed_write_leaves_the_old_text(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the disk refuses, the file is as it was, and nothing is left beside it."""
    do(files.write("a.txt", "old"))

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(AgentError, match=r"`a.txt` cannot be used: no space left on device"):
        do(files.write("a.txt", "new"))

    assert [(path.name, path.read_text()) for path in folder.iterdir()] == [("a.txt", "old")]


def test_what_somebody_has_changed_meanwhile_stays(folder: Path) -> None:
    """An edit is made to the text that was read; a folder that has become a link leads nowhere."""
    (folder / "a.txt").write_text("theirs")
    (folder.parent / "other").mkdir()
    (folder / "notes").symlink_to("../other")

    with pytest.raises(AgentError, match="has been changed by somebody else meanwhile"):
        do(files.write("a.txt", "ours", before="before"))
    with pytest.raises(OSError, match=r"[Nn]ot a directory|symbolic links"):
        replace_inside(folder, folder / "notes/a.txt", b"ours")
    assert ("theirs", []) == ((folder / "a.txt").read_text(), [*(folder.parent / "other").iterdir()])


def test_systems_without_open_folders_work_by_paths(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are written, moved and removed on Windows, too."""
    monkeypatch.setattr(os, "supports_dir_fd", set())

    do(files.write("a/b.txt", "one"))
    do(files.append("a/b.txt", "two"))
    do(files.move("a/b.txt", "c/d.txt"))

    assert "onetwo" == do(files.read("c/d.txt"))
    assert [True, False] == [do(files.remove("c/d.txt")), do(files.remove("c/d.txt"))]


def test_permissions_are_kept(folder: Path) -> None:
    """A script that is rewritten can still be run."""
    (folder / "run.sh").write_text("old")
    (folder / "run.sh").chmod(0o750)
    do(files.write("run.sh", "new"))

    assert stat.S_IMODE((folder / "run.sh").stat().st_mode) == 0o750


EDITS = """
import "std/files"
role Writer { can write }
agent Main : Writer {
  on start() {
    await editFile("marked.txt", "one\\n", "1\\n")
    await appendFile("marked.txt", "end")
    await writeFile("plain.txt", "new")
    await editFile("mixed.txt", "a\\nb (x", "A\\nB (y")
    await editFile("mixed.txt", "c\\nd", "C\\nD")
    await editFile("mixed.txt", "last", "la\\nst")
    try { await editFile("mixed.txt", "B (z", "") } catch (error) { console.log(error.message) }
  }
}
run Main.start()
"""


def test_marks_and_ends_of_lines_stay(project: Project) -> None:
    """A byte order mark, and the end of each line, also where a file has both kinds of them."""
    project.write("main.koi", EDITS)
    files = {"marked.txt": b"\xef\xbb\xbfone\r\ntwo\r\n", "plain.txt": b"old", "mixed.txt": b"a\r\nb (x\nc\nd\nlast\n"}
    for name, data in files.items():
        (project.folder / name).write_bytes(data)

    done = project.koi("run", "main.koi")

    assert "the piece occurs 0 times in `mixed.txt`: it must occur once\n" == done.stdout, done.stderr
    assert [b"\xef\xbb\xbf1\r\ntwo\r\nend", b"new", b"A\r\nB (y\nC\nD\nla\nst\n"] == [
        (project.folder / name).read_bytes() for name in files
    ]


def test_too_many_files_are_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list that would be endless is an error, not a part of it."""
    monkeypatch.setattr(files, "MAX_LISTED", 2)
    for name in "abc":
        (folder / name).write_text(name)

    with pytest.raises(AgentError, match="more than 2 files fit"):
        do(files.list_files("**"))
    assert do(files.list_files("[ab]")) == ["a", "b"]


@pytest.mark.parametrize("pattern", ["**/*.{md,txt}", "n/[ab].md", "n/?.md", "n/\\*.md", "n/**", "**.md", "./n/*.md"])
def test_patterns_are_those_of_all_tools(folder: Path, pattern: str) -> None:
    """Code that lists files reads a pattern as agents, rules and `.gitignore` do."""
    for name in ("n/a.md", "n/*.md", "n/deep/b.md", "c.txt"):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")

    by_agents = do(project_files.list_files(folder, pattern))["files"]

    assert (by_agents, True) == (do(files.list_files(pattern)), bool(by_agents) or pattern == "**.md")


def test_a_pattern_takes_no_time_whatever_stands_in_it(folder: Path) -> None:
    """A pattern full of wildcards, against a long name, is answered at once."""
    (folder / ("a" * 200)).write_text("x")
    before = time.process_time()

    assert do(files.list_files("*a" * 30 + "b")) == []
    assert do(files.list_files("**a" * 30)) == ["a" * 200]
    assert time.process_time() - before < 5


@pytest.mark.parametrize("path", ["", " ", "a\0b", "a\nb", 5, None])
def test_what_is_no_path_is_told(folder: Path, path: Any) -> None:
    """Anything but a path gives one clear message."""
    with pytest.raises(KoiError, match="is no path"):
        do(files.read(path))


def test_a_replayed_run_reads_what_it_read_and_writes_nothing(project: Project) -> None:
    """The journal holds what was read and written under names of their own; a replay touches no file."""
    project.write("note.txt", "first")
    project.write(
        "a.koi",
        """
        import "std/files"
        role R { can execute }
        agent A : R { on go(args: Json) {
          const text = await readFile("note.txt")
          await writeFile("note.txt", text + " and second")
          console.log(text)
        } }
        run A.go({})
        """,
    )
    assert project.koi("run", "--record", "a.koi").stdout == "first\n"
    (journal,) = (project.folder / ".koi" / "runs").glob("*.jsonl")
    told = [json.loads(line) for line in journal.read_text().splitlines()]
    (project.folder / "note.txt").write_text("changed")

    replayed = project.koi("replay", journal.stem)

    assert (replayed.returncode, "first" in replayed.stdout, project.folder.joinpath("note.txt").read_text()) == (
        *(0, True, "changed"),
    ), replayed.stderr
    assert "files.write" in json.dumps(told)
