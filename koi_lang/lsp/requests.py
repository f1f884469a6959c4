"""Requests of an editor to the functions that answer them."""

from __future__ import annotations

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from koi_lang.lsp.hover import hover
from koi_lang.lsp.workspace import Workspace


def register(server: LanguageServer, programs: Workspace) -> None:
    """Have a server answer by the programs of a workspace; documents that are not open have no answers."""

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def answer_hover(params: types.HoverParams) -> types.Hover | None:
        document = programs.documents.of(params.text_document.uri)
        if document is None:
            return None
        return hover(programs.snapshot(document), document.map.offset(params.position))
