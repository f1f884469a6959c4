"""Quick fixes as an editor gets them."""

from __future__ import annotations

from lsprotocol import types

from tests.lsp.editor import Editor
from tests.lsp.test_serving import GREETER


def test_a_quick_fix_writes_what_was_meant(editor: Editor) -> None:
    """A misspelt name has a preferred fix that replaces just the name."""
    uri = editor.open("fixed.koi", GREETER.replace("run Greeter.hello", "run Greeter.helo"))
    [problem] = editor.problems(uri)
    document = types.TextDocumentIdentifier(uri)

    params = types.CodeActionParams(document, problem.range, types.CodeActionContext([problem]))
    [action] = editor.run(editor.client.text_document_code_action_async(params))

    assert ("replace with `hello`", "quickfix", True) == (action.title, action.kind, action.is_preferred)
    assert {uri: (types.TextEdit(problem.range, "hello"),)} == action.edit.changes
