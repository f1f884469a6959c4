"""What a document looks like as a whole: outline, folds, colours, hints, lenses, layout."""

from __future__ import annotations

import json

import pytest
from lsprotocol import types

from koi_lang.cli.lsp import count_actions
from koi_lang.lsp.semantic_tokens import TYPES
from tests.lsp.editor import Editor
from tests.lsp.programs import ROOT
from tests.projects import Project

PROGRAM = '''role Lead { can delegate }

// Adds.
agent Adder : Lead {
  on add(args: { left: number }): { sum: number } {
    return { sum: args.left }
  }
}

team Office { adder: Adder }

agent Boss : Lead {
  uses team Office
  state { count: number = 0 }
  on start(args: { name: string }) {
    await send peers.event("add").any()({ left: 1 })
    playbook """
    Grüße {{args.name}} 🎏 {"intent": "print", "message": "x"} and ask Adder::add.
    """
  }
}

run Boss.start({ name: "Ada" })

test "it starts" {
  expect true
}
'''


@pytest.fixture(scope="module")
def document(editor: Editor) -> types.TextDocumentIdentifier:
    """A program that is open."""
    return types.TextDocumentIdentifier(editor.open("views.koi", PROGRAM))


def test_the_outline_is_the_declarations_with_their_parts(
    editor: Editor, document: types.TextDocumentIdentifier
) -> None:
    """Agents contain their handlers and the fields of their state."""
    found = editor.run(editor.client.text_document_document_symbol_async(types.DocumentSymbolParams(document)))

    assert ["Lead", "Adder", "Office", "Boss", "it starts"] == [symbol.name for symbol in found]
    assert ["count", "start"] == [symbol.name for symbol in found[3].children]


def test_blocks_and_texts_fold(editor: Editor, document: types.TextDocumentIdentifier) -> None:
    """An agent, its handler and its playbook can be folded."""
    found = editor.run(editor.client.text_document_folding_range_async(types.FoldingRangeParams(document)))

    assert {(3, 6), (11, 19), (14, 18), (16, 17)} <= {(fold.start_line, fold.end_line) for fold in found}


def test_prose_placeholders_and_actions_have_colours_of_their_own(
    editor: Editor, document: types.TextDocumentIdentifier
) -> None:
    """Of one line of a playbook each piece has its type; columns are counted in UTF-16."""
    found = editor.run(editor.client.text_document_semantic_tokens_full_async(types.SemanticTokensParams(document)))
    pieces, line, column = [], 0, 0
    for index in range(0, len(found.data), 5):
        down, right, length, kind, _ = found.data[index : index + 5]
        line, column = line + down, right if down else column + right
        text = PROGRAM.split("\n")[line].encode("utf-16-le")[2 * column : 2 * (column + length)].decode("utf-16-le")
        pieces.append((line, text, TYPES[kind]))

    assert [
        ("Grüße ", "prose"),
        ("{{args.name}}", "placeholder"),
        (' 🎏 {"intent": "', "prose"),
        ("print", "action"),
        ('", "message": "x"} and ask ', "prose"),
        ("Adder", "class"),
        ("::", "prose"),
        ("add", "method"),
        (".", "prose"),
    ] == [(text, kind) for at, text, kind in pieces if at == 17]


def test_hints_say_what_an_event_expects(editor: Editor, document: types.TextDocumentIdentifier) -> None:
    """Behind the event of a send stands the type of its payload."""
    whole = types.Range(types.Position(0, 0), types.Position(99, 0))
    [found] = editor.run(editor.client.text_document_inlay_hint_async(types.InlayHintParams(document, whole)))

    assert (types.Position(15, 32), ": { left: number }") == (found.position, found.label)


def test_signatures_are_those_of_what_is_called(editor: Editor, document: types.TextDocumentIdentifier) -> None:
    """In the parentheses of a send stand the parameters of whoever handles it."""
    params = types.SignatureHelpParams(document, types.Position(15, 40))
    found = editor.run(editor.client.text_document_signature_help_async(params))

    assert ["Adder.add({ left: number }): { sum: number }"] == [each.label for each in found.signatures]


def test_lenses_run_debug_test_and_audit(editor: Editor, document: types.TextDocumentIdentifier) -> None:
    """Each command says which document, and what in it."""
    found = editor.run(editor.client.text_document_code_lens_async(types.CodeLensParams(document)))

    commands = {(lens.command.command, lens.command.arguments[0]["target"]) for lens in found}
    assert {
        ("koi.run", "Boss.start"), ("koi.debug", "Boss.start"), ("koi.test", "it starts"),
        ("koi.audit", "Adder"), ("koi.audit", "Boss"),
    } == commands  # fmt: skip
    assert all(lens.command.arguments[0]["uri"] == document.uri for lens in found)


@pytest.mark.parametrize("name", ["review", "registry"])
def test_the_audit_counts_what_koi_audit_lists(project: Project, name: str) -> None:
    """The number above an agent is that of the actions in `koi audit`."""
    audited = json.loads(project.koi("audit", str(ROOT / f"examples/{name}.koi"), "--json").stdout)

    assert [len(agent["actions"]) for agent in audited] == [count_actions(agent["capabilities"]) for agent in audited]


def test_formatting_lays_out_only_what_differs(editor: Editor) -> None:
    """A line that is indented otherwise is changed, others are not; a file with errors stays as it is."""
    uri = editor.open("layout.koi", PROGRAM.replace("  uses team", "      uses team"))
    params = types.DocumentFormattingParams(types.TextDocumentIdentifier(uri), types.FormattingOptions(2, True))
    [edit] = editor.run(editor.client.text_document_formatting_async(params))
    editor.rewrite(uri, "agent {")

    assert ("  uses team Office\n", 12) == (edit.new_text, edit.range.start.line)
    assert not editor.run(editor.client.text_document_formatting_async(params))
