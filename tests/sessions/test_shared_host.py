"""Questions that are open at a host and for clients at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import pytest

from koi_lang.runtime.host import ApprovalDecision, ApprovalRequest, NobodyToAskError, SilentHost
from koi_lang.sessions.client_host import APPROVAL, QUESTION
from koi_lang.sessions.errors import SessionError
from koi_lang.sessions.shared_host import SharedHost
from tests.limits import LIMIT_S

REQUEST = ApprovalRequest("run `ls`")


class Person(SilentHost):
    """A host whose person answers when a test says so; None is that nobody does."""

    def __init__(self) -> None:
        self.answers: asyncio.Queue[str | None] = asyncio.Queue()
        self.is_asked = asyncio.Event()
        self.was_cancelled = False

    async def ask(self, question: str, options: Sequence[str] = ()) -> str:
        """Wait for the answer. Raises NobodyToAskError where there is none."""
        self.is_asked.set()
        try:
            answer = await self.answers.get()
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise
        if answer is None:
            raise NobodyToAskError("nobody")
        return answer

    async def approve(self, request: ApprovalRequest) -> ApprovalDecision:
        """Wait for the answer."""
        return ApprovalDecision("yes" if await self.ask("") == "yes" else "no")


class Asked:
    """A question that is open, and what clients are told of it."""

    def __init__(self) -> None:
        self.person, self.told, self.notes = Person(), list[Mapping[str, Any]](), list[str]()
        self.host = SharedHost(self.person, self.notes.append)
        self.host.board.others = self.told.append

    @property
    def closed(self) -> list[str]:
        """Why requests were closed, as clients are told."""
        return [message["reason"] for message in self.told if message["type"] == "request_closed"]

    def settle(self, answer: str | None, type: str = QUESTION) -> None:
        """Answer as a client."""
        self.host.board.settle(self.host.board.requests[0]["id"], type, answer)


def asked(test: Callable[[Asked], Awaitable[None]]) -> None:
    """Carry out a test."""

    async def work() -> None:
        async with asyncio.timeout(LIMIT_S):
            await test(Asked())

    asyncio.run(work())


def test_a_client_answers_first() -> None:
    """The person is no longer asked, and told what was answered; clients hear that the question is closed."""

    async def test(asked: Asked) -> None:
        answer = asyncio.create_task(asked.host.ask("Which?", ["a", "b"]))
        await asked.person.is_asked.wait()
        asked.settle("2")

        assert "b" == await answer
        assert (True, ["answered elsewhere: b"], ["answered"]) == (
            asked.person.was_cancelled,
            asked.notes,
            asked.closed,
        )

    asked(test)


def test_the_person_answers_first() -> None:
    """Clients hear that somebody else has answered, and can answer no more; nothing is noted."""

    async def test(asked: Asked) -> None:
        answer = asyncio.create_task(asked.host.ask("Which?"))
        await asked.person.is_asked.wait()
        id = asked.host.board.requests[0]["id"]
        asked.person.answers.put_nowait("here")

        assert "here" == await answer
        assert (["answered"], []) == (asked.closed, asked.notes)
        with pytest.raises(SessionError):
            asked.host.board.settle(id, QUESTION, "late")

    asked(test)


def test_both_answer_at_once() -> None:
    """What a client was told that it counts does count."""

    async def test(asked: Asked) -> None:
        answer = asyncio.create_task(asked.host.ask("Which?"))
        await asked.person.is_asked.wait()
        asked.person.answers.put_nowait("here")
        asked.settle("there")

        assert "there" == await answer

    asked(test)


def test_nobody_is_there() -> None:
    """Without a person and without clients it is denied at once, as ever; clients that only look do not change that."""

    async def test(asked: Asked) -> None:
        asked.person.answers.put_nowait(None)
        with pytest.raises(NobodyToAskError):
            await asked.host.approve(REQUEST)

        assert ["ended"] == asked.closed

    asked(test)


def test_a_client_stands_in_for_the_person() -> None:
    """Where nobody is at the terminal, a client that may answer is waited for."""

    async def test(asked: Asked) -> None:
        asked.host.join()
        asked.person.answers.put_nowait(None)
        decision = asyncio.create_task(asked.host.approve(REQUEST))
        await asked.person.is_asked.wait()
        await asyncio.sleep(0.02)
        asked.settle("always", APPROVAL)

        assert ApprovalDecision("always") == await decision
        assert ["answered elsewhere: always"] == asked.notes

    asked(test)


def test_the_last_client_leaves() -> None:
    """Then nobody can be asked any more, and nothing is allowed."""

    async def test(asked: Asked) -> None:
        asked.host.join()
        asked.host.join()
        asked.person.answers.put_nowait(None)
        decision = asyncio.create_task(asked.host.approve(REQUEST))
        await asked.person.is_asked.wait()
        await asyncio.sleep(0.02)
        asked.host.leave()
        await asyncio.sleep(0.02)
        assert not decision.done()
        asked.host.leave()

        with pytest.raises(NobodyToAskError):
            await decision

    asked(test)


def test_the_run_ends_while_it_asks() -> None:
    """Both questions end with it."""

    async def test(asked: Asked) -> None:
        answer = asyncio.create_task(asked.host.ask("Which?"))
        await asked.person.is_asked.wait()
        answer.cancel()
        await asyncio.wait([answer])

        assert (True, ["ended"], []) == (asked.person.was_cancelled, asked.closed, asked.host.board.requests)

    asked(test)
