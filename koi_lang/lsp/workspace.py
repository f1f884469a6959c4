"""The programs of a workspace as an editor sees them, checked again when what they were read from has changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from lsprotocol import types

from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.compile import Checked, check_program
from koi_lang.compiler.imports import Files, standard_names
from koi_lang.compiler.incremental import IncrementalChecker
from koi_lang.compiler.rules.program import AnalysedProgram
from koi_lang.lsp.documents import OpenDocument, OpenDocuments, path_of
from koi_lang.lsp.import_graph import ImportGraph
from koi_lang.lsp.open_files import OpenFiles
from koi_lang.lsp.positions import PositionMap
from koi_lang.source import Source, decode


@dataclass(frozen=True)
class Snapshot:
    """A document with what is known of its program.

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
        """A document was closed; what is known of its program is dropped."""
        self.documents.close(uri)
        self._snapshots.pop(path_of(uri), None)
        self._checkers.pop(path_of(uri), None)
        self.note_change()

    def note_change(self) -> None:
        """Something that programs are read from has changed, perhaps on disk."""
        self._changes += 1

    def snapshot(self, document: OpenDocument) -> Snapshot:
        """What is known of a document now. Raises OSError when it cannot be read."""
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
        """What was known of a document last, perhaps before its last change: for answers that must not wait."""
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
