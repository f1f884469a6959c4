"""Expressions that arrive while a program runs, read with the Koi grammar and computed over a whitelist.

This is the only way text of a model or payload is ever given a meaning: operators, members of plain values, and the
functions listed here, arrow functions of one expression among their arguments. Nothing can be assigned, awaited or
reached outside of the names that are given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import singledispatchmethod
from typing import Any

from koi_lang.compiler import nodes as n
from koi_lang.compiler.build import RESERVED
from koi_lang.compiler.operators import LAZY
from koi_lang.compiler.parser import parse_expression
from koi_lang.errors import KoiError
from koi_lang.js import call_helpers, operators
from koi_lang.js.errors import ErrorValue
from koi_lang.js.globals import GLOBALS
from koi_lang.js.undefined import undefined
from koi_lang.runtime.guards.size import weight
from koi_lang.source import Source, Span

MAX_CHARS = 2000
MAX_SIZE = 1_000_000
# Calls of arrow functions in one expression; so many take a second or so.
MAX_CALLS = 100_000
QUOTED = r""""(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'"""
TEXTS = re.compile(rf"{QUOTED}|`(?:\\.|[^`\\])*`")
FORBIDDEN = frozenset({"constructor", "prototype"})
BINARY: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operators.add, "-": operators.subtract, "*": operators.multiply, "/": operators.divide,
    "%": operators.remainder, "===": operators.same, "==": operators.equal, "<": operators.less,
    ">": operators.greater, "<=": operators.less_equal, ">=": operators.greater_equal, "in": operators.has,
    "!==": lambda a, b: not operators.same(a, b), "!=": lambda a, b: not operators.equal(a, b),
}  # fmt: skip
FUNCTIONS = frozenset({"String", "Number", "Boolean", "parseInt", "parseFloat", "isNaN", "isFinite"})
STATIC = {
    "JSON": frozenset({"stringify", "parse"}),
    "Math": frozenset({"floor", "ceil", "round", "max", "min", "abs", "sqrt", "trunc", "sign", "PI"}),
    "Object": frozenset({"keys", "values", "entries"}),
    "Array": frozenset({"isArray"}),
}
METHODS = frozenset(
    "includes startsWith endsWith indexOf toLowerCase toUpperCase trim slice substring charAt join "
    "split toFixed toString at".split()
)
# Methods of lists that call an arrow function; lists are sorted as copies.
CALLING = frozenset("map filter find findIndex some every reduce flatMap sort toSorted".split())
CONSTANTS = {"undefined": undefined, "NaN": float("nan"), "Infinity": float("inf")}


class ExpressionError(KoiError):
    """A text is no expression, or one that is not allowed here."""


def evaluate(text: str, names: Mapping[str, Any]) -> Any:
    """The value of an expression over some names. Raises ExpressionError."""
    if len(text) > MAX_CHARS:
        raise ExpressionError(f"an expression has at most {MAX_CHARS} characters, this one has {len(text)}")
    spelled = text.strip()
    without_texts = TEXTS.sub("", spelled)
    if "//" in without_texts or "/*" in without_texts:  # a part would count for nothing: `10 // 3` is 10 and a comment
        message = f"`{spelled}` holds a comment, and what stands in it would not count"
        raise ExpressionError(message, help="Write `Math.floor(a / b)` to divide whole numbers.")
    readable, spelt = _without_reserved(spelled, names)
    try:
        expression, problem = parse_expression(Source("expression", readable), Span(0, len(readable)))
        if expression is None:
            raise ExpressionError(f"`{spelled}` is no expression: {problem.message if problem else ''}")
        return _Evaluator(spelt, names).value(expression)
    except RecursionError:
        raise ExpressionError("the expression is nested too deeply") from None
    except (ErrorValue, ArithmeticError) as error:
        raise ExpressionError(f"`{spelled}` cannot be computed: {getattr(error, 'message', error)}") from error


def _without_reserved(text: str, names: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The text with names that are reserved words in programs, such as `state`, spelt so that they can be read."""
    reserved = [name for name in names if name in RESERVED]
    if not reserved:
        return text, names
    spelt = {name: f"{name}_" for name in reserved}
    while any(other in names for other in spelt.values()):
        spelt = {name: f"{other}_" for name, other in spelt.items()}
    words = re.compile(rf"{QUOTED}|(?<![\w$.])(?:{'|'.join(map(re.escape, reserved))})(?![\w$]|\s*:)")
    replaced = words.sub(lambda found: spelt.get(found[0], found[0]), text)
    return replaced, {**names, **{other: names[name] for name, other in spelt.items()}}


def _check_size(value: Any) -> Any:
    """A value that is not too large to go on with. Raises ExpressionError."""
    _require_room(len(value) if isinstance(value, (str, list)) else 0)
    return value


def _require_room(size: int) -> None:
    if size > MAX_SIZE:
        raise ExpressionError(f"the expression becomes larger than {MAX_SIZE} characters or items")


def _light(value: Any) -> Any:
    """A list or object that was put together and is not too large with all it holds. Raises ExpressionError."""
    _require_room(weight(value, MAX_SIZE))
    return value


class _Evaluator:
    def __init__(self, names: Mapping[str, Any], shown: Iterable[str]) -> None:
        self.names = names
        self.told = shown
        self._calls = self._made = 0

    @singledispatchmethod
    def value(self, node: n.Expression) -> Any:
        raise ExpressionError(f"a {type(node).__name__.lower()} is not allowed in an expression")

    @value.register
    def _name(self, node: n.Name) -> Any:
        if node.name in self.names:
            return self.names[node.name]
        if node.name in CONSTANTS:
            return CONSTANTS[node.name]
        known = ", ".join(f"`{name}`" for name in list(self.told)[:12])
        raise ExpressionError(f"there is no `{node.name}` here", help=f"known names are {known}.")

    @value.register(n.Literal)
    @value.register(n.Text)
    def _constant(self, node: n.Literal | n.Text) -> Any:
        return node.value

    @value.register
    def _evaluate_parentheses(self, node: n.Parenthesized) -> Any:
        return self.value(node.value)

    @value.register
    def _template(self, node: n.Template) -> Any:
        parts = [part if isinstance(part, str) else self.value(part) for part in node.parts]
        _require_room(sum(len(part) for part in parts if isinstance(part, str)))
        return _check_size(operators.template(*parts))

    @value.register
    def _array(self, node: n.Array) -> Any:
        return _light([self.value(item) for item in node.items])

    @value.register
    def _object(self, node: n.Object) -> Any:
        result: dict[str, Any] = {}
        for item in node.properties:
            if not isinstance(item, n.Property) or not isinstance(item.key, str):
                raise ExpressionError("an object in an expression has plain keys")
            result[item.key] = self.value(item.value)
        return _light(result)

    @value.register
    def _member(self, node: n.Member) -> Any:
        if isinstance(node.object, n.Name) and node.object.name not in self.names and node.object.name in STATIC:
            return self._static(node.object.name, node.name)
        return self._get(self.value(node.object), node.name)

    @value.register
    def _index(self, node: n.Index) -> Any:
        return self._get(self.value(node.object), self.value(node.index))

    def _get(self, holder: Any, key: Any) -> Any:
        """A member of a plain value; what is missing has missing members."""
        if isinstance(key, str) and (key.startswith("__") or key in FORBIDDEN):
            raise ExpressionError(f"`{key}` is not allowed in an expression")
        if operators.nullish(holder):
            return undefined
        if not isinstance(holder, (dict, list, str)):
            raise ExpressionError(f"a {operators.type_of(holder)} has no members here")
        found = call_helpers.get(holder, key)
        return undefined if callable(found) else found

    def _static(self, holder: str, name: str) -> Any:
        if name not in STATIC[holder]:
            raise ExpressionError(f"`{holder}.{name}` is not allowed in an expression")
        return call_helpers.get(GLOBALS[holder], name)

    @value.register
    def _call(self, node: n.Call) -> Any:
        if isinstance(node.callee, n.Member) and node.callee.name in CALLING:
            return self._call_each(node.callee, node.arguments)
        arguments = [self.value(argument) for argument in node.arguments]
        match node.callee:
            case n.Name(name=name) if name in FUNCTIONS and name not in self.names:
                return call_helpers.apply(GLOBALS[name], *arguments)
            case n.Member(object=n.Name(name=holder), name=name) if holder in STATIC and holder not in self.names:
                return call_helpers.apply(self._static(holder, name), *arguments)
            case n.Member(name=name) if name in METHODS and not any(map(callable, arguments)):
                return self._method(self.value(node.callee.object), name, arguments)
        raise ExpressionError("this call is not allowed in an expression")

    def _call_each(self, callee: n.Member, arguments: Sequence[n.Expression]) -> Any:
        """A method of a list that calls a function."""
        items = self.value(callee.object)
        if operators.nullish(items):
            return undefined
        if not isinstance(items, list):
            raise ExpressionError(f"`{callee.name}` cannot be called on a {operators.type_of(items)} here")
        given = [self._arrow(each) if isinstance(each, n.Function) else self.value(each) for each in arguments]
        return _light(call_helpers.apply_member(list(items), callee.name, *given))

    def _arrow(self, node: n.Function) -> Callable[..., Any]:
        patterns = [each.pattern for each in node.parameters if each.is_plain]
        names = [each.name for each in patterns if isinstance(each, n.Binding)]
        if not isinstance(node.body, n.Expression) or node.is_async or len(names) < len(node.parameters):
            raise ExpressionError("a function in an expression is written `x => …`: plain names, and one expression")
        around, body = self.names, node.body

        def call(*values: Any) -> Any:
            self._calls += 1
            if self._calls > MAX_CALLS:
                raise ExpressionError(f"the expression calls its functions more than {MAX_CALLS} times")
            before = self.names
            self.names = {**around, **dict.fromkeys(names, undefined), **dict(zip(names, values, strict=False))}
            try:
                value = self.value(body)
            finally:
                self.names = before
            self._made += weight(value, MAX_SIZE)
            _require_room(self._made)
            return value

        return call

    def _method(self, holder: Any, name: str, arguments: list[Any]) -> Any:
        if operators.nullish(holder):
            return undefined
        if not isinstance(holder, (list, str, int, float)):
            raise ExpressionError(f"`{name}` cannot be called on a {operators.type_of(holder)} here")
        if name == "join":
            _bounded_join(holder, arguments)
        return _check_size(call_helpers.apply_member(holder, name, *arguments))

    @value.register
    def _prefix(self, node: n.Prefix) -> Any:
        operand = self.value(node.operand)
        match node.operator:
            case "!":
                return not operators.truth(operand)
            case "-":
                return operators.negate(operand)
            case "+":
                return operators.number(operand)
            case "typeof":
                return operators.type_of(operand)
        raise ExpressionError(f"`{node.operator}` is not allowed in an expression")

    @value.register
    def _conditional(self, node: n.Conditional) -> Any:
        return self.value(node.then if operators.truth(self.value(node.condition)) else node.otherwise)

    @value.register
    def _operation(self, node: n.Operation) -> Any:
        result = self.value(node.operands[0])
        for operator, operand in zip(node.operators, node.operands[1:], strict=True):
            result = self._combine(operator, result, operand)
        return result

    def _combine(self, operator: str, left: Any, operand: n.Expression) -> Any:
        if operator in LAZY:
            decides = operators.nullish(left) if operator == "??" else operators.truth(left) == (operator == "&&")
            return self.value(operand) if decides else left
        if operator not in BINARY:
            raise ExpressionError(f"`{operator}` is not allowed in an expression")
        return _check_size(BINARY[operator](left, self.value(operand)))


def _bounded_join(items: Any, arguments: list[Any]) -> None:
    """Raise ExpressionError where joining would become too large; it is not tried."""
    between = len(arguments[0]) if arguments and isinstance(arguments[0], str) else 1
    if isinstance(items, list):
        _require_room(len(items) * between)
