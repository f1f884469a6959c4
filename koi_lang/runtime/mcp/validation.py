"""The check of arguments by the schema of a tool, in bounded time for any schema.

What a check would take too long for is left to the server.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, time
from ipaddress import IPv4Address, IPv6Address
from typing import TYPE_CHECKING, Any

from koi_lang.errors import PatternError
from koi_lang.js.bounded_regex import BoundedRegex, SearchTime
from koi_lang.lazy import lazy_module
from koi_lang.runtime.host import clip_text
from koi_lang.runtime.schema import WORDS

if TYPE_CHECKING:
    import fractions

    import referencing
    from jsonschema import exceptions, validators  # type: ignore[import-untyped]
    from referencing import exceptions as reference_errors
else:
    fractions = lazy_module("fractions")
    exceptions = lazy_module("jsonschema.exceptions")
    validators = lazy_module("jsonschema.validators")
    referencing = lazy_module("referencing")
    reference_errors = lazy_module("referencing.exceptions")

# References that mention others twice, forty times over, would never be done with.
MAX_REFERENCES = 10_000
Keyword = Callable[[Any, Any, Any, Any], Iterator[Any]]


def load() -> None:
    """Load the library that checks values, which takes long: in a thread, so that other agents go on meanwhile."""
    for module, name in ((validators, "validator_for"), (referencing, "Registry"), (reference_errors, "Unresolvable")):
        getattr(module, name)


class Checks:
    """All that a schema asks of arguments; making it takes longer than a call. Raises ValueError for a broken one.

    Args:
        has_formats: whether `format` is checked, which schemas of servers only note.
    """

    def __init__(self, schema: Mapping[str, Any], *, has_formats: bool = False) -> None:
        kind = validators.validator_for(schema, default=validators.Draft202012Validator)
        try:
            kind.check_schema(schema)
            own = self._keywords(kind, schema) | ({"format": _format} if has_formats else {})
        except exceptions.SchemaError as error:
            raise ValueError(_first_line(error)) from error
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
        # An empty registry: what the schema refers to is never fetched from anywhere.
        self._validator = validators.extend(kind, own)(schema, registry=referencing.Registry())
        self._references = 0
        self._time = SearchTime()

    def problems(self, arguments: Any) -> Iterator[str]:
        """What is wrong, one clause a problem that names the field. Raises ValueError for a broken schema."""
        self._references = 0
        self._time = SearchTime()
        try:
            for error in self._validator.iter_errors(arguments):
                field = ".".join(map(str, error.absolute_path))
                message = clip_text(_problem(error))
                yield f"`{field}` {message}" if field else f"it {message}"
        except reference_errors.Unresolvable as error:
            raise ValueError(_first_line(error)) from error
        except RecursionError:
            raise ValueError("it refers to itself without end") from None

    def _keywords(self, kind: Any, schema: Mapping[str, Any]) -> dict[str, Keyword]:
        """The keywords that could take for ever, in a form that cannot."""
        found = {name: self._count_references(kind.VALIDATORS[name]) for name in REFERENCES if name in kind.VALIDATORS}
        if PATTERNS in json.dumps(schema):
            found |= {PATTERNS: self._pattern_properties, "additionalProperties": self._additional_properties}
            found["unevaluatedProperties"] = lambda validator, value, instance, schema: iter(())
        return {**found, "pattern": self._pattern, "multipleOf": _multiple_of}

    def _pattern(self, validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[Any]:
        if isinstance(instance, str) and self._fits(pattern, instance) is False:
            yield exceptions.ValidationError("")

    def _fits(self, pattern: str, text: str) -> bool | None:
        """Whether a pattern is in a text; None for one that the server has to check itself.

        Within a time limit: a server chooses the pattern, and a model the text.
        """
        try:
            return BoundedRegex(pattern, time_left=self._time).is_in(text)
        except PatternError:
            return None

    def _pattern_properties(self, validator: Any, patterns: Any, instance: Any, schema: Any) -> Iterator[Any]:
        for name, value in instance.items() if isinstance(instance, dict) else ():
            for pattern, inner in patterns.items():
                if self._fits(pattern, name):
                    yield from validator.descend(value, inner, path=name, schema_path=pattern)

    def _additional_properties(self, validator: Any, inner: Any, instance: Any, schema: Any) -> Iterator[Any]:
        """Those that are neither named nor fit a pattern, nor one that cannot be checked here."""
        if not isinstance(instance, dict):
            return
        patterns, named = schema.get(PATTERNS, {}), schema.get("properties", {})
        others = {
            name: value
            for name, value in instance.items()
            if name not in named and all(self._fits(pattern, name) is False for pattern in patterns)
        }
        if inner is False and others:
            yield exceptions.ValidationError("", instance=others)
        for name, value in others.items() if inner is not False else ():
            yield from validator.descend(value, inner, path=name)

    def _count_references(self, keyword: Keyword) -> Keyword:
        def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
            self._references += 1
            if self._references > MAX_REFERENCES:
                raise ValueError(f"it follows more than {MAX_REFERENCES:,} references")
            yield from keyword(validator, value, instance, schema) or ()

        return check


REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
PATTERNS = "patternProperties"
# What a text of a format must be.
FORMATS: Mapping[str, Callable[[str], object]] = {
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "date-time": datetime.fromisoformat,
    "email": re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+").fullmatch,
    "uri": re.compile(r"[a-z][a-z0-9+.-]*:\S+", re.IGNORECASE).fullmatch,
    "uuid": re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE).fullmatch,
    "ipv4": IPv4Address,
    "ipv6": IPv6Address,
}
# Keywords that hold schemas by name, lists of schemas, and one schema.
BY_NAME = ("properties", PATTERNS, "$defs", "definitions", "dependentSchemas")
IN_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
SINGLE = (
    "items contains not if then else additionalProperties propertyNames unevaluatedItems unevaluatedProperties".split()
)
# Keywords of other versions of JSON Schema, and of OpenAPI, with what stands for them in this one.
OTHER_KEYWORDS = {
    "additionalItems": "`prefixItems` with `items`",
    "dependencies": "`dependentRequired` or `dependentSchemas`",
    "nullable": '`type: [..., "null"]`',
    "divisibleBy": "`multipleOf`",
    "disallow": "`not`",
    "extends": "`allOf`",
}


def fits_format(value: str, format: str) -> bool:
    """Whether a text is of a format; of one that is not known here every text is."""
    try:
        return format not in FORMATS or FORMATS[format](value) is not None
    except ValueError:
        return False


def require_checked(schema: Any) -> None:
    """Raise ValueError for a keyword of a schema that is not checked, naming another one to write."""
    if not isinstance(schema, dict):
        return
    for keyword, instead in OTHER_KEYWORDS.items():
        if keyword in schema:
            raise ValueError(f"`{keyword}` is not checked here; write {instead}")
    format = schema.get("format")
    if format is not None and format not in FORMATS:
        known = ", ".join(f"`{name}`" for name in FORMATS)
        raise ValueError(f"`format: {_as_json(format)}` is not checked here; write a `pattern`, or one of {known}")
    for pattern in [*schema.get(PATTERNS, ()), *filter(None, [schema.get("pattern")])]:
        try:
            BoundedRegex(pattern)
        except PatternError as error:
            raise ValueError(f"the pattern {_as_json(pattern)} is not checked here: {error}") from error
    if PATTERNS in schema and "unevaluatedProperties" in schema:
        raise ValueError(f"`unevaluatedProperties` is not checked beside `{PATTERNS}`; write `additionalProperties`")
    inner = [each for name in BY_NAME if isinstance(schema.get(name), dict) for each in schema[name].values()]
    inner += [each for name in IN_LISTS if isinstance(schema.get(name), list) for each in schema[name]]
    for each in [*inner, *(schema[name] for name in SINGLE if name in schema)]:
        require_checked(each)


def _multiple_of(validator: Any, step: Any, instance: Any, schema: Any) -> Iterator[Any]:
    """Multiples of numbers as they are written: 19.99 is one of 0.01, though their binary fractions are not."""
    if validator.is_type(instance, "number") and not isinstance(instance, bool):
        is_multiple = math.isfinite(instance) and not fractions.Fraction(str(instance)) % fractions.Fraction(str(step))
        if not is_multiple:
            yield exceptions.ValidationError("")


def _format(validator: Any, format: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if isinstance(instance, str) and not fits_format(instance, format):
        yield exceptions.ValidationError("")


def _problem(error: Any) -> str:
    """The fault of a value, in JSON's own quotation marks."""
    value, wanted = _as_json(error.instance), error.validator_value
    match error.validator:
        case "required" if isinstance(wanted, list):  # each of them has an error of its own
            lacks = next((str(name) for name in wanted if error.message.startswith(repr(name))), "")
            return f"lacks `{lacks}`"
        case "type":
            kinds = wanted if isinstance(wanted, list) else [wanted]
            return f"must be {' or '.join(WORDS.get(str(kind), str(kind)) for kind in kinds)}, not {value}"
        case "enum" | "const":
            choices = wanted if isinstance(wanted, list) and error.validator == "enum" else [wanted]
            return f"must be {' or '.join(map(_as_json, choices))}, not {value}"
        case "additionalProperties" if isinstance(error.instance, dict):
            known = error.schema.get("properties", {})
            names = ", ".join(f"`{name}`" for name in error.instance if name not in known)
            return f"takes no {names}"
        case keyword:
            return f"must fit {_as_json({str(keyword): wanted})}, and is {value}"


def _as_json(value: Any) -> str:
    """A value on one line, as a model writes it."""
    return json.dumps(value, ensure_ascii=False, default=str)


def _first_line(error: Exception) -> str:
    return clip_text(str(error).partition("\n")[0])
