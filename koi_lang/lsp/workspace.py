"""The programs of a workspace as an editor sees them, checked again when what they were read from has changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

from lsprotocol import types

from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.compile import Checked
from koi_lang.compiler.imports import Files, standard_names
from koi_lang.compiler.incremental import IncrementalChecker
from koi_lang.compiler.rules.program import AnalysedProgram
from koi_lang.lsp.documents import OpenDocument, OpenDocuments, path_of
from koi_lang.lsp.positions import PositionMap
from koi_lang.source import Source


class OpenFiles:
    """The file system with the texts of open documents in front of it."""

    def __init__(self, documents: OpenDocuments, disk: Files) -> None:
        self._documents, self._disk = documents, disk

    def read(self, path: str) -> bytes:
        """The content of a file. Raises OSError."""
        document = self._documents.at(path)
        if document is None:
            return self._disk.read(path)
        # The compiler drops one mark of byte order, and columns of the client count it.
        mark = "\ufeff" if document.text.startswith("\ufeff") else ""
        return (mark + document.text).encode("utf-8")

    def is_file(self, path: str) -> bool:
        """Whether there is a file."""
        return self._documents.at(path) is not None or self._disk.is_file(path)

    def package(self, name: str) -> str | None:
        """The file that an installed package or a part of the standard library stands for."""
        return self._disk.package(name)

    def has_module(self, name: str) -> bool:
        """Whether Python can import a module."""
        return self._disk.has_module(name)

    def names(self, folder: str) -> list[str]:
        """The names in a folder, or for `std` those of the standard library."""
        return self._disk.names(folder)


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

    @cached_property
    def analysed_text(self) -> str:
        """The text that was analysed."""
        return self.file.unit.source.text if self.file is not None else ""


class Workspace:
    """Open documents and the programs they belong to; each is checked at most once between two changes."""

    def __init__(self, disk: Files, encoding: str) -> None:
        self.documents = OpenDocuments(encoding)
        self.files = OpenFiles(self.documents, disk)
        self._snapshots: dict[str, tuple[int, Snapshot]] = {}
        self._checkers: dict[str, IncrementalChecker] = {}
        self._changes = 0

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

    def map_of(self, source: Source) -> PositionMap:
        """The positions of a source: those of the open document, where it is the same text."""
        document = self.documents.at(source.path)
        if document is not None and document.text == source.text:
            return document.map
        return PositionMap(source.text, self.documents.encoding)

    def dependents(self, path: str) -> list[OpenDocument]:
        """The other open documents whose programs, when they were checked last, contained a file."""
        known = ((document, self._snapshots.get(document.path)) for document in self.documents)
        return [
            document
            for document, found in known
            if document.path != path and found is not None and path in found[1].checked.read
        ]
