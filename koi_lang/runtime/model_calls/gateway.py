"""Requests of a run to the answers of its models: which model, within which budget, told as events, answered once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from koi_lang.errors import AgentError, KoiError, PermissionDeniedError, UsageError
from koi_lang.events import ModelAsked, ModelFailed
from koi_lang.lazy import lazy_module
from koi_lang.llm.layers import candidates_of, preview_of
from koi_lang.llm.messages import Adapter, Message, Request, RequestPreview, message_of
from koi_lang.llm.usage import estimate
from koi_lang.runtime.agents.call_options import call_options
from koi_lang.runtime.budget.limits import UNPAID, BudgetAccount, LimitReachedError, current_spending
from koi_lang.runtime.budget.payment import Payment
from koi_lang.runtime.model_calls.answer_stream import AnswerStream, ModelRequest
from koi_lang.runtime.model_calls.frozen_plans import FOLDER, FrozenPlans, UnconnectedModel
from koi_lang.runtime.model_calls.pool import Connect, Connections
from koi_lang.runtime.replay.answers import RecordedBefore, RequestIdentity, recall_answer
from koi_lang.runtime.replay.error_records import data_of
from koi_lang.runtime.replay.location import Path, current_place, leaf_path
from koi_lang.runtime.replay.request_digest import ToldDigests

if TYPE_CHECKING:
    from pathlib import Path as Folder

    from koi_lang.llm import model_choice
    from koi_lang.runtime.hooks.runner import HookedRequest
    from koi_lang.runtime.ports import AgentPort, RunPort
else:
    model_choice = lazy_module("koi_lang.llm.model_choice")

Usual = Mapping[str, Callable[[], Mapping[str, Any]]]


class ModelGateway:
    """The models of a run; agents with the same settings share one.

    Args:
        connect: makes a model from the settings of an `llm` block.
        usual: the settings for a purpose that an agent says nothing about.
        verbatim: whether events carry all that a model is told.
        plans: the folder of the program, whose `plans` are used; None where they are not.
    """

    def __init__(
        self, run: RunPort, connect: Connect, usual: Usual, *, verbatim: bool, plans: Folder | None = None
    ) -> None:
        self.verbatim = verbatim
        beside = None if plans is None else plans / FOLDER
        self._plans = FrozenPlans(beside) if beside is not None and beside.is_dir() else None
        self._run, self._usual = run, usual
        self._connections = Connections(connect)
        self._unpriced: set[str] = set()
        self.asks_nobody = False
        # Answers to what is asked once; None where whoever asked has failed.
        self._completed: dict[tuple[str, str, str, str], asyncio.Future[str | None]] = {}
        self._told = ToldDigests(run.redact)

    def settings(self, agent: AgentPort, use: str = "default") -> dict[str, Any]:
        """The settings of an agent's model for a purpose, as in an `llm` block. Raises SettingsError."""
        return self._block(agent, use)[0]

    def options(self, agent: AgentPort, use: str = "default") -> dict[str, Any]:
        """These settings completed with defaults and with the context window of the server.

        Raises:
            SettingsError: the settings make no sense.
        """
        block, role = self._block(agent, use)
        usual = self._usual.get(role)
        context = candidates_of(self._connect(agent, block))[0].context_tokens
        served = {} if context is None else {"context_tokens": context}
        return {**served, **(usual() if usual is not None else {}), **block}

    def _block(self, agent: AgentPort, use: str) -> tuple[dict[str, Any], str]:
        """A block, and the purpose whose usual settings count: another one where the block names it as its `role`."""
        own, named, phases = agent.about.llm, dict[str, Any](), agent.phases
        if use == "default":  # what the phase of the agent, and the call under way, ask for
            named = {**({} if phases is None else phases.model), **call_options.get().model}
        if named and model_choice.is_role(named.get("model")):
            use = str(named.pop("model"))
        declared = own.get(use) or self._usual.get(use) or own.get("default")
        block = self._exchange(declared() if declared is not None else {}, named)
        role = block.pop("role", None)
        if role is None:
            return block, use
        model_choice.require_role(str(role), agent.name)
        known = role if role in self._usual else "default"
        usual = self._usual.get(known)
        return self._exchange(usual() if usual is not None else {}, block), known

    def _exchange(self, block: Mapping[str, Any], named: Mapping[str, Any]) -> dict[str, Any]:
        roles = {role: usual() for role, usual in self._usual.items()} if "model" in named else {}
        return model_choice.exchange_model(block, named, roles) if named else dict(block)

    def of(self, agent: AgentPort, use: str = "default") -> Adapter:
        """The model an agent uses for a purpose: `default`, `small`, `judge`."""
        return self._connect(agent, self.settings(agent, use))

    def _connect(self, agent: AgentPort, block: Mapping[str, Any]) -> Adapter:
        """The model of a block; where plans may answer, one that cannot be asked stands in. Raises KoiError."""
        try:
            return self._connections.of(block)
        except KoiError as error:
            if self._plans is None or not self._plans.has_any(agent.name):
                raise
            return UnconnectedModel(error)

    async def aclose(self) -> None:
        """Close all of them."""
        await self._connections.aclose()

    async def forget(self) -> None:
        """Have models be connected anew, with the settings that count then; answers on their way arrive."""
        await self._connections.forget()

    @asynccontextmanager
    async def stream_answer(
        self, agent: AgentPort, request: Request, spending: BudgetAccount | None = None, use: str = "default"
    ) -> AsyncIterator[AnswerStream]:
        """An answer on its way; at the end of the block it is paid for, whether or not it was read to its end.

        Raises:
            KoiError: no model is connected, and no frozen plan answers.
            LimitReachedError: a budget does not allow the request, or its time is up.
            PermissionDeniedError: a hook denies the request.
            ProviderError: while it is read: the model cannot answer.
        """
        run, spending = self._run, spending or current_spending() or self._run.spending
        async with self._connections.hold_open(self.of(agent, use)) as connected:
            model = connected if self._plans is None else self._plans.in_front_of(connected, agent, request)
            if isinstance(model, UnconnectedModel):
                raise model.error
            path, place = leaf_path("model"), current_place()
            news = self._told.news(place, request, agent.name) if run.recorder.is_kept else None
            before = None if news is None else self._before(model, path, request, news.fingerprint)
            if not request.json and before is not None and before.lacks_secret:
                before = None  # the text is passed on as it is; what a playbook does with it is looked at there
            with Payment(run, agent.name, spending) as payment:
                asked = ModelRequest(agent, model, request, path, payment)
                if before is None:
                    self._require_same_model(asked)
                hooked = None if before is not None else await self._run_hooks(asked, use)
                if hooked is not None:
                    asked = replace(asked, request=hooked.call.request)
                arriving = AnswerStream(run, await self._paid(asked, before, hooked), before, hooked)
                fields = {**({} if news is None else news.as_data()), **self._verbatim(arriving.request)}
                run.events.emit(ModelAsked(asked.name, **fields), agent.name, path=path)
                if news is not None and self._is_written(path, news.fingerprint):
                    self._told.note_written(place, agent.name)
                arriving.recall_discarded()
                with arriving:
                    yield arriving

    async def preview(self, agent: AgentPort, request: Request, use: str = "default") -> RequestPreview:
        """The first request that would be sent, after its hooks; nothing is sent or reserved.

        A budget that leaves less than a model may answer adds a `max_tokens` when the request is made.

        Raises:
            AgentError: a hook answers in the place of the model.
            PermissionDeniedError: a hook denies the request.
        """
        model, payment = self.of(agent, use), Payment(self._run, agent.name, self._run.spending)
        hooked = await self._run_hooks(ModelRequest(agent, model, request, leaf_path("model"), payment), use)
        if hooked is not None and hooked.answer is not None:
            raise AgentError("an extension answers this request in the place of the model, so nothing is sent")
        return preview_of(model, request if hooked is None else hooked.call.request)

    def _is_written(self, path: Path, fingerprint: str) -> bool:
        """Whether a request stands in the journal as it is, and not as an earlier version of Koi has told it."""
        recorded = self._run.recorded.recall(ModelAsked.type, path).entry
        return recorded is None or recorded.data.get("request") == fingerprint

    def _require_same_model(self, asked: ModelRequest) -> None:
        """End a run that goes on when another model would answer an agent than before, which nobody has asked for."""
        history, agent = self._run.recorded.history, asked.agent
        before = [] if history is None else history.expected_models(agent.name)
        # Of several purposes one may not have been met yet; what stands in for a model is there for all of them.
        is_certain = asked.model.provider in UNPAID or not {*agent.about.llm, *self._usual} - {"default"}
        if before and is_certain and asked.name not in before:
            message = f"`{agent.name}` was answered by `{before[-1]}`, and now `{asked.name}` would answer"
            help = "Set it up as before, or say which model goes on: `koi resume … -m PROVIDER/MODEL`."
            self._run.halt(UsageError(message, help=help))

    async def _run_hooks(self, asked: ModelRequest, use: str) -> HookedRequest | None:
        """A request after its hooks; a denied one has failed for good. Raises PermissionDeniedError."""
        hooks = self._run.hooks
        if hooks is None or not hooks.around_models:
            return None
        try:
            hooked: HookedRequest = await hooks.before_request(asked.agent.name, use, asked.name, asked.request)
        except PermissionDeniedError as denied:
            await self._tell_failure(asked, denied)
            raise
        return hooked

    async def _tell_failure(self, asked: ModelRequest, error: KoiError) -> None:
        """Tell, when it is its turn, that a request is not made."""
        await self._run.recorder.wait_for_slot(path=asked.path)
        if self._run.detailed:
            self._run.events.emit(ModelFailed(data_of(error)), asked.agent.name, path=asked.path)

    async def _paid(
        self, asked: ModelRequest, before: RecordedBefore | None, hooked: HookedRequest | None
    ) -> ModelRequest:
        """A request that may be sent, with an answer as long as budgets leave. Raises LimitReachedError."""
        if before is not None and isinstance(before.failure, LimitReachedError):
            await self._tell_failure(asked, before.failure)
            raise before.failure
        if before is not None or (hooked is not None and hooked.answer is not None):
            return asked
        spending, need = asked.payment.spending, None
        if spending.limits_requests():
            need = estimate(asked.request, candidates_of(asked.model, asked.request.model))
            self._tell_unpriced(need.unpriced, asked)
        try:
            reservation = await asked.payment.reserve(need)
        except LimitReachedError as error:
            await self._tell_failure(asked, error)
            raise
        limit = None if need is None else need.limit_for(reservation.answer_tokens)
        return asked if limit is None else replace(asked, request=replace(asked.request, max_tokens=limit))

    def _tell_unpriced(self, name: str, asked: ModelRequest) -> None:
        """Report once that a budget in usd does not bound the cost of a model."""
        is_bounded = not name or not asked.payment.spending.limits_usd() or asked.model.provider in UNPAID
        if not is_bounded and name not in self._unpriced:
            self._unpriced.add(name)
            self._run.host.log(f"the price of `{name}` is not known, so no budget in usd bounds what it takes")

    def _before(self, model: Adapter, path: Path, request: Request, fingerprint: str) -> RecordedBefore | None:
        """The recorded part of the answer; None when the model is to be asked."""
        run, is_repeatable = self._run, model.provider in UNPAID
        is_settled = run.hooks is None or not run.hooks.around_models  # a hook may choose another model
        identity = RequestIdentity(path, fingerprint, (request.model or model.model) if is_settled else "")
        return recall_answer(run.recorded, identity, run.recorder.diverge, is_repeatable=is_repeatable)

    def _verbatim(self, request: Request) -> dict[str, Any]:
        """All that a model is told, where that was asked for."""
        if not self.verbatim:
            return {}
        messages = [[message.role, message.text] for message in request.messages]
        return {"system": request.system, "kept": 0, "messages": messages}

    async def complete(
        self,
        agent: AgentPort,
        instruction: str,
        data: str | Message,
        spending: BudgetAccount | None = None,
        use: str = "small",
    ) -> str:
        """A plain answer to an instruction about some data, from the agent's model for a use."""
        request = Request(instruction, (message_of(data),))
        async with self.stream_answer(agent, request, spending, use) as arriving:
            return await arriving.text()

    async def complete_once(
        self, agent: AgentPort, instruction: str, data: str, use: str = "small", spending: BudgetAccount | None = None
    ) -> str:
        """The same, asked once a run for equal data; who asks meanwhile waits for that answer.

        An empty text where a request is only shown.
        """
        if self.asks_nobody:
            return ""
        key = (agent.name, instruction, data, use)
        while key in self._completed:
            # Whoever stops waiting leaves it to the others.
            answer = await asyncio.shield(self._completed[key])
            if answer is not None:
                return answer
        self._completed[key] = asking = asyncio.get_running_loop().create_future()
        answer = None
        try:
            answer = await self.complete(agent, instruction, data, spending, use)
        finally:
            if answer is None:
                del self._completed[key]  # the next one who waits asks for itself
            asking.set_result(answer)
        return answer
