"""The client as the person of a run: questions and permissions become requests with an id, which it answers later."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from koi_lang.runtime.actions.client_tools import requested_tool
from koi_lang.runtime.forms import form_field
from koi_lang.runtime.host import Approval, ApprovalDecision, ApprovalRequest, NobodyToAskError, choose_option
from koi_lang.runtime.replay.location import current_path
from koi_lang.sessions.errors import SessionError
from koi_lang.sessions.messages import ClosedMessage, LogMessage

ANSWER_S = 300.0
QUESTION: Final = "question"
APPROVAL: Final = "approval_request"
CLOSED: Final = "request_closed"
# Why a request is closed, where somebody else than the client has answered it.
ANSWERED = "answered"
Message = Mapping[str, Any]
Send = Callable[[Message], None]


@dataclass(frozen=True, slots=True)
class ClientAnswer:
    """The answer of a client to a request.

    Attributes:
        text: the answer; None where it does not want to give one.
        reason: why something is not allowed.
    """

    text: str | None
    reason: str = ""


UNANSWERED = ClientAnswer(None)


@dataclass(frozen=True, slots=True, eq=False)
class Open:
    """A request that the client has not answered yet."""

    message: Message
    answer: asyncio.Future[ClientAnswer]


class Client:
    """A host whose output arrives as events.

    Args:
        send: takes what the client is told.
        answer_s: how long a request is open; then nobody has answered, and nothing is allowed. None is for ever.

    Attributes:
        others: takes what is told of requests, also that the client has answered one, for those who may do so, too.
    """

    def __init__(self, send: Send, answer_s: float | None = ANSWER_S) -> None:
        self._send, self._answer_s = send, answer_s
        self.others: Send | None = None
        self._open: dict[str, Open] = {}
        self._asked: Counter[str] = Counter()

    @property
    def requests(self) -> list[Message]:
        """The open requests, the oldest first."""
        return [request.message for request in list(self._open.values()) if not request.answer.done()]

    def settle(self, id: str, type: str, answer: str | None, reason: str = "") -> None:
        """Answer a request of a type. Raises SessionError when no such request is open."""
        request = self._open.get(id)
        if request is None or request.answer.done():
            raise SessionError("unknown_request", f"there is no open request `{id}`", help="`get_state` lists them.")
        if request.message["type"] != type:
            command = "approve" if type == QUESTION else "answer"
            raise SessionError("unknown_request", f"`{id}` is no {type.replace('_', ' ')}", help=f"Use `{command}`.")
        request.answer.set_result(ClientAnswer(answer, reason))
        self._tell_others(closed_message(id, ANSWERED))

    def close_request(self, id: str) -> None:
        """Tell the client that somebody else has answered a request."""
        self._send(closed_message(id, ANSWERED))

    def _tell(self, message: Message) -> None:
        self._send(message)
        self._tell_others(message)

    def _tell_others(self, message: Message) -> None:
        if self.others is not None:
            self.others(message)

    async def _request(self, type: str, **fields: Any) -> ClientAnswer:
        """The answer of a client; cancelling this with `ANSWERED` reports another answer."""
        id = self._name_request(type, fields)
        answer: asyncio.Future[ClientAnswer] = asyncio.get_running_loop().create_future()
        about = {"path": list(current_path()), "timeout_s": self._answer_s}
        request = Open({"type": type, "id": id, **fields, **about}, answer)
        self._open[id] = request
        self._tell(request.message)
        reason = "ended"
        try:
            async with asyncio.timeout(self._answer_s):
                given = await request.answer
            reason = ""
        except TimeoutError:
            reason = "timeout"
            return UNANSWERED
        except asyncio.CancelledError as error:
            reason = ANSWERED if ANSWERED in error.args else reason
            raise
        finally:
            del self._open[id]
            if reason:
                self._tell(closed_message(id, reason))
        return given

    def _name_request(self, type: str, fields: Mapping[str, Any]) -> str:
        """An id derived from the request and its place.

        It is the same when the session goes on in another process, and a late answer never answers another request.
        """
        about = json.dumps([type, current_path(), fields], default=str)
        key = hashlib.sha256(about.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        self._asked[key] += 1
        return f"request-{key}" if self._asked[key] == 1 else f"request-{key}-{self._asked[key]}"

    # ------------------------------------------------------------ as a host

    def print(self, text: str) -> None:
        """Output is an event, which the client gets anyway."""

    def log(self, text: str) -> None:
        """Pass on a line that is not output."""
        self._send(LogMessage(type="log", text=text))

    async def ask(self, question: str, options: Sequence[str] = ()) -> str:
        """Ask through the client; an option may be named by its number. Raises NobodyToAskError.

        A question about a field of a form has the whole `form`: its `title`, its `schema`, and the `field`. One that
        calls a tool of the client has the `tool`: its `name` and its `arguments`.
        """
        form, tool = form_field.get(), requested_tool.get()
        about = {"form": dict(form)} if form is not None else {"tool": dict(tool)} if tool is not None else {}
        answer = (await self._request(QUESTION, question=question, options=list(options), **about)).text
        if answer is None:
            help = "Send `answer` with the id of the question in time."
            raise NobodyToAskError(f"nobody answers the question `{question.strip()}`", help=help)
        return choose_option(answer.strip(), options)

    async def approve(self, request: ApprovalRequest) -> ApprovalDecision:
        """Ask for permission. Raises NobodyToAskError when the client gives no answer, or none in time."""
        given = await self._request(APPROVAL, **approval_fields(request))
        if given.text is None:
            raise NobodyToAskError(f"nobody answers whether to {request.what}")
        allowed: Approval = "yes" if given.text == "yes" else "always" if given.text == "always" else "no"
        return ApprovalDecision(allowed, given.reason)

    async def secret(self, name: str) -> str:
        """Ask for a value that is not shown. Raises NobodyToAskError."""
        answer = (await self._request(QUESTION, question=f"{name}:", options=[], secret=True)).text
        if answer is None:
            raise NobodyToAskError(f"nobody can be asked for `{name}`")
        return answer


def closed_message(id: str, reason: str) -> ClosedMessage:
    """The message about a request that needs no answer any more."""
    return {"type": CLOSED, "id": id, "reason": reason}


def approval_fields(request: ApprovalRequest) -> dict[str, Any]:
    """The fields of a request for a client; empty ones are left out."""
    about = {"preview": request.preview, "always": request.always, "chain": list(request.chain)}
    fields = {"agent": request.agent, "what": request.what, "detail": request.detail}
    return {**fields, **{name: value for name, value in about.items() if value}}


def approval_in(message: Message) -> ApprovalRequest:
    """The request that a client was told of."""
    texts = {name: str(message.get(name, "")) for name in ("what", "detail", "agent", "preview", "always", "id")}
    return ApprovalRequest(**texts, chain=tuple(message.get("chain", ())))
