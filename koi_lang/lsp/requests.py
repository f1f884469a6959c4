"""Requests of an editor to the functions that answer them."""

from __future__ import annotations

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from koi_lang.lsp.code_actions import quick_fixes
from koi_lang.lsp.hover import hover
from koi_lang.lsp.workspace import Workspace


def register(server: LanguageServer, programs: Workspace) -> None:
    """Have a server answer by the programs of a workspace; documents that are not open have no answers."""

    fixes = types.CodeActionOptions([types.CodeActionKind.QuickFix])

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, fixes)
    def answer_code_action(params: types.CodeActionParams) -> list[types.CodeAction] | None:
        document = programs.documents.of(params.text_document.uri)
        return quick_fixes(programs.snapshot(document), params.range, programs) if document is not None else None

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def answer_hover(params: types.HoverParams) -> types.Hover | None:
        document = programs.documents.of(params.text_document.uri)
        if document is None:
            return None
        return hover(programs.snapshot(document), document.map.offset(params.position))
