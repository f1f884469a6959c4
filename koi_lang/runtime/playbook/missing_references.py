"""Fields of an action to an error where they refer to a result that is not there, so that no `${…}` is passed on.

Text may hold `${…}` for other reasons, such as code that a model writes: what names no result stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from koi_lang.diagnostics import nearest
from koi_lang.errors import AgentError
from koi_lang.js.undefined import undefined
from koi_lang.runtime.playbook.holes import spelled_in, texts_in
from koi_lang.runtime.playbook.references import KEPT, PATH, ActionScope

REFERENCE = re.compile(r"(?<![\w$.-])([\w$-]+)\.output(?![\w$-])")
LAST = re.compile(r"(previousResult|lastResult)(?![\w$-])")
MOST_LISTED = 8
AS_TEXT = r"A text `${…}` is written `\\${…}` in JSON."


def require_results(names: ActionScope, fields: Mapping[str, Any]) -> None:
    """Raise AgentError where a field refers to an action that failed or was skipped, or to what it did not give."""
    for key, value in fields.items():
        for text in texts_in(value) if key not in KEPT else ():
            for hole in names.open_holes(text):
                _require(names, spelled_in(hole), hole[0], text)


def _require(names: ActionScope, spelled: str, hole: str, text: str) -> None:
    # In JavaScript that a model writes, holes stand in backticks.
    alone, in_code = hole == text.strip(), "`" in text
    known, referred = names.results(), REFERENCE.findall(spelled)
    for id in referred:
        if id in names.missing:
            raise AgentError(f"`{hole}` has no value: `{id}` {names.missing[id]}", help="Go on without its result.")
    is_path = PATH.fullmatch(spelled) is not None
    if is_path and names.find(spelled) is not undefined:
        return
    for id in referred:
        near = nearest(id, [*known, *names.missing])
        if id not in known and (alone or (near and not in_code)):
            raise AgentError(f"`{hole}` has no value: there is no result `{id}`", help=_suggest_result(near, known))
    root = (REFERENCE.match(spelled) or LAST.match(spelled)) if is_path else None
    if root is not None and (alone or names.find(root[0]) is not undefined):
        _raise_empty(root[0], names.find(root[0]), hole)


def _suggest_result(near: str | None, known: list[str]) -> str:
    if near is not None:
        return f"Did you mean `{near}`?"
    return f"There are results of {_list_names(known)}. {AS_TEXT}" if known else AS_TEXT


def _raise_empty(root: str, value: Any, hole: str) -> None:
    """Raise AgentError for a path that leads to nothing in a result."""
    has = f"has {_list_names(list(value))}" if isinstance(value, Mapping) and value else "has no such part"
    raise AgentError(f"`{hole}` has no value: `{root}` {'is empty' if value in (None, undefined) else has}")


def _list_names(names: list[str]) -> str:
    more = ", …" if len(names) > MOST_LISTED else ""
    return ", ".join(f"`{name}`" for name in names[:MOST_LISTED]) + more
