"""Noticing that a playbook gets nowhere: it goes round in circles, or fails again and again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from operator import itemgetter
from typing import Any

from koi_lang.runtime.budget.limits import LimitReachedError

PLAIN = "Run with `--verbose` to see every action and what came of it, or with `-m` to try another model."

WARNING = """\
You have asked for the same `{intent}` {times} times in a row, and nothing new comes of it. Asking for it once more ends
the playbook: do something else, or `return` what you have."""

UNRELIABLE = "Try again later, or another model with `-m`."


@dataclass(frozen=True, slots=True)
class GuardLimits:
    """How long a playbook that gets nowhere is left alone.

    Attributes:
        repeats: the same answer so often in a row ends it.
        alternations: two answers in turn so often end it.
        failures: so many in a row, and the model is told to change its approach.
        pivots: how often it is told so; then it ends.
        unread: so many answers that cannot be read, before any action was carried out, end it.
    """

    repeats: int = 5
    alternations: int = 3
    failures: int = 10
    pivots: int = 3
    unread: int = 5

    @staticmethod
    def of(declared: Mapping[str, Any]) -> GuardLimits:
        """The limits in the settings of a run, with defaults for the others."""
        known = [field.name for field in fields(GuardLimits)]
        return GuardLimits(**{name: declared[name] for name in known if name in declared})


class RepetitionGuard:
    """Detects answers that repeat: A-A-A… and A-B-A-B…; repetition within one answer does not count."""

    def __init__(self, what: str, patience: GuardLimits) -> None:
        self._what, self._patience = what, patience
        self._answers: list[list[str]] = []
        self._now: list[str] = []
        self._intent = ""
        self._has_warned = False

    def next_answer(self) -> None:
        """Count from now on for another answer."""
        if self._now:
            self._has_warned = self._has_warned and self._now == self._answers[-1]
            self._answers.append(self._now)
            self._now = []
        del self._answers[: -max(2 * self._patience.alternations, self._patience.repeats)]

    def warning(self) -> str:
        """The message to a model that repeats itself and may do so once more, given once; empty otherwise."""
        before = self._patience.repeats - 1
        if before < 2 or self._has_warned or not _same(self._answers[-before:], before):
            return ""
        self._has_warned = True
        return WARNING.format(intent=self._intent, times=before)

    def forget(self) -> None:
        """Something new has come from outside."""
        self._answers.clear()
        self._now.clear()
        self._has_warned = False

    def note(self, intent: str, fields: Mapping[str, Any], failures: Failures) -> None:
        """Count an action that is about to be carried out. Raises LimitReachedError when it goes round in circles.

        Args:
            failures: of the same call; where the circle is made of them, the last one is told.
        """
        self._intent = intent
        self._now.append(f"{intent} {sorted(fields.items(), key=itemgetter(0))}")
        if all(len(answer) != len(self._now) for answer in self._answers):
            return
        seen = [*self._answers, self._now]
        if _same(seen[-self._patience.repeats :], self._patience.repeats):
            raise self._repetition_error(intent, failures)
        if _alternating(seen[-2 * self._patience.alternations :], self._patience.alternations):
            raise self._circle(f"went back and forth between two actions {self._patience.alternations} times")

    def _repetition_error(self, intent: str, failures: Failures) -> LimitReachedError:
        before = self._patience.repeats - 1
        failure, fault = failures.in_a_row(before), failures.cuts_in_a_row(before)
        if fault:
            reason = f"got {before} answers in a row that broke off after the same `{intent}`; the last: {fault}"
            return LimitReachedError("circles", self._what, reason, UNRELIABLE)
        message = f"asked for the same `{intent}` {self._patience.repeats} times in a row"
        if not failure:
            return self._circle(message)
        return LimitReachedError(
            "circles", self._what, f"{message}, and it failed each time; the last: {failure}", PLAIN
        )

    def _circle(self, message: str) -> LimitReachedError:
        help = "Say in the playbook when to stop, or use `repeat` for what is to happen several times."
        return LimitReachedError("circles", self._what, message, help)


def _same(last: Sequence[list[str]], count: int) -> bool:
    return len(last) == count and all(answer == last[0] for answer in last)


def _alternating(last: Sequence[list[str]], count: int) -> bool:
    """Whether there are so many pairs, all alike, of two different answers."""
    return (
        len(last) == 2 * count
        and last[0] != last[1]
        and all(answer == before for before, answer in zip(last, last[2:], strict=False))
    )


class Failures:
    """Counts failures in a row, and how often the model was told to change its approach."""

    def __init__(self, what: str, patience: GuardLimits) -> None:
        self._what, self._patience = what, patience
        self._row = self._pivots = self._unread = 0
        self._has_acted = False
        self._cuts = 0
        self._cut = ""
        self._refusal = ""
        self.last, self._help = "", PLAIN

    def record_success(self) -> None:
        """An action was carried out."""
        self._row = 0
        self._has_acted = True
        self._refusal = ""

    def refuse(self, form: str, message: str, help: str = PLAIN) -> None:
        """An answer or action is not written as it has to be. Raises LimitReachedError the second time in a row.

        Args:
            form: what is wrong with it, the same for answers that are wrong in the same way.
        """
        if form == self._refusal:
            reason = f"gave up after two answers with the same mistake; the last: {message}"
            raise LimitReachedError("failures", self._what, reason, help)
        self._refusal = form

    def record_failure(self, message: str, help: str = PLAIN) -> None:
        """Count a failed action or answer; `help` is advice for the person."""
        self._row += 1
        self.last, self._help = message, help

    def in_a_row(self, count: int) -> str:
        """The last failure, or empty unless so many came in a row."""
        return self.last if self._row >= count else ""

    def record_end(self, fault: str) -> None:
        """An answer ended: with a fault of its provider, or, where that is empty, without one."""
        self._cuts, self._cut = self._cuts + 1 if fault else 0, fault

    def cuts_in_a_row(self, count: int) -> str:
        """The last cut-off, or empty unless so many came in a row."""
        return self._cut if self._cuts >= count else ""

    def unreadable(self, form: str, message: str, help: str = PLAIN) -> None:
        """An answer holds no actions. Raises LimitReachedError when the model seems to know no other answers."""
        self.record_failure(message, help)
        self.refuse(form, message, help)
        self._unread += 1
        if not self._has_acted and self._unread >= self._patience.unread:
            reason = f"gave up after {self._unread} answers without any action; the last: {message}"
            raise LimitReachedError("failures", self._what, reason, help)

    def must_pivot(self) -> bool:
        """Whether it is time to demand a change of approach. Raises LimitReachedError when enough was demanded."""
        patience = self._patience
        if self._row < patience.failures:
            return False
        if self._pivots == patience.pivots:
            count = patience.failures * (patience.pivots + 1)
            message = f"gave up after {count} failures; the last: {self.last}"
            raise LimitReachedError("failures", self._what, message, self._help)
        self._pivots, self._row = self._pivots + 1, 0
        return True
