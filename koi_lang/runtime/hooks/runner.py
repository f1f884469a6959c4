"""The hooks of a run: each action and request is passed, changed, asked about, denied or replaced by them.

Hooks before an action or a request to a model fail closed: one that raises, takes too long or says something else than
a decision denies. Those after it fail open: the result stays as it is.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from koi_lang.errors import KoiError, PermissionDeniedError, raised_as
from koi_lang.events import HookDecided, HookFailed, HookReplaced
from koi_lang.js.tagged_json import as_fields, from_fields
from koi_lang.runtime.guards.permissions import exact_permission
from koi_lang.runtime.guards.policy import Access
from koi_lang.runtime.hooks.types import (
    DECISIONS,
    ActionCall,
    Allow,
    Ask,
    Decision,
    Deny,
    Hook,
    Kind,
    ModelCall,
    Replace,
    Rewrite,
)
from koi_lang.runtime.host import ApprovalRequest, NobodyAllowsError, visible
from koi_lang.runtime.replay.location import Path, leaf_path

if TYPE_CHECKING:
    from koi_lang.llm.messages import Request
    from koi_lang.runtime.journal.entries import JournalEntry
    from koi_lang.runtime.ports import AgentPort, RunPort

MAX_SHOWN = 6000
Call = TypeVar("Call", ActionCall, ModelCall)


@dataclass(frozen=True, slots=True)
class Unasked(Deny):
    """Do not do it, since the person was to decide and nobody is there."""


class HookError(KoiError):
    """A hook raised, took too long, or said something that is no decision."""


class Hooks:
    """The hooks of a run, in the order in which they were registered.

    Attributes:
        around_actions: whether there are any for actions.
        around_models: whether there are any for requests to models.
        after_models: whether answers are changed, so that they must be complete before their actions begin.
    """

    def __init__(self, run: RunPort, hooks: Sequence[Hook] = ()) -> None:
        self._run = run
        self._of: dict[str, list[Hook]] = {
            kind: [hook for hook in hooks if hook.kind == kind] for kind in get_args(Kind)
        }
        self.around_actions = bool(self._of["before_action"] or self._of["after_action"])
        self.after_models = bool(self._of["after_model"])
        self.around_models = bool(self._of["before_model"]) or self.after_models

    # ------------------------------------------------------------ actions

    def action(self, agent: AgentPort, intent: str, fields: Mapping[str, Any], *, by_model: bool) -> ActionCall:
        """The call of an action as its hooks see it."""
        return ActionCall(agent.name, agent.role.name, intent, fields, by_model)

    async def around(
        self,
        call: ActionCall,
        check: Callable[[Mapping[str, Any]], dict[str, Any]],
        work: Callable[[dict[str, Any]], Awaitable[Any]],
    ) -> Any:
        """Run an action between its hooks. Decisions of an earlier part of the run are reused.

        Args:
            check: gives the fields that the action takes; raises when they are wrong.
            work: carries it out with some fields.

        Raises:
            PermissionDeniedError: a hook, or the person it let decide, denies the action.
        """
        path = leaf_path("hooks")
        decision = self._decided_before(path)
        if decision is None:
            decision = await self._decide("before_action", call, lambda to: _with_fields(call, to, check))
            self._tell(call, path, decision)
        if isinstance(decision, Deny):
            raise _denial_error(decision)
        if isinstance(decision, Replace):
            return decision.result
        if isinstance(decision, Rewrite):
            call = replace(call, fields=decision.to)
        return await self._revise_result(call, await work(dict(call.fields)), path)

    async def _revise_result(self, call: ActionCall, value: Any, path: Path) -> Any:
        """The result of an action after its hooks; none of them is asked about an earlier end."""
        recorded = self._run.recorded
        if recorded.recall_outcome().entry is not None:
            before = recorded.recall(HookReplaced.type, path)
            if before.entry is None or before.entry.data.get("opaque"):
                return value
            if before.is_whole:
                return from_fields(before.entry.data)
        revised = await self._after("after_action", call, value)
        if revised is not value:
            self._run.events.emit(HookReplaced(call.intent, **as_fields(revised)), call.agent, path=path)
        return revised

    def _decided_before(self, path: Path) -> Decision | None:
        """The decision about an action in an earlier part of the run; None when hooks are to be asked."""
        recorded = self._run.recorded
        known = recorded.recall(HookDecided.type, path)
        if known.entry is not None:
            # What held a secret that was not written down is only known to the hook.
            return _decision_of(known.entry) if known.is_whole else None
        # What had ended when there was no hook yet is not asked about.
        return Allow() if recorded.recall_outcome().entry is not None else None

    def _tell(self, call: ActionCall, path: Path, decision: Decision) -> None:
        if isinstance(decision, Allow) and not self._run.detailed:
            return
        fields: dict[str, Any] = {"decision": type(decision).__name__.lower()}
        for name in ("reason", "to", "result"):
            if hasattr(decision, name):
                fields |= as_fields(getattr(decision, name), name)
        self._run.events.emit(HookDecided(call.intent, **fields), call.agent, path=path)

    # ------------------------------------------------------------ models

    async def before_request(self, agent: str, use: str, model: str, request: Request) -> HookedRequest:
        """A request after its hooks; for their types see `ModelCall`. Raises PermissionDeniedError."""
        call = ModelCall(agent, use, model, request)
        decision = await self._decide("before_model", call, lambda to: _with_request(call, to))
        fields: dict[str, Any] = {"reason": decision.reason} if isinstance(decision, Deny) else {}
        if isinstance(decision, Rewrite) and self._run.detailed:
            fields["to"] = _request_data(decision.to)
        if not isinstance(decision, Allow):
            name = type(decision).__name__.lower()
            self._run.events.emit(HookDecided("model", name, **fields), call.agent)
        if isinstance(decision, Deny):
            raise _denial_error(decision)
        if isinstance(decision, Rewrite):
            call = replace(call, request=decision.to)
        return HookedRequest(self, call, str(decision.result) if isinstance(decision, Replace) else None)

    async def after_answer(self, call: ModelCall, text: str) -> str:
        """The text of a complete answer after its hooks."""
        return str(await self._after("after_model", call, text))

    # ------------------------------------------------------------ before

    async def _decide(self, kind: Kind, call: Call, rewritten: Callable[[Any], Call]) -> Decision:
        """The joint decision of all hooks; never Ask.

        The first one that neither allows nor rewrites decides. Hooks that come before the last one that rewrote are
        then shown what was made of the call, so that nothing is done that one of them has not let pass.
        """
        first, last = call, 0
        for number, hook in enumerate(self._of[kind]):
            decision = await self._before(hook, call, rewritten)
            if isinstance(decision, Rewrite):
                call, last = decision.to, number
            elif not isinstance(decision, Allow):
                return decision
        for hook in self._of[kind][:last]:
            decision = await self._before(hook, call, rewritten)
            if isinstance(decision, Rewrite) and decision.to != call:
                return Deny(f"{_describe_call(call)} is rewritten by `{hook.name}` and a hook after it in turn")
            if isinstance(decision, (Deny, Replace)):
                return decision
        if call is first:
            return Allow()
        return Rewrite(dict(call.fields) if isinstance(call, ActionCall) else call.request)

    async def _before(self, hook: Hook, call: Call, rewritten: Callable[[Any], Call]) -> Decision:
        """The decision of one hook, by the person where it asks; `to` of a rewriting is a call. Fails closed."""
        try:
            said = await self._call_hook(hook, _copied_call(call))
            if isinstance(said, Rewrite):
                return Rewrite(_rewriting(rewritten, said))
            if said is not None and not isinstance(said, DECISIONS):
                raise HookError(f"it said {said!r}, which is no decision")
        except HookError as failed:
            self._tell_failure(hook, call, str(failed))
            return Deny(f"{_describe_call(call)} was denied because the hook `{hook.name}` failed: {failed}")
        if isinstance(said, Ask):
            return await self._ask_person(hook, call, said)
        if isinstance(said, Deny):
            return Deny(f"{_describe_call(call)} was denied by `{hook.name}`: {said.reason}")
        return said or Allow()

    async def _ask_person(self, hook: Hook, call: ActionCall | ModelCall, ask: Ask) -> Allow | Deny:
        """The decision of the person; a lasting permission holds for exactly equal calls."""
        content = _text(call.fields) if isinstance(call, ActionCall) else f"to `{call.model}`"
        rule = f"hook={hook.name}={_describe_call(call)}={content}"
        detail = _shorten_text(visible(f"{ask.reason}: {content}"))
        request = ApprovalRequest(f"carry out {_describe_call(call)}", detail, call.agent)
        verdict = await self._run.policy.decide(Access(request=request, permission=exact_permission(rule)))
        if verdict.outcome == "unanswered":
            message = f"nobody can be asked to allow {_describe_call(call)}, which `{hook.name}` asks for: {ask.reason}"
            return Unasked(message)
        if verdict.is_allowed:
            return Allow()
        message = f"{_describe_call(call)} was not allowed by the person, whom `{hook.name}` asked: {ask.reason}"
        return Deny(message + verdict.because)

    # ------------------------------------------------------------ after

    async def _after(self, kind: Kind, call: ActionCall | ModelCall, value: Any) -> Any:
        """A result after its hooks; each sees the changes of those before it. Fails open."""
        for hook in self._of[kind]:
            try:
                said = await self._call_hook(hook, _copied_call(call), _copy_value(value))
                if said is not None and not isinstance(said, (Allow, Replace)):
                    raise HookError(f"it said {said!r}, which is no `Replace`")
            except HookError as failed:
                self._tell_failure(hook, call, str(failed))
                continue
            value = said.result if isinstance(said, Replace) else value
        return value

    # ------------------------------------------------------------ one hook

    async def _call_hook(self, hook: Hook, *given: Any) -> Any:
        """The return value of a hook. Raises HookError."""
        timeout = asyncio.timeout(hook.timeout_s)

        def failure(error: Exception) -> HookError:
            if timeout.expired():
                return HookError(f"it did not answer within {hook.timeout_s:g} s")
            return HookError(f"{type(error).__name__}: {str(error) or 'no message'}")

        with raised_as(failure):
            async with timeout:
                said = hook.function(*given)
                return await said if isinstance(said, Awaitable) else said

    def _tell_failure(self, hook: Hook, call: ActionCall | ModelCall, error: str) -> None:
        intent = call.intent if isinstance(call, ActionCall) else "model"
        self._run.events.emit(HookFailed(hook.name, hook.kind, intent, error), call.agent)
        if hook.kind.startswith("after"):
            self._run.host.log(
                f"the hook `{hook.name}` failed after {_describe_call(call)}, whose result is kept: {error}"
            )


@dataclass(frozen=True, slots=True)
class HookedRequest:
    """A request that hooks have let pass.

    Attributes:
        call: as it is to be sent.
        answer: what stands for the answer of the model; None where the model is to be asked.
    """

    hooks: Hooks
    call: ModelCall
    answer: str | None

    @property
    def is_whole(self) -> bool:
        """Whether the answer must be complete before any of it counts."""
        return self.answer is not None or self.hooks.after_models

    async def revise(self, text: str) -> str:
        """The text of a complete answer after its hooks."""
        return await self.hooks.after_answer(self.call, text)


def _rewriting(rewritten: Callable[[Any], Call], said: Rewrite) -> Call:
    """The call that a hook made. Raises HookError when it cannot be carried out."""
    try:
        return rewritten(said.to)
    except (KoiError, TypeError) as error:
        raise HookError(f"what it rewrote is wrong: {error}") from error


def _with_fields(call: ActionCall, fields: Any, check: Callable[[Mapping[str, Any]], dict[str, Any]]) -> ActionCall:
    if not isinstance(fields, Mapping):
        raise TypeError(f"the fields of an action were expected, not {fields!r}")
    return replace(call, fields=check(fields))


def _with_request(call: ModelCall, request: Any) -> ModelCall:
    if not isinstance(request, type(call.request)):
        raise TypeError(f"a request was expected, not {request!r}")
    return replace(call, request=request)


def _request_data(request: Request) -> dict[str, Any]:
    return {"system": request.system, "messages": [[message.role, message.text] for message in request.messages]}


def _decision_of(entry: JournalEntry) -> Decision | None:
    """The decision in a journal; None for one that the journal could not hold."""
    data = entry.data
    match data.get("decision"):
        case "deny":
            return Deny(str(data.get("reason", "")))
        case "rewrite" if "to" in data:
            return Rewrite(from_fields(data, "to"))
        case "replace" if "result" in data:
            return Replace(from_fields(data))
        case "allow":
            return Allow()
    return None


def _denial_error(decision: Deny) -> PermissionDeniedError:
    if isinstance(decision, Unasked):
        return NobodyAllowsError(decision.reason, help="Run the program in a terminal.")
    return PermissionDeniedError(decision.reason)


def _describe_call(call: ActionCall | ModelCall) -> str:
    return f"`{call.intent}`" if isinstance(call, ActionCall) else f"a request to the model of `{call.agent}`"


def _text(fields: Mapping[str, Any]) -> str:
    return json.dumps(dict(fields), ensure_ascii=False, sort_keys=True, default=str)


def _shorten_text(text: str) -> str:
    """The beginning of a text that a person can read before deciding, led by a note if more follows."""
    left_out = len(text) - MAX_SHOWN
    return text if left_out <= 0 else f"({left_out} more characters than are shown here) {text[:MAX_SHOWN]}…"


def _copied_call(call: ActionCall | ModelCall) -> ActionCall | ModelCall:
    """A call whose fields a hook may change without any effect."""
    return replace(call, fields=_copy_value(dict(call.fields))) if isinstance(call, ActionCall) else call


def _copy_value(value: Any) -> Any:
    """A copy of lists and objects, at any depth; everything else is the same."""
    if type(value) is dict:
        return {name: _copy_value(item) for name, item in value.items()}
    return [_copy_value(item) for item in value] if type(value) is list else value
