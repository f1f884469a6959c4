"""The context of one test, or one case of an eval: scripted answers, printed lines, scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from koi_lang.errors import AgentError, ExpectationError, UnscriptedError
from koi_lang.js.inspect_value import console_text
from koi_lang.js.json_text import stringify

FORMS = {
    "model": "write `given model answers [ … ]`, or an object with lists by a text of the playbook they are for.",
    "person": "write `given person answers [ … ]`.",
}
Answers = Sequence[str] | Mapping[str, Sequence[str]]


@dataclass(slots=True)
class Trial:
    """One test while it runs.

    Attributes:
        model: texts that models answer, in order, or such lists by a text of the playbook; None while none are given.
        person: what the person has not been asked for yet; None while nothing is given.
        output: the lines printed so far.
        missed: the first request that nobody had an answer for; it fails the test whatever the program makes of it.
        case: what an eval is carried out with.
        scores: those of the case by their names.
        misses: what the case was expected to be, and is not.
    """

    model: Answers | None = None
    person: list[str] | None = None
    output: list[str] = field(default_factory=list)
    missed: UnscriptedError | None = None
    case: Any = None
    scores: dict[str, float] = field(default_factory=dict)
    misses: list[ExpectationError] = field(default_factory=list)

    def miss(self, message: str, help: str) -> UnscriptedError:
        """The error of a request that there is no answer for; the first one of the test is kept."""
        self.missed = self.missed or UnscriptedError(message, help=help)
        return self.missed


_trial: ContextVar[Trial | None] = ContextVar("koi_trial", default=None)


def use_trial(trial: Trial) -> None:
    """Make `trial` the test of this context and of everything started from it."""
    _trial.set(trial)


def current_trial() -> Trial:
    """The test this code belongs to. Raises AgentError outside of tests."""
    trial = _trial.get()
    if trial is None:
        raise AgentError("this belongs into a test", help="run the test with `koi test`.")
    return trial


def given(who: str, answers: Any) -> None:
    """`given model answers …` and `given person answers …`. Raises UnscriptedError for answers of another form."""
    trial = current_trial()
    if who == "model" and isinstance(answers, dict) and all(isinstance(texts, list) for texts in answers.values()):
        trial.model = {key: [_as_answer(answer) for answer in texts] for key, texts in answers.items()}
        return
    if not isinstance(answers, list):
        raise UnscriptedError(f"`given {who} answers` takes a list", help=FORMS[who])
    if who == "model":
        trial.model = [_as_answer(answer) for answer in answers]
    else:
        trial.person = [console_text(answer) for answer in answers]


def _as_answer(value: Any) -> str:
    """A text as it is, any other value as JSON."""
    return value if isinstance(value, str) else str(stringify(value))


def output() -> list[str]:
    """The lines that the program has printed in this test so far."""
    return list(current_trial().output)
