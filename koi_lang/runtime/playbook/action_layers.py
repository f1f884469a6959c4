"""The execution of actions: the layers that an action goes through, from the outside in.

What a person at a debugger decides about an action is an event, so the run can go on, branch and be replayed without
that person: it is done again then. Fields that such a decision changes are the model's own for what follows: the role
has to permit them, and the schema to allow them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from koi_lang.diagnostics import suggestion
from koi_lang.errors import AgentError, PlanShownError, capture, error_of
from koi_lang.events import ActionEnded, ActionFailed, ActionOverridden, ActionStarted
from koi_lang.js.tagged_json import as_fields, from_fields
from koi_lang.js.undefined import undefined
from koi_lang.llm.tools import TOOL_MARK, plain_name
from koi_lang.runtime.actions.control import CONTROL
from koi_lang.runtime.actions.layers import (
    PERMITTED,
    ActionLayer,
    Fields,
    Next,
    RunningAction,
    compose,
    permit,
    with_marks,
    with_references,
)
from koi_lang.runtime.actions.lookup import find_action
from koi_lang.runtime.actions.registered import ActionContext, ActionError, ActionKind, FormError
from koi_lang.runtime.budget.limits import LimitReachedError
from koi_lang.runtime.concurrency.tasks import gather
from koi_lang.runtime.guards.write_quota import require_quota
from koi_lang.runtime.host import NobodyToAskError
from koi_lang.runtime.intervention import Intervention
from koi_lang.runtime.model_calls.frozen_plans import EXPECT
from koi_lang.runtime.playbook import delegation, prompting
from koi_lang.runtime.playbook.action_parsing import Action, as_steps
from koi_lang.runtime.playbook.call import PlaybookCall
from koi_lang.runtime.playbook.holes import texts_in
from koi_lang.runtime.playbook.lenient_fields import read_names, read_values
from koi_lang.runtime.playbook.lenient_inputs import read_inputs
from koi_lang.runtime.playbook.lenient_intents import known_names, read_intent
from koi_lang.runtime.playbook.prompting import SKIPPED
from koi_lang.runtime.playbook.references import ActionScope, require_results
from koi_lang.runtime.playbook.tool_offer import named_action
from koi_lang.runtime.playbook.turn import TurnAction
from koi_lang.runtime.prompts import value_text
from koi_lang.runtime.replay.error_records import as_koi_error, data_of
from koi_lang.runtime.replay.location import enter
from koi_lang.runtime.replay.ordering import BEGIN
from koi_lang.runtime.schema import FORM_MARK

if TYPE_CHECKING:
    from koi_lang.runtime.ports import RunPort


# Names of actions that a model is told where it has named none: those of files and commands come last.
MAX_ACTIONS = 40
# Of a text in a message about it.
MAX_SHOWN_CHARS = 80
# Questions that nobody can answer, in one call of a playbook.
MAX_UNANSWERED = 2
# Actions that no guard of actions looks at.
UNGUARDED = frozenset({*CONTROL, EXPECT, "return"})
# Loops are bounded, loops within loops are not; so many actions take a minute or so.
MAX_REPEATED = 100_000


@dataclass(slots=True)
class PlaybookAction(RunningAction):
    """An action of a playbook that is being carried out.

    Attributes:
        names: what its references can mention.
        action: as the model wrote it, by the name that it is known by.
        is_delegated: whether it is for a team member; `kind` says for which one once that is known.
        read_as: how it was read where the model wrote it otherwise.
        is_literal: whether it is taken as written, since an earlier part of the run has taken it so.
        filled: its fields with their references replaced, once somebody needed them.
        is_withheld: whether a person at a debugger has not let it be carried out.
    """

    call: PlaybookCall
    names: ActionScope
    action: Action
    is_delegated: bool
    read_as: list[str] = field(default_factory=list)
    is_literal: bool = False
    filled: dict[str, Any] | None = None
    is_withheld: bool = False

    def fill(self) -> dict[str, Any]:
        """The fields with their references replaced, as the action asks for them.

        Raises:
            AgentError: that gets too large.
        """
        if self.filled is None:
            self.filled = self.names.substitute(self.action.data, self.kind.code)
            if not self.is_literal:
                self._read_values(self.filled)
        return self.filled

    def _read_values(self, filled: dict[str, Any]) -> None:
        fields, notes = read_values(self.kind, filled)
        type = self.call.result_type
        result = {} if type is None else type.schema
        self.filled, given = read_inputs(
            self.context.agent, self.kind, fields, is_delegated=self.is_delegated, result=result
        )
        self.read_as += [*notes, *given]


def intervene(running: PlaybookAction, fields: Fields, next: Next[PlaybookAction]) -> Awaitable[Any]:
    """Ask a debugger about the action; a decision of an earlier part of the run is repeated."""
    run = running.context.run
    if run.debugger is None and run.recorded.is_live:
        return next(running, fields)
    return _intervene(running, fields, next)


async def _intervene(running: PlaybookAction, fields: Fields, next: Next[PlaybookAction]) -> Any:
    run, intent = running.context.run, running.action.intent
    known = _decided_before(run)
    with _around(running, fields, known) as decided:
        if decided is None:
            return await next(running, fields)
        data = {} if decided.decision == "skip" else as_fields(decided.value)
        run.events.emit(ActionOverridden(intent, decided.decision, **data), running.call.agent.name)
        return await _follow(running, decided, next)


def _around(
    running: PlaybookAction, fields: Fields, known: Intervention | None
) -> AbstractContextManager[Intervention | None]:
    debugger = running.context.run.debugger
    if debugger is None:
        return nullcontext(known)
    return debugger.around_action(running.call, running.action.intent, fields, known)


def _decided_before(run: RunPort) -> Intervention | None:
    """The decision about the current action in an earlier part of the run."""
    known = run.recorded.recall(ActionOverridden.type)
    if known.entry is None or not known.is_whole:
        return None
    decision: Any = known.entry.data["decision"]
    return Intervention(decision, None if decision == "skip" else from_fields(known.entry.data))


async def _follow(running: PlaybookAction, decided: Intervention, next: Next[PlaybookAction]) -> Any:
    """Carry out a decision; a replaced result of the whole playbook is checked like the model's own."""
    if decided.decision == "skip":
        running.is_withheld = True
        return SKIPPED
    if decided.decision == "result" and running.action.intent != "return":
        return decided.value
    fields = decided.value if decided.decision == "fields" else {"data": decided.value}
    running.filled = dict(fields)
    return await next(running, fields)


Rest = Next[PlaybookAction]
Layers = Sequence[ActionLayer[PlaybookAction]]


async def locate(running: PlaybookAction, fields: Fields, next: Rest) -> Any:
    """Run the inner layers at the location of the action."""
    with enter(running.action.intent):
        return await next(running, fields)


async def read(running: PlaybookAction, fields: Fields, next: Rest) -> Any:
    """Interpret fields that the model wrote in another form, unless an earlier part of the run took them as written."""
    before = running.call.agent.run.recorded.recall(ActionStarted.journal_kind).entry
    running.is_literal = before is not None and "read_as" not in before.data
    if not running.is_literal:
        _read_names(running)
    return await next(running, running.action.data)


def _read_names(running: PlaybookAction) -> None:
    """Resolve the intent and the names of the fields to an action; its place in the run stays."""
    action, notes = read_intent(running.call, running.action)
    if action.intent != running.action.intent:
        running.kind = _find_kind(running.call, action) or running.kind
        running.is_delegated = False
    if not running.is_delegated:
        fields, names = read_names(running.kind, dict(action.data), running.context.agent.state)
        action, notes = replace(action, data=fields), [*notes, *names]
    running.action, running.read_as = action, notes


async def conclude(running: PlaybookAction, fields: Fields, next: Rest) -> Any:
    """Announce the end of the action in its slot: as an event, and its result to later readers."""
    action = running.action
    agent = running.call.agent
    run = running.call.agent.run
    ended = await run.recorder.complete(next(running, fields))
    data, error = dict[str, Any](), ended.error
    if error is None:
        data = _result_fields(running, ended.value)
        error = error_of(require_quota, data, f"`{action.intent}` was carried out, and what it gave")
    if error is not None:
        running.names.mark_missing(action.id, "failed")
        run.events.emit(ActionFailed(action.intent, data_of(error)), agent.name)
        if agent.phases is not None:
            agent.phases.note("error.tool", {"error": {"tool": action.intent, "message": str(error)}})
        raise error
    _keep(running, ended.value)
    run.events.emit(ActionEnded(action.intent, **data), agent.name)
    return ended.value


async def announce(running: PlaybookAction, fields: Fields, next: Rest) -> Any:
    """Tell that the action begins, in its slot. Raises AgentError where it is given more than can be told."""
    action, agent = running.action, running.call.agent
    await agent.run.recorder.wait_for_slot(BEGIN)
    try:
        details = _start_fields(running)
        require_quota(details, f"what `{action.intent}` is given")
    except AgentError:
        agent.run.events.emit(ActionStarted(action.intent, action.id), agent.name)
        raise
    agent.run.events.emit(ActionStarted(action.intent, action.id, **details), agent.name)
    return await next(running, fields)


def guard_repetition(running: PlaybookAction, fields: Fields, next: Rest) -> Awaitable[Any]:
    """Notice a model that asks for the same again and again. Raises LimitReachedError."""
    call = running.call
    if running.action.intent == "prompt_user":
        call.circles.forget()  # an answer of the person is new to the model
    else:
        call.circles.note(running.action.intent, running.fill(), call.failures)
    return next(running, fields)


async def condition(running: PlaybookAction, fields: Fields, next: Rest) -> Any:
    """Skip the action when its condition does not hold; that of a loop or branch is its own."""
    has_own = running.action.intent in ("if", "while")
    if "condition" in fields and not has_own and not running.names.evaluate_condition(fields["condition"]):
        return SKIPPED
    return await next(running, fields)


def substitute(running: PlaybookAction, fields: Fields, next: Rest) -> Awaitable[Any]:
    """Replace references.

    Raises:
        AgentError: one refers to a result that is not there.
        FormError: a text still holds what stands for a value in the form of an action, such as `<text>`.
    """
    require_results(running.names, fields)
    call = running.call
    # Models that are told of actions by such forms copy them; what others write so, as in `sleep <number>`, they mean.
    for text in texts_in(dict(fields)) if call.means.is_plain else ():
        mark = FORM_MARK.search(text)
        # As an element of XML it is closed.
        if mark is None or f"</{mark[1]}>" in text:
            continue
        if mark[0] not in call.playbook.text and mark[0] not in value_text(call.args):
            message = f"`{mark[0]}` stands for a value, and is none: {text.strip()[:MAX_SHOWN_CHARS]!r}"
            raise FormError(message, help=f"Write the {mark[1]} itself in its place.")
    return next(running, running.fill())


def require_known(running: PlaybookAction, fields: Fields, next: Rest) -> Awaitable[Any]:
    """Refuse an intent that is no action, where nobody could be meant by it. Raises ActionError."""
    agent, action = running.call.agent, running.action
    if not running.is_delegated or action.delegated:
        return next(running, fields)
    if agent.role.allows("delegate") and delegation.reachable(agent):
        return next(running, fields)
    help = suggestion(action.intent, list(known_names(running.call)), "action", most=MAX_ACTIONS)
    raise ActionError(f"there is no action `{action.intent}`", help=help)


async def resolve(running: PlaybookAction, fields: Fields, next: Rest) -> Any:
    """Find the team member that something delegated is for. Raises AgentError or LimitReachedError."""
    if not running.is_delegated:
        return await next(running, fields)
    running.kind = await _find_member(running)
    payload = {name: value for name, value in fields.items() if name != "condition"}
    data = fields.get("data", payload)
    delegated = delegation.lift_background(running.call.agent, running.action.intent, data)
    if "data" in fields and "background" in fields and not (isinstance(data, dict) and "background" in data):
        delegated["background"] = fields["background"]
    return await next(running, delegated)


async def _find_member(running: PlaybookAction) -> ActionKind:
    """The member and event that an intent names. Raises AgentError, which suggests actions where one may be meant."""
    try:
        return await delegation.resolve_kind(running.call, running.action.intent)
    except delegation.NobodyError as error:
        if not running.action.delegated:
            known = list(known_names(running.call))
            error.help = suggestion(running.action.intent, known, "action", most=MAX_ACTIONS)
        raise


async def ask_guards(running: PlaybookAction, fields: Fields, next: Rest) -> Any:
    """Have guards of the agent look at the action; the result of the playbook has a guard of its own.

    What loops and branches carry out comes by itself. Raises PermissionDeniedError.
    """
    call, intent = running.call, running.action.intent
    if running.is_delegated or intent not in UNGUARDED:
        await call.agent.require_action(call.event, call.args, intent, fields)
    return await next(running, fields)


def limit_nested(running: PlaybookAction, fields: Fields, next: Rest) -> Awaitable[Any]:
    """End loops within loops that do not end. Raises ActionError."""
    running.call.repeated += 1
    if running.call.repeated > MAX_REPEATED:
        raise ActionError(f"loops within loops have carried out {MAX_REPEATED:,} actions", help="Repeat less.")
    return next(running, fields)


# What every action goes through once it has begun; one that stands in an answer; and one of a loop or branch.
BEGUN: Layers = (condition, substitute, require_known, intervene, permit, resolve, ask_guards, *PERMITTED)
ASKED_FOR: Layers = (locate, read, conclude, announce, guard_repetition, *BEGUN)
NESTED: Layers = (limit_nested, locate, read, conclude, announce, *BEGUN)
# By whether their agent has guards; without any there is one layer less.
_carry_out, _carry_out_nested = (
    {True: compose(layers), False: compose([layer for layer in layers if layer is not ask_guards])}
    for layers in (ASKED_FOR, NESTED)
)


async def carry_out_action(call: PlaybookCall, action: Action) -> TurnAction:
    """Run one action of an answer and return its record, also when it fails.

    Raises:
        LimitReachedError: a limit of this call, or of one around it, ends it.
    """
    call.repeated = 0
    running = begin(call, action, call.names)
    ended = await capture(_carry_out[bool(call.agent.about.guards)](running, running.action.data))
    action = running.action
    if ended.error is not None:
        return _fail(call, action, ended.error)
    call.failures.record_success()
    if running.is_withheld:
        return TurnAction(action, prompting.withheld_feedback(action), ended.value)
    shown = with_references(call.agent.run, ended.value)
    return TurnAction(action, prompting.success_feedback(action, ended.value, shown, running.kind.shown), ended.value)


async def carry_out_nested(call: PlaybookCall, action: Action, names: ActionScope) -> Any:
    """The result of an action in a loop or branch; SKIPPED when its condition does not hold. Raises KoiError."""
    running = begin(call, action, names)
    return await _carry_out_nested[bool(call.agent.about.guards)](running, running.action.data)


def begin(call: PlaybookCall, action: Action, names: ActionScope) -> PlaybookAction:
    """A new action without any effect yet; the name of a tool is resolved to its action."""
    is_tool = TOOL_MARK in action.intent or plain_name(action.intent) != action.intent
    if is_tool and _find_kind(call, action) is None:
        action = named_action(call.offered_tools().set, action)
    kind = _find_kind(call, action)
    context = ActionContext(call.agent.run, call.agent, call, partial(_open_block, call, names))
    is_delegated, kind = kind is None, kind or delegation.as_unresolved(action.intent)
    return PlaybookAction(context, kind, call, names, action, is_delegated)


def _find_kind(call: PlaybookCall, action: Action) -> ActionKind | None:
    return None if action.delegated else find_action(call.agent.run, action.intent)


def _open_block(call: PlaybookCall, names: ActionScope, actions: Sequence[Any], where: str) -> ActionBlock:
    """The actions nested in a field of an action, all read before the first one is carried out."""
    return ActionBlock(call, names, as_steps(actions, where), carry_out_nested)


def _fail(call: PlaybookCall, action: Action, raised: Exception) -> TurnAction:
    """An action that failed; everybody was told of that by an event. Raises LimitReachedError."""
    if isinstance(raised, PlanShownError):
        raise raised
    if isinstance(raised, LimitReachedError) and raised.what in call.spending.names():
        raise raised
    error = as_koi_error(raised)
    if isinstance(error, NobodyToAskError):  # a model that cannot ask goes on asking, or makes the answer up
        call.unanswered += 1
        if call.unanswered == MAX_UNANSWERED:
            raise error
    call.note(action.intent, action.data, error.message, ok=False)
    call.failures.record_failure(f"{action.intent}: {error.message}")
    if isinstance(error, FormError) and not call.is_direct:
        call.failures.refuse(f"{action.intent}: {error.message}", f"{action.intent}: {error.message}")
    return TurnAction(action, prompting.failure_feedback(action, error), error=error)


def _start_fields(running: PlaybookAction) -> dict[str, Any]:
    """The fields of an action for its start event, and whether its effect is lasting."""
    if not running.call.agent.run.detailed:
        return {}
    lasting = {"unsafe": True, "lasting": True} if running.kind.lasting else {}
    fields = with_marks(running.call.agent.run, running.fill())
    return {"fields": fields, **({"read_as": running.read_as} if running.read_as else {}), **lasting}


def _result_fields(running: PlaybookAction, value: Any) -> dict[str, Any]:
    """The result of an action for its end event; outside values in the form in which they are recalled."""
    if not running.call.agent.run.detailed:
        return {}
    shown = with_references(running.call.agent.run, value)
    if value is SKIPPED or (running.kind.inside and shown is value):
        return {"result": undefined if value is SKIPPED else value}
    return as_fields(shown)


def _keep(running: PlaybookAction, value: Any) -> None:
    """Store the result of an action for later actions, the model and the caller of the playbook."""
    action = running.action
    call = running.call
    names = running.names
    if value is SKIPPED:
        call.note(action.intent, action.data, None)
        if action.id not in names.results():
            names.mark_missing(action.id, _reason_of_skip(running))
        return
    names.record(action.intent, action.id, value)
    call.note(action.intent, running.fill(), value)
    if action.intent == "return" and not action.delegated and not action.group:
        call.ended, call.value = True, value


def _reason_of_skip(running: PlaybookAction) -> str:
    return prompting.WITHHELD if running.is_withheld else "was skipped, because its condition does not hold"


CarryOut = Callable[[PlaybookCall, Action, ActionScope], Coroutine[Any, Any, Any]]


class ActionBlock:
    """Steps, each a group whose members run at the same time.

    Args:
        around: the names of the action that the block is part of.
        carry_out: gives the result of one action.
    """

    def __init__(
        self, call: PlaybookCall, around: ActionScope, steps: Sequence[tuple[Action, ...]], carry_out: CarryOut
    ) -> None:
        self._call = call
        self._steps = steps
        self._carry_out = carry_out
        self._names = around.child_scope()

    @property
    def has_returned(self) -> bool:
        """Whether the playbook has returned."""
        return self._call.ended

    async def carry_out(self, **own: Any) -> list[Any]:
        """Run the steps once, with further names; returns their results."""
        self._names.add(own)
        results: list[Any] = []
        for members in self._steps:
            results += await gather(self._carry_out(self._call, action, self._names) for action in members)
            if self.has_returned:
                break
        return [result for result in results if result is not undefined and result is not SKIPPED]

    async def evaluate_condition(self, condition: Any) -> bool:
        """Whether a condition is true; `{llm_eval: true, instruction, data}` asks the model for true or false."""
        if not isinstance(condition, dict):
            return self._names.evaluate_condition(condition)
        agent = self._call.agent
        instruction = f"{condition.get('instruction', '')}\nAnswer with exactly one word: true or false."
        material = str(self._names.resolve(condition.get("data", "")))
        answer = await agent.run.models.complete(agent, instruction, material, self._call.spending, use="judge")
        return _verdict(answer)


def _verdict(answer: str) -> bool:
    """The answer of a model about a condition. Raises ActionError when it is neither true nor false."""
    word = answer.strip().strip("`\"'.").lower()
    if word not in ("true", "false"):
        raise ActionError(f"the condition was to be answered with true or false, and the answer was {answer[:80]!r}")
    return word == "true"
