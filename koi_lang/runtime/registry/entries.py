"""Keys and values as programs use them to the text a store keeps, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from koi_lang.errors import RegistryError
from koi_lang.js.dates import DateValue
from koi_lang.js.json_text import stringify_exactly
from koi_lang.js.undefined import undefined

MAX_DEPTH = 200

_encode = json.JSONEncoder(allow_nan=False, ensure_ascii=True, separators=(",", ":")).encode


def key_text(key: object) -> str:
    """A key as the text it is stored under; whole numbers are written out.

    Raises:
        RegistryError: the key is neither text nor a whole number, or holds half of a surrogate pair.
    """
    if isinstance(key, int) and not isinstance(key, bool):
        return str(key)
    if not isinstance(key, str):
        raise RegistryError(f"a registry key must be text, not {kind_of(key)}")
    try:
        key.encode()
    except UnicodeEncodeError as error:
        raise RegistryError(f"the registry key {key!a} is not valid Unicode text") from error
    return key


def value_text(key: str, value: object) -> str:
    """A value as JSON text, as `JSON.stringify` writes it: members without a value are left out, dates are texts.

    Raises:
        RegistryError: something in it is not a JSON value; names its type and its place inside the value.
    """
    flaw = _find_flaw(value, MAX_DEPTH)
    if flaw is None:
        try:
            return _encode(value)
        except (TypeError, ValueError):
            return str(stringify_exactly(value))
    path, what = flaw
    place = f" at `{path}`" if path else ""
    raise RegistryError(
        f"`{key}` cannot be stored: {what}{place}",
        help="Store text, numbers, booleans, null, and lists and objects of these.",
    )


def value_of(key: str, text: str) -> Any:
    """The value that `value_text` wrote.

    Raises:
        RegistryError: the text is not JSON, so something else has written it.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RegistryError(
            f"the stored value of `{key}` is damaged: {error}",
            help="Set the key again, or delete it; the other entries are not affected.",
        ) from error


def kind_of(value: object) -> str:
    """The kind of a value, in words that authors of programs know."""
    if value is None:
        return "null"
    if value is undefined:
        return "undefined"
    return "a function" if callable(value) else f"a value of type `{type(value).__name__}`"


def _find_flaw(value: object, depth: int) -> tuple[str, str] | None:
    """Path and description of the first part that is not JSON; None when all of it is."""
    if value is None or isinstance(value, (str, bool)):
        return None
    if isinstance(value, int):
        return None if value.bit_length() <= 1024 else ("", "a whole number of more than 1024 bits")
    if isinstance(value, (float, DateValue)) or (depth < MAX_DEPTH and (value is undefined or callable(value))):
        return None
    if not isinstance(value, (dict, list, tuple)):
        return "", f"{kind_of(value)} is not a JSON value"
    if not depth:
        return "", f"it contains itself, or lists and objects inside each other more than {MAX_DEPTH} deep,"
    return _find_flaw_inside(value, depth - 1)


def _find_flaw_inside(
    value: Mapping[Any, object] | list[object] | tuple[object, ...], depth: int
) -> tuple[str, str] | None:
    parts = value.items() if isinstance(value, Mapping) else enumerate(value)
    for name, part in parts:
        if isinstance(value, Mapping) and not isinstance(name, str):
            return "", f"an object with {kind_of(name)} as a member name"
        flaw = _find_flaw(part, depth)
        if flaw is not None:
            path, what = flaw
            return (f"{name}.{path}" if path else str(name)), what
    return None
