"""What `koi check --explain` tells about syntax errors is true: wrong examples have the error, right ones have none."""

from __future__ import annotations

import re
from textwrap import dedent, indent

import pytest

from koi_lang.compiler.parser import parse
from koi_lang.compiler.syntax_errors import ORDER, explanations
from koi_lang.diagnostics import Diagnostic
from koi_lang.source import Source

CODES = explanations()
EXAMPLE = re.compile(r"^(Wrong|Right):\n\n((?:    [^\n]*\n?|\n)+)", re.MULTILINE)
# An example is a program, a part of an agent, or code.
WRAPPERS = ("{}", "role Worker {{ can execute }}\nagent Ada : Worker {{\n{}\n}}\n", "skill Skill {{\n{}\n}}\n")
CODE = "role Worker {{ can execute }}\nagent Ada : Worker {{\n  on start(args: Json) {{\n{}\n  }}\n}}\n"
WITHOUT_EXAMPLE = {"E0104", "E0113", "E0122"}


def examples(code: str) -> dict[str, str]:
    """The examples of an explanation by `Wrong` and `Right`."""
    return {kind: dedent(text).strip("\n") for kind, text in EXAMPLE.findall(CODES[code] + "\n")}


def problems(wrapper: str, text: str) -> list[Diagnostic]:
    """What is wrong with an example in its surroundings."""
    return parse(Source("test.koi", wrapper.format(indent(text, "    "))))[1]


def fits(text: str) -> str:
    """The surroundings in which an example is right."""
    return next(wrapper for wrapper in (*WRAPPERS, CODE) if not problems(wrapper, text))


def test_no_two_mistakes_share_a_code() -> None:
    """Each code of a mistake that a hint recognises has one explanation, which no other one hides."""
    codes = [hint.code for hint in ORDER]

    assert len(set(codes)) == len(codes)


@pytest.mark.parametrize("code", CODES)
def test_an_explanation_begins_with_a_sentence(code: str) -> None:
    """The first line says what is wrong in one sentence."""
    assert re.fullmatch(r"[A-Z`\"].{10,110}\.", CODES[code].split("\n")[0])


@pytest.mark.parametrize("code", sorted(CODES.keys() - WITHOUT_EXAMPLE))
def test_the_right_example_is_right(code: str) -> None:
    """Nothing is wrong with what an explanation recommends."""
    assert fits(examples(code)["Right"])


@pytest.mark.parametrize("code", sorted(CODES.keys() - WITHOUT_EXAMPLE))
def test_the_wrong_example_has_that_error(code: str) -> None:
    """The wrong example of an explanation has the error that is explained, and nothing else."""
    wrong = examples(code)["Wrong"]

    found = [[problem.code for problem in problems(wrapper, wrong)] for wrapper in (*WRAPPERS, CODE)]

    assert [code] in found


def test_only_some_errors_need_no_example() -> None:
    """Errors without an example are those that no example would explain."""
    assert {code for code in CODES if not examples(code)} == WITHOUT_EXAMPLE
