"""A run of another process at this terminal: shown as `koi run` shows it, answered, and steered."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from koi_lang.cli.ui import live_view
from koi_lang.cli.ui.interrupts import add_signal_handler, carried_out, remove_signal_handler
from koi_lang.cli.ui.live_view import LineReporter
from koi_lang.cli.ui.reporters import CostMeter
from koi_lang.cli.ui.terminal import Terminal
from koi_lang.cli.ui.text import harmless, heard_when
from koi_lang.errors import EXIT_FAILED, JournalError, KoiError, capture
from koi_lang.events import Event, LinePrinted, MessageDelivered, RunEnded
from koi_lang.runtime.concurrency.tasks import together
from koi_lang.runtime.host import NobodyToAskError
from koi_lang.runtime.journal.entries import event_data
from koi_lang.runtime.journal.reader import read as read_journal
from koi_lang.runtime.playbook.steering import PERSON
from koi_lang.service.live.addresses import socket_path
from koi_lang.service.live.client import LiveClient, NotAttachableError, open_client
from koi_lang.sessions.client_host import ANSWERED, APPROVAL, CLOSED, QUESTION, Message, approval_in

# Lines of what happened before.
MAX_EARLIER = 12
COMMANDS = (
    "/steer TEXT or only TEXT, /queue TEXT says something at the end, /back takes it back, /pause, /continue, /abort"
)


class RunFailedError(KoiError):
    """The run that was followed has not ended well."""

    exit_code = EXIT_FAILED


def attach(journal: Path, *, plain: bool) -> None:
    """Follow a run until it ends, or the person detaches. Raises KoiError."""
    terminal = Terminal()
    carried_out(_follow(journal, terminal, plain=plain), terminal.log)


async def _follow(journal: Path, terminal: Terminal, *, plain: bool) -> None:
    try:
        async with open_client(socket_path(journal.parents[2], journal.stem)) as client:
            await AttachedTerminal(journal, terminal, client, plain=plain).run()
    except OSError as error:
        raise _unreachable(journal) from error
    except NotAttachableError as error:
        raise JournalError(error.message, help=_unreachable(journal).help) from error


def _unreachable(journal: Path) -> JournalError:
    help = f"`koi runs show {journal.stem}` tells how it stands."
    return JournalError(f"nobody listens for the run `{journal.stem}` any more", help=help)


class AttachedTerminal:
    """One terminal and the run that it follows."""

    def __init__(self, journal: Path, terminal: Terminal, client: LiveClient, *, plain: bool) -> None:
        self._journal = journal
        self._terminal = terminal
        self._client = client
        self._bill = CostMeter()
        self._is_person = sys.stdin.isatty() and sys.stderr.isatty()
        if sys.stderr.isatty():
            terminal.status = live_view.status_for(sys.stderr, str, self._bill, plain=plain)
        self._open: dict[str, asyncio.Task[None]] = {}
        self._ended: RunEnded | None = None
        self._detached = asyncio.Event()
        self._commands: dict[str, Callable[[str], Any]] = {
            "/steer": self._steer,
            "/queue": lambda text: self._say("follow_up", text),
            "/back": lambda text: self._take_back(),
            "/pause": lambda text: self._order("pause", "paused before the next request to a model; /continue goes on"),
            "/continue": lambda text: self._order("continue", "going on"),
            "/abort": lambda text: self._order("abort", "aborted"),
        }

    async def run(self) -> None:
        """Show the run until it ends or the person has enough. Raises RunFailedError."""
        last = self._show_past()
        await self._client.follow(last, may_answer=self._is_person)
        self._terminal.log(f"» following `{self._journal.stem}` of {self._client.ready['program']}; Ctrl-C detaches")
        add_signal_handler("SIGINT", self._detached.set)
        try:
            async with together() as self._group:
                with self._terminal.listening(self._hear):
                    await self._until_over()
        finally:
            remove_signal_handler("SIGINT")
        self._tell_end()

    async def _until_over(self) -> None:
        following = self._group.create_task(self._follow_messages())
        detached = self._group.create_task(self._detached.wait())
        await asyncio.wait([following, detached], return_when=asyncio.FIRST_COMPLETED)
        for task in (following, detached, *self._open.values()):
            task.cancel()

    def _tell_end(self) -> None:
        name = self._journal.stem
        self._terminal.status.hold()
        if self._ended is None and self._detached.is_set():
            click.echo(f"detached; `{name}` goes on, `koi runs attach {name}` follows it again", err=True)
        elif self._ended is None:
            help = f"`koi runs show {name}` tells how far it came."
            raise RunFailedError(f"the run `{name}` is gone", help=help)
        elif not self._ended.ok:
            raise RunFailedError(f"the run `{name}` has not ended well", help=f"`koi runs show {name}` tells why.")
        else:
            click.echo(f"the run `{name}` has ended well", err=True)

    # ------------------------------------------------------------ what is shown

    def _show_past(self) -> int:
        """Show the end of what has happened, and who is at work; gives the number of the last entry."""
        entries = read_journal(self._journal).entries
        status = self._terminal.status
        events = [Event.of_data(event_data(entry, self._journal.stem)) for entry in entries]
        for event in events:
            self._bill(event)
        if isinstance(status, LineReporter):
            status.catch_up(events, MAX_EARLIER)
        else:
            printed = [event.data.message for event in events if isinstance(event.data, LinePrinted)]
            for text in printed[-MAX_EARLIER:]:
                self._terminal.print(text)
        return entries[-1].n if entries else 0

    async def _follow_messages(self) -> None:
        async for message in self._client:
            match message["type"]:
                case "event":
                    self._show(Event.of_data(message["event"]))
                case str(type) if type in (QUESTION, APPROVAL):
                    if not self._is_person:
                        asked = "for leave to " + approval_in(message).what if type == APPROVAL else message["question"]
                        self._tell(f"waits for an answer that only a terminal can give: {asked}")
                    elif message["id"] not in self._open:
                        self._open[message["id"]] = self._group.create_task(self._ask(message))
                case str(type) if type == CLOSED:
                    await self._close(message)
                case "cut_off":
                    self._terminal.note(f"cut off: {harmless(str(message['reason']))}")

    def _show(self, event: Event) -> None:
        self._bill(event)
        match event.data:
            case LinePrinted(message=text):
                self._terminal.print(text)
            case MessageDelivered(sender=sender, text=text) if sender == PERSON:
                self._tell(f"`{event.agent}` hears: {text}")
            case RunEnded() as ended:
                self._ended = ended
        self._terminal.status(event)

    def _tell(self, text: str) -> None:
        self._terminal.log(f"» {harmless(text)}")

    # ------------------------------------------------------------ questions

    async def _ask(self, message: Message) -> None:
        """Ask the person what the run asks; the answer counts if nobody else was faster."""
        try:
            if message["type"] == APPROVAL:
                decision = await self._terminal.approve(approval_in(message))
                given = {"type": "approve", "decision": decision.answer, "reason": decision.reason}
            else:
                answer = await self._terminal.ask(str(message["question"]), [str(each) for each in message["options"]])
                given = {"type": "answer", "answer": answer}
        except NobodyToAskError:  # the end of the input: others may answer
            self._detached.set()
            return
        finally:
            self._open.pop(message["id"], None)
        await self._order_message({**given, "request": message["id"]}, "")

    async def _close(self, message: Message) -> None:
        """End the prompt of a request that somebody else has answered, and tell so below it."""
        asking = self._open.pop(message["id"], None)
        if asking is not None:
            asking.cancel()
            await asyncio.wait([asking])
            self._tell("answered elsewhere" if message["reason"] == ANSWERED else "nobody needs an answer any more")

    # ------------------------------------------------------------ what is typed

    def _hear(self, line: str) -> None:
        text = line.strip()
        word, _, rest = text.partition(" ")
        if not text:
            return
        if not text.startswith("/"):
            self._group.create_task(self._steer(text))
        elif word in self._commands:
            self._group.create_task(self._commands[word](rest.strip()))
        else:
            self._tell(f"there is no command `{word}`: {COMMANDS}; Ctrl-C detaches")

    async def _steer(self, text: str) -> None:
        """Say something to whoever is at work; a session that waits for a message is given it."""
        if self._client.ready.get("session") and not (await self._state()).get("busy"):
            await self._order_message({"type": "prompt", "message": text}, "")
        else:
            await self._say("steer", text)

    async def _say(self, how: str, text: str) -> None:
        is_at_work = bool((await self._state()).get("at_work"))
        notice = heard_when(at_end=how == "follow_up", at_work=is_at_work)
        await self._order_message({"type": how, "message": text}, notice)

    async def _state(self) -> Message:
        with suppress(NotAttachableError):
            state: Message = (await self._client.ask({"type": "get_state"})).get("data", {})
            return state
        return {}

    async def _take_back(self) -> None:
        response = await self._order_message({"type": "take_back"}, "")
        taken = [note["text"] for note in (response.get("data") or {}).get("taken", ())]
        self._tell("; ".join(["taken back", *taken]) if taken else "nothing is queued")

    async def _order(self, command: str, notice: str) -> None:
        await self._order_message({"type": command}, notice)

    async def _order_message(self, message: Message, notice: str) -> Message:
        """Send a command, and tell what came of it."""
        outcome = await capture(self._client.ask(message))
        if outcome.error is not None:
            return {}
        response = outcome.result()
        if not response["success"]:
            notice = f"{response['error']}"
        if notice:
            self._tell(notice)
        return response
