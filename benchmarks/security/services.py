"""A service whose users, sessions and webhooks somebody attacks."""

from __future__ import annotations

import http.client
import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import quote

import httpx2

from benchmarks.measuring import CHECKOUT
from benchmarks.security.sandbox import NO_SANDBOX
from benchmarks.security.trials import MARK, AttackKind, Trial, hidden, require_bubblewrap
from koi_lang.service.host import SessionHost
from tests.adversary.hostile_project import tree_of
from tests.limits import LIMIT_S
from tests.sandbox.test_sessions import PROGRAM as SHELL
from tests.schedules.test_service import PROGRAM as JOBS
from tests.schedules.test_service import SETTINGS as SECRETS
from tests.schedules.test_service import send, sign, sign_as_koi, sign_with_time
from tests.search_path import original_path
from tests.service.conftest import desk_in
from tests.service.hosting import begin, called, play
from tests.service.serving_process import TOKEN, ServiceProcess
from tests.service.test_isolation import BODY, START, UNKNOWN, paths
from tests.service.test_mcp_of_users import DESK
from tests.service.user_tokens import SETTINGS as USERS
from tests.service.user_tokens import TOKENS, as_user
from tests.serving.conftest import AUTHORIZED, INITIALIZE

ESCAPES = (
    "../secret.txt", "../../secret.txt", "../../../secret.txt", "../../../../secret.txt", "a/../../../../secret.txt",
    "%2e%2e/secret.txt", "%2e%2e%2fsecret.txt", "..%5csecret.txt", "....//secret.txt", "/etc/passwd", "//etc/passwd",
    "..", ".", "~/x", "C:\\x", "out/secret.txt", "out/new.txt", "link.txt", ".hidden", ".env", "koi.toml", ".koi/x",
    "a/.koi/x", "a%00b", "a/\u202ex", "x" * 2000,
)  # fmt: skip
METHODS = ("GET", "PUT", "DELETE")
# Commands that show `{mark}` where they reach the service, in `{service}`, or another session.
SEEING = (
    "cat ../../*/files/notes.txt",
    "cat ../../../runs/*",
    "cat {service}/.koi/runs/*",
    "cat {service}/.koi/sessions/*/files/notes.txt",
    "cat {service}/.env",
    "cat {service}/koi.toml",
    "grep -r {mark} ../../..",
    "find {service} -name notes.txt -exec cat {{}} +",
    "ln -s {service} up; cat up/.env",
    "for other in ../../*; do ln $other/files/notes.txt mine; done; cat mine",
    "cat /proc/self/root{service}/.env",
    "cat /proc/*/cwd/.env",
    "unshare -Urm sh -c 'umount -l {service}; cat {service}/.env'",
)
COMMANDS = ("get_state", "abort", "answer", "prompt", "no_such_command")
# Messages to an MCP session: the verb of HTTP, the method, and its parameters.
MCP_MESSAGES: Sequence[tuple[str, str, Mapping[str, Any]]] = (
    ("POST", "ping", {}),
    ("POST", "tools/list", {}),
    ("POST", "tools/call", {"name": "add", "arguments": {"n": 1}}),
    ("POST", "tools/call", {"name": "store", "arguments": {"text": MARK}}),
    ("POST", "tools/call", {"name": "look", "arguments": {}}),
    ("POST", "resources/list", {}),
    ("POST", "resources/read", {"uri": "desk://count"}),
    ("POST", "resources/subscribe", {"uri": "desk://count"}),
    ("POST", "prompts/list", {}),
    ("POST", "prompts/get", {"name": "Greet", "arguments": {"name": "Bob"}}),
    ("POST", "notifications/cancelled", {"requestId": 7}),
    ("POST", "notifications/initialized", {}),
    ("GET", "", {}),
    ("DELETE", "", {}),
)
LISTS = ("api/runs", "api/runs?user=ada", "api/runs?state=waiting")
MESSAGE = b'{"action": "opened", "id": "%d"}'
# What somebody who has seen a signed message writes beside it to have it count once more.
IDS: Sequence[Mapping[str, str]] = (
    {},
    {"Koi-Delivery": "b"},
    {"Idempotency-Key": "c"},
    {"X-GitHub-Delivery": "d"},
    {"X-Request-Id": "e"},
)
FORMS = {
    "of Koi": lambda body, id: sign_as_koi(body, time.time()),
    "of Standard Webhooks": lambda body, id: sign_with_time(body, id, time.time()),
}
FORGED = {
    "without a signature": lambda body: {},
    "with another secret": lambda body: sign(body, "another"),
    "with an empty secret": lambda body: sign(body, ""),
    "of another message": lambda body: sign(body + b" "),
    "of another message, of Koi": lambda body: sign_as_koi(body + b" ", time.time()),
    "an hour old": lambda body: sign_with_time(body, "old", time.time() - 3600),
    "an hour old, of Koi": lambda body: sign_as_koi(body, time.time() - 3600),
    "an hour ahead, of Koi": lambda body: sign_as_koi(body, time.time() + 3600),
    "under another id": lambda body: {**sign_with_time(body, "x", time.time()), "Webhook-Id": "y"},
    "with an older time": lambda body: {**sign_with_time(body, "x", time.time()), "Webhook-Timestamp": "1"},
    "by SHA-1": lambda body: {"X-Hub-Signature-256": "sha1=00"},
    "with a second signature": lambda body: {**sign(body), "Webhook-Signature": "v1,AAAA"},
    "with an empty signature": lambda body: {"Koi-Signature": "t=,v1=,,=="},
}


@contextmanager
def _serving(folder: Path, *words: str, settings: str) -> Iterator[ServiceProcess]:
    (folder / "koi.toml").write_text(settings, "utf-8")
    service = ServiceProcess(folder, words)
    with mock.patch.dict(os.environ, {"KOI_CACHE_DIR": str(folder.parent / "cache"), "KOI_TRUST_FOLDER": "1"}):
        service.start()
    try:
        yield service
    finally:
        service.end()


def request_files(base: Path, cases: Sequence[tuple[str, str]]) -> Iterator[Trial]:
    """Read, write and remove files by requests whose paths lead out of the session, or to closed names."""
    folder = base / "service"
    with _serving(folder, *desk_in(folder), settings="") as service:
        run = service.begin(**START)
        files = folder / f".koi/sessions/{run}/files"
        files.mkdir(parents=True, exist_ok=True)
        secrets = [folder.parent / "secret.txt", *(each / "secret.txt" for each in files.parents if each > folder)]
        for secret in secrets:
            secret.write_text(MARK)
        (files / "out").symlink_to(folder.parent)
        (files / "link.txt").symlink_to(folder.parent / "secret.txt")
        before = tree_of(files)
        for method, path in cases:
            answer = _send(service, method, f"/api/runs/{run}/files/{quote(path, safe='/%')}")
            is_same = before == tree_of(files) and [MARK] * len(secrets) == [secret.read_text() for secret in secrets]
            yield Trial(f"{method} {path[:80]}", is_same and MARK not in answer and "root:" not in answer)


def _send(service: ServiceProcess, method: str, path: str) -> str:
    """The answer to a request whose path goes out as it is written."""
    connection = http.client.HTTPConnection(service.url.removeprefix("http://"), timeout=LIMIT_S)
    connection.request(method, path, b"overwritten" if method == "PUT" else None, {"Authorization": f"Bearer {TOKEN}"})
    return connection.getresponse().read().decode("utf-8", "replace")


def see_others(base: Path, cases: Sequence[str]) -> Iterator[Trial]:
    """Have a command of a session look at the service, and at the files of another session."""
    require_bubblewrap()
    environment = {
        "PATH": original_path(os.environ), "KOI_CACHE_DIR": str(base / "cache"), "KOI_TRUST_FOLDER": "1",
        "KOI_CONFIG_DIR": str(base / "config"),
    }  # fmt: skip
    with mock.patch.dict(os.environ, environment):
        seen, unguarded = _seen(cases, ""), _seen(cases, NO_SANDBOX)
    for name, is_seen, could_see in zip(cases, seen, unguarded, strict=True):
        yield Trial(name, not is_seen, could_see)


def _seen(cases: Sequence[str], settings: str) -> list[bool]:
    # The sandbox empties folders such as `/tmp` for all commands, so the service is in none of them.
    with tempfile.TemporaryDirectory(prefix=".koi-attack-", dir=CHECKOUT) as name:
        folder = Path(name)
        (folder / "a.koi").write_text(SHELL)
        (folder / ".env").write_text(f"NAME={MARK}\n")
        (folder / "koi.toml").write_text(f"# {MARK}\n{settings}")

        async def scenario(host: SessionHost) -> list[bool]:
            other, own = await begin(host, "Main.go", command=f"true {MARK}"), await begin(host)
            (other.files / "notes.txt").write_text(MARK)
            found = []
            for case in cases:
                (own.files / "shown").unlink(missing_ok=True)
                await called(own, "Main.go", command=hidden(case.format(service=folder, mark=MARK[:9]))["command"])
                found.append(MARK in (own.files / "shown").read_text("utf-8", "replace"))
            return found

        return list(play(folder, scenario, "a.koi", allow=["shell"]))


def reach_runs_of_others(base: Path, cases: Sequence[tuple[str, str, tuple[str, ...]]]) -> Iterator[Trial]:
    """Make every request that names a run with the token of another user; the owner makes the same ones later."""
    folder = base / "service"
    with _serving(folder, *desk_in(folder), settings=USERS) as service:
        ada, bob = as_user(service, "ada"), as_user(service, "bob")
        run = ada.begin(**START)
        ada.wait_for_state(run, "waiting")
        held = []
        for case in cases:
            theirs, unknown = (_answer(bob, id, case) for id in (run, UNKNOWN))
            held.append(theirs == unknown if case[2] or "{id}" in case[1] else "RUN" not in theirs)
        assert "waiting" == ada.get(f"api/runs/{run}")["state"]
        reached = []
        for case in cases:
            own, unknown = (_answer(ada, id, case) for id in (run, UNKNOWN))
            reached.append(own != unknown if case[2] or "{id}" in case[1] else "RUN" in own)
    for (method, path, fields), is_held, could_reach in zip(cases, held, reached, strict=True):
        yield Trial(f"{method} {path} {' '.join(fields)}", is_held, could_reach)


def _answer(user: ServiceProcess, run: str, case: tuple[str, str, tuple[str, ...]]) -> str:
    """The status of an answer, and the beginning of its body, without the id that was asked for."""
    method, path, fields = case
    content: dict[str, Any] | None = {name: BODY[name] for name in fields if name in BODY}
    if path == "api/command":
        content = {"run": run, "type": fields[0], **BODY}
    url, headers = f"{user.url}/{path.replace('{id}', run)}", {"Authorization": f"Bearer {user.token}"}
    content = None if method in ("GET", "DELETE") else content
    with httpx2.stream(method, url, json=content, headers=headers, timeout=LIMIT_S) as answer:
        text = "" if "event-stream" in answer.headers.get("content-type", "") else answer.read().decode()
    return f"{answer.status_code} {text}".replace(run, "RUN")


def enter_mcp_sessions(base: Path, cases: Sequence[tuple[str, str, Mapping[str, Any]]]) -> Iterator[Trial]:
    """Send messages to an MCP session with the token of another user; its owner sends the same ones later."""
    folder = base / "service"
    folder.mkdir()
    (folder / "desk.koi").write_text(DESK)
    with _serving(folder, "desk.koi", "--rehearse", settings=USERS) as service:
        session = _send_mcp(service, "ada", "", ("POST", "initialize", INITIALIZE))[2]
        _send_mcp(service, "ada", session, ("POST", "notifications/initialized", {}))
        foreign = [_send_mcp(service, "bob", session, case)[:2] for case in cases]
        unknown = [_send_mcp(service, "bob", UNKNOWN, case)[:2] for case in cases]
        own = [_send_mcp(service, "ada", session, case)[0] for case in cases]
    for (verb, method, params), theirs, nobodys, status in zip(cases, foreign, unknown, own, strict=True):
        yield Trial(f"{verb} {method} {json.dumps(params)}", theirs == nobodys and theirs[0] == 404, status < 400)


def _send_mcp(
    service: ServiceProcess, user: str, session: str, case: tuple[str, str, Mapping[str, Any]]
) -> tuple[int, str, str]:
    """Status, text and session of the answer to a message; the text of a stream is left out."""
    verb, method, params = case
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    message |= {} if method.startswith("notifications/") else {"id": 7}
    headers = {**AUTHORIZED, "Authorization": f"Bearer {TOKENS[user]}"} | (
        {"Mcp-Session-Id": session} if session else {}
    )
    content = message if verb == "POST" else None
    with httpx2.stream(verb, f"{service.url}/mcp", json=content, headers=headers, timeout=LIMIT_S) as answer:
        is_stream = "event-stream" in answer.headers.get("content-type", "")
        text = "" if is_stream else answer.read().decode()
    return answer.status_code, text, answer.headers.get("mcp-session-id", "")


def replay_messages(base: Path, cases: Sequence[tuple[str, Mapping[str, str]]]) -> Iterator[Trial]:
    """Send a signed message of somebody else once more."""
    with _hooks(base) as service:
        for at, (form, more) in enumerate(cases):
            body = MESSAGE % at
            signed = FORMS[form](body, str(at))
            first, again = (
                send(service, "github", body, **each).json()["run"] for each in (signed, {**signed, **more})
            )
            yield Trial(f"a message {form} with {', '.join(more) or 'nothing else'}", first == again)


def forge_messages(base: Path, cases: Sequence[str]) -> Iterator[Trial]:
    """Send a message that the owner of the secret has not signed, or not now."""
    with _hooks(base) as service:
        for at, name in enumerate(cases):
            body = MESSAGE % at
            forged = send(service, "github", body, **FORGED[name](body))
            signed = send(service, "github", body, **sign(body))
            yield Trial(name, forged.status_code in (401, 403), signed.status_code == 202)


@contextmanager
def _hooks(base: Path) -> Iterator[ServiceProcess]:
    folder = base / "service"
    (folder / "docs").mkdir(parents=True)
    (folder / "desk.koi").write_text(JOBS, "utf-8")
    with _serving(folder, "desk.koi", settings=SECRETS) as service:
        yield service


KINDS = (
    AttackKind(
        "sessions",
        "sandbox of a session: the service and other sessions",
        SEEING,
        see_others,
        "without bubblewrap, commands of a session see what the service sees",
    ),
    AttackKind(
        "requests",
        "files over HTTP",
        [(method, path) for path in ESCAPES for method in METHODS],
        request_files,
        "none that is known",
    ),
    AttackKind(
        "users",
        "runs of other users over HTTP",
        [
            *(("GET", path, ()) for path in LISTS),
            *(("POST", "api/command", (command,)) for command in COMMANDS),
            *sorted(paths(), key=lambda case: case[0] == "DELETE"),
        ],
        reach_runs_of_others,
        "users share the machine and the keys of the service",
    ),
    AttackKind(
        "mcp",
        "MCP sessions of other users",
        MCP_MESSAGES,
        enter_mcp_sessions,
        "whoever has the token of a user is that user",
    ),
    AttackKind(
        "replays",
        "signed webhooks, sent once more",
        [(form, more) for form in FORMS for more in IDS],
        replay_messages,
        "the form of GitHub signs no time and no id, so its messages can be sent again under another id",
    ),
    AttackKind(
        "forgeries",
        "forged webhooks",
        [*FORGED],
        forge_messages,
        "who has the secret can sign",
    ),
)
