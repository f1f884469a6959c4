"""The forms of understood sentences: first words, continuations, and their actions.

The forms stand in `languages.toml`; what each does is a function with the decorator `form` and its name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

from koi_lang.llm.rehearsal.languages import read_languages
from koi_lang.llm.rehearsal.phrase_values import PhraseParts
from koi_lang.llm.rehearsal.quoting import MARK
from koi_lang.llm.rehearsal.sentences import Sentence
from koi_lang.llm.rehearsal.state import ProposedAction, RehearsalState

Builder: TypeAlias = Callable[[PhraseParts, RehearsalState], ProposedAction]

NAME = rf"(?:{MARK}|[\w.:/\[\]-]+)"
BUILDERS: dict[str, Builder] = {}


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
    language: str


def form(build: Builder) -> Builder:
    """Enter a function into the table of forms."""
    BUILDERS[build.__name__] = build
    return build


@cache
def list_rows() -> tuple[Row, ...]:
    """All forms in the order in which they are tried."""
    found: list[Row] = []
    for each in read_languages()["forms"]:
        for language in ("english", "spanish"):
            for verbs, pattern in each.get(language, ()):
                words = frozenset(_complete(verbs, language).split())
                found.append(Row(words, _complete(pattern, language), BUILDERS[each["does"]], language))
    return tuple(found)


def _complete(text: str, language: str) -> str:
    """Verbs or a pattern with the words that `{name}` stands for."""
    words = {name: forms[language] for name, forms in read_languages()["words"].items() if language in forms}
    text = re.sub(r"\{([a-z_]+)\}", lambda found: words.get(found[1], found[0]), text)
    return text.replace("{mark}", MARK).replace("{name}", NAME)


def matches(sentence: Sentence) -> Iterator[tuple[Row, PhraseParts]]:
    """The forms a sentence has, in the order of the table, with its parts named."""
    verb, _, rest = sentence.text.partition(" ")
    verb, colon, _ = verb.partition(":")
    for row in list_rows():
        if row.verbs and verb.lower() not in row.verbs:
            continue
        text = f"{colon}{rest}".strip() if row.verbs else sentence.text
        if found := re.fullmatch(row.pattern, text, re.IGNORECASE | re.DOTALL):
            yield row, PhraseParts(found.groupdict(), sentence.pieces, sentence.source, sentence.ending, row.language)


def verbs() -> frozenset[str]:
    """Every word that may begin an instruction."""
    return frozenset().union(*(row.verbs for row in list_rows()))
