"""Texts for people, told while a model writes them."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

import pytest

from koi_lang.events import OutputDelta
from koi_lang.runtime.playbook.reply_parser import ReplyReader
from koi_lang.runtime.playbook.written_texts import WrittenTexts
from tests.playbook.playing import act

Texts = dict[tuple[str, str, int], str]


def follow(answer: Any, size: int) -> tuple[Texts, list[str]]:
    """The texts that were told of an answer that arrives in pieces, and the pieces of them."""
    told: list[OutputDelta] = []
    reader = ReplyReader(listener=WrittenTexts(told.append))
    text = answer if isinstance(answer, str) else json.dumps(answer)
    for start in range(0, len(text), size):
        list(reader.feed(text[start : start + size]))
    texts: Texts = defaultdict(str)
    for delta in told:
        texts[delta.action, delta.field, delta.number] += delta.text
    return dict(texts), [delta.text for delta in told]


SAID = 'Tabs "and"\nblanks \N{FISH}'


@pytest.mark.parametrize("size", [1, 5, 1000])
@pytest.mark.parametrize(
    ("answer", "texts"),
    [
        (act("print", message=SAID), {("print", "message", 1): SAID}),
        ({"message": SAID, "intent": "print", "actionType": "direct"}, {("print", "message", 1): SAID}),
        (act("prompt_user", question="Why?", options=["a"]), {("prompt_user", "question", 1): "Why?"}),
        (act("return", data={"text": SAID}), {("return", "text", 1): SAID}),
        (act("shell", command="ls", description="to see"), {}),
        ({"actionType": "delegate", "intent": "b::print", "data": {"message": "x"}}, {}),
        (
            {"batch": [act("print", message="a"), {"parallel": [act("print", message="b")]}]},
            {("print", "message", 1): "a", ("print", "message", 2): "b"},
        ),
        ('Some prose {"intent": "print", "message": "quoted"}', {}),
    ],
)
def test_texts_for_people_are_told(answer: Any, texts: Texts, size: int) -> None:
    """What is printed, asked or returned is told as it arrives, without escapes, and nothing else is."""
    assert texts == follow(answer, size)[0]


def test_a_text_does_not_wait_for_its_end() -> None:
    """Each piece is told at once where the name of the action has come first; no piece is half a character."""
    _, pieces = follow(act("print", message="one two \N{FISH} three"), 3)

    assert len(pieces) > 4
    assert all(piece.isprintable() for piece in pieces)
