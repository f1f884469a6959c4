"""Inspection and evaluation while a program is stopped."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from koi_lang.dap.nodes import ActionNode
from koi_lang.dap.stack import Level
from koi_lang.dap.values import children_of, kind_of, plain, set_variable, text_of
from koi_lang.errors import UsageError
from koi_lang.program import safe_expressions

ASSIGNMENT = re.compile(r"\s*([A-Za-z_$][\w$]*)((?:\.[A-Za-z_$][\w$]*|\[\d+\])*)\s*=(?![=>])(.*)", re.DOTALL)
LINK = re.compile(r"\.([\w$]+)|\[(\d+)\]")
# Put a value in place of another one.
Put = Callable[[Any], None]


class Inspection:
    """The stack and the values of one stop; ids count from 1 and are forgotten with it.

    Args:
        may_change: whether a person may change values; what was recorded stays as it is.
    """

    def __init__(self, levels: Sequence[Level], *, may_change: bool) -> None:
        self.levels = levels
        self._may_change = may_change
        self._holders: list[tuple[Any, int]] = []

    def level(self, id: Any) -> Level:
        """The level of an id; without one the innermost. Raises UsageError."""
        index = 0 if id is None else int(id) - 1
        if not 0 <= index < len(self.levels):
            raise UsageError("this stack is of an earlier stop")
        return self.levels[index]

    def stack(self, start: int = 0, most: int = 0) -> dict[str, Any]:
        """The body of `stackTrace`."""
        frames = [level.as_data(index + 1) for index, level in enumerate(self.levels)]
        return {"stackFrames": frames[start : start + most if most else None], "totalFrames": len(frames)}

    def scopes(self, id: int) -> dict[str, Any]:
        """The body of `scopes`."""
        level = self.level(id)
        groups = level.scopes().items()
        scopes = [(name, self._refer(dict(group), int(id))) for name, group in groups]
        return {"scopes": [{"name": name, "variablesReference": number, "expensive": False} for name, number in scopes]}

    def variables(self, reference: int, start: int = 0, most: int = 0) -> dict[str, Any]:
        """The body of `variables`. Raises UsageError."""
        holder, id = self._holder(reference)
        inside = children_of(holder)[start : start + most if most else None]
        return {"variables": [{"name": name, **self._show(value, id)} for name, value in inside]}

    def evaluate(self, text: str, id: Any = None) -> dict[str, Any]:
        """The body of `evaluate`: an expression of Koi, or an assignment. Raises KoiError."""
        level = self.level(id)
        number = self.levels.index(level) + 1
        found = ASSIGNMENT.fullmatch(text)
        value = self.value(text, id) if found is None else self._assign(level, found)
        shown = self._show(value, number)
        return {"result": shown.pop("value"), **shown}

    def value(self, text: str, id: Any = None) -> Any:
        """The value of an expression at a level. Raises ExpressionError."""
        return value_at(self.level(id), text)

    def set_variable(self, reference: int, name: str, text: str) -> dict[str, Any]:
        """The body of `setVariable`. Raises KoiError."""
        holder, id = self._holder(reference)
        level = self.level(id)
        value = self.value(text, id)
        self._require_change()
        if holder in list(level.scopes().values()):
            self._put(level, name, value)
        else:
            put_inside(holder, name, value)
        return self._show(value, id)

    # ------------------------------------------------------------ inside

    def _assign(self, level: Level, found: re.Match[str]) -> Any:
        name, links, text = found.groups()
        value = value_at(level, text)
        self._require_change()
        if not links:
            self._put(level, name, value)
            return value
        *around, last = [key or int(index) for key, index in LINK.findall(links)]
        holder = plain(level.names().get(name))
        for link in around:
            holder = dict(children_of(holder)).get(str(link))
        put_inside(holder, str(last), value)
        return value

    def _put(self, level: Level, name: str, value: Any) -> None:
        """Give a variable another value; of an action its fields. Raises UsageError."""
        if isinstance(level.node, ActionNode):
            if name != "fields" or not isinstance(value, dict):
                raise UsageError(f"`{name}` of an action cannot be changed", help="Its `fields` can: an object.")
            level.node.fields.clear()
            level.node.fields.update(value)
        elif level.frame is None or not set_variable(level.frame, name, value):
            raise UsageError(f"there is no variable `{name}` here")

    def _require_change(self) -> None:
        if not self._may_change:
            help = "`.result VALUE` goes on from here as a branch, with another result of the last action."
            raise UsageError("what was recorded cannot be changed", help=help)

    def _show(self, value: Any, id: int) -> dict[str, Any]:
        reference = self._refer(value, id) if children_of(value) else 0
        return {"value": text_of(value), "type": kind_of(value), "variablesReference": reference}

    def _refer(self, value: Any, id: int) -> int:
        self._holders.append((value, id))
        return len(self._holders)

    def _holder(self, reference: int) -> tuple[Any, int]:
        if not 0 < reference <= len(self._holders):
            raise UsageError("these variables are of an earlier stop")
        return self._holders[reference - 1]


def value_at(level: Level, text: str) -> Any:
    """The value of an expression of Koi over the names of a level. Raises ExpressionError."""
    names: Mapping[str, Any] = {name: plain(value) for name, value in level.names().items()}
    return safe_expressions.evaluate(text, names)


def put_inside(holder: Any, name: str, value: Any) -> None:
    """Put a value into an object or array. Raises UsageError for anything else."""
    inside = plain(holder)
    if isinstance(inside, dict):
        inside[name] = value
    elif isinstance(inside, list) and name.isdecimal() and int(name) < len(inside):
        inside[int(name)] = value
    else:
        raise UsageError(f"`{name}` is in nothing that can be changed")
