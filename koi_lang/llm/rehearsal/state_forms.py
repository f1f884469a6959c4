"""Sentences that change the state or use the registry, turned into `update_state` and `registry_…`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from koi_lang.llm.rehearsal.languages import compile_words
from koi_lang.llm.rehearsal.patterns import form
from koi_lang.llm.rehearsal.phrase_values import PhraseParts, calculate
from koi_lang.llm.rehearsal.state import ProposedAction, RehearsalState, UnclearSentenceError, identifier_in


@form
def set_state(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """Give a field of the state a value."""
    return _update(scene, _path(words, scene), words.value("value", scene))


@form
def merge_state(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """Give several fields of the state values."""
    fields = words.value("fields", scene)
    if not isinstance(fields, Mapping):
        raise UnclearSentenceError("an object is needed")
    return ProposedAction({"actionType": "direct", "intent": "update_state", "updates": dict(fields)})


@form
def increase(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """Add a number to a field of the state, or a value to a list in it."""
    path = _path(words, scene)
    by = words.value("by", scene) if words.has("by") else 1
    value = scene.find(f"state.{path}")
    return _update(scene, path, [*value, by] if isinstance(value, list) else calculate("+", value or 0, by))


@form
def append(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """Put a value at the end of a list in the state."""
    path = _path(words, scene)
    value = scene.find(f"state.{path}")
    if not isinstance(value, list | None):
        raise UnclearSentenceError("a list is needed")
    return _update(scene, path, [*(value or []), words.value("item", scene)])


@form
def decrease(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """Take a number off a field of the state."""
    path = _path(words, scene)
    by = words.value("by", scene) if words.has("by") else 1
    return _update(scene, path, calculate("-", scene.find(f"state.{path}") or 0, by))


@form
def registry_set(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """Write a value into the registry; without a key it is called as the sentence calls it."""
    value = words.value("value", scene)
    if words.has("key"):
        key = words.text("key", scene)
    elif words.piece("value"):
        raise UnclearSentenceError("the key is not said")
    else:
        key = identifier_in(words.get("value"))
    return ProposedAction(_registry("registry_set", key=key, value=value))


@form
def registry_get(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """Read a value from the registry; later sentences call it as its key ends."""
    key = words.text("key", scene)
    return ProposedAction(_registry("registry_get", key=key), words.get("label") or identifier_in(key))


@form
def registry_delete(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """Remove a key from the registry."""
    return ProposedAction(_registry("registry_delete", key=words.text("key", scene)))


@form
def registry_keys(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """List the keys of the registry."""
    prefix = words.text("prefix", scene) if words.has("prefix") else ""
    return ProposedAction(_registry("registry_keys", prefix=prefix), "keys")


@form
def registry_search(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """Search the registry with a query that is written out."""
    query = words.value("query", scene)
    if not isinstance(query, Mapping):
        raise UnclearSentenceError("a query is an object")
    return ProposedAction(_registry("registry_search", query=query), "results")


@form
def remember(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """Give the last answer or result a name for later sentences."""
    return ProposedAction(None, words.text("label", scene), words.value("value", scene))


def _update(scene: RehearsalState, path: str, value: Any) -> ProposedAction:
    """The action that sets one field; a nested one is sent with its neighbours, since updates are shallow."""
    first, *rest = path.split(".")
    if rest:
        value = _with_nested(scene.state_value(first), rest, value)
    return ProposedAction({"actionType": "direct", "intent": "update_state", "updates": {first: value}})


def _with_nested(old: Any, path: list[str], value: Any) -> dict[str, Any]:
    fields = dict(old) if isinstance(old, Mapping) else {}
    first, *rest = path
    return fields | {first: _with_nested(fields.get(first), rest, value) if rest else value}


def _path(words: PhraseParts, scene: RehearsalState) -> str:
    """The field that is meant, without `state.`; a bare word must be a field that exists."""
    piece = words.piece("target")
    target = str(piece.value) if piece and piece.kind == "text" else words.get("target")
    if found := compile_words(r"{state}[. ](?P<path>.+)").fullmatch(target):
        return found["path"]
    key = scene.state_key(target)
    if key is None:
        raise UnclearSentenceError(f"the state has no `{target}`")
    return key


def _registry(intent: str, **fields: Any) -> dict[str, Any]:
    return {"actionType": "direct", "intent": intent, **fields}
