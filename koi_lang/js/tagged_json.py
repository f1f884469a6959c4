"""Encoding of Python values in JSON: what is of a type that JSON lacks becomes an object with a tag, and comes back.

A value is encoded exactly or not at all: subclasses, instances of classes of a program and functions are not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from math import isfinite
from typing import Any

from koi_lang.js.undefined import undefined

TAG, CONTENT = "$koi", "of"
# A line of a journal that is nested deeper is cut there.
MAX_DEPTH = 150
# Longer numbers are not written as decimals.
MAX_BITS = 4096
# What a `defaultdict` may make.
FACTORIES = ("int", "float", "str", "list", "dict", "set", "tuple", "bool")


class NotEncodableError(TypeError):
    """A value has no exact form in JSON."""


@dataclass(frozen=True, slots=True)
class TypeEncoding:
    """How values of one type are encoded.

    Attributes:
        content: what makes a value up, as a value that can be encoded.
        make: a value from that; it is given the type.
    """

    content: Callable[[Any], Any]
    make: Callable[[Any, Any], Any]


def is_plain(value: Any, depth: int = 0) -> bool:
    """Whether a value is JSON as it stands, and comes back as it was."""
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return True
    if kind is int:
        return bool(value.bit_length() <= MAX_BITS)
    if kind is float:
        return isfinite(value)
    if depth > MAX_DEPTH:
        return False
    if kind is dict:
        return all(type(key) is str and is_plain(value[key], depth + 1) for key in value)
    return kind is list and all(is_plain(item, depth + 1) for item in value)


def encode(value: Any, depth: int = 0) -> Any:
    """A value as JSON, with tags where JSON has no such type. Raises NotEncodableError."""
    if depth > MAX_DEPTH:
        raise NotEncodableError("it is nested too deeply, or holds itself")
    kind = type(value)
    if kind is list:
        return [encode(item, depth + 1) for item in value]
    if kind is dict and TAG not in value and all(type(key) is str for key in value):
        return {key: encode(item, depth + 1) for key, item in value.items()}
    if kind is not dict and is_plain(value):
        return value
    name = type_name(kind)
    if hasattr(kind, "__koi_record__"):
        return encode(value.copy(), depth)
    if name not in FORMS:
        raise NotEncodableError(f"it is an instance of `{kind.__qualname__}`")
    return {TAG: name, CONTENT: encode(FORMS[name].content(value), depth + 1)}


def is_value_type(kind: type) -> bool:
    """Whether values of a type can be encoded, unless what they hold cannot."""
    return kind in (str, bool, int, float, list, dict, type(None)) or type_name(kind) in FORMS


def type_name(kind: type) -> str:
    """The name of a type with its module, the same in every version of Python: 3.13 has `pathlib` in two modules."""
    return f"{kind.__module__.removesuffix('._local')}.{kind.__qualname__}"


def decode(data: Any) -> Any:
    """The value that was encoded; a content that cannot be read, since secrets were taken out, stays as it is."""
    if isinstance(data, list):
        return [decode(item) for item in data]
    if not isinstance(data, dict):
        return data
    form = FORMS.get(data[TAG]) if isinstance(data.get(TAG), str) else None
    if form is None:
        return {key: decode(item) for key, item in data.items()}
    content = decode(data.get(CONTENT))
    module, _, name = data[TAG].rpartition(".")
    try:
        return form.make(getattr(import_module(module), name), content)
    except (ValueError, TypeError, ArithmeticError):
        return content


def as_fields(value: Any, name: str = "result") -> dict[str, Any]:
    """The fields by which a journal keeps a value: as it is, `tagged`, or `opaque` where it cannot come back."""
    if is_plain(value):
        return {name: value}
    try:
        return {name: encode(value), "tagged": True}
    except NotEncodableError:
        return {"opaque": type(value).__qualname__}


def from_fields(data: Mapping[str, Any], name: str = "result") -> Any:
    """The value that some fields keep."""
    value = data.get(name)
    return decode(value) if data.get("tagged") else value


# ---------------------------------------------------------------- types


def _bytes_content(value: bytes | bytearray) -> list[str]:
    """As text, in which secrets can be found."""
    try:
        return ["utf-8", value.decode()]
    except UnicodeDecodeError:
        return ["latin-1", value.decode("latin-1")]


def _make_bytes(kind: Any, content: Any) -> Any:
    encoding, text = content
    return kind(text.encode("utf-8" if encoding == "utf-8" else "latin-1"))


def _time_content(value: Any) -> str:
    """A time of day, or a moment, without zones whose rules are not in the text."""
    zone = value.tzinfo
    kind = type(zone)
    is_offset = kind.__name__ == "timezone" and repr(kind(zone.utcoffset(None))) == repr(zone)
    if value.fold or not (zone is None or is_offset):
        raise NotEncodableError("it has a time zone")
    return str(value.isoformat())


def _default_content(value: Any) -> Any:
    factory = value.default_factory
    name = None if factory is None else getattr(factory, "__name__", "")
    if factory is not None and (name not in FACTORIES or type(factory) is not type):
        raise NotEncodableError("it makes values of its own")
    return [name, _pairs(value)]


def _make_default(kind: Any, content: Any) -> Any:
    name, pairs = content
    return kind(getattr(import_module("builtins"), name) if name in FACTORIES else None, pairs)


def _pairs(value: Mapping[Any, Any]) -> list[list[Any]]:
    return [[key, item] for key, item in value.items()]


def _call(kind: Any, content: Any) -> Any:
    return kind(content)


def _call_with(kind: Any, content: Any) -> Any:
    return kind(*content)


def _call_with_pairs(kind: Any, content: Any) -> Any:
    return kind(dict(content))


def _from_text(kind: Any, content: Any) -> Any:
    return kind.fromisoformat(content)


FORMS: Mapping[str, TypeEncoding] = {
    "builtins.int": TypeEncoding(hex, lambda kind, content: kind(content, 16)),
    "builtins.float": TypeEncoding(repr, _call),
    "builtins.complex": TypeEncoding(lambda value: [value.real, value.imag], _call_with),
    "builtins.dict": TypeEncoding(_pairs, _call_with_pairs),
    "builtins.tuple": TypeEncoding(list, _call),
    "builtins.set": TypeEncoding(list, _call),
    "builtins.frozenset": TypeEncoding(list, _call),
    "builtins.bytes": TypeEncoding(_bytes_content, _make_bytes),
    "builtins.bytearray": TypeEncoding(_bytes_content, _make_bytes),
    "builtins.range": TypeEncoding(lambda value: [value.start, value.stop, value.step], _call_with),
    "datetime.date": TypeEncoding(lambda value: value.isoformat(), _from_text),
    "datetime.time": TypeEncoding(_time_content, _from_text),
    "datetime.datetime": TypeEncoding(_time_content, _from_text),
    "datetime.timedelta": TypeEncoding(lambda value: [value.days, value.seconds, value.microseconds], _call_with),
    "decimal.Decimal": TypeEncoding(str, _call),
    "fractions.Fraction": TypeEncoding(lambda value: [value.numerator, value.denominator], _call_with),
    "uuid.UUID": TypeEncoding(str, _call),
    "collections.OrderedDict": TypeEncoding(_pairs, _call),
    "collections.Counter": TypeEncoding(_pairs, _call_with_pairs),
    "collections.defaultdict": TypeEncoding(_default_content, _make_default),
    "collections.deque": TypeEncoding(lambda value: [list(value), value.maxlen], _call_with),
    "pathlib.PosixPath": TypeEncoding(str, _call),
    # What it holds is in a file of the run.
    "koi_lang.runtime.outputs.long_texts.LongText": TypeEncoding(
        lambda value: value.as_content(), lambda kind, content: kind.of_content(content)
    ),
    "koi_lang.js.undefined.Undefined": TypeEncoding(lambda value: None, lambda kind, content: undefined),
}
