"""Arguments and changes of Python calls, recorded so that a resumed run can recall them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from koi_lang.js.environment import ForeignCall
from koi_lang.js.tagged_json import MAX_DEPTH, NotEncodableError, decode, encode, is_value_type
from koi_lang.js.undefined import Value
from koi_lang.runtime.replay.module_state import ModuleState, replace_content

STATELESS = (FunctionType, BuiltinFunctionType, MethodType, ModuleType, type)


class InteropCall:
    """A call of Python from a program."""

    def __init__(self, call: ForeignCall) -> None:
        function, args = call.function, call.args
        owner = None if isinstance(function, type) else getattr(function, "__self__", None)
        self._args = {**{str(n): value for n, value in enumerate(args)}, **call.named}
        self._before = {name: _to_comparable(value) for name, value in self._args.items()}
        self._count = len(args)
        self._state = ModuleState(function)
        self._objects = list({id(found): found for found in _objects_in([owner, *self._args.values()])}.values())

    @property
    def objects(self) -> list[Value]:
        """The stateful objects it works on: Python objects, and the globals of their modules."""
        return [*self._objects, *filter(None, [self._state.key])]

    @property
    def comparable_arguments(self) -> dict[str, Any]:
        """The arguments in a form comparable with the recorded ones."""
        shown = list(self._before.items())
        named = dict(shown[self._count :])
        return {"args": [value for _, value in shown[: self._count]], **({"named": named} if named else {})}

    def changes(self) -> dict[str, Any]:
        """The changes of its objects, by position or name; `opaque` for changes that cannot be repeated."""
        after = {name: _to_comparable(value) for name, value in self._args.items()}
        changed = {name: value for name, value in after.items() if value != self._before[name]}
        if any(not hasattr(self._args[name], "clear") or isinstance(changed[name], str) for name in changed):
            return {"opaque": True}
        return {**({"changed": changed} if changed else {}), **self._state.changes()}

    def restore(self, data: Mapping[str, Any]) -> list[Value]:
        """Give them the content that they had then; gives the objects that lack the call nevertheless."""
        for name, content in data.get("changed", {}).items():
            replace_content(self._args.get(name), decode(content))
        return self._objects if self._state.restore(data) else self.objects


def _to_comparable(value: Value) -> Value:
    """An argument in a form comparable with the recorded one."""
    try:
        return encode(value)
    except NotEncodableError:
        return f"<{type(value).__name__}>"


def _objects_in(values: Iterable[Value], depth: int = 0) -> Iterator[Value]:
    """The Python objects in some values that may have a state of their own; a value may hold itself."""
    for value in values:
        kind = type(value)
        if kind in (list, tuple, set, frozenset, dict):
            inside = value.values() if kind is dict else value
            yield from _objects_in(inside, depth + 1) if depth < MAX_DEPTH else ()
        elif not (is_value_type(kind) or isinstance(value, STATELESS) or kind.__module__.startswith("koi_lang.")):
            yield value
