"""Sessions whose program changes while their service is away: they go on where they were, or say why they cannot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from koi_lang.runtime.journal.reader import read
from koi_lang.service.host import SessionHost
from koi_lang.service.hosted import HostedSession
from tests.service.hosting import ADMIN, begin, called, data, until, until_told
from tests.service.test_sleeping import printed, restart

PROGRAM = '''
// A desk.
type Topic = { topic: string }
role Worker { can execute }
agent Main : Worker {
  state { count: number = 0 }
  on add(args: Topic) { this.state.count += 1; console.log("added", this.state.count) }
  on talk(args: { message: string }) { playbook """Answer the person.""" }
  on ask(args: Topic) { playbook """Ask the person, then print the answer.""" }
  on note(args: { n: number }) { console.log("noted", args.n) }
  on leave(args: Topic) {
    await this.callAction("shell", { command: "echo left >> left.txt", description: "leave a note" })
    console.log("left")
  }
  on wait(args: Topic) {
    console.log("begun")
    await new Promise((done) => setTimeout(done, 500))
    console.log("ended")
  }
}
'''
ANSWERS = """{
  "Answer the person": [{"intent": "print", "message": "Hello"}, {"intent": "return", "data": 1}],
  "Ask the person": [
    {"id": "asked", "intent": "prompt_user", "question": "Which?", "options": ["red", "blue"]},
    {"intent": "print", "message": "${asked.output.answer}"}, {"intent": "return", "data": 1}
  ]
}"""
KINDS = {"asleep": 3, "asking": 3, "for_leave": 2, "working": 2}
EDITS = {
    "comment": ("// A desk.", "// A better desk."),
    "prompt": ("Answer the person.", "Answer the person, kindly. Ask the person nothing."),
    "type": ("type Topic = { topic: string }", "type Topic = { topic: string, depth: number }"),
    "name": ("on add(", "on plus("),
    "command": ("echo left", "echo gone"),
    "action": ("this.state.count += 1", 'await this.callAction("shell", { command: "rm x", description: "to tidy" })'),
}


@dataclass(slots=True)
class Sessions:
    """Ten sessions by what they do, with what was in their journals."""

    runs: dict[str, list[str]] = field(default_factory=dict)
    requests: dict[str, Any] = field(default_factory=dict)
    entries: dict[str, int] = field(default_factory=dict)

    async def begin(self, host: SessionHost) -> None:
        """Begin all of them."""
        self.runs = {kind: [await self._begin_one(host, kind) for _ in range(count)] for kind, count in KINDS.items()}

    async def _begin_one(self, host: SessionHost, kind: str) -> str:
        session = await begin(host)
        await called(session, "Main.talk", message="hi")
        if kind == "asleep":
            await called(session, "Main.add", topic="tea")
        elif kind == "working":
            await data(session, "run_playbook", name="Main.wait", args={"topic": "tea"})
            await until_told(session, lambda message: b'"begun' in message)
        else:
            name = "ask" if kind == "asking" else "leave"
            await data(session, "run_playbook", name=f"Main.{name}", args={"topic": "tea"})
            await until(session, "waiting")
            self.requests[session.id] = session.feed.requests[0]["id"]
        return session.id

    def of(self, host: SessionHost, *kinds: str) -> list[HostedSession]:
        """Those of some kinds."""
        return [host.find(run, ADMIN) for kind in kinds for run in self.runs[kind]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the program and the answers of its model."""
    (tmp_path / "main.koi").write_text(PROGRAM)
    (tmp_path / "answers.json").write_text(ANSWERS)
    return tmp_path


def edit(folder: Path, *kinds: str) -> None:
    """Change the program."""
    text = (folder / "main.koi").read_text()
    for kind in kinds:
        text = text.replace(*EDITS[kind])
    (folder / "main.koi").write_text(text)


def begun_in(folder: Path) -> Sessions:
    """Ten sessions, whose service has ended."""
    sessions = Sessions()
    restart(folder, sessions.begin)
    return sessions


async def come_to_their_ends(sessions: Sessions, host: SessionHost) -> None:
    """Have all that waits be answered, and nothing be asked or done twice."""
    for session in sessions.of(host, "asking", "for_leave"):
        await until(session, "waiting")
        assert [sessions.requests[session.id]] == [request["id"] for request in session.feed.requests]
    for session in sessions.of(host, "asking"):
        await data(session, "answer", request=sessions.requests[session.id], answer="blue")
    for session in sessions.of(host, "for_leave"):
        await data(session, "approve", request=sessions.requests[session.id], decision="yes")
    for session in sessions.of(host, "asking", "for_leave", "working"):
        await data(session, "get_state")
        await until(session, "idle")
    for session in sessions.of(host, "asleep"):
        await called(session, "Main.note", n=2)
    for kind, lines in {"asleep": ["added 1", "noted 2"], "asking": ["blue"], "for_leave": ["left"]}.items():
        assert [["Hello", *lines]] * KINDS[kind] == [printed(session) for session in sessions.of(host, kind)]
    assert [["Hello", "begun", "ended"]] * 2 == [printed(session) for session in sessions.of(host, "working")]
    assert ["left\n"] * 2 == [(each.files / "left.txt").read_text() for each in sessions.of(host, "for_leave")]


@pytest.mark.parametrize("kinds", [("comment",), ("prompt",), ("comment", "prompt")], ids="+".join)
def test_sessions_go_on_with_a_program_that_says_the_same(folder: Path, kinds: Sequence[str]) -> None:
    """A comment or a prompt has changed: what is open stays open, and no past answer is asked for."""
    sessions = begun_in(folder)
    edit(folder, *kinds)

    async def scenario(host: SessionHost) -> None:
        await come_to_their_ends(sessions, host)
        for session in sessions.of(host, *KINDS):
            paths = [entry.path for entry in read(session.feed.journal).entries if entry.kind == "model_asked"]
            assert len(set(paths)) == len(paths)

    restart(folder, scenario)
    restart(folder, lambda host: _go_on(sessions, host))


async def _go_on(sessions: Sessions, host: SessionHost) -> None:
    """All can be gone on with once more, though their journals are of two versions by now."""
    for session in sessions.of(host, *KINDS):
        await called(session, "Main.note", n=3)


def test_a_program_that_was_changed_back_goes_on(folder: Path) -> None:
    """Between two versions nothing is lost, whichever comes last."""
    sessions = begun_in(folder)
    edit(folder, "prompt")
    restart(folder, lambda host: come_to_their_ends(sessions, host))
    (folder / "main.koi").write_text(PROGRAM)

    restart(folder, lambda host: _go_on(sessions, host))


CHANGED: Mapping[str, tuple[Sequence[str], str]] = {
    "command": (("for_leave",), "`Main.leave` now calls `shell` with something else than before"),
    "action": (("asleep",), "`Main.add` now calls `shell` where it did not"),
    "type": (("asking", "for_leave", "working"), "cannot be called as it was"),
    "name": (("asleep",), "cannot be called as it was"),
}


@pytest.mark.parametrize("kind", CHANGED)
def test_sessions_that_do_not_fit_say_why(folder: Path, kind: str) -> None:
    """What was called is gone, takes or does something else: their journals stay, and a branch goes on before that."""
    sessions = begun_in(folder)
    edit(folder, kind)
    stranded, why = CHANGED[kind]

    async def scenario(host: SessionHost) -> None:
        await host.go_on()
        for session in sessions.of(host, *stranded):
            before = session.feed.journal.read_bytes()
            await session.handle({"type": "get_state"})
            if session.is_awake:  # what it was at does not fit, which shows when that goes on
                await until(session, "asleep", "failed")
            refused = await session.handle({"type": "get_state"})
            assert ("program_changed", True, True) == (
                refused["error_code"],
                refused["error"].startswith("the program has changed since: `"),
                why in refused["error"],
            ), refused
            assert refused["error"] == session.greeting()["changed"]
            assert before == session.feed.journal.read_bytes()
            branch, _ = await host.branch(session, ADMIN, None, None)
            await called(branch, "Main.note", n=1)
            assert ["Hello", "noted 1"] == printed(branch)
        for session in sessions.of(host, *(set(KINDS) - set(stranded))):
            await data(session, "get_state")

    restart(folder, scenario)
    (folder / "main.koi").write_text(PROGRAM)
    restart(folder, lambda host: come_to_their_ends(sessions, host))
