"""The table of sentences that are understood: which words begin them, how they go on, and what they come to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from koi_lang.llm.rehearsal.phrase_values import PhraseParts
from koi_lang.llm.rehearsal.quoting import MARK
from koi_lang.llm.rehearsal.sentences import Sentence
from koi_lang.llm.rehearsal.state import ProposedAction, RehearsalState

Builder: TypeAlias = Callable[[PhraseParts, RehearsalState], ProposedAction]

# Names for pieces that many patterns share; `{user}` in a pattern stands for the text here.
PARTS = {
    "mark": MARK,
    "user": r"(?:(?:the |our )?(?:user|person|human|customer|visitor|player|client)|them|him|her)",
    "usuario": r"(?:al? (?:la )?(?:usuari[oa]|persona|cliente|clienta|jugador[a]?))",
    "to_user": r"(?: (?:to|for|on|in) (?:the )?(?:user|screen|console|terminal|them|person|customer))?",
    "al_usuario": r"(?: (?:al usuario|a la usuaria|en (?:la )?(?:pantalla|consola|terminal)))?",
    "name": rf"(?:{MARK}|[\w.:/\[\]-]+)",
    "with": r"(?:,? (?:with|passing|using|giving it|sending)(?: the)?(?: data| input| arguments?)?:?|:)",
    "con": r"(?:,? (?:con|pasando|usando)(?: los datos| la entrada)?:?|:)",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One form of sentence.

    Attributes:
        verbs: the words it may begin with, in lower case; empty when the pattern covers the beginning.
        pattern: how it goes on after the verb; its named groups are the parts the builder works from.
    """

    verbs: frozenset[str]
    pattern: str
    build: Builder


ROWS: list[Row] = []


def english(verbs: str, pattern: str) -> Callable[[Builder], Builder]:
    """Add an English form to the table; the first form in the table that can be built counts."""
    return _form(verbs, pattern)


def spanish(verbs: str, pattern: str) -> Callable[[Builder], Builder]:
    """Add a Spanish form to the table."""
    return _form(verbs, pattern)


def matches(sentence: Sentence) -> Iterator[tuple[Row, PhraseParts]]:
    """The forms a sentence has, in the order of the table, with its parts named."""
    verb, _, rest = sentence.text.partition(" ")
    verb, colon, _ = verb.partition(":")
    for row in ROWS:
        if row.verbs and verb.lower() not in row.verbs:
            continue
        text = f"{colon}{rest}".strip() if row.verbs else sentence.text
        if found := re.fullmatch(row.pattern, text, re.IGNORECASE | re.DOTALL):
            yield row, PhraseParts(found.groupdict(), sentence.pieces, sentence.source, sentence.ending)


def verbs() -> frozenset[str]:
    """Every word that may begin an instruction."""
    return frozenset().union(*(row.verbs for row in ROWS))


def _form(verbs: str, pattern: str) -> Callable[[Builder], Builder]:
    for name, text in PARTS.items():
        pattern = pattern.replace("{" + name + "}", text)

    def add(build: Builder) -> Builder:
        ROWS.append(Row(frozenset(verbs.split()), pattern, build))
        return build

    return add
