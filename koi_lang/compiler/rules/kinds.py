"""The types of values in code: as they are declared, written down, or given by what is called."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.declared_types import choice_names, choices_of
from koi_lang.compiler.literals import value_of_literal_type
from koi_lang.compiler.rules.members import INSTANCE_MEMBERS, OF_INSTANCES
from koi_lang.compiler.rules.program import AnalysedProgram, handlers, is_variable, variable_of
from koi_lang.compiler.rules.sends import targets
from koi_lang.compiler.rules.state import fields_of
from koi_lang.compiler.rules.tests import agent_of
from koi_lang.compiler.scope import ScopeVariable
from koi_lang.compiler.walk import Enclosing
from koi_lang.source import Span

Kind = Literal["string", "number", "boolean", "array", "object", "null"]
# The kind of value behind each type that says one; letter case does not count.
KINDS: dict[str, Kind] = {
    "string": "string", "number": "number", "int": "number", "boolean": "boolean", "bool": "boolean",
    "array": "array", "object": "object", "null": "null", "undefined": "null", "void": "null",
}  # fmt: skip
# How messages name a value of each kind.
WORDS = {
    "string": "a text", "number": "a number", "boolean": "`true` or `false`", "array": "a list", "object": "an object",
    "null": "`null`",
}  # fmt: skip
# Methods that give a list or a text, whatever has them.
LISTS = frozenset({"map", "filter", "flatMap", "split", "toSorted", "toReversed", "flat"})
TEXTS = frozenset(
    {"join", "trim", "toUpperCase", "toLowerCase", "padStart", "padEnd", "toFixed", "toString", "replace"}
)
STATICS: dict[tuple[str, str], Kind] = {
    ("Object", "keys"): "array", ("Object", "values"): "array", ("Object", "entries"): "array",
    ("Array", "from"): "array", ("Array", "of"): "array", ("JSON", "stringify"): "string",
}  # fmt: skip
# Values that are not changed where they are.
SCALARS = frozenset({"string", "number", "boolean"})
# Methods of a list that give some of its items in a list, one of them, and those whose function is given an item first.
SAME_ITEMS = frozenset({"filter", "slice", "toSorted", "toReversed", "concat", "sort", "reverse"})
ONE_ITEM = frozenset({"at", "find", "findLast", "pop", "shift"})
ITEM_FIRST = frozenset({"map", "filter", "forEach", "find", "findLast", "findIndex", "some", "every", "flatMap"})


@dataclass(frozen=True, slots=True)
class Called:
    """A call of a function whose declaration is known, with where its name stands."""

    call: n.Call
    function: n.Function
    arguments: Sequence[n.Expression]
    place: Span
    around: Enclosing


@dataclass(frozen=True, slots=True)
class SkillCall:
    """`callSkill(skill, …arguments)` of a known agent; `skills` are those that the agent uses, by name."""

    name: n.Text
    call: n.Call
    arguments: Sequence[n.Expression]
    agent: n.Agent
    skills: dict[str, n.Skill]
    around: Enclosing


def kind_of_type(type: n.Type | None) -> Kind | None:
    """The kind of all values of a type; None where there are several or any."""
    if type is not None and type.name == "literal":
        is_text, is_boolean = type.text[:1] in "\"'", type.text.lower() in ("true", "false")
        return "string" if is_text else "boolean" if is_boolean else "number"
    return None if type is None else KINDS.get(type.name.lower())


def kind_of_literal(value: n.Expression) -> Kind | None:
    """The kind of a value that is written down; None where only the running program knows, and for `null`."""
    match value:
        case n.Parenthesized():
            return kind_of_literal(value.value)
        case n.Text() | n.Template():
            return "string"
        case n.Array():
            return "array"
        case n.Object():
            return "object"
        case n.Prefix(operator="-" | "+", operand=n.Literal()):
            return "number"
        case n.Literal(value=bool()):
            return "boolean"
        case n.Literal(value=int() | float()):
            return "number"
    return None


@dataclass(slots=True, eq=False)
class ValueTypes:
    """The types of the values of one file; those that nobody has declared have no `text`, and no fields.

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
                outer = self.type_of(node.object, around)
                made = INSTANCE_MEMBERS.get((self.class_of(node.object, around) or "", node.name))
                return infer_type(node, made) if made else self.field_type(outer, node.name)
            case n.Index():
                return self.item_type(self.type_of(node.object, around))
            case n.Call(callee=n.Member(name=name) as callee) if name in SAME_ITEMS | ONE_ITEM:
                outer = self.type_of(callee.object, around)
                item = self.item_type(outer)
                if item is not None or name not in LISTS:
                    return item if name in ONE_ITEM or item is None else outer
        return self._written_type(node, around)

    def _written_type(self, node: n.Expression, around: Enclosing) -> n.Type | None:
        """The type of a literal, of what `new` makes, and of what methods give that are the same everywhere."""
        match node:
            case n.New(callee=n.Name(name=name) as made) | n.New(callee=n.Member(object=n.Name() as made, name=name)):
                name = name if made is node.callee else f"{made.name}.{name}"
                is_own = is_variable(made, around, self.file) or made.name in self.file.table.values
                return infer_type(node, name if name in OF_INSTANCES and not is_own else None)
            case n.Call(callee=n.Member(object=object, name=name), optional=False):
                if isinstance(object, n.Name) and not is_variable(object, around, self.file):
                    return infer_type(node, STATICS.get((object.name, name)))
                is_object = self.kind_of(object, around) == "object"
                kind = "array" if name in LISTS else "string" if name in TEXTS else None
                return infer_type(node, None if is_object else kind)
        return infer_type(node, kind_of_literal(node))

    def fields_of(self, type: n.Type | None) -> dict[str, n.Type] | None:
        """The fields of an object, those of each kind of object of a union; None where it may be anything else."""
        options = self.options(type)
        if not all(option.name == "object" and option.fields and not option.is_open for option in options):
            return None
        return {field.name: field.type for option in options for field in option.fields} or None

    def kind_of(self, node: n.Expression, around: Enclosing) -> Kind | None:
        """The only kind of values that an expression may have where it has any; None where that is not known."""
        return self.kind_of_options(self.type_of(node, around))

    def kind_of_options(self, type: n.Type | None) -> Kind | None:
        """The only kind of values that a type has besides `null`; None where there are several."""
        kinds = {kind_of_type(option) for option in self.options(type)}
        return kinds.pop() if len(kinds) == 1 else None

    def declared_kind(self, node: n.Expression, around: Enclosing) -> Kind | None:
        """The kind of an expression, where its type stands in an annotation."""
        type = self.type_of(node, around)
        return self.kind_of(node, around) if type is not None and type.text else None

    def is_number_at_first(self, node: n.Expression, around: Enclosing) -> bool:
        """Whether a value is a number, or a variable that is declared with one."""
        variable = variable_of(node, around, self.file)
        first = variable.writes[0] if variable is not None and variable.writes else None
        value = first.value if isinstance(first, n.Declarator) else None
        return "number" in (self.kind_of(node, around), None if value is None else kind_of_literal(value))

    def literals_of(self, node: n.Expression, around: Enclosing) -> list[object]:
        """The values that an expression may have where each of them is written down; none where any other may be."""
        options = self.options(self.type_of(node, around))
        is_choice = all(option.name == "literal" for option in options)
        return [value_of_literal_type(option.text) for option in options] if is_choice else []

    def class_of(self, node: n.Expression, around: Enclosing) -> str | None:
        """The class of the language that an expression is an instance of, such as `URL` for `new URL(…)`."""
        options = self.options(self.type_of(node, around))
        name = options[0].name if len(options) == 1 else ""
        return name if name in OF_INSTANCES and name not in self.file.table.values else None

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

    def bind(self, pattern: n.Node, type: n.Type | None, around: Enclosing, *, is_annotation: bool) -> None:
        """Have the variables of a pattern be of the types of what they are given.

        One that is given other values later has a type where an annotation says so, and what it has is no object.
        """
        match pattern:
            case n.Binding():
                variable = variable_of(pattern, around, self.file)
                lasts = is_annotation and kind_of_type(type) in SCALARS
                if variable is not None and type is not None and (lasts or not variable.reassigned):
                    self.variables[variable] = type
            case n.ObjectPattern():
                for element in pattern.elements:
                    if isinstance(element.key, str) and not element.rest:
                        field = self.field_type(type, element.key)
                        self.bind(element.pattern, field, around, is_annotation=is_annotation)
            case n.ArrayPattern():
                for element in pattern.elements:
                    item = type if element.rest else self.item_type(type)
                    self.bind(element.pattern, item, around, is_annotation=is_annotation)


def kind_of(node: n.Expression, around: Enclosing, file: Analysis, program: AnalysedProgram) -> Kind | None:
    """The only kind of values that an expression of a file may have where it has any."""
    return program.for_file(value_types, file).kind_of(node, around)


def infer_type(node: n.Node, name: str | None) -> n.Type | None:
    """A type that nobody has declared, by its name."""
    return None if name is None else n.Type(node.span, "Array" if name == "array" else name, "")


def value_types(file: Analysis, program: AnalysedProgram) -> ValueTypes:
    """The types of the values of a file; asked for by `program.for_file`."""
    found = ValueTypes(file, dict(_types_of_calls(file, program)) | dict(_types_of_sends(file, program)))
    for pattern, value, around in sorted(given_patterns(file), key=lambda each: each[0].span.start):
        type = type_given(pattern, value, around, found)
        found.bind(pattern, type, around, is_annotation=isinstance(value, n.Type))
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
            different = list({type.text: type for type in types}.values())
            text = " | ".join(type.text for type in different)
            one = different[0] if len(different) == 1 else n.Type(different[0].span, "union", text, tuple(different))
            yield send, n.Type(one.span, "Array", f"{one.text}[]", (one,)) if send.select == "all" else one


def skill_calls(file: Analysis, program: AnalysedProgram) -> Iterator[SkillCall]:
    """The calls of `callSkill` that name a skill, of agents that are known."""
    for call, around in file.index.of(n.Call):
        callee = call.callee
        if not isinstance(callee, n.Member) or callee.name != "callSkill" or not call.arguments:
            continue
        symbol, name = agent_of(callee.object, around, file), call.arguments[0]
        if symbol is None or not isinstance(symbol.node, n.Agent) or not isinstance(name, n.Text):
            continue
        home = program.home(symbol)
        uses = (item for item in symbol.node.items if isinstance(item, n.Uses) and item.kind == "skill")
        found = [home.table.find("skill", used.name) for item in uses for used in item.names]
        skills = {each.name: each.node for each in found if each is not None and isinstance(each.node, n.Skill)}
        yield SkillCall(name, call, call.arguments[1:], symbol.node, skills, around)


def find_calls(file: Analysis, program: AnalysedProgram) -> list[Called]:
    """Every call of a function of a skill by its name, and those with `callSkill` that name one."""
    return [*_calls_by_name(file, program), *_calls_by_skill(file, program)]


def _calls_by_name(file: Analysis, program: AnalysedProgram) -> Iterator[Called]:
    local = program.for_file(_functions, file)
    for call, around in file.index.of(n.Call):
        if isinstance(call.callee, n.Name) and not call.optional:
            function = _function(call.callee, around, file, local)
            if function is not None:
                yield Called(call, function, call.arguments, call.callee.span, around)


def _calls_by_skill(file: Analysis, program: AnalysedProgram) -> Iterator[Called]:
    for each in skill_calls(file, program):
        first = each.arguments[0] if each.arguments else None
        skill = each.skills.get(each.name.value)
        function = (
            exported_functions(skill).get(first.value) if skill is not None and isinstance(first, n.Text) else None
        )
        if function is not None and first is not None:
            yield Called(each.call, function, each.arguments[1:], first.span, each.around)


def _function(
    name: n.Name, around: Enclosing, file: Analysis, local: dict[ScopeVariable, n.Function]
) -> n.Function | None:
    """The function that a name in code stands for."""
    resolution = None if around.root is None else file.code.get(around.root)
    variable = None if resolution is None else resolution.variables.get(name)
    if variable is not None:
        return None if variable.reassigned else local.get(variable)
    symbol = file.table.find("function", name.name)
    return symbol.node if symbol is not None and isinstance(symbol.node, n.Function) else None


def _functions(file: Analysis, _: AnalysedProgram) -> dict[ScopeVariable, n.Function]:
    """The functions that are declared under their names, by the variables that they become."""
    found: dict[ScopeVariable, n.Function] = {}
    for function, around in file.index.of(n.Function):
        roots = [root for root in (around.root, function) if root is not None]
        for variables in (file.code[root].variables for root in roots if root in file.code):
            if function in variables:
                found[variables[function]] = function
    return found


def exported_functions(skill: n.Skill) -> dict[str, n.Function]:
    """The functions of a skill that others may call, by their names."""
    functions = (item for item in skill.items if isinstance(item, n.Function) and item.exported)
    return {function.name: function for function in functions if function.name is not None}
