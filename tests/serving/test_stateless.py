"""The protocol of 2026-07-28 over HTTP: requests without sessions, handles, questions as results, and tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from mcp import types
from mcp.shared.exceptions import MCPError

from tests.serving import modern
from tests.serving.conftest import AUTHORIZED, Listening, Place, listening, over_http, text

HANDLE, TASKS = "koi-lang/session", "io.modelcontextprotocol/tasks"
PROGRAM = """
role Worker { can execute }
agent Desk : Worker {
  expose mcp
  state { count: number = 0 }
  on add(args: { n: number }) { this.state.count += args.n  return { count: this.state.count } }
  on choose() {
    const asked = await callAction("prompt_user", { question: "Which?", options: ["a", "b"] })
    return "it is " + asked.answer
  }
  on brew(args: { ms: number, asks?: boolean }) {
    await this.handle("boil", args.ms)
    if (args.asks) return await this.handle("choose", {})
    return "tea"
  }
  private on boil(ms: number) { await new Promise(resolve => setTimeout(resolve, ms)) }
  on fail() { await this.handle("boil", 700)  throw new Error("torn") }
}
"""


@pytest.fixture(scope="module")
def desk(place: Place) -> Iterator[Listening]:
    """A server of a program with a state, questions and work that takes long."""
    path = place.folder / "desk.koi"
    path.write_text(PROGRAM)
    yield from listening(place, str(path), "--http", "127.0.0.1:0")


def play(
    place: Place, server: Listening, *calls: tuple[str, dict[str, Any], dict[str, Any] | None], **about: Any
) -> Any:
    """The results of calls of one client: the tool, its arguments and `_meta`."""

    async def scenario(client: Any) -> list[Any]:
        return [await client.call_tool(tool, given, meta=meta) for tool, given, meta in calls]

    return over_http(place, server, scenario, mode=modern.VERSION, **about)


def post(server: Listening, method: str, *extensions: str, **params: Any) -> Any:
    """What a server answers to one request of a client that can ask, and knows tasks unless it says otherwise."""
    able: dict[str, Any] = {"elicitation": {}, "extensions": {key: {} for key in extensions or (TASKS,)}}
    return modern.post(server.url, AUTHORIZED, method, able, **params)[1]


def ended(server: Listening, task: str) -> Any:
    """How a task stands when it does not work any more."""
    while True:
        state = post(server, "tasks/get", taskId=task)
        if state.get("status") != "working":
            return state


def test_a_call_begins_a_session_that_ends_with_it(place: Place, desk: Listening) -> None:
    """Without a handle each call meets an agent that has done nothing before, and no answer has one."""
    results = play(place, desk, ("add", {"n": 2}, None), ("add", {"n": 3}, None))

    assert [{"count": 2}, {"count": 3}] == [each.structured_content for each in results]
    assert not any(HANDLE in (each.meta or {}) for each in results)


def test_a_handle_leads_to_the_session(place: Place, desk: Listening) -> None:
    """A client that asks for a handle gets one, and comes back to the state of its agents by it."""
    (first,) = play(place, desk, ("add", {"n": 2}, {HANDLE: ""}))
    (second,) = play(place, desk, ("add", {"n": 3}, {HANDLE: first.meta[HANDLE]}))

    assert [{"count": 2}, {"count": 5}] == [first.structured_content, second.structured_content]


def test_a_handle_of_nobody_is_refused(place: Place, desk: Listening) -> None:
    """A handle that was made up leads nowhere, and to no new session either."""

    async def scenario(client: Any) -> Any:
        with pytest.raises(MCPError) as raised:
            await client.call_tool("add", {"n": 3}, meta={HANDLE: "made-up"})
        return raised.value.error

    error = over_http(place, desk, scenario, mode=modern.VERSION)

    assert (types.INVALID_PARAMS, "there is no such session or call; its time may be over") == (
        error.code, error.message
    )  # fmt: skip


def test_a_question_is_a_result(place: Place, desk: Listening) -> None:
    """A client is asked by the result of its call, and comes back with the answer."""

    async def answer(context: Any, asked: types.ElicitRequestFormParams) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"answer": "b"})

    assert "it is b" == text(play(place, desk, ("choose", {}, None), elicitation_callback=answer)[0])


def test_what_a_client_brings_back_is_its_own(desk: Listening) -> None:
    """State that was changed, or belongs to another call, is refused, and the question waits on."""
    asked = post(desk, "tools/call", name="choose", arguments={})
    state, answers = asked["requestState"], {"answer": {"action": "accept", "content": {"answer": "a"}}}
    come_back = partial(post, desk, "tools/call", arguments={}, inputResponses=answers)
    changed = state[:-1] + ("A" if state[-1] != "A" else "B")

    refused = [come_back(name="choose", requestState=changed), come_back(name="fail", requestState=state)]
    done = come_back(name="choose", requestState=state)
    assert ([types.INVALID_PARAMS] * 2, "it is a") == ([each["code"] for each in refused], done["content"][0]["text"])


def test_who_cannot_be_asked_is_told_so(desk: Listening) -> None:
    """A call that needs a person, for a client that has none, fails with what the client lacks."""
    status, error = modern.post(desk.url, AUTHORIZED, "tools/call", {}, name="choose", arguments={})

    assert (400, types.MISSING_REQUIRED_CLIENT_CAPABILITY) == (status, error["code"])
    assert {"requiredCapabilities": {"elicitation": {}}} == error["data"]


def test_what_takes_long_is_a_task(desk: Listening) -> None:
    """A client that knows tasks gets an id, and the result by it; others wait, and so does what is quick."""
    quick = post(desk, "tools/call", name="brew", arguments={"ms": 0})
    slow = post(desk, "tools/call", name="brew", arguments={"ms": 700})
    other = post(desk, "tools/call", "none", name="brew", arguments={"ms": 700})
    end = ended(desk, slow["taskId"])

    assert ["complete", "task", "complete"] == [each["resultType"] for each in (quick, slow, other)]
    assert ("working", "completed", "tea") == (slow["status"], end["status"], end["result"]["content"][0]["text"])
    assert types.MISSING_REQUIRED_CLIENT_CAPABILITY == post(desk, "tasks/get", "none", taskId=slow["taskId"])["code"]


def test_a_task_asks_and_is_answered(desk: Listening) -> None:
    """A question of a task is told with its state, and answered by an update."""
    task = post(desk, "tools/call", name="brew", arguments={"ms": 700, "asks": True})["taskId"]
    asked = ended(desk, task)
    post(desk, "tasks/update", taskId=task, inputResponses={"other": {}})
    answers = {"answer": {"action": "accept", "content": {"answer": "b"}}}
    acknowledged = post(desk, "tasks/update", taskId=task, inputResponses=answers)

    assert ("input_required", ["answer"]) == (asked["status"], list(asked["inputRequests"]))
    assert "complete" == acknowledged["resultType"]
    assert "it is b" == ended(desk, task)["result"]["content"][0]["text"]


def test_a_task_ends_by_error_or_cancellation(desk: Listening) -> None:
    """An error of the handler is its result, as without tasks; who cancels finds the task cancelled."""
    failing = post(desk, "tools/call", name="fail", arguments={})["taskId"]
    endless = post(desk, "tools/call", name="brew", arguments={"ms": 3600000})["taskId"]
    post(desk, "tasks/cancel", taskId=endless)
    end = ended(desk, failing)

    assert ("completed", True) == (end["status"], end["result"]["isError"])
    assert "torn" in end["result"]["content"][0]["text"]
    assert "cancelled" == ended(desk, endless)["status"]
    assert types.INVALID_PARAMS == post(desk, "tasks/get", taskId="no.1")["code"]


def test_an_answered_call_is_forgotten_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session in memory ends when its client does not come back, and there are never too many of them."""
    from koi_lang.mcp_server import sessions

    class Kept:
        is_kept, ended = True, 0

        def __init__(self, handle: str) -> None:
            self.handle = handle

        def leave(self) -> bool:
            return True

        def end(self) -> None:
            Kept.ended += 1

    monkeypatch.setattr(sessions, "KEEP_S", 0.01)
    monkeypatch.setattr(sessions, "MAX_KEPT", 2)
    numbers = iter(range(9))

    async def scenario() -> tuple[int, int]:
        opened = sessions.Sessions(lambda handle: Kept(str(next(numbers))))  # type: ignore[arg-type, return-value]
        for _ in range(3):
            opened.release(opened.open())
        early = Kept.ended
        await asyncio.sleep(0.05)
        return early, Kept.ended

    assert (1, 3) == asyncio.run(scenario())


def test_nothing_of_it_is_left_in_the_folder(place: Place, desk: Listening) -> None:
    """Sessions of `koi serve mcp` are in memory alone."""
    post(desk, "tools/call", name="add", arguments={"n": 1})

    assert not Path(place.folder, ".koi", "sessions").exists()
