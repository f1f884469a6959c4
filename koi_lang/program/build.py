"""The path of a program to what the compiler makes of it: its checked files, their syntax trees, their code."""

from __future__ import annotations

import ast
import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from shlex import quote
from types import CodeType

from koi_lang.compiler import nodes as n
from koi_lang.compiler.compile import Checked, check_program, generate
from koi_lang.compiler.module_code import compile_module
from koi_lang.compiler.parser import parse
from koi_lang.compiler.rules import prose
from koi_lang.diagnostics import CompileError, Diagnostic, LabeledSpan, render
from koi_lang.errors import KoiError, UsageError, error_of, reason
from koi_lang.program import cache
from koi_lang.program.files import SUFFIX, DiskFiles, absolute
from koi_lang.settings import read_settings
from koi_lang.settings.project import prose_is_checked
from koi_lang.source import Source, is_program
from koi_lang.system import resources


@contextmanager
def collection_paused() -> Iterator[None]:
    """Suspend Python's search for cyclic garbage: syntax trees are millions of objects, all of them in use."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def check(path: str, *, strict: bool = False) -> Checked:
    """Read and check a program. Raises UsageError when the file cannot be read."""
    if not is_program(path) and Path(path).is_file():
        raise UsageError(f"`{path}` does not end in `{SUFFIX}`", help=_renaming(path))
    try:
        with collection_paused():
            return _without_prose(check_program(absolute(path), DiskFiles(), strict=strict, read=parse_file))
    except OSError as error:
        raise UsageError(f"`{path}` cannot be read: {reason(error)}", help=_advice(path)) from error


def parse_file(source: Source) -> tuple[n.Program, list[Diagnostic]]:
    """Parse a file; the parts of the standard library, which programs share, once a process."""
    is_shared = Path(source.path).is_relative_to(resources.standard_skills())
    program, problems = _parse_shared(source) if is_shared else parse(source)
    return program, [*problems]


_parse_shared = lru_cache(maxsize=32)(parse)


def _without_prose(checked: Checked) -> Checked:
    """A checked program without the warnings that `koi.toml` of this folder turns off."""
    is_prose = [problem.code in prose.CODES for problem in checked.diagnostics]
    if not any(is_prose) or prose_is_checked(read_settings()):
        return checked
    kept = (problem for problem in checked.diagnostics if problem.code not in prose.CODES)
    return replace(checked, diagnostics=tuple(kept))


def _renaming(path: str) -> str:
    """The command that gives a program its ending; editors and browsers like to add `.txt`."""
    stem, suffix = os.path.splitext(path)
    if suffix in (".ts", ".mts"):
        return f"Workflow scripts are JavaScript: write one from it, such as with `npx tsc {quote(path)}`."
    return f"Rename it: `mv {quote(path)} {quote(stem if stem.endswith(SUFFIX) else stem + SUFFIX)}`."


def _advice(path: str) -> str | None:
    if Path(f"{path}{SUFFIX}").is_file():
        return f"Did you mean `{path}{SUFFIX}`?"
    if Path(f"{path}.txt").is_file():
        return _renaming(f"{path}.txt")
    names = DiskFiles().names(os.path.dirname(path) or ".")
    near = [name for name in names if name.endswith(SUFFIX) and name != SUFFIX]
    listed = ", ".join(f"`{name}`" for name in near[:6])
    return f"Koi programs here are {listed}." if near else None


def syntax_trees(path: str, *, strict: bool = False) -> tuple[dict[str, ast.Module], Checked]:
    """The Python modules of a program by path of their file, the entry first. Raises CompileError."""
    with collection_paused():
        checked = check(path, strict=strict)
        if checked.errors:
            raise CompileError(checked.errors)
        return {file.unit.path: generate(file) for file in checked.files}, checked


def built(path: str, *, strict: bool = False) -> cache.CachedModule:
    """The code of a file's module, compiled with all files it depends on and kept in the cache. Raises CompileError."""
    with collection_paused():
        trees, checked = syntax_trees(path, strict=strict)
        warnings = tuple(render(diagnostic) for diagnostic in checked.diagnostics)
        hashes = {file: cache.digest(data) for file, data in checked.read.items()}
        tests = {file.unit.path: file.tests for file in checked.files}
        entries = {
            file: cache.CachedModule(_code(tree, file), hashes, warnings, tests[file]) for file, tree in trees.items()
        }
    for file, entry in entries.items():
        cache.store(file, entry)
    return entries[absolute(path)]


def _code(tree: ast.Module, path: str) -> CodeType:
    try:
        return compile_module(tree, path)
    except RecursionError:
        raise KoiError(f"`{path}` nests its code too deeply", help="Split the deepest expression.") from None


def missing_servers(checked: Checked, describe: Callable[[str], object]) -> Iterator[Diagnostic]:
    """A warning for each MCP server that neither its file declares nor settings describe.

    Args:
        describe: the description of a server in settings. Raises SettingsError.
    """
    for file in checked.files:
        uses = (each for each, _ in file.index.of(n.Uses) if each.kind == "mcp")
        used: list[tuple[n.Node, str]] = [(each, each.name) for named in uses for each in named.names]
        used += [(each.value, each.tool[0]) for each, _ in file.index.of(n.TeamMember) if each.tool is not None]
        for node, name in used:
            if file.table.find("mcp", name) is None and (error := error_of(describe, name)):
                help = error.help if isinstance(error, KoiError) else None
                yield Diagnostic("E0205", "warning", str(error), LabeledSpan(file.unit.source, node.span), help=help)
