"""A program that grows entry by entry, as a person types it: declarations stay, statements share their variables.

Each entry is a module at a path that no file has; tracebacks find its text in `linecache`. Declarations import those
before them. Statements become a handler, whose outermost variables are made global names of one name space, so that
entries and closures see the same ones.
"""

from __future__ import annotations

import ast
import linecache
import re
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from types import CodeType
from typing import Any

from koi_lang.compiler import kinds
from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.compile import check_program, generate
from koi_lang.compiler.imports import Unit
from koi_lang.compiler.kinds import Kinds
from koi_lang.compiler.module_code import compile_module
from koi_lang.compiler.parser import parse
from koi_lang.compiler.scope import ScopeVariable
from koi_lang.compiler.symbols import own_symbols
from koi_lang.compiler.walk import everything
from koi_lang.diagnostics import CompileError, Diagnostic, LabeledSpan
from koi_lang.errors import UsageError
from koi_lang.js.conversions import number
from koi_lang.js.undefined import undefined
from koi_lang.program.loader import PREFIX
from koi_lang.program.typed_code import AGENT, EVENT, TextFiles, TypedCode, split, visible_names, wrapper
from koi_lang.runtime.modules.koi_module import KoiModule
from koi_lang.runtime.run import Run
from koi_lang.source import Source, Span

# Warnings of what nothing uses, which the next entry may, and of a text alone, which is shown.
UNUSED = frozenset({"E0241", "E0246", "E0323"})
# How kinds of values are called.
KINDS = {
    **dict.fromkeys((kinds.INT, kinds.FLOAT, kinds.LOOSE), "number"),
    kinds.TEXT: "string",
    kinds.BOOLEAN: "boolean",
    kinds.ARRAY: "array",
    kinds.MAP: "Map",
    kinds.SET: "Set",
    kinds.UNDEFINED: "undefined",
    kinds.NULL: "null",
    kinds.OTHER: "any",
}
Step = Callable[[Run], Awaitable[Any]]
Handler = ast.FunctionDef | ast.AsyncFunctionDef


def outermost_variables(file: Analysis, name: str) -> list[ScopeVariable]:
    """The parameters and the variables that the first block of a handler declares."""
    for root, code in file.code.items():
        if getattr(getattr(root, "name", None), "name", None) == name:
            variables = code.functions[root].variables
            return [variable for variable in variables if variable.block.parent is None]
    raise AssertionError(f"no handler `{name}`")


def share_variables(handler: Handler, names: Sequence[str], given: int, *, gives_last: bool) -> None:
    """Rewrite a generated handler in place.

    Args:
        names: Python names that become global.
        given: how many of them the handler is given, which are there already.
        gives_last: whether the value of its last statement is its result.
    """
    if given:  # one statement opens the payload, and one for each name takes it out
        del handler.body[: given + 1]
    last = handler.body[-2] if len(handler.body) > 1 else None
    if gives_last and isinstance(last, ast.Expr):
        handler.body[-2:] = [ast.copy_location(ast.Return(last.value), last)]
    for node in list(ast.walk(handler)):
        if isinstance(node, Handler) and node is not handler:
            node.body = list(chain.from_iterable(_divide_nonlocal(each, frozenset(names)) for each in node.body))
    if names:
        handler.body.insert(0, ast.copy_location(ast.Global(sorted(names)), handler.body[0]))


def _divide_nonlocal(statement: ast.stmt, shared: Set[str]) -> list[ast.stmt]:
    """A statement, where it is `nonlocal` one for the names that remain so and one for those that are global now."""
    if not isinstance(statement, ast.Nonlocal):
        return [statement]
    inner = [name for name in statement.names if name not in shared]
    outer = [name for name in statement.names if name in shared]
    divided: list[ast.stmt] = [*([ast.Nonlocal(inner)] if inner else []), *([ast.Global(outer)] if outer else [])]
    return [ast.copy_location(each, statement) for each in divided]


def shift_lines(tree: ast.AST, lines: int) -> None:
    """Take lines away that stand before the text of a person; what stood in them counts as its first line."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt | ast.expr | ast.arg | ast.keyword | ast.excepthandler):
            continue
        end = node.end_lineno or node.lineno
        if node.lineno <= lines:
            node.lineno, node.col_offset = lines + 1, 0
        if end <= lines:
            end, node.end_col_offset = lines + 1, 0
        node.lineno, node.end_lineno = node.lineno - lines, end - lines


@dataclass(frozen=True, slots=True)
class Entry:
    """What came of an entry.

    Attributes:
        declared: the names that it declares.
        steps: what it has the run do, in order; statements give the value of their last one.
        warnings: what the checks say.
        has_restarted: whether all agents begin anew, since a declaration took the place of an earlier one.
    """

    declared: Sequence[str] = ()
    steps: Sequence[Step] = ()
    warnings: Sequence[Diagnostic] = ()
    has_restarted: bool = False


@dataclass(frozen=True, slots=True)
class _Part:
    """The declarations, or the statements, of an entry, and the lines that stand before and behind them."""

    path: str
    text: str
    head: str = ""
    tail: str = ""

    @property
    def source(self) -> str:
        return f"{self.head}\n{self.text}\n{self.tail}"

    @property
    def unit(self) -> Unit:
        source = Source(self.path, self.text)
        return Unit(self.path, source, parse(source)[0])

    @property
    def names(self) -> set[tuple[str, str]]:
        return {(symbol.kind, symbol.name) for symbol in own_symbols(self.unit)}


class InteractiveProgram:
    """The program of a person who types it.

    Args:
        folder: that relative imports start from.

    Attributes:
        module: holds the variables of all statements, and leads to all declarations.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder.as_posix()
        self._count = 0
        self._parts: list[_Part] = []
        self._python_names: dict[str, str] = {}
        self._constants: set[str] = set()
        self.module = KoiModule("repl")
        self.module.__file__ = f"{self._folder}/<repl>.koi"

    @property
    def variables(self) -> Mapping[str, Any]:
        """The variables of all statements, with their values."""
        values = vars(self.module)
        return {name: values[python] for name, python in self._python_names.items() if python in values}

    def enter(self, text: str) -> Entry:
        """Take in what was typed, and give what the run is to do.

        Raises:
            CompileError: it has errors; nothing of it counts.
            UsageError: it assigns to a constant of an earlier entry.
        """
        self._count += 1
        path = f"{self._folder}/<{self._count}>.koi"
        code, before = split(Source(path, text)), self._parts
        entry = self._declare(_Part(path, code.declarations)) if code.program.declarations else Entry()
        if not code.has_statements:
            return entry
        try:
            step, warnings = self._compile_step(f"{self._folder}/<{self._count}.2>.koi", code)
        except (CompileError, UsageError):
            self._parts = before
            raise
        return replace(entry, steps=(*entry.steps, step), warnings=(*entry.warnings, *warnings))

    def _check(self, part: _Part, texts: Mapping[str, str]) -> tuple[Analysis, ast.Module, Sequence[Diagnostic]]:
        """A part as Python, without the lines around it, and the warnings about it. Raises CompileError."""
        files = TextFiles({**texts, part.path: part.source})
        checked = check_program(part.path, files)
        problems = [own for each in checked.diagnostics if (own := _own_problem(each, part)) is not None]
        errors = [problem for problem in problems if problem.severity == "error"]
        if checked.errors:
            raise CompileError(errors or checked.errors)
        tree = generate(checked.files[0])
        shift_lines(tree, part.head.count("\n") + 1)
        return checked.files[0], tree, problems

    # ------------------------------------------------------------ declarations

    def _declare(self, part: _Part) -> Entry:
        """Take in declarations; earlier ones of the same names go, and then all modules are loaded anew."""
        kept = [_without(each, part.names) for each in self._parts]
        has_restarted = [each.text for each in kept] != [each.text for each in self._parts]
        parts = [*(each for each in kept if each.text.strip()), part]
        if has_restarted:  # what stands before may mention what has been declared again
            parts = [replace(each, head=_imports([other for other in parts if other is not each])) for each in parts]
        else:
            parts[-1] = replace(part, head=_imports(parts[:-1]))
        texts = {each.path: each.source for each in parts}
        new = parts if has_restarted else parts[-1:]
        compiled = [(each, *self._check(each, texts)) for each in new]
        self._load({each: _code_of(tree, each) for each, _, tree, _ in compiled})
        self._forget({each.path for each in self._parts} - {each.path for each in parts})
        self._parts = parts
        main = vars(sys.modules[PREFIX + part.path]).get("main")
        steps = () if main is None else (partial(_run_main, main),)
        return Entry(sorted(name for _, name in part.names), steps, compiled[-1][3], has_restarted)

    def _forget(self, paths: set[str]) -> None:
        """Have the modules of parts that are gone lead to nothing any more."""
        for path in paths:
            sys.modules.pop(PREFIX + path, None)
            vars(self.module).pop(f"koi_{Path(path).stem}", None)

    def _load(self, codes: Mapping[_Part, CodeType]) -> None:
        """Make the modules of parts, which may import each other."""
        modules = {part: KoiModule(Path(part.path).stem) for part in codes}
        for part, module in modules.items():
            module.__file__ = part.path
            sys.modules[PREFIX + part.path] = module
        for part, code in codes.items():
            exec(code, vars(modules[part]))
            setattr(self.module, f"koi_{modules[part].__name__}", modules[part])

    # ------------------------------------------------------------ statements

    def declaration_of(self, name: str) -> str:
        """The text of the declaration of a name that was typed; empty where there is none."""
        for part in reversed(self._parts):
            for _, text in _declaration_texts(part):
                if name in {known for _, known in replace(part, text=text).names}:
                    return text
        return ""

    def kind_of(self, expression: str) -> str:
        """The kinds of values that an expression may give, as far as the compiler knows; nothing is computed.

        Raises CompileError.
        """
        path = f"{self._folder}/<type>.koi"
        text = f"({expression}\n)"
        part, texts, _ = self._wrap_statements(path, text, _statements_in(text))
        file, _, _ = self._check(part, texts)
        root = next(node for node, _ in file.index.of(n.Handler))
        statement = root.body.statements[-1]
        assert isinstance(statement, n.ExpressionStatement), "an expression in parentheses"
        bits = Kinds(file.code[root], file.table.values).of(statement.expression).bits
        return " | ".join(dict.fromkeys(name for bit, name in KINDS.items() if bits & bit)) or "never"

    def _wrap_statements(
        self, path: str, text: str, statements: Sequence[n.Statement]
    ) -> tuple[_Part, Mapping[str, str], int]:
        """Statements in a handler that is given the variables which they mention, and how many these are."""
        imports, texts = _imports(self._parts), {each.path: each.source for each in self._parts}
        declared = {name for name, _ in _declared_variables(statements)}
        given = [name for name in self._python_names if name not in declared and _mentions(text, name)]
        head, tail = wrapper(visible_names(Source(path, imports), texts), text, given)
        return _Part(path, text, f"{imports}{head}", tail), texts, len(given)

    def _compile_step(self, path: str, code: TypedCode) -> tuple[Step, Sequence[Diagnostic]]:
        """What carries statements out, and what the checks say of them."""
        text = code.source.text[code.statements :]
        statements = _statements_in(text)
        part, texts, given = self._wrap_statements(path, text, statements)
        file, tree, warnings = self._check(part, texts)
        found = outermost_variables(file, EVENT)
        for variable in found:
            if variable.name in self._constants and variable.kind == "parameter" and variable.reassigned:
                help = "Declare it again with `let`."
                raise UsageError(f"`{variable.name}` is a constant", help=help)
        gives_last = bool(statements) and isinstance(statements[-1], n.ExpressionStatement)
        shared = [variable.python for variable in found]
        share_variables(_handler_in(tree), shared, given, gives_last=gives_last)
        compiled = _code_of(tree, part)
        declared = dict(_declared_variables(statements))

        async def step(run: Run) -> Any:
            self._python_names |= {variable.name: variable.python for variable in found}
            self._constants = {
                *(self._constants - declared.keys()),
                *(name for name in declared if declared[name] == "const"),
            }
            space = vars(self.module)
            space["__file__"] = path
            exec(compiled, space)
            try:
                return await run.call(space.pop(AGENT), EVENT, {})
            finally:
                space |= {name: number(space[name]) for name in shared if type(space.get(name)) is float}

        return step, warnings


async def _run_main(main: Callable[[], Awaitable[None]], run: Run) -> Any:
    """Carry out `run` statements, which give nothing."""
    await main()
    return undefined


def _code_of(tree: ast.Module, part: _Part) -> CodeType:
    """The code of a part, whose lines tracebacks find from now on."""
    linecache.cache[part.path] = (len(part.text), None, part.text.splitlines(keepends=True), part.path)
    return compile_module(tree, part.path)


def _handler_in(tree: ast.Module) -> ast.AsyncFunctionDef:
    """The handler that statements became."""
    found = (node for node in ast.walk(tree) if isinstance(node, ast.AsyncFunctionDef) and node.name == EVENT)
    return next(found)


def _imports(parts: Sequence[_Part]) -> str:
    """Lines that bring what earlier entries declare: by import, or again where imports do not bring it."""
    lines = [f'import "./{Path(part.path).name}"' for part in parts]
    again = [text for part in parts for node, text in _declaration_texts(part) if _is_local(node)]
    return "".join(f"{line}\n" for line in (*lines, *again))


def _declaration_texts(part: _Part) -> list[tuple[n.Declaration, str]]:
    """The declarations of a part, each with its text, up to the next one."""
    nodes = part.unit.program.declarations
    starts = [node.span.start for node in nodes]
    ends = [*starts[1:], len(part.text)]
    return [(node, part.text[start:end].strip()) for node, start, end in zip(nodes, starts, ends, strict=True)]


def _is_local(node: n.Declaration) -> bool:
    """Whether imports of its file do not bring a declaration."""
    match node:
        case n.Import():
            return not node.path.value.endswith(".koi") or node.name is not None
        case n.Prompt():
            return not node.exported
    return isinstance(node, n.Mcp)


def _without(part: _Part, names: set[tuple[str, str]]) -> _Part:
    """A part without its declarations of some names."""
    if names.isdisjoint(part.names):
        return part
    texts = (text for _, text in _declaration_texts(part))
    kept = [text for text in texts if replace(part, text=text).names.isdisjoint(names)]
    return replace(part, text="\n".join(kept))


def _own_problem(problem: Diagnostic, part: _Part) -> Diagnostic | None:
    """A problem as one of the text that was typed; None for others, and for what a later entry may mend."""
    place, start = problem.place, len(part.head) + 1
    is_around = problem.severity == "warning" and place.span.start < start
    if place.source.path != part.path or problem.code in UNUSED or is_around:
        return None
    source = Source(part.path, part.text)

    def move(old: LabeledSpan) -> LabeledSpan:
        begin, end = (min(max(0, offset - start), len(part.text)) for offset in old.span)
        return LabeledSpan(source, Span(begin, max(begin + 1, end)), old.label)

    others = tuple(move(other) for other in problem.others if other.source.path == part.path)
    return replace(problem, place=move(place), others=others)


def _statements_in(text: str) -> Sequence[n.Statement]:
    """The statements of a text; none where it has errors."""
    names = "role R { can x } agent A : R { on step() {\n"
    program, problems = parse(Source("", f"{names}{text}\n}} }}"))
    handlers = [] if problems else [node for node in everything(program) if isinstance(node, n.Handler)]
    return handlers[0].body.statements if handlers and isinstance(handlers[0].body, n.Block) else ()


def _declared_variables(statements: Sequence[n.Statement]) -> list[tuple[str, str]]:
    """The variables that statements declare, with `const`, `let`, `var` or `function`."""
    found: list[tuple[str, str]] = []
    for statement in statements:
        if isinstance(statement, n.FunctionStatement) and statement.function.name:
            found.append((statement.function.name, "function"))
        if isinstance(statement, n.Variable):
            patterns = (node for each in statement.declarators for node in everything(each.pattern))
            found += [(node.name, statement.kind) for node in patterns if isinstance(node, n.Binding)]
    return found


def _mentions(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w$]){re.escape(name)}(?![\w$])", text) is not None
