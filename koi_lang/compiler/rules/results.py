"""What handlers give, beside the types that they declare for it, and what their callers read of that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.declared_types import choices_of, resolve_type
from koi_lang.compiler.rules.members import OF_ALL
from koi_lang.compiler.rules.payloads import TypedPlace, value_problems
from koi_lang.compiler.rules.program import AnalysedProgram, handlers, variable_of
from koi_lang.compiler.rules.sends import targets
from koi_lang.compiler.rules.table import Report, rule
from koi_lang.compiler.rules.tests import agent_of
from koi_lang.compiler.scope import ScopeVariable
from koi_lang.compiler.walk import Enclosing
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


# Methods of a list that give some of its items in a list, and those whose function is given an item first.
SAME_ITEMS = frozenset({"filter", "slice", "toSorted", "toReversed", "concat", "sort", "reverse"})
ITEM_FIRST = frozenset({"map", "filter", "forEach", "find", "findLast", "findIndex", "some", "every", "flatMap"})


@dataclass(slots=True, eq=False)
class ResultTypes:
    """The types that values of one file have because they come from handlers.

    Attributes:
        waited: of sends, and of calls of handlers that are waited for.
        variables: of those that keep their first value, by where they are declared.
    """

    file: Analysis
    waited: dict[n.Node, n.Type]
    variables: dict[ScopeVariable, n.Type] = field(default_factory=dict)

    def type_of(self, node: n.Expression | None, around: Enclosing) -> n.Type | None:
        """The type of an expression, without the name that is declared for it; None where it is not known."""
        found = self._declared_type(node, around)
        return None if found is None else resolve_type(found, self.file.table)

    def _declared_type(self, node: n.Expression | None, around: Enclosing) -> n.Type | None:
        match node:
            case n.Parenthesized():
                # A type that stands behind a value begins with it: `x as any`.
                is_cast = node.span.start == node.value.span.start
                return None if is_cast else self.type_of(node.value, around)
            case n.Await() | n.Send():
                return self.waited.get(node)
            case n.Name():
                variable = variable_of(node, around, self.file)
                return None if variable is None else self.variables.get(variable)
            case n.Member():
                return self.field_type(self.type_of(node.object, around), node.name)
            case n.Index():
                return self.item_type(self.type_of(node.object, around))
            case n.Call(callee=n.Member(name=name) as callee) if name in SAME_ITEMS:
                outer = self.type_of(callee.object, around)
                return outer if self.item_type(outer) is not None else None
        return None

    def fields_of(self, type: n.Type | None) -> dict[str, n.Type] | None:
        """The fields of an object, those of each kind of object of a union; None where it may be anything else."""
        if type is None:
            return None
        options = [choice for choice in choices_of(type, self.file.table) if choice.name != "null"]
        if not all(option.name == "object" and option.fields for option in options):
            return None
        return {field.name: field.type for option in options for field in option.fields} or None

    def field_type(self, type: n.Type | None, name: str) -> n.Type | None:
        """The type of a field of an object of one kind."""
        found = None if type is None else resolve_type(type, self.file.table)
        fields = self.fields_of(found) if found is not None and found.name == "object" else None
        return None if fields is None else fields.get(name)

    def item_type(self, type: n.Type | None) -> n.Type | None:
        """The type of the items of a list."""
        found = None if type is None else resolve_type(type, self.file.table)
        return found.arguments[0] if found is not None and found.name == "Array" and found.arguments else None

    def bind(self, pattern: n.Node, type: n.Type | None, around: Enclosing) -> None:
        """Have the variables of a pattern be of the types of what they are given."""
        match pattern:
            case n.Binding():
                variable = variable_of(pattern, around, self.file)
                if variable is not None and type is not None and not variable.reassigned:
                    self.variables[variable] = type
            case n.ObjectPattern():
                for element in pattern.elements:
                    if isinstance(element.key, str) and not element.rest:
                        self.bind(element.pattern, self.field_type(type, element.key), around)
            case n.ArrayPattern():
                for element in pattern.elements:
                    self.bind(element.pattern, type if element.rest else self.item_type(type), around)


def result_types(file: Analysis, program: AnalysedProgram) -> ResultTypes:
    """What a file has from handlers; asked for by `program.for_file`."""
    found = ResultTypes(file, dict(_types_of_calls(file)) | dict(_types_of_sends(file, program)))
    if found.waited:
        for pattern, value, around in sorted(given_patterns(file), key=lambda each: each[0].span.start):
            found.bind(pattern, type_given(pattern, value, around, found), around)
    return found


def given_patterns(file: Analysis) -> Iterator[tuple[n.Node, n.Node, Enclosing]]:
    """Every pattern that is given a value where it stands, with what gives it: a value, a loop, a call of a method."""
    for declarator, around in file.index.of(n.Declarator):
        if declarator.value is not None and declarator.type is None:
            yield declarator.pattern, declarator.value, around
    for loop, around in file.index.of(n.ForEach):
        if loop.over == "of":
            yield loop.pattern, loop, around
    functions = dict(file.index.of(n.Function))
    for call, _ in file.index.of(n.Call):
        function = call.arguments[0] if call.arguments else None
        is_given_items = isinstance(call.callee, n.Member) and call.callee.name in ITEM_FIRST
        if is_given_items and isinstance(function, n.Function) and function.parameters:
            first = function.parameters[0]
            if first.type is None:
                yield first.pattern, call, functions[function]


def type_given(pattern: n.Node, value: n.Node, around: Enclosing, types: ResultTypes) -> n.Type | None:
    """The type of what a pattern is given."""
    if isinstance(value, n.ForEach):
        return types.item_type(types.type_of(value.iterable, around))
    if isinstance(value, n.Call) and isinstance(value.callee, n.Member) and value.span.encloses(pattern.span):
        return types.item_type(types.type_of(value.callee.object, around))
    return types.type_of(value, around) if isinstance(value, n.Expression) else None


def _types_of_calls(file: Analysis) -> Iterator[tuple[n.Node, n.Type]]:
    """Every `await Agent.event(…)` and `await Agent.handle("event", …)` with the type that the handler declares."""
    for wait, around in file.index.of(n.Await):
        call = n.strip_parentheses(wait.value)
        if not isinstance(call, n.Call) or not isinstance(call.callee, n.Member):
            continue
        symbol, event = agent_of(call.callee.object, around, file), call.callee.name
        if event == "handle" and call.arguments and isinstance(call.arguments[0], n.Text):
            event = call.arguments[0].value
        if symbol is not None and isinstance(symbol.node, n.Agent):
            returns = [handler.returns for handler in handlers(symbol.node) if handler.name.name == event]
            if len(returns) == 1 and returns[0] is not None:
                yield wait, returns[0]


def _types_of_sends(file: Analysis, program: AnalysedProgram) -> Iterator[tuple[n.Node, n.Type]]:
    """Every `send` whose receivers all declare what they give."""
    for send, _, target in targets(file, program):
        agents = [
            agent for agent, _ in target.handling(send.event) if send.role is None or agent.role.name == send.role.name
        ]
        declared = [
            handler.returns for agent in agents for handler in handlers(agent) if handler.name.name == send.event
        ]
        types = [type for type in declared if type is not None]
        if types and len(types) == len(declared):
            one = _union(types)
            yield send, n.Type(one.span, "Array", f"{one.text}[]", (one,)) if send.select == "all" else one


def _union(types: Sequence[n.Type]) -> n.Type:
    different = list({type.text: type for type in types}.values())
    if len(different) == 1:
        return different[0]
    return n.Type(different[0].span, "union", " | ".join(type.text for type in different), tuple(different))
