"""The operations of the API: one table, of which the app makes its routes and the document its paths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from starlette.routing import Route

from koi_lang.web.api_schemas import COMMAND_ID, COUNT, SCHEMAS, TEXT, Schema, closed_object, object_of, reference
from koi_lang.web.json_bodies import MAX_BYTES
from koi_lang.web.request_context import MAX_WAIT_S, Endpoint, checked_endpoint

Method = Literal["GET", "POST", "PUT", "DELETE"]
# Where the paths of the table begin.
API = "/api"
JSON = "application/json"
STREAM = "text/event-stream"
BYTES = "application/octet-stream"
# The body of `startRun`, which the document makes of the handlers of the programs.
START = "StartRun"
# Bytes that somebody who is not known yet may send.
MAX_LOGIN_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class QueryField:
    """A field of a query string or, with dashes in its name, a header."""

    name: str
    description: str
    schema: Schema

    @property
    def place(self) -> str:
        """Where a request has it."""
        return "header" if "-" in self.name else "query"


@dataclass(frozen=True, slots=True)
class ApiOperation:
    """One method of one path.

    Attributes:
        name: of the endpoint, and `operationId` of the document.
        path: below `/api`; `{path}` at its end may hold slashes.
        gives: JSON Schema of the answer, or the name of one of the document; None where there is no body.
        takes: the same of what is sent; None where nothing is.
        status: of the answer where nothing goes wrong.
        ended: the name of the schema of the answer where the client waits, and the call has ended; empty for none.
        needs_token: whether it is refused without one.
        is_public: whether the document has it; what the pages alone use may change with each version.
        max_bytes: of the body.
    """

    name: str
    method: Method
    path: str
    summary: str
    gives: Schema | str | None
    takes: Schema | str | None = None
    fields: tuple[QueryField, ...] = ()
    status: int = 200
    media: str = JSON
    takes_media: str = JSON
    needs_token: bool = True
    ended: str = ""
    is_public: bool = True
    max_bytes: int = MAX_BYTES

    @property
    def query(self) -> Mapping[str, Schema]:
        """The schemas of the fields of its query."""
        return {each.name: {**each.schema, "$defs": SCHEMAS} for each in self.fields if each.place == "query"}

    @property
    def body(self) -> Schema | None:
        """The schema of the JSON body, which the endpoint gets once it fits; None where there is no such body."""
        if self.method != "POST":
            return None
        return self.takes or closed_object({}) if not isinstance(self.takes, str) else START_FIELDS


_NUMBER: Schema = {**COUNT, "maximum": 2**53 - 1}
_IMAGES: Schema = {"type": "array", "items": {"type": "object"}, "maxItems": 16}
_SINCE = QueryField(
    "since", "number or `id` of the last that is known", {**TEXT, "pattern": r"^\d{1,15}(\.\d{1,15})?$"}
)
_LIMIT = QueryField("limit", "most that are given", {"type": "integer", "minimum": 1, "maximum": 1000})
_KEY = QueryField("Idempotency-Key", "names the request: sent again it starts nothing", {**TEXT, "maxLength": 200})
_LISTED = (
    QueryField("program", "name of a program", TEXT),
    QueryField("state", "state of a run", reference("State")),
    QueryField("user", "whose; of others for admins only", TEXT),
    QueryField("before", "`next` of the page before", {**TEXT, "pattern": r"^\d{15}-"}),
)
_UNDELIVERED = QueryField("undelivered", "only what has not arrived", {"enum": ["true", "false"]})
_BY = QueryField("by", "what costs are put together by", {"enum": ["day", "model", "user", "program", "agent"]})
_WAIT = QueryField("wait", "seconds to wait for the end of the call, or for a question",
                   {"type": "integer", "minimum": 1, "maximum": MAX_WAIT_S})  # fmt: skip
# Its fields as they are checked; sessions themselves know which of them go together.
START_FIELDS = closed_object({}, program=TEXT, handler=TEXT, payload={}, message=TEXT, images=_IMAGES, title=TEXT)
_SAID = closed_object({"message": TEXT}, images=_IMAGES, handler=TEXT)
_CALLED = closed_object({"handler": TEXT}, payload={})
_STEERED = closed_object({"message": {**TEXT, "minLength": 1}}, agent=TEXT, images=_IMAGES)
_APPROVED = closed_object({"request": TEXT, "decision": {"enum": ["yes", "always", "no"]}}, reason=TEXT)
_ANSWERED = closed_object({"request": TEXT, "answer": TEXT})
_COMMAND = object_of({"run": TEXT, "type": TEXT}, id=COMMAND_ID)
_BRANCHED = closed_object({}, at={**_NUMBER, "minimum": 1}, answer=TEXT, message=TEXT)

OPERATIONS: tuple[ApiOperation, ...] = (
    ApiOperation("health", "GET", "/health", "Whether the service can take more work", "Health", needs_token=False),
    ApiOperation("login", "POST", "/login", "Sign a browser in: change a token for a cookie", "Ok",
                 closed_object({"token": TEXT}), needs_token=False, max_bytes=MAX_LOGIN_BYTES),
    ApiOperation("logout", "POST", "/logout", "Sign a browser out", "Ok", needs_token=False),
    ApiOperation("status", "GET", "/status", "Who asks, and how many sessions there are", "Status"),
    ApiOperation("program", "GET", "/program", "The programs with their agents and handlers", "Programs"),
    ApiOperation("startRun", "POST", "/runs", "Start a run", "Started", START, (_KEY, _WAIT), 202, ended="RunDetails"),
    ApiOperation("listRuns", "GET", "/runs", "The runs, newest first", "Runs", None, (*_LISTED, _LIMIT)),
    ApiOperation("getRun", "GET", "/runs/{id}", "A run, and how its last call ended", "RunDetails", None, (_WAIT,)),
    ApiOperation("deleteRun", "DELETE", "/runs/{id}", "Remove a run, its journal and its files", None,
                 status=204),
    ApiOperation("sendMessage", "POST", "/runs/{id}/messages", "Begin the call that a message is", "Started",
                 _SAID, (_KEY, _WAIT), 202, ended="RunDetails"),
    ApiOperation("callHandler", "POST", "/runs/{id}/calls", "Begin the call of a handler", "Started", _CALLED,
                 (_KEY, _WAIT), 202, ended="RunDetails"),
    ApiOperation("cancelRun", "POST", "/runs/{id}/cancel", "End what is under way, with all it started", "Ok"),
    ApiOperation("pauseRun", "POST", "/runs/{id}/pause", "Have the next request to a model wait", "Ok"),
    ApiOperation("continueRun", "POST", "/runs/{id}/continue", "End a pause", "Ok"),
    ApiOperation("steerRun", "POST", "/runs/{id}/steer", "Say something to who works", "Ok", _STEERED),
    ApiOperation("approveRun", "POST", "/runs/{id}/approve", "Answer a request for permission", "Ok", _APPROVED),
    ApiOperation("answerRun", "POST", "/runs/{id}/answer", "Answer a question", "Ok", _ANSWERED),
    ApiOperation("branchRun", "POST", "/runs/{id}/branch", "Go back to an entry, in a run of its own", "Started",
                 _BRANCHED, (_KEY,), 202),
    ApiOperation("listEntries", "GET", "/runs/{id}/entries", "Entries of the journal", "Entries", None,
                 (_SINCE, _LIMIT)),
    ApiOperation("getTree", "GET", "/runs/{id}/tree", "The runs that it goes on from, or that go on from it", "Tree"),
    ApiOperation("getRunCost", "GET", "/runs/{id}/cost", "What its models took", "RunCost"),
    ApiOperation("listFiles", "GET", "/runs/{id}/files", "The files of the session", "Files"),
    ApiOperation("getFile", "GET", "/runs/{id}/files/{path}", "A file", {}, media=BYTES),
    ApiOperation("putFile", "PUT", "/runs/{id}/files/{path}", "Write a file", "File", {}, status=201,
                 takes_media=BYTES),
    ApiOperation("deleteFile", "DELETE", "/runs/{id}/files/{path}", "Remove a file", None, status=204),
    ApiOperation("events", "GET", "/runs/{id}/events", "What happens, live, as server-sent events", TEXT, None,
                 (_SINCE, QueryField("Last-Event-ID", "`id` of the last event that is known", TEXT)), media=STREAM),
    ApiOperation("command", "POST", "/command", "A command of `koi rpc`, for a run", "Response", _COMMAND,
                 is_public=False),
    ApiOperation("listJobs", "GET", "/jobs", "What is started by itself, when next and how it went last", "Jobs"),
    ApiOperation("listDeliveries", "GET", "/deliveries", "What others were to be told, and whether it has arrived",
                 "Deliveries", None, (_UNDELIVERED,)),
    ApiOperation("listCosts", "GET", "/cost", "What models took, put together", "Costs", None, (_BY,)),
    ApiOperation("listModels", "GET", "/models", "The models of the connected providers", "Models"),
    ApiOperation("getAudit", "GET", "/audit", "What the programs may do", "Audit"),
    ApiOperation("reload", "POST", "/reload", "Serve programs as their files are now", "Reloaded"),
    ApiOperation("openapi", "GET", "/openapi.json", "This document", {"type": "object"}),
)  # fmt: skip


def routes_of(endpoints: Mapping[str, Endpoint]) -> list[Route]:
    """The routes of an app whose endpoints are called like the operations; each must have one."""
    return [
        Route(
            API + each.path.replace("{path}", "{path:path}"),
            checked_endpoint(endpoints[each.name], each.query, each.body, each.max_bytes),
            methods=[each.method],
        )
        for each in OPERATIONS
    ]
