"""A call of a handler: its work in a task of its own, and the news of it for the request that waits for it."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal

from koi_lang.errors import AgentError
from koi_lang.events import ActionStarted, Event, HandlerStarted, ModelAsked
from koi_lang.mcp_server.approval_form import decision_of, form_of, text_of
from koi_lang.runtime.host import ApprovalDecision, ApprovalRequest, NobodyToAskError

# How long a client may take to bring an answer, before its call goes on without one.
ANSWER_S = 600.0
# The field of a form that is a single question.
ANSWER = "answer"

Level = Literal["debug", "info", "notice", "warning", "error"]


@dataclass(frozen=True, slots=True)
class StepBegun:
    """Something was begun."""

    text: str


@dataclass(frozen=True, slots=True)
class LineWritten:
    """A line was printed or logged."""

    level: Level
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    """A person is asked; the answers are put into a future, which is cancelled when nobody waits for them any more.

    Attributes:
        form: a JSON Schema of the fields; the answers have their names.
    """

    text: str
    form: Mapping[str, Any]
    answer: asyncio.Future[dict[str, Any] | None]

    def settle(self, answer: dict[str, Any] | NobodyToAskError | None) -> None:
        """Give the answers, None where the person declines, or say why there are none."""
        if self.answer.done():
            return
        if isinstance(answer, NobodyToAskError):
            self.answer.set_exception(answer)
        else:
            self.answer.set_result(answer)


@dataclass(frozen=True, slots=True)
class CallSucceeded:
    """The work gave a value."""

    value: Any


@dataclass(frozen=True, slots=True)
class CallFailed:
    """The work ended with an error."""

    error: BaseException


News = StepBegun | LineWritten | Question | CallSucceeded | CallFailed
calling: ContextVar[ExposedCall | None] = ContextVar("koi_mcp_call", default=None)


@dataclass(slots=True, eq=False)
class ExposedCall:
    """One call.

    Attributes:
        asks: whether the client can ask a person.
        approves: whether that person says what may be done on this machine.
        id: names the call where a client has to come back to it; cannot be guessed.
        news: what happens, in order; the last is Done or Failed.
        steps: how much progress was told.
        question: what the client is asked before it comes back.
        task: carries out the work.
    """

    asks: bool
    approves: bool = False
    id: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    news: asyncio.Queue[News] = field(default_factory=asyncio.Queue)
    steps: int = 0
    question: Question | None = None
    task: asyncio.Task[None] | None = None

    async def carry_out(self, work: Callable[[], Awaitable[Any]]) -> None:
        """Do the work; whatever comes of it is news."""
        try:
            self.news.put_nowait(CallSucceeded(await work()))
        except asyncio.CancelledError:
            self.news.put_nowait(CallFailed(AgentError("the call was ended before it was done")))
            raise
        except (Exception, SystemExit) as error:  # told to the client; a program cannot end its server
            self.news.put_nowait(CallFailed(error))

    def end(self) -> None:
        """Cancel the work if it is not over."""
        if self.task is not None:
            self.task.cancel()

    async def ask(self, text: str, options: Sequence[str]) -> str:
        """The answer of the person at the client. Raises NobodyToAskError."""
        choices = {"enum": list(dict.fromkeys(options))} if options else {}
        field = {"type": "string", "title": "Answer", **choices}
        answers = await self.fill(text, {"type": "object", "properties": {ANSWER: field}, "required": [ANSWER]})
        if not answers:
            raise NobodyToAskError(f"the question was not answered: {text}")
        return str(answers.get(ANSWER, ""))

    async def fill(self, text: str, form: Mapping[str, Any]) -> dict[str, Any] | None:
        """The answers of the person at the client to a form; None when they decline. Raises NobodyToAskError."""
        if not self.asks:
            raise NobodyToAskError(f"nobody can answer: {text}", help="Use a client that supports elicitation.")
        question = Question(text, form, asyncio.get_running_loop().create_future())
        self.news.put_nowait(question)
        try:
            async with asyncio.timeout(ANSWER_S):
                return await question.answer
        except TimeoutError:
            raise NobodyToAskError(f"nobody answered within {ANSWER_S:g} s: {text}") from None


class ClientHost:
    """The client as the host of a run: output is logged, questions go to whoever made the call they belong to."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log

    def print(self, text: str) -> None:
        """A line of output."""
        self._tell("info", text)

    def log(self, text: str) -> None:
        """A line that is not output."""
        self._tell("notice", text)

    def _tell(self, level: Level, text: str) -> None:
        self._log(text)
        call = calling.get()
        if call is not None:
            call.news.put_nowait(LineWritten(level, text))

    async def ask(self, question: str, options: Sequence[str] = ()) -> str:
        """Ask through the client. Raises NobodyToAskError."""
        return await _call_to_ask(question).ask(question, options)

    async def fill(self, question: str, form: Mapping[str, Any]) -> dict[str, Any] | None:
        """Have a form filled in through the client. Raises NobodyToAskError."""
        return await _call_to_ask(question).fill(question, form)

    async def approve(self, request: ApprovalRequest) -> ApprovalDecision:
        """Ask the person at the client that has started this server; others have no say about this machine."""
        call = calling.get()
        if call is None or not call.approves:
            return ApprovalDecision("no")
        return decision_of(await call.fill(text_of(request), form_of(request)))

    async def secret(self, name: str) -> str:
        """Refuse: secrets do not go through clients."""
        raise NobodyToAskError(f"nobody can be asked for `{name}`", help="Set it in the environment of the server.")


def _call_to_ask(question: str) -> ExposedCall:
    """The call through which its client can be asked. Raises NobodyToAskError."""
    call = calling.get()
    if call is None:
        raise NobodyToAskError(f"nobody can answer outside of a call: {question}")
    return call


def follow(event: Event) -> None:
    """Make progress of an event that happens in a call."""
    call, text = calling.get(), step_of(event)
    if call is not None and text is not None:
        call.news.put_nowait(StepBegun(text))


def step_of(event: Event) -> str | None:
    """An event as a step of progress; None for one that is no step."""
    match event.data:
        case HandlerStarted(event=name):
            return f"{event.agent}.{name}"
        case ModelAsked():
            return f"{event.agent} thinks"
        case ActionStarted(intent=intent):
            return f"{event.agent}: {intent}"
    return None
