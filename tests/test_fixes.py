"""Fixes: changes to a source that mend what a diagnostic tells of."""

from __future__ import annotations

from koi_lang.diagnostics import Diagnostic
from tests.support import diagnostics_of_text

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
