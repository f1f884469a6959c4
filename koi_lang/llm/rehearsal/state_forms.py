"""Sentences that change the state or use the registry, turned into `update_state` and `registry_…`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from koi_lang.llm.rehearsal.patterns import english, spanish
from koi_lang.llm.rehearsal.phrase_values import PhraseParts, calculate
from koi_lang.llm.rehearsal.state import ProposedAction, RehearsalState, UnclearSentenceError, identifier_in

STORE = "store save put write keep record remember"
GUARDA = "guarda almacena escribe pon recuerda anota"
READ = "read get load fetch retrieve look find recall"
TARGET = r"(?:the )?(?P<target>{mark}|[\w.]+)(?: (?:counter|field|variable|in (?:the )?state))?"
DESTINO = r"(?:el |la |los |las )?(?P<target>{mark}|[\w.]+)(?: (?:del estado|en el estado))?"


@english("set change update", TARGET + r" (?:to|=|as) (?P<value>.+)")
@english("", r"(?P<target>state\.[\w.]+) ?= ?(?P<value>.+)")
@english(STORE, r"(?P<value>.+?) (?:in|as|into|to|under) (?:the )?(?P<target>state[. ][\w.]+)")
@spanish("pon establece fija cambia actualiza", DESTINO + r" (?:a|en|=) (?P<value>.+)")
@spanish(GUARDA, r"(?P<value>.+?) (?:en|como) (?:el )?(?P<target>(?:state|estado)[. ][\w.]+)")
def set_state(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """Give a field of the state a value."""
    return _update(scene, _path(words, scene), words.value("value", scene))


@english("update set", r"(?:the )?state(?: with| to)?:? (?P<fields>{mark})")
@spanish("actualiza", r"(?:el )?(?:estado|state)(?: con)?:? (?P<fields>{mark})")
def merge_state(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """Give several fields of the state values."""
    fields = words.value("fields", scene)
    if not isinstance(fields, Mapping):
        raise UnclearSentenceError("an object is needed")
    return ProposedAction({"actionType": "direct", "intent": "update_state", "updates": dict(fields)})


@english("increase increment raise", TARGET + r"(?: by (?P<by>.+))?")
@english("add", r"(?P<by>.+?) to " + TARGET)
@spanish("incrementa aumenta sube", DESTINO + r"(?: en (?P<by>.+))?")
@spanish("suma añade agrega", r"(?P<by>.+?) al? " + DESTINO)
def increase(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """Add a number to a field of the state, or a value to a list in it."""
    path = _path(words, scene)
    by = words.value("by", scene) if words.has("by") else 1
    value = scene.find(f"state.{path}")
    return _update(scene, path, [*value, by] if isinstance(value, list) else calculate("+", value or 0, by))


@english("append push", r"(?P<item>.+?) (?:to|onto) (?:the list )?" + TARGET)
@spanish("añade agrega", r"(?P<item>.+?) a la lista " + DESTINO)
def append(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """Put a value at the end of a list in the state."""
    path = _path(words, scene)
    value = scene.find(f"state.{path}")
    if not isinstance(value, list | None):
        raise UnclearSentenceError("a list is needed")
    return _update(scene, path, [*(value or []), words.value("item", scene)])


@english("decrease decrement reduce lower", TARGET + r"(?: by (?P<by>.+))?")
@english("subtract", r"(?P<by>.+?) from " + TARGET)
@spanish("disminuye reduce decrementa baja", DESTINO + r"(?: en (?P<by>.+))?")
@spanish("resta", r"(?P<by>.+?) (?:al?|del?) " + DESTINO)
def decrease(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """Take a number off a field of the state."""
    path = _path(words, scene)
    by = words.value("by", scene) if words.has("by") else 1
    return _update(scene, path, calculate("-", scene.find(f"state.{path}") or 0, by))


@english(
    STORE,
    r"(?P<value>.+?) (?:in|to|into) (?:the )?registry(?:,? (?:under|as|at|with)(?: the)?(?: key| name)? (?P<key>.+))?",
)
@english(STORE, r"(?P<value>.+?) (?:under|as|with the key) (?P<key>.+?) (?:in|to|into) (?:the )?registry")
@english("set", r"(?:the )?registry (?:key|entry) (?P<key>.+?) to (?P<value>.+)")
@spanish(GUARDA, r"(?P<value>.+?) en el registro(?:,? (?:como|bajo|con)(?: la clave| el nombre)? (?P<key>.+))?")
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


@english(
    READ,
    r"(?:up )?(?:the )?(?:value of |key |entry )*(?P<key>.+?) (?:from|in) (?:the )?registry"
    r"(?: (?:as|into) (?P<label>\w+))?",
)
@english(READ, r"(?:up )?(?:the )?registry (?:key|entry|value) (?P<key>.+)")
@spanish(
    "lee obtén obten recupera busca consulta",
    r"(?:la clave |el valor de )*(?P<key>.+?) (?:del|en el) registro(?: como (?P<label>\w+))?",
)
def registry_get(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """Read a value from the registry; later sentences call it as its key ends."""
    key = words.text("key", scene)
    return ProposedAction(_registry("registry_get", key=key), words.get("label") or identifier_in(key))


@english("delete remove", r"(?:the )?(?:key |entry )?(?P<key>.+?) from (?:the )?registry")
@spanish("borra elimina", r"(?:la clave )?(?P<key>.+?) del registro")
def registry_delete(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """Remove a key from the registry."""
    return ProposedAction(_registry("registry_delete", key=words.text("key", scene)))


@english(
    "list get",
    r"(?:all )?(?:the )?(?:registry keys|keys (?:in|of) the registry)"
    r"(?: (?:starting with|with (?:the )?prefix) (?P<prefix>.+))?",
)
@spanish("lista", r"las claves del registro(?: (?:que empiezan por|con (?:el )?prefijo) (?P<prefix>.+))?")
def registry_keys(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """List the keys of the registry."""
    prefix = words.text("prefix", scene) if words.has("prefix") else ""
    return ProposedAction(_registry("registry_keys", prefix=prefix), "keys")


@english("search query", r"(?:the )?registry (?:for|with) (?P<query>{mark})")
@spanish("busca", r"en el registro (?P<query>{mark})")
def registry_search(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """Search the registry with a query that is written out."""
    query = words.value("query", scene)
    if not isinstance(query, Mapping):
        raise UnclearSentenceError("a query is an object")
    return ProposedAction(_registry("registry_search", query=query), "results")


@english(
    STORE + " call",
    r"(?P<value>it|that|this|the answer|the result|their answer|the reply) (?:as |under )?(?P<label>{mark}|\w+)",
)
@spanish(GUARDA + " guárdalo guardalo llama", r"(?P<value>la respuesta|el resultado|eso) como (?P<label>{mark}|\w+)")
def remember(words: PhraseParts, scene: RehearsalState) -> ProposedAction:
    """Give the last answer or result a name for later sentences."""
    return ProposedAction(None, words.text("label", scene), words.value("value", scene))


def _update(scene: RehearsalState, path: str, value: Any) -> ProposedAction:
    """The action that sets one field; a nested one is sent with its neighbours, since updates are shallow."""
    first, *rest = path.split(".")
    if rest:
        value = _nested(scene.state_value(first), rest, value)
    return ProposedAction({"actionType": "direct", "intent": "update_state", "updates": {first: value}})


def _nested(old: Any, path: list[str], value: Any) -> dict[str, Any]:
    fields = dict(old) if isinstance(old, Mapping) else {}
    first, *rest = path
    return fields | {first: _nested(fields.get(first), rest, value) if rest else value}


def _path(words: PhraseParts, scene: RehearsalState) -> str:
    """The field that is meant, without `state.`; a bare word must be a field that exists."""
    piece = words.piece("target")
    target = str(piece.value) if piece and piece.kind == "text" else words.get("target")
    if found := re.fullmatch(r"(?:state|estado)[. ](.+)", target, re.IGNORECASE):
        return found[1]
    key = scene.state_key(target)
    if key is None:
        raise UnclearSentenceError(f"the state has no `{target}`")
    return key


def _registry(intent: str, **fields: Any) -> dict[str, Any]:
    return {"actionType": "direct", "intent": intent, **fields}
