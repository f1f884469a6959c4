"""The state of generating one piece of code: places, names, and definitions waiting to be put before a statement."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from koi_lang.compiler import nodes as n
from koi_lang.compiler.codegen import py_ast as py
from koi_lang.compiler.codegen.module_names import ModuleNames
from koi_lang.compiler.kinds import Kinds
from koi_lang.compiler.scope import FunctionScope, Resolution, ScopeVariable
from koi_lang.source import Source, Span


@dataclass(slots=True, eq=False)
class LoopFrame:
    """A loop of Python that jumps may leave; that of a `switch` or a labelled block runs once.

    Attributes:
        kind: what it was in the program.
        labels: its labels there.
        updates: statements that `continue` has to run first.
        flags: variables that say that a jump from an inner frame goes on here: as `continue` (true) or `break`.
        exits: jumps that go on behind this frame: the variable, the frame where they end, and whether to `continue` it.
    """

    kind: Literal["loop", "switch", "block"]
    labels: tuple[str, ...] = ()
    updates: list[ast.stmt] = field(default_factory=list)
    flags: dict[bool, str] = field(default_factory=dict)
    exits: dict[str, tuple[LoopFrame, bool]] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Emitter:
    """What the emitters of one handler, function, skill or lone expression share.

    Attributes:
        source: where the code stands; places are computed in it.
        pending: definitions of functions that must stand before the statement being generated.
        frames: the loops of Python around the statement, from the outside.
        labels: those of the statement being generated.
        dropped: jumps that nothing has to be done for.
        jumped: the variables that jumps have set so far, in order.
        finalizers: for each `finally` around the statement, how many frames are around it, and the variables of jumps
            that wait for its end; a jump out of it takes their place.
        function: the innermost function.
        locals: names with a meaning of their own, in templates.
        lenient: whether a member of something missing is missing too, as in templates.
        fixed: the place of everything, for code that stands in no file of its own.
        has_agent: whether `this` exists.
        servers: names of the MCP servers that the code may mention.
        is_lone: whether the code stands at the top of the module, whose names it must not take.
        in_test: whether the code is a test, or an eval, which calls handlers by their names.
        in_eval: whether the code is an eval, which goes on where an expectation does not hold.
        early: variables that have no value yet where the default of a parameter is computed.
        result_type: the name of the type that results of the innermost function must have; empty for any.
        kinds: of which kinds the values of expressions are.
    """

    source: Source
    names: ModuleNames
    resolution: Resolution
    function: FunctionScope
    has_agent: bool
    pending: list[ast.stmt] = field(default_factory=list)
    frames: list[LoopFrame] = field(default_factory=list)
    labels: tuple[str, ...] = ()
    dropped: set[n.Node] = field(default_factory=set)
    jumped: list[str] = field(default_factory=list)
    finalizers: list[tuple[int, list[str]]] = field(default_factory=list)
    locals: Mapping[str, Callable[[py.At], ast.expr]] = field(default_factory=dict)
    lenient: bool = False
    fixed: py.At | None = None
    servers: frozenset[str] = frozenset()
    is_lone: bool = False
    in_test: bool = False
    in_eval: bool = False
    early: Sequence[ScopeVariable] = ()
    result_type: str = ""
    kinds: Kinds = field(init=False)

    def __post_init__(self) -> None:
        self.kinds = Kinds(self.resolution, self.names.declared)

    def at(self, span: Span) -> py.At:
        """A span as Python places it."""
        if self.fixed is not None:
            return self.fixed
        position = self.source.python_position
        line, column = position(span.start)
        end_line, end_column = position(span.end)
        return {"lineno": line, "col_offset": column, "end_lineno": end_line, "end_col_offset": end_column}

    def variable(self, node: n.Node) -> ScopeVariable | None:
        """The variable that a name or binding stands for."""
        return self.resolution.variables.get(node)

    def fresh(self, base: str) -> str:
        """A Python name that nothing else in this code has."""
        if self.is_lone:
            return self.names.fresh(base)
        name = self.resolution.fresh(base)
        while not self.names.claim(name):
            name = self.resolution.fresh(base)
        return name

    @property
    def is_generator(self) -> bool:
        """Whether the innermost function is a generator."""
        return isinstance(self.function.node, n.Function) and self.function.node.is_generator

    @property
    def is_async_generator(self) -> bool:
        """Whether the innermost function is a generator that may wait."""
        node = self.function.node
        return isinstance(node, n.Function) and node.is_generator and node.is_async

    @contextmanager
    def inside(self, function: FunctionScope) -> Iterator[list[ast.stmt]]:
        """Generate the body of a nested function; yields the definitions that must stand before its statements."""
        saved = self.function, self.pending, self.frames, self.labels, self.result_type, self.early
        self.function = function
        self.pending = []
        self.frames = []
        self.labels = ()
        self.result_type = ""
        self.early = ()
        try:
            yield self.pending
        finally:
            self.function, self.pending, self.frames, self.labels, self.result_type, self.early = saved
