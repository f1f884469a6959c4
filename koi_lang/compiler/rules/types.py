"""Types that are written down: names that are none, and values that cannot be of them."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass
from math import ceil

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.declared_types import broken_bounds, choice_names
from koi_lang.compiler.rules.kinds import KINDS, WORDS, ValueTypes, kind_of_type, value_types
from koi_lang.compiler.rules.program import AnalysedProgram, place_of, with_article
from koi_lang.compiler.rules.table import Report, rule
from koi_lang.compiler.walk import Enclosing, everything
from koi_lang.diagnostics import LabeledSpan, nearest
from koi_lang.errors import PatternError
from koi_lang.js.bounded_regex import BoundedRegex
from koi_lang.source import Span

# The kinds of values that have a range.
BOUNDED = ("number", "string", "array")
ADDING_ITEMS = frozenset({"push", "unshift"})
# Types that say nothing here, or that programs have from TypeScript.
OTHERS = (
    "any json unknown never union literal promise function date map set regexp error record partial required readonly "
    "pick omit iterable symbol bigint"
).split()
# The advice for those of them that are not checked in payloads and results.
UNCHECKED_ADVICE = {
    **dict.fromkeys(("partial", "required", "readonly", "pick", "omit"), "declare a type that has the fields."),
    **dict.fromkeys(("record", "map"), "write the fields, `{ name: number }`, or `Json` for any object."),
    **dict.fromkeys(("set", "iterable"), "write a list, such as `string[]`."),
    "date": "write `string`, and make the date of it in code: `new Date(text)`.", "bigint": "write `int`.",
}  # fmt: skip
SHOWN = ("string", "number", "Int", "boolean", "Bool", "any", "Json", "null", "undefined", "void", "object", "Array",
         "Promise", "Date")  # fmt: skip
SYNONYMS = {
    "float": "number", "double": "number", "decimal": "number", "integer": "Int", "str": "string", "text": "string",
    "char": "string", "list": "any[]", "tuple": "any[]", "dict": "Json", "none": "null", "nil": "null",
}  # fmt: skip
ADVICE = "types are such as `string`, `number`, `boolean`, `Json`, `string[]` and `{ name: string }`."


@dataclass(frozen=True, slots=True)
class TypedValue:
    """A value that something with a type is given where it is declared or assigned."""

    name: str
    type: n.Type
    value: n.Expression
    around: Enclosing


@rule("E0226", "warning")
def unknown_type(file: Analysis, report: Report) -> None:
    """A type has a name that no type has, or is one that payloads and results are not held to.

    It counts as `any`: nothing is checked, and models are told nothing about the value. One message a name. The
    same holds in payloads and results, which are data, for `Map`, `Set` and `Date`, and for `Record`, `Partial` and
    other types that TypeScript computes.

    Wrong:

        in handler(args: { name: strng }): return args.name

    Right:

        in handler(args: { name: string }): return args.name
    """
    table = file.table
    known = {*KINDS, *OTHERS, *map(str.lower, [*table.types, *table.values, *table.roles, *table.skills])}
    for type, _ in file.index.of(n.Type):
        if type.name == "any" and " & " in type.text:
            help = "write the fields of all in one type, or a field for each part."
            report.add(type.span, "types with names are not joined by `&`, so anything is accepted", help=help)
    for type in _checked_types(file):
        is_computed = type.name == "any" and type.text.lower() != "any" and " & " not in type.text
        advice = UNCHECKED_ADVICE.get("partial" if is_computed else type.name.lower())
        if advice is not None:
            report.add(type.span, f"`{type.one_line}` is not checked, so anything is accepted", help=advice)
    first: dict[str, Span] = {}
    generic = [function for function, _ in file.index.of(n.Function) if function.generics]
    for name, span in _type_names(file):
        is_generic = any(name in function.generics and function.span.encloses(span) for function in generic)
        if name.lower() not in known and not is_generic:
            first.setdefault(name, span)
    for name, span in first.items():
        near = SYNONYMS.get(name.lower()) or nearest(name, [*file.table.types, *SHOWN])
        help = f"did you mean `{near}`?" if near else ADVICE
        fixes = report.replacement(
            span, near, *(each for written, each in _type_names(file) if written == name and each != span)
        )
        report.add(span, f"there is no type `{name}`, so anything is accepted", help=help, fixes=fixes)


@rule("E0227", "warning")
def wrong_value(file: Analysis, report: Report) -> None:
    """Something with a type is given a value of another kind.

    Types of variables and of the state are not checked while a program runs; this is seen in the source, where the
    value is written down, or has a type itself: at a declaration, an assignment, and a `push`. Nothing is said of
    `null`.

    Wrong:

        in agent: state { count: number = "0" }

    Right:

        in agent: state { count: number = 0 }
    """
    types = report.program.for_file(value_types, file)
    for given in _typed_values(file, types):
        kinds, kind = (
            {kind_of_type(each) for each in types.options(given.type)},
            types.kind_of(given.value, given.around),
        )
        if kinds and None not in kinds and kind is not None and kind not in kinds:
            message = f"`{given.name}` is declared as `{given.type.one_line}`, and gets {WORDS[kind]}"
            wanted = " or ".join(WORDS[kind] for kind in sorted(filter(None, kinds)))
            help = f"write {wanted}, or declare another type."
            report.add(given.value.span, message, others=_apart(given, report), help=help)
        elif kind is not None and (bounds := broken_bounds(given.value, given.type)):
            message = f"`{given.name}` is declared as `{given.type.one_line}`, and gets another value"
            help = f"write {WORDS[kind]}{bounds}, or declare other bounds."
            report.add(given.value.span, message, others=_apart(given, report), help=help)


@rule("E0254", "error")
def impossible_bounds(file: Analysis, report: Report) -> None:
    """A type has bounds that it cannot have, or that no value can keep.

    `in low..high` bounds a number, or the length of a text or a list, and either end may be left out. `matching /…/`
    says what a text has to contain; `^` and `$` make that the whole text. Bounds belong to one type: in a choice they
    stand behind the type that they mean, and those of a declared type stand where it is declared.

    Wrong:

        type Grade = { score: number in 5..1, name: string matching /^[a-z]+$/ }

    Right:

        type Grade = { score: number in 1..5, name: string matching /^[a-z]+$/ }
    """
    for type, _ in file.index.of(n.Type):
        for bounds in type.bounds:
            if problem := _bounds_problem(type, bounds, file):
                report.add(bounds.span, problem[0], help=problem[1])


def _bounds_problem(type: n.Type, bounds: n.Bounds, file: Analysis) -> tuple[str, str] | None:
    """What is wrong with bounds of a type, and the help."""
    kind = kind_of_type(type)
    shown = f"`{file.unit.source.text[type.span.start : type.bounds[0].span.start].strip()}`"
    if kind not in BOUNDED or (bounds.pattern is not None and kind != "string"):
        help = "write them behind the type that they are for, as in `number in 0..1 | null`."
        if type.name in file.table.types:
            help = f"write them where `type {type.name} = …` is declared."
        elif type.name != "union":
            help = "ranges are for numbers, texts and lists; `matching` is for texts."
        return f"{shown} cannot have these bounds", help
    if bounds.pattern is not None:
        return _pattern_problem(bounds.pattern)
    if bounds.low is not None and bounds.high is not None:
        if bounds.low > bounds.high:
            return f"no value is in {bounds.low}..{bounds.high}", f"write `in {bounds.high}..{bounds.low}`."
        if type.name.lower() == "int" and ceil(bounds.low) > bounds.high:
            return f"no whole number is in {bounds.low}..{bounds.high}", "write `number` in place of `int`."
    ends = [end for end in (bounds.low, bounds.high) if end is not None and kind != "number"]
    if any(end < 0 or not isinstance(end, int) for end in ends):
        return f"the length of {WORDS[kind or '']} is a whole number from 0", "write a range such as `in 1..80`."
    return None


def _pattern_problem(regex: n.Regex) -> tuple[str, str] | None:
    if regex.flags:
        return f"a pattern of a type has no flags, and this one has `{regex.flags}`", f"write `/{regex.pattern}/`."
    try:
        BoundedRegex(regex.pattern)
    except PatternError as error:
        return error.message.partition(" at position")[0], error.help or ""
    return None


def _checked_types(file: Analysis) -> Iterator[n.Type]:
    """The types in a file that payloads and results of its handlers are held to."""
    waiting: list[n.Node] = []
    for handler, _ in file.index.of(n.Handler):
        waiting += filter(None, (handler.returns, *(parameter.type for parameter in handler.parameters)))
    seen = set[str]()
    while waiting:
        for type in everything(waiting.pop()):
            if isinstance(type, n.Type):
                yield type
                symbol = file.table.types.get(type.name)
                if symbol is not None and symbol.unit is file.unit and symbol.name not in seen:
                    seen.add(symbol.name)
                    waiting.append(symbol.node)


def _type_names(file: Analysis) -> Iterator[tuple[str, Span]]:
    """Every name of a type, with where it stands."""
    for type, _ in file.index.of(n.Type):
        if type.text.startswith(type.name):
            yield type.name, Span(type.span.start, type.span.start + len(type.name))
    for parameter, _ in file.index.of(n.PromptParameter):
        yield parameter.type, Span(parameter.span.end - len(parameter.type), parameter.span.end)


def _typed_values(file: Analysis, types: ValueTypes) -> Iterator[TypedValue]:
    """Every value that is given to something with a type."""
    for declarator, around in file.index.of(n.Declarator):
        yield from _pair(declarator.pattern, declarator.type, declarator.value, around)
    for parameter, around in file.index.of(n.Parameter):
        yield from _pair(parameter.pattern, parameter.type, parameter.default, around)
    for field, around in file.index.of(n.Field):
        yield from _pair(field.name, field.type, field.value, around)
    text = file.unit.source.text
    for assignment, around in file.index.of(n.Assignment):
        target = assignment.target
        if isinstance(target, n.Name | n.Member) and not assignment.operator:
            type, name = types.type_of(target, around), target.name
            if type is not None and type.text:
                yield TypedValue(name, type, assignment.value, around)
    for call, around in file.index.of(n.Call):
        if isinstance(call.callee, n.Member) and call.callee.name in ADDING_ITEMS:
            type, name = (
                types.item_type(types.type_of(call.callee.object, around)),
                text[slice(*call.callee.object.span)],
            )
            if type is not None:
                yield from (TypedValue(f"{name}[…]", type, item, around) for item in call.arguments)


def _pair(declared: n.Node, type: n.Type | None, value: n.Expression | None, around: Enclosing) -> Iterator[TypedValue]:
    if type is not None and value is not None and isinstance(declared, (n.Name, n.Binding)):
        yield TypedValue(declared.name, type, value, around)


def _apart(given: TypedValue, report: Report) -> list[LabeledSpan]:
    """Where the type stands, unless the value stands beside it."""
    lines = {report.source.position(node.span.start).line for node in (given.type, given.value)}
    return [report.place(given.type.span, "the type")] if len(lines) > 1 else []


@rule("E0247", "error")
def misnamed_type(file: Analysis, report: Report) -> None:
    """A type has the name of a built-in one, or of something else that is declared.

    Agents, skills, teams, prompts and roles may stand where a type does, and mean anything there; so a type needs a
    name of its own.

    Wrong:

        role Worker { can execute }
        agent Order : Worker { on take(args: Json) { return args } }
        type Order = { item: string }
        run Order.take({})

    Right:

        role Worker { can execute }
        agent Orders : Worker { on take(args: Order) { return args } }
        type Order = { item: string }
        run Orders.take({ item: "tea" })
    """
    table = file.table
    spaces = (table.values, table.roles, table.skills, table.mcps)
    for declared, _ in file.index.of(n.TypeDeclaration):
        name = declared.name
        if name.name.lower() in (*KINDS, *OTHERS):
            report.add(name.span, f"`{name.name}` is a type that there is already", help="give it another name.")
        other = next((space[name.name] for space in spaces if name.name in space), None)
        if other is not None:
            place = place_of(other, f"{with_article(other.kind)} of this name")
            message = f"`{name.name}` is {with_article(other.kind)}, so no type can be called like that"
            report.add(name.span, message, others=[place], help=f"write `type {name.name}Type = …`, for instance.")


@rule("E0248", "error")
def endless_type(file: Analysis, report: Report) -> None:
    """A type contains itself in a field that may not be left out, so that no value is of it.

    Put it into a list, give it another choice, or let the field be left out.

    Wrong:

        type Node = { name: string, next: Node }

    Right:

        type Node = { name: string, next?: Node }
    """
    can_end = report.program.for_file(_types_with_values, file)
    for declared, _ in file.index.of(n.TypeDeclaration):
        name = declared.name.name
        if name not in can_end:
            message = f"`{name}` always contains itself, so there is no value of it"
            report.add(declared.name.span, message, help="let a field be left out (`next?: …`), or write a list.")
        elif name in choice_names(declared.type, file.table):
            message = f"`{name}` is itself one of the types that it may be"
            report.add(declared.name.span, message, help="leave it out there, or put it into a list or a field.")


def _types_with_values(file: Analysis, _: AnalysedProgram) -> frozenset[str]:
    """The declared types that there are values of, found from those that need no other one."""
    declared = {
        name: symbol.node.type
        for name, symbol in file.table.types.items()
        if isinstance(symbol.node, n.TypeDeclaration)
    }
    found: frozenset[str] = frozenset()
    while more := {name for name in declared.keys() - found if _can_end(declared[name], found, declared)}:
        found |= more
    return found


def _can_end(type: n.Type, known: Container[str], declared: Container[str]) -> bool:
    """Whether there is a value of a type, where the declared types with values are `known`."""
    if type.name == "union":
        return any(_can_end(argument, known, declared) for argument in type.arguments)
    if type.name == "object":
        return all(_can_end(field.type, known, declared) for field in type.fields if not field.optional)
    if type.name == "Promise" and type.arguments:
        return _can_end(type.arguments[0], known, declared)
    return type.name in known or type.name not in declared
