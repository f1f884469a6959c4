"""One session of a service: awake with a run in this process, or asleep as the journal of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from koi_lang.errors import JournalError, KoiError, ProgramChangedError, UntrustedJournalError, raised_as
from koi_lang.events import CallEnded, CallStarted
from koi_lang.program.error_report import message as message_of
from koi_lang.rpc.dispatcher import Dispatcher, refusal
from koi_lang.runtime.actions.client_tools import AgentFields
from koi_lang.runtime.agents.agent import Agent
from koi_lang.runtime.host import visible
from koi_lang.runtime.journal.entries import JournalEntry, json_line
from koi_lang.runtime.journal.reader import read_header
from koi_lang.runtime.journal.store import path_of
from koi_lang.runtime.journal.summary import summarise
from koi_lang.runtime.journal.totals import RunUsage
from koi_lang.service.accounts import Accounts
from koi_lang.service.errors import ServiceError
from koi_lang.service.feed import Feed
from koi_lang.service.program_edits import edited_file
from koi_lang.service.programs import ServedProgram
from koi_lang.service.run_hooks import RunHooks
from koi_lang.service.run_listing import RESTING, RunListing, outcome_of, read_handler, read_outcome
from koi_lang.service.slots import SessionSlots
from koi_lang.service.store import SessionRow, SessionTable
from koi_lang.sessions.calls import Control, P, T, agent_named
from koi_lang.sessions.client_host import Message
from koi_lang.sessions.continuation import Continuation
from koi_lang.sessions.earlier_session import read_recorded
from koi_lang.sessions.errors import SessionError
from koi_lang.sessions.held_call import HeldCall
from koi_lang.sessions.messages import GreetingMessage, LogMessage, StateMessage
from koi_lang.sessions.prepared import Prepared
from koi_lang.sessions.session import GRACE_S, Session
from koi_lang.system.open_folders import STATE_FOLDER

HostedState: TypeAlias = Literal["working", "waiting", "paused", "idle", "asleep", "failed"]
# Commands that put another run in the place of that of the session.
OF_OTHER_RUNS = ("new_session", "resume_session", "branch", "quit")
ANSWERING = ("answer", "approve")
# How long people have to answer; sessions that wait for them sleep.
ANSWER_S = 30 * 86400.0
# How long what is cancelled may clean up: a second later nothing of it is left.
CLEAN_UP_S = 0.5
# How many times as long as others a session that waits for somebody stays awake.
WAITING = 4
# How long a session that wakes has to ask again what it has asked before.
ASK_AGAIN_S = 10.0
# Characters of a title.
MAX_TITLE_CHARS = 80
SESSIONS = "sessions"
FILES = "files"


# The record that the run of a session continues.
Opening: TypeAlias = Callable[[Prepared], Continuation]
# Begins a call in the run of a session. Raises SessionError.
BeginCall: TypeAlias = Callable[[Session], HeldCall]


def session_folder(folder: Path, run: str) -> Path:
    """The private folder of a session."""
    return folder / STATE_FOLDER / SESSIONS / run


def misfit_error(run: str, error: ProgramChangedError) -> ServiceError:
    """The error of a session that does not fit its program any more."""
    help = f"Go on in a branch from before that: `POST api/runs/{run}/branch`."
    return ServiceError("program_changed", error.message, help=help)


def _as_koi_error(error: Exception) -> KoiError:
    if isinstance(error, UntrustedJournalError):  # a client has no `--trust`
        help = "Whoever runs the service can agree to its folder with `koi trust`, and start it again."
        return UntrustedJournalError(error.message, help=help)
    return error if isinstance(error, KoiError) else KoiError(message_of(error))


def _has(requests: Iterable[Message], id: Any) -> bool:
    return any(request["id"] == id for request in requests)


@dataclass(frozen=True, slots=True)
class HostLimits:
    """The limits of a service.

    Attributes:
        accounts: who pays for what.
        slots: how many sessions are awake.
        hooks: hears what is told of sessions; None where nobody wants to know.
        sessions: where what is kept of them stands.
        note: takes a line for the operator.
    """

    accounts: Accounts
    slots: SessionSlots
    hooks: RunHooks | None
    sessions: SessionTable
    note: Callable[[str], None]


class HostedSession:
    """A session with an owner.

    Attributes:
        row: what is kept of it.
        id: that of its run.
        owner: the name of the user whose it is.
        files: the folder of its files.
        feed: what is told of it.
        used: when it was used last, in seconds of the loop's clock.
        misfit: where it does not fit its program as that is now; None where it does, or nobody has tried.
        is_continuing: whether its call was under way when its process ended, and is about to go on in this one.
    """

    def __init__(
        self,
        row: SessionRow,
        program: ServedProgram,
        group: asyncio.TaskGroup,
        limits: HostLimits,
        note_awake: Callable[[str], None],
    ) -> None:
        self.row = row
        self.program = program
        self._group = group
        self.id, self.owner = row.run, row.owner
        self._limits, self._note_awake = limits, note_awake
        self._folder = program.options.folder
        self.files = session_folder(self._folder, self.id) / FILES
        self.feed = Feed(row.run, path_of(self._folder, row.run), program.redact, self._hear)
        self._dispatcher: Dispatcher | None = None
        self._session: Session | None = None  # also while it is being opened
        self._last_end: JournalEntry | None = None  # of the call that was begun last
        self._waking = asyncio.Lock()
        self._told_state: HostedState = "asleep"
        self._handling = 0
        # Whether it has spent nothing yet, and whether its row is on the disk for certain.
        self._is_new = self._is_stored = self._is_suspended = False
        self._news = asyncio.Event()
        # The version of the program that it was with last in this process, and one that it does not fit.
        self._version = self._misfit_version = ""
        self.misfit: ProgramChangedError | None = None
        self.is_continuing = False
        self.used = asyncio.get_running_loop().time()

    @property
    def call(self) -> HeldCall | None:
        """The current call, also while the session wakes; None for none."""
        return None if self._session is None else self._session.current_call

    def find_agent(self, name: str) -> Agent | None:
        """An agent of its run; None while it sleeps. Raises SessionError where the program has no such agent."""
        session = None if self._dispatcher is None else self._dispatcher.session
        return session.run.agent(agent_named(session, name)) if session is not None and session.is_open else None

    def types_of_state(self, name: str) -> Mapping[str, Mapping[str, Any]]:
        """The JSON Schemas of those fields of an agent's state that declare a type. Raises SessionError."""
        return {} if self._session is None else agent_named(self._session, name).about.state_types

    def state_of_agents(self, places: Iterable[str]) -> AgentFields:
        """The state of agents, `Main`, or fields of it, `Main.recipe`, without secrets; empty while it sleeps."""
        state: dict[str, dict[str, object]] = {}
        session = None if self._dispatcher is None else self._dispatcher.session
        agents = {} if session is None else {agent.about.name: agent for agent in session.ready.agents}
        for name, _, field in (place.partition(".") for place in places):
            if session is None or not session.is_open or name not in agents:
                continue
            fields = session.run.state_of(agents[name])
            state.setdefault(name, {}).update({each: fields[each] for each in fields if field in ("", each)})
        state_of_agents: AgentFields = json.loads(json_line(state, self.program.redact))
        return {name: fields for name, fields in state_of_agents.items() if fields}

    @property
    def state(self) -> HostedState:
        """The state of the session."""
        if self._dispatcher is None:
            return "waiting" if self.feed.requests else "working" if self.is_continuing else "asleep"
        session = self._dispatcher.session
        if not session.is_open:
            return "failed"
        if self.feed.requests:
            return "waiting"
        if session.current_call is None:
            return "idle"
        return "paused" if session.run.is_paused else "working"

    def _hear(self, message: Message) -> None:
        if self._limits.hooks is not None:
            self._limits.hooks.hear(self.row, message)
        self._note_state(message)

    def _note_state(self, message: Message) -> None:
        """Tell that something else goes on than before, where that is so."""
        state = self.state
        if state != self._told_state:
            self._told_state = state
            self.feed.tell(StateMessage(type="state", state=state))
        if state == "idle":
            self._limits.slots.tell_room()

    def greeting(self) -> GreetingMessage:
        """The first message to a follower."""
        row = self.row
        greeting = GreetingMessage(type="rpc_ready", id=self.id, program=row.program, title=row.title, state=self.state)
        if self.misfit is not None:
            greeting["changed"] = self.misfit.message
        if self._dispatcher is not None:
            ready = self._dispatcher.ready()
            greeting["schema_version"], greeting["version"] = ready["schema_version"], ready["version"]
            greeting["agents"] = ready["agents"]
        return greeting

    # ------------------------------------------------------------ commands

    async def handle(self, message: Mapping[str, Any]) -> Message:
        """Carry out a command of `koi rpc` and give its response; one that sleeps wakes first."""
        if message.get("type") in OF_OTHER_RUNS:
            help = "Begin, branch and delete runs by requests of their own."
            told = SessionError("unknown_command", f"`{message['type']}` is no command of a session here", help=help)
            return refusal(told, message)
        request = message.get("request") if message.get("type") in ANSWERING else None
        try:
            async with self._in_use(request) as dispatcher:
                response = await dispatcher.handle(message, lambda response: None)
        except KoiError as error:
            return refusal(error, message)
        if response.get("success") and request is not None:
            self.feed.settle(str(request))
        if response.get("success") and message["type"] == "set_session_name":
            self.row = replace(self.row, title=response["data"]["name"][:MAX_TITLE_CHARS])
            self._limits.sessions.add(self.row)
        return response

    async def perform(self, control: Control[P, T], *args: P.args, **fields: P.kwargs) -> T:
        """Carry out a control of its session; one that sleeps wakes first. Raises KoiError."""
        request = fields.get("request")
        async with self._in_use(request) as dispatcher:
            result = await dispatcher.perform(control, *args, **fields)
        if request is not None:
            self.feed.settle(str(request))
        return result

    async def begin_call(self, begin: BeginCall) -> HeldCall:
        """Begin a call in its run; one that sleeps wakes first. Raises KoiError."""
        async with self._in_use() as dispatcher:
            return await dispatcher.begin_call(begin)

    @asynccontextmanager
    async def _in_use(self, request: object = None) -> AsyncIterator[Dispatcher]:
        """A context in which it is awake, and has asked a request that is answered now. Raises KoiError."""
        self.used = asyncio.get_running_loop().time()
        self._handling += 1
        try:
            dispatcher = await self.wake()
            if request is not None:
                await self._wait_until_asked(dispatcher, request)
            failure = dispatcher.session.error
            if isinstance(failure, ProgramChangedError):
                raise misfit_error(self.id, failure)
            yield dispatcher
        finally:
            self._handling -= 1
        self._note_state({})

    async def wait_for_rest(self, limit_s: float) -> None:
        """Wait until nothing is under way, or somebody is asked something, for so many seconds at most."""
        with suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                while (self.call is not None or self.is_continuing) and not self.feed.requests:
                    self._news.clear()
                    await self._news.wait()

    async def result_of(self, call: HeldCall) -> Any:
        """The result of a call that has just begun; cancelling this ends the call. Raises as the call does."""
        assert self._dispatcher is not None, "a call is under way"
        return await self._dispatcher.session.result_of(call)

    async def _wait_until_asked(self, dispatcher: Dispatcher, request: Any) -> None:
        """Wait until a woken session has repeated a request that is answered now."""
        client = dispatcher.session.client
        with suppress(TimeoutError):
            async with asyncio.timeout(ASK_AGAIN_S):
                while _has(self.feed.requests, request) and not _has(client.requests, request):
                    if not dispatcher.session.is_open:
                        return
                    self._news.clear()
                    await self._news.wait()

    def _tell(self, message: Message) -> None:
        """Publish a message of the session, except what is only caused by its sleep."""
        if self._is_suspended:
            return
        self.used = asyncio.get_running_loop().time()
        self.feed.tell(message)
        self._news.set()

    # ------------------------------------------------------------ waking and sleeping

    def end_continuing(self) -> None:
        """Note that its call goes on by now, or does not go on."""
        self.is_continuing = False
        self._news.set()
        self._note_state({})

    async def begin(
        self, opening: Opening, begin: BeginCall | None = None, edited: Path | None = None
    ) -> HeldCall | None:
        """Open the run of a new session, and begin a call in it. Raises KoiError.

        Args:
            opening: for a branch, what it goes on with.
            edited: the file of the edited version of its program that it is with; None for the program as it is.
        """
        self._handling += 1
        try:
            self._is_new = True
            if edited is not None:
                self._version = await asyncio.to_thread(self.program.load_version, str(edited))
            async with self._waking:
                await self._open(opening)
            assert self._dispatcher is not None, "it has been opened"
            return None if begin is None else begin(self._dispatcher.session)
        finally:
            self._handling -= 1
            self._note_state({})

    async def wake(self) -> Dispatcher:
        """Have it be where it was when it went to sleep. Raises KoiError."""
        async with self._waking:
            if self._dispatcher is None or not self._dispatcher.session.is_open:
                if self._session is not None:
                    await self._close()
                self._require_fit()
                with suppress(JournalError):  # of a journal that cannot be read opening it tells
                    header = read_header(self.feed.journal)
                    self._version = self._version or header.hash
                    edited = edited_file(self._folder, header)
                    if edited is not None and self._version not in self.program.versions:
                        await asyncio.to_thread(self.program.load_version, str(edited))
                try:
                    await self._open(lambda ready: read_recorded(ready, self.id))
                except ProgramChangedError as error:
                    self._note_misfit(error)
                    raise misfit_error(self.id, error) from error
                self._note_awake(self.id)
        assert self._dispatcher is not None, "it has been opened"
        return self._dispatcher

    def _note_misfit(self, error: ProgramChangedError) -> None:
        self.misfit, self._misfit_version = error, self.program.require_ready().version

    def _require_fit(self) -> None:
        """Raise ServiceError where it is known not to fit its program as that is now."""
        if self.misfit is None:
            return
        if self._misfit_version == self.program.require_ready().version:
            raise misfit_error(self.id, self.misfit)
        self.misfit = None

    async def _open(self, opening: Opening) -> None:
        """Open its run, which another task keeps open until it sleeps. Raises KoiError; nothing is left open then."""
        await self._limits.slots.take(self)
        if self._limits.hooks is not None:
            self._limits.hooks.begin(self.row)
        try:
            with raised_as(_as_koi_error):
                self.files.mkdir(parents=True, exist_ok=True)
                await self._begin_run(opening)
        except BaseException:
            await self._close()
            raise

    async def _begin_run(self, opening: Opening) -> None:
        payer = self._limits.accounts.of_session(self.id, self.owner, is_new=self._is_new)
        self._is_new = self._is_suspended = False
        version = self._version
        note, files = self.note, self.files
        ready = self.program.prepare_session(note, self.id, files, self._follow, payer, version, self.owner)
        version = self.program.version_of(version).version
        dispatcher = Dispatcher(ready, self._tell, answer_s=ANSWER_S)
        self._session = dispatcher.session
        self._session.clean_up_s = CLEAN_UP_S
        await self._session.begin_in(self._group, opening(ready))
        self._dispatcher = dispatcher
        self._version = version

    async def _close(self) -> None:
        """End its run; calls that are under way go on when the session wakes."""
        session = self._session
        try:
            if session is not None:
                self._is_suspended = session.current_call is not None
                await (session.suspend() if self._is_suspended else session.finish(GRACE_S))
                session.interrupt_run()
                await session.wait_for_end()
        finally:
            if session is not None and isinstance(session.error, ProgramChangedError):
                self._note_misfit(session.error)
            self._dispatcher = self._session = self._last_end = None
            self._limits.slots.free(self)
            if self._limits.hooks is not None:
                self._limits.hooks.end(self.row)
            self._limits.accounts.forget(self.id)
            self._news.set()
            self._note_state({})

    def _follow(self, entry: JournalEntry) -> None:
        """Publish an entry of its journal."""
        if not self._is_stored and entry.data.get("lasting"):
            self._store()
        self.used = asyncio.get_running_loop().time()
        self.feed.follow(entry)
        self._news.set()
        if entry.kind == CallStarted.type:
            self._last_end = None
        if entry.kind != CallEnded.type:
            return
        self._last_end = entry
        if not entry.data.get("ok") and not entry.data.get("aborted"):
            # The reference is the one that the person reads.
            error = self.program.redact(str(entry.data.get("error", "")).partition("\n")[0])
            self._limits.note(f"{self.id}-{entry.n}: `{entry.data.get('name')}` failed: {visible(error)}")
        if self._dispatcher is not None:
            for request in self.feed.requests:
                if not _has(self._dispatcher.session.client.requests, request["id"]):
                    self.feed.settle(request["id"])

    def _store(self) -> None:
        """Have its row on the disk, as the journal is, before something is done that lasts."""
        self._is_stored = True
        try:
            self._limits.sessions.add(self.row)
        except KoiError as error:
            self.note(error.message)

    def note(self, text: str) -> None:
        """Tell a line that is no output."""
        self.feed.tell(LogMessage(type="log", text=text))

    async def sleep(self) -> None:
        """Close its journal and end its run; open work continues with the next command."""
        async with self._waking:
            if self._session is not None:
                await self._close()

    @property
    def is_at_rest(self) -> bool:
        """Whether it is awake and has nothing to do."""
        return not self._handling and self.state == "idle"

    @property
    def is_waiting(self) -> bool:
        """Whether it waits for a person."""
        return self.state == "waiting"

    async def sleep_at_rest(self) -> None:
        """Have it sleep where it has nothing to do; a command that comes in between waits, and wakes it."""
        async with self._waking:
            if self.is_at_rest:
                await self._close()

    async def sleep_if_unused(self, idle_s: float) -> bool:
        """Have it sleep where nobody has used it for some seconds; gives whether it does now."""
        async with self._waking:
            if not self._is_unused(idle_s):
                return False
            await self._close()
        return True

    def _is_unused(self, idle_s: float) -> bool:
        # Something else may go on beside a question, of which nothing is told for long.
        patience = {"idle": idle_s, "waiting": WAITING * idle_s}.get(self.state)
        if self._dispatcher is None or self._handling or patience is None:
            return False
        return asyncio.get_running_loop().time() - self.used >= patience

    @property
    def is_awake(self) -> bool:
        """Whether it has a run in this process."""
        return self._dispatcher is not None

    def listing(self) -> RunListing:
        """The session as it is listed; its journal is read for that while it sleeps."""
        row, usage = self.row, RunUsage(self.row.created)
        session = self._session
        if session is not None and session.is_open and session.writer is not None:
            usage = session.writer.usage
        else:
            with suppress(JournalError):
                usage = summarise(self.feed.journal).usage
        is_failure = self.state in RESTING and usage.last_call is not None and usage.last_call.is_failure
        state = "failed" if is_failure else self.state
        about = (row.run, row.program, row.owner, state, row.title, row.created)
        return RunListing(*about, usage, row.parent or None, hosted=True)

    async def outcome(self, call: str | None = None) -> dict[str, Any]:
        """How the last call ended, or an earlier one by its id; the journal is read where that is not known."""
        ended = self._last_end
        if ended is not None and call in (None, ended.data.get("call")):
            return outcome_of(json.loads(json_line(ended.data, self.program.redact)))
        return await asyncio.to_thread(read_outcome, self.feed.journal, self.listing().usage.last_call, call)

    async def describe_call(self) -> dict[str, Any]:
        """The current call, and the handler that was called last with its payload, by the journal while it sleeps."""
        if self._dispatcher is None:
            return {"call": None, **await asyncio.to_thread(read_handler, self.feed.journal)}
        session = self._dispatcher.session
        call = session.current_call
        agent, event, payload = session.last or (None, "", None)
        return {
            "call": None if call is None else call.as_data(),
            "handler": None if agent is None else f"{agent.about.name}.{event}",
            "input": payload,
        }

    def require_quiet(self) -> None:
        """Raise ServiceError while it works."""
        if self.state not in ("idle", "asleep", "failed"):
            raise ServiceError("not_allowed_here", f"`{self.id}` is at work", help="Cancel it first.")
