"""The JavaScript client against servers at their worst: cut streams, lost answers, refusals, strangers."""

from __future__ import annotations

import pytest

from tests.client.node_script import NodeScript
from tests.client.stand_in import Reply, StandIn, event, refused, stream, told

pytestmark = pytest.mark.needs("node")

READY = ("0.0", {"type": "rpc_ready", "id": "r1", "program": "p", "title": "", "state": "working"})
EVENTS = "/api/runs/r1/events"
STARTED = {"id": "r1", "program": "p", "owner": "", "state": "working", "call": "c"}
ENDED = event("call_ended", 4, call="c", name="Ada.go", ok=True, result=7)


def test_a_cut_stream_goes_on_behind_the_last_entry(service: StandIn) -> None:
    """The next connection asks for what is behind; an entry that comes again is left out, and half a message, too."""
    first = stream(READY, ("1", event("printed", 1, message="a")), ("1.1", {"type": "state", "state": "waiting"}))
    half = Reply(200, first.body + b"id: 2\ndata: {", first.headers, breaks=True)
    again = stream(
        READY, ("1", event("printed", 1, message="a")), ("2", event("printed", 2, message="b")), ("4", ENDED)
    )
    service.reply("/api/runs", told(STARTED, 202))
    service.reply(EVENTS, half, refused(503, "overloaded", "too much"), again)
    script = """
    const run = await koi.runs.start({ handler: "Ada.go" });
    const types = [];
    for await (const { type, event } of run.events()) types.push(event?.message ?? event?.type ?? type);
    told([types, await run.result()]);
    """
    types, result = NodeScript(service.url, "secret", script).end()
    followed = [asked for asked in service.asked if asked.path.startswith(EVENTS)]

    assert (["rpc_ready", "a", "state", "rpc_ready", "b", "call_ended"], 7) == (types, result)
    assert [None, "1.1", "1.1"] == [asked.headers.get("last-event-id") for asked in followed]
    assert {"Bearer secret"} == {asked.headers["authorization"] for asked in service.asked}


def test_what_begins_a_run_is_sent_again_with_its_key(service: StandIn) -> None:
    """An answer that was lost, and a refusal for a while, are followed by the same request; others are sent once."""
    service.reply("/api/health", told({"ok": True}))
    wait = Reply(429, b'{"code": "limit_reached", "message": "wait"}', {"Retry-After": "0"})
    service.reply("/api/runs", Reply(0), wait, told(STARTED, 202))
    service.reply("/api/runs/r1/messages", Reply(0), told(STARTED, 202))
    service.reply("/api/runs/r1/pause", Reply(0), told({"paused": True}))
    script = """
    await koi.health();
    const run = await koi.runs.start({ handler: "Ada.go" }, { idempotencyKey: undefined });
    await run.sendMessage({ message: "hi" });
    told([run.id, await refused(run.pause())]);
    """
    assert ["r1", [True, "unreachable", 0]] == NodeScript(service.url, "secret", script).end()
    started = [asked for asked in service.asked if asked.path == "/api/runs"]

    assert 3 == len(started)
    assert 1 == len({(asked.headers["idempotency-key"], str(asked.body)) for asked in started})


def test_a_service_that_stays_away_is_given_up(service: StandIn) -> None:
    """After `patienceMs` the error of the last attempt is thrown; an answer of a proxy is no message of a service."""
    service.reply("/api/health", told({"ok": True}))
    service.reply(EVENTS, stream(READY), Reply(0))
    service.reply("/api/status", Reply(502, b"<p>bad gateway"))
    service.reply("/api/models", Reply(500, b"null"))
    script = """
    const hasty = new KoiClient({ url, token, patienceMs: 300 });
    await hasty.health();
    const follow = async () => { for await (const _ of hasty.run("r1").events()); };
    told([await refused(follow()), await refused(hasty.status()), await refused(hasty.listModels())]);
    """
    away, bad, broken = NodeScript(service.url, "", script).end()

    assert [True, "unreachable", 0] == away
    assert [[True, "unreadable", 502], [True, "unreadable", 500]] == [bad, broken]


STRANGERS = {
    "page": Reply(200, b"<p>hello"),
    "json": told([1]),
    "number": stream(("1", 5)),
    "text": Reply(200, b"data: hello\n\n", stream().headers),
}


def test_a_token_is_not_shown(service: StandIn) -> None:
    """A client in a log, or as JSON, does not have the token of its user."""
    script = 'import { inspect } from "node:util"; told(inspect(koi, { depth: 9 }) + JSON.stringify(koi));'

    assert "secret" not in NodeScript(service.url, "secret", script).end()


@pytest.mark.parametrize("reply", STRANGERS.values(), ids=STRANGERS)
def test_a_stranger_is_named(service: StandIn, reply: Reply) -> None:
    """A server that is no service of Koi is an error, not a run without an end."""
    service.reply(EVENTS, reply)
    script = """
    const work = async () => { for await (const _ of koi.run("r1").events()); };
    told((await refused(work())).slice(0, 2));
    """
    assert [True, "foreign_server"] == NodeScript(service.url, "", script).end()


def test_a_signal_ends_a_loop(service: StandIn) -> None:
    """Following ends where an `AbortSignal` says so, in the middle of a stream and before it is there."""
    service.reply(EVENTS, Reply(200, stream(READY).body, stream().headers, holds=True))
    script = """
    const end = new AbortController(), early = new AbortController(), types = [];
    queueMicrotask(() => early.abort());
    for await (const { type } of koi.run("r1").events({ signal: early.signal })) types.push(type);
    for await (const { type } of koi.run("r1").events({ signal: end.signal }))
      if (types.push(type) === 1) setTimeout(() => end.abort(), 50);
    told(types);
    """
    assert ["rpc_ready"] == NodeScript(service.url, "", script).end()
