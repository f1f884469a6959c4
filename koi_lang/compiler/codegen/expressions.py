"""Expressions of Koi to expressions of Python that compute the same with the prelude's operators."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import singledispatch
from typing import TypeAlias

from koi_lang.compiler import nodes as n
from koi_lang.compiler.codegen import py_ast as py
from koi_lang.compiler.codegen.emitter import Emitter
from koi_lang.compiler.codegen.operations import (
    emit_binary,
    emit_item,
    emit_length,
    emit_method,
    emit_template,
    find_called_function,
    find_floor_division,
    has_python_truth,
    is_of_known_kind,
)
from koi_lang.compiler.kinds import A_TEXT, COMPARISONS, LOOSE, NUMBER, binary
from koi_lang.compiler.operators import LAZY
from koi_lang.compiler.scope import ScopeVariable
from koi_lang.compiler.symbols import Symbol
from koi_lang.compiler.templates import COPYING
from koi_lang.source import Span

OPERATORS = {
    "+": "add", "-": "subtract", "*": "multiply", "/": "divide", "%": "remainder", "**": "power",
    "===": "same", "==": "equal", "<": "less", ">": "greater", "<=": "less_equal", ">=": "greater_equal",
    "instanceof": "instance_of", "in": "has", "&": "and_bits", "|": "or_bits", "^": "xor_bits",
    "<<": "shift_left", ">>": "shift_right", ">>>": "shift_unsigned",
}  # fmt: skip
CHOICES = {"||": "either", "&&": "both", "??": "coalesce"}
NEGATED = {"!==": "same", "!=": "equal"}
# The tests of the `?.` of a chain, and their places.
Guards: TypeAlias = list[tuple[ast.expr, py.At]]
# Chains of more operators than these are one call, since Python nests each operation in the next one.
LONG_CHAIN = 30


@singledispatch
def expression(node: n.Expression, e: Emitter) -> ast.expr:
    """The Python expression of a Koi expression."""
    raise AssertionError(f"no emitter for {node!r}")


def condition(node: n.Expression, e: Emitter) -> ast.expr:
    """A Python expression that is true when the Koi expression is truthy."""
    at = e.at(node.span)
    match node:
        case n.Parenthesized():
            return condition(node.value, e)
        case n.Prefix(operator="!"):
            return ast.UnaryOp(ast.Not(), condition(node.operand, e), **at)
        case n.Operation(operators=(("&&" | "||") as operator, *_)):
            kind = ast.And() if operator == "&&" else ast.Or()
            return ast.BoolOp(kind, [condition(operand, e) for operand in node.operands], **at)
        case n.Operation(operators=(operator, *_)) if operator in COMPARISONS:
            return expression(node, e)
    emitted = operand(node, e)
    return emitted if has_python_truth(e.kinds.of(node)) else py.helper("truth", [emitted], at)


# ---------------------------------------------------------------- names and literals


@expression.register
def _name(node: n.Name, e: Emitter) -> ast.expr:
    at = e.at(node.span)
    variable = e.variable(node)
    if variable is not None:
        return make_compact(node, read_variable(variable, e, at), e, at)
    local = e.locals.get(node.name)
    return local(at) if local is not None else outer_name(node.name, e, at)


def operand(node: n.Expression, e: Emitter) -> ast.expr:
    """A value as arithmetic takes it, and as variables of numbers keep it: floats in it may be whole."""
    match node:
        case n.Parenthesized():
            return operand(node.value, e)
        case n.Name() if (variable := e.variable(node)) is not None:
            return read_variable(variable, e, e.at(node.span))
        case n.Operation() if node.operators[0] not in LAZY:
            return _emit_operators(node, e)
    return expression(node, e)


def number_operand(node: n.Expression, e: Emitter) -> ast.expr:
    """A number as arithmetic takes it, NaN for an item that is not there."""
    item = n.strip_parentheses(node)
    if not isinstance(item, n.Index) or not e.kinds.is_number_item(item):
        return operand(node, e)
    at = e.at(item.span)
    emitted = emit_item(item, e, expression(item.object, e), operand(item.index, e), at, py.koi("NaN", at))
    assert emitted is not None
    return emitted


def make_compact(node: n.Expression, value: ast.expr, e: Emitter, at: py.At) -> ast.expr:
    """A number whose whole floats have become an `int`, as everything but arithmetic expects it."""
    kind = e.kinds.of(node)
    return py.helper("number", [value], at) if kind.bits & LOOSE and kind.is_within(NUMBER) else value


def read_variable(variable: ScopeVariable, e: Emitter, at: py.At) -> ast.expr:
    """The value of a variable; code that fails where it has none yet."""
    if any(variable is each for each in e.early):
        return py.helper("read_early", [py.constant(variable.name, at)], at)
    name = py.load(variable.python, at)
    return py.attribute(name, "value", at) if variable.is_boxed else name


def outer_name(name: str, e: Emitter, at: py.At) -> ast.expr:
    """What a name stands for that is no variable: a declaration, something of the agent or run, or a global."""
    symbol = e.names.table.values.get(name)
    if symbol is not None:
        reference = e.names.reference(symbol, at)
        if symbol.kind in ("agent", "team"):
            return py.helper("live", [reference], at)
        return py.attribute(reference, "text", at) if _is_text(symbol) else reference
    role = e.names.table.roles.get(name)
    if role is not None:
        return e.names.reference(role, at)
    if name in e.servers:
        return py.helper("server", [this(e, at), py.constant(name, at)], at)
    if name == n.BARE_YIELD:
        return ast.Yield(py.koi("undefined", at), **at)
    if name in ("this", n.OBJECT_THIS):
        return py.load("this" if name == "this" else "this_object", at)
    if name == "callAction":
        return py.attribute(py.load("this", at), "call_action", at)
    if name == "peers":
        return py.helper("peers", [this(e, at)], at)
    if name in ("registry", "output"):
        return py.helper("registry" if name == "registry" else "output", [], at)
    if name == "case" and e.in_eval:
        return py.helper("current_case", [], at)
    return py.koi(name, at)


def _is_text(symbol: Symbol) -> bool:
    """Whether code reads a declaration as a text: a prompt without parameters."""
    return symbol.kind == "prompt" and not getattr(symbol.node, "parameters", None)


def this(e: Emitter, at: py.At) -> ast.expr:
    """The agent whose handler is running; None in functions of skills."""
    return py.load("this", at) if e.has_agent else py.constant(None, at)


@expression.register
def _literal(node: n.Literal, e: Emitter) -> ast.expr:
    at = e.at(node.span)
    if isinstance(node.value, float) and node.value == float("inf"):
        return py.koi("Infinity", at)
    return py.constant(node.value, at)


@expression.register
def _text(node: n.Text, e: Emitter) -> ast.expr:
    return py.constant(node.value, e.at(node.span))


@expression.register
def _regex(node: n.Regex, e: Emitter) -> ast.expr:
    at = e.at(node.span)
    return py.helper("regex", [py.constant(node.pattern, at), py.constant(node.flags, at)], at)


@expression.register
def _mcp_address(node: n.McpAddress, e: Emitter) -> ast.expr:
    return py.constant(node.address, e.at(node.span))


@expression.register
def _template(node: n.Template, e: Emitter) -> ast.expr:
    at = e.at(node.span)
    parts = [py.constant(part, at) if isinstance(part, str) else operand(part, e) for part in node.parts]
    return emit_template(parts, [e.kinds.of(part) if isinstance(part, n.Node) else A_TEXT for part in node.parts], at)


@expression.register
def _emit_parentheses(node: n.Parenthesized, e: Emitter) -> ast.expr:
    return expression(node.value, e)


@expression.register
def _array(node: n.Array, e: Emitter) -> ast.expr:
    return ast.List(items(node.items, e), py.LOAD, **e.at(node.span))


def items(nodes: Sequence[n.Expression], e: Emitter) -> list[ast.expr]:
    """Arguments or array items, with `...x` spread."""
    result: list[ast.expr] = []
    for node in nodes:
        if isinstance(node, n.Spread):
            at = e.at(node.span)
            result.append(ast.Starred(py.helper("iterate", [expression(node.value, e)], at), py.LOAD, **at))
        else:
            result.append(expression(node, e))
    return result


@expression.register
def _object(node: n.Object, e: Emitter) -> ast.expr:
    keys: list[ast.expr | None] = []
    values: list[ast.expr] = []
    accessors: dict[str, ast.Call] = {}
    for property in node.properties:
        at = e.at(property.span)
        if isinstance(property, n.Spread):
            keys.append(None)
            values.append(py.helper("spread", [expression(property.value, e)], at))
            continue
        value: ast.expr | None = named_value(property.key, property.value, e)
        if property.accessor and value is not None:
            value = _accessor(property, value, accessors, at)
        if value is not None:
            keys.append(_key(property, e, at))
            values.append(value)
    made = ast.Dict(keys, values, **e.at(node.span))
    return py.helper("AccessorObject", [made], e.at(node.span)) if accessors else made


def _accessor(property: n.Property, function: ast.expr, known: dict[str, ast.Call], at: py.At) -> ast.expr | None:
    """What stands under the key of an accessor; None where the other half of a pair is there, which takes this one."""
    half = ast.keyword("getter" if property.accessor == "get" else "setter", function, **at)
    key = str(property.key)
    if key not in known:
        known[key] = py.call(py.koi("Accessor", at), [], at)
        known[key].keywords = [half]
        return known[key]
    known[key].keywords = [each for each in known[key].keywords if each.arg != half.arg] + [half]
    return None


def _key(property: n.Property, e: Emitter, at: py.At) -> ast.expr:
    if isinstance(property.key, str):
        return py.constant(property.key, at)
    return py.helper("text", [expression(property.key, e)], at)


def named_value(name: str | n.Expression, value: n.Expression, e: Emitter) -> ast.expr:
    """A value that gets a name; a function takes it as its own."""
    if isinstance(value, n.Function) and isinstance(name, str):
        return function_value(value, e, name, None)
    return expression(value, e)


@singledispatch
def function_value(node: n.Expression, e: Emitter, name: str, variable: ScopeVariable | None) -> ast.expr:
    """The Python expression of a function that takes a name, unless it has one; it may become a variable."""
    raise AssertionError(f"no emitter for {node!r}")


# ---------------------------------------------------------------- operators


@expression.register
def _prefix(node: n.Prefix, e: Emitter) -> ast.expr:
    at = e.at(node.span)
    match node.operator:
        case "!":
            return condition(node, e)
        case "-":
            operand = node.operand
            if isinstance(operand, n.Literal) and type(operand.value) in (int, float) and operand.value:
                return ast.UnaryOp(ast.USub(), expression(operand, e), **at)
            return py.helper("negate", [expression(operand, e)], at)
        case "+":
            return py.helper("number", [expression(node.operand, e)], at)
        case "typeof":
            return py.helper("type_of", [expression(node.operand, e)], at)
        case "~":
            return py.helper("invert_bits", [expression(node.operand, e)], at)
        case "void":
            pair = ast.Tuple([expression(node.operand, e), py.koi("undefined", at)], py.LOAD, **at)
            return ast.Subscript(pair, py.constant(1, at), py.LOAD, **at)
    return _delete(node, e, at)


def _delete(node: n.Prefix, e: Emitter, at: py.At) -> ast.expr:
    if not isinstance(node.operand, (n.Member, n.Index)):
        return py.constant(True, at)
    guards: Guards = []
    base = _base(node.operand.object, node.operand.optional, e, guards)
    return _guard(guards, py.helper("remove", [base, key_of(node.operand, e)], at), py.constant(True, at), at)


@expression.register
def _operation(node: n.Operation, e: Emitter) -> ast.expr:
    if node.operators[0] in LAZY:
        return _lazy(node.operators[0], list(node.operands), e)
    return make_compact(node, _emit_operators(node, e), e, e.at(node.span))


def _emit_operators(node: n.Operation, e: Emitter) -> ast.expr:
    first, right = node.operands[:2]
    start, index = node.span.start, 0
    numbers = e.kinds.as_numbers(first, right)
    take = operand if numbers is None else number_operand
    result, kind = take(first, e), e.kinds.of(first) if numbers is None else numbers[0]
    while index < len(node.operators):
        operator, right = node.operators[index], node.operands[index + 1]
        at = e.at(Span(start, right.span.end))
        numbers = e.kinds.as_numbers(kind, right)
        kinds = numbers or (kind, e.kinds.of(right))
        emitted = (operand if numbers is None else number_operand)(right, e)
        is_long = len(node.operators) > LONG_CHAIN
        known = None if is_long else emit_binary(operator, result, emitted, kinds, at)
        count = _run(node.operators, index) if is_long and operator == "+" else 1
        operands = node.operands[index + 1 : index + 1 + count]
        if known is None:
            at = e.at(Span(start, operands[-1].span.end))
            known = _binary(operator, [result, emitted, *(operand(each, e) for each in operands[1:])], at)
        for each in operands:
            kind = binary(operator, kind, (e.kinds.as_numbers(kind, each) or (kind, e.kinds.of(each)))[1])
        result, index = known, index + count
    return result


def _run(operators: Sequence[str], index: int) -> int:
    """How many `+` follow each other from an index on."""
    count = 0
    while index + count < len(operators) and operators[index + count] == "+":
        count += 1
    return count


def _binary(operator: str, operands: list[ast.expr], at: py.At) -> ast.expr:
    if operator in NEGATED:
        return ast.UnaryOp(ast.Not(), py.helper(NEGATED[operator], operands, at), **at)
    return py.helper(OPERATORS[operator], operands, at)


def _lazy(operator: str, operands: list[n.Expression], e: Emitter) -> ast.expr:
    """`a && b && c` so that each operand is evaluated at most once; the last ones at once if nobody can tell."""
    if operator != "??" and all(map(_is_boolean, operands[:-1])):
        return _boolean(operator, operands, e)
    harmless = 0
    while harmless < len(operands) - 1 and is_harmless(operands[-harmless - 1], e):
        harmless += 1
    result = _conditionals(operator, operands[: len(operands) - harmless], e)
    for operand in operands[len(operands) - harmless :]:
        at = e.at(Span(operands[0].span.start, operand.span.end))
        result = py.helper(CHOICES[operator], [result, expression(operand, e)], at)
    return result


def _boolean(operator: str, operands: list[n.Expression], e: Emitter) -> ast.expr:
    """`and` and `or`, which do the same for the booleans of Python."""
    at = e.at(Span(operands[0].span.start, operands[-1].span.end))
    return ast.BoolOp(ast.And() if operator == "&&" else ast.Or(), [expression(each, e) for each in operands], **at)


def _is_boolean(node: n.Expression) -> bool:
    """Whether the value is a boolean whatever happens."""
    match node:
        case n.Parenthesized():
            return _is_boolean(node.value)
        case n.Operation(operators=(("&&" | "||"), *_)):
            return all(map(_is_boolean, node.operands))
        case n.Operation():
            return node.operators[-1] in COMPARISONS
    return isinstance(node, n.Prefix) and node.operator == "!"


def is_harmless(node: n.Expression, e: Emitter) -> bool:
    """Whether evaluating an expression in vain has no effect: literals, variables that have a value, lists of these."""
    match node:
        case n.Literal() | n.Text():
            return True
        case n.Name():
            variable = e.variable(node)
            return variable is not None and variable.function is e.function and node.span.start >= variable.ready
        case n.Array():
            return all(is_harmless(item, e) for item in node.items)
        case n.Object():
            return not node.properties
    return False


def _conditionals(operator: str, operands: list[n.Expression], e: Emitter) -> ast.expr:
    """The same as conditional expressions."""
    result = expression(operands[-1], e)
    for operand in reversed(operands[:-1]):
        at = e.at(operand.span)
        first, again = _once(operand, e, at)
        if operator != "??" and e.kinds.of(operand).is_within(NUMBER):  # NaN is false, and equals nothing
            is_number = ast.Compare(again, [ast.Eq()], [again], **at)
            test: ast.expr = ast.BoolOp(ast.And(), [first, is_number], **at)
        else:
            test = py.helper("nullish" if operator == "??" else "truth", [first], at)
        then, other = (again, result) if operator == "||" else (result, again)
        result = ast.IfExp(test, then, other, **at)
    return result


def _once(node: n.Expression, e: Emitter, at: py.At) -> tuple[ast.expr, ast.expr]:
    """An expression to evaluate first, and one for its value afterwards."""
    if isinstance(node, n.Name) and e.variable(node) is not None:
        return expression(node, e), expression(node, e)
    name = e.fresh("value")
    return py.walrus(name, expression(node, e), at), py.load(name, at)


@expression.register
def _sequence(node: n.Sequence, e: Emitter) -> ast.expr:
    """The last of several values, all of which are computed."""
    at = e.at(node.span)
    values = ast.Tuple([expression(each, e) for each in node.expressions], py.LOAD, **at)
    return ast.Subscript(values, py.constant(-1, at), py.LOAD, **at)


@expression.register
def _conditional(node: n.Conditional, e: Emitter) -> ast.expr:
    then, otherwise = expression(node.then, e), expression(node.otherwise, e)
    return ast.IfExp(condition(node.condition, e), then, otherwise, **e.at(node.span))


# ---------------------------------------------------------------- members and calls


def key_of(node: n.Member | n.Index, e: Emitter) -> ast.expr:
    """The key of a member access."""
    if isinstance(node, n.Member):
        return py.constant(node.name, e.at(node.name_span))
    return expression(node.index, e)


def _method_key(callee: n.Member | n.Index, e: Emitter) -> ast.expr:
    """The key of a call; a text sorts and reverses a copy, since it is made again before each request."""
    name = callee.name if isinstance(callee, n.Member) else getattr(callee.index, "value", None)
    return py.constant(COPYING[name], e.at(callee.span)) if e.lenient and name in COPYING else key_of(callee, e)


def is_key_harmless(node: n.Member | n.Index, e: Emitter) -> bool:
    """Whether evaluating the key of a member access in vain has no effect."""
    return isinstance(node, n.Member) or is_harmless(node.index, e)


@expression.register(n.Member)
@expression.register(n.Index)
@expression.register(n.Call)
def _chain(node: n.Member | n.Index | n.Call, e: Emitter) -> ast.expr:
    return whole_chain(node, e, awaited=False)


def whole_chain(node: n.Expression, e: Emitter, *, awaited: bool) -> ast.expr:
    """A chain of links; where one of them is `?.` the whole chain is undefined if its object is missing.

    `awaited` calls return their coroutine instead of starting it.
    """
    if isinstance(node, (n.Member, n.Index)) and node.optional and is_key_harmless(node, e):
        return py.helper("peek", [whole_chain(node.object, e, awaited=False), key_of(node, e)], e.at(node.span))
    guards: Guards = []
    result, at = _link(node, e, guards, awaited=awaited), e.at(node.span)
    return _guard(guards, result, py.koi("undefined", at), at)


def _guard(guards: Guards, result: ast.expr, otherwise: ast.expr, at: py.At) -> ast.expr:
    """The result of a chain, and another value where one of its guarded objects is missing."""
    tests: list[ast.expr] = [py.helper("nullish", [value], at) for value, at in guards]
    if not tests:
        return result
    missing = ast.BoolOp(ast.Or(), tests, **at) if len(tests) > 1 else tests[0]
    return ast.IfExp(missing, otherwise, result, **at)


def _link(node: n.Expression, e: Emitter, guards: Guards, *, awaited: bool = False) -> ast.expr:
    """One link with what stands before it in the same chain, to which it adds its test."""
    at = e.at(node.span)
    match node:
        case n.Member(object=n.Name(name="this"), name=("state" | "name") as name) if e.has_agent:
            return py.attribute(py.load("this", at), name, at)
        case n.Member() | n.Index():
            base = _base(node.object, node.optional, e, guards)
            known = None if node.optional else _known_member(node, e, base, at)
            return known or py.helper("peek" if e.lenient else "get", [base, key_of(node, e)], at)
        case n.Call():
            return _call(node, e, guards, awaited)
    return expression(node, e)


def _known_member(node: n.Member | n.Index, e: Emitter, base: ast.expr, at: py.At) -> ast.expr | None:
    """A member of a text or array as Python has it."""
    if isinstance(node, n.Index):
        return emit_item(node, e, base, expression(node.index, e), at)
    return emit_length(node, e.kinds.of(node.object), base, at) if node.name in ("length", "size") else None


def _base(node: n.Expression, optional: bool, e: Emitter, guards: Guards) -> ast.expr:
    """The object of a link; behind `?.` it is kept in a variable and tested first."""
    value = _link(node, e, guards)
    if not optional:
        return value
    at = e.at(node.span)
    if isinstance(node, n.Name) and is_harmless(node, e):
        guards.append((value, at))
        return expression(node, e)
    name = e.fresh("value")
    guards.append((py.walrus(name, value, at), at))
    return py.load(name, at)


def _call(node: n.Call, e: Emitter, guards: Guards, awaited: bool) -> ast.expr:
    at, callee = e.at(node.span), node.callee
    agent = _agent_of_handler(callee, e) if e.in_test else None
    if agent is not None:
        return _handler_call(node, agent, e, awaited)
    if isinstance(callee, n.Name) and callee.name == "peers" and e.variable(callee) is None and node.arguments:
        return py.helper("peers", [this(e, at), *items(node.arguments, e)], at)
    if (division := find_floor_division(node, e)) is not None:
        left, right = (operand(each, e) for each in division)
        return ast.BinOp(left, ast.FloorDiv(), right, **at)
    if (
        isinstance(callee, n.Member)
        and not node.optional
        and not callee.optional
        and is_of_known_kind(callee.object, e)
    ):
        owner, arguments = _base(callee.object, False, e, guards), items(node.arguments, e)
        known = emit_method(node, e, owner, arguments, at)
        target = [owner, _method_key(callee, e)]
        return known or py.helper("apply_member" if awaited else "invoke", [*target, *arguments], at)
    if isinstance(callee, (n.Member, n.Index)) and not node.optional:
        target = [_base(callee.object, callee.optional, e, guards), _method_key(callee, e)]
        return py.helper("apply_member" if awaited else "invoke", [*target, *items(node.arguments, e)], at)
    if (variable := find_called_function(node, e)) is not None:
        return py.call(read_variable(variable, e, at), items(node.arguments, e), at)
    if isinstance(callee, (n.Member, n.Index)) and not e.lenient:
        owner = _base(callee.object, callee.optional, e, guards)
        again = e.fresh("value")
        found = py.helper("get", [py.walrus(again, owner, at), key_of(callee, e)], at)
        method = e.fresh("method")
        guards.append((py.walrus(method, found, at), at))
        kept: list[ast.expr] = [py.load(again, at), py.load(method, at)]
        return py.helper("apply_to" if awaited else "invoke_found", [*kept, *items(node.arguments, e)], at)
    function = _base(callee, node.optional, e, guards)
    return py.helper("apply" if awaited else "call", [function, *items(node.arguments, e)], at)


def _agent_of_handler(callee: n.Expression, e: Emitter) -> Symbol | None:
    """The agent of `Agent.handler`, where both exist."""
    if not isinstance(callee, n.Member) or not isinstance(callee.object, n.Name) or e.variable(callee.object):
        return None
    agent = e.names.table.find("agent", callee.object.name)
    return agent if agent is not None and callee.name in handlers_of(agent.node) else None


def _handler_call(node: n.Call, agent: Symbol, e: Emitter, awaited: bool) -> ast.expr:
    """`Agent.handler(payload)` in a test, as `run` would call it."""
    at, callee = e.at(node.span), node.callee
    assert isinstance(callee, n.Member)
    payload = _payload(node, e, at) if node.arguments else no_payload(agent.node, callee.name, at)
    target = [e.names.reference(agent, at), py.constant(callee.name, at), payload]
    return py.helper("run", target, at) if awaited else py.helper("call", [py.koi("run", at), *target], at)


def no_payload(agent: n.Node, event: str, at: py.At) -> ast.expr:
    """What a call without an argument passes on: an empty object, unless the handler has a default of its own."""
    handler = handlers_of(agent).get(event)
    has_default = handler is not None and handler.parameters and handler.parameters[0].default is not None
    return py.koi("undefined", at) if has_default else ast.Dict([], [], **at)


def handlers_of(agent: n.Node) -> dict[str, n.Handler]:
    """The handlers of an agent by the names of their events."""
    parts = agent.items if isinstance(agent, n.Agent) else ()
    return {part.name.name: part for part in parts if isinstance(part, n.Handler) and not part.guard}


@expression.register
def _new(node: n.New, e: Emitter) -> ast.expr:
    return py.helper("new", [expression(node.callee, e), *items(node.arguments, e)], e.at(node.span))


@expression.register
def _await(node: n.Await, e: Emitter) -> ast.expr:
    at, value = e.at(node.span), n.strip_parentheses(node.value)
    prompt = _prompt_text(value, e)
    if prompt is not None:
        return ast.Await(py.call(py.attribute(prompt, "wait_for_text", at), [], at), **at)
    emitted = whole_chain(value, e, awaited=True) if isinstance(value, n.Call) else expression(value, e)
    return ast.Await(py.helper("settle", [emitted], at), **at)


def _prompt_text(node: n.Expression, e: Emitter) -> ast.expr | None:
    """The prompt that a name stands for whose text code waits for."""
    if not isinstance(node, n.Name) or e.variable(node) is not None or node.name in e.locals:
        return None
    symbol = e.names.table.values.get(node.name)
    return e.names.reference(symbol, e.at(node.span)) if symbol is not None and _is_text(symbol) else None


@expression.register
def _yield(node: n.Yield, e: Emitter) -> ast.expr:
    """`yield`; what a generator that may wait yields has been waited for."""
    at = e.at(node.span)
    assert node.value is not None
    value = expression(node.value, e)
    if node.delegates:
        return (
            _delegate(value, e, at) if e.is_async_generator else ast.YieldFrom(py.helper("delegate", [value], at), **at)
        )
    return ast.Yield(ast.Await(py.helper("settle", [value], at), **at) if e.is_async_generator else value, **at)


def _delegate(value: ast.expr, e: Emitter, at: py.At) -> ast.expr:
    """`yield*` of a generator that may wait, as a loop before the statement; gives the value of the whole."""
    name, error = e.fresh("inner"), e.fresh("error")

    def part(attribute: str, context: ast.expr_context) -> ast.Attribute:
        return ast.Attribute(py.load(name, at), attribute, context, **at)

    step = ast.Assign([part("sent", py.STORE)], ast.Yield(part("value", py.LOAD), **at), **at)
    kinds = ast.Tuple([py.load("Exception", at), py.koi("GeneratorLeftError", at)], py.LOAD, **at)
    kept = ast.Assign([part("error", py.STORE)], py.load(error, at), **at)
    body = ast.Try([step], [ast.ExceptHandler(kinds, error, [kept], **at)], [], [], **at)
    going = ast.Await(py.call(part("advance", py.LOAD), [], at), **at)
    e.pending += [
        py.assign(name, py.helper("AsyncDelegate", [value], at), at),
        ast.While(going, [body], [], **at),
    ]
    return part("value", py.LOAD)


@expression.register
def _send(node: n.Send, e: Emitter) -> ast.expr:
    at = e.at(node.span)
    return ast.Await(_emit_send(node, py.koi("send", at), e), **at)


@expression.register
def _start(node: n.Start, e: Emitter) -> ast.expr:
    return _emit_send(node.sent, py.koi("start", e.at(node.span)), e)


def _emit_send(node: n.Send, function: ast.expr, e: Emitter) -> ast.expr:
    at = e.at(node.span)
    role = None if node.role is None else e.names.table.find("role", node.role.name)
    bounds = [_role(name, e) for name in node.bounds]
    asked = py.call(
        py.koi("query", at),
        [expression(node.base, e), py.constant(node.event, at)],
        at,
        role=None if role is None else e.names.reference(role, at),
        select=py.constant(node.select, at) if node.select else None,
        bounds=ast.Tuple(bounds, py.LOAD, **at) if bounds else None,
    )
    timeout_s = None if node.timeout_s is None else py.constant(node.timeout_s, at)
    return py.call(function, [this(e, at), asked, _payload(node, e, at)], at, timeout_s=timeout_s)


def _role(name: n.Name, e: Emitter) -> ast.expr:
    """A role by its name; rules refuse what no role is called."""
    found = e.names.table.find("role", name.name)
    assert found is not None, f"no role `{name.name}`"
    return e.names.reference(found, e.at(name.span))


def _payload(node: n.Send | n.Call, e: Emitter, at: py.At) -> ast.expr:
    """What is sent: nothing is an empty object, several arguments are a list."""
    if not node.arguments:
        return ast.Dict([], [], **at)
    if len(node.arguments) == 1 and not isinstance(node.arguments[0], n.Spread):
        return expression(node.arguments[0], e)
    return ast.List(items(node.arguments, e), py.LOAD, **at)
