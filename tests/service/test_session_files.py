"""The files of a session: a path never leads out of its folder, and what is too large leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from koi_lang.errors import KoiError
from koi_lang.service.session_files import FileTooLargeError, SessionFiles


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
    return SessionFiles(tmp_path / "files", 1000, 1500)


def test_what_is_written_is_listed_read_and_removed(files: SessionFiles) -> None:
    """Files of any content and name come back as they were sent."""
    write(files, "notes/tägliche notiz.md", b"one\x00", b"two")
    write(files, "a.txt", b"")
    assert ["a.txt", "notes/tägliche notiz.md"] == names(files)
    assert b"one\x00two" == read(files, "notes/tägliche notiz.md")
    asyncio.run(files.remove("a.txt"))

    assert ["notes/tägliche notiz.md"] == names(files)


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
