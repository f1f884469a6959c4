"""Names: one class each, exceptions say that they are errors, functions begin with a verb, modules shadow nothing."""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache

from tests.package_trees import nodes_of, sources, trees

# A node of the syntax may be called like what it declares.
NODES = "koi_lang.compiler.nodes."
# Errors of programs, which are values of JavaScript before they are exceptions of Python.
OF_PROGRAMS = "koi_lang.js.errors"
# Modules that adapt what they are called like, or stand for a word of the language.
ADAPTING = {
    *("koi_lang.coverage", "koi_lang.llm.anthropic", "koi_lang.llm.openai", "koi_lang.runtime.mcp"),
    *("koi_lang.runtime.actions.mcp", "koi_lang.mcp_server.http", "koi_lang.std.http", "koi_lang.std.code"),
    *("koi_lang.compiler.rules.types", "koi_lang.compiler.codegen.types", "koi_lang.compiler.syntax_errors.code"),
    *("koi_lang.runtime.hooks.types", "koi_lang.cli.types"),
}
DEPENDENCIES = {
    "anthropic",
    "click",
    "coverage",
    "diskcache",
    "keyring",
    "lark",
    "mcp",
    "openai",
    "starlette",
    "uvicorn",
}

# A participle, with or without an underscore before it; words that only end like one are `NO_PARTICIPLES`.
PARTICIPLE = re.compile(r"_?(?:[a-z]+(?:ed|en|wn|ld)|said|told|known|found|made|sent|kept|read_on)$")
NO_PARTICIPLES = set(
    "build child embed even feed field fold happen hidden hold listen need often open screen seed seen shed shutdown "
    "speed then token when world yield".split()
)
# Functions that are called like this all the same, each for a reason. The list only shrinks.
ALLOWED = {
    "koi_lang.compiler.build.declarations.Builder.exposed": "called like a rule of the grammar",
    "koi_lang.compiler.build.expressions.Expressions.parenthesized": "called like a rule of the grammar",
    "koi_lang.compiler.build.statements.Statements.terminated": "called like a rule of the grammar",
    "koi_lang.js.errors.thrown": "compiled modules call it",
    "koi_lang.js.promises.spawn": "a verb, and the term for it",
    "koi_lang.runtime.destructuring.named": "compiled modules call it",
    "koi_lang.runtime.ports.RunPort.added": "a value, which a run has as a field",
    "koi_lang.runtime.replay.ordering._Step.cancelled": "called like a method of futures",
    "koi_lang.runtime.test_blocks.context.given": "compiled modules call it",
}


@cache
def classes() -> tuple[tuple[str, ast.ClassDef], ...]:
    """Every class of the package with its module."""
    return tuple((module, node) for module in trees() for node in nodes_of(module, ast.ClassDef))


def test_a_class_name_is_defined_once() -> None:
    """A name leads to one class."""
    places: dict[str, list[str]] = defaultdict(list)
    for module, node in classes():
        if not module.startswith(NODES):
            places[node.name].append(module)

    assert {name: modules for name, modules in places.items() if len(modules) > 1} == {}


def test_exceptions_say_so() -> None:
    """Whatever can be raised ends in `Error`."""
    raised, before = {"BaseException", "Exception"}, 0
    while len(raised) > before:
        before = len(raised)
        raised |= {node.name for _, node in classes() if raised & {ast.unparse(base) for base in node.bases}}
        raised |= {
            node.name for _, node in classes() if any(ast.unparse(base).endswith("Error") for base in node.bases)
        }
    own = {node.name for module, node in classes() if module != OF_PROGRAMS}

    assert {name for name in raised & own if not name.endswith("Error")} == set()


def test_modules_shadow_nothing() -> None:
    """No module is called like one of the standard library or of a dependency, but for those that adapt it."""
    known = sys.stdlib_module_names | DEPENDENCIES
    names = {module for module in trees() if module.rpartition(".")[2] in known and not module.endswith("__main__")}

    assert names == ADAPTING


def functions(node: ast.AST, place: str) -> Iterator[str]:
    """The dotted names of all functions and methods below a node, which is called `place`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            continue
        inner = place
        if isinstance(child, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            inner = f"{place}.{child.name}"
        if inner != place and not isinstance(child, ast.ClassDef):
            yield inner
        yield from functions(child, inner)


def is_participle(function: str) -> bool:
    """Whether the last part of a dotted name is a participle and nothing else."""
    name = function.rpartition(".")[2]
    return bool(PARTICIPLE.match(name)) and name.strip("_") not in NO_PARTICIPLES


def test_functions_begin_with_a_verb() -> None:
    """No function is called by a lone participle, which says neither what it does nor what it gives."""
    names = [name for module, tree in trees().items() for name in functions(tree, module)]

    assert {name for name in names if is_participle(name)} == set(ALLOWED)
    assert len(ALLOWED) <= 20


def test_one_module_names_the_folder_of_runs() -> None:
    """Paths into the folder of a project in which Koi keeps things are made of the one constant."""
    spelling = re.compile(r"""/ "\.koi"|"\.koi"(?: /|\})|f?"\.koi/\w""")

    assert {"koi_lang.runtime.guidance.skill_folders"} == {
        name for name, text in sources().items() if spelling.search(text)
    }
