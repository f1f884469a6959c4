"""Sentences that end a playbook, turned into `return`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from koi_lang.llm.rehearsal.languages import compile_words, list_verbs
from koi_lang.llm.rehearsal.patterns import form
from koi_lang.llm.rehearsal.phrase_values import PhraseParts, evaluate, fill, piece_value
from koi_lang.llm.rehearsal.state import (
    STATE_UPDATES,
    NotYetKnownError,
    ProposedAction,
    RehearsalState,
    UnclearSentenceError,
    identifier_in,
)


@form
def return_literal(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """End with a written-out object; parts that need a model become null and are reported."""
    piece = words.piece("data")
    if piece is None or (piece.kind == "text" and not words.source.lower().startswith(list_verbs("return"))):
        raise UnclearSentenceError("only an object can be the answer")
    missing: list[str] = []
    if piece.kind != "data":
        return _end_with(piece_value(piece, scene))
    return _end(fill(piece.value, scene, missing), missing)


@form
def return_nothing(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """End without data."""
    return _end({}, [])


@form
def return_named(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """End with one value under a name."""
    return _end({words.get("name"): words.value("what", scene)}, [])


@form
def return_last(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """End with the last value, as the verb names it."""
    value = evaluate("that", scene)
    return _end({words.get("name"): value}, []) if words.has("name") else _end_with(value)


@form
def return_value(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """End with a value, or with several under their own names."""
    parts = compile_words(r"\s*,\s*(?:{and}\s+)?|\s+{and}\s+").split(words.get("what"))
    if len(parts) == 1:
        return _end_with(words.value("what", scene))
    return _end({identifier_in(part): evaluate(part, scene) for part in parts}, [])


def end_of(scene: RehearsalState) -> ProposedAction:
    """The end of a playbook without a `return`: the last result, else an empty object."""
    if scene.awaits_a_value:
        raise NotYetKnownError
    outcome = scene.outcome
    if outcome is None:
        return _end({}, [])
    return _end(outcome if isinstance(outcome, dict) and not _changes_state(outcome) else {"result": outcome}, [])


def _end_with(value: Any) -> ProposedAction:
    """The end with a value, which may not change anything. Raises UnclearSentenceError."""
    if _changes_state(value):
        raise UnclearSentenceError("what changes the state is not for a value to say")
    return _end(value, [])


def _changes_state(value: Any) -> bool:
    return isinstance(value, Mapping) and not STATE_UPDATES.isdisjoint(value)


def _end(data: Any, missing: list[str]) -> ProposedAction:
    """The final action; the value of a deed carries the names of missing parts."""
    return ProposedAction({"actionType": "direct", "intent": "return", "data": data}, value=tuple(missing))
