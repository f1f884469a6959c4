"""The programs of a workspace as an editor sees them, checked again when their files have changed."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from lsprotocol import types

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.compile import Checked, check_program
from koi_lang.compiler.declaration_cache import DeclarationCache
from koi_lang.compiler.imports import Files, standard_names
from koi_lang.compiler.parser import parse
from koi_lang.compiler.rules.program import AnalysedProgram
from koi_lang.diagnostics import Diagnostic
from koi_lang.lsp.documents import OpenDocument, OpenDocuments, path_of
from koi_lang.lsp.open_files import OpenFiles
from koi_lang.lsp.positions import PositionMap
from koi_lang.source import Source, decode


@dataclass(frozen=True)
class Snapshot:
    """A document with the state of its program.

    Attributes:
        document: the text as the editor has it now.
        checked: what was found, perhaps of an older text.
        program: the files of the program; the first is the document.
    """

    document: OpenDocument
    checked: Checked
    program: AnalysedProgram

    @property
    def file(self) -> Analysis | None:
        """The analysed document; None when nothing of it could be read."""
        return self.program.files[0] if self.program.files else None


class Workspace:
    """Open documents and the programs they belong to; each is checked at most once between two changes.

    Attributes:
        roots: the folders that the editor has open.
    """

    def __init__(self, disk: Files, encoding: str) -> None:
        self.documents = OpenDocuments(encoding)
        self.files = OpenFiles(self.documents, disk)
        self._snapshots: dict[str, tuple[int, Snapshot]] = {}
        self._checkers: dict[str, IncrementalChecker] = {}
        self._changes = 0
        self._imports = ImportGraph(self.files)
        self.roots: list[str] = []

    def open(self, uri: str, text: str, version: int) -> None:
        """A document was opened."""
        self.documents.open(uri, text, version)
        self.note_change()

    def change(self, uri: str, version: int, changes: Sequence[types.TextDocumentContentChangeEvent]) -> bool:
        """A document was edited; whether the change could be applied."""
        self.note_change()
        return self.documents.change(uri, version, changes) is not None

    def close(self, uri: str) -> None:
        """Close a document; the state of its program is dropped."""
        self.documents.close(uri)
        self._snapshots.pop(path_of(uri), None)
        self._checkers.pop(path_of(uri), None)
        self.note_change()

    def note_change(self) -> None:
        """Something that programs are read from has changed, perhaps on disk."""
        self._changes += 1

    def snapshot(self, document: OpenDocument) -> Snapshot:
        """The present state of a document. Raises OSError when it cannot be read."""
        known = self._snapshots.get(document.path)
        if known is not None and known[0] == self._changes:
            return known[1]
        checker = self._checkers.setdefault(document.path, IncrementalChecker())
        checked = checker.check(document.path, self.files)
        program = AnalysedProgram(checked.analysed, partial(standard_names, self.files))
        snapshot = Snapshot(document, checked, program)
        self._snapshots[document.path] = self._changes, snapshot
        return snapshot

    def latest(self, document: OpenDocument) -> Snapshot:
        """The last state of a document, perhaps before its last change: for answers that must not wait."""
        known = self._snapshots.get(document.path)
        return self.snapshot(document) if known is None else replace(known[1], document=document)

    def map_of(self, source: Source) -> PositionMap:
        """The positions of a source: those of the open document, where it is the same text."""
        document = self.documents.at(source.path)
        if document is not None and document.text == source.text:
            return document.map
        return PositionMap(source.text, self.documents.encoding)

    def map_of_path(self, path: str) -> PositionMap:
        """The positions of a file as it is now. Raises OSError."""
        return self.map_of(decode(self.files.read(path), path))

    def importing(self, path: str) -> list[AnalysedProgram]:
        """The programs of files that import a file, at any distance; the file's own is the first."""
        own, opened = self._analyse(path), [document.path for document in self.documents]
        return [own, *(self._analyse(other) for other in self._imports.importers(path, self.roots, opened))]

    def _analyse(self, path: str) -> AnalysedProgram:
        document = self.documents.at(path)
        if document is not None:
            return self.snapshot(document).program
        return AnalysedProgram(check_program(path, self.files).analysed, partial(standard_names, self.files))

    def dependents(self, path: str) -> list[OpenDocument]:
        """The other open documents whose programs, when they were checked last, contained a file."""
        known = ((document, self._snapshots.get(document.path)) for document in self.documents)
        return [
            document
            for document, found in known
            if document.path != path and found is not None and path in found[1].checked.read
        ]


IMPORT = re.compile(r"^[ \t]*import\b[^\n\"']*[\"']([^\"'\n]+)[\"']", re.MULTILINE | re.IGNORECASE)
SUFFIX = ".koi"
PASSED_OVER = frozenset({"node_modules", "__pycache__", "venv"})
# So many files of a workspace are looked at, in folders at most so deep.
MAX_FILES, MAX_DEPTH = 2000, 8


class ImportGraph:
    """The imports between the files of some folders; unchanged files are not read again."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._known: dict[str, tuple[bytes, list[str]]] = {}

    def importers(self, path: str, roots: Sequence[str], opened: Sequence[str]) -> list[str]:
        """The files in some folders, and among those that are open, that import one, at any distance."""
        after: dict[str, list[str]] = {}
        for file in dict.fromkeys([*opened, *self.files_in(roots)]):
            for target in self._targets(file):
                after.setdefault(target, []).append(file)
        found: dict[str, None] = {}
        waiting = [path]
        while waiting:
            new = [each for each in after.get(waiting.pop(), ()) if each not in found and each != path]
            found |= dict.fromkeys(new)
            waiting += new
        return list(found)

    def files_in(self, roots: Sequence[str]) -> list[str]:
        """The programs in some folders, at most 2,000; folders of tools and unreadable ones are skipped."""
        found: dict[str, None] = {}
        for root in roots:
            for file in self._walk(root, MAX_DEPTH):
                if len(found) >= MAX_FILES:
                    return list(found)
                found[file] = None
        return list(found)

    def _walk(self, folder: str, deep: int) -> Iterator[str]:
        names = [name for name in self._files.names(folder) if not name.startswith(".") and name not in PASSED_OVER]
        yield from (f"{folder}/{name}" for name in names if name.endswith(SUFFIX))
        for name in names if deep else ():
            if "." not in name:
                yield from self._walk(f"{folder}/{name}", deep - 1)

    def _targets(self, file: str) -> list[str]:
        try:
            data = self._files.read(file)
        except OSError:
            return []
        known = self._known.get(file)
        if known is None or known[0] != data:
            wanted = IMPORT.findall(data.decode("utf-8", "replace"))
            targets = [each for path in wanted if path.startswith(".") for each in _candidates(file, path)]
            known = self._known[file] = data, targets
        return known[1]


def _candidates(file: str, wanted: str) -> list[str]:
    """The files that a relative import may mean."""
    base = posixpath.normpath(posixpath.join(posixpath.dirname(file), wanted))
    return [base] if base.endswith(SUFFIX) else [base + SUFFIX, f"{base}/index{SUFFIX}"]


class IncrementalChecker:
    """Checks one program again and again; the result is that of `check_program`.

    A file that did not change is not read again, and of one that did, only the declarations that changed. What is kept
    is what the last two checks have read, so memory is bounded by the size of the program.
    """

    def __init__(self) -> None:
        self._before: dict[str, _File] = {}
        self._now: dict[str, _File] = {}

    def check(self, path: str, files: Files, *, strict: bool = False) -> Checked:
        """Read the files changed since the last check, and report all problems. Raises OSError for the entry."""
        self._before, self._now = self._now, {}
        return check_program(path, files, strict=strict, read=self._read)

    def _read(self, source: Source) -> tuple[n.Program, list[Diagnostic]]:
        file = self._now.setdefault(source.path, self._before.get(source.path) or _File())
        if file.read is None or file.source != source:
            file.source, file.read = source, parse(source, file.declarations)
        program, problems = file.read
        return program, list(problems)


@dataclass(slots=True)
class _File:
    """One file as it was read last."""

    source: Source | None = None
    read: tuple[n.Program, list[Diagnostic]] | None = None
    declarations: DeclarationCache = field(default_factory=DeclarationCache)
