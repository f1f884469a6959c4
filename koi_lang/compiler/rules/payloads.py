"""Payloads that are written down, beside the types that handlers declare for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.declared_types import broken_bounds, choices_of, resolve_type
from koi_lang.compiler.literals import value_of_literal_type
from koi_lang.compiler.rules.kinds import WORDS, Kind, kind_of, kind_of_type
from koi_lang.compiler.rules.program import AnalysedProgram, attempts_of, handlers
from koi_lang.compiler.rules.sends import targets
from koi_lang.compiler.rules.table import Report, rule
from koi_lang.compiler.rules.tests import handler_calls
from koi_lang.compiler.walk import Enclosing
from koi_lang.diagnostics import nearest
from koi_lang.source import Span


@dataclass(frozen=True, slots=True)
class TypedPlace:
    """Where a value is given that has a declared type.

    Attributes:
        shown: how messages call the value itself.
        owner: the handler that takes or gives it.
        kind: the word for it: `payload` or `result`.
        span: what is marked where something is missing that stands nowhere.
        is_whole: whether nothing is added to it, as the command line does to the payload of a `run`.
    """

    shown: str
    owner: str
    kind: str
    span: Span
    around: Enclosing
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class GivenPayload:
    """A payload and the handlers that may get it."""

    value: n.Expression | None
    handlers: tuple[n.Handler, ...]
    place: TypedPlace


@rule("E0236", "error")
def wrong_payload(file: Analysis, report: Report) -> None:
    """A handler is given a payload that is not of the type it declares.

    The type of a handler's parameter is checked when it is called, so the call would fail. Fields beyond those of the
    type are allowed; fields with `?` may be left out. Nothing is said where the failure is expected, in a `try` or in
    an `expect … fails`, nor of fields that a `run` leaves to the command line.

    Wrong:

        role Worker { can execute }
        agent Adder : Worker { on add(args: { a: number, b: number }) { return args.a + args.b } }
        run Adder.add({ a: 1, b: "2" })

    Right:

        role Worker { can execute }
        agent Adder : Worker { on add(args: { a: number, b: number }) { return args.a + args.b } }
        run Adder.add({ a: 1, b: 2 })
    """
    for given in _given_payloads(file, report.program):
        typed = [handler.parameters[0].type for handler in given.handlers if handler.parameters]
        if not typed or len(typed) < len(given.handlers):
            continue
        found = [
            list(value_problems(given.value, type, given.place, file, report.program))
            for type in typed
            if type is not None
        ]
        if len(found) == len(typed) and all(found):
            for span, message, help in found[0] if len(found) == 1 else found[0][:1]:
                report.add(span, message, help=help)


def _given_payloads(file: Analysis, program: AnalysedProgram) -> Iterator[GivenPayload]:
    for run, _ in file.index.of(n.Run):
        symbol = file.table.find("agent", run.agent.name)
        if symbol is not None and isinstance(symbol.node, n.Agent):
            if run.job is not None and run.job.trigger == "when":
                continue  # the event gives the payload
            value = run.arguments[0] if run.arguments else None
            found = _to(symbol.node, run.handler.name, value, run.handler.span, Enclosing())
            # Nobody adds fields to the payload of a job, as the command line does to others.
            is_whole = run.job is not None
            yield from (replace(given, place=replace(given.place, is_whole=is_whole)) for given in found)
    around_of, attempts = dict(file.index.of(n.Call)), attempts_of(file)
    for call, name, symbol in handler_calls(file):
        if any(attempt.start <= call.span.start < attempt.end for attempt in attempts):
            continue
        arguments, event = call.arguments, name.name
        if event == "handle":
            first = arguments[0] if arguments else None
            if not isinstance(first, n.Text) or len(arguments) < 2:
                continue
            event, arguments = first.value, arguments[1:]
        if isinstance(symbol.node, n.Agent) and len(arguments) <= 1:
            yield from _to(symbol.node, event, arguments[0] if arguments else None, name.span, around_of[call])
    for send, around, target in targets(file, program):
        agents = [
            agent for agent, _ in target.handling(send.event) if send.role is None or agent.role.name == send.role.name
        ]
        each = tuple(handler for agent in agents for handler in handlers(agent) if handler.name.name == send.event)
        if each and len(send.arguments) == 1:
            place = TypedPlace("the payload", send.event, "payload", send.event_span, around)
            yield GivenPayload(send.arguments[0], each, place)


def _to(
    agent: n.Agent, event: str, value: n.Expression | None, place: Span, around: Enclosing
) -> Iterator[GivenPayload]:
    """A payload for one handler, if the agent has it and nothing else stands in for what is missing."""
    for handler in handlers(agent):
        has_default = bool(handler.parameters) and handler.parameters[0].default is not None
        if handler.name.name == event and not (value is None and has_default):
            yield GivenPayload(value, (handler,), TypedPlace("the payload", event, "payload", place, around))


def value_problems(
    value: n.Expression | None,
    type: n.Type,
    given: TypedPlace,
    file: Analysis,
    program: AnalysedProgram,
    path: str = "",
) -> Iterator[tuple[Span, str, str]]:
    """What is wrong with a value: its place, a message, and the help."""
    value, type = n.strip_parentheses(value), resolve_type(type, file.table)
    shown = f"`{path}`" if path else given.shown
    if type.name == "union":
        options = [
            list(value_problems(value, choice, given, file, program, path)) for choice in choices_of(type, file.table)
        ]
        if all(options) and value is not None:
            choice = " or ".join(f"`{option.one_line}`" for option in type.arguments)
            yield value.span, f"{shown} of `{given.owner}` is none of `{type.one_line}`", f"write {choice}."
        return
    if type.name == "literal":
        yield from _literal_problems(value, type, given, shown)
        return
    kind, wanted = _kind(value, given.around, file, program), kind_of_type(type)
    if kind is not None and wanted is not None and kind != wanted and value is not None:
        message = f"{shown} of `{given.owner}` is {WORDS[wanted]}, and gets {WORDS[kind]}"
        yield value.span, message, f"give it {WORDS[wanted]}, or declare another type."
        return
    if value is not None and wanted is not None and (bounds := broken_bounds(value, type)):
        message = f"{shown} of `{given.owner}` must be {WORDS[wanted]}{bounds}"
        yield value.span, message, f"give it such a value, or change the bounds of `{type.one_line}`."
    if (
        type.name.lower() == "int"
        and isinstance(value, n.Literal)
        and isinstance(value.value, float)
        and not value.value.is_integer()
    ):
        message = f"{shown} of `{given.owner}` is a whole number, and gets {value.value}"
        yield value.span, message, "give it a whole number, or declare `number`."
    if wanted == "object":
        yield from _field_problems(value, type, given, file, program, path)
    if isinstance(value, n.Array) and type.arguments:
        for index, item in enumerate(value.items):
            if not isinstance(item, (n.Spread, n.Hole)):
                yield from value_problems(item, type.arguments[0], given, file, program, f"{path}[{index}]")


def _literal_problems(
    value: n.Expression | None, type: n.Type, given: TypedPlace, shown: str
) -> Iterator[tuple[Span, str, str]]:
    if isinstance(value, (n.Text, n.Literal)):
        wanted = value_of_literal_type(type.text)
        if value.value != wanted or isinstance(value.value, bool) != isinstance(wanted, bool):
            yield value.span, f"{shown} of `{given.owner}` is not `{type.text}`", f"write `{type.text}`."


def _field_problems(
    value: n.Expression | None, type: n.Type, given: TypedPlace, file: Analysis, program: AnalysedProgram, path: str
) -> Iterator[tuple[Span, str, str]]:
    """What is wrong with the fields of an object that is written down as a whole; none are those of an empty one."""
    properties = value.properties if isinstance(value, n.Object) else ()
    fields = {each.key: each for each in properties if isinstance(each, n.Property) and isinstance(each.key, str)}
    if (value is not None and not isinstance(value, n.Object)) or len(fields) < len(properties):
        return
    missing = [field.name for field in type.fields if field.name not in fields and not field.optional]
    unknown = [str(key) for key in fields if key not in [field.name for field in type.fields]]
    is_misspelt = any(nearest(name, unknown) for name in missing)
    if missing and (given.is_whole or is_misspelt):
        span = given.span if value is None else value.span
        yield span, *_missing(missing, unknown, path, given)
    for field in type.fields:
        property, name = fields.get(field.name), f"{path}.{field.name}" if path else field.name
        if property is not None:
            yield from value_problems(property.value, field.type, given, file, program, name)


def misspelt_fields(value: n.Object, type: n.Type, owner: str, file: Analysis) -> Iterator[tuple[Span, str, str]]:
    """Fields that a type lacks and whose names resemble those of fields left out: place, message, and help."""
    fields = {field.name for field in resolve_type(type, file.table).fields}
    properties = [each for each in value.properties if isinstance(each, n.Property) and isinstance(each.key, str)]
    absent = fields - {str(each.key) for each in properties}
    for each in properties:
        if each.key not in fields and (near := nearest(str(each.key), sorted(absent))):
            yield each.span, f"`{owner}` takes no field `{each.key}`", f"write `{near}`."


def _missing(missing: list[str], unknown: list[str], path: str, given: TypedPlace) -> tuple[str, str]:
    """The message about the fields that an object lacks, and the help; `unknown` are fields that its type lacks."""
    near = {name: found for name in missing if (found := nearest(name, unknown))}
    optional = f", or declare it as `{missing[0]}?`" if len(missing) == 1 and not near else ""
    parts = [f"`{name}: …` instead of `{found}`" for name, found in near.items()]
    rest = ", ".join(f"{name}: …" for name in missing if name not in near)
    help = f"write {' and '.join([*parts, *([f'`{rest}`'] if rest else [])])}{optional}."
    paths = [f"`{path}.{name}`" if path else f"`{name}`" for name in missing]
    verb = "is" if len(paths) == 1 else "are"
    return f"{' and '.join(paths)} {verb} missing in the {given.kind} of `{given.owner}`", help


def _kind(value: n.Expression | None, around: Enclosing, file: Analysis, program: AnalysedProgram) -> Kind | None:
    if isinstance(value, n.Literal) and value.value is None:
        return "null"
    return None if value is None else kind_of(value, around, file, program)
