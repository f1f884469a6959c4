"""`${id.output.x}` and conditions in actions: references to earlier results."""

from __future__ import annotations

import json
import re
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from koi_lang.diagnostics import nearest
from koi_lang.errors import AgentError, KoiError
from koi_lang.js.inspect_value import inspect as as_text
from koi_lang.js.operators import truth
from koi_lang.js.properties import get
from koi_lang.js.undefined import undefined
from koi_lang.runtime.guards.size import require_room, written_weight
from koi_lang.runtime.playbook.holes import HOLE, fill_holes, is_literal, open_holes, spelled_in, texts_in
from koi_lang.runtime.playbook.told_expressions import ToldData
from koi_lang.runtime.prompts import value_text

Evaluate = Callable[[str, Mapping[str, Any]], Any]
# A hole in quotes of its own, as in `"${user.output.name}" == "Ada"`.
QUOTED = re.compile(rf"""(["'])({HOLE.pattern})\1""")
# Ids may hold `-`, so `first-step.output.n` is looked up as a path before it is computed as a difference.
PATH = re.compile(r"[\w$-]+(?:\.[\w$-]+|\[\d+\])*")
NAME = re.compile(r"(?<![\w$.])(?!\d)[\w$]+")
LINK = re.compile(r"\.?([\w$-]+)|\[(\d+)\]")
PLAIN_PATH = re.compile(r"[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*|\[\d+\])*")
# Text for people and models, nested actions and conditions keep their holes: they are resolved when their turn comes.
KEPT = frozenset({"condition", "instruction", "options", "actions", "then", "else", "otherwise"})
SILENT = frozenset({"print", "log", "format"})
REFERENCE = re.compile(r"(?<![\w$.-])([\w$-]+)\.output(?![\w$-])")
LAST = re.compile(r"(previousResult|lastResult)(?![\w$-])")
MAX_LISTED = 8
AS_TEXT = r"A text `${…}` is written `\\${…}` in JSON."


class ActionScope:
    """The names that references can use: results by id, the last ones, args, state, loop counters.

    A nested block sees the names of the block around it.

    Attributes:
        missing: ids of actions that gave no result, with what became of them.
        copied: names that stand for fields of results; a later result with such a field takes the name.
    """

    def __init__(self, evaluate: Evaluate, args: Any, state: Mapping[str, Any]) -> None:
        self._evaluate = evaluate
        self._own: dict[str, Any] = {}
        self._all: ChainMap[str, Any] = ChainMap(self._own, {"args": args, "state": state})
        self.missing: dict[str, str] = {}
        self.copied: set[str] = set()
        self._told: ToldData | None = None
        self._answer: set[str] = set()
        self._has_literals = True

    def begin_answer(self, data: ToldData | None) -> None:
        """Begin another answer, of a model with a known set of placeholder values.

        Args:
            data: None for an answer to an earlier version of Koi, in which every hole stands for a value.
        """
        self._told = data
        self._answer = set()
        self._has_literals = data is not None

    def child_scope(self) -> ActionScope:
        """Names for the body of a loop or branch."""
        inner = ActionScope(self._evaluate, None, {})
        inner._all = ChainMap(inner._own, *self._all.maps)
        inner.missing, inner.copied = self.missing, self.copied
        inner._told = self._told
        inner._answer = self._answer
        inner._has_literals = self._has_literals
        return inner

    def add(self, own: Mapping[str, Any]) -> None:
        """Give names of this block a value, such as the counters of a loop."""
        self._own.update(own)
        self.copied -= own.keys()
        self._answer |= own.keys()

    def record(self, intent: str, id: str, value: Any) -> None:
        """Keep the result of an action; results with an id stay visible outside of a nested block."""
        value = open_result(value)
        if id:
            self.missing.pop(id, None)
            self._answer.add(id)
            self._keep(id, {"output": value})
        if intent in SILENT:
            return
        self._own["previousResult"] = self._own["lastResult"] = value
        if isinstance(value, dict):
            fields = {key: item for key, item in value.items() if key in self.copied or key not in self._all}
            self._own.update(fields)
            self.copied |= fields.keys()

    def _keep(self, id: str, value: Any) -> None:
        self.copied.discard(id)
        *blocks, _ = self._all.maps
        for names in blocks:
            names[id] = value

    def mark_missing(self, id: str, why: str) -> None:
        """Keep in mind that an action gave no result, and why."""
        if id:
            self.missing[id] = why
            self._answer |= {id} - self._all.keys()

    def results(self) -> list[str]:
        """The ids that references find a result by."""
        return [id for id, value in self._all.items() if isinstance(value, dict) and value.keys() == {"output"}]

    def open_holes(self, text: str) -> Iterator[re.Match[str]]:
        """The holes of a text that stand for values."""
        holes = open_holes(text) if self._has_literals else HOLE.finditer(text)
        return (hole for hole in holes if not self.is_told(hole))

    def is_told(self, hole: re.Match[str]) -> bool:
        """Whether the model has a hole from data, so that it is text, unless it is about results of the same answer."""
        spelled = spelled_in(hole)
        return self._told is not None and not self._is_of_answer(spelled) and self._told.holds(spelled)

    def _is_of_answer(self, spelled: str) -> bool:
        """Whether an expression mentions actions of the answer that is being carried out, and nothing else."""
        if PATH.fullmatch(spelled) and self.find(spelled) is not undefined:
            return LINK.findall(spelled)[0][0] in self._answer
        mentioned = NAME.findall(spelled)
        return bool(mentioned) and self._answer.issuperset(mentioned)

    def find(self, path: str) -> Any:
        """The value at a path such as `id.output.list[0]`; undefined if there is none."""
        return _by_path(path, self._all)

    def substitute(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Fields of an action with their references replaced by values. Raises AgentError as `resolve` does."""
        filled = {key: value if key in KEPT else self._resolve_value(value) for key, value in fields.items()}
        require_room(written_weight(filled))
        return filled

    def resolve(self, value: Any) -> Any:
        r"""A value with its references replaced, at any depth; unknown references stay as written.

        `\${…}` becomes `${…}`.

        Raises:
            AgentError: what comes of it is too large.
        """
        resolved = self._resolve_value(value)
        require_room(written_weight(resolved))
        return resolved

    def _resolve_value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._resolve_text(value) if HOLE.search(value) else value
        if isinstance(value, dict):
            return {key: self._resolve_value(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._resolve_value(item) for item in value]
        return value

    def _resolve_text(self, text: str) -> Any:
        """A text that is one reference becomes the value itself, with its type."""
        whole = HOLE.fullmatch(text.strip())
        if whole is not None:
            return self._value(whole, text)
        size = 0

        def put(hole: re.Match[str]) -> str:
            nonlocal size
            value = self._value(hole, hole[0])
            size += written_weight(value)
            require_room(size)  # before it is written down
            return value_text(value)

        return fill_holes(text, put) if self._has_literals else HOLE.sub(put, text)

    def _value(self, hole: re.Match[str], otherwise: str) -> Any:
        """The value of a hole: the value at its path, else that of its expression.

        Raises:
            AgentError: it computes with a value that is known, and cannot be computed; in code it is taken for code.
        """
        spelled = spelled_in(hole)
        if self.is_told(hole):
            return otherwise
        if PATH.fullmatch(spelled):
            found = _by_path(spelled, self._all)
            if found is not undefined or PLAIN_PATH.fullmatch(spelled):
                return otherwise if found is undefined else found
        try:
            return self._evaluate(spelled, self._all)
        except KoiError as error:
            root = NAME.match(spelled)
            if root is None or root[0] not in self._all or "`" in hole.string:
                return otherwise
            raise AgentError(f"`{hole[0]}` has no value: {error.message}", help=error.help or AS_TEXT) from error

    def evaluate_condition(self, condition: Any) -> bool:
        """Whether a condition is true: a boolean, or the text of an expression, with or without `${…}` around parts.

        Raises:
            KoiError: it is something else, or the text is no expression over known names.
        """
        if isinstance(condition, bool):
            return condition
        if not isinstance(condition, str):
            raise AgentError(f"`condition` must be true, false or the text of an expression, not {as_text(condition)}")
        given: dict[str, Any] = {}
        unquoted = QUOTED.sub(r"String(\2)", condition)
        expression = HOLE.sub(lambda hole: self._operand(hole, given), unquoted)
        return bool(truth(self._evaluate(expression, ChainMap(given, *self._all.maps))))

    def _operand(self, hole: re.Match[str], given: dict[str, Any]) -> str:
        """A hole as an operand of an expression; a value found by path gets a name, so that any id can be used."""
        if self._has_literals and is_literal(hole):
            return hole[0]
        spelled = spelled_in(hole)
        found = _by_path(spelled, self._all) if PATH.fullmatch(spelled) and not spelled.isdigit() else undefined
        if found is undefined:
            return f"({spelled})"
        name = f"_{len(given)}"
        given[name] = found
        return name


def open_result(value: Any) -> Any:
    """A result whose only field is `result`, an object as JSON text, with the fields of that object beside it."""
    if not isinstance(value, dict) or value.keys() != {"result"} or not isinstance(value["result"], str):
        return value
    try:
        inner = json.loads(value["result"])
    except (ValueError, RecursionError):
        return value
    return {**inner, **value} if isinstance(inner, dict) else value


def _by_path(path: str, names: Mapping[str, Any]) -> Any:
    value: Any = names
    for name, index in LINK.findall(path):
        if value is None or value is undefined or not isinstance(value, (Mapping, list, str)):
            return undefined
        value = value.get(name, undefined) if isinstance(value, Mapping) else _member(value, name or int(index))
    return value


def _member(value: Any, key: str | int) -> Any:
    """A member of a list or text; its methods are for code."""
    found = get(value, key)
    return undefined if callable(found) else found


# ---------------------------------------------------------------- references to what is not there


def require_results(names: ActionScope, fields: Mapping[str, Any]) -> None:
    """Raise AgentError where a field refers to a failed or skipped action, or to a value missing in its result.

    Text may hold `${…}` for other reasons, such as code that a model writes: what names no result stays as it is.
    """
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
    more = ", …" if len(names) > MAX_LISTED else ""
    return ", ".join(f"`{name}`" for name in names[:MAX_LISTED]) + more
