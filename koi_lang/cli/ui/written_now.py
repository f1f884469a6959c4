"""Events of a run to the texts for people that models are writing at the moment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from koi_lang.cli.ui.activity import QUESTIONS
from koi_lang.cli.ui.markdown import GrowingMarkdown
from koi_lang.cli.ui.text import Theme
from koi_lang.events import (
    AnswerDiscarded,
    CallEnded,
    CallStarted,
    Event,
    HandlerEnded,
    HandlerFailed,
    LinePrinted,
    ModelAsked,
    OutputDelta,
)
from koi_lang.runtime.playbook.partial_reply import FIRST_WORD, LAST_WORD
from koi_lang.runtime.playbook.written_answer import CALL_LLM
from koi_lang.runtime.playbook.written_texts import RETURN
from koi_lang.runtime.replay.location import Path

# Characters of a text that is looked through for secrets: it is cut to half of them when it has more.
MAX_KEPT = 20_000


class Growing(Protocol):
    """What takes in a text piece by piece."""

    def add(self, text: str) -> None:
        """Take in what follows."""


Text = TypeVar("Text", bound=Growing)


class WrittenNow(Generic[Text]):
    """Follows the texts for the person: until they are said, or their action will not be carried out.

    Args:
        begin: makes a text that is still empty.
    """

    def __init__(self, begin: Callable[[], Text]) -> None:
        self._begin = begin
        self._texts: dict[tuple[Path, int], Text] = {}
        self.has_printed = False

    def take(self, event: Event, written: OutputDelta) -> Text | None:
        """The text that a piece belongs to, which has grown by it; None for a piece that is not for the person.

        What a delegate returns is for another agent, and a question is shown once it can be answered.
        """
        is_for_another = len(event.path) > 2 and written.action in (RETURN, CALL_LLM)
        if is_for_another or written.action in QUESTIONS or (written.action == RETURN and self.has_printed):
            return None
        key = event.path, written.number
        if key not in self._texts:
            self._texts[key] = self._begin()
        self._texts[key].add(written.text)
        return self._texts[key]

    def forget(self, event: Event) -> bool:
        """Put away what has been said, or will not be; says whether there was any."""
        before = len(self._texts)
        match event.data:
            case CallStarted():
                self.has_printed = False
            case CallEnded():
                self._texts.clear()
            case ModelAsked() | AnswerDiscarded():
                self._keep(lambda path: path[:-1] != event.path[:-1])
            case HandlerEnded() | HandlerFailed():
                self._keep(lambda path: path[: len(event.path)] != event.path)
            case LinePrinted():
                self.has_printed = True
                said = next((key for key in self._texts if key[0][:-1] == event.path[: len(key[0]) - 1]), None)
                if said is not None:
                    del self._texts[said]
        return len(self._texts) < before

    def _keep(self, is_kept: Callable[[Path], bool]) -> None:
        self._texts = {key: text for key, text in self._texts.items() if is_kept(key[0])}

    @property
    def first(self) -> tuple[Path, Text] | None:
        """The text that was begun first, and the request to a model that it answers."""
        return next(((path, text) for (path, _), text in self._texts.items()), None)

    @property
    def last(self) -> Text | None:
        """The text that was begun last."""
        return next(reversed(self._texts.values()), None)


class RedactedMarkdown:
    """A Markdown text that is being written, without secrets; its last word may be half of one and waits."""

    def __init__(self, look: Theme, redact: Callable[[str], str]) -> None:
        self._look, self._redact = look, redact
        self._text = self._shown = ""
        self._markdown = GrowingMarkdown(look)

    def add(self, text: str) -> None:
        """Take in what follows."""
        self._text += text
        if len(self._text) > MAX_KEPT:
            self._text = FIRST_WORD.sub("", self._text[-MAX_KEPT // 2 :])

    def last_lines(self, columns: int, most: int) -> list[str]:
        """The last lines of what there is so far, rendered."""
        shown = self._redact(LAST_WORD.sub("", self._text))
        if not shown.startswith(self._shown):
            self._markdown, self._shown = GrowingMarkdown(self._look), ""
        self._markdown.add(shown[len(self._shown) :])
        self._shown = shown
        return self._markdown.last_lines(columns, most)
