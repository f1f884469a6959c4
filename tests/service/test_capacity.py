"""Services that may open few files: everybody is answered, or told when to come again."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import shlex
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from koi_lang.service import slots
from koi_lang.service.errors import ServiceError
from koi_lang.service.slots import SessionSlots
from koi_lang.settings.service import ServiceLimits
from koi_lang.system.capacity import WANTED_FILES, are_files_short, count_open_files, file_limits, raise_file_limit
from tests.limits import LIMIT_S
from tests.projects import Project
from tests.service.serving_process import ServiceProcess

COUNTER = """
role Worker { can execute }
agent Main : Worker {
  state { count: number = 0 }
  on chat(args: { message: string }) { this.state.count += 1  return args.message }
}
"""
Start = Callable[..., ServiceProcess]


async def talk(service: ServiceProcess, number: int, at_once: int) -> Counter[int]:
    """How often each status was answered to conversations, so many at once; who is to come again does so."""
    room, statuses = asyncio.Semaphore(at_once), Counter[int]()
    headers = {"Authorization": f"Bearer {service.token}"}
    async with httpx2.AsyncClient(base_url=service.url, headers=headers, timeout=LIMIT_S) as client:

        async def begin(text: str) -> None:
            async with room:
                while (answer := await client.post("/api/runs", json={"message": text})).status_code == 503:
                    statuses[503] += 1
                    await asyncio.sleep(0.1 * float(answer.headers["Retry-After"]))
                statuses[answer.status_code] += 1

        await asyncio.gather(*(begin(f"message {each}") for each in range(number)))
    return statuses


def few_files(start_service: Start, limit: int) -> ServiceProcess:
    """A service that may open so many files, as under `ulimit -n`."""
    service = start_service(is_forked=False, main=COUNTER)
    assert service.process is not None
    resource.prlimit(service.process.pid, resource.RLIMIT_NOFILE, (limit, limit))
    return service


def require_answers(service: ServiceProcess, number: int, at_once: int) -> None:
    """Have so many conversations; all must be answered, and the first one must go on."""
    statuses = asyncio.run(talk(service, number, at_once))
    first = service.get("api/runs?limit=1000")["runs"][-1]["id"]
    assert service.command(first, "prompt", message="again")["success"]
    service.wait_for_state(first, "idle")

    assert number == statuses[202], statuses
    assert {202, 503} >= statuses.keys()
    assert service.get("api/health")["ok"]


@pytest.mark.parametrize(("number", "at_once"), [pytest.param(40, 1, marks=pytest.mark.thorough), (30, 30)])
def test_conversations_are_answered_with_few_files(start_service: Start, number: int, at_once: int) -> None:
    """More of them than the service may have files open."""
    require_answers(few_files(start_service, 80), number, at_once)


@pytest.mark.thorough
@pytest.mark.parametrize(("limit", "number", "at_once"), [(256, 300, 1), (256, 60, 60), (1024, 2000, 10)])
def test_many_conversations_are_answered(start_service: Start, limit: int, number: int, at_once: int) -> None:
    """At the limits of small machines, one after the other and at once; the time is printed."""
    began = time.monotonic()
    require_answers(few_files(start_service, limit), number, at_once)
    took_s = time.monotonic() - began

    print(f"{number} conversations, {at_once} at once, {limit} files: {number / took_s:.1f} a second")


@dataclass(slots=True)
class Session:
    """A session for its slot, at work until it rests."""

    id: str
    owner: str = "root"
    is_at_rest: bool = False
    used: float = 0.0
    slots: SessionSlots | None = None

    async def sleep_at_rest(self) -> None:
        """Give the slot to another one."""
        assert self.slots is not None
        self.slots.free(self)


def test_a_session_waits_for_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where all slots are taken by work, the next session has the first one that rests; after a while it is refused."""
    monkeypatch.setattr(slots, "MAX_WAIT_S", 0.1)
    full = SessionSlots(ServiceLimits(), {})
    monkeypatch.setattr(full, "max_by_files", 1.0)

    async def scenario() -> list[bool]:
        first, second = Session("1", slots=full), Session("2", slots=full)
        await full.take(first)
        with pytest.raises(ServiceError) as refused:
            await full.take(second)
        assert "overloaded" == refused.value.code
        waiting = asyncio.ensure_future(full.take(second))
        await asyncio.sleep(0)
        had_to_wait = not waiting.done()
        first.is_at_rest = True
        full.tell_room()
        await waiting
        return [had_to_wait, full.is_crowded]

    assert [True, True] == asyncio.run(scenario())


def test_a_service_opens_as_many_files_as_it_may(tmp_path: Path) -> None:
    """The soft limit is that of shells, which services do not keep."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (128, before[1]))
    try:
        small = SessionSlots(ServiceLimits(), {}).max_by_files
        raise_file_limit()
        raised = file_limits()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)

    assert 16 == small
    assert raised is not None
    assert min(before[1] if before[1] >= 0 else WANTED_FILES, WANTED_FILES) == raised[0]


def test_files_are_short_when_few_can_be_opened() -> None:
    """The files of the process are counted, and compared with its limit."""
    assert not are_files_short()
    before, opened = resource.getrlimit(resource.RLIMIT_NOFILE), count_open_files()
    with open(os.devnull):
        assert opened + 1 == count_open_files()
    resource.setrlimit(resource.RLIMIT_NOFILE, (opened + 3, before[1]))
    try:
        assert are_files_short()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_health_tells_what_is_short(start_service: Start) -> None:
    """A service that can open few more files says so, with a status that balancers understand, until it can again."""
    service = few_files(start_service, 80)
    assert service.process is not None
    before = service.get("api/health")
    limit = before["open_files"] + 8
    resource.prlimit(service.process.pid, resource.RLIMIT_NOFILE, (limit, 80))
    refused = service.request("GET", "api/health")
    resource.prlimit(service.process.pid, resource.RLIMIT_NOFILE, (80, 80))
    told = refused.json()

    assert (503, "2") == (refused.status_code, refused.headers["Retry-After"])
    assert [] == before["problems"]
    assert (False, limit, ["few more files can be opened"]) == (told["ok"], told["max_files"], told["problems"])
    assert service.get("api/health")["ok"]


def test_the_doctor_warns_of_few_files(project: Project) -> None:
    """Where the hard limit is low, it says for how many sessions and connections that is enough."""
    project.write("koi.toml", '[serve]\nprograms = ["std/coder"]\n')
    command = shlex.join([sys.executable, "-m", "koi_lang", "doctor", "--offline", "--json"])
    words = ["sh", "-c", f"ulimit -n 1024; exec {command}"]
    done = subprocess.run(words, cwd=project.folder, env=project.environment, capture_output=True, text=True)
    texts = [each["text"] for each in json.loads(done.stdout) if each["about"] == "service"]

    assert "a process may open 1024 files: 128 sessions awake and 512 connections" in texts
