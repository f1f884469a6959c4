"""Errors as values: what `throw` raises and what `catch` binds."""

from __future__ import annotations

import os.path
import re
import sys
from traceback import extract_tb
from types import CodeType, FrameType
from typing import ClassVar, TypeAlias

from koi_lang.errors import KoiError
from koi_lang.js.undefined import Value, undefined
from koi_lang.source import is_program

# Where the runtime itself is, whose calls are no part of a program.
OWN = os.path.abspath(f"{__file__}/../..")


class ErrorValue(Exception):
    """An `Error` of Koi code, which is also the exception that carries it.

    Attributes:
        name: as Koi code sees and may change it, such as `TypeError`.
        message: what went wrong.
        cause: another value, or undefined.
        exception: the Python exception this one stands for, when it does.
    """

    kind: ClassVar[str] = "Error"
    __koi_members__: ClassVar[dict[str, str]] = {
        "name": "name", "message": "message", "cause": "cause", "stack": "stack", "toString": "__str__",
    }  # fmt: skip

    def __init__(self, message: Value = "", cause: Value = undefined, exception: Exception | None = None) -> None:
        super().__init__(message)
        self.name: Value = self.kind
        self.message: Value = message
        self.cause: Value = cause
        self.exception = exception
        self.__koi_extra__: dict[str, Value] = {}
        if isinstance(cause, BaseException):
            self.__cause__ = cause

    def __str__(self) -> str:
        return ": ".join(part for part in (f"{self.name}", f"{self.message}") if part)

    @property
    def stack(self) -> Value:
        """The error and the calls it came through, innermost first; a text unless the program stored something."""
        if "stack" in self.__koi_extra__:
            return self.__koi_extra__["stack"]
        frames = (frame for frame in reversed(extract_tb(self.__traceback__)) if not frame.filename.startswith(OWN))
        return "\n".join([str(self), *(f"    at {frame.name} ({frame.filename}:{frame.lineno})" for frame in frames)])

    @stack.setter
    def stack(self, value: Value) -> None:
        self.__koi_extra__["stack"] = value


class TypeErrorValue(ErrorValue):
    """A value is of the wrong kind."""

    kind = "TypeError"


class RangeErrorValue(ErrorValue):
    """A number is out of its range."""

    kind = "RangeError"


class SyntaxErrorValue(ErrorValue):
    """A text (JSON, a regular expression) cannot be read."""

    kind = "SyntaxError"


class ReferenceErrorValue(ErrorValue):
    """A name does not exist."""

    kind = "ReferenceError"


class URIErrorValue(ErrorValue):
    """An address holds an escape that stands for nothing."""

    kind = "URIError"


class AggregateErrorValue(ErrorValue):
    """Several errors at once, as `Promise.any` gives them in `errors`."""

    kind = "AggregateError"
    __koi_members__: ClassVar[dict[str, str]] = {**ErrorValue.__koi_members__, "errors": "errors"}

    def __init__(self, errors: list[Value], message: Value = "", cause: Value = undefined) -> None:
        super().__init__(message, cause)
        self.errors = errors


class Thrown(Exception):
    """The exception of a `throw` whose value is not an error."""

    def __init__(self, value: Value) -> None:
        super().__init__(value)
        self.value = value

    def __str__(self) -> str:
        return self.value if isinstance(self.value, str) else repr(self.value)


# The attribute of an error in which the place is kept that its promise was made at.
MADE = "__koi_made__"
Made: TypeAlias = "tuple[CodeType, int]"


def running_place() -> Made | None:
    """Where code of the program is running: the code of its innermost frame, and the instruction in it."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_program(frame.f_code.co_filename):
        frame = frame.f_back
    return None if frame is None else (frame.f_code, frame.f_lasti)


# What Python says about a variable that code reads before its declaration.
_EARLY = re.compile(r"cannot access (?:local|free) variable '(\w+)'")


def thrown(value: Value) -> BaseException:
    """A value to the exception that `throw value` raises; what stands for a Python exception becomes it again."""
    if isinstance(value, ErrorValue):
        return value.exception or value
    return Thrown(value)


def read_early(name: str) -> Value:
    """The value of a variable that has none yet. Raises ReferenceErrorValue."""
    raise ReferenceErrorValue(f"Cannot access '{name}' before initialization")


def caught(error: BaseException) -> Value:
    """An exception to the value that `catch (e)` binds."""
    if isinstance(error, ErrorValue):
        return error
    if isinstance(error, Thrown):
        return error.value
    if isinstance(error, RecursionError):
        return RangeErrorValue("Maximum call stack size exceeded", exception=error)
    if not isinstance(error, Exception):
        raise error
    early = _EARLY.match(str(error)) if isinstance(error, NameError) else None
    if early is not None:
        return ReferenceErrorValue(f"Cannot access '{early[1]}' before initialization", exception=error)
    return _wrap_error(error)


def catch_value(error: BaseException) -> Value:
    """The value that a handler of the program gets for an exception; one that no handler may get is raised again."""
    if is_final(error):
        raise error
    return caught(error)


def is_final(error: BaseException) -> bool:
    """Whether no handler of the program may get an exception, where the current code runs."""
    return isinstance(error, KoiError) and error.is_final()


def _wrap_error(error: Exception) -> ErrorValue:
    message = error.message if isinstance(error, KoiError) else str(error)
    value = ErrorValue(message, error, error)
    value.name = "Error" if isinstance(error, KoiError) else type(error).__name__
    return value.with_traceback(error.__traceback__)
