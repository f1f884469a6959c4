"""Calls as tasks: a client that knows the extension gets an id in place of a result that takes long, and asks for it.

The shapes are those of the extension `io.modelcontextprotocol/tasks` of the protocol of 2026-07-28.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NoReturn

from mcp import types
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_NAME_HEADER
from mcp.types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import Field

from koi_lang.mcp_server.call import CallFailed, ExposedCall, Fields
from koi_lang.mcp_server.client_stream import Request, form_of
from koi_lang.mcp_server.sessions import KEEP_S
from koi_lang.sessions.held_run import ExitError

TASKS = "io.modelcontextprotocol/tasks"
# How long a client waits for a call before it becomes a task, and between two looks at it.
TASK_AFTER_S, POLL_S = 0.5, 1.0


class TaskParams(types.RequestParams):
    """The parameters of all requests for tasks."""

    task_id: str = Field(alias="taskId")
    input_responses: Fields | None = Field(alias="inputResponses", default=None)


def has_tasks(request: Request) -> bool:
    """Whether the client of a request knows tasks."""
    able = request.session.client_capabilities
    is_modern = request.protocol_version in MODERN_PROTOCOL_VERSIONS
    return is_modern and able is not None and TASKS in (able.extensions or {})


def require_capability(request: Request, needed: types.ClientCapabilities, cause: Exception | None = None) -> NoReturn:
    """Raise MCPError: the client lacks a required ability."""
    data = {"requiredCapabilities": needed.model_dump(mode="json", by_alias=True, exclude_none=True)}
    message = str(cause or f"`{request.method}` is for clients that know tasks")
    raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, message, data) from cause


def require_same_name(request: Request, id: str) -> None:
    """Raise MCPError where the header by which proxies route a request names another task than its body."""
    headers = {} if request.request is None else request.request.headers
    if headers.get(MCP_NAME_HEADER, id) != id:
        raise MCPError(types.HEADER_MISMATCH, f"`{MCP_NAME_HEADER}` of the request names another task")


def task_fields(id: str, call: ExposedCall) -> Fields:
    """How a call stands, without its result."""
    fields: Fields = {
        "taskId": id,
        "status": _status(call),
        "createdAt": _time_text(call.created),
        "lastUpdatedAt": _time_text(call.updated),
        "ttlMs": int(KEEP_S * 1000),
        "pollIntervalMs": int(POLL_S * 1000),
    }
    if call.step:
        fields["statusMessage"] = call.step
    if fields["status"] == "input_required":
        forms = {key: form_of(question) for key, question in call.questions.items()}
        fields["inputRequests"] = {
            key: form.model_dump(mode="json", by_alias=True, exclude_none=True) for key, form in forms.items()
        }
    return fields


def _status(call: ExposedCall) -> str:
    """An error of the handler is a result, as without tasks; only another end of the call is a failure."""
    if call.is_cancelled:
        return "cancelled"
    if call.outcome is None:
        return "input_required" if call.questions else "working"
    is_failure = isinstance(call.outcome, CallFailed) and isinstance(call.outcome.error, ExitError | SystemExit)
    return "failed" if is_failure else "completed"


def _time_text(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
