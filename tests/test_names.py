"""Names: a class name leads to one class, exceptions say that they are errors, modules are called like nothing else."""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from functools import cache

from tests.test_layers import trees

# A node of the syntax may be called like what it declares.
NODES = "koi_lang.compiler.nodes."
# Errors of programs, which are values of JavaScript before they are exceptions of Python.
OF_PROGRAMS = "koi_lang.js.errors"
# Modules that adapt what they are called like, or stand for a word of the language.
ADAPTING = {
    *("koi_lang.coverage", "koi_lang.llm.anthropic", "koi_lang.llm.openai", "koi_lang.runtime.mcp"),
    *("koi_lang.runtime.actions.mcp", "koi_lang.mcp_server.http", "koi_lang.std.http"),
    *("koi_lang.compiler.rules.types", "koi_lang.compiler.codegen.types", "koi_lang.compiler.syntax_errors.code"),
    "koi_lang.runtime.hooks.types",
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


@cache
def classes() -> tuple[tuple[str, ast.ClassDef], ...]:
    """Every class of the package with its module."""
    return tuple(
        (module, node) for module, tree in trees().items() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
    )


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
