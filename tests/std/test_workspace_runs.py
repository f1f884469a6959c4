"""Runs that use `std/workspace`: killed and resumed, replayed, on behalf of models, and cancelled."""

from __future__ import annotations

import json
import signal
from collections import Counter
from pathlib import Path

import pytest

from koi_lang.runtime.guards import write_quota
from tests.journal.killing import RUN
from tests.playbook.conftest import play
from tests.playbook.playing import Player
from tests.projects import Project

__all__ = ["play"]

SLICES = 10
STEP = 3
PROGRAM = """
    import effects from "./effects.py"
    import "std/workspace"
    import "std/files"
    role Boss { can execute }
    agent Main : Boss { on start(args: Json) {
      effects.put("note.txt", "one")
      const first = await snapshot()
      effects.put("note.txt", "two")
      effects.put("sub/new.txt", "new")
      const second = await snapshot()
      console.log(first.id !== second.id, await changes(first))
      console.log(await restore(first), await readFile("note.txt"))
      effects.put("sub/other.txt", "other")
      console.log(await restore(second.id), await readFile("note.txt"), await listFiles("**/*.txt"))
    } }
    run Main.start({})
    """
# Writes down what takes place; what the test itself makes in the folder is ignored.
EFFECTS = """
    from pathlib import Path
    from koi_lang.runtime.tree.project import ProjectTree

    Path(".gitignore").write_text("out\\nerr\\neffects\\nanswers.json\\n")

    def note(text):
        with open("effects", "a") as file:
            file.write(text + "\\n")

    def watch(name):
        work = getattr(ProjectTree, name)
        def watched(self, *given):
            done = work(self, *given)
            note(name)
            return done
        setattr(ProjectTree, name, watched)

    if ProjectTree.restore.__name__ != "watched":
        watch("snapshot")
        watch("restore")

    def put(name, text):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text)
        note(f"{name} {text}")
    """


@pytest.mark.sampled(1)
@pytest.mark.parametrize("first", range(1, SLICES + 1))
def test_a_run_killed_at_any_entry_goes_on(project: Project, first: int) -> None:
    """The end is that of a run that was not killed, nobody is asked about snapshots, and none is taken twice.

    A restore that was killed while it told what it has changed is done once more, and has nothing to write then.
    """
    project.write("main.koi", PROGRAM)
    project.write("effects.py", EFFECTS)
    project.write("answers.json", "{}")
    whole = project.koi(*RUN)
    effects = Counter((project.folder / "effects").read_text().splitlines())
    for name in ("effects", "note.txt", "sub/new.txt"):
        (project.folder / name).unlink()
    done = project.fork("-m", "tests.journal.killing", str(first), str(SLICES))
    outcomes = [json.loads(line) for line in done.stdout.splitlines()]

    assert (effects["snapshot"], effects["restore"], len(whole.stdout.splitlines()) > 10) == (2, 2, True), whole.stderr
    assert len(outcomes) >= 2, done.stderr
    for outcome in outcomes:
        told = (outcome["lines"], outcome["err"])
        has_ended = not outcome["killed"] or "has ended well" in outcome["err"]
        assert has_ended or (-signal.SIGKILL, 0) == (outcome["killed"], outcome["resumed"]), told
        assert "workspace." not in outcome["err"], told
        twice = Counter(outcome["effects"].splitlines()) - effects
        assert "restore" in twice or whole.stdout == outcome["out"], told
        assert outcome["out"].rstrip().endswith("} two [ 'note.txt', 'sub/new.txt' ]"), told
        assert Counter() == effects - Counter(outcome["effects"].splitlines()), told
        assert "snapshot" not in twice, told
    assert any("restore" not in Counter(outcome["effects"].splitlines()) - effects for outcome in outcomes)


@pytest.mark.thorough
@pytest.mark.parametrize("first", range(1, STEP + 1))
def test_a_restore_that_is_not_in_the_journal_is_done_again(project: Project, first: int) -> None:
    """Killed between what it did and the entry about it, a run does it once more, and ends alike."""
    project.write("main.koi", PROGRAM)
    project.write("effects.py", EFFECTS)
    project.write("answers.json", "{}")
    whole = project.koi(*RUN)
    for name in ("effects", "note.txt", "sub/new.txt"):
        (project.folder / name).unlink()
    done = project.fork("-m", "tests.journal.killing", str(first), str(STEP), "before")
    outcomes = [json.loads(line) for line in done.stdout.splitlines()]

    begun = [outcome for outcome in outcomes if outcome["effects"]]
    end = "} two [ 'note.txt', 'sub/new.txt' ]"  # what was written is told as nothing, where all was there already
    assert all(str(outcome["out"]).rstrip().endswith(end) for outcome in ({"out": whole.stdout}, *begun))
    restored = Counter(str(outcome["effects"]).splitlines().count("restore") for outcome in begun)
    assert 1 <= restored[3] < len(begun) // 2
    assert len(begun) == restored[3] + restored[2]


MODEL = '''
    import "std/workspace"
    import "std/files"
    import paths from "python:pathlib"
    role Worker { can execute, can write }
    role Coder { can execute, can write, can write_code }
    agent Looker : Worker { uses skill Workspace  on go(args: Json) { playbook """Do the work.""" } }
    agent Main : ROLE { uses skill Workspace, WorkspaceChanges, FileChanges, Own
      on go(args: Json) { playbook """Do the work.""" } }
    skill Own { export function spoil(path: string) { paths.Path(path).write_text("spoilt") } }
    '''


def call(function: str, skill: str = "WorkspaceChanges", **input: object) -> dict[str, object]:
    """An action that calls a function of a skill; its result is called as the function is."""
    return {"id": function, "intent": "call_skill", "skill": skill, "function": function, "input": input}


KEEP = call("snapshot", "Workspace")
RETURN = {"intent": "return", "data": {}}


def test_a_model_restores_only_where_its_agent_may(play: Player, tmp_path: Path) -> None:
    """With `Workspace` alone a model keeps and compares; `restore` is not among what it may call."""
    (tmp_path / "note.txt").write_text("note")
    answers = [{"batch": [KEEP, call("restore", snapshot="${snapshot.output}")]}, RETURN]
    played = play(MODEL.replace("ROLE", "Worker"), answers, call="Looker.go", folder=tmp_path)

    assert "Workspace.snapshot()" in played.requests[0].system
    assert "restore" not in played.requests[0].system
    assert "`Looker` uses no skill `WorkspaceChanges`" in played.requests[1].messages[-1].text


@pytest.mark.parametrize(("role", "text"), [("Worker", "spoilt"), ("Coder", "whole")])
def test_a_model_puts_code_back_with_its_permission(play: Player, tmp_path: Path, role: str, text: str) -> None:
    """Only an agent that may write code gets code put back."""
    path = tmp_path / "tool.py"
    path.write_text("whole")
    steps = [KEEP, call("spoil", "Own", path=str(path)), call("restore", snapshot="${snapshot.output.id}")]
    played = play(MODEL.replace("ROLE", role), [{"batch": steps}, RETURN], folder=tmp_path)

    assert path.read_text() == text
    denied = "DENIED: Skill WorkspaceChanges.restore failed: `tool.py` is code (Python imports)"
    assert (denied in played.requests[1].messages[-1].text) is (role == "Worker")


@pytest.mark.parametrize("id", ["../../../etc/passwd", "x" * 300, "run-0000000000000000", 5, None, {"id": 5}, ["a"]])
def test_a_model_that_makes_up_a_snapshot_is_told(play: Player, tmp_path: Path, id: object) -> None:
    """Whatever it gives for one, it reads one sentence, and nothing has happened."""
    (tmp_path / "note.txt").write_text("note")
    answers = [{"batch": [call("restore", snapshot=id)]}, RETURN]
    told = play(MODEL.replace("ROLE", "Worker"), answers, folder=tmp_path).requests[1].messages[-1].text

    assert "no snapshot" in told
    assert (tmp_path / "note.txt").read_text() == "note"


def test_an_answer_cannot_have_any_amount_written(
    play: Player, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is put back counts as what is written does."""
    monkeypatch.setattr(write_quota, "MAX_ANSWER_BYTES", 10_000)
    (tmp_path / "large.txt").write_text("x" * 4_000)
    empty = call("writeFile", "FileChanges", path="large.txt", text="")
    loop = {"intent": "repeat", "count": 5, "actions": [empty, call("restore", snapshot="${snapshot.output.id}")]}
    source = MODEL.replace("ROLE", "Worker")
    told = play(source, [{"batch": [KEEP, loop]}, RETURN], folder=tmp_path).requests[1].messages[-1].text

    assert "what `restore` puts back (0.0 MB) is too much: one answer may have 0.0 MB written" in told


def test_a_time_limit_ends_a_snapshot_that_waits(project: Project) -> None:
    """Where another run holds the store, a limit of time is heard, and the process ends."""
    project.write(
        "a.koi",
        """
        import "std/workspace"
        import fcntl from "python:fcntl"
        import os from "python:os"
        role R { can execute }
        agent A : R { budget { time: 1 }  on go(args: Json) { console.log((await snapshot()).files) } }
        agent Main : R { on go(args: Json) {
          await snapshot()
          const held = os.open(".koi/snapshots/lock", 2)
          fcntl.flock(held, 2)
          await A.go({})
        } }
        run Main.go({})
        """,
    )
    ran = project.koi("run", "a.koi")

    assert (ran.returncode, ran.stdout, "time" in ran.stderr) == (4, "", True), ran.stderr


def test_nothing_is_kept_where_nothing_runs(project: Project) -> None:
    """A program in Python that calls the function by itself reads what it lacks."""
    script = """
        import asyncio, koi_lang
        try:
            print(asyncio.run(koi_lang.load("std/workspace").snapshot()))
        except koi_lang.KoiError as error:
            print(error)
        """
    assert project.fork_python(script).stdout == "snapshots are kept with a run, and nothing is run here\n"
