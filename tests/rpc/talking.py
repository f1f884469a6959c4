"""A session in this process: a test sends commands, decides when the model answers, and sees all that comes back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

from koi_lang.errors import ProviderError, UntrustedJournalError
from koi_lang.extensions.finding import Extension
from koi_lang.extensions.koi import Koi
from koi_lang.llm.messages import Request
from koi_lang.program import declarations, loader
from koi_lang.program.safe_expressions import evaluate
from koi_lang.rpc.dispatcher import Dispatcher
from koi_lang.runtime.budget.limits import Budget
from koi_lang.runtime.events import Consumer
from koi_lang.runtime.host import Host
from koi_lang.runtime.journal.history import History, lasting_entries, until
from koi_lang.runtime.journal.reader import read
from koi_lang.runtime.journal.store import find
from koi_lang.runtime.run import Run
from koi_lang.runtime.services import Services
from koi_lang.sessions.continuation import Continuation
from koi_lang.sessions.model_selection import ModelSelection
from koi_lang.sessions.options import RunOptions
from koi_lang.sessions.prepared import Note, Prepared
from koi_lang.settings import read_settings
from koi_lang.setup.preferences import preferences
from tests.limits import LIMIT_S
from tests.playbook.playing import Player, Voice

# A session that this machine has not signed.
FOREIGN = "foreign"
MODELS = [{"model": "some/model", "provider": "some", "name": "model"}]


Test: TypeAlias = Callable[["Talk"], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class PreparedHere(Prepared):
    """A program of these tests, whose models and services the tests make."""

    services: Callable[[Host, Sequence[Consumer], Mapping[str, Any]], Services] | None = None

    def run(self, host: Host, consumers: Sequence[Consumer], note: Note, **own: Any) -> Run:
        """A run that has not started yet."""
        assert self.services is not None
        return Run(self.services(host, consumers, own))


def double(koi: Koi) -> None:
    """An extension with a command."""
    koi.rpc["double"] = lambda given: {"doubled": given["n"] * 2}


class Choosing(ModelSelection):
    """A choice between models whose names begin with `good/`."""

    def __init__(self) -> None:
        self.chosen = self.level = ""
        self.providers = {}

    def name(self) -> str:
        """What was chosen."""
        return self.chosen

    async def change(self, model: str) -> None:
        """Choose a good model. Raises ProviderError for others."""
        if not model.startswith("good/"):
            raise ProviderError(f"there is no provider for `{model}`")
        self.chosen = model

    def effort(self) -> str:
        """How much models think."""
        return self.level

    def change_effort(self, effort: str) -> None:
        """Have them think so much."""
        self.level = effort

    async def available(self, refresh: bool) -> list[dict[str, Any]]:
        """One model."""
        return MODELS


@dataclass(slots=True)
class Talk:
    """A client.

    Attributes:
        messages: everything that was sent to it, responses included, in order.
        answers: what the model answers next; it waits for them.
        model: its requests are those that were made.
        connected: the model that was chosen whenever one was connected.
    """

    answers: asyncio.Queue[Any] = field(default_factory=asyncio.Queue)
    messages: list[Mapping[str, Any]] = field(default_factory=list)
    model: Voice = field(init=False)
    choice: Choosing = field(default_factory=Choosing)
    connected: list[str] = field(default_factory=list)
    dispatcher: Dispatcher = field(init=False)
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.model = Voice(self._speak)

    async def _speak(self, request: Request) -> AsyncIterator[str]:
        self._news.set()
        yield json.dumps(await self.answers.get())

    def connect(self, llm: Mapping[str, Any]) -> Voice:
        """The model, whichever is chosen."""
        self.connected.append(self.choice.name())
        return self.model

    def take(self, message: Mapping[str, Any]) -> None:
        """Keep a message."""
        self.messages.append(message)
        self._news.set()

    async def ask(self, type: str, **fields: Any) -> Mapping[str, Any]:
        """The response to a command."""
        return await self.dispatcher.handle({"type": type, **fields}, self.take)

    async def data(self, type: str, **fields: Any) -> Any:
        """The data of the response to a command that must be carried out."""
        response = await self.ask(type, **fields)
        assert response["success"], response
        return response.get("data")

    async def code(self, type: str, **fields: Any) -> Any:
        """The error code of a command that must be refused."""
        return (await self.ask(type, **fields))["error_code"]

    def answer(self, *answers: Any) -> None:
        """Have the model answer."""
        for answer in answers:
            self.answers.put_nowait(answer)

    def events(self, type: str = "") -> list[Mapping[str, Any]]:
        """The events so far, all or those of a type."""
        seen = [message["event"] for message in self.messages if message["type"] == "event"]
        return [event for event in seen if not type or event["type"] == type]

    async def until(self, type: str, count: int = 1) -> Mapping[str, Any]:
        """The count-th message or event of a type, once it is there."""
        while True:
            found = [message for message in self.messages if message["type"] == type] or self.events(type)
            if len(found) >= count:
                return found[count - 1]
            self._news.clear()
            await self._news.wait()

    async def asked(self, count: int) -> Request:
        """The count-th request of the model, once it is made."""
        while len(self.model.requests) < count:
            self._news.clear()
            await self._news.wait()
        return self.model.requests[count - 1]


@dataclass(frozen=True, slots=True)
class Talker:
    """Has tests talk to sessions of programs, in a folder of its own."""

    player: Player
    folder: Path

    def __call__(self, source: str, test: Test, *, recorded: bool = True, answer_s: float = 10.0, **how: Any) -> Talk:
        """What a test sees of a session."""
        module = self.player.load(source)
        return asyncio.run(self._talk(module, test, recorded, answer_s, how))

    async def _talk(
        self, module: ModuleType, test: Test, recorded: bool, answer_s: float, how: Mapping[str, Any]
    ) -> Talk:
        talk, limit = Talk(), how.get("limit", Budget())
        how = {name: value for name, value in how.items() if name != "limit"}

        def services(host: Host, consumers: Sequence[Consumer], own: Mapping[str, Any]) -> Services:
            return self._services(module, talk, host, consumers, {**own, **how})

        def reopen(run: str, at: int | None, trusted: bool) -> Continuation:
            if run == FOREIGN and not trusted:
                raise UntrustedJournalError(f"the journal `{run}` is not signed")
            return self._going(run, at)

        file = str(module.__file__)
        options = RunOptions(settings=read_settings(self.folder), record=recorded, words=("rpc", file))
        ready = PreparedHere(
            module,
            loader.load_compiled(file),
            options,
            preferences(None, options.lookup),
            agents=declarations.agents_of(module),
            version="f00d",
            extensions=[Extension("double", "double.py", "", lambda: double)],
            services=services,
        )
        talk.dispatcher = Dispatcher(ready, talk.take, answer_s=answer_s)
        session = talk.dispatcher.session
        session.choice, session.limit, session.detail = talk.choice, limit, "verbose"
        session.read_recorded = reopen  # type: ignore[method-assign]
        async with asyncio.timeout(LIMIT_S), session.open():
            await test(talk)
            await session.finish(0)
        return talk

    def _going(self, run: str, at: int | None) -> Continuation:
        """What a session goes on from, as the command line finds it."""
        path = find(self.folder, run)
        journal = read(path)
        kept = lasting_entries(journal.entries)
        if at is None:
            return Continuation(History(kept, "resume"), run, journal.header.seed, end=journal.end)
        return Continuation(History(until(kept, at), "branch"), seed=journal.header.seed, parent=(run, at))

    def _services(
        self, module: ModuleType, talk: Talk, host: Host, consumers: Sequence[Consumer], how: Mapping[str, Any]
    ) -> Services:
        return Services(
            connect=talk.connect,
            host=host,
            teams=lambda: declarations.teams_of(module),
            folder=self.folder,
            config={"registry": {"backend": "memory"}},
            consumers=consumers,
            evaluate=evaluate,
            **how,
        )
