"""Agents with `expose a2a` in a service, for the official client, and for a program of Koi."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from a2a.client import Client, ClientConfig, create_client
from a2a.helpers import get_data_parts, get_message_text, new_data_part, new_text_message
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    Message,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    TaskState,
)

from tests.limits import LIMIT_S
from tests.projects import Project
from tests.service.serving_process import TOKEN, ServiceProcess

PROGRAM = """
role Worker { can execute }
agent Clerk : Worker {
  affordance "Adds up what it is given."
  expose a2a
  state { sum: number = 0 }
  on add(args: { n: number }) { this.state.sum += args.n  return { sum: this.state.sum } }
  on chat(args: { message: string }) {
    console.log("thinking of " + args.message)
    if (args.message == "ask") {
      const asked = await callAction("prompt_user", { question: "Which?", options: ["a", "b"] })
      return "it is " + asked.answer
    }
    if (args.message == "fail") throw new Error("out of tea")
    if (args.message == "soon") await new Promise(resolve => setTimeout(resolve, 1000))
    if (args.message == "wait") await new Promise(resolve => setTimeout(resolve, 3600000))
    return "you said " + args.message
  }
  private on hidden(args: Json) { return "secret" }
}
agent Other : Worker { on chat(args: { message: string }) { return "not exposed" } }
"""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """A service with one exposed agent."""
    folder = tmp_path_factory.mktemp("a2a")
    (folder / "desk.koi").write_text(PROGRAM)
    process = ServiceProcess(folder, ("desk.koi",))
    process.start()
    yield process
    process.end()


@asynccontextmanager
async def connected(
    service: ServiceProcess, path: str = "/a2a/Clerk", *, streaming: bool = False
) -> AsyncIterator[Client]:
    """The official client of an agent, by its card."""
    async with httpx.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=LIMIT_S) as http:
        yield await create_client(f"{service.url}{path}", ClientConfig(streaming=streaming, httpx_client=http))


async def sent(client: Client, message: Message, *, now: bool = False) -> list[StreamResponse]:
    """What comes of a message."""
    configuration = SendMessageConfiguration(return_immediately=now)
    return [
        each async for each in client.send_message(SendMessageRequest(message=message, configuration=configuration))
    ]


def text(words: str, context: str = "", task: str = "") -> Message:
    """A message with a text."""
    return new_text_message(words, context_id=context or None, task_id=task or None, role=Role.ROLE_USER)


def test_a_card_describes_the_agent(service: ServiceProcess) -> None:
    """Its skills are the public handlers; it is where it is to be by the protocol, for those with the token."""
    card = service.get("a2a/Clerk/.well-known/agent-card.json")
    root = service.get(".well-known/agent-card.json")
    service.token = "wrong"
    refused = service.request("GET", ".well-known/agent-card.json").status_code
    service.token = TOKEN

    assert (card["name"], card["description"]) == ("Clerk", "Adds up what it is given.")
    assert [skill["id"] for skill in card["skills"]] == ["add", "chat"]
    assert card["supportedInterfaces"][0]["url"] == f"{service.url}/a2a/Clerk"
    assert (root["name"], refused) == ("Clerk", 401)


def test_a_message_becomes_a_call(service: ServiceProcess) -> None:
    """A text goes to the handler for messages, data to the one that is named; a context keeps its state."""

    async def talk() -> tuple[str, list[Any]]:
        async with connected(service) as client:
            (answer,) = await sent(client, text("tea"))
            context, sums = answer.task.context_id, []
            for n in (2, 3):
                message = Message(
                    message_id=f"m{n}", role=Role.ROLE_USER, parts=[new_data_part({"n": n})], context_id=context
                )
                message.metadata.update({"skill": "add"})
                (added,) = await sent(client, message)
                sums += get_data_parts(added.task.artifacts[0].parts)
            return answer.task.artifacts[0].parts[0].text, sums

    assert asyncio.run(talk()) == ("you said tea", [{"sum": 2.0}, {"sum": 5.0}])


def test_a_task_is_streamed(service: ServiceProcess) -> None:
    """What is printed meanwhile is told as it comes, then the result, then the end."""

    async def talk() -> list[StreamResponse]:
        async with connected(service, streaming=True) as client:
            return await sent(client, text("tea"))

    told = asyncio.run(talk())
    states = [each.status_update.status for each in told if each.HasField("status_update")]

    assert "thinking of tea" in [get_message_text(state.message) for state in states]
    assert states[-1].state == TaskState.TASK_STATE_COMPLETED
    assert [each.artifact_update.artifact.parts[0].text for each in told if each.HasField("artifact_update")] == [
        "you said tea"
    ]


def test_a_question_needs_input(service: ServiceProcess) -> None:
    """A task rests with the question, is found so, and goes on with the answer."""

    async def talk() -> tuple[Any, Any, Any]:
        async with connected(service) as client:
            (asked,) = await sent(client, text("ask"))
            found = await client.get_task(GetTaskRequest(id=asked.task.id))
            (last,) = await sent(client, text("b", asked.task.context_id, asked.task.id))
            return asked.task.status, found.status, last.task

    asked, found, last = asyncio.run(talk())

    assert asked.state == found.state == TaskState.TASK_STATE_INPUT_REQUIRED
    assert get_message_text(asked.message) == "Which? (a, b)"
    assert (last.status.state, last.artifacts[0].parts[0].text) == (TaskState.TASK_STATE_COMPLETED, "it is b")


def test_a_task_can_be_cancelled(service: ServiceProcess) -> None:
    """Its call is ended, and the session is free."""

    async def talk() -> Any:
        async with connected(service) as client:
            (begun,) = await sent(client, text("wait"), now=True)
            task = GetTaskRequest(id=begun.task.id)
            while (await client.get_task(task)).status.state != TaskState.TASK_STATE_WORKING:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            cancelled = await client.cancel_task(CancelTaskRequest(id=begun.task.id))
            (after,) = await sent(client, text("tea", begun.task.context_id))
            return cancelled.status.state, after.task.status.state

    assert asyncio.run(talk()) == (TaskState.TASK_STATE_CANCELED, TaskState.TASK_STATE_COMPLETED)


@pytest.mark.parametrize(("words", "why"), [("fail", "out of tea"), (" ", "nothing to say")])
def test_a_failure_is_one_of_the_task(service: ServiceProcess, words: str, why: str) -> None:
    """It says why."""

    async def talk() -> Any:
        async with connected(service) as client:
            (answer,) = await sent(client, text(words))
            return answer.task.status

    status = asyncio.run(talk())

    assert status.state == TaskState.TASK_STATE_FAILED
    assert why in get_message_text(status.message)


@pytest.mark.parametrize("skill", ["hidden", "nothing"])
def test_only_public_handlers_are_reached(service: ServiceProcess, skill: str) -> None:
    """Private handlers are for the program alone."""

    async def talk() -> Any:
        async with connected(service) as client:
            message = Message(message_id="m", role=Role.ROLE_USER, parts=[new_data_part({"n": 1})])
            message.metadata.update({"skill": skill})
            (answer,) = await sent(client, message)
            return answer.task.status

    status = asyncio.run(talk())

    assert status.state == TaskState.TASK_STATE_FAILED
    assert "has no skill" in get_message_text(status.message)


def test_a_request_without_a_version_is_read_by_its_method(service: ServiceProcess) -> None:
    """A method of version 1 is carried out; one of version 0.3 is refused, with the version that is spoken."""
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "tea"}]}
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
    task = service.request("POST", "a2a/Clerk", body).json()["result"]["task"]
    refused = service.request("POST", "a2a/Clerk", {**body, "method": "message/send"}).json()
    other = service.request("POST", "a2a/Clerk", body, A2A_Version="0.3").json()

    assert (task["status"]["state"], task["artifacts"][0]["parts"][0]["text"]) == (
        "TASK_STATE_COMPLETED",
        "you said tea",
    )
    assert (refused["id"], refused["error"]["code"], other["error"]["code"]) == (1, -32009, -32009)
    assert "`message/send` is no method of A2A 1.0" in refused["error"]["message"]


def test_agents_that_are_not_exposed_are_not_there(service: ServiceProcess) -> None:
    """Neither by a card nor by calls."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {}}

    assert service.request("GET", "a2a/Other/.well-known/agent-card.json").status_code == 404
    assert service.request("POST", "a2a/Other", body).status_code == 404


def test_programs_of_koi_ask_each_other(service: ServiceProcess, project: Project) -> None:
    """A member `a2a://host/a2a/Clerk` is an agent of a service, token and questions included."""
    place = service.url.removeprefix("http://")
    project.write("koi.toml", f'[http]\nallow = ["{place}"]\n[a2a.tokens]\n"{place}" = "${{DESK_TOKEN}}"\n')
    project.write(".env", f"DESK_TOKEN={TOKEN}\n")
    project.write(
        "main.koi",
        """
        role Chief { can delegate }
        team Desk { clerk: a2a://PLACE/a2a/Clerk }
        agent Lead : Chief {
          uses team Desk
          on start(args: Json) {
            console.log(await send peers.event("ask").any()({ message: "tea" }))
            console.log(await send peers.event("ask").any()({ message: "ask" }))
          }
        }
        run Lead.start({})
        """.replace("PLACE", place),
    )
    done = project.koi("run", "main.koi", stdin="a\n")

    assert done.stdout.splitlines() == ["you said tea", "it is a"], done.stderr


def test_a_restart_loses_no_context(tmp_path: Path) -> None:
    """The session of a context is found again by a process that is started later."""
    (tmp_path / "desk.koi").write_text(PROGRAM)
    process = ServiceProcess(tmp_path, ("desk.koi",))
    process.start()

    def add(n: int) -> Any:
        async def talk() -> Any:
            async with connected(process) as client:
                message = Message(
                    message_id=f"m{n}", role=Role.ROLE_USER, parts=[new_data_part({"n": n})], context_id="c1"
                )
                message.metadata.update({"skill": "add"})
                (added,) = await sent(client, message)
                return get_data_parts(added.task.artifacts[0].parts)

        return asyncio.run(talk())

    first = add(2)
    process.end(9)
    process.start()
    second = add(3)
    process.end()

    assert (first, second) == ([{"sum": 2.0}], [{"sum": 5.0}])


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[ServiceProcess]:
    """A service that a test may kill."""
    (tmp_path / "desk.koi").write_text(PROGRAM)
    process = ServiceProcess(tmp_path, ("desk.koi",))
    process.start()
    yield process
    process.end()


def begun_and_killed(service: ServiceProcess, words: str, number: int = 9) -> Any:
    """A task that has begun, in a service that was ended then and started again."""

    async def begin() -> Any:
        async with connected(service) as client:
            (begun,) = await sent(client, text(words), now=True)
            task = GetTaskRequest(id=begun.task.id)
            while (await client.get_task(task)).status.state == TaskState.TASK_STATE_SUBMITTED:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            return begun.task

    task = asyncio.run(begin())
    service.end(number)
    service.start()
    return task


def test_a_task_asks_on_after_a_restart(mortal: ServiceProcess) -> None:
    """It is found with its question, and takes the answer."""

    async def ask() -> Any:
        async with connected(mortal) as client:
            (asked,) = await sent(client, text("ask"))
            return asked.task

    async def go_on(task: Any) -> tuple[Any, Any]:
        async with connected(mortal) as client:
            found = await client.get_task(GetTaskRequest(id=task.id))
            (last,) = await sent(client, text("b", task.context_id, task.id))
            return found.status.state, last.task

    task = asyncio.run(ask())
    mortal.end(9)
    mortal.start()
    found, last = asyncio.run(go_on(task))

    assert found == TaskState.TASK_STATE_INPUT_REQUIRED
    assert (last.status.state, last.artifacts[0].parts[0].text) == (TaskState.TASK_STATE_COMPLETED, "it is b")


@pytest.mark.parametrize("number", [9, 15])
def test_a_task_at_work_is_followed_after_a_restart(mortal: ServiceProcess, number: int) -> None:
    """Who subscribes to it is told its end, by which it is found from then on."""
    task = begun_and_killed(mortal, "soon", number)

    async def follow() -> tuple[list[StreamResponse], Any, Any]:
        async with connected(mortal, streaming=True) as client:
            told = [each async for each in client.subscribe(SubscribeToTaskRequest(id=task.id))]
            listed = await client.list_tasks(ListTasksRequest(context_id=task.context_id))
            return told, listed.tasks, await client.get_task(GetTaskRequest(id=task.id))

    told, listed, found = asyncio.run(follow())

    assert told[0].task.status.state == TaskState.TASK_STATE_WORKING
    assert told[-1].status_update.status.state == TaskState.TASK_STATE_COMPLETED
    assert [each.id for each in listed] == [task.id]
    assert (found.status.state, found.artifacts[0].parts[0].text) == (
        TaskState.TASK_STATE_COMPLETED,
        "you said soon",
    )


def test_a_task_is_cancelled_after_a_restart(mortal: ServiceProcess) -> None:
    """Its call ends, so that the context takes another message."""
    task = begun_and_killed(mortal, "wait")

    async def cancel() -> Any:
        async with connected(mortal) as client:
            cancelled = await client.cancel_task(CancelTaskRequest(id=task.id))
            (after,) = await sent(client, text("tea", task.context_id))
            return cancelled.status.state, after.task.status.state

    assert asyncio.run(cancel()) == (TaskState.TASK_STATE_CANCELED, TaskState.TASK_STATE_COMPLETED)
