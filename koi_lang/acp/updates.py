"""The events of a session as updates of ACP: texts, thoughts, plans and tool calls."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

from koi_lang.acp.connection import JsonObject
from koi_lang.acp.prompts import code_block
from koi_lang.acp.tool_calls import FileDiffs, kind_of, output_of, start_of, text_content
from koi_lang.events import (
    ActionEnded,
    ActionFailed,
    ActionStarted,
    ApprovalGiven,
    ApprovalRequested,
    CallEnded,
    CallStarted,
    EffectEnded,
    EffectFailed,
    EffectStarted,
    FileChanged,
    HandlerStarted,
    LinePrinted,
    OutputDelta,
    PlanDecided,
    PlanModeChanged,
    PlanStepFinished,
    ThoughtDelta,
)
from koi_lang.runtime.actions.registered import ActionKind, ToolKind
from koi_lang.sessions.message_targets import text_of
from koi_lang.sessions.text_messages import TextMessages, TextUpdate

# Actions that are texts for people, and no calls of tools.
TEXTS = ("print", "return", "prompt_user", "prompt_form")
WORK, PLAN = "work", "plan"
MODES = {
    WORK: ("Work", "Changes and commands are asked about"),
    PLAN: ("Plan", "Nothing changes before a plan is accepted"),
}


class Updates:
    """The updates of one session.

    Args:
        folder: of the session.
        find_action: an action of its run by name.
    """

    def __init__(self, folder: Path, find_action: Callable[[str], ActionKind | None]) -> None:
        self._folder = folder
        self._diffs = FileDiffs(folder)
        self._find_action = find_action
        # Tool calls that have not ended, with their titles.
        self._titles: dict[str, str] = {}
        # The kinds of actions and effects of the call, which may be asked about before they are shown.
        self._kinds: dict[str, ToolKind] = {}
        self._plan: list[list[str]] = []
        self._numbers = count(1)
        self.begin_turn("")

    def begin_turn(self, id: str) -> None:
        """Have the texts that follow be messages of a turn."""
        self._turn = id
        self._texts = TextMessages(id)
        self._handler = ("",)
        self._last = ""

    def translate(self, event: JsonObject) -> Iterator[JsonObject]:
        """The updates that an event of the session means."""
        path = tuple(event["path"])
        match event["type"]:
            case ThoughtDelta.type:
                yield _chunk("agent_thought_chunk", event["text"], f"{'/'.join(path)}-thought")
            case OutputDelta.type if event["action"] == "print" or (
                (event["action"], len(path)) == ("return", 2) and event["field"] in ("", "data")
            ):
                # What the call itself prints, or returns as a text, which people see.
                yield from self._say(self._texts.add(event))
            case LinePrinted.type:
                yield from self._say(self._texts.complete("print", path, str(event["message"])))
            case HandlerStarted.type if len(path) == 1:
                self._handler = path
            case CallStarted.type if event.get("recalled"):
                self.begin_turn(event["call"])
                yield _chunk("user_message_chunk", text_of(event.get("args")), f"{event['call']}-user")
            case CallEnded.type:
                yield from self._end_call(event)
            case PlanModeChanged.type:
                yield {"sessionUpdate": "current_mode_update", "currentModeId": PLAN if event["on"] else WORK}
            case PlanDecided.type if event["answer"] == "accepted":
                self._plan = [[text, "pending"] for text in event["steps"]]
                yield self._plan_update()
            case PlanStepFinished.type if 0 < event["step"] <= len(self._plan):
                self._plan[event["step"] - 1][1] = "completed"
                yield self._plan_update()
            case _:
                yield from self._follow_tool(event, "/".join(path))

    def say(self, text: str) -> JsonObject:
        """A message of the agent that no model has written."""
        (chunk,) = self._say([TextUpdate("content", f"{self._turn}-said-{next(self._numbers)}", text)])
        return chunk

    def _say(self, texts: Iterable[TextUpdate]) -> Iterator[JsonObject]:
        """Pieces of messages; there is a gap before one that follows another, as some clients join them."""
        for text in texts:
            if text.phase == "content":
                gap = "\n\n" if self._last not in ("", text.id) else ""
                self._last = text.id
                yield _chunk("agent_message_chunk", gap + text.delta, text.id)

    def _end_call(self, event: JsonObject) -> Iterator[JsonObject]:
        """The result of a call, as a text or, without one, as a value; its open tool calls have failed."""
        result = event.get("result") if event["ok"] else None
        if isinstance(result, str) and result != "undefined":
            yield from self._say(self._texts.complete("return", self._handler, result))
        elif result and not isinstance(result, str) and not self._last:
            yield self.say(code_block(json.dumps(result, ensure_ascii=False, indent=2, default=str)))
        for id in tuple(self._titles):
            yield self._end_tool(id, "failed", [])
        self._kinds.clear()

    def _plan_update(self) -> JsonObject:
        entries = [{"content": text, "priority": "medium", "status": status} for text, status in self._plan]
        return {"sessionUpdate": "plan", "entries": entries}

    # ------------------------------------------------------------ tool calls

    def kind_of(self, id: str) -> ToolKind:
        """The kind of the tool call with an id, which may not have begun."""
        return self._kinds.get(id, "other")

    def _follow_tool(self, event: JsonObject, id: str) -> Iterator[JsonObject]:
        match event["type"]:
            case ActionStarted.type if event["intent"] not in TEXTS:
                start = start_of(event, self._folder, self._find_action(event["intent"]))
                self._kinds[id] = start["kind"]
                yield self._begin_tool(id, "in_progress", **start)
            case EffectStarted.type:
                intent = event["intent"].removeprefix("code.")
                self._kinds.setdefault(id, kind_of(intent, self._find_action(intent)))
            case ApprovalRequested.type if id not in self._titles:
                yield self._begin_tool(id, "pending", title=event["what"], kind=self.kind_of(id))
            case ApprovalGiven.type if id in self._titles and event["answer"] != "no":
                title = self._titles[id]
                yield {**_tool("tool_call_update", id, "in_progress"), "title": title, "content": []}
            case FileChanged.type:
                around = ("/".join(event["path"][:length]) for length in range(len(event["path"]) - 1, 0, -1))
                if (tool := next((each for each in around if each in self._titles), None)) is not None:
                    self._diffs.add(tool, event)
            case ActionEnded.type | EffectEnded.type if id in self._titles:
                yield self._end_tool(id, "completed", output_of(event, self._find_action(event["intent"])))
            case ActionFailed.type | EffectFailed.type if id in self._titles:
                yield self._end_tool(id, "failed", [text_content(str(event["error"]))])

    def _begin_tool(self, id: str, status: str, **about: Any) -> JsonObject:
        self._titles[id] = about["title"]
        return {**_tool("tool_call", id, status), **about}

    def _end_tool(self, id: str, status: str, content: list[JsonObject]) -> JsonObject:
        title, diffs = self._titles.pop(id), self._diffs.take(id)
        update = {**_tool("tool_call_update", id, status), "title": title, "content": [*content, *diffs]}
        return {**update, "locations": [{"path": diff["path"]} for diff in diffs]} if diffs else update


def _tool(update: str, id: str, status: str) -> JsonObject:
    return {"sessionUpdate": update, "toolCallId": id, "status": status}


def _chunk(kind: str, text: str, message: str) -> JsonObject:
    return {"sessionUpdate": kind, "messageId": message, "content": {"type": "text", "text": text}}
