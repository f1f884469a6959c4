"""The events of a session as updates of ACP: what is said, thought, planned and done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from koi_lang.acp.connection import JsonObject
from koi_lang.events import (
    CallEnded,
    CallStarted,
    LinePrinted,
    OutputDelta,
    ThoughtDelta,
)
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
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._texts = TextMessages("")
        self._plan: list[tuple[str, bool]] = []

    def begin_turn(self, id: str) -> None:
        """Have the texts that follow be messages of a turn."""
        self._texts = TextMessages(id)

    def translate(self, event: JsonObject) -> Iterator[JsonObject]:
        """The updates that an event of the session means."""
        path = tuple(event["path"])
        match event["type"]:
            case ThoughtDelta.type:
                yield _chunk("agent_thought_chunk", event["text"], f"{'/'.join(path)}-thought")
            case OutputDelta.type if event["action"] == "print" or _is_result(event, path):
                yield from _chunks(self._texts.add(event))
            case LinePrinted.type:
                yield from _chunks(self._texts.complete("print", path, str(event["message"])))
            case CallStarted.type if event.get("recalled"):
                self.begin_turn(event["call"])
                yield _chunk("user_message_chunk", text_of(event.get("args")), f"{event['call']}-user")
            case CallEnded.type if event["ok"] and isinstance(text := event.get("result"), str) and text != "undefined":
                yield from _chunks(self._texts.complete("return", (f"{event['name']}#",), text))

    def say(self, text: str) -> JsonObject:
        """A message of the agent that no model has written."""
        return _chunk("agent_message_chunk", text, None)


def _is_result(event: JsonObject, path: tuple[str, ...]) -> bool:
    """Whether a text is the result of the call itself, which people see."""
    return event["action"] == "return" and event["field"] == "" and len(path) == 2


def _chunks(texts: Iterable[TextUpdate]) -> Iterator[JsonObject]:
    for text in texts:
        if text.phase == "content":
            yield _chunk("agent_message_chunk", text.delta, text.id)


def _chunk(kind: str, text: str, message: str | None) -> JsonObject:
    named = {} if message is None else {"messageId": message}
    return {"sessionUpdate": kind, **named, "content": {"type": "text", "text": text}}
