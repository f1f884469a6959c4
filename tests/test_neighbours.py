"""What may stand beside each other on one line, and advice for names that belong to something else."""

from __future__ import annotations

import pytest

from koi_lang.compiler.rules.variables import ACTIONS
from koi_lang.runtime.actions.lookup import all_actions
from tests.support import diagnostics_of_text

AGENT = "role Worker { can execute, can delegate }\nagent Clerk : Worker { on work(args) {\n"


def codes(code: str) -> list[str]:
    """The codes of what is wrong with some code of a handler, without advice on style."""
    found = diagnostics_of_text(f"{AGENT}{code}\n}} }}")
    return [problem.code for problem in found if problem.severity == "error"]


@pytest.mark.parametrize(
    "code",
    [
        "const total = args.price args.quantity",
        "let x = args.a args.b",
        'const s = "total" 5 + 1',
        "const r = args.f 3",
        "const f = x => x * 2 3",
        "args.sum = args.total -1 5",
        "const t = args.list [0]",
        "const t = args.f (3)",
        "args.f (await args.g())",
        "const t = args.f /* of */ (3)",
        "return args.a args.b",
        "if (args.a) { args.f() } args.b",
        "for (const x of args.list) args.f(x) x",
        "args.count++ args.b",
        "const a = [1] [2]",
        "const a = args.a args.b ? 1 : 2",
    ],
)
def test_a_value_is_not_dropped_for_want_of_an_operator(code: str) -> None:
    """An expression that does nothing does not stand on the line of the statement before it."""
    assert codes(code) == ["E0181"]


@pytest.mark.parametrize(
    "code",
    [
        'const a = 1 console.log("x", a)',
        "let i = 1 i++ return i",
        "const a = args.a if (a) return 1",
        "const a = args.a await args.f(a)",
        "const a = args.a delete a.b",
        "const a = args.a a.f && a.f()",
        "const a = args.a a.f ? a.f() : a.g()",
        "const f = () => { return 1 } f()",
        "if (args.a) { args.f() } args.g()",
        'const a = 1; a; "text"',
        "let a, b; ({ a, b } = args) args.f(a, b)",
        "const a = args.a // a comment\na",
        "const a = args.a /* over\nlines */ a",
        "const a = args.a\n[1, a].forEach(x => args.f(x))",
    ],
)
def test_statements_with_an_effect_share_a_line(code: str) -> None:
    """What does something may follow on the same line, and anything on the next line or behind a semicolon."""
    assert codes(code) == []


def test_actions_that_look_like_functions_are_actions() -> None:
    """The advice to write `callAction` names actions that exist."""
    assert ACTIONS - {kind.name for kind in all_actions()} == set()


def test_a_list_has_no_holes_where_it_is_a_value() -> None:
    """A hole of a list is an error wherever it does not turn out to be a pattern, however deep."""
    assert [codes(f"return {text}") for text in ("[1, , 2]", "[[,]]", "args.f([, 1])")] == [["E0172"]] * 3
