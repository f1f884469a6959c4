"""Actions about plans: proposing one to the person, and ticking its steps off."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from koi_lang.errors import PlanShownError
from koi_lang.js.dates import now
from koi_lang.js.timestamps import iso
from koi_lang.runtime.actions.registered import ActionContext, ActionError, action
from koi_lang.runtime.host import NobodyToAskError
from koi_lang.runtime.plan_decisions import decide, question_of, reason_of, steps_of
from koi_lang.runtime.plan_mode import DONE, PlanStep
from koi_lang.runtime.replay.calls import Effect

TEXT = {"type": "string"}
STEPS = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"text": TEXT, "touches": {"type": "array", "items": TEXT}},
        "required": ["text"],
    },
}


@action(asked={"steps": STEPS}, inside=True)
async def propose_plan(context: ActionContext, steps: list[dict[str, Any]], why: str = "") -> Any:
    """Have the person decide about a plan; a step is {"text": …, "touches": […]}; gives `accepted`, else a `reason`."""
    run = context.run
    proposed = steps_of(steps)
    reason = reason_of(why)
    try:
        decision = await decide(context.agent.name, proposed, reason, partial(_ask, context))
    except NobodyToAskError as error:
        run.host.print(question_of(context.agent.name, proposed, reason).rpartition("\n")[0])
        run.planning.show(proposed)
        message = "a plan was proposed, and nobody can accept it, so nothing was done"
        raise PlanShownError(message, help="Run the program in a terminal to decide about it.") from error
    if not decision.is_accepted:
        run.planning.refuse(proposed, decision.words)
        return {"accepted": False, "reason": decision.words}
    for step in run.planning.drop():
        await _change_task(context, step, "dropped")
    run.planning.accept(await _as_tasks(context, decision.steps))
    listed = [{"step": n, "text": step.text, "task": step.task} for n, step in enumerate(run.planning.steps, 1)]
    return {"accepted": True, "steps": listed}


async def _ask(context: ActionContext, question: str, options: Sequence[str]) -> str:
    """The answer of the person, which is known again where the run goes on later."""
    effect = Effect("plan_question", {"question": question, "options": list(options)}, context.agent.name, safe=True)
    return str(await context.run.recorder.perform_as_step(effect, lambda: context.run.host.ask(question, options)))


async def _as_tasks(context: ActionContext, steps: Sequence[PlanStep]) -> list[PlanStep]:
    """The steps with tasks of `std/tasks`, each of which comes after the one before."""
    made: list[PlanStep] = []
    created = iso(now())
    for step in steps:
        id = context.run.recorder.random_bytes(4).hex()
        after = [made[-1].task] if made else []
        task = {"id": id, "title": step.text, "status": "open", "priority": 2, "owner": "", "after": after}
        notes = f"touches {', '.join(step.touches)}" if step.touches else ""
        await context.run.registry.set(f"task:{id}", {**task, "notes": notes, "result": None, "created": created})
        made.append(PlanStep(step.text, step.touches, id))
    return made


@action(inside=True)
async def finish_step(context: ActionContext, step: int) -> Any:
    """Tick a step of the accepted plan off, by its number; gives how many are `left`."""
    steps = context.run.planning.steps
    if not 1 <= step <= len(steps):
        message = f"the plan has no step {step}: it has {len(steps)}" if steps else "no plan was accepted"
        raise ActionError(message)
    await _change_task(context, steps[step - 1], DONE)
    return {"step": step, "left": sum(not each.is_done for each in context.run.planning.steps)}


async def _change_task(context: ActionContext, step: PlanStep, status: str) -> None:
    """Give the task of a step another status, whatever has become of it meanwhile."""
    key, registry = f"task:{step.task}", context.run.registry
    task = await registry.get(key)
    known = task if isinstance(task, dict) else {"id": step.task, "title": step.text}
    await registry.set(key, {**known, "status": status})
