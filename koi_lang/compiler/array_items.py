"""Which values are stored in the arrays that a piece of code makes and that nothing else can change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from koi_lang.compiler import nodes as n
from koi_lang.compiler.operators import LAZY
from koi_lang.compiler.scope import Resolution, ScopeVariable
from koi_lang.compiler.walk import child_nodes

# Methods by what becomes of the array: it takes the arguments; the result is an item, or has the same items.
STORING = frozenset({"push", "unshift", "fill"})
GIVING_ITEM = frozenset({"pop", "shift", "at", "find", "findLast"})
GIVING_ITEMS = frozenset({"slice", "splice", "toReversed", "reverse", "filter", "sort", "toSorted", "fill"})
# Those that need no function, and those that call one with an item and its index, or with two items.
PLAIN = frozenset(
    {"join", "includes", "indexOf", "lastIndexOf", "pop", "shift", "at", "slice", "toReversed", "reverse"}
)
CALLING = frozenset({"map", "filter", "forEach", "some", "every", "find", "findLast", "findIndex", "findLastIndex"})
ORDERING = frozenset({"sort", "toSorted"})
FOLDING = frozenset({"reduce", "reduceRight"})
# Expressions that are no arrays, and nothing whose members could be called with one.
PRIMITIVE = (n.Literal, n.Text, n.Template, n.Prefix, n.Update)
# What only looks at its parts, or passes them on to what stands around it.
LOOKING = frozenset(
    (
        *(n.Parenthesized, n.Template, n.Conditional, n.Operation, n.Sequence),
        *(n.ExpressionStatement, n.If, n.While, n.DoWhile, n.For, n.Block, n.Variable, n.FunctionStatement),
        n.Labelled,
    )
)
LEAVES = frozenset((n.Name, n.Literal, n.Text, n.Binding, n.Break, n.Continue))
LOOKING_GLOBALS = frozenset({"console", "Math"})


@dataclass(slots=True, eq=False)
class Items:
    """The items of arrays any of which may be the same array.

    Attributes:
        stores: expressions whose values are stored.
        indexes: those by which items are read and stored; where one is no number it may name a method.
        inner: the items of those items that are arrays.
        holders: the items among which these arrays are.
        is_open: whether unknown code may change the arrays.
        same: the items with which these were joined.
    """

    stores: list[n.Node] = field(default_factory=list)
    indexes: list[n.Expression] = field(default_factory=list)
    inner: Items | None = None
    holders: list[Items] = field(default_factory=list)
    is_open: bool = False
    same: Items | None = None

    def first(self) -> Items:
        """The items that stand for all that were joined with these."""
        items = self
        while items.same is not None:
            items = items.same
        return items

    def inside(self) -> Items:
        """The items of the arrays among these items."""
        items = self.first()
        if items.inner is None:
            items.inner = Items(holders=[items])
        return items.inner.first()

    def join(self, other: Items) -> None:
        """Have both stand for the same items."""
        items, other = self.first(), other.first()
        if items is other:
            return
        other.same = items
        items.stores += other.stores
        items.indexes += other.indexes
        items.holders += other.holders
        items.is_open = items.is_open or other.is_open
        inner, items.inner = other.inner, items.inner or other.inner
        if inner is not None and items.inner is not None:
            items.inner.join(inner)


class ArrayItems:
    """The items of all arrays of one piece of code, found by one walk through it.

    Attributes:
        parameters: what parameters of callbacks are given: items, expressions, or None for an index.
    """

    def __init__(self, resolution: Resolution, global_of: Callable[[n.Node], str]) -> None:
        """`global_of` gives the name of the global that a node stands for, else an empty text."""
        self._resolution, self._global_of = resolution, global_of
        self._variables: dict[ScopeVariable, Items] = {}
        self._made: dict[n.Node, Items] = {}
        self._returns: dict[n.Function, list[n.Expression | None]] = {}
        self._looked_at: set[n.Node] = set()
        self._maps: list[tuple[Items, n.Function]] = []
        self._folds: list[tuple[ScopeVariable, n.Function]] = []
        self.parameters: dict[ScopeVariable, list[Items | n.Node | None]] = {}
        for root in [*resolution.functions][:1]:
            self._walk(root)
        for items, function in self._maps:
            for value in self._results(function):
                self._store(items.first(), value)
        for variable, function in self._folds:
            results = self._results(function)
            self.parameters[variable] += results
            for value in results:
                self._flow_into(variable, value)
        for scope in resolution.functions.values():
            for variable in scope.variables:
                if variable.captured or (None in variable.writes and variable not in self.parameters):
                    self._of_variable(variable).is_open = True

    def of(self, node: n.Node) -> Items | None:
        """The items of an array that no unknown code can change; None for everything else."""
        items = self._of(node)
        return None if items is None or _is_open(items.first(), set()) else items.first()

    def list_closed(self) -> list[Items]:
        """The items of all arrays that no unknown code can change."""
        everything = {id(each.first()): each.first() for each in (*self._variables.values(), *self._made.values())}
        return [items for items in everything.values() if not _is_open(items, set())]

    # ------------------------------------------------------------ arrays

    def _of_variable(self, variable: ScopeVariable) -> Items:
        return self._variables.setdefault(variable, Items()).first()

    def _of(self, node: n.Node | None) -> Items | None:
        """The items of an expression that may be an array."""
        match node:
            case n.Parenthesized() | n.Assignment(operator=""):
                return self._of(node.value)
            case n.Sequence():
                return self._of(node.expressions[-1])
            case n.Name():
                variable = self._resolution.variables.get(node)
                return None if variable is None else self._of_variable(variable)
            case n.Array():
                return self._made.setdefault(node, Items()).first()
            case n.Index():
                holder = self._of(node.object)
                return None if holder is None else holder.inside()
            case n.Conditional():
                return self._join((node.then, node.otherwise))
            case n.Operation() if node.operators[0] in LAZY:
                return self._join(node.operands)
            case n.New() | n.Call():
                return self._of_call(node)
        return None

    def _join(self, nodes: tuple[n.Expression, ...]) -> Items | None:
        """The items of one of several expressions."""
        parts = [self._of(node) for node in nodes if not isinstance(n.strip_parentheses(node), PRIMITIVE)]
        arrays = [items for items in parts if items is not None]
        for items in arrays:
            arrays[0].join(items)
            items.first().is_open |= len(arrays) < len(parts)
        return arrays[0].first() if arrays else None

    def _of_call(self, node: n.New | n.Call) -> Items | None:
        callee = node.callee
        if self._global_of(callee) == "Array":
            return self._made.setdefault(node, Items()).first()
        if isinstance(node, n.New) or not isinstance(callee, n.Member):
            return None
        if self._global_of(callee.object):
            is_array = (self._global_of(callee.object), callee.name) in (("Array", "from"), ("Object", "keys"))
            return self._made.setdefault(node, Items()).first() if is_array else None
        if callee.name in ("map", "split") or (callee.name == "fill" and self._is_filled(node)):
            return self._made.setdefault(node, Items()).first()
        items = self._of(callee.object)
        if items is None or callee.name in GIVING_ITEMS:
            return items
        return items.inside() if callee.name in GIVING_ITEM else None

    def _is_filled(self, node: n.Call) -> bool:
        """Whether an array is made and filled at once: `new Array(n).fill(0)`."""
        made = n.strip_parentheses(node.callee.object) if isinstance(node.callee, n.Member) else None
        is_made = isinstance(made, (n.New, n.Call)) and self._global_of(made.callee) == "Array"
        return is_made and len(node.arguments) == 1 and not isinstance(node.arguments[0], n.Spread)

    # ------------------------------------------------------------ walk

    def _walk(self, root: n.Node) -> None:
        """Note what each part of the code does with arrays. What functions return goes anywhere, but for the root."""
        waiting: list[tuple[n.Node, list[n.Expression | None] | None]] = [(root, [])]
        while waiting:
            node, returns = waiting.pop()
            if type(node) in LEAVES:
                continue
            if isinstance(node, n.Return):
                if returns is None:
                    self._open(node.value)
                else:
                    returns.append(node.value)
            elif isinstance(node, n.Function) and node is not root:
                returns = self._returns.get(node)
                if not isinstance(node.body, n.Block):
                    if returns is None:
                        self._open(node.body)
                    else:
                        returns.append(node.body)
            elif type(node) not in LOOKING and node not in self._looked_at:
                self._note(node)
            waiting += [(child, returns) for child in child_nodes(node)]

    def _open(self, node: n.Node | None) -> None:
        items = self._of(node)
        if items is not None:
            items.is_open = True

    def _note(self, node: n.Node) -> None:
        """Note what a statement or expression does with the arrays in it: by default anything."""
        match node:
            case n.Declarator(pattern=n.Binding() as binding):
                self._flow(binding, node.value)
            case n.Assignment():
                self._note_assignment(node)
            case n.Array():
                for item in node.items:
                    self._store(self._of(node), item)
            case n.ForEach(pattern=n.Binding() as binding, over="of", waits=False) if self._of(node.iterable):
                self._flow_items(binding, node.iterable)
            case n.New() | n.Call():
                self._note_call(node)
            case n.Index() | n.Member() | n.Update() | n.Prefix() | n.Element():
                self._note_member(node)
            case _:
                for child in child_nodes(node):
                    self._open(child)

    def _note_member(self, node: n.Index | n.Member | n.Update | n.Prefix | n.Element) -> None:
        """Note what is read, counted on, removed, or stored by a pattern."""
        match node:
            case n.Index():
                holder = self._of(node.object)
                if holder is not None:
                    holder.indexes.append(node.index)
                self._open(node.index)
            case n.Update(target=n.Index() as target):
                self._store(self._of(target.object), node)
                self._store(self._of(target.object), _nothing(node))
            case (
                n.Update(target=n.Member() as member)
                | n.Prefix(operator="delete", operand=(n.Index() | n.Member()) as member)
            ):
                self._open(member.object)
            case n.Element():
                self._open(node.default)
                self._open(node.pattern.object if isinstance(node.pattern, n.Index | n.Member) else None)
            case n.Member() if node.name != "length":
                self._open(node.object)

    def _note_assignment(self, node: n.Assignment) -> None:
        match node.target:
            case n.Name() if not node.operator or node.operator in LAZY:
                self._flow(node.target, node.value)
            case n.Name():
                pass
            case n.Index() as target:
                self._store(self._of(target.object), node if node.operator else node.value)
                self._store(self._of(target.object), _nothing(node))
                if node.operator:
                    self._open(node.value)
            case n.Member() as target:
                self._open(target.object)
                self._open(node.value)
            case _:
                self._open(node.value)

    def _flow(self, target: n.Node, value: n.Expression | None) -> None:
        """Note that a variable gets a value."""
        variable = self._resolution.variables.get(target)
        if variable is None:
            self._open(value)
        else:
            self._flow_into(variable, value)

    def _flow_into(self, variable: ScopeVariable, value: n.Node | None) -> None:
        items = self._of(value)
        if items is not None:
            self._of_variable(variable).join(items)
        elif value is not None and not isinstance(value, PRIMITIVE):
            self._of_variable(variable).is_open = True

    def _flow_items(self, target: n.Node, array: n.Expression) -> None:
        """Note that a variable gets the items of an array."""
        variable, items = self._resolution.variables.get(target), self._of(array)
        if variable is not None and items is not None:
            self._of_variable(variable).join(items.inside())

    def _store(self, items: Items | None, value: n.Node) -> None:
        """Note that a value becomes an item."""
        if items is None:
            self._open(value)
            return
        items.stores.append(value)
        stored = self._of(value)
        if stored is not None:
            items.inside().join(stored)
        elif not isinstance(value, PRIMITIVE):
            items.inside().is_open = True

    # ------------------------------------------------------------ calls

    def _note_call(self, node: n.New | n.Call) -> None:
        if isinstance(node.callee, n.Member):
            self._looked_at.add(node.callee)
            if self._global_of(node.callee.object) in LOOKING_GLOBALS:
                self._looked_at.update(each for each in node.arguments if isinstance(each, n.Spread))
                return
        if any(isinstance(each, n.Spread) for each in node.arguments) or not self._is_known_call(node):
            self._open(node)
            for child in (*child_nodes(node), *child_nodes(node.callee)):
                self._open(child)

    def _is_known_call(self, node: n.New | n.Call) -> bool:
        """Note what a call does with arrays; gives whether that is all it does with them."""
        callee, arguments = node.callee, node.arguments
        if isinstance(node, n.New) or not isinstance(callee, n.Member) or callee.optional or node.optional:
            return False
        owner, items = self._global_of(callee.object), self._of(callee.object)
        name = callee.name
        if owner:
            return self._is_known_global(node, (owner, name))
        if name == "split":
            text = n.Call(node.span, n.Member(node.span, callee.object, "trim", node.span), ())
            self._store(self._of(node), text)
            return True
        if name == "fill" and self._is_filled(node):
            self._store(self._of(node), arguments[0])
            return True
        if items is None:
            return False
        if name in STORING or name == "splice":
            for value in arguments[2:] if name == "splice" else arguments[:1] if name == "fill" else arguments:
                self._store(items, value)
            return True
        is_plain = name in PLAIN or (name in ORDERING and not arguments)
        return is_plain or self._is_known_callback(node, name, items)

    def _is_known_global(self, node: n.Call, name: tuple[str, str]) -> bool:
        match name, node.arguments:
            case ("Array", "isArray"), _:
                return True
            case ("Object", "keys"), (argument,):
                self._open(argument)
                self._store(self._of(node), n.Text(node.span, "", None))
                return True
            case ("Array", "from"), (
                n.Object(properties=(n.Property(key="length", accessor=""),)),
                n.Function() as function,
            ):
                parameters = self._parameters_of(function, 2)
                values: list[list[Items | n.Node | None]] = [[_nothing(node)], [None]]
                if parameters is not None:
                    self._take(node, function, [*zip(parameters, values, strict=False)])
                return parameters is not None
        return False

    def _is_known_callback(self, node: n.Call, name: str, items: Items) -> bool:
        """Note what the function of a call like `items.map(item => …)` is given and gives."""
        callee = node.callee
        assert isinstance(callee, n.Member)
        function = n.strip_parentheses(node.arguments[0]) if node.arguments else None
        shapes = {1: CALLING | ORDERING, 2: FOLDING}
        if not isinstance(function, n.Function) or name not in shapes.get(len(node.arguments), ()):
            return False
        parameters = self._parameters_of(function, 3 if name in FOLDING else 2)
        if parameters is None:
            return False
        if name in FOLDING:
            values: list[list[Items | n.Node | None]] = [[node.arguments[1]], [items], [None]]
            if parameters:
                self._folds.append((parameters[0], function))
                self._flow(function.parameters[0].pattern, node.arguments[1])
            item = 1
        else:
            values, item = [[items], [items] if name in ORDERING else [None]], 0
        for parameter in function.parameters[item : item + 1 + (name in ORDERING)]:
            self._flow_items(parameter.pattern, callee.object)
        self._take(node if name == "map" else None, function, [*zip(parameters, values, strict=False)])
        return True

    def _parameters_of(self, function: n.Function, most: int) -> list[ScopeVariable] | None:
        """The parameters of a callback that gets no more than `most` plain ones; None for any other function."""
        is_special = function.is_async or function.is_generator or function.takes_this
        if is_special or len(function.parameters) > most or not all(each.is_plain for each in function.parameters):
            return None
        return [self._resolution.variables[each.pattern] for each in function.parameters]

    def _take(
        self,
        mapped: n.Call | None,
        function: n.Function,
        values: list[tuple[ScopeVariable, list[Items | n.Node | None]]],
    ) -> None:
        """Note the values of a callback's parameters; what it returns becomes items of `mapped`."""
        self.parameters.update(values)
        self._returns[function] = []
        if mapped is not None:
            self._maps.append((self._made.setdefault(mapped, Items()), function))

    def _results(self, function: n.Function) -> list[n.Node]:
        values: list[n.Node] = [value or _nothing(function) for value in self._returns[function]]
        body = function.body
        if isinstance(body, n.Block) and not (body.statements and isinstance(body.statements[-1], n.Return)):
            values.append(_nothing(function))
        return values


def _nothing(node: n.Node) -> n.Expression:
    """An expression whose value is undefined."""
    return n.Prefix(node.span, "void", n.Literal(node.span, 0))


def _is_open(items: Items, seen: set[int]) -> bool:
    """Whether unknown code may change arrays, or those that hold them."""
    items = items.first()
    if id(items) in seen:
        return False
    seen.add(id(items))
    return items.is_open or any(_is_open(holder, seen) for holder in items.holders)
