"""Open documents of an editor: their texts by URI, kept in step with its changes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from lsprotocol import types
from pygls.uris import from_fs_path, to_fs_path

from koi_lang.lsp.positions import PositionMap

# Halves of UTF-16 pairs that stand alone, which no text in UTF-8 can hold.
LONE_SURROGATES = re.compile(r"[\ud800-\udfff]")


@dataclass(frozen=True)
class OpenDocument:
    """One text that an editor has open, at one version."""

    uri: str
    path: str
    text: str
    version: int
    encoding: str

    @cached_property
    def map(self) -> PositionMap:
        """Its positions."""
        return PositionMap(self.text, self.encoding)


class OpenDocuments:
    """The open documents, by their paths."""

    def __init__(self, encoding: str = types.PositionEncodingKind.Utf16) -> None:
        self.encoding = encoding
        self._open: dict[str, OpenDocument] = {}

    def __iter__(self) -> Iterator[OpenDocument]:
        return iter([*self._open.values()])

    def open(self, uri: str, text: str, version: int) -> OpenDocument:
        """Add an opened document; an open one of that name is replaced."""
        document = OpenDocument(uri, path_of(uri), LONE_SURROGATES.sub("\ufffd", text), version, self.encoding)
        self._open[document.path] = document
        return document

    def change(
        self, uri: str, version: int, changes: Iterable[types.TextDocumentContentChangeEvent]
    ) -> OpenDocument | None:
        """Apply changes one after the other; of no open document, or of an older version, they are dropped."""
        document = self.of(uri)
        if document is None or version < document.version:
            return None
        for change in changes:
            text = document.text
            if isinstance(change, types.TextDocumentContentChangePartial):
                span = document.map.span(change.range)
                text = text[: span.start] + change.text + text[span.end :]
            else:
                text = change.text
            document = self.open(uri, text, version)
        return document

    def close(self, uri: str) -> None:
        """Forget a document; its content on disk is valid again."""
        self._open.pop(path_of(uri), None)

    def of(self, uri: str) -> OpenDocument | None:
        """The open document of a URI."""
        return self._open.get(path_of(uri))

    def at(self, path: str) -> OpenDocument | None:
        """The open document of a path."""
        return self._open.get(path)


def path_of(uri: str) -> str:
    """The path that the compiler knows a document by: of files the absolute one, of others the URI itself."""
    path = to_fs_path(uri) if uri.startswith("file:") else None
    return os.path.abspath(path).replace(os.sep, "/") if path else uri


def uri_of(path: str) -> str:
    """The URI of a path that the compiler knows."""
    return (from_fs_path(path) or path) if path.startswith("/") or re.match(r"[A-Za-z]:/", path) else path
