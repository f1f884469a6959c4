"""Operations on values of known kinds to Python's own operations, where these do the same."""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from typing import NamedTuple

from koi_lang.compiler import nodes as n
from koi_lang.compiler.codegen import py_ast as py
from koi_lang.compiler.codegen.emitter import Emitter
from koi_lang.compiler.kinds import (
    ARRAY,
    BOOLEAN,
    INT,
    MAP,
    NULL,
    NUMBER,
    OF_TEXTS,
    OTHER,
    SET,
    TEXT,
    UNDEFINED,
    Kind,
    is_exact,
)
from koi_lang.compiler.operators import LAZY
from koi_lang.compiler.scope import ScopeVariable
from koi_lang.compiler.walk import child_nodes

ARITHMETIC: dict[str, ast.operator] = {
    "+": ast.Add(), "-": ast.Sub(), "*": ast.Mult(), "/": ast.Div(), "%": ast.Mod(),
}  # fmt: skip
BITS: dict[str, ast.operator] = {"&": ast.BitAnd(), "|": ast.BitOr(), "^": ast.BitXor()}
ORDER: dict[str, ast.cmpop] = {"<": ast.Lt(), ">": ast.Gt(), "<=": ast.LtE(), ">=": ast.GtE()}
SAME: dict[str, ast.cmpop] = {"===": ast.Eq(), "==": ast.Eq(), "!==": ast.NotEq(), "!=": ast.NotEq()}
# How many arguments functions and methods take, but for those that take any number.
FUNCTIONS_OF_MATH = dict.fromkeys(("floor", "ceil", "abs", "round", "trunc", "sqrt", "sign"), 1) | {"max": 2, "min": 2}
METHODS = {MAP: {"get": 1, "set": 2, "has": 1, "delete": 1}, SET: {"add": 1, "has": 1, "delete": 1}}
IS: dict[str, ast.cmpop] = {"===": ast.Is(), "!==": ast.IsNot()}


def emit_binary(operator: str, left: ast.expr, right: ast.expr, kinds: tuple[Kind, Kind], at: py.At) -> ast.expr | None:
    """Python's own operation for `left operator right`, None where it may do something else."""
    a, b = kinds
    if operator in ARITHMETIC:
        is_text = operator == "+" and a.bits == b.bits == TEXT
        if is_text or is_exact(operator, a, b):
            return ast.BinOp(left, ARITHMETIC[operator], right, **at)
    elif operator in BITS:
        if all(kind.is_whole and -(2**31) <= kind.low and kind.high < 2**31 for kind in kinds):
            return ast.BinOp(left, BITS[operator], right, **at)
    elif operator in ORDER:
        if _are_within(NUMBER, a, b) or a.bits == b.bits == TEXT:
            return ast.Compare(left, [ORDER[operator]], [right], **at)
    elif operator in SAME:
        if _are_within(NUMBER, a, b) or _are_within(TEXT | UNDEFINED, a, b):
            return ast.Compare(left, [SAME[operator]], [right], **at)
        may_be = a.bits & (OTHER | NULL | UNDEFINED) and not isinstance(left, ast.Constant)
        if operator in IS and b.bits in (NULL, UNDEFINED) and may_be:
            return ast.Compare(left, [IS[operator]], [right], **at)
    return None


def _are_within(bits: int, *kinds: Kind) -> bool:
    return all(kind.is_within(bits) for kind in kinds)


def emit_step(kind: Kind, value: ast.expr, *, up: bool, at: py.At) -> ast.expr | None:
    """`value + 1` or `value - 1` of a whole number; None where it may be something else."""
    operator, one = "+" if up else "-", Kind(INT, 1, 1)
    return emit_binary(operator, value, py.constant(1, at), (kind, one), at)


def has_python_truth(kind: Kind) -> bool:
    """Whether Python takes a value for true where Koi does: NaN and empty arrays are not among such kinds."""
    return kind.is_within(INT | TEXT | BOOLEAN | NULL | UNDEFINED)


def emit_length(node: n.Member, kind: Kind, value: ast.expr, at: py.At) -> ast.expr | None:
    """The length of a text or array, the size of a Map or Set."""
    measured = {"length": TEXT | ARRAY, "size": MAP | SET}.get(node.name, 0)
    return py.helper("length", [value], at) if kind.is_within(measured) else None


def emit_template(parts: list[ast.expr], kinds: list[Kind], at: py.At) -> ast.expr:
    """`f"…"` where all that is put in is a name or a sum of names, which Python 3.11 can write in it."""
    if not all(isinstance(part, (ast.Name, ast.Constant)) or _is_sum(part) for part in parts):
        return py.helper("template", parts, at)
    values: list[ast.expr] = []
    for part, kind in zip(parts, kinds, strict=True):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            values.append(part)
            continue
        shown = part if kind.is_within(INT | TEXT) else py.helper("text", [part], at)
        values.append(ast.FormattedValue(shown, -1, None, **at))
    return ast.JoinedStr(values, **at)


def _is_sum(value: ast.expr) -> bool:
    simple = (ast.Name, ast.Constant)
    is_simple = isinstance(value, ast.BinOp) and isinstance(value.left, simple) and isinstance(value.right, simple)
    return is_simple and not any(isinstance(getattr(side, "value", None), str) for side in (value.left, value.right))  # type: ignore[attr-defined]


def is_of_known_kind(node: n.Expression, e: Emitter) -> bool:
    """Whether a method may be called on a value without looking it up."""
    return e.kinds.global_of(node) == "Math" or e.kinds.of(node).bits in METHODS


def emit_method(node: n.Call, e: Emitter, owner: ast.expr, arguments: list[ast.expr], at: py.At) -> ast.expr | None:
    """A call of a function of `Math`, or of a method of a Map or Set, whose arguments fit."""
    callee = node.callee
    assert isinstance(callee, n.Member)
    if any(isinstance(argument, n.Spread) for argument in node.arguments):
        return None
    if e.kinds.global_of(callee.object) == "Math":
        if FUNCTIONS_OF_MATH.get(callee.name) != len(arguments):
            return None
        function = ast.Subscript(owner, py.constant(callee.name, at), py.LOAD, **at)
        return py.call(function, arguments, at)
    methods = METHODS.get(e.kinds.of(callee.object).bits, {})
    if methods.get(callee.name) != len(arguments):
        return None
    return py.call(py.attribute(owner, callee.name, at), arguments, at)


def find_floor_division(node: n.Call, e: Emitter) -> tuple[n.Expression, n.Expression] | None:
    """The whole numbers of `Math.floor(a / b)` where that is `a // b`."""
    callee = node.callee
    if not isinstance(callee, n.Member) or callee.name != "floor" or len(node.arguments) != 1:
        return None
    if e.kinds.global_of(callee.object) != "Math" or e.kinds.floor_kind(node.arguments[0]) is None:
        return None
    inner = n.strip_parentheses(node.arguments[0])
    assert isinstance(inner, n.Operation)
    return inner.operands[0], inner.operands[1]


def emit_item(
    node: n.Index, e: Emitter, holder: ast.expr, index: ast.expr, at: py.At, missing: ast.expr | None = None
) -> ast.expr | None:
    """`holder[index]` of a text or array, with a value for a missing one; None where it may be something else."""
    if not e.kinds.is_plain_item(node):
        return None
    kind = e.kinds.of(node.index)
    if isinstance(index, (ast.Name, ast.Constant)):
        tested: ast.expr = index
    else:
        name = e.fresh("at")
        tested, index = py.walrus(name, index, at), py.load(name, at)
    if isinstance(holder, ast.Name):
        measured: ast.expr = holder
    else:
        name = e.fresh("row")
        if isinstance(holder, ast.IfExp):  # an item of an array that is not there has no items
            holder.orelse = py.helper("get", [py.koi("undefined", at), index], at)
        measured, holder = py.walrus(name, holder, at), py.load(name, at)
    item = ast.Subscript(holder, index, py.LOAD, **at)
    if kind.low >= 0 and e.kinds.is_bounded(node) and e.kinds.of(node.object).bits == TEXT:
        return item
    length = py.helper("length", [measured], at)
    if kind.low >= 0:
        test = ast.Compare(tested, [ast.Lt()], [length], **at)
    else:
        test = ast.Compare(py.constant(0, at), [ast.LtE(), ast.Lt()], [tested, length], **at)
    return ast.IfExp(test, item, missing or py.koi("undefined", at), **at)


def find_push(node: n.Call, e: Emitter) -> tuple[n.Expression, n.Expression] | None:
    """The array and the value of `array.push(value)`, where that is what a call does."""
    callee = node.callee
    if not isinstance(callee, n.Member) or callee.name != "push" or callee.optional or node.optional:
        return None
    if len(node.arguments) != 1 or isinstance(node.arguments[0], n.Spread):
        return None
    return (callee.object, node.arguments[0]) if e.kinds.of(callee.object).bits == ARRAY else None


def find_called_function(node: n.Call, e: Emitter) -> ScopeVariable | None:
    """The variable of the local function that a call means, if Python can call it with just these arguments."""
    if node.optional or not isinstance(node.callee, n.Name):
        return None
    variable = e.variable(node.callee)
    function = None if variable is None else e.kinds.function_of(variable)
    if function is None or any(isinstance(argument, n.Spread) for argument in node.arguments):
        return None
    needed = [parameter for parameter in function.parameters if parameter.default is None and not parameter.optional]
    has_rest = any(parameter.rest for parameter in function.parameters)
    is_special = function.is_async or function.exported or function.takes_this or has_rest
    is_special = is_special or getattr(function, "is_generator", False)
    fits = len(needed) <= len(node.arguments) <= len(function.parameters)
    return variable if fits and not is_special else None


class CountedLoop(NamedTuple):
    """A loop whose counter nothing but its head changes, `for (let i = start; i test end; i += step)`.

    Attributes:
        end: a number, or a name that stands for the same in each turn, or a member of such a name.
    """

    counter: ScopeVariable
    start: n.Expression
    test: str
    end: n.Expression
    step: int | n.Name


def find_counted_loop(node: n.For, e: Emitter) -> CountedLoop | None:
    """What a loop counts, None where it may do anything else."""
    update, condition = n.strip_parentheses(node.update), n.strip_parentheses(node.condition)
    match node.first, condition:
        case (
            n.Variable(declarators=(n.Declarator(pattern=n.Binding() as binding, value=n.Expression() as start),)),
            n.Operation(operators=(("<" | "<=" | ">" | ">=") as test,), operands=(n.Name() as counted, end)),
        ):
            counter = e.variable(binding)
        case _:
            return None
    match update:
        case n.Update():
            step: int | n.Name = 1 if update.operator == "++" else -1
        case n.Assignment(operator="+", value=n.Name() as step):
            pass
        case n.Assignment(operator=("+" | "-") as operator, value=n.Literal(value=int() as size)):
            step = int(size) if operator == "+" else -size
        case _:
            return None
    if counter is None or counter is not e.variable(counted) or counter.captured:
        return None
    if len(counter.writes) != 2 or counter.writes[1] is not update:
        return None
    if not e.kinds.of(start).is_within(NUMBER):
        return None
    end = n.strip_parentheses(end)
    holder = end.object if isinstance(end, n.Member) and not end.optional else end
    if not _stays(holder, node, e) or not _stays(step, node, e):
        return None
    if isinstance(end, n.Member) and end.name != "length" and not _changes_no_object(node.body, end, e):
        return None
    return CountedLoop(counter, start, test, end, step)


# What code may consist of that changes no object, whatever the parts of it do.
_QUIET = (
    *(n.Literal, n.Text, n.Name, n.Parenthesized, n.Array, n.Binding, n.Block, n.ExpressionStatement, n.Declarator),
    *(n.Variable, n.If, n.For, n.While, n.DoWhile, n.Break, n.Continue, n.Sequence, n.Return, n.Conditional, n.Object),
)
_QUIET_METHODS: dict[int, Collection[str]] = {TEXT: OF_TEXTS, ARRAY: ("push",), **METHODS}
_CONVERTED = NUMBER | TEXT | BOOLEAN | UNDEFINED | NULL


def _changes_no_object(node: n.Node, end: n.Member, e: Emitter) -> bool:
    """Whether code certainly changes no objects but new ones, arrays, Maps and Sets: it calls no unknown code.

    That could stand behind calls, accessors, and conversions of objects. `end` is a number of a plain object.
    """
    parts: Sequence[n.Node] = ()
    converted: Sequence[n.Node] = ()
    is_quiet = True
    match node:
        case n.Operation():
            parts, is_quiet = node.operands, {"in", "instanceof"}.isdisjoint(node.operators)
            converted = () if {*LAZY, "===", "!=="}.issuperset(node.operators) else node.operands
        case n.Prefix():
            parts, is_quiet = (node.operand,), node.operator != "delete"
            converted = () if node.operator in ("!", "typeof", "void") else parts
        case n.Template():
            parts = converted = [part for part in node.parts if isinstance(part, n.Node)]
        case n.Update():
            converted, is_quiet = (node.target,), isinstance(node.target, n.Name)
        case n.Assignment():
            parts, converted = (node.target, node.value), (node.target, node.value) if node.operator else ()
            is_quiet = isinstance(node.target, n.Name) or (isinstance(node.target, n.Index) and not node.operator)
        case n.Member():
            is_length = node.name == "length" and e.kinds.of(node.object).is_within(TEXT | ARRAY)
            is_quiet = is_length or e.variable(node.object) is e.variable(end.object)
        case n.Index():
            parts, kinds = (node.object, node.index), (e.kinds.of(node.object), e.kinds.of(node.index))
            is_quiet = not node.optional and kinds[0].is_within(TEXT | ARRAY) and kinds[1].is_within(NUMBER)
        case n.Property():
            parts, is_quiet = (node.value,), isinstance(node.key, str) and not node.accessor
        case n.Call(callee=n.Member(optional=False) as callee, optional=False):
            kind, is_math = e.kinds.of(callee.object).bits, e.kinds.global_of(callee.object) == "Math"
            parts, converted = node.arguments, node.arguments if is_math or kind == TEXT else ()
            is_quiet = is_math or callee.name in _QUIET_METHODS.get(kind, ())
        case _:
            parts, is_quiet = child_nodes(node), isinstance(node, _QUIET)
    for part in converted:
        match part:
            case n.Member(name=end.name, optional=False) if e.variable(part.object) is e.variable(end.object):
                continue
        is_quiet = is_quiet and e.kinds.of(part).is_within(_CONVERTED)
    return is_quiet and all(_changes_no_object(part, end, e) for part in parts)


def _stays(node: n.Expression | int, loop: n.For, e: Emitter) -> bool:
    """Whether an expression stands for the same value in all turns of a loop."""
    if isinstance(node, (int, n.Literal)):
        return True
    variable = e.variable(node)
    if variable is None or variable.early or node.span.start < variable.ready:
        return False
    if not variable.reassigned:
        return True
    spans = [None if write is None else write.span for write in variable.writes]
    inside = range(loop.span.start, loop.span.end)
    return not variable.captured and all(span is not None and span.start not in inside for span in spans)
