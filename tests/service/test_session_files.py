"""The files of a session: a path never leads out of its folder, and what is too large leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from koi_lang.errors import KoiError
from koi_lang.service.session_files import FileSpace, FileTooLargeError, SessionFiles, SpaceLimits


async def pieces(*content: bytes) -> AsyncIterator[bytes]:
    """Some content in pieces."""
    for piece in content:
        yield piece


def write(files: SessionFiles, path: str, *content: bytes, size: int | None = None) -> None:
    """Write a file."""
    asyncio.run(files.write(path, pieces(*content), size))


def read(files: SessionFiles, path: str) -> bytes:
    """The content of a file."""
    with files.open(path)[1] as content:
        return content.read()


def names(files: SessionFiles) -> list[str]:
    """The paths of all files."""
    return [file.path for file in asyncio.run(files.list_all())]


@pytest.fixture
def files(tmp_path: Path) -> SessionFiles:
    """The folder of a session, beside a secret."""
    (tmp_path / "secret.txt").write_text("secret")
    return files_in(space_in(tmp_path, SpaceLimits(1000, 1500)), tmp_path)


def space_in(folder: Path, limits: SpaceLimits) -> FileSpace:
    """Room for two sessions of Ada and one of Bob."""
    owners = {"files": "ada", "other": "ada", "of bob": "bob"}
    return FileSpace(lambda run: folder / run, lambda: owners, limits)


def files_in(space: FileSpace, folder: Path, run: str = "files") -> SessionFiles:
    """The files of one of them."""
    return SessionFiles(folder / run, partial(space.reserve, run))


def test_what_is_written_is_listed_read_and_removed(files: SessionFiles) -> None:
    """Files of any content and name come back as they were sent."""
    write(files, "notes/tägliche notiz.md", b"one\x00", b"two")
    write(files, "a.txt", b"")
    assert ["a.txt", "notes/tägliche notiz.md"] == names(files)
    assert b"one\x00two" == read(files, "notes/tägliche notiz.md")
    asyncio.run(files.remove("a.txt"))

    assert ["notes/tägliche notiz.md"] == names(files)


@pytest.mark.parametrize("path", ["a/b", "a//b", "a\\b", "./a/./b", "a/b/"])
def test_a_file_is_named_as_it_is_listed(files: SessionFiles, path: str) -> None:
    """However its path is spelled, whoever wrote it finds it in the list."""
    written = asyncio.run(files.write(path, pieces(b"x")))
    found, content = files.open(path)
    content.close()

    assert ["a/b"] * 2 == [written.path, found.path]
    assert ["a/b"] == names(files)


@pytest.mark.parametrize(
    "path",
    [
        *(
            "../secret.txt",
            "a/../../secret.txt",
            "/etc/passwd",
            "..",
            ".",
            "",
            " ",
            "a\0b",
            "~/x",
            "C:\\x",
            "..\\secret.txt",
        ),
        *(
            "..\\secret.txt",
            "out/secret.txt",
            "link.txt",
            ".hidden",
            "a/.koi/x",
            "x" * 2000,
            "\n",
            "//etc/passwd",
            "a/\u202ex",
        ),
    ],
)
def test_no_path_leads_out(files: SessionFiles, path: str, tmp_path: Path) -> None:
    """Steps upward, absolute paths, links, hidden names and what is no path are refused, whatever is to be done."""
    files.root.mkdir()
    os.symlink(tmp_path, files.root / "out")
    os.symlink(tmp_path / "secret.txt", files.root / "link.txt")
    with pytest.raises(KoiError):
        read(files, path)
    with pytest.raises(KoiError):
        write(files, path, b"overwritten")
    with pytest.raises(KoiError):
        asyncio.run(files.remove(path))

    assert ("secret", []) == ((tmp_path / "secret.txt").read_text(), names(files))


def test_a_link_that_comes_later_is_not_followed(files: SessionFiles, tmp_path: Path) -> None:
    """A program that replaces a folder by a link while a file is sent does not have it written elsewhere."""
    (tmp_path / "elsewhere").mkdir()

    async def content() -> AsyncIterator[bytes]:
        yield b"one"
        (files.root / "notes").rename(files.root / "moved")
        os.symlink(tmp_path / "elsewhere", files.root / "notes")
        yield b"two"

    (files.root / "notes").mkdir(parents=True)
    asyncio.run(files.write("notes/a.txt", content()))

    assert ([], ["moved/a.txt"]) == (os.listdir(tmp_path / "elsewhere"), names(files))


def test_what_is_too_large_is_refused_early(files: SessionFiles) -> None:
    """Before a byte is taken where the size is said, else as soon as there are too many; nothing stays."""
    taken = []

    async def content() -> AsyncIterator[bytes]:
        for _ in range(1000):
            taken.append(1)
            yield b"x" * 400

    write(files, "small", b"x" * 900)
    for size, most in ((2 << 30, 0), (None, 2)):
        taken.clear()
        with pytest.raises(FileTooLargeError):
            asyncio.run(files.write("large", content(), size))
        assert len(taken) == most

    assert [("small", 900)] == [(file.path, file.size) for file in asyncio.run(files.list_all())]
    assert ["small"] == os.listdir(files.root)


def test_settings_and_devices_are_no_files(files: SessionFiles) -> None:
    """Nobody may send what says which servers programs start; pipes are neither listed nor waited for."""
    files.root.mkdir()
    os.mkfifo(files.root / "pipe")
    for path in ("koi.toml", ".mcp.json", "a/KOI.TOML"):
        with pytest.raises(KoiError):
            write(files, path, b"x")
    with pytest.raises(KoiError):
        read(files, "pipe")

    assert [] == names(files)


@pytest.mark.parametrize(
    ("limits", "taken", "runs"),
    [
        (SpaceLimits(1000, 1500), {}, ["files"] * 4),
        (SpaceLimits(1000, 1500, user=2000), {"other": 500}, ["files"] * 4),
        (SpaceLimits(1000, 5000, user=1500), {}, ["files", "other"] * 2),
        (SpaceLimits(1000, 5000, 5000, all=2000), {"of bob": 500}, ["files", "other", "of bob", "files"]),
    ],
)
def test_uploads_at_once_share_the_room(
    tmp_path: Path, limits: SpaceLimits, taken: dict[str, int], runs: list[str]
) -> None:
    """Of a session, of a user, and of all; what one has reserved is none of the room of another."""
    for run, size in taken.items():
        (tmp_path / run).mkdir()
        (tmp_path / run / "before").write_bytes(b"x" * size)
    space = space_in(tmp_path, limits)

    async def upload(number: int, run: str, size: int | None) -> bool:
        try:
            await files_in(space, tmp_path, run).write(f"new{number}", pieces(*[b"x" * 100] * 9), size)
        except FileTooLargeError:
            return False
        return True

    async def twice() -> list[int]:
        sizes = (900, None)
        return [sum(await asyncio.gather(*(upload(n, run, size) for n, run in enumerate(runs)))) for size in sizes]

    files = [path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()]
    assert [1, 0] == asyncio.run(twice())
    assert sum(files) + 900 == sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())


def test_what_is_left_of_uploads_goes(tmp_path: Path) -> None:
    """Of a process that was killed, also in the sessions of others; hidden files of agents count and stay."""
    part = f".{'0a' * 8}.part"
    for name in (f"files/notes/{part}", f"of bob/{part}", "files/.hidden"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x" * 1200)
    files = files_in(space_in(tmp_path, SpaceLimits(1000, 1500)), tmp_path)
    with pytest.raises(FileTooLargeError, match="room for 300 bytes"):
        write(files, "new", b"x", size=400)
    write(files, "new", b"x" * 300, size=300)

    assert [".hidden", "new"] == sorted(path.name for path in tmp_path.rglob("*") if path.is_file())


def test_uploads_one_after_the_other_share_the_room(tmp_path: Path) -> None:
    """Whichever session of a user they are for, and however soon they follow each other."""
    space = space_in(tmp_path, SpaceLimits(1000, 1000, user=1500))
    write(files_in(space, tmp_path, "other"), "a", b"x", size=1)
    write(files_in(space, tmp_path), "a", b"x" * 900, size=900)
    with pytest.raises(FileTooLargeError, match="all files of your sessions"):
        write(files_in(space, tmp_path, "other"), "b", b"x" * 900, size=900)
    write(files_in(space, tmp_path, "of bob"), "b", b"x" * 900, size=900)


def test_copies_of_files_need_room_for_all_of_them(tmp_path: Path) -> None:
    """The size of one file does not count for them, that of the files of a user does."""

    async def copy(size: int) -> None:
        space = space_in(tmp_path, SpaceLimits(file=100, session=1000, user=1500))
        async with space.reserve("new", size, "ada"):
            (tmp_path / "new").mkdir()
            (tmp_path / "new/a").write_bytes(b"x" * size)

    asyncio.run(copy(900))
    shutil.move(tmp_path / "new", tmp_path / "other")
    with pytest.raises(FileTooLargeError, match="all files of your sessions"):
        asyncio.run(copy(900))
