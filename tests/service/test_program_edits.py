"""Edited programs: what is copied, what stays, and what an edit writes back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from koi_lang.errors import KoiError
from koi_lang.program import loader
from koi_lang.program.cache import digest
from koi_lang.service.program_edits import EditablePlaybook, ProgramEdit, edit_program

MAIN = """
import "./parts/worker.koi"
import "../shared.py"
role Boss { can execute }
agent Lead : Boss { on start(args: Json) { playbook "Say hi." } }
"""
WORKER = 'role Hand { can execute }\nagent Worker : Hand { on work(args: Json) { playbook """\n  Work.\n""" } }\n'


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A program in a folder of a project, with a file that it imports, and one of Python beside that folder."""
    (tmp_path / "app" / "parts").mkdir(parents=True)
    (tmp_path / "shared.py").write_text("def double(x: int) -> int:\n    return 2 * x\n")
    (tmp_path / "app" / "parts" / "worker.koi").write_text(WORKER)
    (tmp_path / "app" / "main.koi").write_text(MAIN)
    return (tmp_path / "app" / "main.koi").resolve()


def test_an_imported_playbook_is_edited(program: Path) -> None:
    """The version loads with its imports and Python; the program stays as it is."""
    folder = program.parents[1]
    made = edit_program(folder, program, "Worker.work", "Work\nslowly.")

    assert loader.load_compiled(str(made)).files
    assert "Work\nslowly." == EditablePlaybook.find(made, "Worker.work").text
    assert (MAIN, WORKER) == (program.read_text(), (program.parent / "parts" / "worker.koi").read_text())


def test_an_edit_of_an_edit_keeps_both(program: Path) -> None:
    """Both files are written, with quotes and lines that their literals can hold, and then nothing is different."""
    folder = program.parents[1]
    first = edit_program(folder, program, "Worker.work", "Work slowly.")
    second = edit_program(folder, first, "Lead.start", 'Say "hi" \\ there.')
    edit = ProgramEdit.of(folder, second)
    assert edit is not None
    names = edit.keep()

    assert ["Worker.work", "Lead.start"] == edit.handlers
    assert {"app/main.koi", "app/parts/worker.koi"} == {*names}
    assert 'playbook "Say \\"hi\\" \\\\ there."' in program.read_text()
    assert WORKER.replace("Work.", "Work slowly.") == (program.parent / "parts" / "worker.koi").read_text()
    assert edit.as_data()["is_kept"]


def test_a_file_that_has_changed_is_left_alone(program: Path) -> None:
    """None of the files is written where one of them has changed."""
    folder = program.parents[1]
    made = edit_program(folder, program, "Lead.start", "Say hello.\nTwice.")
    program.write_text(MAIN.replace("hi", "hey"))
    edit = ProgramEdit.of(folder, made)
    assert edit is not None

    with pytest.raises(KoiError, match=r"`app/main.koi` was changed since the playbook was edited"):
        edit.keep()
    assert edit.as_data()["is_stale"]
    assert MAIN.replace("hi", "hey") == program.read_text()


def test_a_program_outside_of_the_project_stays_as_it_is(
    program: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """An edit of an edit of it loads and shows what is different; nothing is written into its files."""
    folder = tmp_path_factory.mktemp("service")
    (program.parent / "main.koi").write_text(MAIN.replace('import "../shared.py"\n', ""))
    before = program.read_text()
    first = edit_program(folder, program, "Worker.work", "Work slowly.")
    second = edit_program(folder, first, "Lead.start", "Say hello.")
    edit = ProgramEdit.of(folder, second)
    assert edit is not None
    shown = edit.as_data()

    with pytest.raises(KoiError, match="the program is outside of this project, and is left alone"):
        edit.keep()
    assert (before, WORKER) == (program.read_text(), (program.parent / "parts" / "worker.koi").read_text())
    assert (True, False, False) == (shown["is_outside"], shown["is_kept"], shown["is_stale"])
    assert ["+  Work slowly.", "-  Work."] == sorted(set(shown["diff"].splitlines()) & {"+  Work slowly.", "-  Work."})
    assert '+agent Lead : Boss { on start(args: Json) { playbook "Say hello." } }' in shown["diff"].splitlines()


@pytest.mark.parametrize(
    ("handler", "text", "reason"),
    [
        ("Lead.start", 'three """ quotes', "contain three quotes in a row"),
        ("Lead.start", " \n", "be empty"),
        ("Lead.nothing", "x", "has no playbook"),
    ],
)
def test_what_cannot_be_edited_is_refused(program: Path, handler: str, text: str, reason: str) -> None:
    """The reason is told, and no version is left."""
    with pytest.raises(KoiError, match=reason):
        edit_program(program.parents[1], program, handler, text)
    assert [] == [*program.parents[1].glob(".koi/versions/*")]


@pytest.mark.parametrize("name", ["/{}/shared.koi", "../shared.koi", "link.koi", ".git/hook.koi", "koi.toml"])
def test_a_record_of_somebody_else_leads_nowhere(program: Path, name: str, tmp_path_factory: Any) -> None:
    """A record in a folder of somebody else is believed only of programs there: nothing else is read or written."""
    folder, outside = program.parents[1], tmp_path_factory.mktemp("outside") / "shared.koi"
    made = edit_program(folder, program, "Lead.start", "Say hello.")
    name = name.replace("/{}", str(outside.parent))
    version = made.parents[2]
    outside.write_text("mine")
    (folder / "link.koi").symlink_to(outside)
    (folder / ".git").mkdir()
    targets = [outside, folder / ".git" / "hook.koi", folder / "koi.toml"]
    for file in targets:
        file.write_text("mine")
    if not name.startswith(("/", "..")):
        (version / "files" / name).unlink(missing_ok=True)
        (version / "files" / name).parent.mkdir(exist_ok=True)
        (version / "files" / name).write_text("theirs")
    (version / "edit.json").write_text(json.dumps({"root": "/", "handlers": [], "files": {name: digest(b"mine")}}))
    edit = ProgramEdit.of(folder, made)
    assert edit is not None

    for use in (edit.as_data, edit.keep):
        with pytest.raises(KoiError, match=r"outside of the project|hidden from|is no program"):
            use()
    assert ["mine"] * 3 == [file.read_text() for file in targets]


@pytest.mark.parametrize("record", ["[]", "{}", "null", '{"handlers": 1, "files": 2}', "{"])
def test_a_broken_record_is_none(program: Path, record: str) -> None:
    """A program beside a record that says nothing is one of a person."""
    made = edit_program(program.parents[1], program, "Lead.start", "Say hello.")
    (made.parents[2] / "edit.json").write_text(record)
    assert ProgramEdit.of(program.parents[1], made) is None
