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


def test_a_file_beside_it_that_has_the_name_is_imported(editor: Editor) -> None:
    """An unknown role that a file in the same folder declares is brought by an import of that file."""
    (editor.folder / "roles.koi").write_text("role Watcher { can execute }\n", "utf-8")
    text = "agent Owl : Watcher { on look(args: Json) { return 1 } }\n"
    uri = editor.open("owl.koi", text)
    [problem] = editor.problems(uri)

    params = types.CodeActionParams(
        types.TextDocumentIdentifier(uri), problem.range, types.CodeActionContext([problem])
    )
    action = editor.run(editor.client.text_document_code_action_async(params))[0]
    [edit] = action.edit.changes[uri]
    editor.rewrite(uri, edit.new_text + text)

    assert 'add `import "./roles.koi"`' == action.title
    assert [] == editor.problems(uri)
