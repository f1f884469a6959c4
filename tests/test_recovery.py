"""After a syntax error reading goes on: every broken declaration is reported, and the others are kept."""

from __future__ import annotations

from itertools import product

import pytest

from koi_lang.compiler.parser import MOST_PROBLEMS, parse
from koi_lang.source import Source
from tests.support import must_not_compile

BROKEN = {
    "role": "role Worker { execute }",
    "agent": "agent Ada Worker { }",
    "handler": "agent Ada : Worker {\n  on start {\n    playbook 'go'\n  }\n}",
    "code": "agent Ada : Worker {\n  on start() { const a = 1 + }\n}",
    "brace": "agent Ada : Worker {\n  on start() {\n    if (true) {\n  }\n}",
    "text": 'agent Ada : Worker {\n  on start() { playbook """Greet. }\n}',
    "quote": "agent Ada : Worker {\n  on start() { console.log('go) }\n}",
    "backtick": "agent Ada : Worker {\n  on start() { console.log(`go) }\n}",
    "team": "team Crew { Ada }",
    "prompt": "prompt Rules 'Be brief.'",
    "statement": "console.log('go')",
}
DECLARATIONS = [kind for kind in BROKEN if kind != "statement"]


def names(text: str) -> list[str]:
    """The names of the declarations that could be read."""
    program, _ = parse(Source("test.koi", text))
    return [declaration.name.name for declaration in program.declarations]  # type: ignore[attr-defined]


def test_three_broken_declarations_give_three_messages() -> None:
    """Every broken declaration has a message of its own."""
    found = must_not_compile("role A { run }\n\nagent B C { }\n\nrole D { can go }\n\nteam E { F }\n")

    assert [diagnostic.code for diagnostic in found] == ["E0137", "E0139", "E0128"]


@pytest.mark.parametrize(("first", "second"), list(product(BROKEN, DECLARATIONS)))
def test_a_broken_declaration_does_not_hide_the_next(first: str, second: str) -> None:
    """Whatever is wrong with a declaration, what is wrong with the next one is reported too."""
    alone = must_not_compile(BROKEN[second])

    found = must_not_compile(f"{BROKEN[first]}\n\n{BROKEN[second]}\n")

    assert len(found) == 2
    assert found[1].code == alone[0].code


@pytest.mark.parametrize("kind", BROKEN)
def test_good_declarations_are_kept(kind: str) -> None:
    """A broken declaration takes nothing with it, neither before nor behind."""
    text = f"role First {{ can go }}\n\n{BROKEN[kind]}\n\nrole Last {{ can go }}\n"

    assert names(text) == ["First", "Last"]


def test_a_misplaced_form_keeps_the_others() -> None:
    """What only shows after reading (parentheses without a value) is reported at its place, the rest is kept."""
    text = "role A { can go }\n\nagent B : A { on go() { const a = (1, 2) } }\n\nrole C { can go }\n"

    assert names(text) == ["A", "C"]


def test_the_number_of_messages_is_limited() -> None:
    """A hopeless file does not flood the terminal."""
    assert len(must_not_compile("role A { go }\n" * 50)) == MOST_PROBLEMS
