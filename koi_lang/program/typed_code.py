"""Code that a person types: declarations, statements behind them, or both, as a program."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from koi_lang import settings
from koi_lang.compiler import nodes as n
from koi_lang.compiler.imports import load
from koi_lang.compiler.parser import parse
from koi_lang.compiler.symbols import SymbolTable, table_of
from koi_lang.compiler.syntax_errors.scanner import scan
from koi_lang.errors import UsageError
from koi_lang.program import cache
from koi_lang.program.files import DiskFiles
from koi_lang.source import Source, Span
from koi_lang.system.open_folders import STATE_FOLDER, make_state_folder

# The agent whose handler holds the statements, and its role.
AGENT, EVENT = "CommandLine", "step"
# What code of a person may do. A model that a playbook among the statements asks gets none of it.
PERMISSIONS = ("delegate", "call_mcp", "registry", "read", "write", "web_access")
NOTHING = ("talk",)
MAX_ATTEMPTS = 40
# Marks behind which a value has to follow.
OPERATORS = frozenset("+ - * / % ** = == != === !== < > <= >= && || ?? ? : , . ?. => += -= & | ^".split())
WORD = re.compile(r"\bplaybook\b")


class TextFiles(DiskFiles):
    """The file system, with texts in the place of some files."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = texts

    def read(self, path: str) -> bytes:
        """The content of a file, or the text in its place."""
        text = self.texts.get(path)
        return super().read(path) if text is None else text.encode("utf-8", "surrogatepass")

    def is_file(self, path: str) -> bool:
        """Whether there is a file, or a text in its place."""
        return path in self.texts or super().is_file(path)


@dataclass(frozen=True, slots=True)
class TypedCode:
    """Declarations and the statements behind them.

    Attributes:
        program: the declarations, as they were read.
        statements: where the statements begin; the length of the text where there are none.
    """

    source: Source
    program: n.Program
    statements: int

    @property
    def has_statements(self) -> bool:
        """Whether there are statements."""
        return self.statements < len(self.source.text)

    @property
    def declarations(self) -> str:
        """The text of the declarations."""
        return self.source.text[: self.statements]


def split(source: Source) -> TypedCode:
    """Find where the declarations of a text end and its statements begin; what is neither counts as statements.

    Statements begin at a word outside of all brackets, at or before the first place that no program can have.
    """
    text = source.text
    program, problems = parse(source)
    if not problems:
        return TypedCode(source, program, len(text))
    failed = problems[0].place.span.start
    starts = [start for start in _outermost(text) if start <= failed][-MAX_ATTEMPTS:]
    for start in reversed(starts):
        program, problems = parse(Source(source.path, text[:start]))
        if not problems:
            return TypedCode(source, program, start)
    return TypedCode(source, n.Program(Span(0, 0), (), ()), 0)


def is_unfinished(text: str) -> bool:
    """Whether more has to follow: a bracket or a text is open, or an operator is the end."""
    found = scan(text, Span(0, len(text)))
    if found.unclosed or any(piece.kind == "unclosed" for piece in found.pieces):
        return True
    return bool(found.pieces) and found.pieces[-1].kind == "mark" and found.pieces[-1].text in OPERATORS


def as_program(text: str, path: str, folder: str) -> str:
    """The program that does what a text says, kept in a file of any folder.

    Args:
        path: of the file that the text counts as; it need not exist.
        folder: that relative imports start from.
    """
    code = split(Source(path, text))
    declared = "".join(_with_absolute_imports(code, folder))
    if not code.has_statements:
        return declared
    before = f"{declared.rstrip()}\n\n" if declared.strip() else ""
    names = visible_names(Source(path, code.declarations), {})
    head, tail = wrapper(names, text[code.statements :])
    return f"{before}{head}\n{text[code.statements :]}\n{tail}\nrun {AGENT}.{EVENT}()\n"


def keep(code: str, folder: Path) -> str:
    """The path of a file with the program that some code is, among what is kept in a folder, else in the cache."""
    text = as_program(code, (folder / "code.koi").as_posix(), folder.as_posix())
    name = f"{cache.digest(text.encode())[:12]}.koi"
    for place in (folder / STATE_FOLDER / "code", settings.cache_folder() / "code"):
        with suppress(OSError):
            make_state_folder(place)
            if not (place / name).exists():
                cache.replace_file(place / name, text.encode())
            return str(place / name)
    raise UsageError(f"`{folder}` cannot be written to", help="Write the code into a file, and name that.")


def wrapper(names: SymbolTable, statements: str, variables: Sequence[str] = ()) -> tuple[str, str]:
    """What stands before and behind statements, so that they are a handler of an agent that uses all that it can.

    Args:
        names: what the statements can mention.
        variables: those of statements before, which the handler is given.
    """
    permissions = NOTHING if WORD.search(statements) else PERMISSIONS
    role = ", ".join(f"can {permission}" for permission in permissions)
    uses = [f"uses {kind} {', '.join(known)}" for kind in ("team", "skill", "mcp") if (known := names.names(kind))]
    given = f"{{ {', '.join(variables)} }}" if variables else ""
    agent = f"agent {AGENT} : {AGENT} {{ {''.join(f'{each} ' for each in uses)}on {EVENT}({given}) {{"
    return f"role {AGENT} {{ {role} }} {agent}", "} }"


def visible_names(declarations: Source, texts: Mapping[str, str]) -> SymbolTable:
    """What code behind some declarations can mention; `texts` stand in the place of files."""
    files = TextFiles({**texts, declarations.path: declarations.text})
    return table_of(load(declarations.path, files).units[0])


def _outermost(text: str) -> Iterator[int]:
    """Where the pieces of a text begin that stand outside of all brackets."""
    found = scan(text, Span(0, len(text)))
    until = -1
    for index, piece in enumerate(found.pieces):
        if index > until:
            yield piece.span.start
            until = found.partners.get(index, index)


def _with_absolute_imports(code: TypedCode, folder: str) -> Iterator[str]:
    """The pieces of the declarations, in which relative imports start from a folder."""
    at = 0
    for node in code.program.declarations:
        if isinstance(node, n.Import) and node.path.value.startswith(("./", "../")):
            yield code.source.text[at : node.path.span.start]
            yield json.dumps(posixpath.normpath(posixpath.join(folder, node.path.value)), ensure_ascii=False)
            at = node.path.span.end
    yield code.source.text[at : code.statements]
