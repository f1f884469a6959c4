"""Conversations through real SDKs, with a server on 127.0.0.1 that answers in text or calls tools."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from koi_lang.events import Event, ThoughtDelta
from koi_lang.llm.connect import ModelEnvironment, connect
from koi_lang.runtime.actions.control import CONTROL
from koi_lang.runtime.context import current_run
from koi_lang.runtime.playbook.compaction import request_compaction
from tests.llm.server import Answer, Asked, ModelServer
from tests.playbook.playing import Played, Player

Action: TypeAlias = Mapping[str, Any]
# By the interface that they are asked through.
MODELS = {"openai": "gpt-5.4", "responses": "gpt-5.4", "anthropic": "claude-sonnet-4-5"}
WAYS = [(provider, transport) for provider in MODELS for transport in ("text", "tools", "schema")]
LEAST_PIECE, MOST_PIECES = 9, 500


class Said(NamedTuple):
    """An answer of a model with more to it than its actions.

    Attributes:
        beside: what it says in words before them.
        thoughts: what it thinks first.
        cut: it ends within its last action, so many characters before its end.
    """

    actions: Sequence[Action]
    beside: str = ""
    thoughts: tuple[str, ...] = ()
    cut: int = 0


Turn: TypeAlias = Sequence[Action] | Said | str
Script: TypeAlias = Sequence[Turn | Answer] | Mapping[str, Sequence[Turn | Answer]] | Callable[[Asked], Turn]


class Talk(NamedTuple):
    """What the last call of a playbook did, what the server was asked, and what the model thought aloud."""

    played: Played
    asked: list[Asked]
    thoughts: list[str]


# ---------------------------------------------------------------- answers


def as_call(action: Action) -> tuple[str, str]:
    """The call of a tool that stands for an action: its name and its arguments. One without a kind is no tool."""
    fields = {name: value for name, value in action.items() if name not in ("intent", "actionType")}
    name, given = str(action.get("intent", "plan")), fields
    if {"id", "condition"} & fields.keys() or name in CONTROL or name == "plan":
        name, given = "plan", {"actions": fields.get("batch") or [action if "intent" in action else fields]}
    elif "actionType" not in action:
        pass
    elif action["actionType"] == "delegate":
        name, given = name.replace("::", "__"), fields["data"]
    elif name == "call_skill":
        name, given = f"{fields['skill']}__{fields['function']}", fields.get("input", {})
    elif name == "call_mcp":
        name, given = f"{fields['mcp']}__{fields['tool']}", fields.get("input", {})
    return name, json.dumps(given, ensure_ascii=False)


def as_text(said: Said) -> Answer:
    """An answer in text: actions a line each, in one value where something stands before them."""
    lines = [json.dumps(action, ensure_ascii=False) for action in said.actions]
    text = "\n".join(lines)
    if said.beside:
        text = f"{said.beside}\n{json.dumps({'batch': said.actions}, ensure_ascii=False)}"
    return Answer(pieces=_pieces(text[: -said.cut or None]), thoughts=said.thoughts)


def as_actions(said: Said) -> Answer:
    """An answer as a schema has it; words have no place in it."""
    if said.beside:
        return as_text(said)
    text = json.dumps({"batch": said.actions}, ensure_ascii=False)
    return Answer(pieces=_pieces(text[: -said.cut or None]), thoughts=said.thoughts)


def as_calls(said: Said) -> Answer:
    """An answer that calls tools."""
    *before, (name, arguments) = map(as_call, said.actions)
    calls = [*before, (name, arguments[: -said.cut or None])]
    answer = Answer(calls=tuple((name, _pieces(text)) for name, text in calls), thoughts=said.thoughts)
    return replace(answer, pieces=(said.beside,)) if said.beside else answer


FORMS: Mapping[str, Callable[[Said], Answer]] = {"text": as_text, "schema": as_actions, "tools": as_calls}


def as_answer(turn: Turn | Answer, transport: str, provider: str = "openai") -> Answer:
    """What the server sends for a turn; a text is sent as it is."""
    if isinstance(turn, Answer):
        return turn
    if isinstance(turn, str):
        return Answer(pieces=(turn,))
    said = turn if isinstance(turn, Said) else Said(turn)
    answer = FORMS[transport](said)
    cut = "max_tokens" if provider == "anthropic" else "length"
    return replace(answer, stop_reason=cut) if said.cut else answer


def _pieces(text: str) -> tuple[str, ...]:
    size = max(LEAST_PIECE, len(text) // MOST_PIECES)
    return tuple(text[start : start + size] for start in range(0, len(text), size))


# ---------------------------------------------------------------- talks


def talk(
    player: Player,
    source: str,
    script: Script,
    way: tuple[str, str],
    *,
    calls: Sequence[tuple[str, Any]] = (("Main.go", {}),),
    played: Mapping[str, Any] | None = None,
    meanwhile: Mapping[int, Callable[[], Any]] | None = None,
    notes: list[str] | None = None,
    **options: Any,
) -> Talk:
    """What a playbook does when a server answers it so.

    Args:
        script: answers as actions, or as the server sends them; or those to each agent, by its name; or a
            function of the request.
        way: provider, or `responses` for OpenAI's other interface, and transport.
        calls: of handlers, one after the other in one run.
        played: what else the run is given; `payload` is that of the first call.
        meanwhile: what happens in the run when it makes its n-th request, counted from 0.
        notes: is given lines to the person.
        options: of the `llm` block beside these.
    """
    provider, transport = way
    given = dict(played or {})
    first, *more = calls
    each = [(first[0], given.pop("payload", first[1])), *more]
    answers = _Answers(script, transport, provider)
    around = ModelEnvironment(note=(notes if notes is not None else []).append)

    async def carry_out() -> Talk:
        async with ModelServer(answers) as server:
            about = {"model": MODELS[provider], "transport": transport}
            model = connect({**about, **_address(provider, server.url), **options}, lambda name: "k", around=around)
            heard = _Heard(model, meanwhile or {})
            done = await asyncio.to_thread(player.each, source, heard, each, **given)
            return Talk(done[-1], server.requests, heard.thoughts)

    return asyncio.run(carry_out())


def _address(provider: str, url: str) -> dict[str, Any]:
    """The options by which an interface of a server is reached."""
    if provider == "responses":
        return {"provider": "openai", "interface": "responses", "base_url": f"{url}/v1"}
    return {"provider": provider, "base_url": f"{url}/v1" if provider == "openai" else url}


class _Answers:
    """The answers of a script in order, those to each agent apart where it says so; the last one is repeated."""

    def __init__(self, script: Script, transport: str, provider: str) -> None:
        self._as_answer = partial(as_answer, transport=transport, provider=provider)
        self._choose = script if callable(script) else self._in_order(script)

    def __call__(self, asked: Asked) -> Answer:
        return self._as_answer(self._choose(asked))

    def _in_order(self, script: Sequence[Any] | Mapping[str, Sequence[Any]]) -> Callable[[Asked], Any]:
        parts = script if isinstance(script, Mapping) else {"": script}
        lists = {name: list(turns) for name, turns in parts.items()}

        def choose(asked: Asked) -> Any:
            told = asked.sent.decode()
            left = next(left for name, left in lists.items() if not name or name in told)
            return left.pop(0) if len(left) > 1 else left[0]

        return choose


class _Heard:
    """A model that keeps what it is asked, and what it thinks."""

    def __init__(self, model: Any, meanwhile: Mapping[int, Callable[[], Any]]) -> None:
        self.inner, self.provider, self.model = model, model.provider, model.model
        self.takes_tools = model.takes_tools
        self.requests: list[Any] = []
        self.thoughts: list[str] = []
        self._meanwhile = meanwhile

    def __call__(self, request: Any) -> Any:
        if not self.requests:
            current_run().events.subscribe(self._note, transient=True)
        self._meanwhile.get(len(self.requests), lambda: None)()
        self.requests.append(request)
        return self.inner(request)

    def _note(self, event: Event) -> None:
        if isinstance(event.data, ThoughtDelta):
            self.thoughts.append(event.data.text)

    async def aclose(self) -> None:
        await self.inner.aclose()


def say(text: str) -> Callable[[], Any]:
    """Steers the run."""
    return lambda: current_run().steering.say(text)


def shorten(agent: str = "Main") -> Callable[[], Any]:
    """Has the conversation of an agent shortened before its next request."""

    def wish() -> asyncio.Task[Any]:
        found = next(each for each in current_run()._agents.values() if each.name == agent)  # type: ignore[attr-defined]
        return asyncio.get_running_loop().create_task(request_compaction(found))

    return wish


# ---------------------------------------------------------------- what came of them

# Written while an answer arrives: how often depends on where its pieces end.
OF_PIECES = frozenset({"model_wrote", "answer_delta", "output_delta", "thinking_delta"})
# Of these only that they happened is the same: texts and figures are the model's.
OF_MODELS = frozenset({"model_asked", "model_answered", "model_failed", "answer_discarded", "compacted"})
OF_CLOCKS = frozenset({"ms", "seconds"})


def story(events: Sequence[Event], *, in_order: bool = True) -> list[tuple[Any, ...]]:
    """What happened in a run and where, as its journal tells it, without what models wrote and what it took.

    Args:
        in_order: else what happens at the same time may stand in any order.
    """
    told = list(_told(events))
    return told if in_order else sorted(told, key=lambda each: each[1])


def _told(events: Sequence[Event]) -> Iterator[tuple[Any, ...]]:
    for event in events:
        if event.type in OF_PIECES or event.type in OF_MODELS:
            continue
        fields = {name: value for name, value in event.fields.items() if name not in OF_CLOCKS}
        yield event.type, event.path, event.agent, fields


def requests_in(events: Sequence[Event]) -> list[tuple[Any, ...]]:
    """Which requests were made where, and what became of them; a report is a text, for which no tools are offered."""
    made = ((event.path, event.type) for event in events if event.type in OF_MODELS)
    return sorted(each for each in made if not any(part.startswith("report-") for part in each[0]))
