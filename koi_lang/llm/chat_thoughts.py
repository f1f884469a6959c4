"""Thoughts before calls of tools, in the form that servers of chat completions want back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from koi_lang.llm.stream_fields import field, word

# Fields in which thoughts come, and go back: of a message as a text and as a list, and of a call.
REASONING = "reasoning_content"
DETAILS = "reasoning_details"
EXTRA = "extra_content"
# Of an item of such a list, the texts that come in pieces.
GROWING = ("text", "summary", "data")
# What Google takes for the signature of thoughts that are not known: a run was resumed, or another model thought.
UNKNOWN = {"google": {"thought_signature": "skip_thought_signature_validator"}}


class ThoughtKeeper:
    """Collects the thoughts of one answer.

    Args:
        name: the field that the provider wants back; empty where it wants none.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._said: list[str] = []
        self._details: list[_Detail] = []
        self._extra: dict[int, Any] = {}

    def add_delta(self, delta: Any) -> None:
        """Take in a delta of a message."""
        if self._name == REASONING:
            self._said.append(word(delta, REASONING))
        details = field(delta, DETAILS) if self._name == DETAILS else None
        for detail in details if isinstance(details, list) else ():
            if isinstance(detail, Mapping):
                self._add_detail(detail)

    def _add_detail(self, detail: Mapping[str, Any]) -> None:
        """Take in an item, or a piece of the last one, which has the same type and index."""
        place = detail.get("type"), detail.get("index")
        if not self._details or self._details[-1].place != place:
            self._details.append(_Detail(place))
        self._details[-1].add(detail)

    def add_call(self, number: int, call: Any) -> None:
        """Take in a piece of a call, the n-th of the answer."""
        extra = field(call, EXTRA)
        if self._name == EXTRA and isinstance(extra, Mapping):
            self._extra[number] = extra

    @property
    def texts(self) -> tuple[str, ...] | None:
        """The texts to store, as in `Message`; None where the provider wants nothing back."""
        if not self._name:
            return None
        return tuple(json.dumps(each, ensure_ascii=False) for each in self._blocks())

    def _blocks(self) -> Iterator[dict[str, Any]]:
        if said := "".join(self._said):
            yield {"field": REASONING, "value": said}
        if self._details:
            yield {"field": DETAILS, "value": [detail.value for detail in self._details]}
        for number, extra in self._extra.items():
            yield {"field": EXTRA, "call": number, "value": extra}


class _Detail:
    """An item of a list of thoughts, which comes in pieces."""

    def __init__(self, place: tuple[Any, Any]) -> None:
        self.place = place
        self._fields: dict[str, Any] = {}
        self._grown: dict[str, list[str]] = {}

    def add(self, piece: Mapping[str, Any]) -> None:
        """Add a piece; empty ones remove nothing."""
        for name, value in piece.items():
            if name in GROWING and isinstance(value, str):
                self._grown.setdefault(name, []).append(value)
            elif value is not None:
                self._fields[name] = value

    @property
    def value(self) -> dict[str, Any]:
        """The whole item."""
        return {**self._fields, **{name: "".join(pieces) for name, pieces in self._grown.items()}}


def fields_of_message(texts: tuple[str, ...] | None, name: str) -> dict[str, Any]:
    """The fields of a message that calls tools, from stored texts; an unknown text is empty."""
    kept = [each["value"] for each in _blocks_of(texts, name)]
    if name == REASONING:
        return {name: kept[0] if kept else ""}
    return {name: kept[0]} if name == DETAILS and kept else {}


def fields_of_calls(texts: tuple[str, ...] | None, name: str, count: int) -> list[dict[str, Any]]:
    """The fields of each of the calls of such a message; the first one has a signature in any case."""
    fields: list[dict[str, Any]] = [{} for _ in range(count)]
    if name == EXTRA and count:
        fields[0] = {EXTRA: UNKNOWN}
        for each in _blocks_of(texts, EXTRA):
            fields[min(each["call"], count - 1)] = {EXTRA: each["value"]}
    return fields


def _blocks_of(texts: tuple[str, ...] | None, name: str) -> list[dict[str, Any]]:
    """The stored blocks of a field; thoughts of models of other interfaces are skipped."""
    blocks = [json.loads(text) for text in texts or ()]
    return [block for block in blocks if isinstance(block, dict) and block.get("field") == name]
