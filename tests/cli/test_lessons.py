"""Lessons at the end of `koi do`: what the person said against something, kept as notes for later runs."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pexpect
import pytest

import koi_lang
from koi_lang.cli.lessons import evidence_in, offer_lessons
from koi_lang.runtime.guidance.notes import FOLDER
from koi_lang.runtime.journal.entries import JournalEntry
from koi_lang.runtime.journal.reader import read
from koi_lang.runtime.journal.writer import Writer
from koi_lang.sessions.options import RunOptions
from koi_lang.settings import read_settings
from koi_lang.system import resources
from tests import forks
from tests.first.machine import KEY
from tests.limits import LIMIT_S
from tests.llm.server import Answer, Asked, ModelServer
from tests.projects import Project

LESSON = "Deploy with `make release`, never with scp."
SHELL = {"intent": "shell", "command": "scp app host:", "description": "deploy"}
DONE = {"intent": "return", "data": "deployed"}


def answer(asked: Asked) -> Answer:
    """Copies files, unless a note says how to deploy; words a lesson where it is asked for one."""
    messages = json.dumps(asked.body["messages"])
    if "Word at most three lessons" in messages:
        return Answer(pieces=(json.dumps({"lessons": [{"text": LESSON, "evidence": 1}]}),))
    knows = f"> {LESSON}" in asked.body["messages"][0]["content"] or f"> {LESSON}" in messages
    is_first = sum(each["role"] == "assistant" for each in asked.body["messages"]) == 0
    return Answer(pieces=(json.dumps(SHELL if is_first and not knows else DONE),))


def work(project: Project, url: str, *talk: tuple[str, str], more: str = "") -> str:
    """What a terminal shows of `koi do`; each question that is waited for is answered."""
    settings = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{url}/v1", "KOI_PLAIN": "1", "TERM": "xterm"}
    environment = {**os.environ, "PYTHONPATH": str(Path(koi_lang.__file__).parents[1]), **settings}
    python, *words = forks.koi("do", "deploy the app", "-m", "openai/gpt-4o-mini", *more.split())
    child = pexpect.spawn(python, words, cwd=project.folder, env=environment, timeout=LIMIT_S, encoding="utf-8")
    shown = ""
    for question, typed in talk:
        child.expect_exact(question)
        shown += (child.before or "") + question
        child.sendline(typed)
    child.expect(pexpect.EOF)
    child.wait()
    child.close()
    return shown + (child.before or "")


REFUSAL = ("Allow? [y]es", "n because we deploy with make release")


@pytest.mark.parametrize(("typed", "count"), [("y", 1), ("", 0), ("n", 0)])
def test_a_lesson_is_kept_only_where_the_person_says_so(project: Project, typed: str, count: int) -> None:
    """The person sees it with its evidence; whatever is no yes keeps nothing."""

    async def once() -> str:
        async with ModelServer(answer, ["gpt-4o-mini"]) as server:
            return await asyncio.to_thread(work, project, server.url, REFUSAL, ("[e]dit, [N]o", typed))

    shown = asyncio.run(once())

    assert LESSON in shown
    assert "because we deploy with make release" in shown.partition(LESSON)[2]
    assert count == len(list((project.folder / FOLDER).glob("*.md")))
    assert LESSON not in project.koi("learn", "--json").stdout


@pytest.mark.parametrize("typed", ["y", "n"])
def test_what_was_decided_is_not_offered_again(project: Project, typed: str) -> None:
    """Neither the lesson, whose evidence comes again, nor the words that it was made of as a note."""

    async def thrice() -> list[str]:
        async with ModelServer(answer, ["gpt-4o-mini"]) as server:
            first = await asyncio.to_thread(work, project, server.url, REFUSAL, ("[e]dit, [N]o", typed))
            for path in (project.folder / FOLDER).glob("*.md"):
                path.unlink()  # so that the agent makes the same mistake again
            return [first, *[await asyncio.to_thread(work, project, server.url, REFUSAL) for _ in range(2)]]

    assert [True, False, False] == ["Lesson: " in shown for shown in asyncio.run(thrice())]
    assert [] == [each for each in json.loads(project.koi("learn", "--json").stdout) if each["kind"] != "freeze"]


def test_a_decided_lesson_of_other_evidence(project: Project) -> None:
    """What was decided is left out by its text, too, whatever its evidence is."""
    file = resources.standard_skills() / "programs/lessons.koi"
    (project.folder / "answers.json").write_text(
        json.dumps([{"lessons": [{"text": LESSON, "evidence": 1}, {"text": "Use tabs.", "evidence": 1}]}])
    )
    payload = {"evidence": ["said: no scp"], "asks": False, "decided": ["Deploy with `make release`, never  with scp"]}
    ran = project.koi("run", str(file), "--answers", "answers.json", "--args", json.dumps(payload))
    payload["decided"] = ["Deploy with `make release`, never  with scp", "Use tabs."]
    other = project.koi("run", str(file), "--answers", "answers.json", "--args", json.dumps(payload))

    assert ["`koi learn` offers what was learnt" in each.stderr for each in (ran, other)] == [True, False]


def test_lessons_that_no_note_can_hold(project: Project) -> None:
    """They are not offered; a lesson that somebody has written so is told, and the next one is asked about."""
    file = resources.standard_skills() / "programs/lessons.koi"
    texts = [f"Use the token {KEY}.", "x" * 2001, "\x1b", "Use tabs.", "Run make first."]
    lessons = [{"text": text, "evidence": 1} for text in texts]
    project.write("answers.json", json.dumps([{"lessons": lessons[2:]}]))
    payload = json.dumps({"evidence": ["said: no scp"], "asks": True, "decided": []})
    words = ("run", str(file), "--answers", "answers.json", "--allow", f"write:{FOLDER}/**", "--args", payload)
    ran = project.koi(*words, stdin="e\nThe password is Tr0ub4dor&3\ny\n")
    project.write("answers.json", json.dumps([{"lessons": lessons[:3]}]))
    none = project.koi(*words)

    assert "not kept: the note holds a secret" in ran.stderr
    assert ["Run make first."] == [path.read_text().splitlines()[-1] for path in (project.folder / FOLDER).glob("*.md")]
    assert "" == none.stdout


def test_the_next_process_needs_fewer_rounds(project: Project) -> None:
    """A lesson that was kept saves the second one a round; with `--no-memory` it does not."""

    async def all_three() -> list[int]:
        counts = []
        async with ModelServer(answer, ["gpt-4o-mini"]) as server:
            for talk, more in (((REFUSAL, ("[e]dit, [N]o", "y")), ""), ((), ""), ((REFUSAL,), "--no-memory")):
                before = len(server.requests)
                await asyncio.to_thread(work, project, server.url, *talk, more=more)
                counts.append(len(server.requests) - before)
        return counts

    assert [3, 1, 2] == asyncio.run(all_three())


def entry(kind: str, **data: Any) -> JournalEntry:
    """An entry of a journal."""
    return JournalEntry(1, 0.0, kind, ("a",), "Coder", data)


def test_evidence_is_what_was_said_against_something() -> None:
    """Refusals with a reason, what was said meanwhile or about a plan, and findings that came back."""
    finding = {"text": "the port is taken"}
    entries = [
        entry("approval_given", what="run rm", answer="no", reason="it is in use"),
        entry(
            "approval_given",
            what="run `scp app host:` in the sandbox, without network, with programs from ~/.cargo",
            answer="no",
            reason="we use make",
        ),
        entry("approval_given", what="shell ls", answer="yes"),
        entry("steered", text="use tabs", **{"from": "person"}),
        entry("steered", text="from a tool", **{"from": "hook"}),
        entry("done", intent="plan_question", result="accept"),
        entry("done", intent="plan_question", result="2: only the tests"),
        entry("handler_started", event="change", args={"findings": [finding]}),
        entry("handler_started", event="change", args={"findings": [finding, {"text": "once"}]}),
    ]
    lines = [
        "refused to run rm, because it is in use",
        "refused to run `scp app host:`, because we use make",
        "said meanwhile: use tabs",
        "said about the plan: 2: only the tests",
        "found in 2 rounds: the port is taken",
    ]

    assert lines == list(evidence_in(entries))


def test_nobody_at_a_terminal_keeps_nothing(project: Project) -> None:
    """A piped `koi do` asks for no lesson."""
    project.write("answers.json", json.dumps([SHELL, DONE]))
    ran = project.koi("do", "deploy the app", "--answers", "answers.json")

    assert "Lesson" not in ran.stdout + ran.stderr
    assert not (project.folder / FOLDER).exists()


@pytest.mark.parametrize("keep", ["propose", "ask"])
def test_lessons_of_unattended_work_are_proposed(project: Project, monkeypatch: pytest.MonkeyPatch, keep: str) -> None:
    """Only where the settings say so; `koi learn` offers them until they are kept or refused."""
    project.write("koi.toml", f'[memory]\nkeep = "{keep}"\n')
    project.write("a.koi", "role R { can execute }\nagent A : R { on go() { return 1 } }\nrun A.go()\n")
    assert 0 == project.koi("run", "--quiet", "a.koi").returncode
    (journal,) = (project.folder / ".koi/runs").glob("*.jsonl")
    writer = Writer(journal, read(journal).end, str, print)
    writer.note("steered", text="deploy with make", **{"from": "person"})
    writer.close()
    monkeypatch.chdir(project.folder)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    async def once() -> int:
        async with ModelServer(answer, ["gpt-4o-mini"]) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
            options = RunOptions(model="openai/gpt-4o-mini", settings=read_settings(project.folder))
            await asyncio.to_thread(offer_lessons, journal.stem, options)
            return len(server.requests)

    assert int(keep == "propose") == asyncio.run(once())
    offers = json.loads(project.koi("learn", "--json").stdout)
    assert [("lesson", [LESSON], "said meanwhile: deploy with make")] * (keep == "propose") == [
        (each["kind"], each["what"], each["why"]) for each in offers
    ]
    assert not (project.folder / FOLDER).exists()
    for each in offers:
        project.koi("learn", "--yes", each["id"])
        (note,) = (project.folder / FOLDER).glob("*.md")
        assert "kind: lesson" in note.read_text()
    assert [] == json.loads(project.koi("learn", "--json").stdout)
