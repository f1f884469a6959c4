"""Requests for approval that are open at the same time: whose they are, and answers that reach the right one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from koi_lang.extensions import additions, find_extensions
from koi_lang.sessions.client_host import Client as ClientHost
from tests.playbook.playing import act, done
from tests.rpc.talking import Talk, Talker

PROGRAM = '''
role Worker { can execute, can delegate, can write }
agent Fixer : Worker { on fix(args: Json) { playbook """Fix it.""" } }
team All { fixer: Fixer }
agent Main : Worker {
  uses team All
  on go(args: Json) {
    const numbers = COUNT
    await Promise.all(numbers.map(async n => await send peers.event("fix").any()({ n })))
  }
}
'''


def program(count: int) -> str:
    """A program in which some delegates work at the same time."""
    return PROGRAM.replace("COUNT", str(list(range(count))))


def touch(number: int) -> dict[str, Any]:
    """A command that the person is asked about."""
    return act("shell", command=f"touch made-{number}", description="to see")


async def begin(client: Talk, count: int) -> list[Mapping[str, Any]]:
    """The requests of some delegates, once all of them are open."""
    await client.data("run_playbook", name="Main.go", args={})
    client.answer(*map(touch, range(count)))
    await client.until("approval_request", count)
    return list((await client.data("get_state"))["requests"])


def command_of(request: Mapping[str, Any]) -> int:
    """The number in the command that is asked about."""
    return int(str(request["what"]).strip("`").rpartition("-")[2])


@pytest.mark.parametrize("count", [2, 40])
def test_answers_that_cross_reach_the_right_request(talk: Talker, count: int) -> None:
    """Each request has an id and tells who asked whom; answers in any order count for their own alone."""

    async def test(client: Talk) -> None:
        requests = await begin(client, count)
        assert count == len({request["id"] for request in requests}) == len(requests)
        assert all(("Fixer", ["Main.go"]) == (request["agent"], request["chain"]) for request in requests)
        assert all(request["always"].startswith("`") and "preview" not in request for request in requests)
        for request in reversed(requests):
            number = command_of(request)
            given = {"decision": "yes"} if number % 2 else {"decision": "no", "reason": f"not <{number}>"}
            await client.data("approve", request=request["id"], **given)
        client.answer(*[done()] * count)
        await client.until("call_ended")

        made = {path.name for path in talk.folder.glob("made-*")}
        assert {f"made-{number}" for number in range(1, count, 2)} == made
        told = " ".join(request.messages[-1].text for request in client.model.requests[count:])
        assert all((f"not <{number}>" in told) == (number % 2 == 0) for number in range(count))
        assert "unknown_request" == await client.code("approve", request=requests[0]["id"], decision="yes")

    talk(program(count), test)


def test_a_timeout_closes_only_its_own_request(talk: Talker) -> None:
    """The other one stays open, and can be answered."""

    async def test(client: Talk) -> None:
        await client.data("run_playbook", name="Main.go", args={})
        await client.asked(2)
        client.answer(touch(0))
        first = await client.until("approval_request")
        await asyncio.sleep(2)
        client.answer(touch(1))
        second = await client.until("approval_request", 2)
        closed = await client.until("request_closed")
        assert ([second], first["id"]) == ((await client.data("get_state"))["requests"], closed["id"])
        await client.data("approve", request=second["id"], decision="yes")
        client.answer(done(), done())
        await client.until("call_ended")

        assert ["made-1"] == [path.name for path in talk.folder.glob("made-*")]

    talk(program(2), test, answer_s=4.0)


def test_a_change_is_shown_to_the_client(talk: Talker) -> None:
    """A request for a change carries the difference, and the rule of `always`."""

    async def test(client: Talk) -> None:
        await client.data("run_playbook", name="Main.go", args={})
        client.answer(act("write_file", path="src/a.txt", content="one\n"))
        request = await client.until("approval_request")
        assert ("create `src/a.txt`", "changes below `src`") == (request["what"], request["always"])
        assert request["preview"] == "--- /dev/null\n+++ b/src/a.txt\n@@ -0,0 +1,1 @@\n+one"
        await client.data("approve", request=request["id"], decision="no", reason="not here")
        client.answer(done())
        await client.until("call_ended")

        assert "the person did not allow to create `src/a.txt`: not here" in client.model.requests[1].messages[-1].text

    source = 'import "std/code"\n' + program(1)
    talk(source, test, added=additions(find_extensions(talk.player.load(source), use_installed=False)))


def test_a_request_has_the_same_id_in_another_process() -> None:
    """What is asked at a place is called the same when a session goes on, and like nothing else that is asked."""

    async def ids(*questions: str) -> list[str]:
        seen: list[str] = []
        client = ClientHost(lambda message: seen.append(str(message["id"])) if message["type"] == "question" else None)
        for question in questions:
            asking = asyncio.create_task(client.ask(question))
            await asyncio.sleep(0)
            client.settle(seen[-1], "question", "yes")
            await asking
        return seen

    first, second = asyncio.run(ids("one?", "two?", "two?")), asyncio.run(ids("two?", "one?"))

    assert (first[1], first[0], 3) == (second[0], second[1], len(set(first)))
