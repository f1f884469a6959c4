"""The events of a run to spans by the GenAI semantic conventions.

A run is an `invoke_workflow`, a handler an `invoke_agent`, a request to a model a `chat`, an action or an effect of
code an `execute_tool`. In a session, which may last for days, each handler that a client calls is a trace of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from koi_lang.events import (
    ActionEnded,
    ActionFailed,
    ActionStarted,
    AnswerDiscarded,
    ApprovalGiven,
    ApprovalRequested,
    CallEnded,
    CallStarted,
    ConversationCompacted,
    EffectEnded,
    EffectFailed,
    EffectStarted,
    Event,
    EventData,
    HandlerEnded,
    HandlerFailed,
    HandlerStarted,
    ModelAnswered,
    ModelAsked,
    ModelFailed,
    ModelReplaced,
    PersonAnswered,
    PersonAsked,
    RetryEnded,
    RetryStarted,
    RunEnded,
    RunStarted,
    TextsEmbedded,
    TimedOut,
    unless_omitted,
)
from koi_lang.otel import conventions as names
from koi_lang.otel.conventions import Attributes
from koi_lang.otel.span_tree import Path, SpanTree

# Attributes of those that happen at a place and take no time; nothing of what people and models said.
MOMENTS: Mapping[type[EventData], tuple[str, ...]] = {
    RetryStarted: ("attempt", "tries", "delay_s", "error"),
    RetryEnded: ("ok", "attempt"),
    ModelReplaced: ("model", "by", "error"),
    AnswerDiscarded: ("model", "usd"),
    TimedOut: (),
    PersonAsked: (),
    PersonAnswered: (),
    ApprovalRequested: (),
    ApprovalGiven: ("answer",),
    ConversationCompacted: ("reason", "tokens_before", "tokens_after"),
}


@dataclass(slots=True)
class ToldMessages:
    """The last messages to a model in a call, or by an agent."""

    system: str = ""
    messages: Sequence[Sequence[str]] = ()


@dataclass(slots=True)
class OpenCall:
    """A call of a session; its handler has a path of its own, which is not known before it begins."""

    name: str
    handler: Path = ()


class RunSpans:
    """A consumer of the events of one run.

    Args:
        program: what the run is a run of.
        has_content: whether spans carry what models, tools and agents are given and give.
    """

    def __init__(self, tree: SpanTree, program: str, *, has_content: bool) -> None:
        self._tree = tree
        self._program = program
        self._has_content = has_content
        self._calls: dict[Path, OpenCall] = {}
        self._is_session = False
        self._began_ns = 0
        self._told: dict[Path, ToldMessages] = {}
        self._told_last: dict[str, ToldMessages] = {}

    def __call__(self, event: Event) -> None:
        """Follow an event."""
        at_ns, path = int(event.ts * 1e9), event.path
        match event.data:
            case RunStarted():
                self._began_ns = at_ns
            case RunEnded() as ended:
                self._end_run(event.run, at_ns, ended)
            case CallStarted(name=name):
                self._is_session = True
                self._calls[path] = OpenCall(name)
            case CallEnded() as ended:
                self._end_call(path, at_ns, ended)
            case HandlerStarted() | ModelAsked() | ActionStarted() | EffectStarted() | TextsEmbedded():
                self._require_run(event.run)
                self._enter(event, at_ns)
            case data:
                self._leave(event, data, at_ns)

    # ------------------------------------------------------------ places that are entered

    def _require_run(self, run: str) -> None:
        """Open the span of the whole run, which only runs have that are no sessions."""
        if not self._is_session and self._tree.open_at(()) is None:
            attributes = {names.OPERATION: names.INVOKE_WORKFLOW, names.WORKFLOW: self._program, names.RUN: run}
            self._tree.enter((), f"{names.INVOKE_WORKFLOW} {self._program}", attributes, self._began_ns, is_new=False)

    def _enter(self, event: Event, at_ns: int) -> None:
        name, kind, attributes = self._describe(event)
        attributes |= {names.CONVERSATION: event.run, names.RUN: event.run}
        if event.agent:
            attributes[names.AGENT] = event.agent
        self._tree.enter(event.path, name, attributes, at_ns, kind=kind, is_new=not event.recalled)
        if isinstance(event.data, TextsEmbedded):
            self._tree.leave(event.path, at_ns)
        elif isinstance(event.data, HandlerStarted) and len(event.path) == 1:
            self._note_handler_of_call(event.path)

    def _describe(self, event: Event) -> tuple[str, str, Attributes]:
        """The name of a span, its kind, and its first attributes."""
        match event.data:
            case HandlerStarted(event=handler, args=args):
                given = {names.INPUT: names.message_text("user", names.json_text(args))} if self._has_content else {}
                about = {names.OPERATION: names.INVOKE_AGENT, names.HANDLER: handler, **given}
                return f"{names.INVOKE_AGENT} {event.agent}", "INTERNAL", about
            case ModelAsked(model=model) as asked:
                about = names.model_attributes(model) | self._messages(event, asked)
                return _name(names.CHAT, about), "CLIENT", {names.OPERATION: names.CHAT, **about}
            case TextsEmbedded(model=model, tokens=tokens, usd=usd):
                about = names.model_attributes(model) | names.usage_attributes(tokens, usd, False)
                return _name(names.EMBEDDINGS, about), "CLIENT", {names.OPERATION: names.EMBEDDINGS, **about}
            case ActionStarted(intent=intent, fields=fields, id=id):
                return self._tool(intent, fields, {names.TOOL_CALL: id} if id else {})
            case EffectStarted(intent=intent, fields=fields):
                return self._tool(intent, fields, {})
        raise AssertionError(f"no span for {event.data!r}")

    def _tool(self, intent: str, fields: Any, more: Attributes) -> tuple[str, str, Attributes]:
        about = {names.OPERATION: names.EXECUTE_TOOL, names.TOOL: intent, names.TOOL_TYPE: "function", **more}
        if self._has_content:
            about[names.ARGUMENTS] = names.json_text(fields)
        return f"{names.EXECUTE_TOOL} {intent}", "INTERNAL", about

    def _messages(self, event: Event, asked: ModelAsked) -> Attributes:
        """All messages to a model, rebuilt from the new ones in the event."""
        if not self._has_content:
            return {}
        place = event.path[:-1]
        before = self._told.get(place) or self._told_last.get(event.agent) or ToldMessages()
        kept = before.messages[: unless_omitted(asked.kept, 0)]
        now = ToldMessages(unless_omitted(asked.system, before.system), (*kept, *unless_omitted(asked.messages, ())))
        self._told[place] = self._told_last[event.agent] = now
        system = names.json_text([{"type": "text", "content": now.system}])
        return {names.SYSTEM: system, names.INPUT: names.messages_text(now.messages)}

    # ------------------------------------------------------------ places that are left

    def _leave(self, event: Event, data: EventData, at_ns: int) -> None:
        path, node = event.path, self._tree.open_at(event.path)
        match data:
            case ModelAnswered() as answered:
                self._end_answer(path, at_ns, answered)
            case ActionEnded(result=result) | EffectEnded(result=result):
                self._end_with(path, at_ns, {names.RESULT: names.json_text(result)})
            case HandlerEnded(result=result):
                self._told.pop(path, None)
                output = names.message_text("assistant", names.json_text(result), stop="stop")
                self._end_with(path, at_ns, {names.OUTPUT: output})
            case HandlerFailed(error=error):
                self._told.pop(path, None)
                kind = names.OTHER_ERROR if node is None else node.failed_with
                self._tree.leave(path, at_ns, error=(kind, error))
            case ActionFailed(failure=failure) | EffectFailed(failure=failure) | ModelFailed(failure=failure):
                self._tree.leave(path, at_ns, error=_error_of(unless_omitted(failure, {})))
            case _ if type(data) in MOMENTS and not event.recalled:
                self._note(event, at_ns)

    def _end_with(self, path: Path, at_ns: int, content: Attributes) -> None:
        node = self._tree.open_at(path)
        if node is not None and self._has_content:
            self._tree.set(node, content)
        self._tree.leave(path, at_ns)

    def _end_answer(self, path: Path, at_ns: int, answered: ModelAnswered) -> None:
        node = self._tree.open_at(path)
        if node is not None:
            self._tree.set(node, self._answer(answered))
        self._tree.leave(path, at_ns)

    def _answer(self, answered: ModelAnswered) -> Attributes:
        """The usage of an answer, its stop reason, and its text where that is wanted."""
        _, _, model = answered.model.rpartition("/")
        about: Attributes = {names.RESPONSE_MODEL: model}
        about |= names.usage_attributes(answered.tokens, answered.usd, answered.estimated)
        stop = unless_omitted(answered.stop)
        if stop:
            about[names.FINISH_REASONS] = [stop]
        if unless_omitted(answered.replayed):
            about[names.REPLAYED] = True
        text = unless_omitted(answered.text)
        if self._has_content and text is not None:
            about[names.OUTPUT] = names.message_text("assistant", text, stop=stop)
        return about

    def _note(self, event: Event, at_ns: int) -> None:
        """Tell a moment at the request that it is about, where it tells so by its place, else at the place around."""
        attributes = {name: getattr(event.data, name) for name in MOMENTS[type(event.data)]}
        about = {f"koi.{name}": value for name, value in attributes.items() if unless_omitted(value) is not None}
        self._tree.note(self._tree.find(event.path), f"koi.{event.type}", about, at_ns)

    # ------------------------------------------------------------ calls of sessions, and the run

    def _note_handler_of_call(self, path: Path) -> None:
        """Keep which handler a call has begun, the oldest of that name first."""
        name = path[0].rpartition("#")[0]
        waiting = (call for call in self._calls.values() if call.name == name and not call.handler)
        call = next(waiting, None)
        if call is not None:
            call.handler = path

    def _end_call(self, path: Path, at_ns: int, ended: CallEnded) -> None:
        call = self._calls.pop(path, None)
        if call is None or not call.handler:
            return
        error = unless_omitted(ended.error)
        is_cancelled = bool(unless_omitted(ended.aborted) or unless_omitted(ended.timed_out))
        failure = None if error is None else (names.OTHER_ERROR, error)
        for place in [place for place in self._told if place[:1] == call.handler]:
            del self._told[place]
        self._tree.leave(call.handler, at_ns, error=failure, is_cancelled=is_cancelled)

    def _end_run(self, run: str, at_ns: int, ended: RunEnded) -> None:
        self._require_run(run)
        root = self._tree.open_at(())
        if root is not None:
            self._tree.note(root, f"koi.{ended.type}", {"koi.ok": ended.ok}, at_ns)
            error = None if ended.ok else (root.failed_with, "the run has failed")
            self._tree.leave((), at_ns, error=error, is_cancelled=bool(unless_omitted(ended.interrupted)))
        self._tree.leave_all(at_ns)


def _name(operation: str, about: Attributes) -> str:
    return f"{operation} {about[names.REQUEST_MODEL]}"


def _error_of(failure: Mapping[str, Any]) -> tuple[str, str]:
    """The class and the message of a failure."""
    return str(failure.get("class") or failure.get("name") or names.OTHER_ERROR), str(failure.get("error", ""))
