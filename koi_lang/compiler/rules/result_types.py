"""The types of what handlers give, as far as the source says who is asked: of sends, of calls, and of variables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.declared_types import choices_of, resolve_type
from koi_lang.compiler.rules.program import AnalysedProgram, handlers, variable_of
from koi_lang.compiler.rules.sends import targets
from koi_lang.compiler.rules.tests import agent_of
from koi_lang.compiler.scope import ScopeVariable
from koi_lang.compiler.walk import Enclosing

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
