"""Actions written out in a playbook, alone or as a plan, turned into actions to propose."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from koi_lang.llm.rehearsal.masks import piece_of
from koi_lang.llm.rehearsal.phrases import fill
from koi_lang.llm.rehearsal.scene import Scene
from koi_lang.llm.rehearsal.sentences import Sentence

# What the runtime knows by name beside the results of actions.
KNOWN = frozenset({"args", "state", "iteration", "iterationIndex", "previousResult", "lastResult"})
# Stands for the `$` of a reference that is left to the runtime.
KEPT = "\ue002"
_HOLE = re.compile(r"\$(\{[^{}]*\})")
_WORD = re.compile(r"[A-Za-z_]\w*")


def written_actions(sentence: Sentence) -> list[Mapping[str, Any]]:
    """The actions of a sentence that ends with them in JSON; those of a list of actions one by one."""
    found = re.search(r"\S+$", sentence.text)
    piece = piece_of(found.group(), sentence.pieces) if found else None
    if piece is None or piece.kind != "data":
        return []
    return [action for action in _single(piece.value) if _is_action(action)]


def ids_in(sentences: Sequence[Sentence]) -> frozenset[str]:
    """What the actions written out in a playbook are called by each other."""
    return frozenset(
        str(action["id"]) for sentence in sentences for action in written_actions(sentence) if "id" in action
    )


def filled(action: Mapping[str, Any], scene: Scene, ids: frozenset[str]) -> Any:
    """An action with what earlier sentences have brought; what the runtime knows better is left to it.

    Raises:
        Unclear: it refers to something that nobody knows.
        NotYet: it refers to the result of a sentence whose action has been proposed and not executed yet.
    """
    names = KNOWN | ids
    kept = _in_texts(action, lambda text: _HOLE.sub(lambda hole: _kept(hole, names), text))
    return _in_texts(fill(kept, scene), lambda text: text.replace(KEPT, "$"))


def _kept(hole: re.Match[str], names: frozenset[str]) -> str:
    return KEPT + hole[1] if names.intersection(_WORD.findall(hole[1])) else hole[0]


def _in_texts(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {key: _in_texts(item, change) for key, item in value.items()}
    return [_in_texts(item, change) for item in value] if isinstance(value, list) else value


def _single(value: Any) -> Iterator[Any]:
    """The single actions of a batch or parallel group."""
    if not isinstance(value, dict):
        return
    group = next((value[key] for key in ("batch", "actions", "parallel") if isinstance(value.get(key), list)), None)
    if group is None or _is_action(value):
        yield value
        return
    for item in group:
        yield from _single(item)


def _is_action(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("intent"), str)
