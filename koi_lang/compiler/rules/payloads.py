"""Payloads and arguments that are written down, beside the types of handlers and of functions of skills."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.declared_types import broken_bounds, choices_of, resolve_type
from koi_lang.compiler.literals import value_of_literal_type
from koi_lang.compiler.rules.kinds import (
    WORDS,
    Kind,
    exported_functions,
    find_calls,
    kind_of,
    kind_of_type,
    skill_calls,
)
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


@rule("E0265", "warning")
def wrong_default(file: Analysis, report: Report) -> None:
    """The default of a parameter is an object that is not of the type of the parameter.

    A default takes the place of a payload or argument that is not given, and is not checked when the program runs. What
    it lacks is `undefined` in the code.

    Wrong:

        role Worker { can execute }
        agent Greeter : Worker { on greet({ name }: { name: string } = {}) { return "Hello, " + name } }
        run Greeter.greet()

    Right:

        role Worker { can execute }
        agent Greeter : Worker { on greet({ name }: { name: string } = { name: "you" }) { return "Hello, " + name } }
        run Greeter.greet()
    """
    owners: list[tuple[n.Handler | n.Function, Enclosing]] = [*file.index.of(n.Handler), *file.index.of(n.Function)]
    for owner, around in owners:
        for each in owner.parameters:
            type, default = each.type, each.default
            if type is None or not isinstance(default, n.Object):
                continue
            if kind_of_type(resolve_type(type, file.table)) == "object":
                name = owner.name.name if isinstance(owner, n.Handler) else owner.name or "function"
                place = TypedPlace("the default", name, "default", default.span, around)
                for span, message, help in value_problems(default, type, place, file, report.program):
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
    is_null = isinstance(value, n.Literal) and value.value is None
    kind: Kind | None = "null" if is_null else None
    if value is not None and not is_null:
        kind = kind_of(value, given.around, file, program)
    wanted = kind_of_type(type)
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


# Types of parameters that may well be left out.
OPEN_TYPES = frozenset({"any", "json", "unknown", "undefined", "null", "void"})


@rule("E0244", "error")
def unknown_in_skill(file: Analysis, report: Report) -> None:
    """`callSkill` names a skill that the agent does not use, or a function that the skill does not export.

    The call fails when the program gets there.

    Wrong:

        skill Sums { export function add(a: number, b: number): number { return a + b } }
        role Worker { can execute }
        agent Clerk : Worker { uses skill Sums  on sum(args) { return await this.callSkill("Sums", "ad", 1, 2) } }

    Right:

        skill Sums { export function add(a: number, b: number): number { return a + b } }
        role Worker { can execute }
        agent Clerk : Worker { uses skill Sums  on sum(args) { return await this.callSkill("Sums", "add", 1, 2) } }
    """
    for call in skill_calls(file, report.program):
        skill = call.skills.get(call.name.value)
        if skill is None:
            near = nearest(call.name.value, call.skills)
            agent, wanted = call.agent.name.name, call.name.value
            help = f"did you mean `{near}`?" if near else f"write `uses skill {wanted}` in `{agent}`."
            owner, _, function = wanted.partition(".")
            help = f'write `callSkill("{owner}", "{function}", …)`.' if owner in call.skills and function else help
            message = f"`{agent}` does not use a skill `{wanted}`"
            report.add(call.name.span, message, help=help, fixes=report.replacement(report.inside(call.name), near))
            continue
        first, known = (call.arguments[0] if call.arguments else None), exported_functions(skill)
        if isinstance(first, n.Text) and first.value not in known and len(call.arguments) > 1:
            near = nearest(first.value, known)
            listed = ", ".join(f"`{name}`" for name in known)
            help = f"did you mean `{near}`?" if near else f"it exports {listed}." if known else "it exports none."
            message, fixes = (
                f"the skill `{call.name.value}` has no function `{first.value}`",
                report.replacement(report.inside(first), near),
            )
            report.add(first.span, message, help=help, fixes=fixes)


@rule("E0245", "warning")
def wrong_arguments(file: Analysis, report: Report) -> None:
    """A function of a skill is called with too many arguments, too few, or one of another kind than it declares.

    What is too much is dropped, and what is missing is `undefined`. Only parameters that have a type, and neither a
    default nor a `?`, must be given. A field that the type lacks is told where it looks like one that is left out.
    Nothing is said in a `try`, where the failure may be expected.

    Wrong:

        skill Sums { export function add(a: number, b: number): number { return a + b } }
        role Worker { can execute }
        agent Clerk : Worker { on sum(args) { return add(1) } }

    Right:

        skill Sums { export function add(a: number, b: number): number { return a + b } }
        role Worker { can execute }
        agent Clerk : Worker { on sum(args) { return add(1, 2) } }
    """
    attempts = attempts_of(file)
    for call in report.program.for_file(find_calls, file):
        if any(attempt.start <= call.place.start < attempt.end for attempt in attempts):
            continue
        parameters, name = call.function.parameters, call.function.name
        if any(isinstance(argument, n.Spread) for argument in call.arguments):
            continue
        needed = max((index + 1 for index, each in enumerate(parameters) if _must_be_given(each)), default=0)
        most = None if any(each.rest for each in parameters) else len(parameters)
        if len(call.arguments) < needed or (most is not None and len(call.arguments) > most):
            takes = _number(needed, most)
            written = ", ".join(_source(each) for each in parameters)
            message = f"`{name}` takes {takes}, and gets {len(call.arguments) or 'none'}"
            report.add(call.place, message, help=f"its parameters are ({written}).")
            continue
        for parameter, argument in zip(parameters, call.arguments, strict=False):
            kind, wanted = kind_of(argument, call.around, file, report.program), kind_of_type(parameter.type)
            if kind is not None and wanted not in (None, "null", kind) and not parameter.rest:
                message = f"`{_name(parameter)}` of `{name}` is {WORDS[wanted]}, and gets {WORDS[kind]}"
                report.add(argument.span, message, help=f"give it {WORDS[wanted]}.")
                continue
            if parameter.type is None or not isinstance(argument, n.Object):
                continue
            place = TypedPlace(f"`{_name(parameter)}`", str(name), "arguments", argument.span, call.around)
            problems = value_problems(argument, parameter.type, place, file, report.program)
            for span, message, help in (*problems, *misspelt_fields(argument, parameter.type, str(name), file)):
                report.add(span, message, help=help)


def _number(needed: int, most: int | None) -> str:
    """How many arguments a function takes."""
    if most is None or needed < most:
        return f"at least {needed} arguments" if most is None else f"{needed} to {most} arguments"
    return "no arguments" if most == 0 else "one argument" if most == 1 else f"{most} arguments"


def _must_be_given(parameter: n.Parameter) -> bool:
    if parameter.type is None or parameter.default is not None or parameter.optional or parameter.rest:
        return False
    parts = parameter.type.arguments if parameter.type.name == "union" else (parameter.type,)
    return all(part.name.lower() not in OPEN_TYPES and part.text not in ("null", "undefined") for part in parts)


def _name(parameter: n.Parameter) -> str:
    return parameter.pattern.name if isinstance(parameter.pattern, n.Binding) else "…"


def _source(parameter: n.Parameter) -> str:
    """A parameter as messages show it."""
    rest, optional = "..." * parameter.rest, "?" * (parameter.optional or parameter.default is not None)
    type = "" if parameter.type is None else f": {' '.join(parameter.type.text.split())}"
    return f"{rest}{_name(parameter)}{optional}{type}"
