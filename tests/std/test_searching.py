"""`grep`: what a scan line by line gives, in bounded time, whatever the files and the pattern are."""

from __future__ import annotations

import asyncio
import os
import random
import re
import time
from pathlib import Path
from typing import Any

import pytest

from koi_lang.errors import AgentError, KoiError, PatternError, PermissionDeniedError
from koi_lang.std.code.searching import MAX_LINE_CHARS, SearchRequest, grep
from koi_lang.std.code.tree_texts import MAX_BYTES
from koi_lang.system.open_folders import OpenFolders
from tests.std.project_folders import fill, give

WORDS = (
    "foo",
    "bar",
    "Foo",
    "",
    " ",
    "  ",
    "import x",
    "_",
    "é",
    "ß",
    "\t",
    "foo bar",
    "a.b",
    "x" * 30,
    "0",
    "名",
    "if (",
)
# Expressions that mean the same to Python and to JavaScript.
PATTERNS = (
    *("foo", "FOO", "^foo", "foo$", "^$", "^", "$", r"\bfoo\b", r"foo\s+bar", r"\s+$", r"^\s*$", "[^a-z]", "o{2}"),
    *("foo|bar", "(?=foo)", "foo(?! bar)", "(?<!_)foo", "(?!.*o)^.", "^(?:(?!foo).)*$", r"a\.b", "[^x]*b", "(o)\\1"),
    *("^.{0,3}$", "foo.*bar", "(?:foo|bar)+?$", "x+x+x", r"\d", "[^\\n]", r"(?<=\s)b", "名", r"\S\s\S", r"if \("),
    *("x*", "é", "(?!x)"),
)
BAD_PATTERNS = ("(", "[a", "a{2,1}", "*a", "", None, 3, "(a{999}){999}", "\\", "a" * 1001, "(?P<a>b)")


def search(root: Path, pattern: Any, *, may_read: Any = lambda path: True, **more: Any) -> dict[str, Any]:
    """What `grep` gives."""
    return give(grep(root, SearchRequest(pattern, **more), may_read=may_read))


def found(given: dict[str, Any]) -> list[tuple[str, int, str]]:
    """Places and lines of a result."""
    return [(each["file"], each["line"], each["text"]) for each in given["results"]]


def naive(root: Path, pattern: str, flags: int) -> list[tuple[str, int, str]]:
    """The same by splitting all files into lines."""
    out = []
    for path in sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()):
        text = (root / path).read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
        lines = text.split("\n")
        lines = lines[:-1] if lines[-1] == "" else lines
        out += [(path, number, line) for number, line in enumerate(lines, 1) if re.search(pattern, line, flags)]
    return out


def write_tree(chance: random.Random, root: Path) -> None:
    """A few files of a few lines, some with other ends of lines, or none at their end."""
    for number in range(chance.randint(1, 6)):
        end = chance.choice(("\n", "\n", "\r\n"))
        lines = [
            "".join(chance.choice(WORDS) for _ in range(chance.randint(0, 4))) for _ in range(chance.randint(0, 12))
        ]
        text = chance.choice(("", "", "\ufeff")) + end.join(lines) + end * chance.randint(0, 2)
        fill(root, {chance.choice(("", "a/", "a/b/")) + f"{number}.txt": text})


@pytest.mark.parametrize("count", [5, pytest.param(50, marks=pytest.mark.thorough)])
def test_a_scan_line_by_line_agrees(tmp_path: Path, count: int) -> None:
    """On random trees every pattern finds the lines, in the order, that splitting all files into lines finds."""
    total = 0
    for seed in range(count):
        chance = random.Random(seed)
        root = tmp_path / str(seed)
        write_tree(chance, root)
        for pattern in PATTERNS:
            ignore_case = chance.random() < 0.5
            expected = naive(root, pattern, (re.IGNORECASE if ignore_case else 0) | re.ASCII * ("\\b" in pattern))
            actual = search(root, pattern, ignore_case=ignore_case, max_matches=1000)
            assert expected == found(actual), (seed, pattern)
            total += len(expected)

    assert total > 100 * count


def test_lines_around_a_match(tmp_path: Path) -> None:
    """With context the lines before and after are there, as far as there are any."""
    fill(tmp_path, {"a.txt": "1\n2\nx3\n4\n5\n6\nx7"})
    given = search(tmp_path, "x", context=2)["results"]

    assert [["1", "2"], ["5", "6"]] == [each["before"] for each in given]
    assert [["4", "5"], []] == [each["after"] for each in given]


def test_results_are_cut(tmp_path: Path) -> None:
    """More than is wanted is told as such, and just as much as is wanted is not."""
    fill(tmp_path, {"a.txt": "x\n" * 3, "b.txt": "x\n" * 3})
    given = search(tmp_path, "x", max_matches=4)

    assert (4, True) == (given["count"], given["truncated"])
    assert ("b.txt", 1, "x") == found(given)[-1]
    assert not search(tmp_path, "x", max_matches=6)["truncated"]


def test_where_it_is_searched(tmp_path: Path) -> None:
    """A folder, a file, and patterns of files narrow it; ignored files are left out unless they are named."""
    names = ("a.py", "src/a.py", "src/b.js", "src/deep/a.py", "lib/c.py")
    fill(tmp_path, {**dict.fromkeys(names, "x"), ".gitignore": "lib/", ".env": "x", "src/key.pem": "x", "p/q.py": "x"})
    (tmp_path / "link").symlink_to("src")

    def files(**where: Any) -> list[str]:
        given = search(tmp_path, "^x", may_read=lambda path: not path.startswith("p/"), **where)
        return [each["file"] for each in given["results"]]

    assert ["a.py", "src/a.py", "src/b.js", "src/deep/a.py"] == files()
    assert ["src/a.py", "src/b.js", "src/deep/a.py"] == files(path="src/") == files(path="link")
    assert ["src/a.py", "src/deep/a.py"] == files(path=str(tmp_path / "src"), glob="*.py")
    assert ["src/b.js"] == files(glob="!**/{a,c}.py") == files(glob="src/*.js")
    assert ["lib/c.py"] == files(path="lib") == files(path="lib/c.py")


@pytest.mark.parametrize("path", ["../x", "/etc", "src/../..", ".env", ".git", "out", "a\0b", "~/x"])
def test_closed_places_are_refused(tmp_path: Path, path: str) -> None:
    """What lies outside, by a link too, or is closed is refused in a sentence."""
    fill(tmp_path, {".env": "x", ".git/config": "x"})
    (tmp_path / "out").symlink_to("/etc")
    with pytest.raises(AgentError) as caught:
        search(tmp_path, "x", path=path)

    assert caught.value.help


def test_rules_of_the_person_close_a_file(tmp_path: Path) -> None:
    """A file that may not be read is not searched when it is named, either."""
    fill(tmp_path, {"a.py": "x"})
    with pytest.raises(PermissionDeniedError):
        search(tmp_path, "x", path="a.py", may_read=lambda path: False)


def test_a_place_that_is_missing(tmp_path: Path) -> None:
    """What is not there is told, with what tells what is."""
    given = search(tmp_path, "x", path="nowhere")

    assert not given["success"]
    assert "`nowhere`" in given["error"]


@pytest.mark.parametrize(
    "pattern", ["(", "[a", "a{2,1}", "*a", "", None, 3, "(a{999}){999}", "\\", "a" * 1001, "(?P<a>b)"]
)
def test_bad_patterns(tmp_path: Path, pattern: Any) -> None:
    """What is no expression is refused in one sentence."""
    with pytest.raises(KoiError) as caught:
        search(tmp_path, pattern)

    assert "\n" not in caught.value.message


@pytest.mark.parametrize("given", [{"context": -1}, {"context": 1.5}, {"max_matches": 0}, {"max_matches": "many"}])
def test_bad_numbers(tmp_path: Path, given: dict[str, Any]) -> None:
    """Numbers that are none are refused, with what to give."""
    with pytest.raises(AgentError) as caught:
        search(tmp_path, "x", **given)

    assert "whole number" in str(caught.value.help)


def test_catastrophic_patterns_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pattern that backtracks without end is stopped, and the loop goes on meanwhile."""
    monkeypatch.setattr("koi_lang.std.code.searching.LIMIT_S", 0.5)
    fill(tmp_path, {"a.txt": "c" + "a" * 60 + "b\n"})
    gaps: list[float] = []

    async def watch() -> None:
        while True:
            start_s = time.thread_time()
            await asyncio.sleep(0.01)
            gaps.append(time.thread_time() - start_s)

    async def both() -> None:
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(watch())
            with pytest.raises(PatternError) as caught:
                await grep(tmp_path, SearchRequest("c(a|a|aa)+$"))
            watching.cancel()
            assert caught.value.help

    asyncio.run(both())

    assert len(gaps) > 3
    assert max(gaps) < 1


def test_what_is_no_text_is_skipped(tmp_path: Path) -> None:
    """Binary files, other encodings and large files are counted; pipes and what cannot be opened hold up nothing."""
    fill(tmp_path, {"a.bin": b"x\0", "b.txt": "né x".encode("latin-1"), "c.txt": "x", "d.txt": "x".encode("utf-16")})
    with open(tmp_path / "huge.txt", "wb") as file:
        file.truncate(2 * 2**30)
    (tmp_path / "edge.txt").write_bytes(b"y" * (MAX_BYTES + 1))
    os.mkfifo(tmp_path / "pipe")
    given = search(tmp_path, "x")

    assert [("c.txt", 1, "x")] == found(given)
    assert {"binary": 2, "encoding": 1, "large": 2} == given["skipped"]


def test_files_that_cannot_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that may not be read is counted; one that has vanished is not there."""
    fill(tmp_path, {"a/a.txt": "x", "gone/b.txt": "x", "c.txt": "x"})
    opened = OpenFolders.open

    def refuse(folders: OpenFolders, path: str) -> int:
        if path == "a":
            raise PermissionError(13, "Permission denied", path)
        if path == "gone":
            raise FileNotFoundError(2, "No such file", path)
        return opened(folders, path)

    monkeypatch.setattr(OpenFolders, "open", refuse)
    given = search(tmp_path, "x")

    assert [("c.txt", 1, "x")] == found(given)
    assert {"unreadable": 1} == given["skipped"]


def test_long_lines_are_clipped_around_the_match(tmp_path: Path) -> None:
    """Of a long line what stands around the match is given."""
    fill(tmp_path, {"a.js": "a" * 5000 + "needle" + "b" * 5000})
    (line,) = (each["text"] for each in search(tmp_path, "needle")["results"])

    assert "needle" in line
    assert MAX_LINE_CHARS + 2 == len(line)
    assert line[0] == line[-1] == "…"


def test_case(tmp_path: Path) -> None:
    """Letter case does not count unless that is wanted; `(?i)` is understood."""
    fill(tmp_path, {"a": "Foo\nfoo\n"})

    assert [2, 1, 2] == [
        search(tmp_path, "foo")["count"],
        search(tmp_path, "foo", ignore_case=False)["count"],
        search(tmp_path, "(?i)foo", ignore_case=False)["count"],
    ]


def test_forty_at_once(tmp_path: Path) -> None:
    """Many searches at a time give what each gives alone."""
    fill(tmp_path, {f"{number}.txt": f"line {number}\n" * 3 for number in range(100)})

    async def search_all() -> list[dict[str, Any]]:
        return await asyncio.gather(*(grep(tmp_path, SearchRequest(f"line {number}$")) for number in range(40)))

    given = asyncio.run(search_all())

    assert [3] * 40 == [each["count"] for each in given]
    assert [f"{number}.txt" for number in range(40)] == [each["results"][0]["file"] for each in given]
