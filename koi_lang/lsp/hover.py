"""What stands under the cursor: its declaration, and what there is to know of it."""

from __future__ import annotations

import re

from lsprotocol import types

from koi_lang.compiler.doc_comments import doc_comment
from koi_lang.compiler.symbols import Symbol
from koi_lang.lsp.workspace import Snapshot
from koi_lang.source import Span

WORD = re.compile(r"[A-Za-z_$][\w$]*")


def hover(snapshot: Snapshot, offset: int) -> types.Hover | None:
    """What to show at an offset of a document; None where there is nothing to say."""
    word = word_at(snapshot.document.text, offset)
    if word is None or snapshot.file is None:
        return None
    name = snapshot.document.text[word.start : word.end]
    table = snapshot.file.table
    for space in (table.values, table.roles, table.skills, table.mcps, table.types):
        if name in space:
            content = types.MarkupContent(types.MarkupKind.Markdown, _describe(space[name]))
            return types.Hover(content, snapshot.document.map.range(word))
    return None


def word_at(text: str, offset: int) -> Span | None:
    """The word that an offset is in or at the end of."""
    start = text.rfind("\n", 0, offset) + 1
    end = text.find("\n", offset)
    words = WORD.finditer(text, start, len(text) if end < 0 else end)
    return next((Span(*word.span()) for word in words if word.start() <= offset <= word.end()), None)


def _describe(symbol: Symbol) -> str:
    line = symbol.unit.source.line(symbol.unit.source.position(symbol.span.start).line).strip()
    said = doc_comment(symbol.unit.source.text, symbol.node.span.start)
    return "\n\n".join(filter(None, [f"```koi\n{line}\n```", said]))
