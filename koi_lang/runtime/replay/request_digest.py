"""Digests of requests: a conversation grows, so each part of it is recorded, and compared, once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any
from weakref import WeakKeyDictionary

from koi_lang.llm.messages import Message, Request
from koi_lang.llm.transcript import Messages
from koi_lang.runtime.replay.digest_forms import FORM, PLAIN
from koi_lang.runtime.replay.location import Location


@dataclass(frozen=True, slots=True)
class RequestDelta:
    """The part of a request that is new in its call, or in the conversation of the agent.

    Attributes:
        fingerprint: changes with everything the model is told.
        kept: how many messages still stand in front of the new ones.
        messages: the new ones.
        system: None where it is as before.
        after: the fingerprint of the request before; empty where that is the one before in the same call.
    """

    fingerprint: str
    kept: int
    messages: Sequence[Message]
    system: str | None
    after: str = ""

    def as_data(self) -> dict[str, Any]:
        """The fields of an event."""
        system = {} if self.system is None else {"system": self.system}
        messages = [[message.role, message.text] for message in self.messages]
        after = {"after": self.after} if self.after else {}
        return {"request": self.fingerprint, **after, **system, "kept": self.kept, "messages": messages}


@dataclass(frozen=True, slots=True)
class _Known:
    """The last request of a call, or of an agent; `chain` is a digest of all messages."""

    system: str = ""
    messages: Sequence[Message] = ()
    chain: bytes = b""
    fingerprint: str = ""


class ToldDigests:
    """The messages already sent to the models of a run; forgotten when a call ends.

    Args:
        redact: takes secrets out of a text; a run that goes on later does not know them.
    """

    def __init__(self, redact: Callable[[str], str] = str) -> None:
        self._redact = redact
        self._known: WeakKeyDictionary[Location, _Known] = WeakKeyDictionary()
        self._last: dict[str, _Known] = {}

    def news(self, place: Location | None, request: Request, agent: str) -> RequestDelta:
        """The new part of a request of an agent at a place; outside of places all of it."""
        digest = None if place is None else self._known.get(place)
        is_first = digest is None
        before = digest or (_Known() if place is None else self._last.get(agent, _Known()))
        messages = request.messages
        kept = len(before.messages)
        chain = before.chain
        if not _begins_with(messages, before.messages):
            kept, chain = _common(before.messages, messages), b""
            chain = self._extend_chain(chain, messages[:kept])
        chain = self._extend_chain(chain, messages[kept:])
        now = _Known(request.system, messages, chain, self._fingerprint(request, chain))
        if place is not None:
            self._known[place] = now
        system = None if request.system == before.system else request.system
        after = before.fingerprint if is_first and (kept or system is None) else ""
        return RequestDelta(now.fingerprint, kept, messages[kept:], system, after)

    def note_written(self, place: Location | None, agent: str) -> None:
        """Have calls of an agent that follow be told apart from its request at a place, which is written down."""
        if place is not None and place in self._known:
            self._last[agent] = self._known[place]

    def _extend_chain(self, chain: bytes, messages: Sequence[Message]) -> bytes:
        for message in messages:
            shown = "".join(f"\0{image.digest}" for image in message.images)
            text = f"{message.role}\0{self._redact(message.text)}{shown}".encode("utf-8", "surrogatepass")
            chain = blake2b(chain + text, digest_size=16).digest()
        return chain

    def _fingerprint(self, request: Request, chain: bytes) -> str:
        system = self._redact(request.system)
        settings = (request.model, request.temperature, request.max_tokens, request.json, system)
        form = FORM + PLAIN * request.is_plain
        return f"{form}-{blake2b(repr(settings).encode() + chain, digest_size=12).hexdigest()}"


def _begins_with(messages: Sequence[Message], before: Sequence[Message]) -> bool:
    if isinstance(messages, Messages) and isinstance(before, Messages) and messages.log is before.log:
        return len(messages) >= len(before)
    return tuple(messages[: len(before)]) == tuple(before)


def _common(before: Sequence[Message], now: Sequence[Message]) -> int:
    """How many messages two conversations have in common at their beginning."""
    pairs = zip(before, now, strict=False)
    return next((n for n, (old, new) in enumerate(pairs) if old != new), min(len(before), len(now)))
