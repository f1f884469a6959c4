"""The requests of a client to a service."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from koi_lang.client.errors import RefusedError
from koi_lang.client.exchange import Outgoing, Service, ServiceAnswer, fields_of, file_path, json_of, run_path
from koi_lang.errors import UsageError

# A request that was answered is not open any more, and one that is asked anew has another id.
REPEATABLE = ("answer", "approve", "pause", "get_state")
DECISIONS: Mapping[bool | str, str] = {True: "yes", False: "no", "yes": "yes", "always": "always", "no": "no"}


def start_request(
    handler: str | None, payload: Any, message: str | None, program: str | None, key: str | None
) -> Outgoing:
    """Begin a run: by a handler with its payload, or by a message of a person. Raises UsageError.

    Args:
        key: the same for the same run, so that it is begun once however often it is asked for; None for a new one.
    """
    if handler is not None and message is not None and payload is not None:
        raise UsageError("both a payload and a message are given", help="A run begins with one of them.")
    given = {"program": program, "handler": handler, "payload": payload, "message": message}
    data = {name: value for name, value in given.items() if value is not None}
    headers = {"Idempotency-Key": key or uuid.uuid4().hex}
    return Outgoing("POST", "api/runs", data, headers=headers, is_repeatable=True)


def look_request(path: str, **query: Any) -> Outgoing:
    """Look at something, without changing anything."""
    asked = {name: value for name, value in query.items() if value is not None}
    return Outgoing("GET", f"{path}?{urlencode(asked)}" if asked else path, is_repeatable=True)


def command_request(run: str, type: str, **fields: Any) -> Outgoing:
    """A command of `koi rpc` to a run; those may be sent twice that do nothing the second time."""
    data = {"run": run, "type": type, **fields}
    return Outgoing("POST", "api/command", data, is_repeatable=type in REPEATABLE)


def wake_request(run: str) -> Outgoing:
    """Have a run go on that sleeps, and change nothing else."""
    return command_request(run, "get_state")


def answer_request(run: str, request: str, answer: str) -> Outgoing:
    """Answer a question."""
    return command_request(run, "answer", request=request, answer=answer)


def approve_request(run: str, request: str, decision: bool | str, reason: str) -> Outgoing:
    """Allow something, or not. Raises UsageError for a decision that is none."""
    chosen = DECISIONS.get(decision)
    if chosen is None:
        raise UsageError(f"`{decision}` is no decision", help="Decide `yes`, `always` or `no`.")
    why = {"reason": reason} if reason else {}
    return command_request(run, "approve", request=request, decision=chosen, **why)


def cancel_request(run: str) -> Outgoing:
    """End the current work."""
    return Outgoing("POST", run_path(run, "cancel"), {}, is_repeatable=True)


def put_file_request(run: str, name: str, content: bytes) -> Outgoing:
    """Write a file of a run."""
    headers = {"Content-Type": "application/octet-stream"}
    return Outgoing("PUT", file_path(run, name), body=content, headers=headers, is_repeatable=True)


def delete_request(path: str) -> Outgoing:
    """Remove a run, or a file of one."""
    return Outgoing("DELETE", path)


def data_of_command(service: Service, outgoing: Outgoing, answer: ServiceAnswer) -> Any:
    """The data of a command, from the response of `koi rpc`.

    Raises:
        RefusedError: it was not carried out, neither now nor when it was sent before.
    """
    response = fields_of(service, json_of(service, outgoing, answer), "success")
    code, text, help = (response.get(name) for name in ("error_code", "error", "help"))
    if response["success"] or (code == "unknown_request" and answer.is_again):
        return response.get("data")
    raise RefusedError(str(text), code=str(code), help=help if isinstance(help, str) else None, status=200)


def file_list(service: Service, answer: Any) -> list[dict[str, Any]]:
    """The files in an answer. Raises ForeignServerError where it holds none."""
    files: list[dict[str, Any]] = fields_of(service, answer, "files")["files"]
    return files
