"""Skills: named groups of functions that agents and Python can call."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from koi_lang.diagnostics import suggestion
from koi_lang.errors import AgentError
from koi_lang.runtime.values.members import apply
from koi_lang.runtime.values.promises import Scope, settle
from koi_lang.runtime.values.undefined import undefined

Function = Callable[..., Any]


class Skill:
    """A declared skill.

    Attributes:
        name: as declared.
        affordance: what it is good for.
        functions: its exported functions by name, as Python calls them.
    """

    def __init__(self, name: str, affordance: str, functions: Mapping[str, Function]) -> None:
        self.name, self.affordance, self.functions = name, affordance, dict(functions)

    def __getitem__(self, name: str) -> Function:
        return self.functions[name]

    def choose(self, arguments: Sequence[Any]) -> tuple[Function, Sequence[Any]]:
        """The function that `callSkill` arguments name, else the first one, and what is left of the arguments."""
        if not self.functions:
            raise AgentError(f"the skill `{self.name}` exports no function")
        if arguments and isinstance(arguments[0], str) and (len(arguments) > 1 or arguments[0] in self.functions):
            return self.function(arguments[0]), arguments[1:]
        return next(iter(self.functions.values())), arguments

    def function(self, name: str) -> Function:
        """An exported function. Raises AgentError."""
        if name not in self.functions:
            help = suggestion(name, list(self.functions), "function")
            raise AgentError(f"the skill `{self.name}` has no function `{name}`", help=help)
        return self.functions[name]


def skill(name: str) -> Callable[[Callable[[], Mapping[str, Function]]], Skill]:
    """Turn the function that holds a skill's variables into the skill; the docstring is its affordance."""

    def declare(body: Callable[[], Mapping[str, Function]]) -> Skill:
        functions = body()
        affordance = body.__doc__ or ""
        for function in functions.values():
            function.__doc__ = function.__doc__ or affordance or None
            function.__module__ = body.__module__
        return Skill(name, affordance, functions)

    return declare


def export(function: Function) -> Function:
    """Give a function an async Python face; Koi code calls the function itself, as `__koi_code__`.

    Python callers get `None` for undefined, and everything the call starts has ended when it returns.
    """

    @functools.wraps(function)
    async def exported(*arguments: Any, **named: Any) -> Any:
        async with Scope():
            result = await settle(_bound(function, arguments, named))
        return None if result is undefined else result

    exported.__qualname__ = function.__name__
    exported.__koi_code__ = function  # type: ignore[attr-defined]
    return exported


def _bound(function: Function, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
    """Call with Python's rules when names are used or the number fits, else with Koi's."""
    if named:
        return function(*arguments, **named)
    inspect.signature(function).bind(*arguments)
    return apply(function, *arguments)
