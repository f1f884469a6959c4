"""The surroundings of a test's program: stand-ins for a person, models and servers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from koi_lang.errors import AgentError, ProviderError, UnscriptedError
from koi_lang.llm.connect import connect
from koi_lang.llm.messages import Adapter, Delta, Request
from koi_lang.llm.scripted import ScriptedModel
from koi_lang.runtime.agents.declarations import Mcp
from koi_lang.runtime.host import ApprovalDecision, ApprovalRequest, NobodyToAskError, choose_option
from koi_lang.runtime.mcp.servers import Servers
from koi_lang.runtime.test_blocks.context import Answers, Trial

if TYPE_CHECKING:
    from koi_lang.runtime.mcp.connection import McpConnection

MAX_PLAYBOOK_CHARS = 60


@dataclass(slots=True)
class Audience:
    """A host that keeps printed lines and answers questions as the test says; it allows nothing."""

    trial: Trial
    logged: list[str] = field(default_factory=list)

    def print(self, text: str) -> None:
        """Keep the lines of a piece of output."""
        self.trial.output += text.split("\n")

    def log(self, text: str) -> None:
        """Keep the lines of something that is not output."""
        self.logged += text.split("\n")

    async def ask(self, question: str, options: Sequence[str] = ()) -> str:
        """The next given answer; an option may be answered by its number. Raises UnscriptedError when there is none."""
        if self.trial.person:
            return choose_option(self.trial.person.pop(0), options)
        given = "has no more answers" if self.trial.person is not None else "gives no answers"
        message = f"the person is asked `{question.strip()}`, and this test {given}"
        raise self.trial.miss(message, "add the answer to `given person answers [ … ]`.")

    async def approve(self, request: ApprovalRequest) -> ApprovalDecision:
        """Refuse: there is nobody."""
        raise NobodyToAskError(f"nobody can be asked in a test for permission to {request.what}")

    async def secret(self, name: str) -> str:
        """Refuse: there is nobody."""
        raise NobodyToAskError(f"nobody can be asked for `{name}` in a test")


class Script:
    """The model of all agents in a test: it gives the answers of `given model answers`."""

    provider = model = "scripted"

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._scripted: ScriptedModel | None = None

    def __call__(self, request: Request) -> AsyncIterator[Delta]:
        """Stream the next answer. Raises UnscriptedError when there is none."""
        if self._trial.model is None:
            raise self._missing_answer_error("a model is asked, and this test gives no answers", request)
        try:
            return self._script(self._trial.model)(request)
        except ProviderError as error:
            raise self._missing_answer_error(error.message, request) from error

    def pass_over(self, request: Request) -> None:
        """Count the next answer as given: it is known from an earlier part of the run."""
        if self._trial.model is not None:
            self._script(self._trial.model).pass_over(request)

    def _script(self, answers: Answers) -> ScriptedModel:
        self._scripted = self._scripted or ScriptedModel(answers)
        return self._scripted

    async def aclose(self) -> None:
        """Nothing is held."""

    def _missing_answer_error(self, message: str, request: Request) -> UnscriptedError:
        text = request.task.playbook if request.task else request.system
        playbook = " ".join(text.split())
        shown = playbook if len(playbook) <= MAX_PLAYBOOK_CHARS else f"{playbook[:MAX_PLAYBOOK_CHARS]}…"
        return self._trial.miss(message, f"add an answer to `given model answers [ … ]`; the request is: {shown}")


class TestModels:
    """Settings of `llm` blocks to models, none of which leaves the process."""

    def __init__(self, trial: Trial) -> None:
        self._trial, self._script = trial, Script(trial)

    def connect(self, llm: Mapping[str, Any]) -> Adapter:
        """The script of the test; an agent that brings its own keeps it while the test gives none."""
        if self._trial.model is None and llm.get("provider") == "scripted":
            return connect(llm, lambda name: None)
        return self._script


class NoServers(Servers):
    """MCP servers of a test: none is ever started."""

    async def connect(self, server: Mcp) -> McpConnection:
        """Refuse. Raises AgentError."""
        raise AgentError(f"the MCP server `{server.name}` is not started in a test")
