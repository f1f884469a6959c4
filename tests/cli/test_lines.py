"""Text of programs and models on the lines of a terminal, and keys that make up lines."""

from __future__ import annotations

import io
import sys
from typing import Any

import pytest

from koi_lang.cli.ui.keyboard import LineEditor
from koi_lang.cli.ui.live_view import PlainView
from koi_lang.cli.ui.text import brief, count_text, duration, ending, fit_text, harmless, heard_when, period_text, width


@pytest.mark.parametrize("columns", range(8))
@pytest.mark.parametrize("text", ["plain text", "漢字漢字漢字", "a漢e\u0301字b漢c", "👩‍👩‍👧 family"])
def test_a_text_fits(text: str, columns: int) -> None:
    """Neither the beginning nor the end of a text is wider than it may be, however wide its characters are."""
    assert width(fit_text(text, columns, "…")) <= columns
    assert width(ending(text, columns, "…")) <= columns


def test_what_is_missing_is_marked() -> None:
    """A text that fits is left alone; of others the beginning or the end stays, with a mark."""
    assert ("abcdef", "abcdef") == (fit_text("abcdef", 6, "..."), ending("abcdef", 6, "..."))
    assert ("ab...", "...ef") == (fit_text("abcdef", 5, "..."), ending("abcdef", 5, "..."))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a\n\tb\x1b[31mc\x07", "a bc"),
        ({"success": True, "exitCode": 0, "stdout": "", "n": None}, "exitCode: 0"),
        ([1, 2.5, False, "x"], "[1, 2.5, false, x]"),
        ({"a": {"b": {"c": [1]}}}, 'a: b: {"c": [1]}'),
        ({}, "{}"),
        (None, "null"),
        (object, "\"<class 'object'>\""),
        (list(range(100)), "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]"),
    ],
)
def test_a_value_is_told_briefly(value: Any, expected: str) -> None:
    """Values are told without quotes and deep nesting, on one line."""
    assert expected == brief(value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\tb\nc", "a\tb\nc"),
        ("\x1b[1;31mred\x1b[m", "\x1b[1;31mred\x1b[m"),
        ("a\x1b[2Kb\x1b[?25lc\x1b[10;3Hd", "abcd"),
        ("a\x1b]52;c;QQ==\x1b\\b\x1b]0;never ended", "ab"),
        ("a\x1bPq\x1b\\b\x9b2Jc\x07\x08\rd\x7f", "ab2Jcd"),
        ("a\x1b", "a"),
        ("\x1b[8mhidden\n", "\x1b[8mhidden\n\x1b[0m"),
        ("\x1b[30;40mhidden\x1b[0m", "\x1b[30;40mhidden\x1b[0m"),
    ],
)
def test_printed_text_is_harmless(text: str, expected: str) -> None:
    """Colours, tabs and line breaks stay, colours to the end of the text; whatever else steers a terminal goes."""
    assert expected == harmless(text)


def test_a_time_is_told_in_two_parts() -> None:
    """Seconds, minutes, hours."""
    assert ["0s", "59s", "1m00s", "59m59s", "1h00m", "27h46m"] == [*map(duration, (0.9, 59, 60, 3599.9, 3600, 99999))]


def test_limits_have_words() -> None:
    """In the largest unit that they are a whole number of."""
    limits = {2_592_000: "30 days", 86_400: "1 day", 7200.0: "2 hours", 90: "90 seconds", 0.5: "0.5 seconds"}

    assert [*limits.values()] == [*map(period_text, limits)]


def test_a_number_of_things_is_told() -> None:
    """One thing has a noun without an ending."""
    assert ["0 files", "1 file", "2,000 files"] == [count_text(number, "file") for number in (0, 1, 2000)]


def test_lines_wait_for_the_answer_to_a_question() -> None:
    """Where lines are never changed, what is told while a question is open is told after its answer."""
    stream = io.StringIO()
    lines = PlainView(stream, str)

    lines.hold()
    lines.say("Ann: thinking")
    before = stream.getvalue()
    lines.go_on()

    assert ("", "Ann: thinking\n") == (before, stream.getvalue())


@pytest.mark.parametrize("size", [1, 2, sys.maxsize])
def test_keys_make_lines(size: int) -> None:
    """Keys are taken as they come, also in parts: letters of several bytes, cursor keys, and what mends a line."""
    keys = "wörd\x7f\x1b[1;5D\x1bOAs\r\nlost\x15two words\x17\x08\t!\x01\n".encode() + b"\x04"
    draft, lines = LineEditor(), list[str | None]()

    for start in range(0, len(keys), size):
        lines += draft.take(keys[start : start + size])

    assert ["wörs", "", "two !", None] == lines


def test_the_end_of_input_needs_an_empty_line() -> None:
    """Ctrl-D behind text is no end."""
    draft = LineEditor()

    assert ([], "ab") == (draft.take(b"a\x04b"), draft.text)


def test_what_is_said_while_code_runs_waits_for_a_playbook() -> None:
    """Where no playbook is at work, no model is said to be asked."""
    assert [
        "will be heard before the next answer of the model",
        "will be heard at the end",
        "will be heard by the next playbook; none is at work",
    ] == [
        heard_when(at_end=False, at_work=True),
        heard_when(at_end=True, at_work=True),
        heard_when(at_end=False, at_work=False),
    ]
