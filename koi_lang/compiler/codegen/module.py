"""One checked file of a program to the syntax tree of its Python module."""

from __future__ import annotations

import ast
import posixpath
from collections.abc import Callable, Iterable, Sequence

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.build import BuildError
from koi_lang.compiler.codegen import agents, prompts, types
from koi_lang.compiler.codegen import py_ast as py
from koi_lang.compiler.codegen import switches as switches  # enters its emitter
from koi_lang.compiler.codegen.agents import place, plain_data
from koi_lang.compiler.codegen.emitter import Emitter
from koi_lang.compiler.codegen.expressions import condition, no_payload
from koi_lang.compiler.codegen.module_names import ModuleNames
from koi_lang.compiler.codegen.prompts import (
    Piece,
    adopt_functions,
    fill,
    hole_value,
    is_usable,
    local,
    template_emitter,
    template_value,
)
from koi_lang.compiler.codegen.statements import chain
from koi_lang.compiler.codegen.tests import evals, tests
from koi_lang.compiler.compositions import (
    Directive,
    Fragment,
    Let,
    TemplateConditional,
    TemplateError,
    TemplateLine,
    acts,
    directives,
    variables,
)
from koi_lang.compiler.constant_data import constant_data
from koi_lang.compiler.imports import Imported
from koi_lang.compiler.symbols import IMPORTED, Kind, Symbol
from koi_lang.compiler.templates import Placeholder

START: py.At = {"lineno": 1, "col_offset": 0, "end_lineno": 1, "end_col_offset": 0}
# Skills run their initial values at once, so what these may mention comes first.
ORDER = (n.TypeDeclaration, n.Role, n.Mcp, n.Prompt, n.Skill, n.Team, n.Agent)


def module(file: Analysis, asks_for_action: Callable[[n.Playbook], bool]) -> ast.Module:
    """The module of a file: imports, declarations, and `main` with what `run` starts.

    Args:
        asks_for_action: whether a sentence of a playbook asks for more than a result.
    """
    return _Module(file, asks_for_action).build()


class _Module:
    def __init__(self, file: Analysis, asks_for_action: Callable[[n.Playbook], bool]) -> None:
        self.file, self.unit = file, file.unit
        local = [resolution.taken for resolution in file.code.values()]
        self.names = ModuleNames(file.unit, file.table, frozenset().union(*local), asks_for_action)
        self.names.has_generators = any(function.is_generator for function, _ in file.index.of(n.Function))

    def build(self) -> ast.Module:
        declared = self.declarations()
        main = [*self.main(), *jobs(self.file), *tests(self.file, self.names), *evals(self.file, self.names)]
        title = f"Compiled from {posixpath.basename(self.unit.path)}."
        head = [py.evaluate(py.constant(title, START), START), *self.imports()]
        return ast.Module([*head, *declared, *main], [])

    # ------------------------------------------------------------ imports

    def imports(self) -> list[ast.stmt]:
        """What the module needs; other files of the program are loaded under the aliases they were mentioned by."""
        brought = [self.emit_import(item) for item in self.unit.imports if item.kind != "koi"]
        installed = [statement for statement in brought if isinstance(statement, (ast.Import, ast.ImportFrom))]
        made = [statement for statement in brought if statement not in installed]
        files = [unit for unit in self.unit.reached if unit.path not in self.names.imported]
        for unit in files:
            self.names.alias(unit)
        loaded = [self.emit_load(path, alias) for path, alias in self.names.imported.items()]
        koi_lang = [ast.Import([ast.alias("koi_lang", None, **START)], **START)] if loaded else []
        prelude = ast.ImportFrom("koi_lang.runtime", [ast.alias("prelude", "koi", **START)], 0, **START)
        return [*installed, *koi_lang, prelude, *loaded, *made]

    def emit_load(self, path: str, alias: str) -> ast.stmt:
        """`alias = koi_lang.load("./file.koi", beside=__file__)`; packages are loaded by their name."""
        statement = self.statement_for(path)
        at = START if statement is None else agents.place(statement.span, self.file)
        wanted = statement.path.value if statement is not None else self.relative(path)
        local = wanted.startswith((".", "/"))
        spelled = self.relative(path) if local else wanted
        beside = py.load("__file__", at) if local else None
        value = py.call(
            py.attribute(py.load("koi_lang", at), "load", at), [py.constant(spelled, at)], at, beside=beside
        )
        return py.assign(alias, value, at)

    def statement_for(self, path: str) -> n.Import | None:
        """The import statement that names a file itself; None for files reached through others."""
        return next((item.statement for item in self.unit.imports if item.kind == "koi" and item.target == path), None)

    def relative(self, path: str) -> str:
        return "./" + posixpath.relpath(path, posixpath.dirname(self.unit.path))

    def emit_import(self, item: Imported) -> ast.stmt:
        """A Python module, a prompt from a text file, or a skill in a file."""
        at = agents.place(item.statement.span, self.file)
        assert item.name is not None
        symbol = self.file.table.of(IMPORTED[item.kind])[item.name]
        name = self.names.name(symbol) if symbol.unit is self.unit else item.name
        if item.text is not None:
            text = n.Text(item.statement.span, item.text.text.strip(), None)
            return py.assign(name, prompts.prompt_file(text, item.name, self.unit.source, self.names, at), at)
        if item.kind == "skill":
            path = py.constant(self.relative(item.target), at)
            return py.assign(name, py.helper("skill_folder", [path, py.load("__file__", at)], at), at)
        if item.target.endswith(".py"):
            path = py.constant(self.relative(item.target), at)
            return py.assign(name, py.helper("python_file", [path, py.load("__file__", at)], at), at)
        return _import_module(item.target, name, at)

    # ------------------------------------------------------------ declarations

    def declarations(self) -> list[ast.stmt]:
        """All declarations, kind after kind, so that what one needs at once stands before it."""
        found = list(self.flat(self.unit.program.declarations))
        ordered = sorted(found, key=lambda node: ORDER.index(type(node)))
        result: list[ast.stmt] = []
        for node in ordered:
            statements = self.declaration(node)
            result += [*self.names.taken_definitions(), *statements]
        return result

    def flat(self, declarations: tuple[n.Node, ...]) -> list[n.Node]:
        """Declarations with those inside of skills, without imports, runs and repeated names."""
        result: list[n.Node] = []
        for node in declarations:
            if isinstance(node, n.Skill):
                result += self.flat(tuple(item for item in node.items if isinstance(item, (n.Agent, n.Team))))
            if isinstance(node, ORDER) and self.symbol(node) is not None:
                result.append(node)
        return result

    def symbol(self, node: n.Node) -> Symbol | None:
        """The symbol of a declaration, unless another one has its name."""
        name = type(node).__name__.removesuffix("Declaration").lower()
        kind: Kind = name  # type: ignore[assignment]
        symbol = self.file.table.find(kind, node.name.name)  # type: ignore[attr-defined]
        return symbol if symbol is not None and symbol.node is node else None

    def declaration(self, node: n.Node) -> list[ast.stmt]:
        """The statements of one declaration."""
        symbol = self.symbol(node)
        assert symbol is not None
        name, at = self.names.name(symbol), agents.place(node.span, self.file)
        match node:
            case n.Agent():
                return [agents.agent(node, self.file, self.names, name)]
            case n.Skill():
                return agents.skill(node, self.file, self.names, name)
            case n.Prompt(value=n.Compose()):
                return emit_composition(node, self.file, self.names, name)
            case n.Prompt():
                return [py.assign(name, prompts.prompt_value(node, self.unit.source, self.names), at)]
            case n.TypeDeclaration():
                return [py.assign(name, types.typed_dict(node, at, self.names), at)] if types.is_record(node) else []
            case n.Team():
                return [py.assign(name, agents.team(node, self.file, self.names), at)]
            case n.Role():
                capabilities = py.text_list([capability.name for capability in node.capabilities], at)
                return [py.assign(name, py.helper("Role", [py.constant(node.name.name, at), capabilities], at), at)]
            case n.Mcp():
                options = py.thunk(agents.lone_expression(node.options, self.file, self.names), at)
                return [py.assign(name, py.helper("Mcp", [py.constant(node.name.name, at), options], at), at)]
        raise AssertionError(f"no emitter for {node!r}")

    # ------------------------------------------------------------ run

    def main(self) -> list[ast.stmt]:
        """The function `main`: the `run` statements in order, but for jobs; importing the module does not call it."""
        runs = [node for node in self.unit.program.declarations if isinstance(node, n.Run) and node.job is None]
        if not runs:
            return []
        at = agents.place(runs[0].span, self.file)
        body = [statement for node in runs for statement in self.run(node)]
        main = py.function("main", py.parameter_list([], (), None, (), at), body, at, is_async=True)
        return [*self.names.taken_definitions(), main]

    def run(self, node: n.Run) -> list[ast.stmt]:
        at = agents.place(node.span, self.file)
        symbol = self.file.table.find("agent", node.agent.name)
        assert symbol is not None
        payload = self.payload(node, symbol.node, at)
        target = [self.names.reference(symbol, at), py.constant(node.handler.name, at), payload]
        return [py.evaluate(ast.Await(py.helper("run", target, at), **at), at)]

    def payload(self, node: n.Run, agent: n.Node, at: py.At) -> ast.expr:
        """What a `run` passes on."""
        if node.arguments:
            return agents.lone_expression(node.arguments[0], self.file, self.names)
        return no_payload(agent, node.handler.name, at)


def _import_module(target: str, name: str, at: py.At) -> ast.stmt:
    """`import math`, `from package import module`, or either with `as name`."""
    package, _, last = target.rpartition(".")
    alias = ast.alias(last, None if last == name else name, **at)
    if package:
        return ast.ImportFrom(package, [alias], 0, **at)
    return ast.Import([alias], **at)


def emit_composition(node: n.Prompt, file: Analysis, names: ModuleNames, python: str) -> list[ast.stmt]:
    """`async def` that makes the lines, and the prompt that uses it."""
    assert isinstance(node.value, n.Compose)
    e = template_emitter(file.unit.source, names, {"callAction": _scope_action})
    at = e.at(node.span)
    fragments = _fragments(node.value, names, e)
    if node.value.rules is not None and fragments:
        listed_names = py.text_list(list(fragments), at)
        thunk = py.thunk(_list(fragments.values(), at), at)
        given = [py.constant(node.name.name, at), thunk, listed_names, py.constant(node.value.rules.value, at)]
        return [py.assign(python, py.call(py.koi("ChosenPrompt", at), given, at), at)]
    items = _read(node.value, fragments)
    parameters = [parameter.name.name for parameter in node.parameters or ()]
    composer = _Composer(e, fragments, {name: names.local(name) for name in (*parameters, *variables(items))})
    composer.declare(parameters)
    name = names.fresh(f"compose_{node.name.name}")
    arguments = [ast.arg(argument, **at) for argument in ("scope", *map(composer.python.__getitem__, parameters))]
    body = [py.assign(composer.lines, _list((), at), at), *composer.unset(items, at), *composer.body(items)]
    body.append(ast.Return(py.load(composer.lines, at), **at))
    listed = py.parameter_list(arguments, (), None, (), at)
    prompt = py.call(
        py.koi("Composed", at),
        [py.constant(node.name.name, at), py.thunk(_list(fragments.values(), at), at), py.load(name, at)],
        at,
        parameters=py.text_list(parameters, at) if parameters else None,
        acts=py.constant(True, at) if acts(items) else None,
    )
    return [py.function(name, listed, body, at, is_async=True), py.assign(python, prompt, at)]


def _list(items: Iterable[ast.expr], at: py.At) -> ast.List:
    return ast.List(list(items), py.LOAD, **at)


def _read(node: n.Compose, fragments: dict[str, ast.expr]) -> Sequence[Directive]:
    """The directives of the template; without a template the fragments one after the other."""
    if node.template is None:
        return [TemplateLine(node.span, (Fragment(name, ""),)) for name in fragments]
    try:
        return directives(node.template, frozenset(fragments))
    except TemplateError as problem:
        raise BuildError(problem.span, problem.message, problem.help) from None


def _fragments(node: n.Compose, names: ModuleNames, e: Emitter) -> dict[str, ast.expr]:
    """The prompts behind the fragment names."""
    listed = [*((name, name) for name in node.names), *node.fragments]
    result: dict[str, ast.expr] = {}
    for name, prompt in listed:
        symbol = names.table.find("prompt", prompt.name)
        if symbol is not None:
            result[name.name] = names.reference(symbol, e.at(prompt.span))
    return result


def _scope_action(at: py.At) -> ast.expr:
    return py.attribute(py.load("scope", at), "call_action", at)


class _Composer:
    """`python` has the Python name of every parameter and `@let` of the template."""

    def __init__(self, e: Emitter, fragments: dict[str, ast.expr], python: dict[str, str]) -> None:
        self.e = e
        self.fragments = fragments
        self.python = python
        e.resolution.taken |= {"scope", *python.values()}
        self.lines = e.fresh("lines")

    def declare(self, names: Iterable[str]) -> None:
        """Let what follows use some names."""
        self.e.locals = {**self.e.locals, **{name: local(self.python[name]) for name in names}}

    def unset(self, items: Sequence[Directive], at: py.At) -> list[ast.stmt]:
        """Give the names that only some branch sets a value before."""
        names = dict.fromkeys(variables(item for item in items if isinstance(item, TemplateConditional)))
        return [py.assign(self.python[name], py.koi("undefined", at), at) for name in names]

    def body(self, items: Sequence[Directive]) -> list[ast.stmt]:
        """Statements that append the lines of some directives."""
        return [statement for item in items for statement in self.directive(item)]

    def directive(self, item: Directive) -> list[ast.stmt]:
        self.e.fixed = None
        at = self.e.fixed = self.e.at(item.span)
        match item:
            case TemplateLine():
                result = [self.line(item, at)]
            case Let():
                value = ast.Await(py.helper("settle", [template_value(item.value, self.e)], at), **at)
                self.declare([item.name])
                result = [py.assign(self.python[item.name], value, at)]
            case TemplateConditional():
                return self.choice(item, at)
        return [*self.definitions(), *result]

    def definitions(self) -> list[ast.stmt]:
        """The definitions that must stand before what was emitted last."""
        result, self.e.pending = self.e.pending, []
        return result

    def choice(self, item: TemplateConditional, at: py.At) -> list[ast.stmt]:
        for test, _ in item.branches:
            adopt_functions(test, self.e)
        tests = [condition(test, self.e) for test, _ in item.branches]
        definitions = self.definitions()
        bodies = [self.body(body) or [ast.Pass(**at)] for _, body in item.branches]
        branches = [ast.If(emitted, body, [], **at) for emitted, body in zip(tests, bodies, strict=True)]
        return [*definitions, *chain(branches, self.body(item.otherwise), self.e)]

    def line(self, item: TemplateLine, at: py.At) -> ast.stmt:
        """`lines.append(koi.fill(…))`."""
        filled = fill([self.piece(piece, at) for piece in item.pieces], at)
        return py.evaluate(py.call(py.attribute(py.load(self.lines, at), "append", at), [filled], at), at)

    def piece(self, piece: str | Placeholder | Fragment, at: py.At) -> Piece:
        """A text as it is; a value or a rendered fragment with its name as an expression."""
        if isinstance(piece, str):
            return piece
        name = piece.name if isinstance(piece, Fragment) else self._fragment_in(piece)
        if name is not None:
            rendered = py.call(py.attribute(self.fragments[name], "render", at), [py.load("scope", at)], at)
            return name, ast.Await(rendered, **at)
        assert isinstance(piece, Placeholder)
        return hole_value(piece, self.e) if is_usable(piece, self.e) else piece.source

    def _fragment_in(self, hole: Placeholder) -> str | None:
        """The fragment that `{{name}}` mentions."""
        expression = hole.expression
        if (
            isinstance(expression, n.Name)
            and expression.name in self.fragments
            and expression.name not in self.e.locals
        ):
            return expression.name
        return None


# The names of options in the record of a job, where they are others.
FIELDS = {"jitter": "jitter_s"}


def jobs(file: Analysis) -> list[ast.stmt]:
    """`def koi_jobs()`: a function that gives the jobs of the file in their order; nothing without jobs."""
    pairs = [(run, run.job) for run in file.unit.program.declarations if isinstance(run, n.Run) and run.job]
    if not pairs:
        return []
    at = place(pairs[0][0].span, file)
    listed = ast.Return(ast.List([_job(run, job, file) for run, job in pairs], ast.Load(), **at), **at)
    return [py.function("koi_jobs", py.parameter_list([], (), None, (), at), [listed], at)]


def _job(run: n.Run, job: n.Job, file: Analysis) -> ast.expr:
    """`koi.Job("Agent", "handler", payload, "every", "words", name="…", …, line=1)`."""
    at = place(run.span, file)
    payload = constant_data(run.arguments[0]) if run.arguments else {}
    texts = [py.constant(text, at) for text in (run.agent.name, run.handler.name)]
    when = [py.constant(text, at) for text in (job.trigger, job.words.value)]
    options = {FIELDS.get(name.name, name.name): py.constant(value.value, at) for name, value in job.options}
    given: dict[str, ast.expr] = {"name": py.constant(job_name(run, job), at), **options}
    given["line"] = py.constant(file.unit.source.position(run.span.start).line, at)
    return py.call(py.koi("Job", at), [*texts, plain_data(payload, at), *when], at, **given)


def job_name(run: n.Run, job: n.Job) -> str:
    """What a job is called: its option `name`, else its handler."""
    given = (value.value for name, value in job.options if name.name == "name" and isinstance(value, n.Text))
    return next(given, f"{run.agent.name}.{run.handler.name}")
