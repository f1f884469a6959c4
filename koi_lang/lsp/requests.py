"""Requests of an editor to the functions that answer them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import Protocol

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer

from koi_lang.compiler import nodes as n
from koi_lang.compiler.analysis import Analysis
from koi_lang.compiler.formatter import FormattingError, format_source
from koi_lang.diagnostics import CompileError
from koi_lang.lsp.code_actions import quick_fixes
from koi_lang.lsp.completer import Completer
from koi_lang.lsp.completion import complete
from koi_lang.lsp.cursor import cursor_at
from koi_lang.lsp.documents import OpenDocument, uri_of
from koi_lang.lsp.hints import inlay_hints, signature_help
from koi_lang.lsp.hover import hover
from koi_lang.lsp.navigation import find_references, occurrence_at
from koi_lang.lsp.occurrences import Occurrence
from koi_lang.lsp.outline import document_symbols, folding_ranges
from koi_lang.lsp.rename import RenameError, rename, why_fixed
from koi_lang.lsp.semantic_tokens import LEGEND, semantic_tokens
from koi_lang.lsp.workspace import Snapshot, Workspace
from koi_lang.source import Source, Span


class OfDocument(Protocol):
    """A request about a document."""

    text_document: types.TextDocumentIdentifier


class Placed(OfDocument, Protocol):
    """A request about a place in a document."""

    position: types.Position


def register_navigation(server: LanguageServer, programs: Workspace) -> None:  # noqa: C901 -- a function a request
    """Register the requests about definitions; documents that are not open have no answers."""

    def name_at(params: Placed) -> tuple[Snapshot, Occurrence] | None:
        document = programs.documents.of(params.text_document.uri)
        if document is None:
            return None
        snapshot = programs.snapshot(document)
        found = occurrence_at(snapshot, document.map.offset(params.position))
        return None if found is None else (snapshot, found)

    def locate(source: Source, span: Span) -> types.Location:
        return types.Location(uri_of(source.path), programs.map_of(source).range(span))

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def answer_hover(params: types.HoverParams) -> types.Hover | None:
        document = programs.documents.of(params.text_document.uri)
        if document is None:
            return None
        return hover(programs.snapshot(document), document.map.offset(params.position))

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    def answer_definition(params: types.DefinitionParams) -> list[types.Location] | None:
        found = name_at(params)
        if found is None:
            return None
        return [locate(each.source, each.span) for each in found[1].definitions if each.source is not None]

    @server.feature(types.TEXT_DOCUMENT_REFERENCES)
    def answer_references(params: types.ReferenceParams) -> list[types.Location] | None:
        found = name_at(params)
        if found is None:
            return None
        declared = {(each.path, each.span) for each in found[1].definitions}
        places = find_references(found[1].definitions, programs)
        return [
            locate(place.source, place.span)
            for place in places
            if params.context.include_declaration or (place.source.path, place.span) not in declared
        ]

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
    def answer_highlight(params: types.DocumentHighlightParams) -> list[types.DocumentHighlight] | None:
        found = name_at(params)
        if found is None:
            return None
        snapshot, occurrence = found
        places = find_references(occurrence.definitions, programs)
        own = (place.span for place in places if place.source.path == snapshot.document.path)
        return [types.DocumentHighlight(snapshot.document.map.range(span)) for span in own]

    @server.feature(types.TEXT_DOCUMENT_PREPARE_RENAME)
    def answer_prepare_rename(params: types.PrepareRenameParams) -> types.Range | None:
        found = name_at(params)
        if found is None:
            return None
        why = why_fixed(found[1])
        if why is not None:
            raise JsonRpcInvalidParams(f"`{found[1].definitions[0].name}` cannot be renamed: {why}")
        return found[0].document.map.range(found[1].span)

    @server.feature(types.TEXT_DOCUMENT_RENAME, types.RenameOptions(prepare_provider=True))
    def answer_rename(params: types.RenameParams) -> types.WorkspaceEdit | None:
        found = name_at(params)
        if found is None:
            return None
        try:
            edits = rename(found[1], params.new_name, programs)
        except RenameError as error:
            raise JsonRpcInvalidParams(": ".join(filter(None, [str(error), error.help]))) from None
        changes = {}
        for path, each in edits.items():
            positions = programs.map_of_path(path)
            changes[uri_of(path)] = [types.TextEdit(positions.range(span), new) for span, new in each]
        return types.WorkspaceEdit(changes=changes)


def register_typing(server: LanguageServer, programs: Workspace) -> None:
    """Register completion, signatures and edits."""
    triggers = types.CompletionOptions(trigger_characters=list(".:\"'@{(/ "))

    @server.feature(types.TEXT_DOCUMENT_SIGNATURE_HELP, types.SignatureHelpOptions(["(", ","]))
    def answer_signature_help(params: types.SignatureHelpParams) -> types.SignatureHelp | None:
        document = programs.documents.of(params.text_document.uri)
        if document is None:
            return None
        cursor = cursor_at(document.text, document.map.offset(params.position))
        return signature_help(Completer(programs.latest(document), cursor, programs.files))

    @server.feature(types.TEXT_DOCUMENT_FORMATTING)
    def answer_formatting(params: types.DocumentFormattingParams) -> list[types.TextEdit] | None:
        document = programs.documents.of(params.text_document.uri)
        return format_document(document) if document is not None else None

    @server.feature(types.TEXT_DOCUMENT_COMPLETION, triggers)
    def answer_completion(params: types.CompletionParams) -> list[types.CompletionItem] | None:
        document = programs.documents.of(params.text_document.uri)
        if document is None:
            return None
        cursor = cursor_at(document.text, document.map.offset(params.position))
        return complete(Completer(programs.latest(document), cursor, programs.files))

    fixes = types.CodeActionOptions([types.CodeActionKind.QuickFix])

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, fixes)
    def answer_code_action(params: types.CodeActionParams) -> list[types.CodeAction] | None:
        document = programs.documents.of(params.text_document.uri)
        return quick_fixes(programs.snapshot(document), params.range, programs) if document is not None else None


def register_views(server: LanguageServer, programs: Workspace, count_actions: CountActions) -> None:
    """Register the views of whole documents; unreadable ones have none."""

    def read(params: OfDocument) -> tuple[Snapshot, Analysis] | None:
        document = programs.documents.of(params.text_document.uri)
        snapshot = None if document is None else programs.snapshot(document)
        return None if snapshot is None or snapshot.file is None else (snapshot, snapshot.file)

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def answer_symbols(params: types.DocumentSymbolParams) -> list[types.DocumentSymbol] | None:
        found = read(params)
        return None if found is None else document_symbols(found[1], found[0].document.map)

    @server.feature(types.TEXT_DOCUMENT_FOLDING_RANGE)
    def answer_folding(params: types.FoldingRangeParams) -> list[types.FoldingRange] | None:
        found = read(params)
        return None if found is None else folding_ranges(found[1], found[0].document.map)

    @server.feature(types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, LEGEND)
    def answer_tokens(params: types.SemanticTokensParams) -> types.SemanticTokens | None:
        found = read(params)
        return None if found is None else semantic_tokens(found[1], found[0].program, found[0].document.map)

    @server.feature(types.TEXT_DOCUMENT_INLAY_HINT)
    def answer_hints(params: types.InlayHintParams) -> list[types.InlayHint] | None:
        found = read(params)
        return None if found is None else inlay_hints(found[0], params.range)

    @server.feature(types.TEXT_DOCUMENT_CODE_LENS)
    def answer_lenses(params: types.CodeLensParams) -> list[types.CodeLens] | None:
        found = read(params)
        return None if found is None else code_lenses(found[1], found[0].document, count_actions)


def format_document(document: OpenDocument) -> list[types.TextEdit]:
    """The changes that lay a document out, line by line; none where it has errors."""
    try:
        formatted = format_source(Source(document.path, document.text))
    except (CompileError, FormattingError):
        return []
    before, after = document.text.splitlines(keepends=True), formatted.splitlines(keepends=True)
    starts = [0]
    for line in before:
        starts.append(starts[-1] + len(line))
    changes = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return [
        types.TextEdit(document.map.range(Span(starts[first], starts[last])), "".join(after[start:end]))
        for kind, first, last, start, end in changes
        if kind != "equal"
    ]


# How many actions the permissions of a role allow.
CountActions = Callable[[Sequence[str]], int]


def code_lenses(file: Analysis, document: OpenDocument, count_actions: CountActions) -> list[types.CodeLens]:
    """The commands of a document; the editor carries them out with `{uri, target}`."""
    return [
        types.CodeLens(
            document.map.range(span),
            types.Command(title, command, arguments=[{"uri": document.uri, "target": target}]),
        )
        for span, title, command, target in _commands(file, count_actions)
    ]


def _commands(file: Analysis, count_actions: CountActions) -> Iterator[tuple[Span, str, str, str]]:
    for run, _ in file.index.of(n.Run):
        if run.job is not None:
            continue  # a service starts it
        target = f"{run.agent.name}.{run.handler.name}"
        yield run.span, "run", "koi.run", target
        yield run.span, "debug", "koi.debug", target
    for test, _ in file.index.of(n.Test):
        yield test.name.span, "test", "koi.test", test.name.value
    for agent, _ in file.index.of(n.Agent):
        role = file.table.find("role", agent.role.name)
        if role is not None and isinstance(role.node, n.Role):
            count = count_actions([name.name for name in role.node.capabilities])
            title = f"audit: {count} action{'' if count == 1 else 's'}"
            yield agent.name.span, title, "koi.audit", agent.name.name
