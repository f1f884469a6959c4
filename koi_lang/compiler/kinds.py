"""Which kinds of values the local variables and expressions of some code may have.

The kinds of a variable are those of everything that is ever stored in it, wherever that stands; a variable that gets
anything unknown is unknown. From kinds follows where Python's own operation does what the language asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from typing import Any, NamedTuple

from koi_lang.compiler import nodes as n
from koi_lang.compiler.array_items import GIVING_ITEM, ArrayItems, Items
from koi_lang.compiler.operators import LAZY
from koi_lang.compiler.scope import Resolution, ScopeVariable

# `INT` is an `int` of Python, `FLOAT` a float that is no such number, `LOOSE` any float: a number as Python's own
# operations leave it, which becomes an `int` where it is whole before anything but arithmetic sees it.
INT, FLOAT, LOOSE, TEXT, BOOLEAN, ARRAY, MAP, SET, UNDEFINED, NULL, OTHER = (1 << bit for bit in range(11))
NUMBER = INT | FLOAT | LOOSE
# Whole numbers are exact up to here, and a program that counts by small steps does not get beyond `COUNTED`.
MAX_SAFE_INTEGER = 2**53
COUNTED = 2**50
MAX_LENGTH = 2**40
STEP = 1024
# How often kinds are computed anew before the ranges of whole numbers are given up.
ROUNDS = 4
MAX_ROUNDS = 30


class Kind(NamedTuple):
    """The kinds that a value may be of, and between which numbers it lies where it is an `int` of Python."""

    bits: int
    low: int = 0
    high: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether it is an `int` of Python, and so not -0."""
        return self.bits == INT

    @property
    def is_index(self) -> bool:
        """Whether it is a whole number from 0."""
        return self.bits == INT and self.low >= 0

    def is_within(self, bits: int) -> bool:
        """Whether it is of some kinds, whatever happens."""
        return not self.bits & ~bits and self.bits != 0


NOTHING, UNKNOWN = Kind(0), Kind(OTHER)
A_NUMBER = Kind(INT | FLOAT, -MAX_SAFE_INTEGER, MAX_SAFE_INTEGER)
A_TEXT = Kind(TEXT)
A_BOOLEAN = Kind(BOOLEAN)
AN_ARRAY = Kind(ARRAY)
IS_UNDEFINED = Kind(UNDEFINED)
AN_INT32 = Kind(INT, -(2**31), 2**31 - 1)
A_LENGTH, A_POSITION = Kind(INT, 0, MAX_LENGTH), Kind(INT, -1, MAX_LENGTH)
COMPARISONS = frozenset({"===", "!==", "==", "!=", "<", ">", "<=", ">=", "instanceof", "in"})
GLOBAL_NAMES = {"undefined": IS_UNDEFINED, "NaN": Kind(FLOAT), "Infinity": Kind(FLOAT)}
# What methods give, whatever they are given.
OF_TEXTS = {
    **dict.fromkeys(("slice", "substring", "trim", "trimStart", "trimEnd", "toUpperCase", "toLowerCase"), A_TEXT),
    **dict.fromkeys(("repeat", "padStart", "padEnd", "charAt", "concat", "toString"), A_TEXT),
    **dict.fromkeys(("includes", "startsWith", "endsWith"), A_BOOLEAN),
    **dict.fromkeys(("indexOf", "lastIndexOf"), A_POSITION),
    "split": AN_ARRAY, "charCodeAt": A_NUMBER,
}  # fmt: skip
OF_ARRAYS = {
    **dict.fromkeys(("map", "filter", "slice", "concat", "flat", "flatMap", "toSorted", "toReversed"), AN_ARRAY),
    **dict.fromkeys(("sort", "reverse", "fill", "splice", "toSpliced", "with"), AN_ARRAY),
    **dict.fromkeys(("includes", "some", "every"), A_BOOLEAN),
    **dict.fromkeys(("indexOf", "lastIndexOf", "findIndex", "findLastIndex"), A_POSITION),
    **dict.fromkeys(("push", "unshift"), A_LENGTH),
    "join": A_TEXT,
}  # fmt: skip
OF_COLLECTIONS = dict.fromkeys(("has", "delete"), A_BOOLEAN)
OF_KINDS = {TEXT: OF_TEXTS, ARRAY: OF_ARRAYS, MAP: OF_COLLECTIONS, SET: OF_COLLECTIONS}
OF_CLASSES = {"Array": AN_ARRAY, "Map": Kind(MAP), "Set": Kind(SET)}
OF_GLOBALS = {
    "Object": dict.fromkeys(("keys", "values", "entries"), AN_ARRAY),
    "Array": {"from": AN_ARRAY, "of": AN_ARRAY, "isArray": A_BOOLEAN},
    "Number": dict.fromkeys(("parseInt", "parseFloat"), A_NUMBER) | dict.fromkeys(("isInteger", "isNaN"), A_BOOLEAN),
}
OF_FUNCTIONS = {"String": A_TEXT, "Number": A_NUMBER, "Boolean": A_BOOLEAN, "Array": AN_ARRAY} | dict.fromkeys(
    ("parseInt", "parseFloat"), A_NUMBER
)


class Kinds:
    """The kinds of the expressions of one piece of code, found when they are first asked for."""

    def __init__(self, resolution: Resolution, declared: Container[str]) -> None:
        """`declared` are names of declarations, which globals of the same name give way to."""
        self._resolution, self._declared = resolution, declared
        self._variables: dict[ScopeVariable | Items, Kind] | None = None
        self._derived: list[ScopeVariable] = []
        self._arrays: ArrayItems
        self._known: dict[n.Node, Kind] = {}
        self._bounds: dict[ScopeVariable, tuple[ScopeVariable, n.For]] = {}

    def of(self, node: n.Node) -> Kind:
        """The kinds of an expression."""
        if self._variables is None:
            self._variables = {}
            self._bounds = dict(self._find_bounds())
            self._arrays = ArrayItems(self._resolution, self.global_of)
            self._solve()
        known = self._known.get(node)
        if known is None:
            try:
                known = self._known[node] = self._compute(node)
            except RecursionError:
                return UNKNOWN
        return known

    def global_of(self, node: n.Node) -> str:
        """The name of the global that a node stands for, else an empty text."""
        if not isinstance(node, n.Name) or node in self._resolution.variables or node.name in self._declared:
            return ""
        return node.name

    def function_of(self, variable: ScopeVariable) -> n.Function | None:
        """The function that a variable stands for and always will."""
        if variable.reassigned or variable.kind == "let":
            return None
        if variable.kind == "function":
            return self._resolution.declared.get(variable)
        write = variable.writes[0] if len(variable.writes) == 1 else None
        value = write.value if isinstance(write, n.Declarator) else None
        return value if isinstance(value, n.Function) else None

    def is_bounded(self, node: n.Index) -> bool:
        """Whether an index is less than the length of what it is an index of, as the loop around it has tested."""
        if not isinstance(node.index, n.Name) or not isinstance(node.object, n.Name):
            return False
        variables = self._resolution.variables
        holder, loop = self._bounds.get(variables.get(node.index), (None, None))  # type: ignore[arg-type]
        if loop is None or loop.condition is None or holder is not variables.get(node.object):
            return False
        return node.span.start >= loop.body.span.start or node.span.start in range(*_behind_first(loop.condition))

    # ------------------------------------------------------------ variables

    def _find_bounds(self) -> Iterator[tuple[ScopeVariable, tuple[ScopeVariable, n.For]]]:
        """Counters of loops `for (let i = 0; i < text.length; i++)`, with the text, which always stays the same."""
        variables = self._resolution.variables
        for loop in self._resolution.loops:
            match _first_operand(loop.condition):
                case n.Operation(operators=("<",), operands=(n.Name() as index, n.Member(name="length") as length)):
                    counter, holder = variables.get(index), variables.get(length.object)
                    if counter is None or holder is None or holder.reassigned or not counter.header:
                        continue
                    is_kept = not counter.rewritten and len(counter.writes) == 2
                    match counter.writes[-1]:
                        case (
                            n.Update(operator="++") | n.Assignment(operator="+", value=n.Literal(value=int()))
                        ) as step:
                            if is_kept and step is n.strip_parentheses(loop.update):
                                yield counter, (holder, loop)

    def _solve(self) -> None:
        """Begin with no kinds at all, and add those of each stored value until nothing is added.

        Variables that are written once follow from the others.
        """
        variables = [variable for scope in self._resolution.functions.values() for variable in scope.variables]
        parameters = self._arrays.parameters
        waiting: list[ScopeVariable | Items] = [*self._arrays.list_closed()]
        waiting += [
            variable
            for variable in variables
            if len(variable.writes) + (variable in parameters) > 1 and self._is_followed(variable)
        ]
        solved = self._variables
        assert solved is not None
        solved.update(dict.fromkeys(waiting, NOTHING))
        try:
            is_solved = self._add_kinds(waiting, solved)
        except RecursionError:
            is_solved = False
        if not is_solved:
            solved.clear()
            solved.update(dict.fromkeys(waiting, UNKNOWN))

    def _is_followed(self, variable: ScopeVariable) -> bool:
        """Whether a variable holds nothing but what is stored in it: boxes begin with undefined."""
        return not variable.is_boxed and (None not in variable.writes or variable in self._arrays.parameters)

    def _add_kinds(self, waiting: list[ScopeVariable | Items], solved: dict[ScopeVariable | Items, Kind]) -> bool:
        """Add the kinds of what is stored until nothing is added; gives up on variables that follow from too many."""
        rounds, changed = 0, bool(waiting)
        while changed and rounds < MAX_ROUNDS:
            changed, rounds = False, rounds + 1
            for each in self._derived:
                del solved[each]
            self._derived.clear()
            for variable in waiting:
                before = solved[variable]
                if isinstance(variable, Items):
                    after = self._kind_of_stores(variable)
                else:
                    after = self._kind_of_writes(variable)
                if rounds > ROUNDS:
                    after = _give_up_range(before, after)
                if after != before:
                    solved[variable], changed = after, True
        return not changed

    def _kind_of_variable(self, variable: ScopeVariable) -> Kind:
        """The kinds of a variable, of one that is written once those of what is written."""
        solved = self._variables
        assert solved is not None
        known = solved.get(variable)
        if known is None:
            self._derived.append(variable)
            solved[variable] = UNKNOWN  # if it is about itself
            followed = len(variable.writes) == 1 and self._is_followed(variable)
            known = solved[variable] = self._kind_of_writes(variable) if followed else UNKNOWN
        return known

    def _kind_of_writes(self, variable: ScopeVariable) -> Kind:
        """The kinds of all values that are stored in a variable. Small steps do not add up to large numbers."""
        result, steps = NOTHING, list[Kind]()
        for write in variable.writes:
            step = self._step_kind(write)
            if write is None:
                result = _join(result, self._kind_of_parameter(variable))
            elif step is not None:
                steps.append(step)
            else:
                result = _join(result, self._kind_of_write(write))
        if not steps or not result.bits:
            return result
        low = result.low - COUNTED if min(step.low for step in steps) < 0 else result.low
        high = result.high + COUNTED if max(step.high for step in steps) > 0 else result.high
        if not result.is_within(NUMBER) or not -MAX_SAFE_INTEGER <= low <= high <= MAX_SAFE_INTEGER:
            return _join(result, A_NUMBER)
        floats = LOOSE if any(kind.bits != INT for kind in (result, *steps)) else 0
        return Kind(result.bits | floats, low, high) if result.bits & INT else Kind(result.bits | floats)

    def _step_kind(self, write: n.Node | None) -> Kind | None:
        """The numbers that a store adds, where they are small; None for another store."""
        match write:
            case n.Update():
                return Kind(INT, 1, 1) if write.operator == "++" else Kind(INT, -1, -1)
            case n.Assignment(operator=("+" | "-") as operator):
                kind = self._as_number(write.value, self._again(write.value))
                if kind.is_within(NUMBER) and -STEP <= kind.low <= kind.high <= STEP:
                    return kind if operator == "+" else Kind(kind.bits, -kind.high, -kind.low)
        return None

    def _kind_of_parameter(self, variable: ScopeVariable) -> Kind:
        """The kinds of what the parameter of a callback is given."""
        result = NOTHING
        for given in self._arrays.parameters.get(variable, (n.Name(variable.span, ""),)):
            if isinstance(given, Items):
                kind = self._kind_of_items(given)
            else:
                kind = A_LENGTH if given is None else self._compute(given)
            result = _join(result, compact(kind))
        return result

    def _kind_of_items(self, items: Items | None) -> Kind:
        """The kinds of the items of an array."""
        assert self._variables is not None
        return UNKNOWN if items is None else self._variables.get(items.first(), UNKNOWN)

    def _kind_of_stores(self, items: Items) -> Kind:
        """The kinds of all values that are stored in an array."""
        indexes = (self._compute(index) for index in items.indexes)
        if not all(kind.is_within(NUMBER) or not kind.bits for kind in indexes):
            return UNKNOWN
        result = NOTHING
        for store in items.stores:
            result = _join(result, compact(self._compute(store)))
        return result

    def _kind_of_write(self, write: n.Node | None) -> Kind:
        match write:
            case None:
                return UNKNOWN
            case n.Declarator(value=None):
                return IS_UNDEFINED
            case n.ForEach(over="in"):
                return A_TEXT
            case n.ForEach():
                kind = self._compute(write.iterable)
                if kind.bits == ARRAY and not write.waits:
                    return self._kind_of_items(self._arrays.of(write.iterable))
                return kind if kind.bits in (0, TEXT) else UNKNOWN
            case n.Declarator():
                return self._compute(write.value)
            case n.Assignment():
                return self._assigned_kind(write)
        return self._compute(write)

    # ------------------------------------------------------------ expressions

    def as_numbers(self, left: n.Node | Kind, right: n.Node) -> tuple[Kind, Kind] | None:
        """The kinds of two operands both of which are numbers where NaN stands for an item that is not there."""
        first = left if isinstance(left, Kind) else self._as_number(left, self.of(left))
        kinds = first, self._as_number(right, self.of(right))
        return kinds if all(kind.is_within(NUMBER) for kind in kinds) else None

    def _as_number(self, node: n.Node, kind: Kind) -> Kind:
        """The kinds of an operand where NaN stands for an item that is not there."""
        if not kind.bits & UNDEFINED or not self.is_number_item(node):
            return kind
        return Kind(kind.bits & ~UNDEFINED | FLOAT, kind.low, kind.high)

    def is_number_item(self, node: n.Node) -> bool:
        """Whether an expression is an item of an array in which all items are numbers."""
        item = n.strip_parentheses(node) if isinstance(node, n.Expression) else node
        if not isinstance(item, n.Index) or not self.is_plain_item(item):
            return False
        return self._kind_of_items(self._arrays.of(item.object)).is_within(NUMBER)

    def is_plain_item(self, node: n.Index) -> bool:
        """Whether an item is one of a text or array that a variable holds, or of an array in it, by a whole number."""
        if node.optional or not self._again(node.index).is_whole or not self._is_plain(node.index):
            return False
        holder, kind = n.strip_parentheses(node.object), self._again(node.object)
        if isinstance(holder, n.Name):
            return kind.is_within(TEXT | ARRAY) and holder in self._resolution.variables
        return (
            isinstance(holder, n.Index)
            and bool(kind.bits & ARRAY)
            and kind.is_within(ARRAY | UNDEFINED)
            and self.is_plain_item(holder)
        )

    def _is_plain(self, node: n.Expression) -> bool:
        """Whether an expression consists of variables, numbers and arithmetic."""
        match n.strip_parentheses(node):
            case n.Name() as name:
                return name in self._resolution.variables
            case n.Literal():
                return True
            case n.Operation() as operation:
                return all(map(self._is_plain, operation.operands)) and LAZY.isdisjoint(operation.operators)
        return False

    def _compute(self, node: n.Node | None) -> Kind:
        compute = _COMPUTERS.get(type(node))
        return UNKNOWN if compute is None else compute(self, node)

    def _name(self, node: n.Name) -> Kind:
        variable = self._resolution.variables.get(node)
        if variable is None:
            return GLOBAL_NAMES.get(self.global_of(node), UNKNOWN)
        return self._kind_of_variable(variable)

    def _inside_parentheses(self, node: n.Parenthesized) -> Kind:
        return self._again(node.value)

    def _again(self, node: n.Node) -> Kind:
        """The kinds of a part; once all variables are known these are kept."""
        known = self._known.get(node)
        return self._compute(node) if known is None else known

    def _operation(self, node: n.Operation) -> Kind:
        operator = node.operators[0]
        if operator in ("&&", "||", "??"):
            result = NOTHING
            for operand in node.operands:
                result = _join(result, self._again(operand))
            return compact(result)
        result, left = self._again(node.operands[0]), node.operands[0]
        for operator, operand in zip(node.operators, node.operands[1:], strict=True):
            result = self._binary(operator, (left, result), operand)
            left = node
        return result

    def _binary(self, operator: str, left: tuple[n.Node, Kind], right: n.Node) -> Kind:
        """The kinds of an operation; `left` comes with its own kinds, and is the operation itself in a chain."""
        kinds = self._as_number(*left), self._as_number(right, self._again(right))
        if all(kind.is_within(NUMBER) for kind in kinds):
            return binary(operator, *kinds)
        return binary(operator, left[1], self._again(right))

    def _prefix(self, node: n.Prefix) -> Kind:
        match node.operator:
            case "!" | "delete":
                return A_BOOLEAN
            case "typeof":
                return A_TEXT
            case "~":
                return AN_INT32
            case "void":
                return IS_UNDEFINED
            case "-":
                return negate_kind(self._again(node.operand))
            case "+":
                kind = self._again(node.operand)
                return compact(kind) if kind.is_within(NUMBER) or not kind.bits else A_NUMBER
        return UNKNOWN

    def _update(self, node: n.Update) -> Kind:
        kind = self._again(node.target) if isinstance(node.target, n.Name) else UNKNOWN
        if not kind.is_whole:
            return A_NUMBER if kind.bits else NOTHING
        return _fit(kind.low - 1, kind.high + 1)

    def _assigned_kind(self, node: n.Assignment) -> Kind:
        """The kinds of what an assignment stores."""
        value = self._again(node.value)
        if not node.operator:
            return value
        if not isinstance(node.target, n.Name | n.Index):
            return UNKNOWN
        old = self._again(node.target)
        if node.operator in ("&&", "||", "??"):
            return compact(_join(old, value))
        return self._binary(node.operator, (node.target, old), node.value)

    def _conditional(self, node: n.Conditional) -> Kind:
        return compact(_join(self._again(node.then), self._again(node.otherwise)))

    def _member(self, node: n.Member) -> Kind:
        if node.name == "length" and not node.optional and self._again(node.object).is_within(TEXT | ARRAY):
            return A_LENGTH
        if node.name == "size" and not node.optional and self._again(node.object).is_within(MAP | SET):
            return A_LENGTH
        return UNKNOWN

    def _index(self, node: n.Index) -> Kind:
        holder, index = self._again(node.object), self._again(node.index)
        if not holder.bits or not index.bits:
            return NOTHING
        is_array = holder.bits & ARRAY and holder.is_within(ARRAY | UNDEFINED)
        if is_array and index.is_within(NUMBER) and not node.optional:
            return self._item(node.object)
        if node.optional or holder.bits != TEXT or not index.is_within(NUMBER):
            return UNKNOWN
        return A_TEXT if index.is_index and self.is_bounded(node) else Kind(TEXT | UNDEFINED)

    def _item(self, array: n.Expression) -> Kind:
        """The kinds of an item of an array, which may not be there."""
        kind = self._kind_of_items(self._arrays.of(array))
        return kind if kind.bits & OTHER else Kind(kind.bits | UNDEFINED, kind.low, kind.high)

    def _call(self, node: n.Call) -> Kind:
        callee = node.callee
        if node.optional:
            return UNKNOWN
        if isinstance(callee, n.Name):
            return OF_FUNCTIONS.get(self.global_of(callee), UNKNOWN)
        if not isinstance(callee, n.Member) or callee.optional:
            return UNKNOWN
        owner = self.global_of(callee.object)
        if owner == "Math":
            return self._math(callee.name, node.arguments)
        if owner in OF_GLOBALS:
            return OF_GLOBALS[owner].get(callee.name, UNKNOWN)
        kind = self._again(callee.object)
        if kind.bits == ARRAY and callee.name in GIVING_ITEM:
            return self._item(callee.object)
        return OF_KINDS.get(kind.bits, {}).get(callee.name, UNKNOWN) if kind.bits else NOTHING

    def _math(self, name: str, arguments: Sequence[n.Expression]) -> Kind:
        if name == "floor" and len(arguments) == 1:
            return self.floor_kind(arguments[0]) or A_NUMBER
        return A_NUMBER

    def floor_kind(self, node: n.Expression) -> Kind | None:
        """The kinds of `Math.floor(a / b)` where Python's `a // b` is the same, else None."""
        inner = n.strip_parentheses(node)
        if not isinstance(inner, n.Operation) or inner.operators != ("/",):
            return None
        a, b = (self._again(operand) for operand in inner.operands)
        if not a.bits or not b.bits:
            return NOTHING
        if not a.is_whole or not b.is_whole or b.low <= 0:
            return None
        return Kind(INT, min(a.low // b.low, a.low // b.high), max(a.high // b.low, a.high // b.high))

    def _new(self, node: n.New) -> Kind:
        return OF_CLASSES.get(self.global_of(node.callee), UNKNOWN)


_COMPUTERS: dict[type, Callable[[Kinds, Any], Kind]] = {
    n.Name: Kinds._name,
    n.Parenthesized: Kinds._inside_parentheses,
    n.Literal: lambda kinds, node: literal(node.value),
    n.Text: lambda kinds, node: A_TEXT,
    n.Template: lambda kinds, node: A_TEXT,
    n.Array: lambda kinds, node: AN_ARRAY,
    n.Operation: Kinds._operation,
    n.Prefix: Kinds._prefix,
    n.Update: Kinds._update,
    n.Assignment: lambda kinds, node: compact(kinds._assigned_kind(node)),
    n.Binding: Kinds._name,
    n.Conditional: Kinds._conditional,
    n.Member: Kinds._member,
    n.Index: Kinds._index,
    n.Call: Kinds._call,
    n.New: Kinds._new,
}


def _first_operand(condition: n.Expression | None) -> n.Expression | None:
    """What a condition tests first."""
    return condition.operands[0] if _is_and(condition) else condition  # type: ignore[union-attr]


def _behind_first(condition: n.Expression) -> tuple[int, int]:
    """Where the tests of a condition stand that are made when the first one holds."""
    return (condition.operands[1].span.start, condition.span.end) if _is_and(condition) else (0, 0)  # type: ignore[attr-defined]


def _is_and(condition: n.Expression | None) -> bool:
    return isinstance(condition, n.Operation) and condition.operators[0] == "&&"


def literal(value: object) -> Kind:
    """The kind of a literal."""
    if value is None:
        return Kind(NULL)
    if isinstance(value, bool):
        return A_BOOLEAN
    if isinstance(value, int):
        return Kind(INT, value, value) if abs(value) <= MAX_SAFE_INTEGER else A_NUMBER
    return Kind(FLOAT) if isinstance(value, float) else A_TEXT


def _join(a: Kind, b: Kind) -> Kind:
    """The kinds of two values together."""
    if a == b or not b.bits:
        return a
    if not a.bits:
        return b
    if a.bits & INT and b.bits & INT:
        return Kind(a.bits | b.bits, min(a.low, b.low), max(a.high, b.high))
    return Kind(a.bits | b.bits, *((a.low, a.high) if a.bits & INT else (b.low, b.high)))


def _give_up_range(before: Kind, after: Kind) -> Kind:
    """Kinds whose range goes on growing have all whole numbers on that side."""
    result = _join(before, after)
    if not before.bits & INT:
        return result
    low = -MAX_SAFE_INTEGER if result.low < before.low else result.low
    high = MAX_SAFE_INTEGER if result.high > before.high else result.high
    return Kind(result.bits, low, high)


def _fit(low: int, high: int) -> Kind:
    """Whole numbers between two others; beyond what is exact they are numbers of any kind."""
    return Kind(INT, low, high) if -MAX_SAFE_INTEGER <= low and high <= MAX_SAFE_INTEGER else A_NUMBER


def binary(operator: str, a: Kind, b: Kind) -> Kind:
    """The kinds of `a operator b`."""
    if operator in COMPARISONS:
        return A_BOOLEAN
    if not a.bits or not b.bits:
        return NOTHING
    if operator in ("&", "|", "^", "<<", ">>", ">>>"):
        return Kind(INT, 0, 2**32 - 1) if operator == ">>>" else AN_INT32
    if operator == "+" and not (a.is_within(NUMBER) and b.is_within(NUMBER)):
        return A_TEXT if a.bits == TEXT or b.bits == TEXT else UNKNOWN
    if operator not in ("+", "-", "*", "/", "%", "**"):
        return UNKNOWN
    if not is_exact(operator, a, b):
        return _rest_of_helper(b) if operator == "%" else A_NUMBER
    if operator == "/":
        return Kind(LOOSE)
    if operator == "%":
        return Kind(INT, 0, min(a.high, b.high - 1))
    floats = LOOSE if (a.bits | b.bits) & (FLOAT | LOOSE) else 0
    return Kind(INT | floats, *_range(operator, a, b)) if a.bits & b.bits & INT else Kind(LOOSE)


def is_exact(operator: str, a: Kind, b: Kind) -> bool:
    """Whether Python's own operation on two numbers gives the same, as an `int` or as a float that may be whole."""
    if not a.is_within(NUMBER) or not b.is_within(NUMBER):
        return False
    if operator == "%":
        return a.is_index and b.is_index and b.low > 0
    if operator == "/":
        return b.is_whole and not b.low <= 0 <= b.high
    if operator not in ("+", "-", "*"):
        return False
    if not a.bits & b.bits & INT:
        return True
    low, high = _range(operator, a, b)
    is_zero = operator == "*" and (_may_be_negative_zero(a, b) or _may_be_negative_zero(b, a))
    return -MAX_SAFE_INTEGER <= low and high <= MAX_SAFE_INTEGER and not is_zero


def _range(operator: str, a: Kind, b: Kind) -> tuple[int, int]:
    """Between which numbers `a operator b` lies where both are an `int`."""
    if operator == "+":
        return a.low + b.low, a.high + b.high
    if operator == "-":
        return a.low - b.high, a.high - b.low
    ends = [a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high]
    return min(ends), max(ends)


def _may_be_negative_zero(a: Kind, b: Kind) -> bool:
    """Whether 0 times something negative may come of it."""
    return a.low <= 0 <= a.high and b.low < 0


def _rest_of_helper(b: Kind) -> Kind:
    """What remains of any number, which may be -0."""
    return Kind(INT | FLOAT, 1 - b.high, b.high - 1) if b.is_whole and b.low > 0 else A_NUMBER


def compact(kind: Kind) -> Kind:
    """The kinds of a value once whole floats have become an `int`."""
    return Kind(kind.bits & ~LOOSE | INT | FLOAT, -MAX_SAFE_INTEGER, MAX_SAFE_INTEGER) if kind.bits & LOOSE else kind


def negate_kind(kind: Kind) -> Kind:
    """The kinds of `-value`."""
    if not kind.bits:
        return NOTHING
    return Kind(INT, -kind.high, -kind.low) if kind.is_whole and not kind.low <= 0 <= kind.high else A_NUMBER
