"""`std/memory`: notes that programs and models recall, keep and remove."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from koi_lang.program import loader
from koi_lang.runtime.guards.permissions import Restrictions
from koi_lang.runtime.guidance.note_index import open_notes
from koi_lang.runtime.guidance.notes import FOLDER
from koi_lang.runtime.host import ApprovalDecision
from tests.first.machine import KEY
from tests.guidance.conftest import project as place
from tests.guidance.note_files import write_note
from tests.journal.commands import Commands
from tests.journal.conftest import koi as koi
from tests.llm.meanings import meaning
from tests.llm.server import Answer, Asked, ModelServer
from tests.playbook.playing import Played, Player, act, done
from tests.playbook.test_meaning import connected, served
from tests.projects import Project
from tests.std.test_code import Person

__all__ = ["place"]
ALLOWED = {"allow": [f"write:{FOLDER}/**"]}


@pytest.fixture
def play(place: Path) -> Iterator[Player]:
    """Plays programs in an empty project."""
    yield Player(place)
    loader.unload()


def code(body: str, more: str = "") -> str:
    """A program whose handler is code."""
    return f'import "std/memory"\nrole R {{ can write }}\nagent Main : R {{ {more}\n on go(args) {{ {body} }} }}'


def run(play: Player, body: str, args: Any = None, more: str = "", **services: Any) -> Played:
    """What comes of code."""
    return play(code(body, more), [], payload=args, **{**ALLOWED, **services})


def test_a_note_is_kept_and_recalled(play: Player) -> None:
    """As a file that people read, with who wrote it, in which run and when."""
    body = """
      const kept = await remember("Releases are tagged on Tuesdays.", { kind: "decision", about: ["releases"] })
      return { kept, found: await recall("when is a release?") }
    """
    played = run(play, body)
    kept, (found,) = played.result["kept"], played.result["found"]
    text = (play.folder / kept["path"]).read_text()

    assert kept == {"id": found["id"], "path": f"{FOLDER}/{found['id']}.md", "created": True}
    assert found["id"].startswith("releases-are-tagged-on-tuesdays-")
    assert ("decision", "Releases are tagged on Tuesdays.", ["releases"]) == tuple(
        found[n] for n in ("kind", "text", "about")
    )
    assert (["releases"], "Main", played.run.id, 10) == (
        found["about"],
        found["from"],
        found["run"],
        len(found["date"]),
    )
    assert text.startswith(f'---\nid: {kept["id"]}\nkind: decision\nabout: ["releases"]\nfrom: "Main"\n')
    assert text.endswith("\n---\nReleases are tagged on Tuesdays.\n")


def test_the_person_is_asked_and_shown_the_note(play: Player) -> None:
    """A rule allows it beforehand; who says no, and who cannot be asked, keeps nothing."""
    person = Person(decision=ApprovalDecision("no"))
    body = 'await remember("Use tabs.")'
    refused, unattended = run(play, body, host=person, allow=[]), run(play, body, allow=[])
    (request,) = person.requests

    assert request.what.startswith(f"create `{FOLDER}/use-tabs-")
    assert request.preview.endswith("\n+Use tabs.")
    assert (True, True) == ("did not allow" in refused.told, "nobody" in unattended.told or "allow" in unattended.told)
    assert not [*(play.folder / FOLDER).glob("*")]


def test_rules_and_roles_hold(play: Player) -> None:
    """A denial counts for notes as for other files; models need `write`; plan mode changes nothing."""
    denied = run(play, 'await remember("Use tabs.")', restrictions=Restrictions(deny=[f"write:{FOLDER}/**"]))
    reader = code('playbook "Keep it."', "uses skill Memory, MemoryChanges").replace("can write", "can read")
    keep = act("call_skill", skill="MemoryChanges", function="remember", input={"text": "Use tabs."})
    refused = play(reader, [keep, done()], **ALLOWED)

    assert "rule" in denied.told or "denie" in denied.told
    assert "needs the permission `write`" in refused.feedback[-1] or "`write`" in refused.feedback[-1]
    assert not [*(play.folder / FOLDER).glob("*")]


def test_the_same_text_is_answered_with_the_note_there_is(play: Player) -> None:
    """Other blanks make no other note; another number does, and so does one that replaces it."""
    body = """
      const first = await remember("Use tabs for indentation in all Python files")
      const again = await remember("Use  tabs for indentation in all Python files.")
      const other = await remember("Use blanks for indentation in YAML", { supersedes: first.id })
      const number = await remember("Use 4 tabs for indentation in all Python files", {})
      const newer = await remember("Use tabs for indentation in all Python files!", { supersedes: first.id })
      return [first, again, other, number, newer, (await recall("tabs indentation")).map(note => note.id)]
    """
    first, again, other, number, newer, found = run(play, body).result

    assert {**first, "created": False} == again
    assert (True, True, True) == (other["created"], number["created"], newer["created"])
    assert {newer["id"], number["id"], other["id"]} == set(found)


OPPOSITES = [
    ("Der Zwischenspeicher darf gelöscht werden.", "Der Zwischenspeicher darf nicht gelöscht werden."),
    ("El caché se puede borrar.", "El caché no se puede borrar."),
    ("キャッシュは削除してよい。", "キャッシュは削除してはいけない。"),
    ("Use tabs, not spaces", "Use spaces, not tabs"),
    ("The limit is -5 degrees", "The limit is 5 degrees"),
    ("x < y in all tables", "x > y in all tables"),
    ("Write `Id` and not `id`", "Write `id` and not `Id`"),
]


@pytest.mark.parametrize(("text", "opposite"), OPPOSITES)
def test_a_note_that_says_the_opposite_is_written(play: Player, text: str, opposite: str) -> None:
    """Where it has nearly the same words, the other one is named with its text."""
    body = "return [await remember(args.text), await remember(args.opposite)]"
    first, second = run(play, body, {"text": text, "opposite": opposite}).result

    assert (True, True) == (first["created"], second["created"])
    assert second.get("similar", {"id": first["id"], "text": text}) == {"id": first["id"], "text": text}


def test_a_similar_note_is_named_with_its_text(play: Player) -> None:
    """An id alone does not let one see that it says the opposite."""
    body = 'return [await remember("Use tabs, not spaces"), await remember("Use spaces, not tabs")]'
    first, second = run(play, body).result

    assert {"id": first["id"], "text": "Use tabs, not spaces"} == second["similar"]


@pytest.mark.parametrize(
    "text",
    [
        "The password is kept in 1Password.", "The token is 40 characters long.", "The API key: see docs/keys-2026.md.",
        "The secret of prod is KOI_SECRET_2026.", "Das Passwort ist nötig, seit 2026 auch für v2.10.15 des Servers.",
    ],
)  # fmt: skip
def test_a_sentence_about_a_secret_holds_none(play: Player, text: str) -> None:
    """It says where one is, or what it is like."""
    assert run(play, f"return (await remember({json.dumps(text)})).created").result is True


REFUSED = {
    'remember("x".repeat(2001))': "the note has 2,001 characters",
    'remember(" ")': "the note has no text",
    "remember(7)": "a note is a text, not 7",
    'remember("x", { kind: "rumour" })': "the note has the unknown kind `rumour`",
    'remember("x", { supersedes: "gone" })': "there is no note `gone` to supersede",
    'remember("The key is sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG")': "the note holds a secret",
    'remember("contraseña: Verano2026!x")': "the note holds a secret",
    'remember("Das Passwort lautet Sommer2026!x")': "the note holds a secret",
    'remember("The password of the staging database is Tr0ub4dor&3")': "the note holds a secret",
    'remember("The api key of prod is `9f8a7b6c5d4e3f2a1b0c9d8e7f6a5b4c`")': "the note holds a secret",
    'remember("x", { about: ["password=Tr0ub4dor&3xyz"] })': "the note holds a secret",
    "remember(args.known)": "the note holds a secret",
    'recall("x", { count: 0 })': "`count` is 0",
    'recall("x", { count: 51 })': "`count` is 51",
    'recall("x", { kinds: ["rumour"] })': "`kinds` is",
    'recall("x", { since: "yesterday" })': "`since` is 'yesterday'",
    "forget(7)": "7 is no id of a note",
}


@pytest.mark.parametrize("call", REFUSED)
def test_what_is_no_note_is_refused(play: Player, call: str) -> None:
    """One sentence says why, and nothing is written."""
    hide = lambda text: text.replace("hunter2-of-mine", "[hidden]")  # noqa: E731
    played = run(play, f"await {call}", {"known": "say hunter2-of-mine"}, redact=hide)

    assert REFUSED[call] in played.told
    assert not [*(play.folder / FOLDER).glob("*")]


def test_a_folder_that_cannot_be_written_is_an_error(play: Player) -> None:
    """A file in its place, or a link out of the project: the person reads what is wrong, and no traceback."""
    (play.folder / ".agents").mkdir()
    (play.folder / FOLDER).write_text("")
    taken = run(play, 'await remember("Use tabs.")')
    (play.folder / FOLDER).unlink()
    (play.folder / FOLDER).symlink_to(play.folder.parent)
    linked = run(play, 'await remember("Use tabs.")')

    assert (True, True) == (FOLDER in taken.told, "outside of the project" in linked.told)
    assert not {"Traceback"} & {*taken.told.split(), *linked.told.split()}


def test_a_note_of_the_person_is_not_superseded(play: Player) -> None:
    """It would stay, so the one that says to replace it is not written."""
    person = Path(os.environ["KOI_CONFIG_DIR"]) / "memory"
    person.mkdir(parents=True)
    (person / "mine.md").write_text("---\n---\nShip by rail.\n")
    played = run(play, 'await remember("Ship by lorry.", { supersedes: "mine" })')

    assert "there is no note `mine` in the same folder to supersede" in played.told
    assert not [*(play.folder / FOLDER).glob("*")]


def test_forget_removes_notes_of_the_project_alone(play: Player) -> None:
    """Those of the person stay, and the program is told so."""
    write_note(play.folder, "tabs", "Use tabs.")
    person = Path(os.environ["KOI_CONFIG_DIR"]) / "memory"
    person.mkdir(parents=True)
    (person / "mine.md").write_text("---\n---\nI like tabs.\n")
    played = run(play, 'return [await forget("tabs"), await forget("tabs"), (await recall("tabs")).map(n => n.id)]')

    assert [True, False, ["mine"]] == played.result
    assert "the note `mine` is the person's own" in run(play, 'await forget("mine")').told
    assert (person / "mine.md").exists()


def test_recall_narrows(play: Player) -> None:
    """By number, kind and day; the meaning orders where a model is configured."""
    for n, kind in enumerate(("fact", "lesson", "lesson")):
        write_note(play.folder, f"n{n}", f"Tests are slow, {n}.", f"kind: {kind}\ndate: 2026-0{n + 1}-01")
    body = """
      const ids = async options => (await recall({ q: ["slow tests"] }, options)).map(note => note.id)
      const lessons = await ids({ kinds: ["lesson"] })
      return [await ids({}), await ids({ count: 1 }), lessons, await ids({ since: "2026-03-01" })]
    """

    assert [["n2", "n1", "n0"], ["n2"], ["n2", "n1"], ["n2"]] == run(play, body).result


def test_recall_by_meaning(play: Player) -> None:
    """A note in other words comes first."""
    write_note(play.folder, "rain", "Take an umbrella.")
    write_note(play.folder, "other", "The forecast module is old.")
    more = 'llm embedding = { provider: "openai", model: "text-embedding-3-small" }'
    body = 'return (await recall("weather rain forecast")).map(note => note.id)'
    server = ModelServer(embed=meaning)
    played = served(server, partial(run, play, body, more=more, **connected(server)))

    assert ["rain", "other"] == played.result


# ---------------------------------------------------------------- runs that follow each other

PROGRAM = """
import "std/memory"
role R { can write }
agent Main : R {
  uses memory
  uses skill MemoryChanges
  on go(args: { service: string }) { playbook "Find out the port of {{args.service}} and print it." }
}
run Main.go({ service: "billing" })
"""


def find_port(asked: Asked) -> Answer:
    """Looks around twice and keeps what it finds, unless a note says it."""
    messages = asked.body["messages"]
    has_note = "> The billing service listens at port 7411." in json.dumps(messages)
    steps: list[dict[str, Any]] = [
        {"intent": "print", "message": "looking"},
        {
            "intent": "call_skill",
            "skill": "MemoryChanges",
            "function": "remember",
            "input": {"text": "The billing service listens at port 7411.", "options": {"kind": "fact"}},
        },
    ]
    rounds = sum(message["role"] == "assistant" for message in messages)
    last = {"batch": [{"intent": "print", "message": "7411"}, {"intent": "return", "data": {}}]}
    return Answer(pieces=(json.dumps(last if has_note or rounds >= len(steps) else steps[rounds]),))


def test_a_second_process_needs_fewer_rounds(project: Project) -> None:
    """What the first one kept saves the second one the search."""
    project.write("main.koi", PROGRAM)

    async def both() -> list[tuple[int, str]]:
        server = ModelServer(find_port, ["gpt-4o-mini"])
        outcomes = []
        async with server:
            settings = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{server.url}/v1"}
            for _ in range(2):
                before = len(server.requests)
                words = ("run", "main.koi", "-m", "openai/gpt-4o-mini", "--allow", f"write:{FOLDER}/**")
                ran = await asyncio.to_thread(project.koi, *words, **settings)
                assert 0 == ran.returncode, ran.stderr
                outcomes.append((len(server.requests) - before, ran.stdout))
        return outcomes

    assert [(3, "looking\n7411\n"), (1, "7411\n")] == asyncio.run(both())


KEEP = code('await remember("Use tabs."); console.log((await recall("tabs")).length)') + "\nrun Main.go({})\n"


def test_a_resumed_run_keeps_nothing_twice_and_recalls_the_same(koi: Commands) -> None:
    """Whatever has become of the file meanwhile; a replay tells no difference."""
    assert "1\n" == koi.record(KEEP, None, "--allow", f"write:{FOLDER}/**").out
    assert (0, "1\n") == (lambda done: (done.code, done.out))(koi("replay", "last"))
    (file,) = (koi.folder / FOLDER).glob("*.md")
    file.unlink()
    koi.cut_behind("done", "memory.recall#1")
    done = koi("resume", "last")

    assert (0, "1\n") == (done.code, done.out), done.err
    assert not [*(koi.folder / FOLDER).glob("*.md")]


def test_undo_takes_a_note_back(koi: Commands) -> None:
    """A kept note goes, a removed one comes back."""
    write_note(koi.folder, "old", "Use blanks.")
    program = KEEP.replace("console.log(", 'await forget("old"); console.log(')
    assert "1\n" == koi.record(program, None, "--allow", f"write:{FOLDER}/**").out
    assert ["old.md"] != [file.name for file in (koi.folder / FOLDER).glob("*.md")]
    done = koi("undo", "--yes")

    assert 0 == done.code, done.err
    assert ["old.md"] == [file.name for file in (koi.folder / FOLDER).glob("*.md")]


def test_two_processes_write_at_once(project: Project) -> None:
    """Every note of both is there and found."""
    body = "for (let n = 0; n < 5; n++) await remember(`${args.word} number ${n} ${args.word}${n}`)"
    project.write("main.koi", code(body) + "\nrun Main.go({ word: process.env.WORD })\n")

    async def both() -> list[int]:
        words = ("run", "main.koi", "--allow", f"write:{FOLDER}/**")
        ways = [asyncio.to_thread(project.koi, *words, WORD=word) for word in ("zebra", "gnu")]
        return [ran.returncode for ran in await asyncio.gather(*ways)]

    assert [0, 0] == asyncio.run(both())
    index = open_notes(project.folder)
    assert (5, 5, 10) == (len(index.search("zebra", 50)), len(index.search("gnu", 50)), len(index.newest()))
    index.close()
