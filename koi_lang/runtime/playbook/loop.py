"""The turn loop: ask the model, run its actions, send the results, until it returns."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from koi_lang.errors import MissingKeyError, ProviderError, RequestError
from koi_lang.js.undefined import undefined
from koi_lang.llm.layers import is_small, takes_tools
from koi_lang.llm.messages import DelegateInfo, Message, Request, Task
from koi_lang.llm.models import card_of
from koi_lang.llm.retry import MAX_ATTEMPTS
from koi_lang.llm.tools import ToolCall, ToolOffer, ToolResult
from koi_lang.llm.transcript import Beginning, Transcript
from koi_lang.runtime.actions.client_tools import client_offer
from koi_lang.runtime.actions.layers import with_references
from koi_lang.runtime.actions.lookup import PermittedActions
from koi_lang.runtime.budget.limits import LimitReachedError, current_spending
from koi_lang.runtime.context import current_execution
from koi_lang.runtime.guidance.prompt_sections import sections_of as guidance_sections
from koi_lang.runtime.outputs.ends import with_ends
from koi_lang.runtime.playbook import delegation, direct_results, plain_actions, prompting
from koi_lang.runtime.playbook.answer_reading import carry_out
from koi_lang.runtime.playbook.call import PlaybookCall
from koi_lang.runtime.playbook.compaction import explain_error, fit, make_room, open_for_wishes
from koi_lang.runtime.playbook.conversation import Conversation
from koi_lang.runtime.playbook.framing import frame
from koi_lang.runtime.playbook.json_repair import loads
from koi_lang.runtime.playbook.last_report import add_report, turns_note
from koi_lang.runtime.playbook.loop_guard import PLAIN, Failures, RepetitionGuard
from koi_lang.runtime.playbook.placeholders import DataMessage, name_values
from koi_lang.runtime.playbook.prompting import Feedback, Section
from koi_lang.runtime.playbook.references import ActionScope
from koi_lang.runtime.playbook.steering import PERSON, ActivePlaybook, QueuedMessage
from koi_lang.runtime.playbook.told_expressions import ToldData
from koi_lang.runtime.playbook.turn import Turn
from koi_lang.runtime.prompts import PromptContext, join_parts
from koi_lang.runtime.replay.calls import Effect

if TYPE_CHECKING:
    from koi_lang.runtime.ports import AgentPort


Parts = Callable[[PromptContext], Sequence[Any]]
# Of each end of a long output in a payload, in characters.
MAX_END_CHARS = 2500
ASKING = ("prompt_user", "prompt_form")
ASKS = re.compile(r"\b(?:ask|confirm|approv)", re.IGNORECASE)


async def run_playbook(agent: AgentPort, event: str, args: Any, parts: Parts) -> Any:
    """Run a playbook and return its result. Raises PlaybookError or ProviderError when that fails."""
    call = begin(agent, event, args)
    async with aclosing(turns_of(call, parts)) as turns:
        async for _ in turns:
            pass
    return call.value


async def turns_of(call: PlaybookCall, parts: Parts) -> AsyncGenerator[Turn, None]:
    """Carry out a call turn by turn; each is over, and part of the conversation, when it is given.

    Nothing happens between two of them. Raises PlaybookError or ProviderError.
    """
    messages = await open_conversation(call)
    said = conversation_of(call)
    work = ActivePlaybook(call.agent.name, call.event, messages, call.parent is not None)
    with call.agent.run.steering.working(work), open_for_wishes(said):
        while not call.ended:
            await look_for_tools(call)
            try:
                turn = await take_turn(call, messages, parts)
            except LimitReachedError as error:
                await add_report(call, error)
                raise
            remember(messages, turn, call)
            follow_up(call, messages)
            yield turn
    tell_unasked(call)
    if has_memory(call):
        said.settle()


async def open_conversation(call: PlaybookCall) -> Transcript:
    """Begin the conversation of a call: the memory of its agent, and its payload."""
    said = call.conversation = Conversation.of(call.agent, call.spending, recall_messages(call))
    await look_for_guidance(call)
    return said.begin(said.told.begin(args_of(call), call.agent.state, call.agent.run.today, call.page))


def args_of(call: PlaybookCall) -> Any:
    """The payload of a call as its model is told it: of long outputs both ends, which it may read then."""
    shown = with_references(call.agent.run, call.args)
    if shown is call.args:
        return shown
    call.agent.run.outputs.tell(call.agent.name, call.args)
    return with_ends(shown, MAX_END_CHARS)


async def look_for_tools(call: PlaybookCall) -> None:
    """Look up the tools of an agent's MCP servers, which are started for that; again after a change."""
    agent = call.agent
    servers = agent.about.mcps() if agent.role.allows("call_mcp") else ()
    members = delegation.remote_tools(agent) if agent.role.allows("delegate") else {}
    if not servers and not members:
        return
    before, known = call.tools, agent.run.servers
    found = await agent.run.recorder.perform_as_step(
        Effect("tools", {}, agent.name, safe=True),
        lambda: known.news(servers, members, before) if before else known.offers(servers, members),
    )
    call.tools = found or before


async def look_for_guidance(call: PlaybookCall) -> None:
    """Look up the instructions, skills and notes that a call is told of, once for each call."""
    agent = call.agent
    if agent.about.reads_files:
        effect = Effect("guidance", {}, agent.name, safe=True, reads_files=True)
        found = await agent.run.recorder.perform_as_step(effect, lambda: agent.run.guidance.look(agent, call.args))
        call.guidance = await agent.run.guidance.choose(agent, call.args, found, call.spending)


def begin(agent: AgentPort, event: str, args: Any) -> PlaybookCall:
    """A new call of a playbook, with the budget of its handler's call."""
    run = agent.run
    parent = current_execution()
    spending = current_spending()
    assert spending is not None, "a handler that was called"
    what = f"`{agent.name}.{event}`"
    given = {} if args is undefined else args
    names = ActionScope(run.evaluate, given, agent.state)
    patience = run.patience
    page = client_offer.get().context if parent is None else ()
    circles, failures = RepetitionGuard(what, patience), Failures(what, patience)
    return PlaybookCall(agent, event, given, names, spending, circles, failures, parent, page=page)


def recall_messages(call: PlaybookCall) -> Sequence[Message]:
    """The earlier messages; parallel calls do not mix, and failed ones leave nothing behind."""
    return call.agent.memory if has_memory(call) else ()


def has_memory(call: PlaybookCall) -> bool:
    """Whether the conversation lasts: not with a delegate, nor of a guard, nor with an agent that has amnesia."""
    about = call.agent.about
    return call.parent is None and not about.amnesia and call.event not in about.guards


async def take_turn(call: PlaybookCall, messages: Transcript, parts: Parts) -> Turn:
    """One answer, carried out as far as it goes. An answer that breaks off before anything happens is asked for again.

    Raises:
        ProviderError: there were `MAX_ATTEMPTS`, those of the layers around its model included, or another is no use.
    """
    made, turn = 0, None
    while made < MAX_ATTEMPTS:
        try:
            call.spending.begin_turn(had_ended=call.agent.run.recorded.had_ended())
        except LimitReachedError as error:
            error.last, error.broken = call.failures.last, None if turn is None else turn.error
            raise
        call.circles.next_answer()
        request = await next_request(call, messages, parts)
        turn = await carry_out(call, replace(request, attempts=made))
        if turn.error is not None and call.agent.phases is not None:
            call.agent.phases.note("error.llm", {"error": {"message": turn.error.message}})
        if turn.error is None or turn.actions:
            return turn
        made = max(made + 1, turn.error.attempts if isinstance(turn.error, RequestError) else 0)
        if not may_succeed_later(turn.error) and not await make_room(conversation_of(call), turn.error):
            break
    assert turn is not None
    assert turn.error is not None
    raise explain_error(conversation_of(call), turn.error)


def conversation_of(call: PlaybookCall) -> Conversation:
    """The conversation of a call that has begun."""
    assert call.conversation is not None
    return call.conversation


def may_succeed_later(error: ProviderError) -> bool:
    """Whether the same request may be answered another time."""
    return not isinstance(error, MissingKeyError) and (not isinstance(error, RequestError) or error.repeatable)


async def next_request(call: PlaybookCall, messages: Transcript, parts: Parts) -> Request:
    """The next request; prompts that depend on the state are rendered anew, the conversation grows while it fits."""
    agent = call.agent
    scope = PromptContext(agent, call.args)
    call.playbook = await join_parts(parts(scope), scope, "\n")
    call.instruct(name_values(call.playbook, call.args, agent.state))
    direct_results.require_answer(call)
    call.is_direct = not direct_results.obstacle(call)
    tell_playbook(call, messages, begins=call.turns == 0)
    if call.failures.must_pivot():
        messages.append(Message("user", prompting.PIVOT))
    if warning := call.circles.warning():
        messages.append(Message("user", warning))
    note = turns_note(call)
    if note is not None:
        messages.append(note)
    is_delegate = call.parent is not None
    add_notes(call, messages, await agent.run.steering.before_request(agent.name, delegated=is_delegate))
    offer = None
    system = prompting.join_sections(text_sections(call))
    if not call.is_direct and takes_tools(agent.run.models.of(agent)):
        offer = ToolOffer(prompting.join_sections(tool_sections(call)), call.offered_tools().set)
    await fit(conversation_of(call), system, call.instructions.text)
    tell_playbook(call, messages)  # a record in place of messages does not tell it
    data = ToldData(messages.snapshot(), call.material, call.playbook)
    call.names.begin_answer(data, agent.run.recorded.answer_form())
    key = prompting.make_cache_key(system)
    schema = direct_results.schema_of(call.result_type) if call.is_direct else None
    return Request(
        system,
        direct_results.messages_for(call, messages.snapshot()),
        json=not call.is_direct or call.result_type is not None,
        schema=schema,
        task=task(call, messages),
        offer=offer,
        cache_key=key,
        is_plain=call.means.is_plain,
    )


def text_sections(call: PlaybookCall) -> list[Section]:
    """The system text of a call that answers with actions as text, or with the result alone."""
    if call.is_direct:
        return [Section("rules", direct_results.rules_for(call.result_type)), *sections_of(call.guidance)]
    return prompting.system_sections(
        call.agent,
        call.means,
        is_delegate=call.parent is not None,
        tools=call.tools,
        result=call.told_result,
        result_section=call.result_section(),
        guidance=sections_of(call.guidance),
    )


def tool_sections(call: PlaybookCall) -> list[Section]:
    """The system text of a call that answers by calling tools."""
    return [*call.offered_tools().sections, *sections_of(call.guidance)]


def sections_of(guidance: Mapping[str, Any]) -> list[Section]:
    """The guidance from files of the project, as sections of a system text."""
    return [Section(name, text) for name, text in guidance_sections(guidance)]


def tell_playbook(call: PlaybookCall, messages: Transcript, *, begins: bool = False) -> None:
    """Tell the playbook and the values in it, as far as they are not told as they are; the playbook comes last."""
    shown = conversation_of(call).told
    values = shown.tell_changes(call.instructions, call.agent.state)
    playbook = shown.tell_playbook(call.instructions, begins=begins, has_heading=not call.is_direct)
    filled = None if playbook is None else direct_results.fill_in_values(call, playbook)
    messages.extend(filter(None, (values, filled)))


def follow_up(call: PlaybookCall, messages: Transcript) -> None:
    """Continue a playbook that has returned with the messages queued for its end."""
    if call.ended:
        said = call.agent.run.steering.at_end(call.agent.name, delegated=call.parent is not None)
        add_notes(call, messages, said)
        call.ended = not said


def tell_unasked(call: PlaybookCall) -> None:
    """Tell the person that a small model has returned without the question that its playbook asks for."""
    agent = call.agent
    if call.is_direct or not is_small(agent.run.models.of(agent)):
        return
    members = [member.key for member in delegation.reachable(agent)]
    has_asked = any(each.intent in ASKING for each in call.results)
    asks = "prompt_user" in prompting.needed_actions(call.playbook.text, members) and ASKS.search(call.playbook.text)
    if asks and not has_asked:
        agent.run.host.log(f"warning: `{agent.name}.{call.event}` asked nobody, although its playbook says to")


def add_notes(call: PlaybookCall, messages: Transcript, said: Sequence[QueuedMessage]) -> None:
    """Add the messages that arrived meanwhile; they are new to the model, like an answer of the person."""
    messages.extend(Message("user", note.message, note.images) for note in said)
    if said:
        call.circles.forget()
    if call.agent.phases is not None and any(note.sender == PERSON for note in said):
        call.agent.phases.note("user.message")


def task(call: PlaybookCall, messages: Transcript) -> Task:
    """The subject of the request as data, for models inside this process."""
    agent = call.agent
    is_told_more = bool(call.guidance or call.page or agent.run.planning.section())
    members = delegation.reachable(agent) if agent.role.allows("delegate") else []
    return Task(
        playbook=call.playbook.text,
        args=call.args,
        state=dict(agent.state),
        actions=PermittedActions(agent),
        members=tuple(DelegateInfo(m.key, m.agent.about.affordance, tuple(m.events)) for m in members),
        results=Beginning(call.results),
        parts=call.playbook.parts,
        event=call.event,
        instructions=call.instructions.text,
        stands_alone=not is_told_more and all(isinstance(each, DataMessage) for each in messages),
    )


def remember(messages: Transcript, turn: Turn, call: PlaybookCall) -> None:
    """Add an answer and its results to the conversation."""
    text = prompting.clip_answer(turn.text, is_endless=turn.is_endless)
    calls = calls_of(turn) if text == turn.text else ()
    is_broken = turn.ended_by in ("cut", "unreadable")
    if call.means.is_plain and not call.is_direct and len(turn.actions) == 1 and not is_broken:
        text = plain_actions.without_inventions(call.agent, turn.actions[0].action) or text
    if text:
        messages.append(Message("assistant", text, calls=calls, thoughts=turn.thoughts))
    conversation_of(call).note(turn.tokens)
    call.failures.record_end(turn.error.message if turn.error is not None and turn.ended_by == "cut" else "")
    if call.is_direct and not turn.has_returned and not turn.actions[:-1]:
        correct(call, turn, messages)
        return
    if call.is_direct and call.means.is_plain and turn.has_returned:
        return  # the answer is the result
    feedback = [each.feedback for each in turn.actions]
    if is_broken:
        if turn.ended_by == "unreadable":
            call.failures.unreadable(turn.form, turn.problem, turn.advice or PLAIN)
        else:
            call.failures.record_failure(turn.problem)
        feedback.append(prompting.unreadable(turn.problem, call.told_result, is_rest=bool(turn.actions)))
    sees = can_see_images(call)
    go_on = "" if turn.has_returned else prompting.PLAIN_NEXT if call.means.is_plain else prompting.NEXT
    has_results = calls or (is_broken and turn.request.offer is not None)
    results = results_of(turn, len(calls), feedback, sees=sees) if has_results else ()
    messages.append(prompting.joined_feedback(feedback, sees=sees, next=go_on, results=results))


def correct(call: PlaybookCall, turn: Turn, messages: Transcript) -> None:
    """Tell a model that was asked for the result alone why its answer is none."""
    call.wrong_answers += 1
    error = turn.actions[-1].error if turn.actions else None
    problem = turn.problem if error is None else error.message
    call.failures.record_failure(problem, turn.advice or PLAIN)
    messages.append(Message("user", direct_results.correction_of(call.result_type, problem)))


def can_see_images(call: PlaybookCall) -> bool:
    """Whether the model of a call is known to see; others are told of images in results, and nothing fails."""
    agent = call.agent
    return card_of(agent.run.models.of(agent).model).vision is True


NOT_CARRIED_OUT = "Not carried out, since one before it failed or ended the playbook."


def calls_of(turn: Turn) -> tuple[ToolCall, ...]:
    """The answer of a turn as calls, as far as they are complete; none where it is no series of them."""
    if turn.request.offer is None:
        return ()
    framed = frame(turn.text)
    calls = () if framed.has_prose else turn.request.offer.set.calls_of(framed.values)
    return tuple(replace(call, arguments=as_object(call.arguments)) for call in calls)


def as_object(arguments: str) -> str:
    """Arguments as JSON that providers read: those that are broken as they were understood, else an empty object."""
    try:
        value = loads(arguments)
        repaired = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (ValueError, RecursionError):
        return "{}"
    if not isinstance(value, dict):
        return "{}"
    try:
        return arguments if json.loads(arguments) == value else repaired
    except ValueError:
        return repaired


def results_of(turn: Turn, count: int, feedback: Sequence[Feedback], *, sees: bool = False) -> tuple[ToolResult, ...]:
    """The results of the tool calls of a turn, then the other feedback.

    Args:
        count: of the calls.
        feedback: on the actions of the turn, then on what of it could not be read.
        sees: whether the model is shown the images of results.
    """
    beside = [each.for_callers or each.text for each in feedback[len(turn.actions) if count else 0 :]]
    causes = {turn.unread: beside.pop()} if beside and 0 < turn.unread <= count else {}
    results = [_result(turn, number, sees, causes.get(number, "")) for number in range(1, count + 1)]
    return (*results, *map(ToolResult, beside))


def _result(turn: Turn, number: int, sees: bool, cause: str) -> ToolResult:
    """The results of the actions in one value of the answer, and the reason why the rest could not be read."""
    done = [action for action, value in zip(turn.actions, turn.values, strict=False) if value == number]
    if not done:
        return ToolResult(cause or NOT_CARRIED_OUT, is_error=True)
    text = "\n".join([*(action.feedback.text for action in done), *filter(None, [cause])])
    images = tuple(image for action in done for image in action.feedback.images) if sees else ()
    failed = any(action.error is not None or action.feedback.is_failure for action in done)
    return ToolResult(text, bool(cause) or failed, images)
