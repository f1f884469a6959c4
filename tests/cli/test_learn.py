"""`koi learn`: what recorded runs suggest, and what the person makes of it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from koi_lang.cli import freeze
from koi_lang.cli.learn import Proposal, accept, notes_to_keep, plans_to_freeze, rules_to_keep, usable_calls
from koi_lang.freezing.recordings import calls_in
from koi_lang.runtime.journal import store
from koi_lang.runtime.journal.entries import Header, JournalEntry
from koi_lang.runtime.journal.reader import Journal
from koi_lang.system.resources import standard_skills
from tests.first.machine import KEY
from tests.growth import MOST_GROWTH, growth
from tests.llm.server import Answer, ModelServer
from tests.projects import Project

PROGRAM = """
    role Worker { can execute }
    agent Main : Worker { on greet(args: { name: string }) { playbook "Say hello to {{args.name}}." } }
    run Main.greet({})
"""
WORK = """
    role Worker { can execute }
    agent Main : Worker { on go(args: Json) { playbook "Do the work." } }
    run Main.go({})
"""


DONE = {"intent": "return"}


def greet(project: Project, name: str, **settings: str) -> None:
    """A recorded run."""
    project.write("answers.json", json.dumps([[{"intent": "print", "message": f"Hello, {name}!"}, DONE]]))
    words = ("--quiet", "--answers", "answers.json", "--arg", f"name={name}")
    assert 0 == project.koi("run", "main.koi", *words, **settings).returncode


def offers(project: Project) -> list[dict[str, Any]]:
    """What is offered."""
    found: list[dict[str, Any]] = json.loads(project.koi("learn", "--json").stdout)
    return found


def test_a_playbook_that_is_called_often_is_offered_to_be_frozen(project: Project) -> None:
    """From the third call on; a yes shows the plan and freezes it, and then there is nothing to offer."""
    project.write("main.koi", PROGRAM)
    greet(project, "Ada")
    greet(project, "Bo")
    before = offers(project)
    greet(project, "Cy")
    (offer,) = offers(project)
    made = project.koi("learn", "--yes", offer["id"])

    assert [] == before
    assert ("freeze", ["main.koi", "Main.greet"]) == (offer["kind"], offer["what"])
    assert "3 calls took 3 requests" in offer["why"]
    assert (0, True) == (made.returncode, (project.folder / "plans/Main.greet.json").exists())
    assert "    message: Hello, ${args.name}!\n" in made.stdout
    assert [] == offers(project)


def test_calls_without_evidence_are_not_offered(project: Project) -> None:
    """Rehearsals and answers of plans count for nothing, neither do calls of an earlier playbook."""
    project.write("main.koi", PROGRAM.replace('"Say hello', '"Say \\"Hi\\" and hello'))
    greet(project, "Ada")
    project.write("main.koi", PROGRAM)
    for name in ("Bo", "Cy"):
        greet(project, name)
        assert 0 == project.koi("run", "main.koi", "--rehearse", "--arg", f"name={name}").returncode

    assert [] == offers(project)


def test_programs_of_koi_are_not_offered(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan is written beside a program, so only those of this folder are offered."""
    project.write("main.koi", PROGRAM)
    monkeypatch.chdir(project.folder)
    programs = [str(standard_skills() / "programs/think.koi"), str(project.folder / "main.koi")]
    runs = [(replace(HEADER, program=program), run_of(3)) for program in programs]
    monkeypatch.setattr(freeze, "can_freeze", lambda file, handler: True)

    assert [("main.koi", "Main.greet")] == [each.what for each in plans_to_freeze(runs)]


def test_what_cannot_be_frozen_is_not_offered(project: Project) -> None:
    """Nothing explains the names that were printed."""
    project.write("main.koi", PROGRAM)
    for name, word in (("Ada", "Bo"), ("Bo", "Cy"), ("Cy", "Di")):
        project.write("answers.json", json.dumps([{"batch": [{"intent": "print", "message": word}, DONE]}]))
        assert 0 == project.koi("run", "main.koi", "--answers", "answers.json", "--arg", f"name={name}").returncode

    assert [] == offers(project)


def run_of(count: int) -> list[JournalEntry]:
    """The entries of a run in which a playbook was called so often."""
    entries: list[tuple[str, tuple[str, ...], dict[str, Any]]] = []
    for number in range(1, count + 1):
        place = (f"Main.greet#{number}",)
        entries.append(("handler_started", place, {"event": "greet", "args": {}}))
        entries.append(("model_asked", (*place, "turn#1"), {"messages": [["user", "Greet."]]}))
        entries.append(("model_answered", (*place, "turn#1"), {"model": "x", "usd": 0.5}))
        entries.append(("handler_ended", place, {}))
    return [JournalEntry(n, 0.0, kind, path, "Main", data) for n, (kind, path, data) in enumerate(entries, 1)]


def test_the_calls_of_a_run_are_read_in_one_walk() -> None:
    """Twice as many calls take twice the work, for `koi learn` and for `koi freeze`, and cost what models took."""
    runs = {count: Journal(HEADER, tuple(run_of(count))) for count in (100, 200)}
    costs = [(handler, call.requests, call.usd) for handler, call in usable_calls(runs[100].entries)]

    assert [("Main.greet", 1, 0.5)] * 100 == costs
    assert 200 == len(list(calls_in(runs[200], "Main", "greet", {})))
    assert growth(lambda n: lambda: list(usable_calls(runs[n].entries)), 100) < MOST_GROWTH
    assert growth(lambda n: lambda: list(calls_in(runs[n], "Main", "greet", {})), 100) < MOST_GROWTH


def test_no_stays_no(project: Project, tmp_path: Path) -> None:
    """What was refused is not offered again."""
    project.write("main.koi", PROGRAM)
    config = {"KOI_CONFIG_DIR": str(tmp_path / "config")}
    for name in ("Ada", "Bo", "Cy"):
        greet(project, name, **config)
    (offer,) = json.loads(project.koi("learn", "--json", **config).stdout)
    project.koi("learn", "--no", offer["id"], **config)
    greet(project, "Di", **config)

    assert "[]\n" == project.koi("learn", "--json", **config).stdout


def test_journals_of_others_suggest_nothing(project: Project, tmp_path: Path) -> None:
    """Nobody allowed or said here what stands in a folder that was copied, with the journals of somebody else."""
    project.write("main.koi", PROGRAM)
    for name in ("Ada", "Bo", "Cy"):
        greet(project, name)
    own, others = offers(project), project.koi("learn", "--json", KOI_CONFIG_DIR=str(tmp_path / "others"))
    path = next(iter(store.journals(project.folder)))
    path.write_text(path.read_text().replace("Hello", "Hullo"))

    assert ["freeze"] == [each["kind"] for each in own]
    assert (0, "[]\n") == (others.returncode, others.stdout)
    assert [] == offers(project)


def test_an_unknown_id(project: Project) -> None:
    """One clear message, and a hint where nothing was recorded."""
    ran, empty = project.koi("learn", "--yes", "abcdef"), project.koi("learn")

    assert (2, "nothing is offered as `abcdef`") == (ran.returncode, ran.stderr.splitlines()[0].removeprefix("error: "))
    assert (0, "the recorded runs of this folder suggest nothing\n") == (empty.returncode, empty.stderr)


# ---------------------------------------------------------------- rules and notes

HEADER = Header("r1", 0.0, "main.koi", "", "1")


def asked(command: str, answer: str, reason: str = "", **more: Any) -> list[JournalEntry]:
    """A command that the person was asked about."""
    path, given = ("Main.go#1", "shell#1"), {"what": f"run {command}", "answer": answer, **more}
    begun = JournalEntry(1, 0.0, "begun", path, "Main", {"intent": "shell", "id": "", "fields": {"command": command}})
    return [begun, JournalEntry(2, 0.0, "approval_given", path, "Main", given | ({"reason": reason} if reason else {}))]


def test_what_was_allowed_three_times_is_offered_as_a_rule() -> None:
    """Not what was refused once, nor what a rule would take for a pattern, nor what a branch took over."""
    runs = [(HEADER, asked("make test", "yes"))] * 3 + [(HEADER, asked("rm *", "yes"))] * 3
    runs += [(HEADER, asked("make docs", "yes", recalled=recalled)) for recalled in (False, True, True)]
    runs += [*[(HEADER, asked("make release", "yes"))] * 3, (HEADER, asked("make release", "no"))]

    assert [("run:make test",)] == [offer.what for offer in rules_to_keep(runs)]


def test_what_was_said_twice_is_offered_as_a_note(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nearly the same words in two runs are the same; a yes ends the offer."""
    monkeypatch.chdir(project.folder)
    said = ["we deploy with make release", "We deploy with make release!", "use tabs"]
    runs = [(HEADER, asked("scp app host:", "no", each)) for each in said]

    (offer,) = notes_to_keep(runs)
    accept(offer)

    assert ("We deploy with make release!",) == offer.what
    assert [] == list(notes_to_keep(runs))
    assert [] == list(notes_to_keep([*runs, (HEADER, asked("scp app host:", "no", said[1]))]))


def test_an_accepted_rule_counts_in_later_runs(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command is run without a question."""
    project.write("main.koi", WORK)
    command = {"intent": "shell", "command": "echo done > made", "description": "work"}
    project.write("answers.json", json.dumps([command, {"intent": "return", "data": {}}]))
    config = str(tmp_path / "config")
    monkeypatch.setenv("KOI_CONFIG_DIR", config)
    monkeypatch.chdir(project.folder)
    project.koi("run", "main.koi", "--answers", "answers.json", KOI_CONFIG_DIR=config)
    before = (project.folder / "made").exists()
    accept(Proposal("rule", ("run:echo done > made",), ""))
    project.koi("run", "main.koi", "--answers", "answers.json", KOI_CONFIG_DIR=config)

    assert (False, True) == (before, (project.folder / "made").exists())


def release(project: Project, version: str) -> None:
    """A recorded task of `koi do`: a file is written, and a command is run."""
    steps = [
        {"intent": "write_file", "path": "VERSION", "content": version},
        {"intent": "run_command", "command": f"echo tag {version}", "description": "tag it"},
        {"intent": "return", "data": "done"},
    ]
    project.write("answers.json", json.dumps([[step] for step in steps]))
    words = ("--answers", "answers.json", "--allow", "**", "--quiet")
    done = project.koi("do", f"release {version}", *words)
    assert 0 == done.returncode, done.stderr


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("Write the number to `VERSION`, then run:\n\n```sh\n# the tag\necho tag 2\n```", ""),
        ("Write the number to `VERSION`, then `git push`.", "the draft names `git push`, which no recorded task has"),
        ("Run:\n```\nrm -rf /\n```", "the draft names `rm -rf /`, which no recorded task has"),
    ],
    ids=["recorded", "another command", "another in a block"],
)
def test_a_skill_is_drafted_from_three_tasks_with_the_same_steps(
    project: Project, monkeypatch: pytest.MonkeyPatch, body: str, told: str
) -> None:
    """By the model for `small`, for a person to look over, and only with recorded commands and files."""
    for version in ("1", "2"):
        release(project, version)
    before = [each for each in offers(project) if each["kind"] == "skill"]
    release(project, "3")
    (offer,) = (each for each in offers(project) if each["kind"] == "skill")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    project.write("koi.toml", '[models]\nsmall = "openai/gpt-4o-mini"\n')
    skill = {"name": "release", "description": "Release: a version.", "body": body}

    async def draft() -> tuple[int, str]:
        async with ModelServer(lambda asked: Answer(pieces=(json.dumps(skill),)), ["gpt-4o-mini"]) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
            done = await asyncio.to_thread(project.koi, "learn", "--yes", offer["id"])
            return done.returncode, done.stderr

    code, stderr = asyncio.run(draft())
    file = project.folder / ".agents/skills/proposed/release/SKILL.md"

    assert ([], "3 tasks took the same steps: VERSION, echo tag") == (before, offer["why"])
    assert (0 if not told else 1, told in stderr, not told) == (code, True, file.exists()), stderr
    if not told:
        assert 'name: release\ndescription: "Release: a version."\n---\n\nWrite the number' in file.read_text()
        assert [] == [each for each in offers(project) if each["kind"] == "skill"]
    assert "release" not in project.koi("list", "skills").stdout
