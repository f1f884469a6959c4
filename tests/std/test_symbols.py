"""`find_symbol`: where names are declared, in files of several languages at once."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from koi_lang.errors import AgentError
from koi_lang.std.code.symbols import MAX_FOUND, MAX_KOI, find_symbol
from tests.std.project_folders import fill, give


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project in several languages, in which much is called `parse`."""
    return fill(
        tmp_path,
        {
            "a.py": "class Reader:\n    def parse(self): ...\n\n\ndef use():\n    parse = 1\n    call(parse=2)\n",
            "b.ts": "export class Writer {\n  parse(text: string) {\n    return parse(text)\n  }\n}\n",
            "c.koi": "role R { can execute }\nagent A : R {\n  on parse(args: Json) { return args }\n}\n",
            "d.py": "from a import parse\nprint(parse)\n",
            "e.md": "# parse\n\nparse\n",
            ".gitignore": "lib/\n",
            "lib/f.py": "def parse(): ...\n",
            "private/g.py": "def parse(): ...\n",
            "secrets.yml": "parse: 1\n",
        },
    )


def find(root: Path, name: Any) -> dict[str, Any]:
    """What the tool gives where files in `private` may not be read."""
    return give(find_symbol(root, name, may_read=lambda path: not path.startswith("private/")))


def test_declarations_are_found(root: Path) -> None:
    """What is called so is told with its file, its line and how it was found; uses are not."""
    given = find(root, "parse")

    assert [
        ("a.py", 2, "method", "Reader", "ast"),
        ("b.ts", 2, "method", "Writer", "patterns"),
        ("c.koi", 3, "handler", "A", "parser"),
        ("e.md", 1, "heading", None, "patterns"),
    ] == [(each["file"], each["line"], each["kind"], each.get("inside"), each["method"]) for each in given["results"]]
    assert (4, False) == (given["count"], given["truncated"])


@pytest.mark.parametrize("name", ["Writer.parse", "Writer::parse", "Writer#parse", " Writer.parse "])
def test_names_in_classes(root: Path, name: str) -> None:
    """What stands before the name says what it is in."""
    assert ["b.ts"] == [each["file"] for each in find(root, name)["results"]]


def test_nothing_is_found(root: Path) -> None:
    """That there is none is no failure, and what to do is told."""
    given = find(root, "nowhere")

    assert (True, 0) == (given["success"], given["count"])
    assert "`grep`" in given["hint"]


@pytest.mark.parametrize("name", ["", "two words", None, 3, "x" * 201, "."])
def test_bad_names(root: Path, name: Any) -> None:
    """What is no name is refused in a sentence."""
    with pytest.raises(AgentError) as caught:
        find(root, name)

    assert caught.value.help


def test_many_are_cut(tmp_path: Path) -> None:
    """At most 50 are told."""
    fill(tmp_path, {f"{number:03}.py": "def parse(): ...\n" for number in range(MAX_FOUND + 10)})
    given = find(tmp_path, "parse")

    assert (MAX_FOUND, True) == (given["count"], given["truncated"])


def test_many_files_of_koi(tmp_path: Path) -> None:
    """Some are parsed, the others looked at by patterns, so that what runs is not held up."""
    text = "role R { can execute }\nagent A : R {\n  on parse(args: Json) { return args }\n}\n"
    fill(tmp_path, {f"{number:03}.koi": text for number in range(MAX_KOI + 5)})
    given = find(tmp_path, "parse")

    assert MAX_KOI + 5 == given["count"]
    assert {"parser", "patterns"} == {each["method"] for each in given["results"]}


def test_a_long_line_takes_no_square_of_time(tmp_path: Path) -> None:
    """A name that stands in it very often is looked for once."""
    (tmp_path / "a.py").write_text("x " * 50_000 + "\ny = 1\n")
    started = time.process_time()

    found = asyncio.run(find_symbol(tmp_path, "x"))

    assert time.process_time() - started < 5
    assert found["results"] == []
