"""Sentences that end a playbook, turned into `return`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from koi_lang.llm.rehearsal.patterns import english, spanish
from koi_lang.llm.rehearsal.phrase_values import PhraseParts, evaluate, fill, piece_value
from koi_lang.llm.rehearsal.state import (
    STATE_UPDATES,
    NotYetKnownError,
    ProposedAction,
    RehearsalState,
    UnclearSentenceError,
    identifier_in,
)

RETURN = "return"
ANSWER = "return respond answer reply output finish end"
DEVUELVE = "devuelve retorna regresa"
DEVUELVELO = "devuélvelo devuélvela devuelvelo devuelvela retórnalo retórnala"
RESPONDE = "devuelve retorna regresa responde termina finaliza"
FORM = (
    r"(?:(?:back|with|only|an?|the|as|this|valid|structured|final|json|object|result|data|response|following|like"
    r"|of|form|format|in|containing)\b\s*)*:?\s*"
)
FORMA = r"(?:(?:con|solo|sólo|un|una|el|la|como|este|siguiente|válido|json|objeto|resultado|en|formato)\b\s*)*:?\s*"


@english(ANSWER, FORM + r"(?P<data>{mark})")
@spanish(RESPONDE, FORMA + r"(?P<data>{mark})")
def return_literal(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """End with an object that is written out; what only a model could write in it becomes null and is told."""
    piece = words.piece("data")
    if piece is None or (piece.kind == "text" and not words.source.lower().startswith((RETURN, *DEVUELVE.split()))):
        raise UnclearSentenceError("only an object can be the answer")
    missing: list[str] = []
    if piece.kind != "data":
        return _end_with(piece_value(piece, scene))
    return _end(fill(piece.value, scene, missing), missing)


@english(RETURN, r"(?:nothing|an empty (?:object|result))?")
@english("finish end stop", r"")
@spanish(DEVUELVE, r"(?:nada)?")
@spanish("", r"no devuelvas nada")
@spanish("termina finaliza", r"")
def return_nothing(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """End without data."""
    return _end({}, [])


@english(RETURN, r"(?P<what>.+?) as (?P<name>\w+)")
@spanish(DEVUELVE, r"(?P<what>.+?) como (?P<name>\w+)")
def return_named(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """End with one value under a name."""
    return _end({words.get("name"): words.value("what", scene)}, [])


@spanish(DEVUELVELO, r"(?:como (?P<name>\w+))?")
def devuelvelo(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """End with the last value, in Spanish: the verb says what."""
    value = evaluate("eso", scene)
    return _end({words.get("name"): value}, []) if words.has("name") else _end_with(value)


@english(RETURN, r"(?P<what>.+)")
@spanish(DEVUELVE, r"(?P<what>.+)")
def return_value(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """End with a value, or with several under their own names."""
    parts = re.split(r"\s*,\s*(?:and\s+)?|\s+(?:and|y)\s+", words.get("what"))
    if len(parts) == 1:
        return _end_with(words.value("what", scene))
    return _end({identifier_in(part): evaluate(part, scene) for part in parts}, [])


def end_of(scene: RehearsalState) -> ProposedAction:
    """The end of a playbook that does not say what to return: the last result, else an empty object."""
    if scene.awaits_a_value:
        raise NotYetKnownError
    outcome = scene.outcome
    if outcome is None:
        return _end({}, [])
    return _end(outcome if isinstance(outcome, dict) and not _changes_state(outcome) else {"result": outcome}, [])


def _end_with(value: Any) -> ProposedAction:
    """The end with a value, which may not change anything. Raises Unclear."""
    if _changes_state(value):
        raise UnclearSentenceError("what changes the state is not for a value to say")
    return _end(value, [])


def _changes_state(value: Any) -> bool:
    return isinstance(value, Mapping) and not STATE_UPDATES.isdisjoint(value)


def _end(data: Any, missing: list[str]) -> ProposedAction:
    """The final action; a deed's value carries the names of what is missing."""
    return ProposedAction({"actionType": "direct", "intent": "return", "data": data}, value=tuple(missing))
