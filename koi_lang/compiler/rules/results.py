"""Declared types of values: results beside the types of their handlers, and what code reads and computes of values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.declared_types import choice_names, choices_of
from koi_lang.compiler.rules.kinds import WORDS, Kind, kind_of_type
from koi_lang.compiler.rules.members import OF_ALL
from koi_lang.compiler.rules.payloads import TypedPlace, value_problems
from koi_lang.compiler.rules.program import AnalysedProgram, handlers, variable_of
from koi_lang.compiler.rules.sends import targets
from koi_lang.compiler.rules.skills import find_calls
from koi_lang.compiler.rules.state import CHANGES, fields_of
from koi_lang.compiler.rules.table import Report, rule
from koi_lang.compiler.rules.tests import agent_of
from koi_lang.compiler.scope import ScopeVariable
from koi_lang.compiler.walk import Enclosing, everything
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


@rule("E0253", "warning")
def computed_text(file: Analysis, report: Report) -> None:
    """Code computes with a value that is declared as a text, a list or an object.

    `-`, `*`, `/`, `%` and `**` need numbers. A list or an object makes `NaN` of them, and so does a text that is no
    number. `+` joins texts, and is not meant here. A text that is written down has no `%` and `*` as in Python, either:
    values stand in a text in backticks, and `repeat` repeats one.

    Wrong:

        in handler(args: { price: string, pieces: number }): return args.price * args.pieces

    Right:

        in handler(args: { price: number, pieces: number }): return args.price * args.pieces
    """
    types, source = report.program.for_file(value_types, file), file.unit.source.text
    used: list[tuple[str, n.Expression, Enclosing]] = []
    for operation, around in file.index.of(n.Operation):
        operators, operands = operation.operators, operation.operands
        if len(operands) == 2 and (operators[0], getattr(operands[1], "value", None)) in CONVERSIONS:
            continue
        # In front of a later operator stands what was computed before it.
        is_format = operators[0] == "%" and isinstance(operands[0], n.Text)
        pairs = zip((operators[0], *operators), operands[:1] if is_format else operands, strict=False)
        used += [(operator, operand, around) for operator, operand in pairs]
    for assignment, around in file.index.of(n.Assignment):
        if not isinstance(assignment.target, n.Pattern):
            used += [(assignment.operator, each, around) for each in (assignment.target, assignment.value)]
    for operator, operand, around in used:
        kind = types.kind_of(operand, around) if operator in ARITHMETIC else None
        text = operand.value if isinstance(operand, n.Text) else ""
        if (operator == "%" and "%" in text) or (operator == "*" and text.strip() and not re.search(r"\d", text)):
            help = (
                "write it in backticks, with `${…}` for each value." if operator == "%" else "write `text.repeat(n)`."
            )
            report.add(operand.span, f"`{operator}` computes with numbers, and this is a text", help=help)
        elif kind in ("string", "array", "object"):
            text = " ".join(source[operand.span.start : operand.span.end].split())
            help = f"write `Number({text})`, or declare it as a number." if kind == "string" else "take a number of it."
            report.add(operand.span, f"`{text}` is {WORDS[kind]}, and `{operator}` computes with numbers", help=help)


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
ARITHMETIC = frozenset({"-", "*", "/", "%", "**"})
# What makes a number of a text on purpose: `text * 1`.
CONVERSIONS = frozenset({("-", 0), ("*", 1), ("/", 1)})
# Methods of a list that give some of its items in a list, one of them, and those whose function is given an item first.
SAME_ITEMS = frozenset({"filter", "slice", "toSorted", "toReversed", "concat", "sort", "reverse"})
ONE_ITEM = frozenset({"at", "find", "findLast", "pop", "shift"})
ITEM_FIRST = frozenset({"map", "filter", "forEach", "find", "findLast", "findIndex", "some", "every", "flatMap"})


@dataclass(slots=True, eq=False)
class ValueTypes:
    """The types that are declared for the values of one file.

    Attributes:
        given: of sends, and of calls of handlers and functions, promises of those that are waited for.
        variables: of those that keep their first value.
        known: of expressions that were asked for already.
    """

    file: Analysis
    given: dict[n.Node, n.Type]
    variables: dict[ScopeVariable, n.Type] = field(default_factory=dict)
    known: dict[n.Node, n.Type | None] = field(default_factory=dict)

    def type_of(self, node: n.Expression | None, around: Enclosing) -> n.Type | None:
        """The type of an expression as it is declared; None where it is not known."""
        if node is None or node in self.known:
            return None if node is None else self.known[node]
        found = self.known[node] = self._declared_type(node, around)
        return found

    def _declared_type(self, node: n.Expression, around: Enclosing) -> n.Type | None:
        match node:
            case n.Send() | n.Call() if node in self.given:
                return self.given[node]
            case n.Parenthesized():
                # A type that stands behind a value begins with it: `x as any`.
                is_cast = node.span.start == node.value.span.start
                return None if is_cast else self.type_of(node.value, around)
            case n.Await():
                waited = self.type_of(node.value, around)
                is_promise = waited is not None and waited.name == "Promise" and waited.arguments
                return waited.arguments[0] if waited is not None and is_promise else waited
            case n.Name():
                variable = variable_of(node, around, self.file)
                return None if variable is None else self.variables.get(variable)
            case n.Member(object=n.Member(name="state") as state) if (
                symbol := agent_of(state.object, around, self.file)
            ) is not None:
                declared = fields_of(symbol.node).get(node.name) if isinstance(symbol.node, n.Agent) else None
                return None if declared is None else declared.type
            case n.Member():
                return self.field_type(self.type_of(node.object, around), node.name)
            case n.Index():
                return self.item_type(self.type_of(node.object, around))
            case n.Call(callee=n.Member(name=name) as callee) if name in SAME_ITEMS | ONE_ITEM:
                outer = self.type_of(callee.object, around)
                item = self.item_type(outer)
                return item if name in ONE_ITEM or item is None else outer
        return None

    def fields_of(self, type: n.Type | None) -> dict[str, n.Type] | None:
        """The fields of an object, those of each kind of object of a union; None where it may be anything else."""
        options = self.options(type)
        if not all(option.name == "object" and option.fields and not option.is_open for option in options):
            return None
        return {field.name: field.type for option in options for field in option.fields} or None

    def kind_of(self, node: n.Expression, around: Enclosing) -> Kind | None:
        """The only kind of values that an expression may have where it has any; None where that is not known."""
        kinds = {kind_of_type(option) for option in self.options(self.type_of(node, around))}
        return kinds.pop() if len(kinds) == 1 else None

    def options(self, type: n.Type | None) -> list[n.Type]:
        """What a value of a type may be where it is there at all; none where that is not known, as for a promise."""
        if type is None or "Promise" in choice_names(type, self.file.table):
            return []
        return [each for each in choices_of(type, self.file.table) if each.name not in ("null", "undefined")]

    def field_type(self, type: n.Type | None, name: str) -> n.Type | None:
        """The type of a field of an object, where all kinds of object that it may be agree on it."""
        options = self.options(type) if self.fields_of(type) is not None else []
        found = {field.type.text: field.type for option in options for field in option.fields if field.name == name}
        return next(iter(found.values())) if len(found) == 1 else None

    def item_type(self, type: n.Type | None) -> n.Type | None:
        """The type of the items of a list."""
        options = self.options(type)
        is_list = len(options) == 1 and options[0].name == "Array" and options[0].arguments
        return options[0].arguments[0] if is_list else None

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


def value_types(file: Analysis, program: AnalysedProgram) -> ValueTypes:
    """The declared types of a file; asked for by `program.for_file`."""
    found = ValueTypes(file, dict(_types_of_calls(file, program)) | dict(_types_of_sends(file, program)))
    for pattern, value, around in sorted(given_patterns(file), key=lambda each: each[0].span.start):
        found.bind(pattern, type_given(pattern, value, around, found), around)
    # A variable may have been asked for before its type was known.
    found.known.clear()
    return found


def given_patterns(file: Analysis) -> Iterator[tuple[n.Node, n.Node, Enclosing]]:
    """Every pattern that is given a value where it stands, with what gives it: a type, a value, a loop, a method."""
    generics = {name for function, _ in file.index.of(n.Function) for name in function.generics}
    for parameter, around in file.index.of(n.Parameter):
        if parameter.type is not None and parameter.type.name not in generics:
            yield parameter.pattern, parameter.type, around
    for declarator, around in file.index.of(n.Declarator):
        if declarator.value is not None and declarator.type is None:
            yield declarator.pattern, declarator.value, around
        elif declarator.type is not None and declarator.type.name not in generics:
            yield declarator.pattern, declarator.type, around
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


def type_given(pattern: n.Node, value: n.Node, around: Enclosing, types: ValueTypes) -> n.Type | None:
    """The type of what a pattern is given."""
    if isinstance(value, n.Type):
        return value
    if isinstance(value, n.ForEach):
        return types.item_type(types.type_of(value.iterable, around))
    if isinstance(value, n.Call) and isinstance(value.callee, n.Member) and value.span.encloses(pattern.span):
        return types.item_type(types.type_of(value.callee.object, around))
    return types.type_of(value, around) if isinstance(value, n.Expression) else None


def _types_of_calls(file: Analysis, program: AnalysedProgram) -> Iterator[tuple[n.Node, n.Type]]:
    """Every call of a handler, also by `handle`, and of a function that is known, with the type that it declares."""
    for called in program.for_file(find_calls, file):
        function, is_waited = called.function, called.function.is_async or isinstance(called.call.callee, n.Member)
        if function.returns is not None and not function.generics and not function.is_generator:
            yield called.call, _promise_of(function.returns) if is_waited else function.returns
    for call, around in file.index.of(n.Call):
        if not isinstance(call.callee, n.Member):
            continue
        symbol, event = agent_of(call.callee.object, around, file), call.callee.name
        if event == "handle" and call.arguments and isinstance(call.arguments[0], n.Text):
            event = call.arguments[0].value
        if symbol is not None and isinstance(symbol.node, n.Agent):
            returns = [handler.returns for handler in handlers(symbol.node) if handler.name.name == event]
            if len(returns) == 1 and returns[0] is not None:
                yield call, _promise_of(returns[0])


def _promise_of(type: n.Type) -> n.Type:
    return type if type.name == "Promise" else n.Type(type.span, "Promise", f"Promise<{type.text}>", (type,))


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
