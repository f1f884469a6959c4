"""Sessions that sleep: they wake as they were, wait asleep for answers, and go on after the end of their process."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from koi_lang.errors import capture
from koi_lang.rpc.dispatcher import Dispatcher
from koi_lang.runtime.journal.reader import read
from koi_lang.runtime.journal.summary import summarise
from koi_lang.service.host import SessionHost
from koi_lang.service.hosted import HostedSession
from koi_lang.service.live import run_socket, server
from koi_lang.service.live.addresses import listen, socket_path
from koi_lang.sessions import calls
from koi_lang.sessions.calls import begin_named
from koi_lang.sessions.errors import SessionError
from koi_lang.settings.service import ServiceLimits
from tests.limits import LIMIT_S
from tests.service.hosting import ADMIN, begin, called, data, play, until, until_told

PROGRAM = '''
role Worker { can execute }
agent Main : Worker {
  state { count: number = 0 }
  on add(args: { n: number }) { this.state.count += args.n; console.log(this.state.count) }
  on talk(args: { message: string }) { playbook """Answer the person.""" }
  on ask(args: Json) { playbook """Ask the person, then print the answer.""" }
  on wait(args: Json) {
    this.state.count += 7
    console.log("begun")
    await new Promise((done) => setTimeout(done, args.ms))
    console.log("ended")
  }
}
'''
WRITING = """
import "std/files"
role Worker { can execute, can read, can write }
agent Main : Worker {
  uses skill FileChanges
  on write(args: Json) { await appendFile("log.txt", "a") }
}
"""
ANSWERS = """{
  "Answer the person": [{"intent": "print", "message": "Hello"}, {"intent": "return", "data": 1}],
  "Ask the person": [
    {"id": "asked", "intent": "prompt_user", "question": "Which?", "options": ["red", "blue"]},
    {"intent": "print", "message": "${asked.output.answer}"}, {"intent": "return", "data": 1}
  ]
}"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the program and the answers of its model."""
    (tmp_path / "main.koi").write_text(PROGRAM)
    (tmp_path / "answers.json").write_text(ANSWERS)
    return tmp_path


def restart(folder: Path, scenario: Any, **options: Any) -> Any:
    """What a scenario gives with a host of the program."""
    return play(folder, scenario, "main.koi", answers=str(folder / "answers.json"), **options)


def printed(session: HostedSession) -> list[str]:
    """What a session has printed so far, by its journal."""
    return [str(entry.data["message"]) for entry in read(session.feed.journal).entries if entry.kind == "printed"]


def test_a_session_wakes_as_it_was(folder: Path) -> None:
    """State, what agents remember, plan mode and name are there again; nothing is asked or printed twice."""

    async def scenario(host: SessionHost) -> None:
        session = await begin(host)
        await called(session, "Main.add", n=2)
        await called(session, "Main.talk", message="hi")
        await data(session, "set_plan_mode", on=True)
        await data(session, "set_session_name", name="mine")
        said = await data(session, "get_messages", agent="Main")
        assert 1 == await host.put_to_sleep(0)
        assert ("asleep", 0) == (session.state, await host.put_to_sleep(0))

        assert (said, "mine") == (
            await data(session, "get_messages", agent="Main"),
            (await data(session, "get_state"))["session_name"],
        )
        await data(session, "set_plan_mode", on=False)
        await called(session, "Main.add", n=3)
        assert ["2", "Hello", "5"] == printed(session)

    restart(folder, scenario)


def test_a_session_that_sleeps_tells_what_was_called(folder: Path) -> None:
    """The handler and its payload, as before, also after a restart; rendering a prompt is no call of a handler."""
    last = {"call": None, "handler": "Main.add", "input": {"n": 2}}

    async def scenario(host: SessionHost) -> str:
        session = await begin(host)
        assert {"call": None, "handler": None, "input": None} == await session.describe_call()
        await called(session, "Main.talk", message="hi")
        await called(session, "Main.add", n=2)
        awake = await session.describe_call()
        await session.sleep()
        assert [last, last] == [awake, await session.describe_call()]
        return session.id

    async def later(host: SessionHost, run: str) -> None:
        assert last == await host.find(run, ADMIN).describe_call()

    run = restart(folder, scenario)
    restart(folder, partial(later, run=run))


def test_sleep_is_no_use_of_a_session(folder: Path) -> None:
    """A list shows when somebody has used it last, whether it is awake or asleep, and after it woke for nothing."""

    async def scenario(host: SessionHost) -> list[float]:
        session = await begin(host, "Main.add", n=1)
        await until(session, "idle")
        await called(session, "Main.add", n=2)
        found = [session.listing().usage.updated]
        for _ in range(2):
            await session.sleep()
            found.append(session.listing().usage.updated)
            await session.wake()
            found.append(session.listing().usage.updated)
        return found

    first, *others = play(folder, scenario, "main.koi")
    (again,) = play(folder, last_use, "main.koi")

    assert [first] * 5 == [*others, again]


async def last_use(host: SessionHost) -> list[float]:
    """When each session was used last."""
    return [each.listing().usage.updated for each in host.all(ADMIN)]


def test_a_session_that_is_used_stays_awake(folder: Path) -> None:
    """Only who does nothing, or waits for somebody, is put to sleep, and only after its time."""

    async def scenario(host: SessionHost) -> None:
        working, idle = await begin(host, "Main.wait", ms=60_000), await begin(host)
        assert 0 == await host.put_to_sleep(100)
        assert 1 == await host.put_to_sleep(0)
        assert ("working", "asleep") == (working.state, idle.state)
        await data(working, "abort")

    restart(folder, scenario)


def test_a_question_waits_while_its_session_sleeps(folder: Path) -> None:
    """It is listed without waking anybody, over a restart, too; its answer wakes the session, which goes on with it."""

    async def ask(host: SessionHost) -> tuple[str, str]:
        session = await begin(host, "Main.ask")
        await until(session, "waiting")
        assert 1 == await host.put_to_sleep(0)
        assert (False, "waiting") == (session.is_awake, session.state)
        return session.id, str(session.feed.requests[0]["id"])

    async def answer(host: SessionHost) -> None:
        assert [] == await host.go_on()
        session = host.find(run, ADMIN)
        assert (False, "Which?") == (session.is_awake, session.feed.requests[0]["question"])
        wrong = await session.handle({"type": "answer", "request": "request-1", "answer": "red"})
        assert "unknown_request" == wrong["error_code"]
        await data(session, "answer", request=request, answer="blue")
        await until(session, "idle")
        assert (["blue"], []) == (printed(session), session.feed.requests)

    run, request = restart(folder, ask)
    restart(folder, answer)


def test_a_control_of_a_session_here_is_a_function_call(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer and an abort form no message of `koi rpc`; they wake a session that sleeps, as its commands do."""
    monkeypatch.setattr(Dispatcher, "handle", None)

    async def scenario(host: SessionHost) -> None:
        session = await begin(host, "Main.ask")
        await until(session, "waiting")
        await host.put_to_sleep(0)
        with pytest.raises(SessionError, match="no open request"):
            await session.perform(calls.answer, request="request-1", answer="red")
        await session.perform(calls.answer, request=session.feed.requests[0]["id"], answer="blue")
        await until(session, "idle")
        assert (["blue"], []) == (printed(session), session.feed.requests)
        await session.begin_call(partial(begin_named, name="Main.wait", payload={"ms": 60_000}))
        assert {"aborted": True, "queued": []} == await session.perform(calls.abort)
        assert ("idle", []) == (session.state, session.feed.requests)

    restart(folder, scenario)


def test_what_is_under_way_is_at_work_at_once(folder: Path) -> None:
    """A client that comes before a session has gone on waits for the end of its call, as one that comes later."""

    async def scenario(host: SessionHost) -> str:
        session = await begin(host)
        await data(session, "run_playbook", name="Main.wait", args={"ms": 300})
        await until_told(session, lambda message: b'"begun' in message)
        return session.id

    async def again(host: SessionHost) -> tuple[str, str, bool]:
        session = host.find(run, ADMIN)
        before = session.state
        await session.wait_for_rest(LIMIT_S)
        return before, session.state, (await session.outcome())["ok"]

    run = restart(folder, scenario)

    assert ("working", "idle", True) == restart(folder, again)


def test_what_is_under_way_goes_on_after_a_restart(folder: Path) -> None:
    """A service that is ended has its sessions go on when it is started again, from where they were."""

    async def scenario(host: SessionHost) -> str:
        session = await begin(host)
        await called(session, "Main.add", n=1)
        await data(session, "run_playbook", name="Main.wait", args={"ms": 700})
        await until_told(session, lambda message: b'"begun' in message)
        return session.id

    async def again(host: SessionHost) -> None:
        session = host.find(run, ADMIN)
        await until(session, "working", "idle")
        await until(session, "idle")
        await called(session, "Main.add", n=1)
        assert ["1", "begun", "ended", "9"] == printed(session)

    run = restart(folder, scenario)
    restart(folder, again)


def test_a_session_goes_on_after_koi_was_updated(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that an earlier release has begun wakes in its own journal."""

    async def begun(host: SessionHost) -> str:
        session = await begin(host)
        await called(session, "Main.add", n=2)
        return session.id

    async def gone_on(host: SessionHost) -> list[str]:
        session = host.find(id, ADMIN)
        await called(session, "Main.add", n=3)
        return printed(session)

    with monkeypatch.context() as patch:
        patch.setattr("koi_lang.sessions.recording.__version__", "0.0.1")
        id = restart(folder, begun)

    assert ["2", "5"] == restart(folder, gone_on)


def test_two_hosts_of_a_folder_do_not_both_wake_a_session(folder: Path) -> None:
    """The second one is told that the session goes on elsewhere, and begins nothing."""

    async def scenario(host: SessionHost) -> None:
        session = await begin(host, "Main.wait", ms=60_000)

        async def other(second: SessionHost) -> None:
            assert [] == await second.go_on()
            refused = await second.find(session.id, ADMIN).handle({"type": "get_state"})
            assert "goes on" in refused["error"]

        await asyncio.to_thread(restart, folder, other)
        assert "working" == session.state
        await data(session, "abort")

    restart(folder, scenario)


def test_messages_at_once_wake_a_session_once(folder: Path) -> None:
    """Forty that come while it sleeps are carried out by one run, also where it is about to sleep again."""

    async def scenario(host: SessionHost) -> None:
        session = await begin(host)
        await host.put_to_sleep(0)
        states = [session.handle({"type": "get_state"}) for _ in range(40)]
        answers = await asyncio.gather(*states, host.put_to_sleep(0), *states[:0])
        assert [] == [answer for answer in answers[:40] if not answer["success"]]
        assert 2 == sum(entry.kind in ("run_started", "resumed") for entry in read(session.feed.journal).entries)

    restart(folder, scenario)


def test_a_listing_is_what_the_journal_tells(folder: Path) -> None:
    """What is counted while a session is awake is what its journal holds, in a branch of it, too."""

    async def scenario(host: SessionHost) -> None:
        session = await begin(host)
        await called(session, "Main.talk", message="hi")
        branch, _ = await host.branch(session, ADMIN, None, None)
        await called(branch, "Main.add", n=1)

        assert 0 < session.listing().usage.totals.requests
        for each in (session, branch):
            told, counted = summarise(each.feed.journal).usage, each.listing().usage
            assert (told.entries, told.totals) == (counted.entries, counted.totals)
            assert told.updated == pytest.approx(counted.updated, abs=0.001)

    restart(folder, scenario)


def test_a_session_that_gets_a_command_is_not_put_to_sleep(folder: Path) -> None:
    """Where there is one place, and a command comes while another session takes it, one of the two is refused."""
    wait: dict[str, Any] = {"type": "run_playbook", "name": "Main.wait", "args": {"ms": 60_000}}

    async def scenario(host: SessionHost) -> None:
        session = await begin(host)
        call = partial(begin_named, name=wait["name"], payload=wait["args"])
        begun, called = await asyncio.gather(capture(host.start(ADMIN, "", call)), session.handle(wait))
        assert {True, False} == {begun.error is None, called["success"]}
        assert ["working"] == [each.state for each in host.all_here() if each.is_awake]

    restart(folder, scenario, limits=ServiceLimits(sessions=1))


def test_sessions_do_not_wake_the_sockets_of_others(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What serves followers is loaded for none of them; a socket that was left is removed when the host begins."""
    served: list[object] = []
    monkeypatch.setattr(server.LiveServer, "serve", served.append)
    monkeypatch.setattr(run_socket, "OPEN_AFTER_S", 0)
    left = socket_path(folder, "left")
    listen(left).close()

    async def scenario(host: SessionHost) -> None:
        for _ in range(3):
            await begin(host)
        assert not left.exists()
        await asyncio.sleep(0)  # the last one has its socket in the next turn of the loop
        assert 3 == len(list(left.parent.iterdir()))

    restart(folder, scenario)
    assert [] == served


def test_a_session_is_on_the_disk_before_its_first_lasting_effect(tmp_path: Path) -> None:
    """A session that only computes waits for no disk; its row is written through before a file is changed."""
    (tmp_path / "main.koi").write_text(WRITING)
    statements: list[str] = []

    async def scenario(host: SessionHost) -> tuple[list[str], list[str]]:
        host.database._connection.set_trace_callback(statements.append)
        session = await begin(host)
        begun = [*statements]
        statements.clear()
        await called(session, "Main.write")
        return begun, statements

    begun, written = play(tmp_path, scenario, "main.koi", allow=("write",))

    assert ["pragma", "insert", "pragma"] == [each.split()[0] for each in begun if "select" not in each]
    assert ["insert"] == [each.split()[0] for each in written if "into sessions" in each or "pragma" in each]
    assert "a" == next(tmp_path.glob(".koi/sessions/*/files/log.txt")).read_text()
