"""`${id.output.x}` and conditions in actions: what earlier results put into later ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from koi_lang.errors import KoiError
from koi_lang.runtime.prompts import fill
from koi_lang.runtime.values.access import get
from koi_lang.runtime.values.operators import truth
from koi_lang.runtime.values.undefined import undefined

Evaluate = Callable[[str, Mapping[str, Any]], Any]
HOLE = re.compile(r"\$\{([^{}]+)\}")
PATH = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_$][\w$]*|\[\d+\])*")
LINK = re.compile(r"\.?([A-Za-z_$][\w$]*)|\[(\d+)\]")
# Text for people and models, nested actions and conditions keep their holes: they are resolved when their turn comes.
KEPT = frozenset({"condition", "instruction", "options", "actions", "then", "else"})
SILENT = frozenset({"print", "log", "format"})


class Names:
    """What references can mention: results by id, the last ones, args, state, and the counters of a loop.

    A nested block sees the names of the block around it.
    """

    def __init__(self, evaluate: Evaluate, args: Any, state: Mapping[str, Any], outer: Names | None = None) -> None:
        self._evaluate, self._args, self._state, self._outer = evaluate, args, state, outer
        self._own: dict[str, Any] = {}

    def nested(self, **own: Any) -> Names:
        """Names for the body of a loop or branch."""
        inner = Names(self._evaluate, self._args, self._state, self)
        inner._own.update(own)
        return inner

    def all(self) -> dict[str, Any]:
        """Every name with its value, the innermost first to count."""
        around = self._outer.all() if self._outer else {"args": self._args, "state": self._state}
        return {**around, **self._own}

    def record(self, intent: str, id: str, value: Any) -> None:
        """Keep the result of an action; results with an id stay visible outside of a nested block."""
        if id:
            self._keep(id, {"output": value})
        if intent in SILENT:
            return
        self._own["previousResult"] = self._own["lastResult"] = value
        if isinstance(value, dict):
            known = self.all()
            self._own.update({key: item for key, item in value.items() if key not in known})

    def _keep(self, id: str, value: Any) -> None:
        names: Names | None = self
        while names is not None:
            names._own[id] = value
            names = names._outer

    def filled(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Fields of an action with their references replaced by values."""
        return {key: value if key in KEPT else self.resolve(value) for key, value in fields.items()}

    def resolve(self, value: Any) -> Any:
        """A value with its references replaced, at any depth; what refers to nothing known stays as written."""
        if isinstance(value, str):
            return self._resolve_text(value) if "${" in value else value
        if isinstance(value, dict):
            return {key: self.resolve(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.resolve(item) for item in value]
        return value

    def _resolve_text(self, text: str) -> Any:
        """A text that is one reference becomes the value itself, with its type."""
        names = self.all()
        whole = HOLE.fullmatch(text.strip())
        if whole is not None:
            return self._value(whole[1], names, text)
        return HOLE.sub(lambda hole: fill(self._value(hole[1], names, hole[0])), text)

    def _value(self, expression: str, names: Mapping[str, Any], otherwise: str) -> Any:
        spelled = expression.strip()
        if PATH.fullmatch(spelled):
            found = _by_path(spelled, names)
            return otherwise if found is undefined else found
        try:
            return self._evaluate(spelled, names)
        except KoiError:
            return otherwise

    def holds(self, condition: Any) -> bool:
        """Whether a condition is true: a boolean, or the text of an expression, with or without `${…}` around parts.

        Raises:
            KoiError: the text is no expression over known names.
        """
        if not isinstance(condition, str):
            return condition is True
        expression = HOLE.sub(lambda hole: f"({hole[1]})", condition)
        return bool(truth(self._evaluate(expression, self.all())))


def _by_path(path: str, names: Mapping[str, Any]) -> Any:
    value: Any = names
    for name, index in LINK.findall(path):
        if value is None or value is undefined or not isinstance(value, (Mapping, list, str)):
            return undefined
        value = value.get(name, undefined) if isinstance(value, Mapping) else get(value, name or int(index))
    return value
