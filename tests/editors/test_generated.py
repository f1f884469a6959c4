"""Files of editors that are made of the grammar and the tables of the compiler."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from editors.generate import words
from editors.generate.files import CHECKOUT, contents
from koi_lang.compiler.build import CONTEXTUAL, RESERVED
from koi_lang.system import resources


@pytest.mark.parametrize("path", contents(), ids=lambda path: path.name)
def test_generated_files_are_fresh(path: Path) -> None:
    """A file says what the grammar and the compiler have now; `python -m editors.generate` writes it anew."""
    told = f"{path.relative_to(CHECKOUT)} is stale: python -m editors.generate"

    assert path.read_text("utf-8") == contents()[path], told


def test_every_word_of_the_grammar_is_there() -> None:
    """Whatever a terminal spells as a word is in one group, reserved and contextual words among them."""
    text = resources.grammar().read_text("utf-8").partition("// -- literals and marks")[0]
    spelt = set(re.findall(r"^[A-Z_]+(?:\.-?\d)?: (?:/|\")([a-z]{2,})(?:\\b|\")", text, re.MULTILINE))
    known = {word for group in words.GROUPS.values() for word in words.tree()[group]}

    assert {*spelt, *CONTEXTUAL, *RESERVED} <= known


def test_a_word_without_a_group_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who adds a keyword to the grammar is told where it has to go."""
    monkeypatch.setattr(words, "GROUPS", {name: group for name, group in words.GROUPS.items() if name != "AGENT"})

    with pytest.raises(AssertionError, match="no group of words has the terminal AGENT"):
        list(words.keywords())
