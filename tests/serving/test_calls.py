"""Calls of served handlers: at once, with progress, given up, failing, and asking somebody."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, types

from tests.serving.conftest import (
    AUTHORIZED,
    INITIALIZE,
    LIMIT_S,
    PROGRAM,
    Listening,
    Place,
    over_http,
    over_stdio,
    posted,
    text,
    written,
)

Play = Callable[..., Any]


def answering(*answers: str, action: Any = "accept") -> Callable[..., Any]:
    """A person at the client who gives one answer after the other."""
    left = list(answers)

    async def answer(context: Any, asked: types.ElicitRequestFormParams) -> types.ElicitResult:
        return types.ElicitResult(action=action, content={"answer": left.pop(0)} if action == "accept" else None)

    return answer


def test_ten_calls_at_once(play: Play) -> None:
    """Ten handlers wait for each other, so all are at work at the same time, and share the state of their agent."""

    async def meet(client: Client) -> Any:
        return await asyncio.gather(*(client.call_tool("meet", {"most": 10}) for _ in range(10)))

    assert ["10"] * 10 == [text(result) for result in play(meet)]


def test_the_state_lasts_as_long_as_the_session(place: Place, server: Listening) -> None:
    """Calls of one client follow each other in the same run, another client begins anew."""

    async def count(client: Client) -> Any:
        await client.call_tool("add", {"amount": 2})
        return (await client.call_tool("add", {"amount": 3})).structured_content

    assert [{"count": 5}, {"count": 5}] == [over_http(place, server, count) for _ in range(2)]


def test_two_sessions_at_the_same_time(place: Place, server: Listening) -> None:
    """Clients of one server do not see each other's state."""

    async def both(client: Client) -> Any:
        async with place.http(server.url) as other:
            results = [await each.call_tool("add", {"amount": 1}) for each in (client, other, client)]
        return [result.structured_content["count"] for result in results]

    assert [1, 1, 2] == over_http(place, server, both)


def test_progress(play: Play) -> None:
    """A client that gives a token is told of handlers, turns and actions, counted from 1."""
    told: list[tuple[float, Any]] = []

    async def work(client: Client) -> Any:
        async def note(progress: float, total: float | None, message: str | None) -> None:
            told.append((progress, message))

        return await client.call_tool("work", {"name": "Ada"}, progress_callback=note)

    assert {"greeted": "Ada"} == play(work).structured_content
    steps = ["Desk.work", "Desk thinks", "Desk: print", "Desk: return"]
    assert list(enumerate(steps, 1)) == told


def test_output_is_logged(play: Play) -> None:
    """What a program prints is told to the log of the client."""
    lines: list[tuple[str, Any]] = []

    async def add(client: Client) -> Any:
        return await client.call_tool("add", {"amount": 2})

    async def note(line: types.LoggingMessageNotificationParams) -> None:
        lines.append((line.level, line.data))

    play(add, logging_callback=note, log_level="info")

    assert [("info", "count 2")] == lines


def test_clients_are_told_of_a_rehearsal(place: Place, server: Listening) -> None:
    """That no model carries playbooks out is said in the log of the client, once in a session."""
    lines: list[Any] = []

    async def work(client: Client) -> Any:
        return [await client.call_tool("work", {"name": "Ada"}) for _ in range(2)]

    async def note(line: types.LoggingMessageNotificationParams) -> None:
        lines.append(line.data)

    over_http(place, server, work, logging_callback=note)

    rehearsal = "a rehearsal follows the explicit steps of playbooks"
    assert [rehearsal, "Hello, Ada", "Hello, Ada"] == lines


def test_nothing_is_rehearsed_unasked(place: Place) -> None:
    """Without a model a call of a playbook fails, and says how to connect one; nobody would notice a rehearsal."""

    async def work(client: Client) -> Any:
        return await client.call_tool("work", {"name": "Ada"})

    result = over_stdio(place, work, str(PROGRAM))

    assert result.is_error
    assert "no model is configured, and this is no rehearsal" in result.content[0].text
    assert "koi connect" in result.content[0].text


def test_a_client_chooses_what_is_logged(place: Place, server: Listening) -> None:
    """Lines below the level that a client has set are not sent to it."""
    lines: list[Any] = []

    async def add(client: Client) -> Any:
        await client.session.send_request(
            types.SetLevelRequest(params=types.SetLevelRequestParams(level="warning")), types.EmptyResult
        )
        return await client.call_tool("add", {"amount": 2})

    async def note(line: types.LoggingMessageNotificationParams) -> None:
        lines.append(line.data)

    assert {"count": 2} == over_http(place, server, add, logging_callback=note).structured_content
    assert [] == lines


def test_a_call_can_be_cancelled(play: Play, place: Place, tmp_path: Path) -> None:
    """A call that a client gives up ends in the server, too; what stands in `finally` is carried out."""
    note = tmp_path / "note"

    async def give_up(client: Client) -> Any:
        async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
            waiting = group.create_task(client.call_tool("wait", {"note": str(note)}))
            await asyncio.to_thread(written, note, "begun\n")
            waiting.cancel()
            await asyncio.to_thread(written, note, "begun\nended\n")
        return (await client.call_tool("shoutLoud", {"text": "still there"})).content[0]

    assert "STILL THERE" == play(give_up).text


def test_a_session_that_ends_takes_its_calls_along(place: Place, server: Listening, tmp_path: Path) -> None:
    """What a client leaves behind when it goes is cancelled."""
    note = tmp_path / "note"

    async def call(session: str) -> None:
        with suppress(httpx2.HTTPError):
            asked = {"name": "wait", "arguments": {"note": str(note)}}
            await posted(server, "tools/call", asked, Mcp_Session_Id=session)

    async def play() -> None:
        async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
            session = (await posted(server, "initialize", INITIALIZE)).headers["Mcp-Session-Id"]
            group.create_task(call(session))
            await asyncio.to_thread(written, note, "begun\n")
            async with httpx2.AsyncClient(headers=AUTHORIZED) as client:
                await client.delete(server.url, headers={"Mcp-Session-Id": session})
            await asyncio.to_thread(written, note, "begun\nended\n")

    asyncio.run(play())


def test_errors_have_the_words_of_the_terminal(place: Place, server: Listening) -> None:
    """A handler that fails gives a result that says so, with the line of the program and without a traceback."""

    async def fail(client: Client) -> Any:
        return await client.call_tool("fail", {})

    result = over_http(place, server, fail)

    assert result.is_error
    assert text(result).startswith("error: RangeError: no unicorn 🦄 [E0500]\n  --> ")
    assert "Traceback" not in text(result)


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        ("add", {"amount": "x"}, "`amount` must be a number, not 'x'"),
        ("add", {}, "`amount` is missing\n  = help: It takes (amount: number, note?: string)."),
        ("knot", {}, "Converting circular structure to JSON"),
        ("shell", {}, "nobody can be asked to allow `echo x > made.txt`"),
        ("ask", {}, "error: nobody can answer: Which? "),
        ("ask", {}, "\n   = help: Use a client that supports elicitation."),
    ],
)
def test_what_cannot_be_done(place: Place, server: Listening, tool: str, arguments: Any, told: str) -> None:
    """Wrong arguments, values that are no JSON, what nobody may allow or answer: a failed result that says why."""

    async def call(client: Client) -> Any:
        return await client.call_tool(tool, arguments)

    result = over_http(place, server, call)

    assert result.is_error
    assert told in text(result)


def test_the_person_at_the_client_is_asked(play: Play) -> None:
    """Questions reach a client that supports elicitation, one after the other.

    Over stdio it speaks the newest protocol and is asked by the result it gets, over HTTP by a request.
    """

    async def ask(client: Client) -> Any:
        return await client.call_tool("askTwice", {})

    assert '["one","two"]' == text(play(ask, elicitation_callback=answering("one", "two")))


def test_a_question_may_be_declined(place: Place, server: Listening) -> None:
    """A person who does not answer makes the action fail."""

    async def ask(client: Client) -> Any:
        return await client.call_tool("ask", {})

    result = over_http(place, server, ask, elicitation_callback=answering(action="decline"))

    assert (True, True) == (result.is_error, "the question was not answered: Which?" in text(result))


def test_options_are_choices_of_a_form(place: Place, server: Listening) -> None:
    """The form says what may be chosen, each option once."""
    forms: list[Any] = []

    async def answer(context: Any, asked: types.ElicitRequestFormParams) -> types.ElicitResult:
        forms.append(asked.requested_schema["properties"]["answer"].get("enum"))
        return types.ElicitResult(action="accept", content={"answer": "b"})

    async def ask(client: Client) -> Any:
        return await client.call_tool("ask", {"options": ["a", "b", "a"]})

    assert "b" == text(over_http(place, server, ask, elicitation_callback=answer))
    assert [["a", "b"]] == forms


def test_a_question_that_comes_too_late(play: Play) -> None:
    """A handler that waits no longer for an answer goes on, and its result reaches the client all the same."""

    async def answer(context: Any, asked: types.ElicitRequestFormParams) -> types.ElicitResult:
        await asyncio.sleep(0.2)
        return types.ElicitResult(action="accept", content={"answer": "late"})

    async def hurry(client: Client) -> Any:
        return await client.call_tool("hurry", {})

    assert "`Desk` got no answer to `ask` within 0.05 s" == text(play(hurry, elicitation_callback=answer))


def test_what_fails_behind_the_back_harms_nobody(place: Place, server: Listening) -> None:
    """Something that a handler starts and nobody waits for may fail; later calls of the session work."""

    async def leave(client: Client) -> Any:
        return [text(await client.call_tool("leave", {})) for _ in range(2)]

    assert ["left", "left"] == over_http(place, server, leave)


def test_nothing_is_run(place: Place, server: Listening) -> None:
    """The `run` statements of a program are not carried out, neither before a session nor in it."""

    async def call(client: Client) -> Any:
        return await client.call_tool("nothing", {})

    assert not over_http(place, server, call).is_error
    assert not (place.folder / "run.txt").exists()


def test_nothing_is_printed_over_http(place: Place, server: Listening) -> None:
    """What a program prints does not go to standard output."""

    async def add(client: Client) -> Any:
        return await client.call_tool("add", {"amount": 2})

    assert {"count": 2} == over_http(place, server, add).structured_content
    assert "" == server.printed.read_text("utf-8")


def test_unknown_tools(place: Place, server: Listening) -> None:
    """A tool that does not exist, or is private, is a protocol error that suggests another."""

    async def call(client: Client) -> Any:
        for name in ("ad", "hidden"):
            with pytest.raises(Exception, match=f"there is no tool `{name}`: "):
                await client.call_tool(name, {})
        return "told"

    assert "told" == over_http(place, server, call)


def test_clients_of_new_protocols_have_a_session_over_stdio(place: Place) -> None:
    """A client that knows no sessions has the process for itself, so its state lasts as long."""

    async def count(client: Client) -> Any:
        results = [await client.call_tool("add", {"amount": 1}) for _ in range(2)]
        return client.session.protocol_version, [result.structured_content["count"] for result in results]

    assert ("2026-07-28", [1, 2]) == over_stdio(place, count)


def test_a_session_that_cannot_begin(tmp_path: Path, place: Place) -> None:
    """Where the settings of the folder are broken, each call has that as its result, and the server goes on."""
    (tmp_path / ".koi-config.json").write_text("[]")
    broken = Place(tmp_path, place.cache)

    async def call(client: Client) -> Any:
        return [await client.call_tool("nothing", {}) for _ in range(2)]

    results = over_stdio(broken, call)

    assert [True, True] == [result.is_error for result in results]
    assert all(text(result).startswith("error: `.koi-config.json` holds no JSON object") for result in results)
