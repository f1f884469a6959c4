"""The most that calls can cost, held against a model that always takes the most it can."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from itertools import count
from math import inf
from pathlib import Path
from typing import Any

import pytest

from koi_lang.errors import KoiError, RequestError, capture
from koi_lang.llm.fallback import fallback
from koi_lang.llm.messages import Adapter, Delta, Discarded, Request, StreamEnd, TextDelta, Usage
from koi_lang.llm.models import card_of
from koi_lang.llm.retry import retry
from koi_lang.llm.usage import Candidate, input_tokens_of
from koi_lang.program import loader
from koi_lang.runtime.host import SilentHost
from koi_lang.sessions.cost_audit import audit_cost
from koi_lang.sessions.cost_bounds import Bound
from koi_lang.sessions.options import RunOptions
from koi_lang.sessions.prepared import Prepared, prepare_program
from koi_lang.settings import read_settings
from tests.projects import Project

MODEL, DEAR = "gpt-5.4-mini", "claude-opus-4-1"
# What the bound may be of what the model reached, where no budget in tokens or money decides.
CLOSE = 1.5
ROLES = "role Worker { can advise }\nrole Boss { can delegate }\n"


@dataclass
class Spender:
    """A model that never returns and asks for all else that it may, with its window full each time.

    Attributes:
        asks: how often each answer has it asked to work on data.
        wants: further actions of each answer, which follow.
        fails: how many attempts break off before each answer.
        is_paid: whether they are paid for.
        is_honest: whether it reads no more than what it is sent.
    """

    model: str = MODEL
    max_tokens: int | None = None
    asks: int = 25
    wants: Sequence[dict[str, Any]] = ()
    fails: int = 0
    is_paid: bool = True
    is_honest: bool = False
    provider: str = "openai"

    def __post_init__(self) -> None:
        self.numbers = count()

    @property
    def candidates(self) -> Sequence[Candidate]:
        """It alone."""
        return (Candidate(self.model, self.max_tokens),)

    async def __call__(self, request: Request) -> AsyncIterator[Delta]:
        """Break off, or answer."""
        if request.attempts < self.fails:
            failure = RequestError("it broke off", status=500)
            failure.discarded = Discarded(self.usage(request)) if self.is_paid else None
            raise failure
        yield TextDelta(self.answer() if request.json else "Something.")
        yield StreamEnd(self.usage(request), "stop")

    def usage(self, request: Request) -> Usage:
        """All that the window holds."""
        card = card_of(self.model)
        bounds = [each for each in (request.max_tokens, self.max_tokens, card.output_tokens) if each is not None]
        written = min(bounds)
        assert card.context_tokens is not None
        room = min(card.input_tokens or card.context_tokens, card.context_tokens - written)
        read = min(input_tokens_of(request), room) if self.is_honest else room
        return Usage(read, written, stored_tokens=read)

    def answer(self) -> str:
        """Actions that ask a model, no two of them alike, and what else is wanted."""
        number = next(self.numbers)
        asks = [
            {"intent": "call_llm", "data": f"{number}/{each}", "instruction": "Think."} for each in range(self.asks)
        ]
        return json.dumps({"batch": [*asks, *self.wants]})

    async def aclose(self) -> None:
        """Nothing is open."""


async def no_pause(seconds: float) -> None:
    """Go on at once."""


def as_layers(model: Adapter) -> Adapter:
    """A model that is asked again where it breaks off, without pauses."""
    return retry(model, sleep=no_pause)


def program(project: Project, text: str, model: Adapter, **limits: Any) -> Prepared:
    """A program whose agents all have one model."""
    path = project.write("main.koi", ROLES + text)
    options = RunOptions(settings=read_settings(Path(project.folder)), limits=limits)
    return prepare_program(str(path), loader.load_compiled(str(path)), options, model)


def bound_of(ready: Prepared, name: str = "A.go") -> Bound:
    """The bound of a handler."""
    return audit_cost(ready, lambda line: None).handlers[name]


def spend(ready: Prepared, name: str = "A.go") -> tuple[int, int, float]:
    """What one call takes: requests, tokens and money; most calls end at a limit."""

    async def carry_out() -> tuple[int, int, float]:
        agent, event = name.split(".")
        run = ready.run(SilentHost(), (), lambda line: None)
        try:
            async with run:
                await capture(run.call(getattr(ready.module, agent), event, {}))
        except KoiError:
            pass  # a run that has taken more than its budget says so at its end
        return run.spending.requests, run.spending.tokens, run.spending.usd

    return asyncio.run(carry_out())


PLAYBOOK = 'agent A : Worker { on go() { playbook "Work." budget { turns: 3 } } }'
PROGRAMS = {
    "a playbook": (PLAYBOOK, Spender()),
    "attempts that break off": (PLAYBOOK, as_layers(Spender(fails=2))),
    "a short answer": (PLAYBOOK, Spender(max_tokens=500)),
    "a dearer model behind it": (
        PLAYBOOK,
        fallback([as_layers(Spender(fails=9, is_paid=False)), as_layers(Spender(DEAR))]),
    ),
    "code that asks": (
        'agent A : Worker { on go() { return await callAction("call_llm", { data: "x", instruction: "y" }) } }',
        as_layers(Spender(fails=2)),
    ),
    "loops with known rounds": (
        f"""
        {PLAYBOOK.replace("agent A", "agent B")}
        agent A : Boss {{
          on go() {{
            for (let i = 0; i < 2; i++) {{ try {{ await B.go({{}}) }} catch (error) {{ console.log(error.message) }} }}
            for (const each of [1, 2]) {{ try {{ await B.handle("go", {{}}) }} catch (error) {{ console.log("no") }} }}
          }}
        }}""",
        Spender(),
    ),
    "everybody in a team": (
        f"""
        {PLAYBOOK.replace("agent A", "agent B")}
        {PLAYBOOK.replace("agent A", "agent C")}
        team Both {{ b: B, c: C }}
        agent A : Boss {{
          uses team Both
          on go() {{ return await send peers.event("go").all()({{}}) }}
        }}""",
        Spender(),
    ),
    "functions": (
        f"""
        {PLAYBOOK.replace("agent A", "agent B")}
        agent A : Boss {{
          on go() {{
            async function twice() {{ try {{ await B.go({{}}) }} finally {{ await B.go({{}}) }} }}
            try {{ await twice() }} finally {{ return 1 }}
          }}
        }}""",
        Spender(),
    ),
    "a handler that is tried again": (
        f"""
        {PLAYBOOK.replace("agent A", "agent B")}
        agent A : Boss {{
          resilience "go" {{ retry_max_attempts = 3 }}
          on go() {{ return await B.go({{}}) }}
        }}""",
        Spender(),
    ),
    "a delegate that is code": (
        f"""
        agent B : Worker {{ on ask() {{ return await callAction("call_llm", {{ data: "x", instruction: "y" }}) }} }}
        team Office {{ b: B }}
        {PLAYBOOK.replace("Worker {", "Boss { uses team Office")}""",
        Spender(asks=0, wants=[{"actionType": "delegate", "intent": "b::ask", "data": {}}] * 30),
    ),
    "a budget of requests": (
        """
        agent B : Worker { on work() { playbook "Work." budget { turns: 2 } } }
        team Office { b: B }
        agent A : Boss { uses team Office  budget { requests: 30 }  on go() { playbook "Work." } }""",
        Spender(wants=[{"actionType": "delegate", "intent": "b::work", "data": {}}]),
    ),
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", PROGRAMS)
def test_bounds_hold(name: str, project: Project) -> None:
    """What the model takes is no more than the bound, and the bound is no more than half above it."""
    ready = program(project, *PROGRAMS[name])
    bound = bound_of(ready)

    requests, tokens, usd = spend(ready)

    assert not bound.why
    assert (True, True, True) == (requests <= bound.requests, tokens <= bound.tokens, usd <= bound.usd + 1e-9)
    assert bound.usd <= usd * CLOSE, (bound, requests, tokens, usd)


BUDGETS = {
    "money of an agent": (PLAYBOOK.replace("on go", "budget { usd: 0.4 } on go"), {}, {"usd": 0.4}),
    "tokens of a playbook": (PLAYBOOK.replace("turns: 3", "tokens: 200000"), {}, {"tokens": 200_000}),
    "money of the run": (PLAYBOOK, {"usd": 0.3}, {"usd": 0.3}),
    "requests of the run": (PLAYBOOK, {"requests": 7}, {"requests": 7}),
    "turns of the run": (PLAYBOOK.replace("budget { turns: 3 }", ""), {"turns": 2}, {"requests": 40}),
}


@pytest.mark.parametrize("name", BUDGETS)
def test_budgets_bound(name: str, project: Project) -> None:
    """What is declared, and what the folder and the command line say, bounds a call whose model counts as Koi does."""
    text, limits, expected = BUDGETS[name]
    ready = program(project, text, Spender(is_honest=True), **limits)
    bound = bound_of(ready)

    requests, tokens, usd = spend(ready)

    assert (True, True, True) == (requests <= bound.requests, tokens <= bound.tokens, usd <= bound.usd + 1e-9)
    assert expected == {field: getattr(bound, field) for field in expected}


UNBOUNDED = {
    "its model may ask for `B.work` as often as it likes (main.koi:6)": """
agent B : Worker { on work() { playbook "Work." } }  team Office { b: B }
agent A : Boss { uses team Office
  on go() { playbook "Have it done." } }""",
    "`B.work` is called in a loop (main.koi:5)": """
agent B : Worker { on work() { playbook "Work." } }
agent A : Boss { on go(args: Json) { for (const each of args.all) { await B.work({}) } } }""",
    "`B.work` is called in a function that is passed on (main.koi:5)": """
agent B : Worker { on work() { playbook "Work." } }
agent A : Boss { on go(args: Json) { await Promise.all(args.all.map(async each => await B.work({}))) } }""",
    "`B.work` is called in a function that is passed on (main.koi:6)": """
agent B : Worker { on work() { playbook "Work." } }
agent A : Boss { on go() {
  const later = B.work
} }""",
    "a model is asked in a loop (main.koi:4)": """
agent A : Boss { on go() { while (true) { await callAction("call_llm", { data: "x", instruction: "y" }) } } }""",
    "it leads back to itself: B.work → A.go → B.work": """
agent B : Worker { on work() { await callAction("call_llm", { data: "x", instruction: "y" })  return await A.go() } }
agent A : Boss { on go() { return await B.work() } }""",
    "`other` is Python, and what it asks for is not known (main.koi:4)": """import other from "./other.py"
agent A : Boss { on go() { return other.work() } }""",
    "there is an action whose name is computed, and what it asks for is not known (main.koi:4)": """
agent A : Boss { on go(args: Json) { return await callAction(args.name, {}) } }""",
}


@pytest.mark.parametrize("why", UNBOUNDED)
def test_nothing_bounds_it(why: str, project: Project) -> None:
    """Where nothing limits how often a model is asked there is no number, and the reason has its place."""
    project.write("other.py", "def work(): pass\n")
    bound = bound_of(program(project, UNBOUNDED[why], Spender()))

    assert (why, inf, inf) == (bound.why, bound.tokens, bound.usd)


def test_budgets_cut_circles(project: Project) -> None:
    """A handler that leads back to itself is bounded where a budget counts all that it leads to."""
    ready = program(
        project,
        """
        agent B : Worker { on work() { return await A.go() } }
        agent A : Boss { budget { requests: 5 }  on go() { playbook "Go on." }  on again() { return await B.work() } }
        """,
        Spender(),
    )

    assert (5, 5) == (bound_of(ready).requests, bound_of(ready, "B.work").requests)


def test_code_without_models_costs_nothing(project: Project) -> None:
    """Loops and circles in code that asks no model have no cost."""
    ready = program(
        project,
        """
        agent A : Boss {
          state { n: number = 9 }
          on go() {
            while (this.state.n > 3) { this.state.n -= 1 }
            function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) }
            return fib(3)
          }
        }""",
        Spender(),
    )

    assert Bound() == bound_of(ready)


def test_a_model_without_a_price(project: Project) -> None:
    """Of a model whose price is not known only tokens are told."""
    ready = program(project, PLAYBOOK, Spender("no-such-model"))
    known = ready.module.A.about.llm
    bound = bound_of(ready)

    assert not known
    assert ({"no-such-model"}, inf) == ({*bound.request.unpriced}, bound.usd)


def random_program(seed: int) -> str:
    """Agents in code that lead to those before them, and in the end to playbooks, in all ways that count."""
    choose = random.Random(seed)
    agents = [f'agent L{n} : Worker {{ on go() {{ playbook "Work." budget {{ turns: {n + 1} }} }} }}' for n in range(2)]
    names = ["L0", "L1"]
    for number in range(4):
        code = " ".join(_statement(choose, names, 2) for _ in range(choose.randint(1, 3)))
        tries = f'resilience "go" {{ retry_max_attempts = {choose.randint(1, 2)} }}' if choose.random() < 0.3 else ""
        budget = f"budget {{ requests: {choose.randint(5, 60)} }}" if choose.random() < 0.3 else ""
        agents.append(f"agent C{number} : Boss {{ uses team All {tries} {budget} on go() {{ {code} }} }}")
        names.append(f"C{number}")
    last = f"agent A : Boss {{ uses team All  on go() {{ {_statement(choose, names, 3)} }} }}"
    return "\n".join(
        [*agents, f"team All {{ {', '.join(f'm{at}: {name}' for at, name in enumerate(names[:3]))} }}", last]
    )


def _statement(choose: random.Random, names: Sequence[str], levels: int) -> str:
    """A statement that calls some of the agents, and goes on when they fail."""
    name, number = choose.choice(names), choose.randint(0, 999_999)
    forms = [
        f"try {{ await {name}.go({{}}) }} catch (e{number}) {{ console.log(1) }}",
        f'try {{ await {name}.handle("go", {{}}) }} finally {{ console.log(2) }}',
        'try { await callAction("call_llm", { data: "x", instruction: "y" }) } catch (error) { console.log(3) }',
    ]
    if names[:3] == ["L0", "L1", "C0"] and len(names) > 3:
        forms.append('try { await send peers.event("go").all()({}) } catch (error) { console.log(4) }')
        forms.append('try { await send peers.event("go").role(Boss).any()({}) } catch (error) { console.log(5) }')
    if levels:
        inner = _statement(choose, names, levels - 1)
        forms += [
            f"for (let i{number} = 0; i{number} < {choose.randint(0, 3)}; i{number}++) {{ {inner} }}",
            f"for (const x{number} of [1, 2]) {{ {inner} }}",
            f"async function f{number}() {{ {inner} }}  try {{ await f{number}() }} finally {{ await f{number}() }}",
            f"if (Math.random() > 0.5) {{ {inner} }} else {{ {_statement(choose, names, levels - 1)} }}",
        ]
    return choose.choice(forms)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(300))
def test_bounds_of_any_code_hold(seed: int, project: Project) -> None:
    """However calls stand within each other, the model takes no more than the bound."""
    ready = program(project, random_program(seed), as_layers(Spender(asks=30, fails=seed % 3)))
    bound = bound_of(ready)

    requests, tokens, usd = spend(ready)

    assert not bound.why
    assert (True, True, True) == (requests <= bound.requests, tokens <= bound.tokens, usd <= bound.usd + 1e-6)
