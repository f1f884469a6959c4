"""A client and a service: calls, messages over breaks, questions, and everything that a server can do wrong."""

from __future__ import annotations

import asyncio
import inspect
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import koi_lang.client
from koi_lang.client import (
    AsyncClient,
    BrokenServiceError,
    Client,
    ForeignServerError,
    RefusedError,
    RemoteCallError,
    RemoteError,
    SignInError,
    UnreachableError,
)
from koi_lang.errors import UsageError
from tests.client.stand_in import NO_ANSWER, Reply, StandIn, event, refused, serving, stream, told, types
from tests.projects import Project

BEGUN = told({"id": "r1", "program": "desk", "owner": "ann", "state": "working", "call": "call-1"}, 202)
READY = {"type": "rpc_ready", "state": "working", "program": "desk"}
ENDED = event("call_ended", 9, call="call-1", name="Ada.go", ok=True, result={"words": 9})
EVENTS = "/api/runs/r1/events"


def begin(service: StandIn, *streams: Reply) -> None:
    """Have one run there, whose messages come over some connections."""
    service.reply("/api/runs", BEGUN)
    service.reply(EVENTS, *streams)


def test_a_call_gives_its_result(service: StandIn, client: Client) -> None:
    """The run is begun with handler and payload by somebody with a token, and what its call gives comes back."""
    begin(service, stream(("0.0", READY), ("2", event("printed", 2, message="hi")), ("9", ENDED)))

    assert {"words": 9} == client.ask("Ada.go", {"n": 1}, program="desk")
    first, second = service.asked
    assert {"handler": "Ada.go", "payload": {"n": 1}, "program": "desk"} == first.body
    assert ["Bearer secret"] * 2 == [asked.headers["authorization"] for asked in service.asked]
    assert 32 == len(first.headers["idempotency-key"])
    assert (f"{EVENTS}?since=0", "text/event-stream") == (second.path, second.headers["accept"])


def test_an_event_loop_can_call(service: StandIn) -> None:
    """The client for event loops does the same, many calls at a time."""
    begin(service, stream(("0.0", READY), ("9", ENDED)))

    async def call() -> list[Any]:
        async with AsyncClient(service.url, "secret") as client:
            return await asyncio.gather(*(client.ask("Ada.go", {"n": n}) for n in range(40)))

    assert [{"words": 9}] * 40 == asyncio.run(call())


def test_both_clients_offer_the_same() -> None:
    """Every method of one is a method of the other, with the same parameters."""

    def offered(kind: type) -> dict[str, list[str]]:
        methods = {name: method for name, method in vars(kind).items() if not name.startswith("_")}
        return {name: [*inspect.signature(each).parameters] for name, each in methods.items() if callable(each)}

    assert offered(koi_lang.client.Client) == offered(koi_lang.client.AsyncClient)
    assert offered(koi_lang.client.RemoteRun) == offered(koi_lang.client.AsyncRemoteRun)


@pytest.mark.parametrize(
    ("end", "code", "message"),
    [
        ({"ok": False, "error": "no such city", "help": "Ask.", "report": "error: no such city"}, "failed", "no such"),
        ({"ok": False, "aborted": True}, "cancelled", "`Ada.go` was cancelled"),
        ({"ok": False, "aborted": True, "timed_out": True}, "timed_out", "`Ada.go` was timed out"),
    ],
)
def test_a_call_that_fails_is_an_error(
    service: StandIn, client: Client, end: dict[str, Any], code: str, message: str
) -> None:
    """Its message is that of the program, and its code says how it ended."""
    begin(service, stream(("0.0", READY), ("9", event("call_ended", 9, call="call-1", name="Ada.go", **end))))

    with pytest.raises(RemoteCallError, match=message) as caught:
        client.ask("Ada.go")
    assert (code, "r1", end.get("help")) == (caught.value.code, caught.value.run, caught.value.help)


@pytest.mark.parametrize(
    ("last", "code"),
    [
        ({"type": "session_failed", "error": "the disk is full", "report": ""}, "session_failed"),
        ({"type": "state", "state": "interrupted"}, "session_failed"),
        ({"type": "state", "state": "cancelled"}, "cancelled"),
    ],
)
def test_a_run_that_ends_without_its_call(service: StandIn, client: Client, last: Any, code: str) -> None:
    """Nobody waits for ever for a call of a run that is over."""
    begin(service, stream(("0.0", READY), ("3.1", last)))

    with pytest.raises(RemoteCallError) as caught:
        client.ask("Ada.go")
    assert code == caught.value.code


# ---------------------------------------------------------------- breaks


@pytest.mark.parametrize("breaks", [True, False])
def test_after_a_break_nothing_is_told_twice(service: StandIn, client: Client, breaks: bool) -> None:
    """The client goes on behind the last message that it has, and leaves out what it knows."""
    one, two, three = (event("printed", n, message=str(n)) for n in (1, 2, 3))
    asked = {"type": "question", "id": "request-1", "question": "Who?", "options": []}
    begin(
        service,
        stream(("0.0", READY), ("1", one), ("1.1", asked), ("2", two), breaks=breaks),
        stream(("2.0", READY), ("2.1", asked), breaks=breaks),
        Reply(503, b"restarting"),
        NO_ANSWER,
        stream(("2.0", READY), ("2", two), ("3", three), ("3.1", {"type": "state", "state": "working"}), ("9", ENDED)),
    )
    run = client.start("Ada.go")
    messages = list(run)

    assert ["rpc_ready", "printed", "question", "printed", "printed", "call_ended"] == types(messages)
    assert [None, 1, None, 2, 3, 9] == [message.number for message in messages]
    assert [None, "2", "2.1", "2.1", "2.1"] == [asked.headers.get("last-event-id") for asked in service.asked[1:]]
    assert {"words": 9} == run.result()


def test_a_reader_that_was_cut_off_goes_on(service: StandIn, client: Client) -> None:
    """Who was too slow connects again behind what it has, and is not bothered with that."""
    cut_off = {"type": "cut_off", "reason": "more than 8 MB were left unread"}
    begin(
        service, stream(("0.0", READY), ("1", event("printed", 1, message="1")), ("1.1", cut_off)), stream(("9", ENDED))
    )

    assert ["rpc_ready", "printed", "call_ended"] == types(list(client.start("Ada.go")))
    assert "1.1" == service.asked[-1].headers["last-event-id"]


def test_a_text_goes_on_where_it_was(service: StandIn, client: Client) -> None:
    """Of the text so far, which follows a break, only what is behind the pieces that were told comes."""
    piece = {"action": "print", "field": "message", "number": 1}
    begin(
        service,
        stream(("0.0", READY), ("0.1", event("output_delta", text="Tides ", **piece))),
        stream(("0.0", READY), ("0.1", event("output_delta", text="Tides follow", so_far=True, **piece))),
        stream(("0.0", READY), ("0.1", event("output_delta", text="Tides follow", so_far=True, **piece)), ("9", ENDED)),
    )
    texts = [m.data["event"]["text"] for m in client.start("Ada.go") if types([m]) == ["output_delta"]]

    assert ["Tides ", "follow"] == texts


def test_a_question_that_is_asked_anew_is_new(service: StandIn, client: Client) -> None:
    """Where the service was killed before it had kept the answer, the same request comes again, and is answered."""
    asked = {"type": "question", "id": "request-1", "question": "Who?", "options": ["Ann", "Bob"]}
    begin(service, stream(("0.0", READY), ("0.1", asked)), stream(("0.0", READY), ("0.1", asked), ("9", ENDED)))
    service.reply("/api/command", told({"type": "response", "command": "answer", "success": True}))

    assert {"words": 9} == client.ask("Ada.go", ask=lambda question, options: f"{question} {options[1]}")
    assert [{"run": "r1", "type": "answer", "request": "request-1", "answer": "Who? Bob"}] * 2 == service.commands


def test_permissions_are_asked_for(service: StandIn, client: Client) -> None:
    """A callback decides; without one nothing is decided here."""
    wanted = {"type": "approval_request", "id": "request-2", "agent": "Ada", "what": "run `ls`", "detail": "to look"}
    begin(service, stream(("0.0", READY), ("0.1", wanted), ("9", ENDED)))
    service.reply("/api/command", told({"type": "response", "command": "approve", "success": True}))
    client.ask("Ada.go")
    seen: list[tuple[str, ...]] = []
    client.ask("Ada.go", approve=lambda *about: seen.append(about) or "always")

    assert [("run `ls`", "to look", "Ada")] == seen
    assert [{"run": "r1", "type": "approve", "request": "request-2", "decision": "always"}] == service.commands


def test_a_service_that_does_not_come_back(service: StandIn, hasty: Client) -> None:
    """After its patience the client says that the service is away, in one sentence."""
    begin(service, stream(("0.0", READY)), NO_ANSWER)

    with pytest.raises(UnreachableError, match=r"^`http://127\.0\.0\.1:\d+/` ") as caught:
        hasty.ask("Ada.go")
    assert caught.value.code == "unreachable"


# ---------------------------------------------------------------- commands and files


def test_commands_reach_the_run(service: StandIn, client: Client) -> None:
    """Each is one request about this run, and a refusal has the words of the service."""
    run = client.run("r/../1")
    service.reply("/api/command", told({"success": True, "command": "x"}))
    service.reply("/api/runs/r%2F..%2F1/cancel", told({}))
    run.steer("shorter")
    run.pause()
    run.go_on()
    run.approve("q", False, "no need")
    run.cancel()
    refusal = {"success": False, "error_code": "unknown_request", "error": "there is none", "help": "?"}
    service.reply("/api/command", told(refusal))

    with pytest.raises(RefusedError, match="there is none") as caught:
        run.answer("q", "a")
    assert ("unknown_request", "?") == (caught.value.code, caught.value.help)
    assert ["steer", "pause", "continue", "approve", None, "answer"] == [a.body.get("type") for a in service.asked]
    with pytest.raises(UsageError, match="`maybe` is no decision"):
        run.approve("q", "maybe")


def test_files_of_a_run(service: StandIn, client: Client) -> None:
    """Files are listed, read, written and removed as bytes; a name cannot lead anywhere else."""
    run = client.run("r1")
    service.reply("/api/runs/r1/files", told({"files": [{"path": "a b.txt", "bytes": 2}]}))
    service.reply("/api/runs/r1/files/sub/a%20b.txt", Reply(200, b"\x00\xff"))

    assert [{"path": "a b.txt", "bytes": 2}] == run.files()
    assert b"\x00\xff" == run.read_file("sub/a b.txt")
    run.write_file("sub/a b.txt", b"new")
    run.delete_file("sub/a b.txt")
    assert [("PUT", b"new"), ("DELETE", b"")] == [(asked.method, asked.body) for asked in service.asked[-2:]]
    for name in ("../x", "/etc/passwd", "a//b", "", "a/./b"):
        with pytest.raises(UsageError, match="is no name of a file"):
            run.read_file(name)


def test_runs_are_listed_page_by_page(service: StandIn, client: Client) -> None:
    """All pages are asked for as they are needed, and no more."""
    pages = [told({"runs": [{"id": str(n)}, {"id": str(n + 1)}], "next": str(n + 1)}) for n in (0, 2)]
    service.reply("/api/runs", *pages, told({"runs": [{"id": "4"}], "next": None}))

    assert ["0", "1", "2", "3", "4"] == [run["id"] for run in client.runs(state="ok")]
    service.reply("/api/runs", *pages)
    assert ["0", "1", "2"] == [run["id"] for run in client.runs(limit=3)]
    assert ["/api/runs?state=ok", "/api/runs?state=ok&before=1"] == [asked.path for asked in service.asked[:2]]


# ---------------------------------------------------------------- servers that are none


@pytest.mark.sampled(7)
@pytest.mark.parametrize(
    ("reply", "kind", "code", "message"),
    [
        (refused(401, "no_token", "a bearer token is needed", "Send it."), SignInError, "no_token", "a bearer token"),
        (refused(403, "wrong_user", "it is another's"), SignInError, "wrong_user", "it is another's"),
        (refused(404, "unknown_handler", "there is no `Ada.go`"), RefusedError, "unknown_handler", "there is no `Ada"),
        (refused(429, "too_many", "the day's money is spent"), RefusedError, "too_many", "the day's money is spent"),
        (refused(500, "failed", "it broke"), BrokenServiceError, "failed", "it broke"),
        (Reply(200, b"<html>hello</html>"), ForeignServerError, "foreign_server", "its answer is no JSON"),
        (told(["a", "b"]), ForeignServerError, "foreign_server", "its answer lacks `id`, `program`"),
        (told({"id": "x"}), ForeignServerError, "foreign_server", "its answer lacks `id`, `program`"),
        (Reply(404, b"<html>nothing</html>"), ForeignServerError, "foreign_server", "it answers with status 404"),
        (Reply(500, b"{}"), ForeignServerError, "foreign_server", "it answers with status 500"),
        (Reply(401, b""), SignInError, "not_signed_in", "lets nobody in without other credentials"),
        (Reply(302, b"", {"Location": "https://evil/"}), ForeignServerError, "foreign_server", "on to `https://evil/`"),
        (Reply(503, b"<html>"), UnreachableError, "unreachable", "a proxy before it answers with status 503"),
        (NO_ANSWER, UnreachableError, "unreachable", "it gives no answer of HTTP"),
        (Reply(200, b"[" * 100_000), ForeignServerError, "foreign_server", "its answer is no JSON"),
    ],
)
def test_every_answer_that_is_none_has_a_sentence(
    service: StandIn, hasty: Client, reply: Reply, kind: type[RemoteError], code: str, message: str
) -> None:
    """What went wrong is one typed error with a code and one sentence, and the token goes nowhere else."""
    service.reply("/api/runs", reply)

    with pytest.raises(kind) as caught:
        hasty.start("Ada.go")
    assert code == caught.value.code
    assert message in caught.value.message
    assert "secret" not in f"{caught.value}{caught.value.help}{hasty!r}{hasty.service!r}"
    assert {"/api/runs"} == {asked.path for asked in service.asked}


@pytest.mark.parametrize(
    "body",
    [b"data: nothing\n\n", b'data: ["a"]\n\n', b'data: {"type":"event","event":{}}\n\n', b'data: {"type":"event"}\n\n'],
)
def test_a_stream_of_something_else(service: StandIn, client: Client, body: bytes) -> None:
    """A stream whose messages are none of a run ends with an error, not with another connection."""
    begin(service, Reply(200, body, {"Content-Type": "text/event-stream"}))

    with pytest.raises(ForeignServerError, match="what it tells of a run is no message"):
        client.ask("Ada.go")


def test_a_stream_that_is_a_page(service: StandIn, client: Client) -> None:
    """A page in the place of a stream is no stream."""
    begin(service, Reply(200, b"<html>", {"Content-Type": "text/html"}))

    with pytest.raises(ForeignServerError, match="it does not tell of a run"):
        client.ask("Ada.go")


def test_nobody_is_there(client: Client, service: StandIn) -> None:
    """A port at which nothing listens, and a name that nobody knows, are told as such."""
    for url, why in (("http://127.0.0.1:9", "nothing listens there"), ("http://no.invalid", "no such name is known")):
        with Client(url, patience_s=0.05) as nobody, pytest.raises(UnreachableError, match=why):
            nobody.status()


def test_a_server_without_a_certificate(service: StandIn) -> None:
    """A server that speaks no TLS is told as such, and not asked again."""
    with Client(service.url.replace("http:", "https:")) as client, pytest.raises(UnreachableError) as caught:
        client.status()
    assert "tls_failed" == caught.value.code
    assert "write the address with `http://`" in str(caught.value.help)


@pytest.mark.needs("openssl")
def test_a_certificate_that_is_not_trusted(tmp_path: Path) -> None:
    """One that nobody has signed is refused before the token is sent, unless the client is told to trust it."""
    certificate = tmp_path / "a.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=koi"
    words = [*command.split(), "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "a.pem", "-out", "b.pem"]
    subprocess.run(words, cwd=tmp_path, check=True, capture_output=True)
    certificate.write_text(certificate.read_text() + (tmp_path / "b.pem").read_text())
    with serving(certificate) as service:
        service.reply("/api/status", told({"user": "ann"}))
        with Client(service.url, "secret") as client, pytest.raises(UnreachableError) as caught:
            client.status()
        asked = list(service.asked)
        trusted = ssl.create_default_context(cafile=str(tmp_path / "b.pem"))
        with Client(service.url, "secret", verify=trusted) as client:
            user = client.status()["user"]

    assert ("tls_failed", []) == (caught.value.code, asked)
    assert "certificate" in caught.value.message
    assert ("ann", "Bearer secret") == (user, service.asked[0].headers["authorization"])


@pytest.mark.parametrize("url", ["", "localhost", "ftp://x", "http://", "http://x:99999", "http://[x", "file:///etc"])
def test_addresses_that_are_none(url: str) -> None:
    """What is no address of HTTP is refused before anything is sent."""
    with pytest.raises(UsageError, match="is no address of a service"):
        Client(url)


def test_an_address_holds_no_password() -> None:
    """A password would be shown wherever the address is."""
    with pytest.raises(UsageError, match="holds a password"):
        Client("http://a:b@localhost")


def test_the_client_needs_no_compiler() -> None:
    """Neither the compiler nor what runs programs is imported with it."""
    script = "import sys; from koi_lang.client import Client; print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()

    assert not {"lark", "mcp", "openai", "koi_lang.compiler", "koi_lang.runtime", "koi_lang.js"} & set(found)


def test_a_client_that_is_left_open_holds_up_nothing(service: StandIn, project: Project) -> None:
    """A process ends although its client is open, and one that it forks can call by it, too."""
    service.reply("/api/status", told({"user": "ann"}))
    script = f"""
        import os
        from koi_lang.client import Client
        client = Client({service.url!r}, "secret")
        if not (child := os.fork()):
            print(client.status()["user"], flush=True)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        print(client.status()["user"])
        """

    assert ("ann\nann\n", "") == ((done := project.python(script)).stdout, done.stderr)
