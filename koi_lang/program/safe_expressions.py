"""Expressions that arrive while a program runs, read with the Koi grammar and computed over a whitelist.

This is the only way text of a model or payload is ever given a meaning: operators, members of plain values, and the
functions listed here, arrow functions of one expression among their arguments. Nothing can be assigned, awaited or
reached outside of the names that are given. What is not computed is an error with one thing to write instead.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import singledispatchmethod
from typing import Any

from koi_lang.compiler import nodes as n
from koi_lang.compiler.build import MIXED_OPERATORS, RESERVED
from koi_lang.compiler.operators import LAZY
from koi_lang.compiler.parser import parse_expression
from koi_lang.compiler.templates import COMPUTED, COPYING, changes
from koi_lang.compiler.walk import everything
from koi_lang.diagnostics import nearest
from koi_lang.errors import ExpressionError, UnreadableExpressionError
from koi_lang.js import call_helpers, operators
from koi_lang.js.conversions import property_key
from koi_lang.js.errors import ErrorValue
from koi_lang.js.globals import GLOBALS
from koi_lang.js.inspect_value import inspect as as_text
from koi_lang.js.undefined import undefined
from koi_lang.runtime.guards.size import weight
from koi_lang.source import Source, Span
from koi_lang.system.interpolation import ExpressionRules

MAX_CHARS = 2000
MAX_SIZE = 1_000_000
# How much the name of a function must have in common with one that is suggested.
ALIKE = 0.7
# Calls of arrow functions in one expression; so many take a second or so.
MAX_CALLS = 100_000
QUOTED = r""""(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'"""
TEXTS = re.compile(rf"{QUOTED}|`(?:\\.|[^`\\])*`")
# A value with a format as Python writes it.
PYTHON_FORMAT = re.compile(r"([^:?]+):[,_]?(?:\.(\d+))?[fd%]")
FORBIDDEN = frozenset({"constructor", "prototype"})
BINARY: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operators.add, "-": operators.subtract, "*": operators.multiply, "/": operators.divide,
    "%": operators.remainder, "===": operators.same, "==": operators.equal, "<": operators.less,
    ">": operators.greater, "<=": operators.less_equal, ">=": operators.greater_equal, "in": operators.has,
    "!==": lambda a, b: not operators.same(a, b), "!=": lambda a, b: not operators.equal(a, b),
    "**": operators.power,
}  # fmt: skip
FUNCTIONS = frozenset({"String", "Number", "Boolean", "parseInt", "parseFloat", "isNaN", "isFinite"})
STATIC = {
    "JSON": frozenset("stringify parse".split()),
    "Math": frozenset("floor ceil round max min abs sqrt trunc sign PI pow hypot cbrt exp log log2 log10 E".split()),
    "Object": frozenset("keys values entries fromEntries".split()),
    "Array": frozenset({"isArray"}),
    "Number": frozenset("isInteger isFinite isNaN".split()),
}
METHODS = frozenset(
    "includes startsWith endsWith indexOf lastIndexOf toLowerCase toUpperCase trim trimStart trimEnd slice substring "
    "charAt join split concat flat toReversed replace replaceAll repeat padStart padEnd toFixed toString at".split()
)
# Methods of lists that call a function; lists are sorted as copies.
CALLING = frozenset("map filter find findIndex findLast findLastIndex some every reduce flatMap sort toSorted".split())
# Those that make a text of what they are given or called on.
WRITING = frozenset("join toString toFixed concat replace replaceAll padStart padEnd".split())
# What earlier versions did not compute.
ADDED = frozenset(
    "lastIndexOf trimStart trimEnd concat flat toReversed replace replaceAll repeat padStart padEnd findLast "
    "findLastIndex pow hypot cbrt exp log log2 log10 E fromEntries isInteger isFinite isNaN".split()
)
# Functions and methods of Python that models call, with their counterparts.
OF_PYTHON = {
    "len": "list.length", "str": "String(value)", "int": "parseInt(text)", "float": "parseFloat(text)",
    "upper": "text.toUpperCase()", "lower": "text.toLowerCase()", "strip": "text.trim()",
    **{name: f"Math.{name}(…)" for name in ("abs", "round", "max", "min")},
}  # fmt: skip
CONSTANTS = {"undefined": undefined, "NaN": float("nan"), "Infinity": float("inf")}
MAY_BE_MISSING = "Write `?? …` behind it where it may be missing."
IN_CODE = "Have code compute it, or write the value itself."
# What expressions of programs have and these have not, each with what to write instead.
REFUSED: Mapping[type[n.Node], tuple[str, str]] = {
    n.Regex: ("a regular expression", "Use `includes`, `split` or `replaceAll` with texts, or have code compute it."),
    n.New: ("`new`", IN_CODE),
    n.Await: ("`await`", IN_CODE),
    n.Send: ("`send`", "Delegate with an action of its own, and refer to its result."),
    n.Assignment: ("an assignment", "Write the new value alone, or use `update_state`."),
    n.Update: ("an assignment", "Write `+ 1`, or use `update_state`."),
    n.Function: ("a function by itself", "Call it, as in `list.map(x => x.name)`."),
    n.Sequence: ("a comma between expressions", "Write one expression."),
}


def evaluate(text: str, names: Mapping[str, Any], rules: ExpressionRules = ExpressionRules.LENIENT, /) -> Any:
    """The value of an expression over some names. Raises ExpressionError."""
    if len(text) > MAX_CHARS:
        raise ExpressionError(f"an expression has at most {MAX_CHARS} characters, this one has {len(text)}")
    spelled = text.strip()
    without_texts = TEXTS.sub("", spelled)
    if "//" in without_texts or "/*" in without_texts:  # a part would count for nothing: `10 // 3` is 10 and a comment
        message = f"`{spelled}` holds a comment, and what stands in it would not count"
        raise ExpressionError(message, help="Write `Math.floor(a / b)` to divide whole numbers.")
    readable, respelt = _without_reserved(spelled, names)
    try:
        expression, problem = parse_expression(Source("expression", readable), Span(0, len(readable)))
        if expression is None:
            form = PYTHON_FORMAT.fullmatch(spelled)
            help = None if form is None else f"Write `({form[1].strip()}).toFixed({form[2] or 0})`."
            if problem is not None and problem.code == MIXED_OPERATORS:
                help = f"W{(problem.help or '')[1:]}"
            message = f"`{spelled}` is no expression: {problem.message if problem else ''}"
            raise UnreadableExpressionError(message, help=help)
        if rules is ExpressionRules.EARLIER:
            _require_earlier(expression)
        known = {**names, **{other: names[name] for other, name in respelt.items()}} if respelt else names
        evaluator = _Evaluator(readable, known, respelt, is_strict=rules is ExpressionRules.STRICT)
        value = evaluator.value(expression)
        return evaluator.whole(value, expression) if isinstance(value, (list, dict)) else value
    except RecursionError:
        raise ExpressionError("the expression is nested too deeply") from None
    except (ErrorValue, ArithmeticError) as error:
        raise ExpressionError(f"`{spelled}` cannot be computed: {getattr(error, 'message', error)}") from error


def _without_reserved(text: str, names: Mapping[str, Any]) -> tuple[str, Mapping[str, str]]:
    """The text with names that are reserved words in programs, such as `state`, spelt so that they can be read.

    Returns:
        The text, and the names that stand in it with those that they stand for.
    """
    reserved = [name for name in names if name in RESERVED]
    if not reserved:
        return text, {}
    spelt = {name: f"{name}_" for name in reserved}
    while any(other in names for other in spelt.values()):
        spelt = {name: f"{other}_" for name, other in spelt.items()}
    words = re.compile(rf"{QUOTED}|(?<![\w$.])(?:{'|'.join(map(re.escape, reserved))})(?![\w$]|\s*:)")
    replaced = words.sub(lambda found: spelt.get(found[0], found[0]), text)
    return replaced, {other: name for name, other in spelt.items()}


def _require_earlier(expression: n.Expression) -> None:
    """Raise ExpressionError for an expression that earlier versions did not compute."""
    for node in everything(expression):
        match node:
            case n.Spread() | n.Property(key=n.Node()) | n.Operation(operators=("**", *_)):
                break
            case n.Function(parameters=parameters) if not all(each.is_plain for each in parameters):
                break
            case n.Member(name=name) if name in ADDED:
                break
            case n.Call(callee=n.Member(name=name), arguments=(n.Name(), *_)) if name in CALLING:
                break
    else:
        return
    raise ExpressionError("this is not allowed in an expression")


def _check_size(value: Any) -> Any:
    """A value that is not too large to go on with. Raises ExpressionError."""
    _require_room(len(value) if isinstance(value, (str, list)) else 0)
    return value


def _require_room(size: float) -> None:
    if size > MAX_SIZE:
        raise ExpressionError(f"the expression becomes larger than {MAX_SIZE} characters or items")


def _light(value: Any) -> Any:
    """A list or object that was put together and is not too large with all it holds. Raises ExpressionError."""
    _require_room(weight(value, MAX_SIZE))
    return value


class _Evaluator:
    def __init__(self, text: str, names: Mapping[str, Any], respelt: Mapping[str, str], *, is_strict: bool) -> None:
        self.text = text
        self.names = dict(names)
        self.respelt = respelt
        self.is_strict = is_strict
        self._known = [respelt.get(name, name) for name in names if name not in respelt.values()]
        self._calls = self._made = 0

    def _text_of(self, node: n.Node) -> str:
        """A part of the expression as its author has written it."""
        written = self.text[node.span.start : node.span.end]
        for other, name in self.respelt.items():
            written = re.sub(rf"(?<![\w$.]){re.escape(other)}(?![\w$])", name, written)
        return written

    def whole(self, value: Any, node: n.Node) -> Any:
        """A value that a text or the result is made of. Raises ExpressionError where a part of it is none."""
        rest = [value] if self.is_strict else []
        while rest:
            part = rest.pop()
            if isinstance(part, (list, dict)):
                rest += part.values() if isinstance(part, dict) else part
            elif part is undefined or (isinstance(part, float) and not math.isfinite(part)):
                what = f"is {as_text(part)}" if part is value else f"holds {as_text(part)}"
                help = MAY_BE_MISSING if part is undefined else None
                raise ExpressionError(f"`{self._text_of(node)}` {what}", help=help)
        return value

    def value(self, node: n.Expression) -> Any:
        """The value of a part of the expression."""
        return _EVALUATOR_OF(type(node))(self, node)

    @singledispatchmethod
    def _value(self, node: n.Expression) -> Any:
        what, help = REFUSED.get(type(node), (f"`{self._text_of(node)}`", IN_CODE))
        raise ExpressionError(f"{what} is not computed here", help=help)

    @_value.register
    def _name(self, node: n.Name) -> Any:
        if node.name in self.names:
            return self.names[node.name]
        if node.name in CONSTANTS:
            return CONSTANTS[node.name]
        if node.name in GLOBALS:
            raise ExpressionError(f"`{node.name}` is not computed here", help=IN_CODE)
        near = nearest(node.name, self._known)
        listed = ", ".join(f"`{name}`" for name in self._known[:12])
        help = f"Did you mean `{near}`?" if near else f"Known names are {listed}."
        raise ExpressionError(f"there is no `{node.name}` here", help=help)

    @_value.register(n.Literal)
    @_value.register(n.Text)
    def _constant(self, node: n.Literal | n.Text) -> Any:
        return node.value

    @_value.register
    def _evaluate_parentheses(self, node: n.Parenthesized) -> Any:
        return self.value(node.value)

    @_value.register
    def _template(self, node: n.Template) -> Any:
        parts = [part if isinstance(part, str) else self.whole(self.value(part), part) for part in node.parts]
        _require_room(sum(len(part) for part in parts if isinstance(part, str)))
        return _check_size(operators.template(*parts))

    @_value.register
    def _array(self, node: n.Array) -> Any:
        return _light(self._values(node.items))

    def _values(self, nodes: Sequence[n.Expression]) -> list[Any]:
        """The values of items or arguments, those behind `...` among them."""
        values = list[Any]()
        for node in nodes:
            if isinstance(node, n.Spread):
                items = self.value(node.value)
                if not isinstance(items, (list, str)):
                    raise ExpressionError(f"`{self._text_of(node.value)}` is no list, but {_kind_of(items)}")
                _require_room(len(values) + len(items))
                values += items
            else:
                values.append(self.value(node))
        return values

    @_value.register
    def _object(self, node: n.Object) -> Any:
        result: dict[str, Any] = {}
        for item in node.properties:
            if isinstance(item, n.Spread):
                result |= call_helpers.spread(self.value(item.value))
            elif item.accessor:
                raise ExpressionError(f"a `{item.accessor}` in an object is not computed here", help=IN_CODE)
            else:
                result[self._key(item.key)] = self.value(item.value)
        return _light(result)

    def _key(self, key: str | n.Expression | None) -> str:
        return property_key(self.value(key)) if isinstance(key, n.Expression) else str(key)

    @_value.register
    def _member(self, node: n.Member) -> Any:
        if isinstance(node.object, n.Name) and node.object.name not in self.names and node.object.name in STATIC:
            return self._static(node.object.name, node.name)
        return self._get(self.value(node.object), node.name, node)

    @_value.register
    def _index(self, node: n.Index) -> Any:
        return self._get(self.value(node.object), self.value(node.index), node)

    def _get(self, holder: Any, key: Any, node: n.Member | n.Index) -> Any:
        """A member of a plain value; what is missing has missing members where that is not an error."""
        if isinstance(key, str) and (key.startswith("__") or key in FORBIDDEN):
            raise ExpressionError(f"`{key}` is not allowed in an expression")
        if operators.nullish(holder):
            return self._missing(holder, node)
        if not isinstance(holder, (dict, list, str)):
            raise ExpressionError(f"`{self._text_of(node.object)}` is {_kind_of(holder)}, which has no members here")
        found = call_helpers.get(holder, key)
        return undefined if callable(found) else found

    def _missing(self, holder: Any, node: n.Member | n.Index) -> Any:
        """The member of null or undefined. Raises ExpressionError where it is asked for without `?.`."""
        chain: n.Node = node  # behind a `?.` it may end
        while isinstance(chain, (n.Member, n.Index, n.Call)) and not chain.optional:
            chain = chain.callee if isinstance(chain, n.Call) else chain.object
        if self.is_strict and not isinstance(chain, (n.Member, n.Index, n.Call)):
            what = "is null" if holder is None else "has no value"
            message = f"`{self._text_of(node.object)}` {what}"
            raise ExpressionError(message, help="Write `?.` and `?? …` where a value may be missing.")
        return undefined

    def _static(self, holder: str, name: str) -> Any:
        if name not in STATIC[holder]:
            listed = ", ".join(f"`{holder}.{each}`" for each in sorted(STATIC[holder]))
            raise ExpressionError(f"`{holder}.{name}` is not computed here", help=f"There are {listed}. {IN_CODE}")
        return call_helpers.get(GLOBALS[holder], name)

    @_value.register
    def _call(self, node: n.Call) -> Any:
        change = None if isinstance(node.callee, n.Member) and node.callee.name in CALLING else changes(node)
        if change is not None:
            help = IN_CODE if change.help == COMPUTED else f"W{change.help[1:]}"
            message = f"`{self._text_of(node.callee)}` cannot be called here: it changes a value"
            raise ExpressionError(message, help=help)
        match node.callee:
            case n.Name(name=name) if name in FUNCTIONS and name not in self.names:
                values = self._values(node.arguments)
                return call_helpers.apply(GLOBALS[name], *(self.whole(values, node) if name == "String" else values))
            case n.Member(object=n.Name(name=holder), name=name) if holder in STATIC and holder not in self.names:
                values = self._values(node.arguments)
                values = self.whole(values, node) if name == "stringify" else values
                return call_helpers.apply(self._static(holder, name), *values)
            case n.Member(name=name) if name in CALLING:
                return self._call_each(node.callee, node.arguments)
            case n.Member(name=name) if (called := COPYING.get(name, name)) in METHODS:
                return self._method(replace(node.callee, name=called), self._values(node.arguments))
        near = None
        if isinstance(node.callee, n.Member):
            holder = self.value(node.callee.object)  # what is wrong in there is the better reason
            if isinstance(holder, (str, list)) and node.callee.name == "length":
                whole = self._text_of(node.callee)
                raise ExpressionError(f"`{whole}` is a number, and no function", help=f"Write `{whole}`, without `()`.")
            near = nearest(node.callee.name, sorted(METHODS | CALLING), alike=ALIKE)
        elif isinstance(node.callee, n.Name):
            near = nearest(node.callee.name, sorted(FUNCTIONS), alike=ALIKE)
        written = OF_PYTHON.get(getattr(node.callee, "name", ""))
        message = f"`{self._text_of(node.callee)}` cannot be called here"
        near_help = f"Did you mean `{near}`?" if near else IN_CODE
        raise ExpressionError(message, help=f"Write `{written}`." if written else near_help)

    def _call_each(self, callee: n.Member, arguments: Sequence[n.Expression]) -> Any:
        """A method of a list that calls a function."""
        items = self.value(callee.object)
        if operators.nullish(items):
            return self._missing(items, callee)
        if not isinstance(items, list):
            raise ExpressionError(f"`{callee.name}` cannot be called on {_kind_of(items)} here")
        given = list[Any]()
        for each in arguments:
            if isinstance(each, n.Name) and each.name in FUNCTIONS and each.name not in self.names:
                function, node = GLOBALS[each.name], callee.object if each.name == "String" else None
                given.append(
                    self._limit_calls(
                        lambda value, *_, of=function, node=node: call_helpers.apply(
                            of, value if node is None else self.whole(value, node)
                        )
                    )
                )
            else:
                given.append(self._arrow(each) if isinstance(each, n.Function) else self.value(each))
        return _light(call_helpers.apply_member(list(items), callee.name, *given))

    def _arrow(self, node: n.Function) -> Callable[..., Any]:
        if not isinstance(node.body, n.Expression) or node.is_async or node.is_generator:
            message = "a function in an expression has one expression behind its arrow"
            raise ExpressionError(message, help=f"Write `x => …`, without braces, `return` and `async`. {IN_CODE}")
        around, body = self.names, node.body

        def call(*values: Any) -> Any:
            before, self.names = self.names, dict(around)
            try:
                for place, each in enumerate(node.parameters):
                    given = list(values[place:]) if each.rest else values[place] if place < len(values) else undefined
                    self._bind(each.pattern, given, each.default)
                return self.value(body)
            finally:
                self.names = before

        return self._limit_calls(call)

    def _limit_calls(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function that can be called so often, and make so much, in one expression."""

        def call(*values: Any) -> Any:
            self._calls += 1
            if self._calls > MAX_CALLS:
                raise ExpressionError(f"the expression calls its functions more than {MAX_CALLS} times")
            value = function(*values)
            self._made += weight(value, MAX_SIZE)
            _require_room(self._made)
            return value

        return call

    def _bind(self, pattern: n.Node, value: Any, default: n.Expression | None) -> None:
        """Give the names of a parameter, or of a part of one, their values."""
        if value is undefined and default is not None:
            value = self.value(default)
        match pattern:
            case n.Binding(name=name):
                self.names[name] = value
            case n.ArrayPattern(elements=elements) if isinstance(value, (list, str)):
                for place, each in enumerate(elements):
                    part = list(value[place:]) if each.rest else value[place] if place < len(value) else undefined
                    self._bind(each.pattern, part, each.default)
            case n.ObjectPattern(elements=elements) if isinstance(value, dict):
                self._bind_members(elements, value)
            case n.Hole():
                pass
            case _:
                message = f"`{self._text_of(pattern)}` does not fit a value that is {_kind_of(value)}"
                raise ExpressionError(message)

    def _bind_members(self, elements: Sequence[n.Element], value: dict[str, Any]) -> None:
        taken = set[str]()
        for each in elements:
            if each.rest:
                self._bind(each.pattern, {name: part for name, part in value.items() if name not in taken}, None)
                continue
            key = self._key(each.key)
            taken.add(key)
            self._bind(each.pattern, value.get(key, undefined), each.default)

    def _method(self, callee: n.Member, arguments: list[Any]) -> Any:
        holder, name = self.value(callee.object), callee.name
        if operators.nullish(holder):
            return self._missing(holder, callee)
        if not isinstance(holder, (list, str, int, float)):
            raise ExpressionError(f"`{name}` cannot be called on {_kind_of(holder)} here")
        if name in WRITING:
            self.whole([holder, *arguments] if isinstance(holder, str) else holder, callee.object)
        _require_room(_grown_to(holder, name, arguments))
        return _light(_check_size(call_helpers.apply_member(holder, name, *arguments)))

    @_value.register
    def _prefix(self, node: n.Prefix) -> Any:
        if node.operator == "delete":
            raise ExpressionError("`delete` is not computed here", help=IN_CODE)
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
        raise ExpressionError(f"`{node.operator}` is not computed here", help=IN_CODE)

    @_value.register
    def _conditional(self, node: n.Conditional) -> Any:
        return self.value(node.then if operators.truth(self.value(node.condition)) else node.otherwise)

    @_value.register
    def _operation(self, node: n.Operation) -> Any:
        result = self.value(node.operands[0])
        for operator, operand in zip(node.operators, node.operands[1:], strict=True):
            if operator in LAZY:
                decides = (
                    operators.nullish(result) if operator == "??" else operators.truth(result) == (operator == "&&")
                )
                result = self.value(operand) if decides else result
            elif operator in BINARY:
                before, value = result, self.value(operand)
                result = _check_size(BINARY[operator](before, value))
                if operator == "+" and isinstance(result, str):
                    self.whole(before, node.operands[0])
                    self.whole(value, operand)
                has_double = self.is_strict and type(result) is float and result.is_integer()
                if has_double and type(before) is int is type(value):
                    message = f"`{self._text_of(node)}` is rounded: whole numbers are exact up to 2 ** 53"
                    raise ExpressionError(message, help="Give the digits as a text.")
            else:
                raise ExpressionError(f"`{operator}` is not computed here", help=IN_CODE)
        return result


# To bind a `singledispatchmethod` makes a function with each access, which takes longer than most parts do.
_EVALUATOR_OF = vars(_Evaluator)["_value"].dispatcher.dispatch


def _kind_of(value: Any) -> str:
    """The kind of a value, with its article."""
    kind = "null" if value is None else "list" if isinstance(value, list) else str(operators.type_of(value))
    return kind if kind in ("null", "undefined") else f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def _grown_to(holder: Any, name: str, arguments: Sequence[Any]) -> float:
    """About how many characters or items a method makes of its arguments, before it is tried."""
    texts = [each for each in arguments if isinstance(each, str)]
    number = next((float(each) for each in arguments if isinstance(each, (int, float))), 0.0)
    match name, holder:
        case "join", list():
            return len(holder) * (len(texts[0]) if texts else 1)
        case "repeat", str():
            return len(holder) * number
        case "padStart" | "padEnd", str():
            return number
        case "replace" | "replaceAll", str() if len(texts) == 2:
            once = len(texts[1]) + texts[1].count("$") * len(holder)
            return len(holder) + once * (holder.count(texts[0]) + 1 if name == "replaceAll" else 1)
        case "concat", _:
            return sum(len(each) for each in (holder, *arguments) if isinstance(each, (str, list)))
    return 0
