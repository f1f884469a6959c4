"""Partial texts of models as streamed messages; sent parts are never changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

# Begins a reference, which is only known when the text is complete.
REFERENCE = "${"


@dataclass(frozen=True, slots=True)
class TextUpdate:
    """The start of a message, a piece of its text, or its end.

    Attributes:
        id: of the message.
        delta: the piece; empty at the start and at the end.
    """

    phase: Literal["start", "content", "end"]
    id: str
    delta: str = ""


@dataclass(slots=True)
class StreamedText:
    """A text that is being written.

    Attributes:
        place: the path of the handler whose model writes it.
        sent: what of it was sent.
    """

    id: str
    place: tuple[str, ...]
    action: str
    sent: str = ""
    text: str = ""

    @property
    def sure(self) -> str:
        """As much of the text as will stand in the complete one."""
        sure = self.text.partition(REFERENCE)[0]
        return sure.removesuffix("$")


class TextMessages:
    """The messages of one stream.

    Attributes:
        finished: those that are complete, as id and text.
    """

    def __init__(self, run: str) -> None:
        self._run, self._count = run, 0
        self._open: dict[tuple[tuple[str, ...], int, str], StreamedText] = {}
        # Texts that were complete before anything of them was streamed, with their actions and paths; pieces that
        # arrive later belong to them, and their keys are passed over.
        self._unstreamed: list[tuple[str, tuple[str, ...], str]] = []
        self._late: set[tuple[tuple[str, ...], int, str]] = set()
        self.finished: list[tuple[str, str]] = []

    def add(self, event: Mapping[str, Any]) -> Iterator[TextUpdate]:
        """A piece of a text, or the text so far."""
        key = (tuple(event["path"]), event["number"], event["field"])
        known = self._open.get(key)
        if known is None:
            place, begun = key[0][:-1], StreamedText("", (), "", text=event["text"]).sure
            for sent in self._unstreamed if begun else ():
                if sent[0] == event["action"] and sent[1][: len(place)] == place and sent[2].startswith(begun):
                    self._unstreamed.remove(sent)
                    self._late.add(key)
                    break
            if key in self._late:
                return
            known = self._open[key] = StreamedText(self._new_id(), place, event["action"])
            yield TextUpdate("start", known.id)
        known.text = event["text"] if event.get("so_far") else known.text + event["text"]
        yield from self._send(known, known.sure)

    def _new_id(self) -> str:
        self._count += 1
        return f"{self._run}-text-{self._count}"

    def _send(self, known: StreamedText, text: str) -> Iterator[TextUpdate]:
        """Send the new part of a text."""
        if text.startswith(known.sent) and len(text) > len(known.sent):
            delta, known.sent = text[len(known.sent) :], text
            yield TextUpdate("content", known.id, delta)

    def complete(self, action: str, path: Sequence[str], text: str) -> Iterator[TextUpdate]:
        """A text that is complete now: the oldest that was streamed there, or a new one."""
        key = self._find(action, tuple(path))
        known = None if key is None else self._open.pop(key)
        if known is not None and text.startswith(known.sent):
            yield from self._send(known, text)
            yield self._end(known)
            return
        if known is not None:
            yield self._end(known)
        if known is None:
            self._unstreamed.append((action, tuple(path), text))
        if text:
            fresh = StreamedText(self._new_id(), (), action)
            yield TextUpdate("start", fresh.id)
            yield from self._send(fresh, text)
            yield self._end(fresh)

    def _find(self, action: str, path: tuple[str, ...]) -> tuple[tuple[str, ...], int, str] | None:
        fitting = (
            key for key, text in self._open.items() if text.action == action and path[: len(text.place)] == text.place
        )
        return next(fitting, None)

    def _end(self, known: StreamedText) -> TextUpdate:
        self.finished.append((known.id, known.sent))
        return TextUpdate("end", known.id)

    def end_all(self, *, will_come_again: bool = False) -> Iterator[TextUpdate]:
        """End the open texts; one that is repeated as a whole is no finished message."""
        for known in self._open.values():
            yield TextUpdate("end", known.id) if will_come_again else self._end(known)
        self._open.clear()
