"""Rules of types; what TypeScript has beyond the types of Koi says nothing and counts as `any`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from lark import Token

from koi_lang.compiler import nodes as n
from koi_lang.compiler.build.helpers import BuildError, Children, cover, only, span_between, span_of
from koi_lang.compiler.literals import number, text_of_string
from koi_lang.source import Span

MAX_TYPE_CHARS = 2000
# Types of Python, with what is written instead; what stands in their brackets is put into the place.
OF_PYTHON = {
    **dict.fromkeys(("list", "tuple", "set", "sequence", "iterable"), "{}[]"),
    "annotated": "any[]", "optional": "{} | null", "dict": "object", "union": "{} | …", "literal": "…",
    "str": "string", "float": "number", "bool": "boolean", "none": "null",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class TypeItem:
    """A type in a list; `label` is how it begins where it is a parameter: `name: ` or `...`."""

    type: n.Type
    label: str

    @property
    def text(self) -> str:
        """The item as it is written."""
        return f"{self.label}{self.type.text}"


@dataclass(frozen=True, slots=True)
class TypeItems:
    """`(type, name: type, …)`: parameters of a function, or one type in parentheses."""

    span: Span
    items: tuple[TypeItem, ...]


class Annotations:
    """Rules of types."""

    def type(self, children: Children) -> n.Type:
        """One type, or several with `|` between them."""
        parts = only(children, n.Type)
        if len(parts) == 1:
            return parts[0]  # type: ignore[no-any-return]
        return n.Type(cover(children), "union", _clip(" | ".join(part.text for part in parts)), parts)

    def intersection(self, children: Children) -> n.Type:
        """One type, or several with `&` between them: objects have the fields of all, others say nothing."""
        parts = only(children, n.Type)
        if len(parts) == 1:
            return parts[0]  # type: ignore[no-any-return]
        text = _clip(" & ".join(map(_in_parentheses, parts)))
        if any(part.name != "object" for part in parts):
            return n.Type(cover(children), "any", text)
        fields = {field.name: field for part in parts for field in part.fields}
        is_open = any(part.is_open for part in parts)
        return n.Type(cover(children), "object", text, (), tuple(fields.values()), is_open)

    def named_type(self, children: Children) -> n.Type:
        """The name of a type, whether it is known or not."""
        return n.Type(span_of(children[0]), str(children[0]), str(children[0]))

    def qualified_type(self, children: Children) -> n.Type:
        """`Name.Name`, a type of a namespace; there are none here."""
        return n.Type(cover(children), "any", "".join(children))

    def literal_type(self, children: Children) -> n.Type:
        """A text, number, `true`, `false` or `null` as a type."""
        written = list(filter(None, children))
        return n.Type(cover(written), "null" if written[0].type == "NULL" else "literal", "".join(written))

    def generic_type(self, children: Children) -> n.Type:
        """`Name<type, …>`."""
        arguments = only(children, n.Type)
        listed = ", ".join(argument.text for argument in arguments)
        return n.Type(cover(children), str(children[0]), _clip(f"{children[0]}<{listed}>"), arguments)

    def array_type(self, children: Children) -> n.Type:
        """`type[]`."""
        return n.Type(cover(children), "Array", _clip(f"{_in_parentheses(children[0])}[]"), (children[0],))

    def tuple_type(self, children: Children) -> n.Type:
        """`[type, type]`: a list whose items have one of the types."""
        items = only(children, TypeItem)
        span = span_between(children[0], children[-1])
        kinds = tuple({item.type.text: item.type for item in items}.values())
        union = kinds if len(kinds) < 2 else (n.Type(span, "union", " | ".join(kind.text for kind in kinds), kinds),)
        has_rest = any(item.label.startswith("...") for item in items)
        return n.Type(span, "Array", _clip(f"[{_join_items(items)}]"), () if has_rest else union)

    def parenthesized_type(self, children: Children) -> n.Type:
        """`(type)`. Raises BuildError for anything that only parameters may be."""
        found: TypeItems = children[0]
        if len(found.items) != 1 or found.items[0].label:
            raise BuildError(found.span, "these parentheses hold no single type", "write `(…) => type` for a function.")
        return replace(found.items[0].type, span=found.span)

    def function_type(self, children: Children) -> n.Type:
        """`(name: type) => type`, with types of its own or without."""
        _, found, _, result = children
        return n.Type(span_between(found, result), "function", _clip(f"({_join_items(found.items)}) => {result.text}"))

    def readonly_type(self, children: Children) -> n.Type:
        """`readonly type[]`, which is the type."""
        type: n.Type = children[1]
        return replace(type, span=cover(children))

    def bounded_type(self, children: Children) -> n.Type:
        """`type in low..high` and `type matching /pattern/`. Raises BuildError for the second bounds of a form."""
        type: n.Type = children[0]
        bounds: n.Bounds = children[1]
        if any((each.pattern is None) == (bounds.pattern is None) for each in type.bounds):
            raise BuildError(bounds.span, f"`{type.text}` already has such bounds", "write one of them.")
        text = type.text if type.bounds else _in_parentheses(type)
        return replace(type, span=cover(children), text=_clip(f"{text} {bounds.text}"), bounds=(*type.bounds, bounds))

    def bounds(self, children: Children) -> n.Bounds:
        """`in low..high` or `matching /pattern/`. Raises BuildError for a range without ends."""
        word, token = children
        span, text = cover(children), f"{word.lower()} {token}"
        if word.type == "MATCHING":
            pattern, flags = token[1:].rsplit("/", 1)
            return n.Bounds(span, text, pattern=n.Regex(span_of(token), pattern, flags))
        if token == "..":
            raise BuildError(span_of(token), "this range has neither end", "write one of its ends, as in `in 1..`.")
        low, high = ((-number(end[1:]) if end[0] == "-" else number(end)) if end else None for end in token.split(".."))
        return n.Bounds(span, text, low, high)

    def computed_type(self, children: Children) -> n.Type:
        """`keyof type`, `typeof name` and `type["key"]`, which are known to TypeScript only.

        Raises BuildError for `list[str]`.
        """
        first = children[0]
        if isinstance(first, n.Type) and first.name.lower() in OF_PYTHON:
            inner = OF_PYTHON.get(children[2].name.lower(), children[2].text)
            message = f"`{first.name}[…]` is a type of Python"
            raise BuildError(first.span, message, f"write `{OF_PYTHON[first.name.lower()].format(inner)}`.", "E0605")
        parts = [child if isinstance(child, Token) else child.text for child in children]
        return n.Type(cover(children), "any", _clip(("" if len(parts) > 2 else " ").join(parts)))

    def type_items(self, children: Children) -> TypeItems:
        """What stands between the parentheses of a type."""
        return TypeItems(span_between(children[0], children[-1]), only(children, TypeItem))

    def type_item(self, children: Children) -> TypeItem:
        """A type, or a parameter with its type."""
        label = "".join(str(child) for child in children[:-1] if child is not None)
        return TypeItem(children[-1], label.replace(":", ": "))

    def object_type(self, children: Children) -> n.Type:
        """`{ field: type, … }`."""
        fields = only(children, n.TypeField)
        listed = ", ".join(f"{field.name}{'?' if field.optional else ''}: {field.type.text}" for field in fields)
        span, is_open = span_between(children[0], children[-1]), bool(only(children, Span))
        return n.Type(span, "object", _clip(f"{{ {listed} }}"), (), fields, is_open)

    def type_field(self, children: Children) -> n.TypeField:
        """`name?: type`."""
        _, name, optional, _, type = children
        return n.TypeField(cover(children), _field_name(name), type, optional is not None)

    def type_method(self, children: Children) -> n.TypeField:
        """`name(parameters): type`, a field that is a function."""
        name, result = children[0], children[-1]
        text = f"({_join_items(only(children, TypeItem))}) => {result.text}"
        type = n.Type(cover(children), "function", _clip(text))
        return n.TypeField(cover(children), _field_name(name), type, False)

    def other_fields(self, children: Children) -> Span:
        """`[key: string]: type`: any other field may be there, as in every object; code may read them, too."""
        return cover(children)

    def predicate(self, children: Children) -> n.Type:
        """`name is type`, which is a boolean."""
        return n.Type(cover(children), "boolean", _clip(f"{children[0]} is {children[2].text}"))

    def generics(self, children: Children) -> tuple[str, ...]:
        """`<T, U>` of a function: the names of its types."""
        return tuple(child for child in children if not isinstance(child, Token))

    def generic(self, children: Children) -> str:
        """`T extends type = type`, of which only the name counts."""
        return str(children[0])


def _field_name(token: Token) -> str:
    return text_of_string(token) if token.type == "STRING" else str(token)


def _join_items(items: Any) -> str:
    return ", ".join(item.text for item in items)


def _in_parentheses(type: n.Type) -> str:
    """The text of a type as part of a list or intersection."""
    is_loose = type.name in ("union", "function") or " & " in type.text or bool(type.bounds)
    return f"({type.text})" if is_loose else type.text


def _clip(text: str) -> str:
    """The text of a type; long ones are cut, so that nested types do not take memory by the square of their depth."""
    return text if len(text) <= MAX_TYPE_CHARS else text[: MAX_TYPE_CHARS - 1] + "…"
