"""The evals of a loaded program, and one case of them as the work of a run."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from koi_lang.diagnostics import suggestion
from koi_lang.errors import AgentError
from koi_lang.events import Event, LinePrinted
from koi_lang.runtime.run import Run
from koi_lang.runtime.test_blocks.context import Trial, use_trial
from koi_lang.runtime.test_blocks.evals import EvalBlock


def evals_of(module: ModuleType) -> list[EvalBlock]:
    """The evals that a file declares, in their order."""
    return module.koi_evals() if hasattr(module, "koi_evals") else []


def eval_named(module: ModuleType, name: str) -> EvalBlock:
    """An eval by its name. Raises AgentError when there is none."""
    declared = {block.name: block for block in evals_of(module)}
    if name not in declared:
        raise AgentError(f"there is no eval `{name}`", help=suggestion(name, list(declared), "eval"))
    return declared[name]


async def carry_out_case(run: Run, module: ModuleType, case: Mapping[str, Any], trial: Trial) -> None:
    """Carry out a case in a run that has been entered; what comes of it is in `trial`.

    Args:
        case: what the header of its journal says of it.

    Raises:
        Exception: what ended it before its end.
    """

    def keep_output(event: Event) -> None:
        if isinstance(event.data, LinePrinted):
            trial.output += event.data.message.split("\n")

    run.events.subscribe(keep_output)
    trial.case = case.get("data")
    use_trial(trial)
    await eval_named(module, str(case.get("eval"))).body()
    if trial.missed is not None:
        raise trial.missed
    run.ledger.require_within_budget()
