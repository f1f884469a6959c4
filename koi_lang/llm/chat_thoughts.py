"""What a model thought before its calls of tools, as servers that speak chat completions want it back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from koi_lang.llm.stream_fields import field, word

# Fields in which thoughts come, and go back: of a message, and of a call.
REASONING, EXTRA = "reasoning_content", "extra_content"
# What Google takes for the signature of thoughts that are not known: a run was resumed, or another model thought.
UNKNOWN = {"google": {"thought_signature": "skip_thought_signature_validator"}}


class ThoughtKeeper:
    """Keeps what goes back of one answer.

    Args:
        name: the field that the provider wants back; empty where it wants none.
    """

    def __init__(self, name: str) -> None:
        self._name, self._said = name, ""
        self._extra: dict[int, Any] = {}

    def add_delta(self, delta: Any) -> None:
        """Take in a delta of a message."""
        if self._name == REASONING:
            self._said += word(delta, REASONING)

    def add_call(self, number: int, call: Any) -> None:
        """Take in a piece of a call, the n-th of the answer."""
        extra = field(call, EXTRA)
        if self._name == EXTRA and isinstance(extra, Mapping):
            self._extra[number] = extra

    @property
    def texts(self) -> tuple[str, ...] | None:
        """What is to be kept, as in `Message`; None where the provider wants nothing back."""
        if not self._name:
            return None
        return tuple(json.dumps(each, ensure_ascii=False) for each in self._blocks())

    def _blocks(self) -> Iterator[dict[str, Any]]:
        if self._said:
            yield {"field": REASONING, "value": self._said}
        for number, extra in self._extra.items():
            yield {"field": EXTRA, "call": number, "value": extra}


def fields_of_message(texts: tuple[str, ...] | None, name: str) -> dict[str, Any]:
    """The fields of a message that calls tools, for what was kept of it; a text that is not known is empty."""
    if name != REASONING:
        return {}
    return {REASONING: next((each["value"] for each in _blocks_of(texts, REASONING)), "")}


def fields_of_calls(texts: tuple[str, ...] | None, name: str, count: int) -> list[dict[str, Any]]:
    """The fields of each of the calls of such a message; the first one has a signature in any case."""
    fields: list[dict[str, Any]] = [{} for _ in range(count)]
    if name == EXTRA and count:
        fields[0] = {EXTRA: UNKNOWN}
        for each in _blocks_of(texts, EXTRA):
            fields[min(each["call"], count - 1)] = {EXTRA: each["value"]}
    return fields


def _blocks_of(texts: tuple[str, ...] | None, name: str) -> list[dict[str, Any]]:
    """What was kept of a field; what models of other interfaces thought is passed over."""
    blocks = [json.loads(text) for text in texts or ()]
    return [block for block in blocks if isinstance(block, dict) and block.get("field") == name]
