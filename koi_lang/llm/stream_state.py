"""The state of one stream: its parts become deltas, usage and stop reasons.

Groq answers so where a model writes a call in the words that it was trained with, or calls what it was not offered.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from koi_lang.llm.messages import Delta, TextDelta, ThinkingDelta, Usage
from koi_lang.llm.token_weight import weight
from koi_lang.llm.tool_calls import CallWriter
from koi_lang.llm.tools import ToolOffer

# What a model stopped with whose provider refuses to hand out the rest.
FAILED = "failed_generation"
# Why an answer ended whose stream was closed, since its model wrote nothing new any more.
ENDLESS = "endless"
# Why an answer ended whose model was told of no tools, though it was offered some.
TOOLS_LEFT_OUT = "tools_left_out"
# White space between the tokens of JSON, where it means nothing.
MAX_BLANKS = 200
# A piece that repeats itself: its length, and that of the whole repetition, within a text and in JSON around texts.
MAX_PERIOD_CHARS = 64
MAX_TEXT_REPETITION_CHARS = 4000
MAX_REPETITION_CHARS = 1000
# What is kept of a repetition.
SHOWN_REPETITION_CHARS = 2 * MAX_PERIOD_CHARS
# A repetition is looked for whenever so many characters are new.
CHECK_CHARS = 250
ESCAPE = re.compile(r"\\.", re.DOTALL)


class RunawayWatch:
    """Notices that an answer goes on without an end, and without anything new.

    White space outside of the strings of JSON ends any answer of actions. A short piece that repeats itself may be what
    somebody asked for, such as a line below a heading: it counts when it is much longer, and of unknown models alone.

    Attributes:
        is_endless: whether the answer need not be read any longer.
    """

    def __init__(self, *, is_json: bool = False, is_unknown: bool = False) -> None:
        self.is_endless = False
        self._is_json, self._is_unknown = is_json, is_unknown
        self._has_begun = self._is_in_string = False
        self._backslash = self._tail = ""
        self._blanks = self._unchecked = 0

    def add(self, piece: str) -> None:
        """Look at the next piece of the answer."""
        if self._is_json:
            self._count_blanks(piece)
        self._tail = (self._tail + piece)[-MAX_TEXT_REPETITION_CHARS:] if self._is_unknown else ""
        self._unchecked += len(piece)
        if not self._tail or self._unchecked < CHECK_CHARS:
            return
        self._unchecked = 0
        marks = ESCAPE.sub("", self._tail[-MAX_REPETITION_CHARS:])
        is_text = not self._is_json or (self._is_in_string and '"' not in marks)
        length = MAX_TEXT_REPETITION_CHARS if is_text else MAX_REPETITION_CHARS
        end, periods = self._tail[-length:], range(1, MAX_PERIOD_CHARS + 1)
        self.is_endless |= len(end) == length and any(end[period:] == end[:-period] for period in periods)

    def _count_blanks(self, piece: str) -> None:
        """Count those that stand last, outside of strings; an answer that begins as text is not looked at."""
        if not self._has_begun and (begin := piece.lstrip()):
            self._has_begun, self._is_json = True, begin.startswith(("{", "[", "`"))
        marks = ESCAPE.sub("", self._backslash + piece)
        self._backslash = "\\" if marks.endswith("\\") else ""
        self._is_in_string ^= marks.count('"') % 2 == 1
        blanks = len(piece) - len(piece.rstrip())
        self._blanks = 0 if self._is_in_string else blanks + (self._blanks if blanks == len(piece) else 0)
        self.is_endless |= self._is_json and self._blanks > MAX_BLANKS


def shorten_runaway(answer: str) -> str:
    """An answer without most of the repetition, or white space, at its end; a mark says how much is missing."""
    end, kept = answer[-MAX_REPETITION_CHARS:], answer.rstrip()
    if len(answer) - len(kept) <= MAX_BLANKS:
        periods = range(1, MAX_PERIOD_CHARS + 1) if len(end) == MAX_REPETITION_CHARS else ()
        period = next((each for each in periods if end[each:] == end[:-each]), None)
        if period is None:
            return answer
        start = len(answer) - len(end)
        while start and answer[start - 1] == answer[start - 1 + period]:
            start -= 1
        kept = answer[: start + SHOWN_REPETITION_CHARS]
    return f"{kept}… ({len(answer) - len(kept):,} more characters of the same)"


class StreamState(ABC):
    """The facts of one stream apart from its text.

    Attributes:
        accepted: whether the provider has begun to work on the request, as far as can be told: it opened a stream of
            events, or kept silent for too long.
        is_page: whether a page for people came in place of a stream.
        begun: whether any part has arrived.
        said: whether there was text, or a call of a tool, in any.
        thought: what the part that was read last says of the thoughts of the model.
        calls: the calls of tools.
        called: the text of actions that the part which was read last adds by calls.
        reads_calls: whether the answer may be actions; else a call is no answer.
        watch: looks for an answer that runs away.
        written: tokens of all that has arrived, also of thoughts and calls of tools, about.
        stop_reason: why the model stopped; empty while it has not.
        usage: what the answer consumed so far, None when the provider has not told.
        refusal: why the model declines to answer, often empty; None when it does not decline.
        thoughts: of the model, a block each, as its provider wants them back; None where it does not.
        comment: what it said beside its calls.
    """

    def __init__(self, offer: ToolOffer | None = None) -> None:
        self.accepted = self.is_page = self.begun = self.said = False
        self.calls = CallWriter({} if offer is None else offer.set.by_name)
        self._waits_for_calls, self._held = offer is not None, ""
        self.thought = self.called = ""
        self.reads_calls, self.watch = True, RunawayWatch()
        self.written = 0.0
        self.stop_reason = ""
        self.usage: Usage | None = None
        self.refusal: str | None = None
        self.thoughts: tuple[str, ...] | None = None
        self.comment = ""

    def expect_text(self) -> None:
        """Read an answer to a request that offers no tools; nothing of it has arrived yet."""
        self.calls, self._waits_for_calls = CallWriter({}), False

    @abstractmethod
    def read(self, part: Any) -> str:
        """Note the facts of a part; returns its text, often empty."""

    def deltas(self, part: Any) -> Iterator[Delta]:
        """The new thoughts and text of a part. Text beside calls is a comment, recognized by the calls."""
        text = self.read(part)
        thought, called, self.thought, self.called = self.thought, self.called, "", ""
        self.watch.add(text or called)
        if thought:
            self.written += weight(thought)
            yield ThinkingDelta(thought)
        if self._waits_for_calls:
            text, self._held = "", self._held + text
        if self._held and self.calls.has_called:
            yield self._comment()
        yield from self._say(text + called * self.reads_calls)

    def rescue(self, text: str) -> Iterator[Delta]:
        """Take a text that arrives within an error for the answer; nothing of another one was said."""
        if not text:
            return
        self.begun = True
        self.stop_reason = FAILED
        self._held = ""
        calls = calls_in(text)
        for key, (name, arguments) in enumerate(calls):
            self.calls.call((FAILED, key), name)
            self.called += self.calls.add((FAILED, key), arguments)
        called, self.called = self.called, ""
        yield from self._say((called + self.calls.finish()) * self.reads_calls if calls else text)

    def finish(self) -> Iterator[Delta]:
        """The remaining deltas at the end of the stream."""
        held, self._held = self._held, ""
        yield from self._say(held + self.calls.finish() * self.reads_calls)

    def _comment(self) -> Delta:
        """The model's comment beside its calls, as a thought."""
        held, self._held = self._held, ""
        self.comment += held
        self.written += weight(held)
        return ThinkingDelta(held)

    def _say(self, text: str) -> Iterator[Delta]:
        if text:
            self.said = True
            self.written += weight(text)
            yield TextDelta(text)


# `<function=look>{…}</function>`, `<function=look={…}</function>`, `look{…}</function>`
OPENING = re.compile(r"\s*(?:<function[=/])?(?P<name>[A-Za-z_][\w.:-]{0,127})[\s=>(]*(?=\{)")
CLOSING = re.compile(r"[\s)>]*(?:</?function>)?[\s;,]*")


def calls_in(text: str) -> list[tuple[str, str]]:
    """Names and arguments of the calls that a text consists of; none where there is anything else in it."""
    calls = list[tuple[str, str]]()
    at = 0
    decoder = json.JSONDecoder()
    while found := OPENING.match(text, at):
        try:
            _, end = decoder.raw_decode(text, found.end())
        except (ValueError, RecursionError):
            return []
        calls.append((found["name"], text[found.end() : end]))
        closing = CLOSING.match(text, end)
        at = end if closing is None else closing.end()
    return [] if text[at:].strip() else calls
