"""Names at the top of a generated module, and how one module mentions what another declares."""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Callable

from koi_lang.compiler import nodes as n
from koi_lang.compiler.codegen import py_ast as py
from koi_lang.compiler.imports import Unit
from koi_lang.compiler.scope import PYTHON_NAMES, python_name
from koi_lang.compiler.symbols import SPACES, Symbol, SymbolTable, own_symbols


class ModuleNames:
    """The Python names of a file's declarations and the aliases of the modules it imports.

    Attributes:
        table: what the file can mention.
        declared: names that code can mention declarations by.
        imported: alias of every other file of the program that was mentioned, in order of first mention.
        has_generators: whether the file has generators, so that its loops may walk over them.
        asks_for_action: whether a sentence of a playbook asks for more than a result.
        definitions: functions in lone expressions, to be defined before the declaration that mentions them.
    """

    def __init__(
        self, unit: Unit, table: SymbolTable, local: frozenset[str], asks_for_action: Callable[[n.Playbook], bool]
    ) -> None:
        """`local` are names of variables in the code of the file, which must not hide a module."""
        self.unit, self.table = unit, table
        self.imported: dict[str, str] = {}
        self.declared = table.values.keys() | table.roles.keys()
        self.definitions: list[ast.stmt] = []
        self.has_generators = False
        self.asks_for_action = asks_for_action
        self._own = {unit.path: _names_of(unit)}
        self._taken = set(self._own[unit.path].values()) | PYTHON_NAMES | local

    def name(self, symbol: Symbol) -> str:
        """The Python name of a declaration in the module that declares it."""
        known = self._own.get(symbol.unit.path)
        if known is None:
            known = self._own[symbol.unit.path] = _names_of(symbol.unit)
        return known[SPACES.get(symbol.kind, "values"), symbol.name]

    def reference(self, symbol: Symbol, at: py.At) -> ast.expr:
        """An expression for a declaration: its name, or a member of the module that declares it."""
        if symbol.unit is self.unit:
            return py.load(self.name(symbol), at)
        return py.attribute(py.load(self.alias(symbol.unit), at), self.name(symbol), at)

    def alias(self, unit: Unit) -> str:
        """The name under which another file's module is known here."""
        alias = self.imported.get(unit.path)
        if alias is None:
            stem = posixpath.basename(unit.path).removesuffix(".koi")
            alias = self.imported[unit.path] = self.fresh(re.sub(r"\W", "_", stem))
        return alias

    def local(self, name: str) -> str:
        """A Python name for a variable of a template, unlike everything that the module declares or imports."""
        base, count = python_name(name), 1
        result = base
        while result in self._own[self.unit.path].values() or result in self.imported.values():
            count += 1
            result = f"{base}_{count}"
        self._taken.add(result)
        return result

    def claim(self, name: str) -> bool:
        """Give a name to something in the code of the file, unless it would hide a module that was mentioned."""
        if name in self.imported.values():
            return False
        self._taken.add(name)
        return True

    def taken_definitions(self) -> list[ast.stmt]:
        """The definitions that are waiting; afterwards there are none."""
        result, self.definitions = self.definitions, []
        return result

    def fresh(self, base: str) -> str:
        """A name not used at the top of this module."""
        base = python_name(base if base[:1].isalpha() or base[:1] == "_" else f"_{base}")
        name, count = base, 1
        while name in self._taken or name in self.table.values:
            count += 1
            name = f"{base}_{count}"
        self._taken.add(name)
        return name


def _names_of(unit: Unit) -> dict[tuple[str, str], str]:
    """Python names by name space and Koi name; roles, skills and servers give way to what code mentions."""
    names: dict[tuple[str, str], str] = {}
    taken: set[str] = set()
    symbols = list(own_symbols(unit))
    for symbol in sorted(symbols, key=lambda symbol: symbol.kind in SPACES):
        key = (SPACES.get(symbol.kind, "values"), symbol.name)
        if key in names:
            continue
        name = python_name(symbol.name)
        while name in taken:
            name = f"{name}_{symbol.kind}"
        names[key] = name
        taken.add(name)
    return names
