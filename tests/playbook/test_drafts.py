"""Answers on their way to what they mean so far."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from koi_lang.runtime.playbook.partial_reply import MAX_END_CHARS, PartialReply, ReplyPreview

ACTIONS = '{"thought": "ask Ann", "parallel": [{"intent": "ann::go", "data": {"text": "look at it"}}, {"intent": "b"'


def draft_of(text: str, size: int = 3) -> PartialReply:
    """What is known of an answer that arrives in pieces of a size."""
    draft = PartialReply()
    for start in range(0, len(text), size):
        draft.follow(text[start : start + size])
    return draft


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("", None),
        ("Hel", None),
        ("Hello Ad", ReplyPreview("prose", text="Hello")),
        ("你好世界", ReplyPreview("prose", text="你好世界")),
        ("See [docs](x) or [1] for mo", ReplyPreview("prose", text="See [docs](x) or [1] for")),
        ("This {is} no", ReplyPreview("prose", text="This")),
        ('```json\n{"int', None),
        ('Well. ```json\n{"intent": "pri', ReplyPreview("prose", text="Well.")),
        ("<think>Let me see. Ru", ReplyPreview("thought", text="Let me see.")),
        ('<think>They say {"intent":"shell"} so', ReplyPreview("thought", text='They say {"intent":"shell"}')),
        ("<thinking>a < b </think> c ", ReplyPreview("thought", text="a < b </think> c")),
        ("Well. <think>Hm ", ReplyPreview("thought", text="Hm")),
        ("<think>Hm</think>", None),
        ('<think>{"a": 1}</think>\n{"intent": "print", ', ReplyPreview("action", "print", 1)),
        ("a <b> and <thi", ReplyPreview("prose", text="a <b> and")),
        ('{"intent": "print", ', ReplyPreview("action", "print", 1)),
        ('{"intent": "print", "message": "Hello Ad', ReplyPreview("action", "print", 1, "Hello ")),
        (
            '{"intent": "print", "message": "a\\n\\"b\\u4e2d\\ud83d\\ude00 \\u00',
            ReplyPreview("action", "print", 1, 'a\n"b中😀 '),
        ),
        ('{"message": "Hello Ada", ', ReplyPreview("action", "", 1, "Hello Ada", is_whole=True)),
        ('{"intent": "print", "message": "Hello"} That', ReplyPreview("action", "print", 1, "Hello", is_whole=True)),
        ('{"intent": "print"} That is', ReplyPreview("prose", text="That")),
        (ACTIONS[: ACTIONS.index(" Ann") + 3], ReplyPreview("thought", text="ask ")),
        (ACTIONS[: ACTIONS.index("ann::")], ReplyPreview("thought", text="ask Ann", is_whole=True)),
        (ACTIONS[: ACTIONS.index(" it") + 2], ReplyPreview("action", "ann::go", 1, "look at ")),
        (ACTIONS, ReplyPreview("action", "b", 2)),
        ('{"actionType": "delegate", "intent": "a::b"', ReplyPreview("action", "a::b", 1)),
        ('{"actionType": "print", "id": "hello"', ReplyPreview("action", "print", 1)),
        (
            '{"intent": "shell", "command": "ls -l", "description": "to see what is there"',
            ReplyPreview("action", "shell", 1, "ls -l", is_whole=True),
        ),
    ],
)
def test_what_an_answer_means_so_far(answer: str, expected: ReplyPreview | None, size: int) -> None:
    """Of every beginning something is known, however it is cut: whole words of prose, or an action and its text."""
    assert expected == draft_of(answer, size).preview()


def test_half_a_word_is_never_shown() -> None:
    """What may be a part of a secret waits until the rest is there, also where the beginning of a text is left out."""
    secret = "s3cret" * 20
    text = f"It is {secret} {'x' * (MAX_END_CHARS - 60)} and more"
    shown = [draft_of(text, size).preview() for size in (1, 50, 200)]
    beginnings = [draft_of(text[:length]).preview() for length in range(len(text))]

    words = [word for written in (*shown, *beginnings) if written is not None for word in written.text.split()]
    assert {"It", "is", secret, "x" * (MAX_END_CHARS - 60), "and"} == set(words)


@given(st.lists(st.sampled_from(['{"intent":"a"', '"parallel":[', "\\ud83d", "\\u1", *'{}[]",:\\ a'])))
@settings(max_examples=100, deadline=None)
def test_nothing_that_is_written_fails(pieces: list[str]) -> None:
    """Whatever a model writes, something or nothing can be said about it."""
    draft = PartialReply()

    for piece in pieces:
        draft.follow(piece)
        written = draft.preview()
        assert written is None or len(written.text) <= MAX_END_CHARS


def test_a_long_answer_takes_time_for_its_length() -> None:
    """Twice the answer takes about twice the time, and what is shown of it stays short."""
    taken = []
    for length in (100_000, 400_000):
        text = json.dumps({"intent": "print", "message": "wörd " * (length // 10)})
        before = time.process_time()
        written = draft_of(text, 8).preview()
        taken.append(time.process_time() - before)
        assert written is not None
        assert len(written.text) <= MAX_END_CHARS

    assert taken[1] < 12 * taken[0]
