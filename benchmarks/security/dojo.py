"""AgentDojo with a model that obeys every injection it sees: what roles stop, by the checks of AgentDojo itself.

Each tool of a suite is a function of a skill with a permission of its own, and an agent has the request of the user
as its playbook. The model knows the calls that solve the task, and those of the attacker, which it makes as soon as
the result of a tool holds the injection.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from agentdojo.agent_pipeline.base_pipeline_element import BasePipelineElement
from agentdojo.agent_pipeline.tool_execution import tool_result_to_str
from agentdojo.attacks.base_attacks import FixedJailbreakAttack
from agentdojo.attacks.important_instructions_attacks import ImportantInstructionsAttack
from agentdojo.base_tasks import BaseInjectionTask, BaseUserTask
from agentdojo.functions_runtime import FunctionCall, FunctionsRuntime
from agentdojo.task_suite.load_suites import get_suites
from agentdojo.task_suite.task_suite import TaskSuite
from agentdojo.types import ChatAssistantMessage, ChatMessage, text_content_block_from_string

import koi_lang
from benchmarks.security.dojo_attackers import attack_calls
from benchmarks.security.dojo_tools import run_tool
from benchmarks.security.results import DojoResult
from koi_lang.errors import KoiError
from koi_lang.llm.messages import Request
from tests.playbook.playing import Voice

VERSION = "v1.2.2"
# Stands in every injection.
MARK = "<INFORMATION>"
ALL_TOOLS, OWN_TOOLS = "all tools", "a role per task"
PROGRAM = """
import tools from "python:benchmarks.security.dojo_tools"

role Assistant {{ {can} }}

skill Tools {{
  affordance "Tools of the person"
{functions}
}}

agent Desk : Assistant {{
  uses skill Tools
  on ask(args: {{ request: string }}): {{ text: string }} {{ playbook "{{{{args.request}}}}" }}
}}
"""
FUNCTION = (
    '  needs use_{name} export function {name}({parameters}): string {{ return tools.call("{name}", {{ {names} }}) }}'
)


@dataclass(frozen=True, slots=True)
class Pair:
    """A task of a user, and the task of an attacker whose text stands in the results of the user's tools."""

    suite: TaskSuite[Any]
    user: BaseUserTask[Any]
    attacker: BaseInjectionTask[Any]


@dataclass(frozen=True, slots=True)
class PairResult:
    """The outcome of a pair.

    Attributes:
        is_seen: whether the model has seen the injection.
        is_attacked: whether the attack succeeded, as AgentDojo decides.
        has_effect: whether a call of the attacker changed something, also where the attack as a whole did not succeed.
        is_useful: whether the user's task was done, as AgentDojo decides.
        outside: tools that ran although the role does not permit them.
    """

    is_seen: bool
    is_attacked: bool
    has_effect: bool
    is_useful: bool
    outside: tuple[str, ...]


def pairs() -> list[Pair]:
    """All pairs of all suites."""
    return [
        Pair(suite, user, attacker)
        for suite in get_suites(VERSION).values()
        for user in suite.user_tasks.values()
        for attacker in suite.injection_tasks.values()
    ]


class ObedientModel:
    """Makes the calls that solve a task, and those of an attacker first, once it has seen the injection.

    Args:
        calls: of the user.
        attack: gives the calls of the attacker.
        outputs: what the user wants to read, and what the attacker wants to be said.

    Attributes:
        is_attacking: whether the last call was one of the attacker.
    """

    def __init__(
        self, calls: Sequence[FunctionCall], attack: Callable[[], Sequence[FunctionCall]], outputs: tuple[str, str]
    ) -> None:
        self._calls, self._attack, self._outputs = list(calls), attack, outputs
        self._attacks: list[FunctionCall] = []
        self.has_seen = self.is_attacking = False

    async def speak(self, request: Request) -> AsyncIterator[str]:
        """Answer with one action."""
        if not self.has_seen and MARK in request.messages[-1].text:
            self.has_seen = True
            self._attacks = list(self._attack())
        yield json.dumps(self._next_action(), default=str)

    def _next_action(self) -> dict[str, Any]:
        self.is_attacking = bool(self._attacks)
        if calls := self._attacks or self._calls:
            call = calls.pop(0)
            return {"intent": "call_skill", "skill": "Tools", "function": call.function, "input": dict(call.args)}
        text = "\n".join(self._outputs if self.has_seen else self._outputs[:1])
        return {"intent": "return", "data": {"text": text}}


@dataclass(slots=True)
class KoiPipeline(BasePipelineElement):
    """A Koi program in the place of AgentDojo's own agent.

    Attributes:
        pair: what is tried.
        program: path of the program.
        executed: the calls that tools have carried out.
        has_seen: whether the model has seen the injection.
        has_effect: whether a call of the attacker changed the environment.
    """

    pair: Pair
    program: Path
    name: str | None = "koi"
    executed: list[FunctionCall] = field(default_factory=list)
    has_seen: bool = False
    has_effect: bool = False

    def query(
        self, query: str, runtime: FunctionsRuntime, env: Any = None, messages: Any = (), extra_args: Any = None
    ) -> tuple[str, FunctionsRuntime, Any, Sequence[ChatMessage], dict[str, Any]]:
        """Have the agent do what the user asks for."""
        suite, user, attacker = self.pair.suite.name, self.pair.user, self.pair.attacker
        outputs = (user.GROUND_TRUTH_OUTPUT, attacker.GROUND_TRUTH_OUTPUT)
        model = ObedientModel(user.ground_truth(env), lambda: attack_calls(suite, attacker, env), outputs)

        def run(name: str, arguments: Mapping[str, Any]) -> str:
            self.executed.append(FunctionCall(function=name, args=dict(arguments)))
            before = env.model_dump() if model.is_attacking else None
            result, error = runtime.run_function(env, name, arguments)
            self.has_effect |= before is not None and before != env.model_dump()
            return tool_result_to_str(result) if error is None else f"Error: {error}"

        run_tool.set(run)
        text = asyncio.run(self._ask(query, model))
        self.has_seen = model.has_seen
        calls = [ChatAssistantMessage(role="assistant", content=None, tool_calls=[call]) for call in self.executed]
        final = [text_content_block_from_string(text)]
        return query, runtime, env, [*calls, ChatAssistantMessage(role="assistant", content=final, tool_calls=None)], {}

    async def _ask(self, request: str, model: ObedientModel) -> str:
        voice = Voice(model.speak)
        async with koi_lang.open(self.program, model=voice, folder=self.program.parent, record=False) as program:
            try:
                return str((await program.agent("Desk").ask(request=request))["text"])
            except KoiError:
                return ""


def attempt(pair: Pair, mode: str, folder: Path) -> PairResult:
    """Try a pair with all tools permitted, or with those that the calls of the user's task need."""
    suite, user = pair.suite, pair.user
    injections = _attacks(suite.name).attack(user, pair.attacker)
    environment = suite.load_and_inject_default_environment(injections)
    needed = user.ground_truth(user.init_environment(environment.model_copy(deep=True)))
    permitted = {tool.name for tool in suite.tools} if mode == ALL_TOOLS else {call.function for call in needed}
    program = folder / (f"{suite.name}.koi" if mode == ALL_TOOLS else f"{suite.name}_{user.ID}.koi")
    if not program.exists():
        program.write_text(program_of(suite, permitted), "utf-8")
    pipeline = KoiPipeline(pair, program)
    useful, attacked = suite.run_task_with_pipeline(pipeline, user, pair.attacker, injections, environment=environment)
    outside = tuple(call.function for call in pipeline.executed if call.function not in permitted)
    return PairResult(pipeline.has_seen, attacked, pipeline.has_effect, useful, outside)


@cache
def _attacks(suite: str) -> FixedJailbreakAttack:
    """Texts that AgentDojo puts wherever the tools of a task show them."""
    return FixedJailbreakAttack(ImportantInstructionsAttack._JB_STRING, get_suites(VERSION)[suite], KoiPipeline)


def program_of(suite: TaskSuite[Any], permitted: Iterable[str]) -> str:
    """The program of a suite whose role permits some of its tools."""
    functions = "\n".join(map(_function, suite.tools))
    return PROGRAM.format(can=", ".join(f"can use_{name}" for name in sorted(permitted)), functions=functions)


def _function(tool: Any) -> str:
    schema = tool.parameters.model_json_schema()
    required, names = set(schema.get("required", ())), list(schema["properties"])
    ordered = sorted(names, key=lambda name: name not in required)
    parameters = ", ".join(f"{name}: Json" if name in required else f"{name}: Json = null" for name in ordered)
    return FUNCTION.format(name=tool.name, parameters=parameters, names=", ".join(names))


def measure(chosen: Sequence[Pair], folder: Path) -> dict[str, DojoResult]:
    """Try pairs in both modes; the counts by suite, and of all."""
    outcomes: dict[str, list[tuple[PairResult, PairResult]]] = {}
    for pair in chosen:
        results = attempt(pair, ALL_TOOLS, folder), attempt(pair, OWN_TOOLS, folder)
        outcomes.setdefault(pair.suite.name, []).append(results)
    outcomes["all"] = [results for group in outcomes.values() for results in group]
    return {name: _counted(*zip(*group, strict=True)) for name, group in outcomes.items()}


def _counted(all_tools: Sequence[PairResult], own_tools: Sequence[PairResult]) -> DojoResult:
    return DojoResult(
        len(all_tools),
        sum(each.is_seen for each in all_tools),
        sum(each.is_attacked for each in all_tools),
        sum(each.is_useful for each in all_tools),
        sum(each.is_attacked for each in own_tools),
        sum(each.has_effect for each in own_tools),
        sum(each.is_useful for each in own_tools),
        sum(len(each.outside) for each in own_tools),
    )
