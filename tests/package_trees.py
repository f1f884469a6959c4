"""The syntax trees of the package, parsed once a process for all tests of its shape, layers and names."""

from __future__ import annotations

import ast
import gc
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TypeVar

from koi_lang.system import resources

PACKAGE = resources.PACKAGE

Node = TypeVar("Node", bound=ast.AST)


def module_name(path: Path) -> str:
    """The dotted name of a file of the package."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def sources() -> dict[str, str]:
    """The text of every module of the package."""
    return {module_name(path): path.read_text("utf-8") for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def trees() -> dict[str, ast.Module]:
    """The syntax tree of every module of the package."""
    # A million nodes, none of them garbage: each full collection while or after they are made would visit all of them.
    gc.collect()
    gc.disable()
    try:
        return {name: ast.parse(text) for name, text in sources().items()}
    finally:
        gc.enable()
        gc.freeze()


@cache
def nodes_by_class(module: str) -> Mapping[type[ast.AST], list[ast.AST]]:
    """The nodes of a module, outer ones first, by their classes; without operators, and whether a name is stored."""
    nodes: defaultdict[type[ast.AST], list[ast.AST]] = defaultdict(list)
    waiting: list[ast.AST] = [trees()[module]]
    for node in waiting:  # in half of the time that `ast.walk` takes
        nodes[type(node)].append(node)
        for name in node._fields:
            value = getattr(node, name)
            if type(value) is list:
                waiting += [each for each in value if isinstance(each, ast.AST)]
            elif isinstance(value, ast.AST) and value._fields:
                waiting.append(value)
    return nodes


def nodes_of(module: str, *kinds: type[Node]) -> Iterator[Node]:
    """The nodes of some classes in a module; those of one class stand together, outer ones first."""
    for kind in kinds:
        yield from nodes_by_class(module).get(kind, ())  # type: ignore[misc]


def dotted_name(node: ast.expr) -> str:
    """The text of a name or of attributes of a name, such as `sys.modules`; of anything else the last attribute."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{dotted_name(node.value)}.{node.attr}".removeprefix(".")
    return ""
