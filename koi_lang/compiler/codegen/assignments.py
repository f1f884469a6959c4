"""Assignments, updates and destructuring."""

from __future__ import annotations

import ast

from koi_lang.compiler import nodes as n
from koi_lang.compiler.build import BuildError
from koi_lang.compiler.codegen import py_ast as py
from koi_lang.compiler.codegen.emitter import Emitter
from koi_lang.compiler.codegen.expressions import (
    CHOICES,
    OPERATORS,
    expression,
    is_harmless,
    key_of,
    make_compact,
    named_value,
    number_operand,
    operand,
)
from koi_lang.compiler.codegen.operations import emit_binary, emit_step
from koi_lang.compiler.kinds import ARRAY, NUMBER, UNKNOWN, Kind
from koi_lang.compiler.operators import LAZY
from koi_lang.compiler.scope import ScopeVariable
from koi_lang.compiler.walk import everything


@expression.register
def _assignment(node: n.Assignment, e: Emitter) -> ast.expr:
    """An assignment used for its value."""
    if isinstance(node.target, n.Pattern):
        raise BuildError(node.span, "a destructuring assignment has no value", "make it a statement of its own.")
    return _emit_assignment(node.target, node.operator, node.value, e, e.at(node.span))


def _emit_assignment(target: n.Expression, operator: str, value: n.Expression, e: Emitter, at: py.At) -> ast.expr:
    """Store a value, combined with the old one if there is an operator, and give the new value."""
    if isinstance(target, n.Name):
        if operator:
            new = _combine(operand(target, e), e.kinds.of(target), operator, value, e, at)
        else:
            new = stored_value(target, value, e)
        return make_compact(target, write_variable(e.variable(target), new, at), e, at)
    assert isinstance(target, (n.Member, n.Index))
    if not operator:
        return py.helper("put", [expression(target.object, e), key_of(target, e), expression(value, e)], at)
    holder, holder_again = _evaluate_once(target.object, e)
    key, key_again = _kept_key(target, e)
    old = py.helper("get", [holder, key], at)
    return _put((holder, key), (holder_again, key_again), _combine(old, UNKNOWN, operator, value, e, at), at)


def _put(first: tuple[ast.expr, ast.expr], again: tuple[ast.expr, ast.expr], value: ast.expr, at: py.At) -> ast.expr:
    """Store under a holder and key; where variables keep these, the value, which sets them, is evaluated first."""
    if any(isinstance(part, ast.NamedExpr) for part in first):
        return py.helper("put_last", [value, *again], at)
    return py.helper("put", [*again, value], at)


def _combine(
    old: ast.expr, kind: Kind, operator: str, value: n.Expression, e: Emitter, at: py.At, name: str = ""
) -> ast.expr:
    """The new value of `old operator= value`; a function takes the name of the variable, where it is one."""
    if operator not in LAZY:
        numbers = e.kinds.as_numbers(kind, value)
        new = operand(value, e) if numbers is None else number_operand(value, e)
        known = emit_binary(operator, old, new, numbers or (kind, e.kinds.of(value)), at)
        return known or py.helper(OPERATORS[operator], [old, new], at)
    if is_harmless(value, e):
        return py.helper(CHOICES[operator], [old, named_value(name, value, e)], at)
    made = e.fresh("value")
    test = py.helper("nullish" if operator == "??" else "truth", [py.walrus(made, old, at)], at)
    new, kept = named_value(name, value, e), py.load(made, at)
    return ast.IfExp(test, *((kept, new) if operator == "||" else (new, kept)), **at)


def _evaluate_once(node: n.Expression, e: Emitter) -> tuple[ast.expr, ast.expr]:
    """An expression to evaluate first and one for the same value again."""
    if isinstance(node, n.Name) or _is_state(node):
        return expression(node, e), expression(node, e)
    at, name = e.at(node.span), e.fresh("object")
    return py.walrus(name, expression(node, e), at), py.load(name, at)


def _is_state(node: n.Expression) -> bool:
    return isinstance(node, n.Member) and node.name == "state" and isinstance(node.object, n.Name)


def _kept_key(node: n.Member | n.Index, e: Emitter) -> tuple[ast.expr, ast.expr]:
    if isinstance(node, n.Member) or isinstance(node.index, (n.Literal, n.Text, n.Name)):
        return key_of(node, e), key_of(node, e)
    at, name = e.at(node.index.span), e.fresh("key")
    return py.walrus(name, key_of(node, e), at), py.load(name, at)


def write_variable(variable: ScopeVariable | None, value: ast.expr, at: py.At) -> ast.expr:
    """Store into a variable and give the value."""
    if variable is None:
        return value
    if variable.is_boxed:
        return py.call(py.attribute(py.load(variable.python, at), "put", at), [value], at)
    return py.walrus(variable.python, value, at)


@expression.register
def _update(node: n.Update, e: Emitter) -> ast.expr:
    """`++a` and `a++` used for their value: `(new value stored, old value)[1]`."""
    at = e.at(node.span)
    if node.prefix:
        return make_compact(node.target, _emit_update(node, e, at), e, at)
    old = e.fresh("value")
    pair = [_emit_update(node, e, at, old), py.load(old, at)]
    return ast.Subscript(ast.Tuple(pair, py.LOAD, **at), py.constant(1, at), py.LOAD, **at)


def _emit_update(node: n.Update, e: Emitter, at: py.At, old: str | None = None) -> ast.expr:
    """Store the new value and give it; `old` is a name to keep the old number under."""
    target = node.target
    if isinstance(target, n.Name):
        return write_variable(e.variable(target), _step_value(node, operand(target, e), e, at, old), at)
    assert isinstance(target, (n.Member, n.Index))
    holder, holder_again = _evaluate_once(target.object, e)
    key, key_again = _kept_key(target, e)
    new = _step_value(node, py.helper("get", [holder, key], at), e, at, old)
    return _put((holder, key), (holder_again, key_again), new, at)


def _step_value(node: n.Update, value: ast.expr, e: Emitter, at: py.At, old: str | None = None) -> ast.expr:
    """The number after or before a value, which is kept as a number under the name `old`."""
    kind = e.kinds.of(node.target)
    if old is not None and not kind.is_whole:
        value = py.helper("number", [value], at)
    if old is not None:
        value = py.walrus(old, value, at)
    known = emit_step(kind, value, up=node.operator == "++", at=at)
    return known or py.helper("increment" if node.operator == "++" else "decrement", [value], at)


# ---------------------------------------------------------------- statements


def assignment_statement(node: n.Assignment | n.Update, e: Emitter) -> list[ast.stmt]:
    """An assignment or update whose value nobody uses."""
    at = e.at(node.span)
    if isinstance(node, n.Assignment) and isinstance(node.target, n.Pattern):
        return bind(node.target, expression(node.value, e), e)
    if isinstance(node.target, n.Name):
        value = _new_value(node, node.target, e, at)
        return [store(e.variable(node.target), value, at)]
    if isinstance(node, n.Update):
        return [py.evaluate(_emit_update(node, e, at), at)]
    stored = _store_item(node, e, at) if isinstance(node.target, n.Index) and not node.operator else []
    return stored or [py.evaluate(expression(node, e), at)]


def _store_item(node: n.Assignment, e: Emitter, at: py.At) -> list[ast.stmt]:
    """`items[index] = value` of an array that has the item; nothing where computing the value may change the names."""
    target, value = node.target, node.value
    assert isinstance(target, n.Index)
    variables = [e.variable(target.object), e.variable(target.index)]
    if target.optional or any(each is None or each.is_boxed or each.captured or each in e.early for each in variables):
        return []
    if e.kinds.of(target.object).bits != ARRAY or not e.kinds.of(target.index).is_within(NUMBER):
        return []
    may_change = (n.Call, n.New, n.Send, n.Await, n.Yield, n.Assignment, n.Update, n.Function)
    if any(isinstance(each, may_change) for each in everything(value)):
        return []
    items, index = expression(target.object, e), operand(target.index, e)
    new = expression(value, e)
    kind, result = e.kinds.of(target.index), list[ast.stmt]()
    if not isinstance(new, (ast.Name, ast.Constant)):
        name = e.fresh("value")
        result.append(py.assign(name, new, at))
        new = py.load(name, at)
    length = py.helper("length", [items], at)
    if kind.is_index:
        test: ast.expr = ast.Compare(index, [ast.Lt()], [length], **at)
    else:
        test = ast.Compare(py.constant(0, at), [ast.LtE(), ast.Lt()], [index, length], **at)
    if not kind.is_whole:
        is_whole = ast.Compare(py.helper("class_of", [index], at), [ast.Is()], [py.koi("WholeNumber", at)], **at)
        test = ast.BoolOp(ast.And(), [is_whole, test], **at)
    stored = ast.Assign([ast.Subscript(items, index, py.STORE, **at)], new, **at)
    return [*result, ast.If(test, [stored], [py.evaluate(py.helper("put", [items, index, new], at), at)], **at)]


def _new_value(node: n.Assignment | n.Update, target: n.Name, e: Emitter, at: py.At) -> ast.expr:
    if isinstance(node, n.Update):
        return _step_value(node, operand(target, e), e, at)
    if node.operator:
        return _combine(operand(target, e), e.kinds.of(target), node.operator, node.value, e, at, target.name)
    return stored_value(target, node.value, e)


def stored_value(variable: n.Name | n.Binding, value: n.Expression, e: Emitter) -> ast.expr:
    """A value as a variable keeps it."""
    return operand(value, e) if e.kinds.of(variable).is_within(NUMBER) else named_value(variable.name, value, e)


def store(variable: ScopeVariable | None, value: ast.expr, at: py.At) -> ast.stmt:
    """A statement that stores a value into a variable."""
    if variable is None:
        return py.evaluate(value, at)
    return ast.Assign([target(variable, at)], value, **at)


def target(variable: ScopeVariable, at: py.At) -> ast.expr:
    """A variable as what is assigned to."""
    if variable.is_boxed:
        return ast.Attribute(py.load(variable.python, at), "value", py.STORE, **at)
    return py.store(variable.python, at)


def bind(pattern: n.Node, value: ast.expr, e: Emitter) -> list[ast.stmt]:
    """Statements that give the names of a pattern their parts of a value."""
    at = e.at(pattern.span)
    match pattern:
        case n.Binding() | n.Name():
            return [store(e.variable(pattern), value, at)]
        case n.Member() | n.Index():
            return [py.evaluate(py.helper("put", [expression(pattern.object, e), key_of(pattern, e), value], at), at)]
        case n.Hole():
            return []
        case n.ArrayPattern():
            parts = py.helper("unpack", [value, *_shape(pattern, at)], at)
            return _emit_unpacking(pattern, parts, e) or _bind_elements(pattern, parts, e)
        case n.ObjectPattern():
            return _bind_elements(pattern, py.helper("open_object", [value], at), e)
    raise AssertionError(f"not a pattern: {pattern!r}")


def _shape(pattern: n.ArrayPattern, at: py.At) -> list[ast.expr]:
    """How many items an array pattern takes, and whether the last one takes the rest."""
    has_rest = bool(pattern.elements) and pattern.elements[-1].rest
    count = py.constant(len(pattern.elements), at)
    return [count, py.constant(True, at)] if has_rest else [count]


def _emit_unpacking(pattern: n.ArrayPattern, parts: ast.expr, e: Emitter) -> list[ast.stmt]:
    """`a, b = parts` where all elements are variables; otherwise nothing."""
    at, targets = e.at(pattern.span), list[ast.expr]()
    for element in pattern.elements:
        variable = e.variable(element.pattern)
        if variable is None or element.default is not None:
            return []
        targets.append(target(variable, e.at(element.span)))
    if len(targets) == 1:
        return [ast.Assign(targets, ast.Subscript(parts, py.constant(0, at), py.LOAD, **at), **at)]
    return [ast.Assign([ast.Tuple(targets, py.STORE, **at)], parts, **at)] if targets else []


def _bind_elements(pattern: n.ArrayPattern | n.ObjectPattern, value: ast.expr, e: Emitter) -> list[ast.stmt]:
    at, whole = e.at(pattern.span), e.fresh("parts")
    result: list[ast.stmt] = [py.assign(whole, value, at)]
    keys: list[ast.expr] = []
    for index, element in enumerate(pattern.elements):
        at = e.at(element.span)
        if isinstance(pattern, n.ArrayPattern):
            part: ast.expr = ast.Subscript(py.load(whole, at), py.constant(index, at), py.LOAD, **at)
        elif element.rest:
            part = py.helper("without", [py.load(whole, at), ast.List(list(keys), py.LOAD, **at)], at)
        else:
            if isinstance(element.key, n.Expression):
                name = e.fresh("key")
                result.append(py.assign(name, py.helper("text", [expression(element.key, e)], at), at))
                keys.append(py.load(name, at))
            else:
                keys.append(py.constant(element.key, at))
            part = py.helper("get", [py.load(whole, at), keys[-1]], at)
        result += _bind_element(element, part, e)
    return result


def _bind_element(element: n.Element, part: ast.expr, e: Emitter) -> list[ast.stmt]:
    if element.default is None:
        return bind(element.pattern, part, e)
    at, name = e.at(element.span), e.fresh("part")
    test = _is_undefined(py.walrus(name, part, at), at)
    # A function of the default stands behind the parts that it may take along.
    waiting, e.pending = e.pending, []
    value = ast.IfExp(test, _default(element.pattern, element.default, e), py.load(name, at), **at)
    functions, e.pending = e.pending, waiting
    return [*functions, *bind(element.pattern, value, e)]


def _is_undefined(value: ast.expr, at: py.At) -> ast.expr:
    return ast.Compare(value, [ast.Is()], [py.koi("undefined", at)], **at)


def default_value(name: str, pattern: n.Pattern, default: n.Expression, e: Emitter) -> ast.stmt:
    """Give a parameter its default where the caller gave nothing."""
    at = e.at(default.span)
    test = _is_undefined(py.load(name, at), at)
    return ast.If(test, [py.assign(name, _default(pattern, default, e), at)], [], **at)


def _default(pattern: n.Pattern | n.Expression, default: n.Expression, e: Emitter) -> ast.expr:
    """A default; a function takes the name of the variable as its own."""
    return named_value(pattern.name, default, e) if isinstance(pattern, n.Binding) else expression(default, e)
