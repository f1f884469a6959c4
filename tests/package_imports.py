"""The imports between modules of the package, wherever they stand and however they are written."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache

from tests.package_trees import dotted_name, nodes_of, trees

# Functions that load a module when it is used first, by its name.
LAZY_IMPORTERS = {"lazy_module", "lazy_names", "import_module", "__import__"}
# Where loaded modules are looked up by their names: who takes one from there reaches it as by an import.
LOADED = "sys.modules"
# The nodes of a syntax tree that may import.
IMPORTING = (ast.Import, ast.ImportFrom, ast.Call, ast.Subscript)


@dataclass(frozen=True, slots=True)
class Imported:
    """One import of a module of the product: for types only, inside a function and by a lazy name, too."""

    by: str
    target: str


@cache
def imports() -> tuple[Imported, ...]:
    """Every import of one module of the package by another, wherever it stands."""
    found = (
        Imported(name, target) for name in trees() for node in nodes_of(name, *IMPORTING) for target in targets(node)
    )
    return tuple(dict.fromkeys(found))


def targets(node: ast.AST) -> list[str]:
    """The modules of the package that one statement imports, or one call of a lazy importer names."""
    if isinstance(node, ast.Call) and dotted_name(node.func).rpartition(".")[2] in LAZY_IMPORTERS:
        texts = [str(part.value) for part in ast.walk(node) if isinstance(part, ast.Constant)]
        folders = tuple(text for text in texts if text.endswith("."))  # the beginning of an f-string
        return [name for name in trees() if name in texts or name.startswith(folders)]
    if isinstance(node, ast.Subscript | ast.Call) and looks_up_module(node):
        return [part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and part.value in trees()]
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names if alias.name in trees()]
    if not isinstance(node, ast.ImportFrom):
        return []
    assert node.level == 0, "imports say the whole name"
    members = [f"{node.module}.{alias.name}" for alias in node.names]
    named = [member if member in trees() else str(node.module) for member in members]
    return [name for name in dict.fromkeys(named) if name in trees()]


def looks_up_module(node: ast.Subscript | ast.Call) -> bool:
    """Whether a module is taken from those that are loaded: `sys.modules[…]`, `sys.modules.get(…)` and their like."""
    held = node.value if isinstance(node, ast.Subscript) else getattr(node.func, "value", None)
    return held is not None and f".{LOADED}".endswith(f".{dotted_name(held)}")
