"""Phrases of a sentence turned into values: quotes, numbers, objects, references and sums of them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from koi_lang.llm.rehearsal.languages import merge
from koi_lang.llm.rehearsal.literals import CONSTANTS, Reference
from koi_lang.llm.rehearsal.quoting import QuotedPiece, piece_of, unmask
from koi_lang.llm.rehearsal.state import RehearsalState, UnclearSentenceError
from koi_lang.llm.rehearsal.values import has_value

OPERATORS = "+-*/"
_EITHER = re.compile(r"\s*(?:\|\||\?\?)\s*")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
TEMPLATE = re.compile(r"\{\{\s*(?P<braces>.+?)\s*\}\}|\$\{\s*(?P<dollar>.+?)\s*\}|<(?P<angles>[A-Za-z_][\w .'-]*)>")
_PLACEHOLDER = re.compile(r"\.\.\.|…|\w+(?:\s*\|\s*\w+)+|(?:your|the|a|an) [\w ]+ here")


@dataclass(frozen=True, slots=True)
class PhraseParts:
    """The parts of a sentence that a pattern has named.

    Attributes:
        source: the whole sentence as it was written.
        ending: its exclamation mark, if it had one.
        language: in which it was understood.
    """

    parts: Mapping[str, str | None]
    pieces: tuple[QuotedPiece, ...]
    source: str = ""
    ending: str = ""
    language: str = "english"

    def has(self, name: str) -> bool:
        """Whether the sentence has this part."""
        return bool((self.parts.get(name) or "").strip())

    def get(self, name: str) -> str:
        """A part as it was written; empty when the sentence has none."""
        return unmask((self.parts.get(name) or "").strip(), self.pieces)

    def piece(self, name: str) -> QuotedPiece | None:
        """The quote, object or reference a part consists of, None when it is prose."""
        return piece_of(self.parts.get(name) or "", self.pieces)

    def value(self, name: str, scene: RehearsalState) -> Any:
        """The value of a part. Raises UnclearSentenceError and NotYetKnownError."""
        piece = self.piece(name)
        return evaluate(self.get(name), scene) if piece is None else piece_value(piece, scene)

    def text(self, name: str, scene: RehearsalState) -> str:
        """A name or key: a quote with its references filled in, or one bare word. Raises UnclearSentenceError."""
        if self.piece(name):
            return as_text(self.value(name, scene))
        if re.fullmatch(r"[\w:./-]+", self.get(name)):
            return self.get(name)
        raise UnclearSentenceError(f"`{self.get(name)}` is not a plain name")

    def name(self, name: str, scene: RehearsalState) -> str:
        """The name of something to do, which the playbook itself has to say. Raises UnclearSentenceError."""
        piece = self.piece(name)
        if has_value(self.get(name)) or (piece and piece.kind != "text"):
            raise UnclearSentenceError("what is to be done is not for a value to say")
        return self.text(name, scene)


def piece_value(piece: QuotedPiece, scene: RehearsalState) -> Any:
    """The value of a quote, object or reference, with everything inside it filled in."""
    if piece.kind == "reference":
        return evaluate(piece.value.words, scene)
    return fill(piece.value, scene)


def evaluate(phrase: str, scene: RehearsalState) -> Any:
    """The value of a phrase in plain words. Raises UnclearSentenceError and NotYetKnownError."""
    phrase = phrase.strip().rstrip(".,")
    if value := scene.values.find(phrase):
        return value.value
    if phrase in CONSTANTS:
        return CONSTANTS[phrase]
    if _NUMBER.fullmatch(phrase):
        return json.loads(phrase)
    if phrase.lower() in merge("numbers"):
        return merge("numbers")[phrase.lower()]
    if len(choices := _EITHER.split(phrase)) > 1:
        return _first_known(choices, scene)
    if found := re.fullmatch(_sum(), phrase):
        sides = evaluate(found["left"], scene), evaluate(found["right"], scene)
        return calculate(str(merge("operators").get(found["by"], found["by"])), *sides)
    quoted = re.fullmatch(r"([\"'])(.*)\1", phrase)
    return quoted[2] if quoted else scene.find(phrase)


@cache
def _sum() -> str:
    """The pattern of an operation with two sides."""
    operators = "|".join(map(re.escape, (*OPERATORS, *merge("operators"))))
    return rf"(?P<left>.+)\s+(?P<by>{operators})\s+(?P<right>.+?)"


def calculate(operator: str, left: Any, right: Any) -> Any:
    """The result of one operation; `+` joins when a side is a text that is no number. Raises UnclearSentenceError."""
    if operator == "+" and isinstance(left, str) and as_number(left) is None:
        return left + as_text(right)
    a, b = as_number(left), as_number(right)
    if a is None or b is None or (operator == "/" and b == 0):
        raise UnclearSentenceError("a number is needed")
    result = {"+": a + b, "-": a - b, "*": a * b, "/": a / (b or 1)}[operator]
    return int(result) if float(result).is_integer() else result


def as_number(value: Any) -> int | float | None:
    """A number, or a text that is one; nothing counts as 0."""
    if value is None:
        return 0
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        return json.loads(value.strip())  # type: ignore[no-any-return]
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def as_text(value: Any) -> str:
    """A value as it is printed: texts as they are, everything else as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return "" if value is None else json.dumps(value, ensure_ascii=False, default=str)


def fill(value: Any, scene: RehearsalState, missing: list[str] | None = None) -> Any:
    """A literal with its references replaced by values.

    Args:
        missing: collects what is not known, which then becomes null; None makes it an error.

    Raises:
        UnclearSentenceError: something is not known and `missing` is None.
    """
    if isinstance(value, dict):
        return {key: _fill_member(key, inner, scene, missing) for key, inner in value.items()}
    if isinstance(value, list):
        return [fill(inner, scene, missing) for inner in value]
    return _fill_member("", value, scene, missing)


def _fill_member(key: str, value: Any, scene: RehearsalState, missing: list[str] | None) -> Any:
    if isinstance(value, dict | list):
        return fill(value, scene, missing)
    try:
        return _fill_leaf(value, scene, strict=missing is not None)
    except UnclearSentenceError:
        if missing is None:
            raise
        missing.append(key or (value.words if isinstance(value, Reference) else str(value)))
        return None


def _fill_leaf(value: Any, scene: RehearsalState, *, strict: bool) -> Any:
    if isinstance(value, Reference):
        return evaluate(value.words, scene)
    if not isinstance(value, str):
        return value
    if strict and _PLACEHOLDER.fullmatch(value.strip()):
        raise UnclearSentenceError("a placeholder stands for something a model would write")
    whole = TEMPLATE.fullmatch(value.strip())
    if whole and value.strip().count("{{") + value.strip().count("${") + value.strip().count("<") == 1:
        return template_value(whole, scene, strict=strict)
    return TEMPLATE.sub(lambda found: as_text(template_value(found, scene, strict=False)), value)


def template_value(found: re.Match[str], scene: RehearsalState, *, strict: bool) -> Any:
    """The value of words in brackets; unknown ones in angle brackets may be literal.

    Raises:
        UnclearSentenceError: it is not known, and the brackets are others or are taken strictly.
        NotYetKnownError: it is not known yet.
    """
    words = found["braces"] or found["dollar"] or found["angles"]
    try:
        return evaluate(words, scene)
    except UnclearSentenceError:
        if found["angles"] and not strict:
            return found[0]
        raise


def _first_known(choices: list[str], scene: RehearsalState) -> Any:
    value = None
    for choice in choices:
        value = evaluate(choice, scene)
        if value not in (None, "", False):
            break
    return value
