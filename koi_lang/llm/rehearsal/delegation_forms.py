"""Sentences that let somebody else work: team members, MCP tools, actions named by name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from koi_lang.llm.messages import DelegateInfo
from koi_lang.llm.rehearsal.languages import compile_words
from koi_lang.llm.rehearsal.patterns import form
from koi_lang.llm.rehearsal.phrase_values import PhraseParts, evaluate
from koi_lang.llm.rehearsal.quoting import QuotedPiece, mask
from koi_lang.llm.rehearsal.state import (
    NotYetKnownError,
    ProposedAction,
    RehearsalState,
    UnclearSentenceError,
    identifier_in,
)


@form
def delegate_qualified(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """Hand data to an event of a member, both written as `member::event`."""
    key, _, event = words.get("target").partition("::")
    member = _member(key, scene)
    if event not in member.events:
        raise UnclearSentenceError(f"`{member.key}` has no event `{event}`")
    return _delegate(member, event, _data(words, scene))


@form
def delegate_to(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """Hand work to a member; the event is the one the sentence names, or the only one when it names none."""
    member = _member(words.get("member"), scene)
    event, rest = _event(member, words.get("what"))
    if words.has("data") or not rest:
        return _delegate(member, event, _data(words, scene))
    masked = mask(rest)
    return _delegate(member, event, _data(PhraseParts({"data": masked.text}, masked.pieces), scene))


@form
def call_tool(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """Call a tool of an MCP server."""
    data = _data(words, scene) if words.has("data") else {}
    tool = words.name("tool", scene)
    action = {"intent": "call_mcp", "mcp": words.name("mcp", scene), "tool": tool, "input": data}
    return ProposedAction({"actionType": "direct", **action}, tool)


@form
def call_action(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """Do an action that is called by its own name."""
    name = words.name("action", scene)
    if name not in scene.task.actions:
        raise UnclearSentenceError(f"there is no action `{name}`")
    data = _data(words, scene) if words.has("data") else {}
    return ProposedAction({"actionType": "direct", "intent": name, **data}, name)


def _delegate(member: DelegateInfo, event: str, data: Mapping[str, Any]) -> ProposedAction:
    return ProposedAction({"actionType": "delegate", "intent": f"{member.key}::{event}", "data": data}, event)


def _member(name: str, scene: RehearsalState) -> DelegateInfo:
    for member in scene.task.members:
        if member.key.lower() == name.lower():
            return member
    raise UnclearSentenceError(f"`{name}` is not in the team")


def _event(member: DelegateInfo, what: str) -> tuple[str, str]:
    """The event that words ask for, and the words after its name."""
    said = what.split()
    if not said and len(member.events) == 1:
        return member.events[0], ""
    for event in member.events:
        parts = re.findall(r"[a-z0-9]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", event).lower())
        if parts and len(said) >= len(parts) and all(map(_same_verb, parts, said)):
            return event, " ".join(said[len(parts) :])
    raise UnclearSentenceError(f"which event of `{member.key}` is meant is not said")


def _same_verb(name: str, word: str) -> bool:
    """Whether a word is the part of an event's name, or another form of it as `procese` is of `process`."""
    word = word.lower().strip(",.:")
    return name == word or (len(name) > 5 and word[:6] == name[:6])


def _data(words: PhraseParts, scene: RehearsalState) -> Mapping[str, Any]:
    """The delegated payload, an object; the arguments of the handler by default."""
    if not words.has("data"):
        return dict(scene.task.args) if isinstance(scene.task.args, Mapping) else {}
    piece = words.piece("data")
    if piece or not (several := _several(words.get("data"), scene)):
        value = words.value("data", scene)
        return value if isinstance(value, Mapping) else {_name_for(words.get("data"), piece): value}
    return several


def _several(phrase: str, scene: RehearsalState) -> dict[str, Any]:
    """`the name and the age` as an object; empty when it is a single thing."""
    parts = compile_words(r"\s*,\s*|\s+{and}\s+").split(phrase)
    if len(parts) < 2:
        return {}
    try:
        return {identifier_in(part): evaluate(part, scene) for part in parts}
    except NotYetKnownError:
        raise
    except UnclearSentenceError:
        return {}


def _name_for(phrase: str, piece: QuotedPiece | None) -> str:
    if piece is None:
        return identifier_in(phrase)
    return identifier_in(piece.value.words) if piece.kind == "reference" else "value"
