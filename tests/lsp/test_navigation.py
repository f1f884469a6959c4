"""Definitions, references and renaming as an editor asks for them."""

from __future__ import annotations

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from tests.lsp.editor import Editor

PARTS = """role Lead { can delegate }
export prompt Tone(name: string) = "Be brief with {{name}}."
agent Adder : Lead { on add(args: { left: number }): { sum: number } { return { sum: args.left } } }
team Office { adder: Adder }
"""
MAIN = """import "./parts.koi"
type Ticket = { note: { text: string } }
agent Boss : Lead {
  uses team Office
  state { count: number = 0 }
  on start(args: { name: string }) {
    this.state.count += 1
    return await send peers.event("add").any()({ left: this.state.count })
  }
  on file(t: Ticket) {
    if (t.note.text) { return t.note.text }
    playbook "File {{t.note}}: {{t.note.text}}."
  }
  on greet(data: { name: string in 1..80 }) {
    playbook "Greet {{data.name}} for the {{state.count}}th time; ask Adder::add."
  }
}
run Boss.start({ name: "Ada" })
"""


@pytest.fixture(scope="module")
def uri(editor: Editor) -> str:
    """Two files, both of which are open."""
    (editor.folder / "parts.koi").write_text(PARTS, "utf-8")
    editor.open("parts.koi", PARTS)
    return editor.open("main.koi", MAIN)


def place(text: str, wanted: str, inner: str = "") -> types.Position:
    """The position of a piece of a text, or of a piece of that."""
    at = text.index(wanted) + (wanted.index(inner) if inner else 0)
    return types.Position(text.count("\n", 0, at), at - text.rfind("\n", 0, at) - 1)


@pytest.mark.parametrize(
    ("wanted", "inner", "file", "declared"),
    [
        ('event("add")', "add", "parts.koi", "add(args"),
        ("Boss : Lead", "Lead", "parts.koi", "Lead {"),
        ("team Office", "Office", "parts.koi", "Office {"),
        ("state.count +=", "count", "main.koi", "count: number"),
        ("{{state.count}}", "count", "main.koi", "count: number"),
        ("{{data.name}}", "data", "main.koi", "data: {"),
        ("Adder::add", "add", "parts.koi", "add(args"),
        ("Boss.start(", "start", "main.koi", "start(args"),
    ],
)
def test_a_name_leads_to_its_declaration(
    editor: Editor, uri: str, wanted: str, inner: str, file: str, declared: str
) -> None:
    """From events, roles, fields and placeholders one gets to what they stand for, in other files, too."""
    params = types.DefinitionParams(types.TextDocumentIdentifier(uri), place(MAIN, wanted, inner))
    [found] = editor.run(editor.client.text_document_definition_async(params))

    text = PARTS if file == "parts.koi" else MAIN
    assert (editor.uri(file), place(text, declared)) == (found.uri, found.range.start)


def test_hover_of_a_placeholder_says_what_it_is(editor: Editor, uri: str) -> None:
    """`{{data.name}}` is a field of the payload with its type and bounds."""
    params = types.HoverParams(types.TextDocumentIdentifier(uri), place(MAIN, "{{data.name}}", "name"))
    found = editor.run(editor.client.text_document_hover_async(params))

    assert "`name: string in 1..80` of the payload of `greet`" in found.contents.value


@pytest.mark.parametrize(
    ("wanted", "inner", "expected"),
    [
        ("{{t.note}}", "note", "`note: { text: string }` of the payload of `file`"),
        ("{{t.note.text}}", "text", "`t.note.text: string`"),
        ("return t.note.text", "text", "`text: string`"),
        ("return t.note.text", "note", "`note: { text: string }`"),
    ],
)
def test_hover_of_a_field_says_its_type(editor: Editor, uri: str, wanted: str, inner: str, expected: str) -> None:
    """Of fields of a declared type, however deep, in code as in texts."""
    params = types.HoverParams(types.TextDocumentIdentifier(uri), place(MAIN, wanted, inner))
    found = editor.run(editor.client.text_document_hover_async(params))

    assert expected in found.contents.value


def test_hover_of_an_agent_says_what_it_may(editor: Editor, uri: str) -> None:
    """Over the name of an agent stand its role, its permissions and its events."""
    params = types.HoverParams(types.TextDocumentIdentifier(uri), place(MAIN, "Adder::", "Adder"))
    found = editor.run(editor.client.text_document_hover_async(params))

    assert "`Lead` can `delegate`" in found.contents.value
    assert "handles `add`" in found.contents.value


def test_references_are_found_in_files_that_import_it(editor: Editor, uri: str) -> None:
    """From the declaration of an event all its uses are found, in sentences, too."""
    document = types.TextDocumentIdentifier(editor.uri("parts.koi"))
    context = types.ReferenceContext(include_declaration=False)
    params = types.ReferenceParams(context, document, place(PARTS, "add(args"))
    found = editor.run(editor.client.text_document_references_async(params))

    expected = [place(MAIN, 'event("add', "add"), place(MAIN, "::add", "add")]
    assert sorted(((uri, each) for each in expected), key=str) == sorted(
        ((each.uri, each.range.start) for each in found), key=str
    )


def rename(editor: Editor, uri: str, at: types.Position, new: str) -> dict[str, list[types.TextEdit]]:
    """Ask for a new name."""
    params = types.RenameParams(types.TextDocumentIdentifier(uri), at, new)
    return dict(editor.run(editor.client.text_document_rename_async(params)).changes)


def test_a_rename_reaches_other_files_and_placeholders(editor: Editor, uri: str) -> None:
    """An event gets its name in both files; a field of the state in code and in texts."""
    events = rename(editor, uri, place(MAIN, 'event("add', "add"), "plus")
    fields = rename(editor, uri, place(MAIN, "count: number"), "times")

    assert {editor.uri("parts.koi"): 1, uri: 2} == {file: len(edits) for file, edits in events.items()}
    assert {uri: 4} == {file: len(edits) for file, edits in fields.items()}


@pytest.mark.parametrize(
    ("new", "told"),
    [
        ("return", "is a word of the language"),
        ("two words", "is no name: a name consists of"),
        ("Boss", "something else would be wrong"),
    ],
)
def test_an_unsafe_rename_is_refused(editor: Editor, uri: str, new: str, told: str) -> None:
    """Names that are reserved, no names at all, or taken are refused with the reason."""
    with pytest.raises(JsonRpcException, match=told):
        rename(editor, uri, place(MAIN, "Adder::", "Adder"), new)


def test_a_rename_that_would_capture_is_refused(editor: Editor) -> None:
    """A variable cannot get the name of another one that is visible where it is used."""
    text = """role Worker { can execute }
agent Clerk : Worker { on count(args: Json) { const first = 1  const list = [2].map(n => n + first)  return list } }
run Clerk.count({})
"""
    uri = editor.open("captured.koi", text)
    with pytest.raises(JsonRpcException, match=r"stands for something else|would be wrong"):
        rename(editor, uri, place(text, "first = 1"), "n")


def test_a_rename_reaches_what_call_skill_names(editor: Editor) -> None:
    """A skill and its function get their names in `callSkill`, too; a text that is no name of a function stays."""
    text = """skill Sums { export function add(left: number): number { return left + 1 } }
role Worker { can execute }
agent Clerk : Worker {
  uses skill Sums
  on count(args: Json) { return [await this.callSkill("Sums", "add", 1), await this.callSkill("Sums", "sum")] }
}
"""
    uri = editor.open("named.koi", text)
    skills = rename(editor, uri, place(text, "Sums {"), "Totals")
    functions = rename(editor, uri, place(text, '"add"', "add"), "plus")

    assert {uri: 4} == {file: len(edits) for file, edits in skills.items()}
    assert {uri: 2} == {file: len(edits) for file, edits in functions.items()}


def test_a_rename_keeps_the_keys_of_patterns(editor: Editor) -> None:
    """A key before a name stays in parameters of arrow functions and in assignments; one that is the name is added."""
    text = """role Worker { can execute }
agent Clerk : Worker { on go(args: Json) {
  let q
  ({ a: q, b: [q] } = args)
  ({ q } = args)
  return [1].map(({ x: y }) => y + q)
} }
"""
    uri = editor.open("patterns.koi", text)
    assigned = rename(editor, uri, place(text, "q\n"), "sum")[uri]
    parameters = rename(editor, uri, place(text, "y + q"), "each")[uri]

    assert ["sum", "sum", "sum", "q: sum", "sum"] == [edit.new_text for edit in assigned]
    assert ["each", "each"] == [edit.new_text for edit in parameters]


DIRECTIVES = '''role Worker { can execute, can registry }
prompt Item(key: string, kind: string) = compose {
  template: """
    @let found = callAction("registry_get", { key })
    @let kind = kind || "item"
    @if (key != "none" && [1].some(each => each > key.length)) {
    The {{kind}} {{key}} is {{found.value}}.
    }
  """
}
agent Clerk : Worker { on show(args) { playbook Item(args.key, "book") } }
'''


def test_a_rename_reaches_directives(editor: Editor) -> None:
    """A parameter of a prompt gets its name in `@let` and `@if`, where a key of an object keeps its own."""
    uri = editor.open("directives.koi", DIRECTIVES)
    found = rename(editor, uri, place(DIRECTIVES, "key: string"), "title")

    assert ["title", "key: title", "title", "title", "title"] == [edit.new_text for edit in found[uri]]


def test_what_a_directive_declares_anew_is_no_parameter(editor: Editor) -> None:
    """A parameter whose name a `@let` takes is not renamed: a placeholder may mean the one or the other."""
    uri = editor.open("directives.koi", DIRECTIVES)
    with pytest.raises(JsonRpcException, match="something else would be wrong"):
        rename(editor, uri, place(DIRECTIVES, "kind: string"), "sort")
