"""The contract of calls that come to a run from outside, which any implementation fulfils: here runs and memory."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from koi_lang.errors import CallCancelledError, UsageError
from koi_lang.program import declarations, loader
from koi_lang.program.runs import run_of
from koi_lang.runtime.budget.limits import Budget, LimitReachedError
from koi_lang.runtime.concurrency.tasks import together
from koi_lang.runtime.events import Consumer
from koi_lang.runtime.host import SilentHost
from koi_lang.runtime.journal.writer import Writer
from koi_lang.runtime.ports import CallsPort
from koi_lang.runtime.run import Run
from koi_lang.sessions.held_run import HeldRun
from tests.projects import Project
from tests.sessions.memory import CallsInMemory

pytestmark = pytest.mark.anyio
NO_LIMIT = Budget()
MANY = 40
PROGRAM = """
import desk from "python:desk"
role R { can execute }
agent Clerk : R {
  on copy(args: Json) { return await desk.copy(args) }
  on wait(args: Json) { return await desk.wait(args) }
  on fail(args: Json) { await desk.fail(args) }
}
"""


@dataclass
class Desk:
    """What handlers do; `begun` and `ended` are the payloads of those that wait."""

    gate: asyncio.Event = field(default_factory=asyncio.Event)
    arrivals: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))
    begun: list[Any] = field(default_factory=list)
    ended: list[Any] = field(default_factory=list)

    async def copy(self, args: Any) -> Any:
        """Change what was given, and give it back."""
        self.begun.append(args["n"])
        args["seen"] = [True]
        return args

    async def wait(self, args: Any) -> Any:
        """Wait at the gate; clean up for a while."""
        self.begun.append(args["n"])
        self.arrivals.release()
        try:
            await self.gate.wait()
        finally:
            await asyncio.sleep(0.01)
            self.ended.append(args["n"])
        return args["n"]

    async def fail(self, args: Any) -> None:
        """Fail."""
        self.begun.append(args["n"])
        raise LookupError(f"no {args['n']}")


class Clerk:
    """Stands for an agent."""


@dataclass
class Office:
    """Calls, and what they come to."""

    calls: CallsPort
    desk: Desk
    agent: type[Any]

    def call(self, id: str, event: str, n: Any = 1, budget: Budget = NO_LIMIT) -> Awaitable[Any]:
        """A call of a handler."""
        return self.calls.call(id, self.agent, event, {"n": n}, budget)

    @asynccontextmanager
    async def begun(self, number: int) -> AsyncIterator[list[asyncio.Task[Any]]]:
        """A context with calls `c0`, `c1` and so on that are under way."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(outcome_of(self.call(f"c{n}", "wait", n))) for n in range(number)]
            for _ in tasks:
                await self.desk.arrivals.acquire()
            yield tasks


async def outcome_of(call: Awaitable[Any]) -> Any:
    """What a call gives, or its error."""
    try:
        return await call
    except Exception as error:
        return error


@asynccontextmanager
async def in_memory(desk: Desk) -> AsyncIterator[Office]:
    """Without a run."""

    async def handle(event: str, payload: Any) -> Any:
        return await getattr(desk, event)(payload)

    async with together() as group:
        yield Office(CallsInMemory(handle, group), desk, Clerk)


@asynccontextmanager
async def in_run(desk: Desk, module: ModuleType, folder: Path) -> AsyncIterator[Office]:
    """In the run of a program."""

    @contextmanager
    def open_run(consumers: Sequence[Consumer]) -> Iterator[tuple[Run, Writer | None]]:
        def no_model(llm: Any) -> Any:
            raise AssertionError("nobody asks a model")

        yield run_of(module, no_model, host=SilentHost(), consumers=consumers, folder=folder), None

    held = HeldRun(open_run, str)
    async with together() as group:
        await held.open_in(group)
        try:
            yield Office(held, desk, declarations.agents_of(module)[0])
        finally:
            await held.close(0)


@pytest.fixture(params=["run", "memory"])
async def office(request: pytest.FixtureRequest, project: Project, monkeypatch: Any) -> AsyncIterator[Office]:
    """Where calls are carried out."""
    desk = Desk()
    tool = ModuleType("desk")
    vars(tool).update(copy=desk.copy, wait=desk.wait, fail=desk.fail)
    monkeypatch.setitem(sys.modules, "desk", tool)
    module = loader.load(str(project.write("clerk.koi", PROGRAM)))
    opened = in_memory(desk) if request.param == "memory" else in_run(desk, module, project.folder)
    async with opened as office:
        yield office


@pytest.fixture
def anyio_backend() -> str:
    """What tests that are async run on."""
    return "asyncio"


# ---------------------------------------------------------------- once


async def test_a_call_is_carried_out_once(office: Office) -> None:
    """Who asks for a known id gets the outcome of its call, while it goes on and afterwards, in a copy of their own."""
    at_once = await asyncio.gather(*(office.call("a", "copy") for _ in range(MANY)))
    later = await office.call("a", "copy")

    assert [{"n": 1, "seen": [True]}] * (MANY + 1) == [*at_once, later]
    assert ([1], MANY + 1) == (office.desk.begun, len({id(each["seen"]) for each in [*at_once, later]}))


async def test_a_failure_is_an_outcome(office: Office) -> None:
    """What has failed fails again, and is not tried again."""
    outcomes = [await outcome_of(office.call("a", "fail")) for _ in range(2)]

    assert ["no 1", "no 1"] == [str(error.args[0]).rpartition(": ")[2] for error in outcomes]
    assert [1] == office.desk.begun


@pytest.mark.parametrize(("event", "n"), [("copy", 2), ("wait", 1)])
async def test_an_id_means_one_call(office: Office, event: str, n: int) -> None:
    """Another payload or event under a known id is refused, and nothing is done; the call keeps its outcome."""
    await office.call("a", "copy")

    with pytest.raises(UsageError, match="the id `a` is that of another call"):
        await office.call("a", event, n)
    assert ({"n": 1, "seen": [True]}, [1]) == (await office.call("a", "copy"), office.desk.begun)


async def test_a_payload_stays_with_its_caller(office: Office) -> None:
    """A handler changes a copy; what the caller changes afterwards does not count."""
    given = {"n": [1]}
    call = asyncio.ensure_future(office.calls.call("a", office.agent, "wait", given, NO_LIMIT))
    await asyncio.sleep(0)
    given["n"].append(2)
    office.desk.gate.set()

    assert [1] == await call


async def test_calls_go_on_beside_each_other(office: Office) -> None:
    """Each gets what is its own."""
    async with office.begun(MANY) as calls:
        office.desk.gate.set()

    assert list(range(MANY)) == [call.result() for call in calls]


# ---------------------------------------------------------------- cancelled


async def test_cancelling_ends_one_call(office: Office) -> None:
    """Nothing of it is under way afterwards, its caller is told, and all others go on."""
    async with office.begun(MANY) as calls:
        was_there = await office.calls.cancel("c7")
        ended = list(office.desk.ended)
        office.desk.gate.set()

    assert (True, [7]) == (was_there, ended)
    assert isinstance(calls[7].result(), CallCancelledError)
    assert [n for n in range(MANY) if n != 7] == [call.result() for call in calls if call is not calls[7]]


async def test_many_are_cancelled_at_once(office: Office) -> None:
    """Each is ended by itself, once, however many ask for it."""
    async with office.begun(MANY) as calls:
        asked = [office.calls.cancel(f"c{n}") for n in range(MANY) if n != 3 for _ in range(2)]
        known = await asyncio.gather(*asked)
        office.desk.gate.set()

    assert (True, MANY - 1) == (all(known), sum(isinstance(call.result(), CallCancelledError) for call in calls))
    assert (3, MANY) == (calls[3].result(), len(office.desk.ended))


async def test_only_what_goes_on_is_cancelled(office: Office) -> None:
    """What is not known, or has ended, is left alone, and so is its outcome."""
    await office.call("a", "copy")

    assert [False, False] == [await office.calls.cancel(id) for id in ("a", "b")]
    assert {"n": 1, "seen": [True]} == await office.call("a", "copy")


async def test_a_cancelled_call_is_not_carried_out_again(office: Office) -> None:
    """Who asks for it again is told so."""
    async with office.begun(1):
        await office.calls.cancel("c0")

    with pytest.raises(CallCancelledError):
        await office.call("c0", "wait", 0)
    assert [0] == office.desk.begun


async def test_a_call_without_callers_is_ended(office: Office) -> None:
    """One of two callers may go; with the last one the call ends, before that is told."""
    async with office.begun(1) as calls:
        other = asyncio.ensure_future(office.call("c0", "wait", 0))
        await asyncio.sleep(0)
        for each, ended in ((other, []), (calls[0], [0])):
            each.cancel()
            await asyncio.wait([each])

            assert ended == office.desk.ended


# ---------------------------------------------------------------- budgets and ids


async def test_a_budget_is_that_of_one_call(office: Office) -> None:
    """Its time ends that call, and no other."""
    async with office.begun(1) as calls:
        late = await outcome_of(office.call("late", "wait", "late", Budget(time_s=0.05)))
        begun, ended = [*office.desk.begun], [*office.desk.ended]  # on a busy machine its time is over before it begins
        office.desk.gate.set()

    assert (True, begun[1:]) == (isinstance(late, LimitReachedError), ended)
    assert 0 == calls[0].result()


async def test_a_call_has_an_id(office: Office) -> None:
    """Without one it could be carried out twice."""
    with pytest.raises(UsageError):
        await office.call("", "copy")
