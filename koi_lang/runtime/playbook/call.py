"""Carrying out what a model asks for: one action after the other, groups at the same time, results kept by name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

from koi_lang.diagnostics import suggestion
from koi_lang.errors import AgentError, PermissionDeniedError
from koi_lang.events import ActionEnded, ActionFailed, ActionStarted
from koi_lang.interpolation import Rendered
from koi_lang.js.tagged_json import as_fields
from koi_lang.js.undefined import undefined
from koi_lang.llm.messages import ActionResult, Request
from koi_lang.outcome import capture, error_of
from koi_lang.runtime.actions.lookup import actions_of, find_action
from koi_lang.runtime.actions.registered import ActionContext, ActionError, perform
from koi_lang.runtime.budget.limits import BudgetAccount, LimitReachedError
from koi_lang.runtime.concurrency.tasks import gather
from koi_lang.runtime.context import delegating
from koi_lang.runtime.guards.write_quota import count_written, no_quota, require_quota
from koi_lang.runtime.playbook import delegation, prompting
from koi_lang.runtime.playbook.action_parsing import Action, as_steps
from koi_lang.runtime.playbook.loop_guard import Failures, RepetitionGuard
from koi_lang.runtime.playbook.missing_references import require_results
from koi_lang.runtime.playbook.prompting import SKIPPED
from koi_lang.runtime.playbook.references import ActionScope
from koi_lang.runtime.playbook.turn import Turn, TurnAction
from koi_lang.runtime.replay.error_records import as_koi_error, data_of
from koi_lang.runtime.replay.location import enter
from koi_lang.runtime.replay.ordering import BEGIN

if TYPE_CHECKING:
    from koi_lang.runtime.playbook.conversation import Conversation
    from koi_lang.runtime.ports import AgentPort, CallPort

# Loops are bounded, loops within loops are not; so many actions take a minute or so.
MOST_REPEATED = 100_000
# The fields of an action that was carried out, and its result.
Came = tuple[Mapping[str, Any], Any]
# Agent and event of everything that is being carried out around the current code; parallel branches have their own.
_under_way: ContextVar[tuple[tuple[str, str], ...]] = ContextVar("koi_under_way", default=())


@dataclass(slots=True)
class PlaybookCall:
    """One call of a playbook handler.

    Attributes:
        parent: the call that delegated this one.
        playbook: as rendered last.
        tools: what MCP servers offer it.
        conversation: what its model is told; None before it is told anything.
        turns: how many answers its model has begun.
        results: what was carried out, in order of completion.
        ended: whether `return` was carried out; `value` is its result.
        repeated: how many actions were carried out in loops and branches since the last one that the model asked for.
    """

    agent: AgentPort
    event: str
    args: Any
    names: ActionScope
    spending: BudgetAccount
    circles: RepetitionGuard
    failures: Failures
    parent: CallPort | None = None
    playbook: Rendered = field(default_factory=Rendered)
    tools: Mapping[str, Any] = field(default_factory=dict)
    conversation: Conversation | None = None
    turns: int = 0
    results: list[ActionResult] = field(default_factory=list)
    ended: bool = False
    value: Any = undefined
    repeated: int = 0

    # ------------------------------------------------------------ actions

    def begin_turn(self, request: Request) -> Turn:
        """The next turn, of which nothing has arrived yet."""
        self.turns += 1
        return Turn(self.turns, request)

    async def carry_out(self, action: Action) -> TurnAction:
        """Carry out one action of an answer; gives what came of it, whatever that is.

        Raises:
            LimitReachedError: a limit of this call, or of one around it, ends it.
        """
        self.repeated = 0
        ended = await capture(self._run_as_step(action, self.names, self._asked_for))
        if ended.error is not None:
            return self._fail(action, ended.error)
        self.failures.record_success()
        return TurnAction(action, prompting.success_feedback(action, ended.value), ended.value)

    def _fail(self, action: Action, raised: Exception) -> TurnAction:
        """An action that failed; everybody was told of that by an event. Raises LimitReachedError."""
        if isinstance(raised, LimitReachedError) and raised.what in self.spending.names():
            raise raised
        error = as_koi_error(raised)
        self._note(action, False, error.message)
        self.failures.record_failure(f"{action.intent}: {error.message}")
        return TurnAction(action, prompting.failure_feedback(action, error), error=error)

    async def run_nested(self, action: Action, names: ActionScope) -> Any:
        """The result of an action in a loop or branch; SKIPPED when its condition does not hold. Raises KoiError."""
        self.repeated += 1
        if self.repeated > MOST_REPEATED:
            raise ActionError(f"loops within loops have carried out {MOST_REPEATED:,} actions", help="Repeat less.")
        return await self._run_as_step(action, names, self._value_of)

    async def _run_as_step(
        self, action: Action, names: ActionScope, work: Callable[[Action, ActionScope], Awaitable[Came]]
    ) -> Any:
        """Do the work of an action and tell that it began and ended; what came of it is known when it is its turn."""
        run, name, intent = self.agent.run, self.agent.name, action.intent
        with enter(intent):
            await run.recorder.wait_turn(BEGIN)
            details = self._details(action, names)
            refusal = error_of(require_quota, details, f"what `{intent}` is given")
            told = {} if refusal is not None else details
            run.events.emit(ActionStarted(intent, action.id, **told), name)
            ended = await run.recorder.complete(work(action, names) if refusal is None else _raise_refusal(refusal))
            if ended.error is not None:
                self._tell_failure(action, names, ended.error)
            fields, value = ended.result()
            outcome = self._result(action, value)
            refusal = error_of(require_quota, outcome, f"`{intent}` was carried out, and what it gave")
            if refusal is not None:
                self._tell_failure(action, names, refusal)
                raise refusal
            self._keep(action, names, fields, value)
            run.events.emit(ActionEnded(intent, **outcome), name)
        return value

    def _tell_failure(self, action: Action, names: ActionScope, raised: Exception) -> None:
        names.mark_missing(action.id, "failed")
        self.agent.run.events.emit(ActionFailed(action.intent, data_of(raised)), self.agent.name)

    def _details(self, action: Action, names: ActionScope) -> dict[str, Any]:
        """What an action is given, and whether its effect is lasting, for those who want to know."""
        if not self.agent.run.detailed:
            return {}
        kind = None if action.delegated else find_action(self.agent.run, action.intent)
        lasting = {"unsafe": True, "lasting": True} if kind is not None and kind.lasting else {}
        return {"fields": names.substitute(action.data), **lasting}

    def _result(self, action: Action, value: Any) -> dict[str, Any]:
        """What came of an action, for those who want to know; what came from outside as it is given again later."""
        if not self.agent.run.detailed:
            return {}
        kind = None if action.delegated else find_action(self.agent.run, action.intent)
        if value is SKIPPED or kind is None or kind.inside:
            return {"result": undefined if value is SKIPPED else value}
        return as_fields(value)

    async def _asked_for(self, action: Action, names: ActionScope) -> Came:
        if action.intent == "prompt_user":
            self.circles.forget()  # an answer of the person is new to the model
        else:
            self.circles.note(action.intent, names.substitute(action.data), self.failures)
        return await self._value_of(action, names)

    async def _value_of(self, action: Action, names: ActionScope) -> Came:
        """The fields of an action and its result; SKIPPED when its condition does not hold."""
        has_branches = action.intent in ("if", "while")
        if "condition" in action.data and not has_branches and not names.evaluate_condition(action.data["condition"]):
            return action.data, SKIPPED
        require_results(names, action.data)
        fields = names.substitute(action.data)
        return fields, await self._dispatch(action, fields, names)

    def _keep(self, action: Action, names: ActionScope, fields: Mapping[str, Any], value: Any) -> None:
        """Have later actions, the model and whoever called the playbook know the result of an action."""
        if value is SKIPPED:
            self._note(action, True, None)
            if action.id not in names.results():
                names.mark_missing(action.id, "was skipped, because its condition does not hold")
            return
        names.record(action.intent, action.id, value)
        self._note(action, True, value, fields)
        if action.intent == "return" and not action.delegated and not action.group:
            self.ended, self.value = True, value

    def _note(self, action: Action, ok: bool, value: Any, fields: Mapping[str, Any] | None = None) -> None:
        self.results.append(ActionResult(action.intent, dict(action.data if fields is None else fields), ok, value))

    async def _dispatch(self, action: Action, fields: Mapping[str, Any], names: ActionScope) -> Any:
        """Hand an action to the built-in function or the team member it names."""
        kind = None if action.delegated else find_action(self.agent.run, action.intent)
        if kind is not None:
            return await perform(kind, ActionContext(self.agent.run, self.agent, self, names), fields, checked=True)
        if not action.delegated and not self._can_delegate():
            raise self._unknown_action_error(action.intent)
        payload = {name: value for name, value in fields.items() if name != "condition"}
        return await self._delegate(action.intent, fields.get("data", payload))

    def _can_delegate(self) -> bool:
        return self.agent.role.allows("delegate") and bool(delegation.reachable(self.agent))

    def _unknown_action_error(self, intent: str) -> ActionError:
        known = [kind.name for kind in actions_of(self.agent)]
        return ActionError(f"there is no action `{intent}`", help=suggestion(intent, known, "action"))

    # ------------------------------------------------------------ delegation

    async def _delegate(self, intent: str, payload: Any) -> Any:
        """Have a team member do it, with fresh memory."""
        if not self.agent.role.allows("delegate"):
            role = self.agent.role.name
            raise PermissionDeniedError(f"`{intent}` needs the permission `delegate`, which the role `{role}` lacks")
        member, event = await delegation.resolve(self.agent, intent, self.spending)
        around = (*_under_way.get(), (self.agent.name, self.event))
        asked = (member.about.name, event)
        if asked in around:
            raise AgentError(f"Infinite loop detected: `{asked[0]}.{event}` is already being carried out")
        token, under_way = delegating.set(self), _under_way.set((*around, asked))
        count_written(payload)
        try:
            with no_quota():
                value = await self._call_member(member, event, payload)
        finally:
            _under_way.reset(under_way)
            delegating.reset(token)
        count_written(value)
        return value

    async def _call_member(self, member: type[Any], event: str, payload: Any) -> Any:
        """Have a member handle an event, between the hooks of the run."""
        run, hooks = self.agent.run, self.agent.run.hooks
        if hooks is None or not hooks.around_actions:
            return await run.call(member, event, payload)
        known = next((other.key for other in delegation.reachable(self.agent) if other.agent is member), None)
        intent = f"{known or member.about.name}::{event}"
        call = hooks.action(self.agent, intent, {"data": payload}, by_model=True)
        return await hooks.around(call, _delegation_fields, lambda fields: run.call(member, event, fields["data"]))

    def block(self, names: ActionScope, actions: Sequence[Any], where: str) -> ActionBlock:
        """The actions nested in a field of an action, all read before the first one is carried out."""
        return ActionBlock(self, names, as_steps(actions, where))


class ActionBlock:
    """The body of a loop or branch: steps, each a group whose members run at the same time."""

    def __init__(self, execution: PlaybookCall, around: ActionScope, steps: Sequence[tuple[Action, ...]]) -> None:
        self._execution, self._steps = execution, steps
        self._names = around.child_scope()

    @property
    def has_returned(self) -> bool:
        """Whether the playbook has returned."""
        return self._execution.ended

    async def carry_out(self, **own: int) -> list[Any]:
        """Carry the steps out once, with further names; gives the results of what was carried out."""
        self._names.add(own)
        results: list[Any] = []
        for members in self._steps:
            results += await gather(self._execution.run_nested(action, self._names) for action in members)
            if self.has_returned:
                break
        return [result for result in results if result is not undefined and result is not SKIPPED]

    async def evaluate_condition(self, condition: Any) -> bool:
        """Whether a condition is true; `{llm_eval: true, instruction, data}` asks the model for true or false."""
        if not isinstance(condition, dict):
            return self._names.evaluate_condition(condition)
        execution = self._execution
        instruction = f"{condition.get('instruction', '')}\nAnswer with exactly one word: true or false."
        material = str(self._names.resolve(condition.get("data", "")))
        answer = await execution.agent.run.models.complete(
            execution.agent, instruction, material, execution.spending, use="judge"
        )
        return _verdict(answer)


def _delegation_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a delegation. Raises ActionError when they are others than `data`."""
    if set(fields) != {"data"}:
        raise ActionError("a delegation has the one field `data`")
    return dict(fields)


async def _raise_refusal(error: Exception) -> NoReturn:
    """The work of an action that is not carried out."""
    raise error


def _verdict(answer: str) -> bool:
    """What a model says about a condition. Raises ActionError when it is neither true nor false."""
    word = answer.strip().strip("`\"'.").lower()
    if word not in ("true", "false"):
        raise ActionError(f"the condition was to be answered with true or false, and the answer was {answer[:80]!r}")
    return word == "true"
