"""Events of a session to what a person is shown of them: what was said, what was done, who is at work."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from koi_lang.cli.chat.material import message_in
from koi_lang.cli.chat.view import Screen, action_line, answer_in, format_call, result_text
from koi_lang.cli.ui.activity import Activity, trying_again
from koi_lang.cli.ui.activity_text import describe_command_end, describe_round, doing_now
from koi_lang.cli.ui.markdown import GrowingMarkdown
from koi_lang.cli.ui.text import harmless, one_line
from koi_lang.cli.ui.written_now import WrittenNow
from koi_lang.events import (
    AnswerDelta,
    CallEnded,
    CallStarted,
    CommandEnded,
    ConversationCompacted,
    Event,
    LinePrinted,
    MessageDelivered,
    ModelAsked,
    OutputDelta,
    RetryStarted,
    RoundEnded,
    ThoughtDelta,
    unless_omitted,
)
from koi_lang.runtime.playbook.steering import PERSON
from koi_lang.sessions.message_targets import text_of

PRINT = "print"
# Lines of an earlier part of a conversation that are shown when it goes on.
MAX_EARLIER = 24
# Pieces of thoughts of a turn that can be shown.
MAX_THOUGHTS = 20_000


class EventView:
    """Follows the events of a session.

    Args:
        screen: shows what is told.
        redact: takes secrets out of what is shown of the work.

    Attributes:
        failed: how many calls and commands have failed.
        model: that was asked last; empty before the first one.
    """

    def __init__(self, screen: Screen, redact: Callable[[str], str]) -> None:
        self.screen = screen
        self.failed, self.model = 0, ""
        self._work = Activity(lambda: asyncio.get_running_loop().time(), redact)
        self._written = WrittenNow(lambda: GrowingMarkdown(screen.look))
        self._redact = redact
        self._thoughts: deque[str] = deque(maxlen=MAX_THOUGHTS)
        self._earlier: deque[str] = deque(maxlen=MAX_EARLIER)

    def follow(self, event: Event) -> None:
        """Take in an event, also one of an earlier part of the conversation."""
        if isinstance(event.data, AnswerDelta):
            self._work.wrote(event.path, event.data.text)
            return
        if isinstance(event.data, ThoughtDelta):
            self._work.think(event.path, event.data.text)
            self._thoughts.append(event.data.text)
            return
        if isinstance(event.data, OutputDelta):
            growing = self._written.take(event, event.data)
            if growing is not None:
                self.screen.show_writing(growing)
            return
        outcome = self._work.follow(event)
        if isinstance(event.data, CallEnded) and not event.data.ok:
            self._work.end()
        if self._written.forget(event):
            self.screen.show_writing(self._written.last)
        if event.recalled:
            self._show(event, self._earlier.append, self._earlier.append)
            return
        self._show(event, self.screen.say, self.screen.answer)
        if outcome is not None and outcome.is_told:
            self.screen.note(action_line(outcome, self.screen.look, self.screen.columns()))
        self._tell(event)

    # ------------------------------------------------------------ what has happened

    def _show(self, event: Event, show: Callable[[str], None], answer: Callable[[str], None]) -> None:
        """Show what was printed, and answers, which are Markdown, now or in an earlier part of the conversation."""
        match event.data:
            case CallStarted(name=name, args=args):
                self._thoughts.clear()
                if event.recalled:
                    given = unless_omitted(args)
                    show(f"> {format_call(name, given, message_in(text_of(given)))}")
            case LinePrinted(message=message):
                (answer if _is_of_model(event) else show)(harmless(message))
            case CallEnded(ok=True, result=result) if not self._written.has_printed:
                given = unless_omitted(result)
                if text := answer_in(given):
                    answer(harmless(text))
                elif text is None and (data := result_text(given)):
                    show(harmless(data))
                elif not event.recalled:
                    self.screen.note("nothing was said")

    def _tell(self, event: Event) -> None:
        """Tell what else is worth knowing."""
        match event.data:
            case ModelAsked(model=model):
                self.model = model
                if self._thoughts:
                    self._thoughts.append("\n\n")
            case RetryStarted() as retry:
                self.screen.note(one_line(f"{trying_again(retry)}: {retry.error}"))
            case RoundEnded() as ended:
                self.screen.note(describe_round(ended))
            case CommandEnded() as ended if text := describe_command_end(ended):
                self.screen.note(text)
            case ConversationCompacted(tokens_before=before, tokens_after=after):
                shortened = f"the conversation of `{event.agent}` was shortened"
                self.screen.note(f"{shortened}: {before:,} tokens became {after:,}")
            case MessageDelivered(sender=sender, text=text) if sender == PERSON:
                self.screen.note(f"`{event.agent}` hears: {one_line(message_in(text))}")
            case CallEnded() as ended:
                self._tell_end(ended)

    def _tell_end(self, ended: CallEnded) -> None:
        if ended.aborted:
            self.screen.note("aborted")
        elif not ended.ok:
            self.failed += 1
            self.screen.fail(harmless(str(ended.report or ended.error)))

    def tell_earlier(self) -> None:
        """Show the end of the earlier part of a conversation that goes on."""
        lines = [line for text in self._earlier for line in text.splitlines()][-MAX_EARLIER:]
        self._earlier.clear()
        for line in lines:
            self.screen.note(line)

    def thoughts(self) -> str:
        """What models have shown of their thoughts since the last message, without secrets."""
        return self._redact(harmless("".join(self._thoughts))).strip()

    def state(self) -> str:
        """Who is at work, and with what; empty where nobody is."""
        work = self._work
        return ", ".join(f"{work.label(worker)}: {doing_now(work, worker)}" for worker in work.workers())


def _is_of_model(event: Event) -> bool:
    """Whether an action of a playbook has printed something, and not code."""
    return len(event.path) > 1 and event.path[-2].rpartition("#")[0] == PRINT
