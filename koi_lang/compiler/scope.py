"""Names in code to what they stand for: which variable, which declaration, or nothing.

JavaScript's variables live in blocks, Python's in functions. For every variable this pass finds out whether a closure
captures it, whether it is assigned again, and whether each turn of a loop needs its own; from that follows its Python
name and whether it is kept in a box.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable, Container
from dataclasses import dataclass, field
from typing import Any

from koi_lang.compiler import nodes as n
from koi_lang.compiler.walk import child_nodes, everything
from koi_lang.source import Span

# What code may mention without declaring it: the runtime's globals, and the names that belong to the current agent.
GLOBALS = frozenset(
    "console JSON Math Date Object Array Promise Number String Boolean RegExp Map Set Error TypeError "
    "RangeError SyntaxError ReferenceError AggregateError URIError parseInt parseFloat isNaN isFinite "
    "setTimeout clearTimeout setInterval clearInterval setImmediate clearImmediate queueMicrotask "
    "fetch process performance crypto undefined NaN Infinity structuredClone encodeURIComponent "
    "decodeURIComponent encodeURI decodeURI atob btoa "
    "AbortController AbortSignal DOMException Intl TextDecoder TextEncoder Uint8Array URL URLSearchParams".split()
)
AGENT_NAMES = frozenset({"this", "peers", "callAction"})
RUN_NAMES = frozenset({"registry"})
TEST_NAMES = frozenset({"output"})
EVAL_NAMES = TEST_NAMES | {"case"}
# Names that the generated modules need.
OWN_NAMES = "koi koi_lang koi_tests koi_evals this this_object scope list main".split()
ERRORS = ("Exception", "BaseException", "GeneratorExit")
PYTHON_NAMES = frozenset({*keyword.kwlist, *OWN_NAMES, *ERRORS})


def python_name(name: str) -> str:
    """A Koi name as a Python identifier; names that Python or the generated module needs get an underscore."""
    name = name.replace("$", "_S_")
    return name + "_" if name.rstrip("_") in PYTHON_NAMES else name


@dataclass(slots=True, eq=False)
class ScopeVariable:
    """A variable, parameter or local function.

    Attributes:
        function: the function whose Python variable it becomes.
        block: where it is visible.
        ready: offset from which on it has a value.
        in_loop: every turn of a loop has its own.
        header: declared in the head of a `for (;;)`; only `rewritten` counts for those.
        rewritten: assigned in a block inside of its own, or by a closure.
        python: its name in the generated code.
        writes: what stores a value in it; None stands for a value of which nothing is known.
    """

    name: str
    kind: str
    span: Span
    function: FunctionScope
    block: BlockScope
    ready: int
    in_loop: bool
    header: bool = False
    captured: bool = False
    reassigned: bool = False
    rewritten: bool = False
    early: bool = False
    used: bool = False
    python: str = ""
    writes: list[n.Node | None] = field(default_factory=list)

    @property
    def is_boxed(self) -> bool:
        """Whether closures and the loop share it through a box, a new one each turn."""
        changes = self.rewritten if self.header else self.reassigned
        return self.in_loop and self.captured and (self.early or changes)


@dataclass(slots=True, eq=False)
class BlockScope:
    """Names visible between two braces; `loops` counts the loops around it within its function."""

    parent: BlockScope | None
    function: FunctionScope
    loops: int
    variables: dict[str, ScopeVariable] = field(default_factory=dict)

    def is_within(self, other: BlockScope) -> bool:
        """Whether this block is the other one or stands in it."""
        block: BlockScope | None = self
        while block is not None:
            if block is other:
                return True
            block = block.parent
        return False


@dataclass(slots=True, eq=False)
class FunctionScope:
    """One Python function: a handler, a function, an arrow, or the body of a skill.

    Attributes:
        by_value: loop variables that the function must take along when it is created.
        nonlocals: variables of enclosing functions that it assigns.
        hoisted: the block that it is declared in, and that begins with its definition.
    """

    parent: FunctionScope | None
    node: n.Node
    hoisted: BlockScope | None = None
    variables: list[ScopeVariable] = field(default_factory=list)
    by_value: dict[ScopeVariable, None] = field(default_factory=dict)
    nonlocals: dict[ScopeVariable, None] = field(default_factory=dict)

    def is_within(self, other: FunctionScope) -> bool:
        """Whether this function is the other one or stands in it."""
        function: FunctionScope | None = self
        while function is not None and function is not other:
            function = function.parent
        return function is other


@dataclass(slots=True, eq=False)
class Resolution:
    """What the names in one piece of code stand for.

    Attributes:
        variables: the variable of every name and binding that stands for one.
        functions: the scope of every function, the root included.
        blocks: variables declared in a block, for those blocks that declare any.
        outer: names that stand for declarations, globals or the agent's own names, with where they are used.
        unknown: names that stand for nothing.
        constants: assignments to something declared with `const`.
        repeated: second declarations of one name in one block.
        assigned_outer: assignments to something that is no variable.
        loops: every `for (;;)`.
        declared: the functions of variables that were declared with `function`.
        named: for functions as values that mention a name of their own, what stands for them: a call of a function
            that declares and gives them.
    """

    variables: dict[n.Node, ScopeVariable] = field(default_factory=dict)
    functions: dict[n.Node, FunctionScope] = field(default_factory=dict)
    blocks: dict[n.Node, BlockScope] = field(default_factory=dict)
    outer: dict[str, list[n.Name]] = field(default_factory=dict)
    unknown: list[n.Name] = field(default_factory=list)
    constants: list[tuple[n.Name, ScopeVariable]] = field(default_factory=list)
    repeated: list[tuple[Span, ScopeVariable]] = field(default_factory=list)
    assigned_outer: list[n.Name] = field(default_factory=list)
    loops: list[n.For] = field(default_factory=list)
    declared: dict[ScopeVariable, n.Function] = field(default_factory=dict)
    named: dict[n.Node, n.Call] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)

    def fresh(self, base: str) -> str:
        """A Python name not used anywhere in this code."""
        name, count = base, 1
        while name in self.taken:
            count += 1
            name = f"{base}_{count}"
        self.taken.add(name)
        return name


def resolve(root: n.Node, known: Container[str]) -> Resolution:
    """Resolve a handler, a function, a skill, or a lone expression.

    Args:
        root: the code; variables it does not declare are looked up in `known`.
        known: names of declarations, globals and whatever else is in scope.
    """
    resolver = _Resolver(known)
    resolver.root(root)
    _name_variables(resolver.result)
    return resolver.result


class _Resolver:
    def __init__(self, known: Container[str]) -> None:
        self.known = known
        self.result = Resolution()
        self.block: BlockScope
        self.kinds: dict[type[n.Node], Callable[[Any], None]] = {
            n.Name: self.name,
            n.Member: lambda node: self.visit(node.object),
            n.Function: self.function_value,
            n.FunctionStatement: lambda node: self.function(node.function, self.block),
            n.Block: self.nested_block,
            n.Assignment: self.assignment,
            n.Update: self.update,
            n.ForEach: self.for_each,
            n.For: self.for_loop,
            n.While: self.while_loop,
            n.DoWhile: self.do_loop,
            n.Switch: self.switch,
            n.Try: self.try_statement,
            n.Affordance: lambda node: None,
            n.Playbook: self.playbook,
            n.Property: self.property,
            n.Literal: lambda node: None,
            n.Text: lambda node: None,
            n.Send: self.send,
        }

    # ------------------------------------------------------------ scopes

    def root(self, node: n.Node) -> None:
        function = FunctionScope(None, node)
        self.result.functions[node] = function
        self.block = BlockScope(None, function, 0)
        match node:
            case n.Handler():
                self.parameters(node.parameters)
                self.statements(node.body)
            case n.Test() | n.Eval():
                self.statements(node.body)
            case n.Skill():
                self.declare_all(node, [item for item in node.items if not isinstance(item, (n.Agent, n.Team))])
                for item in node.items:
                    if isinstance(item, (n.Variable, n.Function)):
                        self.visit(item)
            case n.Function():
                self.function(node)
            case _:
                self.visit(node)

    def visit(self, node: n.Node) -> None:
        visitor = self.kinds.get(type(node))
        if visitor is not None:
            visitor(node)
            return
        for child in child_nodes(node):
            self.visit(child)

    def function_value(self, node: n.Function) -> None:
        """A function that is a value; one that mentions a name of its own stands in a scope with that name."""
        is_declared = node in self.result.variables
        mentioned = (each for each in everything(node.body) if isinstance(each, n.Name) and each.name == node.name)
        if node.name is None or is_declared or next(mentioned, None) is None:
            self.function(node)
            return
        given = n.Return(node.span, n.Name(node.span, node.name))
        body = n.Block(node.span, (n.FunctionStatement(node.span, node), given))
        made = self.result.named[node] = n.Call(
            node.span, n.Function(node.span, None, (), body, False, is_arrow=True), ()
        )
        self.visit(made)

    def function(self, node: n.Function, hoisted: BlockScope | None = None) -> None:
        outside = self.block
        scope = FunctionScope(outside.function, node, hoisted)
        self.result.functions[node] = scope
        self.block = BlockScope(outside, scope, 0)
        self.parameters(node.parameters)
        if isinstance(node.body, n.Block):
            self.statements(node.body)
        else:
            self.visit(node.body)
        self.block = outside

    def parameters(self, parameters: tuple[n.Parameter, ...]) -> None:
        for parameter in parameters:
            self.declare(parameter.pattern, "parameter", parameter.span.end)
        for parameter in parameters:
            self.pattern(parameter.pattern)
            if parameter.default is not None:
                self.visit(parameter.default)

    def nested_block(self, node: n.Block) -> None:
        outside = self.block
        self.block = BlockScope(outside, outside.function, outside.loops)
        self.statements(node)
        self.block = outside

    def statements(self, node: n.Block) -> None:
        """The statements of a block whose scope is already open."""
        self.declare_all(node, list(node.statements))
        for statement in node.statements:
            self.visit(statement)

    def declare_all(self, node: n.Node, statements: list[Any]) -> None:
        """Enter what a block declares, before its statements: closures may mention what comes later."""
        for statement in statements:
            if isinstance(statement, n.Variable):
                for declarator in statement.declarators:
                    self.declare(declarator.pattern, statement.kind, declarator.span.end, declarator)
            elif isinstance(statement, n.FunctionStatement):
                self.declare_function(statement.function, statement.span.end)
            elif isinstance(statement, n.Function):
                self.declare_function(statement, statement.span.end)
        if self.block.variables:
            self.result.blocks[node] = self.block

    def declare_function(self, function: n.Function, ready: int) -> None:
        if function.name is not None:
            self.result.declared[self.enter(function, function.name, "function", ready)] = function

    def declare(self, pattern: n.Node, kind: str, ready: int, write: n.Node | None = None) -> None:
        if isinstance(pattern, n.Binding):
            self.enter(pattern, pattern.name, kind, ready).writes.append(write)
        elif isinstance(pattern, (n.ArrayPattern, n.ObjectPattern)):
            for element in pattern.elements:
                self.declare(element.pattern, kind, ready)

    def enter(self, node: n.Node, name: str, kind: str, ready: int) -> ScopeVariable:
        block = self.block
        variable = ScopeVariable(name, kind, node.span, block.function, block, ready, block.loops > 0)
        if name in block.variables:
            self.result.repeated.append((node.span, block.variables[name]))
        block.variables[name] = variable
        block.function.variables.append(variable)
        self.result.variables[node] = variable
        return variable

    # ------------------------------------------------------------ names

    def name(self, node: n.Name) -> None:
        variable = self.lookup(node)
        if variable is not None:
            variable.used = True

    def lookup(self, node: n.Name) -> ScopeVariable | None:
        if node.name in (n.OBJECT_THIS, n.BARE_YIELD):
            return None
        block: BlockScope | None = self.block
        while block is not None:
            variable = block.variables.get(node.name)
            if variable is not None:
                self.result.variables[node] = variable
                self.note_use(node, variable)
                return variable
            block = block.parent
        if node.name in self.known:
            self.result.outer.setdefault(node.name, []).append(node)
        else:
            self.result.unknown.append(node)
        return None

    def note_use(self, node: n.Name, variable: ScopeVariable) -> None:
        user = self.block.function
        if user is variable.function:
            return
        variable.captured = True
        if node.span.start < variable.ready:
            variable.early = True
        function = user
        while variable.kind != "function" and function.parent is not None and function is not variable.function:
            variable.early = variable.early or function.hoisted is variable.block
            function = function.parent
        while variable.in_loop and user is not variable.function:
            user.by_value[variable] = None
            assert user.parent is not None
            user = user.parent

    def assignment(self, node: n.Assignment) -> None:
        self.resolve_assignment(node.target, node)
        self.visit(node.value)

    def update(self, node: n.Update) -> None:
        self.resolve_assignment(node.target, node)

    def resolve_assignment(self, target: n.Node, write: n.Node | None = None) -> None:
        if isinstance(target, n.Name):
            self.assigned_name(target, write)
        elif isinstance(target, (n.ArrayPattern, n.ObjectPattern)):
            for element in target.elements:
                if isinstance(element.key, n.Node):
                    self.visit(element.key)
                self.resolve_assignment(element.pattern)
                if element.default is not None:
                    self.visit(element.default)
        else:
            self.visit(target)

    def assigned_name(self, node: n.Name, write: n.Node | None = None) -> None:
        variable = self.lookup(node)
        if variable is None:
            if node.name in self.known:
                self.result.assigned_outer.append(node)
            return
        is_own_name = self.result.declared.get(variable) in self.result.named
        if variable.kind == "const" or is_own_name:
            self.result.constants.append((node, variable))
        variable.reassigned = True
        variable.writes.append(write)
        variable.rewritten = variable.rewritten or self.block is not variable.block
        function = self.block.function
        if function is not variable.function:
            function.nonlocals[variable] = None

    def pattern(self, pattern: n.Node) -> None:
        """Computed keys and default values inside a pattern."""
        if isinstance(pattern, (n.ArrayPattern, n.ObjectPattern)):
            for element in pattern.elements:
                if isinstance(element.key, n.Node):
                    self.visit(element.key)
                self.pattern(element.pattern)
                if element.default is not None:
                    self.visit(element.default)

    def property(self, node: n.Property) -> None:
        if isinstance(node.key, n.Node):
            self.visit(node.key)
        self.visit(node.value)

    def send(self, node: n.Send) -> None:
        self.visit(node.base)
        self.result.taken |= {python_name(role.name) for role in node.roles}
        for argument in node.arguments:
            self.visit(argument)

    def playbook(self, node: n.Playbook) -> None:
        """Prompts and templates have names of their own kind, which no variable may hide; other rules check them."""
        mentioned = [part.name if isinstance(part, n.PromptCall) else part for part in node.parts]
        self.result.taken |= {python_name(name.name) for name in mentioned if isinstance(name, n.Name)}

    # ------------------------------------------------------------ statements with scopes of their own

    def for_each(self, node: n.ForEach) -> None:
        self.visit(node.iterable)
        outside = self.open_loop(node)
        self.declare(node.pattern, node.kind, node.pattern.span.end, node)
        self.pattern(node.pattern)
        self.nested_block(node.body)
        self.block = outside

    def for_loop(self, node: n.For) -> None:
        self.result.loops.append(node)
        outside = self.open_loop(node)
        if isinstance(node.first, n.Variable):
            for declarator in node.first.declarators:
                self.declare(declarator.pattern, node.first.kind, declarator.span.end, declarator)
            for variable in self.block.variables.values():
                variable.header = True
        for part in (node.first, node.condition, node.update):
            if part is not None:
                self.visit(part)
        self.nested_block(node.body)
        self.block = outside

    def while_loop(self, node: n.While) -> None:
        self.visit(node.condition)
        outside = self.open_loop(node)
        self.nested_block(node.body)
        self.block = outside

    def do_loop(self, node: n.DoWhile) -> None:
        outside = self.open_loop(node)
        self.nested_block(node.body)
        self.block = outside
        self.visit(node.condition)

    def switch(self, node: n.Switch) -> None:
        """One scope for all clauses, of which any may be the first: nothing in it surely has a value."""
        self.visit(node.subject)
        outside = self.block
        self.block = BlockScope(outside, outside.function, outside.loops)
        self.declare_all(node, [statement for clause in node.clauses for statement in clause.body.statements])
        for variable in self.block.variables.values():
            variable.ready = node.span.end
        for clause in node.clauses:
            for part in (clause.test, *clause.body.statements):
                if part is not None:
                    self.visit(part)
        self.block = outside

    def open_loop(self, node: n.Node) -> BlockScope:
        outside = self.block
        self.block = BlockScope(outside, outside.function, outside.loops + 1)
        self.result.blocks[node] = self.block
        return outside

    def try_statement(self, node: n.Try) -> None:
        self.nested_block(node.body)
        if node.handler is not None:
            outside = self.block
            self.block = BlockScope(outside, outside.function, outside.loops)
            if node.error is not None:
                self.declare(node.error, "catch", node.error.span.end)
                self.pattern(node.error)
            self.nested_block(node.handler)
            self.block = outside
        if node.finalizer is not None:
            self.nested_block(node.finalizer)


def _name_variables(result: Resolution) -> None:
    """Choose Python names: the Koi name where that is safe, else the name with a number."""
    outer = {python_name(name) for name in result.outer} | result.taken
    result.taken |= outer | PYTHON_NAMES
    chosen: dict[str, list[ScopeVariable]] = {}
    for function in result.functions.values():
        for variable in function.variables:
            base, count = python_name(variable.name), 1
            name = base
            while name in outer or any(_collide(variable, other) for other in chosen.get(name, ())):
                count += 1
                name = f"{base}_{count}"
            variable.python = name
            chosen.setdefault(name, []).append(variable)
            result.taken.add(name)


def _collide(one: ScopeVariable, other: ScopeVariable) -> bool:
    """Whether two variables may not share a Python name."""
    if one.function is other.function:
        nested = one.block.is_within(other.block) or other.block.is_within(one.block)
        return nested or one.captured or other.captured
    return one.function.is_within(other.function) or other.function.is_within(one.function)
