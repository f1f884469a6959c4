"""Functions of Python modules to functions whose results are kept, so that a run that goes on calls none again."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

from koi_lang.runtime.context import current
from koi_lang.runtime.outside import Effect, is_data
from koi_lang.runtime.values.undefined import Value

# They compute and nothing else, so calling them again is simpler than keeping what they gave.
PURE = frozenset(
    "math _operator operator statistics re json textwrap string itertools functools fractions decimal cmath html"
    " unicodedata base64 binascii hashlib _hashlib difflib bisect _bisect heapq _heapq urllib.parse colorsys"
    " posixpath ntpath genericpath _statistics _json zlib copy struct _struct ast keyword".split()
)
# What the standard library does outside it tells of itself.
STANDARD = "koi_lang.std."
FUNCTIONS = (FunctionType, BuiltinFunctionType)


def from_module(found: Value) -> Value:
    """A function of a Python module as code calls it; anything else as it is."""
    if not isinstance(found, FUNCTIONS) or found.__module__ in PURE or hasattr(found, "__koi_code__"):
        return found
    if str(found.__module__).startswith(STANDARD):
        return found
    return _kept(found)


def from_object(found: Value) -> Value:
    """A method of a Python object as code calls it; anything else as it is."""
    if not isinstance(found, MethodType) or type(found.__self__).__module__.startswith("koi_lang."):
        return found
    return _recording(found, f"{type(found.__self__).__name__}.{found.__name__}")


@functools.lru_cache(maxsize=512)
def _kept(function: Callable[..., Any]) -> Callable[..., Any]:
    module = str(function.__module__ or "").rpartition("/")[2].removesuffix(".py")
    return _recording(function, f"{module}.{function.__name__}")


def _recording(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    @functools.wraps(function)
    def called(*args: Value, **named: Value) -> Value:
        run = current.get()
        if run is None:
            return function(*args, **named)
        given = {"named": {key: _shown(arg) for key, arg in named.items()}} if named else {}
        effect = Effect(name, {"args": [_shown(arg) for arg in args], **given}, lasting=False)
        work = functools.partial(function, *args, **named)
        if inspect.iscoroutinefunction(function):
            return run.effects.announced(effect, work)
        return run.effects.announced_nowait(effect, work)

    called.__dict__["__koi_foreign__"] = True
    return called


def _shown(value: Value) -> Value:
    """An argument as it can be compared with what was given before."""
    return value if is_data(value) else f"<{type(value).__name__}>"
