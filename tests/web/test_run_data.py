"""What pages are told of runs and programs: sources with lines, graphs, branches, previews, differences."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from koi_lang.errors import JournalError, KoiError, UsageError
from koi_lang.web.program_data import graph_data, source_data
from koi_lang.web.run_data import comparison_data, preview_data, run_facts, run_source, tree_data
from tests.journal.commands import Commands
from tests.web.conftest import ANSWERS, DESK


def test_handlers_have_their_lines(desk: Path) -> None:
    """A page finds the lines of each handler, of its playbook, and of the calls in its code."""
    source = run_source(desk)
    lines = source["files"][0]["text"].split("\n")
    first = {name: lines[handler["line"] - 1].strip() for name, handler in source["handlers"].items()}

    assert {
        "Counter.count": "on count(args: { text: string }) {",
        "Editor.start": "on start(args: { topic: string, loud?: boolean }) {",
    } == first
    assert lines[source["handlers"]["Editor.start"]["playbook"] - 1].strip().startswith("playbook")
    assert (["main.koi"], False, []) == (
        [file["name"] for file in source["files"]],
        source["isChanged"],
        source["problems"],
    )


def test_colours_cover_the_words(tmp_path: Path) -> None:
    """Colours count as JavaScript counts: a letter beyond 16 bits is two."""
    path = tmp_path / "a.koi"
    path.write_text('// 🐟🐟\nrole R { can execute }\nagent Ada : R { on go() { return "🐠" } }\n', "utf-8")
    (file,) = source_data(str(path))["files"]
    units = file["text"].encode("utf-16-le")
    pieces = {units[2 * a : 2 * (a + n)].decode("utf-16-le"): colour for a, n, colour in file["tokens"]}

    assert {"// 🐟🐟": "comment", "role": "keyword", "Ada": "name"}.items() <= pieces.items()


def test_secrets_are_taken_out_of_sources(tmp_path: Path) -> None:
    """What the redactor knows is not in the text that a page is given."""
    path = tmp_path / "a.koi"
    path.write_text('const key = "hunter2hunter2"\n')
    (file,) = source_data(str(path), lambda text: text.replace("hunter2hunter2", "[redacted]"))["files"]

    assert 'const key = "[redacted]"\n' == file["text"]


def test_a_program_with_errors_is_shown(tmp_path: Path) -> None:
    """Its text is there, its problems name their lines, and it has no hash and no graph."""
    path = tmp_path / "a.koi"
    path.write_text("role R { can execute }\nagent A : Q { on go() { return 1 } }\n")
    source = source_data(str(path))

    assert [("error", 0, 2)] == [(each["severity"], each["file"], each["line"]) for each in source["problems"]]
    assert source["hash"] is None
    with pytest.raises(KoiError):
        graph_data(str(path))


def test_a_changed_program_is_told(koi: Commands, desk: Path) -> None:
    """Lines may have moved since the run."""
    koi.project.write("main.koi", f"// another one\n{DESK}")

    assert run_source(desk)["isChanged"]
    (koi.folder / "main.koi").unlink()
    with pytest.raises(JournalError, match="is not there any more"):
        run_source(desk)


def test_a_preview_tells_what_a_branch_takes_over(koi: Commands, desk: Path) -> None:
    """What it says is what the branch then does: so many answers taken over, so many asked again."""
    at = next(entry.n for entry in koi.entries() if entry.data.get("intent") == "prompt_user" and entry.kind == "done")
    preview = preview_data(desk, at)
    done = koi("resume", desk.stem, "--at", str(at), "--answer", "no")
    branch = koi.entries()
    answers = [bool(entry.data.get("recalled")) for entry in branch if entry.kind == "model_answered"]

    assert done.code == 0
    assert (preview["kept"]["answers"], preview["anew"]["answers"]) == (answers.count(True), answers.count(False))
    assert (2, 1, False, []) == (
        preview["kept"]["answers"],
        preview["anew"]["answers"],
        preview["is_changed"],
        preview["left"],
    )
    (paid,) = [
        entry.data["tokens"] for entry in branch if entry.kind == "model_answered" and not entry.data.get("recalled")
    ]
    assert preview["anew"]["tokens"] == pytest.approx(paid["input"] + paid["output"], abs=3)


def test_a_preview_names_what_may_not_be_done_twice(koi: Commands) -> None:
    """What the run did behind the entry is told before it is done again."""
    koi.record(
        'import disk from "python:koi_lang.std.files"\nrole R { can execute }\n'
        'agent A : R { on go() { console.log("x") await disk.write("a.txt", "b") } }\nrun A.go()'
    )
    (printed,) = [entry.n for entry in koi.entries() if entry.kind == "printed"]

    assert ["files.write"] == preview_data(koi.journal, printed)["left"]
    with pytest.raises(UsageError, match="there is no entry 999"):
        preview_data(koi.journal, 999)


def test_branches_stand_in_a_tree(koi: Commands, desk: Path) -> None:
    """All runs that are connected, with the entries that they go on from; others are not there."""
    koi("resume", desk.stem, "--at", "5", stdin="no\n")
    (branch,) = [path.stem for path in koi.journals() if path != desk]
    koi("resume", branch, "--at", "5", stdin="no\n")
    koi.record(DESK, ANSWERS, stdin="yes\n")
    tree = tree_data(desk)

    assert [None, desk.stem, branch] == [run["parent"] for run in tree["runs"]]
    assert [None, 5, 5] == [run["entry"] for run in tree["runs"]]
    assert desk.stem == tree["current"]


def test_two_runs_are_compared_causes_first(koi: Commands, desk: Path) -> None:
    """The first difference is the answer that was another one, and what came of it follows."""
    koi.record(DESK, ANSWERS, stdin="no\n")
    found = comparison_data(desk, koi.journal)
    first, *others = found["differences"]

    assert ("done", {"result": {"answer": "no"}}) == (first["kind"], {"result": first["after"]["fields"]["result"]})
    assert {"model_asked", "begun", "done", "handler_ended"} >= {each["kind"] for each in others}
    assert re.search("no", str(others[-1]["after"]["fields"]))
    assert (desk.stem, koi.journal.stem, False) == (found["before"]["id"], found["after"]["id"], found["more"])
    assert [] == comparison_data(desk, desk)["differences"]


def test_what_only_one_run_did_stands_at_its_place(koi: Commands, desk: Path) -> None:
    """A step that was left out has no other side."""
    koi.record(DESK, [ANSWERS[0], {"intent": "return", "data": {"words": 4}}])
    differences = comparison_data(desk, koi.journal)["differences"]
    kinds = [(each["kind"], each["before"] is None, each["after"] is None) for each in differences]

    assert ("model_answered", False, False) == kinds[0]
    assert ("begun", False, True) in kinds
    assert run_facts(desk)["requests"] == run_facts(koi.journal)["requests"] + 1
