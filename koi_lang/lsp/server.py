"""The server: one editor, its documents, and the publication of their problems."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Generator
from typing import Any, BinaryIO

from lsprotocol import types
from pygls.exceptions import FeatureRequestError, JsonRpcException, PyglsError
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol, lsp_method

from koi_lang.compiler.imports import Files
from koi_lang.lsp import requests
from koi_lang.lsp.documents import OpenDocument, path_of
from koi_lang.lsp.problems import to_protocol
from koi_lang.lsp.requests import CountActions
from koi_lang.lsp.workspace import Workspace
from koi_lang.version import __version__

Steps = Generator[Any, Any, None]
UTF16 = types.PositionEncodingKind.Utf16
# How long an editor is idle before a document is checked: at least, and at most where checking takes long.
MIN_IDLE_S, MAX_IDLE_S = 0.04, 1.0


class KoiProtocol(LanguageServerProtocol):
    """Passes opened, edited and closed documents to the workspace of the server.

    The documents of the library count lines by other rules, and fail on columns and documents that do not exist.
    """

    _server: KoiServer

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: types.DidOpenTextDocumentParams) -> Steps:
        """A document was opened; its text is the editor's from now on."""
        given = params.text_document
        self._server.programs.open(given.uri, given.text, given.version)
        yield self.fm.features[types.TEXT_DOCUMENT_DID_OPEN], (params,), None

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: types.DidChangeTextDocumentParams) -> Steps:
        """A document was edited."""
        given = params.text_document
        if self._server.programs.change(given.uri, given.version, params.content_changes):
            yield self.fm.features[types.TEXT_DOCUMENT_DID_CHANGE], (params,), None

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: types.DidCloseTextDocumentParams) -> Steps:
        """A document was closed; its text is that on disk again."""
        self._server.programs.close(params.text_document.uri)
        yield self.fm.features[types.TEXT_DOCUMENT_DID_CLOSE], (params,), None


class KoiServer(LanguageServer):
    """Serves one editor.

    Args:
        disk: the file system behind the open documents.
        count_actions: gives how many actions the permissions of a role allow.

    Attributes:
        programs: the open documents and their programs.
    """

    def __init__(self, disk: Files, count_actions: CountActions) -> None:
        self.programs = Workspace(disk, UTF16)
        self._idle_s = MIN_IDLE_S
        super().__init__("koi", __version__, protocol_cls=KoiProtocol)
        self._register()
        requests.register_navigation(self, self.programs)
        requests.register_typing(self, self.programs)
        requests.register_views(self, self.programs, count_actions)

    def _register(self) -> None:
        """Register notifications in both directions."""

        @self.feature(types.INITIALIZED)
        def agree(_: types.InitializedParams) -> None:
            self.programs.roots = [path_of(folder.uri) for folder in self.workspace.folders.values()]
            self.programs.documents.encoding = self.server_capabilities.position_encoding or UTF16

        @self.feature(types.TEXT_DOCUMENT_DID_OPEN)
        def note_open(params: types.DidOpenTextDocumentParams) -> None:
            self._publish_all(params.text_document.uri)

        @self.feature(types.TEXT_DOCUMENT_DID_CHANGE)
        async def note_edit(params: types.DidChangeTextDocumentParams) -> None:
            await asyncio.sleep(self._idle_s)
            document = self.programs.documents.of(params.text_document.uri)
            if document is not None and document.version == params.text_document.version:
                self._publish_all(document.uri)

        @self.feature(types.TEXT_DOCUMENT_DID_SAVE)
        @self.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
        def note_disk(_: types.DidSaveTextDocumentParams | types.DidChangeWatchedFilesParams) -> None:
            self.programs.note_change()
            for document in self.programs.documents:
                self._publish(document)

        @self.feature(types.TEXT_DOCUMENT_DID_CLOSE)
        def note_close(params: types.DidCloseTextDocumentParams) -> None:
            self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(params.text_document.uri, []))

    def _publish_all(self, uri: str) -> None:
        """Publish the problems of a document, and of open ones that import it."""
        document = self.programs.documents.of(uri)
        if document is not None:
            self._publish(document)
            for other in self.programs.dependents(document.path):
                self._publish(other)

    def _publish(self, document: OpenDocument) -> None:
        began = asyncio.get_running_loop().time()
        checked = self.programs.snapshot(document).checked
        took_s = asyncio.get_running_loop().time() - began
        self._idle_s = min(max(MIN_IDLE_S, took_s / 4), MAX_IDLE_S)
        own = [problem for problem in checked.diagnostics if problem.place.source.path == document.path]
        found = [to_protocol(problem, self.programs.map_of) for problem in own]
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(document.uri, found, document.version))

    def report_server_error(self, error: Exception, source: type[PyglsError] | type[JsonRpcException]) -> None:
        """Tell the log of the editor about a failure, in one line; those of requests are told in their responses."""
        if source is FeatureRequestError:
            return
        text = f"koi lsp: {type(error).__name__}: {error}"
        self.window_log_message(types.LogMessageParams(types.MessageType.Error, text))


def serve(disk: Files, count_actions: CountActions, stdin: BinaryIO, stdout: BinaryIO) -> None:
    """Serve the editor on stdin and stdout until it leaves or dies."""
    logging.getLogger("pygls").propagate = False
    logging.getLogger("pygls").addHandler(logging.NullHandler())
    KoiServer(disk, count_actions).start_io(stdin, stdout)
