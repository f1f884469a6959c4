"""`koi lsp` as an editor sees it: a process that speaks over stdio."""

from __future__ import annotations

from lsprotocol import types

from tests.lsp.editor import Editor

GREETER = """role Worker { can execute }

// Greets whoever asks.
agent Greeter : Worker {
  on hello(args: Json) { return "hello" }
}

run Greeter.hello({})
"""


def test_problems_are_published_with_their_codes(editor: Editor) -> None:
    """A document that is opened gets its problems, with code, help and how they are explained."""
    uri = editor.open("misspelt.koi", GREETER.replace("run Greeter.hello", "run Greeter.helo"))

    [problem] = editor.problems(uri)
    assert types.Range(types.Position(7, 12), types.Position(7, 16)) == problem.range
    assert "E0207" == problem.code
    assert "`Greeter` has no handler `helo`\nhelp: did you mean `hello`?" == problem.message
    assert {"explain": "koi check --explain E0207"} == problem.data


def test_problems_follow_what_is_typed(editor: Editor) -> None:
    """After a change what is wrong is what is wrong with the new text."""
    uri = editor.open("typed.koi", GREETER)
    before = editor.problems(uri)
    place = types.Range(types.Position(7, 4), types.Position(7, 11))
    editor.change(uri, types.TextDocumentContentChangePartial(place, "Greter"))

    assert [] == before
    assert ["E0202"] == [problem.code for problem in editor.problems(uri)]


def test_hover_shows_the_declaration_and_its_comment(editor: Editor) -> None:
    """Over the name of an agent stand its first line and the comment above it."""
    uri = editor.open("hover.koi", GREETER)
    place = types.HoverParams(types.TextDocumentIdentifier(uri), types.Position(7, 6))

    found = editor.run(editor.client.text_document_hover_async(place))

    assert "agent Greeter : Worker" in found.contents.value
    assert "Greets whoever asks." in found.contents.value


def test_hover_explains_a_problem(editor: Editor) -> None:
    """Where something is wrong stands the long form of the problem."""
    uri = editor.open("explained.koi", GREETER.replace("run Greeter.hello", "run Greeter.helo"))
    place = types.HoverParams(types.TextDocumentIdentifier(uri), types.Position(7, 13))

    found = editor.run(editor.client.text_document_hover_async(place))

    assert "**E0207** `run`, code or a test calls a handler" in found.contents.value
    assert "`koi check --explain E0207`" in found.contents.value
