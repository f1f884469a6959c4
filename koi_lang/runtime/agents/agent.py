"""Agents: a class a declared agent, an instance an agent living in a run."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from koi_lang.diagnostics import nearest, suggestion
from koi_lang.errors import AgentError, GuardError, KoiError, PermissionDeniedError
from koi_lang.events import OMITTED, HandlerEnded, HandlerFailed, HandlerStarted, RetryStarted, TimedOut
from koi_lang.js.call_helpers import apply
from koi_lang.js.errors import is_final
from koi_lang.js.promises import settle
from koi_lang.js.task_scope import ChildScope, current_scope
from koi_lang.js.undefined import undefined
from koi_lang.runtime.agents.call_options import NO_OPTIONS, call_options, call_options_of, called_with
from koi_lang.runtime.agents.declarations import AgentDeclaration, Handler, Role
from koi_lang.runtime.agents.phases import AgentPhases
from koi_lang.runtime.agents.resilience import AttemptTimeoutError, FailedAttempt, Resilience, resilient
from koi_lang.runtime.agents.result_types import ResultTypeError
from koi_lang.runtime.agents.team import Query, peers_of
from koi_lang.runtime.budget.limits import LimitReachedError, in_time, paid_by
from koi_lang.runtime.context import handling
from koi_lang.runtime.guards.policy import function_access
from koi_lang.runtime.narrowing import bounding_roles, bounds
from koi_lang.runtime.outside_calls import call_agent, payload_of
from koi_lang.runtime.replay.error_records import as_koi_error, data_of, origin_of
from koi_lang.runtime.replay.location import enter, leaf_path
from koi_lang.runtime.replay.ordering import LATE
from koi_lang.runtime.schema import is_plainly_fitting, problems, signature_text, type_text

if TYPE_CHECKING:
    from koi_lang.runtime.agents.skills import Skill
    from koi_lang.runtime.ports import RunPort


class AgentClass(type):
    """The class of declared agents: for Python, their events are functions, `await module.Agent.event({…})`."""

    def __getattr__(cls, event: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        about: AgentDeclaration | None = vars(cls).get("about")
        handler = None if about is None else about.handlers.get(event)
        if handler is None or handler.private:
            raise AttributeError(f"`{cls.__name__}` has no `{event}`")
        file = handler.function.__code__.co_filename

        async def call(payload: Any = None, **fields: Any) -> Any:
            return await call_agent(cls, event, file, payload_of(payload, fields))

        call.__name__, call.__qualname__ = event, f"{cls.__name__}.{event}"
        return call


class Agent(metaclass=AgentClass):
    """An agent in a run.

    Subclasses are declarations: their keywords are fields of AgentDeclaration, their handlers are taken out of the
    class, so that an event may have any name.

    Attributes:
        about: the declaration.
        state: fields that last as long as the run.
        memory: the conversation of its playbooks, kept between calls unless it has amnesia.
        conversations: those of its playbooks that are under way.
    """

    about: ClassVar[AgentDeclaration]
    __koi_members__: ClassVar[Mapping[str, str]] = {
        "name": "name",
        "state": "state",
        "role": "role_name",
        "peers": "peers",
        "handle": "handle",
        "callSkill": "call_skill",
        "callAction": "call_action",
        "phase": "phase_name",
    }

    def __init_subclass__(cls, *, koi_name: str, role: Callable[[], Role] | None = None, **declared: Any) -> None:
        handlers = {value.event: value for value in vars(cls).values() if isinstance(value, Handler)}
        for name in [name for name, value in vars(cls).items() if isinstance(value, Handler)]:
            delattr(cls, name)
        guards = {event: handlers.pop(event) for event, handler in [*handlers.items()] if handler.guard}
        cls.about = AgentDeclaration(koi_name, cls.__doc__ or "", role or _no_role, handlers, guards, **declared)
        # Without a docstring `help` looks for comments in the source, which it reads as Python.
        cls.__doc__ = cls.__doc__ or _description(koi_name, list(handlers))

    def __init__(self, run: RunPort) -> None:
        self.run = run
        self.state: dict[str, Any] = self.about.state()
        self.memory: Sequence[Any] = ()
        self.conversations: list[Any] = []
        declares_any = self.about.phases or self.about.transitions
        self.phases = AgentPhases(self) if declares_any else None

    def __repr__(self) -> str:
        return f"[Agent: {self.name}]"

    @property
    def name(self) -> str:
        """The declared name."""
        return self.about.name

    @property
    def role(self) -> Role:
        """The effective role of the agent: the declared one, narrowed by the current call."""
        role, around = self.about.role(), bounds()
        return replace(role, bounds=around) if around else role

    @property
    def role_name(self) -> str:
        """The name of its role, as code sees it."""
        return self.role.name

    @property
    def phase_name(self) -> str:
        """The phase that it is in, as code sees it; empty for none."""
        return "" if self.phases is None else self.phases.current

    def phase_role(self) -> Role | None:
        """What its phase allows; None where it is in none."""
        return None if self.phases is None else self.phases.role

    @property
    def offered_skills(self) -> list[Skill]:
        """The skills that it uses, as its model knows them: with no function that its role does not permit."""
        permitted = ((skill, skill.restrict(self.may_call)) for skill in self.about.skills())
        return [known for skill, known in permitted if known is skill or known.functions]

    def may_call(self, permission: str | None) -> bool:
        """Whether its model may call a function of a skill that needs a permission, or none."""
        return self.run.policy.is_open(function_access("", permission, role=self.role))

    @property
    def peers(self) -> Query:
        """Everybody the agent can send to."""
        return peers_of(self.run, self)

    def handler(self, event: str) -> Handler:
        """The handler of an event. Raises AgentError."""
        found = self.about.handlers.get(event)
        if found is None:
            known = list(self.about.handlers)
            raise AgentError(f"`{self.name}` has no handler for `{event}`", help=suggestion(event, known, "handler"))
        return found

    @property
    def __koi_functions__(self) -> Mapping[str, Callable[..., Any]]:
        """`Agent.event(payload)` in code, for each handler, after the functions that all agents have."""
        return {event: self._function(handler) for event, handler in self.about.handlers.items()}

    def _function(self, handler: Handler) -> Callable[..., Any]:
        async def call(*arguments: Any) -> Any:
            if len(arguments) == 1:
                return await self.handle(handler.event, arguments[0])
            nothing: Any = undefined if handler.may_get_nothing else {}
            return await self.handle(handler.event, list(arguments) or nothing)

        call.__name__ = handler.event
        return call

    async def handle(self, event: str, payload: Any = undefined, options: Any = undefined) -> Any:
        """Carry out an event and give the handler's result.

        Args:
            options: `{ as: Role }` narrows the call to what that role allows, too; `returns` is the JSON Schema of its
                result, `model` and `effort` are those of its model.

        Raises:
            AgentError: there is no such handler, or the payload is not of the type it declares.
            ResultTypeError: the result is not of the type that the options ask for.
        """
        handler = self.handler(event)
        self.check_payload(handler, payload)
        chosen = NO_OPTIONS if options is undefined else call_options_of(options, f"{self.name}.{event}")
        own = () if self.phases is None else (self.phase_role,)
        with called_with(chosen, *own) if own or chosen is not call_options.get() else nullcontext():
            result = await self._handle(handler, payload)
        return result if chosen.result is None else chosen.result.check(result, crosses=True)

    async def _handle(self, handler: Handler, payload: Any) -> Any:
        event = handler.event
        run = self.run
        events = self.run.events
        detailed = self.run.detailed
        with enter(f"{self.name}.{event}"):
            if self.phases is not None and not handler.guard:
                self.phases.begin_call()
            given, bounds = payload if detailed else OMITTED, bounding_roles() or OMITTED
            events.emit(HandlerStarted(event, given, bounds), self.name)
            ended = await run.recorder.complete(self._in_time(self._paid(handler, payload)))
            if ended.error is not None:
                events.emit(HandlerFailed(event, str(ended.error), origin_of(ended.error)), self.name)
            else:
                events.emit(HandlerEnded(event, ended.value if detailed else OMITTED), self.name)
        return ended.result()

    def check_payload(self, handler: Handler, payload: Any) -> None:
        """Raise AgentError where a payload is not of the type that a handler declares."""
        if not handler.schema or (payload is undefined and handler.may_get_nothing):
            return
        if is_plainly_fitting(payload, handler.schema) or self.run.recorded.fits_types:
            return
        wrong = list(problems(payload, handler.schema))
        if wrong:
            takes = signature_text(handler.schema) or type_text(handler.schema)
            message = f"`{self.name}.{handler.event}` cannot take what it is given: {'; '.join(wrong)}"
            raise AgentError(message, help=f"It takes ({takes}).")

    async def _in_time(self, work: Coroutine[Any, Any, Any]) -> Any:
        """The result of work under a time limit; a timeout is recorded, since the clock decides it."""
        try:
            return await self.run.recorder.with_recorded_timeout(work)
        except LimitReachedError as error:
            if error.limit == "time":
                await self._tell_late(error)
            raise

    async def _tell_late(self, error: KoiError) -> None:
        await self.run.recorder.wait_for_slot(LATE)
        self.run.events.emit(TimedOut(data_of(error)), self.name)

    async def _paid(self, handler: Handler, payload: Any) -> Any:
        """The result of a handler within the budget of the call, all its attempts together."""
        call, declared = f"`{self.name}.{handler.event}`", self.about.declared_budget(handler)
        spending = self.run.ledger.spending_of(call, declared, is_playbook=handler.playbook)
        carry_out = self._pass_guards if self.about.guards and not handler.guard else self._attempts
        if spending is None:
            return await carry_out(handler, payload)
        try:
            with paid_by(spending):
                async with in_time(spending):
                    return await carry_out(handler, payload)
        finally:
            self.run.ledger.note_end(spending)

    async def _pass_guards(self, handler: Handler, payload: Any) -> Any:
        """The result of a handler between its guards. Raises GuardError where one does not let something pass."""
        running = handling.get(None)
        is_own = running is not None and running[0] is self
        for guard in self.about.guards_of(handler.event, "input", is_own=is_own):
            await self._require_verdict(guard, f"the input of `{handler.event}`", {"input": payload})
        result = await settle(await self._attempts(handler, payload))
        for guard in self.about.guards_of(handler.event, "output", is_own=is_own):
            given = {"input": payload, "output": result}
            await self._require_verdict(guard, f"the output of `{handler.event}`", given)
        return result

    async def require_action(self, event: str, payload: Any, intent: str, fields: Mapping[str, Any]) -> None:
        """Have guards look at an action that a model asks for. Raises PermissionDeniedError where one refuses it."""
        for guard in self.about.guards_of(event, "action", is_own=False):
            given = {"input": payload, "action": {"intent": intent, "data": dict(fields)}}
            await self._require_verdict(guard, f"the action `{intent}` of `{event}`", given)

    async def _require_verdict(self, guard: Handler, what: str, given: Mapping[str, Any]) -> None:
        """Raise GuardError, or for an action PermissionDeniedError, unless a guard allows.

        It forbids, throws, or gives no verdict.
        """
        verdict: Any = None
        reason = "it gave no verdict"
        cause: Exception | None = None
        try:
            with called_with(NO_OPTIONS):  # those of the call are not for its guards
                verdict = await self._handle(guard, given)
        except Exception as error:
            if is_final(error):
                raise
            cause = error
            reason = reason if isinstance(error, ResultTypeError) else as_koi_error(error).message
        if isinstance(verdict, dict):
            reason, verdict = str(verdict.get("reason") or "it gives no `reason`"), verdict.get("allow")
        elif verdict is False:
            reason = 'it gives `false`; `{ allow: false, reason: "…" }` says why'
        if verdict is not True:
            owner = f"{self.name}.{guard.guarded}" if guard.guarded else self.name
            message = f"the {guard.guard} guard of `{owner}` refuses {what}: {reason}"
            if guard.guard == "action":
                raise PermissionDeniedError(message) from cause
            raise GuardError(message, help="Catch the error, or change what is given or the guard.") from cause

    async def _attempts(self, handler: Handler, payload: Any) -> Any:
        declared = self.about.resilience.get(handler.event)
        if declared is None:
            return await self._attempt(handler, payload)
        policy = Resilience.of(declared())
        about = {"handler": handler.event, "tries": policy.attempts}
        return await resilient(
            policy, lambda: self._counted_attempt(policy, handler, payload), lambda failed: self._pause(failed, about)
        )

    async def _pause(self, failed: FailedAttempt, about: Mapping[str, Any]) -> None:
        """Tell that an attempt failed, and wait for the next one."""
        why = as_koi_error(failed.error).message
        started = RetryStarted(attempt=failed.attempt, delay_s=failed.delay_s, error=why, **about)
        self.run.events.emit(started, self.name, path=leaf_path("retry"))
        await self.run.sleep(failed.delay_s)

    async def _counted_attempt(self, policy: Resilience, handler: Handler, payload: Any) -> Any:
        """One of several calls, with a path of its own: how far the one before came does not change it."""
        with enter("attempt"):
            return await self.run.recorder.with_recorded_timeout(self._limited_attempt(policy, handler, payload))

    async def _limited_attempt(self, policy: Resilience, handler: Handler, payload: Any) -> Any:
        """One call, ended when it takes longer than it may. Raises AttemptTimeoutError."""
        try:
            limit_s = self.run.recorded.time_limit(policy.timeout_s)
            return await policy.run_limited(self._attempt(handler, payload), limit_s)
        except AttemptTimeoutError as error:
            await self._tell_late(error)
            raise

    async def _attempt(self, handler: Handler, payload: Any) -> Any:
        """One call of a handler; its background work is cancelled with it."""
        token = handling.set((self, payload))
        try:
            async with ChildScope(current_scope()):
                return await handler.function(self, payload)
        except ResultTypeError as error:
            error.crosses = True
            raise
        finally:
            handling.reset(token)

    async def call_skill(self, skill: str, *arguments: Any) -> Any:
        """`callSkill("Skill", "function", input)`; without a function name the first exported one is called."""
        used = {declared.name: declared for declared in self.about.skills()}
        found = used.get(skill)
        if found is None:
            near = nearest(skill, used)
            help = f"did you mean `{near}`?" if near else f"write `uses skill {skill}` in `{self.name}`."
            raise AgentError(f"`{self.name}` does not use a skill `{skill}`", help=help)
        function, given = found.choose(arguments)
        return await settle(apply(function, *given))

    async def call_action(self, intent: str, data: Any = undefined) -> Any:
        """Run a built-in action from code. Raises AgentError where there is none of that name."""
        return await self.run.perform(self, intent, data)


def _description(name: str, events: Sequence[str]) -> str:
    """The description in `help` of an agent without one of its own."""
    listed = ", ".join(f"`{event}`" for event in events)
    return f"The agent `{name}`, which handles {listed}." if events else f"The agent `{name}`, which handles nothing."


def _no_role() -> Role:
    return Role("none", ())
