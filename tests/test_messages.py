"""Golden files: every program under `messages/` is wrong, and the text beside it is what people are told."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from koi_lang.diagnostics import Diagnostic
from tests.support import HERE, diagnostics_of, rendered

PROGRAMS = sorted((HERE / "messages").rglob("*.koi"))
PROBLEMS = re.compile(r"// problems: (\d+)")
JARGON = re.compile(r"\b(?:tokens?|terminals?|parse[rd]?|lexer|identifiers?|[A-Z]{3,}_[A-Z]+|LBRACE|RPAR|EOF)\b")


def name_of(path: Path) -> str:
    """`syntax/brace_missing` of a golden program."""
    return path.relative_to(HERE / "messages").with_suffix("").as_posix()


def in_words_of_readers(diagnostic: Diagnostic) -> bool:
    """Whether a message is without the parser's vocabulary, and ends with advice."""
    said = f"{diagnostic.message} {diagnostic.help}"
    return not (JARGON.search(said) or diagnostic.message.endswith(".")) and said.endswith((".", "?"))


def marked(diagnostic: Diagnostic) -> list[str]:
    """The texts that a message marks, without the end of a line."""
    places = (diagnostic.place, *diagnostic.others)
    return [place.source.text[place.span.start : place.span.end].removesuffix("\n") for place in places]


@pytest.mark.parametrize("path", PROGRAMS, ids=name_of)
def test_a_message_reads_as_accepted(path: Path, accept: bool) -> None:
    """What people see of a wrong program is what somebody has read and found helpful.

    No mistake makes others appear: a file has one problem unless its first line says more. Places are words or marks,
    never texts of several lines. It is one test, since nearly six hundred programs make four of them dear.
    """
    problems, golden = diagnostics_of(path), path.with_suffix(".txt")
    expected = PROBLEMS.match(path.read_text("utf-8"))
    if accept:
        golden.write_text(rendered(problems), "utf-8")

    assert golden.read_text("utf-8") == rendered(problems)
    assert (int(expected[1]) if expected else 1) == len(problems)
    assert [] == [each for each in problems if each.help is None or not in_words_of_readers(each)]
    assert [] == [text for each in problems for text in marked(each) if "\n" in text]
