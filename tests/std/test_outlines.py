"""`outline`: what files declare, by syntax tree, parser or patterns, and which of these it was."""

from __future__ import annotations

import ast
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from koi_lang.errors import PermissionDeniedError
from koi_lang.std.code import outlines as by_tree
from koi_lang.std.code.outlines import MAX_SYMBOLS, outline
from tests.std.project_folders import fill, give


def outlined(root: Path, name: str, content: str | bytes) -> dict[str, Any]:
    """What the tool gives for a file of some content."""
    return give(outline(fill(root, {name: content}), name))


def names(given: dict[str, Any]) -> list[tuple[str, str, int, str]]:
    """The name, kind, line and place of each symbol."""
    return [(each["name"], each["kind"], each["line"], each.get("inside", "")) for each in given["symbols"]]


PYTHON = '''LIMIT: int = 3
a, b = 1, 2

if LIMIT:
    import os
else:
    os = None

@decorated
async def load(
    path: str,  # from where
    *, strict: bool = False,
) -> bytes:
    """Load."""
    def inner(): ...

class Reader(Base):
    size = 0

    class Inner:
        def deep(self): pass

    @property
    def text(self) -> str:
        return "\\d"
'''


def test_python_is_read_as_python(tmp_path: Path) -> None:
    """Classes, functions, methods and variables come from the syntax tree, with their ends and signatures."""
    given = outlined(tmp_path, "a.py", PYTHON)
    load = next(each for each in given["symbols"] if each["name"] == "load")

    assert "ast" == given["method"]
    assert [
        ("LIMIT", "variable", 1, ""),
        ("a", "variable", 2, ""),
        ("b", "variable", 2, ""),
        ("os", "variable", 7, ""),
        ("load", "function", 10, ""),
        ("Reader", "class", 17, ""),
        ("size", "field", 18, "Reader"),
        ("Inner", "class", 20, "Reader"),
        ("deep", "method", 21, "Reader.Inner"),
        ("text", "method", 24, "Reader"),
    ] == names(given)
    assert (15, "async def load( path: str, # from where *, strict: bool = False, ) -> bytes") == (
        load["end"],
        load["text"],
    )


HOSTILE = [
    "def f(:\n  x",
    "a" + ".b" * 100_000 + "\ndef f(): ...",
    "(" * 5000,
    "\0",
    "lambda: " * 5000 + "1",
    "x\rdef f(): ...",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_what_is_no_python(tmp_path: Path, text: str) -> None:
    """Code that Python does not read, or is nested without end, is looked at by patterns."""
    given = outlined(tmp_path, "a.py", text)

    assert "patterns" == given.get("method", "patterns")
    assert given["success"] is ("\0" not in text)


def test_deep_trees_do_not_exhaust_the_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the limit of Python's frames has been raised so far that a thread could end, no tree is built."""
    monkeypatch.setattr(sys, "getrecursionlimit", lambda: by_tree.MAX_FRAMES + 1)

    assert by_tree.python_symbols("x = 1") is None


def test_threads_that_parse_at_a_time_disturb_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Python mixes up two trees that are made at a time, a file is parsed again, and still has its names."""
    failures = [SystemError("AST constructor recursion depth mismatch (before=135, after=154)")] * 3

    def parse(*given: Any) -> ast.Module:
        if failures:
            raise failures.pop()
        return ast.Module([ast.Pass()], [])

    monkeypatch.setattr(ast, "parse", parse)

    assert by_tree.python_symbols("pass") == []
    assert failures == []


def test_warnings_about_read_code_are_not_told(tmp_path: Path) -> None:
    """What Python thinks of the code of a project is not printed, nor an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        given = outlined(tmp_path, "a.py", 'x = "\\d" is 1\n')

    assert ("ast", [("x", "variable", 1, "")]) == (given["method"], names(given))


KOI = """role Worker { can execute }
type Size = "small" | "large"
skill Math {
  const LIMIT = 3
  export function add(a: number, b: number): number { return a + b }
}
agent Adder : Worker {
  uses skill Math
  state { count: number = 0 }
  on add(args: Json) { return add(args.a, args.b) }
}
test "adds" { expect(1).toBe(1) }
"""


def test_koi_is_read_by_its_parser(tmp_path: Path) -> None:
    """Declarations of Koi come from the parser, with what is in agents and skills, also where parts are wrong."""
    given = outlined(tmp_path, "a.koi", KOI)
    broken = outlined(tmp_path, "b.koi", KOI + "agent {\nrole Other { can execute }\n")

    assert "parser" == given["method"] == broken["method"]
    assert [
        ("Worker", "role", 1, ""),
        ("Size", "type", 2, ""),
        ("Math", "skill", 3, ""),
        ("LIMIT", "variable", 4, "Math"),
        ("add", "function", 5, "Math"),
        ("Adder", "agent", 7, ""),
        ("count", "state", 9, "Adder"),
        ("add", "handler", 10, "Adder"),
        ("adds", "test", 12, ""),
    ] == names(given)
    assert names(given) == names(broken)[: len(names(given))]


def test_long_files_of_koi_are_not_parsed(tmp_path: Path) -> None:
    """They would hold up what runs; patterns find the same."""
    given = outlined(tmp_path, "a.koi", KOI + "// more\n" * 10_000)

    assert "patterns" == given["method"]
    assert {("Math", "skill", 3, ""), ("add", "handler", 10, "Adder")} < {*names(given)}


def test_what_cannot_be_outlined(tmp_path: Path) -> None:
    """Unknown kinds of files, folders, missing and binary files are told in a sentence with advice."""
    fill(tmp_path, {"a.xyz": "x", "folder/a.py": "", "b.py": b"\x7fELF\0\1", "c.py": "é".encode("latin-1")})
    given = [give(outline(tmp_path, path)) for path in ("a.xyz", "folder", "b.py", "c.py", "missing.py", "folder/b.py")]

    assert [False] * 6 == [each["success"] for each in given]
    assert "`folder/a.py`" in given[5]["hint"]
    with pytest.raises(PermissionDeniedError):
        give(outline(tmp_path, "../a.py"))


def test_large_outlines_are_cut(tmp_path: Path) -> None:
    """At most 1,000 names are told, with how many there are."""
    given = outlined(tmp_path, "a.py", "".join(f"x{number} = 1\n" for number in range(MAX_SYMBOLS + 1)))

    assert (MAX_SYMBOLS, True) == (len(given["symbols"]), given["truncated"])
