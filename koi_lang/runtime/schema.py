"""JSON Schema, as far as Koi's own types need it: from annotations, and checking values."""

from __future__ import annotations

import inspect
import json
import re
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from koi_lang.js.bounded_regex import SearchTime
from koi_lang.js.conversions import is_number
from koi_lang.js.inspect_value import inspect as as_text
from koi_lang.js.number_format import number_text
from koi_lang.js.undefined import undefined
from koi_lang.js.value_bounds import KEYWORDS, bounds_text, bounds_words, expected_words, is_within

Schema = Mapping[str, Any]
Words = Callable[[Any], str]
NAMES: dict[Any, str] = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
WORDS = {
    "string": "a text",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "null": "null",
    "array": "a list",
    "object": "an object",
}
# What stands for a value of a type in the form of an answer.
FORMS = {
    "string": '"<text>"',
    "number": "<number>",
    "integer": "<integer>",
    "boolean": "true | false",
    "null": "null",
    "object": "{…}",
}
# Those that have room for what is said of a field.
SIMPLE_FORMS = frozenset({FORMS["string"], FORMS["number"], FORMS["integer"]})
# One of them in a text, perhaps with what is said of the field.
FORM_MARK = re.compile(r"<(text|number|integer)(?:: [^<>]*)?>")
# Of a path that is longer only the ends are told.
MAX_PATH_CHARS = 200
# Smaller numbers are written without an exponent.
MAX_DIGITS = 1e21


def of_annotation(annotation: Any) -> dict[str, Any]:
    """The schema of a Python annotation; empty (anything) for those that say nothing."""
    if annotation in NAMES:
        return {"type": NAMES[annotation]}
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [of_annotation(argument) for argument in arguments]}
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    if annotation is list or origin is list:
        return {"type": "array", **({"items": of_annotation(arguments[0])} if arguments else {})}
    if annotation is dict or origin is dict:
        return {"type": "object"}
    return {}


def of_function(function: Callable[..., Any]) -> dict[str, Any]:
    """The schema of an object with the parameters of a function; a rest parameter is a list that may be left out."""
    hints = typing.get_type_hints(function)
    known = inspect.signature(function).parameters.values()
    declared, _ = _declared_types(function)
    fields = {p.name: declared.get(p.name) or of_annotation(hints.get(p.name, Any)) for p in known}
    # Python annotates each value of the rest.
    for parameter in (p for p in known if p.kind is p.VAR_POSITIONAL and p.name not in declared):
        items = fields[parameter.name]
        fields[parameter.name] = {"type": "array", **({"items": items} if items else {})}
    required = [p.name for p in known if p.default is p.empty and p.kind is not p.VAR_POSITIONAL]
    return with_definitions_at_root({"type": "object", "properties": fields, "required": required})


def of_result(function: Callable[..., Any]) -> Schema:
    """The schema of a function's result; empty (anything) where it is not declared."""
    _, declared = _declared_types(function)
    return declared or of_annotation(typing.get_type_hints(function).get("return", Any))


def _declared_types(function: Callable[..., Any]) -> tuple[Mapping[str, Schema], Schema]:
    """The compiler's types of parameters and result beyond the annotations."""
    declared: tuple[Mapping[str, Schema], Schema] = getattr(function, "__koi_types__", ({}, {}))
    return declared


def with_definitions_at_root(schema: Schema) -> dict[str, Any]:
    """An object schema whose references work: the declared types that its fields mention stand under its `$defs`."""
    fields, found = {}, dict[str, Any]()
    for name, of_field in schema["properties"].items():
        found |= of_field.get("$defs", {})
        fields[name] = {key: part for key, part in of_field.items() if key != "$defs"}
    return {**schema, "properties": fields, **({"$defs": found} if found else {})}


def resolve_part(schema: Schema, part: Schema) -> Schema:
    """A part of a schema in place of the declared type that it refers to, with those that it mentions in reach."""
    definitions, seen = schema.get("$defs", {}), set[str]()
    while "$ref" in part and part["$ref"] not in seen:
        seen.add(part["$ref"])
        part = definitions.get(name_of_reference(part), {})
    return {**part, "$defs": definitions} if definitions else part


def problems(
    value: Any, schema: Schema, path: str = "", *, root: str = "the value", words: Words = as_text
) -> Iterator[str]:
    """The faults of a value, one clause each: the field, the expected type, and the found one.

    Args:
        root: how the value itself is called where it has no field to be named by.
        words: how values are written.
    """
    checker = _Checker(schema.get("$defs", {}), root, words)
    if not checker.has_type(value, schema):
        yield from checker.problems(value, schema, path)


def settle_integers(value: Any, schema: Schema) -> Any:
    """A value of a type whose whole numbers are integers of Python, too: `7.0` becomes 7 where `int` is declared.

    Objects and lists are changed themselves, which code of Koi cannot tell, since both are the same number to it.
    """
    if not holds_whole_float(value):  # most values; which type each part has is dear to find out
        return value
    checker = _Checker(schema.get("$defs", {}), "", as_text)
    root = [value]
    waiting: list[tuple[Any, list[tuple[Any, Any, Schema]]]] = [(root, [(0, value, schema)])]
    seen = set[tuple[int, int]]()
    while waiting:
        around, parts = waiting.pop()
        for step, item, declared in parts:
            its = checker.type_of(item, declared)
            if type(item) is float and its.get("type") == "integer":
                # With the digits that programs print, also of large ones.
                around[step] = int(number_text(item)) if abs(item) < MAX_DIGITS else int(item)
            elif isinstance(item, dict | list) and (key := (id(item), id(its))) not in seen:
                seen.add(key)
                waiting.append((item, _parts(item, its)))
    return root[0]


def holds_whole_float(value: Any) -> bool:
    """Whether a whole number that is a `float` of Python stands in a value, at any depth."""
    waiting, seen = [value], set[int]()
    while waiting:
        item = waiting.pop()
        if type(item) is float and item.is_integer():
            return True
        if isinstance(item, dict | list) and id(item) not in seen:
            seen.add(id(item))
            waiting += item.values() if isinstance(item, dict) else item
    return False


def is_plainly_fitting(value: Any, schema: Schema) -> bool:
    """Whether a value is found to fit at once: an object with fields of simple types. Others have to be looked into."""
    if schema.get("type") != "object" or type(value) is not dict:
        return False
    if any(value.get(name, undefined) is undefined for name in schema.get("required", ())):
        return False
    given = [(value[name], its) for name, its in schema.get("properties", {}).items() if its and name in value]
    return all(len(its) == 1 and type(item) in _PLAIN.get(its.get("type", ""), ()) for item, its in given)


# The classes whose instances all are of a type.
_PLAIN: dict[str, tuple[type, ...]] = {"string": (str,), "boolean": (bool,), "integer": (int,), "number": (int, float)}


@dataclass(frozen=True, slots=True)
class _Checker:
    """Checks values against schemas that refer to the same definitions.

    Attributes:
        known: what was found about objects and lists and the types of unions, by their identities: one of which a part
            does not fit would be looked at again for each value around it.
        flat: the types of unions, by the identity of what they are written as.
        time_left: of all patterns that values are matched with.
    """

    definitions: Mapping[str, Schema]
    root: str
    words: Words
    known: dict[tuple[int, int], bool] = field(default_factory=dict)
    flat: dict[int, list[Schema]] = field(default_factory=dict)
    time_left: SearchTime = field(default_factory=SearchTime)

    def has_type(self, value: Any, schema: Schema) -> bool:
        """Whether nothing is wrong with a value, which may contain itself."""
        waiting, seen = [(value, schema)], set[tuple[int, int]]()
        while waiting:
            value, schema = waiting.pop()
            schema = self._resolve(schema)
            if "anyOf" in schema:
                options = [option for option in self._options(schema["anyOf"]) if self._fits(value, option)]
                if len(options) == 1:
                    waiting.append((value, options[0]))
                elif not self._has_option(value, options):
                    return False
            elif not self._fits(value, schema) or _missing(value, schema):
                return False
            elif isinstance(value, dict | list) and (key := (id(value), id(schema))) not in seen:
                seen.add(key)
                waiting += [
                    (item, its)
                    for _, item, its in _parts(value, schema)
                    if len(its) != 1 or type(item) not in _PLAIN.get(its.get("type", ""), ())
                ]
        return True

    def type_of(self, value: Any, schema: Schema) -> Schema:
        """The type that a value has of those that a schema allows; empty where that is none."""
        schema = self._resolve(schema)
        if "anyOf" not in schema:
            return schema
        options = (option for option in self._options(schema["anyOf"]) if self._fits(value, option))
        return next((option for option in options if self.has_type(value, option)), {})

    def _has_option(self, value: Any, options: Sequence[Schema]) -> bool:
        """Whether a value is of one of several types of its kind."""
        for option in options:
            key = (id(value), id(option))
            if key not in self.known:
                self.known[key] = True  # it may contain itself
                self.known[key] = self.has_type(value, option)
            if self.known[key]:
                return True
        return False

    def problems(self, value: Any, schema: Schema, path: str) -> Iterator[str]:
        """The faults of a value that is not of a type."""
        waiting, seen = [(value, schema, path)], set[tuple[int, int]]()
        while waiting:
            value, schema, path = waiting.pop()
            schema = self._resolve(schema)
            if "anyOf" in schema:
                options = self._options(schema["anyOf"])
                near = self._near_options(value, options)
                if len(near) == 1:
                    waiting.append((value, near[0], path))
                elif not self._has_option(value, near or options):
                    yield self._problem_of_choice(value, near, path) or self._problem(value, options, path)
            elif not self._fits(value, schema):
                yield self._problem(value, [schema], path)
            elif isinstance(value, dict | list) and (key := (id(value), id(schema))) not in seen:
                seen.add(key)
                yield from (f"{self._field(_step(path, name))} is missing" for name in _missing(value, schema))
                parts = [(item, of_item, _step(path, step)) for step, item, of_item in _parts(value, schema)]
                waiting += reversed(parts)

    def _fits(self, value: Any, schema: Schema) -> bool:
        """Whether a value is of a type, apart from its fields and items."""
        if not KEYWORDS.isdisjoint(schema) and not is_within(value, schema, self.time_left):
            return False
        if "const" in schema:
            return bool(value == schema["const"] and isinstance(value, bool) == isinstance(schema["const"], bool))
        if "enum" in schema:
            return value in schema["enum"]
        match schema.get("type"):
            case "string":
                return isinstance(value, str)
            case "boolean":
                return isinstance(value, bool)
            case "integer":
                return is_number(value) and value == value // 1
            case "number":
                return is_number(value)
            case "null":
                return value is None or value is undefined
            case "array":
                return isinstance(value, list)
            case "object":
                return isinstance(value, dict)
        return True

    def _resolve(self, schema: Schema) -> Schema:
        if "$ref" not in schema:
            return schema
        seen = set[str]()
        while "$ref" in schema and schema["$ref"] not in seen:
            seen.add(schema["$ref"])
            schema = self.definitions.get(name_of_reference(schema), {})
        return schema

    def _options(self, options: Sequence[Schema]) -> list[Schema]:
        """The types of a union, those of unions in it among them, each once."""
        found = self.flat.get(id(options))
        if found is not None:
            return found
        found = self.flat[id(options)] = []
        waiting, seen = [*options], set[int]()
        while waiting:
            option = self._resolve(waiting.pop(0))
            if id(option) not in seen:
                seen.add(id(option))
                waiting[:0] = option.get("anyOf", ())
                found += () if "anyOf" in option else (option,)
        return found

    def _near_options(self, value: Any, options: Sequence[Schema]) -> list[Schema]:
        """The types of a union that are of the kind of a value; of several, the one that an object says it is."""
        near = [option for option in options if self._fits(value, option)]
        if len(near) < 2 or not isinstance(value, dict) or self._has_option(value, near):
            return near
        marks = [_marks_of(option) for option in near]
        possible = [index for index, each in enumerate(marks) if all(value.get(name) == each[name] for name in each)]
        likeliest = [index for index in possible if marks[index]] or possible
        return [near[likeliest[0]]] if len(likeliest) == 1 else near

    def _problem_of_choice(self, value: Any, options: Sequence[Schema], path: str) -> str:
        """The fault of a value that is none of several types of its kind: the field by which they are known, if one is.

        Empty where the value is of no such kind.
        """
        marks = [_marks_of(option) for option in options]
        for name in marks[0] if marks else ():
            given = value.get(name, undefined)
            if all(name in each for each in marks) and given not in [each[name] for each in marks]:
                kinds = [option["properties"][name] for option in options]
                is_missing = given is undefined
                step = _step(path, name)
                return f"{self._field(step)} is missing" if is_missing else self._problem(given, kinds, step)
        if len(options) < 2:
            return ""
        expected = " or ".join(dict.fromkeys(map(type_text, options)))
        return f"{self._field(path)} must be {expected}, not {_value_text(value, self.words)}"

    def _problem(self, value: Any, options: Sequence[Schema], path: str) -> str:
        expected = " or ".join(dict.fromkeys(_describe_expected(option, self.words) for option in options))
        return f"{self._field(path)} must be {expected}, not {_value_text(value, self.words)}"

    def _field(self, path: str) -> str:
        if len(path) > MAX_PATH_CHARS:
            path = f"{path[: MAX_PATH_CHARS // 2]}…{path[-MAX_PATH_CHARS // 2 :]}"
        return f"`{path}`" if path else self.root


def _marks_of(option: Schema) -> dict[str, Any]:
    """The literals by which an object of several types is known, such as `kind: "circle"`."""
    fields = option.get("properties", {}).items()
    return {name: of_field["const"] for name, of_field in fields if "const" in of_field}


def _missing(value: Any, schema: Schema) -> list[str]:
    """The fields that an object must have and has not."""
    required = schema.get("required") if isinstance(value, dict) else None
    return [] if required is None else [name for name in required if value.get(name, undefined) is undefined]


def _parts(value: Any, schema: Schema) -> list[tuple[str | int, Any, Schema]]:
    """The given fields of an object, and the items of a list, with their types; none where the schema says nothing."""
    if isinstance(value, dict):
        types = schema.get("properties", {}).items()
        return [(name, value[name], its) for name, its in types if value.get(name, undefined) is not undefined]
    return [(index, item, schema["items"]) for index, item in enumerate(value)] if "items" in schema else []


def _step(path: str, to: str | int) -> str:
    return f"{path}[{to}]" if isinstance(to, int) else f"{path}.{to}" if path else to


def name_of_reference(schema: Schema) -> str:
    """The name of the declared type that a schema refers to."""
    return str(schema["$ref"]).rpartition("/")[2]


def convert(value: Any, schema: Schema) -> Any:
    """A value of the command line in the type that is declared for it: the text of a number, or the number of a text.

    It stays as it is where it fits, and where neither fits.
    """
    if not any(problems(value, schema)):
        return value
    other = value
    if isinstance(value, str):
        with suppress(ValueError):
            other = json.loads(value)
    else:
        other = json.dumps(value, ensure_ascii=False)
    return value if any(problems(other, schema)) else other


def _describe_expected(schema: Schema, words: Words) -> str:
    if "const" in schema:
        return words(schema["const"])
    if "enum" in schema:
        return "one of " + ", ".join(map(words, schema["enum"]))
    return WORDS.get(schema.get("type", ""), "anything") + expected_words(schema)


def _value_text(value: Any, words: Words) -> str:
    """A value on one line."""
    text = " ".join(words(value).split())
    return text if len(text) <= 60 else f"{text[:60]}…"


def signature_text(schema: Schema, *, described: bool = False) -> str:
    """An object schema as it is shown to models: `name: string, lang?: string`.

    Args:
        described: whether the comment of a field stands behind its type: `lang?: string (two letters)`.
    """
    required = schema.get("required", ())
    parts = []
    for name, part in schema.get("properties", {}).items():
        is_required = name in required
        text = type_text(part if is_required else _without_null(part), described=described)
        said = f" ({part['description']})" if described and part.get("description") else ""
        parts.append(f"{name}{'' if is_required else '?'}: {text}{said}")
    return ", ".join(parts)


def _without_null(schema: Schema) -> Schema:
    """The schema of a field that may be left out, without the null that stands for that."""
    options = [option for option in schema.get("anyOf", ()) if option != {"type": "null"}]
    return schema if not options else options[0] if len(options) == 1 else {"anyOf": options}


def declarations_of(schemas: Iterable[Schema], *, described: bool = False) -> list[str]:
    """The declared types that schemas refer to, a line each: `Finding = { line: integer }`.

    Args:
        described: whether the comments of their fields stand in them, and their own behind them.
    """
    named = {name: declared for schema in schemas for name, declared in schema.get("$defs", {}).items()}
    lines = {name: f"{name} = {type_text(declared, described=described)}" for name, declared in named.items()}
    said = {name: f" // {named[name]['description']}" for name in named if described and "description" in named[name]}
    return [line + said.get(name, "") for name, line in lines.items()]


def described_types(schema: Schema) -> list[str]:
    """A line for each declared type in a schema that has a description."""
    lines = dict.fromkeys(declarations_of([schema], described=True))
    return [line for line in lines if line not in declarations_of([schema])]


def objects_of(schema: Schema) -> Iterator[frozenset[str]]:
    """The fields of every object that a schema allows as the value itself."""
    waiting, seen = [schema], set[str]()
    while waiting:
        part = waiting.pop(0)
        if "$ref" in part and name_of_reference(part) not in seen:
            seen.add(name_of_reference(part))
            waiting.append(schema.get("$defs", {}).get(name_of_reference(part), {}))
        waiting += part.get("anyOf", ())
        if part.get("properties"):
            yield frozenset(part["properties"])


def type_text(schema: Schema, *, described: bool = False) -> str:
    """A schema as a short type, perhaps with the comments of fields in it."""
    if "$ref" in schema:
        return name_of_reference(schema)
    if "anyOf" in schema:
        return " | ".join(type_text(option, described=described) for option in schema["anyOf"])
    if "const" in schema:
        return as_text(schema["const"])
    if "enum" in schema:
        return " | ".join(map(as_text, schema["enum"]))
    if schema.get("type") == "array":
        item = type_text(schema.get("items", {}), described=described)
        is_loose = " | " in item or bounds_text(schema.get("items", {}))
        return (f"({item})[]" if is_loose else f"{item}[]") + bounds_text(schema)
    if schema.get("type") == "object" and schema.get("properties"):
        return "{ " + signature_text(schema, described=described) + " }"
    return str(schema.get("type", "any")) + bounds_text(schema)


def json_form(schema: Schema) -> str:
    """A schema as the JSON that fits it, with types in place of values: `{"word":"<text>","n"?:<number>}`.

    A comment of a field, or of the whole type, stands behind it: `<number: from 0 to 1>`. Declared types have their
    names where the schema does not hold them at its root.
    """
    return _form(schema, schema.get("$defs", {}), ())


def _form(
    schema: Schema, definitions: Mapping[str, Schema], inside: tuple[str, ...], comment: str | None = None
) -> str:
    """The form of a value, with its comment and its bounds in it or behind it.

    Args:
        comment: that of the field it stands in, which counts before its own; None elsewhere.
    """
    form = _bare_form(schema, definitions, inside)
    comment = schema.get("description", "") if comment is None else comment
    words = ", ".join(filter(None, (comment, bounds_words(schema))))
    if not words:
        return form
    return form.replace(">", f": {words}>") if form in SIMPLE_FORMS else f"{form} ({words})"


def _bare_form(schema: Schema, definitions: Mapping[str, Schema], inside: tuple[str, ...]) -> str:
    if "$ref" in schema:
        name = name_of_reference(schema)
        is_open = name in inside or name not in definitions
        return f"<{name}>" if is_open else _form(definitions[name], definitions, (*inside, name))
    if "anyOf" in schema:
        return " | ".join(_form(option, definitions, inside) for option in schema["anyOf"])
    if "const" in schema or "enum" in schema:
        return " | ".join(json.dumps(value, ensure_ascii=False) for value in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "array":
        return f"[{_form(schema.get('items', {}), definitions, inside)}, …]"
    if schema.get("type") == "object" and schema.get("properties"):
        required = schema.get("required", ())
        fields = []
        for name, field in schema["properties"].items():
            part, mark = (field, "") if name in required else (_without_null(field), "?")
            form = _form(part, definitions, inside, field.get("description", ""))
            fields.append(f"{json.dumps(name, ensure_ascii=False)}{mark}:{form}")
        return "{" + ",".join(fields) + "}"
    return FORMS.get(schema.get("type", "any"), "<any>")


def action_form(intent: str, schema: Schema) -> str:
    """An action as a model writes it, with types in place of values, without fields that may be left out."""
    needed = schema.get("required", ())
    fields = {name: field for name, field in schema.get("properties", {}).items() if name in needed}
    form = json_form({**schema, "type": "object", "properties": fields}) if fields else "{}"
    return f'{{"intent":"{intent}"{"," if fields else ""}{form[1:]}'
