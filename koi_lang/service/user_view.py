"""The view of users without admin rights: one list of events, fields and commands for every route.

A user sees what was said, done, asked and paid. Prompts, answers of models as they are, results of tools, source lines
and the rules of the operator are for admins. What is not on the list is not sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from koi_lang import events
from koi_lang.errors import KoiError
from koi_lang.events import ENVELOPE, EventData
from koi_lang.program.error_report import message as message_of
from koi_lang.rpc.commands import all_commands
from koi_lang.rpc.dispatcher import refusal
from koi_lang.runtime.journal.entries import JournalEntry, event_data
from koi_lang.runtime.journal.history import RESUMED
from koi_lang.service.attached import RunHandle
from koi_lang.service.feed import EVENT, MessageView, view_all
from koi_lang.service.users import User
from koi_lang.sessions.client_host import APPROVAL, CLOSED, QUESTION, Message
from koi_lang.sessions.errors import SessionError
from koi_lang.settings.service import GRANTED_COMMANDS

PAYMENT = ("model", "tokens", "usd", "stop", "estimated", "replayed")
# The fields of each type of event, by their names on the wire.
EVENT_FIELDS: Mapping[type[EventData], tuple[str, ...]] = {
    # what was said
    events.CallStarted: ("call", "name", "args"),
    events.CallEnded: ("call", "name", "ok", "result", "aborted", "timed_out", "code", "error", "help"),
    events.LinePrinted: ("message",),
    events.OutputDelta: ("action", "field", "number", "text"),
    events.PartialResult: ("value",),
    events.MessageDelivered: ("id", "text", "mode", "to", "from", "images"),
    events.QueueChanged: ("steering", "follow_up"),
    # what was asked
    events.PersonAsked: ("question", "options"),
    events.PersonAnswered: ("question", "answer"),
    events.ApprovalRequested: ("what", "detail", "id", "chain"),
    events.ApprovalGiven: ("what", "answer", "id", "reason"),
    events.RuleAllowed: ("rule",),
    events.PlanDecided: ("answer", "steps", "tasks", "words"),
    # what was done
    events.HandlerStarted: ("event",),
    events.HandlerEnded: ("event",),
    events.HandlerFailed: ("event",),
    events.ActionStarted: ("intent", "id", "fields"),
    events.ActionEnded: ("intent", "result"),
    events.ActionFailed: ("intent",),
    events.EffectStarted: ("intent", "fields"),
    events.EffectEnded: ("intent", "fields", "result"),
    events.EffectFailed: ("intent", "fields"),
    events.McpProgress: ("mcp", "tool", "progress", "total", "message"),
    events.FileChanged: ("file",),
    events.FileRestored: ("file", "entry"),
    events.StateChanged: ("updates",),
    events.PlanStepFinished: ("step", "steps", "text"),
    events.RoundStarted: ("round", "rounds"),
    events.RoundEnded: ("round", "rounds"),
    events.TimedOut: (),
    events.RetryStarted: ("attempt", "tries", "delay_s"),
    events.RetryEnded: ("ok", "attempt"),
    events.RunStarted: (),
    events.RunEnded: ("ok", "interrupted"),
    events.RunPaused: (),
    events.RunContinued: (),
    events.SessionNamed: ("name",),
    events.ModelChanged: ("model",),
    events.EffortChanged: ("effort",),
    events.PlanModeChanged: ("on",),
    events.CompactionAsked: (),
    events.ConversationCompacted: ("lasting", "reason", "tokens_before", "tokens_after"),
    # what it cost
    events.ModelAsked: ("model",),
    events.ModelAnswered: (*PAYMENT, "written"),
    events.AnswerDiscarded: PAYMENT,
    events.TextsEmbedded: PAYMENT,
    events.ModelFailed: ("class",),
}
FIELDS: Mapping[str, tuple[str, ...]] = {RESUMED: (), **{kind.type: names for kind, names in EVENT_FIELDS.items()}}
# Of what an action or effect is given, that which says what it does; a file's contents are seen in the approval.
INPUTS = frozenset(
    {
        *("command", "path", "url", "pattern", "query", "mcp", "tool", "input", "skill", "function", "key"),
        *("question", "options", "form", "event", "role", "step", "steps", "why"),
    }
)
# The field of such inputs that is an object, of which the same names count.
NESTED = "data"
# Results that come from the person.
ANSWERS = ("prompt_user", "prompt_form")
# Messages beside events, with their fields; None for all.
MESSAGES: Mapping[str, tuple[str, ...] | None] = {
    **dict.fromkeys(("rpc_ready", "state", "cut_off", QUESTION, APPROVAL, CLOSED), None),
    "session_failed": ("code", "error", "help"),
}
COMMANDS = frozenset(
    {
        *("prompt", "run_playbook", "run", "continue", "steer", "follow_up", "send_to", "take_back", "pause", "abort"),
        *("answer", "approve", "set_steering_mode", "set_follow_up_mode", "set_thinking_level"),
        *("set_plan_mode", "set_session_name", "compact", "get_state", "get_session_stats"),
        *("list_agents", "get_commands", "get_available_models"),
    }
)
# Addresses, variables and paths of the operator in messages of errors.
OPERATOR_DETAILS = re.compile(
    r"`?(?:\b[a-z][a-z0-9+.-]*://[^\s`]+|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?|\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b|/(?:[\w.-]+/)+[\w.-]*)`?"
)
# What help begins with that is for a terminal, and what users get in place of help that is for the operator.
COMMAND_LINE = "`koi "
USER_HELP = "Ask whoever runs the service."
# Fields of every entry.
ENTRY = ("n", "ts", "kind", "path", "agent", "recalled")


def view_of(user: User) -> MessageView:
    """The view of the runs that a user may see."""
    return view_all if user.is_admin else view_as_user


def view_as_user(message: Message) -> Message | None:
    """A message in the view of a user without admin rights; None for a hidden one."""
    if message["type"] == EVENT:
        event = message["event"]
        names = FIELDS.get(event["type"])
        return None if names is None else {**message, "event": _visible(event, names, ENVELOPE | {"so_far"})}
    names = MESSAGES.get(message["type"], ())
    if names is None:
        return message
    return hide_operator(_pick(message, ("type", *names))) if names else None


def entries_as_user(entries: Iterable[JournalEntry]) -> Iterator[dict[str, Any]]:
    """The JSON forms of the entries that a user without admin rights may see."""
    for entry in entries:
        names = FIELDS.get(event_data(entry, "")["type"])
        if names is not None:
            yield _visible(entry.as_data(), names, ENTRY)


def hide_operator(data: Mapping[str, Any]) -> dict[str, Any]:
    """The `error` of a failure without addresses, variables and paths of the operator, with no `help` for them."""
    texts = {name: data[name] for name in ("error", "help") if isinstance(data.get(name), str)}
    hidden = {name: OPERATOR_DETAILS.sub("…", text) for name, text in texts.items()}
    if hidden == texts and COMMAND_LINE not in texts.get("help", ""):
        return {**data}
    shown = {**data, "error": hidden.get("error", "")}
    return shown | ({"help": USER_HELP} if "help" in data else {})


def explain_to_user(error: BaseException) -> str:
    """An error for a user without admin rights: message and advice, without its place in the program."""
    help = {"help": error.help} if isinstance(error, KoiError) and error.help else {}
    fields = hide_operator({"error": message_of(error), **help})
    return "\n".join(fields.values())


def _visible(data: Mapping[str, Any], names: Iterable[str], envelope: Iterable[str]) -> dict[str, Any]:
    visible = _pick(data, (*envelope, *names))
    if "error" in names:
        visible = hide_operator(visible)
    if isinstance(visible.get("fields"), dict):
        inputs = visible["fields"] = _pick(visible["fields"], INPUTS)
        if isinstance(nested := data["fields"].get(NESTED), dict):
            inputs[NESTED] = _pick(nested, INPUTS)
    if "intent" in visible and visible["intent"] not in ANSWERS:
        visible.pop("result", None)
    return visible


def _pick(data: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: data[name] for name in names if name in data}


async def handle_as(user: User, run: RunHandle, message: Mapping[str, Any]) -> Message:
    """Carry out a command of a user in a run that they may see, and give its response."""
    if user.is_admin:
        return await run.handle(message)
    type = message.get("type")
    if type not in (*COMMANDS, *user.commands) and any(type == each.name for each in all_commands()):
        seen = "`GET /api/runs/ID/entries` and the stream of events have what you are shown of a run."
        help = USER_HELP if type in GRANTED_COMMANDS else seen
        return refusal(SessionError("admins_only", f"`{type}` is for admins alone", help=help), message)
    response = await run.handle(message)
    data = response.get("data")
    if type == "compact" and isinstance(data, dict):
        return {**response, "data": {name: value for name, value in data.items() if name != "summary"}}
    return response
