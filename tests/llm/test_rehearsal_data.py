"""The data of the rehearsal: every form can be read and does something, and no language lacks what another has."""

from __future__ import annotations

import re
from typing import Any

import pytest

from koi_lang.llm.rehearsal import steps
from koi_lang.llm.rehearsal.languages import compile_words, read_languages
from koi_lang.llm.rehearsal.patterns import BUILDERS, list_rows

LANGUAGES = {"english", "spanish"}


def test_every_form_does_something() -> None:
    """Each form names a function, each function has a form, and all patterns can be read."""
    assert steps.FORMS
    assert list(dict.fromkeys(form["does"] for form in read_languages()["forms"])) == [
        form["does"] for form in read_languages()["forms"]
    ]
    assert {form["does"] for form in read_languages()["forms"]} == BUILDERS.keys()
    assert all(re.compile(row.pattern) and not re.search(r"\{[a-z_]+\}", row.pattern) for row in list_rows())
    assert not [row for row in list_rows() if any("{" in verb for verb in row.verbs)]


@pytest.mark.parametrize("table", ["phrases", "anywhere", "needs"])
def test_languages_stand_side_by_side(table: str) -> None:
    """What is said or read apart from forms is there in every language."""
    entries: dict[str, Any] = read_languages()[table]

    assert {} == {name: entry.keys() for name, entry in entries.items() if entry.keys() != LANGUAGES}


def test_words_of_every_language_fit_a_pattern() -> None:
    """A name in a pattern stands for all of its words, in either case; other braces count characters."""
    found = compile_words(r"{and} {times}{2}")

    assert [True, True, False] == [
        bool(found.fullmatch(text)) for text in ("AND timestimes", "y vecestimes", "o times")
    ]
    assert found is compile_words(r"{and} {times}{2}")
