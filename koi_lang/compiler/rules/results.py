"""Types of values: results beside the types of their handlers, and what code reads and computes of values."""

from __future__ import annotations

from collections.abc import Iterator

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.declared_types import choices_of
from koi_lang.compiler.rules.kinds import (
    ValueTypes,
    given_patterns,
    type_given,
    value_types,
)
from koi_lang.compiler.rules.members import OF_ALL
from koi_lang.compiler.rules.payloads import TypedPlace, value_problems
from koi_lang.compiler.rules.program import AnalysedProgram
from koi_lang.compiler.rules.state import CHANGES
from koi_lang.compiler.rules.table import Report, rule
from koi_lang.compiler.walk import everything
from koi_lang.diagnostics import MAX_NAMES, nearest
from koi_lang.source import Span

VERDICT = 'a guard returns `true`, or `{ allow: false, reason: "…" }`.'
# How much of a type messages show.
MAX_TYPE_CHARS = 60
# Types of which a handler that ends without a result gives a value.
KNOWN = frozenset({"string", "number", "int", "boolean", "bool"})
NOTHING = frozenset({"null", "undefined", "void", "any", "json", "unknown"})


@rule("E0249", "error")
def wrong_result(file: Analysis, report: Report) -> None:
    """A handler returns something that is not of the type it declares.

    The type of a result is checked where the handler ends, so every call that gets there would fail.

    Wrong:

        role Worker { can execute }
        agent Adder : Worker { on add(args: { a: number }): { sum: number } { return { total: args.a } } }
        run Adder.add({ a: 1 })

    Right:

        role Worker { can execute }
        agent Adder : Worker { on add(args: { a: number }): { sum: number } { return { sum: args.a } } }
        run Adder.add({ a: 1 })
    """
    for statement, around in file.index.of(n.Return):
        handler = around.function
        if not isinstance(handler, n.Handler) or handler.returns is None:
            continue
        if statement.value is None:
            if not _may_be_nothing(handler.returns, file):
                message = f"`{handler.name.name}` gives `{handler.returns.one_line}`, and this returns nothing"
                report.add(
                    statement.span,
                    message,
                    help=VERDICT if handler.guard else "return a value, or add `| null` to the type.",
                )
            continue
        place = TypedPlace("the result", handler.name.name, "result", statement.value.span, around)
        for span, message, help in value_problems(statement.value, handler.returns, place, file, report.program):
            others = [report.place(handler.returns.span, "the type of the result")]
            report.add(span, message, others=others, help=VERDICT if handler.guard else help)


@rule("E0250", "warning")
def missing_result(file: Analysis, report: Report) -> None:
    """A handler declares what it gives, and may end without a `return`.

    Whoever calls it gets an error then.

    Wrong:

        role Worker { can execute }
        agent Sizes : Worker { on size(n: number): string { if (n > 9) return "large" } }
        run Sizes.size(10)

    Right:

        role Worker { can execute }
        agent Sizes : Worker { on size(n: number): string { return n > 9 ? "large" : "small" } }
        run Sizes.size(10)
    """
    for handler, _ in file.index.of(n.Handler):
        is_playbook = any(isinstance(statement, n.Playbook) for statement in handler.body.statements)
        if handler.returns is None or _may_be_nothing(handler.returns, file) or is_playbook:
            continue
        if _falls_through(handler.body):
            message = f"`{handler.name.name}` gives `{handler.returns.one_line}`, and may end without a `return`"
            help = "return a value at the end, or add `| null` to the type."
            last = handler.body.statements[-1] if handler.body.statements else None
            if isinstance(last, n.ExpressionStatement) and isinstance(last.expression, n.Operation | n.Name | n.Member):
                help = f"write `return {' '.join(file.unit.source.text[slice(*last.span)].split())}`."
            report.add(handler.name.span, message, help=VERDICT if handler.guard else help)


@rule("E0251", "warning")
def undeclared_field(file: Analysis, report: Report) -> None:
    """A field is read that the declared type of a value does not have.

    The fields of a value are known where its type is declared: for a parameter, a variable, a field of the state, the
    result of a function, and the result of a handler that is waited for, also with `handle` and by a `send` whose
    members all declare it. A payload may have more fields than its type; those that code reads belong into the type,
    so that models and other programs see them. Nothing is said of fields that code adds or asks for with `in`.

    Wrong:

        role Worker { can execute }
        agent Judge : Worker {
          on judge(args: { text: string }): { verdict: string } { return { verdict: args.text } }
          on start(args: Json) { const { verdit } = await this.judge({ text: "a" })  console.log(verdit) }
        }
        run Judge.start({})

    Right:

        role Worker { can execute }
        agent Judge : Worker {
          on judge(args: { text: string }): { verdict: string } { return { verdict: args.text } }
          on start(args: Json) { const { verdict } = await this.judge({ text: "a" })  console.log(verdict) }
        }
        run Judge.start({})
    """
    types = report.program.for_file(value_types, file)
    if not types.given and not types.variables:
        return
    patterns = [each for pattern, _ in file.index.of(n.ObjectPattern) for each in pattern.elements]
    shorthands = {each.span.start for each in patterns if each.pattern.span.start == each.span.start}
    for span, name, type in sorted(_read_fields(file, types, report.program), key=lambda each: each[0]):
        known = list(types.fields_of(type) or ())
        near, listed = nearest(name, known), ", ".join(f"`{field}`" for field in known[:MAX_NAMES])
        listed, text = listed + ", …" * (len(known) > MAX_NAMES), type.one_line
        help = f"did you mean `{near}`?" if near else f"it has {listed}; declare `{name}?: …` if it may have that, too."
        shown = text if len(text) <= MAX_TYPE_CHARS else f"{text[:MAX_TYPE_CHARS].rpartition(',')[0]}, … }}"
        place = Span(span.start, span.start + len(name))
        fixes = report.replacement(place, f"{near}: {name}" if near and span.start in shorthands else near)
        report.add(span, f"`{shown}` has no field `{name}`", help=help, fixes=fixes)


def _read_fields(file: Analysis, types: ValueTypes, program: AnalysedProgram) -> Iterator[tuple[Span, str, n.Type]]:
    """Every field that is read, and neither declared nor added here: where, its name, and the type without it."""
    index = file.index
    added = set[str]().union(*(program.for_file(added_fields, each) for each in program.files))
    removed = {prefix.operand for prefix, _ in index.of(n.Prefix) if prefix.operator == "delete"}
    for member, around in reversed(index.of(n.Member)):
        type = types.type_of(member.object, around) if member.name not in OF_ALL and member not in removed else None
        fields = types.fields_of(type)
        if type is not None and fields is not None and member.name not in fields and member.name not in added:
            yield member.name_span, member.name, type
    for pattern, value, around in given_patterns(file):
        for span, name, without in _unknown_in(pattern, type_given(pattern, value, around, types), types):
            yield from [(span, name, without)] if name not in added else ()


def added_fields(file: Analysis, _: AnalysedProgram) -> set[str]:
    """The names of fields that code of a file sets, or asks for with `in`; asked for by `program.for_file`."""
    index = file.index
    adding: list[n.Node] = [each.target for kind in CHANGES for each, _ in index.of(kind)]
    adding += [call for call, _ in index.of(n.Call) if isinstance(call.callee, n.Member) and call.callee.name in ADDING]
    adding += [operation for operation, _ in index.of(n.Operation) if "in" in operation.operators]
    added = set[str]()
    for part in (part for node in adding for part in everything(node)):
        match part:
            case n.Member(name=name) | n.Text(value=name) | n.Property(key=str(name)):
                added.add(name)
    return added


def _unknown_in(pattern: n.Node, type: n.Type | None, types: ValueTypes) -> Iterator[tuple[Span, str, n.Type]]:
    if isinstance(pattern, n.ArrayPattern):
        for element in pattern.elements:
            yield from _unknown_in(element.pattern, types.item_type(type), types)
    fields = types.fields_of(type)
    if type is None or fields is None or not isinstance(pattern, n.ObjectPattern):
        return
    for element in pattern.elements:
        if isinstance(element.key, str) and element.key not in fields:
            yield element.span, element.key, type
        elif isinstance(element.key, str):
            yield from _unknown_in(element.pattern, types.field_type(type, element.key), types)


def _may_be_nothing(type: n.Type, file: Analysis) -> bool:
    """Whether a handler may end without a result; so it may where the type says nothing."""
    for choice in choices_of(type, file.table):
        is_known = choice.name in ("object", "Array", "literal") or choice.name.lower() in KNOWN
        if choice.name.lower() in NOTHING or not is_known:
            return True
    return False


def _falls_through(node: n.Statement) -> bool:
    """Whether what follows a statement is reached for sure where nothing is thrown; no loop is looked into."""
    match node:
        case n.Block():
            return all(map(_falls_through, node.statements))
        case n.Return() | n.Throw() | n.Break() | n.Continue() | n.While() | n.For() | n.Try():
            return False
        case n.If():
            branches = [body for _, body in node.branches]
            return node.otherwise is None or any(map(_falls_through, (*branches, node.otherwise)))
        case n.ExpressionStatement() | n.Variable() | n.FunctionStatement() | n.ForEach() | n.Affordance():
            return True
    return False


# Methods and functions that add fields to an object, or ask whether it has one.
ADDING = frozenset({"assign", "defineProperty", "hasOwn", "hasOwnProperty"})
