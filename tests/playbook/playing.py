"""A program's text and a model's answers to what came of them."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

from koi_lang.errors import ProviderError
from koi_lang.events import Event
from koi_lang.llm.messages import Adapter, Delta, Request, StreamEnd, TextDelta, Usage
from koi_lang.llm.scripted import Answers, ScriptedModel
from koi_lang.program import declarations, loader
from koi_lang.program.error_report import explain
from koi_lang.program.files import absolute
from koi_lang.program.safe_expressions import evaluate
from koi_lang.runtime.budget.limits import LimitReachedError
from koi_lang.runtime.playbook.placeholders import PLAYBOOK, PlaybookMessage
from koi_lang.runtime.run import Run
from koi_lang.runtime.services import Services
from koi_lang.settings import read_settings
from tests.limits import LIMIT_S
from tests.running import RecordingHost

Speak: TypeAlias = Callable[[Request], AsyncIterator[str]]


class Voice:
    """A model whose answers are spoken by a function; it keeps the requests it was asked.

    Args:
        usage: what every answer that comes to its end claims to have consumed.
        name: of the model; one with a known price costs something.
        report: what it says of what it has done, where a call was ended; without it that is an error.
    """

    provider = "voice"

    def __init__(self, speak: Speak, usage: Usage | None = None, name: str = "voice", report: str = "") -> None:
        self._speak, self._usage, self._report = speak, usage, report
        self.model = name
        self.requests: list[Request] = []

    async def __call__(self, request: Request) -> AsyncIterator[Delta]:
        """Stream what is spoken."""
        if request.is_report and not self._report:
            raise ProviderError("nothing is to be said")
        self.requests.append(request)
        async for text in as_pieces(self._report) if request.is_report else self._speak(request):
            yield TextDelta(text)
        yield StreamEnd(self._usage, "stop")

    async def aclose(self) -> None:
        """Nothing is held."""


async def as_pieces(text: str) -> AsyncIterator[str]:
    """A text as it arrives."""
    yield text


def playbook_in(request: Request) -> str:
    """The playbook as a model reads it."""
    told = [message.text for message in request.messages if isinstance(message, PlaybookMessage)]
    return next((text.removeprefix(PLAYBOOK) for text in reversed(told) if text.startswith(PLAYBOOK)), "")


@dataclass(frozen=True, slots=True)
class Played:
    """What a call of a handler did.

    Attributes:
        result: what it gave, None when it failed.
        error: what it failed with, None when it did not.
    """

    result: Any
    error: Exception | None
    printed: tuple[str, ...]
    logged: tuple[str, ...]
    requests: tuple[Request, ...]
    events: tuple[Event, ...]
    run: Run

    @property
    def told(self) -> str:
        """The message a person gets about the failure, empty when there was none."""
        return "" if self.error is None else explain(self.error)

    @property
    def feedback(self) -> list[str]:
        """What the model was told last before each answer."""
        return [request.messages[-1].text for request in self.requests]

    def did(self, type: str = "action_ended") -> list[str]:
        """The actions that were carried out, or, with another type of event, began or failed."""
        return [event.fields["intent"] for event in self.events if event.type == type]

    def state(self, agent: str) -> dict[str, Any]:
        """The state of an agent at the end."""
        return next(live.state for live in self.run._agents.values() if live.name == agent)


@dataclass(frozen=True, slots=True)
class Player:
    """A folder for programs, each loaded once.

    Attributes:
        programs: where programs are kept for several such folders, so that they are compiled once.
    """

    folder: Path
    programs: Path | None = None

    def load(self, source: str) -> ModuleType:
        """The module of a program."""
        path = (self.programs or self.folder) / f"{hashlib.sha256(source.encode()).hexdigest()[:12]}.koi"
        if not path.exists():
            path.write_text(source, "utf-8")
        return loader.module_of(absolute(str(path)))

    def __call__(
        self,
        source: str,
        answers: Answers | Adapter,
        *,
        call: str = "Main.go",
        payload: Any = None,
        host: RecordingHost | None = None,
        **services: Any,
    ) -> Played:
        """What a handler does when a model answers so; without a payload, an empty object is given."""
        return self.each(source, answers, [(call, {} if payload is None else payload)], host=host, **services)[0]

    def each(
        self,
        source: str,
        answers: Answers | Adapter,
        calls: Sequence[tuple[str, Any]],
        *,
        host: RecordingHost | None = None,
        **services: Any,
    ) -> list[Played]:
        """What each of several calls in one run does; output, requests and events are those of the whole run."""
        module, host = self.load(source), host or RecordingHost()
        model: Any = ScriptedModel(answers) if isinstance(answers, (Mapping, Sequence)) else answers
        events: list[Event] = []
        given = Services(
            settings=read_settings(services.get("folder", self.folder)),
            connect=lambda llm: model,
            host=host,
            teams=lambda: declarations.teams_of(module),
            folder=self.folder,
            config={"registry": {"backend": "memory"}},
            consumers=(events.append,),
            evaluate=evaluate,
        )
        run, outcomes = asyncio.run(_carry_out(module, replace(given, **services), calls))
        seen = (tuple(host.printed), tuple(host.logged), tuple(model.requests), tuple(events), run)
        return [Played(result, error, *seen) for result, error in outcomes]


async def _carry_out(
    module: ModuleType, services: Services, calls: Sequence[tuple[str, Any]]
) -> tuple[Run, list[tuple[Any, Exception | None]]]:
    outcomes: list[tuple[Any, Exception | None]] = []
    run = Run(services)
    try:
        async with asyncio.timeout(LIMIT_S), run:
            for call, payload in calls:
                agent, _, event = call.partition(".")
                try:
                    outcomes.append((await run.call(getattr(module, agent), event, payload), None))
                except Exception as error:  # becomes part of the outcome
                    outcomes.append((None, error))
    except LimitReachedError as error:
        if error.limit != "time":
            raise
        outcomes += [(None, error)] * (len(calls) - len(outcomes))
    return run, outcomes


def solo(*capabilities: str, more: str = "", playbook: str = "Do the work.") -> str:
    """A program with one agent, `Main`, whose handler `go` is a playbook."""
    can = ", ".join(f"can {capability}" for capability in capabilities or ("think",))
    return (
        f'role Worker {{ {can} }}\nagent Main : Worker {{\n{more}\n  on go(args) {{ playbook """{playbook}""" }}\n}}\n'
    )


def act(intent: str, **fields: Any) -> dict[str, Any]:
    """A direct action."""
    return {"actionType": "direct", "intent": intent, **fields}


def ask(intent: str, data: Any = None, **fields: Any) -> dict[str, Any]:
    """A delegate action."""
    return {"actionType": "delegate", "intent": intent, "data": {} if data is None else data, **fields}


def done(**data: Any) -> dict[str, Any]:
    """A `return` with some fields."""
    return act("return", data=data)
