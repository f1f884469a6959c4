"""A call of a handler: its work in a task of its own, and the news of it for the request that waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from time import time
from typing import Any, Literal, TypeAlias

from koi_lang.errors import AgentError
from koi_lang.events import ActionStarted, Event, HandlerStarted, ModelAsked
from koi_lang.runtime.host import Approval, ApprovalDecision, ApprovalRequest, NobodyToAskError, visible, wish

# How long a client may take to bring an answer, before its call goes on without one.
ANSWER_S = 600.0
# The field of a form that is a single question, and the key of a question whose form has no `$id`.
ANSWER, FORM_ID = "answer", "$id"

# A JSON object: a form, or the answers to one.
Fields: TypeAlias = dict[str, Any]
# The fields of the form by which a person allows something, and what they may answer.
DECISION, REASON = "decision", "reason"
YES = "yes"
ALWAYS = "yes, from now on"
NO = "no"
MEANINGS: Mapping[str, Approval] = {YES: "yes", ALWAYS: "always", NO: "no"}

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
        key: by which a client that comes back with answers says which one this is.
    """

    text: str
    form: Mapping[str, Any]
    answer: asyncio.Future[Fields | None]
    key: str

    def settle(self, answer: Fields | NobodyToAskError | None) -> None:
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
        id: names the call within its session, where a client comes back to it; empty until it is known.
        name: what is called, as `Agent.event`, of a call whose value is not a result of the protocol yet.
        news: what happens, in order; the last is CallSucceeded or CallFailed.
        steps: how much progress was told.
        step: what was begun last.
        asked: how many questions there were.
        questions: what the client is asked before it comes back, by their keys.
        outcome: how it ended, once somebody has taken that from the news.
        is_held: whether it goes on although the request that began it is over.
        is_cancelled: whether the client has cancelled it after that.
        created, updated: when it began and when something happened in it last, in seconds since the epoch.
        task: carries out the work.
    """

    asks: bool
    approves: bool = False
    id: str = ""
    name: str = ""
    news: asyncio.Queue[News] = field(default_factory=asyncio.Queue)
    steps: int = 0
    step: str = ""
    asked: int = 0
    questions: dict[str, Question] = field(default_factory=dict)
    outcome: CallSucceeded | CallFailed | None = None
    is_held: bool = False
    is_cancelled: bool = False
    created: float = field(default_factory=time)
    updated: float = field(default_factory=time)
    task: asyncio.Task[None] | None = None

    def tell(self, news: News) -> None:
        """Add to the news; nobody reads lines while no request waits for the call."""
        self.updated = time()
        if not (self.is_held and isinstance(news, LineWritten)):
            self.news.put_nowait(news)

    def take_news(self) -> None:
        """Bring questions, the last step and the end up to date, while no request waits for the call."""
        while not self.news.empty():
            self.take(self.news.get_nowait())

    def take(self, news: News) -> None:
        """Update the state by one piece of news."""
        match news:
            case StepBegun(text):
                self.steps, self.step = self.steps + 1, text
            case Question():
                self.questions[news.key] = news
            case CallSucceeded() | CallFailed():
                self.outcome = news

    def answer(self, answers: dict[str, Fields | None]) -> None:
        """Settle questions with the answers that have their keys; each is taken out, and counts once."""
        for key in self.questions.keys() & answers.keys():
            self.questions.pop(key).settle(answers.pop(key))

    async def carry_out(self, work: Callable[[], Awaitable[Any]]) -> None:
        """Do the work; its result is news."""
        try:
            self.tell(CallSucceeded(await work()))
        except asyncio.CancelledError:
            self.tell(CallFailed(AgentError("the call was ended before it was done")))
            raise
        except (Exception, SystemExit) as error:  # told to the client; a program cannot end its server
            self.tell(CallFailed(error))

    def end(self) -> None:
        """Cancel the work if it is not over."""
        if self.task is not None:
            self.task.cancel()

    async def ask(self, text: str, options: Sequence[str]) -> str:
        """The answer of the person at the client. Raises NobodyToAskError."""
        answers = await self.fill(text, answer_form(options))
        if not answers or ANSWER not in answers:
            raise NobodyToAskError(f"the question was not answered: {text}")
        return str(answers[ANSWER])

    async def fill(self, text: str, form: Mapping[str, Any]) -> Fields | None:
        """The answers of the person at the client to a form; None when they decline. Raises NobodyToAskError."""
        if not self.asks:
            raise NobodyToAskError(f"nobody can answer: {text}", help="Use a client that supports elicitation.")
        self.asked += 1
        usual = ANSWER if self.asked == 1 else f"{ANSWER}-{self.asked}"
        key = str(form.get(FORM_ID) or usual)
        question = Question(text, form, asyncio.get_running_loop().create_future(), key)
        self.tell(question)
        try:
            async with asyncio.timeout(ANSWER_S):
                return await question.answer
        except TimeoutError:
            raise NobodyToAskError(f"nobody answered within {ANSWER_S:g} s: {text}") from None


def answer_form(options: Sequence[str]) -> Fields:
    """The form that is a single question."""
    choices = {"enum": list(dict.fromkeys(options))} if options else {}
    field = {"type": "string", "title": "Answer", **choices}
    return {"type": "object", "properties": {ANSWER: field}, "required": [ANSWER]}


class ClientHost:
    """The client as the host of a run: output is logged, questions go to the caller they belong to."""

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
            call.tell(LineWritten(level, text))

    async def ask(self, question: str, options: Sequence[str] = ()) -> str:
        """Ask through the client. Raises NobodyToAskError."""
        return await _call_to_ask(question).ask(question, options)

    async def fill(self, question: str, form: Mapping[str, Any]) -> Fields | None:
        """Have a form filled in through the client. Raises NobodyToAskError."""
        return await _call_to_ask(question).fill(question, form)

    async def approve(self, request: ApprovalRequest) -> ApprovalDecision:
        """Ask the person at the client that has started this server; others have no say about this machine.

        Raises:
            NobodyToAskError: there is none, or the client cannot ask.
        """
        call = calling.get()
        if call is None or not call.approves:
            raise NobodyToAskError(f"nobody can be asked for permission to {request.what}")
        return decision_of(await call.fill(approval_text(request), approval_form(request)))

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
        call.tell(StepBegun(text))


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


# ---------------------------------------------------------------- approvals


def approval_form(request: ApprovalRequest) -> Fields:
    """The form of an approval, as a JSON Schema."""
    choices = [YES, ALWAYS, NO] if request.always else [YES, NO]
    decision = {"type": "string", "title": "Allow?", "enum": choices}
    reason = {"type": "string", "title": "Why not?", "description": "The model is told it."}
    return {"type": "object", "properties": {DECISION: decision, REASON: reason}, "required": [DECISION]}


def approval_text(request: ApprovalRequest) -> str:
    """The request for an approval: the user, the agent, the action and its changes, with no line that imitates ours."""
    detail = f": {visible(request.detail)}" if request.detail else ""
    lines = [f"{visible(wish(request.what, request.agent))}{detail}"]
    if request.chain:
        lines.append(f"asked for by {' → '.join(f'`{visible(name)}`' for name in request.chain)}")
    lines += [f"| {visible(line)}" for line in request.preview.splitlines()]
    if request.always:
        lines.append(f"`{ALWAYS}` allows {visible(request.always)}")
    return "\n".join(lines)


def decision_of(answers: Mapping[str, Any] | None) -> ApprovalDecision:
    """The decision in the answers to the form; any unclear answer permits nothing."""
    given = answers or {}
    reason = given.get(REASON)
    answer = MEANINGS.get(str(given.get(DECISION)), "no")
    return ApprovalDecision(answer, reason if isinstance(reason, str) and answer == "no" else "")
