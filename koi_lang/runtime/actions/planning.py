"""Actions about plans: proposing one to the person, and ticking its steps off."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from koi_lang.errors import PlanShownError
from koi_lang.js.dates import now
from koi_lang.js.timestamps import iso
from koi_lang.runtime.actions.registered import ActionContext, ActionError, action
from koi_lang.runtime.host import NobodyToAskError, visible
from koi_lang.runtime.plan_mode import DONE, PlanStep, number_steps, plan_text
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


@action(asked={"steps": STEPS}, inside=True, tool="think", only_looks=True, is_occasional=True)
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
    effect = Effect(PLAN_QUESTION, {"question": question, "options": list(options)}, context.agent.name, safe=True)
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


@action(inside=True, only_looks=True, is_occasional=True)
async def finish_step(context: ActionContext, step: int) -> Any:
    """Tick a step of the accepted plan off, by its number; gives how many are `left`."""
    steps = context.run.planning.steps
    if not 1 <= step <= len(steps):
        message = f"the plan has no step {step}: it has {len(steps)}" if steps else "no plan was accepted"
        raise ActionError(message)
    await _change_task(context, steps[step - 1], DONE)
    return {"step": step, "left": sum(not each.is_done for each in context.run.planning.steps)}


async def _change_task(context: ActionContext, step: PlanStep, status: str) -> None:
    """Set the status of the task of a step, if it is still there."""
    key, registry = f"task:{step.task}", context.run.registry
    task = await registry.get(key)
    known = task if isinstance(task, dict) else {"id": step.task, "title": step.text}
    await registry.set(key, {**known, "status": status})


# The effect of a question about a plan.
PLAN_QUESTION = "plan_question"
MAX_STEPS = 50
MAX_TEXT = 300
MAX_TOUCHES = 20
MAX_WHY = 1000
# What surfaces that render Markdown or HTML do not show: comments, and where links lead to.
HIDING = re.compile(r"<!--|\]\(|^\s*\[[^\]]*\]:|<(?:details|template|script|style)\b|\bhidden\b[^<]*>", re.IGNORECASE)
CHANGE = re.compile(r"\s*(\d{1,3})\s*[:=]\s*(\S.*)")
LEAVE_OUT = re.compile(r"\s*-\s*(\d{1,3})\s*")
ADD = re.compile(r"\s*\+\s*(\S.*)")
OPTIONS = ("accept", "edit", "refuse")
EDITING = "Write `2: other text`, `-2` to leave a step out, `+ text` to add one, or `accept`."
MAX_EDITS = 100
Ask = Callable[[str, Sequence[str]], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class PlanDecision:
    """The decision of the person.

    Attributes:
        steps: those that they accept.
        words: why they do not, where they say so.
    """

    is_accepted: bool
    steps: tuple[PlanStep, ...]
    words: str = ""


def steps_of(proposed: Sequence[Mapping[str, Any]]) -> tuple[PlanStep, ...]:
    """The steps of a proposed plan. Raises ActionError for steps that a person could not read and decide about."""
    if not 1 <= len(proposed) <= MAX_STEPS:
        raise ActionError(f"a plan has 1 to {MAX_STEPS} steps, and this one has {len(proposed):,}")
    return tuple(_step(each, number) for number, each in enumerate(proposed, 1))


def reason_of(why: str) -> str:
    """Why a plan is proposed, on a line. Raises ActionError."""
    return _readable(why, "`why`", MAX_WHY) if why.strip() else ""


def _step(proposed: Mapping[str, Any], number: int) -> PlanStep:
    touches = [str(each) for each in proposed.get("touches") or ()]
    if len(touches) > MAX_TOUCHES:
        raise ActionError(f"step {number} touches {len(touches):,} things; name at most {MAX_TOUCHES}")
    text = _readable(str(proposed.get("text", "")), f"step {number}", MAX_TEXT)
    return PlanStep(text, tuple(_readable(each, f"what step {number} touches", MAX_TEXT) for each in touches))


def _readable(text: str, what: str, most: int) -> str:
    """A text on one line, as it is. Raises ActionError where a person would not see all of it."""
    line = " ".join(part for part in text.replace("\r", "\n").replace("\t", " ").split("\n") if part.strip()).strip()
    if not line:
        raise ActionError(f"{what} is empty")
    if len(line) > most:
        raise ActionError(f"{what} has {len(line):,} characters; at most {most} are read")
    if visible(line) != line or HIDING.search(line):
        raise ActionError(f"{what} holds characters or markup that hide text from the person; write it plainly")
    return line


async def decide(who: str, steps: tuple[PlanStep, ...], why: str, ask: Ask) -> PlanDecision:
    """Have the person accept, edit or refuse a plan. Raises NobodyToAskError."""
    answer = (await ask(question_of(who, steps, why), OPTIONS)).strip()
    for _ in range(MAX_EDITS):
        match answer.lower():
            case "accept" | "yes" | "y":
                return PlanDecision(True, steps)
            case "refuse" | "no" | "n":
                return PlanDecision(
                    False, steps, visible((await ask("Why not? What should be different?", ())).strip())
                )
            case "edit" | "":
                reason = EDITING
            case _:
                edited = edit(steps, answer)
                if edited is None:
                    return PlanDecision(False, steps, visible(answer))
                steps, reason = edited
        answer = (await ask(f"{plan_text(number_steps(steps))}\n{reason}", ())).strip()
    return PlanDecision(False, steps, "the plan was edited without an end")


def question_of(who: str, steps: Sequence[PlanStep], why: str) -> str:
    """A plan as the person is asked about it."""
    reason = f" {why}" if why else ""
    head = f"`{visible(who)}` proposes a plan.{reason}"
    return f"{head}\n{plan_text(number_steps(steps))}\nAccept it, edit it, or say what is wrong with it."


def edit(steps: tuple[PlanStep, ...], wish: str) -> tuple[tuple[PlanStep, ...], str] | None:
    """The steps after one edit, and the next message to the person; None where a text is no edit."""
    changed = CHANGE.fullmatch(wish)
    left_out = LEAVE_OUT.fullmatch(wish)
    added = ADD.fullmatch(wish)
    if changed is None and left_out is None and added is None:
        return None
    if added is not None:
        return (
            ((*steps, PlanStep(visible(added[1])[:MAX_TEXT])), EDITING) if len(steps) < MAX_STEPS else (steps, _few())
        )
    number = int((changed or left_out or ("", "0"))[1])
    if not 1 <= number <= len(steps):
        return steps, f"There is no step {number}. {EDITING}"
    if left_out is not None and len(steps) == 1:
        return steps, f"A plan has at least one step; `refuse` ends it. {EDITING}"
    text = "" if changed is None else visible(changed[2])[:MAX_TEXT]
    instead = (PlanStep(text, steps[number - 1].touches),) if text else ()
    return (*steps[: number - 1], *instead, *steps[number:]), EDITING


def _few() -> str:
    return f"A plan has at most {MAX_STEPS} steps. {EDITING}"
