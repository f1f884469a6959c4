"""What clients can rely on: a code for each refusal, nothing half done, and what may be asked while work goes on."""

from __future__ import annotations

import asyncio
import os
import typing
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from koi_lang.errors import KoiError
from koi_lang.rpc.commands import all_commands, command_of
from koi_lang.sessions.errors import Code, SessionError
from tests.playbook.playing import act, done
from tests.rpc.processes import alive, are_gone
from tests.rpc.talking import FOREIGN, Talk, Talker

PROGRAM = '''
role Worker { can execute }
agent Main : Worker {
  private on hidden(args) { playbook "Hide." }
  on go(args: Json) { playbook """Do the work.""" }
  on more(args: Json) { playbook """Do more.""" }
  on sum(args: { a: number, b: number }) { return args.a + args.b }
}
'''
Message = Mapping[str, Any]
Before = Callable[[Talk], Awaitable[None]]


async def nothing(client: Talk) -> None:
    """Before a session that has done nothing."""


async def busy(client: Talk) -> None:
    """A call is under way: its model thinks."""
    await client.data("prompt", message="x", name="Main.go")
    await client.asked(1)


async def over(client: Talk) -> None:
    """The run of the session has failed."""
    with suppress(asyncio.CancelledError):
        client.dispatcher.session.run.halt(KoiError("broken"))
    await client.until("session_failed")


REFUSALS: list[tuple[str, Message, Before]] = [
    ("agent_busy", {"type": "prompt", "message": "y"}, busy),
    ("extension_command_not_handled", {"type": "extension_command", "name": "nope"}, nothing),
    ("compaction_failed", {"type": "compact"}, nothing),
    ("bad_image", {"type": "prompt", "message": "y", "name": "Main.go", "images": ["x"]}, nothing),
    ("bad_image", {"type": "steer", "message": "y", "images": [{"data": "aGk="}]}, busy),
    ("invalid_request", {}, nothing),
    ("invalid_request", {"type": 3}, nothing),
    ("invalid_request", {"type": "get_state", "id": [1]}, nothing),
    ("invalid_request", {"type": "steer"}, nothing),
    ("invalid_request", {"type": "steer", "message": 1}, nothing),
    ("invalid_request", {"type": "steer", "message": "  "}, nothing),
    ("invalid_request", {"type": "steer", "mesage": "y"}, nothing),
    ("invalid_request", {"type": "abort", "now": True}, nothing),
    ("invalid_request", {"type": "prompt", "message": "y"}, nothing),
    ("invalid_request", {"type": "run"}, nothing),
    ("invalid_request", {"type": "run_playbook", "name": "Main.sum", "args": {"a": 1}}, nothing),
    ("invalid_request", {"type": "set_steering_mode", "mode": "some"}, nothing),
    ("invalid_request", {"type": "answer", "request": "request-1"}, nothing),
    ("invalid_request", {"type": "get_entries", "limit": 0}, nothing),
    ("model_unavailable", {"type": "set_model", "model": "bad/one"}, nothing),
    ("nothing_to_continue", {"type": "continue"}, nothing),
    ("session_not_found", {"type": "resume_session", "session": "x"}, nothing),
    ("session_not_trusted", {"type": "resume_session", "session": FOREIGN}, nothing),
    ("session_over", {"type": "prompt", "message": "y", "name": "Main.go"}, over),
    ("session_over", {"type": "get_state"}, over),
    ("unknown_agent", {"type": "steer", "message": "y", "agent": "Mein"}, nothing),
    ("unknown_agent", {"type": "run_playbook", "name": "Nobody.go"}, nothing),
    ("unknown_command", {"type": "promt"}, nothing),
    ("unknown_handler", {"type": "run_playbook", "name": "Main.went"}, nothing),
    ("unknown_handler", {"type": "run_playbook", "name": "Main.hidden"}, nothing),
    ("unknown_request", {"type": "approve", "request": "request-9", "decision": "yes"}, nothing),
    ("unknown_request", {"type": "take_back", "note": 7}, nothing),
]


@pytest.mark.parametrize(("code", "message", "before"), REFUSALS)
def test_refusals_have_codes(talk: Talker, code: str, message: Message, before: Before) -> None:
    """Each kind of refusal is told apart by its code and told in words; nothing happens."""

    async def test(client: Talk) -> None:
        await before(client)
        count = len(client.messages)
        response = await client.dispatcher.handle({"id": 5, **message}, client.take)

        assert (False, code) == (response["success"], response["error_code"])
        assert [response] == client.messages[count:]
        assert response["error"].rstrip(".") == response["error"] != ""

    talk(PROGRAM, test)


def test_a_session_without_journal_has_no_entries(talk: Talker) -> None:
    """What is not recorded cannot be asked for, and the code says so."""

    async def test(client: Talk) -> None:
        assert ["no_journal", "no_journal"] == [await client.code("get_entries"), await client.code("get_tree")]
        assert (await client.data("session_info"))["journal"] is None

    talk(PROGRAM, test, recorded=False)


def test_every_code_is_tested() -> None:
    """The codes of the protocol are those that tests provoke."""
    elsewhere = {"parse_error", "line_too_long", "no_journal", "failed", "admins_only"}

    assert set(typing.get_args(Code)) == {code for code, _, _ in REFUSALS} | elsewhere


def test_what_breaks_a_command_leaves_the_session(talk: Talker, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that no command expects is a response with a code; the next command works."""

    async def test(client: Talk) -> None:
        monkeypatch.setattr(client.dispatcher.session.choice, "name", lambda: 1 / 0)
        assert "failed" == await client.code("get_state")
        monkeypatch.undo()

        assert (await client.ask("get_state"))["success"]

    talk(PROGRAM, test)


# ---------------------------------------------------------------- while work goes on

IDLE: Mapping[str, Message] = {
    "run_playbook": {"name": "Main.sum", "args": {"a": 1, "b": 2}},
    "run": {},
    "new_session": {},
    "resume_session": {"session": "x"},
    "branch": {"entry": 1},
    "set_model": {"model": "good/one"},
    "set_thinking_level": {"level": "low"},
    "set_plan_mode": {"on": True},
    "set_session_name": {"name": "x"},
    "compact": {},
    "extension_command": {"name": "x"},
}


@pytest.mark.parametrize("name", ["prompt", "continue", *IDLE])
def test_some_commands_wait_for_the_end(talk: Talker, name: str) -> None:
    """While a call is under way they are refused, and nothing has changed."""

    async def test(client: Talk) -> None:
        await busy(client)
        before = await client.data("get_state")
        assert "agent_busy" == await client.code(name, **{"prompt": {"message": "y"}, **IDLE}.get(name, {}))
        assert before == await client.data("get_state")
        client.answer(done(n=1))

        assert {"n": 1} == (await client.until("call_ended"))["result"]

    talk(PROGRAM, test)


def test_which_commands_wait_is_told() -> None:
    """The list of commands says which are refused while a call is under way."""
    assert set(IDLE) == {each.name for each in all_commands() if each.as_data()["idle"]}


def test_everything_else_is_answered_while_work_goes_on(talk: Talker) -> None:
    """Looking at the session, talking to it and setting its modes are possible at any time."""
    fields: dict[str, Message] = {
        "steer": {"message": "x"},
        "follow_up": {"message": "x"},
        "send_to": {"agent": "Main", "text": "x"},
        "set_steering_mode": {"mode": "one"},
        "set_follow_up_mode": {"mode": "one"},
    }
    others = {"prompt", "continue", "approve", "answer", "quit", "abort", *IDLE}

    async def test(client: Talk) -> None:
        await busy(client)
        for name in {each.name for each in all_commands()} - others:
            assert (await client.ask(name, **fields.get(name, {})))["success"], name

    talk(PROGRAM, test)


@pytest.mark.parametrize("grace_s", [0.0, 5.0])
def test_quit_ends_what_is_under_way(talk: Talker, grace_s: float) -> None:
    """What is over in time has its result; the rest is cancelled."""

    async def test(client: Talk) -> None:
        await busy(client)
        if grace_s:
            client.answer(done(n=1))
        assert bool(grace_s) == await client.dispatcher.session.finish(grace_s)

        ended = client.events("call_ended")[0]
        assert (bool(grace_s), "run_ended") == (ended["ok"], client.events()[-1]["type"])

    talk(PROGRAM, test)


def test_background_work_does_not_hold_up_the_end(talk: Talker) -> None:
    """A timer that a handler has left behind is ended with the session."""
    source = "role W { can execute }\nagent Main : W { on go(args) { setInterval(() => {}, 1000); return 1 } }"

    async def test(client: Talk) -> None:
        await client.data("run_playbook", name="Main.go")
        await client.until("call_ended")

        assert not await client.dispatcher.session.finish(0.05)

    talk(source, test)


def test_an_aborted_command_ends_with_all_it_started(talk: Talker, tmp_path: Path) -> None:
    """The process of a shell action and its children are gone after `abort`."""
    pipe = tmp_path / "pids"
    os.mkfifo(pipe)
    command = f"sleep 600 & echo $$ $! > {pipe}; wait"

    async def test(client: Talk) -> None:
        client.answer(act("shell", command=command, description="to wait"))
        await client.data("prompt", message="x", name="Main.go")
        pids = [int(pid) for pid in (await asyncio.to_thread(pipe.read_text)).split()]
        assert [True, True] == [alive(pid) for pid in pids]
        await client.data("abort")

        assert await asyncio.to_thread(are_gone, pids)  # the loop may still have to end them

    talk(PROGRAM, test, allow=["shell"])


def test_a_misspelt_name_gets_a_suggestion() -> None:
    """The refusal of an unknown command or field says what was probably meant."""
    with pytest.raises(SessionError) as refused:
        command_of({"type": "follow_upp"})

    assert "did you mean `follow_up`?" == refused.value.help
