"""The messages of a run as they come over a connection that may break: each of them once."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any, TypeAlias

import httpx2

from koi_lang.client.errors import RemoteCallError
from koi_lang.client.exchange import (
    AWAY,
    Service,
    ServiceAnswer,
    foreign,
    is_unsafe,
    pauses_s,
    require_success,
    run_path,
    unreachable,
)
from koi_lang.events import (
    AnswerDiscarded,
    CallEnded,
    CallStarted,
    Event,
    ModelAnswered,
    OutputDelta,
    RunEnded,
    unless_omitted,
)

# The service says something every 20 s, if only that it is there.
MAX_SILENCE_S = 50.0
MAX_BYTES = 64 << 20
QUESTION = "question"
APPROVAL = "approval_request"
CLOSED = "request_closed"
READY = "rpc_ready"
STATE = "state"
CUT_OFF = "cut_off"
FAILED = "session_failed"
ASLEEP = "asleep"
# States in which nothing more is going to happen by itself.
OVER = ("ok", "failed", "cancelled", "interrupted")
TextKey: TypeAlias = tuple[str, tuple[str, ...], str, int]


@dataclass(frozen=True, slots=True)
class RunMessage:
    """One thing that a service tells of a run.

    Attributes:
        type: `event`, `question`, `approval_request`, `request_closed`, `state`, `log`, `session_failed`, or
            `rpc_ready`, which is the first one.
        data: all fields, as the service sends them.
        event: of a message of this type, else None.
    """

    type: str
    data: Mapping[str, Any]
    event: Event | None = None

    @property
    def number(self) -> int | None:
        """The number of its journal entry; None for transient messages, such as pieces of text."""
        number = self.data.get("n")
        return number if isinstance(number, int) else None

    @property
    def request(self) -> str:
        """The id of a question or a request for approval; empty for other messages."""
        return str(self.data.get("id", "")) if self.type in (QUESTION, APPROVAL, CLOSED) else ""

    @property
    def question(self) -> tuple[str, Sequence[str]]:
        """The text of a question, and its options."""
        return str(self.data.get("question", "")), self.data.get("options", [])

    @property
    def access_request(self) -> tuple[str, str, str]:
        """The action of a request for approval, its details, and its agent."""
        what, detail, agent = (str(self.data.get(name, "")) for name in ("what", "detail", "agent"))
        return what, detail, agent


class RunFollower:
    """Where a client is in the messages of a run, over breaks of its connection.

    Args:
        since: the number of an entry of the journal that is known, as all before it.
        call: with whose end there is nothing more to follow; empty to go on as long as the run does, None for the call
            that the run was begun with.

    Attributes:
        is_over: whether there is nothing more to follow.
        has_contact: whether the service has answered before, so that it is waited for.
        must_wake: whether the run sleeps in the middle of its call, as after a restart of the service, so that it has
            to be woken.
        ended: what was told of the end of the call.
    """

    def __init__(self, service: Service, run: str, since: int = 0, call: str | None = "") -> None:
        self.run, self.call = run, call
        self.is_over = self.has_contact = self.must_wake = False
        self.ended: CallEnded | None = None
        self._service = service
        self._entry = since
        self._since = since
        self._last_id = ""
        self._open: set[str] = set()
        self._texts: dict[TextKey, str] = {}
        self._state, self._is_greeted = "", False
        self._failure: Mapping[str, Any] = {}
        self._pauses, self._contact = pauses_s(), monotonic()

    # ------------------------------------------------------------ the connection

    def request(self) -> dict[str, Any]:
        """The next request, as arguments of `httpx2.Client.stream`."""
        headers = {"Accept": "text/event-stream"}
        if self._last_id:
            headers["Last-Event-ID"] = self._last_id
        timeout = httpx2.Timeout(self._service.timeout_s, read=MAX_SILENCE_S, pool=None)
        path = f"{run_path(self.run, 'events')}?since={self._since}"
        return {"method": "GET", "url": path, "headers": headers, "timeout": timeout}

    def must_read(self, status: int) -> bool:
        """Whether an answer is no stream, so that it tells why."""
        return status != 200

    def pause_after_refusal(self, came: ServiceAnswer) -> float:
        """How long to wait before the next connection, where there is going to be one. Raises RemoteError."""
        if came.status in AWAY and not self._is_patience_over():
            return next(self._pauses)
        require_success(self._service, came)
        raise foreign(self._service, "it does not tell of a run")

    def pause_after_break(self, error: httpx2.HTTPError | None) -> float:
        """The same for a connection that has ended; None where the service has ended it. Raises RemoteError."""
        if isinstance(error, httpx2.SSEError):
            raise foreign(self._service, "it does not tell of a run") from error
        if error is not None and (is_unsafe(error) or self._is_patience_over()):
            raise unreachable(self._service, error) from error
        return next(self._pauses)

    def _is_patience_over(self) -> bool:
        return not self.has_contact or monotonic() - self._contact > self._service.patience_s

    # ------------------------------------------------------------ messages

    def take(self, sent: httpx2.ServerSentEvent) -> Iterator[RunMessage]:
        """The new messages in a server-sent event. Raises ForeignServerError."""
        self._contact, self.has_contact = monotonic(), True
        self._last_id = sent.id or self._last_id
        message = self._read(sent.data)
        news = None if message is None else self._news(message)
        if news is not None:
            if news.type != READY:  # one that only greets and breaks off is asked less and less often
                self._pauses = pauses_s()
            self._note_end(news)
            yield news

    def _read(self, text: str) -> RunMessage | None:
        """A message; None for an empty one."""
        if not text:
            return None
        try:
            data = json.loads(text)
            type = data["type"]
            event = Event.of_data(data["event"]) if type == "event" else None
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise foreign(self._service, "what it tells of a run is no message") from error
        return RunMessage(str(type), data, event)

    def _news(self, message: RunMessage) -> RunMessage | None:
        """The new part of a message; remembered as seen."""
        if message.event is not None:
            return self._news_of_event(message, message.event)
        state, is_new = message.data.get("state"), message.type != CUT_OFF
        match message.type:
            case "rpc_ready":
                is_new, self._is_greeted = not self._is_greeted, True
                self._state = str(state)
                self.must_wake = self.call != "" and self._state == ASLEEP
            case "state":
                is_new, self._state = self._state != state, str(state)
            case "question" | "approval_request":
                is_new = message.request not in self._open
                self._open.add(message.request)
            case "request_closed":
                is_new = message.request in self._open
                self._open.discard(message.request)
        return message if is_new else None

    def _news_of_event(self, message: RunMessage, event: Event) -> RunMessage | None:
        if isinstance(event.data, OutputDelta):
            return self._rest_of_text(message, event, event.data)
        if message.number is None:
            return message
        if message.number <= self._entry:
            return None
        self._entry = message.number
        if event.type in (ModelAnswered.type, AnswerDiscarded.type):
            self._texts = {key: text for key, text in self._texts.items() if key[0] != event.agent}
        return message

    def _rest_of_text(self, message: RunMessage, event: Event, piece: OutputDelta) -> RunMessage | None:
        """The new part of a text: a piece, or the rest of the whole text that follows a break."""
        key = (event.agent, event.path, piece.field, piece.number)
        known, text = self._texts.get(key, ""), piece.text
        if not message.data["event"].get("so_far"):
            self._texts[key] = known + text
            return message
        self._texts[key] = text
        if not text.startswith(known):
            return message
        rest = {name: value for name, value in message.data["event"].items() if name != "so_far"} | {
            "text": text[len(known) :]
        }
        return RunMessage(message.type, {**message.data, "event": rest}, Event.of_data(rest)) if rest["text"] else None

    def settle(self, request: str) -> None:
        """A request was answered; were it asked again, that is new."""
        self._open.discard(request)

    # ------------------------------------------------------------ the end

    def _note_end(self, message: RunMessage) -> None:
        data = message.event.data if message.event is not None else None
        if isinstance(data, CallStarted) and self.call is None:
            self.call = data.call
        elif isinstance(data, CallEnded) and self.call and data.call == self.call:
            self.ended, self.is_over = data, True
        elif message.type == FAILED:
            self._failure, self.is_over = message.data, True
        elif self._state in OVER:
            # One that was over from the first has ended with the last entry of its journal.
            self.is_over = message.type == STATE or isinstance(data, RunEnded)

    def result(self) -> Any:
        """The result of the call. Raises RemoteCallError where it failed, or the run has ended before it."""
        ended = self.ended
        if ended is None:
            raise self._early_end()
        if ended.ok:
            return unless_omitted(ended.result)
        code = "failed"
        if unless_omitted(ended.aborted, False):
            code = "timed_out" if unless_omitted(ended.timed_out, False) else "cancelled"
        text = unless_omitted(ended.error, "") or f"`{ended.name}` was {code.replace('_', ' ')}"
        help, report = unless_omitted(ended.help), unless_omitted(ended.report, "")
        kind = unless_omitted(ended.code, "")
        raise RemoteCallError(text, run=self.run, code=code, help=help, report=report, failure_code=kind)

    def _early_end(self) -> RemoteCallError:
        if self._failure:
            text, report = (str(self._failure.get(name, "")) for name in ("error", "report"))
            return RemoteCallError(text or "the session failed", run=self.run, code="session_failed", report=report)
        how = {"cancelled": "was cancelled", "interrupted": "was interrupted"}.get(self._state, "has ended")
        help = "Look at it with `koi runs show` where the service runs."
        code = "cancelled" if self._state == "cancelled" else "session_failed"
        message = f"the run `{self.run}` {how} before its call gave a result"
        return RemoteCallError(message, run=self.run, code=code, help=help)
