"""Bytes to lines to messages, however they are cut, and what cannot be read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from koi_lang.rpc.framing import MAX_MESSAGE_BYTES, LineSplitter, line_of, message_in
from koi_lang.sessions.errors import SessionError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text() | st.sampled_from(["\u2028", "\u2029\r\n"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
MESSAGES = st.lists(st.dictionaries(st.text(), JSON, max_size=4), max_size=6)


def lines_in(pieces: list[bytes], longest: int = MAX_MESSAGE_BYTES) -> list[bytes | None]:
    """All lines of a stream that arrives in pieces."""
    lines = LineSplitter(longest)
    return [*(line for piece in pieces for line in lines.feed(piece)), *lines.end()]


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """Some bytes in pieces."""
    ends = sorted(place % (len(data) + 1) for place in places)
    return [data[start:end] for start, end in zip([0, *ends], [*ends, len(data)], strict=True)]


@settings(max_examples=60, deadline=None)
@given(
    MESSAGES, st.lists(st.integers(0, 10_000), max_size=8), st.sampled_from([b"\n", b"\r\n", b"\n\n \n"]), st.booleans()
)
def test_messages_survive_the_journey(messages: list[Any], places: list[int], end: bytes, ended: bool) -> None:
    """What is written comes back, wherever the stream is cut, whatever separates the lines, with or without an end."""
    written = end.join(line_of(message, str).removesuffix(b"\n") for message in messages) + (end if ended else b"")

    assert messages == [message_in(line) for line in lines_in(cut(written, places))]


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.binary(max_size=30).filter(lambda line: b"\n" not in line), max_size=6), st.lists(st.integers(0, 999))
)
def test_long_lines_are_left_out_once(contents: list[bytes], places: list[int]) -> None:
    """A line is kept or comes out as one None, however it is cut; those behind it are whole."""
    found = lines_in(cut(b"".join(content + b"\n" for content in contents), places), longest=10)
    short = [content.removesuffix(b"\r") for content in contents]

    assert found == [
        None if len(full) > 10 else line
        for full, line in zip(contents, short, strict=True)
        if len(full) > 10 or line.strip()
    ]


def test_a_long_line_is_not_kept() -> None:
    """However long a line is, no more of it than the limit is held in memory."""
    lines = LineSplitter(100)

    for _ in range(1000):
        list(lines.feed(b"x" * 1000))

    assert len(lines._begun) <= 100


@settings(max_examples=100, deadline=None)
@given(JSON)
def test_a_line_is_one_line_for_everybody(value: Any) -> None:
    """Not even a reader that takes all line breaks of Unicode for ends splits what is written."""
    text = line_of({"value": value}, str).decode().removesuffix("\n")

    assert [text] == text.splitlines()
    assert {"value": value} == json.loads(text)


def test_half_a_character_can_be_told() -> None:
    """A text that is no Unicode, as JSON and JavaScript allow it, is written escaped."""
    assert b'{"text":"\\ud800"}\n' == line_of({"text": "\ud800"}, str)


def test_secrets_are_left_out() -> None:
    """Every text of a message goes through the redactor, and the line stays JSON."""
    line = line_of({"a": ["http://me", "b:secret@c"], "secret": 1}, lambda text: text.replace("secret", "[redacted]"))

    assert {"a": ["http://me", "b:[redacted]@c"], "[redacted]": 1} == json.loads(line)


@pytest.mark.parametrize(
    ("line", "code", "told"),
    [
        (None, "line_too_long", "too long"),
        (b'{"type": ', "parse_error", "no JSON, from character 10 on"),
        (b"[1]", "parse_error", "no object"),
        (b"\xff", "parse_error", "no UTF-8, from byte 1 on"),
        (b'{"a": NaN}', "parse_error", "`NaN` is no number"),
        (b'{"a": ' + b"1" * 5000 + b"}", "parse_error", "number that is too long"),
        (b"[" * 100_000, "parse_error", "nested too deeply"),
    ],
)
def test_unreadable_lines_are_refused(line: bytes | None, code: str, told: str) -> None:
    """Whatever cannot be read says why, with a code."""
    with pytest.raises(SessionError, match=told) as refused:
        message_in(line)

    assert code == refused.value.code
