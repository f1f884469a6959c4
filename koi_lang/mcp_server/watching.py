"""Subscriptions of clients to documents: they are told when the agent that makes one has another state."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from koi_lang.events import Event, HandlerEnded, HandlerFailed, StateChanged
from koi_lang.js.errors import ErrorValue
from koi_lang.js.json_text import stringify_exactly
from koi_lang.runtime.agents.agent import Agent

Tell = Callable[[str], Coroutine[Any, Any, None]]
# An agent of a run; None while the run sleeps.
FindAgent = Callable[[], Agent | None]
# Events behind which a state may be another one.
ENDS = (HandlerEnded, HandlerFailed, StateChanged)
MAX_WATCHED = 1000


@dataclass(slots=True)
class _Watched:
    """A document that somebody watches, and the state that its agent had when they were told last."""

    find_agent: FindAgent
    tell: Tell
    state: str


@dataclass(slots=True)
class Watch:
    """The documents that the client of one session watches.

    Attributes:
        start: has something carried out in the session.
    """

    start: Callable[[Coroutine[Any, Any, None]], object]
    _all: dict[str, _Watched] = field(default_factory=dict)

    def add(self, uri: str, find_agent: FindAgent, tell: Tell) -> bool:
        """Watch a document; whether there was room for it."""
        if uri not in self._all and len(self._all) >= MAX_WATCHED:
            return False
        self._all[uri] = _Watched(find_agent, tell, _state(find_agent()))
        return True

    def remove(self, uri: str) -> None:
        """Watch a document no longer."""
        self._all.pop(uri, None)

    def look(self, event: Event) -> None:
        """Tell the client of each document whose agent has another state behind an event."""
        if not isinstance(event.data, ENDS):
            return
        for uri, watched in self._all.items():
            agent = watched.find_agent()
            if agent is not None and agent.name == event.agent and watched.state != (now := _state(agent)):
                watched.state = now
                self.start(watched.tell(uri))


def _state(agent: Agent | None) -> str:
    """The state of an agent as text; empty where JSON cannot hold it."""
    try:
        return "" if agent is None else str(stringify_exactly(agent.state))
    except ErrorValue:
        return ""
