"""The check of arguments by the schema of a tool, in bounded time for any schema.

What a check would take too long for is left to the server.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from koi_lang.errors import PatternError
from koi_lang.js.bounded_regex import BoundedRegex, SearchTime
from koi_lang.lazy import lazy_module
from koi_lang.runtime.host import clip_text
from koi_lang.runtime.schema import WORDS

if TYPE_CHECKING:
    import referencing
    from jsonschema import exceptions, validators  # type: ignore[import-untyped]
    from referencing import exceptions as reference_errors
else:
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
    """All that a schema asks of arguments; making it takes longer than a call. Raises ValueError for a broken one."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        kind = validators.validator_for(schema, default=validators.Draft202012Validator)
        try:
            kind.check_schema(schema)
            own = self._keywords(kind, schema)
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
            found |= dict.fromkeys((PATTERNS, "additionalProperties", "unevaluatedProperties"), _nothing)
        return {**found, "pattern": self._pattern}

    def _pattern(self, validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[Any]:
        """Within a time limit: a server chooses the pattern, and a model the text."""
        if not isinstance(instance, str):
            return
        try:
            fits = BoundedRegex(pattern, time_left=self._time).is_in(instance)
        except PatternError:  # a kind of pattern that the server has to check itself
            return
        if not fits:
            yield exceptions.ValidationError("")

    def _count_references(self, keyword: Keyword) -> Keyword:
        def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
            self._references += 1
            if self._references > MAX_REFERENCES:
                raise ValueError(f"it follows more than {MAX_REFERENCES:,} references")
            yield from keyword(validator, value, instance, schema) or ()

        return check


REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
PATTERNS = "patternProperties"


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


def _nothing(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
    return iter(())


def _first_line(error: Exception) -> str:
    return clip_text(str(error).partition("\n")[0])
