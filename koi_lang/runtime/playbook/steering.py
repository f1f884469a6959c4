"""Messages to working playbooks: queued, delivered between the answers of their models, reported as events.

A note that steers is delivered before the next request to the model, as is a notice of what has happened beside the
playbook; a follow-up when the playbook would end. In a run that goes on later they are delivered again at the same
places; what was still queued is still queued.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from koi_lang.errors import AgentError
from koi_lang.events import OMITTED, EventData, MessageDelivered, QueueChanged, RunContinued, RunPaused
from koi_lang.lazy import lazy_module
from koi_lang.runtime.events import Events
from koi_lang.runtime.model_calls.images import images_in, value_of
from koi_lang.runtime.playbook.outside_text import flatten_lines, quote_line
from koi_lang.runtime.replay.location import Path, leaf_path
from koi_lang.runtime.replay.recorded_run import RecordedRun

if TYPE_CHECKING:
    from koi_lang.llm import messages
    from koi_lang.llm.images import Image
    from koi_lang.llm.messages import Message
else:
    messages = lazy_module("koi_lang.llm.messages")

How = Literal["steer", "follow_up", "notice", "message"]
Mode = Literal["one", "all"]
PERSON = "person"
# Where notes are delivered, as it stands in paths: each time a model is about to be asked, each time of an end.
POINTS: Mapping[How, str] = {"steer": "turn", "follow_up": "end"}
# The fields of a report of the queues, by how their notes are delivered.
FIELDS: Mapping[How, str] = {"steer": "steering", "follow_up": "follow_up", "notice": "notices", "message": "messages"}
# Of the messages of agents to one of them that it has not read, and of each in characters.
MAX_UNREAD, MAX_MESSAGE_CHARS = 20, 4000


@dataclass(frozen=True, slots=True)
class QueuedMessage:
    """Something said to a playbook.

    Attributes:
        id: counts from 1 within the run.
        to: name of the agent it is for; empty for whoever was not delegated its work by another agent.
        sender: `person`, or the name of whoever else says it.
        images: what is shown beside the text.
        reply_to: the message of an agent that it answers; 0 for none.
        key: names the action that sends a message of an agent, so that it is sent once.
    """

    id: int
    text: str
    how: How
    to: str = ""
    sender: str = PERSON
    images: tuple[Image, ...] = ()
    reply_to: int = 0
    key: str = ""

    def as_data(self) -> dict[str, Any]:
        """The JSON form."""
        return self.as_delivered().as_data()

    def as_delivered(self) -> MessageDelivered:
        """The event of its delivery."""
        images: Any = [value_of(image) for image in self.images] or OMITTED
        reply_to, key = self.reply_to or OMITTED, self.key or OMITTED
        return MessageDelivered(self.id, self.text, self.how, self.to, self.sender, images, reply_to, key)

    @property
    def message(self) -> str:
        """The message as the model gets it."""
        if self.how == "notice":
            return f"Meanwhile {flatten_lines(self.text)}."
        if self.how == "message":
            answered = f" in answer to your message {self.reply_to}" if self.reply_to else ""
            return f"`{flatten_lines(self.sender)}` tells you{answered} (message {self.id}):\n{quote_line(self.text)}"
        is_person = self.sender == PERSON
        who = "The person" if is_person else f"`{flatten_lines(self.sender)}`"
        text = self.text if is_person else quote_line(self.text)
        if self.how == "steer":
            return f"{who} says, while you are at work; it counts from now on:\n{text}"
        return f"{who} says, now that you have returned:\n{text}\nSee to that, then `return` again."


def note_of(data: Mapping[str, Any]) -> QueuedMessage:
    """The note in the data of an event."""
    how: How = next((how for how in FIELDS if how == data.get("mode")), "steer")
    to, sender = str(data.get("to", "")), str(data.get("from", PERSON))
    images = images_in(data.get("images"))
    reply_to, key = int(data.get("reply_to") or 0), str(data.get("key") or "")
    return QueuedMessage(int(data["id"]), str(data["text"]), how, to, sender, images, reply_to, key)


@dataclass(frozen=True, slots=True, eq=False)
class ActivePlaybook:
    """A playbook that is being carried out.

    Attributes:
        messages: its conversation so far; it grows.
    """

    agent: str
    event: str
    messages: Sequence[Any]
    delegated: bool


class Steering:
    """The queues of a run.

    Attributes:
        modes: how many notes are delivered at a time, `one` or `all`, by how they are delivered.
        at_work: the playbooks that are being carried out, the first one begun first.
        held: names of the agents that wait because the run is paused.
    """

    def __init__(self, events: Events, recorded: RecordedRun | None = None) -> None:
        self.modes: dict[How, Mode] = {"steer": "one", "follow_up": "one"}
        self.at_work: list[ActivePlaybook] = []
        self.held: list[str] = []
        self._events, self._recorded = events, recorded or RecordedRun(None)
        self._free = asyncio.Event()
        self._free.set()
        self._queue, self._last_id = list[QueuedMessage](), 0
        self._sent: dict[str, QueuedMessage] = {}
        if not self._recorded.is_live:
            self._queue, self._last_id = _left(self._recorded)
            changes = (entry.data for entry in self._recorded.entries_of(QueueChanged.type))
            queued = (note_of(data) for each in changes for name in FIELDS.values() for data in each.get(name, ()))
            delivered = (note_of(entry.data) for entry in self._recorded.entries_of(MessageDelivered.type))
            self._sent = {note.key: note for note in (*queued, *delivered) if note.key}
        self._heard: set[str] = set()
        self._told: dict[str, int] = {}

    # ------------------------------------------------------------ what surfaces do

    def say(self, said: str | Message, how: How = "steer", *, to: str = "", sender: str = PERSON) -> QueuedMessage:
        """Queue a note. Raises AgentError when it is empty."""
        message = messages.message_of(said)
        if not message.text.strip() and not message.images:
            raise AgentError("there is nothing to say in an empty message")
        return self._add(QueuedMessage(self._last_id + 1, message.text, how, to, sender, message.images))

    def notify(self, agent: str, text: str, *, sender: str) -> None:
        """Queue a line about something that has happened beside the playbooks of an agent.

        Args:
            text: a clause without an end.
            sender: what it is about, such as `command 3`; nobody hears of that twice, also where a run goes on later.
        """
        delivered = [note_of(entry.data) for entry in self._recorded.entries_of(MessageDelivered.type)]
        known = [(note.to, note.sender) for note in delivered]
        if (agent, sender) in (*known, *((note.to, note.sender) for note in self._queue)):
            return
        self._add(QueuedMessage(self._last_id + 1, text, "notice", agent, sender))

    # ------------------------------------------------------------ what agents say

    def send(self, sender: str, to: str, text: str, *, key: str, reply_to: int = 0) -> QueuedMessage:
        """Queue a message of an agent to another one, once for each key. Raises AgentError where it cannot be sent.

        Args:
            key: names the action; a run that goes on sends nothing twice.
            reply_to: the message that it answers; 0 for none.
        """
        if key in self._sent:
            return self._sent[key]
        if not text.strip():
            raise AgentError("there is nothing to say in an empty message")
        if len(text) > MAX_MESSAGE_CHARS:
            message = f"a message has at most {MAX_MESSAGE_CHARS:,} characters, and this one has {len(text):,}"
            raise AgentError(message, help="Put what is long into a file or the registry, and name it.")
        if sum(note.to == to for note in self.pending_messages("message")) >= MAX_UNREAD:
            help = f"`{to}` reads them before its next answer; go on with something else."
            raise AgentError(f"`{to}` has {MAX_UNREAD} messages that it has not read", help=help)
        note = QueuedMessage(self._last_id + 1, text, "message", to, sender, reply_to=reply_to, key=key)
        self._sent[key] = note
        return self._add(note)

    def read_messages(self, agent: str) -> list[QueuedMessage]:
        """The messages of other agents that an agent has not read; they are read now."""
        return self._deliver_at(leaf_path("inbox"), agent, self._messages_for(agent))

    def has_heard(self, agent: str) -> bool:
        """Whether another agent has told an agent something."""
        return agent in self._heard

    def senders_to(self, agent: str) -> set[str]:
        """The agents that have told an agent something."""
        return {note.sender for note in self._sent.values() if note.to == agent}

    def _messages_for(self, agent: str) -> list[QueuedMessage]:
        return [note for note in self.pending_messages("message") if note.to == agent]

    def withdraw(self, agent: str, sender: str) -> None:
        """Forget what an agent was to be notified of, where it has not heard of it yet."""
        rest = [note for note in self._queue if (note.how, note.to, note.sender) != ("notice", agent, sender)]
        if len(rest) < len(self._queue):
            self._queue = rest
            self.tell()

    def _add(self, note: QueuedMessage) -> QueuedMessage:
        self._last_id = note.id
        self._queue.append(note)
        self.tell()
        return note

    def take_back(self, id: int | None = None) -> list[QueuedMessage]:
        """Remove one note of the person from the queues, or all of them; returns the removed ones."""
        taken = [note for note in self._queue if note.how in POINTS and id in (None, note.id)]
        if taken:
            self._queue = [note for note in self._queue if note not in taken]
            self.tell()
        return taken

    def pending_messages(self, how: How | None = None) -> list[QueuedMessage]:
        """The undelivered messages, in order."""
        return [note for note in self._queue if how is None or note.how == how]

    @property
    def is_paused(self) -> bool:
        """Whether models are not asked at the moment."""
        return not self._free.is_set()

    def pause(self) -> bool:
        """Have all playbooks wait before their next request; gives whether they did not already."""
        if self.is_paused:
            return False
        self._free.clear()
        self._emit(RunPaused())
        return True

    def go_on(self) -> bool:
        """End the pause; gives whether there was one."""
        if not self.is_paused:
            return False
        self._free.set()
        self._emit(RunContinued())
        return True

    def tell(self) -> None:
        """Report the queues as an event."""
        queues: dict[str, Any] = {
            name: [note.as_data() for note in self.pending_messages(how)] for how, name in FIELDS.items()
        }
        empty = {name: OMITTED for name in ("notices", "messages") if not queues[name]}
        self._emit(QueueChanged(**queues | empty))

    def _emit(self, data: EventData) -> None:
        """Tell something that no code of the program does, under a path of its own."""
        type = data.type
        before = self._told.get(type)
        if before is None:
            before = len(self._recorded.entries_of(type))
        self._told[type] = before + 1
        self._events.emit(data, path=(f"{type}#{before + 1}",))

    # ------------------------------------------------------------ what playbooks do

    @contextmanager
    def working(self, work: ActivePlaybook) -> Iterator[None]:
        """Count as working meanwhile. Messages queued when the work fails stay queued, and are reported."""
        self.at_work.append(work)
        has_returned = False
        try:
            yield
            has_returned = True
        finally:
            self.at_work.remove(work)
            if self._queue and not has_returned:
                self.tell()

    async def before_request(self, agent: str, *, delegated: bool) -> list[QueuedMessage]:
        """The messages for an agent before its model is asked; waits while the run is paused."""
        if self.is_paused:
            self.held.append(agent)
            try:
                await self._free.wait()
            finally:
                self.held.remove(agent)
        return self._deliver("steer", agent, delegated)

    def at_end(self, agent: str, *, delegated: bool) -> list[QueuedMessage]:
        """The messages for an agent when its playbook would end; none lets it end."""
        return self._deliver("follow_up", agent, delegated)

    def _deliver(self, how: How, agent: str, delegated: bool) -> list[QueuedMessage]:
        is_new = self._recorded.accepts_input(before_request=how == "steer")
        notes = self._deliver_at(leaf_path(POINTS[how]), agent, self._next(how, agent, delegated) if is_new else [])
        if any(note.how == "message" for note in notes):
            self._heard.add(agent)
        return notes

    def _deliver_at(self, path: Path, agent: str, new: list[QueuedMessage]) -> list[QueuedMessage]:
        """The messages that were delivered at a path before, and new ones."""
        known = self._recall_messages(path)
        for number, note in enumerate([*known, *new], 1):
            self._events.emit(note.as_delivered(), agent, path=(*path, f"{MessageDelivered.type}#{number}"))
        if new:
            self._queue = [note for note in self._queue if note not in new]
            self.tell()
        return [*known, *new]

    def _next(self, how: How, agent: str, delegated: bool) -> list[QueuedMessage]:
        meant = [note for note in self.pending_messages(how) if note.to == agent or (not note.to and not delegated)]
        if how == "follow_up":
            return meant[:1] if self.modes[how] == "one" else meant
        notices = [note for note in self.pending_messages("notice") if note.to == agent]
        return [*notices, *self._messages_for(agent), *(meant[:1] if self.modes[how] == "one" else meant)]

    # ------------------------------------------------------------ runs that go on

    def _recall_messages(self, path: Path) -> list[QueuedMessage]:
        """The messages delivered here in an earlier part of the run."""
        notes: list[QueuedMessage] = []
        while entry := self._recorded.recall(
            MessageDelivered.type, (*path, f"{MessageDelivered.type}#{len(notes) + 1}")
        ).entry:
            notes.append(note_of(entry.data))
        return notes


def _left(recorded: RecordedRun) -> tuple[list[QueuedMessage], int]:
    """The undelivered messages of an earlier part of a run, and the last number of a note."""
    if not recorded.policy.has_outside:
        return [], 0
    delivered = {entry.data.get("id") for entry in recorded.entries_of(MessageDelivered.type)}
    entries = [entry.data for entry in recorded.entries_of(QueueChanged.type)]
    listed = [[note_of(data) for name in FIELDS.values() for data in each.get(name, ())] for each in entries]
    ids = [note.id for notes in listed for note in notes]
    waiting = [note for note in (listed[-1] if listed else []) if note.id not in delivered]
    return sorted(waiting, key=lambda note: note.id), max(ids, default=0)
