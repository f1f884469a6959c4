"""The messages of a session to events of AG-UI, for one run of that protocol.

Such a run goes from a message of a person to the end of the call that it begins, or to the first question or approval
that is open.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from ag_ui.core import (
    PROTOCOL_VERSION,
    AssistantMessage,
    BaseEvent,
    FunctionCall,
    Interrupt,
    Message,
    MessagesSnapshotEvent,
    ReasoningEndEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    ReasoningStartEvent,
    RunAgentInput,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunFinishedSuccessOutcome,
    RunStartedEvent,
    StateDeltaEvent,
    StateSnapshotEvent,
    StepFinishedEvent,
    StepStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    TokenUsage,
    ToolCall,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
    ToolMessage,
)

from koi_lang.events import (
    ActionEnded,
    ActionFailed,
    ActionStarted,
    CallEnded,
    HandlerEnded,
    HandlerFailed,
    HandlerStarted,
    ModelAnswered,
    OutputDelta,
    StateChanged,
    ThoughtDelta,
)
from koi_lang.runtime.actions.client_tools import PREFIX, AgentFields
from koi_lang.sessions.text_messages import TextMessages, TextUpdate

# Actions that are texts for people, and no calls of tools.
TEXTS = ("print", "return", "prompt_user", "prompt_form")
# Behind which the state of an agent may be another one.
STATE_CHANGING = (HandlerEnded.type, HandlerFailed.type, CallEnded.type)
# Of a question that calls a tool of the page.
TOOL = "tool"
APPROVAL_SCHEMA = {
    "type": "object",
    "properties": {"decision": {"enum": ["yes", "always", "no"]}, "reason": {"type": "string"}},
    "required": ["decision"],
}


class Projection:
    """One run of AG-UI.

    Args:
        state: of agents that have some, by their names, before it begins.
        shared: gives the state that agents share with the page as it is now; code changes it without an event.
        call: id of the call that it is about; the end of another one is not its end.

    Attributes:
        is_over: whether its last event was given.
    """

    def __init__(
        self,
        given: RunAgentInput,
        state: AgentFields,
        shared: Callable[[], AgentFields],
        call: str = "",
    ) -> None:
        self._given = given
        self._texts = TextMessages(given.run_id)
        self._call = call
        self._state = {agent: dict(fields) for agent, fields in state.items()}
        self._steps: dict[tuple[str, ...], str] = {}
        self._calls: list[Message] = []
        self._thought = ""
        self._usage: dict[str, dict[str, int]] = {}
        self._shared, self.is_over = shared, False

    def begin(self) -> Iterator[BaseEvent]:
        """The first events."""
        yield RunStartedEvent(
            thread_id=self._given.thread_id, run_id=self._given.run_id, protocol_version=PROTOCOL_VERSION
        )
        yield StateSnapshotEvent(snapshot=self._state)

    def translate(self, message: Mapping[str, Any], requests: Iterable[Mapping[str, Any]]) -> Iterator[BaseEvent]:
        """The events that a message of the session means.

        Args:
            requests: the questions and approvals that are open now.
        """
        if message["type"] != "event" or message["event"]["type"] in STATE_CHANGING:
            for agent, fields in self._shared().items():
                known = self._state.get(agent, {})
                changed = {each: fields[each] for each in fields if each not in known or known[each] != fields[each]}
                if changed:
                    yield self._change_state(agent, changed)
        match message["type"]:
            case "event":
                yield from self._translate_event(message["event"])
            case "question" | "approval_request":
                yield from self._interrupt(list(requests) or [message])
            case "session_failed":
                yield from self.fail(str(message.get("error")))

    def _translate_event(self, event: Mapping[str, Any]) -> Iterator[BaseEvent]:
        path = tuple(event["path"])
        if event["type"] != ThoughtDelta.type:
            yield from self._end_thought()
        match event["type"]:
            case ThoughtDelta.type:
                yield from self._think(event)
            case OutputDelta.type if event["action"] == "print" or _is_result(event, path):
                yield from map(_text_event, self._texts.add(event))
            case "printed":
                yield from map(_text_event, self._texts.complete("print", path, str(event["message"])))
            case HandlerStarted.type:
                yield from self._begin_step(path)
            case HandlerEnded.type | HandlerFailed.type:
                yield from self._end_step(path)
            case ActionStarted.type if _is_tool(event["intent"]):
                yield from self._call_tool("/".join(path), event["intent"], event.get("fields") or {})
            case ActionEnded.type | ActionFailed.type if _is_tool(event["intent"]):
                yield from self._end_call(event, path)
            case StateChanged.type:
                yield self._change_state(event["agent"], event.get("updates") or {})
            case ModelAnswered.type:
                self._count(event)
            case CallEnded.type if event["call"] == self._call or not self._call:
                yield from self._end(event)

    # ------------------------------------------------------------ steps, calls, thoughts, state

    def _begin_step(self, path: tuple[str, ...]) -> Iterator[BaseEvent]:
        """A handler begins; its name stands alone unless another one of that name is under way."""
        name = path[-1]
        self._steps[path] = "/".join(path) if name in self._steps.values() else name
        yield StepStartedEvent(step_name=self._steps[path])

    def _end_step(self, path: tuple[str, ...]) -> Iterator[BaseEvent]:
        """The end of a handler, with the cancelled steps inside."""
        for inside in [other for other in reversed(self._steps) if other[: len(path)] == path]:
            yield StepFinishedEvent(step_name=self._steps.pop(inside))

    def _call_tool(self, id: str, name: str, fields: Mapping[str, Any]) -> Iterator[BaseEvent]:
        arguments = json.dumps(fields, ensure_ascii=False)
        yield ToolCallStartEvent(tool_call_id=id, tool_call_name=name, parent_message_id=f"{id}-call")
        yield ToolCallArgsEvent(tool_call_id=id, delta=arguments)
        yield ToolCallEndEvent(tool_call_id=id)
        call = ToolCall(id=id, function=FunctionCall(name=name, arguments=arguments))
        self._calls.append(AssistantMessage(id=f"{id}-call", tool_calls=[call]))

    def _end_call(self, event: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[BaseEvent]:
        # Users who are no admins are told that an action has failed, and not why.
        id, error = "/".join(path), event.get("error", "it failed" if event["type"] == ActionFailed.type else None)
        content = str(error) if error is not None else json.dumps(event.get("result"), ensure_ascii=False)
        self._calls.append(ToolMessage(id=f"{id}-result", tool_call_id=id, content=content, error=error))
        yield ToolCallResultEvent(message_id=f"{id}-result", tool_call_id=id, content=content, role="tool")

    def _think(self, event: Mapping[str, Any]) -> Iterator[BaseEvent]:
        id = f"{self._given.run_id}-thought-{'/'.join(event['path'])}"
        if self._thought != id:
            yield from self._end_thought()
            self._thought = id
            yield ReasoningStartEvent(message_id=id)
            yield ReasoningMessageStartEvent(message_id=id, role="reasoning")
        yield ReasoningMessageContentEvent(message_id=id, delta=event["text"])

    def _end_thought(self) -> Iterator[BaseEvent]:
        if self._thought:
            yield ReasoningMessageEndEvent(message_id=self._thought)
            yield ReasoningEndEvent(message_id=self._thought)
            self._thought = ""

    def _change_state(self, agent: str, updates: Mapping[str, Any]) -> BaseEvent:
        """The changed state of an agent, as a JSON Patch."""
        delta = []
        if agent not in self._state:
            self._state[agent] = {}
            delta.append({"op": "add", "path": f"/{_pointer(agent)}", "value": {}})
        for name, value in updates.items():
            self._state[agent][name] = value
            delta.append({"op": "add", "path": f"/{_pointer(agent)}/{_pointer(name)}", "value": value})
        return StateDeltaEvent.model_validate({"delta": delta})

    def _count(self, event: Mapping[str, Any]) -> None:
        usage = self._usage.setdefault(event["model"], {"input": 0, "output": 0, "cached": 0})
        for kind in usage:
            usage[kind] += event["tokens"].get(kind, 0)

    # ------------------------------------------------------------ the end

    def _end(self, event: Mapping[str, Any]) -> Iterator[BaseEvent]:
        result = event.get("result")
        if event["ok"] and isinstance(result, str) and result != "undefined":
            yield from map(_text_event, self._texts.complete("return", (f"{event['name']}#",), result))
        if event["ok"]:
            yield from self._finish(RunFinishedSuccessOutcome(), result)
        elif event.get("aborted"):
            yield from self._finish(RunFinishedCancelledOutcome())
        else:
            yield from self.fail(str(event.get("error") or "the call has failed"))

    def _interrupt(self, requests: Iterable[Mapping[str, Any]]) -> Iterator[BaseEvent]:
        """End with the open requests: tool calls of the page, and all others as interrupts."""
        calls = {"/".join(request["path"]): request[TOOL] for request in requests if TOOL in request}
        interrupts = [_interrupt_of(request) for request in requests if TOOL not in request]
        yield from map(_text_event, self._texts.end_all(will_come_again=True))
        for id, tool in calls.items():
            yield from self._call_tool(id, tool["name"], tool["arguments"])
        if interrupts:
            yield from self._finish(RunFinishedInterruptOutcome(interrupts=interrupts))
        else:
            yield from self._finish(RunFinishedSuccessOutcome(pending_tool_call_ids=list(calls)))

    def _finish(self, outcome: Any, result: Any = None) -> Iterator[BaseEvent]:
        yield from self._close()
        new = [AssistantMessage(id=id, content=text) for id, text in self._texts.finished if text]
        yield MessagesSnapshotEvent(messages=[*self._given.messages, *self._calls, *new])
        usage = [_usage_of(model, tokens) for model, tokens in self._usage.items()]
        yield RunFinishedEvent(
            thread_id=self._given.thread_id,
            run_id=self._given.run_id,
            result=result,
            outcome=outcome,
            usage=usage or None,
        )
        self.is_over = True

    def fail(self, message: str, code: str | None = None) -> Iterator[BaseEvent]:
        """The end with an error."""
        yield from self._close()
        yield RunErrorEvent(message=message, code=code)
        self.is_over = True

    def _close(self) -> Iterator[BaseEvent]:
        """End the open steps: a stream may not end before them."""
        yield from self._end_thought()
        yield from map(_text_event, self._texts.end_all())
        for path in reversed(list(self._steps)):
            yield StepFinishedEvent(step_name=self._steps.pop(path))


def _text_event(update: TextUpdate) -> BaseEvent:
    match update.phase:
        case "start":
            return TextMessageStartEvent(message_id=update.id, role="assistant")
        case "content":
            return TextMessageContentEvent(message_id=update.id, delta=update.delta)
    return TextMessageEndEvent(message_id=update.id)


def _is_tool(intent: str) -> bool:
    """Whether an action is shown as a call of a tool; a tool of the page is, when the page is asked for it."""
    return intent not in TEXTS and not intent.startswith(PREFIX)


def _is_result(event: Mapping[str, Any], path: tuple[str, ...]) -> bool:
    """Whether a text is the result of the call itself, which people see."""
    return event["action"] == "return" and event["field"] == "" and len(path) == 2


def _interrupt_of(request: Mapping[str, Any]) -> Interrupt:
    """A question or an approval as an interrupt."""
    expires = datetime.now(UTC) + timedelta(seconds=float(request.get("timeout_s") or 0))
    common = {"id": request["id"], "expires_at": expires.isoformat()}
    path = request.get("path") or []
    if request["type"] == "question":
        options = request.get("options") or []
        schema = {"type": "string", **({"enum": list(options)} if options else {})}
        metadata = {"koi": {name: request[name] for name in ("options", "secret", "form") if name in request}}
        return Interrupt(
            **common, reason="input_required", message=request["question"], response_schema=schema, metadata=metadata
        )
    about = {name: request[name] for name in ("agent", "preview", "always", "chain") if name in request}
    message = "\n".join(filter(None, (request.get("what"), request.get("detail"))))
    return Interrupt(
        **common,
        reason="tool_call",
        message=message,
        tool_call_id="/".join(path),
        response_schema=APPROVAL_SCHEMA,
        metadata={"koi": about},
    )


def _usage_of(model: str, tokens: Mapping[str, int]) -> TokenUsage:
    provider, _, name = model.rpartition("/")
    return TokenUsage(
        provider=provider or None,
        model=name,
        input_tokens=tokens["input"],
        output_tokens=tokens["output"],
        cached_input_tokens=tokens["cached"],
    )


def _pointer(name: str) -> str:
    """A name as a part of a JSON Pointer."""
    return name.replace("~", "~0").replace("/", "~1")
