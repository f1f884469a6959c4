"""Every request about every program, also about broken ones, has an answer."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import pytest
from lsprotocol import types

from koi_lang.lsp.code_actions import quick_fixes
from koi_lang.lsp.completer import Completer
from koi_lang.lsp.completion import complete
from koi_lang.lsp.cursor import cursor_at
from koi_lang.lsp.documents import OpenDocuments
from koi_lang.lsp.hints import inlay_hints, signature_help
from koi_lang.lsp.hover import hover
from koi_lang.lsp.navigation import all_occurrences
from koi_lang.lsp.outline import document_symbols, folding_ranges
from koi_lang.lsp.requests import code_lenses, format_document
from koi_lang.lsp.semantic_tokens import find_coloured, semantic_tokens
from koi_lang.lsp.workspace import Snapshot, Workspace
from koi_lang.source import Span
from tests.lsp.programs import PROGRAMS, opened
from tests.support import HERE

BROKEN = sorted((HERE / "messages").rglob("*.koi"))
PLACES = 25


@pytest.mark.sampled(25)
@pytest.mark.parametrize("path", [*PROGRAMS, *BROKEN], ids=lambda path: path.stem)
def test_every_request_is_answered(path: Path) -> None:
    """At random places of a program nothing fails; names stand where they say, and colours never overlap."""
    text = path.read_text("utf-8", "replace")
    programs, snapshot = opened(path, text)
    for offset in random.Random(path.stem).choices(range(len(text) + 1), k=PLACES):
        _ask_at(snapshot, programs, offset)
    whole = types.Range(types.Position(0, 0), types.Position(100_000, 0))
    quick_fixes(snapshot, whole, programs)
    inlay_hints(snapshot, whole)
    format_document(snapshot.document)
    if snapshot.file is not None:
        document_symbols(snapshot.file, snapshot.document.map)
        folding_ranges(snapshot.file, snapshot.document.map)
        semantic_tokens(snapshot.file, snapshot.program, snapshot.document.map)
        code_lenses(snapshot.file, snapshot.document, len)
        _require_places(snapshot)


def _ask_at(snapshot: Snapshot, programs: Workspace, offset: int) -> None:
    hover(snapshot, offset)
    completer = Completer(snapshot, cursor_at(snapshot.document.text, offset), programs.files)
    complete(completer)
    signature_help(completer)


def _require_places(snapshot: Snapshot) -> None:
    assert snapshot.file is not None
    text = snapshot.file.unit.source.text
    for each in all_occurrences(snapshot.file, snapshot.program):
        assert text[each.span.start : each.span.end] == each.definitions[0].name or each.definitions[0].kind in (
            "module", "prompt", "skill",
        )  # fmt: skip
    coloured: list[Span] = [span for span, _ in find_coloured(snapshot.file, snapshot.program)]
    assert all(one.end <= other.start for one, other in pairwise(coloured))
    assert not any("\n" in text[span.start : span.end] for span in coloured)


def test_changes_in_any_columns_keep_the_text_in_step() -> None:
    """After random changes the text is what a client has that counts halves of UTF-16 pairs."""
    chance, documents = random.Random(7), OpenDocuments()
    units = [b"a\0", b"\n\0", "é".encode("utf-16-le"), "🎏".encode("utf-16-le")]
    client = ["x"]
    documents.open("file:///a.koi", "x", 0)
    for version in range(1, 300):
        start = chance.randint(0, len(client))
        end = min(len(client), start + chance.choice([0, 0, 1, 3]))
        new = [chance.choice(units).decode("utf-16-le") for _ in range(chance.choice([0, 1, 2, 5]))]
        place = types.Range(_position(client, start), _position(client, end))
        documents.change("file:///a.koi", version, [types.TextDocumentContentChangePartial(place, "".join(new))])
        client[start:end] = new

        assert "".join(client) == getattr(documents.of("file:///a.koi"), "text", "")


def _position(characters: list[str], index: int) -> types.Position:
    """The position of a character, its column in UTF-16."""
    before = "".join(characters[:index])
    line = before.rpartition("\n")[2]
    return types.Position(before.count("\n"), len(line.encode("utf-16-le")) // 2)
