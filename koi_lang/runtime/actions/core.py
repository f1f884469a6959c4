"""Actions every playbook can use: print, ask, call a model, change the state, return."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from koi_lang.diagnostics import suggestion
from koi_lang.errors import AgentError, PermissionDeniedError
from koi_lang.events import OutputDelta
from koi_lang.js.inspect_value import inspect
from koi_lang.js.json_text import is_whole
from koi_lang.js.undefined import undefined
from koi_lang.llm.messages import Message, Request
from koi_lang.runtime.actions.layers import perform
from koi_lang.runtime.actions.registered import ActionContext, ActionError, action, find_builtin
from koi_lang.runtime.agents.declarations import Role
from koi_lang.runtime.agents.skills import Skill
from koi_lang.runtime.agents.team import message_target, message_targets, peers_of
from koi_lang.runtime.budget.limits import BudgetAccount, current_spending
from koi_lang.runtime.concurrency.tasks import together
from koi_lang.runtime.forms import fill
from koi_lang.runtime.guards.policy import Access, function_access
from koi_lang.runtime.guards.size import mentions, require_room, written_weight
from koi_lang.runtime.mcp import validation
from koi_lang.runtime.model_calls.images import images_in, prompt_text
from koi_lang.runtime.playbook.action_parsing import STATE_UPDATES
from koi_lang.runtime.playbook.steering import QueuedMessage
from koi_lang.runtime.playbook.written_answer import CALL_LLM, WrittenAnswer, plain_text
from koi_lang.runtime.replay.location import leaf_path
from koi_lang.runtime.routing.lexical import Route

# What models are asked for where more is taken; other values they give by reference.
TEXT = {"type": "string"}
AWAIT_CALL, CANCEL_CALL = "await_call", "cancel_call"
LIST_CALLS = "list_calls"
PHASE_DONE = "phase_done"
MAX_WAIT_S = 3600
TEXTS_OR_NULL = {"anyOf": [{"type": "array", "items": TEXT}, {"type": "null"}]}
LIST_LINE = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+")


def spending(context: ActionContext) -> BudgetAccount:
    """The budget account of an action: that of its call; in code that of the calling playbook, else of the run."""
    return context.execution.spending if context.execution else current_spending() or context.run.spending


@action(
    aliases={"text": "message", "data": "message"}, asked={"message": TEXT}, safe=True, inside=True, only_looks=True
)
async def print(context: ActionContext, message: Any) -> Any:
    """Show a message to the person."""
    line = str(message) if isinstance(message, str) or is_whole(message) else inspect(message)
    context.run.host.print(line)
    return {"printed": True, "message": line}


@action(aliases={"prompt": "question"}, asked={"options": TEXTS_OR_NULL}, safe=True, only_looks=True)
async def prompt_user(context: ActionContext, question: str, options: list[Any] | None = None) -> Any:
    """Ask the person one question, with options or without; gives `answer`."""
    choices = [str(option) for option in options or ()]
    lines = question.splitlines()
    asked = "\n".join(line for line in lines if not LIST_LINE.match(line)) if choices else question
    answer = await context.run.host.ask(asked or question, choices)
    return {"answer": answer}


@action(aliases={"message": "question", "schema": "form"}, safe=True, only_looks=True)
async def prompt_form(context: ActionContext, question: str, form: dict[str, Any]) -> Any:
    """Have the person fill in a form, a JSON Schema of plain fields; gives `accepted` and `answers`."""
    answers = await fill(context.run.host, question, form)
    if answers is None:
        return {"accepted": False, "answers": {}}
    try:
        wrong = list(validation.Checks({"type": "object", **form}).problems(answers))
    except ValueError as error:
        raise ActionError(f"the form is no schema that can be used: {error}") from error
    if wrong:
        raise ActionError(f"the answers do not fit the form: {'; '.join(wrong)}")
    return {"accepted": True, "answers": answers}


@action(name="return", aliases={"result": "data"}, safe=True, inside=True, only_looks=True)
async def return_(context: ActionContext, data: Any = undefined) -> Any:
    """End the playbook with its result."""
    of_code = {} if data is undefined else data
    value = of_code if context.execution is None else context.execution.take_result(data)
    if not isinstance(value, dict):
        return value
    for name in STATE_UPDATES:
        if value.get(name):
            await _update_with_result(context, name, value[name])
    return {key: item for key, item in value.items() if key not in STATE_UPDATES}


async def _update_with_result(context: ActionContext, name: str, updates: Any) -> None:
    """Change the state as `update_state` does, between the same hooks. Raises PermissionDeniedError or ActionError."""
    kind = find_builtin("update_state")
    assert kind is not None
    if context.execution is not None:
        access = Access(f"`{name}`", role=context.agent.role, needs=kind.needs, is_open=True)
        verdict = context.run.policy.verdict(access)
        if verdict.outcome == "denied":
            raise PermissionDeniedError(f"{verdict.message}; `return` without it")
    await perform(kind, context, {"updates": updates})


@action(asked={"data": TEXT}, safe=True, inside=True, tool="think", only_looks=True)
async def call_llm(context: ActionContext, data: Any, instruction: str) -> Any:
    """Have a model work on data as instructed, also on images; gives `result`, a text."""
    images = images_in(data)
    material = data if isinstance(data, str) else prompt_text(data) if images else json.dumps(data, ensure_ascii=False)
    request = Request(instruction, (Message("user", material, images),))
    is_shown = context.execution is None and context.run.events.has_onlookers
    async with context.run.models.stream_answer(context.agent, request, spending(context), "small") as arriving:
        written = WrittenAnswer(lambda text: arriving.emit(OutputDelta(CALL_LLM, "result", 1, text)))
        return {"result": plain_text(await arriving.text(written if is_shown else None))}


@action(name="format", safe=True, inside=True, tool="think", only_looks=True)
async def format_(context: ActionContext, data: Any, instruction: str) -> Any:
    """Have a model put data into words; gives `formatted`. Older name of `call_llm`."""
    answer = await call_llm(context, data, instruction)
    return {**answer, "formatted": answer["result"]}


@action("execute", aliases={"state": "updates"}, inside=True)
async def update_state(context: ActionContext, updates: dict[str, Any]) -> Any:
    """Change fields of this agent's state."""
    _update(context, updates)
    return {"state_updated": True, "state": dict(context.agent.state)}


def _update(context: ActionContext, updates: Mapping[str, Any]) -> None:
    """Change fields of the state as a model wants it. Raises AgentError where it became too large, or without end."""
    require_room(written_weight({**context.agent.state, **updates}))
    if mentions(updates, context.agent.state):
        raise ActionError("the state cannot hold itself", help="Refer to a field of it, such as `${state.total}`.")
    context.run.update_state(context.agent, updates)


@action("delegate", inside=True)
async def send_message(context: ActionContext, event: str, data: Any, role: str | None = None) -> Any:
    """Send an event to the first agent of the teams, or of a role in them, that handles it."""
    query = peers_of(context.run, context.agent).event(event).any()
    if role is not None:
        query = query.role(Role(role, ()))
    return await query.execute(data)


@action("delegate", name=AWAIT_CALL, aliases={"id": "call", "ids": "call"}, safe=True, is_occasional=True)
async def await_call(context: ActionContext, call: str | list[str], seconds: float | None = None) -> Any:
    """Wait for calls in the background, by id or a list of ids, at most `seconds`; gives `state` and `result`."""
    if seconds is not None and not 0 <= seconds <= MAX_WAIT_S:
        raise ActionError(f"`seconds` must be between 0 and {MAX_WAIT_S:,}, not {seconds:g}")
    calls = context.run.calls
    awaited = [calls.require(context.agent.name, id) for id in ([call] if isinstance(call, str) else call)]
    async with together() as group:
        for each in awaited:
            group.create_task(each.wait(seconds))
    for each in awaited:
        if each.call_state != "running":
            calls.note_awaited(each)
    results = [each.as_data() for each in awaited]
    return results[0] if isinstance(call, str) else {"calls": results}


async def _cancel_again(context: ActionContext, call: str) -> None:
    context.run.calls.require(context.agent.name, call).cancel()


@action("delegate", name=CANCEL_CALL, aliases={"id": "call"}, safe=True, renew=_cancel_again, is_occasional=True)
async def cancel_call(context: ActionContext, call: str) -> Any:
    """End a call in the background, with all that it has begun, by its id."""
    begun = context.run.calls.require(context.agent.name, call)
    if not begun.cancel():
        raise ActionError(f"the call `{call}` (`{begun.name}`) has ended already: {begun.call_state}")
    await begun.wait()
    return begun.as_data()


@action("delegate", name=LIST_CALLS, safe=True, only_looks=True, is_occasional=True)
async def list_calls(context: ActionContext) -> Any:
    """List your calls in the background; gives `call`, `name` and `state` of each."""
    begun = context.run.calls.of_agent(context.agent.name)
    return {"calls": [{"call": each.id, "name": each.name, "state": each.call_state} for each in begun]}


@action("delegate", aliases={"to": "member", "message": "text", "replyTo": "reply_to"}, inside=True)
async def tell(context: ActionContext, member: str, text: str, reply_to: int = 0) -> Any:
    """Tell a member of your team something; it reads that before its next answer. Gives the `id` of the message."""
    to = message_target(context.run, context.agent, member)
    note = _send(context, to, text, reply_to)
    return {"told": to, "id": note.id}


def _send(context: ActionContext, to: str, text: str, reply_to: int = 0) -> QueuedMessage:
    key = "/".join(leaf_path("tell"))
    return context.run.steering.send(context.agent.name, to, text, key=key, reply_to=reply_to)


@action("delegate", aliases={"message": "text"}, inside=True)
async def broadcast(context: ActionContext, text: str) -> Any:
    """Tell all members of your teams something; gives the names of those who will read it."""
    names = message_targets(context.run, context.agent)
    if not names:
        raise ActionError("there is nobody in the teams of this agent")
    return {"told": [_send(context, to, text).to for to in names.values()]}


@action("delegate", safe=True, only_looks=True)
async def inbox(context: ActionContext) -> Any:
    """Read what other agents have told you; gives `messages` with `id`, `from` and `text`."""
    messages: list[dict[str, Any]] = []
    for note in context.run.steering.read_messages(context.agent.name):
        answered = {"replyTo": note.reply_to} if note.reply_to else {}
        messages.append({"id": note.id, "from": note.sender, "text": note.text, **answered})
    return {"messages": messages}


@action(name=PHASE_DONE, inside=True, only_looks=True, is_occasional=True)
async def phase_done(context: ActionContext) -> Any:
    """Say that the work of the phase is done; gives the `phase` that you are in then."""
    phases = context.agent.phases
    if phases is None or not phases.finish():
        raise ActionError(f"`{context.agent.name}` is in no phase")
    return {"phase": phases.current}


@action(inside=True)
async def call_skill(context: ActionContext, skill: str, function: str = "", input: Any = None) -> Any:
    """Call a function of a skill; `input` is an object with its parameters."""
    agent, by_model = context.agent, context.execution is not None
    used = {known.name: known for known in agent.about.skills()}
    offered = {known.name: known for known in agent.offered_skills} if by_model else used
    found = used.get(skill) or await _meant(context, skill, offered)
    if found is None:
        help = suggestion(skill, list(offered), "skill") if offered else "it uses no skills at all."
        raise ActionError(f"`{agent.name}` uses no skill `{skill}`", help=help)
    permitted = found.restrict(agent.may_call) if by_model else found
    name = function or (permitted if permitted.functions else found).first()
    if permitted is not found and name in found.functions:
        access = function_access(f"`{found.name}.{name}`", found.permission(name), role=agent.role)
        context.run.policy.check(access)
    return await permitted.invoke(name, {} if input is None else input)


async def _meant(context: ActionContext, wanted: str, skills: Mapping[str, Skill]) -> Skill | None:
    """The skill that free words mean, where a model for embeddings is configured."""
    offers = [Route("skill", known.name, known.affordance) for known in skills.values()]
    matches = await context.run.meaning.rank(context.agent, wanted, offers, spending(context))
    return skills[matches[0].offer.event] if matches else None


@action(inside=True, only_looks=True)
async def ask_parent(context: ActionContext, question: str) -> Any:
    """Ask the agent that delegated this task; gives `answer`. Only for delegated tasks."""
    if context.execution is None or context.execution.parent is None:
        raise AgentError("this task was not delegated, so there is nobody to ask")
    parent = context.execution.parent
    instruction = f"A team member you delegated to asks a question. Answer it shortly.\n\n{parent.instructions.text}"
    values = {name: value.value for name, value in parent.instructions.shown.items()}
    asked = {"question": question, "task": context.execution.args, **({"values": values} if values else {})}
    material = json.dumps(asked, ensure_ascii=False, default=str)
    return {
        "answer": (await context.run.models.complete(parent.agent, instruction, material, spending(context))).strip()
    }


@action(safe=True, inside=True, only_looks=True)
async def action_history(context: ActionContext, count: int = 15) -> Any:
    """List the last actions of this task with their outcome."""
    results = context.execution.results if context.execution is not None else []
    lines = [f"{'ok' if result.ok else 'FAILED'} {result.intent}" for result in results[-count:]]
    return {"summary": "\n".join(lines), "total": len(results), "step": len(results) + 1}
