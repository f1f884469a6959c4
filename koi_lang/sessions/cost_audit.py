"""The worst-case cost of a call of each handler, as it would run in this folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from math import inf, isinf
from typing import Any

from koi_lang.compiler.calls.graph import CallGraph
from koi_lang.llm.layers import candidates_of
from koi_lang.llm.messages import Usage
from koi_lang.llm.models import card_of, cost_usd
from koi_lang.llm.worst_case import NOTHING, WorstCase, worst_case
from koi_lang.program import build
from koi_lang.runtime.agents.agent import Agent
from koi_lang.runtime.agents.resilience import Resilience
from koi_lang.runtime.budget.limits import UNPAID
from koi_lang.runtime.host import SilentHost
from koi_lang.runtime.run import Run
from koi_lang.sessions.cost_bounds import Bound, CallLimits, CostBounds
from koi_lang.sessions.prepared import STAND_IN, Note, Prepared
from koi_lang.sessions.unneeded_keys import without_missing_keys

EMBEDDING = "embedding"
NOT_CHOSEN = frozenset({"a model to be configured"})
# Of a model that is to be chosen: how often it is asked is known, and nothing else.
UNKNOWN_REQUEST = WorstCase(inf, inf, NOT_CHOSEN, unread=NOT_CHOSEN)


@dataclass(frozen=True, slots=True)
class CostReport:
    """The worst-case costs of calls.

    Attributes:
        handlers: by `Agent.event`.
        run: of the `run` statements together; None in a program without any.
        is_unchosen: whether no model is configured.
    """

    handlers: Mapping[str, Bound]
    run: Bound | None
    is_unchosen: bool

    def as_data(self) -> dict[str, Any]:
        """The JSON form."""
        handlers = {name: bound_data(bound) for name, bound in self.handlers.items()}
        return {"handlers": handlers, "run": None if self.run is None else bound_data(self.run)}


def bound_data(bound: Bound) -> dict[str, Any]:
    """The JSON form of a bound; null for none."""
    counts = {"requests": bound.requests, "tokens": bound.tokens, "usd": bound.usd}
    return {
        **{name: None if isinf(most) else most for name, most in counts.items()},
        "unbounded": bound.why,
        "models": sorted(bound.request.models),
        "unpriced": sorted(bound.request.unpriced),
        "steps": list(bound.steps),
    }


def audit_cost(ready: Prepared, note: Note) -> CostReport:
    """The worst-case cost of a call of each handler of a program; no model is asked.

    Args:
        note: is told about models, a line each.
    """
    agents = {agent.about.name: agent for agent in ready.agents}
    noted: dict[str, None] = {}
    run = without_missing_keys(ready, list(agents.values())).run(
        SilentHost(), (), lambda line: noted.update({line: None})
    )
    graph = CallGraph(build.check(ready.path).files)
    # The most texts that an embedding model may get at once: the offers and the intent.
    offers = 1 + len(graph.routines)
    prices = _Prices(run, agents, ready.wanted.blocks, offers, noted)
    rules = run.permissions.rules
    bounds = CostBounds(
        graph,
        lambda agent, event: _limits(run, agents.get(agent), event),
        run.ledger.spending.budget,
        cache(prices.of),
        may_sample=any(rule.startswith("mcp:") and rule.endswith(":model") for rule in rules),
    )
    handlers = {routine.name: bounds.of(routine) for routine in graph.routines if routine.is_handler}
    report = CostReport(handlers, bounds.of_run() if graph.runs() else None, STAND_IN in noted)
    for line in noted:
        note(line)
    return report


def _limits(run: Run, agent: type[Agent] | None, event: str) -> CallLimits:
    """The limits of the calls of a handler, as the runtime applies them."""
    handler = None if agent is None else agent.about.handlers.get(event)
    if agent is None or handler is None:
        return CallLimits()
    budget = run.ledger.budget(agent.about.declared_budget(handler), is_playbook=handler.playbook)
    declared = agent.about.resilience.get(event)
    return CallLimits(budget, 1 if declared is None else Resilience.of(declared()).attempts)


@dataclass(frozen=True, slots=True, eq=False)
class _Prices:
    """The most that one request takes of the models of an agent.

    Attributes:
        usual: the settings for a purpose that an agent says nothing about.
        texts: that a model for embeddings may be given at once.
        noted: what has been said of models.
    """

    run: Run
    agents: Mapping[str, type[Agent]]
    usual: Mapping[str, Callable[[], Mapping[str, Any]]]
    texts: int
    noted: Mapping[str, None]

    def of(self, name: str, use: str) -> WorstCase:
        """For a purpose; models inside this process take nothing, but one that stands in."""
        if name not in self.agents:
            return NOTHING
        agent, models = self.run.agent(self.agents[name]), self.run.models
        if use == EMBEDDING:
            declared = agent.about.llm.get(use) or self.usual.get(use)
            return NOTHING if declared is None else self._embedding(str(declared().get("model") or use))
        model = models.of(agent, use)
        if model.provider in UNPAID:
            return UNKNOWN_REQUEST if STAND_IN in self.noted else NOTHING
        context = models.options(agent, use).get("context_tokens")
        return worst_case(candidates_of(model), context if isinstance(context, int) else None)

    def _embedding(self, model: str) -> WorstCase:
        """For as many texts as there may be, each as long as the model reads."""
        context, named = card_of(model).context_tokens, frozenset({model})
        if context is None:
            return WorstCase(inf, inf, named, unread=named)
        tokens = self.texts * context
        usd = cost_usd(model, Usage(tokens, 0))
        return WorstCase(tokens, inf if usd is None else usd, named, frozenset() if usd is not None else named)
