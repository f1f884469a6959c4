"""One conversation of a client: its prompts are messages to a handler, and requests of the run go to the client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from koi_lang.acp.connection import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, Connection, JsonObject, RpcError
from koi_lang.acp.prompts import message_of_blocks
from koi_lang.acp.tool_calls import preview_content, text_content
from koi_lang.acp.updates import MODES, PLAN, WORK, Updates
from koi_lang.diagnostics import suggestion
from koi_lang.errors import AnswerRefusedError, AnswerTooLongError
from koi_lang.events import ModelAnswered
from koi_lang.llm.models import card_of
from koi_lang.rpc.dispatcher import Dispatcher
from koi_lang.runtime.actions.lookup import find_action
from koi_lang.runtime.budget.limits import LimitReachedError
from koi_lang.runtime.host import wish
from koi_lang.sessions.calls import begin_message
from koi_lang.sessions.client_host import APPROVAL, CLOSED, QUESTION, Message, approval_in
from koi_lang.sessions.continuation import NEW_RUN, Continuation
from koi_lang.sessions.errors import SessionError
from koi_lang.sessions.held_call import HeldCall
from koi_lang.sessions.prepared import Prepared

# Fields of the form of a question.
ANSWER, OTHER = "answer", "other"
# A person may take their time.
ANSWER_S = 24 * 3600.0
# How long what a call has left in the background may go on when its session is closed.
GRACE_S = 1.0
StopReason = Literal["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"]


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """A command of a session that a message calls by its name, behind a slash.

    Attributes:
        type: of the command.
        field: that takes what stands behind the name; empty for none.
        is_needed: whether something must stand there.
        answer: says what has come of it, as a format of the data of its response.
    """

    type: str
    description: str
    answer: str
    field: str = ""
    hint: str = ""
    is_needed: bool = True


COMMANDS = {
    "compact": SlashCommand(
        "compact",
        "Shorten what the agent remembers",
        "the conversation was shortened: {tokens_before:,} tokens became {tokens_after:,}",
        "instructions",
        "what to keep",
        is_needed=False,
    ),
    "cost": SlashCommand(
        "get_session_stats",
        "Show what the conversation took",
        "{requests:,} requests, {tokens[input]:,} tokens read, {tokens[output]:,} written, ${usd:.4f}{more}",
    ),
    "effort": SlashCommand(
        "set_thinking_level",
        "Have models think so much from now on",
        "models think with the effort `{level}` from now on",
        "level",
        "none, low, medium, high or auto",
    ),
    "model": SlashCommand(
        "set_model",
        "Use another model from now on",
        "answers come from {model} from now on",
        "model",
        "provider/model",
    ),
}


class AcpSession:
    """A session with a run of its own.

    Args:
        folder: that the client works in.
        target: the handler of messages, as `begin_message` takes it; empty where the program decides.
        log: takes lines that are no part of the conversation.
        forms: whether the client can show forms.
    """

    _start: Callable[[Coroutine[None, None, None]], asyncio.Task[None]]

    def __init__(
        self,
        ready: Prepared,
        connection: Connection,
        folder: Path,
        target: str,
        log: Callable[[str], None],
        *,
        forms: bool,
    ) -> None:
        self._dispatcher = Dispatcher(ready, self._follow, answer_s=ANSWER_S)
        self._connection = connection
        self._folder = folder
        self._target = target
        self._log = log
        self._updates = Updates(folder, lambda name: find_action(self._dispatcher.session.run, name))
        self._forms = forms
        # Requests that the client is asked, and questions that its next prompt answers, by their ids.
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._questions: list[str] = []
        self._over, self._ending = asyncio.Event(), asyncio.Lock()
        self._turn: asyncio.Future[StopReason] | None = None
        self.id = ""

    # ------------------------------------------------------------ its run

    async def open_in(
        self, group: asyncio.TaskGroup, earlier: Continuation = NEW_RUN, id: str = "", *, is_replayed: bool = True
    ) -> None:
        """Open the run in a task of a group. Raises KoiError.

        Args:
            earlier: opens the run of a session that goes on.
            id: of that session.
            is_replayed: whether its history is sent to the client.
        """
        self._is_replayed = is_replayed
        self.id, self._start = id, group.create_task
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._holder = group.create_task(self._hold(earlier, ready))
        try:
            await asyncio.wait([ready])  # which leaves it alone where this is cancelled
        except asyncio.CancelledError:
            self._over.set()
            raise
        ready.result()
        self._is_replayed = True

    async def _hold(self, earlier: Continuation, ready: asyncio.Future[None]) -> None:
        try:
            async with self._dispatcher.session.open(earlier) as session:
                self.id = self.id or session.run.id
                ready.set_result(None)
                await self._over.wait()
                await self.cancel()
                await session.finish(GRACE_S)
        except Exception as error:
            if ready.done():
                raise
            ready.set_exception(error)

    async def close(self) -> None:
        """End the run, and the call that is under way."""
        self._over.set()
        await asyncio.wait([self._holder])

    def interrupt(self) -> None:
        """End the call that is under way although its code computes. Any thread may call this."""
        self._dispatcher.session.interrupt(0)

    # ------------------------------------------------------------ modes and commands

    @property
    def modes(self) -> JsonObject:
        """The modes that there are, and the current one."""
        modes = [{"id": id, "name": name, "description": about} for id, (name, about) in MODES.items()]
        is_planning = self._dispatcher.session.run.planning.is_on
        return {"currentModeId": PLAN if is_planning else WORK, "availableModes": modes}

    async def set_mode(self, mode: str) -> None:
        """Begin or end plan mode. Raises RpcError."""
        if mode not in MODES:
            raise RpcError(INVALID_PARAMS, f"there is no mode `{mode}`", help=suggestion(mode, list(MODES), "mode"))
        await self._command("set_plan_mode", on=mode == PLAN)

    def send_commands(self) -> None:
        """Tell the client which words begin a command."""
        commands = []
        for name, command in COMMANDS.items():
            takes = {"input": {"hint": command.hint}} if command.hint else {}
            commands.append({"name": name, "description": command.description, **takes})
        self._update({"sessionUpdate": "available_commands_update", "availableCommands": commands})

    async def _command(self, type: str, **fields: Any) -> Any:
        """The data of the response to a command of the session. Raises RpcError."""
        response = await self._dispatcher.handle({"type": type, **fields}, lambda message: None)
        if not response["success"]:
            raise RpcError(INVALID_REQUEST, response["error"], help=response.get("help"))
        return response.get("data")

    async def _carry_out(self, name: str, argument: str) -> None:
        """Run the command in a message and report its result. Raises RpcError."""
        command = COMMANDS[name]
        if command.hint and command.is_needed and not argument:
            self._update(self._updates.say(f"`/{name} {command.hint}`: {command.description}"))
            return
        data = await self._command(command.type, **({command.field: argument} if command.field else {}))
        more = " or more" if data.get("unpriced") else ""
        self._update(self._updates.say(command.answer.format(**data, more=more)))

    # ------------------------------------------------------------ turns

    async def prompt(self, blocks: object) -> JsonObject:
        """Carry out a turn, and say why it has ended. Being cancelled ends the call. Raises KoiError."""
        async with self._ending:
            pass
        if self._turn is not None:
            raise RpcError(INVALID_REQUEST, "a turn is under way", help="Wait for its end, or cancel it.")
        if not self._questions and self._dispatcher.session.current_call is not None:
            text = "the turn that was interrupted when the agent was killed goes on"
            raise RpcError(INVALID_REQUEST, text, help="Wait for its end, or cancel it.")
        message = message_of_blocks(blocks, self._folder)
        self._turn = asyncio.get_running_loop().create_future()
        try:
            word, _, rest = message.text.strip().partition(" ")
            if self._questions:
                self._answer_question(message.text)
            elif word[:1] == "/" and word[1:] in COMMANDS:
                await self._carry_out(word[1:], rest.strip())
                return {"stopReason": "end_turn"}
            else:
                call = await self._dispatcher.begin_call(lambda held: begin_message(held, message, self._target))
                call.task.add_done_callback(lambda _: self._end_turn(call))
                self._updates.begin_turn(f"{self.id}-{call.id}")
            return {"stopReason": await self._turn}
        except asyncio.CancelledError:
            await self.cancel()
            raise
        finally:
            self._turn = None

    def _answer_question(self, text: str) -> None:
        """Answer the oldest question; the turn ends at once where another one is open."""
        with suppress(SessionError):  # somebody else has answered it meanwhile
            self._dispatcher.session.client.settle(self._questions.pop(0), QUESTION, text)
        if self._questions and self._turn is not None:
            self._turn.set_result("end_turn")

    async def cancel(self) -> None:
        """End the call that is under way; a prompt waits for that."""
        async with self._ending:
            await self._dispatcher.session.abort()

    def _end_turn(self, call: HeldCall) -> None:
        """End the turn as its call has ended, whose updates have been sent."""
        turn, ended = self._turn, call.describe_end(self._dispatcher.session.ready.explain)
        if turn is None or turn.done():
            return
        is_cut = call.task.cancelled() or call.scope.caught is not None
        reason = "cancelled" if ended.aborted else _stop_reason(None if is_cut else call.task.result().error)
        if ended.ok:
            turn.set_result("end_turn")
        elif reason is None:
            turn.set_exception(RpcError(INTERNAL_ERROR, ended.error, help=ended.help or None))
        else:
            if ended.error:
                self._update(self._updates.say(ended.error))
            turn.set_result(reason)

    # ------------------------------------------------------------ updates

    def _update(self, update: JsonObject) -> None:
        self._connection.notify("session/update", {"sessionId": self.id, "update": update})

    def _send_usage(self, event: JsonObject) -> None:
        """Send the tokens in the context of a model whose card has a limit, and the cost of the conversation."""
        size, tokens = card_of(str(event["model"])).context_tokens, event["tokens"]
        if size is not None:
            cost = {"amount": self._dispatcher.session.statistics.usage.usd, "currency": "USD"}
            used = tokens.get("input", 0) + tokens.get("output", 0)
            self._update({"sessionUpdate": "usage_update", "used": used, "size": size, "cost": cost})

    def _follow(self, message: Message) -> None:
        """Handle a message of the session."""
        match message["type"]:
            case "event":
                for update in self._updates.translate(message["event"]):
                    if self._is_replayed:
                        self._update(update)
                if message["event"]["type"] == ModelAnswered.type and not message["event"].get("recalled"):
                    self._send_usage(message["event"])
            case str(type) if type == APPROVAL:
                self._ask_client(message["id"], self._request_approval(message))
            case str(type) if type == QUESTION:
                self._ask_question(message)
            case str(type) if type == CLOSED:
                if (asking := self._asking.get(message["id"])) is not None:
                    asking.cancel()
                self._questions = [id for id in self._questions if id != message["id"]]
            case "log":
                self._log(str(message["text"]))
            case "session_failed":
                self._log(str(message["report"]))
                if self._turn is not None and not self._turn.done():
                    self._turn.set_exception(RpcError(INTERNAL_ERROR, str(message["error"])))

    # ------------------------------------------------------------ requests to the client

    def _ask_client(self, id: str, asking: Coroutine[None, None, None]) -> None:
        self._asking[id] = self._start(asking)
        self._asking[id].add_done_callback(lambda _: self._asking.pop(id, None))

    async def _ask(self, method: str, params: JsonObject) -> JsonObject:
        """The answer of the client; empty where it cannot be asked."""
        try:
            return await self._connection.request(method, {"sessionId": self.id, **params})
        except RpcError as error:
            self._log(error.message)
            return {}

    def _settle(self, request: Message, answer: str | None) -> None:
        with suppress(SessionError):  # somebody else has answered it meanwhile
            self._dispatcher.session.client.settle(request["id"], request["type"], answer)

    async def _request_approval(self, request: Message) -> None:
        """Ask the person; any unclear answer permits nothing."""
        approval = approval_in(request)
        chain = f"asked for by {' → '.join(f'`{name}`' for name in approval.chain)}" if approval.chain else ""
        content = [*(text_content(text) for text in (approval.detail, chain) if text)]
        id = "/".join(request["path"])
        call = {
            "toolCallId": id,
            "kind": self._updates.kind_of(id),
            "title": wish(approval.what, approval.agent),
            "status": "pending",
            "content": [*content, *preview_content(approval.preview, self._folder)],
        }
        options = [("yes", "allow_once", "Allow"), ("no", "reject_once", "Reject")]
        if approval.always:
            options.insert(1, ("always", "allow_always", f"Always allow {approval.always}"))
        answered = await self._ask(
            "session/request_permission",
            {
                "toolCall": call,
                "options": [{"optionId": id, "kind": kind, "name": name} for id, kind, name in options],
            },
        )
        match answered.get("outcome"):
            case {"outcome": "selected", "optionId": str(id)} if any(id == option[0] for option in options):
                self._settle(request, id)
            case _:
                self._settle(request, "no")

    def _ask_question(self, request: Message) -> None:
        """Ask by a form where the client shows forms, else by a message that its next prompt answers.

        Questions for secrets are not sent: neither a form nor a message may hold one.
        """
        if request.get("secret"):
            self._settle(request, None)
        elif self._forms:
            self._ask_client(request["id"], self._show_form(request))
        else:
            options = [f"{number}. {option}" for number, option in enumerate(request["options"], 1)]
            self._questions.append(request["id"])
            self._update(self._updates.say("\n".join([request["question"], *options])))
            if self._turn is not None and not self._turn.done():
                self._turn.set_result("end_turn")

    async def _show_form(self, request: Message) -> None:
        """Have the person answer a question; options leave room for other words."""
        text, options = {"type": "string", "title": "Answer"}, list(request["options"])
        choice = {"type": "string", "title": "Answer", "enum": options, "default": options[0]} if options else text
        more = {OTHER: {"type": "string", "title": "Something else"}} if options else {}
        schema = {"type": "object", "properties": {ANSWER: choice, **more}, "required": [] if options else [ANSWER]}
        form = {"mode": "form", "message": request["question"], "requestedSchema": schema}
        answered = await self._ask("elicitation/create", form)
        content = answered.get("content") if answered.get("action") == "accept" else None
        values = [content.get(name) for name in (OTHER, ANSWER)] if isinstance(content, dict) else []
        self._settle(request, next((str(each) for each in values if each not in (None, "")), None))


def _stop_reason(error: BaseException | None) -> StopReason | None:
    """The stop reason for an error; None where the request fails with it."""
    match error:
        case AnswerTooLongError() | LimitReachedError(limit="tokens"):
            return "max_tokens"
        case LimitReachedError():
            return "max_turn_requests"
        case AnswerRefusedError():
            return "refusal"
    return None
