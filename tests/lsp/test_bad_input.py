"""What editors get wrong: the server goes on, and says nothing that is not so."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from lsprotocol import types

from koi_lang.lsp.documents import OpenDocuments
from koi_lang.lsp.positions import PositionMap
from koi_lang.source import Span
from tests import forks
from tests.limits import LIMIT_S
from tests.lsp.editor import Editor
from tests.lsp.test_serving import GREETER


def partial(line: int, start: int, end: int, text: str) -> types.TextDocumentContentChangePartial:
    """A change within a line."""
    return types.TextDocumentContentChangePartial(
        types.Range(types.Position(line, start), types.Position(line, end)), text
    )


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_positions_are_offsets_and_back(encoding: str) -> None:
    """Every character of a text has a position that leads back to it, whatever columns are counted in."""
    text = "a🎏é\r\n\tß𝒳\rlast"
    positions = PositionMap(text, encoding)
    starts = [offset for offset in range(len(text) + 1) if text[offset - 1 : offset + 1] != "\r\n"]

    assert starts == [positions.offset(positions.position(offset)) for offset in starts]


def test_columns_that_do_not_exist_are_the_nearest_ones() -> None:
    """Within a pair of UTF-16, past the end of a line, past the last line, and with the end before the start."""
    positions = PositionMap("a🎏b\nc")

    assert [1, 1, 2, 3, 5] == [
        positions.offset(types.Position(line, column)) for line, column in [(0, 1), (0, 2), (0, 3), (0, 99), (7, 3)]
    ]
    assert Span(4, 4) == positions.span(types.Range(types.Position(1, 0), types.Position(0, 0)))


def test_changes_out_of_order_are_dropped() -> None:
    """A change of an older version, or of a document that is not open, changes nothing."""
    documents = OpenDocuments()
    documents.open("file:///a.koi", "one", 5)

    assert documents.change("file:///a.koi", 4, [partial(0, 0, 3, "two")]) is None
    assert documents.change("file:///b.koi", 1, [partial(0, 0, 3, "two")]) is None
    assert "one" == getattr(documents.of("file:///a.koi"), "text", "")


def test_the_server_bears_what_clients_get_wrong(editor: Editor) -> None:
    """Wrong columns, a change before opening, closing twice, and a document that is opened twice."""
    uri = editor.open("wrong.koi", GREETER.replace("hello", "he🎏llo"))
    unknown = types.VersionedTextDocumentIdentifier(3, editor.uri("never.koi"))
    editor.client.text_document_did_change(types.DidChangeTextDocumentParams(unknown, [partial(0, 0, 1, "x")]))
    editor.change(uri, partial(4, 8, 9999, ""), partial(900, 5, 2, "// end\n"))
    closed = types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(editor.uri("never.koi")))
    editor.client.text_document_did_close(closed)
    again = editor.open("wrong.koi", GREETER)

    assert uri == again
    assert [] == editor.problems(uri)


def test_a_document_without_a_file_is_checked(editor: Editor) -> None:
    """`untitled:` has problems, and parts of the standard library can be imported there."""
    uri = editor.open("untitled:Untitled-1", 'import "std/files"\n' + GREETER.replace("Greeter.hello", "Greeter.helo"))

    assert "E0207" in [problem.code for problem in editor.problems(uri)]


def test_lone_halves_of_characters_are_replaced(editor: Editor) -> None:
    """Text that no file in UTF-8 can hold is text with marks of replacement."""
    uri = editor.open("halves.koi", GREETER.replace('"hello"', b'"\\ud83c"'.decode("unicode_escape")))

    assert [] == editor.problems(uri)


def test_circular_imports_and_folders_without_permission(editor: Editor) -> None:
    """Files that import each other are one program; a folder that cannot be read is passed over in a rename."""
    (editor.folder / "closed").mkdir(exist_ok=True)
    (editor.folder / "closed").chmod(0)
    (editor.folder / "left.koi").write_text('import "./right.koi"\nrole Left { can execute }\n', "utf-8")
    uri = editor.open("right.koi", 'import "./left.koi"\nrole Right { can execute }\nagent Both : Left { }\n')
    try:
        params = types.RenameParams(types.TextDocumentIdentifier(uri), types.Position(2, 15), "Lower")
        found = editor.run(editor.client.text_document_rename_async(params))
    finally:
        (editor.folder / "closed").chmod(0o700)

    assert {editor.uri("left.koi"), uri} == set(found.changes)


def test_two_editors_have_one_file(editor: Editor) -> None:
    """Each server answers for the text of its own editor."""
    other = Editor(editor.folder)
    other.start()
    mine = editor.open("shared.koi", GREETER)
    theirs = other.open("shared.koi", GREETER.replace("run Greeter.hello", "run Greeter.helo"))

    assert ([], ["E0207"]) == (editor.problems(mine), [problem.code for problem in other.problems(theirs)])
    assert 0 == other.stop()


def test_a_server_ends_with_its_client(tmp_path: Path) -> None:
    """When the client dies, also in the middle of a message, the server ends by itself and without a traceback."""
    for sent in (b"", b"Content-Length: 500\r\n\r\n{", b"Content-Length: x\r\n\r\nnonsense"):
        server = subprocess.Popen(
            forks.koi("lsp"),
            cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        _, told = server.communicate(sent, timeout=LIMIT_S)

        assert b"Traceback" not in told
        assert not os.path.exists(f"/proc/{server.pid}/stat") or server.returncode is not None


@pytest.mark.thorough
def test_a_long_file_is_borne(editor: Editor) -> None:
    """50,000 lines: the server answers, and goes on to answer."""
    agents = "\n".join(
        f"agent A{index} : Worker {{\n  on work(args: Json) {{\n    return {index}\n  }}\n}}" for index in range(10_000)
    )
    editor.client.text_document_did_open(
        types.DidOpenTextDocumentParams(
            types.TextDocumentItem("untitled:long", "koi", 1, f"role Worker {{ can execute }}\n{agents}\n")
        )
    )
    uri = editor.open("after.koi", GREETER)

    assert [] == editor.problems(uri)


def test_a_missing_extra_is_told_in_one_line(tmp_path: Path) -> None:
    """Without the packages of the extra there is one thing to do, and no traceback."""
    code = "import sys; sys.modules['pygls'] = None; from koi_lang.cli import main; main(['lsp', '--stdio'])"
    ended = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT_S)

    assert 2 == ended.returncode
    assert "`koi lsp` needs the package `pygls`" in ended.stderr
    assert "[lsp]" in ended.stderr
    assert "Traceback" not in ended.stderr
