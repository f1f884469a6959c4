"""Fixes: changes to a source that mend what a diagnostic tells of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from koi_lang.compiler.compile import check_program
from koi_lang.diagnostics import Diagnostic, Fix
from tests.support import FolderFiles, diagnostics_of, diagnostics_of_text
from tests.test_messages import PROGRAMS, name_of

MISSPELT = """role Worker { can delegate }
agent Asker : Worker { on ask(args: Json) { playbook "Say hello." budget { turn: 3 } } }
run Asker.ask({})
"""


def applied(diagnostic: Diagnostic, number: int = 0) -> str:
    """The text of the file of a diagnostic after one of its fixes, whose edits are all in that file."""
    text = diagnostic.place.source.text
    for edit in sorted(diagnostic.fixes[number].edits, key=lambda edit: edit.span, reverse=True):
        text = text[: edit.span.start] + edit.text + text[edit.span.end :]
    return text


def test_a_fix_writes_what_was_meant() -> None:
    """A misspelt limit has a fix; with it the program has no problem."""
    [problem] = diagnostics_of_text(MISSPELT)

    assert "replace with `turns`" == problem.fixes[0].title
    assert [] == diagnostics_of_text(applied(problem))


def test_data_of_a_diagnostic_has_its_fixes() -> None:
    """The JSON form has each edit with its path, its lines and columns from 1, and the new text."""
    [problem] = diagnostics_of_text(MISSPELT)

    [fix] = problem.as_data()["fixes"]
    place = {"path": problem.place.source.path, "line": 2, "column": 76, "end_line": 2, "end_column": 80}
    assert {"title": "replace with `turns`", "edits": [place | {"text": "turns"}]} == fix


# What is seen only when the name is right: a field that an action lacks, the permission that an imported part of the
# standard library needs, and its Python modules, which are not there in this test.
REVEALED = {"rules/all_of_a_payload": {"E0234"}, "rules/habits": {"E0220", "E0405"}}


def suggesting() -> list[Path]:
    """The golden programs of which some message says "did you mean"."""
    return [path for path in PROGRAMS if "did you mean" in path.with_suffix(".txt").read_text("utf-8")]


def problems_after(path: Path, fix: Fix) -> Counter[tuple[str, str]]:
    """What is wrong with a golden program after a fix: codes and messages."""
    texts: dict[str, str] = {}
    for edit in sorted(fix.edits, key=lambda edit: edit.span, reverse=True):
        text = texts.get(edit.source.path, edit.source.text)
        texts[edit.source.path] = text[: edit.span.start] + edit.text + text[edit.span.end :]
    return told(check_program(path.name, ChangedFiles(path.parent, texts)).diagnostics)


def told(problems: Iterable[Diagnostic]) -> Counter[tuple[str, str]]:
    """Problems by their codes and messages."""
    return Counter((problem.code, problem.message) for problem in problems)


class ChangedFiles(FolderFiles):
    """A folder in which some files have other texts."""

    def __init__(self, folder: Path, texts: dict[str, str]) -> None:
        super().__init__(folder)
        self.texts = texts

    def read(self, path: str) -> bytes:
        """The content of a file."""
        return self.texts[path].encode() if path in self.texts else super().read(path)


@pytest.mark.parametrize("path", suggesting(), ids=name_of)
def test_what_was_meant_mends_the_program(path: Path) -> None:
    """Where a message says "did you mean", its fix removes the problem and adds none."""
    before = diagnostics_of(path)
    suggested = [problem for problem in before if "did you mean" in str(problem.help)]
    assert suggested
    for problem in suggested:
        expected = told(before) - Counter([(problem.code, problem.message)])
        assert problem.fixes, problem.message
        found = problems_after(path, problem.fixes[0])

        assert {code for code, _ in found - expected} <= REVEALED.get(name_of(path), set())
        assert not expected - found


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("role Lead { can execute }", "add `can delegate` to `Lead`"),
        ("role Lead { can call_mcp: files }", "add `can delegate` to `Lead`"),
    ],
)
def test_a_missing_permission_is_added(text: str, title: str) -> None:
    """A send without `can delegate` has the fix that adds it to the role, whatever the role lists."""
    program = f"""{text}
agent Adder : Lead {{ on add(args: Json) {{ return 1 }} }}
team Sums {{ adder: Adder }}
agent Boss : Lead {{ uses team Sums  on start(args: Json) {{ return await send peers.event("add").any()({{}}) }} }}
run Boss.start({{}})
"""
    [problem] = [each for each in diagnostics_of_text(program) if each.code == "E0401"]

    assert [title] == [fix.title for fix in problem.fixes]
    assert "E0401" not in [each.code for each in diagnostics_of_text(applied(problem))]


def test_a_missing_import_is_added_behind_the_others(tmp_path: Path) -> None:
    """A name of the standard library gets its import, behind those that stand there."""
    text = """import json from "python:json"
role Worker { can execute, can read }
agent Reader : Worker { on read(args: Json) { return json.loads(await readFile("a.json")) } }
run Reader.read({})
"""
    checked = check_program("main.koi", ChangedFiles(tmp_path, {"main.koi": text}))
    [problem] = [each for each in checked.diagnostics if each.code == "E0221"]

    assert applied(problem).startswith('import json from "python:json"\nimport "std/files"\nrole')
