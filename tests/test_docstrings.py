"""What docstrings say that functions raise: every name of an exception that they give is one."""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from functools import cache

from tests.package_trees import dotted_name, nodes_of, trees

NAME = r"`?[\w.]*[A-Z]\w+`?"
NAMES = rf"({NAME}(?:(?:,? (?:or|and) |, ){NAME})*)"
# "Raises OSError.", "It raises OSError, ValueError or KeyError when …"
SENTENCE = re.compile(rf"\b[Rr]aises? {NAMES}")
# An entry of a section "Raises:".
ENTRY = re.compile(rf"\s+{NAMES}: ")


def raised_names(docstring: str) -> Iterator[str]:
    """The exceptions that a docstring names in sentences and in its section "Raises"."""
    texts = [match[1] for match in SENTENCE.finditer(docstring)]
    section = docstring.partition("Raises:\n")[2].partition("\n\n")[0]
    texts += [match[1] for match in map(ENTRY.match, section.splitlines()) if match]
    for text in texts:
        yield from re.findall(NAME.replace("`?", ""), text)


def docstrings(module: str) -> Iterator[str]:
    """The docstrings of a module and of what is in it, attributes included."""
    for node in nodes_of(module, ast.Expr):
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield inspect.cleandoc(node.value.value)


@cache
def exceptions() -> frozenset[str]:
    """The names of all exceptions of Python, and of the package, which are made of these or of something `…Error`."""
    names = {name for name, value in vars(builtins).items() if is_exception(value)}
    classes = {node.name: node for module in trees() for node in nodes_of(module, ast.ClassDef)}
    bases = {name: {dotted_name(base).rpartition(".")[2] for base in node.bases} for name, node in classes.items()}
    while new := {name for name, above in bases.items() if above & names or any(map(ends_in_error, above))} - names:
        names |= new
    return frozenset(names)


def ends_in_error(name: str) -> bool:
    """Whether a class of somebody else is an exception by its name."""
    return name.endswith(("Error", "Exception", "Cancelled"))


def is_exception(value: object) -> bool:
    """Whether something is a class of exceptions."""
    return isinstance(value, type) and issubclass(value, BaseException)


def is_raisable(name: str, module: str) -> bool:
    """Whether a name is an exception of Python or of the package, with its module before it, or of an import."""
    if name in exceptions():
        return True
    try:
        return is_exception(pkgutil.resolve_name(name))
    except (ImportError, AttributeError, ValueError):
        imported = [alias.name for node in nodes_of(module, ast.Import) for alias in node.names]
        imported += [str(node.module) for node in nodes_of(module, ast.ImportFrom)]
        return any(is_exception(getattr(importlib.import_module(place), name, None)) for place in imported)


def test_what_is_said_to_be_raised_exists() -> None:
    """Who reads "Raises" in a docstring can write `except` and the name, and catches something."""
    wrong = {
        (module, name)
        for module in trees()
        for docstring in docstrings(module)
        for name in raised_names(docstring)
        if not is_raisable(name, module)
    }

    assert wrong == set()


def test_names_are_found_in_docstrings() -> None:
    """Names are found in sentences, with one or several of them, and in sections."""
    docstring = (
        "Raises OSError, or `EndError`.\n\nRaises:\n    BadError, Cut: gone.\n        Not So: no.\n    io.Stop: no."
    )

    assert ["OSError", "EndError", "BadError", "Cut", "io.Stop"] == [*raised_names(docstring)]
