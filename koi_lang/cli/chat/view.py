"""What a conversation needs of whatever shows it, and lines as they are shown."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any, Protocol

from koi_lang.cli.ui.activity import ActionOutcome
from koi_lang.cli.ui.approval_question import Paper, asked_text, preview_lines, rows_taken, words_for
from koi_lang.cli.ui.text import Theme, brief, duration, fit_text, harmless, one_line
from koi_lang.runtime.model_calls.images import replace_images
from koi_lang.sessions.client_host import APPROVAL, approval_in

# An action that takes less is not told how long it took.
WORTH_TELLING_S = 1.0
APPROVALS = ("yes", "always", "no")
# Of a terminal, the lines in which the person types, and in which options are offered.
INPUT_ROWS = 5
Request = Mapping[str, Any]


class GrowingText(Protocol):
    """A text that an agent is writing."""

    def last_lines(self, columns: int, most: int) -> list[str]:
        """The end of what there is so far, as it is shown: at most some lines."""


class Screen(Protocol):
    """What shows a conversation.

    Attributes:
        look: the marks it can show.
        keys: lines about how it is used.
        person: whether somebody types, so that a path alone in a line is a file that was dropped on the terminal.
        group: has the tasks of the conversation while it runs.
    """

    look: Theme
    keys: Sequence[str]
    person: bool
    group: asyncio.TaskGroup

    def paper(self) -> Paper:
        """How a request fits on it."""

    def columns(self) -> int:
        """How wide it is."""

    def say(self, text: str) -> None:
        """Show what a program prints, or what was asked for."""

    def answer(self, text: str) -> None:
        """Show what an agent says, which is Markdown."""

    def show_writing(self, text: GrowingText | None) -> None:
        """Show a text for the person while it is written, or, with None, that no more."""

    def note(self, text: str) -> None:
        """Show an aside."""

    def fail(self, text: str) -> None:
        """Show what went wrong."""

    def ask(self, request: Request) -> None:
        """Show a question, or that permission is asked for; what is typed next answers it."""

    def put_back(self, text: str) -> None:
        """Give the person a text back that nobody has heard."""

    def attach(self, mark: str) -> None:
        """Have an image, by its mark, belong to what is typed next."""

    def order(self, text: str) -> None:
        """Hand a text over as if it had been typed."""

    def change(self) -> None:
        """Show anew who is at work and what was taken."""

    async def run(self) -> None:
        """Hand over what is typed, until there is no more or the conversation is over."""


def action_line(outcome: ActionOutcome, look: Theme, columns: int) -> str:
    """The line of an action that has ended."""
    mark = look.done if outcome.ok else look.failed
    time = f" {duration(outcome.seconds)}" if outcome.seconds >= WORTH_TELLING_S else ""
    result = f" {look.gives} {outcome.result}" if outcome.result else ""
    text = f"{mark} {outcome.worker}: {outcome.step.what}{result}"
    return fit_text(text, columns - len(time), look.more) + time


def options_of(request: Request) -> Sequence[str]:
    """What a request may be answered with; empty where any text is an answer."""
    return APPROVALS if request["type"] == APPROVAL else [str(option) for option in request.get("options", ())]


def request_text(request: Request, paper: Paper) -> str:
    """A request with its options, numbered, below what would change, as far as there is room for that."""
    options = list(options_of(request))
    if request["type"] != APPROVAL:
        return "\n".join([harmless(str(request["question"]).rstrip()), *_number_options(options)])
    wanted = approval_in(request)
    text = "\n".join([asked_text(wanted, paper.look), *_number_options(options, *words_for(wanted, paper.look))])
    other_rows = rows_taken(text, paper.columns) + INPUT_ROWS
    return "\n".join([*preview_lines(wanted.preview, paper, other_rows), text])


def _number_options(options: Sequence[str], *words: str) -> list[str]:
    lines = [f"{one_line(option)}{word}" for option, word in zip_longest(options, words, fillvalue="")]
    return [f"  {number}. {option}" for number, option in enumerate(lines, 1)]


def answer_in(result: Any) -> str | None:
    """The text that a call has given, alone or as the only field of an object; None where it gave something else."""
    if isinstance(result, dict) and len(result) == 1:
        result = next(iter(result.values()))
    return result if isinstance(result, str) else None


def result_text(result: Any) -> str:
    """What a call has given, as JSON; empty where that is nothing."""
    if result is None or result == {}:
        return ""
    return json.dumps(replace_images(result), ensure_ascii=False, indent=2, default=str)


def format_call(name: str, payload: Any, text: str) -> str:
    """A call as the person made it: their message, else the handler with what it was given."""
    return harmless(text) if text else f"{name} {brief(payload)}".rstrip()
