"""What handlers give, beside the types that they declare for it, and what their callers read of that."""

from __future__ import annotations

from collections.abc import Iterator

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.declared_types import choices_of
from koi_lang.compiler.rules.members import OF_ALL
from koi_lang.compiler.rules.payloads import TypedPlace, value_problems
from koi_lang.compiler.rules.result_types import ResultTypes, given_patterns, result_types, type_given
from koi_lang.compiler.rules.table import Report, rule
from koi_lang.diagnostics import nearest
from koi_lang.source import Span

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
                report.add(statement.span, message, help="return a value, or add `| null` to the type.")
            continue
        place = TypedPlace("the result", handler.name.name, "result", statement.value.span, around)
        for span, message, help in value_problems(statement.value, handler.returns, place, file, report.program):
            report.add(span, message, others=[report.place(handler.returns.span, "the type of the result")], help=help)


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
        if handler.returns is None or _may_be_nothing(handler.returns, file) or _is_playbook(handler.body):
            continue
        if _falls_through(handler.body):
            message = f"`{handler.name.name}` gives `{handler.returns.one_line}`, and may end without a `return`"
            help = "return a value at the end, or add `| null` to the type."
            report.add(handler.name.span, message, help=help)


@rule("E0251", "warning")
def unknown_result_field(file: Analysis, report: Report) -> None:
    """A field is read that what a handler gives does not have.

    Where a handler declares the type of its result, its callers know its fields: those of `await Agent.event(…)`, of
    `handle`, and of a `send` whose members all declare it.

    Wrong:

        role Worker { can execute }
        agent Judge : Worker {
          on judge(args: Json): { verdict: string } { return { verdict: "fine" } }
          on start(args: Json) { const { verdit } = await this.judge(args)  console.log(verdit) }
        }
        run Judge.start({})

    Right:

        role Worker { can execute }
        agent Judge : Worker {
          on judge(args: Json): { verdict: string } { return { verdict: "fine" } }
          on start(args: Json) { const { verdict } = await this.judge(args)  console.log(verdict) }
        }
        run Judge.start({})
    """
    types = report.program.for_file(result_types, file)
    if not types.waited:
        return
    patterns = [each for pattern, _ in file.index.of(n.ObjectPattern) for each in pattern.elements]
    shorthands = {each.span.start for each in patterns if each.pattern.span.start == each.span.start}
    for span, name, known in sorted(_read_fields(file, types), key=lambda each: each[0]):
        near = nearest(name, known)
        help = f"did you mean `{near}`?" if near else f"it has {', '.join(f'`{field}`' for field in known)}."
        place = Span(span.start, span.start + len(name))
        fixes = report.replacement(place, f"{near}: {name}" if near and span.start in shorthands else near)
        report.add(span, f"what the handler gives has no field `{name}`", help=help, fixes=fixes)


def _read_fields(file: Analysis, types: ResultTypes) -> Iterator[tuple[Span, str, list[str]]]:
    """Every field that is read, and neither declared nor added here: where, its name, and the ones that there are."""
    given = {each.target.name for each, _ in file.index.of(n.Assignment) if isinstance(each.target, n.Member)}
    for member, around in file.index.of(n.Member):
        fields = types.fields_of(types.type_of(member.object, around)) if member.name not in OF_ALL else None
        if fields is not None and member.name not in fields and member.name not in given:
            yield member.name_span, member.name, list(fields)
    for pattern, value, around in given_patterns(file):
        yield from _unknown_in(pattern, type_given(pattern, value, around, types), types)


def _unknown_in(pattern: n.Node, type: n.Type | None, types: ResultTypes) -> Iterator[tuple[Span, str, list[str]]]:
    if isinstance(pattern, n.ArrayPattern):
        for element in pattern.elements:
            yield from _unknown_in(element.pattern, types.item_type(type), types)
    fields = types.fields_of(type)
    if fields is None or not isinstance(pattern, n.ObjectPattern):
        return
    for element in pattern.elements:
        if isinstance(element.key, str) and element.key not in fields:
            yield element.span, element.key, list(fields)
        elif isinstance(element.key, str):
            yield from _unknown_in(element.pattern, fields[element.key], types)


def _may_be_nothing(type: n.Type, file: Analysis) -> bool:
    """Whether a handler may end without a result; so it may where the type says nothing."""
    for choice in choices_of(type, file.table):
        is_known = choice.name in ("object", "Array", "literal") or choice.name.lower() in KNOWN
        if choice.name.lower() in NOTHING or not is_known:
            return True
    return False


def _is_playbook(body: n.Block) -> bool:
    return any(isinstance(statement, n.Playbook) for statement in body.statements)


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
