"""One case of an evaluation as a recorded run, in a process of its own; one that was interrupted goes on."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from koi_lang.errors import JournalError, MissingKeyError, SettingsError, innermost
from koi_lang.llm.messages import Adapter
from koi_lang.llm.scripted import Answers, ScriptedModel, read_answers, require_answers
from koi_lang.program import loader
from koi_lang.program.eval_blocks import carry_out_case, eval_named
from koi_lang.program.files import absolute
from koi_lang.runtime.budget.limits import RUN, LimitReachedError
from koi_lang.runtime.journal import store
from koi_lang.runtime.journal.entries import Redact
from koi_lang.runtime.journal.history import History, lasting_entries
from koi_lang.runtime.journal.totals import UsageTotals
from koi_lang.runtime.replay.doubts import STOP, Decision, Doubt
from koi_lang.runtime.replay.location import Path as Trail
from koi_lang.runtime.run import Run
from koi_lang.runtime.test_blocks.context import Trial
from koi_lang.sessions.continuation import Continuation
from koi_lang.sessions.known_history import going_on, readable
from koi_lang.sessions.options import EVALUATION_HELP, RunOptions
from koi_lang.sessions.prepared import ModelNeededError, Prepared, prepare_program
from koi_lang.sessions.recording import recording
from koi_lang.sessions.trust import require_trust
from koi_lang.testing.cases import CaseAttempt, CaseOutcome, failed_outcome
from koi_lang.testing.surroundings import Audience, Script

CaseEnd = Literal["over", "budget", "stuck", "refused"]


@dataclass(frozen=True, slots=True)
class EvalOutcome(CaseOutcome):
    """The outcome of a case.

    Attributes:
        scores: by their names.
        usage: what its models took, also in an earlier part of its run.
        end: whether it came to its end, well or not; else it can go on. What it lacks is money (`budget`), somebody who
            knows what became of an effect (`stuck`), or a model or its key, as all others do (`refused`).
    """

    scores: Mapping[str, float] = field(default_factory=dict)
    usage: UsageTotals = field(default_factory=UsageTotals)
    end: CaseEnd = "over"


@dataclass(frozen=True, slots=True)
class CaseRun:
    """A case that is to be carried out; it is sent to another process.

    Attributes:
        path: the program, absolute.
        number: from 1 on, among all of the evaluation.
        case: what the header of its journal says of it: `evaluation`, `eval`, `id`, `repeat`, `key` and `data`.
        answers: what stands in for its models; None where they are asked.
        usd: the most that it may spend beside what it has spent; None without a limit.
        trusted: whether it may go on with a journal that this machine has not signed.
        decisions: what becomes of its effects in doubt, by their paths.
        usual_decision: what becomes of those that are met on the way.
        line: it stands for no line of its program but the first.
    """

    path: Path
    number: int
    case: Mapping[str, Any]
    options: RunOptions
    answers: Answers | None = None
    usd: float | None = None
    trusted: bool = False
    decisions: Mapping[Trail, Decision] = field(default_factory=dict)
    usual_decision: Decision = STOP
    line: int = 1

    @property
    def id(self) -> str:
        """Of its run."""
        return f"{self.case['evaluation']}{store.PART}{self.number}"

    @property
    def name(self) -> str:
        """How a person calls it."""
        return f"{self.case['eval']}: {self.case['id']}"

    def decide(self, doubt: Doubt) -> Decision:
        """The decision about an effect in doubt."""
        decided = self.decisions.get(doubt.path) if doubt.why == "begun" else None
        return decided or self.usual_decision

    def run(self) -> EvalOutcome:
        """Run it in a program loaded for it alone. Errors become part of the outcome."""
        attempt = CaseAttempt()
        audience = Audience(Trial())
        usage = UsageTotals()
        with attempt.alone(), asyncio.Runner() as runner, redirect_stdout(io.StringIO()):
            runner.run(_carry_out(self, audience, usage))
        redact = self.options.redact
        return _outcome(audience, attempt.error, attempt.seconds, usage, redact)


@dataclass(frozen=True, slots=True)
class ReopenedCase:
    """A case that goes on by itself, outside of its evaluation.

    Attributes:
        case: what the header of its journal says of it.
    """

    case: Mapping[str, Any]
    trial: Trial = field(default_factory=Trial)

    def prepare(self, ready: Prepared) -> Prepared:
        """Its program with the answers that it had. Raises SettingsError."""
        options, answers = ready.options, None
        if options.answers is not None:
            found = read_case_answers(Path(options.answers))
            answers = found.pick(str(self.case.get("id")), int(self.case.get("repeat") or 1))
        return with_model(ready, self.case, self.trial, answers)

    async def carry_out(self, run: Run, ready: Prepared) -> None:
        """Carry it out in a run that has been entered. Raises ExpectationError where something does not hold."""
        await carry_out_case(run, ready.module, self.case, self.trial)
        for name, value in self.trial.scores.items():
            run.host.log(f"score {name}: {value:.4g}")
        if self.trial.misses:
            raise ExceptionGroup("what was expected", self.trial.misses)


def with_model(ready: Prepared, case: Mapping[str, Any], trial: Trial, answers: Answers | None) -> Prepared:
    """A program for a case, with its stand-in models, and no rehearsal."""
    adapter: Adapter | None = None if answers is None else ScriptedModel(answers)
    if eval_named(ready.module, str(case.get("eval"))).gives_model:
        adapter = Script(trial)
    return replace(ready, adapter=adapter, options=replace(ready.options, missing_model_help=EVALUATION_HELP))


def _outcome(
    audience: Audience, error: BaseException | None, seconds: float, usage: UsageTotals, redact: Redact
) -> EvalOutcome:
    trial = audience.trial
    failures = [*trial.misses, *([] if error is None else [error])]
    messages = [failed_outcome(failure).message for failure in failures]
    return EvalOutcome(
        not failures,
        seconds,
        redact("\n\n".join(messages)),
        tuple(trial.output),
        tuple(audience.logged),
        scores=dict(trial.scores),
        usage=usage,
        end=_end_of(error),
    )


def _end_of(error: BaseException | None) -> CaseEnd:
    first = None if error is None else innermost(error)
    if isinstance(first, LimitReachedError) and (first.what, first.limit) == (RUN, "usd"):
        return "budget"
    if isinstance(first, ModelNeededError | MissingKeyError):
        return "refused"
    return "stuck" if isinstance(first, JournalError) else "over"


async def _carry_out(case: CaseRun, audience: Audience, usage: UsageTotals) -> None:
    file, options = absolute(str(case.path)), case.options
    ready = prepare_program(file, loader.load_compiled(file), options)
    ready = with_model(ready, case.case, audience.trial, case.answers)
    going = _continuation(case, ready, audience)
    if going.history is not None:
        _add(usage, going.history.usage())
    if case.usd is not None:
        limits = {**options.limits, "usd": case.usd + usage.usd}
        ready = replace(ready, options=replace(options, limits=limits))
    run = ready.run(
        _CaseHost(audience.trial, audience.logged),
        [usage.add],
        audience.log,
        payload={},
        detailed=True,
        history=going.history,
        id=case.id,
        seed=going.seed,
        **({} if going.history is None else {"today": going.today}),
    )
    with recording(run, ready, going):
        async with run:
            await carry_out_case(run, ready.module, case.case, audience.trial)


def _add(usage: UsageTotals, other: UsageTotals) -> None:
    usage.requests += other.requests
    usage.tokens += other.tokens
    usage.usd += other.usd
    usage.unpriced |= other.unpriced


def _continuation(case: CaseRun, ready: Prepared, audience: Audience) -> Continuation:
    """The record that the run continues: its own journal, if there is one. Raises JournalError."""
    path = store.path_of(ready.folder, case.id)
    if not has_header(path):
        path.unlink(missing_ok=True)  # the process was killed before it had written anything
        return Continuation(case=case.case)
    journal = readable(path, ready.folder, audience.log)
    require_trust(journal, trusted=case.trusted)
    history = History(lasting_entries(journal.entries), "resume", ready.redactor(), case.decide)
    return going_on(history, journal, None)


def has_header(path: Path) -> bool:
    """Whether there is a journal with its first line."""
    if not path.exists():
        return False
    with path.open("rb") as file:
        return file.readline().endswith(b"\n")


class _CaseHost(Audience):
    """A host without a person; printed lines come from the events, since repeated prints are not shown again."""

    def print(self, text: str) -> None:
        """Nothing: the journal has it."""


# The only field of an object that gives answers by cases.
CASES = "cases"
MAX_NAMED = 6


@dataclass(frozen=True, slots=True)
class CaseAnswers:
    """The answers in a file.

    Attributes:
        common: begin anew for each case; None where there are such `by_case`.
        by_case: by the id of a case, or `ID N` for the n-th time that it is carried out.
    """

    path: Path
    common: Answers | None
    by_case: Mapping[str, Any]

    def pick(self, case: str, repeat: int) -> Answers:
        """The answers for a case, the n-th time that it is carried out. Raises SettingsError where there are none."""
        if self.common is not None:
            return self.common
        for key in (f"{case} {repeat}", case):
            if key in self.by_case:
                return require_answers(self.by_case[key], f"{self.path}: {key}")
        known = ", ".join(f"`{key}`" for key in list(self.by_case)[:MAX_NAMED])
        raise SettingsError(f"`{self.path}` has no answers for the case `{case}`", help=f"It has some for {known}.")


def read_case_answers(path: Path) -> CaseAnswers:
    """The answers in a file: as `koi run --answers` takes them, or `{"cases": {ID: ANSWERS, "ID N": ANSWERS}}`.

    Raises:
        SettingsError: the file cannot be read or holds something else.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8-sig")) if path.suffix != ".jsonl" else None
    except (OSError, ValueError):
        found = None  # told by the reader of other answers
    if isinstance(found, dict) and list(found) == [CASES] and isinstance(found[CASES], dict):
        return CaseAnswers(path, None, found[CASES])
    return CaseAnswers(path, read_answers(path), {})
