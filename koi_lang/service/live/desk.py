"""The followers of a run: their messages and commands."""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

from koi_lang.errors import JournalError, Outcome, capture
from koi_lang.events import Event
from koi_lang.rpc.commands import carry_out, command_of
from koi_lang.rpc.dispatcher import SCHEMA_VERSION, response_to
from koi_lang.rpc.framing import line_of
from koi_lang.runtime.journal.entries import NOTHING, JournalEntry
from koi_lang.runtime.journal.reader import lines
from koi_lang.runtime.journal.summary import summarise
from koi_lang.runtime.replay.location import Location
from koi_lang.service.feed import EVENT, Feed, MessageView, Reader, entry_message, view_all
from koi_lang.service.live.connection import LiveConnection
from koi_lang.sessions.client_host import Message
from koi_lang.sessions.errors import SessionError
from koi_lang.sessions.held_call import HeldCall
from koi_lang.sessions.messages import StateMessage
from koi_lang.sessions.session import Session
from koi_lang.version import __version__

if TYPE_CHECKING:
    from koi_lang.service.live.followers import Followers


T = TypeVar("T")
# How long the event loop has for its next turn before code that computes is ended from outside.
PATIENCE_S = 0.5
# What may be asked of a run that somebody else has begun: nothing that puts another one in its place, or ends it for
# whoever began it but `abort`.
COMMANDS = frozenset(
    {
        *("answer", "approve", "steer", "follow_up", "send_to", "take_back", "set_steering_mode"),
        *("set_follow_up_mode", "pause", "continue", "abort", "get_state", "get_session_stats", "session_info"),
        *("get_messages", "get_last_assistant_text", "get_entries", "get_tree", "list_agents", "get_commands"),
    }
)
# The same where it is a session, which waits for calls.
OF_SESSIONS = COMMANDS | {"prompt", "run_playbook"}
ANSWERING = ("answer", "approve")


class LiveFeed(Feed):
    """A feed that is read in another thread than it is told in."""

    def __init__(self, live: Followers) -> None:
        super().__init__(live.run.id, live.journal, live.ready.redactor(), self._note_state)
        self._live, self._lock = live, threading.RLock()
        self._told_state = ""

    def follow(self, entry: JournalEntry) -> None:
        """Tell an entry that was written to the journal."""
        with self._lock:
            super().follow(entry)

    def tell(self, message: Message) -> None:
        """Publish a transient message."""
        with self._lock:
            super().tell(message)

    def follow_transient(self, event: Event) -> None:
        """Tell an event that has no number."""
        if event.data.is_transient:
            self.tell({"type": EVENT, "event": event.as_data("detailed")})

    def join(self, reader: Reader) -> None:
        """Add a receiver of new messages."""
        with self._lock:
            self._readers.add(reader)

    def leave(self, reader: Reader) -> None:
        """Tell somebody nothing any more."""
        with self._lock:
            super().leave(reader)

    @property
    def requests(self) -> list[Message]:
        """The questions and approvals that are open, also from before anybody followed."""
        return self._live.board.requests

    def tell_current(self, reader: Reader) -> None:
        """Send a new reader the texts that are being written, the open requests and the state of the run.

        Runs in the loop of the run, since secrets are taken out.
        """
        messages = [{"type": EVENT, "event": event} for event in self._texts.values()]
        for message in (*messages, *self.requests, StateMessage(type="state", state=state_of(self._live))):
            line = self._encode(reader.view, message)
            if line is not None:
                reader.add((None, line))

    def entries_since(self, since: int, view: MessageView = view_all) -> Iterator[tuple[int, bytes]]:
        """The entries behind one that the journal holds by now, in which there are no secrets."""
        with suppress(JournalError):
            for line in lines(self.journal):
                if line.entry is not None and line.entry.n > since:
                    yield line.entry.n, encode(entry_message(line.entry, self.run))

    def _note_state(self, message: Message) -> None:
        """Tell that something else goes on than before, where that is so."""
        state = state_of(self._live)
        if state != self._told_state:
            self._told_state = state
            self.tell(StateMessage(type="state", state=state))


class LiveDesk:
    """Serves connected clients; work on the run happens in its event loop.

    Attributes:
        feed: what they are told.
    """

    def __init__(self, live: Followers) -> None:
        self._live = live
        self.feed = LiveFeed(live)
        self._session: Session | None = None
        # When commands were given that cannot wait until the program comes to an end.
        self._urgent: list[float] = []

    def begin(self) -> None:
        """Subscribe to transient messages."""
        self._live.feed, self._live.board.others = self.feed, self.feed.tell
        self._live.run.events.subscribe(self.feed.follow_transient, transient=True)

    def end(self) -> None:
        """Follow nothing any more."""
        self._live.feed = None
        if self._live.board.others == self.feed.tell:
            self._live.board.others = None

    def greeting(self) -> dict[str, Any]:
        """The first message."""
        live = self._live
        agents = [agent.about.name for agent in live.ready.agents]
        known: dict[str, Any] = {
            "schema_version": SCHEMA_VERSION,
            "version": __version__,
            "run": live.run.id,
            "agents": agents,
        }
        known["session"] = live.session is not None
        return {"type": "rpc_ready", **known, "program": Path(live.ready.path).name, "state": state_of(live)}

    # ------------------------------------------------------------ the thread of the sockets

    def begin_to_follow(self, connection: LiveConnection, message: Mapping[str, Any]) -> None:
        """Send a client the entries behind a number, and new messages. Raises SessionError."""
        since, may_answer = message.get("since", 0), message.get("answers", True)
        if type(since) is not int or since < 0 or not isinstance(may_answer, bool) or connection.follows:
            help = "Send it once, with `since`, the number of an entry, and `answers`, true or false."
            raise SessionError("invalid_request", "`follow` does not fit", help=help)
        connection.follows = True
        response = encode(response_to(message, Outcome({"run": self._live.run.id})))
        connection.begin(response, since, self.feed.entries_since(since))
        self.feed.join(connection)
        self._in_loop(self.feed.tell_current, connection)
        if may_answer:
            connection.may_answer = True
            self._in_loop(self._count, 1)

    def leave(self, connection: LiveConnection) -> None:
        """Tell a client nothing any more."""
        self.feed.leave(connection)
        if connection.may_answer:
            connection.may_answer = False
            self._in_loop(self._count, -1)

    def take(self, connection: LiveConnection, message: Mapping[str, Any], done: Callable[[], None]) -> None:
        """Have a command carried out soon."""
        if message.get("type") == "abort":
            self._urgent.append(monotonic())
        connection.commands += 1
        self._in_loop(self._carry_out, connection, message, done)

    def _in_loop(self, function: Callable[..., None], *arguments: Any) -> None:
        with suppress(RuntimeError):  # the loop has ended
            self._live.loop.call_soon_threadsafe(function, *arguments)

    @property
    def is_urgent(self) -> bool:
        """Whether a command waits that must be carried out even if the event loop stands still."""
        return bool(self._urgent)

    def look_after_loop(self) -> None:
        """End a program that computes and keeps the event loop from hearing that it is to end."""
        if self._urgent and monotonic() - self._urgent[0] > PATIENCE_S:
            self._urgent[:] = [monotonic()]
            self._live.interrupt()

    # ------------------------------------------------------------ the event loop of the run

    def _count(self, more: int) -> None:
        shared = self._live.shared
        if shared is not None:
            (shared.join if more > 0 else shared.leave)()

    def _carry_out(self, connection: LiveConnection, message: Mapping[str, Any], done: Callable[[], None]) -> None:
        connection.hold()
        outcome = finish_now(capture(self._data(message)))
        response = response_to(message, outcome)
        connection.commands -= 1
        connection.reply(line_of(response, self._live.run.redact).rstrip(b"\n"))
        done()

    async def _data(self, message: Mapping[str, Any]) -> Any:
        """The result of a command. Raises SessionError."""
        session = self._session = self._live.session or self._session or session_of(self._live)
        command = command_of(message)
        if command.name not in (COMMANDS if self._live.session is None else OF_SESSIONS):
            help = "Ask for it where the run was begun."
            reason = f"`{command.name}` is no command for a run that is followed"
            raise SessionError("unknown_command", reason, help=help)
        if command.name == "abort":
            return self._abort()
        data = await carry_out(command, session, message)
        if command.name in ANSWERING:
            self._live.board.close_request(message["request"])
        return data

    def _abort(self) -> Any:
        self._urgent.clear()
        taken = self._live.run.steering.take_back()
        return {"aborted": self._live.abort(), "queued": [note.as_data() for note in taken]}


def state_of(live: Followers) -> str:
    """The state of a run."""
    if live.board.requests:
        return "waiting"
    if live.session is not None and live.session.current_call is None:
        return "idle"
    return "paused" if live.run.is_paused else "working"


def encode(message: Mapping[str, Any]) -> bytes:
    """A message without secrets as a line, without its break."""
    return line_of(message, NOTHING).rstrip(b"\n")


def finish_now(work: Coroutine[Any, Any, T]) -> T:
    """The result of work that never waits."""
    try:
        work.send(None)
    except StopIteration as ended:
        result: T = ended.value
        return result
    work.close()
    raise AssertionError("a command for followers has waited for something")


RUN = "run"


def session_of(live: Followers) -> Session:
    """A session whose run is another one's: the one call that the run consists of is under way until it ends."""
    session = Session(live.ready, _ignore, _go_over)
    session.opened, session.journal = live.run, live.journal
    session.calls = {HeldCall(RUN, RUN, Location(label=RUN))}
    session.client = live.board
    session.statistics.usage = summarise(live.journal).totals
    return session


def _ignore(message: Any) -> None:
    """No-op: followers get the messages of the run."""


async def _go_over(session: Any, history: Any) -> None:
    """Nothing goes on here."""
