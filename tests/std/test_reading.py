"""`read_file`: numbered lines, images and folders, and one sentence for everything else that a path may lead to."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from koi_lang.errors import AgentError, PermissionDeniedError
from koi_lang.runtime.model_calls.images import images_in
from koi_lang.std.code import opened_files
from koi_lang.std.code.outlines import outline
from koi_lang.std.code.reading import MAX_ENTRIES, MAX_LINE_CHARS, MAX_LINES, MAX_SHOWN, read_file
from tests.pictures import png
from tests.std.project_folders import fill, give


def read(root: Path, path: str, **more: Any) -> dict[str, Any]:
    """What the tool gives."""
    return give(read_file(root, path, **more))


def test_lines_have_numbers(tmp_path: Path) -> None:
    """A file is given as its lines with their numbers, and what they are of how many."""
    fill(tmp_path, {"src/a.py": "one\n\ttwo\n\nfour\n"})

    assert {
        "success": True,
        "path": "src/a.py",
        "content": "    1\tone\n    2\t\ttwo\n    3\t\n    4\tfour",
        "totalLines": 4,
        "from": 1,
        "to": 4,
    } == read(tmp_path, "src/a.py")


def test_a_piece_of_a_file(tmp_path: Path) -> None:
    """With an offset and a limit some lines are given, and where to go on."""
    fill(tmp_path, {"a": "".join(f"{number}\n" for number in range(1, 11))})
    given = read(tmp_path, "a", offset=4, limit=3.0)

    assert ("    4\t4\n    5\t5\n    6\t6", 4, 6) == (given["content"], given["from"], given["to"])
    assert (True, "go on with `offset` 7") == (given["truncated"], given["hint"])
    assert "truncated" not in read(tmp_path, "a", offset=8, limit=10**30)


@pytest.mark.parametrize("limit", [0, 1, 10**12])
def test_limits_are_kept(tmp_path: Path, limit: int) -> None:
    """No limit gives more than 2,000 lines, and none at all is none."""
    fill(tmp_path, {"a": "x\n" * 5000})
    given = read(tmp_path, "a", limit=limit)

    assert min(limit, MAX_LINES) == len(given["content"].splitlines())
    assert (1, min(limit, MAX_LINES), True) == (given["from"], given["to"], given["truncated"])


def test_large_pieces_are_cut(tmp_path: Path) -> None:
    """What is given stays below 50 KB, whatever the lines are; long ones are cut."""
    fill(tmp_path, {"wide": "名" * 900 + "\n" + ("名" * 900 + "\n") * 99, "long": "a" * 10_000 + "\nb\n"})
    wide, long = read(tmp_path, "wide"), read(tmp_path, "long")

    assert MAX_SHOWN * 0.9 < len(wide["content"].encode()) <= MAX_SHOWN
    assert f"go on with `offset` {wide['to'] + 1}" == wide["hint"]
    assert f"    1\t{'a' * MAX_LINE_CHARS}… (8,000 more characters)\n    2\tb" == long["content"]


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"a", ["a"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"a\r\nb\nc", ["a", "b", "c"]),
        (b"\xef\xbb\xbfa\n", ["a"]),
        (b"a\n\n", ["a", ""]),
        ("é 名".encode(), ["é 名"]),
        (b"a\x0cb\n", ["a\x0cb"]),
    ],
)
def test_ends_of_lines(tmp_path: Path, data: bytes, lines: list[str]) -> None:
    """Lines end as in editors, whatever they end with; a byte order mark is none of the text."""
    fill(tmp_path, {"a": data})
    given = read(tmp_path, "a")

    assert len(lines) == given["totalLines"] == given["to"]
    assert "\n".join(f"{number:>5}\t{line}" for number, line in enumerate(lines, 1)) == given["content"]


def test_images_are_images(tmp_path: Path) -> None:
    """What models see is given as an image, by its content and not by its name."""
    fill(tmp_path, {"picture.txt": png(), "empty.png": "", "no.png": "no image"})
    given = read(tmp_path, "picture.txt")

    assert ("image", "image/png") == (given["type"], given["image"]["mimeType"])
    assert 1 == len(images_in(given))
    assert [0, 1] == [read(tmp_path, name)["totalLines"] for name in ("empty.png", "no.png")]


def test_folders_are_lists(tmp_path: Path) -> None:
    """A folder is given as what is in it, without what is closed, leads out or cannot be written."""
    names = ("b.py", ".env", ".env.example", ".git/x", "src/x", ".koi/x", "hidden.txt", ".github/x", "d\ne")
    fill(tmp_path, dict.fromkeys(names, ""))
    for name, target in {"out": "/etc", "in": "src", "secret": ".env", "to": "b.py", "gone": "nowhere"}.items():
        (tmp_path / name).symlink_to(target)
    os.close(os.open(os.fsencode(tmp_path) + b"/\xff", os.O_CREAT))
    given = give(read_file(tmp_path, ".", may_read=lambda path: path != "hidden.txt"))

    assert [".env.example", ".github/", "b.py", "gone", "in/", "src/", "to"] == given["entries"]
    assert ("directory", ".") == (given["type"], given["path"])
    assert ["x"] == read(tmp_path, "src/")["entries"] == read(tmp_path, "in")["entries"]


def test_large_folders_are_cut(tmp_path: Path) -> None:
    """Of a large folder the first names are given, with how many there are."""
    fill(tmp_path, {f"a/{number:05}": "" for number in range(MAX_ENTRIES + 1)})
    given = read(tmp_path, "a")

    assert (MAX_ENTRIES, True) == (len(given["entries"]), given["truncated"])
    assert "1,001" in given["hint"]


@pytest.mark.parametrize("path", ["./src/a.py", "src//a.py", "link.py", "way/a.py", "{root}/src/a.py", "src\\a.py"])
def test_ways_to_a_file(tmp_path: Path, path: str) -> None:
    """Absolute paths and links within the project lead to it, and the result says where it is."""
    fill(tmp_path, {"src/a.py": "x"})
    (tmp_path / "link.py").symlink_to("src/a.py")
    (tmp_path / "way").symlink_to("src")

    assert "src/a.py" == read(tmp_path, path.replace("{root}", str(tmp_path)))["path"]


@pytest.mark.parametrize(
    "path", ["../x", "/etc/passwd", "out/passwd", ".env", "link", ".git/config", "a/../../x", "~/x", "SRC/.ENV", "C:/x"]
)
def test_closed_paths_are_refused(tmp_path: Path, path: str) -> None:
    """What lies outside or is closed is refused in a sentence that says what to do."""
    fill(tmp_path, {".env": "x", ".git/config": "x"})
    (tmp_path / "out").symlink_to("/etc")
    (tmp_path / "link").symlink_to(".env")
    with pytest.raises(PermissionDeniedError) as caught:
        read(tmp_path, path)

    assert caught.value.help


def test_a_link_that_changes_leads_nowhere(tmp_path: Path) -> None:
    """Rules count for the file that is opened, whatever a path led to when they were asked about it."""
    fill(tmp_path, {"open/a.txt": "open", "private/a.txt": "private"})
    (tmp_path / "link").symlink_to("private")
    for tool in (read_file, outline):
        with pytest.raises(PermissionDeniedError):
            give(tool(tmp_path, "link/a.txt", may_read=lambda path: path == "open/a.txt"))


@pytest.mark.parametrize("given", [{"offset": 0}, {"offset": "x"}, {"limit": -1}, {"offset": True}, {"limit": 1.5}])
def test_bad_numbers(tmp_path: Path, given: dict[str, Any]) -> None:
    """Numbers that are none are refused, with what to give."""
    with pytest.raises(AgentError) as caught:
        read(tmp_path, "a", **given)

    assert "whole number" in str(caught.value.help)


@pytest.mark.parametrize("path", ["", " ", "a\0b", "a\nb", 3, None, "x" * 5000])
def test_no_path(tmp_path: Path, path: Any) -> None:
    """What is no path, or a name that is too long, is told as such."""
    try:
        told = read(tmp_path, path)["error"]
    except AgentError as error:
        told = error.message

    assert "no path" in told or "too long" in told


def test_what_is_no_text(tmp_path: Path) -> None:
    """Another encoding is named, with how to convert it; binary and large files, pipes and offsets are told."""
    fill(
        tmp_path,
        {"latin": "né\n".encode("latin-1"), "wide": "x".encode("utf-16"), "bin": b"\x7fELF\0\1\2", "a": "1\n2"},
    )
    os.mkfifo(tmp_path / "pipe")
    with open(tmp_path / "huge", "wb") as file:
        file.truncate(2 * 2**30)
    given = {path: read(tmp_path, path) for path in ("latin", "wide", "bin", "pipe", "huge")}
    given["a"] = read(tmp_path, "a", offset=500)
    told = {
        "latin": "Latin-1",
        "wide": "UTF-16",
        "bin": "binary",
        "pipe": "pipe",
        "huge": "2,147,483,648 bytes",
        "a": "has 2 lines",
    }

    assert not any(each["success"] for each in given.values())
    assert dict.fromkeys(told, True) == {path: word in given[path]["error"] for path, word in told.items()}
    assert all(f"`{path}`" in each["error"] and "\n" not in each["error"] for path, each in given.items())


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("src/man.py", "Did you mean `src/main.py`?"),
        (".envv", "`list_files`"),
        ("x/y", "`list_files`"),
        ("a/b", "`list_files`"),
    ],
)
def test_missing_files(tmp_path: Path, path: str, hint: str) -> None:
    """A file that is missing is told with the one that is like it, unless that is closed."""
    fill(tmp_path, {"src/main.py": "", ".env": "", "a": ""})
    given = read(tmp_path, path)

    assert (False, f"there is no file `{path}`") == (given["success"], given["error"])
    assert hint in given["hint"]


@pytest.mark.parametrize(
    "error", [PermissionError(13, "Permission denied"), FileNotFoundError(2, "x"), OSError(40, "loop")]
)
def test_files_that_cannot_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError) -> None:
    """What the system says becomes a sentence."""
    fill(tmp_path, {"a": ""})

    def refuse(root: Path, file: Path) -> int:
        raise error

    monkeypatch.setattr(opened_files, "open_inside", refuse)
    given = read(tmp_path, "a")

    assert not given["success"]
    assert "`a`" in given["error"]
