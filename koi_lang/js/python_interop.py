"""Access of code to modules, objects and classes of Python: what of it may reach the world goes by the environment."""

from __future__ import annotations

import dis
import functools
import inspect
from collections.abc import Callable
from enum import EnumMeta
from types import BuiltinFunctionType, BuiltinMethodType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

from koi_lang.js.environment import ForeignCall, current_environment
from koi_lang.js.tagged_json import is_value_type, type_name
from koi_lang.js.undefined import Value

# They compute and nothing else, so calling them again is simpler than keeping what they gave.
PURE = frozenset(
    "math _operator operator statistics re json textwrap string itertools functools fractions decimal cmath html"
    " unicodedata base64 binascii hashlib _hashlib difflib bisect _bisect heapq _heapq urllib.parse colorsys"
    " posixpath ntpath genericpath _statistics _json zlib copy struct _struct ast keyword"
    " koi_lang.system.text_width".split()
)
# What the standard library does outside it tells of itself.
STANDARD = "koi_lang.std."
FUNCTIONS = (FunctionType, BuiltinFunctionType)
METHODS = (MethodType, BuiltinMethodType)
# Class methods of values that look at the clock; all others of theirs compute.
CLOCKS = frozenset(("now", "utcnow", "today"))
# What a constructor does that may reach something outside; one that stores what it is given does none of it.
REACHING = frozenset(("CALL", "CALL_FUNCTION_EX", "IMPORT_NAME", "YIELD_VALUE", "LOAD_BUILD_CLASS"))


def from_module(found: Value, module: ModuleType, name: str) -> Value:
    """A function of a Python module as code calls it; anything else as it is."""
    if not isinstance(found, FUNCTIONS):
        return found if isinstance(found, type) else current_environment().read_python(module, name, found)
    if found.__module__ in PURE and isinstance(found, FunctionType) and not hasattr(found, "__koi_code__"):
        # A function of its own, so that a call with an object of named arguments is not mistaken for one that fits.
        return _cached_recording(found) if found.__defaults__ or found.__kwdefaults__ else found
    if found.__module__ in PURE or hasattr(found, "__koi_code__"):
        return found
    if str(found.__module__).startswith(STANDARD):
        return found
    return _cached_recording(found)


def is_of_python(f: Value) -> bool:
    """Whether a function or class is neither of Koi nor of a program."""
    if isinstance(f, FunctionType):
        return "__koi_foreign__" in f.__dict__
    return isinstance(f, type | BuiltinFunctionType) and not module_of(f).startswith("koi_lang.")


def module_of(f: Value) -> str:
    """The name of the module of a function or class; of a method that of its object."""
    owner = getattr(f, "__self__", None)
    about = f if owner is None or isinstance(owner, ModuleType) else owner if isinstance(owner, type) else type(owner)
    return str(getattr(about, "__module__", ""))


def from_object(found: Value, owner: Value, name: str) -> Value:
    """What a Python object has under a name, as code gets it: methods are calls that are kept, the rest is as it is."""
    kind = type(owner)
    if kind.__module__.startswith("koi_lang."):
        return found
    if isinstance(found, METHODS) and not isinstance(found.__self__, ModuleType):
        if isinstance(owner, type) and isinstance(found, BuiltinMethodType):
            return _of_class(found, owner)
        if _is_recorded(kind):
            return _recording(found, f"{type(found.__self__).__name__}.{found.__name__}")
        return found if isinstance(found, BuiltinMethodType) else _recording(found, "")
    return current_environment().read_python(owner, name, found) if _is_recorded(kind) else found


def _of_class(found: Callable[..., Any], owner: type) -> Callable[..., Any]:
    """A class method that is not written in Python."""
    name = f"{owner.__name__}.{found.__name__}"
    if not _is_recorded(owner) or owner.__module__ == "builtins":
        return _recording(found, name, safe=True) if found.__name__ in CLOCKS else found
    return _recording(found, name)


def from_class(kind: type) -> Callable[..., Any]:
    """A class as code makes objects of it: that is kept as a call is, unless it only stores its arguments."""
    return kind if _only_computes(kind) else _constructor(kind)


@functools.lru_cache(maxsize=512)
def _only_computes(kind: type) -> bool:
    if any(base.__module__.startswith("koi_lang.") for base in kind.__mro__) or not _is_recorded(kind):
        return True
    if kind.__module__ == "builtins" or issubclass(kind, BaseException) or isinstance(kind, EnumMeta):
        return True
    init: Any = kind.__dict__.get("__init__", kind.__init__)
    is_usual = type(kind) is type and kind.__new__ is object.__new__ and kind.__setattr__ is object.__setattr__
    return is_usual and (init is object.__init__ or (isinstance(init, FunctionType) and not _reaches(init, kind)))


def _reaches(init: FunctionType, kind: type) -> bool:
    """Whether a constructor calls something, be it by a property that it sets."""
    steps = list(dis.get_instructions(init))
    stored = (inspect.getattr_static(kind, step.argval, None) for step in steps if step.opname == "STORE_ATTR")
    return any(step.opname in REACHING for step in steps) or any(
        hasattr(type(found), "__set__") and not isinstance(found, MemberDescriptorType) for found in stored
    )


@functools.lru_cache(maxsize=512)
def _constructor(kind: type) -> Callable[..., Any]:
    module = kind.__module__.rpartition("/")[2].removesuffix(".py")

    @functools.wraps(kind, updated=())
    def construct(*args: Value, **named: Value) -> Value:
        return current_environment().call_python(ForeignCall(f"{module}.{kind.__name__}", kind, args, named))

    construct.__dict__["__koi_foreign__"] = True
    return construct


def _is_recorded(kind: type) -> bool:
    """Whether objects of a class may do something outside, or have a state that only they know; paths do the first."""
    module = type_name(kind).removesuffix(f".{kind.__qualname__}")
    return not (module in PURE or is_value_type(kind)) or module == "pathlib"


@functools.lru_cache(maxsize=512)
def _cached_recording(function: Callable[..., Any]) -> Callable[..., Any]:
    module = str(function.__module__ or "")
    if module not in PURE:
        return _recording(function, f"{module.rpartition('/')[2].removesuffix('.py')}.{function.__name__}")

    @functools.wraps(function)
    def compute(*args: Value, **named: Value) -> Value:
        return function(*args, **named)

    compute.__dict__["__koi_foreign__"] = True
    return compute


def _recording(function: Callable[..., Any], name: str, *, safe: bool = False) -> Callable[..., Any]:
    """A function as code calls it; its calls are kept under a name, unless that is empty."""

    @functools.wraps(function)
    def call_recorded(*args: Value, **named: Value) -> Value:
        call = ForeignCall(name, function, args, named, safe)
        return current_environment().call_python(call) if name else call.make()

    call_recorded.__dict__["__koi_foreign__"] = True
    return call_recorded
