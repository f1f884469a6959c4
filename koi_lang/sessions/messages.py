"""The messages that followers of a run get, one record for each `type`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired, TypedDict


class GreetingMessage(TypedDict):
    """The first message of a connection: the run and its state. What is open in the run follows."""

    type: Literal["rpc_ready"]
    id: str
    program: str
    title: str
    state: str
    # How the program has changed since, where the session cannot go on with it.
    changed: NotRequired[str]
    # Whether another process works on the run.
    attached: NotRequired[bool]
    # Of a session that is awake.
    schema_version: NotRequired[int]
    version: NotRequired[str]
    agents: NotRequired[Sequence[str]]


class EventMessage(TypedDict):
    """An event. It has the number `n` of its entry in the journal, unless no journal keeps it."""

    type: Literal["event"]
    n: NotRequired[int]
    event: Mapping[str, Any]


class QuestionForm(TypedDict):
    """The form that a question belongs to, and the name of the field that it asks for."""

    title: str
    schema: Mapping[str, Any]
    field: str


class QuestionTool(TypedDict):
    """The tool of the client that a question calls; the answer is its result, or `{"error": …}`."""

    name: str
    arguments: Mapping[str, Any]


class QuestionMessage(TypedDict):
    """A question to a person, until a `request_closed` with its `id`."""

    type: Literal["question"]
    id: str
    question: str
    options: Sequence[str]
    form: NotRequired[QuestionForm]
    tool: NotRequired[QuestionTool]
    # Whether the answer is not to be shown.
    secret: NotRequired[bool]
    path: Sequence[str]
    timeout_s: float | None


class ApprovalMessage(TypedDict):
    """A request for permission, until a `request_closed` with its `id`; `preview` is a diff of what would change."""

    type: Literal["approval_request"]
    id: str
    agent: str
    what: str
    detail: str
    preview: NotRequired[str]
    # What the answer `always` allows.
    always: NotRequired[str]
    chain: NotRequired[Sequence[str]]
    path: Sequence[str]
    timeout_s: float | None


class ClosedMessage(TypedDict):
    """A question or a request for permission needs no answer any more."""

    type: Literal["request_closed"]
    id: str
    reason: str


class StateMessage(TypedDict):
    """The state of the run has changed."""

    type: Literal["state"]
    state: str


class LogMessage(TypedDict):
    """A line of the log, for admins."""

    type: Literal["log"]
    text: str


class FailureMessage(TypedDict):
    """The session cannot go on; `report` is the place in the program, for admins."""

    type: Literal["session_failed"]
    code: NotRequired[str]
    error: str
    help: NotRequired[str]
    report: NotRequired[str]


class CutOffMessage(TypedDict):
    """The last message to a reader that has left too much unread."""

    type: Literal["cut_off"]
    reason: str


class ResponseMessage(TypedDict):
    """The response to a command, with the `id` of the command; `error_code` says in a word why it was refused."""

    type: Literal["response"]
    command: str
    id: NotRequired[str | int | float]
    success: bool
    data: NotRequired[Any]
    error: NotRequired[str]
    error_code: NotRequired[str]
    help: NotRequired[str]


# What followers get, and what is the answer to a command.
FOLLOWER_MESSAGES = (
    GreetingMessage,
    EventMessage,
    QuestionMessage,
    ApprovalMessage,
    ClosedMessage,
    StateMessage,
    LogMessage,
    FailureMessage,
    CutOffMessage,
)
