"""Conversations through real SDKs, with a server on 127.0.0.1 that answers in text or calls tools."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from koi_lang.events import Event, ThoughtDelta
from koi_lang.llm.connect import connect
from koi_lang.runtime.context import current_run
from tests.llm.server import Answer, Asked, ModelServer
from tests.playbook.playing import Played, Player

Turn: TypeAlias = Sequence[Mapping[str, Any]]
MODELS = {"openai": "gpt-5.4", "anthropic": "claude-sonnet-4-5"}
WAYS = [(provider, transport) for provider in MODELS for transport in ("text", "tools")]


class Talk(NamedTuple):
    """What a playbook did, what the server was asked, and what the model thought aloud."""

    played: Played
    asked: list[Asked]
    thoughts: list[str]


def as_call(action: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """The call of a tool that stands for an action, its arguments in pieces."""
    fields = {name: value for name, value in action.items() if name not in ("intent", "actionType")}
    name, given = str(action.get("intent", "plan")), fields
    if action.get("actionType") == "delegate":
        name, given = name.replace("::", "__"), fields["data"]
    elif name == "call_skill":
        name, given = f"{fields['skill']}__{fields['function']}", fields.get("input", {})
    elif name == "call_mcp":
        name, given = f"{fields['mcp']}__{fields['tool']}", fields.get("input", {})
    elif {"id", "condition"} & fields.keys() or name in ("if", "while", "repeat"):
        name, given = "plan", {"actions": [action]}
    elif name == "plan":
        given = {"actions": fields.get("batch") or [fields]}
    text = json.dumps(given, ensure_ascii=False)
    return name, tuple(text[start : start + 9] for start in range(0, len(text), 9))


def as_answer(turn: Turn, transport: str) -> Answer:
    """What the server sends for the actions of a turn."""
    if transport == "tools":
        return Answer(calls=tuple(map(as_call, turn)))
    text = "\n".join(json.dumps(action, ensure_ascii=False) for action in turn)
    return Answer(pieces=tuple(text[start : start + 9] for start in range(0, len(text), 9)))


def talk(player: Player, source: str, turns: Sequence[Turn | Answer], way: tuple[str, str], **options: Any) -> Talk:
    """What a playbook does when a server answers it so.

    Args:
        turns: as actions, or as the server sends them.
        way: provider and transport.
        options: of the `llm` block beside these, and of the call under `played`.
    """
    provider, transport = way
    played = options.pop("played", {})
    answers = [turn if isinstance(turn, Answer) else as_answer(turn, transport) for turn in turns]

    async def carry_out() -> Talk:
        async with ModelServer(answers) as server:
            url = f"{server.url}/v1" if provider == "openai" else server.url
            about = {"provider": provider, "model": MODELS[provider], "base_url": url, "transport": transport}
            model = connect({**about, **options}, lambda name: "k")
            heard = _Heard(model)
            done = await asyncio.to_thread(player, source, heard, **played)
            return Talk(done, server.requests, heard.thoughts)

    return asyncio.run(carry_out())


class _Heard:
    """A model that keeps what it is asked, and what it thinks."""

    def __init__(self, model: Any) -> None:
        self.inner, self.provider, self.model = model, model.provider, model.model
        self.takes_tools = model.takes_tools
        self.requests: list[Any] = []
        self.thoughts: list[str] = []

    def __call__(self, request: Any) -> Any:
        if not self.requests:
            current_run().events.subscribe(self._note, transient=True)
        self.requests.append(request)
        return self.inner(request)

    def _note(self, event: Event) -> None:
        if isinstance(event.data, ThoughtDelta):
            self.thoughts.append(event.data.text)

    async def aclose(self) -> None:
        await self.inner.aclose()


def story(events: Sequence[Event]) -> list[tuple[str, Any]]:
    """What happened in a run, without what models wrote and what it took."""
    passed_over = {"model_asked", "model_answered", "model_wrote", "answer_delta", "output_delta", "thinking_delta"}
    return [
        (event.type, {name: value for name, value in event.fields.items() if name not in ("ms", "seconds")})
        for event in events
        if event.type not in passed_over
    ]
