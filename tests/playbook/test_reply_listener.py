"""What a listener is told of an answer while it is written."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from koi_lang.runtime.playbook.reply_parser import ReplyReader
from tests.playbook.test_replies import ACTIONS, cut_answers, taken


class Following:
    """A listener that keeps what it was told, deltas of one text together."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self._text: list[str] = []

    def object_begun(self, key: str, *, is_action: bool) -> None:
        """Keep it."""
        self.told.append(("action" if is_action else "begun", key))

    def string_delta(self, key: str, text: str) -> None:
        """Keep it."""
        self._text.append(text)

    def string_ended(self, key: str) -> None:
        """Keep the whole text, halves of characters joined."""
        whole = "".join(self._text).encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
        self.told.append((key, whole))
        self._text.clear()

    def object_ended(self) -> None:
        """Keep it."""
        self.told.append("ended")

    def list_without_actions(self, text: str) -> None:
        """Keep it."""
        self.told.append(text)


def listen(*pieces: str) -> tuple[list[Any], str]:
    """What is told of an answer that arrives in pieces, and what has come of a text that has not ended."""
    listener = Following()
    taken(list(pieces), ReplyReader(listener=listener))
    return listener.told, "".join(listener._text)


def in_order(value: Any, key: str = "", *, is_action: bool = False) -> list[Any]:
    """What is to be told of a value: only texts, and what holds them."""
    if isinstance(value, str):
        return [(key, value)]
    if not isinstance(value, (dict, list)):
        return []
    inside = [part for name, item in _items(value) for part in in_order(item, name)]
    return [("action" if is_action else "begun", key), *inside, "ended"]


def _items(value: Any) -> list[tuple[str, Any]]:
    return list(value.items()) if isinstance(value, dict) else [("", item) for item in value]


def test_what_is_told_of_an_answer() -> None:
    """Wrappers and actions begin and end, and texts come under the keys that they have."""
    answer = '{"thought":"x","batch":[{"intent":"print","message":"a\\nb","to":["c"]},{"intent":"b"}]}'
    first = [("action", ""), ("intent", "print"), ("message", "a\nb"), ("begun", "to"), ("", "c"), "ended", "ended"]
    second = [("action", ""), ("intent", "b"), "ended"]

    assert [("action", ""), ("thought", "x"), ("begun", "batch"), *first, *second, "ended", "ended"] == listen(answer)[
        0
    ]


@pytest.mark.parametrize("size", [1, 2, 5])
def test_a_text_is_told_while_it_grows(size: int) -> None:
    """Before its object closes, and without escapes, of which a part waits for the rest."""
    beginning = '{"intent":"print","message":"a\\n\\"b\\\\ \\u4e2d\\u00'
    pieces = [beginning[at : at + size] for at in range(0, len(beginning), size)]

    assert ([("action", ""), ("intent", "print")], 'a\n"b\\ 中') == listen(*pieces)


@given(ACTIONS, st.booleans(), st.integers(1, 9))
@settings(max_examples=100, deadline=None)
def test_texts_are_told_as_they_are(action: dict[str, Any], ascii_only: bool, size: int) -> None:
    """All values of all fields at all depths, as reading them as JSON gives them."""
    text = json.dumps(action, ensure_ascii=ascii_only)
    told, rest = listen(*(text[at : at + size] for at in range(0, len(text), size)))

    assert (in_order(json.loads(text), is_action=True), "") == (told, rest)


@given(cut_answers())
@settings(max_examples=100, deadline=None)
def test_listening_changes_nothing(answer: tuple[str, list[str]]) -> None:
    """However an answer is cut, the same is told and read, and nothing else is read than without a listener."""
    text, pieces = answer

    assert taken(pieces) == taken(pieces, ReplyReader(listener=Following()))
    assert listen(text) == listen(*pieces)


def test_listening_is_linear() -> None:
    """Four times the answer in pieces of twelve characters takes about four times the time."""

    def seconds(length: int) -> float:
        text = json.dumps({"intent": "print", "message": 'wörd "x" ' * (length // 10)})
        before = time.process_time()
        listen(*(text[at : at + 12] for at in range(0, len(text), 12)))
        return time.process_time() - before

    quarter, whole = seconds(250_000), seconds(1_000_000)
    assert whole < 10 * quarter + 0.5
