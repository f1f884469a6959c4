"""Files to one program: every file reached by an import, read once, in the order in which they were met."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol
from warnings import catch_warnings, simplefilter

from koi_lang.compiler import nodes as n
from koi_lang.compiler.parser import parse
from koi_lang.compiler.syntax_errors.files import OF_NODE
from koi_lang.diagnostics import Diagnostic, LabeledSpan, nearest, replacement, suggestion
from koi_lang.errors import AgentError
from koi_lang.front_matter import read_front_matter
from koi_lang.source import Source, Span, decode

SUFFIXES = (".koi", ".py")
SCRIPTS = (".ts", ".tsx", ".js", ".jsx", ".mjs")
INDEXES = ("index.koi", "__init__.py")
STANDARD = "std/"
SKILL = "SKILL.md"
# What a part of the standard library declares for others.
OFFERED = re.compile(
    r"^\s*(?:export\s+(?:async\s+)?function|export\s+prompt|skill|agent|team|role)\s+(\w+)", re.MULTILINE
)


class Files(Protocol):
    """The file system as the compiler sees it; paths are absolute, with `/`."""

    def read(self, path: str) -> bytes:
        """The content of a file. Raises OSError."""

    def is_file(self, path: str) -> bool:
        """Whether there is a file."""

    def package(self, name: str) -> str | None:
        """The path of the `.koi` or Python file that an installed package or `std/…` name stands for."""

    def has_module(self, name: str) -> bool:
        """Whether Python can import a module of that name; it is looked for and not loaded."""

    def names(self, folder: str) -> list[str]:
        """The names in a folder, or for `std` those of the standard library; empty when there is none."""


# Reads a file: its tree, and what is wrong with its spelling.
Parser = Callable[[Source], tuple[n.Program, list[Diagnostic]]]


@dataclass(frozen=True, slots=True, eq=False)
class Imported:
    """What one import statement brings: a Koi file, a Python module, a text that becomes a prompt, or a skill.

    Attributes:
        target: path of the file; for `python` from an installed module its dotted name.
        name: what Python modules, texts and skills are called here; None for Koi files.
        is_missing: whether it is a Python module that is not installed.
        text: the text of a prompt file.
    """

    statement: n.Import
    kind: Literal["koi", "python", "text", "skill"]
    target: str
    name: str | None = None
    text: Source | None = None
    is_missing: bool = False


@dataclass(slots=True, eq=False)
class Unit:
    """One `.koi` file of a program."""

    path: str
    source: Source
    program: n.Program
    imports: list[Imported] = field(default_factory=list)
    reached: list[Unit] = field(default_factory=list)


@dataclass(slots=True)
class Loaded:
    """A program with all its files; the first unit is the one that was asked for."""

    units: list[Unit]
    problems: list[Diagnostic]
    read: dict[str, bytes]


def load(path: str, files: Files, parse: Parser = parse) -> Loaded:
    """Read a file and, in turn, all it imports. Circular imports are fine. Raises OSError for the first file only."""
    loading = _Loading(files, parse)
    loading.unit(path, files.read(path))
    return Loaded(list(loading.units.values()), loading.problems, loading.read)


class _Loading:
    def __init__(self, files: Files, parse: Parser) -> None:
        self.files, self.parse = files, parse
        self.units: dict[str, Unit] = {}
        self.problems: list[Diagnostic] = []
        self.read: dict[str, bytes] = {}

    def unit(self, path: str, data: bytes) -> Unit:
        self.read[path] = data
        source = self._decode(path, data)
        program, problems = self.parse(source)
        self.problems += problems
        unit = self.units[path] = Unit(path, source, program)
        for statement in program.declarations:
            if isinstance(statement, n.Import):
                self._follow(unit, statement)
        return unit

    def _decode(self, path: str, data: bytes) -> Source:
        try:
            return decode(data, path)
        except UnicodeDecodeError as error:
            source = Source(path, data.decode("utf-8", "replace"))
            at = len(data[: error.start].decode("utf-8", "replace"))
            place = LabeledSpan(source, Span(at, at + 1))
            help = "save the file with the encoding UTF-8."
            self.problems.append(Diagnostic("E0105", "error", "this file is not UTF-8 text", place, help=help))
            return Source(path, "")

    def _follow(self, unit: Unit, statement: n.Import) -> None:
        try:
            found = self._resolve(unit, statement)
        except _UnresolvedError as problem:
            place = LabeledSpan(unit.source, statement.path.span)
            others = () if problem.place is None else (replace(place, label="imported here"),)
            fixes = replacement(unit.source, statement.path.span, problem.meant and f'"{problem.meant}"')
            where, text = problem.place or place, str(problem)
            self.problems.append(Diagnostic(problem.code, "error", text, where, others, problem.help, fixes=fixes))
            return
        unit.imports.append(found)
        if found.kind != "koi":
            return
        known = self.units.get(found.target)
        unit.reached.append(known if known is not None else self.unit(found.target, self.files.read(found.target)))

    def _resolve(self, unit: Unit, statement: n.Import) -> Imported:
        wanted = statement.path.value
        if wanted.startswith("python:"):
            module = wanted.removeprefix("python:")
            name = _name_of(statement, module.rpartition(".")[2])
            is_missing = not self.files.has_module(module)
            return Imported(statement, "python", module, name, is_missing=is_missing)
        if statement.type == "skill" and not wanted.endswith(".koi"):
            return self._skill(unit, statement)
        path = self._locate(unit, wanted)
        is_koi = path.endswith(".koi")
        if statement.type is not None and not is_koi and statement.type != "prompt":
            help = "write `prompt` for a text, or `skill` for a folder with a `SKILL.md`."
            raise _UnresolvedError("E0107", f"an import cannot have the type `{statement.type}`", help)
        if is_koi:
            return Imported(statement, "koi", path)
        if path.endswith(".py"):
            return self._python(statement, path)
        return self._text(statement, path)

    def _python(self, statement: n.Import, path: str) -> Imported:
        """A Python file, which is read and not executed; without a name it is called like its path."""
        wanted = statement.path.value
        content = self.files.read(path)
        try:
            with catch_warnings():
                simplefilter("ignore")
                compile(content, path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            at = error if isinstance(error, SyntaxError) and error.lineno else None
            message = f"`{wanted}` cannot be read as Python: {at.msg if at else error}"
            if at is None:
                raise _UnresolvedError("E0118", message, "save it again as Python source.") from error
            place = _line_of(Source(path, content.decode("utf-8", "replace")), at)
            line = place.source.text[place.span.start : place.span.end]
            help = f"correct line {place.source.position(place.span.start).line}: `{line}`."
            raise _UnresolvedError("E0118", message, help, place=place) from error
        stem = re.sub(r"\.\w+$", "", wanted.removeprefix("./"))
        return Imported(statement, "python", path, _name_of(statement, re.sub(r"\W", "_", stem)))

    def _skill(self, unit: Unit, statement: n.Import) -> Imported:
        """A folder with a `SKILL.md`, which is read when the program is run; here its front matter is looked at."""
        wanted = statement.path.value
        base = posixpath.normpath(posixpath.join(posixpath.dirname(unit.path), wanted))
        path = base if posixpath.basename(base) == SKILL else posixpath.join(base, SKILL)
        if not wanted.startswith(("./", "../", "/")) or not self.files.is_file(path):
            help = "name a folder with a `SKILL.md`, from the file on: `./.agents/skills/review`."
            raise _UnresolvedError("E0106", f"there is no skill `{wanted}`", help)
        try:
            read_front_matter(self.files.read(path).decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            raise _UnresolvedError("E0105", f"the skill `{wanted}` is not UTF-8 text", "save it as UTF-8.") from error
        except AgentError as error:
            raise _UnresolvedError("E0107", f"the skill `{wanted}` {error.message}", str(error.help)) from error
        return Imported(statement, "skill", path, _name_of(statement, ""))

    def _text(self, statement: n.Import, path: str) -> Imported:
        if statement.type is None and not path.endswith(".prompt"):
            name = statement.name.name if statement.name else "Name"
            help = f'to use its text as a prompt write `import {name} : prompt from "{statement.path.value}"`.'
            raise _UnresolvedError("E0107", f"`{statement.path.value}` is neither Koi nor Python", help)
        data = self.read[path] = self.files.read(path)
        stem = posixpath.basename(path).rpartition(".")[0]
        name = _name_of(statement, re.sub(r"[-_]+(\w)", lambda match: match[1].upper(), stem))
        return Imported(statement, "text", path, name, self._decode(path, data))

    def _locate(self, unit: Unit, wanted: str) -> str:
        if wanted.endswith(SCRIPTS):
            help = 'write the module in Python and import that: `import name from "./module.py"`.'
            raise _UnresolvedError("E0108", f"`{wanted}` is JavaScript, which cannot be imported here", help)
        if not wanted.startswith(("./", "../", "/")):
            return self._package(wanted)
        base = posixpath.normpath(posixpath.join(posixpath.dirname(unit.path), wanted))
        guesses = [base, *(f"{base}/{index}" for index in INDEXES)]
        if "." not in posixpath.basename(base):
            guesses[1:1] = [base + suffix for suffix in SUFFIXES]
        for guess in guesses:
            if self.files.is_file(guess):
                return guess
        near, help = self._nearest_file(base)
        meant = posixpath.join(posixpath.dirname(wanted), near) if near else None
        raise _UnresolvedError("E0106", f"there is no file `{wanted}`", help, meant)

    def _package(self, wanted: str) -> str:
        found = self.files.package(wanted)
        if found is not None:
            return found
        if wanted.startswith(STANDARD):
            parts = [STANDARD + name for name in self.files.names("std")]
            help, message = suggestion(wanted, parts, "part"), f"the standard library has no `{wanted}`"
            raise _UnresolvedError("E0106", message, help, nearest(wanted, parts))
        if wanted.removeprefix("node:") in OF_NODE:
            raise _UnresolvedError("E0106", f"`{wanted}` is a package of Node", OF_NODE[wanted.removeprefix("node:")])
        help = f"a file beside this one is imported as `./{wanted}`; an installed Python module as `python:{wanted}`."
        raise _UnresolvedError("E0106", f"there is no package `{wanted}`", help)

    def _nearest_file(self, base: str) -> tuple[str | None, str]:
        """Which file a path may mean, and the help; an ending such as `.koi` makes no two names alike."""
        folder, name = posixpath.split(base)
        known = {posixpath.splitext(each)[0]: each for each in self.files.names(folder)}
        near = nearest(posixpath.splitext(name)[0], known)
        return (known[near], f"did you mean `{known[near]}`?") if near else (None, f"it was looked for in {folder}.")


class _UnresolvedError(Exception):
    """A problem of an import statement; `meant` is the path that may stand there instead.

    `place` is where it is in the imported file.
    """

    def __init__(
        self, code: str, message: str, help: str, meant: str | None = None, place: LabeledSpan | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.help = help
        self.meant = meant
        self.place = place


def _line_of(source: Source, error: SyntaxError) -> LabeledSpan:
    """The line of a Python file that an error is about: the one that Python names, else the one where it stopped."""
    named = re.search(r"on line (\d+)", error.msg)
    lines = source.text.splitlines(keepends=True)
    index = min(int(named[1]) if named else error.lineno or 1, len(lines)) - 1
    start = sum(map(len, lines[:index]))
    line = lines[index] if lines else ""
    return LabeledSpan(source, Span(start + len(line) - len(line.lstrip()), start + len(line.rstrip())))


def standard_names(files: Files) -> dict[str, str]:
    """What the parts of the standard library export, each name with the import that brings it."""
    found: dict[str, str] = {}
    for part in files.names("std"):
        path = files.package(STANDARD + part)
        with suppress(OSError, UnicodeDecodeError):
            text = "" if path is None else files.read(path).decode("utf-8")
            found |= {name: STANDARD + part for name in OFFERED.findall(text) if name not in found}
    return found


def _name_of(statement: n.Import, default: str) -> str:
    return statement.name.name if statement.name else default
