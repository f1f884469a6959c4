"""`/mcp` of a service: clients of MCP, whose calls take place in hosted sessions of their users."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Coroutine, Iterable, Mapping
from contextlib import suppress
from contextvars import Context
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from mcp.server.request_state import RequestStateSecurity

from koi_lang.errors import AgentError, KoiError
from koi_lang.events import CallEnded, Event, LinePrinted
from koi_lang.http_server.address import Address
from koi_lang.mcp_server.call import (
    ANSWER,
    CallFailed,
    CallSucceeded,
    ExposedCall,
    Fields,
    LineWritten,
    Question,
    StepBegun,
    answer_form,
    step_of,
)
from koi_lang.mcp_server.completions import GivenArguments
from koi_lang.mcp_server.http import app_of
from koi_lang.mcp_server.server import McpService, server_of
from koi_lang.mcp_server.service import service_of
from koi_lang.mcp_server.sessions import OpenSession, PromptCall, UnknownCallError, Work, start_task, try_to_tell
from koi_lang.mcp_server.watching import FindAgent, Watch
from koi_lang.runtime.agents.agent import Agent
from koi_lang.runtime.journal.calls import SERVE
from koi_lang.service.feed import EVENT, Numbered, view_all
from koi_lang.service.host import SessionHost
from koi_lang.service.hosted import ANSWER_S, HostedSession
from koi_lang.service.programs import ServedProgram
from koi_lang.service.run_listing import read_call_end
from koi_lang.service.unfinished import has_open_call
from koi_lang.service.user_view import explain_to_user
from koi_lang.service.users import User
from koi_lang.sessions import calls
from koi_lang.sessions.calls import begin_prompt, handler_named
from koi_lang.sessions.client_host import APPROVAL, CLOSED, QUESTION, Message
from koi_lang.sessions.held_call import HeldCall
from koi_lang.sessions.prepared import Prepared
from koi_lang.sessions.session import Session
from koi_lang.sessions.trust import signer

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.types import Receive, Scope, Send

LOG = logging.getLogger("koi_lang")
T = TypeVar("T")
WAITS = "This waits until you answer it on the page of the service, or by its API."


class HostedClient:
    """An `McpSession` in a hosted session of a user, which begins with the first call.

    The calls of a client are carried out one after the other, as those of other clients of a hosted session. Nothing of
    a call to which a client comes back is kept here: the hosted session has its questions, and the journal its end, so
    it may come back to another process as well.

    Args:
        group: of what is carried out for the client.
        handle: the id of the hosted session that goes on; empty for a new one.

    Raises:
        UnknownCallError: the user has no such session of the program.
    """

    def __init__(self, host: SessionHost, user: User, program: str, group: asyncio.TaskGroup, handle: str) -> None:
        self.is_kept = False
        self.watch, self.given = Watch(lambda work: self._start(try_to_tell(work))), GivenArguments()
        self._host = host
        self._user = user
        self._program = program
        self._group = group
        self._session: HostedSession | None = None
        # Lines that are printed and names of steps are all that is passed on.
        self.view = view_all
        self._opening, self._turn = asyncio.Lock(), asyncio.Lock()
        self._calls: set[ExposedCall] = set()
        # The call that is carried out, here and in the hosted session, and its questions by the ids of requests.
        self._current: ExposedCall | None = None
        self._held: HeldCall | None = None
        self._questions: dict[str, Question] = {}
        if not handle:
            return
        if not host.may_see(handle, user) or host.find(handle, user).row.program != program:
            raise UnknownCallError
        self._session = host.find(handle, user)
        self._session.feed.join(self)

    @property
    def handle(self) -> str:
        """The id of the hosted session; empty before its first call."""
        return "" if self._session is None else self._session.id

    async def begin(self, work: Work, *, asks: bool, approves: bool = False) -> ExposedCall:
        """Start a call; actions that need approval wait for the user, on the page of the service."""
        call = ExposedCall(asks)
        call.task = self._start(call.carry_out(lambda: self._carry_out(call, work)))
        self._calls.add(call)
        call.task.add_done_callback(lambda _: self._calls.discard(call))
        return call

    async def _carry_out(self, call: ExposedCall, work: Work) -> Any:
        def begin(session: Session) -> HeldCall:
            # By the names of what is called: the session stays with the program that it was begun with.
            if isinstance(work, PromptCall):
                return begin_prompt(session, work.name, work.arguments)
            agent, event = handler_named(session, f"{work.agent.about.name}.{work.event}", is_private=True)
            return session.begin_handler(agent, event, work.payload)

        async with self._turn:
            session = await self._open(f"{work.name} (MCP)")
            self._current = call
            try:
                self._held = await session.begin_call(begin)
                call.id = self._held.id
                value = await session.result_of(self._held)
            finally:
                self._current = self._held = None
                self._stop_asking(*self._questions)
        return work.as_result(value)

    async def _open(self, title: str) -> HostedSession:
        """The hosted session, a new one where there is none, or where somebody has deleted it. Raises KoiError."""
        async with self._opening:
            if self._session is None or not self._host.may_see(self._session.id, self._user):
                self._session, _ = await self._host.start(self._user, self._program, title=title)
                self._session.feed.join(self)
        return self._session

    def hold(self, call: ExposedCall) -> None:
        """Have the call go on although its request is over; from now on nobody waits for it here."""
        call.is_held = True
        if self._held is not None and call.task is not None:
            self._held.waiting += 1  # the client, who is to come back
            call.task.cancel()

    async def rejoin(self, id: str) -> ExposedCall:
        """The call of the session as it stands, awake or asleep. Raises UnknownCallError."""
        assert self._session is not None, "a client comes back with a handle"
        session = self._session
        self._current = call = ExposedCall(asks=True, id=id, created=session.row.created)
        call.questions = {
            each["id"]: self._question(each) for each in session.feed.requests if each["type"] == QUESTION
        }
        journal, usage = session.feed.journal, session.listing().usage
        if session.call is None and not call.questions and await asyncio.to_thread(has_open_call, journal):
            await session.wake()  # its process was killed, and the service has not come to it yet
        end = await asyncio.to_thread(read_call_end, journal, usage.last_call, id)
        if end:
            self._take_end(call, end)
        elif (session.call is not None and session.call.id != id) or (session.call is None and not call.questions):
            raise UnknownCallError
        call.updated = usage.updated
        return call

    def _take_end(self, call: ExposedCall, end: Mapping[str, Any]) -> None:
        call.name, call.is_cancelled = end["name"], bool(end.get("aborted"))
        error = AgentError(end.get("error", "the call was cancelled"), help=end.get("help"))
        call.tell(CallSucceeded(end.get("result")) if end["ok"] else CallFailed(error))

    async def cancel(self, call: ExposedCall) -> None:
        """End the call of the session."""
        if self._session is not None and self._session.call is not None and self._session.call.id == call.id:
            await self._session.perform(calls.abort)

    def leave(self) -> bool:
        """Note that a request is over; the hosted session is there for a client that comes back."""
        return False

    async def watch_agent(self, agent: type[Agent]) -> FindAgent:
        """Where to find an agent of the run, which is another one when the session has slept. Raises KoiError."""
        await (await self._open(f"{agent.about.name} (MCP)")).wake()
        return lambda: None if self._session is None else self._session.find_agent(agent.about.name)

    def end(self) -> None:
        """End the calls that are under way and not held; the hosted session stays, and sleeps."""
        for call in self._calls:
            if not call.is_held:
                call.end()
        if self._session is not None:
            self._session.feed.leave(self)
            self._start(self._sleep(self._session))

    async def _sleep(self, session: HostedSession) -> None:
        async with self._turn:
            await session.sleep_at_rest()

    # ------------------------------------------------------------ what is told of the session

    def add(self, item: Numbered) -> None:
        """Pass a message of the session on to the client of its call."""
        message: Message = json.loads(item[1])
        call, kind = self._current, message["type"]
        if kind == EVENT:
            event = Event.of_data(message["event"])
            self.watch.look(event)
            step = step_of(event)
            if call is not None and isinstance(event.data, LinePrinted):
                call.tell(LineWritten("info", event.data.message))
            elif call is not None and step is not None:
                call.tell(StepBegun(step))
            elif call is not None and call.task is None and isinstance(event.data, CallEnded):
                self._take_end(call, message["event"])
        elif kind == CLOSED:
            self._stop_asking(message["id"])
        elif call is not None and kind == "log" and self._user.is_admin:
            call.tell(LineWritten("notice", message["text"]))
        elif call is not None and kind == QUESTION and call.asks and not message.get("secret"):
            call.tell(self._question(message))
        elif call is not None and kind in (QUESTION, APPROVAL):
            call.tell(LineWritten("notice", f"{message.get('question') or message['what']} {WAITS}"))

    def _question(self, request: Message) -> Question:
        """A question to the client; the first answer is valid, and a declined one has no answer."""
        id, form = str(request["id"]), answer_form(request["options"])

        def pass_on(answer: asyncio.Future[Fields | None]) -> None:
            self._questions.pop(id, None)
            if answer.cancelled():
                return
            answers = None if answer.exception() else answer.result()
            self._start(self._answer(id, str(answers[ANSWER]) if answers and ANSWER in answers else None))

        question = Question(request["question"], form, asyncio.get_running_loop().create_future(), id)
        question.answer.add_done_callback(pass_on)
        self._questions[id] = question
        return question

    async def _answer(self, request: str, answer: str | None) -> None:
        """Answer a question of the session; None where the client gives no answer."""
        assert self._session is not None, "it asks"
        with suppress(KoiError):  # somebody else has answered, or the call has ended
            await self._session.perform(calls.answer, request=request, answer=answer, cancelled=answer is None)

    def _stop_asking(self, *requests: str) -> None:
        for request in requests:
            if request in self._questions:
                self._questions.pop(request).answer.cancel()

    def _start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        return start_task(self._group, work, Context())


class LatestService:
    """The program as it was loaded last for a user; its earlier version where that exposes nothing."""

    def __init__(self, program: ServedProgram, user: User, open_session: OpenSession) -> None:
        self._program = program
        self._user = user
        self._open_session = open_session
        self._ready = program.require_ready()
        self._service = self._make(self._ready)

    def __call__(self) -> McpService:
        """The present service."""
        ready = self._program.require_ready()
        if ready is not self._ready:
            self._ready = ready
            with suppress(KoiError):
                self._service = self._make(ready)
        return self._service

    def _make(self, ready: Prepared) -> McpService:
        service = service_of(ready, LOG.warning, open_session=self._open_session)
        if self._user.is_admin:
            return service
        redact = ready.redactor()
        # As on the pages, playbooks, sources and reports of errors are for admins.
        return replace(
            service,
            sources=replace(service.sources, files={}),
            tools={name: replace(offer, has_playbook=False) for name, offer in service.tools.items()},
            explain=lambda error: redact(explain_to_user(error)),
        )


class UserApps:
    """An ASGI app that hands a request to the app of its user: nobody can use or take all sessions of another."""

    def __init__(self, apps: Mapping[str, Starlette]) -> None:
        self._apps = apps

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        await self._apps[scope["state"]["user"].name](scope, receive, send)


def apps_of(
    host: SessionHost, program: ServedProgram, users: Iterable[User], address: Address, path: str
) -> dict[str, Starlette]:
    """The apps that serve a program at a path, by the names of users; each needs its lifespan. Raises KoiError."""
    if not program.options.debug:
        logging.getLogger("mcp").addHandler(logging.NullHandler())
    apps = {}
    for user in users:
        latest = LatestService(program, user, partial(HostedClient, host, user, program.name))
        # A client may come back to a service that was started again, for as long as its question waits.
        audience = f"{program.name} for {user.name}"
        sealing = RequestStateSecurity(keys=[signer(host.folder, (SERVE,)).key], ttl=ANSWER_S, audience=audience)
        apps[user.name] = app_of(server_of(latest(), latest, sealing), address, path)
    return apps
