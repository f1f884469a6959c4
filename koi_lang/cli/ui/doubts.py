"""Decisions about effects in doubt: from `--on-doubt`, or from the person at the terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import click

from koi_lang.errors import JournalError
from koi_lang.runtime.journal.entries import JournalEntry
from koi_lang.runtime.replay.doubts import HOW_TO_DECIDE, RETRY, SKIP, STOP, Decision, Doubt
from koi_lang.runtime.replay.location import Path
from koi_lang.system.text_width import clean

RESULT = "result="
MAX_LISTED = 3
QUESTION = "Do it again, leave it out, tell what it gave, or stop? (retry, skip, result=JSON, stop)"
KNOWN = {"retry": RETRY, "skip": SKIP, "stop": STOP}
Wish = Decision | None


class WishType(click.ParamType[Wish]):
    """The type of `--on-doubt`: a decision, or None for asking."""

    name = "decision"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """What stands for a value in the help."""
        return "[ask|retry|skip|stop|result=JSON]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Wish:
        """A decision as it is, or in words."""
        if value is None or isinstance(value, Decision) or value == "ask":
            return None if value == "ask" else value
        decision = decision_in(str(value))
        if decision is None:
            self.fail(f"`{value}` is neither ask, retry, skip, stop nor result=JSON", param, ctx)
        return decision


def decision_in(words: str) -> Decision | None:
    """The decision that some words are; None when they are none."""
    if not words.startswith(RESULT):
        return KNOWN.get(words)
    try:
        return Decision("done", json.loads(words.removeprefix(RESULT)))
    except (ValueError, RecursionError):
        return None


class Doubts:
    """Says what becomes of effects in doubt, each once.

    Args:
        wishes: the values of `--on-doubt`, one effect each; the last one counts for the rest, unless it is a result.
        redact: takes secrets out of a text.

    Attributes:
        hold: a context in which a person can be asked while the run goes on.
    """

    def __init__(self, wishes: Sequence[Wish], redact: Callable[[str], str]) -> None:
        self._wishes, self._redact = list(wishes), redact
        self._decided: dict[Path, Decision] = {}
        self.hold: Callable[[], AbstractContextManager[None]] = nullcontext

    def decide_each(self, begun: Sequence[JournalEntry]) -> dict[Path, Decision]:
        """What becomes of effects that are known to be in doubt; STOP where nobody says."""
        decided = {}
        for entry in begun:
            doubt = doubt_in(entry)
            self._tell(doubt)
            decided[doubt.path] = self._next_wish() or (ask() if can_ask() else STOP)
        return decided

    @property
    def rest(self) -> Decision:
        """What becomes of the effects that are not known to be in doubt, where nobody can be asked."""
        last = self._wishes[-1] if self._wishes else None
        return STOP if last is None or last.choice == "done" else last

    def decide_beforehand(self, begun: Sequence[JournalEntry]) -> None:
        """Decide what is known to be in doubt. Raises JournalError when the run is not to go on."""
        self._decided |= self.decide_each(begun)
        if STOP in self._decided.values():
            raise JournalError("the run was not resumed", help=HOW_TO_DECIDE)

    def __call__(self, doubt: Doubt) -> Decision:
        """The decision about an effect that is met now."""
        decided = self._decided.get(doubt.path) if doubt.why == "begun" else None
        if decided is not None:
            return decided
        wish = self._next_wish() or (None if can_ask() else STOP)
        if wish == STOP:
            return STOP  # the error that ends the run tells it
        with self.hold():
            self._tell(doubt)
            return wish or ask()

    def _tell(self, doubt: Doubt) -> None:
        click.echo(clean(self._redact(doubt.text)), err=True)

    def _next_wish(self) -> Wish:
        if not self._wishes:
            return None
        first = self._wishes[0]
        if len(self._wishes) > 1 or (first is not None and first.choice == "done"):
            del self._wishes[0]
        return first


on_doubt_option = click.option(
    "--on-doubt",
    type=WishType(),
    multiple=True,
    help="What to do about effects whose outcome is not known and that may not be done twice.",
)


def list_effects(effects: Sequence[JournalEntry]) -> str:
    """Some effects of the run that another one is a branch of, the first of them named."""
    named = [f"{doubt_in(entry).name_and_fields} (entry {entry.n})" for entry in effects[:MAX_LISTED]]
    more = f" and {len(effects) - MAX_LISTED} more" if len(effects) > MAX_LISTED else ""
    return ", ".join(named) + more


def doubt_in(entry: JournalEntry) -> Doubt:
    """The doubt about an effect that had begun."""
    fields = entry.data.get("fields")
    return Doubt(str(entry.data.get("intent")), entry.path, "begun", fields or {}, entry.agent)


def can_ask() -> bool:
    """Whether a person is at the terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask() -> Decision:
    """What the person at the terminal decides; an empty line stops."""
    try:
        return click.prompt(QUESTION, default="stop", value_proc=_decision, err=True)
    except click.Abort:
        return STOP


def _decision(words: str) -> Decision:
    decision = decision_in(words.strip())
    if decision is None:
        raise click.UsageError(f"`{words}` is neither retry, skip, stop nor result=JSON")
    return decision
