"""Functions of Python modules to functions whose results are kept, so that a run that goes on calls none again."""

from __future__ import annotations

import dis
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import EnumMeta
from types import BuiltinFunctionType, BuiltinMethodType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

from koi_lang.js.tagged_json import DEEPEST, NotEncodableError, decode, encode, is_value_type
from koi_lang.js.undefined import Value
from koi_lang.runtime.cancellation import awaited_outside, outside
from koi_lang.runtime.context import current
from koi_lang.runtime.replay.calls import Effect
from koi_lang.runtime.replay.module_state import ModuleState, replace_content, state_key

# They compute and nothing else, so calling them again is simpler than keeping what they gave.
PURE = frozenset(
    "math _operator operator statistics re json textwrap string itertools functools fractions decimal cmath html"
    " unicodedata base64 binascii hashlib _hashlib difflib bisect _bisect heapq _heapq urllib.parse colorsys"
    " posixpath ntpath genericpath _statistics _json zlib copy struct _struct ast keyword".split()
)
# What the standard library does outside it tells of itself.
STANDARD = "koi_lang.std."
FUNCTIONS = (FunctionType, BuiltinFunctionType)
METHODS = (MethodType, BuiltinMethodType)
# Class methods of values that look at the clock; all others of theirs compute.
CLOCKS = frozenset(("now", "utcnow", "today"))
# What a constructor does that may reach something outside; one that stores what it is given does none of it.
REACHING = frozenset(("CALL", "CALL_FUNCTION_EX", "IMPORT_NAME", "YIELD_VALUE", "LOAD_BUILD_CLASS"))
STATELESS = (FunctionType, BuiltinFunctionType, MethodType, ModuleType, type)


def from_module(found: Value, module: ModuleType, name: str) -> Value:
    """A function of a Python module as code calls it; anything else as it is."""
    if not isinstance(found, FUNCTIONS):
        return found if isinstance(found, type) else _variable(found, module, name)
    if found.__module__ in PURE or hasattr(found, "__koi_code__"):
        return found
    if str(found.__module__).startswith(STANDARD):
        return found
    return _kept(found)


def _variable(found: Value, module: ModuleType, name: str) -> Value:
    """A variable of a module, once the calls that it lacks have been made."""
    run, key = current.get(), state_key(module)
    if run is None or key is None or not run.effects.is_kept:
        return found
    told = module.__name__.rpartition("/")[2].removesuffix(".py")
    return run.effects.look_at(key, f"{told}.{name}", lambda: getattr(module, name))


def from_object(found: Value, owner: Value, name: str) -> Value:
    """What a Python object has under a name, as code gets it: methods are calls that are kept, the rest is as it is."""
    run, kind = current.get(), type(owner)
    if kind.__module__.startswith("koi_lang."):
        return found
    if isinstance(found, METHODS) and not isinstance(found.__self__, ModuleType):
        if isinstance(owner, type) and isinstance(found, BuiltinMethodType):
            return _of_class(found, owner)
        if _is_recorded(kind):
            return _recording(found, f"{type(found.__self__).__name__}.{found.__name__}")
        return found if isinstance(found, BuiltinMethodType) else _recording(found, "")
    if run is None or not run.effects.is_kept or not _is_recorded(kind):
        return found
    return run.effects.look_at(owner, f"{kind.__name__}.{name}", lambda: getattr(owner, name))


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
    def made(*args: Value) -> Value:
        run, work = current.get(), functools.partial(outside, kind, *args)
        if run is None or not run.effects.is_kept:
            return work()
        call = InteropCall(kind, None, args, {})
        effect = Effect(f"{module}.{kind.__name__}", call.given, lasting=False, call=call)
        return run.effects.announced_nowait(effect, work)

    return made


def _is_recorded(kind: type) -> bool:
    """Whether objects of a class may do something outside, or have a state that only they know; paths do the first."""
    module = kind.__module__
    return not (module in PURE or is_value_type(kind)) or module == "pathlib"


@functools.lru_cache(maxsize=512)
def _kept(function: Callable[..., Any]) -> Callable[..., Any]:
    module = str(function.__module__ or "").rpartition("/")[2].removesuffix(".py")
    return _recording(function, f"{module}.{function.__name__}")


def _recording(function: Callable[..., Any], name: str, *, safe: bool = False) -> Callable[..., Any]:
    """A function as code calls it; its calls are kept under a name, unless that is empty."""

    @functools.wraps(function)
    def called(*args: Value, **named: Value) -> Value:
        run, waits = current.get(), inspect.iscoroutinefunction(function)
        work = functools.partial(awaited_outside if waits else outside, function, *args, **named)
        if run is None or not name or not run.effects.is_kept:
            return work()
        call = InteropCall(function, getattr(function, "__self__", None), args, named)
        effect = Effect(name, call.given, safe=safe, lasting=False, call=call)
        return run.effects.announced(effect, work) if waits else run.effects.announced_nowait(effect, work)

    called.__dict__["__koi_foreign__"] = True
    return called


class InteropCall:
    """What a call of Python has of the program."""

    def __init__(
        self, function: Callable[..., Any], owner: Value, args: Sequence[Value], named: Mapping[str, Value]
    ) -> None:
        self._args = {**{str(n): value for n, value in enumerate(args)}, **named}
        self._before = {name: _shown(value) for name, value in self._args.items()}
        self._count = len(args)
        self._state = ModuleState(function)
        self._objects = list({id(found): found for found in _objects_in([owner, *self._args.values()])}.values())

    @property
    def objects(self) -> list[Value]:
        """What it works on that may have a state of its own: Python objects, and the globals of its modules."""
        return [*self._objects, *filter(None, [self._state.key])]

    @property
    def given(self) -> dict[str, Any]:
        """The arguments as they can be compared with what was given before."""
        shown = list(self._before.items())
        named = dict(shown[self._count :])
        return {"args": [value for _, value in shown[: self._count]], **({"named": named} if named else {})}

    def changes(self) -> dict[str, Any]:
        """What was changed of them meanwhile, by position or name; `opaque` where that cannot be done again."""
        after = {name: _shown(value) for name, value in self._args.items()}
        changed = {name: value for name, value in after.items() if value != self._before[name]}
        if any(not hasattr(self._args[name], "clear") or isinstance(changed[name], str) for name in changed):
            return {"opaque": True}
        return {**({"changed": changed} if changed else {}), **self._state.changes()}

    def restore(self, data: Mapping[str, Any]) -> list[Value]:
        """Give them the content that they had then; gives the objects that lack the call nevertheless."""
        for name, content in data.get("changed", {}).items():
            replace_content(self._args.get(name), decode(content))
        return self._objects if self._state.restore(data) else self.objects


def _shown(value: Value) -> Value:
    """An argument as it can be compared with what was given before."""
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
            yield from _objects_in(inside, depth + 1) if depth < DEEPEST else ()
        elif not (is_value_type(kind) or isinstance(value, STATELESS) or kind.__module__.startswith("koi_lang.")):
            yield value
