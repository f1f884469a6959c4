"""Golden files: every program under `messages/` is wrong, and the text beside it is what people are told."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from koi_lang.diagnostics import Diagnostic
from tests.support import HERE, diagnostics_of, rendered

PROGRAMS = sorted((HERE / "messages").rglob("*.koi"))
PROBLEMS = re.compile(r"// problems: (\d+)")
JARGON = re.compile(r"\b(?:tokens?|terminals?|parse[rd]?|lexer|identifiers?|[A-Z]{3,}_[A-Z]+|LBRACE|RPAR|EOF)\b")


@cache
def problems_in(path: Path) -> list[Diagnostic]:
    """The diagnostics of a golden program, which is checked once a process."""
    return diagnostics_of(path)


def name_of(path: Path) -> str:
    """`syntax/brace_missing` of a golden program."""
    return path.relative_to(HERE / "messages").with_suffix("").as_posix()


@pytest.mark.parametrize("path", PROGRAMS, ids=name_of)
def test_a_message_reads_as_accepted(path: Path, accept: bool) -> None:
    """What people see of a wrong program is what somebody has read and found helpful."""
    actual, golden = rendered(problems_in(path)), path.with_suffix(".txt")
    if accept:
        golden.write_text(actual, "utf-8")

    assert golden.read_text("utf-8") == actual


@pytest.mark.parametrize("path", PROGRAMS, ids=name_of)
def test_one_mistake_gives_one_message(path: Path) -> None:
    """No mistake makes others appear: a file has one problem unless its first line says more."""
    expected = PROBLEMS.match(path.read_text("utf-8"))

    assert (int(expected[1]) if expected else 1) == len(problems_in(path))


@pytest.mark.parametrize("path", PROGRAMS, ids=name_of)
def test_a_message_is_in_the_words_of_its_reader(path: Path) -> None:
    """Messages and advice are without the parser's vocabulary, begin in lower case and say one thing to do."""
    for diagnostic in problems_in(path):
        assert not JARGON.search(f"{diagnostic.message} {diagnostic.help}")
        assert not diagnostic.message.endswith(".")
        assert diagnostic.help is not None
        assert diagnostic.help.endswith((".", "?"))


@pytest.mark.parametrize("path", PROGRAMS, ids=name_of)
def test_a_place_is_within_one_line(path: Path) -> None:
    """A place marks a word or a mark, never a text of several lines."""
    for diagnostic in problems_in(path):
        for place in (diagnostic.place, *diagnostic.others):
            assert "\n" not in place.source.text[place.span.start : place.span.end].removesuffix("\n")
