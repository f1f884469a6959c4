"""An editor for tests: `koi lsp` as a process, and a client of the library that speaks with it."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.lsp.client import LanguageClient
from pygls.uris import from_fs_path

from tests import forks
from tests.limits import LIMIT_S

CAPABILITIES = types.ClientCapabilities(
    general=types.GeneralClientCapabilities(position_encodings=[types.PositionEncodingKind.Utf16])
)


class Editor:
    """One editor with its server; requests wait for their answers, at most 30 s."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runner = asyncio.Runner()
        self.client = LanguageClient("tests", "1")
        self.published: defaultdict[str, list[types.PublishDiagnosticsParams]] = defaultdict(list)
        self.logged: list[str] = []
        self.versions: defaultdict[str, int] = defaultdict(int)
        self.arrived: asyncio.Event | None = None

        @self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def published(params: types.PublishDiagnosticsParams) -> None:
            self.published[params.uri].append(params)
            self._note()

        @self.client.feature(types.WINDOW_LOG_MESSAGE)
        def logged(params: types.LogMessageParams) -> None:
            self.logged.append(params.message)
            self._note()

    def _note(self) -> None:
        if self.arrived is not None:
            self.arrived.set()

    def start(self) -> types.InitializeResult:
        """Start the server and agree with it on what both can do."""
        return self.run(self._start())

    async def _start(self) -> types.InitializeResult:
        await self.client.start_io(*forks.koi("lsp"), cwd=self.folder)
        folder = types.WorkspaceFolder(self.uri(""), self.folder.name)
        result = await self.client.initialize_async(
            types.InitializeParams(CAPABILITIES, root_uri=folder.uri, workspace_folders=[folder])
        )
        self.client.initialized(types.InitializedParams())
        return result

    def stop(self) -> int:
        """End the server as editors do, and give its exit code."""
        return self.run(self._stop())

    async def _stop(self) -> int:
        await self.client.shutdown_async(None)
        self.client.exit(None)
        server = self.client._server
        assert server is not None
        code = await server.wait()
        await self.client.stop()
        return code

    def run(self, waiting: Any) -> Any:
        """Wait for a coroutine."""
        return self.runner.run(asyncio.wait_for(waiting, LIMIT_S))

    def uri(self, name: str) -> str:
        """The URI of a file in the folder; names with a scheme are URIs already."""
        return name if ":" in name else str(from_fs_path(str(self.folder / name)))

    def open(self, name: str, text: str) -> str:
        """Open a document, which need not be on disk, and wait for what is wrong with it; gives its URI."""
        uri = self.uri(name)
        self.versions[uri] += 1
        given = types.TextDocumentItem(uri, "koi", self.versions[uri], text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(given))
        self.problems(uri)
        return uri

    def change(self, uri: str, *changes: types.TextDocumentContentChangeEvent) -> None:
        """Edit a document."""
        self.versions[uri] += 1
        given = types.VersionedTextDocumentIdentifier(self.versions[uri], uri)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(given, changes))

    def rewrite(self, uri: str, text: str) -> None:
        """Write all of a document anew, and wait for what is wrong with it."""
        self.change(uri, types.TextDocumentContentChangeWholeDocument(text))
        self.problems(uri)

    def problems(self, uri: str) -> list[types.Diagnostic]:
        """What is wrong with a document at the version that it has now."""
        return self.run(self._problems(uri))

    async def _problems(self, uri: str) -> list[types.Diagnostic]:
        while not self.published[uri] or self.published[uri][-1].version != self.versions[uri]:
            self.arrived = asyncio.Event()
            await self.arrived.wait()
        return list(self.published[uri][-1].diagnostics)
