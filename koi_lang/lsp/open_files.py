"""File systems in front of another one: with the texts of open documents."""

from __future__ import annotations

from koi_lang.compiler.imports import Files
from koi_lang.lsp.documents import OpenDocuments


class FileOverlay:
    """The files of another file system, some with other content."""

    def __init__(self, disk: Files) -> None:
        self.disk = disk

    def read(self, path: str) -> bytes:
        """The content of a file. Raises OSError."""
        return self.disk.read(path)

    def is_file(self, path: str) -> bool:
        """Whether there is a file."""
        return self.disk.is_file(path)

    def package(self, name: str) -> str | None:
        """The file that an installed package or a part of the standard library stands for."""
        return self.disk.package(name)

    def has_module(self, name: str) -> bool:
        """Whether Python can import a module."""
        return self.disk.has_module(name)

    def names(self, folder: str) -> list[str]:
        """The names in a folder, or for `std` those of the standard library."""
        return self.disk.names(folder)


class OpenFiles(FileOverlay):
    """The file system with the texts of open documents in front of it."""

    def __init__(self, documents: OpenDocuments, disk: Files) -> None:
        super().__init__(disk)
        self._documents = documents

    def read(self, path: str) -> bytes:
        """The content of a file. Raises OSError."""
        document = self._documents.at(path)
        if document is None:
            return self.disk.read(path)
        # The compiler drops one mark of byte order, and columns of the client count it.
        mark = "\ufeff" if document.text.startswith("\ufeff") else ""
        return (mark + document.text).encode("utf-8")

    def is_file(self, path: str) -> bool:
        """Whether there is a file."""
        return self._documents.at(path) is not None or self.disk.is_file(path)
