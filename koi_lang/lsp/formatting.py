"""Documents in the layout of Koi, as edits."""

from __future__ import annotations

from difflib import SequenceMatcher

from lsprotocol import types

from koi_lang.compiler.formatter import FormattingError, format_source
from koi_lang.diagnostics import CompileError
from koi_lang.lsp.documents import OpenDocument
from koi_lang.source import Source, Span


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
