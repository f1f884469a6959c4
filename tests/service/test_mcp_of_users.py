"""Calls of users at `/mcp` of a service: hosted sessions with their owners, limits, files and the watchdog."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, types
from mcp.client.streamable_http import streamable_http_client

from koi_lang.mcp_server import http as mcp_http
from koi_lang.mcp_server.call import CallSucceeded
from koi_lang.runtime.mcp.transport import SESSION_HANDLE
from koi_lang.service import host as hosts
from koi_lang.service.host import SessionHost
from koi_lang.service.watchdog import Watchdog
from koi_lang.system.certificates import certificates
from koi_lang.web.hosted_mcp import HostedClient
from tests.limits import LIMIT_S
from tests.playbook.playing import done
from tests.service.hosting import ADMIN, begin, hosted_in, until
from tests.service.serving_here import served_here
from tests.service.serving_process import ServiceProcess
from tests.service.user_tokens import SETTINGS, TOKENS, as_user
from tests.serving import modern
from tests.serving.conftest import AUTHORIZED, INITIALIZE
from tests.serving.test_documents import OLDER

DESK = '''
import "std/files"
role Worker { can think, can write, can execute }
prompt Greet(name: string) = """Greet {{name}}."""
agent Desk : Worker {
  expose mcp { resource "desk://count" = counted }
  amnesia = true
  state { count: number = 0 }
  on think(args: { topic: string }) { playbook """Say something.""" }
  on add(args: { n: number }) { this.state.count += args.n  console.log("adding")  return { count: this.state.count } }
  on store(args: { text: string }) { await writeFile("note.txt", args.text)  return "stored" }
  on look(args: Json) { return await listFiles("**") }
  on choose(args: Json) {
    const asked = await callAction("prompt_user", { question: "Which?", options: ["a", "b"] })
    return "it is " + asked.answer
  }
  on print(args: Json) { return (await callAction("shell", { command: "echo a", description: "to see" })).stdout }
  on fail(args: Json) { throw new Error("torn") }
  on wait(args: Json) { await new Promise(resolve => setTimeout(resolve, 3600000)) }
  on spin(args: Json) { let i = 0; while (true) { i = i + 1 } }
  private on counted() { return { count: this.state.count } }
}
'''
LIMITS = "[serve.limits]\ntokens_per_user = 1500\nsessions_per_user = 5\n"
TASKS = "io.modelcontextprotocol/tasks"
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
Scenario = Callable[[Client], Awaitable[Any]]


@asynccontextmanager
async def connected(url: str, user: str, **about: Any) -> AsyncIterator[Client]:
    """A client of a user, of the protocols with sessions unless `mode` says otherwise."""
    about = {"mode": "legacy", **about}
    async with (
        httpx2.AsyncClient(
            headers={"Authorization": f"Bearer {TOKENS[user]}"}, timeout=LIMIT_S, verify=certificates()
        ) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http), **about) as client,
    ):
        yield client


def play(service: ServiceProcess, user: str, scenario: Scenario, **about: Any) -> Any:
    """What a scenario gives with a client of a user."""

    async def connect() -> Any:
        async with asyncio.timeout(LIMIT_S), connected(service.url, user, **about) as client:
            return await scenario(client)

    return asyncio.run(connect())


def call(service: ServiceProcess, user: str, tool: str, **arguments: Any) -> types.CallToolResult:
    """The result of a tool in a session of its own."""
    result: types.CallToolResult = play(service, user, lambda client: client.call_tool(tool, arguments))
    return result


def text(result: types.CallToolResult) -> str:
    """The only text of a result."""
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    return content.text


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """A service with users, who have limits."""
    folder = tmp_path_factory.mktemp("mcp")
    (folder / "koi.toml").write_text(SETTINGS + LIMITS)
    (folder / "desk.koi").write_text(DESK)
    (folder / "answers.json").write_text(json.dumps({"Say something": [done(ok=True)] * 100}))
    service = ServiceProcess(folder, ("desk.koi", "--answers", "answers.json"))
    service.start()
    yield service
    service.end()


def test_calls_are_runs_of_their_user(desk: ServiceProcess) -> None:
    """The calls of a client are one run, which its user sees in the list, and nobody else."""

    async def add_twice(client: Client) -> list[Any]:
        return [(await client.call_tool("add", {"n": n})).structured_content for n in (2, 3)]

    assert [{"count": 2}, {"count": 5}] == play(desk, "ada", add_twice)
    runs = as_user(desk, "ada").get("api/runs")["runs"]
    (run,) = [each for each in runs if each["title"] == "add (MCP)"]

    assert ("ada", "desk") == (run["owner"], run["program"])
    assert (desk.folder / ".koi/runs" / f"{run['id']}.jsonl").exists()
    assert run["id"] not in [each["id"] for each in as_user(desk, "bob").get("api/runs")["runs"]]


def test_tokens_count_for_the_user(desk: ServiceProcess) -> None:
    """A dozen calls take no more than the user may, and what they took is in the costs."""
    results = [call(desk, "eve", "think", topic="tea") for _ in range(12)]
    costs = as_user(desk, "root").get("api/cost?by=user")

    assert "the user `eve` has used" in text(results[-1])
    (taken,) = [each["tokens"] for each in costs["groups"] if each["user"] == "eve"]
    assert 0 < taken <= 1500


def test_files_are_those_of_the_session(desk: ServiceProcess) -> None:
    """What a call writes is in the folder of its own session."""

    async def store(client: Client) -> Any:
        await client.call_tool("store", {"text": "of ada"})
        return text(await client.call_tool("look", {}))

    assert '["note.txt"]' == play(desk, "ada", store)
    assert "[]" == text(call(desk, "bob", "look"))
    assert not (desk.folder / "note.txt").exists()


def test_a_session_is_that_of_its_user(desk: ServiceProcess) -> None:
    """With the token of another user the id of a session is one that does not exist."""

    def post(user: str, body: Any, **headers: str) -> httpx2.Response:
        shown = {**AUTHORIZED, "Authorization": f"Bearer {TOKENS[user]}"}
        return httpx2.post(
            f"{desk.url}/mcp", json=body, headers={**shown, **headers}, timeout=LIMIT_S, verify=certificates()
        )

    opened = post("ada", {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE})
    own = {"Mcp-Session-Id": opened.headers["mcp-session-id"]}
    foreign, unknown = post("bob", PING, **own), post("ada", PING, **{"Mcp-Session-Id": "0" * 32})

    assert 200 == post("ada", PING, **own).status_code
    assert (404, foreign.text) == (foreign.status_code, unknown.text)


def test_open_sessions_count_per_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever opens all that one may have locks nobody else out."""
    monkeypatch.setattr(mcp_http, "MAX_SESSIONS", 20)
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE}

    async def open_all(url: str, user: str, number: int) -> list[int]:
        headers = {**AUTHORIZED, "Authorization": f"Bearer {TOKENS[user]}"}
        async with httpx2.AsyncClient(headers=headers, timeout=LIMIT_S) as client:
            return [(await client.post(f"{url}/mcp", json=body)).status_code for _ in range(number)]

    async def scenario(url: str) -> tuple[list[int], list[int]]:
        return await open_all(url, "ada", 21), await open_all(url, "bob", 1)

    assert ([*[200] * 20, 503], [200]) == asyncio.run(served_here(tmp_path, DESK, scenario))


def test_errors_are_those_of_the_program(desk: ServiceProcess) -> None:
    """A handler that fails has the result say so, for an admin with the place."""
    results = [call(desk, name, "fail") for name in ("ada", "root")]

    assert [True, True] == [result.is_error for result in results]
    assert "torn" == text(results[0])
    assert "desk.koi:" in text(results[1])


def test_questions_go_to_the_client(desk: ServiceProcess) -> None:
    """A client that can ask its person answers; what happens is progress and log."""
    lines: list[Any] = []

    async def answer(context: Any, asked: types.ElicitRequestFormParams) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"answer": "b"})

    async def log(params: types.LoggingMessageNotificationParams) -> None:
        lines.append(params.data)

    async def scenario(client: Client) -> str:
        await client.call_tool("add", {"n": 1})
        return text(await client.call_tool("choose", {}))

    about = {"elicitation_callback": answer, "logging_callback": log}
    assert "it is b" == play(desk, "ada", scenario, **about)
    assert "adding" in lines


def test_questions_of_others_wait_for_their_user(desk: ServiceProcess) -> None:
    """Where the client cannot ask, the user answers by the API or the page."""
    ada = as_user(desk, "ada")

    async def answer(params: types.LoggingMessageNotificationParams) -> None:
        assert str(params.data).startswith("Which? This waits until you answer it")
        (run,) = (await asyncio.to_thread(ada.get, "api/runs?state=waiting"))["runs"]
        (request,) = (await asyncio.to_thread(ada.get, f"api/runs/{run['id']}"))["open"]
        await asyncio.to_thread(ada.command, run["id"], "answer", request=request["id"], answer="a")

    result = play(desk, "ada", lambda client: client.call_tool("choose", {}), logging_callback=answer)
    assert "it is a" == text(result)


def test_what_needs_approval_waits_for_the_user(desk: ServiceProcess) -> None:
    """The client is told so, also one that can ask its person; the user allows it on the page or by the API."""
    ada = as_user(desk, "ada")

    async def answer(context: Any, asked: types.ElicitRequestFormParams) -> types.ElicitResult:
        raise AssertionError("a client has no say about what is done on this machine")

    async def approve(params: types.LoggingMessageNotificationParams) -> None:
        if "This waits until you answer it" in str(params.data):
            (run,) = (await asyncio.to_thread(ada.get, "api/runs?state=waiting"))["runs"]
            (request,) = (await asyncio.to_thread(ada.get, f"api/runs/{run['id']}"))["open"]
            await asyncio.to_thread(ada.command, run["id"], "approve", request=request["id"], decision="yes")

    about = {"logging_callback": approve, "elicitation_callback": answer}
    assert "a" == text(play(desk, "ada", lambda client: client.call_tool("print", {}), **about)).strip()


def test_a_request_that_is_cancelled_ends_its_call(desk: ServiceProcess) -> None:
    """The session is idle behind it, and takes the next call."""

    async def scenario(client: Client) -> Any:
        begun = asyncio.Event()

        async def note(*about: Any) -> None:
            begun.set()

        calling = asyncio.create_task(client.call_tool("wait", {}, progress_callback=note))
        await begun.wait()
        calling.cancel()
        return (await client.call_tool("add", {"n": 4})).structured_content

    assert {"count": 4} == play(desk, "ada", scenario)


@OLDER
def test_documents_and_prompts(desk: ServiceProcess) -> None:
    """Handlers make documents in the same session, and declared prompts are rendered in it."""
    updates: list[str] = []

    async def hear(message: Any) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            updates.append(str(message.params.uri))

    async def scenario(client: Client) -> tuple[Any, Any]:
        await client.subscribe_resource("desk://count")
        await client.call_tool("add", {"n": 7})
        read = await client.read_resource("desk://count")
        prompt = await client.get_prompt("Greet", {"name": "Ada"})
        return read.contents[0], prompt.messages[0].content

    document, prompt = play(desk, "ada", scenario, message_handler=hear)
    assert '{"count": 7}' == document.text
    assert "Greet Ada." == prompt.text
    assert ["desk://count"] == updates


def test_a_session_wakes_where_it_was(start_service: Callable[..., ServiceProcess], tmp_path: Path) -> None:
    """Documents, prompts and calls without arguments are gone over when the session goes on after a kill."""
    (tmp_path / "koi.toml").write_text(SETTINGS)
    service = start_service(desk=DESK)

    async def scenario(client: Client) -> None:
        await client.get_prompt("Greet", {"name": "Ada"})
        await client.call_tool("add", {"n": 7})
        await client.read_resource("desk://count")
        await client.call_tool("look", {})

    play(service, "ada", scenario)
    service.end(signal.SIGKILL)
    service.start()
    ada = as_user(service, "ada")
    (run,) = [each["id"] for each in ada.get("api/runs")["runs"]]
    ada.command(run, "run_playbook", name="Desk.add", args={"n": 1})
    ended = ada.follow_until(run, lambda message: message.get("event", {}).get("result") == {"count": 8})

    assert ended[-1][1]["event"]["type"] in ("handler_ended", "call_ended")


def test_a_program_that_is_loaded_anew(start_service: Callable[..., ServiceProcess], tmp_path: Path) -> None:
    """Clients see its tools at once; a session that there was stays with the program that it was begun with."""
    (tmp_path / "koi.toml").write_text(SETTINGS)
    service = start_service(desk=DESK)

    async def scenario(client: Client) -> Any:
        await client.call_tool("add", {"n": 7})
        (tmp_path / "desk.koi").write_text(DESK.replace("on look(", "on browse("))
        assert 200 == (await asyncio.to_thread(service.request, "POST", "api/reload")).status_code
        tools = [tool.name for tool in (await client.list_tools()).tools]
        return tools, await client.call_tool("browse", {}), (await client.call_tool("add", {"n": 1})).structured_content

    tools, browsed, added = play(service, "ada", scenario)
    assert ("browse" in tools, "look" in tools, browsed.is_error, added) == (True, False, True, {"count": 8})
    assert "has no handler for `browse`" in text(browsed)
    assert "[]" == text(call(service, "ada", "browse"))


def test_sources_are_for_admins(desk: ServiceProcess) -> None:
    """Other users do not see the text of the program, as on the pages."""

    async def list_all(client: Client) -> list[str]:
        return [str(each.uri) for each in (await client.list_resources()).resources]

    assert ["desk://count"] == play(desk, "ada", list_all)
    assert "koi://source/desk.koi" in play(desk, "root", list_all)


def test_what_computes_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A handler that never waits is ended by the watchdog; its client is told why, and others are answered."""
    monkeypatch.setattr(hosts, "Watchdog", partial(Watchdog, max_s=0.1))

    async def scenario(url: str) -> tuple[types.CallToolResult, Any]:
        async with connected(url, "ada") as ada, connected(url, "bob") as bob:
            spun = await ada.call_tool("spin", {})
            return spun, (await bob.call_tool("add", {"n": 1})).structured_content

    spun, added = asyncio.run(served_here(tmp_path, DESK, scenario))
    assert (True, {"count": 1}) == (spun.is_error, added)
    assert "`Desk.spin` was ended: it computed for 0." in text(spun)


def post(service: ServiceProcess, user: str, method: str, *extensions: str, **params: Any) -> Any:
    """What is answered to one request without a session, of a client that can ask and knows some extensions."""
    able: dict[str, Any] = {"elicitation": {}, "extensions": {name: {} for name in extensions}}
    headers = {"Authorization": f"Bearer {TOKENS[user]}"}
    return modern.post(f"{service.url}/mcp", headers, method, able, **params)[1]


def test_requests_without_sessions(desk: ServiceProcess) -> None:
    """Each is a run of its own, unless it brings the handle of one that its user may see."""
    first = post(desk, "bob", "tools/call", name="add", arguments={"n": 2}, meta={SESSION_HANDLE: ""})
    handle = first["_meta"][SESSION_HANDLE]
    again = {"name": "add", "arguments": {"n": 3}, "meta": {SESSION_HANDLE: handle}}
    second = post(desk, "bob", "tools/call", **again)
    alone = post(desk, "bob", "tools/call", name="add", arguments={"n": 3})

    assert [2, 5, 3] == [each["structuredContent"]["count"] for each in (first, second, alone)]
    assert handle in [each["id"] for each in as_user(desk, "bob").get("api/runs")["runs"]]
    assert types.INVALID_PARAMS == post(desk, "ada", "tools/call", **again)["code"]


def test_a_question_outlives_its_service(start_service: Callable[..., ServiceProcess], tmp_path: Path) -> None:
    """A client that was asked by a service that was killed then brings the answer to the one that was started again."""
    (tmp_path / "koi.toml").write_text(SETTINGS)
    service = start_service(desk=DESK)
    asked = post(service, "ada", "tools/call", name="choose", arguments={})
    ((key, request),) = asked["inputRequests"].items()
    service.end(signal.SIGKILL)
    service.start()

    answers = {key: {"action": "accept", "content": {"answer": "b"}}}
    back = {"name": "choose", "arguments": {}, "requestState": asked["requestState"], "inputResponses": answers}
    refused = post(service, "bob", "tools/call", **back)
    done = post(service, "ada", "tools/call", **back)
    once_more = post(service, "ada", "tools/call", **back)

    assert "Which?" == request["params"]["message"]
    assert (types.INVALID_PARAMS, "it is b") == (refused["code"], done["content"][0]["text"])
    assert done["content"] == once_more["content"], "the end of a call is told as often as somebody asks"
    (run,) = as_user(service, "ada").get("api/runs")["runs"]
    assert run["state"] in ("idle", "asleep")


def test_a_task_outlives_its_service(start_service: Callable[..., ServiceProcess], tmp_path: Path) -> None:
    """A long call goes on when the service is started again, asks, and is answered by an update."""
    (tmp_path / "koi.toml").write_text(SETTINGS)
    long = """
      on brew(args: Json) {
        await new Promise(resolve => setTimeout(resolve, 1500))
        return (await callAction("prompt_user", { question: "Sugar?" })).answer
      }
      private on counted"""
    service = start_service(desk=DESK.replace("private on counted", long, 1))
    task = post(service, "ada", "tools/call", TASKS, name="brew", arguments={})["taskId"]
    service.end(signal.SIGKILL)
    service.start()

    def state(*wanted: str) -> Any:
        while True:
            found = post(service, "ada", "tasks/get", TASKS, taskId=task)
            if found.get("status") in wanted:
                return found

    asked = state("input_required")
    (key,) = asked["inputRequests"]
    answers = {key: {"action": "accept", "content": {"answer": "two"}}}
    assert types.INVALID_PARAMS == post(service, "bob", "tasks/get", TASKS, taskId=task)["code"]
    assert "complete" == post(service, "ada", "tasks/update", TASKS, taskId=task, inputResponses=answers)["resultType"]
    assert "two" == state("completed")["result"]["content"][0]["text"]
    assert types.INVALID_PARAMS == post(service, "ada", "tasks/get", TASKS, taskId=f"{task}0")["code"]


def test_a_task_is_cancelled(desk: ServiceProcess) -> None:
    """Its call is ended in the run of the user."""
    task = post(desk, "ada", "tools/call", TASKS, name="wait", arguments={})["taskId"]
    post(desk, "ada", "tasks/cancel", TASKS, taskId=task)

    first, second = (post(desk, "ada", "tasks/get", TASKS, taskId=task) for _ in range(2))
    assert "cancelled" == first["status"]
    assert first == second, "looking at it is no change of it"


def test_an_answer_may_be_quicker_than_the_service(tmp_path: Path) -> None:
    """A client brings its answer to a service that has just started, and not come to the call that was killed yet."""
    (tmp_path / "desk.koi").write_text(DESK)

    async def ask(host: SessionHost) -> tuple[str, str]:
        session = await begin(host, "Desk.choose")
        await until(session, "waiting")
        assert session.call is not None
        return session.id, session.call.id

    async def answer(host: SessionHost, session: str, id: str) -> Any:
        async with asyncio.TaskGroup() as group:
            client = HostedClient(host, ADMIN, "desk", group, session)
            call = await client.rejoin(id)
            while not call.questions:
                call.take(await call.news.get())
            call.answer({key: {"answer": "b"} for key in call.questions})
            while call.outcome is None:
                call.take(await call.news.get())
            return call.outcome

    session, id = asyncio.run(hosted_in(tmp_path, ask, "desk.koi"))
    outcome = asyncio.run(hosted_in(tmp_path, lambda host: answer(host, session, id), "desk.koi"))

    assert CallSucceeded("it is b") == outcome
