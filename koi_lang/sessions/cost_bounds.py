"""The handlers of a program to the most that a call of each can take, through everything that it leads to.

A bound holds whatever models answer and programs are given: where nothing limits how often a model is asked, there is
none, and it is said why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf

from koi_lang.compiler.calls.graph import CallGraph
from koi_lang.compiler.calls.routines import CallSite, Often, OutsideCall, Routine
from koi_lang.llm.messages import MAX_REQUESTS
from koi_lang.llm.worst_case import NOTHING, WorstCase, dearest_token_usd
from koi_lang.runtime.budget.limits import NO_BUDGET, REQUESTS_PER_TURN, Budget

# The most that one request takes of the models of an agent, by its name, for a purpose such as `small`.
Worst = Callable[[str, str], WorstCase]
# For what else than its turns the model of a playbook is asked: to work on data, to sum up, to decide, to find.
MAX_SHOWN = 6
BESIDE_TURNS = ("small", "judge", "embedding")


@dataclass(frozen=True, slots=True)
class CallLimits:
    """The limits of the calls of a handler.

    Attributes:
        budget: as it counts where the program is run.
        attempts: how often it is tried, at least once.
    """

    budget: Budget = NO_BUDGET
    attempts: int = 1


@dataclass(frozen=True, slots=True)
class Bound:
    """The most that a call takes, infinite where nothing bounds it.

    Attributes:
        why: nothing bounds it, as a clause; empty where something does.
        request: the most that one request takes.
        steps: how it came about, for a person.
    """

    requests: float = 0.0
    tokens: float = 0.0
    usd: float = 0.0
    why: str = ""
    request: WorstCase = NOTHING
    steps: tuple[str, ...] = ()

    def plus(self, other: Bound) -> Bound:
        """Both, one after the other or at the same time."""
        return Bound(
            self.requests + other.requests,
            self.tokens + other.tokens,
            self.usd + other.usd,
            self.why or other.why,
            self.request.beside(other.request),
        )

    def times(self, often: Often, why: str = "") -> Bound:
        """The bound so many times; an unknown count leaves any spending unbounded."""
        if not self.requests or often.times == 1:
            return self
        if often.times is None:
            return replace(self, requests=inf, tokens=inf, usd=inf, why=why or self.why, steps=())
        if often.times == 0:
            return NO_COST
        return replace(
            self, requests=self.requests * often.times, tokens=self.tokens * often.times, usd=self.usd * often.times
        )

    def within(self, other: Bound) -> Bound:
        """The bound where both apply."""
        smaller = replace(
            self,
            requests=min(self.requests, other.requests),
            tokens=min(self.tokens, other.tokens),
            usd=min(self.usd, other.usd),
        )
        is_bounded = smaller.usd < inf or smaller.tokens < inf
        is_less = (smaller.requests, smaller.tokens, smaller.usd) != (self.requests, self.tokens, self.usd)
        steps = (*self.steps, *(other.steps if is_less else ()))
        return replace(smaller, why="" if is_bounded else self.why, steps=steps)


NO_COST = Bound()


def requests(number: float, each: WorstCase) -> Bound:
    """The most that a number of requests takes."""
    if not number or not each.models:
        return NO_COST
    return Bound(number, number * each.tokens, number * each.usd, request=each)


class CostBounds:
    """The bounds of the calls of a program.

    Args:
        graph: of its calls.
        limits: what holds for a handler, by agent and event.
        run: what the whole run may take.
        worst: the most that a request takes.
        may_sample: whether MCP servers may ask the model of an agent without a person who agrees.
    """

    def __init__(
        self,
        graph: CallGraph,
        limits: Callable[[str, str], CallLimits],
        run: Budget,
        worst: Worst,
        *,
        may_sample: bool = False,
    ) -> None:
        self._graph = graph
        self._limits_of = limits
        self._run = run
        self._worst = worst
        self._may_sample = may_sample
        self._known: dict[Routine, tuple[Bound, Bound]] = {}
        self._under_way: list[Routine] = []

    def of(self, routine: Routine) -> Bound:
        """The most that a call of a routine takes."""
        own, inner = self._parts(routine)
        total = own.plus(inner) if own.requests else inner
        return self._within(total, self._run, lambda: self._reach(routine), "the run") if total.requests else total

    def of_run(self) -> Bound:
        """The most that the `run` statements take together, within the limits of the run."""
        total = NO_COST
        for site in self._graph.runs():
            total = total.plus(self._site(site, self.of))
        return self._within(total, self._run, lambda: total.request, "the run") if total.requests else total

    # ------------------------------------------------------------ one routine

    def _parts(self, routine: Routine) -> tuple[Bound, Bound]:
        """The cost of a call for its caller's account, and for its own account and those it calls."""
        if routine not in self._costly:
            return NO_COST, NO_COST
        if routine in self._under_way:
            return self._recursion(routine)
        if routine not in self._known:
            self._under_way.append(routine)
            self._known[routine] = self._find(routine)
            self._under_way.pop()
        return self._known[routine]

    def _find(self, routine: Routine) -> tuple[Bound, Bound]:
        limits = self._limits(routine)
        own, inner = self._code_requests(routine), NO_COST
        for site in self._graph.calls(routine).sites:
            own = own.plus(self._site(site, lambda target: self._parts(target)[0]))
            inner = inner.plus(self._site(site, lambda target: self._parts(target)[1]))
        if routine.playbook is not None:  # what those whom it asks take on its account is among its requests
            own = self._turns(routine, limits)
        else:
            tries = Often(limits.attempts)
            own, inner = own.times(tries), inner.times(tries)
        if limits.budget == NO_BUDGET:
            return own, inner
        total = replace(own.plus(inner), steps=own.steps)
        return NO_COST, self._within(total, limits.budget, lambda: self._reach(routine), routine.name)

    def _site(self, site: CallSite, part: Callable[[Routine], Bound]) -> Bound:
        """The cost of the calls at one place: all targets of a send to all, else the dearest one."""
        total = NO_COST
        for bound in map(part, site.targets):
            total = total.plus(bound) if site.is_each else _dearer(total, bound)
        return total.times(site.often, _why(site))

    def _code_requests(self, routine: Routine) -> Bound:
        """The cost of the code of a routine for its own requests."""
        total = NO_COST
        for call in self._graph.calls(routine).outside:
            total = total.plus(self._outside(routine, call))
        return total

    def _outside(self, routine: Routine, call: OutsideCall) -> Bound:
        name = "" if routine.agent is None else routine.agent.name.name
        each = requests(MAX_REQUESTS, self._worst(name, "small"))
        if call.kind == "model":
            return each.times(call.often, f"a model is asked {call.often.why} ({call.place.line})")
        if call.kind == "server":
            why = f"an MCP server may ask the model as often as it likes ({call.place.line})"
            return each.times(Often(None), why) if self._may_sample else NO_COST
        what = f"`{call.name}` is Python" if call.kind == "python" else f"there is {call.name}"
        return Bound(inf, inf, inf, f"{what}, and what it asks for is not known ({call.place.line})")

    def _turns(self, routine: Routine, limits: CallLimits) -> Bound:
        """The cost of a playbook's model: its turns, and the other requests on the call's account."""
        assert routine.agent is not None
        turns, name = limits.budget.turns, routine.agent.name.name
        if turns is None:
            raise AssertionError(f"a playbook without turns: {routine.name}")
        most = turns * REQUESTS_PER_TURN if limits.budget.requests is None else limits.budget.requests
        main, rest = self._worst(name, "default"), self._beside_turns(routine)
        # Each turn asks for one answer, and the last report is one more; servers that may, ask for more of them.
        agents = [each.agent for each in self._on_account(routine) if each.agent is not None]
        answers = most if any(map(self._graph.has_servers, agents)) else min(most, turns * MAX_REQUESTS + 1)
        total = requests(answers, main.beside(rest)).plus(requests(most - answers, rest))
        each = f" with up to {REQUESTS_PER_TURN} requests each" if limits.budget.requests is None else ""
        return replace(total, steps=(f"{turns:,} turn{'' if turns == 1 else 's'}{each}",))

    def _beside_turns(self, routine: Routine) -> WorstCase:
        """The dearest request on the account of a playbook that is no turn of its own."""
        agents = {each.agent.name.name for each in self._on_account(routine) if each.agent is not None}
        # The playbooks whose models may ask for it, which it may ask back.
        asking = [each for each in self._leading_to([routine]) if each.playbook is not None]
        askers = {each.agent.name.name for each in asking if each.agent is not None}
        worst = NOTHING
        for name, uses in [*((name, BESIDE_TURNS) for name in agents), *((name, ("small",)) for name in askers)]:
            for use in uses:
                worst = worst.beside(self._worst(name, use))
        return worst

    # ------------------------------------------------------------ who leads to whom

    @cached_property
    def _costly(self) -> set[Routine]:
        """The routines that may lead to a request."""
        return self._leading_to([each for each in self._graph.routines if self._asks_itself(each)])

    @cached_property
    def _callers(self) -> Mapping[Routine, set[Routine]]:
        """For each routine those in which a call of it stands."""
        found: dict[Routine, set[Routine]] = {}
        for caller in self._graph.routines:
            for site in self._graph.calls(caller).sites:
                for target in site.targets:
                    found.setdefault(target, set()).add(caller)
        return found

    def _leading_to(self, routines: Sequence[Routine]) -> set[Routine]:
        """Some routines, and all from which calls lead to them."""
        found, waiting = set(routines), list(routines)
        while waiting:
            new = self._callers.get(waiting.pop(), set()) - found
            found |= new
            waiting += new
        return found

    def _asks_itself(self, routine: Routine) -> bool:
        kinds = {call.kind for call in self._graph.calls(routine).outside} - (set() if self._may_sample else {"server"})
        return routine.playbook is not None or bool(kinds)

    def _on_account(self, routine: Routine) -> list[Routine]:
        """A playbook, and the code that it leads to whose requests it pays for."""
        found, waiting = {routine: None}, [routine]
        while waiting:
            for site in self._graph.calls(waiting.pop()).sites:
                new = [each for each in site.targets if each not in found and self._limits(each).budget == NO_BUDGET]
                found |= dict.fromkeys(new)
                waiting += new
        return list(found)

    def _reach(self, routine: Routine) -> WorstCase:
        """The dearest request that a call may lead to."""
        worst = NOTHING
        for each in self._graph.reachable(routine):
            if each.agent is not None:
                for use in ("default", *BESIDE_TURNS):
                    worst = worst.beside(self._worst(each.agent.name.name, use))
        return worst

    def _limits(self, routine: Routine) -> CallLimits:
        agent, _, event = routine.name.partition(".")
        return self._limits_of(agent, event) if routine.is_handler else CallLimits()

    # ------------------------------------------------------------ budgets

    def _within(self, total: Bound, budget: Budget, reach: Callable[[], WorstCase], what: str) -> Bound:
        """The remaining bound within a budget, which counts everything that a call leads to."""
        if budget.requests is None and budget.tokens is None and budget.usd is None:
            return total
        capped, each = total, reach()
        if budget.requests is not None:
            step = f"at most {budget.requests:,} requests by the budget of {_quote(what)}"
            capped = capped.within(replace(requests(budget.requests, each), steps=(step,)))
        if budget.tokens is not None:
            usd = budget.tokens * dearest_token_usd(each.models)
            step = f"at most {budget.tokens:,} tokens by the budget of {_quote(what)}"
            capped = capped.within(Bound(inf, budget.tokens, usd, request=each, steps=(step,)))
        if budget.usd is not None and not each.unpriced:
            step = f"at most ${budget.usd:g} by the budget of {_quote(what)}"
            capped = capped.within(Bound(inf, inf, budget.usd, request=each, steps=(step,)))
        return capped

    def _recursion(self, routine: Routine) -> tuple[Bound, Bound]:
        """The cost of a call that leads to itself: the rest of its budget, else no bound."""
        circle = [*self._under_way[self._under_way.index(routine) :], routine]
        names = [each.name for each in circle]
        shown = names if len(names) <= MAX_SHOWN else [*names[: MAX_SHOWN - 2], "…", names[-1]]
        why = f"it leads back to itself: {' → '.join(shown)}"
        endless = Bound(inf, inf, inf, why)
        return NO_COST, self._within(endless, self._limits(routine).budget, lambda: self._reach(routine), routine.name)


def _dearer(one: Bound, other: Bound) -> Bound:
    """The most where one or the other is called."""
    return Bound(
        max(one.requests, other.requests),
        max(one.tokens, other.tokens),
        max(one.usd, other.usd),
        one.why or other.why,
        one.request.beside(other.request),
    )


def _why(site: CallSite) -> str:
    """Why nobody knows how often a call is made."""
    names = " or ".join(f"`{target.name}`" for target in site.targets)
    if site.by_model:
        return f"its model may ask for {names} as often as it likes ({site.place.line})"
    return f"{names} is called {site.often.why} ({site.place.line})"


def _quote(what: str) -> str:
    return what if " " in what else f"`{what}`"
