"""Checking again after a change: the same result as from the beginning, and only what has changed is read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from random import Random

import pytest

from koi_lang.compiler import nodes as n
from koi_lang.compiler.compile import check_program
from koi_lang.compiler.declaration_cache import DeclarationCache
from koi_lang.compiler.lalr import parse_declarations
from koi_lang.compiler.parser import parse
from koi_lang.compiler.syntax_errors import Surroundings
from koi_lang.lsp.workspace import IncrementalChecker
from koi_lang.source import Source, Span
from tests.support import HERE, FolderFiles

FOLDERS = (HERE.parent / "examples", HERE.parent / "stdlib_skills", HERE / "data" / "clean")
PROGRAMS = sorted(path for folder in FOLDERS for path in folder.rglob("*.koi"))
EDITS = 6
TYPED = [
    *("(", ")", "{", "}", '"', "'", "`", '"""', "/*", "*/", "//", "\n", " ", "x", "1 +", "=>"),
    *("const x = ", 'peers.event("', "on hello(", "agent B : ", "role Extra { can go }\n", "\nagent ", "skill S {\n"),
]


def test_imports_that_did_not_change_are_not_read_again(tmp_path: Path) -> None:
    """After a change of one file the trees of the others are those of the check before."""
    (tmp_path / "roles.koi").write_text("role Worker { can execute }\n")
    (tmp_path / "main.koi").write_text('import "./roles.koi"\nagent Ada : Worker { on go() { return 1 } }\n')
    checker, files = IncrementalChecker(), FolderFiles(tmp_path)
    before = checker.check("main.koi", files)
    (tmp_path / "main.koi").write_text('import "./roles.koi"\nagent Ada : Wroker { on go() { return 1 } }\n')

    after = checker.check("main.koi", files)

    assert after.analysed[1].unit.program is before.analysed[1].unit.program
    assert after.diagnostics == check_program("main.koi", files).diagnostics
    assert [problem.code for problem in after.errors] == ["E0201"]


def form(node: object) -> object:
    """A tree as values that can be compared."""
    if isinstance(node, n.Node):
        return type(node).__name__, [form(getattr(node, field.name)) for field in fields(node)]  # type: ignore[arg-type]
    return [form(item) for item in node] if type(node) is tuple else node


def edits(random: Random, text: str) -> Iterator[str]:
    """A text after each of some changes such as a person makes: typing, deleting, moving lines."""
    for _ in range(EDITS):
        at = random.randrange(len(text) + 1)
        kind = random.randrange(4)
        if kind == 0:
            text = text[:at] + random.choice(TYPED) + text[at:]
        elif kind == 1:
            text = text[:at] + text[at + random.randrange(1, 30) :]
        elif kind == 2:
            lines = text.splitlines(keepends=True)
            first = random.randrange(len(lines) + 1)
            moved = lines[first : first + random.randrange(1, 12)]
            del lines[first : first + len(moved)]
            place = random.randrange(len(lines) + 1)
            text = "".join([*lines[:place], *moved, *lines[place:]])
        else:
            start = text.rfind("\n", 0, at) + 1
            text = text[:start] + text[start:at] + text[start:]
        yield text


@pytest.mark.sampled(3)
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_change_gives_what_a_fresh_reading_gives(path: Path) -> None:
    """After any row of changes the tree with its places, the gaps and the messages are those of a fresh reading."""
    text, random, cache = path.read_text("utf-8"), Random(path.stem), DeclarationCache()
    for changed in [text, *edits(random, text), text]:
        source = Source("test.koi", changed)

        program, problems = parse(source, cache)

        fresh, expected = parse(source)
        assert form(program) == form(fresh)
        assert problems == expected


@pytest.mark.sampled(30)
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_sections_are_read_as_the_whole_is(path: Path) -> None:
    """A good file that is read in one go gives the same tree."""
    source = Source("test.koi", path.read_text("utf-8"))

    parsed = parse_declarations(source, Span(0, len(source.text)), Surroundings())

    assert form(parse(source)[0].declarations) == form(parsed.declarations)


def test_only_the_declaration_that_changed_is_read_again() -> None:
    """Other declarations before the change stay the same objects."""
    cache, text = DeclarationCache(), "role A { can go }\n\nrole B { can go }\n\nrole C { can go }\n"
    before, _ = parse(Source("test.koi", text), cache)

    after, _ = parse(Source("test.koi", text.replace("B", "D")), cache)

    same = [old is new for old, new in zip(before.declarations, after.declarations, strict=True)]
    assert same == [True, False, True]


UNINDENTED = """skill Sums {
affordance "adds"
agent Ada : Worker { on go() { return 1 } }
export function add(a) {
return `
role Text { can go }
agent ${a}`
}
}
role Worker { can execute }
"""


def test_brackets_and_texts_may_hold_what_looks_like_declarations() -> None:
    """The beginning of a line that could be a declaration is none inside of something that is closed behind it."""
    program, problems = parse(Source("test.koi", UNINDENTED))

    assert problems == []
    assert ["Skill", "Role"] == [type(declaration).__name__ for declaration in program.declarations]
