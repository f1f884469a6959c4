"""Readers that break off and come back: over thousands of events nothing is lost, and nothing is told twice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse

from koi_lang.runtime.journal.entries import NOTHING
from koi_lang.service.feed import MAX_PIECE_BYTES, Feed
from koi_lang.service.host import SessionHost
from koi_lang.sessions.messages import StateMessage
from koi_lang.web.live import PING, follow_run
from tests.service.hosting import ADMIN, begin, play
from tests.service.serving_process import ServiceProcess

PROGRAM = """
role Worker { can execute }
agent Main : Worker {
  on count(args: Json) {
    for (let n = 0; n < COUNT; n++) {
      console.log(n)
      if (n % 100 === 0) { await new Promise((done) => setTimeout(done, 5)) }
    }
  }
}
"""
BREAKS = 20


@pytest.mark.parametrize("total", [2_000, pytest.param(10_000, marks=pytest.mark.thorough)])
def test_nothing_is_lost_over_twenty_breaks(start_service: Callable[..., ServiceProcess], total: int) -> None:
    """A reader that breaks off while much is told goes on behind the last message that it has taken."""
    service = start_service(main=PROGRAM.replace("COUNT", str(total)))
    run = service.begin(handler="Main.count")
    since, numbers, printed = "0", list[int](), list[str]()
    for number in range(BREAKS + 1):
        count = total // 300 + total // 250 * number if number < BREAKS else None
        for id, message in islice(service.follow(run, since), count):
            if "n" in message:
                since, event = id, message["event"]
                numbers.append(message["n"])
                printed += [event["message"]] if event["type"] == "printed" else []
                if event["type"] == "call_ended":
                    break

    assert list(range(1, len(numbers) + 1)) == numbers
    assert [str(n) for n in range(total)] == printed


def test_messages_that_wait_are_read_together(tmp_path: Path) -> None:
    """A reader gets what waits for it at once, a piece at a time, in order, and each entry once."""

    async def scenario() -> list[list[int | None]]:
        feed = Feed("none", tmp_path / "none.jsonl", NOTHING, lambda message: None)
        reader, groups = feed.subscribe(0), list[list[int | None]]()
        large = b"x" * MAX_PIECE_BYTES
        for number, message in ((1, b"a"), (None, b"b"), (1, b"a"), (2, large), (3, b"c"), (None, b"d")):
            reader.add((number, message))
        async for messages in reader.listen(0.01):
            groups.append([number for number, _ in messages])
            if not messages:
                return groups
        raise AssertionError("it was closed")

    assert [[1, None, 2], [3, None], []] == asyncio.run(scenario())


def test_transient_messages_stay_between_their_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the journal, which is read later, already holds what came behind them."""

    async def scenario() -> list[list[int | None]]:
        feed = Feed("none", tmp_path / "none.jsonl", NOTHING, lambda message: None)
        monkeypatch.setattr(feed, "entries_since", lambda since, view: iter([(n, b"x") for n in (1, 2, 3)]))
        reader, groups = feed.subscribe(0), list[list[int | None]]()
        for number in (2, None, 3):
            reader.add((number, b"x"))
        async for messages in reader.listen(0.01):
            groups.append([number for number, _ in messages])
            if not messages:
                return groups
        raise AssertionError("it was closed")

    assert [[1], [2, None, 3], []] == asyncio.run(scenario())


def test_nothing_is_missed_behind_the_first_message(tmp_path: Path) -> None:
    """What is told while the first message is on its way comes behind it."""
    (tmp_path / "main.koi").write_text(PROGRAM.replace("COUNT", "0"))

    async def scenario(host: SessionHost) -> bytes:
        session = await begin(host)
        app = Starlette()
        app.state.host = host
        scope = {"type": "http", "app": app, "path_params": {"id": session.id}, "headers": [], "query_string": b""}
        response = await follow_run(Request({**scope, "state": {"user": ADMIN}}))
        assert isinstance(response, StreamingResponse)
        stream = aiter(response.body_iterator)
        await anext(stream)
        session.feed.tell(StateMessage(type="state", state="paused"))
        told = b""
        while b"paused" not in told and PING not in told:
            told += bytes(await anext(stream))
        return told

    assert b"paused" in play(tmp_path, scenario, "main.koi")
