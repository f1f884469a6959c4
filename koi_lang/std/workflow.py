"""The runtime of `std/workflow`: agents of a folder, failures of tasks, phases, and scripts that run others."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from koi_lang.diagnostics import suggestion
from koi_lang.errors import AgentError, KoiError, OverLimitError, UsageError, failure_code
from koi_lang.front_matter import read_front_matter
from koi_lang.js import environment
from koi_lang.js.errors import ErrorValue, thrown
from koi_lang.js.undefined import undefined
from koi_lang.program import loader
from koi_lang.runtime.agents.result_types import SchemaResult
from koi_lang.runtime.budget.limits import RUN, BudgetAccount, LimitReachedError
from koi_lang.runtime.context import current_run
from koi_lang.runtime.guidance.material import read_whole
from koi_lang.runtime.host import NobodyToAskError
from koi_lang.runtime.replay.calls import Effect
from koi_lang.std.effects import agent, folder, perform_effect

OPTIONS = ("label", "phase", "schema", "model", "effort", "agentType", "isolation")
MAX_TASKS = 1_000
# Stages with fewer tasks begin without a question.
MIN_ASKED_TASKS = 20
MAX_LABEL_CHARS = 60
SCHEMA_HELP = 'Write a JSON Schema, such as `schema: { type: "object", properties: { name: { type: "string" } } }`.'
MAX_AGENT_BYTES = 100_000
# Failures that are not those of one task: the same would happen to every other one.
COMMON_FAILURES = frozenset({"E0502", "E0503", "E0509"})
# Agents of a folder, and tools in their descriptions that change something.
AGENTS = ".claude/agents"
WORKFLOWS = ".claude/workflows"
# Steps of thinking that scripts name, as those of `koi.toml`.
EFFORTS = {"minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "high", "max": "high"}
SMALL_MODELS = ("haiku", "small")
GENERAL_AGENTS = ("", "general-purpose", "workflow-subagent", "claude")
LOOKING_AGENTS = ("Explore", "Plan")
CHANGING_TOOLS = frozenset({"Bash", "Edit", "MultiEdit", "NotebookEdit", "Write"})


def check_options(others: Mapping[str, object], isolation: Any, schema: Any, effort: Any) -> None:
    """Raise AgentError for options of a task that are not known, or make no sense."""
    for name in others:
        raise AgentError(f"`agent` has no option `{name}`", help=suggestion(name, OPTIONS, "option"))
    if isolation is not undefined and isolation is not None:
        message = f"`isolation: {isolation!r}` is not supported: agents work on the files of the project itself"
        raise AgentError(message, help="Leave it out, and run tasks that change the same files one after the other.")
    if effort not in (undefined, None, *EFFORTS):
        raise AgentError(f"`agent` knows no effort {effort!r}", help=suggestion(str(effort), [*EFFORTS], "effort"))
    if schema is not undefined and schema is not None:
        try:
            SchemaResult.of("agent", schema)
        except AgentError as error:
            raise AgentError(error.message, help=SCHEMA_HELP) from error


def agent_type(name: Any) -> dict[str, str | bool]:
    """The instructions of a kind of agent, and whether it only looks; the folder may describe others.

    What the folder says of an agent can take permissions away, and gives none.

    Raises:
        AgentError: there is no such agent, or its description cannot be read.
    """
    kind = name if isinstance(name, str) else ""
    if kind in (*GENERAL_AGENTS, *LOOKING_AGENTS):
        return {"instructions": "", "only_looks": kind in LOOKING_AGENTS}

    def look() -> dict[str, str | bool]:
        place = folder() / AGENTS
        names = sorted(path.stem for path in place.glob("*.md"))
        if kind not in names:
            help = suggestion(kind, [*LOOKING_AGENTS, *names], "agent type")
            raise AgentError(f"there is no agent `{kind}` in `{AGENTS}`", help=help)
        front, body = read_front_matter(read_whole(place / f"{kind}.md", folder(), MAX_AGENT_BYTES, "Shorten it."))
        tools = front.get("tools")
        listed = tools if isinstance(tools, list) else str(tools or "").split(",")
        granted = {str(tool).strip().partition("(")[0] for tool in listed} - {""}
        only_looks = bool(granted) and not granted & CHANGING_TOOLS and "*" not in granted
        return {"instructions": f"{body.strip()}\n\n", "only_looks": only_looks}

    return dict(environment.current_environment().observe("agent type", look))


def model_options(name: Any, effort: Any) -> dict[str, str]:
    """The model of a task, and how much it thinks, as options of a call.

    Scripts name a size of models, which the settings translate: the smallest is the model `small`, all others are the
    usual one. A name with `/` is that of a model.
    """
    options = {} if effort not in EFFORTS else {"effort": EFFORTS[effort]}
    if isinstance(name, str) and "/" in name:
        return {**options, "model": name}
    return {**options, "model": "small"} if name in SMALL_MODELS else options


def report_failure(error: Any, label: Any) -> None:
    """Report that a task failed. Raises the error again where it is not the fault of the task."""
    exception = error.exception if isinstance(error, ErrorValue) else None
    is_of_run = isinstance(exception, LimitReachedError) and exception.what == RUN
    is_common = isinstance(exception, KoiError) and failure_code(exception) in COMMON_FAILURES
    if is_of_run or is_common or isinstance(exception, UsageError):
        raise thrown(error)
    name = str(label).partition("\n")[0][:MAX_LABEL_CHARS]
    reason = exception.message if isinstance(exception, KoiError) else str(error)
    environment.current_environment().log(f"{name}: failed: {reason}")


def text_of(result: Any) -> str:
    """The result of a task without a schema: a text, or another value as JSON."""
    if isinstance(result, str):
        return result
    return "" if result in (None, undefined, {}) else json.dumps(result, ensure_ascii=False)


async def stage(parts: Any, of_functions: bool) -> Sequence[Any]:
    """The tasks of a stage, once it may begin: a large one asks the person first.

    Raises:
        AgentError: it is no array, has too many tasks or something that cannot be called, or the person refuses it.
        OverLimitError: what is left of a limit would not pay for all of them, and nobody can be asked.
    """
    if not isinstance(parts, list):
        raise AgentError("a stage takes an array", help="Write `parallel([() => agent(…)])`, or `pipeline(items, …)`.")
    if of_functions and not all(map(callable, parts)):
        number = next(number for number, part in enumerate(parts, 1) if not callable(part))
        message = f"`parallel` takes functions, and item {number} is none"
        raise AgentError(message, help="Write `() => agent(…)`, so that it begins when the stage does.")
    if len(parts) > MAX_TASKS:
        raise AgentError(f"a stage of {len(parts)} tasks is too large", help=f"Begin at most {MAX_TASKS} at once.")
    if len(parts) < MIN_ASKED_TASKS:
        return parts
    host, bill = current_run().host, _Bill.of(len(parts))

    async def ask() -> str:
        try:
            return await host.ask(f"{bill.text}: begin them?", ("no", "yes"))
        except NobodyToAskError:
            return ""

    answer = await perform_effect(Effect("stage", {"tasks": len(parts)}, safe=True), ask)
    if answer == "no":
        raise AgentError(f"the stage of {len(parts)} tasks was not begun", help="Begin fewer tasks.")
    if not answer and bill.is_over:
        raise OverLimitError(f"the stage was not begun: {bill.text}", help="Raise the limit, or begin fewer tasks.")
    return parts


@dataclass(frozen=True, slots=True)
class _Bill:
    """What a stage takes if its tasks are like those before, beside what is left of the limits.

    Attributes:
        usd: of all tasks; None where no task has ended yet.
        left_usd: None without a limit.
    """

    tasks: int
    usd: float | None
    left_usd: float | None
    tokens: float | None
    left_tokens: float | None

    @classmethod
    def of(cls, tasks: int) -> _Bill:
        """The bill of so many tasks."""
        asking, account = agent(), _account()
        ended = 0 if asking is None else int(asking.state.get("ended", 0))
        limits = account.budget

        def look() -> list[float | None]:
            each = [account.usd / ended * tasks, account.tokens / ended * tasks] if ended else [None, None]
            left_usd = None if limits.usd is None else limits.usd - account.usd
            left_tokens = None if limits.tokens is None else limits.tokens - account.tokens
            return [each[0], left_usd, each[1], left_tokens]

        return cls(tasks, *environment.current_environment().observe("stage", look))

    @property
    def is_over(self) -> bool:
        """Whether a limit would not pay for all tasks."""
        pairs = ((self.usd, self.left_usd), (self.tokens, self.left_tokens))
        return any(cost is not None and left is not None and cost > left for cost, left in pairs)

    @property
    def text(self) -> str:
        """The bill in words."""
        parts = [f"{self.tasks} tasks at once"]
        if self.tokens is not None:
            usd = f"${self.usd:.2f} and " if self.usd else ""
            parts.append(f"about {usd}{self.tokens:,.0f} tokens, if they are like those before")
        if self.left_usd is not None:
            parts.append(f"${self.left_usd:.2f} are left")
        if self.left_tokens is not None:
            parts.append(f"{self.left_tokens:,} tokens are left")
        return ", ".join(parts)


def note_end() -> None:
    """Count a task that has ended well."""
    asking = agent()
    if asking is not None:
        asking.state["ended"] = int(asking.state.get("ended", 0)) + 1


def begin_phase(title: str) -> None:
    """Note the phase that agents belong to from now on."""
    asking = agent()
    if asking is not None:
        asking.state["phase"] = title


def current_phase() -> str:
    """The title of the current phase; empty before the first one."""
    asking = agent()
    return "" if asking is None else str(asking.state.get("phase", ""))


def total_tokens() -> int | None:
    """The most tokens that the run may use; None without a limit."""
    return _account().budget.tokens


def spent_tokens() -> int:
    """The tokens that the run has used so far."""
    return int(environment.current_environment().observe("tokens", lambda: _account().tokens))


def remaining_tokens() -> float:
    """The tokens that are left to the run; infinite without a limit."""
    total = total_tokens()
    return inf if total is None else max(0, total - spent_tokens())


def _account() -> BudgetAccount:
    return current_run().ledger.spending


async def run_workflow(name: Any, args: Any) -> Any:
    """The result of another script of the folder. Raises AgentError where there is none."""
    place = name.get("scriptPath") if isinstance(name, dict) else f"{WORKFLOWS}/{name}.js"
    path = folder() / str(place)
    if not path.is_file():
        known = [path.stem for path in sorted((folder() / WORKFLOWS).glob("*.js"))]
        help = suggestion(str(name), known, "workflow") if known else f"Put the script into `{WORKFLOWS}`."
        raise AgentError(f"there is no workflow `{place}`", help=help)
    module = loader.load(os.fspath(path))
    return await current_run().call(module.Script, "start", {} if args is undefined else args)
