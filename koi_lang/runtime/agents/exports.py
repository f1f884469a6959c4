"""Exported functions of skills as Python calls them, and the values that cross over."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from koi_lang.errors import ProgramError
from koi_lang.js.errors import ErrorValue, RangeErrorValue, ReferenceErrorValue, Thrown, caught
from koi_lang.js.promises import TaskScope, settle
from koi_lang.js.undefined import undefined
from koi_lang.runtime import outside_calls
from koi_lang.runtime.context import current
from koi_lang.runtime.replay.error_records import thrown_text
from koi_lang.runtime.schema import Schema

Function = Callable[..., Any]
NONE: Schema = {}


def export(function: Function) -> Function:
    """Give a function an async Python face; Koi code calls the function itself, as `__koi_code__`.

    Outside of runs it gets one where it needs one: of the program that is open around the call, else of its own.
    Python's rules count for its arguments. Its callers get None for undefined, and everything the call starts has
    ended when it returns. Outside of runs they get a ProgramError for what its code throws; exceptions of Python pass.
    """
    function.__qualname__ = function.__name__

    async def call(*arguments: Any, **named: Any) -> Any:
        async with TaskScope():
            result = await settle(function(*arguments, **named))
        return ordinary(result)

    @functools.wraps(function)
    async def call_exported(*arguments: Any, **named: Any) -> Any:
        if current.get() is not None:
            return await call(*arguments, **named)
        try:
            if not outside_calls.needs_run(function):
                return await call(*arguments, **named)
            file = inspect.unwrap(function).__code__.co_filename
            return await outside_calls.perform_in_program(file, lambda: call(*arguments, **named))
        except (ErrorValue, Thrown) as error:
            raise ProgramError(thrown_text(error)) from error
        except (RecursionError, NameError) as error:
            # How Python tells endless recursion of the program, and the use of a `const` before its line.
            stands_for = caught(error)
            if not isinstance(stands_for, RangeErrorValue | ReferenceErrorValue):
                raise
            raise ProgramError(thrown_text(stands_for)) from error

    call_exported.__koi_code__ = function  # type: ignore[attr-defined]
    return call_exported


def needs(permission: str) -> Callable[[Function], Function]:
    """Give a function the permission that the role of an agent must have for its model to call it."""

    def mark(function: Function) -> Function:
        function.__koi_needs__ = permission  # type: ignore[attr-defined]
        return function

    return mark


def with_types(
    parameters: Mapping[str, Schema] = NONE, result: Schema = NONE, declared: Mapping[str, Schema] = NONE
) -> Callable[[Function], Function]:
    """Give a function the JSON Schemas of parameters and of its result that annotations of Python cannot say.

    Args:
        declared: the declared types that they refer to.
    """
    named = {"$defs": declared} if declared else {}
    typed = {name: {**schema, **named} for name, schema in parameters.items()}

    def mark(function: Function) -> Function:
        function.__koi_types__ = (typed, {**result, **named} if result else result)  # type: ignore[attr-defined]
        return function

    return mark


def ordinary(value: Any) -> Any:
    """A value as Python callers get it: a list or dictionary that holds undefined is copied, with None in its place."""
    return plain_copy(value) if _holds_undefined(value, set()) else value


def plain_copy(value: Any) -> Any:
    """A value whose lists and dictionaries are copies, at any depth, with None for undefined; tuples become lists."""
    return _without_undefined(value, {})


def _holds_undefined(value: Any, seen: set[int]) -> bool:
    if not isinstance(value, (list, dict)) or id(value) in seen:
        return value is undefined
    seen.add(id(value))
    return any(_holds_undefined(item, seen) for item in (value.values() if isinstance(value, dict) else value))


def _without_undefined(value: Any, made: dict[int, Any]) -> Any:
    if not isinstance(value, (list, tuple, dict)):
        return None if value is undefined else value
    if id(value) in made:
        return made[id(value)]
    if not isinstance(value, dict):
        items: list[Any] = made.setdefault(id(value), [])
        items.extend(_without_undefined(item, made) for item in value)
        return items
    members: dict[str, Any] = made.setdefault(id(value), {})
    members.update((key, _without_undefined(item, made)) for key, item in value.items())
    return members
