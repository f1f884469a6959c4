"""Sessions whose program has changed go on only where it tells again what their calls had told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from koi_lang.service.host import SessionHost
from koi_lang.service.hosted import HostedSession
from tests.service.hosting import ADMIN, begin, called, data, play, until
from tests.service.serving_process import ServiceProcess
from tests.service.test_sleeping import printed

PROGRAM = """
role Clerk { can execute, can registry }
agent Till : Clerk {
  state { count = 0 }
  on order(args: { pieces: int }) {
    await new Promise((done) => setTimeout(done, 1))
    this.state.count += args.pieces
    console.log("ordered")
    await registry.set("last", args.pieces)
    if (args.pieces > 5) { throw new Error("too many") }
    return { total: this.state.count, note: await this.note({ n: 1 }) }
  }
  on note(args: { n: int }) { return args.n }
  on gather(args: { pieces: int }) {
    setTimeout(() => { console.log("late") }, 20)
    const wait = async (ms) => {
      await new Promise((done) => setTimeout(done, ms))
      console.log("waited", ms)
      return ms
    }
    return await Promise.all([wait(args.pieces), wait(1), Promise.race([wait(5), wait(900)])])
  }
  on ask(args: { pieces: int }) {
    console.log("asking")
    this.state.count += 1
    const said = await this.callAction("prompt_user", { question: "Which?" })
    return { said: said.answer, count: this.state.count }
  }
}
"""
LINE = '    console.log("ordered")\n'
# What another version does, and what is said of it.
STRANDING = {
    "sum": ("+= args.pieces", "-= args.pieces", "returns something else than before"),
    "initial": ("count = 0", "count = 100", "returns something else than before"),
    "field": ("{ total:", "{ sum:", "returns something else than before"),
    "other line": ('"ordered"', '"sold"', "prints something else than before"),
    "more lines": (LINE, LINE * 2, "prints where it did not"),
    "fewer lines": (LINE, "", "no longer prints where it did"),
    "no sum": ("this.state.count += args.pieces", "", "returns something else than before"),
    "timer": (LINE, LINE + "await new Promise((done) => setTimeout(done, 1))\n", "waits for a timer where it did not"),
    "effect": (LINE, LINE + 'await registry.get("n")\n', "calls `registry.get` where it did not"),
    "no effect": ('await registry.set("last", args.pieces)', "", "no longer calls `registry.set` where it did"),
    "other effect": ('set("last", args', 'set("first", args', "calls `registry.set` with something else than before"),
    "error": (LINE, LINE + 'throw new Error("no")\n', "fails now: no"),
    "other error": ("too many", "too much", "fails with something else than before"),
    "no error": ("args.pieces > 5", "args.pieces > 9", "calls `Till.note` where it did not"),
    "handler": ("note({ n: 1 })", "note({ n: 2 })", "calls `Till.note` with something else than before"),
    "no handler": ("await this.note({ n: 1 })", "1", "no longer calls `Till.note` where it did"),
}
FITTING = {
    "comment": ("agent Till", "// One desk.\nagent Till"),
    "type": ("pieces: int }", "pieces: int in 3.. }"),
    "field": ("pieces: int }", "pieces: int, colour?: string }"),
    "further state": ("count = 0", "count = 0, last = 1"),
    "state that nobody was told of": (LINE, LINE + "this.state.last = 1\n"),
    "branch": (LINE, LINE + "if (args.pieces > 50) { this.state.count = 0 }\n"),
}


async def total(session: HostedSession) -> object:
    """The result of the last call."""
    return (await session.outcome())["result"]


async def call_often(host: SessionHost) -> str:
    """A session with a call that was ended, one that has failed, and others that have ended well."""
    session = await begin(host, "Till.ask", pieces=1)
    await until(session, "waiting")
    await data(session, "abort")
    await called(session, "Till.gather", pieces=8)
    for pieces in (4, 6, 2):
        await called(session, "Till.order", pieces=pieces)
    assert {"total": 13, "note": 1} == await total(session)
    return session.id


def changed(folder: Path, before: str, after: str) -> None:
    """Another version of the program."""
    text = PROGRAM.replace(before, after)
    assert text != PROGRAM
    (folder / "main.koi").write_text(text)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the program."""
    (tmp_path / "main.koi").write_text(PROGRAM)
    return tmp_path


@pytest.mark.parametrize("name", STRANDING)
def test_a_handler_that_tells_something_else_strands_its_sessions(folder: Path, name: str) -> None:
    """They say which handler does what, nothing of them changes, and a branch goes on before that."""
    run = play(folder, call_often, "main.koi")
    before, after, why = STRANDING[name]
    changed(folder, before, after)

    async def scenario(host: SessionHost) -> None:
        session = host.find(run, ADMIN)
        kept = session.feed.journal.read_bytes()
        refused = await session.handle({"type": "run_playbook", "name": "Till.order", "args": {"pieces": 3}})
        assert "program_changed" == refused.get("error_code"), refused
        assert f"the program has changed since: `Till.order` {why}" in refused["error"].replace(" now ", " ")
        assert kept == session.feed.journal.read_bytes()
        branch, _ = await host.branch(session, ADMIN, None, None)
        await called(branch, "Till.note", n=3)
        assert 3 == await total(branch)

    play(folder, scenario, "main.koi")


@pytest.mark.parametrize("name", FITTING)
def test_a_handler_that_tells_the_same_goes_on(folder: Path, name: str) -> None:
    """Its sessions have the state and the results that they had, twice."""
    run = play(folder, call_often, "main.koi")
    changed(folder, *FITTING[name])
    for count in (17, 21):

        async def scenario(host: SessionHost, count: int = count) -> None:
            session = host.find(run, ADMIN)
            await called(session, "Till.order", pieces=4)
            assert {"total": count, "note": 1} == await total(session)

        play(folder, scenario, "main.koi")


def test_a_client_reads_what_a_handler_does_now(start_service: Callable[..., ServiceProcess], folder: Path) -> None:
    """The service started again answers with 409 and the reason, and listing the session shows what it had told."""
    service = start_service(main=PROGRAM)
    run = service.begin(handler="Till.order", payload={"pieces": 4})
    service.wait_for_state(run, "idle")
    service.end()
    changed(folder, "+= args.pieces", "-= args.pieces")
    service.start()
    body = {"handler": "Till.order", "payload": {"pieces": 3}}
    refused = service.request("POST", f"api/runs/{run}/calls?wait=10", body)
    why = "the program has changed since: `Till.order` now returns something else than before"

    assert (409, "program_changed", why) == (
        refused.status_code,
        refused.json()["code"],
        refused.json()["message"],
    )
    assert {"total": 4, "note": 1} == service.get(f"api/runs/{run}")["result"]


def test_a_permission_stays_open_in_a_branch(folder: Path) -> None:
    """Also in a branch that was made after a change, when that is begun again: nobody has allowed it yet."""
    (folder / "main.koi").write_text(
        "role Clerk { can execute }\nagent Till : Clerk {\n"
        '  on list() { return (await callAction("shell", { command: "ls", description: "to see" })).exitCode }\n}\n'
    )

    async def ask(host: SessionHost) -> str:
        session = await begin(host, "Till.list")
        await until(session, "waiting")
        return session.id

    run = play(folder, ask, "main.koi")
    (folder / "main.koi").write_text("// The till.\n" + (folder / "main.koi").read_text())

    async def branch(host: SessionHost) -> str:
        session = host.find(run, ADMIN)
        await data(session, "get_state")
        made, _ = await host.branch(session, ADMIN, None, None)
        await until(made, "waiting")
        return made.id

    made = play(folder, branch, "main.koi")

    async def look(host: SessionHost) -> list[str]:
        session = host.find(made, ADMIN)
        await data(session, "get_state")
        await until(session, "waiting")
        return [request["type"] for request in session.feed.requests]

    assert ["approval_request"] == play(folder, look, "main.koi")


OPEN = {
    "line": ('"asking"', '"wondering"', "prints something else than before"),
    "no line": ('console.log("asking")', "", "no longer prints where it did"),
    "end": ("said.answer,", "said.answer + '!',", ""),
}


@pytest.mark.parametrize("name", OPEN)
def test_a_call_under_way_has_to_come_where_it_was(folder: Path, name: str) -> None:
    """What it had told is told again; behind that it may do something else."""

    async def ask(host: SessionHost) -> tuple[str, str]:
        session = await begin(host, "Till.ask", pieces=1)
        await until(session, "waiting")
        return session.id, session.feed.requests[0]["id"]

    run, request = play(folder, ask, "main.koi")
    before, after, why = OPEN[name]
    changed(folder, before, after)

    async def answer(host: SessionHost) -> None:
        session = host.find(run, ADMIN)
        kept = session.feed.journal.read_bytes()
        await session.handle({"type": "answer", "request": request, "answer": "red"})
        if not why:
            await until(session, "idle")
            assert ({"said": "red!", "count": 1}, ["asking"]) == (await total(session), printed(session))
            return
        if session.is_awake:  # the call has been begun again, and ends where it does something else
            await until(session, "asleep", "failed")
        refused = await session.handle({"type": "get_state"})
        assert f"`Till.ask` {why}" in refused.get("error", "").replace(" now ", " "), refused
        assert kept == session.feed.journal.read_bytes()

    play(folder, answer, "main.koi")
