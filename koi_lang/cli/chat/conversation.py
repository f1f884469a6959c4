"""What a person types to commands of a session, and what the session tells to what is shown of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from koi_lang.cli.chat.event_view import EventView
from koi_lang.cli.chat.images import Attached, pasted_images
from koi_lang.cli.chat.material import BESIDE, OwnCommands, file_texts, message_in
from koi_lang.cli.chat.view import APPROVALS, Request, Screen, request_text
from koi_lang.cli.ui.approval_question import EVERYTHING, decision_in
from koi_lang.cli.ui.text import harmless, heard_when, one_line, usage_text
from koi_lang.cli.ui.undo_report import changes_text
from koi_lang.errors import KoiError, UsageError
from koi_lang.events import CallEnded, CallStarted, Event, FileChanged, MessageDelivered, unless_omitted
from koi_lang.llm.images import Image, require_few
from koi_lang.rpc.dispatcher import Dispatcher
from koi_lang.runtime.host import ApprovalDecision
from koi_lang.runtime.journal.calls import resuming_command
from koi_lang.runtime.journal.reader import read_header
from koi_lang.runtime.model_calls.images import value_of
from koi_lang.runtime.playbook.steering import How
from koi_lang.sessions.client_host import ANSWERED, APPROVAL, CLOSED, QUESTION, Message
from koi_lang.sessions.errors import SessionError
from koi_lang.sessions.message_targets import IMAGES, MessageTarget, targets, text_of
from koi_lang.sessions.prepared import Prepared
from koi_lang.sessions.session import Session

# Begins a command of the person.
OWN = "!"
ELSEWHERE = "answered elsewhere"
# A person may take their time.
ANSWER_S = 24 * 3600.0
# What to do in a conversation, where the commands of a session have other names.
HELP = {
    "session_not_trusted": "If you trust it, go on with it by `/resume ID trust`.",
    "session_over": "`/new` begins another conversation, `/resume` goes on with an earlier one.",
    "agent_busy": "Wait until that has ended, or end it with `/abort`.",
}


class ConversationCommand(Protocol):
    """What a person asks for by its name, such as `/abort`."""

    async def carry_out(self, chat: ChatConversation) -> None:
        """Do it. Raises KoiError."""


class CommandTable(Protocol):
    """The commands that a person may type."""

    def command_in(self, text: str) -> ConversationCommand | None:
        """The command that a text is; None for a message."""

    def nearest_command(self, word: str) -> str | None:
        """The command whose name is most similar to a word; None where none is."""


class ChatConversation:
    """One person and the session they talk to.

    Args:
        target: the handler that messages are for.
        screen: shows what happens.
        redact: takes secrets out of what is shown of the work.
        commands: what a person may type beside messages.

    Attributes:
        requests: what the person is asked and has not answered, the oldest first.
        telling: shows what happens in calls.
        attached: the images in it.
        own: the commands that the person runs.
        over: whether the person has ended it.
    """

    def __init__(
        self,
        ready: Prepared,
        target: MessageTarget,
        screen: Screen,
        redact: Callable[[str], str],
        commands: CommandTable,
    ) -> None:
        self.dispatcher = Dispatcher(ready, self.follow, answer_s=ANSWER_S)
        self.target = target
        self.screen = screen
        self._commands = commands
        self.requests: list[Request] = []
        self.telling = EventView(screen, redact)
        self.over = False
        self.attached = Attached()
        self.own = OwnCommands(screen, redact)
        self._has_changed = False
        self._news = asyncio.Event()

    @property
    def session(self) -> Session:
        """What is talked to."""
        return self.dispatcher.session

    @property
    def is_busy(self) -> bool:
        """Whether a call is under way."""
        return self.session.current_call is not None

    # ------------------------------------------------------------ what the person says

    async def hear(self, text: str, how: How = "steer") -> None:
        """Do what a text asks for: answer what is asked, carry out a command, steer the work, or begin a call."""
        command = self._commands.command_in(text)
        try:
            if command is not None:
                await command.carry_out(self)
            elif self.requests:
                await self.answer(text)
            elif text.strip():
                await self._say(text, how)
        except KoiError as error:
            help = HELP.get(error.code, error.help) if isinstance(error, SessionError) else error.help
            self.telling.failed += 1
            self.screen.fail(f"error: {error.message}" + (f"\n  = help: {help}" if help else ""))
        self.screen.change()

    async def ask(self, type: str, **fields: Any) -> Any:
        """The data of the response to a command. Raises SessionError."""
        response = await self.dispatcher.handle({"type": type, **fields}, lambda message: None)
        if not response["success"]:
            raise SessionError(response["error_code"], response["error"], help=response.get("help"))
        return response.get("data")

    async def _say(self, text: str, how: How) -> None:
        """Say a text that is no known command; a message that nobody can be given comes back."""
        try:
            if self.screen.person and text.startswith(OWN):
                self.own.begin(text.removeprefix(OWN), self.session.run.folder, self.screen.group)
                return
            if self.screen.person and self.attach(text):
                return
            if not text.startswith("/"):
                await self._give(text, how)
                return
        except KoiError:
            self.screen.put_back(text)
            raise
        word = text.split()[0]
        near = self._commands.nearest_command(word)
        meant = "" if near is None else f"Did you mean `{near}`? "
        help = f"{meant}`/help` lists them; a message may begin with a slash behind a space."
        raise UsageError(f"there is no command `{word}`", help=help)

    async def _give(self, text: str, how: How) -> None:
        """Give a message to whoever is at work, else to the handler. Raises KoiError."""
        await self.own.wait()
        if not self.is_busy:
            payload = self.target.payload(self._with_material(text.strip()), self._images(text))
            await self.ask("run_playbook", name=self.target.name, args=payload)
            self.own.outputs.clear()
            return
        await self.ask(how, **self.fields(text.strip()))
        self.own.outputs.clear()
        at_work = bool(self.session.run.steering.at_work)
        self.screen.note(heard_when(at_end=how == "follow_up", at_work=at_work))

    def attach(self, text: str) -> bool:
        """Attach the images that a text is nothing but, if it is; gives whether it was. Raises KoiError."""
        found = pasted_images(text)
        for name, image in found:
            self.screen.attach(self.attached.add(name, image))
        return bool(found)

    def fields(self, text: str) -> dict[str, Any]:
        """The fields of a command that says something, with the images that the text names. Raises BadImageError."""
        images = [value_of(image) for image in self._images(text)]
        return {"message": self._with_material(text), **({"images": images} if images else {})}

    def _with_material(self, text: str) -> str:
        """A message with the files that it names, and the output of the person's commands. Raises KoiError."""
        files = file_texts(text, self.session.run.folder, self.screen.note) if self.screen.person else []
        beside = [*self.own.outputs, *files]
        return text + BESIDE + "\n".join(beside) if beside else text

    def _images(self, text: str) -> list[Image]:
        images = self.attached.of(text)
        require_few(images)
        return images

    async def answer(self, text: str) -> None:
        """Answer the oldest request. Raises SessionError, and UsageError for an answer with images."""
        request = self.requests[0]
        if self.attached.of(text):
            self.screen.put_back(text)
            raise UsageError("an answer carries no images", help="Answer with a text, and show images in a message.")
        if request["type"] == APPROVAL:
            if text.strip().lower() == EVERYTHING and request.get("preview"):
                self.screen.say(request_text(request, replace(self.screen.paper(), rows=None)))
                return
            decision = _decision(text)
            if decision is None:
                self.screen.note("answer with yes, always or no")
                return
            fields = {"decision": decision.answer, "reason": decision.reason}
            await self.ask("approve", request=request["id"], **fields)
        else:
            await self.ask("answer", request=request["id"], answer=text)
        self._finish_request(request["id"])

    def leave_open(self, request: Request) -> None:
        """Say that nobody answers a request; what needs permission is then not allowed. Raises SessionError."""
        self.session.client.settle(request["id"], request["type"], None)
        self._finish_request(request["id"])

    async def abort(self) -> None:
        """End the call that is under way; what was queued comes back to the person."""
        aborted = await self.ask("abort")
        if aborted["queued"]:
            self.screen.put_back("\n".join(message_in(note["text"]) for note in aborted["queued"]))

    async def wait(self) -> None:
        """Wait until no call is under way, or the person is asked something."""
        while self.is_busy and not self.requests:
            self._news.clear()
            await self._news.wait()

    # ------------------------------------------------------------ what is told

    def follow(self, message: Message) -> None:
        """Take in what the session tells."""
        match message["type"]:
            case "event":
                self._follow_event(Event.of_data(message["event"]))
            case str(type) if type in (QUESTION, APPROVAL):
                self.requests.append(message)
                if len(self.requests) == 1:
                    self.screen.ask(message)
            case str(type) if type == CLOSED:
                if message["reason"] == ANSWERED:
                    self.screen.note(ELSEWHERE)
                self._finish_request(str(message["id"]))
            case "log":
                self.screen.note(harmless(str(message["text"])))
            case "session_failed":
                self.screen.fail(harmless(str(message["report"])))
                self.telling.failed += 1
        self._news.set()
        self.screen.change()

    def _finish_request(self, id: str) -> None:
        """Forget a request, and ask the next one."""
        was_first = bool(self.requests) and self.requests[0]["id"] == id
        self.requests = [request for request in self.requests if request["id"] != id]
        if was_first and self.requests:
            self.screen.ask(self.requests[0])

    def _follow_event(self, event: Event) -> None:
        self.telling.follow(event)
        match event.data:
            case CallStarted(args=args):
                self.recall(unless_omitted(args))
            case FileChanged():
                self._has_changed = True
            case MessageDelivered(text=text, images=images):
                self.attached.recall(text, images or ())
            case CallEnded() as ended if not event.recalled and self.session.is_open:
                self._take_left(ended)

    def _take_left(self, ended: CallEnded) -> None:
        """Have what came too late to be heard be the next message; if the work has failed it comes back."""
        left = "\n".join(message_in(note.text) for note in self.session.run.steering.take_back())
        if left and ended.ok:
            self.screen.note("what came too late to be heard is the next message")
            self.screen.order(f" {left}")
        elif left:
            self.screen.put_back(left)

    def recall(self, payload: Any) -> str:
        """The message in what a handler was given; its images can be sent again."""
        text = message_in(text_of(payload))
        self.attached.recall(text, payload.get(IMAGES, ()) if isinstance(payload, dict) else ())
        return text

    def tell_end(self) -> None:
        """Say which files were changed, and how the conversation can go on later, if it can."""
        session = self.session
        if self._has_changed and (changes := changes_text(session.run)):
            self.screen.note(session.run.redact(f"{changes}; {usage_text(session.statistics.usage)}"))
        if session.is_open and session.journal is not None and session.statistics.counts["calls"]:
            is_usual = [self.target] == targets(session.ready.agents)
            program = Path(str(session.ready.module.__file__))
            words = read_header(session.journal).words
            command = resuming_command(words, program, session.run.id, "" if is_usual else self.target.name)
            self.screen.note(f"`{command}` goes on with it")

    # ------------------------------------------------------------ how it stands

    def status(self) -> str:
        """One line: the handler, its model, what was taken, and who is at work."""
        choice, asked = self.session.choice.name(), self.telling.model
        parts = [self.target.name, one_line(asked if self.is_busy else choice or asked)]
        return "  ".join(part for part in (*parts, usage_text(self.session.statistics.usage), self._state()) if part)

    def _state(self) -> str:
        if self.requests:
            return "asks you"
        if self.own.is_running:
            return "runs your command"
        if not self.is_busy:
            return "idle"
        steering = self.session.run.steering
        queued = len(steering.pending_messages())
        waiting = f" ({queued} queued)" if queued else ""
        if steering.is_paused:
            return f"paused{waiting}"
        return f"{self.telling.state() or 'working'}{waiting}"


def _decision(text: str) -> ApprovalDecision | None:
    """The decision that an answer stands for."""
    word = text.strip()
    if word.isdecimal() and 1 <= int(word) <= len(APPROVALS):
        return decision_in(APPROVALS[int(word) - 1])
    return decision_in(word) if word else None
