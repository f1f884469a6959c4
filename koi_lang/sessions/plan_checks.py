"""Frozen plans held against recordings and against their program as it is now."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from koi_lang import settings
from koi_lang.freezing.plans import differences
from koi_lang.freezing.recordings import recorded_calls, recordings_beside
from koi_lang.program import loader
from koi_lang.program.files import absolute
from koi_lang.program.safe_expressions import evaluate
from koi_lang.runtime.model_calls.frozen_plans import PARTS, FrozenPlan, read_plan
from koi_lang.sessions.options import RunOptions
from koi_lang.sessions.prepared import Prepared, prepare_program
from koi_lang.sessions.prompt_preview import CallToPreview, PromptPreview, call_named, preview_prompt
from koi_lang.testing.cases import Case, CaseAttempt, CaseOutcome, failed_outcome

FREEZE = "`koi freeze` makes a plan of the recordings as they are now."
TELLS_MORE = "its request tells more than playbook, payload and state, so that no plan can answer it"


@dataclass(frozen=True, slots=True)
class PlanCheck:
    """What is wrong with a plan.

    Attributes:
        problems: a sentence each.
        recordings: how many it was held against.
    """

    problems: Sequence[str]
    recordings: int


def check_plan(ready: Prepared, plan: FrozenPlan) -> PlanCheck:
    """Hold a plan against the recordings of its handler, and its program as it is now. Raises KoiError."""
    call = call_named(ready, plan.handler)
    calls = recorded_calls(call.agent.about, call.handler.event, recordings_beside(Path(ready.path), ready.folder))
    if not calls.usable:
        return PlanCheck((), 0)
    wanted = CallToPreview(call.agent, call.handler, calls.usable[0].args)
    preview = asyncio.run(preview_prompt(ready, wanted, lambda line: None))
    problems = [*changes_since(plan, preview), *differences(plan, calls.usable, evaluate)]
    return PlanCheck([*problems, *([] if stands_alone(preview) else [TELLS_MORE])], len(calls.usable))


def changes_since(plan: FrozenPlan, preview: PromptPreview) -> Sequence[str]:
    """A sentence where a plan was made for another program than the one that is there now."""
    changed = [part for part in PARTS if plan.hashes.get(part) != preview.hashes[part]]
    return [f"was made for another {' and another '.join(changed)}; freeze it again"] if changed else []


def stands_alone(preview: PromptPreview) -> bool:
    """Whether a request tells nothing but what a plan knows."""
    return preview.sent.request.task is not None and preview.sent.request.task.stands_alone


@dataclass(frozen=True, slots=True)
class PlanCase:
    """A frozen plan as a test: it is to do what the recordings of its handler did, and fit its program."""

    path: Path
    name: str = ""
    line: int = 1

    def run(self) -> CaseOutcome:
        """Hold the plan against the recordings of this folder and those in `tests` beside its program."""
        attempt = CaseAttempt()
        problems: Sequence[str] = ()
        with attempt.alone():
            problems = self._check().problems
        if attempt.error is not None:
            return failed_outcome(attempt.error, CaseOutcome(False, attempt.seconds))
        lines = "\n".join(f"  {problem}" for problem in problems)
        message = f"error: the plan does not hold\n{lines}\n  = help: {FREEZE}"
        return CaseOutcome(not problems, attempt.seconds, message if problems else "")

    def _check(self) -> PlanCheck:
        plan = read_plan(self.path)
        file = absolute(str(self.path.parent.parent / plan.program))
        options = RunOptions(settings=settings.read_settings(Path.cwd()))
        return check_plan(prepare_program(str(file), loader.load_compiled(str(file)), options), plan)


def collect_plan(path: Path, update: bool) -> Sequence[Case]:
    """The frozen plan in a file."""
    return [PlanCase(path)]
