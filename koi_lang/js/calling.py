"""A Python callable and any number of arguments to a call that fits, as JavaScript calls functions."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from functools import lru_cache
from inspect import Parameter, signature
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import NamedTuple

from koi_lang.js.errors import TypeErrorValue
from koi_lang.js.method_tables import Constructor, Function
from koi_lang.js.number_format import number_text
from koi_lang.js.python_interop import from_class, is_of_python, module_of
from koi_lang.js.undefined import Value, undefined

# The flags of functions that take any number of arguments, or names.
VARIADIC = 0x04 | 0x08
_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_ANY = sys.maxsize
# Modules whose functions do not tell their parameters, and take no objects in place of values.
WITHOUT_OBJECTS = frozenset(("datetime",))
# The parameter of functions that have a `this` of their own.
THIS = "this_object"
# What the compiler calls functions without a name that are no lambda.
ANONYMOUS = re.compile(r"anonymous(?:_\d+)?")


class Arity(NamedTuple):
    """How many positional arguments a callable needs and accepts."""

    least: int
    most: int


def apply(f: Value, *args: Value) -> Value:
    """Call `f`; missing arguments become undefined, extra ones are dropped, a coroutine is returned as it is.

    Raises:
        TypeErrorValue: `f` cannot be called, or is of Python, where what is missing has no value.
    """
    if type(f) is FunctionType:
        code = f.__code__
        if code.co_argcount == len(args) and not code.co_flags & VARIADIC:
            return f(*args)
    elif type(f) is MethodType and type(f.__func__) is FunctionType:
        code = f.__func__.__code__
        if code.co_argcount == len(args) + 1 and not code.co_flags & VARIADIC:
            return f(*args)
    f = getattr(f, "__koi_code__", f)
    if isinstance(f, type):
        f = from_class(f)
    if args and type(args[-1]) is dict and args[-1] and is_of_python(f) and _are_names(f, args):
        named = args[-1]
        args = args[:-1]
    else:
        named = {}
    least, most = arity(f)
    if len(args) < least:
        _require_no_more(f, len(args))
        return f(*args, *(undefined,) * (least - len(args)), **named)
    return f(*args[:most], **named)


def apply_to(this: Value, f: Value, *args: Value) -> Value:
    """Call `f` as a member of `this`, which a function that has a `this` of its own is given."""
    if not takes_this(f):
        return apply(f, *args)
    missing = f.__code__.co_argcount - len(f.__defaults__ or ()) - len(args)
    return f(*args, *(undefined,) * missing, **{THIS: this})


def takes_this(f: Value) -> bool:
    """Whether a function has a `this` of its own: the object that it is called on."""
    return type(f) is FunctionType and f.__kwdefaults__ is not None and THIS in f.__kwdefaults__


def _require_no_more(f: Function, count: int) -> None:
    """Raise TypeErrorValue for a function of a Python module that needs more arguments than it is given."""
    if not getattr(f, "__koi_foreign__", False):
        return
    needed = [name for name, parameter in signature(f).parameters.items() if _is_needed(parameter)][count:]
    missing = " and ".join(f"`{name}`" for name in needed)
    raise TypeErrorValue(f"{missing} of `{f.__name__}` {'is' if len(needed) == 1 else 'are'} missing")


def _are_names(f: Function, args: tuple[Value, ...]) -> bool:
    """Whether the last of the arguments of a Python function, an object, holds arguments by name.

    It does behind all positional ones, and in place of one that is a text, number or Boolean by default.

    Raises:
        TypeErrorValue: it stands behind all positional ones and holds other names.
    """
    parameters = _parameters_of(f)
    if parameters is None:
        return module_of(f) in WITHOUT_OBJECTS
    given = args[-1]
    positional = [each for each in parameters if each.kind in _POSITIONAL]
    kinds = {each.kind for each in parameters}
    names = [each.name for each in parameters if each.kind is Parameter.KEYWORD_ONLY]
    index = len(args) - 1
    if index >= len(positional):
        if Parameter.VAR_KEYWORD in kinds:
            return Parameter.VAR_POSITIONAL not in kinds
        wrong = next((name for name in given if name not in names), None)
        if Parameter.VAR_POSITIONAL in kinds or index > len(positional):
            return wrong is None
        if names and wrong is not None:
            listed = ", ".join(f"`{name}`" for name in names)
            raise TypeErrorValue(f"`{f.__name__}` cannot be given `{wrong}` by name, only {listed}")
        return bool(names)
    if not isinstance(positional[index].default, str | int | float):
        return False
    names += [each.name for each in positional[index:] if each.kind is Parameter.POSITIONAL_OR_KEYWORD]
    return Parameter.VAR_KEYWORD in kinds or all(name in names for name in given)


def _parameters_of(f: Function) -> tuple[Parameter, ...] | None:
    """The parameters of a Python function; None for one that does not tell them."""
    try:
        return tuple(signature(f).parameters.values())
    except (ValueError, TypeError):
        return None


def _is_needed(parameter: Parameter) -> bool:
    return parameter.kind in _POSITIONAL and parameter.default is Parameter.empty


def arity(f: Value) -> Arity:
    """How many arguments `f` takes.

    Raises:
        TypeErrorValue: `f` cannot be called.
    """
    if type(f) is FunctionType:
        return _of_function(f)
    if type(f) is MethodType:
        least, most = arity(f.__func__)
        return Arity(max(least - 1, 0), most if most == _ANY else most - 1)
    if isinstance(f, Constructor):
        return Arity(0, _ANY) if f.convert is None else arity(f.convert)
    if not callable(f):
        raise TypeErrorValue(f"{describe(f)} is not a function")
    return _of_object(f)


def _of_function(f: FunctionType) -> Arity:
    if "__wrapped__" in f.__dict__:
        return _arity_of(f)
    code = f.__code__
    least = code.co_argcount - len(f.__defaults__ or ())
    return Arity._make((least, _ANY if code.co_flags & 0x04 else code.co_argcount))


def _of_object(f: Function) -> Arity:
    """Builtins, classes and instances that can be called; what belongs to an instance is looked up by its class."""
    if isinstance(f, type):
        return _arity_of(f)
    owner = getattr(f, "__self__", None)
    if isinstance(f, BuiltinFunctionType) and owner is not None and not isinstance(owner, ModuleType | type):
        least, most = _arity_of(getattr(type(owner), f.__name__, f))
        return Arity(max(least - 1, 0), most if most == _ANY else most - 1)
    if isinstance(f, BuiltinFunctionType):
        return _arity_of(f)
    return _parameters(f)


@lru_cache(maxsize=512)
def _arity_of(f: Function) -> Arity:
    return _parameters(f)


def _parameters(f: Function) -> Arity:
    parameters = _parameters_of(f)
    if parameters is None:
        return Arity(0, _ANY)
    positional = [parameter for parameter in parameters if parameter.kind in _POSITIONAL]
    least = sum(map(_is_needed, positional))
    if any(parameter.kind is Parameter.VAR_POSITIONAL for parameter in parameters):
        return Arity(least, _ANY)
    return Arity(least, len(positional))


def describe(value: Value) -> str:
    """A value in a few words, for messages."""
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, str):
        return f'"{value}"' if len(value) <= 40 else f'"{value[:40]}…"'
    if isinstance(value, int | float):
        return number_text(value)
    if isinstance(value, list | tuple):
        return "an array"
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, ModuleType):
        return f"the module `{value.__name__.rpartition('/')[2].removesuffix('.py')}`"
    if callable(value):
        return f"the function `{function_name(value)}`" if function_name(value) else "a function"
    if value is undefined:
        return "undefined"
    kind = type(value)
    return str(getattr(kind, "__koi_kind__", None) or f"`{kind.__name__.removesuffix('Value')}`")


def function_name(f: Value) -> str:
    """The name a function has for Koi code; empty for one without."""
    name = getattr(f, "__koi_name__", None)
    if name is None:
        name = f.name if isinstance(f, Constructor) else getattr(f, "__name__", "")
    return "" if name.startswith("<") or ANONYMOUS.fullmatch(name) else str(name)
