"""Expressions to the kind of value that they always have, as far as the source says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.rules.members import INSTANCE_MEMBERS, OF_INSTANCES
from koi_lang.compiler.rules.program import AnalysedProgram, is_variable, variable_of
from koi_lang.compiler.rules.scopes import is_state
from koi_lang.compiler.scope import ScopeVariable
from koi_lang.compiler.walk import Enclosing

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
LISTS = frozenset({"map", "filter", "flatMap", "split", "toSorted", "toReversed", "flat"})
TEXTS = frozenset(
    {"join", "trim", "toUpperCase", "toLowerCase", "padStart", "padEnd", "toFixed", "toString", "replace"}
)
STATICS: dict[tuple[str, str], Kind] = {
    ("Object", "keys"): "array", ("Object", "values"): "array", ("Object", "entries"): "array",
    ("Array", "from"): "array", ("Array", "of"): "array", ("JSON", "stringify"): "string",
}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Declared:
    """What is written where a variable or a field of the state is declared."""

    type: n.Type | None
    value: n.Expression | None
    around: Enclosing


def kind_of_type(type: n.Type | None) -> Kind | None:
    """The only kind of values of a type; None where there are several or any."""
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


def kind_of(node: n.Expression, around: Enclosing, file: Analysis, program: AnalysedProgram) -> Kind | None:
    """The kind of an expression: of literals, results of methods, and what is declared with a type or never changed."""
    match node:
        case n.Parenthesized():
            return kind_of(node.value, around, file, program)
        case n.Name():
            declared = _variable(node, around, file, program)
            return None if declared is None else _kind_of_declared(declared, file, program)
        case n.Member():
            return _kind_of_member(node, around, file, program)
        case n.Call(callee=n.Member(object=object, name=name), optional=False):
            if isinstance(object, n.Name) and not is_variable(object, around, file):
                return STATICS.get((object.name, name))
            owner = kind_of(object, around, file, program)
            return None if owner == "object" else "array" if name in LISTS else "string" if name in TEXTS else None
    return kind_of_literal(node)


def _kind_of_declared(declared: Declared, file: Analysis, program: AnalysedProgram) -> Kind | None:
    if declared.type is not None or declared.value is None:
        return kind_of_type(declared.type)
    return kind_of(declared.value, declared.around, file, program)


def _kind_of_member(node: n.Member, around: Enclosing, file: Analysis, program: AnalysedProgram) -> Kind | None:
    """The kind of a field of the state, or of something with a type that names its fields."""
    if is_state(node.object) and around.agent is not None:
        return kind_of_type(_state_types(around.agent).get(node.name))
    return kind_of_type(type_of(node, around, file, program))


def class_of(node: n.Expression, around: Enclosing, file: Analysis, program: AnalysedProgram) -> str | None:
    """The class of the language that an expression is always an instance of, such as `URL` for `new URL(…)`."""
    match node:
        case n.Parenthesized():
            return class_of(node.value, around, file, program)
        case n.New(callee=n.Name() as made):
            is_own = is_variable(made, around, file) or made.name in file.table.values
            return made.name if made.name in OF_INSTANCES and not is_own else None
        case n.Name():
            declared = _variable(node, around, file, program)
            if declared is None or declared.type is not None or declared.value is None:
                return None
            return class_of(declared.value, declared.around, file, program)
        case n.Member(object=n.Name() | n.New(), optional=False):
            return INSTANCE_MEMBERS.get((class_of(node.object, around, file, program) or "", node.name))
    return None


def type_of(node: n.Expression, around: Enclosing, file: Analysis, program: AnalysedProgram) -> n.Type | None:
    """The type that is declared for a variable, or for a field of one."""
    if isinstance(node, n.Name):
        declared = _variable(node, around, file, program)
        return None if declared is None else declared.type
    if not isinstance(node, n.Member) or node.optional:
        return None
    outer = type_of(node.object, around, file, program)
    fields = () if outer is None or outer.name != "object" else outer.fields
    return next((field.type for field in fields if field.name == node.name and not field.optional), None)


def _state_types(agent: n.Agent) -> dict[str, n.Type | None]:
    return {field.name.name: field.type for item in agent.items if isinstance(item, n.State) for field in item.fields}


def _variable(name: n.Name, around: Enclosing, file: Analysis, program: AnalysedProgram) -> Declared | None:
    """Where a variable that keeps its first value, or has a type, is declared."""
    variable = variable_of(name, around, file)
    if variable is None:
        return None
    declared = program.for_file(_declarations, file).get(variable)
    if declared is None or declared.type is not None:
        return declared
    # What is declared later, as in a circle of two, is not looked at.
    is_before = declared.value is not None and declared.value.span.end <= name.span.start
    return declared if is_before and not variable.reassigned else None


def _declarations(file: Analysis, _: AnalysedProgram) -> dict[ScopeVariable, Declared]:
    """Every variable that is declared by its name alone."""
    found: dict[ScopeVariable, Declared] = {}
    for declarator, around in file.index.of(n.Declarator):
        _enter(found, declarator.pattern, Declared(declarator.type, declarator.value, around), file)
    for parameter, around in file.index.of(n.Parameter):
        if not parameter.rest and not parameter.optional:
            _enter(found, parameter.pattern, Declared(parameter.type, None, around), file)
    return found


def _enter(found: dict[ScopeVariable, Declared], node: n.Node, declared: Declared, file: Analysis) -> None:
    resolution = None if declared.around.root is None else file.code.get(declared.around.root)
    variable = None if resolution is None else resolution.variables.get(node)
    if variable is not None:
        found[variable] = declared
