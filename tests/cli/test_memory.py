"""`koi memory`: notes listed, found, added and removed by the person, and told why."""

from __future__ import annotations

import asyncio
import json
import os
from datetime import date, timedelta
from pathlib import Path

import pytest

from koi_lang.runtime.guidance.notes import FOLDER
from tests.first.machine import KEY, Machine, Outcome
from tests.guidance.note_files import write_note
from tests.journal.commands import Commands
from tests.journal.conftest import koi as koi
from tests.journal.test_notes_of_runs import ANSWERS, PROGRAM
from tests.llm.meanings import meaning
from tests.llm.server import Answer, ModelServer
from tests.projects import Project


@pytest.fixture(autouse=True)
def _of_one_person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Notes of other tests are not this person's."""
    monkeypatch.setenv("KOI_CONFIG_DIR", str(tmp_path / "person"))


def files(folder: Path) -> list[str]:
    """The files in a memory."""
    return sorted(file.name for file in folder.glob("*"))


def test_a_note_is_added_shown_found_and_removed(koi: Commands) -> None:
    """Each command says what it did; a note that says the same is not kept twice."""
    added = koi("memory", "add", "Releases are tagged on Tuesdays.", "--kind", "decision", "--about", "releases")
    id = added.out.strip()
    again = koi("memory", "add", "Releases are  tagged on Tuesdays")
    today = date.today().isoformat()

    assert ([f"{id}.md"], f"{id} says the same\n") == (files(koi.folder / FOLDER), again.out)
    text = f'id: {id}\nkind: decision\nabout: ["releases"]\nfrom: "person"\ndate: "{today}"'
    assert f"{FOLDER}/{id}.md\n---\n{text}\n---\nReleases are tagged on Tuesdays.\n" == koi("memory", "show", id).out
    line = f"{id}  (decision, {today})\n  Releases are tagged on Tuesdays.\n"
    assert (line, 0) == ((listed := koi("memory", "list")).out, listed.code)
    assert f"{line}    by: release\n" == koi("memory", "search", "when", "is", "a", "release?").out
    assert (1, "") == ((nothing := koi("memory", "search", "zebra")).code, nothing.out)
    assert f"removed {id}\n" == koi("memory", "forget", id).out
    assert [] == files(koi.folder / FOLDER)


def test_a_similar_note_is_shown(koi: Commands) -> None:
    """The new one is written, and the line has the text of the other one."""
    id = koi("memory", "add", "Use tabs, not spaces").out.strip()
    other = koi("memory", "add", "Use spaces, not tabs")

    assert (0, f"`{id}` is similar: Use tabs, not spaces\n") == (other.code, other.err)
    assert 2 == len(files(koi.folder / FOLDER))


@pytest.mark.parametrize("word", ["strasse", "STRASSE", "lodz", "Łódź"])
def test_letters_are_found_in_plain_spelling(koi: Commands, word: str) -> None:
    """`ß` is `ss`, and a stroke through a letter counts as little as an accent."""
    koi("memory", "add", "Die Straße nach Łódź heißt Hauptweg")

    assert 0 == koi("memory", "search", word).code


def test_own_notes_stand_with_the_settings(koi: Commands) -> None:
    """They count in every folder, and the command that adds them makes the folder."""
    id = koi("memory", "add", "I like tabs.", "--own", "--kind", "preference").out.strip()
    own = Path(os.environ["KOI_CONFIG_DIR"]) / "memory"
    (found,) = json.loads(koi("memory", "search", "tabs", "--json").out)

    assert ([f"{id}.md"], False) == (files(own), (koi.folder / ".agents").exists())
    assert ("person", "preference", ["tabs"]) == (found["owner"], found["kind"], found["words"])
    assert (0, []) == (koi("memory", "forget", id).code, files(own))


def test_two_files_of_one_id(koi: Commands) -> None:
    """The other one takes the place of what was removed, and this is said."""
    id = koi("memory", "add", "I like tabs.").out.strip()
    folder = koi.folder / FOLDER
    (folder / "copy.md").write_text((folder / f"{id}.md").read_text())
    removed = koi("memory", "forget", id)

    assert f"removed {id}\n" == removed.out
    assert f"`{FOLDER}/copy.md` has this id, too, and takes its place\n" == removed.err


def test_what_cannot_be_kept_is_an_error(koi: Commands) -> None:
    """A secret, an empty text, a note to replace that is not there, a folder that is a file, an unknown id."""
    (koi.folder / ".agents").write_text("")
    wrong = {
        ("add", "The key is AKIAABCDEFGHIJKLMNOP"): "error: the note holds a secret",
        ("add", ""): "error: the note has no text",
        ("add", "x", "--supersedes", "gone"): "error: there is no note `gone` to supersede",
        ("add", "Use tabs."): "error: ",
        ("show", "gone"): "error: there is no note `gone`",
        ("forget", "gone"): "error: there is no note `gone`",
        ("why",): "error: there are no journals",
    }
    for words, message in wrong.items():
        done = koi("memory", *words)
        assert (True, True) == (done.code != 0, done.err.startswith(message)), done.err
        assert "Traceback" not in done.err


def test_a_bad_file_is_listed(koi: Commands) -> None:
    """With the reason, on stderr, and an exit code for scripts."""
    write_note(koi.folder, "good", "Use tabs.")
    write_note(koi.folder, "bad", "Use tabs.", "kind: rumour")
    done = koi("memory", "list")

    assert (1, "good  (fact, 2026-03-01)\n  Use tabs.\n") == (done.code, done.out)
    assert f"a note is left out: `{FOLDER}/bad.md` has the unknown kind `rumour`\n" == done.err


def test_a_circle_supersedes_nothing(koi: Commands) -> None:
    """However long it is; a note beside it still replaces one of it."""
    for name, older in (("a", "b"), ("b", "c"), ("c", "a"), ("self", "self"), ("new", "c"), ("d", "e"), ("e", "")):
        write_note(koi.folder, name, f"About {name}.", f"supersedes: {older}" if older else "kind: fact")
    done = koi("memory", "list")

    assert {"a", "b", "self", "new", "d"} == {line.split()[0] for line in done.out.splitlines() if "(fact" in line}
    assert done.out.endswith("superseded: c, e\n") or done.out.endswith("superseded: e, c\n")
    assert f"no note is replaced: `{FOLDER}/a.md` supersedes `b`, by which it is superseded itself" in done.err
    assert (1, "self" in done.err) == (done.code, True)


def test_no_memory_hides_notes_from_a_run(koi: Commands) -> None:
    """`koi run --no-memory` tells none to an agent that says `uses memory`."""
    write_note(koi.folder, "deploy", "Deploy to staging first.")
    seen = list[str]()
    for words in ((), ("--no-memory",)):
        assert 0 == koi.record(PROGRAM, ANSWERS, *words).code
        seen.append(koi("memory", "why").out)

    assert ("Deploy to staging" in seen[0], "") == (True, seen[1])


def test_why_shows_what_a_run_was_told(koi: Commands) -> None:
    """Where, which notes, and by which words of the payload."""
    write_note(koi.folder, "deploy", "Deploy to staging first.")
    koi.record(PROGRAM, ANSWERS)
    write_note(koi.folder, "deploy", "Deploy at night.")
    done = koi("memory", "why")
    (told,) = json.loads(koi("memory", "why", "last", "--json").out)

    assert "Main.go#1\ndeploy  (fact, 2026-03-01)\n  Deploy to staging first.\n    by: deploy\n" == done.out
    assert ("Main.go#1", "Main", ["deploy"]) == (told["path"], told["agent"], [note["id"] for note in told["notes"]])


MEANING = """
    role R { can execute }
    agent Main : R {
      llm embedding = { provider: "openai", model: "text-embedding-3-small" }
      uses memory
      on go(args: Json) { playbook "Say something." }
    }
    run Main.go({ task: "what will the weather be like, rain or deploy" })
    """


def test_why_follows_the_ranking_of_a_model(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The order is the one in which the notes were told, and neither replay nor `koi prompt` asks for vectors."""
    machine = Machine(project, tmp_path, monkeypatch)
    machine.set(OPENAI_API_KEY=KEY, KOI_MODEL="openai/gpt-4o-mini")
    write_note(project.folder, "deploy", "Deploy to staging first.")
    write_note(project.folder, "rain", "Take an umbrella.")
    project.write("main.koi", MEANING)

    async def run() -> tuple[Outcome, str, int]:
        answer = Answer(pieces=(json.dumps({"intent": "return", "data": {}}),))
        async with ModelServer(lambda asked: answer, ["gpt-4o-mini"], embed=meaning) as server:
            machine.use(server)
            done = await machine.koi("run", "--record", "main.koi")
            (asked,) = server.requests
            await machine.koi("replay", "last")
            shown = await machine.koi("prompt", "main.koi", "Main.go", "--args", '{"task": "deploy, rain"}')
            assert "### deploy" in shown.out
            return done, json.dumps(asked.body), len(server.embedded)

    done, body, embedded = asyncio.run(run())
    (row,) = json.loads(machine.now("memory", "why", "--json").out)

    assert (0, 1) == (done.code, embedded), done.err
    assert ["rain", "deploy"] == [note["id"] for note in row["notes"]]
    assert body.index("### rain") < body.index("### deploy")


def test_gc_proposes_what_nobody_was_told(koi: Commands) -> None:
    """Old notes that no recorded run was told, and superseded ones; nothing goes without a yes.

    A note without a day is as old as its file.
    """
    today, old = date.today(), (date.today() - timedelta(days=200)).isoformat()
    for name, day in (
        ("new", today.isoformat()),
        ("old", old),
        ("future", "2999-01-01"),
        ("replaced", ""),
        ("plain", ""),
    ):
        write_note(koi.folder, name, f"About {name}.", f"date: {day}" if day else "kind: fact")
    write_note(koi.folder, "deploy", "Deploy to staging first.", f"date: {old}")
    write_note(koi.folder, "newer", "About newer.", f"date: {today.isoformat()}\nsupersedes: replaced")
    koi.record(PROGRAM, ANSWERS)
    asked = koi("memory", "gc", stdin="n\n")
    assert "Remove 2 notes?" in asked.err
    assert {"old", "replaced"} == {line.split()[0] for line in asked.out.splitlines() if not line.startswith(" ")}
    assert 7 == len(files(koi.folder / FOLDER))
    koi("memory", "gc", "--yes")

    assert ["deploy.md", "future.md", "new.md", "newer.md", "plain.md"] == files(koi.folder / FOLDER)
    assert "every note was told or written in the last 180d\n" == koi("memory", "gc").err


def test_a_folder_that_leads_out_of_the_project_is_named(project: Project, tmp_path: Path) -> None:
    """Also where there is no folder behind the link yet."""
    (tmp_path / "elsewhere").mkdir()
    (project.folder / ".agents").symlink_to(tmp_path / "elsewhere")
    listed = project.koi("memory", "list")

    assert 1 == listed.returncode
    assert "`.agents/memory` leads out of the project" in listed.stderr
