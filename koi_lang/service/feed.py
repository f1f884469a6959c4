"""The feed of one run for any number of readers: its journal, numbered, and transient messages."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol, TypedDict

from koi_lang.errors import JournalError
from koi_lang.events import AnswerDelta, AnswerDiscarded, EventData, ModelAnswered, OutputDelta
from koi_lang.rpc.framing import line_of
from koi_lang.runtime.journal.entries import JournalEntry, Redact, event_data
from koi_lang.runtime.journal.history import CUT, RESUMED
from koi_lang.runtime.journal.reader import lines
from koi_lang.runtime.playbook.action_parsing import ReplyError
from koi_lang.runtime.playbook.reply_parser import ReplyReader
from koi_lang.runtime.playbook.written_texts import WrittenTexts
from koi_lang.sessions.client_host import ANSWERED, APPROVAL, CLOSED, QUESTION, Message, closed_message
from koi_lang.sessions.messages import EventMessage

# Bytes that a reader may leave unread.
MAX_UNREAD_BYTES = 8 << 20
UNREAD = f"more than {MAX_UNREAD_BYTES >> 20} MB were left unread"
# Entries of the past that are read at once, and bytes of messages that are handed to a reader at once.
PAGE, MAX_PIECE_BYTES = 500, 1 << 18
# A journal up to that size is read without a thread.
MAX_SHORT_BYTES = 1 << 15
EVENT: Final = "event"
FAILED: Final = "session_failed"
# What a client is told, without its line break, and the number of the entry that it is; None for what has none.
Numbered = tuple[int | None, bytes]
TextKey = tuple[tuple[str, ...], int, str]


class WrittenText(TypedDict):
    """The last text for people in an answer that was cut off, and the `action` that it stands in."""

    action: str
    text: str


# Fields that a feed adds to events, with their types.
ADDED_FIELDS: Mapping[type[EventData], Mapping[str, Any]] = {
    OutputDelta: {"so_far": bool},
    ModelAnswered: {"written": WrittenText},
}
# A message as a reader gets it; None where the reader gets none.
MessageView = Callable[[Message], Message | None]


def view_all(message: Message) -> Message | None:
    """Every message as it is."""
    return message


class Reader(Protocol):
    """A receiver of messages."""

    @property
    def view(self) -> MessageView:
        """Its view of messages."""

    def add(self, item: Numbered) -> None:
        """Be told something."""


class Feed:
    """The messages of a run.

    Args:
        run: its id.
        journal: its file, whether or not it is written yet.
        redact: takes secrets out of a text.
        is_told: is called behind each message.
    """

    def __init__(self, run: str, journal: Path, redact: Redact, is_told: Callable[[Message], None]) -> None:
        self.run = run
        self.journal = journal
        self._redact = redact
        self._is_told = is_told
        self._readers: set[Reader] = set()
        # What had been said before the run went on is said once more by those who say it, and was told.
        self._repeats = False
        # Texts that models are writing, requests that are open, and why the session stopped.
        self._texts: dict[TextKey, dict[str, Any]] = {}
        self._open: dict[str, Message] = {}
        self._failure: Message | None = None

    # ------------------------------------------------------------ telling

    def follow(self, entry: JournalEntry) -> None:
        """Tell an entry that was written to the journal."""
        self._failure = None  # it writes again
        self._repeats = entry.kind == RESUMED
        if self._texts:
            self._end_texts(entry.kind, entry.agent)
        self._hand_out(entry.n, entry_message(entry, self.run))

    def _end_texts(self, type: str, agent: str) -> None:
        """Forget the partial text of a model when an event completes it."""
        if type in (ModelAnswered.type, AnswerDiscarded.type):
            self._texts = {key: text for key, text in self._texts.items() if text["agent"] != agent}

    def tell(self, message: Message) -> None:
        """Publish a transient message of a session; journaled events are published when they are written."""
        type = message["type"]
        if type == EVENT:
            event = message["event"]
            self._end_texts(event["type"], event["agent"])
            if "seq" in event or event["type"] == AnswerDelta.type or self._repeats:
                return
            self._collect(event)
        elif type in (QUESTION, APPROVAL):
            is_known = message["id"] in self._open
            self._open[message["id"]] = message
            if is_known:  # a session that woke asks again what it had asked
                return
        elif type == CLOSED:
            self._open.pop(message["id"], None)
        elif type == FAILED:
            self._failure = message
        self._hand_out(None, message)

    def pass_on(self, message: Message) -> None:
        """Publish a message of another process; its entries have their numbers."""
        if "n" not in message:
            self.tell(message)
            return
        self._end_texts(message["event"]["type"], message["event"]["agent"])
        self._hand_out(message["n"], message)

    def _collect(self, event: Mapping[str, Any]) -> None:
        """Add a piece to the text that it is of."""
        if event["type"] != OutputDelta.type:
            return
        key = (tuple(event["path"]), event["number"], event["field"])
        known = self._texts.setdefault(key, {**event, "text": "", "so_far": True})
        known["text"] += event["text"]

    def _hand_out(self, number: int | None, message: Message) -> None:
        lines = {view: self._encode(view, message) for view in {reader.view for reader in self._readers}}
        for reader in list(self._readers):
            line = lines[reader.view]
            if line is not None:
                reader.add((number, line))
        self._is_told(message)

    def _encode(self, view: MessageView, message: Message) -> bytes | None:
        """A message as a view shows it, as a line without its break."""
        seen = view(message)
        return None if seen is None else line_of(seen, self._redact).rstrip(b"\n")

    def settle(self, request: str) -> None:
        """Forget a request that somebody has answered, and tell the others."""
        if request in self._open:
            self.tell(closed_message(request, ANSWERED))

    def restore(self, requests: Iterable[Message]) -> None:
        """Have questions and approvals be open that a session had asked before it went to sleep."""
        self._open |= {message["id"]: message for message in requests}

    @property
    def requests(self) -> list[Message]:
        """The questions and approvals that are open, the oldest first."""
        return list(self._open.values())

    # ------------------------------------------------------------ reading

    @property
    def is_short(self) -> bool:
        """Whether the journal holds so few entries that a thread takes longer to begin than they to be read."""
        with suppress(OSError):
            return self.journal.stat().st_size <= MAX_SHORT_BYTES
        return True

    def subscribe(self, since: int, view: MessageView = view_all) -> Subscription:
        """All messages behind an entry, then the new ones."""
        reader = Subscription(self, since, view)
        self.join(reader)
        return reader

    def join(self, reader: Reader) -> None:
        """Add a reader for new messages."""
        self._readers.add(reader)

    def leave(self, reader: Reader) -> None:
        """Tell a reader nothing any more."""
        self._readers.discard(reader)

    def current(self, view: MessageView) -> Iterator[bytes]:
        """The present state for a new reader: partial texts, open requests, and the failure of the session."""
        texts = ({"type": EVENT, "event": event} for event in self._texts.values())
        failures = [] if self._failure is None else [self._failure]
        yield from filter(None, (self._encode(view, each) for each in (*texts, *self._open.values(), *failures)))

    def entries_since(self, since: int, view: MessageView = view_all) -> Iterator[tuple[int, bytes]]:
        """The entries behind one that the journal holds by now."""
        try:
            for line in lines(self.journal, since):
                if line.entry is not None and line.entry.n > since:
                    item = self._encode(view, entry_message(line.entry, self.run))
                    if item is not None:
                        yield line.entry.n, item
        except JournalError:
            return


def entry_message(entry: JournalEntry, run: str) -> EventMessage:
    """The message of an entry; an answer that was cut off has the last text for people in it as `written`."""
    data = event_data(entry, run)
    if entry.kind == ModelAnswered.type and data.get("stop") == CUT:
        pieces: list[OutputDelta] = []
        with suppress(ReplyError):
            deque(ReplyReader(listener=WrittenTexts(pieces.append)).feed(str(data.get("text", ""))), maxlen=0)
        if pieces:
            text = "".join(each.text for each in pieces if each.number == pieces[-1].number)
            data["written"] = WrittenText(action=pieces[-1].action, text=text)
    return {"type": EVENT, "n": entry.n, "event": data}


class Subscription:
    """The messages for one reader, in order.

    Attributes:
        view: what the reader sees of each.
        is_cut_off: whether the reader was too slow, and is told nothing any more.
    """

    def __init__(self, feed: Feed, since: int, view: MessageView) -> None:
        self._feed = feed
        self._last = since
        self.view = view
        # Entries up to the first one that waits here are read from the journal, which may hold more: behind that one
        # transient messages have their places between entries. An entry that both hold is told once.
        self._first: int | None = None
        self._waiting: deque[Numbered] = deque((None, message) for message in feed.current(view))
        self._size = sum(len(message) for _, message in self._waiting)
        self._news = asyncio.Event()
        self.is_cut_off = self._is_closed = False

    def add(self, item: Numbered) -> None:
        """Have the reader get a message."""
        self._first = item[0] if self._first is None else self._first
        self._waiting.append(item)
        self._size += len(item[1])
        if self._size > MAX_UNREAD_BYTES:
            self.is_cut_off = True
            self.close()
        self._news.set()

    def close(self) -> None:
        """End it; waiting messages are dropped."""
        self._is_closed = True
        self._waiting.clear()
        self._feed.leave(self)
        self._news.set()

    async def listen(self, silence_s: float) -> AsyncIterator[Sequence[Numbered]]:
        """The messages, those together that wait at once; none where there was none for some seconds."""
        async for page in self._past():
            if self._is_closed:
                return
            yield page
        while not self._is_closed:
            self._news.clear()
            if messages := self._take():
                yield messages
                await asyncio.sleep(0)
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(silence_s):
                    await self._news.wait()
                continue
            yield ()

    def _take(self) -> list[Numbered]:
        """Messages that wait, as far as the reader has not got them with the past, and no more than a piece of them."""
        taken: list[Numbered] = []
        until = self._size - MAX_PIECE_BYTES
        while self._waiting and self._size > until:
            number, message = self._waiting.popleft()
            self._size -= len(message)
            if number is None or number > self._last:
                self._last = number or self._last
                taken.append((number, message))
        return taken

    async def _past(self) -> AsyncIterator[Sequence[Numbered]]:
        """The entries that were written before the reader came, a page at a time: others go on meanwhile."""
        source, has_more = self._feed.entries_since(self._last, self.view), True

        def read() -> list[Numbered]:
            nonlocal has_more
            page, size = list[Numbered](), 0
            for item in source:
                if self._first is not None and item[0] is not None and item[0] >= self._first:
                    break
                page.append(item)
                size += len(item[1])
                if len(page) == PAGE or size > MAX_PIECE_BYTES:
                    return page
            has_more = False
            return page

        is_short = self._feed.is_short
        while has_more:
            if page := read() if is_short else await asyncio.to_thread(read):
                self._last = page[-1][0] or self._last
                yield page
                # A reader that is gone is noticed by the loop, and others have their turn.
                await asyncio.sleep(0)
